//! Flow mods: what they become, what is refused, and how rules end.

use crate::world::{TAG, World, add, delete, errors, plan, written};
use flow::text::{instructions_to_string, match_to_string};
use flow::{ErrorCode, MacAddr, PortNo};
use openflow::message::*;
use openflow::{Body, Message, Version};
use slicer::{Command, Isolation, Limit, Limits, SlicePlan};

fn vlan(on: Version) -> World {
    let mut world = World::new(Isolation::Vlan(TAG), on);
    world.join(0, Version::V1_3);
    world.commands.clear();
    world
}

fn flowspace(matches: &[&str]) -> World {
    let matches = matches.iter().map(|it| flow::text::parse_match(it).unwrap()).collect();
    let mut world = World::new(Isolation::Flowspace(matches), Version::V1_3);
    world.join(0, Version::V1_3);
    world.commands.clear();
    world
}

/// The flow mods of the physical switch, in short.
fn shown(world: &World) -> Vec<String> {
    let flow_mod = |command: &Command| match command {
        Command::FlowMod(it) => Some(format!(
            "{} {},{} {}",
            it.command,
            it.priority,
            match_to_string(&it.matching),
            instructions_to_string(&it.instructions)
        )),
        _ => None,
    };
    world.commands.iter().filter_map(flow_mod).collect()
}

fn check_refused(world: &mut World, flow_mod: FlowMod, expected: (u16, u16)) {
    let before = world.commands.len();
    let answers = world.say(Body::FlowMod(flow_mod.clone()));
    assert_eq!(errors(&answers), [expected], "{flow_mod:?}");
    assert_eq!(world.commands.len(), before, "nothing of it is carried out");
}

#[test]
fn what_would_leave_the_slice_is_refused() {
    let world = &mut vlan(Version::V1_3);
    check_refused(world, add(5, "", "normal"), (2, 6));
    check_refused(world, add(5, "", "local"), (2, 6));
    check_refused(world, add(5, "", "output:9"), (2, 4));
    check_refused(world, add(5, "", "output:1,table"), (2, 4));
    check_refused(world, add(5, "in_port=9", "output:1"), (5, 4));
    check_refused(world, add(5, "dl_vlan=7", "output:1"), (5, 4));
    check_refused(world, add(5, "vlan_vid=0x1000/0x1000", "output:1"), (5, 4));
    check_refused(world, add(5, "", "push_vlan:0x8100,output:1"), (2, 6));
    check_refused(world, add(5, "", "set_field:4103->vlan_vid,output:1"), (2, 6));
    check_refused(world, add(5, "mpls", "pop_mpls:0x8100,output:1"), (2, 6));
    check_refused(world, add(5, "mpls", "pop_mpls:0x88cc,output:1"), (2, 6));
    check_refused(world, add(5, "mpls", "pop_mpls:0x8942,output:1"), (2, 6));
    check_refused(world, add(5, "", "set_field:0x8100->eth_type"), (2, 13));
    check_refused(world, add(5, "", "group:1"), (2, 9));
    check_refused(world, add(5, "", "load:1->NXM_NX_REG0[]"), (2, 2));
    check_refused(world, add(5, "reg0=1", "output:1"), (4, 6));
    check_refused(world, add(5, "metadata=1", "output:1"), (4, 6));
    check_refused(world, add(5, "", "goto_table:1"), (3, 2));
    check_refused(world, FlowMod { table_id: 1, ..add(5, "", "output:1") }, (5, 2));
    // What the codec does not write.
    let bytes = written(Version::V1_3, Body::FlowMod(add(5, "", "output:1")));
    for (place, expected) in [(25, (5, 6)), (44, (5, 7))] {
        let mut bytes = bytes.clone();
        bytes[place] = 9;
        assert_eq!(errors(&world.send(0, &bytes)), [expected]);
    }
}

#[test]
fn what_would_leave_the_slice_gets_the_errors_of_1_0() {
    let mut world = World::new(Isolation::Vlan(TAG), Version::V1_3);
    world.join(0, Version::V1_0);
    let world = &mut world;
    check_refused(world, add(5, "", "normal"), (2, 6));
    check_refused(world, add(5, "", "local"), (2, 6));
    check_refused(world, add(5, "", "output:9"), (2, 4));
    check_refused(world, add(5, "", "output:1,output:9"), (2, 4));
    check_refused(world, add(5, "in_port=9", "output:1"), (3, 2));
    check_refused(world, add(5, "dl_vlan=7", "output:1"), (3, 2));
    check_refused(world, add(5, "", "mod_vlan_vid:7,output:1"), (2, 6));
    let space = vec![flow::text::parse_match("ip,nw_dst=10.0.0.0/24").unwrap()];
    let mut world = World::new(Isolation::Flowspace(space), Version::V1_0);
    world.join(0, Version::V1_0);
    let world = &mut world;
    check_refused(world, add(5, "ip", "mod_nw_dst:10.0.9.1,output:3"), (2, 6));
    check_refused(world, add(5, "arp", "output:1"), (3, 2));
}

