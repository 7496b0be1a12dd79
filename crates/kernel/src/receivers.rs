//! Which zones receive an event.
//!
//! ```text
//!   subscriptions and grants ──index──> by kind: zones ──event──> the zones that receive it
//! ```
//!
//! In: the zones with their subscriptions, and events. Out: sets of zones. It charges no budget and sends nothing.

use crate::buffers::Buffers;
use crate::capability::Capability;
use crate::packet_index::PacketIndex;
use crate::zone_set::{MAX_ZONE, ZoneSet};
use crate::zones::Zone;
use abi::event::{PacketIn, kind};
use abi::{Frame, Malformed, ZoneId};
use flow::canonical::{begins_with_usual, find_field};
use flow::frame::FrameFields;
use flow::vendor::VendorPart;
use flow::{DatapathId, Field};

/// The number of event kinds.
const KINDS: usize = 64;

/// Fields with which the rules of most apps begin. No other field implies them.
const CHOSEN: [Field; 3] = [Field::InPort, Field::EthDst, Field::EthSrc];

/// The header of an exact field: OFPXMC_OPENFLOW_BASIC, the field without a mask, its length (1.3.5, 7.2.3.2).
fn header_of(field: Field) -> [u8; 4] {
    [0x80, 0, field.number() << 1, field.bits().div_ceil(8) as u8]
}

/// A count for each zone number.
type Heard = [u64; MAX_ZONE as usize + 1];

/// The zones that receive each kind of event.
#[derive(Clone, Debug)]
pub(crate) struct Receivers {
    /// By kind of event: the zones that receive it. For packet-ins, the zones that receive all of them.
    by_kind: [ZoneSet; KINDS],
    /// The zones that receive only some packet-ins.
    pub selective: ZoneSet,
    /// The zones that receive packet-ins of their own rules only. They want no packets from the network.
    of_own_rules: ZoneSet,
    /// The zones of both for which the kernel keeps the buffers that they receive.
    keep_buffers: ZoneSet,
    /// The indexes over what the zones of these two sets receive.
    index_of_selective: PacketIndex,
    index_of_own_rules: PacketIndex,
    /// Whether the indexes are older than the sets. The next packet-in that needs them builds them.
    is_index_old: bool,
    /// Whether the kernel must look into packet-ins.
    reads_packets: bool,
    /// The fields of the last packet-in that was compared with what zones want.
    fields: FrameFields,
    /// The headers of usual fields by which none of these zones chooses its packets.
    unwanted: [Option<[u8; 4]>; CHOSEN.len()],
    /// The zones that receive the present event, if it does not go to all zones of its kind.
    receivers: ZoneSet,
    /// How many events each zone has received since it was attached. Kept apart from the zones, so that a count takes few instructions.
    heard: Box<Heard>,
}

impl Default for Receivers {
    fn default() -> Receivers {
        Receivers {
            by_kind: [const { ZoneSet::EMPTY }; KINDS],
            selective: ZoneSet::EMPTY,
            of_own_rules: ZoneSet::EMPTY,
            keep_buffers: ZoneSet::EMPTY,
            index_of_selective: PacketIndex::default(),
            index_of_own_rules: PacketIndex::default(),
            is_index_old: false,
            reads_packets: false,
            fields: FrameFields::read(&[]),
            unwanted: CHOSEN.map(|field| Some(header_of(field))),
            receivers: ZoneSet::EMPTY,
            heard: Box::new([0; MAX_ZONE as usize + 1]),
        }
    }
}

impl Receivers {
    /// Builds the index from the subscriptions of these zones, which are in the order of their numbers.
    pub fn index(&mut self, zones: &[Option<Zone>]) {
        self.by_kind.iter_mut().for_each(ZoneSet::clear);
        self.selective.clear();
        self.of_own_rules.clear();
        self.keep_buffers.clear();
        self.unwanted = CHOSEN.map(|field| Some(header_of(field)));
        for (zone, number) in zones.iter().zip(0..) {
            let Some(zone) = zone else { continue };
            for kind in 0..KINDS as u16 {
                if !zone.subscription.hears(kind) || !zone.grant.holds(needed_to_hear(kind)) {
                    continue;
                }
                if kind == kind::PACKET_IN && zone.keeps_buffers() {
                    self.keep_buffers.insert(ZoneId(number));
                }
                if kind == kind::PACKET_IN && zone.subscription.is_of_own_rules() {
                    self.of_own_rules.insert(ZoneId(number));
                } else if kind == kind::PACKET_IN && zone.is_selective() {
                    self.selective.insert(ZoneId(number));
                    for (header, field) in self.unwanted.iter_mut().zip(CHOSEN) {
                        header.take_if(|_| zone.chooses_by(field));
                    }
                } else {
                    self.by_kind[usize::from(kind)].insert(ZoneId(number));
                }
            }
        }
        self.is_index_old = true;
        let looks_into_none = self.selective.is_empty() && self.of_own_rules.is_empty();
        self.reads_packets = !(looks_into_none && self.keep_buffers.is_empty());
    }

