//! Appending to the log.
//!
//! ```text
//!   records ──> Log::append: lock, read the end anew, write, bring to disk ──> lines that follow what stands there
//! ```
//!
//! Several processes append: the service of the running node, and the operator's commands. Each takes the lock, reads the last
//! line, and appends. After a successful call, the lines are on disk (`fdatasync`). After an error, none of them is.
//! A line is never changed or removed, with two exceptions, which the log itself records. An incomplete line of a crashed writer
//! is cut off. If there are too many files, the oldest are deleted.

use audit_contract::Record;
use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, fchown, lchown};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::files::{self, LOCK, LogFile};
use crate::line::{self, Hash, LINE_BYTES_MAX, Told};

/// How long a process waits for the lock: far longer than an append takes.
const LOCK_PATIENCE: Duration = Duration::from_secs(2);

/// The maximum size of the log. At the bound, a new file starts and the oldest is deleted. The log records this.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// After this many bytes, a new file starts.
    pub file_bytes: u64,
    /// The maximum number of files.
    pub files: usize,
}

impl Default for Bounds {
    /// 128 MiB: about 400,000 records of 300 bytes.
    fn default() -> Bounds {
        Bounds { file_bytes: 4 << 20, files: 32 }
    }
}

/// Why nothing was appended. The operator must fix it: a full disk, or a folder without write permission.
#[derive(Debug)]
pub struct NotKept(String);

impl fmt::Display for NotKept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for NotKept {}

fn not(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> NotKept {
    move |error| NotKept(format!("{} cannot be {what} ({error})", path.display()))
}

/// The last line of a log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Head {
    /// The number of the last line; 0 if there is none.
    pub line: u64,
    /// Its hash.
    pub hash: Hash,
}

/// Creates the folder of a log if it does not exist. Only its owner can access it.
///
/// # Errors
/// The folder cannot be created.
pub fn make_folder(folder: &Path) -> Result<(), NotKept> {
    let made = fs::DirBuilder::new().mode(0o700).recursive(true).create(folder);
    made.map_err(not("made", folder))
}

/// Gives a log to this user.
///
/// # Errors
/// The owner cannot be changed.
pub fn give_to(folder: &Path, user: u32) -> Result<(), NotKept> {
    let lock = folder.join(LOCK);
    let files = files::of(folder).map_err(not("listed", folder))?;
    let all =
        files.iter().map(|file| file.path.as_path()).chain([folder]).chain(lock.exists().then_some(&*lock));
    for path in all {
        lchown(path, Some(user), Some(user)).map_err(not("given to its service", path))?;
    }
    Ok(())
}

/// A log, for appending to.
#[derive(Debug)]
pub struct Log {
    folder: PathBuf,
    bounds: Bounds,
    /// The last line that this process saw. Later, the log must have it or more.
    seen: Option<Head>,
}

/// A log with its lock held, and its last file.
struct Opened {
    _lock: File,
    file: File,
    of: LogFile,
    length: u64,
    head: Head,
    /// Remarks on the state of the log.
    remarks: Vec<Record>,
    /// The files to delete when the new lines are on disk.
    outlived: Vec<LogFile>,
}

impl Log {
    /// The log in this folder, which need not exist yet.
    pub fn at(folder: PathBuf, bounds: Bounds) -> Log {
        Log { folder, bounds, seen: None }
    }

    /// The last line that this process saw.
    pub fn head(&self) -> Option<Head> {
        self.seen
    }

    /// Stores the record of an operator's command.
    ///
    /// # Errors
    /// Nothing was stored.
    pub fn append(&mut self, records: Vec<Record>, now_ms: u64) -> Result<Head, NotKept> {
        self.write(records.into_iter().map(|record| (None, record)).collect(), now_ms)
    }

    /// Stores records of a node; `first` is the number of the first. Known records are skipped. Returns the number up to which all records of this run are stored.
    ///
    /// # Errors
    /// Nothing was stored.
    pub fn append_told(
        &mut self,
        run: &str,
        first: u64,
        kept: u64,
        records: Vec<Record>,
        now_ms: u64,
    ) -> Result<u64, NotKept> {
        let numbered = (first..).zip(records).filter(|(number, _)| *number > kept);
        let told = |number| Some(Told { run: run.to_owned(), number });
        let records: Vec<_> = numbered.map(|(number, record)| (told(number), record)).collect();
        let last = records.last().and_then(|(told, _)| told.as_ref()).map(|told| told.number);
        self.write(records, now_ms)?;
        Ok(last.unwrap_or(kept))
    }

