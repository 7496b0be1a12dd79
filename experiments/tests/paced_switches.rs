//! A session paces switches that play their profiles, in virtual time: 1,000 rules at once. The settings are those of `burnet.toml`.

use experiments::models::paced::{Pair, delays_of_packet_ins, falling_priorities, mean, pace_of};
use southbound::SwitchPace;
use std::time::Duration;

#[test]
fn a_thousand_rules_at_once_are_all_in_the_hardware_of_the_hp_in_a_thousand_eighths_of_a_second() {
    let mut pair =
        Pair::new("hp-procurve-j9451a", pace_of("profile = 'hp-procurve-j9451a'\npace = 'hardware'"));
    let began = pair.now;
    pair.tries = true;
    (0..1_000).for_each(|host| pair.add(host, 7));
    assert_eq!(pair.until_all_are_told(1_000), 1_000, "in hardware when the app is told");
    assert_eq!(pair.by_software, 0, "and never in software before");
    let took = (pair.now - began).as_secs_f64();
    assert!(took <= 1.05 * 1_000.0 / 8.0, "{took} s");
    assert_eq!((pair.switch.flow_count(), pair.session.counters().errors_in), (1_000, 0));
    assert_eq!(pair.departures, 0);
    println!("HP: 1,000 rules in {took:.1} s, all in hardware");
}

#[test]
fn without_a_pace_most_of_them_are_in_the_software_of_the_hp_for_a_while() {
    let mut pair = Pair::new("hp-procurve-j9451a", pace_of("profile = 'hp-procurve-j9451a'\npace = 'none'"));
    // Without a barrier behind each, for which this switch would wait.
    (0..200).for_each(|host| pair.add_rule(host, 7, false));
    // 200 adds of 20 ms.
    pair.pass_to(pair.now + Duration::from_secs(5));
    let in_hardware = (0..200).filter(|host| pair.is_in_hardware(*host)).count();
    pair.pass_to(pair.now + Duration::from_secs(2));
    println!(
        "HP without a pace: after 7 s, {in_hardware} of 200 rules in hardware, {} frames by software",
        pair.by_software
    );
    assert!(in_hardware < 100 && pair.by_software > 0, "{in_hardware}, {}", pair.by_software);
}

#[test]
fn packet_ins_of_another_app_are_on_average_at_most_twice_as_late_while_a_thousand_rules_wait() {
    let paced = || pace_of("profile = 'hp-procurve-j9451a'\npace = 'hardware'");
    let idle = delays_of_packet_ins(&mut Pair::new("hp-procurve-j9451a", paced()), 120);
    let mut pair = Pair::new("hp-procurve-j9451a", paced());
    (0..1_000).for_each(|host| pair.add(host, 7));
    let busy = delays_of_packet_ins(&mut pair, 120);
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
    let mut pair = Pair::new("pica8-p3290", pace_of("profile = 'pica8-p3290'"));
    (0..1_000).for_each(|host| pair.add(host, 7));
    assert_eq!(pair.until_all_are_told(1_000), 1_000, "each rule is there when its app is told");
    assert_eq!((pair.packet_ins.len(), pair.departures), (0, 0));
    // By its barriers alone, it would be.
    let mut pair = Pair::new("pica8-p3290", pace_of("profile = 'null'"));
    (0..1_000).for_each(|host| pair.add(host, 7));
    assert!(pair.until_all_are_told(1_000) < 500);
}

#[test]
fn in_the_cheap_order_the_switch_of_tango_needs_seventy_percent_less_time_for_2000_rules() {
    let cheap = (*pace_of("profile = 'tango-2'")).clone();
    let as_they_come = SwitchPace { order: southbound::PriorityOrder::AsTheyCome, ..cheap.clone() };
    let both =
        |count| [&cheap, &as_they_come].map(|treated| falling_priorities("tango-2", treated.clone(), count));
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
        let mut pair = Pair::new(plays, pace_of(treated));
        (0..300).for_each(|host| pair.add(host, 7));
        pair.until_all_are_told(300);
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
