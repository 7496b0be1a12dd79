//! Statistics replies in the words of 1.3, and requests in those of the switch.

use flow::BadInput;
use openflow::error::{BAD_LEN, BAD_MULTIPART};
use openflow::message::{MULTIPART_MORE, MultipartReply, ReplyBody, TableFeatures, TableStats};
use openflow::{Body, HEADER_LEN, Message, Version};

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
    let decoded = Message::decode(message)?;
    if decoded.version == Version::V1_3 {
        take(message.get(BODY_AT..).unwrap_or_default(), part.more);
        return Ok(());
    }
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

fn unsayable(refused: &openflow::Unwritable) -> BadInput {
    BadInput {
        offset: HEADER_LEN,
        field: "type",
        error: BAD_MULTIPART,
        message: format!("the statistics cannot be said in OpenFlow 1.3: {refused}").into(),
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
