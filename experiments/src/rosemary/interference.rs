//! The throughput of an innocent learning switch while another app or a switch does harm, in several rounds. The
//! paper shows that other apps go on; it does not measure how fast.
//!
//! ```text
//!   burnet attack --throughput ──> each attack's verdict, pings of others, and what the learning switch kept
//!   a monolithic node without the attacker ──rate──┐
//!   one with it                            ──rate──┴─> by how much it is less; in turn, so that a machine that is slow for a while is so for both
//! ```

use crate::lab::Lab;
use crate::node::{Kind, Node};
use crate::paper::Findings;
use crate::plot::{Chart, Content, Figure, Point, ReferenceLine, Scale, Shape, Style, axis, panel, series};
use crate::report::Claim;
use crate::spread::{median, spread_text};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::process::{Command, Stdio};

/// Rounds with each attack. Single ones differ by a tenth and more on a machine that others share.
const ROUNDS: usize = 5;

/// The attacks of a family that are measured. One takes half a minute on an idle machine, and there are more than a hundred; those of one
/// family disturb others in the same way.
const OF_A_FAMILY: usize = 2;

/// What is tried when only to see that all works.
const SHORT: [&str; 2] = ["exit", "infinite-loop"];

/// What the baseline is tried with: more would only show the same.
const BASELINE: [&str; 3] = ["exit", "infinite-loop", "memory-leak"];

/// What an operator gives an app that is not trusted.
const LIMITS: &str = "[app.misbehaving.limits]\ncpu_percent = 10\nmemory_bytes = 67108864\nprocesses = 32\nopen_files = 64\n\
    [app.misbehaving.quotas]\ncommands_per_s = 1000\npacket_outs_per_s = 100\n";

const ASKED: f64 = 0.9;

/// How many of those who kept least are named below the figure.
const NAMED: usize = 6;

/// An attack, as `burnet attack --list --json` has it.
#[derive(Debug, Deserialize)]
struct Listed {
    case: String,
    family: String,
}

/// An attack on Burnet, as `burnet attack --json` has it.
#[derive(Clone, Debug, Deserialize, Serialize)]
struct Score {
    case: String,
    held: bool,
    pings: u64,
    lost: u64,
    /// Nothing was kept where nothing could be measured.
    #[serde(default)]
    throughput: Kept,
}

/// Of what it answers undisturbed, what the innocent app kept.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
struct Kept {
    median: f64,
    min: f64,
    max: f64,
    pairs: Vec<f64>,
    /// How much undisturbed rounds differ from those around them.
    anyway: Vec<f64>,
    undisturbed_per_s: f64,
}

/// An attack on a monolithic node.
#[derive(Clone, Debug, Serialize)]
struct Measured {
    attack: &'static str,
    /// By the undisturbed rate before and after it.
    ratios: Vec<f64>,
}

pub(super) fn run(lab: &Lab) -> Result<Findings, String> {
    let scores = attack(lab)?;
    let seen = measure(lab, &BASELINE[..lab.times(BASELINE.len(), 1)])?;
    let data = json!({ "burnet": scores, "monolithic": seen });
    Ok(Findings { claims: claims(&scores, &seen), data, figure: figure(&scores, &seen) })
}

/// Attacks of each family; those beside which least was kept come first.
fn attack(lab: &Lab) -> Result<Vec<Score>, String> {
    let cases = if lab.short { SHORT.map(str::to_owned).to_vec() } else { spread_over_families(&list(lab)?) };
    lab.say(&format!("interference: burnet attack --throughput, {} attacks", cases.len()));
    let rounds = lab.times(ROUNDS, 1).to_string();
    let mut asked = vec!["--throughput", "--rounds", &rounds];
    asked.extend(cases.iter().flat_map(|case| ["--case", case]));
    read(&burnet_attack(lab, &asked)?)
}

/// All attacks that the binary knows.
fn list(lab: &Lab) -> Result<Vec<Listed>, String> {
    serde_json::from_slice(&burnet_attack(lab, &["--list"])?)
        .map_err(|error| format!("burnet attack --list printed no list of attacks: {error}"))
}

fn burnet_attack(lab: &Lab, asked: &[&str]) -> Result<Vec<u8>, String> {
    let mut command = Command::new(&lab.burnet);
    let output =
        command.args(["attack", "--json"]).args(asked).stdin(Stdio::null()).stderr(Stdio::inherit()).output();
    output.map(|output| output.stdout).map_err(|error| format!("burnet attack cannot be run: {error}"))
}

/// Of each family as many attacks as are measured, at equal distances in its list.
fn spread_over_families(listed: &[Listed]) -> Vec<String> {
    let mut families: Vec<(&str, Vec<&str>)> = Vec::new();
    for Listed { case, family } in listed {
        match families.iter_mut().find(|(name, _)| name == family) {
            Some((_, cases)) => cases.push(case),
            None => families.push((family, vec![case])),
        }
    }
    let spread = |cases: Vec<&str>| {
        let count = cases.len().min(OF_A_FAMILY);
        (0..count).map(|place| cases[place * cases.len() / count].to_owned()).collect::<Vec<_>>()
    };
    families.into_iter().flat_map(|(_, cases)| spread(cases)).collect()
}

