//! The rules of the target, and which of them the switch behind the proxy has.
//!
//! ```text
//!   flow mod of the controller ──> RuleBook (what the target's CPU knows) ──┬──> what goes to the switch, when the model says so
//!   flow removed, counters of the switch ───────────────────────────────────┴──> what the controller learns
//! ```
//!
//! The switch gets each rule in another form. It has no time-outs, since the model ends rules. It has OFPFF_SEND_FLOW_REM, so that the
//! proxy learns of each end. And it sends whole packets to the controller, since the proxy cuts them.
//!
//! In: changes. Out: flow mods and flow removeds as values. It encodes nothing and asks no model.

use flow::{Action, Instruction, Match, PortNo};
use openflow::Version;
use openflow::message::*;
use software_switch::{BookedRule, RuleBook, rule_number};
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

/// How many flow mods are remembered for an error of the switch: as many as it may have to confirm. An error about an older one comes behind the
/// answer to a barrier, which OpenFlow forbids. It does not reach the controller, and its rule stays in the book.
const SENT_MAX: usize = 8192;
/// How much of the controller's flow mod an error repeats (1.3.5, 7.5.4).
const ERROR_DATA_BYTES: usize = 64;
/// How many removed rules may wait for the switch's flow removed. Above it, the switch does not answer, and all are forgotten.
const GONE_MAX: usize = 1 << 20;
/// OFPCML_NO_BUFFER.
const WHOLE_PACKET: u16 = 0xffff;

/// Why a rule ended (OFPRR_).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    IdleTimeout = 0,
    HardTimeout = 1,
    Delete = 2,
}

/// A flow mod of the controller, for an error about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Request {
    /// Different for each flow mod of a session: controllers use transaction ids again.
    number: u64,
    /// Its transaction id.
    pub(crate) xid: u32,
    /// When it came.
    since_ns: u64,
    /// Its first bytes.
    pub(crate) beginning: Arc<[u8]>,
}

/// Where a flow mod for the switch comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Origin {
    /// A flow mod of the controller.
    Request(Request),
    /// A flow mod of the controller about which it has got an error already. It gets one, even if its flow mod became many.
    Told,
    /// The model alone: the rule has moved.
    #[default]
    Model,
}

/// A change of the controller that the switch does not have yet.
#[derive(Clone, Debug, Default)]
struct Change {
    origin: Origin,
    is_add: bool,
}

/// A flow mod on its way to the switch.
#[derive(Clone, Debug)]
struct Sent {
    /// Its own transaction id.
    xid: u32,
    rule: u64,
    origin: Origin,
    is_add: bool,
    /// What the switch had before. `None`: no such rule.
    before: Option<BookedRule>,
}

/// What an error of the switch is about.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct RefusedBySwitch {
    /// Whom it concerns.
    pub(crate) origin: Origin,
    /// The rule that the target does not have, for this reason.
    pub(crate) gone: Option<u64>,
    /// The rule that the target has as before, as an add.
    pub(crate) restored: Option<FlowMod>,
}

/// A rule that the switch has.
#[derive(Clone, Debug)]
struct Placed {
    /// As the switch got it last.
    rule: BookedRule,
    packets: u64,
    used_ns: u64,
}

/// A rule that the target does not have any more.
#[derive(Clone, Debug)]
struct Gone {
    /// `None`: the controller is not told.
    told: Option<(BookedRule, Reason)>,
}

/// How a rule leaves the data plane.
#[derive(Debug, PartialEq)]
pub(crate) enum Withdrawal {
    /// The switch deletes it.
    Delete(FlowMod),
    /// The switch never had it. The controller is told that it is gone.
    Tell(FlowRemoved),
    /// Nothing is to do.
    Nothing,
}

/// What a flow removed of the switch means.
#[derive(Debug, PartialEq)]
pub(crate) enum Removed {
    /// A rule that the proxy has deleted: this is for the controller, or nothing.
    Expected(Option<FlowRemoved>),
    /// The switch removed a rule of the target by itself, for example with its group.
    BySwitch {
        /// The rule.
        rule: u64,
        /// For the controller.
        told: Option<FlowRemoved>,
    },
    /// No rule of the target.
    Unknown,
}

