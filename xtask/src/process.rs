//! Starting other programs and, when one takes too long, stopping it with all that it started.
//!
//! In: a command line, a limit. Out: its exit, its lines. It never stops a process that is not a descendant of
//! the one that it was asked to run.

use std::collections::HashMap;
use std::env;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

/// How a program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// With exit code 0.
    Well,
    /// With another exit code, or by a signal.
    Badly,
    /// Not within its limit, so it was stopped.
    Stopped,
}

/// Cargo as this process was started with, in the root of the workspace.
pub fn cargo() -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(crate::tree::root()).stdin(Stdio::null());
    command
}

/// A program that was just written may still be open in the child of another thread, between its fork and its exec. Then Linux does not run it (ETXTBSY).
const BUSY_TRIES: usize = 100;
const BUSY_PAUSE: Duration = Duration::from_millis(20);

/// What `command` printed on standard output; an error when it fails.
pub fn output_of(command: &mut Command) -> Result<String, String> {
    let shown = shown(command);
    command.stderr(Stdio::inherit());
    let mut output = command.output();
    for _ in 0..BUSY_TRIES {
        if !output.as_ref().is_err_and(|error| error.kind() == std::io::ErrorKind::ExecutableFileBusy) {
            break;
        }
        thread::sleep(BUSY_PAUSE);
        output = command.output();
    }
    let output = output.map_err(|error| format!("cannot run {shown}: {error}"))?;
    if !output.status.success() {
        return Err(format!("{shown} failed ({})", output.status));
    }
    String::from_utf8(output.stdout).map_err(|_| format!("the output of {shown} is not UTF-8"))
}

/// Runs `command`, hands each line of its standard output to `on_line`, and stops it after `limit`.
pub fn run(command: &mut Command, limit: Duration, mut on_line: impl FnMut(&str)) -> Result<Ended, String> {
    let shown = shown(command);
    let mut child =
        command.stdout(Stdio::piped()).spawn().map_err(|error| format!("cannot run {shown}: {error}"))?;
    let stdout = child.stdout.take().ok_or("a child without standard output")?;
    // Lines come over a channel because a read from the pipe cannot be given up at the limit.
    let (send, lines) = mpsc::channel();
    let reader = thread::spawn(move || {
        for line in BufReader::new(stdout).split(b'\n').map_while(Result::ok) {
            if send.send(String::from_utf8_lossy(&line).into_owned()).is_err() {
                return;
            }
        }
    });
    let deadline = Instant::now() + limit;
    loop {
        match lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(line) => on_line(&line),
            Err(mpsc::RecvTimeoutError::Disconnected) => break,
            Err(mpsc::RecvTimeoutError::Timeout) => {
                stop(child.id());
                let _ = child.wait();
                return Ok(Ended::Stopped);
            }
        }
    }
    let _ = reader.join();
    let status = child.wait().map_err(|error| format!("cannot wait for {shown}: {error}"))?;
    Ok(if status.success() { Ended::Well } else { Ended::Badly })
}

/// Stops `pid` and its descendants, parents first so that none starts another child meanwhile.
fn stop(pid: u32) {
    let mut doomed = vec![pid];
    let children = children();
    let mut next = 0;
    while let Some(parent) = doomed.get(next) {
        doomed.extend(children.get(parent).into_iter().flatten());
        next += 1;
    }
    let pids: Vec<String> = doomed.iter().map(u32::to_string).collect();
    // The standard library cannot signal a process that it did not start itself; the shell can.
    let _ = Command::new("sh").arg("-c").arg(format!("kill -KILL {}", pids.join(" "))).status();
}

/// The children of every process of this machine, from /proc.
fn children() -> HashMap<u32, Vec<u32>> {
    let mut children: HashMap<u32, Vec<u32>> = HashMap::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        if let Some(parent) =
            fs::read_to_string(entry.path().join("stat")).ok().as_deref().and_then(parent_in)
        {
            children.entry(parent).or_default().push(pid);
        }
    }
    children
}

