//! Checks the folder of the operator's socket: no other user may be able to change it.
//!
//! In: the path of a folder. Out: whether a socket in it can be trusted, or a sentence for the operator. It opens and
//! changes nothing.

use rustix::fs::{FileType, Mode};
use rustix::process::{getegid, geteuid};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The socket's folder for a user without a runtime directory. Any user can create a folder of this name first, so it
/// is checked before use.
pub fn shared_folder(uid: u32) -> PathBuf {
    PathBuf::from(format!("/tmp/burnet-{uid}"))
}

/// Checks who may change the folder of a socket. A user who can rename or remove the socket can put another in its
/// place and pretend to be the node.
///
/// # Errors
/// One sentence for the operator, which ends with what to do.
pub fn check_folder(folder: &Path) -> Result<(), String> {
    let cannot = |error: io::Error| format!("{} cannot be checked: {error}", folder.display());
    // First the link, then its target.
    for found in [std::fs::symlink_metadata(folder), std::fs::metadata(folder)] {
        let found = found.map_err(cannot)?;
        let own = (geteuid().as_raw(), getegid().as_raw());
        if let Some(flaw) = flaw((found.uid(), found.gid()), found.mode(), own) {
            return Err(format!(
                "{} {flaw}, who could replace the socket of the node: choose another with --socket PATH",
                folder.display()
            ));
        }
    }
    Ok(())
}

/// What is wrong with a folder, or a link to one, of this owner and mode, for a process of this user and group. Root
/// can do everything anyway.
fn flaw((uid, gid): (u32, u32), mode: u32, (own_uid, own_gid): (u32, u32)) -> Option<String> {
    let (kind, mode) = (FileType::from_raw_mode(mode), Mode::from_raw_mode(mode));
    // In a folder with this bit, a user can remove only his own files (inode(7)). The mode of a link has no meaning.
    let is_kept = mode.contains(Mode::SVTX) || kind == FileType::Symlink;
    if uid != own_uid && uid != 0 {
        return Some(format!("belongs to the user {uid}"));
    }
    if mode.contains(Mode::WOTH) && !is_kept {
        return Some("can be changed by every user".to_owned());
    }
    let others = gid != own_gid && gid != 0;
    (others && mode.contains(Mode::WGRP) && !is_kept).then(|| format!("can be changed by the group {gid}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_in_which_another_could_put_a_socket_is_refused() {
        let check = |owner, mode: u32, expected: Option<&str>| {
            assert_eq!(flaw(owner, 0o40_000 | mode, (1000, 100)).as_deref(), expected, "{owner:?} {mode:o}");
        };
        check((1001, 100), 0o700, Some("belongs to the user 1001"));
        check((1000, 100), 0o707, Some("can be changed by every user"));
        check((1000, 101), 0o770, Some("can be changed by the group 101"));
        check((1000, 100), 0o770, None);
        check((0, 0), 0o755, None);
        check((0, 0), 0o1777, None);
        assert_eq!(flaw((1001, 100), 0o120_777, (1000, 100)).as_deref(), Some("belongs to the user 1001"));
        assert_eq!(flaw((0, 0), 0o120_777, (1000, 100)), None);
    }
}