/// The rules.
#[derive(Debug, Default)]
pub(crate) struct Shadow {
    /// What the target's CPU knows.
    pub(crate) book: RuleBook,
    placed: HashMap<u64, Placed>,
    gone: HashMap<u64, Gone>,
    /// Rules that were added or changed, and that the switch does not have in this form.
    changes: HashMap<u64, Change>,
    sent: VecDeque<Sent>,
    requests: u64,
    /// Whether the switch has rules that are not in the book, since the book cannot compare their matches.
    pub(crate) has_others: bool,
}

fn with_whole_packets(actions: &[Action]) -> Vec<Action> {
    let whole = |action: &Action| match action {
        Action::Output { port: PortNo::CONTROLLER, .. } => {
            Action::Output { port: PortNo::CONTROLLER, max_len: WHOLE_PACKET }
        }
        other => other.clone(),
    };
    actions.iter().map(whole).collect()
}

/// The instructions as the switch gets them. A rule with a meter of its own keeps that one.
fn for_switch(instructions: &[Instruction], meter: Option<u32>) -> Vec<Instruction> {
    let has_meter = instructions.iter().any(|it| matches!(it, Instruction::Meter(_)));
    let meter = meter.filter(|_| !has_meter).map(Instruction::Meter);
    let others = instructions.iter().map(|instruction| match instruction {
        Instruction::ApplyActions(actions) => Instruction::ApplyActions(with_whole_packets(actions)),
        Instruction::WriteActions(actions) => Instruction::WriteActions(with_whole_packets(actions)),
        other => other.clone(),
    });
    meter.into_iter().chain(others).collect()
}

impl Shadow {
    /// The controller's flow mod with these bytes, which came then, is carried out.
    pub(crate) fn request(&mut self, xid: u32, bytes: &[u8], since_ns: u64) -> Request {
        self.requests += 1;
        let beginning = bytes.get(..ERROR_DATA_BYTES).unwrap_or(bytes);
        Request { number: self.requests, xid, since_ns, beginning: beginning.into() }
    }

    /// A flow mod has added this rule.
    pub(crate) fn on_added(&mut self, rule: u64, request: &Request) {
        self.changes.insert(rule, Change { origin: Origin::Request(request.clone()), is_add: true });
    }

    /// A flow mod has changed this rule. If the switch does not have it yet, it gets an add all the same.
    pub(crate) fn on_modified(&mut self, rule: u64, request: &Request) {
        self.changes.entry(rule).or_default().origin = Origin::Request(request.clone());
    }

    /// The target does not add this rule after all.
    pub(crate) fn on_not_added(&mut self, rule: u64) {
        self.changes.remove(&rule);
        self.book.remove(rule);
    }

    /// The target does not have this rule any more.
    pub(crate) fn on_gone(&mut self, rule: u64, booked: BookedRule, reason: Reason) {
        self.changes.remove(&rule);
        let is_told = booked.flags & FLOW_MOD_SEND_FLOW_REMOVED != 0;
        self.expect_removal(rule, is_told.then_some((booked, reason)));
    }

    fn expect_removal(&mut self, rule: u64, told: Option<(BookedRule, Reason)>) {
        if self.gone.len() >= GONE_MAX {
            self.gone.clear();
        }
        self.gone.insert(rule, Gone { told });
    }

