//! The journals of a slice: a file for each switch, and the thread that writes them.
//!
//! ```text
//!   Slicer::write_journal ──frame or whole file──> Journals ──jobs──> thread ──> FOLDER/0000000000000001.journal
//!                                                        <──whether it could be written──┘
//! ```
//!
//! In: what changed at a switch. Out: files, and lines for the operator. The slice never waits for the disk: the thread does. What a frame says is
//! decided in the crate `slicer`.

use flow::DatapathId;
use slicer::Slicer;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

/// How long changes are collected before they are written. So much may be missing after a kill.
const WRITE_AFTER_MS: u64 = 20;
/// How long after a failure a file is tried again.
const RETRY_MS: u64 = 10_000;
/// The longest file of a whole state: some ten times what 4,096 rules need. Beyond it, the switch has no file.
const WHOLE_BYTES_MAX: usize = 8 << 20;
/// A file is written again, as a whole, once it is longer than this, and than this many times the whole state.
const GROWN_BYTES: usize = 1 << 20;
const GROWN_TIMES: usize = 4;
/// The longest file that is read. One that is written is shorter: before the frame that exceeds the bound, it is written again as a whole.
const READ_BYTES_MAX: u64 = 32 << 20;
/// While so many bytes wait for the thread, no more are given to it: the changes stay marked.
const WAITING_BYTES_MAX: usize = 8 << 20;

/// What the thread is to do.
enum Job {
    /// Append a frame.
    Append(DatapathId, Vec<u8>),
    /// Put this content in the place of the file.
    Replace(DatapathId, Vec<u8>),
    /// Delete the file.
    Remove(DatapathId),
}

/// What is known of a file.
#[derive(Debug, Default)]
struct Known {
    /// Its length after the last whole content. `None`: the next content has to be whole.
    whole: Option<usize>,
    length: usize,
    /// Not before this time, after a failure.
    retry_ms: u64,
    /// Whether the operator was told that it is not kept.
    has_told: bool,
}

impl Known {
    fn wants_whole(&self) -> bool {
        let grown = |whole: usize| self.length > (whole * GROWN_TIMES).clamp(GROWN_BYTES, WHOLE_BYTES_MAX);
        self.whole.is_none_or(grown)
    }
}

/// The files of one slice.
pub(crate) struct Journals {
    folder: PathBuf,
    known: BTreeMap<DatapathId, Known>,
    jobs: Option<Sender<Job>>,
    results: Receiver<(DatapathId, Result<(), String>)>,
    /// Bytes that the thread has not written yet.
    waiting: Arc<AtomicUsize>,
    thread: Option<JoinHandle<()>>,
    due_ms: Option<u64>,
    /// Switches that the slice has lost: they have no files any more.
    forgotten: BTreeSet<DatapathId>,
    /// Lines for the operator.
    lines: Vec<String>,
}

impl Journals {
    /// The files in this folder, which exists.
    ///
    /// # Errors
    /// The system has no thread left: a sentence.
    pub(crate) fn new(folder: &Path) -> Result<Journals, String> {
        let (jobs, to_do) = channel();
        let (done, results) = channel();
        let waiting = Arc::new(AtomicUsize::new(0));
        let (place, counted) = (folder.to_path_buf(), waiting.clone());
        let thread = std::thread::Builder::new().name("journals".to_owned());
        let thread = thread
            .spawn(move || carry_out_all(&place, &to_do, &done, &counted))
            .map_err(|error| format!("the thread that keeps the rules of the slice cannot start: {error}"))?;
        Ok(Journals {
            folder: folder.to_path_buf(),
            known: BTreeMap::new(),
            jobs: Some(jobs),
            results,
            waiting,
            thread: Some(thread),
            due_ms: None,
            forgotten: BTreeSet::new(),
            lines: Vec::new(),
        })
    }

    /// Gives the slice what an earlier process has kept of these switches. A damaged file is put aside.
    pub(crate) fn recall(
        &mut self,
        slicer: &mut Slicer,
        switches: impl Iterator<Item = DatapathId>,
        now_ms: u64,
    ) {
        for datapath in switches {
            let file = place_of(&self.folder, datapath);
            let recalled = match read(&file) {
                Ok(Some(bytes)) => slicer.recall(datapath, &bytes).map_err(str::to_owned),
                Ok(None) => Ok(()),
                Err(error) => Err(error.to_string()),
            };
            if let Err(why) = recalled {
                self.put_aside(datapath, &file, &why, now_ms);
            }
        }
        slicer.keep_journals();
    }

    fn put_aside(&mut self, datapath: DatapathId, file: &Path, why: &str, now_ms: u64) {
        let aside = file.with_extension(format!("damaged-{now_ms}"));
        let where_to = match fs::rename(file, &aside) {
            Ok(()) => format!("it is now {}", aside.display()),
            Err(error) => format!("it cannot be renamed: {error}"),
        };
        self.lines.push(format!(
            "the file {} with the tenant's rules at {datapath} cannot be used ({why}): {where_to}; the tenant's table of rules begins empty, and its old rules stay in the switch until it deletes all",
            file.display()
        ));
    }

    /// Writes what changed, if it is time. Returns whether a later call is due.
    pub(crate) fn on_time(&mut self, slicer: &mut Slicer, now_ms: u64) -> bool {
        self.take_results(now_ms);
        if slicer.has_unsaved() && now_ms >= *self.due_ms.get_or_insert(now_ms + WRITE_AFTER_MS) {
            self.write(slicer, now_ms);
            self.due_ms = Some(now_ms + WRITE_AFTER_MS);
        }
        self.due_ms = self.due_ms.filter(|_| slicer.has_unsaved());
        self.due_ms.is_some()
    }

