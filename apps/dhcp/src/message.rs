//! DHCPv4 messages in frames (RFC 2131, RFC 2132): read what a client asks, write what the server answers.
//!
//! In: frames, which any host can have written. Out: requests; frames. It reads no further than the lengths in a frame allow, and decides
//! nothing.

use crate::settings::{DhcpSettings, Pool};
use burnet_sdk::MacAddr;
use etherparse::{LinkExtSlice, LinkSlice, NetSlice, PacketBuilder, SlicedPacket, TransportSlice, VlanId};
use std::net::Ipv4Addr;

/// The port of the server.
pub const SERVER_PORT: u16 = 67;
/// The port of a client.
pub const CLIENT_PORT: u16 = 68;

/// The fixed part of a message, with the cookie before the options.
const FIXED_BYTES: usize = 240;
const COOKIE: [u8; 4] = [99, 130, 83, 99];
const BROADCAST_FLAG: u8 = 0x80;

/// What a client asks for (RFC 2132, 9.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asks {
    /// An offer.
    Discover,
    /// The address that was offered, or the one that it has.
    Request,
    /// Another address: somebody else has the one that it was given.
    Decline,
    /// Nothing more: it gives its address back.
    Release,
    /// Only the settings of the network.
    Inform,
}

/// A request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// What the client asks for.
    pub asks: Asks,
    /// The client.
    pub mac: MacAddr,
    /// Its VLAN.
    pub vlan: Option<u16>,
    /// The number of the transaction.
    pub xid: [u8; 4],
    /// Whether the client can only receive broadcasts.
    pub wants_broadcast: bool,
    /// The address that it has.
    pub has: Option<Ipv4Addr>,
    /// The address that it wants.
    pub wants: Option<Ipv4Addr>,
    /// The server that it has chosen.
    pub server: Option<Ipv4Addr>,
}

/// The kind of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// An offer of an address.
    Offer(Ipv4Addr),
    /// The address is the client's; `None`: only the settings.
    Ack(Option<Ipv4Addr>),
    /// The client must ask for another address.
    Nak,
}

/// Reads a frame. `None`: it is damaged, or no request of a client on this link.
pub fn read(frame: &[u8]) -> Option<Request> {
    let packet = SlicedPacket::from_ethernet(frame).ok()?;
    let LinkSlice::Ethernet2(ethernet) = packet.link? else { return None };
    let vlan = match packet.link_exts.as_slice() {
        [] => None,
        [LinkExtSlice::Vlan(tag)] => Some(tag.vlan_identifier().value()).filter(|vlan| *vlan != 0),
        _ => return None,
    };
    let (Some(NetSlice::Ipv4(_)), Some(TransportSlice::Udp(udp))) = (&packet.net, &packet.transport) else {
        return None;
    };
    if (udp.source_port(), udp.destination_port()) != (CLIENT_PORT, SERVER_PORT) {
        return None;
    }
    let (fixed, options) = udp.payload().split_first_chunk::<FIXED_BYTES>()?;
    let mac = MacAddr(fixed[28..34].try_into().ok()?);
    // A request for another host, or one that a relay has passed on, is not answered.
    let is_own = mac.0 == ethernet.source() && !mac.is_multicast() && fixed[24..28] == [0; 4];
    if fixed[..3] != [1, 1, 6] || fixed[236..] != COOKIE || !is_own {
        return None;
    }
    let [kind] = option(options, 53)?.try_into().ok()?;
    let asks = match kind {
        1 => Asks::Discover,
        3 => Asks::Request,
        4 => Asks::Decline,
        7 => Asks::Release,
        8 => Asks::Inform,
        _ => return None,
    };
    Some(Request {
        asks,
        mac,
        vlan,
        xid: fixed[4..8].try_into().ok()?,
        wants_broadcast: fixed[10] & BROADCAST_FLAG != 0,
        has: address(fixed[12..16].try_into().ok()?),
        wants: option(options, 50).and_then(|bytes| address(bytes.try_into().ok()?)),
        server: option(options, 54).and_then(|bytes| address(bytes.try_into().ok()?)),
    })
}

fn address(bytes: [u8; 4]) -> Option<Ipv4Addr> {
    Some(Ipv4Addr::from(bytes)).filter(|address| !address.is_unspecified())
}

/// The value of an option. `None`: it is not there, or an option before it is cut off.
fn option(mut options: &[u8], wanted: u8) -> Option<&[u8]> {
    loop {
        let (kind, rest) = options.split_first()?;
        match *kind {
            0 => options = rest,
            255 => return None,
            kind => {
                let (length, rest) = rest.split_first()?;
                let (value, rest) = rest.split_at_checked((*length).into())?;
                if kind == wanted {
                    return Some(value);
                }
                options = rest;
            }
        }
    }
}

