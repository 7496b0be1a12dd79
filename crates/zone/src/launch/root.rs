//! The empty root of a zone, and what is mounted into it.
//!
//! In: what is granted, and the files that the app runs from. Out: the calling process, in its own mount namespace,
//! has a read-only root. The root contains only:
//!
//! | what | how |
//! |---|---|
//! | `/usr`, `/lib` …, the loader's cache | read-only |
//! | the app's code, the node's own binary | read-only |
//! | `/dev/null`, `zero`, `full`, `random`, `urandom` | as on the machine |
//! | `/proc`, of the zone's own processes | read-only, without the rest of `/proc` |
//! | `fs.read` | read-only |
//! | `fs.write` | nothing in it can be executed |
//!
//! No mount gives privileges (`nosuid`). Only the mounts of the devices allow devices (the others are `nodev`).
//! It never changes anything that another process sees.

use std::ffi::CString;
use std::fs::{self, Permissions};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags, openat2};
use rustix::io::Errno;
use rustix::mount::{
    MountFlags, MountPropagationFlags, MoveMountFlags, OpenTreeFlags, UnmountFlags, mount,
    mount_bind_recursive, mount_change, mount_remount, move_mount, open_tree, unmount,
};

use super::files::{DEVICES, LOADER_CACHE, SYSTEM_FOLDERS};
use super::stage::LaunchError;
use crate::sandbox::{NotEnforced, Sandbox};

/// Folders that exist on every system. The new root is mounted over one of them for a moment, so nothing stays
/// hidden.
const PLACES: [&str; 2] = ["/tmp", "/usr"];

/// Where the old root is mounted for a moment.
const OLD: &str = "/.old";

/// The root holds empty files and folders as mount points, and no data.
const ROOT_OPTIONS: &std::ffi::CStr = c"mode=0755,size=64k,nr_inodes=4096";

/// Why the root was not built.
pub(super) enum NotBuilt {
    /// Linux does not allow the caller to mount anything. Nothing was changed.
    Refused(Errno),
    /// A stage failed after the first change.
    Failed(LaunchError),
}

impl From<LaunchError> for NotBuilt {
    fn from(error: LaunchError) -> NotBuilt {
        NotBuilt::Failed(error)
    }
}

/// Builds the root and moves into it. Returns what in it could not be restricted.
pub(super) fn build(
    sandbox: &Sandbox,
    code: &[PathBuf],
    others_write: &[PathBuf],
    app_user: Option<u32>,
) -> Result<Vec<NotEnforced>, NotBuilt> {
    // Later mounts must not be visible to other processes.
    let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    mount_change("/", private).map_err(NotBuilt::Refused)?;
    let place = PLACES.into_iter().find(|place| Path::new(place).is_dir()).unwrap_or("/");
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    mount("tmpfs", place, "tmpfs", flags, ROOT_OPTIONS).map_err(NotBuilt::Refused)?;
    // The app's user must be able to use what is created here.
    let umask = rustix::process::umask(Mode::from_raw_mode(0o022));
    enter(place)?;
    let gaps = fill(sandbox, code, &Links { others_write, app_user })?;
    rustix::process::umask(umask);
    leave_old()?;
    Ok(gaps)
}

/// The place becomes the root, and the old root a folder in it.
fn enter(place: &str) -> Result<(), LaunchError> {
    let old = format!("{place}{OLD}");
    fs::create_dir(&old).map_err(at("root", &old))?;
    rustix::process::pivot_root(place, &old).map_err(on("root", place))?;
    rustix::process::chdir("/").map_err(on("root", "/"))
}

fn leave_old() -> Result<(), LaunchError> {
    unmount(OLD, UnmountFlags::DETACH).map_err(on("root", OLD))?;
    fs::remove_dir(OLD).map_err(at("root", OLD))?;
    // Not the mounts below it: some of them must stay writable.
    match set_attributes(CWD, Path::new("/"), libc::MOUNT_ATTR_RDONLY, 0) {
        Err(Errno::NOSYS) => remount(Path::new("/"), libc::MOUNT_ATTR_RDONLY).map_err(on("root", "/")),
        done => done.map_err(on("root", "/")),
    }
}

