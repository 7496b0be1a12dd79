//! The commands that an app with bounded capabilities may send: tables of commands and the decisions on them.

use abi::command::{self, Command, FlowMod, GroupMod, MeterMod, PacketOut, PortMod, StatsRequest, What};
use abi::event::{self, FlowRemoved, OpenFlowVersion, PacketIn, StatsReply, SwitchUp, kind};
use abi::{Frame, Outcome, Receipt, ZoneId};
use flow::canonical::{write_actions, write_instructions, write_match};
use flow::text::{parse_actions, parse_instructions, parse_match};
use flow::vendor::NICIRA;
use flow::{DatapathId, MacAddr, Match, PortNo};
use kernel::{
    Bounds, Capability, Decision, Effect, Grant, Kernel, Names, Quota, QuotaKind, Quotas, SwitchBounds,
    VendorParts, Vendors, ZoneSet,
};

mod buffers;
mod groups;
mod own_rules;

const SWITCH: DatapathId = DatapathId(1);
const APP: ZoneId = ZoneId(1);
const OTHER: ZoneId = ZoneId(2);

fn matches(texts: &[&str]) -> Option<Vec<Match>> {
    Some(texts.iter().map(|text| parse_match(text).unwrap()).collect())
}

fn flowspace(texts: &[&str]) -> Bounds {
    Bounds { flowspace: matches(texts), ..Bounds::default() }
}

/// The kernel, and the ticket of the last accepted command.
struct Node(Kernel, u64);

impl Node {
    /// A node with one switch, an app with this grant, and an app with all capabilities of apps.
    fn with(grant: Grant) -> Node {
        Node::speaking(OpenFlowVersion::V1_3, grant)
    }

    fn speaking(openflow: OpenFlowVersion, grant: Grant) -> Node {
        let mut kernel = Kernel::new(7);
        kernel.attach(APP, "app", grant, 0);
        kernel.attach(OTHER, "other", Grant::everywhere(&kernel::Capability::GRANT_ALL), 0);
        let mut bytes = Vec::new();
        let up = SwitchUp { datapath: SWITCH, n_buffers: 0, n_tables: 8, openflow, ports: &[] };
        event::write::switch_up(&mut bytes, 1, &up);
        kernel.on_event(&Frame::read(&bytes).unwrap(), 0, &mut Vec::new()).unwrap();
        kernel.on_no_answer(SWITCH, kernel::Asked::Owners, kernel::Unanswered::Refused, 0);
        Node(kernel, 0)
    }

    /// With all extensions of some vendors, so that their effects are compared with the bounds.
    fn with_rules(bounds: Bounds) -> Node {
        let all_of = |vendor| VendorParts { vendor, kind: None, subtype: None };
        let vendors = Vendors::new([NICIRA, 0x1234_5678, 1].map(all_of).to_vec());
        Node::with(Grant::nothing().with_vendors(vendors).with_rules(bounds))
    }

    /// `sent`, or the refusal in words.
    fn command(&mut self, zone: ZoneId, what: What<'_>) -> String {
        self.command_at(0, zone, what, &mut Vec::new())
    }

    fn command_at(&mut self, now_ms: u64, zone: ZoneId, what: What<'_>, effects: &mut Vec<Effect>) -> String {
        let mut bytes = Vec::new();
        let command = Command { datapath: SWITCH, ticket: 7, wants_receipt: true, what };
        assert!(command::write::command(&mut bytes, &command));
        match self.0.on_command(zone, &Frame::read(&bytes).unwrap(), now_ms, effects) {
            Decision::Send(sent) => {
                self.1 = sent.ticket;
                self.0.on_sent();
                "sent".to_owned()
            }
            Decision::Refuse(refusal) => refusal.to_string(),
            other => format!("{other:?}"),
        }
    }

    /// Passes the receipt of the last command to the kernel. Returns the ticket that the app receives, if it receives
    /// one.
    fn receipt(&mut self, outcome: Outcome) -> Option<Option<u64>> {
        let error = flow::ErrorCode { kind: 0, code: 0 };
        let receipt = Receipt { ticket: self.1, outcome, error, reason: "" };
        self.0.on_receipt(&receipt).map(|heard| heard.map(|receipt| receipt.ticket))
    }

    fn rule(&mut self, matching: &str, instructions: &str, rest: FlowMod<'_>) -> String {
        let (mut matched, mut done) = (Vec::new(), Vec::new());
        write_match(&parse_match(matching).unwrap(), &mut matched);
        write_instructions(&parse_instructions(instructions).unwrap(), &mut done).unwrap();
        let flow_mod = FlowMod { matching: &matched, instructions: &done, ..rest };
        self.command(APP, What::FlowMod(flow_mod))
    }

