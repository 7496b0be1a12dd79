//! Reads and follows the log, and verifies that it is unaltered.
//!
//! In: a folder. Out: its lines in order, or the first line that is altered, missing or misplaced. It changes nothing, and
//! a reader needs no lock: text after the last line break is ignored.

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use crate::files::{self, LOCK, LogFile};
use crate::line::{self, Hash, LINE_BYTES_MAX, Line};
use crate::log::Head;

/// The position of a reader.
#[derive(Debug)]
pub struct Reader {
    folder: PathBuf,
    file: Option<LogFile>,
    offset: u64,
}

impl Reader {
    /// Starts at the beginning.
    pub fn at(folder: PathBuf) -> Reader {
        Reader { folder, file: None, offset: 0 }
    }

    /// Passes each new complete line to the function, with its file. The function returns `false` to stop.
    ///
    /// # Errors
    /// A file cannot be read.
    pub fn lines(&mut self, mut take: impl FnMut(&LogFile, &str) -> bool) -> io::Result<()> {
        loop {
            let files = files::of(&self.folder)?;
            let later = |file: &&LogFile| self.file.as_ref().is_none_or(|own| file.first > own.first);
            let next = files.iter().find(later).cloned();
            if let Some(file) = &self.file {
                match files::open(OpenOptions::new().read(true), &file.path) {
                    Ok(opened) => {
                        let file = file.clone();
                        if !self.rest_of(&file, opened, &mut take)? {
                            return Ok(());
                        }
                    }
                    // The file was deleted because of the size limit.
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                    Err(error) => return Err(error),
                }
            }
            // A later file existed before the rest was read, so this file is complete.
            let Some(next) = next else { return Ok(()) };
            (self.file, self.offset) = (Some(next), 0);
        }
    }

    fn rest_of(
        &mut self,
        of: &LogFile,
        mut file: File,
        take: &mut impl FnMut(&LogFile, &str) -> bool,
    ) -> io::Result<bool> {
        file.seek(SeekFrom::Start(self.offset))?;
        let mut reader = BufReader::new(file);
        let mut bytes = Vec::new();
        loop {
            bytes.clear();
            let bound = LINE_BYTES_MAX as u64 + 1;
            let read = io::Read::take(&mut reader, bound).read_until(b'\n', &mut bytes)?;
            let whole = bytes.last() == Some(&b'\n');
            if !whole && read <= LINE_BYTES_MAX {
                return Ok(true);
            }
            self.offset += read as u64;
            let text = String::from_utf8_lossy(&bytes);
            if !take(of, text.trim_end_matches('\n')) {
                return Ok(false);
            }
        }
    }
}

/// The result of verifying an unaltered log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sound {
    /// The number of files.
    pub files: usize,
    /// The number of the first line.
    pub first: u64,
    /// The last line.
    pub head: Head,
    /// The line of the given hash, if there was one.
    pub remembered: Option<u64>,
}

/// The first error in a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// The file.
    pub file: PathBuf,
    /// The number of the line, or the expected number.
    pub line: u64,
    /// What is wrong.
    pub what: String,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, line {}: {}", self.file.display(), self.line, self.what)
    }
}

/// Why the verification failed.
#[derive(Debug)]
pub enum Unsound {
    /// The log cannot be read, or does not exist.
    Unreadable(io::Error),
    /// The first error.
    Damaged(Damage),
}

/// Verifies every line. With a hash, also checks that the log still has the line with this hash. This is the only way to detect
/// that lines at the end were removed.
///
/// # Errors
/// The first wrong line.
pub fn verify(folder: &Path, remembered: Option<Hash>) -> Result<Sound, Unsound> {
    let until = whole_length(folder).map_err(Unsound::Unreadable)?;
    let mut check = Check { chain: None, first: 0, rotated: None, remembered, found: None };
    let mut damage = None;
    let mut reader = Reader::at(folder.to_owned());
    let read = reader.lines(|file, text| {
        damage = check.line(file, text).err();
        damage.is_none()
    });
    read.map_err(Unsound::Unreadable)?;
    if let Some(damage) = damage {
        return Err(Unsound::Damaged(damage));
    }
    let files = files::of(folder).map_err(Unsound::Unreadable)?;
    let head = check.chain.unwrap_or_default();
    let path = files.last().map(|file| file.path.clone()).unwrap_or_else(|| folder.to_owned());
    let broken = |line, what: String| Err(Unsound::Damaged(Damage { file: path.clone(), line, what }));
    let reads_as_far = |(file, length): &(LogFile, u64)| {
        reader
            .file
            .as_ref()
            .is_some_and(|own| own.first > file.first || own == file && reader.offset >= *length)
    };
    if !until.as_ref().is_none_or(reads_as_far) {
        return broken(head.line + 1, "it is not whole: its writer ended half-way, or it was cut".to_owned());
    }
    // A file that could not be deleted may still exist, although the log records its deletion.
    if check.first > 1 && check.rotated.is_none_or(|up_to| up_to < check.first - 1) {
        let what = format!(
            "it is the first, and nothing says that the {} before it are no longer kept",
            check.first - 1
        );
        return broken(check.first, what);
    }
    if let (Some(hash), None) = (remembered, check.found) {
        return broken(
            head.line,
            format!("no line has the hash {hash}: lines were cut off here, or it is of another log"),
        );
    }
    Ok(Sound { files: files.len(), first: check.first, head, remembered: check.found })
}

/// The length of the last file while no process appends. So an incomplete line there comes from a crash. The lock is held only for this,
/// because reading the whole log takes longer than a writer waits. A log without a lock file has no lock.
fn whole_length(folder: &Path) -> io::Result<Option<(LogFile, u64)>> {
    let lock = files::open(OpenOptions::new().read(true), &folder.join(LOCK))?;
    lock.lock_shared()?;
    let Some(last) = files::of(folder)?.pop() else { return Ok(None) };
    let length = fs::symlink_metadata(&last.path)?.len();
    Ok(Some((last, length)))
}

struct Check {
    chain: Option<Head>,
    first: u64,
    /// The last line whose deletion the log records.
    rotated: Option<u64>,
    remembered: Option<Hash>,
    found: Option<u64>,
}

impl Check {
    fn line(&mut self, file: &LogFile, text: &str) -> Result<(), Damage> {
        let expected = self.chain.map_or(file.first, |head| head.line + 1);
        let damage = |line, what: String| Err(Damage { file: file.path.clone(), line, what });
        let Line { number, record, previous, hash, .. } = match line::read(text) {
            Ok(line) => line,
            Err(what) => return damage(expected, what),
        };
        if number > expected {
            let what = format!("line {number} is in its place: this line is missing or was moved");
            return damage(expected, what);
        }
        if number < expected {
            return damage(
                number,
                format!("it stands where line {expected} should: lines were put into another order"),
            );
        }
        let before =
            self.chain.map_or(if number == 1 { Hash::default() } else { previous }, |head| head.hash);
        if previous != before {
            let what = format!("it does not follow line {}: one of the two was altered", number - 1);
            return damage(number, what);
        }
        if self.chain.is_none() {
            self.first = number;
        }
        if record.what == "rotated" && record.who == "audit" {
            let digits = record.text.strip_prefix("the lines up to ").and_then(|text| text.split(' ').next());
            self.rotated = digits.and_then(|digits| digits.parse().ok());
        }
        if self.remembered == Some(hash) {
            self.found = Some(number);
        }
        self.chain = Some(Head { line: number, hash });
        Ok(())
    }
}
