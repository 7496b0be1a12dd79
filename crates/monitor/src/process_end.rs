//! How and when something ended, as values and as text.
//!
//! In: the exit status from Linux, reasons. Out: text for the operator. It never waits.

use crate::app::{Ending, REASON_BYTES_MAX, legible};

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProcessEnd {
    /// It exited with this code.
    Code(i32),
    /// A signal ended it.
    Signal {
        /// The signal's number.
        number: i32,
        /// It left a core dump.
        core_dumped: bool,
    },
}

/// A process's end as a phrase: `exit code 3`, `killed by SIGSEGV (core dumped)`.
#[must_use]
pub fn describe(end: ProcessEnd) -> String {
    match end {
        ProcessEnd::Code(0) => "exit code 0, unasked".to_owned(),
        // What the Rust runtime exits with.
        ProcessEnd::Code(101) => "exit code 101 (a panic)".to_owned(),
        ProcessEnd::Code(code) => format!("exit code {code}"),
        ProcessEnd::Signal { number, core_dumped } => {
            let core = match (number, core_dumped) {
                // seccomp(2), SECCOMP_RET_KILL_PROCESS.
                (SIGSYS, _) => " (it made a system call that no app may make)",
                (_, true) => " (core dumped)",
                _ => "",
            };
            format!("killed by {}{core}", signal_name(number))
        }
    }
}

/// Why and when something ended, on the monitor's clock.
#[derive(Debug, Clone)]
pub(crate) struct PastEnd {
    reason: String,
    last_line: Option<String>,
    at_ms: u64,
}

impl PastEnd {
    pub(crate) fn new(reason: &str, last_line: Option<String>, at_ms: u64) -> PastEnd {
        let last_line = last_line.map(|line| legible(&line, REASON_BYTES_MAX));
        PastEnd { reason: legible(reason, REASON_BYTES_MAX), last_line, at_ms }
    }

    pub(crate) fn last_line(&self) -> Option<&str> {
        self.last_line.as_deref()
    }

    /// `unix_ms_at_zero` is the wall clock when the monitor's clock was zero.
    pub(crate) fn ending(&self, unix_ms_at_zero: u64) -> Ending {
        Ending {
            reason: self.reason.clone(),
            last_line: self.last_line.clone(),
            unix_ms: unix_ms_at_zero.saturating_add(self.at_ms),
        }
    }
}

/// The signal that the system call filter kills with.
const SIGSYS: i32 = 31;

fn signal_name(number: i32) -> String {
    let name = match number {
        1 => "SIGHUP",
        2 => "SIGINT",
        3 => "SIGQUIT",
        4 => "SIGILL",
        5 => "SIGTRAP",
        6 => "SIGABRT",
        7 => "SIGBUS",
        8 => "SIGFPE",
        9 => "SIGKILL",
        11 => "SIGSEGV",
        13 => "SIGPIPE",
        14 => "SIGALRM",
        15 => "SIGTERM",
        24 => "SIGXCPU",
        25 => "SIGXFSZ",
        SIGSYS => "SIGSYS",
        other => return format!("signal {other}"),
    };
    name.to_owned()
}
