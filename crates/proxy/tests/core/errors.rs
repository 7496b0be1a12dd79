//! Errors of the switch: about whose message they are, and what is in the tables after them.

use crate::delays::apply;
use crate::world::{MS, World};
use flow::{Action, Field, Instruction, Match, PortNo};
use openflow::message::*;
use openflow::{Body, Message, Version};
use profile::{Capacity, Hardware, Profile, WhenFull};
use proxy::Method;

fn refusing(entries: u32) -> Profile {
    let hardware = Hardware {
        capacities: vec![Capacity::any(entries)],
        when_full: WhenFull::Refuse,
        ..Hardware::default()
    };
    Profile { hardware: Some(hardware), ..Profile::null() }
}

fn matching(number: u64) -> Match {
    Match::any().with(Field::EthDst, number)
}

fn add(number: u64) -> FlowMod {
    FlowModFields::default().with(matching(number), apply(vec![Action::output(PortNo(2))]))
}

/// To a group that is not there.
fn refused(command: u8, matching: Match) -> FlowMod {
    let to_no_group = vec![Instruction::ApplyActions(vec![Action::Group(9)])];
    FlowModFields { command, ..FlowModFields::default() }.with(matching, to_no_group)
}

fn bytes(version: Version, xid: u32, flow_mod: &FlowMod) -> Vec<u8> {
    let mut bytes = Vec::new();
    Message { version, xid, body: Body::FlowMod(flow_mod.clone()) }.encode(&mut bytes).unwrap();
    bytes
}

/// The data of the errors that the controller has heard.
fn data(world: &World) -> Vec<Vec<u8>> {
    let data = |(_, message): &(u64, Message)| match &message.body {
        Body::Error(error) => Some(error.data.clone()),
        _ => None,
    };
    world.heard.iter().filter_map(data).collect()
}

