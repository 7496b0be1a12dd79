//! Decides what to report about a file that an app opens.
//! ```text
//!   open, openat, creat ──> Opening ──judge(where it is visible, fs.write)──> a message for the operator, or nothing
//! ```
//!
//! Pure. It refuses nothing: the root and Landlock do that, and every such call reaches them. An app that changes the
//! path during the check gains nothing. Only the message then names another file.

use std::path::{Component, Path, PathBuf};

use super::arguments::{MAKES_A_FILE, SET_ID, word};
use super::notify::Call;
use crate::sandbox::Files;

/// An open(2), openat(2) or creat(2), by its arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Opening {
    /// Where a relative path begins: the working folder, or this descriptor.
    pub(super) folder: Option<u64>,
    /// The address of the path in the caller's memory.
    pub(super) path: u64,
    /// Whether the call writes or creates the file.
    pub(super) writes: bool,
    /// Whether the call creates a set-user-id or set-group-id file.
    pub(super) gives_identity: bool,
}

impl Opening {
    /// Returns nothing for all other calls.
    pub(super) fn of(call: &Call) -> Option<Opening> {
        let [first, second, third, fourth, ..] = call.arguments;
        #[cfg(target_arch = "x86_64")]
        match call.number {
            libc::SYS_open => return Some(Opening::with(None, first, second, third)),
            libc::SYS_creat => return Some(Opening::with(None, first, CREATES, second)),
            _ => {}
        }
        (call.number == libc::SYS_openat).then(|| Opening::with(folder(first), second, third, fourth))
    }

    fn with(folder: Option<u64>, path: u64, flags: u64, mode: u64) -> Opening {
        let makes = flags & MAKES_A_FILE != 0;
        let writes = makes || flags & word(libc::O_TRUNC | libc::O_ACCMODE) != 0;
        Opening { folder, path, writes, gives_identity: makes && mode & SET_ID != 0 }
    }
}

/// Where the file is that an app opens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PathLocation {
    /// In the zone.
    Visible,
    /// Not in the zone, but on this machine.
    Hidden,
    /// Neither in the zone nor on this machine.
    Missing,
}

/// The flags for which creat(2) stands.
#[cfg(target_arch = "x86_64")]
const CREATES: u64 = word(libc::O_CREAT | libc::O_WRONLY | libc::O_TRUNC);

/// Files that libraries look for at each start and do not need. Reports on them would hide the others. They tell an
/// app nothing if it opens them.
const LOOKED_FOR: [&str; 13] = [
    "/etc/ld.so.preload",
    "/etc/localtime",
    "/etc/nsswitch.conf",
    "/etc/ssl/openssl.cnf",
    "/proc/cpuinfo",
    "/proc/meminfo",
    "/proc/stat",
    "/proc/sys/vm",
    "/sys/devices/system",
    "/sys/fs/cgroup",
    "/sys/kernel/mm",
    "/usr/lib/ssl/openssl.cnf",
    "/usr/share/locale",
];

/// Longer paths are cut in messages.
const PATH_CHARS_MAX: usize = 200;

/// The message for the operator, if any.
pub(super) fn judge(path: &Path, writes: bool, location: PathLocation, granted: &Files) -> Option<String> {
    let within = |folder: &Path| path.starts_with(folder);
    let may_write = granted.write.iter().any(|folder| within(folder));
    if writes {
        let allowed = may_write || within(Path::new("/dev"));
        return (!allowed).then(|| format!("writing to {} is not granted by fs.write", legible(path)));
    }
    // A file that is invisible below a granted folder does not exist, even if the launcher's user may not look there.
    let may_read = || may_write || granted.read.iter().any(|folder| within(folder));
    let looked_for = || LOOKED_FOR.iter().any(|quiet| within(Path::new(quiet)));
    (location == PathLocation::Hidden && !may_read() && !looked_for())
        .then(|| format!("reading {} is not granted by fs.read", legible(path)))
}

/// The path from the root, computed from its text alone. `..` of the root is the root.
pub(super) fn absolute(folder: &Path, path: &Path) -> PathBuf {
    let mut absolute = PathBuf::from("/");
    for component in folder.components().chain(path.components()) {
        match component {
            // An absolute path starts again at the root.
            Component::RootDir => absolute = PathBuf::from("/"),
            Component::ParentDir => drop(absolute.pop()),
            Component::Normal(name) => absolute.push(name),
            Component::CurDir | Component::Prefix(_) => {}
        }
    }
    absolute
}

