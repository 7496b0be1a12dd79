//! What waits for the CPU: the queue with its bound and ranks, and the messages that wait outside of it.
//!
//! ```text
//!   packet-in ───────────────────────────────> queue ──> the lowest rank, and within a rank the oldest
//!   message ──> outside ──┬── no barrier ahead ──┘
//!                         └── place in the queue
//! ```
//!
//! In: messages and packet-ins as they come. Out: the next one for the CPU, or that one is lost. It never looks at a clock, and does
//! not know service times.

use super::input::{MessageId, Packet, Rule};
use crate::cpu::{Cpu, MessageType, QueueFull};
use std::collections::VecDeque;

/// How many messages wait outside the queue, and in a queue without a bound of its own. Above it, messages are lost: a
/// controller that is so far ahead has long been told by TCP to stop.
pub(super) const WAITING_MAX: usize = 65_536;

const TYPES: usize = MessageType::ALL.len();

/// One message or packet-in.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Waiting {
    pub(super) id: MessageId,
    pub(super) kind: MessageType,
    /// The CPU does not begin with it before.
    pub(super) ready_ns: u64,
    /// The quantile of its residual delay, if that is known already.
    pub(super) quantile: Option<f64>,
    pub(super) rule: Option<Rule>,
    pub(super) packet: Packet,
    /// The entries of an answer with statistics, or the bytes of a packet-in.
    pub(super) amount: u32,
}

/// A barrier that stops the messages behind it.
#[derive(Clone, Copy, Debug)]
enum Fence {
    None,
    /// It waits until it is alone in the queue. The number is its place in the order of arrival.
    Waits(Waiting, u64),
    /// The CPU has taken it, but it is not answered yet.
    Taken,
}

/// What waits.
#[derive(Clone, Debug)]
pub(super) struct WaitingRoom {
    bound: usize,
    loses_any: bool,
    barriers_order: bool,
    ranks: [u8; TYPES],
    queues: [VecDeque<(u64, Waiting)>; TYPES],
    /// The queues in which something waits, one bit each.
    occupied: u16,
    outside: VecDeque<Waiting>,
    fence: Fence,
    arrived: u64,
    queued: usize,
    /// Messages of the controller in the queue, without a barrier that stops others.
    messages: usize,
}

impl WaitingRoom {
    /// An empty room. `barriers_order`: messages wait behind barriers.
    pub(super) fn new(cpu: &Cpu, barriers_order: bool) -> Self {
        let bound =
            cpu.queue_messages.map_or(WAITING_MAX, |bound| usize::try_from(bound).unwrap_or(WAITING_MAX));
        WaitingRoom {
            bound: bound.min(WAITING_MAX),
            loses_any: cpu.queue_full == QueueFull::LoseAny,
            barriers_order,
            ranks: MessageType::ALL.map(|kind| cpu.service(kind).rank),
            queues: Default::default(),
            occupied: 0,
            outside: VecDeque::new(),
            fence: Fence::None,
            arrived: 0,
            queued: 0,
            messages: 0,
        }
    }

    /// Whether one more has a place in the queue. `cpu_is_free`: it begins at once if nothing waits, so that it needs none.
    pub(super) fn has_place(&self, cpu_is_free: bool) -> bool {
        self.queued < self.bound || (cpu_is_free && self.queued == 0)
    }

    /// A packet-in or message came. Returns whether there is a place for it.
    pub(super) fn push(&mut self, waiting: Waiting, cpu_is_free: bool) -> bool {
        let is_full = !self.has_place(cpu_is_free);
        if waiting.kind == MessageType::PacketIn {
            if !is_full {
                self.admit(waiting);
            }
            return !is_full;
        }
        if self.loses_any && is_full || self.outside.len() >= WAITING_MAX {
            return false;
        }
        if self.outside.is_empty() && !is_full && matches!(self.fence, Fence::None) {
            self.admit(waiting);
        } else {
            self.outside.push_back(waiting);
        }
        true
    }

