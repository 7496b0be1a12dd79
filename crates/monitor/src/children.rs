//! Starts, watches, ends and reaps one child process.
//!
//! In: a program and its streams. Out: a [`Child`] whose pidfd becomes readable when the process ends. It never waits:
//! starting returns when the program has been executed, and the exit status is read only when the pidfd is readable.

use std::ffi::OsString;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, ExitStatus, Stdio};
use std::{env, io};

use rustix::process::{Pid, PidfdFlags, Signal};

use crate::supervisor::{ProcessEnd, StopSignal};

/// The environment variables that an app may see. All others stay out of its zone: an operator's environment contains
/// tokens and keys.
const ZONE_ENVIRONMENT: [&str; 6] = ["PATH", "LANG", "LC_ALL", "TZ", "RUST_BACKTRACE", "RUST_LOG"];

/// A home directory for the app. Without HOME, libraries read the list of users, which no zone has.
const ZONE_HOME: (&str, &str) = ("HOME", "/");

/// A child, which is killed when dropped unless it has been reaped.
#[derive(Debug)]
pub(crate) struct Child {
    process: std::process::Child,
    pid: Pid,
    pidfd: OwnedFd,
    /// Its id may belong to another process by now.
    reaped: bool,
}

impl AsFd for Child {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.pidfd.as_fd()
    }
}

impl Child {
    /// The kernel process: the operator's environment and terminal, but a process group of its own, so that Ctrl-C
    /// reaches the monitor alone.
    pub(crate) fn start_kernel(program: &[OsString], stdin: OwnedFd) -> io::Result<Child> {
        let mut command = command(program)?;
        command.stdin(stdin).process_group(0);
        Child::start(command)
    }

    /// Starts a process zone. Its output goes to `output`. Its launcher creates the session and so the process group,
    /// and has `report` as standard error until the app starts.
    pub(crate) fn start_zone(
        program: &[OsString],
        stdin: OwnedFd,
        output: OwnedFd,
        report: OwnedFd,
    ) -> io::Result<Child> {
        let mut command = command(program)?;
        command.env_clear();
        command.envs(ZONE_ENVIRONMENT.iter().filter_map(|name| Some((name, env::var_os(name)?))));
        command.env(ZONE_HOME.0, ZONE_HOME.1);
        command.stdin(stdin).stdout(Stdio::from(output)).stderr(report);
        Child::start(command)
    }

    fn start(mut command: Command) -> io::Result<Child> {
        let mut process = command.spawn()?;
        // The child is not reaped, so its id still identifies it.
        let watched = i32::try_from(process.id()).ok().and_then(Pid::from_raw).ok_or(rustix::io::Errno::SRCH);
        match watched.and_then(|pid| Ok((pid, rustix::process::pidfd_open(pid, PidfdFlags::NONBLOCK)?))) {
            Ok((pid, pidfd)) => Ok(Child { process, pid, pidfd, reaped: false }),
            Err(errno) => {
                // The monitor could not watch it, so it must not run.
                process.kill()?;
                process.wait()?;
                Err(errno.into())
            }
        }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.process.id()
    }

    pub(crate) fn end(&self, how: StopSignal) {
        match how {
            StopSignal::Term => self.signal(Signal::TERM),
            StopSignal::Kill => {
                self.kill_group();
                self.signal(Signal::KILL);
            }
        }
    }

    /// Reaps it if it has ended; its group goes with it.
    pub(crate) fn ended(&mut self) -> io::Result<Option<ProcessEnd>> {
        if !self.has_ended() {
            return Ok(None);
        }
        // Before it is reaped, while its id cannot belong to another process.
        self.kill_group();
        let status = self.process.try_wait()?;
        self.reaped = status.is_some();
        Ok(status.map(process_end))
    }

    fn has_ended(&self) -> bool {
        let mut fds = [rustix::event::PollFd::new(&self.pidfd, rustix::event::PollFlags::IN)];
        rustix::event::poll(&mut fds, Some(&rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 }))
            .is_ok_and(|n| n > 0)
    }

    fn signal(&self, signal: Signal) {
        // It fails only if the process has ended, which is the goal.
        let _ = rustix::process::pidfd_send_signal(&self.pidfd, signal);
    }

    fn kill_group(&self) {
        // It fails if there is no such group: the process had not created it, or all members have ended.
        let _ = rustix::process::kill_process_group(self.pid, Signal::KILL);
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        if !self.reaped {
            // Also if it has ended already: its own children may be alive.
            self.end(StopSignal::Kill);
        }
    }
}

fn command(program: &[OsString]) -> io::Result<Command> {
    let [path, args @ ..] = program else { return Err(io::Error::other("no program is named")) };
    let mut command = Command::new(path);
    command.args(args);
    Ok(command)
}

fn process_end(status: ExitStatus) -> ProcessEnd {
    match (status.code(), status.signal()) {
        (Some(code), _) => ProcessEnd::Code(code),
        (None, number) => {
            ProcessEnd::Signal { number: number.unwrap_or_default(), core_dumped: status.core_dumped() }
        }
    }
}