#[test]
fn a_rewrite_out_of_the_flowspace_is_refused_but_at_the_edge() {
    let world = &mut flowspace(&["ip,nw_dst=10.0.0.0/24"]);
    let out = "set_field:10.0.9.1->ip_dst";
    check_refused(world, add(5, "ip", &format!("{out},output:3")), (2, 6));
    check_refused(world, add(5, "ip", &format!("{out},controller")), (2, 6));
    assert!(errors(&world.say(Body::FlowMod(add(5, "ip", &format!("{out},output:1"))))).is_empty());
    assert!(
        errors(&world.say(Body::FlowMod(add(6, "ip", "set_field:10.0.0.9->ip_dst,output:3")))).is_empty()
    );
    check_refused(world, add(5, "arp", "output:1"), (5, 4));
}

#[test]
fn a_rule_becomes_a_piece_for_each_port() {
    let mut world = vlan(Version::V1_3);
    world.say(Body::FlowMod(add(5, "dl_type=0x0806", "flood")));
    let flood = |ins: &str, out: &str| format!("0 7,arp,{ins} {out}");
    assert_eq!(
        shown(&world),
        [
            flood(
                "in_port=2,vlan_tci=0x0000/0x1fff",
                "output:3,push_vlan:0x8100,set_field:4138->vlan_vid,output:5,output:6"
            ),
            flood(
                "in_port=3,vlan_tci=0x0000/0x1fff",
                "output:2,push_vlan:0x8100,set_field:4138->vlan_vid,output:5,output:6"
            ),
            flood("in_port=5,dl_vlan=42", "output:6,pop_vlan,output:2,output:3"),
            flood("in_port=6,dl_vlan=42", "output:5,pop_vlan,output:2,output:3"),
        ]
    );
}

#[test]
fn pieces_that_others_cover_are_left_out() {
    let mut world = flowspace(&["ip,nw_dst=10.0.0.0/24", "tcp,tp_dst=80", "in_port=5,arp"]);
    world.say(Body::FlowMod(add(5, "in_port=3,tcp,nw_dst=10.0.0.1", "output:1")));
    assert_eq!(shown(&world), ["0 7,tcp,in_port=5,nw_dst=10.0.0.1 output:2"]);
    world.commands.clear();
    world.say(Body::FlowMod(add(5, "in_port=1", "output:2")));
    assert_eq!(
        shown(&world),
        ["0 7,ip,in_port=2,nw_dst=10.0.0.0/24 output:3", "0 7,tcp,in_port=2,tp_dst=80 output:3"]
    );
}

#[test]
fn two_rules_never_share_a_piece() {
    let mut world = flowspace(&["ip,nw_dst=10.0.0.0/24"]);
    world.join(1, Version::V1_0);
    assert!(errors(&world.say(Body::FlowMod(add(5, "ip", "output:1")))).is_empty());
    check_refused(&mut world, add(5, "", "output:2"), (5, 3));
    check_refused(&mut world, add(5, "in_port=3,ip", "output:2"), (5, 3));
    assert!(errors(&world.say(Body::FlowMod(add(6, "", "output:2")))).is_empty());
    assert!(errors(&world.say(Body::FlowMod(add(5, "ip", "output:2")))).is_empty(), "a replacement");
    world.say(Body::FlowMod(FlowMod { command: FLOW_DELETE_STRICT, ..add(5, "ip", "") }));
    assert!(errors(&world.say(Body::FlowMod(add(5, "", "output:2")))).is_empty(), "the place is free");
}

