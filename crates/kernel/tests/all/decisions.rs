//! Asks the kernel a worker's questions: which zones receive an event, and may a command pass.

use abi::command::{self, Command, FlowMod, Subscribe, What};
use abi::event::{self, OpenFlowVersion, PacketIn, PortFacts, PortRecord, SwitchUp, kind};
use abi::{Frame, ZoneId};
use flow::{DatapathId, MacAddr, PortNo};
use kernel::{Capability, Decision, Effect, Grant, Kernel, Refusal, ZoneSet};

const SWITCH: DatapathId = DatapathId(1);
const APP: ZoneId = ZoneId(1);
const OTHER: ZoneId = ZoneId(2);

/// A kernel with two ordinary apps, and the effects of the last call.
struct Node {
    kernel: Kernel,
    effects: Vec<Effect>,
    now_ms: u64,
}

impl Node {
    fn new() -> Self {
        let mut kernel = Kernel::new(7);
        assert!(kernel.attach(APP, "app", Grant::everywhere(&kernel::Capability::GRANT_ALL), 0));
        assert!(kernel.attach(OTHER, "other", Grant::everywhere(&kernel::Capability::GRANT_ALL), 0));
        Node { kernel, effects: Vec::new(), now_ms: 0 }
    }

    fn with_switch() -> Self {
        let mut node = Node::new();
        node.switch_up();
        node
    }

    fn event(&mut self, bytes: &[u8]) -> ZoneSet {
        self.effects.clear();
        self.kernel.on_event(&Frame::read(bytes).unwrap(), self.now_ms, &mut self.effects).unwrap().clone()
    }

    fn switch_up(&mut self) -> ZoneSet {
        let port = PortRecord::new(PortFacts {
            port_no: PortNo(1),
            hw_addr: MacAddr::default(),
            live: true,
            administratively_up: true,
            curr_speed_kbps: 0,
            name: "eth1",
        });
        let mut bytes = Vec::new();
        event::write::switch_up(
            &mut bytes,
            1,
            &SwitchUp {
                datapath: SWITCH,
                n_buffers: 0,
                n_tables: 1,
                openflow: OpenFlowVersion::V1_3,
                ports: &[port],
            },
        );
        assert!(self.event(&bytes).is_empty(), "it has not said yet which rules it has");
        self.kernel.on_no_answer(SWITCH, kernel::Asked::Owners, kernel::Unanswered::Refused, 0);
        assert_eq!(self.kernel.next_ready(), Some(SWITCH));
        self.kernel.receivers_of(kind::SWITCH_UP).clone()
    }

    fn packet_in(&mut self) -> ZoneSet {
        self.packet_in_of(&[])
    }

    fn packet_in_of(&mut self, data: &[u8]) -> ZoneSet {
        let packet = PacketIn {
            datapath: SWITCH,
            in_port: PortNo(1),
            buffer_id: None,
            total_len: 0,
            reason: 0,
            table_id: 0,
            cookie: 0,
            metadata: &[],
            data,
        };
        let mut bytes = Vec::new();
        event::write::packet_in(&mut bytes, 2, &packet);
        self.event(&bytes)
    }

    /// The decision on a command, in words.
    fn command(&mut self, zone: ZoneId, what: What<'_>) -> String {
        let mut bytes = Vec::new();
        let command = Command { datapath: SWITCH, ticket: 7, wants_receipt: true, what };
        assert!(command::write::command(&mut bytes, &command));
        self.effects.clear();
        match self.kernel.on_command(zone, &Frame::read(&bytes).unwrap(), self.now_ms, &mut self.effects) {
            Decision::Send(Command { what: What::FlowMod(rule), .. }) => {
                format!("send cookie={:#x}/{:#x}", rule.cookie, rule.cookie_mask)
            }
            Decision::Refuse(refusal) => format!("refuse: {refusal}"),
            Decision::Ask { to, ticket, .. } => format!("ask {to} as {ticket}"),
            Decision::Answer { to, ticket, .. } => format!("answer {to}'s {ticket}"),
            Decision::Publish(publish) => {
                format!("publish to {:?}", zones(self.kernel.receivers_of_topic(zone, publish.topic)))
            }
            other => format!("{other:?}"),
        }
    }

    fn subscribe(&mut self, zone: ZoneId, kinds: &[u16]) -> String {
        let events = kinds.iter().fold(0, |bits, kind| bits | kind::bit(*kind));
        self.command(zone, What::Subscribe(Subscribe { events, packets: &[] }))
    }
}

fn zones(set: ZoneSet) -> Vec<u16> {
    set.iter().map(|zone| zone.0).collect()
}

#[test]
fn garbage_is_refused_and_counted_against_its_zone() {
    let mut node = Node::with_switch();
    let mut bytes = Vec::new();
    command::write::command(
        &mut bytes,
        &Command { datapath: SWITCH, ticket: 1, wants_receipt: false, what: What::Barrier },
    );
    bytes[0] = 0xee;
    let decision = node.kernel.on_command(APP, &Frame::read(&bytes).unwrap(), 0, &mut node.effects);
    assert!(matches!(decision, Decision::Refuse(Refusal::Malformed(_))));
    let counters = node.kernel.zone(APP).unwrap().counters;
    assert_eq!((counters.commands, counters.refusals), (1, 1));
}

