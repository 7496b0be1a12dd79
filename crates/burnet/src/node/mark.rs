//! Which trusted app a thread of the kernel process is calling, written where the monitor reads it when this process is over.
//!
//! In: a call. Out: what the call gives. A store before it and one after it; never a system call, a lock or a wait.

use std::sync::Arc;

use abi::ZoneId;
use ring::{BOARD_SLOTS, Board};

/// One thread's place on the board.
#[derive(Clone, Debug, Default)]
pub struct Mark {
    /// None where no monitor looks at it.
    board: Option<Arc<Board>>,
    slot: usize,
}

impl Mark {
    /// The place of the worker of this number. There are fewer workers than places.
    pub fn of_worker(board: Option<Arc<Board>>, number: usize) -> Mark {
        Mark { board, slot: number }
    }

    /// The place of the thread that loads apps.
    pub fn of_control(board: Option<Arc<Board>>) -> Mark {
        Mark { board, slot: BOARD_SLOTS - 1 }
    }

    /// Makes a call into the code of a zone.
    pub fn calling<T>(&self, zone: ZoneId, call: impl FnOnce() -> T) -> T {
        self.write(u64::from(zone.0));
        let given = call();
        self.write(0);
        given
    }

    fn write(&self, word: u64) {
        if let Some(board) = &self.board {
            board.write(self.slot, word);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_zone_stands_there_during_the_call_and_not_after_it() {
        let board = Arc::new(Board::create().unwrap().0);
        let mark = Mark::of_worker(Some(board.clone()), 3);
        assert_eq!(mark.calling(ZoneId(7), || board.read()[3]), 7);
        assert_eq!(board.read(), [0; BOARD_SLOTS]);
        assert_eq!(Mark::default().calling(ZoneId(7), || 1), 1);
    }
}
