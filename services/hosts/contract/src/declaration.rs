//! What the service `hosts` declares: its capabilities, as data for the node.
//!
//! In: nothing. Out: constants. [`crate::Grant`] reads what was granted of them.

use crate::SERVICE;
use contract::{Capability, Service, Takes};
use std::borrow::Cow::Borrowed;

/// The capability to read and follow the table of hosts.
pub const READ: &str = "host.read";

/// The capability to configure hosts, to annotate them and to remove them.
pub const WRITE: &str = "host.write";

/// The declaration. The node lists it in its table of services.
pub const DECLARATION: Service = Service {
    name: Borrowed(SERVICE),
    capabilities: Borrowed(&[
        Capability {
            name: Borrowed(READ),
            takes: Takes::Flag,
            permits: Borrowed("read hosts, and follow their changes"),
            permits_only: None,
            danger: None,
        },
        Capability {
            name: Borrowed(WRITE),
            takes: Takes::Flag,
            permits: Borrowed("configure, annotate and remove hosts"),
            permits_only: None,
            danger: Some(Borrowed("an app that places a host elsewhere draws its traffic there")),
        },
    ]),
    quotas: Borrowed(&[]),
    why_missing: Some(Borrowed(
        "this node does not run the services of the network: add [network] to burnet.toml, or start the node with --network",
    )),
};
