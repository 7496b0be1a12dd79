//! The kernel refuses an add that would replace another app's rule, as long as the switch has that rule.

use abi::command::{self, Command, FlowMod, What};
use abi::event::{self, FlowRemoved, OpenFlowVersion, StatsReply, SwitchUp};
use abi::{Frame, ZoneId};
use flow::DatapathId;
use flow::canonical::write_match;
use flow::text::parse_match;
use kernel::{Asked, Decision, Effect, Grant, Kernel, Refusal, Unanswered};

const SWITCH: DatapathId = DatapathId(1);
const ONE: ZoneId = ZoneId(1);
const OTHER: ZoneId = ZoneId(2);
const RULE: &str = "ip,nw_src=10.0.0.1";

/// A switch of another worker.
const ELSEWHERE: DatapathId = DatapathId(9);
const TICKET: u64 = 7;

const ADD: u8 = 0;
const MODIFY_STRICT: u8 = 2;
const DELETE: u8 = 3;
const DELETE_STRICT: u8 = 4;

struct Node {
    kernel: Kernel,
    effects: Vec<Effect>,
    now_ms: u64,
    /// Whether accepted commands are sent.
    takes: bool,
}

fn canonical(matching: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    write_match(&parse_match(matching).unwrap(), &mut bytes);
    bytes
}

impl Node {
    fn new() -> Node {
        let mut node = Node { kernel: Kernel::new(7), effects: Vec::new(), now_ms: 0, takes: true };
        for zone in [ONE, OTHER] {
            node.kernel.attach(zone, "app", Grant::everywhere(&kernel::Capability::GRANT_ALL), 0);
        }
        node.come_up(SWITCH);
        node
    }

    fn come_up(&mut self, datapath: DatapathId) {
        let up =
            SwitchUp { datapath, n_buffers: 0, n_tables: 2, openflow: OpenFlowVersion::V1_3, ports: &[] };
        self.event(|out| event::write::switch_up(out, 1, &up));
        self.kernel.on_no_answer(datapath, Asked::Owners, Unanswered::Refused, 0);
    }

    fn event(&mut self, write: impl FnOnce(&mut Vec<u8>) -> bool) {
        let mut bytes = Vec::new();
        assert!(write(&mut bytes));
        self.kernel.on_event(&Frame::read(&bytes).unwrap(), self.now_ms, &mut self.effects).unwrap();
    }

    /// Whether the kernel accepts the command.
    fn passes(&mut self, zone: ZoneId, command: u8, matching: &str) -> bool {
        self.passes_to(SWITCH, zone, command, matching)
    }

    fn passes_to(&mut self, datapath: DatapathId, zone: ZoneId, command: u8, matching: &str) -> bool {
        let matching = canonical(matching);
        self.sends(datapath, zone, FlowMod { command, priority: 7, matching: &matching, ..FlowMod::ADD })
    }

    /// Why the kernel refuses the command.
    fn refusal(&mut self, zone: ZoneId, command: u8, matching: &str) -> Option<String> {
        let matching = canonical(matching);
        let what = What::FlowMod(FlowMod { command, priority: 7, matching: &matching, ..FlowMod::ADD });
        let mut bytes = Vec::new();
        let command = Command { datapath: SWITCH, ticket: TICKET, wants_receipt: false, what };
        assert!(command::write::command(&mut bytes, &command));
        match self.kernel.on_command(zone, &Frame::read(&bytes).unwrap(), self.now_ms, &mut self.effects) {
            Decision::Refuse(refusal) => Some(refusal.to_string()),
            _ => None,
        }
    }

