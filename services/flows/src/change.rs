//! Puts and removes sets: the difference between two versions of a set, in steps.
//!
//! ```text
//!   old body ─┐                        step 0      then            then, stage by stage    last        after them
//!   new body ─┴─> difference ──> plan: groups, ──> new rules ──> entries, replaced rules ──> old rules ──> old groups
//!                                      meters      (in order: but the entries)
//! ```
//!
//! In: sets of their owners. Out: entries of switches that are held for their step, and the plan. Nothing of a refused set is changed.
//! A step begins when the one before is confirmed. So an entry is removed only after all that comes in its place is confirmed.

use crate::engine::Engine;
use crate::key::EntryKey;
use crate::numbers::Provisional;
use crate::outgoing::Sender;
use crate::sets::{Op, Part};
use crate::slot::{IN_STEP, PRESENT, SENT, Slot, State};
use crate::wanted::{Body, Place, each};
use flows_contract::{SetOptions, status};
use std::rc::Rc;

/// The most entries that are kept: beyond it a set is refused with the status `FULL`.
pub const ENTRIES_MAX: usize = 2_000_000;

/// A status and a sentence.
pub type Refused = (u16, String);

/// An entry of the new body.
#[derive(Clone, Copy, Debug)]
struct New {
    switch: u32,
    key: EntryKey,
    content: u64,
    place: Place,
    stage: u8,
}

/// Steps: groups and meters, new rules, then by stage what lets packets in or replaces something, then removals.
const OTHERS_FIRST: u16 = 0;
const RULES: u16 = 1;
const BY_STAGE: u16 = 2;
const OLD_RULES: u16 = 300;
const OLD_OTHERS: u16 = 301;

/// A set that is put.
#[derive(Clone, Copy, Debug)]
pub struct Put<'a> {
    /// The number of its owner.
    pub owner: u32,
    /// Its name.
    pub name: &'a str,
    /// Its version.
    pub version: u64,
    /// How it is kept.
    pub options: SetOptions,
    /// Its items, which `read_batch` has let pass.
    pub items: &'a [u8],
}

impl Engine {
    /// Puts a set, in place of an earlier version.
    ///
    /// # Errors
    /// The status and the sentence for the caller. Then nothing has changed.
    pub fn put(&mut self, put: &Put<'_>, now_ms: u64, send: &mut Sender<'_>) -> Result<(), Refused> {
        let Some((mut news, provisional)) = self.admit(put)? else { return Ok(()) };
        let known = self.sets.number(put.owner, put.name);
        let number = match known {
            Some(number) => number,
            None => self
                .sets
                .create(put.owner, put.name)
                .ok_or_else(|| (status::FULL, "sets: the service holds as many sets as it can".to_owned()))?,
        };
        let numbers = self.accept(&provisional);
        if !numbers.is_empty() {
            for new in &mut news {
                new.switch = numbers.get(&new.switch).copied().unwrap_or(new.switch);
            }
            news.sort_unstable_by_key(|new| (new.switch, new.key));
        }
        let body = Rc::new(Body { set: number, bytes: put.items.into() });
        self.entries += news.len();
        if let Some(set) = self.sets.get_mut(number) {
            (set.version, set.options, set.is_removing) = (put.version, put.options, false);
        }
        self.replace(number, body, &news);
        self.begin_change(number, now_ms, send);
        Ok(())
    }

    /// Whether a set could be put now.
    ///
    /// # Errors
    /// As [`Engine::put`].
    pub fn check_put(&mut self, put: &Put<'_>) -> Result<(), Refused> {
        self.admit(put).map(drop)
    }

    /// The entries of a set that may be put, sorted, with the numbers of its switches. `None`: this version is wanted already.
    fn admit(&mut self, put: &Put<'_>) -> Result<Option<(Vec<New>, Provisional)>, Refused> {
        let known = self.sets.number(put.owner, put.name);
        if let Some(set) = known.and_then(|number| self.sets.get(number)).filter(|set| !set.is_removing) {
            let is_same = set.version == put.version
                && set.options == put.options
                && set.bodies.first().is_some_and(|body| *body.bytes == *put.items);
            if is_same {
                return Ok(None);
            }
            if put.version <= set.version {
                let why = format!("version: set {:?} has the version {} already", put.name, set.version);
                return Err((status::STALE, why));
            }
        }
        let (mut news, provisional) = self.expand(put.items)?;
        news.sort_unstable_by_key(|new| (new.switch, new.key));
        self.check(known, put.name, &news, &provisional)?;
        Ok(Some((news, provisional)))
    }

