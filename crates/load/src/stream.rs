//! Reading from and writing to a stream without allocation. All connections read into one buffer. Unsent bytes are
//! kept for each connection.
//!
//! ```text
//!   room: [ what was left over | what is read now ] ──> message, message, … , the beginning of one (left over)
//! ```
//!
//! It reads only the header of a message.

use flow::BadInput;
use openflow::{Version, stream};
use std::fmt;
use std::io::{self, ErrorKind, Read, Write};

/// The longest message: its length is 16 bits wide (1.3.5, 7.1).
const MESSAGE_BYTES_MAX: usize = u16::MAX as usize;

/// How many bytes are read at once: some thousand answers, but few enough bytes to stay in a core's own cache.
const READ_BYTES: usize = 128 << 10;

/// If more bytes than this are unsent, the peer is considered dead.
const UNSENT_BYTES_MAX: usize = 4 << 20;

/// OFPT_HELLO and OFPT_ERROR may have any version. Other messages must have the agreed one.
const TYPE_ERROR: u8 = 1;

/// The read buffer of all connections of a thread.
#[derive(Debug)]
pub(crate) struct Room {
    bytes: Box<[u8]>,
}

impl Room {
    pub(crate) fn new() -> Self {
        Room { bytes: vec![0; MESSAGE_BYTES_MAX + READ_BYTES].into_boxed_slice() }
    }
}

/// The result of one read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Taken {
    /// Bytes in the buffer, including those left over from the read before.
    pub(crate) filled: usize,
    /// Whether the socket has no more bytes now. The poll reports when it has.
    pub(crate) drained: bool,
}

/// Why a stream cannot be split into messages any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Nonsense {
    /// A malformed length.
    Length(BadInput),
    /// A version that was not agreed on.
    Version(Version),
}

impl fmt::Display for Nonsense {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Nonsense::Length(bad) => write!(f, "the messages cannot be told apart: {bad}"),
            Nonsense::Version(version) => {
                write!(f, "a message is in OpenFlow {version}, which was not agreed on")
            }
        }
    }
}

/// The start of an incomplete message of a connection.
#[derive(Debug, Default)]
pub(crate) struct Inbound {
    partial: Vec<u8>,
}

impl Inbound {
    /// Reads once, behind the left-over bytes. The end of the stream is an error.
    pub(crate) fn read(&mut self, stream: &mut impl Read, room: &mut Room) -> io::Result<Taken> {
        let left = self.partial.len();
        room.bytes[..left].copy_from_slice(&self.partial);
        let space = &mut room.bytes[left..left + READ_BYTES];
        loop {
            return match stream.read(space) {
                Ok(0) => Err(io::Error::new(ErrorKind::UnexpectedEof, "the peer closed the connection")),
                // A short read has emptied the socket (epoll(7), questions 9).
                Ok(count) => Ok(Taken { filled: left + count, drained: count < READ_BYTES }),
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    Ok(Taken { filled: left, drained: true })
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => Err(error),
            };
        }
    }

    /// Passes on each whole message in the buffer, and keeps the start of an incomplete one. If a version was agreed
    /// on, all messages must have it.
    ///
    /// # Errors
    ///
    /// The malformed part of the stream. The messages before it have been passed on.
    #[inline]
    pub(crate) fn cut(
        &mut self,
        room: &Room,
        filled: usize,
        version: Option<Version>,
        mut take: impl FnMut(&[u8]),
    ) -> Result<(), Nonsense> {
        let bytes = &room.bytes[..filled];
        self.partial.clear();
        let mut foreign = None;
        let gone = stream::cut(bytes, |message| {
            foreign = foreign_version(message, version);
            if foreign.is_none() {
                take(message);
            }
            foreign.is_none()
        });
        let rest = &bytes[gone.map_err(Nonsense::Length)?..];
        // An incomplete message is checked too. A peer of another protocol may announce a great length, which would
        // be awaited.
        if let Some(version) = foreign.or_else(|| foreign_version(rest, version)) {
            return Err(Nonsense::Version(version));
        }
        self.partial.extend_from_slice(rest);
        Ok(())
    }
}

/// The version of this message or of its start, if it is not the agreed one.
#[inline]
fn foreign_version(message: &[u8], agreed: Option<Version>) -> Option<Version> {
    let [spoken, kind, ..] = *message else { return None };
    let is_foreign = agreed.is_some_and(|agreed| spoken != agreed.0) && kind > TYPE_ERROR;
    is_foreign.then_some(Version(spoken))
}

/// Bytes that the peer has not taken yet.
#[derive(Debug, Default)]
pub(crate) struct Outbound {
    bytes: Vec<u8>,
    gone: usize,
}

impl Outbound {
    /// The buffer to append a message to.
    pub(crate) fn end(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// How many bytes wait.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len() - self.gone
    }

    /// Sends the bytes that wait. Returns whether all are sent.
    pub(crate) fn flush(&mut self, stream: &mut impl Write) -> io::Result<bool> {
        while self.len() > 0 {
            let count = write_once(stream, &self.bytes[self.gone..])?;
            self.gone += count;
            if count == 0 {
                let too_much = self.len() > UNSENT_BYTES_MAX;
                return if too_much { Err(takes_nothing()) } else { Ok(false) };
            }
        }
        self.bytes.clear();
        self.gone = 0;
        Ok(true)
    }

