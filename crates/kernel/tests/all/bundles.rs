//! A bundle gets an app nothing that its flow mods do not get alone. This holds when the kernel decides. It also holds later, when the
//! switch applies the bundle after other commands and questions, or never.
//!
//! The oracle is a model of a switch with its connection: messages wait in both directions. Each add that the switch carries out must
//! find no rule of another app in its place, and no more rules of its app than the quota allows.

use abi::command::{self, BUNDLE_MAX, Command, FlowMod, What};
use abi::event::{self, FlowRemoved, OpenFlowVersion, StatsReply, SwitchUp};
use abi::{Frame, ZoneId};
use flow::DatapathId;
use flow::canonical::write_match;
use flow::text::parse_match;
use kernel::{
    Asked, Bounds, Capability, Decision, Effect, Grant, Kernel, OnOverlap, Quota, Quotas, Refusal, Unanswered,
};
use std::collections::{BTreeMap, VecDeque};

const SWITCH: DatapathId = DatapathId(1);
/// It has a quota of rules.
const ONE: ZoneId = ZoneId(1);
const TWO: ZoneId = ZoneId(2);
/// It may only match IPv4.
const BOUNDED: ZoneId = ZoneId(3);
/// It may change rules of others.
const MIGHTY: ZoneId = ZoneId(4);
const QUOTA: u32 = 6;
const MATCHES: [&str; 16] = [
    "in_port=1",
    "in_port=2",
    "in_port=3",
    "in_port=4",
    "in_port=5",
    "in_port=6",
    "arp",
    "tcp",
    "udp",
    "ip",
    "ip,nw_src=10.0.0.1",
    "ip,nw_src=10.0.0.2",
    "dl_vlan=1",
    "dl_vlan=2",
    "icmp",
    "dl_type=0x88cc",
];

const ADD: u8 = 0;
const MODIFY_STRICT: u8 = 2;
const DELETE: u8 = 3;
const DELETE_STRICT: u8 = 4;
const SEND_FLOW_REMOVED: u16 = 1;

fn canonical(matching: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    write_match(&parse_match(matching).unwrap(), &mut bytes);
    bytes
}

/// `ofp_flow_stats` (1.3.5, 7.3.5.2) of table 0 and priority 7.
fn entry(cookie: u64, flags: u16, matching: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; 48];
    bytes[13] = 7;
    bytes[18..20].copy_from_slice(&flags.to_be_bytes());
    bytes[24..32].copy_from_slice(&cookie.to_be_bytes());
    bytes.extend([0, 1, 0, u8::try_from(4 + matching.len()).unwrap()]);
    bytes.extend(matching);
    bytes.resize(bytes.len().next_multiple_of(8).max(56), 0);
    bytes[1] = u8::try_from(bytes.len()).unwrap();
    bytes
}

fn kernel() -> Kernel {
    let mut kernel = Kernel::new(7);
    let quotas = Quotas { rules_per_datapath: Some(Quota { soft: 3, hard: QUOTA }), ..Quotas::default() };
    let all = Grant::everywhere(&Capability::GRANT_ALL);
    let matches = ["ip", "tcp", "udp", "icmp"].map(|text| parse_match(text).unwrap());
    let bounds = Bounds { flowspace: Some(matches.into()), ..Bounds::default() };
    kernel.attach(ONE, "one", all.clone().with_quotas(quotas), 0);
    kernel.attach(TWO, "two", all.clone(), 0);
    kernel.attach(BOUNDED, "bounded", all.clone().with_rules(bounds), 0);
    kernel.attach(MIGHTY, "mighty", all.with(Capability::RuleWriteOthers), 0);
    // These tests are about owners, not about precedence.
    kernel.on_overlap(OnOverlap::Report);
    // So few that the kernel often asks which of them are still there.
    kernel.know_rules_up_to(10);
    let up =
        SwitchUp { datapath: SWITCH, n_buffers: 0, n_tables: 2, openflow: OpenFlowVersion::V1_3, ports: &[] };
    let mut bytes = Vec::new();
    assert!(event::write::switch_up(&mut bytes, 1, &up));
    kernel.on_event(&Frame::read(&bytes).unwrap(), 0, &mut Vec::new()).unwrap();
    kernel.on_no_answer(SWITCH, Asked::Owners, Unanswered::Refused, 0);
    kernel
}

/// A small generator (SplitMix64).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let it = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let it = (it ^ it >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (it ^ it >> 31) % bound
    }

    fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
}

