//! A phase: how many rules a second a nearly empty table takes, and up to which rate all of them go to hardware.
//!
//! ```text
//!   a burst of adds ──> the CPU's time for each (marker), the data plane's time for each (first frames)
//!   adds at a rate below ──> which are in software at first sight ──> rate and burst of hardware
//! ```
//!
//! In: first frames of watched rules. Out: `add_cpu_us`, `add_plane_us`, and the bound of the software table if there is one.

use super::cabling::FRAME_BYTES;
use super::marked::{after_removal, behind_removal, body};
use crate::findings::{BarrierFound, Findings, SoftwareFound};
use crate::flows::Width;
use crate::options::Options;
use crate::phase::{Next, Phase};
use crate::rules::RuleForm;
use crate::samples::{ns, slope, us};
use crate::script::{MILLISECOND_NS, Outcome, Record, SECOND_NS, Script, Step, When};
use crate::token_bucket;
use profile::MessageType;

/// Adds in the burst: above the bursts that switches allow, and a small part of every table.
const BURST: usize = 48;
/// Bursts. The table is empty at the start of each.
const BURSTS: usize = 5;
/// Adds at a steady rate.
const STEADY: usize = 160;
/// How long the steady adds last at most.
const STEADY_NS: u64 = 24 * SECOND_NS;
/// How long a rule may take, in a burst.
const PATIENCE_NS: u64 = 30 * SECOND_NS;
/// The steady rates, as shares of the set-up rate. At the first, no queue grows, so that the time of each decision is known. The second
/// finds bounds that the first is below.
const STEADY_SHARES: [f64; 2] = [0.5, 0.97];
/// Fewer rules in software are accidents: a switch that was busy for a moment. And the share of them that is one.
const SOFTWARE_MIN: usize = 4;
const SOFTWARE_SHARE: f64 = 0.08;
/// The silence before them, in which a burst becomes possible again.
const SILENCE_NS: u64 = 4 * SECOND_NS;
/// How much faster adds come than a bound allows, when its rate is measured.
const REFINE: f64 = 3.0;
/// How far the time of an add varies, as a share of the time between two. With even times, a bound could not be told from a multiple of
/// their interval.
const DITHER: f64 = 0.5;
/// How many standard errors two different times for an add are apart at least.
const ERRORS: f64 = 3.0;

/// The phase.
#[derive(Debug, Default)]
pub struct AddRate {
    state: State,
    /// The time for each add at saturation.
    every_ns: f64,
    /// The CPU's and the data plane's time for each add, by burst.
    cpu_us: Vec<f64>,
    plane_us: Vec<f64>,
}

#[derive(Clone, Copy, Debug, Default)]
enum State {
    #[default]
    Start,
    Burst(usize),
    Steady(usize),
    Refine,
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
            (State::Burst(round), Some(record)) => {
                self.note_burst(record, found);
                if round + 1 < BURSTS {
                    self.state = State::Burst(round + 1);
                    return Next::Run(burst(options, found));
                }
                let Some(every_ns) = self.conclude_bursts(found) else {
                    found.leave_out("set-up rate", "rules of a burst did not forward");
                    return Next::Done;
                };
                self.every_ns = every_ns;
                self.steady(0, options, found)
            }
            (State::Steady(pass), Some(record)) => {
                let has_bound = on_steady(record, options, found);
                let is_last = pass + 1 == STEADY_SHARES.len();
                let above = found.software.as_ref().and_then(|software| software.above);
                match (has_bound, above) {
                    // The bound lets few adds pass while many come: slower ones show its rate.
                    (true, Some((rate, _))) => {
                        self.state = State::Refine;
                        Next::Run(adds(1e9 / (REFINE * rate), options, found))
                    }
                    (false, _) if !is_last => self.steady(pass + 1, options, found),
                    _ => Next::Done,
                }
            }
            (State::Refine, Some(record)) => {
                on_steady(record, options, found);
                Next::Done
            }
            _ => {
                self.state = State::Burst(0);
                Next::Run(burst(options, found))
            }
        }
    }
}

/// Adds at once to an empty table, then an echo and a barrier: both are markers of the time at which the CPU is done.
fn burst(options: &Options, found: &mut Findings) -> Script {
    let frames = crate::engine::watch(options, FRAME_BYTES);
    let rule = RuleForm::to(options.ports[1].port);
    let pause = 300 * MILLISECOND_NS + 2 * ns(found.latest_us());
    let flows = found.take_flows(Width::Ethernet, BURST);
    let adds = flows.into_iter().enumerate().map(|(index, flow)| {
        let when = if index == 0 { When::After(pause) } else { When::At(0) };
        Step::watched(when, rule.add_for(flow), flow, frames)
    });
    let markers = [MessageType::Echo, MessageType::Barrier].map(|kind| Step::ask(When::At(0), body(kind)));
    Script::new(behind_removal(adds.chain(markers), options, found), PATIENCE_NS)
}

