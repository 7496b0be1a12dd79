//! The flowspace is enforced: if the kernel accepts rules and groups of an app with a flowspace, a switch with them
//! changes and sends no packet outside it. A packet-out sends nothing outside its own flowspace, through any group or
//! table. Ports of the app's own are the exception: any packet may come in and leave by them.
//!
//! The emulated switch executes OpenFlow 1.3 and knows no flowspaces.

use abi::command::{self, Command, FlowMod, GroupMod, PacketOut, What};
use abi::event::{self, OpenFlowVersion, SwitchUp};
use abi::{Frame, Outcome, Receipt, ZoneId};
use emulator::{ControllerId, Effects, Switch, SwitchOptions};
use flow::canonical::{write_actions, write_instructions, write_match};
use flow::frame::FrameFields;
use flow::text::parse_match;
use flow::{Action, DatapathId, Field, Instruction, Match, PortNo};
use kernel::{Bounds, Decision, Grant, Kernel};
use openflow::message::{Bucket, FlowModFields, GROUP_ANY, Hello, NO_BUFFER};
use openflow::{Body, Message, Version, message};
use proptest::collection::vec;
use proptest::prelude::*;
use std::time::Duration;

const SWITCH: DatapathId = DatapathId(1);
const APP: ZoneId = ZoneId(1);
const NOW: Duration = Duration::from_secs(1);
const CONTROLLER: ControllerId = ControllerId(0);

/// A small set of values, so that rules often match packets and each other.
const SPACES: [&str; 13] = [
    "ip,nw_dst=10.0.0.0/31",
    "ip,nw_dst=10.0.0.2",
    "tcp,nw_dst=10.0.0.1,tp_dst=80",
    "tcp,tp_dst=80",
    "udp,nw_src=10.0.0.1",
    "ip",
    "arp",
    "in_port=1",
    "in_port=2,ip",
    "dl_vlan=5",
    "vlan_vid=0,ip",
    "dl_dst=00:00:00:00:00:01",
    "mpls",
];

/// The app's commands.
#[derive(Clone, Debug)]
enum Wish {
    Rule { table_id: u8, command: u8, matching: Match, instructions: Vec<Instruction> },
    Group { command: u16, group_id: u32, buckets: Vec<Vec<Action>> },
    PacketOut { in_port: PortNo, actions: Vec<Action>, frame: Vec<u8> },
}

fn action() -> impl Strategy<Value = Action> {
    use Field::*;
    let sets = vec![
        (EthDst, 1),
        (EthDst, 2),
        (EthType, 0x0800),
        (EthType, 0x0806),
        (VlanVid, 0x1005),
        (VlanVid, 0x1006),
        (IpProto, 6),
        (IpProto, 17),
        (Ipv4Dst, 0x0a00_0000),
        (Ipv4Dst, 0x0a00_0001),
        (Ipv4Dst, 0x0a00_0002),
        (Ipv4Src, 0x0a00_0001),
        (TcpDst, 80),
        (TcpDst, 81),
        (UdpDst, 80),
        (MplsLabel, 3),
        (ArpOp, 2),
    ];
    let outs =
        vec![PortNo(1), PortNo(2), PortNo(3), PortNo::IN_PORT, PortNo::FLOOD, PortNo::ALL, PortNo::TABLE];
    prop_oneof![
        6 => prop::sample::select(sets).prop_map(|(field, value)| Action::SetField { field, value }),
        5 => prop::sample::select(outs).prop_map(Action::output),
        1 => Just(Action::PushVlan(0x8100)),
        1 => Just(Action::PopVlan),
        1 => Just(Action::PushMpls(0x8847)),
        1 => Just(Action::PopMpls(0x0800)),
        1 => Just(Action::DecNwTtl),
        2 => (1..4u32).prop_map(Action::Group),
    ]
}

fn space() -> impl Strategy<Value = Match> {
    prop::sample::select(&SPACES[..]).prop_map(|text| parse_match(text).unwrap())
}

