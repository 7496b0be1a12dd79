//! What a frame tells of hosts: ARP, IPv6 neighbour discovery and DHCP.
//!
//! ```text
//!   a frame's bytes ──> read ──> Told: a host, its address, or what a DHCP server gave to a client
//!                          └──> Unread: another kind of frame, or a damaged one
//! ```
//!
//! In: bytes from a switch, which any host can have written. Out: what they say, checked as far as a frame can be. It keeps
//! nothing, believes nothing beyond the frame, and reads no further than the lengths in it allow.

mod dhcp;
mod dhcpv6;

use crate::probe::PROBE_MAC;
use burnet_sdk::MacAddr;
use etherparse::{
    ArpPacketSlice, Ipv6Slice, LinkExtSlice, LinkSlice, NetSlice, SlicedPacket, TransportSlice, UdpSlice,
};
use hosts_contract::question::{is_address_of_a_host, is_of_a_host};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use view::HostId;

/// What a frame tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told {
    /// A host is at the port where the frame came in.
    Host {
        /// Which.
        id: HostId,
        /// An address that it says it has.
        address: Option<IpAddr>,
    },
    /// A DHCP server is at the port where the frame came in.
    DhcpServer {
        /// The server.
        id: HostId,
        /// Its address.
        address: Option<IpAddr>,
        /// The client and the address that the server has confirmed to it.
        lease: Option<(HostId, IpAddr)>,
    },
}

/// Why a frame tells nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unread {
    /// It is of another kind, or the service sent it itself.
    Other,
    /// It is damaged or contradicts itself. The text says where.
    Bad(&'static str),
}

/// The hop limit of neighbour discovery: no router has forwarded it (RFC 4861, 7.1).
const ON_LINK_HOP_LIMIT: u8 = 255;

/// The VLAN number that no frame may have (IEEE 802.1Q, 9.6).
const RESERVED_VLAN: u16 = 4095;

/// Reads a frame without preamble and check sequence.
///
/// # Errors
/// [`Unread`]: it tells nothing.
pub fn read(frame: &[u8]) -> Result<Told, Unread> {
    let packet =
        SlicedPacket::from_ethernet(frame).map_err(|_| Unread::Bad("a header is cut off or wrong"))?;
    let Some(LinkSlice::Ethernet2(ethernet)) = &packet.link else { return Err(Unread::Other) };
    let id = HostId { mac: MacAddr(ethernet.source()), vlan: vlan(&packet)? };
    if id.mac == PROBE_MAC {
        return Err(Unread::Other);
    }
    if !is_of_a_host(id) {
        return Err(Unread::Bad("the source is no address of a single host"));
    }
    match (&packet.net, &packet.transport) {
        (Some(NetSlice::Arp(arp)), _) => read_arp(id, arp),
        (Some(NetSlice::Ipv6(ip)), Some(TransportSlice::Icmpv6(icmp))) => {
            read_neighbour(id, ip, icmp.type_u8(), icmp.code_u8(), icmp.payload())
        }
        (Some(NetSlice::Ipv4(ip)), Some(TransportSlice::Udp(udp))) => {
            read_dhcp(id, ip.header().source_addr(), udp)
        }
        (Some(NetSlice::Ipv6(ip)), Some(TransportSlice::Udp(udp))) => {
            let client = HostId { mac: MacAddr(ethernet.destination()), ..id };
            read_dhcpv6(id, client, ip.header().source_addr(), udp)
        }
        _ => Err(Unread::Other),
    }
}

/// The outermost VLAN. The number 0 marks a priority and no VLAN.
fn vlan(packet: &SlicedPacket<'_>) -> Result<Option<u16>, Unread> {
    match packet.link_exts.first() {
        None => Ok(None),
        Some(LinkExtSlice::Vlan(tag)) => match tag.vlan_identifier().value() {
            RESERVED_VLAN => Err(Unread::Bad("the VLAN 4095 is reserved")),
            vlan => Ok(Some(vlan).filter(|vlan| *vlan != 0)),
        },
        Some(_) => Err(Unread::Other),
    }
}

fn read_arp(id: HostId, arp: &ArpPacketSlice<'_>) -> Result<Told, Unread> {
    let ethernet_and_ipv4 = (arp.hw_addr_type().0, arp.proto_addr_type().0) == (1, 0x0800);
    let sender = <[u8; 6]>::try_from(arp.sender_hw_addr());
    let address = <[u8; 4]>::try_from(arp.sender_protocol_addr());
    let (true, Ok(sender), Ok(address)) = (ethernet_and_ipv4, sender, address) else {
        return Err(Unread::Bad("it is ARP for another kind of address"));
    };
    if sender != id.mac.0 {
        return Err(Unread::Bad("ARP names another sender than the Ethernet header"));
    }
    Ok(Told::Host { id, address: single(Ipv4Addr::from(address).into()) })
}

