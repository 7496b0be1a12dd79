//! `burnet run`, and the two kinds of process that the monitor starts from it: `burnet kernel` and `burnet zone`.
//!
//! It does not decide what runs. The configuration does, and the monitor starts it.

mod applied_slices;
mod audit_folder;
mod baseline;
mod granting;
mod judging;
mod launches;
mod numbering;
mod reload;
mod slice_changes;
mod state_folder;
mod verification;

use self::launches::Launches;
use self::state_folder::{
    finish_restore, give_numbers, hold, keep_choices, make_journals, make_store, users_of,
};

use crate::apps;
use crate::cli::{CommandError, LaunchArgs, RunArgs};
use crate::interpreter::Interpreter;
use crate::services;
use crate::slice_memory;
use audit_contract::Batch;
use audit_folder::AuditFolder;
use config::{Config, Environment, Installed, users};
use monitor::owners::Owners;
use monitor::{AppSource, AppSpec, Plan, Programs, RunError, SafeModePlan, Timing, ZONE_REMARK, ZoneSetup};
use node::{logging, now_unix_ms};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{ExitCode, Stdio};
use zone::launch::{Code, confine, hand_over_streams};
use zone::{Confinement, Limits, NotEnforced, Sandbox};

/// What the monitor passes to an app's process as an argument. The ports and the settings arrive over the socket.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ZoneLaunch {
    limits: Limits,
    sandbox: Sandbox,
    source: AppSource,
    /// The interpreter, for a Python app.
    interpreter: Option<Interpreter>,
    user: Option<u32>,
    /// Its package. Every file of it is verified before each start.
    package: Option<Installed>,
    cgroups: Vec<PathBuf>,
    gaps: Vec<NotEnforced>,
    others_write: Vec<PathBuf>,
}

/// Runs `burnet run`: this process becomes the monitor.
pub fn run(args: &RunArgs) -> Result<ExitCode, CommandError> {
    let around = Environment::of_this_process()?;
    let mut config = Config::load(args, &around, &apps::WITHIN);
    let finished = finish_restore(args, &around, config.as_ref().ok())?;
    if finished.was_interrupted {
        config = Config::load(args, &around, &apps::WITHIN);
    }
    let mut config = config?;
    services::check(&config).map_err(CommandError::Usage)?;
    logging::start(config.node.log);
    for line in config::shared_folders(&config.apps) {
        tracing::warn!("{line}");
    }
    granting::say(&config);
    applied_slices::say(&config);
    let owners = give_numbers(&mut config)?;
    let _held = hold(&config, finished);
    if args.die_with_parent {
        monitor::child::die_with_parent().map_err(|error| {
            CommandError::DidNotWork(format!("the node cannot follow the end of its parent process: {error}"))
        })?;
    }
    let audit_folder = AuditFolder::of(&config)?;
    let users = users_of(&config)?;
    if let Some(audit_folder) = &audit_folder {
        audit_folder.give_to(&users)?;
    }
    make_store(&config, &users)?;
    make_journals(&config, &users)?;
    keep_choices(&config);
    say_losses(&slice_memory::on_start(&mut config, now_unix_ms()));
    let mut plan = Plan { owners, ..plan(config, args, &users)? };
    if args.monolithic {
        baseline::make_monolithic(&mut plan);
    }
    let mut unkept = Batch::default();
    let ended = monitor::run(plan, &mut unkept);
    if let Some(audit_folder) = audit_folder {
        audit_folder.keep(unkept);
    }
    match ended {
        Ok(outcome) => {
            if let Some(message) = outcome.message {
                eprintln!("burnet: {message}");
            }
            Ok(ExitCode::from(outcome.code))
        }
        Err(RunError::Plan(error)) => Err(CommandError::Usage(error.to_string())),
        Err(error) => Err(CommandError::DidNotWork(error.to_string())),
    }
}

/// Slices were changed or removed while the node was down.
fn say_losses(losses: &[(String, slicer::Loss)]) {
    for line in losses.iter().flat_map(|(slice, loss)| slice_changes::lines(slice, loss)) {
        tracing::info!("{line}; the node deletes them as soon as the switch is connected");
    }
}

fn plan(config: Config, args: &RunArgs, users: &BTreeMap<String, u32>) -> Result<Plan, CommandError> {
    let own = std::env::current_exe()
        .map_err(|error| {
            CommandError::DidNotWork(format!("the path of this program cannot be determined: {error}"))
        })?
        .into_os_string();
    let launches = Launches::of(&config, users)?;
    let kernel = vec![own.clone(), OsString::from("kernel")];
    let packages = verification::package_checks(&config, &launches);
    let find = launches.clone().find(args, Environment::of_this_process()?);
    let (judge, network_changes) = judging::begin(&config)
        .map_err(|error| CommandError::DidNotWork(format!("the network cannot be watched: {error}")))?;
    let reload = reload::reload(&config, args, Environment::of_this_process()?, launches.clone(), judge);
    let zone = move |app: &AppSpec, setup: &ZoneSetup| {
        let launch = ZoneLaunch {
            limits: app.limits.clone(),
            sandbox: app.sandbox.clone(),
            source: app.source.clone(),
            interpreter: launches.of_app(&app.name).interpreter,
            user: launches.of_app(&app.name).user,
            package: launches.of_app(&app.name).package,
            cgroups: setup.cgroups.clone(),
            gaps: setup.gaps.clone(),
            others_write: setup.others_write.clone(),
        };
        zone_program(&own, &launch)
    };
    let programs = Programs { kernel, zone: Box::new(zone) };
    let handed_on = serde_json::to_value(&config).map_err(|error| {
        CommandError::DidNotWork(format!("the configuration cannot be passed on: {error}"))
    })?;
    Ok(Plan {
        apps: config.apps,
        workers: config.southbound.workers,
        port: ring::Sizes::default(),
        config: handed_on,
        programs,
        timing: Timing::default(),
        safe_mode: SafeModePlan { apps: config.safe_mode.apps, from_start: config.safe_mode.from_start },
        records: config.node.records,
        find: Some(find),
        reload: Some(reload),
        network_changes,
        packages,
        owners: Owners::default(),
    })
}

