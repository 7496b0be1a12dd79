//! The addresses that a learning switch has seen, with the port of each.
//!
//! In: the sender of a frame and the time. Out: the port where an address was seen last. It never reads a frame.

use flow::{MacAddr, PortNo};
use std::collections::HashMap;
use std::time::Duration;

/// How many addresses a switch remembers, as in Open vSwitch. Frames to further addresses are flooded.
const ADDRESSES_MAX: usize = 8192;
/// After this time without a frame from it, an address is forgotten (the default of IEEE 802.1Q, 8.8.3).
const AGEING: Duration = Duration::from_secs(300);
/// The port and time of the last frame from each address, for each VLAN.
#[derive(Clone, Debug, Default)]
pub(crate) struct AddressTable {
    heard: HashMap<(u16, MacAddr), (PortNo, Duration)>,
}

impl AddressTable {
    /// Forgets all addresses.
    pub(crate) fn clear(&mut self) {
        self.heard = HashMap::new();
    }

    /// Learns the sender's port. At the bound it first forgets addresses that are too old. If there are none, it does
    /// not remember this one.
    pub(crate) fn learn(&mut self, vlan: u16, from: MacAddr, port: PortNo, now: Duration) {
        if from.is_multicast() {
            return;
        }
        let key = (vlan, from);
        if self.heard.len() >= ADDRESSES_MAX && !self.heard.contains_key(&key) {
            self.heard.retain(|_, (_, at)| now.saturating_sub(*at) < AGEING);
        }
        if self.heard.len() < ADDRESSES_MAX || self.heard.contains_key(&key) {
            self.heard.insert(key, (port, now));
        }
    }

    /// The port where an address was seen last, if that is not too long ago.
    pub(crate) fn find(&self, vlan: u16, to: MacAddr, now: Duration) -> Option<PortNo> {
        let (port, at) = self.heard.get(&(vlan, to))?;
        (now.saturating_sub(*at) < AGEING).then_some(*port)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Duration = Duration::from_secs(1);

    fn address(number: u64) -> MacAddr {
        MacAddr::from_u64(number << 8)
    }

    #[test]
    fn a_group_address_is_never_learned() {
        let mut table = AddressTable::default();
        table.learn(0, MacAddr([0xff; 6]), PortNo(1), NOW);
        assert_eq!(table.find(0, MacAddr([0xff; 6]), NOW), None);
    }

    #[test]
    fn an_address_moves_with_its_frames_and_is_forgotten_with_age() {
        let mut table = AddressTable::default();
        table.learn(0, address(1), PortNo(1), NOW);
        table.learn(0, address(1), PortNo(2), NOW);
        assert_eq!(table.find(0, address(1), NOW), Some(PortNo(2)));
        assert_eq!(table.find(7, address(1), NOW), None, "another VLAN");
        assert_eq!(table.find(0, address(1), NOW + AGEING), None);
    }

    #[test]
    fn a_full_table_learns_again_when_what_it_has_is_old() {
        let mut table = AddressTable::default();
        for number in 0..ADDRESSES_MAX as u64 {
            table.learn(0, address(number), PortNo(1), NOW);
        }
        let one_more = address(ADDRESSES_MAX as u64);
        table.learn(0, one_more, PortNo(2), NOW);
        assert_eq!(table.find(0, one_more, NOW), None);
        table.learn(0, one_more, PortNo(2), NOW + AGEING);
        assert_eq!(table.find(0, one_more, NOW + AGEING), Some(PortNo(2)));
        assert_eq!(table.heard.len(), 1);
    }
}
