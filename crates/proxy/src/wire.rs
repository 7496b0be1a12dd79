//! Changes of messages at the bytes themselves: types, hellos, packet-ins that are cut, packets for packet-outs.
//!
//! ```text
//!   a message ──> a copy with another buffer id, another length, other data
//! ```
//!
//! In: whole messages whose header was read. Out: bytes, appended. It decodes no more than it changes, and decides nothing.

use flow::PortNo;
use openflow::message::NO_BUFFER;
use openflow::{HEADER_LEN, Header, MAX_MESSAGE_LEN, Version};

/// `ofp_type`: the numbers that both versions have.
pub(crate) mod kind {
    pub(crate) const HELLO: u8 = 0;
    pub(crate) const ERROR: u8 = 1;
    pub(crate) const ECHO_REQUEST: u8 = 2;
    pub(crate) const ECHO_REPLY: u8 = 3;
    pub(crate) const EXPERIMENTER: u8 = 4;
    pub(crate) const FEATURES_REPLY: u8 = 6;
    pub(crate) const GET_CONFIG_REPLY: u8 = 8;
    pub(crate) const SET_CONFIG: u8 = 9;
    pub(crate) const PACKET_IN: u8 = 10;
    pub(crate) const FLOW_REMOVED: u8 = 11;
    pub(crate) const PACKET_OUT: u8 = 13;
    pub(crate) const FLOW_MOD: u8 = 14;
    /// 1.3 only.
    pub(crate) const METER_MOD: u8 = 29;
}

/// What differs in number between the versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Numbered {
    StatisticsRequest,
    StatisticsReply,
    BarrierRequest,
    BarrierReply,
}

/// The type of a message, if it is one whose number differs.
pub(crate) fn numbered(version: Version, kind: u8) -> Option<Numbered> {
    match (version, kind) {
        (Version::V1_0, 16) | (Version::V1_3, 18) => Some(Numbered::StatisticsRequest),
        (Version::V1_0, 17) | (Version::V1_3, 19) => Some(Numbered::StatisticsReply),
        (Version::V1_0, 18) | (Version::V1_3, 20) => Some(Numbered::BarrierRequest),
        (Version::V1_0, 19) | (Version::V1_3, 21) => Some(Numbered::BarrierReply),
        _ => None,
    }
}

/// Where things are, the same in both versions.
const LENGTH: usize = 2;
const XID: usize = 4;
/// The data of an error come after its type and code, and after the numbers of an experimenter: OFPET_EXPERIMENTER has one more word (1.3.5,
/// 7.5.4), and Nicira's errors in 1.0 have two.
const ERROR_DATA: usize = 12;
const EXPERIMENTER_ERROR: u16 = 0xffff;
const NICIRA_ERROR: u16 = 0xb0c2;
const BUFFER_ID: usize = 8;
const N_BUFFERS: usize = 16;
const MISS_SEND_LEN: usize = 10;
/// The versions of the bitmap of a hello that may be agreed on.
const BITMAP: u32 = 1 << Version::V1_0.0 | 1 << Version::V1_3.0;

fn put<const N: usize>(message: &mut [u8], at: usize, bytes: [u8; N]) {
    if let Some(place) = message.get_mut(at..at + N) {
        place.copy_from_slice(&bytes);
    }
}

fn word(message: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(*message.get(at..)?.first_chunk()?))
}

/// The two words after the header of an experimenter message: the experimenter, and its own type.
pub(crate) fn experimenter(message: &[u8]) -> Option<(u32, u32)> {
    Some((word(message, HEADER_LEN)?, word(message, HEADER_LEN + 4)?))
}

/// The type of a statistics message.
pub(crate) fn statistics_type(message: &[u8]) -> Option<u16> {
    Some(u16::from_be_bytes(*message.get(HEADER_LEN..)?.first_chunk()?))
}

/// Appends a hello that offers only the versions that the proxy knows. A hello without such a version stays as it is: the other side says
/// what is wrong.
pub(crate) fn hello(message: &[u8], out: &mut Vec<u8>) {
    let start = out.len();
    out.extend_from_slice(message);
    let hello = &mut out[start..];
    let mut at = HEADER_LEN;
    while let Some(element) = word(hello, at) {
        let (kind, length) = (element >> 16, (element & 0xffff) as usize);
        if length < 4 {
            break;
        }
        if let (1, Some(bitmap @ 1..)) =
            (kind, word(hello, at + 4).filter(|_| length >= 8).map(|it| it & BITMAP))
        {
            put(hello, at + 4, bitmap.to_be_bytes());
            // The header has the highest offered version (1.3.5, 7.5.1).
            hello[0] = bitmap.ilog2() as u8;
            return;
        }
        at += length.next_multiple_of(8);
    }
    // Without a bitmap it offers all versions up to that of its header.
    hello[0] = hello[0].min(Version::V1_3.0);
}

