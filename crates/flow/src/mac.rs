//! An Ethernet address.
//!
//! Never looks anything up: no vendor names, no resolution.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// A 48-bit Ethernet address. Prints as `00:11:22:33:44:55`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct MacAddr(pub [u8; 6]);

/// A text that is not an Ethernet address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotAMacAddr(String);

impl MacAddr {
    /// `ff:ff:ff:ff:ff:ff`.
    pub const BROADCAST: MacAddr = MacAddr([0xff; 6]);

    /// Whether this is a group address: the lowest bit of the first octet is set. Broadcast is included.
    #[inline]
    pub const fn is_multicast(self) -> bool {
        self.0[0] & 1 == 1
    }

    /// The address as a number, the first octet the most significant.
    #[inline]
    pub fn to_u64(self) -> u64 {
        let [a, b, c, d, e, f] = self.0;
        // Two reads of two and four bytes; a fold would make six.
        u64::from(u16::from_be_bytes([a, b])) << 32 | u64::from(u32::from_be_bytes([c, d, e, f]))
    }

    /// The address whose number is the low 48 bits of `number`.
    #[inline]
    pub const fn from_u64(number: u64) -> Self {
        let [_, _, a, b, c, d, e, f] = number.to_be_bytes();
        MacAddr([a, b, c, d, e, f])
    }
}

impl fmt::Display for MacAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

impl FromStr for MacAddr {
    type Err = NotAMacAddr;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let refused = || NotAMacAddr(text.to_owned());
        let mut octets = [0; 6];
        let mut parts = text.split([':', '-']);
        for octet in &mut octets {
            let part = parts.next().ok_or_else(refused)?;
            let plausible = (1..=2).contains(&part.len()) && part.bytes().all(|b| b.is_ascii_hexdigit());
            *octet = u8::from_str_radix(part, 16).ok().filter(|_| plausible).ok_or_else(refused)?;
        }
        if parts.next().is_some() { Err(refused()) } else { Ok(MacAddr(octets)) }
    }
}

impl From<MacAddr> for String {
    fn from(address: MacAddr) -> Self {
        address.to_string()
    }
}

impl TryFrom<String> for MacAddr {
    type Error = NotAMacAddr;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl fmt::Display for NotAMacAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "'{}' is not an Ethernet address: write it as 00:11:22:33:44:55", self.0)
    }
}

impl std::error::Error for NotAMacAddr {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_address_is_refused() {
        for text in ["", "1:2:3:4:5", "1:2:3:4:5:6:7", "00:00:00:00:00:0g", "000:0:0:0:0:0", "+1:0:0:0:0:0"] {
            assert!(text.parse::<MacAddr>().is_err(), "{text}");
        }
    }

    #[test]
    fn it_prints_as_it_is_read() {
        assert_eq!("0:1:2:a:B:ff".parse::<MacAddr>().unwrap().to_string(), "00:01:02:0a:0b:ff");
        assert_eq!(MacAddr::from_u64(0x0011_2233_4455).to_string(), "00:11:22:33:44:55");
        assert_eq!(MacAddr::from_u64(0x0011_2233_4455).to_u64(), 0x0011_2233_4455);
    }

    #[test]
    fn broadcast_is_a_multicast() {
        assert!(MacAddr::BROADCAST.is_multicast());
        assert!(!MacAddr([2, 0, 0, 0, 0, 1]).is_multicast());
    }
}