/// A flow mod as it reaches the switch.
#[derive(Clone, Debug)]
struct Op {
    zone: ZoneId,
    command: u8,
    /// One of [`MATCHES`].
    rule: usize,
    flags: u16,
    cookie: u64,
    cookie_mask: u64,
}

impl Op {
    fn any(zone: ZoneId, random: &mut Random) -> Op {
        let command = [ADD, ADD, ADD, ADD, MODIFY_STRICT, DELETE_STRICT, DELETE_STRICT, DELETE]
            [random.below(8) as usize];
        let flags = if random.chance(60) { SEND_FLOW_REMOVED } else { 0 };
        let rule = random.below(MATCHES.len() as u64) as usize;
        Op { zone, command, rule, flags, cookie: 0, cookie_mask: 0 }
    }

    fn frame(&self) -> Vec<u8> {
        let matching = if self.command == DELETE { Vec::new() } else { canonical(MATCHES[self.rule]) };
        let Op { command, flags, .. } = *self;
        let flow_mod = FlowMod { command, flags, priority: 7, matching: &matching, ..FlowMod::ADD };
        frame(flow_mod)
    }

    /// The same as the kernel sends it.
    fn sent(&self, command: &Command<'_>) -> Op {
        let What::FlowMod(it) = command.what else { panic!("{command:?}") };
        Op { cookie: it.cookie, cookie_mask: it.cookie_mask, ..self.clone() }
    }
}

fn frame(flow_mod: FlowMod<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    let command =
        Command { datapath: SWITCH, ticket: 7, wants_receipt: false, what: What::FlowMod(flow_mod) };
    assert!(command::write::command(&mut bytes, &command));
    bytes
}

enum ToSwitch {
    Alone(Op),
    Bundle(ZoneId, Vec<Op>),
    Commit(ZoneId),
    Ask(Asked),
}

enum FromSwitch {
    Removed {
        cookie: u64,
        rule: usize,
    },
    Closed(ZoneId),
    /// The commit was carried out, or refused.
    Committed(ZoneId, bool),
    Answer(Asked, u16, Vec<u8>),
}

/// A kernel, a switch, and the messages on their way.
struct World {
    kernel: Kernel,
    random: Random,
    now_ms: u64,
    to_switch: VecDeque<ToSwitch>,
    from_switch: VecDeque<FromSwitch>,
    /// The rules in the switch: cookie and flags.
    rules: BTreeMap<usize, (u64, u16)>,
    staged: BTreeMap<ZoneId, Vec<Op>>,
    under_way: Vec<ZoneId>,
    /// How much happened: rules that a commit added, questions answered during a bundle.
    committed: usize,
    answered: usize,
}

impl World {
    fn new(seed: u64) -> World {
        World {
            kernel: kernel(),
            random: Random(seed),
            now_ms: 0,
            to_switch: VecDeque::new(),
            from_switch: VecDeque::new(),
            rules: BTreeMap::new(),
            staged: BTreeMap::new(),
            under_way: Vec::new(),
            committed: 0,
            answered: 0,
        }
    }

    fn zone(&mut self) -> ZoneId {
        [ONE, TWO][self.random.below(2) as usize]
    }

    fn ask(&mut self, effects: &[Effect]) {
        for effect in effects {
            if let Effect::Ask { asked, .. } = effect {
                self.to_switch.push_back(ToSwitch::Ask(*asked));
            }
        }
    }

    fn send_alone(&mut self) {
        let zone = self.zone();
        let op = Op::any(zone, &mut self.random);
        let (bytes, mut effects) = (op.frame(), Vec::new());
        let decision = self.kernel.on_command(zone, &Frame::read(&bytes).unwrap(), self.now_ms, &mut effects);
        if let Decision::Send(command) = decision {
            let sent = op.sent(&command);
            self.kernel.on_sent();
            self.to_switch.push_back(ToSwitch::Alone(sent));
        }
        self.ask(&effects);
    }

    fn send_bundle(&mut self) {
        let zone = self.zone();
        if self.under_way.contains(&zone) {
            return;
        }
        let ops: Vec<Op> = (0..1 + self.random.below(5)).map(|_| Op::any(zone, &mut self.random)).collect();
        self.kernel.begin_bundle(SWITCH);
        let mut sent = Vec::new();
        for op in &ops {
            let (bytes, mut effects) = (op.frame(), Vec::new());
            let frame = Frame::read(&bytes).unwrap();
            let decided = self.kernel.on_bundled(zone, &frame, self.now_ms, &mut effects);
            sent.extend(decided.ok().map(|command| op.sent(&command)));
            self.ask(&effects);
        }
        if sent.len() < ops.len() {
            return self.over(zone, true);
        }
        self.under_way.push(zone);
        self.to_switch.push_back(ToSwitch::Bundle(zone, sent));
    }

