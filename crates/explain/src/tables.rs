//! What is in one switch, as far as a packet's way depends on it.
//!
//! In: rules, groups and ports, as the switch reports them. Out: the rule that a packet matches, and the live buckets of groups. It changes
//! nothing.

use flow::frame::FrameFields;
use flow::{Action, EXACT_PRIORITY_V10, Instruction, Match, MatchEntry, PortNo, is_exact_in_v10};
use std::collections::{BTreeMap, BTreeSet};

/// A rule in a switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Its table.
    pub table_id: u8,
    /// Its priority.
    pub priority: u16,
    /// Which packets it is for.
    pub matching: Match,
    /// What it does with them.
    pub instructions: Vec<Instruction>,
}

/// The kind of a group (OpenFlow 1.3.5, 5.6.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupKind {
    /// Each bucket gets a copy.
    All,
    /// One bucket, which the switch selects.
    Select,
    /// The one bucket.
    Indirect,
    /// The first live bucket.
    FastFailover,
}

/// `OFPG_ANY`: no group is watched.
pub const GROUP_NONE: u32 = 0xffff_ffff;

/// One way of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bucket {
    /// Its share in a select group.
    pub weight: u16,
    /// The port whose liveness counts; `ANY`: none.
    pub watch_port: PortNo,
    /// The group whose liveness counts; [`GROUP_NONE`]: none.
    pub watch_group: u32,
    /// Its action set.
    pub actions: Vec<Action>,
}

/// A group in a switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// What it does with its buckets.
    pub kind: GroupKind,
    /// Its buckets.
    pub buckets: Vec<Bucket>,
}

/// What is in a switch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tables {
    /// Whether its session is of OpenFlow 1.0. Such a switch sends a packet that no rule matches to the controller.
    pub is_v10: bool,
    /// Its rules, in any order.
    pub rules: Vec<Rule>,
    /// Its groups, by number.
    pub groups: BTreeMap<u32, Group>,
    /// The numbers of its meters.
    pub meters: BTreeSet<u32>,
    /// Its ports, and whether each is live.
    pub ports: BTreeMap<PortNo, bool>,
}

/// The rules of one table that a packet matches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Matching {
    /// The rule of the highest priority.
    pub(crate) best: Option<usize>,
    /// Others of the same priority: the switch may take any of them (1.3.5, 5.3).
    pub(crate) equal: Vec<usize>,
    /// Rules of at least this priority with a field of another class, which may match.
    pub(crate) unsure: Vec<usize>,
}

impl Tables {
    /// The priority by which the switch chooses a rule.
    fn rank(&self, rule: &Rule) -> u16 {
        match self.is_v10 && is_exact_in_v10(&rule.matching) {
            true => EXACT_PRIORITY_V10,
            false => rule.priority,
        }
    }

    /// The rules of a table that match a packet with these fields.
    pub(crate) fn matching(&self, table_id: u8, fields: &FrameFields) -> Matching {
        let mut found = Matching::default();
        let mut highest = 0;
        for (number, rule) in self.rules.iter().enumerate().filter(|(_, rule)| rule.table_id == table_id) {
            if !known_part_matches(&rule.matching, fields) {
                continue;
            }
            let rank = self.rank(rule);
            if rule.matching.entries().iter().any(|entry| matches!(entry, MatchEntry::Unknown { .. })) {
                found.unsure.push(number);
            } else if found.best.is_none() || rank > highest {
                found.best = Some(number);
                found.equal.clear();
                highest = rank;
            } else if rank == highest {
                found.equal.push(number);
            }
        }
        let may_win = |number: &usize| found.best.is_none() || self.rank(&self.rules[*number]) >= highest;
        found.unsure.retain(may_win);
        found
    }

    /// Whether a port is live. An unknown port is not.
    pub(crate) fn is_live(&self, port: PortNo) -> bool {
        self.ports.get(&port).copied().unwrap_or_default()
    }

