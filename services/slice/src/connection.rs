//! The connection of one virtual switch to one controller: its socket, its bytes, and how long it may be silent.
//!
//! In: readiness of the socket, messages for the controller, and the time. Out: whole messages of the controller, or why the connection has
//! to end. It reads no message beyond its length.

use crate::inbox::Inbox;
use crate::outbox::{Outbox, WAITING_BYTES_MAX};
use crate::tls::Wire;
use openflow::Version;
use rustix::net::{AddressFamily, SocketFlags, SocketType};
use rustls::ClientConfig;
use std::io::{ErrorKind, Read};
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

/// How long a controller may take to accept a connection, and then to finish TLS and send its hello, in milliseconds.
const HANDSHAKE_MS: u64 = 10_000;
/// After this silence, in milliseconds, the controller gets an echo request.
const ECHO_AFTER_MS: u64 = 15_000;
/// After this silence, in milliseconds, the connection ends. Half a message is silence too.
const SILENCE_MS: u64 = 30_000;
/// A controller that takes no byte for this long, in milliseconds, while some wait, does not read.
const STALL_MS: u64 = 15_000;
/// OFPT_ECHO_REQUEST.
const ECHO_REQUEST: u8 = 2;

/// A socket, and what waits on both sides of it.
#[derive(Debug)]
pub(crate) struct Socket {
    wire: Wire,
    pub(crate) inbox: Inbox,
    outbox: Outbox,
    is_connected: bool,
    /// Since when it has waited for the connection, and then for the first message.
    since_ms: u64,
    /// When the last whole message came.
    heard_ms: Option<u64>,
    /// When the socket last took bytes, or none waited.
    taken_ms: u64,
    is_asked: bool,
    /// Whether it is among those that are offered their bytes next.
    pub(crate) is_noted: bool,
}

impl Socket {
    /// Begins a connection. It is under way.
    ///
    /// # Errors
    /// Why it cannot be made.
    pub(crate) fn dial(
        address: SocketAddr,
        tls: Option<&Arc<ClientConfig>>,
        now_ms: u64,
    ) -> Result<Socket, String> {
        let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let socket = rustix::net::socket_with(family, SocketType::STREAM, flags, None);
        let socket = socket.map_err(|error| format!("there is no socket for it: {error}"))?;
        match rustix::net::connect(&socket, &address) {
            Ok(()) | Err(rustix::io::Errno::INPROGRESS) => {}
            Err(error) => return Err(format!("it cannot be reached: {error}")),
        }
        Ok(Socket {
            wire: Wire::new(socket.into(), address, tls)?,
            inbox: Inbox::default(),
            outbox: Outbox::default(),
            is_connected: false,
            since_ms: now_ms,
            heard_ms: None,
            taken_ms: now_ms,
            is_asked: false,
            is_noted: false,
        })
    }

    /// Whether the connection stands.
    pub(crate) fn is_connected(&self) -> bool {
        self.is_connected
    }

    /// The socket takes bytes, so the attempt to connect is over.
    ///
    /// # Errors
    /// The attempt failed.
    pub(crate) fn finish_dial(&mut self, now_ms: u64) -> Result<(), String> {
        match self.wire.stream().take_error() {
            Ok(None) => {}
            Ok(Some(error)) | Err(error) => return Err(format!("it cannot be reached: {error}")),
        }
        // Small messages are not held back for larger ones. The sandbox may refuse it, and then they may be late.
        let _ = self.wire.stream().set_nodelay(true);
        (self.is_connected, self.since_ms, self.taken_ms) = (true, now_ms, now_ms);
        Ok(())
    }

    /// Whether to wait until there is something to read.
    pub(crate) fn may_read(&self) -> bool {
        self.is_connected && self.outbox.is_read()
    }

    /// Whether to wait until the socket takes bytes.
    pub(crate) fn wants_room(&self) -> bool {
        let may_leave = self.outbox.waiting() > 0 && !self.wire.is_handshaking();
        !self.is_connected || self.wire.wants_room() || may_leave
    }

