//! Rules in a switch's answer, with their owners where the cookie names them.
//!
//! In: the body of an answer about flow entries. Out: each rule, up to the first malformed one.

use abi::ZoneId;
use openflow::statistics::flow_entries;

/// OFPFF_SEND_FLOW_REM.
const SEND_FLOW_REM: u16 = 1;

/// Whether a rule with these time-outs and flags stays in its switch until it is deleted, or its end is reported.
pub(crate) fn stays(idle_timeout_s: u16, hard_timeout_s: u16, flags: u16) -> bool {
    (idle_timeout_s == 0 && hard_timeout_s == 0) || flags & SEND_FLOW_REM != 0
}

/// A rule that a switch reports.
pub(crate) struct ReportedRule<'a> {
    pub table_id: u8,
    pub priority: u16,
    pub cookie: u64,
    /// Whether the node learns of its end: it has no time-out, or the switch reports its removal.
    pub stays: bool,
    pub matching: &'a [u8],
    pub instructions: &'a [u8],
}

/// The rules of an answer. A malformed match ends them.
pub(crate) fn reported_rules(body: &[u8]) -> impl Iterator<Item = ReportedRule<'_>> {
    flow_entries(body).map_while(|entry| {
        Some(ReportedRule {
            table_id: entry.table_id(),
            priority: entry.priority(),
            cookie: entry.cookie(),
            stays: stays(entry.idle_timeout_s(), entry.hard_timeout_s(), entry.flags()),
            matching: entry.matching()?,
            instructions: entry.instructions(),
        })
    })
}

/// How many flow entries of an answer a zone owns.
pub(crate) fn count_own(zone: ZoneId, body: &[u8]) -> u32 {
    let own = flow_entries(body).filter(|entry| ZoneId::owner_of(entry.cookie()) == zone);
    u32::try_from(own.count()).unwrap_or(u32::MAX)
}
