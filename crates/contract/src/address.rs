//! The addresses on which a service accepts connections.
//!
//! In: text of a manifest or of `burnet.toml`: `ADDRESS:PORT`, `unix:NAME`, or, from the operator only, `unix:/PATH`.
//! Out: a [`ServiceAddress`], or a sentence that says what to write. It opens no socket and looks up no name.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// The longest name of a socket file, in bytes. With the folder's path it must fit into the 107 bytes that Linux has
/// for it.
pub const NAME_BYTES_MAX: usize = 32;

/// The longest path of a socket file, in bytes (unix(7)).
const PATH_BYTES_MAX: usize = 107;

/// Ports below this belong to the system: Linux opens them for privileged users only.
const FIRST_OPEN_PORT: u16 = 1_024;

/// Where an app accepts connections.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum ServiceAddress {
    /// A TCP address. The port is not 0: nobody could know which port it became.
    Tcp(SocketAddr),
    /// A socket file: a name, which the node puts into a folder of its own, or an absolute path.
    Unix(PathBuf),
}

impl ServiceAddress {
    /// Why this address needs the operator's approval, in addition to a manifest's request; `None` if it does not.
    pub fn needs_operator(&self) -> Option<&'static str> {
        match self {
            ServiceAddress::Tcp(address) if !address.ip().is_loopback() => {
                Some("other machines can reach it")
            }
            ServiceAddress::Tcp(address) if address.port() < FIRST_OPEN_PORT => {
                Some("ports below 1024 belong to the system")
            }
            ServiceAddress::Unix(path) if path.is_absolute() => Some("it is a path of the machine"),
            _ => None,
        }
    }

    /// Whether other machines can reach it.
    pub fn is_open(&self) -> bool {
        matches!(self, ServiceAddress::Tcp(address) if !address.ip().is_loopback())
    }

    /// Whether it is a TCP address.
    pub fn is_tcp(&self) -> bool {
        matches!(self, ServiceAddress::Tcp(_))
    }

    /// Whether both cannot be open at the same time.
    pub fn overlaps(&self, other: &ServiceAddress) -> bool {
        let (ServiceAddress::Tcp(one), ServiceAddress::Tcp(two)) = (self, other) else {
            return self == other;
        };
        let all = one.ip().is_unspecified() || two.ip().is_unspecified();
        one.port() == two.port() && one.is_ipv4() == two.is_ipv4() && (one.ip() == two.ip() || all)
    }

    /// The same address, with a socket's name as a path in this folder.
    #[must_use]
    pub fn within(self, folder: &Path) -> ServiceAddress {
        match self {
            // An absolute path stays as it is.
            ServiceAddress::Unix(name) => ServiceAddress::Unix(folder.join(name)),
            tcp => tcp,
        }
    }
}

impl FromStr for ServiceAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<ServiceAddress, String> {
        let parsed = match text.strip_prefix("unix:") {
            Some(path) => is_socket_file(path).then(|| ServiceAddress::Unix(path.into())),
            None => text.parse().ok().filter(is_plain).map(ServiceAddress::Tcp),
        };
        parsed.ok_or_else(|| {
            format!(
                "\"{text}\" is no address to listen on: write ADDRESS:PORT with a port from 1, for example \
                 \"127.0.0.1:8181\" or \"[::1]:8181\", or \"unix:NAME\""
            )
        })
    }
}

/// An IPv4 address in the form of IPv6 would be the same socket under another name.
fn is_plain(address: &SocketAddr) -> bool {
    let is_mapped = matches!(address.ip(), IpAddr::V6(v6) if v6.to_ipv4_mapped().is_some());
    address.port() != 0 && !is_mapped
}

fn is_socket_file(path: &str) -> bool {
    let is_name_byte =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-_.".contains(&byte);
    let is_name =
        path.len() <= NAME_BYTES_MAX && path.bytes().all(is_name_byte) && !path.starts_with(['.', '-']);
    let plain = |part: std::path::Component<'_>| {
        matches!(part, std::path::Component::RootDir | std::path::Component::Normal(_))
    };
    let is_path = || {
        let path = Path::new(path);
        path.is_absolute()
            && path.as_os_str().len() <= PATH_BYTES_MAX
            && path.parent().is_some()
            && path.components().all(plain)
    };
    !path.is_empty() && !path.chars().any(char::is_control) && (is_name || is_path())
}

impl fmt::Display for ServiceAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ServiceAddress::Tcp(address) => address.fmt(f),
            ServiceAddress::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

impl From<ServiceAddress> for String {
    fn from(address: ServiceAddress) -> String {
        address.to_string()
    }
}

impl TryFrom<String> for ServiceAddress {
    type Error = String;

    fn try_from(text: String) -> Result<ServiceAddress, String> {
        text.parse()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> ServiceAddress {
        text.parse().unwrap()
    }

    #[test]
    fn what_is_no_address_is_refused() {
        let texts = [
            "",
            "8181",
            ":8181",
            "127.0.0.1",
            "127.0.0.1:0",
            "127.0.0.1:65536",
            "localhost:8181",
            "::1:8181",
            "[::ffff:127.0.0.1]:8181",
            "unix:",
            "unix:a/b",
            "unix:../a",
            "unix:.a",
            "unix:A",
            "unix:/",
            "unix:/a/../b",
            "unix:a\n",
            "unix:-a",
            "unix:0123456789012345678901234567890123",
            "unix",
            "tcp:127.0.0.1:1",
        ];
        for text in texts {
            let error = text.parse::<ServiceAddress>().unwrap_err();
            assert!(error.starts_with(&format!("\"{text}\" is no address to listen on: ")), "{error}");
        }
    }

    #[test]
    fn an_address_that_others_reach_needs_the_operator() {
        let check = |text: &str, expected: Option<&str>| assert_eq!(address(text).needs_operator(), expected);
        check("127.0.0.1:8181", None);
        check("127.9.9.9:1024", None);
        check("[::1]:8181", None);
        check("unix:web", None);
        check("0.0.0.0:8181", Some("other machines can reach it"));
        check("[::]:8181", Some("other machines can reach it"));
        check("10.0.0.1:80", Some("other machines can reach it"));
        check("127.0.0.1:1023", Some("ports below 1024 belong to the system"));
        check("unix:/run/web", Some("it is a path of the machine"));
    }

    #[test]
    fn addresses_that_cannot_both_be_open_overlap() {
        let check = |one: &str, two: &str, expected| {
            assert_eq!(address(one).overlaps(&address(two)), expected, "{one} {two}");
            assert_eq!(address(two).overlaps(&address(one)), expected, "{two} {one}");
        };
        check("127.0.0.1:8181", "127.0.0.1:8181", true);
        check("127.0.0.1:8181", "127.0.0.1:8182", false);
        check("127.0.0.1:8181", "127.0.0.2:8181", false);
        check("0.0.0.0:8181", "127.0.0.1:8181", true);
        check("[::]:8181", "127.0.0.1:8181", false);
        check("unix:web", "unix:web", true);
        check("unix:web", "127.0.0.1:8181", false);
    }

    #[test]
    fn a_name_lies_in_the_folder_of_the_node_and_a_path_stays() {
        let within = |text: &str| address(text).within(Path::new("/run/n")).to_string();
        assert_eq!(within("unix:web"), "unix:/run/n/web");
        assert_eq!(within("unix:/srv/web"), "unix:/srv/web");
        assert_eq!(within("[::1]:8181"), "[::1]:8181");
        assert_eq!(within("unix:web").parse(), Ok(ServiceAddress::Unix("/run/n/web".into())));
    }
}
