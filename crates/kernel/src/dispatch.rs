//! The kernel itself: its zones, its switches, and who hears an event.
//!
//! Never carries anything out: see [`crate::decision`].

use crate::bounds::{Scratch, own_rules_go_beyond};
use crate::budget::TableRoom;
use crate::calls::{Calls, Over};
use crate::capability::Capability;
use crate::charge::is_an_apps;
use crate::claims::Claims;
use crate::datapath::{Datapath, OfSwitch};
use crate::datapaths::Datapaths;
use crate::decision::{Effect, InWords, Refusal};
use crate::entries::EntryLease;
use crate::grant::Grant;
use crate::owned::{Change, Owned};
use crate::passage::ToNote;
use crate::precedence::Precedence;
use crate::punt::PuntLimits;
use crate::quota::{NodeRates, Quotas};
use crate::record::RULES_PER_SWITCH;
use crate::rule_key::RuleKeys;
use crate::rules::{OWN_COOKIE, Owner};
use crate::shapes::Prepared;
use crate::still_there::StillThere;
use crate::subscription::Subscription;
use crate::zone_set::{MAX_ZONE, ZoneSet, is_zone_number};
use crate::zones::{Zone, ZoneCounters};
use abi::event::{Event, FlowRemoved, PacketIn, SwitchUp, kind};
use abi::{Frame, Malformed, OpenFlowVersion, ZoneId};
use flow::canonical::find_field;
use flow::frame::FrameFields;
use flow::{DatapathId, Field};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

/// How many kinds of event there can be.
const KINDS: usize = 64;

/// A count for each zone number.
type Heard = [u64; MAX_ZONE as usize + 1];

/// The deciding part of one worker: its switches, every zone of the node, and who hears what.
#[derive(Clone, Debug)]
pub struct Kernel {
    /// By zone number; as long as the highest number that was attached needs, and at most [`crate::zone_set::MAX_ZONE`] + 1.
    pub(crate) zones: Vec<Option<Zone>>,
    /// How many events were each zone's to hear since it was attached. Apart from the zones, so that to count takes few instructions.
    heard: Box<Heard>,
    pub(crate) datapaths: Datapaths,
    /// The switch that was last commanded, as long as it is up, and what it speaks: commands come in runs for one switch.
    pub(crate) last_commanded: Option<(DatapathId, OpenFlowVersion)>,
    pub(crate) calls: Calls,
    /// The zones by their apps' names, for calls to services. Of two of one name the one with the higher number.
    pub(crate) named: HashMap<String, ZoneId>,
    /// Why this node does not run a service; at most one for each service that it knows.
    pub(crate) missing: BTreeMap<String, String>,
    pub(crate) owned: Owned,
    /// What switches that come back have still.
    pub(crate) still_there: StillThere,
    /// The grant that each zone had last, be it there now or not: what its groups may do was compared with that.
    grants: BTreeMap<ZoneId, Grant>,
    pub(crate) keys: RuleKeys,
    /// Switches that are to be asked what they had, and when: at most as many as are up.
    pub(crate) to_ask: BTreeSet<(u64, DatapathId)>,
    /// Switches that are up and of which apps do not hear yet.
    pub(crate) held: BTreeSet<DatapathId>,
    /// Those of which they are to hear now.
    pub(crate) ready: Vec<DatapathId>,
    /// What follows from the command that was decided on last, if it is sent.
    pub(crate) to_note: Option<ToNote>,
    /// Shapes of rules that were ever kept; see [`crate::prepared`].
    pub(crate) shapes: u64,
    /// What becomes of a group or meter, if [`ToNote::Owned`] is to be noted.
    pub(crate) change: Option<Box<Change>>,
    pub(crate) lease: Option<EntryLease>,
    pub(crate) table_room: TableRoom,
    pub(crate) rules_per_switch: u32,
    punt_limits: PuntLimits,
    pub(crate) meter_per_s: Option<u32>,
    pub(crate) check_meters_from_ms: u64,
    pub(crate) scratch: Scratch,
    /// By kind of event: who hears it. For packet-ins, those who hear all of them.
    hearers: [ZoneSet; KINDS],
    /// Who hears some packet-ins only.
    pub(crate) choosy: ZoneSet,
    /// Who hears the event that was decided on last, if those are not all who hear its kind.
    pub(crate) found: ZoneSet,
    pub(crate) precedence: Precedence,
}

