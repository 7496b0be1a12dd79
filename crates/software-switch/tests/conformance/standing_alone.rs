//! A switch without a controller (1.3.5, 6.3.2; 1.0, 4.3).

use super::dsl::*;
use crate::Switch;
use flow::{DatapathId, Field, PortNo};
use openflow::Version;
use software_switch::{Effects, FailMode, SwitchOptions};
use std::time::Duration;

fn bench(fail_mode: FailMode) -> Bench {
    Bench::with(SwitchOptions { versions: V13, fail_mode, ..SwitchOptions::default() })
}

#[test]
fn a_secure_switch_goes_on_by_its_rules_which_go_on_timing_out() {
    let mut bench = bench(FailMode::Secure);
    bench.add(&[rule(1).on(Field::InPort, PortNo(1)).output("2").timeouts(0, 10)]);
    bench.switch.on_disconnected(C0);
    assert_eq!(bench.arrive(1, &ping()).0, "2");
    assert_eq!(bench.arrive(3, &ping()).0, "");
    assert_eq!(bench.pass(10), []);
    assert_eq!((bench.switch.flow_count(), bench.arrive(1, &ping()).0.as_str()), (0, ""));
}

#[test]
fn a_secure_switch_drops_everything_before_its_first_controller() {
    let mut switch = Switch::new(DatapathId(1), "s1", SwitchOptions::default());
    let mut effects = Effects::default();
    switch.add_port(PortNo(1), Duration::ZERO, &mut effects);
    switch.add_port(PortNo(2), Duration::ZERO, &mut effects);
    switch.on_frame(PortNo(1), ping(), Duration::ZERO, &mut effects);
    assert_eq!(effects.frames, []);
}

#[test]
fn a_standalone_switch_learns_before_its_first_controller() {
    let options = SwitchOptions { fail_mode: FailMode::Standalone, ..SwitchOptions::default() };
    let mut switch = Switch::new(DatapathId(1), "s1", options);
    let mut effects = Effects::default();
    for port in 1..=3 {
        switch.add_port(PortNo(port), Duration::ZERO, &mut effects);
    }
    switch.on_frame(PortNo(1), ping(), Duration::ZERO, &mut effects);
    assert_eq!(effects.frames.len(), 2);
}

#[test]
fn a_standalone_switch_takes_its_rules_out_and_learns_when_the_last_controller_goes() {
    let mut bench = bench(FailMode::Standalone);
    bench.join(1, Version::V1_3);
    bench.add(&[rule(1).output("2")]);
    bench.switch.on_disconnected(C0);
    assert_eq!((bench.arrive(1, &ping()).0.as_str(), bench.switch.flow_count()), ("2", 1), "one is left");
    bench.switch.on_disconnected(software_switch::ControllerId(1));
    assert_eq!(bench.switch.flow_count(), 0);
    assert_eq!(bench.arrive(1, &ping()).0, "2 3 4");
    assert_eq!(bench.arrive(3, &answer()).0, "1");
    assert_eq!(bench.arrive(1, &ping()).0, "3");
}

#[test]
fn a_standalone_switch_stops_when_a_controller_connects() {
    let mut bench = bench(FailMode::Standalone);
    bench.switch.on_disconnected(C0);
    assert_eq!(bench.arrive(1, &ping()).0, "2 3 4");
    bench.switch.on_connected(C0, &mut Effects::default());
    assert_eq!(bench.arrive(1, &ping()).0, "2 3 4", "it has not said hello yet");
    bench.join(0, Version::V1_3);
    assert_eq!(bench.arrive(1, &ping()).0, "");
}

#[test]
fn a_connection_that_never_came_to_a_version_takes_no_rules_out() {
    let mut bench = bench(FailMode::Standalone);
    bench.add(&[rule(1).output("2")]);
    bench.switch.on_connected(software_switch::ControllerId(1), &mut Effects::default());
    bench.switch.on_disconnected(software_switch::ControllerId(1));
    assert_eq!(bench.switch.flow_count(), 1);
}

#[test]
fn a_standalone_switch_keeps_vlans_apart_and_leaves_alone_what_is_for_bridges() {
    let mut bench = bench(FailMode::Standalone);
    bench.switch.on_disconnected(C0);
    bench.arrive(3, &tagged(answer(), 5));
    assert_eq!(bench.arrive(1, &tagged(ping(), 5)).0, "3");
    assert_eq!(bench.arrive(1, &tagged(ping(), 6)).0, "2 3 4");
    let mut for_bridges = ping();
    for_bridges[..6].copy_from_slice(&[0x01, 0x80, 0xc2, 0, 0, 0]);
    assert_eq!(bench.arrive(1, &for_bridges).0, "");
}

/// A packet from the second host to the first.
fn answer() -> Vec<u8> {
    let mut frame = ping();
    frame[..6].copy_from_slice(&H1.0);
    frame[6..12].copy_from_slice(&H2.0);
    frame
}
