//! Numbers from records: medians, rates, slopes, and quantile tables with a judgement of their fit.
//!
//! In: times in nanoseconds or delays in microseconds. Out: estimates. It knows no switch.

use profile::compare::{Fitted, Samples, fit};

/// The seed by which samples are held back. Any would do; a fixed one makes a probe repeatable.
const SEED: u64 = 98;

/// Nanoseconds as microseconds.
pub fn us(ns: u64) -> f64 {
    ns as f64 / 1e3
}

/// Microseconds as nanoseconds.
pub fn ns(us: f64) -> u64 {
    (us.max(0.0) * 1e3).round() as u64
}

/// The median. None without samples.
pub fn median(samples: &[f64]) -> Option<f64> {
    quantile(samples, 0.5)
}

/// The value at this share of the sorted samples.
pub fn quantile(samples: &[f64], q: f64) -> Option<f64> {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    let last = sorted.len().checked_sub(1)?;
    sorted.get((q * last as f64).round() as usize).copied()
}

/// The time between two of them: the slope of a straight line through the times by their order (least squares). None with fewer than
/// two.
pub fn interval_ns(times: &[u64]) -> Option<f64> {
    if times.len() < 2 {
        return None;
    }
    let first = times[0];
    let points =
        times.iter().enumerate().map(|(index, time)| (index as f64, time.saturating_sub(first) as f64));
    slope(&points.collect::<Vec<_>>())
}

/// The slope of the straight line through points, by least squares.
pub fn slope(points: &[(f64, f64)]) -> Option<f64> {
    let count = points.len() as f64;
    let (x, y) =
        (points.iter().map(|p| p.0).sum::<f64>() / count, points.iter().map(|p| p.1).sum::<f64>() / count);
    let spread: f64 = points.iter().map(|p| (p.0 - x).powi(2)).sum();
    (spread > 0.0).then(|| points.iter().map(|p| (p.0 - x) * (p.1 - y)).sum::<f64>() / spread)
}

/// The standard deviation of the intervals between times, from several bursts. Delays that each time has on its own do not count: the variance of the
/// distance over some intervals grows with their number only by the intervals' own part.
/// `spread_ns`: how far those delays differ. A distance must be longer, or it is made of them, since none overtakes another.
pub fn interval_deviation_ns(bursts: &[&[u64]], spread_ns: f64) -> Option<f64> {
    const NEAR: usize = 4;
    let count: usize = bursts.iter().map(|times| times.len().saturating_sub(1)).sum();
    let all: u64 = bursts.iter().filter_map(|times| Some(times.last()? - times.first()?)).sum();
    let every_ns = all as f64 / count.max(1) as f64;
    let near = NEAR.max((spread_ns / every_ns.max(1.0)).ceil() as usize);
    let far = 4 * near;
    let windows: usize = bursts.iter().map(|times| times.len().saturating_sub(far)).sum();
    if windows < 3 * far {
        return None;
    }
    let variance = |apart: usize| {
        let windows = bursts.iter().flat_map(|times| times.windows(apart + 1));
        let distances: Vec<f64> = windows.map(|part| (part[apart] - part[0]) as f64).collect();
        let mean = distances.iter().sum::<f64>() / distances.len() as f64;
        distances.iter().map(|it| (it - mean).powi(2)).sum::<f64>() / distances.len() as f64
    };
    Some(((variance(far) - variance(near)) / (far - near) as f64).max(0.0).sqrt())
}

/// Mean and standard deviation.
pub fn moments(samples: &[f64]) -> Option<(f64, f64)> {
    let count = samples.len() as f64;
    let mean = samples.iter().sum::<f64>() / count;
    let variance = samples.iter().map(|it| (it - mean).powi(2)).sum::<f64>() / count;
    (count > 0.0).then(|| (mean, variance.sqrt()))
}

/// The quantile table of delays, made of four fifths of them and judged by the others. None without samples.
pub fn fitted(samples_us: &[f64]) -> Option<Fitted> {
    let samples = Samples::new(samples_us.iter().map(|us| us.max(0.0)).collect()).ok()?;
    fit(&samples, SEED).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_is_that_of_even_times_whatever_their_start() {
        let times: Vec<u64> = (0..50).map(|index| 1_000_000_007 + index * 250).collect();
        assert_eq!(interval_ns(&times), Some(250.0));
        assert_eq!(interval_ns(&times[..1]), None);
    }

    #[test]
    fn medians_and_slopes_of_nothing_are_nothing() {
        assert_eq!((median(&[]), slope(&[(1.0, 2.0)])), (None, None));
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
    }
}
