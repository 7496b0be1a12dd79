//! Burnet's own switches on real interfaces, in place of Open vSwitch: a Mininet network with them works. Also with profiles, and Open
//! vSwitch behind the proxy.

use system_tests::mininet::{Controller, Mininet, Pingall, Switches};
use system_tests::node::Node;
use system_tests::open_vswitch::OpenVSwitch;
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

/// A table for four rules.
const SMALL: &str = r#"
schema = 1
name = "small"
about = "A switch with four rules."

[delay]
ingress_us = 2000
egress_us = 1000

[hardware]
when_full = "refuse"

[[hardware.capacity]]
entries = 4

[source]
"*" = { assumed = "for a test" }
"#;

/// All pings are answered, although the fifth rule is refused: the learning switch sends each packet itself, too.
fn with_a_small_table(name: &str, is_proxied: bool, is_refused: impl FnOnce(&str) -> bool) {
    scenario(name, |sandbox| {
        let profile = sandbox.folder().join("small.toml");
        std::fs::write(&profile, SMALL).map_err(|error| format!("no profile: {error}"))?;
        let _switch = if is_proxied { Some(OpenVSwitch::start(sandbox)?) } else { None };
        let mut node = Node::start(sandbox, &["--app", "learning-switch", "--listen", LISTEN])?;
        let kind = if is_proxied { Switches::Proxied } else { Switches::BurnetPlaying };
        let switches = kind(Version::V1_3, &profile);
        let mut mininet = Mininet::start_with(sandbox, "single,4", switches, Controller::Tcp(PORT))?;
        node.wait_for_switches(1)?;
        mininet.all_reach_all(12)?;
        let said = mininet.said_by("s1", is_proxied)?;
        println!("{name}: {said}");
        if !is_refused(&said) {
            return Err(format!("no rule was refused: {said}"));
        }
        mininet.exit()?;
        node.stop()
    });
}

/// How many rules a line of the proxy's summary says were refused: `rules       3 refused, …`.
fn refused_in(line: &str) -> Option<u64> {
    line.trim().strip_prefix("rules ")?.trim().split(' ').next()?.parse().ok()
}

#[test]
#[ignore = "needs root and Mininet"]
fn a_switch_with_a_profile_refuses_what_its_table_has_no_room_for() {
    // OFPET_FLOW_MOD_FAILED, OFPFMFC_TABLE_FULL.
    with_a_small_table("emulated-profile", false, |said| said.contains("type 5 code 1"));
}

#[test]
#[ignore = "needs root, Open vSwitch and Mininet"]
fn open_vswitch_behind_the_proxy_refuses_what_the_profile_has_no_room_for() {
    with_a_small_table("profiled-ovs", true, |said| {
        said.lines().filter_map(refused_in).any(|rules| rules > 0)
    });
}
