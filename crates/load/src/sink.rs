//! The fastest possible peer: it answers each packet-in with a prepared flow mod for its buffer, and reads nothing
//! else of it.
//!
//! ```text
//!   packet-ins ──one large read──> count by lengths ──buffer ids──> flow mods made before ──one large write──>
//! ```
//!
//! A generator that measures the sink measures the limit of generator and machine: no controller can be faster. The
//! sink learns no addresses. It does not read from a connection that does not take its answers.

use flow::{Action, Instruction, Match};
use mio::net::{TcpListener, TcpStream};
use mio::{Events, Interest, Poll, Token};
use openflow::message::{FlowModFields, MultipartRequest, RequestBody};
use openflow::{Body, Message, Unwritable, Version, write};
use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use crate::stream::{Inbound, Outbound, Room};
use crate::template::FlowModBatch;

/// The longest sleep before it checks whether it must end.
const NAP: Duration = Duration::from_millis(50);
/// Readiness events of one poll. The next poll, which follows at once, returns the others.
const EVENTS_PER_POLL: usize = 1024;
/// The listener's token. Connections have tokens from 0 on.
const LISTENER: Token = Token(usize::MAX - 1);

const TYPE_HELLO: u8 = 0;
const TYPE_ECHO_REQUEST: u8 = 2;
const TYPE_PACKET_IN: u8 = 10;

/// What a sink has done so far.
#[derive(Debug, Default)]
pub struct SinkCounters {
    /// Packet-ins that it answered.
    pub packet_ins: AtomicU64,
    /// Connections that it accepted.
    pub accepted: AtomicU64,
    /// Connections that are open now.
    pub open: AtomicU64,
}

/// A peer that answers every packet-in at once.
#[derive(Debug)]
pub struct Sink {
    poll: Poll,
    listener: TcpListener,
    connections: Vec<Option<Peer>>,
    free: Vec<usize>,
    queue: VecDeque<usize>,
    room: Room,
    answers: Answers,
    counters: Arc<SinkCounters>,
}

/// Prepared flow mods, for each version.
#[derive(Debug)]
struct Answers {
    of_1_0: FlowModBatch,
    of_1_3: FlowModBatch,
}

/// A connection.
#[derive(Debug)]
struct Peer {
    stream: TcpStream,
    inbound: Inbound,
    outbound: Outbound,
    readable: bool,
    writable: bool,
    queued: bool,
    version: Option<Version>,
}

impl Sink {
    /// Opens a listening socket. Port 0 chooses a free one.
    ///
    /// # Errors
    ///
    /// The system's error.
    pub fn listen(address: SocketAddr) -> io::Result<Sink> {
        let unwritable = |error: Unwritable| io::Error::other(error.to_string());
        let (poll, mut listener) = (Poll::new()?, TcpListener::bind(address)?);
        poll.registry().register(&mut listener, LISTENER, Interest::READABLE)?;
        Ok(Sink {
            poll,
            listener,
            connections: Vec::new(),
            free: Vec::new(),
            queue: VecDeque::new(),
            room: Room::new(),
            answers: Answers {
                of_1_0: FlowModBatch::new(Version::V1_0).map_err(unwritable)?,
                of_1_3: FlowModBatch::new(Version::V1_3).map_err(unwritable)?,
            },
            counters: Arc::default(),
        })
    }

    /// The address on which it listens.
    ///
    /// # Errors
    ///
    /// The system's error.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Its counters, which may be read while it runs.
    pub fn counters(&self) -> Arc<SinkCounters> {
        self.counters.clone()
    }

    /// Answers packet-ins until `stop` is set.
    ///
    /// # Errors
    ///
    /// It cannot wait for sockets any more.
    pub fn run(&mut self, stop: &AtomicBool) -> io::Result<()> {
        let mut events = Events::with_capacity(EVENTS_PER_POLL);
        while !stop.load(Ordering::Relaxed) {
            let patience = if self.queue.is_empty() { NAP } else { Duration::ZERO };
            match self.poll.poll(&mut events, Some(patience)) {
                Err(error) if error.kind() != ErrorKind::Interrupted => return Err(error),
                _ => {}
            }
            for event in &events {
                match event.token() {
                    LISTENER => self.accept(),
                    Token(index) => self.on_ready(index, event),
                }
            }
            for _ in 0..self.queue.len() {
                let Some(index) = self.queue.pop_front() else { break };
                self.serve(index);
            }
        }
        Ok(())
    }

