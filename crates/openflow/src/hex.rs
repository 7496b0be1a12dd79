//! Bytes as hexadecimal text: two lower-case digits per byte, without separators.
//!
//! Also accepts upper case, but no separators; the command line handles those.

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serializer};
use std::fmt::Write;

/// The bytes as digits.
pub fn to_text(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Converts digits to bytes. The error has the position of the first character that is not a digit, or of the missing
/// digit if their number is odd.
pub fn from_text(text: &str) -> Result<Vec<u8>, NotHex> {
    if let Some((position, found)) = text.char_indices().find(|(_, found)| !found.is_ascii_hexdigit()) {
        return Err(NotHex { position, found: Some(found) });
    }
    if text.len() % 2 == 1 {
        return Err(NotHex { position: text.len(), found: None });
    }
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => byte - b'0',
        _ => (byte | 0x20) - b'a' + 10,
    };
    Ok(text.as_bytes().chunks_exact(2).map(|pair| digit(pair[0]) << 4 | digit(pair[1])).collect())
}

/// A text that is not hexadecimal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotHex {
    /// The position in bytes from the start of the text.
    pub position: usize,
    /// The character found instead of a digit; `None` if the text ended in the middle of a byte.
    pub found: Option<char>,
}

impl std::fmt::Display for NotHex {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.found {
            Some(found) => write!(f, "{found:?} at position {} is no hexadecimal digit", self.position),
            None => write!(f, "an odd number of hexadecimal digits ({})", self.position),
        }
    }
}

impl std::error::Error for NotHex {}

/// For `#[serde(with = "openflow::hex")]`.
///
/// # Errors
/// The serializer's own.
pub fn serialize<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&to_text(bytes))
}

/// For `#[serde(with = "openflow::hex")]`.
///
/// # Errors
/// The value is not a string, or not hexadecimal ([`NotHex`]).
pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
    let text = String::deserialize(deserializer)?;
    from_text(&text).map_err(D::Error::custom)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_hexadecimal_is_refused_with_its_position() {
        assert_eq!(from_text("0g"), Err(NotHex { position: 1, found: Some('g') }));
        assert_eq!(from_text("00é0"), Err(NotHex { position: 2, found: Some('é') }));
        assert_eq!(from_text("000"), Err(NotHex { position: 3, found: None }));
    }

    #[test]
    fn bytes_come_back() {
        assert_eq!(from_text("00fFa5"), Ok(vec![0, 0xff, 0xa5]));
        assert_eq!(to_text(&[0, 0xff, 0xa5]), "00ffa5");
        assert_eq!(from_text(""), Ok(vec![]));
    }
}
