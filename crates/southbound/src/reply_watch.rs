//! Whether a switch answers as its profile says.
//!
//! ```text
//!   a barrier behind one flow mod, and its reply ──> Watch ──> the delay, if nothing else was under way ──> 128 of them ──> a verdict
//! ```
//!
//! In: what was sent and what came, with the time. Out: [`Departure`], once when the switch leaves its profile. It keeps one window of
//! delays. Other load of the switch must not count. So a delay counts only if the switch had nothing but one flow mod and the barrier to do
//! since it was idle, or since its last barrier reply. No other message may have come meanwhile. A profile says nothing of the network, so
//! that the round trip of the handshake is allowed on top.

use std::collections::VecDeque;

/// The quantiles of a curve, in hundredths.
pub const PERCENT: [u8; 5] = [5, 25, 50, 75, 95];

/// Values at [`PERCENT`], in microseconds.
pub type Curve = [u32; 5];

/// Delays of one verdict, at least: half a KiB.
const WINDOW: usize = 128;

/// A switch has left its profile if so many of a window are beyond its 95th or below its 5th quantile. By the profile, 6 of 128 are; that
/// chance brings 32 is less than one to 10^13.
const OUTSIDE_MAX: usize = WINDOW / 4;

/// A delay is outside only if it is further out than this, in microseconds: the time of a worker has whole milliseconds.
const SLACK_US: u32 = 3_000;

/// The same in hundredths of the quantile.
const SLACK_PERCENT: u32 = 10;

/// After a departure was told, the next one is told no sooner, in milliseconds.
const TELL_INTERVAL_MS: u64 = 3_600_000;

/// What a profile says of the delay between a barrier behind one flow mod and its reply. Between the two curves is what depends on how
/// full the hardware is, and on what it still does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplyDelay {
    /// The soonest.
    pub earliest_us: Curve,
    /// The latest.
    pub latest_us: Curve,
}

/// How a switch has left its profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Departure {
    /// Whether its replies come later than the profile says, and not sooner.
    pub is_later: bool,
    /// How many of the delays are outside.
    pub outside: usize,
    /// Of so many.
    pub of: usize,
    /// The bound that they are beyond, in microseconds.
    pub bound_us: u32,
    /// What the profile says.
    pub expected: ReplyDelay,
    /// What the switch did.
    pub observed_us: Curve,
}

/// The numbers of a session at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Messages to the switch so far.
    pub messages_out: u64,
    /// Flow mods to the switch so far.
    pub flow_mods: u64,
    /// Messages from the switch so far.
    pub messages_in: u64,
}

/// Barriers whose replies are awaited: 12 KiB. Further ones do not count.
const AWAITED_MAX: usize = 256;

/// Of so many replies in a row that a busy switch sends, the mean counts: the network brings some of them together.
const RUN_MAX: u32 = 8;

#[derive(Clone, Copy, Debug)]
struct Barrier {
    xid: u32,
    sent_ms: u64,
    at: Traffic,
    /// Whether one flow mod is all that was sent between the barrier before and this one.
    is_single: bool,
}

/// Replies that a switch sends one after another.
#[derive(Clone, Copy, Debug, Default)]
struct Run {
    elapsed_ms: u64,
    count: u32,
}

/// The delays of one switch.
#[derive(Clone, Debug)]
pub struct Watch {
    expected: ReplyDelay,
    round_trip_us: u32,
    awaited: VecDeque<Barrier>,
    /// The numbers at the last barrier.
    sent: Traffic,
    /// When the last reply came, and how many messages had come with it.
    replied_ms: u64,
    replied_in: u64,
    run: Run,
    delays_us: Vec<u32>,
    has_left: bool,
    tell_from_ms: u64,
}

impl Watch {
    /// Starts without delays.
    pub fn new(expected: ReplyDelay, round_trip_ms: u64) -> Self {
        Watch {
            expected,
            round_trip_us: micros(round_trip_ms),
            awaited: VecDeque::new(),
            sent: Traffic::default(),
            replied_ms: 0,
            replied_in: 0,
            run: Run::default(),
            delays_us: Vec::new(),
            has_left: false,
            tell_from_ms: 0,
        }
    }

    /// What it expects.
    pub fn expected(&self) -> &ReplyDelay {
        &self.expected
    }

    /// A barrier was sent. `is_quiet`: no statistics and no bundle are under way.
    pub fn on_barrier(&mut self, xid: u32, at: Traffic, is_quiet: bool, now_ms: u64) {
        if self.awaited.len() >= AWAITED_MAX {
            return;
        }
        let messages = at.messages_out.saturating_sub(self.sent.messages_out);
        let flow_mods = at.flow_mods.saturating_sub(self.sent.flow_mods);
        let is_single = is_quiet && (messages, flow_mods) == (2, 1);
        self.awaited.push_back(Barrier { xid, sent_ms: now_ms, at, is_single });
        self.sent = at;
    }

