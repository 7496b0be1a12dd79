//! What is on its way out: packet-ins and packets that the CPU has finished, for the time of their residual delay.
//!
//! In: an output and the time at which it would leave. Out: the outputs whose time has come. Those of one kind keep their order: none
//! leaves before its predecessor. It never drops anything: the caller asks first whether there is a place.

use super::output::Output;
use std::collections::VecDeque;

/// Kinds that do not wait for each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lane {
    PacketIn,
    PacketOut,
    /// Packets that wait for flow mods, or the flow mods themselves if they are held whole.
    FlowMod,
    /// Every other message.
    Other,
}

const LANES: usize = 4;

/// How many packet-ins are on their way, and how many messages. A switch that sends 10,000 packet-ins a second has a residual delay of
/// less than 6 s. Above it, packet-ins are lost, and the CPU begins with nothing until messages have left.
pub(super) const LEAVING_MAX: usize = 65_536;

/// The lanes in which a barrier has its place.
const LANES_OF_MESSAGES: [Lane; 3] = [Lane::PacketOut, Lane::FlowMod, Lane::Other];

/// What is on its way out.
#[derive(Clone, Debug, Default)]
pub(super) struct Leaving {
    /// When each leaves, and its number: at one moment, what came first leaves first.
    lanes: [VecDeque<(u64, u64, Output)>; LANES],
    latest_ns: [u64; LANES],
    numbered: u64,
    /// How many are on their way.
    count: usize,
}

impl Leaving {
    /// The output leaves then, or together with its predecessor if that is later.
    pub(super) fn push(&mut self, lane: Lane, at_ns: u64, output: Output) {
        let latest = &mut self.latest_ns[lane as usize];
        *latest = at_ns.max(*latest);
        self.numbered += 1;
        self.count += 1;
        self.lanes[lane as usize].push_back((*latest, self.numbered, output));
    }

    /// The output leaves then, but after all messages before it. No message after it leaves earlier.
    pub(super) fn push_barrier(&mut self, at_ns: u64, output: Output) {
        let latest = LANES_OF_MESSAGES.map(|lane| self.latest_ns[lane as usize]);
        let at_ns = latest.into_iter().fold(at_ns, u64::max);
        LANES_OF_MESSAGES.iter().for_each(|lane| self.latest_ns[*lane as usize] = at_ns);
        self.push(Lane::Other, at_ns, output);
    }

    /// Whether one more has a place in a lane.
    #[inline]
    pub(super) fn has_place(&self, lane: Lane) -> bool {
        self.lanes[lane as usize].len() < LEAVING_MAX
    }

    /// Whether so many messages are on their way that no further one may begin.
    #[inline]
    pub(super) fn has_many_messages(&self) -> bool {
        self.of_messages() >= LEAVING_MAX
    }

    /// How many packet-ins are on their way.
    #[inline]
    pub(super) fn packet_ins(&self) -> usize {
        self.lanes[Lane::PacketIn as usize].len()
    }

    /// How many messages, or packets of messages, are on their way.
    #[inline]
    pub(super) fn of_messages(&self) -> usize {
        self.count - self.packet_ins()
    }

    /// When the next one leaves.
    #[inline]
    pub(super) fn next_due_ns(&self) -> Option<u64> {
        if self.count == 0 {
            return None;
        }
        self.lanes.iter().filter_map(|lane| Some(lane.front()?.0)).min()
    }

    /// Takes the one that leaves first, if its time has come.
    pub(super) fn pop(&mut self, now_ns: u64) -> Option<Output> {
        let front =
            |lane: &VecDeque<(u64, u64, Output)>| lane.front().map(|(due, number, _)| (*due, *number));
        let first = self.lanes.iter().filter_map(front).min().filter(|(due, _)| *due <= now_ns)?;
        let lane = self.lanes.iter_mut().find(|lane| front(lane) == Some(first))?;
        self.count -= 1;
        lane.pop_front().map(|(_, _, output)| output)
    }

    /// Whether no message of the controller is on its way out.
    pub(super) fn has_no_message(&self) -> bool {
        LANES_OF_MESSAGES.iter().all(|lane| self.lanes[*lane as usize].is_empty())
    }
}
