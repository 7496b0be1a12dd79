//! Wide rules: those that match every packet which some app wants to receive, and the tables that these packets reach.
//!
//! ```text
//!   rules that were sent, rules that a switch says it has ──> WideRules::apply
//!   what an app wants (Wish) ──> WideRules::reached ──> the tables in which a wide rule could keep all of it from the app
//! ```
//!
//! All packets begin in table 0. They reach a later table if a wide rule passes them on as they came: by goto-table, with
//! no meter that could drop them, and with no change that lasts. A rule that changes packets, or limits them, takes them.
//!
//! In: rules with their owners, modifies and deletes. Out: tables. It never decides what to do, and never learns that a rule
//! timed out: the caller says which of the rules still exist. Bounds: [`WIDE_MAX`] rules of each app at each switch; the caller refuses
//! more.

use crate::bounds::ALL_TABLES;
use crate::capability::Capability;
use crate::grant::BoundsHere;
use crate::rule_key::RuleKey;
use crate::zones::Zone;
use abi::ZoneId;
use flow::canonical::read_instructions;
use flow::relation::covers;
use flow::{Action, DatapathId, Field, Instruction, Match, MatchEntry, PortNo};
use std::collections::HashMap;

/// How many wide rules of one app at one switch are known. An app needs a few in each table. Each decision on one compares
/// all of them with what each app wants. The bound is for each app, so that none takes the room of others.
pub(crate) const WIDE_MAX: usize = 256;

/// The last table that a rule can be in (OFPTT_MAX).
const LAST_TABLE: u8 = 254;

/// What an app wants to receive of a switch's packets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wish<'a> {
    pub zone: ZoneId,
    /// Its subscription; `None`: all packets.
    packets: Option<&'a Match>,
    /// The packets that it may receive; `None`: all.
    space: Option<BoundsHere<'a>>,
}

