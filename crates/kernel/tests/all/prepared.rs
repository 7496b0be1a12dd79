//! A decision by shape equals a full decision. One kernel takes the short way, and the other never does. Both accept
//! the same commands, refuse the same ones with the same reasons, and record the same.

use abi::command::{self, Command, FlowMod, Subscribe, What};
use abi::event::{self, FlowRemoved, OpenFlowVersion, SwitchUp};
use abi::prepared::RULE_LEN;
use abi::{Frame, ZoneId};
use flow::canonical::{InstructionWriter, MatchWriter, write_match};
use flow::text::parse_match;
use flow::{DatapathId, Field, PortNo};
use kernel::budget::TableRoom;
use kernel::{
    Asked, Bounds, Capability, Decision, Effect, Grant, Kernel, OWN_COOKIE, Quota, Quotas, Unanswered,
};
use proptest::prelude::*;

/// A rule as small numbers; [`Rule::frame`] has their meaning.
#[derive(Clone, Debug)]
struct Rule {
    zone: u16,
    datapath: u64,
    port: u32,
    destination: u64,
    source: u64,
    output: usize,
    buffer: Option<u32>,
    /// Which of [`SHAPES`].
    shape: usize,
    ticket: u64,
    is_sent: bool,
}

/// Outputs: ports, and outputs that become several packets or none.
const OUTPUTS: [PortNo; 7] =
    [PortNo(1), PortNo(2), PortNo(3), PortNo::MAX, PortNo::FLOOD, PortNo::CONTROLLER, PortNo::ANY];

const SHAPES: [FlowMod<'static>; 8] = [
    FlowMod { priority: 50, ..FlowMod::ADD },
    FlowMod { priority: 50, idle_timeout_s: 60, hard_timeout_s: 600, ..FlowMod::ADD },
    FlowMod { priority: 250, ..FlowMod::ADD },
    FlowMod { priority: 250, table_id: 1, flags: 1, idle_timeout_s: 5, ..FlowMod::ADD },
    FlowMod { priority: 50, cookie: u64::MAX, ..FlowMod::ADD },
    FlowMod { priority: 50, table_id: 0xff, ..FlowMod::ADD },
    FlowMod { priority: 50, flags: 0x80, ..FlowMod::ADD },
    // Delete strict.
    FlowMod { priority: 50, command: 4, ..FlowMod::ADD },
];

impl Rule {
    fn frame(&self) -> Vec<u8> {
        let (mut matching, mut instructions, mut bytes) = (Vec::new(), Vec::new(), Vec::new());
        MatchWriter::new(&mut matching)
            .field(Field::InPort, PortNo(self.port))
            .field(Field::EthDst, self.destination)
            .field(Field::EthSrc, self.source);
        InstructionWriter::new(&mut instructions).apply_actions(|actions| {
            actions.output(OUTPUTS[self.output], 0);
        });
        let of = FlowMod { buffer_id: self.buffer, ..SHAPES[self.shape] };
        let what = What::FlowMod(FlowMod { matching: &matching, instructions: &instructions, ..of });
        let wants_receipt = self.ticket % 2 == 1;
        let command =
            Command { datapath: DatapathId(self.datapath), ticket: self.ticket, wants_receipt, what };
        assert!(command::write::command(&mut bytes, &command));
        bytes
    }
}

#[derive(Clone, Debug)]
enum Step {
    Rule(Rule),
    /// The same rule several times, each time with another source.
    Run(Rule, u64),
    Removed {
        zone: u16,
        datapath: u64,
        source: u64,
        shape: usize,
    },
    Up(u64, bool),
    Down(u64),
    Grant(u16, usize),
    Failed(u16, u64),
    Hears(u16, bool),
    Pass(u64),
}

fn grants() -> Vec<Grant> {
    let all = || Grant::everywhere(&Capability::GRANT_ALL);
    let own = || Grant::everywhere(&[Capability::PacketIn, Capability::RuleWrite]);
    let bounds = Bounds::default;
    let most = Quota { soft: 5, hard: 20 };
    vec![
        own().with_rules(Bounds { priorities: 1..=100, ..bounds() }),
        own().with_rules(Bounds { priorities: 200..=300, ..bounds() }),
        own().with_rules(Bounds { priorities: 1..=100, ports: Some(vec![PortNo(1), PortNo(3)]), ..bounds() }),
        own().with_rules(Bounds { priorities: 1..=100, tables: Some([0].into_iter().collect()), ..bounds() }),
        own().with_rules(Bounds { priorities: 1..=100, datapaths: Some(vec![DatapathId(1)]), ..bounds() }),
        own().with_rules(Bounds { flowspace: Some(vec![parse_match("in_port=1").unwrap()]), ..bounds() }),
        own().with_quotas(Quotas { commands_per_s: Some(most), ..Quotas::default() }),
        own().with_quotas(Quotas { rules_per_datapath: Some(most), ..Quotas::default() }),
        Grant::everywhere(&[Capability::RuleWrite]),
        Grant::nothing().with(Capability::PacketIn),
        all(),
        own().with_packets_in(Bounds { flowspace: Some(vec![parse_match("arp").unwrap()]), ..bounds() }),
    ]
}

