//! The Ethernet addresses that a host knows, its address requests, and the frames that wait for an answer.
//!
//! In: received addresses, frames to send, the time. Out: an address, frames that can be sent, addresses to request.
//! It never makes a request: the host does.

use flow::MacAddr;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use super::packet;

/// How many addresses a host remembers. At the bound, the one that was seen longest ago is forgotten.
const KNOWN_MAX: usize = 65_536;
/// How many addresses are requested at once, and how many frames wait for one. More are dropped.
const SEARCHES_MAX: usize = 4096;
const WAITING_MAX: usize = 1024;
/// How long a host waits for an answer before it asks again, and how often it asks, as in Linux (`retrans_time_ms`,
/// `mcast_solicit`).
const INTERVAL: Duration = Duration::from_secs(1);
const ATTEMPTS: u32 = 3;

/// Known neighbours, and running requests.
#[derive(Debug, Default)]
pub(super) struct Neighbours {
    known: BTreeMap<IpAddr, Neighbour>,
    searches: BTreeMap<IpAddr, Search>,
}

#[derive(Clone, Copy, Debug)]
struct Neighbour {
    mac: MacAddr,
    heard_at: Duration,
}

#[derive(Debug)]
struct Search {
    asked_at: Duration,
    attempts: u32,
    waiting: Vec<Vec<u8>>,
}

/// What happens to a frame that has no destination address yet.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Waits {
    /// The caller must request the address.
    First,
    /// The address is already requested.
    WithOthers,
    /// There is no room, and the frame is dropped.
    NoRoom,
}

impl Neighbours {
    /// The Ethernet address that was heard for an address.
    pub(super) fn mac(&self, address: IpAddr) -> Option<MacAddr> {
        self.known.get(&address).map(|neighbour| neighbour.mac)
    }

    /// Whether an address is known or requested.
    pub(super) fn is_wanted(&self, address: IpAddr) -> bool {
        self.known.contains_key(&address) || self.searches.contains_key(&address)
    }

    /// Stores an address. Returns the frames that waited for it, with their destination set.
    pub(super) fn learn(&mut self, address: IpAddr, mac: MacAddr, now: Duration) -> Vec<Vec<u8>> {
        if self.known.len() >= KNOWN_MAX && !self.known.contains_key(&address) {
            let oldest = self.known.iter().min_by_key(|(_, neighbour)| neighbour.heard_at);
            if let Some(oldest) = oldest.map(|(address, _)| *address) {
                self.known.remove(&oldest);
            }
        }
        self.known.insert(address, Neighbour { mac, heard_at: now });
        let mut waiting = self.searches.remove(&address).map(|search| search.waiting).unwrap_or_default();
        waiting.iter_mut().for_each(|frame| packet::address(frame, mac));
        waiting
    }

    /// Keeps a frame until the address is known.
    pub(super) fn wait(&mut self, address: IpAddr, frame: Vec<u8>, now: Duration) -> Waits {
        let count = self.searches.len();
        match self.searches.get_mut(&address) {
            Some(search) if search.waiting.len() < WAITING_MAX => {
                search.waiting.push(frame);
                Waits::WithOthers
            }
            None if count < SEARCHES_MAX => {
                self.searches.insert(address, Search { asked_at: now, attempts: 1, waiting: vec![frame] });
                Waits::First
            }
            _ => Waits::NoRoom,
        }
    }

    /// When a request must be repeated or given up.
    pub(super) fn next_due(&self) -> Option<Duration> {
        self.searches.values().map(|search| search.asked_at + INTERVAL).min()
    }

    /// Gives up requests without an answer, with their frames. Returns the addresses to request again.
    pub(super) fn on_tick(&mut self, now: Duration) -> Vec<IpAddr> {
        let is_over = |search: &Search| now.saturating_sub(search.asked_at) >= INTERVAL;
        self.searches.retain(|_, search| search.attempts < ATTEMPTS || !is_over(search));
        let due = self.searches.iter_mut().filter(|(_, search)| is_over(search));
        due.map(|(address, search)| {
            search.asked_at = now;
            search.attempts += 1;
            *address
        })
        .collect()
    }

    /// Forgets everything.
    pub(super) fn forget(&mut self) {
        *self = Neighbours::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    const NOW: Duration = Duration::from_secs(9);

    fn address(number: u32) -> IpAddr {
        Ipv4Addr::from(number).into()
    }

    #[test]
    fn what_has_no_room_is_dropped() {
        let mut neighbours = Neighbours::default();
        assert_eq!(neighbours.wait(address(0), vec![0; 20], NOW), Waits::First);
        for _ in 1..WAITING_MAX {
            assert_eq!(neighbours.wait(address(0), vec![0; 20], NOW), Waits::WithOthers);
        }
        assert_eq!(neighbours.wait(address(0), vec![0; 20], NOW), Waits::NoRoom);
        for number in 1..SEARCHES_MAX as u32 {
            assert_eq!(neighbours.wait(address(number), Vec::new(), NOW), Waits::First);
        }
        assert_eq!(neighbours.wait(address(u32::MAX), Vec::new(), NOW), Waits::NoRoom);
        let mac = MacAddr([7; 6]);
        let waited = neighbours.learn(address(0), mac, NOW);
        assert!(waited.len() == WAITING_MAX && waited.iter().all(|frame| frame[..6] == mac.0));
        assert_eq!(neighbours.mac(address(0)), Some(mac));
    }

    #[test]
    fn who_was_heard_from_longest_ago_is_forgotten_first() {
        let mut neighbours = Neighbours::default();
        for number in 0..=KNOWN_MAX as u32 {
            let age = Duration::from_secs(u64::from(if number == 5 { 0 } else { number + 1 }));
            neighbours.learn(address(number), MacAddr([1; 6]), age);
        }
        assert_eq!((neighbours.known.len(), neighbours.mac(address(5))), (KNOWN_MAX, None));
    }
}
