//! Letters that all workers must get and that did not fit into the box of one: they go there first, in their order, in a later turn.
//!
//! Pure but for the sending, which is handed in. Never waits.

use std::collections::VecDeque;

/// Letters that one worker may be owed. Beyond it the newest is lost; the worker has not moved for so long then that the monitor ends the
/// kernel process, and the next one begins anew.
const OWED_MAX: usize = 1024;

/// What is owed to each worker.
#[derive(Debug)]
pub struct Owed<Letter> {
    queues: Vec<VecDeque<Letter>>,
}

impl<Letter> Owed<Letter> {
    /// So many workers, to whom nothing is owed.
    pub fn new(workers: usize) -> Self {
        Owed { queues: (0..workers).map(|_| VecDeque::new()).collect() }
    }

    /// One letter more for a worker. `false` if it is lost.
    pub fn push(&mut self, worker: usize, letter: Letter) -> bool {
        let queue = self.queues.get_mut(worker).filter(|queue| queue.len() < OWED_MAX);
        queue.map(|queue| queue.push_back(letter)).is_some()
    }

    /// Sends what the boxes take: `send` gives a letter back that its worker's does not.
    pub fn send(&mut self, mut send: impl FnMut(usize, Letter) -> Result<(), Letter>) {
        for (worker, queue) in self.queues.iter_mut().enumerate() {
            while let Some(letter) = queue.pop_front() {
                if let Err(letter) = send(worker, letter) {
                    queue.push_front(letter);
                    break;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_box_delays_a_letter_and_loses_none() {
        let mut owed = Owed::new(2);
        let mut came = Vec::new();
        assert!(owed.push(0, "unload") && owed.push(1, "unload"));
        let mut take = |worker, letter, is_full| {
            if is_full {
                return Err(letter);
            }
            came.push((worker, letter));
            Ok(())
        };
        owed.send(|worker, letter| take(worker, letter, worker == 0));
        assert!(owed.push(0, "shut down") && owed.push(1, "shut down"));
        owed.send(|worker, letter| take(worker, letter, false));
        assert_eq!(came, [(1, "unload"), (0, "unload"), (0, "shut down"), (1, "shut down")]);
    }

    #[test]
    fn who_never_reads_is_owed_so_much_and_no_more() {
        let mut owed = Owed::new(1);
        assert!((0..OWED_MAX).all(|letter| owed.push(0, letter)));
        assert!(!owed.push(0, OWED_MAX));
        assert!(!owed.push(1, 0), "there is no such worker");
    }
}
