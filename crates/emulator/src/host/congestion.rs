//! The congestion window of a connection: slow start, congestion avoidance and fast recovery as in NewReno (RFC 5681,
//! RFC 6582). Slow start also ends when the queue begins to grow, as in HyStart++ (RFC 9406).
//!
//! In: acknowledgements, round trips, losses. Out: the window, and whether to retransmit a segment. Offsets count the
//! bytes of the stream from 0.

use std::time::Duration;

/// The window at the beginning, in segments (RFC 6928).
const FIRST_WINDOW_SEGMENTS: u64 = 10;
/// This many duplicate acknowledgements mean that a segment is lost.
const DUPLICATES: u32 = 3;
/// Slow start ends when a round trip exceeds the shortest one by an eighth, but by no less and no more than these
/// bounds.
const GROWTH_SHORTEST: Duration = Duration::from_millis(4);
const GROWTH_LONGEST: Duration = Duration::from_millis(16);
/// The largest window. The receiver's is no larger either.
const WINDOW_MAX_BYTES: u64 = 64 * 1024 * 1024;

/// The congestion state of one connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct Congestion {
    segment_bytes: u64,
    pub(super) window_bytes: u64,
    threshold_bytes: u64,
    /// Acknowledged bytes that have not increased the window yet.
    credit_bytes: u64,
    duplicates: u32,
    /// Until everything up to this offset is acknowledged, losses belong to the same event.
    recovers_at: Option<u64>,
    /// Everything up to here was sent before the last loss. Its duplicates carry no new information.
    heard_of: u64,
}

impl Congestion {
    /// A new connection.
    pub(super) fn new(segment_bytes: u64) -> Self {
        Congestion {
            segment_bytes,
            window_bytes: FIRST_WINDOW_SEGMENTS * segment_bytes,
            threshold_bytes: u64::MAX,
            credit_bytes: 0,
            duplicates: 0,
            recovers_at: None,
            heard_of: 0,
        }
    }

    /// New bytes were acknowledged, up to an offset. Returns whether to retransmit the segment there, because the
    /// same event lost it too.
    pub(super) fn on_acknowledged(&mut self, bytes: u64, up_to: u64) -> bool {
        self.duplicates = 0;
        match self.recovers_at {
            Some(end) if up_to < end => {
                // A partial acknowledgement (RFC 6582, 3.2).
                let left = self.window_bytes.saturating_sub(bytes);
                self.window_bytes = left + if bytes >= self.segment_bytes { self.segment_bytes } else { 0 };
                self.window_bytes = self.window_bytes.max(self.segment_bytes);
                true
            }
            Some(_) => {
                self.recovers_at = None;
                self.window_bytes = self.threshold_bytes;
                false
            }
            None => {
                self.grow(bytes);
                false
            }
        }
    }

    fn grow(&mut self, bytes: u64) {
        if self.window_bytes < self.threshold_bytes {
            self.window_bytes += bytes.min(2 * self.segment_bytes);
        } else {
            self.credit_bytes += bytes;
            if self.credit_bytes >= self.window_bytes {
                self.credit_bytes -= self.window_bytes;
                self.window_bytes += self.segment_bytes;
            }
        }
        self.window_bytes = self.window_bytes.min(WINDOW_MAX_BYTES);
    }

    /// Takes a round trip, and the shortest one so far.
    pub(super) fn on_round_trip(&mut self, sample: Duration, shortest: Duration) {
        let growth = (shortest / 8).clamp(GROWTH_SHORTEST, GROWTH_LONGEST);
        if self.window_bytes < self.threshold_bytes && sample > shortest + growth {
            self.threshold_bytes = self.window_bytes;
        }
    }

    /// A duplicate acknowledgement has arrived. Bytes up to `sent` were sent, and `in_flight` of them are not
    /// acknowledged. Returns whether to retransmit the first of these.
    pub(super) fn on_duplicate(&mut self, acknowledged: u64, sent: u64, in_flight: u64) -> bool {
        if self.recovers_at.is_some() {
            // Each duplicate means that a segment has left the network.
            self.window_bytes += self.segment_bytes;
            return false;
        }
        self.duplicates += 1;
        if self.duplicates != DUPLICATES || acknowledged < self.heard_of {
            return false;
        }
        self.threshold_bytes = (in_flight / 2).max(2 * self.segment_bytes);
        self.window_bytes = self.threshold_bytes + u64::from(DUPLICATES) * self.segment_bytes;
        (self.recovers_at, self.heard_of) = (Some(sent), sent);
        true
    }

    /// The retransmission timer has run out.
    pub(super) fn on_timeout(&mut self, sent: u64, in_flight: u64) {
        self.threshold_bytes = (in_flight / 2).max(2 * self.segment_bytes);
        self.window_bytes = self.segment_bytes;
        self.credit_bytes = 0;
        self.duplicates = 0;
        (self.recovers_at, self.heard_of) = (None, sent);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u64 = 1000;

    #[test]
    fn the_window_doubles_until_the_queue_grows_and_then_goes_up_by_one() {
        let ms = Duration::from_millis;
        let mut congestion = Congestion::new(MSS);
        for acknowledged in 1..=10 {
            congestion.on_round_trip(ms(20), ms(20));
            assert!(!congestion.on_acknowledged(MSS, acknowledged * MSS));
        }
        assert_eq!(congestion.window_bytes, 20 * MSS);
        congestion.on_round_trip(ms(25), ms(20));
        for acknowledged in 11..=30 {
            congestion.on_acknowledged(MSS, acknowledged * MSS);
        }
        assert_eq!(congestion.window_bytes, 21 * MSS);
    }

    #[test]
    fn three_duplicates_halve_what_is_on_its_way_and_send_again() {
        let mut congestion = Congestion::new(MSS);
        let duplicates: Vec<bool> = (0..4).map(|_| congestion.on_duplicate(0, 20 * MSS, 20 * MSS)).collect();
        assert_eq!(duplicates, [false, false, true, false]);
        assert_eq!(congestion.window_bytes, 14 * MSS);
        assert!(congestion.on_acknowledged(5 * MSS, 5 * MSS), "another one is lost");
        assert_eq!(congestion.window_bytes, 10 * MSS);
        assert!(!congestion.on_acknowledged(15 * MSS, 20 * MSS));
        assert_eq!(congestion.window_bytes, 10 * MSS);
    }

    #[test]
    fn a_time_out_begins_anew() {
        let mut congestion = Congestion::new(MSS);
        congestion.on_timeout(10 * MSS, 10 * MSS);
        assert_eq!((congestion.window_bytes, congestion.threshold_bytes), (MSS, 5 * MSS));
        let late = (0..5).any(|_| congestion.on_duplicate(0, 10 * MSS, 10 * MSS));
        assert!(!late, "duplicates of what was sent before say nothing new");
    }
}
