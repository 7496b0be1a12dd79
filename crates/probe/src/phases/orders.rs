//! A phase: what an add costs by the order of priorities, and by how many rules there are.
//!
//! If the CPU waits for the hardware, a message behind each part of a filling is the clock. Otherwise the first frames of rules are. In:
//! answers and frames, of rules whose priorities rise, fall, or come in any order. Out: points (rules, time for one more).

use super::cabling::FRAME_BYTES;
use super::marked::{after_removal, behind_removal, body, first_after_removal, marker};
use super::table::{each_us, window};
use crate::findings::{Findings, Order, OrderCost};
use crate::flows::Width;
use crate::options::Options;
use crate::phase::{Next, Phase};
use crate::rules::RuleForm;
use crate::samples::{ns, us};
use crate::script::{Record, SECOND_NS, Script, Step, When};
use profile::MessageType;

/// Rules of a filling at least, if the table has room.
const RULES_MIN: usize = 64;
/// Rules of a filling at most: priorities have 16 bits.
const RULES_MAX: usize = 16_384;
/// Rules of all fillings with markers at least, if there is time.
const RULES_ALL: usize = 500;
/// How long all fillings take at most.
const FILLING_NS: f64 = 15e9;
/// Points of a curve.
const SEGMENTS: usize = 8;
/// The lowest priority.
const LOWEST: u16 = 1000;

/// The phase, for one order.
#[derive(Debug)]
pub struct Orders {
    order: Order,
    has_run: bool,
    /// Fillings that are left, with their rules.
    left: usize,
    count: usize,
    /// The points of each filling.
    fillings: Vec<OrderCost>,
    /// The type of the message behind each part of a filling, and its rules.
    marker: Option<(MessageType, usize)>,
}

impl Orders {
    /// The phase for this order.
    pub fn of(order: Order) -> Self {
        Orders { order, has_run: false, left: 0, count: 0, fillings: Vec::new(), marker: None }
    }
}

impl Phase for Orders {
    fn title(&self) -> String {
        format!("adding rules with {} priorities", word(self.order))
    }

    fn measures(&self) -> &'static [&'static str] {
        match self.order {
            Order::Same => &["hardware.add_us.same"],
            Order::Ascending => &["hardware.add_us.ascending"],
            Order::Descending => &["hardware.add_us.descending"],
            Order::Random => &["hardware.add_us.random"],
        }
    }

    fn takes_ns(&self, found: &Findings) -> u64 {
        // As many rules as fillings with markers have, and the pauses between them.
        let rules_ns = 1.3e3 * RULES_ALL as f64 * found.add_us();
        let is_left_out = self.is_known(found) || found.capacities.is_empty();
        if is_left_out { 0 } else { rules_ns.min(FILLING_NS) as u64 + 2 * SECOND_NS }
    }

    fn next(&mut self, last: Option<&Record>, options: &Options, found: &mut Findings) -> Next {
        if let (true, Some(record)) = (self.has_run, last) {
            let points =
                if self.marker.is_some() { self.marked(record, found) } else { points(record, found) };
            self.fillings.push(points);
            if self.left > 0 {
                self.left -= 1;
                return Next::Run(self.filling(options, found));
            }
            let points = mean_of(&self.fillings);
            if points.is_empty() {
                found.leave_out(self.measures()[0], "too few rules went to hardware");
            } else {
                if self.marker.is_some() {
                    found.marked.insert(self.order);
                }
                found.fillings.insert(self.order, self.fillings.len() as u32);
                found.orders.insert(self.order, points);
            }
            return Next::Done;
        }
        self.has_run = true;
        if self.is_known(found) {
            return Next::Done;
        }
        if found.software.as_ref().is_some_and(|software| software.above.is_some()) {
            found.leave_out(self.measures()[0], "adds at the set-up rate go to software");
            return Next::Done;
        }
        let Some(entries) = found.capacities.iter().map(|(_, capacity)| capacity.entries as usize).min()
        else {
            found.leave_out(self.measures()[0], "no hardware table was found");
            return Next::Done;
        };
        let in_time = (FILLING_NS / (found.add_us() * 1e3).max(1.0)) as usize;
        let count = (entries / 2).max(RULES_MIN).min(in_time.max(RULES_MIN)).min(RULES_MAX).min(entries);
        self.marker = marker(found).map(|kind| (kind, count.div_ceil(SEGMENTS)));
        let in_time = (FILLING_NS / (count as f64 * found.add_us() * 1e3).max(1.0)) as usize;
        self.count = count;
        self.left = if self.marker.is_some() { RULES_ALL.div_ceil(count).min(in_time).max(1) - 1 } else { 0 };
        Next::Run(self.filling(options, found))
    }
}

impl Orders {
    /// Whether the filling of the table has measured this. If rules are late by delays of their own, it has not.
    fn is_known(&self, found: &Findings) -> bool {
        let is_prompt = found.latest_us() <= 0.0 || marker(found).is_none();
        self.order == Order::Same && found.orders.contains_key(&Order::Same) && is_prompt
    }

