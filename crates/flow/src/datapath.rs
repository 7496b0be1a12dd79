//! The 64-bit id of a switch, and the forms in which people write it.
//!
//! Never guesses: an invalid id is refused with the accepted forms.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// A switch's datapath id. Prints as `of:0000000000000001`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct DatapathId(pub u64);

/// A text that is not a datapath id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotADatapathId(String);

impl fmt::Display for DatapathId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "of:{:016x}", self.0)
    }
}

impl FromStr for DatapathId {
    type Err = NotADatapathId;

    /// Accepts `1` (decimal), `0x1`, `00:00:…:01`, `of:…` and 16 hexadecimal digits, in any case.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let lower = text.trim().to_ascii_lowercase();
        read(&lower).map(DatapathId).ok_or_else(|| NotADatapathId(text.to_owned()))
    }
}

fn read(text: &str) -> Option<u64> {
    if let Some(digits) = text.strip_prefix("of:").or_else(|| text.strip_prefix("0x")) {
        return hexadecimal(digits);
    }
    if text.contains(':') {
        let octets: Vec<&str> = text.split(':').collect();
        let well_formed = octets.len() == 8 && octets.iter().all(|octet| octet.len() == 2);
        return if well_formed { hexadecimal(&octets.concat()) } else { None };
    }
    // Sixteen digits are how most tools print an id in full, so they are hexadecimal even if they look decimal.
    if text.len() == 16 { hexadecimal(text) } else { decimal(text) }
}

fn hexadecimal(digits: &str) -> Option<u64> {
    let plausible = !digits.is_empty() && digits.len() <= 16 && digits.bytes().all(|b| b.is_ascii_hexdigit());
    if plausible { u64::from_str_radix(digits, 16).ok() } else { None }
}

fn decimal(digits: &str) -> Option<u64> {
    if digits.bytes().all(|b| b.is_ascii_digit()) { digits.parse().ok() } else { None }
}

impl From<DatapathId> for String {
    fn from(id: DatapathId) -> Self {
        id.to_string()
    }
}

impl TryFrom<String> for DatapathId {
    type Error = NotADatapathId;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl fmt::Display for NotADatapathId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "'{}' is not a datapath id: write it as 1, 0x1, 00:00:00:00:00:00:00:01, of:0000000000000001 or 16 hexadecimal digits",
            self.0
        )
    }
}

impl std::error::Error for NotADatapathId {}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Option<u64>) {
        assert_eq!(text.parse().ok(), expected.map(DatapathId), "{text}");
    }

    #[test]
    fn what_is_no_datapath_id_is_refused() {
        for text in [
            "",
            ":",
            "of:",
            "0x",
            "-1",
            "1:2",
            "00:00:00:00:00:00:00",
            "of:00000000000000001",
            "+1",
            "g",
            "18446744073709551616",
            "of:+1",
        ] {
            check(text, None);
        }
    }

    #[test]
    fn every_form_that_people_write_is_read() {
        for text in [
            "1",
            "0x1",
            "0X1",
            "00:00:00:00:00:00:00:01",
            "of:0000000000000001",
            "OF:1",
            "0000000000000001",
            " 1 ",
        ] {
            check(text, Some(1));
        }
        check("000000000000000a", Some(10));
        check("00:00:00:00:00:00:00:FF", Some(255));
        check("18446744073709551615", Some(u64::MAX));
    }

    #[test]
    fn it_prints_in_one_form() {
        assert_eq!(DatapathId(1).to_string(), "of:0000000000000001");
    }
}
