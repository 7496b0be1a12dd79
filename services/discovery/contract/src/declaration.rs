//! What the service `discovery` declares: its capabilities, as data for the node.
//!
//! In: nothing. Out: constants. [`crate::Grant`] reads what was granted of them.

use crate::SERVICE;
use contract::{Capability, Service, Takes};
use std::borrow::Cow::Borrowed;

/// The capability to read and follow switches, ports and links. The kernel also requires it for events about switches and ports.
pub const READ: &str = "view.read";

/// The capability to annotate them, and to remove what is down.
pub const ANNOTATE: &str = "view.annotate";

/// The declaration. The node lists it in its table of services.
pub const DECLARATION: Service = Service {
    name: Borrowed(SERVICE),
    capabilities: Borrowed(&[
        Capability {
            name: Borrowed(READ),
            takes: Takes::Flag,
            permits: Borrowed("read switches, ports and links, and follow their changes"),
            permits_only: None,
            danger: None,
        },
        Capability {
            name: Borrowed(ANNOTATE),
            takes: Takes::Flag,
            permits: Borrowed("annotate switches, ports and links, and remove those that are down"),
            permits_only: None,
            danger: None,
        },
    ]),
    quotas: Borrowed(&[]),
    why_missing: Some(Borrowed(
        "this node does not run the services of the network: add [network] to burnet.toml, or start the node with --network",
    )),
};
