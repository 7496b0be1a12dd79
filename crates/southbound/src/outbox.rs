//! Bytes that wait until a switch accepts them.
//!
//! It never writes by itself: the messages of a turn are collected and sent together at its end.

use std::io::{self, ErrorKind};

/// The result of a flush.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flushed {
    /// All bytes were sent.
    Empty,
    /// The peer accepts no more bytes now.
    Waiting,
}

/// The output of one connection.
#[derive(Debug, Default)]
pub struct Outbox {
    bytes: Vec<u8>,
    /// How many of them were sent already.
    gone: usize,
}

/// When the buffer is empty and larger than this, its memory is freed, so that one burst does not use memory forever.
const KEPT: usize = 256 << 10;

impl Outbox {
    /// The buffer to append messages to.
    pub fn end(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// How many bytes wait.
    pub fn len(&self) -> usize {
        self.bytes.len() - self.gone
    }

    /// Whether no bytes wait.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Writes the waiting bytes until the peer accepts no more. `write` works like [`io::Write::write`].
    ///
    /// # Errors
    /// The errors of `write`, except [`ErrorKind::WouldBlock`] and [`ErrorKind::Interrupted`].
    pub fn flush(&mut self, mut write: impl FnMut(&[u8]) -> io::Result<usize>) -> io::Result<Flushed> {
        while !self.is_empty() {
            match write(&self.bytes[self.gone..]) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(count) => self.gone += count,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.compact();
                    return Ok(Flushed::Waiting);
                }
                Err(error) => return Err(error),
            }
        }
        self.reset();
        Ok(Flushed::Empty)
    }

    /// Exchanges its memory with `memory`, if no bytes wait here. `memory` must be empty.
    pub fn exchange(&mut self, memory: &mut Vec<u8>) {
        if self.is_empty() {
            self.reset();
            std::mem::swap(&mut self.bytes, memory);
        }
    }

    fn reset(&mut self) {
        self.gone = 0;
        self.bytes.clear();
        if self.bytes.capacity() > KEPT {
            self.bytes.shrink_to(KEPT);
        }
    }

    /// Moves the waiting bytes to the front when more bytes were sent than wait. So moving costs no more than writing
    /// did.
    fn compact(&mut self) {
        if self.gone > self.len() {
            self.bytes.drain(..self.gone);
            self.gone = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_slow_peer_left_stays_in_order() {
        let (mut outbox, mut taken, mut turns) = (Outbox::default(), Vec::new(), 0);
        outbox.end().extend(0..100u8);
        while !outbox.is_empty() {
            let mut room = 7;
            let flushed = outbox.flush(|bytes| {
                let count = bytes.len().min(room);
                room -= count;
                taken.extend_from_slice(&bytes[..count]);
                if count == 0 { Err(ErrorKind::WouldBlock.into()) } else { Ok(count) }
            });
            let expected = if outbox.is_empty() { Flushed::Empty } else { Flushed::Waiting };
            assert_eq!(flushed.unwrap(), expected);
            turns += 1;
        }
        assert_eq!((taken, turns), ((0..100).collect(), 15));
    }

    #[test]
    fn a_broken_peer_is_an_error() {
        let mut outbox = Outbox::default();
        outbox.end().push(1);
        assert_eq!(outbox.flush(|_| Ok(0)).unwrap_err().kind(), ErrorKind::WriteZero);
        let broken = outbox.flush(|_| Err(ErrorKind::BrokenPipe.into()));
        assert_eq!(broken.unwrap_err().kind(), ErrorKind::BrokenPipe);
        assert_eq!(outbox.len(), 1);
    }
}
