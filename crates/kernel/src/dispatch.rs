//! The kernel with its parts, and the order in which an event passes through them.
//!
//! It never carries out a decision: the worker does, see [`crate::decision`].

use crate::bounds::{Scratch, own_rules_go_beyond};
use crate::budgets::{Budgets, take_caused};
use crate::calls::Over;
use crate::capability::Capability;
use crate::charge::{NO_COOKIE, is_an_apps};
use crate::claims::Claims;
use crate::datapath::OfSwitch;
use crate::decision::{Effect, InWords, Refusal};
use crate::grant::Grant;
use crate::owned::Owned;
use crate::ownership::{Ownership, doubt_rules};
use crate::precedence::{Eviction, OnOverlap, Precedence};
use crate::punt::PuntLimits;
use crate::quota::NodeRates;
use crate::receivers::Receivers;
use crate::rules::{OWN_COOKIE, Owner};
use crate::services::Services;
use crate::sessions::Sessions;
use crate::shapes::Prepared;
use crate::subscription::Subscription;
use crate::topics::{Position, Topics};
use crate::withdrawals::Withdrawals;
use crate::zone_set::{ZoneSet, is_zone_number};
use crate::zones::{Zone, ZoneCounters};
use abi::event::{Cause, Event, FlowRemoved, PacketIn, SwitchUp, Topic, kind};
use abi::{Frame, Malformed, OpenFlowVersion, Receipt, ZoneId};
use flow::DatapathId;
use flow::vendor::{PartKind, VendorPart};
use std::collections::BTreeSet;
use std::sync::Arc;

/// The kernel of one worker: its switches, every zone of the node, and who receives what.
#[derive(Clone, Debug)]
pub struct Kernel {
    /// The zones by number. The list is as long as the highest attached number, at most [`crate::zone_set::MAX_ZONE`] +
    /// 1.
    pub(crate) zones: Vec<Option<Zone>>,
    pub(crate) sessions: Sessions,
    pub(crate) ownership: Ownership,
    pub(crate) budgets: Budgets,
    pub(crate) receivers: Receivers,
    pub(crate) precedence: Precedence,
    pub(crate) services: Services,
    pub(crate) topics: Topics,
    /// A bit set of the kinds of rules that were ever kept; see [`crate::prepared`].
    pub(crate) shapes: u64,
    pub(crate) scratch: Scratch,
    /// Switches that have reported their rules: at most all that are connected.
    pub(crate) to_settle: BTreeSet<DatapathId>,
    /// Switches whose rules are still to be compared with what apps want: at most all that are connected.
    pub(crate) to_judge: BTreeSet<DatapathId>,
    pub(crate) withdrawals: Withdrawals,
}

impl Kernel {
    /// Creates a kernel without zones and switches. `seed` must be random and unknown to apps. The kernel's rule hashes
    /// use it. With the seed, an app could make a rule that the kernel confuses with another app's.
    pub fn new(seed: u64) -> Self {
        Kernel {
            zones: Vec::new(),
            sessions: Sessions::default(),
            ownership: Ownership::new(seed),
            budgets: Budgets::default(),
            receivers: Receivers::default(),
            precedence: Precedence::default(),
            services: Services::default(),
            topics: Topics::default(),
            shapes: 0,
            scratch: Scratch::default(),
            to_settle: BTreeSet::new(),
            to_judge: BTreeSet::new(),
            withdrawals: Withdrawals::default(),
        }
    }

    /// Sets the number of this kernel's worker. Tickets of calls contain it.
    #[must_use]
    pub fn at_worker(mut self, worker: u8) -> Kernel {
        self.services = Services::at(worker);
        self.topics = Topics::at(worker);
        self
    }

    /// Shares the owners of groups and meters with the node's other workers. Call it before the first switch connects.
    pub fn share_claims(&mut self, claims: Arc<Claims>) {
        self.ownership.owned = Owned::sharing(claims);
    }

    /// Attaches a zone, which receives nothing until it subscribes. Returns whether its number is valid: from 1 to
    /// [`crate::zone_set::MAX_ZONE`].
    pub fn attach(&mut self, zone: ZoneId, name: &str, grant: Grant, now_ms: u64) -> bool {
        let rates = NodeRates::new(grant.quotas(), now_ms);
        self.attach_sharing(zone, name, grant, &rates, now_ms)
    }

