//! The match of one flow: all that identifies the flow of a packet.
//!
//! In: a frame, its port, the version of OpenFlow. Out: the fields of a match, or nothing if the frame does not have all of them. It never
//! chooses an output.
//!
//! It has no type of service. A flow may change it, and in OpenFlow 1.0 a match with all fields has a priority above all others
//! (5.3.3), whatever the flow mod says.

use burnet_sdk::flow::frame::FrameFields;
use burnet_sdk::{Field, MatchWriter, PortNo};

/// The fields of a match, by their numbers in OpenFlow 1.3. A packet has some of them.
const FIELDS: [Field; 21] = [
    Field::EthDst,
    Field::EthSrc,
    Field::EthType,
    Field::VlanVid,
    Field::VlanPcp,
    Field::IpProto,
    Field::Ipv4Src,
    Field::Ipv4Dst,
    Field::TcpSrc,
    Field::TcpDst,
    Field::UdpSrc,
    Field::UdpDst,
    Field::SctpSrc,
    Field::SctpDst,
    Field::Icmpv4Type,
    Field::Icmpv4Code,
    Field::ArpOp,
    Field::ArpSpa,
    Field::ArpTpa,
    Field::Ipv6Src,
    Field::Ipv6Dst,
];

/// ICMPv6 comes last by number.
const ICMPV6: [Field; 2] = [Field::Icmpv6Type, Field::Icmpv6Code];

const ETHERTYPE_IPV6: u128 = 0x86dd;

/// TCP, UDP and SCTP, each with the field that its packets have.
const WITH_PORTS: [(u128, Field); 3] = [(6, Field::TcpDst), (17, Field::UdpDst), (132, Field::SctpDst)];

/// A flow.
pub struct Flow {
    fields: FrameFields,
    in_port: PortNo,
    is_v10: bool,
}

impl Flow {
    /// The flow of a frame. `None` if the frame belongs to one, but does not show which: a later fragment has no ports.
    pub fn of(frame: &[u8], in_port: PortNo, is_v10: bool) -> Option<Flow> {
        let fields = FrameFields::read(frame);
        let has_lost_ports = fields.get(Field::IpProto).is_some_and(|protocol| {
            WITH_PORTS.iter().any(|(known, field)| *known == protocol && !fields.has(*field))
        });
        (!has_lost_ports).then_some(Flow { fields, in_port, is_v10 })
    }

    /// Writes its match. OpenFlow 1.0 knows nothing of IPv6 but its EtherType, so that there its flows are pairs of Ethernet addresses.
    pub fn write(&self, out: &mut MatchWriter<'_>) {
        out.field(Field::InPort, self.in_port);
        let is_coarse = self.is_v10 && self.fields.get(Field::EthType) == Some(ETHERTYPE_IPV6);
        let fields = FIELDS.iter().chain(&ICMPV6).filter(|field| !is_coarse || is_ethernet(**field));
        for field in fields {
            if let Some(value) = self.fields.get(*field) {
                out.field(*field, value);
            }
        }
    }
}

fn is_ethernet(field: Field) -> bool {
    matches!(field, Field::EthDst | Field::EthSrc | Field::EthType | Field::VlanVid | Field::VlanPcp)
}