fn legible(path: &Path) -> String {
    path.display().to_string().chars().take(PATH_CHARS_MAX).flat_map(char::escape_debug).collect()
}

/// `AT_FDCWD` is an int, and Linux checks only the lower half.
fn folder(argument: u64) -> Option<u64> {
    let low = argument & u64::from(u32::MAX);
    (low != u64::from(libc::AT_FDCWD.cast_unsigned())).then_some(low)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(path: &str, writes: bool, location: PathLocation, expected: Option<&str>) {
        let granted = Files { read: vec!["/lib".into()], write: vec!["/data".into()] };
        let words = judge(Path::new(path), writes, location, &granted);
        assert_eq!(words.as_deref(), expected, "{path}");
    }

    #[test]
    fn what_is_hidden_is_said() {
        let words = Some("reading /etc/shadow is not granted by fs.read");
        check("/etc/shadow", false, PathLocation::Hidden, words);
        check("/a\nb", false, PathLocation::Hidden, Some("reading /a\\nb is not granted by fs.read"));
        check("/etc/localtime", false, PathLocation::Hidden, None);
        let key = Some("reading /etc/ssl/private/key.pem is not granted by fs.read");
        check("/etc/ssl/private/key.pem", false, PathLocation::Hidden, key);
        check(
            "/etc/localtime2",
            false,
            PathLocation::Hidden,
            Some("reading /etc/localtime2 is not granted by fs.read"),
        );
    }

    #[test]
    fn what_is_there_or_nowhere_is_not() {
        check("/usr/lib/libc.so.6", false, PathLocation::Visible, None);
        check("/no/such/file", false, PathLocation::Missing, None);
        check("/lib/no/such/file", false, PathLocation::Hidden, None);
        check("/data/no/such/file", false, PathLocation::Hidden, None);
    }

    #[test]
    fn writing_needs_a_grant_wherever_the_file_is() {
        let words = Some("writing to /usr/x is not granted by fs.write");
        check("/usr/x", true, PathLocation::Visible, words);
        check("/usr/x", true, PathLocation::Missing, words);
        check("/data/x", true, PathLocation::Missing, None);
        check("/dev/null", true, PathLocation::Visible, None);
        check(
            "/database",
            true,
            PathLocation::Missing,
            Some("writing to /database is not granted by fs.write"),
        );
    }

    #[test]
    fn a_path_is_what_it_comes_to() {
        let check = |folder: &str, path: &str, expected: &str| {
            assert_eq!(absolute(Path::new(folder), Path::new(path)), Path::new(expected), "{folder} {path}");
        };
        check("/", "", "/");
        check("/usr", "../etc/./shadow", "/etc/shadow");
        check("/usr", "../../../etc", "/etc");
        check("/usr", "/etc", "/etc");
    }

    fn call(number: i64, arguments: [i32; 4]) -> Option<Opening> {
        let [a, b, c, d] = arguments.map(|word| u64::from(word.cast_unsigned()));
        Opening::of(&Call { id: 0, thread: 0, number, arguments: [a, b, c, d, 0, 0] })
    }

    #[test]
    fn arguments_lie_where_the_call_has_them() {
        let read = Opening { folder: None, path: 9, writes: false, gives_identity: false };
        assert_eq!(call(libc::SYS_read, [0; 4]), None);
        assert_eq!(call(libc::SYS_openat, [libc::AT_FDCWD, 9, libc::O_CLOEXEC, 0o4755]), Some(read));
        assert_eq!(
            call(libc::SYS_openat, [5, 9, libc::O_RDONLY, 0]),
            Some(Opening { folder: Some(5), ..read })
        );
        let folder = call(libc::SYS_openat, [libc::AT_FDCWD, 9, libc::O_DIRECTORY, 0]);
        assert_eq!(folder, Some(read));
        let made = call(libc::SYS_openat, [libc::AT_FDCWD, 9, libc::O_CREAT, 0o4755]);
        assert_eq!(made, Some(Opening { writes: true, gives_identity: true, ..read }));
        let emptied = call(libc::SYS_openat, [libc::AT_FDCWD, 9, libc::O_TRUNC, 0]);
        assert_eq!(emptied, Some(Opening { writes: true, ..read }));
        #[cfg(target_arch = "x86_64")]
        {
            assert_eq!(call(libc::SYS_open, [9, libc::O_RDONLY, 0, 0]), Some(read));
            let made = Some(Opening { writes: true, gives_identity: true, ..read });
            assert_eq!(call(libc::SYS_creat, [9, 0o2755, 0, 0]), made);
        }
    }
}
