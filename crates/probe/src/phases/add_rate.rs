//! Phase 4: how many rules a second a nearly empty table takes, and up to which rate all of them go to hardware.
//!
//! ```text
//!   a burst of adds ──> the CPU's time for each (marker), the data plane's time for each (first frames)
//!   adds at a rate below ──> which are in software at first sight ──> rate and burst of hardware
//! ```
//!
//! In: first frames of watched rules. Out: `add_cpu_us`, `add_plane_us`, and the bound of the software table if there is one.

use super::cabling::FRAME_BYTES;
use crate::findings::{Findings, SoftwareFound};
use crate::flows::Width;
use crate::options::Options;
use crate::phase::{Next, Phase};
use crate::rules::RuleForm;
use crate::samples::{interval_ns, ns, us};
use crate::script::{Record, SECOND_NS, Script, Step, When};
use openflow::Body;

/// Adds in the burst: above the bursts that switches allow, and a small part of every table.
const BURST: usize = 48;
/// Adds at a steady rate.
const STEADY: usize = 160;
/// How long the steady adds last at most.
const STEADY_NS: u64 = 24 * SECOND_NS;
/// How long a rule may take, in a burst.
const PATIENCE_NS: u64 = 30 * SECOND_NS;
/// The steady rates, as shares of the set-up rate. At the first, no queue grows, so that the time of each decision is known. The second
/// finds bounds that the first is below.
const STEADY_SHARES: [f64; 2] = [0.5, 0.97];
/// The silence before them, in which a burst becomes possible again.
const SILENCE_NS: u64 = 4 * SECOND_NS;
/// How far the time of an add varies, as a share of the time between two. With even times, a bound could not be told from a multiple of
/// their interval.
const DITHER: f64 = 0.5;
/// Steps in which the interval of a bucket is searched, twice.
const SEARCH_STEPS: u32 = 400;

/// The phase.
#[derive(Debug, Default)]
pub struct AddRate {
    state: State,
    /// The time for each add at saturation.
    every_ns: f64,
}

#[derive(Clone, Copy, Debug, Default)]
enum State {
    #[default]
    Start,
    Burst,
    Steady(usize),
}

impl Phase for AddRate {
    fn title(&self) -> String {
        "measuring the set-up rate".to_owned()
    }

    fn measures(&self) -> &'static [&'static str] {
        &["set-up rate", "rate of adds that stay in hardware"]
    }

    fn next(&mut self, last: Option<&Record>, options: &Options, found: &mut Findings) -> Next {
        match (self.state, last) {
            (State::Burst, Some(record)) => {
                let Some(every_ns) = on_burst(record, found) else {
                    found.leave_out("set-up rate", "rules of a burst did not forward");
                    return Next::Done;
                };
                self.every_ns = every_ns;
                self.steady(0, options, found)
            }
            (State::Steady(pass), Some(record)) => {
                let has_bound = on_steady(record, found);
                let is_last = pass + 1 == STEADY_SHARES.len();
                if has_bound || is_last { Next::Done } else { self.steady(pass + 1, options, found) }
            }
            _ => {
                self.state = State::Burst;
                Next::Run(burst(options, found))
            }
        }
    }
}

/// Adds at once, then an echo and a barrier: both are markers of the time at which the CPU is done.
fn burst(options: &Options, found: &mut Findings) -> Script {
    let frames = crate::engine::watch(options, FRAME_BYTES);
    let rule = RuleForm::to(options.ports[1].port);
    let flows = found.take_flows(Width::Ethernet, BURST);
    let adds = flows.into_iter().map(|flow| Step::watched(When::At(0), rule.add_for(flow), flow, frames));
    let markers =
        [Body::EchoRequest(Vec::new()), Body::BarrierRequest].map(|body| Step::ask(When::At(0), body));
    Script::new(adds.chain(markers).collect(), PATIENCE_NS)
}

