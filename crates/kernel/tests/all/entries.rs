//! The limits for an app's rules on a switch, and for the entries in a switch's tables.

use abi::command::{self, Command, FlowMod, GroupMod, What};
use abi::event::{self, FlowRemoved, OpenFlowVersion, StatsReply, SwitchUp};
use abi::{Frame, Outcome, Receipt, ZoneId};
use flow::{DatapathId, ErrorCode, Field, Match};
use kernel::budget::TableRoom;
use kernel::{Asked, Decision, Effect, Grant, Kernel, Quota, QuotaKind, Quotas, Unanswered};

const SWITCH: DatapathId = DatapathId(1);
const APP: ZoneId = ZoneId(1);
const NO_ERROR: ErrorCode = ErrorCode { kind: 0, code: 0 };

/// The refusal for an app with five rules.
const REACHED: &str = "quota rules_per_datapath: the hard limit 5 is reached; the operator raises it by rules_per_datapath of the app's rule.write";

struct Node {
    kernel: Kernel,
    effects: Vec<Effect>,
    now_ms: u64,
    last_rule: u32,
    last_ticket: u64,
}

impl Node {
    fn new(grant: Grant) -> Node {
        let mut node = Node {
            kernel: Kernel::new(7),
            effects: Vec::new(),
            now_ms: 0,
            last_rule: 1_000_000,
            last_ticket: 0,
        };
        node.kernel.attach(APP, "app", grant, 0);
        node.event(|out| {
            event::write::switch_up(
                out,
                1,
                &SwitchUp {
                    datapath: SWITCH,
                    n_buffers: 0,
                    n_tables: 2,
                    openflow: OpenFlowVersion::V1_3,
                    ports: &[],
                },
            )
        });
        node
    }

    fn with_budget(soft: u32, hard: u32) -> Node {
        let quotas = Quotas { rules_per_datapath: Some(Quota { soft, hard }), ..Quotas::default() };
        Node::new(Grant::everywhere(&kernel::Capability::GRANT_ALL).with_quotas(quotas))
    }

    fn event(&mut self, write: impl FnOnce(&mut Vec<u8>) -> bool) {
        let mut bytes = Vec::new();
        assert!(write(&mut bytes));
        self.kernel.on_event(&Frame::read(&bytes).unwrap(), self.now_ms, &mut self.effects).unwrap();
        // It has no rules from before.
        self.kernel.on_no_answer(SWITCH, kernel::Asked::Owners, kernel::Unanswered::Refused, 0);
    }

    fn add(&mut self, flow_mod: FlowMod<'_>) -> String {
        self.command(What::FlowMod(flow_mod))
    }

    fn command(&mut self, what: What<'_>) -> String {
        let mut bytes = Vec::new();
        command::write::command(
            &mut bytes,
            &Command { datapath: SWITCH, ticket: 7, wants_receipt: false, what },
        );
        let frame = Frame::read(&bytes).unwrap();
        match self.kernel.on_command(APP, &frame, self.now_ms, &mut self.effects) {
            Decision::Send(command) => {
                self.last_ticket = command.ticket;
                self.kernel.on_sent();
                "sent".to_owned()
            }
            Decision::Refuse(refusal) => refusal.to_string(),
            other => format!("{other:?}"),
        }
    }

    /// The switch has executed the last command.
    fn confirm(&mut self) {
        let (ticket, outcome) = (self.last_ticket, Outcome::Programmed);
        let receipt = Receipt { ticket, outcome, error: NO_ERROR, reason: "" };
        assert!(self.kernel.on_receipt(&receipt).is_some());
    }

    /// How many of this many adds pass, each with another rule.
    fn adds(&mut self, count: usize) -> usize {
        (0..count).filter(|_| self.add_new() == "sent").count()
    }

    fn add_new(&mut self) -> String {
        self.last_rule += 1;
        let matching = destination(self.last_rule);
        self.add(FlowMod { matching: &matching, ..FlowMod::ADD })
    }