    /// The switch gets the rule in its latest form, by a flow mod with this transaction id of the proxy. If the controller has changed the rule,
    /// it also says when that flow mod came.
    pub(crate) fn install(
        &mut self,
        rule: u64,
        meter: Option<u32>,
        xid: u32,
        now_ns: u64,
    ) -> Option<(FlowMod, Option<u64>)> {
        let booked = self.book.get(rule)?;
        let Change { origin, is_add } = self.changes.remove(&rule).unwrap_or_default();
        let is_add = is_add || !self.placed.contains_key(&rule);
        let flags =
            if is_add { booked.flags | FLOW_MOD_SEND_FLOW_REMOVED } else { FLOW_MOD_SEND_FLOW_REMOVED };
        let command = if is_add { FLOW_ADD } else { FLOW_MODIFY_STRICT };
        let wanted = FlowModFields { flags, command, ..fields_of(&booked) };
        let instructions = for_switch(&booked.instructions, meter);
        let matching = booked.matching.clone();
        let before = match self.placed.get_mut(&rule) {
            Some(placed) => Some(std::mem::replace(&mut placed.rule, booked)),
            None => {
                self.placed.insert(rule, Placed { rule: booked, packets: 0, used_ns: now_ns });
                None
            }
        };
        if self.sent.len() >= SENT_MAX {
            self.sent.pop_front();
        }
        let since_ns = match &origin {
            Origin::Request(request) => Some(request.since_ns),
            Origin::Told | Origin::Model => None,
        };
        self.sent.push_back(Sent { xid, rule, origin, is_add, before });
        Some((wanted.with(matching, instructions), since_ns))
    }

    /// Packets meet the rule no longer.
    pub(crate) fn withdraw(&mut self, rule: u64, version: Version) -> Withdrawal {
        let Some(placed) = self.placed.remove(&rule) else {
            let told = self.gone.remove(&rule).and_then(|gone| gone.told);
            return match told {
                Some(told) => Withdrawal::Tell(flow_removed(told, version)),
                None => Withdrawal::Nothing,
            };
        };
        // A rule that is deleted and written again is not gone: the controller is not told.
        if !self.gone.contains_key(&rule) {
            self.expect_removal(rule, None);
        }
        let BookedRule { table_id, priority, matching, .. } = placed.rule;
        let fields =
            FlowModFields { table_id, command: FLOW_DELETE_STRICT, priority, ..FlowModFields::default() };
        Withdrawal::Delete(fields.with(matching, Vec::new()))
    }

    /// A rule as the switch got it last.
    pub(crate) fn placed_rule(&self, rule: u64) -> Option<&BookedRule> {
        self.placed.get(&rule).map(|placed| &placed.rule)
    }

    /// All rules as the switch got them last, in no order.
    pub(crate) fn placed_rules(&self) -> impl Iterator<Item = &BookedRule> {
        self.placed.values().map(|placed| &placed.rule)
    }

    /// Whether the switch has the rule.
    pub(crate) fn is_placed(&self, rule: u64) -> bool {
        self.placed.contains_key(&rule)
    }

    /// The switch has removed a rule.
    pub(crate) fn on_flow_removed(&mut self, removed: FlowRemoved, version: Version) -> Removed {
        let number = rule_number(removed.table_id, removed.priority, &removed.matching);
        let Some(rule) = number else { return Removed::Unknown };
        if let Some(gone) = self.gone.remove(&rule) {
            return Removed::Expected(gone.told.map(|(booked, reason)| FlowRemoved {
                reason: reason as u8,
                ..with_timeouts(removed, &booked, version)
            }));
        }
        self.placed.remove(&rule);
        self.changes.remove(&rule);
        match self.book.remove(rule) {
            Some(booked) => {
                let is_told = booked.flags & FLOW_MOD_SEND_FLOW_REMOVED != 0;
                let told = is_told.then(|| with_timeouts(removed, &booked, version));
                Removed::BySwitch { rule, told }
            }
            None => Removed::Unknown,
        }
    }

