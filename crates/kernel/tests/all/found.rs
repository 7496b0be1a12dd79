//! The kernel asks a connecting switch once for its rules, and apps receive the switch when the owners are known.

use abi::command::{self, Command, FlowMod, What};
use abi::event::{self, OpenFlowVersion, StatsReply, SwitchUp};
use abi::{Frame, Outcome, Receipt, ZoneId};
use flow::canonical::write_match;
use flow::text::parse_match;
use flow::{DatapathId, ErrorCode};
use kernel::{
    Asked, Claims, Decision, Effect, Grant, GroupOrMeter, Kernel, OnOverlap, Refusal, RuleReport, Unanswered,
    ZoneSet,
};
use proptest::prelude::*;
use std::sync::Arc;

pub(super) const SWITCH: DatapathId = DatapathId(1);
pub(super) const ONE: ZoneId = ZoneId(1);
pub(super) const OTHER: ZoneId = ZoneId(2);
/// An app of the node that does not run.
pub(super) const AWAY: ZoneId = ZoneId(9);
const RULE: &str = "ip,nw_src=10.0.0.1";

/// The time when the kernel asks switches that connected at the beginning.
const ASKED_MS: u64 = 0;

/// The time that a switch has after it ignored the question.
const PASSED_OVER_MS: u64 = 250;

pub(super) struct Node {
    pub(super) kernel: Kernel,
    pub(super) effects: Vec<Effect>,
}

pub(super) fn canonical(matching: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    write_match(&parse_match(matching).unwrap(), &mut bytes);
    bytes
}

/// `ofp_flow_stats` (1.3.5, 7.3.5.2) of table 0 and priority 7.
fn entry(owner: ZoneId, matching: &str) -> Vec<u8> {
    entry_with(owner.stamp(5), matching)
}

pub(super) fn entry_with(cookie: u64, matching: &str) -> Vec<u8> {
    let matching = canonical(matching);
    let mut bytes = vec![0; 48];
    bytes[13] = 7;
    bytes[24..32].copy_from_slice(&cookie.to_be_bytes());
    bytes.extend([0, 1, 0, u8::try_from(4 + matching.len()).unwrap()]);
    bytes.extend(matching);
    bytes.resize(bytes.len().next_multiple_of(8).max(56), 0);
    bytes[1] = u8::try_from(bytes.len()).unwrap();
    bytes
}

impl Node {
    pub(super) fn new() -> Node {
        let mut node = Node { kernel: Kernel::new(7), effects: Vec::new() };
        for zone in [ONE, OTHER] {
            node.kernel.attach(zone, "app", Grant::everywhere(&kernel::Capability::GRANT_ALL), 0);
        }
        // These tests are about owners, not about precedence.
        node.kernel.on_overlap(OnOverlap::Report);
        node
    }

    /// A node with a switch that the kernel has asked.
    pub(super) fn asked() -> Node {
        let mut node = Node::new();
        node.come_up(SWITCH, 0);
        assert_eq!(node.questions(ASKED_MS), [SWITCH]);
        node
    }

    pub(super) fn come_up(&mut self, datapath: DatapathId, now_ms: u64) {
        let up =
            SwitchUp { datapath, n_buffers: 0, n_tables: 2, openflow: OpenFlowVersion::V1_3, ports: &[] };
        let receivers = self.event(now_ms, |out| event::write::switch_up(out, 1, &up));
        assert!(receivers.is_empty(), "it has not said yet which rules it has");
    }

    pub(super) fn go_down(&mut self, datapath: DatapathId) -> ZoneSet {
        self.event(0, |out| event::write::switch_down(out, 1, datapath))
    }

    fn event(&mut self, now_ms: u64, write: impl FnOnce(&mut Vec<u8>) -> bool) -> ZoneSet {
        let mut bytes = Vec::new();
        assert!(write(&mut bytes));
        self.kernel.on_event(&Frame::read(&bytes).unwrap(), now_ms, &mut self.effects).unwrap().clone()
    }

    /// The switches that the kernel asks in one turn.
    pub(super) fn questions(&mut self, now_ms: u64) -> Vec<DatapathId> {
        self.kernel.ask_for_owners(now_ms, &mut self.effects);
        let asked = self.effects.drain(..).filter_map(|effect| match effect {
            Effect::Ask { datapath, asked: Asked::Owners } => Some(datapath),
            _ => None,
        });
        asked.collect()
    }