/// One of the flowspace's matches or another, and one more field perhaps.
fn matching(spaces: Vec<Match>) -> impl Strategy<Value = Match> {
    let more = prop::sample::select(vec![
        "",
        "in_port=1",
        "tcp,tp_dst=80",
        "ip,nw_dst=10.0.0.1",
        "dl_vlan=5",
        "arp",
    ]);
    let first = prop_oneof![4 => prop::sample::select(spaces), 1 => space()];
    (first, more).prop_map(|(first, more)| {
        let both = flow::relation::intersection(&first, &parse_match(more).unwrap());
        both.unwrap_or(first).sorted()
    })
}

fn instructions() -> impl Strategy<Value = Vec<Instruction>> {
    let parts = (vec(action(), 0..5), vec(action(), 0..3), any::<bool>(), proptest::option::of(1..4u8));
    parts.prop_map(|(apply, write, clear, goto)| {
        let mut all = vec![Instruction::ApplyActions(apply)];
        all.extend((clear).then_some(Instruction::ClearActions));
        all.extend((!write.is_empty()).then_some(Instruction::WriteActions(write)));
        all.extend(goto.map(Instruction::GotoTable));
        all
    })
}

fn wish(spaces: Vec<Match>) -> impl Strategy<Value = Wish> {
    let rule = (0..3u8, prop::sample::select(vec![0, 0, 0, 1, 2]), matching(spaces), instructions());
    let group = (prop::sample::select(vec![0, 0, 1, 1, 2u16]), 1..4u32, vec(vec(action(), 0..3), 1..3));
    let packet = (1..3u32, vec(action(), 0..4), frame());
    prop_oneof![
        5 => rule.prop_map(|(table_id, command, matching, instructions)| {
            // A packet goes to later tables only, or the switch refuses the rule.
            let later = |one: &Instruction| !matches!(one, Instruction::GotoTable(to) if *to <= table_id);
            let instructions = instructions.into_iter().filter(later).collect();
            Wish::Rule { table_id, command, matching, instructions }
        }),
        2 => group.prop_map(|(command, group_id, buckets)| Wish::Group { command, group_id, buckets }),
        3 => packet.prop_map(|(in_port, actions, frame)| {
            Wish::PacketOut { in_port: PortNo(in_port), actions, frame }
        }),
    ]
}

/// What an app may send, or what its rules may match: a flowspace, and ports of its own.
#[derive(Clone, Debug)]
struct Space {
    matches: Vec<Match>,
    own_ports: Vec<PortNo>,
}

impl Space {
    fn of(matches: &[Match], own_ports: &[u32]) -> Space {
        Space { matches: matches.to_vec(), own_ports: own_ports.iter().copied().map(PortNo).collect() }
    }

    /// Whether a packet that came in by this port is within the flowspace.
    fn has(&self, in_port: PortNo, frame: &[u8]) -> bool {
        let fields = FrameFields::read(frame).from_port(in_port);
        self.matches.iter().any(|space| space.matches(&fields))
    }

    fn owns(&self, port: PortNo) -> bool {
        self.own_ports.contains(&port)
    }
}

/// A flowspace for rules, one for packet-outs, and the commands of an app that has them.
fn scene() -> impl Strategy<Value = ([Space; 2], Vec<Wish>)> {
    let own = prop::sample::select(vec![&[][..], &[], &[3], &[1], &[1, 3]]);
    let one = move || (vec(space(), 1..4), own.clone()).prop_map(|(matches, own)| Space::of(&matches, own));
    let both = prop_oneof![one().prop_map(|spaces| [spaces.clone(), spaces]), [one(), one()]];
    both.prop_flat_map(|spaces| (Just(spaces.clone()), vec(wish(spaces[0].matches.clone()), 1..12)))
}

