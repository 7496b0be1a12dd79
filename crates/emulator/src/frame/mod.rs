//! The bytes of an Ethernet frame: where its headers are, and changing them.
//!
//! Never keeps a frame, and never fails on one: what is not there is not read and not changed.

pub(crate) mod actions;
pub(crate) mod checksum;
pub(crate) mod layout;
pub(crate) mod offload;

/// The shortest thing that is a frame here: two addresses and an EtherType.
pub(crate) const ETHERNET_HEADER_BYTES: usize = 14;

/// EtherTypes that the switch looks into.
pub(crate) mod ether_type {
    pub(crate) const IPV4: u16 = 0x0800;
    pub(crate) const ARP: u16 = 0x0806;
    pub(crate) const REVERSE_ARP: u16 = 0x8035;
    pub(crate) const VLAN: u16 = 0x8100;
    pub(crate) const QINQ: u16 = 0x88a8;
    pub(crate) const IPV6: u16 = 0x86dd;
    pub(crate) const MPLS: u16 = 0x8847;
    pub(crate) const MPLS_MULTICAST: u16 = 0x8848;

    pub(crate) const fn is_vlan(ether_type: u16) -> bool {
        ether_type == VLAN || ether_type == QINQ
    }

    pub(crate) const fn is_mpls(ether_type: u16) -> bool {
        ether_type == MPLS || ether_type == MPLS_MULTICAST
    }
}

/// IP protocol numbers that the switch looks into.
pub(crate) mod protocol {
    pub(crate) const ICMP: u8 = 1;
    pub(crate) const TCP: u8 = 6;
    pub(crate) const UDP: u8 = 17;
    pub(crate) const ICMPV6: u8 = 58;
    pub(crate) const SCTP: u8 = 132;
}

/// Two bytes of a frame as a number, if they are there.
pub(crate) fn u16_at(frame: &[u8], at: usize) -> Option<u16> {
    frame.get(at..)?.first_chunk().map(|bytes| u16::from_be_bytes(*bytes))
}

/// Four bytes of a frame as a number, if they are there.
pub(crate) fn u32_at(frame: &[u8], at: usize) -> Option<u32> {
    frame.get(at..)?.first_chunk().map(|bytes| u32::from_be_bytes(*bytes))
}
