//! The app `acl`: an ordered list of lines that permit or deny packets, as rules in every switch.
//!
//! ```text
//!   settings ──> list ──> rules;   switch up ──> the rules of this list, then all rules of earlier lists go
//! ```
//!
//! In: settings, switches. Out: rules. It sees no packets. Its rules stay in the switches while it is down, and a new list replaces an
//! old one without a gap: its rules are added first.

mod list;

use crate::list::{Entry, HIGHEST_PRIORITY, Rule, Verdict};
use burnet_sdk::flow::canonical::write_match;
use burnet_sdk::flow::text::match_to_string;
use burnet_sdk::{
    App, AppTable, Commands, DatapathId, InstructionWriter, Interests, Level, OpenFlowVersion, Outcome,
    Receipt, Settings, SwitchUp,
};
use serde::Deserialize;
use std::collections::BTreeSet;
use std::process::ExitCode;

/// What the operator may set under `[app.acl.settings]`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct AclSettings {
    /// The lines, in order: `permit MATCH` or `deny MATCH`, in the syntax of `ovs-ofctl`.
    rules: Vec<String>,
    /// What happens to packets that no line matches.
    default: Otherwise,
    /// The table to which permitted packets go. Without it, the switch has only rules that drop.
    next_table: Option<u8>,
    /// The switches. Empty: all.
    switches: BTreeSet<DatapathId>,
}

/// What happens to packets that no line matches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Otherwise {
    #[default]
    Permit,
    Deny,
}

/// The highest table to which the app may pass packets on, by its manifest.
const NEXT_TABLE_MAX: u8 = 9;

/// The bits of the cookie that tell one list from another.
const LIST_BITS: u32 = 24;

/// The access list.
pub struct Acl {
    rules: Vec<Rule>,
    /// The list for switches with one table, although others pass packets on. The error says why there is none.
    of_one_table: Result<Vec<Rule>, String>,
    next_table: Option<u8>,
    switches: BTreeSet<DatapathId>,
    /// The cookie of its rules, which depends on the list.
    cookie: u64,
}

/// The app's table, for the kernel process of a node that has it built in. It is here and not there so that its code is built as the app's is.
pub static TABLE: AppTable = burnet_sdk::table::<Acl>();

/// Serves a zone until that ends, for a node that has the app built in.
pub fn run() -> ExitCode {
    burnet_sdk::run::<Acl>()
}

impl App for Acl {
    fn new(settings: &Settings) -> Result<Self, String> {
        let AclSettings { rules, default, next_table, switches } = settings.read()?;
        if next_table.is_some_and(|table| !(1..=NEXT_TABLE_MAX).contains(&table)) {
            return Err(format!(
                "its setting `next_table` is no table behind table 0 that its manifest names: write 1 to {NEXT_TABLE_MAX}"
            ));
        }
        let entries: Vec<Entry> = rules.iter().map(|line| list::read(line)).collect::<Result<_, _>>()?;
        let default = match default {
            Otherwise::Permit => Verdict::Permit,
            Otherwise::Deny => Verdict::Deny,
        };
        let of_one_table = list::for_one_table(&entries, default);
        let rules = match next_table {
            Some(_) => list::for_two_tables(&entries, default)?,
            None => of_one_table.clone()?,
        };
        let cookie = cookie_of(&rules, next_table);
        Ok(Acl { rules, of_one_table, next_table, switches, cookie })
    }

    fn serves_switches_apart(_: &Settings) -> bool {
        true
    }

    fn interests(&self) -> Interests {
        Interests::none().switches()
    }

    fn on_switch_up(&mut self, up: &SwitchUp, out: &mut Commands) {
        let is_wanted = self.switches.is_empty() || self.switches.contains(&up.datapath);
        // OpenFlow 1.0 has one table, and no cookie in a delete: there the earlier list goes first. A switch that is not listed loses the
        // present list too.
        let is_v10 = up.openflow == OpenFlowVersion::V1_0;
        let next = self.next_table.filter(|_| !is_v10);
        if is_v10 || !is_wanted {
            out.rule(up.datapath).delete_within().send_with_receipt();
        }
        match &self.of_one_table {
            _ if !is_wanted => {}
            Err(why) if self.next_table.is_some() && next.is_none() => {
                let text =
                    format!("{} does not follow the access list: it has one table, and {why}", up.datapath);
                out.log(Level::Error, &text);
            }
            Ok(rules) if next.is_none() => add(up.datapath, rules, None, self.cookie, out),
            _ => add(up.datapath, &self.rules, next, self.cookie, out),
        }
        if !is_v10 {
            remove_earlier(up.datapath, self.cookie, out);
        }
    }

    fn on_receipt(&mut self, datapath: DatapathId, receipt: &Receipt, out: &mut Commands) {
        if receipt.outcome != Outcome::Programmed {
            let text = format!("{datapath} does not follow the access list: {}", receipt.reason);
            out.log(Level::Error, &text);
        }
    }
}

