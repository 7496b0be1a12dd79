//! Privacy: how many bits a second one tenant learns of another from its labels.
//!
//! Two senders: a *victim* whose flows begin and end for reasons of its own, and an *accomplice* who wants to tell the observer something. All are on one
//! link of 10 Gb/s, with eight tenants more that see it. Labels are exact or coarse, damped or told at once.

use super::draws::Draws;
use super::paper::paper;
use super::setting::G;
use crate::lab::Lab;
use crate::paper::Findings;
use crate::plot::{Chart, Content, Figure, Point, Scale, Shape, Style, axis, panel, quote, series};
use crate::report::Claim;
use rehearsal::{Fabric, LinkNo, Pair, Service, SliceNo, Step, Telling, VnicNo};
use serde_json::{Value, json};
use std::collections::BTreeMap;

const SENDER: SliceNo = SliceNo(0);
const OBSERVER: SliceNo = SliceNo(1);
/// Others that see the link: increases are spread over all that receive them.
const OTHERS: u32 = 8;
/// How coarse labels are.
const STEPS: [Option<&str>; 4] = [None, Some("10%"), Some("25%"), Some("50%")];
/// The accomplice changes its flows after each of these times, in ms; the best counts.
const SLOTS_MS: [u64; 6] = [1, 10, 100, 200, 500, 1_000];
/// The accomplice's VNICs, in kb/s: four that change labels by a step and more, and twelve that only change their last digits.
const ACCOMPLICE_KBPS: [u64; 16] =
    [500_000, 1_000_000, 2_000_000, 4_000_000, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1_024, 2_048];
/// How many of them are large.
const LARGE: usize = 4;
/// The victim's VNICs, in kb/s. A flow of each is there for this long on average, and then not.
const VICTIM_KBPS: [u64; 3] = [1_000_000, 2_000_000, 3_000_000];
const VICTIM_MEAN_MS: u64 = 2_000;
/// How often it is asked what the observer knows.
const SAMPLE_MS: u64 = 100;
const SLOTS: usize = 4_000;
const SAMPLES: usize = 100_000;

/// One kind of labels.
#[derive(Clone, Copy, Debug)]
struct Kind {
    telling: Telling,
    step: Option<&'static str>,
}

impl Kind {
    fn name(self) -> String {
        let how = if self.telling == Telling::Damped { "damped" } else { "at once" };
        format!("{}, {how}", self.step.map_or("exact".to_owned(), |step| format!("steps of {step}")))
    }
}

/// What was learnt with one kind of labels, in bits a second.
#[derive(Clone, Copy, Debug)]
struct Learnt {
    accomplice: f64,
    /// The best time between two changes.
    slot_ms: u64,
    victim: f64,
    /// What the victim does in all.
    victim_all: f64,
}

/// Runs it.
///
/// # Errors
/// The tenants cannot be.
pub fn run_all(lab: &Lab) -> Result<Findings, String> {
    let mut all = Vec::new();
    for telling in [Telling::Damped, Telling::AtOnce] {
        for step in STEPS {
            let kind = Kind { telling, step };
            let (accomplice, slot_ms) = accomplice(kind, lab.times(SLOTS, 100))?;
            let (victim, victim_all) = victim(kind, lab.times(SAMPLES, 2_000))?;
            lab.say(&format!("{}: {accomplice:.1} and {victim:.2} bit/s", kind.name()));
            all.push((kind, Learnt { accomplice, slot_ms, victim, victim_all }));
        }
    }
    let data = json!(all.iter().map(to_json).collect::<Vec<_>>());
    Ok(Findings { claims: claims(&all), data, figure: figure(&all)? })
}

/// A link, its service, the sender's flows and the label that the observer was told.
struct Line {
    service: Service,
    link: LinkNo,
    is_on: Vec<bool>,
    told_bps: u64,
    now_ms: u64,
}

impl Line {
    fn new(kind: Kind, sender_kbps: &[u64]) -> Result<Line, String> {
        let fabric = Fabric::leaf_spine(2, 1, 1, 10 * G);
        let link = fabric.named("leaf1-spine1").ok_or("the link is missing")?;
        let mut service = Service::new(&fabric, kind.telling).map_err(|why| why.to_string())?;
        let step = kind.step.map(str::parse::<Step>).transpose().map_err(|why| why.to_string())?;
        // A VNIC that sends and one that receives for each flow.
        let rates_bps: Vec<u64> = sender_kbps.iter().flat_map(|kbps| [kbps * 1_000; 2]).collect();
        let slices = (0..OTHERS + 2).map(SliceNo);
        for slice in slices {
            let rates_bps = if slice == SENDER { rates_bps.as_slice() } else { &[] };
            service.add_slice(slice, rates_bps, false, step).map_err(|why| why.to_string())?;
        }
        let told_bps = service.label_bps(OBSERVER, link);
        Ok(Line { service, link, is_on: vec![false; sender_kbps.len()], told_bps, now_ms: 0 })
    }

