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
const VICTIMS_MAX: usize = 64;

/// How many changes wait for the hardware, and how many are on their way to the data plane: more than the largest table has rules. Above
/// it, the CPU begins with no further message, and no rule is promoted. One message and the time-outs can add as many as there are rules.
const CHANGES_MAX: usize = 1 << 17;

/// The shortest time between two promotions, whatever the profile says: otherwise time would hardly pass.
const PROMOTION_PERIOD_MIN_NS: u64 = 1_000_000;

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
    /// Memory for the rules that make place, kept only to reuse it.
    victims: Vec<Slot>,
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
            let period_ns = nanoseconds(promotion.period_us).max(PROMOTION_PERIOD_MIN_NS);
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
            victims: Vec::new(),
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

    /// How many changes wait for the hardware or are on their way to the data plane: the larger number.
    #[inline]
    pub(super) fn changes(&self) -> usize {
        let waiting = self.hardware.as_ref().map_or(0, |hardware| hardware.writes.waiting());
        waiting.max(self.plane.on_the_way())
    }

    /// Whether that is so much that no further message may begin.
    #[inline]
    pub(super) fn has_many_changes(&self) -> bool {
        self.changes() >= CHANGES_MAX
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

    /// A rule has the time-outs that it had before it was replaced.
    pub(super) fn restore(&mut self, rule: Rule) {
        let Some(slot) = self.rules.slot_of(rule.id) else { return };
        if let Some(known) = self.rules.get_mut(slot) {
            known.rule = rule;
        }
        self.expiry.watch(slot, &mut self.rules);
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

    /// Decides where a new rule goes. If it is refused, nothing has changed.
    fn choose(&mut self, rule: &Rule, now_ns: u64, out: &mut Vec<Output>) -> Result<Goal, NotAdded> {
        if self.rules.len() >= RULES_MAX {
            return Err(NotAdded::Refused);
        }
        let Some(hardware) = &self.hardware else {
            return if self.software.is_some() { self.goal_in_software() } else { Ok(Goal::Anywhere) };
        };
        let class = rule.class.filter(|class| hardware.memory.knows(*class));
        let (Some(class), false) = (class, self.is_too_fast(now_ns)) else { return self.goal_in_software() };
        match hardware.when_full {
            _ if hardware.memory.has_room(class) => {}
            WhenFull::Refuse => return Err(NotAdded::Refused),
            WhenFull::Ignore => return Err(NotAdded::Ignored),
            WhenFull::Spill => return self.goal_in_software(),
            WhenFull::Evict => {}
        }
        if let Some(install) = hardware.install.as_ref().filter(|install| install.is_full()) {
            match install.when_full() {
                BufferFull::Wait => {}
                BufferFull::Spill => return self.goal_in_software(),
                BufferFull::Refuse => return Err(NotAdded::Refused),
            }
        }
        self.make_room(class, now_ns, out)?;
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

    /// Makes room for a rule of a class: other rules go. If that takes more than [`VICTIMS_MAX`], none goes and the rule is refused.
    fn make_room(&mut self, class: u8, now_ns: u64, out: &mut Vec<Output>) -> Result<(), NotAdded> {
        let mut victims = std::mem::take(&mut self.victims);
        victims.clear();
        let is_enough = self.find_victims(class, &mut victims);
        if is_enough {
            victims.iter().for_each(|victim| self.evict(*victim, now_ns, out));
        }
        self.victims = victims;
        if is_enough { Ok(()) } else { Err(NotAdded::Refused) }
    }

    /// Finds the rules that make room, in the memory of this class. Returns whether they are enough.
    fn find_victims(&mut self, class: u8, victims: &mut Vec<Slot>) -> bool {
        let Tables { rules, hardware: Some(hardware), choices, .. } = self else { return true };
        let memory = &mut hardware.memory;
        let class_of = |rules: &Rules, slot: Slot| rules.get(slot).and_then(|known| known.rule.class);
        // The places are given back only for the time of the search.
        while !memory.has_room(class) && victims.len() < VICTIMS_MAX {
            let helps = |slot: Slot, of: Option<u8>| {
                of.is_some_and(|of| memory.shares(of, class)) && !victims.contains(&slot)
            };
            let Some(victim) = rules.first_in_hardware(&hardware.evict, helps, choices) else { break };
            victims.push(victim);
            class_of(rules, victim).into_iter().for_each(|class| memory.give_back(class));
        }
        let is_enough = memory.has_room(class);
        victims.iter().filter_map(|slot| class_of(rules, *slot)).for_each(|class| memory.take(class));
        is_enough
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
                if known.at == At::Promoting {
                    // Software loses it at once.
                    self.show(slot, None, true, now_ns, out);
                }
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
        let rule = known.rule.id;
        if plane.is_prompt() {
            self.tell_place(rule, slot, place, out);
        } else {
            known.changes_ns = plane.send((rule, slot), place, is_of_message, now_ns, known.changes_ns);
        }
    }

    /// Packets meet a rule there from now on. A rule with the same number may have come after this one was deleted, and may be in the data
    /// plane already.
    fn tell_place(&mut self, rule: RuleId, slot: Slot, place: Option<Place>, out: &mut Vec<Output>) {
        let later = self.rules.slot_of(rule).filter(|later| *later != slot);
        let is_replaced =
            later.and_then(|slot| self.rules.get(slot)).is_some_and(|known| known.place.is_some());
        if let Some(known) = self.rules.get_mut(slot) {
            known.place = place;
        }
        if !is_replaced {
            out.push(Output::InDataPlane { rule, place });
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
        let (mut batch, order) = (promotion.batch, promotion.order);
        if self.has_many_changes() {
            batch = 0;
        }
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
                if let Some(Arrival { rule, slot, place, .. }) = self.plane.pop() {
                    self.tell_place(rule, slot, place, out);
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
