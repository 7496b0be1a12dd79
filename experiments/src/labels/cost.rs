//! What slices cost: labels at scale, memory, throughput, latency, and tenants that misbehave.
//!
//! ```text
//!   sums ──> time and memory of a change; memory ──> bytes for each slice; traffic ──> ratios of rounds; faults ──> latencies of another tenant
//! ```
//!
//! In: what is asked. Out: claims and a figure. Everything is compared within one run: with and without are measured in turn. What a part could
//! not measure, because a program is not installed, is a claim that says so.

mod faults;
mod memory;
mod sums;
mod traffic;

use self::faults::{Cost, FAULTS, Fault};
use self::memory::{FEW, MANY, Taken};
use self::sums::{FLOWS, Part};
use self::traffic::{Controller, Pairs, Round, Side};
use crate::lab::Lab;
use crate::onos::cores;
use crate::paper::Findings;
use crate::plot::{Chart, Content, Figure, Point, Scale, Shape, Style, axis, panel, series};
use crate::report::Claim;
use crate::spread::{median, spread_point, spread_text};
use load::Mode;
use serde::Serialize;
use serde_json::json;
use std::process::Command;

/// Slices at the scale that is asked for: each has a thousand flows.
const SLICES: usize = 1_000;
const CHANGE_US: f64 = 20.0;
const CHANGE_RATIO: f64 = 2.0;
const FLOW_BYTES: f64 = 300.0;
const SLICE_BYTES: f64 = (8 << 20) as f64;
const PACKET_RATIO: f64 = 1.5;
const KEPT: f64 = 0.9;
const OF_APP: f64 = 0.25;
const ADDED_US: f64 = 80.0;
const P99_RATIO: f64 = 2.0;
const AWAY_MS: f64 = 100.0;
/// Switches of a load.
const SWITCHES: u16 = 16;

/// Measures a part in this process.
///
/// # Errors
/// It is no number of slices and one of flows, or the engine refuses something.
pub(super) fn part(numbers: &str) -> Result<String, String> {
    let wrong = || format!("{numbers:?} is no number of slices, a colon, and the flows of each");
    let (slices, flows) = numbers.split_once(':').ok_or_else(wrong)?;
    sums::measure(slices.parse().map_err(|_| wrong())?, flows.parse().map_err(|_| wrong())?)
}

/// Two sides, in turn.
#[derive(Clone, Debug, Serialize)]
struct Compared {
    what: String,
    pairs: Pairs,
    /// Why it was not measured.
    skipped: Option<String>,
}

/// Runs it.
///
/// # Errors
/// A node does not start, or a part cannot be measured.
pub fn run_all(lab: &Lab) -> Result<Findings, String> {
    let slices = lab.times(SLICES, 20);
    let sums = [of(slices, FLOWS)?, of(slices, 1)?, of(1, FLOWS)?];
    let slices = if lab.short { [FEW, MANY / 10] } else { [FEW, MANY] };
    let mut taken = Vec::new();
    for slices in slices {
        lab.say(&format!("cost: {slices} slices on a node"));
        taken.push(Taken::measure(lab, slices)?);
    }
    let compared = compare_all(lab)?;
    let costs = faults::measure(lab)?;
    let mut claims = claims_of_sums(&sums);
    claims.extend(claims_of_memory(&taken));
    claims.extend(compared.iter().map(claim_of_traffic));
    claims.extend(costs.iter().flat_map(claims_of_fault));
    let figure = figure(&compared, &costs);
    let data = json!({ "sums": sums, "memory": taken, "traffic": compared, "faults": costs });
    Ok(Findings { claims, data, figure })
}