    /// An add of this rule.
    fn add_rule(&mut self, number: u32) -> String {
        let matching = destination(number);
        self.add(FlowMod { matching: &matching, ..FlowMod::ADD })
    }

    /// The switch answers a question of the kernel.
    fn answer(&mut self, asked: Asked, multipart: u16, body: &[u8]) {
        let reply = StatsReply { datapath: SWITCH, ticket: asked.ticket(), multipart, more: false, body };
        let mut bytes = Vec::new();
        event::write::stats_reply(&mut bytes, 9, &reply);
        assert!(self.kernel.on_own_answer(&bytes, self.now_ms));
    }

    fn has_rules(&mut self, count: u8) {
        let mut body = [0; 24];
        body[19] = count;
        self.answer(Asked::RulesOf(APP), 2, &body);
    }

    fn questions(&mut self) -> Vec<Asked> {
        let asked = self.effects.drain(..).filter_map(|effect| match effect {
            Effect::Ask { asked, .. } => Some(asked),
            _ => None,
        });
        asked.collect()
    }
}

/// A match of all packets to this address.
fn destination(number: u32) -> Vec<u8> {
    let mut bytes = Vec::new();
    flow::canonical::write_match(&Match::any().with(Field::EthDst, u64::from(number)), &mut bytes);
    bytes
}

#[test]
fn what_is_beyond_the_budget_is_refused_by_name() {
    let mut node = Node::with_budget(3, 5);
    assert_eq!(node.adds(9), 5);
    assert_eq!(
        node.add(FlowMod::ADD),
        "quota rules_per_datapath: the hard limit 5 is reached; the operator raises it by rules_per_datapath of the app's rule.write"
    );
    assert_eq!(node.add(FlowMod { command: 1, ..FlowMod::ADD }), node.add(FlowMod::ADD));
    assert_eq!(node.add(FlowMod { command: 3, ..FlowMod::ADD }), "sent");
    let kind = QuotaKind::RulesPerDatapath;
    let told = Effect::SoftLimit { zone: APP, datapath: SWITCH, kind, used: 3, soft: 3, hard: 5 };
    assert_eq!(node.effects.iter().filter(|effect| **effect == told).count(), 1);
}

#[test]
fn an_add_in_the_place_of_ones_own_rule_is_no_new_rule() {
    let mut node = Node::with_budget(3, 5);
    assert_eq!(node.adds(4), 4);
    assert!((0..1_000).all(|_| node.add_rule(1_000_001) == "sent"));
    let matching = destination(1_000_002);
    let with = |command: u8| FlowMod { command, matching: &matching, ..FlowMod::ADD };
    assert!((0..1_000).all(|_| node.add(with(2)) == "sent"));
    assert_eq!(node.adds(9), 1);
    // A deleted rule is new when it is added again.
    assert_eq!((node.add(with(4)), node.add(with(0))), ("sent".to_owned(), REACHED.to_owned()));
}

#[test]
fn a_table_is_not_filled_by_adds_in_the_place_of_ones_own_rules() {
    let mut node = Node::new(Grant::everywhere(&kernel::Capability::GRANT_ALL));
    assert!((0..20_000).all(|number| node.add_rule(number % 256) == "sent"));
    assert_eq!(node.questions(), []);
}