fn fill(sandbox: &Sandbox, code: &[PathBuf], links: &Links<'_>) -> Result<Vec<NotEnforced>, LaunchError> {
    const KEEP_OUT: u64 = libc::MOUNT_ATTR_RDONLY | libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NODEV;
    const DATA: u64 = libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NODEV | libc::MOUNT_ATTR_NOEXEC;
    const DEVICE: u64 = libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NOEXEC;
    let mut gaps = Vec::new();
    for folder in SYSTEM_FOLDERS {
        gaps.extend(system_folder(folder, KEEP_OUT)?);
    }
    gaps.extend(show_if_there(Path::new(LOADER_CACHE), KEEP_OUT)?);
    for device in DEVICES {
        gaps.extend(show_if_there(Path::new(device), DEVICE)?);
    }
    own_proc();
    for path in code {
        gaps.extend(show(path, KEEP_OUT, links).map_err(|error| error.of("the app's code"))?);
    }
    for path in &sandbox.fs.read {
        gaps.extend(show(path, KEEP_OUT, links).map_err(|error| error.of("fs.read"))?);
    }
    for path in &sandbox.fs.write {
        gaps.extend(show(path, DATA, links).map_err(|error| error.of("fs.write"))?);
    }
    Ok(gaps)
}

/// On most systems `/lib` is a link to `/usr/lib`.
fn system_folder(folder: &str, attributes: u64) -> Result<Vec<NotEnforced>, LaunchError> {
    match fs::read_link(old(Path::new(folder))) {
        Ok(target) => symlink(target, folder).map(|()| Vec::new()).map_err(at("root", folder)),
        Err(_) => show_if_there(Path::new(folder), attributes),
    }
}

/// An app needs little of it. If Linux refuses (older versions do not know `subset`), the zone has no `/proc`.
fn own_proc() {
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC | MountFlags::RDONLY;
    let _ = fs::create_dir("/proc")
        .map(|()| mount("proc", "/proc", "proc", flags, c"subset=pid,hidepid=invisible"));
}

fn show_if_there(path: &Path, attributes: u64) -> Result<Vec<NotEnforced>, LaunchError> {
    if old(path).exists() { show(path, attributes, &Links::SYSTEM) } else { Ok(Vec::new()) }
}

/// The user ids of a node's apps are within a range of this size.
const APP_USERS: u32 = 1 << 16;

/// Which links are followed on the way to a file.
struct Links<'a> {
    /// Links in these folders are not followed: other apps may change them.
    others_write: &'a [PathBuf],
    /// Links that a user of the node's apps made are not followed. This is one of these users: a node that runs as
    /// root gives each app its own.
    app_user: Option<u32>,
}

impl Links<'_> {
    /// For the system's own folders: only root can change them.
    const SYSTEM: Links<'static> = Links { others_write: &[], app_user: None };

    /// Why a link is not followed, if so. `link` is its path below a root.
    fn refusal(&self, root: &Path, link: &Path, owner: u32) -> Option<io::Error> {
        let path = Path::new("/").join(link.strip_prefix(root).unwrap_or(link));
        let why = match self.others_write.iter().find(|folder| path.starts_with(folder)) {
            Some(folder) => format!("lies in {}, which another app may change", folder.display()),
            None if self.app_user.is_some_and(|user| user.abs_diff(owner) < APP_USERS) => {
                format!("was created by the user {owner} of an app")
            }
            None => return None,
        };
        let words = format!(
            "{} is a symbolic link, which {why}. It is not followed: grant the path that it points to",
            path.display()
        );
        Some(io::Error::new(io::ErrorKind::PermissionDenied, words))
    }
}

/// Mounts a file or folder of the old root at the same path of the new root. A descriptor identifies it as soon as it
/// is found, so no process can put another one in its place.
fn show(path: &Path, attributes: u64, links: &Links<'_>) -> Result<Vec<NotEnforced>, LaunchError> {
    let source = resolved(Path::new(OLD), path, links).map_err(at("root", path))?;
    let found = open_as_it_is(&source).map_err(on("root", path))?;
    let mode = rustix::fs::fstat(&found).map_err(on("root", path))?.st_mode;
    make_place(path, FileType::from_raw_mode(mode) == FileType::Directory).map_err(at("root", path))?;
    let place = resolved(Path::new("/"), path, links).map_err(at("root", path))?;
    match mount_found(&found, &place, attributes) {
        // Before Linux 5.12: by their paths, and each mount is restricted separately.
        Err(Errno::NOSYS) => {
            mount_bind_recursive(&source, path).map_err(on("root", path))?;
            restrict(path, attributes)
        }
        done => done.map(|()| Vec::new()).map_err(on("root", path)),
    }
}

