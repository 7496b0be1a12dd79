//! The file of a profile: what is written is read back, and every mistake is named with its line.

use crate::random;

use profile::file::{BASES_MAX, KeyNeed, PROBLEMS_MAX, TEXT_BYTES_MAX, known_keys, values};
use profile::*;
use proptest::prelude::*;

fn no_bases(_: &str) -> Option<&'static str> {
    None
}

fn read(text: &str) -> Result<Profile, BadProfile> {
    Profile::from_toml("my.toml", text, &no_bases)
}

proptest! {
    #[test]
    fn what_is_written_is_read_back_equal(seed: u64) {
        let profile = random::profile(seed);
        let text = profile.to_toml().unwrap();
        let again = read(&text).unwrap();
        prop_assert_eq!(&again, &profile, "{}", text);
        prop_assert_eq!(again.to_toml().unwrap(), text);
    }

    #[test]
    fn a_damaged_file_is_refused_or_read_but_never_a_panic(seed: u64, at in 0.0..1.0_f64, byte in 0..128_u8) {
        let mut text = random::profile(seed).to_toml().unwrap().into_bytes();
        let index = (at * text.len() as f64) as usize;
        text[index] = byte;
        if let Ok(text) = String::from_utf8(text)
            && let Ok(profile) = read(&text)
        {
            prop_assert_eq!(read(&profile.to_toml().unwrap()).unwrap(), profile);
        }
    }
}

const SMALL: &str = r#"schema = 1
name = "small"

[cpu]
queue_messages = 64
add = { rank = 1, service_us = [[0, 100], [0.5, 200],
  [1, 900]] }

[source]
cpu = { assumed = "a guess" }
"#;

#[test]
fn a_small_file_is_a_profile() {
    let profile = read(SMALL).unwrap();
    let mut expected = Profile { name: "small".to_owned(), ..Profile::default() };
    expected.cpu.queue_messages = Some(64);
    let service_us = Quantiles::new(&[(0.0, 100.0), (0.5, 200.0), (1.0, 900.0)]).unwrap();
    expected.cpu.add = Service { rank: 1, service_us };
    expected.sources.set("cpu", Provenance::Assumed("a guess".to_owned()));
    assert_eq!(profile, expected);
}

/// Replaces a part of [`SMALL`], and compares the first problem.
fn check(from: &str, to: &str, expected: &str) {
    assert!(SMALL.contains(from), "{from}");
    let bad = read(&SMALL.replacen(from, to, 1)).expect_err("a problem");
    assert_eq!(bad.problems[0].to_string(), format!("my.toml:{expected}"), "{bad}");
}

#[test]
fn a_wrong_value_is_named_with_its_line_and_what_was_expected() {
    check(
        "queue_messages = 64",
        "queue_messages = 0",
        "5: cpu.queue_messages is 0; expected a whole number from 1 to 100000000",
    );
    check(
        "queue_messages = 64",
        "queue_messages = 6.5",
        "5: cpu.queue_messages is 6.5; expected a whole number from 1 to 100000000",
    );
    check(
        "queue_messages = 64",
        "queue_messages = \"many\"",
        "5: cpu.queue_messages is \"many\"; expected a whole number from 1 to 100000000",
    );
    check("rank = 1", "rank = 256", "6: cpu.add.rank is 256; expected a whole number from 0 to 255");
    check(
        "\"small\"",
        "\"Small\"",
        "2: name is \"Small\"; expected a name of at most 64 lower-case letters, digits, dots and hyphens",
    );
    check(
        "[cpu]",
        "[cpu]\nqueue_full = \"wait\"",
        "5: cpu.queue_full is \"wait\"; expected one of \"lose_packet_ins\", \"lose_any\"",
    );
    check(
        "[cpu]\n",
        "[delay]\ningress_us = nan\n[cpu]\n",
        "5: delay.ingress_us is NaN; expected 0 to a day, in µs",
    );
    check(
        "[cpu]\n",
        "[delay]\ningress_us = -1\n[cpu]\n",
        "5: delay.ingress_us is -1; expected 0 to a day, in µs",
    );
    check(
        "[cpu]\n",
        "[delay]\negress_us = 1e30\n[cpu]\n",
        "5: delay.egress_us is 1000000000000000000000000000000; expected 0 to a day, in µs",
    );
    check(
        "[cpu]\n",
        "[packet_in.limit]\nrate_per_s = 0\nburst_packets = 1\n[cpu]\n",
        "5: packet_in.limit.rate_per_s is 0; expected a number from 0.001 to 1000000000",
    );
    check(
        "[cpu]\n",
        "[packet_in]\nmiss_send_bytes = 70000\n[cpu]\n",
        "5: packet_in.miss_send_bytes is 70000; expected a whole number from 0 to 65535",
    );
    check(
        "[cpu]\n",
        "[packet_in]\nmiss_send_bytes = 99999999999999999999\n[cpu]\n",
        "5: packet_in.miss_send_bytes is 99999999999999999999; expected a whole number from 0 to 65535",
    );
}

