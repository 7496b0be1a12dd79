//! The grant of a zone: its capabilities and their bounds.
//!
//! ```text
//!   operator's words (parsed elsewhere) ──> Grant, built once when the zone is attached
//!   capability asked for ──> Grant ──> not held, held without bounds (one test), or held within bounds: ask crate::bounds
//! ```
//!
//! In: capabilities and bounds. Out: whether the zone holds a capability, and its bounds. It never looks into a
//! command, and does not change after the zone was attached. A read takes no lock and allocates nothing: each worker
//! has its own copy.

use crate::buffers::Within;
use crate::capability::{Capabilities, Capability};
use crate::quota::Quotas;
use abi::service::GRANT_BYTES_MAX;
use flow::frame::FrameFields;
use flow::vendor::{PartKind, VendorPart};
use flow::{DatapathId, Field, Match, PortNo};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

/// The grant of a zone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Grant {
    held: Capabilities,
    /// The capabilities with bounds; the others are unbounded.
    bounded: Capabilities,
    packet_in: Bounds,
    packet_out: Bounds,
    rule_write: Bounds,
    port_write: Bounds,
    names: [Option<Names>; NAMED.len()],
    vendors: Vendors,
    rank: Option<u16>,
    quotas: Quotas,
    /// By a service's name: the part of this grant that the service receives with each call.
    services: BTreeMap<String, Vec<u8>>,
}

/// The capabilities whose bounds are names: of services, of topics.
const NAMED: [Capability; 3] = [Capability::Query, Capability::Publish, Capability::Subscribe];

/// The bounds of a capability to write to a switch. `None` is no bound.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// The packets that match at least one of these.
    pub flowspace: Option<Vec<Match>>,
    /// The tables.
    pub tables: Option<TableSet>,
    /// The priorities.
    pub priorities: RangeInclusive<u16>,
    /// The ports by which packets may leave. Reserved ports count only if they are named. For the controller, packet.in
    /// decides instead.
    pub ports: Option<Vec<PortNo>>,
    /// The switches, besides those in `switches`. If this is `None` and `switches` is empty: all.
    pub datapaths: Option<Vec<DatapathId>>,
    /// The ports that are the app's alone. Any packet may leave by them, and any packet that comes in by them is within the
    /// bounds. Reserved ports have no effect here.
    pub own_ports: Vec<PortNo>,
    /// Switches with packets or ports of their own.
    pub switches: BTreeMap<DatapathId, SwitchBounds>,
}

/// The bounds at one switch. `None`: as in the [`Bounds`] for all switches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SwitchBounds {
    /// The packets that match at least one of these.
    pub flowspace: Option<Vec<Match>>,
    /// The ports by which packets may leave.
    pub ports: Option<Vec<PortNo>>,
    /// The ports that are the app's alone.
    pub own_ports: Option<Vec<PortNo>>,
}

/// The packets and ports that bound a capability at one switch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BoundsHere<'g> {
    /// `None`: all packets.
    pub flowspace: Option<&'g [Match]>,
    /// `None`: all ports.
    pub ports: Option<&'g [PortNo]>,
    /// The ports that are the app's alone.
    pub own_ports: &'g [PortNo],
}

impl BoundsHere<'_> {
    /// Whether a port is the app's alone. A reserved port stands for others, so it never is.
    #[inline]
    pub fn owns(&self, port: PortNo) -> bool {
        port <= PortNo::MAX && self.own_ports.contains(&port)
    }

    /// Where a packet with these fields is within the bounds.
    pub fn place_of(&self, fields: &FrameFields) -> Within {
        let place = self.flowspace.into_iter().flatten().position(|one| one.matches(fields));
        match place.and_then(|place| u8::try_from(place).ok()) {
            Some(place) => Within::Match(place),
            None if self.is_from_own_port(fields) => Within::OwnPort,
            None => Within::Outside,
        }
    }

    /// Whether a packet with these fields is within the bounds.
    #[inline]
    pub fn has_packet(&self, fields: &FrameFields) -> bool {
        let Some(flowspace) = self.flowspace else { return true };
        flowspace.iter().any(|one| one.matches(fields)) || self.is_from_own_port(fields)
    }

    fn is_from_own_port(&self, fields: &FrameFields) -> bool {
        let in_port = fields.get(Field::InPort).and_then(|port| u32::try_from(port).ok());
        in_port.is_some_and(|port| self.owns(PortNo(port)))
    }
}

