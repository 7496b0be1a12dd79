//! The distributions of meant and actual delays, and how far they are apart.
//!
//! In: pairs of delays. Out: the difference of their means, their Kolmogorov-Smirnov distance, and quantiles. Its size is fixed:
//! it counts delays in buckets.

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
pub struct Delays {
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
    /// A delay.
    pub fn add(&mut self, pair: DelayPair) {
        self.meant[bucket(pair.meant)] += 1;
        self.actual[bucket(pair.actual)] += 1;
        self.count += 1;
        self.meant_sum = self.meant_sum.saturating_add(pair.meant);
        self.actual_sum = self.actual_sum.saturating_add(pair.actual);
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The delays that a share of all does not exceed, from 0 to 1, of each distribution alone. `None` without delays. They are exact to the
    /// width of a bucket: 20 µs, or 1.6 %.
    pub fn quantile(&self, share: f64) -> Option<DelayPair> {
        let rank = ((self.count as f64 * share.clamp(0.0, 1.0)).ceil() as u64).max(1);
        Some(DelayPair { meant: at_rank(&self.meant, rank)?, actual: at_rank(&self.actual, rank)? })
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

/// The middle of the bucket in which the delay of this rank is, from 1.
fn at_rank(counts: &[u64], rank: u64) -> Option<Duration> {
    let mut passed = 0;
    let bucket = counts.iter().position(|count| {
        passed += count;
        passed >= rank
    })?;
    let (from, to) = (begin_ns(bucket), begin_ns(bucket + 1));
    Some(Duration::from_nanos(u64::midpoint(from, to)))
}

/// Where a bucket begins.
fn begin_ns(bucket: usize) -> u64 {
    let linear = LINEAR as usize;
    let units = match bucket.checked_sub(linear) {
        None => bucket as u64,
        Some(above) => {
            let (doubling, within) = (above / OF_A_DOUBLING, above % OF_A_DOUBLING);
            ((OF_A_DOUBLING + within) as u64) << (doubling + 1)
        }
    };
    units * UNIT_NS as u64
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
    fn a_bucket_begins_where_the_one_before_ends() {
        for at in 1..BUCKETS {
            let begin = Duration::from_nanos(begin_ns(at));
            assert_eq!((bucket(begin), bucket(begin - Duration::from_nanos(1))), (at, at - 1));
        }
    }

    #[test]
    fn a_quantile_is_near_that_of_a_list() {
        let of = delays((1..=1000).map(|number| (number * 100, number * 200)));
        assert_eq!(Delays::default().quantile(0.5), None);
        for (share, rank) in [(0.0, 1), (0.1, 100), (0.5, 500), (0.99, 990), (1.0, 1000)] {
            let DelayPair { meant, actual } = of.quantile(share).unwrap();
            for (found, exact) in [(meant, us(rank * 100)), (actual, us(rank * 200))] {
                let apart = found.abs_diff(exact);
                assert!(apart <= us(20).max(exact.mul_f64(0.016)), "{share}: {found:?} for {exact:?}");
            }
        }
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
