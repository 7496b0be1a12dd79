//! The distributions of meant and actual delays, and how far they are apart.
//!
//! In: pairs of delays. Out: the difference of their means, and their Kolmogorov-Smirnov distance. Its size is fixed: it
//! counts delays in buckets.

use std::time::Duration;

/// The width of the smallest buckets: finer differences are below what a loop can do.
const UNIT_NS: u128 = 20_000;
/// Up to this many units, buckets have the width of a unit. Then each doubling has half as many buckets, so that a bucket
/// is at most 1.6 % wide.
const LINEAR: u128 = 128;
const OF_A_DOUBLING: usize = LINEAR as usize / 2;
/// Doublings above the linear part: up to 167 seconds. Longer delays are in the last bucket.
const DOUBLINGS: usize = 16;
const BUCKETS: usize = LINEAR as usize + DOUBLINGS * OF_A_DOUBLING;

/// A delay as it was meant, and as it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DelayPair {
    /// What the model asked for.
    pub meant: Duration,
    /// What the packet or message got.
    pub actual: Duration,
}

/// The delays of a run.
#[derive(Clone, Debug)]
pub(super) struct Delays {
    meant: Vec<u64>,
    actual: Vec<u64>,
    count: u64,
    meant_sum: Duration,
    actual_sum: Duration,
}

impl Default for Delays {
    fn default() -> Self {
        let empty = || vec![0; BUCKETS];
        Delays {
            meant: empty(),
            actual: empty(),
            count: 0,
            meant_sum: Duration::ZERO,
            actual_sum: Duration::ZERO,
        }
    }
}

impl Delays {
    pub(super) fn add(&mut self, pair: DelayPair) {
        self.meant[bucket(pair.meant)] += 1;
        self.actual[bucket(pair.actual)] += 1;
        self.count += 1;
        self.meant_sum = self.meant_sum.saturating_add(pair.meant);
        self.actual_sum = self.actual_sum.saturating_add(pair.actual);
    }

    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// The difference of the means, and the meant mean, in seconds.
    pub(super) fn mean_shift_s(&self) -> (f64, f64) {
        let count = self.count.max(1) as f64;
        let mean = |sum: Duration| sum.as_secs_f64() / count;
        (mean(self.actual_sum) - mean(self.meant_sum), mean(self.meant_sum))
    }

    /// The largest difference between both distribution functions, where a difference of less than a bucket in time
    /// does not count. Without this, a constant delay that is a microsecond late would have the distance 1.
    pub(super) fn distance(&self) -> f64 {
        let (mut meant, mut actual, mut largest) = (0, 0, 0i128);
        for bucket in 0..BUCKETS {
            // What one has up to this bucket, against what the other has up to the next one.
            let next = |counts: &[u64]| i128::from(counts.get(bucket + 1).copied().unwrap_or(0));
            meant += i128::from(self.meant[bucket]);
            actual += i128::from(self.actual[bucket]);
            largest =
                largest.max(meant - (actual + next(&self.actual))).max(actual - (meant + next(&self.meant)));
        }
        largest as f64 / self.count.max(1) as f64
    }
}

/// The bucket of a delay.
fn bucket(delay: Duration) -> usize {
    let units = delay.as_nanos() / UNIT_NS;
    if units < LINEAR {
        return units as usize;
    }
    // At least 7, since LINEAR is 2^7.
    let doubling = units.ilog2() as usize - LINEAR.ilog2() as usize;
    let within = (units >> (doubling + 1)) as usize - OF_A_DOUBLING;
    (LINEAR as usize + doubling * OF_A_DOUBLING + within).min(BUCKETS - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const fn us(us: u64) -> Duration {
        Duration::from_micros(us)
    }

    fn delays(pairs: impl Iterator<Item = (u64, u64)>) -> Delays {
        let mut delays = Delays::default();
        pairs.for_each(|(meant, actual)| delays.add(DelayPair { meant: us(meant), actual: us(actual) }));
        delays
    }

    /// The distance by its definition, for the multiset of each side, without buckets.
    fn distance_of_all(pairs: &[(u64, u64)]) -> f64 {
        let up_to =
            |x: u64, of: fn(&(u64, u64)) -> u64| pairs.iter().filter(|pair| of(pair) <= x).count() as f64;
        let at = pairs.iter().flat_map(|(meant, actual)| [*meant, *actual]);
        let apart = at.map(|x| (up_to(x, |pair| pair.0) - up_to(x, |pair| pair.1)).abs());
        apart.fold(0.0, f64::max) / pairs.len().max(1) as f64
    }

    #[test]
    fn buckets_follow_each_other_without_a_gap() {
        let mut last = 0;
        for us_now in (0..200_000).chain((200_000..200_000_000).step_by(997)) {
            let now = bucket(us(us_now));
            assert!(now == last || now == last + 1, "{us_now} µs: {last} then {now}");
            last = now;
        }
        assert_eq!(bucket(Duration::MAX), BUCKETS - 1);
    }

    #[test]
    fn a_shift_below_a_bucket_does_not_count_and_a_larger_one_does() {
        let shifted = |meant, by| delays((0..100).map(|_| (meant, meant + by))).distance();
        assert_eq!((shifted(5_000, 0), shifted(5_119, 1), shifted(5_000, 30)), (0.0, 0.0, 0.0));
        assert_eq!((shifted(5_000, 200), shifted(100_000, 4_000)), (1.0, 1.0));
        assert_eq!(delays(std::iter::empty()).distance(), 0.0);
    }

    #[test]
    fn the_mean_shift_is_that_of_the_delays() {
        let (shift, mean) = delays([(1000, 1100), (3000, 3300)].into_iter()).mean_shift_s();
        assert!((shift - 200e-6).abs() < 1e-9 && (mean - 2000e-6).abs() < 1e-9, "{shift} {mean}");
    }

    proptest! {
        #[test]
        fn it_is_at_most_the_distance_without_buckets(pairs in proptest::collection::vec((0..50_000u64, 0..50_000u64), 1..60)) {
            let apart = delays(pairs.iter().copied()).distance();
            prop_assert!(apart <= distance_of_all(&pairs) + 1e-9);
        }

        #[test]
        fn delays_that_are_far_apart_have_the_distance_without_buckets(pairs in proptest::collection::vec((0..30u64, 0..30u64), 1..60)) {
            // Each value is several buckets from the next.
            let pairs: Vec<(u64, u64)> = pairs.iter().map(|(meant, actual)| (meant * 10_000, actual * 10_000)).collect();
            let apart = delays(pairs.iter().copied()).distance();
            prop_assert!((apart - distance_of_all(&pairs)).abs() < 1e-9);
        }
    }
}