struct Node {
    kernel: Kernel,
    takes_short_way: bool,
    short: u64,
    effects: Vec<Effect>,
    now_ms: u64,
    /// All decisions and effects.
    story: Vec<String>,
}

impl Node {
    fn new(takes_short_way: bool) -> Node {
        let mut kernel = Kernel::new(7);
        kernel.fill_tables_to(TableRoom { percent: 90, entries_if_unknown: Some(2_000) });
        kernel.know_rules_up_to(1_000);
        for zone in 1..=2 {
            // With these priorities, the apps do not conflict.
            kernel.attach(ZoneId(zone), "app", grants()[2 - usize::from(zone)].clone(), 0);
        }
        let (effects, story) = (Vec::new(), Vec::new());
        let mut node = Node { kernel, takes_short_way, short: 0, effects, now_ms: 0, story };
        node.step(&Step::Up(1, true));
        node.step(&Step::Up(2, false));
        node
    }

    fn event(&mut self, write: impl FnOnce(&mut Vec<u8>) -> bool) {
        let mut bytes = Vec::new();
        assert!(write(&mut bytes));
        let heard = self.kernel.on_event(&Frame::read(&bytes).unwrap(), self.now_ms, &mut self.effects);
        self.story.push(format!("{heard:?}"));
    }

    fn rule(&mut self, rule: &Rule) {
        let (bytes, zone) = (rule.frame(), ZoneId(rule.zone));
        let frame = Frame::read(&bytes).unwrap();
        let prepared = if self.takes_short_way {
            self.kernel.on_prepared(zone, &frame, self.now_ms, &mut self.effects)
        } else {
            None
        };
        self.short += u64::from(prepared.is_some());
        let decision = match prepared {
            Some(rule) => Decision::Send(rule.command().unwrap()),
            None => self.kernel.on_command(zone, &frame, self.now_ms, &mut self.effects),
        };
        self.story.push(format!("{decision:?}"));
        if matches!(decision, Decision::Send(_)) && rule.is_sent {
            self.kernel.on_sent();
        }
    }

    fn removed(&mut self, zone: u16, datapath: u64, source: u64, shape: usize) {
        let mut matching = Vec::new();
        let text = format!("in_port=1,dl_dst=00:00:00:00:00:01,dl_src=00:00:00:00:00:{source:02x}");
        write_match(&parse_match(&text).unwrap(), &mut matching);
        let cookie = if zone == 0 { OWN_COOKIE } else { ZoneId(zone).stamp(SHAPES[shape].cookie) };
        let removed = FlowRemoved {
            datapath: DatapathId(datapath),
            cookie,
            duration_s: 0,
            duration_ns: 0,
            packet_count: 0,
            byte_count: 0,
            priority: SHAPES[shape].priority,
            idle_timeout_s: 0,
            hard_timeout_s: 0,
            reason: 0,
            table_id: SHAPES[shape].table_id,
            matching: &matching,
        };
        self.event(|out| event::write::flow_removed(out, 1, &removed));
    }

    fn hears(&mut self, zone: u16, all: bool) {
        let mut packets = Vec::new();
        write_match(&parse_match("arp").unwrap(), &mut packets);
        let packets = if all { &[][..] } else { &packets };
        let what = What::Subscribe(Subscribe { events: 1 << event::kind::PACKET_IN, packets });
        let command = Command { datapath: DatapathId(0), ticket: 0, wants_receipt: false, what };
        let mut bytes = Vec::new();
        assert!(command::write::command(&mut bytes, &command));
        let frame = Frame::read(&bytes).unwrap();
        self.kernel.on_command(ZoneId(zone), &frame, self.now_ms, &mut self.effects);
    }

