//! A node whose configuration is read anew while switches are connected: what changes, what stays, and what a bad file does.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should end")]

use emulator::{Emulation, Handle, SwitchOptions, Topology};
use monitor::AppState;
use operator::client;
use operator::contract::{Answer, AppView, NodeView, Question, ReloadView, SwitchView};
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// How long anything may take that a test waits for. It never passes by waiting.
const PATIENCE: Duration = Duration::from_secs(60);

/// A node with a configuration of its own, in a folder that is gone when the test is.
struct Node {
    child: Child,
    folder: PathBuf,
}

impl Node {
    fn start(configuration: &str) -> Node {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("burnet-reload-{}-{number}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("burnet.toml"), configuration).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_burnet"));
        command.args(["run", "--listen", "127.0.0.1:0", "--log", "error", "--die-with-parent", "--config"]);
        command.arg(folder.join("burnet.toml")).arg("--socket").arg(folder.join("n.sock"));
        command.env("BURNET_STATE", folder.join("state")).env_remove("BURNET_LOG").stdin(Stdio::null());
        let node = Node { child: command.spawn().unwrap(), folder };
        node.wait("its apps run", |node| {
            let apps = node.apps();
            !apps.is_empty()
                && apps.values().all(|app| app.status.state == AppState::Running && app.commands > 0)
        });
        node
    }

    fn ask(&self, question: &Question) -> Option<Answer> {
        client::ask(&self.folder.join("n.sock"), question).ok()
    }

    /// With another configuration.
    fn reload(&self, configuration: &str) -> Result<ReloadView, String> {
        fs::write(self.folder.join("burnet.toml"), configuration).unwrap();
        match self.ask(&Question::Reload { app: None }) {
            Some(Answer::Reloaded(view)) => Ok(view),
            Some(Answer::Refused(why)) => Err(why),
            other => panic!("{other:?}"),
        }
    }

    fn apps(&self) -> BTreeMap<String, AppView> {
        match self.ask(&Question::Apps) {
            Some(Answer::Apps(apps)) => apps.into_iter().map(|app| (app.status.app.clone(), app)).collect(),
            _ => BTreeMap::new(),
        }
    }

    /// The process of each app.
    fn pids(&self) -> BTreeMap<String, Option<u32>> {
        self.apps().into_iter().map(|(name, app)| (name, app.status.pid)).collect()
    }

    fn view(&self) -> NodeView {
        match self.ask(&Question::Node) {
            Some(Answer::Node(view)) => view,
            other => panic!("{other:?}"),
        }
    }

    /// Where each switch connects from: another session has another port.
    fn sessions(&self) -> Vec<(flow::DatapathId, String)> {
        match self.ask(&Question::Switches) {
            Some(Answer::Switches(switches)) => {
                switches.into_iter().map(|SwitchView { datapath, peer, .. }| (datapath, peer)).collect()
            }
            other => panic!("{other:?}"),
        }
    }

    fn network(&self, topology: &str) -> Handle {
        let topology: Topology = topology.parse().unwrap();
        let address = self.view().listen[0].parse().unwrap();
        let network = Emulation::start(&topology, address, &SwitchOptions::default()).unwrap();
        network.wait_connected(PATIENCE).unwrap();
        network
    }

    fn wait(&self, what: &str, until: impl Fn(&Node) -> bool) {
        let began = Instant::now();
        while !until(self) {
            assert!(began.elapsed() < PATIENCE, "not so in time: {what}; {:?}", self.apps());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_raw(i32::try_from(self.child.id()).unwrap()).unwrap();
        rustix::process::kill_process(pid, signal).unwrap();
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            self.signal(rustix::process::Signal::TERM);
        }
        let _ = self.child.wait();
        let _ = fs::remove_dir_all(&self.folder);
    }
}

const ALL: &str = "'packet.in' = true\n'packet.out' = true\n'rule.write' = true\n'view.read' = true\n";

/// A learning switch that may do this.
fn learning(capabilities: &str) -> String {
    format!("[app.learning-switch.capabilities]\n{capabilities}")
}

