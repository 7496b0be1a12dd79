//! A separate network, process table and `/run` for one scenario.
//!
//! In: a name. Out: commands that run inside. It leaves nothing behind. The first process inside waits for the end of
//! a pipe that we hold. When the pipe closes, even because we were killed, Linux ends everything inside and the
//! namespaces too (pid_namespaces(7)).

use crate::Result;
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

/// The script of process 1 inside. It hides `/run` because Open vSwitch and Mininet use fixed paths there. It hides
/// `/tmp` because Mininet's clean-up deletes other programs' files there. `$1` and `$2` are the paths that must stay
/// visible.
const FIRST_PROCESS: &str = r#"
set -e
ip link set lo up
mount -t tmpfs none /run
mkdir -p /run/openvswitch /run/kept/1 /run/kept/2
mount --bind "$1" /run/kept/1
mount --bind "$2" /run/kept/2
mount -t tmpfs none /tmp
keep() { case "$2" in /tmp/*|/run/*) mkdir -p "$2"; mount --bind "/run/kept/$1" "$2";; esac; }
keep 1 "$1"
keep 2 "$2"
echo ready
exec cat
"#;

/// How much of each log a failure shows: enough for the last connection's story.
const LOG_LINES: usize = 60;

/// How many sandboxes this process has made.
static SANDBOXES: AtomicU32 = AtomicU32::new(0);

/// Namespaces for network, mounts and processes, and a folder for logs that is visible from both sides.
pub struct Sandbox {
    unshare: Child,
    /// When it closes, the sandbox ends.
    lifeline: Option<ChildStdin>,
    folder: PathBuf,
}

/// How a program inside ended, and what it printed on both its outputs.
#[derive(Debug, Clone)]
pub struct Answer {
    /// Whether its exit code was 0.
    pub well: bool,
    /// What it printed.
    pub text: String,
}

impl Sandbox {
    /// Makes the namespaces. Its folder has the name and a number, since scenarios of different kinds may have the same name. Needs root.
    pub fn new(name: &str) -> Result<Sandbox> {
        let target = target_folder()?;
        let number = SANDBOXES.fetch_add(1, Ordering::Relaxed);
        let folder = target.join("system-tests").join(format!("{name}-{}-{number}", std::process::id()));
        fs::create_dir_all(&folder).map_err(|error| format!("cannot make {}: {error}", folder.display()))?;
        let mut command = Command::new("unshare");
        command.args(["--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "--"]);
        command.args(["sh", "-c", FIRST_PROCESS, "sh"]).arg(&folder).arg(&target);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(log(&folder, "sandbox")?);
        let mut unshare = command.spawn().map_err(|error| format!("cannot run unshare: {error}"))?;
        let lifeline = unshare.stdin.take();
        let stdout = unshare.stdout.take();
        let sandbox = Sandbox { unshare, lifeline, folder };
        let mut line = String::new();
        let _ = BufReader::new(stdout.ok_or("unshare without an output")?).read_line(&mut line);
        if line.trim() != "ready" {
            return Err(format!("no sandbox: {}", sandbox.read_log("sandbox")));
        }
        Ok(sandbox)
    }

    /// The end of every log, for a scenario that failed.
    pub fn logs(&self) -> String {
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let mut logs: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
        logs.retain(|path| path.extension().is_some_and(|extension| extension == "log"));
        logs.sort();
        logs.iter().map(|path| end_of(path)).collect()
    }

    /// The folder for logs, certificates and databases of this sandbox. Its path is the same inside and outside.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The path outside of a file inside.
    pub fn inside(&self, path: &str) -> PathBuf {
        PathBuf::from(format!("/proc/{}/root{path}", self.unshare.id()))
    }

    /// A command that will run `program` inside, with no input. The caller may set its outputs.
    pub fn command(&self, program: &str) -> Command {
        let pid = self.unshare.id();
        let mut command = Command::new("nsenter");
        // unshare itself stays in the outer process namespace. Only its children are in the inner one.
        command.args(["--target", &pid.to_string(), "--net", "--mount"]);
        command.arg(format!("--pid=/proc/{pid}/ns/pid_for_children")).arg("--").arg(program);
        command.stdin(Stdio::null());
        command
    }

    /// Runs `program` until it ends, at most for `limit`.
    pub fn run(&self, limit: Duration, program: &str, words: &[&str]) -> Result<Answer> {
        let mut command = self.command("timeout");
        command.args(["--kill-after=5", &limit.as_secs().to_string(), program]).args(words);
        // To a file and not a pipe: a daemon that keeps the pipe open would keep us waiting for its end.
        command.stdout(log(&self.folder, "answer")?).stderr(log(&self.folder, "answer")?);
        let status = command.status().map_err(|error| format!("cannot run {program}: {error}"))?;
        let text = self.read_log("answer");
        let _ = fs::remove_file(self.folder.join("answer.log"));
        Ok(Answer { well: status.success(), text })
    }

    /// Like [`Sandbox::run`], but a failure of the program is an error.
    pub fn must(&self, limit: Duration, program: &str, words: &[&str]) -> Result<String> {
        let Answer { well, text } = self.run(limit, program, words)?;
        if well { Ok(text) } else { Err(format!("{program} {}: {text}", words.join(" "))) }
    }

    /// A file for the output of a long-running program; `read_log(name)` reads it.
    pub fn log(&self, name: &str) -> Result<File> {
        log(&self.folder, name)
    }

    /// The present content of the log `name`.
    pub fn read_log(&self, name: &str) -> String {
        let bytes = fs::read(self.folder.join(format!("{name}.log"))).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        drop(self.lifeline.take());
        let _ = self.unshare.wait();
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// How many scenarios that work run at the same time. Each has a network of its own. With two, two cores were idle for more than three quarters
/// of the time; many would starve each other.
const WORKING_MAX: u32 = 3;

/// How many of them run now.
static WORKING: Mutex<u32> = Mutex::new(0);
static HAS_ENDED: Condvar = Condvar::new();

/// The place of a scenario that works.
struct Working;

impl Working {
    fn begin() -> Working {
        let working = WORKING.lock().unwrap_or_else(PoisonError::into_inner);
        let is_full = |working: &mut u32| *working >= WORKING_MAX;
        let mut working = HAS_ENDED.wait_while(working, is_full).unwrap_or_else(PoisonError::into_inner);
        *working += 1;
        Working
    }
}

impl Drop for Working {
    fn drop(&mut self) {
        *WORKING.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
        HAS_ENDED.notify_one();
    }
}

/// Runs `body` in a sandbox called `name`. If it fails, the test fails with its sentence and the ends of all logs. At most three of these run
/// at the same time, however many threads the tests have.
///
/// # Panics
/// If the sandbox cannot be made or `body` fails: this is how a test fails.
pub fn scenario(name: &str, body: impl FnOnce(&Sandbox) -> Result<()>) {
    let _working = Working::begin();
    scenario_that_waits(name, body);
}

/// The same for a scenario that mostly waits, so that any number of them can run at the same time.
///
/// # Panics
/// As [`scenario`].
pub fn scenario_that_waits(name: &str, body: impl FnOnce(&Sandbox) -> Result<()>) {
    let told = |sandbox: Sandbox| body(&sandbox).map_err(|reason| format!("{reason}\n{}", sandbox.logs()));
    if let Err(reason) = Sandbox::new(name).and_then(told) {
        panic!("{name}: {reason}");
    }
}

fn log(folder: &Path, name: &str) -> Result<File> {
    let path = folder.join(format!("{name}.log"));
    let file = File::options().create(true).append(true).open(&path);
    file.map_err(|error| format!("cannot write {}: {error}", path.display()))
}

fn end_of(path: &Path) -> String {
    let text = String::from_utf8_lossy(&fs::read(path).unwrap_or_default()).into_owned();
    let lines: Vec<&str> = text.lines().collect();
    let end = lines.len().saturating_sub(LOG_LINES);
    format!("--- {}\n{}\n", path.display(), lines[end..].join("\n"))
}

/// Cargo's target folder: tests run from `TARGET/PROFILE/deps`.
fn target_folder() -> Result<PathBuf> {
    let here = std::env::current_exe().map_err(|error| format!("cannot find this program: {error}"))?;
    here.ancestors().nth(3).map(Path::to_path_buf).ok_or("this program is not in a target folder".to_owned())
}
