//! Reads what a switch reports of its tables, in place.
//!
//! In: bodies of statistics replies, in the form of OpenFlow 1.3. Out: rules with their counters, groups and meters. Reading ends at the
//! first damaged entry: southbound has refused damaged replies already.

use crate::key::{EntryKey, other_content, rule_content};

/// `ofp_multipart_type`: flow entries.
pub const FLOWS: u16 = 1;
/// Descriptions of groups.
pub const GROUPS: u16 = 7;
/// Configurations of meters.
pub const METERS: u16 = 10;

/// The request for the rules of a table, or of all tables (255): every rule (OpenFlow 1.3.5, 7.3.5.2).
pub fn flows_request(table_id: u8) -> [u8; 40] {
    let mut body = [0; 40];
    body[0] = table_id;
    // out_port and out_group: any.
    body[4..12].fill(0xff);
    // An empty match: OFPMT_OXM, length 4.
    body[32..36].copy_from_slice(&[0, 1, 0, 4]);
    body
}

/// The request for the configurations of all meters (7.3.5.13).
pub const METERS_REQUEST: [u8; 8] = [0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0];

/// A rule, as a switch reports it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RuleEntry<'a> {
    /// Its table.
    pub table_id: u8,
    /// Its priority.
    pub priority: u16,
    /// Seconds without a packet until it ends.
    pub idle_timeout_s: u16,
    /// Seconds until it ends.
    pub hard_timeout_s: u16,
    /// How long it exists.
    pub duration_s: u32,
    /// Its cookie, with the owner.
    pub cookie: u64,
    /// Packets that it matched.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Its match.
    pub matching: &'a [u8],
    /// Its instructions.
    pub instructions: &'a [u8],
}

impl RuleEntry<'_> {
    /// Its name in the switch.
    pub fn key(&self) -> EntryKey {
        EntryKey::rule(self.table_id, self.priority, self.matching)
    }

    /// What identifies its content.
    pub fn content(&self, key: EntryKey) -> u64 {
        rule_content(key, self.instructions, self.idle_timeout_s, self.hard_timeout_s)
    }
}

/// The fixed part of `ofp_flow_stats` before the match (7.3.5.2).
const RULE_HEAD: usize = 48;

/// The rules in the body of a reply.
pub fn rules(mut body: &[u8]) -> impl Iterator<Item = RuleEntry<'_>> {
    std::iter::from_fn(move || {
        let length = usize::from(u16_at(body, 0)?);
        let (entry, rest) = body.split_at_checked(length).filter(|_| length >= RULE_HEAD + 4)?;
        body = rest;
        rule(entry)
    })
}

fn rule(entry: &[u8]) -> Option<RuleEntry<'_>> {
    let match_len = usize::from(u16_at(entry, RULE_HEAD + 2)?);
    let matching = entry.get(RULE_HEAD + 4..RULE_HEAD + match_len)?;
    let instructions = entry.get(RULE_HEAD + match_len.next_multiple_of(8)..)?;
    Some(RuleEntry {
        table_id: *entry.get(2)?,
        duration_s: u32_at(entry, 4)?,
        priority: u16_at(entry, 12)?,
        idle_timeout_s: u16_at(entry, 14)?,
        hard_timeout_s: u16_at(entry, 16)?,
        cookie: u64_at(entry, 24)?,
        packets: u64_at(entry, 32)?,
        bytes: u64_at(entry, 40)?,
        matching,
        instructions,
    })
}

/// The groups in the body of a reply (7.3.5.10): their keys and contents.
pub fn groups(body: &[u8]) -> impl Iterator<Item = (EntryKey, u64)> {
    raw_groups(body).map(|(number, group_type, buckets)| {
        let key = EntryKey::group(number);
        (key, other_content(key, group_type.into(), buckets))
    })
}

/// The same as numbers, types and buckets.
pub fn raw_groups(mut body: &[u8]) -> impl Iterator<Item = (u32, u8, &[u8])> {
    std::iter::from_fn(move || {
        let length = usize::from(u16_at(body, 0)?);
        let (entry, rest) = body.split_at_checked(length).filter(|_| length >= 8)?;
        body = rest;
        Some((u32_at(entry, 4)?, entry[2], &entry[8..]))
    })
}

/// The meters in the body of a reply (7.3.5.13): their keys and contents.
pub fn meters(mut body: &[u8]) -> impl Iterator<Item = (EntryKey, u64)> {
    std::iter::from_fn(move || {
        let length = usize::from(u16_at(body, 0)?);
        let (entry, rest) = body.split_at_checked(length).filter(|_| length >= 8)?;
        body = rest;
        let key = EntryKey::meter(u32_at(entry, 4)?);
        Some((key, other_content(key, u16_at(entry, 2)?, &entry[8..])))
    })
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..)?.first_chunk().map(|number| u16::from_be_bytes(*number))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().map(|number| u32::from_be_bytes(*number))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..)?.first_chunk().map(|number| u64::from_be_bytes(*number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reading_ends_at_the_damage() {
        let mut entry = vec![0; 56];
        entry[..3].copy_from_slice(&[0, 56, 4]);
        entry[12..14].copy_from_slice(&[0, 9]);
        entry[24..32].copy_from_slice(&[0, 7, 0, 0, 0, 0, 0, 1]);
        entry[48..52].copy_from_slice(&[0, 1, 0, 4]);
        let two = [entry.clone(), entry.clone()].concat();
        assert_eq!(rules(&two).count(), 2);
        let rule = rules(&entry).next().unwrap();
        assert_eq!((rule.table_id, rule.priority, rule.cookie), (4, 9, 7 << 48 | 1));
        assert!(rule.matching.is_empty() && rule.instructions.is_empty());
        for end in 0..entry.len() {
            assert_eq!(rules(&entry[..end]).count(), 0, "cut to {end}");
        }
        let mut long_match = entry.clone();
        long_match[51] = 9;
        assert_eq!(rules(&long_match).count(), 0);
        assert_eq!(groups(&[0, 7, 0, 0, 0, 0, 0]).count(), 0);
        assert_eq!(
            groups(&[0, 8, 1, 0, 0, 0, 0, 5]).map(|(key, _)| key).collect::<Vec<_>>(),
            [EntryKey::group(5)]
        );
        assert_eq!(
            meters(&[0, 8, 0, 1, 0, 0, 0, 5]).map(|(key, _)| key).collect::<Vec<_>>(),
            [EntryKey::meter(5)]
        );
    }
}
