//! Waking the other end of a port, and being woken, by descriptors that the peer holds too.
//!
//! The kernel writes one eventfd (`wake_app`) and is woken by another (`wake_kernel`). An eventfd's non-blocking mode and its
//! counter belong to all who hold it: an app that held `wake_app` could make it blocking, fill its counter, and so stop the
//! kernel's worker in its next write for ever. Therefore an app is given an epoll descriptor that watches the eventfd
//! (edge-triggered) and not the eventfd itself; it can wait on that and spoil nothing. In the same way the kernel never
//! reads `wake_kernel`, because the app could empty it in between and make the read block: edges are enough.
//!
//! Never here: anything that can block the kernel's end.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::event::{EventfdFlags, Timespec, epoll, eventfd};
use rustix::fs::{OFlags, fcntl_getfl, fstatfs};
use rustix::io::Errno;

use crate::fault::PortFault;

/// What `fstatfs` says of an eventfd (`ANON_INODE_FS_MAGIC` in Linux's `magic.h`).
const ANON_INODE_FS_MAGIC: i128 = 0x0904_1934;

/// A fresh eventfd.
pub(crate) fn create() -> io::Result<OwnedFd> {
    Ok(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?)
}

/// A descriptor that becomes readable whenever `wake` is written, through which `wake` can be neither read nor written.
pub(crate) fn watch(wake: &OwnedFd) -> io::Result<OwnedFd> {
    let watch = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    epoll::add(&watch, wake, epoll::EventData::new_u64(0), epoll::EventFlags::IN | epoll::EventFlags::ET)?;
    Ok(watch)
}

/// Refuses what is no eventfd; `which` is its name. (A timer or the like would pass: it wakes nobody, and cannot block either.)
pub(crate) fn expect_eventfd(fd: &OwnedFd, which: &'static str) -> Result<(), PortFault> {
    let anonymous = fstatfs(fd).is_ok_and(|stat| i128::from(stat.f_type) == ANON_INODE_FS_MAGIC);
    if anonymous { Ok(()) } else { Err(PortFault::NotAWake { which }) }
}

/// Refuses what would block when it is full; `which` is its name. Only for a descriptor that the peer does not hold: it could
/// change this at any time.
pub(crate) fn expect_nonblocking(fd: &OwnedFd, which: &'static str) -> Result<(), PortFault> {
    let nonblocking = fcntl_getfl(fd).is_ok_and(|flags| flags.contains(OFlags::NONBLOCK));
    if nonblocking { Ok(()) } else { Err(PortFault::NotAWake { which }) }
}

/// Refuses what is no epoll descriptor; `which` is its name.
pub(crate) fn expect_watch(fd: &OwnedFd, which: &'static str) -> Result<(), PortFault> {
    wait(fd.as_fd(), Some(Duration::ZERO)).map(|_| ()).map_err(|_| PortFault::NotAWake { which })
}

/// Waits on a [`watch`] until it was woken (`true`), or `timeout` passed or a signal came (`false`). Being woken is thereby taken
/// note of: the next wait waits for the next wake-up.
pub(crate) fn wait(watch: BorrowedFd<'_>, timeout: Option<Duration>) -> io::Result<bool> {
    // Only a timeout of centuries does not fit; none at all is the same.
    let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
    let mut events = [const { std::mem::MaybeUninit::<epoll::Event>::uninit() }; 1];
    match epoll::wait(watch, &mut events, timeout.as_ref()) {
        Ok((events, _)) => Ok(!events.is_empty()),
        Err(Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// The eventfd that wakes the peer.
pub(crate) struct PeerWake(pub(crate) OwnedFd);

impl PeerWake {
    /// Wakes the peer if it waits.
    pub(crate) fn wake(&self) {
        // It refuses only when the counter is full: then there are wake-ups enough that the peer has not taken.
        let _ = rustix::io::write(&self.0, &1_u64.to_ne_bytes());
    }
}
