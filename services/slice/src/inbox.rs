//! The bytes of one controller, cut into messages.
//!
//! In: bytes as they come. Out: whole messages, or why the stream cannot be cut. It reads no more of a message than its length.

use openflow::HEADER_LEN;

/// Where the length is in the header (1.3.5, 7.1).
const LENGTH_AT: usize = 2;

/// Bytes that are no whole message yet. It has at most one message and one read.
#[derive(Debug, Default)]
pub(crate) struct Inbox {
    bytes: Vec<u8>,
    start: usize,
}

impl Inbox {
    /// Appends what was read.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        if self.start > 0 {
            self.bytes.drain(..self.start);
            self.start = 0;
        }
        self.bytes.extend_from_slice(bytes);
    }

    /// How many bytes wait.
    #[cfg(test)]
    pub(crate) fn waiting(&self) -> usize {
        self.bytes.len() - self.start
    }

    /// The next whole message, if it is there.
    ///
    /// # Errors
    /// The controller sends no messages of OpenFlow: a sentence.
    pub(crate) fn take(&mut self) -> Result<Option<&[u8]>, String> {
        let rest = &self.bytes[self.start..];
        let Some(length) = rest.get(LENGTH_AT..).and_then(<[u8]>::first_chunk) else { return Ok(None) };
        let length = usize::from(u16::from_be_bytes(*length));
        if length < HEADER_LEN {
            return Err(format!(
                "the controller sent a message with the length {length}, and a header has {HEADER_LEN}"
            ));
        }
        let Some(message) = rest.get(..length) else { return Ok(None) };
        self.start += length;
        Ok(Some(message))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_length_below_that_of_a_header_ends_the_stream() {
        let mut inbox = Inbox::default();
        inbox.push(&[4, 0, 0, 7]);
        assert!(inbox.take().unwrap_err().contains("length 7"));
    }

    proptest! {
        #[test]
        fn however_the_bytes_are_cut_the_messages_are_the_same(
            lengths in proptest::collection::vec(8_usize..300, 0..20),
            cuts in proptest::collection::vec(1_usize..200, 1..50),
        ) {
            let message = |(number, length): (usize, &usize)| {
                let mut bytes = vec![u8::try_from(number).unwrap(); *length];
                bytes[2..4].copy_from_slice(&u16::try_from(*length).unwrap().to_be_bytes());
                bytes
            };
            let messages: Vec<Vec<u8>> = lengths.iter().enumerate().map(message).collect();
            let (stream, mut inbox, mut got) = (messages.concat(), Inbox::default(), Vec::new());
            let (mut rest, mut cuts) = (&stream[..], cuts.iter().cycle());
            while !rest.is_empty() {
                let (now, later) = rest.split_at((*cuts.next().unwrap()).min(rest.len()));
                inbox.push(now);
                while let Some(message) = inbox.take().unwrap() {
                    got.push(message.to_vec());
                }
                rest = later;
            }
            prop_assert_eq!(got, messages);
        }
    }
}
