//! Rules that somebody adds to an Open vSwitch by hand: they are left alone, or removed by policy but for those on the lists.

use system_tests::node::Node;
use system_tests::open_vswitch::OpenVSwitch;
use system_tests::{Result, Version, scenario};

const LISTEN: &str = "127.0.0.1:6653";

/// Somebody's rules. The first two are named by a list of [`REMOVE`].
const RULES: [&str; 4] = [
    "cookie=0x1,priority=5,arp,arp_tpa=10.0.0.9,actions=drop",
    "cookie=0xbeef,priority=6,dl_vlan=7,actions=drop",
    "cookie=0xf00d,priority=7,ip,nw_dst=10.0.0.0/8,actions=drop",
    "cookie=0x0,priority=0,dl_vlan=9,actions=drop",
];

const REMOVE: &str = "foreign = 'remove'\nignore_matches = ['arp']\nignore_cookies = ['beef']\n";

/// How many of the rules the switch has.
fn count(switch: &OpenVSwitch<'_>, version: Version) -> Result<usize> {
    let flows = switch.ofctl(version, &["dump-flows", "s1"])?;
    let words = ["arp_tpa=10.0.0.9", "dl_vlan=7", "nw_dst=10.0.0.0/8", "dl_vlan=9"];
    Ok(words.iter().filter(|word| flows.contains(*word)).count())
}

/// With this policy, so many of the rules stay.
fn check(name: &str, policy: &str, version: Version, stay: usize) {
    scenario(name, |sandbox| {
        let switch = OpenVSwitch::start(sandbox)?;
        let config = sandbox.folder().join("burnet.toml");
        let text = format!(
            "[network]\nservices = ['discovery', 'flows']\n[network.flows]\naudit_interval_s = 1\n{policy}"
        );
        std::fs::write(&config, text).map_err(|error| format!("no configuration: {error}"))?;
        let config = config.display().to_string();
        let mut node = Node::start(sandbox, &["--config", &config, "--listen", LISTEN, "--log", "info"])?;
        switch.add_bridge("s1")?;
        switch.vsctl(&["set", "bridge", "s1", &format!("protocols={}", version.in_ovs())])?;
        // One is there before the switch connects, the others come during the session.
        switch.ofctl(version, &["add-flow", "s1", RULES[2]])?;
        switch.set_controller(&format!("tcp:{LISTEN}"))?;
        node.wait_for_switches(1)?;
        for rule in RULES {
            switch.ofctl(version, &["add-flow", "s1", rule])?;
        }
        node.wait_until("the rules that the lists do not name are gone", |_| {
            Ok(count(&switch, version)? == stay)
        })?;
        // The rules of the node itself stay: the one that sends probes to `discovery`.
        let flows = switch.ofctl(version, &["dump-flows", "s1"])?;
        assert!(flows.contains("actions=CONTROLLER"), "{flows}");
        // Some audits later it is still so.
        std::thread::sleep(std::time::Duration::from_secs(3));
        assert_eq!(count(&switch, version)?, stay);
        node.stop()
    });
}

#[test]
#[ignore = "needs root and Open vSwitch"]
fn foreign_rules_are_left_alone() {
    check("foreign-report", "", Version::V1_3, RULES.len());
}

#[test]
#[ignore = "needs root and Open vSwitch"]
fn foreign_rules_are_removed_by_policy_by_1_3() {
    check("foreign-remove-1.3", REMOVE, Version::V1_3, 2);
}

#[test]
#[ignore = "needs root and Open vSwitch"]
fn foreign_rules_are_removed_by_policy_by_1_0() {
    check("foreign-remove-1.0", REMOVE, Version::V1_0, 2);
}
