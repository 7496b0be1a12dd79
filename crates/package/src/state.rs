//! The state folder of a node: keys, trust store, and installed apps. Only this file of the crate does I/O.
//!
//! ```text
//!   STATE/lock                    held by who changes something
//!   STATE/trust.toml              TrustStore
//!   STATE/users.toml              the user and group id of each app, where the node runs as root
//!   STATE/keys/NAME.key, .pub     PrivateKey (mode 0600), NamedKey
//!   STATE/apps/NAME/record.toml   Record
//!   STATE/apps/NAME/DIGEST/       the package's files as they were signed, its list and its signatures
//! ```
//!
//! It writes a file under a temporary name, syncs it to disk and renames it, so a crash leaves the old or the new file.
//! Reads are bounded and follow no links. It decides nothing about trust.

mod folder;
mod folder_cache;

use std::collections::BTreeMap;
use std::fmt;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt, fchown, lchown};
use std::path::{Path, PathBuf};

pub use folder::{Unpacked, read_unpacked};
pub use folder_cache::FolderCache;

use crate::digest::{Digest, PACKAGE_BYTES_MAX};
use crate::file::Package;
use crate::install::{RECORD_BYTES_MAX, Record};
use crate::key::{KEY_FILE_BYTES_MAX, KeyName, NamedKey, PrivateKey};
use crate::manifest::AppName;
use crate::toml_text;
use crate::trust::{TRUST_BYTES_MAX, TrustStore};

/// The maximum number of listed apps. A node runs fewer.
const APPS_MAX: usize = 1024;

/// The maximum size of the list of users in bytes: some thousands of names.
const USERS_BYTES_MAX: usize = 1 << 20;

/// The number of attempts to open a file that a command replaces at the same time.
const LOOKS_MAX: usize = 8;

/// An unusable part of the state folder: one sentence, with what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateError(String);

impl fmt::Display for StateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for StateError {}

fn failed<T>(sentence: impl Into<String>) -> Result<T, StateError> {
    Err(StateError(sentence.into()))
}

/// Makes the error for a failed system call on a path.
fn refused(path: &Path, doing: &str) -> impl FnOnce(io::Error) -> StateError {
    let shown = path.display().to_string();
    let doing = doing.to_owned();
    move |error| StateError(format!("{shown} cannot be {doing}: {error}"))
}

/// A node's state folder.
#[derive(Clone, Debug)]
pub struct State {
    root: PathBuf,
}

