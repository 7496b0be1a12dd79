//! Random numbers from a seed.
//!
//! In: a seed. Out: the same numbers on every machine. They serve statistics, and are no secret.

/// SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, OOPSLA 2014).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Random {
    state: u64,
}

impl Random {
    /// The numbers of this seed.
    pub const fn new(seed: u64) -> Self {
        Random { state: seed }
    }

    /// The next 64 bits.
    #[inline]
    pub fn bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A uniform number from 0 to 1, without 1.
    #[inline]
    pub fn unit(&mut self) -> f64 {
        // The 53 bits of a double's fraction.
        (self.bits() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// A uniform whole number below `end`; 0 if `end` is 0.
    #[inline]
    pub fn below(&mut self, end: usize) -> usize {
        // The high half of the product is uniform up to a part in 2^64 / end.
        ((u128::from(self.bits()) * end as u128) >> 64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_are_those_of_the_published_generator() {
        let mut random = Random::new(0);
        let first: Vec<u64> = (0..3).map(|_| random.bits()).collect();
        assert_eq!(first, [0xe220_a839_7b1d_cdaf, 0x6e78_9e6a_a1b9_65f4, 0x06c4_5d18_8009_454f]);
    }
}
