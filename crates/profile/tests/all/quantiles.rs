//! Quantile tables against a walk along their points, and by hand.

use profile::Quantiles;
use profile::quantiles::{BadQuantiles, VALUE_MAX_US};
use proptest::prelude::*;

/// A table: rising probabilities and values that rise or stay.
fn table() -> impl Strategy<Value = Quantiles> {
    proptest::collection::vec((1_u32..1000, prop_oneof![Just(0_u32), 0_u32..100_000]), 1..40).prop_map(
        |steps| {
            let total: u32 = steps.iter().map(|step| step.0).sum();
            let (mut so_far, mut value, mut points) = (0, 17.0, vec![(0.0, 17.0)]);
            for (width, rise) in steps {
                so_far += width;
                value += f64::from(rise) / 8.0;
                points.push((f64::from(so_far) / f64::from(total), value));
            }
            Quantiles::new(&points).expect("rising points")
        },
    )
}

/// The value at `q` by a walk along all segments, the slow way.
fn walked_at(table: &Quantiles, q: f64) -> f64 {
    let points: Vec<_> = table.points().collect();
    for pair in points.windows(2) {
        let [(p0, v0), (p1, v1)] = [pair[0], pair[1]];
        if q < p1 {
            return v0 + (v1 - v0) * (q - p0) / (p1 - p0);
        }
    }
    table.max_us()
}

/// The share at or below a value: the sum over all segments of the part that is not above it.
fn summed_cdf(table: &Quantiles, value: f64) -> f64 {
    let points: Vec<_> = table.points().collect();
    let part = |(p0, v0): (f64, f64), (p1, v1): (f64, f64)| match value {
        value if value >= v1 => p1 - p0,
        value if value < v0 => 0.0,
        value => (p1 - p0) * (value - v0) / (v1 - v0),
    };
    points.windows(2).map(|pair| part(pair[0], pair[1])).sum()
}

proptest! {
    #[test]
    fn the_value_at_a_probability_is_what_a_walk_finds(table in table(), q in 0.0..=1.0_f64) {
        let (found, walked) = (table.at(q), walked_at(&table, q));
        prop_assert!((found - walked).abs() <= 1e-9 * walked.max(1.0), "{found} {walked}");
    }

    #[test]
    fn the_probability_of_a_value_is_the_sum_of_the_segments_below(table in table(), q in -0.1..1.1_f64) {
        let value = table.min_us() + q * (table.max_us() - table.min_us());
        prop_assert!((table.cdf(value) - summed_cdf(&table, value)).abs() < 1e-9);
    }

    #[test]
    fn both_directions_agree(table in table(), q in 0.0..=1.0_f64) {
        let value = table.at(q);
        let (below, at) = (table.cdf_below(value), table.cdf(value));
        prop_assert!(below <= q + 1e-9 && q - 1e-9 <= at, "{below} {q} {at}");
        prop_assert!((table.at(table.quantile_of(value, q)) - value).abs() <= 1e-6 * value.max(1.0));
    }

    #[test]
    fn values_never_fall_and_stay_within_minimum_and_maximum(table in table(), a in 0.0..=1.0_f64, b in 0.0..=1.0_f64) {
        let (low, high) = (a.min(b), a.max(b));
        prop_assert!(table.at(low) <= table.at(high));
        prop_assert!(table.min_us() <= table.at(low) && table.at(high) <= table.max_us());
        let (low, high) = (table.at(low) * 0.9, table.at(high) * 1.1);
        prop_assert!(table.cdf(low) <= table.cdf(high));
    }

    #[test]
    fn points_are_met_exactly(table in table()) {
        for (p, v) in table.points() {
            prop_assert_eq!(table.at(p), v);
            prop_assert!(table.cdf_below(v) <= p && p <= table.cdf(v));
        }
    }

    #[test]
    fn the_mean_is_the_mean_of_many_equal_steps(table in table()) {
        let steps = 20_000;
        let sum: f64 = (0..steps).map(|step| table.at((f64::from(step) + 0.5) / f64::from(steps))).sum();
        let mean = sum / f64::from(steps);
        prop_assert!((table.mean_us() - mean).abs() <= 1e-3 * mean.max(1.0), "{} {}", table.mean_us(), mean);
    }

    #[test]
    fn slow_motion_multiplies_every_quantile(table in table(), q in 0.0..=1.0_f64) {
        prop_assert!((table.times(10.0).at(q) - 10.0 * table.at(q)).abs() <= 1e-6 * table.max_us());
    }
}

