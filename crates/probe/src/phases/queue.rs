//! A phase: how many messages the CPU's queue has room for, if a limit keeps packet-ins from filling it.
//!
//! ```text
//!   k requests at once, then a packet ──> no packet-in? the queue was full with fewer than k requests
//! ```
//!
//! In: whether packets were lost behind `k` requests for statistics. Out: the bound of the queue. A switch whose queue loses something else
//! than packet-ins, or nothing, has no bound here.

use super::cabling::FRAME_BYTES;
use super::idle::to_controller;
use crate::findings::Findings;
use crate::flows::Width;
use crate::options::Options;
use crate::phase::{Next, Phase};
use crate::rules;
use crate::samples::ns;
use crate::script::{Record, SECOND_NS, Script, Step, Until, When};
use openflow::message::RequestBody;
use profile::MessageType;

/// Requests at first, and at most.
const FEW: usize = 32;
const MANY: usize = 1024;
/// How long the requests of one look may take.
const LONGEST_NS: u64 = 8 * SECOND_NS;

/// The phase.
#[derive(Debug, Default)]
pub struct Queue {
    /// Behind so many requests, a packet came through.
    passed: usize,
    /// Behind so many, it was lost.
    lost: Option<usize>,
    /// How many the last script had.
    tried: Option<usize>,
}

impl Phase for Queue {
    fn title(&self) -> String {
        "measuring the queue of the CPU".to_owned()
    }

    fn measures(&self) -> &'static [&'static str] {
        &["cpu.queue_messages"]
    }

    fn next(&mut self, last: Option<&Record>, options: &Options, found: &mut Findings) -> Next {
        if found.queue_messages.is_some() || found.packet_in_limit.is_none() {
            // Packet-ins have filled it, or nothing was lost.
            return Next::Done;
        }
        if let (Some(count), Some(record)) = (self.tried, last) {
            match has_passed(record) {
                true => self.passed = self.passed.max(count),
                false => self.lost = Some(self.lost.map_or(count, |least| least.min(count))),
            }
        }
        let each_ns = ns(found.idle_us(MessageType::Statistics).unwrap_or(0.0));
        // The packet comes right behind the requests, while the first of them is served.
        if each_ns < 4 * options.transit_margin_ns {
            found.leave_out("cpu.queue_messages", "requests are served too fast to fill the queue");
            return Next::Done;
        }
        let most = MANY.min((LONGEST_NS / each_ns.max(1)) as usize);
        if most < FEW {
            found.leave_out("cpu.queue_messages", "requests take too long to fill the queue with them");
            return Next::Done;
        }
        match next_count(self.passed, self.lost, most) {
            Some(count) => {
                self.tried = Some(count);
                Next::Run(look(count, each_ns, options, found))
            }
            None => {
                // One request is in service and does not wait.
                found.queue_messages = self.lost.and_then(|count| u32::try_from(count - 1).ok());
                if self.lost.is_none() {
                    let why = format!("no packet was lost behind {} requests", self.passed);
                    found.leave_out("cpu.queue_messages", why);
                }
                Next::Done
            }
        }
    }
}

/// Twice as many until a packet is lost, then halfway between. `None`: the bound is known, or there is none up to the most, which are not
/// fewer than [`FEW`].
fn next_count(passed: usize, lost: Option<usize>, most: usize) -> Option<usize> {
    match lost {
        Some(lost) if lost <= passed + 1 => None,
        Some(lost) => Some(passed.midpoint(lost)),
        None if passed >= most => None,
        None => Some((2 * passed).clamp(FEW, most)),
    }
}

fn look(count: usize, each_ns: u64, options: &Options, found: &mut Findings) -> Script {
    let flow = found.take_flows(Width::Ethernet, 1)[0];
    // The switch is idle, and its limit lets a packet-in through.
    let limit_ns = found.packet_in_limit.map_or(0, |(rate_per_s, _)| (2e9 / rate_per_s) as u64);
    let begin = When::At(limit_ns.max(SECOND_NS / 2));
    let mut steps: Vec<Step> = to_controller(found).into_iter().collect();
    steps.extend((0..count).map(|_| Step::ask(begin, rules::request(RequestBody::Desc))));
    steps.push(Step::frame(begin, flow, options.ports[0].port, FRAME_BYTES, Until::PacketIn));
    Script::new(steps, 2 * SECOND_NS + 2 * each_ns * count as u64)
}

fn has_passed(record: &Record) -> bool {
    record.outcomes.last().is_some_and(|frame| frame.packet_in.is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many looks find this bound.
    fn check(bound: usize, expected: Option<usize>) {
        let (mut passed, mut lost, mut looks) = (0, None, 0);
        while let Some(count) = next_count(passed, lost, MANY) {
            looks += 1;
            if count > bound { lost = Some(count) } else { passed = count }
        }
        assert_eq!(lost.map(|lost| lost - 1), expected);
        assert!(looks <= 16, "{looks}");
    }

    #[test]
    fn the_first_number_behind_which_a_packet_is_lost_is_found() {
        [0, 1, 31, 32, 33, 256, 1023].into_iter().for_each(|bound| check(bound, Some(bound)));
        [1024, 5000].into_iter().for_each(|bound| check(bound, None));
    }
}
