//! Decides which listening sockets are checked: those that the poll reported, those with more connections than one turn accepts, and all once per second.
//!
//! Pure. The poll reports a new connection once. If the system had no file descriptor for it, it waits without a further
//! report.

use std::collections::BTreeSet;

/// The interval of the check of all sockets.
const LOOK_MS: u64 = 1_000;

/// The sockets of a node, by number.
#[derive(Debug)]
pub struct Accepting {
    sockets: usize,
    due: BTreeSet<usize>,
    next_look_ms: u64,
}

impl Accepting {
    /// Creates the state for this many sockets; none needs a check yet.
    pub fn new(sockets: usize) -> Accepting {
        Accepting { sockets, due: BTreeSet::new(), next_look_ms: LOOK_MS }
    }

    /// Connections wait at this socket, or may wait.
    pub fn push(&mut self, socket: usize) {
        self.due.insert(socket);
    }

    /// Whether a socket must be checked before the next wait.
    pub fn is_urgent(&self) -> bool {
        !self.due.is_empty()
    }

    /// Returns the sockets to check now, each once.
    pub fn take(&mut self, now_ms: u64) -> BTreeSet<usize> {
        if now_ms >= self.next_look_ms {
            self.next_look_ms = now_ms + LOOK_MS;
            self.due.extend(0..self.sockets);
        }
        std::mem::take(&mut self.due)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(accepting: &mut Accepting, now_ms: u64) -> Vec<usize> {
        accepting.take(now_ms).into_iter().collect()
    }

    #[test]
    fn a_socket_that_nothing_tells_of_is_looked_at_every_second() {
        let mut accepting = Accepting::new(2);
        accepting.push(1);
        assert_eq!(taken(&mut accepting, 0), [1]);
        assert_eq!(taken(&mut accepting, LOOK_MS - 1), [0; 0]);
        assert_eq!(taken(&mut accepting, LOOK_MS), [0, 1]);
        assert_eq!(taken(&mut accepting, LOOK_MS + 1), [0; 0]);
    }

    #[test]
    fn a_socket_that_is_told_of_twice_is_looked_at_once_in_a_turn() {
        let mut accepting = Accepting::new(1);
        accepting.push(0);
        accepting.push(0);
        assert!(accepting.is_urgent());
        assert_eq!(taken(&mut accepting, 0), [0]);
        assert!(!accepting.is_urgent());
    }
}
