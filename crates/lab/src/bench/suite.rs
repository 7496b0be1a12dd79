//! `burnet bench suite`: Burnet's own figures, all in one run, beside what was asked of them.
//!
//! ```text
//!   nodes with the learning switch, trusted and in a process zone ─┐
//!   sinks ─────────────────────────────────────────────────────────┼─ rounds in turn ──> a figure each: asked, measured
//!   nodes that are started, looked at, and ended ──────────────────┘
//! ```
//!
//! It starts everything that it needs, on free ports, and ends it. A missed figure is printed but is not a failure,
//! because machines differ. The exit code is 1 only if something could not be measured.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use emulator::{Emulation, SwitchOptions};
use load::figures::Percentiles;
use load::first_contact;
use serde::Serialize;

use super::args::{LoadArgs, ModeName, SuiteArgs};
use super::compare::{self, Comparison};
use super::machine::Machine;
use super::measurement::Measurement;
use super::target::{Target, free_address};
use super::watch::Watch;
use super::{memory, overload, say};
use crate::own_node::OwnNode;
use burnet::cli::CommandError;
use burnet::commands::{json, table};
use config::LogLevel;

const TRUSTED: &str = "node:learning-switch=trusted";
const PROCESS: &str = "node:learning-switch";
const SINK: &str = "sink";

/// How long what has been connected is left alone before its memory is looked at.
const SETTLE: Duration = Duration::from_secs(2);
/// How long a start, or connecting many switches, may take before it counts as not working.
const PATIENCE: Duration = Duration::from_secs(30);
/// Starts that are timed; their median counts.
const STARTS: usize = 5;
/// How long many emulated switches must stay connected.
const STAY: Duration = Duration::from_secs(3);
/// Port statuses that are timed.
const PORT_STATUSES: u32 = 1000;
const MANY_SWITCHES: u64 = 2000;
const IDLE_SWITCHES: u16 = 1000;

/// A measured figure, beside its bound.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Figure {
    /// The name of the figure.
    pub name: String,
    /// The bound and its unit.
    pub asked: Asked,
    /// The measured value.
    pub measured: f64,
    /// The smallest and the largest value, if there are several.
    pub spread: Option<(f64, f64)>,
    /// Whether the bound is met.
    pub reached: bool,
    /// How it was measured, and what else was seen.
    pub how: String,
}

/// A bound.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Asked {
    /// The value of the bound.
    pub bound: f64,
    /// Whether the bound is a lower one.
    pub at_least: bool,
    /// The unit of the bound and of the measured value.
    pub unit: Unit,
}

/// The unit of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// A ratio.
    Times,
    /// Responses a second.
    PerSecond,
    /// 1,048,576 bytes.
    Mib,
    /// 1,024 bytes.
    Kib,
    /// Milliseconds.
    Ms,
}

impl Asked {
    const fn at_least(bound: f64, unit: Unit) -> Asked {
        Asked { bound, at_least: true, unit }
    }

    const fn at_most(bound: f64, unit: Unit) -> Asked {
        Asked { bound, at_least: false, unit }
    }

    fn is_reached(self, measured: f64) -> bool {
        if self.at_least { measured >= self.bound } else { measured <= self.bound }
    }

    /// The bound and a measured value, as they are read.
    fn written(self, measured: f64) -> (String, String) {
        let sign = if self.at_least { ">=" } else { "<=" };
        (format!("{sign} {}", self.unit.written(self.bound)), self.unit.written(measured))
    }
}

impl Unit {
    fn written(self, value: f64) -> String {
        match self {
            Unit::Times => format!("{value:.3}"),
            Unit::PerSecond => format!("{value:.0}/s"),
            Unit::Mib => format!("{value:.1} MiB"),
            Unit::Kib => format!("{value:.1} KiB"),
            Unit::Ms if value < 10.0 => format!("{value:.1} ms"),
            Unit::Ms => format!("{value:.0} ms"),
        }
    }
}

/// The results of a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct Suite {
    figures: Vec<Figure>,
    /// What could not be measured, and why.
    missing: Vec<String>,
    machine: Machine,
    burnet: &'static str,
}

