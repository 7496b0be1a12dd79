//! Confines a process before it becomes an app.
//! ```text
//!   Confinement ──▶ confine ──▶ Confined: the app's process, and what is not enforced
//!     limits, grants,  └─▶ the launcher and init, which wait (`waiting`) and never come back
//!     code, user
//! ```
//!
//! In: a [`Confinement`]. Out: a process that can reach only what was granted, and a [`NotEnforced`] for each part
//! that this machine cannot enforce. With [`Enforce::Strict`] such a part is an error instead.
//! It never runs an app's code, never loosens a restriction, and reads nothing that an app wrote.
//!
//! The stages run in this order, because each takes away what the stages before it needed:
//!
//! 1. Die with the parent: if a later stage fails, no process is left without a monitor.
//! 2. Close all descriptors except the standard streams, join the monitor's control groups, start a new session, and
//!    set a closed umask. So the app has no terminal, gets no Ctrl-C meant for the node, and makes no file that others
//!    can read.
//! 3. Namespaces and the root (`namespaces`, `root`): before stage 6, which drops the privileges that they need. From
//!    here on there are three processes. The next stages happen in the third.
//! 4. Open the code, by its path in the new root.
//! 5. Resource limits and cores.
//! 6. No capability, no new privileges, a separate user (`privileges`): from here on no set-user-id binary gives any
//!    privilege.
//! 7. Landlock (`files`): after everything has been opened.
//! 8. seccomp (`filter`): last, because it forbids system calls that the other stages make.
//!
//! `docs/concepts/zone.md` says the same to operators.

mod arguments;
mod broker;
mod calls;
mod code;
mod files;
mod filter;
mod judged;
mod names;
mod namespaces;
mod notify;
mod opening;
mod privileges;
mod root;
mod stage;
mod version;
mod waiting;

use std::io;
use std::path::PathBuf;

use rustix::fs::Mode;
use rustix::process::{Resource, Rlimit, Signal};
use rustix::thread::CpuSet;

pub use self::code::Code;
use self::code::Executable;
use self::files::ActiveLayers;
pub use self::stage::LaunchError;
use self::stage::{failed, other};
use self::version::{COUNTS_PROCESSES_BY_NAMESPACE, is_linux};
use crate::Limits;
use crate::sandbox::{Enforce, NotEnforced, Sandbox};

/// Stack of the app's first thread in bytes, the same as Rust's default for other threads. A small memory limit makes
/// it smaller.
const STACK_BYTES: u64 = 2 << 20;

/// Address space beyond the writable memory, in bytes. It holds the binary, its libraries, the ports, and what
/// allocators only reserve. For example, glibc reserves 64 MiB for each thread and writes to little of it.
const ADDRESS_ROOM_BYTES: u64 = 512 << 20;

/// No core dump, neither to a file nor to a program. With 0, Linux still pipes the whole memory as root to the
/// program that `core_pattern` names. 1 prevents that too (core(5), "Piping core dumps to a program"). A core file
/// needs at least a page.
const NO_CORE: u64 = 1;

/// All settings of one zone.
#[derive(Debug, Clone)]
pub struct Confinement {
    /// How much of the machine the app may use.
    pub limits: Limits,
    /// Which parts of the machine the app may use.
    pub sandbox: Sandbox,
    /// The code that runs in the zone.
    pub code: Code,
    /// The user id and group id for the app, if the launcher may choose them.
    pub user: Option<u32>,
    /// Folders of control groups that the monitor created. The launcher joins them.
    pub cgroups: Vec<PathBuf>,
    /// Folders that other apps may write to. On the way to a granted path, links in these folders are not followed.
    pub others_write: Vec<PathBuf>,
    /// What the monitor already knows that it cannot enforce.
    pub known_gaps: Vec<NotEnforced>,
}

/// The calling process, which belongs to the app from now on.
#[derive(Debug)]
pub struct Confined {
    not_enforced: Vec<NotEnforced>,
    executable: Option<Executable>,
}

impl Confined {
    /// What was requested and is not in force.
    #[must_use]
    pub fn not_enforced(&self) -> &[NotEnforced] {
        &self.not_enforced
    }

    /// Executes the program of [`Code::Program`]. Returns only if that fails. Standard input stays open for the
    /// program: it is the monitor's socket.
    #[must_use = "exec returned: the program could not be executed"]
    pub fn r#become(self) -> io::Error {
        match self.executable {
            Some(executable) => executable.execute(),
            None => io::Error::other("this zone was not closed for a program of its own"),
        }
    }
}

/// Confines the calling process by the stages above, and returns in the app's process. The launcher calls it first of
/// all: it must have one thread, and only the standard streams open. All other descriptors are closed.
///
/// # Errors
/// [`LaunchError`] if a stage fails that protects others from the app. The caller must then exit.
pub fn confine(confinement: &Confinement) -> Result<Confined, LaunchError> {
    one_thread()?;
    let mut gaps = confinement.known_gaps.clone();
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))
        .map_err(failed("die with the parent"))?;
    gaps.extend(close_descriptors());
    join_groups(confinement)?;
    gaps.extend(own_session());
    // By its path in the old root. In the new root the launcher's binary may have no path.
    let mut code = confinement.code_files();
    let entered = namespaces::enter(confinement, &code, &mut gaps)?;
    rustix::process::umask(Mode::from_raw_mode(0o077));
    let limits = &confinement.limits;
    let executable = confinement.code.open(limits.open_files)?;
    code.extend(executable.as_ref().and_then(Executable::interpreter));
    let own = Own { user: entered.user, layers: entered.layers };
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
    gaps.extend(files::restrict(&confinement.sandbox, &code, own.layers).map_err(other("landlock"))?);
    strictly(confinement.sandbox.enforce, &gaps)?;
    let own_pid = rustix::process::getpid().as_raw_nonzero().get();
    let execute_fd = executable.as_ref().map(Executable::number);
    let Sandbox { spawn, enforce, .. } = confinement.sandbox;
    let net = &confinement.sandbox.net;
    let (listens, must_ask) = (!net.listen.is_empty(), !net.connect.is_empty());
    let calls = judged::Calls { spawn, listens, must_ask, own_pid, execute_fd };
    match filter::install(&calls, entered.to_launcher) {
        Ok(asks) => gaps.extend((!asks && confinement.executes_once()).then(spawn_gap)),
        Err(error) if must_ask || enforce == Enforce::Strict => return Err(other("seccomp")(error)),
        Err(error) => gaps.push(NotEnforced::new("seccomp", error)),
    }
    strictly(enforce, &gaps)?;
    Ok(Confined { not_enforced: gaps, executable })
}

