//! Random numbers from a seed: uniform, exponential, and orders of lists.
//!
//! In: a seed. Out: numbers. The same seed gives the same numbers on any machine.

use profile::Random;

/// A generator.
#[derive(Clone, Debug)]
pub struct Draws(Random);

impl Draws {
    /// From a seed.
    pub fn new(seed: u64) -> Draws {
        Draws(Random::new(seed))
    }

    /// Any number.
    pub fn number(&mut self) -> u64 {
        self.0.bits()
    }

    /// A number below a bound; 0 if there is none.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.number().checked_rem(bound).unwrap_or(0)
    }

    /// A time with an exponential distribution of this mean.
    pub fn exponential(&mut self, mean: f64) -> f64 {
        // 53 bits, which a float holds exactly, and never 0.
        let unit = ((self.number() >> 11) + 1) as f64 / (1u64 << 53) as f64;
        -unit.ln() * mean
    }

    /// Puts a list into random order.
    pub fn shuffle<T>(&mut self, list: &mut [T]) {
        for last in (1..list.len()).rev() {
            let other = self.below(last as u64 + 1) as usize;
            list.swap(last, other);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_the_same_numbers_and_a_mean_is_the_mean() {
        let (mut one, mut two) = (Draws::new(3), Draws::new(3));
        assert_eq!(one.number(), two.number());
        let mean = (0..20_000).map(|_| one.exponential(5.0)).sum::<f64>() / 20_000.0;
        assert!((mean - 5.0).abs() < 0.15, "{mean}");
        let mut list: Vec<u32> = (0..50).collect();
        two.shuffle(&mut list);
        assert_ne!(list, (0..50).collect::<Vec<_>>());
        list.sort_unstable();
        assert_eq!(list, (0..50).collect::<Vec<_>>());
    }
}
