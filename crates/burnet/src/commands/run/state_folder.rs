//! What a node stores in its state folder for its apps before they start: zone numbers, user ids, and the folder of
//! the store.
//!
//! In: the configuration. Out: the same with its numbers, the user ids, or a configuration without what cannot be
//! stored. It starts no app.

use super::numbering;
use crate::backup::exchange;
use crate::cli::{CommandError, RunArgs};
use crate::slice_choices;
use crate::slice_pauses;
use crate::slices;
use config::{Config, ConfigFile, Environment, users};
use monitor::Duty;
use monitor::owners::Owners;
use package::state::State;
use rustix::fs::Access;
use rustix::process::geteuid;
use std::collections::BTreeMap;
use std::fs::{DirBuilder, File};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::PathBuf;

/// What the start of a node has found of a restore.
#[derive(Debug, Default)]
pub(super) struct Finished {
    /// An interrupted restore was finished. Then the configuration must be read again, because the state folder has other apps.
    pub(super) was_interrupted: bool,
    /// The lock of this state folder, for as long as the node runs.
    held: Option<(PathBuf, File)>,
}

/// Finishes a restore that a crash interrupted, and keeps the lock, so that no other restore begins before the node runs.
pub(super) fn finish_restore(
    args: &RunArgs,
    around: &Environment,
    config: Option<&Config>,
) -> Result<Finished, CommandError> {
    let state = match config {
        Some(config) => config.node.state.clone(),
        // The apps that it names may be in the restore. The file itself can still name the folder.
        None => {
            let file =
                args.config.as_deref().and_then(|file| ConfigFile::read(file).ok()).unwrap_or_default();
            around.state(args.state.as_deref(), file.node.state.as_deref()).ok()
        }
    };
    let Some(state) = state.filter(|state| state.is_dir()) else {
        return Ok(Finished::default());
    };
    let held = exchange::hold(&state);
    let is_busy = held.as_ref().is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock);
    if is_busy && exchange::is_under_way(&state) {
        return Err(CommandError::Usage(format!(
            "`burnet restore` is changing the state folder {}: start the node when it has ended",
            state.display()
        )));
    }
    let finished = exchange::finish(&state).map_err(|error| {
        CommandError::Usage(format!(
            "a restore of {} was interrupted and cannot be finished: {error}; fix the cause, and start the node again",
            state.display()
        ))
    })?;
    Ok(Finished { was_interrupted: finished.is_some(), held: held.ok().map(|file| (state, file)) })
}

/// Keeps `burnet restore` away from the state folder while the node runs. A folder that cannot be locked is no reason not to run.
pub(super) fn hold(config: &Config, finished: Finished) -> Option<File> {
    let state = config.node.state.as_ref()?;
    if let Some((_, file)) = finished.held.filter(|(folder, _)| folder == state) {
        return Some(file);
    }
    let held = exchange::hold(state);
    held.inspect_err(|error| {
        tracing::warn!("the state folder {} cannot be locked against a restore: {error}", state.display());
    })
    .ok()
}

/// Gives the store's folder to its service. Only root can do that, and only if root runs the node does the service
/// have its own user.
pub(super) fn make_store(config: &Config, users: &BTreeMap<String, u32>) -> Result<(), CommandError> {
    let Some(service) = config.apps.iter().find(|app| app.duty == Some(Duty::ReportStoredBytes)) else {
        return Ok(());
    };
    let cannot = |error: &dyn std::fmt::Display| {
        CommandError::Usage(format!(
            "the store cannot be kept ({error}): name another state folder with --state DIR"
        ))
    };
    let settings: store::StoreSettings =
        serde_json::from_value(service.settings.clone().into()).map_err(|error| cannot(&error))?;
    store::folder::make(&settings.folder).map_err(|error| cannot(&error))?;
    match users.get(&service.name).filter(|_| geteuid().is_root()) {
        Some(user) => store::folder::give_to(&settings.folder, *user).map_err(|error| cannot(&error)),
        None => Ok(()),
    }
}

/// Makes the folder of each slice, in which it keeps what its tenant has made, and gives it to the slice's user.
pub(super) fn make_journals(config: &Config, users: &BTreeMap<String, u32>) -> Result<(), CommandError> {
    for app in &config.apps {
        let Some(folder) = slices::journals_of(app) else { continue };
        let cannot = |error: std::io::Error| {
            CommandError::Usage(format!(
                "the rules of {} cannot be kept in {} ({error}): name another state folder with --state DIR",
                app.name,
                folder.display()
            ))
        };
        // The folder above is to be passed, but not to be read, by the users of slices.
        let above = folder.parent().map(|above| DirBuilder::new().mode(0o711).recursive(true).create(above));
        above.transpose().map_err(cannot)?;
        store::folder::make(&folder).map_err(cannot)?;
        let Some(user) = users.get(&app.name).filter(|_| geteuid().is_root()) else { continue };
        // A slice that runs changes its files meanwhile.
        if folder.metadata().map_err(cannot)?.uid() != *user {
            store::folder::give_to(&folder, *user).map_err(cannot)?;
        }
    }
    Ok(())
}

