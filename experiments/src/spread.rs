//! Several values of one measurement, as one point of a chart or as text.
//!
//! In: values. Out: their median, least and most. It measures nothing.

use crate::plot::Point;

/// The median; 0 of nothing.
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let (low, high) = (sorted.len().saturating_sub(1) / 2, sorted.len() / 2);
    match (sorted.get(low), sorted.get(high)) {
        (Some(low), Some(high)) => (low + high) / 2.0,
        _ => 0.0,
    }
}

/// The value that so many per cent of the values do not exceed (the nearest rank); 0 of nothing.
pub fn percentile(values: &[f64], per_cent: usize) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let rank = (sorted.len() * per_cent).div_ceil(100).max(1);
    sorted.get(rank - 1).copied().unwrap_or(0.0)
}

/// Median, least and most, as a point.
pub fn spread_point(x: f64, values: &[f64]) -> Point {
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    Point { x, y: median(values), spread: (values.len() > 1).then_some((least, most)) }
}

/// `median (least to most)` in a unit.
pub fn spread_text(values: &[f64], unit: &str, digits: usize) -> String {
    let point = spread_point(0.0, values);
    match point.spread {
        Some((least, most)) => format!(
            "{:.digits$} {unit} ({least:.digits$} to {most:.digits$}, {} times)",
            point.y,
            values.len()
        ),
        None => format!("{:.digits$} {unit}", point.y),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_of_nothing_is_nothing() {
        assert_eq!(median(&[]), 0.0);
        assert_eq!(median(&[3.0]), 3.0);
        assert_eq!(median(&[4.0, 1.0, 3.0]), 3.0);
        assert_eq!(median(&[4.0, 1.0]), 2.5);
        let hundred: Vec<f64> = (1..=100).rev().map(f64::from).collect();
        assert_eq!((percentile(&hundred, 99), percentile(&hundred, 50)), (99.0, 50.0));
        assert_eq!((percentile(&[7.0], 99), percentile(&[], 99)), (7.0, 0.0));
        assert_eq!(spread_text(&[1.0, 3.0, 2.0], "ms", 1), "2.0 ms (1.0 to 3.0, 3 times)");
    }
}
