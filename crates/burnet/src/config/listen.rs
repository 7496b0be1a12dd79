//! Where a node listens for switches, as the operator writes it.
//!
//! In: `ADDRESS:PORT`, `[IPV6-ADDRESS]:PORT` or `:PORT`. Out: [`ListenAddress`], or what to write instead. It binds nothing.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A place to listen. Prints as it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ListenAddress {
    /// One address, or `None` for every address of both families.
    pub address: Option<IpAddr>,
    /// The port; 0 lets the system choose.
    pub port: u16,
}

impl ListenAddress {
    /// Where a node listens if nothing is said: the port that IANA gave OpenFlow, and the one that old switches call.
    pub const DEFAULTS: [ListenAddress; 2] = [everywhere(6653), everywhere(6633)];
}

const fn everywhere(port: u16) -> ListenAddress {
    ListenAddress { address: Some(IpAddr::V4(Ipv4Addr::UNSPECIFIED)), port }
}

/// A text that says no place to listen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotAListenAddress(String);

impl fmt::Display for NotAListenAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = &self.0;
        write!(f, "`{text}` is no place to listen: write ADDRESS:PORT, [IPV6-ADDRESS]:PORT or :PORT, ")?;
        f.write_str("for example 127.0.0.1:6653; a host's name is not looked up")
    }
}

impl std::error::Error for NotAListenAddress {}

impl FromStr for ListenAddress {
    type Err = NotAListenAddress;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let refused = || NotAListenAddress(text.to_owned());
        if let Some(port) = text.strip_prefix(':') {
            // A number's own parser would take `+6653` as well.
            let plausible = port.bytes().all(|byte| byte.is_ascii_digit());
            let port = port.parse().ok().filter(|_| plausible).ok_or_else(refused)?;
            return Ok(ListenAddress { address: None, port });
        }
        let address: SocketAddr = text.parse().map_err(|_| refused())?;
        Ok(ListenAddress { address: Some(address.ip()), port: address.port() })
    }
}

impl fmt::Display for ListenAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.address {
            Some(address) => SocketAddr::from((address, self.port)).fmt(f),
            None => write!(f, ":{}", self.port),
        }
    }
}

impl TryFrom<String> for ListenAddress {
    type Error = NotAListenAddress;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<ListenAddress> for String {
    fn from(address: ListenAddress) -> String {
        address.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) {
        let error = text.parse::<ListenAddress>().unwrap_err().to_string();
        assert!(error.starts_with(&format!("`{text}` is no place to listen: write ADDRESS:PORT")), "{error}");
    }

    #[test]
    fn what_says_no_place_is_refused_by_name() {
        for text in ["", "6653", ":", ":+1", ":65536", "localhost:6653", "::1:6653", "10.0.0.1", "10.0.0.1:x"]
        {
            refused(text);
        }
    }

    #[test]
    fn a_place_prints_as_it_is_written() {
        for text in ["0.0.0.0:6653", "127.0.0.1:0", "[::1]:6633", ":6653"] {
            assert_eq!(text.parse::<ListenAddress>().unwrap().to_string(), text);
        }
    }
}
