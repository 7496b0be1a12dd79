//! The rules of one switch and their owners, and the questions to the switch about unknown ones.
//!
//! ```text
//!   add, strict command ──> Record::known ──> the asker's, another's (refused; Sought: has the switch it still?), or not there
//!         └── not there ──> Record::room ──> may be noted, or there are too many (refused; the switch is asked for all of its rules)
//! ```
//!
//! An add replaces an equal rule of any owner (OpenFlow 1.3.5, 6.4), and no cookie prevents that. So the kernel keeps
//! the exact owner of every rule of a switch. The switch reports its rules when it connects ([`crate::rule_report`]),
//! and the kernel records the commands since then.
//!
//! Some rules end without a report: a time-out needs none, and a loose delete names no rule. So a record contains the
//! switch's rules, and possibly ended ones. If the kernel refuses a command because of a rule, it asks the switch about
//! that rule, at most once a second. If the record has grown a lot, it asks for all rules and forgets the ended ones. A
//! record holds no more rules than `Record::bound_to` allows. At that bound, the kernel refuses adds of unknown rules
//! until the switch has answered.
//!
//! In: commands that were sent, and the switch's answers. Out: an owner, and questions. It never sends anything.

use crate::rule_key::RuleKey;
use crate::rules::{Age, Known, Owner, Rules, Slot};
use crate::zone_set::ZoneSet;
use abi::ZoneId;

/// The default bound of known rules of one switch. A rule takes eight bytes, in a table of which three eighths to three
/// quarters are used. So they take 16 MiB.
pub const RULES_PER_SWITCH: u32 = 1 << 20;

/// A record may hold more rules than the switch's tables, because timed-out rules remain in it: this many times as
/// many, and at least [`RECORD_MIN`]. So a small switch is not asked all the time.
const RECORD_PER_ENTRY: usize = 2;
const RECORD_MIN: usize = 4_096;

/// With this many rules, the kernel starts to ask a switch which of them it still has. Below, ended rules cost less
/// memory than the question costs time.
const SWEEP_FROM: usize = 16_384;

/// The interval of questions about one rule, and of questions about all rules.
const SEEK_INTERVAL_MS: u64 = 1_000;

/// A question about a rule for all packets is answered with all rules of its owner. So the next one comes later: a millisecond
/// for so many rules. An app can cause a question each time.
const REPORTED_PER_MS: u64 = 10;

/// Whether the record has space for one more rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Room {
    /// Whether it has space.
    pub is_free: bool,
    /// Whether to ask the switch for all of its rules now.
    pub ask: bool,
}

/// The rules of one switch.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    rules: Rules,
    pub sought: Sought,
    /// Zones of which some rules may have been removed without a report, other than by time-out.
    unsure: ZoneSet,
    bound: usize,
    sweep: Sweep,
    /// How many bundles are under way to the switch: see [`Record::begin_bundle`].
    bundles: u32,
}

/// The question for all rules.
#[derive(Clone, Debug, Default)]
struct Sweep {
    /// The number of rules at which the kernel asks.
    from: usize,
    not_before_ms: u64,
    /// Whether its answer is pending.
    is_open: bool,
    /// Whether a sweep of the rules has begun. If it got no answer, it continues with the next question.
    has_begun: bool,
    /// The zones whose rules became uncertain since the question.
    unsure_since: ZoneSet,
    /// Whether a bundle was under way at the question: the answer may lack rules that the switch has later.
    is_in_bundle: bool,
}

impl Default for Record {
    fn default() -> Record {
        let mut record = Record {
            rules: Rules::default(),
            sought: Sought::default(),
            unsure: ZoneSet::EMPTY,
            bound: 0,
            sweep: Sweep::default(),
            bundles: 0,
        };
        record.bound_to(None, RULES_PER_SWITCH);
        record
    }
}

impl Record {
    /// Sets the bound: from the entries that the switch's tables hold, but at most `most`.
    pub fn bound_to(&mut self, entries: Option<u64>, most: u32) {
        let most = most as usize;
        let held = entries.map(|entries| usize::try_from(entries).unwrap_or(usize::MAX));
        let bound = held.map_or(most, |held| held.saturating_mul(RECORD_PER_ENTRY).max(RECORD_MIN));
        self.bound = bound.min(most);
        self.sweep.from = self.next_sweep();
    }

    /// Whether it has any rule.
    pub fn has_any(&self) -> bool {
        self.rules.len() > 0
    }

    /// The record of a rule.
    #[inline]
    pub fn known(&self, key: RuleKey) -> Option<Known> {
        let known = self.rules.known(key)?;
        let is_unsure = matches!(known.owner, Owner::Zone(zone) if self.unsure.contains(zone));
        Some(Known { is_sure: known.is_sure && !is_unsure, ..known })
    }

    /// Whether an unknown rule may be added.
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

