//! The kinds of objects in the view: one line for each, from which the keys, the objects and their text forms follow.
//!
//! ```text
//!   "link/of:0000000000000001/3-of:0000000000000002/1" <──> Key::Link(LinkId { from, to })
//! ```
//!
//! In: keys or text. Out: the other of the two; the text is the key of a stream's entry and the id in REST. It checks that a
//! text is well formed, not that the object exists.
//!
//! To add a kind: add a line to the table below, in its order, and name in `integrity` what an object of this kind needs.

use crate::id::{ConnectPoint, HostId, IntentId, LinkId, NotAKey};
use crate::intent::{Intent, Path, PathId};
use crate::object::{Host, Link, Port, Switch};
use crate::rule::{Group, GroupId, Meter, MeterId, Rule, RuleId};
use flow::DatapathId;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Each line: the kind's name, the type of its ids, its object, its word, the service that publishes it, and the kinds that its objects
/// need to be visible. The object's type has the kind's name and a field `id`. It is in a box if it is much larger than the others,
/// because each object takes the room of the largest. A kind comes after those that it needs.
macro_rules! kinds {
    ($($(#[doc = $doc:literal])* $kind:ident($id:ty) as $object:ty: $word:literal of $service:literal needs [$($needed:ident),*];)*) => {
        /// The kinds of objects, and the first word of their keys.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        pub enum Kind {
            $($(#[doc = $doc])* #[serde(rename = $word)] $kind,)*
        }

        impl Kind {
            /// All kinds. Each comes after those that it needs.
            pub const ALL: &'static [Kind] = &[$(Kind::$kind),*];

            /// The first word of its keys.
            pub const fn word(self) -> &'static str {
                match self {
                    $(Kind::$kind => $word,)*
                }
            }

            /// The service that publishes its objects.
            pub const fn service(self) -> &'static str {
                match self {
                    $(Kind::$kind => $service,)*
                }
            }

            /// The kinds that its objects need to be visible.
            pub const fn needs(self) -> &'static [Kind] {
                match self {
                    $(Kind::$kind => &[$(Kind::$needed),*],)*
                }
            }
        }

        /// The name of one object.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub enum Key {
            $($(#[doc = $doc])* $kind($id),)*
        }

        impl Key {
            /// The kind of object.
            pub const fn kind(self) -> Kind {
                match self {
                    $(Key::$kind(_) => Kind::$kind,)*
                }
            }
        }

        impl fmt::Display for Key {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self {
                    $(Key::$kind(id) => write!(f, "{}/{id}", $word),)*
                }
            }
        }

        impl FromStr for Key {
            type Err = NotAKey;

            fn from_str(text: &str) -> Result<Self, NotAKey> {
                let (word, id) = text.split_once('/').unwrap_or((text, ""));
                match word {
                    $($word => id.parse().map(Key::$kind).map_err(|why| NotAKey(format!("{why}"))),)*
                    _ => Err(no_key(text)),
                }
            }
        }

        /// An object of any kind.
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
        #[serde(tag = "kind")]
        pub enum Object {
            $($(#[doc = $doc])* #[serde(rename = $word)] $kind($object),)*
        }

        impl Object {
            /// The name of the object.
            pub fn key(&self) -> Key {
                match self {
                    $(Object::$kind(object) => Key::$kind(object.id),)*
                }
            }
        }

        $(impl From<$kind> for Object {
            fn from(object: $kind) -> Object {
                Object::$kind(object.into())
            }
        })*
    };
}

kinds! {
    /// A connected or known switch.
    Switch(DatapathId) as Switch: "switch" of "discovery" needs [];
    /// A port of a switch.
    Port(ConnectPoint) as Port: "port" of "discovery" needs [Switch];
    /// One direction of a link.
    Link(LinkId) as Link: "link" of "discovery" needs [Port];
    /// An end station.
    Host(HostId) as Host: "host" of "hosts" needs [Port];
    /// A wanted rule.
    Rule(RuleId) as Rule: "rule" of "flows" needs [];
    /// A wanted group.
    Group(GroupId) as Group: "group" of "flows" needs [];
    /// A wanted meter.
    Meter(MeterId) as Meter: "meter" of "flows" needs [];
    /// A way through the network that serves an intent.
    Path(PathId) as Path: "path" of "paths" needs [];
    /// A wish for connectivity that is kept true.
    Intent(IntentId) as Box<Intent>: "intent" of "paths" needs [];
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

impl From<Key> for String {
    fn from(key: Key) -> String {
        key.to_string()
    }
}

impl TryFrom<String> for Key {
    type Error = NotAKey;

    fn try_from(text: String) -> Result<Self, NotAKey> {
        text.parse()
    }
}

fn no_key(text: &str) -> NotAKey {
    let words: Vec<_> = Kind::ALL.iter().map(|kind| format!("{kind}/ID")).collect();
    NotAKey(format!("{text:?} is no key: write {}", words.join(" or ")))
}

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
            "path/7.0",
            "path/7.12b",
            "intent/7",
        ] {
            assert_eq!(text.parse::<Key>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn a_kind_comes_after_those_that_it_needs() {
        for kind in Kind::ALL {
            assert!(kind.needs().iter().all(|needed| needed < kind), "{kind}");
        }
    }
}