    /// The switch answers with these bytes.
    pub(super) fn say(&mut self, body: &[u8], more: bool) {
        self.say_of(Asked::Owners, body, more);
    }

    /// The switch answers another question with these bytes.
    fn say_of(&mut self, asked: Asked, body: &[u8], more: bool) {
        let ticket = asked.ticket();
        let reply = StatsReply { datapath: SWITCH, ticket, multipart: 1, more, body };
        let mut bytes = Vec::new();
        event::write::stats_reply(&mut bytes, 9, &reply);
        assert!(self.kernel.on_own_answer(&bytes, ASKED_MS));
    }

    pub(super) fn does_not_answer(&mut self, outcome: Outcome) {
        let error = ErrorCode { kind: 0, code: 0 };
        let receipt = Receipt { ticket: Asked::Owners.ticket(), outcome, error, reason: "" };
        let mut bytes = Vec::new();
        assert!(event::write::receipt(&mut bytes, 9, SWITCH, &receipt));
        assert!(self.kernel.on_own_answer(&bytes, ASKED_MS));
    }

    /// Why an add is refused.
    fn refusal(&mut self, zone: ZoneId, matching: &str) -> String {
        let matching = canonical(matching);
        let what = What::FlowMod(FlowMod { priority: 7, matching: &matching, ..FlowMod::ADD });
        let mut bytes = Vec::new();
        let command = Command { datapath: SWITCH, ticket: 7, wants_receipt: false, what };
        assert!(command::write::command(&mut bytes, &command));
        match self.kernel.on_command(zone, &Frame::read(&bytes).unwrap(), ASKED_MS, &mut self.effects) {
            Decision::Refuse(refusal) => refusal.to_string(),
            other => format!("{other:?}"),
        }
    }

    /// The owner of the rule, if the kernel refuses this zone's add of it; `None`: no owner.
    pub(super) fn add(&mut self, zone: ZoneId, matching: &str) -> Result<(), Option<ZoneId>> {
        let matching = canonical(matching);
        let what = What::FlowMod(FlowMod { priority: 7, matching: &matching, ..FlowMod::ADD });
        let mut bytes = Vec::new();
        let command = Command { datapath: SWITCH, ticket: 7, wants_receipt: false, what };
        assert!(command::write::command(&mut bytes, &command));
        match self.kernel.on_command(zone, &Frame::read(&bytes).unwrap(), ASKED_MS, &mut self.effects) {
            Decision::Send(_) => {
                self.kernel.on_sent();
                Ok(())
            }
            Decision::Refuse(Refusal::OthersRule(owner)) => Err(Some(owner)),
            Decision::Refuse(Refusal::ForeignRule) => Err(None),
            other => panic!("{other:?}"),
        }
    }

    /// A strict delete with this cookie and mask: as it is sent, or why it is refused.
    fn delete(&mut self, zone: ZoneId, matching: &str, cookie: u64, cookie_mask: u64) -> String {
        let matching = canonical(matching);
        let (priority, command) = (7, 4);
        let it = FlowMod { priority, command, cookie, cookie_mask, matching: &matching, ..FlowMod::ADD };
        let mut bytes = Vec::new();
        let command = Command { datapath: SWITCH, ticket: 7, wants_receipt: false, what: What::FlowMod(it) };
        assert!(command::write::command(&mut bytes, &command));
        match self.kernel.on_command(zone, &Frame::read(&bytes).unwrap(), ASKED_MS, &mut self.effects) {
            Decision::Send(Command { what: What::FlowMod(sent), .. }) => {
                format!("{:016x}/{:016x}", sent.cookie, sent.cookie_mask)
            }
            Decision::Refuse(refusal) => refusal.to_string(),
            other => panic!("{other:?}"),
        }
    }

    fn found(&self) -> Option<RuleReport> {
        self.kernel.of_switches().find(|it| it.datapath == SWITCH).map(|it| it.rule_report)
    }
}

/// Which switches apps may receive now.
fn ready(node: &mut Node) -> Vec<DatapathId> {
    std::iter::from_fn(|| node.kernel.next_ready()).collect()
}

