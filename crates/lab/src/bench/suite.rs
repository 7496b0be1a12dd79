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

use super::args::{LoadArgs, ModeName, PARTS, ServicesArgs, SuiteArgs};
use super::compare::{self, Comparison};
use super::figure::{Bound, Figure, Unit};
use super::measurement::Measurement;
use super::target::Target;
use super::watch::Watch;
use super::{overload, services};
use crate::machine::Machine;
use crate::own_node::{OwnNode, free_address};
use crate::printing::print_line;
use crate::processes::{proportional_bytes, tree};
use crate::progress::progress;
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

const RUN: [Part; PARTS.len()] = [
    (PARTS[0], throughput),
    (PARTS[1], zones),
    (PARTS[2], one_switch),
    (PARTS[3], latency),
    (PARTS[4], scaling),
    (PARTS[5], memory_of_a_node),
    (PARTS[6], start),
    (PARTS[7], port_status_under_a_flood),
    (PARTS[8], calls_of_services),
];

/// What every part needs.
struct Bench<'a> {
    args: &'a SuiteArgs,
    watch: Watch,
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
                    found.iter().try_for_each(|figure| print_line(&figure.line()))?;
                }
                figures.extend(found);
            }
            Err(error) => missing.push(format!("{name}: {error}")),
        }
    }
    missing.iter().for_each(|why| eprintln!("burnet: {why}"));
    let code = ExitCode::from(u8::from(!missing.is_empty()));
    let suite = Suite { figures, missing, machine: Machine::describe(), burnet: env!("CARGO_PKG_VERSION") };
    print_line(if args.json { json(&suite)? } else { text(&suite) }.trim_end())?;
    Ok(code)
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
fn ratio_of(name: impl Into<String>, asked: Bound, comparison: &Comparison) -> Result<Figure, CommandError> {
    let name = name.into();
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
    Ok(Figure::new(name, asked, ratio.median, how).between(ratio.min, ratio.max))
}

fn throughput(bench: &Bench<'_>) -> Result<Vec<Figure>, CommandError> {
    let load = bench.load(ModeName::Throughput, 16, 1000);
    let compared = bench.compare((TRUSTED, &load), (SINK, &load))?;
    let name = "throughput, 16 switches: trusted by sink";
    Ok(vec![ratio_of(name, Bound::at_least(0.3, Unit::Times), &compared)?])
}

fn zones(bench: &Bench<'_>) -> Result<Vec<Figure>, CommandError> {
    let load = bench.load(ModeName::Throughput, 16, 1000);
    let compared = bench.compare((PROCESS, &load), (TRUSTED, &load))?;
    let name = "throughput, 16 switches: process by trusted";
    Ok(vec![ratio_of(name, Bound::at_least(0.9, Unit::Times), &compared)?])
}

fn one_switch(bench: &Bench<'_>) -> Result<Vec<Figure>, CommandError> {
    let load = bench.load(ModeName::Throughput, 1, 1000);
    let compared = bench.compare((PROCESS, &load), (TRUSTED, &load))?;
    let of = |zone: &str, per_s: f64| {
        let how = format!("median of {} rounds", bench.args.rounds);
        let name = format!("throughput, 1 switch: {zone}");
        Figure::new(name, Bound::at_least(1e6, Unit::PerSecond), per_s, how)
    };
    Ok(vec![of("process", compared.a.responses_per_s), of("trusted", compared.b.responses_per_s)])
}

fn latency(bench: &Bench<'_>) -> Result<Vec<Figure>, CommandError> {
    let mut figures = Vec::new();
    for switches in [1, 16, 64] {
        let load = bench.load(ModeName::Latency, switches, 1000);
        let compared = bench.compare((TRUSTED, &load), (SINK, &load))?;
        let name = format!("latency mode, {switches} switches: trusted by sink");
        figures.push(ratio_of(name, Bound::at_least(0.9, Unit::Times), &compared)?);
        if let (Some(p99), Some(a), Some(b)) =
            (&compared.p99_ratio, compared.a.latency_us, compared.b.latency_us)
        {
            let name = format!("p99 of latency, {switches} switches: trusted by sink");
            let how = format!("{:.1} us, sink {:.1} us", a.p99, b.p99);
            let found = Figure::new(name, Bound::at_most(1.5, Unit::Times), p99.median, how);
            figures.push(found.between(p99.min, p99.max));
        }
    }
    Ok(figures)
}