#[test]
fn a_command_that_its_switchs_worker_cannot_take_is_counted_as_refused_here() {
    let mut node = Node::new();
    for zone in [APP, ZoneId(99)] {
        assert_eq!(node.kernel.on_undelivered(zone, 0, &mut node.effects), Ok(()));
    }
    let counters = node.kernel.zone(APP).unwrap().counters;
    assert_eq!((counters.commands, counters.refusals), (1, 1));
}

#[test]
fn a_zone_hears_nothing_that_it_did_not_ask_for() {
    let mut node = Node::new();
    assert!(node.switch_up().is_empty());
    assert!(node.packet_in().is_empty());
}

#[test]
fn a_zone_hears_what_it_asked_for_until_it_is_gone() {
    let mut node = Node::with_switch();
    node.subscribe(APP, &[kind::PACKET_IN]);
    node.subscribe(OTHER, &[kind::PACKET_IN, kind::SWITCH_UP]);
    assert_eq!(zones(node.packet_in()), [1, 2]);
    assert_eq!(zones(node.switch_up()), [2]);
    node.kernel.detach(OTHER);
    assert_eq!(zones(node.packet_in()), [1]);
}

#[test]
fn a_zone_that_wants_some_packets_hears_no_others() {
    let mut node = Node::with_switch();
    let mut packets = Vec::new();
    flow::canonical::write_match(&flow::Match::any().with(flow::Field::EthType, 0x0806u16), &mut packets);
    let subscribe = Subscribe { events: kind::bit(kind::PACKET_IN), packets: &packets };
    node.command(APP, What::Subscribe(subscribe));
    let frame =
        |ethertype: [u8; 2]| [&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2][..], &ethertype, &[0; 46]].concat();
    assert_eq!(zones(node.packet_in_of(&frame([8, 6]))), [1]);
    assert!(node.packet_in_of(&frame([8, 0])).is_empty());
    assert!(node.packet_in_of(&[]).is_empty());
}

#[test]
fn a_later_subscription_replaces_the_earlier_one() {
    let mut node = Node::with_switch();
    node.subscribe(APP, &[kind::PACKET_IN]);
    node.subscribe(APP, &[kind::SWITCH_UP]);
    assert!(node.packet_in().is_empty());
}

#[test]
fn the_first_to_want_packets_makes_switches_send_them_up() {
    let mut node = Node::with_switch();
    node.subscribe(APP, &[kind::PACKET_IN]);
    assert_eq!(node.effects, [Effect::Replay(APP), Effect::Punt(SWITCH)]);
    node.subscribe(OTHER, &[kind::PACKET_IN]);
    assert_eq!(node.effects, [Effect::Replay(OTHER)]);
}

#[test]
fn a_switch_that_comes_later_is_made_to_send_packets_up_as_well() {
    let mut node = Node::new();
    node.switch_up();
    assert!(node.effects.is_empty());
    node.subscribe(APP, &[kind::PACKET_IN]);
    node.switch_up();
    assert_eq!(node.effects, [Effect::Punt(SWITCH)]);
}

#[test]
fn without_the_capability_nothing_passes_and_the_refusal_names_it() {
    let mut node = Node::with_switch();
    node.kernel.attach(APP, "app", Grant::nothing().with(Capability::ViewRead), 0);
    assert_eq!(node.subscribe(APP, &[kind::SWITCH_UP]), "Subscribed");
    assert_eq!(
        node.subscribe(APP, &[kind::PACKET_IN]),
        "refuse: the app does not hold the capability packet.in"
    );
    assert_eq!(
        node.command(APP, What::FlowMod(FlowMod::ADD)),
        "refuse: the app does not hold the capability rule.write"
    );
}

#[test]
fn a_rule_carries_its_owner_whatever_the_app_says() {
    let mut node = Node::with_switch();
    let forged = FlowMod { cookie: 0xffff_0000_0000_0005, ..FlowMod::ADD };
    assert_eq!(node.command(APP, What::FlowMod(forged)), "send cookie=0x1000000000005/0x0");
}

#[test]
fn a_delete_reaches_only_the_apps_own_rules() {
    let mut node = Node::with_switch();
    let delete = FlowMod { command: 3, ..FlowMod::ADD };
    assert_eq!(node.command(APP, What::FlowMod(delete)), "send cookie=0x1000000000000/0xffff000000000000");
    node.kernel.attach(
        APP,
        "app",
        Grant::everywhere(&kernel::Capability::GRANT_ALL).with(Capability::RuleWriteOthers),
        0,
    );
    assert_eq!(node.command(APP, What::FlowMod(delete)), "send cookie=0x0/0x0");
}

#[test]
fn a_command_for_a_switch_that_is_not_there_is_refused() {
    let mut node = Node::new();
    assert_eq!(node.command(APP, What::Barrier), "refuse: of:0000000000000001 is not connected");
}