#[test]
fn whose_a_rule_was_before_this_kernel_is_known_once_the_switch_has_said_so() {
    let mut node = Node::asked();
    assert_eq!(node.found(), Some(RuleReport::Waiting));
    let own = entry_with(kernel::OWN_COOKIE, "udp");
    let entries = [entry(ONE, RULE), entry(AWAY, "arp"), entry(ZoneId::KERNEL, "tcp"), own].concat();
    node.say(&entries, false);
    assert_eq!((node.found(), ready(&mut node)), (Some(RuleReport::Answered(2)), vec![SWITCH]));
    assert_eq!(node.add(OTHER, RULE), Err(Some(ONE)));
    assert_eq!((node.add(ONE, "arp"), node.add(OTHER, "arp")), (Err(Some(AWAY)), Err(Some(AWAY))));
    assert_eq!(node.add(ONE, "tcp"), Err(None), "another controller's");
    assert_eq!(
        (node.add(ONE, RULE), node.add(ONE, "udp"), node.add(OTHER, "sctp")),
        (Ok(()), Ok(()), Ok(()))
    );
}

#[test]
fn rules_that_no_app_of_this_node_made_are_nobodys_to_replace() {
    let mut node = Node::asked();
    node.say(&[1024, 0x0a00, u16::MAX].map(|number| entry(ZoneId(number), RULE)).concat(), false);
    assert_eq!((node.found(), node.add(ONE, RULE)), (Some(RuleReport::Answered(0)), Err(None)));
    let grant = Grant::everywhere(&kernel::Capability::GRANT_ALL).with(kernel::Capability::RuleWriteOthers);
    node.kernel.attach(ONE, "app", grant, 0);
    assert_eq!(node.add(ONE, RULE), Ok(()));
}

#[test]
fn a_foreign_rule_is_deleted_by_its_whole_cookie_and_no_other_rule_is() {
    let mut node = Node::asked();
    let foreign = 0xffff_0000_0000_f00d;
    let of_app = OTHER.stamp(5);
    node.say(&[entry_with(foreign, RULE), entry_with(of_app, "arp")].concat(), false);
    let delete = |node: &mut Node, matching, cookie, mask| node.delete(ONE, matching, cookie, mask);
    let refused = "rule.write.others: a rule with this table, priority and match ";
    assert!(delete(&mut node, RULE, foreign, u64::MAX).starts_with(refused), "without the capability");
    let grant = Grant::everywhere(&kernel::Capability::GRANT_ALL).with(kernel::Capability::RuleDeleteForeign);
    node.kernel.attach(ONE, "app", grant, 0);
    assert_eq!(delete(&mut node, RULE, foreign, u64::MAX), "ffff00000000f00d/ffffffffffffffff");
    // Also one that the kernel has not heard of: the switch compares the cookie.
    assert_eq!(delete(&mut node, "udp", foreign, u64::MAX), "ffff00000000f00d/ffffffffffffffff");
    assert!(delete(&mut node, RULE, foreign, 0).starts_with(refused), "a part of the cookie is not enough");
    for cookie in [of_app, kernel::OWN_COOKIE, foreign] {
        assert!(delete(&mut node, "arp", cookie, u64::MAX).starts_with(refused), "it is an app's");
    }
    // The cookie of an app or of the kernel reaches only the sender's own rules.
    let own = format!("{:016x}/ffffffffffffffff", ONE.stamp(of_app));
    assert_eq!(delete(&mut node, "udp", of_app, u64::MAX), own);
    assert_eq!(node.add(ONE, RULE), Err(None), "the capability replaces nothing");
}

#[test]
fn a_switch_is_asked_once_when_it_comes_up() {
    let mut node = Node::new();
    node.come_up(SWITCH, 0);
    assert_eq!((node.questions(0), node.questions(600_000)), (vec![SWITCH], vec![]));
    node.come_up(SWITCH, 600_000);
    assert_eq!(node.found(), Some(RuleReport::Waiting));
    node.go_down(SWITCH);
    assert_eq!(node.questions(1_000_000), [], "it went before it could be asked");
    node.come_up(SWITCH, 1_000_000);
    assert_eq!(node.questions(2_000_000), [SWITCH], "another session may have had another worker between");
}

