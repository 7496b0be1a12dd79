//! The ids of the view's objects, and their text form.
//!
//! ```text
//!   "of:0000000000000001/3-of:0000000000000002/1" <──> LinkId { from, to }
//! ```
//!
//! In: ids or text. Out: the other of the two. It checks that a text is well formed, not that the object exists.

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

/// A text that is no key, and the part that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotAKey(pub(crate) String);

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

as_text!(ConnectPoint, LinkId, HostId);
