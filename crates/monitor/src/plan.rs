//! What a node runs, and the check whether it can be run.
//!
//! In: a [`Plan`], or an app that is added to one. Out: nothing, or a sentence for the operator. Nothing here starts
//! anything.

use std::ffi::OsString;
use std::fmt;
use std::os::fd::OwnedFd;
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

/// Descriptors that a zone needs in addition to its ports: standard streams, the monitor's socket, and a few for the
/// loader and the app's own poll.
const ZONE_FDS_MIN: usize = 10;

/// The longest configuration of the kernel process, in bytes of JSON: one message, without its other fields.
const CONFIG_BYTES_MAX: usize = MESSAGE_BYTES_MAX - 1_024;

/// The program of an app: a path and its arguments.
pub type ZoneProgram = dyn Fn(&AppSpec, &ZoneSetup) -> Vec<OsString>;

/// The monitor's preparations for a zone.
#[derive(Debug, Default)]
pub struct ZoneSetup {
    /// The folders of its control groups, for its launcher to join.
    pub cgroups: Vec<PathBuf>,
    /// The limits that they do not enforce.
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
    /// The configuration of the kernel process; the monitor does not read it.
    pub config: Value,
    /// The programs to start.
    pub programs: Programs,
    /// The monitor's policy.
    pub timing: Timing,
    /// The operator's settings for safe mode.
    pub safe_mode: SafeModePlan,
    /// The folder for incidents and the output of apps ([`crate::records`]); without it, they are not stored.
    pub records: Option<PathBuf>,
    /// Looks up apps that the operator adds while the node runs; without it, no app can be added.
    pub find: Option<Find>,
    /// Reloads the configuration. Without it, the node keeps its first configuration.
    pub reload: Option<Reload>,
    /// Each byte in it says that the network has changed, so that slices are to be judged again. Without it, they never are.
    pub network_changes: Option<OwnedFd>,
    /// The owners of groups and meters when the node last ended; stored in the folder of records from now on.
    pub owners: Owners,
    /// Verifies the packages of apps; without it, no app from a package starts.
    pub packages: Option<PackageChecks>,
}

/// Refuses a plan that cannot be run.
pub(crate) fn check_plan(plan: &Plan) -> Result<(), PlanError> {
    if plan.workers == 0 || plan.workers > WORKERS_MAX {
        return Err(PlanError(format!("{} workers are not possible; use 1 to {WORKERS_MAX}", plan.workers)));
    }
    check_config(&plan.config)?;
    plan.apps.iter().try_for_each(|app| check_open_files(app, plan.workers))
}

/// Refuses a configuration that is too long for the kernel process, or an app that could not run on a node with this
/// many workers.
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

/// Refuses an app whose limit of open files is too low for its ports.
pub(crate) fn check_open_files(app: &AppSpec, workers: u16) -> Result<(), PlanError> {
    let needed = usize::from(workers) * PORT_FDS + app.sandbox.net.listen.len() + ZONE_FDS_MIN;
    // A region's descriptor is closed when it is mapped, so ZONE_FDS_MIN has room for it.
    let limit = app.limits.open_files;
    if app.kind == ZoneKind::Trusted || limit as usize >= needed {
        return Ok(());
    }
    let more = format!("needs {needed} with {workers} workers; raise its open_files");
    Err(PlanError(format!("the app {} may open {limit} files, but {more}", app.name)))
}
