//! A phase: what an add costs by the order of priorities, and by how many rules there are.
//!
//! In: first frames of rules whose priorities rise, fall, or come in any order. Out: points (rules, time for one more).

use super::cabling::FRAME_BYTES;
use super::table::{each_us, window};
use crate::findings::{Findings, Order};
use crate::flows::Width;
use crate::options::Options;
use crate::phase::{Next, Phase};
use crate::rules::RuleForm;
use crate::samples::ns;
use crate::script::{Record, SECOND_NS, Script, Step, When};

/// Rules of a filling at least, if the table has room.
const RULES_MIN: usize = 64;
/// Rules of a filling at most: priorities have 16 bits.
const RULES_MAX: usize = 16_384;
/// How long a filling takes at most.
const FILLING_NS: f64 = 20e9;
/// Points of a curve.
const SEGMENTS: usize = 8;
/// The lowest priority.
const LOWEST: u16 = 1000;

/// The phase, for one order.
#[derive(Debug)]
pub struct Orders {
    order: Order,
    has_run: bool,
}

impl Orders {
    /// The phase for this order.
    pub fn of(order: Order) -> Self {
        Orders { order, has_run: false }
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

    fn next(&mut self, last: Option<&Record>, options: &Options, found: &mut Findings) -> Next {
        if let (true, Some(record)) = (self.has_run, last) {
            let points = points(record, found);
            if points.is_empty() {
                found.leave_out(self.measures()[0], "too few rules went to hardware");
            } else {
                found.orders.insert(self.order, points);
            }
            return Next::Done;
        }
        self.has_run = true;
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
        Next::Run(self.filling(count, options, found))
    }
}

impl Orders {
    fn filling(&self, count: usize, options: &Options, found: &mut Findings) -> Script {
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
            let mut places: Vec<usize> = (0..count).map(|index| shuffled(index, count)).collect();
            places.sort_unstable();
            assert_eq!(places, (0..count).collect::<Vec<_>>());
        }
    }
}
