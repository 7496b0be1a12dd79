//! Protects the rules of apps that share priorities: no app shadows the rules of an app that precedes it in the
//! operator's order.
//!
//! ```text
//!   add of an app ──> does it match packets of a rule of another app, at a priority that decides between them?
//!       the other app comes before it, and its rule would lose ──> refused (OrderRefused::Shadows)
//!       the other app comes after it, and its rule would win   ──> that rule is evicted (Eviction)
//!       neither                                                ──> it passes
//! ```
//!
//! The operator's order is that of `[apps] order`, then that of the apps' entries. If all priorities of an app lie
//! below those of every earlier app, it can shadow none of them. The kernel does not compare its rules or keep them. So
//! disjoint priority bands cost nothing. The kernel compares only apps that may conflict, rule by rule
//! (`crate::overlap`). Of such an app, it compares only the rules whose priorities can decide against another app
//! (`Contest`).
//!
//! If a rule matches every packet that an earlier app wants to receive, that app receives nothing. The kernel refuses
//! such a rule too ([`OrderRefused::Blinds`]), or evicts it if these packets reach its table only later (`crate::wide`). A
//! rule that passes the packets on unchanged to a later table may stay, if all rules of the earlier app have a higher
//! priority.
//!
//! In: adds, and the rules that switches report. Out: refusals, and rules to evict. It never sends anything. It neither
//! refuses nor evicts rules of an app that holds `rule.write.others`.

use crate::bounds::{ALL_TABLES, Scratch};
use crate::capability::Capability;
use crate::datapaths::Datapaths;
use crate::decision::{Effect, OrderRefused, Refusal};
use crate::grant::{Bounds, Grant, TableSet};
use crate::overlap::{COMPARED_MAX, Overlaps, Placed, Table};
use crate::receivers::Receivers;
use crate::rule_key::RuleKey;
use crate::rules::Owner;
use crate::wide::{Wide, WideRules};
use crate::zone_set::ZoneSet;
use crate::zones::Zone;
use abi::ZoneId;
use abi::command::FlowMod;
use flow::canonical::{read_match, read_match_into, write_match};
use flow::{DatapathId, Match};

/// The reaction to a rule that would shadow a rule of an earlier app.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnOverlap {
    /// The kernel refuses it; it evicts a rule that is already in the switch.
    #[default]
    Refuse,
    /// The kernel accepts it, and tells the operator.
    Report,
}

/// A rule to evict in favour of an earlier app's rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Eviction {
    /// The switch.
    pub datapath: DatapathId,
    /// Its table; OpenFlow 1.0 has only one.
    pub table_id: u8,
    /// Its priority.
    pub priority: u16,
    /// Its match as canonical bytes.
    pub matching: Vec<u8>,
    /// Its owner.
    pub owner: ZoneId,
    /// The owner of the rule that it would have shadowed, or the app that would have received no packet.
    pub for_zone: ZoneId,
    /// Whether that app would have received no packet.
    pub takes_all: bool,
    pub(crate) key: RuleKey,
}

/// How many rules one command may evict. A command that would evict more is refused: its app cannot empty a whole table
/// at once.
pub const EVICTIONS_MAX: usize = 256;

/// The interval of notices about rules that shadow others.
const TELL_INTERVAL_MS: u64 = 1_000;

/// Where an app may write rules, as far as it affects others.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Territory {
    rank: u16,
    lowest: u16,
    highest: u16,
    tables: Option<TableSet>,
    datapaths: Option<Vec<DatapathId>>,
}

impl Territory {
    fn of(grant: &Grant) -> Territory {
        let Bounds { priorities, tables, datapaths, .. } = grant.rules();
        Territory {
            rank: grant.rank(),
            lowest: *priorities.start(),
            highest: *priorities.end(),
            tables: *tables,
            datapaths: datapaths.clone(),
        }
    }

    /// This one, with the priorities of an earlier grant of the same app: rules from that time are still in the switches.
    fn with_priorities_of(self, earlier: &Territory) -> Territory {
        let (lowest, highest) = (self.lowest.min(earlier.lowest), self.highest.max(earlier.highest));
        Territory { lowest, highest, ..self }
    }

