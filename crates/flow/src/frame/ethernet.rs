//! Ethernet, VLAN tags, MPLS, provider backbone bridges, ARP.

use super::{Bytes, FrameFields, ipv4, ipv6};
use crate::field::Field;

/// `OFP_DL_TYPE_NOT_ETH_TYPE`: an 802.3 frame whose payload has no EtherType.
const NOT_AN_ETHER_TYPE: u16 = 0x05ff;

/// A type field below this is the length of an 802.3 frame.
const SMALLEST_ETHER_TYPE: u16 = 0x0600;

/// `OFPVID_PRESENT`.
const VLAN_PRESENT: u16 = 0x1000;

/// Reads a frame; `None` if it ends too early or has an invalid part.
pub(super) fn read(frame: &[u8], fields: &mut FrameFields) -> Option<()> {
    let mut bytes = Bytes { rest: frame };
    fields.set(Field::EthDst, bytes.take_address()?);
    fields.set(Field::EthSrc, bytes.take_address()?);
    let outer = bytes.take_u16()?;
    let inner = read_tags(outer, &mut bytes, fields)?;
    let eth_type = if inner < SMALLEST_ETHER_TYPE { read_llc(&mut bytes) } else { inner };
    fields.set(Field::EthType, eth_type);
    match eth_type {
        0x0800 => ipv4::read(bytes, fields),
        0x86dd => ipv6::read(bytes, fields),
        0x0806 | 0x8035 => read_arp(bytes, fields),
        0x8847 | 0x8848 => read_mpls(bytes, fields),
        0x88e7 => read_pbb(bytes, fields),
        _ => Some(()),
    }
}

/// The outermost tag's id and priority; the type behind all tags.
fn read_tags(outer: u16, bytes: &mut Bytes<'_>, fields: &mut FrameFields) -> Option<u16> {
    let mut eth_type = outer;
    let mut is_outermost = true;
    while matches!(eth_type, 0x8100 | 0x88a8) {
        let tci = bytes.take_u16()?;
        if is_outermost {
            fields.set(Field::VlanVid, tci & 0x0fff | VLAN_PRESENT);
            fields.set(Field::VlanPcp, tci >> 13);
        }
        is_outermost = false;
        eth_type = bytes.take_u16()?;
    }
    if is_outermost {
        fields.set(Field::VlanVid, 0u8);
    }
    Some(eth_type)
}

/// The EtherType of an 802.3 frame: that of the SNAP header, if the organisation is all zeros.
fn read_llc(bytes: &mut Bytes<'_>) -> u16 {
    match bytes.take::<6>() {
        Some([0xaa, 0xaa, 0x03, 0, 0, 0]) => {
            bytes.take_u16().filter(|inner| *inner >= SMALLEST_ETHER_TYPE).unwrap_or(NOT_AN_ETHER_TYPE)
        }
        _ => NOT_AN_ETHER_TYPE,
    }
}

/// ARP for IPv4 over Ethernet (RFC 826); other kinds have no fields.
fn read_arp(mut bytes: Bytes<'_>, fields: &mut FrameFields) -> Option<()> {
    if bytes.take::<6>()? != [0, 1, 8, 0, 6, 4] {
        return None;
    }
    fields.set(Field::ArpOp, bytes.take_u16()?);
    fields.set(Field::ArpSha, bytes.take_address()?);
    fields.set(Field::ArpSpa, bytes.take_u32()?);
    fields.set(Field::ArpTha, bytes.take_address()?);
    fields.set(Field::ArpTpa, bytes.take_u32()?);
    Some(())
}

/// The outermost label (RFC 3032): 20 bits of label, 3 of traffic class, 1 for bottom of stack, 8 of time-to-live.
fn read_mpls(mut bytes: Bytes<'_>, fields: &mut FrameFields) -> Option<()> {
    let entry = bytes.take_u32()?;
    fields.set(Field::MplsLabel, entry >> 12);
    fields.set(Field::MplsTc, entry >> 9 & 7);
    fields.set(Field::MplsBos, entry >> 8 & 1);
    Some(())
}

/// The service's number in an I-TAG (IEEE 802.1ah): one byte of flags, three of number.
fn read_pbb(mut bytes: Bytes<'_>, fields: &mut FrameFields) -> Option<()> {
    fields.set(Field::PbbIsid, bytes.take_u32()? & 0x00ff_ffff);
    Some(())
}
