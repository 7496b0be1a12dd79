//! Which app, as `--app` says it.
//!
//! ```text
//!   hub                     built in, in a process zone
//!   hub=trusted             built in, inside the kernel
//!   ./target/release/mine   a program of its own
//!   ./mine.py               a program in Python, in a process zone
//!   ./libmine.so=trusted    a shared object, inside the kernel
//! ```
//!
//! It looks at no file.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use monitor_channel::{AppSource, ZoneKind};

/// An app within the binary, as a configuration knows it.
#[derive(Clone, Copy, Debug)]
pub struct BuiltInApp {
    /// Its name.
    pub name: &'static str,
    /// Its `app.toml`.
    pub manifest: &'static str,
}

/// An `--app`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AppArgument {
    /// What is before `=`.
    pub which: AppReference,
    /// What is behind `=`, if it is there.
    pub zone: Option<ZoneKind>,
}

/// How an app is referred to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AppReference {
    /// By the name of a built-in app, or of an `[app.NAME]` in the configuration.
    Name(String),
    /// By the path of its program or shared object.
    Path(PathBuf),
}

/// An `--app` that names none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotAnApp(String);

impl fmt::Display for NotAnApp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for NotAnApp {}

impl FromStr for AppArgument {
    type Err = NotAnApp;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        // A path may hold a `=` of its own; a zone's name holds no `/`.
        let (which, zone) = match text.rsplit_once('=') {
            Some((which, zone)) if !zone.contains('/') => (which, Some(zone_kind(zone)?)),
            _ => (text, None),
        };
        if which.is_empty() {
            return Err(NotAnApp(format!(
                "`{text}` names no app: write a name or a path, as in learning-switch=trusted"
            )));
        }
        Ok(AppArgument { which: reference(which), zone })
    }
}

fn zone_kind(text: &str) -> Result<ZoneKind, NotAnApp> {
    match text {
        "process" => Ok(ZoneKind::Process),
        "trusted" => Ok(ZoneKind::Trusted),
        _ => Err(NotAnApp(format!("`{text}` is no kind of zone: write =process (the default) or =trusted"))),
    }
}

fn reference(text: &str) -> AppReference {
    let path = Path::new(text);
    if text.contains('/') || is_shared_object(path) || is_python(path) {
        AppReference::Path(path.to_owned())
    } else {
        AppReference::Name(text.to_owned())
    }
}

impl AppReference {
    /// What the app is called on the node: its name, or the name of its file without `lib` and the ending.
    pub fn name(&self) -> String {
        match self {
            AppReference::Name(name) => name.clone(),
            AppReference::Path(path) => name_of_file(path),
        }
    }
}

/// The name of a program's file, without `lib` and the ending.
pub(super) fn name_of_file(path: &Path) -> String {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let stem = if is_shared_object(path) { stem.strip_prefix("lib").unwrap_or(&stem) } else { &stem };
    stem.to_owned()
}

/// What kind of code a file holds, by its name.
pub(super) fn source(path: PathBuf) -> AppSource {
    if is_shared_object(&path) {
        AppSource::SharedObject(path)
    } else if is_python(&path) {
        AppSource::Python(path)
    } else {
        AppSource::Executable(path)
    }
}

pub(super) fn is_python(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending == "py")
}

fn is_shared_object(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending == "so")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str, expected: &str) {
        let error = text.parse::<AppArgument>().unwrap_err().to_string();
        assert!(error.contains(expected), "{text}: {error}");
    }

    fn check(text: &str, name: &str, is_path: bool, zone: Option<ZoneKind>) {
        let argument: AppArgument = text.parse().unwrap();
        assert_eq!(argument.which.name(), name, "{text}");
        assert_eq!(matches!(argument.which, AppReference::Path(_)), is_path, "{text}");
        assert_eq!(argument.zone, zone, "{text}");
    }

    #[test]
    fn what_names_no_app_or_no_zone_is_refused() {
        refused("", "`` names no app");
        refused("=trusted", "`=trusted` names no app");
        refused("hub=", "`` is no kind of zone");
        refused("hub=wasm", "`wasm` is no kind of zone: write =process (the default) or =trusted");
    }

    #[test]
    fn a_name_is_told_from_a_path() {
        check("hub", "hub", false, None);
        check("hub=process", "hub", false, Some(ZoneKind::Process));
        check("learning-switch=trusted", "learning-switch", false, Some(ZoneKind::Trusted));
        check("./target/release/my-app", "my-app", true, None);
        check("my_app.py", "my_app", true, None);
        check("libmy_app.so=trusted", "my_app", true, Some(ZoneKind::Trusted));
        check("/a=b/library", "library", true, None);
    }
}
