//! `burnet bench sink`: the peer that answers everything at once.
//!
//! In: where to listen. Out: one line that says where it listens, and when it ends one that says what it did.

use std::fs::File;
use std::io::Read;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use load::Sink;

use super::args::SinkArgs;
use super::target::LISTENS_ON;
use crate::printing::print_line;
use burnet::cli::CommandError;

/// Runs it until Ctrl-C or SIGTERM.
pub fn sink(args: &SinkArgs) -> Result<ExitCode, CommandError> {
    let trouble = |error: std::io::Error| CommandError::DidNotWork(format!("the sink cannot run: {error}"));
    if args.die_with_parent {
        monitor::child::die_with_parent().map_err(trouble)?;
    }
    let signals = monitor::shutdown_signals().map_err(trouble)?;
    let mut sink = Sink::listen(args.listen.0).map_err(|error| {
        CommandError::DidNotWork(format!("the sink cannot listen on {}: {error}", args.listen))
    })?;
    let stop = Arc::new(AtomicBool::new(false));
    let stopping = stop.clone();
    std::thread::spawn(move || {
        // A signal that cannot be read ends it as well: nobody could end it otherwise.
        let _ = File::from(signals).read(&mut [0]);
        stopping.store(true, Ordering::Relaxed);
    });
    print_line(&format!("{LISTENS_ON}{}", sink.address().map_err(trouble)?))?;
    let counters = sink.counters();
    sink.run(&stop).map_err(trouble)?;
    let (packet_ins, accepted) =
        (counters.packet_ins.load(Ordering::Relaxed), counters.accepted.load(Ordering::Relaxed));
    print_line(&format!("{packet_ins} packet-ins of {accepted} connections were answered"))?;
    Ok(ExitCode::SUCCESS)
}
