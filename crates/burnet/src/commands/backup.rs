//! `burnet backup`: writes one file with all of a node that is wanted and kept.
//!
//! In: a state folder, and the node that runs with it, if one does. Out: a new file, or an error and none. It changes no
//! state, but reading the store of a stopped node opens its file, and so repairs or migrates it.

use std::fs::{self, File, OpenOptions};
use std::io::{BufWriter, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use config::{ConfigFile, Environment};
use node::now_unix_ms;
use operator::client;
use operator::contract::{Answer, Question};
use package::state::State;
use rustix::fs::OFlags;
use store::copy;
use store::store_file::StoreFile;

use crate::backup::archive::Writer;
use crate::backup::unpack::STORE_BYTES_MAX;
use crate::backup::{About, FORMAT, content};
use crate::cli::CommandError;
use crate::cli::backup::BackupArgs;

/// The output of `burnet backup`.
pub fn backup(args: &BackupArgs) -> Result<String, CommandError> {
    let around = Environment::of_this_process()?;
    let config = args.config.as_deref().map(ConfigFile::read).transpose()?.unwrap_or_default();
    let state = around.state(args.state.as_deref(), config.node.state.as_deref())?;
    let socket = around.socket(args.socket.as_deref(), config.node.socket.as_deref())?;
    if !state.is_dir() {
        return Err(CommandError::Usage(format!(
            "there is no state folder {}: name the node's with --state DIR, or its configuration with --config FILE",
            state.display()
        )));
    }
    // So that no package and no grant changes meanwhile.
    let _lock = State::at(state.clone()).lock()?;
    let store = copy_of_store(&socket, &state)?;
    let not_written = |why: String| {
        CommandError::DidNotWork(format!("the backup {} was not written: {why}", args.file.display()))
    };
    let file = new_file(&args.file).map_err(not_written)?;
    let files = write(args, &state, store, file).map_err(|why| {
        let _ = fs::remove_file(&args.file);
        not_written(why)
    })?;
    let mut said = format!("{} has {files} files of {}\n", args.file.display(), state.display());
    if args.config.is_none() {
        said += "it has no configuration: add it with --config FILE\n";
    }
    Ok(said)
}

/// The state folder that these options name. An unreadable configuration is an error.
pub(super) fn state_folder(
    around: &Environment,
    command_line: Option<&Path>,
    config: Option<&Path>,
) -> Result<PathBuf, CommandError> {
    let file = config.map(ConfigFile::read).transpose()?.unwrap_or_default();
    Ok(around.state(command_line, file.node.state.as_deref())?)
}

/// An existing file is never replaced.
fn new_file(path: &Path) -> Result<File, String> {
    let opened = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    opened.map_err(|error| match error.kind() {
        std::io::ErrorKind::AlreadyExists => {
            "the file already exists: choose another name, or remove it".to_owned()
        }
        _ => error.to_string(),
    })
}

fn write(args: &BackupArgs, state: &Path, store: Option<Vec<u8>>, file: File) -> Result<usize, String> {
    let said = |error: std::io::Error| error.to_string();
    let sources = content::files(state, args.with_private_keys).map_err(said)?;
    let mut archive = Writer::new(BufWriter::new(file));
    let about = About {
        format: FORMAT,
        burnet: env!("CARGO_PKG_VERSION").to_owned(),
        made_unix_ms: now_unix_ms(),
        private_keys: args.with_private_keys,
    };
    let about = toml::to_string(&about).map_err(|error| error.to_string())?;
    let add_bytes = |archive: &mut Writer<_>, path, bytes: &[u8]| {
        archive.add(path, false, bytes.len() as u64, bytes).map_err(said)
    };
    add_bytes(&mut archive, content::ABOUT, about.as_bytes())?;
    if let Some(config) = &args.config {
        let text = fs::read(config).map_err(|error| format!("{}: {error}", config.display()))?;
        add_bytes(&mut archive, content::CONFIG, &text)?;
    }
    for source in sources {
        let cannot = |error: std::io::Error| format!("{}: {error}", source.place.display());
        let opened = open_plain(&source.place).map_err(cannot)?;
        let size = opened.metadata().map_err(cannot)?.len();
        archive.add(&source.path, source.executable, size, opened).map_err(cannot)?;
    }
    if let Some(store) = store {
        add_bytes(&mut archive, content::STORE, &store)?;
    }
    let files = archive.files();
    let file =
        archive.end().and_then(|writer| writer.into_inner().map_err(std::io::IntoInnerError::into_error));
    file.and_then(|mut file| file.flush().and_then(|()| file.sync_all())).map_err(said)?;
    Ok(files)
}

/// Opens a file, but no link: the folder of the store belongs to its service.
fn open_plain(path: &Path) -> std::io::Result<File> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    // The bits of these flags fit.
    let file = OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(path)?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(std::io::Error::new(std::io::ErrorKind::InvalidInput, "it is no file")),
    }
}

/// The copy of the store. A running node makes it, because no other process can read the file then.
fn copy_of_store(socket: &Path, state: &Path) -> Result<Option<Vec<u8>>, CommandError> {
    let folder = state.join(store::folder::NAME);
    if !StoreFile::is_in(&folder) {
        return Ok(None);
    }
    let saved = folder.join(store_contract::SAVED);
    // One of an interrupted command.
    let _ = fs::remove_file(&saved);
    let answer = client::ask(socket, &Question::SaveStore);
    let copied = match answer {
        Ok(Answer::Done) if saved.exists() => take(&saved).map_err(|error| error.to_string()),
        // No node runs, another one answers, or it has no store.
        answer => StoreFile::copy_of(&folder).map_err(|error| match answer {
            Ok(Answer::Refused(why)) | Err(why) => format!("{error}; {why}"),
            Ok(_) => format!("{error}; the node at {} has another state folder", socket.display()),
        }),
    };
    let sound = copied.and_then(|bytes| {
        copy::read(&bytes).map_err(|why| format!("its copy is damaged: {why}"))?;
        Ok(bytes)
    });
    sound.map(Some).map_err(|why| CommandError::DidNotWork(format!("the store cannot be copied: {why}")))
}

/// Reads the copy and removes it. The service wrote it, so neither its kind nor its length is trusted.
fn take(saved: &Path) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open_plain(saved)?.take(STORE_BYTES_MAX as u64 + 1).read_to_end(&mut bytes)?;
    fs::remove_file(saved)?;
    if bytes.len() > STORE_BYTES_MAX {
        let why = format!("the copy has more than {STORE_BYTES_MAX} bytes");
        return Err(std::io::Error::new(std::io::ErrorKind::InvalidData, why));
    }
    Ok(bytes)
}