    fn packet_out(&mut self, frame: &[u8], actions: &str) -> String {
        let mut bytes = Vec::new();
        write_actions(&parse_actions(actions).unwrap(), &mut bytes).unwrap();
        let packet = PacketOut { buffer_id: None, in_port: PortNo(1), actions: &bytes, data: frame };
        self.command(APP, What::PacketOut(packet))
    }
}

const ADD: FlowMod<'static> = FlowMod::ADD;

#[test]
fn damage_is_refused_whatever_was_granted() {
    let mut node = Node::with(Grant::everywhere(&kernel::Capability::GRANT_ALL));
    let check = |node: &mut Node, flow_mod: FlowMod<'_>, expected: &str| {
        assert_eq!(node.command(APP, What::FlowMod(flow_mod)), expected);
    };
    let cut = FlowMod { matching: &[0x80, 0, 0, 4, 0, 0, 0], ..ADD };
    check(&mut node, cut, "malformed match at offset 0: oxm_length");
    let lies = FlowMod { instructions: &[0, 4, 0, 16, 0, 0, 0, 0, 0, 0, 0, 16, 0, 0, 0, 1], ..ADD };
    check(&mut node, lies, "malformed instructions at offset 10: len");
    check(&mut node, FlowMod { command: 5, ..ADD }, "malformed flow mod at offset 0: command");
    let packet = PacketOut { buffer_id: None, in_port: PortNo(1), actions: &[0, 0, 0, 8], data: &[] };
    assert_eq!(node.command(APP, What::PacketOut(packet)), "malformed actions at offset 2: len");
    let group = GroupMod { command: 0, group_type: 0, group_id: 1, buckets: &[0, 24, 0, 0] };
    assert_eq!(node.command(APP, What::GroupMod(group)), "malformed buckets at offset 0: len");
    let drop_band = [0, 1, 0, 16, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0];
    let mut check = |bands: &[u8], expected: &str| {
        let meter = MeterMod { command: 0, flags: 1, meter_id: 1, bands };
        assert_eq!(node.command(APP, What::MeterMod(meter)), expected, "{bands:02x?}");
    };
    check(&[0, 1, 0], "malformed bands at offset 0: len");
    check(&[0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], "malformed bands at offset 2: len");
    check(&[0, 1, 0, 24, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], "malformed bands at offset 2: len");
    check(&[&drop_band[..], &[0, 1]].concat(), "malformed bands at offset 16: len");
    check(&drop_band, "sent");
    let meter = MeterMod { command: 3, flags: 1, meter_id: 1, bands: &[] };
    assert_eq!(node.command(APP, What::MeterMod(meter)), "malformed meter mod at offset 0: command");
}

#[test]
fn no_app_limits_what_a_switch_sends_up_for_all() {
    let one_a_second = [0, 1, 0, 16, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0];
    let meter =
        What::MeterMod(MeterMod { command: 0, flags: 1, meter_id: 0xffff_fffe, bands: &one_a_second });
    let refused = "rule.write.others: a group or meter that is the switch's own concerns every app";
    assert_eq!(Node::with_rules(flowspace(&["ip,nw_dst=10.0.0.1"])).command(APP, meter), refused);
    assert_eq!(Node::with(Grant::everywhere(&kernel::Capability::GRANT_ALL)).command(APP, meter), refused);
    let others_too = Grant::everywhere(&kernel::Capability::GRANT_ALL).with(Capability::RuleWriteOthers);
    assert_eq!(Node::with(others_too).command(APP, meter), "sent");
}

#[test]
fn a_rule_is_for_packets_of_the_flowspace() {
    let mut node = Node::with_rules(flowspace(&["ip,nw_dst=10.0.0.0/24", "arp"]));
    let mut check = |matching: &str, expected: &str| {
        assert_eq!(node.rule(matching, "output:1", ADD), expected, "{matching}");
    };
    let outside = "rule.write: the match reaches packets outside the granted flowspace";
    check("", outside);
    check("ip", outside);
    check("ip,nw_dst=10.0.0.0/23", outside);
    check("ip,nw_src=10.0.0.1", outside);
    check("ipv6", outside);
    check("tcp,nw_dst=10.0.0.7,tp_dst=80", "sent");
    check("arp,arp_op=1", "sent");
}

#[test]
fn a_field_that_a_switch_might_pass_over_bounds_nothing() {
    let mut node = Node::with_rules(flowspace(&["tcp,tp_dst=80"]));
    let mut bytes = Vec::new();
    write_match(&Match::any().with(flow::Field::TcpDst, 80u16), &mut bytes);
    assert_eq!(
        node.command(APP, What::FlowMod(FlowMod { matching: &bytes, ..ADD })),
        "rule.write: a field of the match lacks the fields that it needs, and might be passed over"
    );
}