    /// Whether the two have a table of a switch in common.
    fn meets(&self, other: &Territory) -> bool {
        let tables = match (&self.tables, &other.tables) {
            (Some(these), Some(those)) => these.meets(those),
            _ => true,
        };
        let datapaths = match (&self.datapaths, &other.datapaths) {
            (Some(these), Some(those)) => these.iter().any(|it| those.contains(it)),
            _ => true,
        };
        tables && datapaths
    }
}

/// The priorities at which a zone's rules can conflict with another app's. No other rule of the zone is compared or kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Contest {
    /// A rule with at least this priority may shadow a rule of an earlier app.
    may_shadow_from: Option<u16>,
    /// A later app may shadow a rule with at most this priority.
    may_be_shadowed_to: Option<u16>,
}

impl Contest {
    fn has(&self, priority: u16) -> bool {
        self.may_shadow_from.is_some_and(|from| priority >= from)
            || self.may_be_shadowed_to.is_some_and(|to| priority <= to)
    }

    /// Whether rules that are not in `before` are in this one.
    fn is_wider_than(&self, before: &Contest) -> bool {
        let from = |it: &Contest| it.may_shadow_from.map_or(u32::MAX, u32::from);
        from(self) < from(before) || self.may_be_shadowed_to > before.may_be_shadowed_to
    }

    fn add_earlier(&mut self, other: &Territory) {
        let lowest = self.may_shadow_from.map_or(other.lowest, |from| from.min(other.lowest));
        self.may_shadow_from = Some(lowest);
    }

    fn add_later(&mut self, other: &Territory) {
        self.may_be_shadowed_to = self.may_be_shadowed_to.max(Some(other.highest));
    }
}

/// By zone number.
type Contests = Vec<Contest>;

/// At the bound of compared rules, the kernel searches for rules that are gone once in this interval. A search compares
/// all of them, which takes tens of milliseconds. A search for each refused rule once kept a worker busy for seconds.
const SWEEP_INTERVAL_MS: u64 = 1_000;

/// The apps' precedence, and the compared rules.
#[derive(Clone, Debug)]
pub(crate) struct Precedence {
    /// By zone number. An entry stays after its zone has ended: the zone's rules stay in the switches, and keep their
    /// place in the order.
    territories: Vec<Option<Territory>>,
    /// Apps that may conflict.
    compared: ZoneSet,
    /// Which of their rules may conflict.
    contests: Contests,
    pub on_overlap: OnOverlap,
    overlaps: Overlaps,
    pub(crate) wide: WideRules,
    /// The last decided rule, until it is sent.
    pub(crate) pending: Option<Box<Pending>>,
    pub(crate) evictions: Vec<Eviction>,
    /// The next notice to the operator about a shadowing rule comes no sooner than this.
    tell_from_ms: u64,
    /// The next search for compared rules that are gone comes no sooner than this.
    sweep_from_ms: u64,
    pub(crate) scratch: Match,
}

/// A decided rule that waits to be sent.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pending {
    /// To be compared with others.
    placed: Option<(Table, Placed)>,
    /// It matches all packets that an app wants.
    pub wide: Option<(DatapathId, Wide)>,
    pub evictions: Vec<Eviction>,
}

impl Default for Precedence {
    fn default() -> Precedence {
        Precedence {
            territories: Vec::new(),
            compared: ZoneSet::EMPTY,
            contests: Contests::new(),
            on_overlap: OnOverlap::default(),
            overlaps: Overlaps::default(),
            wide: WideRules::default(),
            pending: None,
            evictions: Vec::new(),
            tell_from_ms: 0,
            sweep_from_ms: 0,
            scratch: Match::any(),
        }
    }
}

impl Precedence {
    /// Whether the rules of this zone are compared with those of others.
    #[inline]
    pub fn compares(&self, zone: ZoneId) -> bool {
        self.compared.contains(zone)
    }

    /// Whether a rule of this zone with this priority is compared with those of others.
    fn compares_at(&self, zone: ZoneId, priority: u16) -> bool {
        self.compares(zone) && self.contests.get(usize::from(zone.0)).is_some_and(|it| it.has(priority))
    }

