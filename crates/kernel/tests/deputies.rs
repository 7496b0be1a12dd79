//! No app does by way of a group, a meter or a table what it may not do itself.
//!
//! The switch is the emulator's: what passes the kernel is carried out, and the frames that leave are looked at.

#![allow(clippy::unwrap_used, reason = "a test may")]

use abi::command::{self, Command, FlowMod, GroupMod, MeterMod, PacketOut, What};
use abi::event::{self, OpenFlowVersion, SwitchUp};
use abi::{Frame, Outcome, Receipt, ZoneId};
use emulator::{ControllerId, Effects, Switch, SwitchOptions};
use flow::canonical::{write_actions, write_instructions, write_match};
use flow::text::{parse_actions, parse_instructions, parse_match};
use flow::{DatapathId, PortNo};
use kernel::{Bounds, Capability, Decision, Grant, Kernel};
use openflow::message::{Bucket, FlowModFields, GROUP_ANY, Hello, NO_BUFFER};
use openflow::{Body, Message, Version, message};
use std::time::Duration;

const SWITCH: DatapathId = DatapathId(1);
const APP: ZoneId = ZoneId(1);
const OTHER: ZoneId = ZoneId(2);
const NOW: Duration = Duration::from_secs(1);
const CONTROLLER: ControllerId = ControllerId(0);

const ADD: u16 = 0;
const MODIFY: u16 = 1;
const DELETE: u16 = 2;

const ALL: u8 = 0;

/// A node, and a switch that does what the node lets pass.
struct World {
    kernel: Kernel,
    switch: Switch,
    effects: Effects,
    /// The last command's ticket, as the switch's answer would carry it.
    ticket: u64,
    /// Whether the switch confirms at once.
    confirms: bool,
}

impl World {
    /// One app with this grant, and another that the operator has said nothing of.
    fn with(grant: Grant) -> World {
        let mut kernel = Kernel::new(7);
        kernel.attach(APP, "app", grant, 0);
        kernel.attach(OTHER, "other", Grant::everywhere(&Capability::GRANT_ALL), 0);
        let mut bytes = Vec::new();
        let up = SwitchUp {
            datapath: SWITCH,
            n_buffers: 0,
            n_tables: 8,
            openflow: OpenFlowVersion::V1_3,
            ports: &[],
        };
        event::write::switch_up(&mut bytes, 1, &up);
        kernel.on_event(&Frame::read(&bytes).unwrap(), 0, &mut Vec::new()).unwrap();
        kernel.on_no_answer(SWITCH, kernel::Asked::Owners, kernel::Unanswered::Refused, 0);
        let (mut switch, mut effects) =
            (Switch::new(SWITCH, "s1", SwitchOptions::default()), Effects::default());
        (1..=4).for_each(|port| switch.add_port(PortNo(port), NOW, &mut effects));
        switch.on_connected(CONTROLLER, &mut effects);
        let mut world = World { kernel, switch, effects, ticket: 0, confirms: true };
        world.say(Body::Hello(Hello::default()));
        world
    }

    fn say(&mut self, body: Body) {
        let message = Message { version: Version::V1_3, xid: 1, body };
        self.switch.on_message(CONTROLLER, &message, NOW, &mut self.effects);
    }

    /// `sent`, or the refusal in words.
    fn ask(&mut self, zone: ZoneId, what: What<'_>) -> String {
        let mut bytes = Vec::new();
        let command = Command { datapath: SWITCH, ticket: 7, wants_receipt: false, what };
        assert!(command::write::command(&mut bytes, &command));
        match self.kernel.on_command(zone, &Frame::read(&bytes).unwrap(), 0, &mut Vec::new()) {
            Decision::Send(sent) => {
                self.ticket = sent.ticket;
                self.kernel.on_sent();
                if self.confirms {
                    self.settle(Outcome::Programmed);
                }
                "sent".to_owned()
            }
            Decision::Refuse(refusal) => refusal.to_string(),
            other => format!("{other:?}"),
        }
    }

    fn settle(&mut self, outcome: Outcome) {
        let error = flow::ErrorCode { kind: 0, code: 0 };
        self.kernel.on_receipt(&Receipt { ticket: self.ticket, outcome, error, reason: "" });
    }

