//! Shows changes as they happen: a line for each.
//!
//! In: the events of a stream. Out: lines on standard output, at once. It ends when the stream ends, or when nobody reads its output.

use super::client::{Client, encoded};
use config::slices::link_name;
use hose::Bandwidth;
use operator::visible::visible;
use serde_json::Value;
use std::io::Write;

/// Shows the objects of these kinds and each change of them, or only the changes.
pub fn watch(client: &Client, kinds: &str, changes_only: bool, as_json: bool) -> Result<String, String> {
    let target =
        format!("/api/v1/stream?kinds={}&changes_only={changes_only}", encoded(kinds).replace("%2C", ","));
    follow(client, &target, as_json)
}

/// Shows the events of this stream.
pub fn follow(client: &Client, target: &str, as_json: bool) -> Result<String, String> {
    client.events(target, |event| {
        let line = if as_json { Some(event.to_string()) } else { line(event) };
        let shown = line.map_or(Ok(()), |line| writeln!(std::io::stdout(), "{}", visible(&line)));
        shown.is_err().then(String::new)
    })
}

/// A change in one line. `None`: it is of no interest to a person.
fn line(event: &Value) -> Option<String> {
    let key = event["key"].as_str().unwrap_or_default();
    match event["event"].as_str()? {
        "put" => match event["object"]["kind"].as_str() {
            Some("slice") => Some(format!("{key}{}", members(&event["object"], SLICE))),
            Some("label") => Some(label(&event["object"])),
            Some("labels") => Some(format!("{key}{}", members(&event["object"], &["stale", "current"]))),
            _ => Some(format!("{key}{}", members(&event["object"], MOST))),
        },
        "remove" => Some(format!("{key}  gone")),
        "missed" => Some(format!("({} changes were left out)", event["count"])),
        "counters" => Some(format!("counters  {}", event["items"])),
        "incident" => Some(format!("incident  {}", event["incident"])),
        _ => None,
    }
}

/// The members of an object that change most.
const MOST: &[&str] = &["state", "live", "at", "addresses", "reason"];

/// Those of a slice.
const SLICE: &[&str] = &["state", "switches_up", "connections_up", "rules", "refused_total", "flows"];

/// A label in one line.
fn label(object: &Value) -> String {
    let link = object["link"].as_str().unwrap_or_default();
    let link = link.parse().map_or_else(|_| link.to_owned(), link_name);
    let rate = |member: &str| Bandwidth::from_kbps(object[member].as_u64().unwrap_or_default());
    let slice = object["slice"].as_str().unwrap_or_default();
    format!("label/{slice}/{link}  {} of {}", rate("label_kbps"), rate("capacity_kbps"))
}

fn members(object: &Value, members: &[&str]) -> String {
    let mut text = String::new();
    for member in members {
        match &object[*member] {
            Value::Null => {}
            Value::String(value) => text += &format!("  {member}={value}"),
            other => text += &format!("  {member}={other}"),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_change_is_a_line() {
        let check = |event: Value, expected: Option<&str>| assert_eq!(line(&event).as_deref(), expected);
        check(json!({}), None);
        check(json!({"event": "complete", "version": 1}), None);
        check(
            json!({"event": "put", "key": "link/a-b", "object": {"state": "down"}}),
            Some("link/a-b  state=down"),
        );
        check(json!({"event": "put", "key": "port/a", "object": {"live": true}}), Some("port/a  live=true"));
        let label = json!({"kind": "label", "slice": "blue", "link": "of:0000000000000003/1-of:0000000000000001/1", "label_kbps": 2_000,
                           "capacity_kbps": 10_000});
        check(
            json!({"event": "put", "key": "x", "object": label}),
            Some("label/blue/s3:1-s1:1  2.0M of 10.0M"),
        );
        let slice =
            json!({"kind": "slice", "id": "blue", "state": "running", "connections_up": 2, "since_ms": 7});
        check(
            json!({"event": "put", "key": "slice/blue", "object": slice}),
            Some("slice/blue  state=running  connections_up=2"),
        );
        let labels = json!({"kind": "labels", "id": "blue", "stale": true, "current": false});
        check(
            json!({"event": "put", "key": "labels/blue", "object": labels}),
            Some("labels/blue  stale=true  current=false"),
        );
        check(json!({"event": "remove", "key": "host/x"}), Some("host/x  gone"));
        check(json!({"event": "missed", "count": 3}), Some("(3 changes were left out)"));
    }
}
