//! Frames on links, in the order of their arrival.
//!
//! In: a frame and its arrival time. Out: the next frame. Frames that arrive at once have their own queue, which only
//! moves the frame. It never looks into a frame.

use std::cmp::Ordering;
use std::collections::{BinaryHeap, VecDeque};
use std::time::Duration;

use super::cable::Way;
use crate::topology::Endpoint;

/// How many frames may be about to arrive at once. More are lost and counted. Only a broadcast storm reaches this.
pub(super) const AT_ONCE_MAX: usize = 65_536;
/// How many frames may be on links with a delay. More are lost and counted. At full length they take 300 MB: what is
/// on a link of 10 Gbit/s with a delay of a quarter of a second.
pub(super) const LATER_MAX: usize = 200_000;

/// A frame on a link.
#[derive(Debug)]
pub(super) struct Passage {
    pub(super) to: Endpoint,
    /// The link that it is on.
    pub(super) link: usize,
    pub(super) way: Way,
    /// The link's period when the frame was put on it.
    pub(super) period: u32,
    pub(super) frame: Vec<u8>,
}

#[derive(Debug)]
struct Later {
    at: Duration,
    /// Orders frames with the same arrival time by when they were sent.
    sequence: u64,
    passage: Passage,
}

/// All frames on links.
#[derive(Debug, Default)]
pub(super) struct InFlight {
    at_once: VecDeque<Passage>,
    later: BinaryHeap<Later>,
    sequence: u64,
}

impl InFlight {
    /// Whether any frame arrives at once.
    pub(super) fn is_urgent(&self) -> bool {
        !self.at_once.is_empty()
    }

    /// When the next delayed frame arrives.
    pub(super) fn next_later(&self) -> Option<Duration> {
        self.later.peek().map(|later| later.at)
    }

    /// Adds a frame that arrives at once. Returns it if there is no room.
    pub(super) fn push_at_once(&mut self, passage: Passage) -> Result<(), Passage> {
        if self.at_once.len() >= AT_ONCE_MAX {
            return Err(passage);
        }
        self.at_once.push_back(passage);
        Ok(())
    }

    /// Adds a frame that arrives at this time. Returns it if there is no room.
    pub(super) fn push_later(&mut self, at: Duration, passage: Passage) -> Result<(), Passage> {
        if self.later.len() >= LATER_MAX {
            return Err(passage);
        }
        self.sequence += 1;
        self.later.push(Later { at, sequence: self.sequence, passage });
        Ok(())
    }

    /// Removes the next frame that arrives at once.
    pub(super) fn pop_at_once(&mut self) -> Option<Passage> {
        self.at_once.pop_front()
    }

    /// Removes the next delayed frame.
    pub(super) fn pop_later(&mut self) -> Option<Passage> {
        self.later.pop().map(|later| later.passage)
    }
}

/// The heap has its greatest element on top, which must be the frame that arrives first.
impl Ord for Later {
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at, other.sequence).cmp(&(self.at, self.sequence))
    }
}

impl PartialOrd for Later {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Later {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Later {}

#[cfg(test)]
mod tests {
    use super::*;

    fn passage(number: u8) -> Passage {
        let to = Endpoint::Host { index: 0 };
        Passage { to, link: 0, way: Way::Forth, period: 0, frame: vec![number] }
    }

    #[test]
    fn frames_come_by_time_and_then_in_the_order_in_which_they_were_sent() {
        let mut in_flight = InFlight::default();
        for (number, at) in [(1, 30), (2, 10), (3, 20), (4, 10), (5, 10)] {
            in_flight.push_later(Duration::from_millis(at), passage(number)).unwrap();
        }
        assert_eq!(in_flight.next_later(), Some(Duration::from_millis(10)));
        let order: Vec<u8> = std::iter::from_fn(|| in_flight.pop_later()).map(|next| next.frame[0]).collect();
        assert_eq!(order, [2, 4, 5, 3, 1]);
    }

    #[test]
    fn what_has_no_room_is_given_back() {
        let mut in_flight = InFlight::default();
        for _ in 0..AT_ONCE_MAX {
            in_flight.push_at_once(passage(0)).unwrap();
        }
        assert_eq!(in_flight.push_at_once(passage(9)).unwrap_err().frame, [9]);
        assert!(in_flight.push_later(Duration::ZERO, passage(8)).is_ok());
    }
}
