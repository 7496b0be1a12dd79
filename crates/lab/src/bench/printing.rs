//! The result lines of `burnet bench`.
//!
//! In: a line. Out: the line on standard output, at once.

use std::io::{ErrorKind, Write};

use burnet::cli::CommandError;

/// Prints a line at once. If the reader has closed the output, that is not an error.
pub fn print_line(line: &str) -> Result<(), CommandError> {
    let mut out = std::io::stdout().lock();
    match writeln!(out, "{line}").and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(()),
    }
}
