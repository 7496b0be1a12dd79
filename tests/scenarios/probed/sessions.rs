//! What is refused, and a probe that ends early and goes on.

use std::time::Duration;
use system_tests::open_vswitch::OpenVSwitch;
use system_tests::sandbox::Sandbox;
use system_tests::{Result, Version};

use super::setup::{CONTROLLER, ENTRIES, LIMIT, Probing, expect, found, is_clean, limit_table, probed};

#[test]
#[ignore = "needs root and Open vSwitch"]
fn foreign_rules_are_refused_and_cleared() {
    let add = |switch: &OpenVSwitch<'_>| {
        switch
            .ofctl(Version::V1_3, &["add-flow", "s1", "table=0,priority=1,in_port=7,actions=drop"])
            .map(drop)
    };
    let version = Version::V1_3;
    probed(
        "probed-foreign",
        version,
        &["--measure", "table"],
        |_, switch| add(switch),
        |sandbox, switch, probing| {
            let code = probing.finish()?;
            expect(code == 1, "the exit code", &code)?;
            let told = sandbox.read_log("probe");
            expect(told.contains("the switch has 1 rule that no probe added"), "what was told", &told)?;
            let rules = switch.ofctl(version, &["dump-flows", "s1"])?;
            expect(rules.contains("in_port=7"), "the foreign rule is gone", &rules)?;
            let words = ["--measure", "table", "--clear", "--table-max", "100"];
            let code = Probing::start(sandbox, &words)?.finish()?;
            expect(code == 0, "the exit code with --clear", &code)?;
            let rules = switch.ofctl(version, &["dump-flows", "s1"])?;
            expect(!rules.contains("in_port=7"), "the foreign rule is still there", &rules)
        },
    );
}

#[test]
#[ignore = "needs root and Open vSwitch"]
fn a_wrong_cable_is_named() {
    probed(
        "probed-cable",
        Version::V1_3,
        &["--measure", "table"],
        |sandbox, switch| {
            switch.vsctl(&["del-port", "s1", "s1-eth2"])?;
            sandbox.must(
                LIMIT,
                "ip",
                &["link", "add", "other", "type", "veth", "peer", "name", "nowhere"],
            )?;
            sandbox.must(LIMIT, "ip", &["link", "set", "other", "up"])?;
            switch
                .vsctl(&["add-port", "s1", "other", "--", "set", "interface", "other", "ofport_request=2"])
                .map(drop)
        },
        |sandbox, _, probing| {
            let code = probing.finish()?;
            expect(code == 1, "the exit code", &code)?;
            let told = sandbox.read_log("probe");
            expect(told.contains("port 2 is not at veth2: nothing came in 2 s"), "what was told", &told)
        },
    );
}

#[test]
#[ignore = "needs root and Open vSwitch"]
fn a_stopped_or_killed_probe_leaves_no_rules_and_a_later_one_goes_on() {
    let version = Version::V1_3;
    probed(
        "probed-stopped",
        version,
        &["--measure", "table,orders"],
        |_, switch| limit_table(switch, "refuse"),
        |sandbox, switch, mut probing| {
            probing.wait_for("adding rules with rising priorities")?;
            probing.signal("-INT")?;
            let code = probing.finish()?;
            expect(code == 1, "the exit code of a stopped probe", &code)?;
            is_clean(switch, version)?;
            expect(found(sandbox)?.measurement.incomplete, "whether the file is marked incomplete", &false)?;
            let words = ["--measure", "table,orders", "--resume"];
            let code = Probing::start(sandbox, &words)?.finish()?;
            expect(code == 0, "the exit code of the probe that goes on", &code)?;
            let told = sandbox.read_log("probe");
            expect(!told.contains("filling the table"), "the table was measured again", &told)?;
            let profile = found(sandbox)?;
            let entries =
                profile.hardware.map(|it| it.capacities.iter().map(|it| it.entries).collect::<Vec<_>>());
            expect(entries == Some(vec![ENTRIES]), "the size of the table", &entries)?;
            let mut killed = Probing::start(sandbox, &["--measure", "table"])?;
            killed.wait_for("filling the table")?;
            std::thread::sleep(Duration::from_millis(300));
            killed.signal("-KILL")?;
            let _ = killed.finish();
            let words = ["--measure", "table", "--table-max", "100"];
            let code = Probing::start(sandbox, &words)?.finish()?;
            expect(code == 0, "the exit code after a kill", &code)?;
            is_clean(switch, version)
        },
    );
}

/// Puts the interfaces of the switch at these ports.
fn cable(switch: &OpenVSwitch<'_>, ports: [u32; 2]) -> Result<()> {
    let interfaces = ["s1-eth1", "s1-eth2"];
    for interface in interfaces {
        switch.vsctl(&["del-port", "s1", interface])?;
    }
    for (interface, port) in interfaces.iter().zip(ports) {
        let request = format!("ofport_request={port}");
        switch.vsctl(&["add-port", "s1", interface, "--", "set", "interface", interface, &request])?;
    }
    Ok(())
}

fn name(switch: &OpenVSwitch<'_>, datapath_id: &str) -> Result<()> {
    switch.vsctl(&["set", "bridge", "s1", &format!("other_config:datapath-id={datapath_id}")]).map(drop)
}

/// Starts the same probe with `--resume`. It is refused, and says why.
fn is_refused(sandbox: &Sandbox, words: &[&str], why: &str) -> Result<()> {
    let code = Probing::start(sandbox, &[words, &["--resume"]].concat())?.finish()?;
    expect(code == 1, "the exit code", &code)?;
    let told = sandbox.read_log("probe");
    expect(told.contains(why), "what was told", &told)
}

#[test]
#[ignore = "needs root and Open vSwitch"]
fn a_probe_goes_on_when_the_switch_that_left_is_back() {
    const WORDS: [&str; 4] = ["--measure", "rates,table", "--table-max", "3000"];
    probed(
        "probed-left",
        Version::V1_3,
        &WORDS,
        |_, switch| name(switch, "00000000000000a1"),
        |sandbox, switch, mut probing| {
            probing.wait_for("filling the table")?;
            switch.vsctl(&["del-controller", "s1"])?;
            let code = probing.finish()?;
            expect(code == 1, "the exit code", &code)?;
            let report = sandbox.read_log("report");
            expect(report.contains("the switch left"), "what was told", &report)?;
            expect(found(sandbox)?.measurement.incomplete, "whether the file is marked incomplete", &false)?;
            switch.set_controller(CONTROLLER)?;
            name(switch, "00000000000000a2")?;
            is_refused(sandbox, &WORDS, "the records are of another probe")?;
            name(switch, "00000000000000a1")?;
            cable(switch, [2, 1])?;
            is_refused(sandbox, &WORDS, "port 1 is not at veth1: its frame came to veth2")?;
            cable(switch, [1, 2])?;
            let code = Probing::start(sandbox, &[&WORDS[..], &["--resume"]].concat())?.finish()?;
            expect(code == 0, "the exit code of the probe that goes on", &code)?;
            let told = sandbox.read_log("probe");
            expect(!told.contains("at saturation"), "rates were measured again", &told)?;
            let profile = found(sandbox)?;
            expect(!profile.measurement.incomplete, "is the file whole?", &false)?;
            let size = profile.hardware.and_then(|it| it.capacities.last().map(|it| it.entries));
            expect(size == Some(3000), "the size of the table", &size)?;
            is_clean(switch, Version::V1_3)
        },
    );
}
