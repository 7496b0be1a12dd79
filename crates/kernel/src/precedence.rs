//! Whose rules come first where apps share priorities: no app shadows the rules of one that the operator put before it.
//!
//! ```text
//!   add of an app ──> does it match packets of a rule of another app, at a priority that decides between them?
//!       the other app comes before it, and its rule would lose ──> refused (OrderRefused::Shadows)
//!       the other app comes after it, and its rule would win   ──> that rule is evicted (Eviction)
//!       neither                                                ──> it passes
//! ```
//!
//! The operator's order is the order of `[apps] order`, then that in which the apps are named. An app whose priorities all lie below those of
//! every app before it can shadow nobody: its rules are not compared, and nothing is kept of them. So disjoint priority bands cost nothing.
//! Only apps that may come into each other's way are compared, rule by rule (`crate::overlap`).
//!
//! A rule that matches every packet that an app before it wants to receive takes those packets away. It is refused too
//! ([`OrderRefused::Blinds`]).
//!
//! In: adds, and what switches say they have. Out: refusals, and rules to evict. It never sends anything. An app that
//! holds `rule.write.others` is neither refused nor evicted here.

use crate::bounds::{ALL_TABLES, Scratch};
use crate::capability::Capability;
use crate::datapaths::Datapaths;
use crate::decision::{Effect, OrderRefused, Refusal};
use crate::grant::{Bounds, Grant, TableSet};
use crate::overlap::{Overlaps, Placed, Table};
use crate::receivers::Receivers;
use crate::rule_key::RuleKey;
use crate::rules::Owner;
use crate::zone_set::ZoneSet;
use crate::zones::Zone;
use abi::ZoneId;
use abi::command::FlowMod;
use flow::canonical::{read_match, read_match_into, write_match};
use flow::relation::covers;
use flow::{DatapathId, Match};

/// The reaction to a rule that would shadow one of an app before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnOverlap {
    /// It is refused; a rule that is there already is evicted.
    #[default]
    Refuse,
    /// It passes, and the operator is told.
    Report,
}

/// A rule that gives way to one of an app that comes before its owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Eviction {
    /// At which switch.
    pub datapath: DatapathId,
    /// Its table; in OpenFlow 1.0 there is one only.
    pub table_id: u8,
    /// Its priority.
    pub priority: u16,
    /// Its match as canonical bytes.
    pub matching: Vec<u8>,
    /// Its owner.
    pub owner: ZoneId,
    /// Whose rule it would have shadowed.
    pub for_zone: ZoneId,
    key: RuleKey,
}

/// Rules that one command may evict. A command that meets more is refused: its app cannot take a whole table away at once.
pub const EVICTIONS_MAX: usize = 256;

/// Of rules that shadow others the operator hears as often as this.
const TELL_INTERVAL_MS: u64 = 1_000;

/// Where an app may write rules, as far as it bears on others.
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

    /// Whether a table of a switch belongs to both.
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

/// What the kernel knows of the apps' precedence, and the rules of those that are compared.
#[derive(Clone, Debug)]
pub(crate) struct Precedence {
    /// By zone number. Kept when a zone goes: its rules stay in the switches, and its place in the order with them.
    territories: Vec<Option<Territory>>,
    /// Apps that may come into each other's way.
    compared: ZoneSet,
    pub on_overlap: OnOverlap,
    overlaps: Overlaps,
    /// The rule that was decided on last, until it is sent.
    pending: Option<Box<(Table, Placed, Vec<Eviction>)>>,
    evictions: Vec<Eviction>,
    /// The operator is told about a shadowing rule not before this time.
    tell_from_ms: u64,
    scratch: Match,
}

impl Default for Precedence {
    fn default() -> Precedence {
        Precedence {
            territories: Vec::new(),
            compared: ZoneSet::EMPTY,
            on_overlap: OnOverlap::default(),
            overlaps: Overlaps::default(),
            pending: None,
            evictions: Vec::new(),
            tell_from_ms: 0,
            scratch: Match::any(),
        }
    }
}

impl Precedence {
    /// Whether rules of this zone are compared with those of others.
    #[inline]
    pub fn compares(&self, zone: ZoneId) -> bool {
        self.compared.contains(zone)
    }

    /// Whether a rule that was decided on waits to be sent.
    #[inline]
    pub fn is_pending(&self) -> bool {
        self.pending.is_some()
    }

    /// Whether the first comes before the second: by rank, and by number where ranks are equal.
    fn is_before(&self, first: ZoneId, second: ZoneId) -> bool {
        let place = |zone: ZoneId| {
            let territory = self.territories.get(usize::from(zone.0)).and_then(Option::as_ref);
            (territory.map_or(u16::MAX, |it| it.rank), zone.0)
        };
        place(first) < place(second)
    }

