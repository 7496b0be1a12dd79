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
//! (`crate::contests`).
//!
//! If a rule matches every packet that an earlier app wants to receive, that app receives nothing. The kernel refuses
//! such a rule too ([`OrderRefused::Blinds`]), or evicts it if these packets reach its table only later (`crate::wide`). A
//! rule that passes the packets on unchanged to a later table may stay, if all rules of the earlier app have a higher
//! priority.
//!
//! In: adds, and the rules that switches report. Out: refusals, and rules to evict. It never sends anything. It neither
//! refuses nor evicts rules of an app that holds `rule.write.others`.

use crate::bounds::{ALL_TABLES, Scratch, command as flow_command};
use crate::capability::Capability;
use crate::contests::Contests;
use crate::datapaths::Datapaths;
use crate::decision::{Effect, OrderRefused, Refusal};
use crate::grant::Grant;
use crate::overlap::{COMPARED_MAX, Overlaps, Placed, Table};
use crate::receivers::Receivers;
use crate::rule_key::RuleKey;
use crate::rules::Owner;
use crate::wide::{Change, WideRules};
use crate::zones::Zone;
use abi::ZoneId;
use abi::command::FlowMod;
use flow::canonical::{read_match, read_match_into, write_match};
use flow::{DatapathId, Match};
use std::collections::{BTreeMap, BTreeSet};

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

/// At the bound of compared rules, the kernel searches for rules that are gone once in this interval. A search compares
/// all of them, which takes tens of milliseconds. A search for each refused rule once kept a worker busy for seconds.
const SWEEP_INTERVAL_MS: u64 = 1_000;

/// When so many of the compared rules are gone, the switches are asked for those that were not kept.
const FREED_MIN: usize = COMPARED_MAX / 16;

/// The apps' precedence, and the compared rules.
#[derive(Clone, Debug)]
pub(crate) struct Precedence {
    pub(crate) contests: Contests,
    on_overlap: OnOverlap,
    overlaps: Overlaps,
    /// Counts grants and changes of the reaction. Each may change the order of apps. Rules that were compared before such a change are compared again when a switch reports
    /// them.
    order: u32,
    /// Switches that reported rules for which there was no memory, at most all that are connected, and how many rules were kept
    /// then.
    missed: (usize, BTreeSet<DatapathId>),
    pub(crate) wide: WideRules,
    /// The last decided rule, until it is sent.
    pub(crate) pending: Option<Box<Pending>>,
    pub(crate) evictions: Vec<Eviction>,
    /// Evictions at switches to which bundles are under way: at most one for each rule of the record.
    pub(crate) waiting: BTreeMap<(DatapathId, RuleKey), Eviction>,
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
    /// It changes the rules that match all packets that an app wants.
    pub wide: Option<(DatapathId, Change)>,
    /// It replaces, changes or deletes the kernel's own table-miss rules of these later tables.
    pub own: Option<(DatapathId, Vec<u8>)>,
    pub evictions: Vec<Eviction>,
}

