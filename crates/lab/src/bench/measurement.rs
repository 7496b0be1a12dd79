//! One measurement: a load on one controller, round by round, and its report.
//!
//! In: the parameters of the load. Out: a [`Report`], which includes faults. Only a load that cannot begin is an
//! error.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use load::figures::{Latencies, Percentiles, median};
use load::{Connected, Counting, Faults, Hosts, Learned, Load, LoadOptions, Mode, Progress, RoundReport};
use serde::Serialize;

use super::args::LoadArgs;
use crate::machine::Machine;
use burnet::cli::CommandError;
use node::descriptors;

/// Descriptors that this process needs besides its switches'.
const OTHER_DESCRIPTORS: u64 = 64;

/// A load that is connected, and the rounds so far.
pub struct Measurement {
    load: Load,
    options: LoadOptions,
    mode: Mode,
    round_length: Duration,
    connected: Connected,
    learned: Learned,
    rounds: Vec<RoundReport>,
    faults: Faults,
}

impl Measurement {
    /// Connects the switches to the target, and makes their hosts known to it. The result is in the report.
    ///
    /// # Errors
    /// That the system has not enough threads or descriptors for it.
    pub fn begin(
        args: &LoadArgs,
        target: SocketAddr,
        watched: impl FnOnce(Arc<Progress>),
    ) -> Result<Self, CommandError> {
        let mut measurement = Measurement::connect(args, target, watched)?;
        if measurement.is_connected() {
            measurement.learned = measurement.load.learn(args.patience());
        }
        Ok(measurement)
    }

    /// Connects the switches and no more.
    ///
    /// # Errors
    /// As [`Measurement::begin`].
    pub fn connect(
        args: &LoadArgs,
        target: SocketAddr,
        watched: impl FnOnce(Arc<Progress>),
    ) -> Result<Self, CommandError> {
        check_descriptors(u64::from(args.switches), descriptors::allowed())?;
        let options = args.options(target);
        let mut load = Load::start(&options).map_err(|error| CommandError::DidNotWork(error.to_string()))?;
        watched(load.progress());
        let connected = load.connect(args.patience());
        Ok(Measurement {
            load,
            options,
            mode: args.mode(),
            round_length: args.round_length(),
            connected,
            learned: Learned::default(),
            rounds: Vec::new(),
            faults: Faults::default(),
        })
    }

    /// Switches that the controller knew when they had connected.
    pub fn connected(&self) -> usize {
        self.connected.switches
    }

    /// Whether there is anybody to measure.
    pub fn is_connected(&self) -> bool {
        self.connected.switches > 0
    }

    /// Whether it was ended from outside.
    pub fn is_stopped(&self) -> bool {
        self.load.progress().is_stopped()
    }

    /// A round that does not count.
    pub fn warm_up(&mut self) -> RoundReport {
        self.load.round(self.mode, self.round_length)
    }

    /// A round that counts; `None` if it was ended before its time, and does not count.
    pub fn round(&mut self) -> Option<&RoundReport> {
        let round = self.load.round(self.mode, self.round_length);
        if self.is_stopped() {
            return None;
        }
        self.rounds.push(round);
        self.rounds.last()
    }

    /// Responses a second of each round.
    pub fn rates(&self) -> Vec<f64> {
        self.rounds.iter().map(RoundReport::responses_per_s).collect()
    }

