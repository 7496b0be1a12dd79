//! The results of a generator's run: announced hosts, rounds, faults.
//!
//! Plain values, which are added up over threads. It prints nothing.

use std::time::Duration;

use crate::figures::Latencies;

/// How many reasons of faults are kept. The others are only counted.
const FAULTS_TOLD: usize = 8;

/// The result of announcing the hosts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Learned {
    /// Announcements sent.
    pub announced: u64,
    /// Announcements that were answered.
    pub answered: u64,
    /// How long it took.
    pub took: Duration,
}

/// The result of one round.
#[derive(Clone, Debug, Default)]
pub struct RoundReport {
    /// The length of the measurement.
    pub took: Duration,
    /// Packet-ins that were sent.
    pub sent: u64,
    /// Answers that arrived within the round.
    pub answered: u64,
    /// Answers before the measurement began, and after its end while the generator waited for them.
    pub outside: u64,
    /// All flow mods, including those outside the round.
    pub flow_mods: u64,
    /// All packet-outs, including those outside the round.
    pub packet_outs: u64,
    /// The latencies of the answers, in the modes that measure them.
    pub latencies: Latencies,
    /// Answers of each switch within the round.
    pub answered_by_switch: Vec<u64>,
}

impl RoundReport {
    /// Answers a second.
    pub fn responses_per_s(&self) -> f64 {
        let seconds = self.took.as_secs_f64();
        if seconds > 0.0 { self.answered as f64 / seconds } else { 0.0 }
    }

    /// Packet-ins that were never answered.
    pub fn unanswered(&self) -> u64 {
        self.sent.saturating_sub(self.answered + self.outside)
    }

    /// Adds another thread's report of the same round.
    pub(crate) fn add(&mut self, other: &RoundReport) {
        self.took = self.took.max(other.took);
        self.sent += other.sent;
        self.answered += other.answered;
        self.outside += other.outside;
        self.flow_mods += other.flow_mods;
        self.packet_outs += other.packet_outs;
        self.latencies.add(&other.latencies);
        self.answered_by_switch.extend(&other.answered_by_switch);
    }
}

/// Faults of connections, and of the generator itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    /// Connections that failed before the controller knew the switch.
    pub not_connected: u64,
    /// Connections that were lost after the controller knew the switch.
    pub lost: u64,
    /// Generator threads that have panicked. The reports do not contain what their switches sent and received.
    pub ended_threads: usize,
    /// The first few reasons, each once.
    pub reasons: Vec<String>,
}

impl Faults {
    pub(crate) fn note(&mut self, was_known: bool, reason: String) {
        *(if was_known { &mut self.lost } else { &mut self.not_connected }) += 1;
        self.tell(reason);
    }

    fn tell(&mut self, reason: String) {
        if self.reasons.len() < FAULTS_TOLD && !self.reasons.contains(&reason) {
            self.reasons.push(reason);
        }
    }

    /// Adds the faults of another report.
    pub fn add(&mut self, other: Faults) {
        self.not_connected += other.not_connected;
        self.lost += other.lost;
        self.ended_threads = self.ended_threads.max(other.ended_threads);
        other.reasons.into_iter().for_each(|reason| self.tell(reason));
    }

    /// Whether there was no fault.
    pub fn is_empty(&self) -> bool {
        self.not_connected == 0 && self.lost == 0 && self.ended_threads == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_never_answered_is_what_is_left() {
        let round =
            |sent, answered, outside| RoundReport { sent, answered, outside, ..RoundReport::default() };
        assert_eq!(round(10, 6, 3).unanswered(), 1);
        assert_eq!(round(10, 9, 9).unanswered(), 0, "some answered twice");
    }

    #[test]
    fn a_round_that_took_no_time_has_no_rate() {
        let round = RoundReport { answered: 5, ..RoundReport::default() };
        assert_eq!(round.responses_per_s(), 0.0);
        let round = RoundReport { answered: 5, took: Duration::from_millis(500), ..RoundReport::default() };
        assert_eq!(round.responses_per_s(), 10.0);
    }

    #[test]
    fn threads_add_up() {
        let one = |answered, ms| RoundReport {
            answered,
            took: Duration::from_millis(ms),
            answered_by_switch: vec![answered],
            ..RoundReport::default()
        };
        let mut both = one(5, 100);
        both.add(&one(7, 90));
        assert_eq!((both.answered, both.took.as_millis()), (12, 100));
        assert_eq!(both.answered_by_switch, [5, 7]);
    }

    #[test]
    fn many_faults_are_counted_and_few_are_told() {
        let mut faults = Faults::default();
        (0..100).for_each(|number| faults.note(number % 2 == 0, format!("reason {}", number % 20)));
        assert_eq!((faults.lost, faults.not_connected, faults.reasons.len()), (50, 50, FAULTS_TOLD));
        let mut both = Faults::default();
        assert!(both.is_empty());
        both.add(faults);
        assert_eq!((both.lost, both.reasons.len()), (50, FAULTS_TOLD));
    }
}
