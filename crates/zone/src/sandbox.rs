//! What of the machine an app in a process zone may touch, as the operator says it.
//!
//! In: `[app.NAME.sandbox]` of `burnet.toml`, or nothing. Out: [`Sandbox`], which the launcher enforces ([`crate::Confinement`]),
//! and [`NotEnforced`], what this machine does not let it enforce.
//! It never enforces anything, and never looks at a path that it names.

use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// Most paths, and most places to connect to, of one app: each is a mount or a rule, made anew at each start.
pub const GRANTS_MAX: usize = 64;

/// What is granted to an app of the machine; by default nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Sandbox {
    /// What to do where this machine cannot close the zone wholly.
    pub enforce: Enforce,
    /// Whether the app must have a user of its own. Only a node that runs as root can give it one.
    pub own_user: bool,
    /// Files.
    pub fs: Files,
    /// The network.
    pub net: Network,
    /// Whether it may start processes and other programs. They stay within the zone and end with it.
    pub spawn: bool,
}

/// `enforce`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Enforce {
    /// The app starts with what this machine can enforce, and the operator is told of the rest.
    #[default]
    Best,
    /// An app whose zone cannot be closed wholly does not start.
    Strict,
}

/// `fs`: files and folders, by absolute path, each with all that is beneath it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Files {
    /// To read, and to load code from.
    pub read: Vec<PathBuf>,
    /// To read and write; no code is loaded from there.
    pub write: Vec<PathBuf>,
}

/// `net`: connections over the network.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Network {
    /// Where it may connect to by TCP. Addresses, because a zone has no name service.
    pub connect: Vec<SocketAddr>,
}

impl Files {
    /// What of these whoever has the others may change, if anything: the path here, and the folder there. Of two that both write the same either may.
    #[must_use]
    pub fn changed_by<'a>(&'a self, others: &'a Files) -> Option<(&'a Path, &'a Path)> {
        let meets = |own: &Path, theirs: &Path| own.starts_with(theirs) || theirs.starts_with(own);
        self.read.iter().chain(&self.write).find_map(|own| {
            let theirs = others.write.iter().find(|theirs| meets(own, theirs))?;
            Some((own.as_path(), theirs.as_path()))
        })
    }
}

impl Default for Sandbox {
    fn default() -> Sandbox {
        Sandbox {
            enforce: Enforce::Best,
            own_user: true,
            fs: Files::default(),
            net: Network::default(),
            spawn: false,
        }
    }
}

impl Sandbox {
    /// What of it cannot be granted, as a phrase for the operator: a path that is not absolute, that the app could make mean another,
    /// or more than [`GRANTS_MAX`].
    #[must_use]
    pub fn flaw(&self) -> Option<String> {
        let paths = self.fs.read.iter().chain(&self.fs.write);
        let plain = |path: &Path| path.is_absolute() && path.components().all(is_plain);
        if let Some(path) = paths.clone().find(|path| !plain(path) || path.parent().is_none()) {
            let rule = "write an absolute path without .., and not the root";
            return Some(format!("{} cannot be granted: {rule}", path.display()));
        }
        let within =
            |path: &Path| self.fs.write.iter().find(|folder| path != *folder && path.starts_with(folder));
        if let Some((path, folder)) = paths.clone().find_map(|path| Some((path, within(path)?))) {
            let (path, folder) = (path.display(), folder.display());
            return Some(format!("{path} lies in {folder}, which the app may change already: leave it out"));
        }
        let grants = paths.count().max(self.net.connect.len());
        (grants > GRANTS_MAX).then(|| format!("{grants} grants are more than the {GRANTS_MAX} of one app"))
    }
}

fn is_plain(component: std::path::Component<'_>) -> bool {
    matches!(component, std::path::Component::RootDir | std::path::Component::Normal(_))
}

/// A part of the sandbox or a limit that was asked for and is not in force, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NotEnforced {
    /// The field of [`crate::Limits`] or [`Sandbox`], or the stage.
    pub limit: String,
    /// What on this machine stands in the way.
    pub why: String,
}

