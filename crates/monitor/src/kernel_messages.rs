//! Sorts the messages of the kernel process by their receiver. Pure.
//!
//! In: a message. Out: the same in the monitor's types, with all text made printable. It decides nothing.

use crate::app::{APP_NAME_BYTES_MAX, REASON_BYTES_MAX, legible};
use crate::audit::Record;
use crate::output::LINE_BYTES_MAX;
use crate::owners::Owned;
use crate::protocol::{FromKernel, REPLY_DELAYS_MAX};
use crate::resources::ZoneCounts;
use monitor_channel::SlicesChange;

use crate::supervisor::SupervisorEvent;
use crate::verification::{PackageVerdict, Validity};

/// The maximum length of a fatal error of the kernel process, in bytes.
const FATAL_BYTES_MAX: usize = 1_000;

/// A message of the kernel process, by receiver.
pub(crate) enum KernelMessage {
    Event(SupervisorEvent),
    Counts(Vec<ZoneCounts>),
    /// The operator adds this app.
    AddApp(String),
    /// The operator reloads the configuration.
    Reload {
        ticket: u64,
        app: Option<String>,
        slices: Option<SlicesChange>,
    },
    /// The operator wants a copy of the store.
    SaveStore {
        ticket: u64,
    },
    /// Changed owners of groups and meters.
    Owned(Vec<Owned>),
    Records(Vec<Record>),
    /// A line that an app wrote to its log.
    Line {
        app: String,
        generation: u64,
        line: String,
    },
}

/// Converts a message. The operator sees its text, so control characters are replaced.
pub(crate) fn event(message: FromKernel) -> KernelMessage {
    let phrase = |text: String| legible(&text, REASON_BYTES_MAX);
    KernelMessage::Event(match message {
        FromKernel::Counts { zones } => return KernelMessage::Counts(zones),
        FromKernel::AddApp { app } => return KernelMessage::AddApp(legible(&app, APP_NAME_BYTES_MAX)),
        FromKernel::Reload { ticket, app, slices } => {
            let app = app.map(|app| legible(&app, APP_NAME_BYTES_MAX));
            return KernelMessage::Reload { ticket, app, slices };
        }
        FromKernel::SaveStore { ticket } => return KernelMessage::SaveStore { ticket },
        FromKernel::Owned { changes } => return KernelMessage::Owned(changes),
        FromKernel::Audit { records } => return KernelMessage::Records(records),
        FromKernel::Line { app, generation, line } => {
            let app = legible(&app, APP_NAME_BYTES_MAX);
            return KernelMessage::Line { app, generation, line: legible(&line, LINE_BYTES_MAX) };
        }
        FromKernel::Ready => SupervisorEvent::KernelReady,
        FromKernel::Alive => SupervisorEvent::KernelAlive,
        FromKernel::ZoneFault { app, generation, cause, reason } => {
            SupervisorEvent::ZoneFault { app, generation, cause, reason: phrase(reason) }
        }
        FromKernel::TrustedFault { app, reason } => {
            SupervisorEvent::TrustedFault { app, reason: phrase(reason) }
        }
        FromKernel::Operator { app, verb, why } => {
            SupervisorEvent::Operator { app, verb, why: why.map(phrase) }
        }
        FromKernel::LeaveSafeMode => SupervisorEvent::LeaveSafeMode,
        FromKernel::SwitchLeftProfile { switch, reason, mut delays } => {
            delays.truncate(REPLY_DELAYS_MAX);
            SupervisorEvent::SwitchLeftProfile { reason: phrase(format!("{switch}: {reason}")), delays }
        }
        FromKernel::Fatal { exit_code, message } => {
            SupervisorEvent::KernelFatal { exit_code, message: legible(&message, FATAL_BYTES_MAX) }
        }
    })
}

/// The verdicts of a service, with printable text.
pub(crate) fn legible_verdicts(verdicts: Vec<PackageVerdict>) -> Vec<PackageVerdict> {
    verdicts
        .into_iter()
        .map(|verdict| PackageVerdict { validity: said(verdict.validity), ..verdict })
        .collect()
}

fn said(validity: Validity) -> Validity {
    let phrase = |why: String| legible(&why, FATAL_BYTES_MAX);
    match validity {
        Validity::Good => Validity::Good,
        Validity::NotTrusted(why) => Validity::NotTrusted(phrase(why)),
        Validity::Refused(why) => Validity::Refused(phrase(why)),
        Validity::Unknown(why) => Validity::Unknown(phrase(why)),
    }
}
