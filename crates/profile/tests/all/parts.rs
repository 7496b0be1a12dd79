//! The parts of a profile: what their numbers say, by hand.

use flow::{Field, Match};
use profile::*;

#[test]
fn a_curve_is_straight_between_points_and_constant_outside() {
    let curve = Curve::new(&[(10.0, 100.0), (20.0, 300.0), (40.0, 200.0)]).unwrap();
    let costs = [0.0, 10.0, 15.0, 20.0, 30.0, 40.0, 1e6].map(|rules| curve.at(rules));
    assert_eq!(costs, [100.0, 100.0, 200.0, 300.0, 250.0, 200.0, 200.0]);
}

#[test]
fn damaged_curves_are_refused_with_their_place() {
    let check = |points: &[(f64, f64)], expected: &str| {
        assert_eq!(Curve::new(points).unwrap_err().to_string(), expected);
    };
    check(&[], "there are 0 points; expected 1 to 256");
    check(&[(5.0, 1.0), (5.0, 2.0)], "point 2 is at 5 rules after 5; expected rising numbers of rules");
    check(&[(-1.0, 1.0)], "point 1 is at -1 rules; expected 0 to 100000000");
    check(&[(0.0, f64::NAN)], "point 1 costs NaN µs; expected 0 to 86400000000");
}

fn constant(cost_us: f64) -> Curve {
    Curve::constant(cost_us)
}

#[test]
fn each_order_of_adds_has_its_own_cost() {
    let cost = AddCost {
        same: constant(10.0),
        ascending: constant(20.0),
        descending: constant(100.0),
        random: Some(constant(70.0)),
    };
    assert_eq!(cost.at(0, 0, 0), 10.0);
    assert_eq!(cost.at(50, 0, 0), 10.0);
    assert_eq!(cost.at(50, 50, 0), 20.0);
    assert_eq!(cost.at(50, 0, 50), 100.0);
    assert_eq!(cost.at(50, 25, 25), 70.0);
    let unmeasured = AddCost { random: None, ..cost };
    assert_eq!(unmeasured.at(50, 25, 25), 60.0);
    // A tenth is higher, the others are the same: a tenth of the way from `same` to `descending`.
    assert_eq!(unmeasured.at(50, 0, 5), 19.0);
}

#[test]
fn a_match_takes_an_entry_of_the_first_class_that_has_its_fields() {
    let layer2 = Capacity {
        fields: vec![Field::EthDst, Field::VlanVid],
        exact: true,
        entries: 32_768,
        at_least: false,
        memory: 1,
    };
    let hardware = Hardware { capacities: vec![layer2, Capacity::any(1912)], ..Hardware::default() };
    let to = Match::any().with(Field::EthDst, 5_u64);
    assert_eq!(hardware.class_of(&to), Some(0));
    assert_eq!(hardware.class_of(&to.clone().with(Field::InPort, 1_u32)), Some(1));
    assert_eq!(hardware.class_of(&Match::any().with_masked(Field::EthDst, 4_u64, 12_u64)), Some(1));
    let narrow = Hardware { capacities: vec![hardware.capacities[0].clone()], ..Hardware::default() };
    assert_eq!(narrow.class_of(&Match::any().with(Field::InPort, 1_u32)), None);
}

#[test]
fn the_most_precise_pattern_recognises_a_switch() {
    let pattern = |manufacturer: &str, software: &str| Recognition {
        manufacturer: manufacturer.to_owned(),
        hardware: String::new(),
        software: software.to_owned(),
    };
    let any = Switch { recognised_by: vec![pattern("HP*", "")], ..Switch::default() };
    let this = Switch { recognised_by: vec![pattern("HP*", "K.15.06.5008")], ..Switch::default() };
    let description = Description { manufacturer: "HP", hardware: "J9451A", software: "K.15.06.5008" };
    assert!(any.recognises(&description) < this.recognises(&description));
    assert!(any.recognises(&Description { software: "K.16", ..description }).is_some());
    assert_eq!(this.recognises(&Description { software: "K.16", ..description }), None);
    // A whole text is more precise than a prefix of the same length.
    let prefix = Switch { recognised_by: vec![pattern("HP*", "K.15.06.5008*")], ..Switch::default() };
    assert!(prefix.recognises(&description) < this.recognises(&description));
    assert_eq!(Switch::default().recognises(&description), None);
}

#[test]
fn the_longest_path_gives_the_origin() {
    let assumed = |text: &str| Provenance::Assumed(text.to_owned());
    let mut sources = Sources::everything(assumed("all"));
    sources.set("cpu", assumed("cpu"));
    sources.set("cpu.add.service_us", assumed("add"));
    for (path, expected) in [
        ("cpu.add.service_us", "add"),
        ("cpu.add.rank", "cpu"),
        ("cpu", "cpu"),
        ("cpus", "all"),
        ("delay.ingress_us", "all"),
    ] {
        assert_eq!(sources.of(path), Some(&assumed(expected)), "{path}");
    }
    assert_eq!(Sources::default().of("cpu"), None);
}

#[test]
fn rates_follow_from_service_times() {
    let mut slow = Profile::null();
    assert_eq!((slow.setup_rate_per_s(), slow.hardware_rate_per_s()), (None, None));
    slow.cpu.packet_in.service_us = Quantiles::new(&[(0.0, 5_000.0), (1.0, 15_000.0)]).unwrap();
    slow.cpu.add.service_us = Quantiles::constant(5_000.0);
    slow.hardware = Some(Hardware {
        add: AddCost::any_order(constant(10_000.0)),
        cpu_waits: true,
        ..Hardware::default()
    });
    assert_eq!(slow.setup_rate_per_s(), Some(40.0));
    slow.install =
        Some(Install { size_rules: 100, rate_per_s: 8.0, batch_rules: 4, when_full: BufferFull::Spill });
    assert_eq!(slow.hardware_rate_per_s(), Some(8.0));
    assert_eq!(slow.install.unwrap().period_us(), 500_000.0);
}

#[test]
fn a_rule_is_late_unless_the_barrier_is_honest() {
    assert_eq!(Barrier::default().late_us(), None);
    let late = Quantiles::constant(250_000.0);
    let early = Barrier { kind: BarrierKind::Early(late.clone()), rules_in_order: true };
    assert_eq!(early.late_us(), Some(&late));
}
