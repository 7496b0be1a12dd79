//! Wide rules: those that match every packet which some app wants to receive, and the tables that these packets reach.
//!
//! ```text
//!   rules that were sent, rules that a switch says it has ──> WideRules::note
//!   what an app wants (Wish) ──> WideRules::reached ──> the tables in which a wide rule could keep all of it from the app
//! ```
//!
//! All packets begin in table 0. They reach a later table if a wide rule passes them on as they came: by goto-table, with
//! no meter that could drop them, and with no change that lasts. A rule that changes packets, or limits them, takes them.
//!
//! In: rules with their owners. Out: tables. It never decides what to do, and never learns that a rule was removed: the
//! caller says which of the rules still exist. Bounds: [`WIDE_MAX`] rules of each app at each switch; the caller refuses
//! more.

use crate::capability::Capability;
use crate::rule_key::RuleKey;
use crate::zones::Zone;
use abi::ZoneId;
use flow::canonical::read_instructions;
use flow::relation::covers;
use flow::{Action, DatapathId, Field, Instruction, Match};
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
    space: Option<&'a [Match]>,
}

impl<'a> Wish<'a> {
    /// What this app wants. `None`: it may receive no packet of this switch.
    pub fn of(zone: ZoneId, there: &'a Zone, datapath: DatapathId) -> Option<Wish<'a>> {
        let is_bounded = there.grant.is_bounded(Capability::PacketIn);
        let bounds = there.grant.packets_in();
        if is_bounded && bounds.datapaths.as_ref().is_some_and(|granted| !granted.contains(&datapath)) {
            return None;
        }
        let space = bounds.flowspace.as_deref().filter(|_| is_bounded);
        Some(Wish { zone, packets: there.subscription.packets(), space })
    }

    /// Whether a rule with this match takes all of it.
    pub fn is_all_in(&self, matching: &Match) -> bool {
        matching.is_any()
            || self.packets.is_some_and(|packets| covers(matching, packets))
            || self.space.is_some_and(|space| space.iter().all(|one| covers(matching, one)))
            || self.packets.is_none() && covers_all(matching)
    }
}

/// Whether a match covers every packet. It may name fields with masks of zeros.
pub(crate) fn covers_all(matching: &Match) -> bool {
    matching.is_any() || covers(matching, &Match::any())
}

/// A wide rule.
#[derive(Clone, Debug)]
pub(crate) struct Wide {
    pub table_id: u8,
    /// Its identity. `None`: a loose modify, which gave these instructions to all rules of its owner within its match.
    pub key: Option<RuleKey>,
    pub owner: ZoneId,
    pub priority: u16,
    pub matching: Match,
    /// The later table to which it passes packets on as they came.
    pub to: Option<u8>,
}

impl Wide {
    /// Whether an older rule is not there, or not as it was, once this one is.
    pub fn replaces(&self, older: &Wide) -> bool {
        let is_modified = self.key.is_none()
            && (self.table_id, self.owner) == (older.table_id, older.owner)
            && covers(&self.matching, &older.matching);
        is_modified || self.key.is_some() && self.key == older.key
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
        of_app < WIDE_MAX || rules.iter().any(|it| rule.replaces(it))
    }

    /// Keeps a rule. A loose modify changes the rules that it reaches, and adds none.
    pub fn note(&mut self, datapath: DatapathId, rule: Wide) {
        let rules = self.by_switch.entry(datapath).or_default();
        if rule.key.is_none() {
            rules.iter_mut().filter(|it| rule.replaces(it)).for_each(|it| it.to = rule.to);
            return;
        }
        rules.retain(|it| !rule.replaces(it));
        let place = rules.partition_point(|it| it.table_id <= rule.table_id);
        rules.insert(place, rule);
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

    /// The tables that all packets of a wish reach, if `more` is added. Rules pass packets only to later tables, and are in
    /// the order of their tables. So one pass finds all of them.
    pub fn reached(&self, datapath: DatapathId, wish: &Wish<'_>, more: Option<&Wide>) -> Tables {
        let mut reached = Tables([1, 0, 0, 0]);
        let known = self.of(datapath).iter().filter(|it| more.is_none_or(|more| !more.replaces(it)));
        let mut pass = |rule: &Wide| {
            if let Some(to) = rule.to.filter(|_| reached.contains(rule.table_id))
                && wish.is_all_in(&rule.matching)
            {
                reached.insert(to);
            }
        };
        let mut more = more;
        for rule in known {
            if let Some(new) = more.take_if(|new| new.table_id <= rule.table_id) {
                pass(new);
            }
            pass(rule);
        }
        more.into_iter().for_each(pass);
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
        Wide { table_id, key: Some(RuleKey(key)), owner: ZoneId(2), priority: 5, matching, to }
    }

    fn reached(rules: &WideRules, wish: &Wish<'_>, more: Option<&Wide>) -> Vec<u8> {
        rules.reached(SWITCH, wish, more).behind_first().collect()
    }

    #[test]
    fn packets_reach_the_tables_to_which_rules_of_reached_tables_pass_them() {
        let mut rules = WideRules::default();
        // In any order: the first that is noted is the last that packets meet.
        rules.note(SWITCH, wide(4, 1, "", Some(6)));
        rules.note(SWITCH, wide(2, 2, "", Some(4)));
        rules.note(SWITCH, wide(1, 3, "arp", Some(5)));
        rules.note(SWITCH, wide(7, 4, "", Some(9)));
        assert!(reached(&rules, &EVERYTHING, None).is_empty());
        let first = wide(0, 5, "", Some(2));
        assert_eq!(reached(&rules, &EVERYTHING, Some(&first)), [2, 4, 6]);
        let arp = parse_match("arp").unwrap();
        let of_arp = Wish { packets: Some(&arp), ..EVERYTHING };
        let to_first = wide(0, 6, "arp", Some(1));
        assert_eq!(reached(&rules, &of_arp, Some(&to_first)), [1, 5]);
        assert!(reached(&rules, &EVERYTHING, Some(&to_first)).is_empty(), "only ARP goes there");
        rules.note(SWITCH, first);
        assert_eq!(reached(&rules, &EVERYTHING, Some(&wide(2, 2, "", None))), [2], "the rule is replaced");
        rules.keep_those_there(SWITCH, |it| it.key != Some(RuleKey(1)));
        assert_eq!(reached(&rules, &EVERYTHING, None), [2, 4]);
    }

    #[test]
    fn a_loose_modify_changes_all_rules_of_its_owner_within_its_match() {
        let mut rules = WideRules::default();
        rules.note(SWITCH, wide(0, 1, "", Some(2)));
        rules.note(SWITCH, Wide { owner: ZoneId(3), ..wide(0, 2, "", Some(3)) });
        rules.note(SWITCH, Wide { key: None, ..wide(0, 0, "", None) });
        assert_eq!((rules.count(SWITCH), reached(&rules, &EVERYTHING, None)), (2, vec![3]));
    }

    #[test]
    fn masks_of_zeros_leave_every_packet_in() {
        let mut matching = Match::any();
        matching.set_masked(Field::EthDst, 0, 0);
        assert!(covers_all(&matching) && EVERYTHING.is_all_in(&matching));
        assert!(!covers_all(&parse_match("in_port=1").unwrap()));
    }
}
