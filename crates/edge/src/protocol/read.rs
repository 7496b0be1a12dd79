//! Bytes to messages.
//!
//! In: a datagram of anybody. Out: an [`Envelope`] with what it says, unverified, or what is wrong with it. It verifies no signature on its
//! own: [`Envelope::is_signed_with`] does.

use super::{
    DATAGRAM_MAX, ENTRY_BYTES, Entry, HEADER_BYTES, Header, Key, MAGIC, Message, NO_CAP, RATE_BYTES, RateOf,
    SIGNATURE_BYTES, VERSION, What,
};
use crate::vnic::{AgentId, Flow, RATE_MAX_BPS, VnicId};
use std::fmt;

/// A datagram that has the right form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Envelope<'a> {
    /// Who says it to whom, by its own account.
    pub header: Header,
    /// What it says.
    pub message: Message,
    signed: &'a [u8],
    signature: &'a [u8],
}

impl Envelope<'_> {
    /// Whether somebody with the key wrote it.
    pub fn is_signed_with(&self, key: &Key) -> bool {
        key.is_right(self.signed, self.signature)
    }
}

/// Why bytes are no message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Malformed {
    /// Fewer bytes than a header and a signature, or more than a datagram may have.
    Size(usize),
    /// It does not begin with `BEDG`.
    NotOurs,
    /// A version that this program does not speak.
    Version(u8),
    /// The length in the header is not that of the datagram.
    Length {
        /// What the header says.
        said: u16,
        /// What there is.
        is: usize,
    },
    /// An unknown kind of message.
    Kind(u8),
    /// The body of this kind of message cannot have so many bytes.
    Body(u8, usize),
    /// Something at this byte has a value that is not allowed.
    Value(usize),
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Malformed::Size(size) => write!(f, "a datagram of {size} bytes; it has 56 to {DATAGRAM_MAX}"),
            Malformed::NotOurs => f.write_str("it does not begin with BEDG"),
            Malformed::Version(version) => write!(f, "version {version}; this program has {VERSION}"),
            Malformed::Length { said, is } => {
                write!(f, "byte 6: a length of {said}, but there are {is} bytes")
            }
            Malformed::Kind(kind) => write!(f, "byte 5: {kind} is not a valid kind of message"),
            Malformed::Body(kind, size) => write!(f, "a message of kind {kind} with a body of {size} bytes"),
            Malformed::Value(at) => write!(f, "byte {at}: a value that is not allowed"),
        }
    }
}

impl std::error::Error for Malformed {}

/// Reads a datagram.
///
/// # Errors
///
/// The first thing that is wrong with it.
pub fn read(bytes: &[u8]) -> Result<Envelope<'_>, Malformed> {
    let size = Malformed::Size(bytes.len());
    if bytes.len() > DATAGRAM_MAX {
        return Err(size);
    }
    let (signed, signature) = bytes.split_last_chunk::<SIGNATURE_BYTES>().ok_or(size)?;
    let (head, body) = signed.split_first_chunk::<HEADER_BYTES>().ok_or(size)?;
    if head[..4] != MAGIC {
        return Err(Malformed::NotOurs);
    }
    if head[4] != VERSION {
        return Err(Malformed::Version(head[4]));
    }
    let said = u16::from_be_bytes([head[6], head[7]]);
    if usize::from(said) != bytes.len() {
        return Err(Malformed::Length { said, is: bytes.len() });
    }
    let header = Header {
        from: AgentId(number32(head, 8)),
        to: AgentId(number32(head, 12)),
        from_session: number64(head, 16),
        to_session: number64(head, 24),
        sequence: number64(head, 32),
    };
    let message = message(head[5], body)?;
    let is_greeting = matches!(message, Message::Hello | Message::Welcome);
    check(header.from_session != 0, 16)?;
    check((header.to_session == 0) == (message == Message::Hello), 24)?;
    check((header.sequence == 0) == is_greeting, 32)?;
    Ok(Envelope { header, message, signed, signature })
}

/// How long the datagram is that begins with these bytes. None: more bytes must come first.
///
/// # Errors
///
/// No datagram begins so.
pub fn length(bytes: &[u8]) -> Result<Option<usize>, Malformed> {
    let known = bytes.len().min(MAGIC.len());
    if bytes.get(..known) != MAGIC.get(..known) {
        return Err(Malformed::NotOurs);
    }
    match bytes.get(4) {
        None => return Ok(None),
        Some(&VERSION) => {}
        Some(version) => return Err(Malformed::Version(*version)),
    }
    let Some(said) = bytes.get(6..8).and_then(|said| said.first_chunk()) else { return Ok(None) };
    match usize::from(u16::from_be_bytes(*said)) {
        length @ 0..HEADER_AND_SIGNATURE => Err(Malformed::Size(length)),
        length if length > DATAGRAM_MAX => Err(Malformed::Size(length)),
        length => Ok(Some(length)),
    }
}