#[test]
fn a_query_finds_its_service_and_the_answer_its_asker() {
    let mut node = Node::new();
    let ask = |service| What::Query(command::Ask::query(service, b"?"));
    assert_eq!(node.command(APP, ask("nobody")), "NoSuchService { ticket: 7, service: \"nobody\" }");
    assert_eq!(node.command(APP, ask("other")), "ask 2 as 1");
    let answer = What::QueryAnswer(command::QueryAnswer { status: 0, more: false, payload: b"!" });
    assert_eq!(node.command(OTHER, answer), "refuse: there is no open query of that ticket");
}

#[test]
fn what_is_published_comes_to_the_others_who_listen() {
    let mut node = Node::new();
    node.subscribe(APP, &[kind::TOPIC]);
    node.subscribe(OTHER, &[kind::TOPIC]);
    let publish = What::Publish(command::Publish { topic: "link.up", retain: false, payload: b"" });
    assert_eq!(node.command(APP, publish), "publish to [2]");
}

#[test]
fn packet_outs_are_counted_when_they_pass() {
    let mut node = Node::with_switch();
    let out = |data| {
        let actions = &[0, 0, 0, 16, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0];
        What::PacketOut(command::PacketOut { buffer_id: None, in_port: PortNo::CONTROLLER, actions, data })
    };
    node.command(APP, out(&[0; 60]));
    node.command(APP, out(&[0; 60]));
    node.command(APP, What::Barrier);
    let counters = node.kernel.zone(APP).unwrap().counters;
    assert_eq!((counters.packet_outs, counters.commands), (2, 3));
    node.kernel.detach(OTHER);
    assert!(node.kernel.attach(OTHER, "mute", Grant::nothing(), 0));
    node.command(OTHER, out(&[0; 60]));
    assert_eq!(node.kernel.zone(OTHER).unwrap().counters.packet_outs, 0);
}

#[test]
fn there_is_no_zone_beyond_the_last_and_none_is_the_kernel() {
    let mut kernel = Kernel::new(7);
    assert!(!kernel.attach(ZoneId::KERNEL, "kernel", Grant::everywhere(&kernel::Capability::GRANT_ALL), 0));
    assert!(!kernel.attach(
        ZoneId(1024),
        "one too many",
        Grant::everywhere(&kernel::Capability::GRANT_ALL),
        0
    ));
}

#[test]
fn packet_ins_beyond_a_ports_budget_are_heard_by_nobody_and_nothing_else_is_lost() {
    let mut node = Node::with_switch();
    node.kernel.limit_punts(kernel::PuntLimits { per_switch_per_s: None, per_port_per_s: Some(4) });
    node.subscribe(APP, &[kind::PACKET_IN, kind::SWITCH_UP]);
    let heard = (0..9).filter(|_| !node.packet_in().is_empty()).count();
    assert_eq!(heard, 3);
    assert_eq!(node.kernel.of_switches().next().unwrap().dropped.data_dropped, 6);
    assert_eq!(zones(node.switch_up()), [1]);
}

#[test]
fn nobody_replaces_the_rule_that_brings_packets_up() {
    let mut node = Node::with_switch();
    let own = "refuse: rule.write.others: the table-miss rule of table 0 is the kernel's";
    assert_eq!(node.command(APP, What::FlowMod(FlowMod::ADD)), "send cookie=0x1000000000000/0x0");
    node.subscribe(OTHER, &[kind::PACKET_IN]);
    let nothing_said = [0x80, 0, 3 << 1 | 1, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    let without_its_type = [0x80, 0, 11 << 1, 4, 10, 0, 0, 1];
    for matching in [&[][..], &nothing_said, &without_its_type] {
        for command in [0, 2, 4] {
            let flow_mod = FlowMod { command, matching, ..FlowMod::ADD };
            assert_eq!(node.command(APP, What::FlowMod(flow_mod)), own, "{command} {matching:02x?}");
        }
        // Every table. 1.0 has no other, and applies a strict delete to the rule of this match, whatever its owner.
        let everywhere = FlowMod { command: 4, table_id: 255, matching, ..FlowMod::ADD };
        assert_eq!(node.command(APP, What::FlowMod(everywhere)), own, "{matching:02x?}");
    }
    let from_port_1 = [0x80, 0, 0, 4, 0, 0, 0, 1];
    let others = [
        FlowMod { priority: 1, ..FlowMod::ADD },
        FlowMod { table_id: 1, ..FlowMod::ADD },
        FlowMod { matching: &from_port_1, ..FlowMod::ADD },
        FlowMod { command: 3, ..FlowMod::ADD },
    ];
    for flow_mod in others {
        assert!(node.command(APP, What::FlowMod(flow_mod)).starts_with("send"), "{flow_mod:?}");
    }
    node.kernel.attach(
        APP,
        "app",
        Grant::everywhere(&kernel::Capability::GRANT_ALL).with(Capability::RuleWriteOthers),
        0,
    );
    assert!(node.command(APP, What::FlowMod(FlowMod::ADD)).starts_with("send"));
}
