//! A node that reads its configuration again while switches are connected: what changes, what stays, and the effect
//! of an invalid file.

use emulator::{Handle, SwitchOptions};
use monitor_channel::AppState;
use operator::contract::{AppView, ReloadView, SwitchView};
use rustix::process::Signal;
use std::collections::BTreeMap;
use std::time::Duration;
use test_bed::{Bed, Node, PATIENCE, kill};

/// A node whose apps all run.
fn start(configuration: &str) -> Node {
    let node = Bed::new(env!("CARGO_BIN_EXE_burnet")).node().config(configuration).start_ready();
    node.wait("its apps run", |node| node.apps().iter().all(|app| app.status.state == AppState::Running));
    node
}

/// With another configuration.
fn reload(node: &Node, configuration: &str) -> Result<ReloadView, String> {
    node.bed().file("burnet.toml", configuration);
    node.reload()
}

fn apps(node: &Node) -> BTreeMap<String, AppView> {
    node.apps().into_iter().map(|app| (app.status.app.clone(), app)).collect()
}

/// The process of each app.
fn pids(node: &Node) -> BTreeMap<String, Option<u32>> {
    apps(node).into_iter().map(|(name, app)| (name, app.status.pid)).collect()
}

/// Where each switch connects from: another session has another port.
fn sessions_of(node: &Node) -> Vec<(flow::DatapathId, String)> {
    node.switches().into_iter().map(|SwitchView { datapath, peer, .. }| (datapath, peer)).collect()
}

fn connect(node: &Node, topology: &str) -> Handle {
    node.network(topology, &SwitchOptions::default())
}

const ALL: &str = "'packet.in' = true\n'packet.out' = true\n'rule.write' = true\n'view.read' = true\n";

/// A learning switch that may do this.
fn learning(capabilities: &str) -> String {
    format!("[app.learning-switch.capabilities]\n{capabilities}")
}

#[test]
fn only_the_difference_changes_and_no_session_ends() {
    let firewall = "[app.firewall.capabilities]\n'rule.write' = true\n'view.read' = true\n";
    let node = start(&format!("{}{firewall}", learning(ALL)));
    let _network = connect(&node, "linear,8");
    let (sessions, kernel, before) = (sessions_of(&node), node.view().pid, pids(&node));
    assert_eq!(sessions.len(), 8);

    let hub = "[app.hub.capabilities]\n'view.read' = true\n";
    let timers = "[southbound]\necho_timeout_ms = 20000\nlisten = ['127.0.0.1:1']\nworkers = 2\n";
    let view = reload(&node, &format!("{timers}{}{hub}", learning(ALL))).unwrap();
    let done = [
        "southbound.echo_timeout_ms changed, at once",
        "app hub is added",
        "app firewall ends, and is removed from this node",
    ];
    assert_eq!(view.done, done);
    // The command line says where it listens, and overrides the file.
    assert_eq!(view.left.len(), 1, "{view:?}");
    assert!(
        view.left[0]
            .starts_with("southbound.workers differs in the configuration; it changes after a restart"),
        "{view:?}"
    );
    node.wait("the hub runs and the firewall is gone", |node| {
        let apps = apps(node);
        !apps.contains_key("firewall") && apps.get("hub").is_some_and(|hub| hub.commands > 0)
    });
    assert_eq!(pids(&node).get("learning-switch"), before.get("learning-switch"));

    let limits = "[app.learning-switch.limits]\nopen_files = 300\n";
    let view = reload(&node, &format!("{}{hub}{limits}", learning(ALL))).unwrap();
    assert!(view.done.contains(&"app learning-switch restarts (limits changed)".to_owned()), "{view:?}");
    let hub_pid = pids(&node).get("hub").copied();
    node.wait("the learning switch is another process", |node| {
        let app = &apps(node)["learning-switch"];
        app.status.state == AppState::Running
            && app.status.pid != before["learning-switch"]
            && app.commands > 0
    });
    assert_eq!(pids(&node).get("hub").copied(), hub_pid);
    assert_eq!((sessions_of(&node), node.view().pid), (sessions, kernel));
    let view = reload(&node, &format!("{}{hub}{limits}", learning(ALL))).unwrap();
    assert_eq!(view, ReloadView::default());
}