/// What every datagram has.
const HEADER_AND_SIGNATURE: usize = HEADER_BYTES + SIGNATURE_BYTES;

fn check(holds: bool, at: usize) -> Result<(), Malformed> {
    if holds { Ok(()) } else { Err(Malformed::Value(at)) }
}

fn message(kind: u8, body: &[u8]) -> Result<Message, Malformed> {
    let wrong = Malformed::Body(kind, body.len());
    let size = |is_right: bool| if is_right { Ok(()) } else { Err(wrong) };
    match kind {
        1 => size(body.is_empty()).map(|()| Message::Hello),
        2 => size(body.is_empty()).map(|()| Message::Welcome),
        3 => {
            let rates = rates(body, wrong)?;
            let too_high = rates.iter().position(|rate| rate.rate_bps > RATE_MAX_BPS);
            too_high.map_or(Ok(Message::Feedback(rates)), |index| Err(Malformed::Value(at_rate(index))))
        }
        4 => report(body, wrong),
        5 => {
            size(body.len() == 16)?;
            let (first, last) = (number64(body, 0), number64(body, 8));
            check(first > 0 && first <= last, HEADER_BYTES)?;
            Ok(Message::Again { first, last })
        }
        6 => size(body.len() == 8).map(|()| Message::Beat { newest: number64(body, 0) }),
        7 => {
            let rates = if body.is_empty() { Vec::new() } else { rates(body, wrong)? };
            let is_wrong = |rate: &RateOf| rate.rate_bps > RATE_MAX_BPS && rate.rate_bps != NO_CAP;
            let place = rates.iter().position(is_wrong);
            place.map_or(Ok(Message::Caps(rates)), |index| Err(Malformed::Value(at_rate(index))))
        }
        _ => Err(Malformed::Kind(kind)),
    }
}

fn at_rate(index: usize) -> usize {
    HEADER_BYTES + index * RATE_BYTES + 8
}

fn rates(body: &[u8], wrong: Malformed) -> Result<Vec<RateOf>, Malformed> {
    let (rates, rest) = body.as_chunks::<RATE_BYTES>();
    if rates.is_empty() || !rest.is_empty() {
        return Err(wrong);
    }
    Ok(rates.iter().map(|rate| rate_of(rate)).collect())
}

fn rate_of(bytes: &[u8]) -> RateOf {
    let flow = Flow { sender: VnicId(number32(bytes, 0)), receiver: VnicId(number32(bytes, 4)) };
    RateOf { flow, rate_bps: number64(bytes, 8) }
}

fn report(body: &[u8], wrong: Malformed) -> Result<Message, Malformed> {
    let (number, rest) = body.split_first_chunk::<8>().ok_or(wrong)?;
    let (chunks, rest) = rest.as_chunks::<ENTRY_BYTES>();
    if chunks.is_empty() || !rest.is_empty() {
        return Err(wrong);
    }
    let number = u64::from_be_bytes(*number);
    check(number > 0, HEADER_BYTES)?;
    let mut entries = Vec::with_capacity(chunks.len());
    for (index, chunk) in chunks.iter().enumerate() {
        let at = HEADER_BYTES + 8 + index * ENTRY_BYTES;
        entries.push(entry(chunk, at, index == 0)?);
    }
    Ok(Message::Report { number, entries })
}

/// Only the first entry may void what was before: then a report is before or after a reset, never both.
fn entry(chunk: &[u8; ENTRY_BYTES], at: usize, is_first: bool) -> Result<Entry, Malformed> {
    let what = What::ALL.get(usize::from(chunk[0])).copied().ok_or(Malformed::Value(at))?;
    check(chunk[1..4] == [0; 3], at + 1)?;
    let RateOf { flow, rate_bps } = rate_of(&chunk[4..]);
    if what == What::Reset {
        check(is_first, at)?;
        check(chunk[4..] == [0; RATE_BYTES], at + 4)?;
    }
    check(rate_bps <= RATE_MAX_BPS, at + 12)?;
    Ok(Entry { what, flow, rate_bps })
}

/// Four bytes as a number. The caller has checked that they are there; else they count as 0.
fn number32(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..).and_then(|rest| rest.first_chunk()).map_or(0, |chunk| u32::from_be_bytes(*chunk))
}

/// Eight bytes as a number, in the same way.
fn number64(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..).and_then(|rest| rest.first_chunk()).map_or(0, |chunk| u64::from_be_bytes(*chunk))
}
