//! The scenarios under examples/, each with the node that its folder configures. Also a scenario that fails.

use super::node::{Node, complained, said};
use serde_json::Value;
use std::path::{Path, PathBuf};

fn folder(example: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(example)
}

/// Plays an example against a node of its own; every expectation has to hold.
fn check(example: &str) {
    let folder = folder(example);
    let node = Node::start_with(&["--config", &folder.join("burnet.toml").display().to_string()]);
    let scenario = folder.join("scenario.toml").display().to_string();
    let output = node.emulate(&["--scenario", &scenario, "--json"]);
    assert_eq!(output.status.code(), Some(0), "{}{}", said(&output), complained(&output));
    let summary: Value = serde_json::from_slice(&output.stdout).unwrap();
    let expectations = summary["expectations"].as_array().unwrap();
    assert!(expectations.iter().all(|one| one["held"] == true), "{summary}");
    let text = std::fs::read_to_string(folder.join("scenario.toml")).unwrap();
    assert_eq!(expectations.len(), text.matches("[[expect]]").count());
}

#[test]
fn a_link_fails() {
    check("link-failure");
}

#[test]
fn a_host_moves() {
    check("host-move");
}

#[test]
fn two_flows_share_a_link() {
    check("shared-bottleneck");
}

#[test]
fn switches_have_profiles() {
    check("switch-profiles");
}

#[test]
fn every_example_is_a_test() {
    let tested = ["host-move", "link-failure", "shared-bottleneck", "switch-profiles"];
    let entries = std::fs::read_dir(folder("")).unwrap().map(|entry| entry.unwrap());
    let folders = entries.filter(|entry| entry.path().join("scenario.toml").is_file());
    let mut names: Vec<String> = folders.map(|entry| entry.file_name().into_string().unwrap()).collect();
    names.sort();
    assert_eq!(names, tested);
}

#[test]
fn an_expectation_that_does_not_hold_is_said_and_decides_the_exit_code() {
    let node = Node::start();
    let scenario = std::env::temp_dir().join(format!("burnet-scenario-{}.toml", std::process::id()));
    let text = "topology = \"linear,2\"\n[[event]]\nat = \"0s\"\nlink_down = \"s1-s2\"\n\
                [[expect]]\nping = { from = \"h1\", to = \"h2\" }\nwithin = \"200ms\"\n\
                [[expect]]\nconnected = 2\n";
    std::fs::write(&scenario, text).unwrap();
    let output = node.emulate(&["--scenario", &scenario.display().to_string()]);
    std::fs::remove_file(scenario).unwrap();
    let text = said(&output);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(
        text.contains("FAILS       line 5: h1 reaches h2 within 0.2 s from 0 s on: not reached"),
        "{text}"
    );
    assert!(text.ends_with("1 of 2 expectations hold\n"), "{text}");
}

#[test]
fn a_scenario_in_virtual_time_wants_no_controller_and_repeats() {
    let scenario = std::env::temp_dir().join(format!("burnet-virtual-{}.toml", std::process::id()));
    let text = "topology = \"ring,4\"\ntime = \"virtual\"\nspanning_tree = true\nlinks = \"delay=2ms,loss=1%\"\n\
                [[event]]\nat = \"60min\"\nlink_down = \"s1-s2\"\n\
                [[expect]]\nat = \"61min\"\nping = { from = \"h1\", to = \"h2\" }\nwithin = \"10s\"\n";
    std::fs::write(&scenario, text).unwrap();
    let play = || {
        let mut command = super::node::burnet();
        command.args(["emulate", "--json", "--scenario"]).arg(&scenario).output().unwrap()
    };
    let (once, again) = (play(), play());
    std::fs::remove_file(&scenario).unwrap();
    assert_eq!(once.status.code(), Some(0), "{}{}", said(&once), complained(&once));
    assert_eq!(said(&once), said(&again));
    assert!(said(&once).contains("\"digest\": \""), "{}", said(&once));
}
