//! Which rules one switch has and their owners, and what it is asked if that is not known.
//!
//! ```text
//!   add, strict command ──> Record::known ──> the asker's, another's (refused; Sought: has the switch it still?), or not there
//!         └── not there ──> Record::room ──> may be noted, or there are too many (refused; the switch is asked for all of its rules)
//! ```
//!
//! An add replaces the equal rule of any owner (OpenFlow 1.3.5, 6.4), and no cookie prevents that. So the kernel keeps the owner of every
//! rule of a switch, exactly: what the switch had when it came up it said ([`crate::rule_report`]), and what was sent since then was noted.
//!
//! Rules are removed without a report: a time-out needs none, and a loose delete names no rule. So a record holds what
//! is in the switch and more. Of one rule the
//! switch is asked when somebody is refused for it, once a second at most. Of all it is asked when the record has grown a lot: what the switch does
//! not have any more is forgotten. A record holds no more rules than `Record::bound_to` says; at that bound adds of rules that are not in it are
//! refused until the switch has answered.
//!
//! In: commands that were sent, and what the switch says. Out: an owner, and what is to be asked. Never sends anything.

use crate::rule_key::RuleKey;
use crate::rules::{Age, Known, Owner, Rules, Slot};
use crate::zone_set::ZoneSet;
use abi::ZoneId;

/// Rules of one switch that are known at most, where the operator does not say. As eight bytes each, in a table of which three eighths to three
/// quarters are used, they are 16 MiB.
pub const RULES_PER_SWITCH: u32 = 1 << 20;

/// A switch may have more in its record than its tables hold: rules that timed out are not known to be gone. So many times as many, and at least
/// [`RECORD_MIN`], so that a small switch is not asked all the time.
const RECORD_PER_ENTRY: usize = 2;
const RECORD_MIN: usize = 4_096;

/// From so many rules on a switch is asked which of them it has. Below, what is gone costs less memory than the question costs time.
const SWEEP_FROM: usize = 16_384;

/// A switch is asked about a rule as often as this, and about all of them.
const SEEK_INTERVAL_MS: u64 = 1_000;

/// Whether one more rule may be noted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Room {
    /// It may.
    pub is_free: bool,
    /// The switch is to be asked for all of its rules now.
    pub ask: bool,
}

/// The rules of one switch.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    rules: Rules,
    pub sought: Sought,
    /// Zones of which some rules may have been removed without a report, beyond what times out.
    unsure: ZoneSet,
    bound: usize,
    sweep: Sweep,
}

/// The question for all rules.
#[derive(Clone, Debug, Default)]
struct Sweep {
    /// How many rules there are when it is put.
    from: usize,
    not_before_ms: u64,
    /// Whether its answer is awaited.
    is_open: bool,
    /// Whether a sweep of the rules has begun. One that got no answer goes on with the next question.
    has_begun: bool,
    /// Whose rules have become unsure since it was put.
    unsure_since: ZoneSet,
}

impl Default for Record {
    fn default() -> Record {
        let mut record = Record {
            rules: Rules::default(),
            sought: Sought::default(),
            unsure: ZoneSet::EMPTY,
            bound: 0,
            sweep: Sweep::default(),
        };
        record.bound_to(None, RULES_PER_SWITCH);
        record
    }
}

impl Record {
    /// The switch says that its tables hold so many entries, and no more than `most` may be known, whatever it says.
    pub fn bound_to(&mut self, entries: Option<u64>, most: u32) {
        let most = most as usize;
        let held = entries.map(|entries| usize::try_from(entries).unwrap_or(usize::MAX));
        let bound = held.map_or(most, |held| held.saturating_mul(RECORD_PER_ENTRY).max(RECORD_MIN));
        self.bound = bound.min(most);
        self.sweep.from = self.next_sweep();
    }

    /// What is known of a rule.
    #[inline]
    pub fn known(&self, key: RuleKey) -> Option<Known> {
        let known = self.rules.known(key)?;
        let is_unsure = matches!(known.owner, Owner::Zone(zone) if self.unsure.contains(zone));
        Some(Known { is_sure: known.is_sure && !is_unsure, ..known })
    }

