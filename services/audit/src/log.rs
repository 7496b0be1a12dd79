//! Appending to the log.
//!
//! ```text
//!   records ──> Log::append: lock, read the end anew, write, bring to disk ──> lines that follow what stands there
//! ```
//!
//! Several processes append: the service for the running node, and the operator's commands. Each takes the lock, reads what stands last, and
//! lets its lines follow that. When a call returns without an error its lines are on disk (`fdatasync`); when it fails none of them is.
//! It never alters or takes away a line, but for two things that it says in the log itself: the beginning of a line whose writer ended
//! half-way is cut off, and the oldest files go when there are too many.

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, fchown, lchown};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::files::{self, LOCK, LogFile};
use crate::line::{self, Hash, LINE_BYTES_MAX, Told};
use crate::record::Record;

/// How long one waits for the lock: far longer than anyone appends, or looks how long the log is.
const LOCK_PATIENCE: Duration = Duration::from_secs(2);

/// How large the log may become. At the bound a new file is begun, and the oldest goes: the log says so itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// A file that is this long is followed by a new one.
    pub file_bytes: u64,
    /// More files than these are not kept.
    pub files: usize,
}

impl Default for Bounds {
    /// 128 MiB: at the 300 bytes of most records about 400,000.
    fn default() -> Bounds {
        Bounds { file_bytes: 4 << 20, files: 32 }
    }
}

/// Why nothing was appended. The operator's to put right: a full disk, a folder that may not be written.
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

/// What stands last in a log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Head {
    /// The number of the last line; 0 if there is none.
    pub line: u64,
    /// Its hash.
    pub hash: Hash,
}

/// Makes the folder of a log, if it is not there: its owner's alone.
///
/// # Errors
/// It cannot be made.
pub fn make_folder(folder: &Path) -> Result<(), NotKept> {
    let made = fs::DirBuilder::new().mode(0o700).recursive(true).create(folder);
    made.map_err(not("made", folder))
}

/// Gives a log to this user, who goes on with it.
///
/// # Errors
/// It cannot be given away.
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
    /// What this process saw last: what is there later must be that or more.
    seen: Option<Head>,
}

/// A log whose lock is held, and the file that is appended to.
struct Opened {
    _lock: File,
    file: File,
    of: LogFile,
    length: u64,
    head: Head,
    /// What is to be said of how the log was found.
    remarks: Vec<Record>,
    /// Files that go when the new lines are on disk.
    outlived: Vec<LogFile>,
}

impl Log {
    /// The log in this folder, which need not be there yet.
    pub fn at(folder: PathBuf, bounds: Bounds) -> Log {
        Log { folder, bounds, seen: None }
    }

    /// What this process saw last.
    pub fn head(&self) -> Option<Head> {
        self.seen
    }

    /// Keeps what an operator's command did.
    ///
    /// # Errors
    /// Nothing was kept.
    pub fn append(&mut self, records: Vec<Record>, now_ms: u64) -> Result<Head, NotKept> {
        self.write(records.into_iter().map(|record| (None, record)).collect(), now_ms)
    }

    /// Keeps what a node told, `first` being the number of the first of it, and passes over what it had told before: up to which number of this run all is kept.
    ///
    /// # Errors
    /// Nothing was kept.
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

    /// The number of the last record of a run that is kept; 0 if none is. Looks through the last two files.
    ///
    /// # Errors
    /// A file cannot be read.
    pub fn last_of(&self, run: &str) -> Result<u64, NotKept> {
        let Ok(files) = files::of(&self.folder) else { return Ok(0) };
        // As `line` spells it; within a text the quotes would be escaped.
        let spelt = format!("\"run\":{},\"number\":", serde_json::Value::from(run));
        for file in files.iter().rev().take(2) {
            let bytes = files::read(&file.path).map_err(not("read", &file.path))?;
            // What is behind the last end of a line is not kept.
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
            // One that stays is taken away the next time.
            let _ = fs::remove_file(&file.path);
        }
        self.seen = Some(head);
        Ok(head)
    }

    fn open(&self, now_ms: u64) -> Result<Opened, NotKept> {
        let lock = self.lock()?;
        let mut files = files::of(&self.folder).map_err(not("listed", &self.folder))?;
        // A file whose writer ended before its first line was whole says nothing.
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

    /// What root makes belongs to whom the folder belongs to, so that the service can go on with it.
    fn make(&self, options: &mut OpenOptions, path: &Path) -> Result<File, NotKept> {
        let file = files::open(options.mode(0o600), path).map_err(not("opened", path))?;
        let (Ok(own), Ok(folder)) = (file.metadata(), fs::metadata(&self.folder)) else { return Ok(file) };
        if own.uid() != folder.uid() {
            // Who may not has made a file that is its own, as everything that it makes.
            let _ = fchown(&file, Some(folder.uid()), Some(folder.gid()));
        }
        Ok(file)
    }
}

impl Opened {
    /// All of it comes to disk, or nothing stays.
    fn put(&mut self, bytes: &[u8]) -> Result<(), NotKept> {
        let written = self.file.write_all(bytes).and_then(|()| self.file.sync_data());
        if let Err(error) = written {
            // If that fails too, the next writer cuts off what is not whole.
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
    // A file without the end of a line holds none that is whole.
    fs::symlink_metadata(path).is_ok_and(|metadata| metadata.len() < LINE_BYTES_MAX as u64)
        && files::read(path).is_ok_and(|bytes| !bytes.contains(&b'\n'))
}

fn size(path: &Path) -> Result<u64, NotKept> {
    Ok(fs::symlink_metadata(path).map_err(not("read", path))?.len())
}

/// What stands last, or what is to be gone on from if that cannot be read and why; and how many bytes of a torn line were cut off.
type Found = Result<Head, (Head, String)>;

fn end_of(of: &LogFile) -> Result<(Found, u64), NotKept> {
    let opened = files::open(OpenOptions::new().read(true).write(true), &of.path);
    let mut file = opened.map_err(not("opened", &of.path))?;
    let length = size(&of.path)?;
    // A torn line and the whole one before it.
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
            // The chain goes on behind it; whoever verifies it is told of this line.
            let bytes = files::read(&of.path).map_err(not("read", &of.path))?;
            let lines = bytes.iter().filter(|byte| **byte == b'\n').count() as u64;
            Err((Head { line: of.first + lines.saturating_sub(1), hash: Hash::of(last.as_bytes()) }, why))
        }
    };
    Ok((found, torn_bytes))
}
