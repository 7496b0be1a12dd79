//! The socket between the monitor and one child process: whole messages, with file descriptors.
//!
//! In: a message and descriptors. Out: the same at the other end of a Unix SEQPACKET socket pair. A message that is longer
//! than a datagram goes through a sealed memory file (`long`), so it is sent whole or not at all. It blocks only
//! in [`Channel::receive`]. It never allocates more than [`MESSAGE_BYTES_MAX`] for a message of the peer, and closes every
//! descriptor that it does not return.

use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::{fmt, io};

use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, sockopt,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::long;
use crate::protocol::{PORT_FDS, WORKERS_MAX};
use zone::sandbox::LISTEN_MAX;

/// The maximum length of a datagram in bytes. Linux's default socket buffer of 208 KiB holds one. A longer message goes
/// through a memory file.
pub const DATAGRAM_BYTES_MAX: usize = 192 << 10;

/// The maximum length of a message in bytes. The largest is the status of all apps, at most four and a half kilobytes each.
pub const MESSAGE_BYTES_MAX: usize = 5 << 20;

/// The maximum number of descriptors with one message: the ports of one zone, the sockets on which it listens, and its region.
pub const MESSAGE_FDS_MAX: usize = WORKERS_MAX as usize * PORT_FDS + LISTEN_MAX + 1;

/// The descriptors of a message, and the memory file of a long one.
const DATAGRAM_FDS_MAX: usize = MESSAGE_FDS_MAX + 1;

/// A message with its descriptors.
#[derive(Debug)]
pub struct Received<M> {
    /// The message.
    pub message: M,
    /// In the order in which they were sent; close-on-exec.
    pub fds: Vec<OwnedFd>,
}

/// The error of a send or receive operation.
#[derive(Debug)]
pub enum ChannelError {
    /// The socket is not ready; try again when the poll reports it.
    NotNow,
    /// The other end is closed.
    Closed,
    /// The message is longer than [`MESSAGE_BYTES_MAX`] or has more than [`MESSAGE_FDS_MAX`] descriptors.
    TooLarge {
        /// The length of the message in bytes.
        bytes: usize,
        /// The number of descriptors.
        fds: usize,
    },
    /// The peer sent a malformed message. It must not be trusted any more.
    Garbage(String),
    /// The system refused, or standard input is not such a socket.
    Io(io::Error),
}

