//! The system call filter: which system calls an app may make (seccomp(2)).
//!
//! In: what is granted ([`Calls`]). Out: filters in force for the calling process and everything it executes.
//! It checks numbers and arguments, and never follows a pointer.
//!
//! Every call is one of five kinds:
//!
//! | kind | what happens | which |
//! |---|---|---|
//! | allowed | Linux executes it | what native programs and Python need |
//! | judged | allowed or treated as one of the others, by its arguments | `clone`, `mmap`, `prctl`, `kill`, `socketpair`, `chmod`, `sendto`, `setsockopt` …; `accept4` where listening is granted |
//! | asked | the launcher answers (`broker`) | `socket`, `connect`, `open`, `openat`; `execve`, `execveat` and `clone` of a process where none is granted |
//! | absent | `ENOSYS`, so that libraries use the older call, which the filter can judge | `clone3`, `openat2`, io_uring, calls newer than this list |
//! | hostile | the process is killed | calls that no app needs for an honest purpose: `ptrace`, `mount`, `bpf`, `init_module` … |
//!
//! All other calls get `EPERM`. The launcher answers them, so that it can report them to the operator. If no launcher
//! can be asked, the filter answers.

use std::os::fd::OwnedFd;

use seccompiler::{BpfProgram, SeccompAction, SeccompFilter, TargetArch};

use super::calls::{ABSENT, ALLOWED, ALLOWED_OF_OLD, ANSWERING, ASKED, HOSTILE, NEWER, TO_SPAWN, WAITING};
use super::judged::{Calls, Rules, judged};
use super::notify;
use super::version::{GOES_ON_WHEN_ASKED, is_linux};

/// Puts the filters for an app into force. The calling process must not be able to gain privileges any more.
///
/// The listener for the calls that the launcher answers is sent over the socket. This process does not keep it.
/// Returns whether a listener exists.
pub(super) fn install(calls: &Calls, to_launcher: Option<OwnedFd>) -> Result<bool, seccompiler::Error> {
    let hostile = HOSTILE.iter().map(|number| (*number, Vec::new())).collect();
    install_one(hostile, SeccompAction::Allow, SeccompAction::KillProcess)?;
    let absent = absent().map(|number| (number, Vec::new())).collect();
    install_one(absent, SeccompAction::Allow, SeccompAction::Errno(errno(libc::ENOSYS)))?;
    // Last, because it does not allow the installation of filters. Of several filters the strictest answer counts
    // (seccomp(2)).
    match to_launcher.map(|socket| ask(calls, &socket)) {
        Some(Ok(())) => return Ok(true),
        Some(Err(error)) if calls.must_ask => return Err(error),
        // Before Linux 5.5 a launcher cannot be asked. Then the calls that would be asked are denied.
        Some(Err(_)) | None => {}
    }
    install_one(allowed(calls, false)?, SeccompAction::Errno(errno(libc::EPERM)), SeccompAction::Allow)?;
    Ok(false)
}

/// Allows the calling process only what it needs to wait for children. All other calls fail.
pub(super) fn install_for_waiting() -> Result<(), seccompiler::Error> {
    install_only(&WAITING)
}

/// The same, and what the launcher needs to answer for an app.
pub(super) fn install_for_answering() -> Result<(), seccompiler::Error> {
    install_only(&[&WAITING[..], ANSWERING].concat())
}

fn install_only(numbers: &[i64]) -> Result<(), seccompiler::Error> {
    let rules = numbers.iter().map(|number| (*number, Vec::new())).collect();
    install_one(rules, SeccompAction::Errno(errno(libc::EPERM)), SeccompAction::Allow)
}

fn install_one(
    rules: Rules,
    otherwise: SeccompAction,
    matched: SeccompAction,
) -> Result<(), seccompiler::Error> {
    let machine = TargetArch::try_from(std::env::consts::ARCH)?;
    let program: BpfProgram = SeccompFilter::new(rules, otherwise, matched, machine)?.try_into()?;
    seccompiler::apply_filter(&program)
}

