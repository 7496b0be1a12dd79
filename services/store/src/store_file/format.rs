//! The version of the tables in the store's file, and the migration of older files.
//!
//! ```text
//!   no table            a new file      ──> NEWEST
//!   "keys" alone        format 1        ──> migrated step by step, in one transaction
//!   "about": "format"   formats 2 and later; a newer one than NEWEST is refused
//! ```
//!
//! In: an open database. Out: the same in the newest format, or an error and an unchanged file.

use super::{FileFault, KEYS};
use redb::{Database, ReadableTable, TableDefinition, TableHandle, WriteTransaction};

/// Facts about the file itself.
pub(super) const ABOUT: TableDefinition<'static, &'static str, u64> = TableDefinition::new("about");

/// The key of the format in [`ABOUT`].
pub(super) const FORMAT: &str = "format";

/// The step from each format to the next one; the first is from format 1.
type Step = fn(&WriteTransaction) -> Result<(), FileFault>;

/// Format 2 differs from 1 in that it has its number, which [`migrate`] writes.
const STEPS: &[Step] = &[|_| Ok(())];

/// The newest format.
pub(super) const NEWEST: u64 = 1 + STEPS.len() as u64;

/// Brings a file to the newest format.
///
/// # Errors
/// The format is newer, or the file cannot be read or written. Nothing has changed.
pub(super) fn migrate(database: &Database) -> Result<(), FileFault> {
    let turn = database.begin_write()?;
    let format = format_of(&turn)?;
    if format == NEWEST {
        return Ok(turn.abort()?);
    }
    // A format that does not fit into a place of the list is a newer one too.
    let done = usize::try_from(format - 1).unwrap_or(usize::MAX);
    let steps = STEPS.get(done..).ok_or(FileFault::Newer(format))?;
    steps.iter().try_for_each(|step| step(&turn))?;
    turn.open_table(ABOUT)?.insert(FORMAT, NEWEST)?;
    Ok(turn.commit()?)
}

/// The format of a file, at least 1. A new file has the newest one as soon as it has tables.
fn format_of(turn: &WriteTransaction) -> Result<u64, FileFault> {
    let names: Vec<String> = turn.list_tables()?.map(|table| table.name().to_owned()).collect();
    if !names.iter().any(|name| name == ABOUT.name()) {
        let is_of_the_store = names.is_empty() || names.iter().any(|name| name == KEYS.name());
        let foreign = || FileFault::Damaged("it has no table of keys".to_owned());
        return is_of_the_store.then_some(1).ok_or_else(foreign);
    }
    let format = turn.open_table(ABOUT)?.get(FORMAT)?.map(|format| format.value());
    format.filter(|format| *format >= 1).ok_or_else(|| FileFault::Damaged("it has no format".to_owned()))
}
