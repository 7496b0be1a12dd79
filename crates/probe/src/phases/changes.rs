//! A phase: what modifies, deletes and entries of statistics cost, and whether a modify leaves a gap.
//!
//! In: bursts of modifies and deletes with a marker behind them, a stream of frames through a rule that is modified, and statistics with
//! some rules in the table. Out: costs, and the kind of modify.

use super::cabling::FRAME_BYTES;
use crate::findings::{BarrierFound, Findings};
use crate::flows::{TestFlow, Width};
use crate::options::Options;
use crate::phase::{Next, Phase};
use crate::rules::{self, RuleForm};
use crate::samples::{median, ns, us};
use crate::script::{MILLISECOND_NS, Outcome, Record, SECOND_NS, Script, Step, Until, When};
use openflow::Body;
use profile::{MessageType, ModifyKind};

/// Rules that are modified and deleted.
const RULES: usize = 48;
/// Statistics with these rules in the table.
const STATISTICS: usize = 12;
/// Modifies under a stream of frames.
const GAPS: usize = 8;
/// How long the stream goes on for each of them at least.
const STREAM_NS: u64 = 60 * MILLISECOND_NS;
/// Frames of the whole stream at most.
const STREAM_MAX: usize = 40_000;
const PATIENCE_NS: u64 = 30 * SECOND_NS;

/// The phase.
#[derive(Debug, Default)]
pub struct Changes {
    state: State,
    flows: Vec<TestFlow>,
}

#[derive(Clone, Copy, Debug, Default)]
enum State {
    #[default]
    Start,
    Planted,
    Statistics,
    Modify,
    Gap,
    Delete,
}

impl Phase for Changes {
    fn title(&self) -> String {
        "measuring modifies and deletes".to_owned()
    }

    fn measures(&self) -> &'static [&'static str] {
        &["cpu.modify", "cpu.delete", "hardware.modify", "cpu.statistics.entry_us"]
    }

    fn next(&mut self, last: Option<&Record>, options: &Options, found: &mut Findings) -> Next {
        let rule = RuleForm::to(options.ports[1].port);
        // Another port as well, so that the rule really changes.
        let other = RuleForm::to(options.ports[0].port);
        match (self.state, last) {
            (State::Planted, Some(record)) => {
                if record.outcomes.iter().all(|outcome| outcome.frame.is_none()) {
                    found.leave_out("cpu.modify", "no rule forwarded");
                    return Next::Done;
                }
                self.state = State::Statistics;
                let steps =
                    (0..STATISTICS).map(|_| Step::ask(When::After(MILLISECOND_NS), rules::flow_stats()));
                Next::Run(Script::new(steps.collect(), PATIENCE_NS))
            }
            (State::Statistics, Some(record)) => {
                note_entries(record, found);
                self.state = State::Modify;
                Next::Run(self.burst(|flow| other.modify_for(flow)))
            }
            (State::Modify, Some(record)) => {
                found.modify_us = each_us(record, found);
                self.state = State::Gap;
                Next::Run(self.stream(rule, other, options, found))
            }
            (State::Gap, Some(record)) => {
                conclude_gap(record, found);
                self.state = State::Delete;
                Next::Run(self.burst(|flow| rule.delete_for(flow)))
            }
            (State::Delete, Some(record)) => {
                found.delete_us = each_us(record, found);
                Next::Done
            }
            _ => {
                self.state = State::Planted;
                self.flows = found.take_flows(Width::Ethernet, RULES);
                let frames = crate::engine::watch(options, FRAME_BYTES);
                let flows = self.flows.iter();
                let adds =
                    flows.map(|flow| Step::watched(When::After(0), rule.add_for(*flow), *flow, frames));
                Next::Run(Script::new(adds.collect(), PATIENCE_NS).with_window(8))
            }
        }
    }
}

impl Changes {
    /// Changes of all rules at once, and markers behind them.
    fn burst(&self, change: impl Fn(TestFlow) -> Body) -> Script {
        let at = When::At(200 * MILLISECOND_NS);
        let changes = self.flows.iter().map(|flow| Step::send(at, change(*flow)));
        let markers = [Body::EchoRequest(Vec::new()), Body::BarrierRequest].map(|body| Step::ask(at, body));
        Script::new(changes.chain(markers).collect(), PATIENCE_NS)
    }

