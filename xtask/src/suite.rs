//! `cargo xtask test`: every check and test, one stage after the other.
//!
//! ```text
//! working tree, this machine ──→ stages ──→ a summary; exit code 0 only if nothing failed
//! ```
//!
//! In: `--quick`, whether this is root, whether `CI` is set. Out: each stage's own output, then the summary.
//! A stage that fails does not keep the next from running. It never writes outside the target folder, but for
//! the packages and cargo-deny that it installs as root or in CI.

use crate::packages;
use crate::process::{self, Ended};
use crate::stage::{self, Finished, StageResult, Tests};
use crate::web::BINARY;
use crate::{deb, demo, instructions, oci, python, rules, tree, trial, web, wheel};
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

/// A cold build of everything and all tests took 28 minutes on two cores; what takes this long hangs.
const STAGE_LIMIT: Duration = Duration::from_secs(45 * 60);

/// The demo takes half a minute at most; one that waits for a switch that never comes up is stopped.
const DEMO_LIMIT: Duration = Duration::from_secs(120);

/// In CI the whole run ends before the job's own limit of 90 minutes does, so that the summary is seen. On two cores it takes some fifty minutes.
const CI_LIMIT: Duration = Duration::from_secs(80 * 60);

/// The version that `deny.toml` was written for. docs/decisions/0004 has what installing it costs.
const CARGO_DENY: &str = "0.20.2";

/// The workspaces of what is shipped, each with a lock file of its own.
const SHIPPED: [&str; 2] = ["Cargo.toml", "sdk/python/Cargo.toml"];

/// All tests but those of the whole system, which need more than Rust. Without naming kinds of targets: only then does
/// Cargo build the examples as programs and shared objects, which tests of a whole node run.
const TESTS: [&str; 4] = ["test", "--workspace", "--exclude", "system-tests"];

/// WebAssembly without a system, the target of apps that run in the kernel's process or on a switch.
const WASM: &str = "wasm32-unknown-unknown";

/// The target is 20 MB to download; a machine that cannot reach rustup's server finds out sooner.
const RUSTUP_LIMIT: Duration = Duration::from_secs(120);

/// How many scenarios with real switches run at the same time, with those that mostly wait.
const SCENARIO_THREADS: &str = "7";

/// The environment variables by which tests are told which Python has os-ken, and where a collection of topologies is.
const OTHERS_PYTHON: &str = "BURNET_OTHERS_PYTHON";
const TOPOLOGIES: &str = "BURNET_TOPOLOGIES";

/// What a stage gives back; an error is a failure of the stage too, and a sentence.
type Stage = Result<(StageResult, Tests), String>;

/// What decides which stages run, and the stages that ran.
struct Suite {
    quick: bool,
    root: bool,
    ci: bool,
    started: Instant,
    finished: Vec<Finished>,
}

