//! The two processes between monitor and app. They wait, pass signals down, and pass the exit status up.
//!
//! ```text
//!   monitor ──SIGTERM──▶ launcher ──SIGTERM──▶ init ──SIGTERM──▶ app ─▶ its children
//!           ◀─how it ended────────◀─status pipe─────◀─wait───────
//! ```
//!
//! The launcher is the monitor's child and outside of the namespaces. If it dies, init dies too. Init is process 1 of
//! the zone. If it dies, Linux kills all processes that are left in the zone, also those that left the app's session.
//! Init reads no byte that an app wrote. The launcher reads only the addresses that an app connects to
//! ([`super::broker`]).

use std::io::{Read, Write};
use std::os::fd::{AsFd, OwnedFd};

use nix::errno::Errno;
use nix::sys::signal::{SigHandler, SigSet, SigmaskHow, Signal, kill, signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::unistd::Pid;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::process::{Resource, Rlimit, WaitOptions};

use super::broker::Broker;
use super::stage::{LaunchError, failed};
use super::{filter, privileges};

/// The signals that the monitor may send and that are passed down.
const PASSED_DOWN: [Signal; 3] = [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP];

/// How long to wait before a failed signal is sent again. Processes drop their privileges within some milliseconds of
/// their start.
const OWED: Timespec = Timespec { tv_sec: 0, tv_nsec: 2_000_000 };

/// Signals that wait until this process reads them, so that none arrives too early.
pub(super) struct Signals {
    before: SigSet,
    arrived: SignalFd,
}

impl Signals {
    /// From now on signals wait, also in processes that are forked from here.
    pub(super) fn hold() -> Result<Signals, LaunchError> {
        let mut held = SigSet::from_iter(PASSED_DOWN);
        held.add(Signal::SIGCHLD);
        let before = held.thread_swap_mask(SigmaskHow::SIG_BLOCK).map_err(failed("signals"))?;
        let arrived = SignalFd::with_flags(&held, SfdFlags::SFD_CLOEXEC).map_err(failed("signals"))?;
        Ok(Signals { before, arrived })
    }

    /// Signals are delivered as before.
    pub(super) fn release(self) -> Result<(), LaunchError> {
        self.before.thread_set_mask().map_err(failed("signals"))
    }

    /// The next signal, or `None` for a signal without a meaning here.
    fn next(&self) -> Option<Signal> {
        let info = self.arrived.read_signal().ok()??;
        i32::try_from(info.ssi_signo).ok().and_then(|number| Signal::try_from(number).ok())
    }
}

/// Waits for init, and ends as the app did.
pub(super) fn as_launcher(
    init: Pid,
    status: OwnedFd,
    signals: &Signals,
    user: Option<u32>,
    mut broker: Broker,
) -> ! {
    let parent = rustix::process::getppid();
    let given_up = privileges::drop_all(user).is_ok();
    // If the parent ended in the meantime, no process would end this one any more.
    if !given_up || rustix::process::getppid() != parent {
        end_with(1);
    }
    // The launcher is outside of the sandbox and reads only addresses of the app. The filter is a second safeguard.
    let _ = filter::install_for_answering();
    let mut owed = Vec::new();
    loop {
        let has_signal = wait(signals, Some(&mut broker), &owed);
        owed.retain(|signal| !is_passed_down(init, *signal));
        if !has_signal {
            continue;
        }
        match signals.next() {
            Some(Signal::SIGCHLD) => {
                if let Some((_, of_init)) = ended(Some(init)) {
                    broker.say_the_rest();
                    end_as(read_status(status).unwrap_or(of_init));
                }
            }
            Some(signal) => pass_down(init, signal, &mut owed),
            None => {}
        }
    }
}

/// Sends a signal on, or adds it to `owed`. Each of [`PASSED_DOWN`] is owed once at most, as in Linux.
fn pass_down(to: Pid, signal: Signal, owed: &mut Vec<Signal>) {
    if !is_passed_down(to, signal) && !owed.contains(&signal) {
        owed.push(signal);
    }
}

/// Whether the signal needs no further attempt. Until the other process has dropped its privileges, it belongs to
/// another user and cannot be signalled. If it has ended, it needs no signal, and SIGCHLD follows.
fn is_passed_down(to: Pid, signal: Signal) -> bool {
    kill(to, signal) != Err(Errno::EPERM)
}

/// The broker answers calls until an event, or for the time [`OWED`] if signals are owed. Returns `true` if a signal
/// can be read.
fn wait(signals: &Signals, broker: Option<&mut Broker>, owed: &[Signal]) -> bool {
    let mut sources = vec![PollFd::from_borrowed_fd(signals.arrived.as_fd(), PollFlags::IN)];
    sources.extend(broker.iter().flat_map(|broker| broker.sources()));
    if rustix::event::poll(&mut sources, (!owed.is_empty()).then_some(&OWED)).is_err() {
        return false;
    }
    let ready: Vec<PollFlags> = sources.iter().map(PollFd::revents).collect();
    drop(sources);
    if let Some(broker) = broker {
        broker.on_ready(&ready[1..]);
    }
    !ready[0].is_empty()
}

/// Reaps the processes that end in the zone until the app ends. Then writes the app's exit status to `status` and
/// exits, which ends the rest of the zone.
pub(super) fn as_init(app: Pid, status: OwnedFd, signals: &Signals, user: Option<u32>) -> ! {
    let hidden = privileges::drop_all(user).and_then(|()| privileges::dumpable(false));
    if hidden.is_err() || filter::install_for_waiting().is_err() {
        end_with(1);
    }
    let mut status = std::fs::File::from(status);
    let mut owed = Vec::new();
    loop {
        let has_signal = wait(signals, None, &owed);
        owed.retain(|signal| !is_passed_down(app, *signal));
        if !has_signal {
            continue;
        }
        match signals.next() {
            Some(Signal::SIGCHLD) => {
                while let Some((pid, how)) = ended(None) {
                    if pid == app {
                        // If the launcher has ended, nobody needs the status.
                        let _ = status.write_all(&how.to_ne_bytes());
                        end_with(0);
                    }
                }
            }
            Some(signal) => pass_down(app, signal, &mut owed),
            None => {}
        }
    }
}

/// A child that has ended, and its status (wait(2)).
fn ended(child: Option<Pid>) -> Option<(Pid, i32)> {
    let child = child.and_then(|pid| rustix::process::Pid::from_raw(pid.as_raw()));
    let (pid, status) = match child {
        Some(child) => rustix::process::waitpid(Some(child), WaitOptions::NOHANG),
        None => rustix::process::wait(WaitOptions::NOHANG),
    }
    .ok()??;
    Some((Pid::from_raw(pid.as_raw_nonzero().get()), status.as_raw()))
}

/// Reads the app's status from init. Nothing if init died before it could write it.
fn read_status(status: OwnedFd) -> Option<i32> {
    let mut bytes = [0; size_of::<i32>()];
    std::fs::File::from(status).read_exact(&mut bytes).ok()?;
    Some(i32::from_ne_bytes(bytes))
}

/// Ends the calling process in the same way as another, so that the monitor sees how the app ended.
fn end_as(status: i32) -> ! {
    if libc::WIFEXITED(status) {
        end_with(libc::WEXITSTATUS(status));
    }
    let number = libc::WTERMSIG(status);
    if let Ok(named) = Signal::try_from(number) {
        // A core dump of this process would say nothing about the app.
        let _ = rustix::process::setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) });
        // SAFETY: the default action is not a handler, so none of our code runs in a signal's context.
        let _ = unsafe { signal(named, SigHandler::SigDfl) };
        let _ = SigSet::empty().thread_set_mask();
        let _ = kill(Pid::this(), named);
    }
    // Only for a signal that ends no process, so the app cannot have ended by it. 128 plus the number is what a shell
    // reports.
    end_with(128 + number)
}

fn end_with(code: i32) -> ! {
    // SAFETY: it ends the process at once. Exit handlers of other code belong to the process that was forked.
    unsafe { libc::_exit(code) }
}