#[test]
fn a_modify_that_would_share_a_piece_is_refused() {
    let mut world = flowspace(&["dl_type=0x0806"]);
    world.join(1, Version::V1_0);
    assert!(errors(&world.say(Body::FlowMod(add(5, "in_port=3", "output:1")))).is_empty());
    assert!(errors(&world.say(Body::FlowMod(add(5, "in_port=3,vlan_vid=0", "output:2")))).is_empty());
    let strip = vec![flow::Action::StripVlan, flow::Action::output(PortNo(1))];
    let modify = FlowMod {
        command: FLOW_MODIFY_STRICT,
        instructions: vec![flow::Instruction::ApplyActions(strip)],
        ..add(5, "in_port=3", "")
    };
    world.commands.clear();
    // OFPFMFC_OVERLAP of 1.0.
    assert_eq!(errors(&world.say_as(1, Body::FlowMod(modify))), [(3, 1)]);
    assert!(world.commands.is_empty());
}

#[test]
fn a_modify_that_splits_pieces_above_the_limit_is_refused() {
    let limits = Limits { rules: Limit { soft: 8, hard: 8 }, ..Limits::default() };
    let space = Isolation::Flowspace(vec![flow::text::parse_match("dl_type=0x0806").unwrap()]);
    let mut world = World::of(SlicePlan { limits, ..plan(space) }, Version::V1_3);
    world.join(0, Version::V1_0);
    for priority in [5, 6] {
        assert!(errors(&world.say(Body::FlowMod(add(priority, "", "output:1")))).is_empty());
    }
    let strip = vec![flow::Action::StripVlan, flow::Action::output(PortNo(1))];
    let instructions = vec![flow::Instruction::ApplyActions(strip)];
    world.commands.clear();
    let modify = FlowMod { command: FLOW_MODIFY, instructions, ..add(5, "", "") };
    // OFPFMFC_ALL_TABLES_FULL of 1.0.
    assert_eq!(errors(&world.say(Body::FlowMod(modify))), [(3, 0)]);
    assert!(world.commands.is_empty());
}

#[test]
fn deletes_reach_the_tenants_rules_only() {
    let mut world = vlan(Version::V1_3);
    world.say(Body::FlowMod(FlowMod { cookie: 0xffff_0000_0000_0001, ..add(5, "in_port=1", "output:2") }));
    world.say(Body::FlowMod(FlowMod {
        cookie: 0xffff_0000_0000_0002,
        ..add(6, "in_port=3,ip", "output:2,output:4")
    }));
    world.commands.clear();
    let by_cookie = FlowMod { cookie: 2, cookie_mask: 3, ..delete("in_port=1") };
    world.say(Body::FlowMod(by_cookie));
    assert_eq!(shown(&world).len(), 0, "the cookie is another");
    world.say(Body::FlowMod(FlowMod { out_port: PortNo(4), ..delete("") }));
    assert_eq!(shown(&world), ["4 8,ip,in_port=5,dl_vlan=42 drop"]);
    world.commands.clear();
    world.say(Body::FlowMod(delete("")));
    assert_eq!(shown(&world), ["4 7,in_port=2,vlan_tci=0x0000/0x1fff drop"]);
    // The floor and the kernel's rule stay.
    assert_eq!(world.physical.flow_count(), 5);
    assert_eq!(world.slicer.rules(crate::world::DATAPATH), Some((0, 0)));
}

fn removed(world: &World) -> Vec<&FlowRemoved> {
    let removed = |(_, message): &'_ (usize, Message)| matches!(message.body, Body::FlowRemoved(_));
    let all = world.told.iter().filter(|it| removed(it));
    all.map(|(_, message)| match &message.body {
        Body::FlowRemoved(it) => it,
        _ => panic!(),
    })
    .collect()
}

#[test]
fn the_end_of_a_rule_is_told_once_with_the_sums() {
    for on in [Version::V1_0, Version::V1_3] {
        let mut world = vlan(on);
        let rule = FlowMod {
            flags: FLOW_MOD_SEND_FLOW_REMOVED,
            cookie: u64::MAX - 1,
            ..add(5, "dl_type=0x0806", "output:2")
        };
        world.say(Body::FlowMod(rule));
        let frame = [&[7; 12][..], &[8, 6], &[0; 50]].concat();
        [1, 1, 3, 4].into_iter().for_each(|port| world.arrive_shown(port, &frame));
        world.pass(3);
        world.say(Body::FlowMod(delete("")));
        let removed = removed(&world);
        assert_eq!(removed.len(), 1, "{removed:?}");
        assert_eq!((removed[0].packet_count, removed[0].cookie, removed[0].priority), (4, u64::MAX - 1, 5));
        assert_eq!((removed[0].reason, removed[0].duration_s), (2, 3));
        assert_eq!(match_to_string(&removed[0].matching), "arp");
    }
}

