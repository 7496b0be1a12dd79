//! What zones lost and cannot delete themselves: rules, groups and meters that the kernel deletes for them.
//!
//! ```text
//!   Withdrawal ──> due ──the switch reports its rules──> found ──last part──> batches of deletes, each with a barrier ──> done
//!                   │                                                           └── no room: a second later again
//!                   └── the switch is away: it reports them when it connects
//! ```
//!
//! A slice of a tenant can lose a port or all of its network while its process does not run, or while a switch is away. Its rules carry its zone
//! number, so the kernel finds them in the report that each switch gives when it connects (`crate::sessions`). Apps receive the switch after that.
//!
//! In: what zones lost, reports of switches, answers to barriers. Out: deletes, and which losses are withdrawn. It deletes no rule that does not
//! carry the zone's number, and none that names a port which the zone never had there: that rule is another controller's.
//!
//! Bounds: [`WITHDRAWALS_MAX`], [`TRIES_MAX`], and as many deletes as one switch reports rules. Each delete is strict. In 1.3 it names the whole cookie. 1.0 compares no
//! cookie, so nothing is deleted in a place that an app has taken meanwhile.

use crate::group_or_meter::GroupOrMeter;
use crate::record::Record;
use crate::reported_rules::ReportedRule;
use crate::rule_key::RuleKey;
use abi::{OpenFlowVersion, ZoneId};
use core::net::Ipv4Addr;
use flow::canonical::{actions_raw, find_field, instructions_raw, match_tlvs};
use flow::{DatapathId, Field, PortNo};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// The most losses at once. Further ones are ignored, and their rules stay.
pub const WITHDRAWALS_MAX: usize = 65_536;

/// The deletes before a barrier. So a large table fills neither the output of the session nor the queue of the switch.
const BATCH: usize = 128;

/// A switch that takes no more bytes, or has no room for one more barrier, gets the batch after this time again.
const AGAIN_MS: u64 = 1_000;

/// How often in a row it gets no batch. After a minute, the rules stay until it connects again.
pub const TRIES_MAX: u32 = 60;

/// The fields that can name a host of a slice.
const ADDRESSES: [Field; 4] = [Field::Ipv4Src, Field::Ipv4Dst, Field::ArpSpa, Field::ArpTpa];

/// What a zone lost at a switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Withdrawal {
    /// Its number. No other withdrawal has had it.
    pub id: u64,
    /// The zone.
    pub zone: ZoneId,
    /// The switch.
    pub datapath: DatapathId,
    /// The ports that the zone had there.
    pub ports: BTreeSet<PortNo>,
    /// What it lost.
    pub lost: LostParts,
}

/// What a zone lost at a switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LostParts {
    /// All of its rules, groups and meters.
    All,
    /// Ports and addresses. The rules that name one of them go. So do all groups, because it is not known which of them do.
    Parts {
        /// The ports.
        ports: BTreeSet<PortNo>,
        /// The addresses.
        addresses: BTreeSet<Ipv4Addr>,
    },
}

/// What is to be deleted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Removal {
    /// This rule.
    Rule {
        /// Its table.
        table_id: u8,
        /// Its priority.
        priority: u16,
        /// Its cookie.
        cookie: u64,
        /// Which bits of it the switch compares: all, or none in 1.0.
        cookie_mask: u64,
        /// Its match as canonical bytes.
        matching: Vec<u8>,
    },
    /// This group.
    Group(u32),
    /// This meter.
    Meter(u32),
}

/// A rule that was found, with its key in the record.
type Found = (Option<RuleKey>, Removal);

/// The withdrawals at one switch.
#[derive(Clone, Debug, Default)]
struct AtSwitch {
    due: Vec<Withdrawal>,
    /// Found in the report that is being read.
    found: Vec<Found>,
    /// Under way: the numbers of the withdrawals, and the deletes that are left.
    under_way: Option<(BTreeSet<u64>, VecDeque<Found>)>,
    /// The batch that was given last, until it is answered.
    batch: Vec<Found>,
    /// How often in a row a batch had no room.
    tries: u32,
    has_failed: bool,
}

/// All withdrawals of one worker.
#[derive(Clone, Debug, Default)]
pub(crate) struct Withdrawals {
    switches: BTreeMap<DatapathId, AtSwitch>,
    /// Those that are done and still listed.
    finished: BTreeSet<u64>,
    done: Vec<u64>,
    /// Switches whose next batch is due.
    ready: BTreeSet<DatapathId>,
    /// Switches that had no room, and when they get their batch again.
    again: BTreeMap<DatapathId, u64>,
}

