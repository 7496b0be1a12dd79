//! Two rules are equal for the kernel if they are equal for the switch, whatever the names, masks, tables and
//! priorities in the message.

use OpenFlowVersion::{V1_0, V1_3};
use abi::command::{self, Command, FlowMod, Subscribe, What};
use abi::event::{self, OpenFlowVersion, SwitchUp, kind};
use abi::{Frame, ZoneId};
use flow::DatapathId;
use flow::canonical::write_match;
use flow::text::parse_match;
use flow::vendor::{NICIRA, ONF};
use kernel::{Bounds, Capability, Decision, Excess, Grant, Kernel, Refusal, VendorParts, Vendors};

const SWITCH: DatapathId = DatapathId(1);
const ONE: ZoneId = ZoneId(1);
const OTHER: ZoneId = ZoneId(2);
const BOUNDED: ZoneId = ZoneId(3);
const HIGHEST: u16 = 100;

const ADD: u8 = 0;
const MODIFY: u8 = 1;
const MODIFY_STRICT: u8 = 2;
const DELETE_STRICT: u8 = 4;

/// A match with every field of 1.0.
const EXACT: &str = "in_port=1,dl_src=02:00:00:00:00:01,dl_dst=02:00:00:00:00:02,dl_vlan=7,dl_vlan_pcp=3,tcp,nw_src=10.0.0.1,\
                     nw_dst=10.0.0.2,nw_tos=8,tp_src=1,tp_dst=2";

struct Node {
    kernel: Kernel,
}

fn canonical(matching: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    write_match(&parse_match(matching).unwrap(), &mut bytes);
    bytes
}

/// A field of another class.
fn field(class: u16, number: u8, value: &[u8], mask: &[u8]) -> Vec<u8> {
    let header = u32::from(class) << 16 | u32::from(number) << 9 | u32::from(!mask.is_empty()) << 8;
    let length = u32::try_from(value.len() + mask.len()).unwrap();
    [&(header | length).to_be_bytes()[..], value, mask].concat()
}

impl Node {
    /// An app receives packet-ins, so that the kernel has its own rule.
    fn new(openflow: OpenFlowVersion) -> Node {
        let mut node = Node { kernel: Kernel::new(7) };
        // These tests are about equal rules, not about precedence.
        node.kernel.on_overlap(kernel::OnOverlap::Report);
        for zone in [ONE, OTHER] {
            let all_of = |vendor| VendorParts { vendor, kind: None, subtype: None };
            let vendors = Vendors::new([NICIRA, ONF].map(all_of).to_vec());
            node.kernel.attach(
                zone,
                "app",
                Grant::everywhere(&kernel::Capability::GRANT_ALL).with_vendors(vendors),
                0,
            );
        }
        let bounds =
            Bounds { tables: Some([0].into_iter().collect()), priorities: 0..=HIGHEST, ..Bounds::default() };
        node.kernel.attach(
            BOUNDED,
            "bounded",
            Grant::everywhere(&kernel::Capability::GRANT_ALL).with_rules(bounds),
            0,
        );
        let packet_ins = What::Subscribe(Subscribe { events: kind::bit(kind::PACKET_IN), packets: &[] });
        assert_eq!(node.decide(ONE, packet_ins), Ok(()));
        let mut bytes = Vec::new();
        let up = SwitchUp { datapath: SWITCH, n_buffers: 0, n_tables: 2, openflow, ports: &[] };
        event::write::switch_up(&mut bytes, 1, &up);
        node.kernel.on_event(&Frame::read(&bytes).unwrap(), 0, &mut Vec::new()).unwrap();
        node.kernel.on_no_answer(SWITCH, kernel::Asked::Owners, kernel::Unanswered::Refused, 0);
        node
    }

    fn decide(&mut self, zone: ZoneId, what: What<'_>) -> Result<(), Refusal> {
        let mut bytes = Vec::new();
        let command = Command { datapath: SWITCH, ticket: 1, wants_receipt: false, what };
        assert!(command::write::command(&mut bytes, &command));
        match self.kernel.on_command(zone, &Frame::read(&bytes).unwrap(), 0, &mut Vec::new()) {
            Decision::Refuse(refusal) => Err(refusal),
            _ => {
                self.kernel.on_sent();
                Ok(())
            }
        }
    }

    fn flow_mod(&mut self, zone: ZoneId, it: (u8, u8, u16), matching: &[u8]) -> Result<(), Refusal> {
        let (command, table_id, priority) = it;
        self.decide(zone, What::FlowMod(FlowMod { command, table_id, priority, matching, ..FlowMod::ADD }))
    }
}

/// The second rule equals the first: the kernel refuses it to another app.
fn check_same(openflow: OpenFlowVersion, first: (u8, u16, &[u8]), second: (u8, u16, &[u8])) {
    for command in [ADD, MODIFY_STRICT, DELETE_STRICT] {
        let mut node = Node::new(openflow);
        assert_eq!(node.flow_mod(ONE, (ADD, first.0, first.1), first.2), Ok(()));
        let refused = node.flow_mod(OTHER, (command, second.0, second.1), second.2);
        assert_eq!(refused, Err(Refusal::OthersRule(ONE)), "{openflow:?} {first:02x?} {second:02x?}");
    }
}

