//! What the kernel process says, told apart by who is to hear it. Pure.
//!
//! In: its messages. Out: the same in the monitor's terms, its words made legible. It decides nothing by them.

use crate::app::{APP_NAME_BYTES_MAX, REASON_BYTES_MAX, legible};
use crate::audit::Record;
use crate::output::LINE_BYTES_MAX;
use crate::owners::Owned;
use crate::protocol::FromKernel;
use crate::resources::ZoneCounts;

use crate::supervisor::Event;
use crate::vouching::{Says, Word};

/// Longest sentence of a kernel that cannot run, in bytes.
const FATAL_BYTES_MAX: usize = 1_000;

/// What the kernel process said: to the supervisor, of what was counted, or for the records.
pub(crate) enum Heard {
    Event(Event),
    Counts(Vec<ZoneCounts>),
    /// The operator wants this app to be added.
    AddApp(String),
    /// The operator wants the configuration to be read anew.
    Reload {
        ticket: u64,
        app: Option<String>,
    },
    /// Whose groups and meters are from now on.
    Owned(Vec<Owned>),
    Records(Vec<Record>),
    /// A line of an app.
    Line {
        app: String,
        generation: u64,
        line: String,
    },
}

/// Its words are shown to the operator, so they are made legible here.
pub(crate) fn event(message: FromKernel) -> Heard {
    let phrase = |text: String| legible(&text, REASON_BYTES_MAX);
    Heard::Event(match message {
        FromKernel::Counts { zones } => return Heard::Counts(zones),
        FromKernel::AddApp { app } => return Heard::AddApp(legible(&app, APP_NAME_BYTES_MAX)),
        FromKernel::Reload { ticket, app } => {
            return Heard::Reload { ticket, app: app.map(|app| legible(&app, APP_NAME_BYTES_MAX)) };
        }
        FromKernel::Owned { changes } => return Heard::Owned(changes),
        FromKernel::Audit { records } => return Heard::Records(records),
        FromKernel::Line { app, generation, line } => {
            let app = legible(&app, APP_NAME_BYTES_MAX);
            return Heard::Line { app, generation, line: legible(&line, LINE_BYTES_MAX) };
        }
        FromKernel::Ready => Event::KernelReady,
        FromKernel::Alive => Event::KernelAlive,
        FromKernel::ZoneFault { app, generation, reason } => {
            Event::ZoneFault { app, generation, reason: phrase(reason) }
        }
        FromKernel::TrustedFault { app, reason } => Event::TrustedFault { app, reason: phrase(reason) },
        FromKernel::Operator { app, verb, why } => Event::Operator { app, verb, why: why.map(phrase) },
        FromKernel::LeaveSafeMode => Event::LeaveSafeMode,
        FromKernel::Fatal { exit_code, message } => {
            Event::KernelFatal { exit_code, message: legible(&message, FATAL_BYTES_MAX) }
        }
    })
}

/// The words of the service `security`, made legible.
pub(crate) fn legible_words(words: Vec<Word>) -> Vec<Word> {
    words.into_iter().map(|word| Word { says: said(word.says), ..word }).collect()
}

fn said(says: Says) -> Says {
    let phrase = |why: String| legible(&why, FATAL_BYTES_MAX);
    match says {
        Says::Good => Says::Good,
        Says::NotTrusted(why) => Says::NotTrusted(phrase(why)),
        Says::Refused(why) => Says::Refused(phrase(why)),
        Says::Unknown(why) => Says::Unknown(phrase(why)),
    }
}
