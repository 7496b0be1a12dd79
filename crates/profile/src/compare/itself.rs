//! How far a target is from itself: what an emulator cannot be better than.

use super::ks::ks;
use super::samples::Samples;
use crate::random::Random;

/// Ways to divide runs into two halves that are looked at. Ten runs have 126.
pub const SPLITS_MAX: usize = 126;

/// The distances between parts of the same target.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SelfDistance {
    /// How many pairs of parts were compared.
    pub pairs: usize,
    /// The median of their KS distances.
    pub ks: f64,
    /// The largest of them.
    pub ks_largest: f64,
    /// The median of the differences of their means, without sign.
    pub mean_us: f64,
    /// The largest of them.
    pub mean_largest_us: f64,
}

impl SelfDistance {
    /// The KS distance that an emulator may have: a limit, or `factor` times the distance of the target to itself if that is more.
    pub fn allowed_ks(&self, limit: f64, factor: f64) -> f64 {
        limit.max(factor * self.ks)
    }

    /// The same for the difference of the means.
    pub fn allowed_mean_us(&self, limit_us: f64, factor: f64) -> f64 {
        limit_us.max(factor * self.mean_us)
    }

    fn of(pairs: &[(Samples, Samples)]) -> Option<Self> {
        let distances = pairs.iter().map(|(first, second)| ks(first, second).distance).collect();
        let means = pairs.iter().map(|(first, second)| (first.mean_us() - second.mean_us()).abs()).collect();
        let (distances, means) = (Samples::new(distances).ok()?, Samples::new(means).ok()?);
        Some(SelfDistance {
            pairs: pairs.len(),
            ks: distances.quantile(0.5),
            ks_largest: distances.quantile(1.0),
            mean_us: means.quantile(0.5),
            mean_largest_us: means.quantile(1.0),
        })
    }
}

/// The distance of the first half of one run to the second. None with fewer than two samples.
pub fn halves(run: &Samples) -> Option<SelfDistance> {
    let (first, second) = run.in_order().split_at(run.count() / 2);
    let pair = (Samples::new(first.to_vec()).ok()?, Samples::new(second.to_vec()).ok()?);
    SelfDistance::of(&[pair])
}

/// The distances of pooled halves of repeated runs: every way to divide them if there are few, otherwise [`SPLITS_MAX`] ways by the
/// seed. An odd run is left out of each. None with fewer than two runs.
pub fn runs(runs: &[Samples], seed: u64) -> Option<SelfDistance> {
    let half = runs.len() / 2;
    if half == 0 {
        return None;
    }
    let pool = |indexes: &[usize]| Samples::pooled(indexes.iter().map(|&index| &runs[index])).ok();
    let pairs: Option<Vec<_>> =
        divisions(runs.len(), half, seed).iter().map(|(a, b)| Some((pool(a)?, pool(b)?))).collect();
    SelfDistance::of(&pairs?)
}

type Division = (Vec<usize>, Vec<usize>);

/// Ways to take two disjoint halves out of `count` runs.
fn divisions(count: usize, half: usize, seed: u64) -> Vec<Division> {
    let mut all = Vec::new();
    // Up to ten runs: each run is in the first half, in the second, or (one of an odd number) in none.
    if count <= 10 {
        all_divisions(count, half, &mut (Vec::new(), Vec::new()), 0, &mut all);
    }
    if !all.is_empty() && all.len() <= SPLITS_MAX {
        return all;
    }
    let mut random = Random::new(seed);
    let mut order: Vec<usize> = (0..count).collect();
    let draw = |_| {
        for place in 0..2 * half {
            let other = place + random.below(count - place);
            order.swap(place, other);
        }
        (order[..half].to_vec(), order[half..2 * half].to_vec())
    };
    (0..SPLITS_MAX).map(draw).collect()
}

fn all_divisions(count: usize, half: usize, so_far: &mut Division, next: usize, all: &mut Vec<Division>) {
    if so_far.0.len() == half && so_far.1.len() == half {
        all.push(so_far.clone());
        return;
    }
    let placed = so_far.0.len() + so_far.1.len();
    if next == count {
        return;
    }
    if so_far.0.len() < half {
        so_far.0.push(next);
        all_divisions(count, half, so_far, next + 1, all);
        so_far.0.pop();
    }
    // The first that is placed is in the first half: the same division the other way round is not another one.
    if so_far.1.len() < half && placed > 0 {
        so_far.1.push(next);
        all_divisions(count, half, so_far, next + 1, all);
        so_far.1.pop();
    }
    if next - placed < count - 2 * half {
        all_divisions(count, half, so_far, next + 1, all);
    }
}