/// The instructions of all rules that the switch shows.
fn instructions(world: &mut World) -> Vec<Vec<Instruction>> {
    let all = FlowStatsRequest::default();
    let body = Body::MultipartRequest(MultipartRequest { flags: 0, body: RequestBody::Flow(all) });
    let xid = world.says(body);
    world.run_for(10 * MS);
    let reply = world.heard.iter().find(|(_, message)| message.xid == xid).map(|(_, message)| &message.body);
    match reply {
        Some(Body::MultipartReply(MultipartReply { body: ReplyBody::Flow(rules), .. })) => {
            rules.iter().map(|rule| rule.instructions.clone()).collect()
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_error_about_a_modify_comes_to_the_controller_once_and_the_rules_stay_as_they_were() {
    let mut world = World::new(&refusing(9), Method::Full, Version::V1_3);
    for number in 0..3 {
        world.says(Body::FlowMod(add(number)));
    }
    world.run_for(10 * MS);
    let modify = refused(FLOW_MODIFY, Match::any());
    let xid = world.says(Body::FlowMod(modify.clone()));
    let barrier = world.says(Body::BarrierRequest);
    world.run_for(10 * MS);
    // One flow mod has become three for the switch, which refuses each.
    assert_eq!(world.errors(), [(xid, 2, 9)], "OFPBAC_BAD_OUT_GROUP");
    assert_eq!(data(&world), [bytes(Version::V1_3, xid, &modify)[..64].to_vec()]);
    let order: Vec<u32> = world.heard.iter().map(|(_, message)| message.xid).collect();
    assert_eq!(order, [xid, barrier]);
    assert_eq!(instructions(&mut world), vec![apply(vec![Action::output(PortNo(2))]); 3]);
    assert_eq!(world.proxy.counters().own_errors, 0);
}

#[test]
fn an_error_is_about_the_message_that_the_switch_refused_even_if_its_id_is_used_again() {
    const SAME: u32 = 7;
    let version = Version::V1_3;
    let mut world = World::new(&refusing(9), Method::Full, version);
    let bad = refused(FLOW_ADD, matching(1));
    world.says_bytes(&bytes(version, SAME, &bad));
    world.says_bytes(&bytes(version, SAME, &add(2)));
    world.run_for(100 * MS);
    assert_eq!(world.errors(), [(SAME, 2, 9)]);
    assert_eq!(data(&world), [bytes(version, SAME, &bad)[..64].to_vec()]);
    assert_eq!(instructions(&mut world), [apply(vec![Action::output(PortNo(2))])], "the good one stays");
}

#[test]
fn a_refused_replacement_leaves_the_rule_that_was_there() {
    let mut world = World::new(&refusing(1), Method::Full, Version::V1_3);
    world.says(Body::FlowMod(add(1)));
    world.run_for(10 * MS);
    let xid = world.says(Body::FlowMod(FlowMod { hard_timeout_s: 1, ..refused(FLOW_ADD, matching(1)) }));
    // It has no time-out, as before.
    world.run_for(5_000 * MS);
    assert_eq!(world.errors(), [(xid, 2, 9)]);
    assert_eq!(instructions(&mut world), [apply(vec![Action::output(PortNo(2))])]);
    // It still has its place in the table of one rule.
    let full = world.says(Body::FlowMod(add(2)));
    world.run_for(10 * MS);
    assert_eq!(world.errors()[1..], [(full, 5, 1)]);
    world.says(Body::FlowMod(
        FlowModFields { command: FLOW_DELETE, ..FlowModFields::default() }.with(matching(1), vec![]),
    ));
    world.says(Body::FlowMod(add(2)));
    world.run_for(10 * MS);
    assert_eq!((world.errors().len(), world.rules()), (2, 1));
}

#[test]
fn a_rule_that_was_refused_and_added_again_is_there() {
    let mut world = World::new(&refusing(5), Method::Full, Version::V1_3);
    let xid = world.says(Body::FlowMod(refused(FLOW_ADD, matching(1))));
    world.says(Body::FlowMod(add(1)));
    world.run_for(10 * MS);
    assert_eq!(world.errors(), [(xid, 2, 9)]);
    assert_eq!(instructions(&mut world), [apply(vec![Action::output(PortNo(2))])]);
}

#[test]
fn a_rule_that_was_refused_and_deleted_leaves_no_trace() {
    let mut world = World::new(&refusing(5), Method::Full, Version::V1_3);
    let delete = |number| {
        let fields = FlowModFields { command: FLOW_DELETE_STRICT, ..FlowModFields::default() };
        Body::FlowMod(fields.with(matching(number), vec![]))
    };
    let first = world.says(Body::FlowMod(refused(FLOW_ADD, matching(1))));
    world.says(delete(1));
    world.run_for(10 * MS);
    // The rule comes again, with a group, and goes with it.
    let group = |command| {
        let actions = vec![Action::output(PortNo(2))];
        let bucket = Bucket { weight: 0, watch_port: PortNo::ANY, watch_group: GROUP_ANY, actions };
        let buckets = if command == 0 { vec![bucket] } else { Vec::new() };
        Body::GroupMod(GroupMod { command, group_type: GROUP_TYPE_ALL, group_id: 1, buckets })
    };
    world.says(group(0));
    let fields = FlowModFields { cookie: 7, flags: FLOW_MOD_SEND_FLOW_REMOVED, ..FlowModFields::default() };
    let to_group = vec![Instruction::ApplyActions(vec![Action::Group(1)])];
    world.says(Body::FlowMod(fields.with(matching(1), to_group)));
    world.run_for(10 * MS);
    world.says(group(2));
    world.run_for(10 * MS);
    let removed: Vec<u64> = world
        .heard
        .iter()
        .filter_map(|(_, message)| match &message.body {
            Body::FlowRemoved(removed) => Some(removed.cookie),
            _ => None,
        })
        .collect();
    assert_eq!((world.errors(), removed), (vec![(first, 2, 9)], vec![7]));
    assert_eq!(instructions(&mut world), Vec::<Vec<Instruction>>::new());
}

#[test]
fn a_refused_modify_does_not_bring_a_deleted_rule_back() {
    let mut world = World::new(&refusing(1), Method::Full, Version::V1_3);
    world.says(Body::FlowMod(add(1)));
    world.run_for(10 * MS);
    world.says(Body::FlowMod(refused(FLOW_MODIFY, matching(1))));
    let fields = FlowModFields { command: FLOW_DELETE_STRICT, ..FlowModFields::default() };
    world.says(Body::FlowMod(fields.with(matching(1), vec![])));
    world.says(Body::FlowMod(refused(FLOW_ADD, matching(1))));
    world.run_for(10 * MS);
    assert_eq!((world.errors().len(), world.rules()), (2, 0));
    // The only place is free.
    world.says(Body::FlowMod(add(2)));
    world.run_for(10 * MS);
    assert_eq!((world.errors().len(), world.rules()), (2, 1));
}
