//! The service `audit`: writes the audit log, which records actions, their actors and the used capabilities.
//!
//! ```text
//!   monitor ──records──> [ this service ] ──lines──> FOLDER/audit-….jsonl <──lines── the operator's commands
//!           <──kept up to N──      │
//!                                  └─ each line holds the hash of the one before it
//!   northbound ──a question──> [ this service ] ──the newest records──> northbound
//! ```
//!
//! In: records, numbered by the node, and repeated until they are acknowledged; questions for records. Out: one line on disk for each
//! record, then the acknowledgement; records. After a crash, the service continues after the last record on disk. It does not decide what is
//! recorded, and reads no packet.
//!
//! The operator's commands use [`read`] and [`log::Log`] as well.

pub mod files;
pub mod line;
pub mod log;
pub mod read;
mod recent;

use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use audit_contract::{Batch, Grant, Kept, Question, status};
use burnet_sdk::{App, Commands, Form, Interests, Level, Query, Settings, Ticket, read_monitor};
use std::process::ExitCode;

use crate::log::{Bounds, Log};

/// The settings, which the node writes.
#[derive(Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AuditSettings {
    /// The folder of the log.
    pub folder: PathBuf,
    /// The name of this run of the node.
    pub run: String,
}

/// The service, with its open log.
#[derive(Debug)]
pub struct Audit {
    run: String,
    folder: PathBuf,
    log: Log,
    /// All records up to this number are on disk.
    kept: u64,
    /// A failure to store has been logged.
    complained: bool,
}

/// Runs the service until its zone ends. It is in this crate so that it is compiled with the options of the service.
pub fn run() -> ExitCode {
    burnet_sdk::run::<Audit>()
}

impl App for Audit {
    fn new(settings: &Settings) -> Result<Self, String> {
        let settings: AuditSettings = settings.read()?;
        let log = Log::at(settings.folder.clone(), Bounds::default());
        let kept = log.last_of(&settings.run).map_err(|error| error.to_string())?;
        Ok(Audit { run: settings.run, folder: settings.folder, log, kept, complained: false })
    }

    fn interests(&self) -> Interests {
        Interests::none()
    }

    fn serves_monitor(&self) -> bool {
        true
    }

    fn on_start(&mut self, out: &mut Commands) {
        out.tell_monitor(&Kept { up_to: self.kept });
    }

    fn on_monitor(&mut self, message: &[u8], out: &mut Commands) -> Result<(), String> {
        let Batch { first, records } = read_monitor(message)?;
        match self.log.append_told(&self.run, first, self.kept, records, now_ms()) {
            Ok(kept) => {
                self.kept = kept;
                self.complained = false;
                out.tell_monitor(&Kept { up_to: kept });
            }
            // The node repeats them.
            Err(error) if self.complained => drop(error),
            Err(error) => {
                self.complained = true;
                let line = format!(
                    "{error}: records wait in memory until the cause is fixed; if there are too many, the oldest are kept"
                );
                out.log(Level::Error, &line);
            }
        }
        Ok(())
    }

    fn on_query(&mut self, query: &Query, out: &mut Commands) {
        let answer = match query.form {
            Form::Query => self.answer(query.caller.grant, query.payload),
            Form::Stream => {
                Err((status::BAD_QUESTION, "this service has no stream: ask for the records".to_owned()))
            }
        };
        match answer {
            Ok(payload) => out.answer(Ticket(query.ticket), status::DONE, false, &payload),
            Err((status, why)) => out.answer(Ticket(query.ticket), status, false, why.as_bytes()),
        }
    }
}

impl Audit {
    fn answer(&self, grant: &[u8], payload: &[u8]) -> Result<Vec<u8>, (u16, String)> {
        let grant = Grant::from_bytes(grant).and_then(|grant| grant.check_read());
        grant.map_err(|why| (status::NOT_GRANTED, why))?;
        let question = Question::from_bytes(payload).map_err(|why| (status::BAD_QUESTION, why))?;
        let Question::List { filter, before, limit } = question;
        let page = recent::records(&self.folder, &filter, before, limit);
        page.map(|page| page.to_bytes())
            .map_err(|error| (status::NOT_READ, format!("the audit log cannot be read: {error}")))
    }
}

fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