/// Frames of the small world: tagged or not, ARP, MPLS, UDP and TCP.
fn frame() -> impl Strategy<Value = Vec<u8>> {
    let tag = prop::sample::select(vec![None, Some(5u8), Some(6)]);
    (1..3u8, tag, 0..4u8, 0..4u8, 1..3u8, 80..82u8).prop_map(|(to, tag, kind, dst, src, port)| {
        let mut bytes = vec![0, 0, 0, 0, 0, to, 0, 0, 0, 0, 0, 9];
        if let Some(id) = tag {
            bytes.extend([0x81, 0x00, 0x00, id]);
        }
        let protocol = if kind == 0 { 17 } else { 6 };
        match kind {
            2 => bytes.extend([0x08, 0x06, 0, 1, 8, 0, 6, 4, 0, 1]),
            3 => bytes.extend([0x88, 0x47, 0, 0, 0x31, 64]),
            _ => bytes.extend([0x08, 0x00]),
        }
        if kind != 2 {
            bytes.extend([0x45, 0, 0, 40, 0, 0, 0, 0, 64, protocol, 0, 0, 10, 0, 0, src, 10, 0, 0, dst]);
            bytes.extend([0, 7, 0, port]);
        }
        bytes.resize(bytes.len() + 30, 0);
        bytes
    })
}

/// The app's node and the switch that its commands go to.
struct World {
    kernel: Kernel,
    switch: Switch,
    effects: Effects,
    passed: usize,
}

impl World {
    fn new([rules, packet_outs]: [&Space; 2]) -> World {
        let mut kernel = Kernel::new(7);
        let bounds = |space: &Space| Bounds {
            flowspace: Some(space.matches.clone()),
            own_ports: space.own_ports.clone(),
            ..Bounds::default()
        };
        let grant = Grant::nothing().with_rules(bounds(rules)).with_packets_out(bounds(packet_outs));
        kernel.attach(APP, "app", grant, 0);
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
        (1..=3).for_each(|port| switch.add_port(PortNo(port), NOW, &mut effects));
        switch.on_connected(CONTROLLER, &mut effects);
        let mut world = World { kernel, switch, effects, passed: 0 };
        world.say(Body::Hello(Hello::default()));
        world
    }

    fn say(&mut self, body: Body) {
        let message = Message { version: Version::V1_3, xid: 1, body };
        self.switch.on_message(CONTROLLER, &message, NOW, &mut self.effects);
    }

    fn passes(&mut self, what: What<'_>) -> bool {
        let mut bytes = Vec::new();
        let command = Command { datapath: SWITCH, ticket: 7, wants_receipt: false, what };
        assert!(command::write::command(&mut bytes, &command));
        let decision = self.kernel.on_command(APP, &Frame::read(&bytes).unwrap(), 0, &mut Vec::new());
        let Decision::Send(sent) = decision else { return false };
        self.passed += 1;
        self.kernel.on_sent();
        // The switch has no groups but this app's, so that it confirms each at once.
        let error = flow::ErrorCode { kind: 0, code: 0 };
        let receipt = Receipt { ticket: sent.ticket, outcome: Outcome::Programmed, error, reason: "" };
        self.kernel.on_receipt(&receipt);
        true
    }

    /// Sends the command to the kernel, and to the switch if the kernel accepts it.
    fn wish(&mut self, wish: &Wish) {
        let body = match wish {
            Wish::Rule { table_id, command, matching, instructions } => {
                let (mut matched, mut done) = (Vec::new(), Vec::new());
                write_match(matching, &mut matched);
                write_instructions(instructions, &mut done).unwrap();
                let (table_id, command) = (*table_id, *command);
                let flow_mod =
                    FlowMod { table_id, command, matching: &matched, instructions: &done, ..FlowMod::ADD };
                if !self.passes(What::FlowMod(flow_mod)) {
                    return;
                }
                let fields = FlowModFields { table_id, command, priority: 0, ..FlowModFields::default() };
                Body::FlowMod(fields.with(matching.clone(), instructions.clone()))
            }
            Wish::Group { command, group_id, buckets } => {
                let mut bytes = Vec::new();
                buckets.iter().for_each(|actions| write_bucket(actions, &mut bytes));
                let (command, group_id) = (*command, *group_id);
                if !self.passes(What::GroupMod(GroupMod {
                    command,
                    group_type: 0,
                    group_id,
                    buckets: &bytes,
                })) {
                    return;
                }
                let bucket = |actions: &Vec<Action>| Bucket {
                    weight: 0,
                    watch_port: PortNo::ANY,
                    watch_group: GROUP_ANY,
                    actions: actions.clone(),
                };
                let buckets = buckets.iter().map(bucket).collect();
                Body::GroupMod(message::GroupMod { command, group_type: 0, group_id, buckets })
            }
            Wish::PacketOut { in_port, actions, frame } => {
                let mut bytes = Vec::new();
                write_actions(actions, &mut bytes).unwrap();
                let packet = PacketOut { buffer_id: None, in_port: *in_port, actions: &bytes, data: frame };
                if !self.passes(What::PacketOut(packet)) {
                    return;
                }
                let (in_port, actions, data) = (*in_port, actions.clone(), frame.clone());
                Body::PacketOut(message::PacketOut { buffer_id: NO_BUFFER, in_port, actions, data })
            }
        };
        self.say(body);
    }

