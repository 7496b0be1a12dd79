//! Which apps can conflict, by the priorities, tables and switches of their rules.
//!
//! ```text
//!   grants ──────────────────────────> on_grant ──┐
//!   rules that switches report ──────> on_rule ───┼──> an area for each app ──> the priorities at which its rules are compared (Contest)
//!   a switch has reported all rules ─> on_report ─┘
//! ```
//!
//! A narrower grant removes no rules from switches. So the area of the earlier grant counts until every switch has reported
//! its rules once more. From then on, the rules count that switches still have outside of the new grant.
//!
//! In: grants, and the places of reported rules. Out: which apps' rules to compare, and at which priorities. It knows no
//! match, and asks no switch. Memory: one area for each zone number; an area names at most the switches of a grant, and
//! those on which rules were found.

use crate::capability::Capability;
use crate::grant::{Bounds, Grant, TableSet};
use crate::overlap::Table;
use crate::zone_set::ZoneSet;
use abi::ZoneId;
use flow::DatapathId;
use std::cmp::Ordering;
use std::collections::BTreeSet;

/// Where an app may have rules.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Area {
    lowest: u16,
    highest: u16,
    /// `None`: all tables.
    tables: Option<TableSet>,
    /// In order; `None`: all switches.
    datapaths: Option<Vec<DatapathId>>,
}

impl Area {
    fn of(bounds: &Bounds) -> Area {
        let Bounds { priorities, tables, .. } = bounds;
        let datapaths = bounds.switches().map(|those| those.into_iter().collect());
        Area { lowest: *priorities.start(), highest: *priorities.end(), tables: *tables, datapaths }
    }

    fn of_rule((datapath, table_id): Table, priority: u16) -> Area {
        let (tables, datapaths) = (Some(TableSet::from_iter([table_id])), Some(vec![datapath]));
        Area { lowest: priority, highest: priority, tables, datapaths }
    }

    /// The smallest area that has both.
    fn joined(&self, other: &Area) -> Area {
        let tables = self.tables.zip(other.tables).map(|(these, those)| these.union(&those));
        let datapaths = self.datapaths.as_ref().zip(other.datapaths.as_ref()).map(|(these, those)| {
            let all: BTreeSet<DatapathId> = these.iter().chain(those).copied().collect();
            all.into_iter().collect()
        });
        let (lowest, highest) = (self.lowest.min(other.lowest), self.highest.max(other.highest));
        Area { lowest, highest, tables, datapaths }
    }

    fn has(&self, other: &Area) -> bool {
        let tables =
            self.tables.is_none_or(|these| other.tables.is_some_and(|those| those.is_within(&these)));
        let datapaths = self.datapaths.as_ref().is_none_or(|these| {
            other
                .datapaths
                .as_ref()
                .is_some_and(|those| those.iter().all(|it| these.binary_search(it).is_ok()))
        });
        self.lowest <= other.lowest && other.highest <= self.highest && tables && datapaths
    }

    /// Whether the two have a table of a switch in common.
    fn meets(&self, other: &Area) -> bool {
        let tables = self.tables.zip(other.tables).is_none_or(|(these, those)| these.meets(&those));
        let datapaths = self.datapaths.as_ref().zip(other.datapaths.as_ref());
        tables && datapaths.is_none_or(|(these, those)| have_common(these, those))
    }
}

/// Whether two lists in order have an element in common.
fn have_common(mut these: &[DatapathId], mut those: &[DatapathId]) -> bool {
    while let (Some(one), Some(other)) = (these.first(), those.first()) {
        match one.cmp(other) {
            Ordering::Less => these = &these[1..],
            Ordering::Greater => those = &those[1..],
            Ordering::Equal => return true,
        }
    }
    false
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

    fn add_earlier(&mut self, lowest: u16) {
        self.may_shadow_from = Some(self.may_shadow_from.map_or(lowest, |from| from.min(lowest)));
    }

    fn add_later(&mut self, highest: u16) {
        self.may_be_shadowed_to = self.may_be_shadowed_to.max(Some(highest));
    }
}