#[test]
fn what_a_rule_makes_of_packets_stays_in_the_flowspace() {
    let mut node =
        Node::with_rules(flowspace(&["ip,nw_dst=10.0.0.0/24", "tcp,nw_dst=10.0.1.0/24,tp_dst=80"]));
    let mut check = |instructions: &str, expected: &str| {
        assert_eq!(node.rule("tcp,nw_dst=10.0.0.7", instructions, ADD), expected, "{instructions}");
    };
    let outside = "rule.write: the actions make packets outside the granted flowspace";
    check("set_field:10.0.2.1->ip_dst,output:1", outside);
    check("set_field:10.0.2.1->ip_dst,group:1,set_field:10.0.0.1->ip_dst", outside);
    check("set_field:10.0.2.1->ip_dst,goto_table:1", outside);
    check("push_mpls:0x8847,output:1", outside);
    check("set_field:10.0.1.1->ip_dst,output:1", outside);
    check("output:1,set_field:10.0.2.1->ip_dst", outside);
    check("set_field:10.0.1.1->ip_dst,set_field:80->tcp_dst,output:1", "sent");
    check("set_field:10.0.2.1->ip_dst,set_field:10.0.0.1->ip_dst,output:1", "sent");
    check("set_field:80->tcp_dst,dec_ttl,output:1,output:2", "sent");
    check("write_metadata:5,goto_table:1", "sent");
}

#[test]
fn an_action_set_must_be_harmless_in_any_company() {
    let mut node =
        Node::with_rules(flowspace(&["tcp,nw_dst=10.0.0.1,tp_dst=1", "tcp,nw_dst=10.0.0.2,tp_dst=2"]));
    let mut check = |instructions: &str, expected: &str| {
        assert_eq!(node.rule("tcp,nw_dst=10.0.0.1,tp_dst=1", instructions, ADD), expected, "{instructions}");
    };
    let later = "rule.write: an action in the action set makes packets outside the granted flowspace of some inside it";
    // Alone it would be within the bounds; with another rule's set_field:1->tcp_dst in a later table it is not.
    check("write_actions(set_field:10.0.0.2->ip_dst,set_field:2->tcp_dst,output:1)", later);
    check("write_actions(push_mpls:0x8847,output:1)", later);
    check("write_actions(set_field:10.9.9.9->ip_src,output:1)", "sent");
}

#[test]
fn what_is_not_understood_is_refused() {
    let mut node = Node::with_rules(flowspace(&["in_port=1"]));
    let mut check = |instructions: &str, expected: &str| {
        assert_eq!(node.rule("in_port=1", instructions, ADD), expected, "{instructions}");
    };
    let unknown = "rule.write: the effect of an action or instruction in it is unknown";
    check("experimenter(0x12345678,0000000000000000),output:1", unknown);
    check("experimenter_instruction(0x1,)", unknown);
    check("experimenter(0x00002320,0010000000000000)", unknown); // Nicira's learn, which writes rules
    check(
        "load:2->NXM_OF_IN_PORT[],output:1",
        "rule.write: the actions make packets outside the granted flowspace",
    );
    check(
        "move:NXM_OF_IP_SRC[]->NXM_OF_IP_DST[]",
        "rule.write: the actions make packets outside the granted flowspace",
    );
}

#[test]
fn numbers_are_named_with_what_was_granted() {
    let bounds = Bounds {
        tables: Some([0, 2].into_iter().collect()),
        priorities: 10..=100,
        ports: Some(vec![PortNo(1), PortNo(2)]),
        ..Bounds::default()
    };
    let mut node = Node::with_rules(bounds.clone());
    let mut check = |instructions: &str, rest: FlowMod<'_>, expected: &str| {
        assert_eq!(node.rule("in_port=1", instructions, rest), expected, "{instructions}");
    };
    let fits = FlowMod { priority: 10, ..ADD };
    check("", FlowMod { priority: 40000, ..ADD }, "rule.write: priority 40000 is above the granted 100");
    check("", FlowMod { priority: 9, ..ADD }, "rule.write: priority 9 is below the granted 10");
    check("", FlowMod { table_id: 1, ..fits }, "rule.write: table 1 is not among the granted tables");
    check(
        "",
        FlowMod { table_id: 255, ..fits },
        "table 255 is every table, and only a delete may name it; name one table",
    );
    check("goto_table:3", fits, "rule.write: table 3 is not among the granted tables");
    check("resubmit(,3)", fits, "rule.write: table 3 is not among the granted tables");
    check("output:3", fits, "rule.write: port 3 is not among the granted ports");
    check("write_actions(flood)", fits, "rule.write: port FLOOD is not among the granted ports");
    check("normal", fits, "rule.write: port NORMAL is not among the granted ports");
    check(
        "output:NXM_NX_REG0[]",
        fits,
        "rule.write: the effect of an action or instruction in it is unknown",
    );
    check("controller", fits, "rule.write: sending to the controller needs packet.in as well");
    check("output:2,in_port", FlowMod { priority: 100, table_id: 2, ..ADD }, "sent");
    check("goto_table:2", fits, "sent");
    let mut hears = Node::with(Grant::nothing().with_rules(bounds).with(Capability::PacketIn));
    assert_eq!(hears.rule("in_port=7", "controller", fits), "sent");
    assert_eq!(hears.rule("in_port=7", "in_port", fits), "rule.write: port 7 is not among the granted ports");
    assert_eq!(hears.rule("", "in_port", fits), "rule.write: port IN_PORT is not among the granted ports");
}

