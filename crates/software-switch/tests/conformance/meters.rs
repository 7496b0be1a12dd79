//! Meters (1.3.5, 5.7 and 6.6). 1.0 has none.

use super::dsl::*;
use crate::has;
use flow::{Action, Field, Instruction};
use openflow::Body;
use openflow::message::*;

const KBPS: u16 = 1;
const PKTPS: u16 = 2;
const BURST: u16 = 4;
const STATS: u16 = 8;
const ADD: u16 = 0;
const MODIFY: u16 = 1;
const DELETE: u16 = 2;
const CONTROLLER_METER: u32 = 0xffff_fffe;

fn drop_at(rate: u32, burst_size: u32) -> MeterBand {
    MeterBand { rate, burst_size, kind: MeterBandKind::Drop }
}

fn remark_at(rate: u32, burst_size: u32, steps: u8) -> MeterBand {
    MeterBand { rate, burst_size, kind: MeterBandKind::DscpRemark(steps) }
}

fn meter(command: u16, flags: u16, meter_id: u32, bands: &[MeterBand]) -> Body {
    Body::MeterMod(MeterMod { command, flags, meter_id, bands: bands.to_vec() })
}

/// A switch that sends all packets through meter 1 and out of port 2.
fn bench_with(flags: u16, bands: &[MeterBand]) -> Bench {
    let mut bench = Bench::new(V13);
    assert_eq!(bench.refusal(meter(ADD, flags, 1, bands)), None);
    bench.add(&[measured(1).cookie(0xc).flags(FLOW_MOD_SEND_FLOW_REMOVED)]);
    bench
}

fn measured(meter: u32) -> Rule {
    rule(1).then(Instruction::Meter(meter)).output("2")
}

fn refused(body: Body) -> Option<(u16, u16)> {
    let mut bench = Bench::new(V13);
    bench.say(meter(ADD, PKTPS, 1, &[drop_at(1, 0)]));
    bench.refusal(body)
}

/// How many of `count` packets pass.
fn through(bench: &mut Bench, count: usize) -> usize {
    (0..count).filter(|_| bench.arrive(1, &ping()).0 == "2").count()
}

/// A ping with this DSCP in its type of service.
fn ping_with(dscp: u8) -> Vec<u8> {
    let mut bench = Bench::new(V13);
    let ip = rule(1).on(Field::EthType, 0x800u16);
    bench.add(&[ip.apply(&[set(Field::IpDscp, dscp.into()), output("2")])]);
    bench.becomes(&ping())
}

#[test]
fn a_meter_that_is_there_is_not_added_again() {
    assert_eq!(refused(meter(ADD, PKTPS, 1, &[])), Some((12, 1)));
}

#[test]
fn numbers_that_no_meter_has_are_refused() {
    for id in [0, 0xffff_0001, 0xffff_fffd, METER_ALL] {
        assert_eq!(refused(meter(ADD, PKTPS, id, &[drop_at(1, 0)])), Some((12, 2)), "{id:x}");
    }
    assert_eq!(refused(meter(ADD, PKTPS, 0xffff_0000, &[drop_at(1, 0)])), None, "OFPM_MAX");
    assert_eq!(refused(meter(DELETE, 0, 0, &[])), Some((12, 2)));
}

#[test]
fn a_meter_that_is_not_there_is_not_modified() {
    assert_eq!(refused(meter(MODIFY, PKTPS, 2, &[drop_at(1, 0)])), Some((12, 3)));
}

#[test]
fn a_meter_that_is_not_there_is_deleted_without_a_word() {
    assert_eq!(Bench::new(V13).say(meter(DELETE, 0, 7, &[])), []);
}

#[test]
fn flags_that_contradict_or_are_unknown_are_refused() {
    assert_eq!(refused(meter(ADD, KBPS | PKTPS, 2, &[drop_at(1, 0)])), Some((12, 5)));
    assert_eq!(refused(meter(ADD, 1 << 4, 2, &[drop_at(1, 0)])), Some((12, 5)));
}

#[test]
fn a_rate_or_burst_of_nothing_is_refused() {
    assert_eq!(refused(meter(ADD, PKTPS, 2, &[drop_at(0, 0)])), Some((12, 6)));
    assert_eq!(refused(meter(ADD, PKTPS | BURST, 2, &[drop_at(1, 0)])), Some((12, 7)));
}

#[test]
fn a_band_of_an_experimenter_is_refused() {
    let kind = MeterBandKind::Experimenter { experimenter: 1, data: vec![] };
    assert_eq!(refused(meter(ADD, PKTPS, 2, &[MeterBand { rate: 1, burst_size: 0, kind }])), Some((12, 8)));
}

#[test]
fn a_precedence_that_no_class_has_is_refused() {
    for steps in [0, 3] {
        assert_eq!(refused(meter(ADD, PKTPS, 2, &[remark_at(1, 0, steps)])), Some((12, 9)), "{steps}");
    }
}