    /// A stream of frames through one rule, which is modified from time to time.
    fn stream(&self, rule: RuleForm, other: RuleForm, options: &Options, found: &Findings) -> Script {
        let Some(flow) = self.flows.first().copied() else { return Script::new(Vec::new(), PATIENCE_NS) };
        let each_ns = (3 * ns(found.modify_us.unwrap_or(0.0))).max(STREAM_NS);
        let tick_ns = options.watch_tick_ns.max(GAPS as u64 * each_ns / STREAM_MAX as u64);
        let frames_each = each_ns / tick_ns;
        let steps = (0..GAPS as u64).flat_map(|round| {
            let begins = round * each_ns;
            let form = if round % 2 == 0 { rule } else { other };
            let modify = Step::send(When::At(begins), form.modify_for(flow));
            let frames = (0..frames_each).map(move |index| {
                let at = When::At(begins + index * tick_ns);
                Step::frame(at, flow, options.ports[0].port, 100, Until::Sent)
            });
            std::iter::once(modify).chain(frames)
        });
        Script::new(steps.collect(), PATIENCE_NS).with_settle(200 * MILLISECOND_NS)
    }
}

/// The time of the CPU for each change of a burst, from the markers behind it.
fn each_us(record: &Record, found: &Findings) -> Option<f64> {
    let changes = record.outcomes.len().checked_sub(2)?;
    let sent = record.outcomes.first()?.sent_ns?;
    let (echo, barrier) = (&record.outcomes[changes], &record.outcomes[changes + 1]);
    let echo_waits = found.services.get(&MessageType::Echo).and_then(|echo| echo.rank).unwrap_or(0) >= 0;
    let barrier_waits = found.barrier != Some(BarrierFound::NotOrdering);
    let marker = |outcome: &Outcome, kind| {
        let idle = found.idle_us(kind).unwrap_or(0.0);
        Some(us(outcome.reply?.at_ns.saturating_sub(sent)) - idle)
    };
    let echo = echo_waits.then(|| marker(echo, MessageType::Echo)).flatten();
    let barrier = barrier_waits.then(|| marker(barrier, MessageType::Barrier)).flatten();
    let all_us = [echo, barrier].into_iter().flatten().reduce(f64::min)?;
    Some((all_us / changes as f64).max(0.0))
}

fn note_entries(record: &Record, found: &mut Findings) {
    let with_rules: Vec<f64> = record.outcomes.iter().filter_map(Outcome::reply_after_ns).map(us).collect();
    let entries = record.outcomes.iter().filter_map(|outcome| outcome.reply).map(|reply| reply.entries).max();
    let (Some(with_rules), Some(empty)) = (median(&with_rules), found.idle_us(MessageType::Statistics))
    else {
        return;
    };
    if let Some(entries) = entries.filter(|entries| *entries > 0) {
        found.statistics_entry_us = Some(((with_rules - empty) / f64::from(entries)).max(0.0));
    }
}

/// A gap in the stream after each modify: in a modify as a delete and an add, packets find no rule.
fn conclude_gap(record: &Record, found: &mut Findings) {
    // A modify begins a round; the frames behind it belong to it.
    let rounds = record.outcomes.chunk_by(|_, next| next.frames.0 > 0);
    let lost: Vec<(usize, usize)> = rounds
        .map(|round| {
            let frames = round.iter().filter(|outcome| outcome.frames.0 > 0);
            frames.fold((0, 0), |(lost, all), frame| (lost + usize::from(frame.frames.1 == 0), all + 1))
        })
        .filter(|(_, all)| *all > 0)
        .collect();
    if lost.iter().all(|(lost, all)| lost == all) {
        return found.leave_out("hardware.modify", "no frame passed the modified rule");
    }
    // Frames are lost for other reasons too, but not with each modify.
    let with_gap = lost.iter().filter(|(lost, _)| *lost > 0).count();
    let is_gap = 4 * with_gap >= 3 * lost.len();
    found.modify_kind = Some(if is_gap { ModifyKind::DeleteAndAdd } else { ModifyKind::InPlace });
}