#[test]
fn a_share_of_equal_samples_is_a_step_with_two_ends() {
    let table = Quantiles::new(&[(0.0, 10.0), (0.25, 20.0), (0.75, 20.0), (1.0, 40.0)]).unwrap();
    assert_eq!((table.cdf_below(20.0), table.cdf(20.0)), (0.25, 0.75));
    assert_eq!((table.quantile_of(20.0, 0.0), table.quantile_of(20.0, 0.5)), (0.25, 0.5));
    assert_eq!((table.at(0.5), table.at(0.875)), (20.0, 30.0));
    assert_eq!(table.mean_us(), 0.25 * 15.0 + 0.5 * 20.0 + 0.25 * 30.0);
}

#[test]
fn outside_of_the_table_are_its_ends() {
    let table = Quantiles::new(&[(0.0, 10.0), (1.0, 40.0)]).unwrap();
    assert_eq!((table.at(-1.0), table.at(2.0), table.at(f64::NAN)), (10.0, 40.0, 10.0));
    assert_eq!((table.cdf(9.9), table.cdf(40.0), table.cdf(f64::NAN)), (0.0, 1.0, 0.0));
    assert_eq!((table.cdf_below(10.0), table.cdf_below(41.0)), (0.0, 1.0));
}

#[test]
fn a_shift_stops_at_zero() {
    let table = Quantiles::new(&[(0.0, 10.0), (0.5, 20.0), (1.0, 40.0)]).unwrap();
    let moved: Vec<_> = table.plus_us(-15.0).points().collect();
    assert_eq!(moved, [(0.0, 0.0), (0.5, 5.0), (1.0, 25.0)]);
}

#[test]
fn damaged_points_are_refused_with_their_place() {
    let check = |points: &[(f64, f64)], expected: &str| {
        assert_eq!(Quantiles::new(points).unwrap_err().to_string(), expected);
    };
    check(&[(0.0, 1.0)], "there are 1 points; expected 2 to 1024");
    check(&[(0.1, 1.0), (1.0, 2.0)], "the first point is at probability 0.1; expected 0, the minimum");
    check(&[(0.0, 1.0), (0.9, 2.0)], "the last point is at probability 0.9; expected 1, the maximum");
    check(
        &[(0.0, 1.0), (0.5, 2.0), (0.5, 3.0), (1.0, 4.0)],
        "point 3 has probability 0.5 after 0.5; expected rising probabilities",
    );
    check(
        &[(0.0, 1.0), (0.5, 0.5), (1.0, 4.0)],
        "point 2 falls from 1 to 0.5 µs; expected values that never fall",
    );
    check(&[(0.0, -1.0), (1.0, 4.0)], "point 1 is -1 µs; expected 0 to 86400000000");
    check(&[(0.0, 1.0), (1.0, f64::INFINITY)], "point 2 is inf µs; expected 0 to 86400000000");
    let nan = Quantiles::new(&[(0.0, 1.0), (f64::NAN, 2.0), (1.0, 3.0)]);
    assert!(matches!(nan, Err(BadQuantiles::ProbabilityDoesNotRise(1, ..))));
    assert!(matches!(Quantiles::new(&[(0.0, f64::NAN), (1.0, 3.0)]), Err(BadQuantiles::Value(0, _))));
    assert!(matches!(Quantiles::new(&vec![(0.0, 1.0); 5000]), Err(BadQuantiles::Count(5000))));
}

#[test]
fn a_constant_is_kept_within_a_day() {
    assert_eq!(Quantiles::constant(-5.0), Quantiles::default());
    assert_eq!(Quantiles::constant(f64::NAN).as_constant(), Some(0.0));
    assert_eq!(Quantiles::constant(1e30).max_us(), VALUE_MAX_US);
}
