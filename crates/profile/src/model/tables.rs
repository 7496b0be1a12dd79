//! The flow tables: where a rule lands, which rule makes place, and which one moves.
//!
//! ```text
//!   add ──> class, rate, room? ──┬──> install buffer ──> writes ──> data plane: hardware
//!                                ├──> software table ────────────> data plane: software ──┐
//!                                └──> refused, ignored                                    │
//!            promotion: a batch each period <─────────────────────────────────────────────┘
//! ```
//!
//! In: rules that are added, modified and deleted, and the time. Out: refusals, evictions, and changes of the data plane. It never looks
//! at matches, and never decides which rules a message selects.

use super::bucket::TokenBucket;
use super::data_plane::{Arrival, DataPlane};
use super::draw::nanoseconds;
use super::expiry::Expiry;
use super::input::{Rule, RuleId};
use super::install::{InstallBuffer, next_tick};
use super::memory::Memory;
use super::output::{Output, Place};
use super::random::{Random, Stream};
use super::rules::{At, RULES_MAX, Rules, Slot};
use super::writes::{Change, ChangeKind, Writes};
use crate::hardware::{Hardware, Victim, WhenFull};
use crate::install::BufferFull;
use crate::software::{PromotionOrder, Software, SoftwareUse};
use crate::whole::Profile;

/// How many rules make place for one at most. A rule that needs the place of more is refused.
const VICTIMS_MAX: u32 = 64;

/// Why a rule is in no table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NotAdded {
    Refused,
    Ignored,
}

/// Where a new rule goes.
enum Goal {
    Anywhere,
    Software,
    Hardware(u8),
}

/// What of the tables is due. At one moment, the first goes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Due {
    Write,
    Install,
    Arrival,
    Expiry,
    Promotion,
}

#[derive(Clone, Debug)]
struct HardwareTable {
    memory: Memory,
    writes: Writes,
    install: Option<InstallBuffer>,
    cpu_waits: bool,
    when_full: WhenFull,
    evict: Vec<Victim>,
}

#[derive(Clone, Debug)]
struct SoftwareTable {
    is_only: bool,
    adds_to_hardware: Option<TokenBucket>,
    entries: usize,
    promotion: Option<Promotion>,
}

#[derive(Clone, Debug)]
struct Promotion {
    period_ns: u64,
    phase_ns: u64,
    batch: u32,
    order: [Victim; 1],
    due_ns: Option<u64>,
    last_ns: Option<u64>,
}

/// The tables of a switch.
#[derive(Clone, Debug)]
pub(super) struct Tables {
    rules: Rules,
    hardware: Option<HardwareTable>,
    software: Option<SoftwareTable>,
    plane: DataPlane,
    expiry: Expiry,
    choices: Random,
}

impl HardwareTable {
    fn new(hardware: &Hardware, profile: &Profile, seed: u64, phases: &mut Random) -> Self {
        HardwareTable {
            memory: Memory::new(&hardware.capacities),
            writes: Writes::new(hardware, seed),
            install: profile.install.as_ref().map(|install| InstallBuffer::new(install, phases)),
            cpu_waits: hardware.cpu_waits,
            when_full: hardware.when_full,
            evict: hardware.evict.clone(),
        }
    }
}

impl SoftwareTable {
    fn new(software: &Software, phases: &mut Random) -> Self {
        let adds_to_hardware = match software.when {
            SoftwareUse::AboveRate { rate_per_s, burst_rules } => {
                Some(TokenBucket::new(rate_per_s, burst_rules))
            }
            SoftwareUse::Only | SoftwareUse::WhenFull => None,
        };
        let promotion = software.promotion.map(|promotion| {
            let period_ns = nanoseconds(promotion.period_us).max(1);
            let (phase_ns, batch) = (phases.below(period_ns), promotion.batch_rules);
            let order = [key_of(promotion.order)];
            Promotion { period_ns, phase_ns, batch, order, due_ns: None, last_ns: None }
        });
        let entries =
            software.bound().map_or(RULES_MAX, |entries| usize::try_from(entries).unwrap_or(RULES_MAX));
        let is_only = software.when == SoftwareUse::Only;
        SoftwareTable { is_only, adds_to_hardware, entries, promotion }
    }
}

