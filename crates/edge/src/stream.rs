//! Datagrams one behind the other in a stream of bytes: how an agent and the label service talk over TCP.
//!
//! In: bytes as they come. Out: whole datagrams, or that the stream has none. Each datagram has its own length ([`crate::protocol`]), so there is
//! nothing between them. It reads no socket, and verifies no signature.

use crate::protocol::{self, Malformed};

/// The bytes of a stream that are no whole datagram yet: less than one datagram, plus what was pushed last.
#[derive(Clone, Debug, Default)]
pub struct Cutter {
    bytes: Vec<u8>,
    /// How many of them were cut off already.
    cut: usize,
}

impl Cutter {
    /// Further bytes have come.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.drain(..self.cut);
        self.cut = 0;
        self.bytes.extend_from_slice(bytes);
    }

    /// The next whole datagram. None: more bytes must come first.
    ///
    /// # Errors
    ///
    /// What comes next cannot be a datagram. Then nobody knows where the next one begins, and the stream is of no use any more.
    pub fn next_datagram(&mut self) -> Result<Option<&[u8]>, Malformed> {
        let rest = self.bytes.get(self.cut..).unwrap_or_default();
        let Some(length) = protocol::length(rest)? else { return Ok(None) };
        if rest.len() < length {
            return Ok(None);
        }
        let begin = self.cut;
        self.cut += length;
        Ok(self.bytes.get(begin..self.cut))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{Header, Key, Message, write};
    use crate::vnic::AgentId;
    use proptest::prelude::*;

    fn beat(newest: u64) -> Vec<u8> {
        let (from, to) = (AgentId(1), AgentId(2));
        let header = Header { from, to, from_session: 1, to_session: 2, sequence: newest };
        write(&header, &Message::Beat { newest }, &Key([7; 32]))
    }

    #[test]
    fn what_is_no_datagram_is_refused_as_soon_as_that_is_seen() {
        let check = |bytes: &[u8], expected: Result<bool, Malformed>| {
            let mut cutter = Cutter::default();
            cutter.push(bytes);
            assert_eq!(cutter.next_datagram().map(|found| found.is_some()), expected, "{bytes:?}");
        };
        check(b"", Ok(false));
        check(b"BED", Ok(false));
        check(b"GET", Err(Malformed::NotOurs));
        check(b"BEDG\x02", Err(Malformed::Version(2)));
        check(b"BEDG\x01\x06\x00\x20", Err(Malformed::Size(32)));
        check(b"BEDG\x01\x06\xff\xff", Err(Malformed::Size(65_535)));
        check(&beat(1)[..63], Ok(false));
        check(&beat(1), Ok(true));
    }

    proptest! {
        /// Wherever a stream is broken into pieces, the same datagrams come out.
        #[test]
        fn pieces_of_any_size_give_the_same_datagrams(sizes in prop::collection::vec(1..200usize, 1..60)) {
            let sent: Vec<Vec<u8>> = (1..=20).map(beat).collect();
            let all = sent.concat();
            let (mut cutter, mut got, mut rest) = (Cutter::default(), Vec::new(), all.as_slice());
            for size in sizes.into_iter().chain(std::iter::repeat(97)) {
                let (piece, later) = rest.split_at(size.min(rest.len()));
                cutter.push(piece);
                while let Some(datagram) = cutter.next_datagram().unwrap() {
                    got.push(datagram.to_vec());
                }
                rest = later;
                if rest.is_empty() {
                    break;
                }
            }
            prop_assert_eq!(got, sent);
        }
    }
}
