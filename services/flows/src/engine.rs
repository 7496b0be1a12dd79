//! The engine: all sets and all switches, and what happens to them at each event. It is pure: time comes in, commands go out.
//!
//! ```text
//!   put, remove ──> sets ──steps──> entries of switches ──windows──> commands
//!   switch up, reports, receipts, the time ──────┘          changed states of sets and entries ──> notes
//! ```
//!
//! In: events and the time. Out: commands by a [`Sender`], and notes. It never waits, reads no clock, and knows no SDK handler.

use crate::outgoing::{Context, Notes, Sender};
use crate::policy::{Policy, Settings};
use crate::reading_line::ReadingLine;
use crate::sets::{Op, Part, Sets};
use crate::slot::{Class, PRESENT, SENT, Slot, State};
use crate::switch::Switch;
use crate::together::belong_together;
use crate::wanted::Scratch;
use crate::window::Window;
use burnet_sdk::Outcome;
use flow::{DatapathId, ErrorCode};
use flows_contract::{SetState, Tables};
use foldhash::{HashMap, HashMapExt};
use std::collections::BTreeMap;

/// All sets and switches.
#[derive(Debug)]
pub struct Engine {
    pub(crate) sets: Sets,
    pub(crate) switches: Vec<Switch>,
    pub(crate) by_datapath: HashMap<DatapathId, u32>,
    /// Places in `switches` that are free.
    pub(crate) free: Vec<u32>,
    owners: Vec<String>,
    owner_numbers: BTreeMap<String, u32>,
    pub(crate) scratch: Scratch,
    /// About how many entries there are: counted each second, and with each set.
    pub(crate) entries: usize,
    /// What the shell tells others.
    pub notes: Notes,
    /// Whose rules are whose.
    pub policy: Policy,
    /// Whether commands wait for [`Engine::resume`].
    pub(crate) gathers: bool,
    audit_interval_ms: u64,
    orphans_go_at_ms: u64,
    /// The commands under way to all switches.
    window: Window,
    /// The switches that are being read, and those that wait for it.
    line: ReadingLine,
    /// The switch that is audited next, and when the last audits began.
    next_audit: usize,
    last_audit_ms: u64,
}

impl Engine {
    /// An engine without sets and switches.
    ///
    /// # Errors
    /// A sentence that names the wrong setting.
    pub fn new(settings: &Settings, now_ms: u64) -> Result<Engine, String> {
        Ok(Engine {
            sets: Sets::default(),
            switches: Vec::new(),
            by_datapath: HashMap::new(),
            free: Vec::new(),
            owners: Vec::new(),
            owner_numbers: BTreeMap::new(),
            scratch: Scratch::default(),
            entries: 0,
            notes: Notes::default(),
            policy: Policy::new(settings)?,
            gathers: false,
            audit_interval_ms: settings.audit_interval_s.saturating_mul(1_000),
            orphans_go_at_ms: now_ms.saturating_add(settings.grace_s.saturating_mul(1_000)),
            window: Window::default(),
            line: ReadingLine::default(),
            next_audit: 0,
            last_audit_ms: now_ms,
        })
    }

    /// The same, but what is to be sent waits for [`Engine::resume`]. So the commands that many events cause for a switch go out together.
    #[must_use]
    pub fn gathering(self) -> Engine {
        Engine { gathers: true, ..self }
    }

    /// The number of an app that owns sets. An app keeps it until the service ends.
    pub fn owner(&mut self, name: &str) -> u32 {
        if let Some(number) = self.owner_numbers.get(name) {
            return *number;
        }
        // A node has 1,023 zones.
        let number = self.owners.len() as u32;
        self.owners.push(name.to_owned());
        self.owner_numbers.insert(name.to_owned(), number);
        number
    }

    /// The name of an owner.
    pub fn owner_name(&self, number: u32) -> &str {
        self.owners.get(number as usize).map_or("", String::as_str)
    }

    /// All owners, in the order of their names.
    pub fn owners(&self) -> impl Iterator<Item = (&str, u32)> {
        self.owner_numbers.iter().map(|(name, number)| (name.as_str(), *number))
    }

    /// All sets.
    pub fn sets(&self) -> &Sets {
        &self.sets
    }