#[test]
fn switches_that_are_not_granted_are_out_of_reach() {
    let bounds = Bounds { datapaths: Some(vec![DatapathId(2)]), ..Bounds::default() };
    let grant = Grant::nothing()
        .with_rules(bounds.clone())
        .with_packets_out(bounds.clone())
        .with_packets_in(bounds.clone())
        .with_ports(bounds);
    let mut node = Node::with(grant);
    let not = "of:0000000000000001 is not among the granted switches";
    assert_eq!(node.rule("", "", ADD), format!("rule.write: {not}"));
    assert_eq!(node.packet_out(&[], "output:1"), format!("packet.out: {not}"));
    let group = GroupMod { command: 2, group_type: 0, group_id: 1, buckets: &[] };
    assert_eq!(node.command(APP, What::GroupMod(group)), format!("rule.write: {not}"));
    let meter = MeterMod { command: 2, flags: 0, meter_id: 1, bands: &[] };
    assert_eq!(node.command(APP, What::MeterMod(meter)), format!("rule.write: {not}"));
    let port = PortMod { port_no: PortNo(1), hw_addr: MacAddr::default(), config: 0, mask: 0 };
    assert_eq!(node.command(APP, What::PortMod(port)), format!("port.write: {not}"));
    assert_eq!(heard(&mut node, &frame([8, 6])), Vec::<u16>::new());
}

#[test]
fn a_switch_with_bounds_of_its_own_has_those_and_the_rest_of_the_others() {
    let at = |ports: &[u32], texts: &[&str]| SwitchBounds {
        flowspace: matches(texts).filter(|all| !all.is_empty()),
        ports: Some(ports.iter().copied().map(PortNo).collect()),
        own_ports: None,
    };
    let bounds = |datapaths: Option<Vec<DatapathId>>, switches: &[(u64, SwitchBounds)]| Bounds {
        datapaths,
        ports: Some(vec![PortNo(1)]),
        switches: switches.iter().map(|(id, here)| (DatapathId(*id), here.clone())).collect(),
        ..flowspace(&["arp"])
    };
    let check = |bounds: &Bounds, matching: &str, port: u32, expected: &str| {
        let mut node = Node::with_rules(bounds.clone());
        assert_eq!(node.rule(matching, &format!("output:{port}"), ADD), expected, "{bounds:?}");
    };
    let outside = "rule.write: the match reaches packets outside the granted flowspace";
    let (one, two) = ["rule.write: port 1 is not", "rule.write: port 2 is not"]
        .map(|text| format!("{text} among the granted ports"))
        .into();
    let here = bounds(None, &[(1, at(&[2], &[]))]);
    check(&here, "arp", 2, "sent");
    check(&here, "arp", 1, &one);
    check(&here, "ip", 2, outside);
    let others = bounds(None, &[(1, at(&[2], &["ip"])), (2, at(&[3], &[]))]);
    check(&others, "ip", 2, "sent");
    check(&others, "arp", 2, outside);
    let elsewhere = [(2, at(&[2], &["ip"]))];
    check(&bounds(Some(vec![SWITCH]), &elsewhere), "arp", 1, "sent");
    check(&bounds(Some(vec![SWITCH]), &elsewhere), "arp", 2, &two);
    check(
        &bounds(None, &elsewhere),
        "arp",
        1,
        "rule.write: of:0000000000000001 is not among the granted switches",
    );
}

