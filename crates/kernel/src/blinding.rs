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
use crate::precedence::{EVICTIONS_MAX, Eviction, Others, Precedence, eviction};
use crate::rule_key::RuleKey;
use crate::rules::Owner;
use crate::wide::{Wide, Wish, covers_all, passes_on};
use crate::zones::Zone;
use abi::ZoneId;
use abi::command::FlowMod;
use flow::canonical::{read_match, read_match_into};
use flow::{DatapathId, Match};
use std::collections::BTreeSet;

impl Precedence {
    /// Refuses a rule that takes all packets that an earlier app wants to receive, from a table that they reach. A rule that
    /// passes packets on to a later table takes none of an app whose priorities are all higher: that app's rules come
    /// first, and the rest goes on. In the later table, it may meet a rule that takes them: that one is evicted.
    #[cold]
    pub(crate) fn check_blinding(
        &mut self,
        zone: ZoneId,
        datapath: DatapathId,
        key: Option<RuleKey>,
        it: &FlowMod<'_>,
        others: &mut Others<'_>,
    ) -> Result<(), Refusal> {
        if read_match_into(it.matching, &mut self.scratch).is_err() {
            return Ok(());
        }
        if !is_wide(&self.scratch, others, datapath) {
            return Ok(());
        }
        let rule = Wide {
            table_id: it.table_id,
            // A loose modify names no single rule: it is kept until rules with their own keys replace it.
            key,
            owner: zone,
            priority: it.priority,
            matching: self.scratch.clone(),
            to: passes_on(it.table_id, it.instructions),
        };
        self.wide.keep_those_there(datapath, |it| has_wide(others.datapaths, datapath, it));
        let wishes: Vec<Wish<'_>> = wishes(others, datapath).collect();
        let compared = self.wide.count(datapath) * wishes.len();
        others.scratch.count_compared(compared as u64);
        let mut evictions = Vec::new();
        for wish in &wishes {
            let reached = self.wide.reached(datapath, wish, Some(&rule));
            if reached.contains(rule.table_id) && self.blinds(&rule, wish) {
                if self.is_enforced(zone, others) {
                    return Err(Refusal::Order(OrderRefused::Blinds(wish.zone)));
                }
            } else if rule.to.is_some() {
                self.find_blinding(datapath, wish, Some(&rule), others, &mut evictions);
            }
        }
        if evictions.len() > EVICTIONS_MAX {
            return Err(Refusal::Order(OrderRefused::ShadowedByMany));
        }
        if !self.wide.has_room_for(datapath, &rule) {
            // It is only known so that it can be evicted for an app that wants packets later.
            let is_dispensable = rule.table_id == 0 && rule.to.is_none();
            return if is_dispensable { Ok(()) } else { Err(Refusal::Order(OrderRefused::TooManyWide)) };
        }
        let pending = self.pending.get_or_insert_default();
        pending.wide = Some((datapath, rule));
        pending.evictions = evictions;
        Ok(())
    }

    /// Whether this rule, in a table that all packets of the wish reach, keeps them from the app.
    fn blinds(&self, rule: &Wide, wish: &Wish<'_>) -> bool {
        wish.zone != rule.owner
            && self.is_before(wish.zone, rule.owner)
            && !(rule.to.is_some() && self.is_above(wish.zone, rule.priority))
            && wish.is_all_in(&rule.matching)
    }

    /// Finds the known rules that keep all packets of the wish from its app, if `more` is added.
    fn find_blinding(
        &self,
        datapath: DatapathId,
        wish: &Wish<'_>,
        more: Option<&Wide>,
        others: &Others<'_>,
        found: &mut Vec<Eviction>,
    ) {
        let reached = self.wide.reached(datapath, wish, more);
        for rule in self.wide.of(datapath) {
            let is_replaced = more.is_some_and(|more| more.replaces(rule));
            let Some(key) = rule.key.filter(|_| !is_replaced && reached.contains(rule.table_id)) else {
                continue;
            };
            let is_known = found.iter().any(|it| it.key == key && it.table_id == rule.table_id);
            if !is_known && self.blinds(rule, wish) && self.is_enforced(rule.owner, others) {
                let Wide { owner, priority, ref matching, .. } = *rule;
                let placed = Placed { key, owner, priority, matching: matching.clone() };
                let evicted = eviction((datapath, rule.table_id), &placed, wish.zone);
                found.push(Eviction { takes_all: true, ..evicted });
            }
        }
    }

