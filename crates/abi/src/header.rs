//! The 24 bytes that every frame begins with.
//!
//! Never says what a body means; `event` and `command` do.

use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// How long a header is.
pub const HEADER_LEN: usize = size_of::<Header>();

/// No frame is longer: the largest OpenFlow message (65,535 bytes) and its wrapping fit.
pub const MAX_FRAME_LEN: usize = 128 * 1024;

/// A command with this flag is answered by a receipt with its ticket.
pub const FLAG_RECEIPT: u16 = 1;

/// A header as it lies in a frame. Little-endian.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct Header {
    /// What the frame is: one of [`crate::event::kind`] or [`crate::command::kind`].
    pub kind: U16,
    /// [`FLAG_RECEIPT`], or 0.
    pub flags: U16,
    /// Bytes of the whole frame, this header included.
    pub length: U32,
    /// The switch that it is about; 0 where it is about none.
    pub datapath: U64,
    /// An event's sequence number, growing for each datapath; a command's ticket, chosen by the app.
    pub sequence: U64,
}