    fn over(&mut self, zone: ZoneId, has_failed: bool) {
        if has_failed {
            self.kernel.on_failed(SWITCH, zone);
        }
        self.under_way.retain(|it| *it != zone);
        self.kernel.on_bundle_over(SWITCH, &mut Vec::new());
    }

    /// The next message reaches the switch.
    fn push_on(&mut self) {
        match self.to_switch.pop_front() {
            None => {}
            Some(ToSwitch::Alone(op)) => self.apply(&op),
            Some(ToSwitch::Bundle(zone, ops)) => {
                self.staged.insert(zone, ops);
                self.from_switch.push_back(FromSwitch::Closed(zone));
            }
            Some(ToSwitch::Commit(zone)) => {
                let ops = self.staged.remove(&zone).unwrap();
                let is_done = self.random.chance(80);
                if is_done {
                    ops.iter().for_each(|op| self.apply(op));
                    self.committed += ops.iter().filter(|op| op.command == ADD).count();
                }
                self.from_switch.push_back(FromSwitch::Committed(zone, is_done));
            }
            Some(ToSwitch::Ask(asked)) => {
                let (multipart, body) = self.answer(asked);
                self.from_switch.push_back(FromSwitch::Answer(asked, multipart, body));
            }
        }
    }

    fn apply(&mut self, op: &Op) {
        let mut removed = Vec::new();
        match op.command {
            ADD => {
                let before = self.rules.insert(op.rule, (op.cookie, op.flags));
                if let Some((cookie, _)) = before {
                    assert_eq!(ZoneId::owner_of(cookie), op.zone, "{op:?} replaces another app's rule");
                }
                let of_one = |(cookie, _): &&(u64, u16)| ZoneId::owner_of(*cookie) == ONE;
                let count = self.rules.values().filter(of_one).count();
                assert!(count <= QUOTA as usize, "{count} rules of the app with a quota");
            }
            DELETE_STRICT | DELETE => {
                let is_meant = |rule: &usize, cookie: &u64| {
                    (op.command == DELETE || *rule == op.rule) && (cookie ^ op.cookie) & op.cookie_mask == 0
                };
                self.rules.retain(|rule, (cookie, flags)| {
                    let is_gone = is_meant(rule, cookie);
                    if is_gone && *flags & SEND_FLOW_REMOVED != 0 {
                        removed.push((*cookie, *rule));
                    }
                    !is_gone
                });
            }
            _ => {}
        }
        self.from_switch
            .extend(removed.into_iter().map(|(cookie, rule)| FromSwitch::Removed { cookie, rule }));
    }

    fn answer(&self, asked: Asked) -> (u16, Vec<u8>) {
        const FLOW: u16 = 1;
        const AGGREGATE: u16 = 2;
        let entries = self
            .rules
            .iter()
            .map(|(rule, (cookie, flags))| entry(*cookie, *flags, &canonical(MATCHES[*rule])));
        match asked {
            Asked::RulesOf(zone) => {
                let count =
                    self.rules.values().filter(|(cookie, _)| ZoneId::owner_of(*cookie) == zone).count();
                let mut body = vec![0; 24];
                body[19] = u8::try_from(count).unwrap();
                (AGGREGATE, body)
            }
            _ => (FLOW, entries.collect::<Vec<_>>().concat()),
        }
    }

    /// The next message of the switch reaches the node.
    fn pull(&mut self) {
        match self.from_switch.pop_front() {
            None => {}
            Some(FromSwitch::Removed { cookie, rule }) => self.tell_removed(cookie, rule),
            Some(FromSwitch::Closed(zone)) => match self.random.chance(75) {
                true => self.to_switch.push_back(ToSwitch::Commit(zone)),
                false => {
                    self.staged.remove(&zone);
                    self.over(zone, true);
                }
            },
            Some(FromSwitch::Committed(zone, is_done)) => self.over(zone, !is_done),
            Some(FromSwitch::Answer(asked, multipart, body)) => {
                if matches!(asked, Asked::TableSizes | Asked::TableCounts) {
                    return self.kernel.on_no_answer(SWITCH, asked, Unanswered::Refused, self.now_ms);
                }
                self.answered += usize::from(!self.under_way.is_empty());
                let reply = StatsReply {
                    datapath: SWITCH,
                    ticket: asked.ticket(),
                    multipart,
                    more: false,
                    body: &body,
                };
                let mut bytes = Vec::new();
                assert!(event::write::stats_reply(&mut bytes, 9, &reply));
                assert!(self.kernel.on_own_answer(&bytes, self.now_ms));
            }
        }
    }

