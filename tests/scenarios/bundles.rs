//! Rules that must come together at a real Open vSwitch: they come as one bundle, which the switch commits.

use system_tests::node::Node;
use system_tests::open_vswitch::OpenVSwitch;
use system_tests::sandbox::Sandbox;
use system_tests::{Result, Version, scenario};

const LISTEN: &str = "127.0.0.1:6653";

/// The ends of two intents at one switch.
const INTENTS: [[&str; 2]; 2] = [["of:1/1", "of:1/2"], ["of:1/2", "of:1/1"]];

/// How many rules of the intents the switch has.
fn count(switch: &OpenVSwitch<'_>) -> Result<usize> {
    let flows = switch.ofctl(Version::V1_3, &["dump-flows", "s1"])?;
    let is_intents = |line: &&str| line.contains("in_port=") && line.contains("actions=output");
    Ok(flows.lines().filter(is_intents).count())
}

/// How many bundles the switch has committed, by its log of messages.
fn committed(sandbox: &Sandbox) -> Result<usize> {
    let log = std::fs::read_to_string(sandbox.folder().join("ovs-vswitchd.log"))
        .map_err(|error| format!("no log of the switch: {error}"))?;
    Ok(log.matches("type=COMMIT_REPLY").count())
}

#[test]
#[ignore = "needs root and Open vSwitch"]
fn rules_that_are_missing_when_a_switch_connects_come_as_one_bundle() {
    scenario("bundles", |sandbox| {
        let switch = OpenVSwitch::start_with(sandbox, &["-vvconn:file:dbg"])?;
        let config = sandbox.folder().join("burnet.toml");
        std::fs::write(&config, "[network]\n").map_err(|error| format!("no configuration: {error}"))?;
        let config = config.display().to_string();
        let mut node = Node::start(sandbox, &["--config", &config, "--listen", LISTEN, "--log", "info"])?;
        switch.add_bridge("s1")?;
        let settings =
            ["protocols=OpenFlow13", "fail_mode=secure", "other-config:datapath-id=0000000000000001"];
        switch.vsctl(&[&["set", "bridge", "s1"], &settings[..]].concat())?;
        for port in ["1", "2"] {
            let (name, number) = (format!("p{port}"), format!("ofport_request={port}"));
            switch.vsctl(&[
                "add-port",
                "s1",
                &name,
                "--",
                "set",
                "interface",
                &name,
                "type=internal",
                &number,
            ])?;
        }
        switch.set_controller(&format!("tcp:{LISTEN}"))?;
        node.wait_for_switches(1)?;
        for [from, to] in INTENTS {
            node.ask(&["intents", "add", from, to, "--wait"])?;
        }
        assert_eq!(count(&switch)?, INTENTS.len());
        let before = committed(sandbox)?;
        switch.vsctl(&["del-controller", "s1"])?;
        node.wait_for_switches(0)?;
        switch.ofctl(Version::V1_3, &["del-flows", "s1"])?;
        assert_eq!(count(&switch)?, 0);
        switch.set_controller(&format!("tcp:{LISTEN}"))?;
        node.wait_until("the rules are back", |_| Ok(count(&switch)? == INTENTS.len()))?;
        assert_eq!(committed(sandbox)?, before + 1);
        node.stop()
    });
}
