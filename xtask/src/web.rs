//! What proves the operator's page: its packages, and the checks that run in the folder `web`.
//!
//! ```text
//!   package-lock.json ──npm ci──> web/node_modules ──> types, the built page against its sources, tests in a browser
//! ```
//!
//! In: `web`, Node.js 18 or later, Chromium, and the network for npm's packages. Out: the commands that a stage runs. It writes only to
//! `web/node_modules`, and installs Debian's packages only as root.

use crate::packages::{self, LIMIT};
use crate::{process, tree};
use std::process::{Command, Stdio};

/// The programs that the checks need, and Debian's packages of them.
const PROGRAMS: [(&str, &str); 3] = [("node", "nodejs"), ("npm", "npm"), ("chromium", "chromium")];

/// The checks in their order: types, then the built page byte for byte, then all tests.
pub const CHECKS: [&str; 3] = ["check", "verify", "test"];

/// Installs what the checks need. An error says what is missing.
pub fn prepare() -> Result<(), String> {
    for (program, package) in PROGRAMS {
        packages::install_for(program, package)?;
    }
    // No script of a package runs: what is built comes from this project's own configuration.
    process::must(npm(&["ci", "--ignore-scripts", "--no-audit", "--no-fund"]).stdin(Stdio::null()), LIMIT)
        .map_err(|reason| format!("{reason}: the packages come from npmjs.org; is this machine offline?"))
}

/// A check of the page.
pub fn check(name: &str) -> Command {
    let mut check = npm(&["run", "--silent", name]);
    check.stdin(Stdio::null());
    if let Some(chromium) = process::find("chromium") {
        check.env("BURNET_CHROMIUM", chromium);
    }
    check
}

fn npm(words: &[&str]) -> Command {
    let mut npm = Command::new("npm");
    npm.args(words).current_dir(tree::root().join("web"));
    npm
}
