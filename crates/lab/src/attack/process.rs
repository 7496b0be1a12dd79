//! A process of the node's, as Linux tells of it: which it is, and how much memory it has ever had.
//!
//! In: its number. Out: what `/proc` says; nothing if it has ended. It never touches it.

use crate::processes::{peak_bytes, started};

/// A process and no other that has its number later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Process {
    /// Its number.
    pub pid: u32,
    /// When it was started, in ticks since the machine was.
    pub started: u64,
    /// The most memory that it has had so far, in bytes.
    pub peak_bytes: u64,
}

impl Process {
    /// The one of this number.
    pub fn of(pid: u32) -> Option<Process> {
        Some(Process { pid, started: started(pid)?, peak_bytes: peak_bytes(pid)? })
    }

    /// Whether that is this one still.
    pub fn is(&self, later: &Process) -> bool {
        (self.pid, self.started) == (later.pid, later.started)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_known_again_and_another_is_not_taken_for_it() {
        let own = Process::of(std::process::id()).unwrap();
        assert!(own.is(&Process::of(own.pid).unwrap()) && own.peak_bytes > 1 << 20);
        assert!(!own.is(&Process { started: own.started + 1, ..own }));
        assert_eq!(Process::of(u32::MAX), None);
    }
}
