//! A packet socket: the frames of one interface of this machine (packet(7)).
//!
//! In: an interface. Out: the frames that it receives, as they would be on a wire, and on request their time stamps by the
//! kernel. It also sends frames. It needs CAP_NET_RAW. It never returns frames that left by the interface, including its
//! own, unless it was opened for them.
//!
//! A stamp is taken when the kernel gets the frame, however late this process reads it. It is a reading of
//! CLOCK_REALTIME; [`KernelStamps`](crate::timing::KernelStamps) puts it on the clock of a loop. There are no stamps of
//! the frames that a socket itself sends. But a second socket for sent frames at the same interface gets each of them,
//! stamped when it is handed to the driver.
//!
//! It uses nix, which has these calls without `unsafe`, and the option numbers of libc.

use nix::errno::Errno;
use nix::ifaddrs::{InterfaceAddress, getifaddrs};
use nix::libc;
use nix::net::if_::InterfaceFlags;
use nix::sys::socket::{
    AddressFamily, ControlMessageOwned, LinkAddr, MsgFlags, SockFlag, SockProtocol, SockType, bind,
    getsockopt, recvmsg, send, setsockopt, socket, sockopt,
};
use nix::{getsockopt_impl, setsockopt_impl};
use std::io::{self, IoSliceMut};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::time::Duration;

use software_switch::frame::offload::Offload;

/// The longest frame from Linux: 64 KiB if hosts leave segmentation to the card, and a header.
const FRAME_BYTES_MAX: usize = 65_536 + 64;
/// More than the two requested control messages need.
const CONTROL_BYTES: usize = 128;
/// PACKET_OUTGOING in `sll_pkttype`.
const OUTGOING: u8 = 4;

#[derive(Clone, Copy)]
struct Auxdata;
setsockopt_impl!(Auxdata, libc::SOL_PACKET, libc::PACKET_AUXDATA, bool, sockopt::SetBool);

#[derive(Clone, Copy)]
struct IgnoreOutgoing;
setsockopt_impl!(IgnoreOutgoing, libc::SOL_PACKET, libc::PACKET_IGNORE_OUTGOING, bool, sockopt::SetBool);

#[derive(Clone, Copy)]
struct AddMembership;
setsockopt_impl!(
    AddMembership,
    libc::SOL_PACKET,
    libc::PACKET_ADD_MEMBERSHIP,
    libc::packet_mreq,
    sockopt::SetStruct<'_, libc::packet_mreq>
);

/// Reading it sets the counters to zero.
#[derive(Clone, Copy)]
struct Statistics;
getsockopt_impl!(
    Statistics,
    libc::SOL_PACKET,
    libc::PACKET_STATISTICS,
    libc::tpacket_stats,
    sockopt::GetStruct<libc::tpacket_stats>
);

/// Which frames of an interface a socket returns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Direction {
    /// Those that the interface receives.
    #[default]
    Received,
    /// Those that leave by the interface, from any other socket or from the machine itself.
    Sent,
}

/// How to open a socket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SocketOptions {
    /// Which frames it returns.
    pub direction: Direction,
    /// Whether frames have time stamps. They cost the kernel some work for each packet of the machine.
    pub stamps: bool,
    /// How many bytes of frames the kernel keeps for a reader that is late, with its own overhead for each frame. `None`: the
    /// machine's default, some hundred kilobytes. More than the machine's maximum needs CAP_NET_ADMIN.
    pub kept_bytes: Option<usize>,
}

/// The present state of an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InterfaceState {
    index: usize,
    /// Whether it is up. Without it, a socket gets no frame.
    pub is_up: bool,
}

impl InterfaceState {
    /// The state of the interface with this name in the network namespace of the calling thread, if there is one.
    ///
    /// # Errors
    ///
    /// The operating system does not say.
    pub fn of(name: &str) -> io::Result<Option<Self>> {
        let state = |interface: InterfaceAddress| {
            let index =
                interface.address.filter(|_| interface.interface_name == name)?.as_link_addr()?.ifindex();
            Some(InterfaceState { index, is_up: interface.flags.contains(InterfaceFlags::IFF_UP) })
        };
        Ok(getifaddrs()?.find_map(state))
    }
}

/// The receive buffer of all sockets of a loop.
#[derive(Debug)]
pub struct Room {
    frame: Vec<u8>,
    control: Vec<u8>,
}

impl Default for Room {
    fn default() -> Self {
        Room::new()
    }
}

impl Room {
    /// Room for the longest frame.
    pub fn new() -> Self {
        Self::for_beginnings(FRAME_BYTES_MAX)
    }

    /// Room for the first bytes of frames. The kernel copies no more.
    pub fn for_beginnings(bytes: usize) -> Self {
        Room { frame: vec![0; bytes], control: vec![0; CONTROL_BYTES] }
    }
}

/// The result of receiving.
#[derive(Debug, PartialEq, Eq)]
pub enum Received {
    /// A frame.
    Frame {
        /// Its bytes.
        frame: Vec<u8>,
        /// When the kernel got it, by CLOCK_REALTIME. `None` without stamps.
        stamp: Option<Duration>,
    },
    /// A frame that is not for a switch: a sent one, or one that another interface received before the socket was
    /// bound.
    Other,
    /// No frame is waiting.
    Nothing,
}

