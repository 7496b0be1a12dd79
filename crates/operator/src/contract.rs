//! What the operator asks of a running node over its Unix socket, and what it answers: one JSON object a line, each way.
//!
//! In: lines of at most [`LINE_BYTES_MAX`]. Out: a line for each, in the order in which they came. Never holds a socket.

use flow::DatapathId;
use monitor_channel::app::{AppStatus, Ending, Verb};
use serde::{Deserialize, Serialize};
use zone::judge::Excess;
use zone::{Resource, Sample};

/// Longest line that is read of an operator. Questions are short.
pub const LINE_BYTES_MAX: usize = 64 << 10;

/// A question.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Question {
    /// How the node is.
    Node,
    /// The switches that are up.
    Switches,
    /// Flow entries, of one switch or of all.
    Flows {
        /// Which switch.
        datapath: Option<DatapathId>,
    },
    /// The apps.
    Apps,
    /// What the node and its apps use of the machine.
    Usage,
    /// Something for an app.
    App {
        /// Which.
        app: String,
        /// What.
        verb: Verb,
        /// Why, in the operator's words.
        #[serde(default)]
        why: Option<String>,
    },
    /// That an app runs which was installed while the node runs.
    AddApp {
        /// Which.
        app: String,
    },
    /// The certificates to which datapath ids are pinned.
    Pins,
    /// That the next certificate that speaks for an id is its first.
    ForgetPin {
        /// Which id.
        datapath: DatapathId,
    },
    /// That the node leaves safe mode.
    LeaveSafeMode,
    /// That the node reads its configuration anew, and what has changed holds.
    Reload {
        /// Only what concerns this app.
        #[serde(default)]
        app: Option<String>,
    },
}

/// An answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Answer {
    /// How the node is.
    Node(NodeView),
    /// The switches that are up, by datapath id.
    Switches(Vec<SwitchView>),
    /// Flow entries, switch by switch.
    Flows(Vec<FlowsView>),
    /// The apps, in the operator's order.
    Apps(Vec<AppView>),
    /// What the node and its apps use.
    Usage(UsageView),
    /// The certificates to which datapath ids are pinned, by id.
    Pins(Vec<PinView>),
    /// What is different since the configuration was read anew.
    Reloaded(ReloadView),
    /// It is being done.
    Done,
    /// It is not done, and why.
    Refused(String),
}

/// The certificate to which a datapath id is pinned.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PinView {
    /// The id.
    pub datapath: DatapathId,
    /// The certificate's SHA-256 fingerprint.
    pub certificate: String,
    /// Whether a switch with this id is up.
    pub up: bool,
}

/// What became of a configuration that was read anew.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReloadView {
    /// What is different now, a line each.
    pub done: Vec<String>,
    /// What stays as it was until the node is started anew, a line each.
    pub left: Vec<String>,
}

/// How a node is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeView {
    /// The version of this binary.
    pub version: String,
    /// The kernel process.
    pub pid: u32,
    /// Where it listens.
    pub listen: Vec<String>,
    /// Its worker threads.
    pub workers: usize,
    /// How long the kernel process has been up.
    pub uptime_ms: u64,
    /// How often it was started, less the first time.
    pub kernel_restarts: u64,
    /// How it ended last, if it did.
    pub kernel_last_end: Option<String>,
    /// Switches that are up.
    pub switches: usize,
    /// Connections, those that are not up yet included.
    pub connections: usize,
    /// Why and since when the node is in safe mode, if it is.
    pub safe_mode: Option<Ending>,
}

/// A switch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SwitchView {
    /// Which.
    pub datapath: DatapathId,
    /// The version that is spoken.
    pub version: String,
    /// Where it connected from.
    pub peer: String,
    /// Whether by TLS.
    pub tls: bool,
    /// How long it has been up.
    pub up_ms: u64,
    /// How many tables it has.
    pub n_tables: u8,
    /// How many packets it can keep.
    pub n_buffers: u32,
    /// Who made it, and what it is.
    pub description: Option<String>,
    /// Its ports.
    pub ports: Vec<PortView>,
    /// Packet-ins that came.
    pub packet_ins: u64,
    /// Flow mods that went.
    pub flow_mods: u64,
    /// Packet-outs that went.
    pub packet_outs: u64,
    /// Errors that it sent.
    pub errors: u64,
    /// Why the counts are missing, if they are: they are shown as 0 then.
    pub trouble: Option<String>,
    /// Packet-ins of control packets (LLDP, ARP, DHCP …) that were beyond its budget.
    pub control_dropped: u64,
    /// Packet-ins of other packets that were beyond its budget.
    pub data_dropped: u64,
    /// Packet-ins that some app did not hear, since it did not keep up.
    pub unheard: u64,
    /// Whether the switch itself limits what it sends up for want of a rule; nothing where no meter is wanted, or not known.
    pub meter: Option<MeterView>,
    /// Whether the node knows whose the rules are that the switch had when it came up; nothing where the counts are missing.
    pub rules_before: Option<RulesBeforeView>,
}

/// What a switch has said of the rules that it had when it came up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum RulesBeforeView {
    /// It has not answered yet.
    Waiting,
    /// It has.
    Known {
        /// Rules that are an app's, as far as they were looked at.
        of_apps: u32,
    },
    /// It did not answer, or not to the end.
    Unanswered {
        /// Rules that are an app's, until then.
        of_apps: u32,
    },
}

