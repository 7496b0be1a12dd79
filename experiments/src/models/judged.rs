//! Whether an emulator is like its target: repeated runs of both, and how far the target is from itself.
//!
//! In: the completion times of runs. Out: distances, and whether they are within what is asked. It runs nothing.

use crate::report::Claim;
use profile::compare::{Bootstrap, Comparison, Samples, SelfDistance, runs as itself};
use serde_json::{Value, json};

use super::virtual_bed::Seen;

/// The largest KS distance.
pub const KS_LIMIT: f64 = 0.05;
/// The largest difference of the means, as a share of the target's.
const MEAN_LIMIT: f64 = 0.02;
/// How much more than the target from itself an emulator may differ, if the target differs by more than the limits.
const ITSELF: f64 = 1.2;
/// Neighbours in a block of the bootstrap: ten seconds of queries, since the queue of a switch near saturation changes slowly.
const BLOCK: usize = 200;
const RESAMPLES: u32 = 2000;
const SEED: u64 = 8;

/// An emulator beside its target.
#[derive(Clone, Debug)]
pub struct Judged {
    /// Pooled runs of both.
    pub comparison: Comparison,
    /// The target beside itself.
    pub itself: SelfDistance,
    /// The target's mean in milliseconds.
    pub target_mean_ms: f64,
    mean_limit_ms: f64,
}

impl Judged {
    /// Compares pooled runs. The limit is that of the mean difference, in milliseconds.
    ///
    /// # Errors
    /// A run has no completed query, or there are fewer than two runs of the target.
    pub fn of(target: &[Seen], emulator: &[Seen], mean_limit_ms: f64) -> Result<Judged, String> {
        let all = |runs: &[Seen]| runs.iter().map(Seen::completions).collect::<Result<Vec<_>, _>>();
        let (targets, emulators) = (all(target)?, all(emulator)?);
        let pool = |runs: &[Samples]| Samples::pooled(runs).map_err(|why| why.to_string());
        let (first, second) = (pool(&targets)?, pool(&emulators)?);
        let bootstrap = Bootstrap { block: BLOCK, resamples: RESAMPLES, seed: SEED };
        Ok(Judged {
            target_mean_ms: first.mean_us() / 1e3,
            comparison: Comparison::of(&first, &second, &bootstrap),
            itself: itself(&targets, SEED).ok_or("a target that runs once cannot be compared with itself")?,
            mean_limit_ms,
        })
    }

    /// The mean difference in words: `-1.2 ± 3.4 ms`.
    pub fn mean_text(&self) -> String {
        let mean = &self.comparison.mean;
        let (difference, width) = (mean.difference_us / 1e3, mean.half_width_us() / 1e3);
        format!("{difference:+.2} ± {width:.2} ms of {:.1} ms", self.target_mean_ms)
    }

    fn mean_allowed_ms(&self) -> f64 {
        let asked_ms = self.mean_limit_ms.min(MEAN_LIMIT * self.target_mean_ms);
        self.itself.allowed_mean_us(asked_ms * 1e3, ITSELF) / 1e3
    }

    /// The largest KS distance that is good enough.
    pub fn ks_allowed(&self) -> f64 {
        self.itself.allowed_ks(KS_LIMIT, ITSELF)
    }

    /// Whether the mean is near enough.
    pub fn mean_holds(&self) -> bool {
        self.comparison.mean.difference_us.abs() / 1e3 <= self.mean_allowed_ms()
    }

    /// Whether the distribution is near enough.
    pub fn ks_holds(&self) -> bool {
        self.comparison.ks.distance <= self.ks_allowed()
    }

    /// The claims about the mean and the distribution. `paper_ms` is the paper's difference, with the number behind ±.
    pub fn claims(&self, name: &str, paper_ms: Option<(f64, f64)>) -> Vec<Claim> {
        let asked = format!(
            "at most {:.1} ms and {:.0} %, or {ITSELF} times the target to itself: {:.2} ms",
            self.mean_limit_ms,
            MEAN_LIMIT * 100.0,
            self.mean_allowed_ms()
        );
        let mean = Claim::asked(
            &format!("{name}: difference of the means"),
            &asked,
            self.mean_text(),
            self.mean_holds(),
        );
        let mean = match paper_ms {
            Some((ms, width)) => mean.beside(&format!("{ms} ± {width} ms")),
            None => mean,
        };
        let asked = format!("< {KS_LIMIT}, or {ITSELF} times the target to itself: {:.3}", self.ks_allowed());
        let text = format!("{:.3}; the target to itself {:.3}", self.comparison.ks.distance, self.itself.ks);
        vec![mean, Claim::asked(&format!("{name}: KS distance"), &asked, text, self.ks_holds())]
    }

    /// All numbers.
    pub fn to_json(&self) -> Value {
        let Comparison { ks, mean, mean_relative, qq } = &self.comparison;
        json!({
            "ks": ks.distance,
            "ks_allowed": self.ks_allowed(),
            "mean_difference_ms": mean.difference_us / 1e3,
            "mean_interval_ms": [mean.low_us / 1e3, mean.high_us / 1e3],
            "mean_relative": mean_relative,
            "mean_allowed_ms": self.mean_allowed_ms(),
            "target_mean_ms": self.target_mean_ms,
            "target_to_itself": { "ks": self.itself.ks, "mean_ms": self.itself.mean_us / 1e3, "pairs": self.itself.pairs },
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
    fn the_stricter_of_both_limits_of_the_mean_counts() {
        let same = [0.0, 0.0];
        assert!(judged(&same, &[900.0, 900.0], 20.0).mean_holds(), "2 % are 1 ms");
        assert!(!judged(&same, &[1100.0, 1100.0], 20.0).mean_holds());
        assert!(!judged(&same, &[900.0, 900.0], 0.5).mean_holds());
    }

    #[test]
    fn an_emulator_need_not_be_nearer_than_the_target_is_to_itself() {
        let itself = [-3000.0, 3000.0];
        assert!(judged(&itself, &[5000.0, 5000.0], 1.0).mean_holds());
        assert!(!judged(&itself, &[9000.0, 9000.0], 1.0).mean_holds());
        assert!(judged(&itself, &[0.0, 0.0], 1.0).ks_holds());
        assert!(!judged(&[0.0, 0.0], &[300.0, 300.0], 1.0).ks_holds());
    }
}
