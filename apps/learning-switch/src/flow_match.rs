//! The match of one flow: all that identifies the flow of a packet.
//!
//! In: a packet-in, and which version of OpenFlow its switch speaks. Out: the fields of a match, or nothing if the packet does not have all of them.
//! It never chooses an output.
//!
//! It has no type of service. A flow may change it, and in OpenFlow 1.0 a match with all fields has a priority above all others
//! (5.3.3), whatever the flow mod says.

use burnet_sdk::flow::frame::FrameFields;
use burnet_sdk::{DatapathId, Field, MatchWriter, OpenFlowVersion, PacketIn, PortNo};
use foldhash::HashSet;

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

/// What rules for flows need: the flow of the packet-in that was read last, and which switches speak OpenFlow 1.0.
#[derive(Debug, Default)]
pub struct Flows {
    of_1_0: HashSet<DatapathId>,
    last: Option<Flow>,
}

#[derive(Debug)]
struct Flow {
    fields: FrameFields,
    in_port: PortNo,
    is_v10: bool,
}

impl Flows {
    /// A switch has connected.
    pub fn on_switch_up(&mut self, datapath: DatapathId, openflow: OpenFlowVersion) {
        if openflow == OpenFlowVersion::V1_0 {
            self.of_1_0.insert(datapath);
        } else {
            self.of_1_0.remove(&datapath);
        }
    }

    /// It is down.
    pub fn on_switch_down(&mut self, datapath: DatapathId) {
        self.of_1_0.remove(&datapath);
    }

    /// Reads the flow of a packet. False if the packet belongs to one, but does not show which: a later fragment has no ports.
    #[cold]
    #[inline(never)]
    pub fn read(&mut self, packet: &PacketIn) -> bool {
        let fields = FrameFields::read(packet.data);
        let has_lost_ports = fields.get(Field::IpProto).is_some_and(|protocol| {
            WITH_PORTS.iter().any(|(known, field)| *known == protocol && !fields.has(*field))
        });
        let is_v10 = self.of_1_0.contains(&packet.datapath);
        self.last = (!has_lost_ports).then_some(Flow { fields, in_port: packet.in_port, is_v10 });
        self.last.is_some()
    }

    /// Writes the match of the flow that was read. OpenFlow 1.0 knows nothing of IPv6 but its EtherType, so that there its flows are pairs of
    /// Ethernet addresses.
    #[cold]
    #[inline(never)]
    pub fn write(&self, out: &mut MatchWriter<'_>) {
        let Some(Flow { fields, in_port, is_v10 }) = &self.last else { return };
        out.field(Field::InPort, *in_port);
        let is_coarse = *is_v10 && fields.get(Field::EthType) == Some(ETHERTYPE_IPV6);
        for field in FIELDS.iter().chain(&ICMPV6).filter(|field| !is_coarse || is_ethernet(**field)) {
            if let Some(value) = fields.get(*field) {
                out.field(*field, value);
            }
        }
    }
}

fn is_ethernet(field: Field) -> bool {
    matches!(field, Field::EthDst | Field::EthSrc | Field::EthType | Field::VlanVid | Field::VlanPcp)
}
