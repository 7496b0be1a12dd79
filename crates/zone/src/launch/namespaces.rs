//! Gives a zone its own processes, root, network, names and semaphores (namespaces(7)).
//!
//! ```text
//!   the caller ──clone──▶ process 1 of the zone ──fork──▶ the app
//!    waits for it          builds the root; waits          comes back from `enter`
//! ```
//!
//! In: what is granted. Out: the [`ActiveLayers`] that are in force, and a return in another process than the calling one.
//! The processes in between stay in [`super::waiting`]. If Linux refuses namespaces, it returns in the calling
//! process with the reason.
//! It never runs an app's code, and never writes outside of the new root.

use std::os::fd::OwnedFd;
use std::path::PathBuf;

use nix::unistd::Pid;
use rustix::io::Errno;
use rustix::pipe::PipeFlags;
use rustix::process::{Gid, Signal, Uid};

use super::broker::Broker;
use super::files::ActiveLayers;
use super::stage::{LaunchError, failed};
use super::waiting::{self, Signals};
use super::{Confinement, notify, privileges, root};
use crate::sandbox::NotEnforced;

/// All namespaces of a zone except that of users.
const OWN: i32 =
    libc::CLONE_NEWNS | libc::CLONE_NEWPID | libc::CLONE_NEWNET | libc::CLONE_NEWIPC | libc::CLONE_NEWUTS;

/// The host name that an app sees.
const HOST_NAME: &[u8] = b"zone";

/// The result of entering the namespaces.
pub(super) struct Entered {
    pub(super) layers: ActiveLayers,
    /// The user id that the app can change to.
    pub(super) user: Option<u32>,
    /// The socket on which the launcher waits for the listener of this zone's calls.
    pub(super) to_launcher: Option<OwnedFd>,
}

/// Returns in the app's process.
pub(super) fn enter(
    confinement: &Confinement,
    code: &[PathBuf],
    gaps: &mut Vec<NotEnforced>,
) -> Result<Entered, LaunchError> {
    let signals = Signals::hold()?;
    let (status, to_status) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC).map_err(failed("namespaces"))?;
    let (handover, to_launcher) = notify::handover().map_err(failed("namespaces"))?;
    let ids = (rustix::process::geteuid(), rustix::process::getegid());
    let own_user = confinement.user.filter(|_| confinement.sandbox.own_user);
    match clone_into_namespaces(ids.0) {
        Err(errno) => {
            signals.release()?;
            let why = format!("Linux allows none here: {errno}; see burnet doctor");
            gaps.push(NotEnforced::new("namespaces", why));
            let user = own_user.filter(|_| ids.0.is_root());
            Ok(Entered { layers: ActiveLayers::default(), user, to_launcher: None })
        }
        Ok(Cloned::Parent { child, with_user }) => {
            drop((to_status, to_launcher));
            let broker = Broker::new(&confinement.sandbox, handover, confinement.executes_once());
            waiting::as_launcher(child, status, &signals, own_user.filter(|_| !with_user), broker)
        }
        Ok(Cloned::Child { with_user }) => {
            drop((status, handover));
            let user = own_user.filter(|_| !with_user);
            if with_user {
                map_own_ids(ids)?;
            }
            let entered = as_first_process(confinement, code, to_status, signals, user, gaps)?;
            Ok(Entered { to_launcher: Some(to_launcher), ..entered })
        }
    }
}

/// What process 1 does before the app exists.
fn as_first_process(
    confinement: &Confinement,
    code: &[PathBuf],
    to_status: OwnedFd,
    signals: Signals,
    user: Option<u32>,
    gaps: &mut Vec<NotEnforced>,
) -> Result<Entered, LaunchError> {
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))
        .map_err(failed("die with the launcher"))?;
    rustix::system::sethostname(HOST_NAME).map_err(failed("names"))?;
    let root = match root::build(&confinement.sandbox, code, &confinement.others_write, confinement.user) {
        Ok(unrestricted) => {
            gaps.extend(unrestricted);
            true
        }
        Err(root::NotBuilt::Refused(errno)) => {
            let why = format!("Linux does not allow mounts here ({errno})");
            gaps.push(NotEnforced::new("root", why));
            false
        }
        Err(root::NotBuilt::Failed(error)) => return Err(error),
    };
    // Before the app exists and could read this process.
    privileges::dumpable(false).map_err(failed("privileges"))?;
    if let Some(app) = fork()? {
        waiting::as_init(app, to_status, &signals, user);
    }
    drop(to_status);
    signals.release()?;
    // Otherwise it would signal the launcher too when it signals its group.
    rustix::process::setsid().map_err(failed("session"))?;
    Ok(Entered { layers: ActiveLayers { namespaces: true, root }, user, to_launcher: None })
}

enum Cloned {
    Parent { child: Pid, with_user: bool },
    Child { with_user: bool },
}

/// Root creates them without a user namespace, so that it can give the app any user. All other users need one.
fn clone_into_namespaces(user: Uid) -> Result<Cloned, Errno> {
    if user.is_root()
        && let Ok(cloned) = clone(OWN, false)
    {
        return Ok(cloned);
    }
    clone(OWN | libc::CLONE_NEWUSER, true)
}

/// A fork whose child is in new namespaces.
fn clone(flags: i32, with_user: bool) -> Result<Cloned, Errno> {
    let flags = libc::c_long::from(flags | libc::SIGCHLD);
    // SAFETY: without CLONE_VM this is a fork: the child has a copy of everything and continues on its copy of this
    // stack. The caller ensured that only one thread exists. So no lock is held by a thread that the child lacks.
    let pid = unsafe { libc::syscall(libc::SYS_clone, flags, 0, 0, 0, 0) };
    match i32::try_from(pid) {
        Ok(0) => Ok(Cloned::Child { with_user }),
        Ok(child) if child > 0 => Ok(Cloned::Parent { child: Pid::from_raw(child), with_user }),
        _ => Err(last_errno()),
    }
}

/// The child's id in the parent, `None` in the child.
fn fork() -> Result<Option<Pid>, LaunchError> {
    // SAFETY: as in `clone`.
    match unsafe { libc::fork() } {
        0 => Ok(None),
        child if child > 0 => Ok(Some(Pid::from_raw(child))),
        _ => Err(failed("fork")(last_errno())),
    }
}

fn last_errno() -> Errno {
    Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::INVAL)
}

/// The caller keeps its ids in its user namespace (user_namespaces(7), "Defining user and group ID mappings").
fn map_own_ids((user, group): (Uid, Gid)) -> Result<(), LaunchError> {
    let write = |file: &str, text: String| {
        std::fs::write(format!("/proc/self/{file}"), text)
            .map_err(|cause| LaunchError { stage: "user namespace", cause })
    };
    let (user, group) = (user.as_raw(), group.as_raw());
    write("setgroups", "deny".to_owned())?;
    write("uid_map", format!("{user} {user} 1"))?;
    write("gid_map", format!("{group} {group} 1"))
}
