//! The table of a service in shared memory, as an app and the service see it, whatever the zone maps.
//!
//! ```text
//!   service ──WriteRegion──> shared memory ──ReadRegion──> any number of apps
//! ```
//!
//! In: keys and values, as bytes. Out: the same. Nothing here maps memory or knows what a record means. `ring` has the
//! implementation of a process zone; the SDK has another for tests of apps.

use std::fmt;
use std::sync::Arc;

/// A change for the app of a zone.
#[derive(Debug)]
pub enum Region {
    /// The service writes its table here from now on.
    Writes(Box<dyn WriteRegion>),
    /// The app reads the table of this service here from now on.
    Reads {
        /// The service's name.
        service: String,
        /// The table.
        table: Arc<dyn ReadRegion>,
    },
    /// The service has ended. Its table stays as it was, and nobody changes it any more.
    Ended {
        /// The service's name.
        service: String,
    },
}

/// The service's side.
pub trait WriteRegion: Send + fmt::Debug {
    /// Sets the value of a key. Returns whether there was room. Without room, the record is left out, and readers are told.
    fn put(&mut self, key: &[u8], value: &[u8]) -> bool;

    /// Removes a record.
    fn remove(&mut self, key: &[u8]);

    /// All changes since the last call belong together, and are complete.
    fn settle(&mut self);
}

/// The side of an app. A record is copied out whole, as it was at one moment.
pub trait ReadRegion: Send + Sync + fmt::Debug {
    /// A number that changes with each change. It is odd while changes are made that belong together.
    fn version(&self) -> u64;

    /// Whether records are left out because there is no room for them.
    fn is_full(&self) -> bool;

    /// Copies the value of a key. Returns whether there is such a record.
    ///
    /// # Errors
    /// [`Unread`].
    fn get(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool, Unread>;

    /// How many places for records there are.
    fn places(&self) -> usize;

    /// Copies the record in a place. Returns whether there is one.
    ///
    /// # Errors
    /// [`Unread`].
    fn at(&self, place: usize, key: &mut Vec<u8>, value: &mut Vec<u8>) -> Result<bool, Unread>;
}

/// Why a record in shared memory could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unread {
    /// The service is changing it, or ended in the middle of a change.
    Changing,
    /// The memory contradicts itself. It is the service's fault.
    Damaged,
}