    /// Whether a rule that is not known may be added.
    #[inline]
    pub fn room(&mut self, now_ms: u64) -> Room {
        if self.rules.len() < self.sweep.from {
            return Room { is_free: true, ask: false };
        }
        self.little_room(now_ms)
    }

    #[cold]
    fn little_room(&mut self, now_ms: u64) -> Room {
        let ask = !self.sweep.is_open && now_ms >= self.sweep.not_before_ms;
        if ask {
            self.begin_sweep(now_ms);
        }
        Room { is_free: self.rules.len() < self.bound, ask }
    }

    /// A rule is on its way to the switch, and this zone's from then on. `stays`: until its end is reported.
    #[inline]
    pub fn note(&mut self, key: RuleKey, zone: ZoneId, stays: bool, age: Age) {
        self.rules.note(key, Owner::Zone(zone), stays, age);
        // An answer that is under way may be older than this rule.
        if self.sought.wanted().is_some() {
            self.sought.on_rule(key);
        }
    }

    /// Whether a search in it waits for memory.
    #[inline]
    pub fn is_large(&self) -> bool {
        self.rules.is_large()
    }

    /// What stands where the search for a rule begins.
    #[inline]
    pub fn first_place(&self, key: RuleKey) -> u64 {
        self.rules.first_place(key)
    }

    /// Where a rule of this zone's is, or may be written down without more ado. `None`: it is another's, or there is little room.
    // A slot that is returned through memory is read again before it is there: a few nanoseconds of each rule.
    #[inline(always)]
    pub fn slot(&self, key: RuleKey, zone: ZoneId) -> Option<Slot> {
        let mut slot = self.rules.slot(key, Owner::Zone(zone))?;
        slot.is_sure &= !self.unsure.contains(zone);
        (slot.is_known || self.rules.len() < self.sweep.from).then_some(slot)
    }

    /// A rule is on its way to the switch, as [`Self::note`], with where [`Self::slot`] has found it.
    #[inline]
    pub fn note_at(&mut self, slot: Slot, key: RuleKey, zone: ZoneId, stays: bool, age: Age) {
        if !self.rules.note_at(slot, key, Owner::Zone(zone), stays, age) || self.sought.wanted().is_some() {
            self.note_anywhere(key, zone, stays, age);
        }
    }

    #[cold]
    fn note_anywhere(&mut self, key: RuleKey, zone: ZoneId, stays: bool, age: Age) {
        self.note(key, zone, stays, age);
    }

    /// The switch says that it has a rule. What more there is than may be known is passed over: then there is no room for a rule that is not known.
    pub fn find(&mut self, key: RuleKey, owner: Owner, stays: bool, now_ms: u64) {
        if !self.rules.find(key) && self.rules.len() < self.bound {
            self.rules.note(key, owner, stays, Age::before(now_ms));
        }
    }

    /// A command that deletes a rule is on its way to the switch, if it was this one's.
    pub fn forget(&mut self, key: RuleKey, owner: Owner) {
        self.rules.forget(key, owner);
    }

    /// The switch says that it has removed a rule of this one's.
    pub fn on_removed(&mut self, key: RuleKey, owner: Owner, now_ms: u64) {
        self.rules.on_removed(key, owner, now_ms);
    }

    /// Some rules of this zone, or of any zone if it is `None`, may be gone, or may never have been in the switch, and nobody says which.
    pub fn doubt(&mut self, zone: Option<ZoneId>) {
        let zones = zone.map_or_else(ZoneSet::all, ZoneSet::only);
        self.unsure.union_with(&zones);
        self.sweep.unsure_since.union_with(&zones);
    }

    fn begin_sweep(&mut self, now_ms: u64) {
        if !self.sweep.has_begun {
            self.rules.begin_sweep();
        }
        self.sweep = Sweep {
            from: self.sweep.from,
            not_before_ms: now_ms + SEEK_INTERVAL_MS,
            is_open: true,
            has_begun: true,
            unsure_since: ZoneSet::EMPTY,
        };
    }

    /// Whether an answer with all rules is awaited.
    pub fn is_swept(&self) -> bool {
        self.sweep.is_open
    }