    /// The switch has refused the flow mod with this transaction id of the proxy. The rule is what the switch had before, unless a later
    /// flow mod for it is on its way. `None`: no such flow mod is known.
    pub(crate) fn on_error(&mut self, xid: u32, version: Version) -> Option<RefusedBySwitch> {
        let at = self.sent.iter().rposition(|sent| sent.xid == xid)?;
        let Sent { rule, origin, before, .. } = self.sent.remove(at)?;
        if let Origin::Request(request) = &origin {
            self.tell_once(request.number);
        }
        // A modify of no rule adds it in 1.0 (1.0, 4.6), and does nothing in 1.3.
        let may_be_there = |sent: &Sent| before.is_some() || sent.is_add || version == Version::V1_0;
        let mut later = self.sent.iter_mut().skip(at);
        if let Some(later) = later.find(|sent| sent.rule == rule && may_be_there(sent)) {
            // One that adds to nothing has a delete before it: that has removed what this one would have restored.
            if later.before.is_some() {
                later.before = before;
            } else if before.is_none() {
                // That delete had nothing to remove, and the switch tells of no removal.
                self.gone.remove(&rule);
            }
            return Some(RefusedBySwitch { origin, gone: None, restored: None });
        }
        let mut restored = None;
        let gone = match before {
            Some(before) => {
                restored = self.put_back(rule, before, version);
                None
            }
            // The controller has added it again since.
            None if self.changes.get(&rule).is_some_and(|change| change.is_add) => {
                self.placed.remove(&rule);
                None
            }
            None => {
                if self.placed.remove(&rule).is_none() {
                    // It is deleted already. The switch never had it, and tells of no removal.
                    self.gone.remove(&rule);
                }
                self.changes.remove(&rule);
                self.book.remove(rule).map(|_| rule)
            }
        };
        Some(RefusedBySwitch { origin, gone, restored })
    }

    /// The controller has got an error about this flow mod.
    fn tell_once(&mut self, number: u64) {
        let origins = self.sent.iter_mut().map(|sent| &mut sent.origin);
        for origin in origins.chain(self.changes.values_mut().map(|change| &mut change.origin)) {
            if matches!(origin, Origin::Request(request) if request.number == number) {
                *origin = Origin::Told;
            }
        }
    }

    /// The switch has kept a rule as it was. A change that is not sent yet stays. Returns the rule as an add, unless there is such a change.
    fn put_back(&mut self, rule: u64, before: BookedRule, version: Version) -> Option<FlowMod> {
        let placed = self.placed.get_mut(&rule)?;
        placed.rule = before.clone();
        if self.book.contains(rule) && !self.changes.contains_key(&rule) {
            let fields = FlowModFields { flags: before.flags, command: FLOW_ADD, ..fields_of(&before) };
            let timeouts = FlowModFields {
                idle_timeout_s: before.idle_timeout_s,
                hard_timeout_s: before.hard_timeout_s,
                ..fields
            };
            let add = timeouts.with(before.matching, before.instructions);
            self.book.carry_out(&add, version);
            return Some(add);
        }
        None
    }

    /// The switch reports how many packets have met a rule. Returns the rule, and how many these are since the last report.
    pub(crate) fn on_counted(
        &mut self,
        table_id: u8,
        priority: u16,
        matching: &Match,
        packets: u64,
        now_ns: u64,
    ) -> Option<(u64, u64)> {
        let rule = rule_number(table_id, priority, matching)?;
        let placed = self.placed.get_mut(&rule)?;
        let more = packets.saturating_sub(placed.packets);
        // A replaced rule may count from zero again.
        placed.packets = packets;
        if more == 0 {
            return None;
        }
        placed.used_ns = now_ns;
        Some((rule, more))
    }

    /// When a report last showed packets of the rule.
    pub(crate) fn used_ns(&self, rule: u64) -> Option<u64> {
        self.placed.get(&rule).map(|placed| placed.used_ns)
    }

    /// Whether this rule is in the switch and has an idle time-out.
    pub(crate) fn has_idle_timeout(&self, rule: u64) -> bool {
        self.placed.get(&rule).is_some_and(|placed| placed.rule.idle_timeout_s > 0)
    }

    /// Whether any rule in the switch has an idle time-out.
    pub(crate) fn has_idle_timeouts(&self) -> bool {
        self.placed.values().any(|placed| placed.rule.idle_timeout_s > 0)
    }

    /// A rule as the controller wants it.
    pub(crate) fn booked(&self, table_id: u8, priority: u16, matching: &Match) -> Option<BookedRule> {
        self.book.get(rule_number(table_id, priority, matching)?)
    }
}

/// What a flow mod for the switch has of a rule. The model ends rules, so it has no time-outs.
fn fields_of(rule: &BookedRule) -> FlowModFields {
    FlowModFields {
        cookie: rule.cookie,
        table_id: rule.table_id,
        priority: rule.priority,
        ..FlowModFields::default()
    }
}

