//! Versions, features, roles, and who is told what about the connection.

use crate::world::{PORTS, SHOWN, TAG, World, add, errors, plan, written};
use flow::{MacAddr, PortNo};
use openflow::message::*;
use openflow::{Body, Message, Version};
use slicer::{Connection, Event, Isolation, SlicePlan};

fn world() -> World {
    World::new(Isolation::Vlan(TAG), Version::V1_3)
}

fn connection(controller: usize) -> Connection {
    Connection { datapath: crate::world::DATAPATH, controller }
}

#[test]
fn a_controller_that_offers_1_5_only_is_ended_with_one_line() {
    let mut world = world();
    world.event(Event::ControllerUp(connection(0)));
    let hello = Hello { elements: vec![HelloElement::VersionBitmap(vec![1 << 6])] };
    let bytes = written(Version::V1_3, Body::Hello(hello));
    let answers = world.send(0, &[&[6][..], &bytes[1..]].concat());
    assert_eq!(errors(&answers), [(0, 0)]);
    let line = "the controller offers OpenFlow 1.5; a slice speaks 1.0 and 1.3";
    assert_eq!(world.ended, [(0, line.to_owned())]);
    assert!(world.send(0, &written(Version::V1_3, Body::BarrierRequest)).is_empty(), "it is gone");
}

#[test]
fn a_first_message_that_is_no_hello_ends_the_connection() {
    for bytes in [written(Version::V1_3, Body::FeaturesRequest), vec![4, 0, 0, 9], vec![9; 12]] {
        let mut world = world();
        world.event(Event::ControllerUp(connection(0)));
        world.send(0, &bytes);
        assert_eq!(world.ended.len(), 1);
    }
}

#[test]
fn a_controller_of_malformed_messages_is_ended() {
    let mut world = world();
    world.join(0, Version::V1_3);
    let bad = [4, 99, 0, 8, 0, 0, 0, 9];
    let answers = world.send(0, &bad);
    assert_eq!(errors(&answers), [(1, 1)]);
    let Some((_, Message { xid, body: Body::Error(error), .. })) = world.told.last() else { panic!() };
    assert_eq!((*xid, &error.data[..]), (9, &bad[..]), "an error quotes the message");
    (0..64).for_each(|_| _ = world.send(0, &bad));
    assert_eq!(world.ended.len(), 1, "{:?}", world.ended);
}

#[test]
fn while_the_switch_is_away_there_is_no_virtual_one() {
    let mut world = world();
    world.join(0, Version::V1_3);
    world.event(Event::SwitchDown(crate::world::DATAPATH));
    assert_eq!(world.ended.len(), 1);
    world.event(Event::ControllerUp(connection(1)));
    assert_eq!(world.ended.len(), 2);
}

#[test]
fn the_virtual_switch_shows_its_own_ports_and_number() {
    let mut world = world();
    world.join(0, Version::V1_0);
    world.join(1, Version::V1_3);
    let [Body::FeaturesReply(v10)] = &world.say(Body::FeaturesRequest)[..] else { panic!() };
    let [Body::FeaturesReply(v13)] = &world.say_as(1, Body::FeaturesRequest)[..] else { panic!() };
    assert_eq!((v10.datapath_id, v13.datapath_id), (SHOWN, SHOWN));
    assert_eq!((v10.n_tables, v13.n_tables, v13.ports.len()), (1, 1, 0));
    let shown: Vec<u32> = v10.ports.iter().map(|port| port.port_no.0).collect();
    assert_eq!(shown, PORTS.map(|(_, shown, _)| shown));
    assert_eq!((&v10.ports[0].name[..], v10.ports[0].hw_addr), ("s7-eth2", MacAddr([2, 0, 0, 0, 0, 2])));
    let request = MultipartRequest { flags: 0, body: RequestBody::PortDesc };
    let [Body::MultipartReply(reply)] = &world.say_as(1, Body::MultipartRequest(request))[..] else {
        panic!()
    };
    let ReplyBody::PortDesc(ports) = &reply.body else { panic!() };
    assert_eq!((ports.len(), ports[0].state), (4, 4), "they are live");
}

#[test]
fn the_configuration_is_the_connections_own() {
    let mut world = world();
    world.join(0, Version::V1_3);
    world.join(1, Version::V1_3);
    world.say(Body::SetConfig(SwitchConfig { flags: 0, miss_send_len: 9 }));
    let mut length = |controller| match world.say_as(controller, Body::GetConfigRequest)[..] {
        [Body::GetConfigReply(config)] => config.miss_send_len,
        _ => panic!(),
    };
    assert_eq!((length(0), length(1)), (9, 128));
    assert_eq!(errors(&world.say(Body::SetConfig(SwitchConfig { flags: 1, miss_send_len: 9 }))), [(10, 0)]);
}

