//! Groups of a tenant: its own numbers, and buckets for the physical switch.
//!
//! A bucket is an action set, so it sends a packet out of one port. A bucket that floods becomes one for each port, in a group of type
//! ALL. Packets reach a group with the slice's tag, if the switch has ports with tags; the bucket for an edge port pops it. A bucket cannot
//! change addresses, because it does not know them. If the slice has only edge ports at the switch, packets reach a group as they came. Its
//! buckets send to these ports alone, so the kernel lets any packet of the slice enter.
//!
//! In: group mods. Out: group mods of the physical switch, or the refusal.

use crate::controller::Asker;
use crate::flattening::in_order;
use crate::output::{ADD, Command, DELETE, MODIFY};
use crate::pending::{Asked, Sender};
use crate::refusal::*;
use crate::rule_table::Group;
use crate::translation::Start;
use crate::virtual_switch::{Obeyed, Turn, VirtualSwitch};
use flow::{Action, PortNo};
use openflow::Version;
use openflow::message::*;

/// OFPG_MAX: the highest number of a group.
const GROUP_MAX: u32 = 0xffff_ff00;
/// OFPRR_GROUP_DELETE.
pub(crate) const REMOVED_BY_GROUP: u8 = 3;
/// The most buckets of a group in the physical switch.
const BUCKETS_MAX: usize = 256;

/// The buckets of a group in the physical switch.
#[derive(Default)]
struct Laid {
    buckets: Vec<Bucket>,
    /// How many each bucket of the tenant became.
    spread: Vec<usize>,
}

/// The type, and the weights that only one type has (1.3.5, 7.3.4.2). They come before all else, as in Open vSwitch.
fn check_kind(wanted: &GroupMod) -> Obeyed {
    let kind = wanted.group_type;
    if kind > GROUP_TYPE_FAST_FAILOVER {
        return Err(Refusal::new(GROUP_TYPE, format!("there is no type {kind}")));
    }
    if kind != GROUP_TYPE_SELECT && wanted.buckets.iter().any(|bucket| bucket.weight != 0) {
        return Err(Refusal::new(GROUP_INVALID, "only a select group has weights"));
    }
    Ok(())
}

/// How many buckets a type has, and what they watch (1.3.5, 5.6.1).
fn check_buckets(wanted: &GroupMod) -> Obeyed {
    let buckets = &wanted.buckets;
    if wanted.group_type == GROUP_TYPE_INDIRECT && buckets.len() != 1 {
        return Err(Refusal::new(GROUP_INVALID, "an indirect group has one bucket"));
    }
    if buckets.len() > BUCKETS_MAX {
        return Err(Refusal::new(GROUP_OUT_OF_BUCKETS, format!("a group has at most {BUCKETS_MAX} buckets")));
    }
    let watches = |bucket: &Bucket| bucket.watch_port != PortNo::ANY || bucket.watch_group != GROUP_ANY;
    if wanted.group_type == GROUP_TYPE_FAST_FAILOVER && !buckets.iter().all(watches) {
        return Err(Refusal::new(GROUP_WATCH, "a bucket of a fast-failover group watches a port"));
    }
    Ok(())
}

impl VirtualSwitch {
    /// Carries out a group mod (1.3.5, 6.5).
    pub(crate) fn on_group_mod(
        &mut self,
        asker: Asker,
        wanted: &GroupMod,
        bytes: &[u8],
        turn: &mut Turn<'_>,
    ) -> Obeyed {
        if self.on() == Version::V1_0 {
            return Err(Refusal::new(BAD_TYPE, "the physical switch has OpenFlow 1.0, and no groups"));
        }
        let sender = Sender::new(asker, bytes);
        if matches!(wanted.command, ADD | MODIFY) {
            check_kind(wanted)?;
        }
        match wanted.command {
            ADD => self.add_group(wanted, sender, turn),
            MODIFY => self.modify_group(wanted, sender, turn),
            DELETE => {
                self.delete_groups(wanted.group_id, &sender, turn);
                Ok(())
            }
            other => Err(Refusal::new(GROUP_COMMAND, format!("there is no command {other}"))),
        }
    }

