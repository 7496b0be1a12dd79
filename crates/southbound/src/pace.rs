//! Slows the reading of a switch that sends events faster than the apps read them.
//!
//! In: how many of its events had to wait for an app, and the time. Out: until when the switch is not read, so that
//! TCP slows it down. It never holds back a switch whose events the apps read in time. It never does so because of
//! packet-ins, which may be dropped.
//!
//! Without it a switch that floods with events that must not be dropped, such as port statuses, fills an app's buffer
//! within milliseconds. Then it looks as if the app had stopped reading, although it reads as fast as it can.

/// How long a flooding switch waits, and the window in which its events are counted, in milliseconds. Four reads a
/// second bring about three thousand events. An app reads more than that even on a busy machine. If an app reads
/// nothing at all, the node detects that within five seconds.
const HOLD_MS: u64 = 250;

/// How many waiting events in that window have no consequence. A switch sends about this many when a line card is
/// removed.
const FREE_EVENTS: usize = 64;

/// Connections that are held at the same time wait one after the other, up to this time in milliseconds. It is far
/// below the echo timeout.
const LONGEST_HOLD_MS: u64 = 2_000;

/// The pace of one connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pace {
    counted_since_ms: u64,
    waited: usize,
    held_until_ms: u64,
}

impl Pace {
    /// `waited` events of this connection had to wait for an app. `held` is how many other connections are held now.
    pub fn on_waited(&mut self, waited: usize, held: usize, now_ms: u64) {
        if now_ms.saturating_sub(self.counted_since_ms) >= HOLD_MS {
            *self = Pace { counted_since_ms: now_ms, ..Pace::default() };
        }
        self.waited = self.waited.saturating_add(waited);
        if self.waited > FREE_EVENTS {
            let rounds = u64::try_from(held).unwrap_or(u64::MAX).saturating_add(1);
            let hold_ms = HOLD_MS.saturating_mul(rounds).min(LONGEST_HOLD_MS);
            self.held_until_ms = now_ms.saturating_add(hold_ms);
        }
    }

    /// Whether the connection is not read now.
    pub fn is_held(&self, now_ms: u64) -> bool {
        now_ms < self.held_until_ms
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Events are `(when, how many waited)`, while `others` connections are held. Checks when the connection is read
    /// again.
    fn check(events: &[(u64, usize)], others: usize, read_again_ms: u64) {
        let mut pace = Pace::default();
        events.iter().for_each(|(now_ms, waited)| pace.on_waited(*waited, others, *now_ms));
        let last_ms = events.last().map_or(0, |(now_ms, _)| *now_ms);
        let found = (last_ms..).find(|now_ms| !pace.is_held(*now_ms));
        assert_eq!(found, Some(read_again_ms), "{events:?} with {others} others held");
    }

    #[test]
    fn who_floods_waits_and_nobody_else() {
        check(&[(1_000, 0)], 0, 1_000);
        check(&[(1_000, 64)], 0, 1_000);
        check(&[(1_000, 65)], 0, 1_250);
        check(&[(1_000, usize::MAX), (1_001, usize::MAX)], 0, 1_251);
    }

    #[test]
    fn many_small_reads_are_one_flood_and_what_is_slow_is_none() {
        check(&[(1_000, 40), (1_200, 40)], 0, 1_450);
        check(&[(1_000, 40), (1_250, 40), (1_500, 40)], 0, 1_500);
    }

    #[test]
    fn the_more_flood_the_longer_each_waits_up_to_a_bound() {
        check(&[(1_000, 800)], 3, 2_000);
        check(&[(1_000, 800)], 4_000, 3_000);
        check(&[(1_000, 800)], usize::MAX, 3_000);
    }
}
