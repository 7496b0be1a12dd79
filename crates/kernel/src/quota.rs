//! Quotas: soft and hard limits on what a zone may do, and the token buckets that enforce them.
//!
//! ```text
//!   Quota (soft, hard) ──> Rate, one for each zone ──take(now)──> Fine | Soft, once a second | Hard
//! ```
//!
//! A quota counts the effects of a command, not the command: see [`Quotas`].
//!
//! In: limits, and the time of each use. Out: whether to allow the use, and whether to tell the app and the operator.
//! It never reads a clock, and never allocates.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A soft limit, which the kernel reports, and a hard limit, which it enforces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quota {
    /// Above it, the kernel tells the app and the operator.
    pub soft: u32,
    /// Above it, the kernel refuses.
    pub hard: u32,
}

/// The quotas of a zone; `None`: the default, or no limit if there is no default. Rates are for all workers of a node
/// together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Quotas {
    /// Commands of any kind per second; no limit by default.
    pub commands_per_s: Option<Quota>,
    /// Packets that its packet-outs become per second: each output, each flooded port, each bucket of a group; no limit
    /// by default.
    pub packet_outs_per_s: Option<Quota>,
    /// Bytes of these packets; no limit by default.
    pub packet_out_bytes_per_s: Option<Quota>,
    /// Copies that each switch makes for it per second: packets beyond the first [`FREE_PACKETS`] of each packet-out;
    /// [`COPIES_PER_S`].
    pub copies_per_switch_per_s: Option<Quota>,
    /// Packet-ins that its rules and packet-outs cause per second; [`CAUSED_PER_S`].
    pub packet_ins_caused_per_s: Option<Quota>,
    /// Statistics per second: each request, and each KiB of its answer; [`STATS_PER_S`].
    pub stats_per_s: Option<Quota>,
    /// Rules that it has on one switch; no limit by default.
    pub rules_per_datapath: Option<Quota>,
}

/// Packets of each packet-out that do not count as copies. A few packets cost a switch little more than parsing the
/// packet-out, and a learning switch sends millions. The flood of a small switch stays within it.
pub const FREE_PACKETS: u64 = 16;

/// Copies at one switch: four hundred floods of 64 ports a second. They cost the app nothing, but they cost the switch
/// and the other apps with packets there.
pub const COPIES_PER_S: Quota = Quota { soft: 16_000, hard: 20_000 };

/// Packet-ins that an app's rules and packet-outs cause. An app that inspects all ARP, DHCP and LLDP of a large network
/// stays within the limit. An app whose own rule sends all packets of a network to the controller needs more.
pub const CAUSED_PER_S: Quota = Quota { soft: 8_000, hard: 10_000 };

/// Statistics. An app that reads a hundred rules from each of a thousand switches every second uses half of it.
pub const STATS_PER_S: Quota = Quota { soft: 16_000, hard: 20_000 };

/// The kind of a quota.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub enum QuotaKind {
    /// [`Quotas::commands_per_s`].
    CommandsPerS = abi::event::quota::COMMANDS_PER_S,
    /// [`Quotas::packet_outs_per_s`].
    PacketOutsPerS = abi::event::quota::PACKET_OUTS_PER_S,
    /// [`Quotas::rules_per_datapath`].
    RulesPerDatapath = abi::event::quota::RULES_PER_DATAPATH,
    /// The operator's limit for the entries in a switch's tables, for all apps together.
    TableEntries = abi::event::quota::TABLE_ENTRIES,
    /// [`Quotas::copies_per_switch_per_s`].
    CopiesPerSwitchPerS = abi::event::quota::COPIES_PER_SWITCH_PER_S,
    /// [`Quotas::packet_out_bytes_per_s`].
    PacketOutBytesPerS = abi::event::quota::PACKET_OUT_BYTES_PER_S,
    /// [`Quotas::packet_ins_caused_per_s`].
    PacketInsCausedPerS = abi::event::quota::PACKET_INS_CAUSED_PER_S,
    /// [`Quotas::stats_per_s`].
    StatsPerS = abi::event::quota::STATS_PER_S,
}

impl QuotaKind {
    /// The option with which the operator raises the limit.
    pub const fn is_raised_by(self) -> &'static str {
        match self {
            QuotaKind::CommandsPerS => "commands_per_s in the app's quotas",
            QuotaKind::PacketOutsPerS => "packet_outs_per_s in the app's quotas",
            QuotaKind::CopiesPerSwitchPerS => "copies_per_switch_per_s in the app's quotas",
            QuotaKind::PacketOutBytesPerS => "packet_out_bytes_per_s in the app's quotas",
            QuotaKind::PacketInsCausedPerS => "packet_ins_caused_per_s in the app's quotas",
            QuotaKind::StatsPerS => "stats_per_s in the app's quotas",
            QuotaKind::RulesPerDatapath => "rules_per_datapath of the app's rule.write",
            QuotaKind::TableEntries => "table_fill_percent in [limits]",
        }
    }
}

