//! The punt meter in Open vSwitch's user-space datapath. The switch limits its packet-ins during a flood, and the
//! meter returns after every failure of node, session or meter.

use serde_json::Value;
use std::fs;
use system_tests::dummy_bridge::DummyBridge;
use system_tests::node::Node;
use system_tests::sandbox::Sandbox;
use system_tests::{Result, Version, scenario};

const LISTEN: &str = "127.0.0.1:6653";
const CONTROLLER: &str = "tcp:127.0.0.1:6653";

/// One packet a second with a burst of one. So most of a flood exceeds it, however long the flood takes.
const LIMITS: &str = "[limits]\npacket_in_meter_per_s = 1\n";

/// Frames of a flood.
const FLOOD: usize = 300;

/// Broadcast frames that are not ARP.
fn frame() -> Vec<u8> {
    [&[0xff; 6][..], &[2, 0, 0, 0, 0, 1, 0x88, 0xb5], &[0; 46]].concat()
}

fn start<'s>(sandbox: &'s Sandbox) -> Result<Node<'s>> {
    let config = sandbox.folder().join("burnet.toml");
    fs::write(&config, LIMITS).map_err(|error| format!("cannot write {}: {error}", config.display()))?;
    let config = config.display().to_string();
    let mut node = Node::start(sandbox, &["--app", "hub", "--listen", LISTEN, "--config", &config])?;
    node.wait_for_app("hub")?;
    Ok(node)
}

/// The table-miss rule, as the switch has it.
fn punting_rule(bridge: &DummyBridge<'_>) -> Result<String> {
    let rules = bridge.switch().ofctl(Version::V1_3, &["dump-flows", "br0"])?;
    let found = rules.lines().find(|line| line.contains("priority=0 actions="));
    found.map(str::to_owned).ok_or(format!("no rule brings packets up: {rules}"))
}

fn is_on(switch: &Value) -> bool {
    switch["meter"]["on"]["per_s"] == 1
}

#[test]
#[ignore = "needs root and Open vSwitch"]
fn open_vswitch_limits_what_a_flood_sends_up() {
    scenario("punt-meter", |sandbox| {
        let mut bridge = DummyBridge::start(sandbox, 2)?;
        bridge.switch().vsctl(&["set", "bridge", "br0", "protocols=OpenFlow13"])?;
        let mut node = start(sandbox)?;
        bridge.switch().set_controller(CONTROLLER)?;
        node.wait_for_switch("its switch meters", is_on)?;
        let rule = punting_rule(&bridge)?;
        if !rule.contains("meter:") {
            return Err(format!("it has no meter: {rule}"));
        }
        for _ in 0..FLOOD {
            bridge.receive(1, &frame(), &[0, 0])?;
        }
        // All messages that wait in the switch are answered before this one.
        let meters = bridge.switch().ofctl(Version::V1_3, &["meter-stats", "br0"])?;
        let came = node.ask(&["switches"])?[0]["packet_ins"].as_u64().unwrap_or_default();
        if came == 0 || came > FLOOD as u64 / 2 {
            return Err(format!("{came} of {FLOOD} packets came up: {meters}"));
        }
        node.wait_for_switch("what its meter dropped is told", |switch| {
            switch["meter"]["on"]["dropped"].as_u64().is_some_and(|dropped| dropped >= FLOOD as u64 / 2)
        })?;
        // A new node finds the first node's meter.
        node.stop()?;
        let mut node = start(sandbox)?;
        node.wait_for_switch("its switch meters again", is_on)?;
        // So does a new session of the same node.
        bridge.switch().vsctl(&["del-controller", "br0"])?;
        node.wait_for_switches(0)?;
        bridge.switch().set_controller(CONTROLLER)?;
        node.wait_for_switch("its next session is metered", is_on)?;
        // Deleting the meter also deletes its rule. The rule returns without a meter.
        bridge.switch().ofctl(Version::V1_3, &["del-meters", "br0"])?;
        node.wait_for_switch("that its meter was deleted", |switch| {
            let reason = switch["meter"]["without"]["reason"].as_str();
            reason.is_some_and(|reason| reason.contains("the node's meter in the switch was deleted"))
        })?;
        node.wait_until("the rule is back", |_| {
            Ok(punting_rule(&bridge).is_ok_and(|rule| !rule.contains("meter:")))
        })?;
        node.stop()
    });
}