    fn filling(&self, options: &Options, found: &mut Findings) -> Script {
        if let Some((kind, length)) = self.marker {
            return self.with_markers(kind, length, options, found);
        }
        let count = self.count;
        let frames = crate::engine::watch(options, FRAME_BYTES);
        let rule = RuleForm::to(options.ports[1].port);
        let flows = found.take_flows(Width::Ethernet, count).into_iter().enumerate();
        let steps = flows.map(|(index, flow)| {
            let form = rule.with_priority(priority(self.order, index, count));
            Step::watched(When::After(0), form.add_for(flow), flow, frames)
        });
        let patience_ns = 2 * SECOND_NS + 2 * ns(found.latest_us()) + 64 * ns(found.add_us());
        Script::new(steps.collect(), patience_ns).with_window(window(found)).stop_after(RULES_MIN / 2)
    }
}

impl Orders {
    /// Parts of a filling of an empty table, each at once with a marker behind it.
    fn with_markers(
        &self,
        kind: MessageType,
        length: usize,
        options: &Options,
        found: &mut Findings,
    ) -> Script {
        let count = self.count;
        let rule = RuleForm::to(options.ports[1].port);
        let flows = found.take_flows(Width::Ethernet, count);
        let adds: Vec<Step> = flows
            .into_iter()
            .enumerate()
            .map(|(index, flow)| {
                let form = rule.with_priority(priority(self.order, index, count));
                let when = match index {
                    0 => first_after_removal(found),
                    index if index % length == 0 => When::After(0),
                    _ => When::At(0),
                };
                Step::send(when, form.add_for(flow))
            })
            .collect();
        let parts = adds.chunks(length).flat_map(|part| {
            part.iter().cloned().chain([Step::ask(When::At(0), body(kind))]).collect::<Vec<_>>()
        });
        let patience_ns = 2 * SECOND_NS + 4 * length as u64 * ns(found.add_us());
        Script::new(behind_removal(parts, options, found), patience_ns)
    }

    /// The time for one more rule in each part, from the marker behind it.
    fn marked(&self, record: &Record, found: &Findings) -> Vec<(f64, f64)> {
        let Some((kind, length)) = self.marker else { return Vec::new() };
        let idle_us = found.idle_us(kind).unwrap_or(0.0);
        let parts = after_removal(record).chunks(length + 1).enumerate();
        let points = parts.filter_map(|(index, part)| {
            let (marker, adds) = part.split_last()?;
            // A rule that was refused costs something else.
            if adds.iter().any(|add| add.error.is_some()) {
                return None;
            }
            let all_us = us(marker.reply?.at_ns.saturating_sub(adds.first()?.sent_ns?)) - idle_us;
            let count = adds.len() as f64;
            Some(((index * length) as f64 + count / 2.0, all_us.max(0.0) / count))
        });
        points.collect()
    }
}

/// The mean of points at the same number of rules.
fn mean_of(fillings: &[OrderCost]) -> OrderCost {
    let Some(longest) = fillings.iter().max_by_key(|points| points.len()) else { return Vec::new() };
    let at =
        |rules: f64| fillings.iter().flatten().filter(move |point| point.0 == rules).map(|point| point.1);
    longest.iter().map(|(rules, _)| (*rules, at(*rules).sum::<f64>() / at(*rules).count() as f64)).collect()
}

fn word(order: Order) -> &'static str {
    match order {
        Order::Same => "the same",
        Order::Ascending => "rising",
        Order::Descending => "falling",
        Order::Random => "random",
    }
}

/// The priority of the rule with this index.
pub(super) fn priority(order: Order, index: usize, count: usize) -> u16 {
    let place = match order {
        Order::Same => 0,
        Order::Ascending => index,
        Order::Descending => count - 1 - index,
        Order::Random => shuffled(index, count),
    };
    // At most RULES_MAX.
    LOWEST + place as u16
}

/// A place for each index, without an order. A step that shares no factor with the count visits each place once.
pub(super) fn shuffled(index: usize, count: usize) -> usize {
    let golden = (count as f64 * 0.618_033_988_749_895) as usize;
    let step = (golden.max(1)..).find(|step| shares_no_factor(*step, count)).unwrap_or(1);
    index * step % count.max(1)
}

/// Another order, which has nothing in common with the first.
pub(super) fn shuffled_again(index: usize, count: usize) -> usize {
    shuffled((shuffled(index, count) + 3) % count.max(1), count)
}

fn shares_no_factor(one: usize, two: usize) -> bool {
    if two == 0 { one == 1 } else { shares_no_factor(two, one % two) }
}

/// The time for one more rule in each part of a filling.
fn points(record: &Record, found: &Findings) -> Vec<(f64, f64)> {
    let hardware = record
        .outcomes
        .iter()
        .filter(|add| add.transit_ns().is_some_and(|transit| !found.is_software(transit)));
    let mut seen: Vec<u64> = hardware.filter_map(|add| Some(add.frame?.sent_ns)).collect();
    seen.sort_unstable();
    // A filling of which much is missing says little about the rest.
    if seen.len() < (RULES_MIN / 2).max(record.outcomes.len() / 2) {
        return Vec::new();
    }
    let length = seen.len().div_ceil(SEGMENTS);
    let segments = seen.chunks(length).enumerate().filter(|(_, times)| times.len() > length / 2);
    segments
        .filter_map(|(index, times)| {
            let middle = (index * length) as f64 + times.len() as f64 / 2.0;
            Some((middle, each_us(times, found)?))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shuffle_visits_each_place_once() {
        for count in [1, 2, 7, 64, 100, 511] {
            for order in [shuffled, shuffled_again] {
                let mut places: Vec<usize> = (0..count).map(|index| order(index, count)).collect();
                places.sort_unstable();
                assert_eq!(places, (0..count).collect::<Vec<_>>());
            }
        }
    }
}
