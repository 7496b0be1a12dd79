//! The code of a zone, and how a process that may not execute anything executes it.
//!
//! In: a path, in the root that the app will see. Out: an open file and its arguments.
//! It executes only that file, and only once. The file's descriptor has a number above those that the app may have.
//! The system call filter allows the execution of that number only, and the execution closes it.

use std::ffi::{CString, OsStr, OsString};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use rustix::process::{Resource, Rlimit};

use super::stage::{LaunchError, failed, other};

/// Longest first line of a script (execve(2): 256 bytes since Linux 5.1).
const SHEBANG_BYTES_MAX: usize = 256;

/// The code of an app.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Code {
    /// The launcher's own code: the same program continues as the app.
    Here,
    /// A shared object that the launcher's program loads.
    Library(PathBuf),
    /// A separate program.
    Program {
        /// Its file: a binary, or a script with `#!`.
        path: PathBuf,
        /// Its arguments, without its name.
        args: Vec<OsString>,
    },
}

impl Code {
    /// The path of the file, unless it is the launcher's own.
    pub(super) fn path(&self) -> Option<PathBuf> {
        match self {
            Code::Here => None,
            Code::Library(path) | Code::Program { path, .. } => Some(absolute(path)),
        }
    }

    /// Opens a program. Its descriptor is at least `open_files`.
    pub(super) fn open(&self, open_files: u32) -> Result<Option<Executable>, LaunchError> {
        match self {
            Code::Here | Code::Library(_) => Ok(None),
            Code::Program { path, args } => Executable::open(&absolute(path), args, open_files).map(Some),
        }
    }
}

/// An open program with its arguments.
#[derive(Debug)]
pub(super) struct Executable {
    file: OwnedFd,
    args: Vec<CString>,
    /// The interpreter of a script. It is then the file that `file` has open.
    interpreter: Option<PathBuf>,
}

impl Executable {
    fn open(path: &Path, args: &[OsString], open_files: u32) -> Result<Executable, LaunchError> {
        let stage = "the app's code";
        let named = |error: io::Error| LaunchError {
            stage,
            cause: io::Error::new(error.kind(), format!("{}: {error}", path.display())),
        };
        let file = File::open(path).map_err(named)?;
        let mut line = [0; SHEBANG_BYTES_MAX];
        let length = (&file).read(&mut line).map_err(named)?;
        let mut words = vec![path.as_os_str().to_owned()];
        let (file, interpreter) = match interpreter(&line[..length]) {
            None => (file, None),
            Some(before) => {
                let path = PathBuf::from(&before[0]);
                words.splice(0..0, before);
                (File::open(&path).map_err(named)?, Some(path))
            }
        };
        words.extend_from_slice(args);
        let args = words.into_iter().map(|word| CString::new(word.into_vec())).collect::<Result<_, _>>();
        Ok(Executable { file: beyond(&file, open_files)?, args: args.map_err(other(stage))?, interpreter })
    }

    /// The file that is executed instead of a script. Landlock must allow it, although it is outside of what the app
    /// was granted. The filter still allows one execution only, of the open file.
    pub(super) fn interpreter(&self) -> Option<PathBuf> {
        self.interpreter.clone()
    }

    pub(super) fn number(&self) -> i32 {
        self.file.as_raw_fd()
    }

    /// Returns only if it fails.
    pub(super) fn execute(self) -> io::Error {
        let environment: Vec<CString> =
            std::env::vars_os().filter_map(|(name, value)| variable(&name, &value)).collect();
        let (args, environment) = (pointers(&self.args), pointers(&environment));
        // SAFETY: both lists hold C strings that live until the end of this function, and end with a null pointer.
        // The path is a C string. Linux copies all of it before it replaces anything of this process.
        unsafe {
            libc::syscall(
                libc::SYS_execveat,
                self.file.as_raw_fd(),
                c"".as_ptr(),
                args.as_ptr(),
                environment.as_ptr(),
                libc::AT_EMPTY_PATH,
            );
        }
        io::Error::last_os_error()
    }
}

fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

/// The interpreter of a script and its argument, from the script's first line (execve(2), "Interpreter scripts").
fn interpreter(beginning: &[u8]) -> Option<Vec<OsString>> {
    let line = beginning.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?.trim_ascii();
    let mut words = line.splitn(2, |byte| byte.is_ascii_whitespace());
    let program = words.next().filter(|program| !program.is_empty())?;
    let argument = words.next().map(<[u8]>::trim_ascii).filter(|argument| !argument.is_empty());
    Some(std::iter::once(program).chain(argument).map(|word| OsStr::from_bytes(word).to_owned()).collect())
}

/// The same file at a number that no descriptor of the app can have.
fn beyond(file: &File, open_files: u32) -> Result<OwnedFd, LaunchError> {
    let limit = rustix::process::getrlimit(Resource::Nofile);
    rustix::process::setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit })
        .map_err(failed("open_files"))?;
    let least = i32::try_from(open_files).map_err(other("open_files"))?;
    rustix::io::fcntl_dupfd_cloexec(file, least).map_err(|errno| {
        let most = limit.maximum.map_or_else(|| "what Linux allows".to_owned(), |most| most.to_string());
        other("open_files")(format!("{errno}: it must be less than {most}, the node's own limit"))
    })
}

fn variable(name: &OsStr, value: &OsStr) -> Option<CString> {
    // A variable that arrived as a C string can be made one again.
    CString::new([name.as_bytes(), b"=", value.as_bytes()].concat()).ok()
}

fn pointers(words: &[CString]) -> Vec<*const libc::c_char> {
    words.iter().map(|word| word.as_ptr()).chain([std::ptr::null()]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(beginning: &str, expected: Option<&[&str]>) {
        let expected = expected.map(|words| words.iter().map(OsString::from).collect::<Vec<_>>());
        assert_eq!(interpreter(beginning.as_bytes()), expected, "{beginning:?}");
    }

    #[test]
    fn a_script_is_told_by_its_first_line() {
        check("", None);
        check("#!", None);
        check("#! \n/bin/sh", None);
        check("\x7fELF", None);
        check("#!/bin/sh", Some(&["/bin/sh"]));
        check("#! /usr/bin/env  python3 -u \nimport", Some(&["/usr/bin/env", "python3 -u"]));
    }
}