fn scaling(bench: &Bench<'_>) -> Result<Vec<Figure>, CommandError> {
    const KEPT: Bound = Bound::at_least(0.75, Unit::Times);
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
    let node = OwnNode::start(&[app], LogLevel::Error)?;
    let address = node.wait_until_it_listens()?;
    std::thread::sleep(SETTLE);
    let gone = || CommandError::DidNotWork("the node ended while it was looked at".to_owned());
    let memory = || Some(proportional_bytes(&tree(node.pid()))).filter(|bytes| *bytes > 0);
    let alone = memory().ok_or_else(gone)?;
    let load = bench.load(ModeName::Latency, IDLE_SWITCHES, 2);
    let idle = Measurement::connect(&load, address, |progress| bench.watch.add(PROCESS, progress))?;
    std::thread::sleep(SETTLE);
    let with_switches = memory().ok_or_else(gone)?;
    let connected = idle.connected();
    drop(idle);
    let per_switch = with_switches.saturating_sub(alone) as f64 / 1024.0 / connected.max(1) as f64;
    let alone_mib = alone as f64 / 1048576.0;
    Ok(vec![
        Figure::new(
            "memory of a node with the learning switch",
            Bound::at_most(30.0, Unit::Mib),
            alone_mib,
            "Pss of all its processes",
        ),
        Figure::new(
            "memory of a node per connected idle switch",
            Bound::at_most(10.0, Unit::Kib),
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
        let found = Figure::new(name, Bound::at_most(100.0, Unit::Ms), median, how);
        figures.push(found.between(fold(f64::min, f64::INFINITY), fold(f64::max, 0.0)));
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
    let name = "port status to an app while another switch floods, p99";
    let how = format!(
        "{} each; flooded: {}; not flooded: {}; packet-ins take the app 20 us",
        flooded.count,
        lies(&flooded),
        lies(&alone)
    );
    let found = Figure::new(name, Bound::at_most(10.0, Unit::Ms), flooded.p99_us / 1000.0, how);
    Ok(vec![found.between(flooded.p50_us / 1000.0, flooded.max_us / 1000.0)])
}

fn calls_of_services(bench: &Bench<'_>) -> Result<Vec<Figure>, CommandError> {
    bench.go_on()?;
    let report = services::measure(&ServicesArgs::default())?;
    if report.calls.failed > 0 {
        return Err(CommandError::DidNotWork(format!("{} calls failed", report.calls.failed)));
    }
    Ok(report.figures())
}

fn start_once(target: &str) -> Result<Duration, CommandError> {
    let Target::Node(app) = target.parse().map_err(CommandError::Usage)? else {
        return Ok(Duration::ZERO);
    };
    let address = free_address()?;
    let began = Instant::now();
    let _node = OwnNode::start_with(&address.to_string(), false, &[app], LogLevel::Error)?;
    let at = first_contact(address, PATIENCE)
        .ok_or_else(|| CommandError::DidNotWork("the node accepted no switch".to_owned()))?;
    Ok(at - began)
}

/// Emulated switches, with tables and hosts, on one node.
fn many_switches() -> Result<Figure, CommandError> {
    let Target::Node(app) = PROCESS.parse().map_err(CommandError::Usage)? else {
        return Err(CommandError::Usage(PROCESS.to_owned()));
    };
    let node = OwnNode::start(&[app], LogLevel::Error)?;
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
    let mut found = Figure::new(name, Bound::at_most(5000.0, Unit::Ms), took.as_secs_f64() * 1000.0, how);
    found.reached &= lost == 0;
    Ok(found)
}
