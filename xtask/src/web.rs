//! What proves the operator's page: its packages, and the checks that run in the folder `web`.
//!
//! ```text
//!   package-lock.json ──npm ci──> web/node_modules ──> types, the built page against its sources, tests in a browser
//! ```
//!
//! In: `web`, Node.js 18 or later, Chromium, and the network for npm's packages. Out: the commands that a stage runs. It writes only to
//! `web/node_modules`, and installs Debian's packages only as root.

use crate::packages;
use crate::{process, tree};
use std::process::{Command, Stdio};
use std::time::Duration;

/// The programs that the checks need, and Debian's packages of them.
const PROGRAMS: [(&str, &str); 3] = [("node", "nodejs"), ("npm", "npm"), ("chromium", "chromium")];

/// A registry that does not answer for this long is not there.
const PING_LIMIT: Duration = Duration::from_secs(60);

/// The checks in their order: types, then the built page byte for byte, then all tests.
pub const CHECKS: [&str; 3] = ["check", "verify", "test"];

/// Installs the programs that the checks need. An error says why the checks cannot run here.
pub fn prepare() -> Result<(), String> {
    for (program, package) in PROGRAMS {
        packages::install_for(program, package)?;
    }
    process::must(&mut npm(&["ping"]), PING_LIMIT)
        .map_err(|_| "npm's registry, from which the page's packages come, does not answer".to_owned())
}

/// Installs the packages of the lock file. No script of a package runs.
pub fn install() -> Command {
    npm(&["ci", "--ignore-scripts", "--no-audit", "--no-fund"])
}

/// A check of the page.
pub fn check(name: &str) -> Command {
    let mut check = npm(&["run", "--silent", name]);
    if let Some(chromium) = process::find("chromium") {
        check.env("BURNET_CHROMIUM", chromium);
    }
    check
}

fn npm(words: &[&str]) -> Command {
    let mut npm = Command::new("npm");
    npm.args(words).current_dir(tree::root().join("web")).stdin(Stdio::null());
    npm
}