    fn tell_removed(&mut self, cookie: u64, rule: usize) {
        let matching = canonical(MATCHES[rule]);
        let removed = FlowRemoved {
            datapath: SWITCH,
            cookie,
            duration_s: 0,
            duration_ns: 0,
            packet_count: 0,
            byte_count: 0,
            priority: 7,
            idle_timeout_s: 0,
            hard_timeout_s: 0,
            reason: 0,
            table_id: 0,
            matching: &matching,
        };
        let mut bytes = Vec::new();
        assert!(event::write::flow_removed(&mut bytes, 5, &removed));
        self.kernel.on_event(&Frame::read(&bytes).unwrap(), self.now_ms, &mut Vec::new()).unwrap();
    }

    fn step(&mut self) {
        match self.random.below(100) {
            0..12 => self.send_alone(),
            12..24 => self.send_bundle(),
            24..58 => self.push_on(),
            58..92 => self.pull(),
            _ => self.now_ms += [1, 1_000, 3_000, 20_000][self.random.below(4) as usize],
        }
    }
}

#[test]
fn whenever_a_bundle_is_applied_it_replaces_no_rule_of_another_app_and_exceeds_no_quota() {
    let (mut committed, mut answered) = (0, 0);
    for seed in 0..1_500 {
        let mut world = World::new(seed);
        (0..400).for_each(|_| world.step());
        committed += world.committed;
        answered += world.answered;
    }
    assert!(committed > 10_000 && answered > 2_000, "{committed} rules, {answered} answers");
}

/// The kernel decides on each flow mod in a bundle as on the same flow mod alone, in any state.
#[test]
fn a_flow_mod_in_a_bundle_passes_only_if_it_passes_alone() {
    let (mut passed, mut refused, mut only_alone) = (0, 0, 0);
    for seed in 0..300 {
        let mut world = World::new(seed);
        for _ in 0..120 {
            world.step();
            let zone = [ONE, TWO, BOUNDED, MIGHTY][world.random.below(4) as usize];
            let op = Op::any(zone, &mut world.random);
            let (bytes, now_ms) = (op.frame(), world.now_ms);
            let frame = Frame::read(&bytes).unwrap();
            let (mut of_alone, mut of_bundle) = (Vec::new(), Vec::new());
            let mut copy = world.kernel.clone();
            let alone = format!("{:?}", copy.on_command(zone, &frame, now_ms, &mut of_alone));
            let mut copy = world.kernel.clone();
            match copy.on_bundled(zone, &frame, now_ms, &mut of_bundle) {
                Ok(command) => {
                    passed += 1;
                    assert_eq!(format!("{:?}", Decision::Send(command)), alone, "seed {seed}: {op:?}");
                }
                Err(Refusal::NotInBundle(_)) => {
                    only_alone += 1;
                    assert!(zone == MIGHTY && alone.starts_with("Send"), "seed {seed}: {op:?}");
                }
                Err(refusal) => {
                    refused += 1;
                    assert_eq!(format!("{:?}", Decision::Refuse(refusal)), alone, "seed {seed}: {op:?}");
                }
            }
            assert_eq!(of_bundle, of_alone, "seed {seed}: {op:?}");
        }
    }
    assert!(passed > 5_000 && refused > 5_000 && only_alone > 500, "{passed} {refused} {only_alone}");
}

/// Why a flow mod is refused in a bundle.
fn why(kernel: &mut Kernel, zone: ZoneId, flow_mod: FlowMod<'_>) -> String {
    let bytes = frame(flow_mod);
    kernel.begin_bundle(SWITCH);
    let decided = kernel.on_bundled(zone, &Frame::read(&bytes).unwrap(), 0, &mut Vec::new());
    let why = decided.map_or_else(|refusal| refusal.to_string(), |command| format!("{command:?}"));
    kernel.on_bundle_over(SWITCH, &mut Vec::new());
    why
}