impl fmt::Display for ChannelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ChannelError::NotNow => f.write_str("the socket is not ready"),
            ChannelError::Closed => f.write_str("the other end of the socket is closed"),
            ChannelError::TooLarge { bytes, fds } => {
                write!(f, "a message of {bytes} bytes and {fds} descriptors; ")?;
                write!(f, "at most {MESSAGE_BYTES_MAX} and {MESSAGE_FDS_MAX} are passed on")
            }
            ChannelError::Garbage(what) => write!(f, "not a message: {what}"),
            ChannelError::Io(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for ChannelError {}

impl From<Errno> for ChannelError {
    fn from(errno: Errno) -> ChannelError {
        match errno {
            Errno::AGAIN => ChannelError::NotNow,
            Errno::PIPE | Errno::CONNRESET | Errno::NOTCONN => ChannelError::Closed,
            other => ChannelError::Io(other.into()),
        }
    }
}

/// One end of the socket.
#[derive(Debug)]
pub struct Channel {
    socket: OwnedFd,
}

impl AsFd for Channel {
    /// For poll loops. Readable when [`Channel::try_receive`] has a message or an error.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Channel {
    /// A channel and the descriptor of its other end, which becomes a child's standard input.
    ///
    /// # Errors
    /// When the process is out of descriptors.
    pub fn pair() -> io::Result<(Channel, OwnedFd)> {
        let (ours, theirs) =
            rustix::net::socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
        Ok((Channel { socket: ours }, theirs))
    }

    /// The other end of [`Self::pair`], in the same process.
    #[must_use]
    pub fn from_fd(socket: OwnedFd) -> Channel {
        Channel { socket }
    }

    /// The child's end: takes the socket from standard input and leaves `/dev/null` there, so that no other code reads
    /// from the socket.
    ///
    /// # Errors
    /// [`ChannelError::Io`] if standard input is not a SEQPACKET socket, which means that no monitor started us.
    pub fn from_stdin() -> Result<Channel, ChannelError> {
        let stdin = rustix::stdio::stdin();
        let socket_type = sockopt::socket_type(stdin)?;
        if socket_type != SocketType::SEQPACKET {
            return Err(ChannelError::Io(io::Error::other("standard input is not a monitor's socket")));
        }
        let socket = rustix::io::fcntl_dupfd_cloexec(stdin, 3)?;
        let nothing = std::fs::File::open("/dev/null").map_err(ChannelError::Io)?;
        rustix::stdio::dup2_stdin(nothing)?;
        Ok(Channel { socket })
    }

    /// Sends without waiting.
    ///
    /// # Errors
    /// All but `Garbage`. Nothing has been sent then.
    pub fn try_send<M: Serialize>(&self, message: &M, fds: &[BorrowedFd<'_>]) -> Result<(), ChannelError> {
        self.try_send_bytes(&encode(message)?, fds)
    }

    /// Sends a message that [`encode`] made.
    pub fn try_send_bytes(&self, bytes: &[u8], fds: &[BorrowedFd<'_>]) -> Result<(), ChannelError> {
        if bytes.len() > MESSAGE_BYTES_MAX || fds.len() > MESSAGE_FDS_MAX {
            return Err(ChannelError::TooLarge { bytes: bytes.len(), fds: fds.len() });
        }
        if bytes.len() > DATAGRAM_BYTES_MAX {
            let file = long::put(bytes).map_err(ChannelError::Io)?;
            return self.send_datagram(long::DATAGRAM, &[fds, &[file.as_fd()]].concat());
        }
        self.send_datagram(bytes, fds)
    }

    fn send_datagram(&self, bytes: &[u8], fds: &[BorrowedFd<'_>]) -> Result<(), ChannelError> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DATAGRAM_FDS_MAX))];
        let mut beside = SendAncillaryBuffer::new(&mut space);
        if !fds.is_empty() && !beside.push(SendAncillaryMessage::ScmRights(fds)) {
            return Err(ChannelError::TooLarge { bytes: bytes.len(), fds: fds.len() });
        }
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        let sent =
            retry(|| rustix::net::sendmsg(&self.socket, &[io::IoSlice::new(bytes)], &mut beside, flags));
        match sent {
            Err(Errno::MSGSIZE) => Err(ChannelError::TooLarge { bytes: bytes.len(), fds: fds.len() }),
            other => Ok(other.map(|_| ())?),
        }
    }

    /// Receives what is there, without waiting.
    ///
    /// # Errors
    /// All but `TooLarge`. After `Garbage` the next message can be received all the same.
    pub fn try_receive<M: DeserializeOwned>(&self) -> Result<Received<M>, ChannelError> {
        self.receive_with(RecvFlags::DONTWAIT)
    }

    /// Waits for a message.
    ///
    /// # Errors
    /// `Closed`, `Garbage` or `Io`.
    pub fn receive<M: DeserializeOwned>(&self) -> Result<Received<M>, ChannelError> {
        self.receive_with(RecvFlags::empty())
    }

    /// Receives what is there, without waiting and without reading it. Descriptors that came with it are closed.
    ///
    /// # Errors
    /// As [`Self::try_receive`].
    pub fn try_receive_bytes(&self) -> Result<Vec<u8>, ChannelError> {
        self.receive_bytes(RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC).map(|(bytes, _)| bytes)
    }

    fn receive_with<M: DeserializeOwned>(&self, flags: RecvFlags) -> Result<Received<M>, ChannelError> {
        let (bytes, fds) = self.receive_bytes(flags | RecvFlags::CMSG_CLOEXEC)?;
        let message =
            serde_json::from_slice(&bytes).map_err(|error| ChannelError::Garbage(error.to_string()))?;
        Ok(Received { message, fds })
    }

    fn receive_bytes(&self, flags: RecvFlags) -> Result<(Vec<u8>, Vec<OwnedFd>), ChannelError> {
        let mut bytes = vec![0; DATAGRAM_BYTES_MAX];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DATAGRAM_FDS_MAX))];
        let mut beside = RecvAncillaryBuffer::new(&mut space);
        let got = retry(|| {
            rustix::net::recvmsg(&self.socket, &mut [io::IoSliceMut::new(&mut bytes)], &mut beside, flags)
        })?;
        let mut fds: Vec<OwnedFd> = beside.drain().filter_map(rights).flatten().collect();
        let cut = got.flags.intersects(ReturnFlags::TRUNC | ReturnFlags::CTRUNC);
        let is_long = bytes.get(..got.bytes) == Some(long::DATAGRAM);
        // Because of alignment, one descriptor more than requested may arrive.
        if cut || fds.len() > MESSAGE_FDS_MAX + usize::from(is_long) {
            return Err(ChannelError::Garbage(
                "it was truncated: it is too long, or has too many descriptors".into(),
            ));
        }
        // Nobody sends an empty message, so that this is the end of the stream alone.
        if got.bytes == 0 {
            return Err(ChannelError::Closed);
        }
        bytes.truncate(got.bytes);
        if is_long {
            bytes =
                long::take(fds.pop(), MESSAGE_BYTES_MAX).map_err(|why| ChannelError::Garbage(why.into()))?;
        }
        Ok((bytes, fds))
    }
}

/// The bytes of a message on the socket: one JSON object.
///
/// # Errors
/// [`ChannelError::Io`] if the message has no JSON form.
pub fn encode<M: Serialize>(message: &M) -> Result<Vec<u8>, ChannelError> {
    serde_json::to_vec(message).map_err(|error| ChannelError::Io(error.into()))
}

fn rights(message: RecvAncillaryMessage<'_>) -> Option<impl Iterator<Item = OwnedFd>> {
    match message {
        RecvAncillaryMessage::ScmRights(fds) => Some(fds),
        _ => None,
    }
}

/// A signal handler that ran in between is no reason to give up.
fn retry<T>(mut call: impl FnMut() -> rustix::io::Result<T>) -> rustix::io::Result<T> {
    loop {
        match call() {
            Err(Errno::INTR) => continue,
            other => return other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{FaultCause, FromKernel};
    use std::fs::File;
    use std::io::{Read, Write};

    fn pair() -> (Channel, Channel) {
        let (ours, theirs) = Channel::pair().unwrap();
        (ours, Channel { socket: theirs })
    }

    /// The result of receiving one raw datagram.
    fn check(raw: &[u8], fds: usize, expected: &str) {
        let (ours, theirs) = pair();
        let file = File::open("/dev/null").unwrap();
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(200))];
        let mut beside = SendAncillaryBuffer::new(&mut space);
        let fds = vec![file.as_fd(); fds];
        assert!(fds.is_empty() || beside.push(SendAncillaryMessage::ScmRights(&fds)));
        rustix::net::sendmsg(&ours.socket, &[io::IoSlice::new(raw)], &mut beside, SendFlags::empty())
            .unwrap();
        let got = match theirs.try_receive::<FromKernel>() {
            Ok(received) => format!("{:?} with {}", received.message, received.fds.len()),
            Err(error) => error.to_string(),
        };
        assert!(got.contains(expected), "{got}");
    }

    #[test]
    fn a_damaged_message_is_garbage_and_no_more() {
        check(b"{", 0, "not a message: EOF");
        check(b"\xff\x00", 0, "not a message: expected value");
        check(&vec![b' '; DATAGRAM_BYTES_MAX + 1], 0, "truncated");
        check(br#""alive""#, MESSAGE_FDS_MAX + 1, "truncated");
        check(long::DATAGRAM, 0, "a long message without its memory file");
        check(long::DATAGRAM, 1, "not a sealed memory file");
        check(long::DATAGRAM, MESSAGE_FDS_MAX + 2, "truncated");
        check(&b"[".repeat(10_000), 0, "not a message");
        check(br#""alive""#, MESSAGE_FDS_MAX, &format!("Alive with {MESSAGE_FDS_MAX}"));
    }

    #[test]
    fn descriptors_that_were_cut_off_are_not_kept() {
        let open = || std::fs::read_dir("/proc/self/fd").unwrap().count();
        // Other tests of this process open and close descriptors meanwhile; a leak would grow without end.
        let before = open();
        for _ in 0..50 {
            check(br#""alive""#, MESSAGE_FDS_MAX + 10, "truncated");
        }
        assert!(open() < before + 1_000, "{} descriptors before, {} after", before, open());
    }

    #[test]
    fn a_descriptor_arrives_as_the_same_file() {
        let (ours, theirs) = pair();
        let (mut reader, writer) = io::pipe().unwrap();
        ours.try_send(&FromKernel::Ready, &[writer.as_fd()]).unwrap();
        drop(writer);
        let received = theirs.receive::<FromKernel>().unwrap();
        assert_eq!(received.message, FromKernel::Ready);
        for fd in received.fds {
            File::from(fd).write_all(b"same").unwrap();
        }
        let mut text = String::new();
        reader.read_to_string(&mut text).unwrap();
        assert_eq!(text, "same");
    }

    #[test]
    fn a_full_socket_says_not_now_and_keeps_what_was_sent_in_order() {
        let (ours, theirs) = pair();
        let say = |number: u64| FromKernel::ZoneFault {
            app: "hub".into(),
            generation: number,
            cause: FaultCause::BrokePort,
            reason: "x".repeat(1_000),
        };
        let mut sent = 0;
        let refused = loop {
            match ours.try_send(&say(sent), &[]) {
                Ok(()) => sent += 1,
                Err(error) => break error,
            }
        };
        assert!(matches!(refused, ChannelError::NotNow), "{refused}");
        for number in 0..sent {
            assert_eq!(theirs.try_receive::<FromKernel>().unwrap().message, say(number));
        }
        assert!(matches!(theirs.try_receive::<FromKernel>(), Err(ChannelError::NotNow)));
    }

    #[test]
    fn the_longest_message_passes_and_a_longer_one_is_refused_before_it_is_sent() {
        let (ours, theirs) = pair();
        let text = |bytes: usize| "x".repeat(bytes - 2);
        let file = File::open("/dev/null").unwrap();
        for bytes in [DATAGRAM_BYTES_MAX, DATAGRAM_BYTES_MAX + 1, MESSAGE_BYTES_MAX] {
            ours.try_send(&text(bytes), &vec![file.as_fd(); MESSAGE_FDS_MAX]).unwrap();
            let received = theirs.receive::<String>().unwrap();
            assert_eq!((received.message.len(), received.fds.len()), (bytes - 2, MESSAGE_FDS_MAX));
        }
        let refused = ours.try_send(&text(MESSAGE_BYTES_MAX + 1), &[]);
        assert!(matches!(refused, Err(ChannelError::TooLarge { .. })));
    }

    #[test]
    fn the_end_of_the_peer_is_told_after_what_it_said() {
        let (ours, theirs) = pair();
        ours.try_send(&FromKernel::Alive, &[]).unwrap();
        drop(ours);
        assert_eq!(theirs.receive::<FromKernel>().unwrap().message, FromKernel::Alive);
        assert!(matches!(theirs.receive::<FromKernel>(), Err(ChannelError::Closed)));
        assert!(matches!(theirs.try_send(&FromKernel::Alive, &[]), Err(ChannelError::Closed)));
    }
}
