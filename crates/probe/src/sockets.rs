//! The driver for real switches: a TCP connection, packet sockets on the test interfaces, and the machine's clock.
//!
//! ```text
//!   the switch ──TCP──────> messages ──┐             ┌──> messages, frames
//!   veths ──packet sockets─> frames ───┼──> Probe ───┤
//!   timerfd ───────────────> time ─────┘             └──> progress, the end
//! ```
//!
//! In: a listening socket, interfaces, and a probe. Out: how the probe ended. There is one clock: CLOCK_MONOTONIC. A frame's time is
//! the kernel's time stamp on that clock. Messages are written before the frames that follow them. It decides nothing about the probe.

use crate::engine::Probe;
use crate::event::{Command, Event, Finished};
use crate::held::HeldFrames;
use crate::options::TestPort;
use emulator::run::packet_socket::{PacketSocket, Received, Room, SocketOptions};
use emulator::timing::{Alarm, KernelStamps, MonotonicClock};
use flow::PortNo;
use mio::net::{TcpListener, TcpStream};
use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token};
use openflow::{Message, stream};
use std::io::{self, ErrorKind, Read, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const LISTENER: Token = Token(0);
const SWITCH: Token = Token(1);
const ALARM: Token = Token(2);
/// The token of the first interface.
const FIRST_PORT: usize = 3;
/// How long the loop waits at most, before it looks whether the operator stops it.
const LOOK: Duration = Duration::from_millis(200);
/// Frames of one interface that are read before the other's turn.
const FRAMES_AT_ONCE: usize = 256;
/// Frames that wait while this process waits for a core: some thousand.
const KEPT_BYTES: usize = 16 << 20;
/// Reads of the switch's stream before frames and time have their turn.
const READS_AT_ONCE: usize = 8;
/// Bytes that wait for a switch that does not read. Above it, the switch counts as gone.
const UNSENT_MAX: usize = 64 << 20;
const READ_BYTES: usize = 64 << 10;
/// Bytes of an incomplete message. No message is longer.
const UNREAD_MAX: usize = 2 * openflow::MAX_MESSAGE_LEN;

/// What a driver counted that the probe does not see.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Frames for which an interface had no room.
    pub frames_not_sent: u64,
    /// Messages of the switch that could not be read.
    pub messages_not_read: u64,
    /// Frames that the kernel dropped because they were not read in time.
    pub frames_not_read: u64,
}

/// The connection of the switch.
struct Connection {
    stream: TcpStream,
    unsent: Vec<u8>,
    unread: Vec<u8>,
    /// Bytes that the stream has taken.
    written: u64,
}

/// A port with its packet socket.
struct Port {
    number: PortNo,
    socket: PacketSocket,
}

struct Driver<'a> {
    probe: Probe,
    clock: MonotonicClock,
    poll: Poll,
    listener: TcpListener,
    connection: Option<Connection>,
    held: HeldFrames,
    ports: Vec<Port>,
    room: Room,
    read_buffer: Vec<u8>,
    /// A bound on reads was reached: more may wait, of which the poll tells nothing again.
    has_more: bool,
    /// The stream has failed. The probe is told when it is not in the middle of an event.
    has_failed: bool,
    stamps: KernelStamps,
    wake_ns: Option<u64>,
    finished: Option<Finished>,
    report: String,
    kept: Option<String>,
    counters: Counters,
    tell: &'a mut dyn FnMut(&str),
}

/// How a probe with sockets ended.
#[derive(Debug)]
pub struct Ended {
    /// With a profile or without.
    pub finished: Finished,
    /// What was found, for people.
    pub report: String,
    /// What lets a later probe go on, if this one is incomplete.
    pub kept: Option<String>,
    /// What the probe did not see.
    pub counters: Counters,
}

