//! Lets every host ping every other: which ping is next, which has no reply yet, which is lost.
//!
//! Pure: the network and the time are arguments.

use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;
use std::time::Duration;

use crate::host::PingReply;
use crate::host::flow::IpVersion;
use crate::network::{Network, NetworkEffects};

/// How many pings may be unanswered at once: enough that waiting costs little, but not so many that they flood a
/// controller.
const PINGS_AT_ONCE: usize = 16;

/// One ping and its result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PingOutcome {
    /// The name of the host that pinged.
    pub from: String,
    /// The name of the host that was pinged.
    pub to: String,
    /// The round trip, including address resolution. `None`: no reply in time.
    pub round_trip: Option<Duration>,
}

/// The results of all pings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PingReport {
    /// Each pair in each direction, in the order of the pings.
    pub pairs: Vec<PingOutcome>,
}

impl PingReport {
    /// How many pings were answered.
    pub fn answered(&self) -> usize {
        self.pairs.iter().filter(|pair| pair.round_trip.is_some()).count()
    }

    /// Whether every pair was answered. False if there are no pairs.
    pub fn is_complete(&self) -> bool {
        !self.pairs.is_empty() && self.answered() == self.pairs.len()
    }

    /// The pairs that were not answered.
    pub fn lost(&self) -> impl Iterator<Item = &PingOutcome> {
        self.pairs.iter().filter(|pair| pair.round_trip.is_none())
    }
}

/// In Mininet's form: `0% dropped (12/12 received)`.
impl fmt::Display for PingReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (answered, all) = (self.answered(), self.pairs.len());
        write!(f, "{}% dropped ({answered}/{all} received)", dropped_percent(all, answered))
    }
}

/// The per cent of pings without an answer, rounded. It is 0 only if none was lost, and 100 only if none was
/// answered.
pub fn dropped_percent(sent: usize, answered: usize) -> usize {
    let lost = sent.saturating_sub(answered);
    let rounded = (lost.saturating_mul(100).saturating_add(sent / 2)).checked_div(sent).unwrap_or(0);
    match (lost, answered) {
        (0, _) => 0,
        (_, 0) => 100,
        _ => rounded.clamp(1, 99),
    }
}

/// A running round of pings.
#[derive(Debug)]
pub(crate) struct PingAll {
    ip: IpVersion,
    timeout: Duration,
    pairs: Vec<Pair>,
    first_sequence: u16,
    /// The first pair that has not been pinged.
    next: usize,
    /// Pairs without a reply yet, keyed by the host that pinged, the address and the sequence number.
    waiting: BTreeMap<(usize, IpAddr, u16), usize>,
}

#[derive(Debug)]
struct Pair {
    from: usize,
    to: usize,
    sent_at: Duration,
    round_trip: Option<Duration>,
}

impl PingAll {
    /// All pairs of this many hosts. Sequence numbers start at `first_sequence`, so that overlapping rounds do not
    /// share numbers.
    pub(crate) fn new(hosts: usize, timeout: Duration, first_sequence: u16) -> Self {
        let pairs =
            (0..hosts).flat_map(|from| (0..hosts).filter(move |to| *to != from).map(move |to| (from, to)));
        PingAll::of_pairs(pairs, timeout, first_sequence)
    }

    /// One host pings another once.
    pub(crate) fn of_pairs(
        pairs: impl IntoIterator<Item = (usize, usize)>,
        timeout: Duration,
        first_sequence: u16,
    ) -> Self {
        let pair = |(from, to)| Pair { from, to, sent_at: Duration::ZERO, round_trip: None };
        let pairs = pairs.into_iter().map(pair).collect();
        PingAll { ip: IpVersion::V4, timeout, pairs, first_sequence, next: 0, waiting: BTreeMap::new() }
    }

    /// The first sequence number of the next round.
    pub(crate) fn next_sequence(&self) -> u16 {
        // Numbers wrap around. Only unanswered pings must have different ones.
        self.first_sequence.wrapping_add(self.pairs.len() as u16)
    }

    /// The same over this version of IP.
    pub(crate) fn over(self, ip: IpVersion) -> Self {
        PingAll { ip, ..self }
    }

    /// Sends as many pings as are allowed.
    pub(crate) fn send(&mut self, network: &mut Network, now: Duration, effects: &mut NetworkEffects) {
        while self.waiting.len() < PINGS_AT_ONCE {
            let Some(pair) = self.pairs.get_mut(self.next) else { return };
            pair.sent_at = now;
            let to = &network.hosts()[pair.to];
            let to: IpAddr = match self.ip {
                IpVersion::V4 => to.address().into(),
                IpVersion::V6 => to.global_v6().into(),
            };
            let sequence = self.first_sequence.wrapping_add(self.next as u16);
            self.waiting.insert((pair.from, to, sequence), self.next);
            network.ping(pair.from, to, sequence, now, effects);
            self.next += 1;
        }
    }

