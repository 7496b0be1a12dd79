//! Where a node listens for switches, as the operator writes it.
//!
//! In: `ADDRESS:PORT`, `[IPV6-ADDRESS]:PORT`, `HOST:PORT` or `:PORT`. Out: [`ListenAddress`], or what to write instead. The name of a host is looked
//! up; nothing is bound.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, ToSocketAddrs};
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use southbound::{ListenSpec, NotAListenSpec, OLD_PORT, PORT};

/// A place to listen that can be written into a file. Prints as it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ListenAddress(pub ListenSpec);

impl ListenAddress {
    /// Where a node listens if nothing is said.
    pub const DEFAULTS: [ListenAddress; 2] = [everywhere(PORT), everywhere(OLD_PORT)];
}

/// Every address of IPv4, as controllers have always listened; who wants IPv6 as well writes `:PORT`.
const fn everywhere(port: u16) -> ListenAddress {
    ListenAddress(ListenSpec { address: Some(IpAddr::V4(Ipv4Addr::UNSPECIFIED)), port })
}

impl FromStr for ListenAddress {
    type Err = NotAListenSpec;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse().or_else(|bad| named(text).ok_or(bad)).map(ListenAddress)
    }
}

/// The first address of a host, of IPv4 before IPv6.
fn named(text: &str) -> Option<ListenSpec> {
    let address = first_address(text)?;
    Some(ListenSpec { address: Some(address.ip()), port: address.port() })
}

/// Looks up `HOST:PORT`: the first address, of IPv4 before IPv6, since that is where most controllers listen.
pub fn first_address(text: &str) -> Option<SocketAddr> {
    // Only a name is looked up: numbers that are no address would be taken for a strange one.
    let (host, _) = text.rsplit_once(':')?;
    host.bytes().find(u8::is_ascii_alphabetic)?;
    text.to_socket_addrs().ok()?.min_by_key(SocketAddr::is_ipv6)
}

impl fmt::Display for ListenAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl TryFrom<String> for ListenAddress {
    type Error = NotAListenSpec;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<ListenAddress> for String {
    fn from(address: ListenAddress) -> String {
        address.to_string()
    }
}
