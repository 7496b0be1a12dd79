//! When a sender may send: its application's rate, and the rate of its link.
//!
//! In: a rate, the time, sent frames. Out: how many bytes there are to send, and when the link is free. It never
//! sends.

use std::time::Duration;

/// How far a sender may be ahead of its link, so that a fast one sends several frames for each call.
const AHEAD: Duration = Duration::from_micros(10);
/// The default rate of a link, as switches report for their ports. Without it, a greedy sender on a link without
/// delay would send for ever at one moment.
pub const LINE_BITS_PER_S: u64 = 10_000_000_000;

/// How fast an application produces data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlowRate {
    /// As fast as the network allows.
    Greedy,
    /// Payload bits a second.
    BitsPerSecond(u64),
}

impl FlowRate {
    /// How many bytes exist at this time after the start; unlimited for a greedy application.
    pub(super) fn bytes_after(self, time: Duration) -> u64 {
        match self {
            FlowRate::Greedy => u64::MAX,
            FlowRate::BitsPerSecond(rate) => {
                let bytes = time.as_nanos() * u128::from(rate) / (8 * 1_000_000_000);
                u64::try_from(bytes).unwrap_or(u64::MAX)
            }
        }
    }

    /// The time after the start at which this many bytes exist.
    pub(super) fn time_of(self, bytes: u64) -> Duration {
        match self {
            FlowRate::Greedy => Duration::ZERO,
            FlowRate::BitsPerSecond(rate) => serialisation(bytes, rate),
        }
    }
}

/// How long this many bytes take at a rate, rounded up.
fn serialisation(bytes: u64, bits_per_s: u64) -> Duration {
    let nanoseconds = (u128::from(bytes) * 8 * 1_000_000_000).div_ceil(u128::from(bits_per_s.max(1)));
    Duration::from_nanos(u64::try_from(nanoseconds).unwrap_or(u64::MAX))
}

/// The link of a sender.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line {
    bits_per_s: u64,
    free_at: Duration,
}

impl Line {
    /// A free link.
    pub(super) fn new(bits_per_s: u64) -> Self {
        Line { bits_per_s, free_at: Duration::ZERO }
    }

    /// Sets its rate.
    pub(super) fn set_rate(&mut self, bits_per_s: u64) {
        self.bits_per_s = bits_per_s;
    }

    /// When the next frame may be sent, if not now.
    pub(super) fn busy_until(&self, now: Duration) -> Option<Duration> {
        let free = self.free_at.saturating_sub(AHEAD);
        (free > now).then_some(free)
    }

    /// A frame was sent.
    pub(super) fn take(&mut self, frame_bytes: usize, now: Duration) {
        self.free_at = self.free_at.max(now) + serialisation(frame_bytes as u64, self.bits_per_s);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_free_again_when_the_bits_have_left() {
        let mut line = Line::new(1_000_000);
        let now = Duration::from_secs(1);
        assert_eq!(line.busy_until(now), None);
        line.take(1250, now);
        let free = now + Duration::from_millis(10) - AHEAD;
        assert_eq!((line.busy_until(now), line.busy_until(free)), (Some(free), None));
        let mut fast = Line::new(LINE_BITS_PER_S);
        let at_once =
            (0..100).take_while(|_| fast.busy_until(now).is_none().then(|| fast.take(1250, now)).is_some());
        assert_eq!(at_once.count(), 11);
    }

    #[test]
    fn an_application_has_as_much_to_send_as_its_rate_says() {
        let rate = FlowRate::BitsPerSecond(3_000_000);
        assert_eq!(rate.bytes_after(Duration::from_millis(8)), 3000);
        assert_eq!(rate.time_of(3000), Duration::from_millis(8));
        assert!((0..10_000).all(|bytes| rate.bytes_after(rate.time_of(bytes)) >= bytes));
        assert_eq!(FlowRate::Greedy.bytes_after(Duration::ZERO), u64::MAX);
    }
}