#[test]
fn a_wrong_table_is_named_with_the_line_of_its_point() {
    let expected = "a number of µs, or points [probability, µs] from [0, minimum] to [1, maximum]";
    check(
        "[1, 900]",
        "[1, 150]",
        "7: cpu.add.service_us is no quantile table: point 3 falls from 200 to 150 µs; expected values that never fall",
    );
    check(
        "[1, 900]",
        "[0.9, 900]",
        "7: cpu.add.service_us is no quantile table: the last point is at probability 0.9; expected 1, the maximum",
    );
    check(
        "[1, 900]",
        "[1, 900, 2]",
        &format!("7: cpu.add.service_us has a point of 3 values; expected {expected}"),
    );
    check("[1, 900]", "[1, \"x\"]", &format!("7: cpu.add.service_us is \"x\"; expected {expected}"));
    check("[1, 900]", "7", &format!("7: cpu.add.service_us is 7; expected {expected}"));
}

#[test]
fn an_unknown_key_is_named_with_what_was_probably_meant() {
    check(
        "queue_messages",
        "queue_mesages",
        "5: cpu.queue_mesages is an unknown key; expected perhaps queue_messages",
    );
    check("rank = 1", "colour = 1", "6: cpu.add.colour is an unknown key; expected one of rank, service_us");
    check("[cpu]", "[cpus]", "4: cpus is an unknown key; expected perhaps cpu");
    check(
        "[cpu]\n",
        "[barrier]\nrules_late_us = 5\n[cpu]\n",
        "5: barrier.rules_late_us does not go with the other values of its table; expected it to be left out",
    );
}

#[test]
fn the_head_of_a_file_is_checked_first() {
    check("schema = 1\n", "", "1: schema is missing; expected schema = 1 in the first line");
    check(
        "schema = 1",
        "schema = 2",
        "1: schema is 2, newer than this Burnet reads; expected 1. Update Burnet",
    );
    check("schema = 1", "schema = \"1\"", "1: schema is \"1\"; expected 1");
    check(
        "name = \"small\"\n",
        "",
        "1: name is missing; expected a name of at most 64 lower-case letters, digits, dots and hyphens",
    );
    check("name = ", "name = = ", "2: TOML: extra `=`, expected nothing");
    check("schema = 1", "schema = 1\nbased_on = \"x\"", "2: based_on names no known profile: \"x\"");
    check("schema = 1", "schema = 1\nwithout = [\"x\"]", "2: without is given without based_on");
    let long = format!("{SMALL}{}", "#".repeat(TEXT_BYTES_MAX));
    let bad = read(&long).unwrap_err().to_string();
    assert_eq!(
        bad,
        format!("my.toml:1: the file has {} bytes; expected at most {TEXT_BYTES_MAX}", long.len())
    );
}

#[test]
fn a_value_without_a_source_is_a_problem_and_so_is_a_source_without_a_value() {
    let kinds = "{ measured = \"2026-11-25\", firmware = \"…\", samples = 200 }, { published = \"…\" }, \
                 { reconstructed = \"…\" } or { assumed = \"…\" }";
    check(
        "cpu = { a",
        "\"cpu.add\" = { a",
        &format!(
            "5: cpu.queue_messages has no source; expected \"cpu.queue_messages\" = {kinds} in [source]"
        ),
    );
    check(
        "cpu = { a",
        "delay = { assumed = \"x\" }\ncpu = { a",
        "10: source.\"delay\" is the source of no value of this file; expected the path of a value or of a table",
    );
    check(
        "assumed = \"a guess\"",
        "",
        &format!("10: source.\"cpu\" has 0 kinds of source; expected {kinds}"),
    );
    check(
        "cpu = {",
        "cpu.add = {",
        &format!(
            "10: source.\"cpu\" has 0 kinds of source; expected {kinds}; put a path with dots in quotes"
        ),
    );
    check(
        "\"a guess\"",
        "\" \"",
        &format!("10: source.\"cpu\" has no text of 1 to 500 characters at assumed; expected {kinds}"),
    );
    check("assumed = ", "measured = ", &format!("10: source.\"cpu\" has no firmware; expected {kinds}"));
    check(
        "assumed = \"a guess\"",
        "measured = \"25.11.2026\", firmware = \"1\", samples = 5",
        "10: source.\"cpu\" has the date \"25.11.2026\"; expected a date such as \"2026-11-25\"",
    );
    check(
        "assumed = \"a guess\"",
        "assumed = \"x\", samples = 5",
        &format!("10: source.\"cpu\" has the unknown key \"samples\"; expected {kinds}"),
    );
}