/// An app's place in the order, and where it may have rules.
#[derive(Clone, Debug, Default)]
struct Territory {
    rank: u16,
    granted: Option<Area>,
    /// Of an earlier grant, or of rules that a switch has reported outside of this one.
    kept: Option<Area>,
    /// Both.
    area: Option<Area>,
    /// While switches are asked which rules of an earlier grant they still have.
    asked: Option<Asked>,
}

/// Which rules of an earlier grant there still are.
#[derive(Clone, Debug)]
struct Asked {
    /// The switches that have not answered.
    waiting: BTreeSet<DatapathId>,
    /// Those that were found.
    found: Option<Area>,
}

impl Territory {
    fn renew(&mut self) {
        self.area = joined(self.granted.as_ref(), self.kept.as_ref());
    }
}

fn joined(one: Option<&Area>, other: Option<&Area>) -> Option<Area> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.joined(other)),
        (one, other) => one.or(other).cloned(),
    }
}

/// The apps' order, and which of their rules may conflict.
#[derive(Clone, Debug)]
pub(crate) struct Contests {
    /// By zone number. An entry stays after its zone has ended: the zone's rules stay in the switches, and keep their
    /// place in the order.
    territories: Vec<Option<Territory>>,
    /// By zone number.
    contests: Vec<Contest>,
    /// Apps that may conflict.
    compared: ZoneSet,
    /// Apps of whose rules it is asked which there still are.
    asked: ZoneSet,
}

impl Default for Contests {
    fn default() -> Contests {
        let (compared, asked) = (ZoneSet::EMPTY, ZoneSet::EMPTY);
        Contests { territories: Vec::new(), contests: Vec::new(), compared, asked }
    }
}

impl Contests {
    /// Whether the rules of this zone are compared with those of others.
    #[inline]
    pub fn compares(&self, zone: ZoneId) -> bool {
        self.compared.contains(zone)
    }

    /// Whether a rule of this zone with this priority is compared with those of others.
    pub fn compares_at(&self, zone: ZoneId, priority: u16) -> bool {
        self.compares(zone) && self.contests.get(usize::from(zone.0)).is_some_and(|it| it.has(priority))
    }

    /// Whether the first zone precedes the second: by rank, and by number if the ranks are equal.
    pub fn is_before(&self, first: ZoneId, second: ZoneId) -> bool {
        self.place(first) < self.place(second)
    }

    fn place(&self, zone: ZoneId) -> (u16, u16) {
        (self.territory(zone).map_or(u16::MAX, |it| it.rank), zone.0)
    }

    fn territory(&self, zone: ZoneId) -> Option<&Territory> {
        self.territories.get(usize::from(zone.0))?.as_ref()
    }

    fn area(&self, zone: ZoneId) -> Option<&Area> {
        self.territory(zone)?.area.as_ref()
    }

    /// Whether all rules of an app have a higher priority than this. An app without rules has none below.
    pub fn is_above(&self, zone: ZoneId, priority: u16) -> bool {
        self.territory(zone).is_some_and(|it| it.area.as_ref().is_none_or(|area| area.lowest > priority))
    }

