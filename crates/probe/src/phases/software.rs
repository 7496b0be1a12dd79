//! A phase: how fast rules in software forward, and how they move to hardware.
//!
//! ```text
//!   rules in software ──> frames in turns until they become fast ──> times of promotions ──> period, batch, order
//!                     ──> single frames ──> the transit      trains of long and short frames ──> bits and packets a second
//! ```
//!
//! In: rules that are in software, which another phase or a burst of adds has put there. Out: the rates of the software path and its
//! promotion. It chooses the order that names most of the promoted rules.

use super::cabling::FRAME_BYTES;
use super::marked::{after_removal, behind_removal};
use crate::findings::{Findings, SoftwareFound};
use crate::flows::{TestFlow, Width};
use crate::options::Options;
use crate::phase::{Next, Phase};
use crate::rules::RuleForm;
use crate::samples::{interval_ns, ns, slope, us};
use crate::script::{MILLISECOND_NS, Outcome, Record, SECOND_NS, Script, Step, Until, When};
use profile::software::{PROMOTION_BATCH_MAX, PROMOTION_PERIOD_MIN_US};
use profile::{Promotion, PromotionOrder};

/// Rules added at once, of which most go to software.
const BURST: usize = 40;
/// How long promotions are waited for.
const PROMOTIONS_NS: u64 = 16 * SECOND_NS;
/// Between two frames for a rule.
const ROUND_NS: u64 = 40 * MILLISECOND_NS;
/// Frames while promotions are waited for, at most.
const ROUNDS_MAX: u64 = 60_000;
/// Long enough to be slow in software, and short enough for many.
const LOOK_BYTES: usize = 700;
/// Before the first single frame: those that watched the rules may still wait for their turn in software.
const CALM_NS: u64 = SECOND_NS;
/// Single frames.
const TRANSITS: usize = 60;
/// Frames of a train.
const TRAIN: usize = 160;
const SHORT_BYTES: usize = 100;
/// How long the writes of a batch take at most.
const WRITES_NS: u64 = 40 * MILLISECOND_NS;
/// An order that names fewer of the promoted rules is none.
const EXPLAINED_MIN: f64 = 0.65;

/// The state machine for rules that are in software. [`Software`] and the phase of the table use it.
#[derive(Debug, Default)]
pub(super) struct SoftwareLook {
    state: Look,
    flows: Vec<TestFlow>,
    priorities: Vec<u16>,
    every_ns: u64,
    long_ns: Option<f64>,
    /// Whether it follows promotions, and not the rates of the software path.
    promotions: bool,
    /// How long a frame takes through software, if the rates are not known.
    each_ns: u64,
}

#[derive(Clone, Copy, Debug, Default)]
enum Look {
    #[default]
    Start,
    Transits,
    Train,
    ShortTrain,
    Promotions,
}

impl SoftwareLook {
    /// The rates of the software path, by these rules.
    pub(super) fn rates(flows: Vec<TestFlow>) -> Self {
        SoftwareLook { flows, ..SoftwareLook::default() }
    }

    /// The promotions of these rules, in the order in which they were added, with their priorities. They may have begun already.
    /// `each_ns`: how long a frame takes through software at least.
    pub(super) fn promotions(flows: Vec<TestFlow>, priorities: Vec<u16>, each_ns: u64) -> Self {
        SoftwareLook { flows, priorities, promotions: true, each_ns, ..SoftwareLook::default() }
    }

    /// Goes on. None: it is done.
    pub(super) fn next(
        &mut self,
        last: Option<&Record>,
        options: &Options,
        found: &mut Findings,
    ) -> Option<Script> {
        let last = last.filter(|_| !matches!(self.state, Look::Start));
        match (self.state, last) {
            (Look::Promotions, Some(record)) => {
                self.note_promotions(record, found);
                None
            }
            (Look::Transits, Some(record)) => {
                note_transits(record, found);
                self.state = Look::Train;
                Some(self.train(FRAME_BYTES, options, found))
            }
            (Look::Train, Some(record)) => {
                self.long_ns = arrivals(record, self.every_ns, found);
                self.state = Look::ShortTrain;
                Some(self.train(SHORT_BYTES, options, found))
            }
            (Look::ShortTrain, Some(record)) => {
                self.conclude_rates(arrivals(record, self.every_ns, found), found);
                None
            }
            _ if self.promotions => {
                self.state = Look::Promotions;
                Some(self.rounds(options, found))
            }
            _ => {
                self.state = Look::Transits;
                // All take turns, since some may move to hardware meanwhile.
                let steps = self.flows.iter().cycle().take(TRANSITS).enumerate().map(|(index, flow)| {
                    let into = options.ports[0].port;
                    let gap_ns = if index == 0 { CALM_NS } else { 2 * MILLISECOND_NS };
                    Step::frame(When::After(gap_ns), *flow, into, FRAME_BYTES, Until::Frame)
                });
                Some(Script::new(steps.collect(), SECOND_NS))
            }
        }
    }

