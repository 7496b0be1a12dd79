//! Detects a broadcast storm: a network with a loop and without a spanning tree.
//!
//! ```text
//!   packet-ins of one second ──> count ──> if many: the next WINDOW of them ──> same frame, same switch, two ports? ──> Storm
//! ```
//!
//! In a tree, a flooded frame reaches each switch once. A frame that a host repeats arrives at the same port. Only a loop
//! brings one frame to one switch by two ports. In: packet-ins, and the time. Out: a storm, at a limited rate. It drops
//! nothing. Most packet-ins cost an addition and a comparison.

use std::collections::HashMap;
use std::fmt;
use std::hash::{BuildHasher, RandomState};

use flow::{DatapathId, PortNo};

/// How many packet-ins of a busy second are inspected. It is large enough that not all of them are from the first
/// switches of a turn.
const WINDOW: usize = 1_024;

/// Fewer packet-ins in a second are no storm.
const STORM_PER_S: u64 = 500;

/// How often the watch checks for a storm.
const LOOK_MS: u64 = 1_000;

/// How often the watch reports the same storm.
const TELL_MS: u64 = 60_000;

/// More than half of the packet-ins.
const SHARE_PERCENT: usize = 50;

/// A network with looping frames.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Storm {
    datapath: DatapathId,
    ports: [PortNo; 2],
    percent: usize,
    per_s: u64,
}

impl fmt::Display for Storm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Storm { datapath, ports: [one, other], percent, per_s } = self;
        write!(
            f,
            "a storm of {per_s} packet-ins a second: {percent} % of them are the same frames again, which come to {datapath} by port {one} and \
             by port {other}. The network has a loop and no spanning tree: take a link away, or let the switches flood along a tree \
             (ovs-vsctl set bridge BRIDGE rstp_enable=true; burnet emulate --spanning-tree on)"
        )
    }
}

/// The record of a frame.
#[derive(Clone, Copy, Debug)]
struct Seen {
    frame: u64,
    datapath: DatapathId,
    in_port: PortNo,
}

/// The watch of one worker.
#[derive(Debug)]
pub struct StormWatch {
    /// At most [`WINDOW`]; empty unless the last second had many packet-ins.
    window: Vec<Seen>,
    is_open: bool,
    heard: u64,
    looked_ms: u64,
    told_ms: Option<u64>,
    hasher: RandomState,
}

impl StormWatch {
    /// Creates a watch.
    pub fn new() -> StormWatch {
        StormWatch {
            window: Vec::new(),
            is_open: false,
            heard: 0,
            looked_ms: 0,
            told_ms: None,
            hasher: RandomState::new(),
        }
    }

    /// Counts a packet-in. Returns whether to inspect it.
    #[inline]
    pub fn wants(&mut self) -> bool {
        self.heard += 1;
        self.is_open
    }

    /// Inspects a packet-in.
    pub fn look(&mut self, datapath: DatapathId, in_port: PortNo, frame: &[u8]) {
        self.window.push(Seen { frame: self.hasher.hash_one(frame), datapath, in_port });
        self.is_open = self.window.len() < WINDOW;
    }

    /// Judges a second when it is over. Call it in every turn.
    pub fn on_time(&mut self, now_ms: u64) -> Option<Storm> {
        let passed_ms = now_ms.saturating_sub(self.looked_ms);
        if passed_ms < LOOK_MS {
            return None;
        }
        let per_s = std::mem::take(&mut self.heard) * 1_000 / passed_ms;
        self.looked_ms = now_ms;
        let window = std::mem::take(&mut self.window);
        self.is_open = per_s >= STORM_PER_S;
        let told = self.told_ms.is_some_and(|told| now_ms.saturating_sub(told) < TELL_MS);
        let storm = judge(&window, per_s).filter(|_| !told);
        if storm.is_some() {
            self.told_ms = Some(now_ms);
        }
        storm
    }
}

