//! Messages of controllers that wait until the physical switch has confirmed a group or meter.
//!
//! In: messages. Out: the same, in order. It decides nothing.

use std::collections::VecDeque;

/// The most messages that wait. Beyond it a controller gets an error.
const MESSAGES_MAX: usize = 1_024;
/// The most bytes that wait.
const BYTES_MAX: usize = 1 << 20;

/// A message that waits.
#[derive(Clone, Debug)]
pub(crate) struct Message {
    pub(crate) controller: usize,
    /// The connection by which it came.
    pub(crate) serial: u64,
    pub(crate) bytes: Vec<u8>,
}

/// The messages of one virtual switch.
#[derive(Clone, Debug, Default)]
pub(crate) struct Held {
    messages: VecDeque<Message>,
    bytes: usize,
}

impl Held {
    /// Keeps a message. Returns whether there was room.
    pub(crate) fn keep(&mut self, message: Message) -> bool {
        let bytes = self.bytes + message.bytes.len();
        if self.messages.len() >= MESSAGES_MAX || bytes > BYTES_MAX {
            return false;
        }
        self.bytes = bytes;
        self.messages.push_back(message);
        true
    }

    /// The oldest message.
    pub(crate) fn take(&mut self) -> Option<Message> {
        let message = self.messages.pop_front()?;
        self.bytes -= message.bytes.len();
        Some(message)
    }

    /// Forgets everything: the session of the physical switch ended.
    pub(crate) fn clear(&mut self) {
        *self = Held::default();
    }
}