    fn rule(&mut self, zone: ZoneId, table_id: u8, matching: &str, instructions: &str) -> String {
        let (rule, done) = (parse_match(matching).unwrap(), parse_instructions(instructions).unwrap());
        let (mut matched, mut bytes) = (Vec::new(), Vec::new());
        write_match(&rule, &mut matched);
        write_instructions(&done, &mut bytes).unwrap();
        let priority = 5;
        let flow_mod =
            FlowMod { table_id, priority, matching: &matched, instructions: &bytes, ..FlowMod::ADD };
        let said = self.ask(zone, What::FlowMod(flow_mod));
        if said == "sent" {
            let cookie = zone.stamp(0);
            let fields = FlowModFields { table_id, priority, cookie, ..FlowModFields::default() };
            self.say(Body::FlowMod(fields.with(rule, done)));
        }
        said
    }

    fn group(&mut self, zone: ZoneId, command: u16, group_id: u32, buckets: &[&str]) -> String {
        let mut bytes = Vec::new();
        buckets.iter().for_each(|actions| write_bucket(actions, GROUP_ANY, &mut bytes));
        let it = GroupMod { command, group_type: ALL, group_id, buckets: &bytes };
        let said = self.ask(zone, What::GroupMod(it));
        if said == "sent" {
            let bucket = |actions: &&str| Bucket {
                weight: 0,
                watch_port: PortNo::ANY,
                watch_group: GROUP_ANY,
                actions: parse_actions(actions).unwrap(),
            };
            let buckets = buckets.iter().map(bucket).collect();
            self.say(Body::GroupMod(message::GroupMod { command, group_type: ALL, group_id, buckets }));
        }
        said
    }

    fn meter(&mut self, zone: ZoneId, bands: &[u8]) -> String {
        self.ask(zone, What::MeterMod(MeterMod { command: ADD, flags: 1, meter_id: 1, bands }))
    }

    fn packet_out(&mut self, frame: &[u8], actions: &str) -> String {
        let (actions, mut bytes) = (parse_actions(actions).unwrap(), Vec::new());
        write_actions(&actions, &mut bytes).unwrap();
        let in_port = PortNo(1);
        let packet = PacketOut { buffer_id: None, in_port, actions: &bytes, data: frame };
        let said = self.ask(APP, What::PacketOut(packet));
        if said == "sent" {
            let data = frame.to_vec();
            self.say(Body::PacketOut(message::PacketOut { buffer_id: NO_BUFFER, in_port, actions, data }));
        }
        said
    }

    /// The frames that left since the last time.
    fn left(&mut self) -> Vec<(PortNo, Vec<u8>)> {
        std::mem::take(&mut self.effects.frames)
    }
}

fn write_bucket(actions: &str, watch_group: u32, out: &mut Vec<u8>) {
    let start = out.len();
    out.extend([0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff]);
    out.extend(watch_group.to_be_bytes());
    out.extend([0; 4]);
    write_actions(&parse_actions(actions).unwrap(), out).unwrap();
    let length = u16::try_from(out.len() - start).unwrap();
    out[start..start + 2].copy_from_slice(&length.to_be_bytes());
}

fn flowspace(texts: &[&str]) -> Bounds {
    let matches = texts.iter().map(|text| parse_match(text).unwrap()).collect();
    Bounds { flowspace: Some(matches), ..Bounds::default() }
}

fn to_ports(bounds: Bounds, ports: &[PortNo]) -> Bounds {
    Bounds { ports: Some(ports.to_vec()), ..bounds }
}

/// An ARP packet of this operation, 1 to ask and 2 to answer.
fn arp(op: u8) -> Vec<u8> {
    let mut frame = vec![0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0, 0, 1, 8, 6];
    frame.extend([0, 1, 8, 0, 6, 4, 0, op, 2, 0, 0, 0, 0, 1, 10, 0, 0, 1, 0, 0, 0, 0, 0, 0, 10, 0, 0, 2]);
    frame.resize(60, 0);
    frame
}

/// May send ARP requests, and write rules for all of ARP.
fn asks_only() -> Grant {
    Grant::nothing().with_packets_out(flowspace(&["arp,arp_op=1"])).with_rules(flowspace(&["arp"]))
}

