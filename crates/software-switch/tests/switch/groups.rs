//! Groups: the ports by which a packet leaves.

use super::dsl::*;
use crate::has;
use flow::{Action, Field, PortNo};
use openflow::Body;
use openflow::message::*;

fn bucket(port: &str) -> Bucket {
    Bucket { weight: 0, watch_port: PortNo::ANY, watch_group: GROUP_ANY, actions: vec![output(port)] }
}

fn watching(port: u32) -> Bucket {
    Bucket { watch_port: PortNo(port), ..bucket(&port.to_string()) }
}

fn group(command: u16, group_type: u8, group_id: u32, buckets: &[Bucket]) -> Body {
    Body::GroupMod(GroupMod { command, group_type, group_id, buckets: buckets.to_vec() })
}

fn bench_with(group_type: u8, buckets: &[Bucket]) -> Bench {
    let mut bench = Bench::new(V13);
    assert_eq!(bench.refusal(group(0, group_type, 1, buckets)), None);
    bench.add(&[rule(1).apply(&[Action::Group(1)])]);
    bench
}

#[test]
fn a_group_that_makes_no_sense_is_refused() {
    let mut bench = Bench::new(V13);
    let to_group = |id| Bucket { actions: vec![Action::Group(id)], ..bucket("1") };
    for (body, expected) in [
        (group(1, 0, 1, &[]), (6, 8)),
        (group(9, 0, 1, &[]), (6, 11)),
        (group(0, 9, 1, &[]), (6, 10)),
        (group(0, 0, GROUP_ALL, &[]), (6, 1)),
        (group(0, GROUP_TYPE_INDIRECT, 1, &[]), (6, 1)),
        (group(0, GROUP_TYPE_FAST_FAILOVER, 1, &[bucket("1")]), (6, 13)),
        (group(0, 0, 1, &[bucket("TABLE")]), (2, 4)),
        (group(0, 0, 1, &[to_group(5)]), if has(Part::GroupChains) { (2, 9) } else { (6, 5) }),
    ] {
        assert_eq!(bench.refusal(body.clone()), Some(expected), "{body:?}");
    }
    assert_eq!(bench.say(group(0, 0, 1, &[bucket("1")])), []);
    assert_eq!(bench.refusal(group(0, 0, 1, &[])), Some((6, 0)));
    if !has(Part::GroupChains) {
        return;
    }
    assert_eq!(bench.say(group(0, 0, 2, &[to_group(1)])), []);
    assert_eq!(bench.refusal(group(1, 0, 1, &[to_group(2)])), Some((6, 7)), "a loop");
    assert_eq!(bench.refusal(group(2, 0, 1, &[])), Some((6, 9)), "2 hands packets to it");
}

#[test]
fn all_sends_a_copy_by_each_bucket() {
    let changed = Bucket { actions: vec![output("3"), set(Field::EthDst, 5)], ..bucket("3") };
    let mut bench = bench_with(GROUP_TYPE_ALL, &[bucket("2"), changed, bucket("1")]);
    assert_eq!(bench.arrive(1, &ping()).0, "2 3");
}

#[test]
fn indirect_goes_by_its_one_bucket_and_follows_a_modify() {
    let mut bench = bench_with(GROUP_TYPE_INDIRECT, &[bucket("2")]);
    assert_eq!(bench.arrive(1, &ping()).0, "2");
    bench.say(group(1, GROUP_TYPE_INDIRECT, 1, &[bucket("4")]));
    assert_eq!(bench.arrive(1, &ping()).0, "4");
}

#[test]
fn select_keeps_a_conversation_on_one_bucket_and_uses_them_all() {
    let weighed = |port| Bucket { weight: 1, ..bucket(port) };
    let mut bench = bench_with(GROUP_TYPE_SELECT, &[weighed("2"), weighed("3"), bucket("4")]);
    let mut used = std::collections::BTreeSet::new();
    for port in 0..64 {
        let (first, _) = bench.arrive(1, &tcp(port, 80));
        assert_eq!(bench.arrive(1, &tcp(port, 80)).0, first);
        used.insert(first);
    }
    assert_eq!(used.into_iter().collect::<Vec<_>>(), ["2", "3"]);
}

#[test]
fn fast_failover_goes_by_the_first_bucket_that_is_live() {
    let mut bench = bench_with(GROUP_TYPE_FAST_FAILOVER, &[watching(2), watching(3)]);
    assert_eq!(bench.arrive(1, &ping()).0, "2");
    bench.link(2, false);
    assert_eq!(bench.arrive(1, &ping()).0, "3");
    bench.link(3, false);
    assert_eq!(bench.arrive(1, &ping()).0, "");
    bench.link(2, true);
    assert_eq!(bench.arrive(1, &ping()).0, "2");
}

#[test]
fn groups_that_copy_into_groups_cannot_fill_the_memory() {
    if !has(Part::GroupChains) {
        return;
    }
    let mut bench = Bench::new(V13);
    bench.say(group(0, 0, 1, &vec![bucket("2"); 200]));
    for id in 2..6 {
        let onwards = Bucket { actions: vec![Action::Group(id - 1)], ..bucket("1") };
        assert_eq!(bench.say(group(0, 0, id, &vec![onwards; 200])), []);
    }
    bench.add(&[rule(1).apply(&[Action::Group(5)])]);
    assert!(bench.arrive(1, &ping()).0.len() < 10_000);
}

#[test]
fn the_rules_of_a_group_go_with_it() {
    let mut bench = bench_with(GROUP_TYPE_ALL, &[bucket("2")]);
    bench.add(&[rule(2).write(&[Action::Group(1)]).flags(FLOW_MOD_SEND_FLOW_REMOVED)]);
    let said = bench.say(group(2, 0, 1, &[]));
    assert!(matches!(&said[..], [Body::FlowRemoved(gone)] if gone.reason == 3), "{said:?}");
    assert_eq!(bench.switch.flow_count(), 0);
}

#[test]
fn a_group_tells_what_it_is_and_what_it_counted() {
    let mut bench = bench_with(GROUP_TYPE_ALL, &[bucket("2"), bucket("3")]);
    bench.arrive(1, &ping());
    let mut ask = |body| bench.say(Body::MultipartRequest(MultipartRequest { flags: 0, body }));
    let statistics = ask(RequestBody::Group(GROUP_ALL));
    assert!(
        matches!(&statistics[..], [Body::MultipartReply(MultipartReply { body: ReplyBody::Group(groups), .. })]
            if groups[0].ref_count == 1 && groups[0].buckets == [(1, 98), (1, 98)]),
        "{statistics:?}"
    );
    let descriptions = ask(RequestBody::GroupDesc);
    assert!(
        matches!(&descriptions[..], [Body::MultipartReply(MultipartReply { body: ReplyBody::GroupDesc(groups), .. })]
            if groups[0].buckets == [bucket("2"), bucket("3")])
    );
    assert!(matches!(ask(RequestBody::GroupFeatures)[..], [Body::MultipartReply(_)]));
}
