//! One link in use: what happens to a frame on it, and its counters.
//!
//! In: a frame's length, the time, random numbers. Out: when the frame arrives, or that it is lost. It never holds a
//! frame.

use std::time::Duration;

use crate::link::{LOSS_ALL_PPM, LinkQuality};
use crate::random::Random;
use crate::topology::Link;

/// The counters of one direction of a link. Each frame is in one of the counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DirectionCounters {
    /// Frames that were put on the link and not lost for one of the reasons below.
    pub sent: u64,
    /// The bytes of these frames.
    pub sent_bytes: u64,
    /// Frames that were dropped because the queue was full.
    pub dropped_by_queue: u64,
    /// Frames that were lost at random.
    pub dropped_by_loss: u64,
    /// Frames that were lost because the link was down, or went down while they were on it.
    pub dropped_by_being_down: u64,
}

/// The counters of a link in both directions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkCounters {
    /// From the link's `one` to its `two`.
    pub forth: DirectionCounters,
    /// From `two` to `one`.
    pub back: DirectionCounters,
}

/// The direction along a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    Forth,
    Back,
}

impl Way {
    /// The opposite direction.
    pub(super) fn reverse(self) -> Way {
        match self {
            Way::Forth => Way::Back,
            Way::Back => Way::Forth,
        }
    }
}

/// The result for a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// It arrives at once.
    AtOnce,
    /// It arrives at this time.
    At(Duration),
    /// It is lost, and counted.
    Lost,
}

/// A link in use.
#[derive(Clone, Debug)]
pub(super) struct Cable {
    pub(super) link: Link,
    /// Whether the link itself was taken down, independent of the nodes at its ends.
    pub(super) is_cut: bool,
    /// Whether frames pass: it is not cut, and both ends are up.
    up: bool,
    /// Increases each time the link goes down. Frames that were on it then carry an older number.
    pub(super) period: u32,
    directions: [Direction; 2],
}

#[derive(Clone, Copy, Debug, Default)]
struct Direction {
    /// The time at which the last accepted frame has left.
    busy_until: Duration,
    /// When the last frame arrives. A link keeps the order of its frames, even if its delay becomes shorter.
    last_arrival: Duration,
    counters: DirectionCounters,
}

impl Cable {
    /// A link that is up.
    pub(super) fn new(link: Link) -> Self {
        Cable { link, is_cut: false, up: true, period: 0, directions: Default::default() }
    }

    /// Whether frames pass.
    pub(super) fn is_up(&self) -> bool {
        self.up
    }

    /// Sets whether frames pass. Returns whether that changed anything.
    pub(super) fn set_up(&mut self, up: bool) -> bool {
        let changes = self.up != up;
        self.up = up;
        if changes && !up {
            self.period = self.period.wrapping_add(1);
            // The frames that waited are lost, so a link that comes up is free.
            for direction in &mut self.directions {
                (direction.busy_until, direction.last_arrival) = Default::default();
            }
        }
        changes
    }

    /// Its counters.
    pub(super) fn counters(&self) -> LinkCounters {
        LinkCounters { forth: self.directions[0].counters, back: self.directions[1].counters }
    }

    /// Counts a frame as lost that was on the link when it went down.
    pub(super) fn lose_what_was_sent(&mut self, way: Way, bytes: usize) {
        let counters = &mut self.directions[way as usize].counters;
        counters.sent -= 1;
        counters.sent_bytes -= bytes as u64;
        counters.dropped_by_being_down += 1;
    }

    /// Puts a frame of this length on the link.
    pub(super) fn offer(&mut self, way: Way, bytes: usize, now: Duration, random: &mut Random) -> Fate {
        let quality = self.link.quality;
        let direction = &mut self.directions[way as usize];
        if !self.up {
            direction.counters.dropped_by_being_down += 1;
            return Fate::Lost;
        }
        if quality.is_ideal() {
            direction.count(bytes);
            return Fate::AtOnce;
        }
        let waiting = waiting_bytes(direction.busy_until.saturating_sub(now), &quality);
        if waiting > 0 && waiting + bytes as u64 > quality.queue_bytes as u64 {
            direction.counters.dropped_by_queue += 1;
            return Fate::Lost;
        }
        direction.busy_until = direction.busy_until.max(now) + quality.serialisation(bytes);
        if quality.loss_ppm > 0 && random.below(LOSS_ALL_PPM) < quality.loss_ppm {
            direction.counters.dropped_by_loss += 1;
            return Fate::Lost;
        }
        direction.count(bytes);
        direction.last_arrival = (direction.busy_until + quality.delay).max(direction.last_arrival);
        Fate::At(direction.last_arrival)
    }
}