#[test]
fn a_slave_changes_nothing_and_a_master_makes_slaves() {
    let mut world = world();
    (0..3).for_each(|controller| world.join(controller, Version::V1_3));
    let role = |role, generation_id| Body::RoleRequest(Role { role, generation_id });
    assert!(matches!(
        world.say_as(0, role(ROLE_MASTER, 5))[..],
        [Body::RoleReply(Role { role: ROLE_MASTER, .. })]
    ));
    assert!(matches!(world.say_as(1, role(ROLE_MASTER, 6))[..], [Body::RoleReply(_)]));
    let change = || Body::FlowMod(add(5, "", "output:1"));
    assert_eq!(errors(&world.say_as(0, change())), [(1, 10)], "the old master is a slave");
    assert!(errors(&world.say_as(1, change())).is_empty());
    assert!(errors(&world.say_as(2, change())).is_empty(), "equal");
    assert_eq!(errors(&world.say_as(0, role(ROLE_MASTER, 5))), [(11, 0)], "stale");
    let mut bytes = written(Version::V1_3, role(ROLE_EQUAL, 7));
    bytes[11] = 9;
    assert_eq!(errors(&world.send(0, &bytes)), [(11, 2)]);
    assert!(matches!(
        world.say_as(0, role(ROLE_NOCHANGE, 0))[..],
        [Body::RoleReply(Role { role: ROLE_SLAVE, generation_id: 6 })]
    ));
}

#[test]
fn a_read_only_slice_hears_and_changes_nothing() {
    let mut world = World::of(SlicePlan { is_read_only: true, ..plan(Isolation::Vlan(TAG)) }, Version::V1_3);
    world.join(0, Version::V1_0);
    assert_eq!(errors(&world.say(Body::FlowMod(add(5, "", "output:1")))), [(3, 2)]);
    let packet_out =
        PacketOut { buffer_id: NO_BUFFER, in_port: PortNo::ANY, actions: vec![], data: vec![0; 60] };
    assert_eq!(errors(&world.say(Body::PacketOut(packet_out))), [(1, 5)]);
    world.arrive_shown(1, &[7; 60]);
    assert_eq!(world.told.iter().filter(|(_, it)| matches!(it.body, Body::PacketIn(_))).count(), 1);
}

#[test]
fn a_barrier_is_answered_behind_what_came_before() {
    let mut world = world();
    world.join(0, Version::V1_0);
    let answers = world.say(Body::BarrierRequest);
    assert_eq!(answers, [Body::BarrierReply]);
    assert_eq!(world.say(Body::EchoRequest(vec![1, 2])), [Body::EchoReply(vec![1, 2])]);
}

#[test]
fn what_a_slice_does_not_have_is_refused() {
    let mut world = world();
    world.join(0, Version::V1_3);
    let experimenter = Experimenter { experimenter: 1, exp_type: Some(1), data: vec![] };
    assert_eq!(errors(&world.say(Body::Experimenter(experimenter))), [(1, 3)]);
    assert_eq!(errors(&world.say(Body::TableMod(TableMod { table_id: 1, config: 0 }))), [(8, 0)]);
    assert_eq!(errors(&world.say(Body::TableMod(TableMod { table_id: 0, config: 1 }))), [(8, 1)]);
    let queues = QueueGetConfigRequest { port: PortNo(9) };
    assert_eq!(errors(&world.say(Body::QueueGetConfigRequest(queues))), [(9, 0)]);
    assert_eq!(
        errors(&world.say(Body::FeaturesReply(FeaturesReply {
            datapath_id: SHOWN,
            n_buffers: 0,
            n_tables: 0,
            auxiliary_id: 0,
            capabilities: 0,
            actions: 0,
            ports: vec![],
        }))),
        [(1, 1)]
    );
}

#[test]
fn a_plan_that_cannot_be_is_named() {
    let refused = |change: &dyn Fn(&mut SlicePlan)| {
        let mut plan = plan(Isolation::Vlan(TAG));
        change(&mut plan);
        plan.check().unwrap_err().to_string()
    };
    assert!(refused(&|plan| plan.isolation = Isolation::Vlan(4095)).starts_with("slice blue: VLAN 4095"));
    assert!(refused(&|plan| plan.switches[0].ports[0].shown_as = PortNo(2)).contains("is there twice"));
    assert!(refused(&|plan| plan.switches[0].ports[0].port = PortNo::LOCAL).contains("LOCAL is no port"));
    let incomplete = flow::Match::any().with(flow::Field::TcpDst, 80u16);
    assert!(
        refused(&|plan| plan.isolation = Isolation::Flowspace(vec![incomplete.clone()])).contains("needs")
    );
    let twice = plan(Isolation::Vlan(TAG)).switches[0].clone();
    assert!(refused(&|plan| plan.switches.push(twice.clone())).contains("is there twice"));
}