    /// The sender has or has not the rules of a flow from now on.
    fn set(&mut self, flow: usize, on: bool) -> Result<(), String> {
        if std::mem::replace(&mut self.is_on[flow], on) == on {
            return Ok(());
        }
        // Flows are few.
        let (source, destination) = (VnicNo(2 * flow as u32), VnicNo(2 * flow as u32 + 1));
        let pair = Pair { slice: SENDER, source, destination };
        if on {
            self.service.on_path(pair, &[self.link], self.now_ms).map_err(|why| why.to_string())?;
        } else {
            self.service.on_no_path(pair, self.now_ms);
        }
        Ok(())
    }

    /// Time passes, and the observer hears.
    fn run_until(&mut self, until_ms: u64) {
        loop {
            for notice in self.service.on_time(self.now_ms) {
                if (notice.slice, notice.link) == (OBSERVER, self.link) {
                    self.told_bps = notice.label.bps();
                }
            }
            let next_ms = self.service.next_ms().unwrap_or(until_ms).max(self.now_ms + 1);
            if next_ms > until_ms {
                break;
            }
            self.now_ms = next_ms;
        }
        self.now_ms = self.now_ms.max(until_ms);
    }

    /// What the observer would be told in the end.
    fn label_bps(&self) -> u64 {
        self.service.label_bps(OBSERVER, self.link)
    }
}

/// The most bits a second that the accomplice can send, of all slots, and with which slot.
fn accomplice(kind: Kind, slots: usize) -> Result<(f64, u64), String> {
    let mut best = (0.0, 0);
    // With or without the small VNICs: coarse labels do not show them.
    for flows in [LARGE, ACCOMPLICE_KBPS.len()] {
        for slot_ms in SLOTS_MS {
            let bits = channel(kind, &ACCOMPLICE_KBPS[..flows], slot_ms, slots)?;
            if bits > best.0 {
                best = (bits, slot_ms);
            }
        }
    }
    Ok(best)
}

/// Bits a second over flows that are switched at random in each slot: a lower bound, from how often the observer's label is that of the slot.
fn channel(kind: Kind, kbps: &[u64], slot_ms: u64, slots: usize) -> Result<f64, String> {
    let mut line = Line::new(kind, kbps)?;
    let mut draws = Draws::new(slot_ms);
    let mut labels: BTreeMap<u64, usize> = BTreeMap::new();
    let mut wrong = 0;
    for _ in 0..slots {
        for flow in 0..kbps.len() {
            line.set(flow, draws.below(2) == 1)?;
        }
        line.run_until(line.now_ms + slot_ms);
        *labels.entry(line.label_bps()).or_insert(0) += 1;
        wrong += usize::from(line.told_bps != line.label_bps());
    }
    // Fano's bound: what was sent, less what an observer that errs so often does not know.
    let error = wrong as f64 / slots as f64;
    let (sent, alphabet) = sent(kbps, &labels, slots);
    let unknown = binary_entropy(error) + error * (alphabet - 1.0).max(1.0).log2();
    Ok((sent - unknown).max(0.0) * 1_000.0 / slot_ms as f64)
}

/// The bits of a slot, and how many labels there can be. If nearly all labels differ, they cannot be counted: then each switch is a bit.
fn sent(kbps: &[u64], labels: &BTreeMap<u64, usize>, slots: usize) -> (f64, f64) {
    if labels.len() * 2 > slots {
        let bits = kbps.len() as f64;
        (bits, bits.exp2())
    } else {
        (entropy(labels.values().copied()), labels.len() as f64)
    }
}

/// The victim's flows before a sample and at it, and the label that the tenant was told.
type Seen = (usize, usize, u64);

/// What the observer learns of the victim's changes, and what there is to learn, in bits a second.
fn victim(kind: Kind, samples: usize) -> Result<(f64, f64), String> {
    let mut line = Line::new(kind, &VICTIM_KBPS)?;
    let mut draws = Draws::new(7);
    let mut counts: BTreeMap<Seen, usize> = BTreeMap::new();
    let mut before = 0;
    for _ in 0..samples {
        for flow in 0..VICTIM_KBPS.len() {
            if draws.below(VICTIM_MEAN_MS) < SAMPLE_MS {
                line.set(flow, !line.is_on[flow])?;
            }
        }
        line.run_until(line.now_ms + SAMPLE_MS);
        let now = line.is_on.iter().fold(0, |state, on| state * 2 + usize::from(*on));
        *counts.entry((before, now, line.told_bps)).or_insert(0) += 1;
        before = now;
    }
    let per_s = 1_000.0 / SAMPLE_MS as f64;
    let joint = |of: fn(&Seen) -> Seen| {
        let mut sums: BTreeMap<Seen, usize> = BTreeMap::new();
        counts.iter().for_each(|(key, count)| *sums.entry(of(key)).or_insert(0) += count);
        entropy(sums.into_values())
    };
    // H(now | before), and I(now; label | before).
    let all = joint(|key| (key.0, key.1, 0)) - joint(|key| (key.0, 0, 0));
    let left = joint(|key| *key) - joint(|key| (key.0, 0, key.2));
    Ok(((all - left).max(0.0) * per_s, all * per_s))
}

