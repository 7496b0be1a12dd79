//! A phase: what a barrier reply means, and which messages overtake others in the CPU's queue.
//!
//! ```text
//!   add, barrier: the rule's first frame ── after the reply? ──> early by how much
//!   adds at once: first frames in another order? ─────────────> reordering
//!   adds, X, adds, X: is the first X half as late as the second? ──> the rank of X
//! ```
//!
//! In: replies and first frames. Out: the kind of barrier, the delays behind it, and ranks. A rank says only whether a type comes before
//! adds, in turn with them, or behind them.

use super::cabling::FRAME_BYTES;
use super::idle::to_controller;
use crate::findings::{BarrierFound, Findings};
use crate::flows::Width;
use crate::options::Options;
use crate::phase::{Next, Phase};
use crate::rules::{self, RuleForm};
use crate::samples::{ns, us};
use crate::script::{MILLISECOND_NS, Outcome, Record, SECOND_NS, Script, Step, Until, When};
use openflow::{Body, Version};
use profile::MessageType;

/// Barriers of the pilot.
const PILOT: usize = 6;
/// Barriers of a round. Their rules stay, since a late removal would make the next rule late; and the smallest table has room for
/// them.
pub(super) const PAIRS: usize = 40;
/// Rounds.
const ROUNDS: usize = 5;
/// Rounds if rules are late: their delays differ much.
const ROUNDS_LATE: usize = 12;
/// How long all rounds take at most.
const PAIRS_NS: u64 = 40 * SECOND_NS;
/// How long a rule may take after its barrier. Rarely, rules of the HP 5406zl take 22 s.
const PATIENCE_NS: u64 = 30 * SECOND_NS;
/// Rules that are added at once to see their order.
const BURST: usize = 24;
/// Adds before each message whose rank is measured.
const ADDS: usize = 12;
/// The share of barriers whose rule is late that makes the switch's barriers early.
const EARLY_SHARE: f64 = 0.1;

/// The types whose rank is measured: those that have an answer.
const TYPES: [MessageType; 5] = [
    MessageType::Echo,
    MessageType::Statistics,
    MessageType::PacketOut,
    MessageType::PacketIn,
    MessageType::Barrier,
];

/// The phase.
#[derive(Debug, Default)]
pub struct Barriers {
    state: State,
    /// (type, delay behind the first adds, behind all), without the idle delay.
    delays: Vec<(MessageType, f64, f64)>,
}

#[derive(Clone, Copy, Debug, Default)]
enum State {
    #[default]
    Start,
    Pilot,
    Pairs {
        left: usize,
        count: usize,
    },
    Order,
    Rank(usize),
}

impl Phase for Barriers {
    fn title(&self) -> String {
        "measuring barriers and the order of messages".to_owned()
    }

    fn measures(&self) -> &'static [&'static str] {
        &["barrier", "ranks of messages"]
    }

    fn next(&mut self, last: Option<&Record>, options: &Options, found: &mut Findings) -> Next {
        match (self.state, last) {
            (State::Pilot, Some(record)) => {
                let each_ns = (record.ended_ns - record.started_ns) / PILOT as u64;
                note_lateness(record, options, found);
                let resolution_us = us(2 * options.watch_tick_ns) + us(options.transit_margin_ns);
                let most = if found.latest_us() > resolution_us { ROUNDS_LATE } else { ROUNDS };
                let in_time = usize::try_from(PAIRS_NS / each_ns.max(1)).unwrap_or(PAIRS);
                let all = in_time.clamp(PILOT, PAIRS * most);
                let rounds = all.div_ceil(PAIRS);
                self.state = State::Pairs { left: rounds - 1, count: all / rounds };
                Next::Run(pairs(all / rounds, options, found))
            }
            (State::Pairs { left, count }, Some(record)) if left > 0 => {
                note_lateness(record, options, found);
                self.state = State::Pairs { left: left - 1, count };
                Next::Run(pairs(count, options, found))
            }
            (State::Pairs { .. }, Some(record)) => {
                note_lateness(record, options, found);
                conclude_barrier(options, found);
                self.state = State::Order;
                Next::Run(burst(options, found))
            }
            (State::Order, Some(record)) => {
                found.rules_in_order = is_in_order(record, options);
                self.rank(0, options, found)
            }
            (State::Rank(at), Some(record)) => {
                self.delays.extend(delays_of(TYPES[at % TYPES.len()], record, found));
                if at + 1 < TYPES.len() * options.repetitions {
                    return self.rank(at + 1, options, found);
                }
                conclude_ranks(&medians(&self.delays), options, found);
                Next::Done
            }
            _ => {
                self.state = State::Pilot;
                Next::Run(pairs(PILOT, options, found))
            }
        }
    }
}

