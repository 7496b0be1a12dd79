//! Writes the records of the node: incidents, the output of apps, and the owners of groups and meters.
//!
//! ```text
//!   monitor ──WriteRequest──> thread ──> files (records)
//! ```
//!
//! A slow disk can block the thread, but never the monitor. The queue between them holds [`REQUESTS_MAX`] requests. What
//! does not fit is dropped and counted. If the disk is full, the node continues and writes less.

use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::time::{Duration, SystemTime};

use crate::evidence::{self, EvidenceAsked, EvidenceRead};
use crate::incident::Incident;
use crate::incident_list::{self, Stored};
use crate::records::{
    INCIDENTS_MAX, LOG_BYTES_MAX, LOGS_MAX, incident, incident_file, incident_numbers, incidents_folder,
    log_files, logs_folder, owners_file, time_text,
};

/// The maximum number of waiting requests: what all apps may print in half a second.
const REQUESTS_MAX: usize = 4_096;

/// The maximum number of waiting reports about stored incidents: those of earlier nodes, and as many new ones. The monitor takes them twice a
/// second. What does not fit is not shown over REST.
const STORED_MAX: usize = 2 * INCIDENTS_MAX;

/// The maximum number of questions for evidence that are not answered. A further one is refused, so that a service that asks without
/// end does not fill the queue of records.
const READ_MAX: usize = 64;

/// How long the node waits for the disk when it ends.
const GOODBYE: Duration = Duration::from_secs(2);

/// The maximum number of open log files. Opening one more closes all others.
const OPEN_MAX: usize = 64;

/// How many incident numbers are tried. Another node may use the same folder and take a number first.
const TRIES_MAX: u64 = 100;

#[derive(Debug)]
enum WriteRequest {
    Line { app: String, generation: u64, unix_ms: u64, line: String },
    Incident(Box<Incident>),
    Owners(String),
    ReadEvidence(EvidenceAsked),
}

/// The monitor's end.
#[derive(Debug, Default)]
pub(crate) struct RecordWriter {
    requests: Option<SyncSender<WriteRequest>>,
    done: Option<Receiver<()>>,
    stored: Option<Receiver<Stored>>,
    read: Option<Receiver<EvidenceRead>>,
    /// Questions for evidence that [`RecordWriter::take_read`] has not answered yet.
    reading: usize,
    left_out: u64,
}

impl RecordWriter {
    /// Writes into this folder. With `None`, writes nothing.
    pub(crate) fn new(records: Option<PathBuf>) -> io::Result<RecordWriter> {
        let Some(records) = records else { return Ok(RecordWriter::default()) };
        let (requests, inbox) = sync_channel(REQUESTS_MAX);
        let (finished, done) = sync_channel(1);
        let (tell, stored) = sync_channel(STORED_MAX);
        let (tell_read, read) = sync_channel(READ_MAX);
        let body = move || {
            let mut files = Files::new(records, Some(tell));
            files.tell_all();
            for request in inbox {
                match request {
                    WriteRequest::ReadEvidence(asked) => drop(tell_read.try_send(files.read_evidence(asked))),
                    request => files.keep(request),
                }
            }
            // The monitor may have stopped waiting.
            let _ = finished.send(());
        };
        std::thread::Builder::new().name("writer".to_owned()).spawn(body)?;
        let (requests, done, stored, read) = (Some(requests), Some(done), Some(stored), Some(read));
        Ok(RecordWriter { requests, done, stored, read, reading: 0, left_out: 0 })
    }

    /// Has the evidence of an incident read. Returns whether there will be an answer.
    pub(crate) fn read_evidence(&mut self, asked: EvidenceAsked) -> bool {
        if self.reading >= READ_MAX {
            return false;
        }
        let requests = self.requests.as_ref();
        let sent =
            requests.is_some_and(|requests| requests.try_send(WriteRequest::ReadEvidence(asked)).is_ok());
        self.reading += usize::from(sent);
        sent
    }

    /// At most so many of those that were read and not taken yet.
    pub(crate) fn take_read(&mut self, count_max: usize) -> Vec<EvidenceRead> {
        let read: Vec<EvidenceRead> =
            self.read.as_ref().map(|read| read.try_iter().take(count_max).collect()).unwrap_or_default();
        self.reading = self.reading.saturating_sub(read.len());
        read
    }