impl Withdrawals {
    /// From now on, these are wanted, and no others. Returns the switches with new ones.
    pub fn want(&mut self, wanted: &[Withdrawal]) -> BTreeSet<DatapathId> {
        let listed: BTreeSet<u64> = wanted.iter().map(|it| it.id).collect();
        self.finished.retain(|id| listed.contains(id));
        let known: BTreeSet<u64> = self.switches.values().flat_map(|it| &it.due).map(|it| it.id).collect();
        self.switches.values_mut().for_each(|it| it.due.clear());
        let mut with_new = BTreeSet::new();
        for it in wanted.iter().take(WITHDRAWALS_MAX).filter(|it| !self.finished.contains(&it.id)) {
            self.switches.entry(it.datapath).or_default().due.push(it.clone());
            if !known.contains(&it.id) {
                with_new.insert(it.datapath);
            }
        }
        self.switches.retain(|_, it| !it.due.is_empty() || it.under_way.is_some());
        with_new
    }

    /// A switch reports a rule of this zone. Returns whether it is to be deleted.
    pub fn on_rule(
        &mut self,
        (datapath, openflow): (DatapathId, OpenFlowVersion),
        zone: ZoneId,
        key: RuleKey,
        rule: &ReportedRule<'_>,
    ) -> bool {
        let Some(there) = self.switches.get_mut(&datapath) else { return false };
        let goes = there.due.iter().any(|it| it.zone == zone && it.takes(rule));
        if goes {
            let ReportedRule { table_id, priority, cookie, matching, .. } = *rule;
            let matching = matching.to_vec();
            let cookie_mask = if openflow == OpenFlowVersion::V1_0 { 0 } else { u64::MAX };
            let removal = Removal::Rule { table_id, priority, cookie, cookie_mask, matching };
            there.found.push((Some(key), removal));
        }
        goes
    }

    /// The switch has reported all of its rules. `owned`: the groups and meters of a zone there. Returns those that are to be deleted.
    pub fn on_report(
        &mut self,
        datapath: DatapathId,
        owned: impl Fn(ZoneId) -> Vec<GroupOrMeter>,
    ) -> Vec<GroupOrMeter> {
        let Some(there) = self.switches.get_mut(&datapath).filter(|it| !it.due.is_empty()) else {
            return Vec::new();
        };
        let gone: BTreeSet<GroupOrMeter> = there
            .due
            .iter()
            .flat_map(|it| owned(it.zone).into_iter().filter(|thing| it.takes_thing(*thing)))
            .collect();
        let things = gone.iter().map(|thing| match thing {
            GroupOrMeter::Group(id) => (None, Removal::Group(*id)),
            GroupOrMeter::Meter(id) => (None, Removal::Meter(*id)),
        });
        let found = std::mem::take(&mut there.found).into_iter().chain(things);
        let (ids, left) = there.under_way.get_or_insert_default();
        ids.extend(there.due.iter().map(|it| it.id));
        left.extend(found);
        self.ready.insert(datapath);
        gone.into_iter().collect()
    }

    /// There is no report, or it ended early: nothing of it counts.
    pub fn on_no_report(&mut self, datapath: DatapathId) {
        if let Some(there) = self.switches.get_mut(&datapath) {
            there.found.clear();
        }
    }

    /// Time passes: batches that had no room are due again.
    pub fn on_time(&mut self, now_ms: u64) {
        let Withdrawals { again, ready, .. } = self;
        again.retain(|datapath, at_ms| {
            let is_due = *at_ms <= now_ms;
            if is_due {
                ready.insert(*datapath);
            }
            !is_due
        });
    }

    /// The switches whose next batch is due. Each is returned once.
    pub fn take_ready(&mut self) -> BTreeSet<DatapathId> {
        std::mem::take(&mut self.ready)
    }

    /// The next batch for a switch. A barrier follows it. Empty: all is done.
    pub fn next_batch(
        &mut self,
        datapath: DatapathId,
        (openflow, record): (OpenFlowVersion, &Record),
    ) -> Vec<Removal> {
        let Some(there) = self.switches.get_mut(&datapath) else { return Vec::new() };
        let Some((_, left)) = &mut there.under_way else { return Vec::new() };
        // The record has forgotten the rule when it was reported. If it has one, an app has taken the place.
        let is_taken = |key: &Option<RuleKey>| key.is_some_and(|key| record.known(key).is_some());
        there.batch.clear();
        while there.batch.len() < BATCH
            && let Some((key, removal)) = left.pop_front()
        {
            if openflow != OpenFlowVersion::V1_0 || !is_taken(&key) {
                there.batch.push((key, removal));
            }
        }
        let batch: Vec<Removal> = there.batch.iter().map(|(_, removal)| removal.clone()).collect();
        if batch.is_empty() {
            self.end(datapath);
        }
        batch
    }

