//! The difference of two means, with an interval by block bootstrap.
//!
//! Delays of a queue depend on the ones before, so that independent draws would make the interval too narrow. Blocks of neighbours are
//! drawn instead (Politis and Romano, A circular block-resampling procedure for stationary data, 1992).

use super::samples::Samples;
use crate::random::Random;

/// Resamples of one interval.
pub const RESAMPLES_MAX: u32 = 100_000;

/// How to draw.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bootstrap {
    /// Neighbours in a block: about as many as a delay still depends on. From 1 to the number of samples.
    pub block: usize,
    /// How many times both means are computed again. Bounded by [`RESAMPLES_MAX`].
    pub resamples: u32,
    /// The seed of the draws.
    pub seed: u64,
}

impl Default for Bootstrap {
    /// Blocks of 20, 2000 times.
    fn default() -> Self {
        Bootstrap { block: 20, resamples: 2000, seed: 1 }
    }
}

/// The mean of the second samples minus that of the first.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MeanDifference {
    /// The difference.
    pub difference_us: f64,
    /// The lower end of its 95 % interval.
    pub low_us: f64,
    /// The upper end.
    pub high_us: f64,
}

impl MeanDifference {
    /// Half the width of the interval: the number behind ±.
    pub fn half_width_us(&self) -> f64 {
        (self.high_us - self.low_us) / 2.0
    }
}

/// The difference of the means, and the interval in which 95 % of the resampled differences are.
pub fn mean_difference(first: &Samples, second: &Samples, bootstrap: &Bootstrap) -> MeanDifference {
    let mut random = Random::new(bootstrap.seed);
    let (a, b) =
        (Blocks::new(first.in_order(), bootstrap.block), Blocks::new(second.in_order(), bootstrap.block));
    let resamples = bootstrap.resamples.clamp(1, RESAMPLES_MAX);
    let differences: Vec<f64> = (0..resamples).map(|_| b.mean(&mut random) - a.mean(&mut random)).collect();
    let difference_us = second.mean_us() - first.mean_us();
    match Samples::new(differences) {
        Ok(differences) => MeanDifference {
            difference_us,
            low_us: differences.quantile(0.025),
            high_us: differences.quantile(0.975),
        },
        // Sums that overflow have no interval.
        Err(_) => MeanDifference { difference_us, low_us: f64::NEG_INFINITY, high_us: f64::INFINITY },
    }
}

/// Sums of blocks of neighbours. The last is a neighbour of the first, so that all are drawn equally often.
struct Blocks {
    /// The sum of the first k samples of two rounds.
    sums: Vec<f64>,
    count: usize,
    block: usize,
}

impl Blocks {
    fn new(in_order: &[f64], block: usize) -> Self {
        let mut sum = 0.0;
        let mut sums = vec![0.0];
        for value in in_order.iter().chain(in_order) {
            sum += value;
            sums.push(sum);
        }
        Blocks { sums, count: in_order.len(), block: block.clamp(1, in_order.len()) }
    }

    /// The mean of as many samples as there are, in blocks from random places. The last block is cut.
    fn mean(&self, random: &mut Random) -> f64 {
        let mut left = self.count;
        let mut sum = 0.0;
        while left > 0 {
            let length = self.block.min(left);
            let start = random.below(self.count);
            sum += self.sums[start + length] - self.sums[start];
            left -= length;
        }
        sum / self.count as f64
    }
}