    /// An app is there with this grant. Says whether rules have to be compared that were not before.
    pub fn on_attach(&mut self, zone: ZoneId, grant: &Grant) -> bool {
        let territory = grant.holds(Capability::RuleWrite).then(|| Territory::of(grant));
        let place = usize::from(zone.0);
        self.territories.resize(self.territories.len().max(place + 1), None);
        if self.territories[place] == territory {
            return false;
        }
        let had = std::mem::replace(&mut self.territories[place], territory);
        // With a thousand apps to compare all with all takes long, and for one that is new it is not necessary.
        let now = if had.is_some() { self.contenders() } else { self.contenders_with(zone) };
        let is_more = now.iter().any(|zone| !self.compared.contains(zone));
        self.compared = now;
        is_more
    }

    /// Every app that may come into another's way.
    fn contenders(&self) -> ZoneSet {
        self.writers().filter(|one| self.writers().any(|other| self.contend(*one, other))).collect()
    }

    /// The apps that were compared before, and those that come into this one's way with it.
    fn contenders_with(&self, zone: ZoneId) -> ZoneSet {
        let mut found = self.compared.clone();
        for other in self.writers().filter(|other| self.contend(zone, *other)) {
            found.insert(other);
            found.insert(zone);
        }
        found
    }

    /// The apps that may write rules.
    fn writers(&self) -> impl Iterator<Item = ZoneId> + '_ {
        let there = self.territories.iter().zip(0..).filter(|(territory, _)| territory.is_some());
        there.map(|(_, number)| ZoneId(number))
    }

    fn contend(&self, one: ZoneId, other: ZoneId) -> bool {
        let territory = |zone: ZoneId| self.territories.get(usize::from(zone.0)).and_then(Option::as_ref);
        let (first, second) = if self.is_before(one, other) { (one, other) } else { (other, one) };
        match (territory(first), territory(second)) {
            (Some(first), Some(second)) => {
                one != other && first.lowest <= second.highest && first.meets(second)
            }
            _ => false,
        }
    }
}

/// What an add meets of others' rules.
#[derive(Default)]
struct Met {
    /// A rule of an app before the adder, which would lose: whose, and its priority.
    shadowed: Option<(ZoneId, u16)>,
    evictions: Vec<Eviction>,
}