impl Default for Precedence {
    fn default() -> Precedence {
        Precedence {
            contests: Contests::default(),
            on_overlap: OnOverlap::default(),
            overlaps: Overlaps::default(),
            order: 0,
            missed: (0, BTreeSet::new()),
            wide: WideRules::default(),
            pending: None,
            evictions: Vec::new(),
            waiting: BTreeMap::new(),
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
        self.contests.compares(zone)
    }

    /// Whether any switch has a rule that matches all packets of an app.
    #[inline]
    pub fn has_wide(&self) -> bool {
        !self.wide.is_empty()
    }

    /// Whether a decided rule waits to be sent.
    #[inline]
    pub fn is_pending(&self) -> bool {
        self.pending.is_some()
    }

    /// An app has this grant from now on, and these switches are connected. Returns whether to ask them for their rules.
    pub fn on_grant(
        &mut self,
        zone: ZoneId,
        grant: &Grant,
        connected: impl Iterator<Item = DatapathId>,
    ) -> bool {
        self.order = self.order.wrapping_add(1);
        self.contests.on_grant(zone, grant, connected)
    }

    /// Sets the reaction to rules that would shadow others.
    pub fn set_on_overlap(&mut self, what: OnOverlap) {
        self.order = self.order.wrapping_add(1);
        self.on_overlap = what;
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

/// What the kernel makes of a flow mod, as far as it decides which rules the switch changes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stamp {
    /// The cookie, with its owner.
    pub cookie: u64,
    pub cookie_mask: u64,
    /// Whether a modify adds a missing rule, as in OpenFlow 1.0.
    pub adds_missing: bool,
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
    /// Returns the rules to delete since the last [`Effect::Evict`]. From now on they have no owner. Those at a switch to which a bundle
    /// is under way wait, because the bundle could add them again.
    pub fn take_evictions(&mut self, datapaths: &mut Datapaths) -> Vec<Eviction> {
        let waits =
            |it: &Eviction| datapaths.get(&it.datapath).is_some_and(|there| there.record.is_in_bundle());
        let (waiting, evictions): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.evictions).into_iter().partition(waits);
        self.waiting.extend(waiting.into_iter().map(|it| ((it.datapath, it.key), it)));
        for it in &evictions {
            if let Some(there) = datapaths.get_mut(&it.datapath) {
                there.record.forget(it.key, Owner::Zone(it.owner));
            }
            // If it is reported again, it is compared again.
            if let Ok(matching) = read_match(&it.matching) {
                self.overlaps.forget((it.datapath, it.table_id), it.key, &matching);
            }
        }
        evictions
    }

    /// No bundle is under way to this switch any more: the evictions that waited for it may follow.
    pub fn end_waiting(&mut self, datapath: DatapathId) {
        let evictions = &mut self.evictions;
        self.waiting.retain(|(at, _), it| {
            let stays = *at != datapath;
            if !stays {
                evictions.push(it.clone());
            }
            stays
        });
    }

    /// Whether an add may be placed among the rules of others. `it` has the table and the priority that its switch
    /// gives it.
    #[inline]
    pub fn check_place(
        &mut self,
        zone: ZoneId,
        datapath: DatapathId,
        key: Option<RuleKey>,
        (it, stamp): (&FlowMod<'_>, Stamp),
        others: &mut Others<'_>,
        effects: &mut Vec<Effect>,
    ) -> Result<(), Refusal> {
        let adds = it.command == flow_command::ADD || key.is_some() && stamp.adds_missing;
        if others.receivers.may_be_wide(it.matching) {
            self.check_blinding(zone, datapath, key.filter(|_| adds), (it, stamp), others)?;
        }
        // A modify changes no match, and so shadows nothing that its rule did not shadow before.
        match key.filter(|_| adds && self.contests.compares_at(zone, it.priority)) {
            Some(key) => self.compare(zone, (datapath, it.table_id), key, it, others, effects),
            None => Ok(()),
        }
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
        let rule = Placed { key, owner: zone, priority: it.priority, matching, order: self.order };
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
        if !self.make_room(zone, others) {
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
            if self.contests.is_before(rule.owner, owner) {
                if priority >= rule.priority && !others.may_cross(owner) {
                    met.evictions.push(eviction(
                        table,
                        &Placed { key, owner, priority, matching, order: self.order },
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

    /// Whether there is memory for one more compared rule of this app. A search for rules that are gone counts as comparisons.
    fn make_room(&mut self, owner: ZoneId, others: &mut Others<'_>) -> bool {
        if self.overlaps.is_full_for(owner) && others.now_ms >= self.sweep_from_ms {
            self.sweep_from_ms = others.now_ms.saturating_add(SWEEP_INTERVAL_MS);
            let datapaths = others.datapaths;
            others.scratch.count_compared(COMPARED_MAX as u64);
            self.overlaps.sweep(|table, it| has(datapaths, table, it));
        }
        !self.overlaps.is_full_for(owner)
    }

    /// The last decided command was sent: only now are the conflicting rules evicted.
    #[inline]
    pub fn on_placed(&mut self, datapaths: &mut Datapaths) {
        if let Some(pending) = self.pending.take() {
            self.place(*pending, datapaths);
        }
    }

    #[cold]
    fn place(&mut self, pending: Pending, datapaths: &mut Datapaths) {
        let Pending { placed, wide, own, evictions } = pending;
        if let Some((table, rule)) = placed {
            self.overlaps.note(table, rule);
        }
        if let Some((datapath, change)) = wide {
            let deleted = self.wide.apply(datapath, change);
            if let Some(there) = datapaths.get_mut(&datapath) {
                deleted.iter().for_each(|it| there.record.forget(it.key, Owner::Zone(it.owner)));
            }
        }
        if let Some((datapath, tables)) = own
            && let Some(there) = datapaths.get_mut(&datapath)
        {
            tables.into_iter().for_each(|table_id| there.later_punts.forget(table_id));
        }
        self.keep_evictions(evictions);
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
        if !self.contests.compares_at(owner, priority) || table.1 == ALL_TABLES {
            return;
        }
        let Ok(matching) = read_match(matching) else { return };
        let rule = Placed { key, owner, priority, matching, order: self.order };
        // Each pair of rules is compared once. Otherwise, an app with many rules could keep a worker busy whenever a switch
        // reports them.
        let order = self.overlaps.known(table, &rule).map(|it| it.order);
        if order == Some(self.order) {
            return;
        }
        let mut met = self.meet(table, &rule, others);
        if let Some((of, _)) = met.shadowed.filter(|_| self.is_enforced(owner, others)) {
            met.evictions.push(eviction(table, &rule, of));
        }
        self.keep_evictions(met.evictions);
        if order.is_some() || self.make_room(owner, others) {
            self.overlaps.note(table, rule);
        } else {
            self.missed.0 = self.overlaps.len();
            self.missed.1.insert(table.0);
        }
    }

    /// From time to time: the switches whose rules were not all kept, if there is much more memory by now.
    pub fn take_missed(&mut self, datapaths: &Datapaths) -> BTreeSet<DatapathId> {
        let (before, missed) = &mut self.missed;
        missed.retain(|datapath| datapaths.contains_key(datapath));
        if missed.is_empty() {
            return BTreeSet::new();
        }
        self.overlaps.sweep(|table, it| has(datapaths, table, it));
        let is_worth_it = self.overlaps.len() + FREED_MIN <= *before;
        if is_worth_it { std::mem::take(missed) } else { BTreeSet::new() }
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
