//! Draws delays from a quantile table, by inverse transform.
//!
//! In: a table of the profile and a stream of numbers. Out: nanoseconds. A table of one value draws no number.

use super::random::{Random, Stream};
use crate::quantiles::Quantiles;

/// Microseconds of a profile as nanoseconds. Negative values and NaN become 0; a value that is too large becomes the largest.
pub(super) fn nanoseconds(us: f64) -> u64 {
    (us * 1e3).round() as u64
}

/// A source of delays.
#[derive(Clone, Debug)]
pub(super) struct Draw {
    table: Quantiles,
    constant_ns: Option<u64>,
    random: Random,
}

impl Draw {
    pub(super) fn new(table: &Quantiles, seed: u64, stream: Stream) -> Self {
        let constant_ns = table.as_constant().map(nanoseconds);
        Draw { table: table.clone(), constant_ns, random: Random::new(seed, stream) }
    }

    /// The next delay.
    #[inline]
    pub(super) fn next_ns(&mut self) -> u64 {
        match self.constant_ns {
            Some(constant_ns) => constant_ns,
            None => nanoseconds(self.table.at(self.random.share())),
        }
    }

    /// The delay at this quantile.
    pub(super) fn at_ns(&self, quantile: f64) -> u64 {
        nanoseconds(self.table.at(quantile))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_have_the_distribution_of_the_table() {
        let table = Quantiles::new(&[(0.0, 10.0), (0.5, 20.0), (0.9, 100.0), (1.0, 500.0)]).unwrap();
        let mut draw = Draw::new(&table, 1, Stream::Ingress);
        let mut drawn: Vec<u64> = (0..100_000).map(|_| draw.next_ns()).collect();
        drawn.sort_unstable();
        for q in [0.1, 0.25, 0.5, 0.75, 0.9, 0.99] {
            let got = table.cdf(drawn[(q * 1e5) as usize] as f64 / 1e3);
            assert!((got - q).abs() < 0.006, "the quantile {q} of the draws is the table's {got}");
        }
    }

    #[test]
    fn microseconds_become_whole_nanoseconds() {
        assert_eq!([0.0, 0.0004, 1.5, -1.0, f64::NAN].map(nanoseconds), [0, 0, 1500, 0, 0]);
    }
}
