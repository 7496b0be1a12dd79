//! The paper's rule for a proxy: which further delay makes a delay of one distribution into one of another.
//!
//! ```text
//!   observed t ──> q = F_base(t) ──> target F⁻¹(q) ──> extra = max(0, target − t)
//! ```
//!
//! In: observed delays, and a uniform number for each. Out: quantiles. The base is a histogram of the run. It starts
//! from a table that was measured before, so that the first delays have quantiles too. The run takes the table's place: another machine, or another
//! load, makes another base. It never forgets what it has observed: a run is minutes.

use super::draw::nanoseconds;
use crate::quantiles::Quantiles;

/// How many observations the table at the start counts for. Each observation of the run takes the place of one of them, so that after as many, nothing of
/// the table is left. With fewer, the first quantiles would be coarse; with more, a table of another machine would spoil more of them.
const WEIGHT_OF_BASE: usize = 128;
/// Buckets for each doubling, as a power of two: a bucket is at most 3 % wide.
const SUB_BITS: u32 = 5;
const BUCKETS: usize = ((64 - SUB_BITS as usize) + 1) << SUB_BITS;

/// The distribution of a base: the real switch that a proxy stands before.
#[derive(Clone, Debug)]
pub(super) struct QuantileMatch {
    /// A Fenwick tree: counts of buckets, so that a cumulative count takes a dozen steps.
    tree: Vec<u64>,
    total: u64,
    /// The buckets of the table's delays that the run has not replaced yet. What is left at any time is spread over the whole table.
    of_table: Vec<u16>,
}

impl QuantileMatch {
    /// Starts from the distribution that the base had before.
    pub(super) fn new(base: &Quantiles) -> Self {
        let mut matching = QuantileMatch { tree: vec![0; BUCKETS + 1], total: 0, of_table: Vec::new() };
        for number in 0..WEIGHT_OF_BASE {
            // In the order of reversed bits, each beginning of the list is spread.
            let reversed = number.reverse_bits() >> (usize::BITS - WEIGHT_OF_BASE.ilog2());
            let middle = (reversed as f64 + 0.5) / WEIGHT_OF_BASE as f64;
            let bucket = bucket_of(nanoseconds(base.at(middle)));
            matching.add(bucket);
            // There are fewer than 2^16.
            matching.of_table.push(bucket as u16);
        }
        matching
    }

    /// Records an observed delay, and returns its quantile, between 0 and 1. `u` is a uniform number: it selects one of the quantiles of
    /// delays that the histogram does not tell apart. So the quantiles are uniform if the base does not change.
    pub(super) fn quantile(&mut self, observed_ns: u64, u: f64) -> f64 {
        let bucket = bucket_of(observed_ns);
        self.add(bucket);
        if let Some(replaced) = self.of_table.pop() {
            self.remove(usize::from(replaced));
        }
        let (below, with) = (self.count_below(bucket), self.count_below(bucket + 1));
        (below as f64 + (with - below) as f64 * u.clamp(0.0, 1.0)) / self.total as f64
    }

    fn add(&mut self, bucket: usize) {
        let mut index = bucket + 1;
        while let Some(count) = self.tree.get_mut(index) {
            *count += 1;
            index += index & index.wrapping_neg();
        }
        self.total += 1;
    }

    /// Takes out an observation that was added.
    fn remove(&mut self, bucket: usize) {
        let mut index = bucket + 1;
        while let Some(count) = self.tree.get_mut(index) {
            *count -= 1;
            index += index & index.wrapping_neg();
        }
        self.total -= 1;
    }

    /// How many observations are in buckets before this one.
    fn count_below(&self, bucket: usize) -> u64 {
        let (mut index, mut count) = (bucket, 0);
        while index > 0 {
            count += self.tree[index];
            index &= index - 1;
        }
        count
    }
}

