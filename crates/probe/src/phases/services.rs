//! A phase: how long the CPU works on one packet-out and one packet-in, from the throughput at saturation; and what bounds packet-ins.
//!
//! ```text
//!   packet-outs at once ──────────> the time between two frames that leave
//!   packets at once ──────────────> the time between two packet-ins
//!   packets twice as fast ──┬── packet-ins as fast as before, some lost ──> the CPU's queue has a bound
//!                           └── slower than before ───────────────────────> packet-ins have a limit
//! ```
//!
//! In: times of answers in order. Out: service times, the limit with its burst, the bound of the queue.
//!
//! Some switches do not drop packet-ins above their limit at once, but queue some (Open vSwitch). There, the first packet-ins of a burst
//! come as fast as the CPU can, and the others at the limit.

use super::cabling::FRAME_BYTES;
use super::idle::to_controller;
use crate::findings::Findings;
use crate::flows::Width;
use crate::options::Options;
use crate::phase::{Next, Phase};
use crate::samples::{interval_deviation_ns, interval_ns, ns, quantile};
use crate::script::{Outcome, Record, SECOND_NS, Script, Step, Until, When};
use crate::token_bucket;
use profile::MessageType;

/// Messages in the first burst.
const BURST: usize = 32;
/// Messages in a burst at most.
const BURST_MAX: usize = 3000;
/// How many times longer than the spread of residual delays a burst lasts, so that they do not decide its length.
const SPREADS: f64 = 24.0;
/// How long a burst or overload lasts at most.
const LONGEST_NS: u64 = 12 * SECOND_NS;
/// How long an overload lasts at least: a limit of packet-ins may begin after its burst.
const OVERLOAD_NS: u64 = 5 * SECOND_NS;
/// Frames of an overload.
const OVERLOAD_MAX: usize = 6000;
/// A limit makes packet-ins slower than the CPU by more than this.
const LIMIT_FACTOR: f64 = 1.12;
/// The share of packets that a bound loses at twice the rate. Fewer are accidents.
const LOST_MIN: f64 = 0.15;
/// An overload cannot be faster than this: the driver would be its bound.
const FASTEST_NS: f64 = 100_000.0;
/// How long an overload lasts, and from one frame to the next, if the CPU is faster than that.
const FAST_OVERLOAD_NS: f64 = 2e9;
const FAST_EVERY_NS: f64 = 340_000.0;
/// How much slower the end of a burst must be than its start to be the work of a limit.
const KNEE_FACTOR: f64 = 3.0;
/// Answers that come faster than this are not slowed by a limit: the driver has read some of them together.
const SLOW_NS: f64 = 340_000.0;
/// Answers of a burst that show a start and an end.
const KNEE_MIN: usize = 96;
/// Answers at least, if others of a burst are lost here and there.
const LOSSES_MIN: usize = 8;
/// Packet-ins of all bursts below a limit, and of one at least.
const MORE: usize = 700;
const MORE_MIN: usize = 20;
/// An estimate of the burst that is less than this above a whole number is that number.
const NEARLY_ONE: f64 = 0.05;
/// Packet-ins of the idle switch below the limit.
const AGAIN: usize = 200;

/// The phase.
#[derive(Debug, Default)]
pub struct Services {
    state: State,
    burst: usize,
    /// The limit queues packet-ins: a burst began faster than it ended.
    is_queued: bool,
    /// Times of answers to bursts of packet-ins.
    bursts: Vec<Vec<u64>>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Start,
    Burst(Kind),
    Overload,
    /// Bursts of packet-ins that the limit allows.
    More(usize),
    /// The idle delays of packet-ins once more, below the limit that was found.
    Again,
}

/// The two types of messages of this phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    PacketOut,
    PacketIn,
}

impl Kind {
    fn kind(self) -> MessageType {
        match self {
            Kind::PacketOut => MessageType::PacketOut,
            Kind::PacketIn => MessageType::PacketIn,
        }
    }

    fn answer_ns(self, outcome: &Outcome) -> Option<u64> {
        match self {
            Kind::PacketOut => outcome.frame.map(|frame| frame.at_ns),
            Kind::PacketIn => outcome.packet_in.map(|packet| packet.at_ns),
        }
    }
}

