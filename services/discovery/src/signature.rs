//! HMAC with SHA-256 (RFC 2104), cut to 16 bytes.
//!
//! In: a key and bytes. Out: the signature, or whether one is right. It keeps no key.

use sha2::{Digest, Sha256};

/// The bytes of a key.
pub const KEY_BYTES: usize = 32;

/// The bytes of a signature: half of the hash, the least that RFC 2104 recommends.
pub const SIGNATURE_BYTES: usize = 16;

/// The block of SHA-256.
const BLOCK_BYTES: usize = 64;

/// The signature of these bytes.
pub fn sign(key: &[u8; KEY_BYTES], bytes: &[u8]) -> [u8; SIGNATURE_BYTES] {
    let hash = hmac(key, bytes);
    std::array::from_fn(|index| hash[index])
}

/// Whether this is the signature. It takes the same time wherever the first wrong byte is.
pub fn is_right(key: &[u8; KEY_BYTES], bytes: &[u8], signature: &[u8]) -> bool {
    let right = sign(key, bytes);
    signature.len() == right.len()
        && right.iter().zip(signature).fold(0, |differs, (one, two)| differs | (one ^ two)) == 0
}

fn hmac(key: &[u8; KEY_BYTES], bytes: &[u8]) -> [u8; 32] {
    let padded = |pad: u8| -> [u8; BLOCK_BYTES] {
        std::array::from_fn(|index| key.get(index).copied().unwrap_or_default() ^ pad)
    };
    let inner = Sha256::new().chain_update(padded(0x36)).chain_update(bytes).finalize();
    Sha256::new().chain_update(padded(0x5c)).chain_update(inner).finalize().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key_of(bytes: &[u8]) -> [u8; KEY_BYTES] {
        // A shorter key is filled with zeros (RFC 2104, 2).
        std::array::from_fn(|index| bytes.get(index).copied().unwrap_or_default())
    }

    #[test]
    fn the_signature_is_that_of_the_rfc() {
        let check = |key: &[u8], bytes: &[u8], expected: &str| {
            let got: String = sign(&key_of(key), bytes).iter().map(|byte| format!("{byte:02x}")).collect();
            assert_eq!(got, expected);
        };
        // RFC 4231, test cases 1 and 2.
        check(&[0x0b; 20], b"Hi There", "b0344c61d8db38535ca8afceaf0bf12b");
        check(b"Jefe", b"what do ya want for nothing?", "5bdcc146bf60754e6a042426089575c7");
    }

    #[test]
    fn a_changed_bit_makes_it_wrong() {
        let key = key_of(b"k");
        let right = sign(&key, b"probe");
        assert!(is_right(&key, b"probe", &right));
        assert!(!is_right(&key, b"probf", &right) && !is_right(&key_of(b"l"), b"probe", &right));
        for bit in 0..right.len() * 8 {
            let mut wrong = right;
            wrong[bit / 8] ^= 1 << (bit % 8);
            assert!(!is_right(&key, b"probe", &wrong));
        }
        assert!(!is_right(&key, b"probe", &right[..15]) && !is_right(&key, b"probe", b""));
    }
}