    /// The report.
    pub fn report(mut self) -> Report {
        self.faults.add(self.load.take_faults());
        let stopped = self.is_stopped();
        let Measurement { options, mode, round_length, connected, learned, rounds, faults, .. } = self;
        let mut latencies = Latencies::default();
        rounds.iter().for_each(|round| latencies.add(&round.latencies));
        let by_switch = answered_by_switch(&rounds);
        let sum = |of: fn(&RoundReport) -> u64| rounds.iter().map(of).sum();
        let rates: Vec<f64> = rounds.iter().map(RoundReport::responses_per_s).collect();
        let incomplete = incomplete(&options, connected, learned, &rounds, &faults, stopped);
        Report {
            target: options.target.to_string(),
            mode: if matches!(mode, Mode::Throughput | Mode::AtMost(_)) { "throughput" } else { "latency" },
            version: options.version.to_string(),
            switches: options.switches,
            hosts: options.hosts.sources(),
            traffic: match options.hosts {
                Hosts::Ring(_) => "ring",
                Hosts::OneDestination(_) => "one_destination",
            },
            count: match options.counting {
                Counting::Buffers => "buffers",
                Counting::Messages => "messages",
                Counting::FlowMods => "flow-mods",
            },
            threads: options.threads,
            rate_per_s: if let Mode::Rate(per_s) = mode { Some(per_s) } else { None },
            at_most_per_s: if let Mode::AtMost(per_s) = mode { Some(per_s) } else { None },
            seconds: round_length.as_secs_f64(),
            responses_per_s: median(&rates).unwrap_or(0.0),
            latency_us: latencies.percentiles().map(Into::into),
            sent: sum(|round| round.sent),
            answered: sum(|round| round.answered),
            outside: sum(|round| round.outside),
            unanswered: sum(RoundReport::unanswered),
            answered_by_switch: Spread::of(&by_switch),
            rounds: rounds.iter().map(Round::of).collect(),
            connected: ConnectedSwitches {
                switches: connected.switches,
                seconds: connected.took.as_secs_f64(),
            },
            learned: LearnedHosts {
                announced: learned.announced,
                answered: learned.answered,
                seconds: learned.took.as_secs_f64(),
            },
            connections: ConnectionFaults {
                not_connected: faults.not_connected,
                lost: faults.lost,
                reasons: faults.reasons,
            },
            complete: incomplete.is_none(),
            incomplete,
            machine: Machine::describe(),
            burnet: env!("CARGO_PKG_VERSION"),
        }
    }
}

/// The report of a measurement, as it is printed in JSON.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// The controller's address.
    pub target: String,
    /// `throughput` or `latency`.
    pub mode: &'static str,
    /// OpenFlow's.
    pub version: String,
    /// Switches asked for.
    pub switches: u16,
    /// Hosts of each.
    pub hosts: u32,
    /// `ring` or `one_destination`.
    pub traffic: &'static str,
    /// Which messages counted as answers: `buffers` or `messages`.
    pub count: &'static str,
    /// Threads of the generator.
    pub threads: usize,
    /// The fixed rate, if there was one.
    pub rate_per_s: Option<f64>,
    /// The assumed rate of a link, if one was given.
    pub at_most_per_s: Option<f64>,
    /// The planned duration of each round.
    pub seconds: f64,
    /// The median of the rounds.
    pub responses_per_s: f64,
    /// Of all rounds together, where the mode measures it.
    pub latency_us: Option<LatencyUs>,
    /// Packet-ins sent.
    pub sent: u64,
    /// Answers within the rounds.
    pub answered: u64,
    /// Answers before a round counted, or after its end.
    pub outside: u64,
    /// Packet-ins without an answer.
    pub unanswered: u64,
    /// How evenly the switches were served, over all rounds.
    pub answered_by_switch: Spread,
    /// Each round that counts.
    pub rounds: Vec<Round>,
    /// The time and failures of connecting.
    pub connected: ConnectedSwitches,
    /// The time and failures of learning.
    pub learned: LearnedHosts,
    /// The failures of connections.
    pub connections: ConnectionFaults,
    /// Whether all was as it was asked for.
    pub complete: bool,
    /// Why not.
    pub incomplete: Option<String>,
    /// The machine.
    pub machine: Machine,
    /// This program's version.
    pub burnet: &'static str,
}

/// One round.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Round {
    /// Answers within the round, by its length.
    pub responses_per_s: f64,
    /// Its duration.
    pub seconds: f64,
    /// Packet-ins sent.
    pub sent: u64,
    /// Answers within it.
    pub answered: u64,
    /// Answers before it counted, or after its end.
    pub outside: u64,
    /// Packet-ins without an answer.
    pub unanswered: u64,
    /// Flow mods that came, whatever they answer.
    pub flow_mods: u64,
    /// Packet-outs, likewise.
    pub packet_outs: u64,
    /// Jain's index over the answers of the switches.
    pub answered_by_switch: Spread,
    /// `None` if the mode does not measure latency.
    pub latency_us: Option<LatencyUs>,
}

