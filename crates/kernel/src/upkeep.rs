//! The kernel's own work at switches: questions and their answers, the meter of its table-miss rule, and timed tasks.
//!
//! ```text
//!   time ──> questions that are due (Effect::Ask, Effect::Meter) ──> the switch ──> on_own_answer, on_meter_answer ──> the part that asked
//! ```
//!
//! In: the time, and answers to the node. Out: questions. It never sends one.

use crate::budget::TableRoom;
use crate::budgets::owed_for;
use crate::datapath::Datapath;
use crate::decision::Effect;
use crate::dispatch::Kernel;
use crate::metering::{AtSwitch, Metering, is_about_the_meter};
use crate::own_messages::{Asked, Unanswered, WITHDRAWAL_TICKET, later_table_of};
use crate::ownership::doubt_rules;
use crate::precedence::Others;
use crate::record::Wanted;
use crate::reported_rules::{ReportedRule, reported_rules};
use crate::rules::Owner;
use crate::withdrawals::{Removal, Withdrawal};
use abi::event::{Event, StatsReply, kind};
use abi::{Frame, Outcome, ZoneId};
use flow::DatapathId;

/// The operator's limits.
impl Kernel {
    /// Sets how much of each table may be used.
    pub fn fill_tables_to(&mut self, room: TableRoom) {
        self.budgets.table_room = room;
    }

    /// Sets how many rules the hardware of this switch has, by the operator's profile. `None`: the kernel asks the switch.
    pub fn know_hardware(&mut self, datapath: DatapathId, entries: Option<u32>) {
        let Some(there) = self.sessions.datapaths.get_mut(&datapath) else { return };
        if let Some(lease) = self.budgets.lease.take_if(|lease| lease.datapath == datapath) {
            there.entries.give_back(&lease);
        }
        there.entries.on_hardware(entries, self.budgets.table_room.percent);
    }

    /// Sets of how many rules of each switch the kernel knows the owners.
    pub fn know_rules_up_to(&mut self, rules_per_switch: u32) {
        self.budgets.rules_per_switch = rules_per_switch;
    }

    /// Sets how many packet-ins per second the kernel's table-miss rule may cause, on switches that have meters;
    /// `None`: no limit. It applies to switches that connect from now on.
    pub fn meter_punts(&mut self, per_s: Option<u32>) {
        self.budgets.meter_per_s = per_s;
    }
}

/// Timed tasks.
impl Kernel {
    /// Asks the switches that are due for their rules, as many as one turn allows.
    pub fn ask_for_owners(&mut self, now_ms: u64, effects: &mut Vec<Effect>) {
        self.go_on_judging(effects);
        self.precedence.say_evictions(effects);
        self.withdrawals.on_time(now_ms);
        self.say_withdrawals(effects);
        self.sessions.ask_for_owners(&self.ownership.owned, now_ms, effects);
    }

    /// If it is due: asks the switches whether they still have their meters, and looks at the table-miss rules of later tables.
    /// It deletes those that no app needs any more, and adds those that are missing.
    pub fn check_meters(&mut self, now_ms: u64, effects: &mut Vec<Effect>) {
        if !self.budgets.is_check_due(now_ms) {
            return;
        }
        let switches = self.sessions.datapaths.iter();
        switches.for_each(|(datapath, there)| there.metering.check(*datapath, effects));
        let all: Vec<DatapathId> = self.sessions.datapaths.keys().copied().collect();
        let before = self.scratch.compared();
        for datapath in all {
            self.look_at_later_punts(datapath, effects);
            // An app may have deleted its own table-miss rule.
            self.punt_from_reached(datapath, None, effects);
            self.seek_table_misses(datapath, now_ms, effects);
        }
        // It is no app's work.
        self.scratch.set_compared(before);
        for datapath in self.precedence.take_missed(&self.sessions.datapaths) {
            self.sessions.ask_anew_seldom(datapath, now_ms);
        }
    }

    /// Deletes the table-miss rules to whose tables no app passes packets on. While a switch has not reported all of its rules, an
    /// unknown rule may pass packets on, so all stay.
    fn look_at_later_punts(&mut self, datapath: DatapathId, effects: &mut Vec<Effect>) {
        let has_later = |there: &Datapath| there.later_punts.tables().next().is_some();
        if !self.sessions.datapaths.get(&datapath).is_some_and(has_later) {
            return;
        }
        let passed_to = self.precedence.passed_to(datapath, &self.sessions.datapaths);
        let Some(there) = self.sessions.datapaths.get_mut(&datapath) else { return };
        if there.inquiry.has_answered {
            let gone = there.later_punts.on_look(&passed_to).into_iter();
            effects.extend(gone.map(|table_id| Effect::EndPuntFrom { datapath, table_id }));
        }
    }