    /// What a change of a subscription costs the next packet-in, in comparisons: by it, the indexes must be built again. 0 if an earlier
    /// change has the same effect.
    pub fn cost_of_a_change(&self) -> u64 {
        if self.is_index_old { 0 } else { self.index_of_selective.cost() + self.index_of_own_rules.cost() }
    }

    /// A zone was attached: its count starts at 0.
    pub fn on_attach(&mut self, zone: ZoneId) {
        if let Some(count) = self.heard.get_mut(usize::from(zone.0)) {
            *count = 0;
        }
    }

    /// How many events the kernel has addressed to this zone since it was attached.
    pub fn events_heard(&self, zone: ZoneId) -> u64 {
        self.heard.get(usize::from(zone.0)).copied().unwrap_or_default()
    }

    /// The zones that receive events of this kind.
    #[inline]
    pub fn of(&self, kind: u16) -> &ZoneSet {
        self.by_kind.get(usize::from(kind)).unwrap_or(const { &ZoneSet::EMPTY })
    }

    /// The zones that receive every packet-in.
    #[inline]
    pub fn of_packets(&self) -> &ZoneSet {
        &self.by_kind[usize::from(kind::PACKET_IN)]
    }

    /// Whether a rule with this match, in canonical bytes, may take all packets that an app wants. If it begins with one of the
    /// usual fields, without a mask, it leaves some packets out. Then it has all packets only of an app that chooses them by
    /// that field.
    #[inline]
    pub fn may_be_wide(&self, matching: &[u8]) -> bool {
        if begins_with_usual(matching) {
            return !self.selective.is_empty()
                && !self.unwanted.iter().flatten().any(|it| matching.starts_with(it));
        }
        true
    }

    /// Whether an app wants packets of switches.
    pub fn want_packets(&self) -> bool {
        !(self.of_packets().is_empty() && self.selective.is_empty())
    }

    /// A packet-in goes to the zones that receive all of them, and is counted.
    #[inline(always)]
    pub fn count_packet(&mut self) -> &ZoneSet {
        let receivers = &self.by_kind[usize::from(kind::PACKET_IN)];
        count_event(&mut self.heard, receivers);
        receivers
    }

    /// An event goes to its receivers, and is counted.
    #[inline(always)]
    pub fn count_found(&mut self) -> &ZoneSet {
        count_event(&mut self.heard, &self.receivers);
        &self.receivers
    }

    /// Sets the receivers to none.
    pub fn find_none(&mut self) {
        self.receivers.clear();
    }

    /// Finds the zones that receive an event of this kind.
    pub fn find(&mut self, kind: u16) {
        match self.by_kind.get(usize::from(kind)) {
            Some(receivers) => self.receivers.clone_from(receivers),
            None => self.receivers.clear(),
        }
    }

    /// Finds the zones that receive this packet-in.
    #[inline]
    pub fn find_packet(&mut self, frame: &Frame<'_>, zones: &[Option<Zone>]) -> Result<(), Malformed> {
        if self.is_index_old {
            self.renew_indexes(zones);
        }
        let Receivers { by_kind, selective, receivers, fields, index_of_selective, .. } = self;
        receivers.clone_from(&by_kind[usize::from(kind::PACKET_IN)]);
        if selective.is_empty() {
            return Ok(());
        }
        let packet = PacketIn::read(frame)?;
        *fields = fields_of(&packet);
        index_of_selective.find(packet.datapath, fields, zones, receivers);
        Ok(())
    }

    #[cold]
    fn renew_indexes(&mut self, zones: &[Option<Zone>]) {
        self.index_of_selective = PacketIndex::of(&self.selective, zones);
        self.index_of_own_rules = PacketIndex::of(&self.of_own_rules, zones);
        self.is_index_old = false;
    }

    /// Adds the owner of the rule that has sent this packet-in, if it receives packet-ins of its own rules only.
    pub fn add_owner(
        &mut self,
        owner: ZoneId,
        frame: &Frame<'_>,
        zones: &[Option<Zone>],
    ) -> Result<(), Malformed> {
        let Receivers { of_own_rules, receivers, fields, .. } = self;
        if !of_own_rules.contains(owner) {
            return Ok(());
        }
        let packet = PacketIn::read(frame)?;
        *fields = fields_of(&packet);
        if there(zones, owner).is_some_and(|it| it.hears_packet(packet.datapath, fields)) {
            receivers.insert(owner);
        }
        Ok(())
    }