#[test]
fn packet_ins_and_packet_outs_have_the_bounds_of_their_switch() {
    let at = |texts: &[&str]| SwitchBounds { flowspace: matches(texts), ..SwitchBounds::default() };
    let bounds = |id: u64| Bounds { switches: [(DatapathId(id), at(&["ip"]))].into(), ..flowspace(&["arp"]) };
    let everywhere = |id: u64| Bounds { datapaths: Some(vec![SWITCH]), ..bounds(id) };
    let (arp, ip) = (frame([8, 6]), frame([8, 0]));
    let mut here = Node::with(Grant::nothing().with_packets_in(bounds(1)).with_packets_out(bounds(1)));
    assert_eq!((heard(&mut here, &arp), heard(&mut here, &ip)), (vec![], vec![1]));
    assert_eq!(here.packet_out(&ip, "output:1"), "sent");
    assert_eq!(here.packet_out(&arp, "output:1"), "packet.out: the frame is outside the granted flowspace");
    let grant = Grant::nothing().with_packets_in(everywhere(2)).with_packets_out(everywhere(2));
    let mut elsewhere = Node::with(grant);
    assert_eq!((heard(&mut elsewhere, &arp), heard(&mut elsewhere, &ip)), (vec![1], vec![]));
    assert_eq!(elsewhere.packet_out(&arp, "output:1"), "sent");
    let mut not_here = Node::with(Grant::nothing().with_packets_in(bounds(2)));
    assert_eq!((heard(&mut not_here, &arp), heard(&mut not_here, &ip)), (vec![], vec![]));
}

#[test]
fn a_delete_of_everything_reaches_the_apps_own_rules_only() {
    let delete = FlowMod { command: 3, table_id: 255, ..ADD };
    let mut node = Node::with_rules(flowspace(&["arp"]));
    assert_eq!(node.rule("", "", delete), "sent");
    assert_eq!(
        node.rule("", "", FlowMod { command: 4, ..ADD }),
        "rule.write: the match reaches packets outside the granted flowspace"
    );
    let others_too = Grant::nothing().with_rules(flowspace(&["arp"])).with(Capability::RuleWriteOthers);
    let mut node = Node::with(others_too);
    assert_eq!(
        node.rule("", "", delete),
        "rule.write: the match reaches packets outside the granted flowspace"
    );
    assert_eq!(node.rule("arp", "", delete), "sent");
}

#[test]
fn a_packet_that_lies_in_the_switch_cannot_be_compared() {
    let buffered = FlowMod { buffer_id: Some(5), ..ADD };
    let what = "the content of the switch's buffer 5 is unknown and cannot be compared with the grant";
    let grant = Grant::nothing().with_rules(flowspace(&["arp"])).with_packets_out(flowspace(&["arp"]));
    let mut node = Node::with(grant.with(Capability::PacketIn));
    assert_eq!(node.rule("arp", "output:1", buffered), format!("rule.write: {what}"));
    let packet = PacketOut { buffer_id: Some(5), in_port: PortNo(1), actions: &[], data: &[] };
    assert_eq!(node.command(APP, What::PacketOut(packet)), format!("packet.out: {what}"));
}

#[test]
fn a_packet_that_lies_in_the_switch_is_for_those_who_hear_packets() {
    let packet = PacketOut { buffer_id: Some(5), in_port: PortNo(1), actions: &[], data: &[] };
    let buffered = FlowMod { buffer_id: Some(5), ..ADD };
    let grant = Grant::nothing().with(Capability::RuleWrite).with(Capability::PacketOut);
    let mut deaf = Node::with(grant.clone());
    let needs = "the app does not hold the capability packet.in";
    assert_eq!(deaf.command(APP, What::PacketOut(packet)), needs);
    assert_eq!(deaf.rule("arp", "output:1", buffered), needs);
    assert_eq!(deaf.rule("arp", "", FlowMod { command: 3, ..buffered }), "sent");
    let mut hears = Node::with(grant.with(Capability::PacketIn));
    assert_eq!(hears.command(APP, What::PacketOut(packet)), "sent");
    assert_eq!(hears.rule("arp", "output:1", buffered), "sent");
    let tables = Bounds { tables: Some([0].into_iter().collect()), ..Bounds::default() };
    let mut bounded = Node::with(Grant::nothing().with_rules(tables).with(Capability::PacketIn));
    assert_eq!(bounded.rule("arp", "output:1", buffered), "sent");
}

