//! A digest of a history: two histories with the same number are almost certainly the same to the byte.
//!
//! In: bytes and numbers, in order. Out: the number. It detects accidental differences, but is not cryptographic.

/// An odd number whose bits look random (from the golden ratio), so that a product mixes all bits upwards.
const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

/// The state of a digest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Digest {
    state: u64,
}

impl Digest {
    /// Adds a number.
    pub(crate) fn number(&mut self, number: u64) {
        self.state = (self.state.rotate_left(23) ^ number).wrapping_add(1).wrapping_mul(FACTOR);
        self.state ^= self.state >> 29;
    }

    /// Adds bytes and their count.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        let (words, rest) = bytes.as_chunks::<8>();
        words.iter().for_each(|word| self.number(u64::from_le_bytes(*word)));
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        self.number(u64::from_le_bytes(last));
    }

    /// The digest so far.
    pub(crate) fn value(&self) -> u64 {
        self.state
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_bit_its_place_and_the_order_count() {
        let of = |parts: &[&[u8]]| {
            let mut digest = Digest::default();
            parts.iter().for_each(|part| digest.bytes(part));
            digest.value()
        };
        let mut seen =
            BTreeSet::from([of(&[]), of(&[b""]), of(&[b"", b""]), of(&[b"a", b"b"]), of(&[b"b", b"a"])]);
        seen.extend([of(&[b"ab"]), of(&[b"ab\0"])]);
        for bit in 0..800 {
            let mut bytes = [0; 100];
            bytes[bit / 8] |= 1 << (bit % 8);
            seen.insert(of(&[&bytes]));
        }
        assert_eq!(seen.len(), 807);
        assert_eq!(of(&[b"same"]), of(&[b"same"]));
    }
}
