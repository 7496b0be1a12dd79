//! A phase: what the switch does under load, at five rates from nearly idle to twice saturation, under polling, and with rules.
//!
//! ```text
//!   packets at uneven times ──> packet-in ──> packet-out, or a rule ──> from packet to packet
//! ```
//!
//! In: nothing but what earlier phases found of service times. Out: delays under load. No value of the profile comes from them: they are
//! held back, and judge what the profile predicts (`predict`).

use super::cabling::FRAME_BYTES;
use super::idle::to_controller;
use super::marked::removal;
use crate::findings::{Findings, Loaded};
use crate::flows::Width;
use crate::options::Options;
use crate::phase::{Next, Phase};
use crate::predict::delays_us;
use crate::rules::{self, RuleForm};
use crate::samples::ns;
use crate::script::{Record, SECOND_NS, Script, Step, Until, When};
use profile::MessageType;

/// Packets of a load at most, and at least.
const PACKETS_MAX: usize = 240;
const PACKETS_MIN: usize = 40;
/// How long a load lasts at most.
const LOAD_NS: f64 = 4e9;
/// A load cannot be faster than this: the driver would be its bound.
const FASTEST_NS: f64 = 250_000.0;
/// Requests for statistics take this share of the CPU, under polling.
const POLL_SHARE: f64 = 0.25;
/// Polls of a load at most.
const POLLS_MAX: usize = 60;

/// What answers a packet-in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Work {
    PacketOuts,
    Polled,
    Rules,
}

/// Name, what answers, and the rate as a share of saturation.
const LOADS: [(&str, Work, f64); 7] = [
    ("round trips at 0.2 of saturation", Work::PacketOuts, 0.2),
    ("round trips at 0.5 of saturation", Work::PacketOuts, 0.5),
    ("round trips at 0.8 of saturation", Work::PacketOuts, 0.8),
    ("round trips at 1.4 of saturation", Work::PacketOuts, 1.4),
    ("round trips at 2 of saturation", Work::PacketOuts, 2.0),
    ("round trips under polling", Work::Polled, 0.5),
    ("new flows at 0.6 of saturation", Work::Rules, 0.6),
];

/// The phase.
#[derive(Debug, Default)]
pub struct Loads {
    at: usize,
    running: Option<Script>,
}

impl Phase for Loads {
    fn title(&self) -> String {
        "measuring under load".to_owned()
    }

    fn measures(&self) -> &'static [&'static str] {
        &["fit under load"]
    }

    fn takes_ns(&self, _found: &Findings) -> u64 {
        LOADS.len() as u64 * (LOAD_NS as u64 + 2 * SECOND_NS)
    }

    fn next(&mut self, last: Option<&Record>, options: &Options, found: &mut Findings) -> Next {
        if let (Some(script), Some(record)) = (self.running.take(), last) {
            let what = LOADS[self.at].0.to_owned();
            found.loads.push(Loaded { what, script, delays_us: delays_us(record) });
            self.at += 1;
        }
        let Some((_, work, share)) = LOADS.get(self.at).copied() else { return Next::Done };
        let Some(each_us) = each_us(work, found) else {
            found.leave_out("fit under load", "no service times were measured");
            return Next::Done;
        };
        let script = script(work, each_us, share, options, found);
        self.running = Some(script.clone());
        Next::Run(script)
    }
}

/// The time between two packets at saturation.
fn each_us(work: Work, found: &Findings) -> Option<f64> {
    let service_us = |kind| found.services.get(&kind).and_then(|service| service.service_us);
    let both_us = service_us(MessageType::PacketIn)? + service_us(MessageType::PacketOut)?;
    let limit_us = found.packet_in_limit.map_or(0.0, |(rate, _)| 1e6 / rate);
    let all_us = if work == Work::Rules { both_us + found.add_us() } else { both_us };
    Some(all_us.max(limit_us))
}

fn script(work: Work, each_us: f64, share: f64, options: &Options, found: &mut Findings) -> Script {
    let every_ns = (1e3 * each_us / share).max(FASTEST_NS);
    let room = found.capacities.iter().map(|(_, capacity)| capacity.entries as usize / 2).min();
    let most = if work == Work::Rules { room.unwrap_or(PACKETS_MIN).min(PACKETS_MAX) } else { PACKETS_MAX };
    let count = ((LOAD_NS / every_ns) as usize).clamp(PACKETS_MIN, most.max(PACKETS_MIN));
    let answer = match work {
        Work::Rules => crate::script::AnswerWith::Rule(RuleForm::to(options.ports[1].port)),
        _ => crate::script::AnswerWith::PacketOut(options.ports[1].port),
    };
    let begin_ns = SECOND_NS + 2 * ns(found.latest_us());
    let times = times_ns(begin_ns, every_ns, count);
    let flows = found.take_flows(Width::Ethernet, count);
    let mut timed: Vec<(u64, Step)> = flows
        .into_iter()
        .zip(&times)
        .map(|(flow, at)| {
            let step = Step::frame(When::At(*at), flow, options.ports[0].port, FRAME_BYTES, Until::Frame);
            (*at, Step { answer: Some(answer), ..step })
        })
        .collect();
    if work == Work::Polled {
        timed.extend(polls(begin_ns, every_ns * count as f64, found));
        timed.sort_by_key(|(at, _)| *at);
    }
    let mut steps = removal(options, found).to_vec();
    steps.extend(to_controller(found));
    steps.extend(timed.into_iter().map(|(_, step)| step));
    let patience_ns = 2 * SECOND_NS + ns(each_us) * count as u64;
    Script::new(steps, patience_ns)
}

/// Times whose gaps are spread like those of a Poisson process. Multiples of the golden ratio visit its quantiles evenly.
fn times_ns(begin_ns: u64, every_ns: f64, count: usize) -> Vec<u64> {
    let mut at_ns = begin_ns as f64;
    let next = |index: usize| {
        let quantile = (0.5 + index as f64 * 0.618_033_988_749_895).fract();
        at_ns -= every_ns * (1.0 - quantile).max(1e-6).ln();
        at_ns as u64
    };
    (0..count).map(next).collect()
}

/// Requests for all flow entries beside the packets.
fn polls(begin_ns: u64, lasts_ns: f64, found: &Findings) -> Vec<(u64, Step)> {
    let poll_us = found.idle_us(MessageType::Statistics).unwrap_or(1000.0);
    let every_ns = (1e3 * poll_us / POLL_SHARE).max(1e6).max(lasts_ns / POLLS_MAX as f64);
    let count = (lasts_ns / every_ns) as u32;
    let at = |index: u32| begin_ns + (f64::from(index) * every_ns) as u64;
    (0..count).map(|index| (at(index), Step::ask(When::At(at(index)), rules::flow_stats()))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_times_have_the_mean_and_spread_of_a_poisson_process() {
        let times = times_ns(1000, 5e6, 1000);
        let gaps: Vec<f64> = times.windows(2).map(|pair| (pair[1] - pair[0]) as f64).collect();
        let (mean, deviation) = crate::samples::moments(&gaps).unwrap();
        assert!(
            (mean / 5e6 - 1.0).abs() < 0.02 && (deviation / 5e6 - 1.0).abs() < 0.05,
            "{mean}, {deviation}"
        );
    }
}