    /// The answer with all rules is whole: what was not in it, and was not added since the question, is gone.
    pub fn end_sweep(&mut self) {
        if !self.sweep.is_open {
            return;
        }
        self.rules.end_sweep();
        self.unsure.clone_from(&self.sweep.unsure_since);
        (self.sweep.is_open, self.sweep.has_begun) = (false, false);
        self.sweep.from = self.next_sweep();
    }

    /// There is no answer this time. What was seen stays seen for the next.
    pub fn on_not_swept(&mut self) {
        self.sweep.is_open = false;
    }

    /// When the record is twice as long as it is, but in time before it is full.
    fn next_sweep(&self) -> usize {
        let length = self.rules.len();
        let half_way = length.saturating_add(self.bound) / 2;
        length.saturating_mul(2).max(SWEEP_FROM).min(half_way).min(self.bound)
    }
}

/// A rule of which a switch is asked whether it has it.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// Its table.
    pub table_id: u8,
    /// The zone whose it was; `None`: no zone's.
    pub zone: Option<ZoneId>,
    /// Its match as canonical bytes.
    pub matching: Vec<u8>,
    key: RuleKey,
}

impl Wanted {
    fn owner(&self) -> Owner {
        self.zone.map_or(Owner::Foreign, Owner::Zone)
    }
}

/// What a switch is asked about single rules: of one at a time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sought {
    wanted: Option<Wanted>,
    is_there: bool,
    asked_ms: Option<u64>,
}

impl Sought {
    /// Whether it is time to ask about this rule; if so, it is taken to be asked now. While a question is open, there
    /// is no other, since the answer does not say to which question it belongs. The caller must end every question, by
    /// an answer or by [`Self::on_no_answer`].
    pub fn seek(&mut self, key: RuleKey, table_id: u8, owner: Owner, matching: &[u8], now_ms: u64) -> bool {
        let is_soon = self.asked_ms.is_some_and(|asked| now_ms.saturating_sub(asked) < SEEK_INTERVAL_MS);
        if is_soon || self.wanted.is_some() {
            return false;
        }
        let zone = match owner {
            Owner::Zone(zone) => Some(zone),
            Owner::Foreign => None,
        };
        let wanted = Wanted { table_id, zone, matching: matching.to_vec(), key };
        *self = Sought { wanted: Some(wanted), is_there: false, asked_ms: Some(now_ms) };
        true
    }

    /// What is asked about.
    pub fn wanted(&self) -> Option<&Wanted> {
        self.wanted.as_ref()
    }

    /// The switch has this rule, or has just been given it.
    pub fn on_rule(&mut self, key: RuleKey) {
        self.is_there |= self.wanted.as_ref().is_some_and(|wanted| wanted.key == key);
    }

    /// The answer is whole: the rule that is not there any more, and whose it was.
    pub fn on_end(&mut self) -> Option<(RuleKey, Owner)> {
        let wanted = self.wanted.take()?;
        (!self.is_there).then(|| (wanted.key, wanted.owner()))
    }

