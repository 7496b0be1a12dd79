//! A figure of `burnet bench suite`: a measured value beside its bound.
//!
//! In: a value, and what was asked of it. Out: whether it is reached, and both as text. It measures nothing.

use serde::Serialize;

/// A measured figure, beside its bound.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Figure {
    /// The name of the figure.
    pub name: String,
    /// The bound and its unit.
    pub asked: Bound,
    /// The measured value.
    pub measured: f64,
    /// The smallest and the largest value, if there are several.
    pub spread: Option<(f64, f64)>,
    /// Whether the bound is met.
    pub reached: bool,
    /// How it was measured, and what else was seen.
    pub how: String,
}

impl Figure {
    /// A figure of one value.
    pub fn new(name: impl Into<String>, asked: Bound, measured: f64, how: impl Into<String>) -> Figure {
        let reached = asked.is_reached(measured);
        Figure { name: name.into(), asked, measured, spread: None, reached, how: how.into() }
    }

    /// The figure in a line.
    pub fn line(&self) -> String {
        let (asked, measured) = self.asked.written(self.measured);
        let spread = self.spread.map(|(min, max)| format!(", {min:.3} to {max:.3}")).unwrap_or_default();
        format!("{}: {measured}{spread} (asked {asked}); {}", self.name, self.how)
    }

    /// Adds the smallest and the largest value.
    pub fn between(self, min: f64, max: f64) -> Figure {
        Figure { spread: Some((min, max)), ..self }
    }
}

/// A bound.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Bound {
    /// The value of the bound.
    pub bound: f64,
    /// Whether the bound is a lower one.
    pub at_least: bool,
    /// The unit of the bound and of the measured value.
    pub unit: Unit,
}

/// The unit of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// A ratio.
    Times,
    /// Responses a second.
    PerSecond,
    /// 1,048,576 bytes.
    Mib,
    /// 1,024 bytes.
    Kib,
    /// Milliseconds.
    Ms,
}

impl Bound {
    /// The measured value must be this or more.
    pub const fn at_least(bound: f64, unit: Unit) -> Bound {
        Bound { bound, at_least: true, unit }
    }

    /// The measured value must be this or less.
    pub const fn at_most(bound: f64, unit: Unit) -> Bound {
        Bound { bound, at_least: false, unit }
    }

    /// Whether a measured value meets it. A value that is not a number does not.
    pub fn is_reached(self, measured: f64) -> bool {
        if self.at_least { measured >= self.bound } else { measured <= self.bound }
    }

    /// The bound and a measured value, as they are read.
    pub fn written(self, measured: f64) -> (String, String) {
        let sign = if self.at_least { ">=" } else { "<=" };
        (format!("{sign} {}", self.unit.written(self.bound)), self.unit.written(measured))
    }
}

impl Unit {
    fn written(self, value: f64) -> String {
        match self {
            Unit::Times => format!("{value:.3}"),
            Unit::PerSecond => format!("{value:.0}/s"),
            Unit::Mib => format!("{value:.1} MiB"),
            Unit::Kib => format!("{value:.1} KiB"),
            Unit::Ms if value < 10.0 => format!("{value:.1} ms"),
            Unit::Ms => format!("{value:.0} ms"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_is_a_bound_on_one_side() {
        assert!(
            !Bound::at_least(0.5, Unit::Times).is_reached(0.49)
                && Bound::at_least(0.5, Unit::Times).is_reached(0.5)
        );
        assert!(
            !Bound::at_most(100.0, Unit::Ms).is_reached(101.0)
                && Bound::at_most(100.0, Unit::Ms).is_reached(7.0)
        );
        assert!(
            !Bound::at_least(0.5, Unit::Times).is_reached(f64::NAN),
            "what was not measured is not reached"
        );
    }

    #[test]
    fn bounds_and_values_are_of_one_unit() {
        let check = |asked: Bound, measured: f64, expected: (&str, &str)| {
            let (bound, value) = asked.written(measured);
            assert_eq!((bound.as_str(), value.as_str()), expected);
        };
        check(Bound::at_least(0.85, Unit::Times), 0.9, (">= 0.850", "0.900"));
        check(Bound::at_most(10.0, Unit::Kib), 3.25, ("<= 10.0 KiB", "3.2 KiB"));
        check(Bound::at_least(1e6, Unit::PerSecond), 2.5e6, (">= 1000000/s", "2500000/s"));
    }
}
