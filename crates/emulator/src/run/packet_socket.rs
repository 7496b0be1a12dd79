//! A packet socket: the frames of one interface of this machine (packet(7)).
//!
//! In: an interface. Out: the frames that it receives, as they would be on a wire. It also sends frames. It needs
//! CAP_NET_RAW. It never returns frames that left by the interface, including its own.
//!
//! It uses nix, which has these calls without `unsafe`, and the option numbers of libc.

use nix::errno::Errno;
use nix::libc;
use nix::setsockopt_impl;
use nix::sys::socket::{
    AddressFamily, ControlMessageOwned, LinkAddr, MsgFlags, SockFlag, SockProtocol, SockType, bind, recvmsg,
    send, setsockopt, socket, sockopt,
};
use std::io::{self, IoSliceMut};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use software_switch::frame::offload::Offload;

/// The longest frame from Linux: 64 KiB if hosts leave segmentation to the card, and a header.
const FRAME_BYTES_MAX: usize = 65_536 + 64;
/// More than the one requested control message needs.
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

/// The receive buffer of all sockets of a loop.
#[derive(Debug)]
pub(crate) struct Room {
    frame: Vec<u8>,
    control: Vec<u8>,
}

impl Room {
    pub(crate) fn new() -> Self {
        Room { frame: vec![0; FRAME_BYTES_MAX], control: vec![0; CONTROL_BYTES] }
    }
}

/// The result of receiving.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Received {
    /// A received frame.
    Frame(Vec<u8>),
    /// A frame that is not for a switch: a sent one, or one that another interface received before the socket was
    /// bound.
    Other,
    /// No frame is waiting.
    Nothing,
}

/// A packet socket that is bound to an interface.
#[derive(Debug)]
pub(crate) struct PacketSocket {
    socket: OwnedFd,
    interface: usize,
}

impl PacketSocket {
    /// Binds to the interface with this address, and receives frames for all addresses (promiscuous).
    pub(crate) fn open(address: &LinkAddr) -> io::Result<Self> {
        let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
        let socket = socket(AddressFamily::Packet, SockType::Raw, flags, SockProtocol::EthAll)?;
        bind(socket.as_raw_fd(), address)?;
        setsockopt(&socket, Auxdata, &true)?;
        // Linux before 4.20 does not have this option. There, sent frames are recognised by their type.
        let _ = setsockopt(&socket, IgnoreOutgoing, &true);
        let promiscuous = libc::packet_mreq {
            mr_ifindex: i32::try_from(address.ifindex()).map_err(io::Error::other)?,
            mr_type: libc::PACKET_MR_PROMISC as u16,
            mr_alen: 0,
            mr_address: [0; 8],
        };
        setsockopt(&socket, AddMembership, &promiscuous)?;
        Ok(PacketSocket { socket, interface: address.ifindex() })
    }

    /// The descriptor for the poll.
    pub(crate) fn raw(&self) -> RawFd {
        self.socket.as_raw_fd()
    }

    /// The index of its interface.
    pub(crate) fn interface(&self) -> usize {
        self.interface
    }

    /// Receives one frame.
    pub(crate) fn receive(&self, room: &mut Room) -> io::Result<Received> {
        let (bytes, offload) = {
            let mut parts = [IoSliceMut::new(&mut room.frame)];
            let flags = MsgFlags::MSG_DONTWAIT;
            let message = match recvmsg::<LinkAddr>(self.raw(), &mut parts, Some(&mut room.control), flags) {
                Ok(message) => message,
                Err(Errno::EAGAIN | Errno::EINTR) => return Ok(Received::Nothing),
                Err(error) => return Err(error.into()),
            };
            let from = message.address;
            if from.is_none_or(|from| from.ifindex() != self.interface || from.pkttype() == OUTGOING) {
                return Ok(Received::Other);
            }
            let auxdata = message.cmsgs()?.find_map(|control| match control {
                ControlMessageOwned::Unknown(control) => Some(Offload::read(&control.data_bytes)),
                _ => None,
            });
            (message.bytes, auxdata.unwrap_or_default())
        };
        let mut frame = room.frame.get(..bytes).unwrap_or_default().to_vec();
        offload.restore(&mut frame);
        Ok(Received::Frame(frame))
    }

    /// Sends a frame, if the interface has room for it.
    pub(crate) fn send(&self, frame: &[u8]) -> io::Result<()> {
        send(self.raw(), frame, MsgFlags::MSG_DONTWAIT)?;
        Ok(())
    }
}