/// A packet socket that is bound to an interface.
#[derive(Debug)]
pub struct PacketSocket {
    socket: OwnedFd,
    interface: usize,
    direction: Direction,
}

impl PacketSocket {
    /// Binds to the interface with this name in the network namespace of the calling thread. It gets frames for all
    /// addresses (promiscuous).
    ///
    /// # Errors
    ///
    /// There is no such interface, or this process may not bind it (CAP_NET_RAW).
    pub fn bind_to(name: &str, options: SocketOptions) -> io::Result<Self> {
        let missing =
            || io::Error::new(io::ErrorKind::NotFound, format!("this machine has no interface {name}"));
        let is_it = |interface: &InterfaceAddress| {
            interface.interface_name == name
                && interface.address.is_some_and(|address| address.as_link_addr().is_some())
        };
        let found = getifaddrs()?.find(is_it).and_then(|interface| interface.address).ok_or_else(missing)?;
        PacketSocket::open(found.as_link_addr().ok_or_else(missing)?, options)
    }

    /// Binds to the interface with this address.
    pub(crate) fn open(address: &LinkAddr, options: SocketOptions) -> io::Result<Self> {
        let SocketOptions { direction, stamps, kept_bytes } = options;
        let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
        let socket = socket(AddressFamily::Packet, SockType::Raw, flags, SockProtocol::EthAll)?;
        bind(socket.as_raw_fd(), address)?;
        setsockopt(&socket, Auxdata, &true)?;
        if stamps {
            setsockopt(&socket, sockopt::ReceiveTimestampns, &true)?;
        }
        if let Some(bytes) = kept_bytes
            && setsockopt(&socket, sockopt::RcvBufForce, &bytes).is_err()
        {
            setsockopt(&socket, sockopt::RcvBuf, &bytes)?;
        }
        if direction == Direction::Received {
            // Linux before 4.20 does not have this option. There, sent frames are recognised by their type.
            let _ = setsockopt(&socket, IgnoreOutgoing, &true);
        }
        let promiscuous = libc::packet_mreq {
            mr_ifindex: i32::try_from(address.ifindex()).map_err(io::Error::other)?,
            mr_type: libc::PACKET_MR_PROMISC as u16,
            mr_alen: 0,
            mr_address: [0; 8],
        };
        setsockopt(&socket, AddMembership, &promiscuous)?;
        Ok(PacketSocket { socket, interface: address.ifindex(), direction })
    }

    /// The descriptor for the poll.
    pub fn raw(&self) -> RawFd {
        self.socket.as_raw_fd()
    }

    /// The index of its interface.
    pub(crate) fn interface(&self) -> usize {
        self.interface
    }

    /// Whether it is bound to this interface. One that was removed and made again is another one under the same name.
    pub fn is_bound_to(&self, interface: InterfaceState) -> bool {
        self.interface == interface.index
    }

    /// Receives one frame.
    ///
    /// # Errors
    ///
    /// The interface has gone down or was removed. The socket says so once. It gets frames again when the same interface is up again.
    pub fn receive(&self, room: &mut Room) -> io::Result<Received> {
        let (bytes, offload, stamp) = {
            let mut parts = [IoSliceMut::new(&mut room.frame)];
            let flags = MsgFlags::MSG_DONTWAIT;
            let message = match recvmsg::<LinkAddr>(self.raw(), &mut parts, Some(&mut room.control), flags) {
                Ok(message) => message,
                Err(Errno::EAGAIN | Errno::EINTR) => return Ok(Received::Nothing),
                Err(error) => return Err(error.into()),
            };
            if !message.address.is_some_and(|from| self.is_of_interest(&from)) {
                return Ok(Received::Other);
            }
            let (mut auxdata, mut stamp) = (None, None);
            for control in message.cmsgs()? {
                match control {
                    ControlMessageOwned::Unknown(control) => {
                        auxdata = Some(Offload::read(&control.data_bytes))
                    }
                    ControlMessageOwned::ScmTimestampns(time) => stamp = Some(Duration::from(time)),
                    _ => {}
                }
            }
            (message.bytes, auxdata.unwrap_or_default(), stamp)
        };
        let mut frame = room.frame.get(..bytes).unwrap_or_default().to_vec();
        offload.restore(&mut frame);
        Ok(Received::Frame { frame, stamp })
    }

    fn is_of_interest(&self, from: &LinkAddr) -> bool {
        let is_sent = from.pkttype() == OUTGOING;
        from.ifindex() == self.interface && is_sent == (self.direction == Direction::Sent)
    }

    /// How many frames the kernel has dropped since the last call, because this process did not read them in time.
    ///
    /// # Errors
    ///
    /// The kernel does not say.
    pub fn take_dropped(&self) -> io::Result<u64> {
        let statistics = getsockopt(&self.socket, Statistics)?;
        Ok(u64::from(statistics.tp_drops))
    }

    /// Sends a frame, if the interface has room for it.
    ///
    /// # Errors
    ///
    /// It has no room, or the frame is longer than its MTU.
    pub fn send(&self, frame: &[u8]) -> io::Result<()> {
        send(self.raw(), frame, MsgFlags::MSG_DONTWAIT)?;
        Ok(())
    }
}
