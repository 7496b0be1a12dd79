//! The zones that a kernel serves.
//!
//! It never starts or ends one.

use crate::buffers::Handed;
use crate::capability::Capability;
use crate::grant::{Bounds, Grant};
use crate::quota::Rates;
use crate::shapes::Prepared;
use crate::subscription::Subscription;
use flow::frame::FrameFields;
use flow::{DatapathId, Field, PortNo};

/// The kernel's record of a zone.
#[derive(Clone, Debug)]
pub struct Zone {
    /// The app's name.
    pub name: String,
    /// Its grant.
    pub grant: Grant,
    /// Whether its rules may turn a packet-out's frame into a packet that it may not send; see
    /// `crate::bounds::own_rules_go_beyond`.
    pub(crate) own_rules_go_beyond: bool,
    /// The remaining tokens of its rate limits.
    pub(crate) rates: Rates,
    /// The shapes of its rules that its grant allows.
    pub(crate) prepared: Prepared,
    /// Its subscription.
    pub subscription: Subscription,
    /// The last subscription that was refused. It becomes active as soon as the grant allows it.
    pub refused_subscription: Option<Subscription>,
    /// Its counters.
    pub counters: ZoneCounters,
}

impl Zone {
    /// Whether it receives only some packet-ins, because of its subscription or its grant.
    pub(crate) fn is_selective(&self) -> bool {
        self.subscription.packets().is_some() || self.grant.is_bounded(Capability::PacketIn)
    }

    /// Whether the packets that it receives may all have a certain value of this field.
    pub(crate) fn chooses_by(&self, field: Field) -> bool {
        let bounds = self.grant.packets_in();
        let at_one = bounds.switches.values().filter_map(|it| it.flowspace.as_ref());
        let space = bounds.flowspace.iter().chain(at_one).flatten();
        let at_one = bounds.switches.values().filter_map(|it| it.own_ports.as_ref());
        let has_own_ports = [&bounds.own_ports].into_iter().chain(at_one).any(|ports| !ports.is_empty());
        field == Field::InPort && has_own_ports
            || self.subscription.packets().into_iter().chain(space).any(|it| it.get(field).is_some())
    }

    /// Whether the kernel must know which buffered packets it has received: it may send only some packets, and receives only
    /// some.
    pub(crate) fn keeps_buffers(&self) -> bool {
        let is_bounded =
            |capability, bounds: &Bounds| self.grant.is_bounded(capability) && bounds.has_flowspace();
        (self.is_selective() || self.subscription.is_of_own_rules())
            && (is_bounded(Capability::RuleWrite, self.grant.rules())
                || is_bounded(Capability::PacketOut, self.grant.packets_out()))
    }

    /// What to know of a buffered packet with these fields, which it receives.
    pub(crate) fn handed(&self, datapath: DatapathId, fields: &FrameFields) -> Handed {
        let in_port = fields.get(Field::InPort).and_then(|port| u32::try_from(port).ok());
        Handed {
            in_port: PortNo(in_port.unwrap_or_default()),
            rule_write: self.grant.rules().at(datapath).place_of(fields),
            packet_out: self.grant.packets_out().at(datapath).place_of(fields),
        }
    }

    /// Whether its subscription and its grant include a packet.
    pub(crate) fn hears_packet(&self, datapath: DatapathId, fields: &FrameFields) -> bool {
        let bounds = self.grant.packets_in();
        self.subscription.packets().is_none_or(|wanted| wanted.matches(fields))
            && bounds.has_switch(datapath)
            && bounds.at(datapath).has_packet(fields)
    }
}

/// The counters of a zone since it was attached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ZoneCounters {
    /// Its commands.
    pub commands: u64,
    /// Its accepted packet-outs.
    pub packet_outs: u64,
    /// Its refused commands.
    pub refusals: u64,
    /// Dropped packet-ins of its rules, because it caused too many.
    pub caused_dropped: u64,
}