    /// An app has this grant from now on, and these switches are connected. Returns whether to ask them for their rules.
    pub fn on_grant(
        &mut self,
        zone: ZoneId,
        grant: &Grant,
        connected: impl Iterator<Item = DatapathId>,
    ) -> bool {
        let granted = grant.holds(Capability::RuleWrite).then(|| Area::of(grant.rules()));
        let place = usize::from(zone.0);
        self.territories.resize(self.territories.len().max(place + 1), None);
        let Some(of_zone) = self.territories.get_mut(place) else { return false };
        let is_new = of_zone.is_none();
        let it = of_zone.get_or_insert_default();
        if !is_new && (it.rank, &it.granted) == (grant.rank(), &granted) {
            return false;
        }
        let moves = !is_new && it.rank != grant.rank();
        it.rank = grant.rank();
        it.granted = granted;
        // Rules from the time of an earlier grant are still in the switches.
        let before = it.area.take();
        let is_left = |before: &Area| it.granted.as_ref().is_none_or(|granted| !granted.has(before));
        it.kept = before.filter(is_left);
        it.asked = None;
        self.asked.remove(zone);
        let waiting: BTreeSet<DatapathId> = connected.filter(|_| it.kept.is_some()).collect();
        let is_asked = !waiting.is_empty();
        if is_asked {
            it.asked = Some(Asked { waiting, found: None });
            self.asked.insert(zone);
        } else {
            // A switch that connects reports its rules.
            it.kept = None;
        }
        it.renew();
        let is_wider = if is_new { self.renew_with(zone) } else { self.renew_all() };
        // In another order, other rules of the same apps may have to go.
        is_asked || is_wider || moves && self.compares(zone)
    }

    /// A switch reports a rule of this zone. Returns whether it is outside of all known areas of the app: then
    /// [`Self::on_rules`] must follow.
    pub fn on_rule(&mut self, zone: ZoneId, table: Table, priority: u16) -> bool {
        let Some(it) = self.territories.get_mut(usize::from(zone.0)).and_then(Option::as_mut) else {
            return false;
        };
        let is_in = |area: Option<&Area>| {
            area.is_some_and(|area| {
                let Area { lowest, highest, tables, datapaths } = area;
                (*lowest..=*highest).contains(&priority)
                    && tables.is_none_or(|tables| tables.contains(table.1))
                    && datapaths.as_ref().is_none_or(|those| those.binary_search(&table.0).is_ok())
            })
        };
        if is_in(it.granted.as_ref()) {
            return false;
        }
        let rule = Area::of_rule(table, priority);
        if let Some(asked) = &mut it.asked
            && !is_in(asked.found.as_ref())
        {
            asked.found = joined(asked.found.as_ref(), Some(&rule));
        }
        if is_in(it.area.as_ref()) {
            return false;
        }
        it.kept = joined(it.kept.as_ref(), Some(&rule));
        it.renew();
        true
    }

    /// Some rules were outside of all known areas of their apps. Returns whether to ask the switches for their rules once
    /// more: some that were not compared may conflict with them.
    #[cold]
    pub fn on_rules(&mut self) -> bool {
        self.renew_all()
    }

    /// A switch has reported all of its rules since the last grant, or has disconnected. Then it reports them when it
    /// connects again.
    pub fn on_report(&mut self, datapath: DatapathId) {
        let mut is_changed = false;
        for zone in &self.asked.clone() {
            let of_zone = self.territories.get_mut(usize::from(zone.0)).and_then(Option::as_mut);
            let Some(it) = of_zone else { continue };
            let Some(asked) = &mut it.asked else { continue };
            asked.waiting.remove(&datapath);
            if asked.waiting.is_empty() {
                it.kept = it.asked.take().and_then(|asked| asked.found);
                it.renew();
                self.asked.remove(zone);
                is_changed = true;
            }
        }
        if is_changed {
            self.renew_all();
        }
    }

    /// A new app: only its contests are new. Returns whether further rules are compared now.
    fn renew_with(&mut self, zone: ZoneId) -> bool {
        let mut contests = self.contests.clone();
        contests.resize(self.territories.len(), Contest::default());
        for other in self.writers().map(|(_, other)| other) {
            self.add_contest(zone, other, &mut contests);
        }
        self.replace(contests)
    }

    /// Notes what two apps can do to each other.
    fn add_contest(&self, one: ZoneId, other: ZoneId, contests: &mut [Contest]) {
        let (first, second) = if self.is_before(one, other) { (one, other) } else { (other, one) };
        let (Some(earlier), Some(later)) = (self.area(first), self.area(second)) else { return };
        if one == other || earlier.lowest > later.highest || !earlier.meets(later) {
            return;
        }
        if let Some(contest) = contests.get_mut(usize::from(first.0)) {
            contest.add_later(later.highest);
        }
        if let Some(contest) = contests.get_mut(usize::from(second.0)) {
            contest.add_earlier(earlier.lowest);
        }
    }

