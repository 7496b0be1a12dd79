//! A binary for the tests: apps with their real manifests, and no services.

use crate::{BuiltIn, BuiltInApp};

/// Its apps.
pub(crate) const APPS: &[BuiltInApp] = &[
    app("firewall", include_str!("../../../apps/firewall/app.toml")),
    app("hub", include_str!("../../../apps/hub/app.toml")),
    app("learning-switch", include_str!("../../../apps/learning-switch/app.toml")),
];

/// All of it.
pub(crate) const WITHIN: BuiltIn = BuiltIn { apps: APPS, services: |_| Vec::new() };

const fn app(name: &'static str, manifest: &'static str) -> BuiltInApp {
    BuiltInApp { name, manifest }
}