const FORGES: &str = "set_field:2->arp_op,output:2";
const REWRITES: &str =
    "packet.out: an action in the action set makes packets outside the granted flowspace of some inside it";

#[test]
fn a_packet_out_forges_nothing_through_a_group_of_its_sender() {
    let mut world = World::with(asks_only());
    let by_hand = world.packet_out(&arp(1), FORGES);
    assert_eq!(by_hand, "packet.out: the actions make packets outside the granted flowspace");
    assert_eq!(world.group(APP, ADD, 7, &[FORGES]), "sent", "for rules it is right");
    assert_eq!(world.rule(APP, 0, "arp,arp_spa=10.0.0.9", "group:7"), "sent");
    assert_eq!(world.packet_out(&arp(1), "group:7"), REWRITES);
    assert!(world.left().is_empty());
    assert_eq!(world.group(APP, ADD, 8, &["output:2", "set_field:1->arp_op,output:3"]), "sent");
    assert_eq!(world.packet_out(&arp(1), "group:8"), "sent");
    assert_eq!(world.left(), [(PortNo(2), arp(1)), (PortNo(3), arp(1))]);
}

#[test]
fn a_group_that_packets_were_sent_to_becomes_no_forger() {
    let mut world = World::with(asks_only());
    assert_eq!(world.group(APP, ADD, 7, &["output:2"]), "sent");
    assert_eq!(world.group(APP, MODIFY, 7, &[FORGES]), "sent", "nobody has sent anything to it yet");
    assert_eq!(world.group(APP, ADD, 8, &["output:2"]), "sent");
    assert_eq!(world.packet_out(&arp(1), "group:8"), "sent");
    // Without a barrier a switch may change the group before it sends the packet.
    assert_eq!(world.group(APP, MODIFY, 8, &[FORGES]), REWRITES);
    assert_eq!(world.group(APP, MODIFY, 8, &["output:3"]), "sent");
}

#[test]
fn what_a_switch_may_not_have_taken_back_counts() {
    let mut world = World::with(asks_only());
    assert_eq!(world.group(APP, ADD, 7, &[FORGES]), "sent");
    // Nobody says whether the switch takes it: if not, it keeps the buckets that it had.
    assert_eq!(world.group(APP, MODIFY, 7, &["output:2"]), "sent");
    assert_eq!(world.packet_out(&arp(1), "group:7"), REWRITES);
    assert_eq!(world.group(APP, DELETE, 7, &[]), "sent");
    assert_eq!(world.group(APP, ADD, 7, &["output:2"]), "sent");
    assert_eq!(world.packet_out(&arp(1), "group:7"), "sent");
}

#[test]
fn groups_in_groups_count() {
    let mut world = World::with(asks_only());
    assert_eq!(world.group(APP, ADD, 1, &[FORGES]), "sent");
    assert_eq!(world.group(APP, ADD, 2, &["group:1"]), "sent");
    assert_eq!(world.packet_out(&arp(1), "group:2"), REWRITES);
    assert_eq!(world.group(APP, ADD, 3, &["output:2"]), "sent");
    assert_eq!(world.group(APP, ADD, 4, &["group:3"]), "sent");
    assert_eq!(world.packet_out(&arp(1), "group:4"), "sent");
    assert_eq!(world.group(APP, MODIFY, 3, &[FORGES]), REWRITES, "packets came to it through 4");
    assert_eq!(world.group(APP, MODIFY, 4, &["group:1"]), REWRITES);
}

#[test]
fn groups_lead_to_no_group_twice_and_not_deep() {
    let mut world = World::with(Grant::everywhere(&Capability::GRANT_ALL));
    let circle = "rule.write: group 1 would lead to itself or too deep: groups may be in groups 3 deep, and one that is in another may not \
                  come to lead further; delete the others first";
    assert_eq!(world.group(APP, ADD, 1, &["group:1"]), circle);
    assert_eq!(world.group(APP, ADD, 1, &["output:1"]), "sent");
    assert_eq!(world.group(APP, MODIFY, 1, &["group:1"]), circle);
    assert_eq!(world.group(APP, ADD, 2, &["group:1"]), "sent");
    assert_eq!(world.group(APP, MODIFY, 1, &["group:2"]), circle);
    assert_eq!(world.group(APP, ADD, 3, &["group:2"]), "sent");
    let deep = world.group(APP, ADD, 4, &["group:3"]);
    assert!(deep.starts_with("rule.write: group 4 would lead to itself or too deep"), "{deep}");
}