/// Percentiles of latencies, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct LatencyUs {
    /// Half are at most this.
    pub p50: f64,
    /// 90 %.
    pub p90: f64,
    /// 99 %.
    pub p99: f64,
    /// 99.9 %.
    pub p99_9: f64,
    /// The longest.
    pub max: f64,
}

/// The least and the most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Spread {
    /// The switch that got fewest.
    pub min: u64,
    /// The one that got most.
    pub max: u64,
}

/// The time and failures of connecting.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ConnectedSwitches {
    /// Switches that the controller knew.
    pub switches: usize,
    /// After so long.
    pub seconds: f64,
}

/// The time and failures of learning.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct LearnedHosts {
    /// Announcements sent.
    pub announced: u64,
    /// Announcements answered.
    pub answered: u64,
    /// In so long.
    pub seconds: f64,
}

/// The failures of connections.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ConnectionFaults {
    /// Attempts that came to nothing.
    pub not_connected: u64,
    /// Connections lost later on.
    pub lost: u64,
    /// The first reasons.
    pub reasons: Vec<String>,
}

impl From<Percentiles> for LatencyUs {
    fn from(found: Percentiles) -> Self {
        LatencyUs {
            p50: found.p50_us,
            p90: found.p90_us,
            p99: found.p99_us,
            p99_9: found.p99_9_us,
            max: found.max_us,
        }
    }
}

impl Spread {
    fn of(counts: &[u64]) -> Spread {
        let (min, max) = (counts.iter().min(), counts.iter().max());
        Spread { min: min.copied().unwrap_or(0), max: max.copied().unwrap_or(0) }
    }
}

impl Round {
    fn of(round: &RoundReport) -> Round {
        Round {
            responses_per_s: round.responses_per_s(),
            seconds: round.took.as_secs_f64(),
            sent: round.sent,
            answered: round.answered,
            outside: round.outside,
            unanswered: round.unanswered(),
            flow_mods: round.flow_mods,
            packet_outs: round.packet_outs,
            answered_by_switch: Spread::of(&round.answered_by_switch),
            latency_us: round.latencies.percentiles().map(Into::into),
        }
    }
}

/// Answers of each switch over all rounds.
fn answered_by_switch(rounds: &[RoundReport]) -> Vec<u64> {
    let switches = rounds.iter().map(|round| round.answered_by_switch.len()).max().unwrap_or(0);
    let answered =
        |switch: usize| rounds.iter().filter_map(|round| round.answered_by_switch.get(switch)).sum();
    (0..switches).map(answered).collect()
}

/// Why the figures are not what was asked for, if so.
fn incomplete(
    options: &LoadOptions,
    connected: Connected,
    learned: Learned,
    rounds: &[RoundReport],
    faults: &Faults,
    stopped: bool,
) -> Option<String> {
    let reasons = faults.reasons.join("; ");
    let asked = usize::from(options.switches);
    if connected.switches < asked {
        let why = if reasons.is_empty() { "it sent them no features request".to_owned() } else { reasons };
        let Connected { switches, took } = connected;
        let seconds = took.as_secs_f64();
        return Some(format!(
            "the controller knew {switches} of {asked} switches after {seconds:.1} s: {why}"
        ));
    }
    if faults.ended_threads > 0 {
        let threads = faults.ended_threads;
        return Some(format!("{threads} of the generator's threads ended by a fault of their own"));
    }
    if faults.lost > 0 {
        return Some(format!("{} connections were lost and opened again: {reasons}", faults.lost));
    }
    if stopped {
        return Some("it was ended before its time".to_owned());
    }
    if let Some(round) = rounds.iter().find(|round| round.answered == 0) {
        let said = round.flow_mods + round.packet_outs;
        return Some(match (round.outside, options.counting) {
            (1.., _) => {
                "there was a round whose answers all came outside of it: ask for longer ones".to_owned()
            }
            (0, Counting::Buffers) if said > 0 => {
                "the controller's answers name no buffers, and --count messages counts all the same"
                    .to_owned()
            }
            _ => "there was a round in which the controller answered nothing".to_owned(),
        });
    }
    (learned.answered < learned.announced).then(|| {
        format!(
            "the controller answered {} of {} announcements of hosts, so it may not know all",
            learned.answered, learned.announced
        )
    })
}

