//! The contract of the service `security`: questions about packages, and verdicts.
//!
//! ```text
//!   monitor ──Packages──> service
//!           <──Verified──
//! ```
//!
//! In and out: values, and their JSON. The question itself is text of `package::verification`, which the monitor passes
//! on and does not read. This crate verifies nothing.

use serde::{Deserialize, Serialize};

/// The name of the service.
pub const SERVICE: &str = "security";

/// It has no capabilities: only the monitor sends to it.
pub const DECLARATION: contract::Service = contract::Service::without_capabilities(SERVICE);

/// The number of the round that means: the service is ready. Rounds of questions begin at 1.
pub const READY: u64 = 0;

/// To the service: packages to verify.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Packages {
    /// The number of the round, for [`Verified`].
    pub round: u64,
    /// A JSON object with all known facts, except the files of the packages.
    pub question: String,
}

/// From the service: its verdicts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Verified {
    /// The round of the [`Packages`], or [`READY`].
    pub round: u64,
    /// At most one for each requested app.
    pub verdicts: Vec<PackageVerdict>,
}

/// The verdict on the package of one app.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PackageVerdict {
    /// The zone of the app.
    pub zone: u16,
    /// The number of the check that it answers.
    pub check: u64,
    /// The result.
    pub validity: Validity,
}

/// The result: yes, or the reason why not, as a phrase to follow the app's name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Validity {
    /// It is as signed, by a trusted key, and has only valid grants.
    Good,
    /// It may run, but not inside the kernel's process.
    NotTrusted(String),
    /// It may not run.
    Refused(String),
    /// The result is unknown.
    Unknown(String),
}
