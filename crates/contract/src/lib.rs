//! What a service declares as data, and the part of a caller's grant that it receives.
//!
//! ```text
//!   contract of a service: Service ──> manifests, burnet.toml, app install ──> Part ──kernel, as bytes──> Part :service
//! ```
//!
//! In: nothing. Out: types that every service shares. The kernel passes a part on and does not read it. This crate
//! grants nothing, and knows no service.

mod address;
mod part;
mod question;

pub use address::{NAME_BYTES_MAX, ServiceAddress};
pub use part::{Part, Permitted, not_held};
pub use question::{from_json, to_json};

use std::borrow::Cow;

/// A text that is compiled in, or that was read from a manifest.
pub type Text = Cow<'static, str>;

/// What a service declares.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Service {
    /// The name by which apps call it. It is also the name of the app that is the service.
    pub name: Text,
    /// Its capabilities. Each name begins with the service's name and a dot.
    pub capabilities: Cow<'static, [Capability]>,
    /// Its quotas. Each name begins with the service's name.
    pub quotas: Cow<'static, [Quota]>,
    /// Why a node may not run this service, and how the operator enables it, as a sentence for its callers.
    pub why_missing: Option<Text>,
}

impl Service {
    /// A service that declares nothing.
    pub const fn without_capabilities(name: &'static str) -> Service {
        Service {
            name: Cow::Borrowed(name),
            capabilities: Cow::Borrowed(&[]),
            quotas: Cow::Borrowed(&[]),
            why_missing: None,
        }
    }
}

/// The name of the service that declares a capability or quota with this name, unless the node has it from elsewhere.
pub fn service_of(name: &str) -> &str {
    name.split_once('.').map_or(name, |(service, _)| service)
}

/// A capability of a service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capability {
    /// Its name in manifests, such as `store.read`.
    pub name: Text,
    /// The values that a manifest may give it, for example a list of prefixes.
    pub takes: Takes,
    /// What it permits without bounds, as a verb phrase for `app install`.
    pub permits: Text,
    /// What it permits within a list. The list follows this phrase. `None` if it takes no list.
    pub permits_only: Option<Text>,
    /// Why it is dangerous, if it is.
    pub danger: Option<Text>,
}

/// What a capability takes, in addition to `true`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takes {
    /// Nothing else.
    Flag,
    /// A list of names. Each permits itself.
    Names,
    /// A list of prefixes. Each permits all texts that begin with it.
    Prefixes,
}

/// A number that limits what an app may take of a service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quota {
    /// Its name in `[quotas]`.
    pub name: Text,
    /// What it counts, such as "bytes in the store".
    pub counts: Text,
    /// The hard limit if neither the app nor the operator writes one. `None` means no limit.
    pub default: Option<u64>,
    /// The capability of the apps whose use the service reports to the monitor. `None` if it reports nothing.
    pub reported_for: Option<Text>,
}
