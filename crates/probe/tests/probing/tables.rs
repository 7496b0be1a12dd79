//! Sizes and policies of tables, set-up rates, and switches that cannot be probed.

use super::toy::{Full, MS, Toy, US};
use super::{LIMIT_NS, options, probed, profile_of, refusal_of};
use openflow::Version;
use probe::journal::Kept;
use probe::{Finished, Part, Probe, virtual_time};
use profile::{PromotionOrder, SoftwareUse, Victim, WhenFull};

fn size_and_policy(toy: &mut Toy) -> (u32, bool, WhenFull) {
    let profile = profile_of(toy);
    let hardware = profile.hardware.expect("a hardware table");
    let last = hardware.capacities.last().expect("a size");
    (last.entries, last.at_least, hardware.when_full)
}

#[test]
fn the_size_is_exact_and_the_policy_is_named() {
    for entries in [65, 300, 511] {
        let toy = |full| Toy { entries, full, ..Toy::new() };
        let expected = |policy| (entries as u32, false, policy);
        assert_eq!(size_and_policy(&mut toy(Full::Refuse)), expected(WhenFull::Refuse));
        assert_eq!(size_and_policy(&mut toy(Full::Ignore)), expected(WhenFull::Ignore));
        assert_eq!(size_and_policy(&mut toy(Full::Spill)), expected(WhenFull::Spill));
        let by = [
            Full::EvictOldest,
            Full::EvictNewest,
            Full::EvictLeastRecentlyUsed,
            Full::EvictLeastUsed,
            Full::EvictLowestPriority,
        ];
        for victim in by {
            assert_eq!(size_and_policy(&mut toy(victim)), expected(WhenFull::Evict), "{victim:?}");
        }
    }
}

#[test]
fn the_rule_that_makes_place_is_named() {
    for (full, victim) in [
        (Full::EvictOldest, Victim::Oldest),
        (Full::EvictNewest, Victim::Newest),
        (Full::EvictLeastRecentlyUsed, Victim::LeastRecentlyUsed),
        (Full::EvictLeastUsed, Victim::LeastUsed),
        (Full::EvictLowestPriority, Victim::LowestPriority),
    ] {
        let profile = profile_of(&mut Toy { entries: 130, full, ..Toy::new() });
        assert_eq!(profile.hardware.unwrap().evict, [victim]);
    }
}

#[test]
fn costs_by_order_and_occupancy_are_found() {
    let mut toy =
        Toy { add_per_rule_ns: 10 * US, per_lower_ns: 20 * US, per_higher_ns: 100 * US, ..Toy::new() };
    let profile = profile_of(&mut toy);
    let hardware = profile.hardware.unwrap();
    let whole_us =
        |lower, higher| profile.cpu.add.service_us.mean_us() + hardware.add.at(lower + higher, lower, higher);
    for (lower, higher) in [(0, 0), (100, 0), (0, 100), (60, 60)] {
        let truth =
            10_000.0 + 10.0 * f64::from(lower + higher) + 20.0 * f64::from(lower) + 100.0 * f64::from(higher);
        let found = whole_us(lower, higher);
        assert!(
            (found / truth - 1.0).abs() < 0.03,
            "{lower} lower, {higher} higher: {found} µs, it was {truth}"
        );
    }
}

#[test]
fn the_software_table_is_measured() {
    for (above, full) in [(Some((8.0, 4.0)), Full::Refuse), (None, Full::Spill)] {
        let promotion = Some((1300 * MS, 3, true));
        let mut toy = Toy { above, full, promotion, entries: 100, software_ns: 3 * MS, ..Toy::new() };
        let software = profile_of(&mut toy).software.expect("a software table");
        let rate = software.forward_packets_per_s.expect("a rate");
        assert!((rate * 3e-3 - 1.0).abs() < 0.03, "{rate} packets/s");
        let promotion = software.promotion.expect("promotion");
        assert!((promotion.period_us / 1.3e6 - 1.0).abs() < 0.03, "{promotion:?}");
        assert_eq!((promotion.batch_rules, promotion.order), (3, PromotionOrder::Newest));
    }
}

#[test]
fn the_set_up_rate_is_the_throughput_of_adds() {
    let profile = profile_of(&mut Toy { add_ns: 24 * MS, ..Toy::new() });
    let add_us = profile.cpu.add.service_us.mean_us() + profile.hardware.unwrap().add.at(0, 0, 0);
    assert!((add_us / 24e3 - 1.0).abs() < 0.03, "{add_us} µs");
}

