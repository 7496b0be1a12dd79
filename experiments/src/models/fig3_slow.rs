//! Figure 3 with processes: one switch in slow motion, with Redis.
//!
//! ```text
//!   Load of figure 3 ──┬──────────> virtual time, two seeds ─────────────────────────────┐
//!                      └─ times N ─> testbed: Redis, Open vSwitch, proxy ──> divided by N ─┴──> shares, throughputs
//! ```
//!
//! The switch is the one with the smallest table, so that it is full soon. Proxy and virtual time play the same profile. So what differs is due to
//! Open vSwitch, Linux and the machine, and not to the probe.

use crate::lab::Lab;
use crate::paper::Findings;
use crate::plot::{Figure, Style};
use crate::report::Claim;
use profile::compare::ks;
use serde_json::json;

use super::curves::{cdf_panel, decades, scaled_cdf};
use super::fig3::{
    Churned, KS_LIMIT, SEEDS, SHARE_LIMIT, churn, completed, json_of, load_of, refusal_claim, refused,
    throughputs,
};
use super::paper::paper;
use super::players::{HARDWARE, Target};
use super::testbed::bed::{self, Device, Outcome};
use super::testbed::figures::{text_of, validity_text};
use super::virtual_bed::{Load, Seen};

/// How many times slower. Figure 3 offers 4 Gb/s, and a seventh of that is little for Open vSwitch in user space.
const FACTOR: u32 = 7;
/// For how long clients begin, in the switch's time. Queries have as long again to complete. The table of Monaco is full within these 40 s, and a
/// run takes 280 s of ours.
const LASTS_S: f64 = 20.0;
const SHORT_S: f64 = 5.0;
/// As much as a run may always differ from the switch, of what the switch differs from itself: see the page of the experiments.
const ITSELF_FACTOR: f64 = 1.2;

/// Monaco.
const SWITCH: Target = HARDWARE[1];

/// Runs it.
///
/// # Errors
/// A run fails, or something is missing on this machine.
pub fn run_figure(lab: &Lab) -> Result<Findings, String> {
    let paper = paper()?;
    let load = load_of(&paper.fig3, SWITCH, lab.time(LASTS_S, SHORT_S))?;
    let profile = SWITCH.truth()?;
    lab.say(&format!("{} in virtual time, twice", SWITCH.name));
    let (truth, again) = (churn(&profile, &load, SEEDS[0])?, churn(&profile, &load, SEEDS[1])?);
    let slow = dilated(&load, FACTOR)?;
    lab.say(&format!("{} {FACTOR} times slower, with Redis: {} s", SWITCH.name, 2 * slow.lasts.as_secs()));
    let outcome = bed::run(lab, &Device::Proxied(text_of(&profile)?, "full"), &slow)?;
    let seen = scaled_back(&outcome.seen, FACTOR);
    let real = Churned { bits_per_s: throughputs(&seen, &load, "Redis")?, seen };
    let mut claims = vec![validity_claim(&outcome), refusal_claim(SWITCH, &paper.fig3, &real.seen)];
    claims.extend(likeness_claims(&truth, &again, &real));
    claims.push(unread_claim(&outcome));
    let runs = [("virtual time", &truth), ("virtual time, another seed", &again), ("slow motion", &real)];
    let data = json!({
        "profile": SWITCH.profile, "factor": FACTOR, "clients_begin_s": load.lasts.as_secs_f64(),
        "validity": validity_text(&outcome), "runs": runs.map(|(who, churned)| json_of(who, churned)),
    });
    Ok(Findings { claims, data, figure: figure(&truth, &again, &real) })
}

/// The same load for a switch that is slower. Bytes and rules stay: the time-outs of rules are the switch's, who is slow.
fn dilated(load: &Load, factor: u32) -> Result<bed::Load, String> {
    let (every, lasts) = (load.every * factor, load.lasts * factor);
    let value_bytes = usize::try_from(load.value_bytes).map_err(|why| why.to_string())?;
    Ok(bed::Load {
        timeout: load.timeout * factor,
        open_max: usize::try_from(load.open_max).map_err(|why| why.to_string())?,
        rules: load.rules,
        slow_motion: factor,
        ..bed::Load::in_real_time(every, lasts, load.counted_from * factor, value_bytes)
    })
}

/// What the switch would have shown in its own time. Counts stay.
fn scaled_back(seen: &Seen, factor: u32) -> Seen {
    let back = |us: &[f64]| us.iter().map(|us| us / f64::from(factor)).collect();
    Seen {
        completion_us: back(&seen.completion_us),
        ingress_us: back(&seen.ingress_us),
        egress_us: back(&seen.egress_us),
        setups_per_s: seen.setups_per_s * f64::from(factor),
        ..*seen
    }
}

fn validity_claim(outcome: &Outcome) -> Claim {
    let text = validity_text(outcome);
    Claim::asked("what the meter says of the run", "valid", text.clone(), text == "valid")
}

