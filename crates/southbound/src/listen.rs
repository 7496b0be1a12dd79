//! The sockets on which switches connect.
//!
//! It exchanges no data with a switch: an accepted connection goes to a worker.

use mio::net::{TcpListener, TcpStream};
use mio::{Interest, Registry, Token};
use std::fmt;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::str::FromStr;

/// The port that IANA assigned to OpenFlow.
pub const PORT: u16 = 6653;
/// The port that was used before. Old switches still connect to it.
pub const OLD_PORT: u16 = 6633;

/// Connections accepted from one socket in a turn, so that a storm of connections does not starve the existing
/// sessions.
const ACCEPTS_PER_TURN: usize = 64;

/// Where to listen: `ADDR:PORT`, `[v6]:PORT` or `:PORT`. The last form means all addresses of both families.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListenSpec {
    /// One address, or `None` for all.
    pub address: Option<IpAddr>,
    /// The TCP port. With 0, the system chooses one.
    pub port: u16,
}

impl ListenSpec {
    /// Where a node listens by default.
    pub const DEFAULTS: [ListenSpec; 2] =
        [ListenSpec { address: None, port: PORT }, ListenSpec { address: None, port: OLD_PORT }];

    fn wildcard(port: u16, v6: bool) -> SocketAddr {
        if v6 {
            SocketAddr::from((Ipv6Addr::UNSPECIFIED, port))
        } else {
            SocketAddr::from((Ipv4Addr::UNSPECIFIED, port))
        }
    }
}

/// The text is not a valid address to listen on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotAListenSpec(String);

impl FromStr for ListenSpec {
    type Err = NotAListenSpec;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let refused = || NotAListenSpec(text.to_owned());
        if let Some(port) = text.strip_prefix(':') {
            let plausible = port.bytes().all(|byte| byte.is_ascii_digit());
            let port = port.parse().ok().filter(|_| plausible).ok_or_else(refused)?;
            return Ok(ListenSpec { address: None, port });
        }
        let address: SocketAddr = text.parse().map_err(|_| refused())?;
        Ok(ListenSpec { address: Some(address.ip()), port: address.port() })
    }
}

impl fmt::Display for NotAListenSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "'{}' is not an address to listen on: write ADDRESS:PORT, [IPV6-ADDRESS]:PORT or :PORT, for example 127.0.0.1:6653",
            self.0
        )
    }
}

impl std::error::Error for NotAListenSpec {}

impl fmt::Display for ListenSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.address {
            Some(address) => SocketAddr::from((address, self.port)).fmt(f),
            None => write!(f, ":{}", self.port),
        }
    }
}

/// An address on which the node cannot listen. The operator must change it.
#[derive(Debug)]
pub struct BindError {
    /// The address that failed.
    pub address: SocketAddr,
    /// The system's error.
    pub error: io::Error,
}

impl fmt::Display for BindError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let address = self.address;
        match self.error.kind() {
            ErrorKind::AddrInUse => write!(
                f,
                "port {} is in use at {address}: stop the program that uses it (ss -ltnp 'sport = :{}' shows it), or choose another with --listen ADDRESS:PORT",
                address.port(),
                address.port()
            ),
            ErrorKind::PermissionDenied => write!(
                f,
                "listening at {address} is not permitted: ports below 1024 need root or CAP_NET_BIND_SERVICE; choose another with --listen ADDRESS:PORT"
            ),
            ErrorKind::AddrNotAvailable => {
                write!(
                    f,
                    "{address} is not an address of this machine: choose one with --listen ADDRESS:PORT"
                )
            }
            _ => write!(f, "cannot listen at {address}: {}", self.error),
        }
    }
}

impl std::error::Error for BindError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.error)
    }
}

/// The listening sockets of a node.
#[derive(Debug)]
pub struct Listeners {
    sockets: Vec<TcpListener>,
}

impl Listeners {
    /// Listens on all addresses of the list, with SO_REUSEADDR so that a node can be restarted at once.
    ///
    /// # Errors
    /// The first address that fails. Then it listens on none.
    pub fn bind(specs: &[ListenSpec]) -> Result<Self, BindError> {
        let mut sockets = Vec::new();
        for spec in specs {
            match spec.address {
                Some(address) => sockets.push(bind(SocketAddr::from((address, spec.port)))?),
                None => sockets.extend(bind_both_families(spec.port)?),
            }
        }
        Ok(Listeners { sockets })
    }

