//! Figures 5 to 8 from the testbed with processes, and what the meter of validity says beside busy loops.

use crate::lab::Lab;
use crate::paper::Findings;
use crate::plot::{Content, Figure, LineKind, Panel, Style, line, panel};
use crate::report::Claim;
use profile::Profile;
use profile::compare::Samples;
use serde_json::{Value, json};

use super::bed::{Device, Load, Outcome, run};
use crate::models::curves::{NO_HARDWARE, cdf, cdf_panel, decades, median_and_tail, qq_panel, summary};
use crate::models::delays::{PARTS, Part};
use crate::models::judged::Judged;
use crate::models::paper::{Validity as Said, paper};
use crate::models::players::{HARDWARE, Target};
use crate::models::virtual_bed::{Seen, samples};

/// Runs that are pooled.
const RUNS: usize = 5;
/// Runs of what no figure is asked of: Open vSwitch alone, and the paper's model. A run takes two minutes.
const RUNS_BESIDE: usize = 2;

/// What every page of these says.
const REAL_TIME: &str = "In real time, as root: namespaces, redis-server, 1 Gb/s by TBF, and Open vSwitch with its datapath in user space. The \
                         probe found the emulator's profile in virtual time.";

/// All runs of one switch.
struct Runs {
    target: Vec<Outcome>,
    ovs: Vec<Outcome>,
    full: Vec<Outcome>,
    paper: Vec<Outcome>,
}

/// HP.
///
/// # Errors
/// A run fails.
pub fn hp(lab: &Lab) -> Result<Findings, String> {
    of_switch(lab, "5", HARDWARE[0])
}

/// Monaco.
///
/// # Errors
/// A run fails.
pub fn monaco(lab: &Lab) -> Result<Findings, String> {
    of_switch(lab, "6", HARDWARE[1])
}

/// Quanta.
///
/// # Errors
/// A run fails.
pub fn quanta(lab: &Lab) -> Result<Findings, String> {
    of_switch(lab, "7", HARDWARE[2])
}

pub(super) fn load(lab: &Lab) -> Result<Load, String> {
    let of = paper()?.fig2;
    let value_bytes = usize::try_from(of.value_bytes).map_err(|why| why.to_string())?;
    let every = std::time::Duration::from_millis(of.every_ms);
    let (lasts, counted_from) = (lab.time(of.lasts_s as f64, 8.0), lab.time(of.counted_from_s as f64, 3.0));
    Ok(Load::in_real_time(every, lasts, counted_from, value_bytes))
}

pub(crate) fn text_of(profile: &Profile) -> Result<String, String> {
    profile.to_toml().map_err(|why| format!("{}: {why}", profile.name))
}

fn all_runs(lab: &Lab, target: Target) -> Result<Runs, String> {
    let load = load(lab)?;
    let (pooled, beside) = (lab.times(RUNS, 2), lab.times(RUNS_BESIDE, 1));
    let mut seed = 0;
    let mut repeated = |who: &str, device: &Device, count: usize| -> Result<Vec<Outcome>, String> {
        (1..=count)
            .map(|number| {
                lab.say(&format!("{}: {who}, run {number} of {count}", target.name));
                seed += 1;
                run(lab, device, &Load { seed, ..load })
            })
            .collect()
    };
    let full = Device::Proxied(text_of(&target.full()?)?, "full");
    let of_target = repeated("target", &Device::Native(text_of(&target.truth()?)?), pooled)?;
    let seen: Vec<Seen> = of_target.iter().map(|outcome| outcome.seen.clone()).collect();
    let paper = Device::Proxied(text_of(&target.paper(&seen)?)?, "paper");
    Ok(Runs {
        target: of_target,
        ovs: repeated("OVS", &Device::Ovs, beside)?,
        full: repeated("emulator, full", &full, pooled)?,
        paper: repeated("emulator, paper", &paper, beside)?,
    })
}