/// The bucket of a delay. Below 2^SUB_BITS each value has its own.
fn bucket_of(ns: u64) -> usize {
    let exponent = 63 - (ns | 1).leading_zeros();
    if exponent < SUB_BITS {
        // Less than 2^SUB_BITS.
        return ns as usize;
    }
    let shift = exponent - SUB_BITS;
    ((shift as usize + 1) << SUB_BITS) + ((ns >> shift) as usize - (1 << SUB_BITS))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::random::{Random, Stream};

    #[test]
    fn buckets_rise_and_are_narrow() {
        let mut before = (0, 0);
        for shift in 0..64 {
            for ns in [1u64 << shift, (1 << shift) + (1 << shift) / 3, u64::MAX >> (63 - shift)] {
                let bucket = bucket_of(ns);
                assert!(bucket < BUCKETS);
                assert!(bucket >= before.1 || ns < before.0, "{ns}");
                before = (ns, bucket);
            }
        }
        assert_eq!(bucket_of(1_000_000), bucket_of(1_010_000));
        assert_ne!(bucket_of(1_000_000), bucket_of(1_040_000));
    }

    #[test]
    fn counts_are_those_of_a_list() {
        let mut random = Random::new(5, Stream::Base);
        let mut matching = QuantileMatch { tree: vec![0; BUCKETS + 1], total: 0, of_table: Vec::new() };
        let mut all = Vec::new();
        for _ in 0..3000 {
            let ns = random.next_u64() >> random.below(64);
            matching.add(bucket_of(ns));
            all.push(bucket_of(ns));
            if random.below(3) == 0 {
                matching.remove(all.swap_remove(random.below(all.len() as u64) as usize));
            }
            let bucket = random.below(BUCKETS as u64) as usize;
            assert_eq!(
                matching.count_below(bucket),
                all.iter().filter(|other| **other < bucket).count() as u64
            );
        }
    }

    /// How much longer a delay must become to be one of the target's distribution.
    fn extra_ns(matching: &mut QuantileMatch, observed_ns: u64, u: f64, target: &Quantiles) -> u64 {
        nanoseconds(target.at(matching.quantile(observed_ns, u))).saturating_sub(observed_ns)
    }

    #[test]
    fn delays_of_the_base_become_delays_of_the_target() {
        let base = Quantiles::new(&[(0.0, 100.0), (0.5, 5_000.0), (1.0, 40_000.0)]).unwrap();
        let target = Quantiles::new(&[(0.0, 50_000.0), (0.8, 90_000.0), (1.0, 400_000.0)]).unwrap();
        let mut matching = QuantileMatch::new(&base);
        let mut random = Random::new(1, Stream::Base);
        let mut delays: Vec<u64> = (0..50_000)
            .map(|_| {
                let observed = nanoseconds(base.at(random.share()));
                observed + extra_ns(&mut matching, observed, random.share(), &target)
            })
            .collect();
        delays.sort_unstable();
        for q in [0.05, 0.25, 0.5, 0.75, 0.95] {
            let (got, meant) = (delays[(q * 5e4) as usize] as f64 / 1e3, target.at(q));
            assert!((got - meant).abs() < 0.02 * meant, "quantile {q}: {got} µs instead of {meant}");
        }
    }

    #[test]
    fn a_table_of_another_machine_is_replaced_by_the_run() {
        let mut matching = QuantileMatch::new(&Quantiles::constant(1.0));
        let mut random = Random::new(1, Stream::Base);
        let mut quantiles = Vec::new();
        for _ in 0..10_000 {
            let observed = 1_000_000 + random.below(1_000_000);
            quantiles.push(matching.quantile(observed, random.share()));
        }
        assert_eq!(matching.total, 10_000, "nothing of the table is left");
        let later = &quantiles[WEIGHT_OF_BASE..];
        for share in [0.1, 0.25, 0.5, 0.75, 0.9] {
            let below =
                later.iter().filter(|quantile| **quantile < share).count() as f64 / later.len() as f64;
            assert!((below - share).abs() < 0.02, "{below} are below {share}");
        }
    }

    #[test]
    fn what_is_left_of_the_table_is_spread_over_it() {
        let base = Quantiles::new(&[(0.0, 0.0), (1.0, 1e6)]).unwrap();
        let mut matching = QuantileMatch::new(&base);
        for _ in 0..WEIGHT_OF_BASE / 2 {
            matching.quantile(5_000_000_000, 0.5);
        }
        // Half of all observations are above all of the table.
        for share in [0.25, 0.5, 0.75] {
            let below = matching.count_below(bucket_of((share * 1e9) as u64)) as f64 / WEIGHT_OF_BASE as f64;
            assert!((below - share / 2.0).abs() < 0.03, "{below} are below {share} of the table");
        }
    }
}