impl Kernel {
    /// With no zone and no switch. `seed` is random and no app's to know: by it the kernel tells rules apart, and who knew it could make a rule
    /// that the kernel takes for another's.
    pub fn new(seed: u64) -> Self {
        Kernel {
            zones: Vec::new(),
            heard: Box::new([0; MAX_ZONE as usize + 1]),
            datapaths: Datapaths::default(),
            last_commanded: None,
            calls: Calls::default(),
            named: HashMap::new(),
            missing: BTreeMap::new(),
            owned: Owned::default(),
            still_there: StillThere::default(),
            grants: BTreeMap::new(),
            rules_per_switch: RULES_PER_SWITCH,
            keys: RuleKeys::new(seed),
            to_ask: BTreeSet::new(),
            held: BTreeSet::new(),
            ready: Vec::new(),
            to_note: None,
            shapes: 0,
            change: None,
            lease: None,
            table_room: TableRoom::default(),
            punt_limits: PuntLimits::default(),
            meter_per_s: None,
            check_meters_from_ms: 0,
            scratch: Scratch::default(),
            hearers: [const { ZoneSet::EMPTY }; KINDS],
            choosy: ZoneSet::EMPTY,
            found: ZoneSet::EMPTY,
            precedence: Precedence::default(),
        }
    }

    /// It is the kernel of the worker with this number, which its tickets of calls say.
    #[must_use]
    pub fn at_worker(mut self, worker: u8) -> Kernel {
        self.calls = Calls::at(worker);
        self
    }

    /// The owners of groups and meters are those of the node's other workers too. To be said before any switch comes.
    pub fn share_claims(&mut self, claims: Arc<Claims>) {
        self.owned = Owned::sharing(claims);
    }

    /// A zone is there; it hears nothing until it subscribes. Says whether there was room: numbers from 1 to [`crate::zone_set::MAX_ZONE`].
    pub fn attach(&mut self, zone: ZoneId, name: &str, grant: Grant, now_ms: u64) -> bool {
        let rates = NodeRates::new(grant.quotas(), now_ms);
        self.attach_sharing(zone, name, grant, &rates, now_ms)
    }