    fn accept(&mut self) {
        loop {
            match self.listener.accept() {
                // A connection that cannot be registered is closed by the drop.
                Ok((stream, _)) => drop(self.adopt(stream)),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                // No connection waits, or there are no descriptors left. The open connections are still served.
                Err(_) => return,
            }
        }
    }

    fn adopt(&mut self, mut stream: TcpStream) -> io::Result<()> {
        stream.set_nodelay(true)?;
        let index = self.free.pop().unwrap_or(self.connections.len());
        if index == self.connections.len() {
            self.connections.push(None);
        }
        let interest = Interest::READABLE | Interest::WRITABLE;
        self.poll.registry().register(&mut stream, Token(index), interest)?;
        let mut outbound = Outbound::default();
        let both = 1 << Version::V1_0.0 | 1 << Version::V1_3.0;
        write::hello(Version::V1_3, 1, Some(both), outbound.end());
        self.connections[index] = Some(Peer {
            stream,
            inbound: Inbound::default(),
            outbound,
            readable: false,
            writable: false,
            queued: false,
            version: None,
        });
        self.counters.accepted.fetch_add(1, Ordering::Relaxed);
        self.counters.open.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    fn on_ready(&mut self, index: usize, event: &mio::event::Event) {
        let Some(Some(peer)) = self.connections.get_mut(index) else { return };
        peer.readable |= event.is_readable() || event.is_read_closed() || event.is_error();
        peer.writable |= event.is_writable();
        self.enqueue(index);
    }

    fn enqueue(&mut self, index: usize) {
        if let Some(Some(peer)) = self.connections.get_mut(index)
            && !peer.queued
        {
            peer.queued = true;
            self.queue.push_back(index);
        }
    }

    fn serve(&mut self, index: usize) {
        let Sink { connections, room, answers, counters, .. } = self;
        let Some(Some(peer)) = connections.get_mut(index) else { return };
        peer.queued = false;
        match peer.serve(room, answers) {
            Ok(answered) => {
                counters.packet_ins.fetch_add(answered, Ordering::Relaxed);
                if peer.readable && peer.outbound.len() == 0 {
                    self.enqueue(index);
                }
            }
            Err(_) => {
                if let Some(mut peer) = connections[index].take() {
                    // Closing a socket removes it from the poll.
                    let _ = self.poll.registry().deregister(&mut peer.stream);
                }
                counters.open.fetch_sub(1, Ordering::Relaxed);
                self.free.push(index);
            }
        }
    }
}

impl Peer {
    /// Sends what waits. If nothing is left, reads once and answers. Returns how many packet-ins were answered.
    fn serve(&mut self, room: &mut Room, answers: &mut Answers) -> io::Result<u64> {
        let Peer { stream, inbound, outbound, readable, writable, version, .. } = self;
        if *writable && outbound.len() > 0 {
            *writable = outbound.flush(stream)?;
        }
        if !*readable || outbound.len() > 0 {
            return Ok(0);
        }
        let taken = inbound.read(stream, room)?;
        *readable = !taken.drained;
        let (mut answered, mut result) = (0, Ok(()));
        let cut = inbound.cut(room, taken.filled, None, |message| match (message.get(1), *version) {
            (Some(&TYPE_PACKET_IN), Some(version)) => {
                let Some(Ok(buffer_id)) = message.get(8..12).map(<[u8; 4]>::try_from) else { return };
                answered += 1;
                let batch = answers.of(version);
                if batch.push(buffer_id) {
                    let told = tell(outbound, stream, batch.take(), writable);
                    result = std::mem::replace(&mut result, Ok(())).and(told);
                }
            }
            (Some(&TYPE_HELLO), None) => match greet(message, outbound.end()) {
                Ok(agreed) => *version = Some(agreed),
                Err(error) => result = Err(error),
            },
            (Some(&TYPE_ECHO_REQUEST), _) => echo(message, outbound.end()),
            _ => {}
        });
        // Before anything can fail: the batch is shared, and this peer's answers must not go to the next one.
        let rest = version.map(|version| answers.of(version).take());
        result?;
        cut.map_err(|nonsense| io::Error::new(ErrorKind::InvalidData, nonsense.to_string()))?;
        if let Some(rest) = rest.filter(|rest| !rest.is_empty()) {
            tell(outbound, stream, rest, writable)?;
        }
        if *writable && outbound.len() > 0 {
            *writable = outbound.flush(stream)?;
        }
        Ok(answered)
    }
}

impl Answers {
    fn of(&mut self, version: Version) -> &mut FlowModBatch {
        if version == Version::V1_0 { &mut self.of_1_0 } else { &mut self.of_1_3 }
    }
}

/// Sends answers, or puts them behind the bytes that wait. An echo reply in the same read does not mean that the peer
/// takes no bytes.
fn tell(
    outbound: &mut Outbound,
    stream: &mut TcpStream,
    answers: &[u8],
    writable: &mut bool,
) -> io::Result<()> {
    if outbound.len() > 0 {
        outbound.end().extend_from_slice(answers);
    } else {
        *writable &= outbound.write_or_keep(stream, answers)?;
    }
    Ok(())
}

/// The version that both speak, and the first request of a controller.
fn greet(hello: &[u8], out: &mut Vec<u8>) -> io::Result<Version> {
    let version = match hello.first().copied().map(Version) {
        Some(Version::V1_0) => Version::V1_0,
        Some(theirs) if theirs >= Version::V1_3 => Version::V1_3,
        _ => return Err(io::Error::new(ErrorKind::InvalidData, "the peer supports neither 1.0 nor 1.3")),
    };
    let mut bodies = vec![Body::FeaturesRequest];
    if version == Version::V1_3 {
        bodies.push(Body::MultipartRequest(MultipartRequest { flags: 0, body: RequestBody::PortDesc }));
        // Without a table-miss rule, a switch of 1.3 sends no packet-ins (1.3.5, 5.4).
        let miss = FlowModFields { priority: 0, ..FlowModFields::default() };
        let up = Instruction::ApplyActions(vec![Action::to_controller()]);
        bodies.push(Body::FlowMod(miss.with(Match::any(), vec![up])));
    }
    for body in bodies {
        Message { version, xid: 2, body }.encode(out).map_err(|error| io::Error::other(error.to_string()))?;
    }
    Ok(version)
}

/// The same bytes as a reply.
fn echo(request: &[u8], out: &mut Vec<u8>) {
    const TYPE_ECHO_REPLY: u8 = 3;
    let at = out.len();
    out.extend_from_slice(request);
    out[at + 1] = TYPE_ECHO_REPLY;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_that_is_not_spoken_is_refused() {
        for version in [0, 2, 3] {
            assert!(greet(&[version, 0, 0, 8, 0, 0, 0, 0], &mut Vec::new()).is_err(), "{version}");
        }
    }

    #[test]
    fn the_highest_version_that_both_speak_is_taken() {
        for (theirs, expected) in [(1, Version::V1_0), (4, Version::V1_3), (6, Version::V1_3)] {
            let mut out = Vec::new();
            assert_eq!(greet(&[theirs, 0, 0, 8, 0, 0, 0, 0], &mut out).unwrap(), expected);
            assert_eq!(Version(out[0]), expected);
        }
    }

    #[test]
    fn a_switch_of_1_3_is_told_to_send_packets_up() {
        let told = |version: u8| {
            let mut out = Vec::new();
            greet(&[version, 0, 0, 8, 0, 0, 0, 0], &mut out).unwrap();
            let (mut rest, mut told) = (&out[..], Vec::new());
            while let Some(length) = rest.get(2..4).map(|it| usize::from(u16::from_be_bytes([it[0], it[1]])))
            {
                told.push(Message::decode(&rest[..length]).unwrap().body);
                rest = &rest[length..];
            }
            told
        };
        let is_miss = |body: &Body| matches!(body, Body::FlowMod(it) if it.priority == 0 && it.matching == Match::any());
        assert!(told(4).iter().any(is_miss), "{:?}", told(4));
        assert!(!told(1).iter().any(is_miss), "a switch of 1.0 sends them without a rule");
    }

    #[test]
    fn an_echo_comes_back_whole() {
        let mut out = vec![9];
        echo(&[1, 2, 0, 10, 0, 0, 0, 5, 7, 8], &mut out);
        assert_eq!(out, [9, 1, 3, 0, 10, 0, 0, 0, 5, 7, 8]);
    }
}
