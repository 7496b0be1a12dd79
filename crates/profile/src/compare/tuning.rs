//! Finds what must be added to delays so that an emulation has those of its target, as the QQ plot shows it.
//!
//! ```text
//!   runs of the target ────┬─> a correction: a constant, or one for each quantile ──> Profile::tuned
//!   runs of the emulation ─┘        └──> corrected samples of other runs ──> QqDistance, before and after
//! ```
//!
//! Huang, Yocom and Snoeren, High-Fidelity Switch Models (HotSDN 2013), section 5, propose such a tool "for instance, by subtracting some
//! constant". In: samples. Out: numbers. It judges nothing: the caller compares the distances.

use super::ks::{ks, ks_limit};
use super::qq::{QqPoint, qq};
use super::samples::{BadSamples, Samples};

/// Points of the QQ plot to which a correction is fitted. Between two, it is a straight line.
const POINTS: u32 = 20;

/// Points of the QQ plot by which a distance is measured.
const JUDGED_POINTS: u32 = 200;

/// How often the distance of two samples of one distribution is above the limit of [`QqDistance::ks_limit`].
const ALPHA: f64 = 0.01;

/// What must be added to the delays of an emulation, in microseconds.
#[derive(Clone, Debug, PartialEq)]
pub enum Correction {
    /// The same to every delay. It moves the QQ plot.
    Constant(f64),
    /// Something to the delay at each of these rising probabilities. It bends the QQ plot.
    Quantiles(Vec<(f64, f64)>),
}

impl Correction {
    /// What must be added at this probability.
    pub fn at(&self, probability: f64) -> f64 {
        match self {
            Correction::Constant(us) => *us,
            Correction::Quantiles(points) => {
                let above = points.partition_point(|&(p, _)| p <= probability);
                match (above.checked_sub(1).and_then(|below| points.get(below)), points.get(above)) {
                    (Some(&(p0, c0)), Some(&(p1, c1))) => c0 + (c1 - c0) * (probability - p0) / (p1 - p0),
                    (Some(&(_, c)), None) | (None, Some(&(_, c))) => c,
                    (None, None) => 0.0,
                }
            }
        }
    }

    /// The constant that moves the median point of the QQ plot to the diagonal. Rare long delays do not change it.
    pub fn constant(target: &Samples, emulated: &Samples) -> Self {
        let apart = qq(emulated, target, JUDGED_POINTS).iter().map(apart).collect();
        // QQ plots have points, and all are finite.
        Correction::Constant(Samples::new(apart).map_or(0.0, |apart| apart.quantile(0.5)))
    }

    /// The correction that moves each of 20 points of the QQ plot to the diagonal.
    pub fn quantiles(target: &Samples, emulated: &Samples) -> Self {
        let points = qq(emulated, target, POINTS);
        Correction::Quantiles(points.iter().map(|point| (point.probability, apart(point))).collect())
    }

    /// The simpler of both that does as well on samples to which it was not fitted: each half of the samples judges the correction by the
    /// other half.
    ///
    /// # Errors
    /// There are fewer than two samples of one of them.
    pub fn fitted(target: &Samples, emulated: &Samples) -> Result<Self, BadSamples> {
        let (targets, emulations) = (halves(target)?, halves(emulated)?);
        let mut distances = [0.0; 2];
        for (fit, judge) in [(0, 1), (1, 0)] {
            let kinds = [Correction::constant, Correction::quantiles];
            for (kind, distance) in kinds.into_iter().zip(&mut distances) {
                let correction = kind(&targets[fit], &emulations[fit]);
                let corrected = correction.applied_to(&emulations[judge], &emulations[fit])?;
                *distance += QqDistance::of(&targets[judge], &corrected).us;
            }
        }
        let [constant, quantiles] = distances;
        Ok(match quantiles < constant {
            true => Correction::quantiles(target, emulated),
            false => Correction::constant(target, emulated),
        })
    }

    /// The samples with the correction, each at the quantile that it has in the run to which the correction was fitted. No delay becomes
    /// negative.
    ///
    /// # Errors
    /// A sum is not finite.
    pub fn applied_to(&self, samples: &Samples, fitted_to: &Samples) -> Result<Samples, BadSamples> {
        let corrected = |&delay: &f64| (delay + self.at(fitted_to.share_up_to(delay))).max(0.0);
        Samples::new(samples.in_order().iter().map(corrected).collect())
    }
}

/// How far the point is from the diagonal, in the direction of the second distribution.
fn apart(point: &QqPoint) -> f64 {
    point.second_us - point.first_us
}

/// The first and the second half, in the order of their measurement.
fn halves(samples: &Samples) -> Result<[Samples; 2], BadSamples> {
    let (first, second) = samples.in_order().split_at(samples.count() / 2);
    Ok([Samples::new(first.to_vec())?, Samples::new(second.to_vec())?])
}

/// How far a QQ plot is from its diagonal.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct QqDistance {
    /// The mean distance of its points, without sign: the area between the two distribution functions.
    pub us: f64,
    /// The mean of the emulation minus that of the target.
    pub mean_us: f64,
    /// The KS distance of both.
    pub ks: f64,
    /// The KS distance that samples of one distribution exceed once in a hundred times.
    pub ks_limit: f64,
}

impl QqDistance {
    /// The distance of an emulation from its target.
    pub fn of(target: &Samples, emulated: &Samples) -> Self {
        let points = qq(target, emulated, JUDGED_POINTS);
        QqDistance {
            us: points.iter().map(|point| apart(point).abs()).sum::<f64>() / f64::from(JUDGED_POINTS),
            mean_us: emulated.mean_us() - target.mean_us(),
            ks: ks(target, emulated).distance,
            ks_limit: ks_limit(target.count(), emulated.count(), ALPHA),
        }
    }
}