#[test]
fn the_rate_that_stays_in_hardware_is_found() {
    let profile = profile_of(&mut Toy { above: Some((8.0, 4.0)), add_ns: 25 * MS, ..Toy::new() });
    let Some(SoftwareUse::AboveRate { rate_per_s, burst_rules }) = profile.software.map(|it| it.when) else {
        panic!("no rate");
    };
    assert!(
        (rate_per_s / 8.0 - 1.0).abs() < 0.03 && (3..=5).contains(&burst_rules),
        "{rate_per_s}, {burst_rules}"
    );
}

#[test]
fn a_table_without_an_end_is_at_least_as_large_as_the_bound() {
    let mut toy = Toy { entries: 1 << 20, add_ns: MS, delete_ns: MS / 100, ..Toy::new() };
    let options = probe::Options { table_max: 700, ..options() };
    let Finished::Profile(profile) = probed(&mut toy, options).finished else { panic!("refused") };
    let capacity = profile.hardware.unwrap().capacities.pop().unwrap();
    assert_eq!((capacity.entries, capacity.at_least), (700, true));
}

#[test]
fn a_table_that_evicts_is_exact_by_1_0_too() {
    // There, the rule that drops the rest takes a place.
    let mut toy = Toy { version: Version::V1_0, packet_in_ns: MS / 100, entries: 100, ..Toy::new() };
    toy.full = Full::EvictNewest;
    assert_eq!(size_and_policy(&mut toy), (100, false, WhenFull::Evict));
}

#[test]
fn a_machine_that_stands_still_now_and_then_changes_no_size() {
    let busy = |full, add_ns| Toy { full, add_ns, stands_still: Some((500 * MS, 180 * MS)), ..Toy::new() };
    let options = || probe::Options {
        parts: vec![Part::Table],
        transit_margin_ns: MS,
        watch_tick_ns: MS / 2,
        repetitions: 3,
        ..options()
    };
    for (full, policy) in [
        (Full::Refuse, WhenFull::Refuse),
        (Full::EvictNewest, WhenFull::Evict),
        (Full::EvictOldest, WhenFull::Evict),
        (Full::Spill, WhenFull::Spill),
    ] {
        for add_ns in [MS / 5, MS, 3 * MS] {
            let Finished::Profile(profile) = probed(&mut busy(full, add_ns), options()).finished else {
                panic!("refused")
            };
            let hardware = profile.hardware.expect("a hardware table");
            let found = (hardware.capacities[0].entries, hardware.when_full);
            assert_eq!(found, (300, policy), "{full:?}, {add_ns} ns an add");
        }
    }
}

#[test]
fn both_versions_are_probed() {
    let mut toy = Toy { version: Version::V1_0, packet_in_ns: MS / 100, entries: 100, ..Toy::new() };
    assert_eq!(size_and_policy(&mut toy), (100, false, WhenFull::Refuse));
}

#[test]
fn foreign_rules_are_refused_with_their_number_or_cleared() {
    let why = refusal_of(&mut Toy { foreign_rules: 3, ..Toy::new() });
    assert!(why.contains("3 rules that no probe added"), "{why}");
    let options = probe::Options { clear: true, ..options() };
    let ended = probed(&mut Toy { foreign_rules: 3, ..Toy::new() }, options);
    assert!(matches!(ended.finished, Finished::Profile(_)));
}

#[test]
fn a_wrong_cable_is_named() {
    let why = refusal_of(&mut Toy { cut: true, ..Toy::new() });
    assert_eq!(why, "port 2 is not at veth2: nothing came in 2 s");
    let why = refusal_of(&mut Toy { crossed: true, ..Toy::new() });
    assert_eq!(why, "port 1 is not at veth1: its frame came to veth2");
}

#[test]
fn a_switch_that_leaves_gives_an_incomplete_profile() {
    let mut toy = Toy { leaves_at_ns: Some(4000 * MS), ..Toy::new() };
    let ended = probed(&mut toy, options());
    let Finished::Profile(profile) = ended.finished else { panic!("refused") };
    assert!(profile.measurement.incomplete);
    assert!(ended.report.contains("the switch left"), "{}", ended.report);
}

