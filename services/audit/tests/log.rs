//! Logs that are correct, incomplete after a kill, or altered.

#![allow(clippy::unwrap_used, reason = "a test may")]

use audit::files;
use audit::line::{self, Hash};
use audit::log::{Bounds, Log};
use audit::read::{Reader, Sound, Unsound, verify};
use audit_contract::Record;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// A folder of a test's own, gone when the test is.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Folder {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        Folder(std::env::temp_dir().join(format!("burnet-audit-{}-{number}", std::process::id())))
    }

    /// A log of five lines.
    fn with_five_lines() -> Folder {
        let folder = Folder::new();
        let mut log = folder.log();
        (1..=5).for_each(|number| append(&mut log, &format!("deed {number}")));
        folder
    }

    fn log(&self) -> Log {
        Log::at(self.0.clone(), Bounds::default())
    }

    fn path(&self) -> PathBuf {
        files::of(&self.0).unwrap().pop().unwrap().path
    }

    fn text(&self) -> String {
        fs::read_to_string(self.path()).unwrap()
    }

    fn lines(&self) -> Vec<String> {
        self.text().lines().map(str::to_owned).collect()
    }

    fn put(&self, lines: &[String]) {
        fs::write(self.path(), lines.iter().map(|line| format!("{line}\n")).collect::<String>()).unwrap();
    }

    /// The texts of the records, in order.
    fn texts(&self) -> Vec<String> {
        let mut texts = Vec::new();
        let mut reader = Reader::at(self.0.clone());
        reader
            .lines(|_, text| {
                texts.push(line::read(text).map_or_else(|why| why, |line| line.record.text));
                true
            })
            .unwrap();
        texts
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// What stands at the place of the next file is refused when a line is appended, and nothing comes of it.
fn check_refused(put_there: impl FnOnce(&Path), expected: &str) {
    let folder = Folder::new();
    fs::create_dir(&folder.0).unwrap();
    put_there(&folder.0.join("audit-000000000001.jsonl"));
    let refused = folder.log().append(vec![record("deed")], 0).unwrap_err().to_string();
    assert!(refused.contains(expected), "{refused}");
}

#[test]
fn what_a_link_leads_to_is_not_touched() {
    let elsewhere = Folder::new();
    fs::create_dir(&elsewhere.0).unwrap();
    let secret = elsewhere.0.join("secret");
    fs::write(&secret, "no end of a line").unwrap();
    check_refused(|path| std::os::unix::fs::symlink(&secret, path).unwrap(), "cannot be opened");
    assert_eq!(fs::read_to_string(&secret).unwrap(), "no end of a line");
}

#[test]
fn nobody_waits_for_a_pipe() {
    let pipe = |path: &Path| {
        let made = std::process::Command::new("mkfifo").arg(path).status().unwrap();
        assert!(made.success());
    };
    check_refused(pipe, "it is no file");
}

fn append(log: &mut Log, text: &str) {
    log.append(vec![record(text)], 0).unwrap();
}

fn record(text: &str) -> Record {
    Record::new(1, "installed", "operator", text)
}

/// The line that is named, and what is said of it; or the last line of a log that is sound.
fn verdict(folder: &Path) -> Result<u64, (u64, String)> {
    verdict_with(folder, None).map(|sound| sound.head.line)
}

fn verdict_with(folder: &Path, remembered: Option<Hash>) -> Result<Sound, (u64, String)> {
    verify(folder, remembered).map_err(|unsound| match unsound {
        Unsound::Damaged(damage) => (damage.line, damage.what),
        Unsound::Unreadable(error) => (0, error.to_string()),
    })
}

fn check_damage(tamper: impl FnOnce(&mut Vec<String>), line: u64, what: &str) {
    let folder = Folder::with_five_lines();
    let mut lines = folder.lines();
    tamper(&mut lines);
    folder.put(&lines);
    let (named, said) = verdict(&folder.0).unwrap_err();
    assert_eq!((named, said.contains(what)), (line, true), "{said}");
}

#[test]
fn the_first_line_that_is_not_as_it_was_written_is_named() {
    check_damage(|lines| lines[2] = lines[2].replace("deed 3", "deed 9"), 3, "it was altered");
    check_damage(
        |lines| drop(lines.remove(2)),
        3,
        "line 4 is in its place: this line is missing or was moved",
    );
    check_damage(|lines| lines.swap(1, 2), 2, "line 3 is in its place");
    check_damage(|lines| lines.insert(2, lines[0].clone()), 1, "it stands where line 3 should");
    check_damage(|lines| lines[4].truncate(20), 5, "it does not end with its hash");
    check_damage(|lines| drop(lines.drain(..2)), 1, "this line is missing");
    check_damage(|lines| lines[0].clear(), 1, "it does not end with its hash");
}

#[test]
fn a_line_that_was_altered_and_sealed_anew_no_longer_fits_the_next() {
    let resealed = |lines: &mut Vec<String>| {
        let old = line::read(&lines[2]).unwrap();
        let mut text = String::new();
        line::write(&mut text, 3, None, record("never happened"), &old.previous);
        lines[2] = text.trim_end().to_owned();
    };
    check_damage(resealed, 4, "it does not follow line 3");
}

#[test]
fn every_altered_byte_of_a_log_is_found() {
    let folder = Folder::with_five_lines();
    let good = fs::read(folder.path()).unwrap();
    for at in (0..good.len()).step_by(7) {
        let mut bytes = good.clone();
        bytes[at] = bytes[at].wrapping_add(1);
        fs::write(folder.path(), &bytes).unwrap();
        assert!(verdict(&folder.0).is_err(), "byte {at}");
    }
}

#[test]
fn lines_cut_off_at_the_end_are_found_by_a_remembered_hash_and_by_nothing_else() {
    let folder = Folder::with_five_lines();
    let lines = folder.lines();
    let last = line::read(&lines[4]).unwrap().hash;
    assert_eq!(verdict_with(&folder.0, Some(last)).unwrap().remembered, Some(5));
    folder.put(&lines[..4]);
    assert_eq!(verdict(&folder.0), Ok(4));
    let (line, what) = verdict_with(&folder.0, Some(last)).unwrap_err();
    assert_eq!(line, 4);
    assert!(what.contains("lines were cut off here"), "{what}");
}

#[test]
fn a_log_that_goes_on_still_holds_what_was_remembered() {
    let folder = Folder::with_five_lines();
    let third = line::read(&folder.lines()[2]).unwrap().hash;
    assert_eq!(verdict_with(&folder.0, Some(third)).unwrap().remembered, Some(3));
}

#[test]
fn a_process_that_still_runs_says_that_lines_were_cut_off_meanwhile() {
    let folder = Folder::new();
    let mut log = folder.log();
    (1..=3).for_each(|number| append(&mut log, &format!("deed {number}")));
    folder.put(&folder.lines()[..2]);
    append(&mut log, "deed 4");
    assert!(folder.texts()[2].contains("lines were taken away or altered"), "{:?}", folder.texts());
    assert_eq!(verdict(&folder.0).unwrap_err().0, 3);
}

#[test]
fn a_line_whose_writer_ended_half_way_is_found_and_then_cut_off_and_said() {
    let whole = Folder::with_five_lines().lines().pop().unwrap();
    for torn in [1, 20, whole.len()] {
        let folder = Folder::with_five_lines();
        fs::OpenOptions::new()
            .append(true)
            .open(folder.path())
            .unwrap()
            .write_all(&whole.as_bytes()[..torn])
            .unwrap();
        let (line, what) = verdict(&folder.0).unwrap_err();
        assert_eq!((line, what.contains("it is not whole")), (6, true), "{what}");
        append(&mut folder.log(), "deed 6");
        let said = format!("{torn} bytes of a line whose writer ended half-way were cut off");
        assert_eq!(folder.texts()[5..], [said, "deed 6".to_owned()]);
        assert_eq!(verdict(&folder.0), Ok(7));
    }
}

#[test]
fn a_file_whose_writer_ended_before_its_first_line_is_begun_anew() {
    for beginning in ["", "{\"line\":6"] {
        let folder = Folder::with_five_lines();
        fs::write(files::LogFile::beginning_with(&folder.0, 6).path, beginning).unwrap();
        append(&mut folder.log(), "deed 6");
        assert_eq!(verdict(&folder.0), Ok(6));
    }
}

#[test]
fn what_cannot_be_read_at_the_end_is_said_and_written_behind() {
    let folder = Folder::with_five_lines();
    let mut lines = folder.lines();
    lines[4] = "scribble".to_owned();
    folder.put(&lines);
    append(&mut folder.log(), "deed 6");
    assert!(folder.texts()[5].contains("the line before this one: it does not end with its hash"));
    assert_eq!(verdict(&folder.0).unwrap_err().0, 5);
}

#[test]
fn writers_in_turn_make_one_chain() {
    let folder = Folder::new();
    let (mut service, mut command) = (folder.log(), folder.log());
    for number in 0..10 {
        append(&mut service, &format!("told {number}"));
        append(&mut command, &format!("done {number}"));
    }
    assert_eq!(verdict(&folder.0), Ok(20));
}

#[test]
fn writers_at_once_make_one_chain() {
    let folder = Folder::new();
    let write = |name: &str| {
        let mut log = folder.log();
        (0..25).for_each(|number| append(&mut log, &format!("{name} {number}")));
    };
    std::thread::scope(|scope| ["a", "b", "c"].map(|name| drop(scope.spawn(move || write(name)))));
    assert_eq!(verdict(&folder.0), Ok(75));
}

#[test]
fn a_file_that_is_full_is_followed_by_another_and_the_oldest_goes() {
    let folder = Folder::new();
    let mut log = Log::at(folder.0.clone(), Bounds { file_bytes: 1_000, files: 3 });
    (1..=40).for_each(|number| append(&mut log, &format!("deed {number}")));
    let kept = files::of(&folder.0).unwrap();
    assert_eq!(kept.len(), 3);
    let sound = verdict_with(&folder.0, None).unwrap();
    assert_eq!((sound.files, sound.first), (3, kept[0].first));
    assert!(sound.first > 1);
    fs::remove_file(&kept[0].path).unwrap();
    let (line, what) = verdict(&folder.0).unwrap_err();
    assert_eq!(line, kept[1].first);
    assert!(what.contains("nothing says that the"), "{what}");
}

#[test]
fn a_file_that_could_not_be_taken_away_in_time_is_no_damage() {
    let folder = Folder::new();
    let mut log = Log::at(folder.0.clone(), Bounds { file_bytes: 1_000, files: 3 });
    let mut files_once = Vec::new();
    // Until the two files that were the oldest at some time have both gone.
    for number in 1..=60 {
        append(&mut log, &format!("deed {number}"));
        for file in files::of(&folder.0).unwrap() {
            let bytes = fs::read(&file.path).unwrap();
            files_once.retain(|(there, _): &(files::LogFile, Vec<u8>)| *there != file);
            files_once.push((file, bytes));
        }
    }
    let oldest = files::of(&folder.0).unwrap()[0].clone();
    let (gone, bytes) = files_once.iter().rev().find(|(file, _)| file.first < oldest.first).unwrap();
    fs::write(&gone.path, bytes).unwrap();
    assert_eq!(verdict_with(&folder.0, None).unwrap().first, gone.first);
}

#[test]
fn what_is_told_twice_is_kept_once() {
    let folder = Folder::new();
    let two = || vec![record("one"), record("two")];
    assert_eq!(folder.log().last_of("r").unwrap(), 0);
    assert_eq!(folder.log().append_told("r", 1, 0, two(), 0).unwrap(), 2);
    append(&mut folder.log(), "the operator's");
    assert_eq!(folder.log().last_of("r").unwrap(), 2);
    assert_eq!(folder.log().last_of("another").unwrap(), 0);
    let three = vec![record("one"), record("two"), record("three")];
    assert_eq!(folder.log().append_told("r", 1, 2, three, 0).unwrap(), 3);
    assert_eq!(folder.log().append_told("r", 1, 3, two(), 0).unwrap(), 3);
    assert_eq!(folder.texts(), ["one", "two", "the operator's", "three"]);
}

#[test]
fn what_cannot_be_written_is_an_error_and_changes_nothing() {
    let folder = Folder::new();
    fs::write(&folder.0, "a file in its place").unwrap();
    let error = folder.log().append(vec![record("x")], 0).unwrap_err().to_string();
    assert!(error.contains("cannot be made"), "{error}");
    fs::remove_file(&folder.0).unwrap();
    assert!(matches!(verify(&folder.0, None), Err(Unsound::Unreadable(_))));
}

#[test]
fn a_reader_goes_on_where_it_was_and_from_file_to_file() {
    let folder = Folder::new();
    let mut log = Log::at(folder.0.clone(), Bounds { file_bytes: 500, files: 99 });
    let mut reader = Reader::at(folder.0.clone());
    let mut seen = Vec::new();
    for number in 1..=12 {
        append(&mut log, &format!("deed {number}"));
        reader
            .lines(|_, text| {
                seen.push(line::read(text).unwrap().number);
                true
            })
            .unwrap();
    }
    assert_eq!(seen, (1..=12).collect::<Vec<u64>>());
}
