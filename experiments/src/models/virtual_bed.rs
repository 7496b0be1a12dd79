//! The paper's testbed (Figure 1) in virtual time: a client, a server, a switch that plays a profile, and a controller.
//!
//! ```text
//!   Load, profile, seed ──> client ── 1 Gb/s ── switch ── 1 Gb/s ── server ──> Seen: completion, ingress, egress, refusals
//!                                                  └── controller
//! ```
//!
//! The same arguments give the same result. It does no I/O and reads no clock.

use emulator::network::Capture;
use emulator::topology::Endpoint;
use emulator::{
    Arrivals, LinkQuality, Outcome, Profiles, QueriesReport, QuerySpec, RuleTimeouts, Simulation,
    SwitchOptions, Topology,
};
use profile::Profile;
use profile::compare::Samples;
use std::time::Duration;

use super::controller::{SharedLog, controller};
use super::packet_key::{DelayFinder, PacketDelay, PacketKey};

/// How long a query may take.
pub const TIMEOUT: Duration = Duration::from_secs(10);

/// What Redis puts around a value.
const AROUND_A_VALUE_BYTES: u64 = 7;
/// The rate of the testbed's links.
const LINK_BITS_PER_S: u64 = 1_000_000_000;
/// The time between two looks at the copies of frames: shorter than until the network has as many as it keeps.
const STEP: Duration = Duration::from_millis(100);
/// Before clients begin, the hosts learn their addresses.
const WARM_UP: Duration = Duration::from_secs(2);

/// What the clients do.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// When they begin.
    pub arrivals: Arrivals,
    /// The time between them, or its mean.
    pub every: Duration,
    /// The value that each asks for.
    pub value_bytes: u64,
    /// For how long clients begin.
    pub lasts: Duration,
    /// What begins earlier is not counted.
    pub counted_from: Duration,
    /// How many may be open at once. More do not begin.
    pub open_max: u32,
    /// After this time, a query has failed.
    pub timeout: Duration,
    /// The time-outs of rules.
    pub rules: RuleTimeouts,
    /// Whether delays at ingress and egress are measured.
    pub with_delays: bool,
}

impl Load {
    /// Figure 2's: a 64-byte value at even times.
    pub fn of_figure_2(every: Duration, lasts: Duration, counted_from: Duration) -> Load {
        Load {
            arrivals: Arrivals::Even,
            every,
            value_bytes: 64,
            lasts,
            counted_from,
            open_max: emulator::host::query::OPEN_MAX,
            timeout: TIMEOUT,
            rules: RuleTimeouts::POX,
            with_delays: true,
        }
    }
}

/// What was seen. Times are in the order in which their packets or queries began.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// The completion times of queries, in microseconds.
    pub completion_us: Vec<f64>,
    /// The delays at ingress, in microseconds.
    pub ingress_us: Vec<f64>,
    /// The delays at egress, in microseconds.
    pub egress_us: Vec<f64>,
    /// Queries that were counted and have not completed.
    pub failed: usize,
    /// Queries that did not begin, because too many were open.
    pub skipped: u64,
    /// Flow mods of the whole run.
    pub flow_mods: u64,
    /// Those of them that the switch refused.
    pub refused: u64,
    /// Flow mods a second while queries were counted.
    pub setups_per_s: f64,
}

impl Seen {
    /// How many queries were counted.
    pub fn queries(&self) -> usize {
        self.completion_us.len() + self.failed
    }

    /// The times of all queries in microseconds. One that failed counts as one that took its whole time-out, and comes last: near
    /// saturation, failures are a part of the picture.
    pub fn times_us(&self, timeout: Duration) -> Vec<f64> {
        let failed = std::iter::repeat_n(timeout.as_secs_f64() * 1e6, self.failed);
        self.completion_us.iter().copied().chain(failed).collect()
    }

    /// The completion times as samples.
    ///
    /// # Errors
    /// No query was completed.
    pub fn completions(&self) -> Result<Samples, String> {
        samples(&self.completion_us, "completion times")
    }
}

/// Times as samples.
///
/// # Errors
/// There are none.
pub fn samples(us: &[f64], what: &str) -> Result<Samples, String> {
    Samples::new(us.to_vec()).map_err(|why| format!("{what}: {why}"))
}