/// Adds, each with a barrier right behind it. A frame comes first: a real switch may cache what it does with packets without a rule.
pub(super) fn pairs(count: usize, options: &Options, found: &mut Findings) -> Script {
    let frames = crate::engine::watch(options, FRAME_BYTES);
    let rule = RuleForm::to(options.ports[1].port);
    let flows = found.take_flows(Width::Ethernet, count);
    let pause = 100 * MILLISECOND_NS + 2 * ns(found.latest_us());
    let mut steps = removal(options, found).to_vec();
    steps.extend(flows.into_iter().enumerate().flat_map(|(index, flow)| {
        let when = When::After(if index == 0 { pause } else { MILLISECOND_NS });
        let first = Step::frame(when, flow, options.ports[0].port, FRAME_BYTES, Until::Sent);
        let add = Step::watched(
            if options.is_real() { When::After(MILLISECOND_NS) } else { when },
            rule.add_for(flow),
            flow,
            frames,
        );
        // The barrier follows at once.
        let pair = [add, Step::barrier(When::At(0))];
        options.is_real().then_some(first).into_iter().chain(pair)
    }));
    Script::new(steps, PATIENCE_NS)
}

/// Removes all rules, but the one for the rest in OpenFlow 1.0.
pub(super) fn removal(options: &Options, found: &Findings) -> [Step; 2] {
    let is_v10 = found.version == Version::V1_0;
    let delete = Step::send(When::At(0), rules::delete_all(!is_v10 && !options.clear));
    let end = if is_v10 { Step::send(When::At(0), rules::add_drop()) } else { Step::barrier(When::At(0)) };
    [delete, end]
}

/// How much later than the reply each rule was there.
pub(super) fn note_lateness(record: &Record, options: &Options, found: &mut Findings) {
    let pairs = record.outcomes.get(2..).unwrap_or_default();
    let steps = if options.is_real() { 3 } else { 2 };
    let late = pairs.chunks(steps).filter_map(|pair| {
        let [.., add, barrier] = pair else { return None };
        Some(us(late_ns(add, barrier.reply?.at_ns)?))
    });
    let late: Vec<f64> = late.collect();
    found.late_us.extend(late);
    let barrier_us = found.idle_us(MessageType::Barrier).unwrap_or(0.0);
    let adds = pairs.iter().skip(steps - 1).step_by(steps).filter_map(Outcome::reply_after_ns);
    let adds: Vec<f64> = adds.map(|both| (us(both) - barrier_us).max(0.0)).collect();
    found.service(MessageType::Add).idle_us.extend(adds);
}

/// How much later than its barrier's reply a rule was there: between the last frame that did not get through and the first that did.
/// Only a frame that was sent after the reply shows that the rule was late. Without one, this machine may have been busy.
fn late_ns(add: &Outcome, replied_ns: u64) -> Option<u64> {
    let first_ns = add.frame?.sent_ns;
    let lost_ns = add.lost_ns.filter(|lost_ns| *lost_ns > replied_ns);
    Some(lost_ns.map_or(0, |lost_ns| lost_ns.midpoint(first_ns) - replied_ns))
}

fn conclude_barrier(options: &Options, found: &mut Findings) {
    if found.late_us.is_empty() {
        return found.leave_out("barrier", "no rule forwarded after its barrier");
    }
    let resolution_us = us(2 * options.watch_tick_ns) + us(options.transit_margin_ns);
    let late = found.late_us.iter().filter(|late| **late > resolution_us).count();
    let is_early = late as f64 > EARLY_SHARE * found.late_us.len() as f64;
    found.barrier = Some(if is_early { BarrierFound::Early } else { BarrierFound::Honest });
    if !is_early {
        found.late_us.clear();
    }
}

fn burst(options: &Options, found: &mut Findings) -> Script {
    let frames = crate::engine::watch(options, FRAME_BYTES);
    let rule = RuleForm::to(options.ports[1].port);
    let flows = found.take_flows(Width::Ethernet, BURST);
    let adds = flows.into_iter().map(|flow| Step::watched(When::At(0), rule.add_for(flow), flow, frames));
    Script::new(adds.collect(), PATIENCE_NS)
}

/// Whether the rules of a burst came in order. Each is looked at once in as many ticks as rules are open.
fn is_in_order(record: &Record, options: &Options) -> bool {
    let resolution_ns = 2 * BURST as u64 * options.watch_tick_ns;
    let mut latest = 0;
    record.outcomes.iter().filter_map(|add| Some(add.frame?.sent_ns)).all(|seen| {
        let is_after = seen + resolution_ns >= latest;
        latest = latest.max(seen);
        is_after
    })
}

impl Barriers {
    /// All rules go; then adds, the message, adds, and the message again.
    fn rank(&mut self, at: usize, options: &Options, found: &mut Findings) -> Next {
        self.state = State::Rank(at);
        let kind = TYPES[at % TYPES.len()];
        let mut steps = removal(options, found).to_vec();
        steps.extend(to_controller(found));
        let flows = found.take_flows(Width::Ethernet, 2 * ADDS);
        let rule = RuleForm::to(options.ports[1].port);
        // An idle switch: the removal may go on behind an early barrier.
        let pause = 500 * MILLISECOND_NS + 2 * ns(found.latest_us());
        for half in flows.chunks(ADDS) {
            steps.extend(half.iter().enumerate().map(|(index, flow)| {
                let is_first = index == 0 && half[0] == flows[0];
                let when = if is_first { When::After(pause) } else { When::At(0) };
                Step::send(when, rule.add_for(*flow))
            }));
            steps.push(message(kind, options, found));
        }
        steps.push(Step::barrier(When::After(0)));
        Next::Run(Script::new(steps, PATIENCE_NS))
    }
}

