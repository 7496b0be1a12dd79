//! The messages of the monitor to the kernel process and to process zones, and the messages of the kernel process to
//! the monitor.
//!
//! ```text
//!            ToKernel (+ port fds)                ToZone (+ port fds)
//!  kernel ◀────────────────────────── monitor ──────────────────────▶ zone
//!         ──────────────────────────▶
//!            FromKernel
//! ```
//!
//! Each message is one JSON object in one SEQPACKET datagram (`channel`). Unknown fields and messages are refused
//! between monitor and kernel: both are the same binary, so a difference is a fault and not an older version. An app is not always.
//!
//! After its `Welcome`, a service with a [`Duty`](crate::Duty) exchanges messages of its contract with the monitor. This crate does not read
//! them. An app sends nothing: the monitor reads only its output.

use std::num::NonZeroU32;
use std::os::fd::OwnedFd;

use audit_contract::Record;
use ring::PortFds;
use serde::de::{Deserializer, Error as _};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use zone::{Excess, Limits};

use crate::app::{AppSource, AppStatus, Ending, KernelStatus, Verb};
use crate::owners::Owned;
use crate::slices::SlicesChange;
use crate::usage::{NodeUsage, ZoneCounts, ZoneUsage};

/// Descriptors of one end of a port: the rings' memory and a wake-up each way.
pub const PORT_FDS: usize = 3;

/// Most workers, so most ports of one zone: 96 descriptors, within the 253 that Linux passes in one message.
pub const WORKERS_MAX: u16 = 32;

/// From the monitor to the kernel process.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum ToKernel {
    /// Always the first message, once: the node's configuration, whose form is the caller's. The descriptor with it is a
    /// [`ring::Board`], on which each worker notes which trusted app it calls.
    Configure {
        /// The value of `Plan::config`.
        config: Value,
        /// How many [`ToKernel::Owned`] follow, before anything else.
        owners_follow: u32,
    },
    /// The owners of groups and meters on switches.
    Owned {
        /// At most [`IN_A_MESSAGE_MAX`](crate::owners::IN_A_MESSAGE_MAX).
        owners: Vec<Owned>,
    },
    /// A process zone has been started; the message carries its ports, one for each worker, in the workers' order.
    AttachZone {
        /// The zone's id; never 0.
        zone: u16,
        /// The app's name.
        app: String,
        /// To be repeated in [`FromKernel::ZoneFault`].
        generation: u64,
        /// The number of ports; each has [`PORT_FDS`] descriptors.
        ports: u16,
        /// The value of `AppSpec::grant`.
        grant: Value,
    },
    /// The process zone has ended or will end soon: close its ports, and ignore further messages from it.
    DetachZone {
        /// The zone's id.
        zone: u16,
        /// The app's name.
        app: String,
        /// The generation that was attached.
        generation: u64,
        /// Why, for the log.
        reason: String,
    },
    /// Run this app inside the kernel process, one instance for each worker.
    LoadTrusted {
        /// The zone's id.
        zone: u16,
        /// The app's name.
        app: String,
        /// Where its code is.
        source: AppSource,
        /// The app's own settings.
        settings: Map<String, Value>,
        /// The value of `AppSpec::grant`.
        grant: Value,
    },
    /// Stop running this trusted app. It may have stopped already (after a [`FromKernel::TrustedFault`]).
    UnloadTrusted {
        /// The zone's id.
        zone: u16,
        /// The app's name.
        app: String,
        /// Why, for the log.
        reason: String,
    },
    /// The app of this zone gets a new grant, and continues to run.
    Regrant {
        /// The zone's id.
        zone: u16,
        /// The app's name.
        app: String,
        /// The number of the app's start; 0 for an app inside the kernel process.
        generation: u64,
        /// The new value of `AppSpec::grant`.
        grant: Value,
    },
    /// The new configuration. Settings that cannot change while the node runs have their old values.
    Reconfigure {
        /// As in [`ToKernel::Configure`].
        config: Value,
    },
    /// The result of a [`FromKernel::Reload`].
    Reloaded {
        /// Its ticket.
        ticket: u64,
        /// Why nothing was changed, if nothing was.
        refused: Option<String>,
        /// The changes, one line each.
        done: Vec<String>,
        /// The settings that change only after a restart of the node, one line each.
        left: Vec<String>,
    },
    /// The result of a [`FromKernel::SaveStore`].
    StoreSaved {
        /// Its ticket.
        ticket: u64,
        /// Why there is no copy, if there is none.
        trouble: Option<String>,
    },
    /// An app was added that the configuration does not have, or has otherwise.
    AppAdded {
        /// The app's name.
        app: String,
        /// Its limits.
        #[serde(with = "zone::limits::handed_on")]
        limits: Limits,
        /// Further data about it for the kernel process; the caller defines the format.
        about: Value,
    },
    /// How all apps are; sent whole at every change, so that the newest is enough.
    Apps {
        /// One for each app, in the operator's order.
        apps: Vec<AppStatus>,
        /// How the kernel process itself fares.
        kernel: KernelStatus,
        /// Why and since when the node is in safe mode, if it is.
        safe_mode: Option<Ending>,
    },
    /// The usage of zones and of the node. The monitor sends it with each sample, and skips it if the kernel process
    /// has not read the previous one.
    Resources {
        /// One for each zone that has run.
        zones: Vec<ZoneUsage>,
        /// The node's own processes.
        node: NodeUsage,
    },
    /// Tell the app of this zone that it uses more of something than the soft limit, or does not any more.
    SoftLimit {
        /// The zone's id.
        zone: u16,
        /// The number of the app's start.
        generation: u64,
        /// The usage; it is within the soft limit if the app no longer exceeds it.
        excess: Excess,
    },
    /// Close the switch sessions in order and exit with code 0.
    Shutdown,
}

