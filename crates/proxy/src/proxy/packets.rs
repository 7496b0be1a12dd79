//! Packets that wait for the controller, and how much of a packet it wants to see.
//!
//! In: packets with the ids that the model gave out. Out: the packets again, once. The model decides which ids are good. So a packet is
//! forgotten only when its place is given out again, or when its time is over and its memory is needed.

use flow::{Action, Instruction, PortNo};
use openflow::Version;
use profile::model::slot_of;
use std::collections::{HashMap, VecDeque};

/// How many cookies are remembered with the length that their rule asks for. Above it, the general length counts.
const COOKIES_MAX: usize = 65_536;
/// OFPCML_NO_BUFFER.
pub(super) const WHOLE_PACKET: u16 = 0xffff;

/// How much memory the packets may have together. Above it, the controller gets the whole packet in its packet-in, without a buffer id.
const KEPT_MAX_BYTES: usize = 32 << 20;
/// How many places of packets that were used may lie between others before they are taken out.
const GAPS_MAX: usize = 1024;

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
#[derive(Debug)]
pub(super) struct KeptPackets {
    slots: Vec<Option<KeptPacket>>,
    /// When each was kept, the oldest first. Some are not there any more.
    order: VecDeque<(u64, u32)>,
    bytes: usize,
    life_ns: u64,
}

impl KeptPackets {
    /// No packet. The target keeps each for this time.
    pub(super) fn new(life_ns: u64) -> Self {
        KeptPackets { slots: Vec::new(), order: VecDeque::new(), bytes: 0, life_ns }
    }

    /// Whether there is room for a packet-in of which the memory has so many bytes. What had its place before is forgotten, and packets whose
    /// time is over, if need be.
    pub(super) fn has_room(&mut self, buffer: u32, bytes: usize, now_ns: u64) -> bool {
        self.remove(slot_of(buffer));
        while self.bytes + bytes > KEPT_MAX_BYTES {
            let Some((since_ns, oldest)) = self.order.front().copied() else { return false };
            let is_there = self.is_there(oldest);
            if is_there && since_ns.saturating_add(self.life_ns) > now_ns {
                return false;
            }
            self.order.pop_front();
            if is_there {
                self.remove(slot_of(oldest));
            }
        }
        true
    }

    /// Keeps the packet of a packet-in.
    pub(super) fn keep(
        &mut self,
        buffer: u32,
        in_port: PortNo,
        message: Vec<u8>,
        data_at: usize,
        now_ns: u64,
    ) {
        let slot = slot_of(buffer);
        if self.slots.len() <= slot {
            self.slots.resize_with(slot + 1, || None);
        }
        self.remove(slot);
        self.bytes += message.capacity();
        self.slots[slot] = Some(KeptPacket { buffer, in_port, message, data_at });
        self.order.push_back((now_ns, buffer));
        if self.order.len() > 2 * self.slots.len() + GAPS_MAX {
            let mut order = std::mem::take(&mut self.order);
            order.retain(|(_, buffer)| self.is_there(*buffer));
            self.order = order;
        }
    }

    /// Gives the packet of this id out.
    pub(super) fn take(&mut self, buffer: u32) -> Option<KeptPacket> {
        if self.is_there(buffer) { self.remove(slot_of(buffer)) } else { None }
    }

    fn is_there(&self, buffer: u32) -> bool {
        matches!(self.slots.get(slot_of(buffer)), Some(Some(kept)) if kept.buffer == buffer)
    }

    fn remove(&mut self, slot: usize) -> Option<KeptPacket> {
        let kept = self.slots.get_mut(slot)?.take()?;
        self.bytes -= kept.message.capacity();
        Some(kept)
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
        let mut kept = KeptPackets::new(10);
        let (old, new) = (1 << 16 | 3, 2 << 16 | 3);
        kept.keep(old, PortNo(1), b"..old".to_vec(), 2, 0);
        kept.keep(new, PortNo(1), b"..new".to_vec(), 2, 0);
        assert!(kept.take(old).is_none());
        assert_eq!(kept.take(new).unwrap().data(), b"new");
        assert!(kept.take(new).is_none() && kept.take(7).is_none());
        assert_eq!(kept.bytes, 0);
    }

    #[test]
    fn the_memory_of_all_packets_is_bounded_and_old_ones_give_theirs_back() {
        const LONG: usize = 65_000;
        let mut kept = KeptPackets::new(10);
        let fitting = KEPT_MAX_BYTES / LONG;
        let keep = |kept: &mut KeptPackets, buffer: usize, now_ns| {
            let has_room = kept.has_room(buffer as u32, LONG, now_ns);
            if has_room {
                kept.keep(buffer as u32, PortNo(1), vec![0; LONG], 0, now_ns);
            }
            has_room
        };
        assert!((0..fitting).all(|buffer| keep(&mut kept, buffer, buffer as u64 / 100)));
        assert!(!keep(&mut kept, fitting, 9), "it is full");
        assert!(keep(&mut kept, 7, 9), "a packet of the same place makes room");
        assert!(keep(&mut kept, fitting, 10), "the time of the oldest is over");
        assert!(kept.take(0).is_none() && kept.take(7).is_some() && kept.bytes <= KEPT_MAX_BYTES);
        // Places of packets that were used do not pile up.
        for step in 0..10 * GAPS_MAX {
            let buffer = step << 16 | 7;
            keep(&mut kept, buffer, 10);
            assert!(kept.take(buffer as u32).is_some());
        }
        assert!(kept.order.len() <= 2 * kept.slots.len() + GAPS_MAX);
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
