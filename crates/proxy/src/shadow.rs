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

/// How many adds are remembered for an error of the switch: as many as may be on their way in a full connection.
const SENT_ADDS_MAX: usize = 8192;
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

/// A rule that the switch has.
#[derive(Clone, Debug)]
struct Placed {
    table_id: u8,
    priority: u16,
    matching: Match,
    packets: u64,
    used_ns: u64,
    has_idle_timeout: bool,
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
    /// Rules that were added and that the switch does not have in this form, with the transaction id of the flow mod.
    adds: HashMap<u64, u32>,
    sent: VecDeque<(u32, u64)>,
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
    /// A flow mod has added this rule.
    pub(crate) fn on_added(&mut self, rule: u64, xid: u32) {
        self.adds.insert(rule, xid);
    }

    /// The target does not have this rule any more.
    pub(crate) fn on_gone(&mut self, rule: u64, booked: BookedRule, reason: Reason) {
        self.adds.remove(&rule);
        let is_told = booked.flags & FLOW_MOD_SEND_FLOW_REMOVED != 0;
        self.expect_removal(rule, is_told.then_some((booked, reason)));
    }

    fn expect_removal(&mut self, rule: u64, told: Option<(BookedRule, Reason)>) {
        if self.gone.len() >= GONE_MAX {
            self.gone.clear();
        }
        self.gone.insert(rule, Gone { told });
    }

    /// The switch gets the rule in its latest form: the flow mod, and the transaction id of the controller if it is that one's add.
    pub(crate) fn install(
        &mut self,
        rule: u64,
        meter: Option<u32>,
        now_ns: u64,
    ) -> Option<(Option<u32>, FlowMod)> {
        let booked = self.book.get(rule)?;
        let xid = self.adds.remove(&rule);
        let is_add = xid.is_some() || !self.placed.contains_key(&rule);
        let flags =
            if is_add { booked.flags | FLOW_MOD_SEND_FLOW_REMOVED } else { FLOW_MOD_SEND_FLOW_REMOVED };
        let fields = FlowModFields {
            cookie: booked.cookie,
            table_id: booked.table_id,
            command: if is_add { FLOW_ADD } else { FLOW_MODIFY_STRICT },
            priority: booked.priority,
            flags,
            ..FlowModFields::default()
        };
        let placed = Placed {
            table_id: booked.table_id,
            priority: booked.priority,
            matching: booked.matching.clone(),
            packets: 0,
            used_ns: now_ns,
            has_idle_timeout: booked.idle_timeout_s > 0,
        };
        self.placed.entry(rule).or_insert(placed).has_idle_timeout = booked.idle_timeout_s > 0;
        if let Some(xid) = xid {
            if self.sent.len() >= SENT_ADDS_MAX {
                self.sent.pop_front();
            }
            self.sent.push_back((xid, rule));
        }
        Some((xid, fields.with(booked.matching, for_switch(&booked.instructions, meter))))
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
        let fields = FlowModFields {
            table_id: placed.table_id,
            command: FLOW_DELETE_STRICT,
            priority: placed.priority,
            ..FlowModFields::default()
        };
        Withdrawal::Delete(fields.with(placed.matching, Vec::new()))
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
        self.adds.remove(&rule);
        match self.book.remove(rule) {
            Some(booked) => {
                let is_told = booked.flags & FLOW_MOD_SEND_FLOW_REMOVED != 0;
                let told = is_told.then(|| with_timeouts(removed, &booked, version));
                Removed::BySwitch { rule, told }
            }
            None => Removed::Unknown,
        }
    }

    /// The switch has refused a message with this transaction id. If that was an add, its rule is not there.
    pub(crate) fn on_error(&mut self, xid: u32) -> Option<u64> {
        let at = self.sent.iter().rposition(|(sent, _)| *sent == xid)?;
        let (_, rule) = self.sent.remove(at)?;
        self.placed.remove(&rule);
        self.book.remove(rule).map(|_| rule)
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

    /// Whether any rule in the switch has an idle time-out.
    pub(crate) fn has_idle_timeouts(&self) -> bool {
        self.placed.values().any(|placed| placed.has_idle_timeout)
    }

    /// A rule as the controller wants it.
    pub(crate) fn booked(&self, table_id: u8, priority: u16, matching: &Match) -> Option<BookedRule> {
        self.book.get(rule_number(table_id, priority, matching)?)
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
        shadow.on_added(rule, 77);
        rule
    }

    #[test]
    fn the_switch_gets_a_rule_without_time_outs_and_with_whole_packets() {
        let mut shadow = Shadow::default();
        let rule = added(&mut shadow, 0);
        let (xid, sent) = shadow.install(rule, Some(6), 0).unwrap();
        assert_eq!((xid, sent.command, sent.idle_timeout_s, sent.hard_timeout_s), (Some(77), FLOW_ADD, 0, 0));
        assert_eq!(sent.flags, FLOW_MOD_SEND_FLOW_REMOVED);
        let whole = vec![Action::Output { port: PortNo::CONTROLLER, max_len: WHOLE_PACKET }];
        assert_eq!(sent.instructions, [Instruction::Meter(6), Instruction::ApplyActions(whole)]);
        // Promoted: the same rule without the meter, and its counters stay.
        let (xid, sent) = shadow.install(rule, None, 0).unwrap();
        assert_eq!((xid, sent.command, sent.instructions.len()), (None, FLOW_MODIFY_STRICT, 1));
    }

    #[test]
    fn the_controller_hears_of_the_end_that_the_model_decided() {
        let mut shadow = Shadow::default();
        let rule = added(&mut shadow, FLOW_MOD_SEND_FLOW_REMOVED);
        shadow.install(rule, None, 0);
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
        shadow.install(rule, None, 0);
        assert_eq!(shadow.on_error(77), Some(rule));
        assert!(!shadow.book.contains(rule) && !shadow.is_placed(rule));
        assert_eq!(shadow.on_error(77), None);
    }

    #[test]
    fn a_rule_that_the_switch_removes_by_itself_is_no_longer_there() {
        let mut shadow = Shadow::default();
        let rule = added(&mut shadow, 0);
        shadow.install(rule, None, 0);
        let removed = flow_removed((shadow_rule(), Reason::Delete), Version::V1_3);
        assert_eq!(
            shadow.on_flow_removed(removed.clone(), Version::V1_3),
            Removed::BySwitch { rule, told: None }
        );
        assert_eq!(shadow.on_flow_removed(removed, Version::V1_3), Removed::Unknown);
    }
}
