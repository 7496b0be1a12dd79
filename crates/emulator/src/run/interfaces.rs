//! The interfaces of this machine that are bound to ports of switches.
//!
//! ```text
//!   frames of interfaces ──> Interfaces ──> frames, each with its switch and port; which links went or came
//!   frames of ports ───────>     └────────> frames out of interfaces
//! ```
//!
//! It never looks into a frame. If an interface disappears, its link is down. When it is back, it is bound again.

use flow::{DatapathId, MacAddr, PortNo};
use mio::unix::SourceFd;
use mio::{Interest, Registry, Token};
use nix::ifaddrs::getifaddrs;
use nix::net::if_::InterfaceFlags;
use nix::sys::socket::LinkAddr;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, ErrorKind};
use std::time::Duration;

use super::packet_socket::{PacketSocket, Received, Room, SocketOptions};

/// How many frames of one interface are read before the others' turn.
const FRAMES_AT_ONCE: usize = 256;
/// How often the interfaces are checked for existence and link.
const LOOK: Duration = Duration::from_secs(1);

/// The plan of a switch whose ports are interfaces of this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bridge {
    /// Its datapath id.
    pub datapath_id: DatapathId,
    /// Its name.
    pub name: String,
    /// Its ports, each with the name of its interface: a veth, a tap or a network card. The machine itself must not
    /// answer there.
    pub ports: Vec<(PortNo, String)>,
}

/// The present state of an interface.
#[derive(Clone, Copy, Debug)]
struct Seen {
    address: LinkAddr,
    up: bool,
}

/// A port and its interface.
#[derive(Debug)]
struct Interface {
    switch: usize,
    port: PortNo,
    name: String,
    socket: Option<PacketSocket>,
    up: bool,
}

/// A port that exists from the start.
#[derive(Debug)]
pub(crate) struct BoundPort {
    pub(crate) switch: usize,
    pub(crate) port: PortNo,
    pub(crate) name: String,
    pub(crate) hw_addr: MacAddr,
    pub(crate) up: bool,
}

/// All bound interfaces.
#[derive(Debug)]
pub(crate) struct Interfaces {
    interfaces: Vec<Interface>,
    /// The token of the first one. The others follow.
    first_token: usize,
    room: Room,
    /// Interfaces with more frames than were read at once. Each is in it once, even if the poll reports it again.
    crowded: BTreeSet<usize>,
    next_look: Duration,
    /// Frames for which an interface had no room, or that are longer than its MTU.
    pub(crate) frames_not_sent: u64,
}

impl Interfaces {
    /// Binds every port of these switches.
    ///
    /// # Errors
    ///
    /// An interface is missing, is named twice, or may not be bound: the message names it.
    pub(crate) fn bind(
        bridges: &[Bridge],
        first_token: usize,
        registry: &Registry,
    ) -> io::Result<(Self, Vec<BoundPort>)> {
        let seen = look()?;
        let (mut interfaces, mut ports) = (Vec::new(), Vec::new());
        for (switch, bridge) in bridges.iter().enumerate() {
            for (port, name) in &bridge.ports {
                let trouble = |kind, why: &dyn std::fmt::Display| {
                    io::Error::new(kind, format!("interface {name} cannot be a port: {why}"))
                };
                let at = seen
                    .get(name)
                    .ok_or_else(|| trouble(ErrorKind::NotFound, &"this machine has none of that name"))?;
                if interfaces.iter().any(|bound: &Interface| bound.name == *name) {
                    return Err(trouble(ErrorKind::InvalidInput, &"it is one already"));
                }
                let socket = open(&at.address, first_token + interfaces.len(), registry);
                let socket = Some(socket.map_err(|error| trouble(error.kind(), &error))?);
                let (port, name) = (*port, name.clone());
                let hw_addr = MacAddr(at.address.addr().unwrap_or_default());
                ports.push(BoundPort { switch, port, name: name.clone(), hw_addr, up: at.up });
                interfaces.push(Interface { switch, port, name, socket, up: at.up });
            }
        }
        let all = Interfaces {
            interfaces,
            first_token,
            room: Room::new(),
            crowded: BTreeSet::new(),
            next_look: LOOK,
            frames_not_sent: 0,
        };
        Ok((all, ports))
    }

