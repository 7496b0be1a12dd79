//! A board: a shared page of words that one process writes and another reads after the first has ended.
//!
//! In: a slot and a word. Out: the words of all slots. It shows what a process was doing when it ended, at the cost of
//! one store per change. Nobody waits for it. The reader trusts a word no more than it trusts the writer.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use crate::atomic::Ordering;
use crate::fault::PortFault;
use crate::memory::mapping::{Mapping, open_plain, sealed};

/// Slots of a board, one for each writing thread.
pub const BOARD_SLOTS: usize = 64;

const BYTES: usize = BOARD_SLOTS * size_of::<u64>();

/// One end of a board. Both ends can do the same.
pub struct Board(Mapping);

impl Board {
    /// Makes a board of zeros, and the descriptor with which another process opens it.
    ///
    /// # Errors
    /// The system has no memory or descriptors left.
    pub fn create() -> io::Result<(Board, OwnedFd)> {
        let fd = sealed(c"burnet-board", BYTES)?;
        Ok((Board(Mapping::new(fd.as_fd(), BYTES)?), fd))
    }

    /// Opens a board that another process made.
    ///
    /// # Errors
    /// The descriptor is not a board: it has another size, or it is not sealed, so that it could shrink while mapped.
    pub fn open(fd: &OwnedFd) -> Result<Board, PortFault> {
        open_plain(fd.as_fd(), BYTES).map(Board)
    }

    /// Writes a word into a slot. Does nothing if the slot does not exist.
    pub fn write(&self, slot: usize, word: u64) {
        if let Some(place) = self.0.words().get(slot) {
            // Another process reads it after the end of this one, which orders it behind everything.
            place.store(word, Ordering::Relaxed);
        }
    }

    /// The words of all slots.
    pub fn read(&self) -> [u64; BOARD_SLOTS] {
        let mut words = [0; BOARD_SLOTS];
        for (word, place) in words.iter_mut().zip(self.0.words()) {
            *word = place.load(Ordering::Relaxed);
        }
        words
    }
}

impl std::fmt::Debug for Board {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Board").finish_non_exhaustive()
    }
}

#[cfg(all(test, not(miri)))]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_board_is_refused() {
        let file: OwnedFd = std::fs::File::open("/dev/null").unwrap().into();
        assert!(matches!(Board::open(&file), Err(PortFault::NotSealed)));
        let small = sealed(c"small", BYTES / 2).unwrap();
        assert!(matches!(Board::open(&small), Err(PortFault::NotAPort)));
    }

    #[test]
    fn words_are_seen_at_the_other_end_and_beyond_the_last_slot_there_is_nothing() {
        let (reader, fd) = Board::create().unwrap();
        let writer = Board::open(&fd).unwrap();
        drop(fd);
        writer.write(0, 7);
        writer.write(BOARD_SLOTS - 1, u64::MAX);
        writer.write(BOARD_SLOTS, 9);
        drop(writer);
        let words = reader.read();
        assert_eq!((words[0], words[1], words[BOARD_SLOTS - 1]), (7, 0, u64::MAX));
    }
}
