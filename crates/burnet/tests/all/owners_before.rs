//! A whole node whose kernel restarts, and that restarts itself, while groups and meters of its apps stay in the
//! switches. They must keep their owners.

use emulator::{Emulation, Handle, SwitchOptions, Topology, Versions};
use std::fs;
use std::net::{SocketAddr, TcpListener};
use test_bed::{Bed, Node, PATIENCE, kill};

const DONE: &str = "modify: programmed";
const REFUSED: [&str; 2] =
    ["modify: refused rule.write: group 7 is not", "modify: refused rule.write: meter 7 is not"];

/// A folder of a test's own, with its nodes' state, and the address at which all of them listen.
struct Place {
    bed: Bed,
    address: SocketAddr,
}

impl Place {
    fn new() -> Place {
        let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        Place { bed: Bed::new(env!("CARGO_BIN_EXE_burnet")), address }
    }

    /// A node with these apps, each of which makes the group and the meter, or does not.
    fn start(&self, apps: &[(&str, bool)]) -> Watched {
        let program = self.bed.example("grouper");
        let app = |(name, makes): &(&str, bool)| {
            format!(
                "[app.{name}]\npath = '{}'\n[app.{name}.capabilities]\n'view.read' = true\n'rule.write' = true\n\
                 [app.{name}.settings]\nmakes = {makes}\n",
                program.display()
            )
        };
        let config: String = apps.iter().map(app).collect();
        let node = self.bed.node().config(&config).listen(self.address).log("info").args(["--workers", "2"]);
        let seen = fs::read_to_string(self.bed.log()).unwrap_or_default().len();
        Watched { node: node.start(), seen }
    }

    fn network(&self) -> Handle {
        let options = SwitchOptions { versions: Versions::Only13, ..SwitchOptions::default() };
        let topology: Topology = "single,2".parse().unwrap();
        Emulation::start(&topology, self.address, &options).unwrap()
    }
}

/// A node, and how much of its log is of before.
struct Watched {
    node: Node,
    seen: usize,
}

impl Watched {
    fn said(&self) -> String {
        self.node.log().split_off(self.seen)
    }

    /// An app prints this from now on.
    fn wait(&self, app: &str, line: &str) {
        let line = format!("app: {app}: {line}");
        self.node.wait(&line, |_| self.said().lines().any(|said| said.contains(&line)));
    }

    /// One may change its group and its meter, and never was refused; the other is refused both.
    fn are_the_makers(&mut self) {
        self.seen += self.said().len();
        self.wait("maker", DONE);
        REFUSED.iter().for_each(|refused| self.wait("other", refused));
        let said = self.said();
        assert!(!said.lines().any(|line| line.contains("app: maker: modify: refused")), "{said}");
    }
}

#[test]
fn groups_and_meters_are_whose_they_were_after_the_kernel_and_the_node_began_anew() {
    let place = Place::new();
    let node_apps = [("maker", true), ("other", false)];
    let mut node = place.start(&node_apps);
    let network = place.network();
    network.wait_connected(PATIENCE).unwrap();
    node.wait("maker", "add: programmed");
    node.are_the_makers();

    kill(node.node.kernel_pid());
    node.seen += node.said().len();
    // The switch has the group: an add fails there, and the claim that it would make fails with it.
    node.wait("maker", "add: failed");
    node.are_the_makers();
    drop(node);

    let mut node = place.start(&node_apps);
    node.wait("maker", "add: failed");
    node.are_the_makers();
    drop(node);

    // The operator has taken the line out, and another app gets the number: it inherits nothing.
    let numbers = fs::read_to_string(place.bed.state().join("zones")).unwrap();
    fs::write(place.bed.state().join("zones"), numbers.replace("1 maker\n", "")).unwrap();
    let heir = place.start(&[("heir", false)]);
    REFUSED.iter().for_each(|refused| heir.wait("heir", refused));
    assert!(fs::read_to_string(place.bed.state().join("zones")).unwrap().contains("1 heir"));
    assert!(!heir.said().contains(DONE));
    drop((heir, network));
}

#[test]
fn groups_and_meters_that_a_switch_lost_by_a_power_cycle_are_free_for_any_app() {
    let place = Place::new();
    let mut node = place.start(&[("maker", true), ("other", false)]);
    let network = place.network();
    network.wait_connected(PATIENCE).unwrap();
    node.wait("maker", "add: programmed");
    node.are_the_makers();
    drop((node, network));

    // The same switch, with empty tables.
    let node = place.start(&[("maker", false), ("other", true)]);
    let network = place.network();
    node.wait("other", "add: programmed");
    node.wait("other", DONE);
    REFUSED.iter().for_each(|refused| node.wait("maker", refused));
    drop((node, network));
}
