//! Room for what controllers are told: bytes that wait are offered to the sockets, and the virtual switch is told which controllers read too slowly.
//!
//! In: sockets. Out: bytes to them, and for which controllers packet-ins are to be dropped. It drops nothing itself: the virtual switch does, before
//! a packet gets a buffer.

use super::{Slice, Switches};
use crate::connection::Socket;
use burnet_sdk::Commands;
use slicer::Connection;

/// Tells the virtual switch if the room for packet-ins has changed.
pub(super) fn note(connection: Connection, socket: &mut Socket, switches: &mut Option<Switches>) {
    if let (Some(has_room), Some(switches)) = (socket.room_change(), switches) {
        switches.slicer.set_room(connection, has_room);
    }
}

impl Slice {
    /// Offers the sockets what waits for them.
    pub(super) fn flush(&mut self, out: &mut Commands) {
        let now_ms = self.clock.now_ms;
        let mut noted = std::mem::take(&mut self.unflushed);
        for connection in noted.drain(..) {
            let Some(socket) = self.sockets.get_mut(&connection) else { continue };
            socket.is_noted = false;
            match socket.flush(now_ms) {
                Ok(()) => note(connection, socket, &mut self.switches),
                Err(why) => self.lose(connection, &why, out),
            }
        }
        // What was noted meanwhile is behind the memory that is used again.
        noted.append(&mut self.unflushed);
        self.unflushed = noted;
    }
}
