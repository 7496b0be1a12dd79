//! Logs the grant of each app and where it comes from, one line each, before any app starts.
//!
//! In: the configuration. Out: lines. It grants nothing: the code that reads the manifests does.

use monitor::AppRole;

use config::{AppGrant, Config, GrantedBy};

/// Logs a line for each app, and one line for all apps without a grant from any source.
pub(super) fn say(config: &Config) {
    let mut all = Vec::new();
    for app in config.apps.iter().filter(|app| app.role == AppRole::App) {
        // If a grant cannot be read, the kernel refuses it and grants nothing.
        let grant = AppGrant::read(app.grant.clone()).unwrap_or_default();
        match config.granted_by.get(&app.name) {
            None => {}
            Some(GrantedBy::GrantAll) => all.push(app.name.as_str()),
            Some(by) => {
                tracing::info!("the app {} is granted, by {by}: {}", app.name, grant.summary(&app.sandbox));
            }
        }
    }
    if !all.is_empty() {
        tracing::warn!(
            "--grant-all: {} may receive and send every packet, write rules and change ports on every switch, and communicate with all apps; use it on a laptop only, never in a production network",
            all.join(", ")
        );
    }
}
