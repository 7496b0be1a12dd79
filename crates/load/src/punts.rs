//! The rules by which packets go up: with OpenFlow 1.3, a packet-in names the rule that sent it.
//!
//! In: flow mods of the controller. Out: for each port, the cookie of the newest rule that sends packets of the port to the controller. A
//! rule that looks at more than the port and the tag is left out. Without such a rule, the cookie is 0.

use flow::{Action, Field, Instruction, Match, MatchEntry, PortNo};
use openflow::message::FLOW_ADD;
use openflow::{Body, Message};

use crate::traffic::PORTS;

/// The cookies of these rules, by port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Punts([u64; PORTS as usize]);

impl Punts {
    /// The cookie for packets of this port.
    #[inline]
    pub(crate) fn of(&self, port: u16) -> u64 {
        self.0.get(usize::from(port).wrapping_sub(1)).copied().unwrap_or(0)
    }

    /// A flow mod came. One that is malformed sends nothing up.
    pub(crate) fn on_flow_mod(&mut self, bytes: &[u8]) {
        let Ok(Message { body: Body::FlowMod(it), .. }) = Message::decode(bytes) else { return };
        if it.command != FLOW_ADD || !sends_up(&it.instructions) || !is_for_ports(&it.matching) {
            return;
        }
        match it.matching.get(Field::InPort) {
            None => self.0.fill(it.cookie),
            Some((port, _)) => {
                let place = usize::try_from(port).ok().and_then(|port| port.checked_sub(1));
                place.and_then(|place| self.0.get_mut(place)).into_iter().for_each(|at| *at = it.cookie);
            }
        }
    }
}

fn sends_up(instructions: &[Instruction]) -> bool {
    instructions.iter().any(|instruction| match instruction {
        Instruction::ApplyActions(actions) | Instruction::WriteActions(actions) => {
            actions.iter().any(|action| matches!(action, Action::Output { port: PortNo::CONTROLLER, .. }))
        }
        _ => false,
    })
}

fn is_for_ports(matching: &Match) -> bool {
    let is_usual =
        |entry: &MatchEntry| matches!(entry, MatchEntry::Field { field: Field::InPort | Field::VlanVid, .. });
    matching.entries().iter().all(is_usual)
}

#[cfg(test)]
mod tests {
    use super::*;
    use openflow::Version;
    use openflow::message::FlowModFields;

    fn flow_mod(cookie: u64, matching: Match, to: PortNo) -> Vec<u8> {
        let apply = Instruction::ApplyActions(vec![Action::output(to)]);
        let body =
            Body::FlowMod(FlowModFields { cookie, ..FlowModFields::default() }.with(matching, vec![apply]));
        let mut bytes = Vec::new();
        Message { version: Version::V1_3, xid: 1, body }.encode(&mut bytes).unwrap();
        bytes
    }

    fn check(matching: Match, to: PortNo, expected: [u64; 4]) {
        let mut punts = Punts([1, 2, 3, 4]);
        punts.on_flow_mod(&flow_mod(9, matching, to));
        assert_eq!(punts.0, expected);
    }

    #[test]
    fn what_cannot_be_read_and_what_sends_nothing_up_changes_nothing() {
        let mut punts = Punts([1, 2, 3, 4]);
        let whole = flow_mod(9, Match::any(), PortNo::CONTROLLER);
        (0..whole.len()).for_each(|end| punts.on_flow_mod(&whole[..end]));
        assert_eq!(punts.0, [1, 2, 3, 4]);
        check(Match::any(), PortNo(2), [1, 2, 3, 4]);
        let to_one = Match::any().with(Field::EthDst, 7u64);
        check(to_one, PortNo::CONTROLLER, [1, 2, 3, 4]);
        check(Match::any().with(Field::InPort, PortNo(9)), PortNo::CONTROLLER, [1, 2, 3, 4]);
        assert_eq!((punts.of(0), punts.of(5)), (0, 0));
    }

    #[test]
    fn a_rule_for_all_packets_or_those_of_a_port_gives_them_its_cookie() {
        check(Match::any(), PortNo::CONTROLLER, [9, 9, 9, 9]);
        let of_port = Match::any().with(Field::InPort, PortNo(3)).with(Field::VlanVid, 0u16);
        check(of_port, PortNo::CONTROLLER, [1, 2, 9, 4]);
    }
}