    /// The same at one of several workers: the zone's rate limits apply to all workers together.
    pub fn attach_sharing(
        &mut self,
        zone: ZoneId,
        name: &str,
        grant: Grant,
        rates: &NodeRates,
        now_ms: u64,
    ) -> bool {
        if !is_zone_number(zone.0) {
            return false;
        }
        let own_rules_go_beyond = self.on_grant(zone, &grant, now_ms);
        self.forget_buffers(zone);
        self.topics.on_attach(zone);
        let place = usize::from(zone.0);
        self.zones.resize_with(self.zones.len().max(place + 1), || None);
        self.receivers.on_attach(zone);
        self.zones[place] = Some(Zone {
            name: name.to_owned(),
            own_rules_go_beyond,
            rates: rates.at_worker(),
            grant,
            subscription: Subscription::default(),
            refused_subscription: None,
            prepared: Prepared::default(),
            counters: ZoneCounters::default(),
        });
        self.services.index(&self.zones);
        self.receivers.index(&self.zones);
        true
    }

    /// The zone's new grant applies from now on. Returns whether the zone's own rules may make packets that it may not
    /// send.
    pub(crate) fn on_grant(&mut self, zone: ZoneId, grant: &Grant, now_ms: u64) -> bool {
        self.ownership.on_grant(zone, grant);
        // If its rules must be compared with those of others, the kernel asks the switches for their rules.
        if self.precedence.on_grant(zone, grant, self.sessions.datapaths.keys().copied()) {
            let datapaths: Vec<DatapathId> = self.sessions.datapaths.keys().copied().collect();
            datapaths.into_iter().for_each(|datapath| self.sessions.ask_anew(datapath, now_ms));
        }
        grant.holds(Capability::RuleWrite) && own_rules_go_beyond(grant.packets_out(), grant.rules())
    }

    /// Detaches a zone. Returns the calls that end with it.
    pub fn detach(&mut self, zone: ZoneId) -> Vec<Over> {
        if let Some(place) = self.zones.get_mut(usize::from(zone.0)) {
            *place = None;
        }
        self.forget_buffers(zone);
        self.services.index(&self.zones);
        self.receivers.index(&self.zones);
        self.topics.on_detach(zone);
        self.services.forget(zone)
    }

    /// The services, and the calls to them.
    pub fn services(&mut self) -> &mut Services {
        &mut self.services
    }

    /// A refusal with the name of the other app that it concerns.
    pub fn in_words<'a>(&'a self, refusal: &'a Refusal) -> InWords<'a> {
        let other = refusal.other().and_then(|other| self.zone(other));
        InWords { refusal, other: other.map(|other| other.name.as_str()) }
    }

    /// The record of a zone.
    #[inline]
    pub fn zone(&self, zone: ZoneId) -> Option<&Zone> {
        self.zones.get(usize::from(zone.0))?.as_ref()
    }

    /// How many events the kernel has addressed to this zone since it was attached.
    pub fn events_heard(&self, zone: ZoneId) -> u64 {
        self.receivers.events_heard(zone)
    }

    /// Whether this switch is connected to this worker. It may still be held.
    #[inline]
    pub fn is_up(&self, datapath: DatapathId) -> bool {
        self.sessions.is_up(datapath)
    }

