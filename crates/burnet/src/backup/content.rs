//! What of a node belongs in a backup, and where each file of a backup belongs.
//!
//! ```text
//!   STATE/{apps, keys, owners, paused-slices.json, pins, slice-links.json, slices.toml, trust.toml, users.toml, zones} ──> state/…
//!   the store's copy ──> store        the configuration ──> burnet.toml
//! ```
//!
//! In: a state folder, or a path from an untrusted backup. Out: files to back up, or a place. It follows no link and opens no file.
//! docs/decisions/0073-what-a-backup-has.md says why the rest is left out.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// The first file of a backup.
pub const ABOUT: &str = "about.toml";

/// The configuration file in a backup.
pub const CONFIG: &str = "burnet.toml";

/// The copy of the store in a backup.
pub const STORE: &str = "store";

/// The folder of the files of the state folder in a backup.
const STATE: &str = "state/";

/// The parts of the state folder that a backup has, and that a restore replaces. Files and folders.
pub const PARTS: [&str; 11] = [
    "apps",
    "keys",
    "owners",
    "paused-slices.json",
    "pins",
    "slice-links.json",
    "slices.toml",
    "store",
    "trust.toml",
    "users.toml",
    "zones",
];

/// How private keys end.
const PRIVATE: &str = ".key";

/// The deepest folder that is read. Packages have paths of at most 160 bytes.
const DEPTH_MAX: usize = 100;

/// A file to back up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// Its path in the backup.
    pub path: String,
    /// Its place on this machine.
    pub place: PathBuf,
    /// Whether it can be executed.
    pub executable: bool,
}

/// Finds the files of a state folder that belong in a backup, in the order of their paths.
///
/// # Errors
/// A folder cannot be read, or a name is not UTF-8. A missing part is no error.
pub fn files(state: &Path, private_keys: bool) -> io::Result<Vec<Source>> {
    let mut found = Vec::new();
    // The store has a form of its own in a backup.
    for part in PARTS.iter().filter(|part| **part != STORE) {
        match fs::symlink_metadata(state.join(part)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            metadata => add(&mut found, &state.join(part), format!("{STATE}{part}"), &metadata?, DEPTH_MAX)?,
        }
    }
    found.retain(|file| private_keys || !is_private(&file.path));
    Ok(found)
}

fn add(
    found: &mut Vec<Source>,
    place: &Path,
    path: String,
    metadata: &fs::Metadata,
    depth: usize,
) -> io::Result<()> {
    if metadata.is_file() {
        let executable = metadata.permissions().mode() & 0o100 != 0;
        found.push(Source { path, place: place.to_owned(), executable });
        return Ok(());
    }
    if !metadata.is_dir() || depth == 0 {
        let why = format!("{} is neither a file nor a folder of a node", place.display());
        return Err(io::Error::new(io::ErrorKind::InvalidData, why));
    }
    let mut entries = fs::read_dir(place)?.collect::<io::Result<Vec<_>>>()?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let Ok(name) = entry.file_name().into_string() else {
            let why = format!("a name in {} is not UTF-8", place.display());
            return Err(io::Error::new(io::ErrorKind::InvalidData, why));
        };
        // Drafts of an interrupted command.
        if name.starts_with(".new-") || name.starts_with(".old-") {
            continue;
        }
        add(found, &entry.path(), format!("{path}/{name}"), &entry.metadata()?, depth - 1)?;
    }
    Ok(())
}

/// Whether a file of a backup is a private key.
pub fn is_private(path: &str) -> bool {
    path.starts_with("state/keys/") && path.ends_with(PRIVATE)
}

/// Whether only the owner of the node may read a file of a backup, as the node itself writes it.
fn is_for_owner(path: &str) -> bool {
    is_private(path) || path == "state/pins"
}

/// Where a file of a backup belongs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// It describes the backup.
    About,
    /// The configuration file.
    Config,
    /// The copy of the store.
    Store,
    /// A file in the state folder, with its mode.
    State(PathBuf, u32),
}

/// Finds the place of a file.
///
/// # Errors
/// A phrase: no backup has such a path.
pub fn place_of(path: &str, executable: bool) -> Result<Place, String> {
    match path {
        ABOUT => return Ok(Place::About),
        CONFIG => return Ok(Place::Config),
        STORE => return Ok(Place::Store),
        _ => {}
    }
    let within = path.strip_prefix(STATE).filter(|within| {
        let part = within.split('/').next().unwrap_or_default();
        let is_plain = |name: &str| !name.is_empty() && name != "." && name != ".." && !name.contains('\0');
        PARTS.contains(&part) && part != STORE && within.split('/').all(is_plain)
    });
    let within = within.ok_or_else(|| format!("it has a file {path:?}, which no backup of a node has"))?;
    let mode = match (is_for_owner(path), executable) {
        (true, _) => 0o600,
        (false, true) => 0o755,
        (false, false) => 0o644,
    };
    Ok(Place::State(PathBuf::from(within), mode))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(path: &str) {
        assert!(place_of(path, false).unwrap_err().contains(path), "{path}");
    }

    #[test]
    fn a_path_that_leads_elsewhere_is_refused() {
        for path in [
            "/etc/passwd",
            "state/../x",
            "state/apps/../../x",
            "state/apps//x",
            "state/apps/",
            "state/audit/x",
            "state/store/store.redb",
            "state/",
            "apps/x",
            "state/lock",
        ] {
            refused(path);
        }
    }

    #[test]
    fn keys_and_pins_are_for_their_owner_only() {
        let mode = |path: &str, executable| match place_of(path, executable) {
            Ok(Place::State(_, mode)) => mode,
            other => panic!("{other:?}"),
        };
        assert_eq!(mode("state/keys/alice.key", false), 0o600);
        assert_eq!(mode("state/keys/alice.key", true), 0o600);
        assert_eq!(mode("state/pins", false), 0o600);
        assert_eq!(mode("state/keys/alice.pub", false), 0o644);
        assert_eq!(mode("state/apps/a/0f/bin/a", true), 0o755);
        assert_eq!(place_of("store", false), Ok(Place::Store));
    }

    #[test]
    fn what_is_wanted_is_found_and_the_rest_is_left_out() {
        let state = std::env::temp_dir().join(format!("burnet-content-{}", std::process::id()));
        let _ = fs::remove_dir_all(&state);
        for file in [
            "apps/a/record.toml",
            "apps/a/.new-7/x",
            "audit/1.jsonl",
            "incidents/1.json",
            "keys/alice.key",
            "keys/alice.pub",
            "lock",
            "logs/a.log",
            "slices.toml",
            "slices/slice.blue/1",
            "store/store.redb",
            "zones",
        ] {
            fs::create_dir_all(state.join(file).parent().unwrap()).unwrap();
            fs::write(state.join(file), "x").unwrap();
        }
        let paths = |private_keys| -> Vec<String> {
            files(&state, private_keys).unwrap().into_iter().map(|file| file.path).collect()
        };
        let public = ["state/apps/a/record.toml", "state/keys/alice.pub", "state/slices.toml", "state/zones"];
        assert_eq!(paths(false), public);
        assert_eq!(paths(true)[1], "state/keys/alice.key");
        std::os::unix::fs::symlink("/etc/passwd", state.join("pins")).unwrap();
        assert!(files(&state, false).unwrap_err().to_string().contains("neither a file nor a folder"));
        fs::remove_dir_all(&state).unwrap();
        assert_eq!(files(&state, true).unwrap(), []);
    }
}