#[test]
fn a_hard_time_out_ends_all_pieces_at_once() {
    let mut world = vlan(Version::V1_3);
    let rule = FlowMod { flags: FLOW_MOD_SEND_FLOW_REMOVED, hard_timeout_s: 5, ..add(5, "", "output:2") };
    world.say(Body::FlowMod(rule));
    world.pass(5);
    let removed = removed(&world);
    assert_eq!((removed.len(), removed[0].reason), (1, 1));
    assert_eq!(world.slicer.rules(crate::world::DATAPATH), Some((0, 0)));
}

/// A rule of four pieces, of which one is used.
fn idle_rule() -> (World, Vec<u8>) {
    let mut world = vlan(Version::V1_3);
    let rule = FlowMod { flags: FLOW_MOD_SEND_FLOW_REMOVED, idle_timeout_s: 10, ..add(5, "", "output:2") };
    world.say(Body::FlowMod(rule));
    (world, [&[7; 12][..], &[8, 6], &[0; 50]].concat())
}

#[test]
fn a_rule_without_packets_ends_after_its_idle_time_out() {
    let (mut world, _) = idle_rule();
    world.pass(9);
    assert!(removed(&world).is_empty());
    world.pass(1);
    let removed = removed(&world);
    assert_eq!((removed.len(), removed[0].reason, removed[0].packet_count), (1, 0, 0));
    assert_eq!(world.physical.flow_count(), 5, "all pieces are gone; the floor and the kernel's rule stay");
}

#[test]
fn a_piece_without_packets_stays_while_another_has_some() {
    let (mut world, frame) = idle_rule();
    for _ in 0..6 {
        world.pass(5);
        world.arrive_shown(3, &frame);
    }
    assert!(removed(&world).is_empty());
    // The other pieces still forward.
    world.frames.clear();
    world.arrive_shown(1, &frame);
    assert_eq!(world.frames.len(), 1);
    // Now it is quiet for good.
    (0..4).for_each(|_| world.pass(10));
    let removed = removed(&world);
    assert_eq!((removed.len(), removed[0].reason, removed[0].packet_count), (1, 0, 7));
    assert_eq!(world.physical.flow_count(), 5);
}

#[test]
fn a_packet_after_its_piece_was_put_back_keeps_the_rule() {
    let (mut world, frame) = idle_rule();
    world.pass(5);
    world.arrive_shown(4, &frame);
    world.pass(5);
    // Three pieces were put back now. One of them is used before the fourth expires.
    world.pass(2);
    world.arrive_shown(1, &frame);
    world.pass(3);
    assert!(removed(&world).is_empty());
    assert_eq!(world.physical.flow_count(), 9, "all four pieces are there");
    (0..4).for_each(|_| world.pass(10));
    assert_eq!((removed(&world).len(), removed(&world)[0].packet_count), (1, 2));
}

#[test]
fn an_error_of_the_switch_takes_the_whole_rule_back_and_is_told_once() {
    let mut world = vlan(Version::V1_3);
    world.refuses.extend([ErrorCode { kind: 5, code: 1 }]);
    let rule = FlowMod { flags: FLOW_MOD_SEND_FLOW_REMOVED, ..add(5, "", "output:2") };
    let bytes = written(Version::V1_3, Body::FlowMod(rule));
    let answers = world.send(0, &bytes);
    assert_eq!(errors(&answers), [(5, 1)]);
    let (_, Message { xid, body: Body::Error(error), .. }) = &world.told[world.told.len() - 1] else {
        panic!()
    };
    assert_eq!((*xid, &error.data[..]), (42, &bytes[..64]), "with the tenant's number and bytes");
    assert_eq!(world.slicer.rules(crate::world::DATAPATH), Some((0, 0)));
    assert_eq!(world.physical.flow_count(), 5, "no piece is left");
    assert!(removed(&world).is_empty());
}

#[test]
fn a_modify_that_fails_for_one_piece_changes_nothing() {
    let mut world = vlan(Version::V1_3);
    world.say(Body::FlowMod(add(5, "", "output:2")));
    let error = ErrorCode { kind: 2, code: 10 };
    world.refuses.extend([error, error]);
    let modify = FlowMod { command: FLOW_MODIFY, ..add(5, "", "output:1") };
    assert_eq!(errors(&world.say(Body::FlowMod(modify))), [(2, 10)], "one error for two pieces");
    world.frames.clear();
    [1, 3, 4].into_iter().for_each(|port| world.arrive_shown(port, &[7; 60]));
    assert!(world.frames.len() == 3 && world.frames.iter().all(|(port, _)| *port == PortNo(3)), "as before");
}

