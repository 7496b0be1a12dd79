//! The service that keeps who did what with which capability.
//!
//! ```text
//!   monitor ──records──> [ this service ] ──lines──> FOLDER/audit-….jsonl <──lines── the operator's commands
//!           <──kept up to N──      │
//!                                  └─ each line holds the hash of the one before it
//! ```
//!
//! In: records, numbered by the node, told again until they are acknowledged. Out: lines on disk, each once; then the
//! acknowledgement. A service that was killed asks for what follows the last record that it finds on disk. It decides nothing about what is
//! recorded, and reads no packet.
//!
//! The reading half ([`read`]) and [`log::Log`] serve the operator's commands too.

pub mod files;
pub mod line;
pub mod log;
pub mod read;
pub mod record;

use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use burnet_sdk::{App, Commands, FromService, Interests, Level, Settings, ToService, read_monitor};
use std::process::ExitCode;

use crate::log::{Bounds, Log};
use crate::record::Record;

/// Its settings, as the node makes them.
#[derive(Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AuditSettings {
    /// Where the log is.
    pub folder: PathBuf,
    /// What names this life of the node.
    pub run: String,
}

/// The service.
#[derive(Debug)]
pub struct Audit {
    run: String,
    log: Log,
    /// All up to this number is on disk.
    kept: u64,
    /// The operator was told that something cannot be kept.
    complained: bool,
}

/// Serves a zone until that ends. It is here and not in the node so that its code is built as the service's is.
pub fn run() -> ExitCode {
    burnet_sdk::run::<Audit>()
}

impl App for Audit {
    fn new(settings: &Settings) -> Result<Self, String> {
        let settings: AuditSettings = settings.read()?;
        let log = Log::at(settings.folder, Bounds::default());
        let kept = log.last_of(&settings.run).map_err(|error| error.to_string())?;
        Ok(Audit { run: settings.run, log, kept, complained: false })
    }

    fn interests(&self) -> Interests {
        Interests::none()
    }

    fn serves_monitor(&self) -> bool {
        true
    }

    fn on_start(&mut self, out: &mut Commands) {
        out.tell_monitor(&FromService::AuditKept { up_to: self.kept });
    }

    fn on_monitor(&mut self, message: &[u8], out: &mut Commands) -> Result<(), String> {
        let ToService::Audit { first, records } = read_monitor(message)? else { return Ok(()) };
        let records = records.into_iter().map(Record::from).collect();
        match self.log.append_told(&self.run, first, self.kept, records, now_ms()) {
            Ok(kept) => {
                self.kept = kept;
                self.complained = false;
                out.tell_monitor(&FromService::AuditKept { up_to: kept });
            }
            // The node tells them again.
            Err(error) if self.complained => drop(error),
            Err(error) => {
                self.complained = true;
                let line = format!(
                    "{error}: records wait until it is put right, the oldest of them if there are too many"
                );
                out.log(Level::Error, &line);
            }
        }
        Ok(())
    }
}

fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
