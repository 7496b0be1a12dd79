//! A built-in set for tests: apps with their real manifests, and no services.

use crate::{BuiltIn, BuiltInApp};

/// The apps of the set.
pub(crate) const APPS: &[BuiltInApp] = &[
    app("firewall", include_str!("../../../apps/firewall/app.toml")),
    app("hub", include_str!("../../../apps/hub/app.toml")),
    app("learning-switch", include_str!("../../../apps/learning-switch/app.toml")),
];

/// The whole set.
pub(crate) const WITHIN: BuiltIn = BuiltIn { apps: APPS, services: |_| Ok(Vec::new()) };

const fn app(name: &'static str, manifest: &'static str) -> BuiltInApp {
    BuiltInApp { name, manifest }
}