fn with_timeouts(removed: FlowRemoved, booked: &BookedRule, version: Version) -> FlowRemoved {
    FlowRemoved {
        cookie: booked.cookie,
        idle_timeout_s: booked.idle_timeout_s,
        // 1.0 does not report it.
        hard_timeout_s: if version == Version::V1_0 { 0 } else { booked.hard_timeout_s },
        ..removed
    }
}

/// The flow removed of a rule that no packet ever met.
fn flow_removed((booked, reason): (BookedRule, Reason), version: Version) -> FlowRemoved {
    let removed = FlowRemoved {
        matching: booked.matching.clone(),
        cookie: booked.cookie,
        priority: booked.priority,
        reason: reason as u8,
        table_id: if version == Version::V1_0 { 0 } else { booked.table_id },
        duration_s: 0,
        duration_ns: 0,
        idle_timeout_s: 0,
        hard_timeout_s: 0,
        packet_count: 0,
        byte_count: 0,
    };
    with_timeouts(removed, &booked, version)
}

#[cfg(test)]
mod tests {
    use super::*;
    use flow::Field;
    use software_switch::BookChange;

    fn wanted(flags: u16) -> FlowMod {
        let actions = vec![Action::Output { port: PortNo::CONTROLLER, max_len: 64 }];
        let fields =
            FlowModFields { idle_timeout_s: 5, hard_timeout_s: 9, flags, ..FlowModFields::default() };
        fields.with(Match::any().with(Field::InPort, 1u32), vec![Instruction::ApplyActions(actions)])
    }

    fn added(shadow: &mut Shadow, flags: u16) -> u64 {
        let BookChange::Added(rule) = shadow.book.carry_out(&wanted(flags), Version::V1_3) else {
            panic!("an add")
        };
        let request = shadow.request(77, &[7; 100], 9);
        shadow.on_added(rule, &request);
        rule
    }

    #[test]
    fn the_switch_gets_a_rule_without_time_outs_and_with_whole_packets() {
        let mut shadow = Shadow::default();
        let rule = added(&mut shadow, 0);
        let (sent, since_ns) = shadow.install(rule, Some(6), 1, 0).unwrap();
        assert_eq!(since_ns, Some(9));
        assert_eq!((sent.command, sent.idle_timeout_s, sent.hard_timeout_s), (FLOW_ADD, 0, 0));
        assert_eq!(sent.flags, FLOW_MOD_SEND_FLOW_REMOVED);
        let whole = vec![Action::Output { port: PortNo::CONTROLLER, max_len: WHOLE_PACKET }];
        assert_eq!(sent.instructions, [Instruction::Meter(6), Instruction::ApplyActions(whole)]);
        // Promoted: the same rule without the meter, and its counters stay.
        let (sent, since_ns) = shadow.install(rule, None, 2, 0).unwrap();
        assert_eq!((sent.command, sent.instructions.len(), since_ns), (FLOW_MODIFY_STRICT, 1, None));
    }

    #[test]
    fn the_controller_hears_of_the_end_that_the_model_decided() {
        let mut shadow = Shadow::default();
        let rule = added(&mut shadow, FLOW_MOD_SEND_FLOW_REMOVED);
        shadow.install(rule, None, 1, 0);
        let booked = shadow.book.remove(rule).unwrap();
        shadow.on_gone(rule, booked, Reason::IdleTimeout);
        let Withdrawal::Delete(delete) = shadow.withdraw(rule, Version::V1_3) else { panic!("a delete") };
        assert_eq!(delete.command, FLOW_DELETE_STRICT);
        let by_switch = FlowRemoved {
            reason: 2,
            packet_count: 4,
            ..flow_removed((shadow_rule(), Reason::Delete), Version::V1_3)
        };
        let Removed::Expected(Some(told)) = shadow.on_flow_removed(by_switch, Version::V1_3) else {
            panic!("told")
        };
        assert_eq!((told.reason, told.idle_timeout_s, told.hard_timeout_s, told.packet_count), (0, 5, 9, 4));
    }

    fn shadow_rule() -> BookedRule {
        let mut shadow = Shadow::default();
        let rule = added(&mut shadow, 0);
        shadow.book.remove(rule).unwrap()
    }

