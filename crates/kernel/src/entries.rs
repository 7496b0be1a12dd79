//! The entries that commands add to switches: counted against an app's quota and against what the operator lets a table be filled to.
//!
//! ```text
//!   a rule that passes ──> Kernel::take_entry ──> Ok, or the quota that it is beyond
//!                                   └─> Effect::Ask ──> the switch ──> Kernel::on_own_answer
//! ```
//!
//! In: adds and modifies (1.0's modify adds what it does not find), flow removeds, and the switches' answers. Never asks a switch itself, and
//! never looks into a rule.

use crate::budget::{Asking, Estimate, Fill, Lease, TableRoom};
use crate::datapath::Datapath;
use crate::decision::{Effect, Refusal};
use crate::dispatch::Kernel;
use crate::found_rules::{count_own, found_rules};
use crate::own_messages::{Asked, Unanswered};
use crate::quota::QuotaKind;
use crate::record::Wanted;
use crate::rules::Owner;
use abi::event::{Event, StatsReply};
use abi::{Frame, Outcome, ZoneId};
use flow::DatapathId;
use openflow::statistics;

/// Entries that may be added to a table of a switch before the kernel looks at it again. Commands come in runs for one table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EntryLease {
    pub datapath: DatapathId,
    pub table_id: u8,
    pub left: u32,
}

/// What is counted of a switch's entries.
#[derive(Clone, Debug, Default)]
pub(crate) struct Entries {
    fill: Fill,
    /// By zone, of those that have a quota: at most as many as there are zones.
    rules: Vec<RulesOf>,
}

#[derive(Clone, Debug)]
struct RulesOf {
    zone: ZoneId,
    rules: Estimate,
    tell_from_ms: u64,
}

