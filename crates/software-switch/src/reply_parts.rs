//! Splits a long answer to a multipart request into replies that fit a message.
//!
//! In: a list, and how many bytes each item takes. Out: the bodies of the replies. It never looks at the switch.

use flow::{Action, Field, Instruction, MatchEntry};
use openflow::message::{FlowStats, ReplyBody};

/// The most bytes in one reply. A message's length has 16 bits, and its headers need some of them.
const REPLY_BYTES: usize = 60_000;

/// Splits a list into replies whose length fits into the length field. `length` must be at least an item's length on
/// the wire. An empty list gives one empty reply.
pub(super) fn in_parts<T>(
    items: Vec<T>,
    length: impl Fn(&T) -> usize,
    reply: impl Fn(Vec<T>) -> ReplyBody,
) -> Vec<ReplyBody> {
    let mut parts = Vec::new();
    let (mut part, mut bytes) = (Vec::new(), 0);
    for item in items {
        let more = length(&item);
        if bytes + more > REPLY_BYTES && !part.is_empty() {
            parts.push(reply(std::mem::take(&mut part)));
            bytes = 0;
        }
        bytes += more;
        part.push(item);
    }
    parts.push(reply(part));
    parts
}

/// An upper bound for the bytes of a flow entry in a reply of either version.
pub(super) fn flow_length(flow: &FlowStats) -> usize {
    let matches: usize = flow.matching.entries().iter().map(entry_length).sum();
    let instructions: usize = flow
        .instructions
        .iter()
        .map(|instruction| match instruction {
            Instruction::WriteActions(actions) | Instruction::ApplyActions(actions) => {
                8 + actions_length(actions)
            }
            _ => 24,
        })
        .sum();
    // A 1.0 match has a fixed length of 40 bytes. OXM is padded to eight.
    48 + 48 + matches + instructions
}

fn entry_length(entry: &MatchEntry) -> usize {
    match entry {
        MatchEntry::Field { field, .. } => 4 + 2 * field.bytes(),
        MatchEntry::Unknown { body, .. } => 4 + body.len(),
    }
}

/// An upper bound for the bytes of actions.
pub(super) fn actions_length(actions: &[Action]) -> usize {
    /// OFPAT_OUTPUT and 1.0's OFPAT_ENQUEUE; all others but set-field are shorter.
    const LONGEST_FIXED_BYTES: usize = 16;
    let length = |action: &Action| match action {
        Action::SetField { field, .. } => 16 + Field::bytes(*field),
        Action::SetUnknownField { body, .. } | Action::Experimenter { body, .. } => 16 + body.len(),
        _ => LONGEST_FIXED_BYTES,
    };
    actions.iter().map(length).sum()
}
