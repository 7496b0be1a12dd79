//! The app `misbehaving-ring`: overwrites all memory that it shares with the kernel, including indices, and wakes the
//! kernel to read it.
//!
//! It needs the bare port, which the SDK does not expose. It never reads an event and never sends a command.

use monitor_channel::channel::Channel;
use monitor_channel::protocol::ToZone;
use std::fs::File;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::process::ExitCode;

/// Runs the app. It returns only if it could not start its attack.
pub fn run() -> ExitCode {
    let received = Channel::from_stdin().and_then(|channel| channel.receive::<ToZone>());
    let Ok(received) = received else { return ExitCode::FAILURE };
    let mut descriptors = received.fds.into_iter().map(File::from);
    let (Some(memory), Some(_), Some(mut wake_kernel)) =
        (descriptors.next(), descriptors.next(), descriptors.next())
    else {
        return ExitCode::FAILURE;
    };
    let length = memory.metadata().map(|metadata| metadata.len()).unwrap_or_default();
    let garbage = vec![0xa5; usize::try_from(length).unwrap_or_default()];
    let written = memory.write_all_at(&garbage, 0).and_then(|()| wake_kernel.write_all(&1u64.to_ne_bytes()));
    if written.is_err() {
        return ExitCode::FAILURE;
    }
    loop {
        std::thread::park();
    }
}
