//! How much of the machine one process zone may have.
//!
//! In: the operator's numbers (`[app.NAME.limits]` of `burnet.toml`), or the defaults.
//! Out: [`Limits`], which the monitor hands to the launcher and the launcher enforces on itself (`launch`).
//! It never enforces anything.

use std::num::NonZeroU32;

use serde::{Deserialize, Serialize};

use crate::Cores;

/// The hard limits of one process zone. What lies beyond them fails inside the app (`ENOMEM`, `EMFILE`) or ends the
/// app; it is never felt outside of its zone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// Writable private memory (heap, stacks, copied-on-write pages), in bytes.
    pub memory_bytes: u64,
    /// Open file descriptors at once, all counted: standard streams, the monitor's socket, three for every worker's
    /// port.
    pub open_files: u32,
    /// Processes and threads of the app at once; `None` leaves them unlimited. Counted by a control group, or by the app's own user.
    pub processes: Option<u32>,
    /// The largest file that the app may write, in bytes.
    pub file_bytes: u64,
    /// The largest core dump, in bytes. Zero, because a core holds whatever the app was told of the network.
    pub core_bytes: u64,
    /// Processor time, in hundredths of one core: 50 is half a core, 200 two; `None` leaves that to Linux.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu_percent: Option<NonZeroU32>,
    /// The cores of the machine that it runs on; `None` leaves that to Linux.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cores: Option<Cores>,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            // Many times what a learning switch with a million addresses needs.
            memory_bytes: 512 << 20,
            // Sixteen workers take 48 for their ports; the rest is for the app.
            open_files: 64,
            // A worker thread for each core of a large machine; a bomb goes off in little room.
            processes: Some(64),
            file_bytes: 64 << 20,
            core_bytes: 0,
            cpu_percent: None,
            cores: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(json: &str, expected: Result<Limits, &str>) {
        match (serde_json::from_str::<Limits>(json), expected) {
            (Ok(limits), Ok(expected)) => assert_eq!(limits, expected),
            (Err(error), Err(expected)) => assert!(error.to_string().contains(expected), "{error}"),
            (got, expected) => panic!("{got:?}, but expected {expected:?}"),
        }
    }

    #[test]
    fn unknown_or_damaged_limits_are_refused_by_name() {
        check(r#"{"memory": 1}"#, Err("unknown field `memory`"));
        check(r#"{"open_files": -1}"#, Err("-1"));
        check(r#"{"open_files": 4294967296}"#, Err("4294967296"));
    }

    #[test]
    fn what_is_not_said_keeps_its_default() {
        check("{}", Ok(Limits::default()));
        check(r#"{"open_files": 20}"#, Ok(Limits { open_files: 20, ..Limits::default() }));
    }
}