/// Probes the first switch that connects.
///
/// # Errors
/// An interface cannot be opened (its name is in the message), or the poll fails. An interface that goes down later ends the probe with
/// an incomplete profile instead.
pub fn run(
    probe: Probe,
    listener: std::net::TcpListener,
    ports: &[TestPort],
    stop: &AtomicBool,
    tell: &mut dyn FnMut(&str),
) -> io::Result<Ended> {
    listener.set_nonblocking(true)?;
    let clock = MonotonicClock::begin();
    let mut driver = Driver {
        probe,
        clock,
        poll: Poll::new()?,
        listener: TcpListener::from_std(listener),
        connection: None,
        held: HeldFrames::default(),
        ports: Vec::new(),
        room: Room::new(),
        read_buffer: vec![0; READ_BYTES],
        has_more: false,
        has_failed: false,
        stamps: KernelStamps::new(clock),
        wake_ns: None,
        finished: None,
        report: String::new(),
        kept: None,
        counters: Counters::default(),
        tell,
    };
    driver.register(ports)?;
    let mut alarm = Alarm::new(driver.clock, driver.poll.registry(), ALARM)?;
    let mut events = Events::with_capacity(64);
    let mut has_stopped = false;
    while driver.finished.is_none() {
        let due = driver.wake_ns.map(Duration::from_nanos);
        let patience = if std::mem::take(&mut driver.has_more) { Duration::ZERO } else { LOOK };
        alarm.wait(&mut driver.poll, &mut events, due, patience)?;
        if stop.load(Ordering::Relaxed) && !std::mem::replace(&mut has_stopped, true) {
            driver.event(Event::Stop);
        }
        driver.accept();
        driver.read_frames();
        driver.read_switch();
        if driver.wake_ns.is_some_and(|due| due <= driver.now_ns()) {
            driver.wake_ns = None;
            driver.event(Event::Time);
        }
        driver.flush();
        if driver.has_failed {
            driver.leave();
        }
    }
    driver.count_dropped();
    let Driver { finished, report, kept, counters, .. } = driver;
    let finished = finished.ok_or_else(|| io::Error::other("the probe has no end"))?;
    Ok(Ended { finished, report, kept, counters })
}