#[test]
fn a_packet_that_lies_in_the_switch_goes_by_granted_ports_and_not_back_to_where_nobody_knows() {
    let buffered = FlowMod { buffer_id: Some(5), ..ADD };
    let ports = |ports: &[PortNo]| Bounds { ports: Some(ports.to_vec()), ..Bounds::default() };
    let grant = |bounds: Bounds| Grant::nothing().with_rules(bounds.clone()).with_packets_out(bounds);
    let node = |those: &[PortNo]| Node::with(grant(ports(those)).with(Capability::PacketIn));
    let back = "rule.write: port IN_PORT is not among the granted ports";
    assert_eq!(node(&[PortNo(1)]).rule("in_port=1", "output:1", buffered), "sent");
    assert_eq!(node(&[PortNo(1)]).rule("in_port=1", "in_port", ADD), "sent");
    assert_eq!(node(&[PortNo(1)]).rule("in_port=1", "in_port", buffered), back);
    assert_eq!(node(&[PortNo(1), PortNo::IN_PORT]).rule("in_port=1", "in_port", buffered), "sent");
    let mut sends = node(&[PortNo(1)]);
    let mut out = |actions: &str, buffer_id| {
        let mut bytes = Vec::new();
        write_actions(&parse_actions(actions).unwrap(), &mut bytes).unwrap();
        let packet = PacketOut { buffer_id, in_port: PortNo(1), actions: &bytes, data: &[] };
        sends.command(APP, What::PacketOut(packet))
    };
    assert_eq!(out("output:1", Some(5)), "sent");
    assert_eq!(out("in_port", None), "sent");
    assert_eq!(out("in_port", Some(5)), "packet.out: port IN_PORT is not among the granted ports");
}

#[test]
fn a_packet_whose_ports_are_bounded_keeps_the_port_that_it_came_in_by() {
    let bounds = Bounds { ports: Some(vec![PortNo(1)]), ..Bounds::default() };
    let mut node = Node::with_rules(bounds.clone());
    let mut check = |instructions: &str, expected: &str| {
        assert_eq!(node.rule("in_port=1", instructions, ADD), expected, "{instructions}");
    };
    let set = "rule.write: an action may write in_port, and ports are bounded or the app's own";
    check("set_field:3->in_port,in_port", set);
    check("load:3->NXM_OF_IN_PORT[],in_port", set);
    check("move:NXM_NX_REG0[0..15]->NXM_OF_IN_PORT[],in_port", set);
    check("write_actions(set_field:3->in_port,in_port)", set);
    check("load:3->NXM_NX_REG0[],in_port", "sent");
    check("set_field:3->metadata,set_field:10.0.0.1->ip_dst,in_port", "sent");
    let mut out = Node::with(Grant::nothing().with_packets_out(bounds));
    let escape = out.packet_out(&frame([8, 6]), "set_field:3->in_port,in_port");
    assert_eq!(escape, "packet.out: an action may write in_port, and ports are bounded or the app's own");
}

#[test]
fn a_barrier_is_for_those_who_may_do_something_there() {
    let elsewhere = || Bounds { datapaths: Some(vec![DatapathId(2)]), ..Bounds::default() };
    let check = |grant: Grant, expected: &str| {
        assert_eq!(Node::with(grant).command(APP, What::Barrier), expected);
    };
    let nothing = "the app holds no capability for commands or requests to of:0000000000000001";
    check(Grant::nothing(), nothing);
    check(Grant::nothing().with(Capability::PacketIn).with(Capability::ViewRead), nothing);
    check(Grant::nothing().with_rules(elsewhere()).with_packets_out(elsewhere()), nothing);
    for one in [Capability::RuleWrite, Capability::PacketOut, Capability::PortWrite, Capability::StatsRead] {
        check(Grant::nothing().with(one), "sent");
    }
}

#[test]
fn what_one_command_costs_is_bounded_and_counted() {
    let spaces: Vec<String> = (0..256).map(|last| format!("ip,nw_dst=10.0.0.{last}")).collect();
    let spaces: Vec<&str> = spaces.iter().map(String::as_str).collect();
    let mut node = Node::with_rules(flowspace(&spaces));
    let mut cost = |instructions: &str, expected: &str| {
        assert_eq!(node.rule("ip,nw_dst=10.0.0.7", instructions, ADD), expected, "{instructions}");
        node.0.take_compared()
    };
    // From now on the rule is there, and each add counts the look at it.
    cost("set_field:10.0.0.9->ip_dst,output:1", "sent");
    let once = cost("set_field:10.0.0.9->ip_dst,output:1", "sent");
    let outputs = "output:1,".repeat(250);
    assert_eq!(cost(&format!("set_field:10.0.0.9->ip_dst,{outputs}"), "sent"), once);
    let changes = |count| "set_field:10.0.0.9->ip_dst,output:1,".repeat(count);
    assert!(cost(&changes(64), "sent") > 32 * once);
    let many = "rule.write: a command may change packets of a flowspace 64 times";
    cost(&changes(65), many);
    cost(&format!("write_actions({})", "set_field:1->ip_dscp,".repeat(65)), many);
    let halves = format!("{}write_actions({})", changes(33), "set_field:1->ip_dscp,".repeat(32));
    cost(&halves, many);
}