    /// Whether a decided rule waits to be sent.
    #[inline]
    pub fn is_pending(&self) -> bool {
        self.pending.is_some()
    }

    /// Whether the first zone precedes the second: by rank, and by number if the ranks are equal.
    pub(crate) fn is_before(&self, first: ZoneId, second: ZoneId) -> bool {
        let place = |zone: ZoneId| {
            let territory = self.territories.get(usize::from(zone.0)).and_then(Option::as_ref);
            (territory.map_or(u16::MAX, |it| it.rank), zone.0)
        };
        place(first) < place(second)
    }

    /// An app was attached with this grant. Returns whether further rules must be compared.
    pub fn on_attach(&mut self, zone: ZoneId, grant: &Grant) -> bool {
        let territory = grant.holds(Capability::RuleWrite).then(|| Territory::of(grant));
        let place = usize::from(zone.0);
        self.territories.resize(self.territories.len().max(place + 1), None);
        let territory = match (territory, &self.territories[place]) {
            (Some(new), Some(earlier)) => Some(new.with_priorities_of(earlier)),
            (territory, _) => territory,
        };
        if self.territories[place] == territory {
            return false;
        }
        let had = std::mem::replace(&mut self.territories[place], territory);
        // With a thousand apps, comparing all pairs is slow. A new app does not need it.
        let now = if had.is_some() { self.all_contests() } else { self.contests_with(zone) };
        let before = |number: usize| self.contests.get(number).copied().unwrap_or_default();
        let is_more = now.iter().enumerate().any(|(number, it)| it.is_wider_than(&before(number)));
        let contending = now.iter().zip(0..).filter(|(it, _)| **it != Contest::default());
        self.compared = contending.map(|(_, number)| ZoneId(number)).collect();
        self.contests = now;
        is_more
    }

    /// The contests of all apps.
    fn all_contests(&self) -> Contests {
        let mut contests = vec![Contest::default(); self.territories.len()];
        for one in self.writers() {
            for other in self.writers().filter(|other| one < *other) {
                self.add_contest(one, other, &mut contests);
            }
        }
        contests
    }

    /// The contests that were there before, and those with this app.
    fn contests_with(&self, zone: ZoneId) -> Contests {
        let mut contests = self.contests.clone();
        contests.resize(self.territories.len(), Contest::default());
        self.writers().for_each(|other| self.add_contest(zone, other, &mut contests));
        contests
    }

    /// The apps that may write rules.
    fn writers(&self) -> impl Iterator<Item = ZoneId> + '_ {
        let there = self.territories.iter().zip(0..).filter(|(territory, _)| territory.is_some());
        there.map(|(_, number)| ZoneId(number))
    }

    /// Notes what two apps can do to each other.
    fn add_contest(&self, one: ZoneId, other: ZoneId, contests: &mut Contests) {
        let territory = |zone: ZoneId| self.territories.get(usize::from(zone.0)).and_then(Option::as_ref);
        let (first, second) = if self.is_before(one, other) { (one, other) } else { (other, one) };
        let (Some(earlier), Some(later)) = (territory(first), territory(second)) else { return };
        if one == other || earlier.lowest > later.highest || !earlier.meets(later) {
            return;
        }
        if let Some(contest) = contests.get_mut(usize::from(first.0)) {
            contest.add_later(later);
        }
        if let Some(contest) = contests.get_mut(usize::from(second.0)) {
            contest.add_earlier(earlier);
        }
    }
}

/// The rules of others that conflict with an add.
#[derive(Default)]
struct Met {
    /// A rule of an app before the sender, which the add would shadow: owner and priority.
    shadowed: Option<(ZoneId, u16)>,
    evictions: Vec<Eviction>,
}

/// The inputs of a comparison: the switches' records, and the apps' grants and subscriptions.
pub(crate) struct Others<'a> {
    pub datapaths: &'a Datapaths,
    pub zones: &'a [Option<Zone>],
    pub receivers: &'a Receivers,
    pub scratch: &'a mut Scratch,
    pub now_ms: u64,
}

