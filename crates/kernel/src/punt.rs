//! Limits the packet-ins per second of a switch and of each of its ports, and decides which to drop first.
//!
//! ```text
//!   packet-in ──> Class: control (LLDP, ARP, DHCP …) or data ──> Punts::take(now) ──> handed on, or dropped and counted
//! ```
//!
//! A host that floods uses up its port's budget. Then the kernel drops its packets early, at little cost. The zones,
//! the other ports and the other switches are unaffected. A quarter of each budget is reserved for control packets, so
//! that links and addresses are still found while data is dropped. This limit never affects port status, flow-removed,
//! switch-up and switch-down events.
//!
//! In: a packet-in's port and frame, and the time. Out: yes or no. Never allocates but for a port that it sees for the first time.

use crate::quota::Bucket;
use flow::PortNo;
use std::collections::BTreeMap;

/// Ports of one switch that have their own budget. All further ports share one budget.
pub const MAX_PORTS: usize = 1_024;

/// The part of each budget that is reserved for control packets: one in this many.
const KEPT_FOR_CONTROL: u32 = 4;

/// Packet-ins per second; `None`: no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PuntLimits {
    /// For one switch.
    pub per_switch_per_s: Option<u32>,
    /// For one port.
    pub per_port_per_s: Option<u32>,
}

impl PuntLimits {
    /// Whether there is any limit.
    #[inline]
    pub const fn is_none(&self) -> bool {
        self.per_switch_per_s.is_none() && self.per_port_per_s.is_none()
    }
}

/// The class of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Packets of the network's own protocols, which find links, addresses and trees.
    Control,
    /// All other packets, and those of an unknown kind.
    Data,
}

/// EtherTypes of control packets: ARP, LLDP, its older form BDDP (which controllers use across switches of others), and
/// EAPOL.
const CONTROL_TYPES: [u16; 4] = [0x0806, 0x88cc, 0x8942, 0x888e];

/// Ports of DHCP, over IPv4 and IPv6.
const DHCP_PORTS: [u16; 4] = [67, 68, 546, 547];

/// The offset of the EtherType, and the length of a VLAN tag.
const TYPE_AT: usize = 12;
const TAG_LEN: usize = 4;

/// The class of a frame, by its first bytes. Only the outermost tag is skipped.
pub fn class_of(frame: &[u8]) -> Class {
    let short =
        |at: usize| frame.get(at..).and_then(|rest| rest.first_chunk()).map(|it| u16::from_be_bytes(*it));
    let byte = |at: usize| frame.get(at).copied();
    let tagged = matches!(short(TYPE_AT), Some(0x8100 | 0x88a8));
    let type_at = if tagged { TYPE_AT + TAG_LEN } else { TYPE_AT };
    let (Some(ether_type), ip) = (short(type_at), type_at + 2) else { return Class::Data };
    let is_control = match ether_type {
        0x0800 => {
            // The header's length is in words of four bytes.
            let header = byte(ip).map_or(0, |first| usize::from(first & 0xf) * 4);
            byte(ip + 9) == Some(17) && short(ip + header + 2).is_some_and(|port| DHCP_PORTS.contains(&port))
        }
        0x86dd => match byte(ip + 6) {
            Some(17) => short(ip + 42).is_some_and(|port| DHCP_PORTS.contains(&port)),
            // Neighbour discovery: router and neighbour solicitations and advertisements.
            Some(58) => matches!(byte(ip + 40), Some(133..=136)),
            _ => false,
        },
        // Lengths, not types: spanning tree and similar protocols, which use the bridges' group addresses.
        length if length < 0x600 => frame.starts_with(&[0x01, 0x80, 0xc2]),
        other => CONTROL_TYPES.contains(&other),
    };
    if is_control { Class::Control } else { Class::Data }
}

/// The dropped packet-ins of a switch since it connected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PuntCounters {
    /// Control packets.
    pub control_dropped: u64,
    /// Data packets.
    pub data_dropped: u64,
    /// Packets of either class that did not reach an app, because its queue was full.
    pub unheard: u64,
}

/// The budgets of one switch.
#[derive(Clone, Debug, Default)]
pub struct Punts {
    switch: Option<Bucket>,
    ports: BTreeMap<PortNo, Bucket>,
    other_ports: Option<Bucket>,
    counters: PuntCounters,
}

impl Punts {
    /// Whether to accept one more packet-in.
    pub fn take(&mut self, limits: PuntLimits, in_port: PortNo, frame: &[u8], now_ms: u64) -> bool {
        let class = class_of(frame);
        // The port comes first: what exceeds its budget is not charged to the switch.
        let taken =
            self.take_of_port(limits, in_port, class, now_ms) && self.take_of_switch(limits, class, now_ms);
        match class {
            _ if taken => {}
            Class::Control => self.counters.control_dropped += 1,
            Class::Data => self.counters.data_dropped += 1,
        }
        taken
    }

