//! The port number of a switch, and the reserved ports with their names.
//!
//! Numbers are those of OpenFlow 1.3 (32 bits). The 16-bit numbers of 1.0 are converted only when a message is read or
//! written. Never checks whether a port exists.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::str::FromStr;

/// A port number (OpenFlow 1.3.5, 7.2.1). Reserved ports print by name, as ovs-ofctl does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PortNo(pub u32);

/// A text that is not a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotAPort(String);

const RESERVED: [(PortNo, &str); 9] = [
    (PortNo::UNSET, "UNSET"),
    (PortNo::IN_PORT, "IN_PORT"),
    (PortNo::TABLE, "TABLE"),
    (PortNo::NORMAL, "NORMAL"),
    (PortNo::FLOOD, "FLOOD"),
    (PortNo::ALL, "ALL"),
    (PortNo::CONTROLLER, "CONTROLLER"),
    (PortNo::LOCAL, "LOCAL"),
    (PortNo::ANY, "ANY"),
];

impl PortNo {
    /// The highest number that a physical or logical port can have (OFPP_MAX).
    pub const MAX: PortNo = PortNo(0xffff_ff00);
    /// Open vSwitch's OFPP_UNSET (of 1.5), which it also shows to older versions.
    pub const UNSET: PortNo = PortNo(0xffff_fff7);
    /// Out of the packet's input port.
    pub const IN_PORT: PortNo = PortNo(0xffff_fff8);
    /// Through the flow tables, for a packet-out.
    pub const TABLE: PortNo = PortNo(0xffff_fff9);
    /// Through the switch's own, traditional forwarding.
    pub const NORMAL: PortNo = PortNo(0xffff_fffa);
    /// Out of every port that floods, except the input port.
    pub const FLOOD: PortNo = PortNo(0xffff_fffb);
    /// Out of every port, except the input port.
    pub const ALL: PortNo = PortNo(0xffff_fffc);
    /// To the controller, as a packet-in.
    pub const CONTROLLER: PortNo = PortNo(0xffff_fffd);
    /// The switch's own network stack.
    pub const LOCAL: PortNo = PortNo(0xffff_fffe);
    /// A wildcard in requests (OFPP_NONE in 1.0).
    pub const ANY: PortNo = PortNo(0xffff_ffff);

    /// The name of a reserved port.
    pub fn reserved_name(self) -> Option<&'static str> {
        RESERVED.iter().find(|(port, _)| *port == self).map(|(_, name)| *name)
    }

    /// The 32-bit number for 1.0's 16-bit one: the reserved ones (0xfff8 and up) move to the top.
    #[inline]
    pub const fn from_v10(number: u16) -> PortNo {
        if number >= 0xff00 { PortNo(number as u32 | 0xffff_0000) } else { PortNo(number as u32) }
    }

    /// The number in OpenFlow 1.0, or `None` if 1.0 cannot express it.
    #[inline]
    pub const fn to_v10(self) -> Option<u16> {
        if self.0 < 0xff00 || self.0 >= 0xffff_ff00 { Some((self.0 & 0xffff) as u16) } else { None }
    }
}

impl fmt::Display for PortNo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.reserved_name() {
            Some(name) => f.pad(name),
            None => write!(f, "{}", self.0),
        }
    }
}

impl FromStr for PortNo {
    type Err = NotAPort;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if let Some((port, _)) = RESERVED.iter().find(|(_, name)| name.eq_ignore_ascii_case(text)) {
            return Ok(*port);
        }
        let number = match text.strip_prefix("0x") {
            Some(digits) => u32::from_str_radix(digits, 16),
            None => text.parse(),
        };
        number.map(PortNo).map_err(|_| NotAPort(text.to_owned()))
    }
}

/// A number for ordinary ports, a name for reserved ports.
impl Serialize for PortNo {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.reserved_name() {
            Some(name) => serializer.serialize_str(name),
            None => serializer.serialize_u32(self.0),
        }
    }
}

impl<'de> Deserialize<'de> for PortNo {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Written {
            Number(u32),
            Name(String),
        }
        match Written::deserialize(deserializer)? {
            Written::Number(number) => Ok(PortNo(number)),
            Written::Name(name) => name.parse().map_err(serde::de::Error::custom),
        }
    }
}

impl fmt::Display for NotAPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "'{}' is not a port: write a number or one of", self.0)?;
        RESERVED.iter().try_for_each(|(_, name)| write!(f, " {name}"))
    }
}

impl std::error::Error for NotAPort {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_port_is_refused() {
        for text in ["", "-1", "4294967296", "0xfffffffff", "NOWHERE"] {
            assert!(text.parse::<PortNo>().is_err(), "{text}");
        }
    }

    #[test]
    fn reserved_ports_have_names() {
        assert_eq!("controller".parse(), Ok(PortNo::CONTROLLER));
        assert_eq!(PortNo(7).to_string(), "7");
        assert_eq!(PortNo::FLOOD.to_string(), "FLOOD");
    }

    #[test]
    fn reserved_ports_move_between_the_versions() {
        assert_eq!(PortNo::from_v10(0xfffd), PortNo::CONTROLLER);
        assert_eq!(PortNo::from_v10(0xffff), PortNo::ANY);
        assert_eq!(PortNo::CONTROLLER.to_v10(), Some(0xfffd));
        assert_eq!(PortNo(0xfeff).to_v10(), Some(0xfeff));
        assert_eq!(PortNo(0x1_0000).to_v10(), None);
    }
}
