//! The limits of a slice at one switch: token buckets with a soft and a hard limit.
//!
//! In: the limits, and the time of each use. Out: whether the use is fine, above the soft limit, or above the hard one. It reads no clock.

use crate::output::LimitKind;
use crate::plan::{Limit, Limits};

/// What a use is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Use {
    /// Within the soft limit, or the operator was told less than a second ago.
    Fine,
    /// Above the soft limit: tell the operator.
    Soft,
    /// Above the hard limit: refuse it.
    Hard,
}

/// How often the operator is told about one limit.
const TELL_INTERVAL_MS: u64 = 1_000;
/// A token in the unit of a level: a rate of one per second adds one each millisecond.
const TOKEN: i64 = 1_000;

/// The buckets of one limit. A burst has at most one second's tokens. A level below zero is a debt, which new tokens pay first.
#[derive(Clone, Debug)]
struct Rate {
    limit: Limit,
    soft: i64,
    hard: i64,
    at_ms: u64,
    tell_from_ms: u64,
}

impl Rate {
    fn new(limit: Limit) -> Rate {
        let (soft, hard) = (full(limit.soft), full(limit.hard));
        Rate { limit, soft, hard, at_ms: 0, tell_from_ms: 0 }
    }

    fn take(&mut self, now_ms: u64) -> Use {
        let passed_ms = now_ms.saturating_sub(self.at_ms);
        self.at_ms = self.at_ms.max(now_ms);
        self.soft = filled(self.soft, self.limit.soft, passed_ms);
        self.hard = filled(self.hard, self.limit.hard, passed_ms);
        if self.hard < TOKEN {
            return Use::Hard;
        }
        self.hard -= TOKEN;
        if self.soft < TOKEN {
            return self.tell(now_ms);
        }
        self.soft -= TOKEN;
        Use::Fine
    }

    /// Uses that followed from one that was within the limit.
    fn spend(&mut self, uses: usize) {
        let cost = i64::try_from(uses).unwrap_or(i64::MAX).saturating_mul(TOKEN);
        self.hard = self.hard.saturating_sub(cost);
        // Without a debt: the operator is told about new uses, not about old ones.
        self.soft = self.soft.saturating_sub(cost).max(0);
    }

    /// Above the soft limit.
    fn tell(&mut self, now_ms: u64) -> Use {
        if now_ms < self.tell_from_ms {
            return Use::Fine;
        }
        self.tell_from_ms = now_ms + TELL_INTERVAL_MS;
        Use::Soft
    }
}

fn full(per_s: u32) -> i64 {
    i64::from(per_s) * TOKEN
}

fn filled(level: i64, per_s: u32, passed_ms: u64) -> i64 {
    let passed_ms = i64::try_from(passed_ms).unwrap_or(i64::MAX);
    level.saturating_add(i64::from(per_s).saturating_mul(passed_ms)).min(full(per_s))
}

/// The limits of a slice at one switch.
#[derive(Clone, Debug)]
pub(crate) struct Allowance {
    packet_ins: Rate,
    packet_outs: Rate,
    flow_mods: Rate,
    statistics: Rate,
    rules: Rate,
}

impl Allowance {
    pub(crate) fn new(limits: &Limits) -> Allowance {
        Allowance {
            packet_ins: Rate::new(limits.packet_ins_per_s),
            packet_outs: Rate::new(limits.packet_outs_per_s),
            flow_mods: Rate::new(limits.flow_mods_per_s),
            statistics: Rate::new(limits.statistics_per_s),
            rules: Rate::new(limits.rules),
        }
    }

    /// One more use of a limit per second.
    pub(crate) fn take(&mut self, kind: LimitKind, now_ms: u64) -> Use {
        match kind {
            LimitKind::PacketIns => self.packet_ins.take(now_ms),
            LimitKind::PacketOuts => self.packet_outs.take(now_ms),
            LimitKind::FlowMods => self.flow_mods.take(now_ms),
            LimitKind::Statistics => self.statistics.take(now_ms),
            LimitKind::Rules => Use::Fine,
        }
    }

    /// Flow mods that one message caused, besides itself. They may exceed the limit: then the next messages wait for it.
    pub(crate) fn spend_flow_mods(&mut self, uses: usize) {
        self.flow_mods.spend(uses);
    }

    /// Whether the slice may have this number of rules.
    pub(crate) fn hold(&mut self, rules: usize, now_ms: u64) -> Use {
        let Limit { soft, hard } = self.rules.limit;
        let is_above = |limit: u32| u32::try_from(rules).map_or(true, |rules| rules > limit);
        match (is_above(hard), is_above(soft)) {
            (true, _) => Use::Hard,
            (_, true) => self.rules.tell(now_ms),
            _ => Use::Fine,
        }
    }

    /// The most rules.
    pub(crate) fn rules_max(&self) -> u32 {
        self.rules.limit.hard
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(soft: u32, hard: u32) -> Allowance {
        let limit = Limit { soft, hard };
        Allowance::new(&Limits { packet_ins_per_s: limit, rules: limit, ..Limits::default() })
    }

    /// The uses at one time.
    fn check(allowance: &mut Allowance, now_ms: u64, expected: &[Use]) {
        let uses: Vec<Use> = expected.iter().map(|_| allowance.take(LimitKind::PacketIns, now_ms)).collect();
        assert_eq!(uses, expected, "at {now_ms}");
    }

    #[test]
    fn above_the_hard_limit_nothing_passes_until_time_does() {
        let mut allowance = of(2, 4);
        check(&mut allowance, 5_000, &[Use::Fine, Use::Fine, Use::Soft, Use::Fine, Use::Hard, Use::Hard]);
        check(&mut allowance, 5_249, &[Use::Hard]);
        check(&mut allowance, 5_250, &[Use::Fine, Use::Hard]);
        check(&mut allowance, 60_000, &[Use::Fine, Use::Fine, Use::Soft, Use::Fine, Use::Hard]);
    }

    #[test]
    fn uses_that_follow_are_a_debt_which_time_pays() {
        let mut allowance = of(2, 4);
        check(&mut allowance, 5_000, &[Use::Fine]);
        allowance.packet_ins.spend(7);
        check(&mut allowance, 6_000, &[Use::Hard]);
        check(&mut allowance, 6_249, &[Use::Hard]);
        check(&mut allowance, 6_250, &[Use::Fine, Use::Hard]);
    }

    #[test]
    fn a_clock_that_steps_back_gives_nothing() {
        let mut allowance = of(1, 1);
        check(&mut allowance, 5_000, &[Use::Fine, Use::Hard]);
        check(&mut allowance, 1_000, &[Use::Hard]);
        check(&mut allowance, 5_999, &[Use::Hard]);
        check(&mut allowance, 6_000, &[Use::Fine]);
    }

    #[test]
    fn rules_are_counted_and_not_paced() {
        let mut allowance = of(2, 4);
        let uses: Vec<Use> = [2, 3, 4, 5].iter().map(|count| allowance.hold(*count, 9)).collect();
        assert_eq!(uses, [Use::Fine, Use::Soft, Use::Fine, Use::Hard]);
    }
}
