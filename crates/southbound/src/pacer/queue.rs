//! The commands of one zone that wait for a switch, and what the zone has had.
//!
//! In: the places of commands in the order in which they came. Out: the same. It knows no command.

use abi::ZoneId;
use std::collections::VecDeque;

/// The commands of a zone that wait.
#[derive(Debug)]
pub struct Queue {
    /// The zone.
    pub zone: ZoneId,
    /// Their places, oldest first.
    pub serials: VecDeque<u64>,
    /// The sum of their lengths.
    pub bytes: usize,
    /// How many of them are barriers.
    pub barriers: usize,
    /// What the zone has had, in units of the rate. Zones that waited meanwhile had as much.
    pub served: u64,
    /// The number of its last turn.
    pub last_turn: u64,
    /// Only commands up to this one are put into the cheap order. So a command waits for those that came before the last of its batch,
    /// and not for all that come later.
    pub batch_until: u64,
}

/// The queue of a zone. A new one had its last turn now.
pub fn queue_of(queues: &mut Vec<Queue>, zone: ZoneId, turn: u64) -> &mut Queue {
    let number = queues.iter().position(|queue| queue.zone == zone).unwrap_or_else(|| {
        queues.push(Queue {
            zone,
            serials: VecDeque::new(),
            bytes: 0,
            barriers: 0,
            served: 0,
            last_turn: turn,
            batch_until: 0,
        });
        queues.len() - 1
    });
    &mut queues[number]
}

impl Queue {
    /// A command comes.
    pub fn push(&mut self, serial: u64, bytes: usize, is_barrier: bool) {
        self.serials.push_back(serial);
        self.bytes += bytes;
        self.barriers += usize::from(is_barrier);
    }

    /// A command goes.
    pub fn remove(&mut self, serial: u64, bytes: usize, is_barrier: bool) {
        if let Ok(place) = self.serials.binary_search(&serial) {
            self.serials.remove(place);
            self.bytes -= bytes;
            self.barriers -= usize::from(is_barrier);
        }
    }

    /// If all of a batch have gone, the next one is what waits now: all up to this one.
    pub fn start_batch(&mut self, last: u64) {
        if self.serials.front().is_some_and(|first| *first > self.batch_until) {
            self.batch_until = last;
        }
    }
}
