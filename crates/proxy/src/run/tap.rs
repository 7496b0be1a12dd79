//! A tap: the beginnings of the frames that come to an interface, with the kernel's times.
//!
//! In: an interface of this machine. Out: frames, each with its age. It needs CAP_NET_RAW. It never sends, and never takes a frame
//! away from the switch: the kernel gives it a copy.

use nix::errno::Errno;
use nix::ifaddrs::getifaddrs;
use nix::libc;
use nix::setsockopt_impl;
use nix::sys::socket::{
    AddressFamily, ControlMessageOwned, LinkAddr, MsgFlags, SockFlag, SockProtocol, SockType, bind, recvmsg,
    setsockopt, socket, sockopt,
};
use nix::sys::time::TimeSpec;
use software_switch::frame::offload::Offload;
use std::io::{self, ErrorKind, IoSliceMut};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// How much of a frame is read: all headers, and more than identifies a frame.
const FRAME_BYTES: usize = 192;
/// More than the two requested control messages need.
const CONTROL_BYTES: usize = 256;
/// PACKET_OUTGOING in `sll_pkttype`.
const OUTGOING: u8 = 4;

#[derive(Clone, Copy)]
struct Auxdata;
setsockopt_impl!(Auxdata, libc::SOL_PACKET, libc::PACKET_AUXDATA, bool, sockopt::SetBool);

#[derive(Clone, Copy)]
struct IgnoreOutgoing;
setsockopt_impl!(IgnoreOutgoing, libc::SOL_PACKET, libc::PACKET_IGNORE_OUTGOING, bool, sockopt::SetBool);

/// The receive buffer of all taps.
#[derive(Debug)]
pub(super) struct Room {
    frame: Vec<u8>,
    control: Vec<u8>,
    /// The last frame.
    restored: Vec<u8>,
}

impl Room {
    pub(super) fn new() -> Self {
        Room { frame: vec![0; FRAME_BYTES], control: vec![0; CONTROL_BYTES], restored: Vec::new() }
    }
}

/// What a tap has received.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Seen<'a> {
    /// The beginning of a frame, and how long ago the kernel saw it.
    Frame(&'a [u8], Duration),
    /// A frame that left by the interface.
    Other,
    /// No frame is waiting.
    Nothing,
}

/// A tap at one interface.
#[derive(Debug)]
pub(super) struct Tap {
    socket: OwnedFd,
    interface: usize,
}

impl Tap {
    /// A tap at the interface with this name.
    pub(super) fn open(name: &str) -> io::Result<Self> {
        let trouble =
            |error: io::Error| io::Error::new(error.kind(), format!("interface {name} has no tap: {error}"));
        let address = address_of(name).map_err(trouble)?;
        Self::at(&address).map_err(trouble)
    }

    fn at(address: &LinkAddr) -> io::Result<Self> {
        let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
        let socket = socket(AddressFamily::Packet, SockType::Raw, flags, SockProtocol::EthAll)?;
        bind(socket.as_raw_fd(), address)?;
        setsockopt(&socket, Auxdata, &true)?;
        setsockopt(&socket, sockopt::ReceiveTimestampns, &true)?;
        // Linux before 4.20 does not have this option. There, sent frames are recognised by their type.
        let _ = setsockopt(&socket, IgnoreOutgoing, &true);
        Ok(Tap { socket, interface: address.ifindex() })
    }

    /// The descriptor for the poll.
    pub(super) fn raw(&self) -> RawFd {
        self.socket.as_raw_fd()
    }

    /// Receives the beginning of one frame.
    pub(super) fn receive<'a>(&self, room: &'a mut Room) -> io::Result<Seen<'a>> {
        let (bytes, offload, stamp) = {
            let mut parts = [IoSliceMut::new(&mut room.frame)];
            let flags = MsgFlags::MSG_DONTWAIT;
            let message = match recvmsg::<LinkAddr>(self.raw(), &mut parts, Some(&mut room.control), flags) {
                Ok(message) => message,
                Err(Errno::EAGAIN | Errno::EINTR) => return Ok(Seen::Nothing),
                Err(error) => return Err(error.into()),
            };
            let from = message.address;
            if from.is_none_or(|from| from.ifindex() != self.interface || from.pkttype() == OUTGOING) {
                return Ok(Seen::Other);
            }
            let (mut offload, mut stamp) = (Offload::default(), None);
            for control in message.cmsgs()? {
                match control {
                    ControlMessageOwned::ScmTimestampns(time) => stamp = Some(time),
                    ControlMessageOwned::Unknown(other) => offload = Offload::read(&other.data_bytes),
                    _ => {}
                }
            }
            (message.bytes, offload, stamp)
        };
        room.restored.clear();
        room.restored.extend_from_slice(room.frame.get(..bytes).unwrap_or_default());
        // The checksum does not count, and the frame is cut, so that nobody could compute it.
        Offload { checksum_is_partial: false, ..offload }.restore(&mut room.restored);
        Ok(Seen::Frame(&room.restored, stamp.map_or(Duration::ZERO, age_of)))
    }
}

/// How long ago a time of the kernel was. Its clock can be set, so that only the difference to now is used.
fn age_of(stamp: TimeSpec) -> Duration {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    now.saturating_sub(Duration::from(stamp))
}

/// The address of the interface with this name, by which packet sockets are bound.
fn address_of(name: &str) -> io::Result<LinkAddr> {
    let mut found = getifaddrs()?.filter(|it| it.interface_name == name);
    let address = found.find_map(|it| it.address?.as_link_addr().copied());
    address.ok_or_else(|| io::Error::new(ErrorKind::NotFound, "this machine has none of that name"))
}
