//! What an atomic update changed: which objects became visible, changed or became invisible.
//!
//! In: two states of an object. Out: a notice. A batch, applied to the snapshot before, gives the snapshot after. It holds
//! nothing about objects that stay invisible.

use crate::change::Record;
use crate::kinds::{Key, Kind, Object};
use std::sync::Arc;

/// A change that a reader can see.
#[derive(Clone, Debug, PartialEq)]
pub enum Notice {
    /// The object became visible.
    Visible(Arc<Record>),
    /// The object is visible, and changed.
    Changed {
        /// As it was.
        before: Arc<Record>,
        /// As it is.
        now: Arc<Record>,
    },
    /// The object is no longer visible: it was removed, or something that it needs was.
    Invisible(Arc<Record>),
}

impl Notice {
    /// The notice about an object that was so before, and is so now. `None` if nothing changed.
    pub(crate) fn of(before: Option<Arc<Record>>, now: Option<Arc<Record>>) -> Option<Notice> {
        match (before, now) {
            (None, Some(now)) => Some(Notice::Visible(now)),
            (Some(before), None) => Some(Notice::Invisible(before)),
            (Some(before), Some(now)) if before != now => Some(Notice::Changed { before, now }),
            _ => None,
        }
    }

    /// The object's key.
    pub fn key(&self) -> Key {
        match self {
            Notice::Visible(record) | Notice::Invisible(record) | Notice::Changed { now: record, .. } => {
                record.object.key()
            }
        }
    }

    /// The object's kind.
    pub fn kind(&self) -> Kind {
        self.key().kind()
    }

    /// The object as it was, if it was visible.
    pub fn before(&self) -> Option<&Object> {
        match self {
            Notice::Visible(_) => None,
            Notice::Invisible(record) | Notice::Changed { before: record, .. } => Some(&record.object),
        }
    }

    /// The object as it is, if it is visible.
    pub fn now(&self) -> Option<&Object> {
        match self {
            Notice::Invisible(_) => None,
            Notice::Visible(record) | Notice::Changed { now: record, .. } => Some(&record.object),
        }
    }
}

/// A change that the tables did not take. It is the fault of the service that published it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused {
    /// The key of the change.
    pub key: Key,
    /// The reason.
    pub why: Refusal,
}

/// Why a change was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The change has the key of another object.
    OtherKey,
    /// The tables are full: they hold as many objects as they may.
    Full,
}

/// What one atomic update changed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Batch {
    pub(crate) notices: Vec<Notice>,
    /// The changes that were not taken.
    pub refused: Vec<Refused>,
    /// How many changes were older than what is known, or known already.
    pub late: usize,
}

impl Batch {
    /// Whether a reader can see no difference.
    pub fn is_empty(&self) -> bool {
        self.notices.is_empty()
    }

    /// All notices, at most one for each object. First the objects that became invisible, each before what it needed. Then
    /// the others, each after what it needs.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Notice> + ExactSizeIterator {
        self.notices.iter()
    }

    /// The notices about objects of one kind.
    pub fn of(&self, kind: Kind) -> impl Iterator<Item = &Notice> {
        self.notices.iter().filter(move |notice| notice.kind() == kind)
    }
}
