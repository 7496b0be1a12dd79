//! Counts an app's rules on a switch, and the entries in a switch's tables.
//!
//! ```text
//!   rule asked for, rule removed, the switch's own count ──> Estimate ──> may one more come? is it time to ask the switch?
//! ```
//!
//! Only the switch knows its count: a rule may replace another, time out without a report, or be refused there. So the
//! kernel estimates, and its estimate is never too low. Each add counts one more, and each flow-removed message one
//! less. Near the limit the kernel asks the switch. The new estimate is the answer plus the adds since the question.
//! Until then, the kernel may refuse a rule that would have fitted.
//!
//! In: adds, removals and the switch's answers, with the time. Out: yes or no, and questions for the switch. It never
//! sends them, and keeps only a few numbers for each app and table.

use openflow::statistics::TableEntries;

/// After this time, the kernel no longer waits for an answer.
const ANSWER_TIMEOUT_MS: u64 = 10_000;

/// The interval of questions about an app that stays at its limit. The kernel asks sooner about an app that adds more.
const ASK_INTERVAL_MS: u64 = 1_000;

/// The kernel asks again after the app has added this part of its limit.
const ASK_AFTER_PART: u32 = 16;

/// Far from the limit, the kernel asks after this part of it was added. Adds that repeat a rule count each time, and a
/// busy switch answers late: the answer must come before the estimate reaches the limit.
const CHECK_AFTER_PART: u32 = 4;

/// A count that is never lower than the switch's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Estimate {
    used: u32,
    /// Adds since the question. The answer may not contain them.
    since_asked: u32,
    since_heard: u32,
    /// The sum of an answer's parts so far.
    in_parts: u32,
    asked_ms: Option<u64>,
    heard_ms: Option<u64>,
}

impl Estimate {
    /// The estimate: the count, or more.
    pub fn used(&self) -> u32 {
        self.used
    }

    /// Counts added entries.
    pub fn add(&mut self, count: u32) {
        self.used = self.used.saturating_add(count);
        self.since_asked = self.since_asked.saturating_add(count);
        self.since_heard = self.since_heard.saturating_add(count);
    }

    /// Takes back entries that were counted but not added.
    pub fn give_back(&mut self, count: u32) {
        self.used = self.used.saturating_sub(count);
        self.since_asked = self.since_asked.saturating_sub(count);
        self.since_heard = self.since_heard.saturating_sub(count);
    }

    /// Counts one removed entry.
    pub fn remove(&mut self) {
        self.used = self.used.saturating_sub(1);
    }

    /// Whether to ask the switch now, because the count is near the limit. If so, the question counts as sent.
    pub fn ask(&mut self, limit: u32, now_ms: u64) -> bool {
        if self.asked_ms.is_some_and(|asked| now_ms.saturating_sub(asked) < ANSWER_TIMEOUT_MS) {
            return false;
        }
        let worth = self.since_heard > limit / ASK_AFTER_PART;
        let due = self.heard_ms.is_none_or(|heard| now_ms.saturating_sub(heard) >= ASK_INTERVAL_MS);
        if worth || due {
            self.on_asked(now_ms);
        }
        worth || due
    }

    /// Whether the estimate may be far too high: half of the limit is reached, and much was added since the last answer.
    pub fn is_worth_a_check(&self, limit: u32) -> bool {
        self.used >= limit / 2 && self.since_heard > limit / CHECK_AFTER_PART
    }

    /// A question is sent, whose answer is about these entries too.
    fn on_asked(&mut self, now_ms: u64) {
        *self = Estimate { asked_ms: Some(now_ms), since_asked: 0, in_parts: 0, ..*self };
    }

    /// The answer to the question that was just sent will lack this many entries, which the switch gets later.
    pub fn on_waiting(&mut self, count: u32) {
        self.since_asked = self.since_asked.saturating_add(count);
    }

    /// Whether the switch has never reported its count.
    pub fn is_guess(&self) -> bool {
        self.heard_ms.is_none()
    }

