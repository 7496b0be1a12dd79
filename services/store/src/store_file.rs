//! The file of the store: keys, values, owners, and the number of bytes of each app.
//!
//! ```text
//!   key ──> (the app that wrote it last, value)          FOLDER/store.redb
//!   app ──> bytes of its keys and values                 counted when the file is opened, and with each change
//!   "format" ──> the version of these tables             format.rs: older ones are migrated, newer ones refused
//! ```
//!
//! In: changes, which wait for [`StoreFile::commit`]. Out: the content, including waiting changes. After a successful `commit`,
//! all changes are on disk. After an error of `commit`, all or none are. After another error, none is. After any error, the file must
//! be opened again. A damaged file is renamed, never deleted. This module knows no tickets and sends nothing.

mod format;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use crate::copy::{Entry, Writer};
use burnet_sdk::store::{Change, VALUE_BYTES_MAX, push_key};
use redb::backends::FileBackend;
use redb::{
    CommitError, Database, DatabaseError, ReadableDatabase, ReadableTable, StorageError, Table,
    TableDefinition, TableError, TransactionError, WriteTransaction,
};
use rustix::fs::OFlags;

/// The name of the file in its folder.
pub const FILE: &str = "store.redb";

/// The maximum number of bytes of all keys and values: sixty apps with the default quota. A put beyond it is refused.
pub const BYTES_MAX: u64 = 64 << 20;

/// The size of the cache in bytes. Most apps read a few small keys repeatedly.
const CACHE_BYTES: usize = 8 << 20;

/// The maximum length of a part of the answer to a list.
const PART_BYTES_MAX: usize = VALUE_BYTES_MAX;

/// The maximum number of parts of an answer to a list. For more keys, the caller lists again after the last key.
pub const PARTS_MAX: usize = 8;

const KEYS: TableDefinition<'static, &'static str, (&'static str, &'static [u8])> =
    TableDefinition::new("keys");

/// Each key has the name of the app that wrote it last, and a value.
type KeyTable<'t> = Table<'t, &'static str, (&'static str, &'static [u8])>;

/// The result of a put.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PutResult {
    /// The change waits for the commit.
    Done,
    /// The app would exceed its quota. Nothing has changed.
    AppIsFull,
    /// The store would exceed [`BYTES_MAX`]. Nothing has changed.
    StoreIsFull,
}

/// An error, as a phrase. The operator must fix it: a full disk, or a folder without write permission.
#[derive(Debug)]
pub struct StoreError(String);

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for StoreError {}

/// An error of the database library.
#[derive(Debug)]
enum FileFault {
    /// The file is damaged.
    Damaged(String),
    /// The file cannot be read or written now.
    NotNow(String),
    /// A newer version of Burnet wrote the file, in this format.
    Newer(u64),
}

impl FileFault {
    /// The reason, as a phrase.
    fn why(self) -> String {
        match self {
            FileFault::Damaged(why) | FileFault::NotNow(why) => why,
            FileFault::Newer(format) => format!("it has format {format}"),
        }
    }
}

impl From<io::Error> for FileFault {
    fn from(error: io::Error) -> FileFault {
        FileFault::NotNow(error.to_string())
    }
}

impl From<FileFault> for StoreError {
    fn from(fault: FileFault) -> StoreError {
        if let FileFault::Newer(format) = fault {
            return StoreError(format!(
                "the store's file has format {format}, and this version of Burnet knows up to {}: update Burnet, or restore a backup of this version",
                format::NEWEST
            ));
        }
        StoreError(format!("the store's file cannot be used ({})", fault.why()))
    }
}

impl From<StorageError> for FileFault {
    fn from(error: StorageError) -> FileFault {
        let why = error.to_string();
        match error {
            StorageError::Corrupted(_) => FileFault::Damaged(why),
            StorageError::Io(error)
                if matches!(error.kind(), io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof) =>
            {
                FileFault::Damaged(why)
            }
            _ => FileFault::NotNow(why),
        }
    }
}

