//! Switches that follow profiles: the probe finds what the profile says.

use super::profile_of;
use openflow::Version;
use probe::modelled::Modelled;
use profile::{BarrierKind, Profile, PromotionOrder, SoftwareUse, WhenFull, built_in};

fn found(name: &str) -> (Profile, Profile) {
    let truth = built_in(name).expect("a built-in profile");
    let found = profile_of(&mut Modelled::new(&truth, Version::V1_3, 1));
    (truth, found)
}

fn entries(profile: &Profile) -> Vec<u32> {
    profile.hardware.iter().flat_map(|it| &it.capacities).map(|capacity| capacity.entries).collect()
}

fn add_us(profile: &Profile) -> f64 {
    profile.cpu.add.service_us.mean_us() + profile.hardware.as_ref().map_or(0.0, |it| it.add.at(0, 0, 0))
}

#[test]
fn the_monaco_is_found() {
    let (truth, found) = found("fulcrum-monaco");
    assert_eq!(entries(&found), [511]);
    assert_eq!(found.hardware.as_ref().map(|it| it.when_full), Some(WhenFull::Refuse));
    assert!((add_us(&found) / add_us(&truth) - 1.0).abs() < 0.03, "{} µs", add_us(&found));
    assert_eq!(found.packet_in.buffers_packets, Some(256));
    assert!((found.timeouts.scan_period_us / truth.timeouts.scan_period_us - 1.0).abs() < 0.01);
    assert_eq!(found.barrier.kind, BarrierKind::Honest);
}

#[test]
fn the_software_table_of_the_hp_is_found() {
    let (_, found) = found("hp-procurve-j9451a");
    assert_eq!(entries(&found), [1500]);
    assert_eq!(found.hardware.as_ref().map(|it| it.when_full), Some(WhenFull::Spill));
    let software = found.software.expect("a software table");
    let SoftwareUse::AboveRate { rate_per_s, burst_rules } = software.when else { panic!("{software:?}") };
    assert!((rate_per_s / 8.0 - 1.0).abs() < 0.03 && burst_rules == 8, "{rate_per_s}, {burst_rules}");
    assert!((software.forward_bits_per_s.unwrap() / 3e6 - 1.0).abs() < 0.03);
    let promotion = software.promotion.expect("promotion");
    assert!((promotion.period_us / 1e6 - 1.0).abs() < 0.03, "{promotion:?}");
    assert_eq!((promotion.batch_rules, promotion.order), (4, PromotionOrder::Oldest));
}

#[test]
fn the_reordering_of_the_pica8_is_found() {
    let (truth, found) = found("pica8-p3290");
    assert_eq!(entries(&found), [2000]);
    assert!(!found.barrier.rules_in_order);
    let (late, true_late) = (found.barrier.late_us().unwrap(), truth.barrier.late_us().unwrap());
    assert!(
        late.max_us() > 0.8 * true_late.max_us() && late.max_us() < 1.05 * true_late.max_us(),
        "{late:?}"
    );
}

#[test]
fn a_switch_without_delays_and_limits_is_measured_too() {
    let (_, found) = found("null");
    let hardware = found.hardware.expect("a table");
    assert!(hardware.capacities[0].at_least);
    assert!(found.cpu.add.service_us.max_us() < 200.0);
}