#[test]
fn more_meters_than_there_is_room_for_are_refused() {
    let mut bench = Bench::new(V13);
    let ReplyBody::MeterFeatures(features) = bench.ask(RequestBody::MeterFeatures) else { panic!() };
    for id in 1..=features.max_meter {
        assert_eq!(bench.say(meter(ADD, PKTPS, id, &[drop_at(1, 0)])), []);
    }
    assert_eq!(bench.refusal(meter(ADD, PKTPS, features.max_meter + 1, &[])), Some((12, 10)));
}

#[test]
fn more_bands_than_a_meter_has_are_refused() {
    let mut bench = Bench::new(V13);
    let ReplyBody::MeterFeatures(features) = bench.ask(RequestBody::MeterFeatures) else { panic!() };
    let bands = vec![drop_at(1, 0); usize::from(features.max_bands)];
    assert_eq!(bench.refusal(meter(ADD, PKTPS, 1, &bands)), None);
    let more = [bands, vec![drop_at(1, 0)]].concat();
    assert_eq!(bench.refusal(meter(ADD, PKTPS, 2, &more)), Some((12, 11)));
}

#[test]
fn a_rule_cannot_name_a_meter_that_is_not_there() {
    assert_eq!(refused(measured(2).body()), Some((12, 2)));
    assert_eq!(refused(measured(1).body()), None);
}

#[test]
fn what_comes_too_fast_is_dropped_and_comes_through_again_later() {
    let mut bench = bench_with(PKTPS | BURST, &[drop_at(2, 3)]);
    assert_eq!(through(&mut bench, 10), 3);
    bench.pass(1);
    assert_eq!(through(&mut bench, 10), 2);
}

#[test]
fn a_rate_in_kbit_looks_at_bytes() {
    // A ping of 98 bytes is 784 bits.
    let mut bench = bench_with(KBPS | BURST, &[drop_at(1, 2)]);
    assert_eq!(through(&mut bench, 10), 2);
    bench.pass(1);
    assert_eq!(through(&mut bench, 10), 1);
}

#[test]
fn a_meter_without_bands_only_counts() {
    let mut bench = bench_with(PKTPS, &[]);
    assert_eq!(through(&mut bench, 50), 50);
}

#[test]
fn what_is_dropped_does_not_go_on_in_another_table_nor_by_the_action_set() {
    if !has(Part::Tables) {
        return;
    }
    let mut bench = Bench::new(V13);
    bench.say(meter(ADD, PKTPS | BURST, 1, &[drop_at(1, 1)]));
    bench.add(&[
        rule(1).then(Instruction::Meter(1)).write(&[output("3")]).goto(1),
        rule(1).table(1).output("2"),
    ]);
    assert_eq!(bench.arrive(1, &ping()).0, "2 3");
    assert_eq!(bench.arrive(1, &ping()).0, "");
}

#[test]
fn a_meter_measures_all_its_rules_together() {
    let mut bench = Bench::new(V13);
    bench.say(meter(ADD, PKTPS | BURST, 1, &[drop_at(1, 2)]));
    let by_port =
        |port: u32| rule(1).on(Field::InPort, flow::PortNo(port)).then(Instruction::Meter(1)).output("2");
    bench.add(&[by_port(1), by_port(3)]);
    let out: Vec<String> = [1, 3, 1, 3].map(|port| bench.arrive(port, &ping()).0).to_vec();
    assert_eq!(out, ["2", "2", "", ""]);
}

#[test]
fn the_instructions_order_in_the_message_does_not_matter() {
    let mut bench = Bench::new(V13);
    bench.say(meter(ADD, PKTPS | BURST, 1, &[drop_at(1, 1)]));
    bench.add(&[rule(1).output("2").then(Instruction::Meter(1))]);
    assert_eq!(through(&mut bench, 5), 1);
}

#[test]
fn a_remark_raises_the_drop_precedence_of_assured_forwarding_alone() {
    for (dscp, expected) in [(10, 12), (12, 14), (14, 14), (46, 46), (0, 0)] {
        let mut bench = bench_with(PKTPS | BURST, &[remark_at(1, 1, 1)]);
        let frame = ping_with(dscp);
        assert_eq!(bench.becomes(&frame), frame, "the first is within the rate");
        assert_eq!(bench.becomes(&frame), ping_with(expected), "{dscp}, with its checksum");
    }
}

#[test]
fn a_later_table_sees_what_was_remarked() {
    if !has(Part::Tables) {
        return;
    }
    let mut bench = Bench::new(V13);
    bench.say(meter(ADD, PKTPS | BURST, 1, &[remark_at(1, 1, 2)]));
    bench.add(&[
        rule(1).then(Instruction::Meter(1)).goto(1),
        rule(2).table(1).on(Field::EthType, 0x800u16).on(Field::IpDscp, 14u8).output("4"),
        rule(1).table(1).output("2"),
    ]);
    let out: Vec<String> = (0..3).map(|_| bench.arrive(1, &ping_with(10)).0).collect();
    assert_eq!(out, ["2", "4", "4"]);
}

