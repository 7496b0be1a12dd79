//! A range of IP addresses that begin with the same bits.
//!
//! In: `10.0.1.0/24` or `fd00:1::/64`. Out: whether an address is in it, and how many bits decide. It knows no route.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A range of addresses of one version of IP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Prefix {
    /// The first address.
    pub address: IpAddr,
    /// How many bits all its addresses have in common.
    pub bits: u8,
}

impl Prefix {
    /// Reads `ADDRESS/BITS`.
    ///
    /// # Errors
    /// A sentence with the text.
    pub fn read(text: &str) -> Result<Prefix, String> {
        let wrong = || format!("{text:?} is no network: write ADDRESS/BITS, such as \"10.0.1.0/24\"");
        let (address, bits) = text.split_once('/').ok_or_else(wrong)?;
        let address: IpAddr = address.parse().map_err(|_| wrong())?;
        let bits: u8 = bits.parse().map_err(|_| wrong())?;
        let prefix = Prefix { address, bits };
        if bits > width(address) {
            return Err(wrong());
        }
        match number(address) & !prefix.mask() {
            0 => Ok(prefix),
            _ => Err(format!("{text:?} has an address of a host: the bits behind /{bits} must be 0")),
        }
    }

    /// The range of one address.
    pub fn of_one(address: IpAddr) -> Prefix {
        Prefix { address, bits: width(address) }
    }

    /// The bits that decide, for a match.
    pub fn mask(self) -> u128 {
        let width = width(self.address);
        let all = u128::MAX >> (128 - width);
        all & !all.checked_shr(self.bits.into()).unwrap_or(0)
    }

    /// The first address as a number.
    pub fn value(self) -> u128 {
        number(self.address)
    }

    /// Whether the address is in the range.
    pub fn contains(self, address: IpAddr) -> bool {
        address.is_ipv4() == self.address.is_ipv4() && number(address) & self.mask() == self.value()
    }

    /// Whether the two have an address in common.
    pub fn overlaps(self, other: Prefix) -> bool {
        self.contains(other.address) || other.contains(self.address)
    }

    /// The addresses of this range that are in none of the others, as ranges.
    pub fn without(self, others: &[Prefix]) -> Vec<Prefix> {
        let inside: Vec<Prefix> = others.iter().copied().filter(|other| self.overlaps(*other)).collect();
        if inside.is_empty() {
            return vec![self];
        }
        if inside.iter().any(|other| other.bits <= self.bits) {
            return Vec::new();
        }
        self.halves().into_iter().flat_map(|half| half.without(&inside)).collect()
    }

    /// Its two halves. It must have more than one address.
    fn halves(self) -> [Prefix; 2] {
        let bits = self.bits + 1;
        let second = self.value() | 1_u128 << (width(self.address) - bits);
        let address = match self.address {
            // The lower 32 bits.
            IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::from_bits(second as u32)),
            IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::from_bits(second)),
        };
        [Prefix { address: self.address, bits }, Prefix { address, bits }]
    }

    /// Whether a host of this network can have the address: it is neither the network's own nor, in IPv4, the one for all.
    pub fn is_of_host(self, address: IpAddr) -> bool {
        let rest = !self.mask() & Prefix::of_one(self.address).mask();
        let own = number(address) & rest;
        self.contains(address) && own != 0 && !(address.is_ipv4() && own == rest)
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.bits)
    }
}

fn width(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

fn number(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => address.to_bits().into(),
        IpAddr::V6(address) => address.to_bits(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_network_is_refused_with_its_text() {
        for text in ["", "10.0.0.0", "10.0.0.0/33", "10.0.0/24", "x/8", "fd00::/129", "10.0.0.0/-1"] {
            assert!(Prefix::read(text).unwrap_err().contains("write ADDRESS/BITS"), "{text}");
        }
        assert!(Prefix::read("10.0.0.1/24").unwrap_err().contains("behind /24 must be 0"));
        assert!(Prefix::read("fd00::1/64").unwrap_err().contains("behind /64 must be 0"));
    }

    #[test]
    fn an_address_is_in_the_networks_that_it_begins_like() {
        let check = |network: &str, address: &str, expected: [bool; 2]| {
            let (prefix, address) = (Prefix::read(network).unwrap(), address.parse().unwrap());
            assert_eq!(
                [prefix.contains(address), prefix.is_of_host(address)],
                expected,
                "{network} {address}"
            );
        };
        check("10.0.1.0/24", "10.0.1.7", [true, true]);
        check("10.0.1.0/24", "10.0.1.0", [true, false]);
        check("10.0.1.0/24", "10.0.1.255", [true, false]);
        check("10.0.1.0/24", "10.0.2.7", [false, false]);
        check("0.0.0.0/0", "203.0.113.9", [true, true]);
        check("0.0.0.0/0", "fd00::1", [false, false]);
        check("fd00:1::/64", "fd00:1::ffff:ffff:ffff:ffff", [true, true]);
        check("fd00:1::/64", "fd00:1::", [true, false]);
        check("::/0", "10.0.0.1", [false, false]);
    }

    #[test]
    fn a_network_without_others_is_the_rest_of_its_addresses() {
        let read = |texts: &[&str]| -> Vec<Prefix> {
            texts.iter().map(|text| Prefix::read(text).unwrap()).collect()
        };
        let check = |network: &str, others: &[&str], expected: &[&str]| {
            let rest = Prefix::read(network).unwrap().without(&read(others));
            assert_eq!(rest, read(expected), "{network} {others:?}");
        };
        check("10.0.0.0/8", &[], &["10.0.0.0/8"]);
        check("10.0.0.0/8", &["11.0.0.0/24", "fd00::/64"], &["10.0.0.0/8"]);
        check("10.0.0.0/22", &["10.0.1.0/24"], &["10.0.0.0/24", "10.0.2.0/23"]);
        check("10.0.0.0/23", &["10.0.0.0/24", "10.0.1.0/24"], &[]);
        check("10.0.1.0/24", &["10.0.0.0/16"], &[]);
        check("fd00::/62", &["fd00:0:0:2::/64"], &["fd00::/63", "fd00:0:0:3::/64"]);
    }

    #[test]
    fn networks_overlap_if_one_holds_the_other() {
        let check = |one: &str, other: &str, expected: bool| {
            let (one, other) = (Prefix::read(one).unwrap(), Prefix::read(other).unwrap());
            assert_eq!([one.overlaps(other), other.overlaps(one)], [expected; 2], "{one} {other}");
        };
        check("10.0.0.0/8", "10.9.0.0/16", true);
        check("10.0.0.0/24", "10.0.1.0/24", false);
        check("0.0.0.0/0", "::/0", false);
        check("fd00::/16", "fd00:1::/64", true);
    }
}