#[test]
fn what_could_not_be_undone_is_refused_in_a_bundle_and_passes_alone() {
    let mut kernel = kernel();
    let rule = canonical("arp");
    let check = |kernel: &mut Kernel, zone, flow_mod: FlowMod<'_>, expected: &str| {
        let why = why(kernel, zone, flow_mod);
        assert!(why.contains(expected) && why.ends_with("send it alone"), "{why}");
        let bytes = frame(flow_mod);
        let alone = kernel.on_command(zone, &Frame::read(&bytes).unwrap(), 0, &mut Vec::new());
        assert!(matches!(alone, Decision::Send(_)), "{alone:?}");
    };
    check(&mut kernel, TWO, FlowMod { matching: &rule, ..FlowMod::ADD }, "priority 0");
    let buffered = FlowMod { priority: 7, buffer_id: Some(1), matching: &rule, ..FlowMod::ADD };
    check(&mut kernel, TWO, buffered, "buffered packet");
    let it = FlowMod { priority: 7, matching: &rule, ..FlowMod::ADD };
    let bytes = frame(it);
    assert!(matches!(
        kernel.on_command(ONE, &Frame::read(&bytes).unwrap(), 0, &mut Vec::new()),
        Decision::Send(_)
    ));
    kernel.on_sent();
    for command in [ADD, DELETE_STRICT] {
        check(&mut kernel, MIGHTY, FlowMod { command, ..it }, "another owner");
    }
}

#[test]
fn a_bundle_as_a_whole_needs_the_capability_and_the_switch() {
    let bundle = |datapath: DatapathId, count: usize| {
        let (mut bytes, mut body) = (vec![0; 24], Vec::new());
        let what = What::FlowMod(FlowMod { priority: 7, ..FlowMod::ADD });
        for _ in 0..count {
            let command = Command { datapath, ticket: 0, wants_receipt: false, what };
            assert!(command::write::command(&mut body, &command));
        }
        bytes.extend_from_slice(&body);
        assert!(command::write::finish_bundle(&mut bytes, 0, datapath, 5));
        bytes
    };
    let decide = |kernel: &mut Kernel, zone, bytes: &[u8]| match kernel.on_command(
        zone,
        &Frame::read(bytes).unwrap(),
        0,
        &mut Vec::new(),
    ) {
        Decision::Bundle { ticket: 5, wants_receipt: true, bundle } => bundle.flow_mods().count(),
        Decision::Refuse(_) => 0,
        other => panic!("{other:?}"),
    };
    let mut kernel = kernel();
    let poor = ZoneId(9);
    kernel.attach(poor, "poor", Grant::everywhere(&[Capability::PacketOut]), 0);
    assert_eq!(decide(&mut kernel, TWO, &bundle(SWITCH, BUNDLE_MAX)), BUNDLE_MAX);
    assert_eq!(decide(&mut kernel, poor, &bundle(SWITCH, 1)), 0);
    assert_eq!(decide(&mut kernel, TWO, &bundle(DatapathId(2), 1)), 0);
}

/// An earlier app in the operator's order adds a rule that a bundle's rule would shadow.
#[test]
fn evictions_at_a_switch_wait_until_a_bundle_is_over() {
    let mut kernel = kernel();
    kernel.on_overlap(OnOverlap::Refuse);
    let all = Grant::everywhere(&Capability::GRANT_ALL);
    kernel.attach(ONE, "early", all.clone().with_rank(0), 0);
    kernel.attach(TWO, "late", all.with_rank(1), 0);
    let (arp, wide) = (canonical("arp"), canonical("arp,arp_op=1"));
    let of_late = FlowMod { priority: 9, matching: &arp, ..FlowMod::ADD };
    let bytes = frame(of_late);
    kernel.begin_bundle(SWITCH);
    kernel.on_bundled(TWO, &Frame::read(&bytes).unwrap(), 0, &mut Vec::new()).unwrap();
    let bytes = frame(FlowMod { priority: 7, matching: &wide, ..FlowMod::ADD });
    let mut effects = Vec::new();
    // A rule waits for its eviction once, also if each of many flow mods evicts it.
    for _ in 0..100 {
        let decision = kernel.on_command(ONE, &Frame::read(&bytes).unwrap(), 0, &mut effects);
        assert!(matches!(decision, Decision::Send(_)), "{decision:?}");
        kernel.on_sent();
        assert!(kernel.take_evictions().is_empty(), "the bundle would add the rule again");
    }
    effects.clear();
    kernel.on_bundle_over(SWITCH, &mut effects);
    assert!(effects.contains(&Effect::Evict));
    assert_eq!(
        kernel.take_evictions().iter().map(|it| (it.owner, it.priority)).collect::<Vec<_>>(),
        [(TWO, 9)]
    );
}
