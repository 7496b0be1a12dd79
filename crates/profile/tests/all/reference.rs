//! The reference page of profiles against the code: every key is on it with its default, and every example is read.

use profile::Profile;
use profile::file::{KeyNeed, known_keys};
use std::collections::BTreeMap;

const PAGE: &str = include_str!("../../../../docs/reference/profile.md");

/// The texts of the fenced blocks of a kind.
fn blocks(kind: &str) -> Vec<&'static str> {
    let opening = format!("```{kind}\n");
    PAGE.split(&opening).skip(1).filter_map(|rest| rest.split("```").next()).collect()
}

/// A block as a file: a part of one gets a head and a source.
fn as_file(block: &str) -> String {
    if block.starts_with("schema") {
        return block.to_owned();
    }
    format!("schema = 1\nname = \"example\"\n{block}\n[source]\n\"*\" = {{ assumed = \"an example\" }}\n")
}

#[test]
fn every_example_is_a_profile() {
    let examples = blocks("toml profile");
    assert!(examples.len() >= 5);
    for block in examples {
        Profile::parse("example", &as_file(block)).unwrap_or_else(|bad| panic!("{bad}\n{block}"));
    }
}

/// Default and meaning of each key in the page's tables.
fn documented() -> BTreeMap<&'static str, (&'static str, &'static str)> {
    let row = |line: &'static str| {
        let cells: Vec<_> = line.strip_prefix("| `")?.trim_end_matches('|').split(" | ").collect();
        let [key, meaning, default] = cells[..] else { return None };
        Some((key.trim_end_matches('`'), (default.trim().trim_matches('`'), meaning)))
    };
    PAGE.lines().filter_map(row).filter(|(key, _)| *key != "key").collect()
}

/// Each type of message has the keys of the first.
fn documented_as(path: &str) -> String {
    match path.split('.').collect::<Vec<_>>()[..] {
        ["cpu", _, key @ ("rank" | "service_us")] => format!("cpu.packet_in.{key}"),
        _ => path.to_owned(),
    }
}

#[test]
fn every_key_is_on_the_page_with_its_default() {
    let documented = documented();
    for key in known_keys() {
        let (default, meaning) = documented
            .get(documented_as(&key.path).as_str())
            .unwrap_or_else(|| panic!("{} is not on the page", key.path));
        match key.need {
            KeyNeed::Required => assert!(meaning.contains("Required"), "{}", key.path),
            // An empty text or list has a meaning, which stands there in words.
            KeyNeed::Default(value) if value == "[]" || value == "\"\"" => {
                assert!(!default.is_empty(), "{}", key.path);
            }
            KeyNeed::Default(value) => assert_eq!(*default, value, "{}", key.path),
            KeyNeed::Absent(_) => assert!(!meaning.contains("Required"), "{}", key.path),
        }
    }
}

#[test]
fn every_key_on_the_page_exists() {
    let known: Vec<_> = known_keys().into_iter().map(|key| documented_as(&key.path)).collect();
    for key in documented().keys() {
        let of_the_file = ["schema", "based_on", "without"].contains(key);
        assert!(of_the_file || known.iter().any(|path| path == key), "{key}");
    }
}

#[test]
fn the_errors_on_the_page_are_those_of_the_reader() {
    let file = "schema = 1\nname = \"my\"\n\n[source]\n\"*\" = { assumed = \"x\" }\n[cpu]\nqueue_mesages = 5\n\
                add = { service_us = [[0, 100], [0.5, 200],\n  [1, 150]] }\n\n\n\n\
                [packet_in.limit]\nrate_per_s = 0\nburst_packets = 1\n";
    let bad = Profile::parse("my.toml", file).unwrap_err();
    assert_eq!(blocks("text"), [format!("{bad}\n")]);
}

#[test]
fn every_built_in_profile_is_on_the_page() {
    for name in profile::built_in::names() {
        assert!(PAGE.contains(&format!("`{name}`")), "{name}");
    }
}
