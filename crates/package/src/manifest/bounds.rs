//! The bounds within a capability: flowspaces, ports, tables, priorities, switches, names.
//!
//! In: a table of TOML or JSON. Out: validated types that are neither empty nor oversized, and whether one is within
//! another. Never knows what they limit.

use std::collections::BTreeSet;
use std::fmt::Display;

use flow::text::{match_to_string, parse_match};
use flow::{Match, PortNo, relation};
use serde::de::{Deserializer, Error as _, SeqAccess, Visitor};
use serde::{Deserialize, Serialize, Serializer};

/// The maximum number of matches of a flowspace. The kernel compares each command of an app with them. More are
/// refused.
pub const MATCHES_MAX: usize = 64;

/// The maximum number of entries of any other list. More are refused.
pub const ENTRIES_MAX: usize = 256;

/// The maximum length of a service's or topic's name, and of a key prefix, in bytes.
pub const NAME_BYTES_MAX: usize = 128;

/// The union of some matches: the packets that at least one of them matches. Never empty.
#[derive(Clone, Debug, PartialEq)]
pub struct Flowspace(Vec<Match>);

impl Flowspace {
    /// The matches; 1 to [`MATCHES_MAX`].
    pub fn matches(&self) -> &[Match] {
        &self.0
    }

    fn parse(texts: &[String]) -> Result<Flowspace, String> {
        let one = |text: &String| {
            let parsed = parse_match(text).map_err(|error| format!("\"{text}\" is not a match: {error}"))?;
            if parsed.entries().is_empty() {
                return Err("a match without fields has no effect: leave `match` out".to_owned());
            }
            if relation::is_nothing(&parsed) {
                return Err(format!("\"{text}\" matches no packet: its fields contradict each other"));
            }
            Ok(parsed)
        };
        texts.iter().map(one).collect::<Result<_, _>>().map(Flowspace)
    }

    /// Whether each of its packets is also in `wider`.
    pub fn lies_within(&self, wider: &Flowspace) -> bool {
        self.0.iter().all(|one| relation::within(one, &wider.0))
    }
}

impl std::fmt::Display for Flowspace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let texts: Vec<String> = self.0.iter().map(match_to_string).collect();
        f.write_str(&texts.join(" or "))
    }
}

impl Serialize for Flowspace {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(match_to_string))
    }
}

impl<'de> Deserialize<'de> for Flowspace {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        let texts = list(input, MATCHES_MAX)?;
        Flowspace::parse(&texts).map_err(D::Error::custom)
    }
}

/// A range of priorities, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "(u16, u16)", try_from = "(i64, i64)")]
pub struct Priorities {
    /// The lowest.
    pub low: u16,
    /// The highest; not below the lowest.
    pub high: u16,
}

impl Priorities {
    /// Whether this priority is one of them.
    pub fn contains(self, priority: u16) -> bool {
        (self.low..=self.high).contains(&priority)
    }
}

impl From<Priorities> for (u16, u16) {
    fn from(priorities: Priorities) -> Self {
        (priorities.low, priorities.high)
    }
}

impl TryFrom<(i64, i64)> for Priorities {
    type Error = String;

    fn try_from((low, high): (i64, i64)) -> Result<Self, String> {
        match (u16::try_from(low), u16::try_from(high)) {
            (Ok(low), Ok(high)) if low <= high => Ok(Priorities { low, high }),
            _ => Err(format!(
                "[{low}, {high}] is not a range of priorities: write [LOWEST, HIGHEST], 0 to 65535"
            )),
        }
    }
}

/// All names, or these.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Names {
    /// All names.
    All,
    /// These names; never empty.
    Only(BTreeSet<String>),
}

impl Names {
    /// Whether each of these names is in `wider`.
    pub fn lie_within(&self, wider: &Names) -> bool {
        match (self, wider) {
            (_, Names::All) => true,
            (Names::All, Names::Only(_)) => false,
            (Names::Only(these), Names::Only(those)) => these.is_subset(those),
        }
    }

    /// Whether each key with one of these prefixes also has one of the prefixes in `wider`.
    pub fn lie_within_as_prefixes(&self, wider: &Names) -> bool {
        match (self, wider) {
            (_, Names::All) => true,
            (Names::All, Names::Only(_)) => false,
            (Names::Only(these), Names::Only(those)) => {
                these.iter().all(|one| those.iter().any(|other| one.starts_with(other.as_str())))
            }
        }
    }
}

