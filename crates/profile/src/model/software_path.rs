//! The way of packets that meet rules in software: one queue, a rate, and a delay.
//!
//! In: packets by number and length, with the time. Out: when each leaves, or that it is lost. It never holds a packet.

use super::draw::{Draw, nanoseconds};
use super::input::MessageId;
use super::random::Stream;
use crate::software::Software;
use std::collections::VecDeque;

/// How long the queue is at most, as time: what a switch buffers for a slow path. Packets that would wait longer are lost.
const BACKLOG_MAX_NS: u64 = 100_000_000;
/// How many packets are on the way at most, if the rate has no bound. Those above it are lost.
const PACKETS_MAX: usize = 65_536;

/// The software path.
#[derive(Clone, Debug)]
pub(super) struct SoftwarePath {
    us_per_bit: f64,
    us_per_packet: f64,
    delay: Draw,
    free_ns: u64,
    latest_ns: u64,
    on_the_way: VecDeque<(u64, MessageId)>,
}

impl SoftwarePath {
    pub(super) fn new(software: &Software, seed: u64) -> Self {
        let us_each = |rate: Option<f64>| rate.map_or(0.0, |rate| 1e6 / rate);
        SoftwarePath {
            us_per_bit: us_each(software.forward_bits_per_s),
            us_per_packet: us_each(software.forward_packets_per_s),
            delay: Draw::new(&software.forward_us, seed, Stream::SoftwarePath),
            free_ns: 0,
            latest_ns: 0,
            on_the_way: VecDeque::new(),
        }
    }

    /// A packet came. Returns whether it will leave.
    pub(super) fn push(&mut self, id: MessageId, length_bytes: u32, now_ns: u64) -> bool {
        let begins = self.free_ns.max(now_ns);
        if begins - now_ns > BACKLOG_MAX_NS || self.on_the_way.len() >= PACKETS_MAX {
            return false;
        }
        let bits = 8.0 * f64::from(length_bytes);
        self.free_ns = begins.saturating_add(nanoseconds((bits * self.us_per_bit).max(self.us_per_packet)));
        self.latest_ns = self.free_ns.saturating_add(self.delay.next_ns()).max(self.latest_ns);
        self.on_the_way.push_back((self.latest_ns, id));
        true
    }

    #[inline]
    pub(super) fn next_due_ns(&self) -> Option<u64> {
        self.on_the_way.front().map(|(due, _)| *due)
    }

    /// The packet that leaves first.
    pub(super) fn pop(&mut self) -> Option<MessageId> {
        self.on_the_way.pop_front().map(|(_, id)| id)
    }
}