    /// The number of the last stored record of a run, or 0. It reads the last two files.
    ///
    /// # Errors
    /// A file cannot be read.
    pub fn last_of(&self, run: &str) -> Result<u64, NotKept> {
        let Ok(files) = files::of(&self.folder) else { return Ok(0) };
        // The form that `line` writes. Within a text, the quotes would be escaped.
        let spelt = format!("\"run\":{},\"number\":", serde_json::Value::from(run));
        for file in files.iter().rev().take(2) {
            let bytes = files::read(&file.path).map_err(not("read", &file.path))?;
            // Text after the last line break is incomplete.
            let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
            let text = String::from_utf8_lossy(&bytes[..whole]);
            if let Some(at) = text.rfind(&spelt) {
                let digits: String =
                    text[at + spelt.len()..].chars().take_while(char::is_ascii_digit).collect();
                return Ok(digits.parse().unwrap_or_default());
            }
        }
        Ok(0)
    }

    fn write(&mut self, records: Vec<(Option<Told>, Record)>, now_ms: u64) -> Result<Head, NotKept> {
        let mut opened = self.open(now_ms)?;
        let remarks = std::mem::take(&mut opened.remarks);
        let all = remarks.into_iter().map(|remark| (None, remark)).chain(records);
        let mut head = opened.head;
        let mut text = String::new();
        for (told, record) in all {
            head.line += 1;
            head.hash = line::write(&mut text, head.line, told, record, &head.hash);
        }
        opened.put(text.as_bytes())?;
        for file in &opened.outlived {
            // A remaining file is deleted the next time.
            let _ = fs::remove_file(&file.path);
        }
        self.seen = Some(head);
        Ok(head)
    }

    fn open(&self, now_ms: u64) -> Result<Opened, NotKept> {
        let lock = self.lock()?;
        let mut files = files::of(&self.folder).map_err(not("listed", &self.folder))?;
        // A file without a complete first line has no information.
        while let Some(last) = files.last().filter(|last| is_empty(&last.path)) {
            fs::remove_file(&last.path).map_err(not("removed", &last.path))?;
            files.pop();
        }
        let mut remarks = Vec::new();
        let mut remark = |what: &str, text: String| remarks.push(Record::new(now_ms, what, "audit", text));
        let mut head = Head::default();
        let mut of = LogFile::beginning_with(&self.folder, 1);
        if let Some(last) = files.last() {
            of = last.clone();
            let (found, torn_bytes) = end_of(last)?;
            if torn_bytes > 0 {
                remark(
                    "recovered",
                    format!("{torn_bytes} bytes of a line whose writer ended half-way were cut off"),
                );
            }
            match found {
                Ok(found) => head = found,
                Err((found, why)) => {
                    head = found;
                    remark("damaged", format!("the line before this one: {why}"));
                }
            }
        }
        if let Some(seen) =
            self.seen.filter(|seen| head.line < seen.line || head.line == seen.line && head.hash != seen.hash)
        {
            let was = format!(
                "line {} with the hash {} stood here, and now line {} is the last",
                seen.line, seen.hash, head.line
            );
            remark("damaged", format!("{was}: lines were taken away or altered"));
            head.line = head.line.max(seen.line);
        }
        let mut outlived = Vec::new();
        if !files.is_empty() && size(&of.path)? >= self.bounds.file_bytes {
            of = LogFile::beginning_with(&self.folder, head.line + 1);
            let surplus = (files.len() + 1).saturating_sub(self.bounds.files.max(1));
            outlived.extend(files.drain(..surplus.min(files.len())));
            if let Some(next) = files.first().or(Some(&of)).filter(|_| !outlived.is_empty()) {
                let text = format!(
                    "the lines up to {} are no longer kept: the log has its full size",
                    next.first - 1
                );
                remark("rotated", text);
            }
        }
        let (file, length) = self.append_to(&of)?;
        Ok(Opened { _lock: lock, file, of, length, head, remarks, outlived })
    }