/// Opens a path without links. It is an error if a link was put there since.
fn open_as_it_is(path: &Path) -> Result<OwnedFd, Errno> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    match openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS) {
        Err(Errno::NOSYS) => rustix::fs::open(path, flags | OFlags::NOFOLLOW, Mode::empty()),
        done => done,
    }
}

/// Mounts what the descriptor stands for. The mount and all mounts below it are restricted before any process can see
/// them.
fn mount_found(found: &OwnedFd, place: &Path, attributes: u64) -> Result<(), Errno> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
    let flags = flags | OpenTreeFlags::AT_EMPTY_PATH | OpenTreeFlags::AT_RECURSIVE;
    let tree = open_tree(found, c"", flags)?;
    set_attributes(tree.as_fd(), Path::new(""), attributes, libc::AT_RECURSIVE | libc::AT_EMPTY_PATH)?;
    let place = open_as_it_is(place)?;
    let both = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    move_mount(&tree, c"", &place, c"", both)
}

/// Creates a mount point, unless a suitable one exists.
fn make_place(path: &Path, is_folder: bool) -> io::Result<()> {
    if path.exists() {
        return Ok(());
    }
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    if is_folder {
        return fs::create_dir(path);
    }
    fs::File::create(path)?.set_permissions(Permissions::from_mode(0o444))
}

fn old(path: &Path) -> PathBuf {
    Path::new(OLD).join(path.strip_prefix("/").unwrap_or(path))
}

/// The same file below this root, by a path without links. An absolute link in the old root would lead into the new
/// one.
fn resolved(root: &Path, path: &Path, links: &Links<'_>) -> io::Result<PathBuf> {
    let mut done = root.to_owned();
    let mut left: Vec<_> = components(path);
    for _ in 0..LINKS_MAX {
        let Some(next) = left.pop() else { return Ok(done) };
        if next == ".." {
            if done != root {
                done.pop();
            }
            continue;
        }
        done.push(next);
        let found = fs::symlink_metadata(&done)?;
        if !found.is_symlink() {
            continue;
        }
        if let Some(refusal) = links.refusal(root, &done, found.uid()) {
            return Err(refusal);
        }
        let target = fs::read_link(&done)?;
        done.pop();
        if target.is_absolute() {
            done = root.to_owned();
        }
        left.extend(components(&target));
    }
    Err(Errno::LOOP.into())
}

/// Names and links in one path, in total. A path has 4096 bytes.
const LINKS_MAX: usize = 4096;

/// The components of a path, the last one first.
fn components(path: &Path) -> Vec<std::ffi::OsString> {
    let kept = path
        .components()
        .filter(|part| matches!(part, std::path::Component::Normal(_) | std::path::Component::ParentDir));
    kept.map(|part| part.as_os_str().to_owned()).rev().collect()
}

/// Restricts a mount and all mounts below it. Returns what below it could not be restricted.
fn restrict(path: &Path, attributes: u64) -> Result<Vec<NotEnforced>, LaunchError> {
    match set_attributes(CWD, path, attributes, libc::AT_RECURSIVE) {
        // Before Linux 5.12 each mount is restricted separately.
        Err(Errno::NOSYS) => {
            remount(path, attributes).map_err(on("root", path))?;
            Ok(restrict_beneath(path, attributes))
        }
        done => done.map(|()| Vec::new()).map_err(on("root", path)),
    }
}

fn restrict_beneath(path: &Path, attributes: u64) -> Vec<NotEnforced> {
    let mounts = match fs::read_to_string(old(Path::new("/proc/self/mountinfo"))) {
        Ok(mounts) => mounts,
        Err(error) => {
            return vec![unrestricted(path, &format!("the mounts below it are unknown: {error}"))];
        }
    };
    let refused =
        |mount: PathBuf| remount(&mount, attributes).err().map(|errno| unrestricted(&mount, &errno));
    mounts_beneath(&mounts, path).into_iter().filter_map(refused).collect()
}