    /// The index of the interface with this token.
    pub(crate) fn place(&self, token: usize) -> Option<usize> {
        token.checked_sub(self.first_token).filter(|place| *place < self.interfaces.len())
    }

    /// The interfaces that had more frames than were read at once.
    pub(crate) fn take_crowded(&mut self) -> BTreeSet<usize> {
        std::mem::take(&mut self.crowded)
    }

    /// Whether any interface had more frames than were read at once.
    pub(crate) fn is_crowded(&self) -> bool {
        !self.crowded.is_empty()
    }

    /// Passes on received frames of an interface, up to a bound.
    pub(crate) fn receive(&mut self, place: usize, mut take: impl FnMut(usize, PortNo, Vec<u8>)) {
        let Interfaces { interfaces, room, .. } = self;
        let Some(Interface { switch, port, socket: Some(socket), .. }) = interfaces.get(place) else {
            return;
        };
        for _ in 0..FRAMES_AT_ONCE {
            match socket.receive(room) {
                Ok(Received::Frame { frame, .. }) => take(*switch, *port, frame),
                Ok(Received::Other) => {}
                // The next check notices an interface that went down or disappeared.
                Ok(Received::Nothing) | Err(_) => return,
            }
        }
        self.crowded.insert(place);
    }

    /// Sends a frame out of a port. If the interface does not take it, the frame is counted and lost.
    pub(crate) fn send(&mut self, switch: usize, port: PortNo, frame: &[u8]) {
        let bound = self.interfaces.iter().find(|bound| bound.switch == switch && bound.port == port);
        let sent = bound.and_then(|bound| bound.socket.as_ref()).map(|socket| socket.send(frame));
        if !matches!(sent, Some(Ok(()))) {
            self.frames_not_sent += 1;
        }
    }

    /// How many frames the kernel has dropped since the last call, because this process did not read them in time.
    pub(crate) fn take_dropped(&mut self) -> u64 {
        let sockets = self.interfaces.iter().filter_map(|bound| bound.socket.as_ref());
        // A socket whose interface is gone does not say.
        sockets.map(|socket| socket.take_dropped().unwrap_or(0)).sum()
    }

    /// Checks all interfaces from time to time. Returns the ports whose link state has changed.
    pub(crate) fn look(&mut self, registry: &Registry, now: Duration) -> Vec<(usize, PortNo, bool)> {
        if now < self.next_look {
            return Vec::new();
        }
        self.next_look = now + LOOK;
        // The system lacks some resource. The next check follows soon.
        let Ok(seen) = look() else { return Vec::new() };
        let mut changed = Vec::new();
        for (place, bound) in self.interfaces.iter_mut().enumerate() {
            let at = seen.get(&bound.name);
            let index = at.map(|at| at.address.ifindex());
            if bound.socket.as_ref().map(PacketSocket::interface) != index {
                bound.socket = at.and_then(|at| open(&at.address, self.first_token + place, registry).ok());
            }
            let up = at.is_some_and(|at| at.up) && bound.socket.is_some();
            if std::mem::replace(&mut bound.up, up) != up {
                changed.push((bound.switch, bound.port, up));
            }
        }
        changed
    }
}

fn open(address: &LinkAddr, token: usize, registry: &Registry) -> io::Result<PacketSocket> {
    let socket = PacketSocket::open(address, SocketOptions::default())?;
    registry.register(&mut SourceFd(&socket.raw()), Token(token), Interest::READABLE)?;
    Ok(socket)
}

/// All interfaces of this machine's network namespace.
fn look() -> io::Result<BTreeMap<String, Seen>> {
    let running = InterfaceFlags::IFF_UP | InterfaceFlags::IFF_RUNNING;
    let seen = getifaddrs()?.filter_map(|interface| {
        let address = *interface.address?.as_link_addr()?;
        Some((interface.interface_name, Seen { address, up: interface.flags.contains(running) }))
    });
    Ok(seen.collect())
}