    /// There is no answer this time.
    pub fn on_no_answer(&mut self) {
        self.wanted = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rule_key::mixed;

    const ZONE: ZoneId = ZoneId(1);
    const ONE: Owner = Owner::Zone(ZONE);

    fn key(number: u64) -> RuleKey {
        RuleKey(mixed(number))
    }

    /// Notes rules until there is no room: the numbers of the first that was refused, and of those at which the switch was to be asked.
    fn fill(record: &mut Record, from: u64, now_ms: u64) -> (u64, Vec<u64>) {
        let mut asked = Vec::new();
        for number in from.. {
            let room = record.room(now_ms);
            if room.ask {
                asked.push(number);
            }
            if !room.is_free {
                return (number, asked);
            }
            record.note(key(number), ZONE, true, Age::at(now_ms));
        }
        unreachable!("numbers do not end")
    }

    #[test]
    fn a_record_that_has_grown_is_compared_with_the_switch_and_a_full_one_takes_no_more() {
        let mut record = Record::default();
        record.bound_to(Some(20_000), RULES_PER_SWITCH);
        assert_eq!(fill(&mut record, 0, 0), (40_000, vec![SWEEP_FROM as u64]));
        assert_eq!(record.room(5_000), Room { is_free: false, ask: false }, "it is asked already");
        (0..10_000).for_each(|number| record.find(key(number), ONE, true, 0));
        record.end_sweep();
        // What was added since the question is there, answer or not.
        assert_eq!(record.rules.len(), 10_000 + 40_000 - SWEEP_FROM);
        let (refused, asked) = fill(&mut record, 100_000, 5_000);
        assert_eq!((record.rules.len(), asked.len()), (40_000, 1));
        assert_eq!(refused - 100_000, 40_000 - (10_000 + 40_000 - SWEEP_FROM as u64));
    }

    #[test]
    fn a_switch_that_does_not_answer_is_asked_again_and_forgets_nothing() {
        let mut record = Record::default();
        record.bound_to(None, 100);
        assert_eq!(fill(&mut record, 0, 0), (100, vec![50]));
        record.on_not_swept();
        assert_eq!(record.room(SEEK_INTERVAL_MS - 1), Room { is_free: false, ask: false });
        assert_eq!(record.room(SEEK_INTERVAL_MS), Room { is_free: false, ask: true });
        record.end_sweep();
        // Those that came after the first question stay: nobody knows whether the second answer could hold them.
        assert_eq!(record.rules.len(), 50);
        assert!(record.room(SEEK_INTERVAL_MS).is_free);
        record.end_sweep();
        assert_eq!(record.rules.len(), 50, "nobody asked");
    }

    #[test]
    fn a_small_switch_is_not_asked_all_the_time() {
        let mut record = Record::default();
        record.bound_to(Some(100), RULES_PER_SWITCH);
        assert_eq!(fill(&mut record, 0, 0), (RECORD_MIN as u64, vec![RECORD_MIN as u64 / 2]));
    }

    #[test]
    fn a_switch_that_says_more_than_may_be_known_is_not_believed() {
        let mut record = Record::default();
        record.bound_to(None, 10);
        (0..100).for_each(|number| record.find(key(number), ONE, true, 0));
        assert_eq!((record.rules.len(), record.room(0).is_free), (10, false));
    }

    #[test]
    fn of_a_zone_in_doubt_no_rule_is_sure_until_the_switch_has_said_all() {
        let mut record = Record::default();
        record.bound_to(None, 100);
        let other = ZoneId(2);
        record.note(key(1), ZONE, true, Age::at(0));
        record.note(key(2), other, true, Age::at(0));
        record.note(key(3), other, false, Age::at(0));
        let sure = |record: &Record| [1, 2, 3].map(|it| record.known(key(it)).is_some_and(|it| it.is_sure));
        assert_eq!(sure(&record), [true, true, false]);
        record.doubt(Some(ZONE));
        assert_eq!(sure(&record), [false, true, false]);
        fill(&mut record, 1_000, 0);
        record.doubt(Some(other));
        (1..4).for_each(|number| record.find(key(number), ONE, true, 0));
        record.end_sweep();
        assert_eq!(
            sure(&record),
            [true, false, false],
            "the answer says nothing of what came after the question"
        );
    }

    #[test]
    fn a_switch_is_asked_about_one_rule_at_a_time_and_seldom() {
        let mut sought = Sought::default();
        let seek = |sought: &mut Sought, number, now_ms| sought.seek(key(number), 0, ONE, &[], now_ms);
        assert!(seek(&mut sought, 1, 0) && !seek(&mut sought, 2, 5_000));
        sought.on_rule(key(2));
        assert_eq!(sought.on_end(), Some((key(1), ONE)));
        assert!(seek(&mut sought, 2, 5_000) && !seek(&mut sought, 1, 5_900));
        sought.on_rule(key(2));
        assert_eq!(sought.on_end(), None);
        assert!(!seek(&mut sought, 1, 5_999) && seek(&mut sought, 1, 6_000));
        assert!(!seek(&mut sought, 2, 600_000), "an answer that is late would be taken for that of another");
        sought.on_no_answer();
        assert!(seek(&mut sought, 2, 600_000));
    }
}
