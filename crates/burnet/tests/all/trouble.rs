//! A whole node with failures, as its operator sees it: records, safe mode, quarantine, and the output of apps.
//!
//! The tests use only the operator's commands.

use std::time::Duration;

use emulator::{SwitchOptions, Versions};
use operator::contract::{Answer, Question};
use rustix::process::Signal;
use serde_json::Value;
use test_bed::{Bed, Node, kill};

fn start(configuration: &str, arguments: &[&str]) -> Node {
    let bed = Bed::new(env!("CARGO_BIN_EXE_burnet"));
    bed.node().config(configuration).args(["--grant-all"]).args(arguments).start()
}

/// What a command of the operator prints, and its exit code.
fn ask(node: &Node, command: &str) -> (Option<i32>, String) {
    let words: Vec<_> = command.split_whitespace().collect();
    let output = node.bed().run(&words);
    let said = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8_lossy(&said).into_owned())
}

fn json(node: &Node, command: &str) -> Value {
    let (_, said) = ask(node, command);
    serde_json::from_str(&said).unwrap_or_default()
}

/// The state of an app: a word, or the beginning of an object.
fn status(node: &Node, app: &str) -> Value {
    let apps = json(node, "app list --json");
    let found = apps.as_array().into_iter().flatten().find(|one| one["status"]["app"] == app);
    found.map(|one| one["status"].clone()).unwrap_or_default()
}

/// The kernel process, if it answers now.
fn kernel(node: &Node) -> Option<u32> {
    match node.ask(&Question::Node)? {
        Answer::Node(view) => Some(view.pid),
        _ => None,
    }
}

fn end(node: &mut Node) {
    node.signal(Signal::TERM);
    node.wait_for_end();
}

fn runs(node: &Node, app: &str) -> bool {
    status(node, app)["state"] == "running"
}

#[test]
fn a_kernel_that_is_killed_again_and_again_comes_back_in_safe_mode_until_the_operator_leaves_it() {
    let configuration =
        "[safe_mode]\napps = ['learning-switch']\n[app.hub]\nzone = 'trusted'\n[app.learning-switch]\n";
    let mut node = start(configuration, &[]);
    let mut killed = Vec::new();
    node.wait("safe mode", |node| {
        if let Some(pid) = kernel(node).filter(|pid| !killed.contains(pid) && killed.len() < 6) {
            kill(pid);
            killed.push(pid);
        }
        json(node, "safe-mode show --json")["reason"].is_string()
    });
    node.wait("the app of the list runs", |node| runs(node, "learning-switch"));
    // The kernel's last end may have found its process starting: then it is ended first.
    node.wait("the other app is held", |node| status(node, "hub")["state"] == "held");
    let (_, list) = ask(&node, "app list");
    assert!(list.contains("held by safe mode") && list.contains("the node is in safe mode since"), "{list}");
    assert_eq!(ask(&node, "safe-mode leave").0, Some(0));
    node.wait("all apps run", |node| runs(node, "hub") && runs(node, "learning-switch"));
    // The first end of the kernel cost it its trust: nobody knows that it was not its doing.
    assert_eq!(status(&node, "hub")["kind"], "process");
    assert_eq!(ask(&node, "safe-mode leave"), (Some(1), "burnet: the node is not in safe mode\n".to_owned()));
    end(&mut node);
    let incidents = json(&node, "incidents --json");
    let whats = incidents.as_array().unwrap().iter().map(|one| one["what"].as_str().unwrap());
    let whats: Vec<_> = whats.filter(|what| ["kernel_ended", "safe_mode"].contains(what)).collect();
    assert_eq!(whats, [["kernel_ended"; 6].as_slice(), &["safe_mode"]].concat());
}