impl NotEnforced {
    /// `limit` is not in force, because of `why`.
    pub fn new(limit: &str, why: impl fmt::Display) -> NotEnforced {
        NotEnforced { limit: limit.to_owned(), why: why.to_string() }
    }
}

/// What an app tried of the machine and was not let do, as its launcher says it to the monitor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Denied {
    /// In words.
    pub denied: String,
    /// How often, since it was last said.
    pub count: u64,
}

impl fmt::Display for Denied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.count {
            1 => f.write_str(&self.denied),
            count => write!(f, "{} ({count} times)", self.denied),
        }
    }
}

impl fmt::Display for NotEnforced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is not enforced: {}", self.limit, self.why)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(json: &str, expected: Result<Option<&str>, &str>) {
        match (serde_json::from_str::<Sandbox>(json), expected) {
            (Ok(sandbox), Ok(expected)) => assert_eq!(sandbox.flaw().as_deref(), expected),
            (Err(error), Err(expected)) => assert!(error.to_string().contains(expected), "{error}"),
            (got, expected) => panic!("{got:?}, but expected {expected:?}"),
        }
    }

    #[test]
    fn what_is_unknown_or_no_address_is_refused() {
        check(r#"{"enforce": "always"}"#, Err("unknown variant `always`"));
        check(r#"{"fs": {"exec": []}}"#, Err("unknown field `exec`"));
        check(r#"{"net": {"connect": ["example.org:443"]}}"#, Err("invalid socket address"));
        check(r#"{"spawn": "yes"}"#, Err("invalid type"));
    }

    #[test]
    fn a_path_that_might_mean_another_is_a_flaw() {
        let words = "cannot be granted: write an absolute path without .., and not the root";
        check(r#"{"fs": {"read": ["data"]}}"#, Ok(Some(&format!("data {words}"))));
        check(r#"{"fs": {"write": ["/data/../etc"]}}"#, Ok(Some(&format!("/data/../etc {words}"))));
        check(r#"{"fs": {"read": ["/"]}}"#, Ok(Some(&format!("/ {words}"))));
        check(
            r#"{"fs": {"read": ["/a/b"], "write": ["/a"]}}"#,
            Ok(Some("/a/b lies in /a, which the app may change already: leave it out")),
        );
        let many = vec!["\"/x\""; GRANTS_MAX + 1].join(",");
        let flaw = "65 grants are more than the 64 of one app";
        check(&format!(r#"{{"fs": {{"read": [{many}]}}}}"#), Ok(Some(flaw)));
    }

    #[test]
    fn files_meet_where_one_may_write_what_the_other_uses() {
        let files = |read: &[&str], write: &[&str]| {
            let paths = |paths: &[&str]| paths.iter().map(Into::into).collect();
            Files { read: paths(read), write: paths(write) }
        };
        let check = |own: &Files, others: &Files, expected: Option<(&str, &str)>| {
            let expected = expected.map(|(own, theirs)| (Path::new(own), Path::new(theirs)));
            assert_eq!(own.changed_by(others), expected, "{own:?} {others:?}");
        };
        let writes = files(&[], &["/data/a"]);
        check(&files(&["/data/a/out"], &[]), &writes, Some(("/data/a/out", "/data/a")));
        check(&files(&["/data"], &[]), &writes, Some(("/data", "/data/a")));
        check(&writes, &writes, Some(("/data/a", "/data/a")));
        check(&files(&["/data/ab"], &["/data/b"]), &writes, None);
        check(&writes, &files(&["/data/a"], &[]), None);
    }

    #[test]
    fn nothing_is_granted_unless_it_is_said() {
        check("{}", Ok(None));
        let sandbox: Sandbox = serde_json::from_str("{}").unwrap();
        assert_eq!(sandbox, Sandbox::default());
        assert!(!sandbox.spawn && sandbox.fs.read.is_empty() && sandbox.net.connect.is_empty());
    }
}
