//! Which port of a switch each address of a network is behind.
//!
//! In: addresses, ports, the time. Out: ports. It knows no rule and no frame.

use burnet_sdk::{DatapathId, MacAddr, PortNo};
use std::collections::HashMap;

/// The most addresses at one switch. Further ones are not learned: their frames are flooded within their network.
pub const ADDRESSES_MAX: usize = 16_384;

/// An address that was not seen for so long is forgotten, as by bridges (IEEE 802.1Q, table 8-7).
const AGEING_MS: u64 = 300_000;

/// What was learned, by switch.
#[derive(Debug, Default)]
pub struct Learned(HashMap<DatapathId, HashMap<(u16, MacAddr), Place>>);

#[derive(Clone, Copy, Debug)]
struct Place {
    port: PortNo,
    seen_ms: u64,
}

impl Learned {
    /// An address was seen at a port. Whether it was at another port before.
    pub fn see(&mut self, switch: DatapathId, vlan: u16, mac: MacAddr, port: PortNo, now_ms: u64) -> bool {
        if mac.is_multicast() {
            return false;
        }
        let addresses = self.0.entry(switch).or_default();
        if addresses.len() >= ADDRESSES_MAX && !addresses.contains_key(&(vlan, mac)) {
            return false;
        }
        let before = addresses.insert((vlan, mac), Place { port, seen_ms: now_ms });
        before.is_some_and(|before| before.port != port)
    }

    /// The port of an address.
    pub fn port_of(&self, switch: DatapathId, vlan: u16, mac: MacAddr) -> Option<PortNo> {
        Some(self.0.get(&switch)?.get(&(vlan, mac))?.port)
    }

    /// Forgets what is behind a port.
    pub fn forget_port(&mut self, switch: DatapathId, port: PortNo) {
        if let Some(addresses) = self.0.get_mut(&switch) {
            addresses.retain(|_, place| place.port != port);
        }
    }

    /// Forgets a switch.
    pub fn forget_switch(&mut self, switch: DatapathId) {
        self.0.remove(&switch);
    }

    /// Forgets addresses that were not seen for long.
    pub fn age(&mut self, now_ms: u64) {
        for addresses in self.0.values_mut() {
            addresses.retain(|_, place| now_ms.saturating_sub(place.seen_ms) < AGEING_MS);
        }
    }
}