    /// Apps want other packets now, or the switch has reported its rules: rules that keep all packets from an earlier app
    /// are evicted.
    pub fn on_wishes(&mut self, datapath: DatapathId, others: &Others<'_>) {
        if self.wide.count(datapath) == 0 {
            return;
        }
        self.wide.keep_those_there(datapath, |it| has_wide(others.datapaths, datapath, it));
        let mut found = Vec::new();
        for wish in wishes(others, datapath) {
            self.find_blinding(datapath, &wish, None, others, &mut found);
        }
        self.keep_evictions(found);
    }

    /// Whether a rule may pass packets of this switch on to a later table.
    pub fn may_reach_later(&self, datapath: DatapathId) -> bool {
        let pending = self.pending.as_ref().and_then(|it| it.wide.as_ref());
        pending.is_some_and(|(at, _)| *at == datapath) || self.wide.count(datapath) > 0
    }

    /// The tables behind table 0 that all packets of some app reach, also by the rule that is decided now.
    pub fn reached(&self, datapath: DatapathId, others: &Others<'_>) -> BTreeSet<u8> {
        let more = self.pending.as_ref().and_then(|it| it.wide.as_ref()).filter(|(at, _)| *at == datapath);
        let mut tables = BTreeSet::new();
        for wish in wishes(others, datapath) {
            tables.extend(self.wide.reached(datapath, &wish, more.map(|(_, rule)| rule)).behind_first());
        }
        tables
    }

    /// Whether the rule that is decided now evicts this app's rule for all packets from this table.
    pub fn evicts(&self, datapath: DatapathId, table_id: u8, priority: u16) -> bool {
        let pending = self.pending.iter().flat_map(|it| &it.evictions);
        let mut all = pending.chain(&self.evictions);
        all.any(|it| {
            (it.datapath, it.table_id, it.priority) == (datapath, table_id, priority)
                && it.matching.is_empty()
        })
    }

    /// The tables to which known rules pass all packets of some app on.
    pub fn passed_to(&mut self, datapath: DatapathId, datapaths: &Datapaths) -> BTreeSet<u8> {
        self.wide.keep_those_there(datapath, |it| has_wide(datapaths, datapath, it));
        self.wide.of(datapath).iter().filter_map(|it| it.to).collect()
    }

    /// A switch has connected or disconnected.
    pub fn forget_switch(&mut self, datapath: DatapathId) {
        self.wide.forget(datapath);
    }

    /// A switch reports this rule, which may match all packets that an app wants. [`Self::on_wishes`] judges it.
    pub fn on_wide_found(
        &mut self,
        (datapath, table_id): Table,
        key: RuleKey,
        owner: ZoneId,
        (priority, matching, instructions): (u16, &[u8], &[u8]),
        others: &Others<'_>,
    ) {
        let Ok(matching) = read_match(matching) else { return };
        if !is_wide(&matching, others, datapath) {
            return;
        }
        let to = passes_on(table_id, instructions);
        let rule = Wide { table_id, key: Some(key), owner, priority, matching, to };
        if self.wide.has_room_for(datapath, &rule) {
            self.wide.note(datapath, rule);
        }
    }
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
fn is_wide(matching: &Match, others: &Others<'_>, datapath: DatapathId) -> bool {
    let mut selective = wishes_of(others.zones, others.receivers.selective.iter(), datapath);
    covers_all(matching) || selective.any(|wish| wish.is_all_in(matching))
}

/// Whether a switch still has this rule, according to its record. A loose modify has changed rules, whichever there were.
fn has_wide(datapaths: &Datapaths, datapath: DatapathId, rule: &Wide) -> bool {
    let known = |key| datapaths.get(&datapath).and_then(|there| there.record.known(key));
    rule.key.is_none_or(|key| known(key).is_some_and(|known| known.owner == Owner::Zone(rule.owner)))
}
