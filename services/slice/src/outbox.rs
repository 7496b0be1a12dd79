//! The bytes that wait for one controller.
//!
//! In: whole messages. Out: bytes, in order. It has a bound, beyond which the connection has to end: the controller does not read.

use std::io::{ErrorKind, Write};

/// Bytes that wait, besides those in the system's buffers. A description of 4,096 rules takes less.
pub(crate) const WAITING_BYTES_MAX: usize = 1 << 20;
/// With so many bytes waiting, packet-ins are dropped, as by a switch whose queue is full. It is less than [`UNHEARD_BYTES`], so that packet-ins
/// alone do not keep the slice from reading the controller.
const CROWDED_BYTES: usize = 64 << 10;
/// Packet-ins may wait again when no more than this waits. A gap keeps the two from taking turns with each packet.
const UNCROWDED_BYTES: usize = CROWDED_BYTES / 2;
/// With so many bytes waiting, no more messages of the controller are read: their answers would only wait too.
const UNHEARD_BYTES: usize = 128 << 10;

/// Bytes that the socket has not taken yet.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    bytes: Vec<u8>,
    start: usize,
    is_crowded: bool,
}

impl Outbox {
    /// Appends a message. Returns whether there was room.
    pub(crate) fn push(&mut self, message: &[u8]) -> bool {
        if self.waiting() + message.len() > WAITING_BYTES_MAX {
            return false;
        }
        // Waiting bytes move only when they are fewer than the sent ones before them. If they moved with each message, a full socket would make
        // that the most of the work. The memory is at most twice the bound.
        if self.start > self.waiting() {
            self.bytes.drain(..self.start);
            self.start = 0;
        }
        self.bytes.extend_from_slice(message);
        true
    }

    /// How many bytes wait.
    pub(crate) fn waiting(&self) -> usize {
        self.bytes.len() - self.start
    }

    /// Whether the controller reads its messages, so that the slice may read those of the controller.
    pub(crate) fn is_read(&self) -> bool {
        self.waiting() < UNHEARD_BYTES
    }

    /// Whether packet-ins are to be dropped.
    pub(crate) fn is_crowded(&self) -> bool {
        self.is_crowded
    }

    /// Compares what waits with the bounds for packet-ins. Returns whether the answer is another one than before.
    pub(crate) fn judge(&mut self) -> bool {
        let bound = if self.is_crowded { UNCROWDED_BYTES + 1 } else { CROWDED_BYTES };
        let is_crowded = self.waiting() >= bound;
        std::mem::replace(&mut self.is_crowded, is_crowded) != is_crowded
    }

    /// Whether the next [`Outbox::judge`] would say that packet-ins are to be dropped, and the last did not.
    pub(crate) fn is_filling(&self) -> bool {
        !self.is_crowded && self.waiting() >= CROWDED_BYTES
    }

    /// Writes what the socket takes. Returns whether it took something.
    ///
    /// # Errors
    /// The connection has failed.
    pub(crate) fn flush(&mut self, socket: &mut impl Write) -> std::io::Result<bool> {
        let before = self.waiting();
        while self.waiting() > 0 {
            match socket.write(&self.bytes[self.start..]) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(count) => self.start += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        if self.waiting() == 0 {
            self.bytes.clear();
            self.start = 0;
        }
        Ok(self.waiting() < before)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes so many bytes, and no more.
    struct Narrow {
        room: usize,
        taken: Vec<u8>,
    }

    impl Write for Narrow {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            if self.room == 0 {
                return Err(ErrorKind::WouldBlock.into());
            }
            let count = bytes.len().min(self.room);
            self.room -= count;
            self.taken.extend_from_slice(&bytes[..count]);
            Ok(count)
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn what_the_socket_does_not_take_waits_in_order_up_to_the_bound() {
        let mut outbox = Outbox::default();
        let mut socket = Narrow { room: 5, taken: Vec::new() };
        assert!(outbox.push(b"abcdef"));
        assert!(outbox.flush(&mut socket).unwrap());
        assert!(outbox.push(b"ghi"));
        assert!(!outbox.flush(&mut socket).unwrap(), "it took nothing");
        socket.room = 100;
        assert!(outbox.flush(&mut socket).unwrap());
        assert_eq!((outbox.waiting(), &socket.taken[..]), (0, &b"abcdefghi"[..]));
        assert!(outbox.push(&vec![0; WAITING_BYTES_MAX]) && !outbox.is_read());
        assert!(!outbox.push(b"a"));
    }

    #[test]
    fn packet_ins_are_dropped_before_the_controller_is_not_read_and_until_half_is_gone() {
        let mut outbox = Outbox::default();
        let check = |outbox: &mut Outbox, changed: bool, is_crowded: bool| {
            assert_eq!((outbox.judge(), outbox.is_crowded()), (changed, is_crowded), "{}", outbox.waiting());
        };
        assert!(outbox.push(&vec![0; CROWDED_BYTES - 1]));
        check(&mut outbox, false, false);
        assert!(outbox.push(b"a") && outbox.is_filling() && outbox.is_read());
        check(&mut outbox, true, true);
        assert!(!outbox.is_filling(), "it is said once");
        let mut socket = Narrow { room: UNCROWDED_BYTES - 1, taken: Vec::new() };
        assert!(outbox.flush(&mut socket).unwrap());
        check(&mut outbox, false, true);
        socket.room = 1;
        assert!(outbox.flush(&mut socket).unwrap());
        check(&mut outbox, true, false);
    }
}
