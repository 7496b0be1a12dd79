//! What an app may ask of switches, and what it may see of their answers.
//!
//! In: statistics requests, and answers on their way to who asked. Out: the capability that asking needs, and an answer without the
//! rules of others. It never asks a switch anything by itself.

use crate::capability::Capability;
use crate::dispatch::Kernel;
use abi::command::StatsRequest;
use abi::event::{Event, StatsReply, write};
use abi::{Frame, ZoneId};

/// `ofp_multipart_type` (1.3.5, 7.3.5).
mod multipart {
    pub const FLOW: u16 = 1;
    pub const AGGREGATE: u16 = 2;
    pub const GROUP: u16 = 6;
    pub const GROUP_DESC: u16 = 7;
    pub const METER: u16 = 9;
    pub const METER_CONFIG: u16 = 10;
    pub const TABLE_FEATURES: u16 = 12;
}

/// What a statistics request needs besides `stats.read`: what cannot be cut down to the app's own rules shows those of others, and
/// table features with a body change the switch (1.3.5, 7.3.5.5). Experimenters' requests need `vendor` instead.
pub(crate) fn needed_to_ask(request: &StatsRequest<'_>) -> Option<Capability> {
    match request.multipart {
        multipart::AGGREGATE
        | multipart::GROUP
        | multipart::GROUP_DESC
        | multipart::METER
        | multipart::METER_CONFIG => Some(Capability::RuleRead),
        multipart::TABLE_FEATURES if !request.body.is_empty() => Some(Capability::RuleWriteOthers),
        _ => None,
    }
}

/// Where a flow entry's cookie is in a reply, and how much of an entry there is always (`ofp_flow_stats`, 1.3.5, 7.3.5.2).
const ENTRY_COOKIE_AT: usize = 24;
const ENTRY_LEN_MIN: usize = 56;

impl Kernel {
    /// What a zone may see of a frame that answers it: all of it, but for the rules of others in an answer about rules. Those are left out of
    /// the copy in `buffer`, which is what is to be delivered then. `None`: the frame as it is.
    pub fn cut_down<'b>(&self, zone: ZoneId, frame: &[u8], buffer: &'b mut Vec<u8>) -> Option<&'b [u8]> {
        if self.zone(zone).is_none_or(|zone| zone.grant.holds(Capability::RuleRead)) {
            return None;
        }
        let frame = Frame::read(frame).ok()?;
        let Ok(Event::StatsReply(reply)) = Event::read(&frame) else { return None };
        if reply.multipart != multipart::FLOW {
            return None;
        }
        let mut own = Vec::new();
        own_entries(zone, reply.body, &mut own);
        buffer.clear();
        // What is left of a frame is no longer than it was.
        write::stats_reply(buffer, frame.header.sequence.get(), &StatsReply { body: &own, ..reply });
        Some(buffer)
    }
}

/// Appends the flow entries that a zone owns. What does not look like an entry ends the list.
fn own_entries(zone: ZoneId, entries: &[u8], own: &mut Vec<u8>) {
    for_own(zone, entries, |entry| own.extend_from_slice(entry));
}

/// Where an entry's table, priority and match are, and the match's own header (1.3.5, 7.2.3.1).
const ENTRY_TABLE_AT: usize = 2;
const ENTRY_PRIORITY_AT: usize = 12;
const ENTRY_IDLE_TIMEOUT_AT: usize = 14;
const ENTRY_HARD_TIMEOUT_AT: usize = 16;
const ENTRY_FLAGS_AT: usize = 18;
const ENTRY_MATCH_AT: usize = 48;
const MATCH_HEADER_LEN: usize = 4;

/// OFPFF_SEND_FLOW_REM.
const SEND_FLOW_REM: u16 = 1;

/// Whether a rule with these time-outs and flags stays in its switch until somebody deletes it or hears of its end.
pub(crate) fn stays(idle_timeout_s: u16, hard_timeout_s: u16, flags: u16) -> bool {
    (idle_timeout_s == 0 && hard_timeout_s == 0) || flags & SEND_FLOW_REM != 0
}

/// A flow entry of an answer, as far as it says which it is.
pub(crate) struct EntryFound<'a> {
    pub table_id: u8,
    pub priority: u16,
    pub cookie: u64,
    /// Whether it goes only with a word: it has no time-out, or its end is told.
    pub stays: bool,
    pub matching: &'a [u8],
}

/// The flow entries of an answer. What does not look like an entry ends them.
pub(crate) fn entries(mut entries: &[u8]) -> impl Iterator<Item = EntryFound<'_>> {
    let short = |bytes: &[u8], at: usize| {
        bytes.get(at..).and_then(|bytes| bytes.first_chunk()).map(|bytes| u16::from_be_bytes(*bytes))
    };
    std::iter::from_fn(move || {
        let (entry, rest) = entry_len(entries).and_then(|length| entries.split_at_checked(length))?;
        entries = rest;
        let match_len = usize::from(short(entry, ENTRY_MATCH_AT + 2)?);
        Some(EntryFound {
            table_id: *entry.get(ENTRY_TABLE_AT)?,
            priority: short(entry, ENTRY_PRIORITY_AT)?,
            cookie: cookie_of(entry)?,
            stays: stays(
                short(entry, ENTRY_IDLE_TIMEOUT_AT)?,
                short(entry, ENTRY_HARD_TIMEOUT_AT)?,
                short(entry, ENTRY_FLAGS_AT)?,
            ),
            matching: entry.get(ENTRY_MATCH_AT + MATCH_HEADER_LEN..ENTRY_MATCH_AT + match_len)?,
        })
    })
}

/// The numbers of the groups or meters of an answer: both begin with the length of an entry, and have the number at the same place
/// (`ofp_group_desc`, 7.3.5.8, `ofp_meter_config`, 7.3.5.11). `None`: what is there does not look like entries.
pub(crate) fn numbers(mut entries: &[u8]) -> Option<Vec<u32>> {
    const NUMBER_AT: usize = 4;
    let mut numbers = Vec::new();
    while !entries.is_empty() {
        let length = usize::from(u16::from_be_bytes(*entries.first_chunk()?));
        let (entry, rest) = entries.split_at_checked(length)?;
        numbers.push(u32::from_be_bytes(*entry.get(NUMBER_AT..)?.first_chunk()?));
        entries = rest;
    }
    Some(numbers)
}

fn for_own(zone: ZoneId, mut entries: &[u8], mut take: impl FnMut(&[u8])) {
    while let Some((entry, rest)) = entry_len(entries).and_then(|length| entries.split_at_checked(length)) {
        if owner_of(entry) == Some(zone) {
            take(entry);
        }
        entries = rest;
    }
}

/// How many of the flow entries a zone owns.
pub(crate) fn count_own(zone: ZoneId, entries: &[u8]) -> u32 {
    let mut count = 0;
    for_own(zone, entries, |_| count += 1);
    count
}

fn owner_of(entry: &[u8]) -> Option<ZoneId> {
    cookie_of(entry).map(ZoneId::owner_of)
}

fn cookie_of(entry: &[u8]) -> Option<u64> {
    entry.get(ENTRY_COOKIE_AT..)?.first_chunk().map(|cookie| u64::from_be_bytes(*cookie))
}

fn entry_len(entries: &[u8]) -> Option<usize> {
    let length = usize::from(u16::from_be_bytes(*entries.first_chunk()?));
    (length >= ENTRY_LEN_MIN).then_some(length)
}