#[test]
fn nobody_hears_of_a_switch_or_commands_it_before_it_has_said_which_rules_it_has() {
    let mut node = Node::asked();
    let hears = kernel_subscription(&mut node, ONE);
    assert!(hears);
    assert!(node.kernel.is_held(SWITCH) && !node.kernel.is_held(DatapathId(2)));
    assert_eq!((node.kernel.switches().count(), ready(&mut node)), (0, vec![]));
    for matching in [RULE, "arp"] {
        let why = node.refusal(ONE, matching);
        assert!(why.contains("has not reported its rules yet") && why.contains("try again"), "{why}");
    }
    node.say(&entry(ONE, RULE), true);
    assert!(node.kernel.is_held(SWITCH), "that is not all");
    node.say(&[], false);
    assert!(!node.kernel.is_held(SWITCH));
    assert_eq!((ready(&mut node), ready(&mut node)), (vec![SWITCH], vec![]));
    assert_eq!((node.kernel.switches().count(), node.add(OTHER, "arp")), (1, Ok(())));
}

#[test]
fn a_switch_that_is_asked_once_more_stays_up() {
    let order = |node: &mut Node, zone: u16| {
        let grant = Grant::everywhere(&kernel::Capability::GRANT_ALL);
        node.kernel.attach(ZoneId(zone), "later", grant, 0)
    };
    let mut node = Node::asked();
    node.say(&entry(ONE, RULE), true);
    // A zone that is attached while an answer arrives is known when the answer is complete.
    assert!(order(&mut node, 5) && node.kernel.is_held(SWITCH));
    node.say(&[], false);
    assert_eq!((node.kernel.is_held(SWITCH), ready(&mut node)), (false, vec![SWITCH]));
    for zone in 6..9 {
        assert!(order(&mut node, zone));
        let asked = node.questions(0);
        assert!(!node.kernel.is_held(SWITCH) && asked.len() <= 1);
        assert_eq!((node.add(OTHER, RULE), node.kernel.switches().count()), (Err(Some(ONE)), 1));
        if !asked.is_empty() {
            node.say(&entry(ONE, RULE), false);
        }
        assert_eq!((ready(&mut node), node.kernel.is_held(SWITCH)), (vec![], false));
    }
}

#[test]
fn of_a_switch_that_went_before_it_said_anything_nobody_hears() {
    let mut node = Node::asked();
    kernel_subscription(&mut node, ONE);
    assert!(node.go_down(SWITCH).is_empty(), "nobody had heard that it was up");
    node.say(&[], false);
    assert_eq!((ready(&mut node), node.kernel.is_held(SWITCH)), (vec![], false));
    node.come_up(SWITCH, 0);
    node.say(&[], false);
    node.questions(0);
    node.say(&[], false);
    assert_eq!(node.go_down(SWITCH), ZoneSet::only(ONE));
    assert_eq!(ready(&mut node), [], "it is gone again");
}

#[test]
fn of_two_thousand_that_come_at_once_few_are_asked_in_one_turn() {
    let mut node = Node::new();
    (1..=2_000).for_each(|id| node.come_up(DatapathId(id), 0));
    let mut asked = Vec::new();
    for turn in 0.. {
        assert_eq!(node.kernel.asks_next_ms().is_some(), asked.len() < 2_000);
        let now = node.questions(turn);
        assert!(now.len() <= 32, "{}", now.len());
        if now.is_empty() {
            break;
        }
        asked.extend(now);
    }
    assert_eq!(asked, (1..=2_000).map(DatapathId).collect::<Vec<_>>());
}

#[test]
fn a_question_that_did_not_go_out_is_put_again() {
    let mut node = Node::asked();
    node.kernel.on_no_answer(SWITCH, Asked::Owners, Unanswered::NotSent, 0);
    assert_eq!((node.questions(999), node.kernel.is_held(SWITCH)), (vec![], true));
    assert_eq!(node.questions(1_000), [SWITCH]);
}

#[test]
fn a_rule_that_is_found_and_then_gone_is_found_out_as_any_other() {
    let mut node = Node::asked();
    node.say(&entry(ONE, RULE), false);
    assert_eq!(node.add(OTHER, RULE), Err(Some(ONE)));
    let asked = Effect::Ask { datapath: SWITCH, asked: Asked::Rule };
    assert!(node.effects.contains(&asked));
    let reply =
        StatsReply { datapath: SWITCH, ticket: Asked::Rule.ticket(), multipart: 1, more: false, body: &[] };
    let mut bytes = Vec::new();
    event::write::stats_reply(&mut bytes, 9, &reply);
    assert!(node.kernel.on_own_answer(&bytes, ASKED_MS));
    assert_eq!(node.add(OTHER, RULE), Ok(()));
}