#[test]
fn values_that_do_not_go_together_are_problems() {
    let with = |tables: &str, expected: &str| {
        let text = format!("schema = 1\nname = \"x\"\n{tables}\n[source]\n\"*\" = {{ assumed = \"x\" }}\n");
        assert_eq!(read(&text).unwrap_err().to_string(), format!("my.toml:{expected}"));
    };
    with(
        "[software]\nuse = \"when_full\"",
        "4: software.use needs a table [hardware]; expected \"only\" without one",
    );
    with(
        "[hardware]\ncapacity = [{ entries = 5 }]\n[software]\nuse = \"only\"",
        "6: software.use is \"only\", but there is a table [hardware]; expected one of both",
    );
    with(
        "[hardware]\nwhen_full = \"spill\"\ncapacity = [{ entries = 5 }]",
        "4: hardware.when_full is \"spill\", but there is no table [software]",
    );
    with(
        "[hardware]\nwhen_full = \"evict\"\ncapacity = [{ entries = 5 }]",
        "4: hardware.when_full is \"evict\"; expected evict = [\"oldest\"] or another order beside it",
    );
    with(
        "[hardware]\nevict = [\"oldest\"]\ncapacity = [{ entries = 5 }]",
        "4: hardware.evict is given, but when_full is not \"evict\"",
    );
    with("[hardware]\ncapacity = []", "4: hardware.capacity has 0 items; expected 1 to 32 tables");
    with("[hardware]\n", "3: hardware.capacity is missing; expected 1 to 32 tables [[hardware.capacity]]");
    with(
        "[hardware]\ncapacity = [{ entries = 5 }, { entries = 6 }]",
        "4: hardware.capacity has a class behind one that takes every match; expected the class without fields last",
    );
    with(
        "[hardware]\ncapacity = [{ entries = 5 }]\nstall = { lasts_us = 5 }",
        "5: hardware.stall has both or none of every_us and every_changes; expected one",
    );
    with(
        "[hardware]\ncapacity = [{ entries = 5 }]\nstall = { every_us = 0, lasts_us = 5 }",
        "5: hardware.stall.every_us is always 0, so that the hardware never works; expected some time",
    );
    with(
        "[software]\nuse = \"only\"\nat_least = true",
        "5: software.at_least says how to read entries; expected entries beside it",
    );
    with(
        "[hardware]\ncapacity = [{ entries = 5 }]\n[install]\nsize_rules = 5\nrate_per_s = 8\nbatch_rules = 6",
        "8: install.batch_rules is larger than size_rules",
    );
    with("[install]\nsize_rules = 5\nrate_per_s = 8", "3: install needs a table [hardware]");
    with(
        "[[switch.recognised_by]]\nmanufacturer = \"\"",
        "3: switch.recognised_by has a pattern without a text, which fits every switch; expected manufacturer, hardware or software",
    );
    with(
        "[barrier]\nrules_in_order = false",
        "4: barrier.rules_in_order is false with an honest reply; expected reply = \"early\" or \"not_ordering\"",
    );
}

#[test]
fn every_problem_is_listed_up_to_a_bound() {
    let bad =
        read("schema = 1\nname = \"x\"\nfirst = 1\nsecond = 2\n[cpu]\nqueue_messages = 0\n").unwrap_err();
    let lines: Vec<_> = bad.problems.iter().map(|problem| (problem.line, problem.key.as_str())).collect();
    let expected = [(3, "first"), (4, "second"), (6, "cpu.queue_messages"), (6, "cpu.queue_messages")];
    assert_eq!(lines, expected);
    let many = |count: u32| (0..count).map(|number| format!("key{number} = 1\n")).collect::<String>();
    let bad = read(&format!("schema = 1\nname = \"x\"\n{}", many(100))).unwrap_err();
    assert_eq!((bad.problems.len(), bad.left_out), (PROBLEMS_MAX, 80));
    assert!(bad.to_string().ends_with("\n80 more problems"));
    let bad = read(&format!("[cpu]\n{}", many(1001))).unwrap_err();
    assert_eq!(bad.to_string(), "my.toml:1: a table has 1001 keys; expected at most 1000");
}

const BASE: &str = r#"schema = 1
name = "base"
about = "The base."

[hardware]
when_full = "refuse"
capacity = [{ entries = 1912 }]

[timeouts]
scan_period_us = 1000

[source]
hardware = { published = "Table 1" }
timeouts = { assumed = "a guess" }
"#;

