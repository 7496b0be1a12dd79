//! SipHash-1-3, by which a region finds the place of a key. Writer and reader can be of different versions, so it cannot be
//! that of the standard library, which may change.
//!
//! In: a key of the hash, and bytes. Out: a number. Source: Aumasson and Bernstein, "SipHash: a fast short-input PRF", 2012.

/// The hash of these bytes.
pub(super) fn of(key: [u64; 2], bytes: &[u8]) -> u64 {
    let [k0, k1] = key;
    let mut state = [
        k0 ^ 0x736f_6d65_7073_6575,
        k1 ^ 0x646f_7261_6e64_6f6d,
        k0 ^ 0x6c79_6765_6e65_7261,
        k1 ^ 0x7465_6462_7974_6573,
    ];
    let (words, rest) = bytes.as_chunks::<8>();
    for word in words {
        take(&mut state, u64::from_le_bytes(*word));
    }
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    // Only the lowest byte of the length counts.
    last[7] = (bytes.len() & 0xff) as u8;
    take(&mut state, u64::from_le_bytes(last));
    state[2] ^= 0xff;
    (0..3).for_each(|_| round(&mut state));
    state.iter().fold(0, |all, word| all ^ word)
}

fn take(state: &mut [u64; 4], word: u64) {
    state[3] ^= word;
    round(state);
    state[0] ^= word;
}

fn round(state: &mut [u64; 4]) {
    let [mut v0, mut v1, mut v2, mut v3] = *state;
    v0 = v0.wrapping_add(v1);
    v1 = v1.rotate_left(13) ^ v0;
    v0 = v0.rotate_left(32);
    v2 = v2.wrapping_add(v3);
    v3 = v3.rotate_left(16) ^ v2;
    v0 = v0.wrapping_add(v3);
    v3 = v3.rotate_left(21) ^ v0;
    v2 = v2.wrapping_add(v1);
    v1 = v1.rotate_left(17) ^ v2;
    v2 = v2.rotate_left(32);
    *state = [v0, v1, v2, v3];
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::hash::Hasher;

    #[test]
    fn it_is_the_hash_of_the_standard_library() {
        let bytes: Vec<u8> = (0..64).collect();
        for length in 0..=bytes.len() {
            let mut known = std::hash::DefaultHasher::new();
            known.write(&bytes[..length]);
            assert_eq!(super::of([0, 0], &bytes[..length]), known.finish(), "{length} bytes");
        }
        assert_ne!(super::of([0, 1], b"key"), super::of([1, 0], b"key"));
    }
}
