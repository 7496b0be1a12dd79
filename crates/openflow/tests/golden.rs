//! Messages that real switches and tools sent, in `tests/golden/*.txt`: what each says, or how it is refused.
//!
//! A block of a file is `#` and a comment, then the bytes in hex. Then comes `=` and the message, or `!` and the
//! error's type and code, the offset and the field. `~` and other bytes follow if the message is written in another
//! form. With `BURNET_BLESS=1` the test rewrites the lines after the bytes. Review them before the commit.

#![allow(clippy::unwrap_used, reason = "a test may")]

mod captured;

use std::fmt::Write as _;
use std::{env, fs};

use captured::{blocks, bytes, files, hex, is_hex};
use openflow::Message;

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
    let mut text = String::new();
    for line in block.lines().filter(|line| line.starts_with('#') || is_hex(line)) {
        writeln!(text, "{line}").unwrap();
    }
    let bytes = bytes(block);
    if !bytes.is_empty() {
        text += &outcome(&bytes);
    }
    text
}

#[test]
fn captured_messages_say_what_they_said() {
    let is_blessed = env::var_os("BURNET_BLESS").is_some();
    let mut count = 0;
    for file in files() {
        let text = fs::read_to_string(&file).unwrap();
        let found: Vec<String> = blocks(&text).map(renewed).collect();
        if is_blessed {
            fs::write(&file, found.join("\n")).unwrap();
            continue;
        }
        for (found, expected) in found.iter().zip(blocks(&text)) {
            assert_eq!(found.trim_end(), expected, "{}", file.display());
            count += 1;
        }
    }
    assert!(count > 200 || is_blessed, "only {count} messages were found");
}
