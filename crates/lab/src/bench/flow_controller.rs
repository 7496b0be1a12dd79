//! A controller in a thread of this process, which adds a rule for each new flow of an emulated network.
//!
//! ```text
//!   switches ⇄ sockets ⇄ whole messages ⇄ emulator::learning_controller (pure)
//! ```
//!
//! In: connections of switches. Out: flow mods and packet-outs, at once. It knows no more than its load needs, and is no controller for a
//! real network.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use emulator::simulation::Conduct;
use emulator::{Channel, ControllerId, learning_controller};
use mio::net::{TcpListener, TcpStream};
use mio::{Events, Interest, Poll, Token};
use openflow::{Body, Message, frame_len};
use std::time::Duration;

/// The longest wait before it looks whether it must end.
const NAP: Duration = Duration::from_millis(50);
/// Events of one poll; the next one brings the others.
const EVENTS: usize = 256;
/// No switch has this place.
const LISTENER: Token = Token(usize::MAX);
/// Bytes of one read.
const READ_BYTES: usize = 64 * 1024;
/// Bytes that a switch has not read. Above this, it loses its connection: its load is no longer what was asked for.
const UNREAD_MAX: usize = 4 * 1024 * 1024;

/// A running controller. It ends when this value is dropped.
pub(super) struct FlowController {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl FlowController {
    /// Starts one on a free port.
    pub(super) fn start() -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0).into())?;
        let (address, stop) = (listener.local_addr()?, Arc::new(AtomicBool::new(false)));
        let stopped = stop.clone();
        let mut serving = Serving::start(listener)?;
        let serve = move || {
            // A system that cannot poll ends the connections, which the network then reports.
            while !stopped.load(Ordering::Relaxed) && serving.turn().is_ok() {}
        };
        let thread = std::thread::Builder::new().name("controller".into()).spawn(serve)?;
        Ok(FlowController { address, stop, thread: Some(thread) })
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for FlowController {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // A panic of the thread has been printed; there is nothing to add.
            let _ = thread.join();
        }
    }
}

struct Serving {
    poll: Poll,
    events: Events,
    listener: TcpListener,
    /// By their tokens. `None`: it has left.
    peers: Vec<Option<Peer>>,
    conduct: Conduct,
    /// What one read brings.
    bytes: Vec<u8>,
}

struct Peer {
    stream: TcpStream,
    inbound: Vec<u8>,
    outbound: Vec<u8>,
}

impl Serving {
    fn start(mut listener: TcpListener) -> io::Result<Self> {
        let poll = Poll::new()?;
        poll.registry().register(&mut listener, LISTENER, Interest::READABLE)?;
        Ok(Serving {
            poll,
            events: Events::with_capacity(EVENTS),
            listener,
            peers: Vec::new(),
            conduct: learning_controller(),
            bytes: vec![0; READ_BYTES],
        })
    }

    /// Waits for sockets, and serves those that are ready.
    fn turn(&mut self) -> io::Result<()> {
        match self.poll.poll(&mut self.events, Some(NAP)) {
            Err(error) if error.kind() == ErrorKind::Interrupted => return Ok(()),
            polled => polled?,
        }
        let mut has_new = false;
        for event in &self.events {
            let Token(at) = event.token();
            has_new |= event.token() == LISTENER;
            let Some(peer) = self.peers.get_mut(at).and_then(Option::as_mut) else { continue };
            if peer.serve(at, &mut self.bytes, &mut self.conduct).is_err() {
                self.peers[at] = None;
            }
        }
        if has_new { self.accept() } else { Ok(()) }
    }

    fn accept(&mut self) -> io::Result<()> {
        loop {
            match self.listener.accept() {
                Ok((mut stream, _)) => {
                    stream.set_nodelay(true)?;
                    let both = Interest::READABLE | Interest::WRITABLE;
                    self.poll.registry().register(&mut stream, Token(self.peers.len()), both)?;
                    self.peers.push(Some(Peer { stream, inbound: Vec::new(), outbound: Vec::new() }));
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
        }
    }
}

impl Peer {
    /// Reads what came, answers it, and writes as much as the switch takes. An error: the connection is at its end.
    fn serve(&mut self, switch: usize, bytes: &mut [u8], conduct: &mut Conduct) -> io::Result<()> {
        // The poll tells of a socket once, so all has to be read. A read that does not fill the buffer was the last (epoll(7)).
        let mut is_over = false;
        while !is_over {
            match self.stream.read(bytes) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(read) => {
                    self.inbound.extend_from_slice(&bytes[..read]);
                    is_over = read < bytes.len();
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
            self.answer(switch, conduct)?;
            if self.outbound.len() > UNREAD_MAX {
                return Err(ErrorKind::StorageFull.into());
            }
        }
        while !self.outbound.is_empty() {
            match self.stream.write(&self.outbound) {
                Ok(written) => drop(self.outbound.drain(..written)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn answer(&mut self, switch: usize, conduct: &mut Conduct) -> io::Result<()> {
        let unreadable = || io::Error::from(ErrorKind::InvalidData);
        let at = Channel { switch, controller: ControllerId(0) };
        let (mut begin, mut answers) = (0, Vec::new());
        while let Some(length) = frame_len(&self.inbound[begin..]) {
            let end = begin + length.map_err(|_| unreadable())?;
            let Some(bytes) = self.inbound.get(begin..end) else { break };
            let message = Message::decode(bytes).map_err(|_| unreadable())?;
            let reply = |body| Message { version: message.version, xid: message.xid, body };
            if let Body::EchoRequest(payload) = &message.body {
                answers.push(reply(Body::EchoReply(payload.clone())));
            }
            // Learning depends on no time.
            conduct(at, &message, Duration::ZERO, &mut answers);
            if matches!(message.body, Body::Hello(_)) {
                answers.push(reply(Body::FeaturesRequest));
            }
            begin = end;
        }
        self.inbound.drain(..begin);
        for answer in answers {
            answer.encode(&mut self.outbound).map_err(|_| unreadable())?;
        }
        Ok(())
    }
}