    /// What happened to stored incidents since the last call. The first ones are those of earlier nodes.
    pub(crate) fn take_stored(&mut self) -> Vec<Stored> {
        self.stored.as_ref().map(|stored| stored.try_iter().collect()).unwrap_or_default()
    }

    /// Writes a line that an app printed.
    pub(crate) fn line(&mut self, app: &str, generation: u64, unix_ms: u64, line: &str) {
        if self.requests.is_some() {
            self.send(WriteRequest::Line { app: app.to_owned(), generation, unix_ms, line: line.to_owned() });
        }
    }

    /// Writes the owners of all groups and meters.
    pub(crate) fn owners(&mut self, text: String) {
        self.send(WriteRequest::Owners(text));
    }

    /// Writes an incident.
    pub(crate) fn incident(&mut self, incident: Box<Incident>) {
        self.send(WriteRequest::Incident(incident));
    }

    fn send(&mut self, request: WriteRequest) {
        let Some(requests) = &self.requests else { return };
        match requests.try_send(request) {
            Ok(()) if self.left_out == 0 => {}
            Ok(()) => {
                let left_out = std::mem::take(&mut self.left_out);
                tracing::warn!(
                    "the disk was too slow: {left_out} lines of apps and incidents were not stored"
                );
            }
            Err(TrySendError::Full(_)) => self.left_out += 1,
            Err(TrySendError::Disconnected(_)) => self.requests = None,
        }
    }
}

impl Drop for RecordWriter {
    fn drop(&mut self) {
        self.requests = None;
        if let Some(done) = self.done.take() {
            // If the disk takes longer, the node ends without it.
            let _ = done.recv_timeout(GOODBYE);
        }
    }
}

/// The open files. Used by the thread only.
struct Files {
    records: PathBuf,
    logs: HashMap<String, Log>,
    /// The subject of each incident, by number. `None` until the folder has been read.
    incidents: Option<BTreeMap<u64, String>>,
    /// `None` in tests, and after the monitor has ended.
    stored: Option<SyncSender<Stored>>,
    complained: bool,
}

struct Log {
    file: File,
    bytes: u64,
}

impl Files {
    fn new(records: PathBuf, stored: Option<SyncSender<Stored>>) -> Files {
        Files { records, logs: HashMap::new(), incidents: None, stored, complained: false }
    }

    /// Reports the incidents of earlier nodes. If the folder cannot be read, the next incident says so.
    fn tell_all(&mut self) {
        for number in incident_numbers(&self.records).unwrap_or_default() {
            if let Ok(incident) = incident(&self.records, number) {
                self.tell(Stored::Kept(incident_list::report(&incident)));
            }
        }
    }

    fn tell(&mut self, stored: Stored) {
        // If the monitor does not read, it does not show this incident. It is on the disk.
        if let Some(to) = &self.stored {
            let _ = to.try_send(stored);
        }
    }

    fn keep(&mut self, request: WriteRequest) {
        let kept = match request {
            WriteRequest::Line { app, generation, unix_ms, line } => {
                self.keep_line(&app, &format!("{} {generation} {line}\n", time_text(unix_ms)))
            }
            WriteRequest::Incident(incident) => self.keep_incident(*incident),
            WriteRequest::Owners(text) => write_whole(&owners_file(&self.records), text.as_bytes()),
            // The thread answers it.
            WriteRequest::ReadEvidence(_) => Ok(()),
        };
        match kept {
            Ok(()) => self.complained = false,
            Err(error) if !self.complained => {
                self.complained = true;
                let shown = self.records.display();
                tracing::warn!(
                    "incidents, the output of apps and the owners of groups cannot be stored in {shown}: {error}"
                );
            }
            Err(_) => {}
        }
    }

    fn read_evidence(&self, asked: EvidenceAsked) -> EvidenceRead {
        let read = incident(&self.records, asked.number);
        EvidenceRead { asked, evidence: read.ok().map(|incident| evidence::report(incident.evidence)) }
    }

