//! What the operator sets: whose rate is limited, and which packets go into which queue.
//!
//! In: JSON. Out: checked values, or a sentence that names the setting. It knows no switch.

use burnet_sdk::flow::Match;
use burnet_sdk::flow::text::parse_match;
use burnet_sdk::view::{ConnectPoint, HostId};
use burnet_sdk::{DatapathId, PortNo};
use burnet_sdk_rules::traffic::{self, Traffic, is_plain};
use serde::Deserialize;
use std::collections::BTreeSet;

/// The most limits, and the most classes. With more the app refuses to start: each is some rules, and a limit is up to two meters, in a switch.
pub const LIMITS_MAX: usize = 400;
/// See [`LIMITS_MAX`].
pub const CLASSES_MAX: usize = 400;

/// The highest table that the app may have rules in, by its manifest.
const TABLE_MAX: u8 = 8;

/// The highest number of a meter (`OFPM_MAX`).
const METER_MAX: u32 = 0xffff_0000;

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    #[serde(default)]
    table: u8,
    next_table: Option<u8>,
    #[serde(default = "default_first_meter")]
    first_meter: u32,
    #[serde(default)]
    limits: Vec<WrittenLimit>,
    #[serde(default)]
    classes: Vec<WrittenClass>,
}

/// Above the few that people number by hand.
fn default_first_meter() -> u32 {
    10_000
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenLimit {
    port: Option<ConnectPoint>,
    host: Option<HostId>,
    switch: Option<DatapathId>,
    #[serde(rename = "match")]
    matching: Option<String>,
    direction: Option<String>,
    rate_kbps: u32,
    burst_kbit: Option<u32>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenClass {
    #[serde(rename = "match")]
    matching: String,
    queue: u32,
    #[serde(default)]
    switches: BTreeSet<DatapathId>,
    out: Option<PortNo>,
}

/// A limited rate.
#[derive(Clone, Debug, PartialEq)]
pub struct Limit {
    /// Whose.
    pub traffic: Traffic,
    /// The rate of each direction.
    pub rate_kbps: u32,
    /// How much may come at once.
    pub burst_kbit: u32,
}

/// Packets of one queue.
#[derive(Clone, Debug, PartialEq)]
pub struct Class {
    /// Which packets.
    pub matching: Match,
    /// The match as it was written.
    pub text: String,
    /// The queue.
    pub queue: u32,
    /// The switches. Empty: all.
    pub switches: BTreeSet<DatapathId>,
    /// The app itself sends them out of this port.
    pub out: Option<PortNo>,
}

/// The checked settings.
#[derive(Clone, Debug)]
pub struct QosSettings {
    /// The table of the limits.
    pub limits_table: u8,
    /// The table of the classes. The same, if there are no limits.
    pub classes_table: u8,
    /// The table where the packets go on. `None`: every class has a port, and nothing goes on.
    pub next_table: Option<u8>,
    /// The number of the first meter.
    pub first_meter: u32,
    /// The limits. The first that matches a packet holds.
    pub limits: Vec<Limit>,
    /// The classes. The first that matches a packet holds.
    pub classes: Vec<Class>,
}

impl QosSettings {
    /// Reads and checks the settings.
    ///
    /// # Errors
    /// A sentence for the operator.
    pub fn read(settings: &burnet_sdk::Settings) -> Result<QosSettings, String> {
        let Written { table, next_table, first_meter, limits, classes } = settings.read()?;
        if limits.is_empty() && classes.is_empty() {
            return Err("limits, classes: there are neither".to_owned());
        }
        for (name, count, most) in
            [("limits", limits.len(), LIMITS_MAX), ("classes", classes.len(), CLASSES_MAX)]
        {
            if count > most {
                return Err(format!("{name}: there are {count}; at most {most} can be"));
            }
        }
        // In one table, a limit and a class of the same packets would have the same priority.
        let both = !limits.is_empty() && !classes.is_empty();
        let classes_table = table.saturating_add(u8::from(both));
        check_tables(table, classes_table, next_table)?;
        let goes_on = !limits.is_empty() || classes.iter().any(|class| class.out.is_none());
        if goes_on && next_table.is_none() {
            return Err("next_table: it is missing. Name the table with the rules of the apps that forward"
                .to_owned());
        }
        // Two meters for each limit.
        if first_meter == 0 || first_meter > METER_MAX - 2 * LIMITS_MAX as u32 {
            return Err(format!("first_meter = {first_meter}: it is no number of a meter"));
        }
        let limits = limits.iter().map(check_limit).collect::<Result<_, _>>()?;
        let classes = classes.into_iter().map(check_class).collect::<Result<_, _>>()?;
        Ok(QosSettings { limits_table: table, classes_table, next_table, first_meter, limits, classes })
    }
}

fn check_tables(table: u8, last: u8, next: Option<u8>) -> Result<(), String> {
    match next {
        _ if last > TABLE_MAX => {
            Err(format!("table = {table}: its rules need table {last}; the last can be {TABLE_MAX}"))
        }
        Some(next) if next <= last || next > TABLE_MAX + 1 => Err(format!(
            "next_table = {next}: limits and classes need tables {table} to {last}, so write {} to {}",
            last + 1,
            TABLE_MAX + 1
        )),
        _ => Ok(()),
    }
}

fn check_limit(written: &WrittenLimit) -> Result<Limit, String> {
    let WrittenLimit { port, host, switch, matching, direction, rate_kbps, burst_kbit } = written;
    let traffic = traffic::Written {
        port: *port,
        host: *host,
        switch: *switch,
        matching: matching.as_deref(),
        direction: direction.as_deref(),
    };
    let traffic = Traffic::read(&traffic).map_err(|why| format!("limits.{why}"))?;
    if *rate_kbps == 0 {
        return Err("limits.rate_kbps: 0 lets nothing pass: use the app acl to deny packets".to_owned());
    }
    // A tenth of a second, and room for some whole packets.
    let burst_kbit = burst_kbit.unwrap_or_else(|| (rate_kbps / 10).max(100));
    match burst_kbit {
        0..=12 => Err(format!(
            "limits.burst_kbit: {burst_kbit} kbit is less than a packet of 1,514 bytes: write 13 or more"
        )),
        _ => Ok(Limit { traffic, rate_kbps: *rate_kbps, burst_kbit }),
    }
}

fn check_class(written: WrittenClass) -> Result<Class, String> {
    let WrittenClass { matching: text, queue, switches, out } = written;
    let matching = if text == "any" { Ok(Match::any()) } else { parse_match(&text) };
    let matching = matching.map_err(|why| format!("classes.match: {text:?} is no match: {why}"))?;
    if let Some(port) = out {
        if !is_plain(port) {
            return Err(format!("classes.out: {port} is the number of no real port"));
        }
        if switches.len() != 1 {
            return Err(format!("classes.switches: the port {port} is one of one switch: name this switch"));
        }
    }
    Ok(Class { matching, text, queue, switches, out })
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn settings(json: &str) -> Result<QosSettings, String> {
        QosSettings::read(&burnet_sdk::Settings::from_json(json.as_bytes()).unwrap())
    }

    #[test]
    fn wrong_settings_are_refused_with_the_name() {
        let check = |json: &str, part: &str| {
            let why = settings(&format!("{{{json}}}")).err().unwrap_or_default();
            assert!(why.contains(part) && why.is_empty() == part.is_empty(), "{json}: {why}");
        };
        let limit = |it: &str| format!("\"next_table\": 1, \"limits\": [{{{it}}}]");
        let class = |it: &str| format!("\"next_table\": 1, \"classes\": [{{{it}}}]");
        let (a_limit, a_class) = (r#""port": "1/1", "rate_kbps": 1000"#, r#""match": "ip", "queue": 1"#);
        check(&limit(a_limit), "");
        check(&class(a_class), "");
        check("", "limits, classes: there are neither");
        check(&limit(r#""port": "1/1""#), "missing field `rate_kbps`");
        check(&limit(r#""port": "1/1", "rate_kbps": 0"#), "limits.rate_kbps: 0");
        check(&limit(r#""port": "1/1", "rate_kbps": 9, "burst_kbit": 12"#), "limits.burst_kbit: 12");
        check(&limit(r#""rate_kbps": 9"#), "limits.write one of these");
        check(&limit(r#""match": "ip", "rate_kbps": 9"#), "limits.switch: ");
        check(&class(r#""match": "ipx", "queue": 1"#), "classes.match: \"ipx\"");
        check(&class(r#""match": "ip", "queue": 1, "out": 3"#), "classes.switches: the port 3");
        check(&class(r#""match": "ip", "queue": 1, "out": 4294967293, "switches": ["1"]"#), "classes.out: ");
        check(r#""classes": [{"match": "ip", "queue": 1}]"#, "next_table: it is missing");
        check(r#""classes": [{"match": "ip", "queue": 1, "out": 3, "switches": ["1"]}]"#, "");
        check(
            &format!("{}, \"table\": 1", limit(a_limit)),
            "next_table = 1: limits and classes need tables 1 to 1",
        );
        check(
            &format!("{}, \"classes\": [{{{a_class}}}]", limit(a_limit)),
            "need tables 0 to 1, so write 2 to 9",
        );
        check(&format!("{}, \"first_meter\": 0", limit(a_limit)), "first_meter = 0");
        check(&format!("{}, \"table\": 9", limit(a_limit)), "table = 9");
    }
}
