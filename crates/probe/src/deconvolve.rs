//! Takes a delay apart that is the sum of two: the service, which is known, and the residual delay, which is not.
//!
//! ```text
//!   samples of (service + residual), the table of the service ──> the table of the residual
//! ```
//!
//! In: samples and a table. Out: the table whose sum with the service is most likely to give these samples (Richardson 1972, Lucy 1974).
//! It never gives a negative delay.

use profile::compare::{Samples, ks, ks_limit};
use profile::random::Random;
use profile::{Fit, Quantiles};

/// Bins of the residual delay.
const BINS: usize = 160;
/// Steps of the search. More of them follow the noise of the samples.
const STEPS: usize = 60;
/// Every so many samples, one is held back.
const HELD_BACK: usize = 5;
/// How often a right pair of tables is called a poor fit.
const ALPHA: f64 = 0.01;
/// Draws of the sum of both parts, and their seed.
const DRAWS: usize = 20_000;
const SEED: u64 = 98;

/// The residual delay. None without samples.
pub fn residual(samples_us: &[f64], service: &Quantiles) -> Option<Quantiles> {
    let mut sorted = samples_us.to_vec();
    sorted.sort_by(f64::total_cmp);
    let (least, most) = (*sorted.first()?, *sorted.last()?);
    if service.as_constant().is_some() || most <= least {
        let service_us = service.mean_us();
        let rest: Vec<f64> = sorted.iter().map(|it| (it - service_us).max(0.0)).collect();
        return table(&rest);
    }
    let low = (least - service.max_us()).max(0.0);
    let high = (most - service.min_us()).max(low + 1e-3);
    let width = (high - low) / BINS as f64;
    let kernel = masses(service, width);
    let first_sum = low + service.min_us();
    let seen = histogram(&sorted, first_sum, width, BINS + kernel.len());
    let mut found = vec![1.0 / BINS as f64; BINS];
    for _ in 0..STEPS {
        step(&mut found, &kernel, &seen);
    }
    from_bins(&found, low, width)
}

/// How well both parts describe samples: they are made of four fifths, and judged by the others. None: too few samples.
pub fn judged(what: &str, samples_us: &[f64], service: &Quantiles) -> Option<Fit> {
    let (held_back, used): (Vec<_>, Vec<_>) =
        samples_us.iter().enumerate().partition(|(index, _)| index % HELD_BACK == 0);
    let only = |part: Vec<(usize, &f64)>| part.into_iter().map(|(_, us)| *us).collect::<Vec<f64>>();
    let (held_back, used) = (only(held_back), only(used));
    if held_back.len() < HELD_BACK {
        return None;
    }
    let residual = residual(&used, service)?;
    let mut random = Random::new(SEED);
    let sums = (0..DRAWS).map(|_| service.at(random.unit()) + residual.at(random.unit()));
    let sums = Samples::new(sums.collect()).ok()?;
    let limit = ks_limit(used.len(), held_back.len(), ALPHA);
    let held_back = Samples::new(held_back).ok()?;
    Some(Fit {
        what: what.to_owned(),
        samples: u32::try_from(held_back.count()).unwrap_or(u32::MAX),
        ks: ks(&held_back, &sums).distance,
        ks_limit: limit,
    })
}

/// How much of a table lies in each bin from its minimum on.
fn masses(of: &Quantiles, width: f64) -> Vec<f64> {
    let count = ((of.max_us() - of.min_us()) / width).ceil().max(1.0) as usize;
    let edge = |index: usize| of.cdf(of.min_us() + index as f64 * width);
    (0..count).map(|index| edge(index + 1) - if index == 0 { 0.0 } else { edge(index) }).collect()
}

/// The share of samples in each bin. What is beyond an end is in the last bin there.
fn histogram(sorted: &[f64], from: f64, width: f64, bins: usize) -> Vec<f64> {
    let mut shares = vec![0.0; bins];
    for sample in sorted {
        let bin = ((sample - from) / width).max(0.0) as usize;
        shares[bin.min(bins - 1)] += 1.0 / sorted.len() as f64;
    }
    shares
}

