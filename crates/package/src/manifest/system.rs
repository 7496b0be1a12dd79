//! The table `[system]`: what an app may do with the machine.
//!
//! In: TOML, or its JSON form. Out: [`System`] with only what was written. It opens nothing and connects to nothing:
//! the zone enforces it.

use std::collections::BTreeSet;
use std::fmt;
use std::net::SocketAddr;
use std::path::{Component, Path, PathBuf};
use std::str::FromStr;

use contract::ServiceAddress;
use serde::{Deserialize, Serialize};

use super::asks::{Requestable, Visit};
use super::bounds::{self, listed};
use super::capabilities::Whole;

/// What an app may do with the machine. `None` means nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct System {
    /// The addresses to which it may connect.
    #[serde(
        rename = "net.connect",
        deserialize_with = "bounds::set",
        skip_serializing_if = "Option::is_none"
    )]
    pub net_connect: Option<BTreeSet<Endpoint>>,
    /// The addresses on which it may accept connections.
    #[serde(
        rename = "net.listen",
        deserialize_with = "bounds::set",
        skip_serializing_if = "Option::is_none"
    )]
    pub net_listen: Option<BTreeSet<ServiceAddress>>,
    /// The paths that it may read.
    #[serde(rename = "fs.read", deserialize_with = "bounds::set", skip_serializing_if = "Option::is_none")]
    pub fs_read: Option<BTreeSet<PlainPath>>,
    /// The paths that it may write.
    #[serde(rename = "fs.write", deserialize_with = "bounds::set", skip_serializing_if = "Option::is_none")]
    pub fs_write: Option<BTreeSet<PlainPath>>,
    /// Whether it may start other programs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spawn: Option<Whole>,
}

/// An address and a TCP port. Not a name, because a zone has no name service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Endpoint(pub SocketAddr);

impl FromStr for Endpoint {
    type Err = String;

    fn from_str(text: &str) -> Result<Endpoint, String> {
        let parsed = text.parse().ok().filter(|address: &SocketAddr| address.port() != 0);
        parsed.map(Endpoint).ok_or_else(|| {
            format!("\"{text}\" is no place to connect to: write ADDRESS:PORT, for example \"10.0.0.5:5432\"")
        })
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl From<Endpoint> for String {
    fn from(endpoint: Endpoint) -> String {
        endpoint.to_string()
    }
}

impl TryFrom<String> for Endpoint {
    type Error = String;

    fn try_from(text: String) -> Result<Endpoint, String> {
        text.parse()
    }
}

/// An absolute path without `..`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(into = "PathBuf", try_from = "PathBuf")]
pub struct PlainPath(PathBuf);

impl PlainPath {
    /// The path.
    pub fn as_path(&self) -> &Path {
        &self.0
    }
}

impl TryFrom<PathBuf> for PlainPath {
    type Error = String;

    fn try_from(path: PathBuf) -> Result<PlainPath, String> {
        let down = |part: Component<'_>| matches!(part, Component::RootDir | Component::Normal(_));
        let printable = path.to_str().is_some_and(|text| !text.chars().any(char::is_control));
        if path.is_absolute() && path.components().all(down) && printable {
            // Normalises double and trailing slashes, so that equal paths are one entry.
            return Ok(PlainPath(path.components().collect()));
        }
        Err(format!(
            "{path:?} is no path to grant: write an absolute one without .., for example \"/etc/hosts\""
        ))
    }
}

impl From<PlainPath> for PathBuf {
    fn from(path: PlainPath) -> PathBuf {
        path.0
    }
}

impl System {
    pub(super) fn visit(&self, before: &System, visitor: &mut impl Visit) {
        visitor.visit("net.connect", &self.net_connect, &before.net_connect);
        visitor.visit("net.listen", &self.net_listen, &before.net_listen);
        visitor.visit("fs.read", &self.fs_read, &before.fs_read);
        visitor.visit("fs.write", &self.fs_write, &before.fs_write);
        visitor.visit("spawn", &self.spawn, &before.spawn);
    }

    /// Only the entries whose names `kept` accepts.
    pub fn only(&self, kept: impl Fn(&str) -> bool) -> System {
        System {
            net_connect: self.net_connect.clone().filter(|_| kept("net.connect")),
            net_listen: self.net_listen.clone().filter(|_| kept("net.listen")),
            fs_read: self.fs_read.clone().filter(|_| kept("fs.read")),
            fs_write: self.fs_write.clone().filter(|_| kept("fs.write")),
            spawn: self.spawn.filter(|_| kept("spawn")),
        }
    }
}

impl Requestable for BTreeSet<Endpoint> {
    fn words(&self, _: &str) -> String {
        format!("connect to {}", listed(self))
    }

    fn lies_within(&self, wider: &Self) -> bool {
        self.is_subset(wider)
    }
}

impl Requestable for BTreeSet<ServiceAddress> {
    fn words(&self, _: &str) -> String {
        format!("accept connections on {}", listed(self))
    }

    fn lies_within(&self, wider: &Self) -> bool {
        self.is_subset(wider)
    }

    fn danger(&self, _: &str) -> Option<&str> {
        self.iter().find_map(ServiceAddress::needs_operator)
    }
}

impl Requestable for BTreeSet<PlainPath> {
    fn words(&self, name: &str) -> String {
        let verb = if name == "fs.write" { "write" } else { "read" };
        format!("{verb} on this machine {}", listed(self.iter().map(|path| path.0.display())))
    }

    fn lies_within(&self, wider: &Self) -> bool {
        self.iter().all(|path| wider.iter().any(|other| path.0.starts_with(&other.0)))
    }
}