#[test]
fn a_group_in_a_group_stays_its_owners() {
    let mut world = World::with(Grant::everywhere(&Capability::GRANT_ALL));
    assert_eq!(world.group(APP, ADD, 1, &["output:1"]), "sent");
    assert_eq!(world.group(APP, ADD, 2, &["group:1"]), "sent");
    // If it went, the next to make it would have what 2 sends there.
    let named = "rule.write: group 1 is in the buckets of another group: delete that one first";
    assert_eq!(world.group(APP, DELETE, 1, &[]), named);
    assert_eq!(world.group(APP, DELETE, 2, &[]), "sent");
    assert_eq!(world.group(APP, DELETE, 1, &[]), "sent");
    assert_eq!(world.group(OTHER, ADD, 1, &["output:1"]), "sent");
}

#[test]
fn nobody_refers_to_what_is_not_its_own() {
    let others_too = Grant::everywhere(&Capability::GRANT_ALL).with(Capability::RuleWriteOthers);
    let check = |grant: Grant, expected: &str| {
        let mut world = World::with(grant);
        let foreign = expected.replace('#', "9");
        let of_another = expected.replace('#', "7");
        assert_eq!(world.group(OTHER, ADD, 7, &["output:1"]), "sent");
        assert_eq!(world.rule(APP, 0, "arp", "group:7"), of_another);
        assert_eq!(world.rule(APP, 0, "arp", "group:9"), foreign);
        assert_eq!(world.rule(APP, 0, "arp", "write_actions(group:9)"), foreign);
        assert_eq!(world.rule(APP, 0, "arp", "meter:9"), foreign.replace("group", "meter"));
        assert_eq!(world.group(APP, ADD, 1, &["output:1", "group:9"]), foreign);
        assert_eq!(world.packet_out(&arp(1), "group:9"), foreign.replace("rule.write", "packet.out"));
    };
    check(Grant::everywhere(&Capability::GRANT_ALL), "rule.write: group # is not the app's own");
    check(others_too, "sent");
    let bounded = Grant::nothing().with_rules(flowspace(&["arp"])).with_packets_out(flowspace(&["arp"]));
    check(bounded.clone(), "rule.write: group # is not the app's own");
    // What a group of others does is not known to lie within its bounds.
    check(bounded.with(Capability::RuleWriteOthers), "rule.write: group # is not the app's own");
}

#[test]
fn a_bucket_watches_no_group_of_others() {
    let mut world = World::with(Grant::everywhere(&Capability::GRANT_ALL));
    let mut bytes = Vec::new();
    write_bucket("output:1", 9, &mut bytes);
    let it = GroupMod { command: ADD, group_type: 3, group_id: 1, buckets: &bytes };
    assert_eq!(world.ask(APP, What::GroupMod(it)), "rule.write: group 9 is not the app's own");
}

#[test]
fn what_is_asked_for_is_its_own_once_the_switch_says_so_whoever_asks() {
    let mut world = World::with(Grant::everywhere(&Capability::GRANT_ALL));
    world.confirms = false;
    let early = "rule.write: the switch has not confirmed this group or meter yet; wait for its receipt";
    assert_eq!(world.group(APP, ADD, 7, &["output:1"]), "sent");
    assert_eq!(world.rule(APP, 0, "arp", "group:7"), early);
    // Another controller had made it.
    world.settle(Outcome::Failed);
    assert_eq!(world.rule(APP, 0, "arp", "group:7"), "rule.write: group 7 is not the app's own");
    assert_eq!(world.group(APP, MODIFY, 7, &["output:2"]), "rule.write: group 7 is not the app's own");
    assert_eq!(world.group(APP, DELETE, 7, &[]), "rule.write: group 7 is not the app's own");
}