/// The parent's pid in a line of /proc/PID/stat: the second word after the program's name, which stands in
/// brackets and may itself hold spaces and brackets (proc(5)).
fn parent_in(stat: &str) -> Option<u32> {
    stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

/// Where `program` lies in PATH or in one of the folders that Debian keeps root's programs in.
pub fn find(program: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let folders = env::split_paths(&path).chain(["/usr/sbin", "/sbin"].map(PathBuf::from));
    folders.map(|folder| folder.join(program)).find(|candidate| candidate.is_file())
}

/// Whether this process may do everything: its effective user id is 0.
pub fn is_root() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ids = status.lines().find_map(|line| line.strip_prefix("Uid:"));
    ids.and_then(|ids| ids.split_whitespace().nth(1)) == Some("0")
}

/// The command line of `command`, for people.
pub fn shown(command: &Command) -> String {
    let program = Path::new(command.get_program()).file_name().unwrap_or(command.get_program());
    let words = std::iter::once(program).chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}

/// Runs a command that is to succeed within `limit`, and shows what it says.
///
/// # Errors
/// A sentence that names the command.
pub fn must(command: &mut Command, limit: Duration) -> Result<(), String> {
    let shown = shown(command);
    match run(command.stdin(Stdio::null()), limit, |line| println!("{line}"))? {
        Ended::Well => Ok(()),
        Ended::Badly => Err(format!("`{shown}` failed; its message is above")),
        Ended::Stopped => Err(format!("`{shown}` took longer than {} s", limit.as_secs())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_parent(stat: &str, expected: Option<u32>) {
        assert_eq!(parent_in(stat), expected, "{stat}");
    }

    #[test]
    fn the_parent_is_found_behind_any_program_name() {
        check_parent("", None);
        check_parent("12 (no end", None);
        check_parent("12 (sh) S", None);
        check_parent("12 (sh) S 7 12 12 0", Some(7));
        check_parent("12 (a) R 9 (b) S 7 12", Some(7));
    }

    #[test]
    fn a_program_that_exceeds_its_limit_is_stopped() {
        let mut sleeper = Command::new("sleep");
        sleeper.arg("600");
        assert_eq!(run(&mut sleeper, Duration::ZERO, |_| ()), Ok(Ended::Stopped));
    }

    #[test]
    fn what_must_succeed_says_how_it_did_not() {
        let must = |program: &str, words: &[&str], limit| must(Command::new(program).args(words), limit);
        let long = Duration::from_secs(600);
        assert_eq!(must("true", &[], long), Ok(()));
        assert_eq!(must("false", &[], long), Err("`false` failed; its message is above".to_owned()));
        assert_eq!(
            must("sleep", &["600"], Duration::ZERO),
            Err("`sleep 600` took longer than 0 s".to_owned())
        );
        assert!(must("no-such-program", &[], long).unwrap_err().starts_with("cannot run no-such-program: "));
    }

    #[test]
    fn stopping_a_process_stops_its_children_too() {
        let mut shell = Command::new("sh")
            .args(["-c", "sleep 600 & echo $!; wait"])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut child = String::new();
        BufReader::new(shell.stdout.take().unwrap()).read_line(&mut child).unwrap();
        stop(shell.id());
        shell.wait().unwrap();
        let stat = format!("/proc/{}/stat", child.trim());
        // A killed process may be seen for a moment, and as a zombie for as long as nobody waits for it.
        let runs = |stat: String| stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.starts_with(" Z"));
        let deadline = Instant::now() + Duration::from_secs(60);
        while fs::read_to_string(&stat).is_ok_and(runs) {
            assert!(Instant::now() < deadline, "the child still runs");
            thread::yield_now();
        }
    }

    #[test]
    fn each_line_is_handed_on_and_the_exit_code_told() {
        let mut shell = Command::new("sh");
        shell.args(["-c", "echo one; echo two; exit 3"]);
        let mut lines = Vec::new();
        let ended = run(&mut shell, Duration::from_secs(60), |line| lines.push(line.to_owned())).unwrap();
        assert_eq!((ended, lines), (Ended::Badly, vec!["one".to_owned(), "two".to_owned()]));
    }
}
