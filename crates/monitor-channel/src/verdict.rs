//! The verdict on an app's package: a message from the service `security` to the monitor.
//!
//! Nothing is judged here.

use serde::{Deserialize, Serialize};

/// The verdict on one app.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PackageVerdict {
    /// The zone of the app.
    pub zone: u16,
    /// The number of the question that it answers.
    pub check: u64,
    /// The verdict itself.
    pub validity: Validity,
}

/// Yes, or why not: phrases that follow on the app's name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Validity {
    /// It may start, and go on.
    Good,
    /// It may run, but not inside the kernel process.
    NotTrusted(String),
    /// It may not run.
    Refused(String),
    /// This cannot be told.
    Unknown(String),
}
