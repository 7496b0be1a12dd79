//! Labels in the messages of controllers.

use crate::world::{DATAPATH, World, errors};
use flow::PortNo;
use openflow::labels::{EXPERIMENTER, LabelMessage, NO_LABEL, PortLabel};
use openflow::message::*;
use openflow::{Body, Version};
use slicer::{Event, LabelForm, LinkLabel};

/// A slice with controllers of 1.0 and 1.3.
fn world(form: LabelForm) -> World {
    let mut world = World::with_labels(form);
    world.join(0, Version::V1_0);
    world.join(1, Version::V1_3);
    world.told.clear();
    world.labels.clear();
    world
}

/// The link that begins at physical port 5, which the tenant sees as 3, has a label.
fn label(world: &mut World, label_kbps: Option<u64>) {
    let label = label_kbps.map(|label_kbps| LinkLabel { label_kbps, capacity_kbps: 10_000 });
    world.told.clear();
    world.labels.clear();
    world.event(Event::Label { datapath: DATAPATH, port: PortNo(5), label });
}

/// The port statuses that came, as controller, reason, port and current speed.
fn statuses(world: &World) -> Vec<(usize, u8, u32, u32)> {
    let status = |(controller, message): &(usize, openflow::Message)| match &message.body {
        Body::PortStatus(it) => (*controller, it.reason, it.port.port_no.0, it.port.curr_speed_kbps),
        other => panic!("{other:?}"),
    };
    world.told.iter().map(status).collect()
}

#[test]
fn without_a_form_nobody_hears_of_labels() {
    let mut world = world(LabelForm::None);
    label(&mut world, Some(2_000));
    assert!(world.told.is_empty());
    let request = Body::Experimenter(LabelMessage::Request.to_experimenter(Version::V1_0));
    assert_eq!(errors(&world.say(request)), [(1, 3)]);
}

#[test]
fn the_papers_label_is_behind_each_port_in_both_versions() {
    let mut world = world(LabelForm::Paper);
    label(&mut world, Some(2_000));
    assert_eq!(statuses(&world), [(0, PORT_MODIFIED, 3, 0), (1, PORT_MODIFIED, 3, 10_000_000)]);
    assert_eq!(world.labels, [[2_000], [2_000]]);
    label(&mut world, Some(2_000));
    assert!(world.told.is_empty(), "it is the same");
    world.say_as(0, Body::FeaturesRequest);
    let request = MultipartRequest { flags: 0, body: RequestBody::PortDesc };
    world.say_as(1, Body::MultipartRequest(request));
    assert_eq!(world.labels, [[NO_LABEL, NO_LABEL, 2_000, NO_LABEL]; 2]);
    label(&mut world, None);
    assert_eq!(world.labels, [[NO_LABEL], [NO_LABEL]]);
    label(&mut world, Some(u64::MAX));
    assert_eq!(world.labels, [[NO_LABEL - 1], [NO_LABEL - 1]], "it is a label, and a very high one");
}

#[test]
fn the_speed_of_a_port_is_its_label_for_controllers_of_13() {
    let mut world = world(LabelForm::Speed);
    label(&mut world, Some(2_000));
    assert_eq!(statuses(&world), [(1, PORT_MODIFIED, 3, 2_000)]);
    label(&mut world, Some(0));
    assert_eq!(statuses(&world), [(1, PORT_MODIFIED, 3, 1)], "0 would be an unknown speed");
    label(&mut world, None);
    assert_eq!(statuses(&world), [(1, PORT_MODIFIED, 3, 10_000_000)], "the port's own");
}

/// The flags of a speed and the speed of port statuses for the controller of 1.3, and of the description of port 3.
fn speeds(world: &World) -> Vec<(u32, u32)> {
    let speed = |(controller, message): &(usize, openflow::Message)| match &message.body {
        Body::PortStatus(it) => {
            assert_eq!((*controller, it.reason, it.port.port_no), (1, PORT_MODIFIED, PortNo(3)));
            (it.port.curr, it.port.curr_speed_kbps)
        }
        other => panic!("{other:?}"),
    };
    world.told.iter().map(speed).collect()
}