#[test]
fn what_may_be_gone_counts_when_it_is_added_again() {
    let timed = |flags| FlowMod { idle_timeout_s: 5, flags, ..FlowMod::ADD };
    let check = |what: &str, lets_go: &dyn Fn(&mut Node), expected: &str| {
        let mut node = Node::with_budget(3, 5);
        assert_eq!(node.adds(5), 5);
        lets_go(&mut node);
        assert_eq!(node.add_rule(1_000_001), expected, "{what}");
    };
    check("nothing happened", &|_| {}, "sent");
    check(
        "a loose delete",
        &|node| assert_eq!(node.add(FlowMod { command: 3, ..FlowMod::ADD }), "sent"),
        REACHED,
    );
    check("the switch refused something", &|node| node.kernel.on_failed(SWITCH, APP), REACHED);
    check("it refused another app's", &|node| node.kernel.on_failed(SWITCH, ZoneId(2)), "sent");
    let group = |command| What::GroupMod(GroupMod { command, group_type: 0, group_id: 7, buckets: &[] });
    let makes_and_deletes = |node: &mut Node| {
        assert_eq!(node.command(group(0)), "sent");
        node.confirm();
        assert_eq!(node.command(group(2)), "sent");
    };
    check("a group is gone", &makes_and_deletes, REACHED);
    // A rule that can be removed without a report may be gone at any time.
    let mut node = Node::with_budget(3, 5);
    assert_eq!(["sent"; 5].map(|_| node.add(timed(0))), ["sent"; 5]);
    assert_eq!(node.add(timed(0)), REACHED);
    let mut node = Node::with_budget(3, 5);
    assert!((0..9).all(|_| node.add(timed(1)) == "sent"), "of its end the kernel hears");
}

#[test]
fn what_the_switch_says_is_believed() {
    let mut node = Node::with_budget(3, 5);
    node.adds(9);
    assert_eq!(node.questions(), [Asked::RulesOf(APP)]);
    // The first add asked the switch. It is unknown whether the answer contains the five.
    node.has_rules(0);
    assert_eq!(node.adds(9), 0);
    assert_eq!(node.questions(), [Asked::RulesOf(APP)]);
    // All but two replaced each other.
    node.has_rules(2);
    assert_eq!(node.adds(9), 3);
}