/// Runs clients over a switch with this profile.
///
/// # Errors
/// The parameters are refused.
pub fn run(profile: &Profile, load: &Load, seed: u64) -> Result<Seen, String> {
    let log = SharedLog::default();
    let mut network = network(profile, load.rules, &log, seed)?;
    network.ping("h1", "h2", 1).map_err(|why| why.to_string())?;
    network.run_for(WARM_UP);
    log.with(|log| log.answered.clear());
    if load.with_delays {
        (0..2).for_each(|index| network.set_tap(Endpoint::Host { index }, true));
    }
    let spec = QuerySpec {
        reply_bytes: load.value_bytes + AROUND_A_VALUE_BYTES,
        arrivals: load.arrivals,
        every: load.every,
        duration: load.lasts,
        timeout: load.timeout,
        open_max: load.open_max,
        ..QuerySpec::new("h1", "h2")
    };
    let began = network.now();
    let id = network.start_queries(&spec).map_err(|why| why.to_string())?;
    let (from, until) = (began + load.counted_from, began + load.lasts);
    let mut finder = DelayFinder::default();
    let mut setups = 0;
    while network.now() < until + load.timeout {
        network.run_for(STEP);
        let answered = log.with(|log| std::mem::take(&mut log.answered));
        setups += answered.iter().filter(|it| (from..until).contains(&it.at)).count();
        let captured = network.take_captures();
        let sent = captured.iter().filter(|capture| capture.outgoing);
        sent.for_each(|capture| note(capture, |key, at| finder.on_sent(key, at)));
        for it in &answered {
            if let Some(key) = it.key {
                finder.on_packet_in(key, it.at);
                finder.on_flow_mod(key, it.at);
            }
        }
        let received = captured.iter().filter(|capture| !capture.outgoing);
        received.for_each(|capture| note(capture, |key, at| finder.on_received(key, at)));
    }
    let report = network.queries_report(id).ok_or("the series of queries is gone")?;
    let counted_s = (until - from).as_secs_f64();
    let (flow_mods, refused) = log.with(|log| (log.flow_mods, log.refused));
    let delays = |all: &[PacketDelay]| -> Vec<f64> {
        let counted = all.iter().filter(|delay| (from..until).contains(&delay.from));
        counted.map(|delay| us(delay.took)).collect()
    };
    Ok(Seen {
        ingress_us: delays(&finder.ingress),
        egress_us: delays(&finder.egress),
        skipped: report.skipped,
        flow_mods,
        refused,
        setups_per_s: f64::from(u32::try_from(setups).unwrap_or(u32::MAX)) / counted_s,
        ..completions(&report, load.counted_from)
    })
}

fn network(profile: &Profile, rules: RuleTimeouts, log: &SharedLog, seed: u64) -> Result<Simulation, String> {
    let mut topology: Topology = "single,2".parse().map_err(|why| format!("the testbed: {why}"))?;
    for link in &mut topology.links {
        link.quality = LinkQuality { rate_bits_per_s: Some(LINK_BITS_PER_S), ..LinkQuality::default() };
    }
    let options = SwitchOptions { profiles: Profiles::for_all(profile.clone()), ..SwitchOptions::default() };
    Ok(Simulation::with_controller(&topology, &options, seed, controller(rules, log.clone())))
}

fn note(capture: &Capture, mut what: impl FnMut(PacketKey, Duration)) {
    if let Some(key) = PacketKey::of_opening(&capture.frame) {
        what(key, capture.at);
    }
}

/// The queries that began in time, in the order of their beginning: a block of neighbours depends on one another.
fn completions(report: &QueriesReport, counted_from: Duration) -> Seen {
    let from = report.began_at + counted_from;
    let mut records: Vec<_> = report.records.iter().filter(|record| record.began_at >= from).collect();
    records.sort_by_key(|record| record.began_at);
    let took = records.iter().filter_map(|record| match record.outcome {
        Outcome::Completed(took) => Some(us(took)),
        Outcome::Refused | Outcome::Lost => None,
    });
    let completion_us: Vec<f64> = took.collect();
    let open = usize::try_from(report.open).unwrap_or(usize::MAX);
    Seen { failed: records.len() - completion_us.len() + open, completion_us, ..Seen::default() }
}

fn us(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

#[cfg(test)]
mod tests {
    use super::*;
    use profile::{OpenFlowVersion, built_in};

    fn load() -> Load {
        Load::of_figure_2(Duration::from_millis(100), Duration::from_secs(10), Duration::from_secs(5))
    }

    #[test]
    fn a_switch_without_delays_has_the_delays_of_its_links() {
        let mut null = Profile::null();
        null.packet_in.buffers_packets = Some(256);
        null.switch.openflow = vec![OpenFlowVersion::V10];
        let seen = run(&null, &load(), 1).unwrap();
        assert_eq!((seen.completion_us.len(), seen.failed, seen.refused), (50, 0, 0));
        assert!(seen.completion_us.iter().all(|us| *us < 1000.0), "well within 1 ms, as in the paper");
        // Each query has two packets that begin it, one in each direction.
        assert_eq!((seen.ingress_us.len(), seen.egress_us.len()), (100, 100));
        assert!(seen.ingress_us.iter().chain(&seen.egress_us).all(|us| *us < 10.0), "{seen:?}");
        assert_eq!(seen.setups_per_s, 20.0);
    }

    #[test]
    fn the_hp_answers_the_papers_load() {
        let load =
            Load::of_figure_2(Duration::from_millis(50), Duration::from_secs(20), Duration::from_secs(10));
        let seen = run(&built_in("hp-procurve-j9451a").unwrap(), &load, 1).unwrap();
        assert_eq!((seen.completion_us.len(), seen.failed), (200, 0));
        assert!(
            seen.flow_mods < 900,
            "two for each of 400 queries, and few for what was sent again: {}",
            seen.flow_mods
        );
    }

    #[test]
    fn a_query_takes_both_delays_of_the_switch_twice() {
        let seen = run(&built_in("fulcrum-monaco").unwrap(), &load(), 1).unwrap();
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
        let of_parts = 2.0 * (mean(&seen.ingress_us) + mean(&seen.egress_us));
        let whole = mean(&seen.completion_us);
        assert!((whole / of_parts - 1.0).abs() < 0.05, "{whole} µs of {of_parts} µs");
    }
}
