//! The limit of packet-ins, and barriers with and without a cache of the data plane.

use profile::BarrierKind;
use system_tests::Version;

use super::setup::{expect, found, is_clean, is_rate_played, probed};

/// Open vSwitch itself counts the time for its limit of packet-ins, so the rate is about the same on a slow machine.
fn limit_of_packet_ins(name: &str, version: Version) {
    const RATE: &str = "controller_rate_limit=200";
    probed(
        name,
        version,
        &["--measure", "rates"],
        |_, switch| switch.vsctl(&["set", "controller", "s1", RATE, "controller_burst_limit=50"]).map(drop),
        |sandbox, switch, probing| {
            let code = probing.finish()?;
            expect(code == 0, "the exit code", &code)?;
            let profile = found(sandbox)?;
            let limit = profile.packet_in.limit.ok_or("no limit of packet-ins")?;
            expect(is_rate_played(limit.rate_per_s, 200.0), "the limit of packet-ins", &limit)?;
            is_clean(switch, version)
        },
    );
}

#[test]
#[ignore = "needs root and Open vSwitch"]
fn the_limit_of_packet_ins_is_found_by_1_0() {
    limit_of_packet_ins("probed-limit-1.0", Version::V1_0);
}

#[test]
#[ignore = "needs root and Open vSwitch"]
fn the_limit_of_packet_ins_is_found_by_1_3() {
    limit_of_packet_ins("probed-limit-1.3", Version::V1_3);
}

/// Keeps the threads that follow changes of rules still, for some milliseconds again and again. So the cache is behind the rules for that
/// long, on a slow machine too.
const PAUSES: &str =
    "while :; do ovs-appctl revalidator/pause; sleep 0.04; ovs-appctl revalidator/resume; sleep 0.005; done";

fn barriers(name: &str, settings: &[&str], is_honest: bool) {
    probed(
        name,
        Version::V1_3,
        &["--measure", "barriers"],
        |sandbox, switch| {
            if !settings.is_empty() {
                switch.vsctl(&[&["set", "Open_vSwitch", "."], settings].concat())?;
            }
            let mut pauses = sandbox.command("sh");
            pauses.args(["-c", PAUSES]).stdout(sandbox.log("pauses")?).stderr(sandbox.log("pauses")?);
            // It ends with the sandbox.
            pauses.spawn().map(drop).map_err(|error| format!("cannot run sh: {error}"))
        },
        |sandbox, switch, probing| {
            let code = probing.finish()?;
            expect(code == 0, "the exit code", &code)?;
            let kind = found(sandbox)?.barrier.kind;
            expect((kind == BarrierKind::Honest) == is_honest, "what a barrier means", &kind)?;
            is_clean(switch, Version::V1_3)
        },
    );
}

#[test]
#[ignore = "needs root and Open vSwitch"]
fn a_barrier_does_not_cover_the_cache() {
    barriers("probed-cache", &[], false);
}

#[test]
#[ignore = "needs root and Open vSwitch"]
fn a_barrier_without_a_cache_is_honest() {
    barriers("probed-no-cache", &["other_config:flow-limit=0"], true);
}
