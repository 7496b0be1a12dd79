//! A whole node with the service of rules. Are the switch's rules exactly those that are wanted when the service is killed while it
//! installs them, and does a restart leave those that are there alone?

#![allow(clippy::unwrap_used, reason = "a test may")]

use emulator::SwitchOptions;
use operator::contract::{Answer, FlowView, Question};
use test_bed::{Bed, Node, kill};

const SETS: usize = 20;
const RULES: usize = 50;

fn start() -> Node {
    let bed = Bed::new(env!("CARGO_BIN_EXE_burnet"));
    let config = format!(
        "[network]\nservices = ['flows']\n[network.flows]\ngrace_s = 2\naudit_interval_s = 1\n\
         [app.planner]\npath = '{}'\n[app.planner.capabilities]\n'view.read' = true\n'flows.write' = ['table=0,priority=100']\n\
         [app.planner.settings]\nsets = {SETS}\nrules = {RULES}\n",
        bed.example("planner").display()
    );
    bed.node().config(&config).log("info").start()
}

/// The rules of the service in the switch.
fn rules(node: &Node) -> Vec<FlowView> {
    let Some(Answer::Flows(switches)) = node.ask(&Question::Flows { datapath: None }) else {
        return Vec::new();
    };
    switches.into_iter().flat_map(|switch| switch.flows).filter(|flow| flow.owner == "flows").collect()
}

const INSTALLED: &str = "all 20 sets are installed";

fn wait_for_another(node: &Node) {
    let before = node.log().matches(INSTALLED).count();
    node.wait(INSTALLED, |node| node.log().matches(INSTALLED).count() > before);
}

#[test]
fn a_killed_service_leaves_exactly_what_is_wanted() {
    let node = start();
    let network = node.network("single,2", &SwitchOptions::default());
    node.wait("some rules are there", |node| !rules(node).is_empty());
    kill(node.pid_of("flows").unwrap());
    node.wait_for_line(INSTALLED);
    node.wait("the switch has the rules", |node| rules(node).len() == SETS * RULES);
    // At rest, a restart touches no rule: each goes on to count its time.
    node.wait("the rules are old", |node| rules(node).iter().all(|rule| rule.duration_s > 2.0));
    kill(node.pid_of("flows").unwrap());
    wait_for_another(&node);
    let after = rules(&node);
    assert_eq!(after.len(), SETS * RULES);
    let youngest = after.iter().map(|rule| rule.duration_s).fold(f64::MAX, f64::min);
    assert!(youngest > 2.0, "a rule was added again: it is {youngest} s old");
    drop(network);
}
