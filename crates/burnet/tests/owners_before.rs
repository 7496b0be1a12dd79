//! A whole node whose kernel ends, and which ends itself, while the groups and meters of its apps stay in the switches: they are whose they were.

#![allow(clippy::unwrap_used, reason = "a test may")]

use emulator::{Emulation, Handle, SwitchOptions, Topology, Versions};
use operator::client;
use operator::contract::{Answer, Question};
use std::fs::{self, File};
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long anything may take that a test waits for. It never passes by waiting.
const PATIENCE: Duration = Duration::from_secs(60);

const DONE: &str = "modify: programmed";
const REFUSED: [&str; 2] =
    ["modify: refused rule.write: group 7 is not", "modify: refused rule.write: meter 7 is not"];

/// A folder of a test's own, with its nodes' state, and the address at which all of them listen.
struct Place {
    folder: PathBuf,
    address: SocketAddr,
}

impl Place {
    fn new(name: &str) -> Place {
        let folder = std::env::temp_dir().join(format!("burnet-owners-{}-{name}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        Place { folder, address }
    }

    /// A node with these apps, each of which makes the group and the meter, or does not.
    fn start(&self, log: &str, apps: &[(&str, bool)]) -> Node<'_> {
        let program = Path::new(env!("CARGO_BIN_EXE_burnet")).with_file_name("examples").join("grouper");
        let app = |(name, makes): &(&str, bool)| {
            format!(
                "[app.{name}]\npath = '{}'\n[app.{name}.capabilities]\n'view.read' = true\n'rule.write' = true\n\
                 [app.{name}.settings]\nmakes = {makes}\n",
                program.display()
            )
        };
        fs::write(self.folder.join("burnet.toml"), apps.iter().map(app).collect::<String>()).unwrap();
        let log = self.folder.join(log);
        let said = File::create(&log).unwrap();
        let child = Command::new(env!("CARGO_BIN_EXE_burnet"))
            .args(["run", "--listen", &self.address.to_string(), "--workers", "2", "--log", "info"])
            .args(["--die-with-parent", "--socket"])
            .arg(self.folder.join("node.sock"))
            .arg("--config")
            .arg(self.folder.join("burnet.toml"))
            .env("BURNET_STATE", self.folder.join("state"))
            .env_remove("BURNET_SOCKET")
            .env_remove("BURNET_LOG")
            .stdin(Stdio::null())
            .stdout(said.try_clone().unwrap())
            .stderr(said)
            .spawn()
            .unwrap();
        Node { child, place: self, log, seen: 0 }
    }

    fn network(&self) -> Handle {
        let options = SwitchOptions { versions: Versions::Only13, ..SwitchOptions::default() };
        let topology: Topology = "single,2".parse().unwrap();
        Emulation::start(&topology, self.address, &options).unwrap()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

struct Node<'p> {
    child: Child,
    place: &'p Place,
    log: PathBuf,
    /// How much of the log is of before.
    seen: usize,
}

impl Node<'_> {
    fn said(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default().split_off(self.seen)
    }

    /// An app prints this from now on.
    fn wait(&self, app: &str, line: &str) {
        let began = Instant::now();
        let says = |said: &str| said.lines().any(|it| it.contains(&format!("app: {app}: {line}")));
        while !says(&self.said()) {
            assert!(began.elapsed() < PATIENCE, "{app} does not say in time: {line}\n{}", self.said());
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// One may change its group and its meter, and never was refused; the other is refused both.
    fn are_the_makers(&mut self) {
        self.seen += self.said().len();
        self.wait("maker", DONE);
        REFUSED.iter().for_each(|refused| self.wait("other", refused));
        let said = self.said();
        assert!(!said.lines().any(|line| line.contains("app: maker: modify: refused")), "{said}");
    }

    fn kernel_pid(&self) -> Option<u32> {
        match client::ask(&self.place.folder.join("node.sock"), &Question::Node).ok()? {
            Answer::Node(node) => Some(node.pid),
            _ => None,
        }
    }
}

impl Drop for Node<'_> {
    fn drop(&mut self) {
        signal(self.child.id(), rustix::process::Signal::TERM);
        let _ = self.child.wait();
    }
}

fn signal(pid: u32, signal: rustix::process::Signal) {
    let pid = rustix::process::Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    // It may have ended meanwhile.
    let _ = rustix::process::kill_process(pid, signal);
}

#[test]
fn groups_and_meters_are_whose_they_were_after_the_kernel_and_the_node_began_anew() {
    let place = Place::new("both");
    let node_apps = [("maker", true), ("other", false)];
    let mut node = place.start("first.log", &node_apps);
    let network = place.network();
    network.wait_connected(PATIENCE).unwrap();
    node.wait("maker", "add: programmed");
    node.are_the_makers();

    let killed = node.kernel_pid().unwrap();
    signal(killed, rustix::process::Signal::KILL);
    node.seen += node.said().len();
    // The switch has the group: an add fails there, and the claim that it would make fails with it.
    node.wait("maker", "add: failed");
    node.are_the_makers();
    drop(node);

    let mut node = place.start("second.log", &node_apps);
    node.wait("maker", "add: failed");
    node.are_the_makers();
    drop(node);

    // The operator has taken the line out, and another app gets the number: it inherits nothing.
    let numbers = fs::read_to_string(place.folder.join("state/zones")).unwrap();
    fs::write(place.folder.join("state/zones"), numbers.replace("1 maker\n", "")).unwrap();
    let heir = place.start("third.log", &[("heir", false)]);
    REFUSED.iter().for_each(|refused| heir.wait("heir", refused));
    assert!(fs::read_to_string(place.folder.join("state/zones")).unwrap().contains("1 heir"));
    assert!(!heir.said().contains(DONE));
    drop((heir, network));
}

#[test]
fn groups_and_meters_that_a_switch_lost_by_a_power_cycle_are_free_for_any_app() {
    let place = Place::new("cycle");
    let mut node = place.start("first.log", &[("maker", true), ("other", false)]);
    let network = place.network();
    network.wait_connected(PATIENCE).unwrap();
    node.wait("maker", "add: programmed");
    node.are_the_makers();
    drop((node, network));

    // The same switch, with empty tables.
    let node = place.start("second.log", &[("maker", false), ("other", true)]);
    let network = place.network();
    node.wait("other", "add: programmed");
    node.wait("other", DONE);
    REFUSED.iter().for_each(|refused| node.wait("maker", refused));
    drop((node, network));
}