impl<'a> Wish<'a> {
    /// What this app wants. `None`: it may receive no packet of this switch.
    pub fn of(zone: ZoneId, there: &'a Zone, datapath: DatapathId) -> Option<Wish<'a>> {
        let is_bounded = there.grant.is_bounded(Capability::PacketIn);
        let bounds = there.grant.packets_in();
        if is_bounded && !bounds.has_switch(datapath) {
            return None;
        }
        let space = Some(bounds.at(datapath)).filter(|here| is_bounded && here.flowspace.is_some());
        Some(Wish { zone, packets: there.subscription.packets(), space })
    }

    /// Whether a rule with this match takes all of it.
    pub fn is_all_in(&self, matching: &Match) -> bool {
        matching.is_any()
            || self.packets.is_some_and(|packets| covers(matching, packets))
            || self.space.is_some_and(|space| has_all_of(matching, space))
            || self.packets.is_none() && covers_all(matching)
    }
}

/// Whether a match covers every packet within the bounds.
fn has_all_of(matching: &Match, space: BoundsHere<'_>) -> bool {
    let own = |port: &PortNo| covers(matching, &Match::any().with(Field::InPort, *port));
    space.flowspace.into_iter().flatten().all(|one| covers(matching, one)) && space.own_ports.iter().all(own)
}

/// Whether a match covers every packet. It may name fields with masks of zeros.
pub(crate) fn covers_all(matching: &Match) -> bool {
    matching.is_any() || covers(matching, &Match::any())
}

/// The match without the fields that each packet has when it arrives, before a rule writes something else: metadata, tunnel id,
/// and fields of vendors like registers, of zeros. A packet of a tunnel has an id, so this may leave out too much.
pub(crate) fn of_arriving(matching: &Match) -> Match {
    let mut left = Match::any();
    for entry in matching.entries() {
        let is_zero = match entry {
            MatchEntry::Field { field: Field::Metadata | Field::TunnelId, value, .. } => *value == 0,
            MatchEntry::Field { .. } => false,
            MatchEntry::Unknown { header, body } => has_no_value(*header, body),
        };
        if !is_zero {
            left.put(entry.clone());
        }
    }
    left
}

/// Whether the value of a field of another class is zero (OXM, 1.3.5, 7.2.3.2).
fn has_no_value(header: u32, body: &[u8]) -> bool {
    const EXPERIMENTER_CLASS: u32 = 0xffff;
    const HAS_MASK: u32 = 1 << 8;
    let number_len = if header >> 16 == EXPERIMENTER_CLASS { 4 } else { 0 };
    let rest = body.get(number_len..).unwrap_or_default();
    let value_len = if header & HAS_MASK == 0 { rest.len() } else { rest.len() / 2 };
    rest.iter().take(value_len).all(|byte| *byte == 0)
}

/// A wide rule.
#[derive(Clone, Debug)]
pub(crate) struct Wide {
    pub table_id: u8,
    /// Its identity.
    pub key: RuleKey,
    /// With its owner, as the switch has it.
    pub cookie: u64,
    pub owner: ZoneId,
    pub priority: u16,
    pub matching: Match,
    /// The same, as [`of_arriving`] returns it.
    pub arriving: Match,
    /// The later table to which it passes packets on as they came.
    pub to: Option<u8>,
}

/// The rules that a modify or a delete reaches.
#[derive(Clone, Debug)]
pub(crate) struct Reach {
    /// [`ALL_TABLES`]: each.
    pub table_id: u8,
    /// The priority of a strict one.
    pub priority: Option<u16>,
    pub matching: Match,
    pub cookie: u64,
    pub cookie_mask: u64,
}

impl Reach {
    /// Whether it reaches this rule.
    pub fn has(&self, rule: &Wide) -> bool {
        let is_in_table = self.table_id == ALL_TABLES || self.table_id == rule.table_id;
        let is_in_match = || match self.priority {
            // The same match may be written in several ways.
            Some(priority) => {
                priority == rule.priority
                    && covers(&self.matching, &rule.matching)
                    && covers(&rule.matching, &self.matching)
            }
            None => covers(&self.matching, &rule.matching),
        };
        is_in_table && (self.cookie ^ rule.cookie) & self.cookie_mask == 0 && is_in_match()
    }
}

/// What a flow mod does to the wide rules of a switch.
#[derive(Clone, Debug)]
pub(crate) enum Change {
    /// Adds one, in place of the one with its key.
    Add(Wide),
    /// Changes the instructions of those that it reaches: they pass packets on to this table.
    Modify(Reach, Option<u8>),
    /// Deletes those that it reaches.
    Delete(Reach),
}

impl Change {
    /// The table to which a rule passes packets on once this was sent; `None`: the rule is not there any more.
    fn passes_to(&self, rule: &Wide) -> Option<Option<u8>> {
        match self {
            Change::Add(new) => (new.key != rule.key).then_some(rule.to),
            Change::Modify(reach, to) if reach.has(rule) => Some(*to),
            Change::Delete(reach) if reach.has(rule) => None,
            Change::Modify(..) | Change::Delete(_) => Some(rule.to),
        }
    }
}

/// A set of tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tables([u64; 4]);

impl Tables {
    fn insert(&mut self, table_id: u8) {
        self.0[usize::from(table_id >> 6)] |= 1 << (table_id & 63);
    }

    /// Whether a table is in it.
    pub fn contains(&self, table_id: u8) -> bool {
        self.0[usize::from(table_id >> 6)] & 1 << (table_id & 63) != 0
    }

    /// All but table 0.
    pub fn behind_first(self) -> impl Iterator<Item = u8> {
        (1..=LAST_TABLE).filter(move |table_id| self.contains(*table_id))
    }
}

/// The wide rules of all switches, in the order of their tables.
#[derive(Clone, Debug, Default)]
pub(crate) struct WideRules {
    by_switch: HashMap<DatapathId, Vec<Wide>>,
}

impl WideRules {
    /// Whether no switch has any.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.by_switch.is_empty()
    }

    /// Those of a switch.
    pub fn of(&self, datapath: DatapathId) -> &[Wide] {
        self.by_switch.get(&datapath).map_or(&[], Vec::as_slice)
    }

    /// How many a switch has.
    pub fn count(&self, datapath: DatapathId) -> usize {
        self.of(datapath).len()
    }

    /// Whether this rule replaces one, or the bound is not reached.
    pub fn has_room_for(&self, datapath: DatapathId, rule: &Wide) -> bool {
        let rules = self.of(datapath);
        let of_app = rules.iter().filter(|it| it.owner == rule.owner).count();
        of_app < WIDE_MAX || rules.iter().any(|it| it.key == rule.key)
    }

