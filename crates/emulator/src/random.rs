//! Pseudorandom numbers that are the same for the same seed.
//!
//! In: a seed. Out: a sequence of numbers. It never reads the machine's randomness, and it is not secret: do not use
//! it for keys.

/// The generator of [`profile::Random`], with numbers below ends of 32 bits.
#[derive(Clone, Debug)]
pub struct Random(profile::Random);

impl Random {
    /// A generator that begins with this seed.
    pub fn new(seed: u64) -> Self {
        Random(profile::Random::new(seed))
    }

    /// The next 64-bit number.
    pub fn next_u64(&mut self) -> u64 {
        self.0.bits()
    }

    /// A number below `end`. All are equally likely to within 2^-32.
    pub fn below(&mut self, end: u32) -> u32 {
        let upper = self.next_u64() >> 32;
        // The product of two 32-bit numbers, so its upper half has 32 bits.
        ((upper * u64::from(end)) >> 32) as u32
    }

    /// A number from 0 up to, but not including, 1.
    pub fn share(&mut self) -> f64 {
        self.0.unit()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