    /// When something is due next.
    pub(crate) fn next_ms(&self) -> Option<u64> {
        self.due_ms
    }

    /// Writes all that changed, also before its time.
    pub(crate) fn write(&mut self, slicer: &mut Slicer, now_ms: u64) {
        for datapath in slicer.unsaved() {
            if self.waiting.load(Ordering::Relaxed) > WAITING_BYTES_MAX {
                return;
            }
            let known = self.known.entry(datapath).or_default();
            if now_ms < known.retry_ms {
                continue;
            }
            let mut bytes = Vec::new();
            if self.forgotten.contains(&datapath) {
                slicer.write_journal(datapath, false, &mut bytes);
                continue;
            }
            let is_whole = slicer.write_journal(datapath, known.wants_whole(), &mut bytes);
            let length = bytes.len();
            if is_whole && length > WHOLE_BYTES_MAX {
                self.give(Job::Remove(datapath));
                let why = format!("they take more than {} MiB", WHOLE_BYTES_MAX >> 20);
                self.fail(datapath, &why, now_ms);
                continue;
            }
            known.length = if is_whole { length } else { known.length + length };
            known.whole = if is_whole { Some(length) } else { known.whole };
            self.waiting.fetch_add(length, Ordering::Relaxed);
            self.give(if is_whole { Job::Replace(datapath, bytes) } else { Job::Append(datapath, bytes) });
        }
    }

    /// Deletes the files of these switches, which the slice has lost.
    pub(crate) fn forget(&mut self, switches: impl Iterator<Item = DatapathId>) {
        for datapath in switches {
            self.forgotten.insert(datapath);
            self.give(Job::Remove(datapath));
        }
    }

    /// Lines for the operator since the last call.
    pub(crate) fn take_lines(&mut self) -> Vec<String> {
        std::mem::take(&mut self.lines)
    }

    fn give(&self, job: Job) {
        if let Some(jobs) = &self.jobs {
            // The thread ends only with this value.
            drop(jobs.send(job));
        }
    }

    fn take_results(&mut self, now_ms: u64) {
        while let Ok((datapath, result)) = self.results.try_recv() {
            match result {
                Ok(()) => self.known.entry(datapath).or_default().has_told = false,
                Err(why) => self.fail(datapath, &why, now_ms),
            }
        }
    }

    /// A file cannot be kept. It is tried again later, and the operator is told once.
    fn fail(&mut self, datapath: DatapathId, why: &str, now_ms: u64) {
        let known = self.known.entry(datapath).or_default();
        (known.whole, known.retry_ms) = (None, now_ms + RETRY_MS);
        if !std::mem::replace(&mut known.has_told, true) {
            self.lines.push(format!(
                "the tenant's rules at {datapath} are not kept ({why}): after a restart, its table of rules there would be empty"
            ));
        }
    }
}

impl Drop for Journals {
    /// What was given to the thread is written.
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}

/// The journal of a switch in the folder of its slice.
pub fn place_of(folder: &Path, datapath: DatapathId) -> PathBuf {
    folder.join(format!("{:016x}.journal", datapath.0))
}

/// The content of a file, if it exists.
fn read(file: &Path) -> io::Result<Option<Vec<u8>>> {
    let file = match File::open(file) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut bytes = Vec::new();
    file.take(READ_BYTES_MAX + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > READ_BYTES_MAX {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "it is longer than a journal can be"));
    }
    Ok(Some(bytes))
}

/// The thread: it ends when no more jobs can come.
fn carry_out_all(
    folder: &Path,
    jobs: &Receiver<Job>,
    results: &Sender<(DatapathId, Result<(), String>)>,
    waiting: &AtomicUsize,
) {
    let mut open = BTreeMap::new();
    for job in jobs {
        let (datapath, is_whole, length) = match &job {
            Job::Append(datapath, bytes) => (*datapath, false, bytes.len()),
            Job::Replace(datapath, bytes) => (*datapath, true, bytes.len()),
            Job::Remove(datapath) => (*datapath, false, 0),
        };
        let done = carry_out(folder, &job, &mut open);
        waiting.fetch_sub(length, Ordering::Relaxed);
        if done.is_err() {
            // A file that misses a frame must not be recalled.
            open.remove(&datapath);
            drop(fs::remove_file(place_of(folder, datapath)));
        }
        if is_whole || done.is_err() {
            drop(results.send((datapath, done.map_err(|error| error.to_string()))));
        }
    }
}

fn carry_out(folder: &Path, job: &Job, open: &mut BTreeMap<DatapathId, File>) -> io::Result<()> {
    match job {
        Job::Append(datapath, bytes) => match open.get_mut(datapath) {
            Some(file) => file.write_all(bytes),
            // A job before it has failed, and has said so.
            None => Ok(()),
        },
        Job::Replace(datapath, bytes) => {
            let place = place_of(folder, *datapath);
            let new = place.with_extension("new");
            let mut file = File::create(&new)?;
            file.write_all(bytes)?;
            fs::rename(&new, &place)?;
            open.insert(*datapath, file);
            Ok(())
        }
        Job::Remove(datapath) => {
            open.remove(datapath);
            match fs::remove_file(place_of(folder, *datapath)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
                _ => Ok(()),
            }
        }
    }
}

#[cfg(test)]
mod tests;
