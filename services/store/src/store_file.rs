//! The file with the keys: what is in it, whose it is, and how much of it each app has.
//!
//! ```text
//!   key ──> (the app that wrote it last, value)          FOLDER/store.redb
//!   app ──> bytes of its keys and values                 counted when the file is opened, and with each change
//! ```
//!
//! In: changes, which wait for [`StoreFile::commit`] all together. Out: what is there, those changes included. When `commit` returns without an error
//! they are on disk; when anything fails none of them is, and the file must be opened again. A file that is damaged is renamed, never
//! deleted. It knows no ticket and sends nothing.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use burnet_sdk::store::{VALUE_BYTES_MAX, push_key};
use redb::{
    CommitError, Database, DatabaseError, ReadableTable, StorageError, Table, TableDefinition, TableError,
    TransactionError, WriteTransaction,
};

/// Its name within the folder.
pub const FILE: &str = "store.redb";

/// Bytes of all keys and values together: sixty apps with what an app gets by default. A put beyond it is refused, whoever's it is.
pub const BYTES_MAX: u64 = 64 << 20;

/// How much of the file is kept in memory: reading a few small keys again and again is what most apps do.
const CACHE_BYTES: usize = 8 << 20;

/// Longest part of the answer to a list.
const PART_BYTES_MAX: usize = VALUE_BYTES_MAX;

/// Parts of one answer to a list; who wants more asks for what is behind the last key.
pub const PARTS_MAX: usize = 8;

const KEYS: TableDefinition<'static, &'static str, (&'static str, &'static [u8])> =
    TableDefinition::new("keys");

/// A key stands beside the name of who wrote it last, and the value.
type KeyTable<'t> = Table<'t, &'static str, (&'static str, &'static [u8])>;

/// What became of a put.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PutResult {
    /// It waits for the commit.
    Done,
    /// The app would have more than it may. Nothing is changed.
    AppIsFull,
    /// All apps together would have more than [`BYTES_MAX`]. Nothing is changed.
    StoreIsFull,
}

/// Why something failed: a sentence without its end. The operator's to put right: a full disk, a folder that may not be written.
#[derive(Debug)]
pub struct StoreError(String);

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for StoreError {}

/// What the file's library says, in our terms.
#[derive(Debug)]
enum FileFault {
    /// What is in the file is not what was written.
    Damaged(String),
    /// It cannot be read or written now.
    NotNow(String),
}

impl From<FileFault> for StoreError {
    fn from(fault: FileFault) -> StoreError {
        let (FileFault::Damaged(why) | FileFault::NotNow(why)) = fault;
        StoreError(format!("the store's file cannot be used ({why})"))
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
            // No file of ours has such a table.
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
    /// What was looked at and changed since the last commit. Before the database, which outlives it.
    turn: Option<WriteTransaction>,
    database: Database,
    /// Of the apps whose keys are there: of no more than have ever written.
    used: BTreeMap<String, u64>,
    changed: bool,
    bytes_max: u64,
}

impl StoreFile {
    /// Opens the file in this folder, or makes it. What there is to tell the operator of how it was found comes beside it.
    ///
    /// # Errors
    /// It cannot be read or written; a file that is damaged is no error.
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

    /// By app, how many bytes its keys and values have; nobody who has none.
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

    /// Keeps a value under a key, as this app's, which may have so many bytes. One that has more already may change what it has for less.
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

    /// Takes a key out: whether it was there.
    ///
    /// # Errors
    /// The file failed.
    pub fn delete(&mut self, key: &str) -> Result<bool, StoreError> {
        let Some(before) = self.entry(key)? else { return Ok(false) };
        self.table()?.remove(key).map_err(FileFault::from)?;
        self.count(Some(before), None);
        Ok(true)
    }

    /// The keys that begin so and come after this one, in parts; and whether there are more than these.
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

    /// Brings all changes to disk.
    ///
    /// # Errors
    /// None of them is.
    pub fn commit(&mut self) -> Result<(), StoreError> {
        let Some(turn) = self.turn.take() else { return Ok(()) };
        match std::mem::take(&mut self.changed) {
            true => turn.commit().map_err(FileFault::from)?,
            false => turn.abort().map_err(FileFault::from)?,
        }
        Ok(())
    }

    /// Whose a key is, and its bytes.
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

    /// The keys as this turn sees them, what it has changed included.
    fn table(&mut self) -> Result<KeyTable<'_>, FileFault> {
        let turn = match self.turn.take() {
            Some(turn) => turn,
            None => self.database.begin_write()?,
        };
        Ok(self.turn.insert(turn).open_table(KEYS)?)
    }
}

/// Whether who has so much would have too much. To have less than before is never too much.
fn exceeds(have: u64, freed: u64, added: u64, most: u64) -> bool {
    added > freed && have.saturating_sub(freed).saturating_add(added) > most
}

/// What a key costs its app.
fn length(key: &str, value: &[u8]) -> u64 {
    // A key and a value are far below what 64 bits count.
    (key.len() + value.len()) as u64
}

/// Opens the file. Returns also whether it was intact: the database repairs an interrupted write.
fn try_open(file: &Path) -> Result<(StoreFile, bool), FileFault> {
    // Where its library does not believe what it reads it may panic, and what is damaged is what it does not believe.
    let opened = catch_unwind(AssertUnwindSafe(|| open_and_check(file)));
    opened.unwrap_or_else(|_| Err(FileFault::Damaged("reading it failed".to_owned())))
}

fn open_and_check(file: &Path) -> Result<(StoreFile, bool), FileFault> {
    let mut database = Database::builder().set_cache_size(CACHE_BYTES).create(file)?;
    let whole = database.check_integrity()?;
    let mut store =
        StoreFile { turn: None, database, used: BTreeMap::new(), changed: true, bytes_max: BYTES_MAX };
    let used = used_by(&store.table()?)?;
    store.used = used;
    // The table is there from now on.
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
    format!("the store's file {file} was damaged and could be mended: what was written last may be missing")
}

/// Renames the file to a name that says what it is; what its library noted in it on the way stays there. There are as many of those as files that were damaged; they are the operator's to take away.
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
