//! The network view in shared memory: one copy for all apps of a node, written by the services.
//!
//! ```text
//!   discovery, hosts ──records──> shared memory ──> [ SharedView: text of a key ──> record ] ──> an app that asks
//! ```
//!
//! In: keys, and bytes of a service that could be anything. Out: objects, or the reason why the memory does not give them. It
//! keeps no objects, and never decides what a change means.
//!
//! What a reader gets. An object is whole, as it was at one moment. Several objects belong together if
//! [`SharedView::records`] returned them: it compares the versions of the tables before and after. An object is visible only
//! while what it needs is, as in a [`view::Snapshot`].

use std::fmt;
use std::sync::Arc;

use flow::DatapathId;
use view::{
    ConnectPoint, Host, HostId, Key, Kind, Link, LinkId, OBJECTS_MAX, Object, Port, Record, Snapshot, Switch,
    Tables,
};
use zone::region::{ReadRegion, Region, Unread};

/// How often a reader tries to read many records between two changes of the service.
const WHOLE_ATTEMPTS_MAX: usize = 16;

/// The tables of services in shared memory, as one app reads them.
#[derive(Clone, Debug, Default)]
pub struct SharedView {
    /// One for each service; a node has few.
    tables: Vec<SharedTable>,
    /// How many tables there were so far.
    given: u64,
    /// The versions that the app was told of.
    told: Vec<Option<Version>>,
}

#[derive(Clone, Debug)]
struct SharedTable {
    service: String,
    number: u64,
    table: Arc<dyn ReadRegion>,
    /// Whether the service runs that writes it.
    is_written: bool,
}

/// A version of a service's table. Equal versions mean that nothing changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Version {
    table: u64,
    version: u64,
}

/// Why shared memory does not give an object. The stream of the service has it ([`crate::Interests::view`]).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotShared {
    /// This zone has no shared memory of the service. The app does not hold the capability, or the node shares nothing. Or the service
    /// has not started yet, or the zone is not a process.
    Absent(&'static str),
    /// The service has left out records, because there is no room for them.
    Full(&'static str),
    /// The service is making changes, or ended in the middle of one.
    Changing(&'static str),
    /// The memory holds no record where one should be. It is the service's fault.
    Damaged(&'static str, String),
}

impl fmt::Display for NotShared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NotShared::Absent(service) => {
                write!(f, "this zone has no shared memory of the service {service}")
            }
            NotShared::Full(service) => {
                write!(f, "the shared memory of the service {service} has no room for all records")
            }
            NotShared::Changing(service) => write!(f, "the service {service} is changing its shared memory"),
            NotShared::Damaged(service, why) => {
                write!(f, "the shared memory of the service {service} is damaged: {why}")
            }
        }
    }
}

impl std::error::Error for NotShared {}

/// The object of one kind, if it is of that kind.
macro_rules! one {
    ($self:ident, $kind:ident, $id:expr) => {
        Ok($self.get(Key::$kind($id))?.and_then(|record| match record.object {
            Object::$kind(object) => Some(object),
            _ => None,
        }))
    };
}

impl SharedView {
    /// The zone has another table, or a service ended.
    #[doc(hidden)]
    pub fn on_region(&mut self, region: Region) {
        match region {
            Region::Reads { service, table } => {
                self.given += 1;
                self.tables.retain(|it| it.service != service);
                self.tables.push(SharedTable { service, number: self.given, table, is_written: true });
            }
            Region::Ended { service } => {
                let ended = self.tables.iter_mut().filter(|it| it.service == service);
                ended.for_each(|it| it.is_written = false);
            }
            Region::Writes(_) => {}
        }
    }

    fn table(&self, kind: Kind) -> Result<&SharedTable, NotShared> {
        let service = kind.service();
        self.tables.iter().find(|it| it.service == service).ok_or(NotShared::Absent(service))
    }

    /// Whether the objects of these kinds are all there, and their changes arrive. While a service is away, its objects are as it left
    /// them.
    pub fn is_current(&self, kinds: &[Kind]) -> bool {
        let current = |it: &SharedTable| it.is_written && !it.table.is_full();
        kinds.iter().all(|kind| self.table(*kind).is_ok_and(current))
    }

    /// The version of the objects of a kind. It costs one read of memory. `None`: this zone has no shared memory for them.
    pub fn version(&self, kind: Kind) -> Option<Version> {
        self.table(kind).ok().map(SharedTable::version)
    }

    /// Whether anything changed since the last call.
    pub(crate) fn take_changed(&mut self) -> bool {
        let known = |it: &SharedTable| Some(it.version()).filter(|_| it.is_written);
        let same = self.told.iter().copied().eq(self.tables.iter().map(known));
        if !same {
            self.told.clear();
            self.told.extend(self.tables.iter().map(known));
        }
        !same
    }

    /// An object with its stamp. `None`: there is no such object.
    ///
    /// # Errors
    /// [`NotShared`].
    pub fn get(&self, key: Key) -> Result<Option<Record>, NotShared> {
        let (service, table) = (key.kind().service(), self.table(key.kind())?);
        let mut value = Vec::new();
        // The service may take the record in after this look at the table.
        let was_full = table.table.is_full();
        let found = table.table.get(key.to_string().as_bytes(), &mut value);
        if !found.map_err(|why| unread(service, why))? {
            return if was_full || table.table.is_full() { Err(NotShared::Full(service)) } else { Ok(None) };
        }
        let record = read(service, &value)?;
        if record.object.key() != key {
            return Err(NotShared::Damaged(service, format!("{key} has the object {}", record.object.key())));
        }
        Ok(self.is_visible(&record.object)?.then_some(record))
    }