    /// An app misses a packet-in because its queue is full.
    pub(crate) fn on_unheard(&mut self) {
        self.counters.unheard += 1;
    }

    /// The numbers of dropped packets.
    pub fn counters(&self) -> PuntCounters {
        self.counters
    }

    fn take_of_port(&mut self, limits: PuntLimits, in_port: PortNo, class: Class, now_ms: u64) -> bool {
        let Some(per_s) = limits.per_port_per_s else { return true };
        let new = || Bucket::full(per_s, now_ms);
        let bucket = if self.ports.len() < MAX_PORTS || self.ports.contains_key(&in_port) {
            self.ports.entry(in_port).or_insert_with(new)
        } else {
            self.other_ports.get_or_insert_with(new)
        };
        take(bucket, per_s, class, now_ms)
    }

    fn take_of_switch(&mut self, limits: PuntLimits, class: Class, now_ms: u64) -> bool {
        let Some(per_s) = limits.per_switch_per_s else { return true };
        take(self.switch.get_or_insert_with(|| Bucket::full(per_s, now_ms)), per_s, class, now_ms)
    }
}

fn take(bucket: &mut Bucket, per_s: u32, class: Class, now_ms: u64) -> bool {
    match class {
        Class::Control => bucket.take(per_s, now_ms),
        Class::Data => bucket.take_above(per_s, per_s / KEPT_FOR_CONTROL, now_ms),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(rest: &[u8]) -> Vec<u8> {
        [&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2][..], rest].concat()
    }

    fn udp(version: u8, to: u8) -> Vec<u8> {
        let mut bytes = if version == 4 {
            [&[8, 0, 0x45][..], &[0; 8], &[17], &[0; 10]].concat()
        } else {
            [&[0x86, 0xdd, 0x60][..], &[0; 5], &[17], &[0; 33]].concat()
        };
        bytes.extend([0, 9, 0, to]);
        frame(&bytes)
    }

    #[test]
    fn what_cannot_be_told_is_data() {
        for cut in [&[][..], &[0; 11], &[0; 12], &[0; 13], &[8], &[8, 0], &[0x81, 0, 0, 1]] {
            assert_eq!(class_of(cut), Class::Data);
            assert_eq!(class_of(&frame(cut)), Class::Data, "{cut:?}");
        }
    }

    #[test]
    fn control_packets_are_known_by_their_first_bytes() {
        let check = |bytes: &[u8], class| assert_eq!(class_of(bytes), class, "{bytes:02x?}");
        check(&frame(&[0x88, 0xcc]), Class::Control);
        check(&frame(&[8, 6]), Class::Control);
        check(&frame(&[0x81, 0, 0, 5, 8, 6]), Class::Control);
        check(&frame(&[0x88, 0x8e]), Class::Control);
        check(&[1, 0x80, 0xc2, 0, 0, 0, 2, 0, 0, 0, 0, 2, 0, 38, 0x42], Class::Control);
        check(&udp(4, 67), Class::Control);
        check(&udp(6, 35), Class::Data);
        check(&udp(4, 53), Class::Data);
        check(&frame(&[8, 0, 0x45]), Class::Data);
        check(&frame(&[0x88, 0x47]), Class::Data);
    }

    #[test]
    fn a_flood_of_one_port_leaves_the_others_theirs() {
        let limits = PuntLimits { per_switch_per_s: Some(100), per_port_per_s: Some(8) };
        let (mut punts, data) = (Punts::default(), frame(&[8, 0]));
        let taken = (0..1_000).filter(|_| punts.take(limits, PortNo(1), &data, 0)).count();
        assert_eq!(taken, 6, "a quarter is kept for control packets");
        assert!(punts.take(limits, PortNo(2), &data, 0));
        assert!(punts.take(limits, PortNo(1), &frame(&[8, 6]), 0));
        assert_eq!(punts.counters(), PuntCounters { control_dropped: 0, data_dropped: 994, unheard: 0 });
        assert!(punts.take(limits, PortNo(1), &data, 1_000));
    }

    #[test]
    fn control_packets_have_a_limit_too() {
        let limits = PuntLimits { per_switch_per_s: Some(4), per_port_per_s: None };
        let (mut punts, arp) = (Punts::default(), frame(&[8, 6]));
        assert_eq!((0..9).filter(|_| punts.take(limits, PortNo(1), &arp, 0)).count(), 4);
        assert_eq!(punts.counters(), PuntCounters { control_dropped: 5, data_dropped: 0, unheard: 0 });
    }

    #[test]
    fn ports_without_number_share_one_budget() {
        let limits = PuntLimits { per_switch_per_s: None, per_port_per_s: Some(4) };
        let (mut punts, arp) = (Punts::default(), frame(&[8, 6]));
        let ports = 1..=MAX_PORTS as u32 + 100;
        let taken = ports.filter(|port| punts.take(limits, PortNo(*port), &arp, 0)).count();
        assert_eq!((taken, punts.ports.len()), (MAX_PORTS + 4, MAX_PORTS));
    }
}
