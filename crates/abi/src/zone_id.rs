//! Which zone: the number by which the kernel knows an app, and by which a rule knows its owner.
//!
//! Not reused: an app keeps its number through its restarts, and through the node's where the node keeps records.

use std::fmt;

/// The number of a zone. 0 is the kernel itself, as the owner of the rules that bring packets up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ZoneId(pub u16);

/// How many low bits of a cookie are the app's own; the kernel puts the owner above them.
pub const COOKIE_BITS: u32 = 48;

/// The part of a cookie that is the app's own.
pub const COOKIE_MASK: u64 = (1 << COOKIE_BITS) - 1;

impl ZoneId {
    /// The kernel.
    pub const KERNEL: ZoneId = ZoneId(0);

    /// The cookie on the switch for this owner's `cookie`, of which the upper 16 bits are dropped.
    #[inline]
    pub const fn stamp(self, cookie: u64) -> u64 {
        (self.0 as u64) << COOKIE_BITS | cookie & COOKIE_MASK
    }

    /// Whose rule carries this cookie.
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