    /// Whether a change makes any of the rules different.
    pub fn is_changed_by(&self, datapath: DatapathId, change: &Change) -> bool {
        self.of(datapath).iter().any(|rule| change.passes_to(rule) != Some(rule.to))
    }

    /// A change was sent. Returns the rules that it has deleted.
    pub fn apply(&mut self, datapath: DatapathId, change: Change) -> Vec<Wide> {
        let new = match change {
            Change::Add(new) => new,
            change => {
                let Some(rules) = self.by_switch.get_mut(&datapath) else { return Vec::new() };
                let gone = rules.extract_if(.., |rule| match change.passes_to(rule) {
                    Some(to) => {
                        rule.to = to;
                        false
                    }
                    None => true,
                });
                let gone: Vec<Wide> = gone.collect();
                if rules.is_empty() {
                    self.by_switch.remove(&datapath);
                }
                return gone;
            }
        };
        let rules = self.by_switch.entry(datapath).or_default();
        rules.retain(|it| it.key != new.key);
        let place = rules.partition_point(|it| it.table_id <= new.table_id);
        rules.insert(place, new);
        Vec::new()
    }

    /// Drops those that are gone.
    pub fn keep_those_there(&mut self, datapath: DatapathId, is_there: impl Fn(&Wide) -> bool) {
        if let Some(rules) = self.by_switch.get_mut(&datapath) {
            rules.retain(is_there);
            if rules.is_empty() {
                self.by_switch.remove(&datapath);
            }
        }
    }

    /// A switch has connected or disconnected.
    pub fn forget(&mut self, datapath: DatapathId) {
        self.by_switch.remove(&datapath);
    }

    /// The rules of a switch once a change was sent, each with the table to which it passes packets on, in the order of
    /// their tables.
    pub fn after<'a>(
        &'a self,
        datapath: DatapathId,
        change: Option<&'a Change>,
    ) -> impl Iterator<Item = (&'a Wide, Option<u8>)> {
        let mut new = match change {
            Some(Change::Add(new)) => Some(new),
            _ => None,
        };
        let mut known = self.of(datapath).iter().peekable();
        std::iter::from_fn(move || {
            loop {
                let next = known.peek().map(|rule| rule.table_id);
                if let Some(new) = new.take_if(|new| next.is_none_or(|next| new.table_id <= next)) {
                    return Some((new, new.to));
                }
                let rule = known.next()?;
                if let Some(to) = change.map_or(Some(rule.to), |change| change.passes_to(rule)) {
                    return Some((rule, to));
                }
            }
        })
    }

    /// The tables that all packets of a wish reach, once a change was sent. Rules pass packets only to later tables, and are
    /// in the order of their tables. So one pass finds all of them.
    pub fn reached(&self, datapath: DatapathId, wish: &Wish<'_>, change: Option<&Change>) -> Tables {
        let mut reached = Tables([1, 0, 0, 0]);
        for (rule, to) in self.after(datapath, change) {
            if let Some(to) = to.filter(|_| reached.contains(rule.table_id))
                && wish.is_all_in(&rule.arriving)
            {
                reached.insert(to);
            }
        }
        reached
    }
}

/// The later table to which a rule of this table passes packets on as they came. A switch refuses a goto-table to any
/// other table (OpenFlow 1.3.5, 5.1).
#[cold]
pub(crate) fn passes_on(table_id: u8, instructions: &[u8]) -> Option<u8> {
    let mut to = None;
    for instruction in read_instructions(instructions).ok()? {
        match instruction {
            Instruction::GotoTable(table) => to = Some(table),
            Instruction::ApplyActions(actions) if keeps_packets(&actions) => {}
            // The action set comes after the last table. A packet-in of a later table is sent before.
            Instruction::WriteActions(_) | Instruction::ClearActions => {}
            _ => return None,
        }
    }
    to.filter(|to| *to > table_id && *to <= LAST_TABLE)
}

