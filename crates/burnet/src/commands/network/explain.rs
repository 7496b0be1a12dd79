//! `burnet explain`: the way of a packet through the switches, in words.
//!
//! ```text
//!   A B, or --at PORT FIELDS ──GET /api/v1/explain──> steps ──> lines: switch, table, rule, owner, counters, where it goes
//! ```
//!
//! In: parsed options. Out: text or JSON. With `--watch` it asks twice, and shows which counters have moved. It decides nothing about the way.

use super::client::{Client, encoded};
use super::{client, failed};
use crate::cli::CommandError;
use crate::cli::network::ExplainArgs;
use crate::commands::json;
use serde_json::Value;
use std::fmt::Write;
use std::time::Duration;

/// What the node is asked, and a heading.
#[derive(Debug, PartialEq, Eq)]
struct Way {
    heading: String,
    target: String,
}

/// Explains the way of a packet, or of packets in both directions.
pub fn explain(args: &ExplainArgs) -> Result<String, CommandError> {
    let ways = ways(args).map_err(CommandError::Usage)?;
    let client = client(&args.asking)?;
    let first = ask(&client, &ways)?;
    let (answers, before) = match args.watch {
        None => (first, Vec::new()),
        Some(seconds) => {
            std::thread::sleep(Duration::from_secs(seconds));
            (ask(&client, &ways)?, first)
        }
    };
    if args.asking.json {
        return json(&answers);
    }
    let shown = ways.iter().zip(&answers).enumerate().map(|(number, (way, answer))| {
        let before = before.get(number).map(|before| (before, args.watch.unwrap_or_default()));
        text(&way.heading, answer, before)
    });
    Ok(shown.collect::<Vec<_>>().join("\n"))
}

fn ask(client: &Client, ways: &[Way]) -> Result<Vec<Value>, CommandError> {
    ways.iter().map(|way| client.ask("GET", &way.target, None).map_err(failed)).collect()
}

/// The questions for these options.
fn ways(args: &ExplainArgs) -> Result<Vec<Way>, String> {
    let parameter = |name: &str, value: &str| format!("{name}={}", encoded(value));
    let way = |from: (&str, &str), to: Option<&str>, packet: Option<&str>| {
        let mut parameters = vec![parameter(from.0, from.1)];
        parameters.extend(to.map(|to| parameter("to", to)));
        parameters.extend(packet.map(|packet| parameter("packet", packet)));
        let arrow = to.map_or(String::new(), |to| format!(" -> {to}"));
        let target = format!("/api/v1/explain?{}", parameters.join("&"));
        Way { heading: format!("{}{arrow}", from.1), target }
    };
    let words: Vec<&str> = args.words.iter().map(String::as_str).collect();
    match (args.at.as_deref(), &words[..]) {
        (Some(at), [packet]) => Ok(vec![way(("at", at), args.to.as_deref(), Some(packet))]),
        (Some(_), _) => {
            Err("with --at, write the fields of the packet as one word, such as 'ip_dst=10.0.0.2,tcp_dst=80'"
                .to_owned())
        }
        (None, _) if args.to.is_some() => {
            Err("--to goes with --at: write burnet explain A B otherwise".to_owned())
        }
        (None, [a, b]) => {
            let there = way(("from", a), Some(b), None);
            let back = way(("from", b), Some(a), None);
            Ok(if args.one_way { vec![there] } else { vec![there, back] })
        }
        // The fields are those of the packet from A to B; the answer to it has others.
        (None, [a, b, packet]) => Ok(vec![way(("from", a), Some(b), Some(packet))]),
        (None, _) => {
            Err("write two hosts, or --at PORT and the fields of a packet: `burnet explain --help` shows how"
                .to_owned())
        }
    }
}

/// A way in words. `before`: an earlier answer, and how many seconds ago that was.
fn text(heading: &str, answer: &Value, before: Option<(&Value, u64)>) -> String {
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let mut out = String::new();
    // Writing to a string does not fail.
    let _ = writeln!(out, "{heading}: {}", word(&answer["verdict"]));
    let _ = writeln!(out, "  {}", word(&answer["reason"]));
    let _ = writeln!(out, "  packet: {}", word(&answer["packet"]));
    let mut stop = None;
    for step in answer["steps"].as_array().into_iter().flatten() {
        if stop != step["stop"].as_u64() {
            stop = step["stop"].as_u64();
            let _ = writeln!(out, "  {} in by port {}", word(&step["switch"]), word(&step["in_port"]));
        }
        out += &self::step(step, before);
    }
    for exit in answer["exits"].as_array().into_iter().flatten() {
        let hosts: Vec<String> = exit["hosts"].as_array().into_iter().flatten().map(word).collect();
        let hosts = if hosts.is_empty() { String::new() } else { format!(" to {}", hosts.join(", ")) };
        let may = if exit["is_choice"] == true { "may leave" } else { "leaves" };
        let _ = writeln!(out, "  {may} by {}{hosts}", word(&exit["at"]));
    }
    for unread in answer["unread"].as_array().into_iter().flatten() {
        let _ = writeln!(out, "  {} was not read: {}", word(&unread["switch"]), word(&unread["reason"]));
    }
    if answer["is_cut"] == true {
        out += "  the rest of its way is left out: it has too many stops\n";
    }
    out
}

