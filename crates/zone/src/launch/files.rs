//! Landlock rules: which files an app may open, and what it may connect to (landlock(7)).
//!
//! In: what is granted, and which parts of the sandbox are already in force. Out: rules in force for the calling
//! process and everything it executes, or what this machine's Landlock does not support.
//! The rules repeat the limits of the empty root by other means. Where no empty root can be built, they are the only
//! limit on files.

use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset,
    RulesetAttr, RulesetCreated, RulesetCreatedAttr, RulesetError, RulesetStatus, Scope,
};

use crate::landlock::abi;
use crate::sandbox::{NotEnforced, Sandbox};

/// The newest rules that we request. An older Linux enforces those that it supports.
const NEWEST: ABI = ABI::V6;

/// The first ABI that supports truncate(2) (Linux 6.2), connections (Linux 6.7), and signals and abstract sockets
/// (Linux 6.12).
const KNOWS_TRUNCATING: u32 = 3;
const KNOWS_CONNECTIONS: u32 = 4;
const KNOWS_SIGNALS: u32 = 6;

/// Folders of programs and their libraries. They are read-only for every app, and do not hold its data.
pub(super) const SYSTEM_FOLDERS: [&str; 7] = ["/usr", "/lib", "/lib32", "/lib64", "/libx32", "/bin", "/sbin"];

/// Those of them that hold no programs an operator would start. The program loader is there.
const LIBRARY_FOLDERS: [&str; 7] =
    ["/lib", "/lib32", "/lib64", "/libx32", "/usr/lib", "/usr/lib32", "/usr/lib64"];

/// The loader's cache of library paths.
pub(super) const LOADER_CACHE: &str = "/etc/ld.so.cache";

/// Devices that give access to no hardware and no data.
pub(super) const DEVICES: [&str; 5] = ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];

/// Which other parts of the sandbox are in force.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ActiveLayers {
    /// The app has its own process ids, network and names.
    pub(super) namespaces: bool,
    /// The app has its own root.
    pub(super) root: bool,
}

/// Puts the rules into force. `code` are the files that the app's process runs from.
pub(super) fn restrict(
    sandbox: &Sandbox,
    code: &[PathBuf],
    layers: ActiveLayers,
) -> Result<Vec<NotEnforced>, RulesetError> {
    let known = match abi() {
        Ok(known) => known,
        Err(error) => return Ok(vec![NotEnforced::new("landlock", error)]),
    };
    let mut rules = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(NEWEST))?
        .handle_access(AccessNet::from_all(NEWEST))?
        .scope(Scope::from_all(NEWEST))?
        .create()?;
    rules = system(rules, sandbox.spawn, layers)?;
    for file in code {
        rules = rule(rules, file, reading() | AccessFs::Execute)?;
    }
    let read_too = if sandbox.spawn { reading() | AccessFs::Execute } else { reading() };
    for path in &sandbox.fs.read {
        rules = rule(rules, path, read_too)?;
    }
    for path in &sandbox.fs.write {
        rules = rule(rules, path, writing())?;
    }
    let status = rules.restrict_self()?;
    if status.ruleset == RulesetStatus::NotEnforced {
        return Ok(vec![NotEnforced::new("landlock", "Linux accepted no rule of it")]);
    }
    Ok(unknown(known, layers))
}

/// What this machine's Landlock does not support and no other part stops.
fn unknown(known: u32, layers: ActiveLayers) -> Vec<NotEnforced> {
    let needs = |limit, abi| {
        NotEnforced::new(limit, format!("Landlock's ABI is {known} here; {abi} is the first to"))
    };
    let mut gaps = Vec::new();
    if known < KNOWS_TRUNCATING && !layers.root {
        gaps.push(needs("landlock truncating", KNOWS_TRUNCATING));
    }
    if known < KNOWS_CONNECTIONS && !layers.namespaces {
        gaps.push(needs("landlock connections", KNOWS_CONNECTIONS));
    }
    if known < KNOWS_SIGNALS && !layers.namespaces {
        gaps.push(needs("landlock signals", KNOWS_SIGNALS));
    }
    gaps
}

fn system(
    mut rules: RulesetCreated,
    spawn: bool,
    layers: ActiveLayers,
) -> Result<RulesetCreated, RulesetError> {
    for folder in SYSTEM_FOLDERS {
        let execute = if spawn { AccessFs::Execute.into() } else { BitFlags::EMPTY };
        rules = rule(rules, Path::new(folder), reading() | execute)?;
    }
    for folder in LIBRARY_FOLDERS {
        rules = rule(rules, Path::new(folder), reading() | AccessFs::Execute)?;
    }
    rules = rule(rules, Path::new(LOADER_CACHE), reading())?;
    for device in DEVICES {
        rules = rule(rules, Path::new(device), AccessFs::ReadFile | AccessFs::WriteFile)?;
    }
    if layers.root {
        // It shows only the zone's own processes.
        rules = rule(rules, Path::new("/proc"), reading())?;
    }
    Ok(rules)
}

/// A missing path needs no rule. For a file, the rights that only folders have are left out.
fn rule(
    rules: RulesetCreated,
    path: &Path,
    access: BitFlags<AccessFs>,
) -> Result<RulesetCreated, RulesetError> {
    let Ok(opened) = PathFd::new(path) else { return Ok(rules) };
    let access = if path.is_dir() { access } else { access & AccessFs::from_file(NEWEST) };
    rules.add_rule(PathBeneath::new(opened, access))
}

fn reading() -> BitFlags<AccessFs> {
    AccessFs::ReadFile | AccessFs::ReadDir
}

/// All rights except to execute, and to create devices.
fn writing() -> BitFlags<AccessFs> {
    AccessFs::from_all(NEWEST) & !(AccessFs::Execute | AccessFs::MakeChar | AccessFs::MakeBlock)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(known: u32, layers: ActiveLayers, expected: &[&str]) {
        let gaps = unknown(known, layers);
        assert_eq!(gaps.iter().map(|gap| gap.limit.as_str()).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn what_an_older_landlock_lacks_is_a_gap_only_where_nothing_stands_in() {
        let (none, all) = (ActiveLayers::default(), ActiveLayers { namespaces: true, root: true });
        check(1, none, &["landlock truncating", "landlock connections", "landlock signals"]);
        check(3, none, &["landlock connections", "landlock signals"]);
        check(4, none, &["landlock signals"]);
        check(7, none, &[]);
        check(2, ActiveLayers { root: false, ..all }, &["landlock truncating"]);
        check(1, all, &[]);
    }

    #[test]
    fn nobody_who_writes_may_execute_what_he_wrote() {
        assert!(!writing().contains(AccessFs::Execute));
        assert!(writing().contains(AccessFs::WriteFile | AccessFs::Truncate | AccessFs::MakeReg));
    }
}
