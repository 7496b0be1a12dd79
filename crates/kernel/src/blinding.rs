//! Protects what apps receive: no rule takes every packet that an app before its owner wants, in any table that these packets
//! reach.
//!
//! ```text
//!   add ──> does it take all packets that an earlier app wants, in a table that they reach? ──> refused (OrderRefused::Blinds)
//!     └──> does it pass them on to a table in which another rule takes all of them? ──> that rule is evicted (Eviction)
//!   an app wants other packets, a switch reports its rules ──> the same for all known rules
//! ```
//!
//! A rule that passes packets on to a later table as they came takes none of an app whose priorities are all higher.
//!
//! In: adds, the rules that switches report, and what apps want. Out: refusals, rules to evict, and the tables in which the
//! kernel's own table-miss rule is needed. It sends nothing, and does not protect from several rules that together take all
//! packets.

use crate::datapaths::Datapaths;
use crate::decision::{OrderRefused, Refusal};
use crate::overlap::{Placed, Table};
use crate::passage::{chooses_by_output, is_strict};
use crate::precedence::{EVICTIONS_MAX, Eviction, Others, Precedence, Stamp, eviction};
use crate::reported_rules::ReportedRule;
use crate::rule_key::RuleKey;
use crate::rules::Owner;
use crate::wide::{Change, Reach, Wide, Wish, covers_all, of_arriving, passes_on};
use crate::zones::Zone;
use abi::ZoneId;
use abi::command::FlowMod;
use flow::canonical::{read_match, read_match_into};
use flow::{DatapathId, Match};
use std::collections::BTreeSet;

/// A rule, as far as it decides whether an app still receives packets.
#[derive(Clone, Copy, Debug)]
struct Taker<'a> {
    owner: ZoneId,
    priority: u16,
    /// Its match, as [`of_arriving`] returns it.
    arriving: &'a Match,
    /// The later table to which it passes packets on as they came.
    to: Option<u8>,
}

