//! Which parts of the machine an app in a process zone may use.
//!
//! In: `[app.NAME.sandbox]` of `burnet.toml`, or nothing. Out: [`Sandbox`], which the launcher enforces
//! ([`crate::Confinement`]), and [`NotEnforced`], what this machine cannot enforce.
//! This module enforces nothing, and never accesses a path that it names.

use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use contract::ServiceAddress;
use serde::{Deserialize, Serialize};

/// Maximum number of paths, and of addresses, that one app may be granted. Each is a mount or a rule, which is
/// created at each start.
pub const GRANTS_MAX: usize = 64;

/// Maximum number of addresses on which one app may listen. Their sockets go to the app in one message, and stay open in the
/// monitor.
pub const LISTEN_MAX: usize = 8;

/// What an app may use of the machine. The default is nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Sandbox {
    /// What to do if this machine cannot enforce the whole sandbox.
    pub enforce: Enforce,
    /// Whether the app must have a user of its own. Only a node that runs as root can give it one.
    pub own_user: bool,
    /// Files and folders that the app may use.
    pub fs: Files,
    /// Connections that the app may make or accept.
    pub net: Network,
    /// Whether the app may start processes and other programs. They stay within the zone and end with it.
    pub spawn: bool,
}

/// The key `enforce`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Enforce {
    /// The app starts with what this machine can enforce, and the operator is notified of the rest.
    #[default]
    Best,
    /// If the sandbox cannot be enforced fully, the app does not start.
    Strict,
}

/// The key `fs`: files and folders by absolute path, each with everything below it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Files {
    /// Readable. Code can be loaded from here.
    pub read: Vec<PathBuf>,
    /// Readable and writable. No code can be loaded from here.
    pub write: Vec<PathBuf>,
}

/// The key `net`: connections over the network.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Network {
    /// TCP addresses that the app may connect to. They are not names, because a zone has no name service.
    pub connect: Vec<SocketAddr>,
    /// Addresses on which the app may accept connections. The monitor opens the sockets.
    pub listen: Vec<ServiceAddress>,
}

impl Files {
    /// The first path here that an app with the grant `others` can change, with the folder that the app writes. `None` if it can
    /// change none. A path that both may write counts too.
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
    /// What cannot be granted, as a phrase for the operator: a path that is not absolute, a path that the app itself
    /// could redirect, or more than [`GRANTS_MAX`] entries or [`LISTEN_MAX`] addresses.
    #[must_use]
    pub fn flaw(&self) -> Option<String> {
        let paths = self.fs.read.iter().chain(&self.fs.write);
        let plain = |path: &Path| path.is_absolute() && path.components().all(is_plain);
        if let Some(path) = paths.clone().find(|path| !plain(path) || path.parent().is_none()) {
            let rule = "write an absolute path without .., other than /";
            return Some(format!("{} cannot be granted: {rule}", path.display()));
        }
        let within =
            |path: &Path| self.fs.write.iter().find(|folder| path != *folder && path.starts_with(folder));
        if let Some((path, folder)) = paths.clone().find_map(|path| Some((path, within(path)?))) {
            let (path, folder) = (path.display(), folder.display());
            return Some(format!("{path} lies in {folder}, which the app may change already: leave it out"));
        }
        let listen = self.net.listen.len();
        if listen > LISTEN_MAX {
            return Some(format!("{listen} addresses to listen on are more than the limit of {LISTEN_MAX}"));
        }
        let grants = paths.count().max(self.net.connect.len());
        (grants > GRANTS_MAX).then(|| format!("{grants} grants are more than the limit of {GRANTS_MAX}"))
    }
}

fn is_plain(component: std::path::Component<'_>) -> bool {
    matches!(component, std::path::Component::RootDir | std::path::Component::Normal(_))
}

/// A part of the sandbox, or a limit, that was requested and is not in force, with the reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NotEnforced {
    /// The field of [`crate::Limits`] or [`Sandbox`], or the stage.
    pub limit: String,
    /// Why this machine cannot enforce it.
    pub why: String,
}

impl NotEnforced {
    /// `limit` is not in force, because of `why`.
    pub fn new(limit: &str, why: impl fmt::Display) -> NotEnforced {
        NotEnforced { limit: limit.to_owned(), why: why.to_string() }
    }
}

/// An action that the sandbox denied to an app, as the launcher reports it to the monitor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Denied {
    /// The action, in words.
    pub denied: String,
    /// How often it happened since the last report.
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
        check(r#"{"net": {"listen": [":8181"]}}"#, Err("\":8181\" is no address to listen on"));
        check(r#"{"spawn": "yes"}"#, Err("invalid type"));
    }

    #[test]
    fn a_path_that_might_mean_another_is_a_flaw() {
        let words = "cannot be granted: write an absolute path without .., other than /";
        check(r#"{"fs": {"read": ["data"]}}"#, Ok(Some(&format!("data {words}"))));
        check(r#"{"fs": {"write": ["/data/../etc"]}}"#, Ok(Some(&format!("/data/../etc {words}"))));
        check(r#"{"fs": {"read": ["/"]}}"#, Ok(Some(&format!("/ {words}"))));
        check(
            r#"{"fs": {"read": ["/a/b"], "write": ["/a"]}}"#,
            Ok(Some("/a/b lies in /a, which the app may change already: leave it out")),
        );
        let many = vec!["\"/x\""; GRANTS_MAX + 1].join(",");
        let ports =
            (1..=LISTEN_MAX + 1).map(|port| format!("\"[::1]:{port}\"")).collect::<Vec<_>>().join(",");
        let flaw = "9 addresses to listen on are more than the limit of 8";
        check(&format!(r#"{{"net": {{"listen": [{ports}]}}}}"#), Ok(Some(flaw)));
        let flaw = "65 grants are more than the limit of 64";
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