#[test]
fn what_an_app_may_do_is_wider_and_narrower_at_once_with_two_workers() {
    let workers = "[southbound]\nworkers = 2\n";
    let node = start(&format!("{workers}{}", learning(ALL)));
    let before = pids(&node);
    let narrow = "'packet.in' = { match = ['arp'] }\n'packet.out' = { ports = [9999] }\n'view.read' = true\n";
    let view = reload(&node, &format!("{workers}{}", learning(narrow))).unwrap();
    assert_eq!(view.done, ["app learning-switch gets other capabilities or quotas, immediately"]);
    let network = connect(&node, "linear,4");
    assert!(!network.ping_all(Duration::from_secs(2)).is_complete());
    node.wait("it is refused", |node| apps(node)["learning-switch"].refusals > 0);
    drop(network);
    node.wait("the switches are gone", |node| node.view().switches == 0);
    reload(&node, &format!("{workers}{}", learning(ALL))).unwrap();
    let report = connect(&node, "linear,4").ping_all(PATIENCE);
    assert!(report.is_complete(), "{report}");
    assert_eq!(pids(&node), before, "no app was started anew");
}

#[test]
fn sections_of_switches_and_profiles_that_differ_are_named() {
    let profile = |more: &str| {
        format!(
            "schema = 1\nname = 'slow'\nabout = 'A test.'\n{more}\nsource.'*' = {{ assumed = 'a test' }}\n"
        )
    };
    let node = start("[app.hub]\n");
    let file = node.bed().file("slow.toml", &profile(""));
    let text = "[app.hub]\n[switch.'*']\nprofile = 'slow.toml'\n";
    assert_eq!(reload(&node, text).unwrap().done, ["[switch.\"*\"] changed, at once"]);
    assert_eq!(reload(&node, text).unwrap(), ReloadView::default());
    node.bed().file("slow.toml", &profile("cpu.add = { service_us = 25000 }"));
    let done = reload(&node, text).unwrap().done;
    assert_eq!(done, [format!("the profile {} changed, at once", file.display())]);
    node.bed().file("slow.toml", &profile("cpu.add = { service_us = -1 }"));
    let why = reload(&node, text).unwrap_err();
    assert!(why.contains("slow.toml") && why.contains("4"), "{why}");
    node.bed().file("slow.toml", &profile("cpu.add = { service_us = 25000 }"));
    assert_eq!(reload(&node, text).unwrap(), ReloadView::default(), "the fault has changed nothing");
}

#[test]
fn a_bad_file_changes_nothing_and_says_what_is_wrong_and_where() {
    let good = learning(ALL);
    let node = start(&good);
    let _network = connect(&node, "linear,2");
    let (sessions, before) = (sessions_of(&node), pids(&node));
    let refused = |text: &str, expected: &str| {
        let why = reload(&node, text).unwrap_err();
        assert!(why.contains(expected), "{text}: {why}");
    };
    refused(
        &format!("{good}[southbound]\necho_timeout = 3\n"),
        "burnet.toml, line 7: unknown key `echo_timeout`",
    );
    refused(
        "[app.hub]\n[southbound]\necho_interval_ms = 9000\necho_timeout_ms = 8000\n",
        "must be less than",
    );
    refused("[app.nowhere]\n", "there is no built-in app nowhere");
    refused("[app.hub]\npath = '/nowhere/hub'\n", "/nowhere/hub cannot be used");
    refused("[", "burnet.toml, line 1");
    assert_eq!((sessions_of(&node), pids(&node)), (sessions, before));
    assert_eq!(reload(&node, &good).unwrap(), ReloadView::default());
}

#[test]
fn sighup_reads_the_configuration_anew_and_sigterm_still_ends_the_node() {
    let mut node = start(&learning(ALL));
    let before = pids(&node);
    node.bed().file("burnet.toml", &format!("{}[app.hub]\n", learning(ALL)));
    node.signal(Signal::HUP);
    node.wait("the hub runs", |node| apps(node).contains_key("hub"));
    assert_eq!(pids(&node).get("learning-switch"), before.get("learning-switch"));
    node.signal(Signal::TERM);
    assert_eq!(node.wait_for_end().code(), Some(0));
}

#[test]
fn a_kernel_that_is_started_again_has_the_configuration_that_was_read_last() {
    let node = start(&learning(ALL));
    reload(&node, &format!("[southbound]\nmax_connections = 1\n{}", learning(ALL))).unwrap();
    let kernel = node.view().pid;
    kill(kernel);
    node.wait("another kernel answers", |node| node.kernel_pid() != kernel);
    let address = node.address();
    let first = std::net::TcpStream::connect(address).unwrap();
    node.wait("the first is there", |node| node.view().connections == 1);
    let mut second = std::net::TcpStream::connect(address).unwrap();
    second.set_read_timeout(Some(PATIENCE)).unwrap();
    let closed = std::io::Read::read(&mut second, &mut [0; 8]).map_or(true, |count| count == 0);
    assert!(closed, "one connection is all that it takes");
    drop(first);
}