#[test]
fn a_trusted_app_that_takes_the_kernel_down_is_found_and_nobody_else_loses_his_trust() {
    let object = Bed::new(env!("CARGO_BIN_EXE_burnet")).example("libshared_abort.so");
    let configuration =
        format!("[app.hub]\nzone = 'trusted'\n[app.bad]\nzone = 'trusted'\npath = {object:?}\n");
    let node = start(&configuration, &[]);
    node.wait("both run", |node| runs(node, "hub") && runs(node, "bad"));
    let options = SwitchOptions { versions: Versions::Only13, ..SwitchOptions::default() };
    let network = node.network("single,2", &options);
    // Again and again: the first packets may come before the app has said that it wants any.
    node.wait("it is demoted", |node| {
        network.ping_all(Duration::from_millis(200));
        status(node, "bad")["demoted"].is_object()
    });
    node.wait("the other is loaded again", |node| runs(node, "hub"));
    assert_eq!(
        (status(&node, "hub")["kind"].as_str(), status(&node, "hub")["demoted"].is_null()),
        (Some("trusted"), true)
    );
    // It is written down beside all this, when the disk has the time.
    node.wait("the incident is kept", |node| json(node, "incidents show 1 --json").is_object());
    let incident = json(&node, "incidents show 1 --json");
    assert_eq!(incident["finding"]["culprit"], "bad", "{incident}");
    assert_eq!(incident["evidence"]["signal"], 6);
    let (_, text) = ask(&node, "incidents show 1");
    assert!(text.contains("ended while it was calling the trusted app bad"), "{text}");
}

#[test]
fn a_quarantined_app_stays_so_with_the_reason_until_it_is_restarted() {
    let node = start("[app.hub]\n", &[]);
    node.wait("it runs", |node| runs(node, "hub"));
    let output = node.bed().run(&["app", "quarantine", "hub", "--why", "it floods"]);
    assert!(output.status.success());
    node.wait("it is quarantined", |node| status(node, "hub")["state"] == "quarantined");
    let (_, list) = ask(&node, "app list");
    assert!(list.contains("the operator quarantined it: it floods"), "{list}");
    node.wait("it is an incident", |node| ask(node, "incidents").1.contains("quarantined it: it floods"));
    assert_eq!(ask(&node, "app restart hub").0, Some(0));
    node.wait("it runs again", |node| runs(node, "hub"));
    assert_eq!(ask(&node, "app quarantine nobody").0, Some(1));
}

#[test]
fn what_apps_printed_is_there_when_the_node_is_not() {
    let mut node = start("[app.hub]\nsettings.speed = 11\n", &[]);
    node.wait("it is stopped, and not tried again", |node| status(node, "hub")["state"] == "quarantined");
    node.wait("what it printed is kept", |node| ask(node, "app logs hub").1.contains("takes no settings"));
    let status = status(&node, "hub");
    assert_eq!((&status["restarts"], &status["generation"]), (&0.into(), &1.into()), "{status}");
    assert!(ask(&node, "app list").1.contains("the hub takes no settings"));
    node.wait("it is an incident", |node| ask(node, "incidents").1.contains("the hub takes no settings"));
    end(&mut node);
    let (code, log) = ask(&node, "app logs hub --lines 1");
    assert_eq!((code, log.lines().count()), (Some(0), 1), "{log}");
    let (_, all) = ask(&node, "app logs hub");
    assert!(all.lines().next().unwrap().contains("Z 1 "), "{all}");
    let (_, incident) = ask(&node, "incidents show 1");
    assert!(
        incident.contains("what it printed last:\n") && incident.contains("takes no settings"),
        "{incident}"
    );
    assert_eq!(ask(&node, "incidents show 99").0, Some(2));
    assert_eq!(ask(&node, "app logs nobody").0, Some(2));
    assert_eq!(ask(&node, "app logs ../logs/hub").0, Some(2));
}

#[test]
fn a_node_may_begin_in_safe_mode() {
    let node = start(
        "[safe_mode]\napps = ['hub']\n[app.hub]\nzone = 'trusted'\n[app.learning-switch]\n",
        &["--safe-mode"],
    );
    node.wait("the app of the list runs in a process zone", |node| {
        runs(node, "hub") && status(node, "hub")["pid"].is_u64()
    });
    node.wait("the other does not", |node| status(node, "learning-switch")["state"] == "held");
    assert_eq!(ask(&node, "safe-mode leave").0, Some(0));
    node.wait("it is trusted as asked for", |node| {
        runs(node, "hub") && status(node, "hub")["kind"] == "trusted"
    });
    node.wait("the other runs too", |node| runs(node, "learning-switch"));
    assert!(ask(&node, "incidents").1.starts_with("there are no incidents"));
}

#[test]
fn a_list_for_safe_mode_that_names_what_is_not_there_is_refused() {
    let mut node = start("[safe_mode]\napps = ['hubb']\n[app.hub]\n", &[]);
    assert_eq!(node.wait_for_end().code(), Some(2));
}