#[test]
fn only_the_difference_changes_and_no_session_ends() {
    let firewall = "[app.firewall.capabilities]\n'rule.write' = true\n'view.read' = true\n";
    let node = Node::start(&format!("{}{firewall}", learning(ALL)));
    let _network = node.network("linear,8");
    let (sessions, kernel, before) = (node.sessions(), node.view().pid, node.pids());
    assert_eq!(sessions.len(), 8);

    let hub = "[app.hub.capabilities]\n'view.read' = true\n";
    let timers = "[southbound]\necho_timeout_ms = 20000\nlisten = ['127.0.0.1:1']\nworkers = 2\n";
    let view = node.reload(&format!("{timers}{}{hub}", learning(ALL))).unwrap();
    let done = [
        "southbound.echo_timeout_ms is another at once",
        "app hub is added",
        "app firewall ends, and is no app of this node any more",
    ];
    assert_eq!(view.done, done);
    // Where it listens is said on the command line, which goes before the file.
    assert_eq!(view.left.len(), 1, "{view:?}");
    assert!(
        view.left[0].starts_with("southbound.workers is another in the configuration, and stays"),
        "{view:?}"
    );
    node.wait("the hub runs and the firewall is gone", |node| {
        let apps = node.apps();
        !apps.contains_key("firewall") && apps.get("hub").is_some_and(|hub| hub.commands > 0)
    });
    assert_eq!(node.pids().get("learning-switch"), before.get("learning-switch"));

    let limits = "[app.learning-switch.limits]\nopen_files = 300\n";
    let view = node.reload(&format!("{}{hub}{limits}", learning(ALL))).unwrap();
    assert!(
        view.done.contains(&"app learning-switch is started anew (limits changed)".to_owned()),
        "{view:?}"
    );
    let hub_pid = node.pids().get("hub").copied();
    node.wait("the learning switch is another process", |node| {
        let app = &node.apps()["learning-switch"];
        app.status.state == AppState::Running
            && app.status.pid != before["learning-switch"]
            && app.commands > 0
    });
    assert_eq!(node.pids().get("hub").copied(), hub_pid);
    assert_eq!((node.sessions(), node.view().pid), (sessions, kernel));
    let view = node.reload(&format!("{}{hub}{limits}", learning(ALL))).unwrap();
    assert_eq!(view, ReloadView::default());
}

#[test]
fn what_an_app_may_do_is_wider_and_narrower_at_once_with_two_workers() {
    let workers = "[southbound]\nworkers = 2\n";
    let node = Node::start(&format!("{workers}{}", learning(ALL)));
    let before = node.pids();
    let narrow = "'packet.in' = { match = ['arp'] }\n'packet.out' = { ports = [9999] }\n'view.read' = true\n";
    let view = node.reload(&format!("{workers}{}", learning(narrow))).unwrap();
    assert_eq!(view.done, ["app learning-switch has other capabilities or quotas, at once"]);
    let network = node.network("linear,4");
    assert!(!network.ping_all(Duration::from_secs(2)).is_complete());
    node.wait("it is refused", |node| node.apps()["learning-switch"].refusals > 0);
    drop(network);
    node.wait("the switches are gone", |node| node.view().switches == 0);
    node.reload(&format!("{workers}{}", learning(ALL))).unwrap();
    let report = node.network("linear,4").ping_all(PATIENCE);
    assert!(report.is_complete(), "{report}");
    assert_eq!(node.pids(), before, "no app was started anew");
}

#[test]
fn a_bad_file_changes_nothing_and_says_what_is_wrong_and_where() {
    let good = learning(ALL);
    let node = Node::start(&good);
    let _network = node.network("linear,2");
    let (sessions, before) = (node.sessions(), node.pids());
    let refused = |text: &str, expected: &str| {
        let why = node.reload(text).unwrap_err();
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
    assert_eq!((node.sessions(), node.pids()), (sessions, before));
    assert_eq!(node.reload(&good).unwrap(), ReloadView::default());
}

#[test]
fn sighup_reads_the_configuration_anew_and_sigterm_still_ends_the_node() {
    let mut node = Node::start(&learning(ALL));
    let before = node.pids();
    fs::write(node.folder.join("burnet.toml"), format!("{}[app.hub]\n", learning(ALL))).unwrap();
    node.signal(rustix::process::Signal::HUP);
    node.wait("the hub runs", |node| node.apps().contains_key("hub"));
    assert_eq!(node.pids().get("learning-switch"), before.get("learning-switch"));
    node.signal(rustix::process::Signal::TERM);
    assert_eq!(node.child.wait().unwrap().code(), Some(0));
}

#[test]
fn a_kernel_that_is_started_again_has_the_configuration_that_was_read_last() {
    let node = Node::start(&learning(ALL));
    node.reload(&format!("[southbound]\nmax_connections = 1\n{}", learning(ALL))).unwrap();
    let kernel = node.view().pid;
    let pid = rustix::process::Pid::from_raw(i32::try_from(kernel).unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    node.wait(
        "another kernel answers",
        |node| matches!(node.ask(&Question::Node), Some(Answer::Node(view)) if view.pid != kernel),
    );
    let address: std::net::SocketAddr = node.view().listen[0].parse().unwrap();
    let first = std::net::TcpStream::connect(address).unwrap();
    node.wait("the first is there", |node| node.view().connections == 1);
    let mut second = std::net::TcpStream::connect(address).unwrap();
    second.set_read_timeout(Some(PATIENCE)).unwrap();
    let closed = std::io::Read::read(&mut second, &mut [0; 8]).map_or(true, |count| count == 0);
    assert!(closed, "one connection is all that it takes");
    drop(first);
}
