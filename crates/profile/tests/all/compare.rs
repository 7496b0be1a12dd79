//! Statistics of delays against brute force, exact probabilities, and cases by hand.

use crate::random;

use profile::compare::*;
use profile::{Quantiles, Random};
use proptest::prelude::*;

fn samples(values: &[f64]) -> Samples {
    Samples::new(values.to_vec()).expect("finite numbers")
}

/// Values with many ties.
fn values() -> impl Strategy<Value = Vec<f64>> {
    proptest::collection::vec(prop_oneof![(0..20_u32).prop_map(f64::from), 0.0..20.0_f64], 1..60)
}

/// The largest distance by counting at every value and just below it.
fn counted_ks(a: &[f64], b: &[f64]) -> f64 {
    let share = |of: &[f64], at: f64| of.iter().filter(|&&x| x <= at).count() as f64 / of.len() as f64;
    a.iter().chain(b).map(|&at| (share(a, at) - share(b, at)).abs()).fold(0.0, f64::max)
}

proptest! {
    #[test]
    fn the_ks_distance_is_the_largest_difference_of_counts(a in values(), b in values()) {
        let found = ks(&samples(&a), &samples(&b));
        prop_assert!((found.distance - counted_ks(&a, &b)).abs() < 1e-12);
        let (a, b) = (samples(&a), samples(&b));
        let there = (a.share_up_to(found.at_us) - b.share_up_to(found.at_us)).abs();
        prop_assert!((there - found.distance).abs() < 1e-12);
        prop_assert_eq!(ks(&b, &a).distance, found.distance);
        prop_assert_eq!(ks(&a, &a).distance, 0.0);
    }

    #[test]
    fn the_distance_to_a_table_is_the_largest_on_a_fine_grid(values in values(), seed: u64) {
        let table = random::Draw(seed).quantiles();
        let (low, high) = (table.min_us(), table.max_us());
        let spread: Vec<f64> = values.iter().map(|value| low + (high - low) * value / 20.0).collect();
        let set = samples(&spread);
        let apart = |at: f64| (table.cdf(at) - set.share_up_to(at)).abs();
        let below = |at: f64| {
            let share = spread.iter().filter(|&&x| x < at).count() as f64 / spread.len() as f64;
            (table.cdf_below(at) - share).abs()
        };
        let grid = (0..=2000).map(|step| low + (high - low) * f64::from(step) / 2000.0);
        let at_samples = spread.iter().map(|&at| apart(at).max(below(at))).fold(0.0, f64::max);
        let on_grid = grid.map(|at| apart(at).max(below(at))).fold(0.0, f64::max);
        let found = ks_to_table(&set, &table).distance;
        prop_assert!((found - at_samples).abs() < 1e-12 && on_grid <= found + 1e-9, "{found} {at_samples} {on_grid}");
    }

    #[test]
    fn the_distance_of_tables_is_the_largest_on_a_fine_grid(left: u64, right: u64) {
        let (a, b) = (random::Draw(left).quantiles(), random::Draw(right).quantiles());
        let high = a.max_us().max(b.max_us());
        let grid = (0..=2000).map(|step| high * f64::from(step) / 2000.0);
        let on_grid = grid.map(|at| (a.cdf(at) - b.cdf(at)).abs()).fold(0.0, f64::max);
        let found = ks_of_tables(&a, &b);
        prop_assert!(on_grid <= found + 1e-9 && found <= 1.0, "{on_grid} {found}");
        prop_assert_eq!(ks_of_tables(&a, &a), 0.0);
    }

    #[test]
    fn a_quantile_is_between_its_neighbours(values in values(), p in 0.0..=1.0_f64) {
        let set = samples(&values);
        let quantile = set.quantile(p);
        let below = values.iter().filter(|&&value| value < quantile).count() as f64;
        let up_to = values.iter().filter(|&&value| value <= quantile).count() as f64;
        let position = p * (values.len() - 1) as f64;
        prop_assert!(below <= position + 1.0 && position < up_to + 1e-9, "{below} {position} {up_to}");
    }

    #[test]
    fn a_table_is_as_near_to_its_samples_as_its_steps(seed: u64, count in 2..3000_usize) {
        let law = random::Draw(seed).quantiles();
        let mut draw = Random::new(seed);
        let set = samples(&(0..count).map(|_| law.at(draw.unit())).collect::<Vec<_>>());
        let table = table(&set).unwrap();
        let step = 1.0 / f64::from(TABLE_POINTS) + 1.0 / (count - 1) as f64;
        prop_assert!(ks_to_table(&set, &table).distance <= step + 1e-9);
        prop_assert_eq!(table.min_us(), set.sorted()[0]);
        prop_assert_eq!(table.max_us(), set.sorted()[count - 1]);
    }
}