fn absent() -> impl Iterator<Item = i64> {
    ABSENT.into_iter().chain(NEWER)
}

fn errno(number: i32) -> u32 {
    number.unsigned_abs()
}

/// From here on the launcher answers all calls that are not allowed.
fn ask(calls: &Calls, to_launcher: &OwnedFd) -> Result<(), seccompiler::Error> {
    if !is_linux(GOES_ON_WHEN_ASKED) {
        return Err(seccompiler::Error::Seccomp(std::io::ErrorKind::Unsupported.into()));
    }
    let listener = notify::install(allowed(calls, true)?)?;
    let handed = notify::hand_over(&listener, to_launcher);
    handed.map_err(|errno| seccompiler::Error::Seccomp(errno.into()))
}

fn allowed(calls: &Calls, asks: bool) -> Result<Rules, seccompiler::Error> {
    let numbers = ALLOWED.iter().chain(ALLOWED_OF_OLD).copied();
    // The filter installed before this one answers the absent calls.
    let mut rules: Rules = numbers.chain(absent()).map(|number| (number, Vec::new())).collect();
    rules.extend(judged(calls)?);
    if asks {
        ASKED.iter().for_each(|number| drop(rules.remove(number)));
    }
    if calls.spawn {
        rules.extend(TO_SPAWN.iter().map(|number| (*number, Vec::new())));
    }
    Ok(rules)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_both_allowed_and_hostile_or_listed_twice() {
        let calls = Calls { spawn: true, listens: false, must_ask: true, own_pid: 2, execute_fd: Some(100) };
        let allowed = allowed(&calls, false).unwrap();
        for number in HOSTILE {
            assert!(!allowed.contains_key(number), "system call {number}");
        }
        let listed = ALLOWED.len() + ALLOWED_OF_OLD.len();
        let distinct: std::collections::BTreeSet<_> = ALLOWED.iter().chain(ALLOWED_OF_OLD).collect();
        assert_eq!(distinct.len(), listed);
    }

    #[test]
    fn programs_and_other_processes_come_with_spawn_alone() {
        let calls = Calls { spawn: false, listens: false, must_ask: false, own_pid: 2, execute_fd: None };
        let alone = allowed(&calls, false).unwrap();
        for number in [libc::SYS_execve, libc::SYS_execveat, libc::SYS_socket, libc::SYS_connect] {
            assert!(!alone.contains_key(&number), "system call {number}");
        }
        assert!(allowed(&Calls { spawn: true, ..calls }, false).unwrap().contains_key(&libc::SYS_execve));
    }

    #[test]
    fn connections_are_accepted_where_listening_is_granted_and_nothing_more() {
        let calls = Calls { spawn: false, listens: false, must_ask: false, own_pid: 2, execute_fd: None };
        let (without, with) = (allowed(&calls, false).unwrap(), Calls { listens: true, ..calls });
        let with = allowed(&with, false).unwrap();
        let more: Vec<&i64> = with.keys().filter(|number| !without.contains_key(number)).collect();
        assert_eq!(more, [&libc::SYS_accept4]);
    }

    #[test]
    fn what_is_asked_about_is_not_allowed_without_an_answer() {
        for spawn in [false, true] {
            let calls = Calls { spawn, listens: true, must_ask: true, own_pid: 2, execute_fd: Some(100) };
            let (alone, asking) = (allowed(&calls, false).unwrap(), allowed(&calls, true).unwrap());
            assert!(asking.keys().all(|number| alone.contains_key(number)));
            let left: Vec<&i64> = alone.keys().filter(|number| !asking.contains_key(number)).collect();
            let programs = |number: &&&i64| ***number != libc::SYS_execveat || !spawn;
            assert!(ASKED.iter().filter(|number| programs(&number)).all(|number| left.contains(&number)));
            assert!(!asking.contains_key(&libc::SYS_socket) && !asking.contains_key(&libc::SYS_connect));
        }
    }
}
