//! Compares the kernel's decisions with the behaviour of switches: of ours in this process, and of Open vSwitch if it
//! is installed.
//!
//! `BURNET_ORACLE_SEED` sets the first seed. `BURNET_ORACLE_CASES` sets how many pairs of rules are compared with
//! each switch and version. `BURNET_ORACLE_COMMANDS` or `BURNET_ORACLE_SECONDS` sets how many commands of apps are
//! tried in each version, or for how long.

#![allow(clippy::unwrap_used, reason = "a test ends where something is not as it should be")]

#[path = "../verdicts/dice.rs"]
mod dice;
mod forms;
mod fuzz;
mod grants;
mod identity;
mod judge;
mod node;
mod peer;
mod steps;

use fuzz::Until;
use identity::Tally;
use openflow::Version;
use peer::{Bench, Ours, Peer, TheirBench, Theirs};
use std::time::{Duration, Instant};
use system_tests::dummy_bridge::DummyBridge;
use system_tests::{Result, scenario};

/// The default number of pairs of rules for each version.
const CASES_OURS: u64 = 20_000;
const CASES_THEIRS: u64 = 10_000;

/// The default number of commands of apps in each version.
const COMMANDS_OURS: u64 = 20_000;
const COMMANDS_THEIRS: u64 = 4_000;

fn number(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().map_or(otherwise, |text| text.parse().unwrap())
}

/// Compares pairs of rules. Fails if too few could be compared.
fn compare(peer: &mut dyn Peer, version: Version, cases: u64) -> Result<()> {
    let cases = number("BURNET_ORACLE_CASES", cases);
    let seed = number("BURNET_ORACLE_SEED", 1);
    let tally = identity::compare(peer, version, seed, cases as usize)?;
    println!("OpenFlow {version}: {tally:?}");
    let Tally { same, different, .. } = tally;
    let is_few = |count: u32| u64::from(count) * 20 < cases;
    if is_few(same) || is_few(different) { Err(format!("too few were compared: {tally:?}")) } else { Ok(()) }
}

#[test]
fn two_rules_are_one_for_the_kernel_exactly_where_they_are_for_our_switch() {
    for version in [Version::V1_0, Version::V1_3] {
        compare(&mut Ours::greeted(version).unwrap(), version, CASES_OURS).unwrap();
    }
}

#[test]
#[ignore = "needs root and Open vSwitch"]
fn two_rules_are_one_for_the_kernel_exactly_where_they_are_for_open_vswitch() {
    scenario("oracle-identity", |sandbox| {
        let bridge = DummyBridge::start(sandbox, peer::PORTS)?;
        bridge.switch().vsctl(&["set", "bridge", "br0", "protocols=OpenFlow10,OpenFlow13"])?;
        let socket = sandbox.inside("/run/openvswitch/br0.mgmt");
        for version in [Version::V1_0, Version::V1_3] {
            compare(&mut Theirs::greeted(&socket, version)?, version, CASES_THEIRS)?;
        }
        Ok(())
    });
}

/// Tests the commands of apps in one version, and reports the number of cases and the rate.
fn fuzz(bench: &mut dyn Bench, version: Version, commands: u64) -> Result<()> {
    let until = match number("BURNET_ORACLE_SECONDS", 0) {
        0 => Until::Commands(number("BURNET_ORACLE_COMMANDS", commands)),
        seconds => Until::Elapsed(Duration::from_secs(seconds)),
    };
    let began = Instant::now();
    let tally = fuzz::run(bench, version, number("BURNET_ORACLE_SEED", 1), until)?;
    let per_s = tally.commands as f64 / began.elapsed().as_secs_f64();
    println!("OpenFlow {version}: {tally:?}, {per_s:.0} commands a second");
    // If the kernel refused everything, or no packet left the switch, every comparison would succeed.
    let is_idle = tally.passed * 8 < tally.commands || tally.frames * 20 < tally.commands;
    if is_idle { Err(format!("too little came through: {tally:?}")) } else { Ok(()) }
}

#[test]
fn no_app_does_at_our_switch_what_it_may_not() {
    for version in [Version::V1_0, Version::V1_3] {
        fuzz(&mut Ours::new(), version, COMMANDS_OURS).unwrap_or_else(|reason| panic!("{reason}"));
    }
}

#[test]
#[ignore = "needs root and Open vSwitch"]
fn no_app_does_at_open_vswitch_what_it_may_not() {
    scenario("oracle-fuzz", |sandbox| {
        let bridge = DummyBridge::start(sandbox, peer::PORTS)?;
        bridge.switch().vsctl(&["set", "bridge", "br0", "protocols=OpenFlow10,OpenFlow13"])?;
        let mut bench = TheirBench::new(bridge, sandbox.inside("/run/openvswitch/br0.mgmt"))?;
        for version in [Version::V1_0, Version::V1_3] {
            fuzz(&mut bench, version, COMMANDS_THEIRS)?;
        }
        Ok(())
    });
}
