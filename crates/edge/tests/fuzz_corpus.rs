//! What the fuzz target was given and what it found, on stable Rust: `fuzz/corpus/edge_datagram`, each file once.
//!
//! With `BURNET_BLESS=1` the seeds are made again. Other inputs that fuzzing found stay.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should end")]

#[path = "../../../fuzz/checks/edge.rs"]
mod checks;

use edge::protocol::{Entry, Header, Message, NO_CAP, RateOf, What, write};
use edge::vnic::{AgentId, Flow, VnicId};
use proptest::prelude::*;
use std::fs;
use std::path::{Path, PathBuf};

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/edge_datagram")
}

/// One datagram of each kind, from agent 1 to agent 2 in its session.
fn seeds() -> Vec<(&'static str, Vec<u8>)> {
    let flow = Flow { sender: VnicId(1), receiver: VnicId(2) };
    let rate = |rate_bps| RateOf { flow, rate_bps };
    let entry = Entry { what: What::Began, flow, rate_bps: 5 };
    let messages = [
        ("hello", Message::Hello),
        ("welcome", Message::Welcome),
        ("feedback", Message::Feedback(vec![rate(5_000_000), rate(0)])),
        ("report", Message::Report { number: 1, entries: vec![entry; 3] }),
        ("again", Message::Again { first: 1, last: u64::MAX }),
        ("beat", Message::Beat { newest: u64::MAX }),
        ("caps", Message::Caps(vec![rate(1), rate(NO_CAP)])),
    ];
    let datagram = |(name, message): (&'static str, Message)| {
        let is_greeting = matches!(message, Message::Hello | Message::Welcome);
        let header = Header {
            from: AgentId(1),
            to: AgentId(2),
            from_session: 0xa,
            to_session: if message == Message::Hello { 0 } else { 0xb },
            sequence: u64::from(!is_greeting),
        };
        (name, write(&header, &message, &checks::key()))
    };
    messages.into_iter().map(datagram).collect()
}

#[test]
fn the_seeds_are_what_is_written_today() {
    for (name, bytes) in seeds() {
        let path = corpus().join(format!("seed-{name}"));
        if std::env::var_os("BURNET_BLESS").is_some() {
            fs::create_dir_all(corpus()).unwrap();
            fs::write(&path, &bytes).unwrap();
        }
        assert_eq!(
            fs::read(&path).ok().as_deref(),
            Some(&bytes[..]),
            "{}: BURNET_BLESS=1 makes it",
            path.display()
        );
    }
}

#[test]
fn each_input_of_the_corpus_holds() {
    let entries = fs::read_dir(corpus()).unwrap();
    let count = entries.map(|entry| checks::edge_datagram(&fs::read(entry.unwrap().path()).unwrap())).count();
    assert!(count >= seeds().len());
}

proptest! {
    /// A stand-in for the fuzzer: seeds with some bytes changed, cut or doubled.
    #[test]
    fn damaged_seeds_hold_too(
        which in 0..7usize,
        changes in prop::collection::vec((0..1300usize, any::<u8>()), 0..6),
        length in 0..200usize,
        fix in any::<bool>(),
    ) {
        let mut bytes = seeds()[which].1.clone();
        bytes.truncate(length.max(bytes.len() / 2));
        for (at, byte) in changes {
            let place = at % bytes.len();
            bytes[place] = byte;
        }
        if fix {
            let length = (bytes.len() as u16).to_be_bytes();
            bytes[6..8].copy_from_slice(&length);
        }
        checks::edge_datagram(&bytes);
    }
}