impl Serialize for Names {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Names::All => serializer.serialize_bool(true),
            Names::Only(names) => serializer.collect_seq(names),
        }
    }
}

impl<'de> Deserialize<'de> for Names {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        struct AllOrThese;

        impl<'de> Visitor<'de> for AllOrThese {
            type Value = Names;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("true, or a list of names")
            }

            fn visit_bool<E: serde::de::Error>(self, all: bool) -> Result<Names, E> {
                if all { Ok(Names::All) } else { Err(E::custom(super::NOT_FALSE)) }
            }

            fn visit_seq<A: SeqAccess<'de>>(self, entries: A) -> Result<Names, A::Error> {
                let names: Vec<String> =
                    list(serde::de::value::SeqAccessDeserializer::new(entries), ENTRIES_MAX)?;
                for name in &names {
                    if name.is_empty() || name.len() > NAME_BYTES_MAX || name.chars().any(char::is_control) {
                        return Err(A::Error::custom(format!(
                            "{name:?} is not a valid name: write 1 to {NAME_BYTES_MAX} bytes without control characters"
                        )));
                    }
                }
                Ok(Names::Only(names.into_iter().collect()))
            }
        }

        input.deserialize_any(AllOrThese)
    }
}

/// A list with at least one entry and at most `max`.
pub(super) fn list<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    input: D,
    max: usize,
) -> Result<Vec<T>, D::Error> {
    let entries = Vec::deserialize(input)?;
    match entries.len() {
        0 => Err(D::Error::custom("the list is empty and would grant nothing: leave the key out")),
        count if count > max => {
            Err(D::Error::custom(format!("{count} entries are more than the limit of {max}")))
        }
        _ => Ok(entries),
    }
}

/// Reads a set of at most [`ENTRIES_MAX`] entries.
pub(super) fn set<'de, T: Deserialize<'de> + Ord, D: Deserializer<'de>>(
    input: D,
) -> Result<Option<BTreeSet<T>>, D::Error> {
    list(input, ENTRIES_MAX).map(|entries| Some(entries.into_iter().collect()))
}

/// Reads table numbers. 255 means all tables (OFPTT_ALL; OpenFlow 1.3.5, 7.3.4.1) and is refused.
pub(super) fn tables<'de, D: Deserializer<'de>>(input: D) -> Result<Option<BTreeSet<u8>>, D::Error> {
    let table = |number: i64| match u8::try_from(number) {
        Ok(number) if number < 255 => Ok(number),
        _ => Err(D::Error::custom(format!("{number} is not a table: write 0 to 254"))),
    };
    list(input, ENTRIES_MAX)?.into_iter().map(table).collect::<Result<_, _>>().map(Some)
}

/// Reads ports to which a packet can be sent.
pub(super) fn ports<'de, D: Deserializer<'de>>(input: D) -> Result<Option<BTreeSet<PortNo>>, D::Error> {
    list::<toml::Value, D>(input, ENTRIES_MAX)?
        .into_iter()
        .map(|written| port(&written).map_err(D::Error::custom))
        .collect::<Result<_, _>>()
        .map(Some)
}

fn port(written: &toml::Value) -> Result<PortNo, String> {
    let port = match written {
        toml::Value::Integer(number) => u32::try_from(*number).ok().map(PortNo),
        toml::Value::String(name) => name.parse().ok(),
        _ => None,
    };
    // The ports to which nothing can be sent (OpenFlow 1.3.5, 7.2.1).
    let nowhere = [PortNo(0), PortNo::ANY, PortNo::UNSET];
    port.filter(|port| !nowhere.contains(port)).ok_or_else(|| {
        format!("{written} is no port that a packet can be sent to: write a number from 1, or a name such as \"FLOOD\"")
    })
}

/// Whether a bound is at least as narrow as another. A missing bound is the widest.
pub(super) fn narrower<T>(this: &Option<T>, wider: &Option<T>, within: impl Fn(&T, &T) -> bool) -> bool {
    match (this, wider) {
        (_, None) => true,
        (None, Some(_)) => false,
        (Some(this), Some(wider)) => within(this, wider),
    }
}

/// The entries of a set as text.
pub(super) fn listed<T: Display>(entries: impl IntoIterator<Item = T>) -> String {
    let texts: Vec<String> = entries.into_iter().map(|entry| entry.to_string()).collect();
    texts.join(", ")
}
