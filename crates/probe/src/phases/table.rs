//! A phase: how many rules of one kind of match the hardware has, and what happens to the next one.
//!
//! ```text
//!   chunk of adds, each watched ──┬── an error ──────────────> refuses
//!          ▲                      ├── no frame, no error ────> ignores
//!          │                      ├── slow at first sight ───> spills
//!          └── all forward <──────┴── frames to all rules: one no longer passes, or is slow ──> evicts
//! ```
//!
//! The data plane decides, not the switch's own claims. In: first frames of watched rules, and frames to all of them. Out: the size and the
//! policy. The times of first frames also give the cost of adds of the same priority.

use super::cabling::FRAME_BYTES;
use super::software::SoftwareLook;
use crate::findings::{Findings, Order, SoftwareFound};
use crate::flows::{TestFlow, Width};
use crate::options::Options;
use crate::phase::{Next, Phase};
use crate::rules::{self, RuleForm};
use crate::samples::{interval_ns, ns};
use crate::script::{MILLISECOND_NS, Outcome, Record, SECOND_NS, Script, Step, Until, When};
use profile::{Capacity, WhenFull};
use std::collections::BTreeSet;

/// Adds in the first chunk.
const CHUNK_MIN: usize = 64;
/// Adds in a chunk at most, so that a table that is found full in the middle costs little.
const CHUNK_MAX: usize = 4096;
/// Rules that do not arrive in hardware before a chunk is evaluated.
const STOP_AFTER: usize = 24;
/// How much the table grows from one look at all rules to the next.
const LOOK_GROWTH: f64 = 1.3;
/// How long a rule that does not forward may be late. Rarely, rules of the HP 5406zl take 22 s.
const LATEST_NS: u64 = 25 * SECOND_NS;
/// Rules that leave hardware to make room for those in software.
const ROOM: usize = 32;
/// Rules in software whose promotion is followed.
const SOFTWARE_MAX: usize = 40;
/// How often a rule that did not forward is looked at again: a lost or slow frame is no lost rule.
const LOOKS: u32 = 4;
/// Open steps of a look at all rules.
const LOOK_WINDOW: usize = 16;
/// Before the first repeated look. Each further one waits twice as long, up to eight times. Only on a machine that may be busy.
const PAUSE_NS: u64 = 50 * MILLISECOND_NS;
/// Looks until the same rules are there twice: a switch may still forward by what it has cached of rules that are gone.
const SETTLING_MAX: u32 = 5;
/// Looks at rules that seem to be in software, while rules in hardware seem to be there, too.
const CONFIRMATIONS_MAX: u32 = 6;
/// Rules in hardware that are looked at with them.
const CONTROLS: usize = 16;

/// Where a rule was at last sight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Hardware,
    Software,
    Refused,
    Nowhere,
}

/// The phase, for one kind of match.
#[derive(Debug)]
pub struct Table {
    width: Width,
    state: State,
    rules: Vec<(TestFlow, Place)>,
    chunk: Vec<TestFlow>,
    /// Rules whose frames did not come back at the last look.
    missing: Vec<usize>,
    rules_at_look: usize,
    /// How many rules there were behind each part of a filling, and its point: (rules, time for one more in µs).
    cost: Vec<(usize, (f64, f64))>,
    is_paced: bool,
    is_full: bool,
    software: Option<SoftwareLook>,
    took_ns: u64,
    /// When the first of its scripts began.
    began_ns: Option<u64>,
    has_waited: bool,
    /// Repeated looks have found rules in software.
    spills: bool,
    /// Rules that were slow and counted as hardware, because few rules were slow. If they are slow again, they were in software from the beginning.
    forgiven: BTreeSet<usize>,
    /// A rule that forwarded is gone.
    evicts: bool,
    /// How many rules were in hardware at the last look, and how many looks there were since rules were gone.
    settled: (usize, u32),
    /// OpenFlow 1.0: the rule that drops the rest is gone.
    has_no_rest: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Start,
    Chunk,
    Look {
        is_last: bool,
    },
    LookAgain {
        is_last: bool,
        times: u32,
    },
    /// Whether rules that were slow at first sight are in software.
    Confirm {
        times: u32,
        controls: usize,
    },
    /// Whether rules that did not forward are only late.
    Late,
    /// OpenFlow 1.0: whether the rule that drops the rest took a place.
    Rest,
    /// Rules in software are measured, after the size is known.
    Software,
    MakeRoom,
    Promotions,
}