/// Measures the engine in a process of its own, so that its memory is its own.
fn of(slices: usize, flows: usize) -> Result<Part, String> {
    let own = std::env::current_exe().map_err(|error| format!("this program cannot find itself: {error}"))?;
    let output = Command::new(own).arg("--part").arg(format!("labels:{slices}:{flows}")).output();
    let output = output.map_err(|error| format!("the part cannot be run: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    serde_json::from_str(&text)
        .map_err(|error| format!("the part: {error}; {}", String::from_utf8_lossy(&output.stderr)))
}

/// Two sides, or why they are not there.
type Sides = Result<(Side, Side), String>;

/// How two sides are loaded, and what of them is compared.
struct Trial {
    what: &'static str,
    switches: u16,
    mode: Mode,
    sides: fn(&Lab, u16) -> Sides,
}

/// With one packet-in on its way from each of 16 switches, os-ken has no time left. Under more, it takes minutes to answer all.
const TRIALS: [Trial; 7] = [
    Trial { what: OS_KEN, switches: SWITCHES, mode: Mode::Latency, sides: os_ken },
    Trial { what: TEST_CONTROLLER, switches: SWITCHES, mode: Mode::Throughput, sides: test_controller },
    Trial { what: TEST_CONTROLLER_CLOSED, switches: SWITCHES, mode: Mode::Latency, sides: test_controller },
    Trial { what: SINK, switches: SWITCHES, mode: Mode::Throughput, sides: beside_app },
    Trial { what: SINK_CLOSED, switches: SWITCHES, mode: Mode::Latency, sides: beside_app },
    Trial { what: ADDED, switches: 1, mode: Mode::Latency, sides: beside_sink },
    Trial { what: TRACKED, switches: SWITCHES, mode: Mode::Throughput, sides: tracked },
];

const OS_KEN: &str = "os-ken on a core of its own, behind a slice, by os-ken alone: answers a second";
const TEST_CONTROLLER: &str =
    "ovs-testcontroller on a core of its own, behind a slice, by itself alone: answers a second";
const TEST_CONTROLLER_CLOSED: &str = "ovs-testcontroller, with one packet-in on its way from each switch";
const SINK: &str = "a sink behind a slice, by an app with the same flowspace: answers a second";
const SINK_CLOSED: &str = "a sink, with one packet-in on its way from each switch";
const ADDED: &str = "a sink behind a slice, beside the sink alone: more latency, median";
const TRACKED: &str = "a slice whose flows are tracked, by one whose are not: answers a second";

fn compare_all(lab: &Lab) -> Result<Vec<Compared>, String> {
    let (rounds, length) = (lab.times(9, 1), lab.time(1.0, 0.3));
    let (mut all, cores) = (Vec::new(), cores::allowed());
    for trial in TRIALS {
        lab.say(&format!("cost: {}", trial.what));
        let what = trial.what.to_owned();
        all.push(match (trial.sides)(lab, trial.switches) {
            Ok((mut a, mut b)) => {
                let pairs = Pairs::measure(&mut a, &mut b, trial.mode, (rounds, length));
                Compared { what, pairs, skipped: None }
            }
            Err(why) => Compared { what, pairs: Pairs::default(), skipped: Some(why) },
        });
        cores::pin(&[std::process::id()], &cores)?;
    }
    Ok(all)
}

fn os_ken(lab: &Lab, switches: u16) -> Sides {
    apart(lab, Controller::OsKen, switches)
}

fn test_controller(lab: &Lab, switches: u16) -> Sides {
    apart(lab, Controller::OfOpenVSwitch, switches)
}

/// Both controllers have the last core. All else that is started here has the others: [`compare_all`] gives them back.
fn apart(lab: &Lab, controller: Controller, switches: u16) -> Sides {
    let cores = cores::allowed();
    let Some((last, others)) = cores.split_last().filter(|(_, others)| !others.is_empty()) else {
        return Err("there is one core".to_owned());
    };
    cores::pin(&[std::process::id()], others)?;
    let slice = Side::slice(lab, (controller, Some(*last)), switches, ("", ""))?;
    Ok((slice, Side::direct(lab, controller, Some(*last), switches)?))
}

fn beside_sink(lab: &Lab, switches: u16) -> Sides {
    let slice = Side::slice(lab, (Controller::Sink, None), switches, ("", ""))?;
    Ok((slice, Side::direct(lab, Controller::Sink, None, switches)?))
}

fn beside_app(lab: &Lab, switches: u16) -> Sides {
    let slice = Side::slice(lab, (Controller::Sink, None), switches, ("", ""))?;
    Ok((slice, Side::app(lab, switches)?))
}

/// Both nodes have the services of the network view, and only one of the slices has VNICs.
fn tracked(lab: &Lab, switches: u16) -> Sides {
    let vnics: Vec<String> = (1..=switches)
        .map(|switch| format!("v{switch} = {{ port = 's{switch}:1', rate = '1M', meter = false }}"))
        .collect();
    let vnics = format!("links = []\nvnics = {{ {} }}\n", vnics.join(", "));
    // Both nodes would listen at the same port. A service that cannot restarts again and again, until the node holds its apps.
    let network = "[network.northbound]\nlisten = ['unix:rest']\n";
    let with = Side::slice(lab, (Controller::Sink, None), switches, (&vnics, network))?;
    Ok((with, Side::slice(lab, (Controller::Sink, None), switches, ("", network))?))
}

fn claims_of_sums([many, few, alone]: &[Part; 3]) -> Vec<Claim> {
    let mut claims = Vec::new();
    let parts = [many, few, alone];
    let changes = [
        ("a flow moves to another path of six hops", parts.map(|part| median(&part.moved_us))),
        ("a flow of six hops ends or begins", parts.map(|part| median(&part.ended_us))),
    ];
    for (what, [all_us, few_us, alone_us]) in changes {
        let ratio = all_us / few_us.max(1e-9);
        claims.push(Claim::asked(
            &format!("labels, {} flows: {what}", many.flows),
            "<= 20 us",
            format!("{all_us:.2} us"),
            all_us <= CHANGE_US,
        ));
        claims.push(Claim::asked(
            &format!("the same, by one among {} flows of as many slices", few.flows),
            "<= 2",
            format!("{ratio:.2} ({few_us:.2} us)"),
            ratio <= CHANGE_RATIO,
        ));
        claims.push(Claim::seen(
            &format!(
                "the same, by one among {} flows of one slice, which the processor's caches hold",
                alone.flows
            ),
            format!("{:.2} ({alone_us:.2} us)", all_us / alone_us.max(1e-9)),
        ));
    }
    let each = many.bytes as f64 / many.flows.max(1) as f64;
    claims.push(Claim::asked(
        "memory of a flow, with its part of the slice",
        "<= 300 bytes",
        format!("{each:.0} bytes"),
        each <= FLOW_BYTES,
    ));
    claims
}

fn claims_of_memory(taken: &[Taken]) -> Vec<Claim> {
    let [few, many] = taken else { return Vec::new() };
    let more = f64::from(many.slices - few.slices);
    let each = many.node_bytes.saturating_sub(few.node_bytes) as f64 / more.max(1.0);
    let processes: Vec<f64> =
        many.each_bytes.iter().map(|bytes| *bytes as f64 / f64::from(1 << 20)).collect();
    let ratio = many.kernel_us / few.kernel_us.max(1e-9);
    vec![
        Claim::asked(
            &format!("memory of the node for one more slice, {} slices, 20 switches", many.slices),
            "<= 8 MiB",
            format!(
                "{:.2} MiB; of a slice's process {}",
                each / f64::from(1 << 20),
                spread_text(&processes, "MiB", 2)
            ),
            each <= SLICE_BYTES,
        ),
        Claim::asked(
            &format!(
                "processor time of the kernel for a packet-in with {} slices, by that with {}",
                many.slices, few.slices
            ),
            "<= 1.5",
            format!("{ratio:.2} ({:.2} and {:.2} us)", many.kernel_us, few.kernel_us),
            ratio <= PACKET_RATIO,
        ),
    ]
}

fn claim_of_traffic(compared: &Compared) -> Claim {
    let Compared { what, pairs, skipped } = compared;
    if let Some(why) = skipped {
        return Claim::seen(what, format!("not measured: {why}"));
    }
    if what == ADDED {
        let added = pairs.differences(|round| round.p50_us);
        return Claim::asked(what, "<= 80 us", spread_text(&added, "us", 1), median(&added) <= ADDED_US);
    }
    let ratios = pairs.ratios(|round| round.per_s);
    let rates = |rounds: &[Round]| median(&rounds.iter().map(|round| round.per_s).collect::<Vec<_>>());
    let text = format!(
        "{}; {:.0} and {:.0} a second",
        spread_text(&ratios, "", 2),
        rates(&pairs.a),
        rates(&pairs.b)
    );
    let text = match pairs.without_answers() {
        [0, 0] => text,
        [a, b] => format!("{text}; rounds without an answer: {a} and {b}"),
    };
    let least = match what.as_str() {
        SINK => OF_APP,
        TEST_CONTROLLER_CLOSED | SINK_CLOSED => return Claim::seen(what, text),
        _ => KEPT,
    };
    Claim::asked(what, &format!(">= {least}"), text, median(&ratios) >= least)
}

fn p99_ratios(cost: &Cost) -> Vec<f64> {
    cost.with.iter().zip(&cost.calm).map(|(with, calm)| with.p99_us / calm.p99_us.max(1e-9)).collect()
}

fn claims_of_fault(cost: &Cost) -> Vec<Claim> {
    let name = FAULTS.iter().find(|(fault, _)| *fault == cost.fault).map_or("", |(_, name)| *name);
    let ratios = p99_ratios(cost);
    let lost: u64 = cost.with.iter().map(|round| round.unanswered).sum();
    let (what, text) = (format!("{name}: p99 of a tenant, by that before"), spread_text(&ratios, "", 2));
    let mut claims = vec![
        match cost.fault {
            Fault::FloodsFreely => Claim::seen(&what, text),
            _ => Claim::asked(&what, "<= 2", text, median(&ratios) <= P99_RATIO),
        },
        Claim::asked(
            &format!("{name}: packet-ins of a tenant without an answer"),
            "0",
            lost.to_string(),
            lost == 0,
        ),
    ];
    if !cost.away_ms.is_empty() {
        let away = median(&cost.away_ms);
        claims.push(Claim::asked(
            &format!("{name}: until it serves again"),
            "<= 100 ms",
            spread_text(&cost.away_ms, "ms", 0),
            away <= AWAY_MS,
        ));
        let stayed = if cost.rules_stayed { "the same" } else { "others" };
        claims.push(Claim::asked(
            &format!("{name}: its rules in the switches"),
            "the same",
            stayed,
            cost.rules_stayed,
        ));
    }
    claims
}

fn figure(compared: &[Compared], costs: &[Cost]) -> Figure {
    let kept: Vec<&Compared> =
        compared.iter().filter(|it| it.skipped.is_none() && it.what != ADDED).collect();
    let short = |what: &str| what.split([' ', ',']).take(2).collect::<Vec<_>>().join(" ");
    let chart = |label: &str, names: Vec<String>, name: &str, points: Vec<Point>| Chart {
        x: axis("", Scale::Names(names)),
        y: axis(
            label,
            Scale::from_zero(points.iter().map(|point| point.spread.map_or(point.y, |(_, most)| most))),
        ),
        series: vec![series(name, Shape::Bars, Style::Ours, points)],
        marks: Vec::new(),
    };
    let names = kept.iter().map(|it| short(&it.what)).collect();
    let ratios = (0u32..)
        .zip(&kept)
        .map(|(place, it)| spread_point(f64::from(place), &it.pairs.ratios(|round| round.per_s)));
    let rates = chart("answers a second, by the other side", names, "ratio of a pair", ratios.collect());
    let faults = costs.iter().map(|cost| format!("{:?}", cost.fault)).collect();
    let p99s = (0u32..).zip(costs).map(|(place, cost)| spread_point(f64::from(place), &p99_ratios(cost)));
    let p99s = chart("p99 of another tenant, by that before", faults, "ratio of a pair", p99s.collect());
    Figure {
        title: "What slices cost".to_owned(),
        panels: vec![panel("Throughput", Content::Chart(rates)), panel("Misbehaving tenants", Content::Chart(p99s))],
        notes: vec![
            "Not in the paper. Generator, node, slice and controller share one machine. The bar at a point is the minimum and the maximum of the pairs.".to_owned(),
        ],
    }
}
