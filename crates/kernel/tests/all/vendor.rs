//! A vendor's extension passes only for an app with a grant for it, whatever else the app may do.

use abi::command::{self, Command, FlowMod, GroupMod, MeterMod, PacketOut, StatsRequest, What};
use abi::event::{self, SwitchUp};
use abi::{Frame, ZoneId};
use flow::canonical::{write_actions, write_instructions, write_match};
use flow::text::{parse_actions, parse_instructions, parse_match};
use flow::vendor::{NICIRA, PartKind};
use flow::{DatapathId, PortNo};
use kernel::{Capability, Decision, Grant, Kernel, VendorParts, Vendors};

const SWITCH: DatapathId = DatapathId(1);
const APP: ZoneId = ZoneId(1);

struct Node(Kernel);

/// An app that may do everything else.
fn everything_else() -> Grant {
    Capability::all().filter(|one| *one != Capability::Vendor).fold(Grant::nothing(), Grant::with)
}

fn granted(kind: Option<PartKind>, subtype: Option<u32>) -> Grant {
    everything_else().with_vendors(Vendors::new(vec![VendorParts { vendor: NICIRA, kind, subtype }]))
}

impl Node {
    fn with(grant: Grant) -> Node {
        let mut kernel = Kernel::new(7);
        kernel.attach(APP, "app", grant, 0);
        let mut bytes = Vec::new();
        let up = SwitchUp {
            datapath: SWITCH,
            openflow: event::OpenFlowVersion::V1_3,
            n_buffers: 0,
            n_tables: 8,
            ports: &[],
        };
        event::write::switch_up(&mut bytes, 1, &up);
        kernel.on_event(&Frame::read(&bytes).unwrap(), 0, &mut Vec::new()).unwrap();
        kernel.on_no_answer(SWITCH, kernel::Asked::Owners, kernel::Unanswered::Refused, 0);
        Node(kernel)
    }

    /// `sent`, the extension that needs a grant, or another refusal in words.
    fn command(&mut self, what: What<'_>) -> String {
        let mut bytes = Vec::new();
        let command = Command { datapath: SWITCH, ticket: 7, wants_receipt: false, what };
        assert!(command::write::command(&mut bytes, &command));
        match self.0.on_command(APP, &Frame::read(&bytes).unwrap(), 0, &mut Vec::new()) {
            Decision::Send(_) => "sent".to_owned(),
            Decision::Refuse(kernel::Refusal::Vendor(part)) => part.to_string(),
            Decision::Refuse(other) => other.to_string(),
            other => format!("{other:?}"),
        }
    }

    fn rule(&mut self, matching: &str, instructions: &str) -> String {
        let (mut matched, mut done) = (Vec::new(), Vec::new());
        write_match(&parse_match(matching).unwrap(), &mut matched);
        write_instructions(&parse_instructions(instructions).unwrap(), &mut done).unwrap();
        let rule = FlowMod { priority: 5, matching: &matched, instructions: &done, ..FlowMod::ADD };
        self.command(What::FlowMod(rule))
    }

    fn packet_out(&mut self, actions: &str) -> String {
        let mut bytes = Vec::new();
        write_actions(&parse_actions(actions).unwrap(), &mut bytes).unwrap();
        let packet = PacketOut { buffer_id: None, in_port: PortNo(1), actions: &bytes, data: &[0; 14] };
        self.command(What::PacketOut(packet))
    }

    fn group(&mut self, actions: &str) -> String {
        let mut bucket = vec![0; 16];
        write_actions(&parse_actions(actions).unwrap(), &mut bucket).unwrap();
        let length = u16::try_from(bucket.len()).unwrap();
        bucket[..2].copy_from_slice(&length.to_be_bytes());
        self.command(What::GroupMod(GroupMod { command: 0, group_type: 0, group_id: 1, buckets: &bucket }))
    }
}

/// Nicira's learn: it writes rules with any cookie, and deletes those that it wrote.
const LEARN: &str = "experimenter(0x00002320,0010000000000000)";