impl fmt::Display for QuotaKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            QuotaKind::CommandsPerS => "commands_per_s",
            QuotaKind::PacketOutsPerS => "packet_outs_per_s",
            QuotaKind::RulesPerDatapath => "rules_per_datapath",
            QuotaKind::TableEntries => "table entries",
            QuotaKind::CopiesPerSwitchPerS => "copies_per_switch_per_s",
            QuotaKind::PacketOutBytesPerS => "packet_out_bytes_per_s",
            QuotaKind::PacketInsCausedPerS => "packet_ins_caused_per_s",
            QuotaKind::StatsPerS => "stats_per_s",
        })
    }
}

/// The result of a use that has a quota.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// The kernel allows it.
    Fine,
    /// The kernel allows it. It is the first in a second above the soft limit.
    Soft,
    /// The kernel refuses the command.
    Hard,
}

/// The interval of notices about an exceeded soft limit.
const TELL_INTERVAL_MS: u64 = 1_000;

/// A rate with a soft and a hard limit, for one worker. Unused tokens of a second are lost: a burst has at most one
/// second's tokens.
///
/// All workers take tokens from one [`NodeRate`], each time a hundredth of a second's. So most uses touch no shared
/// memory.
#[derive(Clone, Debug)]
pub struct Rate {
    node: Arc<NodeRate>,
    soft_left: u64,
    hard_left: u64,
    tell_from_ms: u64,
}

impl Rate {
    /// Creates the rate of one of several workers.
    pub fn of_node(node: Arc<NodeRate>) -> Rate {
        Rate { node, soft_left: 0, hard_left: 0, tell_from_ms: 0 }
    }

    /// Creates a rate that only one worker uses.
    pub fn new(quota: Quota, now_ms: u64) -> Rate {
        Rate::of_node(Arc::new(NodeRate::new(quota, now_ms)))
    }

    /// The limits.
    pub fn quota(&self) -> Quota {
        self.node.quota
    }

    /// Takes this many uses at once. A use above one second's tokens is allowed if none were used for a second. It then
    /// blocks other uses until it is paid.
    #[inline]
    pub fn take(&mut self, count: u64, now_ms: u64) -> Use {
        if self.hard_left >= count && self.soft_left >= count {
            self.hard_left -= count;
            self.soft_left -= count;
            return Use::Fine;
        }
        self.take_of_node(count, now_ms)
    }

    #[cold]
    fn take_of_node(&mut self, count: u64, now_ms: u64) -> Use {
        let Quota { soft, hard } = self.node.quota;
        if !take_with(&mut self.hard_left, &self.node.hard_taken, hard, count, now_ms) {
            return Use::Hard;
        }
        if take_with(&mut self.soft_left, &self.node.soft_taken, soft, count, now_ms)
            || now_ms < self.tell_from_ms
        {
            return Use::Fine;
        }
        self.tell_from_ms = now_ms + TELL_INTERVAL_MS;
        Use::Soft
    }

    /// Whether this many uses are within both limits.
    #[inline]
    pub fn has_left(&self, count: u64) -> bool {
        self.hard_left >= count && self.soft_left >= count
    }

    /// Charges uses that have already happened, without a check.
    pub fn owe(&mut self, count: u64, now_ms: u64) {
        let of_left = count.min(self.hard_left).min(self.soft_left);
        self.hard_left -= of_left;
        self.soft_left -= of_left;
        for (taken, per_s) in
            [(&self.node.hard_taken, self.node.quota.hard), (&self.node.soft_taken, self.node.quota.soft)]
        {
            owe(taken, per_s, count - of_left, now_ms);
        }
    }
}

/// The tokens that all workers of a node took from one quota of a zone. It needs no lock: each number only grows.
#[derive(Debug)]
pub struct NodeRate {
    quota: Quota,
    soft_taken: AtomicU64,
    hard_taken: AtomicU64,
}

/// A worker takes this part of a second's tokens at once.
const BATCHES_PER_S: u64 = 100;

/// Debt above this many seconds' tokens is dropped: one long answer must not block an app for ever.
const OWED_MAX_S: u64 = 10;

