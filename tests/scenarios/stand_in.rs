//! Shows that the harness itself works, with Open vSwitch's own test controller in Burnet's place.

use system_tests::certificates::Certificates;
use system_tests::mininet::{Controller, Mininet, Pingall};
use system_tests::open_vswitch::OpenVSwitch;
use system_tests::{Version, scenario, stand_in};

const PORT: u16 = 6653;

/// All hosts of `topology` reach each other: all of these pings are answered.
fn check(name: &str, topology: &str, version: Version, pings: u32) {
    scenario(name, |sandbox| {
        let _switch = OpenVSwitch::start(sandbox)?;
        stand_in::start(sandbox, PORT)?;
        let mut mininet = Mininet::start(sandbox, topology, version, Controller::Tcp(PORT))?;
        mininet.all_reach_all(pings)?;
        mininet.exit()
    });
}

#[test]
#[ignore = "needs root, Open vSwitch and Mininet"]
fn stand_in_controls_tree_2_by_1_0() {
    check("stand-in-tree-1.0", "tree,2", Version::V1_0, 12);
}

#[test]
#[ignore = "needs root, Open vSwitch and Mininet"]
fn stand_in_controls_linear_8_by_1_3() {
    check("stand-in-linear-1.3", "linear,8", Version::V1_3, 56);
}

#[test]
#[ignore = "needs root, Open vSwitch and Mininet"]
fn stand_in_controls_tree_2_over_tls() {
    scenario("stand-in-tls", |sandbox| {
        let switch = OpenVSwitch::start(sandbox)?;
        let certificates = Certificates::make(sandbox)?;
        stand_in::start_tls(sandbox, PORT, &certificates)?;
        let mut mininet = Mininet::start(sandbox, "tree,2", Version::V1_3, Controller::None)?;
        switch.set_tls(&certificates.of_switch())?;
        switch.set_controller(&format!("ssl:127.0.0.1:{PORT}"))?;
        switch.wait_connected()?;
        mininet.all_reach_all(12)?;
        mininet.exit()
    });
}

#[test]
#[ignore = "needs root, Open vSwitch and Mininet"]
fn without_a_controller_no_ping_comes_back() {
    scenario("no-controller", |sandbox| {
        let _switch = OpenVSwitch::start(sandbox)?;
        let mut mininet = Mininet::start(sandbox, "single,2", Version::V1_3, Controller::None)?;
        assert_eq!(mininet.pingall()?, Pingall { sent: 2, received: 0 });
        mininet.exit()
    });
}