/// From here on the output of the calling process is the app's. Standard error goes where standard output goes. The
/// old standard error belongs to the launcher only.
///
/// # Errors
/// Linux refuses this only to a process without standard output.
pub fn hand_over_streams() -> io::Result<()> {
    Ok(rustix::stdio::dup2_stderr(rustix::stdio::stdout())?)
}

impl Confinement {
    /// Whether the app executes its program and no other program after it.
    fn executes_once(&self) -> bool {
        !self.sandbox.spawn && matches!(self.code, Code::Program { .. })
    }

    /// The files from which the app's process runs. The process must be able to see all of them.
    fn code_files(&self) -> Vec<PathBuf> {
        // The node's own binary: a built-in app runs from it, and each panic reads it for the names in its backtrace.
        let own = std::env::current_exe().ok();
        self.code.path().into_iter().chain(own).collect()
    }
}

/// If no launcher can answer for `execveat`, the filter checks only its descriptor, which Linux ignores if the path
/// is absolute (execveat(2)).
fn spawn_gap() -> NotEnforced {
    let why = "Linux asks no launcher here; the app may execute again what Landlock lets it, the loader of programs among it";
    NotEnforced::new("spawn", why)
}

/// What belongs to this app alone.
#[derive(Clone, Copy)]
struct Own {
    user: Option<u32>,
    layers: ActiveLayers,
}

impl Own {
    fn user_gap(self, sandbox: &Sandbox) -> Option<NotEnforced> {
        if self.user.is_some() || !sandbox.own_user {
            return None;
        }
        let why =
            "only a node that runs as root can give each app its own user; turn it off with own_user = false";
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

/// A fork copies only the calling thread. Locks that other threads hold would stay locked.
fn one_thread() -> Result<(), LaunchError> {
    let threads = std::fs::read_dir("/proc/self/task").map_err(failed("one thread"))?.count();
    if threads == 1 {
        return Ok(());
    }
    Err(other("one thread")(format!("the launcher has {threads} threads")))
}

/// A descriptor that was open in the process that started the node, without close-on-exec, would be open in every
/// zone.
fn close_descriptors() -> Option<NotEnforced> {
    // SAFETY: by the contract of `confine`, the caller has only the standard streams open. So this closes only
    // inherited descriptors that no code uses.
    let closed =
        unsafe { libc::syscall(libc::SYS_close_range, libc::STDERR_FILENO + 1, libc::c_uint::MAX, 0) };
    let why = || format!("files that the node was started with stay open ({})", io::Error::last_os_error());
    (closed != 0).then(|| NotEnforced::new("descriptors", why()))
}

fn join_groups(confinement: &Confinement) -> Result<(), LaunchError> {
    // 0 stands for the writing process (cgroups(7)).
    let join = |folder: &PathBuf| std::fs::write(folder.join("cgroup.procs"), "0");
    confinement.cgroups.iter().try_for_each(join).map_err(failed("cgroup"))
}

fn own_session() -> Option<NotEnforced> {
    // It fails only for a process that already leads a group. Then the app still has a group of its own.
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

/// The app's memory is the sum of both: Linux counts the stack of the first thread apart from all other written
/// memory (RLIMIT_DATA, setrlimit(2)).
fn data_and_stack(memory_bytes: u64) -> (u64, u64) {
    let stack_bytes = STACK_BYTES.min(memory_bytes / 4);
    (memory_bytes - stack_bytes, stack_bytes)
}

/// Lowers both the soft and the hard limit. A limit that is already lower stays.
fn lower(resource: Resource, ceiling: u64) -> rustix::io::Result<()> {
    let ceiling = rustix::process::getrlimit(resource).maximum.map_or(ceiling, |hard| hard.min(ceiling));
    rustix::process::setrlimit(resource, Rlimit { current: Some(ceiling), maximum: Some(ceiling) })
}

/// Linux counts the processes of each user, but not those of root.
fn limit_processes(confinement: &Confinement, own: Own) -> Result<Option<NotEnforced>, LaunchError> {
    let Some(processes) = confinement.limits.processes else { return Ok(None) };
    let counted_by_group = confinement.cgroups.iter().any(|folder| folder.join("pids.max").exists());
    let root = own.user.is_none() && rustix::process::geteuid().is_root();
    let alone = own.user.is_some() || (own.layers.namespaces && is_linux(COUNTS_PROCESSES_BY_NAMESPACE));
    if !root && alone {
        // Init is counted too, and so is the launcher if it has the same user.
        let waiting = if own.user.is_some() { 2 } else { 1 };
        lower(Resource::Nproc, u64::from(processes).saturating_add(waiting)).map_err(failed("processes"))?;
        return Ok(None);
    }
    let why =
        "the app has neither its own user nor its own control group, and Linux counts per user or group";
    Ok((!counted_by_group).then(|| NotEnforced::new("processes", why)))
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
