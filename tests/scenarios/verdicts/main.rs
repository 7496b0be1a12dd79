//! Compares Open vSwitch with our software switch, and with a slice that owns all of our software switch. With the same flow tables and
//! packets, all must send the same bytes from the same ports.
//!
//! Tables, groups and packets are random, from a seed. A packet is first traced in Open vSwitch (`ofproto/trace`).
//! Then it is really sent through its user-space datapath, and through ours. The trace's ports, the frames that left
//! Open vSwitch and our frames must agree. `BURNET_VERDICT_TABLES` sets the number of table sets, and
//! `BURNET_VERDICT_SEED` the first seed. Each set gets a number of packets, all of them twice, because the second one
//! takes the cached path.

#![allow(clippy::unwrap_used, reason = "a test ends where something is not as it should be")]

mod dice;
mod packets;
mod rules;
#[path = "../../../crates/slicer/tests/conformance/sliced.rs"]
#[allow(dead_code, reason = "links and speeds do not change here")]
mod sliced;

use dice::Dice;
use emulator::{ControllerId, Effects, Switch, SwitchOptions, Versions};
use flow::{DatapathId, PortNo};
use openflow::message::Hello;
use openflow::{Body, Message, Version};
use rules::{PORTS_OF_SWITCH, RuleSet};
use std::time::Duration;
use system_tests::dummy_bridge::{DummyBridge, hex, ports_of_trace};
use system_tests::{Result, scenario};

/// Packets for each set of tables.
const PACKETS: usize = 25;
/// The default number of table sets. They take about ten seconds.
const TABLES: u64 = 60;

const NOW: Duration = Duration::from_secs(1);
/// The version of the switch below the slice.
const ON: Version = Version::V1_3;
/// Tables of a switch, and of a slice.
const OF_SWITCH: u8 = 4;
const OF_SLICE: u8 = 1;

/// The frames that leave each port, the first port's first.
type Verdict = Vec<Vec<Vec<u8>>>;

/// What is compared with Open vSwitch.
trait Ours {
    fn add_port(&mut self, port: PortNo, effects: &mut Effects);
    fn on_connected(&mut self, effects: &mut Effects);
    fn on_message(&mut self, message: &Message, effects: &mut Effects);
    fn on_frame(&mut self, port: PortNo, frame: &[u8], effects: &mut Effects);
}

/// Both have the same methods.
macro_rules! ours {
    ($switch:ty) => {
        impl Ours for $switch {
            fn add_port(&mut self, port: PortNo, effects: &mut Effects) {
                <$switch>::add_port(self, port, NOW, effects);
            }
            fn on_connected(&mut self, effects: &mut Effects) {
                <$switch>::on_connected(self, ControllerId(0), effects);
            }
            fn on_message(&mut self, message: &Message, effects: &mut Effects) {
                <$switch>::on_message(self, ControllerId(0), message, NOW, effects);
            }
            fn on_frame(&mut self, port: PortNo, frame: &[u8], effects: &mut Effects) {
                <$switch>::on_frame(self, port, frame.to_vec(), NOW, effects);
            }
        }
    };
}
ours!(Switch);
ours!(sliced::Switch);

/// Gives our switch these rules.
fn prepare<S: Ours>(mut switch: S, set: &RuleSet) -> Result<S> {
    let mut effects = Effects::default();
    (1..=PORTS_OF_SWITCH).for_each(|port| switch.add_port(PortNo(port), &mut effects));
    switch.on_connected(&mut effects);
    let groups = set.groups.iter().cloned().map(Body::GroupMod);
    let rules = set.rules.iter().cloned().map(Body::FlowMod);
    for body in std::iter::once(Body::Hello(Hello::default())).chain(groups).chain(rules) {
        effects.messages.clear();
        let message = Message { version: Version::V1_3, xid: 1, body };
        switch.on_message(&message, &mut effects);
        let refused = effects.messages.iter().any(|(_, answer)| matches!(answer.body, Body::Error(_)));
        if refused {
            return Err(format!("ours refuses {message:?}: {:?}", effects.messages));
        }
    }
    Ok(switch)
}

