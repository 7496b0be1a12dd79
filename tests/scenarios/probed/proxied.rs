//! Open vSwitch behind the proxy: the probe finds the switch of the profile, and not Open vSwitch.

use profile::{BarrierKind, Profile, WhenFull};
use std::fs;
use std::time::Instant;
use system_tests::node::binary;
use system_tests::open_vswitch::OpenVSwitch;
use system_tests::sandbox::Sandbox;
use system_tests::{Result, Version, scenario_that_waits};

use super::setup::{LIMIT, Probing, bridge, expect, found, is_clean, is_played};

const PROXY: &str = "127.0.0.1:6650";
const LISTEN: &str = "127.0.0.1:6653";

/// A small table, rates far below those of Open vSwitch, and rules that come late.
const PROFILE: &str = r#"
schema = 1
name = "small"
about = "A slow switch with 60 rules."

[switch]
vendor = "Small Switches"
hardware = "S60"
firmware = "1"

[cpu]
packet_in = { service_us = 6000 }
packet_out = { service_us = 3000 }
add = { service_us = 12000 }

[barrier]
reply = "early"
rules_late_us = [[0, 25000], [1, 40000]]

[hardware]
when_full = "refuse"

[[hardware.capacity]]
entries = 60

[source]
"*" = { assumed = "for a test" }
"#;

/// The proxy before the switch, which ends with the sandbox.
fn play(sandbox: &Sandbox, text: &str) -> Result<()> {
    let file = sandbox.folder().join("played.toml");
    fs::write(&file, text).map_err(|error| format!("cannot write {}: {error}", file.display()))?;
    let mut command = sandbox.command("sh");
    command.args(["-c", "exec \"$0\" \"$@\""]).arg(binary()?).args(["emulate", "--profile"]).arg(&file);
    command.args(["--proxy", PROXY, "--tap", "1=s1-eth1,2=s1-eth2", "--controller", LISTEN]);
    command.stdout(sandbox.log("proxy")?).stderr(sandbox.log("proxy")?);
    command.spawn().map_err(|error| format!("cannot run the proxy: {error}"))?;
    let began = Instant::now();
    while !sandbox.read_log("proxy").contains("is played before the switch") {
        if began.elapsed() > LIMIT {
            return Err("the proxy does not begin".to_owned());
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    Ok(())
}

/// Whether a time that was found can be the one that is played.
fn fits(found_us: f64, played_us: f64, what: &str) -> Result<()> {
    expect(is_played(found_us, played_us), what, &(found_us, played_us))
}

fn is_that_of_the_profile(found: &Profile) -> Result<()> {
    let played = Profile::parse("played.toml", PROFILE).map_err(|bad| bad.to_string())?;
    expect(found.switch.vendor == played.switch.vendor, "the vendor", &found.switch)?;
    let hardware = found.hardware.as_ref().ok_or("no hardware table")?;
    let size = hardware.capacities.last().map(|it| (it.entries, it.at_least));
    expect(size == Some((60, false)), "the size of the table", &size)?;
    expect(hardware.when_full == WhenFull::Refuse, "what happens when it is full", &hardware.when_full)?;
    let mean = |of: &profile::Service| of.service_us.mean_us();
    fits(mean(&found.cpu.packet_in), mean(&played.cpu.packet_in), "a packet-in")?;
    fits(mean(&found.cpu.packet_out), mean(&played.cpu.packet_out), "a packet-out")?;
    fits(mean(&found.cpu.add) + hardware.add.at(0, 0, 0), mean(&played.cpu.add), "an add")?;
    let BarrierKind::Early(late) = &found.barrier.kind else {
        return Err(format!("the barrier is early: {:?}", found.barrier.kind));
    };
    fits(late.at(0.5), 32.5e3, "how late rules are")
}

fn played(name: &str, version: Version) {
    scenario_that_waits(name, |sandbox| {
        let switch = OpenVSwitch::start(sandbox)?;
        bridge(sandbox, &switch, version)?;
        play(sandbox, PROFILE)?;
        let mut probing = Probing::start(sandbox, &["--measure", "rates,barriers,set-up,table"])?;
        probing.wait_for("waiting for the switch")?;
        switch.set_controller(&format!("tcp:{PROXY}"))?;
        let code = probing.finish()?;
        println!("{name}: {}", sandbox.read_log("report"));
        expect(code == 0, "the exit code", &code)?;
        is_that_of_the_profile(&found(sandbox)?)?;
        is_clean(&switch, version)
    });
}

#[test]
#[ignore = "needs root and Open vSwitch"]
fn behind_the_proxy_the_profile_is_found_by_1_0() {
    played("probed-profile-1.0", Version::V1_0);
}

#[test]
#[ignore = "needs root and Open vSwitch"]
fn behind_the_proxy_the_profile_is_found_by_1_3() {
    played("probed-profile-1.3", Version::V1_3);
}