    fn sends(&mut self, datapath: DatapathId, zone: ZoneId, flow_mod: FlowMod<'_>) -> bool {
        let what = What::FlowMod(flow_mod);
        let mut bytes = Vec::new();
        let command = Command { datapath, ticket: TICKET, wants_receipt: false, what };
        assert!(command::write::command(&mut bytes, &command));
        match self.kernel.on_command(zone, &Frame::read(&bytes).unwrap(), self.now_ms, &mut self.effects) {
            Decision::Send(_) => {
                if self.takes {
                    self.kernel.on_sent();
                }
                true
            }
            Decision::Refuse(Refusal::NoSuchSwitch(_)) => false,
            Decision::Refuse(refusal) => {
                let why = refusal.to_string();
                let is_known = ["belongs to app number", "has not reported its table sizes"];
                assert!(is_known.iter().any(|known| why.contains(known)), "{why}");
                false
            }
            other => panic!("{other:?}"),
        }
    }

    fn is_asked(&mut self) -> bool {
        let asks = |effect: Effect| matches!(effect, Effect::Ask { asked: Asked::Rule, .. });
        self.effects.drain(..).any(asks)
    }

    /// The questions to the switch about its rules.
    fn questions(&mut self) -> Vec<Asked> {
        let asked = self.effects.drain(..).filter_map(|effect| match effect {
            Effect::Ask { asked: asked @ (Asked::Rule | Asked::Record), .. } => Some(asked),
            _ => None,
        });
        asked.collect()
    }

