//! A distribution of delays as a quantile table: probabilities and the values below which they lie.
//!
//! In: points (probability, µs). Out: the value at a probability, and the probability of a value. Between two points it is a straight
//! line. Both directions are a binary search without allocation. It draws no random number: the caller brings it.

use std::fmt;

/// Points of a table. A measured curve has some hundred; more would not make it truer.
pub const POINTS_MAX: usize = 1024;

/// The largest value, a day. A longer delay is an outage and not a delay.
pub const VALUE_MAX_US: f64 = 86_400e6;

/// A quantile table. Its first probability is 0 (the minimum) and its last is 1 (the maximum).
#[derive(Clone, Debug, PartialEq)]
pub struct Quantiles {
    /// Strictly rising, from 0 to 1.
    probabilities: Box<[f64]>,
    /// Never falling; as many as probabilities.
    values_us: Box<[f64]>,
}

/// Why points are no quantile table.
#[derive(Clone, Debug, PartialEq)]
pub enum BadQuantiles {
    /// Fewer than two points, or more than [`POINTS_MAX`].
    Count(usize),
    /// The first probability is not 0.
    NoMinimum(f64),
    /// The last probability is not 1.
    NoMaximum(f64),
    /// A probability is not above the one before: its index, the one before, and itself.
    ProbabilityDoesNotRise(usize, f64, f64),
    /// A value is below the one before: its index, the one before, and itself.
    ValueFalls(usize, f64, f64),
    /// A value is negative, not a number, or above [`VALUE_MAX_US`]: its index, and itself.
    Value(usize, f64),
}

impl fmt::Display for BadQuantiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BadQuantiles::Count(count) => write!(f, "there are {count} points; expected 2 to {POINTS_MAX}"),
            BadQuantiles::NoMinimum(first) => {
                write!(f, "the first point is at probability {first}; expected 0, the minimum")
            }
            BadQuantiles::NoMaximum(last) => {
                write!(f, "the last point is at probability {last}; expected 1, the maximum")
            }
            BadQuantiles::ProbabilityDoesNotRise(index, before, now) => {
                write!(
                    f,
                    "point {} has probability {now} after {before}; expected rising probabilities",
                    index + 1
                )
            }
            BadQuantiles::ValueFalls(index, before, now) => {
                write!(
                    f,
                    "point {} falls from {before} to {now} µs; expected values that never fall",
                    index + 1
                )
            }
            BadQuantiles::Value(index, value) => {
                write!(f, "point {} is {value} µs; expected 0 to {VALUE_MAX_US}", index + 1)
            }
        }
    }
}

impl std::error::Error for BadQuantiles {}

impl Default for Quantiles {
    /// No delay.
    fn default() -> Self {
        Quantiles::constant(0.0)
    }
}

impl Quantiles {
    /// The table through these points (probability, µs).
    pub fn new(points: &[(f64, f64)]) -> Result<Self, BadQuantiles> {
        if points.len() < 2 || points.len() > POINTS_MAX {
            return Err(BadQuantiles::Count(points.len()));
        }
        let (first, last) = (points[0].0, points[points.len() - 1].0);
        if first != 0.0 {
            return Err(BadQuantiles::NoMinimum(first));
        }
        for (index, &(_, value)) in points.iter().enumerate() {
            if !(0.0..=VALUE_MAX_US).contains(&value) {
                return Err(BadQuantiles::Value(index, value));
            }
        }
        for (index, pair) in points.windows(2).enumerate() {
            let [(p0, v0), (p1, v1)] = [pair[0], pair[1]];
            // Written so that NaN does not rise either.
            if p1.partial_cmp(&p0) != Some(std::cmp::Ordering::Greater) {
                return Err(BadQuantiles::ProbabilityDoesNotRise(index + 1, p0, p1));
            }
            if v1 < v0 {
                return Err(BadQuantiles::ValueFalls(index + 1, v0, v1));
            }
        }
        if last != 1.0 {
            return Err(BadQuantiles::NoMaximum(last));
        }
        Ok(Quantiles {
            probabilities: points.iter().map(|point| point.0).collect(),
            // Adding zero makes -0 a 0, so that a table that was written is read back the same.
            values_us: points.iter().map(|point| point.1 + 0.0).collect(),
        })
    }

    /// Always this value. A value outside 0 to [`VALUE_MAX_US`] becomes the nearer end, and NaN becomes 0.
    pub fn constant(value_us: f64) -> Self {
        let value_us = if value_us.is_nan() { 0.0 } else { value_us.clamp(0.0, VALUE_MAX_US) + 0.0 };
        Quantiles { probabilities: [0.0, 1.0].into(), values_us: [value_us, value_us].into() }
    }

