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
use super::marked::{after_removal, behind_removal, first_after_removal, removal};
use crate::findings::{BarrierFound, Findings};
use crate::flows::Width;
use crate::options::Options;
use crate::phase::{Next, Phase};
use crate::rules::{self, RuleForm};
use crate::samples::{ns, uncensored, us};
use crate::script::{MILLISECOND_NS, Outcome, Record, SECOND_NS, Script, Step, Until, When};
use openflow::Body;
use profile::MessageType;

/// Barriers of the pilot.
const PILOT: usize = 6;
/// Barriers of a round. Their rules stay, since a late removal would make the next rule late; and the smallest table has room for
/// them.
pub(super) const PAIRS: usize = 40;
/// Rounds.
const ROUNDS: usize = 5;
/// Rounds if rules are late and some go to software: their delays differ much.
const ROUNDS_LATE: usize = 12;
/// Rounds one by one, if those that are late can be seen faster.
const ROUNDS_FIRST: usize = 2;
/// Rules that are late, of which several are on their way: how many, and how long that takes at most.
const LATE_MAX: usize = 1600;
const LATE_NS: u64 = 20 * SECOND_NS;
/// How long all rounds take at most.
const PAIRS_NS: u64 = 40 * SECOND_NS;
/// How long a rule may take after its barrier. Rarely, rules of the HP 5406zl take 22 s.
const PATIENCE_NS: u64 = 30 * SECOND_NS;
/// Rules that are added at once to see their order.
const BURST: usize = 24;
/// Adds before each message whose rank is measured.
const ADDS: usize = 12;
/// The time between two adds of rules that keep their order, as a share of the latest. With this, most come by delays of their own.
const IN_ORDER_SHARE: f64 = 0.2;
/// How many rules are on their way if they keep no order. Each is looked at once in as many ticks.
const ON_THE_WAY: f64 = 24.0;
/// The CPU must be done with an add and its barrier before the next add comes.
const CPU_FACTOR: f64 = 1.25;
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
    /// Some rules were in software, where their frames wait for each other.
    has_software: bool,
    has_more: bool,
    late: Lateness,
    late_took_ns: u64,
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
    Late,
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
                let most = if found.latest_us() > resolution_us(options) { ROUNDS_FIRST } else { ROUNDS };
                let in_time = usize::try_from(PAIRS_NS / each_ns.max(1)).unwrap_or(PAIRS);
                let all = in_time.clamp(PILOT, PAIRS * most);
                let rounds = all.div_ceil(PAIRS);
                self.state = State::Pairs { left: rounds - 1, count: all / rounds };
                Next::Run(pairs(all / rounds, options, found))
            }
            (State::Pairs { left, count }, Some(record)) if left > 0 => {
                note_lateness(record, options, found);
                self.has_software |= has_software(record, found);
                self.state = State::Pairs { left: left - 1, count };
                Next::Run(pairs(count, options, found))
            }
            (State::Pairs { count, .. }, Some(record)) => {
                note_lateness(record, options, found);
                self.has_software |= has_software(record, found);
                if self.has_software && found.latest_us() > resolution_us(options) && !self.has_more {
                    // They cannot be seen several at once.
                    self.has_more = true;
                    self.state = State::Pairs { left: ROUNDS_LATE - ROUNDS_FIRST - 1, count };
                    return Next::Run(pairs(count, options, found));
                }
                conclude_barrier(options, found);
                self.state = State::Order;
                Next::Run(burst(options, found))
            }
            (State::Order, Some(record)) => {
                found.rules_in_order = is_in_order(record, options);
                self.has_software |= has_software(record, found);
                self.late_or_rank(options, found)
            }
            (State::Late, Some(record)) => {
                self.late_took_ns += record.ended_ns - record.started_ns;
                self.late.note(record, options, found);
                self.late_or_rank(options, found)
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
fn pairs(count: usize, options: &Options, found: &mut Findings) -> Script {
    let frames = crate::engine::watch(options, FRAME_BYTES);
    let rule = RuleForm::to(options.ports[1].port);
    let flows = found.take_flows(Width::Ethernet, count);
    let steps = flows.into_iter().enumerate().flat_map(|(index, flow)| {
        let when = if index == 0 { first_after_removal(found) } else { When::After(MILLISECOND_NS) };
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
    });
    Script::new(behind_removal(steps, options, found), PATIENCE_NS)
}

/// Adds with barriers at a steady rate, so that several rules are on their way. Rules that keep their order must come slowly enough that
/// most do not wait for an earlier one.
pub(super) fn late_pairs(count: usize, options: &Options, found: &mut Findings) -> Script {
    let apart = if found.rules_in_order { IN_ORDER_SHARE } else { 1.0 / ON_THE_WAY };
    let add_us = found.add_cpu_us.unwrap_or(found.idle_mean_us(MessageType::Add));
    let cpu_us = add_us + found.idle_mean_us(MessageType::Barrier);
    let every_ns = ns((apart * found.latest_us()).max(CPU_FACTOR * cpu_us)).max(4 * MILLISECOND_NS);
    let removal_us = count as f64 * found.delete_us.unwrap_or(add_us);
    let begin_ns = 300 * MILLISECOND_NS + ns(2.0 * found.latest_us() + removal_us);
    let frames = crate::engine::watch(options, FRAME_BYTES);
    let rule = RuleForm::to(options.ports[1].port);
    let flows = found.take_flows(Width::Ethernet, count).into_iter().zip(0u64..);
    let steps = flows.flat_map(|(flow, index)| {
        let at_ns = begin_ns + index * every_ns;
        let before = When::At(at_ns - MILLISECOND_NS);
        let first = Step::frame(before, flow, options.ports[0].port, FRAME_BYTES, Until::Sent);
        let pair = [
            Step::watched(When::At(at_ns), rule.add_for(flow), flow, frames),
            Step::barrier(When::At(at_ns)),
        ];
        options.is_real().then_some(first).into_iter().chain(pair)
    });
    Script::new(behind_removal(steps, options, found), PATIENCE_NS)
}

/// How late rules were of which several were on their way.
#[derive(Debug, Default)]
pub(super) struct Lateness {
    /// µs, and whether it is that. Otherwise the rule was there at most so late, but waited for an earlier one.
    seen: Vec<(f64, bool)>,
}

impl Lateness {
    /// How many rules were seen.
    pub(super) fn count(&self) -> usize {
        self.seen.len()
    }

    /// Notes those of a script of [`late_pairs`].
    pub(super) fn note(&mut self, record: &Record, options: &Options, found: &Findings) {
        let mut there_ns = 0;
        for pair in after_removal(record).chunks(steps_of_pair(options)) {
            let [.., add, barrier] = pair else { continue };
            let Some((frame, reply)) = add.frame.zip(barrier.reply) else { continue };
            let Some(late_ns) = late_ns(add, reply.at_ns) else { continue };
            // A rule that was missing while the one before was there came by a delay of its own.
            let is_own = late_ns == 0 || add.lost_ns.is_some_and(|lost_ns| lost_ns >= there_ns);
            self.seen.push((us(late_ns), is_own || !found.rules_in_order));
            there_ns = there_ns.max(frame.sent_ns);
        }
    }

    /// Adds them to those that were seen one by one.
    pub(super) fn conclude(self, found: &mut Findings) {
        if self.seen.is_empty() {
            return;
        }
        let singly = found.late_us.iter().map(|us| (*us, true));
        let all: Vec<(f64, bool)> = singly.chain(self.seen).collect();
        found.late_us = uncensored(&all);
    }
}

/// How many steps a pair has.
fn steps_of_pair(options: &Options) -> usize {
    if options.is_real() { 3 } else { 2 }
}

/// How much later than the reply each rule was there.
fn note_lateness(record: &Record, options: &Options, found: &mut Findings) {
    let pairs = after_removal(record);
    let steps = steps_of_pair(options);
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

/// Rules that are less late may be in time.
fn resolution_us(options: &Options) -> f64 {
    us(2 * options.watch_tick_ns) + us(options.transit_margin_ns)
}

fn conclude_barrier(options: &Options, found: &mut Findings) {
    if found.late_us.is_empty() {
        return found.leave_out("barrier", "no rule forwarded after its barrier");
    }
    let resolution_us = resolution_us(options);
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

/// Whether a rule was in software.
fn has_software(record: &Record, found: &Findings) -> bool {
    record.outcomes.iter().filter_map(Outcome::transit_ns).any(|transit| found.is_software(transit))
}

impl Barriers {
    /// More rules that are late, until there are enough.
    fn late_or_rank(&mut self, options: &Options, found: &mut Findings) -> Next {
        let has_time = self.late_took_ns < LATE_NS && self.late.count() < LATE_MAX;
        if found.barrier == Some(BarrierFound::Early) && has_time && !self.has_software {
            self.state = State::Late;
            return Next::Run(late_pairs(PAIRS, options, found));
        }
        std::mem::take(&mut self.late).conclude(found);
        self.rank(0, options, found)
    }

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
    use openflow::Version;

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
