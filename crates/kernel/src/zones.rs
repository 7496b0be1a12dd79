//! The zones that a kernel serves.
//!
//! Never starts or ends one.

use crate::capability::Capability;
use crate::grant::{Bounds, Grant};
use crate::quota::Rates;
use crate::shapes::Prepared;
use crate::subscription::Subscription;
use flow::DatapathId;
use flow::frame::FrameFields;

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
    pub(crate) fn is_selective(&self) -> bool {
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
    /// Commands that it gave.
    pub commands: u64,
    /// Packet-outs of it that passed.
    pub packet_outs: u64,
    /// Commands that were refused.
    pub refusals: u64,
    /// Packet-ins of its rules' that were dropped, since it caused too many.
    pub caused_dropped: u64,
}
