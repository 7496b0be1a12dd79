//! Finds the manifests of apps that are not packages: in the binary, beside a program, or in its own comments.
//!
//! ```text
//!   --app ./folder        folder/app.toml, which names its program
//!   --app ./mine.py       the block `# /// burnet` at the top of the file, else as any program
//!   --app ./mine          mine.toml beside it, app.toml beside it, or app.toml of the Cargo package that it was built in
//! ```
//!
//! In: the file's tables, and the command line. Out: the same tables with what the manifests request, where the
//! operator did not set capabilities. Also the apps that have no capabilities from any source. It reads manifests and
//! the tops of Python files, and writes nothing.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

use contract::ServiceAddress;
use package::PackagePath;
use package::manifest::system::PlainPath;
use package::manifest::{Limits as AskedLimits, MANIFEST_BYTES_MAX, MANIFEST_PATH, Manifest, Needs, System};
use package::toml_text::Fault;
use serde_json::Value;
use zone::Sandbox;
use zone::sandbox::Files;

use super::RunArgs;
use super::app::{self, AppReference, name_of_file};
use super::grant::{GrantedBy, all_of_grant_all};
use super::{AppTable, ConfigError, ConfigFile, Environment, contradiction};

/// How many bytes of a Python file are searched for its block: the largest manifest, and as much again for text above
/// it.
const TOP_BYTES_MAX: u64 = 2 * MANIFEST_BYTES_MAX as u64;

/// How many levels above a program Cargo's folder `target` may be: `target/TRIPLE/PROFILE/PROGRAM`.
const CARGO_DEPTH: usize = 3;

/// An app without capabilities from any source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct MissingGrants {
    name: String,
    program: PathBuf,
    /// The path of the `app.toml` beside it, and the app that this file belongs to.
    anothers: Option<(PathBuf, String)>,
}

impl MissingGrants {
    /// Why the app does not start, and what to do.
    pub(super) fn refusal(&self) -> String {
        let MissingGrants { name, program, anothers } = self;
        let file = program.with_file_name(format!("{}.toml", name_of_file(program)));
        let another = anothers.as_ref().map_or(String::new(), |(path, whose)| {
            format!(" ({} is the manifest of {whose})", path.display())
        });
        let comments = if app::is_python(program) { ", or a block `# /// burnet` at its top" } else { "" };
        format!(
            "the app {name} has no manifest, so it would get no capabilities: write {}{another}{comments} \
             (docs/reference/package.md; burnet app new writes one), or [app.{name}.capabilities] in burnet.toml. \
             On a test network, --grant-all grants the usual capabilities",
            file.display()
        )
    }
}

/// Replaces an app's folder by the path of its program.
///
/// # Errors
/// The folder has no manifest, or the manifest has no program for this machine.
pub(super) fn enter_folders(
    file: &mut ConfigFile,
    args: &mut RunArgs,
    around: &Environment,
) -> Result<(), ConfigError> {
    for argument in &mut args.apps {
        let AppReference::Path(path) = &argument.which else { continue };
        let folder = around.current_dir.join(path);
        if !folder.is_dir() {
            continue;
        }
        let path = folder.join(MANIFEST_PATH);
        let Some(manifest) = read(&path)? else {
            return contradiction(format!(
                "{} is a folder without an {MANIFEST_PATH}: write one (burnet app new), or name a program",
                folder.display()
            ));
        };
        let Some(entry) = manifest.entry_for(std::env::consts::ARCH) else {
            return contradiction(format!("{} has no program for this machine", path.display()));
        };
        let table = file.app_table(manifest.name.as_str());
        table.path = Some(around.current_dir.join(folder.join(place_of(entry, &manifest))));
        fill(table, Needs::from(&manifest), GrantedBy::Manifest(path));
        argument.which = AppReference::Name(manifest.name.to_string());
    }
    Ok(())
}

/// The path of a package's file before the package is built, relative to the manifest's folder.
fn place_of(entry: &PackagePath, manifest: &Manifest) -> PathBuf {
    let within = |folder: &PackagePath| Path::new(entry.as_str()).strip_prefix(folder.as_str()).ok();
    let named = manifest.files.iter().find_map(|(path, source)| Some((source, within(path)?)));
    match named {
        // Joined with an empty path, it would end with a slash.
        Some((source, rest)) if rest.as_os_str().is_empty() => PathBuf::from(source),
        Some((source, rest)) => Path::new(source).join(rest),
        None => PathBuf::from(entry.as_str()),
    }
}

