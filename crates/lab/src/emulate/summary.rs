//! The result of an emulated network, as text and as JSON.
//!
//! Pure: the counters are arguments.

use std::fmt;
use std::time::Duration;

use emulator::validity::{Validity, Verdict};
use emulator::{EmulationCounters, PingReport, QueriesReport, SwitchCounters, Topology};
use serde::Serialize;

use super::pcaps::Recorded;
use super::player::ExpectationResult;
use super::queries::QueriesSeen;

/// How many lost pings JSON names. Others are only counted.
const LOST_NAMED: usize = 100;

/// How many lost pings the text names.
const LOST_SHOWN: usize = 5;

/// The result of a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Summary {
    pub(super) topology: String,
    pub(super) switches: usize,
    pub(super) hosts: usize,
    pub(super) links: usize,
    /// The time from the start until all switches were connected. `None` if they never were.
    pub(super) connected_after_ms: Option<f64>,
    pub(super) ran_ms: f64,
    pub(super) counters: Counted,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) pings: Option<Pings>,
    /// The results of series of queries, in the order of the file.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    queries: Vec<QueriesSeen>,
    /// The results of a scenario's expectations, in the order of its file.
    #[serde(skip_serializing_if = "Option::is_none")]
    expectations: Option<Vec<ExpectationResult>>,
    /// The files of captured frames.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pcaps: Vec<Recorded>,
    /// Only in virtual time: a digest of all that happened, the same for the same scenario and seed.
    #[serde(skip_serializing_if = "Option::is_none")]
    digest: Option<String>,
    /// Only in virtual time: how often a storm of frames forced the clock to advance.
    #[serde(skip_serializing_if = "Option::is_none")]
    storms: Option<u64>,
    /// Whether the machine has kept up, if that was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    validity: Option<Verdict>,
    /// Whether the expected results came true.
    pub(super) passed: bool,
}

/// The counters of all switches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Counted {
    connections: u64,
    connections_lost: u64,
    connections_refused: u64,
    attempts: u64,
    silences: u64,
    packet_ins: u64,
    packet_ins_dropped: u64,
    packet_outs: u64,
    flow_mods: u64,
    errors: u64,
    /// Packets for the controller that switches lost, for example because a queue of their profile was full.
    packet_ins_lost: u64,
    /// Rules for which a table had no room.
    rules_refused: u64,
    bad_messages: u64,
    frames_lost: u64,
    frames_not_sent: u64,
}

/// The result of `--ping-all`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Pings {
    sent: usize,
    pub(super) received: usize,
    dropped_percent: f64,
    /// `None` if no ping was answered.
    round_trip_ms: Option<RoundTrips>,
    /// The first lost pings.
    lost: Vec<LostPing>,
}

/// Round trips, including address resolution.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
struct RoundTrips {
    min: f64,
    median: f64,
    p99: f64,
    max: f64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct LostPing {
    from: String,
    to: String,
}

impl Summary {
    /// A run without expectations, which has passed.
    pub(super) fn new(
        name: &str,
        topology: &Topology,
        connected_after: Option<Duration>,
        ran: Duration,
        counters: EmulationCounters,
    ) -> Self {
        Summary {
            topology: name.to_owned(),
            switches: topology.switches.len(),
            hosts: topology.hosts.len(),
            links: topology.links.len(),
            connected_after_ms: connected_after.map(milliseconds),
            ran_ms: milliseconds(ran),
            counters: counters.into(),
            pings: None,
            queries: Vec::new(),
            expectations: None,
            pcaps: Vec::new(),
            digest: None,
            storms: None,
            validity: None,
            passed: true,
        }
    }

    /// Adds what switches counted themselves. In virtual time, nobody else counts messages.
    pub(super) fn with_switches(self, of: SwitchCounters) -> Self {
        let SwitchCounters { packet_ins_unheard: packet_ins_lost, rules_refused, .. } = of;
        let mut counters = Counted { packet_ins_lost, rules_refused, ..self.counters };
        if counters.connections == 0 {
            let SwitchCounters { packet_ins, flow_mods, packet_outs, errors, .. } = of;
            counters = Counted { packet_ins, flow_mods, packet_outs, errors, ..counters };
        }
        Summary { counters, ..self }
    }

    /// Adds pings, which must all be answered.
    pub(super) fn with_pings(self, report: &PingReport) -> Self {
        Summary { pings: Some(Pings::new(report)), passed: report.is_complete(), ..self }
    }

    /// Adds series of queries, each with its name.
    pub(super) fn with_queries(self, queries: &[(String, QueriesReport)]) -> Self {
        let seen = |(name, report): &(String, QueriesReport)| QueriesSeen::new(name, report);
        Summary { queries: queries.iter().map(seen).collect(), ..self }
    }

