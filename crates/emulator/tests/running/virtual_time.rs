//! Virtual time with a controller behind real connections, compared with real time.

use super::controller::flooding;
use emulator::{Change, Emulation, FlowRate, FlowSpec, FlowState, SwitchOptions, Topology};
use std::time::{Duration, Instant};

/// Longer than any step takes. Only a failing test waits so long.
const PATIENCE: Duration = Duration::from_secs(30);

fn topology(text: &str, quality: &str) -> Topology {
    let mut topology: Topology = text.parse().unwrap();
    topology.links.iter_mut().for_each(|link| link.quality = quality.parse().unwrap());
    topology
}

#[test]
fn a_ping_takes_what_its_links_take_however_long_the_controller_thinks() {
    let (controller, _) = flooding();
    let shape = topology("single,2", "delay=100ms");
    let (network, _) =
        Emulation::start_in_virtual_time(&shape, &[controller], &SwitchOptions::default()).unwrap();
    network.wait_connected(PATIENCE).unwrap();
    let report = network.ping_all(Duration::from_secs(1000));
    // Each host learns the other's address from the other's request, and pings after the answer.
    let round_trips: Vec<_> = report.pairs.iter().map(|pair| pair.round_trip.unwrap().as_millis()).collect();
    assert_eq!(round_trips, [600, 600]);
}

#[test]
fn an_hour_passes_at_once() {
    let (controller, _) = flooding();
    let shape = topology("linear,2", "delay=5ms");
    let began = Instant::now();
    let (network, _) =
        Emulation::start_in_virtual_time(&shape, &[controller], &SwitchOptions::default()).unwrap();
    network.wait_connected(PATIENCE).unwrap();
    let spec = FlowSpec {
        rate: FlowRate::BitsPerSecond(12_000),
        limit_bytes: Some(14_400),
        ..FlowSpec::tcp("h1", "h2")
    };
    let flow = network.start_flow(spec).unwrap();
    assert_eq!(network.flow_report(flow).unwrap().at, Duration::ZERO, "time stands");
    assert!(network.pass_to(Duration::from_secs(3600)));
    let report = network.flow_report(flow).unwrap();
    assert_eq!((report.state, report.delivered_bytes), (FlowState::Ended, 14_400));
    assert_eq!(report.at, Duration::from_secs(3600));
    assert!(began.elapsed() < Duration::from_secs(1800));
}

#[test]
fn in_real_time_a_time_comes_by_itself() {
    let (controller, _) = flooding();
    let network =
        Emulation::start(&topology("single,2", "ideal"), controller, &SwitchOptions::default()).unwrap();
    let began = Instant::now();
    assert!(network.pass_to(Duration::from_millis(200)));
    // The network began a little before this.
    assert!(began.elapsed() > Duration::from_millis(50));
}

#[test]
fn a_switch_that_was_off_is_connected_again() {
    let (controller, _) = flooding();
    let network =
        Emulation::start(&topology("linear,2", "ideal"), controller, &SwitchOptions::default()).unwrap();
    network.wait_connected(PATIENCE).unwrap();
    assert!(network.ping_all(PATIENCE).is_complete());
    let refused = network.change(Change::Switch { switch: "s9".into(), up: false }).unwrap_err();
    assert!(refused.to_string().contains("no switch 's9'"));
    network.change(Change::Switch { switch: "s2".into(), up: false }).unwrap();
    assert_eq!(network.ping_all(Duration::from_millis(50)).answered(), 0);
    network.change(Change::Switch { switch: "s2".into(), up: true }).unwrap();
    network.wait_connected(PATIENCE).unwrap();
    assert!(network.ping_all(PATIENCE).is_complete());
    let counters = network.counters();
    assert_eq!((counters.connections, counters.connections_lost, counters.connections_refused), (3, 1, 0));
}
