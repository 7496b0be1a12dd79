//! The connections of agents: sockets, datagrams cut out of what they read, and what waits to be written.
//!
//! ```text
//!   listeners ──accept──> Line: unproven ──a datagram of this session──> the line of an agent
//!                           └─ 5 s without one, rubbish, or nobody reads ──> closed
//! ```
//!
//! In: sockets that are ready, datagrams to send. Out: whole datagrams. It never waits for a socket, and judges no datagram: [`crate::agents`] does.

use crate::agents::AGENTS_MAX;
use burnet_sdk::{Ready, Sockets, Wait};
use edge::protocol::Malformed;
use edge::stream::Cutter;
use edge::vnic::AgentId;
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};

/// The most connections that have not proven their agent. With one more, the oldest of them is closed.
pub const UNPROVEN_MAX: usize = 64;

/// The most connections.
pub const LINES_MAX: usize = AGENTS_MAX + UNPROVEN_MAX;

/// How long a connection may take to prove its agent, in milliseconds. An agent needs two round trips.
const PROOF_MS: u64 = 5_000;

/// What waits for an agent at most, in bytes. An agent that reads so little is closed, and dials again.
const WAITING_BYTES_MAX: usize = 256 << 10;

/// What is read from one agent before the others have their turn.
const READ_BYTES: usize = 32 << 10;

/// Connections that are accepted in one turn.
const ACCEPTED_AT_ONCE: usize = 64;

/// The number of a connection, which is also its token among sockets, behind those of the listeners.
pub type LineNo = usize;

#[derive(Debug)]
struct Line {
    stream: TcpStream,
    cutter: Cutter,
    waiting: Vec<u8>,
    since_ms: u64,
    agent: Option<AgentId>,
}

/// All connections.
#[derive(Debug, Default)]
pub struct Lines {
    listeners: Vec<TcpListener>,
    /// At most [`LINES_MAX`]. A line that is gone leaves its place.
    lines: Vec<Option<Line>>,
}

/// What a turn of a connection gave.
#[derive(Debug, Default)]
pub struct Turn {
    /// Whole datagrams, in order.
    pub datagrams: Vec<Vec<u8>>,
    /// What came is no datagram: the connection is closed.
    pub rubbish: Option<Malformed>,
}

impl Lines {
    /// Accepts connections there from now on.
    pub fn listen(&mut self, listeners: Vec<TcpListener>) {
        self.listeners = listeners;
    }

    /// Names the sockets to wait on.
    pub fn sockets<'a>(&'a self, sockets: &mut Sockets<'a>) {
        self.listeners.iter().enumerate().for_each(|(at, it)| sockets.add(at, it, Wait::Readable));
        for (at, line) in self.lines.iter().enumerate() {
            if let Some(line) = line {
                let wait = if line.waiting.is_empty() { Wait::Readable } else { Wait::Either };
                sockets.add(self.listeners.len() + at, &line.stream, wait);
            }
        }
    }

    /// A socket is ready. None: it was a listener, or is gone.
    pub fn on_socket(&mut self, token: usize, ready: Ready, now_ms: u64) -> Option<(LineNo, Turn)> {
        let Some(number) = token.checked_sub(self.listeners.len()) else {
            self.accept(token, now_ms);
            return None;
        };
        if ready.writable {
            self.flush(number);
        }
        let line = self.lines.get_mut(number)?.as_mut()?;
        let mut turn = Turn::default();
        let is_open = !ready.readable || line.read(&mut turn);
        if !is_open || turn.rubbish.is_some() {
            self.close(number);
        }
        Some((number, turn))
    }

    /// The agent at the other end is proven to be this one. An earlier connection of it is over.
    pub fn prove(&mut self, number: LineNo, agent: AgentId) {
        let earlier = self.of(agent).filter(|earlier| *earlier != number);
        if let Some(earlier) = earlier {
            self.close(earlier);
        }
        if let Some(Some(line)) = self.lines.get_mut(number) {
            line.agent = Some(agent);
        }
    }

    /// The connection of an agent.
    pub fn of(&self, agent: AgentId) -> Option<LineNo> {
        let is_of = |line: &Option<Line>| line.as_ref().is_some_and(|line| line.agent == Some(agent));
        self.lines.iter().position(is_of)
    }

    /// Sends a datagram. What a connection does not take, the protocol sends again.
    pub fn send(&mut self, number: LineNo, datagram: &[u8]) {
        let Some(Some(line)) = self.lines.get_mut(number) else { return };
        if line.waiting.len() + datagram.len() > WAITING_BYTES_MAX {
            return self.close(number);
        }
        line.waiting.extend_from_slice(datagram);
        self.flush(number);
    }

    /// Time has passed: connections that have proven nothing are closed.
    pub fn on_time(&mut self, now_ms: u64) {
        for line in &mut self.lines {
            line.take_if(|line| line.agent.is_none() && now_ms.saturating_sub(line.since_ms) >= PROOF_MS);
        }
    }

    /// When it wants [`Lines::on_time`] again.
    pub fn next_ms(&self) -> Option<u64> {
        let unproven = self.lines.iter().flatten().filter(|line| line.agent.is_none());
        unproven.map(|line| line.since_ms.saturating_add(PROOF_MS)).min()
    }

    fn close(&mut self, number: LineNo) {
        if let Some(line) = self.lines.get_mut(number) {
            *line = None;
        }
    }

    fn flush(&mut self, number: LineNo) {
        let Some(Some(line)) = self.lines.get_mut(number) else { return };
        if !line.write() {
            self.close(number);
        }
    }

    fn accept(&mut self, listener: usize, now_ms: u64) {
        for _ in 0..ACCEPTED_AT_ONCE {
            // Nobody waits any more, or the process has no descriptor left: then it is tried again when the listener is ready.
            let Some(Ok((stream, _))) = self.listeners.get(listener).map(TcpListener::accept) else { return };
            if stream.set_nonblocking(true).is_err() {
                continue;
            }
            // Reports are small and must not wait for each other. The sandbox may refuse it, and then they may be late.
            let _ = stream.set_nodelay(true);
            let line = Line {
                stream,
                cutter: Cutter::default(),
                waiting: Vec::new(),
                since_ms: now_ms,
                agent: None,
            };
            if let Some(place) = self.place() {
                *place = Some(line);
            }
        }
    }

    /// A place for one more connection.
    fn place(&mut self) -> Option<&mut Option<Line>> {
        let unproven = self.lines.iter().enumerate().filter_map(|(at, line)| {
            line.as_ref().filter(|line| line.agent.is_none()).map(|line| (line.since_ms, at))
        });
        let unproven: Vec<(u64, usize)> = unproven.collect();
        let at = match self.lines.iter().position(Option::is_none) {
            _ if unproven.len() >= UNPROVEN_MAX => unproven.iter().min()?.1,
            Some(free) => free,
            None if self.lines.len() < LINES_MAX => {
                self.lines.push(None);
                self.lines.len() - 1
            }
            None => return None,
        };
        self.lines.get_mut(at)
    }
}

