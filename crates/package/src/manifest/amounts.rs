//! How much an app may have: the tables `[limits]` and `[quotas]`.
//!
//! In: TOML, or the JSON that they print as. Out: a soft and a hard limit for each, the soft one not above the hard one.
//! Never knows what a node gives by default, and enforces nothing.

use serde::{Deserialize, Serialize};

use super::asks::Visit;

/// Fewest descriptors with which an app can start: standard streams, the monitor's socket, and three for a worker's port, with a
/// few to live on.
pub const OPEN_FILES_MIN: u64 = 16;

/// Least memory with which an app can start, in bytes: 4 MiB, twice what the learning switch takes before it has learned anything. What is less
/// was meant in another unit.
pub const MEMORY_BYTES_MIN: u64 = 4 << 20;

/// A soft limit, of which one is told, and a hard one, which is enforced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Written", into = "Written")]
pub struct Amount {
    /// Beyond it app and operator are told.
    pub soft: Option<u64>,
    /// It is not passed.
    pub hard: u64,
}

/// The two ways of writing it.
#[derive(Serialize, Deserialize)]
#[serde(untagged, expecting = "write a number from 1, or { soft = NUMBER, hard = NUMBER }")]
enum Written {
    Hard(u64),
    Both(Both),
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Both {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    soft: Option<u64>,
    hard: u64,
}

impl TryFrom<Written> for Amount {
    type Error = String;

    fn try_from(written: Written) -> Result<Amount, String> {
        let amount = match written {
            Written::Hard(hard) => Amount { soft: None, hard },
            Written::Both(Both { soft, hard }) => Amount { soft, hard },
        };
        match amount {
            Amount { hard: 0, .. } => {
                Err("a hard limit of 0 lets nothing through: write 1 or more".to_owned())
            }
            Amount { soft: Some(soft), hard } if soft > hard => Err(format!(
                "the soft limit {soft} is above the hard limit {hard}: nobody would be told in time"
            )),
            sound => Ok(sound),
        }
    }
}

impl From<Amount> for Written {
    fn from(amount: Amount) -> Written {
        match amount {
            Amount { soft: None, hard } => Written::Hard(hard),
            Amount { soft, hard } => Written::Both(Both { soft, hard }),
        }
    }
}

/// `[limits]`: what the app may take of the machine. `None` is what the node gives every app.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// Time of the processors, in hundredths of one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_percent: Option<Amount>,
    /// Memory that it may write to.
    #[serde(deserialize_with = "memory_bytes", skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<Amount>,
    /// Open descriptors.
    #[serde(deserialize_with = "open_files", skip_serializing_if = "Option::is_none")]
    pub open_files: Option<Amount>,
    /// Threads and processes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threads: Option<Amount>,
    /// The largest file that it may write.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file_bytes: Option<Amount>,
}

/// `[quotas]`: what it may ask of the node. `None` is what the node gives every app.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Quotas {
    /// Commands a second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commands_per_s: Option<Amount>,
    /// Packets a second that packet-outs become.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub packet_outs_per_s: Option<Amount>,
    /// Bytes of these packets a second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub packet_out_bytes_per_s: Option<Amount>,
    /// Packets a second that its packet-outs become at one switch, beyond a few each.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub copies_per_switch_per_s: Option<Amount>,
    /// Packet-ins a second that its rules and packet-outs cause.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub packet_ins_caused_per_s: Option<Amount>,
    /// Statistics a second: each request, and each KiB of its answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stats_per_s: Option<Amount>,
    /// Bytes that it keeps in the node's store.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub store_bytes: Option<Amount>,
}

impl Limits {
    pub(super) fn visit(&self, before: &Limits, visitor: &mut impl Visit) {
        visitor.visit("limits.cpu_percent", &self.cpu_percent, &before.cpu_percent);
        visitor.visit("limits.memory_bytes", &self.memory_bytes, &before.memory_bytes);
        visitor.visit("limits.open_files", &self.open_files, &before.open_files);
        visitor.visit("limits.threads", &self.threads, &before.threads);
        visitor.visit("limits.file_bytes", &self.file_bytes, &before.file_bytes);
    }

