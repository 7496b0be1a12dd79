//! What the kernel lets pass, asked of the switches themselves: of ours in this process, and of Open vSwitch where there is one.
//!
//! `BURNET_ORACLE_SEED` says from which seed on, `BURNET_ORACLE_CASES` how many pairs of rules are compared with each switch and version.

#![allow(clippy::unwrap_used, reason = "a test ends where something is not as it should be")]

#[path = "../verdicts/dice.rs"]
mod dice;
mod forms;
mod identity;
mod peer;

use identity::Tally;
use openflow::Version;
use peer::{Ours, Peer, Theirs};
use system_tests::dummy_bridge::DummyBridge;
use system_tests::{Result, scenario};

/// Pairs of rules for each version, where nobody says how many.
const CASES_OURS: u64 = 20_000;
const CASES_THEIRS: u64 = 10_000;

fn number(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().map_or(otherwise, |text| text.parse().unwrap())
}

/// Compares pairs of rules. Where few are compared, nothing was shown.
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
        compare(&mut Ours::new(version), version, CASES_OURS).unwrap();
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
            compare(&mut Theirs::connect(&socket, version)?, version, CASES_THEIRS)?;
        }
        Ok(())
    });
}
