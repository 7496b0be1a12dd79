//! Messages that all workers must receive and that did not fit into the queue of one. They are sent first, in order, in a later turn.
//!
//! Pure, except for the passed function that sends. Never waits.

use std::collections::VecDeque;

/// The maximum number of pending messages for one worker. Beyond it, the newest message is dropped. By then the worker has
/// made no progress for so long that the monitor restarts the kernel process.
const PENDING_MAX: usize = 4096;

/// The pending messages for each worker.
#[derive(Debug)]
pub struct PendingMessages<Message> {
    queues: Vec<VecDeque<Message>>,
}

impl<Message> PendingMessages<Message> {
    /// Creates empty queues for this many workers.
    pub fn new(workers: usize) -> Self {
        PendingMessages { queues: (0..workers).map(|_| VecDeque::new()).collect() }
    }

    /// Adds a message for a worker. Returns `false` if it was dropped.
    pub fn push(&mut self, worker: usize, message: Message) -> bool {
        let queue = self.queues.get_mut(worker).filter(|queue| queue.len() < PENDING_MAX);
        queue.map(|queue| queue.push_back(message)).is_some()
    }

    /// Sends the messages that the queues accept: `send` returns a message that its worker's queue does not accept.
    pub fn send(&mut self, mut send: impl FnMut(usize, Message) -> Result<(), Message>) {
        for (worker, queue) in self.queues.iter_mut().enumerate() {
            while let Some(message) = queue.pop_front() {
                if let Err(message) = send(worker, message) {
                    queue.push_front(message);
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
    fn a_full_box_delays_a_message_and_loses_none() {
        let mut pending = PendingMessages::new(2);
        let mut came = Vec::new();
        assert!(pending.push(0, "unload") && pending.push(1, "unload"));
        let mut take = |worker, message, is_full| {
            if is_full {
                return Err(message);
            }
            came.push((worker, message));
            Ok(())
        };
        pending.send(|worker, message| take(worker, message, worker == 0));
        assert!(pending.push(0, "shut down") && pending.push(1, "shut down"));
        pending.send(|worker, message| take(worker, message, false));
        assert_eq!(came, [(1, "unload"), (0, "unload"), (0, "shut down"), (1, "shut down")]);
    }

    #[test]
    fn who_never_reads_is_owed_so_much_and_no_more() {
        let mut pending = PendingMessages::new(1);
        assert!((0..PENDING_MAX).all(|message| pending.push(0, message)));
        assert!(!pending.push(0, PENDING_MAX));
        assert!(!pending.push(1, 0), "there is no such worker");
    }
}
