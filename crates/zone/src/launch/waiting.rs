//! The two processes between monitor and app: they wait, pass signals down and the end up.
//!
//! ```text
//!   monitor ──SIGTERM──▶ launcher ──SIGTERM──▶ init ──SIGTERM──▶ app ─▶ whom it started
//!           ◀─how it ended────────◀─status pipe─────◀─wait───────
//! ```
//!
//! The launcher is the monitor's child and outside of the namespaces; when it dies, so does init. Init is process 1 of the zone;
//! when it dies Linux kills whoever is left in the zone, also those who left the app's session.
//! Init reads no byte that an app wrote; the launcher reads the addresses to which one wants to connect ([`super::broker`]).

use std::io::{Read, Write};
use std::os::fd::{AsFd, OwnedFd};

use nix::errno::Errno;
use nix::sys::signal::{SigHandler, SigSet, SigmaskHow, Signal, kill, signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::unistd::Pid;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::process::{Resource, Rlimit, WaitOptions};

use super::broker::Broker;
use super::{LaunchError, failed, filter, privileges};

/// What the monitor may send, and what is passed down.
const PASSED_DOWN: [Signal; 3] = [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP];

/// After so long signals are sent again that could not be sent yet: processes give up their privileges within some milliseconds of their start.
const OWED: Timespec = Timespec { tv_sec: 0, tv_nsec: 2_000_000 };

/// Signals that wait until somebody reads them here, so that none comes too early.
pub(super) struct Signals {
    before: SigSet,
    arrived: SignalFd,
}

impl Signals {
    /// From now on they wait; also in processes that are forked from here.
    pub(super) fn hold() -> Result<Signals, LaunchError> {
        let mut held = SigSet::from_iter(PASSED_DOWN);
        held.add(Signal::SIGCHLD);
        let before = held.thread_swap_mask(SigmaskHow::SIG_BLOCK).map_err(failed("signals"))?;
        let arrived = SignalFd::with_flags(&held, SfdFlags::SFD_CLOEXEC).map_err(failed("signals"))?;
        Ok(Signals { before, arrived })
    }

    /// They are delivered as before.
    pub(super) fn release(self) -> Result<(), LaunchError> {
        self.before.thread_set_mask().map_err(failed("signals"))
    }

    /// The next one; `None` for one that nobody here cares about.
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
    // If the parent went while that was being done, nobody would end us any more.
    if !given_up || rustix::process::getppid() != parent {
        end_with(1);
    }
    // It is outside of the sandbox and reads of the app no more than an address: the filter only makes that certain.
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

/// Passes a signal on, or owes it: each of [`PASSED_DOWN`] once at most, as Linux keeps them.
fn pass_down(to: Pid, signal: Signal, owed: &mut Vec<Signal>) {
    if !is_passed_down(to, signal) && !owed.contains(&signal) {
        owed.push(signal);
    }
}

/// Whether nothing is owed any more. Until the other process has given up its privileges too it is another user's, to whom nobody may send a signal;
/// who has ended needs none, and SIGCHLD follows.
fn is_passed_down(to: Pid, signal: Signal) -> bool {
    kill(to, signal) != Err(Errno::EPERM)
}

/// Lets the broker answer until something happens, or for [`OWED`] if signals are owed; `true` if there is a signal to read.
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

/// Reaps whoever ends in the zone, until the app does; says how on `status` and ends, and all that is left with it.
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
                        // A launcher that is gone needs no status.
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

/// What init said of the app; nothing if init did not live to say it.
fn read_status(status: OwnedFd) -> Option<i32> {
    let mut bytes = [0; size_of::<i32>()];
    std::fs::File::from(status).read_exact(&mut bytes).ok()?;
    Some(i32::from_ne_bytes(bytes))
}

/// Ends the calling process as another ended, so that the monitor sees that.
fn end_as(status: i32) -> ! {
    if libc::WIFEXITED(status) {
        end_with(libc::WEXITSTATUS(status));
    }
    let number = libc::WTERMSIG(status);
    if let Ok(named) = Signal::try_from(number) {
        // The core of this process would tell nothing of the app.
        let _ = rustix::process::setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) });
        // SAFETY: the default action is no handler, so no code of ours runs in a signal's context.
        let _ = unsafe { signal(named, SigHandler::SigDfl) };
        let _ = SigSet::empty().thread_set_mask();
        let _ = kill(Pid::this(), named);
    }
    // Only for a signal that nobody dies of, which no process can have died of. A shell says it so.
    end_with(128 + number)
}

fn end_with(code: i32) -> ! {
    // SAFETY: it ends the process at once; what other code registered for an exit belongs to the process that was forked.
    unsafe { libc::_exit(code) }
}
