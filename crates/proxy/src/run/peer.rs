//! One end of a session: a TCP connection, the part of a message that was read so far, and the bytes that it has not taken.
//!
//! In: bytes for the peer. Out: bytes of the peer. It never looks into a message.

use crate::commands::Side;
use mio::net::TcpStream;
use mio::{Interest, Registry, Token};
use openflow::MAX_MESSAGE_LEN;
use std::io::{self, ErrorKind, Read, Write};

/// Above this many bytes that a peer has not taken, the other peer is not read.
const UNSENT_MAX_BYTES: usize = 1 << 20;
/// How much is read at once: many messages, and more than the longest.
const READ_BYTES: usize = 256 * 1024;

/// What was read and is not handled yet: at most one part of a message, and what was read last. Its memory is made and cleared once.
#[derive(Debug, Default)]
pub(super) struct Inbound {
    bytes: Vec<u8>,
    from: usize,
    to: usize,
    /// Whole messages may be left, since the other end was behind.
    has_messages: bool,
}

impl Inbound {
    fn new() -> Self {
        Inbound { bytes: vec![0; READ_BYTES + MAX_MESSAGE_LEN], from: 0, to: 0, has_messages: false }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        self.bytes.get(self.from..self.to).unwrap_or_default()
    }

    /// The first bytes are done with. `has_messages`: whole messages may be left.
    pub(super) fn on_handled(&mut self, bytes: usize, has_messages: bool) {
        self.from = (self.from + bytes).min(self.to);
        self.has_messages = has_messages && self.from < self.to;
    }

    /// Reads once. Returns how many bytes came, and whether there was room for more.
    fn read(&mut self, from: &mut impl Read) -> io::Result<(usize, bool)> {
        self.bytes.copy_within(self.from..self.to, 0);
        (self.from, self.to) = (0, self.to - self.from);
        let room = &mut self.bytes[self.to..];
        let most = room.len();
        let count = from.read(room)?;
        self.to += count;
        Ok((count, count < most))
    }
}

/// A peer.
#[derive(Debug)]
pub(super) struct Peer {
    stream: TcpStream,
    pub(super) side: Side,
    is_open: bool,
    is_readable: bool,
    /// The peer has closed its side, or the connection has failed: no later event will tell of it.
    is_ending: bool,
    inbound: Inbound,
    outbound: Vec<u8>,
    sent: usize,
    /// How many bytes the socket has taken, ever.
    taken: u64,
}

impl Peer {
    /// A peer whose connection is open, or becomes open when the socket is writable for the first time.
    pub(super) fn new(
        mut stream: TcpStream,
        side: Side,
        is_open: bool,
        token: Token,
        registry: &Registry,
    ) -> io::Result<Self> {
        registry.register(&mut stream, token, Interest::READABLE | Interest::WRITABLE)?;
        if is_open {
            stream.set_nodelay(true)?;
        }
        Ok(Peer {
            stream,
            side,
            is_open,
            is_readable: is_open,
            is_ending: false,
            inbound: Inbound::new(),
            outbound: Vec::new(),
            sent: 0,
            taken: 0,
        })
    }

    /// The poll says that the socket is readable.
    pub(super) fn on_readable(&mut self) {
        self.is_readable = true;
    }

    /// The poll says that the stream has ended, perhaps behind bytes that were not read yet.
    pub(super) fn on_ending(&mut self) {
        (self.is_readable, self.is_ending) = (true, true);
    }

    /// The poll says that the socket is writable, or has failed.
    pub(super) fn on_writable(&mut self) -> io::Result<()> {
        if self.is_open {
            return Ok(());
        }
        if let Some(error) = self.stream.take_error()? {
            return Err(error);
        }
        match self.stream.peer_addr() {
            Err(error) if error.kind() == ErrorKind::NotConnected => Ok(()),
            Err(error) => Err(error),
            Ok(_) => {
                self.is_open = true;
                self.stream.set_nodelay(true)
            }
        }
    }

    /// Whether the poll has told of its end.
    pub(super) fn is_ending(&self) -> bool {
        self.is_ending
    }

    /// Whether there may be bytes to handle: in the socket, or left from before.
    pub(super) fn has_bytes(&self) -> bool {
        self.is_open && (self.is_readable || self.inbound.has_messages)
    }

    /// Whether it takes so little that the other peer must wait.
    pub(super) fn is_behind(&self) -> bool {
        self.outbound.len() - self.sent > UNSENT_MAX_BYTES
    }

    /// How many bytes it has taken, if more bytes wait than the bound. Then the other peer is not read.
    pub(super) fn taken_before_owed(&self) -> Option<u64> {
        self.is_behind().then_some(self.taken)
    }

