//! Packet-ins for controllers that have not read the earlier ones: they are dropped, as by a switch whose queue is full.
//!
//! In: a switch, a message. Out: whether it may wait, and how many could not. Other messages are never dropped.

use super::Slice;
use flow::DatapathId;
use slicer::{CONTROLLERS_MAX, Connection};

impl Slice {
    /// Whether a packet-in of this switch can be told. If no controller takes it, it is dropped before anything else is done with it.
    pub(super) fn takes_packets(&self, datapath: DatapathId) -> bool {
        let from = Connection { datapath, controller: 0 };
        let mut there =
            self.sockets.range(from..=Connection { datapath, controller: CONTROLLERS_MAX }).peekable();
        there.peek().is_none()
            || self.standalone.contains_key(&datapath)
            || there.any(|(_, socket)| socket.takes_packets())
    }

    /// A packet-in is dropped.
    pub(super) fn note_unread(&mut self, datapath: DatapathId) {
        *self.unread.entry(datapath).or_default() += 1;
    }

    /// How many were dropped at a switch.
    pub(super) fn unread_at(&self, datapath: DatapathId) -> u64 {
        self.unread.get(&datapath).copied().unwrap_or_default()
    }
}
