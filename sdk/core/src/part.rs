//! The parts of an answer that is longer than one part.
//!
//! In: an answer. Out: its parts, and what each costs. It sends nothing.

use abi::command::QueryAnswer;

/// The length of a part of a longer answer. Several parts fit into a ring.
pub const PART_BYTES: usize = 16 << 10;

/// One part.
#[derive(Debug)]
pub(crate) struct Part {
    status: u16,
    pub(crate) more: bool,
    pub(crate) payload: Vec<u8>,
}

impl Part {
    /// The part as an answer of its own.
    pub(crate) fn answer(&self) -> QueryAnswer<'_> {
        QueryAnswer { status: self.status, more: self.more, payload: &self.payload }
    }
}

/// The credit for a part that is not the last.
pub(crate) fn cost_bytes(payload: &[u8]) -> u32 {
    QueryAnswer { status: 0, more: true, payload }.cost_bytes()
}

/// Splits an answer into parts. The last part has the status, and the flag for further parts.
pub(crate) fn split<'a>(answer: &QueryAnswer<'a>) -> impl Iterator<Item = Part> + use<'a> {
    let QueryAnswer { status, more, payload } = *answer;
    let count = payload.len().div_ceil(PART_BYTES).max(1);
    (0..count).map(move |number| {
        let from = number * PART_BYTES;
        let to = (from + PART_BYTES).min(payload.len());
        let is_last = number + 1 == count;
        let status = if is_last { status } else { 0 };
        Part { status, more: more || !is_last, payload: payload[from..to].to_vec() }
    })
}
