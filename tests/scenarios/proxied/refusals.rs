//! The errors about a rule that the target has no room for, and about one that Open vSwitch refuses.

use std::time::{Duration, Instant};
use system_tests::open_vswitch::OpenVSwitch;
use system_tests::sandbox::Sandbox;
use system_tests::{Result, Version, scenario};

use super::setup::{LIMIT, PROXY, Proxied, expect, kept, two_hosts};

const CONTROLLER: &str = include_str!("refusals.py");

/// Room for four rules, at once.
const PROFILE: &str = r#"
schema = 1
name = "four"
about = "A switch with four rules."

[switch]
vendor = "Small Switches"
hardware = "S4"
firmware = "1"

[hardware]
when_full = "refuse"

[[hardware.capacity]]
entries = 4

[source]
"*" = { assumed = "for a test" }
"#;

fn wait_for(sandbox: &Sandbox, text: &str) -> Result<()> {
    let began = Instant::now();
    while !sandbox.read_log("controller").contains(text) {
        if began.elapsed() > LIMIT {
            return Err(format!("the controller does not say `{text}`"));
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    Ok(())
}

fn five_rules(name: &str, version: Version, table_full: &str) {
    scenario(name, |sandbox| {
        let switch = OpenVSwitch::start(sandbox)?;
        two_hosts(sandbox, &switch, version)?;
        // Inside, the checkout may be hidden.
        let script = kept(sandbox, "refusals.py", CONTROLLER)?;
        let mut controller = sandbox.command("python3");
        controller.arg(script).arg(if version == Version::V1_0 { "1.0" } else { "1.3" });
        controller.stdout(sandbox.log("controller")?).stderr(sandbox.log("controller")?);
        let mut controller = controller.spawn().map_err(|error| format!("cannot run python3: {error}"))?;
        wait_for(sandbox, "it listens")?;
        let proxied = Proxied::start(sandbox, PROFILE)?;
        switch.set_controller(&format!("tcp:{PROXY}"))?;
        wait_for(sandbox, "barrier 200")?;
        let said = sandbox.read_log("controller");
        let lines: Vec<&str> = said.lines().collect();
        // OFPBAC_BAD_OUT_PORT is Open vSwitch's own.
        let expected = [
            "it listens",
            &format!("error 105 {table_full} with its bytes"),
            "error 106 type 2 code 4 with its bytes",
            "barrier 200",
        ];
        expect(lines == expected, "the controller hears", &lines)?;
        let rules = switch.ofctl(version, &["dump-flows", "s1"])?;
        let drops = rules.lines().filter(|line| line.contains("actions=drop")).count();
        expect(drops == 4, "four rules, as they were added", &rules)?;
        let summary = proxied.finish()?;
        let counters = &summary["counters"];
        expect(counters["refused"] == 1 && counters["own_errors"] == 0, "counters", counters)?;
        // It ends when the switch has gone.
        controller.wait().map(drop).map_err(|error| format!("cannot wait for the controller: {error}"))
    });
}

#[test]
#[ignore = "needs root and Open vSwitch"]
fn a_fifth_rule_is_refused_as_in_1_0() {
    five_rules("proxied-refusals-1.0", Version::V1_0, "type 3 code 0");
}

#[test]
#[ignore = "needs root and Open vSwitch"]
fn a_fifth_rule_is_refused_as_in_1_3() {
    five_rules("proxied-refusals-1.3", Version::V1_3, "type 5 code 1");
}
