//! A phase: which rule makes place when the table is full.
//!
//! ```text
//!   fill the table; frames so that age, last use, uses and priority put the rules into different orders
//!   some more rules ──> which of the old ones are gone? ──> the order that names most of them
//! ```
//!
//! In: which rules still forward after some more were added. Out: the order by which victims are chosen, and the share of the victims that it
//! explains.

use super::cabling::FRAME_BYTES;
use super::orders::{shuffled, shuffled_again};
use super::table::{look_at, window};
use crate::findings::Findings;
use crate::flows::{TestFlow, Width};
use crate::options::Options;
use crate::phase::{Next, Phase};
use crate::rules::{RuleForm, request};
use crate::samples::ns;
use crate::script::{MILLISECOND_NS, Outcome, Record, SECOND_NS, Script, Step, Until, When};
use openflow::message::RequestBody;
use profile::{Victim, WhenFull};

/// How many of the rules make place.
const SHARE: usize = 8;
/// The largest table whose victims are looked for.
const RULES_MAX: usize = 8192;
/// Frames for the most used rule on top of the least used.
const USES: usize = 4;
/// An order that explains fewer is none.
const EXPLAINED_MIN: f64 = 0.7;
/// Priorities lie above this.
const LOWEST: u16 = 1000;
const WINDOW: usize = 8;

const CANDIDATES: [Victim; 8] = [
    Victim::Oldest,
    Victim::Newest,
    Victim::LeastRecentlyUsed,
    Victim::MostRecentlyUsed,
    Victim::LeastUsed,
    Victim::MostUsed,
    Victim::LowestPriority,
    Victim::HighestPriority,
];

/// What is known of a rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Known {
    added: u64,
    used: u64,
    packets: u64,
    priority: u16,
}

/// The phase.
#[derive(Debug, Default)]
pub struct Victims {
    state: State,
    flows: Vec<TestFlow>,
    rules: Vec<Known>,
    added: Vec<Known>,
}

#[derive(Clone, Copy, Debug, Default)]
enum State {
    #[default]
    Start,
    Fill,
    Use,
    More,
    Look,
}

impl Phase for Victims {
    fn title(&self) -> String {
        "finding which rule makes place".to_owned()
    }

    fn measures(&self) -> &'static [&'static str] {
        &["hardware.evict"]
    }

    fn next(&mut self, last: Option<&Record>, options: &Options, found: &mut Findings) -> Next {
        match (self.state, last) {
            (State::Fill, Some(record)) => {
                self.note_fill(record);
                self.state = State::Use;
                Next::Run(self.uses(options))
            }
            (State::Use, Some(record)) => {
                self.note_uses(record);
                self.state = State::More;
                Next::Run(self.more(options, found))
            }
            (State::More, Some(record)) => {
                let new = record.outcomes.iter().take(self.rules.len() / SHARE).filter_map(|add| add.sent_ns);
                self.added = new
                    .map(|at| Known { added: at, used: at, packets: 0, priority: self.middle() })
                    .collect();
                self.state = State::Look;
                Next::Run(look_at(self.flows.iter().copied(), options, found))
            }
            (State::Look, Some(record)) => {
                let is_gone =
                    |outcome: &Outcome| outcome.transit_ns().is_none_or(|transit| found.is_software(transit));
                let gone: Vec<usize> =
                    (0..self.flows.len()).filter(|index| is_gone(&record.outcomes[*index])).collect();
                self.conclude(&gone, found);
                Next::Done
            }
            _ => self.start(options, found),
        }
    }
}

impl Victims {
    fn start(&mut self, options: &Options, found: &mut Findings) -> Next {
        if found.when_full != Some(WhenFull::Evict) {
            return Next::Done;
        }
        let size = found.capacities.iter().find(|(width, _)| *width == Width::Ethernet);
        let size = size.map_or(0, |(_, capacity)| capacity.entries as usize);
        // In 1.0, the rule that drops the rest has a place of its own.
        let size = size.saturating_sub(usize::from(found.version == openflow::Version::V1_0));
        if !(SHARE..=RULES_MAX).contains(&size) {
            found.leave_out("hardware.evict", format!("a table of {size} rules"));
            return Next::Done;
        }
        self.state = State::Fill;
        self.flows = found.take_flows(Width::Ethernet, size);
        let priority = |index| LOWEST + shuffled(index, size) as u16;
        self.rules = (0..size).map(|index| Known { priority: priority(index), ..Known::default() }).collect();
        let frames = crate::engine::watch(options, FRAME_BYTES);
        let rule = RuleForm::to(options.ports[1].port).evictable();
        let steps = self.flows.iter().zip(&self.rules).map(|(flow, known)| {
            Step::watched(When::After(0), rule.with_priority(known.priority).add_for(*flow), *flow, frames)
        });
        let patience_ns = 2 * SECOND_NS + 2 * ns(found.latest_us());
        Next::Run(Script::new(steps.collect(), patience_ns).with_window(window(found)))
    }