/// Of a soft limit somebody hears as often as this.
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

    /// How many entries the switch's tables hold together, as far as it has said so of all.
    pub fn capacity(&self) -> Option<u64> {
        self.fill.capacity()
    }

    /// An entry is gone.
    pub fn on_removed(&mut self, owner: ZoneId, table_id: u8) {
        self.fill.on_removed(table_id);
        if let Some(of_owner) = self.rules.iter_mut().find(|rules| rules.zone == owner) {
            of_owner.rules.remove();
        }
    }

    fn on_answer(&mut self, asked: Asked, reply: &StatsReply<'_>, percent: u8, now_ms: u64) {
        match asked {
            Asked::TableSizes => {
                statistics::table_sizes(reply.body).for_each(|fact| self.fill.on_size(fact, percent));
                if !reply.more {
                    self.fill.on_sizes();
                }
            }
            // Which rule is whose is not counted here.
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

impl Kernel {
    /// How much of each table may be used.
    pub fn fill_tables_to(&mut self, room: TableRoom) {
        self.table_room = room;
    }

    /// Whether this switch may be about to say how large its tables are.
    pub fn is_asked_for_sizes(&self, datapath: DatapathId) -> bool {
        self.datapaths.get(&datapath).is_some_and(|there| there.entries.fill.is_asked_for_sizes())
    }

    /// Of how many rules of each switch the owners are known, at most.
    pub fn know_rules_up_to(&mut self, rules_per_switch: u32) {
        self.rules_per_switch = rules_per_switch;
    }

    /// One more entry of this zone, if there is room for it.
    #[inline]
    pub(crate) fn take_entry(
        &mut self,
        zone: ZoneId,
        datapath: DatapathId,
        table_id: u8,
        now_ms: u64,
        effects: &mut Vec<Effect>,
    ) -> Result<(), Refusal> {
        match &mut self.lease {
            Some(lease) if lease.left > 0 && lease.datapath == datapath && lease.table_id == table_id => {
                lease.left -= 1;
            }
            _ => self.renew_lease(zone, datapath, table_id, now_ms, effects)?,
        }
        let is_limited = |zone: &crate::zones::Zone| zone.grant.quotas().rules_per_datapath.is_some();
        if self.zone(zone).is_some_and(is_limited) {
            return self.take_rule(zone, datapath, now_ms, effects);
        }
        Ok(())
    }

    /// Gives back what is left of the lease, and takes another.
    fn renew_lease(
        &mut self,
        zone: ZoneId,
        datapath: DatapathId,
        table_id: u8,
        now_ms: u64,
        effects: &mut Vec<Effect>,
    ) -> Result<(), Refusal> {
        if let Some(old) = self.lease.take()
            && let Some(there) = self.datapaths.get_mut(&old.datapath)
        {
            there.entries.fill.give_back(old.table_id, old.left);
        }
        // That the switch is not there is found out by whoever sends.
        let room = self.table_room;
        let Some(Datapath { entries, .. }) = self.datapaths.get_mut(&datapath) else { return Ok(()) };
        let lease = entries.fill.lease(table_id, room, now_ms, &mut |asking| {
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
                return Err(Refusal::Quota { kind, hard: limit });
            }
            Lease::Unsized => return Err(Refusal::TablesUnsized(datapath)),
            Lease::Scarce { count, used, limit } => {
                tell(used, limit);
                self.lease = Some(EntryLease { datapath, table_id, left: count - 1 });
            }
            Lease::Granted(count) => self.lease = Some(EntryLease { datapath, table_id, left: count - 1 }),
        }
        Ok(())
    }

    /// One more rule of a zone that has a quota of them.
    fn take_rule(
        &mut self,
        zone: ZoneId,
        datapath: DatapathId,
        now_ms: u64,
        effects: &mut Vec<Effect>,
    ) -> Result<(), Refusal> {
        let quota = self.zone(zone).and_then(|zone| zone.grant.quotas().rules_per_datapath);
        let (Some(quota), Some(there)) = (quota, self.datapaths.get_mut(&datapath)) else { return Ok(()) };
        let of_zone = there.entries.rules_of(zone);
        let (used, kind) = (of_zone.rules.used(), QuotaKind::RulesPerDatapath);
        let is_near = used >= quota.soft || of_zone.rules.is_guess();
        if is_near && of_zone.rules.ask(quota.hard, now_ms) {
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

    /// A frame that answers the node. Says whether it answers a question of the kernel's own.
    pub fn on_own_answer(&mut self, frame: &[u8], now_ms: u64) -> bool {
        let Ok(frame) = Frame::read(frame) else { return false };
        let (ticket, reply) = match Event::read(&frame) {
            Ok(Event::StatsReply(reply)) => (reply.ticket, Ok(reply)),
            Ok(Event::Receipt(_, it)) if it.outcome == Outcome::Unknown => {
                (it.ticket, Err(Unanswered::Silence))
            }
            Ok(Event::Receipt(_, it)) if it.outcome == Outcome::Programmed => {
                (it.ticket, Err(Unanswered::PassedOver))
            }
            Ok(Event::Receipt(_, receipt)) => (receipt.ticket, Err(Unanswered::Refused)),
            Ok(Event::SwitchError(error)) => (error.ticket, Err(Unanswered::Refused)),
            _ => return false,
        };
        let Some(asked) = Asked::from_ticket(ticket) else { return false };
        match reply {
            Ok(reply) => {
                let percent = self.table_room.percent;
                match asked {
                    Asked::Rule => self.on_rules(&reply),
                    Asked::Owners => self.on_owners(&reply, now_ms),
                    Asked::Record => self.on_record(&reply, now_ms),
                    Asked::Groups | Asked::Meters => self.on_what_is_there(asked, &reply),
                    _ => {
                        if let Some(there) = self.datapaths.get_mut(&frame.datapath()) {
                            there.entries.on_answer(asked, &reply, percent, now_ms);
                            if asked == Asked::TableSizes {
                                there.record.bound_to(there.entries.capacity(), self.rules_per_switch);
                            }
                        }
                    }
                }
            }
            Err(why) => self.on_no_answer(frame.datapath(), asked, why, now_ms),
        }
        true
    }

    /// A question of the kernel's own is not answered this time: it is asked again when there is reason to.
    pub fn on_no_answer(&mut self, datapath: DatapathId, asked: Asked, why: Unanswered, now_ms: u64) {
        if asked == Asked::Owners {
            return self.on_owners_unanswered(datapath, why, now_ms);
        }
        let Some(there) = self.datapaths.get_mut(&datapath) else { return };
        match asked {
            Asked::RulesOf(zone) => there.entries.rules_of(zone).rules.on_no_answer(now_ms),
            Asked::TableSizes => match why {
                Unanswered::NotSent => there.entries.fill.on_sizes_unasked(now_ms),
                // It is asked again when its time to answer is over.
                Unanswered::Silence => {}
                // Where the answer is there already, this changes nothing.
                Unanswered::Refused | Unanswered::PassedOver => there.entries.fill.on_sizes_unknown(),
            },
            // What is not there any more keeps its owner, as it does where a switch has no such question.
            Asked::TableCounts | Asked::Owners | Asked::Groups | Asked::Meters => {}
            Asked::Rule => there.record.sought.on_no_answer(),
            Asked::Record => there.record.on_not_swept(),
        }
    }

    /// The rule of which a switch is to be asked whether it has it.
    pub fn wanted_rule(&self, datapath: DatapathId) -> Option<&Wanted> {
        self.datapaths.get(&datapath)?.record.sought.wanted()
    }

    /// Rules that a switch has, in answer to what it was asked. One that is not among them is gone.
    fn on_rules(&mut self, reply: &StatsReply<'_>) {
        let Kernel { datapaths, keys, .. } = self;
        let Some(Datapath { record, openflow, .. }) = datapaths.get_mut(&reply.datapath) else { return };
        for entry in found_rules(reply.body) {
            let key = keys.of(*openflow, reply.datapath, entry.table_id, entry.priority, entry.matching);
            key.into_iter().for_each(|key| record.sought.on_rule(key));
        }
        if !reply.more
            && let Some((key, owner)) = record.sought.on_end()
        {
            record.forget(key, owner);
        }
    }

    /// Rules that a switch has, in answer to the question for all of them. Those of its record that are not among them are gone.
    fn on_record(&mut self, reply: &StatsReply<'_>, now_ms: u64) {
        let Kernel { datapaths, keys, .. } = self;
        let Some(Datapath { record, openflow, .. }) = datapaths.get_mut(&reply.datapath) else { return };
        if !record.is_swept() {
            return;
        }
        for entry in found_rules(reply.body) {
            let Some(owner) = Owner::of_cookie(entry.cookie) else { continue };
            let key = keys.of(*openflow, reply.datapath, entry.table_id, entry.priority, entry.matching);
            key.into_iter().for_each(|key| record.find(key, owner, entry.stays, now_ms));
        }
        if !reply.more {
            record.end_sweep();
        }
    }
}