/// Returns the time for each add, or None if the rules do not forward.
fn on_burst(record: &Record, found: &mut Findings) -> Option<f64> {
    let (adds, markers) = record.outcomes.split_at(BURST.min(record.outcomes.len()));
    let mut seen: Vec<u64> = adds.iter().filter_map(|add| Some(add.frame?.sent_ns)).collect();
    if seen.len() < BURST / 2 {
        return None;
    }
    seen.sort_unstable();
    let sent = record.started_ns;
    let seen_us = interval_ns(&seen)? / 1e3;
    let rank_of_echo = found.service(profile::MessageType::Echo).rank.unwrap_or(0);
    let mut cpu: Vec<u64> = Vec::new();
    // An echo that overtakes says nothing; a barrier that waits for the data plane says what the frames say.
    if rank_of_echo >= 0 {
        cpu.extend(markers.first().and_then(|echo| echo.reply).map(|reply| reply.at_ns));
    }
    if found.barrier != Some(crate::findings::BarrierFound::NotOrdering) {
        cpu.extend(markers.get(1).and_then(|barrier| barrier.reply).map(|reply| reply.at_ns));
    }
    let ended = cpu.into_iter().min();
    let cpu_us = ended.map(|ended| us(ended.saturating_sub(sent)) / BURST as f64);
    // Frames through software wait for each other, so that their times say little about rules.
    let in_software =
        adds.iter().filter_map(|add| add.transit_ns()).filter(|it| found.is_software(*it)).count();
    let plane_us = cpu_us.filter(|_| in_software > BURST / 8).unwrap_or(seen_us);
    found.add_plane_us = Some(plane_us);
    found.add_cpu_us = cpu_us.map(|cpu_us| if near(cpu_us, plane_us) { plane_us } else { cpu_us });
    Some(1e3 * plane_us.max(found.add_cpu_us.unwrap_or(0.0)))
}

/// Whether two estimates of the same thing differ by no more than a burst can tell: one add in it.
fn near(one: f64, two: f64) -> bool {
    (one - two).abs() <= 2.0 / BURST as f64 * one.max(two)
}

impl AddRate {
    /// Adds at a steady rate, each watched from its start.
    fn steady(&mut self, pass: usize, options: &Options, found: &mut Findings) -> Next {
        self.state = State::Steady(pass);
        // Two frames of each rule at least pass between two adds.
        let every_ns = ((self.every_ns / STEADY_SHARES[pass]) as u64).max(2 * options.watch_tick_ns);
        let count = STEADY.min((STEADY_NS / every_ns.max(1)) as usize).max(16);
        let frames = crate::engine::watch(options, FRAME_BYTES);
        let rule = RuleForm::to(options.ports[1].port);
        let flows = found.take_flows(Width::Ethernet, count);
        let adds = flows.into_iter().zip(0u32..).map(|(flow, index)| {
            // Multiples of the golden ratio spread evenly over the interval.
            let dither = (f64::from(index) * 0.618_033_988_749_895).fract() * DITHER;
            let at = (f64::from(index) + dither) * every_ns as f64;
            Step::watched(When::At(SILENCE_NS + at as u64), rule.add_for(flow), flow, frames)
        });
        Next::Run(Script::new(adds.collect(), PATIENCE_NS))
    }
}

/// Returns whether there is a bound.
fn on_steady(record: &Record, found: &mut Findings) -> bool {
    let service_ns = ns(found.add_cpu_us.unwrap_or(0.0));
    let mut decided_ns = 0;
    let adds = record.outcomes.iter().filter_map(|add| {
        decided_ns = add.sent_ns?.max(decided_ns) + service_ns;
        Some((decided_ns, found.is_software(add.transit_ns()?)))
    });
    let places: Vec<(u64, bool)> = adds.collect();
    let in_software = places.iter().filter(|(_, is_software)| *is_software).count();
    if in_software == 0 || in_software + 3 > places.len() {
        return false;
    }
    let above = bucket(&places);
    found.software.get_or_insert_with(SoftwareFound::default).above = above;
    match above {
        Some(_) => {}
        None => found.leave_out("software.above_per_s", "some rules went to software without a steady rate"),
    }
    true
}

