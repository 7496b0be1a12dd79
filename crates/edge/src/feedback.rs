//! The rate that a receiving VNIC tells all its senders: R ← R·(1 − ½(y − C)/C), as EyeQ (NSDI 2013) has it.
//!
//! In: the capacity C of the VNIC in this interval, and the rates that its senders had (their sum is y). Out: R.
//! It meters nothing, sends nothing and knows no time: the caller has intervals.
//!
//! The formula alone has two weaknesses, and two bounds mend them:
//!
//! * A full link hides how much senders would send: y is at most the link's rate. So the formula goes down by one percent an interval, and
//!   for y > 3C it would be negative. Therefore, on congestion, R falls at once to the *level*: the equal share of all senders that use
//!   what they have, when the others keep what they use. It is never below C by the number of senders.
//! * R does not rise above C.
//!
//! A packet more or less in an interval is no congestion, and on a slow link it is more than what a full link has above C. So bits beyond
//! C add up in an imaginary queue that C drains. If more than one and a half packets are in it, there is congestion. A sender that
//! begins is expected to want more than is left: for two intervals, a nearly used C counts as congestion. The first shows only a part
//! of what it sends.

use crate::shares;

/// A sender that uses this part of R is limited by R. One that uses less has no more to send, or a full link drops what it sends.
const USES_ITS_RATE: f64 = 0.8;

/// If there is congestion again soon after R fell, the link drops packets of senders that seemed to have no more to send. Then this part is
/// halved each time, and below this it is 0. At last all count as limited by R, so that R is C by their number.
const USES_MIN: f64 = 0.1;

/// Without congestion for so many intervals, the part is as at first.
const CALM: u8 = 6;

/// What may be in the imaginary queue: one and a half of the largest frames.
const QUEUE_BITS: f64 = 1.5 * 1514.0 * 8.0;

/// The gain of the control law: half of the error is corrected in an interval.
const GAIN: f64 = 0.5;

/// A sender with less than this part of an equal share is small: it neither begins nor is it limited. Its single packets would otherwise
/// take half of C from a large one.
const SMALL: f64 = 1.0 / 16.0;

/// A C that is used to this part is congested after a sender has begun …
const NEARLY_FULL: f64 = 0.95;

/// … for so many intervals.
const BEGINNING: u8 = 2;

/// The imaginary queue of a capacity.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Queue {
    bits: f64,
}

impl Queue {
    /// An interval has ended. Returns whether there is congestion. Then the queue is empty again.
    pub fn on_interval(&mut self, capacity_bps: u64, interval_ns: u64, sum_bps: u64) -> bool {
        let beyond = (sum_bps as f64 - capacity_bps as f64) * interval_ns as f64 / 1e9;
        self.bits = (self.bits + beyond).max(0.0);
        let is_congested = self.bits > QUEUE_BITS;
        if is_congested {
            self.bits = 0.0;
        }
        is_congested
    }
}

/// The rate of one receiving VNIC.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RateControl {
    rate_bps: f64,
    queue: Queue,
    senders: usize,
    beginning: u8,
    uses_its_rate: f64,
    calm: u8,
}

impl RateControl {
    /// Without a sender so far: the first one may use all.
    pub fn new(capacity_bps: u64) -> Self {
        RateControl {
            rate_bps: capacity_bps as f64,
            queue: Queue::default(),
            senders: 0,
            beginning: 0,
            uses_its_rate: USES_ITS_RATE,
            calm: 0,
        }
    }

    /// R.
    pub fn rate_bps(&self) -> u64 {
        self.rate_bps.round() as u64
    }

