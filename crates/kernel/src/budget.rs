//! How many rules an app has on a switch, and how full a switch's tables are.
//!
//! ```text
//!   rule asked for, rule removed, the switch's own count ──> Estimate ──> may one more come? is it time to ask the switch?
//! ```
//!
//! Only the switch knows its count: a rule replaces another, times out without a report, or is refused there. So the kernel estimates, never
//! too low: each add counts one more, a flow removed one less. Near the limit it asks the switch, and takes its answer and the adds
//! since. What is too high for a moment is put right by the next answer; while it is wrong, a rule may be refused that would have fitted.
//!
//! In: what was asked, heard and answered, with the time. Out: yes or no, and questions for the switch. Never sends them, and never
//! keeps more than a few numbers for each app and table.

use openflow::statistics::TableEntries;

/// An answer that has not come after so long is not waited for any more.
const ANSWER_TIMEOUT_MS: u64 = 10_000;

/// Who stays at the limit has the switch asked as often as this; who adds more is asked about sooner.
const ASK_INTERVAL_MS: u64 = 1_000;

/// After this part of a limit in adds it is worth to ask again.
const ASK_AFTER_PART: u32 = 16;

/// A count that is never lower than the switch's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Estimate {
    used: u32,
    /// Adds since the question, which the answer may not hold.
    since_asked: u32,
    since_heard: u32,
    /// What the parts of an answer have come to so far.
    in_parts: u32,
    asked_ms: Option<u64>,
    heard_ms: Option<u64>,
}

impl Estimate {
    /// The count, or more.
    pub fn used(&self) -> u32 {
        self.used
    }

    /// So many may be added.
    pub fn add(&mut self, count: u32) {
        self.used = self.used.saturating_add(count);
        self.since_asked = self.since_asked.saturating_add(count);
        self.since_heard = self.since_heard.saturating_add(count);
    }

    /// So many were not added after all.
    pub fn give_back(&mut self, count: u32) {
        self.used = self.used.saturating_sub(count);
        self.since_asked = self.since_asked.saturating_sub(count);
        self.since_heard = self.since_heard.saturating_sub(count);
    }

    /// One was removed.
    pub fn remove(&mut self) {
        self.used = self.used.saturating_sub(1);
    }

    /// Whether the switch should be asked, being near a limit. If so, it is taken to be asked now.
    pub fn ask(&mut self, limit: u32, now_ms: u64) -> bool {
        if self.asked_ms.is_some_and(|asked| now_ms.saturating_sub(asked) < ANSWER_TIMEOUT_MS) {
            return false;
        }
        let worth = self.since_heard > limit / ASK_AFTER_PART;
        let due = self.heard_ms.is_none_or(|heard| now_ms.saturating_sub(heard) >= ASK_INTERVAL_MS);
        if worth || due {
            *self = Estimate { asked_ms: Some(now_ms), since_asked: 0, in_parts: 0, ..*self };
        }
        worth || due
    }

    /// Whether the switch has never said.
    pub fn is_guess(&self) -> bool {
        self.heard_ms.is_none()
    }

    /// The switch's answer, or a part of it.
    pub fn on_answer(&mut self, count: u32, more: bool, now_ms: u64) {
        if self.asked_ms.is_none() {
            return;
        }
        self.in_parts = self.in_parts.saturating_add(count);
        if !more {
            self.used = self.in_parts.saturating_add(self.since_asked);
            // Those behind the question are as uncertain as before.
            (self.since_heard, self.asked_ms, self.heard_ms) = (self.since_asked, None, Some(now_ms));
        }
    }

    /// The switch will not answer this time.
    pub fn on_no_answer(&mut self, now_ms: u64) {
        (self.asked_ms, self.heard_ms) = (None, Some(now_ms));
    }
}

/// Entries that may be added before a table is looked at again: looking costs more than adding.
const LEASE_MAX: u32 = 256;

/// Entries that may be added to a switch before it reports how large its tables are. An app adds fewer when a switch
/// connects. The commands of one call of a trusted app are decided on before any answer can be read. One more is
/// refused until the answer is there.
const UNSIZED_MAX: u32 = 1 << 16;

/// After so many of them, the app that adds waits once for the answer. A small table of hardware holds about as many.
const WAIT_AFTER: u32 = 1024;

/// What is to be asked of a switch before the next entry, or why there is no next entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lease {
    /// So many may be added.
    Granted(u32),
    /// So many, and the operator is to hear how full the table is.
    Scarce {
        /// How many.
        count: u32,
        /// Entries, by estimate.
        used: u32,
        /// The most that there may be.
        limit: u32,
    },
    /// None: the table has as many as the operator allows.
    Full {
        /// How many that is.
        limit: u32,
        /// Whether the operator is told now.
        tell: bool,
    },
    /// None yet: the switch has been asked how large its tables are, and has not answered.
    Unsized,
}