/// Rate and burst of the token bucket that let these adds into hardware: (time, whether it went to software). It is the bucket that is
/// wrong about the fewest of them.
fn bucket(places: &[(u64, bool)]) -> Option<(f64, u32)> {
    let first_software = places.iter().position(|(_, is_software)| *is_software)?;
    let steady: Vec<u64> =
        places[first_software..].iter().filter(|(_, is_software)| !is_software).map(|(at, _)| *at).collect();
    let rough_ns = interval_ns(&steady)?;
    let bursts = 1..=u32::try_from(first_software).unwrap_or(u32::MAX).saturating_add(1);
    let fits = bursts.map(|burst| {
        let (rough_ns, _) = best_interval(places, burst, (0.4 * rough_ns, 1.2 * rough_ns));
        let step = 0.8 * rough_ns / f64::from(SEARCH_STEPS);
        let (every_ns, wrong) = best_interval(places, burst, (rough_ns - 3.0 * step, rough_ns + 3.0 * step));
        (wrong, burst, every_ns)
    });
    let (_, burst, every_ns) = fits.min_by_key(|(wrong, ..)| *wrong)?;
    (every_ns > 0.0).then(|| (1e9 / every_ns, burst))
}

/// The interval in the middle of those that are wrong about the fewest adds, and about how many.
fn best_interval(places: &[(u64, bool)], burst: u32, (from, to): (f64, f64)) -> (f64, usize) {
    let at = |step: u32| from + (to - from) * f64::from(step) / f64::from(SEARCH_STEPS);
    let wrong: Vec<usize> = (0..=SEARCH_STEPS).map(|step| wrong_about(places, burst, at(step))).collect();
    let least = wrong.iter().copied().min().unwrap_or(0);
    let best: Vec<f64> =
        (0..=SEARCH_STEPS).zip(&wrong).filter(|(_, it)| **it == least).map(|(step, _)| at(step)).collect();
    (best[best.len() / 2], least)
}

/// About how many adds a bucket is wrong (the generic cell rate algorithm, ITU-T I.371, with the state that was seen).
fn wrong_about(places: &[(u64, bool)], burst: u32, every_ns: f64) -> usize {
    let tolerance = every_ns * f64::from(burst.saturating_sub(1));
    let mut full_at = 0.0_f64;
    let wrong = places.iter().filter(|(at, is_software)| {
        let at = *at as f64;
        let has_token = full_at <= at + tolerance;
        if !is_software {
            full_at = full_at.max(at) + every_ns;
        }
        has_token == *is_software
    });
    wrong.count()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Adds every `every_ms` through a bucket of counted tokens.
    fn through_bucket(rate_per_s: f64, burst: f64, every_ms: f64, count: usize) -> Vec<(u64, bool)> {
        let (mut tokens, mut last) = (burst, 0.0);
        let adds = (0..count).map(|index| {
            let now = (index as f64 + (index as f64 * 0.618).fract() * DITHER) * every_ms / 1e3;
            tokens = (tokens + (now - last) * rate_per_s).min(burst);
            last = now;
            let is_software = tokens < 1.0;
            tokens -= if is_software { 0.0 } else { 1.0 };
            ((now * 1e9) as u64, is_software)
        });
        adds.collect()
    }

    #[test]
    fn rate_and_burst_of_a_bucket_are_found() {
        for (rate, burst) in [(8.0, 1.0), (8.0, 20.0), (13.3, 5.0)] {
            let (found, found_burst) = bucket(&through_bucket(rate, burst, 29.0, 700)).unwrap();
            assert!((found - rate).abs() < 0.03 * rate, "{found} a second, it was {rate}");
            assert!((f64::from(found_burst) - burst).abs() < 0.5, "burst {found_burst}, it was {burst}");
        }
        assert_eq!(bucket(&[(0, false), (1, false)]), None);
    }
}