    /// The rule was sent to the switch, and belongs to this zone from now on. `stays`: until its end is reported.
    #[inline]
    pub fn note(&mut self, key: RuleKey, zone: ZoneId, stays: bool, age: Age) {
        self.rules.note(key, Owner::Zone(zone), stays, age);
        // A pending answer may be older than this rule.
        if self.sought.wanted().is_some() {
            self.sought.on_rule(key);
        }
    }

    /// Whether a search in the record waits for memory, if this many switches have such a record.
    #[inline]
    pub fn is_large(&self, switches: usize) -> bool {
        self.rules.is_large(switches)
    }

    /// Fetches the first entry that the search for a rule reads into the processor's cache.
    #[inline]
    pub fn fetch(&self, key: RuleKey) {
        self.rules.fetch(key);
    }

    /// The place of this zone's rule, or a free place for it. `None`: another zone owns the rule, or there is little
    /// space.
    // A return value in memory would be read back before it is written: a few nanoseconds per rule.
    #[inline(always)]
    pub fn slot(&self, key: RuleKey, zone: ZoneId) -> Option<Slot> {
        let mut slot = self.rules.slot(key, Owner::Zone(zone))?;
        slot.is_sure &= !self.unsure.contains(zone);
        (slot.is_known || self.rules.len() < self.sweep.from).then_some(slot)
    }

    /// The rule was sent to the switch, like [`Self::note`], with the place that [`Self::slot`] found.
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

    /// The switch reports a rule. If the record is full, the rule is ignored, and the record has no space for unknown
    /// rules.
    pub fn find(&mut self, key: RuleKey, owner: Owner, stays: bool, now_ms: u64) {
        if !self.rules.find(key) && self.rules.len() < self.bound {
            self.rules.note(key, owner, stays, Age::before(now_ms));
        }
    }

    /// An answer that is pending will lack this rule, which the switch gets later.
    pub fn on_waiting(&mut self, key: RuleKey) {
        self.rules.find(key);
        self.sought.on_rule(key);
    }

    /// A bundle begins. Its flow mods are recorded like others, and the switch applies them later, or never. Until it is over, a rule
    /// that leaves the switch may come back by the bundle. So no rule leaves the record, and its owner's rules become uncertain instead.
    pub fn begin_bundle(&mut self) {
        self.bundles += 1;
    }

    /// A bundle is over: applied, refused, or given up before its commit was sent.
    pub fn end_bundle(&mut self) {
        self.bundles = self.bundles.saturating_sub(1);
    }

    /// Whether a bundle is under way.
    pub fn is_in_bundle(&self) -> bool {
        self.bundles > 0
    }

    /// Whether to ask about this rule now, as [`Sought::seek`] says. An answer during a bundle may lack rules that the switch has
    /// later, so it ends no rule.
    pub fn seek(&mut self, key: RuleKey, table_id: u8, owner: Owner, matching: &[u8], now_ms: u64) -> bool {
        let is_asked = self.sought.seek(key, table_id, owner, matching, now_ms);
        if is_asked && self.bundles > 0 {
            self.sought.on_rule(key);
        }
        is_asked
    }

    /// A command that deletes this owner's rule was sent to the switch.
    pub fn forget(&mut self, key: RuleKey, owner: Owner) {
        if !self.is_kept(owner) {
            self.rules.forget(key, owner);
        }
    }

    /// The switch reports that it removed a rule of this owner.
    pub fn on_removed(&mut self, key: RuleKey, owner: Owner, now_ms: u64) {
        if !self.is_kept(owner) {
            self.rules.on_removed(key, owner, now_ms);
        }
    }

    /// Whether a rule of this owner stays in the record though it is gone. Then no rule of this owner is certain.
    #[inline]
    fn is_kept(&mut self, owner: Owner) -> bool {
        if self.bundles > 0
            && let Owner::Zone(zone) = owner
        {
            self.doubt(Some(zone));
        }
        self.bundles > 0
    }

    /// Some rules of this zone, or of any zone if it is `None`, may not be in the switch. It is not known which.
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
            is_in_bundle: self.bundles > 0,
        };
    }

    /// Whether an answer with all rules is pending.
    pub fn is_swept(&self) -> bool {
        self.sweep.is_open
    }

    /// The answer with all rules is complete. A rule that was neither in it nor added since the question is gone.
    pub fn end_sweep(&mut self) {
        if !self.sweep.is_open {
            return;
        }
        if self.sweep.is_in_bundle || self.bundles > 0 {
            return self.on_not_swept();
        }
        self.rules.end_sweep();
        self.unsure.clone_from(&self.sweep.unsure_since);
        (self.sweep.is_open, self.sweep.has_begun) = (false, false);
        self.sweep.from = self.next_sweep();
    }

    /// The switch did not answer. The rules that it already reported still count for the next answer.
    pub fn on_not_swept(&mut self) {
        self.sweep.is_open = false;
    }

    /// The size of the next sweep: twice the present size, but before the record is full.
    fn next_sweep(&self) -> usize {
        let length = self.rules.len();
        let half_way = length.saturating_add(self.bound) / 2;
        length.saturating_mul(2).max(SWEEP_FROM).min(half_way).min(self.bound)
    }
}

