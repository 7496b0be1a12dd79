//! A phase: the services of adds and packet-ins once more, for as long as the probe has time. It is for slow switches.
//!
//! ```text
//!   adds at once, a marker behind each ──────> the CPU's time for each add ─────────┐
//!   packets at once ─────────────────────────> the CPU's time for each packet-in ───┼──> means over all rounds
//!   adds and barriers, if rules are late ────> how much later each rule is ─────────┘
//! ```
//!
//! The delays of a switch near saturation follow from small differences of its rate: at 95 %, one percent more makes waiting a fifth longer. A
//! service time that varies by 15 % needs thousands of messages until its mean is known so well.
//!
//! In: what earlier phases found of these times. Out: better means of them, and more samples. If nothing varies, or the switch is fast, it does nothing.

use super::barriers::{PAIRS, note_lateness, pairs, removal};
use super::cabling::FRAME_BYTES;
use super::idle::to_controller;
use super::orders::marker;
use crate::findings::Findings;
use crate::flows::Width;
use crate::options::Options;
use crate::phase::{Next, Phase};
use crate::rules::RuleForm;
use crate::samples::{moments, ns, us};
use crate::script::{MILLISECOND_NS, Record, SECOND_NS, Script, Step, Until, When};
use openflow::Body;
use profile::MessageType;

/// Adds of a burst at most.
const ADDS: usize = 160;
/// Packets of a burst at most, and at least.
const PACKETS: usize = 200;
const PACKETS_MIN: usize = 24;
/// Bursts of adds for one of packets. Most of the time goes to what takes most of it.
const ADDS_IN_TURN: usize = 2;
/// The share of a burst's packet-ins at its start that is not used: residual delays have not yet their steady effect there.
const UNSTEADY: usize = 8;
/// Switches that need less for a set-up are measured well enough by earlier phases.
const SLOW_US: f64 = 2000.0;
/// A standard error of the mean that is small enough, as a share.
const ERROR_SHARE: f64 = 0.0005;
/// Services that vary less are constant, as a share of the mean.
const CONSTANT_SHARE: f64 = 0.004;
/// The same for rules that are late, as a share of that time.
const LATE_ERROR_SHARE: f64 = 0.008;
/// Rules that are late at once, if none waits for another.
const LATE_WINDOW: usize = 12;
/// What is left to the probe for its end.
const RESERVE_NS: u64 = 10 * SECOND_NS;

/// The phase.
#[derive(Debug, Default)]
pub struct Longer {
    left_ns: u64,
    longest_ns: u64,
    turn: usize,
    running: Option<Turn>,
    adds: Sum,
    packet_ins: Sum,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Turn {
    Adds,
    PacketIns,
    Late,
}

/// Services, and how long all of them took.
#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    count: f64,
    us: f64,
}

impl Sum {
    fn note(&mut self, count: f64, us: f64) {
        self.count += count;
        self.us += us;
    }

    /// The mean of these and of earlier ones.
    fn with(self, count: f64, mean_us: f64) -> f64 {
        (self.us + count * mean_us) / (self.count + count).max(1.0)
    }
}

impl Phase for Longer {
    /// It depends on the time that is left, which records do not have.
    fn is_kept(&self) -> bool {
        false
    }

    fn title(&self) -> String {
        "measuring the set-up rate for longer".to_owned()
    }

    fn measures(&self) -> &'static [&'static str] {
        &["cpu.add.service_us for longer"]
    }

    fn next(&mut self, last: Option<&Record>, options: &Options, found: &mut Findings) -> Next {
        match (self.running.take(), last) {
            (Some(turn), Some(record)) => {
                let took_ns = record.ended_ns - record.started_ns;
                self.longest_ns = self.longest_ns.max(took_ns);
                self.left_ns = self.left_ns.saturating_sub(took_ns);
                match turn {
                    Turn::Adds => self.note_adds(record, found),
                    Turn::PacketIns => self.note_packet_ins(record),
                    Turn::Late => self.note_late(record, options, found),
                }
            }
            _ => self.left_ns = found.left_ns.saturating_sub(RESERVE_NS),
        }
        let wanted = self.wanted(found);
        if wanted.is_empty() || self.left_ns < 2 * self.longest_ns {
            self.conclude(found);
            return Next::Done;
        }
        let turn = wanted[self.turn % wanted.len()];
        self.turn += 1;
        self.running = Some(turn);
        match turn {
            Turn::Adds => Next::Run(adds(options, found)),
            Turn::PacketIns => Next::Run(packets(options, found)),
            Turn::Late => Next::Run(late(options, found)),
        }
    }
}