    fn middle(&self) -> u16 {
        LOWEST + (self.rules.len() / 2) as u16
    }

    fn note_fill(&mut self, record: &Record) {
        for (known, outcome) in self.rules.iter_mut().zip(&record.outcomes) {
            known.added = outcome.sent_ns.unwrap_or(0);
            known.used = outcome.frame.map_or(known.added, |frame| frame.at_ns);
            known.packets = u64::from(outcome.frames.1);
        }
    }

    /// Which rule each frame is for: some more for some rules, then one for each in another order.
    fn plan_of_uses(&self) -> Vec<usize> {
        let size = self.rules.len();
        let place = |index: usize| shuffled_again(index, size);
        // By the index in reverse, so that uses have another order than age, priority and the last use.
        let more = (0..USES)
            .flat_map(|round| (0..size).filter(move |index| (index / 3 + index) % (USES + 1) > round));
        more.chain((0..size).map(place)).collect()
    }

    /// Not at the same moment, or no frame would be the last.
    fn uses(&self, options: &Options) -> Script {
        let into = options.ports[0].port;
        let steps = self.plan_of_uses().into_iter().map(|index| {
            Step::frame(
                When::After(options.watch_tick_ns),
                self.flows[index],
                into,
                FRAME_BYTES,
                Until::Frame,
            )
        });
        Script::new(steps.collect(), 100 * MILLISECOND_NS).with_window(WINDOW)
    }

    fn note_uses(&mut self, record: &Record) {
        for (index, outcome) in self.plan_of_uses().into_iter().zip(&record.outcomes) {
            let known = &mut self.rules[index];
            known.packets += u64::from(outcome.frames.1);
            known.used = known.used.max(outcome.sent_ns.unwrap_or(0));
        }
    }

    /// Some more rules. No frame looks at them, so that they are used by nothing.
    fn more(&self, options: &Options, found: &mut Findings) -> Script {
        let count = self.rules.len() / SHARE;
        let rule = RuleForm::to(options.ports[1].port).evictable().with_priority(self.middle());
        let flows = found.take_flows(Width::Ethernet, count);
        let adds = flows.into_iter().map(|flow| Step::send(When::After(MILLISECOND_NS), rule.add_for(flow)));
        // The description is answered when the CPU has carried out the adds, whatever barriers are.
        let end = [Step::barrier(When::After(0)), Step::ask(When::After(0), request(RequestBody::Desc))];
        let settle_ns = ns(found.latest_us()) + count as u64 * ns(found.add_us()) + 100 * MILLISECOND_NS;
        Script::new(adds.chain(end).collect(), 60 * SECOND_NS).with_settle(settle_ns)
    }

    fn conclude(&self, gone: &[usize], found: &mut Findings) {
        if gone.is_empty() {
            // The newest makes place each time: of the old rules, at most one is gone.
            found.victim = Some((Victim::Newest, 1.0));
            return;
        }
        let scores = CANDIDATES.map(|victim| (score(&self.victims_by(victim), gone), victim));
        let best = scores.into_iter().max_by(|one, two| one.0.total_cmp(&two.0));
        found.victim = match best {
            Some((share, victim)) if share >= EXPLAINED_MIN => Some((victim, share)),
            other => Some((Victim::Random, other.map_or(0.0, |(share, _)| 1.0 - share))),
        };
    }

    /// The old rules that would be gone if victims were chosen like this.
    fn victims_by(&self, victim: Victim) -> Vec<usize> {
        let mut there: Vec<(usize, Known)> = self.rules.iter().copied().enumerate().collect();
        let mut gone = Vec::new();
        for (number, new) in self.added.iter().enumerate() {
            let first = (0..there.len()).min_by_key(|at| (key(victim, &there[*at].1), there[*at].1.added));
            if let Some(first) = first {
                let (index, _) = there.remove(first);
                gone.extend((index < self.rules.len()).then_some(index));
            }
            there.push((self.rules.len() + number, *new));
        }
        gone
    }
}

/// The rule with the lowest key makes place.
fn key(victim: Victim, of: &Known) -> u64 {
    match victim {
        Victim::Oldest => of.added,
        Victim::Newest => u64::MAX - of.added,
        Victim::LeastRecentlyUsed => of.used,
        Victim::MostRecentlyUsed => u64::MAX - of.used,
        Victim::LeastUsed => of.packets,
        Victim::MostUsed => u64::MAX - of.packets,
        Victim::LowestPriority => u64::from(of.priority),
        Victim::HighestPriority => u64::MAX - u64::from(of.priority),
        Victim::Random => 0,
    }
}

/// Which share of both sets they have in common.
fn score(predicted: &[usize], gone: &[usize]) -> f64 {
    let both = predicted.iter().filter(|index| gone.contains(index)).count();
    both as f64 / predicted.len().max(gone.len()).max(1) as f64
}
