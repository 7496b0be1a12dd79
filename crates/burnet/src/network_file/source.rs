//! A network file as text, with the lines of its entries.
//!
//! In: the text of a file. Out: a document, or a sentence with file, line and field. It opens no file.

use super::document::{Document, Wrong};

/// Reads the text of a file. `path` is for the error.
///
/// # Errors
/// `network.toml:12: [[intent]] 2, to: …`
pub fn read(path: &str, text: &str) -> Result<Document, String> {
    let table: toml::Table = package::toml_text::parse(text)
        .map_err(|fault| format!("{path}:{}: {}", fault.line, fault.reason))?;
    let value = package::toml_text::json_object(table).map_err(|why| format!("{path}: {why}"))?;
    Document::read(value.into()).map_err(|wrong| sentence(path, text, &wrong))
}

fn sentence(path: &str, text: &str, wrong: &Wrong) -> String {
    let entry = wrong.entry.map(|(table, number)| format!("[[{table}]] {}", number + 1));
    let place: Vec<String> = entry.into_iter().chain(wrong.field.clone()).collect();
    let place = if place.is_empty() { String::new() } else { format!("{}: ", place.join(", ")) };
    format!("{path}:{}: {place}{}", line(text, wrong), wrong.reason)
}

/// The line of the wrong key, or that of its table's header.
fn line(text: &str, wrong: &Wrong) -> usize {
    let key = wrong.field.as_deref().and_then(|field| field.split(['.', '[']).next()).unwrap_or_default();
    let is_key = |line: &str| {
        let rest = line.trim_start().strip_prefix(key).map(str::trim_start);
        !key.is_empty() && rest.is_some_and(|rest| rest.starts_with(['=', '.']))
    };
    let lines: Vec<&str> = text.lines().collect();
    let header = |line: &str, table: &str| {
        line.trim()
            .strip_prefix("[[")
            .and_then(|rest| rest.split("]]").next())
            .is_some_and(|name| name.trim() == table)
    };
    let start = match wrong.entry {
        None => 0,
        Some((table, number)) => {
            let headers = lines.iter().enumerate().filter(|(_, line)| header(line, table));
            headers.map(|(at, _)| at).nth(number).unwrap_or_default()
        }
    };
    let first = start + usize::from(wrong.entry.is_some());
    let section = lines.iter().skip(first).take_while(|line| !line.trim_start().starts_with("[["));
    let found = section.enumerate().find(|(_, line)| is_key(line)).map(|(at, _)| first + at);
    // A key at the top may also be the name of a table.
    let as_table = || lines.iter().position(|line| wrong.entry.is_none() && header(line, key));
    found.or_else(as_table).unwrap_or(start) + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = r#"name = "campus"
protected = ["of:1/4"]

[[host]]
id = "00:00:00:00:00:01"
at = "of:1/1"
addresses = ["10.0.0.1"]

[[intent]]
name = "web"
type = "host_to_host"
one = "00:00:00:00:00:01"
two = "00:00:00:00:00:02"
constraints = { bandwidth_kbps = 1000 }

[[rules]]
name = "no-telnet"
rules = [
  { switch = "of:1", priority = 40000, match = { eth_type = "0x0800", ip_proto = 6, tcp_dst = 23 }, instructions = [] },
]
"#;

    #[test]
    fn a_wrong_file_is_refused_with_line_and_field() {
        let check = |from: &str, to: &str, start: &str, part: &str| {
            assert!(GOOD.contains(from), "{from}");
            let why = read("network.toml", &GOOD.replacen(from, to, 1)).unwrap_err();
            assert!(why.starts_with(&format!("network.toml:{start}")) && why.contains(part), "{why}");
        };
        check("name = \"campus\"", "name = \"Campus\"", "1: name: ", "lower-case");
        check("name = \"campus\"", "nam = \"campus\"", "1: name: ", "write a name");
        check("[\"of:1/4\"]", "[\"of:1\"]", "2: protected: ", "connect point");
        check("[[host]]", "[[hosts]]", "4: hosts: ", "unknown key");
        check("at = \"of:1/1\"", "at = \"of:1\"", "6: [[host]] 1, at: ", "connect point");
        check("at = \"of:1/1\"", "", "4: [[host]] 1, at: ", "missing");
        check(
            "two = \"00:00:00:00:00:02\"",
            "two = \"00:00:00:00:00:01\"",
            "13: [[intent]] 1, two: ",
            "same host",
        );
        check("type = \"host_to_host\"", "type = \"host\"", "11: [[intent]] 1, type: ", "host_to_host");
        check("constraints = {", "constraint = {", "14: [[intent]] 1, constraint", "unknown");
        check("name = \"web\"", "name = \"a/b\"", "10: [[intent]] 1, name: ", "slash");
        check("priority = 40000", "prio = 40000", "1", "prio");
        check("ip_proto = 6, ", "", "18: [[rules]] 1, rules[0].match: ", "ip_proto");
        check(
            "instructions = []",
            "instructions = [], idle_timeout_s = 5",
            "18: [[rules]] 1, rules[0].idle",
            "time-outs",
        );
        check(
            "name = \"no-telnet\"",
            "name = \"no-telnet\"\npermanent = false",
            "18: [[rules]] 1, permanent: ",
            "unknown key",
        );
        check("[[rules]]", "[[rules]", "1", "");
        let twice = format!(
            "{GOOD}\n[[intent]]\nname = \"web\"\ntype = \"point_to_point\"\nfrom = \"1/1\"\nto = \"2/1\"\n"
        );
        let why = read("n", &twice).unwrap_err();
        assert!(why.starts_with("n:23: [[intent]] 2, name: \"campus/web\" is there twice"), "{why}");
    }

    #[test]
    fn a_file_reads_as_the_bodies_of_the_interface() {
        let document = read("n", GOOD).unwrap();
        assert_eq!((document.objects(), document.protected.len()), (3, 1));
        assert_eq!(document.intents[0].name, "campus/web");
        assert_eq!(
            (document.rules[0].name.as_str(), document.rules[0].permanent),
            ("campus/no-telnet", true)
        );
        assert!(document.owns("campus/x") && !document.owns("campus2/x") && !document.owns("campus"));
        assert_eq!(Document::read(document.value.clone()), Ok(document));
    }
}
