//! Finds the interpreter for Python apps, and what it must be able to read.
//!
//! ```text
//!   burnet.toml: python.interpreter ──┐
//!   python3 in the operator's PATH ───┼─▶ asked once ──▶ Interpreter: its program, what it reads
//!   python3 in /usr/bin … (packages) ─┘
//! ```
//!
//! In: the operator's choice, and folders to search. Out: an [`Interpreter`]. It is found by running it once, before
//! the node starts and outside of any zone. It never opens the app's file. Otherwise the app's author could choose
//! what the node's user runs.

use rustix::fs::Access;
use serde::{Deserialize, Serialize};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The program to search for if the operator names none.
const PROGRAM: &str = "python3";

/// The folders to search after the operator's own path. Only root can put programs there.
const SYSTEM_FOLDERS: &str = "/usr/bin:/usr/local/bin";

/// The only environment variables that the interpreter gets for this question. Tools such as pyenv find interpreters
/// with them.
const VARIABLES: [&str; 2] = ["HOME", "PATH"];

/// The arguments of an interpreter in a zone. Its output is unbuffered, so that the operator sees it at once. It
/// reads nothing of a user's home, which a zone does not have.
const FLAGS: [&str; 2] = ["-u", "-s"];

/// The question to the interpreter: its real path, the paths of its modules, and whether `burnet` is among them. It
/// runs isolated (`-I`), because a zone has neither the node's start folder nor its environment. `-P` is set too; an
/// interpreter before 3.11 does not know it.
const QUESTION_FLAGS: [&str; 3] = ["-I", "-P", "-c"];
const QUESTION: &str = "\
import importlib.util, json, sys
print(json.dumps({'program': sys.executable, 'folders': [sys.prefix, sys.base_prefix, *sys.path],
                  'has_sdk': importlib.util.find_spec('burnet') is not None}))
";

/// The interpreter of Python apps.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Interpreter {
    /// The path of its program.
    pub program: PathBuf,
    /// Files and folders that it reads.
    pub reads: Vec<PathBuf>,
}

/// The interpreter's answer.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct InterpreterInfo {
    program: PathBuf,
    folders: Vec<PathBuf>,
    has_sdk: bool,
}

impl Interpreter {
    /// The interpreter in `said`, else the first `python3` in the absolute folders of `path`, which may be empty.
    /// Else the one in the system's folders.
    ///
    /// # Errors
    /// It does not exist, cannot be run, is older than Python 3.11, or has no module `burnet`. The text is a sentence
    /// for the operator.
    pub fn find(said: Option<&Path>, path: &OsStr) -> Result<Interpreter, String> {
        let folders = if path.is_empty() { OsStr::new(SYSTEM_FOLDERS) } else { path };
        let program = match said {
            Some(program) => program.to_owned(),
            None => look_up(folders).ok_or_else(|| {
                format!("there is no {PROGRAM} in {}: {ANOTHER}", folders.to_string_lossy())
            })?,
        };
        let own = ask(&program)?;
        if !own.has_sdk {
            let program = own.program.display();
            return Err(format!("{program} has no module burnet: pip install its wheel there, or {ANOTHER}"));
        }
        Ok(Interpreter { reads: folders_of(own.folders), program: own.program })
    }

    /// What a zone must be able to read so that this file runs.
    pub fn files_read(&self, file: &Path) -> impl Iterator<Item = PathBuf> {
        self.reads.iter().cloned().chain([file.to_owned()])
    }

    /// Its arguments to run this file.
    pub fn args(file: &Path) -> Vec<OsString> {
        FLAGS.iter().map(OsString::from).chain([file.as_os_str().to_owned()]).collect()
    }
}

/// What an operator can do about an unsuitable interpreter.
const ANOTHER: &str = "set python.interpreter in burnet.toml to another";

/// A relative folder would be a different one wherever the node is started.
fn look_up(folders: &OsStr) -> Option<PathBuf> {
    let absolute = std::env::split_paths(folders).filter(|folder| folder.is_absolute());
    absolute
        .map(|folder| folder.join(PROGRAM))
        .find(|program| program.is_file() && rustix::fs::access(program, Access::EXEC_OK).is_ok())
}

fn ask(name: &Path) -> Result<InterpreterInfo, String> {
    let mut command = Command::new(name);
    command.args(QUESTION_FLAGS).arg(QUESTION).stdin(Stdio::null()).current_dir("/").env_clear();
    command.envs(VARIABLES.iter().filter_map(|name| Some((name, std::env::var_os(name)?))));
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

/// The folders that exist and are not within another one of the list.
fn folders_of(mut said: Vec<PathBuf>) -> Vec<PathBuf> {
    said.retain(|path| path.is_absolute() && path.exists());
    said.sort();
    said.dedup_by(|path, folder| path.starts_with(folder));
    said
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_folder_within_another_is_said_once() {
        let said = ["", "relative", "/no/such/folder", "/usr/lib", "/usr", "/usr", "/tmp"];
        let kept = folders_of(said.iter().map(PathBuf::from).collect());
        assert_eq!(kept, [Path::new("/tmp"), Path::new("/usr")]);
    }

    #[test]
    fn a_program_that_is_no_python_is_refused_by_name() {
        let refused = |name: &str| ask(Path::new(name)).unwrap_err();
        assert!(refused("/no/such/python").starts_with("its interpreter /no/such/python cannot be run"));
        assert!(refused("/bin/true").contains("/bin/true is no Python"));
        assert!(refused("/bin/false").contains("is not a Python 3.11"));
    }

    fn check_look_up(folders: &str, expected: Option<&str>) {
        assert_eq!(look_up(OsStr::new(folders)), expected.map(PathBuf::from), "{folders}");
    }

    #[test]
    fn what_is_looked_up_is_an_executable_in_an_absolute_folder() {
        let folder = std::env::temp_dir().join(format!("burnet-interpreter-{}", std::process::id()));
        let place = |name: &str| folder.join(name).to_str().unwrap().to_owned();
        for (name, mode) in [("sound", 0o755), ("no-program", 0o644)] {
            let file = folder.join(name).join(PROGRAM);
            std::fs::create_dir_all(folder.join(name)).unwrap();
            std::fs::write(&file, "").unwrap();
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
        }
        std::fs::create_dir_all(folder.join("a-folder").join(PROGRAM)).unwrap();
        let sound = format!("{}/{PROGRAM}", place("sound"));
        check_look_up("", None);
        check_look_up(".:relative/bin:", None);
        check_look_up(&format!("{}:{}", place("no-program"), place("a-folder")), None);
        check_look_up(&format!("/nowhere:{}:{}", place("no-program"), place("sound")), Some(&sound));
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn who_finds_none_is_told_where_was_looked_and_what_to_do() {
        let refused = |said: Option<&str>, path: &str| {
            Interpreter::find(said.map(Path::new), OsStr::new(path)).unwrap_err()
        };
        let expected = "there is no python3 in /nowhere: set python.interpreter in burnet.toml to another";
        assert_eq!(refused(None, "/nowhere"), expected);
        assert!(refused(Some("/no/such/python"), "/usr/bin").starts_with("its interpreter /no/such/python"));
    }
}
