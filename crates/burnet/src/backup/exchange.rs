//! Puts an unpacked backup in the place of the state, in steps that a crash can interrupt anywhere.
//!
//! ```text
//!   STATE/restore-MS.draft      is being unpacked; it is not used after a crash
//!   STATE/restore-MS.ready      is complete: the present parts move to STATE/before-restore-MS
//!   STATE/restore-MS.placing    they have moved: the parts of the backup move to STATE
//! ```
//!
//! In: a state folder. Out: the same after the steps that were left. Each step is one rename, and each name says which steps are left. So
//! after a crash [`finish`] goes on. `burnet run` and `burnet restore` call it first. It reads no backup.

use super::content::PARTS;
use package::state::{give_to_owner_of_folder, open_lock_file};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

const DRAFT: &str = ".draft";
const READY: &str = ".ready";
const PLACING: &str = ".placing";

/// The file that a running node holds locked.
const RUNNING: &str = "running";

/// Where to unpack the backup that is restored at this time.
pub fn draft(state: &Path, unix_ms: u64) -> PathBuf {
    state.join(format!("restore-{unix_ms}{DRAFT}"))
}

/// Where the state before is kept.
pub fn before(state: &Path, unix_ms: u64) -> PathBuf {
    state.join(format!("before-restore-{unix_ms}"))
}

/// Removes drafts of interrupted commands.
///
/// # Errors
/// One cannot be removed.
pub fn remove_drafts(state: &Path) -> io::Result<()> {
    pending(state, DRAFT)?.into_iter().try_for_each(|(_, draft)| fs::remove_dir_all(draft))
}

/// The draft of this time is complete and on disk. From now on, the restore is carried out, if need be after a crash.
///
/// # Errors
/// The state is unchanged.
pub fn begin(state: &Path, unix_ms: u64) -> io::Result<()> {
    let draft = draft(state, unix_ms);
    rustix::fs::syncfs(File::open(&draft)?)?;
    fs::rename(&draft, draft.with_extension(&READY[1..]))?;
    sync(state)
}

/// Carries out what is left of a restore. Returns where the state before is, if there was something to do.
///
/// # Errors
/// A step failed. The next call goes on with it.
pub fn finish(state: &Path) -> io::Result<Option<PathBuf>> {
    let mut last = None;
    for (unix_ms, ready) in pending(state, READY)? {
        let aside = before(state, unix_ms.parse().unwrap_or_default());
        fs::create_dir_all(&aside)?;
        give_to_owner_of_folder(&aside);
        PARTS.iter().try_for_each(|part| move_if_there(&state.join(part), &aside.join(part)))?;
        sync(&aside)?;
        fs::rename(&ready, ready.with_extension(&PLACING[1..]))?;
        sync(state)?;
    }
    for (unix_ms, placing) in pending(state, PLACING)? {
        PARTS.iter().try_for_each(|part| move_if_there(&placing.join(part), &state.join(part)))?;
        sync(state)?;
        fs::remove_dir(&placing)?;
        last = Some(before(state, unix_ms.parse().unwrap_or_default()));
    }
    Ok(last)
}

/// Whether a restore has begun and is not finished. Its command may still run, or may have been interrupted.
pub fn is_under_way(state: &Path) -> bool {
    let has = |stage: &str| pending(state, stage).is_ok_and(|found| !found.is_empty());
    [DRAFT, READY, PLACING].into_iter().any(has)
}

/// Locks the state folder for a running node, or for a restore. The lock ends with the returned file.
///
/// # Errors
/// The file cannot be locked: with [`io::ErrorKind::WouldBlock`], a node runs.
pub fn hold(state: &Path) -> io::Result<File> {
    let file = open_lock_file(&state.join(RUNNING))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(fs::TryLockError::WouldBlock) => Err(io::ErrorKind::WouldBlock.into()),
        Err(fs::TryLockError::Error(error)) => Err(error),
    }
}

/// The folders of restores in this stage, with their times, in order.
fn pending(state: &Path, stage: &str) -> io::Result<Vec<(String, PathBuf)>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(state)? {
        let entry = entry?;
        let name = entry.file_name();
        let time = name.to_str().and_then(|name| name.strip_prefix("restore-")?.strip_suffix(stage));
        if let Some(time) = time.filter(|time| time.parse::<u64>().is_ok()) {
            found.push((time.to_owned(), entry.path()));
        }
    }
    found.sort();
    Ok(found)
}

fn move_if_there(from: &Path, to: &Path) -> io::Result<()> {
    match fs::rename(from, to) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        moved => moved.map_err(|error| {
            let why = format!("{} cannot be moved to {}: {error}", from.display(), to.display());
            io::Error::new(error.kind(), why)
        }),
    }
}

