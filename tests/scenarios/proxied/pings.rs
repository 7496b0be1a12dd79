//! Pings through a switch whose controller is a node, by packet-outs and by rules.

use serde_json::Value;
use system_tests::node::Node;
use system_tests::open_vswitch::OpenVSwitch;
use system_tests::sandbox::Sandbox;
use system_tests::{Result, Version, scenario};

use super::setup::{LISTEN, PROXY, Proxied, expect, ping, two_hosts};

/// Each way takes a while, and the table has room for four rules.
const PROFILE: &str = r#"
schema = 1
name = "small"
about = "A slow switch with four rules."

[switch]
vendor = "Small Switches"
hardware = "S4"
firmware = "1"

[delay]
ingress_us = [[0, 10000], [0.5, 15000], [1, 30000]]
egress_us = [[0, 5000], [1, 9000]]

[hardware]
when_full = "refuse"

[[hardware.capacity]]
entries = 4

[source]
"*" = { assumed = "for a test" }
"#;

/// The shortest delay of each way in the profile, and how often a ping pays each: there and back.
const SHORTEST_MS: f64 = 2.0 * (10.0 + 5.0);

/// A node with an app, and a switch behind the proxy.
fn with_app(
    name: &str,
    version: Version,
    app: &str,
    body: impl FnOnce(&Sandbox, &OpenVSwitch<'_>) -> Result<()>,
    check: impl FnOnce(&Value) -> Result<()>,
) {
    scenario(name, |sandbox| {
        let switch = OpenVSwitch::start(sandbox)?;
        two_hosts(sandbox, &switch, version)?;
        let mut node = Node::start(sandbox, &["--app", app, "--listen", LISTEN])?;
        let proxied = Proxied::start(sandbox, PROFILE)?;
        switch.set_controller(&format!("tcp:{PROXY}"))?;
        node.wait_for_switches(1)?;
        node.wait_for_app(app)?;
        body(sandbox, &switch)?;
        let summary = proxied.finish()?;
        println!("{name}: {summary}");
        check(&summary)?;
        node.stop()
    });
}

/// Every ping goes by way of the controller, there and back.
fn pings_by_a_hub(name: &str, version: Version) {
    const PINGS: u32 = 50;
    with_app(
        name,
        version,
        "hub",
        |sandbox, _| {
            let mut trips = ping(sandbox, PINGS)?;
            expect(trips.len() == PINGS as usize, "pings are missing", &trips)?;
            let shortest = trips.iter().copied().fold(f64::INFINITY, f64::min);
            expect(shortest >= SHORTEST_MS, "a packet was faster than the profile", &shortest)?;
            trips.sort_by(f64::total_cmp);
            println!("{name}: round trips p50 {} ms, p90 {} ms", trips[25], trips[45]);
            Ok(())
        },
        |summary| {
            let counters = &summary["counters"];
            expect(counters["sessions"] == 1, "sessions", counters)?;
            expect(counters["packet_ins"].as_u64() >= Some(2 * u64::from(PINGS)), "packet-ins", counters)?;
            // Whether a tap has seen a frame does not depend on time, except for a machine that stands still for a second.
            expect(counters["packet_ins_unseen"].as_u64() <= Some(4), "taps saw too few", counters)
        },
    );
}

#[test]
#[ignore = "needs root and Open vSwitch"]
fn pings_take_the_profiles_time_by_1_0() {
    pings_by_a_hub("proxied-hub-1.0", Version::V1_0);
}

#[test]
#[ignore = "needs root and Open vSwitch"]
fn pings_take_the_profiles_time_by_1_3() {
    pings_by_a_hub("proxied-hub-1.3", Version::V1_3);
}

/// The learning switch adds rules, which then carry the pings.
fn pings_by_rules(name: &str, version: Version) {
    with_app(
        name,
        version,
        "learning-switch",
        |sandbox, switch| {
            let trips = ping(sandbox, 20)?;
            println!("{name}: round trips {trips:?}");
            expect(trips.len() == 20, "pings are missing", &trips)?;
            let rules = switch.ofctl(version, &["dump-flows", "s1"])?;
            let own: Vec<&str> = rules.lines().filter(|line| line.contains("actions=")).collect();
            expect((1..=4).contains(&own.len()), "four rules fit", &own)?;
            expect(own.iter().all(|rule| !rule.contains("timeout")), "the model ends rules", &own)?;
            Ok(())
        },
        |summary| {
            let counters = &summary["counters"];
            expect(counters["sessions"] == 1 && counters["own_errors"] == 0, "counters", counters)
        },
    );
}

#[test]
#[ignore = "needs root and Open vSwitch"]
fn rules_come_into_the_switch_by_1_0() {
    pings_by_rules("proxied-rules-1.0", Version::V1_0);
}

#[test]
#[ignore = "needs root and Open vSwitch"]
fn rules_come_into_the_switch_by_1_3() {
    pings_by_rules("proxied-rules-1.3", Version::V1_3);
}
