//! The actions of a rule or packet-out.
//!
//! These are the actions of OpenFlow 1.3, and those of 1.0 that 1.3 expresses differently (as set-field). The codec
//! knows which version has which action. The emulator executes them.

use crate::field::Field;
use crate::mac::MacAddr;
use crate::port::PortNo;
use std::net::Ipv4Addr;

/// One action (OpenFlow 1.3.5, 7.2.5; 1.0, 5.2.4).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// Send it out of a port. `max_len` is how many bytes go to the controller if that is the port (0xffff: all of it, and
    /// the switch keeps no copy).
    Output {
        /// The output port.
        port: PortNo,
        /// Bytes for the controller.
        max_len: u16,
    },
    /// Copy the time-to-live from the next-to-outermost header outwards.
    CopyTtlOut,
    /// Copy the time-to-live from the outermost header inwards.
    CopyTtlIn,
    /// Set the MPLS time-to-live.
    SetMplsTtl(u8),
    /// Decrement the MPLS time-to-live.
    DecMplsTtl,
    /// Push a VLAN tag with this EtherType.
    PushVlan(u16),
    /// Pop the outer VLAN tag.
    PopVlan,
    /// Push an MPLS header with this EtherType.
    PushMpls(u16),
    /// Pop the outer MPLS header. The value is the EtherType of the remaining packet.
    PopMpls(u16),
    /// Set the queue of the output port.
    SetQueue(u32),
    /// Process it by this group.
    Group(u32),
    /// Set the IP time-to-live.
    SetNwTtl(u8),
    /// Decrement the IP time-to-live.
    DecNwTtl,
    /// Set a header field. `value` is right-aligned. OpenFlow 1.3 has no mask here.
    SetField {
        /// The field to set.
        field: Field,
        /// The new value.
        value: u128,
    },
    /// Set a field that OpenFlow 1.3 does not define. It is kept unchanged: the OXM header and its payload.
    SetUnknownField {
        /// The 32-bit OXM header.
        header: u32,
        /// The payload, `header & 0xff` bytes.
        body: Vec<u8>,
    },
    /// Push a provider-backbone-bridge tag with this EtherType.
    PushPbb(u16),
    /// Pop the provider-backbone-bridge tag.
    PopPbb,
    /// 1.0: set the VLAN id (a tag is pushed if there is none).
    SetVlanVid(u16),
    /// 1.0: set the VLAN priority (a tag is pushed if there is none).
    SetVlanPcp(u8),
    /// 1.0: strip the VLAN tag if there is one.
    StripVlan,
    /// 1.0: set the Ethernet source.
    SetEthSrc(MacAddr),
    /// 1.0: set the Ethernet destination.
    SetEthDst(MacAddr),
    /// 1.0: set the IPv4 source.
    SetIpv4Src(Ipv4Addr),
    /// 1.0: set the IPv4 destination.
    SetIpv4Dst(Ipv4Addr),
    /// 1.0: set the IP type of service (the upper six bits count).
    SetIpTos(u8),
    /// 1.0: set the TCP, UDP or SCTP source port.
    SetTransportSrc(u16),
    /// 1.0: set the TCP, UDP or SCTP destination port.
    SetTransportDst(u16),
    /// 1.0: send it out of a port through one of its queues.
    Enqueue {
        /// The output port.
        port: PortNo,
        /// Which queue of that port.
        queue_id: u32,
    },
    /// An experimenter action (1.0: vendor action), kept unchanged. Nicira's actions are among them.
    Experimenter {
        /// The experimenter's number.
        experimenter: u32,
        /// The bytes after that number, including padding.
        body: Vec<u8>,
    },
}

impl Action {
    /// Output with `max_len` 0.
    pub const fn output(port: PortNo) -> Self {
        Action::Output { port, max_len: 0 }
    }

    /// Output of the whole packet to the controller.
    pub const fn to_controller() -> Self {
        Action::Output { port: PortNo::CONTROLLER, max_len: 0xffff }
    }
}