    /// All switches that are connected or wanted.
    pub fn switches(&self) -> impl Iterator<Item = &Switch> {
        let numbered = (0..).zip(&self.switches);
        let known =
            numbered.filter(|(number, switch)| self.by_datapath.get(&switch.datapath) == Some(number));
        known.map(|(_, switch)| switch)
    }

    /// How many commands are under way to all switches.
    pub fn open(&self) -> usize {
        self.window.open()
    }

    /// A switch.
    pub fn switch(&self, datapath: DatapathId) -> Option<&Switch> {
        self.switches.get(*self.by_datapath.get(&datapath)? as usize)
    }

    /// Does something with one switch, and then what follows from it for sets.
    fn at<R>(
        &mut self,
        datapath: DatapathId,
        now_ms: u64,
        send: &mut Sender<'_>,
        act: impl FnOnce(&mut Switch, &mut Policy, &mut Context<'_, '_>) -> R,
    ) -> Option<R> {
        let number = self.switch_number(datapath)?;
        let Engine { sets, switches, scratch, notes, window, policy, line, .. } = self;
        let switch = switches.get_mut(number as usize)?;
        line.uncount(switch);
        let result = act(switch, policy, &mut Context { now_ms, sets, scratch, notes, window, send });
        line.count(switch);
        self.settle(now_ms, send);
        self.begin_readings(now_ms, send);
        self.give_turns(now_ms, send);
        Some(result)
    }

    /// Does something with a switch that is known, and nothing that follows.
    fn with(
        &mut self,
        datapath: DatapathId,
        now_ms: u64,
        send: &mut Sender<'_>,
        act: impl FnOnce(&mut Switch, &mut Context<'_, '_>),
    ) {
        let Some(number) = self.by_datapath.get(&datapath) else { return };
        let Engine { sets, switches, scratch, notes, window, .. } = self;
        if let Some(switch) = switches.get_mut(*number as usize) {
            act(switch, &mut Context { now_ms, sets, scratch, notes, window, send });
        }
    }

    /// Switches that wait for others' receipts send, as far as there is room.
    fn give_turns(&mut self, now_ms: u64, send: &mut Sender<'_>) {
        while let Some(datapath) = self.window.next_turn() {
            self.with(datapath, now_ms, send, Switch::take_turn);
        }
    }

    /// So many switches are being read for callers.
    pub fn on_callers_readings(&mut self, count: usize) {
        self.line.on_callers(count);
    }

    /// How many switches may be read for callers now, more than are.
    pub fn room_for_callers(&self) -> usize {
        self.line.room_for_callers()
    }

    /// Reads the tables of switches that wait for it, in their order, as far as there is room.
    pub fn begin_readings(&mut self, now_ms: u64, send: &mut Sender<'_>) {
        while let Some(datapath) = self.line.next() {
            let Some(number) = self.by_datapath.get(&datapath) else { continue };
            let Engine { sets, switches, scratch, notes, window, line, .. } = self;
            let Some(switch) = switches.get_mut(*number as usize) else { continue };
            switch.reading.is_queued = false;
            if switch.reading.is_wanted && !switch.reading.is_under_way() {
                switch.start_reading(&mut Context { now_ms, sets, scratch, notes, window, send });
                line.count(switch);
            }
        }
    }

    /// A session with a switch has begun.
    pub fn on_up(&mut self, datapath: DatapathId, is_v10: bool, now_ms: u64, send: &mut Sender<'_>) {
        self.at(datapath, now_ms, send, |switch, _, at| switch.on_up(is_v10, at));
        if let Some(number) = self.by_datapath.get(&datapath) {
            self.line.wait(&mut self.switches[*number as usize]);
        }
        self.begin_readings(now_ms, send);
    }

    /// The session with a switch has ended.
    pub fn on_down(&mut self, datapath: DatapathId, now_ms: u64, send: &mut Sender<'_>) {
        self.at(datapath, now_ms, send, |switch, _, at| switch.on_down(at));
    }

    /// A part of a statistics reply. Returns whether the engine asked for it.
    pub fn on_report(
        &mut self,
        datapath: DatapathId,
        (ticket, more): (u64, bool),
        body: &[u8],
        now_ms: u64,
        send: &mut Sender<'_>,
    ) -> bool {
        let act = |switch: &mut Switch, policy: &mut Policy, at: &mut Context<'_, '_>| {
            switch.on_report(ticket, more, body, policy, at)
        };
        self.at(datapath, now_ms, send, act).unwrap_or_default()
    }