impl<'a> Taker<'a> {
    fn of(rule: &'a Wide, to: Option<u8>) -> Taker<'a> {
        Taker { owner: rule.owner, priority: rule.priority, arriving: &rule.arriving, to }
    }
}

impl Precedence {
    /// Refuses a rule that takes all packets that an earlier app wants to receive, from a table that they reach. A rule that
    /// passes packets on to a later table takes none of an app whose priorities are all higher: that app's rules come
    /// first, and the rest goes on. In the later table, it may meet a rule that takes them: that one is evicted.
    ///
    /// `key` is that of a rule that the command adds. A modify without it changes only rules that are there.
    #[cold]
    pub(crate) fn check_blinding(
        &mut self,
        zone: ZoneId,
        datapath: DatapathId,
        key: Option<RuleKey>,
        (it, stamp): (&FlowMod<'_>, Stamp),
        others: &mut Others<'_>,
    ) -> Result<(), Refusal> {
        if read_match_into(it.matching, &mut self.scratch).is_err() {
            return Ok(());
        }
        let arriving = of_arriving(&self.scratch);
        if !is_wide(&arriving, others, datapath) {
            return Ok(());
        }
        self.wide.keep_those_there(datapath, |it| has_wide(others.datapaths, datapath, it));
        let (to, matching) = (passes_on(it.table_id, it.instructions), self.scratch.clone());
        let change = match key {
            Some(key) => {
                let Stamp { cookie, .. } = stamp;
                let FlowMod { table_id, priority, .. } = *it;
                let arriving = arriving.clone();
                Change::Add(Wide { table_id, key, cookie, owner: zone, priority, matching, arriving, to })
            }
            None => Change::Modify(reach(it, stamp, matching), to),
        };
        let taker = Taker { owner: zone, priority: it.priority, arriving: &arriving, to };
        let evictions = self.check_change((datapath, it.table_id), taker, &change, others)?;
        if evictions.len() > EVICTIONS_MAX {
            return Err(Refusal::Order(OrderRefused::ShadowedByMany));
        }
        match &change {
            Change::Add(rule) if !self.wide.has_room_for(datapath, rule) => {
                // It is only known so that it can be evicted for an app that wants packets later.
                let is_dispensable = rule.table_id == 0 && rule.to.is_none();
                return if is_dispensable { Ok(()) } else { Err(Refusal::Order(OrderRefused::TooManyWide)) };
            }
            Change::Add(_) => {}
            _ if !self.wide.is_changed_by(datapath, &change) => return Ok(()),
            _ => {}
        }
        let pending = self.pending.get_or_insert_default();
        pending.wide = Some((datapath, change));
        pending.evictions = evictions;
        Ok(())
    }

    /// Compares a change of wide rules with what apps want. Returns the rules to evict for it. A switch that did not report its
    /// rules may have some that a modify changes: so `taker` is a rule that a modify could change.
    fn check_change(
        &self,
        (datapath, table_id): Table,
        taker: Taker<'_>,
        change: &Change,
        others: &mut Others<'_>,
    ) -> Result<Vec<Eviction>, Refusal> {
        let wishes: Vec<Wish<'_>> = wishes(others, datapath).collect();
        let compared = (self.wide.count(datapath) + 1) * wishes.len();
        others.scratch.count_compared(compared as u64);
        let changes = matches!(change, Change::Add(_)) || self.wide.is_changed_by(datapath, change);
        let (is_enforced, mut evictions) = (self.is_enforced(taker.owner, others), Vec::new());
        for wish in &wishes {
            let reached = self.wide.reached(datapath, wish, Some(change));
            let is_blinded = reached.contains(table_id) && self.blinds(taker, wish)
                || changes && self.makes_blind(datapath, wish, change);
            if is_blinded && is_enforced {
                return Err(Refusal::Order(OrderRefused::Blinds(wish.zone)));
            }
            if changes && taker.to.is_some() {
                self.find_blinding(datapath, wish, Some(change), others, &mut evictions);
            }
        }
        Ok(evictions)
    }

    /// Whether a modify turns a known rule into one that keeps all packets of the wish from its app.
    fn makes_blind(&self, datapath: DatapathId, wish: &Wish<'_>, change: &Change) -> bool {
        let Change::Modify(reach, _) = change else { return false };
        let reached = self.wide.reached(datapath, wish, Some(change));
        self.wide.after(datapath, Some(change)).any(|(rule, to)| {
            reached.contains(rule.table_id) && reach.has(rule) && self.blinds(Taker::of(rule, to), wish)
        })
    }

    /// A delete drops the wide rules that it reaches, once it is sent. If it chooses rules by their outputs, it is not known
    /// which: they stay.
    #[cold]
    pub(crate) fn on_delete(
        &mut self,
        datapath: DatapathId,
        (it, stamp): (&FlowMod<'_>, Stamp),
        others: &mut Others<'_>,
    ) {
        let count = self.wide.count(datapath);
        if count == 0 || chooses_by_output(it) {
            return;
        }
        let Ok(matching) = read_match(it.matching) else { return };
        others.scratch.count_compared(count as u64);
        let change = Change::Delete(reach(it, stamp, matching));
        if self.wide.is_changed_by(datapath, &change) {
            self.pending.get_or_insert_default().wide = Some((datapath, change));
        }
    }

    /// Whether this rule, in a table that all packets of the wish reach, keeps them from the app.
    fn blinds(&self, rule: Taker<'_>, wish: &Wish<'_>) -> bool {
        wish.zone != rule.owner
            && self.contests.is_before(wish.zone, rule.owner)
            && !(rule.to.is_some() && self.contests.is_above(wish.zone, rule.priority))
            && wish.is_all_in(rule.arriving)
    }

    /// Finds the rules that keep all packets of the wish from its app, once a change was sent.
    fn find_blinding(
        &self,
        datapath: DatapathId,
        wish: &Wish<'_>,
        change: Option<&Change>,
        others: &Others<'_>,
        found: &mut Vec<Eviction>,
    ) {
        let reached = self.wide.reached(datapath, wish, change);
        for (rule, to) in self.wide.after(datapath, change) {
            let Wide { table_id, key, owner, priority, ref matching, .. } = *rule;
            let is_known = || found.iter().any(|it| it.key == key && it.table_id == table_id);
            if reached.contains(table_id)
                && self.blinds(Taker::of(rule, to), wish)
                && self.is_enforced(owner, others)
                && !is_known()
            {
                let placed = Placed { key, owner, priority, matching: matching.clone(), order: 0 };
                let evicted = eviction((datapath, table_id), &placed, wish.zone);
                found.push(Eviction { takes_all: true, ..evicted });
            }
        }
    }

    /// An app wants other packets now, or the switch has reported its rules (`None`: of all apps): rules that keep all
    /// packets from an earlier app are evicted.
    pub fn on_wishes(&mut self, datapath: DatapathId, of: Option<ZoneId>, others: &mut Others<'_>) {
        if self.wide.count(datapath) == 0 {
            return;
        }
        self.wide.keep_those_there(datapath, |it| has_wide(others.datapaths, datapath, it));
        let mut found = Vec::new();
        let mut wishes_seen = 0;
        for wish in wishes(others, datapath).filter(|wish| of.is_none_or(|zone| zone == wish.zone)) {
            wishes_seen += 1;
            self.find_blinding(datapath, &wish, None, others, &mut found);
        }
        others.scratch.count_compared((2 * self.wide.count(datapath) * wishes_seen) as u64);
        self.keep_evictions(found);
    }

    /// Whether a rule may pass packets of this switch on to a later table.
    pub fn may_reach_later(&self, datapath: DatapathId) -> bool {
        self.pending_change(datapath).is_some() || self.wide.count(datapath) > 0
    }

    /// Whether the command that is decided now may let packets reach another table.
    pub fn opens_tables(&self) -> bool {
        let pending = self.pending.as_deref().and_then(|it| it.wide.as_ref());
        pending.is_some_and(|(_, change)| match change {
            Change::Add(rule) => rule.to.is_some(),
            Change::Modify(_, to) => to.is_some(),
            Change::Delete(_) => false,
        })
    }

    fn pending_change(&self, datapath: DatapathId) -> Option<&Change> {
        let (at, change) = self.pending.as_deref()?.wide.as_ref()?;
        (*at == datapath).then_some(change)
    }

    /// The tables behind table 0 that all packets of some app reach (`of`: only of this app), also by the rule that is
    /// decided now.
    pub fn reached(&self, datapath: DatapathId, of: Option<ZoneId>, others: &mut Others<'_>) -> BTreeSet<u8> {
        let change = self.pending_change(datapath);
        let (mut tables, mut wishes_seen) = (BTreeSet::new(), 0);
        for wish in wishes(others, datapath).filter(|wish| of.is_none_or(|zone| zone == wish.zone)) {
            wishes_seen += 1;
            tables.extend(self.wide.reached(datapath, &wish, change).behind_first());
        }
        others.scratch.count_compared(((self.wide.count(datapath) + 1) * wishes_seen) as u64);
        tables
    }

    /// Whether the rule that is decided now evicts this app's rule for all packets from this table.
    pub fn evicts(&self, datapath: DatapathId, table_id: u8, priority: u16) -> bool {
        let pending = self.pending.iter().flat_map(|it| &it.evictions);
        let mut all = pending.chain(&self.evictions).chain(self.waiting.values());
        all.any(|it| {
            (it.datapath, it.table_id, it.priority) == (datapath, table_id, priority)
                && it.matching.is_empty()
        })
    }

    /// Whether the rule that is decided now changes another known rule for all packets of an app. A delete does not count.
    pub fn changes_wide(&self) -> bool {
        let Some((at, change)) = self.pending.as_deref().and_then(|it| it.wide.as_ref()) else {
            return false;
        };
        let known = self.wide.of(*at);
        match change {
            Change::Add(new) => {
                known.iter().any(|it| it.key == new.key && (it.to, it.cookie) != (new.to, new.cookie))
            }
            Change::Modify(..) => self.wide.is_changed_by(*at, change),
            Change::Delete(_) => false,
        }
    }

    /// The rules that are deleted now may stay at the switch: they remain known until the record knows that they are gone.
    pub fn keep_deleted_wide(&mut self) {
        if let Some(pending) = &mut self.pending {
            pending.wide.take_if(|(_, change)| matches!(change, Change::Delete(_)));
        }
    }

    /// The tables to which known rules pass all packets of some app on.
    pub fn passed_to(&mut self, datapath: DatapathId, datapaths: &Datapaths) -> BTreeSet<u8> {
        self.wide.keep_those_there(datapath, |it| has_wide(datapaths, datapath, it));
        self.wide.of(datapath).iter().filter_map(|it| it.to).collect()
    }

    /// A switch has connected or disconnected.
    pub fn forget_switch(&mut self, datapath: DatapathId) {
        self.wide.forget(datapath);
        self.contests.on_report(datapath);
        self.waiting.retain(|(at, _), _| *at != datapath);
    }

    /// A switch reports this rule, which may match all packets that an app wants. [`Self::on_wishes`] judges it.
    pub fn on_wide_found(
        &mut self,
        (datapath, table_id): Table,
        key: RuleKey,
        owner: ZoneId,
        (priority, it): (u16, &ReportedRule<'_>),
        others: &mut Others<'_>,
    ) {
        let Ok(matching) = read_match(it.matching) else { return };
        let arriving = of_arriving(&matching);
        if !is_wide(&arriving, others, datapath) {
            return;
        }
        let to = passes_on(table_id, it.instructions);
        let rule = Wide { table_id, key, cookie: it.cookie, owner, priority, matching, arriving, to };
        if self.wide.has_room_for(datapath, &rule) {
            self.wide.apply(datapath, Change::Add(rule));
        }
    }
}

/// The rules that a modify or a delete reaches.
fn reach(it: &FlowMod<'_>, Stamp { cookie, cookie_mask, .. }: Stamp, matching: Match) -> Reach {
    let priority = is_strict(it.command).then_some(it.priority);
    Reach { table_id: it.table_id, priority, matching, cookie, cookie_mask }
}

/// What the apps that receive packets of this switch want of them.
fn wishes<'a>(others: &Others<'a>, datapath: DatapathId) -> impl Iterator<Item = Wish<'a>> + use<'a> {
    let all = others.receivers.of_packets().iter().chain(&others.receivers.selective);
    wishes_of(others.zones, all, datapath)
}

fn wishes_of<'a>(
    zones: &'a [Option<Zone>],
    which: impl Iterator<Item = ZoneId>,
    datapath: DatapathId,
) -> impl Iterator<Item = Wish<'a>> {
    which.filter_map(move |zone| Wish::of(zone, zones.get(usize::from(zone.0))?.as_ref()?, datapath))
}

/// Whether a match has all packets that some app wants, or all packets.
fn is_wide(matching: &Match, others: &mut Others<'_>, datapath: DatapathId) -> bool {
    if covers_all(matching) {
        return true;
    }
    let selective = wishes_of(others.zones, others.receivers.selective.iter(), datapath);
    let (mut compared, mut is_wide) = (0, false);
    for wish in selective {
        compared += 1;
        is_wide = wish.is_all_in(matching);
        if is_wide {
            break;
        }
    }
    others.scratch.count_compared(compared);
    is_wide
}

/// Whether a switch still has this rule, according to its record.
fn has_wide(datapaths: &Datapaths, datapath: DatapathId, rule: &Wide) -> bool {
    let known = datapaths.get(&datapath).and_then(|there| there.record.known(rule.key));
    known.is_some_and(|known| known.owner == Owner::Zone(rule.owner))
}
