//! Records which trusted app a thread of the kernel process is calling, and measures the time of its calls.
//!
//! The monitor reads the record if the kernel process crashes. In: a call. Out: its result. Each call costs two stores and
//! two reads of the clock, once for all events of one read of a switch. Linux maps the clock, so reading it needs no system
//! call (vdso(7)). Never a lock or a wait.

use std::sync::Arc;
use std::time::{Duration, Instant};

use abi::ZoneId;
use ring::{BOARD_SLOTS, Board};

/// One thread's place on the board.
#[derive(Clone, Debug, Default)]
pub struct CallTracker {
    /// `None` if no monitor reads the board.
    board: Option<Arc<Board>>,
    slot: usize,
}

impl CallTracker {
    /// The place of the worker with this number. There are fewer workers than places.
    pub fn of_worker(board: Option<Arc<Board>>, number: usize) -> CallTracker {
        CallTracker { board, slot: number }
    }

    /// The place of the thread that loads apps.
    pub fn of_control(board: Option<Arc<Board>>) -> CallTracker {
        CallTracker { board, slot: BOARD_SLOTS - 1 }
    }

    /// Makes a call into the code of a zone.
    pub fn calling<T>(&self, zone: ZoneId, call: impl FnOnce() -> T) -> T {
        self.write(u64::from(zone.0));
        let given = call();
        self.write(0);
        given
    }

    /// The same, and returns the duration too. The clock includes the time in which the thread sleeps or waits for the
    /// processor.
    pub fn timing<T>(&self, zone: ZoneId, call: impl FnOnce() -> T) -> (T, Duration) {
        let began = Instant::now();
        let given = self.calling(zone, call);
        (given, began.elapsed())
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
        let calls = CallTracker::of_worker(Some(board.clone()), 3);
        assert_eq!(calls.calling(ZoneId(7), || board.read()[3]), 7);
        assert_eq!(board.read(), [0; BOARD_SLOTS]);
        assert_eq!(CallTracker::default().calling(ZoneId(7), || 1), 1);
        let slept = Duration::from_millis(3);
        let (seen, took) = calls.timing(ZoneId(7), || {
            std::thread::sleep(slept);
            board.read()[3]
        });
        assert!(seen == 7 && took >= slept, "{took:?}");
    }
}