    /// Takes the switch's answer, or a part of it.
    pub fn on_answer(&mut self, count: u32, more: bool, now_ms: u64) {
        if self.asked_ms.is_none() {
            return;
        }
        self.in_parts = self.in_parts.saturating_add(count);
        if !more {
            self.used = self.in_parts.saturating_add(self.since_asked);
            // The adds after the question are as uncertain as before.
            (self.since_heard, self.asked_ms, self.heard_ms) = (self.since_asked, None, Some(now_ms));
        }
    }

    /// The switch will not answer this question, or never got it. The kernel asks again after a second.
    pub fn on_no_answer(&mut self, now_ms: u64) {
        (self.asked_ms, self.heard_ms) = (None, Some(now_ms));
    }
}

/// Entries that may be added before the next look at the table: a look costs more than an add.
const LEASE_MAX: u32 = 256;

/// Entries that may be added to a switch before it reports its table sizes. When a switch connects, an app adds fewer.
/// The kernel decides all commands of one call of a trusted app before it can read an answer. It refuses further
/// entries until the switch answers.
const UNSIZED_MAX: u32 = 1 << 16;

/// After this many such entries, the app waits once for the answer. A small hardware table holds about as many.
const WAIT_AFTER: u32 = 1024;

/// The result of a lease: how many entries may be added, or why none may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lease {
    /// This many entries may be added.
    Granted(u32),
    /// This many entries may be added, and the kernel reports the fill level to the operator.
    Scarce {
        /// The number of entries.
        count: u32,
        /// Entries in the table, by estimate.
        used: u32,
        /// The operator's limit.
        limit: u32,
    },
    /// No entry may be added: the table has reached the operator's limit.
    Full {
        /// The limit.
        limit: u32,
        /// Whether to tell the operator now.
        tell: bool,
    },
    /// No entry may be added yet: the switch has not answered the question about its table sizes.
    Unsized,
}

/// How full a switch's tables are. A switch with few rules costs nothing: the kernel asks about a table after
/// `LEASE_MAX` adds.
#[derive(Clone, Debug, Default)]
pub struct Fill {
    adds: u32,
    /// Whether an app has already waited for the sizes. It waits once, so that a slow switch delays it only briefly.
    has_waited: bool,
    sizes: Sizes,
    /// The tables, by number; empty until the switch has reported its table sizes.
    tables: Vec<TableFill>,
    /// Whether a bundle is under way, so that the switch does not count all entries yet.
    is_in_bundle: bool,
    /// How many entries the hardware has for all tables together, by the operator's profile of the switch. Then the kernel asks for no
    /// sizes.
    hardware: Option<u32>,
}

/// How often the kernel asks a switch for its table sizes before it treats them as unknown. Until then it adds no more
/// than [`UNSIZED_MAX`] entries.
const SIZE_QUESTIONS_MAX: u32 = 3;

/// Whether the switch has reported its table sizes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Sizes {
    #[default]
    NotAsked,
    /// The kernel has asked `times` times, and asks again no sooner than `next_ms`.
    Asked { times: u32, next_ms: u64 },
    /// The switch has reported them.
    Known,
    /// The switch does not report them: it refused, ignored the question, or left every question unanswered.
    Unknown {
        /// Whether the operator knows.
        is_told: bool,
    },
}

/// The operator's limits for tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableRoom {
    /// Hundredths of a table's entries that may be used.
    pub percent: u8,
    /// The assumed size of a table whose size the switch does not report; `None`: no limit.
    pub entries_if_unknown: Option<u32>,
}

impl Default for TableRoom {
    /// Nine tenths: the rest is a reserve.
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

/// What the kernel does besides the lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asking {
    /// Ask the switch how many entries each table holds.
    TableSizes,
    /// Ask the switch how many entries each table has.
    TableCounts,
    /// Tell the operator that the switch does not say how large its tables are.
    TellUnknown,
    /// Let the app wait briefly: the switch is about to report its table sizes.
    Wait,
}

/// The interval at which the operator learns how full a table is.
const TELL_INTERVAL_MS: u64 = 1_000;