/// Whether a packet goes on as it came. Copies may leave with a tag that is taken off again.
fn keeps_packets(actions: &[Action]) -> bool {
    let mut tags = 0_u32;
    let is_harmless = actions.iter().all(|action| match action {
        Action::Output { .. } | Action::Group(_) | Action::SetQueue(_) => true,
        Action::PushVlan(_) => {
            tags += 1;
            true
        }
        Action::PopVlan => {
            let had = tags > 0;
            tags = tags.saturating_sub(1);
            had
        }
        Action::SetField { field: Field::VlanVid | Field::VlanPcp, .. } => tags > 0,
        _ => false,
    });
    is_harmless && tags == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use abi::zone_id::COOKIE_MASK;
    use flow::canonical::write_instructions;
    use flow::text::{parse_instructions, parse_match};

    const SWITCH: DatapathId = DatapathId(1);
    const EVERYTHING: Wish<'static> = Wish { zone: ZoneId(1), packets: None, space: None };

    #[test]
    fn packets_are_passed_on_only_as_they_came() {
        let check = |text: &str, expected: Option<u8>| {
            let mut bytes = Vec::new();
            write_instructions(&parse_instructions(text).unwrap(), &mut bytes).unwrap();
            assert_eq!(passes_on(1, &bytes), expected, "{text}");
        };
        check("goto_table:2", Some(2));
        check("output:1,group:3,goto_table:2", Some(2));
        check("push_vlan:0x8100,set_field:5->vlan_vid,output:1,pop_vlan,goto_table:2", Some(2));
        check("write_actions(set_field:5->vlan_vid),goto_table:2", Some(2));
        check("output:1", None);
        check("drop", None);
        check("meter:1,goto_table:2", None);
        check("set_field:02:00:00:00:00:01->eth_src,goto_table:2", None);
        check("set_field:5->vlan_vid,output:1,goto_table:2", None);
        check("pop_vlan,push_vlan:0x8100,goto_table:2", None);
        check("push_vlan:0x8100,goto_table:2", None);
        check("dec_ttl,goto_table:2", None);
        check("write_metadata:1,goto_table:2", None);
        assert_eq!(passes_on(3, &[0, 1, 0, 8, 2, 0, 0, 0]), None, "only a later table");
    }

    fn wide(table_id: u8, key: u64, text: &str, to: Option<u8>) -> Wide {
        let matching = parse_match(text).unwrap();
        let (owner, cookie, arriving) = (ZoneId(2), ZoneId(2).stamp(7), of_arriving(&matching));
        Wide { table_id, key: RuleKey(key), cookie, owner, priority: 5, matching, arriving, to }
    }

    fn add(rules: &mut WideRules, rule: Wide) {
        assert!(rules.apply(SWITCH, Change::Add(rule)).is_empty());
    }

    fn reached(rules: &WideRules, wish: &Wish<'_>, more: Option<Wide>) -> Vec<u8> {
        rules.reached(SWITCH, wish, more.map(Change::Add).as_ref()).behind_first().collect()
    }

    /// What a loose modify or delete of the same app reaches.
    fn loose(table_id: u8, text: &str) -> Reach {
        let matching = parse_match(text).unwrap();
        let (cookie, cookie_mask) = (ZoneId(2).stamp(0), !COOKIE_MASK);
        Reach { table_id, priority: None, matching, cookie, cookie_mask }
    }

    #[test]
    fn packets_reach_the_tables_to_which_rules_of_reached_tables_pass_them() {
        let mut rules = WideRules::default();
        // In any order: the first that is noted is the last that packets meet.
        add(&mut rules, wide(4, 1, "", Some(6)));
        add(&mut rules, wide(2, 2, "", Some(4)));
        add(&mut rules, wide(1, 3, "arp", Some(5)));
        add(&mut rules, wide(7, 4, "", Some(9)));
        assert!(reached(&rules, &EVERYTHING, None).is_empty());
        let first = wide(0, 5, "", Some(2));
        assert_eq!(reached(&rules, &EVERYTHING, Some(first.clone())), [2, 4, 6]);
        let arp = parse_match("arp").unwrap();
        let of_arp = Wish { packets: Some(&arp), ..EVERYTHING };
        let to_first = wide(0, 6, "arp", Some(1));
        assert_eq!(reached(&rules, &of_arp, Some(to_first.clone())), [1, 5]);
        assert!(reached(&rules, &EVERYTHING, Some(to_first)).is_empty(), "only ARP goes there");
        add(&mut rules, first);
        assert_eq!(reached(&rules, &EVERYTHING, Some(wide(2, 2, "", None))), [2], "the rule is replaced");
        rules.keep_those_there(SWITCH, |it| it.key != RuleKey(1));
        assert_eq!(reached(&rules, &EVERYTHING, None), [2, 4]);
    }

    #[test]
    fn a_loose_modify_changes_all_rules_of_its_owner_within_its_match() {
        let mut rules = WideRules::default();
        let of_other = Wide { owner: ZoneId(3), cookie: ZoneId(3).stamp(7), ..wide(0, 2, "", Some(3)) };
        add(&mut rules, wide(0, 1, "", Some(2)));
        add(&mut rules, of_other);
        let drops = Change::Modify(loose(0, ""), None);
        assert!(rules.is_changed_by(SWITCH, &drops));
        assert!(rules.apply(SWITCH, drops.clone()).is_empty());
        assert_eq!((rules.count(SWITCH), reached(&rules, &EVERYTHING, None)), (2, vec![3]));
        assert!(!rules.is_changed_by(SWITCH, &drops), "they drop already");
        let elsewhere = Change::Modify(loose(1, ""), Some(5));
        assert!(!rules.is_changed_by(SWITCH, &elsewhere));
        assert_eq!(rules.reached(SWITCH, &EVERYTHING, Some(&elsewhere)), Tables([1 | 1 << 3, 0, 0, 0]));
    }

    #[test]
    fn a_delete_reaches_the_rules_that_the_switch_deletes() {
        let check = |reach: Reach, expected: &[u64]| {
            let mut rules = WideRules::default();
            add(&mut rules, wide(0, 1, "", Some(2)));
            add(&mut rules, wide(0, 2, "arp", Some(2)));
            add(&mut rules, wide(2, 3, "", None));
            let deleted = rules.apply(SWITCH, Change::Delete(reach));
            assert_eq!(deleted.iter().map(|it| it.key.0).collect::<Vec<_>>(), expected);
            assert_eq!(rules.count(SWITCH), 3 - expected.len());
        };
        let any = loose(0, "");
        check(any.clone(), &[1, 2]);
        check(Reach { table_id: ALL_TABLES, ..any.clone() }, &[1, 2, 3]);
        check(loose(0, "arp"), &[2]);
        check(loose(0, "arp,in_port=1"), &[]);
        check(Reach { table_id: ALL_TABLES, priority: Some(5), ..any.clone() }, &[1, 3]);
        check(Reach { priority: Some(6), ..any.clone() }, &[]);
        check(Reach { cookie: ZoneId(3).stamp(0), ..any.clone() }, &[]);
        check(Reach { cookie: ZoneId(2).stamp(8), cookie_mask: u64::MAX, ..any.clone() }, &[]);
        check(Reach { cookie_mask: 0, cookie: 0, ..any }, &[1, 2]);
    }

    #[test]
    fn masks_of_zeros_leave_every_packet_in() {
        let mut matching = Match::any();
        matching.set_masked(Field::EthDst, 0, 0);
        assert!(covers_all(&matching) && EVERYTHING.is_all_in(&matching));
        assert!(!covers_all(&parse_match("in_port=1").unwrap()));
    }

    #[test]
    fn fields_that_each_packet_has_when_it_arrives_leave_every_packet_in() {
        let check = |text: &str, expected: &str| {
            let arriving = of_arriving(&parse_match(text).unwrap());
            assert_eq!(arriving, parse_match(expected).unwrap(), "{text}");
        };
        check("metadata=0", "");
        check("metadata=0/0xff", "");
        check("metadata=1", "metadata=1");
        check("tun_id=0,arp", "arp");
        check("in_port=1", "in_port=1");
        let of_vendor = |header, body: &[u8]| {
            let mut matching = Match::any();
            matching.put(MatchEntry::Unknown { header, body: body.to_vec() });
            of_arriving(&matching).is_any()
        };
        assert!(of_vendor(0x0001_0004, &[0; 4]) && !of_vendor(0x0001_0004, &[0, 0, 0, 1]));
        assert!(of_vendor(0x0001_0108, &[0, 0, 0, 0, 0, 0, 0, 1]));
        assert!(of_vendor(0xffff_0006, &[0, 0, 0x23, 0x20, 0, 0]));
        assert!(!of_vendor(0xffff_0006, &[0, 0, 0x23, 0x20, 0, 1]));
    }
}