    fn admit(&mut self, waiting: Waiting) {
        self.arrived += 1;
        if self.barriers_order && waiting.kind == MessageType::Barrier {
            self.fence = Fence::Waits(waiting, self.arrived);
        } else {
            let kind = waiting.kind as usize;
            self.queues[kind].push_back((self.arrived, waiting));
            self.occupied |= 1 << kind;
            self.messages += usize::from(waiting.kind != MessageType::PacketIn);
        }
        self.queued += 1;
    }

    /// Lets messages in from outside, as far as there is place and no barrier is ahead. A queue without places still takes one for
    /// a free CPU.
    fn let_in(&mut self) {
        while !self.outside.is_empty()
            && matches!(self.fence, Fence::None)
            && self.queued < self.bound.max(1)
            && let Some(next) = self.outside.pop_front()
        {
            self.admit(next);
        }
    }

    /// The rank, the number and the queue of what is taken next, without a barrier that stops others.
    #[inline]
    fn first(&self) -> Option<(u8, u64, usize)> {
        let (mut best, mut occupied) = (None, self.occupied);
        while occupied != 0 {
            let kind = occupied.trailing_zeros() as usize;
            occupied &= occupied - 1;
            let Some((number, _)) = self.queues[kind].front() else { continue };
            let this = (self.ranks[kind], *number, kind);
            if best.is_none_or(|best| this < best) {
                best = Some(this);
            }
        }
        best
    }

    /// Takes the next one for the CPU, which is free.
    pub(super) fn take(&mut self) -> Option<Waiting> {
        self.let_in();
        let first = self.first();
        let taken = match &self.fence {
            Fence::Waits(barrier, number) if self.is_next(*number, first) => {
                let barrier = *barrier;
                self.fence = Fence::Taken;
                barrier
            }
            _ => self.take_from(first?.2)?,
        };
        self.queued -= 1;
        self.let_in();
        Some(taken)
    }

    /// Whether the barrier with this number is next. It must be alone: all messages before it are processed. Packet-ins are no such
    /// messages.
    fn is_next(&self, number: u64, first: Option<(u8, u64, usize)>) -> bool {
        let rank = self.ranks[MessageType::Barrier as usize];
        self.messages == 0 && first.is_none_or(|first| (rank, number) < (first.0, first.1))
    }

    #[inline]
    fn take_from(&mut self, kind: usize) -> Option<Waiting> {
        let (_, taken) = self.queues[kind].pop_front()?;
        if self.queues[kind].is_empty() {
            self.occupied &= !(1 << kind);
        }
        self.messages -= usize::from(taken.kind != MessageType::PacketIn);
        Some(taken)
    }

    /// The barrier that the CPU has taken is answered: the messages behind it come in.
    pub(super) fn on_answered(&mut self) {
        self.fence = Fence::None;
        self.let_in();
    }

    /// Forgets messages of the controller. What waited behind a barrier that is forgotten comes in.
    pub(super) fn forget(&mut self, is_forgotten: impl Fn(MessageId) -> bool) {
        self.outside.retain(|waiting| !is_forgotten(waiting.id));
        for kind in MessageType::ALL.into_iter().filter(|kind| *kind != MessageType::PacketIn) {
            let queue = &mut self.queues[kind as usize];
            let before = queue.len();
            queue.retain(|(_, waiting)| !is_forgotten(waiting.id));
            let forgotten = before - queue.len();
            if queue.is_empty() {
                self.occupied &= !(1 << kind as usize);
            }
            self.queued -= forgotten;
            self.messages -= forgotten;
        }
        if let Fence::Waits(barrier, _) = &self.fence
            && is_forgotten(barrier.id)
        {
            self.fence = Fence::None;
            self.queued -= 1;
        }
        self.let_in();
    }

    /// Whether nothing waits that the CPU could take.
    pub(super) fn is_empty(&self) -> bool {
        self.queued == 0 && (self.outside.is_empty() || !matches!(self.fence, Fence::None))
    }

    /// How many messages wait outside the queue.
    pub(super) fn outside(&self) -> usize {
        self.outside.len()
    }

    /// How many packet-ins and messages wait in the queue.
    pub(super) fn queued(&self) -> usize {
        self.queued
    }
}