impl Default for Bounds {
    fn default() -> Self {
        Bounds {
            flowspace: None,
            tables: None,
            priorities: 0..=u16::MAX,
            ports: None,
            datapaths: None,
            own_ports: Vec::new(),
            switches: BTreeMap::new(),
        }
    }
}

impl Bounds {
    /// Whether it has no bounds.
    pub fn is_everywhere(&self) -> bool {
        *self == Bounds::default()
    }

    /// Whether it contains this switch.
    #[inline]
    pub fn has_switch(&self, datapath: DatapathId) -> bool {
        match &self.datapaths {
            None => self.switches.is_empty() || self.switches.contains_key(&datapath),
            Some(granted) => granted.contains(&datapath) || self.switches.contains_key(&datapath),
        }
    }

    /// Whether it bounds packets, at any switch.
    pub(crate) fn has_flowspace(&self) -> bool {
        self.flowspace.is_some() || self.switches.values().any(|here| here.flowspace.is_some())
    }

    /// Its switches; `None`: all.
    pub(crate) fn switches(&self) -> Option<BTreeSet<DatapathId>> {
        if self.datapaths.is_none() && self.switches.is_empty() {
            return None;
        }
        Some(self.datapaths.iter().flatten().chain(self.switches.keys()).copied().collect())
    }

    /// The packets and ports at a switch without bounds of its own.
    #[inline]
    pub(crate) fn elsewhere(&self) -> BoundsHere<'_> {
        let Bounds { flowspace, ports, own_ports, .. } = self;
        BoundsHere { flowspace: flowspace.as_deref(), ports: ports.as_deref(), own_ports }
    }

    /// The packets and ports at this switch.
    #[inline]
    pub(crate) fn at(&self, datapath: DatapathId) -> BoundsHere<'_> {
        if self.switches.is_empty() { self.elsewhere() } else { self.at_one_of(datapath) }
    }

    fn at_one_of(&self, datapath: DatapathId) -> BoundsHere<'_> {
        let elsewhere = self.elsewhere();
        let Some(here) = self.switches.get(&datapath) else { return elsewhere };
        BoundsHere {
            flowspace: here.flowspace.as_deref().or(elsewhere.flowspace),
            ports: here.ports.as_deref().or(elsewhere.ports),
            own_ports: here.own_ports.as_deref().unwrap_or(elsewhere.own_ports),
        }
    }
}

/// A set of tables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TableSet([u64; 4]);

impl TableSet {
    /// Whether the set contains a table.
    pub fn contains(&self, table_id: u8) -> bool {
        self.0[usize::from(table_id >> 6)] >> (table_id & 63) & 1 == 1
    }

    /// Whether the sets have a table in common.
    pub fn meets(&self, other: &TableSet) -> bool {
        self.0.iter().zip(&other.0).any(|(these, those)| these & those != 0)
    }

    /// Whether the other set contains all tables of this one.
    pub(crate) fn is_within(&self, other: &TableSet) -> bool {
        self.0.iter().zip(&other.0).all(|(these, those)| these & !those == 0)
    }

    /// The tables of both sets.
    pub(crate) fn union(&self, other: &TableSet) -> TableSet {
        let mut all = *self;
        all.0.iter_mut().zip(&other.0).for_each(|(these, those)| *these |= those);
        all
    }

    /// The tables, in order.
    pub(crate) fn tables(self) -> impl Iterator<Item = u8> {
        (0..=u8::MAX).filter(move |table_id| self.contains(*table_id))
    }
}

impl FromIterator<u8> for TableSet {
    fn from_iter<T: IntoIterator<Item = u8>>(tables: T) -> Self {
        let mut set = TableSet::default();
        tables.into_iter().for_each(|table_id| set.0[usize::from(table_id >> 6)] |= 1 << (table_id & 63));
        set
    }
}

/// Names, and the names below them: `link` stands for `link` and `link.up`, not for `linkage`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names(Vec<String>);

impl Names {
    /// Creates the set of these names.
    pub fn new(names: Vec<String>) -> Names {
        Names(names)
    }

    /// Whether this name is one of them, or below one of them.
    pub fn hold(&self, wanted: &str) -> bool {
        self.0.iter().any(|name| {
            wanted
                .strip_prefix(name.as_str())
                .is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '/']))
        })
    }
}

/// The vendors' extensions that an app may use.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Vendors(Vec<VendorParts>);

/// Some extensions of one vendor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VendorParts {
    /// The vendor's number.
    pub vendor: u32,
    /// Their kind; `None`: all kinds.
    pub kind: Option<PartKind>,
    /// The extension of that kind; `None`: all of them.
    pub subtype: Option<u32>,
}