impl Default for Table {
    fn default() -> Self {
        Table::of(Width::Ethernet)
    }
}

impl Table {
    /// The phase for this kind of match.
    pub fn of(width: Width) -> Self {
        Table {
            width,
            state: State::Start,
            rules: Vec::new(),
            chunk: Vec::new(),
            missing: Vec::new(),
            rules_at_look: 0,
            cost: Vec::new(),
            is_paced: false,
            is_full: false,
            software: None,
            took_ns: 0,
            began_ns: None,
            has_waited: false,
            spills: false,
            forgiven: BTreeSet::new(),
            evicts: false,
            settled: (0, 0),
            has_no_rest: false,
        }
    }

    fn count(&self, place: Place) -> usize {
        self.rules.iter().filter(|(_, at)| *at == place).count()
    }

    fn next_chunk(&mut self, options: &Options, found: &mut Findings) -> Next {
        let accepted = self.rules.len();
        let left = (options.table_max as usize).saturating_sub(accepted);
        let size = (accepted / 2).clamp(CHUNK_MIN, CHUNK_MAX).min(left);
        self.chunk = found.take_flows(self.width, size);
        self.state = State::Chunk;
        let pace_ns =
            found.software.as_ref().and_then(|software| software.above).map(|(rate, _)| 1.03e9 / rate);
        self.is_paced = pace_ns.is_some();
        let rule = RuleForm::to(options.ports[1].port).evictable();
        let frames = crate::engine::watch(options, FRAME_BYTES);
        let steps = self.chunk.iter().zip(0u32..).map(|(flow, index)| {
            let when = pace_ns.map_or(When::After(0), |pace| When::At((f64::from(index) * pace) as u64));
            Step::watched(when, rule.add_for(*flow), *flow, frames)
        });
        let late_ns = ns(found.latest_us());
        let patience_ns = 2 * SECOND_NS + 2 * late_ns + 64 * ns(found.add_us());
        let script = Script::new(steps.collect(), patience_ns).with_window(window(found));
        Next::Run(script.stop_after(STOP_AFTER))
    }

    /// Notes where the rules of a chunk went. Returns whether the table is full.
    fn on_chunk(&mut self, record: &Record, found: &mut Findings) -> bool {
        let before = self.rules.len();
        found.filling_ns = found.filling_ns.max(self.took_ns + record.ended_ns - record.started_ns);
        self.took_ns += record.ended_ns - record.started_ns;
        let started =
            record.outcomes.iter().zip(&self.chunk).filter(|(outcome, _)| outcome.sent_ns.is_some());
        let places: Vec<(TestFlow, Place)> =
            started.map(|(outcome, flow)| (*flow, place_of(outcome, found))).collect();
        if !self.is_paced {
            self.cost.extend(cost_points(before, &record.outcomes, &places, found));
        }
        self.rules.extend(places);
        // A few rules beyond the rate go to software although there is room: those do not count as a full table.
        self.count(Place::Refused) > 0 || self.count(Place::Nowhere) > 0 || self.spilled() >= STOP_AFTER
    }

    /// Another look at the last rules, if they seem to be in software: a machine that was busy for a moment makes all of them slow. On
    /// such a machine, rules that are in hardware are looked at, too.
    fn confirm(&mut self, times: u32, options: &Options, found: &Findings) -> Next {
        let controls = self.rules.iter().filter(|(_, place)| *place == Place::Hardware);
        let controls = controls.take(if options.is_real() { CONTROLS } else { 0 });
        let mut flows: Vec<TestFlow> = controls.map(|(flow, _)| *flow).collect();
        self.state = State::Confirm { times, controls: flows.len() };
        flows.extend(self.rules.iter().rev().take(self.spilled()).rev().map(|(flow, _)| *flow));
        Next::Run(look_again_at(flows.into_iter(), times, options, found))
    }

    /// Returns whether the table is full. None: this machine is too busy to tell.
    fn on_confirm(&mut self, record: &Record, controls: usize, found: &Findings) -> Option<bool> {
        let (controls, outcomes) = record.outcomes.split_at(controls.min(record.outcomes.len()));
        let slow = controls.iter().filter(|outcome| place_of(outcome, found) != Place::Hardware).count();
        let first = self.rules.len().saturating_sub(outcomes.len());
        for ((_, place), outcome) in self.rules[first..].iter_mut().zip(outcomes) {
            if place_of(outcome, found) == Place::Hardware {
                *place = Place::Hardware;
            }
        }
        let spills = self.spilled() >= STOP_AFTER / 2;
        (!spills || slow <= controls.len() / 4).then_some(spills)
    }