fn unread_claim(outcome: &Outcome) -> Claim {
    let unread = outcome.unread;
    Claim::asked("frames and messages that were not captured", "none", unread.to_string(), unread == 0)
}

fn likeness_claims(truth: &Churned, again: &Churned, real: &Churned) -> Vec<Claim> {
    let share = |what: &str, of: fn(&Seen) -> f64| {
        let [one, two, three] = [truth, again, real].map(|churned| of(&churned.seen));
        let limit = SHARE_LIMIT.max(ITSELF_FACTOR * (one - two).abs());
        let text = format!(
            "{:.1} %; in virtual time {:.1} %, with another seed {:.1} %",
            three * 100.0,
            one * 100.0,
            two * 100.0
        );
        let asked = format!("within {:.1} % of all", limit * 100.0);
        Claim::asked(&format!("share {what}"), &asked, text, (one - three).abs() <= limit)
    };
    let itself = ks(&truth.bits_per_s, &again.bits_per_s).distance;
    let distance = ks(&truth.bits_per_s, &real.bits_per_s).distance;
    let limit = KS_LIMIT.max(ITSELF_FACTOR * itself);
    vec![
        share("of flow mods refused", refused),
        share("of queries completed", completed),
        Claim::asked(
            "KS distance of throughputs from virtual time",
            &format!("< {KS_LIMIT}, or {ITSELF_FACTOR} times virtual time to itself: {limit:.3}"),
            format!("{distance:.3}; virtual time to itself {itself:.3}"),
            distance < limit,
        ),
    ]
}

fn figure(truth: &Churned, again: &Churned, real: &Churned) -> Figure {
    let curves = vec![
        scaled_cdf("virtual time", Style::Baseline, &truth.bits_per_s, 1e-6),
        scaled_cdf("another seed", Style::Other, &again.bits_per_s, 1e-6),
        scaled_cdf("Redis, scaled back", Style::Ours, &real.bits_per_s, 1e-6),
    ];
    let scale = decades(&curves);
    let panels = vec![cdf_panel(SWITCH.name, "throughput of a client, Mb/s", scale, curves)];
    let notes = vec![
        format!(
            "In real time, as root, {FACTOR} times slower: namespaces, redis-server, links of {} Mb/s, and Open vSwitch behind the proxy. \
             Times are scaled back. All play the built-in profile, so no probe is in it.",
            1000 / FACTOR
        ),
        format!(
            "Clients begin for {LASTS_S} s of the switch, and queries have as long again. Timers of TCP are {FACTOR} times as long, too."
        ),
    ];
    Figure { title: format!("Figure 3 in slow motion with Redis: {}", SWITCH.name), panels, notes }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::models::virtual_bed::samples;
    use std::time::Duration;

    fn churned(bits_per_s: &[f64], flow_mods: u64, refused: u64, failed: usize) -> Churned {
        let completion_us = bits_per_s.to_vec();
        let seen = Seen { completion_us, flow_mods, refused, failed, ..Seen::default() };
        Churned { bits_per_s: samples(bits_per_s, "throughputs").unwrap(), seen }
    }

    #[test]
    fn a_slower_switch_has_longer_times_and_the_same_bytes_and_rules() {
        let load = load_of(&paper().unwrap().fig3, SWITCH, Duration::from_secs(14)).unwrap();
        let slow = dilated(&load, 10).unwrap();
        assert_eq!((slow.every, slow.lasts), (Duration::from_millis(100), Duration::from_secs(140)));
        assert_eq!((slow.timeout, slow.slow_motion), (Duration::from_secs(140), 10));
        assert_eq!((slow.value_bytes, slow.open_max, slow.rules.idle_s), (5_000_000, 510, 10));
    }

    #[test]
    fn times_are_scaled_back_and_counts_stay() {
        let seen = Seen { completion_us: vec![10.0], failed: 3, flow_mods: 7, refused: 2, ..Seen::default() };
        let back = scaled_back(&seen, 10);
        assert_eq!((back.completion_us, back.failed, back.flow_mods, back.refused), (vec![1.0], 3, 7, 2));
    }

    #[test]
    fn a_run_may_differ_as_the_switch_differs_from_itself() {
        let holds = |again: &Churned, real: &Churned| {
            let claims = likeness_claims(&churned(&[1.0; 90], 100, 10, 10), again, real);
            claims.iter().map(|claim| claim.holds == Some(true)).collect::<Vec<bool>>()
        };
        let (same, refusing) = (churned(&[1.0; 90], 100, 10, 10), churned(&[1.0; 90], 100, 20, 10));
        let (failing, slow) = (churned(&[1.0; 90], 100, 10, 30), churned(&[0.5; 90], 100, 10, 10));
        assert_eq!(holds(&same, &same), [true, true, true]);
        assert_eq!(holds(&same, &refusing), [false, true, true]);
        assert_eq!(holds(&refusing, &refusing), [true, true, true]);
        assert_eq!(holds(&same, &failing), [true, false, true]);
        assert_eq!(holds(&same, &slow), [true, true, false]);
    }
}