/// The node's meter at a switch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum MeterView {
    /// The switch was asked, and has not confirmed all yet; or no app wants packets.
    Pending,
    /// The rule carries it.
    On {
        /// Its number.
        meter_id: u32,
        /// Packets in a second.
        per_s: u32,
        /// Packets that it has dropped since it was made, as the switch last said; it is asked every ten seconds.
        dropped: u64,
    },
    /// There is none.
    Without {
        /// Why.
        reason: String,
    },
}

/// A port.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortView {
    /// Its number.
    pub port_no: flow::PortNo,
    /// Its name.
    pub name: String,
    /// Its address.
    pub hw_addr: flow::MacAddr,
    /// Whether packets can pass.
    pub live: bool,
}

/// The flow entries of one switch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FlowsView {
    /// Which switch.
    pub datapath: DatapathId,
    /// Its entries; empty if they could not be had.
    pub flows: Vec<FlowView>,
    /// Why they could not be had, or not all.
    pub trouble: Option<String>,
}

/// A flow entry.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FlowView {
    /// Its table.
    pub table: u8,
    /// Its priority.
    pub priority: u16,
    /// Whose it is: an app, `kernel`, or nobody that this node knows.
    pub owner: String,
    /// Its cookie, in hexadecimal.
    pub cookie: String,
    /// How long it has lived, in seconds.
    pub duration_s: f64,
    /// Its idle time-out.
    pub idle_timeout_s: u16,
    /// Its hard time-out.
    pub hard_timeout_s: u16,
    /// Packets that it matched.
    pub packets: u64,
    /// Bytes that it matched.
    pub bytes: u64,
    /// Which packets, in ovs-ofctl's syntax.
    #[serde(rename = "match")]
    pub matching: String,
    /// What is done with them, in ovs-ofctl's syntax.
    pub actions: String,
}

/// An app: what the monitor says of it, and what was counted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AppView {
    /// What the monitor says.
    pub status: AppStatus,
    /// Its package, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub package: Option<PackageView>,
    /// Events that were its to hear since its zone was attached.
    pub events: u64,
    /// Packet-ins that it did not take in time.
    pub dropped: u64,
    /// Commands that it gave.
    pub commands: u64,
    /// Commands that were refused since the kernel process started, whatever became of its zone meanwhile.
    pub refusals: u64,
    /// What was refused, by kind, since the kernel process started.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shortfalls: Vec<ShortfallView>,
    /// Why counts are missing from these sums, if any are.
    pub trouble: Option<String>,
    /// What it uses more of than a soft limit.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub over: Vec<Excess>,
    /// What it used at the last sample of this start; nothing before there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used: Option<Sample>,
}

/// Something that an app was refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShortfallView {
    /// The capability or quota that it lacks; nothing where it is neither.
    pub capability: Option<String>,
    /// How often.
    pub count: u64,
    /// The first of them in words.
    pub first: String,
    /// What to write so that it passes, if anything would help.
    pub remedy: Option<String>,
}

impl ShortfallView {
    /// What stands behind the words of the refusal.
    pub fn in_words(&self) -> String {
        self.remedy.as_ref().map_or(String::new(), |remedy| format!("; to allow it: {remedy}"))
    }
}

/// What the node and its apps use of the machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UsageView {
    /// How often it is measured, in milliseconds.
    pub interval_ms: u64,
    /// The apps, in the operator's order.
    pub apps: Vec<AppUsageView>,
    /// The kernel process, oldest sample first.
    pub kernel: Vec<Sample>,
    /// The monitor, oldest sample first.
    pub monitor: Vec<Sample>,
}

/// What an app uses.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AppUsageView {
    /// What the monitor says.
    pub status: AppStatus,
    /// Its limits, of each resource that has some; of an app that runs trusted those of processor time and of the store alone.
    pub limits: Vec<LimitView>,
    /// What it uses more of than the soft limit.
    pub over: Vec<Excess>,
    /// What it used, oldest sample first; those of processes that have ended too.
    pub samples: Vec<Sample>,
}

/// The limits of one resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LimitView {
    /// Of what.
    pub resource: Resource,
    /// Beyond it app and operator are told.
    pub soft: u64,
    /// It is not passed, or ends the app.
    pub hard: u64,
}

/// The package of an app.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PackageView {
    /// Its version.
    pub version: String,
    /// Its digest.
    pub digest: String,
    /// Whose signatures counted when the node started.
    pub signed: String,
    /// Why it does not run trusted although that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub demoted: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: &str, expected: Result<Question, &str>) {
        match (serde_json::from_str::<Question>(line), expected) {
            (Ok(question), Ok(expected)) => assert_eq!(question, expected),
            (Err(error), Err(part)) => assert!(error.to_string().contains(part), "{error}"),
            (got, expected) => panic!("{line}: {got:?} and not {expected:?}"),
        }
    }

    #[test]
    fn what_is_no_question_is_refused_by_name() {
        check("", Err("EOF"));
        check(r#""weather""#, Err("unknown variant `weather`"));
        check(r#"{"flows":{"datapath":"of:zz"}}"#, Err("'of:zz' is not a datapath id"));
        check(r#"{"app":{"app":"hub","verb":"explode"}}"#, Err("unknown variant `explode`"));
    }

    #[test]
    fn questions_are_short() {
        check(r#""switches""#, Ok(Question::Switches));
        check(r#"{"flows":{"datapath":"1"}}"#, Ok(Question::Flows { datapath: Some(DatapathId(1)) }));
        check(
            r#"{"app":{"app":"hub","verb":"stop"}}"#,
            Ok(Question::App { app: "hub".into(), verb: Verb::Stop, why: None }),
        );
    }
}