    fn after_confirm(&mut self, record: &Record, options: &Options, found: &mut Findings) -> Next {
        let State::Confirm { times, controls } = self.state else { return Next::Done };
        let told = self.on_confirm(record, controls, found);
        // One look is enough where nothing else is slow.
        let is_sure = told == Some(false) || !options.is_real() || times as usize >= options.repetitions;
        match told {
            Some(is_full) if is_sure => {
                self.spills = is_full;
                self.after_chunk(is_full, options, found)
            }
            None if times >= CONFIRMATIONS_MAX => self.after_chunk(false, options, found),
            _ => self.confirm(times + 1, options, found),
        }
    }

    /// Looks again at rules that did not forward, after a time in which even the latest known rules arrive.
    fn wait(&mut self, options: &Options, found: &Findings) -> Next {
        self.state = State::Late;
        let nowhere = self.rules.iter().filter(|(_, place)| *place == Place::Nowhere).map(|(flow, _)| *flow);
        let mut script = look_at(nowhere, options, found);
        if let Some(first) = script.steps.first_mut() {
            first.when = When::After(LATEST_NS);
        }
        Next::Run(script)
    }

    /// Returns whether the rules are really nowhere.
    fn on_wait(&mut self, record: &Record, found: &Findings) -> bool {
        let nowhere = self.rules.iter_mut().filter(|(_, place)| *place == Place::Nowhere);
        for ((_, place), outcome) in nowhere.zip(&record.outcomes) {
            *place = place_of(outcome, found);
        }
        self.has_waited = self.count(Place::Nowhere) > 0;
        self.has_waited
    }

    /// How many of the last rules in a row are in software.
    fn spilled(&self) -> usize {
        self.rules.iter().rev().take_while(|(_, place)| *place == Place::Software).count()
    }

    /// The rules that a look is at: those in hardware, and those that may be late. Without the rule that drops the rest, the others would
    /// cost a packet-in each.
    fn looked_at(&self) -> Vec<usize> {
        let is_looked_at = |index: &usize| match self.rules[*index].1 {
            Place::Hardware => true,
            Place::Nowhere => !self.has_no_rest,
            Place::Software | Place::Refused => false,
        };
        (0..self.rules.len()).filter(is_looked_at).collect()
    }

    /// A frame to each rule that was in hardware, or nowhere.
    fn look(&mut self, is_last: bool, options: &Options, found: &Findings) -> Next {
        self.state = State::Look { is_last };
        self.rules_at_look = self.rules.len();
        let flows = self.looked_at().into_iter().map(|index| self.rules[index].0);
        let times = if self.evicts { self.settled.1 } else { 0 };
        Next::Run(look_again_at(flows, times, options, found))
    }

    fn on_look(
        &mut self,
        record: &Record,
        is_last: bool,
        options: &Options,
        found: &Findings,
    ) -> Option<Next> {
        self.missing.clear();
        for (index, outcome) in self.looked_at().into_iter().zip(&record.outcomes) {
            let passes = place_of(outcome, found) == Place::Hardware;
            match self.rules[index].1 {
                Place::Nowhere if passes => self.rules[index].1 = Place::Hardware,
                Place::Hardware if !passes => self.missing.push(index),
                _ => {}
            }
        }
        if self.missing.is_empty() {
            return None;
        }
        // A lost frame is no lost rule.
        Some(self.look_again(is_last, 1, options, found))
    }

    fn look_again(&mut self, is_last: bool, times: u32, options: &Options, found: &Findings) -> Next {
        self.state = State::LookAgain { is_last, times };
        let flows = self.missing.iter().map(|index| self.rules[*index].0);
        Next::Run(look_again_at(flows, times, options, found))
    }

    fn on_look_again(&mut self, record: &Record, found: &Findings) {
        for (index, outcome) in self.missing.iter().zip(&record.outcomes) {
            self.rules[*index].1 = place_of(outcome, found);
        }
        self.missing.retain(|index| self.rules[*index].1 != Place::Hardware);
    }

