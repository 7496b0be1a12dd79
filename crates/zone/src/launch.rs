//! What a process does to itself before it becomes an app.
//!
//! ```text
//!   Confinement ──▶ confine ──▶ Confined: the app's process, and what is not enforced
//!     limits, grants,  └─▶ the launcher and init, which wait (`waiting`) and never come back
//!     code, user
//! ```
//!
//! In: a [`Confinement`]. Out: a process in which nothing is within reach but what was granted, and [`NotEnforced`] for all that this
//! machine does not let us enforce, so that the operator can be told; with [`Enforce::Strict`] an error instead.
//! It never runs an app's code, never loosens what it has tightened, and reads nothing that an app wrote.
//!
//! The stages run in this order, because each takes away what the stages before it needed:
//!
//! 1. die with the parent: whatever fails further down, nothing is left behind without a monitor;
//! 2. no descriptor but the standard streams; the control groups that the monitor made; a session of its own and a closed
//!    umask: no terminal to type into, no Ctrl-C meant for the node, no file that others can read;
//! 3. namespaces and the root (`namespaces`, `root`): later, because they need privileges that 6 gives up. From here
//!    on there are three processes, and what follows happens in the third;
//! 4. the code is opened, by its path in the new root;
//! 5. resource limits and cores;
//! 6. no capability, no new privileges, a user of its own (`privileges`): from here on no set-user-id binary gives any;
//! 7. Landlock (`files`): after everything has been opened;
//! 8. seccomp (`filter`): last, because it forbids the system calls that the other stages make.
//!
//! `docs/concepts/zone.md` says the same to operators.

mod broker;
mod code;
mod files;
mod filter;
mod names;
mod namespaces;
mod notify;
mod opening;
mod privileges;
mod root;
mod waiting;

use std::path::PathBuf;
use std::{fmt, io};

use rustix::fs::Mode;
use rustix::process::{Resource, Rlimit, Signal};
use rustix::thread::CpuSet;

pub use self::code::Code;
use self::code::Executable;
use self::files::Walls;
use crate::Limits;
use crate::sandbox::{Enforce, NotEnforced, Sandbox};

/// Stack of an app's first thread, as much as Rust gives to each other one. Taken from small limits it is less.
const STACK_BYTES: u64 = 2 << 20;

/// Address space beyond the writable memory: room for the binary and its libraries, the ports, and what allocators
/// only reserve (glibc reserves 64 MiB for each thread and writes to little of it).
const ADDRESS_ROOM_BYTES: u64 = 512 << 20;

/// No core dump, neither into a file nor to a program: with 0 Linux still pipes the whole memory to the program that `core_pattern` names, as root; 1 is its
/// word for "not even that" (core(5), "Piping core dumps to a program"), and a file needs at least a page.
const NO_CORE: u64 = 1;

/// Before this Linux the processes of a user are counted for the whole machine, also in a user namespace.
const COUNTS_PROCESSES_BY_NAMESPACE: (u32, u32) = (5, 14);

/// Before this Linux a call that waited for an answer cannot go on.
const GOES_ON_WHEN_ASKED: (u32, u32) = (5, 5);

/// All that is to be said of one zone.
#[derive(Debug, Clone)]
pub struct Confinement {
    /// How much of the machine.
    pub limits: Limits,
    /// What of the machine.
    pub sandbox: Sandbox,
    /// What runs in it.
    pub code: Code,
    /// The user and group that the app is to be, where the launcher may choose.
    pub user: Option<u32>,
    /// Folders of control groups that the launcher joins, made by the monitor.
    pub cgroups: Vec<PathBuf>,
    /// Folders that other apps may write: no link that lies in one is followed on the way to what is granted.
    pub others_write: Vec<PathBuf>,
    /// What the monitor found already that it cannot enforce.
    pub known_gaps: Vec<NotEnforced>,
}

/// The calling process is the app's from here on.
#[derive(Debug)]
pub struct Confined {
    not_enforced: Vec<NotEnforced>,
    executable: Option<Executable>,
}

/// The machine refused a stage without which no app is started.
#[derive(Debug)]
pub struct LaunchError {
    /// What was being done.
    pub stage: &'static str,
    /// What the system said.
    pub cause: io::Error,
}

impl LaunchError {
    /// The same of another stage.
    fn of(self, stage: &'static str) -> LaunchError {
        LaunchError { stage, ..self }
    }
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

impl Confined {
    /// What was asked for and is not in force.
    #[must_use]
    pub fn not_enforced(&self) -> &[NotEnforced] {
        &self.not_enforced
    }

    /// Becomes the program of [`Code::Program`]; comes back only if that fails. Standard input, and with it the monitor's socket,
    /// stays open for the program.
    #[must_use = "it returns only when the program could not be executed"]
    pub fn r#become(self) -> io::Error {
        match self.executable {
            Some(executable) => executable.execute(),
            None => io::Error::other("this zone was not closed for a program of its own"),
        }
    }
}

