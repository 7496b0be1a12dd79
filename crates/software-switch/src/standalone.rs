//! What a switch does without a controller (1.3.5, 6.3.2), and for the output NORMAL.
//!
//! In: a frame. Out: the ports by which it leaves. It never reads a flow table.

use flow::{MacAddr, PortNo};
use std::collections::HashMap;
use std::time::Duration;

use super::{Effects, Switch};

/// What a switch does while no controller is connected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FailMode {
    /// It keeps its rules, which still time out, and drops packets that match none.
    #[default]
    Secure,
    /// It deletes its rules and acts as a learning switch until a controller is connected. A loop among such switches
    /// causes a broadcast storm.
    Standalone,
}

/// How many addresses a switch remembers, as in Open vSwitch. Frames to further addresses are flooded.
const ADDRESSES_MAX: usize = 8192;
/// After this time without a frame from it, an address is forgotten (the default of IEEE 802.1Q, 8.8.3).
const AGEING: Duration = Duration::from_secs(300);
/// Frames to 01:80:c2:00:00:00 to :0f are for the bridge itself and go no further (IEEE 802.1Q, 8.6.3).
const FOR_BRIDGES: [u8; 5] = [0x01, 0x80, 0xc2, 0x00, 0x00];

/// The port and time of the last frame from each address, for each VLAN.
#[derive(Debug, Default)]
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
    fn learn(&mut self, vlan: u16, from: MacAddr, port: PortNo, now: Duration) {
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

    fn find(&self, vlan: u16, to: MacAddr, now: Duration) -> Option<PortNo> {
        let (port, at) = self.heard.get(&(vlan, to))?;
        (now.saturating_sub(*at) < AGEING).then_some(*port)
    }
}

impl Switch {
    /// Whether it acts as a learning switch now.
    pub fn stands_alone(&self) -> bool {
        self.options.fail_mode == FailMode::Standalone && !self.is_connected()
    }

    /// Sends a frame to the port of its destination, or by all other ports if that is unknown.
    pub(super) fn switch_by_address(
        &mut self,
        in_port: PortNo,
        frame: Vec<u8>,
        now: Duration,
        effects: &mut Effects,
    ) {
        let Some((to, from, vlan)) = addresses(&frame) else { return };
        if to.0[..5] == FOR_BRIDGES && to.0[5] < 0x10 {
            return;
        }
        // The packet of a packet-out may have no ingress port.
        if self.ports.contains_key(&in_port) {
            self.addresses.learn(vlan, from, in_port, now);
        }
        let known = self.addresses.find(vlan, to, now);
        for (number, port) in &mut self.ports {
            let wanted = known.map_or(port.floods(), |at| at == *number);
            if *number != in_port && wanted && port.send(frame.len()) {
                effects.frames.push((*number, frame.clone()));
            }
        }
    }
}

/// Destination, source, and the VLAN id of the outer tag; 0 if there is no tag.
fn addresses(frame: &[u8]) -> Option<(MacAddr, MacAddr, u16)> {
    let (to, rest) = frame.split_first_chunk::<6>()?;
    let (from, rest) = rest.split_first_chunk::<6>()?;
    let vlan = match rest {
        [0x81, 0x00, high, low, ..] => u16::from_be_bytes([*high, *low]) & 0x0fff,
        _ => 0,
    };
    Some((MacAddr(*to), MacAddr(*from), vlan))
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
