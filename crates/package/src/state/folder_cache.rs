//! Checks unpacked packages repeatedly, and reads only what has changed since the last check.
//!
//! In: a package's folder and its digest, the time. Out: whether it is as signed. A result is valid while no file has
//! another device, inode, size, mode or change time. Only the owner of the folder can set these, and no app is the
//! owner. A change within one clock tick would not show, so files that changed a moment ago are read again each time.

use std::collections::BTreeMap;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::folder::{DEPTH_MAX, read_unpacked};
use crate::digest::{Digest, FILES_MAX};
use crate::moment::Moment;
use crate::signature::Signatures;
use crate::verification::FolderState;

/// After a change this recent, another change may have the same change time. Local file systems have far finer clocks,
/// some network file systems have seconds.
const SETTLED_S: u64 = 3;

/// The maximum number of remembered packages, more than a node runs. Beyond it, all are read again.
const PACKAGES_MAX: usize = 128;

/// The metadata of a file or folder.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Stamp {
    path: PathBuf,
    device: u64,
    inode: u64,
    mode: u32,
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Stamp {
    fn of(path: &Path, metadata: &Metadata) -> Stamp {
        Stamp {
            path: path.to_owned(),
            device: metadata.dev(),
            inode: metadata.ino(),
            mode: metadata.mode(),
            size: metadata.size(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }
}

/// The results of earlier checks: at most 128 intact packages.
#[derive(Debug, Default)]
pub struct FolderCache(BTreeMap<(PathBuf, Digest), (Vec<Stamp>, Signatures)>);

impl FolderCache {
    /// Checks whether this folder has the intact package of this digest.
    pub fn check(&mut self, folder: &Path, digest: &Digest, now: Moment) -> FolderState {
        match self.check_once(folder, digest, now) {
            // A new installation replaces the folder, and for a moment there is none.
            FolderState::Gone | FolderState::Altered(_) => self.check_once(folder, digest, now),
            state => state,
        }
    }

    fn check_once(&mut self, folder: &Path, digest: &Digest, now: Moment) -> FolderState {
        let stamps = match stamps(folder) {
            Ok(stamps) => stamps,
            Err(error) if error.kind() == io::ErrorKind::NotFound && !folder.exists() => {
                return FolderState::Gone;
            }
            Err(error) => {
                return FolderState::Unreadable(format!("{} cannot be checked: {error}", folder.display()));
            }
        };
        let key = (folder.to_owned(), *digest);
        if let Some((_, signatures)) = self.0.get(&key).filter(|(before, _)| *before == stamps) {
            return FolderState::Intact(signatures.clone());
        }
        self.0.remove(&key);
        match read_unpacked(folder, digest) {
            Ok(unpacked) => {
                if is_settled(&stamps, now) {
                    self.remember(key, stamps, &unpacked.signatures);
                }
                FolderState::Intact(unpacked.signatures)
            }
            Err(why) => FolderState::Altered(format!("its package {why}")),
        }
    }

    fn remember(&mut self, key: (PathBuf, Digest), stamps: Vec<Stamp>, signatures: &Signatures) {
        if self.0.len() >= PACKAGES_MAX {
            self.0.clear();
        }
        self.0.insert(key, (stamps, signatures.clone()));
    }
}

/// The stamps are taken before the files are read. A change during the read gives other stamps next time.
fn is_settled(stamps: &[Stamp], now: Moment) -> bool {
    let before = i64::try_from(now.unix_s().saturating_sub(SETTLED_S)).unwrap_or(i64::MAX);
    stamps.iter().all(|stamp| stamp.changed.0 < before && stamp.modified.0 < before)
}

/// The stamps of the folder and all its contents. Too many or too deep entries are cut; the check of the files then
/// reports it.
fn stamps(folder: &Path) -> io::Result<Vec<Stamp>> {
    let mut found = vec![Stamp::of(folder, &folder.symlink_metadata()?)];
    let mut folders = vec![(folder.to_owned(), 0)];
    while let Some((folder, depth)) = folders.pop() {
        let mut entries = fs::read_dir(&folder)?.collect::<io::Result<Vec<_>>>()?;
        entries.sort_by_key(fs::DirEntry::file_name);
        for entry in entries {
            let (path, metadata) = (entry.path(), entry.path().symlink_metadata()?);
            if metadata.is_dir() && depth < DEPTH_MAX {
                folders.push((path.clone(), depth + 1));
            }
            found.push(Stamp::of(&path, &metadata));
            if found.len() > 2 * FILES_MAX {
                return Ok(found);
            }
        }
    }
    Ok(found)
}
