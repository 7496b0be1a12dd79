//! Counts the entries that commands add to switches, against an app's quota and the operator's limit for each table.
//!
//! ```text
//!   a rule that passes ──> Entries::lease, take_rule ──> Ok, or the quota that it is beyond
//!                                   └─> Effect::Ask ──> the switch ──> Entries::on_answer
//! ```
//!
//! In: adds and modifies (a modify of 1.0 adds a missing entry), flow-removed messages, and the switches' answers. It
//! never asks a switch itself, and never looks into a rule.

use crate::budget::{Asking, Estimate, Fill, Lease, TableRoom};
use crate::decision::{Effect, Refusal};
use crate::own_messages::{Asked, Unanswered};
use crate::quota::{Quota, QuotaKind};
use crate::reported_rules::count_own;
use abi::ZoneId;
use abi::event::StatsReply;
use flow::DatapathId;
use openflow::statistics;

/// Entries that may be added to a table before the kernel checks it again. Several commands in a row usually go to one
/// table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EntryLease {
    pub datapath: DatapathId,
    pub table_id: u8,
    pub left: u32,
}

/// The counts of a switch's entries.
#[derive(Clone, Debug, Default)]
pub(crate) struct Entries {
    fill: Fill,
    /// The zones that have a quota of entries: at most as many as there are zones.
    rules: Vec<RulesOf>,
    /// Whether a bundle is under way. The switch counts its entries only later, so no question about counts is asked.
    is_in_bundle: bool,
}

#[derive(Clone, Debug)]
struct RulesOf {
    zone: ZoneId,
    rules: Estimate,
    tell_from_ms: u64,
}

/// The interval of notices about a soft limit.
const TELL_INTERVAL_MS: u64 = 1_000;

impl Entries {
    fn rules_of(&mut self, zone: ZoneId) -> &mut RulesOf {
        let place = self.rules.iter().position(|rules| rules.zone == zone);
        let place = place.unwrap_or_else(|| {
            self.rules.push(RulesOf { zone, rules: Estimate::default(), tell_from_ms: 0 });
            self.rules.len() - 1
        });
        &mut self.rules[place]
    }

    /// The total size of the switch's tables, if the switch has reported it.
    pub fn capacity(&self) -> Option<u64> {
        self.fill.capacity()
    }

    /// Whether a bundle is under way to the switch.
    pub fn be_in_bundle(&mut self, is_in_bundle: bool) {
        self.is_in_bundle = is_in_bundle;
        self.fill.be_in_bundle(is_in_bundle);
    }

    /// The operator's profile says how many entries the switch's hardware has. `percent`: how much of it may be used.
    pub fn on_hardware(&mut self, entries: Option<u32>, percent: u8) {
        self.fill.on_hardware(entries, percent);
    }

    /// The answer to this question will lack an entry of this zone, which the switch gets later.
    pub fn on_waiting(&mut self, asked: Asked, owner: ZoneId, table_id: u8) {
        match asked {
            Asked::TableCounts => self.fill.on_waiting(table_id),
            Asked::RulesOf(zone) if zone == owner => self.rules_of(zone).rules.on_waiting(1),
            _ => {}
        }
    }

    /// The switch removed an entry.
    pub fn on_removed(&mut self, owner: ZoneId, table_id: u8) {
        self.fill.on_removed(table_id);
        if let Some(of_owner) = self.rules.iter_mut().find(|rules| rules.zone == owner) {
            of_owner.rules.remove();
        }
    }

    /// Takes a part of an answer about entries. `percent`: how much of each table may be used.
    pub fn on_answer(&mut self, asked: Asked, reply: &StatsReply<'_>, percent: u8, now_ms: u64) {
        match asked {
            Asked::TableSizes => {
                statistics::table_sizes(reply.body).for_each(|fact| self.fill.on_size(fact, percent));
                if !reply.more {
                    self.fill.on_sizes();
                }
            }
            // The owners of rules are not counted here.
            Asked::Rule | Asked::Owners | Asked::Record | Asked::Groups | Asked::Meters => {}
            Asked::TableCounts => {
                statistics::table_counts(reply.body).for_each(|fact| self.fill.on_count(fact, now_ms))
            }
            Asked::RulesOf(zone) => {
                let count = match reply.multipart {
                    statistics::kind::AGGREGATE => statistics::aggregate_entries(reply.body),
                    _ => count_own(zone, reply.body),
                };
                self.rules_of(zone).rules.on_answer(count, reply.more, now_ms);
            }
        }
    }
}