/// How full a switch's tables are. Costs a switch with few rules nothing: the tables are asked about after `LEASE_MAX` adds.
#[derive(Clone, Debug, Default)]
pub struct Fill {
    adds: u32,
    /// Whether somebody was made to wait for the sizes. Once is enough: a switch that answers late is nobody's delay for long.
    has_waited: bool,
    sizes: Sizes,
    /// By table; empty while the switch has not said how large they are.
    tables: Vec<TableFill>,
}

/// How often a switch is asked how large its tables are before it is taken to be one that does not say. Until then no more than
/// [`UNSIZED_MAX`] entries are added to it.
const SIZE_QUESTIONS_MAX: u32 = 3;

/// Whether the switch has said how large its tables are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Sizes {
    #[default]
    NotAsked,
    /// So many times. The next time is not before this one.
    Asked { times: u32, next_ms: u64 },
    /// It has.
    Known,
    /// It does not say: it refused, passed the question over, or left every question unanswered.
    Unknown {
        /// Whether the operator has heard of it.
        is_told: bool,
    },
}

/// What the operator lets tables be filled to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableRoom {
    /// Hundredths of a table's entries that may be used.
    pub percent: u8,
    /// How many entries a table is taken to hold of a switch that does not say; `None`: as many as are added.
    pub entries_if_unknown: Option<u32>,
}

impl Default for TableRoom {
    /// Nine tenths: the rest is left for a day when it is needed.
    fn default() -> Self {
        TableRoom { percent: 90, entries_if_unknown: None }
    }
}

#[derive(Clone, Copy, Debug)]
struct TableFill {
    table_id: u8,
    limit: u32,
    size: u32,
    entries: Estimate,
    tell_from_ms: u64,
}

/// What follows from a lease beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asking {
    /// Ask the switch how many entries each table holds.
    TableSizes,
    /// Ask the switch how many entries each table has.
    TableCounts,
    /// Tell the operator that the switch does not say how large its tables are.
    TellUnknown,
    /// Let the app wait a moment: the switch is about to report how large its tables are.
    Wait,
}

/// Of how full a table is, the operator hears as often as this.
const TELL_INTERVAL_MS: u64 = 1_000;

impl Fill {
    /// Call it before an entry is added. `ask` receives the question for the switch, or the notice for the operator.
    pub fn lease(
        &mut self,
        table_id: u8,
        room: TableRoom,
        now_ms: u64,
        ask: &mut impl FnMut(Asking),
    ) -> Lease {
        if !self.has_size(table_id) {
            if let Some(lease) = self.lease_unsized(now_ms, ask) {
                return lease;
            }
            if let Some(entries) = room.entries_if_unknown {
                self.on_size(TableEntries { table_id, entries }, room.percent);
            }
        }
        let Some(table) = self.tables.iter_mut().find(|table| table.table_id == table_id) else {
            self.adds = self.adds.saturating_add(LEASE_MAX);
            return Lease::Granted(LEASE_MAX);
        };
        let (limit, used) = (table.limit, table.entries.used());
        let is_scarce = used >= limit - limit / 10;
        if (is_scarce || table.entries.is_guess()) && table.entries.ask(limit, now_ms) {
            ask(Asking::TableCounts);
        }
        let tell = is_scarce && now_ms >= table.tell_from_ms;
        if tell {
            table.tell_from_ms = now_ms + TELL_INTERVAL_MS;
        }
        let count = (limit.saturating_sub(used) / 2).clamp(1, LEASE_MAX);
        if used >= limit {
            return Lease::Full { limit, tell };
        }
        table.entries.add(count);
        if tell { Lease::Scarce { count, used, limit } } else { Lease::Granted(count) }
    }

    fn has_size(&self, table_id: u8) -> bool {
        self.tables.iter().any(|table| table.table_id == table_id)
    }

    /// Of a table of which nobody knows how large it is; `None` if nobody will.
    fn lease_unsized(&mut self, now_ms: u64, ask: &mut impl FnMut(Asking)) -> Option<Lease> {
        if self.adds >= LEASE_MAX {
            self.ask_for_sizes(now_ms, ask);
        }
        match self.sizes {
            // Of this table it said nothing, or that it holds none, which no table does.
            Sizes::Known => return None,
            Sizes::Unknown { is_told } => {
                if !is_told {
                    self.sizes = Sizes::Unknown { is_told: true };
                    ask(Asking::TellUnknown);
                }
                return None;
            }
            Sizes::NotAsked | Sizes::Asked { .. } => {}
        }
        if self.adds >= UNSIZED_MAX {
            return Some(Lease::Unsized);
        }
        self.adds = self.adds.saturating_add(LEASE_MAX);
        if self.adds > WAIT_AFTER && !self.has_waited {
            self.has_waited = true;
            ask(Asking::Wait);
        }
        Some(Lease::Granted(LEASE_MAX))
    }

