//! The installed packages among a node's apps.
//!
//! ```text
//!   apps without path that are not built in ──> state folder ──> verified, granted ──> tables of the file
//!                                                                              └──> Installed, for the kernel process
//! ```
//!
//! In: the file's tables, the state folder, whose signature is required, the time. Out: the same tables, with the
//! package's path, grants, limits and settings where the file does not set them. It changes nothing in the state
//! folder.

use abi::table::TABLE_VERSION;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use monitor_channel::{AppSource, AppSpec, ZoneKind};
use package::digest::Digest;
use package::install::Record;
use package::manifest::{Amount, AppName, Kind, Manifest, Needs};
use package::moment::Moment;
use package::state::{State, read_unpacked};
use package::trust::{Require, SignatureCheck, SignatureStatus, require};
use serde::{Deserialize, Serialize};

use super::grant::GrantedBy;
use super::manifests;
use super::{AppTable, ConfigError, ConfigFile, contradiction};

/// Commands per second for an app from a package, if neither the app nor the operator sets a number, or its request
/// was not granted. An app that requests no number must still have a limit. No app of one network needs more.
const COMMANDS_PER_S: u64 = 100_000;

/// The packets per second that its packet-outs may become. Each also costs a switch. A flood counts once per port, at
/// each of many switches.
const PACKET_OUTS_PER_S: u64 = 1_000_000;

/// The packages of a node's apps. The kernel process gets them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Packages {
    /// The state folder. `None` if no app is installed from it.
    pub state: Option<PathBuf>,
    /// Whose signature a package needs.
    pub require: Require,
    /// The packages, by the app's name.
    pub apps: BTreeMap<String, Installed>,
}

/// The package of one app.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Installed {
    /// The package's version.
    pub version: String,
    /// Its digest, which identifies it.
    pub digest: Digest,
    /// The folder of its files.
    pub folder: PathBuf,
    /// Whose signatures were valid when the node started.
    pub signed: String,
    /// What was granted when the node started, by the names of the requests.
    pub granted: BTreeSet<String>,
    /// Why it does not run trusted, although the operator configured that.
    pub demoted: Option<String>,
}

impl Installed {
    /// Verifies every file again.
    ///
    /// # Errors
    /// A sentence that names the file that differs from what was signed.
    pub fn check(&self) -> Result<(), String> {
        read_unpacked(&self.folder, &self.digest).map(drop).map_err(|why| format!("its package {why}"))
    }
}

/// What is read about one app before the configuration is merged.
#[derive(Debug)]
pub struct InstalledApp {
    installed: Installed,
    record: Record,
}

/// The installed packages of the apps that are neither built in nor have a path.
#[derive(Debug, Default)]
pub struct Resolved {
    /// By the app's name.
    pub found: BTreeMap<String, InstalledApp>,
    /// Apps that may not start, if only another app was requested.
    pub left_out: Vec<String>,
}

/// Fills the tables of apps that are installed, are not built in, and have no path. If only one of them is requested,
/// others that may not start are left out.
///
/// # Errors
/// An installed app may not start: its package is unsigned, altered, expired or revoked.
pub fn resolve(
    file: &mut ConfigFile,
    wanted: &[String],
    state: &State,
    policy: Require,
    now: Moment,
    only: Option<&str>,
) -> Result<Resolved, ConfigError> {
    let mut resolved = Resolved::default();
    for name in wanted {
        match find(file, name, state, policy, now) {
            Ok(Some(found)) => drop(resolved.found.insert(name.clone(), found)),
            Ok(None) => {}
            Err(_) if only.is_some_and(|only| only != name) => resolved.left_out.push(name.clone()),
            Err(error) => return Err(error),
        }
    }
    Ok(resolved)
}

/// Why an app for this version of the app boundary cannot run on this node; `None` if it can.
fn other_boundary(version: u32) -> Option<String> {
    (version != TABLE_VERSION).then(|| {
        format!(
            "it was built for version {version} of the app boundary, and this node has {TABLE_VERSION}: install a package that is built for \
             that"
        )
    })
}

fn find(
    file: &mut ConfigFile,
    name: &str,
    state: &State,
    policy: Require,
    now: Moment,
) -> Result<Option<InstalledApp>, ConfigError> {
    // The monitor refuses an invalid name, with the rule for names.
    let Ok(app) = AppName::try_from(name.to_owned()) else { return Ok(None) };
    let trouble = |error: package::state::StateError| ConfigError::Contradiction(error.to_string());
    let Some(record) = state.record(&app).map_err(trouble)? else { return Ok(None) };
    let unpacked = state.installed(&app, &record).map_err(trouble)?;
    let checks = state.trust().map_err(trouble)?.checks(&record.digest, &unpacked.signatures, now);
    require(&checks, policy)
        .or_else(|why| contradiction(format!("the app {app} does not start: it {why}")))?;
    let manifest = &unpacked.manifest;
    let Some(entry) = manifest.entry_for(std::env::consts::ARCH) else {
        return contradiction(format!("the app {app} has no program for this machine"));
    };
    // It was installed by an older node.
    if let Some(why) = other_boundary(manifest.abi) {
        return contradiction(format!("the app {app} does not start: {why}"));
    }
    let table = file.app_table(name);
    table.packaged = Some(source(manifest.kind, unpacked.folder.join(entry.as_str())));
    fill(table, manifest, &record);
    // The package's files are beside its program.
    table.sandbox.fs.read.push(unpacked.folder.clone());
    if let Some(flaw) = table.sandbox.flaw() {
        return contradiction(format!("the requests of the app {app} cannot be granted: {flaw}"));
    }
    let installed = Installed {
        version: record.version.to_string(),
        digest: record.digest,
        folder: unpacked.folder.clone(),
        signed: signed(&checks),
        granted: record.granted.clone(),
        demoted: None,
    };
    Ok(Some(InstalledApp { installed, record }))
}

