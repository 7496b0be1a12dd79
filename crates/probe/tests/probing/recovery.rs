//! Hidden profiles from seeds are found, a seed gives one digest, and switches that no profile describes are called a poor fit.

use probe::recovery::outside::{self, Law};
use probe::recovery::{Line, Outcome, run};

/// What is not found. A number may be off by twice the limit of the experiment: samples of a few minutes differ from seed to seed.
fn wrong(outcome: &Outcome) -> Vec<&Line> {
    outcome.lines.iter().filter(|line| line.error > 2.0 * line.limit).collect()
}

#[test]
fn hidden_switches_are_found() {
    // Each policy, both versions, early barriers, limits, promotions.
    for seed in [1, 6, 14, 37] {
        let outcome = run(seed);
        assert!(wrong(&outcome).is_empty(), "seed {seed}: {:?}", wrong(&outcome));
        assert!(outcome.took_s <= (4.0 * outcome.filling_s).max(300.0), "{} s", outcome.took_s);
    }
}

/// One table ends within a chunk, so that few rules are slow. One evicts the newest rule before a frame meets it. One has a place less, because a
/// rule of 1.0 drops the rest.
#[test]
fn policies_of_tables_that_end_in_odd_places_are_found() {
    for seed in [1034, 1069, 1074] {
        let outcome = run(seed);
        assert!(outcome.are_policies_right(), "seed {seed}: {:?}", wrong(&outcome));
    }
}

#[test]
fn a_seed_gives_one_digest() {
    let (one, two) = (run(6), run(6));
    assert!(!one.lines.is_empty());
    assert_eq!((one.digest, one.lines), (two.digest, two.lines));
}

#[test]
fn a_switch_outside_the_model_is_a_poor_fit_and_a_calm_one_is_not() {
    let poor = |law| {
        let fits = outside::fits(law).expect("a profile");
        fits.into_iter().filter(|fit| !fit.is_good()).map(|fit| fit.what).collect::<Vec<_>>()
    };
    assert_eq!(poor(None), Vec::<String>::new());
    for law in Law::ALL {
        assert_ne!(poor(Some(law)), Vec::<String>::new(), "{law:?}");
    }
}
