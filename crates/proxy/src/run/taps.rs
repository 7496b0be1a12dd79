//! The taps: packet sockets at the interfaces of the switch's ports.
//!
//! ```text
//!   interfaces ──> Taps ──> the beginning of each frame that comes to a port, with the kernel's time
//! ```
//!
//! In: ports and names of interfaces. Out: frames, and [`Notice`]s of taps that fail or work again. An interface that goes down, or is removed and
//! made again, ends no tap: its port has no times until the interface is back. A tap never sends, and takes no frame from the switch.

use emulator::run::packet_socket::{InterfaceState, PacketSocket, Received, Room, SocketOptions};
use emulator::timing::{KernelStamps, MonotonicClock};
use flow::PortNo;
use mio::unix::SourceFd;
use mio::{Interest, Registry, Token};
use std::io;
use std::time::Duration;

use super::notice::Notice;

/// How many frames of one tap are read in a turn.
const FRAMES_AT_ONCE: usize = 1024;
/// How much of a frame is read: more than the bytes by which a packet is found again.
const BEGINNING_BYTES: usize = 256;
/// How many bytes of frames the kernel keeps while the proxy does something else, with its own overhead: some thousand frames.
const KEPT_BYTES: usize = 4 << 20;
/// How often it looks whether interfaces that went away are back.
const LOOK: Duration = Duration::from_secs(1);

/// A port and its interface.
#[derive(Debug)]
struct Tap {
    port: PortNo,
    name: String,
    token: Token,
    /// `None`: the interface was removed.
    socket: Option<PacketSocket>,
    /// Whether the operator was told that it does not work.
    is_lost: bool,
}

/// All taps.
#[derive(Debug)]
pub(super) struct Taps {
    taps: Vec<Tap>,
    room: Room,
    stamps: KernelStamps,
    next_look: Duration,
    /// Whether a tap has more frames than were read in a turn.
    is_crowded: bool,
}

/// The frames that come to an interface, with the kernel's times. The switch gets them all the same.
fn tap_at(name: &str, token: Token, registry: &Registry) -> io::Result<PacketSocket> {
    let options = SocketOptions { stamps: true, kept_bytes: Some(KEPT_BYTES), ..SocketOptions::default() };
    let socket = PacketSocket::bind_to(name, options)
        .map_err(|error| io::Error::new(error.kind(), format!("interface {name} has no tap: {error}")))?;
    registry.register(&mut SourceFd(&socket.raw()), token, Interest::READABLE)?;
    Ok(socket)
}

impl Taps {
    /// Opens a tap for each port, with tokens from the first one on.
    pub(super) fn open(
        ports: &[(PortNo, String)],
        first: Token,
        registry: &Registry,
        clock: MonotonicClock,
    ) -> io::Result<Self> {
        let tap = |(number, (port, name)): (usize, &(PortNo, String))| {
            let token = Token(first.0 + number);
            let socket = Some(tap_at(name, token, registry)?);
            Ok(Tap { port: *port, name: name.clone(), token, socket, is_lost: false })
        };
        Ok(Taps {
            taps: ports.iter().enumerate().map(tap).collect::<io::Result<_>>()?,
            room: Room::for_beginnings(BEGINNING_BYTES),
            stamps: KernelStamps::new(clock),
            next_look: Duration::ZERO,
            is_crowded: false,
        })
    }

    /// Whether there are frames that no event announces.
    pub(super) fn is_crowded(&self) -> bool {
        self.is_crowded
    }

    /// Reads what has come: port, the kernel's time if it makes sense, and the beginning of each frame.
    pub(super) fn read(
        &mut self,
        notices: &mut Vec<Notice>,
        mut take: impl FnMut(PortNo, Option<Duration>, &[u8]),
    ) {
        self.is_crowded = false;
        for tap in &mut self.taps {
            let mut frames = 0;
            while frames < FRAMES_AT_ONCE {
                match tap.receive(&mut self.room) {
                    Ok(Received::Nothing) => break,
                    Ok(Received::Other) => {}
                    Ok(Received::Frame { frame, stamp }) => {
                        let arrived = stamp.and_then(|stamp| self.stamps.time_of(stamp));
                        take(tap.port, arrived, &frame);
                    }
                    Err(error) => {
                        tap.lose(&error.to_string(), notices);
                        break;
                    }
                }
                frames += 1;
            }
            self.is_crowded |= frames == FRAMES_AT_ONCE;
        }
    }

    /// Looks from time to time whether interfaces that went away are back.
    pub(super) fn look(&mut self, now: Duration, registry: &Registry, notices: &mut Vec<Notice>) {
        if now < self.next_look {
            return;
        }
        self.next_look = now + LOOK;
        for tap in self.taps.iter_mut().filter(|tap| tap.is_lost) {
            tap.look(registry, notices);
        }
    }

    /// How many frames the kernel has dropped since the last call, because this process did not read them in time.
    pub(super) fn take_dropped(&self) -> u64 {
        let sockets = self.taps.iter().filter_map(|tap| tap.socket.as_ref());
        sockets.map(|socket| socket.take_dropped().unwrap_or(0)).sum()
    }
}

impl Tap {
    fn receive(&self, room: &mut Room) -> io::Result<Received> {
        self.socket.as_ref().map_or(Ok(Received::Nothing), |socket| socket.receive(room))
    }

    fn lose(&mut self, why: &str, notices: &mut Vec<Notice>) {
        if !std::mem::replace(&mut self.is_lost, true) {
            notices.push(Notice::TapLost(self.port, why.to_owned()));
        }
    }

    fn look(&mut self, registry: &Registry, notices: &mut Vec<Notice>) {
        // A system that does not say is asked again.
        let Ok(interface) = InterfaceState::of(&self.name) else { return };
        let is_same =
            |socket: &PacketSocket| interface.is_some_and(|interface| socket.is_bound_to(interface));
        if !self.socket.as_ref().is_some_and(is_same) {
            self.socket = interface.and_then(|_| tap_at(&self.name, self.token, registry).ok());
        }
        if self.socket.is_some() && interface.is_some_and(|interface| interface.is_up) {
            self.is_lost = false;
            notices.push(Notice::TapBack(self.port));
        }
    }
}