    /// The batch, or the barrier behind it, was not sent. So no answer comes, and nothing of it counts as deleted. Returns whether it is tried again.
    pub fn on_not_sent(&mut self, datapath: DatapathId, now_ms: u64) -> bool {
        let Some(there) = self.switches.get_mut(&datapath) else { return false };
        let Some((_, left)) = &mut there.under_way else { return false };
        there.tries += 1;
        let is_tried_again = there.tries < TRIES_MAX;
        if is_tried_again {
            there.batch.drain(..).rev().for_each(|found| left.push_front(found));
            self.again.insert(datapath, now_ms.saturating_add(AGAIN_MS));
        } else {
            there.has_failed = true;
            self.end(datapath);
        }
        is_tried_again
    }

    /// The barrier behind a batch was answered, or it failed.
    pub fn on_answer(&mut self, datapath: DatapathId, is_done: bool) {
        if let Some(there) = self.switches.get_mut(&datapath).filter(|it| it.under_way.is_some()) {
            (there.batch, there.tries) = (Vec::new(), 0);
            there.has_failed |= !is_done;
            self.ready.insert(datapath);
        }
    }

    /// The switch refused a delete.
    pub fn on_error(&mut self, datapath: DatapathId) {
        if let Some(there) = self.switches.get_mut(&datapath) {
            there.has_failed = true;
        }
    }

    /// All deletes were sent and answered. What failed is tried again when the switch connects again, if it is listed still.
    fn end(&mut self, datapath: DatapathId) {
        let Some(there) = self.switches.get_mut(&datapath) else { return };
        let ids = there.under_way.take().map(|(ids, _)| ids).unwrap_or_default();
        (there.batch, there.tries) = (Vec::new(), 0);
        if !std::mem::take(&mut there.has_failed) {
            there.due.retain(|it| !ids.contains(&it.id));
            self.finished.extend(&ids);
            self.done.extend(ids);
        }
        if there.due.is_empty() {
            self.switches.remove(&datapath);
        }
    }

    /// A switch disconnected: nothing that was under way counts.
    pub fn on_switch_down(&mut self, datapath: DatapathId) {
        self.ready.remove(&datapath);
        self.again.remove(&datapath);
        if let Some(there) = self.switches.get_mut(&datapath) {
            *there = AtSwitch { due: std::mem::take(&mut there.due), ..AtSwitch::default() };
        }
    }

    /// The withdrawals that are done since the last call.
    pub fn take_done(&mut self) -> Vec<u64> {
        std::mem::take(&mut self.done)
    }
}

impl Withdrawal {
    /// Whether a rule of the zone goes.
    fn takes(&self, rule: &ReportedRule<'_>) -> bool {
        let names = Names::of(rule);
        names.ports.iter().all(|port| self.ports.contains(port))
            && rule.table_id == 0
            && self.lost.is_named(&names)
    }

    fn takes_thing(&self, thing: GroupOrMeter) -> bool {
        self.lost == LostParts::All || matches!(thing, GroupOrMeter::Group(_))
    }
}

impl LostParts {
    fn is_named(&self, names: &Names) -> bool {
        match self {
            LostParts::All => true,
            LostParts::Parts { ports, addresses } => {
                !names.ports.is_disjoint(ports) || !names.addresses.is_disjoint(addresses)
            }
        }
    }
}

/// What a rule names: in its match and its actions.
#[derive(Default)]
struct Names {
    ports: BTreeSet<PortNo>,
    addresses: BTreeSet<Ipv4Addr>,
}

impl Names {
    fn of(rule: &ReportedRule<'_>) -> Names {
        let mut names = Names::default();
        let in_port = find_field(rule.matching, Field::InPort).and_then(|port| u32::try_from(port).ok());
        names.ports.extend(in_port.map(PortNo));
        for tlv in match_tlvs(rule.matching).map_while(Result::ok).filter(|tlv| !tlv.has_mask()) {
            names.note(tlv.field(), tlv.value());
        }
        let lists = instructions_raw(rule.instructions).map_while(Result::ok);
        for action in
            lists.filter_map(|it| it.action_bytes()).flat_map(|it| actions_raw(it).map_while(Result::ok))
        {
            let port = action.output().map(|(port, _)| port);
            names.ports.extend(port.filter(|port| ![PortNo::CONTROLLER, PortNo::IN_PORT].contains(port)));
            if let Some(set) = action.set_field() {
                names.note(set.field(), set.value());
            }
        }
        names
    }

    fn note(&mut self, field: Option<Field>, value: Option<u128>) {
        if let (Some(field), Some(value)) = (field, value)
            && ADDRESSES.contains(&field)
            && let Ok(address) = u32::try_from(value)
        {
            self.addresses.insert(Ipv4Addr::from(address));
        }
    }
}