impl Direction {
    fn count(&mut self, bytes: usize) {
        self.counters.sent += 1;
        self.counters.sent_bytes += bytes as u64;
    }
}

/// How many bytes leave in a time, rounded up.
fn waiting_bytes(time: Duration, quality: &LinkQuality) -> u64 {
    let Some(rate) = quality.rate_bits_per_s else { return 0 };
    let bytes = (time.as_nanos() * u128::from(rate)).div_ceil(8 * 1_000_000_000);
    u64::try_from(bytes).unwrap_or(u64::MAX / 2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::Endpoint;

    const NOW: Duration = Duration::from_secs(1);

    fn cable(words: &str) -> Cable {
        let quality = words.parse().unwrap();
        Cable::new(Link { one: Endpoint::Host { index: 0 }, two: Endpoint::Host { index: 1 }, quality })
    }

    /// Checks frames of these lengths at these milliseconds. Expected is the millisecond of each arrival, or `-`.
    fn check(words: &str, frames: &[(u64, usize)], expected: &str) {
        let (mut cable, mut random) = (cable(words), Random::new(1));
        let mut fates = Vec::new();
        for (at, bytes) in frames {
            let now = NOW + Duration::from_millis(*at);
            fates.push(match cable.offer(Way::Forth, *bytes, now, &mut random) {
                Fate::AtOnce => "now".to_owned(),
                Fate::At(at) => (at - NOW).as_millis().to_string(),
                Fate::Lost => "-".to_owned(),
            });
        }
        assert_eq!(fates.join(" "), expected, "{words}");
    }

    #[test]
    fn a_frame_arrives_after_its_bits_and_the_delay() {
        check("ideal", &[(0, 1500), (0, 1500)], "now now");
        check("delay=5ms", &[(0, 1500), (0, 60), (2, 60)], "5 5 7");
        check("rate=1M", &[(0, 1250), (0, 1250), (100, 1250)], "10 20 110");
        check("rate=1M,delay=7ms", &[(0, 1250), (15, 1250)], "17 32");
    }

    #[test]
    fn the_queue_is_full_when_it_is_and_takes_one_frame_at_least() {
        check("rate=1M,queue=2500", &[(0, 1250), (0, 1250), (0, 1), (5, 1250), (10, 1250)], "10 20 - - 30");
        check("rate=1M,queue=0", &[(0, 1250), (0, 1), (10, 1250)], "10 - 20");
    }

    #[test]
    fn a_link_that_went_down_loses_what_waited_and_comes_back_free() {
        let (mut cable, mut random) = (cable("rate=1M"), Random::new(1));
        cable.offer(Way::Back, 12_500, NOW, &mut random);
        assert!(cable.set_up(false) && !cable.set_up(false));
        assert_eq!(cable.offer(Way::Back, 60, NOW, &mut random), Fate::Lost);
        assert!(cable.set_up(true));
        let ten_later = NOW + Duration::from_millis(10);
        assert_eq!(cable.offer(Way::Back, 1250, NOW, &mut random), Fate::At(ten_later));
        cable.lose_what_was_sent(Way::Back, 12_500);
        let counters = cable.counters().back;
        assert_eq!((counters.sent, counters.sent_bytes, counters.dropped_by_being_down), (1, 1250, 2));
        assert_eq!(cable.counters().forth, DirectionCounters::default());
    }

    #[test]
    fn chance_takes_as_many_as_it_is_told_to() {
        let (mut cable, mut random) = (cable("loss=2%"), Random::new(3));
        for _ in 0..100_000 {
            cable.offer(Way::Forth, 100, NOW, &mut random);
        }
        let counters = cable.counters().forth;
        assert!((1_800..2_200).contains(&counters.dropped_by_loss), "{counters:?}");
        assert_eq!(counters.sent + counters.dropped_by_loss, 100_000);
        check("loss=100%", &[(0, 60), (1, 60)], "- -");
    }
}