fn unrestricted(mount: &Path, why: &dyn std::fmt::Display) -> NotEnforced {
    let mount = mount.display();
    NotEnforced::new(
        "root",
        format!("{mount} is mounted as it is for others ({why}): this Linux cannot restrict it"),
    )
}

/// Parses mountinfo (proc_pid_mountinfo(5)), whose fifth word is the mount point.
fn mounts_beneath(mounts: &str, folder: &Path) -> Vec<PathBuf> {
    let place = |line: &str| line.split(' ').nth(4).map(unescaped);
    mounts.lines().filter_map(place).filter(|place| place != folder && place.starts_with(folder)).collect()
}

/// Replaces escapes: blanks, line ends and backslashes are written as a backslash and three octal digits.
fn unescaped(word: &str) -> PathBuf {
    let mut bytes = Vec::new();
    let mut rest = word.as_bytes();
    while let Some((&first, behind)) = rest.split_first() {
        let octal = behind.get(..3).and_then(|digits| std::str::from_utf8(digits).ok());
        let code = octal.filter(|_| first == b'\\').and_then(|digits| u8::from_str_radix(digits, 8).ok());
        bytes.push(code.unwrap_or(first));
        rest = if code.is_some() { &behind[3..] } else { behind };
    }
    PathBuf::from(std::ffi::OsString::from_vec(bytes))
}

fn remount(path: &Path, attributes: u64) -> Result<(), Errno> {
    mount_remount(path, remount_flags(attributes), c"")
}

fn remount_flags(attributes: u64) -> MountFlags {
    let pairs = [
        (libc::MOUNT_ATTR_RDONLY, MountFlags::RDONLY),
        (libc::MOUNT_ATTR_NOSUID, MountFlags::NOSUID),
        (libc::MOUNT_ATTR_NODEV, MountFlags::NODEV),
        (libc::MOUNT_ATTR_NOEXEC, MountFlags::NOEXEC),
    ];
    let asked = pairs.into_iter().filter(|(attribute, _)| attributes & attribute != 0);
    asked.fold(MountFlags::BIND, |flags, (_, flag)| flags | flag)
}

/// mount_setattr(2).
fn set_attributes(
    folder: BorrowedFd<'_>,
    path: &Path,
    attributes: u64,
    flags: libc::c_int,
) -> Result<(), Errno> {
    let path = CString::new(path.as_os_str().as_bytes()).map_err(|_| Errno::INVAL)?;
    let set = libc::mount_attr { attr_set: attributes, attr_clr: 0, propagation: 0, userns_fd: 0 };
    // SAFETY: the path is a C string, and the attributes are a structure of the given size. Linux reads both only
    // during the call.
    let done = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            folder.as_raw_fd(),
            path.as_ptr(),
            flags,
            &raw const set,
            size_of::<libc::mount_attr>(),
        )
    };
    if done == 0 {
        return Ok(());
    }
    Err(Errno::from_io_error(&io::Error::last_os_error()).unwrap_or(Errno::INVAL))
}

fn at<P: AsRef<Path>>(stage: &'static str, path: P) -> impl FnOnce(io::Error) -> LaunchError {
    move |cause| {
        let words = format!("{}: {cause}", path.as_ref().display());
        LaunchError { stage, cause: io::Error::new(cause.kind(), words) }
    }
}

fn on<P: AsRef<Path>>(stage: &'static str, path: P) -> impl FnOnce(Errno) -> LaunchError {
    move |errno| at(stage, path)(errno.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mounts_beneath_a_folder_are_found_by_their_place() {
        let mounts = "22 1 0:20 / / rw - tmpfs tmpfs rw\n\
                      23 22 8:1 /x /data rw,nosuid - ext4 /dev/sda1 rw\n\
                      24 23 8:2 / /data/a\\040b\\134c rw - ext4 /dev/sda2 rw\n\
                      25 22 8:3 / /database rw - ext4 /dev/sda3 rw\n\
                      damaged\n";
        assert_eq!(mounts_beneath(mounts, Path::new("/data")), [Path::new("/data/a b\\c")]);
        assert!(mounts_beneath(mounts, Path::new("/database")).is_empty());
        assert_eq!(unescaped("a\\04"), Path::new("a\\04"));
    }
}
