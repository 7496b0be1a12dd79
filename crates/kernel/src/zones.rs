//! The zones that a kernel serves, and sets of them.
//!
//! Never starts or ends one.

use crate::capability::Capability;
use crate::grant::{Bounds, Grant};
use crate::prepared::Prepared;
use crate::quota::Rates;
use crate::subscription::Subscription;
use abi::ZoneId;
use flow::DatapathId;
use flow::frame::FrameFields;

/// The highest zone number. A zone is a bit of a 64-bit word, so that "who hears this" is one word and finding out allocates
/// nothing; bit 0 is the kernel. A node that is asked for more zones refuses to start them.
pub const MAX_ZONE: u16 = 63;

/// A set of zones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ZoneSet(u64);

impl ZoneSet {
    /// No zone.
    pub const EMPTY: ZoneSet = ZoneSet(0);

    /// Every zone that there can be.
    pub const ALL: ZoneSet = ZoneSet(u64::MAX);

    /// Just this one; nobody if its number is beyond [`MAX_ZONE`].
    #[inline]
    pub const fn only(zone: ZoneId) -> ZoneSet {
        if zone.0 <= MAX_ZONE { ZoneSet(1 << zone.0) } else { ZoneSet(0) }
    }

    /// Whether nobody is in it.
    #[inline]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether this zone is in it.
    #[inline]
    pub const fn contains(self, zone: ZoneId) -> bool {
        self.0 & ZoneSet::only(zone).0 != 0
    }

    /// With one more.
    #[must_use]
    #[inline]
    pub const fn with(self, zone: ZoneId) -> ZoneSet {
        ZoneSet(self.0 | ZoneSet::only(zone).0)
    }

    /// Those of both.
    #[must_use]
    #[inline]
    pub const fn union(self, others: ZoneSet) -> ZoneSet {
        ZoneSet(self.0 | others.0)
    }

    /// Without this one.
    #[must_use]
    #[inline]
    pub const fn without(self, zone: ZoneId) -> ZoneSet {
        ZoneSet(self.0 & !ZoneSet::only(zone).0)
    }
}

impl Iterator for ZoneSet {
    type Item = ZoneId;

    /// Takes the zone with the lowest number out.
    #[inline]
    fn next(&mut self) -> Option<ZoneId> {
        if self.0 == 0 {
            return None;
        }
        let zone = ZoneId(self.0.trailing_zeros() as u16);
        *self = self.without(zone);
        Some(zone)
    }
}

/// What the kernel knows of a zone.
#[derive(Clone, Debug)]
pub struct Zone {
    /// The app's name.
    pub name: String,
    /// What it may do, and how far.
    pub grant: Grant,
    /// Whether its rules may make packets of a packet-out's frame that it may not send; see `crate::bounds::own_rules_go_beyond`.
    pub(crate) own_rules_go_beyond: bool,
    /// What is left in this second of what it may do.
    pub(crate) rates: Rates,
    /// The shapes of its rules that were decided on by its grant.
    pub(crate) prepared: Prepared,
    /// What it hears.
    pub subscription: Subscription,
    /// What it asked to hear last, if that was refused: it holds as soon as it is granted.
    pub refused_subscription: Option<Subscription>,
    /// What was counted of it.
    pub counters: ZoneCounters,
}

impl Zone {
    /// Whether it hears some packet-ins only, because it wants no others or because it was granted no others.
    pub(crate) fn is_choosy(&self) -> bool {
        self.subscription.packets().is_some() || self.grant.is_bounded(Capability::PacketIn)
    }

    /// Whether a packet is among those that it wants and was granted.
    pub(crate) fn hears_packet(&self, datapath: DatapathId, fields: &FrameFields) -> bool {
        let Bounds { flowspace, datapaths, .. } = self.grant.packets_in();
        self.subscription.packets().is_none_or(|wanted| wanted.matches(fields))
            && datapaths.as_ref().is_none_or(|granted| granted.contains(&datapath))
            && flowspace.as_ref().is_none_or(|granted| granted.iter().any(|one| one.matches(fields)))
    }
}

/// What was counted of a zone since it was attached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ZoneCounters {
    /// Events that were its to hear.
    pub events: u64,
    /// Commands that it gave.
    pub commands: u64,
    /// Packet-outs of it that passed.
    pub packet_outs: u64,
    /// Commands that were refused.
    pub refusals: u64,
    /// Packet-ins of its rules' that were dropped, since it caused too many.
    pub caused_dropped: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_gives_its_zones_in_order_and_once() {
        let set = ZoneSet::EMPTY
            .with(ZoneId(63))
            .with(ZoneId(1))
            .with(ZoneId(1))
            .with(ZoneId(7))
            .without(ZoneId(7));
        assert_eq!(set.collect::<Vec<_>>(), [ZoneId(1), ZoneId(63)]);
    }

    #[test]
    fn a_zone_beyond_the_last_is_in_no_set() {
        assert!(ZoneSet::only(ZoneId(64)).is_empty());
        assert!(!ZoneSet::EMPTY.with(ZoneId(200)).contains(ZoneId(200)));
    }
}