    fn ask_for_sizes(&mut self, now_ms: u64, ask: &mut impl FnMut(Asking)) {
        let times = match self.sizes {
            Sizes::NotAsked => 0,
            Sizes::Asked { times, next_ms } if now_ms >= next_ms => times,
            Sizes::Asked { .. } | Sizes::Known | Sizes::Unknown { .. } => return,
        };
        if times >= SIZE_QUESTIONS_MAX {
            return self.on_sizes_unknown();
        }
        self.sizes = Sizes::Asked { times: times + 1, next_ms: now_ms + ANSWER_TIMEOUT_MS };
        ask(Asking::TableSizes);
    }

    /// The question how large the tables are did not go out. That is not the switch's doing, and so it does not count.
    pub fn on_sizes_unasked(&mut self, now_ms: u64) {
        if let Sizes::Asked { times, .. } = self.sizes {
            let (times, next_ms) = (times.saturating_sub(1), now_ms + ASK_INTERVAL_MS);
            self.sizes = Sizes::Asked { times, next_ms };
        }
    }

    /// Whether the switch is asked how large its tables are, and may still say so.
    pub fn is_asked_for_sizes(&self) -> bool {
        matches!(self.sizes, Sizes::Asked { .. })
    }

    /// The switch has said how large its tables are. What it says late counts too.
    pub fn on_sizes(&mut self) {
        self.sizes = Sizes::Known;
    }

    /// The switch will not say how large its tables are.
    pub fn on_sizes_unknown(&mut self) {
        if matches!(self.sizes, Sizes::NotAsked | Sizes::Asked { .. }) {
            self.sizes = Sizes::Unknown { is_told: false };
        }
    }

    /// What is left of a lease.
    pub fn give_back(&mut self, table_id: u8, count: u32) {
        self.adds = self.adds.saturating_sub(count);
        if let Some(table) = self.tables.iter_mut().find(|table| table.table_id == table_id) {
            table.entries.give_back(count);
        }
    }

    /// An entry is gone.
    pub fn on_removed(&mut self, table_id: u8) {
        if let Some(table) = self.tables.iter_mut().find(|table| table.table_id == table_id) {
            table.entries.remove();
        }
    }

    /// How many entries a table holds, of which this part may be used. A switch has at most 255 tables; one that is named twice is
    /// taken as it was named last.
    pub fn on_size(&mut self, fact: TableEntries, percent: u8) {
        // At most a hundred hundredths of a 32-bit number.
        let limit = (u64::from(fact.entries) * u64::from(percent.min(100)) / 100) as u32;
        self.tables.retain(|table| table.table_id != fact.table_id);
        // All that was added may be in this table.
        let mut entries = Estimate::default();
        entries.add(self.adds);
        let table_id = fact.table_id;
        // A table that says that it holds nothing is one that does not say.
        if fact.entries > 0 {
            let (limit, size) = (limit.max(1), fact.entries);
            self.tables.push(TableFill { table_id, limit, size, entries, tell_from_ms: 0 });
        }
    }

    /// How many entries the tables hold together that the switch has named; `None`: it has named none.
    pub fn capacity(&self) -> Option<u64> {
        let sizes = self.tables.iter().map(|table| u64::from(table.size));
        (!self.tables.is_empty()).then(|| sizes.sum())
    }

