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
const TOKEN: u64 = 1_000;

/// The buckets of one limit. A burst has at most one second's tokens.
#[derive(Clone, Debug)]
struct Rate {
    limit: Limit,
    soft: u64,
    hard: u64,
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
        let Some(left) = self.hard.checked_sub(TOKEN) else { return Use::Hard };
        self.hard = left;
        match self.soft.checked_sub(TOKEN) {
            Some(left) => {
                self.soft = left;
                Use::Fine
            }
            None => self.tell(now_ms),
        }
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

fn full(per_s: u32) -> u64 {
    u64::from(per_s) * TOKEN
}

fn filled(level: u64, per_s: u32, passed_ms: u64) -> u64 {
    level.saturating_add(u64::from(per_s).saturating_mul(passed_ms)).min(full(per_s))
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

    /// Whether there may be so many rules.
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
