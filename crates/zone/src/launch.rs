//! What a process does to itself before it becomes an app.
//!
//! In: the [`Limits`] of the zone, and for an app with a binary of its own the path of that binary.
//! Out: a process that can no longer take more than its limits, outlive the monitor or gain privileges; and the list
//! of limits that this machine does not let us enforce, so that the operator can be told.
//! It never forks, never runs an app's code, and never loosens what it has tightened.
//!
//! The stages run in this order, because each takes away what the stages before it needed:
//!
//! 1. die with the parent: whatever fails further down, nothing is left behind without a monitor;
//! 2. a session of its own and a closed umask: no terminal to type into, no Ctrl-C meant for the node, no file that
//!    others can read;
//! 3. namespaces (user, mount, network, process ids): later, because they need privileges that 5 forbids;
//! 4. resource limits; a cgroup is joined before, by the monitor, because an app must not be able to write to it;
//! 5. no new privileges: from here on no set-user-id binary gives any, and unprivileged filters become possible;
//! 6. Landlock (files, connections): after the app's binary has been opened;
//! 7. seccomp: last, because it forbids the system calls that the other stages make.
//!
//! Stages 3, 6 and 7 and the cgroup are not there yet.

use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt;
use std::{fmt, io};

use rustix::fs::Mode;
use rustix::process::{Resource, Rlimit, Signal};

use crate::Limits;

/// Address space beyond the writable memory: room for the binary and its libraries, the ports, and what allocators
/// only reserve (glibc reserves 64 MiB for each thread and writes to little of it).
const ADDRESS_ROOM_BYTES: u64 = 512 << 20;

/// A limit that was asked for and is not in force, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotEnforced {
    /// The field of [`Limits`], or the stage.
    pub limit: &'static str,
    /// What on this machine stands in the way.
    pub why: String,
}

impl fmt::Display for NotEnforced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is not enforced: {}", self.limit, self.why)
    }
}

/// The machine refused a stage without which no app is started.
#[derive(Debug)]
pub struct LaunchError {
    /// What was being done.
    pub stage: &'static str,
    /// What the system said.
    pub cause: io::Error,
}

impl fmt::Display for LaunchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the zone could not be closed ({}): {}; the app is not started", self.stage, self.cause)
    }
}

impl std::error::Error for LaunchError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.cause)
    }
}

/// Closes the zone around the calling process, by the stages above. For the launcher, as the first thing that it does
/// and while it has one thread.
///
/// # Errors
/// [`LaunchError`] if a stage fails that protects others from the app; the caller must then exit.
pub fn confine(limits: &Limits) -> Result<Vec<NotEnforced>, LaunchError> {
    let mut not_enforced = Vec::new();
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))
        .map_err(failed("die with the parent"))?;
    not_enforced.extend(inherited_descriptors());
    not_enforced.extend(own_session());
    rustix::process::umask(Mode::from_raw_mode(0o077));
    for (resource, ceiling, stage) in rlimits(limits) {
        lower(resource, ceiling).map_err(failed(stage))?;
    }
    not_enforced.extend(limit_processes(limits.processes)?);
    rustix::thread::set_no_new_privs(true).map_err(failed("no new privileges"))?;
    Ok(not_enforced)
}

/// Becomes the program at `path`; comes back only if that fails.
///
/// Standard input, and with it the monitor's socket, stays open for the program; so do the zone's limits.
#[must_use = "it returns only when the program could not be executed"]
pub fn r#become(path: &OsStr, args: &[OsString]) -> io::Error {
    std::process::Command::new(path).args(args).exec()
}

fn failed(stage: &'static str) -> impl Fn(rustix::io::Errno) -> LaunchError {
    move |errno| LaunchError { stage, cause: errno.into() }
}

/// What was open in the process that started the node, and not marked close-on-exec there, is open in every zone.
fn inherited_descriptors() -> Option<NotEnforced> {
    let open = std::fs::read_dir("/proc/self/fd")
        .ok()?
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    // The standard streams are ours, and the listing has one descriptor for itself.
    let inherited = open.filter(|name| !matches!(name.as_str(), "0" | "1" | "2")).count().checked_sub(1)?;
    let why = format!(
        "{inherited} files that the node was started with are open in the zone; start it without them"
    );
    (inherited > 0).then_some(NotEnforced { limit: "descriptors", why })
}

fn own_session() -> Option<NotEnforced> {
    // It fails only for a process that leads a group already, and then the group at least is the app's own.
    rustix::process::setsid().err().map(|errno| NotEnforced { limit: "session", why: errno.to_string() })
}

fn rlimits(limits: &Limits) -> [(Resource, u64, &'static str); 5] {
    [
        (Resource::Core, limits.core_bytes, "core_bytes"),
        (Resource::Fsize, limits.file_bytes, "file_bytes"),
        (Resource::Nofile, u64::from(limits.open_files), "open_files"),
        (Resource::As, limits.memory_bytes.saturating_add(ADDRESS_ROOM_BYTES), "memory_bytes"),
        (Resource::Data, limits.memory_bytes, "memory_bytes"),
    ]
}

/// Lowers both the soft and the hard limit; a ceiling that is lower already stays.
fn lower(resource: Resource, ceiling: u64) -> rustix::io::Result<()> {
    let ceiling = rustix::process::getrlimit(resource).maximum.map_or(ceiling, |hard| hard.min(ceiling));
    rustix::process::setrlimit(resource, Rlimit { current: Some(ceiling), maximum: Some(ceiling) })
}

fn limit_processes(processes: Option<u32>) -> Result<Option<NotEnforced>, LaunchError> {
    let Some(processes) = processes else { return Ok(None) };
    if rustix::process::geteuid().is_root() {
        let why = "Linux does not limit the processes of root; run the node as another user".to_owned();
        return Ok(Some(NotEnforced { limit: "processes", why }));
    }
    lower(Resource::Nproc, u64::from(processes)).map_err(failed("processes"))?;
    Ok(None)
}
