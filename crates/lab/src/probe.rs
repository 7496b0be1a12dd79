//! `burnet probe`: measures a switch as a black box, and writes its profile.
//!
//! ```text
//!   arguments ──> Options, a listening socket, interfaces ──> probe::sockets ──> a profile's file, a table of text, the exit code
//!   FILE.resume ──> the records of a probe that ended early ──┘     └──> FILE.resume, if this one ends early too
//! ```
//!
//! It opens packet sockets on the given interfaces, which needs CAP_NET_RAW. What is sent and concluded is decided in the crate `probe`.

mod arguments;

pub use arguments::{ListenAt, MeasuredPart, ProbeArgs, ProbePort, ProbeVersion};

use burnet::cli::CommandError;
use burnet::commands::stop_signal::StopSignal;
use operator::visible::visible;
use probe::journal::Kept;
use probe::sockets::{self, Counters, Ended};
use probe::{Finished, Probe};
use profile::Profile;
use std::ffi::OsString;
use std::io::ErrorKind;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How often signals are checked.
const LOOK: Duration = Duration::from_millis(100);

/// Probes the switch that connects.
///
/// # Errors
/// Wrong arguments; the address or an interface cannot be opened; the switch cannot be probed; the file cannot be written.
pub fn probe(args: &ProbeArgs) -> Result<ExitCode, CommandError> {
    let options = args.options()?;
    check_out(&args.out)?;
    let kept = args.resume.then(|| read_kept(&args.out)).transpose()?;
    let listener = TcpListener::bind(args.listen.0).map_err(|error| {
        CommandError::DidNotWork(format!("{} cannot be listened at: {error}", args.listen.0))
    })?;
    let stop = stop_flag()?;
    let ports = options.ports.clone();
    eprintln!("burnet: waiting for the switch at {}", args.listen.0);
    let mut tell = |text: &str| eprintln!("burnet: {}", visible(text));
    let probe = match kept {
        Some(kept) => Probe::resuming(options, kept),
        None => Probe::new(options),
    };
    let ended = sockets::run(probe, listener, &ports, &stop, &mut tell)
        .map_err(|error| CommandError::DidNotWork(format!("the switch cannot be probed: {error}")))?;
    tell_losses(ended.counters);
    conclude(ended, &args.out)
}

/// What the driver lost makes rules look late or missing.
fn tell_losses(counters: Counters) {
    let Counters { frames_not_sent, messages_not_read, frames_not_read } = counters;
    for (count, what) in [
        (frames_not_sent, "test frames could not be sent: the interfaces had no room"),
        (frames_not_read, "frames were lost: this machine was too busy to read them"),
        (messages_not_read, "messages of the switch could not be read"),
    ] {
        if count > 0 {
            eprintln!("burnet: {count} {what}");
        }
    }
}

fn conclude(ended: Ended, out: &Path) -> Result<ExitCode, CommandError> {
    let profile = match ended.finished {
        Finished::Refused(why) => return Err(CommandError::DidNotWork(visible(&why).into_owned())),
        Finished::Profile(profile) => profile,
    };
    write_profile(&profile, out)?;
    print!("{}", visible(&ended.report));
    let Some(kept) = ended.kept else {
        remove_kept(out);
        return Ok(ExitCode::SUCCESS);
    };
    let file = kept_file(out);
    std::fs::write(&file, kept).map_err(|error| {
        CommandError::DidNotWork(format!(
            "{} is incomplete, and {} cannot be written: {error}",
            out.display(),
            file.display()
        ))
    })?;
    eprintln!("burnet: {} is incomplete; the same command with --resume goes on", out.display());
    Ok(ExitCode::from(1))
}

/// If the file cannot be written, the profile goes to standard output: it took minutes to measure.
fn write_profile(profile: &Profile, out: &Path) -> Result<(), CommandError> {
    let text = profile.to_toml().map_err(|bad| {
        CommandError::DidNotWork(format!("the measured profile is not one that can be read: {bad}"))
    })?;
    std::fs::write(out, &text).map_err(|error| {
        print!("{text}");
        CommandError::DidNotWork(format!(
            "{} cannot be written ({error}): the profile is on standard output",
            out.display()
        ))
    })
}

/// Before minutes of measurement: whether the file can be there.
fn check_out(out: &Path) -> Result<(), CommandError> {
    let folder = out.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if !folder.is_dir() {
        return Err(CommandError::Usage(format!("--out: there is no folder {}", folder.display())));
    }
    if out.is_dir() {
        return Err(CommandError::Usage(format!("--out: {} is a folder; expected a file", out.display())));
    }
    Ok(())
}

/// `my.toml.resume` for `my.toml`.
fn kept_file(out: &Path) -> PathBuf {
    let mut name = OsString::from(out);
    name.push(".resume");
    PathBuf::from(name)
}

fn read_kept(out: &Path) -> Result<Kept, CommandError> {
    let file = kept_file(out);
    let text = std::fs::read_to_string(&file).map_err(|error| match error.kind() {
        ErrorKind::NotFound => CommandError::Usage(format!(
            "--resume: there is no {}, which a probe leaves that ends early",
            file.display()
        )),
        _ => CommandError::Usage(format!("--resume: {} cannot be read: {error}", file.display())),
    })?;
    Kept::parse(&text).map_err(|why| CommandError::Usage(format!("--resume: {}: {why}", file.display())))
}

/// The probe is complete, so what was kept is of no use.
fn remove_kept(out: &Path) {
    let file = kept_file(out);
    if let Err(error) = std::fs::remove_file(&file)
        && error.kind() != ErrorKind::NotFound
    {
        eprintln!("burnet: {} cannot be removed: {error}", file.display());
    }
}

/// A flag that is set when the operator ends the command.
fn stop_flag() -> Result<Arc<AtomicBool>, CommandError> {
    let signal = StopSignal::listen()?;
    let stop = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&stop);
    std::thread::Builder::new()
        .name("stop".into())
        .spawn(move || {
            while !signal.came_within(LOOK) {}
            flag.store(true, Ordering::Relaxed);
        })
        .map_err(|error| CommandError::DidNotWork(format!("no thread for signals: {error}")))?;
    Ok(stop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_cannot_be_there_is_named_before_the_probe() {
        for (out, expected) in
            [("/no-such-folder/my.toml", "no folder /no-such-folder"), ("/tmp", "is a folder")]
        {
            let error = check_out(Path::new(out)).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
        check_out(Path::new("my.toml")).unwrap();
    }

    #[test]
    fn without_records_there_is_nothing_to_resume() {
        let error = read_kept(Path::new("/no-such-folder/my.toml")).unwrap_err().to_string();
        assert!(error.contains("there is no /no-such-folder/my.toml.resume"), "{error}");
    }
}