/// Held during a change. Dropping it releases the lock.
#[derive(Debug)]
pub struct Lock(#[expect(dead_code, reason = "it is held")] File);

impl State {
    /// The folder at this path. It need not exist yet.
    pub fn at(root: PathBuf) -> State {
        State { root }
    }

    /// Its path.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Makes missing folders, and prevents changes by other processes until the lock is dropped.
    ///
    /// # Errors
    /// The folder cannot be written, or another process is changing it now.
    pub fn lock(&self) -> Result<Lock, StateError> {
        for (folder, mode) in [(self.root.clone(), 0o755), (self.keys(), 0o700), (self.apps_folder(), 0o755)]
        {
            let is_new = !folder.exists();
            make_folder(&folder, mode)?;
            if is_new && folder != self.root {
                give_to_owner_of_folder(&folder);
            }
        }
        let path = self.root.join("lock");
        let file = open_lock_file(&path).map_err(refused(&path, "opened"))?;
        match file.try_lock() {
            Ok(()) => Ok(Lock(file)),
            Err(fs::TryLockError::WouldBlock) => failed(format!(
                "another burnet command is changing {}: try again when it is done",
                self.root.display()
            )),
            Err(fs::TryLockError::Error(error)) => Err(refused(&path, "locked")(error)),
        }
    }

    fn keys(&self) -> PathBuf {
        self.root.join("keys")
    }

    fn apps_folder(&self) -> PathBuf {
        apps_folder(&self.root)
    }

    fn app(&self, name: &AppName) -> PathBuf {
        self.apps_folder().join(name.as_str())
    }

    /// The folder of an installed package's files.
    pub fn package_folder(&self, name: &AppName, digest: &Digest) -> PathBuf {
        self.app(name).join(digest.to_string())
    }

    /// The trust store; empty if there is none.
    ///
    /// # Errors
    /// It cannot be read. This is an error so that no key is trusted by mistake.
    pub fn trust(&self) -> Result<TrustStore, StateError> {
        let text = self.trust_text()?;
        TrustStore::parse(&text)
            .map_err(|fault| StateError(format!("{}, {fault}", self.root.join("trust.toml").display())))
    }

    /// The text of the trust store; empty if there is none.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn trust_text(&self) -> Result<String, StateError> {
        Ok(read_text(&self.root.join("trust.toml"), TRUST_BYTES_MAX)?.unwrap_or_default())
    }

    /// Stores the trust store.
    ///
    /// # Errors
    /// It cannot be written. The old one stays.
    pub fn keep_trust(&self, store: &TrustStore, _: &Lock) -> Result<(), StateError> {
        write_file(&self.root.join("trust.toml"), store.to_text().as_bytes(), 0o644)
    }

    /// Whether the folder exists.
    pub fn is_there(&self) -> bool {
        self.root.is_dir()
    }

    /// The user and group id of each app, by name.
    ///
    /// # Errors
    /// The list cannot be read: another id would leave an app without its files.
    pub fn users(&self) -> Result<BTreeMap<String, u32>, StateError> {
        let path = self.root.join("users.toml");
        let Some(text) = read_text(&path, USERS_BYTES_MAX)? else { return Ok(BTreeMap::new()) };
        toml_text::parse(&text).map_err(|fault| StateError(format!("{}, {fault}", path.display())))
    }

    /// Stores the ids.
    ///
    /// # Errors
    /// They cannot be written. The old ones stay.
    pub fn keep_users(&self, users: &BTreeMap<String, u32>, _: &Lock) -> Result<(), StateError> {
        // Names and numbers: TOML can express all of it.
        let text = toml::to_string(users).unwrap_or_default();
        write_file(&self.root.join("users.toml"), text.as_bytes(), 0o644)
    }

    /// Stores a new key. Only its owner can read the private key. Returns the path of the public key.
    ///
    /// # Errors
    /// A key of that name exists, or it cannot be written.
    pub fn keep_key(&self, key: &PrivateKey, _: &Lock) -> Result<PathBuf, StateError> {
        let NamedKey { name, .. } = key.public();
        let (private, public) = (self.key_path(&name, "key"), self.key_path(&name, "pub"));
        if private.symlink_metadata().is_ok() {
            return failed(format!(
                "a key {name} already exists ({}): choose another name",
                private.display()
            ));
        }
        write_file(&private, key.to_text().as_bytes(), 0o600)?;
        write_file(&public, key.public().to_text().as_bytes(), 0o644)?;
        Ok(public)
    }

    fn key_path(&self, name: &KeyName, ending: &str) -> PathBuf {
        self.keys().join(format!("{name}.{ending}"))
    }

    /// A private key, if only its owner can read it.
    ///
    /// # Errors
    /// It does not exist, others can read it, or it is not a key.
    pub fn private_key(&self, name: &KeyName) -> Result<PrivateKey, StateError> {
        let path = self.key_path(name, "key");
        let shown = path.display();
        let metadata = match path.symlink_metadata() {
            Ok(metadata) if metadata.is_file() => metadata,
            _ => return failed(format!("there is no key {name} ({shown}): burnet key new {name} makes one")),
        };
        let mode = metadata.permissions().mode() & 0o777;
        if mode & 0o077 != 0 {
            return failed(format!(
                "{shown} can be read or changed by others (mode {mode:04o}), so its key is not used: chmod 600 it, or \
                 distrust the key if another user may have read it"
            ));
        }
        let text = read_text(&path, KEY_FILE_BYTES_MAX)?.unwrap_or_default();
        PrivateKey::parse(&text).map_err(|fault| StateError(format!("{shown}, {fault}")))
    }

    /// The public keys in the folder, by name. Other files are skipped.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub fn own_keys(&self) -> Result<Vec<NamedKey>, StateError> {
        let is_public = |name: &String| name.ends_with(".pub");
        let mut keys = Vec::new();
        for name in names_in(&self.keys())?.into_iter().filter(is_public) {
            let text = read_text(&self.keys().join(name), KEY_FILE_BYTES_MAX)?.unwrap_or_default();
            keys.extend(NamedKey::parse(&text));
        }
        Ok(keys)
    }

    /// The installed apps, by name.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub fn apps(&self) -> Result<Vec<AppName>, StateError> {
        let names = names_in(&self.apps_folder())?;
        let installed = |name: String| {
            let name = AppName::try_from(name).ok()?;
            self.app(&name).join("record.toml").is_file().then_some(name)
        };
        Ok(names.into_iter().filter_map(installed).take(APPS_MAX).collect())
    }

    /// The install record of an app; `None` if it is not installed.
    ///
    /// # Errors
    /// The record cannot be read.
    pub fn record(&self, name: &AppName) -> Result<Option<Record>, StateError> {
        let path = self.app(name).join("record.toml");
        let Some(text) = read_text(&path, RECORD_BYTES_MAX)? else { return Ok(None) };
        let fault = |fault| StateError(format!("{}, {fault}: install {name} again", path.display()));
        Record::parse(&text).map(Some).map_err(fault)
    }

    /// Stores the install record of an app.
    ///
    /// # Errors
    /// It cannot be written. The old one stays.
    pub fn keep_record(&self, name: &AppName, record: &Record, _: &Lock) -> Result<(), StateError> {
        write_file(&self.app(name).join("record.toml"), record.to_text().as_bytes(), 0o644)
    }

    /// Unpacks a package beside its place, renames the folder, and then writes the record. The version before stays,
    /// for a node that runs it and may restart it. Older versions, and leftovers of a crash, are removed last.
    ///
    /// # Errors
    /// A write failed. The earlier installation stays.
    pub fn install(&self, package: &Package<'_>, record: &Record, lock: &Lock) -> Result<(), StateError> {
        let name = &package.manifest().name;
        make_app_folder(&self.app(name))?;
        let folder = self.package_folder(name, &package.digest());
        let before = self.record(name)?.map(|before| self.package_folder(name, &before.digest));
        let draft = self.app(name).join(format!(".new-{}", std::process::id()));
        remove_folder(&draft)?;
        folder::unpack(package, &draft)?;
        // A folder cannot be renamed over an existing one, which is damaged or the same. So the old one is moved, and
        // removed below. It is missing only between the two calls, because a running node checks it again and again.
        let old = self.app(name).join(format!(".old-{}", std::process::id()));
        remove_folder(&old)?;
        match fs::rename(&folder, &old) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(refused(&folder, "moved away")(error));
            }
            _ => {}
        }
        fs::rename(&draft, &folder).map_err(refused(&folder, "put in its place"))?;
        sync_folder(&self.app(name))?;
        self.keep_record(name, record, lock)?;
        for other in names_in(&self.app(name))? {
            let path = self.app(name).join(other);
            if path != folder && Some(&path) != before.as_ref() && path.is_dir() {
                remove_folder(&path)?;
            }
        }
        Ok(())
    }

    /// Removes an app. Returns whether it was installed.
    ///
    /// # Errors
    /// It cannot be removed.
    pub fn remove(&self, name: &AppName, _: &Lock) -> Result<bool, StateError> {
        let record = self.app(name).join("record.toml");
        let there = record.symlink_metadata().is_ok();
        if there {
            // Remove the record first: without it, the rest is not an installed app.
            fs::remove_file(&record).map_err(refused(&record, "removed"))?;
            sync_folder(&self.app(name))?;
        }
        remove_folder(&self.app(name))?;
        Ok(there)
    }

    /// The files of an installed package, each checked against its list, and the list against the record.
    ///
    /// # Errors
    /// The first part that differs from what was signed.
    pub fn installed(&self, name: &AppName, record: &Record) -> Result<Unpacked, StateError> {
        read_unpacked(&self.package_folder(name, &record.digest), &record.digest)
            .map_err(|why| StateError(format!("{name} {}: {why}", record.version)))
    }

    /// What the installed services declare. An app that cannot be read declares nothing.
    pub fn services(&self) -> Vec<contract::Service> {
        let declared = |name: &AppName| {
            let record = self.record(name).ok()??;
            self.installed(name, &record).ok()?.manifest.declared().ok()?
        };
        self.apps().unwrap_or_default().iter().filter_map(declared).collect()
    }
}