/// One step towards the residual under which these samples are most likely. Two values in the middle of their bins have a sum at the edge
/// of two bins, so that half goes to each.
fn step(found: &mut [f64], kernel: &[f64], seen: &[f64]) {
    let mut sum = vec![0.0; seen.len()];
    for (at, mass) in found.iter().enumerate() {
        for (offset, weight) in kernel.iter().enumerate() {
            sum[at + offset] += mass * weight / 2.0;
            sum[(at + offset + 1).min(seen.len() - 1)] += mass * weight / 2.0;
        }
    }
    let ratio: Vec<f64> =
        seen.iter().zip(&sum).map(|(seen, sum)| if *sum > 0.0 { seen / sum } else { 0.0 }).collect();
    for (at, mass) in found.iter_mut().enumerate() {
        let part = kernel.iter().enumerate().map(|(offset, weight)| {
            weight * (ratio[at + offset] + ratio[(at + offset + 1).min(ratio.len() - 1)]) / 2.0
        });
        *mass *= part.sum::<f64>();
    }
}

fn from_bins(found: &[f64], low: f64, width: f64) -> Option<Quantiles> {
    let all: f64 = found.iter().sum();
    let mut below = 0.0;
    let mut points = vec![(0.0, low)];
    for (index, mass) in found.iter().enumerate() {
        let before = below;
        below += mass / all;
        // Bins that hold nothing would be a jump of many points.
        if mass / all > 1e-6 {
            if before <= 1e-6 {
                points = vec![(0.0, low + index as f64 * width)];
            }
            points.push((below.min(1.0), low + (index + 1) as f64 * width));
        }
    }
    if let Some(last) = points.last_mut() {
        last.0 = 1.0;
    }
    Quantiles::new(&points).ok()
}

fn table(sorted: &[f64]) -> Option<Quantiles> {
    let samples = Samples::new(sorted.to_vec()).ok()?;
    profile::compare::table(&samples).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The KS distance of sums of both found parts to the samples' true distribution.
    fn distance(service: &Quantiles, true_residual: &Quantiles, count: usize) -> f64 {
        let sums = |residual: &Quantiles, seed, count| {
            let mut random = Random::new(seed);
            let mut sums: Vec<f64> =
                (0..count).map(|_| service.at(random.unit()) + residual.at(random.unit())).collect();
            sums.sort_by(f64::total_cmp);
            sums
        };
        let found = residual(&sums(true_residual, 1, count), service).unwrap();
        let (truth, found) = (sums(true_residual, 2, 20_000), sums(&found, 3, 20_000));
        let below = |all: &[f64], at: f64| all.partition_point(|it| *it <= at) as f64 / all.len() as f64;
        truth.iter().map(|at| (below(&truth, *at) - below(&found, *at)).abs()).fold(0.0, f64::max)
    }

    #[test]
    fn the_sum_of_both_parts_is_what_was_seen() {
        let skewed = Quantiles::new(&[(0.0, 200.0), (0.5, 300.0), (0.9, 500.0), (1.0, 800.0)]).unwrap();
        for (low, high) in [(700.0, 1300.0), (3000.0, 5000.0), (90.0, 130.0), (1000.0, 1000.0)] {
            let service = Quantiles::new(&[(0.0, low), (1.0, high)]).unwrap();
            let ks = distance(&service, &skewed, 2000);
            assert!(ks < 0.04, "{low} to {high}: {ks}");
        }
    }

    #[test]
    fn nothing_has_no_residual() {
        assert_eq!(residual(&[], &Quantiles::constant(5.0)), None);
        assert_eq!(residual(&[4.0, 4.0], &Quantiles::constant(5.0)).unwrap().max_us(), 0.0);
    }
}