    /// The switches that are ready for apps, as switch-up events with their present state.
    pub fn switches(&self) -> impl Iterator<Item = SwitchUp<'_>> {
        self.sessions.switches()
    }

    /// One of them.
    pub fn switch(&self, id: DatapathId) -> Option<SwitchUp<'_>> {
        self.sessions.switch(id)
    }

    /// When the kernel next asks a switch a question, stops waiting for one, or goes on with a long comparison.
    pub fn asks_next_ms(&self) -> Option<u64> {
        let has_work = !(self.to_settle.is_empty() && self.to_judge.is_empty());
        if has_work { Some(0) } else { self.sessions.asks_next_ms() }
    }

    /// Whether the kernel holds a connected switch back from apps. The worker keeps the switch's events until apps may
    /// receive them.
    #[inline]
    pub fn is_held(&self, datapath: DatapathId) -> bool {
        self.sessions.is_held(datapath)
    }

    /// Whether this switch is held, and has answered the barrier after the question but not the question. Then no
    /// answer will follow.
    pub fn is_passed_over(&self, datapath: DatapathId) -> bool {
        self.sessions.is_passed_over(datapath)
    }

    /// Returns a switch that apps may receive from now on. It returns each switch once.
    pub fn next_ready(&mut self) -> Option<DatapathId> {
        self.sessions.next_ready()
    }

    /// Decides which zones receive an event of a switch. Other effects are appended to `effects`.
    #[inline(always)]
    pub fn on_event(
        &mut self,
        frame: &Frame<'_>,
        now_ms: u64,
        effects: &mut Vec<Effect>,
    ) -> Result<&ZoneSet, Malformed> {
        if frame.header.kind.get() == kind::PACKET_IN {
            let cause = PacketIn::cause(frame)?;
            if is_an_apps(cause) {
                self.find_receivers_of_caused(frame, cause, now_ms, effects)?;
            } else if self.budgets.punt_limits.is_none() && !self.receivers.reads_packets() {
                return Ok(self.receivers.count_packet());
            } else if cause.cookie == NO_COOKIE && self.sends_misses_up(frame.datapath()) {
                self.find_receivers_of_unnamed(frame, now_ms)?;
            } else {
                self.find_receivers_of_networks(frame, now_ms)?;
            }
            if self.receivers.keep_buffers() {
                self.hand_out_buffer(frame, now_ms)?;
            }
        } else {
            self.find_receivers_of_other(frame, now_ms, effects)?;
        }
        Ok(self.receivers.count_found())
    }

    /// The receivers of a packet-in may use the switch's buffer for it. An earlier packet in that buffer is gone.
    fn hand_out_buffer(&mut self, frame: &Frame<'_>, now_ms: u64) -> Result<(), Malformed> {
        let packet = PacketIn::read(frame)?;
        let Kernel { sessions, receivers, zones, .. } = self;
        if let Some(buffer_id) = packet.buffer_id
            && let Some(there) = sessions.datapaths.get_mut(&packet.datapath)
        {
            receivers.hand_out_buffer((packet.datapath, buffer_id), zones, &mut there.buffers, now_ms);
        }
        Ok(())
    }

    /// Forgets the buffers of a zone: it has other bounds, receives other packets, or is another app.
    pub(crate) fn forget_buffers(&mut self, zone: ZoneId) {
        self.sessions.datapaths.values_mut().for_each(|there| there.buffers.forget(zone));
    }

    /// Decides who receives an event other than a packet-in.
    #[inline(never)]
    fn find_receivers_of_other(
        &mut self,
        frame: &Frame<'_>,
        now_ms: u64,
        effects: &mut Vec<Effect>,
    ) -> Result<(), Malformed> {
        let event = Event::read(frame)?;
        let was_held = self.is_held(frame.datapath());
        self.take_note(&event, now_ms, effects);
        // Apps receive a held switch when it is ready, with its state at that time.
        if was_held || self.is_held(frame.datapath()) {
            self.receivers.find_none();
            return Ok(());
        }
        self.receivers.find(frame.header.kind.get());
        match event {
            Event::FlowRemoved(removed) => self.receivers.retain_of_removal(removed.owner(), &self.zones),
            Event::Experimenter(it) => {
                let part =
                    VendorPart { vendor: it.experimenter, kind: PartKind::Message, subtype: it.exp_type };
                self.receivers.retain_of_vendor(part, &self.zones);
            }
            _ => {}
        }
        Ok(())
    }

    /// The zones that receive events of this kind.
    #[inline]
    pub fn receivers_of(&self, kind: u16) -> &ZoneSet {
        self.receivers.of(kind)
    }

    /// The zones that receive a publication on this topic: those that subscribed and hold the capability, without the
    /// publisher.
    pub fn receivers_of_topic(&self, publisher: ZoneId, topic: &str) -> ZoneSet {
        self.receivers.of_topic(publisher, topic, &self.zones)
    }

    fn may_hear_topic(&self, zone: ZoneId, topic: &str) -> bool {
        self.zone(zone).is_some_and(|it| it.grant.holds_for(Capability::Subscribe, topic))
    }

    /// The first retained value after this position that the zone may receive.
    pub fn retained_for(&self, zone: ZoneId, position: Option<&Position>) -> Option<Topic<'_>> {
        self.topics.retained_behind(position, |publisher, topic| {
            publisher != zone && self.may_hear_topic(zone, topic)
        })
    }

    /// Returns how many matches the decisions compared since the last call. It bounds a worker's turn, because one
    /// command may need thousands.
    #[inline]
    pub fn take_compared(&mut self) -> u64 {
        self.scratch.take_compared()
    }

    /// Returns that number, and keeps it: a bundle is one command with many decisions.
    pub fn compared(&self) -> u64 {
        self.scratch.compared()
    }

    /// Sets the limits for packet-ins of switches and ports.
    pub fn limit_punts(&mut self, limits: PuntLimits) {
        self.budgets.punt_limits = limits;
    }

    /// What the kernel keeps about each switch, in addition to what the switch reported.
    pub fn of_switches(&self) -> impl Iterator<Item = OfSwitch> + '_ {
        self.sessions.datapaths.iter().map(|(id, datapath)| datapath.kept(*id))
    }

    /// Counts a packet-in of this switch that the worker dropped because an app's queue was full.
    #[cold]
    pub fn on_unheard(&mut self, datapath: DatapathId) {
        if let Some(there) = self.sessions.datapaths.get_mut(&datapath) {
            there.punts.on_unheard();
        }
    }

    /// The zones that receive any event about switches.
    pub fn receivers_of_switches(&self) -> impl Iterator<Item = ZoneId> + '_ {
        self.receivers.of_switches()
    }

    /// The zones that receive every packet-in.
    #[inline]
    pub fn receivers_of_packets(&self) -> &ZoneSet {
        self.receivers.of_packets()
    }

    fn take_punt(&mut self, frame: &Frame<'_>, now_ms: u64) -> Result<bool, Malformed> {
        let packet = PacketIn::read(frame)?;
        let limits = self.budgets.punt_limits;
        let Some(datapath) = self.sessions.datapaths.get_mut(&packet.datapath) else { return Ok(true) };
        Ok(datapath.punts.take(limits, packet.in_port, packet.data, now_ms))
    }

    /// The receivers of a packet from the network: none if its switch or port has used up its budget. Returns whether it has some
    /// left.
    #[inline(never)]
    fn find_receivers_of_networks(&mut self, frame: &Frame<'_>, now_ms: u64) -> Result<bool, Malformed> {
        if !self.budgets.punt_limits.is_none() && !self.take_punt(frame, now_ms)? {
            self.receivers.find_none();
            return Ok(false);
        }
        self.receivers.find_packet(frame, &self.zones).map(|()| true)
    }

    /// The receivers of a packet-in that an app may have caused. It does not count against the budgets of its switch
    /// and port.
    #[cold]
    fn find_receivers_of_caused(
        &mut self,
        frame: &Frame<'_>,
        cause: Cause,
        now_ms: u64,
        effects: &mut Vec<Effect>,
    ) -> Result<(), Malformed> {
        let owner = ZoneId::owner_of(cause.cookie);
        let causers = match cause.cookie {
            NO_COOKIE => self.senders_up(frame.datapath()),
            _ if self.may_cause(owner, now_ms, effects) => ZoneSet::only(owner),
            _ => {
                self.receivers.find_none();
                return Ok(());
            }
        };
        if causers.is_empty() {
            // An action has sent it, of a rule that the switch does not name.
            return self.find_receivers_of_unnamed(frame, now_ms);
        }
        self.receivers.find_packet(frame, &self.zones)?;
        let Kernel { receivers, zones, .. } = self;
        if cause.cookie != NO_COOKIE {
            receivers.add_owner(owner, frame, zones)?;
        }
        let zone = |zone: ZoneId| zones.get(usize::from(zone.0)).and_then(Option::as_ref);
        let others_too = |it: ZoneId| zone(it).is_some_and(|it| it.grant.holds(Capability::RuleWriteOthers));
        receivers.retain(|zone| causers.contains(zone) || others_too(zone));
        Ok(())
    }

    /// The receivers of a packet-in of no rule, or of a rule that the switch does not name.
    #[cold]
    fn find_receivers_of_unnamed(&mut self, frame: &Frame<'_>, now_ms: u64) -> Result<(), Malformed> {
        if self.find_receivers_of_networks(frame, now_ms)? {
            self.receivers.add_possible_owners(frame, &self.zones)?;
        }
        Ok(())
    }

    /// Whether the switch has no table-miss rule, and zones that receive packet-ins of their own rules only want its misses. In 1.0, a packet of theirs
    /// that hits no rule is theirs as well.
    fn sends_misses_up(&self, datapath: DatapathId) -> bool {
        let openflow = || self.sessions.datapaths.get(&datapath).map(|there| there.openflow);
        self.receivers.has_of_own_rules() && openflow() == Some(OpenFlowVersion::V1_0)
    }

    /// Whether the owner of a rule may cause one more packet-in. If the app is not attached, it may not, and no event
    /// reaches it.
    fn may_cause(&mut self, owner: ZoneId, now_ms: u64, effects: &mut Vec<Effect>) -> bool {
        let zone = self.zones.get_mut(usize::from(owner.0)).and_then(Option::as_mut);
        zone.is_none_or(|zone| take_caused(owner, zone, now_ms, effects))
    }

    /// The zones whose packet-outs caused packet-ins, at a switch that reports the rule of a packet-in. With OpenFlow
    /// 1.0 they are unknown.
    fn senders_up(&self, datapath: DatapathId) -> ZoneSet {
        let there = self.sessions.datapaths.get(&datapath);
        let there = there.filter(|it| it.openflow != OpenFlowVersion::V1_0);
        there.map_or(ZoneSet::EMPTY, |there| there.senders_up.clone())
    }

    fn take_note(&mut self, event: &Event<'_>, now_ms: u64, effects: &mut Vec<Effect>) {
        match event {
            Event::SwitchUp(up) => self.on_switch_up(up, now_ms, effects),
            Event::SwitchDown(id) => {
                self.sessions.on_switch_down(*id);
                self.withdrawals.on_switch_down(*id);
                self.precedence.forget_switch(*id);
                self.ownership.owned.release_meter(*id);
                self.ownership.owned.on_switch_down(*id);
            }
            Event::PortStatus(status) => {
                if let Some(datapath) = self.sessions.datapaths.get_mut(&status.datapath) {
                    datapath.on_port_status(status);
                }
            }
            Event::FlowRemoved(removed) => self.on_flow_removed(removed, now_ms, effects),
            _ => {}
        }
    }

    fn on_switch_up(&mut self, up: &SwitchUp<'_>, now_ms: u64, effects: &mut Vec<Effect>) {
        self.sessions.on_switch_up(up, self.budgets.rules_per_switch);
        self.withdrawals.on_switch_down(up.datapath);
        self.precedence.forget_switch(up.datapath);
        self.ownership.owned.on_switch_up(up.datapath);
        self.sessions.begin_inquiry(up.datapath, now_ms);
        if let Some(there) = self.sessions.datapaths.get_mut(&up.datapath)
            && self.budgets.meter_per_s.is_some()
        {
            there.metering.begin(up.datapath, effects);
        }
        if self.receivers.want_packets() {
            effects.push(Effect::Punt(up.datapath));
        }
    }

    fn on_flow_removed(&mut self, removed: &FlowRemoved<'_>, now_ms: u64, effects: &mut Vec<Effect>) {
        let Some(there) = self.sessions.datapaths.get_mut(&removed.datapath) else { return };
        match removed.table_id {
            _ if removed.cookie != OWN_COOKIE => {}
            0 => there.metering.on_own_rule_removed(removed.datapath, effects),
            // The next look adds it again, if packets still reach the table.
            table_id => there.later_punts.forget(table_id),
        }
        there.entries.on_removed(removed.owner(), removed.table_id);
        let FlowRemoved { datapath, table_id, priority, matching, .. } = *removed;
        let key = self.ownership.keys.of(there.openflow, datapath, table_id, priority, matching);
        if let (Some(key), Some(owner)) = (key, Owner::of_cookie(removed.cookie)) {
            there.record.on_removed(key, owner, now_ms);
        }
    }

    /// The worker sent the last decided command to its switch, after the earlier ones. Without this call, the command
    /// changes nothing in the records.
    #[inline(always)]
    pub fn on_sent(&mut self) {
        if !self.ownership.on_prepared_sent(&mut self.sessions.datapaths) {
            self.on_other_sent();
        }
    }

    /// Records a sent command that was not prepared.
    #[inline(never)]
    fn on_other_sent(&mut self) {
        self.precedence.on_placed(&mut self.sessions.datapaths);
        self.ownership.on_sent(&mut self.sessions.datapaths);
    }

    /// A switch answered a command of this zone with an error, or not at all. The rule recorded for the zone may not be
    /// in the switch.
    pub fn on_failed(&mut self, datapath: DatapathId, zone: ZoneId) {
        doubt_rules(&mut self.sessions.datapaths, datapath, Some(zone));
    }

    /// Whether claims of groups or meters wait for their switch. If so, pass each receipt for apps to
    /// [`Self::on_receipt`].
    #[inline]
    pub fn has_claims(&self) -> bool {
        self.ownership.owned.has_pending()
    }

    /// Takes a receipt for an app before the app receives it. If it settles a claim, returns `Some` with the receipt
    /// for the app, if it gets one.
    pub fn on_receipt<'r>(&mut self, receipt: &Receipt<'r>) -> Option<Option<Receipt<'r>>> {
        self.ownership.on_receipt(receipt)
    }

    /// Sets the reaction to rules that would shadow rules of an app that precedes their owner.
    pub fn on_overlap(&mut self, what: OnOverlap) {
        self.precedence.set_on_overlap(what);
    }

    /// Returns the rules to delete since the last [`Effect::Evict`]. From now on they have no owner.
    pub fn take_evictions(&mut self) -> Vec<Eviction> {
        self.precedence.take_evictions(&mut self.sessions.datapaths)
    }
}