fn zone_program(own: &OsString, launch: &ZoneLaunch) -> Vec<OsString> {
    // Numbers and paths. A path that is not UTF-8 cannot get here through the configuration or a JSON command line.
    let launch = serde_json::to_string(launch).unwrap_or_default();
    vec![own.clone(), OsString::from("zone"), OsString::from(launch)]
}

/// Not the name of an app: a process that gets it ends at once, with exit code 2.
const NOBODY: &str = "";

/// Tries to confine a process like an app, for `burnet doctor`. The process ends at once. Returns what this machine
/// does not enforce, or why confinement failed. It creates no control groups.
pub fn try_zone() -> Result<Vec<NotEnforced>, String> {
    let launch = ZoneLaunch {
        limits: Limits::default(),
        sandbox: Sandbox::default(),
        source: AppSource::BuiltIn(NOBODY.to_owned()),
        user: Some(users::BASE),
        package: None,
        interpreter: None,
        cgroups: Vec::new(),
        gaps: Vec::new(),
        others_write: Vec::new(),
    };
    let launch = serde_json::to_string(&launch).map_err(|error| error.to_string())?;
    let own = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut trial = std::process::Command::new(own);
    let output = trial.arg("zone").arg(launch).stdin(Stdio::null()).output();
    let output = output.map_err(|error| error.to_string())?;
    let said = String::from_utf8_lossy(&output.stderr);
    if output.status.code() != Some(2) {
        return Err(said.lines().last().unwrap_or("its process ended without a message").to_owned());
    }
    let remarks = said.lines().filter_map(|line| line.strip_prefix(ZONE_REMARK));
    Ok(remarks.filter_map(|remark| serde_json::from_str(remark).ok()).collect())
}

/// Runs `burnet zone`: confines this process, and becomes the app.
pub fn zone(args: &LaunchArgs) -> ExitCode {
    let launch: ZoneLaunch = match serde_json::from_value(args.launch.clone()) {
        Ok(launch) => launch,
        Err(error) => {
            eprintln!("the process of an app is started by `burnet run`, not by hand: {error}");
            return ExitCode::from(2);
        }
    };
    let ZoneLaunch { limits, mut sandbox, source, interpreter, user, package, cgroups, .. } = launch;
    let (known_gaps, others_write) = (launch.gaps, launch.others_write);
    // Before confinement, because the state folder is not visible in the zone.
    if let Some(Err(altered)) = package.as_ref().map(Installed::check) {
        eprintln!("{altered}");
        return ExitCode::from(2);
    }
    let code = code(&source, interpreter, &mut sandbox);
    let confinement = Confinement { limits, sandbox, code, user, cgroups, others_write, known_gaps };
    let confined = match confine(&confinement) {
        Ok(confined) => confined,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::from(1);
        }
    };
    for gap in confined.not_enforced() {
        // The monitor reads this. It can fail only if the monitor has ended.
        eprintln!("{ZONE_REMARK}{}", serde_json::to_string(gap).unwrap_or_default());
    }
    if let Err(error) = hand_over_streams() {
        eprintln!("the standard streams cannot be passed to the app: {error}");
        return ExitCode::from(1);
    }
    match source {
        AppSource::BuiltIn(name) => apps::run_built_in(&name),
        AppSource::SharedObject(path) => apps::run_shared_object(&path),
        AppSource::Executable(path) | AppSource::Python(path) => {
            let error = confined.r#become();
            eprintln!("{} cannot be executed: {error}", path.display());
            ExitCode::from(2)
        }
    }
}

/// The program to execute. A Python app's zone sees what the interpreter reads and, of the app's own folder, only the
/// app's file.
fn code(source: &AppSource, interpreter: Option<Interpreter>, sandbox: &mut Sandbox) -> Code {
    match source {
        AppSource::BuiltIn(_) => Code::Here,
        AppSource::SharedObject(path) => Code::Library(path.clone()),
        AppSource::Executable(path) => Code::Program { path: path.clone(), args: Vec::new() },
        AppSource::Python(file) => {
            // Without an interpreter it is an ordinary script, whose first line names its interpreter.
            let Some(interpreter) = interpreter else {
                return Code::Program { path: file.clone(), args: Vec::new() };
            };
            sandbox.fs.read.extend(interpreter.files_read(file));
            Code::Program { path: interpreter.program, args: Interpreter::args(file) }
        }
    }
}