fn read(printed: &[u8]) -> Result<Vec<Score>, String> {
    let mut scores: Vec<Score> = serde_json::from_slice(printed)
        .map_err(|error| format!("burnet attack printed no scorecard with throughput: {error}"))?;
    scores.sort_by(|one, other| one.throughput.median.total_cmp(&other.throughput.median));
    Ok(scores)
}

/// Of a monolithic node.
fn measure(lab: &Lab, attacks: &[&'static str]) -> Result<Vec<Measured>, String> {
    let mut seen = Vec::new();
    let mut before = rate(lab, None)?;
    for attack in attacks {
        lab.say(&format!("interference: monolithic, {attack}"));
        let disturbed = rate(lab, Some(attack))?;
        let after = rate(lab, None)?;
        seen.push(Measured { attack, ratios: ratio(disturbed, before, after).into_iter().collect() });
        before = after;
    }
    Ok(seen)
}

/// Nothing if nothing was answered undisturbed either.
fn ratio(disturbed: f64, before: f64, after: f64) -> Option<f64> {
    let undisturbed = (before + after) / 2.0;
    (undisturbed > 0.0).then_some(disturbed / undisturbed)
}

/// Answers a second of a learning switch, with or without an attacker beside it.
fn rate(lab: &Lab, attack: Option<&str>) -> Result<f64, String> {
    let node = Node::start(lab, Kind::Monolithic, &configuration(lab, attack)?)?;
    // The attacker does not serve for long, or at all.
    let address = node.wait(&["learning-switch"])?;
    let per_s = bench(lab, address)?;
    Ok(if node.has_ended() { 0.0 } else { per_s })
}

fn configuration(lab: &Lab, attack: Option<&str>) -> Result<String, String> {
    let innocent = "[node]\nlog = \"error\"\n[app.learning-switch]\n".to_owned();
    let Some(attack) = attack else { return Ok(innocent) };
    let path = lab.misbehaving_object()?;
    Ok(format!(
        "{innocent}[app.misbehaving]\npath = \"{}\"\n{LIMITS}[app.misbehaving.settings]\nattack = \"{attack}\"\nagain = true\nquiet_s = 1\n",
        path.display()
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

fn claims(scores: &[Score], seen: &[Measured]) -> Vec<Claim> {
    let baseline = |seen: &Measured| {
        let percents: Vec<f64> = seen.ratios.iter().map(|ratio| ratio * 100.0).collect();
        let what = format!("monolithic: learning switch beside {}", seen.attack);
        Claim::seen(&what, spread_text(&percents, "% of undisturbed", 0))
    };
    let ours = [all_held(scores), pings(scores), kept(scores)];
    ours.into_iter().chain(anyway(scores)).chain(seen.iter().map(baseline)).collect()
}

fn all_held(scores: &[Score]) -> Claim {
    let held = scores.iter().filter(|score| score.held).count();
    let measured = format!("{held} of {}", scores.len());
    Claim::asked("Burnet: attacks that held", "all", measured, held == scores.len() && held > 0)
}

fn pings(scores: &[Score]) -> Claim {
    let (pings, lost) =
        scores.iter().fold((0, 0), |(pings, lost), score| (pings + score.pings, lost + score.lost));
    let measured = format!("{lost} of {pings}");
    Claim::asked("Burnet: pings of others lost beside them", "0", measured, lost == 0 && pings > 0)
}

/// Of scores of which the least come first.
fn kept(scores: &[Score]) -> Claim {
    let shares: Vec<f64> = scores.iter().map(|score| score.throughput.median).collect();
    let less = shares.iter().filter(|share| **share < ASKED).count();
    let least = scores.first().map(percent_of).unwrap_or_default();
    let measured = format!(
        "beside {} of {}; median {:.0} %, least {least}",
        shares.len() - less,
        shares.len(),
        median(&shares) * 100.0
    );
    let what = "Burnet: attacks beside which the learning switch keeps 90 % of its throughput";
    Claim::asked(what, "all", measured, less == 0 && !shares.is_empty())
}

/// How much of what is seen is the machine's; nothing of a trial so short that no round had others around it.
fn anyway(scores: &[Score]) -> Option<Claim> {
    let mut all: Vec<f64> = scores.iter().flat_map(|score| score.throughput.anyway.iter().copied()).collect();
    all.sort_by(f64::total_cmp);
    let percent = |twentieths: usize| all.get(all.len() * twentieths / 20).map(|ratio| ratio * 100.0);
    let measured =
        format!("nine of ten within {:.0} and {:.0} %, of {}", percent(1)?, percent(19)?, all.len());
    Some(Claim::seen("Burnet: a round without an attack by those before and after it", measured))
}

fn percent_of(score: &Score) -> String {
    format!("{:.0} % ({})", score.throughput.median * 100.0, score.case)
}

fn figure(scores: &[Score], seen: &[Measured]) -> Figure {
    let asked = || vec![ReferenceLine::Horizontal(ASKED * 100.0, "asked: 90 %".to_owned())];
    let up = || axis("% of undisturbed", Scale::Linear(0.0, 140.0));
    let points =
        scores.iter().enumerate().map(|(place, Score { throughput: Kept { median, min, max, .. }, .. })| {
            Point { x: place as f64, y: median * 100.0, spread: Some((min * 100.0, max * 100.0)) }
        });
    let ours = Chart {
        x: axis("attacks, by what the learning switch keeps", Scale::Linear(-1.0, scores.len() as f64)),
        y: up(),
        series: vec![series(
            "one attack, and its pairs of rounds",
            Shape::Line,
            Style::Ours,
            points.collect(),
        )],
        marks: asked(),
    };
    let bars =
        seen.iter().enumerate().map(|(place, seen)| Point::at(place as f64, median(&seen.ratios) * 100.0));
    let baseline = Chart {
        x: axis(
            "what the other app does, again and again",
            Scale::Names(seen.iter().map(|seen| seen.attack.to_owned()).collect()),
        ),
        y: up(),
        series: vec![series(
            "answers of the innocent learning switch",
            Shape::Bars,
            Style::Baseline,
            bars.collect(),
        )],
        marks: asked(),
    };
    let least: Vec<String> = scores.iter().take(NAMED).map(percent_of).collect();
    Figure {
        title: "What an innocent app answers while another app or a switch does harm".to_owned(),
        panels: vec![
            panel(format!("Burnet, {} attacks of all families", scores.len()), Content::Chart(ours)),
            panel("Everything in one process", Content::Chart(baseline)),
        ],
        notes: vec![
            "Not in the paper. The maximum rate of packet-ins from 16 switches. The generator and the node share the cores with the \
             attacker. An attacking app may use a tenth of a core."
                .to_owned(),
            format!("The minimum: {}.", least.join(", ")),
        ],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_family_has_as_many_attacks_as_are_measured() {
        let check = |families: &str, expected: &[&str]| {
            let listed: Vec<Listed> = families
                .split(' ')
                .enumerate()
                .map(|(place, family)| Listed { case: format!("{family}{place}"), family: family.to_owned() })
                .collect();
            assert_eq!(spread_over_families(&listed), expected, "{families}");
        };
        check("a", &["a0"]);
        check("a a b", &["a0", "a1", "b2"]);
        check("a b a a a", &["a0", "a3", "b1"]);
    }

    fn score(case: &str, held: bool, median: f64) -> String {
        format!(
            r#"{{"case":"{case}","what":"","held":{held},"why":"","pings":4,"lost":0,
            "throughput":{{"median":{median},"min":0,"max":1,"pairs":[],"anyway":[0.5,1.5],"undisturbed_per_s":1}}}}"#
        )
    }

    fn check(scores: &[String], expected: [bool; 3]) {
        let scores = read(format!("[{}]", scores.join(",")).as_bytes()).unwrap();
        let holds: Vec<_> = claims(&scores, &[]).into_iter().filter_map(|claim| claim.holds).collect();
        assert_eq!(holds, expected, "{scores:?}");
    }

    #[test]
    fn what_is_no_scorecard_is_refused() {
        for printed in ["", "{}", r#"[{"case":"exit"}]"#] {
            assert!(read(printed.as_bytes()).is_err(), "{printed}");
        }
    }

    #[test]
    fn an_attack_beside_which_nothing_could_be_measured_counts_as_nothing_kept() {
        check(&[r#"{"case":"exit","held":true,"pings":1,"lost":0}"#.to_owned()], [true, true, false]);
    }

    #[test]
    fn nothing_that_was_tried_shows_nothing() {
        check(&[], [false, false, false]);
    }

    #[test]
    fn one_attack_beside_which_too_little_is_kept_is_enough() {
        check(&[score("exit", true, 0.95), score("abort", true, 0.9)], [true, true, true]);
        check(&[score("exit", true, 0.95), score("abort", true, 0.89)], [true, true, false]);
        check(&[score("exit", false, 0.95)], [false, true, true]);
    }

    #[test]
    fn a_rate_is_held_against_those_before_and_after_it() {
        assert_eq!(ratio(1.0, 0.0, 0.0), None);
        assert_eq!(ratio(90.0, 80.0, 120.0), Some(0.9));
    }

    #[test]
    fn a_report_without_rounds_is_a_controller_that_answered_nothing() {
        assert_eq!(last_rate(&json!({"rounds": []})), 0.0);
        assert_eq!(last_rate(&json!({"rounds": [{"responses_per_s": 1.0}, {"responses_per_s": 2.0}]})), 2.0);
    }
}
