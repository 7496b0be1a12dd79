//! Samples of a delay: as they were measured, and sorted.

use std::fmt;

/// Samples in one set. The experiments have thousands.
pub const SAMPLES_MAX: usize = 10_000_000;

/// One or more finite numbers.
#[derive(Clone, Debug, PartialEq)]
pub struct Samples {
    in_order: Vec<f64>,
    sorted: Vec<f64>,
}

/// Why numbers are no samples.
#[derive(Clone, Debug, PartialEq)]
pub enum BadSamples {
    /// None, or more than [`SAMPLES_MAX`].
    Count(usize),
    /// A number is infinite or not a number: its index, and itself.
    NotFinite(usize, f64),
}

impl fmt::Display for BadSamples {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BadSamples::Count(count) => write!(f, "there are {count} samples; expected 1 to {SAMPLES_MAX}"),
            BadSamples::NotFinite(index, value) => {
                write!(f, "sample {} is {value}; expected a finite number", index + 1)
            }
        }
    }
}

impl std::error::Error for BadSamples {}

impl Samples {
    /// Samples in the order of their measurement.
    pub fn new(in_order: Vec<f64>) -> Result<Self, BadSamples> {
        if in_order.is_empty() || in_order.len() > SAMPLES_MAX {
            return Err(BadSamples::Count(in_order.len()));
        }
        if let Some(index) = in_order.iter().position(|value| !value.is_finite()) {
            return Err(BadSamples::NotFinite(index, in_order[index]));
        }
        let mut sorted = in_order.clone();
        sorted.sort_by(f64::total_cmp);
        Ok(Samples { in_order, sorted })
    }

    /// All samples of several sets, one set after the other.
    pub fn pooled<'a>(sets: impl IntoIterator<Item = &'a Samples>) -> Result<Self, BadSamples> {
        Samples::new(sets.into_iter().flat_map(|set| set.in_order.iter().copied()).collect())
    }

    /// In the order of their measurement.
    pub fn in_order(&self) -> &[f64] {
        &self.in_order
    }

    /// From the smallest to the largest.
    pub fn sorted(&self) -> &[f64] {
        &self.sorted
    }

    /// How many; at least 1.
    pub fn count(&self) -> usize {
        self.sorted.len()
    }

    /// Their mean.
    pub fn mean_us(&self) -> f64 {
        self.in_order.iter().sum::<f64>() / self.count() as f64
    }

    /// The share of samples at or below a value.
    pub fn share_up_to(&self, value: f64) -> f64 {
        self.sorted.partition_point(|&sample| sample <= value) as f64 / self.count() as f64
    }

    /// The quantile at a probability: a straight line between the samples around it, from the smallest at 0 to the largest at 1.
    /// It is type 7 of Hyndman and Fan, Sample Quantiles in Statistical Packages, 1996.
    pub fn quantile(&self, probability: f64) -> f64 {
        let last = self.count() - 1;
        let position = if probability.is_nan() { 0.0 } else { probability.clamp(0.0, 1.0) * last as f64 };
        // Not above `last`, which is at most SAMPLES_MAX.
        let below = position.floor() as usize;
        let (low, high) = (self.sorted[below], self.sorted[(below + 1).min(last)]);
        (low + (high - low) * (position - below as f64)).clamp(low, high)
    }
}
