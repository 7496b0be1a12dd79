//! Compares distributions of delays: an emulator with its target, a target with itself, a profile with another.
//!
//! ```text
//!   values in the order of their measurement ──> Samples ──> Ks, MeanDifference, QqPoint ──> Comparison
//!                                                     └────> Quantiles, with a fifth held back to judge them
//! ```
//!
//! In: numbers, and a seed for what is random. Out: numbers. It judges nothing by itself: limits come from the caller.

mod bootstrap;
mod changes;
mod fitting;
mod itself;
mod ks;
mod qq;
mod samples;
mod tuning;

pub use bootstrap::{Bootstrap, MeanDifference, RESAMPLES_MAX, mean_difference};
pub use changes::{Change, changes};
pub use fitting::{Fitted, TABLE_POINTS, fit, table};
pub use itself::{SPLITS_MAX, SelfDistance, halves, runs};
pub use ks::{Ks, ks, ks_limit, ks_of_tables, ks_to_table};
pub use qq::{QqPoint, qq};
pub use samples::{BadSamples, SAMPLES_MAX, Samples};
pub use tuning::{Correction, QqDistance};

/// Two distributions side by side.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// The KS distance.
    pub ks: Ks,
    /// The mean of the second minus that of the first.
    pub mean: MeanDifference,
    /// The same as a share of the first mean. Infinite if that is 0 and the other is not.
    pub mean_relative: f64,
    /// The QQ plot.
    pub qq: Vec<QqPoint>,
}

/// Points of the QQ plot of a comparison: each percent, in its middle.
const QQ_POINTS: u32 = 100;

impl Comparison {
    /// Compares a second distribution with a first, the target.
    pub fn of(first: &Samples, second: &Samples, bootstrap: &Bootstrap) -> Self {
        let mean = mean_difference(first, second, bootstrap);
        let mean_relative = match mean.difference_us {
            0.0 => 0.0,
            apart => (apart / first.mean_us()).abs(),
        };
        Comparison { ks: ks(first, second), mean, mean_relative, qq: qq(first, second, QQ_POINTS) }
    }

    /// The largest relative distance of a quantile up to this probability.
    pub fn quantiles_apart(&self, up_to: f64) -> f64 {
        let points = self.qq.iter().filter(|point| point.probability <= up_to);
        points.map(QqPoint::relative).fold(0.0, f64::max)
    }
}
