//! The addresses on which a node listens for switches, as the operator writes them.
//!
//! In: `ADDRESS:PORT`, `[IPV6-ADDRESS]:PORT`, `HOST:PORT` or `:PORT`. Out: [`ListenAddress`], or a message that says
//! what to write. It looks up a host name, but binds no socket.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, ToSocketAddrs};
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use southbound::{ListenSpec, NotAListenSpec, OLD_PORT, PORT};

/// An address to listen on. It prints as it was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ListenAddress(pub ListenSpec);

impl ListenAddress {
    /// Where a node listens by default.
    pub const DEFAULTS: [ListenAddress; 2] = [everywhere(PORT), everywhere(OLD_PORT)];
}

/// All IPv4 addresses, as is usual for controllers. To listen on IPv6 too, write `:PORT`.
const fn everywhere(port: u16) -> ListenAddress {
    ListenAddress(ListenSpec { address: Some(IpAddr::V4(Ipv4Addr::UNSPECIFIED)), port })
}

impl FromStr for ListenAddress {
    type Err = NotAListenSpec;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse().or_else(|bad| named(text).ok_or(bad)).map(ListenAddress)
    }
}

/// The first address of a host, IPv4 before IPv6.
fn named(text: &str) -> Option<ListenSpec> {
    let address = first_address(text)?;
    Some(ListenSpec { address: Some(address.ip()), port: address.port() })
}

/// Looks up `HOST:PORT`. Returns the first address, IPv4 before IPv6, because most controllers listen on IPv4.
pub fn first_address(text: &str) -> Option<SocketAddr> {
    // Only names are looked up. A malformed number could otherwise be taken for an unusual address.
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
