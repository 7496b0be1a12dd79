//! Standard output, for all commands of the laboratory.
//!
//! In: text. Out: the text on standard output, at once. If the reader has closed the output, that is no error.

use std::io::{ErrorKind, Write};

use burnet::cli::CommandError;
use operator::visible::visible;

/// Prints a text. What would steer a terminal is made visible.
pub(crate) fn print(text: &str) -> Result<(), CommandError> {
    let mut out = std::io::stdout().lock();
    match out.write_all(visible(text).as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(()),
    }
}

/// Prints a line.
pub(crate) fn print_line(line: &str) -> Result<(), CommandError> {
    print(&format!("{line}\n"))
}
