//! Statistics, ports, and links that the tenant's controller discovers.

use crate::world::{DATAPATH, TAG, World, add, errors, plan, with_tag};
use flow::{Action, ErrorCode, Field, MacAddr, PortNo};
use openflow::message::*;
use openflow::{Body, Message, Version};
use slicer::{Command, End, Event, Isolation, Limit, Limits, LinkPlan, Outcome, PortFacts, SlicePlan};

fn world(version: Version) -> World {
    let mut world = World::new(Isolation::Vlan(TAG), Version::V1_3);
    world.join(0, version);
    world
}

fn ask(world: &mut World, body: RequestBody) -> Vec<Body> {
    world.say(Body::MultipartRequest(MultipartRequest { flags: 0, body }))
}

fn replies(bodies: Vec<Body>) -> Vec<MultipartReply> {
    let reply = |body| match body {
        Body::MultipartReply(it) => it,
        other => panic!("{other:?}"),
    };
    bodies.into_iter().map(reply).collect()
}

fn all_flows() -> FlowStatsRequest {
    FlowStatsRequest::default()
}

#[test]
fn pieces_are_one_entry() {
    for version in [Version::V1_0, Version::V1_3] {
        let mut world = world(version);
        world.say(Body::FlowMod(FlowMod { cookie: 1 << 60, ..add(5, "", "output:2") }));
        let frame = [7; 60];
        [1, 3, 4].into_iter().for_each(|port| world.arrive_shown(port, &frame));
        let answers = replies(ask(&mut world, RequestBody::Flow(all_flows())));
        let [MultipartReply { flags: 0, body: ReplyBody::Flow(entries) }] = &answers[..] else { panic!() };
        assert_eq!(entries.len(), 1);
        assert_eq!((entries[0].packet_count, entries[0].cookie, entries[0].priority), (3, 1 << 60, 5));
        let answers = replies(ask(&mut world, RequestBody::Aggregate(all_flows())));
        let [MultipartReply { body: ReplyBody::Aggregate(sum), .. }] = &answers[..] else { panic!() };
        assert_eq!((sum.flow_count, sum.packet_count), (1, 3));
    }
}

#[test]
fn a_request_without_an_answer_gets_an_error() {
    let mut world = world(Version::V1_3);
    let outcomes = [Outcome::Refused(ErrorCode { kind: 0, code: 0 }), Outcome::Unknown];
    // More requests than may be on their way at once.
    for outcome in outcomes.into_iter().cycle().take(100) {
        world.no_statistics = Some(outcome);
        let answers = ask(&mut world, RequestBody::Aggregate(all_flows()));
        let [Body::Error(error)] = &answers[..] else { panic!("{answers:?}") };
        assert_eq!((error.kind, error.code, error.data[1]), (1, 5, 18), "it quotes the request");
    }
    assert_eq!(world.say(Body::BarrierRequest), [Body::BarrierReply]);
}

#[test]
fn an_answer_with_a_part_that_cannot_be_read_has_no_result() {
    const PORT_STATS: u16 = 4;
    let body = &[9; 7];
    let reply =
        abi::event::StatsReply { datapath: DATAPATH, ticket: 3, multipart: PORT_STATS, more: true, body };
    let mut events = Vec::new();
    slicer::abi_frames::each_event(&abi::Event::StatsReply(reply), abi::ZoneId(5), |event| {
        events.push(format!("{event:?}"));
    });
    let unknown = Event::Answer { datapath: DATAPATH, ticket: 3, outcome: Outcome::Unknown };
    assert_eq!(events, [format!("{unknown:?}")]);
}

#[test]
fn a_long_answer_has_several_parts() {
    let mut world = world(Version::V1_3);
    for priority in 0..900 {
        world.say(Body::FlowMod(add(
            priority,
            "in_port=1,dl_type=0x0806,dl_src=00:00:00:00:00:01",
            "output:2,output:3,output:4",
        )));
    }
    let answers = replies(ask(&mut world, RequestBody::Flow(all_flows())));
    assert!(answers.len() > 1);
    let (last, before) = answers.split_last().unwrap();
    assert!(last.flags == 0 && before.iter().all(|part| part.flags == MULTIPART_MORE));
    let count = |part: &MultipartReply| match &part.body {
        ReplyBody::Flow(entries) => entries.len(),
        _ => panic!(),
    };
    assert_eq!(answers.iter().map(count).sum::<usize>(), 900);
}