    /// Tries one more rule without the one that drops the rest.
    fn without_rest(&mut self, options: &Options, found: &mut Findings) -> Next {
        (self.state, self.has_no_rest) = (State::Rest, true);
        let flow = found.take_flows(self.width, 1)[0];
        self.chunk = vec![flow];
        let rule = RuleForm::to(options.ports[1].port).add_for(flow);
        let watched = Step::watched(When::After(0), rule, flow, crate::engine::watch(options, FRAME_BYTES));
        let steps = vec![Step::send(When::At(0), rules::delete_rest()), watched];
        Next::Run(Script::new(steps, 2 * SECOND_NS + 2 * ns(found.latest_us())))
    }

    fn conclude(&mut self, options: &Options, found: &mut Findings) -> Next {
        let name = format!("hardware table, {}", self.width.text());
        let in_hardware = self.count(Place::Hardware);
        if in_hardware == 0 {
            found.leave_out(&name, "the switch refuses the match, or does not forward by it");
            return Next::Done;
        }
        let when_full = if self.evicts {
            Some(WhenFull::Evict)
        } else if self.count(Place::Refused) > 0 {
            Some(WhenFull::Refuse)
        } else if self.count(Place::Nowhere) > 0 {
            Some(WhenFull::Ignore)
        } else {
            self.is_full.then_some(WhenFull::Spill)
        };
        let fields = if self.width == Width::Ethernet { Vec::new() } else { self.width.fields().to_vec() };
        let entries = u32::try_from(in_hardware).unwrap_or(u32::MAX);
        let at_least = when_full.is_none();
        let capacity = Capacity { fields, exact: false, entries, at_least, memory: 0 };
        found.capacities.push((self.width, capacity));
        found.when_full = found.when_full.or(when_full);
        if when_full == Some(WhenFull::Spill) {
            found.software.get_or_insert_with(SoftwareFound::default);
        }
        if self.width == Width::Ethernet && !self.cost.is_empty() {
            // A full table that makes place costs more, and so do the packets that lost their rule.
            let cost = self.cost.iter().filter(|(end, _)| *end <= in_hardware).map(|(_, point)| *point);
            let cost: Vec<(f64, f64)> = cost.collect();
            found.orders.extend((!cost.is_empty()).then_some((Order::Same, cost)));
        }
        let knows_software = found.software.as_ref().is_none_or(|software| !software.transit_us.is_empty());
        if knows_software { Next::Done } else { self.look_at_software(None, options, found) }
    }

    /// Removes some rules from hardware, so that rules in software can move there.
    fn make_room(&mut self, options: &Options) -> Next {
        self.state = State::MakeRoom;
        let rule = RuleForm::to(options.ports[1].port);
        let hardware = self.rules.iter().filter(|(_, place)| *place == Place::Hardware).take(ROOM);
        // Rules that are not followed would move in place of others.
        let software = self.rules.iter().filter(|(_, place)| *place == Place::Software).skip(SOFTWARE_MAX);
        let deletes = software.chain(hardware);
        let deletes = deletes.map(|(flow, _)| Step::send(When::After(0), rule.delete_for(*flow)));
        Next::Run(Script::new(deletes.chain([Step::barrier(When::After(0))]).collect(), 30 * SECOND_NS))
    }

    /// The rates of the software path while hardware is full, so that nothing moves there. Then room is made, and promotions are followed.
    fn look_at_software(&mut self, last: Option<&Record>, options: &Options, found: &mut Findings) -> Next {
        self.state = State::Software;
        let flows = self.in_software();
        let look = self.software.get_or_insert_with(|| SoftwareLook::rates(flows));
        match look.next(last, options, found) {
            Some(script) => Next::Run(script),
            None => self.make_room(options),
        }
    }

    fn follow_promotions(&mut self, last: Option<&Record>, options: &Options, found: &mut Findings) -> Next {
        if self.state != State::Promotions {
            self.state = State::Promotions;
            let flows = self.in_software();
            let priorities = vec![rules::PRIORITY; flows.len()];
            self.software = Some(SoftwareLook::promotions(flows, priorities, 0));
        }
        let next = self.software.as_mut().and_then(|look| look.next(last, options, found));
        next.map_or(Next::Done, Next::Run)
    }

    fn in_software(&self) -> Vec<TestFlow> {
        let software =
            self.rules.iter().filter(|(_, place)| *place == Place::Software).map(|(flow, _)| *flow);
        software.take(SOFTWARE_MAX).collect()
    }
}

