//! An app as `--app` names it.
//!
//! ```text
//!   hub                     built-in app, in a process zone
//!   hub=trusted             built-in app, inside the kernel process
//!   ./target/release/mine   a separate program
//!   ./mine.py               a Python program, in a process zone
//!   ./libmine.so=trusted    a shared object, inside the kernel process
//! ```
//!
//! It does not access files.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use monitor_channel::{AppSource, ZoneKind};

/// A built-in app, as the configuration knows it.
#[derive(Clone, Copy, Debug)]
pub struct BuiltInApp {
    /// Its name.
    pub name: &'static str,
    /// The text of its `app.toml`.
    pub manifest: &'static str,
}

/// The parsed value of an `--app` option.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AppArgument {
    /// The part before `=`.
    pub which: AppReference,
    /// The part after `=`, if present.
    pub zone: Option<ZoneKind>,
}

/// How `--app` identifies the app.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AppReference {
    /// By name: a built-in app, or an `[app.NAME]` in the configuration.
    Name(String),
    /// By the path of its program or shared object.
    Path(PathBuf),
}

/// The `--app` option names no app.
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
        // A path may contain `=`. A zone's name contains no `/`.
        let (which, zone) = match text.rsplit_once('=') {
            Some((which, zone)) if !zone.contains('/') => (which, Some(zone_kind(zone)?)),
            _ => (text, None),
        };
        if which.is_empty() {
            return Err(NotAnApp(format!(
                "`{text}` has no app name: write a name or a path, for example learning-switch=trusted"
            )));
        }
        Ok(AppArgument { which: reference(which), zone })
    }
}

fn zone_kind(text: &str) -> Result<ZoneKind, NotAnApp> {
    match text {
        "process" => Ok(ZoneKind::Process),
        "trusted" => Ok(ZoneKind::Trusted),
        _ => Err(NotAnApp(format!("`{text}` is not a zone type: write =process (the default) or =trusted"))),
    }
}

fn reference(text: &str) -> AppReference {
    let path = Path::new(text);
    // `.` and `..` are folders, as a shell's user expects; no app has such a name.
    if matches!(text, "." | "..") || text.contains('/') || is_shared_object(path) || is_python(path) {
        AppReference::Path(path.to_owned())
    } else {
        AppReference::Name(text.to_owned())
    }
}

impl AppReference {
    /// The app's name on the node: its name, or the name of its file without `lib` and the extension.
    pub fn name(&self) -> String {
        match self {
            AppReference::Name(name) => name.clone(),
            AppReference::Path(path) => name_of_file(path),
        }
    }
}

/// The name of a program's file, without `lib` and the extension.
pub(super) fn name_of_file(path: &Path) -> String {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let stem = if is_shared_object(path) { stem.strip_prefix("lib").unwrap_or(&stem) } else { &stem };
    stem.to_owned()
}

/// The kind of code in a file, judged by its name.
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
        refused("", "`` has no app name");
        refused("=trusted", "`=trusted` has no app name");
        refused("hub=", "`` is not a zone type");
        refused("hub=wasm", "`wasm` is not a zone type: write =process (the default) or =trusted");
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
        let here: AppArgument = ".=trusted".parse().unwrap();
        assert_eq!(here.which, AppReference::Path(".".into()));
        assert_eq!(here.zone, Some(ZoneKind::Trusted));
    }
}
