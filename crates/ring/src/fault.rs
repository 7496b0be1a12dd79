//! What can be wrong with a port, with a peer, or with a push, each in words for the log.
//!
//! Nothing here decides what follows: the owner of the end does (a kernel ends the app's zone).

use std::fmt;
use std::io;

/// Why a frame was not pushed. The ring is as it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Full {
    /// The consumer has to take frames away first (or the room left is kept back for others). Trying later may succeed.
    NoRoom,
    /// The frame is longer than any frame of this ring may be. Trying later is of no use: the caller's own mistake.
    FrameTooLong {
        /// Length of the frame in bytes.
        length_bytes: usize,
        /// The most that this ring takes.
        max_bytes: usize,
    },
}

impl fmt::Display for Full {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Full::NoRoom => write!(f, "the ring is full until its consumer takes frames away"),
            Full::FrameTooLong { length_bytes, max_bytes } => {
                write!(f, "a frame of {length_bytes} bytes never fits: this ring takes at most {max_bytes}")
            }
        }
    }
}

impl std::error::Error for Full {}

/// What the peer wrote into the shared memory that no correct peer writes. The end that found it believes nothing of that
/// ring any more and gives the same answer to each further call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PeerFault {
    /// The producer's index is smaller than it has been.
    WriteIndexWentBackwards {
        /// What it was, in bytes since the ring began.
        from_bytes: u64,
        /// What it is.
        to_bytes: u64,
    },
    /// The producer claims to have written more than the ring holds beyond what was read.
    WroteMoreThanFits {
        /// Unread bytes that it claims.
        claimed_bytes: u64,
        /// Size of the ring.
        ring_bytes: u64,
    },
    /// A frame announces more than any frame may have.
    FrameTooLong {
        /// What it announces.
        length_bytes: u64,
        /// The most that this ring takes.
        max_bytes: u64,
    },
    /// A frame announces more than was published.
    FrameBeyondWritten {
        /// What it announces.
        length_bytes: u64,
        /// What was published, the frame's own length word included.
        written_bytes: u64,
    },
    /// The consumer's index is smaller than it has been.
    ReadIndexWentBackwards {
        /// What it was, in bytes since the ring began.
        from_bytes: u64,
        /// What it is.
        to_bytes: u64,
    },
    /// The consumer claims to have read what was never published.
    ReadMoreThanWritten {
        /// Up to where it claims to have read, in bytes since the ring began.
        read_bytes: u64,
        /// Up to where there was anything to read.
        written_bytes: u64,
    },
}

impl fmt::Display for PeerFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PeerFault::WriteIndexWentBackwards { from_bytes, to_bytes } => {
                write!(f, "the peer's write index went backwards, from {from_bytes} to {to_bytes}")
            }
            PeerFault::WroteMoreThanFits { claimed_bytes, ring_bytes } => {
                write!(f, "the peer claims {claimed_bytes} unread bytes in a ring of {ring_bytes}")
            }
            PeerFault::FrameTooLong { length_bytes, max_bytes } => {
                write!(f, "the peer's frame announces {length_bytes} bytes, where {max_bytes} is the most")
            }
            PeerFault::FrameBeyondWritten { length_bytes, written_bytes } => {
                write!(
                    f,
                    "the peer's frame announces {length_bytes} bytes, but only {written_bytes} were written"
                )
            }
            PeerFault::ReadIndexWentBackwards { from_bytes, to_bytes } => {
                write!(f, "the peer's read index went backwards, from {from_bytes} to {to_bytes}")
            }
            PeerFault::ReadMoreThanWritten { read_bytes, written_bytes } => {
                write!(
                    f,
                    "the peer claims to have read up to {read_bytes}, where {written_bytes} were written"
                )
            }
        }
    }
}

impl std::error::Error for PeerFault {}

/// Why file descriptors are not an end of a port. Nothing was mapped; the maker of the port is to blame, or a version of
/// it that does not belong to this one.
#[derive(Debug)]
pub enum PortFault {
    /// The memory can change its size under the one who maps it, or is no memfd at all.
    NotSealed,
    /// The memory does not begin as a port does.
    NotAPort,
    /// The memory is a port of another layout.
    WrongVersion {
        /// The version that it has.
        found: u64,
        /// The version that this crate knows.
        known: u64,
    },
    /// A ring's size is no power of two within the bounds of [`crate::Sizes`], or too small for the frames that its owner has.
    RingSize {
        /// The size that the header gives, in bytes.
        found_bytes: u64,
    },
    /// The memory is not as long as its header says.
    MemorySize {
        /// What the header adds up to, in bytes.
        expected_bytes: u64,
        /// What the memory has.
        found_bytes: u64,
    },
    /// A descriptor that should wake somebody is none that does, or could block the one who uses it.
    NotAWake {
        /// Which one: `wake_app` or `wake_kernel`.
        which: &'static str,
    },
    /// The system refused.
    System(io::Error),
}

impl fmt::Display for PortFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PortFault::NotSealed => {
                write!(f, "the port's memory is not a memfd sealed against shrinking and growing")
            }
            PortFault::NotAPort => write!(f, "the port's memory does not begin with the mark of a port"),
            PortFault::WrongVersion { found, known } => write!(
                f,
                "the port has layout version {found}, and this side knows {known}: build both sides from one release"
            ),
            PortFault::RingSize { found_bytes } => {
                write!(f, "the port has a ring of {found_bytes} bytes, which is no size that this side takes")
            }
            PortFault::MemorySize { expected_bytes, found_bytes } => {
                write!(
                    f,
                    "the port's memory has {found_bytes} bytes where its header adds up to {expected_bytes}"
                )
            }
            PortFault::NotAWake { which } => {
                write!(f, "the port's descriptor {which} is not of the kind that this side was to be given")
            }
            PortFault::System(error) => write!(f, "the system refused to attach the port: {error}"),
        }
    }
}

impl std::error::Error for PortFault {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            PortFault::System(error) => Some(error),
            _ => None,
        }
    }
}

impl From<io::Error> for PortFault {
    fn from(error: io::Error) -> Self {
        PortFault::System(error)
    }
}