    /// A barrier reply came. Returns the verdict, if the switch has left its profile now.
    pub fn on_reply(&mut self, xid: u32, at: Traffic, now_ms: u64) -> Option<Departure> {
        let place = self.awaited.iter().position(|barrier| barrier.xid == xid)?;
        let barrier = self.awaited.drain(..=place).next_back()?;
        let was_idle = barrier.at.messages_in >= self.replied_in;
        let (from_ms, from_in) = match was_idle {
            true => (barrier.sent_ms, barrier.at.messages_in),
            false => (self.replied_ms, self.replied_in),
        };
        (self.replied_ms, self.replied_in) = (now_ms, at.messages_in);
        if place > 0 || !barrier.is_single || at.messages_in != from_in + 1 {
            self.run = Run::default();
            return None;
        }
        self.run.elapsed_ms += now_ms.saturating_sub(from_ms);
        self.run.count += 1;
        if self.run.count < RUN_MAX && !self.awaited.is_empty() {
            return None;
        }
        let Run { elapsed_ms, count } = std::mem::take(&mut self.run);
        self.delays_us.extend((0..count).map(|_| micros(elapsed_ms) / count));
        (self.delays_us.len() >= WINDOW).then(|| self.judge(now_ms))?
    }

    fn judge(&mut self, now_ms: u64) -> Option<Departure> {
        let mut delays = std::mem::take(&mut self.delays_us);
        delays.sort_unstable();
        let departure = self.departure(&delays);
        delays.clear();
        self.delays_us = delays;
        let was_in = !std::mem::replace(&mut self.has_left, departure.is_some());
        let told = departure.filter(|_| was_in && now_ms >= self.tell_from_ms);
        if told.is_some() {
            self.tell_from_ms = now_ms.saturating_add(TELL_INTERVAL_MS);
        }
        told
    }

    fn departure(&self, sorted: &[u32]) -> Option<Departure> {
        let [.., slowest] = self.expected.latest_us;
        let [fastest, ..] = self.expected.earliest_us;
        let too_late = plus_slack(slowest).saturating_add(self.round_trip_us);
        let too_soon = (fastest - fastest / 100 * SLACK_PERCENT).saturating_sub(SLACK_US);
        let later = sorted.iter().filter(|delay| **delay > too_late).count();
        let sooner = sorted.iter().filter(|delay| **delay < too_soon).count();
        let (is_later, outside, bound_us) =
            if later >= sooner { (true, later, too_late) } else { (false, sooner, too_soon) };
        (outside >= OUTSIDE_MAX).then(|| Departure {
            is_later,
            outside,
            of: sorted.len(),
            bound_us,
            expected: self.expected,
            observed_us: PERCENT.map(|percent| {
                let place = sorted.len() * usize::from(percent) / 100;
                sorted.get(place).copied().unwrap_or_default()
            }),
        })
    }
}

fn plus_slack(us: u32) -> u32 {
    us.saturating_add(us / 100 * SLACK_PERCENT).saturating_add(SLACK_US)
}