impl From<DatabaseError> for FileFault {
    fn from(error: DatabaseError) -> FileFault {
        match error {
            DatabaseError::Storage(error) => error.into(),
            DatabaseError::UpgradeRequired(_) | DatabaseError::RepairAborted => {
                FileFault::Damaged(error.to_string())
            }
            other => FileFault::NotNow(other.to_string()),
        }
    }
}

impl From<TableError> for FileFault {
    fn from(error: TableError) -> FileFault {
        match error {
            TableError::Storage(error) => error.into(),
            // No file of this service has such a table.
            other => FileFault::Damaged(other.to_string()),
        }
    }
}

impl From<TransactionError> for FileFault {
    fn from(error: TransactionError) -> FileFault {
        match error {
            TransactionError::Storage(error) => error.into(),
            other => FileFault::NotNow(other.to_string()),
        }
    }
}

impl From<CommitError> for FileFault {
    fn from(error: CommitError) -> FileFault {
        match error {
            CommitError::Storage(error) => error.into(),
            other => FileFault::NotNow(other.to_string()),
        }
    }
}

/// The open file.
pub struct StoreFile {
    /// The open transaction. It is before the database, so that it is dropped first.
    turn: Option<WriteTransaction>,
    database: Database,
    /// The bytes of each app that has keys.
    used: BTreeMap<String, u64>,
    changed: bool,
    bytes_max: u64,
}

impl StoreFile {
    /// Opens or creates the file in this folder. Also returns a remark for the operator, if the file was repaired or damaged.
    ///
    /// # Errors
    /// The file cannot be read or written. A damaged file is not an error.
    pub fn open(folder: &Path, now_ms: u64) -> Result<(StoreFile, Option<String>), StoreError> {
        let file = folder.join(FILE);
        match try_open(&file) {
            Ok((store, whole)) => Ok((store, (!whole).then(|| mended(&file)))),
            Err(FileFault::Damaged(why)) => {
                let aside = put_aside(&file, now_ms)?;
                let (store, _) = try_open(&file)?;
                let (file, aside) = (file.display(), aside.display());
                let remark = format!(
                    "the store's file {file} is damaged ({why}): it is now {aside}, and the store begins empty"
                );
                Ok((store, Some(remark)))
            }
            Err(fault) => Err(fault.into()),
        }
    }

    /// Whether this folder has a file, or something else in its place. No link is followed.
    pub fn is_in(folder: &Path) -> bool {
        fs::symlink_metadata(folder.join(FILE)).is_ok()
    }

    /// A copy of the file in this folder, which no service has open.
    ///
    /// # Errors
    /// The file is open, damaged, a link, or cannot be read. It stays where it is.
    pub fn copy_of(folder: &Path) -> Result<Vec<u8>, StoreError> {
        let place = folder.join(FILE);
        let file = open_plain(&place).map_err(|why| {
            StoreError(format!("{} cannot be opened as a plain file: {why}", place.display()))
        })?;
        let (store, _) = guarded(|| {
            open_and_check(
                Database::builder()
                    .set_cache_size(CACHE_BYTES)
                    .create_with_backend(FileBackend::new(file)?)?,
            )
        })?;
        Ok(store.write_copy(Vec::new())?)
    }

