//! Checks whether a plan for a node can be run.
//!
//! In: a [`Plan`], or an app that is added to one. Out: nothing, or a sentence for the operator. Nothing here starts
//! anything.

use crate::app::{AppSpec, PlanError, ZoneKind};
use crate::channel::MESSAGE_BYTES_MAX;
use crate::protocol::{PORT_FDS, WORKERS_MAX};
use crate::run::Plan;
use serde_json::Value;

/// Descriptors that a zone needs beside those of its ports: standard streams, the monitor's socket, and a few for the
/// loader and the app's own poll.
const ZONE_FDS_MIN: usize = 10;

/// Longest configuration of the kernel process, in bytes of JSON: one message, less the words around it.
const CONFIG_BYTES_MAX: usize = MESSAGE_BYTES_MAX - 1_024;

/// Refuses what cannot be run.
pub(crate) fn check_plan(plan: &Plan) -> Result<(), PlanError> {
    if plan.workers == 0 || plan.workers > WORKERS_MAX {
        return Err(PlanError(format!("{} workers are not possible; use 1 to {WORKERS_MAX}", plan.workers)));
    }
    check_config(&plan.config)?;
    plan.apps.iter().try_for_each(|app| check_open_files(app, plan.workers))
}

/// Refuses a configuration that cannot be handed to the kernel process, or an app of it that could not be run, while a node of so many workers runs.
///
/// # Errors
/// [`PlanError`], one sentence for the operator.
pub fn check_reload(apps: &[AppSpec], config: &Value, workers: u16) -> Result<(), PlanError> {
    check_config(config)?;
    apps.iter().try_for_each(|app| check_open_files(app, workers))
}

fn check_config(config: &Value) -> Result<(), PlanError> {
    let bytes = serde_json::to_vec(config).map_or(usize::MAX, |json| json.len());
    if bytes > CONFIG_BYTES_MAX {
        let why = format!("the configuration has {bytes} bytes; the limit is {CONFIG_BYTES_MAX}");
        return Err(PlanError(why));
    }
    Ok(())
}

/// Refuses an app that could not even hold its ports.
pub(crate) fn check_open_files(app: &AppSpec, workers: u16) -> Result<(), PlanError> {
    let needed = usize::from(workers) * PORT_FDS + ZONE_FDS_MIN;
    let limit = app.limits.open_files;
    if app.kind == ZoneKind::Trusted || limit as usize >= needed {
        return Ok(());
    }
    let more = format!("needs {needed} with {workers} workers; raise its open_files");
    Err(PlanError(format!("the app {} may open {limit} files, but {more}", app.name)))
}
