//! Figure 8: QQ plots of the completion times of both emulators and their target.

use crate::lab::Lab;
use crate::paper::Findings;
use crate::plot::Figure;
use crate::report::Claim;
use profile::Profile;
use serde_json::{Value, json};

use super::curves::{NO_HARDWARE, VIRTUAL, qq_panel, said};
use super::fig2::load;
use super::judged::{ITSELF, Judged};
use super::paper::paper;
use super::players::{HARDWARE, Target};
use super::virtual_bed::{Load, Seen, run};

/// Runs of each. Five of them are pooled, again and again.
const RUNS: usize = 60;
/// The first seeds of the target, of the runs that give the paper's emulator its delays, and of both emulators.
const TARGET_SEED: u64 = 1;
const DELAYS_SEED: u64 = 101;
const FULL_SEED: u64 = 201;
const PAPER_SEED: u64 = 301;
/// Runs that give the paper's emulator its delays.
const DELAYS_RUNS: usize = 5;
/// How far quantiles of the HP switch may be: up to 95 %, and at 99 %.
const BODY_LIMIT: f64 = 0.05;
const TAIL_LIMIT: f64 = 0.10;

/// A target and both emulators.
#[derive(Debug)]
pub struct Trio {
    /// Runs of the target.
    pub target: Vec<Seen>,
    /// Runs of the emulator with the whole model.
    pub full: Vec<Seen>,
    /// Runs of the paper's emulator.
    pub paper: Vec<Seen>,
}

/// Runs a target and both of its emulators with a load.
///
/// # Errors
/// A run or the probe fails.
pub fn trio(target: Target, load: &Load, paper: &Profile, count: usize) -> Result<Trio, String> {
    Ok(Trio {
        target: repeated(&target.truth()?, load, TARGET_SEED, count)?,
        full: repeated(&target.full()?, load, FULL_SEED, count)?,
        paper: repeated(paper, load, PAPER_SEED, count)?,
    })
}

/// The paper's emulator, from runs of the target with figure 2's load.
///
/// # Errors
/// A run fails.
pub fn paper_emulator(target: Target, load: &Load, count: usize) -> Result<Profile, String> {
    target.paper(&repeated(&target.truth()?, load, DELAYS_SEED, count)?)
}

fn repeated(profile: &Profile, load: &Load, first_seed: u64, count: usize) -> Result<Vec<Seen>, String> {
    (first_seed..).take(count).map(|seed| run(profile, load, seed)).collect()
}

/// Runs it.
///
/// # Errors
/// A run or the probe fails.
pub fn run_figure(lab: &Lab) -> Result<Findings, String> {
    let paper = paper()?;
    let load = load(lab, &paper.fig2);
    let count = lab.times(RUNS, 2);
    let (mut claims, mut panels, mut data) = (Vec::new(), Vec::new(), serde_json::Map::new());
    for target in HARDWARE {
        lab.say(&format!("{}: {count} runs each of the target and both emulators", target.name));
        let emulator = paper_emulator(target, &load, lab.times(DELAYS_RUNS, 2))?;
        let runs = trio(target, &load, &emulator, count)?;
        let full = Judged::of(&runs.target, &runs.full, target.mean_limit_ms)?;
        let simple = Judged::of(&runs.target, &runs.paper, target.mean_limit_ms)?;
        let said_ms = paper.fig8.mean_differs_ms.get(target.profile).copied();
        claims.extend(full.claims(&format!("{}, full", target.name), said_ms));
        if target.profile == HARDWARE[0].profile {
            claims.extend(quantile_claims(&full));
        }
        claims.push(simple_claim(target, &simple));
        claims.push(failed_claim(target, &runs));
        panels.push(qq_panel(target.name, &full.comparison.qq, &simple.comparison.qq));
        data.insert(target.profile.to_owned(), numbers(&runs, &full, &simple));
    }
    let figure = Figure {
        title: "Figure 8: completion times of the emulators and of their targets".to_owned(),
        panels,
        notes: vec![
            said(&paper.fig8.place, &paper.fig8.says),
            NO_HARDWARE.to_owned(),
            VIRTUAL.to_owned(),
            "A query that failed counts as one that took its time-out of 10 s.".to_owned(),
            "`paper` draws the delays of the target at ingress and egress, as the paper does. `full` is the whole model.".to_owned(),
        ],
    };
    Ok(Findings { claims, data: Value::Object(data), figure })
}

fn numbers(runs: &Trio, full: &Judged, simple: &Judged) -> Value {
    let failed = |runs: &[Seen]| -> Vec<usize> { runs.iter().map(|seen| seen.failed).collect() };
    json!({
        "full": full.to_json(),
        "paper": simple.to_json(),
        "failed": { "target": failed(&runs.target), "full": failed(&runs.full), "paper": failed(&runs.paper) },
    })
}

fn simple_claim(target: Target, simple: &Judged) -> Claim {
    let text = format!("{}; KS {:.3}", simple.mean_text(), simple.comparison.ks.distance);
    Claim::seen(&format!("{}, paper's model: difference of the means", target.name), text)
}

fn failed_claim(target: Target, runs: &Trio) -> Claim {
    let text = |runs: &[Seen]| {
        let (failed, all) =
            runs.iter().fold((0, 0), |(failed, all), seen| (failed + seen.failed, all + seen.queries()));
        format!("{failed} of {all}")
    };
    let [of_target, full, simple] = [&runs.target, &runs.full, &runs.paper].map(|runs| text(runs));
    let text = format!("target {of_target}, full {full}, paper's model {simple}");
    Claim::seen(&format!("{}: queries that failed", target.name), text)
}

fn quantile_claims(full: &Judged) -> Vec<Claim> {
    let claim = |what: &str, apart: f64, itself: f64, limit: f64| {
        let allowed = limit.max(ITSELF * itself);
        Claim::asked(
            &format!("HP, full: {what}"),
            &format!(
                "within {:.0} %, or {ITSELF} times the target to itself: {:.1} %",
                limit * 100.0,
                allowed * 100.0
            ),
            format!("{:.1} %; the target to itself {:.1} %", apart * 100.0, itself * 100.0),
            apart <= allowed,
        )
    };
    let (apart, itself) = (full.apart, full.itself);
    vec![
        claim("every quantile to 95 %", apart.body, itself.body, BODY_LIMIT).beside("accurate to 65 %"),
        claim("the quantile at 99 %", apart.tail, itself.tail, TAIL_LIMIT),
    ]
}
