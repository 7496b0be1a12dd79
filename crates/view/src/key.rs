//! The names of the view's objects, and their text form.
//!
//! ```text
//!   "link/of:0000000000000001/3-of:0000000000000002/1" <──> Key::Link(LinkId { from, to })
//! ```
//!
//! In: keys or text. Out: the other of the two; the text is the key of a stream's entry and the id in REST. It checks that a
//! text is well formed, not that the object exists.

use flow::{DatapathId, MacAddr, PortNo};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// A port of a switch. Text: `of:0000000000000001/3`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ConnectPoint {
    /// The switch.
    pub switch: DatapathId,
    /// Its port.
    pub port: PortNo,
}

/// One direction of a link. Text: `of:0000000000000001/3-of:0000000000000002/1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct LinkId {
    /// Where frames enter the link.
    pub from: ConnectPoint,
    /// Where frames leave the link.
    pub to: ConnectPoint,
}

/// A host: its address within its VLAN. Text: `00:00:00:00:00:01` or `00:00:00:00:00:01.100`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct HostId {
    /// Its Ethernet address.
    pub mac: MacAddr,
    /// Its VLAN, 1 to 4,094. `None`: its frames are untagged.
    pub vlan: Option<u16>,
}

/// An intent. The number is given once and never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct IntentId(pub u64);

/// The kinds of objects, and the first word of their keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// A connected or known switch.
    Switch,
    /// A port of a switch.
    Port,
    /// One direction of a link.
    Link,
    /// An end station.
    Host,
}

/// The name of one object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Key {
    /// A switch.
    Switch(DatapathId),
    /// A port.
    Port(ConnectPoint),
    /// One direction of a link.
    Link(LinkId),
    /// A host.
    Host(HostId),
}

impl Key {
    /// The kind of object.
    pub fn kind(self) -> Kind {
        match self {
            Key::Switch(_) => Kind::Switch,
            Key::Port(_) => Kind::Port,
            Key::Link(_) => Kind::Link,
            Key::Host(_) => Kind::Host,
        }
    }
}

/// A text that is no key, and the part that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotAKey(String);

impl fmt::Display for NotAKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for NotAKey {}

impl fmt::Display for ConnectPoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.switch, self.port)
    }
}

impl FromStr for ConnectPoint {
    type Err = NotAKey;

    fn from_str(text: &str) -> Result<Self, NotAKey> {
        let (switch, port) = text
            .rsplit_once('/')
            .ok_or_else(|| NotAKey(format!("{text:?} is no connect point: write DATAPATH/PORT")))?;
        let switch = switch.parse().map_err(|why| NotAKey(format!("{why}")))?;
        let port = port.parse().map_err(|why| NotAKey(format!("{why}")))?;
        Ok(ConnectPoint { switch, port })
    }
}

impl fmt::Display for LinkId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.from, self.to)
    }
}

impl FromStr for LinkId {
    type Err = NotAKey;

    fn from_str(text: &str) -> Result<Self, NotAKey> {
        let (from, to) = text
            .split_once('-')
            .ok_or_else(|| NotAKey(format!("{text:?} is no link: write CONNECT_POINT-CONNECT_POINT")))?;
        Ok(LinkId { from: from.parse()?, to: to.parse()? })
    }
}

impl LinkId {
    /// The other direction.
    pub fn reversed(self) -> LinkId {
        LinkId { from: self.to, to: self.from }
    }
}

/// The greatest VLAN that a host can be in (IEEE 802.1Q, 9.6).
const VLAN_MAX: u16 = 4094;

impl fmt::Display for HostId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.vlan {
            None => write!(f, "{}", self.mac),
            Some(vlan) => write!(f, "{}.{vlan}", self.mac),
        }
    }
}

impl FromStr for HostId {
    type Err = NotAKey;

    fn from_str(text: &str) -> Result<Self, NotAKey> {
        let (mac, vlan) = match text.split_once('.') {
            None => (text, None),
            Some((mac, vlan)) => (mac, Some(vlan)),
        };
        let mac = mac.parse().map_err(|why| NotAKey(format!("{why}")))?;
        let number = |text: &str| text.parse().ok().filter(|vlan| (1..=VLAN_MAX).contains(vlan));
        match vlan.map(|text| number(text).ok_or(text)).transpose() {
            Ok(vlan) => Ok(HostId { mac, vlan }),
            Err(text) => Err(NotAKey(format!("{text:?} is no VLAN: write a number from 1 to {VLAN_MAX}"))),
        }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Key::Switch(switch) => write!(f, "switch/{switch}"),
            Key::Port(at) => write!(f, "port/{at}"),
            Key::Link(link) => write!(f, "link/{link}"),
            Key::Host(host) => write!(f, "host/{host}"),
        }
    }
}

impl FromStr for Key {
    type Err = NotAKey;

    fn from_str(text: &str) -> Result<Self, NotAKey> {
        let (kind, id) = text.split_once('/').unwrap_or((text, ""));
        match kind {
            "switch" => id.parse().map(Key::Switch).map_err(|why| NotAKey(format!("{why}"))),
            "port" => id.parse().map(Key::Port),
            "link" => id.parse().map(Key::Link),
            "host" => id.parse().map(Key::Host),
            _ => Err(NotAKey(format!("{text:?} is no key: write switch/ID, port/ID, link/ID or host/ID"))),
        }
    }
}

macro_rules! as_text {
    ($($type:ty),*) => {$(
        impl From<$type> for String {
            fn from(value: $type) -> String {
                value.to_string()
            }
        }

        impl TryFrom<String> for $type {
            type Error = NotAKey;

            fn try_from(text: String) -> Result<Self, NotAKey> {
                text.parse()
            }
        }
    )*};
}

as_text!(ConnectPoint, LinkId, HostId, Key);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_damaged_key_is_refused_with_the_wrong_part() {
        let check = |text: &str, part: &str| {
            let why = text.parse::<Key>().unwrap_err().to_string();
            assert!(why.contains(part), "{text}: {why}");
        };
        check("", "is no key");
        check("device/of:0000000000000001", "is no key");
        check("switch/x", "x");
        check("port/of:0000000000000001", "is no connect point");
        check("link/of:0000000000000001/1", "is no link");
        check("host/00:00:00:00:00:01.0", "is no VLAN");
        check("host/00:00:00:00:00:01.4095", "is no VLAN");
    }

    #[test]
    fn a_key_survives_its_text() {
        for text in [
            "switch/of:0000000000000001",
            "port/of:0000000000000001/3",
            "link/of:0000000000000001/3-of:00000000000000a2/1",
            "host/00:00:00:00:00:01",
            "host/00:00:00:00:00:01.100",
        ] {
            assert_eq!(text.parse::<Key>().unwrap().to_string(), text);
        }
    }
}
