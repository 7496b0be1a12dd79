//! Waits for processes of a testbed, each with a bound.
//!
//! In: a process, and how long it may take. Out: what it printed and how it ended, or an error that says which one did not end. A process above its
//! bound is killed. What it has started in the namespaces ends with them.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

/// How often a process is looked at.
const LOOK: Duration = Duration::from_millis(5);

/// The end of a process.
///
/// # Errors
/// It does not end in time. It is killed then.
pub fn end_of(child: &mut Child, what: &str, limit: Duration) -> Result<ExitStatus, String> {
    let began = Instant::now();
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Ok(status),
            Ok(None) if began.elapsed() < limit => thread::sleep(LOOK),
            Ok(None) => {
                end(child);
                return Err(format!("{what} has not ended within {} s", limit.as_secs_f64()));
            }
            Err(why) => return Err(format!("{what} cannot be waited for: {why}")),
        }
    }
}

/// Kills a process.
pub fn end(child: &mut Child) {
    // It may have ended by itself.
    let _ = child.kill();
    let _ = child.wait();
}

/// What a process prints, read by a thread, so that the wait for it has a bound.
pub struct Printed(Receiver<String>);

impl Printed {
    /// The first line, and then all of the rest.
    pub fn of(stdout: impl Read + Send + 'static) -> Printed {
        let (to, printed) = sync_channel(2);
        thread::spawn(move || {
            let mut stdout = BufReader::new(stdout);
            let (mut line, mut rest) = (String::new(), String::new());
            // An error means that no more was said. If nobody listens any more, nobody wants it.
            let _ = stdout.read_line(&mut line);
            let _ = to.send(line);
            let _ = stdout.read_to_string(&mut rest);
            let _ = to.send(rest);
        });
        Printed(printed)
    }

    /// The next part.
    ///
    /// # Errors
    /// It does not come in time.
    pub fn next(&self, what: &str, limit: Duration) -> Result<String, String> {
        self.0
            .recv_timeout(limit)
            .map_err(|_| format!("{what} says nothing within {} s", limit.as_secs_f64()))
    }
}

/// Runs a command to its end. Returns what it printed, and how it ended.
///
/// # Errors
/// It cannot be run, or does not end in time.
pub fn run(command: &mut Command, what: &str, limit: Duration) -> Result<(String, ExitStatus), String> {
    let spawned = command.stdout(Stdio::piped()).spawn();
    let mut child = spawned.map_err(|why| format!("{what} cannot be run: {why}"))?;
    let printed = child.stdout.take().map(Printed::of);
    let status = end_of(&mut child, what, limit)?;
    // The process has ended. Only a process that it has left behind could keep its output open.
    let parts =
        printed.map(|printed| Ok::<_, String>(printed.next(what, limit)? + &printed.next(what, limit)?));
    Ok((parts.transpose()?.unwrap_or_default(), status))
}

/// Processes that are killed when this ends, however it ends.
#[derive(Default)]
pub struct Killed(pub Vec<Child>);

impl Drop for Killed {
    fn drop(&mut self) {
        self.0.iter_mut().for_each(end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sh(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]).stdin(Stdio::null());
        command
    }

    #[test]
    fn what_a_command_prints_is_read_to_its_end_however_much_it_is() {
        let (text, status) =
            run(&mut sh("echo one; yes | head -c 200000; exit 3"), "sh", Duration::from_secs(60)).unwrap();
        assert_eq!((text.len(), text.starts_with("one\ny"), status.code()), (200_004, true, Some(3)));
        let (text, status) = run(&mut sh("true"), "sh", Duration::from_secs(60)).unwrap();
        assert_eq!((text.as_str(), status.success()), ("", true));
    }

    #[test]
    fn a_process_that_does_not_end_is_killed_and_named() {
        let why = run(&mut sh("exec sleep 1000"), "the sleeper", Duration::from_millis(50)).unwrap_err();
        assert_eq!(why, "the sleeper has not ended within 0.05 s");
        let mut silent = sh("exec sleep 1000").stdout(Stdio::piped()).spawn().unwrap();
        let printed = Printed::of(silent.stdout.take().unwrap());
        let why = printed.next("the sleeper", Duration::from_millis(50)).unwrap_err();
        assert_eq!(why, "the sleeper says nothing within 0.05 s");
        end(&mut silent);
    }

    #[test]
    fn processes_end_with_their_owner() {
        let busy = Killed(vec![sh("while :; do :; done").spawn().unwrap()]);
        let pid = busy.0[0].id();
        drop(busy);
        assert!(!std::path::Path::new(&format!("/proc/{pid}")).exists());
    }
}