/// One of the measurements, by the word with which it is asked for.
type Part = (&'static str, fn(&Bench<'_>) -> Result<Vec<Figure>, CommandError>);

/// The parts, in their order.
pub const PARTS: [&str; 8] =
    ["throughput", "zones", "one-switch", "latency", "scaling", "memory", "start", "overload"];

const RUN: [Part; 8] = [
    (PARTS[0], throughput),
    (PARTS[1], zones),
    (PARTS[2], one_switch),
    (PARTS[3], latency),
    (PARTS[4], scaling),
    (PARTS[5], memory_of_a_node),
    (PARTS[6], start),
    (PARTS[7], port_status_under_a_flood),
];

/// What every part needs.
struct Bench<'a> {
    args: &'a SuiteArgs,
    watch: Watch,
}

/// Which part begins, of how many, and how long the rest may take if it takes as long as what is done.
fn progress(done: usize, total: usize, name: &str, elapsed: Duration) -> String {
    let left = u32::try_from(done).ok().filter(|done| *done > 0).map(|done| {
        let rest = u32::try_from(total).unwrap_or(u32::MAX).saturating_sub(done);
        let left_s = (elapsed / done).saturating_mul(rest).as_secs();
        format!(", about {} min {} s left", left_s / 60, left_s % 60)
    });
    format!("{} of {total}: {name}{}", done + 1, left.unwrap_or_default())
}

/// Measures and prints.
pub fn suite(args: &SuiteArgs) -> Result<ExitCode, CommandError> {
    let bench = Bench { args, watch: Watch::start(args.progress)? };
    let (mut figures, mut missing) = (Vec::new(), Vec::new());
    let is_wanted = |name: &str| args.only.is_empty() || args.only.iter().any(|it| it == name);
    let parts: Vec<_> = RUN.iter().filter(|(name, _)| is_wanted(name)).collect();
    let began = Instant::now();
    for (done, (name, part)) in parts.iter().enumerate() {
        eprintln!("burnet: {}", progress(done, parts.len(), name, began.elapsed()));
        match bench.go_on().and_then(|()| part(&bench)) {
            Ok(found) => {
                if !args.json {
                    found.iter().try_for_each(|figure| say(&line(figure)))?;
                }
                figures.extend(found);
            }
            Err(error) => missing.push(format!("{name}: {error}")),
        }
    }
    missing.iter().for_each(|why| eprintln!("burnet: {why}"));
    let code = ExitCode::from(u8::from(!missing.is_empty()));
    let suite = Suite { figures, missing, machine: Machine::describe(), burnet: env!("CARGO_PKG_VERSION") };
    say(if args.json { json(&suite)? } else { text(&suite) }.trim_end())?;
    Ok(code)
}

fn line(figure: &Figure) -> String {
    let (asked, measured) = figure.asked.written(figure.measured);
    format!("{}: {measured} (asked {asked}); {}", figure.name, figure.how)
}

fn text(suite: &Suite) -> String {
    let row = |figure: &Figure| {
        let (asked, measured) = figure.asked.written(figure.measured);
        let spread = figure.spread.map(|(min, max)| format!("{min:.3} - {max:.3}"));
        let reached = if figure.reached { "yes" } else { "no" };
        [figure.name.clone(), asked, measured, spread.unwrap_or_else(|| "-".to_owned()), reached.to_owned()]
    };
    let rows: Vec<[String; 5]> = suite.figures.iter().map(row).collect();
    format!(
        "\n{}\n\n{}",
        suite.machine,
        table::columns(["FIGURE", "ASKED", "MEASURED", "SPREAD", "REACHED"], &rows)
    )
}

fn figure(name: String, asked: Asked, measured: f64, how: String) -> Figure {
    Figure { name, asked, measured, spread: None, reached: asked.is_reached(measured), how }
}

