//! A whole node whose kernel restarts while its rules stay in the switches. No app may replace a rule that another
//! app owned before.

use emulator::{Handle, SwitchOptions, Versions};
use monitor_channel::{AppState, Verb};
use operator::contract::{Answer, FlowView, Question, RulesBeforeView};
use std::net::TcpListener;
use test_bed::{Bed, Node, kill};

/// What the firewall blocks, and what the other app would let through.
const CONFIGURATION: &str = "[app.firewall.settings]\nblock = ['ip,nw_src=10.0.0.1,nw_dst=10.0.0.4']\n\
    [app.misbehaving.capabilities]\n'rule.write' = true\n'view.read' = true\n\
    [app.misbehaving.settings]\nattack = 'replace-others'\nagain = true\n[app.misbehaving]\n";

/// A node at an address that stays the same when the kernel is started again.
fn start() -> Node {
    let bed = Bed::new(env!("CARGO_BIN_EXE_burnet"));
    let configuration = format!("{CONFIGURATION}path = '{}'\n", bed.example("misbehaving").display());
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let node = bed.node().config(&configuration).listen(address).start();
    node.wait("both apps run", |node| is(node, "firewall", "running") && is(node, "misbehaving", "running"));
    node
}

fn say(node: &Node, app: &str, verb: Verb) {
    let told = node.ask(&Question::App { app: app.to_owned(), verb, why: None });
    assert_eq!(told, Some(Answer::Done));
}

fn is(node: &Node, app: &str, state: &str) -> bool {
    node.apps().iter().any(|view| {
        view.status.app == app
            && match view.status.state {
                AppState::Running => state == "running" && view.commands > 0,
                AppState::Stopped => state == "stopped",
                _ => false,
            }
    })
}

/// What the only switch said of the rules that it had.
fn rules_before(node: &Node) -> Option<RulesBeforeView> {
    node.switches().first()?.rules_before
}

/// The rules of apps in the only switch.
fn rules(node: &Node) -> Vec<FlowView> {
    let Some(Answer::Flows(switches)) = node.ask(&Question::Flows { datapath: None }) else {
        return Vec::new();
    };
    let rules = switches.into_iter().flat_map(|switch| switch.flows);
    rules.filter(|flow| flow.owner != "kernel").collect()
}

fn network(node: &Node, versions: Versions) -> Handle {
    node.network("single,2", &SwitchOptions { versions, ..SwitchOptions::default() })
}

/// The firewall's one rule, with nothing that lets a packet through.
fn is_the_firewalls(rules: &[FlowView]) -> bool {
    matches!(rules, [rule] if rule.owner == "firewall" && rule.actions == "drop")
}

fn check(versions: Versions) {
    let node = start();
    say(&node, "misbehaving", Verb::Stop);
    node.wait("the other app is stopped", |node| is(node, "misbehaving", "stopped"));
    let network = network(&node, versions);
    let known = |of_apps| Some(RulesBeforeView::Known { of_apps });
    node.wait("the firewall's rule is in the switch", |node| is_the_firewalls(&rules(node)));
    node.wait("the switch is asked once", |node| {
        matches!(rules_before(node), Some(RulesBeforeView::Known { .. }))
    });

    // The owner stays stopped with the next kernel, so that it does not add its rule again.
    say(&node, "firewall", Verb::Stop);
    node.wait("the firewall is stopped", |node| is(node, "firewall", "stopped"));
    let killed = node.kernel_pid();
    kill(killed);
    node.wait("another kernel runs", |node| node.kernel_pid() != killed);
    node.wait("the switch has told it of the rule", |node| rules_before(node) == known(1));
    assert!(is_the_firewalls(&rules(&node)), "{:?}", rules(&node));

    say(&node, "misbehaving", Verb::Start);
    node.wait("the other app is refused", |node| node.app("misbehaving").refusals >= 2);
    assert!(is_the_firewalls(&rules(&node)), "{:?}", rules(&node));
    assert!(is(&node, "firewall", "stopped"));
    assert_eq!(network.counters().errors, 0, "the switch refused something");
}

#[test]
fn a_rule_that_was_there_before_the_kernel_is_still_its_owners() {
    check(Versions::Only13);
}

#[test]
fn so_it_is_in_openflow_1_0() {
    check(Versions::Only10);
}

#[test]
fn switches_that_had_nothing_are_as_they_were() {
    let node = start();
    say(&node, "firewall", Verb::Stop);
    node.wait("the firewall is stopped", |node| is(node, "firewall", "stopped"));
    let network = network(&node, Versions::Both);
    node.wait("the switch has said", |node| {
        matches!(rules_before(node), Some(RulesBeforeView::Known { .. }))
    });
    node.wait(
        "who adds first has the rule",
        |node| matches!(&rules(node)[..], [rule] if rule.owner == "misbehaving"),
    );
    assert_eq!(network.counters().errors, 0, "the switch refused something");
}