/// Fills the tables of apps that have a path with what their manifests request. Returns the apps that have no
/// capabilities from any source.
///
/// # Errors
/// A manifest cannot be read, or requests something invalid.
pub(super) fn look(
    file: &mut ConfigFile,
    args: &RunArgs,
    around: &Environment,
) -> Result<Vec<MissingGrants>, ConfigError> {
    let mut programs = file.paths();
    for argument in &args.apps {
        if let AppReference::Path(path) = &argument.which {
            let name = argument.which.name();
            programs.retain(|(other, _)| *other != name);
            programs.push((name, around.current_dir.join(path)));
        }
    }
    let mut unsaid = Vec::new();
    for (name, program) in programs {
        let table = file.app_table(&name);
        // If the path is not a file, a later check refuses it by name.
        if !program.is_file() || table.granted_by != GrantedBy::Configuration {
            continue;
        }
        match of_program(&program)? {
            Ok((needs, by)) => fill(table, needs, by),
            Err(_) if table.capabilities.is_some() => {}
            Err(_) if args.grant_all => {
                let needs = Needs { capabilities: all_of_grant_all(), ..Needs::default() };
                fill(table, needs, GrantedBy::GrantAll);
            }
            Err(anothers) => unsaid.push(MissingGrants { name: name.clone(), program, anothers }),
        }
        if let Some(flaw) = table.sandbox.flaw() {
            return contradiction(format!("the requests of the app {name} cannot be granted: {flaw}"));
        }
    }
    Ok(unsaid)
}

/// What the app's manifest requests. Or the `app.toml` beside it, if that belongs to another app.
type Search = Result<(Needs, GrantedBy), Option<(PathBuf, String)>>;

fn of_program(program: &Path) -> Result<Search, ConfigError> {
    if let Some(needs) = in_comments(program)? {
        return Ok(Ok((needs, GrantedBy::Comments(program.to_owned()))));
    }
    let own = program.with_file_name(format!("{}.toml", name_of_file(program)));
    if let Some(manifest) = read(&own)? {
        return Ok(Ok((Needs::from(&manifest), GrantedBy::Manifest(own))));
    }
    let mut anothers = None;
    for path in [Some(program.with_file_name(MANIFEST_PATH)), of_cargo(program)].into_iter().flatten() {
        let Some(manifest) = read(&path)? else { continue };
        if is_of(&manifest, program) {
            return Ok(Ok((Needs::from(&manifest), GrantedBy::Manifest(path))));
        }
        anothers = anothers.or(Some((path, manifest.name.to_string())));
    }
    Ok(Err(anothers))
}

/// Whether this manifest belongs to the program. Either its name matches, in Cargo's spelling for libraries, or the
/// program is the manifest's entry.
fn is_of(manifest: &Manifest, program: &Path) -> bool {
    let file = program.file_name().and_then(|name| name.to_str());
    let runs =
        |path: &PackagePath| Path::new(path.as_str()).file_name().and_then(|name| name.to_str()) == file;
    name_of_file(program).replace('_', "-") == manifest.name.as_str().replace('_', "-")
        || manifest.entry.values().any(runs)
}

/// The manifest beside the `Cargo.toml` of a program that was built into `target`.
fn of_cargo(program: &Path) -> Option<PathBuf> {
    let mut above = program.ancestors().skip(2).take(CARGO_DEPTH);
    let target = above.find(|folder| folder.file_name().is_some_and(|name| name == "target"))?;
    Some(target.with_file_name(MANIFEST_PATH))
}

/// The manifest block of a Python file.
fn in_comments(program: &Path) -> Result<Option<Needs>, ConfigError> {
    if !app::is_python(program) {
        return Ok(None);
    }
    // If the file cannot be read, a later check refuses it by name.
    let Some(text) = text_of(program, TOP_BYTES_MAX).unwrap_or_default() else { return Ok(None) };
    Needs::in_comments(&text).map_err(|fault| in_file(program, fault))
}

/// Reads a manifest, if it exists.
fn read(path: &Path) -> Result<Option<Manifest>, ConfigError> {
    // One byte more shows whether the file is too long.
    let Some(text) = text_of(path, MANIFEST_BYTES_MAX as u64 + 1)? else { return Ok(None) };
    Manifest::parse(&text).map(Some).map_err(|fault| in_file(path, fault))
}

fn in_file(path: &Path, Fault { line, reason }: Fault) -> ConfigError {
    ConfigError::InFile { path: path.to_owned(), line, reason }
}

