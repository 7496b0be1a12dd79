//! Statistics of many measurements: percentiles, medians, pairwise ratios.
//!
//! Pure. It measures nothing.

use hdrhistogram::Histogram;
use std::time::Duration;

/// Longer latencies are counted as this one. A round is shorter.
const LONGEST_NS: u64 = 3_600_000_000_000;
/// The significant digits of each latency: a percentile is right within 0.1 %.
const DIGITS: u8 = 3;

/// Latencies, in a histogram of constant size.
#[derive(Clone, Debug)]
pub struct Latencies {
    // `None` if the histogram refused the bounds above. A test shows that it does not.
    histogram: Option<Histogram<u64>>,
}

impl Default for Latencies {
    fn default() -> Self {
        Latencies { histogram: Histogram::new_with_bounds(1, LONGEST_NS, DIGITS).ok() }
    }
}

/// The distribution of latencies, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Percentiles {
    /// The number of latencies.
    pub count: u64,
    /// The median.
    pub p50_us: f64,
    /// The 90th percentile.
    pub p90_us: f64,
    /// The 99th percentile.
    pub p99_us: f64,
    /// The 99.9th percentile.
    pub p99_9_us: f64,
    /// The longest latency.
    pub max_us: f64,
}

impl Latencies {
    /// Adds one latency.
    #[inline]
    pub fn record(&mut self, latency: Duration) {
        if let Some(histogram) = &mut self.histogram {
            histogram.saturating_record(u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX));
        }
    }

    /// Adds the latencies of another measurement.
    pub fn add(&mut self, other: &Latencies) {
        if let (Some(histogram), Some(other)) = (&mut self.histogram, &other.histogram) {
            // Both have the same bounds, so it cannot fail.
            let _ = histogram.add(other);
        }
    }

    /// Their distribution, or `None` if there are no latencies.
    pub fn percentiles(&self) -> Option<Percentiles> {
        let histogram = self.histogram.as_ref().filter(|histogram| !histogram.is_empty())?;
        let us = |ns: u64| ns as f64 / 1000.0;
        let at = |quantile| us(histogram.value_at_quantile(quantile));
        Some(Percentiles {
            count: histogram.len(),
            p50_us: at(0.5),
            p90_us: at(0.9),
            p99_us: at(0.99),
            p99_9_us: at(0.999),
            max_us: us(histogram.max()),
        })
    }
}

/// The median: the middle value, or the mean of the two in the middle. `None` for an empty list.
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let upper = *sorted.get(sorted.len() / 2)?;
    if sorted.len() % 2 == 1 { Some(upper) } else { Some((sorted[sorted.len() / 2 - 1] + upper) / 2.0) }
}

/// The comparison of two series of rounds that were measured in turns.
#[derive(Clone, Debug, PartialEq)]
pub struct Ratio {
    /// For each pair, the first value divided by the second.
    pub pairs: Vec<f64>,
    /// The median of the pairs' ratios.
    pub median: f64,
    /// The smallest ratio.
    pub min: f64,
    /// The largest ratio.
    pub max: f64,
}

/// Compares two series pair by pair. `None` if no pair has a second value above zero.
pub fn ratio(first: &[f64], second: &[f64]) -> Option<Ratio> {
    let pairs: Vec<f64> = first
        .iter()
        .zip(second)
        .filter(|(_, below)| **below > 0.0)
        .map(|(above, below)| above / below)
        .collect();
    let (min, max) = pairs
        .iter()
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(min, max), ratio| (min.min(*ratio), max.max(*ratio)));
    median(&pairs).map(|median| Ratio { pairs, median, min, max })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_nothing_there_is_no_figure() {
        assert_eq!(median(&[]), None);
        assert_eq!(ratio(&[1.0], &[]), None);
        assert_eq!(ratio(&[1.0, 2.0], &[0.0, 0.0]), None);
        assert_eq!(Latencies::default().percentiles(), None);
    }

    #[test]
    fn the_median_is_in_the_middle() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
    }

    #[test]
    fn ratios_are_of_pairs_and_not_of_medians() {
        let compared = ratio(&[1.0, 4.0, 9.0], &[1.0, 2.0, 3.0]).unwrap();
        assert_eq!(compared, Ratio { pairs: vec![1.0, 2.0, 3.0], median: 2.0, min: 1.0, max: 3.0 });
        let without = ratio(&[1.0, 4.0], &[0.0, 2.0]).unwrap();
        assert_eq!(without.pairs, [2.0], "a round in which nothing came has no ratio");
    }

    #[test]
    fn percentiles_are_within_a_thousandth() {
        let mut latencies = Latencies::default();
        (1..=1000).for_each(|us| latencies.record(Duration::from_micros(us)));
        latencies.record(Duration::from_secs(10_000));
        let found = latencies.percentiles().unwrap();
        for (found, expected) in
            [(found.p50_us, 501.0), (found.p90_us, 901.0), (found.p99_us, 991.0), (found.p99_9_us, 1000.0)]
        {
            assert!((found / expected - 1.0).abs() < 0.002, "{found} is not {expected}");
        }
        assert!(found.max_us > 3.5e9, "what is too long counts as the longest: {}", found.max_us);
        assert_eq!(found.count, 1001);
    }

    #[test]
    fn rounds_add_up() {
        let (mut one, mut other) = (Latencies::default(), Latencies::default());
        one.record(Duration::from_micros(10));
        other.record(Duration::from_micros(1000));
        one.add(&other);
        assert_eq!(one.percentiles().unwrap().count, 2);
        assert!(one.percentiles().unwrap().max_us >= 1000.0);
    }
}
