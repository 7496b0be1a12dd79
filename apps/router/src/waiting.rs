//! Packets that wait until a next hop's Ethernet address is known.
//!
//! In: packets, next hops that became known, the time. Out: whom to ask for, which packets go on, and which are given up. It writes no frame.

use crate::settings::NextHop;
use burnet_sdk::view::ConnectPoint;
use std::collections::BTreeMap;

/// The most next hops that are asked for at one time. A packet to a further one is dropped: its sender repeats it.
pub(crate) const ASKED_MAX: usize = 256;

/// The most packets that wait for one next hop. A further one is dropped.
pub(crate) const PER_HOP_MAX: usize = 8;

/// The longest frame that waits: a jumbo frame. A longer one is dropped. All waiting frames together then have at most 19 MB.
pub(crate) const FRAME_BYTES_MAX: usize = 9_216;

/// How often a next hop is asked for, a second apart (RFC 4861, 10).
const ATTEMPTS: u32 = 3;

/// A packet that waits, as it came in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Waiting {
    pub(crate) at: ConnectPoint,
    pub(crate) frame: Vec<u8>,
}

#[derive(Debug, Default)]
struct Asked {
    attempts: u32,
    packets: Vec<Waiting>,
}

/// The next hops that are asked for.
#[derive(Debug, Default)]
pub(crate) struct WaitingPackets(BTreeMap<(usize, std::net::IpAddr), Asked>);

impl WaitingPackets {
    /// A packet waits for this next hop. Whether the hop must be asked for now.
    pub(crate) fn add(&mut self, next: NextHop, packet: Waiting) -> bool {
        if packet.frame.len() > FRAME_BYTES_MAX {
            return false;
        }
        let key = (next.interface, next.neighbour);
        let is_new = !self.0.contains_key(&key);
        if is_new && self.0.len() >= ASKED_MAX {
            return false;
        }
        let asked = self.0.entry(key).or_default();
        if asked.packets.len() < PER_HOP_MAX {
            asked.packets.push(packet);
        }
        asked.attempts = asked.attempts.max(1);
        is_new
    }

    /// A next hop is known. The packets that waited for it.
    pub(crate) fn take(&mut self, next: NextHop) -> Vec<Waiting> {
        self.0.remove(&(next.interface, next.neighbour)).map_or_else(Vec::new, |asked| asked.packets)
    }

    /// A second has passed: whom to ask for again, and the packets whose next hop does not answer.
    pub(crate) fn on_tick(&mut self) -> (Vec<NextHop>, Vec<Waiting>) {
        let (mut again, mut given_up) = (Vec::new(), Vec::new());
        self.0.retain(|(interface, neighbour), asked| {
            if asked.attempts >= ATTEMPTS {
                given_up.append(&mut asked.packets);
                return false;
            }
            asked.attempts += 1;
            again.push(NextHop { interface: *interface, neighbour: *neighbour });
            true
        });
        (again, given_up)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use burnet_sdk::{DatapathId, PortNo};

    fn hop(number: u16) -> NextHop {
        let [high, low] = number.to_be_bytes();
        NextHop { interface: 0, neighbour: [10, 0, high, low].into() }
    }

    fn packet(number: u8) -> Waiting {
        let at = ConnectPoint { switch: DatapathId(1), port: PortNo(1) };
        Waiting { at, frame: vec![number] }
    }

    #[test]
    fn at_the_bounds_packets_are_dropped() {
        let mut waiting = WaitingPackets::default();
        assert!(waiting.add(hop(1), packet(0)));
        (1..20).for_each(|number| assert!(!waiting.add(hop(1), packet(number))));
        assert_eq!(waiting.take(hop(1)).len(), PER_HOP_MAX);
        let count = (0..300).filter(|number| waiting.add(hop(*number), packet(1))).count();
        assert_eq!(count, ASKED_MAX);
    }

    #[test]
    fn a_frame_that_is_too_long_does_not_wait() {
        let mut waiting = WaitingPackets::default();
        let frame = vec![0; FRAME_BYTES_MAX + 1];
        assert!(!waiting.add(hop(1), Waiting { frame, ..packet(1) }));
        assert!(waiting.take(hop(1)).is_empty());
    }

    #[test]
    fn a_hop_is_asked_for_three_times_and_its_packets_are_given_up() {
        let mut waiting = WaitingPackets::default();
        waiting.add(hop(1), packet(1));
        assert_eq!(waiting.on_tick(), (vec![hop(1)], vec![]));
        assert_eq!(waiting.on_tick(), (vec![hop(1)], vec![]));
        assert_eq!(waiting.on_tick(), (vec![], vec![packet(1)]));
        assert_eq!(waiting.on_tick(), (vec![], vec![]));
        assert!(waiting.add(hop(1), packet(2)), "it is asked for anew");
    }
}