impl Bench<'_> {
    fn load(&self, mode: ModeName, switches: u16, hosts: u32) -> LoadArgs {
        LoadArgs {
            switches,
            hosts: Some(hosts),
            mode,
            seconds: self.args.seconds,
            rounds: Some(self.args.rounds),
            ..LoadArgs::default()
        }
    }

    /// An error once a signal has come: nothing more is begun then.
    fn go_on(&self) -> Result<(), CommandError> {
        match self.watch.is_stopped() {
            true => Err(CommandError::DidNotWork("it was told to stop".to_owned())),
            false => Ok(()),
        }
    }

    /// Two targets under loads that differ or not.
    fn compare(&self, a: (&str, &LoadArgs), b: (&str, &LoadArgs)) -> Result<Comparison, CommandError> {
        self.go_on()?;
        let target = |name: &str| name.parse::<Target>().map_err(CommandError::Usage);
        compare::run((&target(a.0)?, a.1), (&target(b.0)?, b.1), &self.watch)
    }
}

/// Of a comparison: the ratio of the rates.
fn ratio_of(name: String, asked: Asked, comparison: &Comparison) -> Result<Figure, CommandError> {
    let Some(ratio) = &comparison.ratio else {
        let why = comparison.a.incomplete.as_ref().or(comparison.b.incomplete.as_ref());
        let why = why.map_or("nothing was answered", String::as_str);
        return Err(CommandError::DidNotWork(format!("{name}: {why}")));
    };
    let Comparison { a_target, b_target, a, b, .. } = comparison;
    let unanswered = |count: u64| if count > 0 { format!(", {count} unanswered") } else { String::new() };
    let how = format!(
        "{a_target} {:.0}/s{}, {b_target} {:.0}/s{}, {} pairs of rounds",
        a.responses_per_s,
        unanswered(a.unanswered),
        b.responses_per_s,
        unanswered(b.unanswered),
        ratio.pairs.len(),
    );
    let spread = Some((ratio.min, ratio.max));
    Ok(Figure { spread, ..figure(name, asked, ratio.median, how) })
}

fn throughput(bench: &Bench<'_>) -> Result<Vec<Figure>, CommandError> {
    let load = bench.load(ModeName::Throughput, 16, 1000);
    let compared = bench.compare((TRUSTED, &load), (SINK, &load))?;
    let name = "throughput, 16 switches: trusted by sink".to_owned();
    Ok(vec![ratio_of(name, Asked::at_least(0.5, Unit::Times), &compared)?])
}

fn zones(bench: &Bench<'_>) -> Result<Vec<Figure>, CommandError> {
    let load = bench.load(ModeName::Throughput, 16, 1000);
    let compared = bench.compare((PROCESS, &load), (TRUSTED, &load))?;
    let name = "throughput, 16 switches: process by trusted".to_owned();
    Ok(vec![ratio_of(name, Asked::at_least(0.8, Unit::Times), &compared)?])
}

fn one_switch(bench: &Bench<'_>) -> Result<Vec<Figure>, CommandError> {
    let load = bench.load(ModeName::Throughput, 1, 1000);
    let compared = bench.compare((PROCESS, &load), (TRUSTED, &load))?;
    let of = |zone: &str, per_s: f64| {
        let name = format!("throughput, 1 switch: {zone}");
        figure(
            name,
            Asked::at_least(1e6, Unit::PerSecond),
            per_s,
            format!("median of {} rounds", bench.args.rounds),
        )
    };
    Ok(vec![of("process", compared.a.responses_per_s), of("trusted", compared.b.responses_per_s)])
}

fn latency(bench: &Bench<'_>) -> Result<Vec<Figure>, CommandError> {
    let mut figures = Vec::new();
    for switches in [1, 16, 64] {
        let load = bench.load(ModeName::Latency, switches, 1000);
        let compared = bench.compare((TRUSTED, &load), (SINK, &load))?;
        let name = format!("latency mode, {switches} switches: trusted by sink");
        figures.push(ratio_of(name, Asked::at_least(0.85, Unit::Times), &compared)?);
        if let (Some(p99), Some(a), Some(b)) =
            (&compared.p99_ratio, compared.a.latency_us, compared.b.latency_us)
        {
            let name = format!("p99 of latency, {switches} switches: trusted by sink");
            let how = format!("{:.1} us, sink {:.1} us", a.p99, b.p99);
            let spread = Some((p99.min, p99.max));
            figures
                .push(Figure { spread, ..figure(name, Asked::at_most(2.0, Unit::Times), p99.median, how) });
        }
    }
    Ok(figures)
}

