//! The signals that ask the node to end, as bytes in a socket that a poll loop can wait for.
//!
//! In: SIGTERM, SIGINT (Ctrl-C), SIGHUP (the terminal closed). Out: one byte for each.
//! It never acts on a signal itself.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

/// From now on the three signals no longer end the calling process, but write a byte each to what is returned.
///
/// # Errors
/// When the process is out of descriptors.
pub fn shutdown_signals() -> io::Result<OwnedFd> {
    let (reader, writer) = UnixStream::pair()?;
    for signal in [SIGTERM, SIGINT, SIGHUP] {
        signal_hook::low_level::pipe::register(signal, writer.try_clone()?)?;
    }
    Ok(reader.into())
}
