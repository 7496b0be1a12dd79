//! A token bucket: so many a second, and so many at once after a silence.
//!
//! In: the time of each event. Out: whether the bucket has a token for it. It never makes an event wait.

/// A token bucket, kept as the time at which it would be full again (the generic cell rate algorithm, ITU-T I.371).
#[derive(Clone, Debug)]
pub(super) struct TokenBucket {
    interval_ns: u64,
    /// How far ahead of the present the bucket may be emptied.
    tolerance_ns: u64,
    full_at_ns: u64,
}

impl TokenBucket {
    /// A full bucket. A burst of 0 counts as 1: otherwise nothing would ever pass.
    pub(super) fn new(rate_per_s: f64, burst: u32) -> Self {
        let interval_ns = (1e9 / rate_per_s).round() as u64;
        let tolerance_ns = interval_ns.saturating_mul(u64::from(burst.max(1)) - 1);
        TokenBucket { interval_ns, tolerance_ns, full_at_ns: 0 }
    }

    /// Whether there is a token now.
    pub(super) fn has_token(&self, now_ns: u64) -> bool {
        self.full_at_ns <= now_ns.saturating_add(self.tolerance_ns)
    }

    /// Takes a token, if there is one. Returns whether there was.
    pub(super) fn take(&mut self, now_ns: u64) -> bool {
        let has = self.has_token(now_ns);
        if has {
            self.full_at_ns = self.full_at_ns.max(now_ns).saturating_add(self.interval_ns);
        }
        has
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::random::{Random, Stream};

    #[test]
    fn a_steady_rate_passes_and_a_faster_one_is_cut_to_it() {
        let passed = |every_ns: u64| {
            let mut bucket = TokenBucket::new(8.0, 1);
            (0..1000).filter(|number| bucket.take(number * every_ns)).count()
        };
        assert_eq!(passed(125_000_000), 1000);
        // Forty a second: each fifth.
        assert_eq!(passed(25_000_000), 200);
    }

    #[test]
    fn it_passes_what_a_bucket_of_counted_tokens_passes() {
        for seed in 0..20 {
            let mut random = Random::new(seed, Stream::Choice);
            let burst = 1 + random.below(10) as u32;
            let mut bucket = TokenBucket::new(1000.0, burst);
            let (mut tokens_millionths, mut now) = (u64::from(burst) * 1_000_000, 0);
            for _ in 0..1000 {
                let step = random.below(3_000_000);
                now += step;
                // A token is a millisecond, so a millionth of it is a nanosecond.
                tokens_millionths = (tokens_millionths + step).min(u64::from(burst) * 1_000_000);
                let expected = tokens_millionths >= 1_000_000;
                tokens_millionths -= if expected { 1_000_000 } else { 0 };
                assert_eq!(bucket.take(now), expected, "seed {seed}, at {now}");
            }
        }
    }
}
