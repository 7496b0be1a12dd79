//! Burnet's own switches on real interfaces, in place of Open vSwitch: a Mininet network with them works.

use system_tests::mininet::{Controller, Mininet, Pingall, Switches};
use system_tests::node::Node;
use system_tests::{Version, scenario};

const PORT: u16 = 6653;
const LISTEN: &str = "127.0.0.1:6653";

/// With the learning switch, all of these pings are answered.
fn check(name: &str, version: Version, topology: &str, switches: usize, pings: u32) {
    scenario(name, |sandbox| {
        let mut node = Node::start(sandbox, &["--app", "learning-switch", "--listen", LISTEN])?;
        let ours = Switches::Burnet(version);
        let mut mininet = Mininet::start_with(sandbox, topology, ours, Controller::Tcp(PORT))?;
        node.wait_for_switches(switches)?;
        mininet.all_reach_all(pings)?;
        mininet.exit()?;
        node.stop()
    });
}

#[test]
#[ignore = "needs root and Mininet"]
fn emulated_switches_carry_tree_2_by_1_0() {
    check("emulated-tree-1.0", Version::V1_0, "tree,2", 3, 12);
}

#[test]
#[ignore = "needs root and Mininet"]
fn emulated_switches_carry_tree_2_by_1_3() {
    check("emulated-tree-1.3", Version::V1_3, "tree,2", 3, 12);
}

#[test]
#[ignore = "needs root and Mininet"]
fn emulated_switches_carry_linear_4_by_1_3() {
    check("emulated-linear-1.3", Version::V1_3, "linear,4", 4, 12);
}

#[test]
#[ignore = "needs root and Mininet"]
fn emulated_switches_without_a_controller_drop() {
    scenario("emulated-alone", |sandbox| {
        let ours = Switches::Burnet(Version::V1_3);
        let mut mininet = Mininet::start_with(sandbox, "single,2", ours, Controller::None)?;
        assert_eq!(mininet.pingall()?, Pingall { sent: 2, received: 0 });
        mininet.exit()
    });
}
