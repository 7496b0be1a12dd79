//! A line of the log: a record with its number, the hash of the line before it, and its own.
//!
//! ```text
//!   {"line":7,"run":"…","number":3,"unix_ms":…, … ,"previous":"<line 6's hash>","hash":"<64 digits>"}
//!    └────────────────────── what is hashed (SHA-256) ───────────────────────┘
//! ```
//!
//! In: records, or the text of a line. Out: the text of a line, or its error. It opens no file.

use audit_contract::Record;
use std::fmt;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// The maximum length of a line in bytes, with its line break. A record has up to six texts, and JSON needs up to six bytes for a character.
pub const LINE_BYTES_MAX: usize = 128 << 10;

/// The text before a line's own hash.
const SEAL: &str = ",\"hash\":\"";

/// A SHA-256. The one before the first line is all zeros.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hash([u8; 32]);

impl Hash {
    /// Hashes these bytes.
    pub fn of(bytes: &[u8]) -> Hash {
        Hash(Sha256::digest(bytes).into())
    }
}

impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl std::str::FromStr for Hash {
    type Err = String;

    fn from_str(text: &str) -> Result<Hash, String> {
        let digits: Option<Vec<u8>> = text.bytes().map(digit).collect();
        let pairs = digits.as_deref().map(<[u8]>::as_chunks::<2>);
        let Some((pairs, [])) = pairs else { return Err(no_hash(text)) };
        let bytes: Vec<u8> = pairs.iter().map(|[high, low]| high << 4 | low).collect();
        bytes.try_into().map(Hash).map_err(|_| no_hash(text))
    }
}

fn no_hash(text: &str) -> String {
    format!("`{text}` is no hash: one has 64 digits, 0 to 9 and a to f")
}

fn digit(byte: u8) -> Option<u8> {
    match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    }
}

/// The run and the number of a record, so that a repeated record is stored once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Told {
    /// The run of the node.
    pub run: String,
    /// The number of the record in this run.
    pub number: u64,
}

/// A parsed line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Its number in the log, from 1.
    pub number: u64,
    /// The origin of its record, if it came from a running node.
    pub told: Option<Told>,
    /// The record.
    pub record: Record,
    /// The hash of the line before it.
    pub previous: Hash,
    /// Its own hash.
    pub hash: Hash,
}

/// The JSON of a line without its own hash.
#[derive(Serialize, Deserialize)]
struct Spelt {
    line: u64,
    #[serde(flatten)]
    told: Option<Told>,
    #[serde(flatten)]
    record: Record,
    previous: String,
}

/// Appends a line to `out`, and returns its hash.
pub fn write(out: &mut String, number: u64, told: Option<Told>, record: Record, previous: &Hash) -> Hash {
    let spelt = Spelt { line: number, told, record: record.cut(), previous: previous.to_string() };
    // Numbers and texts can always be written as JSON.
    let text = serde_json::to_string(&spelt).unwrap_or_default();
    let hashed = text.strip_suffix('}').unwrap_or(&text);
    let hash = Hash::of(hashed.as_bytes());
    *out += &format!("{hashed}{SEAL}{hash}\"}}\n");
    hash
}

/// Parses a line, without its line break.
///
/// # Errors
/// The error, as a phrase.
pub fn read(text: &str) -> Result<Line, String> {
    let sealed = text.strip_suffix("\"}").and_then(|text| text.rsplit_once(SEAL));
    let (hashed, hash) = sealed.ok_or("it does not end with its hash")?;
    let hash: Hash = hash.parse()?;
    if Hash::of(hashed.as_bytes()) != hash {
        return Err("it was altered: its hash is another than it says".to_owned());
    }
    let spelt: Spelt =
        serde_json::from_str(&format!("{hashed}}}")).map_err(|error| format!("it is no record: {error}"))?;
    let previous = spelt.previous.parse()?;
    Ok(Line { number: spelt.line, told: spelt.told, record: spelt.record, previous, hash })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line() -> String {
        let mut text = String::new();
        let told = Some(Told { run: "r".into(), number: 3 });
        write(&mut text, 7, told, Record::new(5, "refused", "app", "a \"quoted\" text\n"), &Hash::of(b"6"));
        text.trim_end().to_owned()
    }

    #[test]
    fn every_altered_byte_is_found() {
        let line = line();
        for at in 0..line.len() {
            let mut bytes = line.clone().into_bytes();
            bytes[at] ^= 1;
            assert!(
                std::str::from_utf8(&bytes).map_err(drop).and_then(|text| read(text).map_err(drop)).is_err()
            );
        }
        for length in 0..line.len() {
            assert!(read(&line[..length]).is_err(), "cut to {length}");
        }
    }

    #[test]
    fn what_is_written_is_read() {
        let read = read(&line()).unwrap();
        assert_eq!((read.number, read.previous), (7, Hash::of(b"6")));
        assert_eq!(read.told, Some(Told { run: "r".into(), number: 3 }));
        assert_eq!(read.record, Record::new(5, "refused", "app", "a \"quoted\" text\n"));
    }

    #[test]
    fn a_record_that_nobody_told_has_no_number_of_a_run() {
        let mut text = String::new();
        write(
            &mut text,
            1,
            None,
            Record::new(5, "installed", "operator", "x").of_app("hub"),
            &Hash::default(),
        );
        assert!(!text.contains("run"), "{text}");
        assert_eq!(read(text.trim_end()).unwrap().told, None);
    }

    #[test]
    fn the_longest_record_fits_into_a_line() {
        let long = || "\u{1}".repeat(TEXT);
        const TEXT: usize = 2 * audit_contract::TEXT_BYTES_MAX;
        let record = Record {
            unix_ms: u64::MAX,
            what: long(),
            who: long(),
            app: Some(long()),
            switch: Some(long()),
            capability: Some(long()),
            count: u64::MAX,
            text: long(),
        };
        let mut text = String::new();
        write(&mut text, u64::MAX, None, record, &Hash::default());
        assert!(text.len() <= LINE_BYTES_MAX && read(text.trim_end()).is_ok(), "{}", text.len());
    }

    #[test]
    fn a_hash_is_64_small_digits() {
        let hash = Hash::of(b"x");
        assert_eq!(hash.to_string().parse(), Ok(hash));
        assert!(hash.to_string().to_uppercase().parse::<Hash>().is_err());
        assert!(
            "00".parse::<Hash>().is_err() && "0".parse::<Hash>().is_err() && "é".parse::<Hash>().is_err()
        );
    }
}
