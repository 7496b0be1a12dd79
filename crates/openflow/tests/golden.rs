//! Messages that real switches and tools sent, in `tests/golden/*.txt`: what each says, or how it is refused.
//!
//! A file is blocks between empty lines: `#` and a comment, the bytes in hex, then `=` and the message, or `!` and the error's type
//! and code, the offset and the field; `~` and other bytes if it is written otherwise than it came. With
//! `BURNET_BLESS=1` the lines behind the bytes are written anew, to be read before they are committed.

#![allow(clippy::unwrap_used, reason = "a test may")]

use std::fmt::Write as _;
use std::{env, fs, path::Path, path::PathBuf};

use openflow::Message;

fn files() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let mut files: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

fn bytes(hex: &str) -> Vec<u8> {
    let pairs = hex.as_bytes().chunks_exact(2).map(|pair| std::str::from_utf8(pair).unwrap());
    pairs.map(|pair| u8::from_str_radix(pair, 16).unwrap()).collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").unwrap();
        text
    })
}

/// What is to stand behind the bytes.
fn outcome(bytes: &[u8]) -> String {
    let message = match Message::decode(bytes) {
        Ok(message) => message,
        Err(refused) => {
            let (error, offset, field) = (refused.error, refused.offset, refused.field);
            return format!("! {}/{} at {offset} {field}\n", error.kind, error.code);
        }
    };
    let Message { version, xid, body } = &message;
    let mut text = format!("= {version:?} xid {xid} {body:?}\n");
    let mut written = Vec::new();
    message.encode(&mut written).unwrap();
    assert_eq!(Message::decode(&written), Ok(message));
    if written != bytes {
        writeln!(text, "~ {}", hex(&written)).unwrap();
    }
    text
}

/// A block with its outcome as it is now.
fn renewed(block: &str) -> String {
    let is_hex = |line: &&str| line.bytes().next().is_some_and(|first| first.is_ascii_hexdigit());
    let digits: String = block.lines().filter(is_hex).collect();
    let mut text = String::new();
    for line in block.lines().filter(|line| line.starts_with('#') || is_hex(line)) {
        writeln!(text, "{line}").unwrap();
    }
    if !digits.is_empty() {
        text += &outcome(&bytes(&digits));
    }
    text
}

#[test]
fn captured_messages_say_what_they_said() {
    let mut blocks = 0;
    for file in files() {
        let text = fs::read_to_string(&file).unwrap();
        let expected: Vec<&str> = text.split("\n\n").map(str::trim_end).collect();
        let found: Vec<String> = expected.iter().map(|block| renewed(block)).collect();
        if env::var_os("BURNET_BLESS").is_some() {
            fs::write(&file, found.join("\n")).unwrap();
            continue;
        }
        for (found, expected) in found.iter().zip(expected) {
            assert_eq!(found.trim_end(), expected, "{}", file.display());
            blocks += 1;
        }
    }
    assert!(blocks > 200 || env::var_os("BURNET_BLESS").is_some(), "only {blocks} messages were found");
}