impl Fill {
    /// Call it before each added entry. `ask` receives the question for the switch, or the notice for the operator.
    pub fn lease(
        &mut self,
        table_id: u8,
        room: TableRoom,
        now_ms: u64,
        ask: &mut impl FnMut(Asking),
    ) -> Lease {
        if let (Some(entries), false) = (self.hardware, self.has_size(table_id)) {
            self.add_table(TableEntries { table_id, entries }, room.percent);
            // They are in one table, and counted there now.
            self.adds = 0;
        }
        if !self.has_size(table_id) {
            if let Some(lease) = self.lease_unsized(now_ms, ask) {
                return lease;
            }
            if let Some(entries) = room.entries_if_unknown {
                self.on_size(TableEntries { table_id, entries }, room.percent);
            }
        }
        let may_ask = !self.is_in_bundle;
        let in_others = self.in_other_tables(table_id);
        let Some(table) = self.tables.iter_mut().find(|table| table.table_id == table_id) else {
            self.adds = self.adds.saturating_add(LEASE_MAX);
            return Lease::Granted(LEASE_MAX);
        };
        let (limit, used) = (table.limit, table.entries.used().saturating_add(in_others));
        let is_scarce = used >= limit - limit / 10;
        let is_due = is_scarce || table.entries.is_guess() || table.entries.is_worth_a_check(limit);
        let asks = is_due && may_ask && table.entries.ask(limit, now_ms);
        let tell = is_scarce && now_ms >= table.tell_from_ms;
        if tell {
            table.tell_from_ms = now_ms + TELL_INTERVAL_MS;
        }
        if asks {
            ask(Asking::TableCounts);
            self.note_question(table_id, now_ms);
        }
        let count = (limit.saturating_sub(used) / 2).clamp(1, LEASE_MAX);
        if used >= limit {
            return Lease::Full { limit, tell };
        }
        self.add(table_id, count);
        if tell { Lease::Scarce { count, used, limit } } else { Lease::Granted(count) }
    }

    fn add(&mut self, table_id: u8, count: u32) {
        if let Some(table) = self.tables.iter_mut().find(|table| table.table_id == table_id) {
            table.entries.add(count);
        }
    }

    /// The switch is asked for the counts of all tables, because of this one.
    fn note_question(&mut self, table_id: u8, now_ms: u64) {
        if self.hardware.is_some() {
            let others = self.tables.iter_mut().filter(|table| table.table_id != table_id);
            others.for_each(|table| table.entries.on_asked(now_ms));
        }
    }

    /// The entries of the other tables, if they share the hardware with this one.
    fn in_other_tables(&self, table_id: u8) -> u32 {
        if self.hardware.is_none() {
            return 0;
        }
        let others = self.tables.iter().filter(|table| table.table_id != table_id);
        others.fold(0, |sum, table| sum.saturating_add(table.entries.used()))
    }

    /// The operator's profile says how many entries the hardware has for all tables together, or nothing any more.
    pub fn on_hardware(&mut self, entries: Option<u32>, percent: u8) {
        self.hardware = entries.filter(|entries| *entries > 0);
        if let Some(size) = self.hardware {
            let limit = part_of(size, percent);
            self.tables.iter_mut().for_each(|table| (table.size, table.limit) = (size, limit));
        } else {
            let used = |table: TableFill| table.entries.used();
            let in_tables = self.tables.drain(..).map(used).fold(0, u32::saturating_add);
            self.adds = self.adds.saturating_add(in_tables);
            self.sizes = Sizes::NotAsked;
        }
    }

    /// Whether a bundle is under way. Its entries are counted, and the switch would not count them: no question about counts is asked.
    pub fn be_in_bundle(&mut self, is_in_bundle: bool) {
        self.is_in_bundle = is_in_bundle;
    }

    /// The answer about counts will lack an entry of this table.
    pub fn on_waiting(&mut self, table_id: u8) {
        if let Some(table) = self.tables.iter_mut().find(|table| table.table_id == table_id) {
            table.entries.on_waiting(1);
        }
    }

    fn has_size(&self, table_id: u8) -> bool {
        self.tables.iter().any(|table| table.table_id == table_id)
    }

