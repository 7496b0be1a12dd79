//! The grant of a caller of `flows`: whether it may read, and within which regions it may have rules.
//!
//! ```text
//!   flows.write = ["switch=of:1,table=0,priority=100-200,ip,nw_dst=10.0.0.0/8"] ──> Region
//! ```
//!
//! In: the bytes that the kernel hands to the service, and rules. Out: whether a rule is within the grant. The kernel checks what the
//! service sends by the service's own grant, which has no bounds. So this check is the one that bounds an app.

use crate::declaration::{READ, WRITE};
use contract::{Part, Permitted};
use flow::relation::is_covered_by_one;
use flow::{DatapathId, Match};
use std::ops::RangeInclusive;

/// Where an app may have rules: every bound that is written must hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Region {
    /// The only switch, or `None` for every switch.
    pub switch: Option<DatapathId>,
    /// The tables.
    pub tables: RangeInclusive<u8>,
    /// The priorities.
    pub priorities: RangeInclusive<u16>,
    /// The packets: a rule must match no others.
    pub packets: Match,
}

impl Region {
    /// Reads a region: words between commas. `switch=`, `table=` and `priority=` are bounds of their own; the others are a match.
    ///
    /// # Errors
    /// A sentence with the wrong word.
    pub fn parse(text: &str) -> Result<Region, String> {
        let (mut switch, mut tables, mut priorities) = (None, 0..=u8::MAX, 0..=u16::MAX);
        let mut packets = Vec::new();
        for word in text.split(',').map(str::trim).filter(|word| !word.is_empty()) {
            match word.split_once('=') {
                Some(("switch", it)) => switch = Some(it.parse().map_err(|why| format!("{word:?}: {why}"))?),
                Some(("table", it)) => tables = range(it).ok_or_else(|| no_range(word, u8::MAX.into()))?,
                Some(("priority", it)) => priorities = range(it).ok_or_else(|| no_range(word, u16::MAX))?,
                _ => packets.push(word),
            }
        }
        let packets =
            flow::text::parse_match(&packets.join(",")).map_err(|why| format!("{text:?}: {why}"))?;
        Ok(Region { switch, tables, priorities, packets })
    }

    fn is_at(&self, switch: DatapathId) -> bool {
        self.switch.is_none_or(|only| only == switch)
    }
}

fn no_range(word: &str, max: u16) -> String {
    format!("{word:?} has no number or range from 0 to {max}")
}

/// `7` or `7-9`.
fn range<N: std::str::FromStr + Copy + PartialOrd>(text: &str) -> Option<RangeInclusive<N>> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let (first, last) = (first.parse::<N>().ok()?, last.parse::<N>().ok()?);
    (first <= last).then_some(first..=last)
}

/// The part of an app's grant that concerns the rules.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Grant {
    /// The app may list and follow all rules, groups and meters.
    pub read: bool,
    /// The regions of its rules. `None`: none at all. An empty list: everywhere.
    write: Option<Vec<Region>>,
}

impl Grant {
    /// Reads the bytes that come with a call. No bytes grant nothing.
    ///
    /// # Errors
    /// A sentence for the log: the node and the service have different versions, or a region is wrong. It is the operator's fault.
    pub fn from_bytes(bytes: &[u8]) -> Result<Grant, String> {
        let part = Part::from_bytes(bytes)?;
        let write = match part.permitted(WRITE) {
            None => None,
            Some(Permitted::All) => Some(Vec::new()),
            Some(Permitted::Only(regions)) if regions.is_empty() => None,
            Some(Permitted::Only(regions)) => {
                let regions = regions.iter().map(|region| Region::parse(region));
                Some(regions.collect::<Result<_, _>>().map_err(|why| format!("{WRITE}: {why}"))?)
            }
        };
        Ok(Grant { read: part.permitted(READ).is_some(), write })
    }

    /// Whether the app may list and follow what all apps want.
    ///
    /// # Errors
    /// A sentence for the caller, which begins with the missing capability.
    pub fn check_read(&self) -> Result<(), String> {
        self.read.then_some(()).ok_or_else(|| contract::not_held(READ))
    }

    /// Whether the app may put sets at all, and follow their states.
    ///
    /// # Errors
    /// A sentence for the caller, which begins with the missing capability.
    pub fn check_write(&self) -> Result<(), String> {
        self.write.as_ref().map(drop).ok_or_else(|| contract::not_held(WRITE))
    }

    /// Whether the app may have every rule. Then the rules need not be looked at.
    pub fn is_unbounded(&self) -> bool {
        self.write.as_ref().is_some_and(Vec::is_empty)
    }

