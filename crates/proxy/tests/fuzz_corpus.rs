//! What the fuzz target was given and what it found, on stable Rust: `fuzz/corpus/proxy_stream`, each file once.
//!
//! With `BURNET_BLESS=1` the seeds are made again. Other inputs that fuzzing found stay.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should end")]

#[path = "../../../fuzz/checks/proxy.rs"]
mod checks;
mod conversation;

use conversation::conversation;
use openflow::Version;
use profile::Random;
use std::fs;
use std::path::{Path, PathBuf};

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/proxy_stream")
}

/// The conversation in both versions, by each profile and method of the check. A piece has at most 255 bytes.
fn seeds() -> Vec<(String, Vec<u8>)> {
    let mut seeds = Vec::new();
    for (version, name) in [(Version::V1_0, "1.0"), (Version::V1_3, "1.3")] {
        for which in 0..8u8 {
            let mut seed = vec![which];
            for (from_switch, message) in conversation(version) {
                for piece in message.chunks(255) {
                    // Twenty milliseconds, and the side.
                    seed.extend_from_slice(&[
                        20 << 1 | u8::from(!from_switch),
                        u8::try_from(piece.len()).unwrap(),
                    ]);
                    seed.extend_from_slice(piece);
                }
            }
            seeds.push((format!("seed-{name}-{which}"), seed));
        }
    }
    seeds
}

#[test]
fn the_seeds_are_what_is_written_today() {
    for (name, bytes) in seeds() {
        let path = corpus().join(&name);
        if std::env::var_os("BURNET_BLESS").is_some() {
            fs::create_dir_all(corpus()).unwrap();
            fs::write(&path, &bytes).unwrap();
        }
        assert!(fs::read(&path).is_ok_and(|kept| kept == bytes), "{name}: BURNET_BLESS=1 writes it again");
    }
}

#[test]
fn what_was_kept_holds() {
    let files: Vec<_> = fs::read_dir(corpus()).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(files.len() >= seeds().len());
    files.iter().for_each(|path| checks::proxy_stream(&fs::read(path).unwrap()));
}

#[test]
fn changed_seeds_hold() {
    // A fuzzer for stable Rust: bytes of a seed are changed, removed or doubled.
    let mut random = Random::new(1);
    for (_, seed) in seeds() {
        for _ in 0..300 {
            let mut bytes = seed.clone();
            for _ in 0..=random.below(4) {
                let at = random.below(bytes.len());
                match random.below(4) {
                    0 => drop(bytes.remove(at)),
                    1 => bytes.insert(at, bytes[at]),
                    _ => bytes[at] = random.bits() as u8,
                }
            }
            checks::proxy_stream(&bytes);
        }
    }
}
