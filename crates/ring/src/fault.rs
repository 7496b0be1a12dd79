//! The errors of ports, peers and pushes, each with a text for the log.
//!
//! The owner of the end decides what follows; the kernel ends the app's zone.

use std::fmt;
use std::io;

/// The reason why a frame was not pushed. The ring is unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Full {
    /// There is no room until the consumer takes frames, or the free room is reserved. A later try may succeed.
    NoRoom,
    /// The frame exceeds the frame limit of this ring. This is an error of the caller; a later try fails too.
    FrameTooLong {
        /// Length of the frame in bytes.
        length_bytes: usize,
        /// The limit of this ring.
        max_bytes: usize,
    },
}

impl fmt::Display for Full {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Full::NoRoom => write!(f, "the ring is full until its consumer reads frames"),
            Full::FrameTooLong { length_bytes, max_bytes } => {
                write!(f, "a frame of {length_bytes} bytes never fits: this ring takes at most {max_bytes}")
            }
        }
    }
}

impl std::error::Error for Full {}

/// A violation by the peer, found in the shared memory. The end that found it no longer uses the ring, and returns the
/// same fault from each further call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PeerFault {
    /// The producer's index is smaller than it has been.
    WriteIndexWentBackwards {
        /// The earlier index, in bytes since the start of the ring.
        from_bytes: u64,
        /// The present index.
        to_bytes: u64,
    },
    /// The producer claims to have written more than the ring holds beyond what was read.
    WroteMoreThanFits {
        /// The claimed number of unread bytes.
        claimed_bytes: u64,
        /// Size of the ring.
        ring_bytes: u64,
    },
    /// A frame's length exceeds the limit of frames.
    FrameTooLong {
        /// The length of the frame.
        length_bytes: u64,
        /// The limit of this ring.
        max_bytes: u64,
    },
    /// A frame's length exceeds the published bytes.
    FrameBeyondWritten {
        /// The length of the frame.
        length_bytes: u64,
        /// The published bytes, including the frame's length word.
        written_bytes: u64,
    },
    /// The consumer's index is smaller than it has been.
    ReadIndexWentBackwards {
        /// The earlier index, in bytes since the start of the ring.
        from_bytes: u64,
        /// The present index.
        to_bytes: u64,
    },
    /// The consumer claims to have read what was never published.
    ReadMoreThanWritten {
        /// The claimed read position, in bytes since the start of the ring.
        read_bytes: u64,
        /// The published position.
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
                write!(
                    f,
                    "the peer's frame header has a length of {length_bytes} bytes, but the limit is {max_bytes}"
                )
            }
            PeerFault::FrameBeyondWritten { length_bytes, written_bytes } => {
                write!(
                    f,
                    "the peer's frame header has a length of {length_bytes} bytes, but only {written_bytes} were written"
                )
            }
            PeerFault::ReadIndexWentBackwards { from_bytes, to_bytes } => {
                write!(f, "the peer's read index went backwards, from {from_bytes} to {to_bytes}")
            }
            PeerFault::ReadMoreThanWritten { read_bytes, written_bytes } => {
                write!(
                    f,
                    "the peer claims to have read up to {read_bytes}, but only {written_bytes} were written"
                )
            }
        }
    }
}

impl std::error::Error for PeerFault {}

/// The reason why file descriptors are not an end of a port. Nothing was mapped. The fault is in the maker of the port,
/// or in a different version of it.
#[derive(Debug)]
pub enum PortFault {
    /// The memory is not a memfd, or its size could change while it is mapped.
    NotSealed,
    /// The memory has no port header.
    NotAPort,
    /// The memory is a port of another layout.
    WrongVersion {
        /// The version in the header.
        found: u64,
        /// The version of this crate.
        known: u64,
    },
    /// A ring's size is not a power of two within the bounds of [`crate::Sizes`], or too small for the owner's frames.
    RingSize {
        /// The size that the header gives, in bytes.
        found_bytes: u64,
    },
    /// The length of the memory does not match its header.
    MemorySize {
        /// The length according to the header, in bytes.
        expected_bytes: u64,
        /// The length of the memory.
        found_bytes: u64,
    },
    /// A wake-up descriptor has the wrong type, or could block its user.
    NotAWake {
        /// The name of the descriptor: `wake_app` or `wake_kernel`.
        which: &'static str,
    },
    /// A system call failed.
    System(io::Error),
}

impl fmt::Display for PortFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PortFault::NotSealed => {
                write!(f, "the port's memory is not a memfd sealed against shrinking and growing")
            }
            PortFault::NotAPort => {
                write!(f, "the port's memory does not begin with the magic number of a port")
            }
            PortFault::WrongVersion { found, known } => write!(
                f,
                "the port has layout version {found}, and this side supports {known}: build both sides from one release"
            ),
            PortFault::RingSize { found_bytes } => {
                write!(f, "the port has a ring of {found_bytes} bytes, which is not a supported size")
            }
            PortFault::MemorySize { expected_bytes, found_bytes } => {
                write!(
                    f,
                    "the port's memory has {found_bytes} bytes, but its header requires {expected_bytes}"
                )
            }
            PortFault::NotAWake { which } => {
                write!(f, "the port's descriptor {which} has the wrong type")
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
