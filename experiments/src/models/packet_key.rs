//! The packets that begin a connection, and the delays of a switch from when they pass.
//!
//! ```text
//!   packet leaves its host ──> packet-in: ingress ──> flow mod ──> packet reaches the other host: egress
//! ```
//!
//! In: times and packets, as tcpdump and the controller see them. Out: delays. It never reads a clock. The paper measures in the same way
//! (section 3.1).

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

/// Ethernet, IPv4 and TCP without options.
const HEADERS_BYTES: usize = 54;
const ETHERTYPE_AT: usize = 12;
const IP_AT: usize = 14;
const PROTOCOL_AT: usize = 23;
const ADDRESSES_AT: usize = 26;
const FLAGS_AT: usize = 47;
const IPV4: [u8; 2] = [0x08, 0x00];
const IPV4_WITHOUT_OPTIONS: u8 = 0x45;
const TCP: u8 = 6;
const SYN: u8 = 2;

/// The packets of each kind that are remembered: more than are on the way at once. At the bound, the oldest is forgotten, and its delay is not
/// measured.
const OPEN_MAX: usize = 262_144;
/// How long a packet is remembered. A lost packet has no end. In runs whose delays are measured, queries are given up after ten seconds.
const OPEN_FOR: Duration = Duration::from_secs(120);

/// A packet that begins a connection in one direction: addresses, ports and sequence numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PacketKey([u8; 20]);

impl PacketKey {
    /// The key of a frame with a TCP segment with SYN over IPv4. `None`: it is another frame.
    pub fn of_opening(frame: &[u8]) -> Option<PacketKey> {
        let headers: &[u8; HEADERS_BYTES] = frame.first_chunk()?;
        let is_tcp = headers[ETHERTYPE_AT..IP_AT] == IPV4
            && headers[IP_AT] == IPV4_WITHOUT_OPTIONS
            && headers[PROTOCOL_AT] == TCP;
        let is_opening = is_tcp && headers[FLAGS_AT] & SYN != 0;
        let key = headers[ADDRESSES_AT..].first_chunk().copied();
        key.filter(|_| is_opening).map(PacketKey)
    }

    /// The flow of the packet: addresses and ports.
    pub fn flow(&self) -> FlowKey {
        let [a, b, c, d, e, f, g, h, i, j, k, l, ..] = self.0;
        FlowKey([a, b, c, d, e, f, g, h, i, j, k, l])
    }
}

/// A flow of TCP over IPv4: both addresses and both ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FlowKey(pub [u8; 12]);

/// A delay, and when the packet came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketDelay {
    /// When the packet or the flow mod came to the switch.
    pub from: Duration,
    /// How long the switch kept it.
    pub took: Duration,
}

/// Packets that have no end yet.
#[derive(Clone, Debug, Default)]
struct Open {
    since: HashMap<PacketKey, VecDeque<Duration>>,
    /// All of them, the oldest first, and some that have ended.
    order: VecDeque<(Duration, PacketKey)>,
}

impl Open {
    fn add(&mut self, key: PacketKey, at: Duration) {
        let is_old = |since: Duration| since.saturating_add(OPEN_FOR) < at;
        while self.order.len() >= OPEN_MAX || self.order.front().is_some_and(|(since, _)| is_old(*since)) {
            let Some((since, key)) = self.order.pop_front() else { break };
            if self.since.get(&key).and_then(VecDeque::front) == Some(&since) {
                self.take(&key);
            }
        }
        self.order.push_back((at, key));
        self.since.entry(key).or_default().push_back(at);
    }

    /// The first packet with this key has ended. Returns since when it was open.
    fn take(&mut self, key: &PacketKey) -> Option<Duration> {
        let all = self.since.get_mut(key)?;
        let first = all.pop_front();
        if all.is_empty() {
            self.since.remove(key);
        }
        first
    }
}

/// Finds the delays of packets. Each kind of event comes in the order of its times.
#[derive(Clone, Debug, Default)]
pub struct DelayFinder {
    sent: Open,
    answered: Open,
    /// The switch keeps the order of packet-ins. So what was sent before this, and was not seen, is lost.
    last_seen_sent: Duration,
    /// The delays at ingress.
    pub ingress: Vec<PacketDelay>,
    /// The delays at egress.
    pub egress: Vec<PacketDelay>,
}

impl DelayFinder {
    /// A packet leaves its host.
    pub fn on_sent(&mut self, key: PacketKey, at: Duration) {
        self.sent.add(key, at);
    }