    fn add_group(&mut self, wanted: &GroupMod, sender: Sender, turn: &mut Turn<'_>) -> Obeyed {
        let id = wanted.group_id;
        if id > GROUP_MAX {
            return Err(Refusal::new(GROUP_INVALID, format!("{id} is no number of a group")));
        }
        if self.groups.contains_key(&id) {
            return Err(Refusal::new(GROUP_EXISTS, format!("group {id} exists")));
        }
        let laid = self.physical_buckets(wanted)?;
        let used: Vec<u32> = self.groups.values().map(|group| group.physical).collect();
        let Some(physical) = self.numbers.groups.clone().find(|number| !used.contains(number)) else {
            return Err(Refusal::new(GROUP_OUT_OF_GROUPS, "all groups of the slice are in use"));
        };
        let (group_type, buckets, spread) = (wanted.group_type, wanted.buckets.clone(), laid.spread);
        self.groups.insert(id, Group { physical, group_type, buckets, spread, modified: 0 });
        self.unsaved.groups.note(id);
        let group_mod = GroupMod { command: ADD, group_type, group_id: physical, buckets: laid.buckets };
        self.claims += 1;
        self.order(Command::GroupMod(group_mod), Some(Asked::Group { sender, id }), turn);
        Ok(())
    }

    fn modify_group(&mut self, wanted: &GroupMod, sender: Sender, turn: &mut Turn<'_>) -> Obeyed {
        let laid = self.physical_buckets(wanted)?;
        let (id, group_type) = (wanted.group_id, wanted.group_type);
        let Some(group) = self.groups.get_mut(&id) else {
            return Err(Refusal::new(GROUP_UNKNOWN, format!("there is no group {id}")));
        };
        let (group_id, modified) = (group.physical, group.modified.wrapping_add(1));
        let (buckets, spread) = (wanted.buckets.clone(), laid.spread);
        let after = Group { physical: group_id, group_type, buckets, spread, modified };
        let before = Box::new(std::mem::replace(group, after));
        self.unsaved.groups.note(id);
        self.rules.touch_group(id);
        let group_mod = GroupMod { command: MODIFY, group_type, group_id, buckets: laid.buckets };
        self.order(Command::GroupMod(group_mod), Some(Asked::ModifyGroup { sender, id, before }), turn);
        Ok(())
    }

    /// The physical switch has refused to modify a group, so it is what it was. A later modify has its own answer.
    pub(crate) fn restore_group(&mut self, id: u32, before: Group) {
        if let Some(group) = self.groups.get_mut(&id)
            && group.modified == before.modified.wrapping_add(1)
        {
            *group = before;
            self.unsaved.groups.note(id);
            self.rules.touch_group(id);
        }
    }

    /// Deletes one group or all of the slice, with the rules that refer to them.
    fn delete_groups(&mut self, wanted: u32, sender: &Sender, turn: &mut Turn<'_>) {
        let is_meant = |id: &u32| wanted == GROUP_ALL || *id == wanted;
        let ids: Vec<u32> = self.groups.keys().copied().filter(is_meant).collect();
        for id in ids {
            let rules: Vec<u64> =
                self.rules.iter().filter(|rule| rule.refers_to(id)).map(|rule| rule.number).collect();
            rules.into_iter().for_each(|rule| self.take_out(rule, REMOVED_BY_GROUP, Some(sender), turn));
            let Some(group) = self.groups.remove(&id) else { continue };
            self.unsaved.groups.note(id);
            let group_mod = GroupMod {
                command: DELETE,
                group_type: group.group_type,
                group_id: group.physical,
                buckets: Vec::new(),
            };
            self.order(Command::GroupMod(group_mod), Some(Asked::Change(sender.clone())), turn);
        }
    }

    /// Lays all groups again, because ports changed. Returns how many.
    pub(crate) fn relay_groups(&mut self, command: u16, turn: &mut Turn<'_>) -> usize {
        let laid = self.lay_groups(command);
        let count = laid.len();
        laid.into_iter().for_each(|(_, group_mod)| self.order(Command::GroupMod(group_mod), None, turn));
        count
    }