fn scaling(bench: &Bench<'_>) -> Result<Vec<Figure>, CommandError> {
    const KEPT: Asked = Asked::at_least(0.75, Unit::Times);
    let mut figures = Vec::new();
    for (few, many) in [
        ((1, 1000), (1024, 1000)),
        ((16, 1000), (1024, 1000)),
        ((1, 100), (1, 100_000)),
        ((16, 100), (16, 100_000)),
    ] {
        let load = |(switches, hosts)| bench.load(ModeName::Throughput, switches, hosts);
        let compared = bench.compare((TRUSTED, &load(many)), (TRUSTED, &load(few)))?;
        let said = |(switches, hosts): (u16, u32)| format!("{switches} switches of {hosts} hosts");
        figures.push(ratio_of(
            format!("throughput, trusted: {} by {}", said(many), said(few)),
            KEPT,
            &compared,
        )?);
    }
    Ok(figures)
}

fn memory_of_a_node(bench: &Bench<'_>) -> Result<Vec<Figure>, CommandError> {
    let Target::Node(app) = PROCESS.parse().map_err(CommandError::Usage)? else { return Ok(Vec::new()) };
    let mut node = OwnNode::start(&[app], LogLevel::Error)?;
    let address = node.wait_until_it_listens()?;
    std::thread::sleep(SETTLE);
    let gone = || CommandError::DidNotWork("the node ended while it was looked at".to_owned());
    let alone = memory::of_tree(node.pid()).ok_or_else(gone)?;
    let load = bench.load(ModeName::Latency, IDLE_SWITCHES, 2);
    let idle = Measurement::connect(&load, address, |progress| bench.watch.add(PROCESS, progress))?;
    std::thread::sleep(SETTLE);
    let with_switches = memory::of_tree(node.pid()).ok_or_else(gone)?;
    let connected = idle.connected();
    drop(idle);
    let per_switch = with_switches.saturating_sub(alone) as f64 / 1024.0 / connected.max(1) as f64;
    let how = "Pss of all its processes".to_owned();
    Ok(vec![
        figure(
            "memory of a node with the learning switch".to_owned(),
            Asked::at_most(30.0, Unit::Mib),
            alone as f64 / 1048576.0,
            how,
        ),
        figure(
            "memory of a node per connected idle switch".to_owned(),
            Asked::at_most(10.0, Unit::Kib),
            per_switch,
            format!("{connected} switches connected"),
        ),
    ])
}

fn start(bench: &Bench<'_>) -> Result<Vec<Figure>, CommandError> {
    let mut figures = Vec::new();
    for target in [PROCESS, TRUSTED] {
        let mut times = Vec::new();
        for _ in 0..STARTS {
            bench.go_on()?;
            times.push(start_once(target)?.as_secs_f64() * 1000.0);
        }
        let median = load::figures::median(&times).unwrap_or_default();
        let name = format!("start to first switch accepted: {target}");
        let how = format!("{STARTS} starts, until the switch's features were asked for");
        let fold = |with: fn(f64, f64) -> f64, from| times.iter().copied().fold(from, with);
        let spread = Some((fold(f64::min, f64::INFINITY), fold(f64::max, 0.0)));
        figures.push(Figure { spread, ..figure(name, Asked::at_most(100.0, Unit::Ms), median, how) });
    }
    bench.go_on()?;
    figures.push(many_switches()?);
    Ok(figures)
}