#[test]
fn nothing_else_that_an_app_holds_stands_for_a_vendors_part() {
    let mut node = Node::with(everything_else());
    let checks = [
        (node.packet_out(LEARN), "nicira:action:16"),
        (node.packet_out("resubmit(1,0)"), "nicira:action:14"),
        (node.packet_out("output:1,load:2->NXM_OF_IN_PORT[]"), "nicira:action:7"),
        (node.rule("in_port=1", LEARN), "nicira:action:16"),
        (node.rule("in_port=1", &format!("write_actions({LEARN})")), "nicira:action:16"),
        (node.rule("in_port=1", "experimenter_instruction(0x1,)"), "0x00000001:instruction:0"),
        (node.rule("in_port=1,reg0=5", "output:1"), "nicira:field:128"),
        (node.group(LEARN), "nicira:action:16"),
    ];
    for (number, (found, expected)) in checks.iter().enumerate() {
        assert_eq!(found, expected, "{number}");
    }
    let nicira_destination = [0, 0, 2, 6, 0, 0, 0, 0, 0, 1];
    let alias = FlowMod { priority: 5, matching: &nicira_destination, ..FlowMod::ADD };
    assert_eq!(node.command(What::FlowMod(alias)), "nicira:field:1");
    let nothing_of_register_0 = [0, 1, 1, 8, 0, 0, 0, 0, 0, 0, 0, 0];
    let masked = FlowMod { matching: &nothing_of_register_0, ..alias };
    assert_eq!(node.command(What::FlowMod(masked)), "nicira:field:128");
    let deletes = FlowMod { command: 4, ..alias };
    assert_eq!(node.command(What::FlowMod(deletes)), "nicira:field:1");
    let bands = [0xff, 0xff, 0, 16, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0x23, 0x20];
    let meter = MeterMod { command: 0, flags: 1, meter_id: 1, bands: &bands };
    assert_eq!(node.command(What::MeterMod(meter)), "nicira:band:0");
    let ask = StatsRequest { multipart: 0xffff, body: &[0, 0, 0x23, 0x20, 0, 0, 0, 2] };
    assert_eq!(node.command(What::StatsRequest(ask)), "nicira:statistics:2");
}

/// Whether the app receives an experimenter message of this vendor.
fn hears(grant: Grant, experimenter: u32, exp_type: u32) -> bool {
    let mut node = Node::with(grant);
    let wanted = command::Subscribe { events: event::kind::bit(event::kind::EXPERIMENTER), packets: &[] };
    node.command(What::Subscribe(wanted));
    let mut bytes = Vec::new();
    let message = event::Experimenter { datapath: SWITCH, experimenter, exp_type, data: &[1] };
    assert!(event::write::experimenter(&mut bytes, 2, &message));
    let receivers = node.0.on_event(&Frame::read(&bytes).unwrap(), 0, &mut Vec::new()).unwrap();
    receivers.contains(APP)
}

#[test]
fn an_experimenter_message_goes_to_apps_that_hold_its_part() {
    assert!(!hears(everything_else(), NICIRA, 7));
    assert!(!hears(granted(None, None), NICIRA, 7), "all that an app sends");
    assert!(hears(granted(Some(PartKind::Message), None), NICIRA, 7));
    assert!(!hears(granted(Some(PartKind::Message), None), 1, 7));
    assert!(hears(granted(Some(PartKind::Message), Some(7)), NICIRA, 7));
    assert!(!hears(granted(Some(PartKind::Message), Some(8)), NICIRA, 7));
    assert!(!hears(granted(Some(PartKind::Statistics), None), NICIRA, 7));
}

#[test]
fn what_openflow_defines_passes_without_it() {
    let mut node = Node::with(everything_else());
    let all = "push_vlan:0x8100,set_field:7->vlan_vid,dec_ttl,set_queue:1,output:2";
    assert_eq!(node.packet_out(all), "sent");
    assert_eq!(node.rule("tcp,nw_dst=10.0.0.0/8,tp_dst=80", &format!("{all},goto_table:2")), "sent");
    assert_eq!(node.group(all), "sent");
}

#[test]
fn a_part_passes_for_whoever_was_granted_just_that() {
    let mut one = Node::with(granted(Some(PartKind::Action), Some(14)));
    assert_eq!(one.packet_out("resubmit(1,0)"), "sent");
    assert_eq!(one.packet_out(&format!("resubmit(1,0),{LEARN}")), "nicira:action:16");
    assert_eq!(one.rule("reg0=5", "resubmit(1,0)"), "nicira:field:128");
    let mut all = Node::with(granted(None, None));
    assert_eq!(all.rule("reg0=5", LEARN), "sent");
    assert_eq!(all.packet_out("experimenter(0x00002321,0010000000000000)"), "0x00002321:action:16");
}

#[test]
fn numbers_that_openflow_does_not_have_are_malformed() {
    let mut node = Node::with(granted(None, None));
    let group =
        |command, group_type| What::GroupMod(GroupMod { command, group_type, group_id: 1, buckets: &[] });
    assert_eq!(node.command(group(3, 0)), "malformed group mod at offset 0: command");
    assert_eq!(node.command(group(0, 4)), "malformed group mod at offset 0: type");
    let flags = FlowMod { priority: 5, flags: 0x20, ..FlowMod::ADD };
    assert_eq!(node.command(What::FlowMod(flags)), "malformed flow mod at offset 0: flags");
    for multipart in [14, command::QUEUE_CONFIG - 1, command::ROLE + 1] {
        let ask = StatsRequest { multipart, body: &[] };
        assert_eq!(node.command(What::StatsRequest(ask)), "malformed statistics request at offset 0: type");
    }
    let mut band = [0; 16];
    band[..4].copy_from_slice(&[0, 3, 0, 16]);
    let meter = MeterMod { command: 0, flags: 1, meter_id: 1, bands: &band };
    assert_eq!(node.command(What::MeterMod(meter)), "malformed bands at offset 0: type");
}