impl Driver<'_> {
    fn register(&mut self, ports: &[TestPort]) -> io::Result<()> {
        let registry = self.poll.registry();
        registry.register(&mut self.listener, LISTENER, Interest::READABLE)?;
        for (index, port) in ports.iter().enumerate() {
            let socket = PacketSocket::bind_to(
                &port.interface,
                SocketOptions { stamps: true, kept_bytes: Some(KEPT_BYTES), ..SocketOptions::default() },
            )?;
            let token = Token(FIRST_PORT + index);
            registry.register(&mut SourceFd(&socket.raw()), token, Interest::READABLE)?;
            self.ports.push(Port { number: port.port, socket });
        }
        Ok(())
    }

    fn now_ns(&self) -> u64 {
        u64::try_from(self.clock.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// Something happened. Carries out what the probe says.
    fn event(&mut self, event: Event<'_>) {
        let mut commands = Vec::new();
        let now_ns = self.now_ns();
        self.probe.on_event(now_ns, event, &mut commands);
        for command in commands {
            self.carry_out(command);
        }
        self.flush();
    }

    fn carry_out(&mut self, command: Command) {
        match command {
            Command::Send(message) => {
                if let Some(connection) = &mut self.connection {
                    // Every message that the probe makes can be written: its tests encode them.
                    let _ = message.encode(&mut connection.unsent);
                }
            }
            Command::Frame { port, frame } => self.frame(port, frame),
            Command::WakeAt(at_ns) => self.wake_ns = Some(at_ns),
            Command::Progress(text) => (self.tell)(&text),
            Command::Report(text) => self.report = text,
            Command::Keep(text) => self.kept = Some(text),
            Command::Finished(finished) => self.finished = Some(*finished),
        }
    }

    /// Sends a frame when the stream has taken all messages before it: it must not overtake the rule that it is to meet.
    fn frame(&mut self, port: PortNo, frame: Vec<u8>) {
        self.flush();
        let connection = self.connection.as_ref();
        let behind = connection.map_or(0, |it| it.written + it.unsent.len() as u64);
        if connection.is_none_or(|it| it.unsent.is_empty()) {
            self.send_frame(port, &frame);
        } else if !self.held.hold(behind, port, frame) {
            self.counters.frames_not_sent += 1;
        }
    }

    fn send_frame(&mut self, port: PortNo, frame: &[u8]) {
        let at_ns = self.now_ns();
        let socket = self.ports.iter().find(|it| it.number == port).map(|it| &it.socket);
        if socket.is_some_and(|socket| socket.send(frame).is_ok()) {
            self.probe.on_frame_sent(frame, at_ns);
        } else {
            self.counters.frames_not_sent += 1;
        }
    }

    /// Takes the first switch. Others are turned away while it is connected.
    fn accept(&mut self) {
        while let Ok((mut stream, _)) = self.listener.accept() {
            if self.connection.is_some() {
                continue;
            }
            // Without it, small messages wait for others; the switch would seem slow.
            let _ = stream.set_nodelay(true);
            let interest = Interest::READABLE | Interest::WRITABLE;
            if self.poll.registry().register(&mut stream, SWITCH, interest).is_err() {
                continue;
            }
            self.connection = Some(Connection { stream, unsent: Vec::new(), unread: Vec::new(), written: 0 });
            self.event(Event::Connected);
        }
    }

    fn read_frames(&mut self) {
        for index in 0..self.ports.len() {
            if !self.read_port(index) {
                self.has_more = true;
            }
        }
    }

    /// Returns whether all frames of this interface are read.
    fn read_port(&mut self, index: usize) -> bool {
        for _ in 0..FRAMES_AT_ONCE {
            let port = &self.ports[index];
            let number = port.number;
            match port.socket.receive(&mut self.room) {
                Ok(Received::Nothing) => return true,
                Ok(Received::Other) => {}
                Ok(Received::Frame { frame, stamp }) => {
                    let at = stamp.and_then(|stamp| self.stamps.time_of(stamp));
                    let at_ns = at.and_then(|at| u64::try_from(at.as_nanos()).ok());
                    let at_ns = at_ns.unwrap_or_else(|| self.now_ns());
                    self.event(Event::Frame { port: number, frame: &frame, at_ns });
                }
                // ENETDOWN: the interface is down or gone. The socket says it once.
                Err(error) => {
                    self.event(Event::PortDown { port: number, why: &error.to_string() });
                    return true;
                }
            }
        }
        false
    }

    fn read_switch(&mut self) {
        for _ in 0..READS_AT_ONCE {
            let Some(connection) = &mut self.connection else { return };
            match connection.stream.read(&mut self.read_buffer) {
                Ok(0) => return self.leave(),
                Ok(count) => {
                    connection.unread.extend_from_slice(&self.read_buffer[..count]);
                    if !self.on_bytes() {
                        return self.leave();
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return self.leave(),
            }
        }
        self.has_more = true;
    }

    /// Passes on all whole messages. False: the stream cannot be cut into messages.
    fn on_bytes(&mut self) -> bool {
        let Some(connection) = &mut self.connection else { return true };
        let mut messages = Vec::new();
        let cut = stream::cut(&connection.unread, |bytes| {
            messages.push(Message::decode(bytes));
            true
        });
        let Ok(used) = cut else { return false };
        connection.unread.drain(..used);
        if connection.unread.len() > UNREAD_MAX {
            return false;
        }
        for message in messages {
            match message {
                Ok(message) => self.event(Event::Message(&message)),
                Err(_) => self.counters.messages_not_read += 1,
            }
        }
        true
    }

    /// The switch is gone, or sends what is no OpenFlow.
    fn leave(&mut self) {
        self.has_failed = false;
        self.held.clear();
        if let Some(mut connection) = self.connection.take() {
            let _ = self.poll.registry().deregister(&mut connection.stream);
        }
        self.event(Event::Left);
    }

    /// Writes what is to be sent, as far as the stream has room.
    fn flush(&mut self) {
        let Some(connection) = &mut self.connection else { return };
        let mut written = 0;
        while written < connection.unsent.len() && !self.has_failed {
            match connection.stream.write(&connection.unsent[written..]) {
                Ok(0) => self.has_failed = true,
                Ok(count) => written += count,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(_) => self.has_failed = true,
            }
        }
        connection.unsent.drain(..written);
        connection.written += written as u64;
        self.has_failed |= connection.unsent.len() > UNSENT_MAX;
        let taken = connection.written;
        while let Some((port, frame)) = self.held.release(taken) {
            self.send_frame(port, &frame);
        }
    }

    fn count_dropped(&mut self) {
        let dropped = self.ports.iter().filter_map(|port| port.socket.take_dropped().ok());
        self.counters.frames_not_read = dropped.sum();
    }
}
