//! What one packet becomes: how often actions send it, and where to.
//!
//! In: actions, instructions and buckets that were found readable. Out: numbers. Never looks into groups or tables that they name, and never
//! judges.

use flow::PortNo;
use flow::canonical::{RawAction, actions_raw, buckets_raw, instructions_raw};
use flow::reach::{Way, way_of};

/// How often actions send a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Fanout {
    /// Actions, whatever they do.
    pub actions: u32,
    /// Out of one port each.
    pub ports: u32,
    /// Out of every port, or of as many as the switch likes: FLOOD, ALL, NORMAL, and what is not understood.
    pub floods: u32,
    /// To the controller.
    pub controllers: u32,
    /// Into a table from the start.
    pub tables: u32,
}

/// Where an applied output's port is in an instruction that has nothing else, and how long that is.
const APPLY_ONE_OUTPUT: [u8; 4] = [0, 4, 0, 24];
const ONE_OUTPUT: [u8; 4] = [0, 0, 0, 16];

/// The port, if the instructions are one output that is applied, as in most rules.
#[inline]
pub(crate) fn one_applied_output(instructions: &[u8]) -> Option<PortNo> {
    match instructions.first_chunk() {
        Some(&APPLY_ONE_OUTPUT) => one_output(instructions.get(8..)?),
        _ => None,
    }
}

/// The port, if the actions are one output, as in most packet-outs.
#[inline]
pub(crate) fn one_output(actions: &[u8]) -> Option<PortNo> {
    let (action, _) = actions.split_first_chunk::<8>().filter(|_| actions.len() == 16)?;
    let [kind_high, kind_low, length_high, length_low, port @ ..] = *action;
    ([kind_high, kind_low, length_high, length_low] == ONE_OUTPUT).then(|| PortNo(u32::from_be_bytes(port)))
}

impl Fanout {
    /// Of a list of actions.
    pub fn of_actions(actions: &[u8]) -> Fanout {
        let mut fanout = Fanout::default();
        actions_raw(actions).map_while(Result::ok).for_each(|raw| fanout.count(raw));
        fanout
    }

    /// Of a rule.
    pub fn of_instructions(instructions: &[u8]) -> Fanout {
        let lists =
            instructions_raw(instructions).map_while(Result::ok).filter(|raw| raw.actions().is_some());
        let all = lists.map(|raw| Fanout::of_actions(raw.bytes.get(8..).unwrap_or_default()));
        all.fold(Fanout::default(), Fanout::and)
    }

    /// Of all buckets of a group.
    pub fn of_buckets(buckets: &[u8]) -> Fanout {
        let buckets = buckets_raw(buckets).map_while(Result::ok);
        buckets.map(|bucket| Fanout::of_actions(bucket.actions)).fold(Fanout::default(), Fanout::and)
    }

    /// Both.
    #[must_use]
    pub fn and(self, other: Fanout) -> Fanout {
        Fanout {
            actions: self.actions.saturating_add(other.actions),
            ports: self.ports.saturating_add(other.ports),
            floods: self.floods.saturating_add(other.floods),
            controllers: self.controllers.saturating_add(other.controllers),
            tables: self.tables.saturating_add(other.tables),
        }
    }

    fn count(&mut self, raw: RawAction<'_>) {
        self.actions += 1;
        let way = match raw.output() {
            Some((port, _)) => Some(Way::Port(port)),
            None => raw.read().map_or(Some(Way::Anywhere), |action| way_of(&action)),
        };
        match way {
            Some(Way::Port(PortNo::CONTROLLER)) => self.controllers += 1,
            Some(Way::Port(PortNo::FLOOD | PortNo::ALL | PortNo::NORMAL) | Way::Anywhere) => self.floods += 1,
            Some(Way::Port(PortNo::TABLE) | Way::Table(_)) => self.tables += 1,
            Some(Way::Port(_)) => self.ports += 1,
            // What a group does is counted where it is known.
            Some(Way::Group(_)) | None => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flow::canonical::{write_actions, write_instructions};
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
        let expected = Fanout { actions: 11, ports: 3, floods: 3, controllers: 1, tables: 1 };
        assert_eq!(Fanout::of_actions(&actions(all)), expected);
        let rule =
            Fanout::of_instructions(&instructions("output:1,flood,write_actions(controller),goto_table:3"));
        assert_eq!(rule, Fanout { actions: 3, ports: 1, floods: 1, controllers: 1, tables: 0 });
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