impl NodeRate {
    /// Creates a rate without uses, at this time.
    pub fn new(quota: Quota, now_ms: u64) -> NodeRate {
        let taken = |per_s| AtomicU64::new(brought(per_s, now_ms));
        NodeRate { quota, soft_taken: taken(quota.soft), hard_taken: taken(quota.hard) }
    }
}

/// The tokens that a rate has produced until this time.
fn brought(per_s: u32, now_ms: u64) -> u64 {
    // Large enough for any run of a node: 2^32 tokens per second for a hundred years are 2^64.
    (u128::from(now_ms) * u128::from(per_s) / 1_000).try_into().unwrap_or(u64::MAX)
}

/// Takes tokens from the worker's rest, and missing ones from the node's.
fn take_with(left: &mut u64, taken: &AtomicU64, per_s: u32, count: u64, now_ms: u64) -> bool {
    if *left < count {
        let missing = count - *left;
        let Some(granted) = take_of(taken, per_s, missing, now_ms) else { return false };
        *left += granted;
    }
    *left -= count;
    true
}

/// Takes at least this many, or returns `None`. A second's tokens may be saved up.
fn take_of(taken: &AtomicU64, per_s: u32, least: u64, now_ms: u64) -> Option<u64> {
    let (from, until) = (brought(per_s, now_ms), brought(per_s, now_ms.saturating_add(1_000)));
    let wanted = least.max(u64::from(per_s) / BATCHES_PER_S);
    let mut seen = taken.load(Ordering::Relaxed);
    loop {
        let before = seen.max(from);
        let free = until.saturating_sub(before);
        // A use above one second's tokens is allowed once a full second's tokens are available.
        if free == 0 || free < least.min(u64::from(per_s)) {
            return None;
        }
        let granted = wanted.min(free).max(least);
        match taken.compare_exchange_weak(
            seen,
            before.saturating_add(granted),
            Ordering::Relaxed,
            Ordering::Relaxed,
        ) {
            Ok(_) => return Some(granted),
            Err(other) => seen = other,
        }
    }
}

fn owe(taken: &AtomicU64, per_s: u32, count: u64, now_ms: u64) {
    let from = brought(per_s, now_ms);
    let most = brought(per_s, now_ms.saturating_add(1_000 * OWED_MAX_S));
    let owed = |seen: u64| Some(seen.max(from).saturating_add(count).min(most.max(seen)));
    // The update always succeeds: the closure always returns a number.
    let _ = taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, owed);
}

/// The rates of one zone at one worker.
#[derive(Clone, Debug)]
pub(crate) struct Rates {
    pub commands: Option<Rate>,
    pub packet_outs: Option<Rate>,
    pub packet_out_bytes: Option<Rate>,
    pub packet_ins_caused: Rate,
    pub stats: Rate,
}

impl Rates {
    /// Applies another grant: a rate with an unchanged quota keeps its state.
    pub fn renew(&mut self, new: Rates) {
        let goes_on = |before: &Rate, new: &Rate| before.quota() == new.quota();
        for (before, new) in [
            (&mut self.commands, new.commands),
            (&mut self.packet_outs, new.packet_outs),
            (&mut self.packet_out_bytes, new.packet_out_bytes),
        ] {
            if !matches!((&*before, &new), (Some(before), Some(new)) if goes_on(before, new)) {
                *before = new;
            }
        }
        for (before, new) in
            [(&mut self.packet_ins_caused, new.packet_ins_caused), (&mut self.stats, new.stats)]
        {
            if !goes_on(before, &new) {
                *before = new;
            }
        }
    }
}

/// The rates of one zone at all workers of a node.
#[derive(Clone, Debug)]
pub struct NodeRates {
    commands: Option<Arc<NodeRate>>,
    packet_outs: Option<Arc<NodeRate>>,
    packet_out_bytes: Option<Arc<NodeRate>>,
    packet_ins_caused: Arc<NodeRate>,
    stats: Arc<NodeRate>,
}

impl NodeRates {
    /// Creates rates without uses.
    pub fn new(quotas: &Quotas, now_ms: u64) -> NodeRates {
        let new = |quota: Quota| Arc::new(NodeRate::new(quota, now_ms));
        let rate = |quota: Option<Quota>, default| new(quota.unwrap_or(default));
        NodeRates {
            commands: quotas.commands_per_s.map(new),
            packet_outs: quotas.packet_outs_per_s.map(new),
            packet_out_bytes: quotas.packet_out_bytes_per_s.map(new),
            packet_ins_caused: rate(quotas.packet_ins_caused_per_s, CAUSED_PER_S),
            stats: rate(quotas.stats_per_s, STATS_PER_S),
        }
    }