    /// Creates the file in this folder with these keys. The folder must have none.
    ///
    /// # Errors
    /// There is such a file, or it cannot be written.
    pub fn create(folder: &Path, entries: &[Entry<'_>]) -> Result<(), StoreError> {
        let file = folder.join(FILE);
        if fs::symlink_metadata(&file).is_ok() {
            return Err(StoreError(format!("{} already exists", file.display())));
        }
        let (mut store, _) = try_open(&file)?;
        for Entry { app, key, value } in entries {
            store.table()?.insert(*key, (*app, *value)).map_err(FileFault::from)?;
        }
        store.changed = true;
        store.commit()
    }

    /// Writes a copy of what is on disk to [`store_contract::SAVED`] in this folder. Changes that wait for their commit are not in it.
    ///
    /// # Errors
    /// The copy cannot be written. An earlier one is gone.
    pub fn save(&self, folder: &Path) -> Result<(), StoreError> {
        let place = folder.join(store_contract::SAVED);
        let _ = fs::remove_file(&place);
        let draft = folder.join(format!("{}.new", store_contract::SAVED));
        let written = File::create(&draft).map_err(FileFault::from).and_then(|file| {
            let writer = self.write_copy(BufWriter::new(file))?;
            Ok(writer.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()?)
        });
        let done = written.and_then(|()| Ok(fs::rename(&draft, &place)?));
        done.map_err(|fault| {
            let _ = fs::remove_file(&draft);
            StoreError(format!("the copy {} cannot be written ({})", place.display(), fault.why()))
        })
    }

    fn write_copy<W: Write>(&self, to: W) -> Result<W, FileFault> {
        let keys = self.database.begin_read()?.open_table(KEYS)?;
        let mut writer = Writer::new(to)?;
        for entry in keys.iter()? {
            let (key, found) = entry?;
            let (app, value) = found.value();
            writer.add(&Entry { app, key: key.value(), value })?;
        }
        Ok(writer.end()?)
    }

    /// The bytes of the keys and values of each app that has some.
    pub fn used(&self) -> &BTreeMap<String, u64> {
        &self.used
    }

    /// The value of a key.
    ///
    /// # Errors
    /// The file failed.
    pub fn get(&mut self, key: &str) -> Result<Option<Vec<u8>>, StoreError> {
        let table = self.table()?;
        let found = table.get(key).map_err(FileFault::from)?;
        Ok(found.map(|found| found.value().1.to_vec()))
    }

    /// Writes a value, with this app as the owner. The app may have `hard_bytes` bytes. If it already has more, it may only shrink.
    ///
    /// # Errors
    /// The file failed.
    pub fn put(
        &mut self,
        app: &str,
        hard_bytes: u64,
        key: &str,
        value: &[u8],
    ) -> Result<PutResult, StoreError> {
        let before = self.entry(key)?;
        let of_app = self.used.get(app).copied().unwrap_or_default();
        let freed = before.as_ref().map_or(0, |(_, bytes)| *bytes);
        let freed_of_app = before.as_ref().filter(|(owner, _)| owner == app).map_or(0, |(_, bytes)| *bytes);
        let added = length(key, value);
        if exceeds(of_app, freed_of_app, added, hard_bytes) {
            return Ok(PutResult::AppIsFull);
        }
        if exceeds(self.used.values().sum(), freed, added, self.bytes_max) {
            return Ok(PutResult::StoreIsFull);
        }
        self.table()?.insert(key, (app, value)).map_err(FileFault::from)?;
        self.count(before, Some((app.to_owned(), added)));
        Ok(PutResult::Done)
    }

    /// Makes all of these changes, or none, with the same bounds as [`StoreFile::put`]. A key to delete need not exist.
    ///
    /// # Errors
    /// The file failed.
    pub fn change_all<'c>(
        &mut self,
        app: &str,
        hard_bytes: u64,
        changes: impl Iterator<Item = Change<'c>> + Clone,
    ) -> Result<PutResult, StoreError> {
        let (added, freed, freed_of_app) = self.difference(app, hard_bytes, changes.clone())?;
        let of_app = self.used.get(app).copied().unwrap_or_default();
        if exceeds(of_app, freed_of_app, added, hard_bytes) {
            return Ok(PutResult::AppIsFull);
        }
        if exceeds(self.used.values().sum(), freed, added, self.bytes_max) {
            return Ok(PutResult::StoreIsFull);
        }
        let mut counted = Vec::new();
        let mut table = self.table()?;
        for Change { key, value } in changes {
            let before = match value {
                Some(value) => table.insert(key, (app, value)),
                None => table.remove(key),
            };
            let before = before.map_err(FileFault::from)?.map(|before| {
                let (owner, value) = before.value();
                (owner.to_owned(), length(key, value))
            });
            // Without both, nothing changes, and nothing is to be written.
            if before.is_some() || value.is_some() {
                counted.push((before, value.map(|value| length(key, value))));
            }
        }
        drop(table);
        for (before, added) in counted {
            self.count(before, added.map(|added| (app.to_owned(), added)));
        }
        Ok(PutResult::Done)
    }