/// Runs the suite; exit code 1 when a stage or test failed.
pub fn run(arguments: &[String]) -> Result<ExitCode, String> {
    if let Some(unknown) = arguments.iter().find(|argument| *argument != "--quick") {
        return Err(format!("`test` does not know `{unknown}`; it takes --quick"));
    }
    let mut suite = Suite {
        quick: !arguments.is_empty(),
        root: process::is_root(),
        ci: std::env::var_os("CI").is_some_and(|value| !value.is_empty() && value != "false"),
        started: Instant::now(),
        finished: Vec::new(),
    };
    suite.run_all();
    print!("{}", stage::summary(&suite.finished));
    let failed = stage::total(&suite.finished).failed;
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

impl Suite {
    fn run_all(&mut self) {
        self.stage("rustfmt", |suite| suite.cargo(&["fmt", "--all", "--check"]));
        self.stage("dependency rules", |_| check_rules());
        self.stage("Debian packages", Suite::install_packages);
        self.stage("Python's packages", Suite::install_others);
        self.stage("clippy", |suite| {
            suite.cargo(&["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"])
        });
        self.stage("tests, doc tests", |suite| {
            // With what passing tests print, because one that lacks a tool says there that it left itself out.
            let mut test = process::cargo();
            test.args(TESTS).args(["--no-fail-fast", "--", "--show-output"]);
            suite.command(test.env("RUST_TEST_THREADS", test_threads()).envs(others()))
        });
        self.slow_stage("SDK for wasm32", Suite::sdk_for_wasm);
        self.stage("demo", Suite::demo);
        self.stage("real switches", Suite::real_switches);
        self.slow_stage("Python SDK", Suite::python_sdk);
        self.slow_stage("web page", Suite::web_page);
        self.slow_stage("packages", Suite::packages);
        self.slow_stage("instructions", |_| instructions::check());
        self.slow_stage("documentation", |suite| {
            let mut doc = process::cargo();
            doc.args(["doc", "--workspace", "--no-deps"]).env("RUSTDOCFLAGS", "-D warnings");
            suite.command(&mut doc)
        });
        // They are a workspace of their own, so nothing else would notice that one no longer compiles.
        self.slow_stage("fuzz targets", |suite| {
            let mut clippy = process::cargo();
            clippy.args(["clippy", "--manifest-path", "fuzz/Cargo.toml", "--", "-D", "warnings"]);
            suite.command(clippy.env("CARGO_TARGET_DIR", tree::target_folder()))
        });
        self.slow_stage("cargo-deny", Suite::cargo_deny);
    }

    fn stage(&mut self, name: &'static str, run: impl FnOnce(&Suite) -> Stage) {
        println!("\n==> {name}");
        let begun = Instant::now();
        let (outcome, tests) = if self.limit().is_zero() {
            (StageResult::Failed("no time left for it".to_owned()), Tests::default())
        } else {
            run(self).unwrap_or_else(|reason| (StageResult::Failed(reason), Tests::default()))
        };
        if let StageResult::Failed(reason) | StageResult::LeftOut(reason) = &outcome {
            println!("{reason}");
        }
        self.finished.push(Finished { name, outcome, took: begun.elapsed(), tests });
    }

    fn slow_stage(&mut self, name: &'static str, run: impl FnOnce(&Suite) -> Stage) {
        let quick = self.quick;
        self.stage(name, |suite| if quick { left_out("--quick") } else { run(suite) });
    }

    /// How long the stage that is about to start may take.
    fn limit(&self) -> Duration {
        if self.ci { STAGE_LIMIT.min(CI_LIMIT.saturating_sub(self.started.elapsed())) } else { STAGE_LIMIT }
    }

    fn cargo(&self, words: &[&str]) -> Stage {
        self.command(process::cargo().args(words))
    }

    /// Runs a command, shows and counts what it prints.
    fn command(&self, command: &mut Command) -> Stage {
        self.command_within(STAGE_LIMIT, command)
    }

    fn command_within(&self, limit: Duration, command: &mut Command) -> Stage {
        let mut tests = Tests::default();
        let ended = process::run(command, self.limit().min(limit), |line| {
            println!("{line}");
            tests.on_line(line);
            wheel::result_of_pytest(line).iter().for_each(|result| tests.on_line(result));
        })?;
        let shown = process::shown(command);
        let outcome = match ended {
            Ended::Well => StageResult::Passed,
            Ended::Badly => StageResult::Failed(format!("`{shown}` failed")),
            Ended::Stopped => StageResult::Failed(format!("`{shown}` was stopped at its limit")),
        };
        Ok((outcome, tests))
    }

    fn install_packages(&self) -> Stage {
        let missing = packages::missing();
        if missing.is_empty() {
            return passed();
        }
        if self.quick || !self.root {
            let reason = if self.quick { "--quick" } else { "only root can install packages" };
            return left_out(&format!("{reason}; missing: {}", missing.join(" ")));
        }
        packages::install()?;
        passed()
    }

    /// Tests say by name what they leave out where these are not.
    fn install_others(&self) -> Stage {
        if self.quick {
            return left_out("--quick");
        }
        match python::why_not().map_or_else(|| python::OTHERS.make(), Err) {
            Ok(()) => passed(),
            Err(reason) => left_out(&reason),
        }
    }

    /// The SDK's core is for every kind of zone, so it must build for WebAssembly too.
    fn sdk_for_wasm(&self) -> Stage {
        let mut add = Command::new("rustup");
        add.args(["target", "add", WASM]).current_dir(tree::root()).stdin(Stdio::null());
        let added = process::run(&mut add, RUSTUP_LIMIT, |line| println!("{line}"));
        if !matches!(added, Ok(Ended::Well)) {
            return left_out(&format!("rustup could not add the target {WASM}"));
        }
        self.cargo(&["check", "--package", "burnet-sdk-core", "--target", WASM])
    }

    /// The main job on an emulated network: exit code 0 only if all that the demo shows held, from the discovery to a failed link and the page.
    fn demo(&self) -> Stage {
        let mut demo = Command::new(tested_binary()?);
        demo.args(["demo", "--once", "--rest", "127.0.0.1:0"]).stdin(Stdio::null());
        self.command_within(DEMO_LIMIT, &mut demo)
    }

    /// The whole-system tests. Where real switches cannot be, Rust's harness names each test that it ignores.
    fn real_switches(&self) -> Stage {
        let reason = self.why_no_real_switches();
        let mut test = process::cargo();
        test.args(["test", "--package", "system-tests", "--no-fail-fast", "--lib", "--tests"]);
        if let Some(reason) = reason {
            let (outcome, mut tests) = self.command(&mut test)?;
            tests.ignored.iter_mut().for_each(|test| *test = format!("{test} ({reason})"));
            return Ok((outcome, tests));
        }
        // Scenarios that work run three at a time, whatever the number of threads (`system_tests::scenario`). The others mostly wait.
        test.args(["--", "--include-ignored", "--test-threads", SCENARIO_THREADS])
            .env(BINARY, tested_binary()?);
        self.command(test.envs(others()))
    }

    fn why_no_real_switches(&self) -> Option<String> {
        if self.quick {
            return Some("--quick".to_owned());
        }
        if !self.root {
            return Some("not root".to_owned());
        }
        let missing = packages::missing();
        if !missing.is_empty() {
            return Some(format!("missing: {}", missing.join(" ")));
        }
        packages::refusal()
    }

    /// The wheel, what checks its Python, and its tests, of which some run a whole node.
    fn python_sdk(&self) -> Stage {
        if let Some(reason) = python::why_not() {
            return left_out(&reason);
        }
        let clippy = ["clippy", "--manifest-path", "sdk/python/Cargo.toml", "--", "-D", "warnings"];
        let (outcome, _) =
            self.command(process::cargo().args(clippy).env("CARGO_TARGET_DIR", tree::target_folder()))?;
        if outcome != StageResult::Passed {
            return Ok((outcome, Tests::default()));
        }
        wheel::install(&wheel::build()?)?;
        let ruff = &["check", "--quiet", ".", "../../examples/slices"][..];
        for (tool, words) in [("ruff", ruff), ("mypy", &["--no-error-summary"])] {
            let (outcome, _) =
                self.command(Command::new(python::SDK.tool(tool)).args(words).current_dir(wheel::folder()))?;
            if outcome != StageResult::Passed {
                return Ok((outcome, Tests::default()));
            }
        }
        let mut pytest = Command::new(python::SDK.tool("python"));
        pytest.args(["-m", "pytest", "-q", "-p", "no:cacheprovider"]).current_dir(wheel::folder());
        pytest.env(BINARY, tested_binary()?).env("PYTHONDONTWRITEBYTECODE", "1").envs(others());
        self.command(&mut pytest)
    }

    /// The operator's page: its types, whether the built page is what the sources give, and its tests in a browser.
    fn web_page(&self) -> Stage {
        if let Err(reason) = web::prepare() {
            return left_out(&reason);
        }
        let mut last = self.command(&mut web::install())?;
        let binary = tested_binary()?;
        for check in web::CHECKS {
            if last.0 == StageResult::Passed {
                last = self.command(web::check(check).env(BINARY, &binary))?;
            }
        }
        Ok(last)
    }

    /// The packages of the programs that the tests were built with: made, installed in a fresh Debian, run there and removed.
    fn packages(&self) -> Stage {
        if let Err(reason) = trial::prepare() {
            return left_out(&reason);
        }
        let programs = tested_binary()?;
        let programs = programs.parent().ok_or("the program is in no folder")?.display().to_string();
        deb::run(&["--binaries".to_owned(), programs.clone(), "--try".to_owned()])?;
        oci::run(&["--binaries".to_owned(), programs, "--try".to_owned()])?;
        passed()
    }

    fn cargo_deny(&self) -> Stage {
        if process::find("cargo-deny").is_none() {
            if !(self.root || self.ci) {
                return left_out("cargo-deny is missing: cargo install cargo-deny --locked");
            }
            let mut install = process::cargo();
            install.args(["install", "--quiet", "--locked", "--version", CARGO_DENY, "cargo-deny"]);
            let (outcome, _) = self.command(&mut install)?;
            if outcome != StageResult::Passed {
                return Ok((outcome, Tests::default()));
            }
        }
        println!("left out: advisories: they need a copy of a git repository; `cargo deny check` has them");
        for manifest in SHIPPED {
            let config = ["--manifest-path", manifest, "--config", "deny.toml", "--workspace"];
            let check = ["check", "--hide-inclusion-graph", "bans", "licenses", "sources"];
            let (outcome, _) = self.cargo(&[&["deny"][..], &config, &check].concat())?;
            if outcome != StageResult::Passed {
                return Ok((outcome, Tests::default()));
            }
        }
        Ok((StageResult::Passed, Tests::default()))
    }
}

/// Tests of whole nodes wait more than they compute, so two for each processor run at the same time. Stages run one after the other:
/// with compilers beside it at the lowest priority, a probe of a real switch took more than three times as long, and failed.
fn test_threads() -> String {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    (2 * processors).to_string()
}

/// By which environment variables tests are told what of others' is here.
fn others() -> Vec<(&'static str, PathBuf)> {
    if !python::OTHERS.is_made() {
        return Vec::new();
    }
    let python = (OTHERS_PYTHON, python::OTHERS.tool("python"));
    let topologies = python::OTHERS.data("topohub").map(|data| (TOPOLOGIES, data));
    std::iter::once(python).chain(topologies).collect()
}

/// The binary that the tests of the workspace were built with, which spares building it a second time: on its own its
/// dependencies have fewer features.
fn tested_binary() -> Result<PathBuf, String> {
    let binary = demo::binary_after(&[&TESTS, &["--no-run"][..]].concat())?;
    binary.ok_or("burnet does not compile".to_owned())
}

fn passed() -> Stage {
    Ok((StageResult::Passed, Tests::default()))
}

fn left_out(reason: &str) -> Stage {
    Ok((StageResult::LeftOut(reason.to_owned()), Tests::default()))
}

fn check_rules() -> Stage {
    let found = rules::breaches()?;
    for breach in &found {
        println!("{breach}");
    }
    match found.len() {
        0 => passed(),
        count => Err(format!("{count} breaches of the rules (xtask/src/rules.rs, xtask/src/pages.rs)")),
    }
}
