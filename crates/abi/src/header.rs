//! The header of every frame, 24 bytes.
//!
//! The modules `event` and `command` define the bodies.

use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// The length of a header in bytes.
pub const HEADER_LEN: usize = size_of::<Header>();

/// The maximum length of a frame in bytes. The largest OpenFlow message (65,535 bytes) fits.
pub const MAX_FRAME_LEN: usize = 128 * 1024;

/// The flag that requests a receipt for a command.
pub const FLAG_RECEIPT: u16 = 1;

/// The flag that requests a receipt for a command only if the kernel refuses it. No barrier follows the command.
pub const FLAG_REFUSAL: u16 = 2;

/// The encoding of a header, little-endian.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct Header {
    /// The type: one of [`crate::event::kind`] or [`crate::command::kind`].
    pub kind: U16,
    /// [`FLAG_RECEIPT`], [`FLAG_REFUSAL`], or 0.
    pub flags: U16,
    /// The length of the frame in bytes, with this header.
    pub length: U32,
    /// The switch; 0 if the frame is for none.
    pub datapath: U64,
    /// For an event: its sequence number, which grows for each switch. For a command: the ticket that the app chose.
    pub sequence: U64,
}