impl Line {
    /// Reads once. Returns whether the connection is still open.
    fn read(&mut self, turn: &mut Turn) -> bool {
        let mut buffer = [0; READ_BYTES];
        match self.stream.read(&mut buffer) {
            Ok(0) => return false,
            Ok(count) => self.cutter.push(buffer.get(..count).unwrap_or_default()),
            Err(error) => return matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted),
        }
        loop {
            match self.cutter.next_datagram() {
                Ok(Some(datagram)) => turn.datagrams.push(datagram.to_vec()),
                Ok(None) => return true,
                Err(rubbish) => {
                    turn.rubbish = Some(rubbish);
                    return false;
                }
            }
        }
    }

    /// Writes what the socket takes. Returns whether the connection is still open.
    fn write(&mut self) -> bool {
        while !self.waiting.is_empty() {
            match self.stream.write(&self.waiting) {
                Ok(0) => return false,
                Ok(count) => drop(self.waiting.drain(..count)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return true,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return false,
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::SocketAddr;

    const READABLE: Ready = Ready { readable: true, writable: false };

    fn lines() -> (Lines, SocketAddr) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        listener.set_nonblocking(true).unwrap();
        let mut lines = Lines::default();
        lines.listen(vec![listener]);
        (lines, address)
    }

    /// Connects, and has the connection accepted.
    fn connect(lines: &mut Lines, address: SocketAddr, now_ms: u64) -> TcpStream {
        let stream = TcpStream::connect(address).unwrap();
        lines.on_socket(0, READABLE, now_ms);
        stream
    }

    fn open(lines: &Lines) -> usize {
        lines.lines.iter().flatten().count()
    }

    /// Whether the service has closed it.
    fn is_closed(stream: &mut TcpStream) -> bool {
        stream.read(&mut [0]).map_or(true, |count| count == 0)
    }

    #[test]
    fn a_connection_that_proves_nothing_is_closed_in_time_or_for_others() {
        let (mut lines, address) = lines();
        let mut first = connect(&mut lines, address, 0);
        let others: Vec<TcpStream> = (1..UNPROVEN_MAX).map(|_| connect(&mut lines, address, 10)).collect();
        lines.prove(1, AgentId(7));
        assert_eq!((open(&lines), lines.next_ms()), (UNPROVEN_MAX, Some(PROOF_MS)));
        let _one_more = connect(&mut lines, address, 20);
        assert_eq!(open(&lines), UNPROVEN_MAX + 1);
        let _two_more = connect(&mut lines, address, 20);
        assert_eq!(open(&lines), UNPROVEN_MAX + 1);
        assert!(is_closed(&mut first), "the oldest");
        lines.on_time(PROOF_MS + 20);
        assert_eq!((open(&lines), lines.of(AgentId(7)), lines.next_ms()), (1, Some(1), None));
        drop(others);
    }

    #[test]
    fn rubbish_and_a_second_connection_of_an_agent_close_the_first() {
        let (mut lines, address) = lines();
        let mut rubbish = connect(&mut lines, address, 0);
        rubbish.write_all(b"GET / HTTP/1.1\r\n").unwrap();
        let (_, turn) = lines.on_socket(1, READABLE, 0).unwrap();
        assert!(turn.rubbish == Some(Malformed::NotOurs) && open(&lines) == 0);
        let (mut one, _two) = (connect(&mut lines, address, 0), connect(&mut lines, address, 0));
        lines.prove(0, AgentId(7));
        lines.prove(1, AgentId(7));
        assert!(is_closed(&mut one) && lines.of(AgentId(7)) == Some(1));
    }

    #[test]
    fn an_agent_that_does_not_read_is_closed() {
        let (mut lines, address) = lines();
        let _deaf = connect(&mut lines, address, 0);
        // More than Linux keeps for a connection.
        for _ in 0..20_000 {
            lines.send(0, &[0; 1_000]);
        }
        assert_eq!(open(&lines), 0);
    }
}
