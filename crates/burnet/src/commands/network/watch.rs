//! Shows changes as they happen: a line for each.
//!
//! In: the events of a stream. Out: lines on standard output, at once. It ends when the stream ends, or when nobody reads its output.

use super::client::{Client, encoded};
use operator::visible::visible;
use serde_json::Value;
use std::io::Write;

/// Shows the objects of these kinds and each change of them, or only the changes.
pub fn watch(client: &Client, kinds: &str, changes_only: bool, as_json: bool) -> Result<String, String> {
    let target =
        format!("/api/v1/stream?kinds={}&changes_only={changes_only}", encoded(kinds).replace("%2C", ","));
    client.events(&target, |event| {
        let line = if as_json { Some(event.to_string()) } else { line(event) };
        let shown = line.map_or(Ok(()), |line| writeln!(std::io::stdout(), "{}", visible(&line)));
        shown.is_err().then(String::new)
    })
}

/// A change in one line. `None`: it is of no interest to a person.
fn line(event: &Value) -> Option<String> {
    let key = event["key"].as_str().unwrap_or_default();
    match event["event"].as_str()? {
        "put" => Some(format!("{key}{}", state(&event["object"]))),
        "remove" => Some(format!("{key}  gone")),
        "missed" => Some(format!("({} changes were left out)", event["count"])),
        "counters" => Some(format!("counters  {}", event["items"])),
        "incident" => Some(format!("incident  {}", event["incident"])),
        _ => None,
    }
}

/// The members of an object that change most.
fn state(object: &Value) -> String {
    let mut text = String::new();
    for member in ["state", "live", "at", "addresses", "reason"] {
        match &object[member] {
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
        check(json!({"event": "remove", "key": "host/x"}), Some("host/x  gone"));
        check(json!({"event": "missed", "count": 3}), Some("(3 changes were left out)"));
    }
}