    /// All groups as they are to be in the physical switch, by the tenant's numbers.
    pub(crate) fn lay_groups(&mut self, command: u16) -> Vec<(u32, GroupMod)> {
        let laid: Vec<(u32, GroupMod, Vec<usize>)> = self
            .groups
            .iter()
            .filter_map(|(id, group)| {
                let buckets = group.buckets.clone();
                let own = GroupMod { command, group_type: group.group_type, group_id: *id, buckets };
                let Laid { buckets, spread } = self.physical_buckets(&own).ok()?;
                Some((*id, GroupMod { group_id: group.physical, buckets, ..own }, spread))
            })
            .collect();
        let mut mods = Vec::with_capacity(laid.len());
        for (id, group_mod, spread) in laid {
            if let Some(group) = self.groups.get_mut(&id) {
                group.spread = spread;
            }
            mods.push((id, group_mod));
        }
        mods
    }

    /// The buckets of a group in the physical switch.
    fn physical_buckets(&self, wanted: &GroupMod) -> Result<Laid, Refusal> {
        check_buckets(wanted)?;
        let mut all = Laid::default();
        for bucket in &wanted.buckets {
            let laid = self.physical_bucket(bucket, wanted.group_type)?;
            all.spread.push(laid.len());
            all.buckets.extend(laid);
            if all.buckets.len() > BUCKETS_MAX {
                return Err(Refusal::new(GROUP_OUT_OF_BUCKETS, format!("a group has at most {BUCKETS_MAX}")));
            }
        }
        Ok(all)
    }

    fn physical_bucket(&self, bucket: &Bucket, group_type: u8) -> Result<Vec<Bucket>, Refusal> {
        if bucket.watch_group != GROUP_ANY {
            return Err(Refusal::new(GROUP_WATCH, "a bucket of a slice watches ports only"));
        }
        let watch_port = match bucket.watch_port {
            PortNo::ANY => PortNo::ANY,
            port => match self.space.port(port) {
                Some(there) => there.plan.port,
                None => return Err(Refusal::new(GROUP_WATCH, format!("port {port} is not in the slice"))),
            },
        };
        let lists = self.lists_of(in_order(&bucket.actions))?;
        if lists.len() > 1 && group_type != GROUP_TYPE_ALL {
            return Err(Refusal::new(GROUP_BUCKET, "a bucket floods only in a group of type ALL"));
        }
        let physical =
            |actions| Bucket { weight: bucket.weight, watch_port, watch_group: GROUP_ANY, actions };
        let laid: Result<Vec<Bucket>, Refusal> =
            lists.into_iter().map(|list| self.lay_bucket(&list).map(physical)).collect();
        laid
    }

    /// The lists of a bucket: one for each port that it sends to.
    fn lists_of(&self, mut actions: Vec<Action>) -> Result<Vec<Vec<Action>>, Refusal> {
        let is_group = |action: &Action| matches!(action, Action::Group(_));
        if actions.iter().any(is_group) {
            return Err(Refusal::new(GROUP_CHAINING, "a group of a slice leads to no other"));
        }
        let port = match actions.last() {
            Some(Action::Output { port, .. }) => *port,
            _ => return Ok(vec![actions]),
        };
        match port {
            // Only a rule knows at which port its packets enter. The kernel refuses such a bucket to each app with bounds on its ports.
            PortNo::IN_PORT => Err(Refusal::new(
                GROUP_BUCKET,
                "a group cannot send to IN_PORT, which can be any port: let a rule do it",
            )),
            PortNo::CONTROLLER if self.space.is_undressed() => Err(Refusal::new(
                GROUP_BUCKET,
                "a group cannot send to a controller at a switch where all ports of the slice are its own: let a rule do it",
            )),
            PortNo::FLOOD | PortNo::ALL => {
                actions.pop();
                let is_wanted = |there: &&crate::port::VirtualPort| {
                    if port == PortNo::FLOOD { there.floods() } else { there.sends() }
                };
                let to = |shown| actions.iter().cloned().chain([Action::output(shown)]).collect();
                Ok(self.space.ports().filter(is_wanted).map(|port| to(port.plan.shown_as)).collect())
            }
            _ => Ok(vec![actions]),
        }
    }

    /// One list for the physical switch. Packets of each port may enter a group, so it must be fine for all of them.
    fn lay_bucket(&self, actions: &[Action]) -> Result<Vec<Action>, Refusal> {
        let is_dressed = self.space.has_dressed_ports();
        let mut laid = Vec::new();
        for known in self.space.group_entries() {
            let start = Start { in_port: None, is_dressed, known };
            let list = self.scene().translate(start, actions)?;
            // The lists of ports that do not send lack the output.
            if list.len() > laid.len() {
                laid = list;
            }
        }
        Ok(laid)
    }
}