    /// The switch reports that this zone's rule was removed.
    fn removed(&mut self, owner: ZoneId, matching: &str) {
        let matching = canonical(matching);
        let removed = FlowRemoved {
            datapath: SWITCH,
            cookie: owner.stamp(0),
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
        self.event(|out| event::write::flow_removed(out, 2, &removed));
    }

    /// The switch does not report its table sizes.
    fn answers_sizes(&mut self) {
        for _ in 0..2_000 {
            self.passes(ONE, ADD, RULE);
        }
        self.kernel.on_no_answer(SWITCH, Asked::TableSizes, Unanswered::Refused, self.now_ms);
    }

    /// The switch answers, with entries of these matches.
    fn answer(&mut self, entries: &[&str], more: bool) {
        self.answer_to(Asked::Rule, entries, more);
    }

    fn answer_to(&mut self, asked: Asked, entries: &[&str], more: bool) {
        let body: Vec<u8> = entries.iter().flat_map(|matching| entry(matching)).collect();
        let ticket = asked.ticket();
        let reply = StatsReply { datapath: SWITCH, ticket, multipart: 1, more, body: &body };
        let mut bytes = Vec::new();
        event::write::stats_reply(&mut bytes, 9, &reply);
        assert!(self.kernel.on_own_answer(&bytes, self.now_ms));
    }
}

/// `ofp_flow_stats` (1.3.5, 7.3.5.2) of table 0 and priority 7, of the first app's.
fn entry(matching: &str) -> Vec<u8> {
    let matching = canonical(matching);
    let mut bytes = vec![0; 48];
    bytes[13] = 7;
    bytes[24..32].copy_from_slice(&ONE.stamp(0).to_be_bytes());
    bytes.extend([0, 1, 0, u8::try_from(4 + matching.len()).unwrap()]);
    bytes.extend(matching);
    bytes.resize(bytes.len().next_multiple_of(8).max(56), 0);
    bytes[1] = u8::try_from(bytes.len()).unwrap();
    bytes
}

#[test]
fn nobody_replaces_changes_or_deletes_the_rule_of_another() {
    let mut node = Node::new();
    assert!(node.passes(ONE, ADD, RULE) && node.passes(ONE, ADD, RULE));
    for command in [ADD, MODIFY_STRICT, DELETE_STRICT] {
        assert!(!node.passes(OTHER, command, RULE), "{command}");
    }
    assert!(node.passes(OTHER, DELETE, RULE), "a loose one reaches its own only");
    assert!(node.passes(OTHER, ADD, "ip,nw_src=10.0.0.2"));
    assert!(node.passes(ONE, DELETE_STRICT, RULE));
    assert!(node.passes(OTHER, ADD, RULE) && !node.passes(ONE, ADD, RULE));
}

#[test]
fn who_may_write_the_rules_of_others_may() {
    let mut node = Node::new();
    let grant = Grant::everywhere(&kernel::Capability::GRANT_ALL).with(kernel::Capability::RuleWriteOthers);
    node.kernel.attach(OTHER, "other", grant, 0);
    assert!(node.passes(ONE, ADD, RULE) && node.passes(OTHER, ADD, RULE));
    assert!(!node.passes(ONE, ADD, RULE), "it is the other's now");
}

#[test]
fn a_rule_that_was_removed_is_nobodys() {
    let mut node = Node::new();
    node.passes(ONE, ADD, RULE);
    node.now_ms = 20_000;
    node.removed(OTHER, RULE);
    assert!(!node.passes(OTHER, ADD, RULE), "what was removed was another rule");
    node.removed(ONE, RULE);
    assert!(node.passes(OTHER, ADD, RULE));
}

#[test]
fn a_rule_that_is_added_again_outlives_the_word_that_the_old_one_is_gone() {
    let mut node = Node::new();
    assert!(node.passes(ONE, ADD, RULE) && node.passes(ONE, DELETE_STRICT, RULE));
    assert!(node.passes(ONE, ADD, RULE));
    // The switch reports the end of the first rule, and has received the second meanwhile.
    node.removed(ONE, RULE);
    assert!(!node.passes(OTHER, ADD, RULE));
}

#[test]
fn a_delete_that_may_have_left_the_rule_where_it_is_does_not_give_it_away() {
    let mut node = Node::new();
    let matching = canonical(RULE);
    let delete = FlowMod { command: DELETE_STRICT, priority: 7, matching: &matching, ..FlowMod::ADD };
    for with_filter in [
        FlowMod { cookie_mask: 1, ..delete },
        FlowMod { out_port: flow::PortNo(3), ..delete },
        FlowMod { out_group: 3, ..delete },
    ] {
        assert!(node.passes(ONE, ADD, RULE) && node.sends(SWITCH, ONE, with_filter));
        assert!(!node.passes(OTHER, ADD, RULE), "{with_filter:?}");
    }
    assert!(node.sends(SWITCH, ONE, delete) && node.passes(OTHER, ADD, RULE));
}

#[test]
fn an_app_with_many_rules_does_not_get_at_those_of_another() {
    let mut node = Node::new();
    let theirs = |number: u32| format!("ip,nw_src=10.1.{}.{}", number >> 8, number & 0xff);
    let own = |number: u32| format!("ip,nw_src=10.2.{}.{}", number >> 8, number & 0xff);
    node.answers_sizes();
    assert!((0..20_000).all(|number| node.passes(OTHER, ADD, &theirs(number))));
    assert!((0..40_000).all(|number| node.passes(ONE, ADD, &own(number))));
    for number in 0..20_000 {
        for command in [ADD, MODIFY_STRICT, DELETE_STRICT] {
            assert!(!node.passes(ONE, command, &theirs(number)), "{number} {command}");
        }
    }
}

#[test]
fn what_is_known_of_a_switch_is_bounded_and_what_it_does_not_have_is_forgotten() {
    let mut node = Node::new();
    node.kernel.know_rules_up_to(1_000);
    node.come_up(SWITCH);
    let rule = |number: u32| format!("ip,nw_src=10.1.{}.{}", number >> 8, number & 0xff);
    assert!((0..1_000).all(|number| node.passes(ONE, ADD, &rule(number))));
    assert_eq!(node.questions(), [Asked::Record], "half-way, so that it is seldom full");
    let refused = node.refusal(OTHER, ADD, &rule(1_000)).unwrap();
    assert!(
        refused.contains("limits.rules_per_switch") && refused.contains("try again in a moment"),
        "{refused}"
    );
    assert!(node.passes(ONE, ADD, &rule(3)), "what is known takes no room");
    assert!(!node.passes(OTHER, ADD, &rule(4)), "and is protected as ever");
    // The switch has the last of the rules that were added before the question.
    node.answer_to(Asked::Record, &[&rule(498), "ip,nw_src=10.9.0.1"], true);
    node.answer_to(Asked::Record, &[&rule(499)], false);
    assert!(node.passes(OTHER, ADD, &rule(1_000)) && node.passes(OTHER, ADD, &rule(0)));
    assert!(!node.passes(OTHER, ADD, &rule(499)) && !node.passes(OTHER, ADD, &rule(999)));
}

#[test]
fn a_switch_that_does_not_say_which_rules_it_has_is_asked_again() {
    let mut node = Node::new();
    node.kernel.know_rules_up_to(10);
    node.come_up(SWITCH);
    let rule = |number: u32| format!("ip,nw_src=10.1.0.{number}");
    assert!((0..10).all(|number| node.passes(ONE, ADD, &rule(number))));
    assert_eq!(node.questions(), [Asked::Record]);
    for why in [Unanswered::NotSent, Unanswered::Silence, Unanswered::Refused] {
        node.kernel.on_no_answer(SWITCH, Asked::Record, why, node.now_ms);
        assert!(node.refusal(ONE, ADD, &rule(10)).is_some() && node.questions().is_empty(), "{why:?}");
        node.now_ms += 1_000;
        assert!(node.refusal(ONE, ADD, &rule(10)).is_some(), "{why:?}");
        assert_eq!(node.questions(), [Asked::Record], "{why:?}");
    }
}

#[test]
fn a_rule_that_timed_out_without_a_word_is_found_out() {
    let mut node = Node::new();
    node.passes(ONE, ADD, RULE);
    assert!(!node.passes(OTHER, ADD, RULE) && node.is_asked());
    assert!(!node.passes(OTHER, ADD, RULE) && !node.is_asked(), "it is asked already");
    node.answer(&["ip,nw_src=10.0.0.0/31", RULE], true);
    node.answer(&[], false);
    assert!(!node.passes(OTHER, ADD, RULE) && !node.is_asked(), "it is there");
    node.now_ms = 1_000;
    assert!(!node.passes(OTHER, ADD, RULE) && node.is_asked());
    node.answer(&["ip,nw_src=10.0.0.0/31"], false);
    assert!(node.passes(OTHER, ADD, RULE));
}

#[test]
fn a_rule_that_comes_while_the_switch_is_asked_stays() {
    let mut node = Node::new();
    node.passes(ONE, ADD, RULE);
    assert!(!node.passes(OTHER, ADD, RULE) && node.is_asked());
    assert!(node.passes(ONE, ADD, RULE));
    node.answer(&[], false);
    assert!(!node.passes(OTHER, ADD, RULE));
}

#[test]
fn an_answer_that_does_not_come_is_asked_for_again() {
    let mut node = Node::new();
    node.passes(ONE, ADD, RULE);
    assert!(!node.passes(OTHER, ADD, RULE) && node.is_asked());
    node.now_ms = 600_000;
    assert!(!node.passes(OTHER, ADD, RULE) && !node.is_asked(), "it may still come");
    node.kernel.on_no_answer(SWITCH, Asked::Rule, Unanswered::Silence, node.now_ms);
    assert!(!node.passes(OTHER, ADD, RULE) && node.is_asked());
}

#[test]
fn what_does_not_go_out_makes_no_rule_anybodys_and_takes_none_away() {
    let mut node = Node::new();
    node.takes = false;
    assert!(node.passes(ONE, ADD, RULE) && node.passes(OTHER, ADD, RULE));
    node.takes = true;
    assert!(node.passes(ONE, ADD, RULE));
    node.takes = false;
    for command in [ADD, MODIFY_STRICT, DELETE_STRICT] {
        assert!(node.passes(ONE, command, RULE), "{command}");
        assert!(!node.passes(OTHER, ADD, RULE), "{command}");
    }
    // A refused command leaves nothing to record.
    node.kernel.on_sent();
    assert!(!node.passes(OTHER, ADD, RULE));
}

#[test]
fn of_a_switch_that_is_not_here_nobody_has_rules() {
    let mut node = Node::new();
    assert!(!node.passes_to(ELSEWHERE, OTHER, ADD, RULE));
    node.come_up(ELSEWHERE);
    assert!(node.passes_to(ELSEWHERE, ONE, ADD, RULE));
}
