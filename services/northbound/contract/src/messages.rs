//! The messages between the monitor and the service.
//!
//! In: typed values, or JSON. Out: the other of the two. It decides nothing: the monitor decides which commands it carries out.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The longest reason of a command in bytes.
pub const WHY_BYTES_MAX: usize = 160;

/// The longest name of a command's sender in bytes.
pub const SENDER_BYTES_MAX: usize = 64;

/// From the monitor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum FromMonitor {
    /// The apps and services.
    Apps(NodeReport),
    /// Stored incidents.
    Incidents {
        /// They begin a list that replaces the earlier one. Otherwise they are added to it.
        is_first: bool,
        /// In the order of their numbers. The first message of a list has the highest numbers.
        incidents: Vec<IncidentReport>,
    },
    /// The result of an [`AppCommand`].
    Answered {
        /// The ticket of the command.
        ticket: u64,
        /// Why the monitor does not carry it out. `None`: it does.
        refused: Option<CommandRefused>,
    },
    /// The answer to [`ToMonitor::ReadEvidence`].
    Evidence {
        /// The ticket of the question.
        ticket: u64,
        /// What the state folder has. `None`: there is no such incident, or it cannot be read.
        evidence: Option<Box<EvidenceReport>>,
    },
}

/// From the service.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum ToMonitor {
    /// A command for an app.
    Command(AppCommand),
    /// A question for the evidence of a stored incident.
    ReadEvidence {
        /// A number of the service. The answer repeats it.
        ticket: u64,
        /// The number of the incident.
        number: u64,
    },
}

/// The evidence of an incident. The monitor bounds its lists and lines.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EvidenceReport {
    /// The code with which the process exited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// The number of the signal that ended it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    /// Whether it left a core dump.
    pub core_dumped: bool,
    /// The trusted apps that the kernel process was calling when it ended.
    pub called: Vec<String>,
    /// The last lines that the process printed.
    pub last_lines: Vec<String>,
    /// The log lines of the monitor before the incident, oldest first.
    pub log: Vec<LogLine>,
    /// What the app used before the incident, oldest first, by resource.
    pub samples: Vec<BTreeMap<String, u64>>,
}

/// A line of the monitor's log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LogLine {
    /// When, in milliseconds since 1970.
    pub unix_ms: u64,
    /// The text.
    pub line: String,
}

/// Why the monitor does not carry out a command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum CommandRefused {
    /// The node has no such app.
    NoSuchApp,
    /// The app or the node does not permit it: a sentence.
    NotPossible(String),
}

/// To the monitor: a command for an app. Only a service whose operator wrote `may_change_apps` may send it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AppCommand {
    /// A number of the service. The answer repeats it.
    pub ticket: u64,
    /// The app.
    pub app: String,
    /// The command.
    pub verb: Verb,
    /// The reason, if the sender gave one: at most [`WHY_BYTES_MAX`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// Who sent it, for the audit log: the name of a token. At most [`SENDER_BYTES_MAX`].
    pub sender: String,
}

/// A command for an app.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verb {
    /// Start it if it does not run.
    Start,
    /// Stop it.
    Stop,
    /// Restart it, and reset its failure count.
    Restart,
    /// Stop it. It stays stopped until the operator restarts it.
    Quarantine,
}

/// A failure on the node, without its evidence: see [`ToMonitor::ReadEvidence`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IncidentReport {
    /// Its number in the state folder.
    pub number: u64,
    /// When, in milliseconds since 1970.
    pub unix_ms: u64,
    /// Its kind, such as `app_ended`.
    pub what: String,
    /// The affected app. `None` for the kernel process or the node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub app: Option<String>,
    /// The reason, as a phrase.
    pub reason: String,
    /// What the monitor did.
    pub then: String,
    /// The app that probably caused it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub culprit: Option<String>,
    /// The probable cause, as a sentence. It can be empty.
    pub finding: String,
    /// If a switch has left its profile: its delays beside those of the profile, by quantile. At most [`DELAYS_MAX`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub delays: Vec<ReplyDelay>,
}

/// The most quantiles in [`IncidentReport::delays`].
pub const DELAYS_MAX: usize = 8;

/// How long a switch takes to answer a barrier behind one flow mod, at one quantile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReplyDelay {
    /// The quantile, in hundredths.
    pub percent: u8,
    /// The soonest by the profile, in microseconds.
    pub earliest_us: u32,
    /// The latest by the profile.
    pub latest_us: u32,
    /// What the node observed.
    pub observed_us: u32,
}

/// The apps and services of the node. The monitor sends them twice a second.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NodeReport {
    /// In the operator's order; services last.
    pub apps: Vec<AppReport>,
}

/// An app or service, as its object in the REST interface shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AppReport {
    /// Its name.
    pub id: String,
    /// `app` or `service`.
    pub role: String,
    /// `starting`, `running`, `ending`, `backing_off`, `quarantined`, `stopped`, `held` or `refused`.
    pub state: String,
    /// The number of its zone.
    pub zone: u16,
    /// `process` or `trusted`.
    pub zone_kind: String,
    /// Its process, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// How often it was restarted.
    pub restarts: u64,
    /// When its state began, in milliseconds since 1970.
    pub since_ms: u64,
    /// Why it ended last, if it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_end: Option<String>,
    /// What the operator should know about it now, or change: a phrase.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Events for it since its zone was attached.
    #[serde(default)]
    pub events: u64,
    /// Packet-ins that were dropped because it did not read in time.
    #[serde(default)]
    pub dropped: u64,
    /// Commands that it sent.
    #[serde(default)]
    pub commands: u64,
    /// Packet-outs among them.
    #[serde(default)]
    pub packet_outs: u64,
    /// Refused commands, over all its runs.
    #[serde(default)]
    pub refusals: u64,
    /// Its limits: the resource, and the soft and the hard limit.
    pub limits: Vec<Limit>,
    /// What it used in the last half second, by resource.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sample: Option<BTreeMap<String, u64>>,
}

/// The limits of one resource.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limit {
    /// The resource.
    pub resource: String,
    /// Above it, the app and the operator are told.
    pub soft: u64,
    /// Above it, an operation fails or the app is ended.
    pub hard: u64,
}
