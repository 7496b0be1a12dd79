//! What a zone's sandbox denies to an app. Each attempt runs in a process of its own.
//!
//! The test starts itself again in a role. The role confines its process, makes the attempt, and writes Linux's
//! answer to standard output.
//! If the test runs as root, each attempt is made twice: as on a node that runs as root, which gives the app its own
//! user, and as another user.
//! There is no libtest harness, because a role must be alone in its process.

// Without the harness nothing here is `cfg(test)`, which allows unwrap in other tests.
#![allow(clippy::unwrap_used)]
#![allow(unsafe_code)]

mod attempts;
mod listening;
mod lives;

use std::ffi::OsString;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

use rustix::process::geteuid;
use zone::launch::{self, Code, Confined};
use zone::{Confinement, Limits, Sandbox};

/// The user that an app of root's node becomes here, and the one whose node the second round is.
const APP_USER: u32 = 1_900_000_001;
const OTHER_USER: u32 = 54_321;

/// How a role ended, and what it said.
pub(crate) struct End {
    pub(crate) status: ExitStatus,
    pub(crate) said: String,
    /// What the operator was told, by the launcher.
    pub(crate) told: String,
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["attempt", name] => return attempts::play(name),
        ["live", name] => return lives::play(name),
        ["probe"] => return println!("executed"),
        ["probe", "again"] => return lives::execute_again(),
        _ => {}
    }
    attempts::what_an_app_must_not_do_is_denied();
    attempts::what_an_app_lives_on_is_there();
    lives::hold();
    listening::hold();
    println!("sandbox: all zones held as {}", if geteuid().is_root() { "root" } else { "an ordinary user" });
    if geteuid().is_root() {
        as_another_user();
    }
}

/// The same once more, where the node is not root and has user namespaces instead.
fn as_another_user() {
    let folder = std::env::temp_dir().join(format!("burnet-sandbox-{}", std::process::id()));
    std::fs::create_dir(&folder).unwrap();
    let copy = folder.join("sandbox");
    std::fs::copy(std::env::current_exe().unwrap(), &copy).unwrap();
    let status = Command::new(&copy).current_dir("/").uid(OTHER_USER).gid(OTHER_USER).status();
    std::fs::remove_dir_all(&folder).unwrap();
    assert!(status.unwrap().success(), "as another user it does not hold");
}

/// Runs a role to its end.
pub(crate) fn run(kind: &str, name: &str) -> End {
    let output = Command::new(std::env::current_exe().unwrap())
        .args([kind, name])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    End { status: output.status, said: text(output.stdout), told: text(output.stderr) }
}

/// A zone in which nothing is granted.
pub(crate) fn nothing_granted() -> Confinement {
    let user = geteuid().is_root().then_some(APP_USER);
    let sandbox = Sandbox { own_user: user.is_some(), ..Sandbox::default() };
    let limits = Limits { processes: Some(64), ..Limits::default() };
    Confinement {
        limits,
        sandbox,
        code: Code::Here,
        user,
        cgroups: Vec::new(),
        others_write: Vec::new(),
        known_gaps: Vec::new(),
    }
}

pub(crate) fn close(confinement: &Confinement) -> Confined {
    let confined = launch::confine(confinement).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(confined.not_enforced(), [], "the machine that tests run on enforces everything");
    confined
}

pub(crate) fn program(path: impl Into<PathBuf>, args: &[&str]) -> Code {
    Code::Program { path: path.into(), args: args.iter().map(OsString::from).collect() }
}

pub(crate) fn ended_by(status: ExitStatus) -> (Option<i32>, Option<i32>) {
    (status.code(), status.signal())
}

/// Whether a process with this word among its arguments is there, in any namespace.
pub(crate) fn is_running(word: &str) -> bool {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let arguments = |folder: &Path| std::fs::read(folder.join("cmdline")).unwrap_or_default();
    let mut arguments = processes.map(|process| arguments(&process.path()));
    arguments.any(|arguments| arguments.split(|byte| *byte == 0).any(|argument| argument == word.as_bytes()))
}
