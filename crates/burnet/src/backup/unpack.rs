//! Unpacks a backup into an empty folder, in the form that a state folder has.
//!
//! In: an untrusted backup. Out: a complete draft of the state on disk, or an error and a draft that is not to be used. It replaces
//! nothing.

use super::archive::{self, BadBackup};
use super::content::{Place, is_private, place_of};
use super::{ABOUT_BYTES_MAX, About};
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;
use store::copy;
use store::store_file::{BYTES_MAX, StoreFile};

/// The maximum size of a configuration file in a backup, in bytes.
const CONFIG_BYTES_MAX: usize = 1 << 20;

/// The maximum size of the copy of a store, in bytes. It is larger than [`BYTES_MAX`], because the copy has eight bytes and the app's name
/// beside each key and value.
pub const STORE_BYTES_MAX: usize = (BYTES_MAX as usize) * 6;

/// What was unpacked.
#[derive(Debug)]
pub struct Unpacked {
    /// The description of the backup.
    pub about: About,
    /// The configuration file, if the backup has one.
    pub config: Option<Vec<u8>>,
    /// How many files the backup has.
    pub files: usize,
}

/// Unpacks into `draft`. The folder must not exist yet, but the folder above it must.
///
/// # Errors
/// The backup is damaged, or the draft cannot be written.
pub fn unpack(from: impl Read, draft: &Path) -> Result<Unpacked, BadBackup> {
    // Not a folder or link that is there already: the owner of the state folder may have put it there.
    let made = DirBuilder::new().mode(0o700).create(draft);
    made.map_err(|error| cannot_write(draft, &error))?;
    let (mut about, mut config, mut store) = (None, None, None);
    let files = archive::read(from, |head, content| {
        let place = place_of(&head.path, head.executable).map_err(BadBackup)?;
        if about.is_none() && place != Place::About {
            return Err(BadBackup("it does not begin as a backup of a node does".to_owned()));
        }
        match place {
            Place::About => {
                let text = bounded(content, head.size, ABOUT_BYTES_MAX, &head.path)?;
                about = Some(About::parse(&String::from_utf8_lossy(&text)).map_err(BadBackup)?);
            }
            Place::Config => config = Some(bounded(content, head.size, CONFIG_BYTES_MAX, &head.path)?),
            Place::Store => store = Some(bounded(content, head.size, STORE_BYTES_MAX, &head.path)?),
            Place::State(..)
                if is_private(&head.path) && about.as_ref().is_some_and(|it| !it.private_keys) =>
            {
                return Err(BadBackup(format!(
                    "{:?} in it is a private key, and its first file says that it has none",
                    head.path
                )));
            }
            Place::State(within, mode) => {
                let folder_mode = if within.starts_with("keys") { 0o700 } else { 0o755 };
                write(&draft.join(within), (mode, folder_mode), content)?;
            }
        }
        Ok(())
    })?;
    if let Some(copy) = store {
        make_store(&draft.join(store::folder::NAME), &copy)?;
    }
    let about = about.ok_or_else(|| BadBackup("it has no files".to_owned()))?;
    Ok(Unpacked { about, config, files })
}

fn cannot_write(path: &Path, error: &dyn std::fmt::Display) -> BadBackup {
    BadBackup(format!("{} cannot be written: {error}", path.display()))
}

