//! A whole node whose kernel ends while its rules stay in the switches: nobody takes the place of a rule that another app had before.

#![allow(clippy::unwrap_used, reason = "a test may")]

use emulator::{Emulation, Handle, SwitchOptions, Topology, Versions};
use monitor::{AppState, Verb};
use operator::client;
use operator::contract::{Answer, AppView, FlowView, Question, RulesBeforeView};
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long anything may take that a test waits for. It never passes by waiting.
const PATIENCE: Duration = Duration::from_secs(60);

/// What the firewall blocks, and what the other app would let through.
const CONFIGURATION: &str = "[app.firewall.settings]\nblock = ['ip,nw_src=10.0.0.1,nw_dst=10.0.0.4']\n\
    [app.misbehaving.capabilities]\n'rule.write' = true\n'view.read' = true\n\
    [app.misbehaving.settings]\nattack = 'replace-others'\nagain = true\n[app.misbehaving]\n";

struct Node {
    child: Child,
    folder: PathBuf,
    address: SocketAddr,
}

impl Node {
    /// At an address that stays the same when the kernel is started again.
    fn start(name: &str) -> Node {
        let folder = std::env::temp_dir().join(format!("burnet-before-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let program = Path::new(env!("CARGO_BIN_EXE_burnet")).with_file_name("examples").join("misbehaving");
        let configuration = format!("{CONFIGURATION}path = '{}'\n", program.display());
        std::fs::write(folder.join("burnet.toml"), configuration).unwrap();
        let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let child = Command::new(env!("CARGO_BIN_EXE_burnet"))
            .args([
                "run",
                "--listen",
                &address.to_string(),
                "--log",
                "error",
                "--die-with-parent",
                "--socket",
            ])
            .arg(folder.join("node.sock"))
            .arg("--config")
            .arg(folder.join("burnet.toml"))
            .env("BURNET_STATE", folder.join("state"))
            .env_remove("BURNET_SOCKET")
            .env_remove("BURNET_LOG")
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        let node = Node { child, folder, address };
        node.wait("both apps run", |node| {
            node.is("firewall", "running") && node.is("misbehaving", "running")
        });
        node
    }

    fn ask(&self, question: &Question) -> Option<Answer> {
        client::ask(&self.folder.join("node.sock"), question).ok()
    }

    fn say(&self, app: &str, verb: Verb) {
        let told = self.ask(&Question::App { app: app.to_owned(), verb, why: None });
        assert_eq!(told, Some(Answer::Done));
    }

    fn app(&self, name: &str) -> Option<AppView> {
        let Some(Answer::Apps(apps)) = self.ask(&Question::Apps) else { return None };
        apps.into_iter().find(|app| app.status.app == name)
    }

    fn is(&self, app: &str, state: &str) -> bool {
        self.app(app).is_some_and(|app| match app.status.state {
            AppState::Running => state == "running" && app.commands > 0,
            AppState::Stopped => state == "stopped",
            _ => false,
        })
    }

    fn kernel_pid(&self) -> Option<u32> {
        match self.ask(&Question::Node) {
            Some(Answer::Node(node)) => Some(node.pid),
            _ => None,
        }
    }

    /// What the only switch said of the rules that it had.
    fn rules_before(&self) -> Option<RulesBeforeView> {
        match self.ask(&Question::Switches) {
            Some(Answer::Switches(switches)) => switches.first()?.rules_before,
            _ => None,
        }
    }

    /// The rules of apps in the only switch.
    fn rules(&self) -> Vec<FlowView> {
        let Some(Answer::Flows(switches)) = self.ask(&Question::Flows { datapath: None }) else {
            return Vec::new();
        };
        let rules = switches.into_iter().flat_map(|switch| switch.flows);
        rules.filter(|flow| flow.owner != "kernel").collect()
    }

    fn wait(&self, what: &str, mut until: impl FnMut(&Node) -> bool) {
        let began = Instant::now();
        while !until(self) {
            assert!(began.elapsed() < PATIENCE, "not so in time: {what}; {:?}", self.rules_before());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn network(&self, versions: Versions) -> Handle {
        let options = SwitchOptions { versions, ..SwitchOptions::default() };
        let topology: Topology = "single,2".parse().unwrap();
        let network = Emulation::start(&topology, self.address, &options).unwrap();
        network.wait_connected(PATIENCE).unwrap();
        network
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        signal(self.child.id(), rustix::process::Signal::TERM);
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn signal(pid: u32, signal: rustix::process::Signal) {
    let pid = rustix::process::Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    // It may have ended meanwhile.
    let _ = rustix::process::kill_process(pid, signal);
}

/// The firewall's one rule, with nothing that lets a packet through.
fn is_the_firewalls(rules: &[FlowView]) -> bool {
    matches!(rules, [rule] if rule.owner == "firewall" && rule.actions == "drop")
}

fn check(name: &str, versions: Versions) {
    let node = Node::start(name);
    node.say("misbehaving", Verb::Stop);
    node.wait("the other app is stopped", |node| node.is("misbehaving", "stopped"));
    let network = node.network(versions);
    let known = |of_apps| Some(RulesBeforeView::Known { of_apps });
    node.wait("the firewall's rule is in the switch", |node| is_the_firewalls(&node.rules()));
    node.wait("the switch is asked once", |node| {
        matches!(node.rules_before(), Some(RulesBeforeView::Known { .. }))
    });

    // The owner stays stopped with the next kernel, so that it does not add its rule again.
    node.say("firewall", Verb::Stop);
    node.wait("the firewall is stopped", |node| node.is("firewall", "stopped"));
    let killed = node.kernel_pid().unwrap();
    signal(killed, rustix::process::Signal::KILL);
    node.wait("another kernel runs", |node| node.kernel_pid().is_some_and(|pid| pid != killed));
    node.wait("the switch has told it of the rule", |node| node.rules_before() == known(1));
    assert!(is_the_firewalls(&node.rules()), "{:?}", node.rules());

    node.say("misbehaving", Verb::Start);
    node.wait("the other app is refused", |node| {
        node.app("misbehaving").is_some_and(|app| app.refusals >= 2)
    });
    assert!(is_the_firewalls(&node.rules()), "{:?}", node.rules());
    assert!(node.is("firewall", "stopped"));
    assert_eq!(network.counters().errors, 0, "the switch refused something");
}

#[test]
fn a_rule_that_was_there_before_the_kernel_is_still_its_owners() {
    check("1.3", Versions::Only13);
}

#[test]
fn so_it_is_in_openflow_1_0() {
    check("1.0", Versions::Only10);
}

#[test]
fn switches_that_had_nothing_are_as_they_were() {
    let node = Node::start("empty");
    node.say("firewall", Verb::Stop);
    node.wait("the firewall is stopped", |node| node.is("firewall", "stopped"));
    let network = node.network(Versions::Both);
    node.wait("the switch has said", |node| {
        matches!(node.rules_before(), Some(RulesBeforeView::Known { .. }))
    });
    node.wait(
        "who adds first has the rule",
        |node| matches!(&node.rules()[..], [rule] if rule.owner == "misbehaving"),
    );
    assert_eq!(network.counters().errors, 0, "the switch refused something");
}
