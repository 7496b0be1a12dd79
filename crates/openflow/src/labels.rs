//! Labels of links on the wire: a field behind each port of ordinary messages, and messages of their own.
//!
//! ```text
//!   port status, features reply, port descriptions ──with_labels──> the same with 4 more bytes behind each port
//!                                                  <──split_labels──
//!   LabelMessage <──> Experimenter (OFPT_VENDOR in 1.0)
//! ```
//!
//! The field is that of *The Price of Virtualization*, IV-C: `uint32_t label` at the end of `ofp_phy_port`, so a port of 1.0 has 52 bytes. Behind
//! `ofp_port` of 1.3 it is the same, so a port has 68 bytes. A label is in kbit/s. `docs/reference/labels.md` has all bytes.
//!
//! In: messages as bytes, or values. Out: the other form, or a [`BadInput`]. [`crate::Message::decode`] knows nothing of this: both ends of a
//! connection have to agree on it.

use flow::{BadInput, PortNo};

use crate::error::{BAD_LEN, BAD_TYPE, Unwritable, bad};
use crate::header::{HEADER_LEN, Header};
use crate::message::Experimenter;
use crate::wire::{Reader, Writer};
use crate::{MAX_MESSAGE_LEN, Version};

/// The label of a port without one: no link begins there, or nothing is known of it.
pub const NO_LABEL: u32 = u32::MAX;

/// The experimenter of label messages: "bur". As the beginning of an Ethernet address it is a local one, so nobody else has it.
pub const EXPERIMENTER: u32 = 0x0062_7572;

/// The types of messages.
const REQUEST: u32 = 1;
const LABELS: u32 = 2;
/// The flags of [`LABELS`].
const STALE: u16 = 1;
const MORE: u16 = 2;
/// The most labels in one message.
pub const LABELS_MAX: usize = 1_024;

/// The bytes of a label.
const LABEL_LEN: usize = 4;
/// `ofp_phy_port`, `ofp_port`.
const PORT_LEN_V10: usize = 48;
const PORT_LEN_V13: usize = 64;

/// Where the ports of a message are.
struct Ports {
    first: usize,
    length: usize,
    /// Bytes of a port's number.
    number_len: usize,
}

/// The ports of a message of this version and type, if it has any.
fn ports_of(bytes: &[u8]) -> Option<Ports> {
    let header = Header::read(bytes).ok()?;
    let multipart = bytes.get(HEADER_LEN..HEADER_LEN + 2);
    match (header.version, header.kind, multipart) {
        // OFPT_PORT_STATUS, OFPT_FEATURES_REPLY.
        (Version::V1_0, 12, _) => Some(Ports { first: 16, length: PORT_LEN_V10, number_len: 2 }),
        (Version::V1_0, 6, _) => Some(Ports { first: 32, length: PORT_LEN_V10, number_len: 2 }),
        // OFPT_PORT_STATUS, OFPMP_PORT_DESC in OFPT_MULTIPART_REPLY.
        (Version::V1_3, 12, _) => Some(Ports { first: 16, length: PORT_LEN_V13, number_len: 4 }),
        (Version::V1_3, 19, Some([0, 13])) => Some(Ports { first: 16, length: PORT_LEN_V13, number_len: 4 }),
        _ => None,
    }
}

/// A message with the label of each port behind it. A message without ports stays as it is.
///
/// # Errors
/// With the labels, it is longer than a message can be.
pub fn with_labels(message: Vec<u8>, label_of: impl Fn(PortNo) -> u32) -> Result<Vec<u8>, Unwritable> {
    let Some(Ports { first, length, number_len }) = ports_of(&message) else { return Ok(message) };
    let (head, ports) = message.split_at(first.min(message.len()));
    let mut labeled = head.to_vec();
    for port in ports.chunks(length) {
        let number = port.iter().take(number_len).fold(0, |number, byte| number << 8 | u32::from(*byte));
        labeled.extend_from_slice(port);
        labeled.extend_from_slice(&label_of(PortNo(number)).to_be_bytes());
    }
    match u16::try_from(labeled.len()) {
        Ok(length) if labeled.len() <= MAX_MESSAGE_LEN => {
            labeled[2..4].copy_from_slice(&length.to_be_bytes());
            Ok(labeled)
        }
        _ => Err(Unwritable::new("length", "with labels, the ports are too many for a message")),
    }
}