/// Router and neighbour solicitations and advertisements (RFC 4861, 4).
fn read_neighbour(id: HostId, ip: &Ipv6Slice<'_>, kind: u8, code: u8, body: &[u8]) -> Result<Told, Unread> {
    let (target_bytes, option) = match kind {
        133 => (0, SOURCE_OPTION),
        // Reachable time and retransmission timer.
        134 => (8, SOURCE_OPTION),
        135 => (16, SOURCE_OPTION),
        136 => (16, TARGET_OPTION),
        _ => return Err(Unread::Other),
    };
    if ip.header().hop_limit() != ON_LINK_HOP_LIMIT || code != 0 {
        return Err(Unread::Bad("neighbour discovery does not come from this link"));
    }
    let Some((target, options)) = body.split_at_checked(target_bytes) else {
        return Err(Unread::Bad("neighbour discovery is cut off"));
    };
    if link_layer_address(options, option)?.is_some_and(|mac| mac != id.mac) {
        return Err(Unread::Bad("neighbour discovery names another sender than the Ethernet header"));
    }
    let source = ip.header().source_addr();
    let address = match (kind, <[u8; 16]>::try_from(target)) {
        (136, Ok(target)) => Ipv6Addr::from(target),
        _ => source,
    };
    Ok(Told::Host { id, address: single(address.into()) })
}

const SOURCE_OPTION: u8 = 1;
const TARGET_OPTION: u8 = 2;

/// The Ethernet address in the options, if it is there. Each option has its length in units of eight bytes.
fn link_layer_address(mut options: &[u8], wanted: u8) -> Result<Option<MacAddr>, Unread> {
    const DAMAGED: Unread = Unread::Bad("an option of neighbour discovery is damaged");
    let mut found = None;
    while let [kind, units, ..] = options {
        let (option, rest) = options.split_at_checked(usize::from(*units) * 8).ok_or(DAMAGED)?;
        if option.is_empty() {
            return Err(DAMAGED);
        }
        if *kind == wanted {
            found = option.get(2..8).and_then(|bytes| bytes.try_into().ok()).map(MacAddr);
        }
        options = rest;
    }
    match options {
        [] => Ok(found),
        _ => Err(DAMAGED),
    }
}

fn read_dhcp(id: HostId, source: Ipv4Addr, udp: &UdpSlice<'_>) -> Result<Told, Unread> {
    match (udp.source_port(), udp.destination_port()) {
        (dhcp::CLIENT_PORT | dhcp::SERVER_PORT, dhcp::CLIENT_PORT | dhcp::SERVER_PORT) => {}
        _ => return Err(Unread::Other),
    }
    let message = dhcp::read(udp.payload()).ok_or(Unread::Bad("DHCP is damaged"))?;
    match message {
        dhcp::Message::Client { mac } if mac != id.mac => {
            Err(Unread::Bad("DHCP names another client than the Ethernet header"))
        }
        dhcp::Message::Client { .. } | dhcp::Message::Relay => Ok(Told::Host { id, address: None }),
        dhcp::Message::Server { lease } => {
            let lease = lease.map(|(mac, address)| (HostId { mac, ..id }, IpAddr::from(address)));
            Ok(Told::DhcpServer { id, address: single(source.into()), lease: lease.filter(is_for_a_host) })
        }
    }
}

fn read_dhcpv6(id: HostId, client: HostId, source: Ipv6Addr, udp: &UdpSlice<'_>) -> Result<Told, Unread> {
    match (udp.source_port(), udp.destination_port()) {
        (_, dhcpv6::SERVER_PORT) => Ok(Told::Host { id, address: single(source.into()) }),
        (dhcpv6::SERVER_PORT, dhcpv6::CLIENT_PORT) => {
            let address = dhcpv6::confirmed(udp.payload()).ok_or(Unread::Bad("DHCPv6 is damaged"))?;
            let lease = address.map(|address| (client, IpAddr::from(address))).filter(is_for_a_host);
            Ok(Told::DhcpServer { id, address: single(source.into()), lease })
        }
        _ => Err(Unread::Other),
    }
}

fn is_for_a_host((client, address): &(HostId, IpAddr)) -> bool {
    is_of_a_host(*client) && is_address_of_a_host(address)
}

fn single(address: IpAddr) -> Option<IpAddr> {
    Some(address).filter(is_address_of_a_host)
}

#[cfg(test)]
mod tests;
