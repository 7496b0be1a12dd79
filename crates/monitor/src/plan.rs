//! What a node runs, and the check whether it can be run.
//!
//! In: a [`Plan`], or an app that is added to one. Out: nothing, or a sentence for the operator. Nothing here starts
//! anything.

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;

use ring::Sizes;
use serde_json::Value;
use zone::NotEnforced;

use crate::app::{AppSpec, PlanError, ZoneKind};
use crate::channel::MESSAGE_BYTES_MAX;
use crate::finder::{Find, Reload};
use crate::owners::Owners;
use crate::package_verifier::PackageChecks;
use crate::protocol::{PORT_FDS, WORKERS_MAX};
use crate::safe_mode::SafeModePlan;
use crate::timing::Timing;

/// Descriptors that a zone needs beside those of its ports: standard streams, the monitor's socket, and a few for the
/// loader and the app's own poll.
const ZONE_FDS_MIN: usize = 10;

/// Longest configuration of the kernel process, in bytes of JSON: one message, less the words around it.
const CONFIG_BYTES_MAX: usize = MESSAGE_BYTES_MAX - 1_024;

/// What to execute for an app: a path and its arguments.
pub type ZoneProgram = dyn Fn(&AppSpec, &ZoneSetup) -> Vec<OsString>;

/// What the monitor has made ready for a zone.
#[derive(Debug, Default)]
pub struct ZoneSetup {
    /// The folders of its control groups, for its launcher to join.
    pub cgroups: Vec<PathBuf>,
    /// What they do not keep.
    pub gaps: Vec<NotEnforced>,
    /// Folders that other apps may write.
    pub others_write: Vec<PathBuf>,
}

/// The programs that the monitor starts, each as its path and arguments.
pub struct Programs {
    /// The kernel process. It finds its socket on standard input.
    pub kernel: Vec<OsString>,
    /// The process of an app, which finds its socket on standard input too.
    pub zone: Box<ZoneProgram>,
}

impl fmt::Debug for Programs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Programs").field("kernel", &self.kernel).finish_non_exhaustive()
    }
}

/// What a node runs.
#[derive(Debug)]
pub struct Plan {
    /// The apps, in the order in which they are started.
    pub apps: Vec<AppSpec>,
    /// Workers of the kernel process, so ports of each zone: 1 to [`WORKERS_MAX`](crate::protocol::WORKERS_MAX).
    pub workers: u16,
    /// The sizes of each port.
    pub port: Sizes,
    /// What the kernel process is configured with; the monitor does not look into it.
    pub config: Value,
    /// What to start.
    pub programs: Programs,
    /// The monitor's policy.
    pub timing: Timing,
    /// What the operator wants of safe mode.
    pub safe_mode: SafeModePlan,
    /// The folder in which incidents and what apps print are kept ([`crate::records`]); without it they are not.
    pub records: Option<PathBuf>,
    /// Where an app is looked up that the operator adds while the node runs; without it none is added.
    pub find: Option<Find>,
    /// Reloads the configuration. Without it, the node keeps its first configuration.
    pub reload: Option<Reload>,
    /// Whose the groups and meters of switches were when the node ended; kept in the folder of records from now on.
    pub owners: Owners,
    /// What knows the packages of apps; without it no app that comes from one is started.
    pub packages: Option<PackageChecks>,
}

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
    let needed = usize::from(workers) * PORT_FDS + app.sandbox.net.listen.len() + ZONE_FDS_MIN;
    let limit = app.limits.open_files;
    if app.kind == ZoneKind::Trusted || limit as usize >= needed {
        return Ok(());
    }
    let more = format!("needs {needed} with {workers} workers; raise its open_files");
    Err(PlanError(format!("the app {} may open {limit} files, but {more}", app.name)))
}