    /// Frames faster than software forwards them.
    fn train(&mut self, bytes: usize, options: &Options, found: &Findings) -> Script {
        let transits =
            found.software.as_ref().map(|software| software.transit_us.as_slice()).unwrap_or_default();
        let transit_us = crate::samples::median(transits).unwrap_or(1000.0);
        self.every_ns =
            (ns(transit_us) / 4).clamp(20_000, MILLISECOND_NS) * bytes as u64 / FRAME_BYTES as u64;
        self.every_ns = self.every_ns.max(10_000);
        let into = options.ports[0].port;
        let steps = self.flows.iter().cycle().zip(0..TRAIN as u64).map(|(flow, index)| {
            let when = When::At(200 * MILLISECOND_NS + index * self.every_ns);
            Step::frame(when, *flow, into, bytes, Until::Sent)
        });
        Script::new(steps.collect(), SECOND_NS).with_settle(500 * MILLISECOND_NS)
    }

    fn conclude_rates(&self, short_ns: Option<f64>, found: &mut Findings) {
        let software = found.software.get_or_insert_with(SoftwareFound::default);
        let bits_of = |bytes: usize| 8.0 * bytes as f64;
        let by_bits = |each_ns: f64, bytes: usize| bits_of(bytes) * 1e9 / each_ns;
        let Some(long_ns) = self.long_ns else { return };
        let expected_short_ns = long_ns * SHORT_BYTES as f64 / FRAME_BYTES as f64;
        match short_ns {
            // Short frames take as long as long ones: packets count, not bits.
            Some(short_ns) if short_ns > 0.9 * long_ns => software.packets_per_s = Some(1e9 / short_ns),
            Some(short_ns) => {
                software.bits_per_s = Some(by_bits(long_ns, FRAME_BYTES));
                software.packets_per_s = (short_ns > 1.3 * expected_short_ns).then(|| 1e9 / short_ns);
            }
            None => software.bits_per_s = Some(by_bits(long_ns, FRAME_BYTES)),
        }
    }

    /// A frame for each rule in turn, again and again. The order of turns and some second frames put the rules into different orders of
    /// use.
    fn rounds(&mut self, options: &Options, found: &Findings) -> Script {
        let each_us = found.software.as_ref().and_then(|software| software.bits_per_s);
        let each_ns = each_us.map_or(self.each_ns as f64, |rate| 8e9 * LOOK_BYTES as f64 / rate);
        let turn = self.turn();
        let all_ns = (1.5 * each_ns * turn.len() as f64) as u64;
        let round_ns = ROUND_NS.max(all_ns);
        let rounds = (PROMOTIONS_NS / round_ns).min(ROUNDS_MAX / turn.len().max(1) as u64);
        let gap_ns = round_ns / turn.len().max(1) as u64;
        let into = options.ports[0].port;
        let steps = (0..rounds).flat_map(|round| {
            let flows = &self.flows;
            turn.iter().zip(0u64..).map(move |(index, place)| {
                let when = When::At(round * round_ns + place * gap_ns);
                Step::frame(when, flows[*index], into, LOOK_BYTES, Until::Sent)
            })
        });
        Script::new(steps.collect(), SECOND_NS).with_settle(300 * MILLISECOND_NS)
    }

    /// The indices of rules in the order of a round. Every third has a second frame.
    fn turn(&self) -> Vec<usize> {
        let count = self.flows.len();
        let order = (0..count).map(|place| super::orders::shuffled_again(place, count));
        let second = (0..count).filter(|index| self.is_used_more(*index));
        second.chain(order).collect()
    }

