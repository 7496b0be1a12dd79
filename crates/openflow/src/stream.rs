//! Cutting a stream of bytes into OpenFlow messages.
//!
//! In: the received bytes. Out: each complete message, and the number of bytes of these messages. Keeps no state, and
//! reads only the header of a message.

use crate::frame_len;
use flow::BadInput;

/// Passes each complete message at the beginning of `bytes` to `take`, until `take` returns false. Returns the number
/// of bytes of these messages. The bytes after them are an incomplete message.
///
/// # Errors
/// A wrong length: the stream cannot be cut from there on. The messages before it have been passed.
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
