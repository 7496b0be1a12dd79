//! Objects of the network view as rows for a terminal.
//!
//! In: the JSON of objects. Out: text. A member that an object does not have is shown as `-`.

use crate::commands::ago;
use crate::commands::table::aligned;
use node::now_unix_ms;
use serde_json::Value;

/// A column: its heading, and the cell of an object.
type Column = (&'static str, fn(&Value) -> String);

const PORTS: &[Column] = &[
    ("PORT", |it| text(&it["id"])),
    ("NAME", |it| text(&it["name"])),
    ("STATE", |it| if it["live"] == true { "up".to_owned() } else { "down".to_owned() }),
    ("SPEED", |it| rate(&it["speed_kbps"])),
    ("MAC", |it| text(&it["mac"])),
];

const LINKS: &[Column] = &[
    ("LINK", |it| text(&it["id"])),
    ("STATE", |it| text(&it["state"])),
    ("FOUND", |it| text(&it["found"])),
    ("CAPACITY", |it| rate(&it["capacity_kbps"])),
    ("LATENCY", |it| it["latency_us"].as_u64().map_or_else(none, |us| format!("{us} us"))),
    ("SINCE", |it| since(it)),
];

const HOSTS: &[Column] = &[
    ("HOST", |it| text(&it["id"])),
    ("ADDRESSES", |it| list(&it["addresses"])),
    ("AT", |it| text(&it["at"])),
    ("FOUND", |it| if it["configured"] == true { "configured".to_owned() } else { "learned".to_owned() }),
    ("SINCE", |it| since(it)),
];

const ENTRIES: &[Column] = &[
    ("ID", |it| text(&it["id"])),
    ("OWNER", |it| text(&it["owner"])),
    ("SET", |it| text(&it["set"])),
    ("TYPE", |it| text(&it["type"])),
    ("STATE", |it| text(&it["state"])),
];

const PATHS: &[Column] = &[
    ("PATH", |it| text(&it["id"])),
    ("FROM", |it| text(&it["from"])),
    ("TO", |it| text(&it["to"])),
    ("HOPS", |it| it["links"].as_array().map_or_else(none, |links| (links.len() + 1).to_string())),
    ("RESERVED", |it| rate(&it["bandwidth_kbps"])),
    ("LATENCY", |it| it["latency_us"].as_u64().map_or_else(none, |us| format!("{us} us"))),
];

const INTENTS: &[Column] = &[
    ("INTENT", |it| text(&it["id"])),
    ("NAME", |it| text(&it["name"])),
    ("OWNER", |it| text(&it["owner"])),
    ("TYPE", |it| text(&it["type"])),
    ("ENDS", ends),
    ("STATE", |it| text(&it["state"])),
    ("SINCE", |it| since(it)),
    ("REASON", |it| text(&it["reason"])),
];

/// The objects of a collection, a row each.
pub fn table(collection: &str, items: &[Value]) -> String {
    let columns = match collection {
        "ports" => PORTS,
        "links" => LINKS,
        "hosts" => HOSTS,
        "paths" => PATHS,
        "intents" => INTENTS,
        _ => ENTRIES,
    };
    if items.is_empty() {
        return format!("the network has no {collection}\n");
    }
    let headings = columns.iter().map(|(heading, _)| (*heading).to_owned()).collect();
    let row = |item: &Value| columns.iter().map(|(_, cell)| cell(item)).collect();
    let rows: Vec<Vec<String>> = std::iter::once(headings).chain(items.iter().map(row)).collect();
    aligned(&rows)
}

fn none() -> String {
    "-".to_owned()
}

fn text(value: &Value) -> String {
    match value {
        Value::String(text) if !text.is_empty() => text.clone(),
        Value::Number(number) => number.to_string(),
        _ => none(),
    }
}

fn list(value: &Value) -> String {
    let all: Vec<String> = value.as_array().into_iter().flatten().map(text).collect();
    if all.is_empty() { none() } else { all.join(",") }
}

/// The ends of an intent: `A <-> B` or `A -> B`.
fn ends(intent: &Value) -> String {
    let either = |value: &Value| if value.is_array() { list(value) } else { text(value) };
    match intent["type"].as_str() {
        Some("host_to_host") => format!("{} <-> {}", text(&intent["one"]), text(&intent["two"])),
        _ => format!("{} -> {}", either(&intent["from"]), either(&intent["to"])),
    }
}

fn rate(kbps: &Value) -> String {
    match kbps.as_u64().unwrap_or_default() {
        0 => none(),
        kbps if kbps % 1_000_000 == 0 => format!("{} Gbit/s", kbps / 1_000_000),
        kbps if kbps % 1_000 == 0 => format!("{} Mbit/s", kbps / 1_000),
        kbps => format!("{kbps} kbit/s"),
    }
}

fn since(object: &Value) -> String {
    object["since_ms"].as_u64().map_or_else(none, |since| ago(now_unix_ms().saturating_sub(since)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_object_that_lacks_members_still_has_its_row() {
        for collection in ["ports", "links", "hosts", "paths", "intents", "groups", "meters"] {
            let shown = table(collection, &[json!({}), json!({"id": "x"})]);
            assert_eq!(shown.lines().count(), 3, "{shown}");
            assert_eq!(table(collection, &[]), format!("the network has no {collection}\n"));
        }
    }

    #[test]
    fn rows_show_what_an_operator_reads() {
        let port = json!({"id": "of:0000000000000001/2", "name": "s1-eth2", "live": false, "speed_kbps": 10_000_000, "mac": "m"});
        assert_eq!(
            table("ports", &[port]),
            "PORT                   NAME     STATE  SPEED      MAC\nof:0000000000000001/2  s1-eth2  down   10 Gbit/s  m\n"
        );
        let intent = json!({"id": 7, "type": "multi_to_single", "from": ["1/1", "2/1"], "to": "3/1", "state": "failed", "reason": "to: unknown"});
        let shown = table("intents", &[intent]);
        assert!(shown.contains("1/1,2/1 -> 3/1  failed  -      to: unknown"), "{shown}");
    }
}