#[test]
fn what_came_before_an_answer_broke_off_is_known() {
    for outcome in [Outcome::Unknown, Outcome::Failed] {
        let mut node = Node::asked();
        node.say(&entry(ONE, RULE), true);
        assert_eq!(node.found(), Some(RuleReport::Waiting));
        node.does_not_answer(outcome);
        assert_eq!((node.found(), node.add(OTHER, RULE)), (Some(RuleReport::Unanswered(1)), Err(Some(ONE))));
        assert_eq!(ready(&mut node), [SWITCH]);
        node.say(&entry(ONE, "arp"), false);
        assert_eq!((node.found(), node.add(OTHER, "arp")), (Some(RuleReport::Answered(2)), Err(Some(ONE))));
        assert_eq!(ready(&mut node), [], "once");
    }
}

#[test]
fn a_switch_that_passes_the_question_over_has_a_moment_to_answer_late() {
    let mut node = Node::asked();
    node.does_not_answer(Outcome::Programmed);
    assert!(node.kernel.is_held(SWITCH));
    assert_eq!((node.questions(PASSED_OVER_MS - 1), ready(&mut node)), (vec![], vec![]));
    assert_eq!(node.kernel.asks_next_ms(), Some(PASSED_OVER_MS));
    assert_eq!((node.questions(PASSED_OVER_MS), ready(&mut node)), (vec![], vec![SWITCH]));
    assert_eq!((node.found(), node.add(ONE, "arp")), (Some(RuleReport::Unanswered(0)), Ok(())));
    // The kernel accepts an answer in time, and waits for one that has begun.
    for passed_over_first in [true, false] {
        let mut node = Node::asked();
        if passed_over_first {
            node.does_not_answer(Outcome::Programmed);
        }
        node.say(&entry(ONE, RULE), true);
        if !passed_over_first {
            node.does_not_answer(Outcome::Programmed);
            assert_eq!((node.questions(600_000), ready(&mut node)), (vec![], vec![]));
        }
        node.say(&entry(ONE, "arp"), false);
        assert_eq!((node.found(), ready(&mut node)), (Some(RuleReport::Answered(2)), vec![SWITCH]));
        node.does_not_answer(Outcome::Programmed);
        assert_eq!(node.questions(600_000), vec![]);
        assert_eq!((node.found(), node.kernel.asks_next_ms()), (Some(RuleReport::Answered(2)), None));
    }
}

#[test]
fn a_switch_that_never_ends_is_listened_to_as_far_as_there_is_room() {
    let mut node = Node::new();
    node.kernel.know_rules_up_to(1_000);
    node.come_up(SWITCH, 0);
    node.questions(0);
    let rule = |number: u32| entry(ONE, &format!("ip,nw_src=10.0.{}.{}", number >> 8, number & 0xff));
    (0..2_000).for_each(|number| node.say(&rule(number), true));
    node.say(&[], false);
    assert_eq!(node.add(OTHER, "ip,nw_src=10.0.3.231"), Err(Some(ONE)));
    let why = node.refusal(OTHER, "ip,nw_src=10.0.3.232");
    assert!(
        why.contains("limits.rules_per_switch"),
        "it is beyond what is taken, and nobody replaces it: {why}"
    );
}

#[test]
fn an_answer_without_entries_takes_no_memory() {
    let mut node = Node::asked();
    let mut bytes = Vec::new();
    let body = entry_with(kernel::OWN_COOKIE, "tcp");
    let reply = StatsReply {
        datapath: SWITCH,
        ticket: Asked::Owners.ticket(),
        multipart: 1,
        more: true,
        body: &body,
    };
    event::write::stats_reply(&mut bytes, 9, &reply);
    let taken = allocation_counter::measure(|| assert!(node.kernel.on_own_answer(&bytes, ASKED_MS)));
    assert_eq!(taken.count_total, 0);
}