    /// How many bytes changes add at most, and how many they free at least: in the store, and of this app. What they free is read only if
    /// the bounds would be exceeded without it.
    fn difference<'c>(
        &mut self,
        app: &str,
        hard_bytes: u64,
        changes: impl Iterator<Item = Change<'c>> + Clone,
    ) -> Result<(u64, u64, u64), StoreError> {
        let lengths = changes.clone().filter_map(|it| Some(length(it.key, it.value?)));
        let added: u64 = lengths.sum();
        let of_app = self.used.get(app).copied().unwrap_or_default();
        let has_room = !exceeds(of_app, 0, added, hard_bytes)
            && !exceeds(self.used.values().sum(), 0, added, self.bytes_max);
        let (mut freed, mut freed_of_app) = (0, 0);
        if has_room {
            return Ok((added, freed, freed_of_app));
        }
        let keys: BTreeSet<&str> = changes.map(|it| it.key).collect();
        for key in keys {
            if let Some((owner, bytes)) = self.entry(key)? {
                freed += bytes;
                freed_of_app += if owner == app { bytes } else { 0 };
            }
        }
        Ok((added, freed, freed_of_app))
    }

    /// Deletes a key. Returns whether it existed.
    ///
    /// # Errors
    /// The file failed.
    pub fn delete(&mut self, key: &str) -> Result<bool, StoreError> {
        let Some(before) = self.entry(key)? else { return Ok(false) };
        self.table()?.remove(key).map_err(FileFault::from)?;
        self.count(Some(before), None);
        Ok(true)
    }

    /// The keys with this prefix that come after `after`, in parts, and whether more follow.
    ///
    /// # Errors
    /// The file failed.
    pub fn list(&mut self, prefix: &str, after: &str) -> Result<(Vec<Vec<u8>>, bool), StoreError> {
        let table = self.table()?;
        let (mut parts, mut part) = (Vec::new(), Vec::new());
        for entry in table.range::<&str>(prefix.max(after)..).map_err(FileFault::from)? {
            let (key, _) = entry.map_err(FileFault::from)?;
            let key = key.value();
            if key == after && !after.is_empty() {
                continue;
            }
            if !key.starts_with(prefix) {
                break;
            }
            if part.len() + size_of::<u16>() + key.len() > PART_BYTES_MAX {
                parts.push(std::mem::take(&mut part));
                if parts.len() == PARTS_MAX {
                    return Ok((parts, true));
                }
            }
            push_key(&mut part, key);
        }
        parts.push(part);
        Ok((parts, false))
    }

    /// Writes all changes to disk.
    ///
    /// # Errors
    /// All changes are on disk, or none. The error can come after the last byte was written.
    pub fn commit(&mut self) -> Result<(), StoreError> {
        let Some(turn) = self.turn.take() else { return Ok(()) };
        match std::mem::take(&mut self.changed) {
            true => turn.commit().map_err(FileFault::from)?,
            false => turn.abort().map_err(FileFault::from)?,
        }
        Ok(())
    }

    /// The owner of a key, and its bytes.
    fn entry(&mut self, key: &str) -> Result<Option<(String, u64)>, StoreError> {
        let table = self.table()?;
        let found = table.get(key).map_err(FileFault::from)?;
        Ok(found.map(|found| {
            let (owner, value) = found.value();
            (owner.to_owned(), length(key, value))
        }))
    }

    fn count(&mut self, before: Option<(String, u64)>, after: Option<(String, u64)>) {
        self.changed = true;
        if let Some((app, bytes)) = before
            && let Some(used) = self.used.get_mut(&app)
        {
            *used = used.saturating_sub(bytes);
            if *used == 0 {
                self.used.remove(&app);
            }
        }
        if let Some((app, bytes)) = after {
            *self.used.entry(app).or_default() += bytes;
        }
    }

    /// The keys, including the changes of this turn.
    fn table(&mut self) -> Result<KeyTable<'_>, FileFault> {
        let turn = match self.turn.take() {
            Some(turn) => turn,
            None => self.database.begin_write()?,
        };
        Ok(self.turn.insert(turn).open_table(KEYS)?)
    }
}

