//! The version of Landlock on this machine.
//!
//! In: nothing. Out: the number of Landlock's ABI, or an error if this Linux has no Landlock. It restricts nothing.

use std::io;

/// `LANDLOCK_CREATE_RULESET_VERSION` (landlock_create_ruleset(2)): return the version, create nothing.
const TELL_VERSION: libc::c_uint = 1;

/// The highest version of Landlock's ABI that the running Linux supports.
///
/// # Errors
/// Linux's error if it has no Landlock: `ENOSYS` if Linux was built without it, `EOPNOTSUPP` if it was disabled at
/// boot.
pub fn abi() -> io::Result<u32> {
    // SAFETY: with a null attribute of size 0 and this flag the call reads and writes no memory of ours, and opens nothing.
    let version = unsafe {
        libc::syscall(
            libc::SYS_landlock_create_ruleset,
            std::ptr::null::<libc::c_void>(),
            0_usize,
            TELL_VERSION,
        )
    };
    u32::try_from(version).map_err(|_| io::Error::last_os_error())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_is_a_version_or_one_of_the_two_documented_refusals() {
        match abi() {
            Ok(version) => assert!(version >= 1),
            Err(error) => {
                assert!(matches!(error.raw_os_error(), Some(libc::ENOSYS | libc::EOPNOTSUPP)), "{error}")
            }
        }
    }
}
