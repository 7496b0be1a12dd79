//! The rules of a modelled switch: what the control plane has, and what packets meet.
//!
//! In: flow mods that were carried out, and where the model says that packets meet a rule. Out: rules by packet, by flow mod, and for
//! statistics. Rules are found by the one destination address in their match, so that a probe of thousands of rules is fast.

use flow::frame::FrameFields;
use flow::{Action, Field, Instruction, Match, PortNo};
use openflow::message::{
    FLOW_DELETE, FLOW_MOD_SEND_FLOW_REMOVED, FLOW_MODIFY, FlowMod, FlowRemoved, FlowStats,
};
use profile::model::{Place, RuleId};
use std::collections::{BTreeMap, HashMap};

/// The fields by which rules are found.
const KEYS: [Field; 3] = [Field::EthDst, Field::Ipv4Dst, Field::Ipv6Dst];

/// A rule that a packet met.
#[derive(Clone, Debug)]
pub(super) struct Found {
    pub(super) rule: RuleId,
    pub(super) is_software: bool,
    pub(super) to: Vec<PortNo>,
    /// How much of the packet goes to the controller.
    pub(super) max_len: Option<u16>,
}

#[derive(Clone, Debug)]
struct Entry {
    matching: Match,
    priority: u16,
    /// What the control plane has. None: the rule is deleted.
    wanted: Option<FlowMod>,
    added_ns: u64,
    used_ns: u64,
    packets: u64,
    /// What packets meet, and where.
    plane: Option<(Place, Vec<Instruction>)>,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Table {
    ids: HashMap<(u16, Match), RuleId>,
    entries: BTreeMap<RuleId, Entry>,
    by_key: HashMap<(Field, u128), Vec<RuleId>>,
    others: Vec<RuleId>,
    numbered: u64,
    wanted: usize,
}

impl Table {
    /// How many rules the control plane has.
    pub(super) fn len(&self) -> usize {
        self.wanted
    }

    /// The number of a rule. It stays the same after the rule is gone: an add that waits for the CPU may bring the rule again.
    pub(super) fn id_of(&mut self, priority: u16, matching: &Match) -> RuleId {
        let key = (priority, matching.clone());
        if let Some(id) = self.ids.get(&key) {
            return *id;
        }
        self.numbered += 1;
        let id = RuleId(self.numbered);
        self.ids.insert(key, id);
        match key_of(matching) {
            Some(key) => self.by_key.entry(key).or_default().push(id),
            None => self.others.push(id),
        }
        let entry = Entry {
            matching: matching.clone(),
            priority,
            wanted: None,
            added_ns: 0,
            used_ns: 0,
            packets: 0,
            plane: None,
        };
        self.entries.insert(id, entry);
        id
    }

    /// A rule is added or replaced.
    pub(super) fn put(&mut self, change: &FlowMod, now_ns: u64) {
        let id = self.id_of(change.priority, &change.matching);
        let Some(entry) = self.entries.get_mut(&id) else { return };
        self.wanted += usize::from(entry.wanted.is_none());
        entry.wanted = Some(change.clone());
        (entry.added_ns, entry.used_ns, entry.packets) = (now_ns, now_ns, 0);
    }

    /// Changes the actions of the rules that a flow mod selects. Returns them.
    pub(super) fn modify(&mut self, change: &FlowMod) -> Vec<RuleId> {
        let selected = self.selected(change, change.command == FLOW_MODIFY);
        for id in &selected {
            if let Some(wanted) = self.entries.get_mut(id).and_then(|entry| entry.wanted.as_mut()) {
                wanted.instructions.clone_from(&change.instructions);
            }
        }
        selected
    }

    /// Deletes the rules that a flow mod selects. Returns them.
    pub(super) fn delete(&mut self, change: &FlowMod) -> Vec<RuleId> {
        let selected = self.selected(change, change.command == FLOW_DELETE);
        selected.iter().for_each(|id| drop(self.remove(*id)));
        selected
    }

    /// A probe deletes and modifies all rules, or one.
    fn selected(&mut self, change: &FlowMod, is_wide: bool) -> Vec<RuleId> {
        let fits = |wanted: &FlowMod| (wanted.cookie ^ change.cookie) & change.cookie_mask == 0;
        let is_there = |entry: &Entry| entry.wanted.as_ref().is_some_and(fits);
        if is_wide && change.matching.is_any() {
            return self.entries.iter().filter(|(_, entry)| is_there(entry)).map(|(id, _)| *id).collect();
        }
        let id = self.id_of(change.priority, &change.matching);
        self.entries.get(&id).filter(|entry| is_there(entry)).map(|_| id).into_iter().collect()
    }