fn key_of(order: PromotionOrder) -> Victim {
    match order {
        PromotionOrder::Oldest => Victim::Oldest,
        PromotionOrder::Newest => Victim::Newest,
        PromotionOrder::MostUsed => Victim::MostUsed,
        PromotionOrder::MostRecentlyUsed => Victim::MostRecentlyUsed,
        PromotionOrder::HighestPriority => Victim::HighestPriority,
        PromotionOrder::Random => Victim::Random,
    }
}

impl Tables {
    pub(super) fn new(profile: &Profile, seed: u64) -> Self {
        let mut phases = Random::new(seed ^ 1, Stream::Phase);
        let hardware = profile.hardware.as_ref();
        Tables {
            rules: Rules::default(),
            hardware: hardware.map(|hardware| HardwareTable::new(hardware, profile, seed, &mut phases)),
            software: profile.software.as_ref().map(|software| SoftwareTable::new(software, &mut phases)),
            plane: DataPlane::new(&profile.barrier, seed),
            expiry: Expiry::new(&profile.timeouts, seed),
            choices: Random::new(seed, Stream::Choice),
        }
    }

    pub(super) fn rules(&self) -> &Rules {
        &self.rules
    }

    pub(super) fn expiry(&self) -> &Expiry {
        &self.expiry
    }

    /// Whether the CPU waits for the hardware or for the install buffer.
    #[inline]
    pub(super) fn cpu_waits(&self) -> bool {
        self.hardware.as_ref().is_some_and(|hardware| match &hardware.install {
            Some(install) => install.is_overfull(),
            None => hardware.cpu_waits && hardware.writes.has_messages(),
        })
    }

    /// Whether the data plane has everything that messages did.
    pub(super) fn is_settled(&self) -> bool {
        let hardware_is = self.hardware.as_ref().is_none_or(|hardware| {
            !hardware.writes.has_messages()
                && hardware.install.as_ref().is_none_or(|install| install.next_due_ns().is_none())
        });
        hardware_is && !self.plane.has_messages()
    }

    /// Adds a rule, or replaces the one with its number.
    pub(super) fn add(&mut self, rule: Rule, now_ns: u64, out: &mut Vec<Output>) -> Result<(), NotAdded> {
        if let Some(slot) = self.rules.slot_of(rule.id) {
            if let Some(known) = self.rules.get_mut(slot) {
                (known.rule, known.added_ns, known.used_ns) = (rule, now_ns, now_ns);
            }
            self.expiry.watch(slot, &mut self.rules);
            self.modify(rule.id, now_ns, out);
            return Ok(());
        }
        let goal = self.choose(&rule, now_ns, out)?;
        let slot = match goal {
            Goal::Anywhere => self.insert(rule, At::Anywhere, Some(Place::Hardware), now_ns, out),
            Goal::Software => {
                self.plan_promotion(now_ns);
                self.insert(rule, At::Software, Some(Place::Software), now_ns, out)
            }
            Goal::Hardware(class) => self.insert_into_hardware(rule, class, now_ns, out),
        };
        self.expiry.watch(slot, &mut self.rules);
        Ok(())
    }

    fn insert(
        &mut self,
        rule: Rule,
        at: At,
        place: Option<Place>,
        now_ns: u64,
        out: &mut Vec<Output>,
    ) -> Slot {
        let slot = self.rules.insert(rule, at, now_ns);
        if place.is_some() {
            self.show(slot, place, true, now_ns, out);
        }
        slot
    }

    fn insert_into_hardware(&mut self, rule: Rule, class: u8, now_ns: u64, out: &mut Vec<Output>) -> Slot {
        let has_buffer = self.hardware.as_ref().is_some_and(|hardware| hardware.install.is_some());
        let at = if has_buffer { At::Buffered } else { At::Writing };
        let slot = self.insert(rule, at, None, now_ns, out);
        let change = Change { slot, priority: rule.priority, kind: ChangeKind::Write, is_of_message: true };
        if let Some(hardware) = &mut self.hardware {
            hardware.memory.take(class);
            match &mut hardware.install {
                Some(install) => install.push(change, now_ns),
                None => self.change(change, now_ns, out),
            }
        }
        slot
    }