fn bases(name: &str) -> Option<&'static str> {
    match name {
        "base" => Some(BASE),
        "circle" => Some("schema = 1\nbased_on = \"circle\""),
        "broken" => Some("schema = 1\n[cpu]\nqueue_messages = 0"),
        _ => None,
    }
}

fn variant(text: &str) -> Result<Profile, BadProfile> {
    Profile::from_toml("variant.toml", text, &bases)
}

#[test]
fn a_variant_changes_some_keys_and_says_where_they_are_from() {
    let text = "schema = 1\nname = \"variant\"\nbased_on = \"base\"\nwithout = [\"timeouts\"]\n\
                [hardware]\nwhen_full = \"spill\"\n[software]\nuse = \"when_full\"\n\
                [source]\nhardware = { assumed = \"the text\" }\nsoftware = { assumed = \"the text\" }";
    let profile = variant(text).unwrap();
    let base = Profile::from_toml("base.toml", BASE, &no_bases).unwrap();
    assert_eq!((profile.name.as_str(), profile.about.as_str()), ("variant", ""));
    let hardware = profile.hardware.clone().unwrap();
    assert_eq!(hardware.capacities, base.hardware.unwrap().capacities);
    assert_eq!(hardware.when_full, WhenFull::Spill);
    assert_eq!(profile.timeouts, Timeouts::default());
    let source = |path: &str| profile.sources.of(path).unwrap().to_string();
    assert_eq!(source("hardware.capacity.entries"), "published: Table 1");
    assert_eq!(source("hardware.when_full"), "assumed: the text");
    assert!(!profile.sources.has("timeouts"));
    assert_eq!(read(&profile.to_toml().unwrap()).unwrap(), profile);
}

#[test]
fn a_changed_value_cannot_keep_the_source_of_the_base() {
    let bad = variant("schema = 1\nname = \"variant\"\nbased_on = \"base\"\n[timeouts]\nscan_period_us = 5")
        .unwrap_err();
    assert!(
        bad.to_string().starts_with("variant.toml:5: timeouts.scan_period_us has no source; expected"),
        "{bad}"
    );
}

#[test]
fn a_problem_of_a_base_is_named_with_the_file_of_the_base() {
    let of =
        |base: &str| variant(&format!("schema = 1\nname = \"variant\"\nbased_on = \"{base}\"")).unwrap_err();
    assert_eq!(
        of("broken").problems[0].to_string(),
        "broken:3: cpu.queue_messages is 0; expected a whole number from 1 to 100000000"
    );
    let circle = format!("circle:2: based_on is based on more than {BASES_MAX} profiles, one on the other");
    assert_eq!(of("circle").to_string(), circle);
    let text = "schema = 1\nname = \"variant\"\nbased_on = \"base\"\nwithout = [\"cpu.add\"]";
    assert_eq!(
        variant(text).unwrap_err().to_string(),
        "variant.toml:4: without names \"cpu.add\", which the base does not have"
    );
}

#[test]
fn a_profile_that_no_file_may_have_is_not_written() {
    let unsourced =
        Profile { timeouts: Timeouts { scan_period_us: 5.0, counter_period_us: 0.0 }, ..Profile::null() };
    assert!(unsourced.to_toml().unwrap_err().to_string().contains("timeouts.scan_period_us has no source"));
    let mut nan = unsourced;
    nan.timeouts.scan_period_us = f64::NAN;
    assert!(nan.to_toml().unwrap_err().to_string().contains("timeouts.scan_period_us is NaN; expected"));
    assert_eq!(read(&Profile::null().to_toml().unwrap()).unwrap(), Profile::null());
}

#[test]
fn a_default_is_written_only_if_it_has_a_source_of_its_own() {
    let mut profile = Profile::null();
    profile.sources = Sources::everything(Provenance::Assumed("x".to_owned()));
    assert!(!profile.to_toml().unwrap().contains("miss_send_bytes"));
    profile.sources.set("packet_in.miss_send_bytes", Provenance::Assumed("seen".to_owned()));
    let text = profile.to_toml().unwrap();
    assert!(text.contains("miss_send_bytes = 128"), "{text}");
    let stated: Vec<_> = profile::file::stated(&profile).into_iter().map(|(path, _)| path).collect();
    assert_eq!(stated, ["name", "packet_in.miss_send_bytes"]);
    assert_eq!(read(&text).unwrap(), profile);
}

#[test]
fn the_defaults_that_are_listed_are_those_of_the_types() {
    for key in known_keys() {
        if let KeyNeed::Default(default) = &key.need {
            assert_eq!(key.value.as_ref(), Some(default), "{}", key.path);
        }
    }
    let listed: Vec<_> = known_keys().into_iter().map(|key| key.path).collect();
    for (path, _) in values(&random::profile(7)) {
        assert!(listed.contains(&path), "{path}");
    }
}