#[test]
fn counters_that_cannot_be_split_are_all_ones() {
    let mut world = world(Version::V1_3);
    world.arrive_shown(1, &[7; 60]);
    let answers = replies(ask(&mut world, RequestBody::PortStats(PortNo::ANY)));
    let [MultipartReply { body: ReplyBody::PortStats(ports), .. }] = &answers[..] else { panic!() };
    let counted: Vec<(u32, u64)> = ports.iter().map(|port| (port.port_no.0, port.rx_packets)).collect();
    assert_eq!(counted, [(1, 1), (2, 0), (3, u64::MAX), (4, u64::MAX)]);
    let answers = replies(ask(&mut world, RequestBody::PortStats(PortNo(2))));
    let [MultipartReply { body: ReplyBody::PortStats(ports), .. }] = &answers[..] else { panic!() };
    assert_eq!((ports.len(), ports[0].port_no), (1, PortNo(2)));
    assert_eq!(errors(&ask(&mut world, RequestBody::PortStats(PortNo(9)))), [(1, 11)]);
    let answers = replies(ask(&mut world, RequestBody::Table));
    let [MultipartReply { body: ReplyBody::Table(tables), .. }] = &answers[..] else { panic!() };
    assert_eq!((tables.len(), tables[0].active_count, tables[0].lookup_count), (1, 0, u64::MAX));
}

#[test]
fn the_virtual_switch_describes_itself() {
    let mut world = world(Version::V1_3);
    let answers = replies(ask(&mut world, RequestBody::Desc));
    let [MultipartReply { body: ReplyBody::Desc(desc), .. }] = &answers[..] else { panic!() };
    assert_eq!(desc.dp_desc, "of:0000000000000077 of slice blue");
    let answers = replies(ask(&mut world, RequestBody::TableFeatures(vec![])));
    let [MultipartReply { body: ReplyBody::TableFeatures(tables), .. }] = &answers[..] else { panic!() };
    assert_eq!(tables.len(), 1);
    assert_eq!(errors(&ask(&mut world, RequestBody::TableFeatures(tables.clone()))), [(13, 5)]);
    let wrong = FlowStatsRequest { table_id: 3, ..all_flows() };
    assert_eq!(errors(&ask(&mut world, RequestBody::Flow(wrong))), [(1, 9)]);
}

fn facts(port: u32, is_live: bool) -> PortFacts {
    PortFacts {
        port: PortNo(port),
        hw_addr: MacAddr([2, 0, 0, 0, 0, port as u8]),
        name: format!("s7-eth{port}"),
        is_live,
        curr_speed_kbps: 10_000_000,
    }
}

fn port_statuses(world: &World) -> Vec<(u8, u32, u32)> {
    let status = |(_, message): &(usize, Message)| match &message.body {
        Body::PortStatus(it) => Some((it.reason, it.port.port_no.0, it.port.state & 1)),
        _ => None,
    };
    world.told.iter().filter_map(status).collect()
}

#[test]
fn the_tenant_hears_of_its_own_ports() {
    let mut world = world(Version::V1_0);
    let mut change = |reason, port, is_live| {
        world.event(Event::PortStatus { datapath: DATAPATH, reason, port: facts(port, is_live) });
        port_statuses(&world)
    };
    assert!(change(2, 1, false).is_empty(), "another's");
    assert_eq!(change(2, 5, false), [(2, 3, 1)]);
    assert_eq!(change(2, 5, false).len(), 1, "nothing changed");
    assert_eq!(change(1, 5, false)[1..], [(1, 3, 1)]);
    assert_eq!(change(0, 5, true)[2..], [(0, 3, 0)]);
}

#[test]
fn a_port_mod_changes_the_virtual_port_only() {
    let mut world = world(Version::V1_0);
    world.say(Body::FlowMod(add(5, "in_port=1", "flood")));
    world.frames.clear();
    let port_mod = |port: u32, hw: u8, config, mask| {
        Body::PortMod(PortMod {
            port_no: PortNo(port),
            hw_addr: MacAddr([2, 0, 0, 0, 0, hw]),
            config,
            mask,
            advertise: 0,
        })
    };
    assert_eq!(errors(&world.say(port_mod(9, 2, 0, 0))), [(4, 0)]);
    assert_eq!(errors(&world.say(port_mod(2, 9, 0, 0))), [(4, 1)]);
    assert!(errors(&world.say(port_mod(2, 3, 1 << 4, 1 << 4))).is_empty(), "no flood");
    world.arrive_shown(1, &[7; 60]);
    let ports = |world: &mut World| {
        let mut ports: Vec<u32> = std::mem::take(&mut world.frames).iter().map(|(port, _)| port.0).collect();
        ports.sort_unstable();
        ports
    };
    assert_eq!(ports(&mut world), [5, 6]);
    world.say(port_mod(3, 5, 1, 1));
    world.arrive_shown(1, &[7; 60]);
    assert_eq!(ports(&mut world), [6], "a port that is down sends nothing");
    world.say(port_mod(1, 2, 1, 1));
    world.told.clear();
    world.arrive_shown(1, &[7; 60]);
    assert!(ports(&mut world).is_empty() && world.told.is_empty(), "and receives nothing");
    world.say(port_mod(1, 2, 0, 1));
    world.arrive_shown(1, &[7; 60]);
    assert_eq!(ports(&mut world), [6]);
    assert!(!world.commands.iter().any(|it| matches!(it, Command::GroupMod(_) | Command::MeterMod(_))));
}