impl Longer {
    /// What varies, and is not yet known well enough.
    fn wanted(&self, found: &Findings) -> Vec<Turn> {
        let packet_in = found.services.get(&MessageType::PacketIn);
        let packet_in_us = packet_in.and_then(|service| service.service_us).unwrap_or(0.0);
        if found.add_us() + packet_in_us < SLOW_US || marker(found).is_none() || !found.is_add_constant() {
            return late_rounds(found).collect();
        }
        let adds = found.services.get(&MessageType::Add).and_then(|service| moments(&service.idle_us));
        let adds_vary = adds.map_or(0.0, |(mean, deviation)| deviation / mean.max(1.0));
        let packet_ins_vary =
            packet_in.and_then(|service| service.deviation_us).unwrap_or(0.0) / packet_in_us.max(1.0);
        let is_unknown = |vary: f64, sum: Sum, us: f64| {
            // As a share of a whole set-up.
            let share = us / (found.add_us() + packet_in_us);
            vary > CONSTANT_SHARE && share * vary > ERROR_SHARE * (sum.count + 1.0).sqrt()
        };
        let mut wanted = Vec::new();
        if is_unknown(adds_vary, self.adds, found.add_us()) {
            // Most of the time goes to what takes most of it.
            wanted.extend([Turn::Adds; ADDS_IN_TURN]);
        }
        if is_unknown(packet_ins_vary, self.packet_ins, packet_in_us)
            && packets_of_burst(found) >= PACKETS_MIN
        {
            wanted.push(Turn::PacketIns);
        }
        wanted.extend(late_rounds(found));
        wanted
    }

    /// The time from marker to marker is that of an add and of a marker.
    fn note_adds(&mut self, record: &Record, found: &mut Findings) {
        let Some(kind) = marker(found) else { return };
        let marker_us = found.idle_mean_us(kind);
        let pairs = record.outcomes.get(2..).unwrap_or_default();
        let mut before_ns = pairs.first().and_then(|add| add.sent_ns);
        let services = pairs.chunks_exact(2).map_while(|pair| {
            let [add, marker] = pair else { return None };
            let (at_ns, before) = (marker.reply?.at_ns, before_ns?);
            before_ns = Some(at_ns);
            // A rule that was refused costs something else.
            add.error.is_none().then(|| (us(at_ns.saturating_sub(before)) - marker_us).max(0.0))
        });
        let services: Vec<f64> = services.collect();
        self.adds.note(services.len() as f64, services.iter().sum());
        found.service(MessageType::Add).idle_us.extend(services);
    }

    fn note_late(&mut self, record: &Record, options: &Options, found: &mut Findings) {
        let adds = found.service(MessageType::Add).idle_us.len();
        note_lateness(record, options, found);
        if !found.rules_in_order {
            // Adds that come while the CPU is busy with others say nothing about their own service.
            found.service(MessageType::Add).idle_us.truncate(adds);
        }
    }

    fn note_packet_ins(&mut self, record: &Record) {
        let packets = record.outcomes.iter().filter(|outcome| outcome.frames.0 > 0);
        // What was lost behind the last answer does not count.
        let answers = packets.map_while(|outcome| Some(outcome.packet_in?.at_ns));
        let mut times: Vec<u64> = answers.collect();
        times.sort_unstable();
        let steady = times.get(times.len() / UNSTEADY..).unwrap_or_default();
        if let [first, .., last] = steady {
            self.packet_ins.note((steady.len() - 1) as f64, us(last - first));
        }
    }

