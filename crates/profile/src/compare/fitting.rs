//! Makes quantile tables from samples, and judges them by samples that were held back.

use super::ks::{ks_limit, ks_to_table};
use super::samples::Samples;
use crate::quantiles::{BadQuantiles, Quantiles};
use crate::random::Random;

/// Equal steps of probability in a table. So a table is at most 1/200 from its samples.
pub const TABLE_POINTS: u32 = 200;

/// Extra probabilities at both ends, where a step of 1/200 hides the rare and long delays.
const TAIL: [f64; 4] = [0.0002, 0.0005, 0.001, 0.002];

/// Every so many samples, one is held back.
const HELD_BACK: usize = 5;

/// How often a table that is right is called a poor fit.
const ALPHA: f64 = 0.01;

/// A table from four fifths of the samples, and its distance to the fifth that was held back.
#[derive(Clone, Debug, PartialEq)]
pub struct Fitted {
    /// The table.
    pub table: Quantiles,
    /// How many samples made it.
    pub used: usize,
    /// How many were held back.
    pub held_back: usize,
    /// The KS distance of the samples that were held back to the table.
    pub ks: f64,
    /// The distance that a true table exceeds once in a hundred times.
    pub ks_limit: f64,
}

/// The table through all samples, or through the quantiles of [`TABLE_POINTS`] steps if there are more.
///
/// # Errors
/// A sample that is no delay: negative, or above a day.
pub fn table(samples: &Samples) -> Result<Quantiles, BadQuantiles> {
    let last = samples.count() - 1;
    if last == 0 {
        let only = samples.sorted()[0];
        return Quantiles::new(&[(0.0, only), (1.0, only)]);
    }
    let points: Vec<(f64, f64)> = if last <= TABLE_POINTS as usize {
        samples
            .sorted()
            .iter()
            .enumerate()
            .map(|(index, &value)| (index as f64 / last as f64, value))
            .collect()
    } else {
        probabilities().into_iter().map(|p| (p, samples.quantile(p))).collect()
    };
    Quantiles::new(&points)
}

fn probabilities() -> Vec<f64> {
    let steps = (1..TABLE_POINTS).map(|step| f64::from(step) / f64::from(TABLE_POINTS));
    let low = [0.0].into_iter().chain(TAIL);
    let high = TAIL.into_iter().rev().map(|p| 1.0 - p).chain([1.0]);
    low.chain(steps).chain(high).collect()
}

/// Makes a table from four fifths of the samples, drawn by the seed, and compares it with the others. With fewer than ten samples,
/// none are held back, and the distance is that to the samples themselves.
///
/// # Errors
/// A sample that is no delay: negative, or above a day.
pub fn fit(samples: &Samples, seed: u64) -> Result<Fitted, BadQuantiles> {
    let (used, held_back) = split(samples, seed);
    let table = table(&used)?;
    let ks = ks_to_table(&held_back, &table).distance;
    // The table is made of samples too, and has its own error.
    let ks_limit = ks_limit(used.count(), held_back.count(), ALPHA);
    Ok(Fitted { table, used: used.count(), held_back: held_back.count(), ks, ks_limit })
}

/// A random fifth, and the others.
fn split(samples: &Samples, seed: u64) -> (Samples, Samples) {
    let mut shuffled = samples.in_order().to_vec();
    let mut random = Random::new(seed);
    let fifth = shuffled.len() / HELD_BACK;
    // The first places of a shuffle (Fisher and Yates) are a random choice.
    for place in 0..fifth {
        let other = place + random.below(shuffled.len() - place);
        shuffled.swap(place, other);
    }
    let used = shuffled.split_off(fifth);
    match (Samples::new(used), Samples::new(shuffled)) {
        (Ok(used), Ok(held_back)) if held_back.count() > 1 => (used, held_back),
        _ => (samples.clone(), samples.clone()),
    }
}