/// A rule about which the kernel asks a switch.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// Its table.
    pub table_id: u8,
    /// The zone that owned it; `None`: no zone.
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

/// The questions about single rules: one at a time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sought {
    wanted: Option<Wanted>,
    is_there: bool,
    asked_ms: Option<u64>,
    /// How many rules the last answer has had.
    reported: u64,
}

impl Sought {
    /// Whether to ask about this rule now. If so, the question counts as sent. Only one question is open at a time,
    /// because an answer does not identify its question. The caller must end every question, by an answer or by
    /// [`Self::on_no_answer`].
    pub fn seek(&mut self, key: RuleKey, table_id: u8, owner: Owner, matching: &[u8], now_ms: u64) -> bool {
        let interval_ms = SEEK_INTERVAL_MS + self.reported / REPORTED_PER_MS;
        let is_soon = self.asked_ms.is_some_and(|asked| now_ms.saturating_sub(asked) < interval_ms);
        !is_soon && self.seek_at_once(key, table_id, owner, matching, now_ms)
    }

    /// The same for a question that no app has caused: it does not wait until some time after the last one.
    pub fn seek_at_once(
        &mut self,
        key: RuleKey,
        table_id: u8,
        owner: Owner,
        matching: &[u8],
        now_ms: u64,
    ) -> bool {
        if self.wanted.is_some() {
            return false;
        }
        let zone = match owner {
            Owner::Zone(zone) => Some(zone),
            Owner::Foreign => None,
        };
        let wanted = Wanted { table_id, zone, matching: matching.to_vec(), key };
        *self = Sought { wanted: Some(wanted), is_there: false, asked_ms: Some(now_ms), reported: 0 };
        true
    }

    /// The rule of the open question.
    pub fn wanted(&self) -> Option<&Wanted> {
        self.wanted.as_ref()
    }

    /// The switch reports this rule.
    pub fn on_reported(&mut self, key: RuleKey) {
        self.reported += 1;
        self.on_rule(key);
    }

    /// The switch reports this rule, or the kernel has just sent it.
    pub fn on_rule(&mut self, key: RuleKey) {
        self.is_there |= self.wanted.as_ref().is_some_and(|wanted| wanted.key == key);
    }

    /// The answer is complete: returns the rule if it is gone, and its former owner.
    pub fn on_end(&mut self) -> Option<(RuleKey, Owner)> {
        let wanted = self.wanted.take()?;
        (!self.is_there).then(|| (wanted.key, wanted.owner()))
    }

    /// The switch did not answer.
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

    /// Adds rules until the record is full. Returns the first refused number, and the numbers at which the switch was
    /// to be asked.
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
        // Rules that were added since the question remain, with or without an answer.
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
        // Rules added after the first question stay: the second answer may be too old to contain them.
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
    fn a_rule_that_waits_for_a_slow_switch_is_not_missing_in_its_answer() {
        let mut record = Record::default();
        record.bound_to(None, 100);
        record.note(key(1), ZONE, true, Age::at(0));
        record.note(key(2), ZONE, true, Age::at(0));
        fill(&mut record, 1_000, 0);
        assert!(record.seek(key(1), 0, ONE, &[], 0));
        record.on_waiting(key(1));
        assert_eq!(record.sought.on_end(), None);
        record.end_sweep();
        assert!(record.known(key(1)).is_some() && record.known(key(2)).is_none());
        // What is not recorded does not come into the record.
        record.on_waiting(key(77));
        assert!(record.known(key(77)).is_none());
    }

    #[test]
    fn during_a_bundle_no_rule_leaves_the_record() {
        let mut record = Record::default();
        record.bound_to(None, 100);
        let other = ZoneId(2);
        record.note(key(1), ZONE, true, Age::before(0));
        record.note(key(2), other, true, Age::before(0));
        record.begin_bundle();
        record.forget(key(1), ONE);
        record.on_removed(key(1), ONE, 60_000);
        assert_eq!(record.known(key(1)), Some(Known { owner: ONE, is_sure: false }));
        assert!(record.known(key(2)).is_some_and(|known| known.is_sure), "it is another's");
        // An answer about a rule, and one about all rules, that was asked for during the bundle.
        assert!(record.seek(key(2), 0, Owner::Zone(other), &[], 0));
        fill(&mut record, 1_000, 0);
        record.end_bundle();
        assert_eq!(record.sought.on_end(), None);
        record.end_sweep();
        assert!(record.known(key(1)).is_some() && record.known(key(2)).is_some());
        record.forget(key(1), ONE);
        assert_eq!(record.known(key(1)), None);
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
