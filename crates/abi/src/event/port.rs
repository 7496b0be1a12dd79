//! A port of a switch, as events encode it.

use flow::{MacAddr, PortNo};
use zerocopy::little_endian::U32;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// The encoding of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct PortRecord {
    port_no: U32,
    hw_addr: [u8; 6],
    live: u8,
    administratively_up: u8,
    curr_speed_kbps: U32,
    name: [u8; 16],
}

/// A decoded port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortFacts<'a> {
    /// Its number.
    pub port_no: PortNo,
    /// Its Ethernet address.
    pub hw_addr: MacAddr,
    /// Whether the port is up and its link is up.
    pub live: bool,
    /// Whether the port is not administratively down.
    pub administratively_up: bool,
    /// Its rate, 0 if unknown.
    pub curr_speed_kbps: u32,
    /// Its name, at most 16 bytes.
    pub name: &'a str,
}

impl PortRecord {
    /// Encodes a port. A name longer than 16 bytes is cut at a character.
    pub fn new(facts: PortFacts<'_>) -> Self {
        let mut name = [0; 16];
        let cut = facts.name.floor_char_boundary(name.len());
        name[..cut].copy_from_slice(&facts.name.as_bytes()[..cut]);
        PortRecord {
            port_no: facts.port_no.0.into(),
            hw_addr: facts.hw_addr.0,
            live: facts.live.into(),
            administratively_up: facts.administratively_up.into(),
            curr_speed_kbps: facts.curr_speed_kbps.into(),
            name,
        }
    }

    /// Its number.
    pub fn port_no(&self) -> PortNo {
        PortNo(self.port_no.get())
    }

    /// The decoded port. A name that is not UTF-8 becomes empty.
    pub fn facts(&self) -> PortFacts<'_> {
        let end = self.name.iter().position(|byte| *byte == 0).unwrap_or(self.name.len());
        PortFacts {
            port_no: self.port_no(),
            hw_addr: MacAddr(self.hw_addr),
            live: self.live != 0,
            administratively_up: self.administratively_up != 0,
            curr_speed_kbps: self.curr_speed_kbps.get(),
            name: std::str::from_utf8(&self.name[..end]).unwrap_or(""),
        }
    }
}
