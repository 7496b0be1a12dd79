//! The bytes of an Ethernet frame: where its headers are, and changing them.
//!
//! Never keeps a frame, and never fails on one: what is not there is not read and not changed.

pub(crate) mod actions;
pub mod checksum;
pub(crate) mod layout;
pub mod offload;

/// The shortest thing that is a frame here: two addresses and an EtherType.
pub const ETHERNET_HEADER_BYTES: usize = 14;

/// EtherTypes that the switch looks into.
pub mod ether_type {
    /// IPv4.
    pub const IPV4: u16 = 0x0800;
    /// ARP.
    pub const ARP: u16 = 0x0806;
    /// Reverse ARP (RFC 903).
    pub const REVERSE_ARP: u16 = 0x8035;
    /// An IEEE 802.1Q tag.
    pub const VLAN: u16 = 0x8100;
    /// An IEEE 802.1ad outer tag.
    pub const QINQ: u16 = 0x88a8;
    /// IPv6.
    pub const IPV6: u16 = 0x86dd;
    /// MPLS unicast.
    pub const MPLS: u16 = 0x8847;
    /// MPLS with an upstream-assigned label.
    pub const MPLS_MULTICAST: u16 = 0x8848;

    /// Whether a VLAN tag follows.
    pub const fn is_vlan(ether_type: u16) -> bool {
        ether_type == VLAN || ether_type == QINQ
    }

    /// Whether an MPLS label follows.
    pub const fn is_mpls(ether_type: u16) -> bool {
        ether_type == MPLS || ether_type == MPLS_MULTICAST
    }
}

/// IP protocol numbers that the switch looks into.
pub mod protocol {
    /// ICMP.
    pub const ICMP: u8 = 1;
    /// TCP.
    pub const TCP: u8 = 6;
    /// UDP.
    pub const UDP: u8 = 17;
    /// ICMPv6.
    pub const ICMPV6: u8 = 58;
    /// SCTP.
    pub const SCTP: u8 = 132;
}

/// Two bytes of a frame as a number, if they are there.
pub fn u16_at(frame: &[u8], at: usize) -> Option<u16> {
    frame.get(at..)?.first_chunk().map(|bytes| u16::from_be_bytes(*bytes))
}

/// Four bytes of a frame as a number, if they are there.
pub fn u32_at(frame: &[u8], at: usize) -> Option<u32> {
    frame.get(at..)?.first_chunk().map(|bytes| u32::from_be_bytes(*bytes))
}
