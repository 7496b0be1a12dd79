//! Whether an emulator is like its target: repeated runs of both, and how far the target is from itself.
//!
//! ```text
//!   runs of the target, runs of the emulator ──> pools of five, by chance, of each ──> the median of their distances ──┐
//!   runs of the target ──> two pools of five without a common run ──────────────────> the median of their distances ──┴──> claims
//! ```
//!
//! In: the completion times of runs. Out: distances, and whether they are within what is asked. It runs nothing.

use crate::report::Claim;
use profile::compare::{Bootstrap, Comparison, QqPoint, Samples, ks, qq};
use profile::random::Random;
use serde_json::{Value, json};

use super::virtual_bed::{Seen, TIMEOUT};

/// The largest KS distance.
pub const KS_LIMIT: f64 = 0.05;
/// The largest difference of the means, as a share of the target's.
const MEAN_LIMIT: f64 = 0.02;
/// How much more than the target from itself an emulator may differ, if the target differs by more than the limits.
pub const ITSELF: f64 = 1.2;
/// Runs of a pool, as asked. Fewer if there are not twice as many runs.
const POOL: usize = 5;
/// Pairs of pools.
const PAIRS: usize = 1000;
/// Neighbours in a block of the bootstrap: ten seconds of queries, since the queue of a switch near saturation changes slowly.
const BLOCK: usize = 200;
/// With fewer blocks, resamples say nothing of how far the mean may be wrong: with one, they are all the same.
const BLOCKS_MIN: usize = 5;
const RESAMPLES: u32 = 2000;
const SEED: u64 = 8;
/// The quantiles that are judged: all up to the first, and the second.
pub const BODY: f64 = 0.95;
pub const TAIL: f64 = 0.99;
const QUANTILES: u32 = 100;

/// The medians of how far two pools of runs are apart.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Apart {
    /// The KS distance.
    pub ks: f64,
    /// The difference of the means, without sign, in milliseconds.
    pub mean_ms: f64,
    /// The largest relative distance of a quantile up to [`BODY`].
    pub body: f64,
    /// The relative distance at [`TAIL`].
    pub tail: f64,
}

impl Apart {
    fn of(one: &Samples, two: &Samples) -> Apart {
        let points = qq(one, two, QUANTILES);
        let body = points.iter().filter(|point| point.probability <= BODY);
        let tail = points.iter().rfind(|point| point.probability <= TAIL);
        Apart {
            ks: ks(one, two).distance,
            mean_ms: (one.mean_us() - two.mean_us()).abs() / 1e3,
            body: body.map(QqPoint::relative).fold(0.0, f64::max),
            tail: tail.map_or(f64::INFINITY, QqPoint::relative),
        }
    }

    fn medians(all: &[Apart]) -> Apart {
        let median = |of: fn(&Apart) -> f64| {
            let mut values: Vec<f64> = all.iter().map(of).collect();
            values.sort_by(f64::total_cmp);
            values.get(values.len() / 2).copied().unwrap_or(f64::INFINITY)
        };
        Apart {
            ks: median(|it| it.ks),
            mean_ms: median(|it| it.mean_ms),
            body: median(|it| it.body),
            tail: median(|it| it.tail),
        }
    }
}

/// How far pools of `size` runs are apart: of one set and of another, or of one set and the rest of it.
fn apart(one: &[Samples], two: Option<&[Samples]>, size: usize) -> Result<Apart, String> {
    let mut random = Random::new(SEED);
    let pool = |runs: &[Samples], places: &[usize]| {
        let chosen = places.iter().filter_map(|place| runs.get(*place));
        Samples::pooled(chosen).map_err(|why| why.to_string())
    };
    let mut all = Vec::new();
    for _ in 0..PAIRS {
        let mine = shuffled(one.len(), &mut random);
        let (first, rest) = mine.split_at(size.min(mine.len()));
        let second = match two {
            Some(others) => {
                pool(others, shuffled(others.len(), &mut random).get(..size).unwrap_or_default())?
            }
            None => pool(one, rest.get(..size).unwrap_or_default())?,
        };
        all.push(Apart::of(&pool(one, first)?, &second));
    }
    Ok(Apart::medians(&all))
}

/// The places of a set in an order by chance.
fn shuffled(count: usize, random: &mut Random) -> Vec<usize> {
    let mut places: Vec<usize> = (0..count).collect();
    for place in 0..count {
        places.swap(place, place + random.below(count - place));
    }
    places
}

