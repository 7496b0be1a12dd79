//! A whole node with failures, as its operator sees it: records, safe mode, quarantine, and the output of apps.
//!
//! The tests use only the operator's commands.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should end")]

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use emulator::{Emulation, SwitchOptions, Topology, Versions};
use operator::client;
use operator::contract::{Answer, Question};
use serde_json::Value;

/// How long anything may take that a test waits for. It never passes by waiting.
const PATIENCE: Duration = Duration::from_secs(60);

/// A node with a state folder of its own.
struct Node {
    child: Child,
    folder: PathBuf,
}

impl Node {
    fn start(configuration: &str, arguments: &[&str]) -> Node {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("burnet-trouble-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let file = folder.join("burnet.toml");
        std::fs::write(&file, configuration).unwrap();
        let mut command = burnet(&folder);
        command.args([
            "run",
            "--grant-all",
            "--listen",
            "127.0.0.1:0",
            "--log",
            "error",
            "--die-with-parent",
            "--config",
        ]);
        let child = command.arg(&file).args(arguments).spawn().unwrap();
        Node { child, folder }
    }

    /// What a command prints, and whether it worked.
    fn ask(&self, command: &str) -> (Option<i32>, String) {
        let output = burnet(&self.folder).args(command.split_whitespace()).output().unwrap();
        let said = [output.stdout, output.stderr].concat();
        (output.status.code(), String::from_utf8_lossy(&said).into_owned())
    }

    fn json(&self, command: &str) -> Value {
        let (_, said) = self.ask(command);
        serde_json::from_str(&said).unwrap_or_default()
    }

    /// The state of an app: a word, or the beginning of an object.
    fn status(&self, app: &str) -> Value {
        let apps = self.json("app list --json");
        let found = apps.as_array().into_iter().flatten().find(|one| one["status"]["app"] == app);
        found.map(|one| one["status"].clone()).unwrap_or_default()
    }

    fn kernel(&self) -> Option<(u32, String)> {
        match client::ask(&self.folder.join("n.sock"), &Question::Node).ok()? {
            Answer::Node(node) => Some((node.pid, node.listen.first()?.clone())),
            _ => None,
        }
    }

    #[track_caller]
    fn wait(&self, what: &str, mut until: impl FnMut(&Node) -> bool) {
        let began = Instant::now();
        while !until(self) {
            assert!(began.elapsed() < PATIENCE, "not so in time: {what}; {}", self.ask("app list").1);
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn end(&mut self) {
        signal(self.child.id(), rustix::process::Signal::TERM);
        let _ = self.child.wait();
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            self.end();
        }
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn burnet(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_burnet"));
    command.env("BURNET_SOCKET", folder.join("n.sock")).env("BURNET_STATE", folder.join("state"));
    command.stdin(Stdio::null());
    command
}

fn signal(pid: u32, signal: rustix::process::Signal) {
    let pid = rustix::process::Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    // It may have ended meanwhile.
    let _ = rustix::process::kill_process(pid, signal);
}

fn runs(node: &Node, app: &str) -> bool {
    node.status(app)["state"] == "running"
}

#[test]
fn a_kernel_that_is_killed_again_and_again_comes_back_in_safe_mode_until_the_operator_leaves_it() {
    let configuration =
        "[safe_mode]\napps = ['learning-switch']\n[app.hub]\nzone = 'trusted'\n[app.learning-switch]\n";
    let mut node = Node::start(configuration, &[]);
    let mut killed = Vec::new();
    node.wait("safe mode", |node| {
        if let Some((pid, _)) = node.kernel().filter(|(pid, _)| !killed.contains(pid) && killed.len() < 6) {
            signal(pid, rustix::process::Signal::KILL);
            killed.push(pid);
        }
        node.json("safe-mode show --json")["reason"].is_string()
    });
    node.wait("the app of the list runs", |node| runs(node, "learning-switch"));
    // The kernel's last end may have found its process starting: then it is ended first.
    node.wait("the other app is held", |node| node.status("hub")["state"] == "held");
    let (_, list) = node.ask("app list");
    assert!(list.contains("held by safe mode") && list.contains("the node is in safe mode since"), "{list}");
    assert_eq!(node.ask("safe-mode leave").0, Some(0));
    node.wait("all apps run", |node| runs(node, "hub") && runs(node, "learning-switch"));
    // The first end of the kernel cost it its trust: nobody knows that it was not its doing.
    assert_eq!(node.status("hub")["kind"], "process");
    assert_eq!(node.ask("safe-mode leave"), (Some(1), "burnet: the node is not in safe mode\n".to_owned()));
    node.end();
    let incidents = node.json("incidents --json");
    let whats = incidents.as_array().unwrap().iter().map(|one| one["what"].as_str().unwrap());
    let whats: Vec<_> = whats.filter(|what| ["kernel_ended", "safe_mode"].contains(what)).collect();
    assert_eq!(whats, [["kernel_ended"; 6].as_slice(), &["safe_mode"]].concat());
}

#[test]
fn a_trusted_app_that_takes_the_kernel_down_is_found_and_nobody_else_loses_his_trust() {
    let object =
        Path::new(env!("CARGO_BIN_EXE_burnet")).with_file_name("examples").join("libshared_abort.so");
    let configuration =
        format!("[app.hub]\nzone = 'trusted'\n[app.bad]\nzone = 'trusted'\npath = {object:?}\n");
    let node = Node::start(&configuration, &[]);
    node.wait("both run", |node| runs(node, "hub") && runs(node, "bad"));
    let topology: Topology = "single,2".parse().unwrap();
    let options = SwitchOptions { versions: Versions::Only13, ..SwitchOptions::default() };
    let address = node.kernel().unwrap().1.parse().unwrap();
    let network = Emulation::start(&topology, address, &options).unwrap();
    network.wait_connected(PATIENCE).unwrap();
    // Again and again: the first packets may come before the app has said that it wants any.
    node.wait("it is demoted", |node| {
        network.ping_all(Duration::from_millis(200));
        node.status("bad")["demoted"].is_object()
    });
    node.wait("the other is loaded again", |node| runs(node, "hub"));
    assert_eq!(
        (node.status("hub")["kind"].as_str(), node.status("hub")["demoted"].is_null()),
        (Some("trusted"), true)
    );
    // It is written down beside all this, when the disk has the time.
    node.wait("the incident is kept", |node| node.json("incidents show 1 --json").is_object());
    let incident = node.json("incidents show 1 --json");
    assert_eq!(incident["finding"]["culprit"], "bad", "{incident}");
    assert_eq!(incident["evidence"]["signal"], 6);
    let (_, text) = node.ask("incidents show 1");
    assert!(text.contains("ended while it was calling the trusted app bad"), "{text}");
}

#[test]
fn a_quarantined_app_stays_so_with_the_reason_until_it_is_restarted() {
    let node = Node::start("[app.hub]\n", &[]);
    node.wait("it runs", |node| runs(node, "hub"));
    let output =
        burnet(&node.folder).args(["app", "quarantine", "hub", "--why", "it floods"]).output().unwrap();
    assert!(output.status.success());
    node.wait("it is quarantined", |node| node.status("hub")["state"] == "quarantined");
    let (_, list) = node.ask("app list");
    assert!(list.contains("the operator quarantined it: it floods"), "{list}");
    node.wait("it is an incident", |node| node.ask("incidents").1.contains("quarantined it: it floods"));
    assert_eq!(node.ask("app restart hub").0, Some(0));
    node.wait("it runs again", |node| runs(node, "hub"));
    assert_eq!(node.ask("app quarantine nobody").0, Some(1));
}

#[test]
fn what_apps_printed_is_there_when_the_node_is_not() {
    let mut node = Node::start("[app.hub]\nsettings.speed = 11\n", &[]);
    node.wait("it is stopped, and not tried again", |node| node.status("hub")["state"] == "quarantined");
    node.wait("what it printed is kept", |node| node.ask("app logs hub").1.contains("takes no settings"));
    let status = node.status("hub");
    assert_eq!((&status["restarts"], &status["generation"]), (&0.into(), &1.into()), "{status}");
    assert!(node.ask("app list").1.contains("the hub takes no settings"));
    node.wait("it is an incident", |node| node.ask("incidents").1.contains("the hub takes no settings"));
    node.end();
    let (code, log) = node.ask("app logs hub --lines 1");
    assert_eq!((code, log.lines().count()), (Some(0), 1), "{log}");
    let (_, all) = node.ask("app logs hub");
    assert!(all.lines().next().unwrap().contains("Z 1 "), "{all}");
    let (_, incident) = node.ask("incidents show 1");
    assert!(
        incident.contains("what it printed last:\n") && incident.contains("takes no settings"),
        "{incident}"
    );
    assert_eq!(node.ask("incidents show 99").0, Some(2));
    assert_eq!(node.ask("app logs nobody").0, Some(2));
    assert_eq!(node.ask("app logs ../logs/hub").0, Some(2));
}

#[test]
fn a_node_may_begin_in_safe_mode() {
    let node = Node::start(
        "[safe_mode]\napps = ['hub']\n[app.hub]\nzone = 'trusted'\n[app.learning-switch]\n",
        &["--safe-mode"],
    );
    node.wait("the app of the list runs in a process zone", |node| {
        runs(node, "hub") && node.status("hub")["pid"].is_u64()
    });
    node.wait("the other does not", |node| node.status("learning-switch")["state"] == "held");
    assert_eq!(node.ask("safe-mode leave").0, Some(0));
    node.wait("it is trusted as asked for", |node| {
        runs(node, "hub") && node.status("hub")["kind"] == "trusted"
    });
    node.wait("the other runs too", |node| runs(node, "learning-switch"));
    assert!(node.ask("incidents").1.starts_with("no incident is kept"));
}

#[test]
fn a_list_for_safe_mode_that_names_what_is_not_there_is_refused() {
    let mut node = Node::start("[safe_mode]\napps = ['hubb']\n[app.hub]\n", &[]);
    assert_eq!(node.child.wait().unwrap().code(), Some(2));
}