impl Phase for Table {
    fn title(&self) -> String {
        format!("filling the table with rules for {}", self.width.text())
    }

    fn measures(&self) -> &'static [&'static str] {
        match self.width {
            Width::Ethernet => &["hardware table, Ethernet"],
            Width::Ipv4 => &["hardware table, IPv4"],
            Width::Ipv6 => &["hardware table, IPv6"],
        }
    }

    fn takes_ns(&self, found: &Findings) -> u64 {
        // The first filling has no time limit: others take as long as it did, with all its looks and waits.
        if self.width == Width::Ethernet { 0 } else { found.table_ns + found.table_ns / 20 + SECOND_NS }
    }

    fn next(&mut self, last: Option<&Record>, options: &Options, found: &mut Findings) -> Next {
        if let Some(record) = last {
            let began_ns = *self.began_ns.get_or_insert(record.started_ns);
            found.table_ns = found.table_ns.max(record.ended_ns - began_ns);
        }
        match (self.state, last) {
            (State::Chunk, Some(record)) => {
                let is_full = self.on_chunk(record, found);
                if self.spilled() >= STOP_AFTER {
                    return self.confirm(1, options, found);
                }
                self.after_chunk(is_full, options, found)
            }
            (State::Confirm { .. }, Some(record)) => self.after_confirm(record, options, found),
            (State::Look { is_last }, Some(record)) => match self.on_look(record, is_last, options, found) {
                Some(next) => next,
                None => self.go_on(is_last, options, found),
            },
            (State::LookAgain { is_last, times }, Some(record)) => {
                self.on_look_again(record, found);
                match self.missing.is_empty() || times >= LOOKS {
                    true => self.go_on(is_last, options, found),
                    false => self.look_again(is_last, times + 1, options, found),
                }
            }
            (State::Late, Some(record)) => {
                let is_full = self.on_wait(record, found);
                if is_full { self.look(true, options, found) } else { self.next_chunk(options, found) }
            }
            (State::MakeRoom, _) => self.follow_promotions(None, options, found),
            (State::Promotions, Some(record)) => self.follow_promotions(Some(record), options, found),
            (State::Software, Some(record)) => self.look_at_software(Some(record), options, found),
            (State::Rest, Some(record)) => {
                let place = record.outcomes.last().map_or(Place::Refused, |outcome| place_of(outcome, found));
                self.rules.push((self.chunk[0], place));
                // Where rules make others go, only a look tells whether one went for this one.
                if self.evicts { self.look(true, options, found) } else { self.conclude(options, found) }
            }
            _ => self.next_chunk(options, found),
        }
    }
}

impl Table {
    fn after_chunk(&mut self, is_full: bool, options: &Options, found: &mut Findings) -> Next {
        let is_last = is_full || self.rules.len() >= options.table_max as usize;
        let looks = is_last || self.rules.len() as f64 >= self.rules_at_look as f64 * LOOK_GROWTH;
        if looks { self.look(is_last, options, found) } else { self.next_chunk(options, found) }
    }

    /// Whether the table took a rule after one that is nowhere. A full table that ignores rules takes no later one. A table that evicts the
    /// newest rule keeps the last one. It evicted the rules before that one before a frame met them.
    fn has_newer_rules(&self) -> bool {
        let nowhere = self.rules.iter().position(|(_, place)| *place == Place::Nowhere);
        nowhere.is_some_and(|first| self.rules[first..].iter().any(|(_, place)| *place == Place::Hardware))
    }

    /// Slow rules here and there are the work of a busy machine, if the switch has no software table.
    fn forgive_slow(&mut self, found: &Findings) {
        if found.software.is_some() || self.spills {
            return;
        }
        for (index, (_, place)) in self.rules.iter_mut().enumerate() {
            if *place == Place::Software {
                *place = Place::Hardware;
                self.forgiven.insert(index);
            }
        }
        self.missing.retain(|index| self.rules[*index].1 != Place::Hardware);
    }

