//! What the service `paths` declares: its capabilities, as data for the node.
//!
//! In: nothing. Out: constants. [`crate::Grant`] reads what was granted of them.

use crate::SERVICE;
use contract::{Capability, Service, Takes};
use std::borrow::Cow::Borrowed;

/// The capability to list and follow intents and paths, and to ask for ways.
pub const READ: &str = "intent.read";

/// The capability to add, change and withdraw intents. A list bounds it: see [`crate::Region`].
pub const WRITE: &str = "intent.write";

/// The capability to follow the links of slices. A list bounds it to these slices.
pub const SLICE_LINKS: &str = "slice.links";

/// The declaration. The node lists it in its table of services.
pub const DECLARATION: Service = Service {
    name: Borrowed(SERVICE),
    capabilities: Borrowed(&[
        Capability {
            name: Borrowed(READ),
            takes: Takes::Flag,
            permits: Borrowed("see all intents, and the paths that serve them"),
            permits_only: None,
            danger: None,
        },
        Capability {
            name: Borrowed(WRITE),
            takes: Takes::Names,
            permits: Borrowed("connect any hosts and ports of the network"),
            permits_only: Some(Borrowed("connect hosts and ports for packets within one of")),
            danger: Some(Borrowed("its intents carry other apps' packets elsewhere")),
        },
        Capability {
            name: Borrowed(SLICE_LINKS),
            takes: Takes::Names,
            permits: Borrowed("follow the links of all slices, and the links of the network below them"),
            permits_only: Some(Borrowed("follow the links of the slices")),
            danger: None,
        },
    ]),
    quotas: Borrowed(&[]),
    why_missing: Some(Borrowed(
        "this node does not run the network services: add the table [network] to burnet.toml, or start the node with --network",
    )),
};