    /// Adds the files that were written.
    pub(super) fn with_pcaps(self, pcaps: Vec<Recorded>) -> Self {
        Summary { pcaps, ..self }
    }

    /// Adds the results of virtual time.
    pub(super) fn with_rehearsal(self, digest: u64, storms: u64) -> Self {
        Summary { digest: Some(format!("{digest:016x}")), storms: Some(storms), ..self }
    }

    /// Adds what the meter says. If it is strict, the run must not be invalid.
    pub(super) fn with_validity(self, validity: Option<Verdict>, strict: bool) -> Self {
        let is_invalid = validity.as_ref().is_some_and(|verdict| verdict.validity == Validity::Invalid);
        Summary { validity, passed: self.passed && !(strict && is_invalid), ..self }
    }

    /// Adds expectations, which must all hold.
    pub(super) fn with_expectations(self, judged: Vec<ExpectationResult>) -> Self {
        let passed = judged.iter().all(|judged| judged.held);
        Summary { expectations: Some(judged), passed, ..self }
    }
}

impl From<EmulationCounters> for Counted {
    fn from(counters: EmulationCounters) -> Self {
        Counted {
            connections: counters.connections,
            connections_lost: counters.connections_lost,
            connections_refused: counters.connections_refused,
            attempts: counters.attempts,
            silences: counters.silences,
            packet_ins: counters.packet_ins,
            packet_ins_dropped: counters.packet_ins_dropped,
            packet_outs: counters.packet_outs,
            flow_mods: counters.flow_mods,
            errors: counters.errors,
            packet_ins_lost: 0,
            rules_refused: 0,
            bad_messages: counters.bad_messages,
            frames_lost: counters.frames_lost,
            frames_not_sent: counters.frames_not_sent,
        }
    }
}

impl Pings {
    fn new(report: &PingReport) -> Self {
        let (sent, received) = (report.pairs.len(), report.answered());
        let mut times: Vec<Duration> = report.pairs.iter().filter_map(|pair| pair.round_trip).collect();
        times.sort_unstable();
        let at = |percent: usize| milliseconds(times[(times.len() * percent / 100).min(times.len() - 1)]);
        let round_trip_ms =
            (!times.is_empty()).then(|| RoundTrips { min: at(0), median: at(50), p99: at(99), max: at(100) });
        let lost = report.lost().take(LOST_NAMED);
        Pings {
            sent,
            received,
            dropped_percent: if sent == 0 { 0.0 } else { (sent - received) as f64 * 100.0 / sent as f64 },
            round_trip_ms,
            lost: lost.map(|pair| LostPing { from: pair.from.clone(), to: pair.to.clone() }).collect(),
        }
    }
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{}: {} switches, {} hosts, {} links",
            self.topology, self.switches, self.hosts, self.links
        )?;
        // In virtual time there are no connections, and messages only if switches play profiles.
        let is_virtual = self.digest.is_some();
        match self.connected_after_ms {
            Some(ms) => writeln!(f, "connected   all after {:.3} s", ms / 1000.0)?,
            None if is_virtual => {}
            None => writeln!(f, "connected   not all")?,
        }
        if let Some(pings) = &self.pings {
            pings.fmt(f)?;
        }
        self.queries.iter().try_for_each(|queries| queries.fmt(f))?;
        if !is_virtual || self.counters.packet_ins > 0 {
            self.counters.fmt(f)?;
        }
        for recorded in &self.pcaps {
            writeln!(f, "pcap        {recorded}")?;
        }
        if let Some(digest) = &self.digest {
            writeln!(f, "digest      {digest}")?;
        }
        if let Some(storms @ 1..) = self.storms {
            writeln!(f, "trouble     {storms} storms: frames went in circles")?;
        }
        if let Some(verdict) = &self.validity {
            writeln!(f, "validity    {}", verdict.to_string().replace('\n', "\n            "))?;
        }
        for judged in self.expectations.iter().flatten() {
            writeln!(f, "{judged}")?;
        }
        if let Some(all) = &self.expectations {
            let held = all.iter().filter(|judged| judged.held).count();
            writeln!(f, "{held} of {} expectations hold", all.len())?;
        }
        Ok(())
    }
}

impl fmt::Display for Pings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (sent, received) = (self.sent, self.received);
        let dropped = emulator::run::dropped_percent(sent, received);
        writeln!(f, "pings       {dropped}% dropped ({received}/{sent} received)")?;
        if let Some(times) = self.round_trip_ms {
            writeln!(
                f,
                "round trip  min {:.3} ms, median {:.3} ms, p99 {:.3} ms, max {:.3} ms",
                times.min, times.median, times.p99, times.max
            )?;
        }
        for lost in self.lost.iter().take(LOST_SHOWN) {
            writeln!(f, "lost        {} -> {}", lost.from, lost.to)?;
        }
        match (sent - received).saturating_sub(LOST_SHOWN) {
            0 => Ok(()),
            more => writeln!(f, "lost        … and {more} more"),
        }
    }
}

