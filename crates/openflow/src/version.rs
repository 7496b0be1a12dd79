//! The version byte of a message.
//!
//! Never negotiates: it only interprets the byte.

use std::fmt;

/// The first byte of every message. A hello may have any version; other messages have 1.0 or 1.3.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Version(pub u8);

impl Version {
    /// OpenFlow 1.0.
    pub const V1_0: Version = Version(0x01);
    /// OpenFlow 1.3.
    pub const V1_3: Version = Version(0x04);

    /// Whether messages of this version can be read and written here.
    pub const fn is_spoken(self) -> bool {
        self.0 == Self::V1_0.0 || self.0 == Self::V1_3.0
    }
}

impl fmt::Display for Version {
    /// `1.0` … `1.5`, or the byte itself.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            minor @ 1..=6 => write!(f, "1.{}", minor - 1),
            byte => write!(f, "0x{byte:02x}"),
        }
    }
}

impl fmt::Debug for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OpenFlow {self}")
    }
}
