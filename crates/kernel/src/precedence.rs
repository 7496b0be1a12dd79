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
//! (`crate::overlap`).
//!
//! If a rule of table 0 matches every packet that an earlier app wants to receive, that app receives nothing. The kernel
//! refuses such a rule too ([`OrderRefused::Blinds`]), unless it passes packets on to a later table and has a lower
//! priority than all rules of the earlier app.
//!
//! In: adds, and the rules that switches report. Out: refusals, and rules to evict. It never sends anything. It neither
//! refuses nor evicts rules of an app that holds `rule.write.others`.

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
use flow::canonical::{instructions_raw, read_match, read_match_into, write_match};
use flow::relation::covers;
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
    /// The owner of the rule that it would have shadowed.
    pub for_zone: ZoneId,
    key: RuleKey,
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

/// The apps' precedence, and the compared rules.
#[derive(Clone, Debug)]
pub(crate) struct Precedence {
    /// By zone number. An entry stays after its zone has ended: the zone's rules stay in the switches, and keep their
    /// place in the order.
    territories: Vec<Option<Territory>>,
    /// Apps that may conflict.
    compared: ZoneSet,
    pub on_overlap: OnOverlap,
    overlaps: Overlaps,
    /// The last decided rule, until it is sent.
    pending: Option<Box<(Table, Placed, Vec<Eviction>)>>,
    evictions: Vec<Eviction>,
    /// The next notice to the operator about a shadowing rule comes no sooner than this.
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
    /// Whether the rules of this zone are compared with those of others.
    #[inline]
    pub fn compares(&self, zone: ZoneId) -> bool {
        self.compared.contains(zone)
    }

    /// Whether a decided rule waits to be sent.
    #[inline]
    pub fn is_pending(&self) -> bool {
        self.pending.is_some()
    }

    /// Whether the first zone precedes the second: by rank, and by number if the ranks are equal.
    fn is_before(&self, first: ZoneId, second: ZoneId) -> bool {
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
        if self.territories[place] == territory {
            return false;
        }
        let had = std::mem::replace(&mut self.territories[place], territory);
        // With a thousand apps, comparing all pairs is slow. A new app does not need it.
        let now = if had.is_some() { self.contenders() } else { self.contenders_with(zone) };
        let is_more = now.iter().any(|zone| !self.compared.contains(zone));
        self.compared = now;
        is_more
    }

    /// All apps that may conflict with another.
    fn contenders(&self) -> ZoneSet {
        self.writers().filter(|one| self.writers().any(|other| self.contend(*one, other))).collect()
    }

    /// The apps that were compared before, and those that conflict with this one.
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

/// The later table to which a rule passes packets on. A switch refuses a goto-table to any other table (OpenFlow 1.3.5, 5.1).
#[cold]
pub(crate) fn passes_on_to(it: &FlowMod<'_>) -> Option<u8> {
    let to = instructions_raw(it.instructions).flatten().find_map(|raw| raw.goto_table());
    to.filter(|table_id| *table_id > it.table_id && *table_id < ALL_TABLES)
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

    /// Whether it takes all packets that an earlier app wants to receive. A rule that passes packets on to a later table takes none of
    /// an app whose priorities are all higher: that app's rules come first, and the rest goes on.
    #[cold]
    fn check_blinding(&mut self, zone: ZoneId, it: &FlowMod<'_>, others: &Others<'_>) -> Result<(), Refusal> {
        if read_match_into(it.matching, &mut self.scratch).is_err() {
            return Ok(());
        }
        let matching = &self.scratch;
        let passes_on = passes_on_to(it).is_some();
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
                && !(passes_on && self.is_above(*receiver, it.priority))
                && packets.is_none_or(|packets| covers(matching, packets))
        });
        match blinded {
            Some((receiver, _)) if self.is_enforced(zone, others) => {
                Err(Refusal::Order(OrderRefused::Blinds(receiver)))
            }
            _ => Ok(()),
        }
    }

    /// Whether all rules of an app have a higher priority than this.
    fn is_above(&self, zone: ZoneId, priority: u16) -> bool {
        let territory = self.territories.get(usize::from(zone.0)).and_then(Option::as_ref);
        territory.is_some_and(|it| it.lowest > priority)
    }

    /// Whether precedence applies to this zone.
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

    fn keep_evictions(&mut self, evictions: Vec<Eviction>) {
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

    /// Whether there is memory for one more compared rule.
    fn make_room(&mut self, datapaths: &Datapaths) -> bool {
        if self.overlaps.is_full() {
            self.overlaps.sweep(|table, it| has(datapaths, table, it));
        }
        !self.overlaps.is_full()
    }

    /// The last decided add was sent: only now are the conflicting rules evicted.
    #[inline]
    pub fn on_placed(&mut self) {
        if let Some(placed) = self.pending.take() {
            let (table, rule, evictions) = *placed;
            self.overlaps.note(table, rule);
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

/// Whether a switch still has this rule, according to its record.
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
