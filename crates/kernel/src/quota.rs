//! How much of what it may do a zone may do: soft and hard limits, and the buckets that keep them.
//!
//! ```text
//!   Quota (soft, hard) ──> Rate, one for each zone ──take(now)──> Fine | Soft, once a second | Hard
//! ```
//!
//! In: limits, and the time of each use. Out: whether the use passes, and whether the app and the operator are to be told. Never reads a
//! clock, and never allocates.

use std::fmt;

/// A limit of which the app and the operator are told, and one that is enforced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quota {
    /// Beyond it they are told.
    pub soft: u32,
    /// Beyond it nothing passes.
    pub hard: u32,
}

/// The quotas of a zone; `None`: no limit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Quotas {
    /// Commands of any kind in a second, at each worker.
    pub commands_per_s: Option<Quota>,
    /// Packet-outs in a second, at each worker.
    pub packet_outs_per_s: Option<Quota>,
    /// Rules that it has on one switch.
    pub rules_per_datapath: Option<Quota>,
    /// Bytes that it has in the store; `None`: [`STORE_BYTES`]. The service that keeps the store keeps it within them.
    pub store_bytes: Option<Quota>,
}

/// What an app may have in the store if nobody said more: thousands of small settings, and sixty such apps fit into the store.
pub const STORE_BYTES: Quota = Quota { soft: 838_860, hard: 1 << 20 };

/// Which quota.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub enum QuotaKind {
    /// [`Quotas::commands_per_s`].
    CommandsPerS = abi::event::quota::COMMANDS_PER_S,
    /// [`Quotas::packet_outs_per_s`].
    PacketOutsPerS = abi::event::quota::PACKET_OUTS_PER_S,
    /// [`Quotas::rules_per_datapath`].
    RulesPerDatapath = abi::event::quota::RULES_PER_DATAPATH,
    /// What the operator lets a switch's tables be filled to, by all apps together.
    TableEntries = abi::event::quota::TABLE_ENTRIES,
    /// [`Quotas::store_bytes`].
    StoreBytes = abi::event::quota::STORE_BYTES,
}

impl fmt::Display for QuotaKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            QuotaKind::CommandsPerS => "commands_per_s",
            QuotaKind::PacketOutsPerS => "packet_outs_per_s",
            QuotaKind::RulesPerDatapath => "rules_per_datapath",
            QuotaKind::TableEntries => "table entries",
            QuotaKind::StoreBytes => "store_bytes",
        })
    }
}

/// What a use of something with a quota comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// It passes.
    Fine,
    /// It passes, and is the first in a second that is beyond the soft limit.
    Soft,
    /// It does not pass.
    Hard,
}

/// How often somebody is told that a soft limit is passed.
const TELL_INTERVAL_MS: u64 = 1_000;

/// A rate with a soft and a hard limit. What was not used in a second is lost: bursts are at most one second's.
#[derive(Clone, Copy, Debug)]
pub struct Rate {
    quota: Quota,
    soft: Bucket,
    hard: Bucket,
    tell_from_ms: u64,
}

impl Rate {
    /// Nothing used yet.
    pub fn new(quota: Quota, now_ms: u64) -> Rate {
        let soft = Bucket::full(quota.soft, now_ms);
        Rate { quota, soft, hard: Bucket::full(quota.hard, now_ms), tell_from_ms: 0 }
    }

    /// The limits.
    pub fn quota(&self) -> Quota {
        self.quota
    }

    /// One use.
    pub fn take(&mut self, now_ms: u64) -> Use {
        if !self.hard.take(self.quota.hard, now_ms) {
            return Use::Hard;
        }
        if self.soft.take(self.quota.soft, now_ms) || now_ms < self.tell_from_ms {
            return Use::Fine;
        }
        self.tell_from_ms = now_ms + TELL_INTERVAL_MS;
        Use::Soft
    }
}

/// A token bucket that holds one second's tokens. In thousandths, so that a millisecond brings whole ones.
#[derive(Clone, Copy, Debug)]
pub struct Bucket {
    thousandths: u64,
    at_ms: u64,
}

impl Bucket {
    /// A second's tokens.
    pub fn full(per_s: u32, now_ms: u64) -> Bucket {
        Bucket { thousandths: u64::from(per_s) * 1_000, at_ms: now_ms }
    }

    /// Takes a token, if there is one.
    #[inline]
    pub fn take(&mut self, per_s: u32, now_ms: u64) -> bool {
        self.take_above(per_s, 0, now_ms)
    }

    /// Takes a token, if there is one beyond these, which are kept for somebody else.
    #[inline]
    pub fn take_above(&mut self, per_s: u32, kept: u32, now_ms: u64) -> bool {
        let passed_ms = now_ms.saturating_sub(self.at_ms).min(1_000);
        self.thousandths = (self.thousandths + passed_ms * u64::from(per_s)).min(u64::from(per_s) * 1_000);
        self.at_ms = now_ms;
        let enough = self.thousandths >= (u64::from(kept) + 1) * 1_000;
        if enough {
            self.thousandths -= 1_000;
        }
        enough
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uses(rate: &mut Rate, count: usize, now_ms: u64) -> Vec<Use> {
        (0..count).map(|_| rate.take(now_ms)).collect()
    }

    #[test]
    fn nothing_passes_beyond_the_hard_limit_until_time_has_passed() {
        let mut rate = Rate::new(Quota { soft: 2, hard: 3 }, 0);
        assert_eq!(uses(&mut rate, 5, 0), [Use::Fine, Use::Fine, Use::Soft, Use::Hard, Use::Hard]);
        assert_eq!(uses(&mut rate, 1, 333), [Use::Hard]);
        assert_eq!(uses(&mut rate, 2, 334), [Use::Fine, Use::Hard]);
    }

    #[test]
    fn a_limit_of_nothing_lets_nothing_pass() {
        let mut rate = Rate::new(Quota { soft: 0, hard: 0 }, 0);
        assert_eq!(uses(&mut rate, 1, 1_000_000), [Use::Hard]);
    }

    #[test]
    fn a_long_pause_saves_no_more_than_a_second() {
        let mut rate = Rate::new(Quota { soft: 2, hard: 2 }, 0);
        uses(&mut rate, 2, 0);
        assert_eq!(uses(&mut rate, 3, u64::MAX), [Use::Fine, Use::Fine, Use::Hard]);
    }

    #[test]
    fn of_a_soft_limit_one_is_told_once_a_second() {
        let mut rate = Rate::new(Quota { soft: 1, hard: 100 }, 0);
        assert_eq!(uses(&mut rate, 4, 0), [Use::Fine, Use::Soft, Use::Fine, Use::Fine]);
        assert_eq!(uses(&mut rate, 3, 1_000), [Use::Fine, Use::Soft, Use::Fine]);
    }

    #[test]
    fn time_that_goes_back_brings_nothing() {
        let mut bucket = Bucket::full(1, 500);
        assert!(bucket.take(1, 500) && !bucket.take(1, 400));
        assert!(bucket.take(1, 1_400));
    }

    #[test]
    fn what_is_kept_for_others_is_not_taken() {
        let mut bucket = Bucket::full(4, 0);
        assert!(bucket.take_above(4, 2, 0) && bucket.take_above(4, 2, 0));
        assert!(!bucket.take_above(4, 2, 0));
        assert!(bucket.take(4, 0));
    }
}