    /// How many entries a table has.
    pub fn on_count(&mut self, fact: TableEntries, now_ms: u64) {
        if let Some(table) = self.tables.iter_mut().find(|table| table.table_id == fact.table_id) {
            table.entries.on_answer(fact.entries, false, now_ms);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_counts_with_what_was_added_since_the_question() {
        let mut estimate = Estimate::default();
        estimate.add(10);
        assert!(estimate.is_guess() && estimate.ask(100, 0) && !estimate.ask(100, 1));
        estimate.add(3);
        estimate.on_answer(2, true, 5);
        assert_eq!(estimate.used(), 13);
        estimate.on_answer(4, false, 5);
        assert_eq!(estimate.used(), 9);
        estimate.on_answer(1_000, false, 5);
        assert_eq!(estimate.used(), 9, "nobody asked");
    }

    #[test]
    fn who_adds_is_asked_about_soon_and_who_does_not_after_a_second() {
        let mut estimate = Estimate::default();
        assert!(estimate.ask(160, 0));
        estimate.on_answer(150, false, 0);
        assert!(!estimate.ask(160, 10));
        estimate.add(11);
        assert!(estimate.ask(160, 10));
        estimate.on_answer(160, false, 20);
        assert!(!estimate.ask(160, 1_019));
        assert!(estimate.ask(160, 1_020));
    }

    #[test]
    fn a_switch_that_does_not_answer_is_asked_again() {
        let mut estimate = Estimate::default();
        assert!(estimate.ask(10, 0) && !estimate.ask(10, ANSWER_TIMEOUT_MS - 1));
        assert!(estimate.ask(10, ANSWER_TIMEOUT_MS));
        estimate.on_no_answer(ANSWER_TIMEOUT_MS);
        assert!(!estimate.ask(10, ANSWER_TIMEOUT_MS + 1));
    }

    /// What becomes of a lease, and the questions.
    fn lease(fill: &mut Fill, table_id: u8, now_ms: u64) -> (Lease, Vec<Asking>) {
        lease_of(fill, table_id, now_ms, None)
    }

    /// The same where the operator says how large a table is taken to be of which nobody knows.
    fn lease_of(fill: &mut Fill, table_id: u8, now_ms: u64, unknown: Option<u32>) -> (Lease, Vec<Asking>) {
        let (mut asked, room) = (Vec::new(), TableRoom { entries_if_unknown: unknown, ..Default::default() });
        let lease = fill.lease(table_id, room, now_ms, &mut |asking| asked.push(asking));
        (lease, asked)
    }

    #[test]
    fn a_switch_with_few_rules_is_asked_nothing() {
        let mut fill = Fill::default();
        assert_eq!(lease(&mut fill, 0, 0), (Lease::Granted(LEASE_MAX), vec![]));
        fill.give_back(0, LEASE_MAX);
        assert_eq!(lease(&mut fill, 0, 0), (Lease::Granted(LEASE_MAX), vec![]));
        assert_eq!(lease(&mut fill, 0, 0), (Lease::Granted(LEASE_MAX), vec![Asking::TableSizes]));
        assert_eq!(lease(&mut fill, 0, 0), (Lease::Granted(LEASE_MAX), vec![]));
    }

    /// Adds until it is to wait. How many.
    fn flood(fill: &mut Fill, now_ms: u64) -> u32 {
        let mut granted = 0;
        while let Lease::Granted(count) | Lease::Scarce { count, .. } = lease(fill, 0, now_ms).0 {
            granted += count;
            assert!(granted <= 2 * UNSIZED_MAX, "nobody stops it");
        }
        granted
    }

    #[test]
    fn who_adds_as_much_as_a_small_table_holds_waits_once_for_the_answer() {
        let mut fill = Fill::default();
        let waits: Vec<_> = (0..20).map(|_| lease(&mut fill, 0, 0).1.contains(&Asking::Wait)).collect();
        assert_eq!(waits.iter().position(|waits| *waits), Some(4), "after {WAIT_AFTER}");
        assert_eq!(waits.iter().filter(|waits| **waits).count(), 1);
        assert!(fill.is_asked_for_sizes());
        fill.on_sizes_unknown();
        assert!(!fill.is_asked_for_sizes());
    }

    #[test]
    fn a_flood_does_not_overtake_the_answer_how_large_the_table_is() {
        let mut fill = Fill::default();
        assert_eq!(flood(&mut fill, 0), UNSIZED_MAX);
        assert_eq!(lease(&mut fill, 0, ANSWER_TIMEOUT_MS - 1).0, Lease::Unsized);
        fill.on_size(TableEntries { table_id: 0, entries: 100_000 }, 90);
        fill.on_sizes();
        assert_eq!(flood(&mut fill, 0), 90_000 - UNSIZED_MAX, "what was added before counts");
    }

    #[test]
    fn a_switch_that_does_not_say_how_large_its_tables_are_is_asked_again_and_not_for_ever() {
        let mut silent = Fill::default();
        flood(&mut silent, 0);
        for time in 1..u64::from(SIZE_QUESTIONS_MAX) {
            let again = (Lease::Unsized, vec![Asking::TableSizes]);
            assert_eq!(lease(&mut silent, 0, time * ANSWER_TIMEOUT_MS), again, "{time}");
            assert_eq!(lease(&mut silent, 0, time * ANSWER_TIMEOUT_MS + 1), (Lease::Unsized, vec![]));
        }
        let given_up = u64::from(SIZE_QUESTIONS_MAX) * ANSWER_TIMEOUT_MS;
        assert_eq!(lease(&mut silent, 0, given_up), (Lease::Granted(LEASE_MAX), vec![Asking::TellUnknown]));
        assert_eq!(lease(&mut silent, 0, given_up), (Lease::Granted(LEASE_MAX), vec![]), "it is said once");
    }

    #[test]
    fn a_switch_that_does_not_say_how_large_its_tables_are_has_what_the_operator_says() {
        let mut fill = Fill::default();
        lease(&mut fill, 0, 0);
        lease(&mut fill, 0, 0);
        fill.on_sizes_unknown();
        assert_eq!(lease(&mut fill, 0, 0), (Lease::Granted(LEASE_MAX), vec![Asking::TellUnknown]));
        for _ in 0..100_000 {
            assert_eq!(lease(&mut fill, 0, 0), (Lease::Granted(LEASE_MAX), vec![]), "no limit was set");
        }
        let mut fill = Fill::default();
        lease(&mut fill, 0, 0);
        fill.on_sizes_unknown();
        let mut granted = LEASE_MAX;
        while let Lease::Granted(count) | Lease::Scarce { count, .. } =
            lease_of(&mut fill, 0, 0, Some(1_000)).0
        {
            granted += count;
            assert!(granted <= 900, "{granted}");
        }
        assert_eq!(granted, 900);
        // An answer that comes late is respected all the same.
        fill.on_size(TableEntries { table_id: 0, entries: 2_000 }, 90);
        fill.on_sizes();
        assert!(matches!(lease_of(&mut fill, 0, 0, Some(1_000)).0, Lease::Granted(_)));
        fill.on_sizes_unknown();
        assert_eq!(fill.sizes, Sizes::Known, "what came is not taken back");
    }

    #[test]
    fn a_question_that_did_not_go_out_does_not_make_the_switch_one_that_does_not_say() {
        let mut fill = Fill::default();
        flood(&mut fill, 0);
        for time in 0..100 {
            fill.on_sizes_unasked(time * ASK_INTERVAL_MS);
            let now_ms = (time + 1) * ASK_INTERVAL_MS;
            assert_eq!(lease(&mut fill, 0, now_ms - 1), (Lease::Unsized, vec![]), "{time}");
            assert_eq!(lease(&mut fill, 0, now_ms), (Lease::Unsized, vec![Asking::TableSizes]), "{time}");
        }
    }

    #[test]
    fn a_table_is_filled_to_the_part_that_the_operator_allows() {
        let mut fill = Fill::default();
        fill.on_size(TableEntries { table_id: 0, entries: 100 }, 90);
        fill.on_size(TableEntries { table_id: 1, entries: 1_000_000 }, 90);
        assert_eq!(lease(&mut fill, 0, 0), (Lease::Granted(45), vec![Asking::TableCounts]));
        // Twenty that were there, and the forty-five that are on their way.
        fill.on_count(TableEntries { table_id: 0, entries: 20 }, 1);
        assert_eq!(lease(&mut fill, 0, 1).0, Lease::Granted(12));
        let mut granted = 0;
        let full = loop {
            match lease(&mut fill, 0, 2_000).0 {
                Lease::Granted(count) | Lease::Scarce { count, .. } => granted += count,
                full => break full,
            }
            assert!(granted <= 13, "{granted}");
        };
        assert_eq!(full, Lease::Full { limit: 90, tell: false });
        assert!(matches!(lease(&mut fill, 0, 3_000).0, Lease::Full { limit: 90, tell: true }));
        assert_eq!(lease(&mut fill, 1, 0).0, Lease::Granted(LEASE_MAX));
    }

    #[test]
    fn room_that_the_switch_says_there_is_is_used() {
        let mut fill = Fill::default();
        fill.on_size(TableEntries { table_id: 0, entries: 10 }, 100);
        while !matches!(lease(&mut fill, 0, 0).0, Lease::Full { .. }) {}
        fill.on_count(TableEntries { table_id: 0, entries: 2 }, 0);
        lease(&mut fill, 0, 2_000);
        fill.on_count(TableEntries { table_id: 0, entries: 2 }, 2_000);
        assert_ne!(lease(&mut fill, 0, 2_001).0, Lease::Full { limit: 10, tell: true });
    }

    #[test]
    fn a_table_that_holds_nothing_does_not_say_how_much_it_holds() {
        let mut fill = Fill::default();
        fill.on_size(TableEntries { table_id: 0, entries: 0 }, 90);
        assert_eq!(lease(&mut fill, 0, 0).0, Lease::Granted(LEASE_MAX));
    }
}
