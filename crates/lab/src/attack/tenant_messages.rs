//! Messages that a tenant's controller could send, in OpenFlow 1.0 or 1.3, and the frames in them.
//!
//! In: what a message says. Out: its bytes. A message that a version does not have is left out. It opens no connection.

use flow::{Action, MacAddr, PortNo};
use openflow::message::{
    Bucket, FlowMod, FlowModFields, GROUP_ANY, GROUP_TYPE_INDIRECT, GroupMod, MeterBand, MeterBandKind,
    MeterMod, NO_BUFFER, PacketOut, PortMod,
};
use openflow::{Body, Message, Version};

pub(super) fn flow_mod(matching: &str, instructions: &str) -> FlowMod {
    // Our own constants, which a test reads. One that could not be read would be no attack.
    let matching = flow::text::parse_match(matching).unwrap_or_else(|_| flow::Match::any());
    let instructions = flow::text::parse_instructions(instructions).unwrap_or_default();
    FlowModFields::default().with(matching, instructions)
}

pub(super) fn rule(matching: &str, instructions: &str) -> Body {
    Body::FlowMod(flow_mod(matching, instructions))
}

pub(super) fn group(command: u16, group_id: u32) -> Body {
    let bucket = Bucket {
        weight: 0,
        watch_port: PortNo::ANY,
        watch_group: GROUP_ANY,
        actions: vec![Action::output(PortNo(1))],
    };
    let buckets = if command == 2 { Vec::new() } else { vec![bucket] };
    Body::GroupMod(GroupMod { command, group_type: GROUP_TYPE_INDIRECT, group_id, buckets })
}

pub(super) fn meter(command: u16, meter_id: u32) -> Body {
    // In kb/s (1.3.5, 7.3.4.4).
    let flags = 1;
    let bands = vec![MeterBand { rate: 1, burst_size: 0, kind: MeterBandKind::Drop }];
    Body::MeterMod(MeterMod { command, flags, meter_id, bands })
}

pub(super) fn port_down(number: u32) -> Body {
    let config = 1;
    Body::PortMod(PortMod {
        port_no: PortNo(number),
        hw_addr: MacAddr([0; 6]),
        config,
        mask: config,
        advertise: 0,
    })
}

pub(super) fn packet_out(frame: &[u8]) -> PacketOut {
    PacketOut {
        buffer_id: NO_BUFFER,
        in_port: PortNo::CONTROLLER,
        actions: vec![Action::output(PortNo(1)), Action::output(PortNo(2))],
        data: frame.to_vec(),
    }
}

/// A frame with this source address and EtherType, to everybody.
pub(super) fn frame(source: [u8; 6], ethertype: u16, payload: &[u8]) -> Vec<u8> {
    let mut frame = [&[0xff; 6][..], &source, &ethertype.to_be_bytes(), payload].concat();
    frame.resize(60, 0);
    frame
}

/// A frame of the slice.
pub(super) fn own() -> Vec<u8> {
    frame([2, 0, 0, 0, 0, 0xef], 0x88b5, &[])
}

/// One that is none of the slice's.
pub(super) fn ipv4() -> Vec<u8> {
    frame([2, 0, 0, 0, 0, 1], 0x0800, &[0x45])
}

/// A frame of the slice in so many tags, the outer one first.
pub(super) fn tagged(frame: &[u8], tags: &[(u16, u16)]) -> Vec<u8> {
    let (addresses, rest) = frame.split_at(12);
    let tags = tags.iter().flat_map(|(kind, vid)| [kind.to_be_bytes(), vid.to_be_bytes()].concat());
    addresses.iter().copied().chain(tags).chain(rest.iter().copied()).collect()
}

/// An ARP request: it says that the sender has both addresses, and asks for the target (RFC 826).
pub(super) fn arp(ethernet: [u8; 6], sender: [u8; 4], target: [u8; 4]) -> Vec<u8> {
    let fixed = [0, 1, 8, 0, 6, 4, 0, 1];
    frame(ethernet, 0x0806, &[&fixed[..], &ethernet, &sender, &[0; 6], &target].concat())
}

/// An IPv4 packet without a payload (RFC 791), with a checksum.
pub(super) fn ipv4_between(sender: [u8; 4], target: [u8; 4]) -> Vec<u8> {
    let mut header = [0x45, 0, 0, 20, 0, 0, 0, 0, 64, 253, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    header[12..16].copy_from_slice(&sender);
    header[16..].copy_from_slice(&target);
    let sum: u32 = header.chunks_exact(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1])).sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    header[10..12].copy_from_slice(&(!(folded as u16)).to_be_bytes());
    frame([2, 0, 0, 0, 0, 0xef], 0x0800, &header)
}

/// A probe for links that says it comes from a switch of others (IEEE 802.1AB, 8.5).
pub(super) fn lldp(switch: u8) -> Vec<u8> {
    let chassis = [2, 7, 4, 0, 0, 0, 0, 0, switch];
    let payload = [&chassis[..], &[4, 3, 2, 0, 1], &[6, 2, 0, 120], &[0, 0]].concat();
    frame([2, 0, 0, 0, 0, 0xef], 0x88cc, &payload)
}

/// The messages with numbers from this one on, without those that the version does not have.
pub(super) fn numbered(version: Version, first_xid: u32, bodies: Vec<Body>) -> Vec<Vec<u8>> {
    let there = bodies.into_iter().filter(|body| written(version, 0, body.clone()).is_some());
    (first_xid..).zip(there).filter_map(|(xid, body)| written(version, xid, body)).collect()
}

/// The bytes of a message. None: the version does not have it.
pub(super) fn written(version: Version, xid: u32, body: Body) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    Message { version, xid, body }.encode(&mut bytes).ok().map(|()| bytes)
}
