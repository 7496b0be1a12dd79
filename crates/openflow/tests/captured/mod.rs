//! The golden files: where they are, and the bytes in them.
//!
//! A file is blocks between empty lines; in a block, the lines of hexadecimal digits are one message.

#![allow(dead_code, clippy::unwrap_used, reason = "no test file uses all of it; and a test may")]

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

/// The golden files, in the order of their names.
pub fn files() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../openflow/tests/golden");
    let mut files: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

/// The blocks of a file.
pub fn blocks(text: &str) -> impl Iterator<Item = &str> {
    text.split("\n\n").map(str::trim_end)
}

/// Whether a line is bytes in hex.
pub fn is_hex(line: &str) -> bool {
    line.bytes().next().is_some_and(|first| first.is_ascii_hexdigit())
}

/// The bytes of a block; none if it is only a comment.
pub fn bytes(block: &str) -> Vec<u8> {
    let digits: String = block.lines().filter(|line| is_hex(line)).collect();
    let pairs = digits.as_bytes().chunks_exact(2).map(|pair| std::str::from_utf8(pair).unwrap());
    pairs.map(|pair| u8::from_str_radix(pair, 16).unwrap()).collect()
}

/// Bytes in hex.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").unwrap();
        text
    })
}

/// Every message of every file.
pub fn messages() -> Vec<Vec<u8>> {
    let texts = files().into_iter().map(|file| fs::read_to_string(file).unwrap());
    let all = texts.flat_map(|text| blocks(&text).map(bytes).collect::<Vec<_>>());
    all.filter(|bytes| !bytes.is_empty()).collect()
}
