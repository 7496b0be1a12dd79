//! A controller in a thread of this process, which adds a rule for each new flow of an emulated network.
//!
//! ```text
//!   switches ⇄ sockets ⇄ whole messages ⇄ emulator::learning_controller (pure)
//! ```
//!
//! In: connections of switches. Out: flow mods and packet-outs, at once. It knows no more than its load needs, and is no controller for a
//! real network.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use emulator::simulation::Conduct;
use emulator::{Channel, ControllerId, learning_controller};
use openflow::{Body, Message, frame_len};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::time::Duration;

/// The longest wait before it looks whether it must end.
const NAP: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };
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
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        listener.set_nonblocking(true)?;
        let (address, stop) = (listener.local_addr()?, Arc::new(AtomicBool::new(false)));
        let stopped = stop.clone();
        let serve = move || {
            let mut serving = Serving { listener, peers: Vec::new(), conduct: learning_controller() };
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
    listener: TcpListener,
    /// `None`: it has left.
    peers: Vec<Option<Peer>>,
    conduct: Conduct,
}

struct Peer {
    stream: TcpStream,
    inbound: Vec<u8>,
    outbound: Vec<u8>,
}

impl Serving {
    /// Waits for sockets, and serves those that are ready.
    fn turn(&mut self) -> io::Result<()> {
        let there: Vec<usize> = (0..self.peers.len()).filter(|&at| self.peers[at].is_some()).collect();
        let mut sockets = vec![PollFd::new(&self.listener, PollFlags::IN)];
        for peer in self.peers.iter().flatten() {
            let writes = if peer.outbound.is_empty() { PollFlags::empty() } else { PollFlags::OUT };
            sockets.push(PollFd::new(&peer.stream, PollFlags::IN | writes));
        }
        match poll(&mut sockets, Some(&NAP)) {
            Err(rustix::io::Errno::INTR) => return Ok(()),
            polled => _ = polled?,
        };
        let ready: Vec<bool> = sockets.iter().map(|socket| !socket.revents().is_empty()).collect();
        drop(sockets);
        for (&at, _) in there.iter().zip(&ready[1..]).filter(|(_, ready)| **ready) {
            let Serving { peers, conduct, .. } = self;
            let Some(peer) = &mut peers[at] else { continue };
            if peer.serve(at, conduct).is_err() {
                peers[at] = None;
            }
        }
        if ready[0] {
            self.accept()?;
        }
        Ok(())
    }

    fn accept(&mut self) -> io::Result<()> {
        match self.listener.accept() {
            Ok((stream, _)) => {
                stream.set_nonblocking(true)?;
                stream.set_nodelay(true)?;
                self.peers.push(Some(Peer { stream, inbound: Vec::new(), outbound: Vec::new() }));
                Ok(())
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(()),
            Err(error) => Err(error),
        }
    }
}

impl Peer {
    /// Reads what came, answers it, and writes as much as the switch takes. An error: the connection is at its end.
    fn serve(&mut self, switch: usize, conduct: &mut Conduct) -> io::Result<()> {
        let mut bytes = [0; READ_BYTES];
        match self.stream.read(&mut bytes) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(read) => self.inbound.extend_from_slice(&bytes[..read]),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
        self.answer(switch, conduct)?;
        if self.outbound.len() > UNREAD_MAX {
            return Err(ErrorKind::StorageFull.into());
        }
        match self.stream.write(&self.outbound) {
            Ok(written) => drop(self.outbound.drain(..written)),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
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