    /// Processes a reply. Returns the pair of hosts, if it belongs to this round.
    pub(crate) fn on_reply(&mut self, host: usize, reply: &PingReply) -> Option<(usize, usize)> {
        let pair = &mut self.pairs[self.waiting.remove(&(host, reply.from, reply.sequence))?];
        pair.round_trip = Some(reply.round_trip);
        Some((pair.from, pair.to))
    }

    /// Gives up the pings whose time is over, and returns their pairs.
    pub(crate) fn give_up(&mut self, network: &mut Network, now: Duration) -> Vec<(usize, usize)> {
        let pairs = &self.pairs;
        let timeout = self.timeout;
        let mut lost = Vec::new();
        self.waiting.retain(|(host, to, sequence), index| {
            let in_time = now.saturating_sub(pairs[*index].sent_at) < timeout;
            if !in_time {
                network.give_up(*host, *to, *sequence);
                lost.push((pairs[*index].from, pairs[*index].to));
            }
            in_time
        });
        lost
    }

    /// When the next ping is given up without a reply.
    pub(crate) fn next_due(&self) -> Option<Duration> {
        self.waiting.values().map(|index| self.pairs[*index].sent_at + self.timeout).min()
    }

    /// The number of pings in all.
    pub(crate) fn pings(&self) -> usize {
        self.pairs.len()
    }

    /// The number of answered pings.
    pub(crate) fn answered(&self) -> usize {
        self.pairs.iter().filter(|pair| pair.round_trip.is_some()).count()
    }

    /// Whether every ping is answered or lost.
    pub(crate) fn is_done(&self) -> bool {
        self.waiting.is_empty() && self.next == self.pairs.len()
    }

    /// The results of the pings.
    pub(crate) fn report(&self, network: &Network) -> PingReport {
        let name = |host: usize| network.hosts()[host].name().to_owned();
        let outcome = |pair: &Pair| PingOutcome {
            from: name(pair.from),
            to: name(pair.to),
            round_trip: pair.round_trip,
        };
        PingReport { pairs: self.pairs.iter().map(outcome).collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use software_switch::SwitchOptions;

    #[test]
    fn what_is_not_answered_in_time_is_lost() {
        let start = Duration::from_secs(1);
        let mut network = Network::new(&"single,3".parse().unwrap(), &SwitchOptions::default(), start);
        let mut effects = NetworkEffects::default();
        let mut round = PingAll::new(3, Duration::from_secs(2), 0);
        round.send(&mut network, start, &mut effects);
        let answered = PingReply {
            from: network.hosts()[1].address().into(),
            sequence: 0,
            round_trip: Duration::from_millis(5),
        };
        assert_eq!(round.on_reply(2, &answered), None, "another host's");
        assert_eq!(round.on_reply(0, &answered), Some((0, 1)));
        assert_eq!(round.on_reply(0, &answered), None, "twice");
        assert_eq!(round.give_up(&mut network, start + Duration::from_secs(1)), []);
        assert!(!round.is_done());
        assert_eq!(round.give_up(&mut network, start + Duration::from_secs(2)).len(), 5);
        assert!(round.is_done());
        let report = round.report(&network);
        assert_eq!(report.to_string(), "83% dropped (1/6 received)");
        assert!(!report.is_complete());
        assert_eq!(report.lost().count(), 5);
    }

    #[test]
    fn a_lost_ping_is_never_rounded_away() {
        let check = |sent, answered, expected| {
            assert_eq!(dropped_percent(sent, answered), expected, "{answered}/{sent}")
        };
        check(1000, 999, 1);
        check(1000, 1, 99);
        check(1000, 1000, 0);
        check(1000, 0, 100);
        check(6, 1, 83);
        check(0, 0, 0);
    }

    #[test]
    fn only_so_many_are_on_their_way_at_once() {
        let mut network =
            Network::new(&"single,9".parse().unwrap(), &SwitchOptions::default(), Duration::ZERO);
        let mut round = PingAll::new(9, Duration::from_secs(1), 0);
        round.send(&mut network, Duration::ZERO, &mut NetworkEffects::default());
        assert_eq!((round.waiting.len(), round.pairs.len()), (PINGS_AT_ONCE, 72));
    }

    #[test]
    fn one_host_alone_has_nobody_to_ping() {
        assert!(PingAll::new(1, Duration::ZERO, 0).is_done());
        assert!(!PingReport::default().is_complete());
    }
}
