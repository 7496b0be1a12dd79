//! Namespaces for one run: network, mounts and processes.
//!
//! In: commands to run inside. Out: processes, and their logs in a folder. The first process inside waits for the end of a pipe that we
//! hold. When it closes, even because we were killed, Linux ends everything inside (pid_namespaces(7)).

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use super::bounded::{Printed, end_of};

/// Process 1 inside. `/run` is its own, because Open vSwitch, `ip netns` and Burnet have fixed paths there.
const FIRST_PROCESS: &str = "set -e\nip link set lo up\nmount -t tmpfs none /run\nmkdir -p /run/openvswitch\n\
                             echo ready\nexec cat";

/// How long a process may take to begin or to end. It only ends a hang.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// How much of a log an error shows.
const LOG_BYTES: usize = 2000;

/// The namespaces, and a folder that is visible from both sides. It is deleted at the end.
pub struct Sandbox {
    unshare: Child,
    /// When it closes, everything inside ends.
    lifeline: Option<ChildStdin>,
    folder: PathBuf,
}

impl Sandbox {
    /// Makes them.
    ///
    /// # Errors
    /// This is not root, or `unshare` fails.
    pub fn new() -> Result<Sandbox, String> {
        if !rustix::process::geteuid().is_root() {
            return Err("the testbed needs root: it makes network namespaces".to_owned());
        }
        static MADE: AtomicU32 = AtomicU32::new(0);
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("burnet-testbed-{}-{number}", std::process::id()));
        fs::create_dir_all(&folder).map_err(|why| format!("{} cannot be made: {why}", folder.display()))?;
        let mut command = Command::new("unshare");
        command.args(["--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "--"]);
        command.args(["sh", "-c", FIRST_PROCESS]).stdin(Stdio::piped()).stdout(Stdio::piped());
        command.stderr(log(&folder, "sandbox")?);
        let mut unshare = command.spawn().map_err(|why| format!("unshare cannot be run: {why}"))?;
        let (lifeline, stdout) = (unshare.stdin.take(), unshare.stdout.take());
        let sandbox = Sandbox { unshare, lifeline, folder };
        let printed = stdout.map(Printed::of).ok_or("unshare has no output")?;
        let line = printed.next("the first process of the namespaces", PATIENCE)?;
        if line.trim() == "ready" { Ok(sandbox) } else { Err(sandbox.failed("the namespaces", "sandbox")) }
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// A command that will run inside, with no input. Its outputs go to the log of this name, unless the caller sets them.
    ///
    /// # Errors
    /// The log cannot be written.
    pub fn command(&self, name: &str, program: impl AsRef<std::ffi::OsStr>) -> Result<Command, String> {
        let pid = self.unshare.id();
        let mut command = Command::new("nsenter");
        // unshare itself stays in the outer process namespace. Only its children are in the inner one.
        command.args(["--target", &pid.to_string(), "--net", "--mount"]);
        command.arg(format!("--pid=/proc/{pid}/ns/pid_for_children")).arg("--").arg(program);
        command.stdin(Stdio::null()).stdout(log(&self.folder, name)?).stderr(log(&self.folder, name)?);
        Ok(command)
    }

    /// Runs a line of words to its end.
    ///
    /// # Errors
    /// It fails: what it said.
    pub fn must(&self, line: &str) -> Result<(), String> {
        let mut words = line.split_whitespace();
        let program = words.next().ok_or("a command without words")?;
        let name = format!("must-{program}");
        let child = self.command(&name, program)?.args(words).spawn();
        let mut child = child.map_err(|why| format!("{line} cannot be run: {why}"))?;
        let status = end_of(&mut child, line, PATIENCE)?;
        if status.success() { Ok(()) } else { Err(self.failed(line, &name)) }
    }

    /// What a log has so far.
    pub fn log_of(&self, name: &str) -> String {
        let bytes = fs::read(self.folder.join(format!("{name}.log"))).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// An error with the end of a log.
    pub fn failed(&self, what: &str, name: &str) -> String {
        let log = self.log_of(name);
        let from = log.len().saturating_sub(LOG_BYTES);
        let end = log.char_indices().find(|(at, _)| *at >= from).map_or("", |(at, _)| &log[at..]);
        format!("{what} failed: {}", end.trim())
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        drop(self.lifeline.take());
        // Nothing can be done about an error at the end. If unshare is killed, it kills what is inside.
        let _ = end_of(&mut self.unshare, "unshare", PATIENCE);
        let _ = fs::remove_dir_all(&self.folder);
    }
}

fn log(folder: &Path, name: &str) -> Result<File, String> {
    let path = folder.join(format!("{name}.log"));
    let file = File::options().create(true).append(true).open(&path);
    file.map_err(|why| format!("{} cannot be written: {why}", path.display()))
}
