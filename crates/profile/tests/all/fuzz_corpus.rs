//! What the fuzz target was given and what it found, on stable Rust: `fuzz/corpus/profile_file`, each file once.
//!
//! With `BURNET_BLESS=1` the seeds are made again. Other inputs that fuzzing found stay.

#[path = "../../../../fuzz/checks/profile.rs"]
mod checks;
use crate::random;

use profile::built_in::text;
use std::fs;
use std::path::{Path, PathBuf};

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/profile_file")
}

fn seeds() -> Vec<(String, String)> {
    let of = |name: &str| text(name).expect("a built-in profile").to_owned();
    let built_in = ["null", "hp-procurve-j9451a", "quanta-lb4g-software", "ibm-g8264"];
    let mut seeds: Vec<_> = built_in.iter().map(|name| (format!("seed-{name}"), of(name))).collect();
    // Random profiles have keys that no built-in one has.
    for seed in 1..=3 {
        let written = random::profile(seed).to_toml().expect("a valid profile");
        seeds.push((format!("seed-random-{seed}"), written));
    }
    seeds
}

#[test]
fn the_seeds_are_what_is_written_today() {
    for (name, text) in seeds() {
        let path = corpus().join(&name);
        if std::env::var_os("BURNET_BLESS").is_some() {
            fs::create_dir_all(corpus()).unwrap();
            fs::write(&path, &text).unwrap();
        }
        assert!(
            fs::read_to_string(&path).is_ok_and(|kept| kept == text),
            "{name}: BURNET_BLESS=1 writes it again"
        );
        assert!(profile::Profile::parse(&name, &text).is_ok(), "{name}");
    }
}

#[test]
fn what_was_kept_holds() {
    let files: Vec<_> = fs::read_dir(corpus()).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(files.len() >= seeds().len());
    files.iter().for_each(|path| checks::profile_file(&fs::read(path).unwrap()));
}

#[test]
fn changed_seeds_hold() {
    // A fuzzer for stable Rust: each change of a byte, a line or a number of a seed, from a seed of its own.
    let mut draw = random::Draw(1);
    for (_, text) in seeds() {
        for _ in 0..300 {
            checks::profile_file(changed(&text, &mut draw).as_bytes());
        }
    }
}

fn changed(text: &str, draw: &mut random::Draw) -> String {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let count = lines.len() as u64;
    let place = |draw: &mut random::Draw| usize::try_from(draw.below(count)).expect("small");
    let (at, other) = (place(draw), place(draw));
    match draw.below(5) {
        0 => lines.swap(at, other),
        1 => drop(lines.remove(at)),
        2 => lines[at] = lines[other].clone(),
        3 => {
            let values = [
                "0",
                "-1",
                "nan",
                "inf",
                "1e400",
                "[]",
                "{}",
                "true",
                "\"\"",
                "2026-11-25",
                "[[0, 1], [1, 0]]",
            ];
            let value = values[usize::try_from(draw.below(values.len() as u64)).expect("small")];
            let key = lines[at].split('=').next().unwrap_or_default().to_owned();
            lines[at] = format!("{key}= {value}");
        }
        _ => {
            let letter = char::from(32 + u8::try_from(draw.below(95)).expect("small"));
            let length = lines[at].chars().count().max(1) as u64;
            let column = usize::try_from(draw.below(length)).expect("small");
            lines[at] = lines[at]
                .chars()
                .enumerate()
                .map(|(index, c)| if index == column { letter } else { c })
                .collect();
        }
    }
    lines.join("\n")
}
