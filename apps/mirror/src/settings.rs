//! What the operator sets: which packets are copied, and where the copies go.
//!
//! In: JSON. Out: checked values, or a sentence that names the setting. It knows no switch.

use burnet_sdk::DatapathId;
use burnet_sdk::view::{ConnectPoint, HostId};
use burnet_sdk_rules::traffic::{self, Traffic, is_plain};
use serde::Deserialize;
use std::collections::BTreeSet;

/// The most mirrors. With more the app refuses to start: each is some rules in a switch.
pub const MIRRORS_MAX: usize = 256;

/// The highest table that the app may have rules in, by its manifest.
const TABLE_MAX: u8 = 8;

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    #[serde(default)]
    table: u8,
    next_table: u8,
    mirrors: Vec<WrittenMirror>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenMirror {
    port: Option<ConnectPoint>,
    host: Option<HostId>,
    switch: Option<DatapathId>,
    #[serde(rename = "match")]
    matching: Option<String>,
    direction: Option<String>,
    to: ConnectPoint,
    vlan: Option<u16>,
}

/// What is copied, and where to.
#[derive(Clone, Debug, PartialEq)]
pub struct Mirror {
    /// The packets.
    pub traffic: Traffic,
    /// The port where the copies come out.
    pub to: ConnectPoint,
    /// The tag of copies on their way to another switch.
    pub vlan: Option<u16>,
}

/// The checked settings.
#[derive(Clone, Debug)]
pub struct MirrorSettings {
    /// The table of the rules that copy.
    pub table: u8,
    /// The table where the packets go on.
    pub next_table: u8,
    /// The mirrors. The first that matches a packet copies it.
    pub mirrors: Vec<Mirror>,
}

impl MirrorSettings {
    /// Reads and checks the settings.
    ///
    /// # Errors
    /// A sentence for the operator.
    pub fn read(settings: &burnet_sdk::Settings) -> Result<MirrorSettings, String> {
        let Written { table, next_table, mirrors } = settings.read()?;
        if table > TABLE_MAX || next_table <= table || next_table > TABLE_MAX + 1 {
            return Err(format!(
                "next_table = {next_table}: it must be behind table = {table}, and at most {}",
                TABLE_MAX + 1
            ));
        }
        if mirrors.is_empty() || mirrors.len() > MIRRORS_MAX {
            return Err(format!("mirrors: there are {}; write 1 to {MIRRORS_MAX}", mirrors.len()));
        }
        let mirrors: Vec<Mirror> = mirrors.iter().map(check).collect::<Result<_, _>>()?;
        let mut ends: BTreeSet<(u16, ConnectPoint)> = BTreeSet::new();
        for mirror in &mirrors {
            let Some(vlan) = mirror.vlan else { continue };
            let other = ends.iter().find(|(other, to)| *other == vlan && *to != mirror.to);
            if let Some((_, to)) = other {
                return Err(format!(
                    "mirrors.vlan: copies in VLAN {vlan} go to {to} and to {}: each end needs a VLAN of its own",
                    mirror.to
                ));
            }
            ends.insert((vlan, mirror.to));
        }
        Ok(MirrorSettings { table, next_table, mirrors })
    }
}

fn check(written: &WrittenMirror) -> Result<Mirror, String> {
    let WrittenMirror { port, host, switch, matching, direction, to, vlan } = written;
    let traffic = traffic::Written {
        port: *port,
        host: *host,
        switch: *switch,
        matching: matching.as_deref(),
        direction: direction.as_deref(),
    };
    let traffic = Traffic::read(&traffic).map_err(|why| format!("mirrors.{why}"))?;
    if !is_plain(to.port) {
        return Err(format!("mirrors.to: {to} has the number of no real port"));
    }
    if traffic.port() == Some(*to) {
        return Err(format!("mirrors.to: {to} is the port whose packets are copied"));
    }
    if let Some(vlan) = vlan.filter(|vlan| !(1..=4094).contains(vlan)) {
        return Err(format!("mirrors.vlan: {vlan} is no VLAN: write 1 to 4094"));
    }
    if vlan.is_none() && traffic.fixed_switch() != Some(to.switch) {
        return Err(format!(
            "mirrors.vlan: copies may come from another switch than that of {to}, so they need a VLAN that nobody else uses"
        ));
    }
    Ok(Mirror { traffic, to: *to, vlan: *vlan })
}

#[cfg(test)]
mod tests {
    use super::*;
    use burnet_sdk::Settings;

    #[test]
    fn wrong_settings_are_refused_with_the_name() {
        let check = |tables: &str, mirrors: &str, part: &str| {
            let json = format!("{{{tables}, \"mirrors\": [{mirrors}]}}");
            let read = MirrorSettings::read(&Settings::from_json(json.as_bytes()).unwrap());
            let why = read.err().unwrap_or_default();
            assert!(why.contains(part) && why.is_empty() == part.is_empty(), "{json}: {why}");
        };
        let next = "\"next_table\": 1";
        let good = r#"{"port": "1/1", "to": "1/9"}"#;
        check(next, good, "");
        check("\"table\": 1", good, "missing field `next_table`");
        check("\"next_table\": 0", good, "next_table = 0: it must be behind table = 0");
        check("\"table\": 9, \"next_table\": 10", good, "next_table = 10");
        check(next, "", "mirrors: there are 0");
        check(next, r#"{"port": "1/1"}"#, "missing field `to`");
        check(next, r#"{"to": "1/9"}"#, "mirrors.write one of these");
        check(next, r#"{"port": "1/9", "to": "1/9"}"#, "mirrors.to: of:0000000000000001/9 is the port whose");
        check(next, r#"{"port": "1/1", "to": "1/4294967293"}"#, "mirrors.to: ");
        check(next, r#"{"port": "1/1", "to": "2/9"}"#, "mirrors.vlan: copies may come from another switch");
        check(next, r#"{"host": "00:00:00:00:00:01", "to": "1/9"}"#, "mirrors.vlan: copies may come");
        check(
            next,
            r#"{"host": "00:00:00:00:00:01", "to": "1/9", "vlan": 4095}"#,
            "mirrors.vlan: 4095 is no VLAN",
        );
        check(next, r#"{"match": "ip", "to": "1/9"}"#, "mirrors.switch: ");
        let both = r#"{"port": "1/1", "to": "2/9", "vlan": 7}, {"port": "1/2", "to": "2/8", "vlan": 7}"#;
        check(next, both, "each end needs a VLAN of its own");
    }
}