impl Entries {
    /// Whether the switch may still report its table sizes.
    pub fn is_asked_for_sizes(&self) -> bool {
        self.fill.is_asked_for_sizes()
    }

    /// Takes back the unused part of a lease.
    pub fn give_back(&mut self, lease: &EntryLease) {
        self.fill.give_back(lease.table_id, lease.left);
    }

    /// Grants a lease on a table to this zone, which uses one of its entries at once.
    pub fn lease(
        &mut self,
        zone: ZoneId,
        (datapath, table_id): (DatapathId, u8),
        room: TableRoom,
        now_ms: u64,
        effects: &mut Vec<Effect>,
    ) -> Result<EntryLease, Refusal> {
        let lease = self.fill.lease(table_id, room, now_ms, &mut |asking| {
            effects.push(match asking {
                Asking::TableSizes => Effect::Ask { datapath, asked: Asked::TableSizes },
                Asking::TableCounts => Effect::Ask { datapath, asked: Asked::TableCounts },
                Asking::TellUnknown => {
                    Effect::SizesUnknown { datapath, entries_if_unknown: room.entries_if_unknown }
                }
                Asking::Wait => Effect::WaitForSizes { zone, datapath },
            });
        });
        let kind = QuotaKind::TableEntries;
        let mut tell = |used: u32, hard: u32| {
            effects.push(Effect::SoftLimit { zone, datapath, kind, used, soft: hard - hard / 10, hard });
        };
        match lease {
            Lease::Full { limit, tell: is_due } => {
                if is_due {
                    tell(limit, limit);
                }
                Err(Refusal::Quota { kind, hard: limit })
            }
            Lease::Unsized => Err(Refusal::TablesUnsized(datapath)),
            Lease::Scarce { count, used, limit } => {
                tell(used, limit);
                Ok(EntryLease { datapath, table_id, left: count - 1 })
            }
            Lease::Granted(count) => Ok(EntryLease { datapath, table_id, left: count - 1 }),
        }
    }

    /// Counts one more rule of a zone that has a quota of rules.
    pub fn take_rule(
        &mut self,
        zone: ZoneId,
        datapath: DatapathId,
        quota: Quota,
        now_ms: u64,
        effects: &mut Vec<Effect>,
    ) -> Result<(), Refusal> {
        let may_ask = !self.is_in_bundle;
        let of_zone = self.rules_of(zone);
        let (used, kind) = (of_zone.rules.used(), QuotaKind::RulesPerDatapath);
        let rules = &of_zone.rules;
        let is_due = used >= quota.soft || rules.is_guess() || rules.is_worth_a_check(quota.hard);
        if is_due && may_ask && of_zone.rules.ask(quota.hard, now_ms) {
            effects.push(Effect::Ask { datapath, asked: Asked::RulesOf(zone) });
        }
        if used >= quota.soft && now_ms >= of_zone.tell_from_ms {
            of_zone.tell_from_ms = now_ms + TELL_INTERVAL_MS;
            let (soft, hard) = (quota.soft, quota.hard);
            effects.push(Effect::SoftLimit { zone, datapath, kind, used, soft, hard });
        }
        if used >= quota.hard {
            return Err(Refusal::Quota { kind, hard: quota.hard });
        }
        of_zone.rules.add(1);
        Ok(())
    }

    /// The switch did not answer a question about entries. The kernel asks again when it needs the answer.
    pub fn on_no_answer(&mut self, asked: Asked, why: Unanswered, now_ms: u64) {
        match (asked, why) {
            (Asked::RulesOf(zone), _) => self.rules_of(zone).rules.on_no_answer(now_ms),
            (Asked::TableCounts, _) => self.fill.on_no_counts(now_ms),
            (Asked::TableSizes, Unanswered::NotSent) => self.fill.on_sizes_unasked(now_ms),
            // The kernel asks again after the answer's timeout.
            (Asked::TableSizes, Unanswered::Silence) => {}
            // If the answer has already arrived, this changes nothing.
            (Asked::TableSizes, Unanswered::Refused | Unanswered::PassedOver) => {
                self.fill.on_sizes_unknown();
            }
            _ => {}
        }
    }
}