    fn is_used_more(&self, index: usize) -> bool {
        (index * 7 + index / 3).is_multiple_of(3)
    }

    fn note_promotions(&self, record: &Record, found: &mut Findings) {
        let turn = self.turn();
        let mut looks: Vec<Vec<(u64, bool)>> = vec![Vec::new(); self.flows.len()];
        for (rule, outcome) in turn.iter().cycle().zip(&record.outcomes) {
            looks[*rule].extend(outcome.sent_ns.zip(is_fast(outcome, found)));
        }
        let sent = turn.iter().cycle().zip(&record.outcomes);
        let sent: Vec<(u64, usize)> =
            sent.filter_map(|(rule, outcome)| Some((outcome.sent_ns?, *rule))).collect();
        let mut moves: Vec<Move> =
            looks.iter().enumerate().filter_map(|(rule, looks)| move_of(rule, looks)).collect();
        // Those that moved before the first look say nothing about the order.
        let there: Vec<usize> =
            (0..looks.len()).filter(|rule| looks[*rule].iter().any(|(_, fast)| !fast)).collect();
        moves.sort_by_key(|it| it.from_ns + it.to_ns);
        let batches = batches_of(&moves);
        let Some(promotion) = promotion_of(&batches) else { return };
        let (order, share) = self.order_of(&batches, &there, &sent);
        let software = found.software.get_or_insert_with(SoftwareFound::default);
        software.promotion = Some(Promotion { order, ..promotion });
        software.promotion_order = Some((order, share));
    }

    /// The order that names most of the rules of each batch.
    fn order_of(
        &self,
        batches: &[Vec<Move>],
        there: &[usize],
        sent: &[(u64, usize)],
    ) -> (PromotionOrder, f64) {
        let last_use = |rule: usize, at_ns: u64| {
            let before = sent.partition_point(|(sent_ns, _)| *sent_ns <= at_ns);
            // A round has two frames for each rule at most.
            let recent = &sent[before.saturating_sub(4 * self.flows.len())..before];
            recent.iter().rfind(|(_, of)| *of == rule).map_or(0, |(sent_ns, _)| *sent_ns as i64)
        };
        let keys: [(PromotionOrder, Key<'_>); 5] = [
            (PromotionOrder::Oldest, Box::new(|rule, _| rule as i64)),
            (PromotionOrder::Newest, Box::new(|rule, _| -(rule as i64))),
            (PromotionOrder::MostUsed, Box::new(|rule, _| -i64::from(self.is_used_more(rule)))),
            (PromotionOrder::MostRecentlyUsed, Box::new(|rule, at_ns| -last_use(rule, at_ns))),
            (PromotionOrder::HighestPriority, Box::new(|rule, _| -i64::from(self.priorities[rule]))),
        ];
        let scores = keys.iter().map(|(order, key)| (*order, explained(batches, there, key)));
        // Of two that explain as much, the first: rules without differences in a key are chosen by age.
        let best = scores.reduce(|best, other| if other.1 > best.1 { other } else { best });
        match best {
            Some((order, share)) if share >= EXPLAINED_MIN => (order, share),
            other => (PromotionOrder::Random, other.map_or(0.0, |(_, share)| 1.0 - share)),
        }
    }
}

/// Rules with a lower key go first, at a time.
type Key<'a> = Box<dyn Fn(usize, u64) -> i64 + 'a>;

/// A rule that moved to hardware between two looks.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Move {
    rule: usize,
    from_ns: u64,
    to_ns: u64,
}

/// Which share of the moved rules an order names, if `there` were in software at first.
fn explained(batches: &[Vec<Move>], there: &[usize], key: &Key<'_>) -> f64 {
    let mut left = there.to_vec();
    let (mut right, mut all) = (0, 0);
    for batch in batches {
        let at_ns = batch.iter().map(|it| it.from_ns).max().unwrap_or(0);
        left.sort_by_key(|rule| (key(*rule, at_ns), *rule));
        let predicted = &left[..batch.len().min(left.len())];
        // A batch of all that are left says nothing.
        if batch.len() < left.len() {
            right += batch.iter().filter(|it| predicted.contains(&it.rule)).count();
            all += batch.len();
        }
        left.retain(|rule| batch.iter().all(|it| it.rule != *rule));
    }
    if all == 0 { 0.0 } else { right as f64 / all as f64 }
}