/// Closes the zone around the calling process, by the stages above, and comes back in the app's. For the launcher, as the first
/// thing that it does: it has one thread, and nothing open but the standard streams; what else is open is closed.
///
/// # Errors
/// [`LaunchError`] if a stage fails that protects others from the app; the caller must then exit.
pub fn confine(confinement: &Confinement) -> Result<Confined, LaunchError> {
    one_thread()?;
    let mut gaps = confinement.known_gaps.clone();
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))
        .map_err(failed("die with the parent"))?;
    gaps.extend(close_descriptors());
    join_groups(confinement)?;
    gaps.extend(own_session());
    // By its path in the old root: in the new one the launcher's binary has none that Linux would tell.
    let mut code = confinement.code_files();
    let entered = namespaces::enter(confinement, &code, &mut gaps)?;
    rustix::process::umask(Mode::from_raw_mode(0o077));
    let limits = &confinement.limits;
    let executable = confinement.code.open(limits.open_files)?;
    code.extend(executable.as_ref().and_then(Executable::interpreter));
    let own = Own { user: entered.user, walls: entered.walls };
    if entered.to_launcher.is_none() && !confinement.sandbox.net.connect.is_empty() {
        let why = "only a launcher outside of the zone's namespaces can connect, and Linux gives none here";
        return Err(other("net.connect")(why));
    }
    gaps.extend(own.user_gap(&confinement.sandbox));
    for (resource, ceiling, stage) in rlimits(limits) {
        lower(resource, ceiling).map_err(failed(stage))?;
    }
    gaps.extend(limit_processes(confinement, own)?);
    pin(limits)?;
    privileges::drop_all(own.user).map_err(failed("privileges"))?;
    // A change of user makes the process unreadable to itself.
    privileges::dumpable(true).map_err(failed("privileges"))?;
    gaps.extend(files::restrict(&confinement.sandbox, &code, own.walls).map_err(other("landlock"))?);
    strictly(confinement.sandbox.enforce, &gaps)?;
    let own_pid = rustix::process::getpid().as_raw_nonzero().get();
    let execute_fd = executable.as_ref().map(Executable::number);
    let Sandbox { spawn, enforce, .. } = confinement.sandbox;
    let must_ask = !confinement.sandbox.net.connect.is_empty();
    let calls = filter::Calls { spawn, must_ask, own_pid, execute_fd };
    match filter::install(&calls, entered.to_launcher) {
        Ok(asks) => gaps.extend((!asks && confinement.executes_once()).then(spawn_gap)),
        Err(error) if must_ask || enforce == Enforce::Strict => return Err(other("seccomp")(error)),
        Err(error) => gaps.push(NotEnforced::new("seccomp", error)),
    }
    strictly(enforce, &gaps)?;
    Ok(Confined { not_enforced: gaps, executable })
}

/// From here on what the calling process says is the app's word: standard error goes where standard output goes, and whatever it was
/// before belongs to the launcher alone.
///
/// # Errors
/// Linux refuses this only to a process without standard output.
pub fn hand_over_streams() -> io::Result<()> {
    Ok(rustix::stdio::dup2_stderr(rustix::stdio::stdout())?)
}

impl Confinement {
    /// Whether its program is executed, and nothing after it.
    fn executes_once(&self) -> bool {
        !self.sandbox.spawn && matches!(self.code, Code::Program { .. })
    }

    /// The files from which the app's process runs, all of which it must be able to see.
    fn code_files(&self) -> Vec<PathBuf> {
        // The node's own binary: a built-in app runs from it, and every panic reads it for the names in its backtrace.
        let own = std::env::current_exe().ok();
        self.code.path().into_iter().chain(own).collect()
    }
}

/// Where nobody answers for `execveat`, it is judged by its descriptor, which does not count if the path is absolute (execveat(2)).
fn spawn_gap() -> NotEnforced {
    let why = "Linux asks no launcher here; the app may execute again what Landlock lets it, the loader of programs among it";
    NotEnforced::new("spawn", why)
}

/// What the app has of its own.
#[derive(Clone, Copy)]
struct Own {
    user: Option<u32>,
    walls: Walls,
}

impl Own {
    fn user_gap(self, sandbox: &Sandbox) -> Option<NotEnforced> {
        if self.user.is_some() || !sandbox.own_user {
            return None;
        }
        let why = "only a node that runs as root can give each app a user of its own; own_user = false does without";
        Some(NotEnforced::new("own_user", why))
    }
}

fn strictly(enforce: Enforce, gaps: &[NotEnforced]) -> Result<(), LaunchError> {
    if enforce == Enforce::Best || gaps.is_empty() {
        return Ok(());
    }
    let gaps: Vec<String> = gaps.iter().map(ToString::to_string).collect();
    Err(LaunchError { stage: "enforce = \"strict\"", cause: io::Error::other(gaps.join("; ")) })
}

fn failed<E: Into<io::Error>>(stage: &'static str) -> impl Fn(E) -> LaunchError {
    move |error| LaunchError { stage, cause: error.into() }
}

fn other<E: fmt::Display>(stage: &'static str) -> impl Fn(E) -> LaunchError {
    move |error| LaunchError { stage, cause: io::Error::other(error.to_string()) }
}