    /// The points (probability, µs).
    pub fn points(&self) -> impl ExactSizeIterator<Item = (f64, f64)> + '_ {
        self.probabilities.iter().copied().zip(self.values_us.iter().copied())
    }

    /// The smallest value.
    pub fn min_us(&self) -> f64 {
        self.values_us[0]
    }

    /// The largest value.
    pub fn max_us(&self) -> f64 {
        self.values_us[self.values_us.len() - 1]
    }

    /// The only value, if there is no other.
    pub fn as_constant(&self) -> Option<f64> {
        (self.min_us() == self.max_us()).then(|| self.min_us())
    }

    /// Whether it is always 0.
    pub fn is_zero(&self) -> bool {
        self.max_us() == 0.0
    }

    /// The mean of the distribution, exact for the straight lines between its points.
    pub fn mean_us(&self) -> f64 {
        let widths = self.probabilities.windows(2).map(|pair| pair[1] - pair[0]);
        let middles = self.values_us.windows(2).map(|pair| (pair[0] + pair[1]) / 2.0);
        widths.zip(middles).map(|(width, middle)| width * middle).sum()
    }

    /// The value at this probability: the inverse transform F⁻¹(q). With a uniform `q` it is a sample. A `q` outside 0 to 1 gives the
    /// minimum or the maximum, NaN the minimum.
    #[inline]
    pub fn at(&self, q: f64) -> f64 {
        let above = self.probabilities.partition_point(|&p| p <= q);
        if above == 0 {
            return self.min_us();
        }
        if above == self.probabilities.len() {
            return self.max_us();
        }
        line(q, self.point(above - 1), self.point(above))
    }

    /// The share of the distribution at or below this value: F(t). NaN gives 0.
    #[inline]
    pub fn cdf(&self, value_us: f64) -> f64 {
        let above = self.values_us.partition_point(|&value| value <= value_us);
        if above == 0 {
            return 0.0;
        }
        if above == self.values_us.len() {
            return 1.0;
        }
        line(value_us, swapped(self.point(above - 1)), swapped(self.point(above)))
    }

    /// The share of the distribution below this value: F(t−). It differs from [`Self::cdf`] where many samples have the same value.
    #[inline]
    pub fn cdf_below(&self, value_us: f64) -> f64 {
        let at_or_above = self.values_us.partition_point(|&value| value < value_us);
        if at_or_above == 0 {
            return 0.0;
        }
        if at_or_above == self.values_us.len() {
            return 1.0;
        }
        line(value_us, swapped(self.point(at_or_above - 1)), swapped(self.point(at_or_above)))
    }

    /// The quantile of an observed value. Where many samples have the same value, `u` (uniform) selects one of their quantiles, so that
    /// the quantiles of samples are uniform.
    #[inline]
    pub fn quantile_of(&self, value_us: f64, u: f64) -> f64 {
        let (low, high) = (self.cdf_below(value_us), self.cdf(value_us));
        low + (high - low) * u.clamp(0.0, 1.0)
    }

    /// The same shape with every value multiplied: slow motion. Values stay within 0 and [`VALUE_MAX_US`].
    pub fn times(&self, factor: f64) -> Self {
        self.map(|value| value * factor)
    }

    /// The same shape, moved. Values stay within 0 and [`VALUE_MAX_US`].
    pub fn plus_us(&self, shift_us: f64) -> Self {
        self.map(|value| value + shift_us)
    }

    fn map(&self, change: impl Fn(f64) -> f64) -> Self {
        let mut floor = 0.0_f64;
        let mut changed = self.clone();
        for value in &mut changed.values_us {
            let new = change(*value);
            floor = if new.is_nan() { floor } else { new.clamp(floor, VALUE_MAX_US) };
            *value = floor;
        }
        changed
    }

    fn point(&self, index: usize) -> (f64, f64) {
        (self.probabilities[index], self.values_us[index])
    }
}

fn swapped((p, v): (f64, f64)) -> (f64, f64) {
    (v, p)
}

/// The height at `x` of the line through two points, of which the second is to the right and not lower. Rounding never takes it
/// beyond either of them.
fn line(x: f64, (x0, y0): (f64, f64), (x1, y1): (f64, f64)) -> f64 {
    (y0 + (y1 - y0) * ((x - x0) / (x1 - x0))).clamp(y0, y1)
}