/// Why a process zone has to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FaultCause {
    /// The app does not read its events.
    StoppedReading,
    /// The app wrote what no port can contain.
    BrokePort,
    /// The app sent bytes that are no command.
    SentGarbage,
    /// A service sent the monitor what its contract does not have.
    WrongMessage,
    /// It uses more than a hard limit.
    PassedLimit,
    /// The kernel process could not take its port or its grant. It is no fault of the app.
    NotAttached,
}

/// From the kernel process to the monitor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum FromKernel {
    /// It listens and its workers run; apps may come. Said once.
    Ready,
    /// Every worker has made progress since the last such message. The kernel process sends it every
    /// [`ALIVE_INTERVAL_MS`] after `Ready`, but not while a worker makes no progress. If it cannot be sent now, it is
    /// dropped.
    Alive,
    /// A process zone broke the rules of its port: it wrote garbage, stopped reading, or hangs.
    ZoneFault {
        /// The app's name.
        app: String,
        /// The generation from [`ToKernel::AttachZone`].
        generation: u64,
        /// What kind of violation it is.
        cause: FaultCause,
        /// The violation.
        reason: String,
    },
    /// A trusted app panicked and was caught, or could not be loaded.
    TrustedFault {
        /// The app's name.
        app: String,
        /// The reason.
        reason: String,
    },
    /// A request of the operator for an app.
    Operator {
        /// The app's name.
        app: String,
        /// The request.
        verb: Verb,
        /// The operator's reason.
        #[serde(default)]
        why: Option<String>,
    },
    /// The counters of each zone, about once for each measurement.
    Counts {
        /// One for each attached zone.
        zones: Vec<ZoneCounts>,
    },
    /// The operator adds an app. The monitor looks it up.
    AddApp {
        /// The app's name.
        app: String,
    },
    /// The operator reloads the configuration. [`ToKernel::Reloaded`] is the answer.
    Reload {
        /// The ticket, which the answer repeats.
        ticket: u64,
        /// If set, only this app.
        app: Option<String>,
        /// If set, the node gets these slices.
        #[serde(default)]
        slices: Option<SlicesChange>,
    },
    /// The operator wants a copy of the store. [`ToKernel::StoreSaved`] is the answer.
    SaveStore {
        /// The ticket, which the answer repeats.
        ticket: u64,
    },
    /// The operator ends safe mode.
    LeaveSafeMode,
    /// Audit records of the kernel process.
    Audit {
        /// At most [`AUDIT_RECORDS_MAX`].
        records: Vec<Record>,
    },
    /// An app wrote a line into the node's log, which has it already; it is the app's own log that is to have it too.
    Line {
        /// The app's name.
        app: String,
        /// The number of the app's start; 0 if it runs trusted.
        generation: u64,
        /// The line, fit to be written.
        line: String,
    },
    /// A switch answers otherwise than its profile says.
    SwitchLeftProfile {
        /// Its datapath id.
        switch: String,
        /// How, as a phrase.
        reason: String,
        /// Its delays beside those of the profile: at most [`REPLY_DELAYS_MAX`].
        delays: Vec<ReplyDelay>,
    },
    /// Changed owners of groups and meters.
    Owned {
        /// At most [`IN_A_MESSAGE_MAX`](crate::owners::IN_A_MESSAGE_MAX).
        changes: Vec<Owned>,
    },
    /// The kernel process cannot continue and will exit. Examples are a port in use, or a missing certificate.
    Fatal {
        /// The exit code; 2 for an operator's mistake.
        exit_code: u8,
        /// One sentence that names the cause and what to do.
        message: String,
    },
}

