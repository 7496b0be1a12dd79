//! The packages of the running apps, in the kernel process: for the operator, and to record a loss of trust.
//!
//! In: the statuses of apps from the monitor. Out: views for the operator, and the loss of trust in the state folder. The
//! monitor decides which app runs in which zone.

use std::collections::BTreeSet;

use monitor_channel::AppStatus;
use package::manifest::AppName;
use package::moment::Moment;
use package::state::{State, StateError};

use config::Packages;
use operator::contract::PackageView;

/// The packages of this node, and losses of trust that are not stored yet.
#[derive(Debug)]
pub struct RunningPackages {
    packages: Packages,
    noted: BTreeSet<String>,
    /// Losses of trust that could not be stored yet: at most one for each app.
    waiting: Vec<(String, Moment, String)>,
}

impl RunningPackages {
    /// The packages in a configuration.
    pub fn new(packages: Packages) -> RunningPackages {
        for (app, installed) in &packages.apps {
            if let Some(why) = &installed.demoted {
                tracing::warn!("app {app} runs in a process zone: it {why}");
            }
        }
        RunningPackages { packages, noted: BTreeSet::new(), waiting: Vec::new() }
    }

    /// An app was added or reinstalled: updates its package.
    pub fn add(&mut self, app: &str, about: serde_json::Value) {
        match serde_json::from_value(about) {
            // It has no package, or no longer has one.
            Ok(None) => drop(self.packages.apps.remove(app)),
            Ok(Some(installed)) => drop(self.packages.apps.insert(app.to_owned(), installed)),
            Err(error) => {
                tracing::error!("app {app}: the description of its package cannot be read: {error}")
            }
        }
        self.noted.remove(app);
    }

    /// The operator's view of an app's package.
    pub fn view(&self, app: &str) -> Option<PackageView> {
        let installed = self.packages.apps.get(app)?;
        Some(PackageView {
            version: installed.version.clone(),
            digest: installed.digest.to_string(),
            signed: installed.signed.clone(),
            demoted: installed.demoted.clone(),
        })
    }

    /// Stores permanently which apps crashed while they were trusted.
    pub fn on_apps(&mut self, apps: &[AppStatus]) {
        for status in apps {
            let Some(demoted) = &status.demoted else { continue };
            if self.packages.apps.contains_key(&status.app) && self.noted.insert(status.app.clone()) {
                let time = Moment::from_unix_s(demoted.unix_ms / 1000);
                self.waiting.push((status.app.clone(), time, demoted.reason.clone()));
            }
        }
        self.write_down();
    }

    /// Retries failed writes. Call it regularly.
    pub fn write_down(&mut self) {
        let Some(state) = self.packages.state.clone().map(State::at) else { return };
        self.waiting.retain(|(app, time, reason)| match note(&state, app, *time, reason) {
            Ok(()) => {
                tracing::warn!("app {app} lost its trust; to trust it again: `burnet app trust {app}`");
                false
            }
            Err(error) => {
                tracing::debug!("the lost trust of app {app} cannot be stored yet: {error}");
                true
            }
        });
    }
}

fn note(state: &State, app: &str, time: Moment, reason: &str) -> Result<(), StateError> {
    let Ok(name) = AppName::try_from(app.to_owned()) else { return Ok(()) };
    let lock = state.lock()?;
    // The app was removed, or trusted again since: there is nothing to withdraw.
    let Some(mut record) = state.record(&name)? else { return Ok(()) };
    if record.fell(time, reason) { state.keep_record(&name, &record, &lock) } else { Ok(()) }
}
