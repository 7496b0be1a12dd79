//! The questions of an operator to a running node over its Unix socket, and the answers. Each is one line with a JSON
//! object.
//!
//! In: lines of at most [`LINE_BYTES_MAX`]. Out: one line for each, in the same order. It holds no socket.

use flow::DatapathId;
use monitor_channel::app::{AppStatus, Ending, Verb};
pub use monitor_channel::slices::{SlicesChange, SlicesWanted};
use serde::{Deserialize, Serialize};
use zone::Excess;
use zone::{Resource, Sample};

/// The longest line that the node reads from an operator, in bytes. Questions are short.
pub const LINE_BYTES_MAX: usize = 64 << 10;

/// A question.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Question {
    /// The state of the node. Answer: [`Answer::Node`].
    Node,
    /// The switches that are up.
    Switches,
    /// The flow entries of one switch or of all.
    Flows {
        /// The switch; `None` for all.
        datapath: Option<DatapathId>,
    },
    /// The apps.
    Apps,
    /// The resource use of the node and its apps.
    Usage,
    /// A command for an app, such as stop or restart.
    App {
        /// The app's name.
        app: String,
        /// The command.
        verb: Verb,
        /// The operator's reason, for the records.
        #[serde(default)]
        why: Option<String>,
    },
    /// Start an app that was installed while the node runs.
    AddApp {
        /// The app's name.
        app: String,
    },
    /// The certificates to which datapath ids are pinned.
    Pins,
    /// Delete the pin of a datapath id. The next certificate that is used for the id becomes its pin.
    ForgetPin {
        /// The datapath id.
        datapath: DatapathId,
    },
    /// Leave safe mode.
    LeaveSafeMode,
    /// Write a copy of the store into its folder, for a backup. Answer: [`Answer::Done`].
    SaveStore,
    /// Read the configuration again, and apply the changes.
    Reload {
        /// Only the changes for this app; `None` for all.
        #[serde(default)]
        app: Option<String>,
        /// The node gets these slices, from now on and after a restart. `None`: it keeps those that it has.
        #[serde(default)]
        slices: Option<SlicesChange>,
    },
}

/// The node's answer to one question.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Answer {
    /// The state of the node.
    Node(NodeView),
    /// The switches that are up, by datapath id.
    Switches(Vec<SwitchView>),
    /// The flow entries, switch by switch.
    Flows(Vec<FlowsView>),
    /// The apps, in the operator's order.
    Apps(Vec<AppView>),
    /// The resource use of the node and its apps.
    Usage(UsageView),
    /// The certificates to which datapath ids are pinned, sorted by id.
    Pins(Vec<PinView>),
    /// What changed after the configuration was read again.
    Reloaded(ReloadView),
    /// The node has accepted the command.
    Done,
    /// The node refused, with the reason.
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

/// The result of reading the configuration again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReloadView {
    /// The changes, one line each.
    pub done: Vec<String>,
    /// What does not change until the node is restarted, one line each.
    pub left: Vec<String>,
}

/// The state of a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeView {
    /// The version of the node's binary.
    pub version: String,
    /// The process id of the kernel process.
    pub pid: u32,
    /// The addresses on which the node listens for switches.
    pub listen: Vec<String>,
    /// The number of worker threads.
    pub workers: usize,
    /// How long the kernel process has been running, in milliseconds.
    pub uptime_ms: u64,
    /// How often the kernel process was restarted.
    pub kernel_restarts: u64,
    /// How the kernel process ended last, if it did.
    pub kernel_last_end: Option<String>,
    /// The number of switches that are up.
    pub switches: usize,
    /// The number of connections, including those that are still in the handshake.
    pub connections: usize,
    /// Why and since when the node is in safe mode. `None`: it is not.
    pub safe_mode: Option<Ending>,
}

/// A switch that is up, with its counts since then.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SwitchView {
    /// Its datapath id.
    pub datapath: DatapathId,
    /// The OpenFlow version of the session.
    pub version: String,
    /// The address that it connected from.
    pub peer: String,
    /// Whether it uses TLS.
    pub tls: bool,
    /// How long it has been up, in milliseconds.
    pub up_ms: u64,
    /// The number of its flow tables.
    pub n_tables: u8,
    /// How many packets it can buffer.
    pub n_buffers: u32,
    /// Its manufacturer and model, if it reported them.
    pub description: Option<String>,
    /// Its ports.
    pub ports: Vec<PortView>,
    /// Packet-ins that it sent.
    pub packet_ins: u64,
    /// Flow mods sent to it.
    pub flow_mods: u64,
    /// Packet-outs sent to it.
    pub packet_outs: u64,
    /// OpenFlow errors that it sent.
    pub errors: u64,
    /// Why the counts are missing, if they are. They are 0 in that case.
    pub trouble: Option<String>,
    /// Packet-ins of control packets (LLDP, ARP, DHCP …) that exceeded its punt budget.
    pub control_dropped: u64,
    /// Packet-ins of other packets that exceeded its punt budget.
    pub data_dropped: u64,
    /// Packet-ins that an app did not receive, because it did not keep up.
    pub unheard: u64,
    /// Whether the switch itself limits its packet-ins for table misses. `None` if no meter is configured, or if that
    /// is not known.
    pub meter: Option<MeterView>,
    /// Whether the node knows the owners of the rules that the switch had when it connected. `None` if the counts are
    /// missing.
    pub rules_before: Option<RulesBeforeView>,
    /// The profile that applies to it, and the commands that wait because of it. `None` if no profile applies.
    pub pace: Option<PaceView>,
}

