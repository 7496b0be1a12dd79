//! Amounts, and the table `[limits]`: how much of the machine an app may use.
//!
//! In: TOML, or their JSON form. Out: a soft and a hard limit each, the soft one not above the hard one, and the request as text. Never knows
//! the defaults of a node, and enforces nothing.

use serde::{Deserialize, Serialize};

use super::asks::{Requestable, Visit};

/// The minimum number of descriptors for an app: standard streams, the monitor's socket, three for a worker's port, and
/// a few to work with.
pub const OPEN_FILES_MIN: u64 = 16;

/// The minimum memory of an app in bytes: 4 MiB, twice what the learning switch uses before it has learned anything. A
/// smaller value was probably meant in another unit.
pub const MEMORY_BYTES_MIN: u64 = 4 << 20;

/// A soft limit, which is reported, and a hard limit, which is enforced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Written", into = "Written")]
pub struct Amount {
    /// Above it, app and operator are told.
    pub soft: Option<u64>,
    /// It is enforced.
    pub hard: u64,
}

/// Its two forms in text.
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
            Amount { hard: 0, .. } => Err("a hard limit of 0 refuses everything: write 1 or more".to_owned()),
            Amount { soft: Some(soft), hard } if soft > hard => Err(format!(
                "the soft limit {soft} is above the hard limit {hard}: the warning would come too late"
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

impl Amount {
    /// The request as text. `what` is counted.
    pub(super) fn words_with(&self, what: &str) -> String {
        let told = self.soft.map(|soft| format!(", and you are told at {soft}")).unwrap_or_default();
        format!("have up to {} {what}{told}", self.hard)
    }
}

impl Requestable for Amount {
    fn words(&self, name: &str) -> String {
        let what = match name {
            "limits.cpu_percent" => "hundredths of a processor",
            "limits.memory_bytes" => "bytes of memory",
            "limits.open_files" => "open descriptors",
            "limits.threads" => "threads and processes",
            "limits.file_bytes" => "bytes in a file that it writes",
            "quotas.commands_per_s" => "commands a second",
            "quotas.packet_outs_per_s" => "packets per second that its packet-outs cause",
            "quotas.packet_out_bytes_per_s" => "bytes of these packets a second",
            "quotas.copies_per_switch_per_s" => "copies per second that one switch makes of its packet-outs",
            "quotas.packet_ins_caused_per_s" => "packet-ins per second that its rules and packet-outs cause",
            "quotas.stats_per_s" => "statistics a second",
            other => other,
        };
        self.words_with(what)
    }

    /// Only the hard limit is enforced.
    fn lies_within(&self, wider: &Amount) -> bool {
        self.hard <= wider.hard
    }

    fn without(&self) -> Option<String> {
        Some("have the node's default amount".to_owned())
    }
}

/// `[limits]`: the resources of the machine that the app may use. `None` means the node's default.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// Processor time, in hundredths of one core.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_percent: Option<Amount>,
    /// Writable memory.
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

impl Limits {
    pub(super) fn visit(&self, before: &Limits, visitor: &mut impl Visit) {
        visitor.visit("limits.cpu_percent", &self.cpu_percent, &before.cpu_percent);
        visitor.visit("limits.memory_bytes", &self.memory_bytes, &before.memory_bytes);
        visitor.visit("limits.open_files", &self.open_files, &before.open_files);
        visitor.visit("limits.threads", &self.threads, &before.threads);
        visitor.visit("limits.file_bytes", &self.file_bytes, &before.file_bytes);
    }

    /// Only the entries whose names `kept` accepts.
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

/// The reason why this is too little memory, if it is.
pub fn flaw_of_memory(bytes: u64) -> Option<String> {
    (bytes < MEMORY_BYTES_MIN).then(|| {
        format!("an app cannot start with {bytes} bytes of memory: write {MEMORY_BYTES_MIN} (4 MiB) or more")
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
            format!("an app cannot start with {} descriptors: write {OPEN_FILES_MIN} or more", amount.hard);
        return Err(serde::de::Error::custom(few));
    }
    Ok(Some(amount))
}
