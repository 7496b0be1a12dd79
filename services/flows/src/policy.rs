//! What happens to rules in switches that no set wants.
//!
//! In: settings of the operator, rules as switches report them. Out: whose a rule is, and whether it is removed. It removes nothing by
//! itself, and never a rule of the kernel or of another app of this node.

use crate::report::RuleEntry;
use flow::Match;
use serde::{Deserialize, Serialize};

/// The settings, in `[network.flows]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// How long after its start the service waits for apps to put their sets again, in seconds. Until then it removes no rule of an earlier run.
    pub grace_s: u64,
    /// Each switch is read so often, in seconds.
    pub audit_interval_s: u64,
    /// What happens to rules that no app of this node added: `report` or `remove`. The node grants `rule.delete.foreign` for the latter.
    pub foreign: Foreign,
    /// Rules with these cookies are left alone: `COOKIE` or `COOKIE/MASK` in hexadecimal digits.
    pub ignore_cookies: Vec<String>,
    /// Rules in these tables are left alone.
    pub ignore_tables: Vec<u8>,
    /// Rules within one of these matches are left alone.
    pub ignore_matches: Vec<String>,
}

/// What happens to rules that no app of this node added.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Foreign {
    /// They are counted and left alone.
    #[default]
    Report,
    /// They are removed, unless an ignore list names them.
    Remove,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            grace_s: GRACE_S_DEFAULT,
            audit_interval_s: AUDIT_INTERVAL_S_DEFAULT,
            foreign: Foreign::Report,
            ignore_cookies: Vec::new(),
            ignore_tables: Vec::new(),
            ignore_matches: Vec::new(),
        }
    }
}

/// Services start within seconds and put their sets then. An app that was stopped by the operator for longer loses its rules.
const GRACE_S_DEFAULT: u64 = 60;

/// A switch's rules change without Burnet's knowledge only by time-outs and by others. A minute bounds how long a lost rule is missing.
const AUDIT_INTERVAL_S_DEFAULT: u64 = 60;

/// The settings, ready for use.
#[derive(Clone, Debug, Default)]
pub struct Policy {
    /// The number of the service's zone, which is in the cookies of its rules. `None`: not known yet.
    pub own_zone: Option<u16>,
    /// Whether rules of earlier runs that no set wants are removed: the time for sets to come back is over.
    pub orphans_go: bool,
    foreign: Foreign,
    cookies: Vec<(u64, u64)>,
    tables: Vec<u8>,
    matches: Vec<Match>,
}

/// Zones of apps have numbers up to this one. A rule whose cookie names one of them may be an app's.
const ZONE_MAX: u16 = 1_023;

/// The cookie of the kernel's own rules, without its owner.
const KERNELS_COOKIE: u64 = 0x6275_726e_6574;

const COOKIE_BITS: u32 = 48;

/// The owner in a cookie.
pub fn owner(cookie: u64) -> u16 {
    (cookie >> COOKIE_BITS) as u16
}

/// The service's part of a cookie.
pub fn own_part(cookie: u64) -> u64 {
    cookie & ((1 << COOKIE_BITS) - 1)
}

impl Policy {
    /// Reads the settings.
    ///
    /// # Errors
    /// A sentence that names the setting. It is the operator's fault.
    pub fn new(settings: &Settings) -> Result<Policy, String> {
        let cookies = settings.ignore_cookies.iter().map(|text| {
            cookie(text).ok_or_else(|| {
                format!("ignore_cookies: {text:?} is no COOKIE or COOKIE/MASK in hexadecimal digits")
            })
        });
        let matches = settings.ignore_matches.iter().map(|text| {
            flow::text::parse_match(text).map_err(|why| format!("ignore_matches: {text:?}: {why}"))
        });
        if settings.audit_interval_s == 0 {
            return Err("audit_interval_s: 0 is no interval: write at least 1".to_owned());
        }
        Ok(Policy {
            own_zone: None,
            orphans_go: false,
            foreign: settings.foreign,
            cookies: cookies.collect::<Result<_, _>>()?,
            tables: settings.ignore_tables.clone(),
            matches: matches.collect::<Result<_, _>>()?,
        })
    }

