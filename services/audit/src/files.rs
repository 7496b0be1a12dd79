//! The files of an audit log: their names and their lines.
//!
//! ```text
//!   FOLDER/lock                        locked by the process that appends
//!   FOLDER/audit-000000000001.jsonl    lines 1 to …
//!   FOLDER/audit-000000004711.jsonl    lines 4711 to …; the last is appended to
//! ```
//!
//! The service owns the folder and could put anything there, and root opens files in it. So no link is followed, and only plain
//! files are opened.
//!
//! In: a folder. Out: its files by the number of their first line, and their bytes. It changes nothing.

use rustix::fs::OFlags;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// The lock file of a log. A writer holds its lock.
pub const LOCK: &str = "lock";

/// One file of a log.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LogFile {
    /// The number of its first line, from its name.
    pub first: u64,
    /// Its path.
    pub path: PathBuf,
}

impl LogFile {
    /// The file that starts with this line.
    pub fn beginning_with(folder: &Path, first: u64) -> LogFile {
        LogFile { first, path: folder.join(format!("audit-{first:012}.jsonl")) }
    }
}

/// The files of a log, oldest first. Files with other names are ignored.
///
/// # Errors
/// The folder cannot be listed.
pub fn of(folder: &Path) -> io::Result<Vec<LogFile>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let digits = name.strip_prefix("audit-").and_then(|name| name.strip_suffix(".jsonl"));
        if let Some(first) = digits.and_then(|digits| digits.parse().ok()) {
            files.push(LogFile { first, path });
        }
    }
    files.sort();
    Ok(files)
}

/// Opens a file of a log. It never follows a link, and never opens a pipe or a device, which could block.
///
/// # Errors
/// It cannot be opened, or is not a plain file.
pub fn open(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    // Bits of an `int`.
    let file = options.custom_flags((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32).open(path)?;
    if file.metadata()?.is_file() {
        return Ok(file);
    }
    Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no file"))
}

/// Reads a whole file of a log.
///
/// # Errors
/// As [`open`], or it cannot be read.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open(OpenOptions::new().read(true), path)?.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Reads the end of a file, at most this many bytes.
pub fn tail(file: &mut File, bytes_max: u64) -> io::Result<Vec<u8>> {
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(bytes_max)))?;
    let mut bytes = Vec::new();
    file.take(bytes_max).read_to_end(&mut bytes)?;
    Ok(bytes)
}