/// What a rule is compared with: what switches have, and what apps may do and want to hear.
pub(crate) struct Others<'a> {
    pub datapaths: &'a Datapaths,
    pub zones: &'a [Option<Zone>],
    pub receivers: &'a Receivers,
    pub scratch: &'a mut Scratch,
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
    /// The rules that are to be deleted, since [`Effect::Evict`] was last said. From now on they are nobody's.
    pub fn take_evictions(&mut self, datapaths: &mut Datapaths) -> Vec<Eviction> {
        let evictions = std::mem::take(&mut self.evictions);
        for it in &evictions {
            if let Some(there) = datapaths.get_mut(&it.datapath) {
                there.record.forget(it.key, Owner::Zone(it.owner));
            }
        }
        evictions
    }

    /// Whether an add may have its place among the rules of others. `it` has the table and the priority that its switch gives it.
    #[inline]
    #[expect(
        clippy::too_many_arguments,
        reason = "one step of a decision, and nothing that would be a type of its own"
    )]
    pub fn check_place(
        &mut self,
        zone: ZoneId,
        datapath: DatapathId,
        key: Option<RuleKey>,
        it: &FlowMod<'_>,
        others: &mut Others<'_>,
        now_ms: u64,
        effects: &mut Vec<Effect>,
    ) -> Result<(), Refusal> {
        if it.table_id == 0 && (it.matching.is_empty() || !others.receivers.selective.is_empty()) {
            self.check_blinding(zone, it, others)?;
        }
        match key.filter(|_| self.compares(zone)) {
            Some(key) => self.compare(zone, (datapath, it.table_id), key, it, others, now_ms, effects),
            None => Ok(()),
        }
    }

    /// Whether it takes all packets away that an app before this one wants to receive.
    #[cold]
    fn check_blinding(&mut self, zone: ZoneId, it: &FlowMod<'_>, others: &Others<'_>) -> Result<(), Refusal> {
        if read_match_into(it.matching, &mut self.scratch).is_err() {
            return Ok(());
        }
        let matching = &self.scratch;
        let hears = others.receivers.of_packets();
        let all = hears.iter().map(|it| (it, None)).filter(|_| covers(matching, &Match::any()));
        let some = others
            .receivers
            .selective
            .iter()
            .filter_map(|it| Some((it, Some(others.zone(it)?.subscription.packets()?))));
        let blinded = all.chain(some).find(|(receiver, packets)| {
            *receiver != zone
                && self.is_before(*receiver, zone)
                && packets.is_none_or(|packets| covers(matching, packets))
        });
        match blinded {
            Some((receiver, _)) if self.is_enforced(zone, others) => {
                Err(Refusal::Order(OrderRefused::Blinds(receiver)))
            }
            _ => Ok(()),
        }
    }

    /// Whether precedence binds this zone.
    fn is_enforced(&self, zone: ZoneId, others: &Others<'_>) -> bool {
        self.on_overlap == OnOverlap::Refuse && !others.may_cross(zone)
    }

    #[cold]
    #[expect(
        clippy::too_many_arguments,
        reason = "one step of a decision, and nothing that would be a type of its own"
    )]
    fn compare(
        &mut self,
        zone: ZoneId,
        table: Table,
        key: RuleKey,
        it: &FlowMod<'_>,
        others: &mut Others<'_>,
        now_ms: u64,
        effects: &mut Vec<Effect>,
    ) -> Result<(), Refusal> {
        let mut matching = Match::any();
        // The bytes were found readable before.
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
            Some((of, its)) if now_ms >= self.tell_from_ms => {
                self.tell_from_ms = now_ms + TELL_INTERVAL_MS;
                let (datapath, priority) = (table.0, it.priority);
                effects.push(Effect::Shadowed { zone, of, datapath, its, priority });
            }
            _ => {}
        }
        if met.evictions.len() > EVICTIONS_MAX {
            return Err(Refusal::Order(OrderRefused::ShadowedByMany));
        }
        if !self.make_room(others.datapaths) {
            return Err(Refusal::Order(OrderRefused::TooManyCompared));
        }
        if !met.evictions.is_empty() && self.on_overlap == OnOverlap::Refuse {
            effects.push(Effect::Evict);
        }
        self.pending = Some(Box::new((table, rule, met.evictions)));
        Ok(())
    }

    /// The rules of others that decide about packets of this one. One that is not its owner's any more is not there any more.
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

    fn keep_evictions(&mut self, evictions: Vec<Eviction>) {
        if self.on_overlap == OnOverlap::Refuse {
            self.evictions.extend(evictions);
        }
    }

    /// Says that there are rules to delete, if there are.
    pub fn say_evictions(&self, effects: &mut Vec<Effect>) {
        if !self.evictions.is_empty() {
            effects.push(Effect::Evict);
        }
    }

    /// Whether one more rule can be kept for comparison.
    fn make_room(&mut self, datapaths: &Datapaths) -> bool {
        if self.overlaps.is_full() {
            self.overlaps.sweep(|table, it| has(datapaths, table, it));
        }
        !self.overlaps.is_full()
    }

    /// The add that was decided on last was sent: only now do others give way to it.
    #[inline]
    pub fn on_placed(&mut self) {
        if let Some(placed) = self.pending.take() {
            let (table, rule, evictions) = *placed;
            self.overlaps.note(table, rule);
            self.keep_evictions(evictions);
        }
    }

    /// Another command is decided on: what was not sent is forgotten.
    #[inline]
    pub fn forget_place(&mut self) {
        if self.pending.is_some() {
            self.pending = None;
        }
    }

    /// A switch says that it has this rule, whose table and priority are as it gives them. Where it shadows one of an app before its owner,
    /// it gives way; where it is shadowed by one of an app behind it, that one does.
    pub fn on_rule_found(
        &mut self,
        table: Table,
        key: RuleKey,
        owner: ZoneId,
        priority: u16,
        matching: &[u8],
        others: &mut Others<'_>,
    ) {
        if !self.compares(owner) || table.1 == ALL_TABLES {
            return;
        }
        let Ok(matching) = read_match(matching) else { return };
        let rule = Placed { key, owner, priority, matching };
        let mut met = self.meet(table, &rule, others);
        if let Some((of, _)) = met.shadowed.filter(|_| self.is_enforced(owner, others)) {
            met.evictions.push(eviction(table, &rule, of));
        }
        self.keep_evictions(met.evictions);
        if self.make_room(others.datapaths) {
            self.overlaps.note(table, rule);
        }
    }
}

/// Whether a switch has this rule still, as far as it is known.
fn has(datapaths: &Datapaths, (datapath, _): Table, rule: &Placed) -> bool {
    let known = datapaths.get(&datapath).and_then(|there| there.record.known(rule.key));
    known.is_some_and(|known| known.owner == Owner::Zone(rule.owner))
}

fn eviction((datapath, table_id): Table, rule: &Placed, for_zone: ZoneId) -> Eviction {
    let mut matching = Vec::new();
    write_match(&rule.matching, &mut matching);
    let Placed { owner, priority, key, .. } = *rule;
    Eviction { datapath, table_id, priority, matching, owner, for_zone, key }
}
