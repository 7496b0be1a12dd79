//! Wakes the other end of a port, and waits to be woken, through descriptors that the peer holds too.
//!
//! The kernel writes one eventfd (`wake_app`) and is woken by another (`wake_kernel`). All holders of an eventfd share
//! its non-blocking mode and its counter. An app that held `wake_app` could make it blocking and fill its counter, and
//! so block the kernel's worker in its next write for ever. Therefore an app gets an epoll descriptor that watches the
//! eventfd (edge-triggered). It can wait on that, but not change the eventfd. The kernel never reads `wake_kernel`,
//! because the app could empty it in between and make the read block. Edges are enough.
//!
//! Never here: anything that can block the kernel's end.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::event::{EventfdFlags, Timespec, epoll, eventfd};
use rustix::fs::{OFlags, fcntl_getfl, fstatfs};
use rustix::io::Errno;

use crate::fault::PortFault;

/// The file system type of an eventfd in `fstatfs` (`ANON_INODE_FS_MAGIC` in Linux's `magic.h`).
const ANON_INODE_FS_MAGIC: i128 = 0x0904_1934;

/// Makes an eventfd.
pub(crate) fn create() -> io::Result<OwnedFd> {
    Ok(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?)
}

/// A descriptor that becomes readable whenever `wake` is written, through which `wake` can be neither read nor written.
pub(crate) fn watch(wake: &OwnedFd) -> io::Result<OwnedFd> {
    let watch = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    epoll::add(&watch, wake, epoll::EventData::new_u64(0), epoll::EventFlags::IN | epoll::EventFlags::ET)?;
    Ok(watch)
}

/// Refuses a descriptor that is not an eventfd; `which` is its name. A timer would pass: it wakes nobody, but cannot
/// block either.
pub(crate) fn expect_eventfd(fd: &OwnedFd, which: &'static str) -> Result<(), PortFault> {
    let anonymous = fstatfs(fd).is_ok_and(|stat| i128::from(stat.f_type) == ANON_INODE_FS_MAGIC);
    if anonymous { Ok(()) } else { Err(PortFault::NotAWake { which }) }
}

/// Refuses a descriptor that would block when it is full; `which` is its name. Only for a descriptor that the peer does
/// not hold, because the peer could change this at any time.
pub(crate) fn expect_nonblocking(fd: &OwnedFd, which: &'static str) -> Result<(), PortFault> {
    let nonblocking = fcntl_getfl(fd).is_ok_and(|flags| flags.contains(OFlags::NONBLOCK));
    if nonblocking { Ok(()) } else { Err(PortFault::NotAWake { which }) }
}

/// Refuses a descriptor that is not an epoll descriptor; `which` is its name.
pub(crate) fn expect_watch(fd: &OwnedFd, which: &'static str) -> Result<(), PortFault> {
    wait(fd.as_fd(), Some(Duration::ZERO)).map(|_| ()).map_err(|_| PortFault::NotAWake { which })
}

/// Waits on a [`watch`] for a wake-up (`true`), or until `timeout` passes or a signal arrives (`false`). It consumes
/// the wake-up: the next wait waits for the next one.
pub(crate) fn wait(watch: BorrowedFd<'_>, timeout: Option<Duration>) -> io::Result<bool> {
    // Only a timeout of centuries does not fit. That is the same as no timeout.
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
        // It fails only if the counter is full. Then the peer has enough wake-ups.
        let _ = rustix::io::write(&self.0, &1_u64.to_ne_bytes());
    }
}