/// An emulator beside its target.
#[derive(Clone, Debug)]
pub struct Judged {
    /// All runs of both.
    pub comparison: Comparison,
    /// Pools of both.
    pub apart: Apart,
    /// Pools of the target beside others of it.
    pub itself: Apart,
    /// The target's mean in milliseconds.
    pub target_mean_ms: f64,
    mean_limit_ms: f64,
    pool: usize,
    /// Queries of all runs: those of the target or of the emulator, whichever are fewer.
    queries: usize,
}

impl Judged {
    /// Compares runs. The limit is that of the mean difference, in milliseconds. A query that failed counts with its time-out. A run without
    /// queries is left out.
    ///
    /// # Errors
    /// There are fewer than two runs of the target with queries, or none of the emulator.
    pub fn of(target: &[Seen], emulator: &[Seen], mean_limit_ms: f64) -> Result<Judged, String> {
        let all = |runs: &[Seen]| -> Vec<Samples> {
            runs.iter().filter_map(|seen| Samples::new(seen.times_us(TIMEOUT)).ok()).collect()
        };
        let (targets, emulators) = (all(target), all(emulator));
        let pool = POOL.min(targets.len() / 2).min(emulators.len());
        if pool == 0 {
            return Err(
                "a target that runs once, or an emulator without a query, cannot be compared".to_owned()
            );
        }
        let pooled = |runs: &[Samples]| Samples::pooled(runs).map_err(|why| why.to_string());
        let (first, second) = (pooled(&targets)?, pooled(&emulators)?);
        let bootstrap = Bootstrap { block: BLOCK, resamples: RESAMPLES, seed: SEED };
        Ok(Judged {
            target_mean_ms: first.mean_us() / 1e3,
            comparison: Comparison::of(&first, &second, &bootstrap),
            apart: apart(&targets, Some(&emulators), pool)?,
            itself: apart(&targets, None, pool)?,
            mean_limit_ms,
            pool,
            queries: first.count().min(second.count()),
        })
    }

    /// The mean difference in words: `-1.2 ± 3.4 ms`, or the same without an interval.
    pub fn mean_text(&self) -> String {
        let mean = &self.comparison.mean;
        let (difference, width) = (mean.difference_us / 1e3, mean.half_width_us() / 1e3);
        let target = self.target_mean_ms;
        if self.has_interval() {
            return format!("{difference:+.2} ± {width:.2} ms of {target:.1} ms");
        }
        let fewest = BLOCKS_MIN * BLOCK;
        format!("{difference:+.2} ms of {target:.1} ms, without an interval: fewer than {fewest} queries")
    }

    /// Whether there are blocks enough for the interval of the mean difference.
    fn has_interval(&self) -> bool {
        self.queries >= BLOCKS_MIN * BLOCK
    }

    fn mean_allowed_ms(&self) -> f64 {
        let asked_ms = self.mean_limit_ms.min(MEAN_LIMIT * self.target_mean_ms);
        asked_ms.max(ITSELF * self.itself.mean_ms)
    }

    /// The largest KS distance that is good enough.
    pub fn ks_allowed(&self) -> f64 {
        KS_LIMIT.max(ITSELF * self.itself.ks)
    }

    /// Whether the mean is near enough.
    pub fn mean_holds(&self) -> bool {
        self.apart.mean_ms <= self.mean_allowed_ms()
    }

    /// Whether the distribution is near enough.
    pub fn ks_holds(&self) -> bool {
        self.apart.ks <= self.ks_allowed()
    }

    /// The claims about the mean and the distribution. `paper_ms` is the paper's difference, with the number behind ±.
    pub fn claims(&self, name: &str, paper_ms: Option<(f64, f64)>) -> Vec<Claim> {
        let asked = format!(
            "at most {:.1} ms and {:.0} %, or {ITSELF} times the target to itself: {:.2} ms",
            self.mean_limit_ms,
            MEAN_LIMIT * 100.0,
            self.mean_allowed_ms()
        );
        let text = format!(
            "{:.2} ms; the target to itself {:.2} ms; all runs {}",
            self.apart.mean_ms,
            self.itself.mean_ms,
            self.mean_text()
        );
        let what = format!("{name}: difference of the means, {} runs pooled", self.pool);
        let mean = Claim::asked(&what, &asked, text, self.mean_holds());
        let mean = match paper_ms {
            Some((ms, width)) => mean.beside(&format!("{ms} ± {width} ms")),
            None => mean,
        };
        let asked = format!("< {KS_LIMIT}, or {ITSELF} times the target to itself: {:.3}", self.ks_allowed());
        let text = format!(
            "{:.3}; the target to itself {:.3}; all runs {:.3}",
            self.apart.ks, self.itself.ks, self.comparison.ks.distance
        );
        let what = format!("{name}: KS distance, {} runs pooled", self.pool);
        vec![mean, Claim::asked(&what, &asked, text, self.ks_holds())]
    }