fn of_switch(lab: &Lab, number: &str, target: Target) -> Result<Findings, String> {
    let runs = all_runs(lab, target)?;
    let said_ms = paper()?.fig8.mean_differs_ms.get(target.profile).copied();
    let seen = |runs: &[Outcome]| -> Vec<Seen> { runs.iter().map(|it| it.seen.clone()).collect() };
    let full = Judged::of(&seen(&runs.target), &seen(&runs.full), target.mean_limit_ms)?;
    let simple = Judged::of(&seen(&runs.target), &seen(&runs.paper), target.mean_limit_ms)?;
    let (mut panels, parts) = part_panels(target, &runs)?;
    panels.push(qq_panel("Figure 8", &full.comparison.qq, &simple.comparison.qq));
    let mut claims = full.claims(&format!("{}, full by proxy", target.name), said_ms);
    let text = format!("{}; KS {:.3}", simple.mean_text(), simple.comparison.ks.distance);
    claims.push(Claim::seen(&format!("{}, paper's model by proxy", target.name), text));
    for (part, of) in PARTS {
        claims.push(Claim::seen(part, part_text(of, &runs)?));
    }
    claims.push(Claim::seen("flow mods for each query", flow_mods_text(&runs, &load(lab)?)));
    claims.push(validity_claim(&runs, &paper()?.validity));
    claims.push(unread_claim(&runs));
    let data = json!({
        "parts": parts,
        "full": full.to_json(),
        "paper": simple.to_json(),
        "validity": {
            "target": validities(&runs.target), "full": validities(&runs.full), "paper": validities(&runs.paper),
        },
    });
    let figure = Figure {
        title: format!("Figures {number} and 8 in real time: {}", target.name),
        panels,
        notes: vec![NO_HARDWARE.to_owned(), REAL_TIME.to_owned()],
    };
    Ok(Findings { claims, data, figure })
}

/// Two are needed, one each way. More are for packets that came before the data plane had the rule.
fn flow_mods_text(runs: &Runs, load: &Load) -> String {
    let queries = load.lasts.as_secs_f64() / load.every.as_secs_f64();
    let text = |who: &str, runs: &[Outcome]| {
        let flow_mods: u64 = runs.iter().map(|outcome| outcome.seen.flow_mods).sum();
        format!("{who} {:.2}", flow_mods as f64 / (queries * runs.len().max(1) as f64))
    };
    let all = [("target", &runs.target), ("OVS", &runs.ovs), ("full", &runs.full), ("paper", &runs.paper)];
    all.map(|(who, runs)| text(who, runs)).join("; ")
}

pub(super) fn pooled(runs: &[Outcome], of: Part) -> Result<Samples, String> {
    let all: Vec<f64> = runs.iter().flat_map(|outcome| of(&outcome.seen).iter().copied()).collect();
    samples(&all, "delays")
}

fn part_panels(target: Target, runs: &Runs) -> Result<(Vec<Panel>, Value), String> {
    let (mut panels, mut data) = (Vec::new(), serde_json::Map::new());
    for (part, of) in PARTS {
        let [of_target, ovs, full] = [&runs.target, &runs.ovs, &runs.full].map(|runs| pooled(runs, of));
        let (of_target, ovs, full) = (of_target?, ovs?, full?);
        let curves = vec![
            cdf(&format!("{} (target)", target.name), Style::Baseline, &of_target),
            cdf("OVS", Style::Paper, &ovs),
            cdf("emulator", Style::Ours, &full),
        ];
        let scale = decades(&curves);
        panels.push(cdf_panel(part, "ms", scale, curves));
        let numbers =
            json!({ "target": summary(&of_target), "ovs": summary(&ovs), "emulator": summary(&full) });
        data.insert(part.to_owned(), numbers);
    }
    Ok((panels, Value::Object(data)))
}

fn part_text(of: Part, runs: &Runs) -> Result<String, String> {
    let text = |who: &str, runs: &[Outcome]| -> Result<String, String> {
        Ok(format!("{who} {}", median_and_tail(&pooled(runs, of)?)))
    };
    let all = [text("target", &runs.target)?, text("OVS", &runs.ovs)?, text("emulator", &runs.full)?];
    Ok(all.join("; "))
}