    /// Whether this switch may still report its table sizes.
    pub fn is_asked_for_sizes(&self, datapath: DatapathId) -> bool {
        self.sessions.datapaths.get(&datapath).is_some_and(|there| there.entries.is_asked_for_sizes())
    }

    /// The rule about which the kernel asks a switch.
    pub fn wanted_rule(&self, datapath: DatapathId) -> Option<&Wanted> {
        self.sessions.datapaths.get(&datapath)?.record.sought.wanted()
    }

    /// The state of the meter for the table-miss rule of this switch, if it is connected.
    pub fn metering(&self, datapath: DatapathId) -> Option<&Metering> {
        Some(&self.sessions.datapaths.get(&datapath)?.metering)
    }

    /// The number of the meter that the table-miss rule of this switch should have now.
    pub fn punt_meter(&self, datapath: DatapathId) -> Option<u32> {
        Some(self.metering(datapath)?.of_the_rule()?.meter_id)
    }

    /// The meter that the table-miss rule of a later table refers to, if any.
    pub fn later_punt_meter(&self, datapath: DatapathId, table_id: u8) -> Option<u32> {
        let there = self.sessions.datapaths.get(&datapath)?;
        there.later_punts.may_have_meter(table_id).then(|| self.punt_meter(datapath))?
    }
}

/// What zones lost and cannot delete themselves.
impl Kernel {
    /// From now on, these losses are to be withdrawn, and no others. Switches that are connected are asked for their rules, others when they connect.
    pub fn withdraw(&mut self, wanted: &[Withdrawal], now_ms: u64) {
        for datapath in self.withdrawals.want(wanted) {
            self.sessions.ask_anew(datapath, now_ms);
        }
    }

    /// A switch has reported all of its rules: what zones lost there is deleted.
    fn begin_withdrawals(&mut self, datapath: DatapathId) {
        let Kernel { sessions, ownership, withdrawals, .. } = self;
        let things = withdrawals.on_report(datapath, |zone| ownership.owned.owned_by(zone, datapath));
        if !things.is_empty() {
            // A deleted group or meter deletes the rules that name it.
            doubt_rules(&mut sessions.datapaths, datapath, None);
        }
        things.into_iter().for_each(|thing| ownership.owned.release((datapath, thing)));
    }

    /// Says at which switches the next deletes are due.
    pub fn say_withdrawals(&mut self, effects: &mut Vec<Effect>) {
        effects.extend(self.withdrawals.take_ready().into_iter().map(Effect::Withdraw));
    }

    /// The next deletes for a switch. A barrier with [`crate::own_messages::WITHDRAWAL_TICKET`] follows them. Empty: there are no more.
    pub fn next_withdrawals(&mut self, datapath: DatapathId) -> Vec<Removal> {
        let Some(there) = self.sessions.datapaths.get(&datapath) else { return Vec::new() };
        self.withdrawals.next_batch(datapath, (there.openflow, &there.record))
    }

    /// The deletes, or the barrier behind them, were not sent. Returns whether they are due again later; if not, when the switch connects again.
    pub fn on_withdrawals_not_sent(&mut self, datapath: DatapathId, now_ms: u64) -> bool {
        self.withdrawals.on_not_sent(datapath, now_ms)
    }

    /// Takes an answer to the node. Returns whether it is about these deletes. An error of a delete also counts: then the barrier follows.
    pub fn on_withdrawal_answer(&mut self, frame: &[u8]) -> bool {
        let Ok(frame) = Frame::read(frame) else { return false };
        let (ticket, is_done) = match Event::read(&frame) {
            Ok(Event::Receipt(_, it)) => (it.ticket, it.outcome == Outcome::Programmed),
            Ok(Event::SwitchError(it)) => {
                if it.ticket == WITHDRAWAL_TICKET {
                    self.withdrawals.on_error(frame.datapath());
                    return true;
                }
                return false;
            }
            _ => return false,
        };
        if ticket == WITHDRAWAL_TICKET {
            self.withdrawals.on_answer(frame.datapath(), is_done);
        }
        ticket == WITHDRAWAL_TICKET
    }

    /// The withdrawals that are done since the last call, by their numbers.
    pub fn take_withdrawn(&mut self) -> Vec<u64> {
        self.withdrawals.take_done()
    }
}

/// Answers.
impl Kernel {
    /// An answer to a zone: charges the part that the charge for its question did not cover.
    pub fn charge_answer(&mut self, zone: ZoneId, frame: &[u8], now_ms: u64) {
        let Ok(read) = Frame::read(frame) else { return };
        if read.header.kind.get() != kind::STATS_REPLY {
            return;
        }
        let Ok(Event::StatsReply(reply)) = Event::read(&read) else { return };
        let owed = owed_for(&reply, frame.len(), &mut self.sessions.datapaths);
        if let Some(Some(there)) = self.zones.get_mut(usize::from(zone.0)) {
            there.rates.stats.owe(owed, now_ms);
        }
    }

