//! Compares what a switch reports with what is wanted there.
//!
//! ```text
//!   session begins, audit ──> requests ──> reports, entry by entry ──> as wanted | missing | changed | in no set | of another owner
//! ```
//!
//! In: parts of statistics replies. Out: entries that are installed, due again, or left over. Nothing is removed before the first reading of a
//! session is complete. What was sent or confirmed while a reading goes on is not judged by it.

use crate::key::EntryKey;
use crate::outgoing::{Context, Send};
use crate::policy::{Policy, own_part, owner};
use crate::report::{self, RuleEntry};
use crate::slot::{ENDS, MARK, PRESENT, REPAIRED, Slot, State};
use crate::switch::{Leftover, Switch};
use crate::wanted::Place;
use flows_contract::Tables;

/// A reading that failed is tried again after this time.
const AGAIN_MS: u64 = 1_000;

/// The kinds of statistics, in the order of [`crate::progress::Progress::tickets`].
const KINDS: [u16; 3] = [report::FLOWS, report::GROUPS, report::METERS];

impl Switch {
    /// Asks the switch for its rules, groups and meters.
    pub fn start_reading(&mut self, at: &mut Context<'_, '_>) {
        if self.tables == Tables::Away
            || self.reading.is_under_way()
            || at.now_ms < self.reading.not_before_ms
        {
            return;
        }
        self.reading.is_wanted = false;
        (self.reading.began_ms, self.reading.heard_ms) = (at.now_ms, at.now_ms);
        self.reading.parity = !self.reading.parity;
        self.reading.foreign[1] = 0;
        let count = if self.is_v10 { 1 } else { KINDS.len() };
        for (ticket, kind) in self.reading.tickets.iter_mut().zip(KINDS).take(count) {
            *ticket = Some((at.send)(self.datapath, &Send::Read(kind)));
        }
    }

    /// A session has begun. Its tables are to be read.
    pub fn on_up(&mut self, is_v10: bool, at: &mut Context<'_, '_>) {
        if self.tables != Tables::Away {
            self.on_down(at);
        }
        (self.is_v10, self.tables) = (is_v10, Tables::Reading);
        self.reading.is_wanted = true;
    }

    /// A part of an answer. Returns whether it belonged to the reading.
    pub fn on_report(
        &mut self,
        ticket: u64,
        more: bool,
        body: &[u8],
        policy: &mut Policy,
        at: &mut Context<'_, '_>,
    ) -> bool {
        let Some(number) = self.reading.tickets.iter().position(|it| *it == Some(ticket)) else {
            return false;
        };
        self.reading.heard_ms = at.now_ms;
        match KINDS[number] {
            report::FLOWS => report::rules(body).for_each(|entry| self.see_rule(&entry, policy, at)),
            report::GROUPS => {
                report::groups(body).for_each(|(key, content)| self.see_other(key, content, at))
            }
            _ => report::meters(body).for_each(|(key, content)| self.see_other(key, content, at)),
        }
        if !more {
            self.end_part(number, at);
        }
        true
    }

    /// A request of the reading failed. Returns whether it belonged to the reading. A switch without groups or meters has none.
    pub fn on_unread(&mut self, ticket: u64, reason: &str, at: &mut Context<'_, '_>) -> bool {
        let Some(number) = self.reading.tickets.iter().position(|it| *it == Some(ticket)) else {
            return false;
        };
        if KINDS[number] != report::FLOWS {
            self.end_part(number, at);
            return true;
        }
        at.notes.line(|| {
            format!("{}: its rules could not be read, and are asked for again: {reason}", self.datapath)
        });
        self.give_up_reading();
        self.reading.not_before_ms = at.now_ms + AGAIN_MS;
        true
    }

    /// The reading has taken too long, and others wait.
    pub fn interrupt_reading(&mut self, at: &mut Context<'_, '_>) {
        at.notes.line(|| {
            format!(
                "{}: its rules are read again later, because others wait and it answers slowly",
                self.datapath
            )
        });
        self.give_up_reading();
        self.reading.lengthen();
    }

    /// What the reading has seen so far counts as not seen: the next one starts again.
    fn give_up_reading(&mut self) {
        let parity = self.reading.parity;
        self.slots
            .values_mut()
            .filter(|slot| slot.has(MARK) == parity)
            .for_each(|slot| slot.set(MARK, !parity));
        self.reading.parity = !parity;
        self.reading.stop();
        self.reading.is_wanted = true;
    }

