//! Bytes that wait to be taken by one switch.
//!
//! Never writes by itself: many messages are gathered in a turn and leave together at its end.

use std::io::{self, ErrorKind};

/// What a write led to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flushed {
    /// All is gone.
    Empty,
    /// The peer does not take more now.
    Waiting,
}

/// The output of one connection.
#[derive(Debug, Default)]
pub struct Outbox {
    bytes: Vec<u8>,
    /// How many of them are gone already.
    gone: usize,
}

/// A buffer that once grew past this is given back when it is empty, so that one burst is not paid for for ever.
const KEPT: usize = 256 << 10;

impl Outbox {
    /// Where messages are appended.
    pub fn end(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// How many bytes wait.
    pub fn len(&self) -> usize {
        self.bytes.len() - self.gone
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Hands over what waits until the peer takes no more; `write` is like [`io::Write::write`].
    ///
    /// # Errors
    /// What `write` says, but for [`ErrorKind::WouldBlock`] and [`ErrorKind::Interrupted`].
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

    fn reset(&mut self) {
        self.gone = 0;
        self.bytes.clear();
        if self.bytes.capacity() > KEPT {
            self.bytes.shrink_to(KEPT);
        }
    }

    /// Moves what waits to the front once more is gone than waits, so that moving costs no more than writing did.
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