/// Keeps the links that were chosen for slices, so that a later start or reload does not choose others.
pub(super) fn keep_choices(config: &Config) {
    let Some(state) = config.node.state.as_deref() else { return };
    slice_choices::keep(state, &slices::chosen_links(config)).unwrap_or_else(|error| {
        tracing::warn!("the links that were chosen for slices cannot be stored, so a later reload may choose others: {error}");
    });
}

/// Forgets that slices are paused which the node does not have any more.
pub(super) fn forget_pauses(config: &Config) {
    let Some(state) = config.node.state.as_deref() else { return };
    let is_known = |slice: &str| config.slices.iter().any(|it| it.name == slice);
    slice_pauses::forget_others(state, is_known).unwrap_or_else(|error| {
        tracing::warn!("the state folder cannot forget that a removed slice is paused: {error}");
    });
}

/// Gives each app its zone number, which identifies it in switches. The number is stored and outlives the node.
/// Without a state folder, it is the app's place in the list.
pub(super) fn give_numbers(config: &mut Config) -> Result<Owners, CommandError> {
    do_without_a_folder(config);
    let Some(folder) = &config.node.records else { return Ok(Owners::default()) };
    numbering::give_numbers(folder, &mut config.apps)
}

/// If the operator did not name the state folder and it cannot be used, the node still runs, but stores nothing.
fn do_without_a_folder(config: &mut Config) {
    let node = &mut config.node;
    let default =
        node.state.as_ref().filter(|state| !node.state_is_asked_for && node.records.as_ref() == Some(*state));
    let Some(folder) = default else { return };
    let usable = std::fs::create_dir_all(folder)
        .and_then(|()| Ok(rustix::fs::access(folder, Access::WRITE_OK | Access::EXEC_OK)?));
    if let Err(error) = usable {
        tracing::warn!(
            "the state folder {} cannot be used ({error}): the node cannot store incidents, app logs, app numbers, app users and the audit log; choose another folder with --state DIR",
            folder.display()
        );
        (node.records, node.state, node.audit) = (None, None, None);
        config.apps.retain(|app| !matches!(app.duty, Some(Duty::KeepRecords | Duty::ReportStoredBytes)));
        config.apps.iter_mut().for_each(slices::do_without_journals);
    }
}

/// If root runs the node, gives each app a user id and stores it in the state folder.
pub(super) fn users_of(config: &Config) -> Result<BTreeMap<String, u32>, CommandError> {
    let state = config.node.state.clone().map(State::at);
    let state = state.filter(|state| geteuid().is_root() && state.is_there());
    let kept = state.as_ref().map_or_else(|| Ok(BTreeMap::new()), State::users);
    let kept = kept.map_err(|error| {
        CommandError::Usage(format!(
            "{error}: correct the file. If you remove it, check who owns the files that apps wrote"
        ))
    })?;
    let names = config.apps.iter().map(|app| app.name.as_str());
    let given = users::of_apps(config.node.app_user_base, &kept, names);
    if let (Some(state), Some(all)) = (state, users::to_keep(&kept, &given)) {
        let done = state.lock().and_then(|lock| state.keep_users(&all, &lock));
        // The next start computes the same ids, unless apps change in between.
        done.unwrap_or_else(|error| tracing::warn!("the user numbers of the apps cannot be stored: {error}"));
    }
    Ok(given)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::apps;
    use std::path::Path;

    fn given(file: &str, around: &Environment) -> Result<Config, CommandError> {
        let args = RunArgs { apps: vec!["hub".parse().unwrap()], ..RunArgs::default() };
        let mut config = Config::merge(
            ConfigFile::parse(file, Path::new("burnet.toml")).unwrap(),
            &args,
            around,
            &apps::ALL,
        )?;
        give_numbers(&mut config)?;
        Ok(config)
    }

    #[test]
    fn a_state_folder_that_cannot_be_made_keeps_no_node_from_running_unless_it_was_named() {
        let nobody = Environment { uid: 1000, home: Some("/proc/nowhere".into()), ..Environment::default() };
        let node = given("", &nobody).unwrap().node;
        assert_eq!((node.records, node.state, node.audit), (None, None, None));
        let named = Environment { burnet_state: Some("/proc/nowhere".into()), ..nobody.clone() };
        let demanded = "[node]\naudit = true";
        for refused in [given("", &named).unwrap_err(), given(demanded, &nobody).unwrap_err()] {
            assert!(
                matches!(&refused, CommandError::Usage(why) if why.contains("/proc/nowhere")),
                "{refused}"
            );
        }
    }
}