/// Each switch is a descriptor.
fn check_descriptors(switches: u64, allowed: Option<u64>) -> Result<(), CommandError> {
    let wanted = switches + OTHER_DESCRIPTORS;
    match allowed {
        Some(allowed) if allowed < wanted => Err(CommandError::Usage(format!(
            "{switches} switches take {wanted} descriptors, and this user may have {allowed}: ask for fewer, or raise the limit (ulimit -Hn)"
        ))),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn why(connected: usize, answered: &[u64], said: u64, lost: u64, learned: u64) -> Option<String> {
        let faults = Faults { lost, reasons: vec!["refused".to_owned()], ..Faults::default() };
        why_with(connected, answered, said, learned, faults)
    }

    fn why_with(
        connected: usize,
        answered: &[u64],
        said: u64,
        learned: u64,
        faults: Faults,
    ) -> Option<String> {
        let options = LoadOptions {
            target: ([127, 0, 0, 1], 1).into(),
            switches: 2,
            first_datapath: 1,
            version: openflow::Version::V1_0,
            hosts: Hosts::Ring(2),
            counting: Counting::Buffers,
            threads: 1,
            sleeps: false,
        };
        let connected = Connected { switches: connected, took: Duration::from_secs(1) };
        let learned = Learned { announced: 4, answered: learned, took: Duration::ZERO };
        let round =
            |answered: &u64| RoundReport { answered: *answered, flow_mods: said, ..RoundReport::default() };
        let rounds: Vec<RoundReport> = answered.iter().map(round).collect();
        incomplete(&options, connected, learned, &rounds, &faults, false)
    }

    #[test]
    fn more_switches_than_descriptors_are_refused() {
        assert!(check_descriptors(1000, None).is_ok() && check_descriptors(960, Some(1024)).is_ok());
        let refused = check_descriptors(961, Some(1024)).unwrap_err().to_string();
        assert!(
            refused.contains("961 switches take 1025 descriptors, and this user may have 1024"),
            "{refused}"
        );
    }

    #[test]
    fn what_is_missing_is_said() {
        let check = |found: Option<String>, expected: &str| {
            let found = found.unwrap_or_default();
            assert!(found.contains(expected), "{found}");
        };
        check(why(1, &[], 0, 0, 0), "knew 1 of 2 switches after 1.0 s: refused");
        check(why(2, &[5], 0, 3, 4), "3 connections were lost and opened again: refused");
        check(why(2, &[5, 0], 0, 0, 4), "answered nothing");
        check(why(2, &[0], 7, 0, 4), "--count messages");
        check(why(2, &[0, 5], 0, 0, 4), "answered nothing");
        check(why(2, &[5], 0, 0, 3), "3 of 4 announcements");
        assert_eq!(why(2, &[5], 5, 0, 4), None);
        let broken = Faults { ended_threads: 1, ..Faults::default() };
        check(why_with(2, &[5], 5, 4, broken), "1 of the generator's threads ended");
    }

    #[test]
    fn answers_of_a_switch_add_up_over_rounds() {
        let round =
            |counts: &[u64]| RoundReport { answered_by_switch: counts.to_vec(), ..RoundReport::default() };
        let by_switch = answered_by_switch(&[round(&[1, 5]), round(&[2, 0])]);
        assert_eq!(by_switch, [3, 5]);
        assert_eq!(Spread::of(&by_switch), Spread { min: 3, max: 5 });
        assert_eq!(Spread::of(&[]), Spread::default());
    }
}
