//! Cutting a stream of bytes into OpenFlow messages.
//!
//! In: the bytes that are there. Out: each message that is whole, and how many bytes those were. Keeps nothing, and never looks
//! behind a message's header.

use crate::frame_len;
use flow::BadInput;

/// Hands each whole message at the beginning of `bytes` to `take`, until that says that it wants no more. Gives back how many bytes
/// they took: what is behind them waits for the rest.
///
/// # Errors
/// A length that lies: from there on the stream cannot be cut. What came before has been handed over.
#[inline]
pub fn cut(bytes: &[u8], mut take: impl FnMut(&[u8]) -> bool) -> Result<usize, BadInput> {
    let mut rest = bytes;
    while let Some(length) = frame_len(rest) {
        let Some((message, behind)) = rest.split_at_checked(length?) else { break };
        rest = behind;
        if !take(message) {
            break;
        }
    }
    Ok(bytes.len() - rest.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    const EIGHT: [u8; 8] = [4, 0, 0, 8, 0, 0, 0, 1];
    const NINE: [u8; 9] = [4, 2, 0, 9, 0, 0, 0, 2, 7];

    /// The lengths of the messages that are taken, at most so many, and what the cutting says.
    fn check(pieces: &[&[u8]], most: usize, lengths: &[usize], expected: Option<usize>) {
        let mut seen = Vec::new();
        let gone = cut(&pieces.concat(), |message| {
            seen.push(message.len());
            seen.len() < most
        });
        assert_eq!((&seen[..], gone.ok()), (lengths, expected));
    }

    #[test]
    fn a_length_that_lies_ends_it_behind_what_came_before() {
        check(&[&[4, 2, 0, 7, 0, 0, 0, 0]], 9, &[], None);
        check(&[&EIGHT, &[4, 2, 0, 0]], 9, &[8], None);
    }

    #[test]
    fn a_stream_is_cut_where_messages_end() {
        check(&[], 9, &[], Some(0));
        check(&[&EIGHT[..7]], 9, &[], Some(0));
        check(&[&EIGHT, &NINE, &NINE[..5]], 9, &[8, 9], Some(17));
        check(&[&EIGHT, &NINE, &[4]], 9, &[8, 9], Some(17));
    }

    #[test]
    fn who_wants_no_more_gets_no_more() {
        check(&[&EIGHT, &NINE, &EIGHT], 2, &[8, 9], Some(17));
    }
}