proptest! {
    #[test]
    fn rubbish_refuses_nobody_his_own(
        rubbish in proptest::collection::vec(any::<u8>(), 0..400),
        cut in 0..200_usize,
        flipped in 0..200_usize,
    ) {
        let mut node = Node::asked();
        node.say(&entry(ONE, RULE), true);
        let mut damaged = [entry(OTHER, RULE), entry(OTHER, "arp"), entry(OTHER, "tcp")].concat();
        let place = flipped % damaged.len();
        damaged[place] ^= 0xff;
        node.say(&damaged[..cut.min(damaged.len())], true);
        node.say(&rubbish, false);
        assert_eq!((node.add(ONE, RULE), node.add(OTHER, RULE)), (Ok(()), Err(Some(ONE))));
    }
}

/// This zone subscribes to switches. Returns whether it may.
fn kernel_subscription(node: &mut Node, zone: ZoneId) -> bool {
    let events = event::kind::bit(event::kind::SWITCH_UP) | event::kind::bit(event::kind::SWITCH_DOWN);
    let what = What::Subscribe(command::Subscribe { events, packets: &[] });
    let mut bytes = Vec::new();
    let command = Command { datapath: DatapathId(0), ticket: 7, wants_receipt: false, what };
    assert!(command::write::command(&mut bytes, &command));
    let decision = node.kernel.on_command(zone, &Frame::read(&bytes).unwrap(), 0, &mut node.effects);
    matches!(decision, Decision::Subscribed)
}

/// A node whose app owned groups 7 and 9 and meter 7 of the switch before it connected, and all questions to the
/// switch.
fn with_owners_before() -> (Node, Arc<Claims>, Vec<Asked>) {
    let claims = Arc::new(Claims::default());
    for target in [GroupOrMeter::Group(7), GroupOrMeter::Group(9), GroupOrMeter::Meter(7)] {
        claims.restore(SWITCH, target, ONE);
    }
    let mut node = Node::new();
    node.kernel.share_claims(claims.clone());
    node.come_up(SWITCH, 0);
    node.kernel.ask_for_owners(ASKED_MS, &mut node.effects);
    let asked = node.effects.drain(..).filter_map(|effect| match effect {
        Effect::Ask { asked, .. } => Some(asked),
        _ => None,
    });
    let asked = asked.collect();
    (node, claims, asked)
}

/// An entry of OFPMP_GROUP_DESC or OFPMP_METER_CONFIG, of eight bytes and of that number.
fn numbered(number: u8) -> [u8; 8] {
    [0, 8, 0, 0, 0, 0, 0, number]
}

/// The groups and meters that lost their owner.
fn released(claims: &Claims) -> Vec<GroupOrMeter> {
    let changes = claims.take_changes(100).into_iter();
    changes.filter(|change| change.zone.is_none()).map(|change| change.target).collect()
}

#[test]
fn groups_and_meters_that_a_switch_has_lost_are_nobodys() {
    let (mut node, claims, asked) = with_owners_before();
    assert_eq!(asked, [Asked::Groups, Asked::Meters, Asked::Owners]);
    node.say_of(Asked::Groups, &numbered(3), true);
    node.say_of(Asked::Groups, &numbered(9), false);
    assert_eq!(released(&claims), [GroupOrMeter::Group(7)]);
    node.say_of(Asked::Meters, &[], false);
    assert_eq!(released(&claims), [GroupOrMeter::Meter(7)]);
}

#[test]
fn what_a_switch_does_not_say_or_says_late_takes_nothing_from_anybody() {
    let (mut node, claims, _) = with_owners_before();
    // The switch refuses the question about meters, and a part of its answer about groups is malformed.
    node.kernel.on_no_answer(SWITCH, Asked::Meters, Unanswered::Refused, ASKED_MS);
    node.say_of(Asked::Groups, &[0, 200, 0, 0, 0, 0, 0, 9], true);
    node.say_of(Asked::Groups, &numbered(9), false);
    assert_eq!(released(&claims), []);
    node.say(&[], false);
    assert_eq!(node.kernel.next_ready(), Some(SWITCH));
    for asked in [Asked::Groups, Asked::Meters] {
        node.say_of(asked, &[], false);
    }
    assert_eq!(released(&claims), []);
}

#[test]
fn a_switch_at_which_no_app_owns_anything_is_asked_for_its_rules_alone() {
    let mut node = Node::new();
    node.come_up(SWITCH, 0);
    node.kernel.ask_for_owners(ASKED_MS, &mut node.effects);
    assert!(
        matches!(node.effects.as_slice(), [Effect::Ask { asked: Asked::Owners, .. }]),
        "{:?}",
        node.effects
    );
}
