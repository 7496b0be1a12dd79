//! What actions make of one packet: how often they send it, and where.
//!
//! A switch executes every action of a command, and a command has room for thousands of outputs. So the kernel bounds
//! the actions of each command, and the packets that they make of one packet, groups included.
//!
//! In: actions, instructions and buckets that were parsed without error. Out: counts, and whether they exceed a limit.
//! It never looks up groups or tables that an action names: the caller adds their counts.

use crate::excess::{Excess, TooMany};
use abi::command::{FlowMod, GroupMod};
use flow::PortNo;
use flow::canonical::{
    RawAction, UsualFields, actions_raw, buckets_raw, instructions_raw, one_applied_output,
};
use flow::reach::{Way, way_of};

/// The largest number of actions in a rule or packet-out: an output to each port of the largest usual switch, or a few
/// dozen with rewrites. An app that needs more uses a group.
pub const MAX_ACTIONS: u32 = 256;

/// The largest number of actions in all buckets of a group: 256 buckets with four actions each.
pub const MAX_GROUP_ACTIONS: u32 = 1_024;

/// The largest number of groups in a rule or packet-out: one that forwards, one that mirrors, and two more.
pub const MAX_GROUPS: u32 = 4;

/// The largest number of packets that a rule, a group or a packet-out makes of one packet, without flooded packets.
pub const MAX_OUTPUTS: u32 = 1_024;

/// How often one packet may be flooded, and how often it may go to the tables.
pub const MAX_FLOODS: u32 = 4;

/// How often one packet may go to the controller. Each is a message to the node, so one rule with thousands of them
/// could end the session.
pub const MAX_CONTROLLERS: u32 = 4;

/// How often actions send a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Fanout {
    /// All actions.
    pub actions: u32,
    /// Outputs to one port.
    pub ports: u32,
    /// Outputs to several ports: FLOOD, ALL, NORMAL, and unknown actions.
    pub floods: u32,
    /// Outputs to the controller.
    pub controllers: u32,
    /// Outputs to the first table.
    pub tables: u32,
    /// Group actions. The group's own actions are not counted here.
    pub groups: u32,
}

/// `ofp_group_type` OFPGT_ALL (1.3.5, 7.3.4.2).
pub(crate) const GROUP_ALL: u8 = 0;

/// The parts of a typical flow mod, parsed once for all checks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UsualParts {
    /// Its match, if it has only these fields.
    pub fields: Option<UsualFields>,
    /// The port, if its instructions are one output that is applied.
    pub output: Option<PortNo>,
}

impl UsualParts {
    /// The actions of a flow mod.
    #[inline]
    pub fn read(it: &FlowMod<'_>) -> UsualParts {
        UsualParts { fields: UsualFields::read(it.matching), output: one_applied_output(it.instructions) }
    }
}

impl Fanout {
    /// An action list.
    pub fn of_actions(actions: &[u8]) -> Fanout {
        let mut fanout = Fanout::default();
        actions_raw(actions).map_while(Result::ok).for_each(|raw| fanout.count(raw));
        fanout
    }

    /// The instructions of a rule.
    pub fn of_instructions(instructions: &[u8]) -> Fanout {
        let lists = instructions_raw(instructions).map_while(Result::ok).filter_map(|raw| raw.action_bytes());
        let all = lists.map(Fanout::of_actions);
        all.fold(Fanout::default(), Fanout::and)
    }

    /// The buckets of a group. In type ALL, a packet takes every bucket. In other types it takes one, and the largest
    /// of each number counts.
    pub fn of_group(it: &GroupMod<'_>) -> Fanout {
        let buckets = buckets_raw(it.buckets).map_while(Result::ok);
        let each = buckets.map(|bucket| Fanout::of_actions(bucket.actions));
        let together = |sum: Fanout, one: Fanout| {
            let actions = sum.actions.saturating_add(one.actions);
            if it.group_type == GROUP_ALL { sum.and(one) } else { Fanout { actions, ..sum.or(one) } }
        };
        each.fold(Fanout::default(), together)
    }

    /// The sum of both.
    #[must_use]
    pub fn and(self, other: Fanout) -> Fanout {
        self.joined(other, u32::saturating_add)
    }

    /// The larger of each number.
    #[must_use]
    pub fn or(self, other: Fanout) -> Fanout {
        self.joined(other, u32::max)
    }

    /// Each number, multiplied by `count`.
    #[must_use]
    pub fn times(self, count: u32) -> Fanout {
        self.joined(self, |number, _| number.saturating_mul(count))
    }