    /// Whether what a bucket watches is live.
    pub(crate) fn bucket_is_live(&self, bucket: &Bucket) -> bool {
        self.watched_is_live(bucket, &mut BTreeSet::new())
    }

    fn watched_is_live(&self, bucket: &Bucket, seen: &mut BTreeSet<u32>) -> bool {
        if bucket.watch_port != PortNo::ANY && self.is_live(bucket.watch_port) {
            return true;
        }
        // A group that was seen before is not live, or part of a circle, which makes no group live.
        bucket.watch_group != GROUP_NONE
            && seen.insert(bucket.watch_group)
            && self
                .groups
                .get(&bucket.watch_group)
                .is_some_and(|group| group.buckets.iter().any(|inner| self.watched_is_live(inner, seen)))
    }
}

impl Bucket {
    /// Whether it watches a port or a group.
    pub(crate) fn watches(&self) -> bool {
        self.watch_port != PortNo::ANY || self.watch_group != GROUP_NONE
    }
}

/// Whether the fields of OpenFlow in a match are those of the packet, whatever fields of other classes say.
fn known_part_matches(matching: &Match, fields: &FrameFields) -> bool {
    matching.entries().iter().all(|entry| match entry {
        MatchEntry::Field { mask: Some(0), .. } | MatchEntry::Unknown { .. } => true,
        MatchEntry::Field { field, value, mask } => {
            let mask = mask.unwrap_or(field.full_mask());
            fields.get(*field).is_some_and(|there| (there ^ value) & mask == 0)
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use flow::text::parse_match;

    fn rule(priority: u16, matching: &str) -> Rule {
        let matching = parse_match(matching).unwrap();
        Rule { table_id: 0, priority, matching, instructions: Vec::new() }
    }

    #[test]
    fn a_rule_that_may_match_is_named_only_if_it_may_win() {
        let check = |rules: &[(u16, &str)], expected: (Option<usize>, &[usize], &[usize])| {
            let rules = rules.iter().map(|(priority, text)| rule(*priority, text)).collect();
            let tables = Tables { rules, ..Tables::default() };
            let found = tables.matching(0, &FrameFields::read(&[0xff; 14]).from_port(PortNo(1)));
            assert_eq!((found.best, &*found.equal, &*found.unsure), expected);
        };
        check(&[], (None, &[], &[]));
        check(&[(5, "in_port=2"), (1, "")], (Some(1), &[], &[]));
        check(&[(5, "in_port=1"), (5, ""), (4, "")], (Some(0), &[1], &[]));
        check(&[(5, "reg0=7"), (5, ""), (4, "reg1=1")], (Some(1), &[], &[0]));
        check(&[(5, "reg0=7,in_port=2")], (None, &[], &[]));
        check(&[(5, "reg0=7")], (None, &[], &[0]));
    }

    /// Whether a rule with all fields of 1.0 is chosen, beside one of all packets with a higher priority.
    fn check_all_fields(tag: &str, is_v10: bool, wins: bool) {
        let exact = format!(
            "in_port=1,tcp,dl_src=00:00:00:00:00:01,dl_dst=00:00:00:00:00:02,{tag},nw_src=10.0.0.1,nw_dst=10.0.0.2,nw_tos=0,tp_src=1,tp_dst=2"
        );
        let fields = crate::read_packet(exact.trim_start_matches("in_port=1,")).unwrap().fields(PortNo(1), 0);
        let tables = Tables { is_v10, rules: vec![rule(1, &exact), rule(9, "")], ..Tables::default() };
        assert_eq!(tables.matching(0, &fields).best, Some(usize::from(!wins)), "{tag}");
    }

    #[test]
    fn in_1_0_an_exact_match_wins() {
        let tagged = "dl_vlan=5,dl_vlan_pcp=3";
        check_all_fields(tagged, true, true);
        check_all_fields(tagged, false, false);
        // 1.0 has a form of this match that is not exact.
        check_all_fields("vlan_vid=0", true, false);
    }
}