#[test]
fn a_packet_that_is_not_ip_passes_a_remark_unchanged() {
    let mut bench = bench_with(PKTPS | BURST, &[remark_at(1, 1, 1)]);
    let mut frame = ping();
    frame[12..14].copy_from_slice(&[0x88, 0xb5]);
    assert_eq!((bench.becomes(&frame), bench.becomes(&frame)), (frame.clone(), frame));
}

#[test]
fn a_modified_meter_has_its_new_bands_and_goes_on_counting() {
    let mut bench = bench_with(PKTPS | BURST, &[drop_at(1, 1)]);
    assert_eq!(through(&mut bench, 5), 1);
    assert_eq!(bench.refusal(meter(MODIFY, PKTPS | BURST, 1, &[drop_at(4, 4)])), None);
    assert_eq!(through(&mut bench, 5), 4);
    let ReplyBody::Meter(meters) = bench.ask(RequestBody::Meter(1)) else { panic!() };
    assert_eq!(meters[0].packet_in_count, 10);
}

#[test]
fn a_modify_that_is_refused_leaves_the_meter_as_it_was() {
    let mut bench = bench_with(PKTPS | BURST, &[drop_at(1, 1)]);
    assert_eq!(bench.refusal(meter(MODIFY, PKTPS, 1, &[drop_at(0, 0)])), Some((12, 6)));
    assert_eq!(through(&mut bench, 5), 1);
}

#[test]
fn the_rules_of_a_meter_go_with_it() {
    let mut bench = bench_with(PKTPS, &[drop_at(1, 0)]);
    bench.add(&[rule(7).output("3")]);
    let said = bench.say(meter(DELETE, 0, 1, &[]));
    assert!(
        matches!(&said[..], [Body::FlowRemoved(gone)] if (gone.cookie, gone.reason) == (0xc, 2)),
        "{said:?}"
    );
    assert_eq!(bench.switch.flow_count(), 1);
}

#[test]
fn all_meters_go_at_once() {
    let mut bench = bench_with(PKTPS, &[drop_at(1, 0)]);
    bench.say(meter(ADD, PKTPS, 2, &[drop_at(1, 0)]));
    bench.say(meter(DELETE, 0, METER_ALL, &[]));
    assert_eq!(bench.switch.flow_count(), 0);
    assert_eq!(bench.ask(RequestBody::MeterConfig(METER_ALL)), ReplyBody::MeterConfig(vec![]));
}

#[test]
fn a_meter_tells_what_it_counted_and_for_how_many_rules() {
    let mut bench = bench_with(PKTPS | BURST | STATS, &[drop_at(1, 2), remark_at(1, 9, 1)]);
    through(&mut bench, 5);
    bench.pass(3);
    let ReplyBody::Meter(meters) = bench.ask(RequestBody::Meter(METER_ALL)) else { panic!() };
    let one = &meters[0];
    assert_eq!((one.meter_id, one.flow_count, one.packet_in_count, one.byte_in_count), (1, 1, 5, 490));
    assert_eq!((one.duration_s, &one.bands), (3, &vec![(3, 294), (0, 0)]));
}

#[test]
fn bands_do_not_count_unless_they_are_told_to() {
    let mut bench = bench_with(PKTPS | BURST, &[drop_at(1, 2)]);
    through(&mut bench, 5);
    let ReplyBody::Meter(meters) = bench.ask(RequestBody::Meter(1)) else { panic!() };
    assert_eq!(meters[0].bands, [(0, 0)]);
}

#[test]
fn a_meters_configuration_is_what_it_was_given() {
    let bands = [drop_at(5, 6), remark_at(7, 8, 2)];
    let mut bench = bench_with(KBPS | BURST | STATS, &bands);
    let ReplyBody::MeterConfig(meters) = bench.ask(RequestBody::MeterConfig(1)) else { panic!() };
    let expected = MeterConfig { flags: KBPS | BURST | STATS, meter_id: 1, bands: bands.to_vec() };
    assert_eq!(meters, [expected]);
}

#[test]
fn what_is_asked_of_a_meter_that_is_not_there_is_refused() {
    for body in [RequestBody::Meter(9), RequestBody::MeterConfig(9)] {
        assert_eq!(refused(multipart(body)), Some((12, 3)));
    }
}

#[test]
fn the_features_name_both_kinds_of_band_and_all_flags() {
    let ReplyBody::MeterFeatures(features) = Bench::new(V13).ask(RequestBody::MeterFeatures) else {
        panic!()
    };
    assert_eq!((features.band_types, features.capabilities), (0b110, 0b1111));
}

#[test]
fn the_controllers_meter_measures_packet_ins() {
    if !has(Part::ControllersMeter) {
        return;
    }
    let mut bench = Bench::new(V13);
    assert_eq!(bench.refusal(meter(ADD, PKTPS | BURST, CONTROLLER_METER, &[drop_at(1, 2)])), None);
    bench.add(&[rule(0).apply(&[Action::to_controller(), output("2")])]);
    let out: Vec<String> = (0..4).map(|_| bench.arrive(1, &ping()).0).collect();
    assert_eq!(out, ["2 controller", "2 controller", "2", "2"]);
}