#[test]
fn ks_by_hand() {
    let found = ks(&samples(&[1.0, 2.0, 3.0, 4.0]), &samples(&[3.0, 4.0, 5.0, 6.0]));
    assert_eq!((found.distance, found.at_us), (0.5, 2.0));
    let table = Quantiles::new(&[(0.0, 0.0), (1.0, 10.0)]).unwrap();
    let found = ks_to_table(&samples(&[1.0, 7.0]), &table);
    assert!((found.distance - 0.4).abs() < 1e-12 && found.at_us == 1.0, "{found:?}");
    // A table with a step: half of all delays are 5. All samples below it.
    let table = Quantiles::new(&[(0.0, 4.0), (0.25, 5.0), (0.75, 5.0), (1.0, 6.0)]).unwrap();
    assert_eq!(ks_to_table(&samples(&[5.0]), &table).distance, 0.25);
    assert_eq!(ks_to_table(&samples(&[1.0]), &table).distance, 1.0);
    let moved = Quantiles::new(&[(0.0, 0.0), (1.0, 10.0)]).unwrap();
    assert!((ks_of_tables(&moved, &moved.plus_us(2.0)) - 0.2).abs() < 1e-12);
}

/// How probable a KS distance of at least `distance` is between two sets of `n` independent samples without ties: the share of
/// lattice paths that leave the band. Counted one step at a time.
fn exact_p(n: usize, distance: f64) -> f64 {
    let inside = |i: usize, j: usize| (i as f64 - j as f64).abs() / (n as f64) < distance - 1e-9;
    let mut paths = vec![vec![0.0_f64; n + 1]; n + 1];
    let mut total = vec![vec![1.0_f64; n + 1]; n + 1];
    for i in 0..=n {
        for j in 0..=n {
            let from = |grid: &Vec<Vec<f64>>| match (i, j) {
                (0, 0) => 1.0,
                (0, _) => grid[0][j - 1],
                (_, 0) => grid[i - 1][0],
                _ => grid[i - 1][j] + grid[i][j - 1],
            };
            total[i][j] = from(&total);
            paths[i][j] = if inside(i, j) { from(&paths) } else { 0.0 };
        }
    }
    1.0 - paths[n][n] / total[n][n]
}

#[test]
fn the_p_value_is_near_the_exact_one() {
    for n in [20, 40, 100] {
        for steps in 1..n / 2 {
            let shift = f64::from(u32::try_from(steps).unwrap());
            // The ranks of b are those of a, moved by so many steps: the distance is steps / n.
            let a: Vec<f64> = (0..n).map(|index| index as f64).collect();
            let b: Vec<f64> = a.iter().map(|value| value + shift - 0.5).collect();
            let found = ks(&samples(&a), &samples(&b));
            let exact = exact_p(n, found.distance);
            assert!((found.p_value - exact).abs() < 0.08, "{n} {steps}: {} {exact}", found.p_value);
            if exact < 0.1 {
                assert!((found.p_value - exact).abs() < 0.025, "{n} {steps}: {} {exact}", found.p_value);
            }
        }
    }
}

#[test]
fn the_limit_is_exceeded_as_often_as_said() {
    // 1.358 and 1.628: the factors of every table of the KS test.
    assert!((ks_limit(100, 100, 0.05) - 1.358 * 0.02_f64.sqrt()).abs() < 1e-3);
    assert!((ks_limit(1000, 500, 0.01) - 1.628 * 0.003_f64.sqrt()).abs() < 1e-3);
    assert_eq!(ks_limit(0, 1, 0.01), 1.0);
    let mut random = Random::new(5);
    let mut draw = || samples(&(0..200).map(|_| random.unit()).collect::<Vec<_>>());
    let limit = ks_limit(200, 200, 0.05);
    let exceeded = (0..1000).filter(|_| ks(&draw(), &draw()).distance > limit).count();
    assert!((20..=70).contains(&exceeded), "{exceeded}");
}

#[test]
fn qq_points_of_a_shift_are_a_parallel() {
    let a = samples(&(0..1000).map(f64::from).collect::<Vec<_>>());
    let b = samples(&(0..1000).map(|value| f64::from(value) + 50.0).collect::<Vec<_>>());
    let points = qq(&a, &b, 4);
    let expected = [0.125, 0.375, 0.625, 0.875].map(|p| (p, 999.0 * p, 999.0 * p + 50.0));
    let found: Vec<_> = points.iter().map(|p| (p.probability, p.first_us, p.second_us)).collect();
    assert_eq!(found, expected);
    assert_eq!(QqPoint { probability: 0.5, first_us: 0.0, second_us: 0.0 }.relative(), 0.0);
    assert_eq!(QqPoint { probability: 0.5, first_us: 100.0, second_us: 95.0 }.relative(), 0.05);
    let comparison = Comparison::of(&a, &b, &Bootstrap::default());
    assert!((comparison.mean_relative - 50.0 / 499.5).abs() < 1e-12);
    // The relative distance of a shift is the largest at the smallest quantile: 50 of 999 × 0.005.
    assert!((comparison.quantiles_apart(0.95) - 50.0 / 4.995).abs() < 1e-9);
}