    /// The control plane no longer has a rule. Returns the message about it, if the rule asked for one.
    pub(super) fn remove(&mut self, id: RuleId) -> Option<FlowRemoved> {
        let entry = self.entries.get_mut(&id)?;
        let wanted = entry.wanted.take()?;
        self.wanted -= 1;
        let removed = FlowRemoved {
            matching: entry.matching.clone(),
            cookie: wanted.cookie,
            priority: entry.priority,
            reason: u8::from(wanted.hard_timeout_s > 0),
            table_id: 0,
            duration_s: 0,
            duration_ns: 0,
            idle_timeout_s: wanted.idle_timeout_s,
            hard_timeout_s: wanted.hard_timeout_s,
            packet_count: entry.packets,
            byte_count: 0,
        };
        let is_told = wanted.flags & FLOW_MOD_SEND_FLOW_REMOVED != 0;
        is_told.then_some(removed)
    }

    /// Packets meet a rule there from now on, in its latest form.
    pub(super) fn set_place(&mut self, id: RuleId, place: Option<Place>) {
        let Some(entry) = self.entries.get_mut(&id) else { return };
        let now = entry.wanted.as_ref().map(|wanted| wanted.instructions.clone());
        let before = entry.plane.take().map(|(_, instructions)| instructions);
        entry.plane = place.and_then(|place| Some((place, now.or(before)?)));
    }

    /// When a rule was last used, if that is after this time.
    pub(super) fn used_since(&self, id: RuleId, since_ns: u64) -> Option<u64> {
        self.entries.get(&id).map(|entry| entry.used_ns).filter(|used| *used > since_ns)
    }

    /// The rule that a packet meets.
    pub(super) fn find(&mut self, port: PortNo, frame: &[u8], now_ns: u64) -> Option<Found> {
        let fields = FrameFields::read(frame).from_port(port);
        let keyed = KEYS.iter().filter_map(|field| self.by_key.get(&(*field, fields.get(*field)?)));
        let candidates = keyed.flatten().chain(&self.others);
        let seen = candidates.filter_map(|id| Some((*id, self.entries.get(id)?)));
        let fits = seen.filter(|(_, entry)| entry.plane.is_some() && entry.matching.matches(&fields));
        let (rule, _) = fits.max_by_key(|(_, entry)| entry.priority)?;
        let entry = self.entries.get_mut(&rule)?;
        (entry.used_ns, entry.packets) = (now_ns, entry.packets + 1);
        let (place, instructions) = entry.plane.as_ref()?;
        let to: Vec<PortNo> = ports_of(instructions).collect();
        let max_len =
            outputs(instructions).find(|(port, _)| *port == PortNo::CONTROLLER).map(|(_, max_len)| max_len);
        Some(Found { rule, is_software: *place == Place::Software, to, max_len })
    }

    /// All rules of the control plane, as statistics.
    pub(super) fn entries(&self) -> Vec<FlowStats> {
        let wanted = self.entries.values().filter_map(|entry| Some((entry, entry.wanted.as_ref()?)));
        wanted
            .map(|(entry, wanted)| FlowStats {
                table_id: 0,
                duration_s: 0,
                duration_ns: 0,
                priority: entry.priority,
                idle_timeout_s: wanted.idle_timeout_s,
                hard_timeout_s: wanted.hard_timeout_s,
                flags: 0,
                cookie: wanted.cookie,
                packet_count: entry.packets,
                byte_count: 0,
                matching: entry.matching.clone(),
                instructions: wanted.instructions.clone(),
            })
            .collect()
    }
}

fn key_of(matching: &Match) -> Option<(Field, u128)> {
    KEYS.iter().find_map(|field| matching.get(*field).map(|(value, _)| (*field, value)))
}

fn outputs(instructions: &[Instruction]) -> impl Iterator<Item = (PortNo, u16)> + '_ {
    let actions = instructions.iter().flat_map(|instruction| match instruction {
        Instruction::ApplyActions(actions) => actions.as_slice(),
        _ => &[],
    });
    actions.filter_map(|action| match action {
        Action::Output { port, max_len } => Some((*port, *max_len)),
        _ => None,
    })
}

/// The ports that instructions send to.
pub(super) fn ports_of(instructions: &[Instruction]) -> impl Iterator<Item = PortNo> + '_ {
    outputs(instructions).map(|(port, _)| port)
}