/// The entropy of counts, in bits.
fn entropy(counts: impl IntoIterator<Item = usize>) -> f64 {
    let counts: Vec<f64> = counts.into_iter().map(|count| count as f64).collect();
    let sum: f64 = counts.iter().sum();
    -counts.iter().map(|count| count / sum).map(|part| part * part.log2()).sum::<f64>()
}

fn binary_entropy(part: f64) -> f64 {
    if part <= 0.0 || part >= 1.0 { 0.0 } else { -part * part.log2() - (1.0 - part) * (1.0 - part).log2() }
}

fn to_json((kind, learnt): &(Kind, Learnt)) -> Value {
    let Learnt { accomplice, slot_ms, victim, victim_all } = learnt;
    json!({
        "labels": kind.name(), "accomplice_bit_per_s": accomplice, "slot_ms": slot_ms,
        "victim_bit_per_s": victim, "victim_changes_bit_per_s": victim_all,
    })
}

fn claims(all: &[(Kind, Learnt)]) -> Vec<Claim> {
    let mut claims = Vec::new();
    for (kind, learnt) in all {
        let text = format!("{:.2} of {:.2} bit/s", learnt.victim, learnt.victim_all);
        claims.push(Claim::seen(&format!("{}: learnt of a victim's changes", kind.name()), text));
        let text = format!("{:.1} bit/s, a change each {} ms", learnt.accomplice, learnt.slot_ms);
        claims.push(Claim::seen(&format!("{}: what an accomplice can tell, at least", kind.name()), text));
    }
    claims
}

fn figure(all: &[(Kind, Learnt)]) -> Result<Figure, String> {
    let steps: Vec<String> = STEPS.iter().map(|step| step.unwrap_or("exact").to_owned()).collect();
    let bars = |telling: Telling, name: &str, style: Style, of: fn(&Learnt) -> f64| {
        let of_kind = all.iter().filter(|(kind, _)| kind.telling == telling);
        let points =
            (0u32..).zip(of_kind).map(|(place, (_, learnt))| Point::at(f64::from(place), of(learnt)));
        series(name, Shape::Bars, style, points.collect())
    };
    let chart = |of: fn(&Learnt) -> f64, scale: fn(f64) -> Scale| Chart {
        x: axis("labels", Scale::Names(steps.clone())),
        y: axis("bit/s", scale(all.iter().map(|(_, learnt)| of(learnt)).fold(0.0, f64::max))),
        series: vec![
            bars(Telling::Damped, "damped", Style::Ours, of),
            bars(Telling::AtOnce, "at once", Style::Baseline, of),
        ],
        marks: Vec::new(),
    };
    let beyond = paper()?.beyond;
    Ok(Figure {
        title: "Privacy: what labels tell of another tenant".to_owned(),
        panels: vec![
            panel("A victim's changes", Content::Chart(chart(|it| it.victim, |most| Scale::from_zero([most])))),
            panel("An accomplice", Content::Chart(chart(|it| it.accomplice, |most| Scale::Decades(1.0, most.max(10.0))))),
            quote("The paper", &beyond.place, &beyond.says),
        ],
        notes: vec![
            "Not in the paper. One direction of a link of 10 Gb/s; ten tenants see it. A tenant that sees several links learns more.".to_owned(),
            "The victim has three flows of 1, 2 and 3 Gb/s that come and go after two seconds on average. Asked every 100 ms: I(state; label | state before).".to_owned(),
            "The accomplice switches flows at random; the value is a lower bound (Fano) for the best of several slots.".to_owned(),
        ],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fair_coin_is_a_bit_and_a_label_that_is_right_at_once_tells_all() {
        assert!((entropy([5, 5]) - 1.0).abs() < 1e-9 && (binary_entropy(0.5) - 1.0).abs() < 1e-9);
        let exact = Kind { telling: Telling::AtOnce, step: None };
        // Four flows in ten milliseconds: 400 bits a second.
        let bits = channel(exact, &ACCOMPLICE_KBPS[..LARGE], 10, 2_000).unwrap();
        assert!((390.0..=400.0).contains(&bits), "{bits}");
        let (learnt, all) = victim(exact, 2_000).unwrap();
        assert!(learnt > 0.9 * all, "{learnt} of {all}");
        let coarse = Kind { telling: Telling::Damped, step: Some("50%") };
        let (learnt, all) = victim(coarse, 2_000).unwrap();
        assert!(learnt < 0.5 * all, "{learnt} of {all}");
    }
}