/// Whether a change would exceed the limit. A change that frees bytes is always allowed.
fn exceeds(have: u64, freed: u64, added: u64, most: u64) -> bool {
    added > freed && have.saturating_sub(freed).saturating_add(added) > most
}

/// The bytes that a key costs its app.
fn length(key: &str, value: &[u8]) -> u64 {
    // The lengths are far below the limit of 64 bits.
    (key.len() + value.len()) as u64
}

/// Opens an existing file. It refuses a link, and a file with a second name: the folder belongs to the service, and the service
/// must not choose what another user opens. The check is on the open file, so the file cannot be exchanged in between.
fn open_plain(place: &Path) -> io::Result<File> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    // The bits of these flags fit.
    let flags = flags.bits().cast_signed();
    let file = File::options().read(true).write(true).custom_flags(flags).open(place)?;
    let found = file.metadata()?;
    match found.is_file() && found.nlink() == 1 {
        true => Ok(file),
        false => Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no file, or it has several names")),
    }
}

/// Opens the file. Returns also whether it was intact: the database repairs an interrupted write.
fn try_open(file: &Path) -> Result<(StoreFile, bool), FileFault> {
    guarded(|| open_and_check(Database::builder().set_cache_size(CACHE_BYTES).create(file)?))
}

/// The file in this storage, for tests of failures.
#[cfg(test)]
pub(crate) fn on_backend(backend: impl redb::StorageBackend) -> StoreFile {
    let database = Database::builder().create_with_backend(backend).expect("it is sound");
    open_and_check(database).unwrap_or_else(|fault| panic!("{}", fault.why())).0
}

/// The library may panic on invalid data, so a panic means that the file is damaged.
fn guarded(
    open: impl FnOnce() -> Result<(StoreFile, bool), FileFault>,
) -> Result<(StoreFile, bool), FileFault> {
    let opened = catch_unwind(AssertUnwindSafe(open));
    opened.unwrap_or_else(|_| Err(FileFault::Damaged("reading it failed".to_owned())))
}

fn open_and_check(mut database: Database) -> Result<(StoreFile, bool), FileFault> {
    let whole = database.check_integrity()?;
    format::migrate(&database)?;
    let mut store =
        StoreFile { turn: None, database, used: BTreeMap::new(), changed: true, bytes_max: BYTES_MAX };
    let used = used_by(&store.table()?)?;
    store.used = used;
    // The commit creates the table of a new file.
    store.commit().map_err(|StoreError(why)| FileFault::NotNow(why))?;
    Ok((store, whole))
}

fn used_by(table: &KeyTable<'_>) -> Result<BTreeMap<String, u64>, FileFault> {
    let mut used: BTreeMap<String, u64> = BTreeMap::new();
    for entry in table.iter()? {
        let (key, found) = entry?;
        let (owner, value) = found.value();
        let bytes = length(key.value(), value);
        match used.get_mut(owner) {
            Some(used) => *used += bytes,
            None => drop(used.insert(owner.to_owned(), bytes)),
        }
    }
    Ok(used)
}

fn mended(file: &Path) -> String {
    let file = file.display();
    format!("the store's file {file} was damaged and is repaired: the last writes may be missing")
}

/// Renames a damaged file. Nothing deletes these files; the operator must remove them.
fn put_aside(file: &Path, now_ms: u64) -> Result<PathBuf, StoreError> {
    let aside = file.with_file_name(format!("{FILE}.damaged-{now_ms}"));
    let cannot = |error| {
        StoreError(format!("the store's file {} is damaged and cannot be renamed ({error})", file.display()))
    };
    if fs::symlink_metadata(&aside).is_ok() {
        return Err(cannot(io::ErrorKind::AlreadyExists.into()));
    }
    fs::rename(file, &aside).map_err(cannot)?;
    Ok(aside)
}

#[cfg(test)]
mod tests;