    /// The outcome of a command.
    pub fn on_receipt(
        &mut self,
        datapath: DatapathId,
        (ticket, outcome, error): (u64, Outcome, ErrorCode),
        reason: &str,
        now_ms: u64,
        send: &mut Sender<'_>,
    ) {
        self.at(datapath, now_ms, send, |switch, _, at| {
            if outcome == Outcome::Programmed || !switch.on_unread(ticket, reason, at) {
                switch.on_receipt(ticket, outcome, error, reason, at);
            }
        });
    }

    /// Reads the tables of a switch as soon as there is room for a reading. Returns whether it is connected.
    pub fn audit(&mut self, datapath: DatapathId) -> bool {
        let number = self.by_datapath.get(&datapath).copied();
        let switch = number.and_then(|number| self.switches.get_mut(number as usize));
        let Some(switch) = switch.filter(|switch| switch.tables != Tables::Away) else { return false };
        switch.reading.is_wanted = true;
        true
    }

    /// About once a second: audits, and the end of pauses and of the grace time.
    pub fn on_tick(&mut self, now_ms: u64, send: &mut Sender<'_>) {
        if !self.policy.orphans_go && now_ms >= self.orphans_go_at_ms {
            self.policy.orphans_go = true;
            let with_orphans =
                |switch: &&mut Switch| switch.slots.values().any(|slot| slot.state == State::Orphan);
            self.switches.iter_mut().filter(with_orphans).for_each(|switch| switch.reading.is_wanted = true);
        }
        self.entries = self.switches.iter().map(|switch| switch.slots.len()).sum();
        self.forget_switches();
        self.choose_audits(now_ms);
        let Engine { sets, switches, scratch, notes, window, line, .. } = self;
        let mut late = Vec::new();
        for switch in
            switches.iter_mut().filter(|switch| switch.reading.is_wanted || switch.reading.is_under_way())
        {
            if !switch.reading.is_under_way() {
                line.wait(switch);
            } else if switch.reading.is_over(now_ms) {
                late.push(switch);
            }
        }
        for switch in late {
            if line.is_wanted_by_others(switch) {
                line.uncount(switch);
                switch.interrupt_reading(&mut Context { now_ms, sets, scratch, notes, window, send });
                line.wait(switch);
            }
        }
        self.begin_readings(now_ms, send);
        let Engine { sets, switches, scratch, notes, window, .. } = self;
        for switch in switches {
            switch.pump(&mut Context { now_ms, sets, scratch, notes, window, send });
        }
        self.settle(now_ms, send);
        self.give_turns(now_ms, send);
    }

    /// So many switches that each has its turn once in the interval.
    fn choose_audits(&mut self, now_ms: u64) {
        let total = self.switches.len();
        if total == 0 {
            self.last_audit_ms = now_ms;
            return;
        }
        let passed_ms = now_ms.saturating_sub(self.last_audit_ms);
        // Both are small: thousands of switches, seconds.
        let due = (passed_ms.saturating_mul(total as u64) / self.audit_interval_ms).min(total as u64);
        if due == 0 {
            return;
        }
        self.last_audit_ms = now_ms;
        for _ in 0..due {
            self.next_audit = (self.next_audit + 1) % total;
            let switch = &mut self.switches[self.next_audit];
            switch.reading.is_wanted |= switch.tables != Tables::Away;
        }
    }

    /// Sends what was gathered, and what waits for the end of a pause. Returns when the next pause ends.
    pub fn resume(&mut self, now_ms: u64, send: &mut Sender<'_>) -> Option<u64> {
        let Engine { sets, switches, scratch, notes, window, .. } = self;
        for switch in switches.iter_mut().filter(|switch| switch.resumes_at_ms().is_some()) {
            switch.flush(&mut Context { now_ms, sets, scratch, notes, window, send });
        }
        self.settle(now_ms, send);
        self.switches.iter().filter_map(Switch::resumes_at_ms).min()
    }

    /// Begins the next steps of sets whose step has finished.
    pub(crate) fn settle(&mut self, now_ms: u64, send: &mut Sender<'_>) {
        while let Some(number) = self.sets.finished.pop() {
            while self.sets.get(number).is_some_and(|set| set.open == 0)
                && self.next_step(number, now_ms, send)
            {}
        }
    }