/// A copy of a message with another word in it.
fn with<const N: usize>(message: &[u8], at: usize, bytes: [u8; N], out: &mut Vec<u8>) {
    let start = out.len();
    out.extend_from_slice(message);
    put(&mut out[start..], at, bytes);
}

/// Appends a features reply with another number of buffers.
pub(crate) fn with_buffers(features: &[u8], buffers: u32, out: &mut Vec<u8>) {
    with(features, N_BUFFERS, buffers.to_be_bytes(), out);
}

/// Appends a set-config or get-config reply with another length for packet-ins.
pub(crate) fn with_miss_send_len(config: &[u8], length: u16, out: &mut Vec<u8>) {
    with(config, MISS_SEND_LEN, length.to_be_bytes(), out);
}

/// The length for packet-ins in a set-config.
pub(crate) fn miss_send_len(config: &[u8]) -> Option<u16> {
    Some(u16::from_be_bytes(*config.get(MISS_SEND_LEN..)?.first_chunk()?))
}

/// Appends an error with the same type and code about another message: that with this transaction id and these first bytes.
pub(crate) fn error_about(error: &[u8], xid: u32, beginning: &[u8], out: &mut Vec<u8>) {
    let start = out.len();
    let data_at = match error.get(HEADER_LEN..).and_then(|kind| kind.first_chunk()) {
        Some(kind) if u16::from_be_bytes(*kind) == EXPERIMENTER_ERROR => ERROR_DATA + 4,
        Some(kind) if u16::from_be_bytes(*kind) == NICIRA_ERROR => ERROR_DATA + 8,
        _ => ERROR_DATA,
    };
    out.extend_from_slice(error.get(..data_at).unwrap_or(error));
    out.extend_from_slice(beginning);
    let about = &mut out[start..];
    // A header and the beginning of a message.
    put(about, LENGTH, (about.len() as u16).to_be_bytes());
    put(about, XID, xid.to_be_bytes());
}

/// Appends a packet-in of which the data ends at `end`, with this buffer id.
pub(crate) fn cut_packet_in(packet_in: &[u8], end: usize, buffer: u32, out: &mut Vec<u8>) {
    let start = out.len();
    out.extend_from_slice(packet_in.get(..end).unwrap_or(packet_in));
    let cut = &mut out[start..];
    // No longer than the whole message, whose length has 16 bits.
    put(cut, LENGTH, (cut.len() as u16).to_be_bytes());
    put(cut, BUFFER_ID, buffer.to_be_bytes());
}

/// Appends a packet-out with the packet itself in place of a buffer id. Returns whether it fits into a message.
pub(crate) fn packet_out_with(packet_out: &[u8], packet: &[u8], out: &mut Vec<u8>) -> bool {
    let Some(length) = u16::try_from(packet_out.len() + packet.len()).ok() else { return false };
    let start = out.len();
    out.extend_from_slice(packet_out);
    out.extend_from_slice(packet);
    put(&mut out[start..], LENGTH, length.to_be_bytes());
    put(&mut out[start..], BUFFER_ID, NO_BUFFER.to_be_bytes());
    true
}

/// The action that sends a packet through the tables: OFPAT_OUTPUT to OFPP_TABLE (1.0.0, 5.2.4; 1.3.5, 7.2.5).
pub(crate) fn to_tables(version: Version) -> &'static [u8] {
    match version {
        Version::V1_0 => &[0, 0, 0, 8, 0xff, 0xf9, 0, 0],
        _ => &[0, 0, 0, 16, 0xff, 0xff, 0xff, 0xf9, 0, 0, 0, 0, 0, 0, 0, 0],
    }
}

