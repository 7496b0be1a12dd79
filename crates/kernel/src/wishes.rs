//! What apps want of the packets of switches: a change of it, and what follows for rules and for the kernel's table-miss rules.
//!
//! ```text
//!   Subscribe, another grant ──> on_wish ──> rules of other apps that would take all of it: evicted
//!                                   ├──────> tables that all of it reaches: the table-miss rule (Effect::PuntFrom)
//!                                   └──────> rules that are not known as wide: the switches report all rules once more
//! ```
//!
//! An app can change its subscription as often as it likes. So one change is compared only with that app's wish, the
//! comparisons count as its own, and no switch reports its rules for it more often than each ten seconds. Beyond
//! [`JUDGED_PER_TURN`] comparisons, the other switches follow in later turns.
//!
//! In: subscriptions, grants, and switches that have reported their rules. Out: effects. It receives no packet.

use crate::decision::Effect;
use crate::dispatch::Kernel;
use crate::own_messages::Asked;
use crate::precedence::Others;
use crate::subscription::Subscription;
use abi::ZoneId;
use flow::DatapathId;
use std::collections::BTreeSet;

/// After so many comparisons of rules with what apps want, the rest waits for the next turn: some two milliseconds.
const JUDGED_PER_TURN: u64 = 10_000;

impl Kernel {
    /// The zone receives these events from now on, as far as its capabilities allow.
    pub(crate) fn subscribe(
        &mut self,
        zone: ZoneId,
        subscription: Subscription,
        now_ms: u64,
        effects: &mut Vec<Effect>,
    ) {
        self.forget_buffers(zone);
        let wanted_before = self.receivers.want_packets();
        if let Some(Some(there)) = self.zones.get_mut(usize::from(zone.0)) {
            there.subscription = subscription;
        }
        self.index_receivers();
        effects.push(Effect::Replay(zone));
        if !wanted_before && self.receivers.want_packets() {
            effects.extend(self.sessions.datapaths.keys().copied().map(Effect::Punt));
        }
        self.on_wish(zone, now_ms, effects);
    }

    /// Who receives what has changed. This reads all zones, and the next packet-in needs new indexes. Both count as work for the zone
    /// that has caused it.
    fn index_receivers(&mut self) {
        let of_indexes = self.receivers.cost_of_a_change();
        self.receivers.index(&self.zones);
        let of_zones = self.zones.len() + self.sessions.datapaths.len();
        self.scratch.count_compared(of_zones as u64 + of_indexes);
    }

    /// A zone may want other packets now.
    pub(crate) fn on_wish(&mut self, zone: ZoneId, now_ms: u64, effects: &mut Vec<Effect>) {
        let is_selective = self.receivers.selective.contains(zone);
        if !is_selective && !self.receivers.of_packets().contains(zone) {
            return;
        }
        let datapaths: Vec<DatapathId> = self.sessions.datapaths.keys().copied().collect();
        let before = self.scratch.compared();
        for datapath in datapaths {
            if self.scratch.compared() - before < JUDGED_PER_TURN {
                self.on_wishes(datapath, Some(zone), effects);
            } else {
                self.to_judge.insert(datapath);
            }
            // A rule that has all of these packets, but not those of another app, was not kept when it was added.
            if is_selective {
                self.sessions.ask_anew_seldom(datapath, now_ms);
            }
        }
    }

    /// An app wants other packets of this switch now, or the switch has reported its rules (`None`: of all apps).
    fn on_wishes(&mut self, datapath: DatapathId, of: Option<ZoneId>, effects: &mut Vec<Effect>) {
        let Kernel { precedence, sessions, zones, receivers, scratch, .. } = self;
        let mut others = Others { datapaths: &sessions.datapaths, zones, receivers, scratch, now_ms: 0 };
        precedence.on_wishes(datapath, of, &mut others);
        precedence.say_evictions(effects);
        self.punt_from_reached(datapath, of, effects);
    }

