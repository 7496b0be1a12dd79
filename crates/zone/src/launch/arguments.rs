//! Arguments of system calls: the bits by which the filter and the launcher judge a call.
//!
//! In: constants of Linux. Out: the same as the words that seccomp compares. It judges nothing.

/// A constant of Linux, none of which is negative, or a process id.
pub(super) const fn word(constant: i32) -> u64 {
    constant.unsigned_abs() as u64
}

/// `S_ISUID` and `S_ISGID`.
pub(super) const SET_ID: u64 = 0o6000;

/// With one of these flags open(2) creates a file. `O_TMPFILE` contains the bit of `O_DIRECTORY`, which creates none.
pub(super) const MAKES_A_FILE: u64 = word(libc::O_CREAT) | word(libc::O_TMPFILE & !libc::O_DIRECTORY);

/// The same as a word, to mask an argument with.
pub(super) const NAMESPACES: u64 = word(CLONE_NEW);

/// All flags of clone(2) that create a namespace.
pub(super) const CLONE_NEW: i32 = libc::CLONE_NEWNS
    | libc::CLONE_NEWCGROUP
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUSER
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET;

/// The lower four bits of the type in socket(2). The bits above are flags.
pub(super) const SOCKET_TYPE_BITS: u64 = 0xf;
