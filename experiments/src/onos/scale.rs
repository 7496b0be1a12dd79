//! What objects take, and whether a change costs more among a hundred times as many.
//!
//! ```text
//!   hosts, rules, wanted rules, intents ──each in a process of its own──> bytes for each, time of a change
//!   a node with 1,000 and with 100,000 intents ──one more──> time to its last flow mod, memory of its services
//! ```
//!
//! In: numbers of objects. Out: bytes and times.

use super::arrivals::Arrivals;
use super::flows;
use super::reroute::{SERVICES, Trial};
use super::scale_part::{Part, RULES_OF_PATH};
use crate::lab::Lab;
use crate::paper::Findings;
use crate::plot::{Chart, Content, Figure, Point, ReferenceLine, Scale, Shape, Style, axis, panel, series};
use crate::report::Claim;
use crate::spread::median;
use lab::processes::{own_bytes, tree};
use paths_contract::SERVICE;
use serde::Serialize;
use serde_json::json;
use std::process::Command;
use std::time::Duration;

/// What is asked: a change costs at most so many times as much.
const ASKED_RATIO: f64 = 2.0;

/// Changes that are timed on a node.
const TIMED: u32 = 60;

/// The parts, and the numbers of objects: many, and a hundredth.
const PARTS: [(&str, &str, u32); 4] = [
    ("hosts", "hosts in the tables of the view", 100_000),
    ("rules", "rules in the tables of the view", 1_000_000),
    ("wanted", "wanted rules in the engine of rules", 1_000_000),
    ("intents", "intents in the engine of intents", 100_000),
];

/// What was measured of one kind.
#[derive(Clone, Debug, Serialize)]
struct Kind {
    name: String,
    many: Part,
    few: Part,
}

/// What was measured of one number of intents on a node.
#[derive(Clone, Debug, Default, Serialize)]
struct OnNode {
    intents: u32,
    per_s: f64,
    change_ms: Vec<f64>,
    /// Of all processes of the node.
    bytes: u64,
    rules: u64,
}

pub(super) fn run(lab: &Lab) -> Result<Findings, String> {
    let mut kinds = Vec::new();
    for (part, name, count) in PARTS {
        let many = if lab.short { count / 100 } else { count };
        lab.say(&format!("scale: {many} {name}"));
        kinds.push(Kind {
            name: name.to_owned(),
            many: of(part, many)?,
            few: of(part, (many / 100).max(6))?,
        });
    }
    let (few, many) = if lab.short { (20, 100) } else { (1_000, 100_000) };
    let nodes = on_node(lab, few, many)?;
    Ok(Findings {
        claims: claims(&kinds, &nodes),
        data: json!({"parts": kinds, "node": nodes}),
        figure: figure(&kinds),
    })
}