    /// The addresses on which it listens, with the ports that the system chose.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.sockets.iter().filter_map(|socket| socket.local_addr().ok()).collect()
    }

    /// Registers the sockets with the worker's poll. They get consecutive tokens, starting with `first`.
    ///
    /// # Errors
    /// The system's error.
    pub fn register(&mut self, registry: &Registry, first: usize) -> io::Result<()> {
        let numbered = self.sockets.iter_mut().enumerate();
        numbered.into_iter().try_for_each(|(index, socket)| {
            registry.register(socket, Token(first + index), Interest::READABLE)
        })
    }

    /// The number of sockets, and so of tokens.
    pub fn len(&self) -> usize {
        self.sockets.len()
    }

    /// Whether it has no sockets.
    pub fn is_empty(&self) -> bool {
        self.sockets.is_empty()
    }

    /// Accepts the waiting connections of one socket (numbered from 0), up to the maximum of a turn. Returns `true`
    /// if more may wait: call it again in the next turn, and poll without waiting.
    ///
    /// Also call it about once a second. If the system has no free file descriptors, connections stay in the queue
    /// although the poll has already reported them.
    pub fn accept(&mut self, index: usize, mut take: impl FnMut(TcpStream, SocketAddr)) -> bool {
        let Some(socket) = self.sockets.get(index) else { return false };
        for _ in 0..ACCEPTS_PER_TURN {
            match socket.accept() {
                Ok((stream, peer)) => take(stream, canonical(peer)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return false,
                Err(error) if is_of_one_connection(&error) => {}
                Err(error) => {
                    tracing::warn!(%error, "a connection could not be accepted");
                    return false;
                }
            }
        }
        true
    }
}

fn bind(address: SocketAddr) -> Result<TcpListener, BindError> {
    TcpListener::bind(address).map_err(|error| BindError { address, error })
}

/// An IPv6 socket accepts IPv4 too, unless the machine is configured otherwise. In that case there is a second
/// socket. A machine without IPv6 has only the IPv4 socket.
fn bind_both_families(port: u16) -> Result<Vec<TcpListener>, BindError> {
    let v6 = match bind(ListenSpec::wildcard(port, true)) {
        Ok(v6) => v6,
        Err(error) if has_no_ipv6(&error) => return Ok(vec![bind(ListenSpec::wildcard(port, false))?]),
        Err(error) => return Err(error),
    };
    let port = v6.local_addr().map_or(port, |address| address.port());
    // If the first socket accepts both families, the second one cannot be bound. That is no error.
    let v4 = bind(ListenSpec::wildcard(port, false)).ok();
    Ok(std::iter::once(v6).chain(v4).collect())
}

/// Linux has no IPv6, or it is disabled.
fn has_no_ipv6(error: &BindError) -> bool {
    const EAFNOSUPPORT: i32 = 97;
    error.error.raw_os_error() == Some(EAFNOSUPPORT) || error.error.kind() == ErrorKind::AddrNotAvailable
}

/// The peer disconnected before it was accepted. The socket still works.
fn is_of_one_connection(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::ConnectionAborted | ErrorKind::ConnectionReset | ErrorKind::Interrupted)
}

/// An IPv4 peer that connected over an IPv6 socket, as the plain IPv4 address.
fn canonical(peer: SocketAddr) -> SocketAddr {
    SocketAddr::new(peer.ip().to_canonical(), peer.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Option<&str>) {
        let found = text.parse::<ListenSpec>().map(|spec| spec.to_string()).ok();
        assert_eq!(found.as_deref(), expected, "{text}");
    }

    #[test]
    fn what_is_no_place_is_refused() {
        for text in [
            "",
            ":",
            "6653",
            "localhost",
            "127.0.0.1",
            "::1:6653",
            "[::1]",
            ":65536",
            ":-1",
            ":+1",
            "1.2.3:1",
        ] {
            check(text, None);
        }
    }

    #[test]
    fn a_place_is_read_as_people_write_it() {
        check("127.0.0.1:6653", Some("127.0.0.1:6653"));
        check("[::1]:6633", Some("[::1]:6633"));
        check(":6653", Some(":6653"));
    }

    #[test]
    fn a_port_in_use_is_named_with_what_to_do() {
        let first = Listeners::bind(&["127.0.0.1:0".parse().unwrap()]).unwrap();
        let taken = first.addresses()[0];
        let spec = ListenSpec { address: Some(taken.ip()), port: taken.port() };
        let refused = Listeners::bind(&[spec]).unwrap_err().to_string();
        assert!(
            refused.starts_with(&format!("port {} is in use at {taken}: stop the program", taken.port())),
            "{refused}"
        );
    }
}
