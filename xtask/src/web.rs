//! The operator's page: its packages, the checks that prove it, and `cargo xtask web`, which builds it.
//!
//! ```text
//!   package-lock.json ──npm ci──> web/node_modules ──> types, the built page against its sources, tests in a browser
//!                                                └──> web/dist, the picture of the docs, figures
//! ```
//!
//! In: `web`, Node.js 18 or later, Chromium, and the network for npm's packages. Out: the commands that a stage runs. Besides
//! `web/node_modules` it writes only what `cargo xtask web` is asked for. It installs Debian's packages only as root.

use crate::packages;
use crate::{demo, process, tree};
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

/// The programs that the checks need, and Debian's packages of them.
const PROGRAMS: [(&str, &str); 3] = [("node", "nodejs"), ("npm", "npm"), ("chromium", "chromium")];

/// A registry that does not answer for this long is not there.
const PING_LIMIT: Duration = Duration::from_secs(60);

/// The checks in their order: types, then the built page byte for byte, then all tests.
pub const CHECKS: [&str; 3] = ["check", "verify", "test"];

/// How long each step of `cargo xtask web` may take: the figures need minutes.
const STEP_LIMIT: Duration = Duration::from_secs(15 * 60);

/// The environment variable that names the node's program for tests and pictures.
pub const BINARY: &str = "BURNET_BINARY";

/// `cargo xtask web`: builds the page into `web/dist`. `--figures` measures frames, `--picture` takes the picture of the docs from the demo.
pub fn run(arguments: &[String]) -> Result<ExitCode, String> {
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let mut work = match words.as_slice() {
        [] => npm(&["run", "--silent", "build"]),
        ["--figures"] => node("build/frames.mjs"),
        ["--picture"] => {
            let mut picture = node("build/picture.mjs");
            let binary = demo::built_binary()?.ok_or("burnet does not compile")?;
            picture.env(BINARY, binary);
            picture
        }
        _ => {
            return Err(format!(
                "`web` does not know `{}`; it takes --figures or --picture",
                words.join(" ")
            ));
        }
    };
    prepare()?;
    process::must(&mut install(), STEP_LIMIT)?;
    process::must(&mut work, STEP_LIMIT)?;
    Ok(ExitCode::SUCCESS)
}

fn node(script: &str) -> Command {
    let mut node = Command::new("node");
    node.arg(script).current_dir(tree::root().join("web"));
    node
}

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
