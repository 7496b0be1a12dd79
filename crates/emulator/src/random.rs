//! Pseudorandom numbers that are the same for the same seed.
//!
//! In: a seed. Out: a sequence of numbers. It never reads the machine's randomness, and it is not secret: do not use
//! it for keys.

/// A generator: SplitMix64 (Steele, Lea and Flood, 2014), which takes any seed and has one word of state.
#[derive(Clone, Debug)]
pub struct Random {
    state: u64,
}

impl Random {
    /// A generator that begins with this seed.
    pub fn new(seed: u64) -> Self {
        Random { state: seed }
    }

    /// The next 64-bit number.
    pub fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.state ^ (self.state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`. All are equally likely to within 2^-32.
    pub fn below(&mut self, end: u32) -> u32 {
        let upper = self.next_u64() >> 32;
        // The product of two 32-bit numbers, so its upper half has 32 bits.
        ((upper * u64::from(end)) >> 32) as u32
    }

    /// A number from 0 up to, but not including, 1.
    pub fn share(&mut self) -> f64 {
        // A double holds 53 bits.
        (self.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numbers_are_those_of_the_published_generator() {
        let mut random = Random::new(0);
        let first: Vec<u64> = (0..3).map(|_| random.next_u64()).collect();
        assert_eq!(first, [0xe220_a839_7b1d_cdaf, 0x6e78_9e6a_a1b9_65f4, 0x06c4_5d18_8009_454f]);
    }

    #[test]
    fn each_number_below_the_end_comes_about_as_often() {
        let mut random = Random::new(7);
        let mut times = [0; 10];
        for _ in 0..100_000 {
            times[random.below(10) as usize] += 1;
        }
        assert!(times.iter().all(|times| (9_000..11_000).contains(times)), "{times:?}");
    }
}