    /// Decides where a new rule goes.
    fn choose(&mut self, rule: &Rule, now_ns: u64, out: &mut Vec<Output>) -> Result<Goal, NotAdded> {
        if self.rules.len() >= RULES_MAX {
            return Err(NotAdded::Refused);
        }
        let Some(hardware) = &self.hardware else {
            return if self.software.is_some() { self.goal_in_software() } else { Ok(Goal::Anywhere) };
        };
        let class = rule.class.filter(|class| hardware.memory.knows(*class));
        let (Some(class), false) = (class, self.is_too_fast(now_ns)) else { return self.goal_in_software() };
        self.make_room(class, now_ns, out)?;
        let Some(hardware) = &mut self.hardware else { return Ok(Goal::Anywhere) };
        if !hardware.memory.has_room(class) {
            return self.goal_in_software();
        }
        if let Some(install) = hardware.install.as_ref().filter(|install| install.is_full()) {
            match install.when_full() {
                BufferFull::Wait => {}
                BufferFull::Spill => return self.goal_in_software(),
                BufferFull::Refuse => return Err(NotAdded::Refused),
            }
        }
        if let Some(bucket) = self.software.as_mut().and_then(|software| software.adds_to_hardware.as_mut()) {
            bucket.take(now_ns);
        }
        Ok(Goal::Hardware(class))
    }

    fn goal_in_software(&self) -> Result<Goal, NotAdded> {
        let has_room = |software: &SoftwareTable| self.rules.in_software() < software.entries;
        if self.software.as_ref().is_some_and(has_room) { Ok(Goal::Software) } else { Err(NotAdded::Refused) }
    }

    /// Whether adds come faster than the hardware takes them, and there is room in software.
    fn is_too_fast(&self, now_ns: u64) -> bool {
        let Some(software) = &self.software else { return false };
        let is_above = software.adds_to_hardware.as_ref().is_some_and(|bucket| !bucket.has_token(now_ns));
        software.is_only || (is_above && self.rules.in_software() < software.entries)
    }

    /// Makes room for a rule of a class, as the profile says. Without room and without an error, the rule spills.
    fn make_room(&mut self, class: u8, now_ns: u64, out: &mut Vec<Output>) -> Result<(), NotAdded> {
        for _ in 0..=VICTIMS_MAX {
            let Some(hardware) = &self.hardware else { return Ok(()) };
            match hardware.when_full {
                _ if hardware.memory.has_room(class) => return Ok(()),
                WhenFull::Refuse => return Err(NotAdded::Refused),
                WhenFull::Ignore => return Err(NotAdded::Ignored),
                WhenFull::Spill => return Ok(()),
                WhenFull::Evict => {}
            }
            let victim = self.rules.first_in_hardware(&hardware.evict, &mut self.choices);
            self.evict(victim.ok_or(NotAdded::Refused)?, now_ns, out);
        }
        Err(NotAdded::Refused)
    }

    /// A rule in hardware makes place: it goes to software, or is removed.
    fn evict(&mut self, slot: Slot, now_ns: u64, out: &mut Vec<Output>) {
        let Some(known) = self.rules.get(slot) else { return };
        let id = known.rule.id;
        if self.goal_in_software().is_ok() {
            self.give_back(slot);
            self.rules.move_to(slot, At::Demoting);
            self.plan_promotion(now_ns);
            self.change_of(slot, ChangeKind::Erase, true, now_ns, out);
        } else {
            out.push(Output::Evict { rule: id });
            self.delete(id, now_ns, out);
        }
    }

    /// The place of a rule in the hardware table is free for another. The hardware itself has the rule until it is erased; since
    /// changes keep their order, that is before anything is written in its place.
    fn give_back(&mut self, slot: Slot) {
        let class = self.rules.get(slot).and_then(|known| known.rule.class);
        if let (Some(hardware), Some(class)) = (&mut self.hardware, class) {
            hardware.memory.give_back(class);
        }
    }

    /// A rule has changed: it has new actions, for example.
    pub(super) fn modify(&mut self, id: RuleId, now_ns: u64, out: &mut Vec<Output>) {
        let Some(slot) = self.rules.slot_of(id) else { return };
        let Some(known) = self.rules.get(slot) else { return };
        match known.at {
            // Not the place that the data plane has now: the rule may still be on its way there.
            At::Anywhere => self.show(slot, Some(Place::Hardware), true, now_ns, out),
            At::Software => self.show(slot, Some(Place::Software), true, now_ns, out),
            At::Promoting | At::Writing | At::Hardware => {
                if let Some(hardware) = &self.hardware {
                    self.change_of(slot, hardware.writes.modify_kind(), true, now_ns, out);
                }
            }
            // It comes to its new place in its latest form.
            At::Buffered | At::Demoting | At::Leaving => {}
        }
    }