/// The frame of an answer.
pub fn write(request: &Request, answer: Answer, pool: &Pool, settings: &DhcpSettings) -> Vec<u8> {
    let given = match answer {
        Answer::Offer(address) | Answer::Ack(Some(address)) => Some(address),
        Answer::Ack(None) | Answer::Nak => None,
    };
    let payload = payload(request, answer, given, pool, settings);
    let receiver = request.has.or(given).filter(|_| !request.wants_broadcast && answer != Answer::Nak);
    let (mac, address) = receiver.map_or((MacAddr::BROADCAST, Ipv4Addr::BROADCAST), |it| (request.mac, it));
    let ethernet = PacketBuilder::ethernet2(settings.mac.0, mac.0);
    let (source, destination) = (settings.server.octets(), address.octets());
    let tag = request.vlan.and_then(|vlan| VlanId::try_new(vlan).ok());
    let ip = match tag {
        Some(vlan) => ethernet.single_vlan(vlan).ipv4(source, destination, 64),
        None => ethernet.ipv4(source, destination, 64),
    };
    let mut frame = Vec::with_capacity(400);
    // It cannot fail: a vector has room, and the payload is far below 64 KiB.
    let _ = ip.udp(SERVER_PORT, CLIENT_PORT).write(&mut frame, &payload);
    frame
}

fn payload(
    request: &Request,
    answer: Answer,
    given: Option<Ipv4Addr>,
    pool: &Pool,
    settings: &DhcpSettings,
) -> Vec<u8> {
    let mut message = vec![0; FIXED_BYTES];
    message[..3].copy_from_slice(&[2, 1, 6]);
    message[4..8].copy_from_slice(&request.xid);
    message[10] = if request.wants_broadcast { BROADCAST_FLAG } else { 0 };
    if answer != Answer::Nak {
        message[12..16].copy_from_slice(&request.has.unwrap_or(Ipv4Addr::UNSPECIFIED).octets());
    }
    message[16..20].copy_from_slice(&given.unwrap_or(Ipv4Addr::UNSPECIFIED).octets());
    message[28..34].copy_from_slice(&request.mac.0);
    message[236..240].copy_from_slice(&COOKIE);
    let kind = match answer {
        Answer::Offer(_) => 2,
        Answer::Ack(_) => 5,
        Answer::Nak => 6,
    };
    push(&mut message, 53, &[kind]);
    push(&mut message, 54, &settings.server.octets());
    if answer != Answer::Nak {
        push_network(&mut message, pool, given.is_some());
    }
    message.push(255);
    // Some clients expect the length of BOOTP (RFC 1542, 2.1).
    message.resize(message.len().max(300), 0);
    message
}

fn push_network(message: &mut Vec<u8>, pool: &Pool, is_lease: bool) {
    if is_lease {
        push(message, 51, &pool.lease_s.to_be_bytes());
    }
    push(message, 1, &pool.mask.octets());
    if let Some(gateway) = pool.gateway {
        push(message, 3, &gateway.octets());
    }
    if !pool.dns.is_empty() {
        let servers: Vec<u8> = pool.dns.iter().flat_map(|server| server.octets()).collect();
        push(message, 6, &servers);
    }
    if let Some(domain) = &pool.domain {
        push(message, 15, domain.as_bytes());
    }
}

/// Appends an option. Its length was checked with the settings.
fn push(message: &mut Vec<u8>, kind: u8, value: &[u8]) {
    message.extend([kind, u8::try_from(value.len()).unwrap_or(u8::MAX)]);
    message.extend(&value[..value.len().min(usize::from(u8::MAX))]);
}

/// The answer to an ARP request for the server's address. `None`: the frame is no such request.
pub fn answer_arp(frame: &[u8], settings: &DhcpSettings) -> Option<Vec<u8>> {
    let packet = SlicedPacket::from_ethernet(frame).ok()?;
    let Some(NetSlice::Arp(arp)) = &packet.net else { return None };
    let asked = arp.operation() == etherparse::ArpOperation::REQUEST && arp.proto_addr_size() == 4;
    if !asked || arp.hw_addr_size() != 6 || arp.target_protocol_addr() != settings.server.octets() {
        return None;
    }
    let sender = <[u8; 6]>::try_from(arp.sender_hw_addr()).ok()?;
    // The addresses, the tag if there is one, and the EtherType are those of the request.
    let header =
        frame.len() - packet.link_exts.iter().fold(frame.len() - 14, |rest, tag| rest - tag.header_len());
    let mut reply = frame.get(..header)?.to_vec();
    reply[..6].copy_from_slice(&sender);
    reply[6..12].copy_from_slice(&settings.mac.0);
    reply.extend([0, 1, 8, 0, 6, 4, 0, 2]);
    reply.extend(settings.mac.0);
    reply.extend(settings.server.octets());
    reply.extend(sender);
    reply.extend(arp.sender_protocol_addr());
    Some(reply)
}

#[cfg(test)]
pub(crate) mod tests;
