//! A whole node with the service of rules. Are the switch's rules exactly those that are wanted when the service is killed while it
//! installs them, and does a restart leave those that are there alone?

use emulator::{Emulation, Handle, SwitchOptions, Topology};
use operator::contract::{Answer, FlowView, Question};
use std::net::SocketAddr;
use test_bed::{Bed, Node, kill};

const SETS: usize = 20;
const RULES: usize = 50;

fn start() -> Node {
    start_in(&Bed::new(env!("CARGO_BIN_EXE_burnet")), "127.0.0.1:0".parse().unwrap())
}

fn start_in(bed: &Bed, listen: SocketAddr) -> Node {
    let config = format!(
        "[network]\nservices = ['flows']\n[network.flows]\ngrace_s = 2\naudit_interval_s = 1\n\
         [app.planner]\npath = '{}'\n[app.planner.capabilities]\n'view.read' = true\n'flows.write' = ['table=0,priority=100']\n\
         [app.planner.settings]\nsets = {SETS}\nrules = {RULES}\n",
        bed.example("planner").display()
    );
    bed.node().config(&config).log("info").listen(listen).start()
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

/// The node itself is killed while it installs the rules, at several points of that. Afterwards the switch has exactly what is wanted.
#[test]
fn a_killed_node_leaves_exactly_what_is_wanted() {
    for part in [1, 2, 3] {
        let bed = Bed::new(env!("CARGO_BIN_EXE_burnet"));
        let listen = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let mut node = start_in(&bed, listen);
        let topology: Topology = "single,2".parse().unwrap();
        let network = Emulation::start(&topology, listen, &SwitchOptions::default()).unwrap();
        let enough = |network: &Handle| {
            let entries: usize = network.switch_views().iter().map(|view| view.flow_entries).sum();
            entries >= SETS * RULES * part / 4
        };
        node.wait("some of the rules are there", |_| enough(&network));
        kill(node.pid());
        node.wait_for_end();
        let lines = node.log().matches(INSTALLED).count();
        let node = start_in(&bed, listen);
        node.wait(INSTALLED, |node| node.log().matches(INSTALLED).count() > lines);
        node.wait("the switch has the rules", |node| rules(node).len() == SETS * RULES);
        let names: std::collections::BTreeSet<String> =
            rules(&node).into_iter().map(|rule| rule.matching).collect();
        assert_eq!(names.len(), SETS * RULES);
    }
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