fn micros(ms: u64) -> u32 {
    u32::try_from(ms.saturating_mul(1_000)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const EXPECTED: ReplyDelay = ReplyDelay {
        earliest_us: [14_000, 18_000, 20_000, 24_000, 28_000],
        latest_us: [14_000, 18_000, 20_000, 24_000, 28_000],
    };

    /// A switch that answers barriers after these delays, one flow mod before each.
    struct Bench {
        watch: Watch,
        at: Traffic,
        xid: u32,
        now_ms: u64,
    }

    impl Bench {
        fn new(round_trip_ms: u64) -> Bench {
            Bench { watch: Watch::new(EXPECTED, round_trip_ms), at: Traffic::default(), xid: 0, now_ms: 0 }
        }

        fn barrier(&mut self, flow_mods: u64, is_quiet: bool) {
            self.xid += 1;
            self.at.flow_mods += flow_mods;
            self.at.messages_out += flow_mods + 1;
            self.watch.on_barrier(self.xid, self.at, is_quiet, self.now_ms);
        }

        fn reply(&mut self, delay_ms: u64) -> Option<Departure> {
            self.now_ms += delay_ms;
            self.at.messages_in += 1;
            self.watch.on_reply(self.xid, self.at, self.now_ms)
        }

        fn window(&mut self, delay_ms: impl Fn(usize) -> u64) -> Option<Departure> {
            let mut told = None;
            for number in 0..WINDOW {
                self.barrier(1, true);
                told = told.or(self.reply(delay_ms(number)));
            }
            told
        }
    }

    #[test]
    fn a_switch_that_answers_later_has_left_once_and_a_quarter_of_the_window_decides() {
        let mut bench = Bench::new(0);
        assert_eq!(bench.window(|_| 20), None);
        assert_eq!(bench.window(|number| if number < OUTSIDE_MAX - 1 { 50 } else { 20 }), None);
        let left = bench.window(|number| if number < OUTSIDE_MAX { 50 } else { 20 }).unwrap();
        assert_eq!((left.is_later, left.outside, left.of, left.bound_us), (true, 32, 128, 33_800));
        assert_eq!(left.observed_us, [20_000, 20_000, 20_000, 50_000, 50_000]);
        assert_eq!(left.expected, EXPECTED);
        assert_eq!(bench.window(|_| 50), None, "it is known");
        // It comes back and leaves again, within the hour and after it.
        assert_eq!((bench.window(|_| 20), bench.window(|_| 50)), (None, None));
        bench.now_ms += TELL_INTERVAL_MS;
        assert_eq!(bench.window(|_| 20), None);
        assert!(bench.window(|_| 50).is_some());
    }

    #[test]
    fn a_switch_that_answers_sooner_has_left_too_and_a_far_one_has_not() {
        let left = Bench::new(0).window(|_| 5).unwrap();
        assert_eq!((left.is_later, left.bound_us), (false, 9_600));
        assert_eq!(Bench::new(40).window(|_| 60), None, "the way takes 40 ms");
        assert!(Bench::new(10).window(|_| 60).is_some());
    }

    #[test]
    fn a_delay_counts_only_if_nothing_else_was_under_way() {
        let check = |disturb: &dyn Fn(&mut Bench)| {
            let mut bench = Bench::new(0);
            for _ in 0..3 * WINDOW {
                disturb(&mut bench);
                assert_eq!(bench.reply(500), None);
                assert_eq!(bench.watch.delays_us.len(), 0);
            }
        };
        check(&|bench| bench.barrier(2, true));
        check(&|bench| bench.barrier(0, true));
        check(&|bench| bench.barrier(1, false));
        // Another message of the switch between the barrier and its reply.
        check(&|bench| {
            bench.barrier(1, true);
            bench.at.messages_in += 1;
        });
        // Another message to it before the barrier.
        check(&|bench| {
            bench.at.messages_out += 1;
            bench.barrier(1, true);
        });
        // A barrier that the switch has not answered.
        check(&|bench| {
            bench.barrier(1, true);
            bench.barrier(1, true);
        });
    }

    #[test]
    fn of_a_busy_switch_the_time_between_replies_counts_and_replies_may_come_together() {
        let busy = |bench: &mut Bench, delays_ms: [u64; 8]| {
            let mut told = None;
            for _ in 0..WINDOW {
                let first = bench.xid + 1;
                (0..8).for_each(|_| bench.barrier(1, true));
                for (xid, delay_ms) in (first..).zip(delays_ms) {
                    bench.now_ms += delay_ms;
                    bench.at.messages_in += 1;
                    told = told.or(bench.watch.on_reply(xid, bench.at, bench.now_ms));
                }
            }
            told
        };
        assert_eq!(busy(&mut Bench::new(0), [20; 8]), None);
        assert_eq!(busy(&mut Bench::new(0), [80, 0, 0, 0, 80, 0, 0, 0]), None);
        let left = busy(&mut Bench::new(0), [60; 8]).unwrap();
        assert_eq!((left.is_later, left.observed_us), (true, [60_000; 5]));
        assert!(!busy(&mut Bench::new(0), [2; 8]).unwrap().is_later);
    }

    #[test]
    fn barriers_that_are_never_answered_are_bounded() {
        let mut bench = Bench::new(0);
        (0..10 * AWAITED_MAX).for_each(|_| bench.barrier(1, true));
        assert!(bench.watch.awaited.len() <= AWAITED_MAX);
    }

    proptest! {
        /// Brute force: a window is judged as by counting.
        #[test]
        fn a_window_is_judged_as_by_counting(delays in prop::collection::vec(0..80_u64, WINDOW)) {
            let mut bench = Bench::new(0);
            let told = bench.window(|number| delays[number]);
            let later = delays.iter().filter(|it| **it * 1_000 > 33_800).count();
            let sooner = delays.iter().filter(|it| **it * 1_000 < 9_600).count();
            prop_assert_eq!(told.is_some(), later.max(sooner) >= 32);
            if let Some(told) = told {
                prop_assert_eq!((told.is_later, told.outside), (later >= sooner, later.max(sooner)));
            }
        }
    }
}
