//! What a zone was granted: its capabilities, and how far each of them reaches.
//!
//! ```text
//!   operator's words (parsed elsewhere) ──> Grant, built once when the zone is attached
//!   capability asked for ──> Grant ──> not held, held without bounds (one test), or held within bounds: ask crate::bounds
//! ```
//!
//! In: capabilities and bounds. Out: whether something is held, and its bounds. It never looks into a command, never changes after the
//! zone was attached, and is read without a lock and without allocating: each worker has its own copy.

use crate::capability::{Capabilities, Capability};
use crate::quota::Quotas;
use abi::service::GRANT_BYTES_MAX;
use flow::vendor::{PartKind, VendorPart};
use flow::{DatapathId, Match, PortNo};
use std::collections::BTreeMap;
use std::ops::RangeInclusive;

/// Everything that a zone was granted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Grant {
    held: Capabilities,
    /// Those that are held within bounds; the others reach everywhere.
    bounded: Capabilities,
    packet_in: Bounds,
    packet_out: Bounds,
    rule_write: Bounds,
    port_write: Bounds,
    names: [Option<Names>; NAMED.len()],
    vendors: Vendors,
    rank: Option<u16>,
    quotas: Quotas,
    /// By a service's name, what that service is told of this grant with each call.
    services: BTreeMap<String, Vec<u8>>,
}

/// The capabilities that are bounded by names: services, topics.
const NAMED: [Capability; 3] = [Capability::Query, Capability::Publish, Capability::Subscribe];

/// How far a capability to write into a switch reaches. `None` is everywhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// The packets: those of at least one of these matches.
    pub flowspace: Option<Vec<Match>>,
    /// The tables.
    pub tables: Option<TableSet>,
    /// The priorities.
    pub priorities: RangeInclusive<u16>,
    /// The ports by which packets may leave; reserved ones only if they are named. The controller needs packet.in instead.
    pub ports: Option<Vec<PortNo>>,
    /// The switches.
    pub datapaths: Option<Vec<DatapathId>>,
}

impl Default for Bounds {
    fn default() -> Self {
        Bounds { flowspace: None, tables: None, priorities: 0..=u16::MAX, ports: None, datapaths: None }
    }
}

impl Bounds {
    /// Whether it reaches everywhere.
    pub fn is_everywhere(&self) -> bool {
        *self == Bounds::default()
    }
}

/// A set of tables.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TableSet([u64; 4]);

impl TableSet {
    /// Whether a table is in it.
    pub fn contains(&self, table_id: u8) -> bool {
        self.0[usize::from(table_id >> 6)] >> (table_id & 63) & 1 == 1
    }

    /// Whether a table is in both.
    pub fn meets(&self, other: &TableSet) -> bool {
        self.0.iter().zip(&other.0).any(|(these, those)| these & those != 0)
    }
}

impl FromIterator<u8> for TableSet {
    fn from_iter<T: IntoIterator<Item = u8>>(tables: T) -> Self {
        let mut set = TableSet::default();
        tables.into_iter().for_each(|table_id| set.0[usize::from(table_id >> 6)] |= 1 << (table_id & 63));
        set
    }
}

/// Names, and what lies below them: `link` stands for `link` and `link.up`, not for `linkage`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names(Vec<String>);

impl Names {
    /// These names.
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

/// The vendors' parts that an app may use.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Vendors(Vec<VendorParts>);

/// Some parts of one vendor's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VendorParts {
    /// The vendor's number.
    pub vendor: u32,
    /// Of which kind; `None`: of every kind.
    pub kind: Option<PartKind>,
    /// Which one of that kind; `None`: every one.
    pub subtype: Option<u32>,
}

impl Vendors {
    /// These parts.
    pub fn new(parts: Vec<VendorParts>) -> Vendors {
        Vendors(parts)
    }

    /// Whether this part is one of them.
    pub fn hold(&self, wanted: VendorPart) -> bool {
        self.0.iter().any(|parts| {
            parts.vendor == wanted.vendor
                && parts.kind.is_none_or(|kind| kind == wanted.kind)
                && parts.subtype.is_none_or(|subtype| subtype == wanted.subtype)
        })
    }
}