fn add(switch: DatapathId, rules: &[Rule], next: Option<u8>, cookie: u64, out: &mut Commands) {
    for (priority, rule) in (0..=HIGHEST_PRIORITY).rev().zip(rules) {
        let mut matching = Vec::new();
        write_match(&rule.matching, &mut matching);
        let add = out.rule(switch).priority(priority).cookie(cookie).matching_bytes(&matching);
        match next.filter(|_| rule.verdict == Verdict::Permit) {
            Some(table) => {
                let go_on = |it: &mut InstructionWriter<'_>| {
                    it.goto_table(table);
                };
                add.instructions(go_on).send_with_receipt()
            }
            None => add.send_with_receipt(),
        };
    }
}

/// Removes the app's rules of other lists: for each bit of the cookie, those in which it is the opposite. So the rules of the present list
/// are never away.
fn remove_earlier(switch: DatapathId, cookie: u64, out: &mut Commands) {
    for bit in (0..LIST_BITS).map(|place| 1_u64 << place) {
        out.rule(switch).delete_within().with_cookie(!cookie & bit, bit).send_with_receipt();
    }
}

/// A number that differs between lists (FNV-1a, folded). Two lists with the same number leave rules behind, which is one in 16 million.
fn cookie_of(rules: &[Rule], next_table: Option<u8>) -> u64 {
    let text = |rule: &Rule| format!("{:?} {}\n", rule.verdict, match_to_string(&rule.matching));
    let all: String = rules.iter().map(text).chain([format!("{next_table:?}")]).collect();
    let hash = all.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    (hash ^ hash >> LIST_BITS) & ((1 << LIST_BITS) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use burnet_sdk::testing::Trial;

    fn check_refused(settings: &str, part: &str) {
        let refusal = Trial::<Acl>::start(settings).err().unwrap();
        assert!(refusal.contains(part), "{refusal}");
    }

    #[test]
    fn wrong_settings_are_refused_with_their_text() {
        check_refused(r#"{"rule": []}"#, "unknown field `rule`");
        check_refused(r#"{"rules": ["deny ip,nw_src=x"]}"#, "`deny ip,nw_src=x`");
        check_refused(r#"{"rules": ["permit tcp", "deny ip"]}"#, "set next_table");
        check_refused(r#"{"next_table": 0}"#, "write 1 to 9");
        check_refused(r#"{"default": "drop"}"#, "unknown variant `drop`");
    }

    /// The rules that a switch gets, without the deletes.
    fn rules(settings: &str, switch: u64) -> Vec<String> {
        let mut said = Trial::<Acl>::start(settings).unwrap().switch_up(switch, &[1]);
        let deletes = said.split_off(said.len() - LIST_BITS as usize);
        assert!(deletes.iter().all(|line| line.starts_with("delete-rule")), "{deletes:?}");
        said
    }

    #[test]
    fn one_table_has_only_what_is_denied() {
        let said = rules(r#"{"rules": ["permit ip,nw_src=10.0.0.0/25", "deny ip,nw_src=10.0.0.0/24"]}"#, 7);
        assert_eq!(
            said,
            [
                "add-rule of:0000000000000007 priority=52000 match=[eth_type=0x800,ipv4_src=0xa000080/0xffffff80] actions=[]"
            ]
        );
    }

    #[test]
    fn with_a_next_table_each_line_is_a_rule_and_the_default_the_last() {
        let said = rules(
            r#"{"rules": ["permit tcp6,tp_dst=22", "deny ipv6"], "default": "deny", "next_table": 1}"#,
            7,
        );
        assert_eq!(said.len(), 3);
        assert!(said[0].contains("priority=52000") && said[0].contains("actions=[GotoTable"), "{said:?}");
        assert!(said[1].ends_with("priority=51999 match=[eth_type=0x86dd] actions=[]"), "{said:?}");
        assert!(said[2].ends_with("priority=51998 match=[] actions=[]"), "{said:?}");
    }

    #[test]
    fn a_switch_that_is_not_listed_loses_the_rules() {
        let settings = r#"{"rules": ["deny arp"], "switches": ["of:1"]}"#;
        assert_eq!(rules(settings, 1).len(), 1);
        let said = rules(settings, 2);
        assert!(said.len() == 1 && said[0].starts_with("delete-rule"), "{said:?}");
    }

    #[test]
    fn every_earlier_list_differs_in_a_bit_that_is_deleted_and_the_present_one_in_none() {
        let list = |line: &str| vec![list::read(line).unwrap()];
        let (now, before) = (cookie_of(&list("deny arp"), None), cookie_of(&list("deny ip"), None));
        assert_ne!(now, before);
        assert_ne!(now, cookie_of(&list("deny arp"), Some(1)));
        assert!(now < 1 << LIST_BITS && before < 1 << LIST_BITS);
        let is_deleted = |cookie: u64| (0..LIST_BITS).any(|place| cookie >> place & 1 == !now >> place & 1);
        assert!(is_deleted(before) && !is_deleted(now));
    }
}
