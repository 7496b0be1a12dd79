//! Group mods and group statistics (1.3.5, 5.6, 6.5, 7.3.4.2). 1.0 has no groups.

use super::dsl::*;
use crate::has;
use flow::{Action, PortNo};
use openflow::Body;
use openflow::message::*;

const ADD: u16 = 0;
const MODIFY: u16 = 1;
const DELETE: u16 = 2;

fn bucket(port: &str) -> Bucket {
    Bucket { weight: 0, watch_port: PortNo::ANY, watch_group: GROUP_ANY, actions: vec![output(port)] }
}

fn group(command: u16, group_type: u8, group_id: u32, buckets: &[Bucket]) -> Body {
    Body::GroupMod(GroupMod { command, group_type, group_id, buckets: buckets.to_vec() })
}

fn check_refused(body: Body, expected: (u16, u16)) {
    let mut bench = Bench::new(V13);
    bench.say(group(ADD, GROUP_TYPE_ALL, 1, &[bucket("1")]));
    assert_eq!(bench.refusal(body.clone()), Some(expected), "{body:?}");
    let ReplyBody::GroupDesc(groups) = bench.ask(RequestBody::GroupDesc) else { panic!() };
    assert_eq!(groups.len(), 1, "what is refused changes nothing");
}

#[test]
fn a_group_that_is_there_is_not_added_again() {
    check_refused(group(ADD, GROUP_TYPE_ALL, 1, &[]), (6, 0));
}

#[test]
fn a_group_that_is_not_there_is_not_modified() {
    check_refused(group(MODIFY, GROUP_TYPE_ALL, 2, &[]), (6, 8));
}

#[test]
fn numbers_that_no_group_has_are_refused() {
    for id in [0xffff_ff01, GROUP_ALL, GROUP_ANY] {
        check_refused(group(ADD, GROUP_TYPE_ALL, id, &[]), (6, 1));
    }
}

#[test]
fn kinds_and_commands_that_are_none_are_refused() {
    check_refused(group(ADD, 4, 2, &[]), (6, 10));
    check_refused(group(3, GROUP_TYPE_ALL, 2, &[]), (6, 11));
}

#[test]
fn an_indirect_group_has_one_bucket() {
    check_refused(group(ADD, GROUP_TYPE_INDIRECT, 2, &[]), (6, 1));
    check_refused(group(ADD, GROUP_TYPE_INDIRECT, 2, &[bucket("1"), bucket("2")]), (6, 1));
}

#[test]
fn a_bucket_of_fast_failover_watches_what_can_be_there() {
    let watching = |watch_port, watch_group| Bucket { watch_port, watch_group, ..bucket("1") };
    for bad in
        [watching(PortNo::ANY, GROUP_ANY), watching(PortNo::FLOOD, GROUP_ANY), watching(PortNo::ANY, 77)]
    {
        check_refused(group(ADD, GROUP_TYPE_FAST_FAILOVER, 2, &[bad]), (6, 13));
    }
}

#[test]
fn what_a_bucket_cannot_do_is_refused_as_in_a_rule() {
    for (actions, expected) in [
        (vec![output("TABLE")], (2, 4)),
        (vec![Action::Group(9)], if has(Part::GroupChains) { (2, 9) } else { (6, 5) }),
        (vec![Action::PushVlan(1)], (2, 5)),
        (vec![Action::PopPbb], (2, 0)),
    ] {
        check_refused(group(ADD, GROUP_TYPE_ALL, 2, &[Bucket { actions, ..bucket("1") }]), expected);
    }
}

#[test]
fn only_a_select_group_has_weights() {
    let weighed = |weight| Bucket { weight, ..bucket("2") };
    for group_type in [GROUP_TYPE_ALL, GROUP_TYPE_INDIRECT] {
        check_refused(group(ADD, group_type, 2, &[weighed(1)]), (6, 1));
        check_refused(group(MODIFY, group_type, 1, &[weighed(5)]), (6, 1));
    }
    check_refused(group(ADD, GROUP_TYPE_ALL, 2, &[weighed(0), weighed(3)]), (6, 1));
    let failing_over = Bucket { watch_port: PortNo(1), ..weighed(1) };
    check_refused(group(ADD, GROUP_TYPE_FAST_FAILOVER, 2, &[failing_over]), (6, 1));
    let mut bench = Bench::new(V13);
    assert_eq!(bench.say(group(ADD, GROUP_TYPE_SELECT, 2, &[weighed(0), weighed(3)])), []);
}

#[test]
fn a_weight_is_refused_before_what_else_is_wrong() {
    let weighed = |port| Bucket { weight: 1, ..bucket(port) };
    check_refused(group(ADD, GROUP_TYPE_ALL, 1, &[weighed("1")]), (6, 1));
    check_refused(group(MODIFY, GROUP_TYPE_ALL, 9, &[weighed("1")]), (6, 1));
    check_refused(group(ADD, GROUP_TYPE_ALL, 2, &[weighed("TABLE")]), (6, 1));
    check_refused(group(ADD, 7, 2, &[weighed("1")]), (6, 10));
}

