//! What depends on the version of Linux.
//!
//! In: the version that the system reports. Out: whether it is new enough. It tries nothing.

/// Before this Linux version, a user's processes are counted for the whole machine, even in a user namespace.
pub(super) const COUNTS_PROCESSES_BY_NAMESPACE: (u32, u32) = (5, 14);

/// Before this Linux version, a call that waits for the launcher's answer cannot be continued.
pub(super) const GOES_ON_WHEN_ASKED: (u32, u32) = (5, 5);

/// Whether this is at least such a version.
pub(super) fn is_linux(least: (u32, u32)) -> bool {
    let release = rustix::system::uname().release().to_string_lossy().into_owned();
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(str::parse);
    match (numbers.next(), numbers.next()) {
        (Some(Ok(major)), Some(Ok(minor))) => (major, minor) >= least,
        _ => false,
    }
}