    fn keep_line(&mut self, app: &str, line: &str) -> io::Result<()> {
        let length = u64::try_from(line.len()).unwrap_or(u64::MAX);
        let log = self.log(app)?;
        log.file.write_all(line.as_bytes())?;
        log.bytes = log.bytes.saturating_add(length);
        if log.bytes >= LOG_BYTES_MAX {
            self.logs.remove(app);
            let [now, before] = log_files(&self.records, app);
            fs::rename(now, before)?;
        }
        Ok(())
    }

    fn log(&mut self, app: &str) -> io::Result<&mut Log> {
        if !self.logs.contains_key(app) {
            if self.logs.len() >= OPEN_MAX {
                self.logs.clear();
            }
            make_folder(&logs_folder(&self.records))?;
            let [path, _] = log_files(&self.records, app);
            let known = path.exists();
            let mut options = OpenOptions::new();
            let file = options.append(true).create(true).mode(0o640).open(&path)?;
            let bytes = file.metadata()?.len();
            self.logs.insert(app.to_owned(), Log { file, bytes });
            if !known {
                forget_logs(&self.records, &self.logs);
            }
        }
        self.logs.get_mut(app).ok_or_else(|| io::Error::other("no log"))
    }

    fn keep_incident(&mut self, mut incident: Incident) -> io::Result<()> {
        make_folder(&incidents_folder(&self.records))?;
        let known = self.known()?;
        let first = known.last_key_value().map_or(1, |(last, _)| last + 1);
        let (subject, what, sentence) =
            (incident.subject().to_owned(), incident.what.words(), incident.finding.sentence.clone());
        for number in first..first + TRIES_MAX {
            incident.number = number;
            match write_new(&self.records, &incident) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
                Ok(()) => {
                    tracing::info!("incident {number}: {subject} {what}: {sentence}");
                    self.known()?.insert(number, subject);
                    self.tell(Stored::Kept(incident_list::report(&incident)));
                    return self.forget_incidents();
                }
            }
        }
        Err(io::Error::other("every tried number is in use"))
    }

    /// The incidents in the folder, including those of earlier nodes.
    fn known(&mut self) -> io::Result<&mut BTreeMap<u64, String>> {
        if self.incidents.is_none() {
            let whose = |number| {
                let subject = incident(&self.records, number).map(|incident| incident.subject().to_owned());
                (number, subject.unwrap_or_default())
            };
            let numbers = incident_numbers(&self.records)?;
            self.incidents = Some(numbers.into_iter().map(whose).collect());
        }
        Ok(self.incidents.get_or_insert_default())
    }

    fn forget_incidents(&mut self) -> io::Result<()> {
        while self.known()?.len() > INCIDENTS_MAX {
            let Some(number) = least_missed(self.known()?) else { break };
            self.known()?.remove(&number);
            // Another node may have deleted it.
            let _ = fs::remove_file(incident_file(&self.records, number));
            self.tell(Stored::Deleted(number));
        }
        Ok(())
    }
}

/// The oldest incident of the subject that has most incidents.
fn least_missed(incidents: &BTreeMap<u64, String>) -> Option<u64> {
    let mut counts: HashMap<&str, usize> = HashMap::new();
    for subject in incidents.values() {
        *counts.entry(subject).or_default() += 1;
    }
    let most = counts.values().copied().max()?;
    let has_most = |subject: &String| counts.get(subject.as_str()) == Some(&most);
    incidents.iter().find(|(_, subject)| has_most(subject)).map(|(number, _)| *number)
}

/// Writes to a temporary name, then links the final name. So a reader never sees half a file, and no file is overwritten.
fn write_new(records: &Path, incident: &Incident) -> io::Result<()> {
    let path = incident_file(records, incident.number);
    let draft = incidents_folder(records).join(format!(".new-{}", std::process::id()));
    // A leftover of a crash.
    let _ = fs::remove_file(&draft);
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o640).open(&draft)?;
    let linked = serde_json::to_vec_pretty(incident)
        .map_err(io::Error::other)
        .and_then(|text| file.write_all(&text))
        .and_then(|()| file.sync_all())
        .and_then(|()| fs::hard_link(&draft, &path));
    fs::remove_file(&draft)?;
    linked
}

/// It writes to a temporary name first: after a crash, the file has the old or the new content.
fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let draft = path.with_extension(format!("new-{}", std::process::id()));
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o640).open(&draft)?;
    file.write_all(bytes).and_then(|()| file.sync_all())?;
    fs::rename(&draft, path)
}