    /// Writes directly from `bytes` and keeps the rest. Only valid if no bytes wait. Returns whether all are sent.
    pub(crate) fn write_or_keep(&mut self, stream: &mut impl Write, bytes: &[u8]) -> io::Result<bool> {
        let mut gone = 0;
        if self.len() == 0 {
            gone = write_once(stream, bytes)?;
        }
        self.bytes.extend_from_slice(&bytes[gone..]);
        Ok(gone == bytes.len())
    }
}

fn takes_nothing() -> io::Error {
    io::Error::new(ErrorKind::TimedOut, "the peer does not read the data that it requested")
}

/// Writes once. Returns 0 if the peer takes no bytes now.
pub(crate) fn write_once(stream: &mut impl Write, bytes: &[u8]) -> io::Result<usize> {
    loop {
        return match stream.write(bytes) {
            Ok(0) if !bytes.is_empty() => Err(ErrorKind::WriteZero.into()),
            Ok(count) => Ok(count),
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(0),
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => Err(error),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;

    /// Splits a stream that arrives in pieces. Returns the messages' lengths.
    fn cut(pieces: &[&[u8]]) -> Result<Vec<usize>, Nonsense> {
        let (mut inbound, mut room, mut lengths) = (Inbound::default(), Room::new(), Vec::new());
        for piece in pieces.iter().filter(|piece| !piece.is_empty()) {
            let taken = inbound.read(&mut &piece[..], &mut room).unwrap();
            inbound.cut(&room, taken.filled, Some(Version::V1_3), |message| lengths.push(message.len()))?;
        }
        Ok(lengths)
    }

    #[test]
    fn what_cannot_be_cut_is_nonsense() {
        assert!(matches!(cut(&[&[4, 14, 0, 7, 0, 0, 0, 0]]), Err(Nonsense::Length(_))));
        assert!(matches!(cut(&[&[4, 14, 0, 0]]), Err(Nonsense::Length(_))));
        assert_eq!(cut(&[&[1, 14, 0, 8]]), Err(Nonsense::Version(Version::V1_0)));
        assert_eq!(cut(&[b"HTTP/1.1 400"]), Err(Nonsense::Version(Version(b'H'))));
    }

    #[test]
    fn a_hello_and_an_error_may_be_of_another_version() {
        assert_eq!(cut(&[&[6, 0, 0, 8, 0, 0, 0, 0], &[1, 1, 0, 8, 0, 0, 0, 0]]), Ok(vec![8, 8]));
    }

    #[test]
    fn a_length_that_promises_more_waits_for_it() {
        assert_eq!(cut(&[&[4, 14, 0xff, 0xff, 0, 0, 0, 0], &[0; 100]]), Ok(vec![]));
        let mut longest = vec![0; MESSAGE_BYTES_MAX];
        longest[..4].copy_from_slice(&[4, 14, 0xff, 0xff]);
        let pieces: Vec<&[u8]> = longest.chunks(1000).collect();
        assert_eq!(cut(&pieces), Ok(vec![MESSAGE_BYTES_MAX]));
    }

    #[test]
    fn the_end_of_a_stream_is_said() {
        let error = Inbound::default().read(&mut &[][..], &mut Room::new()).unwrap_err();
        assert_eq!(error.to_string(), "the peer closed the connection");
    }

    proptest! {
        #[test]
        fn however_a_stream_is_cut_up_the_messages_are_the_same(
            lengths in vec(8usize..250, 1..50),
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
            prop_assert_eq!(cut(&pieces), Ok(lengths));
        }
    }

    /// Takes this many bytes, and then no more.
    struct Slow {
        room: usize,
        taken: Vec<u8>,
    }

    impl Write for Slow {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let count = bytes.len().min(self.room);
            self.room -= count;
            self.taken.extend_from_slice(&bytes[..count]);
            if count == 0 { Err(ErrorKind::WouldBlock.into()) } else { Ok(count) }
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn what_a_slow_peer_left_stays_in_order() {
        let (mut outbound, mut slow) = (Outbound::default(), Slow { room: 3, taken: Vec::new() });
        assert!(!outbound.write_or_keep(&mut slow, &[1, 2, 3, 4]).unwrap());
        outbound.end().push(5);
        slow.room = 1;
        assert!(!outbound.flush(&mut slow).unwrap());
        slow.room = 9;
        assert!(!outbound.write_or_keep(&mut slow, &[6]).unwrap(), "something waits before it");
        assert!(outbound.flush(&mut slow).unwrap());
        assert!(outbound.write_or_keep(&mut slow, &[7]).unwrap());
        assert_eq!(slow.taken, [1, 2, 3, 4, 5, 6, 7]);
    }

    #[test]
    fn who_asks_and_never_takes_is_left() {
        let (mut outbound, mut slow) = (Outbound::default(), Slow { room: 0, taken: Vec::new() });
        outbound.end().resize(UNSENT_BYTES_MAX + 1, 0);
        assert_eq!(outbound.flush(&mut slow).unwrap_err().kind(), ErrorKind::TimedOut);
    }
}
