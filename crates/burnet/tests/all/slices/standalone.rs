//! A slice without a controller, with `fail = "standalone"`: it forwards by itself, until a controller is connected again.

use emulator::{Emulation, SwitchOptions, Topology, Versions};
use std::net::TcpListener;
use std::time::Duration;
use test_bed::{Bed, Node, PATIENCE};

/// The priorities in the switches: a slice adds 2 to those of its tenant. The stand-in has 1, and the learning switch of the tenant 100.
const STAND_IN: u16 = 1 + 2;
const OF_TENANT: u16 = 100 + 2;

fn bed() -> Bed {
    Bed::new(env!("CARGO_BIN_EXE_burnet"))
}

/// Whether a rule of the slice has the priority of the stand-in, and whether one has that of its controller.
fn rules(node: &Node) -> (bool, bool) {
    let flows = node.flows();
    let own: Vec<u16> = flows
        .iter()
        .flat_map(|switch| &switch.flows)
        .filter(|flow| flow.owner == "slice.blue")
        .map(|flow| flow.priority)
        .collect();
    (own.contains(&STAND_IN), own.contains(&OF_TENANT))
}

#[test]
fn a_slice_without_a_controller_forwards_by_itself_until_one_is_connected() {
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let config = format!(
        "[slice.blue]\ncontrollers = ['{address}']\nisolation = 'vlan'\ntag = 10\nfail = 'standalone'\n\
         own_ports = ['s1:1', 's2:1']\nlinks = ['s1:3-s2:3']\n"
    );
    let node = bed().node().config(&config).log("info").start_ready();
    let topology: Topology = "linear,2,2".parse().unwrap();
    let options = SwitchOptions { versions: Versions::Only13, ..SwitchOptions::default() };
    let network = Emulation::start(&topology, node.address(), &options).unwrap();
    network.wait_connected(PATIENCE).unwrap();
    let ping = || {
        let report = network.begin_ping("h1s1", "h1s2", Duration::from_secs(5)).unwrap();
        report.recv().unwrap().is_complete()
    };
    node.wait("hosts reach each other without a controller", |node| ping() && rules(node) == (true, false));
    let stranger = network.begin_ping("h1s1", "h2s2", Duration::from_millis(500)).unwrap();
    assert!(!stranger.recv().unwrap().is_complete(), "a host outside the slice is reached");
    let tenant = bed().node().listen(address).app("learning-switch").start_ready();
    tenant.wait("the controller has its switches", |tenant| tenant.switches().len() == 2);
    node.wait_for_line("a controller is connected again");
    // Its rules end without packets. Only then do packets miss, and the controller receives them.
    node.wait("the rules of the stand-in end", |node| !rules(node).0);
    node.wait("the controller's rules forward", |node| ping() && rules(node) == (false, true));
}