#[test]
fn the_flags_of_a_speed_say_whether_its_label_is_stale() {
    const OTHER: u32 = 1 << 10;
    const TEN_GIGABIT: u32 = 1 << 6;
    let mut world = world(LabelForm::Speed);
    let stale = |world: &mut World, is_stale| {
        world.told.clear();
        world.event(Event::LabelsStale(is_stale));
        speeds(world)
    };
    label(&mut world, Some(2_000));
    assert_eq!(speeds(&world), [(0, 2_000)], "labels are stale until the service says otherwise");
    assert_eq!(stale(&mut world, false), [(OTHER, 2_000)]);
    assert_eq!(stale(&mut world, false), [], "it is the same");
    label(&mut world, Some(3_000));
    assert_eq!(speeds(&world), [(OTHER, 3_000)]);
    assert_eq!(stale(&mut world, true), [(0, 3_000)], "the last label stays");
    let request = MultipartRequest { flags: 0, body: RequestBody::PortDesc };
    let answers = world.say_as(1, Body::MultipartRequest(request));
    let [Body::MultipartReply(MultipartReply { body: ReplyBody::PortDesc(ports), .. })] = &answers[..] else {
        panic!("{answers:?}")
    };
    let described: Vec<(u32, u32)> = ports.iter().map(|port| (port.curr, port.curr_speed_kbps)).collect();
    let own = (TEN_GIGABIT, 10_000_000);
    assert_eq!(described, [own, own, (0, 3_000), own]);
    assert!(ports.iter().all(|port| port.supported == TEN_GIGABIT && port.max_speed_kbps == 10_000_000));
    label(&mut world, None);
    assert_eq!(speeds(&world), [own]);
    assert_eq!(stale(&mut world, false), [], "no port has a label");
}

/// The messages about labels that came.
fn messages(told: &[(usize, openflow::Message)]) -> Vec<(usize, u32, LabelMessage)> {
    let read = |(controller, message): &(usize, openflow::Message)| match &message.body {
        Body::Experimenter(it) => (*controller, message.xid, LabelMessage::read(it).unwrap().unwrap()),
        other => panic!("{other:?}"),
    };
    told.iter().map(read).collect()
}

#[test]
fn an_experimenters_message_comes_on_change_and_on_request() {
    let mut world = world(LabelForm::Experimenter);
    let of = |is_stale, labels: &[(u32, u32, u32)]| {
        let label = |(port, label_kbps, capacity_kbps): &(u32, u32, u32)| PortLabel {
            port: PortNo(*port),
            label_kbps: *label_kbps,
            capacity_kbps: *capacity_kbps,
        };
        LabelMessage::Labels { is_stale, more: false, labels: labels.iter().map(label).collect() }
    };
    label(&mut world, Some(2_000));
    let change = of(true, &[(3, 2_000, 10_000)]);
    assert_eq!(messages(&world.told), [(0, 0, change.clone()), (1, 0, change)]);
    world.told.clear();
    world.event(Event::LabelsStale(false));
    world.event(Event::LabelsStale(false));
    assert_eq!(messages(&world.told), [(0, 0, of(false, &[])), (1, 0, of(false, &[]))]);
    for (controller, version) in [(0, Version::V1_0), (1, Version::V1_3)] {
        world.told.clear();
        world.say_as(controller, Body::Experimenter(LabelMessage::Request.to_experimenter(version)));
        assert_eq!(messages(&world.told), [(controller, 42, of(false, &[(3, 2_000, 10_000)]))]);
    }
    label(&mut world, None);
    assert_eq!(messages(&world.told)[0], (0, 0, of(false, &[(3, NO_LABEL, 0)])));
}

#[test]
fn after_its_first_barrier_a_controller_knows_all_labels() {
    let mut world = world(LabelForm::Experimenter);
    label(&mut world, Some(2_000));
    let told = world.say_as(1, Body::BarrierRequest);
    let [Body::BarrierReply, Body::Experimenter(labels)] = &told[..] else { panic!("{told:?}") };
    let label = PortLabel { port: PortNo(3), label_kbps: 2_000, capacity_kbps: 10_000 };
    let all = LabelMessage::Labels { is_stale: true, more: false, labels: vec![label] };
    assert_eq!(LabelMessage::read(labels), Ok(Some(all)));
    assert_eq!(world.say_as(1, Body::BarrierRequest), [Body::BarrierReply]);
}

#[test]
fn damaged_requests_for_labels_get_an_error() {
    let mut world = world(LabelForm::Experimenter);
    let mut check = |experimenter, data: &[u8], expected: (u16, u16)| {
        let body = Body::Experimenter(Experimenter { experimenter, exp_type: None, data: data.to_vec() });
        assert_eq!(errors(&world.say(body)), [expected], "{data:?}");
    };
    check(EXPERIMENTER, &[0, 0], (1, 6));
    check(EXPERIMENTER, &[0, 0, 0, 9], (1, 1));
    check(EXPERIMENTER, &[0, 0, 0, 1, 0], (1, 6));
    check(EXPERIMENTER, &[0, 0, 0, 2, 0, 0, 0, 0], (1, 3));
    check(0x2320, &[0, 0, 0, 1], (1, 3));
}
