//! From numbers to places on an axis, and where its ticks are.
//!
//! In: a range. Out: a part from 0 to 1, and round numbers. Pure.

/// How an axis counts.
#[derive(Clone, Debug, PartialEq)]
pub enum Scale {
    /// Evenly, from this to that.
    Linear(f64, f64),
    /// By doubling, from this to that; both above 0.
    Doubling(f64, f64),
    /// By factors of ten, from this to that; both above 0.
    Decades(f64, f64),
    /// Names, at the places 0, 1, 2 ….
    Names(Vec<String>),
}

/// Ticks of an axis that counts evenly, about.
const TICKS: f64 = 5.0;

impl Scale {
    /// From 0 to a round number that is not below any of these.
    pub fn from_zero(values: impl IntoIterator<Item = f64>) -> Scale {
        let most = values.into_iter().filter(|value| value.is_finite()).fold(0.0, f64::max);
        let most = if most > 0.0 { most * 1.05 } else { 1.0 };
        let step = round_step(most / TICKS);
        Scale::Linear(0.0, (most / step).ceil() * step)
    }

    /// Where a value lies: 0 at the beginning of the axis, 1 at its end; beyond it, at its end.
    pub(super) fn part(&self, value: f64) -> f64 {
        let (value, from, to) = match self {
            Scale::Linear(from, to) => (value, *from, *to),
            Scale::Doubling(from, to) | Scale::Decades(from, to) => {
                let least = from.max(f64::MIN_POSITIVE);
                (value.max(least).ln(), least.ln(), to.max(least).ln())
            }
            Scale::Names(names) => (value + 0.5, 0.0, names.len().max(1) as f64),
        };
        if to > from { ((value - from) / (to - from)).clamp(0.0, 1.0) } else { 0.0 }
    }

    /// Ticks: where, and what is written there.
    pub(super) fn ticks(&self) -> Vec<(f64, String)> {
        match self {
            Scale::Linear(from, to) if to > from => {
                let step = round_step((to - from) / TICKS);
                let first = (from / step).ceil() as i64;
                let last = (to / step + 1e-9).floor() as i64;
                (first..=last).map(|number| number as f64 * step).map(|at| (at, short(at))).collect()
            }
            Scale::Linear(..) => Vec::new(),
            Scale::Doubling(from, to) => powers(2.0, *from, *to),
            Scale::Decades(from, to) => powers(10.0, *from, *to),
            Scale::Names(names) => {
                names.iter().enumerate().map(|(place, name)| (place as f64, name.clone())).collect()
            }
        }
    }
}

fn powers(base: f64, from: f64, to: f64) -> Vec<(f64, String)> {
    if from.min(to) <= 0.0 {
        return Vec::new();
    }
    let exponent = |value: f64| value.ln() / base.ln();
    let (first, last) = ((exponent(from) - 1e-9).ceil() as i32, (exponent(to) + 1e-9).floor() as i32);
    (first..=last).map(|power| base.powi(power)).map(|at| (at, short(at))).collect()
}

/// 1, 2 or 5 times a power of ten, not below this.
fn round_step(least: f64) -> f64 {
    let power = 10f64.powf(least.log10().floor());
    [1.0, 2.0, 5.0, 10.0].into_iter().map(|times| times * power).find(|step| *step >= least).unwrap_or(1.0)
}

/// A number in few characters: 1200000 is 1.2M.
pub(super) fn short(value: f64) -> String {
    let (value, unit) = match value.abs() {
        large if large >= 1e9 => (value / 1e9, "G"),
        large if large >= 1e6 => (value / 1e6, "M"),
        large if large >= 1e4 => (value / 1e3, "k"),
        _ => (value, ""),
    };
    let digits = match value.abs() {
        small if small > 0.0 && small < 0.1 => 3,
        small if small < 10.0 => 2,
        _ => 1,
    };
    let text = format!("{value:.digits$}");
    let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    let text = if text == "-0" { "0" } else { text };
    format!("{text}{unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(scale: Scale, expected: &[&str]) {
        let written: Vec<String> = scale.ticks().into_iter().map(|(_, text)| text).collect();
        assert_eq!(written, expected, "{scale:?}");
    }

    #[test]
    fn an_axis_without_a_range_has_no_ticks_and_one_place() {
        check(Scale::Linear(1.0, 1.0), &[]);
        check(Scale::Decades(0.0, 10.0), &[]);
        assert_eq!(Scale::Linear(1.0, 1.0).part(7.0), 0.0);
        assert_eq!(Scale::from_zero([f64::NAN]), Scale::Linear(0.0, 1.0));
    }

    #[test]
    fn ticks_are_round() {
        check(Scale::Linear(0.0, 1.2e9), &["0", "500M", "1G"]);
        check(Scale::Linear(-2.0, 8.0), &["-2", "0", "2", "4", "6", "8"]);
        check(Scale::Doubling(1.0, 64.0), &["1", "2", "4", "8", "16", "32", "64"]);
        check(Scale::Decades(1.0, 1e3), &["1", "10", "100", "1000"]);
    }

    #[test]
    fn numbers_are_short() {
        for (value, expected) in
            [(0.0, "0"), (0.05, "0.05"), (2.5, "2.5"), (64.0, "64"), (9000.0, "9000"), (1.25e6, "1.25M")]
        {
            assert_eq!(short(value), expected);
        }
    }

    #[test]
    fn a_value_lies_between_the_ends_of_its_axis() {
        assert_eq!(Scale::Linear(0.0, 10.0).part(5.0), 0.5);
        assert_eq!(Scale::Linear(0.0, 10.0).part(50.0), 1.0);
        assert_eq!(Scale::Doubling(1.0, 64.0).part(8.0), 0.5);
        assert_eq!(Scale::Decades(1.0, 100.0).part(0.0), 0.0);
        assert_eq!(Scale::Names(vec!["a".into(), "b".into()]).part(1.0), 0.75);
    }
}