#[test]
fn damaged_samples_are_refused() {
    assert_eq!(
        Samples::new(Vec::new()).unwrap_err().to_string(),
        "there are 0 samples; expected 1 to 10000000"
    );
    let bad = Samples::new(vec![1.0, f64::NAN]).unwrap_err();
    assert_eq!(bad.to_string(), "sample 2 is NaN; expected a finite number");
    assert!(fit(&samples(&[-1.0, 2.0]), 1).is_err());
}

/// All means of samples of three with replacement, 27 of them, in order.
fn all_means_of_three(of: [f64; 3]) -> Vec<f64> {
    let mut means = Vec::new();
    for a in of {
        for b in of {
            for c in of {
                means.push((a + b + c) / 3.0);
            }
        }
    }
    means.sort_by(f64::total_cmp);
    means
}

#[test]
fn single_draws_have_the_interval_of_all_possible_draws() {
    let of = [1.0, 5.0, 30.0];
    let all = all_means_of_three(of);
    let bootstrap = Bootstrap { block: 1, resamples: 100_000, seed: 3 };
    let found = mean_difference(&samples(&[0.0]), &samples(&of), &bootstrap);
    // 27 means of equal probability: 2.5 % is the first of them, 97.5 % is the last, and both are atoms of 1/27.
    assert_eq!((found.low_us, found.high_us), (all[0], all[26]));
    assert_eq!(found.difference_us, 12.0);
}

#[test]
fn blocks_of_two_are_the_circle_of_neighbours() {
    // The only blocks are (1, 5), (5, 9) and (9, 1), cut to fill three places: the third sample is 1, 5 or 9.
    let mut possible: Vec<f64> = Vec::new();
    for block in [6.0, 14.0, 10.0] {
        for single in [1.0, 5.0, 9.0] {
            possible.push((block + single) / 3.0);
        }
    }
    possible.sort_by(f64::total_cmp);
    let bootstrap = Bootstrap { block: 2, resamples: 20_000, seed: 9 };
    let found = mean_difference(&samples(&[0.0]), &samples(&[1.0, 5.0, 9.0]), &bootstrap);
    assert!((found.low_us - possible[0]).abs() < 1e-9, "{found:?}");
    assert!((found.high_us - possible[8]).abs() < 1e-9, "{found:?}");
    // The whole in one block: every resample has the same mean.
    let whole = mean_difference(
        &samples(&[0.0]),
        &samples(&[1.0, 5.0, 9.0]),
        &Bootstrap { block: 3, resamples: 100, seed: 1 },
    );
    assert!(whole.half_width_us() < 1e-9, "{whole:?}");
}

/// A queue's delays, roughly: each is nine tenths of the one before, plus noise. Their mean is 0.
fn dependent(random: &mut Random, count: usize) -> Samples {
    let mut value = 0.0;
    let mut next = |_| {
        value = 0.9 * value + random.unit() - 0.5;
        value
    };
    samples(&(0..count).map(&mut next).collect::<Vec<_>>())
}

#[test]
fn blocks_make_the_interval_wide_enough_for_dependent_delays() {
    let mut random = Random::new(11);
    let mut covered = [0, 0];
    for seed in 0..200 {
        let (a, b) = (dependent(&mut random, 600), dependent(&mut random, 600));
        for (index, block) in [40, 1].into_iter().enumerate() {
            let found = mean_difference(&a, &b, &Bootstrap { block, resamples: 400, seed });
            covered[index] += u32::from(found.low_us <= 0.0 && 0.0 <= found.high_us);
        }
    }
    // 95 % of 200 is 190. Single draws ignore the dependence, and their intervals are too narrow.
    assert!(covered[0] >= 170 && covered[1] <= 110, "{covered:?}");
}

#[test]
fn the_same_seed_gives_the_same_interval() {
    let a = samples(&[1.0, 2.0, 5.0, 9.0]);
    let b = samples(&[2.0, 2.0, 7.0, 8.0]);
    let with = |seed| mean_difference(&a, &b, &Bootstrap { block: 2, resamples: 50, seed });
    assert_eq!(with(4), with(4));
    assert!((1..50).any(|seed| with(seed) != with(4)));
}