    /// Goes on with the switches that have reported their rules, and with those that wait for a comparison.
    pub(crate) fn go_on_judging(&mut self, effects: &mut Vec<Effect>) {
        let before = self.scratch.compared();
        while self.scratch.compared() - before < JUDGED_PER_TURN {
            if let Some(datapath) = self.to_settle.pop_first() {
                self.to_judge.remove(&datapath);
                self.settle_found(datapath, effects);
            } else if let Some(datapath) = self.to_judge.pop_first() {
                self.on_wishes(datapath, None, effects);
            } else {
                break;
            }
        }
        // It is no app's work.
        self.scratch.set_compared(before);
    }

    /// A switch has reported its rules. Those that keep all packets from an earlier app are evicted. The table-miss rules of
    /// later tables are added again: the meter may be another one than that of the last session.
    fn settle_found(&mut self, datapath: DatapathId, effects: &mut Vec<Effect>) {
        self.on_wishes(datapath, None, effects);
        let Some(there) = self.sessions.datapaths.get(&datapath) else { return };
        let tables = there.later_punts.tables().filter(|_| self.receivers.want_packets());
        effects.extend(tables.map(|table_id| Effect::PuntFrom { datapath, table_id }));
    }

    /// Tables that all packets of some app reach (`of`: only of this app) get the table-miss rule, also by a rule that is sent
    /// now. If such a table has no rule for a packet, apps still receive the packet.
    #[cold]
    #[inline(never)]
    pub(crate) fn punt_from_reached(
        &mut self,
        datapath: DatapathId,
        of: Option<ZoneId>,
        effects: &mut Vec<Effect>,
    ) {
        let reached = self.reached(datapath, of);
        let Kernel { precedence, sessions, ownership, .. } = self;
        let Some(there) = sessions.datapaths.get_mut(&datapath) else { return };
        for table_id in reached {
            // An app's own table-miss rule stays, unless it is evicted.
            let is_apps = ownership.table_miss_of_app(there, datapath, table_id).is_some()
                && !precedence.evicts(datapath, table_id, 0);
            if !is_apps && there.has_table(table_id) && there.later_punts.add(table_id) {
                effects.push(Effect::PuntFrom { datapath, table_id });
            }
        }
    }

    /// From time to time: asks the switch whether it still has an app's own table-miss rule of a table that packets reach. The rule
    /// may have timed out, or its app may have deleted it among others. One question for each switch, of the tables in turn.
    pub(crate) fn seek_table_misses(&mut self, datapath: DatapathId, now_ms: u64, effects: &mut Vec<Effect>) {
        let reached = self.reached(datapath, None);
        let Kernel { sessions, ownership, .. } = self;
        let Some(there) = sessions.datapaths.get_mut(&datapath) else { return };
        let last = there.later_punts.sought;
        let in_turn = reached.iter().filter(|it| **it > last).chain(reached.iter().filter(|it| **it <= last));
        for table_id in in_turn {
            let Some((key, known)) = ownership.table_miss_of_app(there, datapath, *table_id) else {
                continue;
            };
            if known.is_sure {
                continue;
            }
            // Not `Record::seek`: a bundle holds no rule of priority 0, so an answer during a bundle is right too.
            if there.record.sought.seek_at_once(key, *table_id, known.owner, &[], now_ms) {
                there.later_punts.sought = *table_id;
                effects.push(Effect::Ask { datapath, asked: Asked::Rule });
            }
            return;
        }
    }

    fn reached(&mut self, datapath: DatapathId, of: Option<ZoneId>) -> BTreeSet<u8> {
        let Kernel { precedence, sessions, zones, receivers, scratch, .. } = self;
        if !receivers.want_packets() || !precedence.may_reach_later(datapath) {
            return BTreeSet::new();
        }
        let mut others = Others { datapaths: &sessions.datapaths, zones, receivers, scratch, now_ms: 0 };
        precedence.reached(datapath, of, &mut others)
    }
}