impl Grant {
    /// Nothing.
    pub fn nothing() -> Grant {
        Grant::default()
    }

    /// These capabilities, each everywhere.
    pub fn everywhere(capabilities: &[Capability]) -> Grant {
        capabilities.iter().copied().fold(Grant::nothing(), Grant::with)
    }

    /// With a capability that reaches everywhere.
    #[must_use]
    pub fn with(mut self, capability: Capability) -> Grant {
        self.held = self.held.with(capability);
        self.bounded = self.bounded.without(capability);
        self
    }

    /// With `packet.in` for this flowspace and these switches.
    #[must_use]
    pub fn with_packets_in(mut self, bounds: Bounds) -> Grant {
        let everywhere = bounds.is_everywhere();
        self.packet_in = bounds;
        self.held_within(Capability::PacketIn, everywhere)
    }

    /// With `packet.out` within bounds; tables and priorities are no bounds of a packet-out.
    #[must_use]
    pub fn with_packets_out(mut self, bounds: Bounds) -> Grant {
        let everywhere = bounds.is_everywhere();
        self.packet_out = bounds;
        self.held_within(Capability::PacketOut, everywhere)
    }

    /// With `rule.write` within bounds.
    #[must_use]
    pub fn with_rules(mut self, bounds: Bounds) -> Grant {
        let everywhere = bounds.is_everywhere();
        self.rule_write = bounds;
        self.held_within(Capability::RuleWrite, everywhere)
    }

    /// With `port.write` for these ports and switches.
    #[must_use]
    pub fn with_ports(mut self, bounds: Bounds) -> Grant {
        let everywhere = bounds.is_everywhere();
        self.port_write = bounds;
        self.held_within(Capability::PortWrite, everywhere)
    }

    /// With a capability for these names. One that is not bounded by names is not granted.
    #[must_use]
    pub fn with_names(mut self, capability: Capability, names: Names) -> Grant {
        let Some(place) = place_of(capability) else { return self };
        self.names[place] = Some(names);
        self.held_within(capability, false)
    }

    /// With `vendor` for these parts.
    #[must_use]
    pub fn with_vendors(mut self, vendors: Vendors) -> Grant {
        self.vendors = vendors;
        self.held_within(Capability::Vendor, false)
    }

    /// At this place in the operator's order: 0 comes first. Apps of equal rank stand in the order of their zones' numbers.
    #[must_use]
    pub fn with_rank(mut self, rank: u16) -> Grant {
        self.rank = Some(rank);
        self
    }

    /// With these quotas.
    #[must_use]
    pub fn with_quotas(mut self, quotas: Quotas) -> Grant {
        self.quotas = quotas;
        self
    }

    /// With a part that concerns a service: bytes that mean something to that service alone. With one the app may call the service. At most
    /// [`abi::service::GRANT_BYTES_MAX`] bytes; a longer part is not granted.
    #[must_use]
    pub fn with_service(mut self, service: &str, part: Vec<u8>) -> Grant {
        if part.len() <= GRANT_BYTES_MAX {
            self.services.insert(service.to_owned(), part);
        }
        self
    }

    /// The part that concerns this service, if there is one.
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

    /// Whether a capability is held, however far.
    #[inline]
    pub const fn holds(&self, capability: Capability) -> bool {
        self.held.allow(capability)
    }

    /// Whether it is held within bounds only.
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

    /// Whether a capability that is bounded by names is held for this one.
    #[inline]
    pub fn holds_for(&self, capability: Capability, name: &str) -> bool {
        if !self.is_bounded(capability) {
            return self.holds(capability);
        }
        let names = place_of(capability).and_then(|place| self.names[place].as_ref());
        names.is_some_and(|names| names.hold(name))
    }

    /// Whether a vendor's part may be used. The capability without a list of parts allows none.
    pub fn holds_vendor(&self, part: VendorPart) -> bool {
        self.holds(Capability::Vendor) && self.vendors.hold(part)
    }

    /// Its place in the operator's order, behind all others where it was given none; see [`crate::precedence`].
    pub fn rank(&self) -> u16 {
        self.rank.unwrap_or(u16::MAX)
    }

    /// How much of it all.
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
