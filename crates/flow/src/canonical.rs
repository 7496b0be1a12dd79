//! The canonical byte form of the language: OpenFlow 1.3.5's TLVs. So the bytes of a 1.3 switch pass through unchanged.
//!
//! ```text
//!   bytes ─> read_match, read_actions, read_instructions ───> Match, Vec<Action>, Vec<Instruction>
//!   bytes ─> match_tlvs, find_field, UsualFields, actions_raw, instructions_raw, buckets_raw, bands_raw ─> the same in place, for hot paths
//!   bytes ─> check_actions, check_instructions ─> whether they can be read
//!   Match, &[Action], &[Instruction] ─> write_* ──> bytes
//!   values ─> MatchWriter, ActionWriter, InstructionWriter ──> bytes, with no typed value between
//! ```
//!
//! A match is a sequence of OXM TLVs (7.2.3) without an `ofp_match` header and without padding. Actions (7.2.5) and
//! instructions (7.2.4) are sequences of structures whose lengths are multiples of eight. Readers ignore padding;
//! writers write zeros.
//!
//! Readers accept any bytes: they never panic, and allocate at most a small multiple of the input. They check the form
//! only. The switch decides whether a port, a table or a field exists.

mod action_bytes;
mod action_writer;
mod band_bytes;
mod bucket_bytes;
mod instruction_bytes;
mod match_bytes;
mod plain_field;
mod prerequisite;
mod soundness;
mod tlv;
mod twin;
mod usual;

#[cfg(test)]
mod round_trips;

pub use action_bytes::{RawAction, RawActions, actions_raw, read_actions};
pub use action_writer::{ActionWriter, write_actions};
pub use band_bytes::{RawBand, RawBands, bands_raw};
pub use bucket_bytes::{RawBucket, RawBuckets, buckets_raw};
pub use instruction_bytes::{
    InstructionWriter, RawInstruction, RawInstructions, instructions_raw, read_instructions,
    write_instructions,
};
pub use match_bytes::{MAX_UNKNOWN_FIELDS, MatchWriter, match_len, read_match, read_match_into, write_match};
pub use plain_field::Dialect;
pub(crate) use prerequisite::prerequisites;
pub use prerequisite::{check_prerequisites, entry_has_prerequisites, has_prerequisites};
pub use soundness::{check_actions, check_instructions};
pub use tlv::{Tlv, Tlvs, field_header, find_field, match_tlvs};
pub use twin::{Part, Said, is_wild, parts_of_twin};
pub use usual::{RuleValues, UsualFields, begins_with_usual, one_applied_output, one_output};

use crate::error::{BadInput, ErrorCode};
use std::borrow::Cow;
use std::fmt;

/// A value that has no form in OpenFlow 1.3's bytes. It is the fault of the app or operator who made the value. Nothing
/// of the list that contains it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unwritable {
    /// The name of the value, for example `set_tp_src`.
    pub what: &'static str,
    /// One sentence: why it cannot be written, and what to use instead.
    pub reason: Cow<'static, str>,
}

impl Unwritable {
    pub(crate) fn new(what: &'static str, reason: impl Into<Cow<'static, str>>) -> Self {
        Unwritable { what, reason: reason.into() }
    }
}

impl fmt::Display for Unwritable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} cannot be written in OpenFlow 1.3: {}", self.what, self.reason)
    }
}

impl std::error::Error for Unwritable {}

/// The codes of OFPET_BAD_MATCH (1.3.5, 7.5.4.6) that readers return.
#[derive(Clone, Copy)]
#[repr(u16)]
enum MatchFault {
    BadLen = 1,
    BadWildcards = 5,
    BadField = 6,
    BadValue = 7,
    BadMask = 8,
    BadPrereq = 9,
    DupField = 10,
}

/// The codes of OFPET_BAD_ACTION (7.5.4.4) that readers return.
#[derive(Clone, Copy)]
#[repr(u16)]
#[allow(clippy::enum_variant_names, reason = "they are the specification's names")]
enum ActionFault {
    BadType = 0,
    BadLen = 1,
    BadSetType = 13,
    BadSetLen = 14,
    BadSetArgument = 15,
}

/// The codes of OFPET_BAD_INSTRUCTION (7.5.4.5) that readers return.
#[derive(Clone, Copy)]
#[repr(u16)]
enum InstructionFault {
    UnknownInst = 0,
    UnsupInst = 1,
    BadLen = 7,
}

impl From<MatchFault> for ErrorCode {
    fn from(fault: MatchFault) -> Self {
        ErrorCode { kind: 4, code: fault as u16 }
    }
}

impl From<ActionFault> for ErrorCode {
    fn from(fault: ActionFault) -> Self {
        ErrorCode { kind: 2, code: fault as u16 }
    }
}

impl From<InstructionFault> for ErrorCode {
    fn from(fault: InstructionFault) -> Self {
        ErrorCode { kind: 3, code: fault as u16 }
    }
}

fn bad(
    error: impl Into<ErrorCode>,
    offset: usize,
    field: &'static str,
    message: impl Into<Cow<'static, str>>,
) -> BadInput {
    BadInput { offset, field, error: error.into(), message: message.into() }
}

/// Appends zeros until the length of `out` is `start` plus a multiple of eight.
fn pad_to_eight(out: &mut Vec<u8>, start: usize) {
    let written = out.len() - start;
    out.resize(start + written.next_multiple_of(8), 0);
}

/// A big-endian number of at most sixteen bytes.
#[inline]
fn number(bytes: &[u8]) -> u128 {
    u128::from(match *bytes {
        [byte] => u64::from(byte),
        [a, b] => u64::from(u16::from_be_bytes([a, b])),
        [a, b, c, d] => u64::from(u32::from_be_bytes([a, b, c, d])),
        [a, b, c, d, e, f] => u64::from_be_bytes([0, 0, a, b, c, d, e, f]),
        _ => return bytes.iter().fold(0, |number, byte| number << 8 | u128::from(*byte)),
    })
}

#[inline]
fn u16_at(bytes: &[u8], at: usize) -> u16 {
    bytes.get(at..at + 2).and_then(|b| b.try_into().ok()).map_or(0, u16::from_be_bytes)
}

#[inline]
fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 4).and_then(|b| b.try_into().ok()).map_or(0, u32::from_be_bytes)
}

#[inline]
fn u64_at(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..at + 8).and_then(|b| b.try_into().ok()).map_or(0, u64::from_be_bytes)
}
