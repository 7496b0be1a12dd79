//! What the service `flows` declares: its capabilities, as data for the node.
//!
//! In: nothing. Out: constants. [`crate::Grant`] reads what was granted of them.

use crate::SERVICE;
use contract::{Capability, Service, Takes};
use std::borrow::Cow::Borrowed;

/// The capability to list and follow the tables of rules, groups and meters.
pub const READ: &str = "flows.read";

/// The capability to put sets of rules, groups and meters. A list bounds it: see [`crate::Region`].
pub const WRITE: &str = "flows.write";

/// The declaration. The node lists it in its table of services.
pub const DECLARATION: Service = Service {
    name: Borrowed(SERVICE),
    capabilities: Borrowed(&[
        Capability {
            name: Borrowed(READ),
            takes: Takes::Flag,
            permits: Borrowed("see all wanted rules, groups and meters, and whether the switches have them"),
            permits_only: None,
            danger: None,
        },
        Capability {
            name: Borrowed(WRITE),
            takes: Takes::Names,
            permits: Borrowed("have any rules, groups and meters installed and kept in the switches"),
            permits_only: Some(Borrowed("have rules installed and kept within one of")),
            danger: Some(Borrowed("its rules forward, copy or drop other apps' packets")),
        },
    ]),
    quotas: Borrowed(&[]),
    why_missing: Some(Borrowed(
        "this node does not run the network services: add the table [network] to burnet.toml, or start the node with --network",
    )),
};
