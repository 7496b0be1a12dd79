//! What runs an app in Python: which interpreter, and what it must be able to read.
//!
//! In: the app's file, and this process's `PATH`. Out: an [`Interpreter`], found by running it once, before the node starts and outside of any
//! zone. It never runs the app's file.

use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What runs where no first line says otherwise.
const DEFAULT: &str = "python3";

/// Longest first line that is looked at, in bytes; as Linux does (execve(2)).
const FIRST_LINE_BYTES_MAX: u64 = 256;

/// What a zone's interpreter runs with: output at once, so that the operator sees it; nothing of a user's home, which a zone has not.
const FLAGS: [&str; 2] = ["-u", "-s"];

/// Asked of the interpreter: where it really is, where its modules are, and whether `burnet` is among them. `-P` and `-E`, so that neither the
/// folder in which the node was started nor its environment answers for a zone, which has neither.
const QUESTION_FLAGS: [&str; 4] = ["-E", "-s", "-P", "-c"];
const QUESTION: &str = "\
import importlib.util, json, sys
print(json.dumps({'program': sys.executable, 'folders': [sys.prefix, sys.base_prefix, *sys.path],
                  'has_sdk': importlib.util.find_spec('burnet') is not None}))
";

/// The interpreter of an app in Python.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Interpreter {
    /// Its program.
    pub program: PathBuf,
    /// Files and folders that it reads.
    pub reads: Vec<PathBuf>,
}

/// What the interpreter says of itself.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct OwnWords {
    program: PathBuf,
    folders: Vec<PathBuf>,
    has_sdk: bool,
}

impl Interpreter {
    /// The one that the file's first line names (`#!/path/to/python`, `#!/usr/bin/env NAME`), else `python3` in `PATH`.
    ///
    /// # Errors
    /// It cannot be run, is older than Python 3.11, or has no module `burnet`; a sentence for the operator.
    pub fn of(file: &Path) -> Result<Interpreter, String> {
        let name = named_by(&first_line(file)?).unwrap_or_else(|| DEFAULT.into());
        let own = ask(&name).map_err(|trouble| format!("{}: {trouble}", file.display()))?;
        if !own.has_sdk {
            let (file, program) = (file.display(), own.program.display());
            return Err(format!("{file}: {program} has no module burnet: pip install its wheel there"));
        }
        Ok(Interpreter { reads: folders(own.folders), program: own.program })
    }

    /// Its arguments for this file.
    pub fn args(file: &Path) -> Vec<OsString> {
        FLAGS.iter().map(OsString::from).chain([file.as_os_str().to_owned()]).collect()
    }
}

fn first_line(file: &Path) -> Result<String, String> {
    let open = File::open(file).map_err(|error| format!("{} cannot be read: {error}", file.display()))?;
    let mut line = Vec::new();
    // What cannot be read or is no text names no interpreter; the interpreter will say what is wrong with it.
    let _ = BufReader::new(open.take(FIRST_LINE_BYTES_MAX)).read_until(b'\n', &mut line);
    Ok(String::from_utf8_lossy(&line).into_owned())
}

/// The program in a first line; behind `env` it is the first word that is neither an option nor a variable.
fn named_by(line: &str) -> Option<PathBuf> {
    let mut words = line.strip_prefix("#!")?.split_ascii_whitespace();
    let program = Path::new(words.next()?);
    if program.file_name().is_some_and(|name| name == "env") {
        return words.find(|word| !word.starts_with('-') && !word.contains('=')).map(PathBuf::from);
    }
    Some(program.to_owned())
}

fn ask(name: &Path) -> Result<OwnWords, String> {
    let mut command = Command::new(name);
    command.args(QUESTION_FLAGS).arg(QUESTION).stdin(Stdio::null());
    let shown = name.display();
    let output =
        command.output().map_err(|error| format!("its interpreter {shown} cannot be run: {error}"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        let last = said.lines().last().unwrap_or("it said nothing").trim();
        return Err(format!("its interpreter {shown} is not a Python 3.11 or later: {last}"));
    }
    serde_json::from_slice(&output.stdout).map_err(|_| format!("its interpreter {shown} is no Python"))
}

/// Those of the folders that are there and not within another.
fn folders(mut said: Vec<PathBuf>) -> Vec<PathBuf> {
    said.retain(|path| path.is_absolute() && path.exists());
    said.sort();
    said.dedup_by(|path, folder| path.starts_with(folder));
    said
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: &str, expected: Option<&str>) {
        assert_eq!(named_by(line), expected.map(PathBuf::from), "{line}");
    }

    #[test]
    fn the_first_line_names_the_interpreter_or_none() {
        check("", None);
        check("#!", None);
        check("#!/usr/bin/env", None);
        check("#!/usr/bin/env -S", None);
        check("import burnet", None);
        check("#!/usr/bin/env python3\n", Some("python3"));
        check("#! /usr/bin/env -S A=1 python3.12 -u\n", Some("python3.12"));
        check("#!/opt/venv/bin/python -u\n", Some("/opt/venv/bin/python"));
    }

    #[test]
    fn a_folder_within_another_is_said_once() {
        let said = ["", "relative", "/no/such/folder", "/usr/lib", "/usr", "/usr", "/tmp"];
        let kept = folders(said.iter().map(PathBuf::from).collect());
        assert_eq!(kept, [Path::new("/tmp"), Path::new("/usr")]);
    }

    #[test]
    fn a_program_that_is_no_python_is_refused_by_name() {
        let refused = |name: &str| ask(Path::new(name)).unwrap_err();
        assert!(refused("/no/such/python").starts_with("its interpreter /no/such/python cannot be run"));
        assert!(refused("/bin/true").contains("/bin/true is no Python"));
        assert!(refused("/bin/false").contains("is not a Python 3.11"));
    }

    #[test]
    fn a_file_that_is_not_there_is_named() {
        assert!(Interpreter::of(Path::new("/no/such/app.py")).unwrap_err().contains("/no/such/app.py"));
    }
}