/// A profile that applies to a switch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PaceView {
    /// Its name.
    pub profile: String,
    /// Commands that the switch has not got yet.
    pub waiting: usize,
    /// In how many milliseconds it will have got all of them.
    pub wait_ms: u64,
}

/// What a switch has reported about the rules that it had when it connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum RulesBeforeView {
    /// It has not answered yet.
    Waiting,
    /// It has answered.
    Known {
        /// Rules that belong to an app, among those that were examined.
        of_apps: u32,
    },
    /// It did not answer, or only in part.
    Unanswered {
        /// Rules that belong to an app, among those that it reported.
        of_apps: u32,
    },
}

/// The punt meter of a switch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum MeterView {
    /// The switch has not confirmed the meter yet, or no app wants packet-ins.
    Pending,
    /// The table-miss rule uses the meter.
    On {
        /// The meter's number.
        meter_id: u32,
        /// Its rate, in packets per second.
        per_s: u32,
        /// Packets that it has dropped since it was created, as last reported. The node asks the switch every ten
        /// seconds.
        dropped: u64,
    },
    /// There is no meter.
    Without {
        /// Why there is none.
        reason: String,
    },
}

/// A port of a switch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortView {
    /// Its port number.
    pub port_no: flow::PortNo,
    /// Its name.
    pub name: String,
    /// Its Ethernet address.
    pub hw_addr: flow::MacAddr,
    /// Whether it can forward packets.
    pub live: bool,
}

/// The flow entries of one switch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FlowsView {
    /// The switch's datapath id.
    pub datapath: DatapathId,
    /// Its flow entries. Empty if the node could not get them.
    pub flows: Vec<FlowView>,
    /// Why entries are missing, if any are.
    pub trouble: Option<String>,
}

/// A flow entry, as the switch reports it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FlowView {
    /// Its table.
    pub table: u8,
    /// Its priority.
    pub priority: u16,
    /// Its owner: an app, `kernel`, or that this node knows none.
    pub owner: String,
    /// Its cookie, in hexadecimal.
    pub cookie: String,
    /// How long it has existed, in seconds.
    pub duration_s: f64,
    /// Its idle timeout, in seconds.
    pub idle_timeout_s: u16,
    /// Its hard timeout, in seconds.
    pub hard_timeout_s: u16,
    /// Packets that it matched.
    pub packets: u64,
    /// Bytes that it matched.
    pub bytes: u64,
    /// Its match, in the syntax of ovs-ofctl.
    #[serde(rename = "match")]
    pub matching: String,
    /// Its actions or instructions, in the syntax of ovs-ofctl.
    pub actions: String,
}

/// An app: its state in the monitor, and its counts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AppView {
    /// Its state in the monitor.
    pub status: AppStatus,
    /// Its package, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub package: Option<PackageView>,
    /// Events for this app since its zone was attached.
    pub events: u64,
    /// Packet-ins that were dropped because the app did not read in time.
    pub dropped: u64,
    /// Commands that it sent.
    pub commands: u64,
    /// Refused commands since the kernel process started. A restart of the app does not reset the count.
    pub refusals: u64,
    /// The refusals by kind, since the kernel process started.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shortfalls: Vec<ShortfallView>,
    /// Why counts are missing from these sums, if any are.
    pub trouble: Option<String>,
    /// The resources that are above their soft limit.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub over: Vec<Excess>,
    /// Its resource use in the last sample since it started. `None` before the first sample.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used: Option<Sample>,
}

/// A kind of refusal that an app got.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShortfallView {
    /// The missing capability or the exceeded quota. `None` if it is neither.
    pub capability: Option<String>,
    /// How often it was refused.
    pub count: u64,
    /// The first of these refusals, in words.
    pub first: String,
    /// What to write into the configuration so that the command passes, if that is possible.
    pub remedy: Option<String>,
}

impl ShortfallView {
    /// The end of a refusal's message: what to write to allow the command. Empty if nothing would help.
    pub fn in_words(&self) -> String {
        self.remedy.as_ref().map_or(String::new(), |remedy| format!("; to allow it: {remedy}"))
    }
}

/// The resource use of the node and its apps.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UsageView {
    /// The time between two samples, in milliseconds.
    pub interval_ms: u64,
    /// The apps, in the operator's order.
    pub apps: Vec<AppUsageView>,
    /// The samples of the kernel process, oldest first.
    pub kernel: Vec<Sample>,
    /// The samples of the monitor, oldest first.
    pub monitor: Vec<Sample>,
}

/// The resource use of an app.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AppUsageView {
    /// Its state in the monitor.
    pub status: AppStatus,
    /// Its limits. A trusted app has limits of processor time and of the store only.
    pub limits: Vec<LimitView>,
    /// The resources that are above their soft limit.
    pub over: Vec<Excess>,
    /// Its samples, oldest first, including those of earlier processes of the app.
    pub samples: Vec<Sample>,
}

/// The limits of one resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LimitView {
    /// The resource.
    pub resource: Resource,
    /// The soft limit. Above it, the app and the operator are notified.
    pub soft: u64,
    /// The hard limit. Above it, an operation fails or the app is ended.
    pub hard: u64,
}

/// The package of an app.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PackageView {
    /// Its version.
    pub version: String,
    /// Its digest.
    pub digest: String,
    /// Whose signatures were valid when the node started.
    pub signed: String,
    /// Why the app does not run trusted, although that was configured.
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