fn our_verdict(switch: &mut impl Ours, in_port: u32, frame: &[u8]) -> Verdict {
    let mut effects = Effects::default();
    switch.on_frame(PortNo(in_port), frame, &mut effects);
    let of = |port| effects.frames.iter().filter(move |(by, _)| by.0 == port).map(|(_, frame)| frame.clone());
    (1..=PORTS_OF_SWITCH).map(|port| of(port).collect()).collect()
}

/// Sends one packet through both switches. Returns how many frames it became. The error describes the difference.
fn compare(bridge: &mut DummyBridge<'_>, ours: &mut impl Ours, in_port: u32, frame: &[u8]) -> Result<usize> {
    let first = our_verdict(ours, in_port, frame);
    let trace = bridge.trace(in_port, frame)?;
    let traced = ports_of_trace(&trace);
    let of_port = |port| traced.iter().filter(|by| **by == port).count();
    let counts: Vec<usize> = (1..=PORTS_OF_SWITCH).map(of_port).collect();
    // The datapath reads what is under a popped label, and the trace ends before that.
    let is_whole = !trace.contains("recirc(");
    let expected = if is_whole { counts.clone() } else { lengths(&first) };
    let theirs = bridge.receive(in_port, frame, &expected)?;
    let again = our_verdict(ours, in_port, frame);
    for (found, path) in [(&first, "its path is not known"), (&again, "its path is known")] {
        if *found != theirs {
            return Err(format!(
                "a packet by port {in_port} ({path}):\n  {}\nOpen vSwitch:\n{}ours:\n{}{trace}",
                hex(frame),
                show(&theirs),
                show(found)
            ));
        }
    }
    if is_whole && counts != lengths(&theirs) {
        return Err(format!("Open vSwitch's trace is not what it does:\n{}{trace}", show(&theirs)));
    }
    Ok(theirs.iter().map(Vec::len).sum())
}

fn lengths(verdict: &Verdict) -> Vec<usize> {
    verdict.iter().map(Vec::len).collect()
}

fn show(verdict: &Verdict) -> String {
    let lines = (1..)
        .zip(verdict)
        .flat_map(|(port, frames)| frames.iter().map(move |frame| format!("  {port}: {}\n", hex(frame))));
    lines.collect()
}

fn number(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().map_or(otherwise, |text| text.parse().unwrap())
}

#[test]
#[ignore = "needs root and Open vSwitch"]
fn open_vswitch_and_ours_send_the_same_bytes_out_of_the_same_ports() {
    compare_all("verdicts", OF_SWITCH, |options| Switch::new(DatapathId(1), "ours", options));
}

#[test]
#[ignore = "needs root and Open vSwitch"]
fn open_vswitch_and_a_slice_of_ours_send_the_same_bytes_out_of_the_same_ports() {
    compare_all("verdicts-sliced", OF_SLICE, |options| sliced::Switch::new(DatapathId(1), "ours", options));
}

/// Compares with all sets of rules in so many tables.
fn compare_all<S: Ours>(name: &str, tables: u8, new: impl Fn(SwitchOptions) -> S) {
    let (seed, sets) = (number("BURNET_VERDICT_SEED", 1), number("BURNET_VERDICT_TABLES", TABLES));
    scenario(name, |sandbox| {
        let mut bridge = DummyBridge::start(sandbox, PORTS_OF_SWITCH)?;
        let (mut packets, mut sent) = (0, 0);
        for seed in seed..seed + sets {
            let mut dice = Dice::new(seed);
            let set = RuleSet::roll(&mut dice, tables);
            let about = |reason: String| {
                format!("BURNET_VERDICT_SEED={seed}: {reason}\n{}", set.for_ovs().join("\n"))
            };
            bridge.load(&set.for_ovs()).map_err(about)?;
            let options = SwitchOptions { versions: Versions::Only13, ..SwitchOptions::default() };
            let mut ours = prepare(new(options), &set).map_err(about)?;
            for _ in 0..PACKETS {
                let frame = packets::frame(&mut dice, set.style);
                let in_port = 1 + dice.below(PORTS_OF_SWITCH.into()) as u32;
                sent += compare(&mut bridge, &mut ours, in_port, &frame).map_err(about)?;
                packets += 1;
            }
        }
        println!("{sets} sets of tables, {packets} packets, {sent} frames came out, all the same");
        // If the tables forwarded nothing, every comparison would succeed.
        if sent * 4 < packets { Err(format!("only {sent} frames came out")) } else { Ok(()) }
    });
}