/// The folder of the installed apps in a state folder.
pub fn apps_folder(state: &Path) -> PathBuf {
    state.join("apps")
}

/// Reads a package file.
///
/// # Errors
/// It cannot be read, or exceeds the maximum size of a package.
pub fn read_package_file(path: &Path) -> Result<Vec<u8>, StateError> {
    // The operator may name a link.
    match fs::canonicalize(path).and_then(|path| read_bounded(&path, PACKAGE_BYTES_MAX)) {
        Ok(Some(bytes)) => Ok(bytes),
        Ok(None) => {
            failed(format!("{} has more than the {PACKAGE_BYTES_MAX} bytes of a package", path.display()))
        }
        Err(error) => Err(refused(path, "read")(error)),
    }
}

/// Reads a `.pub` file.
///
/// # Errors
/// It cannot be read, or is not a public key.
pub fn read_public_key(path: &Path) -> Result<NamedKey, StateError> {
    // The operator may name a link.
    let place = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let text = read_text(&place, KEY_FILE_BYTES_MAX)?;
    let text = text.ok_or_else(|| StateError(format!("{} is not there: check its path", path.display())))?;
    NamedKey::parse(&text).map_err(|fault| StateError(format!("{}, {fault}", path.display())))
}

/// Writes a file under a temporary name, syncs it to disk and renames it. A reader sees the complete old or new file. If root
/// writes it into the folder of another user, it belongs to that user, who can then still read and replace it.
///
/// # Errors
/// It cannot be written. The old one stays.
pub fn write_file(path: &Path, bytes: &[u8], mode: u32) -> Result<(), StateError> {
    let folder = path.parent().unwrap_or(Path::new("/"));
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let draft = folder.join(format!(".{name}.new-{}", std::process::id()));
    let written = write_new(&draft, bytes, mode).and_then(|()| fs::rename(&draft, path));
    if written.is_err() {
        let _ = fs::remove_file(&draft);
    }
    written.map_err(refused(path, "written"))?;
    sync_folder(folder)
}

