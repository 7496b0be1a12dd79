//! In 1.0, an exact match has a higher priority than all others, whatever its flow mod says (1.0, 3.4 and 5.3.3).
//!
//! The wildcards on the wire decide, as in Open vSwitch. It gives such a rule the priority 65535 and reports that.

use super::dsl::*;
use crate::has;
use flow::{Field, PortNo};
use openflow::Body;
use openflow::message::*;

/// Where the wildcards of a 1.0 flow mod are, after its header.
const WILDCARDS: std::ops::Range<usize> = 8..12;

/// A rule for untagged TCP with every field of 1.0. [`tcp`] makes such a packet.
fn exact(priority: u16) -> Rule {
    rule(priority)
        .on(Field::InPort, PortNo(1))
        .on(Field::EthDst, H2)
        .on(Field::EthSrc, H1)
        .on(Field::EthType, 0x800u16)
        .on(Field::VlanVid, 0u16)
        .on(Field::IpDscp, 0u8)
        .on(Field::IpProto, 6u8)
        .on(Field::Ipv4Src, 0x0a00_0001u32)
        .on(Field::Ipv4Dst, 0x0a00_0002u32)
        .on(Field::TcpSrc, 5u16)
        .on(Field::TcpDst, 6u16)
}

/// The same for ARP, whose packets have no ports and no type of service.
fn exact_arp(priority: u16) -> Rule {
    rule(priority)
        .on(Field::InPort, PortNo(1))
        .on(Field::EthDst, H2)
        .on(Field::EthSrc, H1)
        .on(Field::EthType, 0x806u16)
        .on(Field::VlanVid, 0u16)
        .on(Field::ArpOp, 1u16)
        .on(Field::ArpSpa, 0x0a00_0001u32)
        .on(Field::ArpTpa, 0x0a00_0002u32)
}

/// Sends these rules without a single wildcard, as a controller may that has never heard of 1.3.
fn send_exact(bench: &mut Bench, rules: impl IntoIterator<Item = Rule>) {
    for rule in rules {
        let mut bytes = bench.written(rule.body());
        bytes[WILDCARDS].fill(0);
        assert_eq!(bench.hear(&bytes), Vec::<Vec<u8>>::new());
    }
}

fn priorities(bench: &mut Bench) -> Vec<u16> {
    bench.flows(every_rule()).iter().map(|flow| flow.priority).collect()
}

#[test]
fn an_exact_match_comes_before_every_other_rule_of_1_0() {
    let mut bench = Bench::new(V10);
    bench.add(&[rule(65_000).output("3")]);
    send_exact(&mut bench, [exact(1).output("2")]);
    assert_eq!(bench.arrive(1, &tcp(5, 6)).0, "2");
    assert_eq!(bench.arrive(1, &tcp(5, 7)).0, "3");
    assert_eq!(priorities(&mut bench), [65_535, 65_000]);
}

#[test]
fn a_rule_for_untagged_packets_is_written_so_that_it_keeps_its_priority() {
    let mut bench = Bench::new(V10);
    bench.add(&[rule(65_000).output("3"), exact(1).output("2")]);
    assert_eq!(bench.arrive(1, &tcp(5, 6)).0, "3");
    assert_eq!(priorities(&mut bench), [65_000, 1]);
    bench.add(&[exact(65_535).output("4")]);
    assert_eq!(bench.arrive(1, &tcp(5, 6)).0, "4");
}

#[test]
fn a_tag_with_id_and_priority_is_exact_too() {
    let mut bench = Bench::new(V10);
    let mut tagged_rule = exact(1).output("2");
    tagged_rule.0.matching.remove(Field::VlanVid);
    let in_vlan = tagged_rule.clone().on(Field::VlanVid, 0x1007u16);
    bench.add(&[rule(65_000).output("3"), in_vlan.clone()]);
    assert_eq!(bench.arrive(1, &tagged(tcp(5, 6), 7)).0, "3", "any priority is no exact match");
    bench.add(&[in_vlan.on(Field::VlanPcp, 0u8)]);
    assert_eq!(bench.arrive(1, &tagged(tcp(5, 6), 7)).0, "2");
}

