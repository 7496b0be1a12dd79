//! Reads the frequent messages in place: packet-in, packet-out, flow mod, flow removed.
//!
//! ```text
//!   bytes of one message ──> read: judged once, whole ──> numbers as fields, lists as slices of the same bytes
//! ```
//!
//! A view accepts exactly what [`crate::Message::decode`] accepts, returns the same errors, and serves both versions.
//! It copies no list. For a valid message it allocates nothing, except for a vendor action of 1.0 and a set-field of a
//! field that 1.3 does not define.

use flow::{BadInput, Field, PortNo};

use crate::envelope::{not_spoken, split};
use crate::error::{BAD_MATCH_FIELD, BAD_TYPE, bad};
use crate::header::Header;
use crate::message::{FlowModFields, FlowRemoved};
use crate::v10::matching::WireMatch;
use crate::v13::check::{check_actions, check_instructions, check_match};
use crate::version::Version;
use crate::wire::Reader;
use crate::{v10, v13};

/// The header of the port in a canonical match: class OPENFLOW_BASIC, field in_port, no mask, four bytes.
const IN_PORT_HEADER: [u8; 4] = [0x80, 0x00, 0x00, 0x04];

/// Whether the message is of 1.0. Versions other than 1.0 and 1.3, and another type, are errors.
#[inline]
fn is_v10(header: Header, kind: u8) -> Result<bool, BadInput> {
    if !header.version.is_spoken() {
        return Err(not_spoken(header.version));
    }
    if header.kind != kind {
        let message = format!("type {} where {kind} was expected", header.kind);
        return Err(bad(1, "type", BAD_TYPE, message));
    }
    Ok(header.version == Version::V1_0)
}

/// The bytes of a match.
#[derive(Clone, Copy, Debug)]
enum MatchBytes<'a> {
    Tlvs(&'a [u8]),
    InPort([u8; 8]),
    V10(WireMatch),
}

impl MatchBytes<'_> {
    /// Appends canonical TLVs.
    fn write(&self, out: &mut Vec<u8>) {
        match self {
            MatchBytes::Tlvs(tlvs) => out.extend_from_slice(tlvs),
            MatchBytes::InPort(tlv) => out.extend_from_slice(tlv),
            MatchBytes::V10(wire) => v10::matching::write_as_tlvs(wire, out),
        }
    }
}

#[inline]
fn in_port_tlv(port: PortNo) -> [u8; 8] {
    let ([a, b, c, d], [e, f, g, h]) = (IN_PORT_HEADER, port.0.to_be_bytes());
    [a, b, c, d, e, f, g, h]
}

/// OFPT_PACKET_IN (1.3.5, 7.4.1; 1.0, 5.4.1) in place.
///
/// ```
/// use flow::PortNo;
/// use openflow::view::PacketInView;
/// let bytes = [1, 10, 0, 20, 0, 0, 0, 0, 255, 255, 255, 255, 0, 2, 0, 3, 0, 0, 0xca, 0xfe];
/// let packet = PacketInView::read(&bytes).unwrap();
/// assert_eq!((packet.in_port, packet.data), (PortNo(3), &bytes[18..]));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct PacketInView<'a> {
    /// The version in which it came.
    pub version: Version,
    /// The transaction id.
    pub xid: u32,
    /// The packet's buffer in the switch, or [`crate::message::NO_BUFFER`].
    pub buffer_id: u32,
    /// The packet's length on the wire.
    pub total_len: u16,
    /// The reason: 0 no match, 1 action, 2 invalid time-to-live.
    pub reason: u8,
    /// The table of the rule. 0 in 1.0.
    pub table_id: u8,
    /// The cookie of the rule. All ones in 1.0.
    pub cookie: u64,
    /// The input port of the packet.
    pub in_port: PortNo,
    /// The frame, or its beginning.
    pub data: &'a [u8],
    matching: MatchBytes<'a>,
}

impl<'a> PacketInView<'a> {
    /// Reads a packet-in of this version as most are, with one look at its length; `None`: [`Self::read`] reads it, or says what is wrong with it.
    #[inline(always)]
    pub fn read_usual(version: Version, bytes: &'a [u8]) -> Option<Self> {
        match version {
            Version::V1_0 => read_whole_v10(bytes),
            _ => read_usual_v13(bytes),
        }
    }

    /// Reads one packet-in.
    ///
    /// # Errors
    /// As [`crate::Message::decode`], and if the match of 1.3 has no `in_port` (OFPBMC_BAD_FIELD).
    #[inline]
    pub fn read(bytes: &'a [u8]) -> Result<Self, BadInput> {
        if let Some(view) = read_whole_v10(bytes).or_else(|| read_usual_v13(bytes)) {
            return Ok(view);
        }
        let (header, mut body) = split(bytes)?;
        if is_v10(header, v10::kind::PACKET_IN)? {
            read_v10(header, body)
        } else {
            read_v13(header, &mut body)
        }
    }

    /// The packet's match as canonical TLVs: all of it in 1.3, `in_port` in 1.0.
    #[inline]
    pub fn match_tlvs(&self) -> &[u8] {
        match &self.matching {
            MatchBytes::Tlvs(tlvs) => tlvs,
            MatchBytes::InPort(tlv) => tlv,
            MatchBytes::V10(_) => &[],
        }
    }
}