    #[test]
    fn a_rule_that_never_came_to_the_switch_is_told_all_the_same() {
        let mut shadow = Shadow::default();
        let rule = added(&mut shadow, FLOW_MOD_SEND_FLOW_REMOVED);
        let booked = shadow.book.remove(rule).unwrap();
        shadow.on_gone(rule, booked, Reason::Delete);
        assert!(matches!(shadow.withdraw(rule, Version::V1_3), Withdrawal::Tell(_)));
        assert_eq!(shadow.withdraw(rule, Version::V1_3), Withdrawal::Nothing);
    }

    #[test]
    fn an_add_that_the_switch_refuses_is_not_there() {
        let mut shadow = Shadow::default();
        let rule = added(&mut shadow, 0);
        shadow.install(rule, None, 1, 0);
        let refused = shadow.on_error(1, Version::V1_3).unwrap();
        let Origin::Request(request) = &refused.origin else { panic!("{refused:?}") };
        assert_eq!((request.xid, &request.beginning[..], refused.gone), (77, &[7; 64][..], Some(rule)));
        assert!(!shadow.book.contains(rule) && !shadow.is_placed(rule));
        assert_eq!(shadow.on_error(1, Version::V1_3), None);
    }

    /// A modify of the rule of [`wanted`], with one output, and the flow mod for the switch with this transaction id.
    fn modify(shadow: &mut Shadow, rule: u64, port: u32, xid: u32) {
        let actions = vec![Action::output(PortNo(port))];
        let fields = FlowModFields { command: FLOW_MODIFY, ..FlowModFields::default() };
        let flow_mod =
            fields.with(Match::any().with(Field::InPort, 1u32), vec![Instruction::ApplyActions(actions)]);
        assert_eq!(
            shadow.book.carry_out(&flow_mod, Version::V1_3),
            software_switch::BookChange::Modified(vec![rule])
        );
        let request = shadow.request(78, &[8; 80], 0);
        shadow.on_modified(rule, &request);
        assert_eq!(shadow.install(rule, None, xid, 0).unwrap().0.command, FLOW_MODIFY_STRICT);
    }

    #[test]
    fn a_modify_that_the_switch_refuses_leaves_the_rule_as_it_was() {
        let mut shadow = Shadow::default();
        let rule = added(&mut shadow, 0);
        shadow.install(rule, None, 1, 0);
        let before = shadow.book.get(rule).unwrap();
        modify(&mut shadow, rule, 2, 2);
        modify(&mut shadow, rule, 3, 3);
        // The first is refused while the second is on its way; then that one, too.
        for xid in [2, 3] {
            let refused = shadow.on_error(xid, Version::V1_3).unwrap();
            assert!(matches!(&refused.origin, Origin::Request(request) if request.xid == 78));
            assert_eq!(refused.gone, None);
        }
        assert_eq!(shadow.book.get(rule), Some(before));
        assert!(shadow.is_placed(rule));
    }

    #[test]
    fn one_flow_mod_that_became_many_is_told_once() {
        let mut shadow = Shadow::default();
        let rule = added(&mut shadow, 0);
        let request = shadow.request(5, b"", 0);
        for xid in 1..=3 {
            shadow.on_modified(rule, &request);
            shadow.install(rule, None, xid, 0);
        }
        let told = |shadow: &mut Shadow, xid| shadow.on_error(xid, Version::V1_3).unwrap().origin;
        assert!(matches!(told(&mut shadow, 2), Origin::Request(_)));
        assert_eq!([1, 3].map(|xid| told(&mut shadow, xid)), [Origin::Told, Origin::Told]);
    }

    #[test]
    fn a_rule_that_the_switch_removes_by_itself_is_no_longer_there() {
        let mut shadow = Shadow::default();
        let rule = added(&mut shadow, 0);
        shadow.install(rule, None, 1, 0);
        let removed = flow_removed((shadow_rule(), Reason::Delete), Version::V1_3);
        assert_eq!(
            shadow.on_flow_removed(removed.clone(), Version::V1_3),
            Removed::BySwitch { rule, told: None }
        );
        assert_eq!(shadow.on_flow_removed(removed, Version::V1_3), Removed::Unknown);
    }
}