    /// All numbers.
    pub fn to_json(&self) -> Value {
        let Comparison { ks, mean, mean_relative, qq } = &self.comparison;
        let apart = |of: &Apart| json!({ "ks": of.ks, "mean_ms": of.mean_ms, "quantiles_to_95": of.body, "quantile_99": of.tail });
        json!({
            "runs_of_a_pool": self.pool,
            "pools": apart(&self.apart),
            "pools_of_the_target": apart(&self.itself),
            "ks": ks.distance,
            "ks_allowed": self.ks_allowed(),
            "mean_difference_ms": mean.difference_us / 1e3,
            "mean_interval_ms": self.has_interval().then(|| [mean.low_us / 1e3, mean.high_us / 1e3]),
            "mean_relative": mean_relative,
            "mean_allowed_ms": self.mean_allowed_ms(),
            "target_mean_ms": self.target_mean_ms,
            "qq_ms": qq.iter().map(|point| json!([point.probability, point.first_us / 1e3, point.second_us / 1e3])).collect::<Vec<_>>(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs whose times are these plus the number of the query.
    fn runs(shifts_us: &[f64]) -> Vec<Seen> {
        let run = |shift: &f64| Seen {
            completion_us: (0..400u32).map(|query| 50_000.0 + f64::from(query) + shift).collect(),
            ..Seen::default()
        };
        shifts_us.iter().map(run).collect()
    }

    fn judged(target: &[f64], emulator: &[f64], limit_ms: f64) -> Judged {
        Judged::of(&runs(target), &runs(emulator), limit_ms).unwrap()
    }

    #[test]
    fn one_run_of_a_target_cannot_be_judged() {
        assert!(Judged::of(&runs(&[0.0]), &runs(&[0.0]), 1.0).is_err());
        assert!(Judged::of(&runs(&[0.0, 0.0]), &[Seen::default()], 1.0).is_err(), "nothing completed");
    }

    #[test]
    fn an_emulator_whose_queries_fail_is_far_from_its_target() {
        let mut failing = runs(&[0.0, 0.0]);
        failing.iter_mut().for_each(|run| run.failed = 100);
        let judged = Judged::of(&runs(&[0.0, 0.0]), &failing, 20.0).unwrap();
        assert!(!judged.mean_holds() && !judged.ks_holds(), "{:?}", judged.apart);
    }

    #[test]
    fn few_queries_have_no_interval_and_say_so() {
        let few = judged(&[0.0, 0.0], &[100.0, 100.0], 20.0);
        assert_eq!(few.mean_text(), "+0.10 ms of 50.2 ms, without an interval: fewer than 1000 queries");
        assert_eq!(few.to_json()["mean_interval_ms"], Value::Null);
        let many = judged(&[0.0; 3], &[100.0; 3], 20.0);
        assert!(many.mean_text().starts_with("+0.10 ± "), "{}", many.mean_text());
        assert_eq!(many.to_json()["mean_interval_ms"].as_array().map(Vec::len), Some(2));
    }

    #[test]
    fn the_stricter_of_both_limits_of_the_mean_counts() {
        let same = [0.0, 0.0];
        assert!(judged(&same, &[900.0, 900.0], 20.0).mean_holds(), "2 % are 1 ms");
        assert!(!judged(&same, &[1100.0, 1100.0], 20.0).mean_holds());
        assert!(!judged(&same, &[900.0, 900.0], 0.5).mean_holds());
    }

    #[test]
    fn an_emulator_need_not_be_nearer_than_the_target_is_to_itself() {
        let itself = [-3000.0, 3000.0];
        assert!(judged(&itself, &[0.0, 0.0], 1.0).mean_holds());
        assert!(!judged(&itself, &[14_000.0, 14_000.0], 1.0).mean_holds());
        assert!(judged(&itself, &[0.0, 0.0], 1.0).ks_holds());
        assert!(!judged(&[0.0, 0.0], &[300.0, 300.0], 1.0).ks_holds());
    }

    #[test]
    fn pools_of_the_target_have_no_run_in_common_and_one_without_completions_is_left_out() {
        let four = judged(&[0.0, 0.0, 4000.0, 4000.0], &[2000.0; 4], 1.0);
        // Two of four: both pools have one run of each kind, or each has its own kind.
        assert!([0.0, 4.0].contains(&four.itself.mean_ms), "{:?}", four.itself);
        let mut with_empty = runs(&[0.0, 0.0]);
        with_empty.push(Seen::default());
        assert!(Judged::of(&with_empty, &runs(&[0.0]), 1.0).is_ok());
    }
}