/// Reads a valid packet-in of 1.0 with one check of its length. Any other is read field by field, which finds the
/// fault.
#[inline(always)]
fn read_whole_v10(bytes: &[u8]) -> Option<PacketInView<'_>> {
    let (fixed, data) = bytes.split_first_chunk::<18>()?;
    let [version, kind, l0, l1, x0, x1, x2, x3, b0, b1, b2, b3, t0, t1, p0, p1, reason, _] = *fixed;
    let expected = [Version::V1_0.0, v10::kind::PACKET_IN];
    if [version, kind] != expected || usize::from(u16::from_be_bytes([l0, l1])) != bytes.len() {
        return None;
    }
    let in_port = PortNo::from_v10(u16::from_be_bytes([p0, p1]));
    Some(PacketInView {
        version: Version::V1_0,
        xid: u32::from_be_bytes([x0, x1, x2, x3]),
        buffer_id: u32::from_be_bytes([b0, b1, b2, b3]),
        total_len: u16::from_be_bytes([t0, t1]),
        reason,
        table_id: 0,
        cookie: v10::NO_COOKIE,
        in_port,
        data,
        matching: MatchBytes::InPort(in_port_tlv(in_port)),
    })
}

/// The start of an `ofp_match` with only the port: type OXM, length 12, and the header of `in_port`.
const MATCH_OF_A_PORT: [u8; 8] = [0x00, 0x01, 0x00, 0x0c, 0x80, 0x00, 0x00, 0x04];

/// Reads a packet-in of 1.3 whose match has only the port, as most switches send it. It needs one check of the length
/// and one of the match. Any other is read field by field.
#[inline(always)]
fn read_usual_v13(bytes: &[u8]) -> Option<PacketInView<'_>> {
    let (fixed, behind) = bytes.split_first_chunk::<24>()?;
    let (matching, behind) = behind.split_first_chunk::<16>()?;
    // Two bytes of padding put the frame's IP header on a boundary of four.
    let (_, data) = behind.split_first_chunk::<2>()?;
    let [version, kind, l0, l1, x0, x1, x2, x3, b0, b1, b2, b3, t0, t1, reason, table_id, cookie @ ..] =
        *fixed;
    let [m0, m1, m2, m3, m4, m5, m6, m7, p0, p1, p2, p3, _, _, _, _] = *matching;
    let expected = [Version::V1_3.0, v13::kind::PACKET_IN];
    let whole = [version, kind] == expected && usize::from(u16::from_be_bytes([l0, l1])) == bytes.len();
    if !whole || [m0, m1, m2, m3, m4, m5, m6, m7] != MATCH_OF_A_PORT {
        return None;
    }
    let in_port = PortNo(u32::from_be_bytes([p0, p1, p2, p3]));
    Some(PacketInView {
        version: Version::V1_3,
        xid: u32::from_be_bytes([x0, x1, x2, x3]),
        buffer_id: u32::from_be_bytes([b0, b1, b2, b3]),
        total_len: u16::from_be_bytes([t0, t1]),
        reason,
        table_id,
        cookie: u64::from_be_bytes(cookie),
        in_port,
        data,
        matching: MatchBytes::InPort(in_port_tlv(in_port)),
    })
}

#[inline]
fn read_v10<'a>(header: Header, mut body: Reader<'a>) -> Result<PacketInView<'a>, BadInput> {
    let buffer_id = body.u32("buffer_id")?;
    let total_len = body.u16("total_len")?;
    let in_port = PortNo::from_v10(body.u16("in_port")?);
    let reason = body.u8("reason")?;
    body.skip(1)?;
    Ok(PacketInView {
        version: header.version,
        xid: header.xid,
        buffer_id,
        total_len,
        reason,
        table_id: 0,
        cookie: v10::NO_COOKIE,
        in_port,
        data: body.rest(),
        matching: MatchBytes::InPort(in_port_tlv(in_port)),
    })
}

fn read_v13<'a>(header: Header, body: &mut Reader<'a>) -> Result<PacketInView<'a>, BadInput> {
    let raw = v13::take_packet_in(body)?;
    let in_port = check_match(raw.tlvs, raw.tlvs_offset, Field::InPort)?;
    let Some(in_port) = in_port.and_then(|port| u32::try_from(port).ok()) else {
        return Err(bad(
            raw.tlvs_offset,
            "in_port",
            BAD_MATCH_FIELD,
            "a packet-in says by which port it came",
        ));
    };
    Ok(PacketInView {
        version: header.version,
        xid: header.xid,
        buffer_id: raw.buffer_id,
        total_len: raw.total_len,
        reason: raw.reason,
        table_id: raw.table_id,
        cookie: raw.cookie,
        in_port: PortNo(in_port),
        data: raw.data,
        matching: MatchBytes::Tlvs(raw.tlvs),
    })
}