    /// Removes a set of at most this version, with what its switches have of it.
    ///
    /// # Errors
    /// The status and the sentence for the caller. Then nothing has changed.
    pub fn remove(
        &mut self,
        owner: u32,
        name: &str,
        version: u64,
        now_ms: u64,
        send: &mut Sender<'_>,
    ) -> Result<(), Refused> {
        let number = self.sets.number(owner, name);
        let Some((number, set)) = number.and_then(|number| Some((number, self.sets.get_mut(number)?))) else {
            return Err((status::NOT_FOUND, format!("name: there is no set {name:?} of this app")));
        };
        if version < set.version {
            let why = format!("version: set {name:?} has the version {} already", set.version);
            return Err((status::STALE, why));
        }
        set.is_removing = true;
        self.replace(number, Rc::new(Body { set: number, bytes: Box::default() }), &[]);
        self.begin_change(number, now_ms, send);
        Ok(())
    }

    fn begin_change(&mut self, number: u32, now_ms: u64, send: &mut Sender<'_>) {
        self.sets.touch(number);
        self.sets.finished.push(number);
        self.settle(now_ms, send);
    }

    fn expand(&mut self, items: &[u8]) -> Result<(Vec<New>, Provisional), Refused> {
        let mut provisional = self.provisional();
        let mut scratch = std::mem::take(&mut self.scratch);
        let mut news = Vec::new();
        let mut refused = None;
        each(items, &mut scratch, |place, wanted| match self.number_in(&mut provisional, wanted.switch) {
            Some(switch) => {
                let (key, content, stage) = (wanted.key, wanted.content, wanted.stage);
                news.push(New { switch, key, content, place, stage });
            }
            None => {
                refused =
                    Some((status::FULL, "switches: the service knows as many switches as it can".to_owned()))
            }
        });
        self.scratch = scratch;
        match refused {
            Some(refused) => Err(refused),
            None => Ok((news, provisional)),
        }
    }

    /// Whether the new entries have places of their own.
    fn check(
        &self,
        number: Option<u32>,
        name: &str,
        news: &[New],
        provisional: &Provisional,
    ) -> Result<(), Refused> {
        if let Some(twice) =
            news.windows(2).find(|pair| (pair[0].switch, pair[0].key) == (pair[1].switch, pair[1].key))
        {
            let what = self.words(&twice[0], provisional);
            return Err((status::BAD_QUESTION, format!("set {name:?} has {what} twice")));
        }
        let entries = self.entries;
        if entries + news.len() > ENTRIES_MAX {
            return Err((
                status::FULL,
                format!("rules: {entries} are kept, and at most {ENTRIES_MAX} can be"),
            ));
        }
        for new in news {
            let slot = self.switches.get(new.switch as usize).and_then(|switch| switch.slots.get(&new.key));
            let Some(slot) = slot else { continue };
            let is_leaving = matches!(slot.state, State::Removing | State::RemoveSent | State::Orphan);
            let other = slot.set_number().filter(|other| Some(*other) != number && !is_leaving);
            if let Some(set) = other.and_then(|other| self.sets.get(other)) {
                let (what, owner) = (self.words(new, provisional), self.owner_name(set.owner));
                return Err((
                    status::CONFLICT,
                    format!("set {name:?}: {what} is in set {:?} of {owner} already", set.name),
                ));
            }
        }
        Ok(())
    }

    fn words(&self, new: &New, provisional: &Provisional) -> String {
        use crate::key::EntryKind;
        let known = self.switches.get(new.switch as usize).map(|switch| switch.datapath);
        let switch = known.or(provisional.new_switch(new.switch)).unwrap_or(flow::DatapathId(0));
        match new.key.kind() {
            EntryKind::Rule(number) => format!("rule {switch}/{number:016x}"),
            EntryKind::Group(id) => format!("group {switch}/{id}"),
            EntryKind::Meter(id) => format!("meter {switch}/{id}"),
        }
    }

    /// Makes this the body of a set, and plans what changes.
    fn replace(&mut self, number: u32, body: Rc<Body>, news: &[New]) {
        let Some(set) = self.sets.get_mut(number) else { return };
        let in_order = set.options.in_order;
        let olds = std::mem::take(&mut set.bodies);
        set.plan.clear();
        (set.goes_alone, set.open) = (false, 0);
        set.wanted = u32::try_from(news.len()).unwrap_or(u32::MAX);
        let last_stage = news.iter().map(|new| new.stage).max().unwrap_or_default();
        for old in &olds {
            self.forget_step(old);
        }
        let mut plan = Vec::new();
        for new in news {
            let may_be_there = in_order && self.may_be_there(new);
            let Some(op) = self.place(number, &body, new) else { continue };
            let lets_packets_in = new.stage == last_stage || may_be_there || op != Op::Add;
            let order = match op {
                Op::Add if !new.key.is_rule() => OTHERS_FIRST,
                _ if in_order && lets_packets_in => BY_STAGE + u16::from(new.stage),
                _ => RULES,
            };
            plan.push(Part { order, switch: new.switch, key: new.key, op });
        }
        for old in &olds {
            self.plan_removals(old, news, &mut plan);
        }
        // Steps are taken from the end.
        plan.sort_by_key(|part| std::cmp::Reverse(part.order));
        if let Some(set) = self.sets.get_mut(number) {
            // Entries of earlier bodies stay in switches until their removal is confirmed. The slots keep those bodies.
            set.bodies.push(body);
            set.bodies.extend(olds.into_iter().filter(|old| Rc::strong_count(old) > 1));
            set.plan = plan;
        }
    }