impl fmt::Display for Counted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "messages    {} packet-ins, {} flow mods, {} packet-outs, {} errors",
            self.packet_ins, self.flow_mods, self.packet_outs, self.errors
        )?;
        let trouble = [
            (self.connections_lost, "connections lost"),
            (self.connections_refused, "connections refused"),
            (self.silences, "of these for silence"),
            (self.bad_messages, "messages that could not be read"),
            (self.packet_ins_dropped, "packet-ins dropped"),
            (self.packet_ins_lost, "packet-ins lost by switches"),
            (self.rules_refused, "rules without room in a table"),
            (self.frames_lost, "frames lost"),
            (self.frames_not_sent, "frames that an interface did not take"),
        ];
        let trouble: Vec<String> = trouble
            .iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, what)| format!("{count} {what}"))
            .collect();
        if trouble.is_empty() { Ok(()) } else { writeln!(f, "trouble     {}", trouble.join(", ")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use emulator::PingOutcome;

    fn outcome(to: usize, round_trip_ms: Option<u64>) -> PingOutcome {
        let round_trip = round_trip_ms.map(Duration::from_millis);
        PingOutcome { from: "h1".into(), to: format!("h{to}"), round_trip }
    }

    fn summary(pairs: Vec<PingOutcome>) -> Summary {
        let counters = EmulationCounters { packet_ins: 7, connections_refused: 2, ..Default::default() };
        let topology = "single,3".parse().unwrap();
        let second = Some(Duration::from_secs(1));
        let report = PingReport { pairs };
        Summary::new("single,3", &topology, second, Duration::from_secs(2), counters).with_pings(&report)
    }

    #[test]
    fn what_was_lost_is_named_and_counted() {
        let mut pairs: Vec<_> = (0..200).map(|to| outcome(to, None)).collect();
        pairs.push(outcome(200, Some(4)));
        let summary = summary(pairs);
        assert!(!summary.passed);
        let text = summary.to_string();
        assert!(text.contains("pings       99% dropped (1/201 received)"), "{text}");
        assert!(text.contains("lost        h1 -> h4\nlost        … and 195 more\n"), "{text}");
        assert!(text.ends_with("trouble     2 connections refused\n"), "{text}");
        assert_eq!(summary.pings.unwrap().lost.len(), LOST_NAMED);
    }

    #[test]
    fn times_are_said_from_the_shortest_to_the_longest() {
        let summary = summary((1..=100).map(|to| outcome(to, Some(to as u64))).collect());
        assert!(summary.passed);
        let text = summary.to_string();
        let times = "round trip  min 1.000 ms, median 51.000 ms, p99 100.000 ms, max 100.000 ms";
        assert!(text.contains(times), "{text}");
        assert_eq!(serde_json::to_value(&summary).unwrap()["pings"]["received"], 100);
    }

    #[test]
    fn what_virtual_time_does_not_have_is_not_said() {
        let topology = "single,3".parse().unwrap();
        let counters = EmulationCounters::default();
        let summary =
            Summary::new("x", &topology, None, Duration::from_secs(2), counters).with_rehearsal(7, 3);
        let text = summary.to_string();
        assert!(!text.contains("connected") && !text.contains("messages"), "{text}");
        assert!(text.contains("trouble     3 storms"), "{text}");
    }

    #[test]
    fn frames_that_an_interface_did_not_take_are_said() {
        let counters = EmulationCounters { frames_not_sent: 4, ..Default::default() };
        let topology = "single,3".parse().unwrap();
        let summary = Summary::new("x", &topology, None, Duration::from_secs(2), counters).to_string();
        assert!(summary.contains("4 frames that an interface did not take"), "{summary}");
    }

    #[test]
    fn an_invalid_run_fails_only_if_the_operator_is_strict() {
        let busy = Verdict { validity: Validity::Invalid, seconds: 9, ..Default::default() };
        let judged = |verdict: &Verdict, strict| {
            summary(vec![outcome(1, Some(1))]).with_validity(Some(verdict.clone()), strict)
        };
        assert!(judged(&busy, false).passed && !judged(&busy, true).passed);
        let doubtful = Verdict { validity: Validity::Doubtful, ..busy.clone() };
        assert!(judged(&doubtful, true).passed);
        assert!(judged(&busy, true).to_string().contains("validity    invalid after 9 s and 0 releases"));
        assert_eq!(serde_json::to_value(judged(&busy, true)).unwrap()["validity"]["validity"], "invalid");
        assert!(!summary(Vec::new()).with_validity(None, true).passed, "the pings still count");
    }

    #[test]
    fn no_pings_at_all_did_not_come_true() {
        assert!(!summary(Vec::new()).passed);
    }
}