    /// Whether a rule is this service's. Its cookie is the hash of its content, so it can be told even before the zone's number is known.
    pub fn is_own(&self, cookie: u64, contents: [Option<u64>; 2]) -> bool {
        match self.own_zone {
            Some(zone) => owner(cookie) == zone,
            None => (1..=ZONE_MAX).contains(&owner(cookie)) && contents.contains(&Some(own_part(cookie))),
        }
    }

    /// Whether another owner's rule is to be removed.
    pub fn removes(&self, entry: &RuleEntry<'_>) -> bool {
        let may_be_an_apps = (1..=ZONE_MAX).contains(&owner(entry.cookie)) || entry.cookie == KERNELS_COOKIE;
        if self.foreign == Foreign::Report || may_be_an_apps || self.tables.contains(&entry.table_id) {
            return false;
        }
        let is_named = self.cookies.iter().any(|(cookie, mask)| entry.cookie & mask == cookie & mask);
        let is_within = || {
            let rule = flow::canonical::read_match(entry.matching);
            // A match that cannot be read may be within one of them.
            rule.map_or(!self.matches.is_empty(), |rule| {
                self.matches.iter().any(|wide| flow::relation::covers(wide, &rule))
            })
        };
        !is_named && !is_within()
    }
}

fn cookie(text: &str) -> Option<(u64, u64)> {
    let number = |text: &str| u64::from_str_radix(text.strip_prefix("0x").unwrap_or(text), 16).ok();
    match text.split_once('/') {
        None => Some((number(text)?, u64::MAX)),
        Some((cookie, mask)) => Some((number(cookie)?, number(mask)?)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(change: impl FnOnce(&mut Settings)) -> Result<Policy, String> {
        let mut settings = Settings { foreign: Foreign::Remove, ..Settings::default() };
        change(&mut settings);
        Policy::new(&settings)
    }

    #[test]
    fn a_wrong_setting_is_refused_with_its_name() {
        let check = |change: fn(&mut Settings), name: &str| {
            let why = policy(change).unwrap_err();
            assert!(why.starts_with(name), "{why}");
        };
        check(|it| it.ignore_cookies.push("7/x".to_owned()), "ignore_cookies: ");
        check(|it| it.ignore_matches.push("colour=red".to_owned()), "ignore_matches: ");
        check(|it| it.audit_interval_s = 0, "audit_interval_s: ");
    }

    #[test]
    fn only_rules_of_strangers_are_removed_and_those_on_a_list_stay() {
        let mut matching = Vec::new();
        flow::canonical::write_match(&flow::text::parse_match("arp").unwrap(), &mut matching);
        let entry = |cookie| RuleEntry {
            table_id: 3,
            priority: 1,
            idle_timeout_s: 0,
            hard_timeout_s: 0,
            duration_s: 0,
            cookie,
            packets: 0,
            bytes: 0,
            matching: &matching,
            instructions: &[],
        };
        let check = |change: fn(&mut Settings), cookie, expected| {
            assert_eq!(policy(change).unwrap().removes(&entry(cookie)), expected, "{cookie:#x}");
        };
        check(|_| (), 0xabcd, true);
        check(|_| (), 0xffff << 48, true);
        check(|it| it.foreign = Foreign::Report, 0xabcd, false);
        check(|_| (), KERNELS_COOKIE, false);
        check(|_| (), 5 << 48 | 0xabcd, false);
        check(|it| it.ignore_tables.push(3), 0xabcd, false);
        check(|it| it.ignore_tables.push(4), 0xabcd, true);
        check(|it| it.ignore_cookies.push("0xab00/ff00".to_owned()), 0xabcd, false);
        check(|it| it.ignore_cookies.push("abce".to_owned()), 0xabcd, true);
        check(|it| it.ignore_matches.push("ip".to_owned()), 0xabcd, true);
        check(|it| it.ignore_matches.push("arp".to_owned()), 0xabcd, false);
    }

    #[test]
    fn a_rule_is_known_by_its_zone_or_by_its_content() {
        let mut policy = policy(|_| ()).unwrap();
        let cookie = 7 << 48 | 0x123;
        assert!(policy.is_own(cookie, [Some(0x123), None]) && policy.is_own(cookie, [None, Some(0x123)]));
        assert!(!policy.is_own(cookie, [Some(0x124), None]) && !policy.is_own(0x123, [Some(0x123), None]));
        policy.own_zone = Some(7);
        assert!(policy.is_own(cookie, [None, None]) && !policy.is_own(8 << 48 | 0x123, [Some(0x123), None]));
    }
}