/// Writes a new file with this mode, whatever the umask is. It is on disk when this returns.
fn write_new(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    // Remove a leftover of a crash. Links are not followed, because the file is created again.
    let _ = fs::remove_file(path);
    let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(path)?;
    file.write_all(bytes)?;
    give_file_to_owner_of_folder(path, &file)?;
    file.set_permissions(fs::Permissions::from_mode(mode))?;
    file.sync_all()
}

/// Gives a file that this process has made to the owner of its folder.
fn give_file_to_owner_of_folder(path: &Path, file: &File) -> io::Result<()> {
    // By the open file and not by its path, at which another one can be meanwhile.
    if let Some(owner) = other_owner(path, &file.metadata()?) {
        // Only root can do that: for others it is theirs already.
        let _ = fchown(file, Some(owner.uid()), Some(owner.gid()));
    }
    Ok(())
}

fn sync_folder(folder: &Path) -> Result<(), StateError> {
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(refused(folder, "brought to disk"))
}

fn make_folder(folder: &Path, mode: u32) -> Result<(), StateError> {
    DirBuilder::new().recursive(true).mode(mode).create(folder).map_err(refused(folder, "made"))
}

/// Makes a folder of an app, with those in which it is. Each belongs to the owner of the folder that it is in.
fn make_app_folder(folder: &Path) -> Result<(), StateError> {
    let missing: Vec<&Path> = folder.ancestors().take_while(|it| !it.exists()).collect();
    make_folder(folder, 0o755)?;
    missing.into_iter().rev().for_each(give_to_owner_of_folder);
    Ok(())
}