    /// The lease for a table of unknown size; `None` if the size will stay unknown.
    fn lease_unsized(&mut self, now_ms: u64, ask: &mut impl FnMut(Asking)) -> Option<Lease> {
        if self.adds >= LEASE_MAX {
            self.ask_for_sizes(now_ms, ask);
        }
        match self.sizes {
            // The switch reported nothing for this table, or a size of 0, which no table has.
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

    /// The kernel could not send the question about the table sizes. That is not the switch's fault, so the attempt
    /// does not count.
    pub fn on_sizes_unasked(&mut self, now_ms: u64) {
        if let Sizes::Asked { times, .. } = self.sizes {
            let (times, next_ms) = (times.saturating_sub(1), now_ms + ASK_INTERVAL_MS);
            self.sizes = Sizes::Asked { times, next_ms };
        }
    }

    /// Whether a question about the table sizes is open.
    pub fn is_asked_for_sizes(&self) -> bool {
        matches!(self.sizes, Sizes::Asked { .. })
    }

    /// The switch has reported its table sizes. A late answer counts too.
    pub fn on_sizes(&mut self) {
        self.sizes = Sizes::Known;
    }

    /// The switch does not report its table sizes.
    pub fn on_sizes_unknown(&mut self) {
        if matches!(self.sizes, Sizes::NotAsked | Sizes::Asked { .. }) {
            self.sizes = Sizes::Unknown { is_told: false };
        }
    }

    /// Returns the unused entries of a lease.
    pub fn give_back(&mut self, table_id: u8, count: u32) {
        self.adds = self.adds.saturating_sub(count);
        if let Some(table) = self.tables.iter_mut().find(|table| table.table_id == table_id) {
            table.entries.give_back(count);
        }
    }

    /// The switch removed an entry.
    pub fn on_removed(&mut self, table_id: u8) {
        if let Some(table) = self.tables.iter_mut().find(|table| table.table_id == table_id) {
            table.entries.remove();
        }
    }

    /// Takes the size of a table, and the percentage of it that may be used. A switch has at most 255 tables. If it
    /// names one twice, the last size counts.
    pub fn on_size(&mut self, fact: TableEntries, percent: u8) {
        if self.hardware.is_none() {
            self.add_table(fact, percent);
        }
    }

    fn add_table(&mut self, fact: TableEntries, percent: u8) {
        self.tables.retain(|table| table.table_id != fact.table_id);
        // All entries that were added may be in this table.
        let mut entries = Estimate::default();
        entries.add(self.adds);
        let table_id = fact.table_id;
        // A reported size of 0 means that the switch does not report the size.
        if fact.entries > 0 {
            let (limit, size) = (part_of(fact.entries, percent), fact.entries);
            self.tables.push(TableFill { table_id, limit, size, entries, tell_from_ms: 0 });
        }
    }

    /// The total size of the tables that the switch has reported; `None` if it has reported none.
    pub fn capacity(&self) -> Option<u64> {
        let sizes = self.tables.iter().map(|table| u64::from(table.size));
        (!self.tables.is_empty()).then(|| sizes.sum())
    }

    /// The switch will not answer the question about the counts, or never got it.
    pub fn on_no_counts(&mut self, now_ms: u64) {
        let asked = self.tables.iter_mut().filter(|table| table.entries.asked_ms.is_some());
        asked.for_each(|table| table.entries.on_no_answer(now_ms));
    }

    /// Takes the number of entries of a table.
    pub fn on_count(&mut self, fact: TableEntries, now_ms: u64) {
        if let Some(table) = self.tables.iter_mut().find(|table| table.table_id == fact.table_id) {
            table.entries.on_answer(fact.entries, false, now_ms);
        }
    }
}

/// How many of a table's entries may be used: one at least.
fn part_of(size: u32, percent: u8) -> u32 {
    // At most a hundred hundredths of a 32-bit number.
    ((u64::from(size) * u64::from(percent.min(100)) / 100) as u32).max(1)
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
    fn adds_that_repeat_rules_are_settled_long_before_the_limit_even_if_a_question_is_lost() {
        let mut fill = Fill::default();
        fill.on_size(TableEntries { table_id: 0, entries: 1_000_000 }, 90);
        fill.on_sizes();
        fill.on_count(TableEntries { table_id: 0, entries: 10 }, 0);
        let (mut open, mut most, mut questions) = (None, 0, 0);
        // A switch that is some 100,000 adds behind with its answers, and each third question is lost.
        for add in 0..40_000_u64 {
            let now_ms = add * 3;
            let (lease, asked) = lease(&mut fill, 0, now_ms);
            assert!(matches!(lease, Lease::Granted(LEASE_MAX)), "at {add}: {lease:?}");
            most = most.max(fill.tables[0].entries.used());
            if asked == [Asking::TableCounts] {
                questions += 1;
                open = Some((add + 400, questions % 3 == 0));
            }
            match open {
                Some((at, is_lost)) if at == add => {
                    open = None;
                    if is_lost {
                        fill.on_no_counts(now_ms);
                    } else {
                        fill.on_count(TableEntries { table_id: 0, entries: 10 }, now_ms);
                    }
                }
                _ => {}
            }
        }
        assert!((450_000..810_000).contains(&most) && questions < 60, "{most}, {questions}");
    }

    #[test]
    fn a_switch_that_does_not_answer_is_asked_again() {
        let mut estimate = Estimate::default();
        assert!(estimate.ask(10, 0) && !estimate.ask(10, ANSWER_TIMEOUT_MS - 1));
        assert!(estimate.ask(10, ANSWER_TIMEOUT_MS));
        estimate.on_no_answer(ANSWER_TIMEOUT_MS);
        assert!(!estimate.ask(10, ANSWER_TIMEOUT_MS + 1));
    }

    /// The result of a lease, and the questions.
    fn lease(fill: &mut Fill, table_id: u8, now_ms: u64) -> (Lease, Vec<Asking>) {
        lease_of(fill, table_id, now_ms, None)
    }

    /// The same, with the operator's assumed size for tables of unknown size.
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

    /// Adds entries until the fill asks to wait. Returns their number.
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
        // A late answer still counts.
        fill.on_size(TableEntries { table_id: 0, entries: 2_000 }, 90);
        fill.on_sizes();
        assert!(matches!(lease_of(&mut fill, 0, 0, Some(1_000)).0, Lease::Granted(_)));
        fill.on_sizes_unknown();
        assert_eq!(fill.sizes, Sizes::Known, "what came is not taken back");
    }

    #[test]
    fn with_a_profile_the_hardware_counts_for_all_tables_and_not_what_the_switch_says() {
        let mut fill = Fill::default();
        lease(&mut fill, 0, 0);
        fill.on_hardware(Some(1_000), 90);
        // A late answer about sizes changes nothing.
        (0..254).for_each(|table_id| fill.on_size(TableEntries { table_id, entries: 65_535 }, 90));
        let mut granted = LEASE_MAX;
        while let Lease::Granted(count) | Lease::Scarce { count, .. } =
            lease(&mut fill, (granted % 3) as u8, 0).0
        {
            granted += count;
            assert!(granted <= 900, "{granted}");
        }
        assert_eq!(granted, 900);
        // All tables are asked about at once, and what they say counts.
        let (full, asked) = lease(&mut fill, 2, ANSWER_TIMEOUT_MS);
        assert_eq!((full, asked), (Lease::Full { limit: 900, tell: true }, vec![Asking::TableCounts]));
        (0..3).for_each(|table_id| {
            fill.on_count(TableEntries { table_id, entries: 100 }, ANSWER_TIMEOUT_MS);
        });
        assert_eq!(lease(&mut fill, 2, ANSWER_TIMEOUT_MS).0, Lease::Granted(LEASE_MAX));
        // The answer lacks what waits for a slow switch.
        assert_eq!(lease(&mut fill, 2, 3 * ANSWER_TIMEOUT_MS).1, [Asking::TableCounts; 0]);
        fill.tables.iter_mut().for_each(|table| table.entries.on_asked(3 * ANSWER_TIMEOUT_MS));
        (0..150).for_each(|_| fill.on_waiting(1));
        (0..3).for_each(|table_id| {
            fill.on_count(TableEntries { table_id, entries: 100 }, 3 * ANSWER_TIMEOUT_MS);
        });
        assert_eq!(fill.in_other_tables(9), 450);
        // Without the profile, the switch is asked again how large its tables are.
        fill.on_hardware(None, 90);
        assert_eq!(lease(&mut fill, 2, ANSWER_TIMEOUT_MS).1, [Asking::TableSizes]);
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
        // The twenty entries that the switch counted, and the forty-five that are on their way.
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