    /// Adds the zones that receive packet-ins of their own rules only: the switch does not name the rule.
    pub fn add_possible_owners(
        &mut self,
        frame: &Frame<'_>,
        zones: &[Option<Zone>],
    ) -> Result<(), Malformed> {
        if self.of_own_rules.is_empty() {
            return Ok(());
        }
        if self.is_index_old {
            self.renew_indexes(zones);
        }
        let packet = PacketIn::read(frame)?;
        self.fields = fields_of(&packet);
        self.index_of_own_rules.find(packet.datapath, &self.fields, zones, &mut self.receivers);
        Ok(())
    }

    /// Whether any zone receives packet-ins of its own rules only.
    #[inline]
    pub fn has_of_own_rules(&self) -> bool {
        !self.of_own_rules.is_empty()
    }

    /// Whether the kernel must look into packet-ins to find their receivers.
    #[inline]
    pub fn reads_packets(&self) -> bool {
        self.reads_packets
    }

    /// Whether the kernel keeps the buffers of any zone.
    #[inline]
    pub fn keep_buffers(&self) -> bool {
        !self.keep_buffers.is_empty()
    }

    /// The receivers of this packet-in may use its buffer, and nobody else.
    #[cold]
    pub fn hand_out_buffer(
        &self,
        packet: (DatapathId, u32),
        zones: &[Option<Zone>],
        buffers: &mut Buffers,
        now_ms: u64,
    ) {
        let (datapath, buffer_id) = packet;
        buffers.on_packet(buffer_id);
        for zone in self.receivers.iter().filter(|zone| self.keep_buffers.contains(*zone)) {
            if let Some(it) = there(zones, zone) {
                buffers.hand_out(zone, buffer_id, it.handed(datapath, &self.fields), now_ms);
            }
        }
    }

    /// Keeps the receivers for which `keep` is true.
    pub fn retain(&mut self, keep: impl Fn(ZoneId) -> bool) {
        self.receivers.retain(keep);
    }

    /// Keeps the receivers that may learn of a removed rule: its owner, and the zones that may see the rules of others.
    pub fn retain_of_removal(&mut self, owner: ZoneId, zones: &[Option<Zone>]) {
        let sees = |it: ZoneId| there(zones, it).is_some_and(|it| it.grant.holds(Capability::RuleRead));
        self.receivers.retain(|zone| zone == owner || sees(zone));
    }

    /// Keeps the receivers that may use a vendor's message.
    pub fn retain_of_vendor(&mut self, part: VendorPart, zones: &[Option<Zone>]) {
        self.receivers.retain(|zone| there(zones, zone).is_some_and(|it| it.grant.holds_vendor(part)));
    }

    /// The zones that receive any event about switches. A zone may come more than once.
    pub fn of_switches(&self) -> impl Iterator<Item = ZoneId> + '_ {
        let kinds =
            [kind::SWITCH_UP, kind::SWITCH_DOWN, kind::PACKET_IN, kind::PORT_STATUS, kind::FLOW_REMOVED];
        let of_packets = self.selective.iter().chain(&self.of_own_rules);
        of_packets.chain(kinds.into_iter().flat_map(|kind| self.of(kind)))
    }

    /// The zones that receive a publication on this topic: those that subscribed and hold the capability, without the
    /// publisher.
    pub fn of_topic(&self, publisher: ZoneId, topic: &str, zones: &[Option<Zone>]) -> ZoneSet {
        let may = |zone: ZoneId| {
            there(zones, zone).is_some_and(|it| it.grant.holds_for(Capability::Subscribe, topic))
        };
        let mut receivers = self.of(kind::TOPIC).clone();
        receivers.retain(|zone| zone != publisher && may(zone));
        receivers
    }
}

#[inline(always)]
fn count_event(heard: &mut Heard, receivers: &ZoneSet) {
    receivers.for_each(|zone| {
        if let Some(count) = heard.get_mut(usize::from(zone.0)) {
            *count += 1;
        }
    });
}

#[inline]
fn there(zones: &[Option<Zone>], zone: ZoneId) -> Option<&Zone> {
    zones.get(usize::from(zone.0))?.as_ref()
}

/// The fields of a packet-in that a match may use: those of its frame, and those that the switch adds.
fn fields_of(packet: &PacketIn<'_>) -> FrameFields {
    let mut fields = FrameFields::read(packet.data).from_port(packet.in_port);
    for field in [Field::Metadata, Field::TunnelId, Field::InPhyPort] {
        if let Some(value) = find_field(packet.metadata, field) {
            fields.set(field, value);
        }
    }
    fields
}

/// The capability that a zone needs for events of this kind.
pub(crate) fn needed_to_hear(kind: u16) -> Capability {
    match kind {
        kind::PACKET_IN => Capability::PacketIn,
        kind::TOPIC => Capability::Subscribe,
        kind::EXPERIMENTER => Capability::Vendor,
        _ => Capability::ViewRead,
    }
}