fn message(kind: MessageType, options: &Options, found: &mut Findings) -> Step {
    let when = When::At(0);
    match kind {
        MessageType::Echo => Step::ask(when, Body::EchoRequest(Vec::new())),
        MessageType::Barrier => Step::barrier(when),
        MessageType::Statistics => Step::ask(when, rules::request(openflow::message::RequestBody::Desc)),
        MessageType::PacketOut => Step::packet_out(
            when,
            found.take_flows(Width::Ethernet, 1)[0],
            options.ports[1].port,
            FRAME_BYTES,
        ),
        _ => {
            let flow = found.take_flows(Width::Ethernet, 1)[0];
            Step::frame(when, flow, options.ports[0].port, FRAME_BYTES, Until::PacketIn)
        }
    }
}

fn delays_of(kind: MessageType, record: &Record, found: &Findings) -> Option<(MessageType, f64, f64)> {
    let all = &record.outcomes;
    let last = all.len().checked_sub(2)?;
    let first = last.checked_sub(ADDS + 1)?;
    let delay = |outcome: &Outcome| match kind {
        MessageType::PacketIn => outcome.packet_in_after_ns(),
        MessageType::PacketOut => outcome.frame_after_ns(),
        _ => outcome.reply_after_ns(),
    };
    let idle = found.idle_us(kind).unwrap_or(0.0);
    let of = |index: usize| Some((us(delay(&all[index])?) - idle).max(0.0));
    Some((kind, of(first)?, of(last)?))
}

/// One line for each type, of all repetitions.
fn medians(delays: &[(MessageType, f64, f64)]) -> Vec<(MessageType, f64, f64)> {
    let of = |kind: MessageType| {
        let (half, all): (Vec<f64>, Vec<f64>) =
            delays.iter().filter(|(it, ..)| *it == kind).map(|(_, half, all)| (*half, *all)).unzip();
        Some((kind, crate::samples::median(&half)?, crate::samples::median(&all)?))
    };
    TYPES.into_iter().filter_map(of).collect()
}

fn conclude_ranks(delays: &[(MessageType, f64, f64)], options: &Options, found: &mut Findings) {
    // A barrier may wait for the data plane too: the CPU's time is that of the others.
    let cpu = delays.iter().filter(|(kind, ..)| *kind != MessageType::Barrier).map(|(.., all)| *all);
    let busy = cpu.fold(0.0, f64::max);
    if busy < us(4 * options.transit_margin_ns) {
        return found.leave_out("ranks", "the CPU needs too little time for adds to see what overtakes them");
    }
    for (kind, half, all) in delays {
        let rank = if *all < 0.3 * busy {
            -1
        } else if *half > 0.8 * all {
            1
        } else {
            0
        };
        found.service(*kind).rank = Some(rank);
        if *kind == MessageType::Barrier && rank == -1 {
            found.barrier = Some(BarrierFound::NotOrdering);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::Findings;

    #[test]
    fn only_a_frame_that_is_lost_after_the_reply_shows_a_late_rule() {
        let late = |lost_ns, sent_ns| {
            let frame = Some(crate::script::FrameSeen { sent_ns, at_ns: sent_ns + 1, port: flow::PortNo(2) });
            late_ns(&Outcome { frame, lost_ns, ..Outcome::default() }, 1_000_000)
        };
        // This machine stood still from the reply to the next frame.
        assert_eq!(late(Some(900_000), 9_000_000), Some(0));
        assert_eq!(late(Some(3_000_000), 5_000_000), Some(3_000_000));
        assert_eq!([late(None, 950_000), late(None, 9_000_000)], [Some(0); 2]);
    }

    #[test]
    fn a_message_that_overtakes_and_one_that_is_overtaken_are_told_apart() {
        let mut found = Findings::new(Version::V1_3);
        let delays = [
            (MessageType::Echo, 40.0, 90.0),
            (MessageType::PacketIn, 5_000.0, 9_900.0),
            (MessageType::PacketOut, 9_800.0, 10_000.0),
        ];
        conclude_ranks(&delays, &Options::simulated("x", "2026-11-25"), &mut found);
        let rank = |kind, found: &mut Findings| found.service(kind).rank;
        assert_eq!(rank(MessageType::Echo, &mut found), Some(-1));
        assert_eq!(rank(MessageType::PacketIn, &mut found), Some(0));
        assert_eq!(rank(MessageType::PacketOut, &mut found), Some(1));
    }
}