impl Phase for Services {
    fn title(&self) -> String {
        "measuring packet-outs and packet-ins at saturation".to_owned()
    }

    fn measures(&self) -> &'static [&'static str] {
        &["cpu.packet_in.service_us", "cpu.packet_out.service_us", "packet_in.limit"]
    }

    fn next(&mut self, last: Option<&Record>, options: &Options, found: &mut Findings) -> Next {
        match (self.state, last) {
            (State::Burst(of), Some(record)) => {
                let answers: Vec<Option<u64>> = answers(record, of);
                let prefix: Vec<u64> = answers.iter().map_while(|answer| *answer).collect();
                let fast_ns = fast_start(&prefix, spread_ns(&found.service(of.kind()).idle_us));
                self.is_queued |= of == Kind::PacketIn && fast_ns.is_some();
                let every_ns = fast_ns.or_else(|| steady_interval(&prefix)).or_else(|| with_losses(&answers));
                let Some(every_ns) = every_ns else {
                    found.leave_out(
                        &format!("cpu.{}.service_us", of.kind().key()),
                        "most of a burst got no answer",
                    );
                    return self.after(of, options, found);
                };
                let service = found.service(of.kind());
                service.service_us = Some(every_ns / 1e3);
                service.samples = prefix.len() as u32;
                if of == Kind::PacketIn {
                    self.bursts = vec![prefix.clone()];
                }
                service.deviation_us =
                    if fast_ns.is_some() { None } else { deviation_us(&prefix, &service.idle_us) };
                match longer(self.burst, every_ns, &service.idle_us, prefix.len(), options) {
                    Some(burst) => self.start_burst(of, burst, options, found),
                    None => self.after(of, options, found),
                }
            }
            (State::Overload, Some(record)) => {
                conclude(record, found);
                match found.packet_in_limit {
                    Some((rate, _)) if self.is_queued => self.idle_again(rate, options, found),
                    Some(limit) => self.more(limit, options, found),
                    None => Next::Done,
                }
            }
            (State::More(left), Some(record)) => {
                let answers = answers(record, Kind::PacketIn);
                self.bursts.push(answers.iter().map_while(|answer| *answer).collect());
                match (left, found.packet_in_limit) {
                    (1.., Some(limit)) => self.next_of_more(left - 1, limit, options, found),
                    _ => {
                        self.conclude_more(found);
                        Next::Done
                    }
                }
            }
            (State::Again, Some(record)) => {
                let delays = record.outcomes.iter().filter_map(Outcome::packet_in_after_ns);
                let delays: Vec<f64> = delays.map(|ns| ns as f64 / 1e3).collect();
                if !delays.is_empty() {
                    found.service(MessageType::PacketIn).idle_us = delays;
                }
                Next::Done
            }
            _ => self.start_burst(Kind::PacketOut, BURST, options, found),
        }
    }
}

/// How long one message of a burst takes at most, as far as it is known. What of a burst is given up is still in the switch's queue, before
/// all that follows.
fn each_us(kind: MessageType, found: &Findings) -> f64 {
    let service_us = found.services.get(&kind).and_then(|service| service.service_us);
    found.idle_us(kind).unwrap_or(0.0).max(service_us.unwrap_or(0.0))
}

/// When each was answered, in the order of the messages.
fn answers(record: &Record, of: Kind) -> Vec<Option<u64>> {
    let wanted = record.outcomes.iter().filter(|outcome| outcome.frames.0 > 0);
    wanted.map(|outcome| of.answer_ns(outcome)).collect()
}

/// The time between two answers, without the first quarter: there, residual delays have not yet reached their steady effect.
fn steady_interval(times: &[u64]) -> Option<f64> {
    let mut sorted = times.to_vec();
    sorted.sort_unstable();
    let steady = sorted.get(sorted.len() / 4..)?;
    if steady.len() < 6 { None } else { interval_ns(steady) }
}

/// The time between two answers if some are lost here and there: those that came are as long apart as their messages.
fn with_losses(answers: &[Option<u64>]) -> Option<f64> {
    let came: Vec<(f64, f64)> =
        answers.iter().enumerate().filter_map(|(index, at)| Some((index as f64, (*at)? as f64))).collect();
    if came.len() < LOSSES_MIN { None } else { crate::samples::slope(&came) }
}