#[test]
fn a_later_probe_goes_on_where_the_switch_left() {
    let toy = || Toy { entries: 100, ..Toy::new() };
    let whole = profile_of(&mut toy());
    for leaves_at_s in [3, 20, 60] {
        let mut leaving = Toy { leaves_at_ns: Some(leaves_at_s * 1000 * MS), ..toy() };
        let first = probed(&mut leaving, options());
        let kept = Kept::parse(&first.kept.expect("records")).unwrap();
        let phases = kept.phases.len();
        assert!(phases > 0 || leaves_at_s == 3, "after {leaves_at_s} s");
        let probe = Probe::resuming(options(), kept);
        let second = virtual_time::run(probe, &mut toy(), LIMIT_NS).expect("an end");
        let Finished::Profile(found) = second.finished else { panic!("refused") };
        assert!(!found.measurement.incomplete && second.kept.is_none());
        assert_eq!(found.hardware, whole.hardware, "after {leaves_at_s} s, {phases} phases");
        assert_eq!(found.cpu.packet_in, whole.cpu.packet_in);
        assert!(second.took_ns < first.took_ns + 600_000 * MS);
    }
}

#[test]
fn records_of_another_switch_are_refused() {
    let first = probed(&mut Toy { leaves_at_ns: Some(4000 * MS), ..Toy::new() }, options());
    let kept = Kept::parse(&first.kept.expect("records")).unwrap();
    let probe = Probe::resuming(probe::Options { table_max: 500, ..options() }, kept);
    let second = virtual_time::run(probe, &mut Toy::new(), LIMIT_NS).expect("an end");
    assert!(matches!(second.finished, Finished::Refused(why) if why.contains("of another probe")));
}

#[test]
fn records_of_another_switch_of_the_same_model_are_refused() {
    let first = probed(&mut Toy { leaves_at_ns: Some(4000 * MS), ..Toy::new() }, options());
    let kept = Kept::parse(&first.kept.expect("records")).unwrap();
    let mut other = Toy { datapath_id: 7, ..Toy::new() };
    let second = virtual_time::run(Probe::resuming(options(), kept), &mut other, LIMIT_NS).expect("an end");
    assert!(matches!(second.finished, Finished::Refused(why) if why.contains("of another probe")));
}

#[test]
fn a_probe_that_goes_on_checks_the_cables_again() {
    let first = probed(&mut Toy { leaves_at_ns: Some(20_000 * MS), ..Toy::new() }, options());
    let kept = Kept::parse(&first.kept.expect("records")).unwrap();
    let mut crossed = Toy { crossed: true, ..Toy::new() };
    let second = virtual_time::run(Probe::resuming(options(), kept), &mut crossed, LIMIT_NS).expect("an end");
    let Finished::Refused(why) = second.finished else { panic!("not refused") };
    assert_eq!(why, "port 1 is not at veth1: its frame came to veth2");
}

#[test]
fn records_that_were_cut_short_are_refused() {
    let first = probed(&mut Toy { leaves_at_ns: Some(20_000 * MS), ..Toy::new() }, options());
    let mut kept = Kept::parse(&first.kept.expect("records")).unwrap();
    kept.phases[0][0].outcomes.pop();
    let second =
        virtual_time::run(Probe::resuming(options(), kept), &mut Toy::new(), LIMIT_NS).expect("an end");
    assert!(matches!(second.finished, Finished::Refused(why) if why.contains("start without them")));
}

#[test]
fn only_the_parts_that_were_asked_for_are_measured() {
    let options = probe::Options { parts: vec![Part::Table], ..options() };
    let ended = probed(&mut Toy { entries: 100, ..Toy::new() }, options);
    let Finished::Profile(profile) = ended.finished else { panic!("refused") };
    assert_eq!(profile.hardware.map(|it| it.capacities[0].entries), Some(100));
    let left_out = &profile.measurement.not_measured;
    assert!(left_out.iter().any(|it| it.what == "set-up rate" && it.why == "nobody asked for it"));
    assert!(!profile.measurement.incomplete);
}

#[test]
fn the_file_of_a_profile_can_be_read() {
    for toy in [Toy::new(), Toy { full: Full::EvictOldest, entries: 100, ..Toy::new() }] {
        let mut toy = toy;
        let profile = profile_of(&mut toy);
        let text = profile.to_toml().unwrap();
        assert_eq!(profile::Profile::parse("toy.toml", &text).unwrap().to_toml().unwrap(), text);
    }
}

#[test]
fn two_probes_of_the_same_switch_have_the_same_digest() {
    let digest = || probed(&mut Toy { entries: 100, ..Toy::new() }, options()).digest;
    assert_eq!(digest(), digest());
}
