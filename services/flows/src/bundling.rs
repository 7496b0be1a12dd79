//! Sends the rules of one switch that change together, and decides what follows from the receipt of their bundle.
//!
//! ```text
//!   all parts of a set's change at one switch ─┐                      ┌──programmed──> as single commands that were confirmed
//!   what is due when its tables are known ─────┴─gather──> one bundle ┤
//!                                                                     └──refused──> the steps of the change, rule by rule
//! ```
//!
//! A bundle waits until all that was queued before it is sent, and nothing follows it before its receipt: a command for the same rule
//! could be carried out before it. A switch that does not support bundles is not asked again, and the log says so once.
//!
//! In: entries that are due, and the receipts of bundles. Out: bundles. It decides nothing about what is wanted.

use crate::key::EntryKey;
use crate::outgoing::{BundledRule, Context, Send};
use crate::sets::Part;
use crate::slot::{ENDS, PRESENT, QUEUED, SENT, State};
use crate::switch::{Flight, Switch, command};
use crate::together::{Group, Support, Together};
use crate::wanted::{Body, What};
use burnet_sdk::{NO_BUNDLES, Outcome};
use flow::ErrorCode;
use std::rc::Rc;

/// A larger bundle would not fit a command: 128 KiB with the headers of its flow mods.
const BYTES_MAX: usize = 64 << 10;

impl Switch {
    /// Whether entries can change together now.
    pub fn can_gather(&self) -> bool {
        let Together { support, waiting, under_way, .. } = &self.together;
        self.is_ready()
            && !self.is_v10
            && *support != Support::Lacks
            && waiting.is_none()
            && under_way.is_none()
    }

    /// Whether no command for these entries waits or is under way. Only then does one bundle hold the whole change.
    pub fn is_at_rest(&self, parts: &[Part]) -> bool {
        let mut slots = parts.iter().filter_map(|part| self.slots.get(&part.key));
        slots.all(|slot| !slot.has(QUEUED) && !matches!(slot.state, State::Sent | State::RemoveSent))
    }

    /// What is enqueued from now on changes together.
    pub fn gather(&mut self) {
        self.together.gathering = Some(Vec::new());
    }

    /// What was enqueued since [`Switch::gather`] goes as one bundle. `change`: it is the change of a set.
    pub fn gathered(&mut self, change: Option<(u32, Rc<Body>, Vec<Part>)>) {
        let Some(keys) = self.together.gathering.take() else { return };
        match keys.len() {
            0 | 1 => self.queue.extend(keys),
            _ => self.together.waiting = Some(Group { keys, change }),
        }
    }

    /// Sends the bundle that waits.
    pub(crate) fn send_together(&mut self, at: &mut Context<'_, '_>) {
        let Some(group) = self.together.waiting.take() else { return };
        let Some((keys, rules)) = self.bundled(&group, at) else {
            // Alone, they keep the order of the steps.
            return self.go_alone(group, None, at);
        };
        let ticket = (at.send)(self.datapath, &Send::Bundle(&rules));
        for key in &group.keys {
            self.slots.entry(*key).and_modify(|slot| slot.set(QUEUED, false));
        }
        for (key, BundledRule { head, .. }) in keys.iter().zip(&rules) {
            let Some(slot) = self.slots.get_mut(key) else { continue };
            slot.set_ticket(ticket);
            slot.set(SENT, true);
            slot.set(ENDS, (head.idle_timeout_s, head.hard_timeout_s) != (0, 0));
            let state = if head.is_removed { State::RemoveSent } else { State::Sent };
            at.sets.set_state(slot, state, (true, true));
        }
        at.window.on_sent();
        self.together.under_way = Some((ticket, Group { keys, ..group }));
    }

    /// The entries of a group that are due, with their flow mods. `None`: they cannot be one bundle.
    fn bundled(&self, group: &Group, at: &mut Context<'_, '_>) -> Option<(Vec<EntryKey>, Vec<BundledRule>)> {
        let (mut keys, mut rules, mut bytes) = (Vec::new(), Vec::new(), 0);
        for key in &group.keys {
            let Some(slot) = self.slots.get(key) else { continue };
            let is_removal = match slot.state {
                State::Due => false,
                State::Removing => true,
                _ => continue,
            };
            let what = slot.body.as_ref()?.what(slot.place(), at.scratch)?;
            // The kernel keeps rules of priority 0 out of bundles.
            if matches!(what, What::Rule { priority: 0, .. }) {
                return None;
            }
            let send = command(&what, (*key, slot.content()), is_removal, slot.has(PRESENT));
            let rule = BundledRule::of(&send)?;
            bytes += rule.matching.len() + rule.instructions.len();
            keys.push(*key);
            rules.push(rule);
        }
        (rules.len() > 1 && bytes <= BYTES_MAX).then_some((keys, rules))
    }

