//! Signatures of datagrams: HMAC with SHA-256 (RFC 2104), cut to 16 bytes.
//!
//! In: a key and bytes. Out: the signature, or whether one is right. It never prints a key.

use super::SIGNATURE_BYTES;
use sha2::{Digest, Sha256};
use std::fmt;
use std::str::FromStr;

/// The bytes of a key.
pub const KEY_BYTES: usize = 32;

/// The block of SHA-256.
const BLOCK_BYTES: usize = 64;

/// The key of two agents.
#[derive(Clone, PartialEq, Eq)]
pub struct Key(pub [u8; KEY_BYTES]);

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(..)")
    }
}

/// A text that is no key. It is not shown, since it may be a key with a slip.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadKey;

impl fmt::Display for BadKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a key has {} hexadecimal digits", KEY_BYTES * 2)
    }
}

impl std::error::Error for BadKey {}

impl FromStr for Key {
    type Err = BadKey;

    fn from_str(text: &str) -> Result<Self, BadKey> {
        let mut key = [0; KEY_BYTES];
        let (pairs, rest) = text.as_bytes().as_chunks::<2>();
        if pairs.len() != KEY_BYTES || !rest.is_empty() {
            return Err(BadKey);
        }
        for (byte, [high, low]) in key.iter_mut().zip(pairs) {
            let digit = |digit: &u8| char::from(*digit).to_digit(16).ok_or(BadKey);
            // Two digits of 16 fit into a byte.
            *byte = (digit(high)? * 16 + digit(low)?) as u8;
        }
        Ok(Key(key))
    }
}

impl Key {
    /// The signature of these bytes.
    pub(super) fn sign(&self, bytes: &[u8]) -> [u8; SIGNATURE_BYTES] {
        let padded = |pad: u8| -> [u8; BLOCK_BYTES] {
            std::array::from_fn(|index| self.0.get(index).copied().unwrap_or_default() ^ pad)
        };
        let inner = Sha256::new().chain_update(padded(0x36)).chain_update(bytes).finalize();
        let outer = Sha256::new().chain_update(padded(0x5c)).chain_update(inner).finalize();
        std::array::from_fn(|index| outer[index])
    }

    /// Whether this is the signature. It takes the same time wherever the first wrong byte is.
    pub(super) fn is_right(&self, bytes: &[u8], signature: &[u8]) -> bool {
        let right = self.sign(bytes);
        signature.len() == right.len()
            && right.iter().zip(signature).fold(0, |differs, (one, two)| differs | (one ^ two)) == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key_of(bytes: &[u8]) -> Key {
        // A shorter key is filled with zeros (RFC 2104, 2).
        Key(std::array::from_fn(|index| bytes.get(index).copied().unwrap_or_default()))
    }

    #[test]
    fn the_signature_is_that_of_the_rfc() {
        let check = |key: &[u8], bytes: &[u8], expected: &str| {
            let got: String = key_of(key).sign(bytes).iter().map(|byte| format!("{byte:02x}")).collect();
            assert_eq!(got, expected);
        };
        // RFC 4231, test cases 1 and 2.
        check(&[0x0b; 20], b"Hi There", "b0344c61d8db38535ca8afceaf0bf12b");
        check(b"Jefe", b"what do ya want for nothing?", "5bdcc146bf60754e6a042426089575c7");
    }

    #[test]
    fn a_key_is_written_in_hexadecimal_digits() {
        let digits = "00ff".repeat(16);
        assert_eq!(digits.parse(), Ok(Key(std::array::from_fn(|at| if at % 2 == 0 { 0 } else { 0xff }))));
        for wrong in [
            "",
            "00",
            &digits[1..],
            &format!("{digits}0"),
            &format!("{digits}00"),
            &digits.replace("ff", "fg"),
        ] {
            assert_eq!(wrong.parse::<Key>(), Err(BadKey), "{wrong}");
        }
        assert_eq!(BadKey.to_string(), "a key has 64 hexadecimal digits");
    }

    #[test]
    fn a_changed_bit_makes_it_wrong_and_a_key_is_not_printed() {
        let key = key_of(b"k");
        let right = key.sign(b"rate");
        assert!(key.is_right(b"rate", &right) && !key.is_right(b"rat", &right));
        for bit in 0..right.len() * 8 {
            let mut wrong = right;
            wrong[bit / 8] ^= 1 << (bit % 8);
            assert!(!key.is_right(b"rate", &wrong));
        }
        assert!(!key.is_right(b"rate", &right[..15]) && !key.is_right(b"rate", b""));
        assert_eq!(format!("{key:?}"), "Key(..)");
    }
}