#[test]
fn too_many_buckets_are_refused() {
    check_refused(group(ADD, GROUP_TYPE_ALL, 2, &vec![bucket("1"); 257]), (6, 4));
}

#[test]
fn a_circle_is_refused() {
    if !has(Part::GroupChains) {
        return;
    }
    let to = |id| Bucket { actions: vec![Action::Group(id)], ..bucket("1") };
    check_refused(group(MODIFY, GROUP_TYPE_ALL, 1, &[to(1)]), (6, 7));
}

#[test]
fn a_modify_takes_the_new_kind_and_buckets() {
    let mut bench = Bench::new(V13);
    bench.say(group(ADD, GROUP_TYPE_ALL, 1, &[bucket("2"), bucket("3")]));
    bench.add(&[rule(1).apply(&[Action::Group(1)])]);
    assert_eq!(bench.arrive(1, &ping()).0, "2 3");
    assert_eq!(bench.refusal(group(MODIFY, GROUP_TYPE_INDIRECT, 1, &[bucket("4")])), None);
    assert_eq!(bench.arrive(1, &ping()).0, "4");
}

#[test]
fn deleting_what_is_not_there_is_no_error() {
    assert_eq!(Bench::new(V13).say(group(DELETE, GROUP_TYPE_ALL, 9, &[])), []);
}

#[test]
fn all_groups_go_at_once_with_their_rules() {
    let mut bench = Bench::new(V13);
    for id in [1, 2] {
        bench.say(group(ADD, GROUP_TYPE_ALL, id, &[bucket("2")]));
    }
    bench.add(&[
        rule(1).apply(&[Action::Group(1)]).flags(FLOW_MOD_SEND_FLOW_REMOVED),
        rule(2).apply(&[Action::Group(2)]),
        rule(3).output("4"),
    ]);
    let said = bench.say(group(DELETE, GROUP_TYPE_ALL, GROUP_ALL, &[]));
    assert!(matches!(&said[..], [Body::FlowRemoved(gone)] if gone.reason == 3), "{said:?}");
    assert_eq!(bench.switch.flow_count(), 1);
}

#[test]
fn a_group_without_buckets_drops() {
    let mut bench = Bench::new(V13);
    bench.say(group(ADD, GROUP_TYPE_ALL, 1, &[]));
    bench.add(&[rule(1).apply(&[Action::Group(1)])]);
    assert_eq!(bench.arrive(1, &ping()).0, "");
}

#[test]
fn a_group_counts_packets_bytes_and_who_refers_to_it() {
    if !has(Part::GroupChains) {
        return;
    }
    let mut bench = Bench::new(V13);
    bench.say(group(ADD, GROUP_TYPE_ALL, 1, &[bucket("2"), bucket("3")]));
    let onwards = Bucket { actions: vec![Action::Group(1)], ..bucket("1") };
    bench.say(group(ADD, GROUP_TYPE_INDIRECT, 2, &[onwards]));
    bench.add(&[rule(1).apply(&[Action::Group(1)])]);
    bench.arrive(1, &ping());
    bench.pass(9);
    let ReplyBody::Group(groups) = bench.ask(RequestBody::Group(1)) else { panic!() };
    let one = &groups[0];
    assert_eq!((groups.len(), one.ref_count, one.packet_count, one.byte_count), (1, 2, 1, 98));
    assert_eq!((one.duration_s, &one.buckets), (9, &vec![(1, 98), (1, 98)]));
}

#[test]
fn a_group_is_described_as_it_was_given() {
    let mut bench = Bench::new(V13);
    let buckets = [Bucket { weight: 3, ..bucket("2") }, Bucket { weight: 5, ..bucket("3") }];
    bench.say(group(ADD, GROUP_TYPE_SELECT, 7, &buckets));
    let ReplyBody::GroupDesc(groups) = bench.ask(RequestBody::GroupDesc) else { panic!() };
    let expected = GroupDesc { group_type: GROUP_TYPE_SELECT, group_id: 7, buckets: buckets.to_vec() };
    assert_eq!(groups, [expected]);
}

#[test]
fn features_name_all_four_kinds() {
    let ReplyBody::GroupFeatures(features) = Bench::new(V13).ask(RequestBody::GroupFeatures) else {
        panic!()
    };
    assert_eq!((features.types, features.max_groups), (0b1111, [4096; 4]));
    let output_and_set_field = 1 | 1 << 25;
    assert!(features.actions.iter().all(|bits| bits & output_and_set_field == output_and_set_field));
}
