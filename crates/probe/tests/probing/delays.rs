//! Service times, ranks, barriers, time-outs, limits and buffers.

use super::profile_of;
use super::toy::{MS, Toy};
use profile::{BarrierKind, MessageType, ModifyKind};

/// Whether a value is within 3 % of the truth.
fn near(value: f64, truth: f64) -> bool {
    (value / truth - 1.0).abs() < 0.03
}

#[test]
fn service_times_and_residual_delays_are_told_apart() {
    let profile = profile_of(&mut Toy { entries: 100, ..Toy::new() });
    let service = |kind: MessageType| profile.cpu.service(kind).service_us.mean_us();
    for (kind, truth) in [
        (MessageType::PacketIn, 5000.0),
        (MessageType::PacketOut, 2000.0),
        (MessageType::Add, 10_000.0),
        (MessageType::Modify, 8000.0),
        (MessageType::Delete, 4000.0),
        (MessageType::Echo, 300.0),
        (MessageType::Barrier, 200.0),
        (MessageType::Statistics, 1000.0),
    ] {
        assert!(near(service(kind), truth), "{kind:?}: {} µs, it was {truth}", service(kind));
    }
    assert!(near(profile.cpu.statistics_entry_us, 50.0), "{}", profile.cpu.statistics_entry_us);
    assert!(near(profile.delay.ingress_us.mean_us(), 3000.0), "{:?}", profile.delay.ingress_us.mean_us());
    assert!(near(profile.delay.egress_us.mean_us(), 7000.0), "{:?}", profile.delay.egress_us.mean_us());
}

#[test]
fn an_echo_that_overtakes_has_a_rank_before_adds() {
    let rank = |toy: &mut Toy| {
        let cpu = profile_of(toy).cpu;
        (cpu.echo.rank, cpu.add.rank, cpu.packet_out.rank)
    };
    assert_eq!(rank(&mut Toy { entries: 100, ..Toy::new() }), (1, 1, 1));
    assert_eq!(rank(&mut Toy { entries: 100, echo_first: true, ..Toy::new() }), (0, 1, 1));
}

#[test]
fn barriers_are_honest_early_or_out_of_order() {
    let kind = |toy: Toy| profile_of(&mut Toy { entries: 100, ..toy }).barrier.kind;
    assert_eq!(kind(Toy::new()), BarrierKind::Honest);
    let BarrierKind::Early(late) = kind(Toy { late_ns: 150 * MS, ..Toy::new() }) else { panic!("not early") };
    assert!(near(late.mean_us(), 150_000.0), "{}", late.mean_us());
    assert!(matches!(kind(Toy { barrier_first: true, ..Toy::new() }), BarrierKind::NotOrdering(_)));
}

#[test]
fn a_modify_with_a_gap_is_a_delete_and_an_add() {
    let kind = |gap_in_modify| {
        let profile = profile_of(&mut Toy { entries: 100, gap_in_modify, ..Toy::new() });
        profile.hardware.unwrap().modify_kind
    };
    assert_eq!(kind(false), ModifyKind::InPlace);
    assert_eq!(kind(true), ModifyKind::DeleteAndAdd);
}

#[test]
fn the_period_of_scans_is_found() {
    let period =
        |scan_ns| profile_of(&mut Toy { entries: 100, scan_ns, ..Toy::new() }).timeouts.scan_period_us;
    assert_eq!(period(0), 0.0);
    assert!(near(period(700 * MS), 700_000.0));
    assert!(near(period(2500 * MS), 2_500_000.0));
}

#[test]
fn a_limit_of_packet_ins_is_found_with_its_burst() {
    let profile = profile_of(&mut Toy { entries: 100, limit: Some((90.0, 60.0)), ..Toy::new() });
    let limit = profile.packet_in.limit.expect("a limit");
    assert!(near(limit.rate_per_s, 90.0), "{limit:?}");
    assert!((58..=62).contains(&limit.burst_packets), "{limit:?}");
    assert!(near(profile.cpu.packet_in.service_us.mean_us(), 5000.0));
}
