//! Pseudorandom numbers that are the same for the same seed, in streams that do not disturb each other.
//!
//! In: a seed and the name of a stream. Out: numbers. It never reads the machine's randomness, and it is not secret.

/// What numbers are drawn for. Each purpose has its own stream, so that a change of one part of a profile leaves the draws of the
/// others as they are.
#[derive(Clone, Copy, Debug)]
pub(super) enum Stream {
    /// The service time of a type of message, by its number.
    Service(u8),
    Ingress,
    Egress,
    Late,
    StallInterval,
    StallLength,
    SoftwarePath,
    Choice,
    Phase,
    Base,
}

impl Stream {
    fn number(self) -> u64 {
        match self {
            Stream::Service(kind) => 0x100 + u64::from(kind),
            Stream::Ingress => 1,
            Stream::Egress => 2,
            Stream::Late => 3,
            Stream::StallInterval => 4,
            Stream::StallLength => 5,
            Stream::SoftwarePath => 6,
            Stream::Choice => 7,
            Stream::Phase => 8,
            Stream::Base => 9,
        }
    }
}

/// The numbers of one stream.
#[derive(Clone, Debug)]
pub(super) struct Random(crate::random::Random);

impl Random {
    /// The numbers of one stream of a seed.
    pub(super) fn new(seed: u64, stream: Stream) -> Self {
        let mut first =
            crate::random::Random::new(seed ^ stream.number().wrapping_mul(0xd1b5_4a32_d192_ed03));
        // The states of two streams then have nothing in common.
        Random(crate::random::Random::new(first.bits()))
    }

    /// The next 64-bit number.
    pub(super) fn next_u64(&mut self) -> u64 {
        self.0.bits()
    }

    /// A number from 0 up to, but not including, 1.
    #[inline]
    pub(super) fn share(&mut self) -> f64 {
        self.0.unit()
    }

    /// A number below `end`, or 0 if `end` is 0.
    pub(super) fn below(&mut self, end: u64) -> u64 {
        ((u128::from(self.next_u64()) * u128::from(end)) >> 64) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_of_one_seed_differ_and_repeat() {
        let draw = |seed, stream| {
            let mut random = Random::new(seed, stream);
            [random.next_u64(), random.next_u64()]
        };
        assert_eq!(draw(1, Stream::Ingress), draw(1, Stream::Ingress));
        assert_ne!(draw(1, Stream::Ingress), draw(1, Stream::Egress));
        assert_ne!(draw(1, Stream::Ingress), draw(2, Stream::Ingress));
        assert_ne!(draw(1, Stream::Service(0)), draw(1, Stream::Service(1)));
    }

    #[test]
    fn shares_are_spread_evenly() {
        let mut random = Random::new(3, Stream::Choice);
        let mut times = [0; 10];
        (0..100_000).for_each(|_| times[(random.share() * 10.0) as usize] += 1);
        (0..100_000).for_each(|_| times[random.below(10) as usize] += 1);
        assert!(times.iter().all(|times| (19_000..21_000).contains(times)), "{times:?}");
    }
}
