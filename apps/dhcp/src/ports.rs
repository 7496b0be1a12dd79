//! How many clients at each port hold an address, so that one port cannot exhaust a pool.
//!
//! In: ports, clients, times. Out: whether one more client has room. A port has an entry for each client with a running lease.

use burnet_sdk::{DatapathId, MacAddr, PortNo};
use std::collections::{BTreeMap, HashMap};

/// A port of a switch.
pub type Place = (DatapathId, PortNo);

/// The clients at each port.
#[derive(Debug, Default)]
pub struct Ports(HashMap<Place, BTreeMap<MacAddr, u64>>);

impl Ports {
    /// Whether this client may hold an address at this port, which has room for so many.
    pub fn has_room(&mut self, place: Place, mac: MacAddr, most: usize, now_ms: u64) -> bool {
        let Some(clients) = self.0.get_mut(&place) else { return most > 0 };
        if clients.len() >= most {
            clients.retain(|_, until_ms| *until_ms > now_ms);
        }
        clients.contains_key(&mac) || clients.len() < most
    }

    /// A client at this port holds an address until then.
    pub fn hold(&mut self, place: Place, mac: MacAddr, until_ms: u64) {
        self.0.entry(place).or_default().insert(mac, until_ms);
    }

    /// A client has given its address back.
    pub fn release(&mut self, place: Place, mac: MacAddr) {
        if let Some(clients) = self.0.get_mut(&place) {
            clients.remove(&mac);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_has_room_for_so_many_clients_whose_leases_run() {
        let mut ports = Ports::default();
        let (one, two) = ((DatapathId(1), PortNo(1)), (DatapathId(1), PortNo(2)));
        let mac = |last| MacAddr([0, 0, 0, 0, 0, last]);
        ports.hold(one, mac(1), 10);
        ports.hold(one, mac(2), 20);
        let mut check = |place, last, now_ms, expected| {
            assert_eq!(ports.has_room(place, mac(last), 2, now_ms), expected, "{last} {now_ms}");
        };
        check(one, 3, 9, false);
        check(one, 1, 9, true);
        check(two, 3, 9, true);
        check(one, 3, 10, true);
    }
}