    /// The outcome of a bundle. Returns whether the ticket is its.
    pub(crate) fn on_together(
        &mut self,
        ticket: u64,
        outcome: Outcome,
        error: ErrorCode,
        reason: &str,
        at: &mut Context<'_, '_>,
    ) -> bool {
        let is_its = |(under_way, _): &mut (u64, Group)| *under_way == ticket;
        let Some((_, group)) = self.together.under_way.take_if(is_its) else { return false };
        at.window.on_over(1);
        match outcome {
            Outcome::Programmed => {
                self.together.support = Support::Has;
                let no_error = ErrorCode { kind: 0, code: 0 };
                for key in group.keys {
                    let flight = Flight { ticket, key, is_removal: self.is_removal(key) };
                    self.on_outcome(flight, outcome, no_error, "", at);
                }
            }
            Outcome::Refused | Outcome::Failed => {
                if error == NO_BUNDLES {
                    self.together.support = Support::Lacks;
                    self.tell_alone(reason, at);
                }
                self.go_alone(group, Some(ticket), at);
            }
            Outcome::Unknown => {
                if self.together.support == Support::Unknown {
                    self.together.support = Support::Lacks;
                    self.tell_alone(reason, at);
                }
                for key in group.keys {
                    let flight = Flight { ticket, key, is_removal: self.is_removal(key) };
                    self.on_outcome(flight, outcome, error, reason, at);
                }
            }
        }
        true
    }

    fn is_removal(&self, key: EntryKey) -> bool {
        self.slots.get(&key).is_some_and(|slot| slot.state == State::RemoveSent)
    }

    /// Tells once for each switch why its rules go alone.
    fn tell_alone(&mut self, reason: &str, at: &mut Context<'_, '_>) {
        if !std::mem::replace(&mut self.together.is_told, true) {
            at.notes.line(|| {
                format!("{}: changes are sent rule by rule and not as a bundle: {reason}", self.datapath)
            });
        }
    }

    /// Nothing of a group was carried out: its rules go alone. If it is still the present change of its set, it goes in steps.
    /// `ticket`: it was sent.
    fn go_alone(&mut self, group: Group, ticket: Option<u64>, at: &mut Context<'_, '_>) {
        let Group { keys, change } = group;
        let present = change.filter(|(set, body, _)| {
            let set = at.sets.get(*set);
            set.is_some_and(|set| {
                set.plan.is_empty() && set.bodies.first().is_some_and(|it| Rc::ptr_eq(it, body))
            })
        });
        for key in keys {
            let Some(slot) = self.slots.get_mut(&key) else { continue };
            if ticket.is_some_and(|ticket| !slot.is_last(ticket)) {
                continue;
            }
            // Another set may have taken the entry over meanwhile: its own step goes on.
            let in_steps = present.as_ref().is_some_and(|(set, ..)| slot.set_number() == Some(*set));
            slot.set(QUEUED, false);
            let state = match (slot.state, in_steps) {
                (State::Sent | State::Due, true) => State::Held,
                (State::Sent | State::Due, false) => State::Due,
                (State::RemoveSent | State::Removing, _) => State::Removing,
                _ => continue,
            };
            slot.set(SENT, slot.has(PRESENT));
            at.sets.set_state(slot, state, (true, true));
            match in_steps {
                true => at.sets.leave_step(slot),
                false => self.enqueue(key),
            }
            at.notes.changed(self.datapath, key);
        }
        if let Some((number, _, parts)) = present
            && let Some(set) = at.sets.get_mut(number)
        {
            (set.plan, set.goes_alone) = (parts, true);
            at.sets.finished.push(number);
        }
    }

    /// The session has ended, with whatever was under way. A switch whose session ended during its first bundle may not support bundles.
    pub(crate) fn end_together(&mut self, at: &mut Context<'_, '_>) {
        self.together.waiting = None;
        if self.together.under_way.take().is_some() {
            at.window.on_over(1);
            if self.together.support == Support::Unknown {
                self.together.support = Support::Lacks;
                self.tell_alone("its session ended during its first bundle", at);
            }
        }
    }
}