fn link() -> LinkPlan {
    let end = |port| End { datapath: DATAPATH, port: PortNo(port) };
    LinkPlan { from: end(3), to: end(4) }
}

fn probe() -> Vec<u8> {
    [&[1, 0x80, 0xc2, 0, 0, 0xe, 2, 0, 0, 0, 0, 5][..], &[0x88, 0xcc], &[2; 40]].concat()
}

fn send_probe(world: &mut World, port: PortNo) -> Vec<Body> {
    world.told.clear();
    let actions = vec![Action::output(port)];
    let out = PacketOut { buffer_id: NO_BUFFER, in_port: PortNo::CONTROLLER, actions, data: probe() };
    world.say(Body::PacketOut(out))
}

#[test]
fn a_probe_arrives_at_the_other_end_and_never_enters_the_network() {
    let mut world = World::of(SlicePlan { links: vec![link()], ..plan(Isolation::Vlan(TAG)) }, Version::V1_3);
    world.join(0, Version::V1_3);
    assert!(send_probe(&mut world, PortNo(3)).is_empty(), "the link is down");
    world.link(link(), true);
    assert!(send_probe(&mut world, PortNo(3)).is_empty(), "no rule of 1.3 sends it up");
    world.say(Body::FlowMod(FlowMod { cookie: 9, ..add(7, "dl_type=0x88cc", "controller") }));
    let answers = send_probe(&mut world, PortNo(3));
    let [Body::PacketIn(packet)] = &answers[..] else { panic!("{answers:?}") };
    assert_eq!((packet.matching.get(Field::InPort), packet.cookie), (Some((4, 0xffff_ffff)), 9));
    assert_eq!(packet.data, probe());
    assert_eq!(send_probe(&mut world, PortNo(4)).len(), 1, "both ways");
    assert_eq!(send_probe(&mut world, PortNo::FLOOD).len(), 2);
    assert!(send_probe(&mut world, PortNo(1)).is_empty(), "no link there");
    world.link(link(), false);
    assert!(send_probe(&mut world, PortNo(3)).is_empty());
    assert!(world.frames.is_empty(), "{:?}", world.frames);
}

#[test]
fn a_probe_that_waited_for_a_group_arrives_with_it() {
    let mut world = World::of(SlicePlan { links: vec![link()], ..plan(Isolation::Vlan(TAG)) }, Version::V1_3);
    world.join(0, Version::V1_3);
    world.link(link(), true);
    world.say(Body::FlowMod(add(7, "dl_type=0x88cc", "controller")));
    world.holds_claims = true;
    let (command, group_type) = (0, GROUP_TYPE_ALL);
    world.say(Body::GroupMod(GroupMod { command, group_type, group_id: 7, buckets: Vec::new() }));
    let told = send_probe(&mut world, PortNo(3));
    assert!(told.is_empty(), "it waits: {told:?}");
    world.confirm_claims();
    assert!(matches!(world.told[..], [(0, Message { body: Body::PacketIn(_), .. })]), "{:?}", world.told);
}

#[test]
fn a_probe_behind_tags_never_enters_the_network() {
    let matches = vec![flow::text::parse_match("dl_dst=01:80:c2:00:00:0e").unwrap()];
    let mut world = World::new(Isolation::Flowspace(matches), Version::V1_3);
    world.join(0, Version::V1_3);
    let pops = |count: usize| vec![Action::PopVlan; count].into_iter().chain([Action::output(PortNo(3))]);
    for count in 0..3 {
        let data = (0..count).fold(probe(), |frame, _| with_tag(&frame, 9));
        let actions = pops(count).collect();
        let out = PacketOut { buffer_id: NO_BUFFER, in_port: PortNo::CONTROLLER, actions, data };
        assert!(errors(&world.say(Body::PacketOut(out))).is_empty());
    }
    assert!(world.frames.is_empty(), "{:?}", world.frames);
}

#[test]
fn a_host_forges_no_link() {
    let mut world = world(Version::V1_0);
    world.told.clear();
    world.arrive_shown(1, &probe());
    assert!(world.told.is_empty());
    assert_eq!(world.slicer.counters(DATAPATH).unwrap().foreign_probes, 1);
}