fn check_different(openflow: OpenFlowVersion, first: (u8, u16, &[u8]), second: (u8, u16, &[u8])) {
    let mut node = Node::new(openflow);
    assert_eq!(node.flow_mod(ONE, (ADD, first.0, first.1), first.2), Ok(()));
    let passed = node.flow_mod(OTHER, (ADD, second.0, second.1), second.2);
    assert_eq!(passed, Ok(()), "{openflow:?} {first:02x?} {second:02x?}");
}

fn same_match(openflow: OpenFlowVersion, first: &[u8], second: &[u8]) {
    check_same(openflow, (0, 7, first), (0, 7, second));
    check_same(openflow, (0, 7, second), (0, 7, first));
}

#[test]
fn a_field_by_niciras_name_is_openflows() {
    let (to, ten) = (canonical("ip,nw_dst=10.0.0.1"), [10, 0, 0, 1]);
    same_match(V1_3, &to, &[canonical("ip"), field(0, 8, &ten, &[])].concat());
    same_match(V1_3, &to, &[field(0, 3, &[8, 0], &[]), field(0, 8, &ten, &[255; 4])].concat());
    let subnet = [canonical("ip"), field(0, 8, &[10, 0, 0, 0], &[255, 0, 0, 0])].concat();
    same_match(V1_3, &canonical("ip,nw_dst=10.0.0.0/8"), &subnet);
    check_different(V1_3, (0, 7, &to), (0, 7, &subnet));
    same_match(V1_3, &canonical("in_port=LOCAL"), &field(0, 0, &[0xff, 0xfe], &[]));
    same_match(
        V1_3,
        &field(1, 3, &[0, 0, 0, 9], &[]),
        &field(0x8001, 1, &[0, 0, 0, 0, 0, 0, 0, 9], &[0, 0, 0, 0, 255, 255, 255, 255]),
    );
    check_different(V1_3, (0, 7, &field(1, 3, &[0, 0, 0, 9], &[])), (0, 7, &field(1, 2, &[0, 0, 0, 9], &[])));
}

#[test]
fn a_field_of_which_no_bit_counts_is_none() {
    let wild = [
        field(1, 0, &[0; 4], &[0; 4]),
        field(1, 107, &[0; 4], &[0; 4]),
        field(0x4242, 5, &[0; 3], &[0; 3]),
        field(0xffff, 9, &[0, 0, 0x23, 0x20, 0], &[0]),
    ];
    for wild in wild {
        same_match(V1_3, &canonical("in_port=1"), &[canonical("in_port=1"), wild].concat());
    }
    let all = field(0x4242, 5, &[1, 2, 3], &[255; 3]);
    same_match(V1_3, &field(0x4242, 5, &[1, 2, 3], &[]), &all);
}

#[test]
fn in_1_0_there_is_one_table() {
    let rule = canonical("ip,nw_src=10.0.0.1");
    for table_id in [1, 7, 255] {
        check_same(V1_0, (0, 7, &rule), (table_id, 7, &rule));
        check_same(V1_0, (table_id, 7, &rule), (0, 7, &rule));
    }
    check_different(V1_3, (0, 7, &rule), (1, 7, &rule));
    check_different(V1_0, (0, 7, &rule), (0, 8, &rule));
}

#[test]
fn in_1_0_an_exact_match_has_the_highest_priority() {
    let exact = canonical(EXACT);
    check_same(V1_0, (0, 7, &exact), (0, 9, &exact));
    check_same(V1_0, (0, 7, &exact), (0, u16::MAX, &exact));
    check_different(V1_3, (0, 7, &exact), (0, 9, &exact));
    let ping = canonical(
        &EXACT.replace("tcp", "icmp").replace("tp_src", "icmp_type").replace("tp_dst", "icmp_code"),
    );
    check_same(V1_0, (0, 7, &ping), (0, 9, &ping));
    for left_out in ["in_port=1,", ",nw_tos=8", "dl_vlan_pcp=3,", ",tp_dst=2"] {
        let wider = canonical(&EXACT.replace(left_out, ""));
        check_different(V1_0, (0, 7, &wider), (0, 9, &wider));
    }
}

#[test]
fn an_exact_match_of_1_0_is_held_to_the_priorities_that_were_granted() {
    let exact = canonical(EXACT);
    let above = Err(Refusal::Beyond(Capability::RuleWrite, Excess::ExactMatch(HIGHEST)));
    assert_eq!(Node::new(V1_0).flow_mod(BOUNDED, (ADD, 0, 7), &exact), above);
    assert_eq!(Node::new(V1_3).flow_mod(BOUNDED, (ADD, 0, 7), &exact), Ok(()));
    let asked = Err(Refusal::Beyond(Capability::RuleWrite, Excess::PriorityAbove(u16::MAX, HIGHEST)));
    assert_eq!(Node::new(V1_0).flow_mod(BOUNDED, (ADD, 0, u16::MAX), &exact), asked);
}

