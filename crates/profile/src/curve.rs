//! A cost that depends on how many rules a table has: straight lines between points.
//!
//! In: points (rules, µs). Out: the cost at a number of rules. Before the first and behind the last point it is constant.

use crate::quantiles::VALUE_MAX_US;
use std::fmt;

/// Points of a curve.
pub const POINTS_MAX: usize = 256;

/// The largest number of rules at a point.
pub const RULES_MAX: f64 = 100e6;

/// A cost by occupancy.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    /// (rules, µs); the rules rise strictly.
    points: Box<[(f64, f64)]>,
}

/// Why points are no curve.
#[derive(Clone, Debug, PartialEq)]
pub enum BadCurve {
    /// No point, or more than [`POINTS_MAX`].
    Count(usize),
    /// A number of rules is not above the one before: its index, the one before, and itself.
    RulesDoNotRise(usize, f64, f64),
    /// A number of rules is negative, not a number, or above [`RULES_MAX`]: its index, and itself.
    Rules(usize, f64),
    /// A cost is negative, not a number, or more than a day: its index, and itself.
    Cost(usize, f64),
}

impl fmt::Display for BadCurve {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BadCurve::Count(count) => write!(f, "there are {count} points; expected 1 to {POINTS_MAX}"),
            BadCurve::RulesDoNotRise(index, before, now) => {
                write!(
                    f,
                    "point {} is at {now} rules after {before}; expected rising numbers of rules",
                    index + 1
                )
            }
            BadCurve::Rules(index, rules) => {
                write!(f, "point {} is at {rules} rules; expected 0 to {RULES_MAX}", index + 1)
            }
            BadCurve::Cost(index, cost) => {
                write!(f, "point {} costs {cost} µs; expected 0 to {VALUE_MAX_US}", index + 1)
            }
        }
    }
}

impl std::error::Error for BadCurve {}

impl Default for Curve {
    /// No cost.
    fn default() -> Self {
        Curve::constant(0.0)
    }
}

impl Curve {
    /// The curve through these points (rules, µs).
    pub fn new(points: &[(f64, f64)]) -> Result<Self, BadCurve> {
        if points.is_empty() || points.len() > POINTS_MAX {
            return Err(BadCurve::Count(points.len()));
        }
        for (index, &(rules, cost)) in points.iter().enumerate() {
            if !(0.0..=RULES_MAX).contains(&rules) {
                return Err(BadCurve::Rules(index, rules));
            }
            if !(0.0..=VALUE_MAX_US).contains(&cost) {
                return Err(BadCurve::Cost(index, cost));
            }
        }
        for (index, pair) in points.windows(2).enumerate() {
            if pair[1].0 <= pair[0].0 {
                return Err(BadCurve::RulesDoNotRise(index + 1, pair[0].0, pair[1].0));
            }
        }
        Ok(Curve { points: points.iter().map(|&(rules, cost)| (rules + 0.0, cost + 0.0)).collect() })
    }

    /// The same cost at any occupancy. A cost outside 0 to a day becomes the nearer end, and NaN becomes 0.
    pub fn constant(cost_us: f64) -> Self {
        let cost_us = if cost_us.is_nan() { 0.0 } else { cost_us.clamp(0.0, VALUE_MAX_US) + 0.0 };
        Curve { points: [(0.0, cost_us)].into() }
    }

    /// The points (rules, µs).
    pub fn points(&self) -> &[(f64, f64)] {
        &self.points
    }

    /// The only cost, if there is no other.
    pub fn as_constant(&self) -> Option<f64> {
        let first = self.points[0].1;
        self.points.iter().all(|point| point.1 == first).then_some(first)
    }

    /// The cost in µs with this many rules in the table.
    #[inline]
    pub fn at(&self, rules: f64) -> f64 {
        let above = self.points.partition_point(|point| point.0 <= rules);
        if above == 0 {
            return self.points[0].1;
        }
        let (x0, y0) = self.points[above - 1];
        let Some(&(x1, y1)) = self.points.get(above) else { return y0 };
        let there = y0 + (y1 - y0) * ((rules - x0) / (x1 - x0));
        there.clamp(y0.min(y1), y0.max(y1))
    }
}
