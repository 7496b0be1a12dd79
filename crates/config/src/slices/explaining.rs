//! What each key of `[slice.NAME]` takes, for errors.
//!
//! In: the keys that lead to a faulty value, and the reason in the words of the TOML reader. Out: a sentence with the slice, the key, and what to write. It finds no
//! fault.

use super::names::shown;

/// What to write for each key. A key of a table in a slice has the names of both.
const KEYS: [(&str, &str); 39] = [
    ("controllers", "controllers = [\"HOST:PORT\", ...]"),
    ("tls", "a table with certificate, private_key and ca_certificate"),
    ("tls.certificate", "the path of a file"),
    ("tls.private_key", "the path of a file"),
    ("tls.ca_certificate", "the path of a file"),
    ("isolation", "\"vlan\", \"flowspace\" or \"address\""),
    ("tag", "a number from 1 to 4094"),
    ("matches", "matches = [\"ip,nw_dst=10.1.0.0/16\", ...], or [\"\"] for all packets"),
    ("prefix", "a prefix, as in \"172.16.1.0/24\""),
    ("addresses", "a prefix, as in \"10.0.0.0/24\""),
    ("hosts", "hosts = { \"10.0.0.1\" = \"s1:1\", ... }"),
    ("read_only", "true or false"),
    ("labels", "\"none\", \"paper\", \"experimenter\" or \"speed\""),
    ("step", "a part of a link's capacity, \"1%\" to \"100%\""),
    ("fail", "\"secure\" or \"standalone\""),
    ("admission", "\"links\" or \"edge\""),
    ("switches", "switches = [\"s1\", \"s2 as of:7\", ...]"),
    ("ports", "ports = [\"s1:3\", \"s1:4 as 7\", ...]"),
    ("own_ports", "own_ports = [\"s1:1\", \"s1:2 as 7\", ...]"),
    ("links", "links = [\"s1:3-s2:3\", ...]"),
    ("vnics", "vnics = { NAME = { port = \"s1:1\", rate = \"10M\" }, ... }"),
    ("vnics.port", "a port, as in \"s1:1\""),
    ("vnics.rate", "a rate, as in \"10M\""),
    ("vnics.number", "a number from 1 to 4294967295"),
    ("vnics.mac", "an address, as in \"02:00:00:00:00:01\""),
    ("vnics.agent", "a number from 0 to 4294967295"),
    ("vnics.strict", "true or false"),
    ("vnics.meter", "true or false"),
    ("groups", "groups = [FIRST, LAST]"),
    ("meters", "meters = [FIRST, LAST]"),
    (
        "limits",
        "a table with packet_ins_per_s, packet_outs_per_s, flow_mods_per_s, statistics_per_s and rules",
    ),
    ("limits.packet_ins_per_s", AMOUNT),
    ("limits.packet_outs_per_s", AMOUNT),
    ("limits.flow_mods_per_s", AMOUNT),
    ("limits.statistics_per_s", AMOUNT),
    ("limits.rules", AMOUNT),
    ("", "a section [slice.NAME]"),
    ("vnics.", "{ port = \"s1:1\", rate = \"10M\" }"),
    ("hosts.", "a port, as in \"s1:1\""),
];

const AMOUNT: &str = "a number from 1, or { soft = NUMBER, hard = NUMBER }";

/// A fault of the TOML, at these keys.
pub(crate) fn explain(keys: &[String], reason: String) -> String {
    let [table, slice, rest @ ..] = keys else { return reason };
    if table != "slice" || reason.starts_with("unknown key") || reason.contains("alone is no key") {
        return reason;
    }
    let what = what(rest);
    let (key, fault) = (rest.join("."), in_our_words(&reason));
    let place = if key.is_empty() { String::new() } else { format!("{}: ", shown(&key)) };
    let what = what.filter(|_| !reason.contains("write")).map(|what| format!(": write {what}"));
    format!("slice {}: {place}{fault}{}", shown(slice), what.unwrap_or_default())
}

/// What the key at the end of this way takes.
fn what(keys: &[String]) -> Option<&'static str> {
    let name = match keys {
        // The name of a VNIC or a host is no key of a slice.
        [table, _] if table == "vnics" || table == "hosts" => format!("{table}."),
        [table, _, key] if table == "vnics" => format!("vnics.{key}"),
        keys => keys.join("."),
    };
    KEYS.iter().find(|(key, _)| *key == name).map(|(_, what)| *what)
}

/// The wrong value, without what serde expects: the keys know it better.
fn in_our_words(reason: &str) -> String {
    if let Some(rest) = reason.strip_prefix("unknown variant ") {
        return format!("{} is no value of this key", rest.split(", expected").next().unwrap_or(rest));
    }
    match reason.strip_prefix("invalid type: ").or_else(|| reason.strip_prefix("invalid value: ")) {
        Some(rest) => format!("{} is no value of this key", rest.split(", expected").next().unwrap_or(rest)),
        None => reason.to_owned(),
    }
}