    /// The same at one worker of several: what it may do in a second it may at all of them together.
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
        let place = usize::from(zone.0);
        self.zones.resize_with(self.zones.len().max(place + 1), || None);
        self.heard[place] = 0;
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
        self.index_names();
        self.index_subscriptions();
        true
    }

    /// What was decided by a zone's grant before is decided by this one from now on. Says whether its own rules may make packets that it may
    /// not send.
    pub(crate) fn on_grant(&mut self, zone: ZoneId, grant: &Grant, now_ms: u64) -> bool {
        let bounds = grant.clone().with_quotas(Quotas::default());
        if self.grants.get(&zone) != Some(&bounds) {
            self.owned.on_other_grant(zone);
            self.grants.insert(zone, bounds);
        }
        self.place_in_order(zone, grant, now_ms);
        grant.holds(Capability::RuleWrite) && own_rules_go_beyond(grant.packets_out(), grant.rules())
    }

    /// A zone is gone. Gives the calls that are over with it.
    pub fn detach(&mut self, zone: ZoneId) -> Vec<Over> {
        if let Some(place) = self.zones.get_mut(usize::from(zone.0)) {
            *place = None;
        }
        self.index_names();
        self.index_subscriptions();
        self.calls.forget(zone)
    }

    fn index_names(&mut self) {
        let Kernel { zones, named, .. } = self;
        let there = zones.iter().zip(0..).filter_map(|(zone, number)| Some((zone.as_ref()?, number)));
        *named = there.map(|(zone, number)| (zone.name.clone(), ZoneId(number))).collect();
    }

    /// A refusal with the name of the other app that it is about.
    pub fn in_words<'a>(&'a self, refusal: &'a Refusal) -> InWords<'a> {
        let other = refusal.other().and_then(|other| self.zone(other));
        InWords { refusal, other: other.map(|other| other.name.as_str()) }
    }

    /// What is known of a zone.
    #[inline]
    pub fn zone(&self, zone: ZoneId) -> Option<&Zone> {
        self.zones.get(usize::from(zone.0))?.as_ref()
    }

    /// How many events were this zone's to hear since it was attached.
    pub fn events_heard(&self, zone: ZoneId) -> u64 {
        self.heard.get(usize::from(zone.0)).copied().unwrap_or_default()
    }

    /// Whether this switch is up, here.
    pub fn is_up(&self, datapath: DatapathId) -> bool {
        self.datapaths.contains_key(&datapath)
    }

    /// The switches that are up and of which apps may hear, as they would come up now.
    pub fn switches(&self) -> impl Iterator<Item = SwitchUp<'_>> {
        let known = self.datapaths.iter().filter(|(id, _)| !self.is_held(**id));
        known.map(|(id, datapath)| datapath.switch_up(*id))
    }

    /// One of them.
    pub fn switch(&self, id: DatapathId) -> Option<SwitchUp<'_>> {
        let datapath = self.datapaths.get(&id).filter(|_| !self.is_held(id))?;
        Some(datapath.switch_up(id))
    }

    /// An event of a switch: who hears it. What else follows is appended to `effects`.
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
                self.find_hearers_of_caused(frame, cause, now_ms, effects)?;
            } else if self.punt_limits.is_none() && self.choosy.is_empty() {
                let hearers = &self.hearers[usize::from(kind::PACKET_IN)];
                count_event(&mut self.heard, hearers);
                return Ok(hearers);
            } else {
                self.find_hearers_of_networks(frame, now_ms)?;
            }
        } else {
            self.find_hearers_of_other(frame, now_ms, effects)?;
        }
        count_event(&mut self.heard, &self.found);
        Ok(&self.found)
    }

    /// Of what is no packet-in.
    #[inline(never)]
    fn find_hearers_of_other(
        &mut self,
        frame: &Frame<'_>,
        now_ms: u64,
        effects: &mut Vec<Effect>,
    ) -> Result<(), Malformed> {
        let event = Event::read(frame)?;
        let was_held = self.is_held(frame.datapath());
        self.take_note(&event, now_ms, effects);
        // Apps hear of a switch that is held when it is ready, and then as it is then.
        let is_heard = !was_held && !self.is_held(frame.datapath());
        let Kernel { hearers, found, .. } = self;
        match hearers.get(usize::from(frame.header.kind.get())) {
            Some(hearers) if is_heard => found.clone_from(hearers),
            _ => found.clear(),
        }
        if let Event::FlowRemoved(removed) = event {
            self.keep_hearers_of_removal(removed.owner());
        }
        Ok(())
    }

    /// Who hears events of this kind.
    #[inline]
    pub fn hearers_of(&self, kind: u16) -> &ZoneSet {
        self.hearers.get(usize::from(kind)).unwrap_or(const { &ZoneSet::EMPTY })
    }

    /// How many matches were compared for decisions since this was last asked: what bounds a worker's turn, since one command may need
    /// thousands.
    #[inline]
    pub fn take_compared(&mut self) -> u64 {
        self.scratch.take_compared()
    }

    /// Limits what is taken of the packet-ins of switches and ports.
    pub fn limit_punts(&mut self, limits: PuntLimits) {
        self.punt_limits = limits;
    }

    /// What is kept of each switch beside what it says of itself.
    pub fn of_switches(&self) -> impl Iterator<Item = OfSwitch> + '_ {
        self.datapaths.iter().map(|(id, datapath)| datapath.kept(*id))
    }

    /// A packet-in of this switch was dropped before some app that does not keep up: it is counted.
    #[cold]
    pub fn on_unheard(&mut self, datapath: DatapathId) {
        if let Some(there) = self.datapaths.get_mut(&datapath) {
            there.punts.on_unheard();
        }
    }

    /// Who hears anything of switches.
    pub fn hearers_of_switches(&self) -> impl Iterator<Item = ZoneId> + '_ {
        let kinds =
            [kind::SWITCH_UP, kind::SWITCH_DOWN, kind::PACKET_IN, kind::PORT_STATUS, kind::FLOW_REMOVED];
        self.choosy.iter().chain(kinds.into_iter().flat_map(|kind| self.hearers_of(kind)))
    }

    /// Who hears every packet-in.
    #[inline]
    pub fn hearers_of_packets(&self) -> &ZoneSet {
        &self.hearers[usize::from(kind::PACKET_IN)]
    }

    fn take_punt(&mut self, frame: &Frame<'_>, now_ms: u64) -> Result<bool, Malformed> {
        let packet = PacketIn::read(frame)?;
        let limits = self.punt_limits;
        let Some(datapath) = self.datapaths.get_mut(&packet.datapath) else { return Ok(true) };
        Ok(datapath.punts.take(limits, packet.in_port, packet.data, now_ms))
    }

    /// That a rule is gone hears its owner, and whoever may see the rules of others.
    fn keep_hearers_of_removal(&mut self, owner: ZoneId) {
        let Kernel { zones, found, .. } = self;
        let zone = |zone: ZoneId| zones.get(usize::from(zone.0)).and_then(Option::as_ref);
        let sees = |it: ZoneId| zone(it).is_some_and(|it| it.grant.holds(Capability::RuleRead));
        found.retain(|zone| zone == owner || sees(zone));
    }

    /// Of a packet that the network sent: nobody, if its switch or port has had its budget.
    #[inline(never)]
    pub(crate) fn find_hearers_of_networks(
        &mut self,
        frame: &Frame<'_>,
        now_ms: u64,
    ) -> Result<(), Malformed> {
        if !self.punt_limits.is_none() && !self.take_punt(frame, now_ms)? {
            self.found.clear();
            return Ok(());
        }
        self.find_hearers_of_packet(frame)
    }

    #[inline]
    pub(crate) fn find_hearers_of_packet(&mut self, frame: &Frame<'_>) -> Result<(), Malformed> {
        let Kernel { zones, hearers, choosy, found, .. } = self;
        found.clone_from(&hearers[usize::from(kind::PACKET_IN)]);
        if choosy.is_empty() {
            return Ok(());
        }
        let packet = PacketIn::read(frame)?;
        let fields = fields_of(&packet);
        for zone in &*choosy {
            let there = zones.get(usize::from(zone.0)).and_then(Option::as_ref);
            if there.is_some_and(|it| it.hears_packet(packet.datapath, &fields)) {
                found.insert(zone);
            }
        }
        Ok(())
    }

    fn take_note(&mut self, event: &Event<'_>, now_ms: u64, effects: &mut Vec<Effect>) {
        match event {
            Event::SwitchUp(up) => {
                self.last_commanded = None;
                self.end_inquiry(up.datapath);
                let mut datapath = Datapath::new(up);
                datapath.record.bound_to(None, self.rules_per_switch);
                self.datapaths.insert(up.datapath, datapath);
                self.owned.on_switch_up(up.datapath);
                self.begin_inquiry(up.datapath, now_ms);
                self.begin_metering(up.datapath, effects);
                if self.somebody_wants_packets() {
                    effects.push(Effect::Punt(up.datapath));
                }
            }
            Event::SwitchDown(id) => {
                self.last_commanded = None;
                self.end_inquiry(*id);
                self.datapaths.remove(id);
                self.owned.release_meter(*id);
                self.owned.on_switch_down(*id);
            }
            Event::PortStatus(status) => {
                if let Some(datapath) = self.datapaths.get_mut(&status.datapath) {
                    datapath.on_port_status(status);
                }
            }
            Event::FlowRemoved(removed) => {
                if removed.cookie == OWN_COOKIE {
                    self.on_own_rule_removed(removed.datapath, effects);
                }
                let Some(there) = self.datapaths.get_mut(&removed.datapath) else { return };
                there.entries.on_removed(removed.owner(), removed.table_id);
                let FlowRemoved { datapath, table_id, priority, matching, .. } = *removed;
                let key = self.keys.of(there.openflow, datapath, table_id, priority, matching);
                if let (Some(key), Some(owner)) = (key, Owner::of_cookie(removed.cookie)) {
                    there.record.on_removed(key, owner, now_ms);
                }
            }
            _ => {}
        }
    }

    pub(crate) fn somebody_wants_packets(&self) -> bool {
        !(self.hearers[usize::from(kind::PACKET_IN)].is_empty() && self.choosy.is_empty())
    }

    /// A zone hears this from now on, as far as its capabilities go.
    pub(crate) fn subscribe(&mut self, zone: ZoneId, subscription: Subscription, effects: &mut Vec<Effect>) {
        let wanted_before = self.somebody_wants_packets();
        if let Some(Some(there)) = self.zones.get_mut(usize::from(zone.0)) {
            there.subscription = subscription;
        }
        self.index_subscriptions();
        effects.push(Effect::Replay(zone));
        if !wanted_before && self.somebody_wants_packets() {
            effects.extend(self.datapaths.keys().map(|id| Effect::Punt(*id)));
        }
    }

    pub(crate) fn index_subscriptions(&mut self) {
        self.hearers.iter_mut().for_each(ZoneSet::clear);
        self.choosy.clear();
        for (zone, number) in self.zones.iter().zip(0..) {
            let Some(zone) = zone else { continue };
            for kind in 0..KINDS as u16 {
                if !zone.subscription.hears(kind) || !zone.grant.holds(needed_to_hear(kind)) {
                    continue;
                }
                if kind == kind::PACKET_IN && zone.is_choosy() {
                    self.choosy.insert(ZoneId(number));
                } else {
                    self.hearers[usize::from(kind)].insert(ZoneId(number));
                }
            }
        }
    }
}

#[inline(always)]
fn count_event(heard: &mut Heard, hearers: &ZoneSet) {
    hearers.for_each(|zone| {
        if let Some(count) = heard.get_mut(usize::from(zone.0)) {
            *count += 1;
        }
    });
}

/// What a match may ask of a packet that came up: its frame's fields, and what the switch says beside it.
fn fields_of(packet: &PacketIn<'_>) -> FrameFields {
    let mut fields = FrameFields::read(packet.data).from_port(packet.in_port);
    for field in [Field::Metadata, Field::TunnelId, Field::InPhyPort] {
        if let Some(value) = find_field(packet.metadata, field) {
            fields.set(field, value);
        }
    }
    fields
}

/// The capability without which events of a kind are not heard.
pub(crate) fn needed_to_hear(kind: u16) -> Capability {
    match kind {
        kind::PACKET_IN => Capability::PacketIn,
        kind::TOPIC => Capability::Subscribe,
        _ => Capability::ViewRead,
    }
}
