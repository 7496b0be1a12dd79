//! What the service `store` declares: its capabilities and its quota, as data for the node.
//!
//! In: nothing. Out: constants. [`crate::Grant`] reads what was granted of them.

use crate::SERVICE;
use contract::{Capability, Quota, Service, Takes};
use std::borrow::Cow::Borrowed;

/// The capability to read keys.
pub(crate) const READ: &str = "store.read";

/// The capability to write and delete keys.
pub(crate) const WRITE: &str = "store.write";

/// The quota of bytes.
pub(crate) const BYTES: &str = "store_bytes";

/// How many bytes of keys and values an app keeps if the operator says nothing: thousands of small settings.
pub const BYTES_DEFAULT: u32 = 1 << 20;

/// The declaration. The node lists it in its table of services.
pub const DECLARATION: Service = Service {
    name: Borrowed(SERVICE),
    capabilities: Borrowed(&[
        Capability {
            name: Borrowed(READ),
            takes: Takes::Prefixes,
            permits: Borrowed("read every key of the store"),
            permits_only: Some(Borrowed("read the keys of the store that begin with")),
            danger: None,
        },
        Capability {
            name: Borrowed(WRITE),
            takes: Takes::Prefixes,
            permits: Borrowed("write every key of the store"),
            permits_only: Some(Borrowed("write the keys of the store that begin with")),
            danger: None,
        },
    ]),
    quotas: Borrowed(&[Quota {
        name: Borrowed(BYTES),
        counts: Borrowed("bytes in the store"),
        default: Some(BYTES_DEFAULT as u64),
        reported_for: Some(Borrowed(WRITE)),
    }]),
    why_missing: Some(Borrowed(
        "this node has no store: name a state folder (--state DIR, or node.state in burnet.toml) and start the node again",
    )),
};
