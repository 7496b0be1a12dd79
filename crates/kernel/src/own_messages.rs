//! The kernel's own questions and commands to switches, and the tickets that identify the answers.
//!
//! Only data. [`crate::Effect`] says when to send one; the worker sends it.

use abi::ZoneId;

/// Only tickets of the kernel's own questions have this bit.
pub const OWN_TICKET: u64 = 1 << 63;

/// A question of the kernel to a switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// How many rules of this zone the switch has: a part of OFPMP_AGGREGATE or, if the switch cannot filter by cookie,
    /// of OFPMP_FLOW.
    RulesOf(ZoneId),
    /// How many entries its tables hold: OFPMP_TABLE_FEATURES.
    TableSizes,
    /// How many entries its tables have: OFPMP_TABLE.
    TableCounts,
    /// Whether it has the rule that [`crate::Kernel::wanted_rule`] returns: OFPMP_FLOW.
    Rule,
    /// Which rules it has, and their owners: OFPMP_FLOW, of all tables.
    Owners,
    /// Which rules it still has, because its record has grown: OFPMP_FLOW, of all tables.
    Record,
    /// Which groups it has: OFPMP_GROUP_DESC.
    Groups,
    /// Which meters it has: OFPMP_METER_CONFIG.
    Meters,
}

impl Asked {
    /// Whether its answer tells of rules one by one, so that the matches of those that wait for the switch are needed.
    pub const fn needs_matches(self) -> bool {
        matches!(self, Asked::Rule | Asked::Record)
    }

    /// Whether it counts or looks for rules, so that one that waits for the switch is missing in its answer.
    pub const fn concerns_rules(self) -> bool {
        matches!(self, Asked::RulesOf(_) | Asked::TableCounts | Asked::Rule | Asked::Record)
    }

    /// The ticket that identifies the answer.
    pub const fn ticket(self) -> u64 {
        match self {
            Asked::TableSizes => OWN_TICKET | 1 << 16,
            Asked::TableCounts => OWN_TICKET | 2 << 16,
            Asked::Rule => OWN_TICKET | 3 << 16,
            Asked::Owners => OWN_TICKET | 8 << 16,
            Asked::Record => OWN_TICKET | 9 << 16,
            Asked::Groups => OWN_TICKET | 10 << 16,
            Asked::Meters => OWN_TICKET | 11 << 16,
            Asked::RulesOf(zone) => OWN_TICKET | zone.0 as u64,
        }
    }

    pub(crate) fn from_ticket(ticket: u64) -> Option<Asked> {
        let number = ticket.checked_sub(OWN_TICKET)?;
        match (number >> 16, u16::try_from(number & 0xffff)) {
            (1, Ok(0)) => Some(Asked::TableSizes),
            (2, Ok(0)) => Some(Asked::TableCounts),
            (3, Ok(0)) => Some(Asked::Rule),
            (8, Ok(0)) => Some(Asked::Owners),
            (9, Ok(0)) => Some(Asked::Record),
            (10, Ok(0)) => Some(Asked::Groups),
            (11, Ok(0)) => Some(Asked::Meters),
            (0, Ok(zone)) => Some(Asked::RulesOf(ZoneId(zone))),
            _ => None,
        }
    }
}

/// Why one of the kernel's own questions has no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unanswered {
    /// The question was not sent.
    NotSent,
    /// The switch did not answer in time.
    Silence,
    /// The switch refused the question.
    Refused,
    /// The switch has answered a later message (a barrier), but not this question.
    PassedOver,
}

/// A step to set up the meter at a switch. Its receipt or answer goes to [`crate::Kernel::on_meter_answer`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MeterStep {
    /// Ask for its meter features: OFPMP_METER_FEATURES.
    AskFeatures,
    /// Add or modify this meter.
    Make(MeterWanted),
    /// Ask whether it still has the meter with this number, and how much it has dropped: OFPMP_METER.
    Check(u32),
}

/// A meter that drops packets above its rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MeterWanted {
    /// Its number.
    pub meter_id: u32,
    /// Whether it already exists, so that it is modified and not added.
    pub is_there: bool,
    /// `ofp_meter_flags`: those that the switch supports.
    pub flags: u16,
    /// Packets per second.
    pub per_s: u32,
    /// The burst size in packets. A switch that does not support bursts ignores it.
    pub burst: u32,
}

/// The tickets that identify the answers to the steps, and the receipt of the rule with the meter.
pub(crate) const FEATURES_TICKET: u64 = OWN_TICKET | 4 << 16;
pub(crate) const METER_TICKET: u64 = OWN_TICKET | 5 << 16;
pub(crate) const CHECK_TICKET: u64 = OWN_TICKET | 7 << 16;
/// The ticket of the table-miss rule with a meter.
pub const RULE_TICKET: u64 = OWN_TICKET | 6 << 16;

/// The same for the rule of a later table: the table is in the lowest bits.
const LATER_RULE_TICKET: u64 = OWN_TICKET | 12 << 16;

/// The ticket of the kernel's deletes for zones that cannot delete, and of the barriers behind them.
pub const WITHDRAWAL_TICKET: u64 = OWN_TICKET | 13 << 16;

/// The ticket of the table-miss rule of a later table, with a meter.
pub const fn later_rule_ticket(table_id: u8) -> u64 {
    LATER_RULE_TICKET | table_id as u64
}

/// The later table whose rule has this ticket.
pub(crate) fn later_table_of(ticket: u64) -> Option<u8> {
    u8::try_from(ticket ^ LATER_RULE_TICKET).ok()
}

impl MeterStep {
    /// The ticket that identifies its answer.
    pub const fn ticket(self) -> u64 {
        match self {
            MeterStep::AskFeatures => FEATURES_TICKET,
            MeterStep::Make(_) => METER_TICKET,
            MeterStep::Check(_) => CHECK_TICKET,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ticket_says_what_was_asked() {
        let plain = [Asked::TableSizes, Asked::TableCounts, Asked::Rule, Asked::Owners, Asked::Record];
        let others = [Asked::Groups, Asked::Meters, Asked::RulesOf(ZoneId(1023))];
        for asked in plain.into_iter().chain(others) {
            assert_eq!(Asked::from_ticket(asked.ticket()), Some(asked));
        }
        for other in
            [0, 7, OWN_TICKET - 1, OWN_TICKET | 4 << 16, later_rule_ticket(3), WITHDRAWAL_TICKET, u64::MAX]
        {
            assert_eq!(Asked::from_ticket(other), None, "{other:#x}");
        }
        assert_eq!(later_table_of(later_rule_ticket(254)), Some(254));
        assert_eq!((later_table_of(RULE_TICKET), later_table_of(3)), (None, None));
        assert_eq!(later_table_of(WITHDRAWAL_TICKET), None);
    }
}