/// Appends a packet-out with the actions of a flow mod. In 1.0 these are its own bytes; in 1.3, canonical actions have the same form as
/// in the flow mod. Returns whether it fits into a message.
pub(crate) fn packet_out(
    version: Version,
    xid: u32,
    in_port: PortNo,
    actions: &[u8],
    packet: &[u8],
    out: &mut Vec<u8>,
) -> bool {
    let ports = if version == Version::V1_0 { 2 } else { 4 };
    let padding = if version == Version::V1_0 { 0 } else { 6 };
    let length = HEADER_LEN + 4 + ports + 2 + padding + actions.len() + packet.len();
    if length > MAX_MESSAGE_LEN {
        return false;
    }
    let (length, actions_length) = (length as u16, actions.len() as u16);
    out.extend_from_slice(&Header { version, kind: kind::PACKET_OUT, length, xid }.to_bytes());
    out.extend_from_slice(&NO_BUFFER.to_be_bytes());
    if version == Version::V1_0 {
        // OFPP_NONE for a port that 1.0 has no number for.
        out.extend_from_slice(&in_port.to_v10().unwrap_or(0xffff).to_be_bytes());
    } else {
        out.extend_from_slice(&in_port.0.to_be_bytes());
    }
    out.extend_from_slice(&actions_length.to_be_bytes());
    out.resize(out.len() + padding, 0);
    out.extend_from_slice(actions);
    out.extend_from_slice(packet);
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use openflow::message::{ErrorMessage, Hello, HelloElement, PacketOut};
    use openflow::{Body, Message};

    fn encoded(version: Version, body: Body) -> Vec<u8> {
        let mut bytes = Vec::new();
        Message { version, xid: 7, body }.encode(&mut bytes).unwrap();
        bytes
    }

    fn check_hello(header: u8, bitmap: Option<u32>, expected: (u8, Option<u32>)) {
        let elements = bitmap.map(|bits| HelloElement::VersionBitmap(vec![bits])).into_iter().collect();
        let bytes = encoded(Version(header), Body::Hello(Hello { elements }));
        let mut out = Vec::new();
        hello(&bytes, &mut out);
        let read = Message::decode(&out).unwrap();
        let Body::Hello(Hello { elements }) = read.body else { panic!("a hello") };
        let bits = elements.iter().map(|element| match element {
            HelloElement::VersionBitmap(words) => words[0],
            HelloElement::Unknown { .. } => panic!("a bitmap"),
        });
        assert_eq!((read.version.0, bits.max()), expected);
    }

    #[test]
    fn a_hello_offers_only_what_the_proxy_knows() {
        check_hello(6, Some(0x7e), (4, Some(0x12)));
        check_hello(4, Some(0x12), (4, Some(0x12)));
        // A reader of 1.0 does not look at elements.
        check_hello(6, Some(0x42), (1, None));
        check_hello(5, Some(0x20), (4, Some(0x20)));
        check_hello(6, None, (4, None));
        check_hello(1, None, (1, None));
    }

    #[test]
    fn an_error_is_about_the_controllers_message() {
        for version in [Version::V1_0, Version::V1_3] {
            let error = |data: &[u8]| {
                Body::Error(ErrorMessage { kind: 2, code: 9, experimenter: None, data: data.to_vec() })
            };
            let mut out = Vec::new();
            error_about(&encoded(version, error(b"what the proxy sent")), 5, b"theirs", &mut out);
            let about = Message::decode(&out).unwrap();
            assert_eq!((about.xid, about.body), (5, error(b"theirs")));
        }
        let mut out = Vec::new();
        let of_experimenter = [4, 1, 0, 18, 0, 0, 0, 1, 0xff, 0xff, 0, 3, 0, 0, 0x23, 0x20, 7, 7];
        error_about(&of_experimenter, 5, b"theirs", &mut out);
        assert_eq!(
            out,
            [&[4, 1, 0, 22, 0, 0, 0, 5, 0xff, 0xff, 0, 3, 0, 0, 0x23, 0x20], &b"theirs"[..]].concat()
        );
    }

    #[test]
    fn a_packet_takes_the_place_of_its_buffer_id() {
        for version in [Version::V1_0, Version::V1_3] {
            let wanted = PacketOut {
                buffer_id: 5,
                in_port: PortNo(3),
                actions: vec![flow::Action::output(PortNo(2))],
                data: Vec::new(),
            };
            let mut out = Vec::new();
            assert!(packet_out_with(
                &encoded(version, Body::PacketOut(wanted.clone())),
                b"a frame",
                &mut out
            ));
            let expected = PacketOut { buffer_id: NO_BUFFER, data: b"a frame".to_vec(), ..wanted };
            assert_eq!(Message::decode(&out).unwrap().body, Body::PacketOut(expected));
            assert!(!packet_out_with(&out, &[0; 65_535], &mut Vec::new()));
        }
    }
}