    fn step(&mut self, step: &Step) {
        match *step {
            Step::Rule(ref rule) => self.rule(rule),
            Step::Run(ref rule, times) => (0..times).for_each(|number| {
                let source = (rule.source + number % 64) & 0xffff_ffff_ffff;
                self.rule(&Rule { source, port: rule.port.wrapping_add(number as u32 % 3), ..rule.clone() });
            }),
            Step::Removed { zone, datapath, source, shape } => self.removed(zone, datapath, source, shape),
            Step::Up(datapath, is_1_0) => {
                let openflow = if is_1_0 { OpenFlowVersion::V1_0 } else { OpenFlowVersion::V1_3 };
                let datapath = DatapathId(datapath);
                let up = SwitchUp { datapath, n_buffers: 0, n_tables: 2, openflow, ports: &[] };
                self.event(|out| event::write::switch_up(out, 1, &up));
                self.kernel.on_no_answer(datapath, Asked::Owners, Unanswered::Refused, self.now_ms);
            }
            Step::Down(datapath) => {
                self.event(|out| event::write::switch_down(out, 1, DatapathId(datapath)));
            }
            Step::Grant(zone, number) => {
                let grant = grants().swap_remove(number);
                self.kernel.regrant(ZoneId(zone), grant, self.now_ms, &mut self.effects);
            }
            Step::Failed(zone, datapath) => self.kernel.on_failed(DatapathId(datapath), ZoneId(zone)),
            Step::Hears(zone, all) => self.hears(zone, all),
            Step::Pass(ms) => self.now_ms += ms,
        }
        let effects = std::mem::take(&mut self.effects);
        self.story.push(format!("{effects:?}"));
        for effect in effects {
            // The switch does not answer.
            if let Effect::Ask { datapath, asked } = effect {
                self.kernel.on_no_answer(datapath, asked, Unanswered::Silence, self.now_ms);
            }
        }
        let zones = (1..=2).map(ZoneId);
        let counters = zones.map(|it| (self.kernel.zone(it).unwrap().counters, self.kernel.events_heard(it)));
        self.story.push(format!("{:?}", counters.collect::<Vec<_>>()));
    }
}

fn rule() -> impl Strategy<Value = Rule> {
    // Mostly values that a learning switch uses, so that rules are often equal. Some values exist on no switch.
    let port = prop_oneof![12 => 1..4_u32, 1 => prop::sample::select(&[0, 0xff00, 0xffff, 0xffff_ff00, 0xffff_fffe, u32::MAX][..])];
    let address = |most: u64| prop_oneof![12 => 1..most, 1 => prop::sample::select(&[0, 0x0100_0000_0000, 0xffff_ffff_ffff][..])];
    let of = (1..3_u16, 1..4_u64, port, address(4), address(8));
    let rest = (
        prop_oneof![8 => 0..3_usize, 1 => 3..OUTPUTS.len()],
        proptest::option::of(0..3_u32),
        prop_oneof![8 => 0..4_usize, 1 => 4..SHAPES.len()],
        prop_oneof![12 => 0..3_u64, 1 => Just(1 << 63), 1 => Just(u64::MAX >> 1)],
        prop_oneof![8 => Just(true), 1 => Just(false)],
    );
    (of, rest).prop_map(
        |((zone, datapath, port, destination, source), (output, buffer, shape, ticket, is_sent))| Rule {
            zone,
            datapath,
            port,
            destination,
            source,
            output,
            buffer,
            shape,
            ticket,
            is_sent,
        },
    )
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        20 => rule().prop_map(Step::Rule),
        10 => (rule(), 1..400_u64).prop_map(|(rule, times)| Step::Run(rule, times)),
        3 => (0..3_u16, 1..4_u64, 1..8_u64, 0..4_usize)
            .prop_map(|(zone, datapath, source, shape)| Step::Removed { zone, datapath, source, shape }),
        1 => (1..4_u64, any::<bool>()).prop_map(|(datapath, is_1_0)| Step::Up(datapath, is_1_0)),
        1 => (1..4_u64).prop_map(Step::Down),
        2 => (1..3_u16, 0..grants().len()).prop_map(|(zone, number)| Step::Grant(zone, number)),
        1 => (1..3_u16, 1..3_u64).prop_map(|(zone, datapath)| Step::Failed(zone, datapath)),
        1 => (1..3_u16, any::<bool>()).prop_map(|(zone, all)| Step::Hears(zone, all)),
        3 => (0..20_000_u64).prop_map(Step::Pass),
    ]
}

proptest! {
    #[test]
    fn both_ways_decide_alike(steps in proptest::collection::vec(step(), 0..60)) {
        let (mut short, mut long) = (Node::new(true), Node::new(false));
        for step in &steps {
            short.step(step);
            long.step(step);
            prop_assert_eq!(&short.story, &long.story, "{:?}", step);
            short.story.clear();
            long.story.clear();
        }
    }
}

/// How many of a thousand rules of a learning switch with this grant were decided by shape.
fn short_of(grant: Grant) -> u64 {
    let mut node = Node::new(true);
    node.kernel.regrant(ZoneId(2), grant, 0, &mut Vec::new());
    let rule = Rule {
        zone: 2,
        datapath: 1,
        port: 1,
        destination: 1,
        source: 1,
        output: 0,
        buffer: Some(3),
        shape: 1,
        ticket: 2,
        is_sent: true,
    };
    node.step(&Step::Run(rule, 1_000));
    node.short
}