impl Others<'_> {
    fn zone(&self, zone: ZoneId) -> Option<&Zone> {
        self.zones.get(usize::from(zone.0))?.as_ref()
    }

    fn may_cross(&self, zone: ZoneId) -> bool {
        self.zone(zone).is_some_and(|it| it.grant.holds(Capability::RuleWriteOthers))
    }
}

impl Precedence {
    /// Returns the rules to delete since the last [`Effect::Evict`]. From now on they have no owner.
    pub fn take_evictions(&mut self, datapaths: &mut Datapaths) -> Vec<Eviction> {
        let evictions = std::mem::take(&mut self.evictions);
        for it in &evictions {
            if let Some(there) = datapaths.get_mut(&it.datapath) {
                there.record.forget(it.key, Owner::Zone(it.owner));
            }
        }
        evictions
    }

    /// Whether an add may be placed among the rules of others. `it` has the table and the priority that its switch
    /// gives it.
    #[inline]
    pub fn check_place(
        &mut self,
        zone: ZoneId,
        datapath: DatapathId,
        key: Option<RuleKey>,
        it: &FlowMod<'_>,
        others: &mut Others<'_>,
        effects: &mut Vec<Effect>,
    ) -> Result<(), Refusal> {
        if others.receivers.may_be_wide(it.matching) {
            self.check_blinding(zone, datapath, key, it, others)?;
        }
        match key.filter(|_| self.compares_at(zone, it.priority)) {
            Some(key) => self.compare(zone, (datapath, it.table_id), key, it, others, effects),
            None => Ok(()),
        }
    }

    /// Whether all rules of an app have a higher priority than this.
    pub(crate) fn is_above(&self, zone: ZoneId, priority: u16) -> bool {
        let territory = self.territories.get(usize::from(zone.0)).and_then(Option::as_ref);
        territory.is_some_and(|it| it.lowest > priority)
    }

    /// Whether precedence applies to this zone.
    pub(crate) fn is_enforced(&self, zone: ZoneId, others: &Others<'_>) -> bool {
        self.on_overlap == OnOverlap::Refuse && !others.may_cross(zone)
    }

    #[cold]
    fn compare(
        &mut self,
        zone: ZoneId,
        table: Table,
        key: RuleKey,
        it: &FlowMod<'_>,
        others: &mut Others<'_>,
        effects: &mut Vec<Effect>,
    ) -> Result<(), Refusal> {
        let mut matching = Match::any();
        // The bytes were parsed without error before.
        if read_match_into(it.matching, &mut matching).is_err() {
            return Ok(());
        }
        let rule = Placed { key, owner: zone, priority: it.priority, matching };
        let met = self.meet(table, &rule, others);
        let is_enforced = self.is_enforced(zone, others);
        match met.shadowed {
            Some((of, priority)) if is_enforced => {
                let why = OrderRefused::Shadows { of, its: priority, priority: it.priority };
                return Err(Refusal::Order(why));
            }
            Some((of, its)) if others.now_ms >= self.tell_from_ms => {
                self.tell_from_ms = others.now_ms + TELL_INTERVAL_MS;
                let (datapath, priority) = (table.0, it.priority);
                effects.push(Effect::Shadowed { zone, of, datapath, its, priority });
            }
            _ => {}
        }
        if met.evictions.len() > EVICTIONS_MAX {
            return Err(Refusal::Order(OrderRefused::ShadowedByMany));
        }
        if !self.make_room(others) {
            return Err(Refusal::Order(OrderRefused::TooManyCompared));
        }
        if !met.evictions.is_empty() && self.on_overlap == OnOverlap::Refuse {
            effects.push(Effect::Evict);
        }
        let pending = self.pending.get_or_insert_default();
        pending.placed = Some((table, rule));
        pending.evictions.extend(met.evictions);
        Ok(())
    }

