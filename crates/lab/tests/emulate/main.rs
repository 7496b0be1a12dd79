//! `burnet emulate` as an operator calls it, against a node.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should end")]

mod agents;
mod examples;
mod node;
mod pcap;
mod profiles;

use node::{Node, burnet, complained, said};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::process::Stdio;

/// Refused in one sentence with exit code 2, before anything runs.
fn refused(arguments: &[&str], words: &str) {
    let output = burnet().arg("emulate").args(arguments).output().unwrap();
    let complained = complained(&output);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {complained}");
    assert!(complained.starts_with("burnet: ") && complained.contains(words), "{complained}");
    assert_eq!((complained.lines().count(), said(&output).as_str()), (1, ""), "{complained}");
}

#[test]
fn what_cannot_be_is_refused_before_it_starts() {
    refused(&["--topo", "square,4"], "'square' is not one of them");
    refused(&["--topo", "single,16385"], "the limit is 16384");
    refused(&["--topo", "/nowhere.graphml"], "/nowhere.graphml: it cannot be read");
    refused(&["--topo", "mine", "--custom", "/nowhere.py"], "/nowhere.py: it cannot be read");
    refused(&["--topo", "single,1", "--ping-all"], "needs two hosts: single,1 has 1 host");
    refused(&["--topo", "single,1002", "--ping-all"], "1003002 pings, and the limit is 1000000");
}

#[test]
fn a_controller_that_is_not_there_is_named_and_nothing_came_true() {
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let arguments = ["emulate", "--controller", &nobody, "--ping-all", "--wait", "1"];
    let output = burnet().args(arguments).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let last = complained(&output).lines().last().unwrap().to_owned();
    assert!(last.starts_with("burnet: after 1 s 3 switches are not connected"), "{last}");
    assert!(last.contains("Connection refused"), "{last}");
}

#[test]
fn all_hosts_reach_all_and_the_summary_says_so() {
    let node = Node::start();
    let output = node.emulate(&["--topo", "linear,3", "--ping-all"]);
    let text = said(&output);
    assert_eq!(output.status.code(), Some(0), "{text}{}", complained(&output));
    assert!(text.starts_with("linear,3: 3 switches, 3 hosts, 5 links\n"), "{text}");
    assert!(text.contains("0% dropped (6/6 received)"), "{text}");
}

#[test]
fn a_fat_tree_is_reached_all_over_along_a_spanning_tree() {
    let node = Node::start();
    let remark = "fattree,4 has loops: floods follow a spanning tree, which blocks 13 of 48 links (--spanning-tree off";
    for (arguments, remarks) in [
        (&["--topo", "fattree,4", "--ping-all"][..], 1),
        (&["--topo", "fattree,4", "--spanning-tree", "--version", "1.0", "--ping-all"], 0),
    ] {
        let output = node.emulate(arguments);
        assert_eq!(output.status.code(), Some(0), "{}{}", said(&output), complained(&output));
        assert!(said(&output).contains("0% dropped (240/240 received)"), "{}", said(&output));
        assert_eq!(complained(&output).matches(remark).count(), remarks, "{}", complained(&output));
    }
}

/// Nobody has to answer for the remark to be there.
#[test]
fn a_spanning_tree_is_kept_of_itself_only_where_it_is_needed() {
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let remarks = |arguments: &[&str]| {
        let always = ["emulate", "--controller", &nobody, "--ping-all", "--wait", "1"];
        let output = burnet().args(always).args(arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{}", complained(&output));
        complained(&output).matches("has loops").count()
    };
    assert_eq!(remarks(&["--topo", "ring,3"]), 1);
    assert_eq!(remarks(&["--topo", "ring,3", "--spanning-tree", "auto"]), 1);
    assert_eq!(remarks(&["--topo", "ring,3", "--spanning-tree", "on"]), 0);
    assert_eq!(remarks(&["--topo", "ring,3", "--spanning-tree", "off"]), 0);
    assert_eq!(remarks(&["--topo", "tree,2"]), 0);
}

#[test]
fn the_summary_is_json_where_it_is_asked_for() {
    let node = Node::start();
    for version in ["1.0", "1.3"] {
        let arguments = ["--topo", "tree,2", "--version", version, "--ping-all", "--json"];
        let output = node.emulate(&arguments);
        let summary: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(output.status.code(), Some(0), "{summary}");
        assert_eq!(summary["passed"], true);
        assert_eq!((&summary["pings"]["sent"], &summary["pings"]["received"]), (&12.into(), &12.into()));
        assert!(summary["counters"]["flow_mods"].as_u64().unwrap() > 0, "{summary}");
    }
}

/// Runs a network until it prints a line with these words, and ends it as Ctrl-C does. Returns the lines after that one.
fn until(words: &str, node: &Node, arguments: &[&str]) -> Vec<String> {
    let mut command = burnet();
    command.args(["emulate", "--topo", "single,2", "--controller", &node.address]).args(arguments);
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(|line| line.unwrap());
    assert!(lines.any(|line| line.contains(words)), "it ended before {words}");
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let summary = lines.collect();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    summary
}

#[test]
fn without_a_task_it_shows_what_happens_until_it_is_told_to_stop() {
    let summary = until("of:0000000000000001 connected, OpenFlow 1.3", &Node::start(), &[]);
    assert!(summary.iter().any(|line| line == "single,2: 1 switches, 2 hosts, 2 links"), "{summary:?}");
}

#[test]
fn after_its_pings_it_stays_up_if_it_is_asked_to() {
    let node = Node::start();
    let summary = until("it stays up until Ctrl-C", &node, &["--ping-all", "--stay"]);
    assert!(summary.iter().any(|line| line.contains("0% dropped (2/2 received)")), "{summary:?}");
    let alone = burnet().args(["emulate", "--stay"]).output().unwrap();
    assert_eq!(alone.status.code(), Some(2), "{}", complained(&alone));
}