/// `valid`, or the word with its causes, for each run.
fn validities(runs: &[Outcome]) -> Vec<String> {
    runs.iter().map(validity_text).collect()
}

pub(crate) fn validity_text(outcome: &Outcome) -> String {
    match &outcome.validity {
        None => "without a meter".to_owned(),
        Some((word, causes)) if causes.is_empty() => word.clone(),
        Some((word, causes)) => format!("{word} ({})", causes.join(", ")),
    }
}

fn validity_claim(runs: &Runs, said: &Said) -> Claim {
    let all = [validities(&runs.target), validities(&runs.full), validities(&runs.paper)];
    let is_valid = all.iter().flatten().all(|text| text == "valid");
    let text =
        format!("target {}; full {}; paper {}", all[0].join(", "), all[1].join(", "), all[2].join(", "));
    Claim::asked("what the meter says of the runs", "valid", text, is_valid)
        .beside(&format!("{}: the processor was at most {} % busy", said.place, said.processor_max_percent))
}

fn unread_claim(runs: &Runs) -> Claim {
    let all = [&runs.target, &runs.ovs, &runs.full, &runs.paper];
    let unread: u64 = all.into_iter().flatten().map(|outcome| outcome.unread).sum();
    Claim::asked("frames and messages that were not captured", "none", unread.to_string(), unread == 0)
}

/// What the meter says of an emulator beside busy loops, and without them.
///
/// # Errors
/// A run fails.
pub fn starved(lab: &Lab) -> Result<Findings, String> {
    let monaco = HARDWARE[1];
    let (idle, device) = (load(lab)?, Device::Proxied(text_of(&monaco.truth()?)?, "full"));
    // One for each core: with fewer, the run would have cores of its own.
    let cores =
        std::thread::available_parallelism().map_err(|why| format!("how many cores are here? {why}"))?;
    let (mut claims, mut lines, mut data) = (Vec::new(), Vec::new(), Vec::new());
    for busy_loops in [0, cores.get()] {
        lab.say(&format!("the emulator of {} beside {busy_loops} busy loops", monaco.name));
        let outcome = run(lab, &device, &Load { busy_loops, ..idle })?;
        let asked = if busy_loops == 0 { "valid" } else { "invalid" };
        let word = outcome.validity.as_ref().map_or("none", |(word, _)| word.as_str());
        let what = format!("the meter, beside {busy_loops} busy loops");
        claims.push(Claim::asked(&what, asked, validity_text(&outcome), word == asked));
        let kind = if word == asked { LineKind::Good } else { LineKind::Bad };
        lines.push(line(format!("{busy_loops} busy loops: {}", validity_text(&outcome)), kind));
        let completion = outcome.seen.completions().map(|it| summary(&it)).ok();
        data.push(json!({ "busy_loops": busy_loops, "validity": validity_text(&outcome), "completion": completion }));
    }
    let figure = Figure {
        title: "Whether a run can be believed: an emulator beside busy loops".to_owned(),
        panels: vec![panel("The meter of validity", Content::Text(lines))],
        notes: vec![NO_HARDWARE.to_owned(), REAL_TIME.to_owned()],
    };
    Ok(Findings { claims, data: Value::Array(data), figure })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_run_that_is_not_valid_is_enough() {
        let outcome = |word: &str| Outcome {
            seen: Seen::default(),
            validity: Some((word.to_owned(), Vec::new())),
            unread: 0,
        };
        let runs = |last: &str| Runs {
            target: vec![outcome("valid")],
            ovs: vec![Outcome { validity: None, ..outcome("") }],
            full: vec![outcome("valid")],
            paper: vec![outcome(last)],
        };
        let said = paper().unwrap().validity;
        assert_eq!(validity_claim(&runs("valid"), &said).holds, Some(true));
        assert_eq!(validity_claim(&runs("doubtful"), &said).holds, Some(false));
    }
}
