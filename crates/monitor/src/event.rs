//! What the supervisor hears, and what it answers.
//!
//! In: what happened to a child, and what the operator wants. Out: what is to be done, in order. Nothing here decides or acts.

use zone::NotEnforced;

use crate::app::{AppSpec, Verb};
use crate::incident::Incident;
use crate::process_end::ProcessEnd;
use crate::protocol::ToKernel;
use crate::verification::{Subject, Validity};

/// One life of one child.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ChildId {
    /// The kernel process.
    Kernel {
        /// Counts its starts.
        generation: u64,
    },
    /// The process of an app.
    Zone {
        /// The zone's id.
        zone: u16,
        /// Counts the app's starts.
        generation: u64,
    },
}

/// How a process is ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopSignal {
    /// Asked: SIGTERM.
    Term,
    /// Killed: SIGKILL, to its process group.
    Kill,
}

/// How loud a line of the log is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    /// The course of things.
    Info,
    /// Something failed and is being put right.
    Warn,
    /// Something stays broken or changed until the operator acts.
    Error,
}

/// What the supervisor hears.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// The node begins; said once and first.
    Begin,
    /// A child has been started.
    Started {
        /// Which.
        who: ChildId,
        /// Its process id.
        pid: u32,
    },
    /// A child could not be started.
    StartFailed {
        /// Which.
        who: ChildId,
        /// What the system said.
        reason: String,
    },
    /// A child ended and has been reaped.
    Exited {
        /// Which.
        who: ChildId,
        /// How.
        end: ProcessEnd,
        /// The last line of its output.
        last_line: Option<String>,
    },
    /// The launcher of a zone says what it cannot enforce.
    NotEnforced {
        /// Which.
        who: ChildId,
        /// What, and why.
        gap: NotEnforced,
    },
    /// The kernel listens.
    KernelReady,
    /// The kernel's workers move.
    KernelAlive,
    /// The kernel is about to exit and says why.
    KernelFatal {
        /// The code it will exit with.
        exit_code: u8,
        /// The sentence for the operator.
        message: String,
    },
    /// The kernel process does not keep to the protocol, or does not read what it is told.
    KernelFault {
        /// What it did.
        reason: String,
    },
    /// The kernel says that a zone broke the rules of its port.
    ZoneFault {
        /// The app's name.
        app: String,
        /// The generation it was attached with.
        generation: u64,
        /// What it did.
        reason: String,
    },
    /// The kernel says that a trusted app failed.
    TrustedFault {
        /// The app's name.
        app: String,
        /// What it did.
        reason: String,
    },
    /// The operator asks something for an app.
    Operator {
        /// The app's name.
        app: String,
        /// What is asked.
        verb: Verb,
        /// Why, in the operator's words.
        why: Option<String>,
    },
    /// The operator wants this app to run, which was installed while the node runs; or the app of that name to run as this.
    AppAdded {
        /// What to run.
        spec: Box<AppSpec>,
    },
    /// The configuration was read anew: run these apps as this says, and those no more.
    Reloaded {
        /// Apps as they are to be.
        apps: Vec<AppSpec>,
        /// The names of apps that are none any more.
        removed: Vec<String>,
    },
    /// Something is said of an app's package, before a start or while it runs.
    Verified {
        /// The zone's id.
        zone: u16,
        /// As in [`Command::Verify`]: a word on an earlier start says nothing.
        check: u64,
        /// What.
        validity: Validity,
    },
    /// What [`Command::LookUp`] asked for cannot be run.
    NotFound {
        /// The app's name.
        app: String,
        /// Why not.
        reason: String,
    },
    /// The operator wants the node to leave safe mode.
    LeaveSafeMode,
    /// The kernel process is over, and was calling these trusted zones when it ended. Said before its end is.
    KernelCalled {
        /// Their ids, as the kernel process wrote them down; it may have written anything.
        zones: Vec<u16>,
    },
    /// Time has passed.
    Tick,
    /// The operator or the system wants the node to end; a second one wants it now.
    ShutdownAsked,
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq)]
pub enum Command {
    /// Start the kernel process and send it its configuration.
    StartKernel {
        /// Counts its starts.
        generation: u64,
    },
    /// Start the app's process with fresh ports, send it its `Welcome` and the kernel its `AttachZone`.
    StartZone {
        /// The zone's id.
        zone: u16,
        /// Counts the app's starts.
        generation: u64,
    },
    /// Verify the package of the app. [`Event::Verified`] has the result.
    Verify(Subject),
    /// Look the app up anew, as it is installed now; [`Event::AppAdded`] or [`Event::NotFound`] answers.
    LookUp {
        /// The app's name.
        app: String,
    },
    /// End this process.
    End {
        /// Which.
        who: ChildId,
        /// How.
        how: StopSignal,
    },
    /// Send this to the kernel process.
    TellKernel(ToKernel),
    /// The apps' statuses changed: send them to the kernel process.
    PublishApps,
    /// Keep this, with what else is known of it. Its times are the events'.
    Incident(Box<Incident>),
    /// Write this to the log.
    Log {
        /// How loud.
        severity: Severity,
        /// What.
        line: String,
    },
    /// End the monitor. The last command of all.
    Exit {
        /// The exit code.
        code: u8,
        /// The sentence for the operator if the node did not end as asked.
        message: Option<String>,
    },
}
