//! What the service `labels` declares: its capabilities, as data for the node.
//!
//! In: nothing. Out: constants. [`crate::Grant`] reads what was granted of them.

use crate::SERVICE;
use contract::{Capability, Service, Takes};
use std::borrow::Cow::Borrowed;

/// The capability of a slice: to report its own flows, and to be told its own labels.
pub const OWN: &str = "labels.own";

/// The capability to read flows and labels of all slices.
pub const READ: &str = "labels.read";

/// The capability to say which slices there are, and what they are promised.
pub const WRITE: &str = "labels.write";

/// The declaration. The node lists it in its table of services.
pub const DECLARATION: Service = Service {
    name: Borrowed(SERVICE),
    capabilities: Borrowed(&[
        Capability {
            name: Borrowed(OWN),
            takes: Takes::Names,
            permits: Borrowed("report the flows of all slices, and follow their labels"),
            permits_only: Some(Borrowed("report the flows and follow the labels of the slices")),
            danger: Some(Borrowed("flows that are not there take bandwidth from the labels of others")),
        },
        Capability {
            name: Borrowed(READ),
            takes: Takes::Flag,
            permits: Borrowed("read the flows and labels of all slices"),
            permits_only: None,
            danger: Some(Borrowed("it shows to one tenant what others do")),
        },
        Capability {
            name: Borrowed(WRITE),
            takes: Takes::Flag,
            permits: Borrowed("say what slices are promised"),
            permits_only: None,
            danger: Some(Borrowed("labels of all slices follow from these promises")),
        },
    ]),
    quotas: Borrowed(&[]),
    why_missing: Some(Borrowed(
        "this node does not run the service of labels: add [network.labels] with slices to burnet.toml",
    )),
};
