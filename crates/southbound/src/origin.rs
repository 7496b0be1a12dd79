//! What a limit per address counts as one address.
//!
//! Pure: an address goes in, the counted unit comes out.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The bits of an IPv6 address that name the subnet. One machine can use all addresses in it (RFC 4291, 2.5.4).
const PREFIX_BITS: u32 = 64;

/// An IPv4 address, the /64 of an IPv6 address, or this machine for all its loopback addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Origin(IpAddr);

impl Origin {
    /// The origin of a peer. An IPv4 address that is mapped into IPv6 counts as the IPv4 address.
    pub fn of(address: IpAddr) -> Origin {
        match address.to_canonical() {
            loopback if loopback.is_loopback() => Origin(Ipv4Addr::LOCALHOST.into()),
            IpAddr::V4(v4) => Origin(v4.into()),
            IpAddr::V6(v6) => Origin(Ipv6Addr::from_bits(v6.to_bits() & (u128::MAX << PREFIX_BITS)).into()),
        }
    }

    /// Whether it is this machine.
    pub fn is_loopback(self) -> bool {
        self.0.is_loopback()
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            IpAddr::V6(v6) => write!(f, "{v6}/{PREFIX_BITS}"),
            loopback if loopback.is_loopback() => f.write_str("this machine"),
            address => address.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_of_ipv4_is_one_and_a_64_of_ipv6_is_one() {
        let check = |address: &str, expected: &str| {
            assert_eq!(Origin::of(address.parse().unwrap()).to_string(), expected);
        };
        check("10.0.0.1", "10.0.0.1");
        check("::ffff:10.0.0.1", "10.0.0.1");
        check("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64");
        check("2001:db8:1:2::", "2001:db8:1:2::/64");
        check("fe80::1", "fe80::/64");
        for loopback in ["::1", "127.0.0.1", "127.8.0.1", "::ffff:127.0.0.1"] {
            check(loopback, "this machine");
        }
    }
}