    fn joined(self, other: Fanout, join: impl Fn(u32, u32) -> u32) -> Fanout {
        Fanout {
            actions: join(self.actions, other.actions),
            ports: join(self.ports, other.ports),
            floods: join(self.floods, other.floods),
            controllers: join(self.controllers, other.controllers),
            tables: join(self.tables, other.tables),
            groups: join(self.groups, other.groups),
        }
    }

    /// Checks that a rule or packet-out stays within the limits of one command.
    pub fn check_command(&self) -> Result<(), Excess> {
        if self.actions > MAX_ACTIONS {
            return Err(Excess::TooMany(TooMany::Actions(self.actions, MAX_ACTIONS)));
        }
        if self.groups > MAX_GROUPS { Err(Excess::TooMany(TooMany::Groups(MAX_GROUPS))) } else { Ok(()) }
    }

    /// Checks that one packet becomes no more than allowed, with all groups.
    pub fn check_all(&self) -> Result<(), Excess> {
        if self.controllers > MAX_CONTROLLERS {
            return Err(Excess::TooMany(TooMany::ToController(MAX_CONTROLLERS)));
        }
        if self.floods.max(self.tables) > MAX_FLOODS {
            return Err(Excess::TooMany(TooMany::Floods(MAX_FLOODS)));
        }
        if self.ports > MAX_OUTPUTS { Err(Excess::TooMany(TooMany::Outputs(MAX_OUTPUTS))) } else { Ok(()) }
    }

    /// How many packets one packet becomes at a switch with this many ports, whose tables make `by_tables` of one
    /// packet.
    pub fn packets(&self, ports: u64, by_tables: u64) -> u64 {
        let (floods, tables) = (u64::from(self.floods) * ports, u64::from(self.tables) * by_tables);
        u64::from(self.ports) + u64::from(self.controllers) + floods + tables
    }

    fn count(&mut self, raw: RawAction<'_>) {
        self.actions += 1;
        if raw.sends_nothing() {
            return;
        }
        let way = match raw.output() {
            Some((port, _)) => Some(Way::Port(port)),
            None => raw.read().map_or(Some(Way::Anywhere), |action| way_of(&action)),
        };
        match way {
            Some(Way::Port(PortNo::CONTROLLER)) => self.controllers += 1,
            Some(Way::Port(PortNo::FLOOD | PortNo::ALL | PortNo::NORMAL) | Way::Anywhere) => self.floods += 1,
            Some(Way::Port(PortNo::TABLE) | Way::Table(_)) => self.tables += 1,
            Some(Way::Port(_)) => self.ports += 1,
            Some(Way::Group(_)) => self.groups += 1,
            None => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flow::canonical::{one_output, write_actions, write_instructions};
    use flow::text::{parse_actions, parse_instructions};

    fn actions(text: &str) -> Vec<u8> {
        let mut bytes = Vec::new();
        write_actions(&parse_actions(text).unwrap(), &mut bytes).unwrap();
        bytes
    }

    fn instructions(text: &str) -> Vec<u8> {
        let mut bytes = Vec::new();
        write_instructions(&parse_instructions(text).unwrap(), &mut bytes).unwrap();
        bytes
    }

    #[test]
    fn each_way_counts_as_what_it_is() {
        let all =
            "output:1,in_port,local,flood,all,normal,controller,output:TABLE,group:3,dec_ttl,set_queue:1";
        let expected = Fanout { actions: 11, ports: 3, floods: 3, controllers: 1, tables: 1, groups: 1 };
        assert_eq!(Fanout::of_actions(&actions(all)), expected);
        let rule =
            Fanout::of_instructions(&instructions("output:1,flood,write_actions(controller),goto_table:3"));
        assert_eq!(rule, Fanout { actions: 3, ports: 1, floods: 1, controllers: 1, ..Fanout::default() });
        let unknown = Fanout::of_actions(&actions("experimenter(0x12345678,0000000000000000)"));
        assert_eq!((unknown.floods, unknown.ports), (1, 0));
    }

    #[test]
    fn one_output_is_known_by_its_bytes_and_nothing_else_is() {
        assert_eq!(one_output(&actions("output:7")), Some(PortNo(7)));
        assert_eq!(one_applied_output(&instructions("output:7")), Some(PortNo(7)));
        for other in ["", "output:7,output:7", "group:7", "dec_ttl", "set_field:1->metadata"] {
            assert_eq!(one_output(&actions(other)), None, "{other}");
        }
        for other in ["", "output:7,goto_table:1", "write_actions(output:7)", "meter:1,output:7", "group:7"] {
            assert_eq!(one_applied_output(&instructions(other)), None, "{other}");
        }
    }
}