#[test]
fn most_rules_of_a_learning_switch_go_the_short_way_where_their_shape_decides() {
    let grants = grants();
    for (number, is_short) in
        [(0, true), (2, true), (3, true), (4, false), (5, false), (7, false), (9, false)]
    {
        let short = short_of(grants[number].clone());
        assert_eq!(short > 900, is_short, "{number}: {short}");
        assert!(is_short || short == 0, "{number}: {short}");
    }
}

#[test]
fn what_was_decided_by_a_grant_does_not_outlive_it() {
    let mut node = Node::new(true);
    let rule = |output| Rule {
        zone: 2,
        datapath: 1,
        port: 1,
        destination: 1,
        source: 1,
        output,
        buffer: None,
        shape: 0,
        ticket: 2,
        is_sent: true,
    };
    (0..3).for_each(|_| node.rule(&rule(1)));
    assert!(node.short > 0 && node.story.last().unwrap().starts_with("Send"));
    // Port 2 is no longer granted.
    node.step(&Step::Grant(2, 2));
    node.rule(&rule(1));
    assert!(node.story.last().unwrap().contains("Port(PortNo(2))"), "{:?}", node.story.last());
    node.step(&Step::Grant(2, 9));
    node.rule(&rule(0));
    assert!(node.story.last().unwrap().contains("Needs"), "{:?}", node.story.last());
}

/// A node whose switch 1 takes many rules.
fn large() -> Node {
    let mut node = Node::new(true);
    node.kernel.fill_tables_to(TableRoom { percent: 90, entries_if_unknown: Some(1 << 20) });
    node.kernel.know_rules_up_to(1 << 20);
    node.step(&Step::Up(1, true));
    node
}

/// Decides on commands as a worker does, with those that can be read ahead first. Returns how many were.
fn run_ahead(node: &mut Node, zone: ZoneId, mut commands: &[u8]) -> usize {
    let mut read_ahead = 0;
    while !commands.is_empty() {
        if let Some(ahead) = node.kernel.look_ahead(zone, commands) {
            for number in 0..ahead.len() {
                let Some(rule) = node.kernel.on_ahead(&ahead, number, node.now_ms, &mut node.effects) else {
                    break;
                };
                node.story.push(format!("{:?}", Decision::Send(rule.command().unwrap())));
                node.kernel.on_sent();
                read_ahead += 1;
                commands = &commands[RULE_LEN..];
            }
        }
        let Ok((frame, behind)) = Frame::split(commands) else { break };
        let decision = node.kernel.on_command(zone, &frame, node.now_ms, &mut node.effects);
        node.story.push(format!("{decision:?}"));
        if matches!(decision, Decision::Send(_)) {
            node.kernel.on_sent();
        }
        commands = behind;
    }
    read_ahead
}

#[test]
fn rules_that_are_read_ahead_are_decided_alike() {
    let rule = |number: u64| Rule {
        zone: 2,
        // Another switch, another shape, and a port beyond the grant now and then.
        datapath: if number % 1_000 == 77 { 2 } else { 1 },
        port: 1,
        destination: number % 4,
        source: number % 9_000,
        output: if number % 500 == 33 { 1 } else { 0 },
        buffer: Some(number as u32),
        shape: usize::from(number % 300 == 5),
        ticket: number % 3,
        is_sent: true,
    };
    let (mut one_by_one, mut ahead) = (large(), large());
    for node in [&mut one_by_one, &mut ahead] {
        node.step(&Step::Grant(2, 2));
        node.story.clear();
    }
    let rules: Vec<_> = (0..20_000).map(rule).collect();
    rules.iter().for_each(|rule| one_by_one.rule(rule));
    let commands: Vec<u8> = rules.iter().flat_map(Rule::frame).collect();
    let read_ahead = run_ahead(&mut ahead, ZoneId(2), &commands);
    assert!(read_ahead > 5_000, "{read_ahead}");
    assert!(one_by_one.story.iter().any(|it| it.starts_with("Refuse")), "the grant allows all");
    assert_eq!(one_by_one.story.len(), ahead.story.len());
    let differs = one_by_one.story.iter().zip(&ahead.story).position(|(one, other)| one != other);
    assert_eq!(differs, None);
    assert_eq!(one_by_one.effects, ahead.effects);
    let counters = |node: &Node| node.kernel.zone(ZoneId(2)).unwrap().counters;
    assert_eq!(format!("{:?}", counters(&one_by_one)), format!("{:?}", counters(&ahead)));
}
