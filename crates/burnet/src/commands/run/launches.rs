//! What an app's process needs in addition to what the monitor knows: its user, its interpreter, its package.
//!
//! ```text
//!   Config ──> Launches ──> one Launch per app
//!   an app installed later ──> Config::load again ──> another Launch, and what the monitor must run
//! ```
//!
//! A restarted app gets the same values until the configuration is read again. This module starts nothing.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use monitor::{AppSource, AppSpec, Find, FoundApp};

use super::state_folder::{give_numbers, users_of};
use crate::apps;
use crate::cli::{CommandError, RunArgs};
use crate::interpreter::Interpreter;
use config::{AppArgument, Config, Environment, Installed};

/// The launch data of one app.
#[derive(Clone, Debug, Default)]
pub(super) struct Launch {
    pub(super) user: Option<u32>,
    pub(super) interpreter: Option<Interpreter>,
    pub(super) package: Option<Installed>,
}

/// The launch data of all apps, for the code that starts apps and the code that adds one.
#[derive(Clone, Debug)]
pub(super) struct Launches(Arc<Mutex<BTreeMap<String, Launch>>>);

impl Launches {
    /// The launch data for the apps of a configuration, with their user ids.
    pub(super) fn of(config: &Config, users: &BTreeMap<String, u32>) -> Result<Launches, CommandError> {
        let launches = Launches(Arc::default());
        for app in &config.apps {
            launches.learn(config, app, users.get(&app.name).copied()).map_err(CommandError::Usage)?;
        }
        Ok(launches)
    }

    pub(super) fn of_app(&self, name: &str) -> Launch {
        self.lock().get(name).cloned().unwrap_or_default()
    }

    /// Updates all apps after the configuration was read again. If one app is invalid, changes none.
    pub(super) fn learn_all(
        &self,
        config: &Config,
        users: &BTreeMap<String, u32>,
    ) -> Result<(), CommandError> {
        let read = Launches::of(config, users)?;
        let read = std::mem::take(&mut *read.lock());
        self.lock().extend(read);
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Launch>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn learn(&self, config: &Config, app: &AppSpec, user: Option<u32>) -> Result<(), String> {
        let interpreter = match &app.source {
            AppSource::Python(file) => Some(interpreter_of(config, app, file)?),
            _ => None,
        };
        let package = config.packages.apps.get(&app.name).cloned();
        self.lock().insert(app.name.clone(), Launch { user, interpreter, package });
        Ok(())
    }

    /// Returns the function with which the monitor finds an app that was installed later.
    pub(super) fn find(self, args: &RunArgs, around: Environment) -> Find {
        let args = args.clone();
        Find(Arc::new(move |name| self.find_one(name, &args, &around)))
    }

    /// An app with its present installation, grants and settings. It reads the configuration again, with that app in
    /// it.
    pub(super) fn find_one(
        &self,
        name: &str,
        args: &RunArgs,
        around: &Environment,
    ) -> Result<FoundApp, String> {
        let mut args = args.clone();
        let argument: AppArgument = name.parse().map_err(|error| format!("{error}"))?;
        if !args.apps.iter().any(|app| app.which.name() == name) {
            args.apps.push(argument);
        }
        let loaded = Config::load_for(Some(name), args, around, &apps::WITHIN);
        let mut config = loaded.map_err(|error| error.to_string())?;
        give_numbers(&mut config).map_err(|error| error.to_string())?;
        let installed = config.packages.apps.get(name).ok_or("it is not installed as a package")?;
        let about = serde_json::to_value(installed).map_err(|error| error.to_string())?;
        let spec = config.apps.iter().find(|app| app.name == name).ok_or("it is no app")?.clone();
        let users = users_of(&config).map_err(|error| error.to_string())?;
        self.learn(&config, &spec, users.get(name).copied())?;
        Ok(FoundApp { spec, about })
    }
}

fn interpreter_of(config: &Config, app: &AppSpec, file: &Path) -> Result<Interpreter, String> {
    let said = config.python.interpreter.as_deref();
    let from_a_package = config.packages.apps.contains_key(&app.name);
    let path = std::env::var_os("PATH").filter(|_| !from_a_package).unwrap_or_default();
    let of_the_app = |trouble| format!("the app {}: {trouble}", app.name);
    let interpreter = Interpreter::find(said, &path).map_err(of_the_app)?;
    let mut sandbox = app.sandbox.clone();
    sandbox.fs.read.extend(interpreter.files_read(file));
    match sandbox.flaw() {
        Some(flaw) => Err(of_the_app(format!("what its interpreter reads: {flaw}"))),
        None => Ok(interpreter),
    }
}