    /// Reads once, unless messages are left from before. The end of the stream is an error.
    pub(super) fn read(&mut self) -> io::Result<()> {
        if self.inbound.has_messages {
            return Ok(());
        }
        match self.inbound.read(&mut self.stream) {
            Ok((0, _)) => Err(io::Error::new(ErrorKind::UnexpectedEof, "it closed the connection")),
            Ok((_, had_room)) => {
                // A socket that had less has nothing more, except for its end.
                self.is_readable = self.is_ending || !had_room;
                Ok(())
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                self.is_readable = false;
                Ok(())
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Gives out what was read. The caller brings it back with [`Self::put_back`].
    pub(super) fn take_inbound(&mut self) -> Inbound {
        std::mem::take(&mut self.inbound)
    }

    /// Takes what was given out back.
    pub(super) fn put_back(&mut self, inbound: Inbound) {
        self.inbound = inbound;
    }

    /// Bytes for the peer. If nothing waits, they go to the socket from where they are.
    pub(super) fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut rest = bytes;
        if self.outbound.is_empty() && self.is_open {
            while !rest.is_empty() {
                match write(&mut self.stream, rest)? {
                    0 => break,
                    count => rest = &rest[count..],
                }
            }
        }
        self.taken += (bytes.len() - rest.len()) as u64;
        self.outbound.extend_from_slice(rest);
        Ok(())
    }

    /// Sends what waits, as much as the socket takes.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        while self.is_open && self.sent < self.outbound.len() {
            match write(&mut self.stream, &self.outbound[self.sent..])? {
                0 => {
                    // A peer that reads slowly and never catches up must not keep what it has taken.
                    if self.sent > UNSENT_MAX_BYTES {
                        self.outbound.drain(..self.sent);
                        self.sent = 0;
                    }
                    return Ok(());
                }
                count => {
                    self.sent += count;
                    self.taken += count as u64;
                }
            }
        }
        if self.sent == self.outbound.len() {
            self.outbound.clear();
            self.sent = 0;
        }
        Ok(())
    }

    /// Ends the connection.
    pub(super) fn close(mut self, registry: &Registry) {
        // Closing a socket removes it from the poll.
        let _ = registry.deregister(&mut self.stream);
    }
}

/// Writes once. 0: the socket takes nothing now.
fn write(stream: &mut TcpStream, bytes: &[u8]) -> io::Result<usize> {
    match stream.write(bytes) {
        Ok(0) => Err(ErrorKind::WriteZero.into()),
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => Ok(0),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that cannot go on should end")]

    use super::*;
    use mio::Poll;
    use std::net::TcpListener;

    fn pair(poll: &Poll) -> (Peer, std::net::TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let theirs = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let ours = listener.accept().unwrap().0;
        ours.set_nonblocking(true).unwrap();
        let ours = TcpStream::from_std(ours);
        (Peer::new(ours, Side::Controller, true, Token(0), poll.registry()).unwrap(), theirs)
    }

    #[test]
    fn a_peer_that_never_catches_up_does_not_keep_what_it_has_taken() {
        let poll = Poll::new().unwrap();
        let (mut peer, mut theirs) = pair(&poll);
        let (chunk, mut taken) = (vec![7; 64 * 1024], vec![0; 64 * 1024]);
        // The sockets' own buffers are full first.
        while peer.outbound.len() < 4 * UNSENT_MAX_BYTES {
            peer.send(&chunk).unwrap();
        }
        for _ in 0..1_000 {
            theirs.read_exact(&mut taken).unwrap();
            peer.flush().unwrap();
            peer.send(&chunk).unwrap();
            assert!(!peer.outbound.is_empty(), "it catches up");
        }
        assert!(peer.outbound.len() < 16 * UNSENT_MAX_BYTES, "{} bytes", peer.outbound.len());
    }

    #[test]
    fn the_end_of_a_stream_is_read_also_if_it_came_with_the_last_bytes() {
        let poll = Poll::new().unwrap();
        let (mut peer, mut theirs) = pair(&poll);
        theirs.write_all(b"last words").unwrap();
        drop(theirs);
        peer.on_ending();
        let mut reads = 0;
        let end = loop {
            match peer.read() {
                Ok(()) => reads += 1,
                Err(end) => break end,
            }
            assert!(peer.has_bytes() && reads < 1_000_000, "it waits for an event that never comes");
        };
        assert_eq!((end.kind(), peer.inbound.bytes()), (ErrorKind::UnexpectedEof, &b"last words"[..]));
    }

    #[test]
    fn messages_that_were_left_are_handled_before_more_is_read() {
        let poll = Poll::new().unwrap();
        let (mut peer, mut theirs) = pair(&poll);
        theirs.write_all(b"one two").unwrap();
        peer.on_readable();
        while peer.inbound.bytes().is_empty() {
            peer.read().unwrap();
        }
        peer.inbound.on_handled(3, true);
        drop(theirs);
        assert!(peer.has_bytes());
        peer.read().unwrap();
        assert_eq!(peer.inbound.bytes(), b" two");
        peer.inbound.on_handled(4, false);
        peer.on_ending();
        assert_eq!(peer.read().unwrap_err().kind(), ErrorKind::UnexpectedEof);
    }

    #[test]
    fn a_part_of_a_message_stays_and_only_what_came_is_written() {
        let mut inbound = Inbound::new();
        let longest = vec![5; MAX_MESSAGE_LEN - 1];
        assert_eq!(inbound.read(&mut &longest[..]).unwrap(), (longest.len(), true));
        // The rest of the memory stays as it is: nothing is cleared for a read.
        inbound.bytes[longest.len() + 3..].fill(7);
        assert_eq!(inbound.read(&mut &b"abc"[..]).unwrap(), (3, true));
        assert!(
            inbound.bytes().ends_with(b"\x05abc")
                && inbound.bytes[inbound.to..].iter().all(|byte| *byte == 7)
        );
        inbound.on_handled(longest.len(), false);
        assert_eq!(inbound.bytes(), b"abc");
        let many = vec![9; 2 * READ_BYTES];
        let (count, had_room) = inbound.read(&mut &many[..]).unwrap();
        assert!(count >= READ_BYTES && !had_room && inbound.bytes().starts_with(b"abc\x09"));
    }
}