    /// A rule is removed.
    pub(super) fn delete(&mut self, id: RuleId, now_ns: u64, out: &mut Vec<Output>) {
        let Some(slot) = self.rules.slot_of(id) else { return };
        let Some(known) = self.rules.get(slot) else { return };
        match known.at {
            At::Anywhere | At::Software => self.take_out(slot, now_ns, out),
            At::Buffered => {
                if let Some(install) = self.hardware.as_mut().and_then(|hardware| hardware.install.as_mut()) {
                    install.remove(|change| change.slot == slot);
                }
                self.give_back(slot);
                self.take_out(slot, now_ns, out);
            }
            At::Promoting | At::Writing | At::Hardware => {
                self.give_back(slot);
                self.leave(slot);
                self.change_of(slot, ChangeKind::Erase, true, now_ns, out);
            }
            // The hardware erases it already.
            At::Demoting => self.leave(slot),
            At::Leaving => {}
        }
    }

    fn leave(&mut self, slot: Slot) {
        self.rules.forget_id(slot);
        self.rules.move_to(slot, At::Leaving);
    }

    fn take_out(&mut self, slot: Slot, now_ns: u64, out: &mut Vec<Output>) {
        self.show(slot, None, true, now_ns, out);
        self.rules.remove(slot);
    }

    /// Packets met a rule.
    pub(super) fn on_used(&mut self, id: RuleId, at_ns: u64, packets: u64) {
        let Some(slot) = self.rules.slot_of(id) else { return };
        if let Some(known) = self.rules.get_mut(slot) {
            known.used_ns = known.used_ns.max(at_ns);
            known.packets = known.packets.saturating_add(packets);
        }
        self.expiry.watch(slot, &mut self.rules);
    }

    fn change_of(
        &mut self,
        slot: Slot,
        kind: ChangeKind,
        is_of_message: bool,
        now_ns: u64,
        out: &mut Vec<Output>,
    ) {
        let Some(known) = self.rules.get(slot) else { return };
        self.change(Change { slot, priority: known.rule.priority, kind, is_of_message }, now_ns, out);
    }

    /// The hardware gets a change to carry out.
    fn change(&mut self, change: Change, now_ns: u64, out: &mut Vec<Output>) {
        let begun = self.hardware.as_mut().and_then(|hardware| hardware.writes.push(change, now_ns));
        self.on_begun(begun, now_ns, out);
    }

    /// A rule that is deleted and written again is in no place in between.
    fn on_begun(&mut self, begun: Option<Change>, now_ns: u64, out: &mut Vec<Output>) {
        if let Some(change) = begun.filter(|change| change.kind == ChangeKind::Replace)
            && self.rules.get(change.slot).is_some_and(|known| known.at != At::Leaving)
        {
            self.show(change.slot, None, true, now_ns, out);
        }
    }

    fn on_ended(&mut self, change: Change, now_ns: u64, out: &mut Vec<Output>) {
        let Some(known) = self.rules.get(change.slot) else { return };
        match (change.kind, known.at) {
            (ChangeKind::Erase, At::Leaving) => self.take_out(change.slot, now_ns, out),
            (ChangeKind::Erase, At::Demoting) => {
                self.rules.move_to(change.slot, At::Software);
                self.show(change.slot, Some(Place::Software), true, now_ns, out);
            }
            (ChangeKind::Write, At::Writing | At::Promoting) => {
                self.rules.move_to(change.slot, At::Hardware);
                self.show(change.slot, Some(Place::Hardware), change.is_of_message, now_ns, out);
            }
            (ChangeKind::Rewrite | ChangeKind::Replace, At::Hardware) => {
                self.show(change.slot, Some(Place::Hardware), true, now_ns, out);
            }
            // It is deleted or moved in the meantime, and a further change brings it to its place.
            _ => {}
        }
    }

    /// The data plane gets a rule, or loses it.
    fn show(
        &mut self,
        slot: Slot,
        place: Option<Place>,
        is_of_message: bool,
        now_ns: u64,
        out: &mut Vec<Output>,
    ) {
        let Tables { rules, plane, .. } = self;
        let Some(known) = rules.get_mut(slot) else { return };
        if plane.is_prompt() {
            known.place = place;
            out.push(Output::InDataPlane { rule: known.rule.id, place });
        } else {
            let rule = (known.rule.id, slot);
            known.changes_ns = plane.send(rule, place, is_of_message, now_ns, known.changes_ns);
        }
    }

