//! Tuning: which correction puts a QQ plot on its diagonal, and what a profile with it has.

use profile::compare::{Correction, QqDistance, Samples};
use profile::{Fit, Profile, Provenance, Quantiles, Random, built_in};

/// So many delays of a skewed distribution, each changed.
fn run(seed: u64, change: impl Fn(f64) -> f64) -> Samples {
    let mut random = Random::new(seed);
    let delays = (0..2000).map(|_| change(5_000.0 + 2_000.0 * -(1.0 - random.unit()).ln()));
    Samples::new(delays.collect()).unwrap()
}

/// The correction that is fitted to one run, and the distances of another run before and after it.
fn tuned(change: impl Fn(f64) -> f64 + Copy) -> (Correction, QqDistance, QqDistance) {
    let (emulated, target) = (run(1, |delay| delay), run(2, change));
    let correction = Correction::fitted(&target, &emulated).unwrap();
    let (emulated_again, target_again) = (run(3, |delay| delay), run(4, change));
    let corrected = correction.applied_to(&emulated_again, &emulated).unwrap();
    let distance = |samples| QqDistance::of(&target_again, samples);
    (correction, distance(&emulated_again), distance(&corrected))
}

#[test]
fn an_emulation_that_is_later_by_a_constant_gets_a_constant() {
    let (correction, before, after) = tuned(|delay| delay - 1_500.0);
    let Correction::Constant(us) = correction else { panic!("{correction:?}") };
    assert!((us + 1_500.0).abs() < 100.0, "{us}");
    assert!((before.mean_us - 1_500.0).abs() < 150.0 && before.ks > 0.3, "{before:?}");
    assert!(after.us < 0.2 * before.us && after.ks <= after.ks_limit, "{after:?}");
}

#[test]
fn an_emulation_of_another_spread_gets_a_correction_by_quantiles() {
    let (correction, before, after) = tuned(|delay| 2.0 * delay - 7_000.0);
    assert!(matches!(correction, Correction::Quantiles(_)), "{correction:?}");
    assert!(after.us < 0.2 * before.us && after.ks <= after.ks_limit, "{before:?} {after:?}");
}

#[test]
fn nothing_is_gained_where_nothing_is_wrong() {
    let (_, before, after) = tuned(|delay| delay);
    assert!(before.ks <= before.ks_limit && (after.us - before.us).abs() < 150.0, "{before:?} {after:?}");
}

#[test]
fn a_correction_goes_on_behind_its_ends_and_is_a_line_between_its_points() {
    let correction = Correction::Quantiles(vec![(0.25, 10.0), (0.75, 30.0)]);
    assert_eq!([0.0, 0.25, 0.5, 0.75, 1.0].map(|p| correction.at(p)), [10.0, 10.0, 20.0, 30.0, 30.0]);
    assert_eq!(Correction::Quantiles(Vec::new()).at(0.5), 0.0);
    assert!(Correction::fitted(&Samples::new(vec![1.0]).unwrap(), &run(1, |delay| delay)).is_err());
}

fn delays(ingress_us: &[(f64, f64)], egress_us: f64) -> Profile {
    let mut profile = Profile::null();
    profile.delay.ingress_us = Quantiles::new(ingress_us).unwrap();
    profile.delay.egress_us = Quantiles::constant(egress_us);
    profile
}

#[test]
fn a_constant_is_taken_at_ingress_then_at_egress_and_never_more_than_there_is() {
    let profile = delays(&[(0.0, 100.0), (1.0, 300.0)], 50.0);
    let check = |us: f64, ingress_min_us: f64, egress_us: f64, applied_us: f64| {
        let tuned = profile.tuned(&Correction::Constant(us), 2);
        assert_eq!(tuned.applied, Correction::Constant(applied_us), "{us}");
        let delay = &tuned.profile.delay;
        assert_eq!(
            (delay.ingress_us.min_us(), delay.egress_us.min_us()),
            (ingress_min_us, egress_us),
            "{us}"
        );
        assert_eq!(delay.ingress_us.max_us() - delay.ingress_us.min_us(), 200.0, "the shape stays");
    };
    check(100.0, 150.0, 50.0, 100.0);
    check(-100.0, 50.0, 50.0, -100.0);
    check(-240.0, 0.0, 30.0, -240.0);
    check(-1000.0, 0.0, 0.0, -300.0);
}

#[test]
fn a_correction_by_quantiles_never_makes_a_quantile_fall() {
    let profile = delays(&[(0.0, 100.0), (1.0, 300.0)], 0.0);
    let wanted = Correction::Quantiles(vec![(0.0, 0.0), (0.5, -400.0), (1.0, 100.0)]);
    let tuned = profile.tuned(&wanted, 1);
    let table = &tuned.profile.delay.ingress_us;
    assert_eq!([0.0, 0.5, 1.0].map(|p| table.at(p)), [100.0, 100.0, 400.0]);
    assert_eq!(tuned.applied, Correction::Quantiles(vec![(0.0, 0.0), (0.5, -100.0), (1.0, 100.0)]));
}

#[test]
fn a_tuned_profile_says_what_it_is_and_can_be_read() {
    let profile = built_in("quanta-lb4g").unwrap();
    let fit = Fit { what: "completion times".to_owned(), samples: 10, ks: 0.01, ks_limit: 0.05 };
    let tuned = profile.tuned(&Correction::Constant(500.0), 2).profile;
    let tuned = tuned.with_tuning("quanta-lb4g-tuned".to_owned(), &"x".repeat(600), fit.clone());
    let read = Profile::parse("tuned.toml", &tuned.to_toml().unwrap()).unwrap();
    assert_eq!((read.name.as_str(), &read.measurement.fits), ("quanta-lb4g-tuned", &vec![fit]));
    assert_eq!(read.delay.ingress_us.min_us(), 750.0);
    let source = read.sources.of("delay.ingress_us");
    assert!(matches!(source, Some(Provenance::Reconstructed(_))), "{source:?}");
    assert!(matches!(read.sources.of("cpu.add"), Some(Provenance::Reconstructed(_))));
}