impl AddRate {
    /// Notes the CPU's and the data plane's time for each add.
    fn note_burst(&mut self, record: &Record, found: &Findings) {
        let Some((adds, markers)) = after_removal(record).split_at_checked(BURST) else { return };
        // By their number and not by their time: rules that are late by delays of their own come in another order, and lie further apart.
        let seen = adds.iter().enumerate().filter_map(|(index, add)| {
            let frame = add.frame?;
            Some((index as f64, frame.sent_ns.saturating_sub(record.started_ns) as f64))
        });
        let seen: Vec<(f64, f64)> = seen.collect();
        let Some(sent) = adds[0].sent_ns.filter(|_| seen.len() >= BURST / 2) else { return };
        // Frames through software wait for each other, so that their times say little about rules.
        let in_software = adds.iter().filter_map(|add| add.transit_ns()).filter(|it| found.is_software(*it));
        if in_software.count() <= BURST / 8 {
            self.plane_us.extend(slope(&seen).map(|ns| ns / 1e3));
        }
        let after = |marker: Option<&Outcome>, kind| {
            let idle_us = found.idle_us(kind).unwrap_or(0.0);
            Some(us(marker?.reply?.at_ns.saturating_sub(sent)) - idle_us)
        };
        // An echo that overtakes says nothing; a barrier that waits for the data plane says what the frames say.
        let echo_waits = found.services.get(&MessageType::Echo).and_then(|echo| echo.rank).unwrap_or(0) >= 0;
        let barrier_waits = found.barrier != Some(BarrierFound::NotOrdering);
        let echo = echo_waits.then(|| after(markers.first(), MessageType::Echo)).flatten();
        let barrier = barrier_waits.then(|| after(markers.get(1), MessageType::Barrier)).flatten();
        let all_us = [echo, barrier].into_iter().flatten().reduce(f64::min);
        self.cpu_us.extend(all_us.map(|all_us| all_us.max(0.0) / BURST as f64));
    }

    /// Returns the time for each add in ns, or None if no rule forwarded.
    fn conclude_bursts(&self, found: &mut Findings) -> Option<f64> {
        let mean = |all: &[f64]| (!all.is_empty()).then(|| all.iter().sum::<f64>() / all.len() as f64);
        let cpu_us = mean(&self.cpu_us);
        let plane_us = mean(&self.plane_us).or(cpu_us)?;
        found.add_cpu_us = cpu_us;
        found.burst_adds = (self.cpu_us.len() * BURST) as f64;
        let bursts = if self.plane_us.is_empty() { &self.cpu_us } else { &self.plane_us };
        let spread = crate::samples::moments(bursts).filter(|(mean, _)| *mean > 0.0 && bursts.len() > 2);
        found.add_error_share =
            spread.map(|(mean, deviation)| deviation / mean / ((bursts.len() - 1) as f64).sqrt());
        // The marker is not disturbed by rules that are late by delays of their own.
        let noise_us = line_error_us(&found.late_us) / (bursts.len().max(1) as f64).sqrt();
        let is_same = |cpu_us: f64| near(cpu_us, plane_us) || plane_us < cpu_us + ERRORS * noise_us;
        let same = cpu_us.filter(|cpu_us| is_same(*cpu_us));
        found.add_plane_us = same.or(Some(plane_us));
        Some(1e3 * plane_us.max(cpu_us.unwrap_or(0.0)))
    }
}

/// How far the slope of a line through the times of a burst errs, if each time is late by a delay of its own.
fn line_error_us(late_us: &[f64]) -> f64 {
    let deviation_us = crate::samples::moments(late_us).map_or(0.0, |(_, deviation)| deviation);
    deviation_us * (12.0 / (BURST as f64).powi(3)).sqrt()
}

/// Whether two estimates of the same thing differ by no more than a burst can tell: one add in it.
fn near(one: f64, two: f64) -> bool {
    (one - two).abs() <= 2.0 / BURST as f64 * one.max(two)
}

impl AddRate {
    /// Adds at a steady rate, each watched from its start.
    fn steady(&mut self, pass: usize, options: &Options, found: &mut Findings) -> Next {
        self.state = State::Steady(pass);
        Next::Run(adds(self.every_ns / STEADY_SHARES[pass], options, found))
    }
}

/// Adds at a steady rate after a silence.
fn adds(every_ns: f64, options: &Options, found: &mut Findings) -> Script {
    // Two frames of each rule at least pass between two adds.
    let every_ns = (every_ns as u64).max(2 * options.watch_tick_ns);
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
    // An empty table, so that none goes to software because it is full.
    Script::new(behind_removal(adds, options, found), PATIENCE_NS)
}

/// Returns whether there is a bound.
fn on_steady(record: &Record, options: &Options, found: &mut Findings) -> bool {
    // The first frame tells where a rule was, if nothing else delays single frames: the next ones may find it moved.
    let transit_ns = |add: &Outcome| {
        let first = add.frame.map(|frame| frame.at_ns.saturating_sub(frame.sent_ns));
        if options.is_real() { add.transit_ns() } else { first }
    };
    let service_ns = ns(found.add_cpu_us.unwrap_or(0.0));
    let mut decided_ns = 0;
    let adds = record.outcomes.iter().filter_map(|add| {
        decided_ns = add.sent_ns?.max(decided_ns) + service_ns;
        Some((decided_ns, !found.is_software(transit_ns(add)?)))
    });
    let into_hardware: Vec<(u64, bool)> = adds.collect();
    let in_software = into_hardware.iter().filter(|(_, is_there)| !is_there).count();
    let accidents = SOFTWARE_MIN.max((SOFTWARE_SHARE * into_hardware.len() as f64) as usize);
    if in_software < accidents || in_software + 3 > into_hardware.len() {
        return false;
    }
    let above = token_bucket::search(&into_hardware);
    found.software.get_or_insert_with(SoftwareFound::default).above = above;
    match above {
        Some(_) => {}
        None => found.leave_out("software.above_per_s", "some rules went to software without a steady rate"),
    }
    true
}
