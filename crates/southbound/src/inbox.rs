//! Splits received bytes into messages, in place.
//!
//! ```text
//!   worker's buffer: [ rest of the last read | what is read now ] ──> message, message, … , an incomplete message
//! ```
//!
//! One buffer serves all sessions of a worker. A session keeps only the start of an incomplete message, which is
//! shorter than the longest message (65,535 bytes). It reads only the header of a message.

use openflow::HEADER_LEN;

/// The longest message in bytes: its length field has 16 bits (1.3.5, 7.1).
const MAX_MESSAGE_LEN: usize = u16::MAX as usize;

/// How many bytes are read at once. It is enough for some hundred packet-ins, and small enough for the processor's
/// cache.
const READ_LEN: usize = 64 << 10;

/// The buffer of a worker.
#[derive(Debug)]
pub struct ReadBuffer {
    bytes: Box<[u8]>,
}

impl ReadBuffer {
    /// With room for the longest incomplete message, and for what is read at once.
    pub fn new() -> Self {
        ReadBuffer { bytes: vec![0; MAX_MESSAGE_LEN + READ_LEN].into_boxed_slice() }
    }
}

impl Default for ReadBuffer {
    fn default() -> Self {
        ReadBuffer::new()
    }
}

/// The start of a session's incomplete message.
#[derive(Debug, Default)]
pub struct Inbox {
    partial: Vec<u8>,
}

impl Inbox {
    /// Copies the start of the incomplete message to the front of the buffer. Returns the room behind it for the next
    /// read.
    pub fn room<'a>(&self, buffer: &'a mut ReadBuffer) -> &'a mut [u8] {
        let (front, room) = buffer.bytes.split_at_mut(self.partial.len());
        front.copy_from_slice(&self.partial);
        let read = room.len().min(READ_LEN);
        &mut room[..read]
    }

    /// Splits the kept start and the `read` bytes that follow it into messages. Passes each to `take`, and keeps the
    /// rest.
    ///
    /// If a header has a length below eight, the stream cannot be split any more. Then `take` gets the bytes of that
    /// header unchanged, for the session to report, and the rest is dropped.
    ///
    /// # Errors
    /// The error that `take` returned.
    pub fn cut<E>(
        &mut self,
        buffer: &ReadBuffer,
        read: usize,
        mut take: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut rest = &buffer.bytes[..self.partial.len() + read];
        self.partial.clear();
        while let Some(length) = openflow::frame_len(rest) {
            let Ok(length) = length else {
                return take(&rest[..rest.len().min(HEADER_LEN)]);
            };
            let Some((message, behind)) = rest.split_at_checked(length) else { break };
            rest = behind;
            take(message)?;
        }
        self.partial.extend_from_slice(rest);
        Ok(())
    }

    /// The start of the incomplete message.
    pub fn partial(&self) -> &[u8] {
        &self.partial
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    /// Splits a stream that arrives in pieces, and compares the messages' lengths.
    fn check(pieces: &[&[u8]], expected: &[usize]) {
        let (mut inbox, mut buffer, mut lengths) = (Inbox::default(), ReadBuffer::new(), Vec::new());
        for piece in pieces {
            inbox.room(&mut buffer)[..piece.len()].copy_from_slice(piece);
            let take = |message: &[u8]| {
                lengths.push(message.len());
                Ok::<(), ()>(())
            };
            inbox.cut(&buffer, piece.len(), take).unwrap();
        }
        assert_eq!(lengths, expected);
    }

    const EIGHT: [u8; 8] = [4, 2, 0, 8, 0, 0, 0, 1];

    #[test]
    fn a_length_below_eight_is_handed_over_for_judgement() {
        check(&[&[4, 2, 0, 7, 0, 0, 0, 1, 9, 9]], &[8]);
        check(&[&EIGHT, &[4, 2], &[0, 0]], &[8, 4]);
    }

    #[test]
    fn nothing_is_taken_before_it_is_whole() {
        check(&[&EIGHT[..7]], &[]);
        check(&[&EIGHT[..1], &EIGHT[1..3], &EIGHT[3..]], &[8]);
    }

    #[test]
    fn what_the_session_refuses_ends_the_cutting() {
        let (mut inbox, mut buffer) = (Inbox::default(), ReadBuffer::new());
        inbox.room(&mut buffer)[..16].copy_from_slice(&EIGHT.repeat(2));
        let mut taken = 0;
        let refuse = |_: &[u8]| {
            taken += 1;
            Err("refused")
        };
        assert_eq!(inbox.cut(&buffer, 16, refuse), Err("refused"));
        assert_eq!(taken, 1);
    }

    #[test]
    fn many_messages_of_one_read_are_all_taken() {
        check(&[&EIGHT.repeat(1000), &EIGHT], &[8; 1001]);
    }

    #[test]
    fn the_longest_message_fits() {
        let mut longest = vec![0; MAX_MESSAGE_LEN];
        longest[..4].copy_from_slice(&[4, 2, 0xff, 0xff]);
        let pieces: Vec<&[u8]> = longest.chunks(READ_LEN - 2).collect();
        check(&pieces, &[MAX_MESSAGE_LEN]);
    }

    proptest! {
        #[test]
        fn however_a_stream_is_cut_up_the_messages_are_the_same(
            lengths in vec(8usize..200, 1..50),
            mut cuts in vec(0usize..10_000, 0..20),
        ) {
            let stream: Vec<u8> = lengths
                .iter()
                .flat_map(|length| {
                    let mut message = vec![0; *length];
                    message[..4].copy_from_slice(&[4, 2, 0, *length as u8]);
                    message
                })
                .collect();
            cuts.iter_mut().for_each(|cut| *cut %= stream.len() + 1);
            cuts.extend([0, stream.len()]);
            cuts.sort_unstable();
            let pieces: Vec<&[u8]> = cuts.windows(2).map(|ends| &stream[ends[0]..ends[1]]).collect();
            check(&pieces, &lengths);
        }
    }
}