/// The time between two answers at the start of a burst, if those at its end come much more slowly. `spread_ns`: by how much residual
/// delays can make the start shorter.
fn fast_start(times: &[u64], spread_ns: f64) -> Option<f64> {
    let mut sorted = times.to_vec();
    sorted.sort_unstable();
    if sorted.len() < KNEE_MIN {
        return None;
    }
    let each = |part: &[u64]| Some((part.last()? - part.first()?) as f64 / (part.len() - 1) as f64);
    let first = &sorted[..sorted.len() / 8];
    let (start, end) = (each(first)?, each(&sorted[sorted.len() * 2 / 3..])?);
    let missing_ns = (end - start) * first.len() as f64;
    let is_slower = end > SLOW_NS && end > KNEE_FACTOR * start && missing_ns > 2.0 * spread_ns;
    is_slower.then(|| interval_ns(first)).flatten()
}

fn deviation_us(times: &[u64], idle_us: &[f64]) -> Option<f64> {
    let mut sorted = times.to_vec();
    sorted.sort_unstable();
    Some(interval_deviation_ns(&[sorted.get(sorted.len() / 4..)?], spread_ns(idle_us))? / 1e3)
}

/// How far most delays of the idle switch differ, in ns.
fn spread_ns(idle_us: &[f64]) -> f64 {
    let of = |q| quantile(idle_us, q).unwrap_or(0.0);
    (of(0.98) - of(0.02)) * 1e3
}

/// A longer burst, if residual delays could have decided the length of this one.
fn longer(burst: usize, every_ns: f64, idle_us: &[f64], answered: usize, options: &Options) -> Option<usize> {
    // The driver's own jitter is below the margin, too.
    let spread_ns = spread_ns(idle_us).max(2.0 * options.transit_margin_ns as f64);
    let wanted = SPREADS * spread_ns / every_ns.max(1.0);
    let in_time = |ns: u64| (ns as f64 / every_ns.max(1.0)).min(BURST_MAX as f64);
    let enough = (MORE as f64).min(in_time(LONGEST_NS / 2)).max(6.0 * BURST as f64);
    let wanted = wanted.max(enough).min(in_time(LONGEST_NS)) as usize;
    // What was lost in this burst would be lost in a longer one.
    (wanted > burst + burst / 4 && answered == burst).then_some(wanted)
}

impl Services {
    fn start_burst(&mut self, of: Kind, burst: usize, options: &Options, found: &mut Findings) -> Next {
        (self.state, self.burst) = (State::Burst(of), burst);
        let flows = found.take_flows(Width::Ethernet, burst).into_iter();
        let when = When::At(SECOND_NS);
        let steps: Vec<Step> = match of {
            Kind::PacketOut => {
                flows.map(|flow| Step::packet_out(when, flow, options.ports[1].port, FRAME_BYTES)).collect()
            }
            Kind::PacketIn => {
                let into = options.ports[0].port;
                let frames = flows.map(|flow| Step::frame(when, flow, into, FRAME_BYTES, Until::PacketIn));
                to_controller(found).into_iter().chain(frames).collect()
            }
        };
        let all_us = each_us(of.kind(), found) * burst as f64;
        Next::Run(Script::new(steps, 2 * SECOND_NS + ns(all_us).min(2 * LONGEST_NS)))
    }

    fn after(&mut self, of: Kind, options: &Options, found: &mut Findings) -> Next {
        if of == Kind::PacketOut {
            return self.start_burst(Kind::PacketIn, BURST, options, found);
        }
        let Some(service_us) = found.service(MessageType::PacketIn).service_us else { return Next::Done };
        self.state = State::Overload;
        let (mut every_ns, mut lasts_ns) =
            (service_us * 1e3 / 2.0, (300.0 * service_us * 1e3).clamp(OVERLOAD_NS as f64, LONGEST_NS as f64));
        if every_ns < FASTEST_NS {
            (every_ns, lasts_ns) = (FAST_EVERY_NS, FAST_OVERLOAD_NS);
        }
        let count = ((lasts_ns / every_ns) as usize).min(OVERLOAD_MAX);
        let into = options.ports[0].port;
        let frames = found.take_flows(Width::Ethernet, count).into_iter().zip(0u32..).map(|(flow, index)| {
            let at = SECOND_NS + (f64::from(index) * every_ns) as u64;
            Step::frame(When::At(at), flow, into, FRAME_BYTES, Until::PacketIn)
        });
        let steps = to_controller(found).into_iter().chain(frames).collect();
        Next::Run(Script::new(steps, 2 * SECOND_NS + LONGEST_NS))
    }
}