    /// Finds the rules of others that match packets of this one. A rule with a different owner by now no longer exists.
    fn meet(&mut self, table: Table, rule: &Placed, others: &mut Others<'_>) -> Met {
        // Owner, priority, key and match.
        let mut overlapping = Vec::new();
        let is_there = |it: &Placed| has(others.datapaths, table, it);
        let compared = self.overlaps.find(table, rule.owner, &rule.matching, is_there, |it| {
            overlapping.push((it.owner, it.priority, it.key, it.matching.clone()));
        });
        others.scratch.count_compared(compared);
        let mut met = Met::default();
        for (owner, priority, key, matching) in overlapping {
            if self.is_before(rule.owner, owner) {
                if priority >= rule.priority && !others.may_cross(owner) {
                    met.evictions.push(eviction(
                        table,
                        &Placed { key, owner, priority, matching },
                        rule.owner,
                    ));
                }
            } else if rule.priority >= priority {
                met.shadowed = met.shadowed.or(Some((owner, priority)));
            }
        }
        met
    }

    pub(crate) fn keep_evictions(&mut self, evictions: Vec<Eviction>) {
        if self.on_overlap == OnOverlap::Refuse {
            self.evictions.extend(evictions);
        }
    }

    /// Reports that there are rules to delete, if there are any.
    pub fn say_evictions(&self, effects: &mut Vec<Effect>) {
        if !self.evictions.is_empty() {
            effects.push(Effect::Evict);
        }
    }

    /// Whether there is memory for one more compared rule. A search for rules that are gone counts as comparisons.
    fn make_room(&mut self, others: &mut Others<'_>) -> bool {
        if self.overlaps.is_full() && others.now_ms >= self.sweep_from_ms {
            self.sweep_from_ms = others.now_ms.saturating_add(SWEEP_INTERVAL_MS);
            let datapaths = others.datapaths;
            others.scratch.count_compared(COMPARED_MAX as u64);
            self.overlaps.sweep(|table, it| has(datapaths, table, it));
        }
        !self.overlaps.is_full()
    }

    /// The last decided add was sent: only now are the conflicting rules evicted.
    #[inline]
    pub fn on_placed(&mut self) {
        if let Some(pending) = self.pending.take() {
            let Pending { placed, wide, evictions } = *pending;
            if let Some((table, rule)) = placed {
                self.overlaps.note(table, rule);
            }
            if let Some((datapath, rule)) = wide {
                self.wide.note(datapath, rule);
            }
            self.keep_evictions(evictions);
        }
    }

    /// The kernel decides the next command: drop the pending rule that was not sent.
    #[inline]
    pub fn forget_place(&mut self) {
        if self.pending.is_some() {
            self.pending = None;
        }
    }

    /// A switch reports this rule, with its own table and priority. If it shadows a rule of an earlier app, it is
    /// evicted. If a rule of a later app shadows it, that rule is evicted.
    pub fn on_rule_found(
        &mut self,
        table: Table,
        key: RuleKey,
        owner: ZoneId,
        priority: u16,
        matching: &[u8],
        others: &mut Others<'_>,
    ) {
        if !self.compares_at(owner, priority) || table.1 == ALL_TABLES {
            return;
        }
        let Ok(matching) = read_match(matching) else { return };
        let rule = Placed { key, owner, priority, matching };
        let mut met = self.meet(table, &rule, others);
        if let Some((of, _)) = met.shadowed.filter(|_| self.is_enforced(owner, others)) {
            met.evictions.push(eviction(table, &rule, of));
        }
        self.keep_evictions(met.evictions);
        if self.make_room(others) {
            self.overlaps.note(table, rule);
        }
    }
}

/// Whether a switch still has this rule, according to its record.
fn has(datapaths: &Datapaths, (datapath, _): Table, rule: &Placed) -> bool {
    let known = datapaths.get(&datapath).and_then(|there| there.record.known(rule.key));
    known.is_some_and(|known| known.owner == Owner::Zone(rule.owner))
}

pub(crate) fn eviction((datapath, table_id): Table, rule: &Placed, for_zone: ZoneId) -> Eviction {
    let mut matching = Vec::new();
    write_match(&rule.matching, &mut matching);
    let Placed { owner, priority, key, .. } = *rule;
    Eviction { datapath, table_id, priority, matching, owner, for_zone, takes_all: false, key }
}