    fn on_arrival(&mut self, arrival: Arrival, out: &mut Vec<Output>) {
        // A rule with the same number may have come after this one was deleted, and may be in the data plane already.
        let later = self.rules.slot_of(arrival.rule).filter(|slot| *slot != arrival.slot);
        let is_replaced =
            later.and_then(|slot| self.rules.get(slot)).is_some_and(|known| known.place.is_some());
        if let Some(known) = self.rules.get_mut(arrival.slot) {
            known.place = arrival.place;
        }
        if !is_replaced {
            out.push(Output::InDataPlane { rule: arrival.rule, place: arrival.place });
        }
    }

    /// Rules are in software: the engine that moves them runs.
    fn plan_promotion(&mut self, now_ns: u64) {
        let promotion = self.software.as_mut().and_then(|software| software.promotion.as_mut());
        if let Some(promotion) = promotion.filter(|promotion| promotion.due_ns.is_none()) {
            let next = next_tick(now_ns, promotion.phase_ns, promotion.period_ns);
            promotion.due_ns = Some(match promotion.last_ns {
                Some(last) => next.max(last.saturating_add(promotion.period_ns)),
                None => next,
            });
        }
    }

    fn promote(&mut self, now_ns: u64, out: &mut Vec<Output>) {
        let promotion = self.software.as_mut().and_then(|software| software.promotion.as_mut());
        let Some(promotion) = promotion else { return };
        promotion.last_ns = promotion.due_ns.take();
        let (batch, order) = (promotion.batch, promotion.order);
        for _ in 0..batch {
            let Tables { rules, hardware: Some(hardware), choices, .. } = self else { return };
            let fits = |rule: &Rule| rule.class.is_some_and(|class| hardware.memory.has_room(class));
            let Some(slot) = rules.first_in_software(&order, fits, choices) else { break };
            if let Some(class) = rules.get(slot).and_then(|known| known.rule.class) {
                hardware.memory.take(class);
            }
            rules.move_to(slot, At::Promoting);
            self.change_of(slot, ChangeKind::Write, false, now_ns, out);
        }
        if self.rules.in_software() > 0 {
            self.plan_promotion(now_ns);
        }
    }

    /// What is due first, and when.
    #[inline]
    pub(super) fn next_due(&self) -> Option<(u64, Due)> {
        let hardware = self.hardware.as_ref();
        let writes = hardware.and_then(|hardware| hardware.writes.next_due_ns());
        let install = hardware.and_then(|hardware| hardware.install.as_ref()?.next_due_ns());
        let promotion = self.software.as_ref().and_then(|software| software.promotion.as_ref()?.due_ns);
        let mut first = None;
        let mut consider = |due: Option<u64>, what: Due| {
            if let Some(due) = due
                && first.is_none_or(|(earliest, _)| due < earliest)
            {
                first = Some((due, what));
            }
        };
        consider(writes, Due::Write);
        consider(install, Due::Install);
        consider(self.plane.next_due_ns(), Due::Arrival);
        consider(self.expiry.next_due_ns(), Due::Expiry);
        consider(promotion, Due::Promotion);
        first
    }

    /// The time of this has come.
    pub(super) fn on_due(&mut self, what: Due, now_ns: u64, out: &mut Vec<Output>) {
        match what {
            Due::Write => {
                let ended = self.hardware.as_mut().map(|hardware| hardware.writes.on_due());
                let (ended, begun) = ended.unwrap_or_default();
                ended.into_iter().for_each(|change| self.on_ended(change, now_ns, out));
                self.on_begun(begun, now_ns, out);
            }
            Due::Install => self.on_batch(now_ns),
            Due::Arrival => {
                if let Some(arrival) = self.plane.pop() {
                    self.on_arrival(arrival, out);
                }
            }
            Due::Expiry => out.extend(self.expiry.on_due(&mut self.rules)),
            Due::Promotion => self.promote(now_ns, out),
        }
    }

    /// The install buffer gives a batch to the hardware.
    fn on_batch(&mut self, now_ns: u64) {
        let Tables { rules, hardware: Some(hardware), .. } = self else { return };
        let HardwareTable { writes, install: Some(install), .. } = hardware else { return };
        // What begins is a write, which takes nothing out of the data plane.
        install.on_due(|change| {
            rules.move_to(change.slot, At::Writing);
            writes.push(change, now_ns);
        });
    }
}