/// The ordinary message, and the labels of its ports in order. A message without ports stays as it is, and has no labels.
///
/// # Errors
/// The ports with their labels do not fill the message.
pub fn split_labels(message: &[u8]) -> Result<(Vec<u8>, Vec<u32>), BadInput> {
    let Some(Ports { first, length, .. }) = ports_of(message) else {
        return Ok((message.to_vec(), Vec::new()));
    };
    let stated = usize::from(Header::read(message)?.length);
    if stated != message.len() || stated < first || !(stated - first).is_multiple_of(length + LABEL_LEN) {
        let why = format!(
            "{stated} bytes are no whole number of ports with labels, of {} bytes each",
            length + LABEL_LEN
        );
        return Err(bad(2, "length", BAD_LEN, why));
    }
    let (mut plain, mut labels) = (message[..first].to_vec(), Vec::new());
    for port in message[first..].chunks_exact(length + LABEL_LEN) {
        let (port, label) = port.split_at(length);
        plain.extend_from_slice(port);
        labels.push(label.iter().fold(0, |label, byte| label << 8 | u32::from(*byte)));
    }
    // It is shorter than what was stated.
    let length = plain.len() as u16;
    plain[2..4].copy_from_slice(&length.to_be_bytes());
    Ok((plain, labels))
}

/// The label of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortLabel {
    /// The port where the link begins.
    pub port: PortNo,
    /// The label in kbit/s, or [`NO_LABEL`].
    pub label_kbps: u32,
    /// What the link carries, in kbit/s; 0 if that is unknown.
    pub capacity_kbps: u32,
}

/// A message about labels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LabelMessage {
    /// A controller wants all labels of a switch.
    Request,
    /// Labels: all of a switch as the answer to a request, or those that changed, with the transaction id 0.
    Labels {
        /// The labels may be too high.
        is_stale: bool,
        /// Another part of the same answer follows.
        more: bool,
        /// The labels, at most [`LABELS_MAX`].
        labels: Vec<PortLabel>,
    },
}

impl LabelMessage {
    /// The message for a version. 1.0 has no type of its own, so the type begins the data.
    pub fn to_experimenter(&self, version: Version) -> Experimenter {
        let mut data = Vec::new();
        let mut out = Writer { out: &mut data };
        let exp_type = match self {
            LabelMessage::Request => REQUEST,
            LabelMessage::Labels { .. } => LABELS,
        };
        if version == Version::V1_0 {
            out.u32(exp_type);
        }
        if let LabelMessage::Labels { is_stale, more, labels } = self {
            let flags = if *is_stale { STALE } else { 0 } | if *more { MORE } else { 0 };
            out.u16(flags).zeros(2);
            for label in labels.iter().take(LABELS_MAX) {
                out.u32(label.port.0).u32(label.label_kbps).u32(label.capacity_kbps).zeros(4);
            }
        }
        let exp_type = (version != Version::V1_0).then_some(exp_type);
        Experimenter { experimenter: EXPERIMENTER, exp_type, data }
    }

    /// Reads a message. `None`: it is another experimenter's.
    ///
    /// # Errors
    /// It is this experimenter's, and its type or its length is wrong. The offset is from the start of the message.
    pub fn read(message: &Experimenter) -> Result<Option<LabelMessage>, BadInput> {
        /// The header, the experimenter, and the type of 1.3.
        const BEFORE_V10: usize = HEADER_LEN + 4;
        if message.experimenter != EXPERIMENTER {
            return Ok(None);
        }
        let (mut body, exp_type) = match message.exp_type {
            Some(exp_type) => (Reader::new(&message.data, BEFORE_V10 + 4), exp_type),
            None => {
                let mut body = Reader::new(&message.data, BEFORE_V10);
                let exp_type = body.u32("exp_type")?;
                (body, exp_type)
            }
        };
        let read = match exp_type {
            REQUEST => LabelMessage::Request,
            LABELS => {
                let flags = body.u16("flags")?;
                body.skip(2)?;
                let labels = body.list(read_label)?;
                LabelMessage::Labels { is_stale: flags & STALE != 0, more: flags & MORE != 0, labels }
            }
            other => {
                return Err(bad(BEFORE_V10, "exp_type", BAD_TYPE, format!("there is no type {other}")));
            }
        };
        body.end()?;
        Ok(Some(read))
    }
}

fn read_label(body: &mut Reader<'_>) -> Result<PortLabel, BadInput> {
    let label = PortLabel {
        port: PortNo(body.u32("port_no")?),
        label_kbps: body.u32("label")?,
        capacity_kbps: body.u32("capacity")?,
    };
    body.skip(4)?;
    Ok(label)
}
