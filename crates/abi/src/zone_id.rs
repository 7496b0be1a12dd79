//! The number of a zone. The kernel identifies apps by it, and rules carry it as their owner.
//!
//! An app keeps its number after its restarts, and after restarts of the node if the node has a records folder. No number is reused.

use std::fmt;

/// The number of a zone. 0 is the kernel, which owns the table-miss rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ZoneId(pub u16);

/// The number of low bits of a cookie that the app chooses. The kernel writes the owner above them.
pub const COOKIE_BITS: u32 = 48;

/// The mask of the app's part of a cookie.
pub const COOKIE_MASK: u64 = (1 << COOKIE_BITS) - 1;

impl ZoneId {
    /// The kernel.
    pub const KERNEL: ZoneId = ZoneId(0);

    /// The cookie on the switch for this owner's `cookie`, without its upper 16 bits.
    #[inline]
    pub const fn stamp(self, cookie: u64) -> u64 {
        (self.0 as u64) << COOKIE_BITS | cookie & COOKIE_MASK
    }

    /// The owner in this cookie.
    #[inline]
    pub const fn owner_of(cookie: u64) -> ZoneId {
        ZoneId((cookie >> COOKIE_BITS) as u16)
    }
}

impl fmt::Display for ZoneId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}
