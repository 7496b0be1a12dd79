//! A session paces switches that play their profiles, in virtual time: 1,000 rules at once. The settings are those of `burnet.toml`.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should end")]

use experiments::models::paced::{Pair, delays_of_packet_ins, falling_priorities, mean, pace_of};
use southbound::SwitchPace;
use std::time::Duration;

/// A switch that plays a profile, treated as a section says.
fn pair(plays: &str, treated: &str) -> Pair {
    Pair::new(plays, pace_of(treated).unwrap()).unwrap()
}

const PACED: &str = "profile = 'hp-procurve-j9451a'\npace = 'hardware'";

#[test]
fn a_thousand_rules_at_once_are_all_in_the_hardware_of_the_hp_in_a_thousand_eighths_of_a_second() {
    let mut pair = pair("hp-procurve-j9451a", PACED);
    let began = pair.now;
    pair.tries = true;
    (0..1_000).for_each(|host| pair.add(host, 7).unwrap());
    assert_eq!(pair.until_all_are_told(1_000), Ok(1_000), "in hardware when the app is told");
    assert_eq!(pair.by_software, 0, "and never in software before");
    let took = (pair.now - began).as_secs_f64();
    assert!(took <= 1.05 * 1_000.0 / 8.0, "{took} s");
    assert_eq!((pair.switch.flow_count(), pair.session.counters().errors_in), (1_000, 0));
    assert_eq!(pair.departures, 0);
    println!("HP: 1,000 rules in {took:.1} s, all in hardware");
}

#[test]
fn without_a_pace_most_of_them_are_in_the_software_of_the_hp_for_a_while() {
    let mut pair = pair("hp-procurve-j9451a", "profile = 'hp-procurve-j9451a'\npace = 'none'");
    // Without a barrier behind each, for which this switch would wait.
    (0..200).for_each(|host| pair.add_rule(host, 7, false).unwrap());
    // 200 adds of 20 ms.
    pair.pass_to(pair.now + Duration::from_secs(5)).unwrap();
    let in_hardware = (0..200).filter(|host| pair.is_in_hardware(*host).unwrap()).count();
    pair.pass_to(pair.now + Duration::from_secs(2)).unwrap();
    println!(
        "HP without a pace: after 7 s, {in_hardware} of 200 rules in hardware, {} frames by software",
        pair.by_software
    );
    assert!(in_hardware < 100 && pair.by_software > 0, "{in_hardware}, {}", pair.by_software);
}

#[test]
fn packet_ins_of_another_app_are_on_average_at_most_twice_as_late_while_a_thousand_rules_wait() {
    let idle = delays_of_packet_ins(&mut pair("hp-procurve-j9451a", PACED), 120).unwrap();
    let mut pair = pair("hp-procurve-j9451a", PACED);
    (0..1_000).for_each(|host| pair.add(host, 7).unwrap());
    let busy = delays_of_packet_ins(&mut pair, 120).unwrap();
    let middle = |delays: &[f64]| delays[delays.len() / 2];
    println!(
        "HP: packet-ins after {:.1} ms idle and {:.1} ms with 1,000 rules (median {:.1} and {:.1})",
        mean(&idle),
        mean(&busy),
        middle(&idle),
        middle(&busy)
    );
    assert!(mean(&busy) <= 2.0 * mean(&idle) && middle(&busy) <= 2.0 * middle(&idle));
}

#[test]
fn the_pica8_is_never_said_to_have_a_rule_too_early() {
    let mut told = pair("pica8-p3290", "profile = 'pica8-p3290'");
    (0..1_000).for_each(|host| told.add(host, 7).unwrap());
    assert_eq!(told.until_all_are_told(1_000), Ok(1_000), "each rule is there when its app is told");
    assert_eq!((told.packet_ins.len(), told.departures), (0, 0));
    // By its barriers alone, it would be.
    let mut told_by_barriers = pair("pica8-p3290", "profile = 'null'");
    (0..1_000).for_each(|host| told_by_barriers.add(host, 7).unwrap());
    assert!(told_by_barriers.until_all_are_told(1_000).unwrap() < 500);
}

#[test]
fn in_the_cheap_order_the_switch_of_tango_needs_seventy_percent_less_time_for_2000_rules() {
    let cheap = (*pace_of("profile = 'tango-2'").unwrap()).clone();
    let as_they_come = SwitchPace { order: southbound::PriorityOrder::AsTheyCome, ..cheap.clone() };
    let both = |count| {
        [&cheap, &as_they_come].map(|treated| falling_priorities("tango-2", treated.clone(), count).unwrap())
    };
    let ([of_1000, unsorted_1000], [sorted, unsorted]) = (both(1_000), both(2_000));
    println!(
        "Tango: 1,000 rules of falling priorities in {of_1000:.1} s, and unsorted in {unsorted_1000:.1} s"
    );
    println!("Tango: 2,000 rules of falling priorities in {sorted:.1} s, and unsorted in {unsorted:.1} s");
    assert!(of_1000 <= 0.5 * unsorted_1000, "{of_1000} s of {unsorted_1000} s");
    assert!(sorted <= 0.3 * unsorted, "{sorted} s of {unsorted} s");
}

#[test]
fn a_switch_with_the_profile_of_another_has_left_it_and_one_with_its_own_has_not() {
    let departures = |plays: &str, treated: &str| {
        let mut pair = pair(plays, treated);
        (0..300).for_each(|host| pair.add(host, 7).unwrap());
        pair.until_all_are_told(300).unwrap();
        pair.departures
    };
    let own = ["fulcrum-monaco", "quanta-lb4g", "ovs-1.7-x3210", "hp-5406zl", "pica8-p3290", "tango-1"];
    own.iter().for_each(|name| {
        assert_eq!(departures(name, &format!("profile = '{name}'\nprogrammed_quantile = 0.5")), 0, "{name}")
    });
    // The Monaco takes some 20 ms for a rule, the Pica8 one.
    assert_eq!(departures("fulcrum-monaco", "profile = 'pica8-p3290'\nprogrammed_quantile = 0.5"), 1);
    assert_eq!(departures("pica8-p3290", "profile = 'fulcrum-monaco'"), 1);
}

#[test]
fn what_is_not_as_it_should_be_ends_the_experiment_with_a_sentence() {
    let profile_of = |section: &str| pace_of(section).unwrap_err();
    assert!(profile_of("profile = 'none-such'").contains("none-such"));
    assert!(profile_of("pace = 3").contains("pace"));
    let treated = || pace_of("profile = 'fulcrum-monaco'").unwrap();
    assert!(Pair::new("none-such", treated()).is_err());
    // The Monaco has room for 511.
    let why = falling_priorities("fulcrum-monaco", (*treated()).clone(), 512).unwrap_err();
    assert!(why.contains("511") && why.contains("Failed"), "{why}");
    let why = pair("fulcrum-monaco", "profile = 'null'").until_all_are_told(1).unwrap_err();
    assert!(why.contains("nothing is due"), "{why}");
}