fn is_fast(outcome: &Outcome, found: &Findings) -> Option<bool> {
    Some(!found.is_software(outcome.transit_ns()?))
}

/// When a rule became fast and stayed so. (time, whether it was fast)
fn move_of(rule: usize, looks: &[(u64, bool)]) -> Option<Move> {
    let last_slow = looks.iter().rposition(|(_, is_fast)| !is_fast)?;
    let (to_ns, _) = looks.get(last_slow + 1)?;
    Some(Move { rule, from_ns: looks[last_slow].0, to_ns: *to_ns })
}

/// Moves whose times can be the same moment belong together.
fn batches_of(moves: &[Move]) -> Vec<Vec<Move>> {
    let mut batches: Vec<Vec<Move>> = Vec::new();
    let (mut from, mut to) = (0, 0);
    for it in moves {
        // The rules of a batch are written one after another.
        let fits = batches.last().is_some() && it.from_ns.max(from) < it.to_ns.min(to) + WRITES_NS;
        if fits {
            (from, to) = (it.from_ns.max(from), it.to_ns.min(to));
            if let Some(batch) = batches.last_mut() {
                batch.push(*it);
            }
        } else {
            (from, to) = (it.from_ns, it.to_ns);
            batches.push(vec![*it]);
        }
    }
    batches
}

/// Period and batch. The last batch may have had fewer rules left.
fn promotion_of(batches: &[Vec<Move>]) -> Option<Promotion> {
    let middle = |batch: &Vec<Move>| {
        let from = batch.iter().map(|it| it.from_ns).max()?;
        let to = batch.iter().map(|it| it.to_ns).min()?;
        Some((from + to) as f64 / 2.0)
    };
    let middles: Vec<f64> = batches.iter().filter_map(middle).collect();
    let gaps: Vec<f64> = middles.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let typical = crate::samples::median(&gaps)?;
    // A period in which nothing moved counts, too.
    let mut number = 0.0;
    let points = middles.iter().zip(std::iter::once(&0.0).chain(&gaps)).map(|(middle, gap)| {
        number += (gap / typical).round();
        (number, *middle)
    });
    let period_ns = slope(&points.collect::<Vec<_>>())?;
    let sizes: Vec<f64> = batches.iter().take(batches.len() - 1).map(|batch| batch.len() as f64).collect();
    let batch_rules = crate::samples::median(&sizes)?.max(1.0) as u32;
    let period_us = (period_ns / 1e3).max(PROMOTION_PERIOD_MIN_US);
    let batch_rules = batch_rules.min(PROMOTION_BATCH_MAX);
    Some(Promotion { period_us, batch_rules, order: PromotionOrder::Random })
}

fn note_transits(record: &Record, found: &mut Findings) {
    let transits = record.outcomes.iter().filter_map(Outcome::transit_ns);
    let slow: Vec<f64> = transits.filter(|transit| found.is_software(*transit)).map(us).collect();
    found.software.get_or_insert_with(SoftwareFound::default).transit_us.extend(slow);
}

/// The time between two frames that came out of a train slowly, if that is longer than between two that went in. Software forwards one
/// after another, whatever their rules.
fn arrivals(record: &Record, every_ns: u64, found: &Findings) -> Option<f64> {
    let slow = record.outcomes.iter().filter(|outcome| is_fast(outcome, found) == Some(false));
    let mut came: Vec<u64> = slow.filter_map(|outcome| Some(outcome.frame?.at_ns)).collect();
    came.sort_unstable();
    let each_ns = interval_ns(came.get(came.len() / 8..)?)?;
    (each_ns > 1.1 * every_ns as f64).then_some(each_ns)
}

/// The phase, for a switch whose rules go to software when they come too fast. Its first rules show promotions, which begin at once; its
/// second ones the rates.
#[derive(Debug, Default)]
pub struct Software {
    bursts: usize,
    flows: Vec<TestFlow>,
    look: Option<SoftwareLook>,
}

impl Phase for Software {
    fn title(&self) -> String {
        "measuring the software table".to_owned()
    }