    fn end_part(&mut self, number: usize, at: &mut Context<'_, '_>) {
        self.reading.tickets[number] = None;
        if !self.reading.is_under_way() {
            self.end_reading(at);
        }
    }

    fn see_rule(&mut self, entry: &RuleEntry<'_>, policy: &mut Policy, at: &mut Context<'_, '_>) {
        let key = entry.key();
        let computed = entry.content(key);
        let slot = self.slots.get(&key);
        if !policy.is_own(entry.cookie, [Some(computed), slot.map(Slot::content)]) {
            self.reading.foreign[1] += 1;
            if policy.removes(entry) {
                self.leave_over(Leftover { foreign: Some(entry.cookie), ..leftover(key, entry) });
            }
            return;
        }
        policy.own_zone.get_or_insert(owner(entry.cookie));
        let content = own_part(entry.cookie);
        match slot.map(|slot| slot.state) {
            None | Some(State::Orphan) if policy.orphans_go => {
                self.slots.remove(&key);
                self.leave_over(leftover(key, entry));
            }
            None => {
                let mut slot = Slot::new(None, Place::default(), content, State::Orphan);
                slot.set(MARK, self.reading.parity);
                slot.set(PRESENT, true);
                self.slots.insert(key, slot);
            }
            Some(_) => self.see(key, content, computed, at),
        }
    }

    fn see_other(&mut self, key: EntryKey, content: u64, at: &mut Context<'_, '_>) {
        if self.slots.contains_key(&key) {
            self.see(key, content, content, at);
        }
    }

    /// The switch has an entry with a known key: its content by its cookie, and by what it does.
    fn see(&mut self, key: EntryKey, content: u64, computed: u64, at: &mut Context<'_, '_>) {
        let is_first = !self.is_ready();
        let is_exact = if key.is_rule() { self.reading.rules_exact } else { self.reading.others_exact };
        let parity = self.reading.parity;
        let Some(slot) = self.slots.get_mut(&key) else { return };
        let is_same = slot.content() == content && (computed == content || !is_exact);
        let is_same = is_same || !key.is_rule() && !is_exact;
        match slot.state {
            State::Orphan => {
                let place = Place::default();
                *slot = Slot::new(None, place, content, State::Orphan);
                slot.set(MARK, parity);
                slot.set(PRESENT, true);
            }
            State::Installed if is_same => slot.set(MARK, parity),
            State::Installed if slot.has(REPAIRED) && (slot.content() == content || !key.is_rule()) => {
                // It was sent again, and comes back in the same other form.
                slot.set(MARK, parity);
                match key.is_rule() {
                    true => self.reading.rules_exact = false,
                    false => self.reading.others_exact = false,
                }
            }
            State::Installed => self.repair(key, true, at),
            State::Held | State::Due | State::Failed if is_first => {
                slot.set(PRESENT, true);
                slot.set(MARK, parity);
                if is_same {
                    self.set_state(key, State::Installed, at);
                }
            }
            _ => {}
        }
    }

    fn repair(&mut self, key: EntryKey, is_present: bool, at: &mut Context<'_, '_>) {
        if let Some(slot) = self.slots.get_mut(&key) {
            slot.set(REPAIRED, true);
            slot.set(PRESENT, is_present);
        }
        self.reading.repaired += 1;
        self.set_state(key, State::Due, at);
        self.enqueue(key);
    }

    fn end_reading(&mut self, at: &mut Context<'_, '_>) {
        let parity = self.reading.parity;
        let unseen = |slot: &Slot| slot.has(MARK) != parity;
        let (mut missing, mut gone) = (Vec::new(), Vec::new());
        for (key, slot) in self.slots.iter().filter(|(_, slot)| unseen(slot)) {
            match slot.state {
                State::Installed if !slot.has(ENDS) => missing.push(*key),
                State::Orphan => gone.push(*key),
                _ => {}
            }
        }
        missing.into_iter().for_each(|key| self.repair(key, false, at));
        gone.into_iter().for_each(|key| drop(self.slots.remove(&key)));
        self.reading.end();
        if self.is_ready() {
            self.retry(at);
        }
        self.on_known(at);
    }
}

fn leftover(key: EntryKey, entry: &RuleEntry<'_>) -> Leftover {
    let (table_id, priority, matching) = (entry.table_id, entry.priority, entry.matching.into());
    Leftover { key, table_id, priority, matching, foreign: None }
}