#[test]
fn under_another_grant_nobody_knows_what_groups_may_do() {
    let mut world = World::with(Grant::everywhere(&Capability::GRANT_ALL));
    assert_eq!(world.group(APP, ADD, 7, &[FORGES]), "sent");
    world.kernel.detach(APP);
    world.kernel.attach(APP, "app", Grant::everywhere(&Capability::GRANT_ALL), 0);
    assert_eq!(world.packet_out(&arp(1), "group:7"), "sent", "it was started anew, and that is all");
    world.kernel.attach(APP, "app", asks_only(), 0);
    let unknown = "group 7 was made under another grant, and what it does was not compared with this one: delete it and add it again";
    assert_eq!(world.packet_out(&arp(1), "group:7"), format!("packet.out: {unknown}"));
    assert_eq!(world.rule(APP, 0, "arp", "group:7"), format!("rule.write: {unknown}"));
    assert_eq!(world.group(APP, ADD, 8, &["group:7"]), format!("rule.write: {unknown}"));
    assert_eq!(world.group(APP, DELETE, 7, &[]), "sent");
    assert_eq!(world.group(APP, ADD, 7, &["output:2"]), "sent");
    assert_eq!(world.packet_out(&arp(1), "group:7"), "sent");
}

#[test]
fn a_packet_out_forges_nothing_through_rules_of_its_sender() {
    let own_rules = "packet.out: TABLE hands the frame to the app's own rules, which may make packets of it outside the granted flowspace: the \
                     match of rule.write must lie within that of packet.out, or have no packet in common with it";
    let mut world = World::with(asks_only());
    assert_eq!(world.rule(APP, 0, "arp,arp_op=1", FORGES), "sent", "for rules it is right");
    assert_eq!(world.packet_out(&arp(1), "output:TABLE"), own_rules);
    assert!(world.left().is_empty());
    let check = |rules: Option<&str>, expected: &str| {
        let grant = Grant::nothing().with_packets_out(flowspace(&["arp,arp_op=1"]));
        let grant = match rules {
            None => grant,
            Some("") => grant.with(Capability::RuleWrite),
            Some(rules) => grant.with_rules(flowspace(&[rules])),
        };
        assert_eq!(World::with(grant).packet_out(&arp(1), "output:TABLE"), expected, "{rules:?}");
    };
    check(None, "sent");
    check(Some("arp,arp_op=1,arp_spa=10.0.0.1"), "sent");
    check(Some("ip"), "sent");
    check(Some(""), own_rules);
    check(Some("in_port=1"), own_rules);
    // A rule may be for some of both, and lead from one to the other.
    let grant = Grant::nothing().with_packets_out(flowspace(&["arp,arp_op=1"]));
    let both = grant.with_rules(flowspace(&["arp,arp_op=1", "arp,arp_op=2"]));
    assert_eq!(World::with(both).packet_out(&arp(1), "output:TABLE"), own_rules);
    assert_eq!(
        World::with(Grant::everywhere(&Capability::GRANT_ALL)).packet_out(&arp(1), "output:TABLE"),
        "sent"
    );
}

#[test]
fn by_table_a_frame_meets_the_rules_of_others_and_they_are_theirs() {
    let bounds = to_ports(flowspace(&["arp,arp_op=1"]), &[PortNo::TABLE]);
    let mut world = World::with(Grant::nothing().with_packets_out(bounds));
    assert_eq!(world.rule(OTHER, 0, "arp", "set_field:2->arp_op,output:4"), "sent");
    assert_eq!(world.packet_out(&arp(1), "output:2"), "packet.out: port 2 is not among the granted ports");
    assert_eq!(
        world.packet_out(&arp(2), "output:TABLE"),
        "packet.out: the frame is outside the granted flowspace"
    );
    assert_eq!(world.packet_out(&arp(1), "output:TABLE"), "sent");
    assert_eq!(world.left(), [(PortNo(4), arp(2))], "as every such frame of a host");
}

/// What leaves when a host says this by port 1.
fn heard(world: &mut World, frame: Vec<u8>) -> Vec<(PortNo, Vec<u8>)> {
    world.switch.on_frame(PortNo(1), frame, NOW, &mut world.effects);
    world.left()
}