#[test]
fn a_fit_judges_samples_that_it_has_not_seen() {
    let mut random = Random::new(21);
    let law = Quantiles::new(&[(0.0, 100.0), (0.9, 200.0), (1.0, 5_000.0)]).unwrap();
    let good = samples(&(0..2000).map(|_| law.at(random.unit())).collect::<Vec<_>>());
    let good = fit(&good, 7).unwrap();
    assert_eq!((good.used, good.held_back), (1600, 400));
    assert!(good.ks <= good.ks_limit, "{good:?}");
    // No distribution is nearer than 1/20 to ten samples. The table is 1/40 from the forty that made it.
    let fifty = fit(&samples(&(0..50).map(f64::from).collect::<Vec<_>>()), 7).unwrap();
    assert_eq!((fifty.used, fifty.held_back), (40, 10));
    assert!(fifty.ks >= 0.05, "{fifty:?}");
    let few = fit(&samples(&[5.0, 6.0]), 7).unwrap();
    assert_eq!((few.used, few.held_back), (2, 2));
    let one = fit(&samples(&[5.0]), 7).unwrap();
    assert_eq!((one.table, one.ks), (Quantiles::constant(5.0), 0.0));
}

#[test]
fn a_true_table_is_seldom_called_a_poor_fit() {
    let mut random = Random::new(33);
    let mut draw = |_| samples(&(0..500).map(|_| random.unit()).collect::<Vec<_>>());
    let poor =
        (0..300).map(&mut draw).filter(|set| fit(set, 1).is_ok_and(|fit| fit.ks > fit.ks_limit)).count();
    assert!(poor <= 10, "{poor}");
}

#[test]
fn halves_of_a_run_that_drifts_are_apart() {
    let steady = samples(&[1.0, 2.0, 1.0, 2.0]);
    assert_eq!(halves(&steady).map(|itself| (itself.ks, itself.mean_us)), Some((0.0, 0.0)));
    let drifts = halves(&samples(&[1.0, 1.0, 2.0, 2.0])).unwrap();
    assert_eq!((drifts.ks, drifts.mean_us, drifts.pairs), (1.0, 1.0, 1));
    assert_eq!(halves(&samples(&[1.0])), None);
}

#[test]
fn runs_are_compared_in_every_division_into_halves() {
    let set = |values: &[f64]| samples(values);
    // Four runs can be divided in three ways: {0,1}, {0,2} or {0,3} against the others.
    let four = [set(&[0.0]), set(&[0.0]), set(&[4.0]), set(&[4.0])];
    let found = runs(&four, 1).unwrap();
    assert_eq!((found.pairs, found.mean_us, found.mean_largest_us), (3, 0.0, 4.0));
    assert_eq!((found.ks, found.ks_largest), (0.0, 1.0));
    let count = |n: usize| {
        let sets: Vec<_> = (0..n).map(|index| set(&[index as f64])).collect();
        runs(&sets, 1).map(|found| found.pairs)
    };
    // n!/(h! h! (n-2h)!) / 2, until there are more than 126.
    assert_eq!(
        [1, 2, 3, 5, 6, 8, 10, 11].map(count),
        [None, Some(1), Some(3), Some(15), Some(10), Some(35), Some(126), Some(SPLITS_MAX)]
    );
    assert_eq!(found.allowed_ks(0.05, 1.2), 0.05);
    assert_eq!(found.allowed_mean_us(0.0, 1.2), 0.0);
}

#[test]
fn a_profile_differs_from_itself_in_nothing_and_from_another_in_what_was_changed() {
    let first = random::profile(3);
    assert_eq!(changes(&first, &first), []);
    let mut second = first.clone();
    second.name = "other".to_owned();
    second.timeouts.scan_period_us = 123.0;
    second.cpu.queue_messages = match first.cpu.queue_messages {
        Some(_) => None,
        None => Some(7),
    };
    let found: Vec<_> =
        changes(&first, &second).into_iter().map(|change| (change.key, change.second)).collect();
    let queue = second.cpu.queue_messages.map(|count| count.to_string());
    let expected = [
        ("cpu.queue_messages".to_owned(), queue),
        ("timeouts.scan_period_us".to_owned(), Some("123".to_owned())),
    ];
    assert_eq!(found, expected);
}

#[test]
fn a_changed_delay_is_read_back_as_a_distribution() {
    let first = random::profile(3);
    let mut second = first.clone();
    second.delay.egress_us = first.delay.egress_us.plus_us(5.0);
    second.hardware = None;
    let changes = changes(&first, &second);
    let (before, after) = changes.iter().find_map(Change::delays).unwrap();
    assert_eq!((before, after), (first.delay.egress_us, second.delay.egress_us));
    assert_eq!(changes.iter().filter(|change| change.delays().is_some()).count(), 1);
}