/// The text of a file, up to a maximum. `None` if the file does not exist.
fn text_of(path: &Path, bytes_max: u64) -> Result<Option<String>, ConfigError> {
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(bytes_max).read_to_end(&mut bytes));
    match read {
        Ok(_) => Ok(Some(String::from_utf8_lossy(&bytes).into_owned())),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(ConfigError::Unreadable { path: path.to_owned(), error: error.to_string() }),
    }
}

/// The operator's values stay. The rest comes from the manifest.
pub(super) fn fill(table: &mut AppTable, needs: Needs, by: GrantedBy) {
    if table.capabilities.is_none() {
        table.capabilities = Some(needs.capabilities);
        table.granted_by = by;
    }
    table.service = needs.service;
    table.quotas = std::mem::take(&mut table.quotas).or(needs.quotas);
    fill_limits(&mut table.limits, &needs.limits);
    table.needs_operator.extend(fill_sandbox(&mut table.sandbox, &needs.system));
    let mut settings = needs.settings;
    settings.extend(std::mem::take(&mut table.settings).into_iter().collect::<Vec<(String, Value)>>());
    table.settings = settings;
}

/// Finds the declaration of each capability and quota that the apps of a node have of services. Returns what these apps
/// declare themselves.
///
/// # Errors
/// An app has a capability that no service of this node declares.
pub(super) fn resolve(apps: &mut [(String, AppTable)]) -> Result<Vec<contract::Service>, ConfigError> {
    let services: Vec<contract::Service> =
        apps.iter().filter_map(|(_, table)| table.service.clone()).collect();
    for (name, table) in apps {
        let mut none = package::manifest::Capabilities::default();
        let capabilities = table.capabilities.as_mut().unwrap_or(&mut none);
        package::manifest::resolve(capabilities, &mut table.quotas, &services)
            .or_else(|why| contradiction(format!("the app {name} does not start: {why}")))?;
    }
    Ok(services)
}

/// A limit that equals its default counts as not written. The result is the same.
fn fill_limits(limits: &mut zone::Limits, asked: &AskedLimits) {
    let default = zone::Limits::default();
    let small = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
    if let Some(asked) = asked.memory_bytes.filter(|_| limits.memory_bytes == default.memory_bytes) {
        limits.memory_bytes = asked.hard;
        limits.soft.memory_bytes = asked.soft;
    }
    if let Some(asked) = asked.open_files.filter(|_| limits.open_files == default.open_files) {
        limits.open_files = small(asked.hard);
        limits.soft.open_files = asked.soft.map(small);
    }
    if let Some(asked) = asked.threads.filter(|_| limits.processes == default.processes) {
        limits.processes = Some(small(asked.hard));
        limits.soft.processes = asked.soft.map(small);
    }
    if let Some(asked) = asked.cpu_percent.filter(|_| limits.cpu_percent.is_none()) {
        limits.cpu_percent = NonZeroU32::new(small(asked.hard));
        limits.soft.cpu_percent = asked.soft.map(small);
    }
    if let Some(asked) = asked.file_bytes.filter(|_| limits.file_bytes == default.file_bytes) {
        limits.file_bytes = asked.hard;
    }
}

/// The files that a manifest names.
pub fn files(system: &System) -> Files {
    let paths = |paths: &Option<BTreeSet<PlainPath>>| -> Vec<PathBuf> {
        paths.iter().flatten().map(|path| path.as_path().to_owned()).collect()
    };
    Files { read: paths(&system.fs_read), write: paths(&system.fs_write) }
}

/// An operator's grant replaces the manifest's grant of the same name. Returns the addresses to listen on that a manifest alone
/// does not grant.
fn fill_sandbox(sandbox: &mut Sandbox, granted: &System) -> Vec<ServiceAddress> {
    let files = files(granted);
    if sandbox.fs.read.is_empty() {
        sandbox.fs.read = files.read;
    }
    if sandbox.fs.write.is_empty() {
        sandbox.fs.write = files.write;
    }
    if sandbox.net.connect.is_empty() {
        sandbox.net.connect = granted.net_connect.iter().flatten().map(|endpoint| endpoint.0).collect();
    }
    sandbox.spawn |= granted.spawn.is_some();
    if !sandbox.net.listen.is_empty() {
        return Vec::new();
    }
    let requested = granted.net_listen.iter().flatten().cloned();
    let (left, listen) = requested.partition(|address| address.needs_operator().is_some());
    sandbox.net.listen = listen;
    left
}

#[cfg(test)]
mod tests;