    /// An area has changed. Returns whether further rules are compared now.
    fn renew_all(&mut self) -> bool {
        let mut order: Vec<(&Area, ZoneId)> = self.writers().collect();
        order.sort_by_key(|(_, zone)| self.place(*zone));
        let contests = match order.iter().all(|(area, _)| area.tables.is_none() && area.datapaths.is_none()) {
            true => contests_everywhere(&order, self.territories.len()),
            false => contests_by_places(&order, self.territories.len()),
        };
        self.replace(contests)
    }

    fn replace(&mut self, now: Vec<Contest>) -> bool {
        let before = |number: usize| self.contests.get(number).copied().unwrap_or_default();
        let is_wider = now.iter().enumerate().any(|(number, it)| it.is_wider_than(&before(number)));
        let contending = now.iter().zip(0..).filter(|(it, _)| **it != Contest::default());
        self.compared = contending.map(|(_, number)| ZoneId(number)).collect();
        self.contests = now;
        is_wider
    }

    /// The apps that may have rules, by number.
    fn writers(&self) -> impl Iterator<Item = (&Area, ZoneId)> + '_ {
        let there = self.territories.iter().zip(0..);
        there.filter_map(|(it, number)| Some((it.as_ref()?.area.as_ref()?, ZoneId(number))))
    }
}

/// The contests of apps in this order that may all have rules in all tables of all switches. Only the lowest priority of all
/// earlier apps matters to an app, and the highest of all later ones.
fn contests_everywhere(order: &[(&Area, ZoneId)], numbers: usize) -> Vec<Contest> {
    let mut contests = vec![Contest::default(); numbers];
    let mut lowest: Option<u16> = None;
    for (area, zone) in order {
        if let Some(lowest) = lowest.filter(|lowest| *lowest <= area.highest) {
            contests[usize::from(zone.0)].add_earlier(lowest);
        }
        lowest = Some(lowest.map_or(area.lowest, |it| it.min(area.lowest)));
    }
    let mut highest: Option<u16> = None;
    for (area, zone) in order.iter().rev() {
        if let Some(highest) = highest.filter(|highest| *highest >= area.lowest) {
            contests[usize::from(zone.0)].add_later(highest);
        }
        highest = highest.max(Some(area.highest));
    }
    contests
}

/// The same for apps that have tables or switches of their own. Each list is read once: comparing the lists of all pairs took
/// minutes for a thousand apps with a thousand switches each.
fn contests_by_places(order: &[(&Area, ZoneId)], numbers: usize) -> Vec<Contest> {
    let mut contests = vec![Contest::default(); numbers];
    let by_switch = sharing(order, |area| area.datapaths.as_deref().map(|those| those.iter().copied()));
    let by_table = sharing(order, |area| area.tables.map(TableSet::tables));
    let together = by_switch.iter().zip(&by_table);
    for (place, ((earlier, first), (switches, tables))) in order.iter().zip(together).enumerate() {
        for (later, second) in order.iter().skip(place + 1) {
            if earlier.lowest <= later.highest && switches.contains(*second) && tables.contains(*second) {
                contests[usize::from(first.0)].add_later(later.highest);
                contests[usize::from(second.0)].add_earlier(earlier.lowest);
            }
        }
    }
    contests
}