#[test]
fn a_rule_that_is_gone_makes_room_for_another() {
    let mut node = Node::with_budget(5, 5);
    node.adds(9);
    for owner in [APP, ZoneId(2)] {
        let removed = FlowRemoved {
            datapath: SWITCH,
            cookie: owner.stamp(0),
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
        node.event(|out| event::write::flow_removed(out, 3, &removed));
    }
    assert_eq!(node.adds(9), 1);
}

#[test]
fn a_1_0_switch_is_counted_by_its_flow_entries() {
    let mut node = Node::with_budget(1, 5);
    node.adds(1);
    let entry = |owner: ZoneId| {
        let mut bytes = vec![0; 56];
        bytes[1] = 56;
        bytes[24..32].copy_from_slice(&owner.stamp(1).to_be_bytes());
        bytes
    };
    let body = [entry(APP), entry(ZoneId(2)), entry(APP), entry(APP)].concat();
    node.answer(Asked::RulesOf(APP), 1, &body);
    assert_eq!(node.adds(9), 1, "three that it has, and one that was asked for since");
}

#[test]
fn a_table_is_filled_to_nine_tenths_and_the_operator_hears_of_it() {
    let mut node = Node::new(Grant::everywhere(&kernel::Capability::GRANT_ALL));
    assert_eq!(node.adds(256), 256);
    assert_eq!(node.questions(), []);
    node.adds(1);
    assert_eq!(node.questions(), [Asked::TableSizes]);
    let mut features = vec![0; 64];
    (features[1], features[2]) = (64, 0);
    features[60..64].copy_from_slice(&1_000u32.to_be_bytes());
    node.answer(Asked::TableSizes, 12, &features);
    node.adds(256);
    assert_eq!(node.questions(), [Asked::TableCounts]);
    let mut counts = [0; 24];
    counts[4..8].copy_from_slice(&513u32.to_be_bytes());
    node.answer(Asked::TableCounts, 3, &counts);
    let passed = node.adds(1_000);
    assert!((130..=387).contains(&passed), "{passed} and 513 are not beyond 900, nor far below it");
    assert_eq!(
        node.add(FlowMod::ADD),
        "quota table entries: the hard limit 900 is reached; the operator raises it by table_fill_percent in [limits]"
    );
    let scarce = |effect: &Effect| matches!(effect, Effect::SoftLimit { kind: QuotaKind::TableEntries, .. });
    assert!(node.effects.iter().any(scarce));
    assert_eq!(node.add(FlowMod { table_id: 1, ..FlowMod::ADD }), "sent");
}

#[test]
fn a_flood_waits_for_the_switch_to_say_how_large_its_tables_are() {
    let mut node = Node::new(Grant::everywhere(&kernel::Capability::GRANT_ALL));
    assert_eq!(node.adds(100_000), 1 << 16);
    assert_eq!(
        node.add(FlowMod::ADD),
        "quota table entries: of:0000000000000001 has not reported its table sizes yet; try again in a moment"
    );
    assert_eq!(node.add(FlowMod { command: 3, ..FlowMod::ADD }), "sent", "a delete adds nothing");
    for why in [Unanswered::NotSent, Unanswered::Silence] {
        node.kernel.on_no_answer(SWITCH, Asked::TableSizes, why, 0);
        assert_eq!(node.adds(100_000), 0, "{why:?}");
    }
    // A switch that cannot report its table sizes is not limited.
    node.kernel.on_no_answer(SWITCH, Asked::TableSizes, Unanswered::Refused, 0);
    assert_eq!(node.adds(100_000), 100_000);
}

#[test]
fn what_a_trusted_app_commands_in_one_call_before_sizes_are_known_is_not_refused() {
    let mut node = Node::new(Grant::everywhere(&kernel::Capability::GRANT_ALL));
    assert_eq!(node.adds(50_000), 50_000);
    // A late answer includes the earlier adds.
    let mut features = vec![0; 64];
    (features[1], features[2]) = (64, 0);
    features[60..64].copy_from_slice(&60_000u32.to_be_bytes());
    node.answer(Asked::TableSizes, 12, &features);
    let passed = node.adds(20_000);
    assert!((3_000..=4_000).contains(&passed), "{passed} and 50000 are not beyond 54000");
}

/// The switch answers the barrier behind a question.
fn answer_barrier(node: &mut Node, asked: Asked) {
    let receipt =
        Receipt { ticket: asked.ticket(), outcome: Outcome::Programmed, error: NO_ERROR, reason: "" };
    let mut bytes = Vec::new();
    event::write::receipt(&mut bytes, 9, SWITCH, &receipt);
    assert!(node.kernel.on_own_answer(&bytes, node.now_ms));
}

#[test]
fn a_switch_that_passes_the_question_over_has_as_many_entries_as_the_operator_says_and_that_is_told_once() {
    for (entries_if_unknown, passes) in [(None, 200_000), (Some(1_000), 900 - 257)] {
        let mut node = Node::new(Grant::everywhere(&kernel::Capability::GRANT_ALL));
        node.kernel.fill_tables_to(TableRoom { entries_if_unknown, ..TableRoom::default() });
        assert_eq!(node.adds(257), 257);
        assert_eq!(node.questions(), [Asked::TableSizes]);
        answer_barrier(&mut node, Asked::TableSizes);
        assert_eq!(node.adds(200_000), passes);
        let told = Effect::SizesUnknown { datapath: SWITCH, entries_if_unknown };
        assert_eq!(node.effects.iter().filter(|effect| **effect == told).count(), 1);
    }
}

#[test]
fn answers_to_others_questions_are_not_the_kernels() {
    let mut node = Node::with_budget(1, 5);
    let mut bytes = Vec::new();
    let reply = StatsReply { datapath: SWITCH, ticket: 5, multipart: 2, more: false, body: &[] };
    event::write::stats_reply(&mut bytes, 9, &reply);
    assert!(!node.kernel.on_own_answer(&bytes, 0));
    assert!(!node.kernel.on_own_answer(&[1, 2, 3], 0));
}
