//! `burnet app logs`: the output of an app, from the files that the node keeps.
//!
//! ```text
//!   APP.log.1, APP.log ──> the last lines ──> out
//!   APP.log, as it grows and is replaced by a new file ──> each new line (--follow)
//! ```
//!
//! It needs no running node.

use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use monitor::records;

use super::package::state_folder;
use crate::cli::CommandError;
use crate::cli::incidents::AppLogsArgs;

/// How often `--follow` checks the log.
const LOOK: Duration = Duration::from_millis(200);

/// How many bytes of a log are read at most. A node starts a new file at [`records::LOG_BYTES_MAX`], and the last
/// line may exceed that.
const BYTES_MAX: u64 = 2 * records::LOG_BYTES_MAX;

/// Runs `burnet app logs`. It prints the lines itself, because with `--follow` the output has no end.
pub fn logs(args: &AppLogsArgs, out: &mut impl Write) -> Result<(), CommandError> {
    let folder = state_folder(args.state.state.as_deref())?;
    let [now, before] = log_of(&folder, &args.name)?;
    let (mut text, mut followed) = (Vec::new(), Followed::default());
    if let Ok(file) = File::open(&before) {
        file.take(BYTES_MAX).read_to_end(&mut text)?;
    }
    text.extend(followed.read(&now)?);
    let printed = out.write_all(last_lines(&text, args.lines)).and_then(|()| out.flush());
    let mut going_on = printed;
    while args.follow && going_on.is_ok() {
        std::thread::sleep(LOOK);
        let more = followed.read(&now)?;
        going_on = out.write_all(&more).and_then(|()| out.flush());
    }
    match going_on {
        // If the reader has closed the pipe, that is no error.
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(()),
    }
}

fn log_of(folder: &Path, app: &str) -> Result<[PathBuf; 2], CommandError> {
    let files = records::log_files(folder, app);
    if app.contains('/') || !files.iter().any(|file| file.is_file()) {
        let names = names_of_logs(&files);
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let suggestion = package::toml_text::nearest(app, &names)
            .map_or(String::new(), |near| format!("; did you mean {near}?"));
        return Err(CommandError::Usage(format!(
            "there is no log of an app {app} in {}: it has printed nothing, or its node has another state folder (--state DIR){suggestion}",
            folder.display()
        )));
    }
    Ok(files)
}

/// The apps whose logs are in the same folder.
fn names_of_logs(files: &[PathBuf; 2]) -> Vec<String> {
    let [now, _] = files;
    let Some(Ok(entries)) = now.parent().map(std::fs::read_dir) else { return Vec::new() };
    let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    names.filter_map(|name| name.strip_suffix(".log").map(str::to_owned)).collect()
}

/// The last `count` lines.
fn last_lines(text: &[u8], count: usize) -> &[u8] {
    if count == 0 {
        return &[];
    }
    let body = text.strip_suffix(b"\n").unwrap_or(text);
    let ends = body.iter().enumerate().rev().filter(|(_, byte)| **byte == b'\n');
    let start = ends.map(|(place, _)| place + 1).nth(count - 1).unwrap_or(0);
    &text[start..]
}

/// A file that grows, and that another file may replace.
#[derive(Default)]
struct Followed {
    file: Option<File>,
}

impl Followed {
    /// What was written since the last call. Nothing if the file does not exist yet.
    fn read(&mut self, path: &Path) -> io::Result<Vec<u8>> {
        let mut text = Vec::new();
        self.read_on(&mut text)?;
        if self.is_another(path)? {
            // What was written to the old file just before it was replaced.
            self.read_on(&mut text)?;
            self.file = match File::open(path) {
                Err(error) if error.kind() == ErrorKind::NotFound => None,
                opened => Some(opened?),
            };
            self.read_on(&mut text)?;
        }
        Ok(text)
    }

    fn read_on(&mut self, text: &mut Vec<u8>) -> io::Result<()> {
        if let Some(file) = &mut self.file {
            file.take(BYTES_MAX).read_to_end(text)?;
        }
        Ok(())
    }

    fn is_another(&self, path: &Path) -> io::Result<bool> {
        let Some(file) = &self.file else { return Ok(true) };
        let own = file.metadata()?;
        Ok(std::fs::metadata(path).is_ok_and(|there| (there.dev(), there.ino()) != (own.dev(), own.ino())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_are_whole_lines() {
        let check = |text: &str, count: usize, expected: &str| {
            assert_eq!(String::from_utf8_lossy(last_lines(text.as_bytes(), count)), expected);
        };
        check("", 3, "");
        check("a\nb\nc\n", 0, "");
        check("a\nb\nc\n", 2, "b\nc\n");
        check("a\nb\nc\n", 3, "a\nb\nc\n");
        check("a\nb\nc\n", 9, "a\nb\nc\n");
        check("a\nb", 1, "b");
    }

    #[test]
    fn a_misspelt_app_is_answered_with_the_one_that_is_like_it() {
        let folder = std::env::temp_dir().join(format!("burnet-logs-of-{}", std::process::id()));
        let [log, _] = records::log_files(&folder, "learning-switch");
        std::fs::create_dir_all(log.parent().unwrap()).unwrap();
        std::fs::write(&log, b"one\n").unwrap();
        let refused = |app: &str| log_of(&folder, app).unwrap_err().to_string();
        assert!(refused("learning-swich").ends_with("; did you mean learning-switch?"));
        assert!(!refused("hub").contains("did you mean"));
        assert!(log_of(&folder, "learning-switch").is_ok());
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_log_that_is_begun_anew_is_followed_without_a_gap() {
        let folder = std::env::temp_dir().join(format!("burnet-logs-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("hub.log");
        let mut followed = Followed::default();
        assert_eq!(followed.read(&path).unwrap(), b"");
        let mut file = File::create(&path).unwrap();
        file.write_all(b"one\n").unwrap();
        assert_eq!(followed.read(&path).unwrap(), b"one\n");
        file.write_all(b"two\n").unwrap();
        std::fs::rename(&path, folder.join("hub.log.1")).unwrap();
        assert_eq!(followed.read(&path).unwrap(), b"two\n");
        file.write_all(b"three\n").unwrap();
        std::fs::write(&path, b"four\n").unwrap();
        assert_eq!(followed.read(&path).unwrap(), b"three\nfour\n");
        assert_eq!(followed.read(&path).unwrap(), b"");
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