fn bounded(content: &mut dyn Read, size: usize, bytes_max: usize, path: &str) -> Result<Vec<u8>, BadBackup> {
    if size > bytes_max {
        return Err(BadBackup(format!("{path:?} in it has more than {bytes_max} bytes")));
    }
    let mut bytes = Vec::new();
    content.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Writes a new file with this mode. Missing folders above it get the other mode.
fn write(path: &Path, (mode, folder_mode): (u32, u32), content: &mut dyn Read) -> Result<(), BadBackup> {
    let folder = path.parent().unwrap_or(path);
    make_folders(folder, folder_mode).map_err(|error| cannot_write(folder, &error))?;
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(mode)
        .open(path)
        .map_err(|error| cannot_write(path, &error))?;
    // An error of either side: the archive names its own faults when it is read on.
    io::copy(content, &mut file).map_err(|error| cannot_write(path, &error))?;
    // Whatever the umask is.
    file.set_permissions(fs::Permissions::from_mode(mode)).map_err(|error| cannot_write(path, &error))
}

/// Makes missing folders with this mode, whatever the umask is. The draft itself is there.
fn make_folders(folder: &Path, mode: u32) -> io::Result<()> {
    if folder.is_dir() {
        return Ok(());
    }
    folder.parent().map_or(Ok(()), |above| make_folders(above, mode))?;
    DirBuilder::new().mode(mode).create(folder)?;
    fs::set_permissions(folder, fs::Permissions::from_mode(mode))
}

fn make_store(folder: &Path, bytes: &[u8]) -> Result<(), BadBackup> {
    let entries = copy::read(bytes).map_err(|why| BadBackup(format!("the store in it: {why}")))?;
    store::folder::make(folder).map_err(|error| cannot_write(folder, &error))?;
    StoreFile::create(folder, &entries).map_err(|error| cannot_write(folder, &error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backup::archive::Writer;
    use crate::backup::content::{ABOUT, STORE};
    use std::path::PathBuf;

    const SOUND: &str = "format = 1\nburnet = '0'\nmade_unix_ms = 7\nprivate_keys = false\n";
    const WITH_KEYS: &str = "format = 1\nburnet = '0'\nmade_unix_ms = 7\nprivate_keys = true\n";

    fn draft(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("burnet-unpack-{}-{name}", std::process::id()))
    }

    fn unpacked(name: &str, files: &[(&str, &[u8])]) -> Result<Unpacked, String> {
        let _ = fs::remove_dir_all(draft(name));
        let mut writer = Writer::new(Vec::new());
        files.iter().for_each(|(path, bytes)| writer.add(path, false, bytes.len() as u64, *bytes).unwrap());
        unpack(&writer.end().unwrap()[..], &draft(name)).map_err(|bad| bad.to_string())
    }

    fn refused(files: &[(&str, &[u8])], expected: &str) {
        let why = unpacked("refused", files).unwrap_err();
        assert!(why.contains(expected), "{why}");
        let _ = fs::remove_dir_all(draft("refused"));
    }

    #[test]
    fn what_is_no_backup_of_a_node_is_refused() {
        let about = (ABOUT, SOUND.as_bytes());
        refused(&[], "it has no files");
        refused(&[("state/zones", b"")], "does not begin as a backup");
        refused(&[(ABOUT, b"format = 9")], "it has format 9");
        refused(&[about, ("state/../../x", b"")], "which no backup of a node has");
        refused(&[about, (STORE, b"x")], "the store in it: it is no copy");
        refused(&[about, ("state/zones", b""), ("state/zones", b"")], "File exists");
        refused(&[about, ("state/zones", b""), ("state/zones/x", b"")], "File exists");
        refused(&[about, ("state/keys/a.key", b"secret")], "its first file says that it has none");
        refused(&[about, (CONFIG_PATH, &[b' '; CONFIG_BYTES_MAX + 1])], "has more than 1048576 bytes");
    }

    const CONFIG_PATH: &str = crate::backup::content::CONFIG;

    #[test]
    fn folders_have_their_mode_whatever_the_umask_is() {
        let folder = draft("umask");
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir(&folder).unwrap();
        make_folders(&folder.join("a/b/c"), 0o777).unwrap();
        let mode = |path: &str| fs::metadata(folder.join(path)).unwrap().permissions().mode() & 0o777;
        assert_eq!(["a/b", "a/b/c"].map(mode), [0o777, 0o777], "the usual umask has 022");
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_backup_becomes_a_state_folder() {
        let store = copy::Writer::new(Vec::new()).unwrap().end().unwrap();
        let files = [
            (ABOUT, WITH_KEYS.as_bytes()),
            (CONFIG_PATH, b"[node]"),
            ("state/apps/hub/0f/app.toml", b"x"),
            ("state/keys/a.key", b"secret"),
            ("state/pins", b"pin"),
            ("state/zones", b"1 hub"),
            (STORE, &store),
        ];
        let Unpacked { about, config, files } = unpacked("sound", &files).unwrap();
        assert_eq!((about.made_unix_ms, config.as_deref(), files), (7, Some(&b"[node]"[..]), 7));
        let draft = draft("sound");
        let mode = |path: &str| fs::metadata(draft.join(path)).unwrap().permissions().mode() & 0o777;
        assert_eq!(["keys", "keys/a.key", "zones", "store"].map(mode), [0o700, 0o600, 0o644, 0o700]);
        assert_eq!(["pins", "apps", "apps/hub/0f"].map(mode), [0o600, 0o755, 0o755]);
        assert!(draft.join("store/store.redb").is_file());
        fs::remove_dir_all(draft).unwrap();
    }
}