/// If the window is not full, the second had too few packet-ins for a storm.
fn judge(window: &[Seen], per_s: u64) -> Option<Storm> {
    if window.len() < WINDOW {
        return None;
    }
    // The first port of each frame, a second port, and the number of copies.
    let mut frames: HashMap<(u64, DatapathId), (PortNo, Option<PortNo>, usize)> = HashMap::new();
    for seen in window {
        let known = frames.entry((seen.frame, seen.datapath)).or_insert((seen.in_port, None, 0));
        known.2 += 1;
        if known.0 != seen.in_port {
            known.1 = Some(seen.in_port);
        }
    }
    let circling = || {
        frames
            .iter()
            .filter_map(|((_, datapath), (one, other, count))| Some((datapath, *one, (*other)?, *count)))
    };
    let repeated: usize = circling().map(|(.., count)| count).sum();
    let percent = repeated * 100 / window.len();
    let (datapath, one, other, _) =
        circling().max_by_key(|(datapath, .., count)| (*count, std::cmp::Reverse(**datapath)))?;
    let mut ports = [one, other];
    ports.sort_unstable_by_key(|port| port.0);
    (percent > SHARE_PERCENT).then_some(Storm { datapath: *datapath, ports, percent, per_s })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MANY: u64 = 2 * WINDOW as u64;

    /// Two seconds of packet-ins, of which the watch inspects the second: switch, port and frame of each.
    fn watched(
        watch: &mut StormWatch,
        from_ms: u64,
        packet: impl Fn(u64) -> (u64, u32, u64),
    ) -> Option<Storm> {
        let mut storm = None;
        for second in 1..=2 {
            for number in 0..MANY {
                if watch.wants() {
                    let (datapath, port, frame) = packet(number);
                    watch.look(DatapathId(datapath), PortNo(port), &frame.to_be_bytes());
                }
            }
            storm = storm.or(watch.on_time(from_ms + second * LOOK_MS));
        }
        storm
    }

    #[test]
    fn what_repeats_without_a_loop_is_no_storm() {
        let calm =
            |packet: fn(u64) -> (u64, u32, u64)| assert_eq!(watched(&mut StormWatch::new(), 0, packet), None);
        // A load generator: few hosts, each at its own port, the same frames again and again.
        calm(|number| (number % 4, (number % 8) as u32, number % 8));
        // A hub in a line of eight switches: each frame reaches each switch once, always through the port towards its
        // host.
        calm(|number| (number % 8, 1, number / 8));
        // Hosts that all send different frames.
        calm(|number| (1, (number % 3) as u32, number));
        // A few looping frames among many that do not loop.
        calm(|number| if number % 4 == 0 { (1, (number % 8 / 4) as u32, 7) } else { (1, 5, number) });
    }

    #[test]
    fn frames_that_come_to_a_switch_by_two_ports_are_a_storm_that_is_told_of_once_in_a_while() {
        let mut watch = StormWatch::new();
        let ring = |number: u64| (1 + number % 3, 1 + (number / 3 % 2) as u32, number / 6 % 2);
        let storm = watched(&mut watch, 0, ring).unwrap();
        let expected = "a storm of 2048 packet-ins a second: 100 % of them are the same frames again, which come to of:0000000000000001 by \
                        port 1 and by port 2. The network has a loop and no spanning tree: ";
        assert!(storm.to_string().starts_with(expected), "{storm}");
        assert_eq!(watched(&mut watch, 2 * LOOK_MS, ring), None);
        assert!(watched(&mut watch, 2 * TELL_MS, ring).is_some());
    }

    #[test]
    fn few_packet_ins_are_never_looked_at() {
        let mut watch = StormWatch::new();
        for second in 1..10 {
            assert!((1..STORM_PER_S).all(|_| !watch.wants()));
            assert_eq!(watch.on_time(second * LOOK_MS), None);
        }
    }

    #[test]
    fn no_more_is_remembered_than_the_window() {
        let mut watch = StormWatch::new();
        watched(&mut watch, 0, |number| (1, 1, number));
        watch.is_open = true;
        let mut looked = 0;
        while watch.wants() {
            watch.look(DatapathId(1), PortNo(1), b"x");
            looked += 1;
        }
        assert_eq!(looked, WINDOW);
    }
}
