//! What the fuzz targets have been given and what they found, on stable Rust: `fuzz/corpus/<target>`, each file once.
//!
//! With `BURNET_BLESS=1` the seeds are made again from the golden files. Other inputs that fuzzing found stay.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test may")]

#[path = "../../openflow/tests/captured/mod.rs"]
mod captured;
#[path = "../../../fuzz/checks/openflow.rs"]
mod checks;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::{env, fs};

use flow::canonical::{write_actions, write_instructions, write_match};
use openflow::message::{FlowMod, PacketOut};
use openflow::{Body, HEADER_LEN, Message};

const TARGETS: [&str; 10] = [
    "message_v10",
    "message_v13",
    "hello",
    "views",
    "stream",
    "oxm_match",
    "actions",
    "instructions",
    "json",
    "text",
];
/// How many seeds of one type of message are kept: enough to show a fuzzer what there is, few enough to be kept.
const SEEDS_PER_TYPE: usize = 3;
/// A longer message makes a fuzzer slow and shows it nothing new.
const SEED_LEN: usize = 400;

fn corpus(target: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target)
}

fn read_all(target: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let entries = fs::read_dir(corpus(target)).unwrap_or_else(|error| panic!("corpus of {target}: {error}"));
    let paths = entries.map(|entry| entry.unwrap().path());
    paths.map(|path| (path.clone(), fs::read(path).unwrap())).collect()
}

/// The seeds that a captured message gives, each with the target it is for.
fn seeds(bytes: &[u8]) -> Vec<(&'static str, Vec<u8>)> {
    let [version, kind, ..] = *bytes else { return Vec::new() };
    let body = &bytes[HEADER_LEN..];
    let target = if version == 1 { "message_v10" } else { "message_v13" };
    let mut seeds = vec![(target, [&[kind], body].concat())];
    match kind {
        0 => seeds.push(("hello", [&[version], body].concat())),
        10 | 11 | 13 | 14 => seeds.push(("views", body.to_vec())),
        _ => {}
    }
    let Ok(message) = Message::decode(bytes) else { return seeds };
    seeds.push(("json", openflow_text::json::to_json(&message).to_string().into_bytes()));
    seeds.push((
        "text",
        [&[version >> 1], openflow_text::text::to_text(&message).trim_end().as_bytes()].concat(),
    ));
    let (mut tlvs, mut actions, mut instructions) = (Vec::new(), Vec::new(), Vec::new());
    match &message.body {
        Body::FlowMod(FlowMod { matching, instructions: list, .. }) => {
            write_match(matching, &mut tlvs);
            // What only 1.0 says cannot be said canonically, and is no seed then.
            let _ = write_instructions(list, &mut instructions);
        }
        Body::PacketOut(PacketOut { actions: list, .. }) => {
            let _ = write_actions(list, &mut actions);
        }
        _ => {}
    }
    for (target, seed) in [("oxm_match", tlvs), ("actions", actions), ("instructions", instructions)] {
        if !seed.is_empty() {
            seeds.push((target, seed));
        }
    }
    seeds
}

fn write_seeds() {
    let mut kept: BTreeMap<(&str, u8), usize> = BTreeMap::new();
    let messages = captured::messages();
    let mut all: Vec<(&str, u8, Vec<u8>)> = Vec::new();
    for bytes in &messages {
        all.extend(seeds(bytes).into_iter().map(|(target, seed)| (target, bytes[1], seed)));
    }
    all.push((
        "stream",
        0,
        messages.iter().filter(|bytes| bytes.len() < 80).take(8).flatten().copied().collect(),
    ));
    for (target, kind, seed) in all {
        let count = kept.entry((target, kind)).or_default();
        let limit = if target.starts_with("message") { SEEDS_PER_TYPE } else { 4 * SEEDS_PER_TYPE };
        if *count < limit && seed.len() <= SEED_LEN {
            fs::create_dir_all(corpus(target)).unwrap();
            fs::write(corpus(target).join(format!("captured-{kind:02}-{count}")), &seed).unwrap();
            *count += 1;
        }
    }
}

#[test]
fn what_fuzzing_was_given_and_found_holds() {
    if env::var_os("BURNET_BLESS").is_some() {
        write_seeds();
    }
    for target in TARGETS {
        let check = checks::check(target).expect(target);
        let inputs = read_all(target);
        assert!(!inputs.is_empty(), "no corpus of {target}");
        for (path, bytes) in inputs {
            // A failure names the file, as the check cannot.
            if std::panic::catch_unwind(|| check(&bytes)).is_err() {
                panic!("{}", path.display());
            }
        }
    }
}