    /// The rates for one worker.
    pub(crate) fn at_worker(&self) -> Rates {
        Rates {
            commands: self.commands.clone().map(Rate::of_node),
            packet_outs: self.packet_outs.clone().map(Rate::of_node),
            packet_out_bytes: self.packet_out_bytes.clone().map(Rate::of_node),
            packet_ins_caused: Rate::of_node(self.packet_ins_caused.clone()),
            stats: Rate::of_node(self.stats.clone()),
        }
    }
}

/// A token bucket that holds one second's tokens, in thousandths, so that each millisecond adds a whole number.
#[derive(Clone, Copy, Debug)]
pub struct Bucket {
    thousandths: u64,
    at_ms: u64,
}

impl Bucket {
    /// Creates a bucket with one second's tokens.
    pub fn full(per_s: u32, now_ms: u64) -> Bucket {
        Bucket { thousandths: u64::from(per_s) * 1_000, at_ms: now_ms }
    }

    /// Takes a token, if there is one.
    #[inline]
    pub fn take(&mut self, per_s: u32, now_ms: u64) -> bool {
        self.take_above(per_s, 0, now_ms)
    }

    /// Takes a token if more than `kept` tokens are left. Those are reserved for another use.
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
        (0..count).map(|_| rate.take(1, now_ms)).collect()
    }

    fn rate(soft: u32, hard: u32) -> Rate {
        Rate::new(Quota { soft, hard }, 0)
    }

    #[test]
    fn nothing_passes_beyond_the_hard_limit_until_time_has_passed() {
        let mut rate = rate(2, 3);
        assert_eq!(uses(&mut rate, 5, 0), [Use::Fine, Use::Fine, Use::Soft, Use::Hard, Use::Hard]);
        assert_eq!(uses(&mut rate, 1, 333), [Use::Hard]);
        assert_eq!(uses(&mut rate, 2, 334), [Use::Fine, Use::Hard]);
    }

    #[test]
    fn a_limit_of_nothing_lets_nothing_pass() {
        assert_eq!(uses(&mut rate(0, 0), 1, 1_000_000), [Use::Hard]);
    }

    #[test]
    fn a_long_pause_saves_no_more_than_a_second() {
        let mut rate = rate(2, 2);
        uses(&mut rate, 2, 0);
        assert_eq!(uses(&mut rate, 3, 1 << 40), [Use::Fine, Use::Fine, Use::Hard]);
    }

    #[test]
    fn of_a_soft_limit_one_is_told_once_a_second() {
        let mut rate = rate(1, 100);
        assert_eq!(uses(&mut rate, 4, 0), [Use::Fine, Use::Soft, Use::Fine, Use::Fine]);
        assert_eq!(uses(&mut rate, 3, 1_000), [Use::Fine, Use::Soft, Use::Fine]);
    }

    #[test]
    fn what_is_more_than_a_second_passes_alone_and_keeps_others_out() {
        let mut rate = rate(10, 10);
        assert_eq!(rate.take(1, 0), Use::Fine);
        assert_eq!(rate.take(35, 0), Use::Hard);
        assert_eq!(rate.take(35, 100), Use::Fine);
        // 36 were taken, and 10 were there at the beginning.
        assert_eq!(rate.take(1, 2_600), Use::Hard);
        assert_eq!(rate.take(1, 2_700), Use::Fine);
    }

    #[test]
    fn what_is_owed_is_missing_and_not_for_ever() {
        let mut rate = rate(10, 10);
        rate.owe(15, 0);
        assert_eq!((rate.take(1, 500), rate.take(1, 600)), (Use::Hard, Use::Fine));
        rate.owe(1 << 60, 1_000);
        assert_eq!(rate.take(1, 9_900), Use::Hard);
        assert_eq!(rate.take(1, 11_000), Use::Fine);
    }

    #[test]
    fn workers_share_what_the_node_has() {
        let node = Arc::new(NodeRate::new(Quota { soft: 50_000, hard: 50_000 }, 0));
        let mut workers: Vec<Rate> = (0..8).map(|_| Rate::of_node(node.clone())).collect();
        let mut passed = 0;
        for _ in 0..20_000 {
            passed += workers
                .iter_mut()
                .filter_map(|rate| (rate.take(1, 5) == Use::Fine).then_some(1))
                .sum::<u64>();
        }
        assert_eq!(passed, 50_000, "the last of them has what the others left");
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