impl Vendors {
    /// Creates the set of these extensions.
    pub fn new(parts: Vec<VendorParts>) -> Vendors {
        Vendors(parts)
    }

    /// Whether the set contains this extension. Parts without a kind stand for all that an app sends. Messages of a switch may contain
    /// packets, so the grant must name their kind.
    pub fn hold(&self, wanted: VendorPart) -> bool {
        let is_message = wanted.kind == PartKind::Message;
        self.0.iter().any(|parts| {
            parts.vendor == wanted.vendor
                && parts.kind.map_or(!is_message, |kind| kind == wanted.kind)
                && parts.subtype.is_none_or(|subtype| subtype == wanted.subtype)
        })
    }
}

impl Grant {
    /// An empty grant.
    pub fn nothing() -> Grant {
        Grant::default()
    }

    /// A grant of these capabilities without bounds.
    pub fn everywhere(capabilities: &[Capability]) -> Grant {
        capabilities.iter().copied().fold(Grant::nothing(), Grant::with)
    }

    /// Adds a capability without bounds.
    #[must_use]
    pub fn with(mut self, capability: Capability) -> Grant {
        self.held = self.held.with(capability);
        self.bounded = self.bounded.without(capability);
        self
    }

    /// Adds `packet.in` for this flowspace and these switches.
    #[must_use]
    pub fn with_packets_in(mut self, bounds: Bounds) -> Grant {
        let everywhere = bounds.is_everywhere();
        self.packet_in = bounds;
        self.held_within(Capability::PacketIn, everywhere)
    }

    /// Adds `packet.out` with bounds; tables and priorities do not bound a packet-out.
    #[must_use]
    pub fn with_packets_out(mut self, bounds: Bounds) -> Grant {
        let everywhere = bounds.is_everywhere();
        self.packet_out = bounds;
        self.held_within(Capability::PacketOut, everywhere)
    }

    /// Adds `rule.write` with bounds.
    #[must_use]
    pub fn with_rules(mut self, bounds: Bounds) -> Grant {
        let everywhere = bounds.is_everywhere();
        self.rule_write = bounds;
        self.held_within(Capability::RuleWrite, everywhere)
    }

    /// Adds `port.write` for these ports and switches.
    #[must_use]
    pub fn with_ports(mut self, bounds: Bounds) -> Grant {
        let everywhere = bounds.is_everywhere();
        self.port_write = bounds;
        self.held_within(Capability::PortWrite, everywhere)
    }

    /// Adds a capability for these names. It ignores a capability whose bounds are not names.
    #[must_use]
    pub fn with_names(mut self, capability: Capability, names: Names) -> Grant {
        let Some(place) = place_of(capability) else { return self };
        self.names[place] = Some(names);
        self.held_within(capability, false)
    }

    /// Adds `vendor` for these extensions.
    #[must_use]
    pub fn with_vendors(mut self, vendors: Vendors) -> Grant {
        self.vendors = vendors;
        self.held_within(Capability::Vendor, false)
    }

    /// Sets the place in the operator's order: 0 is first. Apps of equal rank are ordered by their zones' numbers.
    #[must_use]
    pub fn with_rank(mut self, rank: u16) -> Grant {
        self.rank = Some(rank);
        self
    }

    /// Sets these quotas.
    #[must_use]
    pub fn with_quotas(mut self, quotas: Quotas) -> Grant {
        self.quotas = quotas;
        self
    }

    /// Adds the part for a service: bytes that only this service interprets. With such a part, the app may call the
    /// service. A part of more than [`abi::service::GRANT_BYTES_MAX`] bytes is ignored.
    #[must_use]
    pub fn with_service(mut self, service: &str, part: Vec<u8>) -> Grant {
        if part.len() <= GRANT_BYTES_MAX {
            self.services.insert(service.to_owned(), part);
        }
        self
    }

    /// The part for this service, if the grant has one.
    pub fn service(&self, service: &str) -> Option<&[u8]> {
        self.services.get(service).map(Vec::as_slice)
    }

    fn held_within(mut self, capability: Capability, everywhere: bool) -> Grant {
        self = self.with(capability);
        if !everywhere {
            self.bounded = self.bounded.with(capability);
        }
        self
    }

    /// Whether the zone holds a capability, with or without bounds.
    #[inline]
    pub const fn holds(&self, capability: Capability) -> bool {
        self.held.allow(capability)
    }

    /// Whether the zone holds it with bounds.
    #[inline]
    pub const fn is_bounded(&self, capability: Capability) -> bool {
        self.bounded.allow(capability)
    }