    fn conclude(&self, found: &mut Findings) {
        if self.adds.count > 0.0 {
            let mean_us = found.add_cpu_us.map(|us| self.adds.with(found.burst_adds, us));
            found.add_cpu_us = mean_us;
            found.burst_adds += self.adds.count;
            let varies = found.services.get(&MessageType::Add).and_then(|service| moments(&service.idle_us));
            let share = varies.map(|(mean, deviation)| deviation / mean.max(1.0) / found.burst_adds.sqrt());
            found.add_error_share = share.or(found.add_error_share);
        }
        let packet_in = found.service(MessageType::PacketIn);
        if let (true, Some(us)) = (self.packet_ins.count > 0.0, packet_in.service_us) {
            packet_in.service_us = Some(self.packet_ins.with(f64::from(packet_in.samples), us));
            packet_in.samples = packet_in.samples.saturating_add(self.packet_ins.count as u32);
        }
    }
}

/// Adds at once to an empty table, each with a marker behind it.
fn adds(options: &Options, found: &mut Findings) -> Script {
    let room = found.capacities.iter().map(|(_, capacity)| capacity.entries as usize / 2).min();
    let count = room.unwrap_or(ADDS).clamp(1, ADDS);
    let rule = RuleForm::to(options.ports[1].port);
    let pause = 100 * MILLISECOND_NS + 2 * ns(found.latest_us());
    let body = match marker(found) {
        Some(MessageType::Barrier) => Body::BarrierRequest,
        _ => Body::EchoRequest(Vec::new()),
    };
    let mut steps = removal(options, found).to_vec();
    let flows = found.take_flows(Width::Ethernet, count).into_iter().enumerate();
    steps.extend(flows.flat_map(|(index, flow)| {
        let when = if index == 0 { When::After(pause) } else { When::At(0) };
        [Step::send(when, rule.add_for(flow)), Step::ask(When::At(0), body.clone())]
    }));
    Script::new(steps, 2 * SECOND_NS + 4 * count as u64 * ns(found.add_us()))
}

/// One round, if rules are late by delays that are not yet known well enough. Rules that may go to software are not looked at.
fn late_rounds(found: &Findings) -> impl Iterator<Item = Turn> {
    let late = moments(&found.late_us).filter(|(mean, _)| *mean > 0.0 && found.software.is_none());
    let error = late.map_or(0.0, |(mean, deviation)| deviation / mean / (found.late_us.len() as f64).sqrt());
    (error > LATE_ERROR_SHARE).then_some(Turn::Late).into_iter()
}

/// Adds, each with a barrier. Several at once if their order does not matter.
fn late(options: &Options, found: &mut Findings) -> Script {
    let room = found.capacities.iter().map(|(_, capacity)| capacity.entries as usize / 2).min();
    let script = pairs(room.unwrap_or(PAIRS).clamp(1, PAIRS), options, found);
    if found.rules_in_order { script } else { script.with_window(LATE_WINDOW) }
}

/// How many packets may come at once, without a loss.
fn packets_of_burst(found: &Findings) -> usize {
    let limit = found.packet_in_limit.map_or(PACKETS, |(_, burst)| burst as usize);
    let queue = found.queue_messages.map_or(PACKETS, |bound| bound as usize);
    limit.min(queue).min(PACKETS)
}

/// Packets at once, when the limit allows all of them.
fn packets(options: &Options, found: &mut Findings) -> Script {
    let count = packets_of_burst(found);
    let pause_ns = found.packet_in_limit.map_or(0, |(rate, _)| (1.02e9 * count as f64 / rate) as u64);
    let flows = found.take_flows(Width::Ethernet, count).into_iter();
    let when = When::At(pause_ns.max(100 * MILLISECOND_NS));
    let into = options.ports[0].port;
    let frames = flows.map(|flow| Step::frame(when, flow, into, FRAME_BYTES, Until::PacketIn));
    let steps = removal(options, found).into_iter().chain(to_controller(found)).chain(frames).collect();
    let all_us = found.idle_us(MessageType::PacketIn).unwrap_or(0.0) * count as f64;
    Script::new(steps, SECOND_NS + 2 * ns(all_us))
}