#[test]
fn the_one_table_of_1_0_is_the_one_that_was_granted() {
    let rule = canonical("in_port=1");
    assert_eq!(Node::new(V1_0).flow_mod(BOUNDED, (ADD, 1, 7), &rule), Ok(()));
    let beyond = Err(Refusal::Beyond(Capability::RuleWrite, Excess::Table(1)));
    assert_eq!(Node::new(V1_3).flow_mod(BOUNDED, (ADD, 1, 7), &rule), beyond);
}

#[test]
fn what_1_0_says_of_a_tag_has_one_form() {
    let (none, masked) = (canonical("dl_vlan=0xffff"), canonical("vlan_tci=0x0000/0x1000"));
    check_same(V1_0, (0, 7, &none), (0, 7, &masked));
    check_different(V1_3, (0, 7, &none), (0, 7, &masked));
    let pcp = [0x80, 0, 7 << 1, 1, 3];
    let tagged = [&[0x80, 0, 6 << 1 | 1, 4, 0x10, 0, 0x10, 0][..], &pcp].concat();
    same_match(V1_0, &pcp, &tagged);
    check_different(V1_0, (0, 7, &pcp), (0, 7, &[]));
}

#[test]
fn the_kernels_own_rule_stays_however_it_is_written() {
    let reg0 = field(1, 0, &[0; 4], &[0; 4]);
    let no_address = canonical("dl_dst=00:00:00:00:00:00/00:00:00:00:00:00");
    for matching in [&[][..], &reg0, &no_address, &field(0, 1, &[0; 6], &[0; 6])] {
        let refused = Node::new(V1_3).flow_mod(OTHER, (ADD, 0, 0), matching);
        assert_eq!(refused, Err(Refusal::KernelsRule), "{matching:02x?}");
        let refused = Node::new(V1_3).flow_mod(OTHER, (DELETE_STRICT, 255, 0), matching);
        assert_eq!(refused, Err(Refusal::KernelsRule), "{matching:02x?}");
    }
    for table_id in [0, 1, 255] {
        let refused = Node::new(V1_0).flow_mod(OTHER, (DELETE_STRICT, table_id, 0), &no_address);
        assert_eq!(refused, Err(Refusal::KernelsRule), "{table_id}");
    }
    assert_eq!(Node::new(V1_3).flow_mod(OTHER, (ADD, 1, 0), &reg0), Ok(()));
}

/// An app that may change the rules of others.
fn reaching(openflow: OpenFlowVersion) -> Node {
    let mut node = Node::new(openflow);
    let grant = Grant::everywhere(&Capability::GRANT_ALL).with(Capability::RuleWriteOthers);
    node.kernel.attach(BOUNDED, "reaching", grant, 0);
    node
}

#[test]
fn what_a_modify_of_1_0_adds_is_its_senders() {
    let rule = canonical("in_port=1");
    for command in [MODIFY, MODIFY_STRICT] {
        let mut node = reaching(V1_0);
        assert_eq!(node.flow_mod(BOUNDED, (command, 0, 7), &rule), Ok(()));
        let refused = node.flow_mod(OTHER, (ADD, 0, 7), &rule);
        assert_eq!(refused, Err(Refusal::OthersRule(BOUNDED)), "{command}");
        let mut node = reaching(V1_3);
        assert_eq!(node.flow_mod(BOUNDED, (command, 0, 7), &rule), Ok(()));
        assert_eq!(node.flow_mod(OTHER, (ADD, 0, 7), &rule), Ok(()), "1.3 adds nothing by a modify");
    }
}

#[test]
fn a_modify_of_1_0_writes_its_sender_into_the_cookie() {
    for (openflow, command, expected) in [
        (V1_0, MODIFY, BOUNDED.stamp(5)),
        (V1_0, MODIFY_STRICT, BOUNDED.stamp(5)),
        // It only says which rules are meant.
        (V1_3, MODIFY, 5),
        (V1_0, DELETE_STRICT, 5),
    ] {
        let mut node = reaching(openflow);
        let what = What::FlowMod(FlowMod { command, cookie: 5, ..FlowMod::ADD });
        let mut bytes = Vec::new();
        let it = Command { datapath: SWITCH, ticket: 1, wants_receipt: false, what };
        assert!(command::write::command(&mut bytes, &it));
        let decision = node.kernel.on_command(BOUNDED, &Frame::read(&bytes).unwrap(), 0, &mut Vec::new());
        let Decision::Send(Command { what: What::FlowMod(sent), .. }) = decision else {
            panic!("{decision:?}")
        };
        assert_eq!(sent.cookie, expected, "{openflow:?} {command}");
    }
}

#[test]
fn every_table_at_once_is_for_deletes_alone() {
    for command in [ADD, MODIFY, MODIFY_STRICT] {
        let refused = Node::new(V1_3).flow_mod(ONE, (command, 255, 7), &[]);
        assert_eq!(refused, Err(Refusal::AllTables));
        assert!(Refusal::AllTables.to_string().contains("name one table"));
        assert_eq!(Node::new(V1_0).flow_mod(ONE, (command, 255, 7), &canonical("in_port=1")), Ok(()));
    }
}