    /// An interval has ended. `rates_bps` has the rates of those that sent in it. Returns R.
    pub fn on_interval(&mut self, capacity_bps: u64, interval_ns: u64, rates_bps: &[u64]) -> u64 {
        let capacity = capacity_bps.max(1) as f64;
        let sum_bps = rates_bps.iter().fold(0u64, |sum, rate| sum.saturating_add(*rate));
        let sum = sum_bps as f64;
        let is_congested = self.queue.on_interval(capacity_bps, interval_ns, sum_bps);
        let mut wanted = self.rate_bps * (1.0 - GAIN * (sum - capacity) / capacity);
        let floor = capacity / rates_bps.len().max(1) as f64;
        let small = SMALL * floor;
        let has_begun = self.has_begun(rates_bps.iter().filter(|rate| **rate as f64 > small).count());
        if is_congested || has_begun && sum > NEARLY_FULL * capacity {
            self.queue = Queue::default();
            wanted = wanted.min(self.level(capacity_bps, small, rates_bps));
        }
        if is_congested {
            let half = self.uses_its_rate / 2.0;
            self.uses_its_rate = if half < USES_MIN { 0.0 } else { half };
            self.calm = 0;
        } else {
            self.calm = self.calm.saturating_add(1);
            if self.calm >= CALM {
                self.uses_its_rate = USES_ITS_RATE;
            }
        }
        self.rate_bps = wanted.clamp(floor, capacity);
        self.rate_bps()
    }

    /// Whether there are more senders than before, now or in the last interval.
    fn has_begun(&mut self, senders: usize) -> bool {
        if senders > self.senders {
            self.beginning = BEGINNING;
        }
        self.senders = senders;
        let has_begun = self.beginning > 0;
        self.beginning = self.beginning.saturating_sub(1);
        has_begun
    }