/// A frame of this EtherType, long enough to be ARP.
fn frame(ethertype: [u8; 2]) -> Vec<u8> {
    [&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2][..], &ethertype, &[0; 46]].concat()
}

#[test]
fn a_packet_out_sends_what_was_granted_to_where_it_was_granted() {
    let bounds = Bounds { ports: Some(vec![PortNo(1)]), ..flowspace(&["arp"]) };
    let mut node = Node::with(Grant::nothing().with_packets_out(bounds));
    let (arp, ip) = (frame([8, 6]), frame([8, 0]));
    assert_eq!(node.packet_out(&ip, "output:1"), "packet.out: the frame is outside the granted flowspace");
    assert_eq!(node.packet_out(&[], ""), "packet.out: the frame is outside the granted flowspace");
    let rewritten = node.packet_out(&arp, "set_field:0x800->eth_type,output:1");
    assert_eq!(rewritten, "packet.out: the actions make packets outside the granted flowspace");
    assert_eq!(node.packet_out(&arp, "output:2"), "packet.out: port 2 is not among the granted ports");
    assert_eq!(
        node.packet_out(&arp, "output:TABLE"),
        "packet.out: port TABLE is not among the granted ports"
    );
    assert_eq!(node.packet_out(&arp, "set_field:1->arp_op,output:1,in_port"), "sent");
}

/// The zones that receive a packet-in with this frame.
fn heard(node: &mut Node, frame: &[u8]) -> Vec<u16> {
    let wanted = command::Subscribe { events: kind::bit(kind::PACKET_IN), packets: &[] };
    node.command(APP, What::Subscribe(wanted));
    let packet = PacketIn {
        datapath: SWITCH,
        in_port: PortNo(3),
        buffer_id: None,
        total_len: 60,
        reason: 0,
        table_id: 0,
        cookie: 0,
        metadata: &[],
        data: frame,
    };
    let mut bytes = Vec::new();
    event::write::packet_in(&mut bytes, 2, &packet);
    let receivers = node.0.on_event(&Frame::read(&bytes).unwrap(), 0, &mut Vec::new()).unwrap();
    receivers.iter().map(|zone| zone.0).collect()
}

#[test]
fn packets_outside_the_grant_are_not_heard_even_if_all_are_wanted() {
    let mut node = Node::with(Grant::nothing().with_packets_in(flowspace(&["arp", "in_port=9"])));
    assert_eq!(heard(&mut node, &frame([8, 6])), [1]);
    assert!(heard(&mut node, &frame([8, 0])).is_empty());
    assert!(heard(&mut node, &[]).is_empty());
}

#[test]
fn names_are_asked_for_each_time() {
    let names = |name: &str| Names::new(vec![name.to_owned()]);
    let grant = Grant::nothing()
        .with_names(Capability::Query, names("paths"))
        .with_names(Capability::Publish, names("link"))
        .with_names(Capability::Subscribe, names("host"));
    let mut node = Node::with(grant);
    let ask = |service| What::Query(command::Ask::query(service, b""));
    assert_eq!(node.command(APP, ask("hosts")), "query: it is not granted for this name");
    assert_eq!(node.command(APP, ask("paths")), "NoSuchService { ticket: 7, service: \"paths\" }");
    let publish = |topic| What::Publish(command::Publish { topic, retain: false, payload: b"" });
    assert_eq!(node.command(APP, publish("host.moved")), "publish: it is not granted for this name");
    let listen = || What::Subscribe(command::Subscribe { events: kind::bit(kind::TOPIC), packets: &[] });
    assert_eq!(node.command(APP, listen()), "Subscribed");
    assert!(node.command(OTHER, publish("host.moved")).starts_with("Publish("));
    assert_eq!(node.0.receivers_of_topic(OTHER, "host.moved"), ZoneSet::only(APP));
    assert_eq!(node.0.receivers_of_topic(OTHER, "link.up"), ZoneSet::EMPTY);
}

#[test]
fn the_rules_of_others_are_not_shown() {
    let mut node = Node::with(Grant::nothing().with(Capability::StatsRead).with(Capability::ViewRead));
    let ask = |multipart, body| What::StatsRequest(StatsRequest { multipart, body });
    let needs = "the app does not hold the capability rule.read";
    assert_eq!(node.command(APP, ask(2, &[])), needs, "a sum");
    for harmless in [0, 1, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, command::QUEUE_CONFIG, command::ROLE] {
        assert_eq!(node.command(APP, ask(harmless, &[])), "sent", "{harmless}");
    }
    let sets = "the app does not hold the capability rule.write.others";
    assert_eq!(node.command(APP, ask(12, &[0; 64])), sets);
    assert_eq!(node.command(OTHER, ask(12, &[0; 64])), sets);
    assert_eq!(node.command(OTHER, ask(14, &[])), "malformed statistics request at offset 0: type");
}