    /// Whether the app may have this rule.
    ///
    /// # Errors
    /// A sentence for the caller, which begins with the capability.
    pub fn check_rule(
        &self,
        switch: DatapathId,
        table_id: u8,
        priority: u16,
        matching: &Match,
    ) -> Result<(), String> {
        let Some(regions) = &self.write else { return Err(contract::not_held(WRITE)) };
        let holds = |region: &&Region| {
            region.is_at(switch) && region.tables.contains(&table_id) && region.priorities.contains(&priority)
        };
        let is_within = regions.is_empty()
            || regions
                .iter()
                .filter(holds)
                .any(|region| is_covered_by_one(matching, std::slice::from_ref(&region.packets)));
        is_within.then_some(()).ok_or_else(|| {
            let packets = flow::text::match_to_string(matching);
            format!("{WRITE}: it is not granted for a rule in {switch}, table {table_id}, with priority {priority} and match [{packets}]")
        })
    }

    /// Whether the app may have groups and meters in this switch. Only its own rules can refer to them.
    ///
    /// # Errors
    /// A sentence for the caller, which begins with the capability.
    pub fn check_switch(&self, switch: DatapathId) -> Result<(), String> {
        let Some(regions) = &self.write else { return Err(contract::not_held(WRITE)) };
        let is_within = regions.is_empty() || regions.iter().any(|region| region.is_at(switch));
        is_within.then_some(()).ok_or_else(|| format!("{WRITE}: it is not granted for {switch}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flow::text::parse_match;

    fn grant(capabilities: &str) -> Grant {
        Grant::from_bytes(format!(r#"{{"capabilities":{{{capabilities}}}}}"#).as_bytes()).unwrap()
    }

    #[test]
    fn a_wrong_region_is_refused_with_the_word() {
        let check = |text: &str, part: &str| {
            let why = Region::parse(text).unwrap_err();
            assert!(why.contains(part), "{text}: {why}");
        };
        check("switch=x", "switch=x");
        check("table=256", "0 to 255");
        check("table=3-2", "table=3-2");
        check("priority=-1", "0 to 65535");
        check("nw_dst=10.0.0.300", "10.0.0.300");
        check("colour=red", "colour");
        assert!(Grant::from_bytes(br#"{"capabilities":{"flows.write":["colour=red"]}}"#).is_err());
        assert!(Grant::from_bytes(b"{").is_err());
    }

    #[test]
    fn a_rule_must_be_within_one_region() {
        let check =
            |capabilities: &str, (switch, table_id, priority, text): (u64, u8, u16, &str), passes: bool| {
                let matching = parse_match(text).unwrap();
                let said = grant(capabilities).check_rule(DatapathId(switch), table_id, priority, &matching);
                assert_eq!(said.is_ok(), passes, "{capabilities} {text}: {said:?}");
                assert!(said.err().is_none_or(|why| why.starts_with("flows.write: ")));
            };
        let web = (1, 0, 150, "tcp,nw_dst=10.1.0.1,tp_dst=80");
        check("", web, false);
        check(r#""flows.read":true"#, web, false);
        check(r#""flows.write":[]"#, web, false);
        check(r#""flows.write":true"#, web, true);
        check(r#""flows.write":["table=1","ip,nw_dst=10.0.0.0/8,priority=100-200"]"#, web, true);
        check(r#""flows.write":["switch=2","table=1","priority=151","ip,nw_dst=10.2.0.0/16"]"#, web, false);
        check(r#""flows.write":["switch=1,table=0,priority=150"]"#, web, true);
        // Two regions that cover the rule only together do not permit it.
        check(
            r#""flows.write":["ip,nw_dst=10.0.0.0/9","ip,nw_dst=10.128.0.0/9"]"#,
            (1, 0, 1, "ip,nw_dst=10.0.0.0/8"),
            false,
        );
    }

    #[test]
    fn each_capability_permits_its_own() {
        let (reads, writes) = (grant(r#""flows.read":true"#), grant(r#""flows.write":["switch=1"]"#));
        assert!(reads.check_read().is_ok() && reads.check_write().is_err());
        assert!(writes.check_read().is_err() && writes.check_write().is_ok() && !writes.is_unbounded());
        assert!(writes.check_switch(DatapathId(1)).is_ok() && writes.check_switch(DatapathId(2)).is_err());
        assert!(grant(r#""flows.write":true"#).is_unbounded());
        assert!(!Grant::default().is_unbounded() && Grant::default().check_switch(DatapathId(1)).is_err());
    }
}