#[test]
fn exact_matches_of_different_priorities_are_one_rule() {
    let mut bench = Bench::new(V10);
    let rules =
        [exact(1).output("2"), exact(9).output("3"), exact(3).output("4").command(FLOW_MODIFY_STRICT)];
    send_exact(&mut bench, rules);
    assert_eq!(priorities(&mut bench), [65_535]);
    assert_eq!(bench.arrive(1, &tcp(5, 6)).0, "4");
    send_exact(&mut bench, [exact(77).command(FLOW_DELETE_STRICT)]);
    assert_eq!(bench.switch.flow_count(), 0);
}

#[test]
fn in_1_3_it_has_the_priority_that_is_said() {
    let mut bench = Bench::new(V13);
    bench.add(&[rule(65_000).output("3"), exact(1).output("2")]);
    assert_eq!(bench.arrive(1, &tcp(5, 6)).0, "3");
    assert_eq!(priorities(&mut bench), [65_000, 1]);
}

#[test]
fn no_wildcards_are_exact_for_packets_without_such_fields_too() {
    let mut bench = Bench::new(V10);
    bench.add(&[rule(65_000).output("3"), exact_arp(1).output("2")]);
    assert_eq!(priorities(&mut bench), [65_000, 1], "what does not apply is written as a wildcard");
    send_exact(&mut bench, [exact_arp(2).output("2")]);
    assert_eq!(priorities(&mut bench), [65_535, 65_000, 1]);
}

#[test]
fn one_wildcard_bit_is_enough_to_be_no_exact_match() {
    if !has(Part::Version13) {
        return;
    }
    for bit in 0..22 {
        let mut bench = Bench::new(V10);
        let mut bytes = bench.written(exact(9).output("2").body());
        bytes[WILDCARDS].copy_from_slice(&(1u32 << bit).to_be_bytes());
        assert_eq!(bench.hear(&bytes), Vec::<Vec<u8>>::new());
        assert_eq!(priorities(&mut bench), [9], "bit {bit}");
    }
}

#[test]
fn it_is_told_and_goes_as_it_was_installed() {
    let mut bench = Bench::new(V10);
    let mut installed = bench.written(exact(1).output("2").flags(FLOW_MOD_SEND_FLOW_REMOVED).body());
    installed[WILDCARDS].fill(0);
    assert_eq!(bench.hear(&installed), Vec::<Vec<u8>>::new());
    let request = bench.written(multipart(RequestBody::Flow(every_rule())));
    let [statistics] = &bench.hear(&request)[..] else { panic!() };
    // After the headers of message, statistics and entry.
    assert_eq!(statistics[16..56], installed[8..48], "in statistics");
    let delete = bench.written(rule(0).command(FLOW_DELETE).body());
    let [removed] = &bench.hear(&delete)[..] else { panic!() };
    assert_eq!(removed[8..48], installed[8..48], "in the flow removed");
    assert_eq!(removed[56..58], 65_535u16.to_be_bytes());
}

#[test]
fn what_no_version_has_masks_for_is_told_without() {
    for versions in [V10, V13] {
        let mut bench = Bench::new(versions);
        let rules = [
            rule(1).on(Field::EthType, 0x800u16).masked(Field::Ipv4Dst, 0x0a00_0000u32, 0xffff_ff00u32),
            rule(2).on(Field::EthType, 0x800u16).on(Field::IpDscp, 46u8),
            rule(3).on(Field::VlanVid, 0x1007u16).on(Field::VlanPcp, 3u8),
            rule(4).masked(Field::VlanVid, 0x1000u16, 0x1000u16).on(Field::VlanPcp, 3u8),
            rule(5).on(Field::VlanVid, 0u16),
        ];
        for rule in &rules {
            let told = rule.clone().flags(FLOW_MOD_SEND_FLOW_REMOVED);
            bench.add(std::slice::from_ref(&told));
            let flows = bench.flows(every_rule());
            assert_eq!(flows[0].matching, told.0.matching, "{versions:?}");
            let gone = bench.say(told.command(FLOW_DELETE_STRICT).body());
            let [Body::FlowRemoved(removed)] = &gone[..] else { panic!("{gone:?}") };
            assert_eq!(removed.matching, rule.0.matching, "{versions:?}");
        }
    }
}