#[test]
fn a_slice_has_no_more_rules_than_its_limit() {
    let limits = Limits { rules: Limit { soft: 4, hard: 8 }, ..Limits::default() };
    let mut world = World::of(SlicePlan { limits, ..plan(Isolation::Vlan(TAG)) }, Version::V1_3);
    world.join(0, Version::V1_3);
    world.join(1, Version::V1_0);
    for priority in [1, 2] {
        assert!(errors(&world.say(Body::FlowMod(add(priority, "", "output:1")))).is_empty());
    }
    assert_eq!(world.soft, 1);
    check_refused(&mut world, add(3, "in_port=1", "output:2"), (5, 1));
    assert_eq!(
        errors(&world.say_as(1, Body::FlowMod(add(4, "in_port=1", "output:2")))),
        [(3, 0)],
        "in 1.0's numbers"
    );
    assert!(
        errors(&world.say(Body::FlowMod(add(2, "", "output:2")))).is_empty(),
        "a replacement needs no room"
    );
}

#[test]
fn a_rule_that_is_added_again_has_the_same_pieces_and_its_new_time_outs() {
    let world = &mut vlan(Version::V1_3);
    let rule = add(5, "in_port=1,dl_dst=2:0:0:0:0:1", "output:3");
    assert!(errors(&world.say(Body::FlowMod(rule.clone()))).is_empty());
    let first = shown(world);
    world.commands.clear();
    let again = FlowMod { idle_timeout_s: 7, cookie: 9, ..rule.clone() };
    assert!(errors(&world.say(Body::FlowMod(again.clone()))).is_empty());
    assert_eq!(shown(world), first);
    assert!(
        matches!(&world.commands[0], Command::FlowMod(it) if it.idle_timeout_s == 7),
        "{:?}",
        world.commands
    );
    assert!(errors(&world.say(port_mod(1, 1))).is_empty());
    world.commands.clear();
    assert!(errors(&world.say(Body::FlowMod(again))).is_empty());
    assert_eq!(shown(world), Vec::<String>::new(), "the port is closed");
    assert!(errors(&world.say(port_mod(1, 0))).is_empty());
    assert_eq!(shown(world), first);
    world.commands.clear();
    assert!(errors(&world.say(Body::FlowMod(add(5, "in_port=1,dl_dst=2:0:0:0:0:1", "output:4")))).is_empty());
    assert_ne!(shown(world), first, "other instructions are laid out");
}

fn port_mod(shown: u32, config: u32) -> Body {
    let hw_addr = MacAddr([2, 0, 0, 0, 0, crate::world::physical(shown) as u8]);
    Body::PortMod(PortMod { port_no: PortNo(shown), hw_addr, config, mask: 1, advertise: 0 })
}

#[test]
fn rules_of_closed_ports_count() {
    let limits = Limits { rules: Limit { soft: 8, hard: 8 }, ..Limits::default() };
    let mut world = World::of(SlicePlan { limits, ..plan(Isolation::Vlan(TAG)) }, Version::V1_3);
    world.join(0, Version::V1_3);
    (1..=4).for_each(|port| assert!(errors(&world.say(port_mod(port, 1))).is_empty()));
    for priority in [1, 2] {
        assert!(errors(&world.say(Body::FlowMod(add(priority, "", "output:1")))).is_empty());
    }
    check_refused(&mut world, add(3, "in_port=1", "output:2"), (5, 1));
    let without_rules = 5;
    assert_eq!(world.physical.flow_count(), without_rules);
    (1..=4).for_each(|port| assert!(errors(&world.say(port_mod(port, 0))).is_empty()));
    assert_eq!(world.physical.flow_count(), without_rules + 8);
}

#[test]
fn a_port_mod_counts_as_the_flow_mods_that_it_causes() {
    let limits = Limits { flow_mods_per_s: Limit { soft: 4, hard: 4 }, ..Limits::default() };
    let mut world = World::of(SlicePlan { limits, ..plan(Isolation::Vlan(TAG)) }, Version::V1_3);
    world.join(0, Version::V1_3);
    for priority in 1..=3 {
        assert!(errors(&world.say(Body::FlowMod(add(priority, "in_port=1", "output:2")))).is_empty());
    }
    assert!(errors(&world.say(port_mod(1, 1))).is_empty());
    assert_eq!(errors(&world.say(port_mod(1, 0))), [(1, 5)]);
    world.pass(1);
    assert!(errors(&world.say(Body::FlowMod(add(4, "in_port=2", "output:1")))).is_empty(), "three are paid");
    assert_eq!(errors(&world.say(port_mod(1, 0))), [(1, 5)]);
}