impl Services {
    /// Bursts as long as the limit allows, until there are enough packet-ins.
    fn more(&mut self, limit: (f64, u32), options: &Options, found: &mut Findings) -> Next {
        let have: usize = self.bursts.iter().map(Vec::len).sum();
        let size = MORE_MIN.max(limit.1 as usize).min(BURST_MAX);
        let wanted = MORE.saturating_sub(have).div_ceil(size);
        let in_time = (LONGEST_NS / pause_ns(limit, found).max(1)) as usize;
        match wanted.min(in_time) {
            0 => Next::Done,
            rounds => self.next_of_more(rounds - 1, limit, options, found),
        }
    }

    fn next_of_more(
        &mut self,
        left: usize,
        limit: (f64, u32),
        options: &Options,
        found: &mut Findings,
    ) -> Next {
        self.state = State::More(left);
        let into = options.ports[0].port;
        let when = When::At(pause_ns(limit, found));
        let size = MORE_MIN.max(limit.1 as usize).min(BURST_MAX);
        let flows = found.take_flows(Width::Ethernet, size).into_iter();
        let frames = flows.map(|flow| Step::frame(when, flow, into, FRAME_BYTES, Until::PacketIn));
        let all_us = each_us(MessageType::PacketIn, found) * size as f64;
        Next::Run(Script::new(frames.collect(), SECOND_NS / 2 + ns(all_us)))
    }

    /// The service of all bursts together: a burst that a limit cuts off is short.
    fn conclude_more(&self, found: &mut Findings) {
        let whole = |burst: &Vec<u64>| {
            let mut sorted = burst.clone();
            sorted.sort_unstable();
            sorted
        };
        let sorted: Vec<Vec<u64>> =
            self.bursts.iter().map(whole).filter(|burst| burst.len() >= MORE_MIN).collect();
        let Some(every_ns) = mean_interval_ns(&sorted) else { return };
        let steady: Vec<&[u64]> = sorted.iter().map(|burst| &burst[burst.len() / 4..]).collect();
        let service = found.service(MessageType::PacketIn);
        service.service_us = Some(every_ns / 1e3);
        service.samples = sorted.iter().map(Vec::len).sum::<usize>() as u32;
        service.deviation_us = interval_deviation_ns(&steady, spread_ns(&service.idle_us)).map(|ns| ns / 1e3);
    }

    fn idle_again(&mut self, rate_per_s: f64, options: &Options, found: &mut Findings) -> Next {
        self.state = State::Again;
        let into = options.ports[0].port;
        let every_ns = 1.3e9 / rate_per_s;
        let count = AGAIN.min((LONGEST_NS as f64 / every_ns) as usize);
        let frames = found.take_flows(Width::Ethernet, count).into_iter().zip(0u32..).map(|(flow, index)| {
            let at = SECOND_NS + (f64::from(index) * every_ns) as u64;
            Step::frame(When::At(at), flow, into, FRAME_BYTES, Until::PacketIn)
        });
        let steps = to_controller(found).into_iter().chain(frames).collect();
        Next::Run(Script::new(steps, SECOND_NS))
    }
}

/// How long it takes until the limit allows a whole burst again, and the CPU is done.
fn pause_ns((rate_per_s, burst): (f64, u32), found: &Findings) -> u64 {
    let service_us = found.services.get(&MessageType::PacketIn).and_then(|it| it.service_us).unwrap_or(0.0);
    (1.02e9 * f64::from(burst) / rate_per_s) as u64 + ns(service_us * f64::from(burst))
}

