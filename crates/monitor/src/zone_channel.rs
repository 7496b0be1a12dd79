//! The monitor's end of a zone's socket, and the messages that wait for a service.
//!
//! In: messages for the service, as bytes of its contract, and the readiness of its socket. Out: the messages of a service. It decides nothing, and
//! never waits: what the socket does not take is sent later.

use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd};

use crate::channel::{Channel, ChannelError};
use crate::protocol::ToZone;

/// Most messages that wait for one service. One more is left out: records are told again, and of the others the next is as good.
const OUTBOX_MESSAGES_MAX: usize = 16;

/// Held open, so that the zone sees the end of the monitor.
pub(crate) struct ZoneChannel {
    /// `None` once the other end is closed.
    channel: Option<Channel>,
    outbox: VecDeque<Vec<u8>>,
}

impl ZoneChannel {
    pub(crate) fn new(channel: Channel) -> ZoneChannel {
        ZoneChannel { channel: Some(channel), outbox: VecDeque::new() }
    }

    /// Its descriptor, and whether messages wait for the zone.
    pub(crate) fn socket(&self) -> Option<(BorrowedFd<'_>, bool)> {
        self.channel.as_ref().map(|channel| (channel.as_fd(), !self.outbox.is_empty()))
    }

    /// Sends the message now or later. Returns whether there was room for it.
    pub(crate) fn tell(&mut self, message: Vec<u8>) -> bool {
        let has_room = self.outbox.len() < OUTBOX_MESSAGES_MAX;
        if has_room {
            self.outbox.push_back(message);
            self.send();
        }
        has_room
    }

    /// Sends a message about shared memory to an app. Returns whether it was sent. Nothing else is sent to an app after its welcome
    /// message, so nothing waits.
    pub(crate) fn tell_app(&mut self, message: &ToZone, fd: Option<BorrowedFd<'_>>) -> bool {
        let fds: Vec<_> = fd.into_iter().collect();
        self.channel.as_ref().is_some_and(|channel| channel.try_send(message, &fds).is_ok())
    }

    pub(crate) fn send(&mut self) {
        while let (Some(channel), Some(message)) = (&self.channel, self.outbox.front()) {
            match channel.try_send_bytes(message, &[]) {
                Err(ChannelError::NotNow) => return,
                // Sent, or its end is about to be seen.
                _ => drop(self.outbox.pop_front()),
            }
        }
    }

    /// The next message of the service, or its fault. `None`: it has sent no more.
    pub(crate) fn receive(&mut self) -> Option<Result<Vec<u8>, String>> {
        match self.channel.as_ref()?.try_receive_bytes() {
            Ok(message) => Some(Ok(message)),
            Err(ChannelError::NotNow) => None,
            Err(ChannelError::Closed) => {
                self.channel = None;
                None
            }
            Err(error) => Some(Err(format!("its message to the monitor cannot be read: {error}"))),
        }
    }
}