#[test]
fn a_table_of_others_gets_packets_that_its_giver_may_make() {
    let mut world = World::with(Grant::nothing().with_rules(flowspace(&["arp,arp_op=1"])));
    assert_eq!(world.rule(OTHER, 1, "arp,arp_op=2", "output:4"), "sent");
    let beyond = "rule.write: the actions make packets outside the granted flowspace";
    assert_eq!(world.rule(APP, 0, "arp,arp_op=1", "set_field:2->arp_op,goto_table:1"), beyond);
    assert_eq!(world.rule(APP, 0, "arp,arp_op=1", "goto_table:1"), "sent");
    assert!(heard(&mut world, arp(1)).is_empty());
}

#[test]
fn metadata_that_others_read_is_bounded_where_the_flowspace_says_it() {
    let mut world = World::with(Grant::nothing().with_rules(flowspace(&["arp,metadata=1"])));
    let beyond = "rule.write: the actions make packets outside the granted flowspace";
    assert_eq!(world.rule(APP, 0, "arp,metadata=1", "write_metadata:2,goto_table:1"), beyond);
    assert_eq!(world.rule(APP, 0, "arp,metadata=1", "set_field:2->metadata,goto_table:1"), beyond);
    assert_eq!(world.rule(APP, 0, "arp,metadata=1", "write_metadata:1,goto_table:1"), "sent");
}

#[test]
fn an_action_set_that_anothers_table_completes_makes_nothing_that_its_writer_may_not() {
    let mut world = World::with(Grant::nothing().with_rules(flowspace(&["arp,arp_spa=10.0.0.1", "ip"])));
    // Alone it would stay within: an answer of 10.0.0.1. With what another writes beside it, it would not have to.
    let later = "rule.write: an action in the action set makes packets outside the granted flowspace of some inside it";
    assert_eq!(
        world.rule(APP, 0, "arp,arp_spa=10.0.0.1", "write_actions(set_field:10.0.0.9->arp_spa),goto_table:1"),
        later
    );
    assert_eq!(
        world.rule(APP, 0, "arp,arp_spa=10.0.0.1", "write_actions(set_field:2->arp_op),goto_table:1"),
        "sent"
    );
    assert_eq!(world.rule(OTHER, 1, "arp", "write_actions(output:4)"), "sent");
    assert_eq!(heard(&mut world, arp(1)), [(PortNo(4), arp(2))]);
}

#[test]
fn a_meter_remarks_no_packet_out_of_the_flowspace() {
    let remark = [0, 2, 0, 16, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0];
    let check = |spaces: &[&str], bands: &[u8], expected: &str| {
        let grant = Grant::nothing().with_rules(flowspace(spaces));
        assert_eq!(World::with(grant).meter(APP, bands), expected, "{spaces:?}");
    };
    let beyond = "rule.write: the actions make packets outside the granted flowspace";
    check(&["arp", "ip,ip_dscp=10"], &remark, beyond);
    check(&["ip,nw_dst=10.0.0.1"], &remark, "sent");
    let drop = [0, 1, 0, 16, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0];
    check(&["ip,ip_dscp=10"], &drop, "sent");
}

#[test]
fn who_may_hear_no_packets_sends_none_up_by_any_way() {
    let deaf = || Grant::nothing().with(Capability::RuleWrite).with(Capability::PacketOut);
    let controller = |what: &str| format!("{what}: sending to the controller needs packet.in as well");
    let mut world = World::with(deaf());
    assert_eq!(world.rule(APP, 0, "arp", "controller"), controller("rule.write"));
    assert_eq!(world.rule(APP, 0, "arp", "output:1,controller"), controller("rule.write"));
    assert_eq!(world.rule(APP, 0, "arp", "write_actions(controller)"), controller("rule.write"));
    assert_eq!(world.packet_out(&arp(1), "controller"), controller("packet.out"));
    assert_eq!(world.packet_out(&arp(1), "output:1,controller"), controller("packet.out"));
    assert_eq!(world.group(APP, ADD, 1, &["output:1", "controller"]), controller("rule.write"));
    let mut hears = World::with(deaf().with(Capability::PacketIn));
    assert_eq!(hears.rule(APP, 0, "arp", "controller"), "sent");
    assert_eq!(hears.packet_out(&arp(1), "controller"), "sent");
    assert_eq!(hears.group(APP, ADD, 1, &["output:1", "controller"]), "sent");
}
