//! The signals that stop the node or reload its configuration, as bytes in a socket for the poll loop.
//!
//! In: SIGTERM, SIGINT (Ctrl-C), SIGHUP (the terminal closed, or the operator reloads the configuration). Out: one byte
//! for each. It never acts on a signal itself.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fs::FileType;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

/// From now on, SIGTERM and SIGINT write a byte to the first returned socket, and SIGHUP to the second. SIGHUP reloads
/// the configuration of a node, if `hung_up` is `false`.
///
/// # Errors
/// When the process is out of descriptors.
pub fn node_signals() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok((written_by(&[SIGTERM, SIGINT])?, written_by(&[SIGHUP])?))
}

/// Whether a terminal of this process has closed. Then SIGHUP reports that, and requests nothing.
pub(crate) fn hung_up() -> bool {
    let streams = [rustix::stdio::stdin(), rustix::stdio::stdout(), rustix::stdio::stderr()];
    streams.into_iter().any(|stream| {
        let is_device = rustix::fs::fstat(stream)
            .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::CharacterDevice);
        let mut polled = [PollFd::from_borrowed_fd(stream, PollFlags::empty())];
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        // A pipe without a reader also reports this, and is no terminal.
        is_device
            && rustix::event::poll(&mut polled, Some(&at_once)).is_ok()
            && polled[0].revents().contains(PollFlags::HUP)
    })
}

/// From now on the three signals no longer end the calling process. Each writes a byte to the returned socket.
///
/// # Errors
/// When the process is out of descriptors.
pub fn shutdown_signals() -> io::Result<OwnedFd> {
    written_by(&[SIGTERM, SIGINT, SIGHUP])
}

fn written_by(signals: &[i32]) -> io::Result<OwnedFd> {
    let (reader, writer) = UnixStream::pair()?;
    for signal in signals {
        signal_hook::low_level::pipe::register(*signal, writer.try_clone()?)?;
    }
    Ok(reader.into())
}
