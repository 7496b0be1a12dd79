//! An app of os-ken, the most used controller framework in Python, whose switch is Open vSwitch behind the proxy. Left out by name if
//! Python has no os-ken.

use std::time::Instant;
use system_tests::open_vswitch::OpenVSwitch;
use system_tests::{Version, os_ken, scenario};

use super::setup::{LIMIT, PROXY, Proxied, expect, ping, two_hosts};

/// The learning switch of 1.3 that the test of the emulator has, too.
const APP_1_3: &str = include_str!("../../../crates/emulator/tests/running/os_ken_app.py");
const PORT: u16 = 6653;
const PINGS: u32 = 20;

/// Rules reach the data plane some milliseconds after the packet, and packets wait in buffers.
const PROFILE: &str = r#"
schema = 1
name = "buffering"
about = "A switch with packet buffers, whose rules come late."

[switch]
vendor = "Small Switches"
hardware = "S9"
firmware = "1"

[cpu]
packet_in = { service_us = [[0, 500], [1, 1500]] }
add = { service_us = [[0, 2000], [1, 6000]] }

[delay]
ingress_us = [[0, 8000], [0.5, 12000], [1, 20000]]
egress_us = [[0, 4000], [1, 8000]]

[packet_in]
buffers_packets = 64
buffer_life_us = 5000000

[hardware]
when_full = "refuse"

[[hardware.capacity]]
entries = 100

[source]
"*" = { assumed = "for a test" }
"#;

fn pings_by_os_ken(name: &str, version: Version, app: &str) {
    let Some(python) = os_ken::python() else {
        eprintln!("left out: {name}: python3 has no os-ken (pip install os-ken)");
        return;
    };
    scenario(name, |sandbox| {
        let switch = OpenVSwitch::start(sandbox)?;
        two_hosts(sandbox, &switch, version)?;
        let mut controller = os_ken::start(sandbox, &python, app, PORT)?;
        let proxied = Proxied::start(sandbox, PROFILE)?;
        switch.set_controller(&format!("tcp:{PROXY}"))?;
        proxied.wait_for("a switch has connected")?;
        // Until the handshake is over, packets have no way.
        let began = Instant::now();
        while ping(sandbox, 1)?.is_empty() {
            expect(began.elapsed() < LIMIT, "no ping passes", &sandbox.read_log("proxy"))?;
        }
        let trips = ping(sandbox, PINGS)?;
        println!("{name}: round trips {trips:?}");
        expect(trips.len() == PINGS as usize, "pings are missing", &trips)?;
        let rules = switch.ofctl(version, &["dump-flows", "s1"])?;
        expect(rules.contains("output:"), "the app's rules are in the switch", &rules)?;
        let summary = proxied.finish()?;
        println!("{name}: {summary}");
        let counters = &summary["counters"];
        expect(counters["sessions"] == 1 && counters["own_errors"] == 0, "counters", counters)?;
        expect(counters["packet_ins"].as_u64() >= Some(3), "packet-ins", counters)?;
        controller.kill().map_err(|error| format!("os-ken has ended before: {error}"))?;
        controller.wait().map(drop).map_err(|error| format!("cannot wait for os-ken: {error}"))
    });
}

#[test]
#[ignore = "needs root, Open vSwitch and os-ken"]
fn pings_pass_with_an_app_of_os_ken_by_1_0() {
    pings_by_os_ken("proxied-os-ken-1.0", Version::V1_0, os_ken::LEARNING_1_0);
}

#[test]
#[ignore = "needs root, Open vSwitch and os-ken"]
fn pings_pass_with_an_app_of_os_ken_by_1_3() {
    pings_by_os_ken("proxied-os-ken-1.3", Version::V1_3, APP_1_3);
}