/// Measures a part in a process of its own.
fn of(part: &str, count: u32) -> Result<Part, String> {
    let own = std::env::current_exe().map_err(|error| format!("this program cannot find itself: {error}"))?;
    let output = Command::new(own).arg("--part").arg(format!("{part}:{count}")).output();
    let output = output.map_err(|error| format!("the part {part} cannot be run: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    serde_json::from_str(&text)
        .map_err(|error| format!("the part {part}: {error}; {}", String::from_utf8_lossy(&output.stderr)))
}

/// One node, first with few intents, then with many.
fn on_node(lab: &Lab, few: u32, many: u32) -> Result<Vec<OnNode>, String> {
    let mut trial = Trial::start(lab, &SERVICES)?;
    let (mut there, mut seen) = (0, Vec::new());
    for wanted in [few, many] {
        lab.say(&format!("scale: a node with {wanted} intents"));
        let added = wanted - there;
        let mut spent_s = 0.0;
        // In parts, so that neither the probe nor its line holds all questions.
        while there < wanted {
            let part = (wanted - there).min(20_000);
            let questions = flows::adds(&trial.detour.wan, &trial.detour.six, part, there);
            there += part;
            spent_s += trial.add(questions, there)?;
        }
        let mut on_node =
            OnNode { intents: wanted, per_s: f64::from(added) / spent_s.max(1e-9), ..OnNode::default() };
        on_node.bytes = own_bytes(&tree(trial.bed.node().pid()));
        on_node.rules = trial.network.switch_views().iter().map(|view| view.flow_entries as u64).sum();
        for _ in 0..lab.times(TIMED as usize, 3) {
            on_node.change_ms.push(one_more(&mut trial, there)?);
            there += 1;
        }
        trial.wait_installed(there, Duration::from_millis(20))?;
        seen.push(on_node);
    }
    Ok(seen)
}

/// Adds one intent. The time from the question to its last flow mod.
fn one_more(trial: &mut Trial, number: u32) -> Result<f64, String> {
    let question = flows::adds(&trial.detour.wan, &trial.detour.six, 1, number);
    trial.bed.load(SERVICE, question)?;
    trial.bed.count()?;
    let mut arrivals = Arrivals::begin(&trial.network);
    trial.bed.ask(1)?;
    let times = arrivals.wait()?;
    let asked = trial.bed.asked()?;
    Ok(times.since(asked.began_ns).last_ms)
}

fn ratio(many: &[f64], few: &[f64]) -> f64 {
    median(many) / median(few).max(1e-9)
}

fn claims(kinds: &[Kind], nodes: &[OnNode]) -> Vec<Claim> {
    let mut claims = Vec::new();
    for Kind { name, many, few } in kinds {
        let ratio = ratio(&many.change_us, &few.change_us);
        claims.push(Claim::seen(
            &format!("{} {name}: memory of each", many.objects),
            format!("{} bytes, {} MiB in all", many.bytes / many.objects.max(1), many.bytes >> 20),
        ));
        claims.push(Claim::asked(
            &format!("{name}: a change among {}, by one among {}", many.objects, few.objects),
            "<= 2",
            format!("{ratio:.2} ({:.1} and {:.1} us)", median(&many.change_us), median(&few.change_us)),
            !many.change_us.is_empty() && ratio <= ASKED_RATIO,
        ));
    }
    for node in nodes {
        claims.push(Claim::seen(
            &format!("a node with {} intents, {} rules in its switches", node.intents, node.rules),
            format!(
                "{} MiB in all its processes; added at {:.0} a second, the store, the switches and the confirmations included",
                node.bytes >> 20,
                node.per_s
            ),
        ));
    }
    if let [few, many] = nodes {
        let ratio = ratio(&many.change_ms, &few.change_ms);
        claims.push(Claim::asked(
            &format!(
                "one more intent on a node with {}, by one on a node with {}: question to the last flow mod",
                many.intents, few.intents
            ),
            "<= 2",
            format!("{ratio:.2} ({:.2} and {:.2} ms)", median(&many.change_ms), median(&few.change_ms)),
            !many.change_ms.is_empty() && ratio <= ASKED_RATIO,
        ));
        let more = f64::from(many.intents - few.intents).max(1.0);
        claims.push(Claim::seen(
            "memory of all the node's processes for one more intent and its rules",
            format!(
                "{:.0} bytes, with {RULES_OF_PATH} rules",
                many.bytes.saturating_sub(few.bytes) as f64 / more
            ),
        ));
    }
    claims
}

fn figure(kinds: &[Kind]) -> Figure {
    let names = || Scale::Names(kinds.iter().map(|kind| kind.name.clone()).collect());
    let points = |of: fn(&Kind) -> f64| {
        kinds.iter().enumerate().map(|(place, kind)| Point::at(place as f64, of(kind))).collect::<Vec<_>>()
    };
    let bytes = points(|kind| kind.many.bytes as f64 / kind.many.objects.max(1) as f64);
    let ratios = points(|kind| ratio(&kind.many.change_us, &kind.few.change_us));
    let most = |points: &[Point], least: f64| points.iter().map(|point| point.y).fold(least, f64::max);
    Figure {
        title: "Many objects on one node".to_owned(),
        panels: vec![
            panel(
                "Memory",
                Content::Chart(Chart {
                    x: axis("", names()),
                    y: axis("bytes for each", Scale::from_zero([most(&bytes, 100.0)])),
                    series: vec![series("Burnet", Shape::Bars, Style::Ours, bytes)],
                    marks: vec![],
                }),
            ),
            panel(
                "A change, by one among a hundredth",
                Content::Chart(Chart {
                    x: axis("", names()),
                    y: axis("times as long", Scale::from_zero([most(&ratios, ASKED_RATIO * 1.1)])),
                    series: vec![series("median", Shape::Bars, Style::Ours, ratios)],
                    marks: vec![ReferenceLine::Horizontal(ASKED_RATIO, "asked: 2".to_owned())],
                }),
            ),
        ],
        notes: vec!["Not in the paper. Each kind in a process of its own.".to_owned()],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn twice_as_long_is_enough_and_more_is_not() {
        let part = |change_us: f64| Part { bytes: 1_000, objects: 10, change_us: vec![change_us] };
        let check = |many: f64, expected: bool| {
            let kind = Kind { name: "hosts".to_owned(), many: part(many), few: part(1.0) };
            assert_eq!(claims(&[kind], &[])[1].holds, Some(expected), "{many}");
        };
        check(2.0, true);
        check(2.1, false);
    }

    #[test]
    fn a_node_is_compared_only_if_both_were_measured() {
        assert!(claims(&[], &[OnNode::default()]).iter().all(|claim| claim.holds.is_none()));
    }
}