/// For each app: those that have one of its places too. An app without a list has all places.
fn sharing<'a, P: Copy + Ord, L: Iterator<Item = P>>(
    order: &[(&'a Area, ZoneId)],
    places: impl Fn(&'a Area) -> Option<L>,
) -> Vec<ZoneSet> {
    let all: ZoneSet = order.iter().map(|(_, zone)| *zone).collect();
    let everywhere: ZoneSet =
        order.iter().filter(|(area, _)| places(area).is_none()).map(|(_, zone)| *zone).collect();
    let mut by_place: Vec<(P, usize)> = Vec::new();
    let mut found = Vec::new();
    for (number, (area, _)) in order.iter().enumerate() {
        match places(area) {
            Some(those) => {
                by_place.extend(those.map(|place| (place, number)));
                found.push(everywhere.clone());
            }
            None => found.push(all.clone()),
        }
    }
    by_place.sort_unstable();
    // A place that only one app has needs nothing.
    for together in by_place.chunk_by(|one, other| one.0 == other.0).filter(|it| it.len() > 1) {
        let zones: ZoneSet = together.iter().map(|(_, number)| order[*number].1).collect();
        together.iter().for_each(|(_, number)| found[*number].union_with(&zones));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ZONE: ZoneId = ZoneId(1);
    const OTHER: ZoneId = ZoneId(2);
    const SWITCHES: [DatapathId; 2] = [DatapathId(1), DatapathId(2)];

    fn grant(rank: u16, priorities: std::ops::RangeInclusive<u16>) -> Grant {
        Grant::nothing().with_rules(Bounds { priorities, ..Bounds::default() }).with_rank(rank)
    }

    /// An earlier app that has had priorities from 10 on and now has them from 100 on, and a later one.
    fn narrowed() -> Contests {
        let mut contests = Contests::default();
        contests.on_grant(ZONE, &grant(1, 10..=200), SWITCHES.into_iter());
        contests.on_grant(OTHER, &grant(2, 0..=99), SWITCHES.into_iter());
        assert!(contests.compares_at(OTHER, 10));
        assert!(
            contests.on_grant(ZONE, &grant(1, 100..=200), SWITCHES.into_iter()),
            "the switches are asked"
        );
        contests
    }

    #[test]
    fn an_earlier_grant_counts_until_every_switch_has_reported_its_rules() {
        let mut contests = narrowed();
        contests.on_report(SWITCHES[0]);
        assert!(contests.compares_at(OTHER, 10) && !contests.is_above(ZONE, 50));
        contests.on_report(SWITCHES[1]);
        assert!(!contests.compares(OTHER) && contests.is_above(ZONE, 50));
        assert!(!contests.compares(ZONE));
    }

    #[test]
    fn rules_outside_of_the_new_grant_count_as_long_as_they_are_reported() {
        let mut contests = narrowed();
        assert!(!contests.on_rule(ZONE, (SWITCHES[0], 3), 40), "it is within the earlier grant");
        assert!(!contests.on_rule(ZONE, (SWITCHES[0], 3), 150));
        SWITCHES.into_iter().for_each(|datapath| contests.on_report(datapath));
        assert!(contests.compares_at(OTHER, 40) && !contests.compares_at(OTHER, 39));
        assert!(contests.is_above(ZONE, 39) && !contests.is_above(ZONE, 40));
        // The next grant is no narrower, and this rule is still there.
        assert!(contests.on_grant(ZONE, &grant(1, 90..=200), SWITCHES.into_iter()));
        assert!(contests.compares_at(OTHER, 40));
        SWITCHES.into_iter().for_each(|datapath| contests.on_report(datapath));
        assert!(!contests.compares_at(OTHER, 89) && contests.compares_at(OTHER, 90));
    }

    #[test]
    fn a_switch_that_connects_later_may_report_rules_of_an_earlier_grant() {
        let mut contests = narrowed();
        SWITCHES.into_iter().for_each(|datapath| contests.on_report(datapath));
        assert!(contests.on_rule(ZONE, (DatapathId(3), 0), 20));
        assert!(contests.on_rules() && contests.compares_at(OTHER, 20));
        assert!(!contests.on_rule(ZONE, (DatapathId(3), 0), 20), "it is known");
    }

    #[test]
    fn an_app_that_may_write_no_rules_any_more_keeps_its_place_while_it_has_some() {
        let mut contests = narrowed();
        contests.on_grant(ZONE, &Grant::nothing().with_rank(1), SWITCHES.into_iter());
        assert!(contests.compares_at(OTHER, 10) && contests.is_before(ZONE, OTHER));
        SWITCHES.into_iter().for_each(|datapath| contests.on_report(datapath));
        assert!(!contests.compares(OTHER));
    }

    #[test]
    fn earlier_tables_and_switches_count_like_earlier_priorities() {
        let within = |table: u8, datapath| {
            let (tables, datapaths) = (Some([table].into_iter().collect()), Some(vec![datapath]));
            Grant::nothing().with_rules(Bounds { tables, datapaths, ..Bounds::default() }).with_rank(1)
        };
        let mut contests = Contests::default();
        contests.on_grant(ZONE, &within(1, SWITCHES[0]), SWITCHES.into_iter());
        let other = within(1, SWITCHES[0]).with_rank(2);
        contests.on_grant(OTHER, &other, SWITCHES.into_iter());
        assert!(contests.compares(OTHER));
        contests.on_grant(ZONE, &within(2, SWITCHES[1]), SWITCHES.into_iter());
        assert!(contests.compares(OTHER), "its rules are still there");
        SWITCHES.into_iter().for_each(|datapath| contests.on_report(datapath));
        assert!(!contests.compares(OTHER));
    }

    fn any_bounds() -> impl Strategy<Value = Bounds> {
        let tables = prop::option::of(prop::collection::vec(0..3_u8, 1..3));
        let datapaths = prop::option::of(prop::collection::vec(1..4_u64, 1..3));
        (0..20_u16, 0..20_u16, tables, datapaths).prop_map(|(one, other, tables, datapaths)| Bounds {
            priorities: one.min(other)..=one.max(other),
            tables: tables.map(|those| those.into_iter().collect()),
            datapaths: datapaths.map(|those| those.into_iter().map(DatapathId).collect()),
            ..Bounds::default()
        })
    }

    /// Whether two apps may both have a rule at some table of some switch.
    fn meet(one: &Bounds, other: &Bounds) -> bool {
        let has = |it: &Bounds, datapath: u64, table_id: u8| {
            it.datapaths.as_ref().is_none_or(|those| those.contains(&DatapathId(datapath)))
                && it.tables.is_none_or(|those| those.contains(table_id))
        };
        (1..5).any(|datapath| (0..4).any(|table| has(one, datapath, table) && has(other, datapath, table)))
    }

    proptest! {
        #[test]
        fn what_all_pairs_of_apps_can_do_to_each_other_is_found(
            grants in prop::collection::vec((1..90_u16, 0..6_u16, any_bounds(), any::<bool>()), 1..20)
        ) {
            let mut contests = Contests::default();
            let mut model: std::collections::BTreeMap<u16, (u16, Option<Bounds>)> = Default::default();
            for (zone, rank, bounds, writes) in grants {
                let grant = Grant::nothing().with_rank(rank);
                let grant = if writes { grant.with_rules(bounds.clone()) } else { grant };
                contests.on_grant(ZoneId(zone), &grant, std::iter::empty());
                model.insert(zone, (rank, writes.then_some(bounds)));
            }
            let mut expected = vec![Contest::default(); contests.territories.len()];
            for (one, (rank, bounds)) in &model {
                for (other, (other_rank, other_bounds)) in &model {
                    let (Some(earlier), Some(later)) = (bounds, other_bounds) else { continue };
                    let is_before = (rank, one) < (other_rank, other);
                    let decides = earlier.priorities.start() <= later.priorities.end();
                    if is_before && decides && meet(earlier, later) {
                        expected[usize::from(*one)].add_later(*later.priorities.end());
                        expected[usize::from(*other)].add_earlier(*earlier.priorities.start());
                    }
                }
            }
            prop_assert_eq!(&contests.contests, &expected);
            let compared: Vec<u16> = contests.compared.iter().map(|zone| zone.0).collect();
            let contending = (0_u16..).zip(&expected).filter(|(_, it)| **it != Contest::default());
            prop_assert_eq!(compared, contending.map(|(number, _)| number).collect::<Vec<_>>());
        }
    }
}