fn step(step: &Value, before: Option<(&Value, u64)>) -> String {
    let word = |name: &str| step[name].as_str().unwrap_or_default();
    let mut out = String::new();
    if let Some(table) = step["table"].as_u64() {
        let _ = writeln!(out, "    table {table}: {}{}", word("rule"), counters(step, before));
        let owner = owner(step);
        if !owner.is_empty() {
            let _ = writeln!(out, "      owner: {owner}");
        }
    }
    let _ = writeln!(out, "      does: {}", word("action"));
    if !word("rewrites").is_empty() {
        let _ = writeln!(out, "      changed by: {}", word("rewrites"));
    }
    for output in step["outputs"].as_array().into_iter().flatten() {
        let port = output["port"].as_str().unwrap_or_default();
        match (output["fate"].as_str(), output["to"].as_str()) {
            (Some("sent"), Some(to)) => out += &format!("      out by port {port} to {to}\n"),
            (Some("sent"), None) => out += &format!("      out by port {port}\n"),
            // A note says why not.
            _ => {}
        }
    }
    for note in step["notes"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        let _ = writeln!(out, "      note: {note}");
    }
    out
}

/// The app, and the intent or set behind the rule.
fn owner(step: &Value) -> String {
    let name = step["owner"].as_str().unwrap_or_default();
    match (step["intent"].as_u64(), step["set"].as_str()) {
        (Some(intent), _) => format!("{name}, intent {intent}"),
        (None, Some(set)) => format!("{name}, set {set:?}"),
        (None, None) => name.to_owned(),
    }
}

/// The packets of a rule, and how many of them came since.
fn counters(step: &Value, before: Option<(&Value, u64)>) -> String {
    let Some(packets) = step["packets"].as_u64() else { return String::new() };
    let Some((before, seconds)) = before else { return format!("  ({packets} packets)") };
    let mut earlier = before["steps"].as_array().into_iter().flatten();
    let same = earlier.find(|it| it["rule_id"] == step["rule_id"]).and_then(|it| it["packets"].as_u64());
    match same {
        Some(same) => {
            let more = packets.saturating_sub(same);
            format!("  ({packets} packets, {more} of them in the last {seconds} s)")
        }
        None => format!("  ({packets} packets, and the packet did not meet this rule {seconds} s ago)"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn args(words: &[&str], at: Option<&str>, to: Option<&str>) -> ExplainArgs {
        ExplainArgs {
            words: words.iter().map(|it| (*it).to_owned()).collect(),
            at: at.map(str::to_owned),
            to: to.map(str::to_owned),
            one_way: false,
            watch: None,
            asking: Default::default(),
        }
    }

    #[test]
    fn what_names_no_way_is_refused() {
        let check = |args: ExplainArgs, part: &str| {
            let why = ways(&args).unwrap_err();
            assert!(why.contains(part), "{why}");
        };
        check(args(&[], None, None), "two hosts");
        check(args(&["a"], None, None), "two hosts");
        check(args(&["a", "b"], Some("1/1"), None), "as one word");
        check(args(&["a", "b"], None, Some("1/1")), "--at");
    }

    #[test]
    fn two_hosts_are_explained_in_both_directions() {
        let check = |args: ExplainArgs, expected: &[&str]| {
            let targets: Vec<String> = ways(&args).unwrap().into_iter().map(|way| way.target).collect();
            let expected: Vec<String> = expected.iter().map(|it| format!("/api/v1/explain?{it}")).collect();
            assert_eq!(targets, expected);
        };
        check(args(&["a", "b"], None, None), &["from=a&to=b", "from=b&to=a"]);
        check(args(&["a", "b", "tcp_dst=80"], None, None), &["from=a&to=b&packet=tcp_dst%3D80"]);
        check(args(&["ip"], Some("of:1/3"), None), &["at=of:1/3&packet=ip"]);
    }

    #[test]
    fn a_step_says_whose_rule_it_is_and_how_its_counter_moved() {
        let answer = |packets: u64| {
            json!({"verdict": "dropped", "reason": "Port 2 is down.", "packet": "ip", "steps": [
                {"stop": 0, "switch": "of:1", "in_port": "1", "table": 0, "rule": "priority=5,ip", "rule_id": "x",
                 "owner": "paths", "intent": 7, "action": "output:2", "packets": packets,
                 "outputs": [{"port": "2", "fate": "down"}], "notes": ["port 2 is down"]}]})
        };
        let shown = text("a -> b", &answer(9), Some((&answer(4), 2)));
        let expected = "a -> b: dropped\n  Port 2 is down.\n  packet: ip\n  of:1 in by port 1\n    \
                        table 0: priority=5,ip  (9 packets, 5 of them in the last 2 s)\n      owner: paths, intent 7\n      \
                        does: output:2\n      note: port 2 is down\n";
        assert_eq!(shown, expected);
    }
}