#[test]
fn an_answer_is_cut_down_to_the_apps_own_rules() {
    let entry = |cookie: u64| {
        let mut bytes = vec![0; 56];
        bytes[1] = 56;
        bytes[24..32].copy_from_slice(&cookie.to_be_bytes());
        bytes
    };
    let body = [entry(APP.stamp(5)), entry(OTHER.stamp(5)), entry(0), entry(APP.stamp(6))].concat();
    let reply = StatsReply { datapath: SWITCH, ticket: 9, multipart: 1, more: true, body: &body };
    let mut bytes = Vec::new();
    event::write::stats_reply(&mut bytes, 4, &reply);
    let node = Node::with(Grant::nothing().with(Capability::StatsRead));
    let mut buffer = Vec::new();
    assert_eq!(node.0.cut_down(OTHER, &bytes, &mut buffer), None);
    let seen = node.0.cut_down(APP, &bytes, &mut buffer).unwrap();
    let mut expected = Vec::new();
    let own = [entry(APP.stamp(5)), entry(APP.stamp(6))].concat();
    event::write::stats_reply(&mut expected, 4, &StatsReply { body: &own, ..reply });
    assert_eq!(seen, expected);
}

#[test]
fn that_a_rule_is_gone_hears_who_may_see_it() {
    let mut node = Node::with(Grant::nothing().with(Capability::ViewRead));
    for zone in [APP, OTHER] {
        let wanted = command::Subscribe { events: kind::bit(kind::FLOW_REMOVED), packets: &[] };
        node.command(zone, What::Subscribe(wanted));
    }
    let mut heard = |cookie| {
        let removed = FlowRemoved {
            datapath: SWITCH,
            cookie,
            duration_s: 0,
            duration_ns: 0,
            packet_count: 0,
            byte_count: 0,
            priority: 0,
            idle_timeout_s: 0,
            hard_timeout_s: 0,
            reason: 0,
            table_id: 0,
            matching: &[],
        };
        let mut bytes = Vec::new();
        event::write::flow_removed(&mut bytes, 5, &removed);
        let receivers = node.0.on_event(&Frame::read(&bytes).unwrap(), 0, &mut Vec::new()).unwrap();
        receivers.iter().map(|zone| zone.0).collect::<Vec<_>>()
    };
    assert_eq!(heard(APP.stamp(1)), [1, 2]);
    assert_eq!(heard(OTHER.stamp(1)), [2]);
}

#[test]
fn a_flood_of_commands_is_told_of_and_then_refused() {
    let quotas = Quotas {
        commands_per_s: Some(Quota { soft: 2, hard: 4 }),
        packet_outs_per_s: Some(Quota { soft: 1, hard: 1 }),
        ..Quotas::default()
    };
    let mut node = Node::with(Grant::everywhere(&kernel::Capability::GRANT_ALL).with_quotas(quotas));
    let mut effects = Vec::new();
    let packet = What::PacketOut(PacketOut { buffer_id: None, in_port: PortNo(1), actions: &[], data: &[] });
    assert_eq!(node.command_at(0, APP, packet, &mut effects), "sent");
    assert_eq!(
        node.command_at(0, APP, packet, &mut effects),
        "quota packet_outs_per_s: the hard limit 1 is reached; the operator raises it by packet_outs_per_s in the app's quotas"
    );
    assert_eq!(node.command_at(0, APP, What::Barrier, &mut effects), "sent");
    assert_eq!(effects.len(), 1);
    let (kind, soft, hard) = (QuotaKind::CommandsPerS, 2, 4);
    let told = Effect::SoftLimit { zone: APP, datapath: DatapathId(0), kind, used: 2, soft, hard };
    assert_eq!(effects, [told]);
    assert_eq!(node.command_at(0, APP, What::Barrier, &mut effects), "sent");
    assert_eq!(
        node.command_at(0, APP, What::Barrier, &mut effects),
        "quota commands_per_s: the hard limit 4 is reached; the operator raises it by commands_per_s in the app's quotas"
    );
    assert_eq!(node.command_at(0, OTHER, What::Barrier, &mut effects), "sent");
    assert_eq!(node.command_at(250, APP, What::Barrier, &mut effects), "sent");
}