    /// The bounds of `packet.in`.
    pub fn packets_in(&self) -> &Bounds {
        &self.packet_in
    }

    /// The bounds of `packet.out`.
    pub fn packets_out(&self) -> &Bounds {
        &self.packet_out
    }

    /// The bounds of `rule.write`.
    pub fn rules(&self) -> &Bounds {
        &self.rule_write
    }

    /// The bounds of `port.write`.
    pub fn ports(&self) -> &Bounds {
        &self.port_write
    }

    /// Whether the zone holds a name-bounded capability for this name.
    #[inline]
    pub fn holds_for(&self, capability: Capability, name: &str) -> bool {
        if !self.is_bounded(capability) {
            return self.holds(capability);
        }
        let names = place_of(capability).and_then(|place| self.names[place].as_ref());
        names.is_some_and(|names| names.hold(name))
    }

    /// Whether the zone may use a vendor's extension. The capability without a list of extensions allows none.
    pub fn holds_vendor(&self, part: VendorPart) -> bool {
        self.holds(Capability::Vendor) && self.vendors.hold(part)
    }

    /// Its place in the operator's order. Without one, the app comes last; see [`crate::precedence`].
    pub fn rank(&self) -> u16 {
        self.rank.unwrap_or(u16::MAX)
    }

    /// The quotas.
    #[inline]
    pub fn quotas(&self) -> &Quotas {
        &self.quotas
    }
}

fn place_of(capability: Capability) -> Option<usize> {
    NAMED.iter().position(|named| *named == capability)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_granted_by_default() {
        assert!(Capability::all().all(|capability| !Grant::default().holds(capability)));
        assert!(Capability::all().all(|capability| !Grant::default().holds_for(capability, "x")));
    }

    #[test]
    fn what_is_granted_everywhere_is_bounded_nowhere_and_is_all_that_is_granted() {
        let grant = Grant::everywhere(&[Capability::Query]);
        assert!(Capability::all().all(|capability| !grant.is_bounded(capability)));
        assert!(grant.holds_for(Capability::Query, "anything"));
        assert!(!grant.holds(Capability::Publish));
    }

    #[test]
    fn a_name_stands_for_what_is_below_it() {
        let names = Names::new(vec!["link".to_owned(), "app.fw".to_owned()]);
        let held = ["link", "link.up", "app.fw", "app.fw.x.y"];
        assert!(held.iter().all(|name| names.hold(name)));
        let others = ["", "lin", "linkage", "link-up", "app", "app.fwd"];
        assert!(!others.iter().any(|name| names.hold(name)));
    }

    #[test]
    fn each_capability_has_names_of_its_own() {
        let grant = Grant::nothing()
            .with_names(Capability::Publish, Names::new(vec!["a".to_owned()]))
            .with_names(Capability::Query, Names::new(vec!["b".to_owned()]));
        assert!(grant.holds_for(Capability::Publish, "a.x") && !grant.holds_for(Capability::Publish, "b"));
        assert!(!grant.holds_for(Capability::Subscribe, "a"));
        assert!(!grant.with_names(Capability::PacketIn, Names::default()).holds(Capability::PacketIn));
    }

    #[test]
    fn a_vendors_parts_are_granted_one_by_one() {
        let parts = |kind, subtype| VendorParts { vendor: 7, kind, subtype };
        let check = |granted: &[VendorParts], vendor, subtype, held| {
            let grant = Grant::nothing().with_vendors(Vendors::new(granted.to_vec()));
            let part = VendorPart { vendor, kind: PartKind::Action, subtype };
            assert_eq!(grant.holds_vendor(part), held, "{granted:?} {part:?}");
        };
        check(&[], 7, 1, false);
        check(&[parts(None, None)], 7, 1, true);
        check(&[parts(None, None)], 8, 1, false);
        check(&[parts(Some(PartKind::Action), None)], 7, 1, true);
        check(&[parts(Some(PartKind::Field), None)], 7, 1, false);
        check(&[parts(Some(PartKind::Action), Some(1))], 7, 1, true);
        check(&[parts(Some(PartKind::Action), Some(1))], 7, 2, false);
        let part = VendorPart { vendor: 7, kind: PartKind::Action, subtype: 1 };
        assert!(
            !Grant::nothing().with(Capability::Vendor).holds_vendor(part),
            "without a list it allows none"
        );
    }

    #[test]
    fn tables_are_told_apart() {
        let tables: TableSet = [0, 63, 64, 254].into_iter().collect();
        assert_eq!((0..=255).filter(|table| tables.contains(*table)).collect::<Vec<u8>>(), [0, 63, 64, 254]);
    }
}
