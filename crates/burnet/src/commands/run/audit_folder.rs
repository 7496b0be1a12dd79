//! The audit log's folder, before its service starts and after it has ended.
//!
//! In: the configuration, and the records that the service had not stored when the node ended. Out: a folder that the
//! service may write, and the last lines. It does not decide what is recorded.

use std::collections::BTreeMap;

use audit::AuditSettings;
use audit::log::{Bounds, Log};
use audit_contract::Batch;
use monitor::{AppSpec, Duty};
use rustix::process::geteuid;

use crate::cli::CommandError;
use config::Config;
use node::now_unix_ms;

fn cannot(why: &dyn std::fmt::Display) -> CommandError {
    CommandError::Usage(format!(
        "the audit log cannot be written ({why}): fix the cause, or turn the log off with node.audit = false"
    ))
}

/// Creates the folder for the service `audit`, and stores the remaining records when the node has ended.
pub(super) struct AuditFolder(AuditSettings);

impl AuditFolder {
    pub(super) fn of(config: &Config) -> Result<Option<AuditFolder>, CommandError> {
        let service = |app: &&AppSpec| app.duty == Some(Duty::KeepRecords);
        let Some(service) = config.apps.iter().find(service) else { return Ok(None) };
        let settings: AuditSettings =
            serde_json::from_value(service.settings.clone().into()).map_err(|error| cannot(&error))?;
        audit::log::make_folder(&settings.folder).map_err(|error| cannot(&error))?;
        Ok(Some(AuditFolder(settings)))
    }

    /// Gives the folder to the service. Only root can do that, and only if root runs the node does the service have
    /// its own user.
    pub(super) fn give_to(&self, users: &BTreeMap<String, u32>) -> Result<(), CommandError> {
        match users.get(audit_contract::SERVICE).filter(|_| geteuid().is_root()) {
            Some(user) => audit::log::give_to(&self.0.folder, *user).map_err(|error| cannot(&error)),
            None => Ok(()),
        }
    }

    pub(super) fn keep(self, unkept: Batch) {
        let AuditSettings { folder, run } = self.0;
        let mut log = Log::at(folder, Bounds::default());
        let kept = log
            .last_of(&run)
            .and_then(|kept| log.append_told(&run, unkept.first, kept, unkept.records, now_unix_ms()));
        if let Err(error) = kept {
            tracing::error!("the last audit records of the node could not be stored: {error}");
        }
    }
}
