//! What each app of a node is granted and who has said so, a line each in the log, before any of them starts.
//!
//! In: the configuration. Out: lines. It grants nothing: whoever read the manifests did.

use monitor::AppRole;

use config::{AppGrant, Config, GrantedBy};

/// A line for each app, and one for all of which nobody has said what they may do.
pub(super) fn say(config: &Config) {
    let mut all = Vec::new();
    for app in config.apps.iter().filter(|app| app.role == AppRole::App) {
        // What cannot be read is refused by the kernel, which grants nothing.
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
            "--grant-all: {} may hear and send every packet, write rules and change ports on every switch, and talk to all apps; for a \
             laptop, never for a network of others",
            all.join(", ")
        );
    }
}