/// The manifest decides what the entry is, not the file's name. So a name cannot make the file run in another way
/// than intended.
fn source(kind: Kind, entry: PathBuf) -> AppSource {
    match kind {
        Kind::Native => AppSource::Executable(entry),
        Kind::Python => AppSource::Python(entry),
        Kind::SharedObject => AppSource::SharedObject(entry),
    }
}

/// Whose signatures are valid.
fn signed(checks: &[SignatureCheck]) -> String {
    let counts = checks.iter().filter(|check| check.standing == SignatureStatus::Counts);
    let who = counts.filter_map(|check| Some(format!("{} {}", check.role, check.name.as_ref()?)));
    let all: Vec<String> = who.collect();
    if all.is_empty() { "unsigned".to_owned() } else { all.join(", ") }
}

/// The operator's values stay. The rest comes from the manifest: of its requests, those that were granted.
fn fill(table: &mut AppTable, manifest: &Manifest, record: &Record) {
    let granted = Needs::from(manifest).only(|name| record.granted.contains(name));
    manifests::fill(table, granted, GrantedBy::Package);
    let of_every_app = |hard| Some(Amount { soft: None, hard });
    table.quotas.commands_per_s = table.quotas.commands_per_s.or(of_every_app(COMMANDS_PER_S));
    table.quotas.packet_outs_per_s = table.quotas.packet_outs_per_s.or(of_every_app(PACKET_OUTS_PER_S));
}

/// Handles apps that request to run trusted without the operator's trust. An app that lost it runs in a process zone.
/// An app that never had it is refused.
///
/// # Errors
/// The operator never trusted the installed digest.
pub fn settle(
    specs: &mut [AppSpec],
    found: BTreeMap<String, InstalledApp>,
    only: Option<&str>,
) -> Result<BTreeMap<String, Installed>, ConfigError> {
    let mut apps = BTreeMap::new();
    for (name, InstalledApp { mut installed, record }) in found {
        let trusted = specs.iter_mut().find(|spec| spec.name == name && spec.kind == ZoneKind::Trusted);
        if let (Some(spec), Err(why)) = (trusted, record.may_run_trusted()) {
            if record.fall.is_none() && only.is_none_or(|only| only == name) {
                return contradiction(format!(
                    "the app {name} {why}: burnet app trust {name} allows it; or run it in a process zone"
                ));
            }
            spec.kind = ZoneKind::Process;
            installed.demoted = Some(format!("{why}; to trust it again: burnet app trust {name}"));
        }
        apps.insert(name, installed);
    }
    Ok(apps)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_for_another_app_boundary_is_refused_with_the_version_that_it_needs() {
        assert_eq!(other_boundary(TABLE_VERSION), None);
        let why = other_boundary(1).unwrap();
        assert!(why.contains("version 1 of the app boundary, and this node has 2"), "{why}");
    }

    fn check(written: &str, asked: &str, granted: &[&str], expected: (u64, u64)) {
        let manifest = format!(
            "name = 'a'\nversion = '1.0.0'\ndescription = 'It.'\nkind = 'native'\nabi = 2\nentry.x86_64 = 'a'\n[quotas]\n{asked}"
        );
        let manifest = Manifest::parse(&manifest).unwrap();
        let record = Record {
            version: manifest.version.clone(),
            digest: Digest::of(b"a"),
            granted: granted.iter().map(|name| (*name).to_owned()).collect(),
            trusted: None,
            fall: None,
        };
        let file = format!("[app.a.quotas]\n{written}");
        let mut file = ConfigFile::parse(&file, std::path::Path::new("t")).unwrap();
        let table = file.app_table("a");
        fill(table, &manifest, &record);
        let hard = |amount: Option<Amount>| amount.map_or(u64::MAX, |amount| amount.hard);
        let found = (hard(table.quotas.commands_per_s), hard(table.quotas.packet_outs_per_s));
        assert_eq!(found, expected, "{written} {asked} {granted:?}");
    }

    #[test]
    fn a_package_that_asks_for_no_quota_or_lost_it_has_the_nodes() {
        check("", "", &[], (COMMANDS_PER_S, PACKET_OUTS_PER_S));
        check("", "commands_per_s = 9", &[], (COMMANDS_PER_S, PACKET_OUTS_PER_S));
        check("", "commands_per_s = 9", &["quotas.commands_per_s"], (9, PACKET_OUTS_PER_S));
        check("packet_outs_per_s = 2000000", "packet_outs_per_s = 9", &[], (COMMANDS_PER_S, 2_000_000));
    }
}