    /// Takes an answer to the node. Returns whether it answers one of the kernel's own questions.
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
            Ok(reply) => self.on_reply(frame.datapath(), asked, &reply, now_ms),
            Err(why) => self.on_no_answer(frame.datapath(), asked, why, now_ms),
        }
        true
    }

    fn on_reply(&mut self, datapath: DatapathId, asked: Asked, reply: &StatsReply<'_>, now_ms: u64) {
        match asked {
            Asked::Rule => self.on_rules(reply),
            Asked::Owners => self.on_owners(reply, now_ms),
            Asked::Record => self.on_record(reply, now_ms),
            Asked::Groups | Asked::Meters => {
                self.sessions.owned_check.on_answer(asked, reply, &mut self.ownership.owned);
            }
            _ => {
                let Some(there) = self.sessions.datapaths.get_mut(&datapath) else { return };
                there.entries.on_answer(asked, reply, self.budgets.table_room.percent, now_ms);
                if asked == Asked::TableSizes {
                    there.record.bound_to(there.entries.capacity(), self.budgets.rules_per_switch);
                }
            }
        }
    }

    /// A question was sent to a slow switch for which this rule of a zone still waits: its answer will not have it. `matching` is
    /// canonical; `None`: it is not known.
    pub fn on_waiting(
        &mut self,
        datapath: DatapathId,
        asked: Asked,
        zone: ZoneId,
        (table_id, priority): (u8, u16),
        matching: Option<&[u8]>,
    ) {
        let Kernel { sessions, ownership, .. } = self;
        let Some(there) = sessions.datapaths.get_mut(&datapath) else { return };
        there.entries.on_waiting(asked, zone, table_id);
        // A rule whose match is not known is no other rule: an empty match would be the one that all packets meet.
        if let Some(matching) = matching.filter(|_| asked.needs_matches()) {
            let key = ownership.keys.of(there.openflow, datapath, table_id, priority, matching);
            key.into_iter().for_each(|key| there.record.on_waiting(key));
        }
    }

    /// A switch did not answer one of the kernel's own questions. The kernel asks again when it needs the answer.
    pub fn on_no_answer(&mut self, datapath: DatapathId, asked: Asked, why: Unanswered, now_ms: u64) {
        if asked == Asked::Owners {
            if matches!(why, Unanswered::Silence | Unanswered::Refused) {
                self.withdrawals.on_no_report(datapath);
            }
            return self.sessions.on_owners_unanswered(datapath, why, now_ms);
        }
        let Some(there) = self.sessions.datapaths.get_mut(&datapath) else { return };
        match asked {
            // Things that are gone keep their owner, as on a switch without such a question.
            Asked::TableCounts | Asked::Owners | Asked::Groups | Asked::Meters => {}
            Asked::RulesOf(_) | Asked::TableSizes => there.entries.on_no_answer(asked, why, now_ms),
            Asked::Rule => there.record.sought.on_no_answer(),
            Asked::Record => there.record.on_not_swept(),
        }
    }

    /// Rules that a switch had when it connected.
    fn on_owners(&mut self, reply: &StatsReply<'_>, now_ms: u64) {
        let (datapath, before) = (reply.datapath, self.scratch.compared());
        let Kernel { sessions, ownership, precedence, receivers, withdrawals, .. } = self;
        let mut is_outside = false;
        let goes = |openflow, zone, key, rule: &ReportedRule<'_>| {
            withdrawals.on_rule((datapath, openflow), zone, key, rule)
        };
        let is_to_compare = |zone, rule: &ReportedRule<'_>, (table_id, priority): (u8, u16)| {
            is_outside |= precedence.contests.on_rule(zone, (datapath, table_id), priority);
            precedence.compares(zone) || receivers.may_be_wide(rule.matching)
        };
        let to_compare = sessions.on_owners(reply, &mut ownership.keys, goes, is_to_compare, now_ms);
        if is_outside && self.precedence.contests.on_rules() {
            let all: Vec<DatapathId> = self.sessions.datapaths.keys().copied().collect();
            all.into_iter().for_each(|datapath| self.sessions.ask_anew_seldom(datapath, now_ms));
        }
        for (key, zone, rule, place) in to_compare {
            let Kernel { sessions, precedence, zones, receivers, scratch, .. } = self;
            let mut others = Others { datapaths: &sessions.datapaths, zones, receivers, scratch, now_ms };
            let table = (datapath, place.0);
            precedence.on_rule_found(table, key, zone, place.1, rule.matching, &mut others);
            precedence.on_wide_found(table, key, zone, (place.1, &rule), &mut others);
        }
        // It is no app's work.
        self.scratch.set_compared(before);
        if !reply.more {
            if self.sessions.expects_owners(datapath) {
                self.begin_withdrawals(datapath);
            }
            if self.sessions.on_last_owners(datapath, now_ms) {
                self.precedence.contests.on_report(datapath);
            }
            self.to_settle.insert(datapath);
        }
    }

    /// The switch's rules, in answer to a question about one. If that rule is missing, it is gone.
    fn on_rules(&mut self, reply: &StatsReply<'_>) {
        let Kernel { sessions, ownership, .. } = self;
        let Some(there) = sessions.datapaths.get_mut(&reply.datapath) else { return };
        let Datapath { record, openflow, .. } = there;
        for rule in reported_rules(reply.body) {
            let keys = &mut ownership.keys;
            let key = keys.of(*openflow, reply.datapath, rule.table_id, rule.priority, rule.matching);
            key.into_iter().for_each(|key| record.sought.on_reported(key));
        }
        if !reply.more
            && let Some((key, owner)) = record.sought.on_end()
        {
            record.forget(key, owner);
            // It may have been an app's own table-miss rule.
            self.to_judge.insert(reply.datapath);
        }
    }

    /// The switch's rules, in answer to the question for all of them. Recorded rules that are missing are gone.
    fn on_record(&mut self, reply: &StatsReply<'_>, now_ms: u64) {
        let Kernel { sessions, ownership, .. } = self;
        let Some(there) = sessions.datapaths.get_mut(&reply.datapath) else { return };
        let Datapath { record, openflow, .. } = there;
        if !record.is_swept() {
            return;
        }
        for rule in reported_rules(reply.body) {
            let Some(owner) = Owner::of_cookie(rule.cookie) else { continue };
            let keys = &mut ownership.keys;
            let key = keys.of(*openflow, reply.datapath, rule.table_id, rule.priority, rule.matching);
            key.into_iter().for_each(|key| record.find(key, owner, rule.stays, now_ms));
        }
        if !reply.more {
            record.end_sweep();
        }
    }

    /// Takes an answer to the node. Returns whether it is about the kernel's meter.
    pub fn on_meter_answer(&mut self, frame: &[u8], effects: &mut Vec<Effect>) -> bool {
        let Ok(frame) = Frame::read(frame) else { return false };
        let Ok(event) = Event::read(&frame) else { return false };
        if !is_about_the_meter(&event) {
            return false;
        }
        let datapath = frame.datapath();
        if let Event::Receipt(_, receipt) = &event
            && let Some(table_id) = later_table_of(receipt.ticket)
        {
            self.on_later_receipt(datapath, table_id, receipt.outcome == Outcome::Programmed, effects);
            return true;
        }
        let known = effects.len();
        if let Some((metering, at)) = self.meter_at(datapath) {
            metering.on_answer(&event, at, effects);
        }
        self.punt_from_later_too(datapath, known, effects);
        true
    }

    /// The switch answered the table-miss rule of a later table with the meter.
    fn on_later_receipt(
        &mut self,
        datapath: DatapathId,
        table_id: u8,
        is_there: bool,
        effects: &mut Vec<Effect>,
    ) {
        let there = self.sessions.datapaths.get_mut(&datapath);
        if !is_there && there.is_some_and(|there| there.later_punts.on_meter_refused(table_id)) {
            effects.push(Effect::PuntFrom { datapath, table_id });
        }
    }

    /// If the table-miss rule gets another meter now, those of the later tables do too.
    fn punt_from_later_too(&self, datapath: DatapathId, known: usize, effects: &mut Vec<Effect>) {
        let is_punted = effects.iter().skip(known).any(|effect| *effect == Effect::Punt(datapath));
        let Some(there) = self.sessions.datapaths.get(&datapath).filter(|_| is_punted) else { return };
        effects.extend(there.later_punts.tables().map(|table_id| Effect::PuntFrom { datapath, table_id }));
    }

    /// The worker could not send a step, or the rule with the meter, to a switch. A check is not a step: it is
    /// repeated.
    pub fn on_meter_not_sent(&mut self, datapath: DatapathId, reason: &str, effects: &mut Vec<Effect>) {
        let known = effects.len();
        if let Some((metering, at)) = self.meter_at(datapath) {
            metering.on_not_sent(reason, at, effects);
        }
        self.punt_from_later_too(datapath, known, effects);
    }

    fn meter_at(&mut self, datapath: DatapathId) -> Option<(&mut Metering, AtSwitch<'_>)> {
        let Kernel { sessions, ownership, budgets, receivers, .. } = self;
        let there = sessions.datapaths.get_mut(&datapath)?;
        let (per_s, wants_packets) = (budgets.meter_per_s, receivers.want_packets());
        Some((&mut there.metering, AtSwitch { datapath, per_s, wants_packets, owned: &mut ownership.owned }))
    }
}