    /// Those whose names are kept.
    pub fn only(&self, kept: impl Fn(&str) -> bool) -> Limits {
        Limits {
            cpu_percent: self.cpu_percent.filter(|_| kept("limits.cpu_percent")),
            memory_bytes: self.memory_bytes.filter(|_| kept("limits.memory_bytes")),
            open_files: self.open_files.filter(|_| kept("limits.open_files")),
            threads: self.threads.filter(|_| kept("limits.threads")),
            file_bytes: self.file_bytes.filter(|_| kept("limits.file_bytes")),
        }
    }
}

impl Quotas {
    /// What these do not say as the others say it.
    #[must_use]
    pub fn or(self, others: Quotas) -> Quotas {
        Quotas {
            commands_per_s: self.commands_per_s.or(others.commands_per_s),
            packet_outs_per_s: self.packet_outs_per_s.or(others.packet_outs_per_s),
            packet_out_bytes_per_s: self.packet_out_bytes_per_s.or(others.packet_out_bytes_per_s),
            copies_per_switch_per_s: self.copies_per_switch_per_s.or(others.copies_per_switch_per_s),
            packet_ins_caused_per_s: self.packet_ins_caused_per_s.or(others.packet_ins_caused_per_s),
            stats_per_s: self.stats_per_s.or(others.stats_per_s),
            store_bytes: self.store_bytes.or(others.store_bytes),
        }
    }

    pub(super) fn visit(&self, before: &Quotas, visitor: &mut impl Visit) {
        visitor.visit("quotas.commands_per_s", &self.commands_per_s, &before.commands_per_s);
        visitor.visit("quotas.packet_outs_per_s", &self.packet_outs_per_s, &before.packet_outs_per_s);
        let (now, then) = (&self.packet_out_bytes_per_s, &before.packet_out_bytes_per_s);
        visitor.visit("quotas.packet_out_bytes_per_s", now, then);
        let (now, then) = (&self.copies_per_switch_per_s, &before.copies_per_switch_per_s);
        visitor.visit("quotas.copies_per_switch_per_s", now, then);
        let (now, then) = (&self.packet_ins_caused_per_s, &before.packet_ins_caused_per_s);
        visitor.visit("quotas.packet_ins_caused_per_s", now, then);
        visitor.visit("quotas.stats_per_s", &self.stats_per_s, &before.stats_per_s);
        visitor.visit("quotas.store_bytes", &self.store_bytes, &before.store_bytes);
    }

    /// Those whose names are kept.
    pub fn only(&self, kept: impl Fn(&str) -> bool) -> Quotas {
        Quotas {
            commands_per_s: self.commands_per_s.filter(|_| kept("quotas.commands_per_s")),
            packet_outs_per_s: self.packet_outs_per_s.filter(|_| kept("quotas.packet_outs_per_s")),
            packet_out_bytes_per_s: self
                .packet_out_bytes_per_s
                .filter(|_| kept("quotas.packet_out_bytes_per_s")),
            copies_per_switch_per_s: self
                .copies_per_switch_per_s
                .filter(|_| kept("quotas.copies_per_switch_per_s")),
            packet_ins_caused_per_s: self
                .packet_ins_caused_per_s
                .filter(|_| kept("quotas.packet_ins_caused_per_s")),
            stats_per_s: self.stats_per_s.filter(|_| kept("quotas.stats_per_s")),
            store_bytes: self.store_bytes.filter(|_| kept("quotas.store_bytes")),
        }
    }
}

/// Why there cannot be so little memory, if so.
pub fn flaw_of_memory(bytes: u64) -> Option<String> {
    (bytes < MEMORY_BYTES_MIN).then(|| {
        format!("with {bytes} bytes of memory no app can start: write {MEMORY_BYTES_MIN} (4 MiB) or more")
    })
}

fn memory_bytes<'de, D: serde::Deserializer<'de>>(input: D) -> Result<Option<Amount>, D::Error> {
    let amount = Amount::deserialize(input)?;
    flaw_of_memory(amount.hard).map_or(Ok(Some(amount)), |flaw| Err(serde::de::Error::custom(flaw)))
}

fn open_files<'de, D: serde::Deserializer<'de>>(input: D) -> Result<Option<Amount>, D::Error> {
    let amount = Amount::deserialize(input)?;
    if amount.hard < OPEN_FILES_MIN {
        let few =
            format!("with {} descriptors no app can start: write {OPEN_FILES_MIN} or more", amount.hard);
        return Err(serde::de::Error::custom(few));
    }
    Ok(Some(amount))
}