/// A fork takes one thread along, and whatever locks the others held would stay locked.
fn one_thread() -> Result<(), LaunchError> {
    let threads = std::fs::read_dir("/proc/self/task").map_err(failed("one thread"))?.count();
    if threads == 1 {
        return Ok(());
    }
    Err(other("one thread")(format!("the launcher has {threads} threads")))
}

/// What was open in the process that started the node, and not marked close-on-exec there, would be open in every zone.
fn close_descriptors() -> Option<NotEnforced> {
    // SAFETY: the caller has nothing open but the standard streams, as the contract of `confine` says, so nobody's descriptor is closed
    // but those that were inherited unasked.
    let closed =
        unsafe { libc::syscall(libc::SYS_close_range, libc::STDERR_FILENO + 1, libc::c_uint::MAX, 0) };
    let why = || format!("files that the node was started with stay open ({})", io::Error::last_os_error());
    (closed != 0).then(|| NotEnforced::new("descriptors", why()))
}

fn join_groups(confinement: &Confinement) -> Result<(), LaunchError> {
    // 0 is whoever writes (cgroups(7)).
    let join = |folder: &PathBuf| std::fs::write(folder.join("cgroup.procs"), "0");
    confinement.cgroups.iter().try_for_each(join).map_err(failed("cgroup"))
}

fn own_session() -> Option<NotEnforced> {
    // It fails only for a process that leads a group already, and then the group at least is the app's own.
    rustix::process::setsid().err().map(|errno| NotEnforced::new("session", errno))
}

fn rlimits(limits: &Limits) -> [(Resource, u64, &'static str); 6] {
    let (data_bytes, stack_bytes) = data_and_stack(limits.memory_bytes);
    [
        (Resource::Core, limits.core_bytes.max(NO_CORE), "core_bytes"),
        (Resource::Fsize, limits.file_bytes, "file_bytes"),
        (Resource::Nofile, u64::from(limits.open_files), "open_files"),
        (Resource::As, limits.memory_bytes.saturating_add(ADDRESS_ROOM_BYTES), "memory_bytes"),
        (Resource::Data, data_bytes, "memory_bytes"),
        (Resource::Stack, stack_bytes, "memory_bytes"),
    ]
}

/// Linux counts the first thread's stack apart from all other memory that is written to (RLIMIT_DATA, setrlimit(2)). Both together are
/// what the app may have.
fn data_and_stack(memory_bytes: u64) -> (u64, u64) {
    let stack_bytes = STACK_BYTES.min(memory_bytes / 4);
    (memory_bytes - stack_bytes, stack_bytes)
}

/// Lowers both the soft and the hard limit; a ceiling that is lower already stays.
fn lower(resource: Resource, ceiling: u64) -> rustix::io::Result<()> {
    let ceiling = rustix::process::getrlimit(resource).maximum.map_or(ceiling, |hard| hard.min(ceiling));
    rustix::process::setrlimit(resource, Rlimit { current: Some(ceiling), maximum: Some(ceiling) })
}

/// Linux counts the processes of a user, and those of root not at all.
fn limit_processes(confinement: &Confinement, own: Own) -> Result<Option<NotEnforced>, LaunchError> {
    let Some(processes) = confinement.limits.processes else { return Ok(None) };
    let counted_by_group = confinement.cgroups.iter().any(|folder| folder.join("pids.max").exists());
    let root = own.user.is_none() && rustix::process::geteuid().is_root();
    let alone = own.user.is_some() || (own.walls.namespaces && is_linux(COUNTS_PROCESSES_BY_NAMESPACE));
    if !root && alone {
        // Init is counted too, and the launcher where it is of the same user.
        let waiting = if own.user.is_some() { 2 } else { 1 };
        lower(Resource::Nproc, u64::from(processes).saturating_add(waiting)).map_err(failed("processes"))?;
        return Ok(None);
    }
    let why = "the app has neither a user nor a control group of its own, and Linux counts by these";
    Ok((!counted_by_group).then(|| NotEnforced::new("processes", why)))
}

fn is_linux(least: (u32, u32)) -> bool {
    let release = rustix::system::uname().release().to_string_lossy().into_owned();
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(str::parse);
    match (numbers.next(), numbers.next()) {
        (Some(Ok(major)), Some(Ok(minor))) => (major, minor) >= least,
        _ => false,
    }
}

fn pin(limits: &Limits) -> Result<(), LaunchError> {
    let Some(cores) = &limits.cores else { return Ok(()) };
    let mut set = CpuSet::new();
    cores.iter().for_each(|core| set.set(core));
    rustix::thread::sched_setaffinity(None, &set).map_err(failed("cores"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_and_stack_are_no_more_than_the_limit() {
        let check = |memory_bytes, expected| assert_eq!(data_and_stack(memory_bytes), expected);
        check(64 << 20, (62 << 20, 2 << 20));
        check(4 << 20, (3 << 20, 1 << 20));
        check(0, (0, 0));
        check(u64::MAX, (u64::MAX - (2 << 20), 2 << 20));
    }
}