fn make_folder(folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)
}

/// Above [`LOGS_MAX`], deletes the logs with the oldest last write. It keeps open ones, because later writes to them
/// would be lost.
fn forget_logs(records: &Path, open: &HashMap<String, Log>) {
    let Ok(entries) = fs::read_dir(logs_folder(records)) else { return };
    let mut written = HashMap::<String, SystemTime>::new();
    for entry in entries.flatten() {
        let name = entry.file_name().into_string().unwrap_or_default();
        let app = name.strip_suffix(".log").or_else(|| name.strip_suffix(".log.1"));
        let Some((app, at)) = app.zip(entry.metadata().and_then(|file| file.modified()).ok()) else {
            continue;
        };
        let last = written.entry(app.to_owned()).or_insert(at);
        *last = at.max(*last);
    }
    let beyond = written.len().saturating_sub(LOGS_MAX);
    let mut closed: Vec<_> = written.into_iter().filter(|(app, _)| !open.contains_key(app)).collect();
    closed.sort_by(|(app, at), (other, other_at)| (at, app).cmp(&(other_at, other)));
    for path in closed.iter().take(beyond).flat_map(|(app, _)| log_files(records, app)) {
        // Most logs have no second file.
        let _ = fs::remove_file(path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::incident::IncidentKind;

    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Folder {
            let path = std::env::temp_dir().join(format!("burnet-writer-{name}-{}", std::process::id()));
            fs::create_dir_all(&path).unwrap();
            Folder(path)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn ended(app: &str) -> WriteRequest {
        WriteRequest::Incident(Box::new(Incident::of_app(IncidentKind::AppEnded, app, 1, "exit code 3", 5)))
    }

    fn line(app: &str, line: &str) -> WriteRequest {
        WriteRequest::Line { app: app.to_owned(), generation: 2, unix_ms: 0, line: line.to_owned() }
    }

    #[test]
    fn a_folder_that_cannot_be_written_costs_only_what_would_be_in_it() {
        let folder = Folder::new("file");
        let file = folder.0.join("file");
        fs::write(&file, "").unwrap();
        let mut files = Files::new(file, None);
        files.keep(ended("hub"));
        files.keep(line("hub", "x"));
        assert!(files.complained);
    }

    #[test]
    fn the_evidence_of_a_stored_incident_is_read() {
        let folder = Folder::new("evidence");
        let mut files = Files::new(folder.0.clone(), None);
        let mut incident = Incident::of_app(IncidentKind::AppEnded, "hub", 1, "exit code 3", 5);
        incident.evidence.last_lines = vec!["no room".to_owned()];
        files.keep(WriteRequest::Incident(Box::new(incident)));
        let read = |number| files.read_evidence(EvidenceAsked { generation: 1, ticket: 9, number });
        assert_eq!(read(1).evidence.map(|it| it.last_lines), Some(vec!["no room".to_owned()]));
        assert_eq!(
            read(2),
            EvidenceRead { asked: EvidenceAsked { generation: 1, ticket: 9, number: 2 }, evidence: None }
        );
        fs::write(incident_file(&folder.0, 2), "{").unwrap();
        assert_eq!(read(2).evidence, None);
    }

    #[test]
    fn incidents_are_numbered_on_from_those_that_are_there() {
        let folder = Folder::new("numbers");
        let mut files = Files::new(folder.0.clone(), None);
        files.keep(ended("hub"));
        let mut another = Files::new(folder.0.clone(), None);
        another.keep(ended("switch"));
        // The first writer does not know the second's incidents, and still takes the next free number.
        files.keep(ended("hub"));
        assert_eq!(incident_numbers(&folder.0).unwrap(), [1, 2, 3]);
        let apps: Vec<_> = (1..=3).map(|number| incident(&folder.0, number).unwrap().app.unwrap()).collect();
        assert_eq!(apps, ["hub", "switch", "hub"]);
    }

    #[test]
    fn a_damaged_incident_is_an_error_and_stands_in_nobodys_way() {
        let folder = Folder::new("damaged");
        fs::create_dir_all(incidents_folder(&folder.0)).unwrap();
        fs::write(incident_file(&folder.0, 7), "{\"unix_ms\":").unwrap();
        let mut files = Files::new(folder.0.clone(), None);
        files.keep(ended("hub"));
        assert!(incident(&folder.0, 7).is_err());
        assert_eq!(incident(&folder.0, 8).unwrap().number, 8);
        assert!(incident(&folder.0, 9).is_err());
    }

    #[test]
    fn who_has_most_incidents_loses_the_oldest() {
        let folder = Folder::new("most");
        let mut files = Files::new(folder.0.clone(), None);
        files.keep(ended("rare"));
        for _ in 0..=INCIDENTS_MAX {
            files.keep(ended("hub"));
        }
        let numbers = incident_numbers(&folder.0).unwrap();
        assert_eq!(numbers.len(), INCIDENTS_MAX);
        assert_eq!(numbers[..2], [1, 4]);
    }

    #[test]
    fn a_log_is_begun_anew_when_it_is_full_and_one_before_it_is_kept() {
        let folder = Folder::new("rotated");
        let mut files = Files::new(folder.0.clone(), None);
        let long = "x".repeat(64 << 10);
        for _ in 0..40 {
            files.keep(line("hub", &long));
        }
        files.keep(line("hub", "last"));
        let [now, before] = log_files(&folder.0, "hub").map(|path| fs::read_to_string(path).unwrap());
        assert!(now.ends_with("\n1970-01-01T00:00:00.000Z 2 last\n"), "{:?}", &now[now.len() - 60..]);
        let most = usize::try_from(LOG_BYTES_MAX).unwrap() + long.len() + 100;
        assert!(before.len() <= most && now.len() <= most);
        assert_eq!(fs::read_dir(logs_folder(&folder.0)).unwrap().count(), 2);
    }

    #[test]
    fn the_logs_of_many_apps_are_not_all_kept() {
        let folder = Folder::new("many");
        let mut files = Files::new(folder.0.clone(), None);
        for number in 0..LOGS_MAX + 9 {
            files.keep(line(&format!("app-{number}"), "hello"));
        }
        assert_eq!(fs::read_dir(logs_folder(&folder.0)).unwrap().count(), LOGS_MAX);
    }

    #[test]
    fn a_log_that_is_open_is_kept_however_long_ago_it_was_written_to() {
        let folder = Folder::new("open");
        let mut files = Files::new(folder.0.clone(), None);
        for number in 0..LOGS_MAX {
            files.keep(line(&format!("app-{number}"), "hello"));
        }
        files.keep(line("app-0", "hello"));
        let [now, _] = log_files(&folder.0, "app-0");
        File::options().append(true).open(&now).unwrap().set_modified(SystemTime::UNIX_EPOCH).unwrap();
        files.keep(line("one-more", "hello"));
        files.keep(line("app-0", "last"));
        assert!(fs::read_to_string(now).unwrap().ends_with("last\n"));
    }

    #[test]
    fn a_log_of_which_only_the_one_before_is_there_counts_too() {
        let folder = Folder::new("before");
        make_folder(&logs_folder(&folder.0)).unwrap();
        for number in 0..LOGS_MAX + 3 {
            let [_, before] = log_files(&folder.0, &format!("app-{number}"));
            File::create(before).unwrap().set_modified(SystemTime::UNIX_EPOCH).unwrap();
        }
        Files::new(folder.0.clone(), None).keep(line("hub", "hello"));
        assert_eq!(fs::read_dir(logs_folder(&folder.0)).unwrap().count(), LOGS_MAX);
        assert!(log_files(&folder.0, "hub")[0].exists());
    }

    #[test]
    fn records_are_on_the_disk_when_the_writer_is_dropped() {
        let folder = Folder::new("dropped");
        let mut writer = RecordWriter::new(Some(folder.0.clone())).unwrap();
        writer.line("hub", 1, 0, "hello");
        writer.incident(Box::new(Incident::of_node(IncidentKind::SafeMode, "r", 0)));
        drop(writer);
        assert_eq!(incident(&folder.0, 1).unwrap().subject(), "(node)");
        let [now, _] = log_files(&folder.0, "hub");
        assert_eq!(fs::read_to_string(now).unwrap(), "1970-01-01T00:00:00.000Z 1 hello\n");
    }
}