    fn measures(&self) -> &'static [&'static str] {
        &["software.forward", "software.promotion"]
    }

    fn next(&mut self, last: Option<&Record>, options: &Options, found: &mut Findings) -> Next {
        if found.software.as_ref().is_none_or(|software| software.above.is_none()) {
            return Next::Done;
        }
        if let Some(look) = &mut self.look {
            if let Some(script) = look.next(last, options, found) {
                return Next::Run(script);
            }
            self.look = None;
            return if self.bursts < 2 { self.burst(options, found) } else { Next::Done };
        }
        match last {
            Some(record) if self.bursts > 0 => self.begin_look(record, options, found),
            _ => self.burst(options, found),
        }
    }
}

impl Software {
    fn begin_look(&mut self, record: &Record, options: &Options, found: &mut Findings) -> Next {
        let adds = after_removal(record);
        let slow = |add: &Outcome| add.transit_ns().filter(|it| found.is_software(*it));
        let chosen =
            self.flows.iter().enumerate().zip(adds).filter_map(|(rule, add)| Some((rule, slow(add)?)));
        let chosen: Vec<((usize, &TestFlow), u64)> = chosen.collect();
        if chosen.len() < 6 {
            found.leave_out("software.forward", "few rules of a burst went to software");
            return Next::Done;
        }
        let flows = chosen.iter().map(|((_, flow), _)| **flow).collect();
        let priorities = chosen.iter().map(|((index, _), _)| priority(*index)).collect();
        let each_ns = chosen.iter().map(|(_, transit)| *transit).min().unwrap_or(0);
        let mut look = match self.bursts {
            1 => SoftwareLook::promotions(flows, priorities, each_ns),
            _ => SoftwareLook::rates(flows),
        };
        let first = look.next(None, options, found);
        self.look = Some(look);
        first.map_or(Next::Done, Next::Run)
    }

    /// Rules at once to an empty table, after a silence in which a burst becomes possible again.
    fn burst(&mut self, options: &Options, found: &mut Findings) -> Next {
        self.bursts += 1;
        self.flows = found.take_flows(Width::Ethernet, BURST);
        let frames = crate::engine::watch(options, LOOK_BYTES);
        let rule = RuleForm::to(options.ports[1].port);
        let adds = self.flows.iter().enumerate().map(|(index, flow)| {
            let when = if index == 0 { When::After(SECOND_NS) } else { When::At(0) };
            Step::watched(when, rule.with_priority(priority(index)).add_for(*flow), *flow, frames)
        });
        Next::Run(Script::new(behind_removal(adds, options, found), 10 * SECOND_NS))
    }
}

fn priority(index: usize) -> u16 {
    super::orders::priority(crate::findings::Order::Random, index, BURST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_and_their_period_are_found_between_looks() {
        // Looks each 40 ms at their own phase; three rules move each 250 ms.
        let moves = (0..30usize).map(|rule| {
            let at = (rule / 3 + 1) as u64 * 250_000_000;
            let phase = rule as u64 * 1_300_000 % 40_000_000;
            let from_ns = (at - phase) / 40_000_000 * 40_000_000 + phase;
            Move { rule, from_ns, to_ns: from_ns + 40_000_000 }
        });
        let mut moves: Vec<Move> = moves.collect();
        moves.sort_by_key(|it| it.from_ns + it.to_ns);
        let promotion = promotion_of(&batches_of(&moves)).unwrap();
        assert_eq!(promotion.batch_rules, 3);
        assert!((promotion.period_us / 250e3 - 1.0).abs() < 0.03, "{promotion:?}");
    }

    #[test]
    fn a_round_looks_at_each_rule() {
        for count in [6, 7, 35, 40] {
            let flows = (0..count).map(|number| TestFlow { width: Width::Ethernet, number }).collect();
            let mut turn = SoftwareLook::rates(flows).turn();
            turn.sort_unstable();
            turn.dedup();
            assert_eq!(turn.len(), count as usize);
        }
    }

    #[test]
    fn a_rule_that_stays_slow_has_not_moved() {
        assert_eq!(move_of(0, &[(1, false), (2, false)]), None);
        assert_eq!(move_of(0, &[(1, true), (2, true)]), None);
        assert_eq!(
            move_of(0, &[(1, false), (5, true), (6, true)]),
            Some(Move { rule: 0, from_ns: 1, to_ns: 5 })
        );
    }
}
