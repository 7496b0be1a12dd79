//! The fields of a packet, as a match asks for them.
//!
//! Never keeps a value: each is read from the frame when it is asked for.

use flow::{Field, Match, MatchEntry};

use super::packet::Packet;
use crate::frame::layout::{Layout, Network};
use crate::frame::{protocol, u16_at, u32_at};

/// A packet's fields.
pub(crate) struct Fields<'a> {
    packet: &'a Packet,
    layout: Layout,
}

impl<'a> Fields<'a> {
    /// The fields of a packet whose frame is whole enough to be one.
    pub(crate) fn of(packet: &'a Packet) -> Option<Self> {
        Some(Fields { packet, layout: Layout::of(&packet.frame)? })
    }

    /// Whether the packet is one that the match speaks of.
    pub(crate) fn are_in(&self, matching: &Match) -> bool {
        matching.entries().iter().all(|entry| match entry {
            MatchEntry::Field { field, value, mask } => {
                let mask = mask.unwrap_or(field.full_mask());
                self.get(*field).is_some_and(|there| there & mask == *value)
            }
            MatchEntry::Unknown { .. } => false,
        })
    }

    /// A field's value, if the packet has it.
    pub(crate) fn get(&self, field: Field) -> Option<u128> {
        use Field::*;
        let frame = self.packet.frame.as_slice();
        let number = |at: usize, bytes: usize| {
            let bytes = frame.get(at..at + bytes)?;
            Some(bytes.iter().fold(0, |number, byte| number << 8 | u128::from(*byte)))
        };
        match field {
            InPort => Some(self.packet.in_port.0.into()),
            Metadata => Some(self.packet.metadata.into()),
            EthDst => number(0, 6),
            EthSrc => number(6, 6),
            EthType => Some(self.layout.ether_type.into()),
            VlanVid if self.layout.vlan_tags == 0 => Some(0),
            VlanVid => Some(number(14, 2)? & 0xfff | 0x1000),
            VlanPcp if self.layout.vlan_tags > 0 => Some(number(14, 2)? >> 13),
            MplsLabel | MplsTc | MplsBos if self.layout.mpls_labels > 0 => {
                let entry = u128::from(u32_at(frame, self.layout.after_tags())?);
                Some(match field {
                    MplsLabel => entry >> 12,
                    MplsTc => entry >> 9 & 7,
                    _ => entry >> 8 & 1,
                })
            }
            IpDscp | IpEcn | IpProto => self.ip_field(field),
            ArpOp | ArpSpa | ArpTpa | ArpSha | ArpTha => match self.layout.network? {
                Network::Arp { at } => number(
                    at + match field {
                        ArpOp => 6,
                        ArpSha => 8,
                        ArpSpa => 14,
                        ArpTha => 18,
                        _ => 24,
                    },
                    field.bytes(),
                ),
                _ => None,
            },
            Ipv4Src | Ipv4Dst => match self.layout.network? {
                Network::Ipv4 { at, .. } => number(at + if field == Ipv4Src { 12 } else { 16 }, 4),
                _ => None,
            },
            Ipv6Src | Ipv6Dst => match self.layout.network? {
                Network::Ipv6 { at } => number(at + if field == Ipv6Src { 8 } else { 24 }, 16),
                _ => None,
            },
            Ipv6Flabel => match self.layout.network? {
                Network::Ipv6 { at } => Some(number(at, 4)? & 0xf_ffff),
                _ => None,
            },
            _ => self.transport_field(field),
        }
    }

    fn ip_field(&self, field: Field) -> Option<u128> {
        let frame = self.packet.frame.as_slice();
        let (class, proto) = match self.layout.network? {
            Network::Ipv4 { at, .. } => (*frame.get(at + 1)?, *frame.get(at + 9)?),
            Network::Ipv6 { at } => {
                let proto = self.layout.transport.map_or(*frame.get(at + 6)?, |transport| transport.protocol);
                ((u16_at(frame, at)? >> 4) as u8, proto)
            }
            Network::Arp { .. } => return None,
        };
        Some(u128::from(match field {
            Field::IpDscp => class >> 2,
            Field::IpEcn => class & 3,
            _ => proto,
        }))
    }

    fn transport_field(&self, field: Field) -> Option<u128> {
        use Field::*;
        let transport = self.layout.transport?;
        let (of, offset) = match field {
            TcpSrc => (protocol::TCP, 0),
            TcpDst => (protocol::TCP, 2),
            UdpSrc => (protocol::UDP, 0),
            UdpDst => (protocol::UDP, 2),
            SctpSrc => (protocol::SCTP, 0),
            SctpDst => (protocol::SCTP, 2),
            Icmpv4Type => (protocol::ICMP, 0),
            Icmpv4Code => (protocol::ICMP, 1),
            Icmpv6Type => (protocol::ICMPV6, 0),
            Icmpv6Code => (protocol::ICMPV6, 1),
            _ => return None,
        };
        let at = transport.at + offset;
        let frame = self.packet.frame.as_slice();
        let value = if field.bytes() == 1 { (*frame.get(at)?).into() } else { u16_at(frame, at)?.into() };
        (transport.protocol == of).then_some(value)
    }
}