/// How long a switch takes to answer a barrier behind one flow mod, at one quantile, in microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReplyDelay {
    /// The quantile, in hundredths.
    pub percent: u8,
    /// The soonest by the profile.
    pub earliest_us: u32,
    /// The latest by the profile.
    pub latest_us: u32,
    /// What the node observed.
    pub observed_us: u32,
}

/// The maximum number of delays in one [`FromKernel::SwitchLeftProfile`].
pub const REPLY_DELAYS_MAX: usize = 16;

/// The maximum number of records in one [`FromKernel::Audit`].
pub const AUDIT_RECORDS_MAX: usize = 64;

/// The interval of [`FromKernel::Alive`].
pub const ALIVE_INTERVAL_MS: u64 = 100;

/// From the monitor to a process zone. A service with a duty also gets messages of its contract. The app may have another version of the SDK than the node: it ignores unknown
/// messages.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[allow(clippy::large_enum_variant, reason = "few exist at a time: one for each start of a zone")]
pub enum ToZone {
    /// The first message. It carries the zone's ends of its ports, in the order of the workers.
    Welcome {
        /// The zone's id.
        zone: u16,
        /// The app's name on this node.
        app: String,
        /// The generation of the zone.
        generation: u64,
        /// The limits of the zone, so that the app can adapt to them.
        #[serde(deserialize_with = "known_limits")]
        limits: Limits,
        /// The app's own settings.
        settings: Map<String, Value>,
        /// The number of ports; each has [`PORT_FDS`] descriptors.
        ports: u16,
        /// The addresses on which the zone accepts connections. A listening socket for each comes after the ports.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        listeners: Vec<String>,
        /// Whether the zone is a service that writes its table into shared memory. The descriptor of a new region comes last.
        #[serde(default, skip_serializing_if = "is_false")]
        writes_region: bool,
    },
    /// The table of a service in shared memory, for an app that may read it. More than one can come in the life of the app: each
    /// run of the service has a new region.
    Region {
        /// The service's name.
        service: String,
        /// Whether the service writes it now. Then the message carries the descriptor of the region, which can only be read.
        /// Otherwise the service has ended, and its last region stays as it is.
        is_written: bool,
    },
}

fn is_false(value: &bool) -> bool {
    !*value
}

/// Without those that a newer node has. In `burnet.toml` they are refused, and this is none.
fn known_limits<'de, D: Deserializer<'de>>(input: D) -> Result<Limits, D::Error> {
    let every = Limits { cpu_percent: NonZeroU32::new(1), cores: "0".parse().ok(), ..Limits::default() };
    let known = serde_json::to_value(every).map_err(D::Error::custom)?;
    let mut said = Map::deserialize(input)?;
    said.retain(|name, _| known.get(name).is_some());
    serde_json::from_value(Value::Object(said)).map_err(D::Error::custom)
}