/// OFPT_PACKET_OUT (1.3.5, 7.3.7; 1.0, 5.3.6) in place.
#[derive(Clone, Copy, Debug)]
pub struct PacketOutView<'a> {
    /// The version of the message and of its actions.
    pub version: Version,
    /// The transaction id.
    pub xid: u32,
    /// The packet's buffer in the switch, or [`crate::message::NO_BUFFER`].
    pub buffer_id: u32,
    /// The input port of the packet.
    pub in_port: PortNo,
    /// The actions' bytes: canonical in 1.3, 1.0's own in 1.0.
    pub actions: &'a [u8],
    /// The frame, if there is no buffer.
    pub data: &'a [u8],
}

impl<'a> PacketOutView<'a> {
    /// Reads one packet-out.
    ///
    /// # Errors
    /// As [`crate::Message::decode`].
    pub fn read(bytes: &'a [u8]) -> Result<Self, BadInput> {
        let (header, mut body) = split(bytes)?;
        let raw = if is_v10(header, v10::kind::PACKET_OUT)? {
            let raw = v10::take_packet_out(&mut body)?;
            v10::action::check(Reader::new(raw.actions, raw.actions_offset))?;
            raw
        } else {
            let raw = v13::take_packet_out(&mut body)?;
            check_actions(raw.actions, raw.actions_offset)?;
            raw
        };
        Ok(PacketOutView {
            version: header.version,
            xid: header.xid,
            buffer_id: raw.buffer_id,
            in_port: raw.in_port,
            actions: raw.actions,
            data: raw.data,
        })
    }
}

/// OFPT_FLOW_MOD (1.3.5, 7.3.4.1; 1.0, 5.3.3) in place.
#[derive(Clone, Copy, Debug)]
pub struct FlowModView<'a> {
    /// The version of the message and of its instructions.
    pub version: Version,
    /// The transaction id.
    pub xid: u32,
    /// The fields without match and instructions. The flags are those of the version.
    pub fields: FlowModFields,
    /// 1.3: the instructions' bytes, canonical. 1.0: the actions' bytes, 1.0's own.
    pub instructions: &'a [u8],
    matching: MatchBytes<'a>,
}

impl<'a> FlowModView<'a> {
    /// Reads one flow mod.
    ///
    /// # Errors
    /// As [`crate::Message::decode`].
    pub fn read(bytes: &'a [u8]) -> Result<Self, BadInput> {
        let (header, mut body) = split(bytes)?;
        let (matching, fields, instructions);
        if is_v10(header, v10::kind::FLOW_MOD)? {
            let wire = WireMatch::read(&mut body)?;
            let read = v10::rule::read_flow_mod_fields(&mut body)?;
            fields = FlowModFields { priority: wire.rank(read.priority), ..read };
            matching = MatchBytes::V10(wire);
            v10::action::check(body.clone())?;
            instructions = body.rest();
        } else {
            fields = v13::rule::read_flow_mod_fields(&mut body)?;
            matching = MatchBytes::Tlvs(take_checked_tlvs(&mut body)?);
            let offset = body.offset();
            instructions = body.rest();
            check_instructions(instructions, offset)?;
        }
        Ok(FlowModView { version: header.version, xid: header.xid, fields, instructions, matching })
    }

    /// Appends the match as canonical TLVs.
    pub fn write_match_tlvs(&self, out: &mut Vec<u8>) {
        self.matching.write(out);
    }
}

fn take_checked_tlvs<'a>(body: &mut Reader<'a>) -> Result<&'a [u8], BadInput> {
    let (tlvs, offset) = v13::matching::take_tlvs(body)?;
    check_match(tlvs, offset, Field::InPort)?;
    Ok(tlvs)
}

/// OFPT_FLOW_REMOVED (1.3.5, 7.4.2; 1.0, 5.4.3) in place.
#[derive(Clone, Debug)]
pub struct FlowRemovedView<'a> {
    /// The version in which it came.
    pub version: Version,
    /// The transaction id.
    pub xid: u32,
    /// Its fields. The match is empty here; [`FlowRemovedView::write_match_tlvs`] reads it.
    pub removed: FlowRemoved,
    matching: MatchBytes<'a>,
}

impl<'a> FlowRemovedView<'a> {
    /// Reads one flow removed.
    ///
    /// # Errors
    /// As [`crate::Message::decode`].
    pub fn read(bytes: &'a [u8]) -> Result<Self, BadInput> {
        let (header, mut body) = split(bytes)?;
        let (matching, removed);
        if is_v10(header, v10::kind::FLOW_REMOVED)? {
            let wire = WireMatch::read(&mut body)?;
            let read = v10::rule::read_flow_removed_counters(&mut body)?;
            removed = FlowRemoved { priority: wire.rank(read.priority), ..read };
            matching = MatchBytes::V10(wire);
        } else {
            removed = v13::rule::read_flow_removed_counters(&mut body)?;
            matching = MatchBytes::Tlvs(take_checked_tlvs(&mut body)?);
        }
        body.end()?;
        Ok(FlowRemovedView { version: header.version, xid: header.xid, removed, matching })
    }

    /// Appends the match as canonical TLVs.
    pub fn write_match_tlvs(&self, out: &mut Vec<u8>) {
        self.matching.write(out);
    }
}