    fn go_on(&mut self, is_last: bool, options: &Options, found: &mut Findings) -> Next {
        self.forgive_slow(found);
        let is_refused = self.count(Place::Refused) > 0;
        let was_slow =
            |index: &usize| self.rules[*index].1 == Place::Software && self.forgiven.contains(index);
        self.evicts |= !self.missing.iter().all(was_slow) || (self.has_waited && self.has_newer_rules());
        // Rules that make others go are there at once, or never.
        if self.count(Place::Nowhere) > 0 && !is_refused && !self.evicts && !self.has_waited {
            return self.wait(options, found);
        }
        if self.is_unsettled(options) {
            return self.look(true, options, found);
        }
        if is_last || self.evicts {
            self.is_full = self.rules.len() < options.table_max as usize;
            let is_refused = self.count(Place::Refused) + self.count(Place::Nowhere) > 0;
            let is_v10 = found.version == openflow::Version::V1_0;
            let asks = is_v10 && (is_refused || self.evicts) && !self.has_no_rest;
            return if asks { self.without_rest(options, found) } else { self.conclude(options, found) };
        }
        self.next_chunk(options, found)
    }

    /// Whether other rules are there than at the look before, since some are gone.
    fn is_unsettled(&mut self, options: &Options) -> bool {
        let there = self.count(Place::Hardware);
        let (before, looks) = self.settled;
        let settles = self.evicts && options.is_real() && before != there && looks < SETTLING_MAX;
        if settles {
            self.settled = (there, looks + 1);
        }
        settles
    }
}

/// How many adds are open at once: enough that the switch never waits for the probe.
pub(super) fn window(found: &Findings) -> usize {
    let on_the_way = found.latest_us() / found.add_us().max(1.0);
    (8.0 + 2.0 * on_the_way).min(256.0) as usize
}

/// One frame to each of these rules. They do not come at once, or they would wait for each other, and seem slow.
pub(super) fn look_at(flows: impl Iterator<Item = TestFlow>, options: &Options, found: &Findings) -> Script {
    let into = options.ports[0].port;
    let gap = When::After(options.watch_tick_ns / 2);
    let steps = flows.map(|flow| Step::frame(gap, flow, into, FRAME_BYTES, Until::Frame));
    let slowest_us =
        found.software.iter().flat_map(|software| &software.transit_us).copied().fold(0.0, f64::max);
    let patience_ns = 200 * MILLISECOND_NS + 20 * ns(slowest_us);
    Script::new(steps.collect(), patience_ns).with_window(LOOK_WINDOW)
}

/// The same after a pause that grows with each repetition.
fn look_again_at(
    flows: impl Iterator<Item = TestFlow>,
    times: u32,
    options: &Options,
    found: &Findings,
) -> Script {
    let mut script = look_at(flows, options, found);
    if times > 0 && options.is_real() {
        let pause_ns = PAUSE_NS << (times.min(LOOKS) - 1);
        script.steps.iter_mut().take(1).for_each(|first| first.when = When::After(pause_ns));
    }
    script
}

fn place_of(outcome: &Outcome, found: &Findings) -> Place {
    match (outcome.error, outcome.transit_ns()) {
        (Some(_), _) => Place::Refused,
        (None, None) => Place::Nowhere,
        (None, Some(transit)) if found.is_software(transit) => Place::Software,
        (None, Some(_)) => Place::Hardware,
    }
}

/// The time for one more rule in the middle of each part of a chunk.
fn cost_points(
    before: usize,
    outcomes: &[Outcome],
    places: &[(TestFlow, Place)],
    found: &Findings,
) -> Vec<(usize, (f64, f64))> {
    let seen = outcomes.iter().zip(places).take_while(|(_, (_, place))| *place == Place::Hardware);
    let mut seen: Vec<u64> = seen.filter_map(|(outcome, _)| Some(outcome.frame?.sent_ns)).collect();
    seen.sort_unstable();
    let length = (seen.len() / 8).max(CHUNK_MIN);
    let parts = seen.chunks(length).enumerate().filter(|(_, part)| part.len() > CHUNK_MIN / 2);
    parts
        .filter_map(|(index, part)| {
            let begin = before + index * length;
            let middle = begin as f64 + part.len() as f64 / 2.0;
            Some((begin + part.len(), (middle, each_us(part, found)?)))
        })
        .collect()
}

/// The time between two rules. If rules are late by a delay of their own, a line through all times is better; otherwise their times sum
/// up, and the first and the last say most.
pub(super) fn each_us(seen: &[u64], found: &Findings) -> Option<f64> {
    let (first, last) = (seen.first()?, seen.last()?);
    if found.latest_us() > 0.0 || seen.len() < 16 {
        return Some(interval_ns(seen)? / 1e3);
    }
    Some((last - first) as f64 / (seen.len() - 1) as f64 / 1e3)
}
