//! An error that ends the kernel process before it serves.
//!
//! In: an exit code and one sentence. Out: the same, for the monitor. It ends no process.

use std::io;

/// The exit code and one sentence.
pub struct Fatal(pub u8, pub String);

impl Fatal {
    /// An error of the system.
    pub fn of_system(error: io::Error) -> Fatal {
        Fatal(1, format!("the kernel process cannot continue: {error}"))
    }
}