/// The time between two answers of bursts of one kind. Its error comes from the service, which adds up from answer to answer, or from the
/// residual delay, which does not. For the first, the ends of a burst say most; for the second, a line through all. What differs less from
/// burst to burst is taken.
fn mean_interval_ns(bursts: &[Vec<u64>]) -> Option<f64> {
    let steady = |burst: &Vec<u64>| burst[burst.len() / 4..].to_vec();
    let by_line: Vec<f64> = bursts.iter().filter_map(|burst| interval_ns(&steady(burst))).collect();
    let ends = |burst: &Vec<u64>| {
        let part = steady(burst);
        Some((part.last()? - part.first()?) as f64 / (part.len() - 1) as f64)
    };
    let by_ends: Vec<f64> = bursts.iter().filter_map(ends).collect();
    let (line, ends) = (crate::samples::moments(&by_line)?, crate::samples::moments(&by_ends)?);
    Some(if ends.1 < line.1 { ends.0 } else { line.0 })
}

/// How many messages wait when a packet is lost: those that came before it, without those that were served and the one in service. The mean
/// over all losses, since residual delays hide when the CPU was done with each.
fn waiting(all: &[(u64, Option<u64>)], answers: &[u64], found: &Findings) -> Option<u32> {
    let packet_in = found.services.get(&MessageType::PacketIn)?;
    let residual_us = found.idle_mean_us(MessageType::PacketIn) - packet_in.service_us?;
    let residual_ns = ns(residual_us);
    let (mut accepted, mut losses, mut waiting) = (0.0, 0.0, 0.0);
    for (sent_ns, answer) in all {
        if answer.is_some() {
            accepted += 1.0;
            continue;
        }
        let served = answers.partition_point(|at| *at <= sent_ns + residual_ns) as f64;
        losses += 1.0;
        waiting += accepted - served - 1.0;
    }
    (losses > 0.0).then(|| (waiting / losses).round().max(1.0) as u32)
}

fn conclude(record: &Record, found: &mut Findings) {
    let all: Vec<(u64, Option<u64>)> = record
        .outcomes
        .iter()
        .filter(|outcome| outcome.frames.0 > 0)
        .filter_map(|outcome| Some((outcome.sent_ns?, outcome.packet_in.map(|packet| packet.at_ns))))
        .collect();
    let Some(last_sent) = all.last().map(|(sent, _)| *sent) else { return };
    let first_lost = all.iter().position(|(_, answer)| answer.is_none());
    let mut times: Vec<u64> = all.iter().filter_map(|(_, answer)| *answer).collect();
    times.sort_unstable();
    let from = all[0].0 + (last_sent - all[0].0) * 6 / 10;
    let late: Vec<u64> = times.iter().copied().filter(|at| (from..=last_sent).contains(at)).collect();
    let (Some(late_ns), Some(lost)) = (interval_ns(&late), first_lost) else { return };
    let service_ns = found.service(MessageType::PacketIn).service_us.unwrap_or(0.0) * 1e3;
    let lost_at = all[lost].0;
    let every_ns = (last_sent - all[0].0) as f64 / all.len() as f64;
    let share = (all.len() - times.len()) as f64 / all.len() as f64;
    if share < LOST_MIN || late_ns < LIMIT_FACTOR * every_ns {
        // A few lost frames are no bound.
        return;
    }
    if late_ns > LIMIT_FACTOR * service_ns {
        let rate_per_s = 1e9 / late_ns;
        let passed_s = (lost_at - all[0].0) as f64 / 1e9;
        // When the first packet was lost, less than one token was left.
        let burst = (lost as f64 - passed_s * rate_per_s - NEARLY_ONE).ceil().max(1.0);
        let estimate = (rate_per_s, burst as u32);
        let decided: Vec<(u64, bool)> =
            all.iter().map(|(at_ns, answer)| (*at_ns, answer.is_some())).collect();
        found.packet_in_limit = Some(token_bucket::explain(&decided, estimate).unwrap_or(estimate));
    } else {
        // The CPU is never idle, so its service time is that of the whole overload.
        let begin = all[0].0 + (last_sent - all[0].0) / 8;
        let busy: Vec<u64> = times.iter().copied().filter(|at| (begin..=last_sent).contains(at)).collect();
        let service = found.service(MessageType::PacketIn);
        if busy.len() as u32 > service.samples {
            service.service_us = interval_ns(&busy).map(|ns| ns / 1e3).or(service.service_us);
            service.samples = busy.len() as u32;
            service.deviation_us = deviation_us(&busy, &service.idle_us).or(service.deviation_us);
        }
        found.queue_messages = waiting(&all, &times, found);
    }
}