    fn lock(&self) -> Result<File, NotKept> {
        make_folder(&self.folder)?;
        let path = self.folder.join(LOCK);
        let lock = self.make(OpenOptions::new().create(true).truncate(false).write(true), &path)?;
        let began = Instant::now();
        loop {
            match lock.try_lock() {
                Ok(()) => return Ok(lock),
                Err(fs::TryLockError::Error(error)) => return Err(not("locked", &path)(error)),
                Err(fs::TryLockError::WouldBlock) if began.elapsed() > LOCK_PATIENCE => {
                    let held = format!("{} is held by another process for too long", path.display());
                    return Err(NotKept(held));
                }
                Err(fs::TryLockError::WouldBlock) => std::thread::sleep(Duration::from_millis(2)),
            }
        }
    }

    fn append_to(&self, of: &LogFile) -> Result<(File, u64), NotKept> {
        let file = self.make(OpenOptions::new().create(true).append(true), &of.path)?;
        let length = file.metadata().map_err(not("read", &of.path))?.len();
        Ok((file, length))
    }

    /// Files that root creates get the owner of the folder, so that the service can use them.
    fn make(&self, options: &mut OpenOptions, path: &Path) -> Result<File, NotKept> {
        let file = files::open(options.mode(0o600), path).map_err(not("opened", path))?;
        let (Ok(own), Ok(folder)) = (file.metadata(), fs::metadata(&self.folder)) else { return Ok(file) };
        if own.uid() != folder.uid() {
            // A process without this right owns the file itself.
            let _ = fchown(&file, Some(folder.uid()), Some(folder.gid()));
        }
        Ok(file)
    }
}

impl Opened {
    /// Writes all bytes to disk, or removes what was written.
    fn put(&mut self, bytes: &[u8]) -> Result<(), NotKept> {
        let written = self.file.write_all(bytes).and_then(|()| self.file.sync_data());
        if let Err(error) = written {
            // If that fails too, the next writer cuts off the incomplete line.
            let _ = self.file.set_len(self.length);
            return Err(not("written", &self.of.path)(error));
        }
        if self.length == 0
            && let Some(folder) = self.of.path.parent()
        {
            File::open(folder)
                .and_then(|folder| folder.sync_all())
                .map_err(not("brought to disk", folder))?;
        }
        Ok(())
    }
}

fn is_empty(path: &Path) -> bool {
    // A file without a line break has no complete line.
    fs::symlink_metadata(path).is_ok_and(|metadata| metadata.len() < LINE_BYTES_MAX as u64)
        && files::read(path).is_ok_and(|bytes| !bytes.contains(&b'\n'))
}

fn size(path: &Path) -> Result<u64, NotKept> {
    Ok(fs::symlink_metadata(path).map_err(not("read", path))?.len())
}

/// The last line. If it is unreadable, the line to continue from, and the reason. Also the number of incomplete bytes that were cut off.
type Found = Result<Head, (Head, String)>;

fn end_of(of: &LogFile) -> Result<(Found, u64), NotKept> {
    let opened = files::open(OpenOptions::new().read(true).write(true), &of.path);
    let mut file = opened.map_err(not("opened", &of.path))?;
    let length = size(&of.path)?;
    // An incomplete line and the complete one before it.
    let mut end = files::tail(&mut file, 2 * LINE_BYTES_MAX as u64).map_err(not("read", &of.path))?;
    let whole = end.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    let torn_bytes = (end.len() - whole) as u64;
    if torn_bytes > 0 {
        let cut = file.set_len(length - torn_bytes).and_then(|()| file.sync_data());
        cut.map_err(not("repaired", &of.path))?;
    }
    end.truncate(whole.saturating_sub(1));
    let begins = end.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    let last = String::from_utf8_lossy(&end[begins..]);
    let found = match line::read(&last) {
        Ok(line) => Ok(Head { line: line.number, hash: line.hash }),
        Err(why) => {
            // The chain continues after it. Verification reports this line.
            let bytes = files::read(&of.path).map_err(not("read", &of.path))?;
            let lines = bytes.iter().filter(|byte| **byte == b'\n').count() as u64;
            Err((Head { line: of.first + lines.saturating_sub(1), hash: Hash::of(last.as_bytes()) }, why))
        }
    };
    Ok((found, torn_bytes))
}
