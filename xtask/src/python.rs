//! Python environments of the target folder: made once from pinned packages, and made again when the pins change.
//!
//! In: a folder and its packages. Out: the environment, with its programs in `bin`. It never touches the Python of the system or of a
//! user, and asks the network only for what is not there.

use crate::packages::LIMIT;
use crate::process;
use crate::tree;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// Asked of python3 before anything is made: whether it is new enough, and can make environments (Debian has that in a package of its own).
const ABLE: &str = "import sys, ensurepip, venv; sys.exit(sys.version_info < (3, 11))";

/// An environment.
pub struct Environment {
    folder: &'static str,
    packages: &'static [&'static str],
}

/// What builds and checks the Python SDK, which is installed there too.
pub const SDK: Environment = Environment {
    folder: "python",
    packages: &["maturin==1.16.0", "mypy==2.4.1", "pytest==9.2.0", "ruff==0.17.6"],
};

/// What tests hold Burnet against: another controller framework, a collection of the topologies of real networks, and a program that
/// tries a REST interface by its description.
pub const OTHERS: Environment =
    Environment { folder: "others", packages: &["os-ken==4.2.2", "schemathesis==4.32.5", "topohub==1.5.1"] };

/// Why no environment can be made here, as a sentence.
pub fn why_not() -> Option<String> {
    let mut python = Command::new("python3");
    python.args(["-c", ABLE]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    match python.status() {
        Ok(status) if status.success() => None,
        Ok(_) => Some("python3 is older than 3.11, or lacks venv (Debian: python3-venv)".to_owned()),
        Err(_) => Some("there is no python3".to_owned()),
    }
}

impl Environment {
    /// A program of it.
    pub fn tool(&self, name: &str) -> PathBuf {
        self.path().join("bin").join(name)
    }

    fn path(&self) -> PathBuf {
        tree::target_folder().join(self.folder)
    }

    /// Makes it, if it is not there as it should be.
    pub fn make(&self) -> Result<(), String> {
        if self.is_made() {
            return Ok(());
        }
        let (folder, installed) = (self.path(), self.installed());
        process::must(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&folder), LIMIT)?;
        process::must(self.pip().arg("install").args(self.packages), LIMIT).map_err(|reason| {
            format!("{reason}: {} come from PyPI; is this machine offline?", self.packages.join(", "))
        })?;
        fs::write(&installed, self.wanted()).map_err(|error| format!("{}: {error}", installed.display()))
    }

    /// Whether it is there as it should be. One that was begun and not finished is not.
    pub fn is_made(&self) -> bool {
        fs::read_to_string(self.installed()).is_ok_and(|there| there == self.wanted())
    }

    fn installed(&self) -> PathBuf {
        self.path().join("installed.txt")
    }

    fn wanted(&self) -> String {
        self.packages.join("\n")
    }

    /// Its pip.
    pub fn pip(&self) -> Command {
        let mut pip = Command::new(self.tool("python"));
        pip.args(["-m", "pip", "--quiet", "--disable-pip-version-check"]);
        pip
    }

    /// Where the data of one of its packages are.
    pub fn data(&self, package: &str) -> Option<PathBuf> {
        let lib = fs::read_dir(self.path().join("lib")).ok()?;
        let mut folders =
            lib.flatten().map(|python| python.path().join("site-packages").join(package).join("data"));
        folders.find(|data| data.is_dir())
    }
}
