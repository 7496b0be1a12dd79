//! The rate at which a switch gets commands: a token bucket.
//!
//! In: the time, and what a command costs. Out: whether it may go now, or when. It reads no clock.

/// A millionth of a command.
const MICRO: i64 = 1_000_000;

/// How many commands a switch gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommandRate {
    /// Thousandths of a command a second. 0 counts as 1.
    pub milli_per_s: u32,
    /// How many may go at once after a silence. 0 counts as 1.
    pub burst: u32,
}

/// A token bucket. A bundle may cost more than the bucket holds: it goes when the bucket is full, and what follows waits for it.
#[derive(Clone, Copy, Debug)]
pub struct Bucket {
    rate: CommandRate,
    /// In millionths of a command. Below 0 after a large bundle.
    level: i64,
    at_ms: u64,
}

impl Bucket {
    /// A full bucket.
    pub fn new(rate: CommandRate, now_ms: u64) -> Self {
        let mut bucket = Bucket { rate, level: 0, at_ms: now_ms };
        bucket.level = bucket.top();
        bucket
    }

    /// In how many milliseconds this many commands will have gone, counted from the last look at the bucket.
    pub fn span_ms(&self, commands: u64) -> u64 {
        let wanted = i64::try_from(commands).unwrap_or(i64::MAX).saturating_mul(MICRO);
        let missing = u64::try_from(wanted.saturating_sub(self.level)).unwrap_or(0);
        missing.div_ceil(u64::from(self.rate.milli_per_s.max(1)))
    }

    /// Another rate from now on. What was spent stays spent.
    pub fn change(&mut self, rate: CommandRate, now_ms: u64) {
        self.fill(now_ms);
        self.rate = rate;
        self.level = self.level.min(self.top());
    }

    /// Whether a command of this cost may go now.
    pub fn has(&mut self, cost: u32, now_ms: u64) -> bool {
        self.fill(now_ms);
        self.level >= self.needed(cost)
    }

    /// A command goes.
    pub fn spend(&mut self, cost: u32) {
        self.level = self.level.saturating_sub(i64::from(cost) * MICRO);
    }

    /// When a command of this cost may go.
    pub fn when_ms(&self, cost: u32) -> u64 {
        let missing = self.needed(cost).saturating_sub(self.level).max(0);
        let gain = i64::from(self.rate.milli_per_s.max(1));
        // It is not negative.
        let wait_ms = u64::try_from(missing).unwrap_or(0).div_ceil(gain.unsigned_abs());
        self.at_ms.saturating_add(wait_ms)
    }

    /// A command that costs nothing needs nothing, even behind a large bundle.
    fn needed(&self, cost: u32) -> i64 {
        if cost == 0 { i64::MIN } else { (i64::from(cost) * MICRO).min(self.top()) }
    }

    fn top(&self) -> i64 {
        i64::from(self.rate.burst.max(1)) * MICRO
    }

    fn fill(&mut self, now_ms: u64) {
        let elapsed_ms = i64::try_from(now_ms.saturating_sub(self.at_ms)).unwrap_or(i64::MAX);
        let gained = elapsed_ms.saturating_mul(i64::from(self.rate.milli_per_s.max(1)));
        self.level = self.level.saturating_add(gained).min(self.top());
        self.at_ms = self.at_ms.max(now_ms);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eight_a_second_go_every_125_ms_after_the_burst() {
        let mut bucket = Bucket::new(CommandRate { milli_per_s: 8_000, burst: 2 }, 1_000);
        let mut gone = Vec::new();
        for now_ms in 1_000..1_600 {
            if bucket.has(1, now_ms) {
                bucket.spend(1);
                gone.push(now_ms);
            }
        }
        assert_eq!(gone, [1_000, 1_001, 1_125, 1_250, 1_375, 1_500]);
    }

    #[test]
    fn a_bundle_beyond_the_burst_goes_and_what_follows_waits_for_it() {
        let mut bucket = Bucket::new(CommandRate { milli_per_s: 10_000, burst: 4 }, 0);
        assert!(bucket.has(100, 0));
        bucket.spend(100);
        assert!(bucket.has(0, 0) && !bucket.has(1, 9_000));
        assert_eq!(bucket.when_ms(1), 9_700);
        assert!(bucket.has(1, 9_700));
    }

    #[test]
    fn numbers_at_their_ends_do_not_overflow() {
        let mut bucket = Bucket::new(CommandRate { milli_per_s: u32::MAX, burst: u32::MAX }, 0);
        bucket.spend(u32::MAX);
        assert!(bucket.has(u32::MAX, u64::MAX));
        let slowest = Bucket::new(CommandRate { milli_per_s: 0, burst: 0 }, u64::MAX);
        assert_eq!(slowest.when_ms(u32::MAX), u64::MAX);
    }
}
