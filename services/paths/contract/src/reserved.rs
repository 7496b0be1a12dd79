//! What intents reserve on links, as a stream tells it.
//!
//! In: typed values, or the bytes of entries. Out: the other of the two. The key of an entry is a link, or [`RESERVED_STATE_KEY`].

use serde::{Deserialize, Serialize};

/// The key of the entry that says how far the service is. Its value is a [`ReservedState`].
pub const RESERVED_STATE_KEY: &str = "state";

/// The value of a link: one direction. A link without an entry has no reservation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reserved {
    /// The sum of what intents reserve, in kbit/s. An intent counts once on a link, however many of its paths use it.
    pub kbps: u64,
}

/// How far the service is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReservedState {
    /// All intents of the store have their paths. After a start of the service, reservations of earlier intents are missing until then.
    pub complete: bool,
}
