//! What the fuzz target was given and what it found, on stable Rust: `fuzz/corpus/slices_file`, each file once.
//!
//! With `BURNET_BLESS=1` the seeds are made again. Other inputs that fuzzing found stay.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should end")]

#[path = "../../../fuzz/checks/slices.rs"]
mod checks;

use std::fs;
use std::path::{Path, PathBuf};

fn checkout() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The files that people read, and one with each kind of isolation.
fn seeds() -> Vec<(String, String)> {
    let read = |path: &str| fs::read_to_string(checkout().join(path)).unwrap();
    let of_all = "[slice.a]\ncontrollers = ['[::1]:1']\nisolation = 'flowspace'\nmatches = ['in_port=1,ip,nw_dst=10.0.0.0/8']\nports = ['s1:1 as 7']\n\
        meters = [1, 9]\n[slice.b]\ncontrollers = ['h:1']\nisolation = 'address'\nprefix = '11.0.0.0/8'\naddresses = '10.0.0.0/8'\nhosts = { '10.0.0.1' = 's1:5' }\nlinks = ['s1:1-of:2/1']\nread_only = false\n\
        [slice.c]\ncontrollers = ['h:1']\nisolation = 'vlan'\nswitches = ['s1 as s9']\nown_ports = ['s1:2']\nstep = '5%'\nfail = 'standalone'\n\
        [slice.c.limits]\nrules = { soft = 1, hard = 2 }\n[slice.c.tls]\ncertificate = 'a'\nprivate_key = 'b'\nca_certificate = 'c'\n";
    vec![
        ("seed-fig1".to_owned(), read("examples/slices/slices.toml")),
        ("seed-all".to_owned(), of_all.to_owned()),
    ]
}

fn corpus() -> PathBuf {
    checkout().join("fuzz/corpus/slices_file")
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
        assert!(config::ConfigFile::parse(&text, Path::new(&name)).is_ok(), "{name}");
    }
}

#[test]
fn what_was_kept_holds() {
    let files: Vec<_> = fs::read_dir(corpus()).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(files.len() >= seeds().len());
    files.iter().for_each(|path| checks::slices_file(&fs::read(path).unwrap()));
}

/// Numbers from a seed (xorshift).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 33) as usize % bound.max(1)
    }
}

#[test]
fn changed_seeds_hold() {
    // A fuzzer for stable Rust: each change of a letter, a line or a value of a seed.
    let mut random = Random(3);
    for (_, text) in seeds() {
        for _ in 0..2_000 {
            checks::slices_file(changed(&text, &mut random).as_bytes());
        }
    }
}

fn changed(text: &str, random: &mut Random) -> String {
    const VALUES: [&str; 12] = [
        "0",
        "-1",
        "nan",
        "[]",
        "{}",
        "true",
        "''",
        "['']",
        "[1, 2]",
        "['s1:1']",
        "'vlan'",
        "{ a = { port = 's1:1', rate = '1M' } }",
    ];
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let (at, other) = (random.below(lines.len()), random.below(lines.len()));
    match random.below(5) {
        0 => lines.swap(at, other),
        1 => drop(lines.remove(at)),
        2 => lines[at] = lines[other].clone(),
        3 => {
            let key = lines[at].split('=').next().unwrap_or_default().to_owned();
            lines[at] = format!("{key}= {}", VALUES[random.below(VALUES.len())]);
        }
        _ => {
            let column = random.below(lines[at].len());
            let letter = char::from(32 + u8::try_from(random.below(95)).unwrap());
            lines[at] = lines[at]
                .chars()
                .enumerate()
                .map(|(index, it)| if index == column { letter } else { it })
                .collect();
        }
    }
    lines.join("\n")
}
