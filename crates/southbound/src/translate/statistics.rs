//! Statistics replies in the format of 1.3, and requests in the switch's format.

use abi::command::{QUEUE_CONFIG, ROLE};
use flow::BadInput;
use openflow::error::{BAD_LEN, BAD_MULTIPART};
use openflow::message::{
    MULTIPART_MORE, MultipartReply, QueueGetConfigReply, QueueProperty, ReplyBody, TableFeatures, TableStats,
};
use openflow::{Body, HEADER_LEN, Header, Message, Version};

/// Where the body of a multipart message of 1.3 begins: type, flags and four bytes of padding follow the header (1.3.5, 7.3.5).
pub const BODY_AT: usize = HEADER_LEN + 8;

/// What stands before the body of a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplyPart {
    /// `ofp_multipart_type`; what 1.0 has of them, it numbers alike.
    pub multipart: u16,
    /// Whether another part follows.
    pub more: bool,
}

/// OFPMP_FLOW, and what an entry of it takes at least (1.3.5, 7.3.5.2; 1.0.0, 5.3.5).
const FLOW: u16 = 1;
const ENTRY_LEN_MIN: usize = 56;
const ENTRY_1_0_LEN_MIN: usize = 88;

/// OFPT_STATS_REPLY of 1.0.
const STATS_REPLY: u8 = 17;

/// OFPMP_TABLE and OFPMP_TABLE_FEATURES (1.3.5, 7.3.5).
const TABLE: u16 = 3;
const TABLE_FEATURES: u16 = 12;

/// The type by which a switch is asked. 1.0 says how large its tables are in the statistics of tables (1.0.0, 5.3.5).
pub fn on_the_wire(version: Version, multipart: u16) -> u16 {
    if version == Version::V1_0 && multipart == TABLE_FEATURES { TABLE } else { multipart }
}

/// What 1.0 says of tables that 1.3 calls features. What else it would be, 1.0 does not say.
fn sizes_of(tables: Vec<TableStats>) -> Vec<TableFeatures> {
    let size = |it: TableStats| TableFeatures {
        table_id: it.table_id,
        name: it.name,
        metadata_match: 0,
        metadata_write: 0,
        config: 0,
        max_entries: it.max_entries,
        properties: Vec::new(),
    };
    tables.into_iter().map(size).collect()
}

/// Reads what stands before the body.
pub fn read_part(message: &[u8]) -> Result<ReplyPart, BadInput> {
    let [kind_high, kind_low, flags_high, flags_low] =
        *message.get(HEADER_LEN..).and_then(|body| body.first_chunk()).ok_or_else(|| BadInput {
            offset: HEADER_LEN,
            field: "type",
            error: BAD_LEN,
            message: "the message ends before its type and flags".into(),
        })?;
    Ok(ReplyPart {
        multipart: u16::from_be_bytes([kind_high, kind_low]),
        more: u16::from_be_bytes([flags_high, flags_low]) & MULTIPART_MORE != 0,
    })
}

/// Hands over the body of a reply as 1.3 has it, once it was read and found sound, with whether another follows. A reply of 1.0 may
/// grow beyond one message and comes in several parts then. `asked`
/// is the type as it was asked.
pub fn in_words_of_1_3(
    message: &[u8],
    part: ReplyPart,
    asked: u16,
    mut take: impl FnMut(&[u8], bool),
) -> Result<(), BadInput> {
    if matches!(part.multipart, QUEUE_CONFIG | ROLE) {
        return alone(message, &mut take);
    }
    let decoded = match Message::decode(message) {
        Ok(decoded) => decoded,
        Err(bad) if part.multipart == FLOW => return entry_by_entry(message, part, bad, &mut take),
        Err(bad) => return Err(bad),
    };
    if decoded.version == Version::V1_3 {
        take(message.get(BODY_AT..).unwrap_or_default(), part.more);
        return Ok(());
    }
    say_in_1_3(decoded, part, asked, &mut take)
}

/// Hands over the body of a reply that is no multipart message.
fn alone(message: &[u8], take: &mut dyn FnMut(&[u8], bool)) -> Result<(), BadInput> {
    let decoded = Message::decode(message)?;
    if decoded.version == Version::V1_3 {
        take(message.get(HEADER_LEN..).unwrap_or_default(), false);
        return Ok(());
    }
    let body = match decoded.body {
        Body::QueueGetConfigReply(reply) => Body::QueueGetConfigReply(queues_of(reply)),
        other => other,
    };
    let mut bytes = Vec::new();
    let said = Message { version: Version::V1_3, xid: 0, body }.encode(&mut bytes);
    said.map_err(|refused| unsayable(&refused))?;
    take(&bytes[HEADER_LEN..], false);
    Ok(())
}

/// Numbers of `ofp_queue_properties` that 1.0 does not define (1.3.5, 7.2.2). Open vSwitch sends the first one also in 1.0.
const MAX_RATE: u16 = 2;
const EXPERIMENTER_PROPERTY: u16 = 0xffff;

/// Queues of 1.0 with the properties of 1.3.
fn queues_of(mut reply: QueueGetConfigReply) -> QueueGetConfigReply {
    let property = |it: QueueProperty| match it {
        QueueProperty::Unknown { kind: MAX_RATE, data } => {
            data.first_chunk().map(|rate| QueueProperty::MaxRate(u16::from_be_bytes(*rate)))
        }
        QueueProperty::Unknown { kind: EXPERIMENTER_PROPERTY, .. } => None,
        other => Some(other),
    };
    for queue in &mut reply.queues {
        queue.properties = std::mem::take(&mut queue.properties).into_iter().filter_map(property).collect();
    }
    reply
}

