//! What the fuzz target of the model was given and what it found, on stable Rust: `fuzz/corpus/model`, each file once, and random runs.
//!
//! With `BURNET_BLESS=1` the seeds are made again. Other inputs that fuzzing found stay. `BURNET_MODEL_RUNS=N` makes N random runs, from
//! the seed `BURNET_MODEL_SEED` on.

#[path = "../../../../fuzz/checks/model.rs"]
mod checks;

use profile::Random;
use std::fs;
use std::path::{Path, PathBuf};

/// How many random runs there are without a wish.
const RUNS: u64 = 1500;

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/model")
}

/// The bytes of a random run: some are quick, some are slow, and some say the same things again and again.
fn run(seed: u64) -> Vec<u8> {
    let mut random = Random::new(seed);
    let mut bytes = seed.to_le_bytes().to_vec();
    let (longest_wait, whats, rules) = (1 + random.below(200), 1 + random.below(16), 1 + random.below(60));
    let first = random.below(16);
    for _ in 0..random.below(500) {
        let what = if random.below(4) == 0 { random.below(16) } else { first + random.below(whats) };
        bytes.push(u8::try_from(what % 16).unwrap());
        bytes.push(u8::try_from(random.below(rules)).unwrap());
        bytes.push(u8::try_from(random.below(longest_wait)).unwrap());
        bytes.push(u8::try_from(random.below(256)).unwrap());
    }
    bytes
}

fn seeds() -> Vec<(String, Vec<u8>)> {
    (1..=8).map(|seed| (format!("seed-{seed}"), run(seed))).collect()
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
    files.iter().for_each(|path| checks::model(&fs::read(path).unwrap()));
}

#[test]
fn random_runs_hold() {
    let wished =
        |name: &str| std::env::var(name).ok().map(|text| text.parse::<u64>().expect("a whole number"));
    let first = wished("BURNET_MODEL_SEED").unwrap_or(1000);
    for seed in first..first + wished("BURNET_MODEL_RUNS").unwrap_or(RUNS) {
        if std::panic::catch_unwind(|| checks::model(&run(seed))).is_err() {
            panic!("the run of seed {seed}: BURNET_MODEL_SEED={seed} BURNET_MODEL_RUNS=1 repeats it");
        }
    }
}
