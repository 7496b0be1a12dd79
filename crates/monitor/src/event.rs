//! The events of the supervisor, and its reactions.
//!
//! In: what happened to a child, and requests of the operator. Out: the reactions to execute, in order. Nothing here decides
//! or acts.

use zone::NotEnforced;

use crate::app::{AppSpec, Verb};
use crate::incident::Incident;
use crate::process_end::ProcessEnd;
use crate::protocol::{FaultCause, ReplyDelay, ToKernel};
use crate::verification::{AppCheck, Validity};

/// One run of one child process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ChildId {
    /// The kernel process.
    Kernel {
        /// The number of its start.
        generation: u64,
    },
    /// The process of an app.
    Zone {
        /// The zone's id.
        zone: u16,
        /// The number of the app's start.
        generation: u64,
    },
}

/// The signal that ends a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopSignal {
    /// SIGTERM: it may finish its work.
    Term,
    /// SIGKILL, to its process group.
    Kill,
}

/// The severity of a log line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    /// A normal event.
    Info,
    /// A failure that the node repairs.
    Warn,
    /// A failure that stays until the operator acts.
    Error,
}

/// An event for the supervisor.
#[derive(Debug, Clone, PartialEq)]
pub enum SupervisorEvent {
    /// The node starts. The first event, once.
    Begin,
    /// A child has been started.
    Started {
        /// The child.
        who: ChildId,
        /// Its process id.
        pid: u32,
    },
    /// A child could not be started.
    StartFailed {
        /// The child.
        who: ChildId,
        /// The error of the system.
        reason: String,
    },
    /// A child ended and has been reaped.
    Exited {
        /// The child.
        who: ChildId,
        /// The signal or exit status.
        end: ProcessEnd,
        /// The last line of its output.
        last_line: Option<String>,
    },
    /// The launcher of a zone reports what it cannot enforce.
    NotEnforced {
        /// The child.
        who: ChildId,
        /// The missing part, and the reason.
        gap: NotEnforced,
    },
    /// The kernel process listens for switches.
    KernelReady,
    /// A heartbeat: all workers of the kernel process make progress.
    KernelAlive,
    /// The kernel process will exit, and reports the reason.
    KernelFatal {
        /// Its exit code.
        exit_code: u8,
        /// The sentence for the operator.
        message: String,
    },
    /// The kernel process violates the protocol, or does not read its messages.
    KernelFault {
        /// A description of the fault.
        reason: String,
    },
    /// The kernel process reports a fault of a zone, or the zone uses more than a hard limit.
    ZoneFault {
        /// The app's name.
        app: String,
        /// The generation of the zone's attachment.
        generation: u64,
        /// The kind of fault.
        cause: FaultCause,
        /// A description of the fault.
        reason: String,
    },
    /// The kernel process reports the failure of a trusted app.
    TrustedFault {
        /// The app's name.
        app: String,
        /// A description of the fault.
        reason: String,
    },
    /// A request of the operator for an app.
    Operator {
        /// The app's name.
        app: String,
        /// The request.
        verb: Verb,
        /// The operator's reason.
        why: Option<String>,
    },
    /// The operator adds this app, or replaces the app of this name.
    AppAdded {
        /// What to run.
        spec: Box<AppSpec>,
    },
    /// The configuration was reloaded: run these apps with these settings, and stop the removed ones.
    Reloaded {
        /// The apps with their new settings.
        apps: Vec<AppSpec>,
        /// The names of removed apps.
        removed: Vec<String>,
    },
    /// A service has started, or tried again, without some of its addresses, or with all.
    Listens {
        /// The child. A report about an earlier start is ignored.
        who: ChildId,
        /// Whether it has got a socket that its process does not have.
        is_new: bool,
        /// Why an address is missing, as a sentence for the operator.
        missing: Option<String>,
    },
    /// What the operator should know about an app now. It changes nothing.
    Noted {
        /// The app's name.
        app: String,
        /// A phrase, or `None`: nothing any more.
        note: Option<String>,
        /// How important it is, if it is new.
        severity: Severity,
    },
    /// The verification result of an app's package, before a start or while it runs.
    Verified {
        /// The zone's id.
        zone: u16,
        /// As in [`Reaction::Verify`]: a result for an earlier start is ignored.
        check: u64,
        /// The result.
        validity: Validity,
    },
    /// The app of a [`Reaction::LookUp`] cannot be run.
    NotFound {
        /// The app's name.
        app: String,
        /// The reason.
        reason: String,
    },
    /// The operator ends safe mode.
    LeaveSafeMode,
    /// A switch answers otherwise than its profile says.
    SwitchLeftProfile {
        /// How, with its datapath id, as a phrase.
        reason: String,
        /// Its delays beside those of the profile.
        delays: Vec<ReplyDelay>,
    },
    /// The kernel process ended while it was calling these trusted zones. This event comes before its end.
    KernelCalled {
        /// Their ids, as the kernel process wrote them. They can be invalid.
        zones: Vec<u16>,
    },
    /// Time has passed.
    Tick,
    /// The operator or the system stops the node. A second event stops it immediately.
    ShutdownAsked,
}

/// What the supervisor decides, for `run` to execute.
#[derive(Debug, Clone, PartialEq)]
pub enum Reaction {
    /// Start the kernel process and send it its configuration.
    StartKernel {
        /// The number of its start.
        generation: u64,
    },
    /// Start the app's process with fresh ports, send it its `Welcome` and the kernel its `AttachZone`.
    StartZone {
        /// The zone's id.
        zone: u16,
        /// The number of the app's start.
        generation: u64,
    },
    /// Verify the package of the app. [`SupervisorEvent::Verified`] has the result.
    Verify(AppCheck),
    /// Look up the present installation of the app; [`SupervisorEvent::AppAdded`] or [`SupervisorEvent::NotFound`] answers.
    LookUp {
        /// The app's name.
        app: String,
    },
    /// Try to open the addresses of this service that are missing. [`SupervisorEvent::Listens`] has the result.
    Listen {
        /// The zone's id.
        zone: u16,
        /// The number of the app's start.
        generation: u64,
    },
    /// End this process.
    End {
        /// The child.
        who: ChildId,
        /// The signal or exit status.
        how: StopSignal,
    },
    /// Send this to the kernel process.
    TellKernel(ToKernel),
    /// The apps' statuses changed: send them to the kernel process.
    PublishApps,
    /// Store this incident, with further evidence.
    Incident(Box<Incident>),
    /// Write this to the log.
    Log {
        /// The severity.
        severity: Severity,
        /// The result.
        line: String,
    },
    /// End the monitor. The last command of all.
    Exit {
        /// The exit code.
        code: u8,
        /// The error for the operator, unless the node was stopped normally.
        message: Option<String>,
    },
}

impl From<Incident> for Reaction {
    fn from(incident: Incident) -> Reaction {
        Reaction::Incident(Box::new(incident))
    }
}