    /// The share of those that want more, by what was measured.
    fn level(&self, capacity_bps: u64, small: f64, rates_bps: &[u64]) -> f64 {
        let limited = (self.uses_its_rate * self.rate_bps).max(small);
        let demand = |rate: &u64| match *rate as f64 >= limited {
            true => shares::UNLIMITED_BPS,
            false => *rate,
        };
        let demands: Vec<u64> = rates_bps.iter().map(demand).collect();
        shares::level(capacity_bps, &demands) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const C: u64 = 10_000_000_000;
    const INTERVAL_NS: u64 = 200_000;

    /// Senders that want this much, each limited by R; the link carries a part of each if it is too much.
    fn sent(rate: u64, wants: &[u64], link: u64) -> Vec<u64> {
        let sent: Vec<u64> = wants.iter().map(|wanted| rate.min(*wanted)).collect();
        let sum: u64 = sent.iter().sum();
        if sum <= link {
            return sent;
        }
        sent.iter().map(|rate| (u128::from(*rate) * u128::from(link) / u128::from(sum)) as u64).collect()
    }

    /// The rate after so many intervals.
    fn after(intervals: usize, wants: &[u64], link: u64) -> u64 {
        let mut control = RateControl::new(C);
        for _ in 0..intervals {
            let rates = sent(control.rate_bps(), wants, link);
            control.on_interval(C, INTERVAL_NS, &rates);
        }
        control.rate_bps()
    }

    #[test]
    fn one_step_is_the_formula() {
        const M: u64 = 1_000_000;
        let check = |rate: u64, rates: &[u64], expected: u64| {
            let mut control = RateControl::new(rate);
            assert_eq!(control.on_interval(M, 1_000_000_000, rates), expected, "{rate} {rates:?}");
        };
        // R · (1 − ½(y − C)/C), in both directions.
        check(600_000, &[600_000, 0], 720_000);
        check(500_000, &[500_000, 300_000], 550_000);
        let mut known = RateControl { senders: 2, ..RateControl::new(800_000) };
        assert_eq!(known.on_interval(M, 1_000_000_000, &[800_000, 210_000]), 796_000);
        // No feedback about nothing: R stays within its bounds.
        check(M, &[], M);
        check(900_000, &[100_000], M);
        // Congested: the level, where the formula is slower (0.95) or negative.
        check(M, &[M, 100_000], 900_000);
        check(M, &[2_500_000, 2_500_000], 500_000);
    }

    #[test]
    fn single_packets_beyond_the_capacity_are_congestion_when_they_add_up() {
        // 10 Mb/s, 40 ms: 2 % more than C is two thirds of a packet in an interval.
        let (capacity, link) = (9_800_000, 10_000_000);
        let mut control = RateControl { senders: 2, ..RateControl::new(capacity) };
        let rates: Vec<u64> =
            (0..3).map(|_| control.on_interval(capacity, 40_000_000, &[link / 2; 2])).collect();
        assert!(rates[0] > 9_600_000 && rates[1] > 9_500_000 && rates[2] == capacity / 2, "{rates:?}");
    }

    #[test]
    fn two_senders_on_a_full_link_have_their_shares_after_three_intervals() {
        let link = C / 98 * 100;
        let rate = after(3, &[u64::MAX, u64::MAX], link);
        assert!(rate.abs_diff(C / 2) < C / 100, "{rate}");
    }

    #[test]
    fn a_sender_that_begins_has_its_share_after_two_intervals() {
        // 10 Mb/s, 40 ms: it began in the middle of the first interval.
        let (capacity, link) = (9_800_000, 10_000_000);
        let mut control = RateControl { senders: 1, ..RateControl::new(capacity) };
        control.on_interval(capacity, 40_000_000, &[link - 2_000_000, 2_000_000]);
        assert_eq!(control.on_interval(capacity, 40_000_000, &[link / 2; 2]), capacity / 2);
    }

    #[test]
    fn a_sender_whose_packets_the_link_drops_gets_its_share_too() {
        // Both send 6, and the link drops packets of one of them only.
        let (capacity, interval) = (9_800_000, 40_000_000);
        let mut control = RateControl { senders: 2, ..RateControl::new(6_000_000) };
        let rates: Vec<u64> =
            (0..9).map(|_| control.on_interval(capacity, interval, &[6_200_000, 3_800_000])).collect();
        assert!(rates[2] > 5_700_000 && rates[8] == capacity / 2, "{rates:?}");
    }

    #[test]
    fn single_packets_of_a_small_sender_do_not_take_from_a_large_one() {
        let (capacity, interval) = (9_800_000, 40_000_000);
        let mut control = RateControl::new(capacity);
        for step in 0..100 {
            // A small datagram in every third interval, beside a sender that uses all.
            let rates = [control.rate_bps(), 20_000];
            let rate =
                control.on_interval(capacity, interval, if step % 3 == 0 { &rates } else { &rates[..1] });
            assert!(rate > capacity / 100 * 95, "{rate} in interval {step}");
        }
    }

    #[test]
    fn a_sender_that_wants_less_leaves_the_rest() {
        let rate = after(20, &[u64::MAX, 3 * C / 10], C / 98 * 100);
        assert!(rate.abs_diff(7 * C / 10) < C / 50, "{rate}");
    }

    #[test]
    fn a_share_is_free_again_soon_after_a_sender_ends() {
        let mut control = RateControl::new(C);
        control.on_interval(C, INTERVAL_NS, &[C, C]);
        assert_eq!(control.rate_bps(), C / 2);
        let mut intervals = 0;
        while control.rate_bps() < C / 100 * 95 {
            let rate = control.rate_bps();
            control.on_interval(C, INTERVAL_NS, &[rate]);
            intervals += 1;
        }
        // With one sender, C is its floor.
        assert_eq!(intervals, 1);
        control.on_interval(C, INTERVAL_NS, &[C, C]);
        for _ in 0..8 {
            let rate = control.rate_bps();
            control.on_interval(C, INTERVAL_NS, &[rate, C / 100]);
        }
        assert!(control.rate_bps() > C / 100 * 93, "{}", control.rate_bps());
    }

    proptest! {
        #[test]
        fn the_rate_is_always_between_the_equal_share_and_the_capacity(
            capacity in 1..u64::MAX / 4,
            steps in prop::collection::vec(prop::collection::vec(0..u64::MAX / 64, 0..20), 1..20),
        ) {
            let mut control = RateControl::new(capacity);
            for rates in steps {
                let rate = control.on_interval(capacity, INTERVAL_NS, &rates) as f64;
                let floor = capacity as f64 / rates.len().max(1) as f64;
                prop_assert!(rate >= floor * 0.999_999 - 1.0 && rate <= capacity as f64 * 1.000_001 + 1.0);
            }
        }

        /// Whatever the senders want, the rate settles at the max-min level of their demands, within the tolerance and the
        /// slowness of the formula near its goal.
        #[test]
        fn it_settles_at_the_max_min_level(
            wants in prop::collection::vec(prop_oneof![Just(u64::MAX), 1..C], 1..9),
        ) {
            let rate = after(200, &wants, C / 98 * 100);
            let level = shares::level(C, &wants);
            let is_free = wants.iter().all(|wanted| *wanted <= level);
            prop_assert!(is_free || rate.abs_diff(level) <= level / 20, "{rate} {level}");
        }
    }
}
