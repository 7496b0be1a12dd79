//! The agent's TCP connection with the label service.
//!
//! In: datagrams for the service, bytes of the service, and the time. Out: datagrams of the service. It dials again by itself, and verifies nothing.
//!
//! What is on its way when the connection ends is lost. Reports have numbers, so the service asks for them again.

use super::program::{Trouble, io_trouble};
use crate::stream::Cutter;
use mio::net::TcpStream;
use mio::{Interest, Registry, Token};
use std::io::{ErrorKind, Read, Write};
use std::net::SocketAddr;

/// How long it waits before it dials again.
const DIAL_AGAIN_NS: u64 = 1_000_000_000;

/// What waits for the service at most, in bytes. A datagram beyond it is lost.
const WAITING_BYTES_MAX: usize = 64 << 10;

/// What is read in one turn at most, so that the meter is read in time.
const READ_BYTES_MAX: usize = 64 << 10;

/// The connection, or the attempt to make one.
#[derive(Debug)]
pub(super) struct Line {
    address: SocketAddr,
    stream: Option<TcpStream>,
    cutter: Cutter,
    waiting: Vec<u8>,
    dial_ns: u64,
    has_said: bool,
}

impl Line {
    pub(super) fn new(address: SocketAddr) -> Line {
        let (stream, cutter, waiting) = (None, Cutter::default(), Vec::new());
        Line { address, stream, cutter, waiting, dial_ns: 0, has_said: false }
    }

    /// Dials, if there is no connection and it is time.
    ///
    /// # Errors
    ///
    /// This process has no descriptor left.
    pub(super) fn dial(&mut self, now_ns: u64, registry: &Registry, token: Token) -> Result<(), Trouble> {
        if self.stream.is_some() || now_ns < self.dial_ns {
            return Ok(());
        }
        self.dial_ns = now_ns.saturating_add(DIAL_AGAIN_NS);
        // An address that cannot be reached now may be later.
        let Ok(mut stream) = TcpStream::connect(self.address) else { return Ok(()) };
        let both = Interest::READABLE | Interest::WRITABLE;
        registry.register(&mut stream, token, both).map_err(io_trouble("waiting for the label service"))?;
        // Without it, a report may wait for the one before it.
        let _ = stream.set_nodelay(true);
        self.stream = Some(stream);
        Ok(())
    }

    /// Sends a datagram, or keeps it until the socket takes it. Without a connection, it is lost.
    pub(super) fn send(&mut self, datagram: &[u8]) {
        if self.stream.is_some() && self.waiting.len() + datagram.len() <= WAITING_BYTES_MAX {
            self.waiting.extend_from_slice(datagram);
            self.flush();
        }
    }

    /// Writes what waits, and reads. Gives each datagram of the service.
    pub(super) fn turn(&mut self, mut each: impl FnMut(&[u8])) {
        self.flush();
        let mut buffer = [0; 4096];
        let mut left = READ_BYTES_MAX;
        while left > 0 {
            let Some(stream) = &mut self.stream else { break };
            match stream.read(&mut buffer) {
                Ok(0) => self.end("it closed the connection"),
                Ok(count) => {
                    left = left.saturating_sub(count);
                    self.has_said = false;
                    self.cutter.push(buffer.get(..count).unwrap_or_default());
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                // A connection that is not made yet looks so too.
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::NotConnected) => {
                    break;
                }
                Err(error) => self.end(&error.to_string()),
            }
            loop {
                match self.cutter.next_datagram() {
                    Ok(Some(datagram)) => each(datagram),
                    Ok(None) => break,
                    Err(why) => {
                        self.end(&why.to_string());
                        break;
                    }
                }
            }
        }
    }

    #[cfg(test)]
    fn is_connected(&self) -> bool {
        self.stream.is_some()
    }

    fn flush(&mut self) {
        while let (false, Some(stream)) = (self.waiting.is_empty(), &mut self.stream) {
            match stream.write(&self.waiting) {
                Ok(count) if count > 0 => drop(self.waiting.drain(..count)),
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::NotConnected) => {
                    return;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Ok(_) => return self.end("it takes nothing"),
                Err(error) => self.end(&error.to_string()),
            }
        }
    }

    fn end(&mut self, why: &str) {
        (self.stream, self.cutter) = (None, Cutter::default());
        self.waiting.clear();
        if !std::mem::replace(&mut self.has_said, true) {
            tracing::warn!(
                "no connection with the label service at {}: {why}; rates stay, labels do not follow",
                self.address
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{Header, Key, Message, write};
    use crate::vnic::AgentId;
    use std::net::TcpListener;
    use std::time::{Duration, Instant};

    const SERVICE: Token = Token(0);

    fn hello() -> Vec<u8> {
        let (from, to) = (AgentId(1), AgentId(2));
        let header = Header { from, to, from_session: 1, to_session: 0, sequence: 0 };
        write(&header, &Message::Hello, &Key([7; 32]))
    }

    /// Lets the line work until this holds.
    fn work(line: &mut Line, poll: &mio::Poll, now_ns: u64, mut holds: impl FnMut(&Line, usize) -> bool) {
        let (begin, mut heard) = (Instant::now(), 0);
        while !holds(line, heard) {
            assert!(begin.elapsed() < Duration::from_secs(20), "not in time");
            line.dial(now_ns, poll.registry(), SERVICE).unwrap();
            let count = |datagram: &[u8]| {
                assert_eq!(datagram, hello());
                heard += 1;
            };
            line.turn(count);
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn it_talks_with_the_service_and_dials_again() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let poll = mio::Poll::new().unwrap();
        let mut line = Line::new(listener.local_addr().unwrap());
        line.send(b"lost");
        line.dial(0, poll.registry(), SERVICE).unwrap();
        let (mut service, _) = listener.accept().unwrap();
        service.write_all(&[hello(), hello()].concat()).unwrap();
        work(&mut line, &poll, 0, |_, heard| heard == 2);
        line.send(&hello());
        let mut got = vec![0; hello().len()];
        service.read_exact(&mut got).unwrap();
        assert_eq!(got, hello(), "and nothing of what was sent before the connection");
        service.write_all(b"rubbish").unwrap();
        work(&mut line, &poll, 1, |line, _| !line.is_connected());
        line.dial(DIAL_AGAIN_NS - 1, poll.registry(), SERVICE).unwrap();
        assert!(!line.is_connected(), "not at once");
        line.dial(DIAL_AGAIN_NS, poll.registry(), SERVICE).unwrap();
        assert!(listener.accept().is_ok());
    }
}