    /// Reads once into the inbox. Returns whether there was something.
    ///
    /// # Errors
    /// The connection has ended.
    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> Result<bool, String> {
        match self.wire.read(buffer) {
            Ok(0) => Err("the controller closed the connection".to_owned()),
            Ok(count) => {
                self.inbox.push(&buffer[..count]);
                while let Some(count) = self.wire.decrypted(buffer) {
                    self.inbox.push(&buffer[..count]);
                }
                Ok(true)
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => Ok(false),
            Err(error) => Err(format!("the connection failed: {error}")),
        }
    }

    /// A whole message came.
    pub(crate) fn on_heard(&mut self, now_ms: u64) {
        (self.heard_ms, self.is_asked) = (Some(now_ms), false);
    }

    /// The slice did not read from the controller, so the time until now does not count as silence.
    pub(crate) fn on_unread(&mut self, now_ms: u64) {
        self.heard_ms = self.heard_ms.map(|_| now_ms);
    }

    /// Whether packet-ins may wait too. `None`: as at the last call, and they might at the first.
    pub(crate) fn room_change(&mut self) -> Option<bool> {
        self.outbox.judge().then(|| !self.outbox.is_crowded())
    }

    /// Queues a message. If much waits then, the socket is offered all of it.
    ///
    /// # Errors
    /// The controller has not read the earlier ones, or the connection has failed.
    pub(crate) fn tell(&mut self, message: &[u8], now_ms: u64) -> Result<(), String> {
        if self.outbox.waiting() == 0 {
            self.taken_ms = now_ms;
        }
        if !self.outbox.push(message) {
            return Err(format!(
                "the controller does not read: more than {WAITING_BYTES_MAX} bytes would wait for it"
            ));
        }
        // The socket may have room for all of it: then it is no reason to drop packet-ins.
        if self.outbox.is_filling() { self.flush(now_ms) } else { Ok(()) }
    }

    /// Writes what the socket takes.
    ///
    /// # Errors
    /// The connection has failed.
    pub(crate) fn flush(&mut self, now_ms: u64) -> Result<(), String> {
        if !self.is_connected {
            return Ok(());
        }
        let took = self.wire.push().and_then(|()| self.outbox.flush(&mut self.wire));
        if took.map_err(|error| format!("the connection failed: {error}"))? {
            self.taken_ms = now_ms;
        }
        Ok(())
    }

    /// Writes what the socket takes, and ends the connection.
    pub(crate) fn end(mut self, now_ms: u64) {
        // The last message says why, if the controller reads it.
        let _ = self.flush(now_ms);
        self.wire.close();
    }

    /// Looks at the time. `version` is the one that was agreed on, if there is one.
    ///
    /// # Errors
    /// The controller was silent, or took nothing, for too long.
    pub(crate) fn on_time(&mut self, now_ms: u64, version: Option<Version>) -> Result<(), String> {
        let since = |then_ms: u64| now_ms.saturating_sub(then_ms);
        let Some(heard_ms) = self.heard_ms else {
            let what = if self.is_connected { "sent no hello" } else { "did not answer" };
            return if since(self.since_ms) < HANDSHAKE_MS {
                Ok(())
            } else {
                Err(format!("the controller {what} for {} s", HANDSHAKE_MS / 1_000))
            };
        };
        if self.outbox.waiting() > 0 && since(self.taken_ms) >= STALL_MS {
            return Err(format!("the controller took no byte for {} s", STALL_MS / 1_000));
        }
        if !self.may_read() {
            self.on_unread(now_ms);
            return Ok(());
        }
        if since(heard_ms) >= SILENCE_MS {
            return Err(format!("the controller sent no message for {} s", SILENCE_MS / 1_000));
        }
        match version.filter(|_| !self.is_asked && since(heard_ms) >= ECHO_AFTER_MS) {
            None => Ok(()),
            Some(version) => {
                self.is_asked = true;
                self.tell(&[version.0, ECHO_REQUEST, 0, 8, 0, 0, 0, 0], now_ms)
            }
        }
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.wire.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::net::{TcpListener, TcpStream};

    /// A connection that stands, and the controller's end of it.
    fn connected() -> (Socket, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut socket = Socket::dial(listener.local_addr().unwrap(), None, 0).unwrap();
        let (theirs, _) = listener.accept().unwrap();
        socket.finish_dial(0).unwrap();
        (socket, theirs)
    }

    #[test]
    fn who_says_nothing_is_left_after_ten_seconds_and_later_after_thirty() {
        let (mut socket, mut theirs) = connected();
        assert_eq!(socket.on_time(9_999, None), Ok(()));
        assert!(socket.on_time(10_000, None).unwrap_err().contains("sent no hello for 10 s"));
        socket.on_heard(10_000);
        assert_eq!(socket.on_time(24_999, Some(Version::V1_3)), Ok(()));
        assert!(!socket.wants_room());
        assert_eq!(socket.on_time(25_000, Some(Version::V1_3)), Ok(()));
        assert_eq!(socket.on_time(26_000, Some(Version::V1_3)), Ok(()));
        socket.flush(26_000).unwrap();
        let mut told = [0; 8];
        theirs.read_exact(&mut told).unwrap();
        assert_eq!(told, [4, 2, 0, 8, 0, 0, 0, 0]);
        theirs.set_nonblocking(true).unwrap();
        assert_eq!(theirs.read(&mut told).unwrap_err().kind(), ErrorKind::WouldBlock, "it is asked once");
        assert!(socket.on_time(40_000, Some(Version::V1_3)).unwrap_err().contains("no message for 30 s"));
    }

    #[test]
    fn who_does_not_read_is_not_read_and_left_after_fifteen_seconds() {
        let (mut socket, theirs) = connected();
        socket.on_heard(0);
        while socket.outbox.is_read() {
            socket.tell(&[7; 60_000], 1_000).unwrap();
            socket.flush(1_000).unwrap();
        }
        assert!(!socket.may_read() && socket.wants_room());
        assert_eq!(socket.on_time(15_999, None), Ok(()));
        assert!(socket.on_time(16_000, None).unwrap_err().contains("took no byte for 15 s"));
        let more = std::iter::repeat_with(|| socket.tell(&[7; 60_000], 16_000)).find(Result::is_err);
        assert!(more.unwrap().unwrap_err().contains("does not read"));
        drop(theirs);
    }

    #[test]
    fn the_end_of_the_connection_is_said() {
        let (mut socket, mut theirs) = connected();
        let mut buffer = [0; 64];
        assert_eq!(socket.read(&mut buffer), Ok(false));
        theirs.write_all(&[1, 0, 0, 8, 0, 0, 0, 0]).unwrap();
        drop(theirs);
        // The bytes and the end may be readable at different times.
        while socket.read(&mut buffer) != Ok(true) {}
        assert_eq!(socket.inbox.take().unwrap().map(<[u8]>::len), Some(8));
        let end = std::iter::repeat_with(|| socket.read(&mut buffer)).find(Result::is_err);
        assert!(end.unwrap().unwrap_err().contains("closed the connection"));
    }

    #[test]
    fn nobody_there_is_found_when_the_attempt_is_over() {
        let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let failed = match Socket::dial(free, None, 0) {
            Ok(mut socket) => {
                let mut waits = [rustix::event::PollFd::new(&socket, rustix::event::PollFlags::OUT)];
                rustix::event::poll(&mut waits, None).unwrap();
                socket.finish_dial(1).unwrap_err()
            }
            Err(failed) => failed,
        };
        assert!(failed.contains("it cannot be reached"), "{failed}");
    }
}
