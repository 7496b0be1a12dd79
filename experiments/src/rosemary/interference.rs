//! What an innocent learning switch answers while another app does harm, again and again, and while a switch floods. The paper shows
//! that others go on; it does not measure how fast.
//!
//! ```text
//!   a node without the attacker ──rate──┐
//!   a node with it              ──rate──┴─> by how much it is less; in turn, so that a machine that is slow for a while is so for both
//! ```

use super::{Found, axis, median, panel, series, spread_text};
use crate::lab::Lab;
use crate::node::{Kind, Node};
use crate::outcome::Claim;
use crate::plot::{Chart, Content, Figure, Mark, Point, Scale, Shape, Style};
use serde::Serialize;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::process::{Command, Stdio};

/// One attack of each class.
const ATTACKS: [&str; 10] = [
    "exit",
    "infinite-loop",
    "memory-leak",
    "fork-bomb",
    "thread-bomb",
    "descriptor-leak",
    "log-flood",
    "table-flood",
    "rule-flood",
    "packet-out-flood",
];

/// What the baseline is tried with: more would only show the same.
const BASELINE: [&str; 3] = ["exit", "infinite-loop", "memory-leak"];

/// What an operator gives an app that is not trusted.
const LIMITS: &str = "[app.misbehaving.limits]\ncpu_percent = 10\nmemory_bytes = 67108864\nprocesses = 32\nopen_files = 64\n\
    [app.misbehaving.quotas]\ncommands_per_s = 1000\npacket_outs_per_s = 100\n";

const ASKED: f64 = 0.9;

#[derive(Clone, Debug, Serialize)]
struct Seen {
    attack: &'static str,
    kind: &'static str,
    /// By the undisturbed rate before and after it.
    ratios: Vec<f64>,
}

/// Attacks between two measurements of an undisturbed node.
const BETWEEN: usize = 3;

pub(super) fn run(lab: &Lab) -> Result<Found, String> {
    let mut seen =
        measure(lab, Kind::Burnet, "Burnet", &ATTACKS[..lab.times(ATTACKS.len(), 2)], lab.times(2, 1))?;
    seen.extend(measure(lab, Kind::Monolithic, "monolithic", &BASELINE[..lab.times(BASELINE.len(), 1)], 1)?);
    Ok(Found { claims: claims(&seen), data: json!(seen), figure: figure(&seen) })
}

