//! `burnet restore`: puts a backup in the place of the state of a node that does not run.
//!
//! In: a backup. Out: the state folder as it was then, and the state before in a folder of its own. After an error before the exchange, nothing
//! has changed. After a crash during the exchange, the next start of the node or of this command finishes it. The configuration file is written
//! last, and only by this command.

use std::fs::{self, File};
use std::io::{self, BufReader};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, lchown};
use std::path::{Path, PathBuf};

use config::Environment;
use monitor::records::time_text;
use node::now_unix_ms;
use package::state::{State, write_file};
use rustix::process::geteuid;

use super::backup::state_folder;
use crate::backup::archive::BadBackup;
use crate::backup::exchange;
use crate::backup::unpack::{Unpacked, unpack};
use crate::cli::CommandError;
use crate::cli::backup::RestoreArgs;

/// The output of `burnet restore`.
pub fn restore(args: &RestoreArgs) -> Result<String, CommandError> {
    let around = Environment::of_this_process()?;
    // The present configuration may be what is lost.
    let present = args.config.as_deref().filter(|config| config.exists());
    let state = state_folder(&around, args.state.as_deref(), present)?;
    let from = File::open(&args.file).map_err(|error| {
        CommandError::Usage(format!("the backup {} cannot be read: {error}", args.file.display()))
    })?;
    let _lock = State::at(state.clone()).lock()?;
    let _held = exchange::hold(&state).map_err(|error| not_held(&state, &error))?;
    let failed = |error: io::Error| not_restored(&args.file, &state, &error);
    exchange::finish(&state).and_then(|_| exchange::remove_drafts(&state)).map_err(failed)?;
    let now_ms = now_unix_ms();
    let draft = exchange::draft(&state, now_ms);
    let unpacked = unpack(BufReader::new(from), &draft).and_then(|unpacked| {
        let with_keys = unpacked.about.private_keys;
        let kept = if with_keys { Ok(()) } else { keep_keys(&state, &draft) };
        let kept = kept.and_then(|()| give(&draft, &state));
        kept.map_err(|error| BadBackup(format!("{} cannot be written: {error}", draft.display())))?;
        Ok(unpacked)
    });
    let unpacked = unpacked.map_err(|bad| {
        let _ = fs::remove_dir_all(&draft);
        CommandError::DidNotWork(format!(
            "the backup {} was not restored: {bad}; nothing has changed",
            args.file.display()
        ))
    })?;
    exchange::begin(&state, now_ms).map_err(|error| {
        let _ = fs::remove_dir_all(&draft);
        failed(error)
    })?;
    exchange::finish(&state).map_err(failed)?;
    let config = args.config.as_deref().zip(unpacked.config.as_deref());
    let kept = config.map(|(place, text)| put_config(place, text, now_ms)).transpose()?.flatten();
    Ok(told(args, &state, &unpacked, &exchange::before(&state, now_ms), kept))
}

fn not_held(state: &Path, error: &io::Error) -> CommandError {
    CommandError::Usage(match error.kind() {
        io::ErrorKind::WouldBlock => {
            format!("a node runs with the state folder {}: stop it, then restore", state.display())
        }
        _ => format!("the state folder {} cannot be locked: {error}", state.display()),
    })
}

fn not_restored(file: &Path, state: &Path, error: &io::Error) -> CommandError {
    CommandError::DidNotWork(format!(
        "the backup {} was not restored completely to {}: {error}; fix the cause, and run the command again",
        file.display(),
        state.display()
    ))
}

/// The keys of this machine stay, if the backup has no private keys. A private key and its public key stay together, whatever the backup has.
fn keep_keys(state: &Path, draft: &Path) -> io::Result<()> {
    let present = match fs::read_dir(state.join("keys")) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        present => present?,
    };
    let keys = draft.join("keys");
    fs::DirBuilder::new().recursive(true).mode(0o700).create(&keys)?;
    for entry in present {
        let entry = entry?;
        let place = keys.join(entry.file_name());
        let is_of_pair = entry.path().with_extension("key").is_file();
        if entry.file_type()?.is_file() && (is_of_pair || !place.exists()) {
            // With the mode of the original.
            fs::copy(entry.path(), place)?;
        }
    }
    Ok(())
}

/// Gives a draft to the owner of the state folder, if root restores the state of another user.
fn give(draft: &Path, state: &Path) -> io::Result<()> {
    let owner = fs::metadata(state)?;
    if !geteuid().is_root() || owner.uid() == 0 {
        return Ok(());
    }
    give_all(draft, owner.uid(), owner.gid())
}

fn give_all(path: &Path, user: u32, group: u32) -> io::Result<()> {
    lchown(path, Some(user), Some(group))?;
    if !fs::symlink_metadata(path)?.is_dir() {
        return Ok(());
    }
    fs::read_dir(path)?.try_for_each(|entry| give_all(&entry?.path(), user, group))
}

/// Replaces the configuration file. Returns where the one before is.
fn put_config(place: &Path, text: &[u8], now_ms: u64) -> Result<Option<PathBuf>, CommandError> {
    // `write_file` syncs the folder, so a bare name needs one.
    let place = std::path::absolute(place).unwrap_or_else(|_| place.to_owned());
    let name = place.file_name().unwrap_or_default().to_string_lossy();
    let before = place.with_file_name(format!("{name}.before-restore-{now_ms}"));
    let cannot = |error: &dyn std::fmt::Display| {
        CommandError::DidNotWork(format!("the state is restored, but not the configuration: {error}"))
    };
    let mode = fs::metadata(&place).map_or(0o644, |present| present.mode() & 0o777);
    let kept = match fs::copy(&place, &before) {
        Ok(_) => Some(before),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(cannot(&format!("{} cannot be kept: {error}", place.display()))),
    };
    write_file(&place, text, mode).map_err(|error| cannot(&error))?;
    Ok(kept)
}

fn told(
    args: &RestoreArgs,
    state: &Path,
    unpacked: &Unpacked,
    before: &Path,
    config: Option<PathBuf>,
) -> String {
    let Unpacked { about, files, .. } = unpacked;
    let mut said = format!(
        "{} has the {files} files of {}, which Burnet {} made at {}\nthe state before is in {}\n",
        state.display(),
        args.file.display(),
        about.burnet,
        time_text(about.made_unix_ms),
        before.display()
    );
    if let Some(config) = config {
        said += &format!("the configuration before is {}\n", config.display());
    }
    match (&unpacked.config, &args.config) {
        (Some(_), None) => {
            said += "its configuration was left out: name the place of it with --config FILE\n"
        }
        (None, Some(_)) => said += "the backup has no configuration\n",
        _ => {}
    }
    if !about.private_keys {
        said += "the backup has no private keys: those of this machine stay\n";
    }
    said
}
