//! A switch of ours behind sockets, with a profile from a seed: the probe finds what it does not know.

use probe::recovery::{Line, compare, hidden};
use profile::{Profile, Provenance, Sources};
use std::fs;
use system_tests::node::binary;
use system_tests::sandbox::Sandbox;
use system_tests::{Result, scenario_that_waits};

use super::setup::{Probing, expect, found, is_played, is_rate_played, test_interfaces};

/// Some parts, so that each switch takes about a minute.
const PARTS: &str = "rates,set-up,table";
/// What these parts measure.
const VALUES: [&str; 8] = [
    "table, rules",
    "when full",
    "add, µs",
    "packet-in service, µs",
    "packet-out service, µs",
    "packet-in limit",
    "packet-in limit, 1/s",
    "software table",
];

/// How far the size of a table that evicts may be from the truth, as a share.
const LIMIT: f64 = 0.05;

/// Whether a value is near enough. Names, and sizes that are exact, must be the same. Times are only as exact as the machine is free.
fn is_near(line: &Line) -> bool {
    let (Ok(truth), Ok(found)) = (line.truth.parse::<f64>(), line.found.parse::<f64>()) else {
        return line.is_right();
    };
    let is_near = match line.what {
        what if what.ends_with("µs") => is_played(found, truth),
        what if what.ends_with("1/s") => is_rate_played(found, truth),
        _ => line.limit > 0.0 && (truth - found).abs() <= LIMIT * truth.abs(),
    };
    is_near || line.is_right()
}

/// Our switch with this profile, which ends with the sandbox.
fn emulate(sandbox: &Sandbox, profile: &Profile) -> Result<()> {
    let sources = Sources::everything(Provenance::Assumed("from a seed".to_owned()));
    let profile = Profile { about: "A switch that does not exist.".to_owned(), sources, ..profile.clone() };
    let file = sandbox.folder().join("hidden.toml");
    let text = profile.to_toml().map_err(|bad| bad.to_string())?;
    fs::write(&file, text).map_err(|error| format!("cannot write {}: {error}", file.display()))?;
    let mut command = sandbox.command("sh");
    command.args(["-c", "exec \"$0\" \"$@\""]).arg(binary()?).args(["emulate", "--profile"]).arg(&file);
    command.args(["--bind", "s1-eth1=1", "--bind", "s1-eth2=2", "--controller", "127.0.0.1:6653"]);
    command.stdout(sandbox.log("switch")?).stderr(sandbox.log("switch")?);
    command.spawn().map(drop).map_err(|error| format!("cannot run the switch: {error}"))
}

fn recovered(seed: u64) {
    let name = format!("probed-hidden-{seed}");
    scenario_that_waits(&name, |sandbox| {
        test_interfaces(sandbox)?;
        let truth = hidden(seed);
        let mut probing = Probing::start(sandbox, &["--measure", PARTS])?;
        probing.wait_for("waiting for the switch")?;
        emulate(sandbox, &truth)?;
        let code = probing.finish()?;
        println!("{name}: {}", sandbox.read_log("report"));
        expect(code == 0, "the exit code", &code)?;
        let lines = compare(&truth, &found(sandbox)?);
        let lines = lines.iter().filter(|line| VALUES.contains(&line.what));
        let wrong: Vec<_> = lines.filter(|line| !is_near(line)).collect();
        expect(wrong.is_empty(), "values that are not near enough", &wrong)
    });
}

#[test]
#[ignore = "needs root"]
fn a_hidden_switch_that_refuses_is_found() {
    recovered(20);
}

#[test]
#[ignore = "needs root"]
fn a_hidden_switch_that_evicts_is_found() {
    recovered(6);
}