fn measure(
    lab: &Lab,
    kind: Kind,
    name: &'static str,
    attacks: &[&'static str],
    passes: usize,
) -> Result<Vec<Seen>, String> {
    let mut seen: Vec<Seen> =
        attacks.iter().map(|attack| Seen { attack, kind: name, ratios: Vec::new() }).collect();
    let mut before = rate(lab, kind, None)?;
    for _ in 0..passes {
        for some in seen.chunks_mut(BETWEEN) {
            let mut disturbed = Vec::new();
            for seen in some.iter() {
                lab.say(&format!("interference: {name}, {}", seen.attack));
                disturbed.push(rate(lab, kind, Some(seen.attack))?);
            }
            let after = rate(lab, kind, None)?;
            for (seen, disturbed) in some.iter_mut().zip(disturbed) {
                seen.ratios.extend(ratio(disturbed, before, after));
            }
            before = after;
        }
    }
    Ok(seen)
}

/// Nothing if nothing was answered undisturbed either.
fn ratio(disturbed: f64, before: f64, after: f64) -> Option<f64> {
    let undisturbed = (before + after) / 2.0;
    (undisturbed > 0.0).then_some(disturbed / undisturbed)
}

/// Answers a second of a learning switch, with or without an attacker beside it.
fn rate(lab: &Lab, kind: Kind, attack: Option<&str>) -> Result<f64, String> {
    let node = Node::start(lab, kind, &configuration(lab, kind, attack)?)?;
    // The attacker does not serve for long, or at all.
    let address = node.wait(&["learning-switch"])?;
    let per_s = bench(lab, address)?;
    Ok(if node.has_ended() { 0.0 } else { per_s })
}

fn configuration(lab: &Lab, kind: Kind, attack: Option<&str>) -> Result<String, String> {
    let innocent = "[node]\nlog = \"error\"\n[app.learning-switch]\n".to_owned();
    let Some(attack) = attack else { return Ok(innocent) };
    let path = match kind {
        Kind::Burnet => String::new(),
        Kind::Monolithic => format!("path = \"{}\"\n", lab.misbehaving()?.display()),
    };
    Ok(format!(
        "{innocent}[app.misbehaving]\n{path}{LIMITS}[app.misbehaving.settings]\nattack = \"{attack}\"\nagain = true\nquiet_s = 1\n"
    ))
}

/// A controller that is gone, or answers nothing, answers 0 a second.
fn bench(lab: &Lab, target: SocketAddr) -> Result<f64, String> {
    let seconds = lab.time(1.0, 0.7).as_secs_f64();
    // The attacker begins after a second or two: the round that counts must not be over by then.
    let words = format!(
        "bench southbound --json --target {target} --switches 16 --hosts 100 --seconds {seconds} --rounds 1 --warmup 1 --patience 2"
    );
    let output =
        Command::new(&lab.burnet).args(words.split(' ')).stdin(Stdio::null()).stderr(Stdio::null()).output();
    let output = output.map_err(|error| format!("burnet bench cannot be run: {error}"))?;
    let report: Value = serde_json::from_slice(&output.stdout)
        .map_err(|error| format!("burnet bench printed no report: {error}"))?;
    Ok(last_rate(&report))
}

/// Of the last round: by then the attack is under way.
fn last_rate(report: &Value) -> f64 {
    let last = report["rounds"].as_array().and_then(|rounds| rounds.last().cloned()).unwrap_or_default();
    last["responses_per_s"].as_f64().unwrap_or(0.0)
}

fn claims(all: &[Seen]) -> Vec<Claim> {
    let claim = |seen: &Seen| {
        let ratios = &seen.ratios;
        let what = format!("{}: learning switch beside {}", seen.kind, seen.attack);
        let text =
            spread_text(&ratios.iter().map(|ratio| ratio * 100.0).collect::<Vec<_>>(), "% of undisturbed", 0);
        match seen.kind {
            "Burnet" => Claim::asked(
                &what,
                ">= 90 % of undisturbed",
                text,
                !ratios.is_empty() && median(ratios) >= ASKED,
            ),
            _ => Claim::seen(&what, text),
        }
    };
    all.iter().map(claim).collect()
}

fn figure(all: &[Seen]) -> Figure {
    let panel_of = |kind: &str, title: &str, style| {
        let those: Vec<&Seen> = all.iter().filter(|seen| seen.kind == kind).collect();
        let names = those.iter().map(|seen| seen.attack.to_owned()).collect();
        let bars = those.iter().enumerate().map(|(place, seen)| {
            let Point { x, y, spread } = super::spread_point(place as f64, &seen.ratios);
            Point { x, y: y * 100.0, spread: spread.map(|(least, most)| (least * 100.0, most * 100.0)) }
        });
        let chart = Chart {
            x: axis("what the other app does, again and again", Scale::Names(names)),
            y: axis("% of undisturbed", Scale::Linear(0.0, 140.0)),
            series: vec![series(
                "answers of the innocent learning switch",
                Shape::Bars,
                style,
                bars.collect(),
            )],
            marks: vec![Mark::Horizontal(ASKED * 100.0, "asked: 90 %".to_owned())],
        };
        panel(title, Content::Chart(chart))
    };
    Figure {
        title: "What an innocent app answers while another does harm".to_owned(),
        panels: vec![panel_of("Burnet", "Burnet", Style::Ours), panel_of("monolithic", "Everything in one process", Style::Baseline)],
        notes: vec![
            "Not in the paper. As many packet-ins as go, from 16 switches; generator and node share the machine's cores with the \
             attacker, which may have a tenth of one. Each measurement has a node of its own."
                .to_owned(),
        ],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(ratios: &[f64], expected: bool) {
        let seen = Seen { attack: "exit", kind: "Burnet", ratios: ratios.to_vec() };
        assert_eq!(claims(&[seen])[0].holds, Some(expected), "{ratios:?}");
    }

    #[test]
    fn a_rate_is_held_against_those_before_and_after_it() {
        assert_eq!(ratio(1.0, 0.0, 0.0), None);
        assert_eq!(ratio(90.0, 80.0, 120.0), Some(0.9));
    }

    #[test]
    fn an_app_that_answers_nothing_is_disturbed() {
        check(&[], false);
        check(&[0.0, 0.0], false);
        check(&[0.89], false);
        check(&[0.91], true);
    }

    #[test]
    fn a_report_without_rounds_is_a_controller_that_answered_nothing() {
        assert_eq!(last_rate(&json!({"rounds": []})), 0.0);
        assert_eq!(last_rate(&json!({"rounds": [{"responses_per_s": 1.0}, {"responses_per_s": 2.0}]})), 2.0);
    }
}
