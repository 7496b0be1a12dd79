//! Packets that wait for the controller, and how much of a packet it wants to see.
//!
//! In: packets with the ids that the model gave out. Out: the packets again, once. The model decides which ids are good; so a packet is
//! only forgotten when its place is given out again.

use flow::{Action, Instruction, PortNo};
use openflow::Version;
use profile::model::slot_of;
use std::collections::HashMap;

/// How many cookies are remembered with the length that their rule asks for. Above it, the general length counts.
const COOKIES_MAX: usize = 65_536;
/// OFPCML_NO_BUFFER.
pub(super) const WHOLE_PACKET: u16 = 0xffff;

/// A packet that waits.
#[derive(Debug)]
pub(super) struct KeptPacket {
    buffer: u32,
    /// Where the packet came in.
    pub(super) in_port: PortNo,
    /// The packet-in.
    message: Vec<u8>,
    data_at: usize,
}

impl KeptPacket {
    /// The packet itself.
    pub(super) fn data(&self) -> &[u8] {
        self.message.get(self.data_at..).unwrap_or_default()
    }
}

/// The packets that wait. Their number is bounded by the profile, and 65,536.
#[derive(Debug, Default)]
pub(super) struct KeptPackets {
    slots: Vec<Option<KeptPacket>>,
}

impl KeptPackets {
    /// Keeps the packet of a packet-in.
    pub(super) fn keep(&mut self, buffer: u32, in_port: PortNo, message: Vec<u8>, data_at: usize) {
        let slot = slot_of(buffer);
        if self.slots.len() <= slot {
            self.slots.resize_with(slot + 1, || None);
        }
        self.slots[slot] = Some(KeptPacket { buffer, in_port, message, data_at });
    }

    /// Gives the packet of this id out.
    pub(super) fn take(&mut self, buffer: u32) -> Option<KeptPacket> {
        let slot = self.slots.get_mut(slot_of(buffer))?;
        slot.take_if(|kept| kept.buffer == buffer)
    }
}

/// How many bytes of a packet the controller wants.
#[derive(Debug, Default)]
pub(super) struct PacketInLengths {
    /// By OFPT_SET_CONFIG. `None`: what the target does by itself.
    pub(super) miss_send_len: Option<u16>,
    by_cookie: HashMap<u64, u16>,
    /// 1.0 has no cookie in a packet-in: the last rule counts.
    by_action: Option<u16>,
}

impl PacketInLengths {
    /// The controller has added or changed a rule.
    pub(super) fn on_rule(&mut self, cookie: u64, instructions: &[Instruction]) {
        let Some(length) = instructions.iter().find_map(to_controller) else { return };
        self.by_action = Some(length);
        if self.by_cookie.len() < COOKIES_MAX || self.by_cookie.contains_key(&cookie) {
            self.by_cookie.insert(cookie, length);
        }
    }

    /// The length for a packet-in of this reason, by the rule with this cookie.
    pub(super) fn wanted(&self, version: Version, reason: u8, cookie: u64) -> Option<u16> {
        const REASON_NO_MATCH: u8 = 0;
        const REASON_ACTION: u8 = 1;
        let of_rule = match (version, reason) {
            (Version::V1_0, REASON_ACTION) => self.by_action,
            (Version::V1_3, REASON_NO_MATCH | REASON_ACTION) => self.by_cookie.get(&cookie).copied(),
            _ => None,
        };
        of_rule.or(self.miss_send_len)
    }
}

/// How many bytes an instruction sends to the controller.
fn to_controller(instruction: &Instruction) -> Option<u16> {
    let (Instruction::ApplyActions(actions) | Instruction::WriteActions(actions)) = instruction else {
        return None;
    };
    actions.iter().find_map(|action| match action {
        Action::Output { port: PortNo::CONTROLLER, max_len } => Some(*max_len),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_is_given_out_once_and_not_under_an_older_id() {
        let mut kept = KeptPackets::default();
        let (old, new) = (1 << 16 | 3, 2 << 16 | 3);
        kept.keep(old, PortNo(1), b"..old".to_vec(), 2);
        kept.keep(new, PortNo(1), b"..new".to_vec(), 2);
        assert!(kept.take(old).is_none());
        assert_eq!(kept.take(new).unwrap().data(), b"new");
        assert!(kept.take(new).is_none() && kept.take(7).is_none());
    }

    #[test]
    fn the_length_is_that_of_the_rule_and_then_that_of_the_configuration() {
        let to = |max_len| {
            vec![Instruction::ApplyActions(vec![Action::Output { port: PortNo::CONTROLLER, max_len }])]
        };
        let mut lengths = PacketInLengths::default();
        assert_eq!(lengths.wanted(Version::V1_3, 0, 5), None);
        lengths.miss_send_len = Some(200);
        lengths.on_rule(5, &to(64));
        lengths.on_rule(6, &[Instruction::ClearActions]);
        assert_eq!([5, 6].map(|cookie| lengths.wanted(Version::V1_3, 0, cookie)), [Some(64), Some(200)]);
        assert_eq!([0, 1].map(|reason| lengths.wanted(Version::V1_0, reason, 0)), [Some(200), Some(64)]);
    }
}