#[test]
fn controllers_that_come_and_go_change_the_floor_as_often_as_the_limit_allows() {
    let limits = Limits { flow_mods_per_s: Limit { soft: 4, hard: 4 }, ..Limits::default() };
    let mut world = World::of(SlicePlan { limits, ..plan(Isolation::Vlan(TAG)) }, Version::V1_3);
    world.commands.clear();
    let connection = slicer::Connection { datapath: crate::world::DATAPATH, controller: 0 };
    for _ in 0..10 {
        world.join(0, Version::V1_0);
        world.event(slicer::Event::ControllerDown(connection));
    }
    assert_eq!(shown(&world).len(), 4 * 4, "four changes of four ports");
    let why = "the slice is above its limit flow_mods_per_s";
    assert_eq!(world.ended.len(), 8);
    assert!(world.ended.iter().all(|(_, it)| it == why), "{:?}", world.ended);
}

#[test]
fn two_of_the_highest_priorities_are_one_and_their_rules_may_not_overlap() {
    let mut world = vlan(Version::V1_3);
    world.say(Body::FlowMod(add(65534, "in_port=1,dl_type=0x88b5", "controller")));
    check_refused(&mut world, add(65533, "in_port=1", "output:2"), (5, 3));
    check_refused(&mut world, add(65533, "in_port=1,dl_type=0x88b5", "output:2"), (5, 3));
    assert!(errors(&world.say(Body::FlowMod(add(65533, "in_port=2", "output:2")))).is_empty());
    assert!(errors(&world.say(Body::FlowMod(add(65535, "in_port=1", "output:2")))).is_empty());
    assert!(errors(&world.say(Body::FlowMod(add(65532, "in_port=1", "output:2")))).is_empty());
    let overlap = FlowMod { flags: FLOW_MOD_CHECK_OVERLAP, ..add(65532, "dl_type=0x0806", "output:2") };
    check_refused(&mut world, overlap, (5, 3));
}

#[test]
fn after_the_switch_came_back_it_has_the_tenants_rules() {
    let mut world = vlan(Version::V1_3);
    world.say(Body::FlowMod(add(5, "in_port=1", "output:2")));
    world.event(slicer::Event::SwitchDown(crate::world::DATAPATH));
    world.commands.clear();
    world.switch_up();
    let rules = shown(&world);
    assert!(rules.contains(&"0 7,in_port=2,vlan_tci=0x0000/0x1fff output:3".to_owned()), "{rules:?}");
}

#[test]
fn actions_of_1_0_on_tags_become_two_rules() {
    let mut world = flowspace(&["dl_type=0x0806"]);
    world.join(1, Version::V1_0);
    world.commands.clear();
    let strip = FlowMod {
        instructions: vec![flow::Instruction::ApplyActions(vec![
            flow::Action::StripVlan,
            flow::Action::output(PortNo(1)),
        ])],
        ..add(5, "in_port=3", "")
    };
    world.say_as(1, Body::FlowMod(strip));
    assert_eq!(
        shown(&world),
        [
            "0 7,arp,in_port=5,vlan_tci=0x0000/0x1fff output:2",
            "0 7,arp,in_port=5,vlan_tci=0x1000/0x1000 pop_vlan,output:2"
        ]
    );
}

#[test]
fn explain_shows_the_pieces_or_why_not() {
    let world = vlan(Version::V1_3);
    let explain = |flow_mod: &FlowMod| world.slicer.explain(crate::world::DATAPATH, flow_mod);
    let pieces = explain(&add(5, "in_port=1", "output:3")).unwrap();
    assert_eq!(
        pieces,
        [
            "priority=7,in_port=2,vlan_tci=0x0000/0x1fff actions=push_vlan:0x8100,set_field:4138->vlan_vid,output:5"
        ]
    );
    let why = explain(&add(5, "", "normal")).unwrap_err().unwrap();
    assert_eq!(why.to_string(), "NORMAL would lead out of the slice (error 2/6)");
    assert!(world.slicer.explain(flow::DatapathId(1), &add(5, "", "")).is_err());
}