fn sync(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Folder(PathBuf);

    impl Folder {
        /// A state with zones and pins, and a complete draft with other zones and a store.
        fn new(name: &str) -> Folder {
            let state = std::env::temp_dir().join(format!("burnet-exchange-{}-{name}", std::process::id()));
            let _ = fs::remove_dir_all(&state);
            let draft = draft(&state, 7);
            fs::create_dir_all(draft.join("store")).unwrap();
            fs::write(draft.join("store/k"), "new").unwrap();
            fs::write(draft.join("zones"), "new").unwrap();
            fs::write(state.join("zones"), "old").unwrap();
            fs::write(state.join("pins"), "old").unwrap();
            fs::write(state.join("audit"), "stays").unwrap();
            Folder(state)
        }

        fn text(&self, path: &str) -> String {
            fs::read_to_string(self.0.join(path)).unwrap_or_default()
        }

        fn check_restored(&self) {
            assert_eq!(
                ["zones", "store/k", "pins", "audit"].map(|path| self.text(path)),
                ["new", "new", "", "stays"]
            );
            let before = ["zones", "pins"].map(|part| self.text(&format!("before-restore-7/{part}")));
            assert_eq!(before, ["old", "old"]);
            let left = fs::read_dir(&self.0).unwrap().flatten().map(|entry| entry.file_name());
            assert!(left.into_iter().all(|name| !name.to_string_lossy().starts_with("restore-")));
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn a_draft_that_was_not_complete_changes_nothing() {
        let folder = Folder::new("draft");
        assert_eq!(finish(&folder.0).unwrap(), None);
        assert_eq!(folder.text("zones"), "old");
        assert!(is_under_way(&folder.0));
        remove_drafts(&folder.0).unwrap();
        assert!(!is_under_way(&folder.0));
        assert!(!draft(&folder.0, 7).exists());
    }

    /// The moves that a complete restore makes, in their order, each as what it renames.
    fn interrupted_after(moves: usize) -> Folder {
        let folder = Folder::new(&format!("crash-{moves}"));
        begin(&folder.0, 7).unwrap();
        let (state, aside) = (folder.0.clone(), before(&folder.0, 7));
        let stage = |stage: &str| state.join(format!("restore-7{stage}"));
        let steps: [Box<dyn Fn() -> io::Result<()>>; 6] = [
            Box::new(|| fs::create_dir_all(&aside)),
            Box::new(|| fs::rename(state.join("pins"), aside.join("pins"))),
            Box::new(|| fs::rename(state.join("zones"), aside.join("zones"))),
            Box::new(|| fs::rename(stage(READY), stage(PLACING))),
            Box::new(|| fs::rename(stage(PLACING).join("store"), state.join("store"))),
            Box::new(|| fs::rename(stage(PLACING).join("zones"), state.join("zones"))),
        ];
        steps[..moves].iter().for_each(|step| step().unwrap());
        drop(steps);
        folder
    }

    #[test]
    fn a_restore_that_was_interrupted_anywhere_is_carried_out() {
        for moves in 0..=6 {
            let folder = interrupted_after(moves);
            assert_eq!(finish(&folder.0).unwrap(), Some(before(&folder.0, 7)), "after {moves}");
            folder.check_restored();
            assert_eq!(finish(&folder.0).unwrap(), None);
        }
    }

    #[test]
    fn a_state_that_a_node_holds_is_not_held_twice() {
        let folder = Folder::new("held");
        let held = hold(&folder.0).unwrap();
        assert_eq!(hold(&folder.0).unwrap_err().kind(), io::ErrorKind::WouldBlock);
        drop(held);
        assert!(hold(&folder.0).is_ok());
    }

    #[test]
    fn what_root_makes_in_the_folder_of_a_user_belongs_to_that_user() {
        use std::os::unix::fs::{MetadataExt, chown, symlink};
        let folder = Folder::new("owner");
        if !rustix::process::geteuid().is_root() {
            return eprintln!(
                "left out: what_root_makes_in_the_folder_of_a_user_belongs_to_that_user: this is not root"
            );
        }
        let user = 54_321;
        chown(&folder.0, Some(user), Some(user)).unwrap();
        let owner = |name: &str| fs::symlink_metadata(folder.0.join(name)).unwrap().uid();
        drop(hold(&folder.0).unwrap());
        begin(&folder.0, 7).unwrap();
        finish(&folder.0).unwrap();
        assert_eq!([RUNNING, "before-restore-7"].map(owner), [user, user]);
        // A file of root stays root's, also if the user's folder leads to it.
        let own = folder.0.with_extension("of-root");
        fs::write(&own, "x").unwrap();
        fs::remove_file(folder.0.join(RUNNING)).unwrap();
        symlink(&own, folder.0.join(RUNNING)).unwrap();
        assert!(hold(&folder.0).is_err());
        assert_eq!(fs::metadata(&own).unwrap().uid(), 0);
        fs::remove_file(own).unwrap();
    }
}