/// The descriptors that came with a message, as ports.
///
/// # Errors
/// A sentence if their number is not what the message announced.
pub fn split_ports(fds: Vec<OwnedFd>, ports: u16) -> Result<Vec<PortFds>, String> {
    let came = fds.len();
    if ports > WORKERS_MAX || came != usize::from(ports) * PORT_FDS {
        return Err(format!("{came} descriptors came for {ports} ports of {PORT_FDS}"));
    }
    let mut fds = fds.into_iter();
    let port = || Some(PortFds::from_array([fds.next()?, fds.next()?, fds.next()?]));
    Ok(std::iter::from_fn(port).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check<M: serde::de::DeserializeOwned + std::fmt::Debug>(json: &str, expected: &str) {
        let got = match serde_json::from_str::<M>(json) {
            Ok(message) => format!("{message:?}"),
            Err(error) => error.to_string(),
        };
        assert!(got.starts_with(expected), "{got}");
    }

    #[test]
    fn a_message_with_something_unknown_in_it_is_refused_by_name() {
        check::<FromKernel>(r#"{"operator":{"app":"hub","verb":"explode"}}"#, "unknown variant `explode`");
        check::<FromKernel>(r#"{"operator":{"app":"hub","verb":"stop","when":1}}"#, "unknown field `when`");
        check::<FromKernel>(r#"{"fatal":{"exit_code":256,"message":""}}"#, "invalid value: integer `256`");
        check::<FromKernel>(r#""party""#, "unknown variant `party`");
        check::<ToZone>(r#"{"welcome":{"zone":1}}"#, "missing field");
        check::<ToKernel>(r#"{"detach_zone":{"zone":65536}}"#, "invalid value: integer `65536`");
    }

    #[test]
    fn an_app_passes_over_what_a_newer_node_says() {
        let limits =
            Limits { cpu_percent: NonZeroU32::new(50), cores: "0".parse().ok(), ..Limits::default() };
        let (app, settings) = ("hub".to_owned(), Map::new());
        let said = ToZone::Welcome {
            zone: 1,
            app,
            generation: 2,
            limits,
            settings,
            ports: 3,
            listeners: Vec::new(),
            writes_region: false,
        };
        let mut newer = serde_json::to_value(&said).unwrap();
        newer["welcome"]["weather"] = "fine".into();
        newer["welcome"]["limits"]["weather"] = "fine".into();
        assert_eq!(serde_json::from_value::<ToZone>(newer).unwrap(), said);
    }

    #[test]
    fn a_message_reads_as_it_was_said() {
        check::<FromKernel>(r#""alive""#, "Alive");
        check::<FromKernel>(
            r#"{"operator":{"app":"hub","verb":"stop"}}"#,
            "Operator { app: \"hub\", verb: Stop, why: None }",
        );
        let said = ToKernel::Configure {
            config: serde_json::json!({"listen": ["127.0.0.1:6653"]}),
            owners_follow: 0,
        };
        let heard: ToKernel = serde_json::from_slice(&serde_json::to_vec(&said).unwrap()).unwrap();
        assert_eq!(heard, said);
    }

    #[test]
    fn descriptors_that_do_not_fit_their_ports_are_refused() {
        let fds = |count: usize| -> Vec<OwnedFd> {
            (0..count).map(|_| std::fs::File::open("/dev/null").unwrap().into()).collect()
        };
        assert!(split_ports(fds(5), 2).is_err());
        assert!(split_ports(fds(7), 2).is_err());
        assert!(split_ports(fds(0), u16::MAX).is_err());
        assert_eq!(split_ports(fds(6), 2).unwrap().len(), 2);
        assert_eq!(split_ports(fds(0), 0).unwrap().len(), 0);
    }
}