    /// Begins the next step of a set. Returns whether there was one.
    fn next_step(&mut self, number: u32, now_ms: u64, send: &mut Sender<'_>) -> bool {
        let Some(set) = self.sets.get_mut(number) else { return false };
        let Some(order) = set.plan.last().map(|part| part.order) else {
            self.end_change(number);
            return false;
        };
        let Some(body) = set.bodies.first().cloned() else { return false };
        let at_one = || set.plan.first().and_then(|part| self.switches.get(part.switch as usize));
        let is_together = !set.goes_alone
            && belong_together(&set.plan)
            && at_one().is_some_and(|switch| switch.can_gather() && switch.is_at_rest(&set.plan));
        let first = if is_together { 0 } else { set.plan.partition_point(|part| part.order > order) };
        let parts = set.plan.split_off(first);
        let together = is_together.then(|| parts[0].switch as usize);
        let Engine { sets, switches, scratch, notes, window, .. } = self;
        let at = &mut Context { now_ms, sets, scratch, notes, window, send };
        if let Some(switch) = together.and_then(|it| switches.get_mut(it)) {
            switch.gather();
        }
        for part in parts.iter().rev() {
            let Some(switch) = switches.get_mut(part.switch as usize) else { continue };
            if let Op::Replace { place, content } = part.op
                && let Some(slot) =
                    switch.slots.get_mut(&part.key).filter(|slot| slot.set_number() == Some(number))
            {
                slot.point_to(&body, place, content);
            }
            begin(switch, number, part, at);
        }
        if let Some(switch) = together.and_then(|it| switches.get_mut(it)) {
            switch.gathered(Some((number, body, parts.clone())));
        }
        for part in &parts {
            if let Some(switch) = switches.get_mut(part.switch as usize) {
                switch.pump(at);
            }
        }
        true
    }

    /// Everything of a set's change is confirmed.
    fn end_change(&mut self, number: u32) {
        let Some(set) = self.sets.get_mut(number) else { return };
        set.bodies.truncate(1);
        set.plan = Vec::new();
        let is_removed = set.is_removing;
        self.sets.touch(number);
        if is_removed {
            self.sets.delete(number);
        }
    }

    /// The state of a set. If it waits, it names switches.
    pub fn state(&self, number: u32) -> Option<SetState> {
        let set = self.sets.get(number)?;
        Some(set.state(|| self.away(number)))
    }

    /// Some switches of a set that are not ready.
    fn away(&self, number: u32) -> Vec<DatapathId> {
        let mut away = Vec::new();
        let Some(set) = self.sets.get(number).filter(|set| set.count(Class::Waiting) > 0) else {
            return away;
        };
        for body in set.bodies.iter().take(1) {
            body.each(&mut Scratch::default(), |_, wanted| {
                let is_away = self.switch(wanted.switch).is_none_or(|switch| !switch.is_ready());
                if is_away && away.len() < NAMED_MAX && !away.contains(&wanted.switch) {
                    away.push(wanted.switch);
                }
            });
        }
        away
    }
}

/// The most switches that a state names.
const NAMED_MAX: usize = 16;

/// Begins one part of a step.
fn begin(switch: &mut Switch, set: u32, part: &Part, at: &mut Context<'_, '_>) {
    let key = part.key;
    let is_ready = switch.is_ready();
    // Another set may have taken an entry over that was being removed.
    let slot = switch.slots.get_mut(&key).filter(|slot| slot.set_number() == Some(set));
    let Some(slot) = slot else { return };
    match part.op {
        // It is there already.
        Op::Add if slot.state == State::Installed => return,
        // It was never sent, or a removal reaches a switch whose tables are not known: the next reading finds what is left.
        Op::Remove if is_unsent(slot) || !is_ready => return switch.drop_slot(key, at),
        _ => at.sets.enter_step(slot),
    }
    match (part.op, slot.state) {
        (Op::Remove, _) => switch.set_state(key, State::Removing, at),
        (Op::Add, State::Due | State::Sent) => return,
        _ => switch.set_state(key, State::Due, at),
    }
    if is_ready {
        switch.enqueue(key);
    }
}

/// Whether the switch cannot have an entry by this service with this key.
fn is_unsent(slot: &Slot) -> bool {
    !slot.has(PRESENT | SENT) && matches!(slot.state, State::Held | State::Due | State::Failed)
}