/// Says a reply of 1.0 in the words of 1.3.
fn say_in_1_3(
    decoded: Message,
    part: ReplyPart,
    asked: u16,
    take: &mut dyn FnMut(&[u8], bool),
) -> Result<(), BadInput> {
    let Body::MultipartReply(reply) = decoded.body else { return Ok(()) };
    let body = match reply.body {
        ReplyBody::Table(tables) if asked == TABLE_FEATURES => ReplyBody::TableFeatures(sizes_of(tables)),
        other => other,
    };
    let (mut waiting, mut bytes) = (vec![body], Vec::new());
    while let Some(body) = waiting.pop() {
        let reply = Body::MultipartReply(MultipartReply { flags: 0, body });
        bytes.clear();
        match (Message { version: Version::V1_3, xid: 0, body: reply.clone() }).encode(&mut bytes) {
            Ok(()) => take(&bytes[BODY_AT..], part.more || !waiting.is_empty()),
            Err(refused) => match halves(reply) {
                // The first half is taken next.
                Some((first, second)) => waiting.extend([second, first]),
                None => return Err(unsayable(&refused)),
            },
        }
    }
    Ok(())
}

/// Reads bodies with at least one malformed flow entry. Valid entries are reported as usual. A malformed one is
/// passed on unchanged (1.3), or as an entry with an unknown match, whose instruction holds its bytes (1.0).
fn entry_by_entry(
    message: &[u8],
    part: ReplyPart,
    bad: BadInput,
    take: &mut dyn FnMut(&[u8], bool),
) -> Result<(), BadInput> {
    let is_1_3 = message.first() == Some(&Version::V1_3.0);
    let body_at = if is_1_3 { BODY_AT } else { HEADER_LEN + 4 };
    let least = if is_1_3 { ENTRY_LEN_MIN } else { ENTRY_1_0_LEN_MIN };
    let body = message.get(body_at..).unwrap_or_default();
    // Where the lengths do not hold, nobody knows where an entry begins.
    let entries = split_entries(body, least).ok_or(bad)?;
    if is_1_3 {
        take(body, part.more);
        return Ok(());
    }
    for (index, entry) in entries.iter().enumerate() {
        let more = part.more || index + 1 < entries.len();
        let head = Header {
            version: Version::V1_0,
            kind: STATS_REPLY,
            // It was part of a message.
            length: u16::try_from(body_at + entry.len()).unwrap_or(u16::MAX),
            xid: 0,
        };
        let alone = [&head.to_bytes()[..], &FLOW.to_be_bytes(), &[0; 2], entry].concat();
        let one = ReplyPart { more, ..part };
        let said = Message::decode(&alone).and_then(|decoded| say_in_1_3(decoded, one, FLOW, take));
        if said.is_err() {
            take(&as_bytes(entry), more);
        }
    }
    Ok(())
}

fn split_entries(mut body: &[u8], least: usize) -> Option<Vec<&[u8]>> {
    let mut entries = Vec::new();
    while !body.is_empty() {
        let length = usize::from(u16::from_be_bytes(*body.first_chunk()?));
        let (entry, rest) = body.split_at_checked(length).filter(|_| length >= least)?;
        entries.push(entry);
        body = rest;
    }
    Some(entries)
}

/// A malformed entry of 1.0 in the format of 1.3. It has the entry's numbers, a match of an unknown field, and an
/// instruction of an unknown experimenter. The instruction holds the whole entry.
fn as_bytes(entry: &[u8]) -> Vec<u8> {
    let at = |range: std::ops::Range<usize>| entry.get(range).unwrap_or_default();
    // OFPXMC_EXPERIMENTER, field 0, four bytes: the experimenter's number.
    const NOBODYS_MATCH: [u8; 16] = [0, 1, 0, 12, 0xff, 0xff, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0];
    let padded = entry.len().next_multiple_of(8);
    let mut bytes =
        [&[0, 0][..], at(2..4), at(44..52), at(52..58), &[0; 6], at(64..88), &NOBODYS_MATCH].concat();
    // An instruction's length is 16 bits wide, as is the entry's: what is too long for both is cut.
    let kept = padded.min(usize::from(u16::MAX) / 8 * 8 - bytes.len() - 8);
    let length = u16::try_from(kept + 8).unwrap_or(u16::MAX);
    bytes.extend_from_slice(&[&[0xff, 0xff][..], &length.to_be_bytes(), &[0; 4]].concat());
    bytes.extend(entry.iter().copied().chain(std::iter::repeat(0)).take(kept));
    let length = u16::try_from(bytes.len()).unwrap_or(u16::MAX);
    bytes[..2].copy_from_slice(&length.to_be_bytes());
    bytes
}

fn unsayable(refused: &openflow::Unwritable) -> BadInput {
    BadInput {
        offset: HEADER_LEN,
        field: "type",
        error: BAD_MULTIPART,
        message: format!("the statistics cannot be expressed in OpenFlow 1.3: {refused}").into(),
    }
}

/// A list of at least two in two.
fn halves(body: Body) -> Option<(ReplyBody, ReplyBody)> {
    let Body::MultipartReply(MultipartReply { body, .. }) = body else { return None };
    fn split<T>(mut list: Vec<T>, body: fn(Vec<T>) -> ReplyBody) -> Option<(ReplyBody, ReplyBody)> {
        let second = list.split_off(list.len() / 2);
        (!list.is_empty()).then(|| (body(list), body(second)))
    }
    match body {
        ReplyBody::Flow(list) => split(list, ReplyBody::Flow),
        ReplyBody::Table(list) => split(list, ReplyBody::Table),
        ReplyBody::TableFeatures(list) => split(list, ReplyBody::TableFeatures),
        ReplyBody::PortStats(list) => split(list, ReplyBody::PortStats),
        ReplyBody::Queue(list) => split(list, ReplyBody::Queue),
        _ => None,
    }
}
