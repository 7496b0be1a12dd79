//! A profile with the correction that its emulation needs.
//!
//! In: a profile and a correction. Out: a profile whose residual delays have it, and how much of it they could take: no delay is negative.

use crate::compare::Correction;
use crate::measurement::Fit;
use crate::provenance::Provenance;
use crate::quantiles::Quantiles;
use crate::whole::Profile;

/// The values that a correction changes.
pub const TUNED_KEYS: [&str; 2] = ["delay.ingress_us", "delay.egress_us"];

/// A tuned profile.
#[derive(Clone, Debug, PartialEq)]
pub struct Tuned {
    /// The profile, with the sources and the name of the old one.
    pub profile: Profile,
    /// The part of the correction that is in it.
    pub applied: Correction,
}

impl Profile {
    /// The profile with a correction of delays that pass its control path `passes` times: each pass takes its share. A constant is added to
    /// the delay at ingress. What is subtracted beyond its minimum is subtracted at egress, up to that minimum. A correction by quantiles
    /// is added at ingress alone.
    pub fn tuned(&self, correction: &Correction, passes: u32) -> Tuned {
        let passes = f64::from(passes.max(1));
        let mut profile = self.clone();
        let (ingress, egress) = (&self.delay.ingress_us, &self.delay.egress_us);
        let applied = match correction {
            Correction::Constant(us) => {
                let each_us = us / passes;
                let at_ingress_us = each_us.max(-ingress.min_us());
                let at_egress_us = (each_us - at_ingress_us).max(-egress.min_us());
                profile.delay.ingress_us = ingress.plus_us(at_ingress_us);
                profile.delay.egress_us = egress.plus_us(at_egress_us);
                Correction::Constant((at_ingress_us + at_egress_us) * passes)
            }
            Correction::Quantiles(points) => {
                let corrected = bent(ingress, correction, points, passes);
                let added = |&(p, _): &(f64, f64)| (p, (corrected.at(p) - ingress.at(p)) * passes);
                let applied = Correction::Quantiles(points.iter().map(added).collect());
                profile.delay.ingress_us = corrected;
                applied
            }
        };
        Tuned { profile, applied }
    }

    /// Names the profile and states where its tuned values are from, and how well it fits.
    pub fn with_tuning(mut self, name: String, how: &str, fit: Fit) -> Self {
        self.name = name;
        for key in TUNED_KEYS {
            let before = self.sources.of(key).map(|source| format!("; before: {source}")).unwrap_or_default();
            let text = shortened(format!("{how}{before}"));
            self.sources.set(key, Provenance::Reconstructed(text));
        }
        self.measurement.fits.retain(|before| before.what != fit.what);
        self.measurement.fits.push(fit);
        self
    }
}

/// The longest text of a source.
const SOURCE_CHARS_MAX: usize = 500;

fn shortened(text: String) -> String {
    if text.chars().count() <= SOURCE_CHARS_MAX {
        return text;
    }
    text.chars().take(SOURCE_CHARS_MAX - 1).chain(['…']).collect()
}

/// The table with the correction at all its points, and at those of the correction.
fn bent(table: &Quantiles, correction: &Correction, points: &[(f64, f64)], passes: f64) -> Quantiles {
    let mut probabilities: Vec<f64> = table.points().chain(points.iter().copied()).map(|(p, _)| p).collect();
    probabilities.sort_by(f64::total_cmp);
    probabilities.dedup();
    let mut floor_us = 0.0_f64;
    let bent: Vec<(f64, f64)> = probabilities
        .into_iter()
        .map(|p| {
            floor_us =
                (table.at(p) + correction.at(p) / passes).clamp(floor_us, crate::quantiles::VALUE_MAX_US);
            (p, floor_us)
        })
        .collect();
    // More points than a table may have are left as they were.
    Quantiles::new(&bent).unwrap_or_else(|_| table.clone())
}