    /// The frames that left since the last call.
    fn left(&mut self) -> Vec<(PortNo, Vec<u8>)> {
        std::mem::take(&mut self.effects.frames)
    }
}

fn write_bucket(actions: &[Action], out: &mut Vec<u8>) {
    let start = out.len();
    out.extend([0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0]);
    write_actions(actions, out).unwrap();
    let length = u16::try_from(out.len() - start).unwrap();
    out[start..start + 2].copy_from_slice(&length.to_be_bytes());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn no_rule_that_passes_leads_out_of_the_flowspace(
        ([spaces, packet_outs], wishes) in scene(), frames in vec((1..3u32, frame()), 24)
    ) {
        let mut world = World::new([&spaces, &packet_outs]);
        for wish in &wishes {
            world.wish(wish);
            if let Wish::PacketOut { in_port, .. } = wish {
                for (port, left) in world.left() {
                    let may_leave = packet_outs.owns(port) || packet_outs.has(*in_port, &left);
                    prop_assert!(may_leave, "{wish:?} sends {left:02x?} to {port}");
                }
            }
        }
        for (in_port, frame) in frames {
            let in_port = PortNo(in_port);
            let inside = spaces.owns(in_port) || spaces.has(in_port, &frame);
            world.switch.on_frame(in_port, frame.clone(), NOW, &mut world.effects);
            for (port, left) in world.left() {
                prop_assert!(inside, "{frame:02x?} of port {in_port} is outside and leaves by {port}");
                prop_assert!(
                    spaces.owns(port) || spaces.has(in_port, &left),
                    "{frame:02x?} of port {in_port} leaves by {port} as {left:02x?}"
                );
            }
        }
    }
}

/// Without this test, the property above could also be true because the kernel accepts nothing or the switch sends
/// nothing.
#[test]
fn rules_within_the_flowspace_pass_and_send() {
    let spaces = Space::of(&[parse_match("ip,nw_dst=10.0.0.0/31").unwrap()], &[]);
    let mut world = World::new([&spaces, &spaces]);
    let to_the_other = Action::SetField { field: Field::Ipv4Dst, value: 0x0a00_0001 };
    world.wish(&Wish::Group { command: 0, group_id: 1, buckets: vec![vec![Action::output(PortNo(2))]] });
    world.wish(&Wish::Rule {
        table_id: 0,
        command: 0,
        matching: parse_match("ip,nw_dst=10.0.0.0").unwrap(),
        instructions: vec![Instruction::ApplyActions(vec![to_the_other, Action::Group(1)])],
    });
    assert_eq!(world.passed, 2);
    let mut frame = vec![0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 9, 8, 0];
    frame.extend([0x45, 0, 0, 40, 0, 0, 0, 0, 64, 6, 0, 0, 10, 0, 0, 9, 10, 0, 0, 0]);
    frame.resize(60, 0);
    world.switch.on_frame(PortNo(1), frame, NOW, &mut world.effects);
    let left = world.left();
    assert_eq!(left.len(), 1);
    assert_eq!((left[0].0, &left[0].1[30..34]), (PortNo(2), &[10, 0, 0, 1][..]));
    let in_port = PortNo(1);
    for action in [Action::Group(1), Action::output(PortNo::TABLE)] {
        let frame = left[0].1.clone();
        world.wish(&Wish::PacketOut { in_port, actions: vec![action], frame });
    }
    assert_eq!(world.passed, 4);
    assert_eq!(world.left().len(), 1, "no rule is for what TABLE brought");
}