/// Opens a lock file, or creates it as [`give_to_owner_of_folder`] says. It follows no link. A user who can open a lock file could lock it and keep
/// all others out (flock(2)), so only its owner can open it.
///
/// # Errors
/// It cannot be opened or created, or it is a link.
pub fn open_lock_file(path: &Path) -> io::Result<File> {
    if let Some(file) = create_for_owner_of_folder(path)? {
        return Ok(file);
    }
    // A user who owns the folder could put a link here, and root would change the mode of another file.
    let no_file = || io::Error::new(io::ErrorKind::InvalidInput, "it is a link, or no file: remove it");
    if !fs::symlink_metadata(path)?.is_file() {
        return Err(no_file());
    }
    let file = OpenOptions::new().write(true).open(path)?;
    let (opened, named) = (file.metadata()?, fs::symlink_metadata(path)?);
    if (opened.dev(), opened.ino()) != (named.dev(), named.ino()) {
        return Err(no_file());
    }
    // A lock file of an earlier version may be open to others. Only its owner can change that, so an error is ignored.
    let _ = file.set_permissions(fs::Permissions::from_mode(0o600));
    Ok(file)
}

/// Creates a file that only its owner can open, and gives it to the owner of its folder. `None`: it is there already, and stays as it is.
fn create_for_owner_of_folder(path: &Path) -> io::Result<Option<File>> {
    let created = OpenOptions::new().append(true).create_new(true).mode(0o600).open(path);
    let file = match created {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(None),
        created => created?,
    };
    give_file_to_owner_of_folder(path, &file)?;
    Ok(Some(file))
}

/// Gives a folder that this process has made to the owner of the folder that it is in. If root runs a command on the folder of another user, that
/// user can then still use what the command has made.
pub fn give_to_owner_of_folder(path: &Path) {
    let own = fs::symlink_metadata(path).ok().filter(fs::Metadata::is_dir);
    if let Some(owner) = own.and_then(|own| other_owner(path, &own)) {
        let _ = lchown(path, Some(owner.uid()), Some(owner.gid()));
    }
}

/// The owner of the folder that something is in, if that is another one.
fn other_owner(path: &Path, own: &fs::Metadata) -> Option<fs::Metadata> {
    let folder = fs::symlink_metadata(path.parent()?).ok()?;
    (folder.uid() != own.uid()).then_some(folder)
}

/// Removes a folder with all its contents, if it exists. Links in it are removed, not followed.
fn remove_folder(folder: &Path) -> Result<(), StateError> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(refused(folder, "removed")(error)),
        _ => Ok(()),
    }
}

/// The names in a folder; empty if it does not exist.
fn names_in(folder: &Path) -> Result<Vec<String>, StateError> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(refused(folder, "read"))?,
    };
    let name = |entry: io::Result<fs::DirEntry>| entry.ok()?.file_name().into_string().ok();
    let mut names: Vec<String> = entries.filter_map(name).collect();
    names.sort();
    Ok(names)
}

/// The text of a file; `None` if it does not exist.
fn read_text(path: &Path, bytes_max: usize) -> Result<Option<String>, StateError> {
    let bytes = match read_bounded(path, bytes_max) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(refused(path, "read")(error)),
        Ok(None) => {
            return failed(format!(
                "{} has more than the {bytes_max} bytes that it may have",
                path.display()
            ));
        }
        Ok(Some(bytes)) => bytes,
    };
    let text = String::from_utf8(bytes);
    text.map(Some).map_err(|_| StateError(format!("{} is damaged: it is not UTF-8", path.display())))
}

/// The bytes of a plain file; `None` if there are more than `bytes_max`. A link is not a plain file.
fn read_bounded(path: &Path, bytes_max: usize) -> io::Result<Option<Vec<u8>>> {
    let file = open_plain(path)?;
    let mut bytes = Vec::new();
    let most = u64::try_from(bytes_max).unwrap_or(u64::MAX).saturating_add(1);
    file.take(most).read_to_end(&mut bytes)?;
    Ok((bytes.len() <= bytes_max).then_some(bytes))
}

fn open_plain(path: &Path) -> io::Result<File> {
    for _ in 0..LOOKS_MAX {
        // Check the type before opening: opening a pipe would wait for its other end.
        let there = fs::symlink_metadata(path)?;
        if !there.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no file"));
        }
        let file = File::open(path)?;
        let opened = file.metadata()?;
        // Otherwise another file, or a link, replaced it in between.
        if (opened.dev(), opened.ino()) == (there.dev(), there.ino()) {
            return Ok(file);
        }
    }
    Err(io::Error::new(io::ErrorKind::InvalidInput, "it changes while it is read; try again"))
}

#[cfg(test)]
mod tests;
