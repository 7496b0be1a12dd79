//! Figures 5 to 7: completion, ingress and egress of one switch, beside Open vSwitch and the emulator.

use crate::lab::Lab;
use crate::paper::Findings;
use crate::plot::{Figure, Style};
use crate::report::Claim;
use profile::compare::{Samples, ks};
use serde_json::{Value, json};

use super::curves::{NO_HARDWARE, VIRTUAL, cdf, cdf_panel, decades, median_and_tail, said, summary};
use super::fig2::load;
use super::paper::paper;
use super::players::{HARDWARE, OVS, Target};
use super::virtual_bed::{Load, Seen, run, samples};

/// One of the three kinds of times that were seen.
pub type Part = fn(&Seen) -> &[f64];

/// The panels: name in the figure, and what they show.
pub const PARTS: [(&str, Part); 3] = [
    ("(a) completion", |seen| &seen.completion_us),
    ("(b) ingress", |seen| &seen.ingress_us),
    ("(c) egress", |seen| &seen.egress_us),
];

/// The seed of the target, of Open vSwitch and of the emulator.
const SEEDS: [u64; 3] = [1, 2, 3];

/// Figure 5.
///
/// # Errors
/// A run fails.
pub fn fig5(lab: &Lab) -> Result<Findings, String> {
    of_switch(lab, "Figure 5", HARDWARE[0])
}

/// Figure 6.
///
/// # Errors
/// A run fails.
pub fn fig6(lab: &Lab) -> Result<Findings, String> {
    of_switch(lab, "Figure 6", HARDWARE[1])
}

/// Figure 7.
///
/// # Errors
/// A run fails.
pub fn fig7(lab: &Lab) -> Result<Findings, String> {
    of_switch(lab, "Figure 7", HARDWARE[2])
}

fn of_switch(lab: &Lab, figure: &str, target: Target) -> Result<Findings, String> {
    let paper = paper()?;
    let load = load(lab, &paper.fig2);
    lab.say(&format!("{}: the probe looks for its profile", target.name));
    let emulator = target.full()?;
    let all = [
        one(lab, target.name, &target.truth()?, &load, SEEDS[0])?,
        one(lab, OVS.name, &OVS.truth()?, &load, SEEDS[1])?,
        one(lab, "emulator", &emulator, &load, SEEDS[2])?,
    ];
    let mut claims = Vec::new();
    let (mut panels, mut data) = (Vec::new(), serde_json::Map::new());
    for (part, of) in PARTS {
        let [target_us, ovs_us, emulator_us] = sampled(part, of, &all)?;
        claims.push(part_claim(part, &target_us, &emulator_us));
        let curves = vec![
            cdf(&format!("{} (target)", target.name), Style::Baseline, &target_us),
            cdf("OVS", Style::Paper, &ovs_us),
            cdf("emulator", Style::Ours, &emulator_us),
        ];
        let scale = decades(&curves);
        panels.push(cdf_panel(part, "ms", scale, curves));
        let of_part = json!({ "target": summary(&target_us), "ovs": summary(&ovs_us), "emulator": summary(&emulator_us) });
        data.insert(part.to_owned(), of_part);
    }
    let [target_us, ovs_us, _] = sampled(PARTS[0].0, PARTS[0].1, &all)?;
    claims.push(
        Claim::asked(
            "OVS completes queries sooner",
            "yes",
            format!("{:.1} times as fast in the median", target_us.quantile(0.5) / ovs_us.quantile(0.5)),
            ovs_us.quantile(0.5) < target_us.quantile(0.5),
        )
        .beside("as a result, clients complete faster on OVS"),
    );
    claims.push(ovs_claim(&all[1], paper.delays.ovs_ingress_ms)?);
    Ok(Findings {
        claims,
        data: Value::Object(data),
        figure: Figure {
            title: format!("{figure}: where the time of a query goes, {}", target.name),
            panels,
            notes: vec![
                said(&paper.delays.place, &paper.delays.says),
                NO_HARDWARE.to_owned(),
                VIRTUAL.to_owned(),
            ],
        },
    })
}

fn one(lab: &Lab, name: &str, profile: &profile::Profile, load: &Load, seed: u64) -> Result<Seen, String> {
    lab.say(&format!("{name}: clients"));
    run(profile, load, seed)
}

fn sampled(part: &str, of: Part, all: &[Seen; 3]) -> Result<[Samples; 3], String> {
    let [target, ovs, emulator] = all;
    Ok([samples(of(target), part)?, samples(of(ovs), part)?, samples(of(emulator), part)?])
}

/// The one number that the text gives of a curve.
fn ovs_claim(seen: &Seen, (from_ms, to_ms): (f64, f64)) -> Result<Claim, String> {
    let ingress = samples(&seen.ingress_us, "delays of OVS at ingress")?;
    let share = ingress.share_up_to(to_ms * 1e3) - ingress.share_up_to(from_ms * 1e3);
    let what = format!("OVS: packet-ins that take {from_ms} to {to_ms} ms");
    Ok(Claim::seen(&what, format!("{:.0} %", share * 100.0)).beside("half"))
}

/// One run of each says how they look. Figure 8 judges pools of five.
fn part_claim(part: &str, target: &Samples, emulator: &Samples) -> Claim {
    let text = format!(
        "target {}; emulator {}; KS {:.3}",
        median_and_tail(target),
        median_and_tail(emulator),
        ks(target, emulator).distance
    );
    Claim::seen(part, text)
}
