//! What the service `audit` declares: its capability, as data for the node.
//!
//! In: nothing. Out: constants.

use crate::SERVICE;
use contract::{Capability, Service, Takes};
use std::borrow::Cow::Borrowed;

/// The capability to read the audit log.
pub const READ: &str = "audit.read";

/// The declaration. The node lists it in its table of services.
pub const DECLARATION: Service = Service {
    name: Borrowed(SERVICE),
    capabilities: Borrowed(&[Capability {
        name: Borrowed(READ),
        takes: Takes::Flag,
        permits: Borrowed("read the audit log"),
        permits_only: None,
        danger: None,
    }]),
    quotas: Borrowed(&[]),
    why_missing: Some(Borrowed(
        "this node keeps no audit log: set node.audit in burnet.toml to the folder for it",
    )),
};
