//! Drops the privileges of a process.
//!
//! In: the user that the process changes to, if it may choose. Out: a process of that user, without capabilities and
//! unable to gain any.
//! It keeps no privilege for later.

use rustix::io::{Errno, Result};
use rustix::process::{DumpableBehavior, Gid, Signal, Uid};
use rustix::thread::{CapabilitySet, CapabilitySets};

/// The caller drops its groups, its user and its capabilities for good. It then requests again to die with its
/// parent, because Linux forgets that with a change of user (`PR_SET_PDEATHSIG`, prctl(2)).
pub(super) fn drop_all(user: Option<u32>) -> Result<()> {
    empty_bounding_set()?;
    if let Some(user) = user {
        become_user(user)?;
    }
    // An older Linux without ambient capabilities has none to clear.
    let _ = rustix::thread::clear_ambient_capability_set();
    let none = CapabilitySet::empty();
    let sets = CapabilitySets { effective: none, permitted: none, inheritable: none };
    rustix::thread::set_capabilities(None, sets)?;
    rustix::thread::set_no_new_privs(true)?;
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))
}

/// Whether processes of the same user may read the caller's memory.
pub(super) fn dumpable(dumpable: bool) -> Result<()> {
    rustix::process::set_dumpable_behavior(if dumpable {
        DumpableBehavior::Dumpable
    } else {
        DumpableBehavior::NotDumpable
    })
}

fn empty_bounding_set() -> Result<()> {
    for number in 0..u64::BITS {
        match rustix::thread::remove_capability_from_bounding_set(CapabilitySet::from_bits_retain(
            1 << number,
        )) {
            Ok(()) => {}
            // Either this was the last capability that this Linux has, or the caller may not change the set. In the
            // second case it has no capability, and without new privileges it cannot gain one.
            Err(Errno::INVAL | Errno::PERM) => return Ok(()),
            Err(errno) => return Err(errno),
        }
    }
    Ok(())
}

fn become_user(user: u32) -> Result<()> {
    let (user, group) = (Uid::from_raw(user), Gid::from_raw(user));
    rustix::thread::set_thread_groups(&[])?;
    rustix::thread::set_thread_res_gid(group, group, group)?;
    // This empties the other sets too, since nothing requested to keep them.
    rustix::thread::set_thread_res_uid(user, user, user)
}