/// A slice with addresses and a link, whose packets are IPv4 and ARP alone.
fn with_addresses() -> World {
    let plan = SlicePlan { links: vec![link()], ..plan(crate::addresses::addresses()) };
    let mut world = World::of(plan, Version::V1_3);
    world.join(0, Version::V1_3);
    world.link(link(), true);
    world
}

#[test]
fn a_rule_for_a_protocol_that_the_slice_never_has_is_in_the_tenants_table_alone() {
    let mut world = with_addresses();
    let before = world.physical.flow_count();
    for (priority, matching) in [(7, "dl_type=0x88cc"), (8, "dl_type=0x8942"), (9, "ipv6,in_port=1")] {
        assert!(errors(&world.say(Body::FlowMod(add(priority, matching, "controller")))).is_empty());
    }
    assert_eq!(world.physical.flow_count(), before);
    assert_eq!(world.slicer.rules(DATAPATH), Some((3, 0)));
    let [reply] = &replies(ask(&mut world, RequestBody::Flow(all_flows())))[..] else { panic!() };
    let ReplyBody::Flow(entries) = &reply.body else { panic!("{reply:?}") };
    let counted: Vec<_> = entries.iter().map(|it| (it.priority, it.packet_count, it.byte_count)).collect();
    assert_eq!(counted, [(9, 0, 0), (8, 0, 0), (7, 0, 0)]);
    world.say(Body::FlowMod(FlowMod { command: FLOW_DELETE, ..add(0, "dl_type=0x8942", "") }));
    assert_eq!(world.slicer.rules(DATAPATH), Some((2, 0)));
}

#[test]
fn a_probe_goes_up_only_by_a_rule_of_the_tenant() {
    let mut world = with_addresses();
    assert!(send_probe(&mut world, PortNo(3)).is_empty(), "no rule");
    world.say(Body::FlowMod(FlowMod { cookie: 9, ..add(7, "dl_type=0x88cc", "controller") }));
    let answers = send_probe(&mut world, PortNo(3));
    let [Body::PacketIn(packet)] = &answers[..] else { panic!("{answers:?}") };
    assert_eq!((packet.matching.get(Field::InPort), packet.cookie), (Some((4, 0xffff_ffff)), 9));
    world.say(Body::FlowMod(add(8, "dl_type=0x88cc,in_port=4", "")));
    assert!(send_probe(&mut world, PortNo(3)).is_empty(), "a rule drops it");
    // A host's own probe comes by no rule of the slice.
    world.told.clear();
    world.arrive_shown(1, &probe());
    assert!(world.told.is_empty() && world.frames.is_empty(), "{:?}", world.told);
}

#[test]
fn a_rule_without_a_piece_ends_when_its_time_is_over() {
    let mut world = with_addresses();
    let mut adds = |idle_timeout_s, hard_timeout_s, port: u32| {
        let matching = format!("dl_type=0x88cc,in_port={port}");
        let flags = FLOW_MOD_SEND_FLOW_REMOVED;
        let rule = FlowMod { idle_timeout_s, hard_timeout_s, flags, ..add(7, &matching, "controller") };
        assert!(errors(&world.say(Body::FlowMod(rule))).is_empty());
    };
    adds(3, 0, 1);
    adds(5, 4, 2);
    adds(0, 0, 3);
    let mut ended = Vec::new();
    for second in 1..10 {
        world.told.clear();
        world.pass(1);
        world.event(Event::Time);
        ended.extend(world.told.iter().map(|(_, message)| match &message.body {
            Body::FlowRemoved(it) => (second, it.reason, it.duration_s, it.packet_count),
            other => panic!("{other:?}"),
        }));
    }
    assert_eq!(ended, [(3, 0, 3, 0), (4, 1, 4, 0)]);
    assert_eq!(world.slicer.rules(DATAPATH), Some((1, 0)));
}

#[test]
fn rules_without_pieces_count_for_the_limit() {
    let limits = Limits { rules: Limit { soft: 2, hard: 2 }, ..Limits::default() };
    let plan = SlicePlan { limits, ..plan(crate::addresses::addresses()) };
    let mut world = World::of(plan, Version::V1_3);
    world.join(0, Version::V1_3);
    let add_of = |port: u32| Body::FlowMod(add(7, &format!("ipv6,in_port={port}"), ""));
    let said: Vec<_> = (1..=4).map(|port| errors(&world.say(add_of(port))).len()).collect();
    assert_eq!(said, [0, 0, 1, 1]);
    assert!(errors(&world.say(add_of(1))).is_empty(), "it takes its own place");
}
