//! `--pcap`: writes the frames of ports and control channels to files, with a thread for each.
//!
//! A slow disk delays nothing: frames that it does not take in time are dropped and counted.

use std::fmt;
use std::fs::File;
use std::io::{self, BufWriter};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::RecvTimeoutError;
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use emulator::pcap::PcapWriter;
use emulator::run::{Captured, Tap};
use emulator::topology::{Endpoint, Topology};
use flow::PortNo;
use serde::Serialize;

use super::arguments::PcapWish;
use burnet::cli::CommandError;

/// After this time without a frame, the buffer is flushed to the disk.
const IDLE: Duration = Duration::from_millis(100);

/// The result of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Recorded {
    file: PathBuf,
    frames: u64,
    dropped: u64,
    /// Why it ended early, if it did.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

impl fmt::Display for Recorded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} frames, {} dropped", self.file.display(), self.frames, self.dropped)?;
        self.error.as_ref().map_or(Ok(()), |error| write!(f, "; it ends early: {error}"))
    }
}

/// Open files, and the taps of their frames.
pub(super) struct Files {
    files: Vec<(PathBuf, PcapWriter<BufWriter<File>>)>,
    pub(super) taps: Vec<Tap>,
}

impl Files {
    /// Opens each file.
    pub(super) fn open(wishes: &[PcapWish], topology: &Topology) -> Result<Files, CommandError> {
        let mut files = Files { files: Vec::new(), taps: Vec::new() };
        for (number, PcapWish { what, file }) in wishes.iter().enumerate() {
            if wishes[..number].iter().any(|wish| wish.file == *file) {
                return Err(CommandError::Usage(format!(
                    "two --pcap options name {}: each needs a file of its own",
                    file.display()
                )));
            }
            files.taps.push(tap(what, topology).map_err(CommandError::Usage)?);
            let writer = File::create(file).and_then(|file| PcapWriter::new(BufWriter::new(file)));
            let unwritable =
                |error| CommandError::Usage(format!("{} cannot be written: {error}", file.display()));
            files.files.push((file.clone(), writer.map_err(unwritable)?));
        }
        Ok(files)
    }

    /// Writes captured frames until it is told to stop.
    pub(super) fn record(self, captured: Vec<Captured>) -> Recorders {
        let began = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let stop = Arc::new(AtomicBool::new(false));
        let each = self.files.into_iter().zip(captured).map(|((file, writer), captured)| {
            let stop = stop.clone();
            std::thread::spawn(move || record(file, writer, &captured, began, &stop))
        });
        Recorders { threads: each.collect(), stop }
    }
}

/// The threads that write.
pub(super) struct Recorders {
    threads: Vec<JoinHandle<Recorded>>,
    stop: Arc<AtomicBool>,
}

impl Recorders {
    /// Waits until all captured frames are written.
    pub(super) fn finish(self) -> Vec<Recorded> {
        self.stop.store(true, Ordering::Relaxed);
        // A panic of a thread has already been printed.
        self.threads.into_iter().filter_map(|thread| thread.join().ok()).collect()
    }
}

fn record(
    file: PathBuf,
    mut writer: PcapWriter<BufWriter<File>>,
    captured: &Captured,
    began: Duration,
    stop: &AtomicBool,
) -> Recorded {
    let mut frames = 0;
    let done: io::Result<()> = loop {
        let written = match captured.next_within(IDLE) {
            Ok((at, frame)) => {
                frames += 1;
                writer.write(began + at, &frame)
            }
            Err(RecvTimeoutError::Timeout) if !stop.load(Ordering::Relaxed) => writer.flush(),
            Err(_) => break writer.flush(),
        };
        if written.is_err() {
            break written;
        }
    };
    let error = done.err().map(|error| error.to_string());
    Recorded { file, frames, dropped: captured.dropped(), error }
}

/// The tap that a text names.
fn tap(what: &str, topology: &Topology) -> Result<Tap, String> {
    if what == "control" {
        return Ok(Tap::Control(None));
    }
    let plugged = |end| topology.links.iter().any(|link| link.one == end || link.two == end);
    if let Some(index) = topology.host_named(what) {
        let end = Endpoint::Host { index };
        return plugged(end).then_some(Tap::Port(end)).ok_or_else(|| format!("{what} has no link"));
    }
    if let Some(index) = topology.switch_named(what) {
        return Ok(Tap::Control(Some(index)));
    }
    let port = what.rsplit_once("-eth").and_then(|(switch, port)| {
        let index = topology.switch_named(switch)?;
        Some(Endpoint::Switch { index, port: PortNo(port.parse().ok()?) })
    });
    let port = port.filter(|end| plugged(*end)).map(Tap::Port);
    port.ok_or_else(|| format!("there is no port {what} in this network: write s1-eth1, h1, s1 or control"))
}
