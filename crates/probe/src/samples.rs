//! Numbers from records: medians, rates, slopes, and quantile tables with a judgement of their fit.
//!
//! In: times in nanoseconds or delays in microseconds. Out: estimates. It knows no switch.

use profile::compare::{Fitted, Samples, fit, table};

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

/// As many samples as were seen, if of some only an upper bound is known: (value or bound, whether it is the value). The bound must not
/// depend on the value. The share below each value is the product-limit estimate (Kaplan and Meier 1958), which counts from above here. Sorted.
pub fn uncensored(seen: &[(f64, bool)]) -> Vec<f64> {
    let mut sorted = seen.to_vec();
    // Of equal ones, those that are bounds come first: their values may be smaller.
    sorted.sort_by(|one, two| one.0.total_cmp(&two.0).then(one.1.cmp(&two.1)));
    let mut below = 1.0;
    // (value, the share of values that are smaller), from above.
    let mut steps: Vec<(f64, f64)> = Vec::new();
    for (rank, (value, is_value)) in sorted.iter().enumerate().rev() {
        if *is_value {
            below *= rank as f64 / (rank + 1) as f64;
            steps.push((*value, below));
        }
    }
    let Some((least, _)) = steps.last().copied() else { return Vec::new() };
    let at = |quantile: f64| {
        let place = steps.partition_point(|(_, below)| *below > quantile);
        steps.get(place).map_or(least, |(value, _)| *value)
    };
    let count = seen.len() as f64;
    (0..seen.len()).map(|index| at((index as f64 + 0.5) / count)).collect()
}

/// Mean and standard deviation.
pub fn moments(samples: &[f64]) -> Option<(f64, f64)> {
    let count = samples.len() as f64;
    let mean = samples.iter().sum::<f64>() / count;
    let variance = samples.iter().map(|it| (it - mean).powi(2)).sum::<f64>() / count;
    (count > 0.0).then(|| (mean, variance.sqrt()))
}

/// The quantile table of delays, and how well such a table fits: one from four fifths of them is judged by the others. The table itself is
/// from all of them. None without samples.
pub fn fitted(samples_us: &[f64]) -> Option<Fitted> {
    let samples = Samples::new(samples_us.iter().map(|us| us.max(0.0)).collect()).ok()?;
    Some(Fitted { table: table(&samples).ok()?, ..fit(&samples, SEED).ok()? })
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
    fn delays_behind_which_others_wait_are_found() {
        let mut random = profile::random::Random::new(5);
        let (mut at, mut latest) = (0.0, 0.0_f64);
        let seen: Vec<(f64, bool)> = (0..4000)
            .map(|_| {
                at += 20.0;
                let delay = 20.0 + 80.0 * random.unit();
                let is_own = at + delay > latest;
                latest = latest.max(at + delay);
                (latest - at, is_own)
            })
            .collect();
        let waits = seen.iter().filter(|(_, is_own)| !is_own).count();
        assert!(waits > 800, "{waits}");
        let found = uncensored(&seen);
        assert_eq!(found.len(), seen.len());
        for q in [0.05, 0.25, 0.5, 0.75, 0.95] {
            let (value, truth) = (quantile(&found, q).unwrap(), 20.0 + 80.0 * q);
            assert!((value - truth).abs() < 3.0, "{q}: {value}, it was {truth}");
        }
        let plain = uncensored(&[(3.0, true), (1.0, true), (2.0, true)]);
        assert_eq!(plain, [1.0, 2.0, 3.0]);
        assert_eq!(uncensored(&[(1.0, false)]), Vec::<f64>::new());
    }

    #[test]
    fn medians_and_slopes_of_nothing_are_nothing() {
        assert_eq!((median(&[]), slope(&[(1.0, 2.0)])), (None, None));
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
    }
}