    /// Whether what the object needs is there. A service keeps the order among its own objects.
    fn is_visible(&self, object: &Object) -> Result<bool, NotShared> {
        let own = object.key().kind().service();
        for needed in object.needs().into_iter().flatten().filter(|needed| needed.kind().service() != own) {
            let (service, table) = (needed.kind().service(), self.table(needed.kind())?);
            let was_full = table.table.is_full();
            let found = table.table.get(needed.to_string().as_bytes(), &mut Vec::new());
            if !found.map_err(|why| unread(service, why))? {
                return if was_full || table.table.is_full() {
                    Err(NotShared::Full(service))
                } else {
                    Ok(false)
                };
            }
        }
        Ok(true)
    }

    /// A switch.
    ///
    /// # Errors
    /// [`NotShared`].
    pub fn switch(&self, id: DatapathId) -> Result<Option<Switch>, NotShared> {
        one!(self, Switch, id)
    }

    /// A port.
    ///
    /// # Errors
    /// [`NotShared`].
    pub fn port(&self, id: ConnectPoint) -> Result<Option<Port>, NotShared> {
        one!(self, Port, id)
    }

    /// One direction of a link.
    ///
    /// # Errors
    /// [`NotShared`].
    pub fn link(&self, id: LinkId) -> Result<Option<Link>, NotShared> {
        one!(self, Link, id)
    }

    /// A host.
    ///
    /// # Errors
    /// [`NotShared`].
    pub fn host(&self, id: HostId) -> Result<Option<Host>, NotShared> {
        one!(self, Host, id)
    }

    /// All objects of these kinds as they were at one moment, in no order.
    ///
    /// # Errors
    /// [`NotShared`]. [`NotShared::Changing`]: the service made changes during each of some attempts.
    pub fn records(&self, kinds: &[Kind]) -> Result<Vec<Record>, NotShared> {
        let mut services: Vec<Kind> =
            kinds.iter().flat_map(|kind| kind.needs()).chain(kinds).copied().collect();
        services.sort();
        services.dedup_by_key(|kind| kind.service());
        let mut changing = NotShared::Changing(services.first().map_or("", |kind| kind.service()));
        for _ in 0..WHOLE_ATTEMPTS_MAX {
            let before = self.settled(&services)?;
            match self.records_once(kinds) {
                Ok(records) if before.is_some() && before == self.settled(&services)? => return Ok(records),
                Ok(_) => {}
                Err(why @ NotShared::Changing(_)) => changing = why,
                Err(why) => return Err(why),
            }
            std::thread::yield_now();
        }
        Err(changing)
    }

    /// The versions of these tables, if no changes are being made in one of them.
    fn settled(&self, of: &[Kind]) -> Result<Option<Vec<Version>>, NotShared> {
        let versions = of.iter().map(|kind| self.table(*kind).map(SharedTable::version));
        let versions = versions.collect::<Result<Vec<_>, _>>()?;
        Ok(Some(versions).filter(|all| all.iter().all(|it| it.version.is_multiple_of(2))))
    }

    fn records_once(&self, kinds: &[Kind]) -> Result<Vec<Record>, NotShared> {
        let mut services: Vec<Kind> = kinds.to_vec();
        services.sort();
        services.dedup_by_key(|kind| kind.service());
        let (mut records, mut key, mut value) = (Vec::new(), Vec::new(), Vec::new());
        for of in services {
            let (service, table) = (of.service(), self.table(of)?);
            if table.table.is_full() {
                return Err(NotShared::Full(service));
            }
            for place in 0..table.table.places() {
                let found = table.table.at(place, &mut key, &mut value);
                if !found.map_err(|why| unread(service, why))? || !is_of(&key, kinds) {
                    continue;
                }
                let record = read(service, &value)?;
                let is = record.object.key();
                if is.to_string().as_bytes() != key {
                    return Err(NotShared::Damaged(service, format!("another key has the object {is}")));
                }
                // Many places may lead to one record, if the service is malicious.
                if records.len() >= OBJECTS_MAX {
                    return Err(NotShared::Damaged(service, "it has too many records".to_owned()));
                }
                if self.is_visible(&record.object)? {
                    records.push(record);
                }
            }
        }
        Ok(records)
    }

    /// All objects of these kinds, as they were at one moment, as a snapshot with its indices. It is a copy of this app's own.
    ///
    /// # Errors
    /// As [`SharedView::records`].
    pub fn snapshot(&self, kinds: &[Kind]) -> Result<Snapshot, NotShared> {
        let kinds = crate::view_follower::with_needs(kinds);
        let mut tables = Tables::new();
        tables.replace(&kinds, self.records(&kinds)?);
        Ok(tables.snapshot())
    }
}

impl SharedTable {
    fn version(&self) -> Version {
        Version { table: self.number, version: self.table.version() }
    }
}

/// Whether the text of a key is of one of these kinds.
fn is_of(key: &[u8], kinds: &[Kind]) -> bool {
    let word = key.split(|byte| *byte == b'/').next().unwrap_or_default();
    kinds.iter().any(|kind| kind.word().as_bytes() == word)
}

fn read(service: &'static str, value: &[u8]) -> Result<Record, NotShared> {
    Record::from_bytes(value).map_err(|why| NotShared::Damaged(service, why))
}

fn unread(service: &'static str, why: Unread) -> NotShared {
    match why {
        Unread::Changing => NotShared::Changing(service),
        Unread::Damaged => NotShared::Damaged(service, "its table contradicts itself".to_owned()),
    }
}

#[cfg(test)]
mod tests;