/// A tagged network behind port 2, and a port of the app's own, which sends and takes packets without a tag.
#[test]
fn an_own_port_takes_and_sends_packets_without_the_tag() {
    let space = Space::of(&[parse_match("dl_vlan=5").unwrap()], &[1]);
    let mut world = World::new([&space, &space]);
    let vid = Action::SetField { field: Field::VlanVid, value: 0x1005 };
    let out = |port: u32| Action::output(PortNo(port));
    let mut rule = |matching: &str, actions: Vec<Action>| {
        let before = world.passed;
        let matching = parse_match(matching).unwrap();
        let instructions = vec![Instruction::ApplyActions(actions)];
        world.wish(&Wish::Rule { table_id: 0, command: 0, matching, instructions });
        world.passed > before
    };
    assert!(rule("in_port=1", vec![Action::PushVlan(0x8100), vid.clone(), out(2)]));
    assert!(rule("dl_vlan=5,in_port=2", vec![Action::PopVlan, out(1)]));
    assert!(!rule("in_port=1", vec![out(2)]), "without a tag");
    assert!(!rule("in_port=1", vec![Action::PushVlan(0x8100), out(2), vid.clone()]), "before the tag is set");
    assert!(!rule("dl_vlan=5,in_port=2", vec![Action::PopVlan, out(1), out(2)]), "the tag is gone");
    assert!(!rule("in_port=2", vec![out(1)]), "of others");
    assert!(!rule("in_port=3,dl_vlan=5", vec![Action::SetField { field: Field::InPort, value: 1 }, out(3)]));
    let group =
        Wish::Group { command: 0, group_id: 1, buckets: vec![vec![Action::PopVlan, out(1)], vec![out(2)]] };
    let before = world.passed;
    world.wish(&group);
    assert_eq!(world.passed, before + 1, "a bucket has a copy of its own");
    let untagged = [&[0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 9, 8, 6][..], &[0; 46]].concat();
    world.switch.on_frame(PortNo(1), untagged.clone(), NOW, &mut world.effects);
    let tagged = world.left();
    assert_eq!((tagged.len(), tagged[0].0, &tagged[0].1[12..16]), (1, PortNo(2), &[0x81, 0, 0, 5][..]));
    world.switch.on_frame(PortNo(2), tagged[0].1.clone(), NOW, &mut world.effects);
    assert_eq!(world.left(), [(PortNo(1), untagged.clone())]);
    for (in_port, port, passes) in
        [(PortNo::CONTROLLER, 1, true), (PortNo::CONTROLLER, 2, false), (PortNo(1), 2, false)]
    {
        let before = world.passed;
        world.wish(&Wish::PacketOut { in_port, actions: vec![out(port)], frame: untagged.clone() });
        assert_eq!(world.passed > before, passes, "{in_port} {port}");
    }
}

/// A later table, or an app that hears packets, may be another app's: there, a changed packet would count as one of its own.
#[test]
fn what_an_own_port_takes_goes_on_as_it_came_or_within_the_flowspace() {
    let space = Space::of(&[parse_match("dl_vlan=5").unwrap()], &[1]);
    let mut world = World::new([&space, &space]);
    let tag = |vid: u128| {
        let set = Action::SetField { field: Field::VlanVid, value: 0x1000 | vid };
        Instruction::ApplyActions(vec![Action::PushVlan(0x8100), set])
    };
    let metadata = Instruction::WriteMetadata { metadata: 7, mask: 0xff };
    let mut goes_on = |before: Vec<Instruction>| {
        let passed = world.passed;
        let matching = parse_match("in_port=1").unwrap();
        let instructions = before.into_iter().chain([Instruction::GotoTable(1)]).collect();
        world.wish(&Wish::Rule { table_id: 0, command: 0, matching, instructions });
        world.passed > passed
    };
    assert!(goes_on(Vec::new()), "as it came");
    assert!(goes_on(vec![tag(5)]), "within the flowspace");
    assert!(!goes_on(vec![tag(6)]), "with the tag of another app");
    assert!(!goes_on(vec![metadata.clone()]), "with metadata that another app may trust");
    assert!(goes_on(vec![tag(5), metadata]), "within the flowspace, with metadata");
}