    /// Its packet-in comes to the controller.
    pub fn on_packet_in(&mut self, key: PacketKey, at: Duration) {
        if let Some(sent) = self.sent.since.get_mut(&key) {
            // A connection whose packet was sent again has several. Those before the last one that was seen are lost.
            while sent.len() > 1 && sent.front().is_some_and(|first| *first < self.last_seen_sent) {
                sent.pop_front();
            }
        }
        if let Some(from) = self.sent.take(&key).filter(|from| *from <= at) {
            self.last_seen_sent = from;
            self.ingress.push(PacketDelay { from, took: at.saturating_sub(from) });
        }
    }

    /// The controller sends a flow mod that releases it.
    pub fn on_flow_mod(&mut self, key: PacketKey, at: Duration) {
        self.answered.add(key, at);
    }

    /// The packet reaches the other host. Packets that met a rule have no answer, and are ignored.
    pub fn on_received(&mut self, key: PacketKey, at: Duration) {
        if let Some(from) = self.answered.take(&key).filter(|from| *from <= at) {
            self.egress.push(PacketDelay { from, took: at.saturating_sub(from) });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: u8) -> PacketKey {
        PacketKey([number; 20])
    }

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    fn took(delays: &[PacketDelay]) -> Vec<u128> {
        delays.iter().map(|delay| delay.took.as_millis()).collect()
    }

    #[test]
    fn what_is_no_opening_segment_has_no_key() {
        let mut frame = vec![0; 60];
        assert_eq!(PacketKey::of_opening(&frame), None);
        frame[12] = 8;
        (frame[14], frame[23], frame[47]) = (0x45, 6, 0x10);
        assert_eq!(PacketKey::of_opening(&frame), None, "an acknowledgement");
        frame[47] = 0x12;
        assert!(PacketKey::of_opening(&frame).is_some());
        assert_eq!(PacketKey::of_opening(&frame[..53]), None, "cut");
    }

    #[test]
    fn a_packet_that_was_lost_does_not_lengthen_the_next_delay() {
        let mut finder = DelayFinder::default();
        finder.on_sent(key(1), ms(0));
        finder.on_sent(key(2), ms(500));
        finder.on_packet_in(key(2), ms(600));
        finder.on_sent(key(1), ms(1000));
        finder.on_packet_in(key(1), ms(1200));
        assert_eq!(took(&finder.ingress), [100, 200], "1 was lost, since 2 came before it");
    }

    #[test]
    fn a_packet_that_only_waits_long_is_not_lost() {
        let mut finder = DelayFinder::default();
        finder.on_sent(key(1), ms(0));
        finder.on_sent(key(1), ms(1000));
        finder.on_packet_in(key(1), ms(1200));
        finder.on_packet_in(key(1), ms(1300));
        assert_eq!(took(&finder.ingress), [1200, 300]);
    }

    #[test]
    fn packets_that_were_lost_are_forgotten_by_age_and_number() {
        let mut finder = DelayFinder::default();
        let number = |it: u64| {
            let mut key = [0; 20];
            key[..8].copy_from_slice(&it.to_be_bytes());
            PacketKey(key)
        };
        // A hundred a second, of which none has an end.
        for it in 0..100_000 {
            finder.on_sent(number(it), ms(10 * it));
            finder.on_flow_mod(number(it), ms(10 * it));
        }
        let of_two_minutes = 12_001;
        for open in [&finder.sent, &finder.answered] {
            assert_eq!((open.since.len(), open.order.len()), (of_two_minutes, of_two_minutes));
        }
        finder.on_packet_in(number(99_000), ms(1_000_000));
        finder.on_packet_in(number(80_000), ms(1_000_000));
        assert_eq!(took(&finder.ingress), [10_000], "the other one is too old");
        // So many at once that age alone is no bound. The same one is sent again and again.
        (0..2 * OPEN_MAX).for_each(|_| finder.on_sent(key(1), ms(1_000_001)));
        assert_eq!((finder.sent.order.len(), finder.sent.since[&key(1)].len()), (OPEN_MAX, OPEN_MAX));
    }

    #[test]
    fn egress_is_from_the_flow_mod_to_the_packet() {
        let mut finder = DelayFinder::default();
        finder.on_received(key(1), ms(1));
        finder.on_sent(key(1), ms(2));
        finder.on_packet_in(key(1), ms(10));
        finder.on_flow_mod(key(1), ms(12));
        finder.on_received(key(1), ms(35));
        finder.on_received(key(1), ms(99));
        assert_eq!((took(&finder.ingress), took(&finder.egress)), (vec![8], vec![23]));
    }
}