    /// Whether the switch may have an entry with this key, by an earlier run or an earlier version. Of a switch that was not read yet,
    /// nothing is known.
    fn may_be_there(&self, new: &New) -> bool {
        let Some(switch) = self.switches.get(new.switch as usize) else { return true };
        !switch.is_ready() || switch.slots.get(&new.key).is_some_and(|slot| slot.has(PRESENT))
    }

    /// Gives a new entry its slot. Returns what is to be done for it, if anything is.
    fn place(&mut self, number: u32, body: &Rc<Body>, new: &New) -> Option<Op> {
        let New { key, content, place, .. } = *new;
        let Engine { sets, switches, notes, .. } = self;
        let switch = switches.get_mut(new.switch as usize)?;
        let (is_ready, datapath, parity) = (switch.is_ready(), switch.datapath, switch.reading.parity);
        let Some(slot) = switch.slots.get_mut(&key) else {
            let slot = Slot::new(Some(Rc::clone(body)), place, content, State::Held);
            sets.recount(&slot, crate::slot::Class::Other, is_ready);
            switch.slots.insert(key, slot);
            notes.changed(datapath, key);
            return Some(Op::Add);
        };
        let is_same = slot.content() == content;
        let is_own = slot.set_number() == Some(number);
        notes.changed(datapath, key);
        match slot.state {
            State::Orphan => {
                slot.point_to(body, place, content);
                slot.set(crate::slot::MARK, parity);
                let state = if is_same { State::Installed } else { State::Held };
                sets.set_state(slot, state, (is_ready, is_ready));
                (!is_same).then_some(Op::Add)
            }
            State::Held | State::Removing | State::RemoveSent => {
                sets.leave_step(slot);
                if is_own {
                    slot.point_to(body, place, content);
                    sets.set_state(slot, State::Held, (is_ready, is_ready));
                } else {
                    slot.point_to(body, place, content);
                    slot.state = State::Held;
                    sets.recount(slot, crate::slot::Class::Other, is_ready);
                }
                Some(Op::Add)
            }
            _ if is_same => {
                slot.point_to(body, place, content);
                if slot.state == State::Failed {
                    slot.attempts = 0;
                    sets.set_state(slot, State::Held, (is_ready, is_ready));
                }
                (slot.state != State::Installed).then_some(Op::Add)
            }
            _ => Some(Op::Replace { place, content }),
        }
    }

    /// The step of the earlier version is waited for no more: the new version has its own steps.
    fn forget_step(&mut self, old: &Rc<Body>) {
        let mut scratch = std::mem::take(&mut self.scratch);
        old.each(&mut scratch, |_, wanted| {
            let Some(switch) = self.by_datapath.get(&wanted.switch) else { return };
            let slot = self.switches.get_mut(*switch as usize).and_then(|it| it.slots.get_mut(&wanted.key));
            if let Some(slot) = slot.filter(|slot| slot.set_number() == Some(old.set)) {
                slot.set(IN_STEP, false);
            }
        });
        self.scratch = scratch;
    }

    /// Plans to remove what an earlier body has and the new one does not.
    fn plan_removals(&mut self, old: &Rc<Body>, news: &[New], plan: &mut Vec<Part>) {
        let mut scratch = std::mem::take(&mut self.scratch);
        let mut unsent = Vec::new();
        old.each(&mut scratch, |_, wanted| {
            let key = wanted.key;
            let Some(switch) = self.by_datapath.get(&wanted.switch).copied() else { return };
            if news.binary_search_by_key(&(switch, key), |new| (new.switch, new.key)).is_ok() {
                return;
            }
            let slot = self.switches.get(switch as usize).and_then(|it| it.slots.get(&key));
            let Some(slot) = slot.filter(|slot| slot.body.as_ref().is_some_and(|body| Rc::ptr_eq(body, old)))
            else {
                return;
            };
            // An entry that was about to be removed, and was wanted again, is still in the switch.
            if slot.state == State::Held && !slot.has(PRESENT | SENT) {
                unsent.push((switch, key));
            } else {
                let order = if key.is_rule() { OLD_RULES } else { OLD_OTHERS };
                plan.push(Part { order, switch, key, op: Op::Remove });
            }
        });
        self.scratch = scratch;
        for (switch, key) in unsent {
            let Some(switch) = self.switches.get_mut(switch as usize) else { continue };
            if let Some(slot) = switch.slots.remove(&key) {
                self.sets.drop_slot(slot, switch.is_ready());
                self.notes.changed(switch.datapath, key);
            }
        }
    }
}
