//! QQ plots: the quantiles of two distributions, side by side. Equal distributions are on the diagonal.

use super::samples::Samples;

/// A point of a QQ plot.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct QqPoint {
    /// The probability.
    pub probability: f64,
    /// The quantile of the first distribution.
    pub first_us: f64,
    /// The quantile of the second.
    pub second_us: f64,
}

impl QqPoint {
    /// How far the second quantile is from the first, as a share of the first. Two zeros are not apart.
    pub fn relative(&self) -> f64 {
        match self.second_us - self.first_us {
            0.0 => 0.0,
            apart => (apart / self.first_us).abs(),
        }
    }
}

/// The points of a QQ plot at `count` probabilities in the middle of equal steps.
pub fn qq(first: &Samples, second: &Samples, count: u32) -> Vec<QqPoint> {
    let point = |index: u32| {
        let probability = (f64::from(index) + 0.5) / f64::from(count);
        QqPoint {
            probability,
            first_us: first.quantile(probability),
            second_us: second.quantile(probability),
        }
    };
    (0..count).map(point).collect()
}