fn port_status_under_a_flood(bench: &Bench<'_>) -> Result<Vec<Figure>, CommandError> {
    bench.go_on()?;
    let (alone, flooded) = overload::delays(PORT_STATUSES)?;
    let nothing = || CommandError::DidNotWork("nothing was answered".to_owned());
    let (alone, flooded) =
        (alone.percentiles().ok_or_else(nothing)?, flooded.percentiles().ok_or_else(nothing)?);
    let lies = |it: &Percentiles| {
        format!("p50 {:.0}, p90 {:.0}, p99 {:.0}, most {:.0} us", it.p50_us, it.p90_us, it.p99_us, it.max_us)
    };
    let name = "port status to an app while another switch floods, p99".to_owned();
    let how = format!(
        "{} each; flooded: {}; not flooded: {}; packet-ins take the app 20 us",
        flooded.count,
        lies(&flooded),
        lies(&alone)
    );
    let spread = Some((flooded.p50_us / 1000.0, flooded.max_us / 1000.0));
    let asked = Asked::at_most(10.0, Unit::Ms);
    Ok(vec![Figure { spread, ..figure(name, asked, flooded.p99_us / 1000.0, how) }])
}

fn start_once(target: &str) -> Result<Duration, CommandError> {
    let Target::Node(app) = target.parse().map_err(CommandError::Usage)? else {
        return Ok(Duration::ZERO);
    };
    let address = free_address()?;
    let began = Instant::now();
    let _node = OwnNode::start_at(&address.to_string(), &[app], LogLevel::Error)?;
    let at = first_contact(address, PATIENCE)
        .ok_or_else(|| CommandError::DidNotWork("the node accepted no switch".to_owned()))?;
    Ok(at - began)
}

/// Emulated switches, with tables and hosts, on one node.
fn many_switches() -> Result<Figure, CommandError> {
    let Target::Node(app) = PROCESS.parse().map_err(CommandError::Usage)? else {
        return Err(CommandError::Usage(PROCESS.to_owned()));
    };
    let mut node = OwnNode::start(&[app], LogLevel::Error)?;
    let address = node.wait_until_it_listens()?;
    let trouble =
        |error: String| CommandError::DidNotWork(format!("the switches could not be emulated: {error}"));
    let topology = format!("linear,{MANY_SWITCHES}").parse().map_err(|error| trouble(format!("{error}")))?;
    let began = Instant::now();
    let network = Emulation::start(&topology, address, &SwitchOptions::default())
        .map_err(|error| trouble(error.to_string()))?;
    network.wait_connected(PATIENCE).map_err(|error| trouble(error.to_string()))?;
    let took = began.elapsed();
    std::thread::sleep(STAY);
    let lost = network.counters().connections_lost;
    network.stop();
    let name = format!("{MANY_SWITCHES} emulated switches connected");
    let how =
        format!("from the emulation's start; {lost} connections lost in the {} s after it", STAY.as_secs());
    let mut found = figure(name, Asked::at_most(5000.0, Unit::Ms), took.as_secs_f64() * 1000.0, how);
    found.reached &= lost == 0;
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_long_it_may_still_take_is_known_once_something_is_done() {
        let seconds = Duration::from_secs;
        assert_eq!(progress(0, 8, "cold", seconds(9)), "1 of 8: cold");
        assert_eq!(progress(2, 8, "cold", seconds(50)), "3 of 8: cold, about 2 min 30 s left");
    }

    #[test]
    fn what_is_asked_is_a_bound_on_one_side() {
        assert!(
            !Asked::at_least(0.5, Unit::Times).is_reached(0.49)
                && Asked::at_least(0.5, Unit::Times).is_reached(0.5)
        );
        assert!(
            !Asked::at_most(100.0, Unit::Ms).is_reached(101.0)
                && Asked::at_most(100.0, Unit::Ms).is_reached(7.0)
        );
        assert!(
            !Asked::at_least(0.5, Unit::Times).is_reached(f64::NAN),
            "what was not measured is not reached"
        );
    }

    #[test]
    fn bounds_and_values_are_of_one_unit() {
        let check = |asked: Asked, measured: f64, expected: (&str, &str)| {
            let (bound, value) = asked.written(measured);
            assert_eq!((bound.as_str(), value.as_str()), expected);
        };
        check(Asked::at_least(0.85, Unit::Times), 0.9, (">= 0.850", "0.900"));
        check(Asked::at_most(10.0, Unit::Kib), 3.25, ("<= 10.0 KiB", "3.2 KiB"));
        check(Asked::at_least(1e6, Unit::PerSecond), 2.5e6, (">= 1000000/s", "2500000/s"));
    }
}
