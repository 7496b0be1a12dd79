//! Tests with the controller in this process, well-behaved and not.

use super::controller::{behaving, flooding, serve, serve_with};
use super::every_kind_of_switch;
use emulator::{Emulation, FailMode, IpVersion, NetworkEvent, Profiles, SwitchOptions, Topology, Versions};
use openflow::{Body, Message, Version};
use profile::{Profile, Quantiles};
use std::io::Write;
use std::net::TcpStream;
use std::time::Duration;

/// Longer than any step takes. Only a failing test waits so long.
const PATIENCE: Duration = Duration::from_secs(30);

fn topology(text: &str) -> Topology {
    text.parse().unwrap()
}

#[test]
fn all_hosts_of_a_tree_reach_each_other() {
    for options in every_kind_of_switch() {
        let (controller, _) = flooding();
        let network = Emulation::start(&topology("tree,2"), controller, &options).unwrap();
        network.wait_connected(PATIENCE).unwrap();
        for ip in [IpVersion::V4, IpVersion::V6] {
            let report = network.ping_all_over(ip, PATIENCE);
            assert_eq!(report.to_string(), "0% dropped (12/12 received)", "{options:?}");
        }
        assert!(
            network
                .host_counters()
                .iter()
                .all(|(_, counted)| counted.frames_in > 0 && counted.frames_out > 0)
        );
        let counters = network.counters();
        assert_eq!((counters.connections, counters.errors, counters.bad_messages), (3, 0, 0), "{options:?}");
        assert!(counters.packet_ins > 0 && counters.packet_ins == counters.packet_outs, "{counters:?}");
        network.stop();
    }
}

#[test]
fn an_observer_sees_what_happens_in_its_order() {
    // The controller sends nothing before the observer is registered.
    let (watching, watched) = std::sync::mpsc::channel::<()>();
    let controller = behaving(move |_, mut stream| {
        watched.recv().unwrap();
        serve(&mut stream, |_| {});
    });
    let options = SwitchOptions { versions: Versions::Only13, ..SwitchOptions::default() };
    let network = Emulation::start(&topology("single,2"), controller, &options).unwrap();
    let observer = network.observer();
    watching.send(()).unwrap();
    network.wait_connected(PATIENCE).unwrap();
    assert!(network.ping_all(PATIENCE).is_complete());
    network.stop();
    let events: Vec<NetworkEvent> = std::iter::from_fn(|| observer.next_within(PATIENCE).ok()).collect();
    let first = |wanted: fn(&NetworkEvent) -> bool| events.iter().position(wanted).unwrap();
    let connected =
        first(|event| matches!(event, NetworkEvent::SwitchConnected { version: Version::V1_3, .. }));
    let rule =
        first(|event| matches!(event, NetworkEvent::FlowMod { flow_mod, .. } if flow_mod.priority == 0));
    let asked = first(|event| matches!(event, NetworkEvent::PacketIn { buffered: true, .. }));
    let told = first(|event| matches!(event, NetworkEvent::PacketOut { .. }));
    let pinged = first(|event| matches!(event, NetworkEvent::PingOk { from, .. } if from == "h1"));
    assert!(connected < rule && rule < asked && asked < told && told < pinged, "{events:?}");
    assert_eq!(observer.dropped(), 0);
}

#[test]
fn a_link_that_fails_is_told_and_loses_pings() {
    let (controller, hearing) = flooding();
    let network = Emulation::start(&topology("single,2"), controller, &SwitchOptions::default()).unwrap();
    network.wait_connected(PATIENCE).unwrap();
    network.set_link(0, false);
    let is_port_status = |message: &Message| matches!(message.body, Body::PortStatus(_));
    assert!(hearing.iter().any(|message| is_port_status(&message)));
    let report = network.ping_all(Duration::from_millis(50));
    assert_eq!(report.to_string(), "100% dropped (0/2 received)");
    network.set_link(0, true);
    assert!(network.ping_all(PATIENCE).is_complete());
}

#[test]
fn a_controller_that_is_not_there_is_named_and_tried_again() {
    let network = Emulation::start(&topology("single,2"), nobody(), &SwitchOptions::default()).unwrap();
    let observer = network.observer();
    for _ in 0..2 {
        assert!(matches!(observer.next_within(PATIENCE), Ok(NetworkEvent::SwitchDisconnected { .. })));
    }
    let refused = network.wait_connected(Duration::ZERO).unwrap_err();
    assert_eq!(refused.missing.len(), 1);
    assert!(refused.to_string().contains("of:0000000000000001: Connection refused"), "{refused}");
    assert!(network.counters().connections_refused >= 2);
}

#[test]
fn a_controller_that_gives_no_rules_is_connected_all_the_same() {
    let controller = behaving(|_, mut stream: TcpStream| {
        std::thread::spawn(move || serve_with(None, &mut stream, |_| {}));
    });
    let options = SwitchOptions { versions: Versions::Only13, ..SwitchOptions::default() };
    let network = Emulation::start(&topology("single,2"), controller, &options).unwrap();
    assert!(network.wait_connected(Duration::ZERO).is_err());
    network.wait_connected(PATIENCE).unwrap();
    assert_eq!(network.ping_all(Duration::ZERO).answered(), 0, "and drops everything");
}

#[test]
fn a_controller_that_misbehaves_is_left_and_met_again() {
    let garbage: [&[u8]; 5] = [
        // A malformed length, a message before the hello, an unknown version, half a message, nothing.
        &[4, 0, 0, 3, 0, 0, 0, 1],
        &[4, 5, 0, 8, 0, 0, 0, 1],
        &[9, 0, 0, 16, 0, 0, 0, 1, 0, 1, 0, 8, 0, 0, 2, 0],
        &[4, 0, 0],
        &[],
    ];
    let controller = behaving(move |count, mut stream: TcpStream| match garbage.get(count) {
        Some(bytes) => {
            stream.write_all(bytes).unwrap();
        }
        None => drop(std::thread::spawn(move || serve(&mut stream, |_| {}))),
    });
    let network = Emulation::start(&topology("single,2"), controller, &SwitchOptions::default()).unwrap();
    network.wait_connected(PATIENCE).unwrap();
    assert!(network.ping_all(PATIENCE).is_complete());
    assert_eq!(network.counters().connections_refused, 5);
}

#[test]
fn what_cannot_be_read_is_answered_and_the_rest_goes_on() {
    let (said, hearing) = std::sync::mpsc::channel();
    let controller = behaving(move |_, mut stream: TcpStream| {
        let said = said.clone();
        let mut other_end = stream.try_clone().unwrap();
        std::thread::spawn(move || {
            serve(&mut stream, |message| {
                if matches!(message.body, Body::FeaturesReply(_)) {
                    // A truncated flow mod.
                    other_end.write_all(&[4, 14, 0, 16, 0, 0, 0, 77, 0, 0, 0, 0, 0, 0, 0, 0]).unwrap();
                }
                drop(said.send(message));
            })
        });
    });
    let options = SwitchOptions { versions: Versions::Only13, ..SwitchOptions::default() };
    let network = Emulation::start(&topology("single,2"), controller, &options).unwrap();
    let error = hearing.iter().find_map(|message| match message.body {
        Body::Error(error) => Some((message.xid, error.kind, error.code, error.data.len())),
        _ => None,
    });
    assert_eq!(error, Some((77, 1, 6, 16)));
    assert!(network.ping_all(PATIENCE).is_complete());
    assert_eq!(network.counters().bad_messages, 1);
}

/// A port that was free a moment ago, and on which nothing listens.
fn nobody() -> std::net::SocketAddr {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

#[test]
fn one_of_several_controllers_is_enough() {
    let (controller, _) = flooding();
    let absent = nobody();
    for controllers in [[absent, controller], [controller, absent]] {
        let options = SwitchOptions::default();
        let network = Emulation::start_with_controllers(&topology("tree,2"), &controllers, &options).unwrap();
        network.wait_connected(PATIENCE).unwrap();
        assert!(network.ping_all(PATIENCE).is_complete());
        let counters = network.counters();
        assert_eq!((counters.connections, counters.connections_lost), (3, 0));
        assert!(counters.connections_refused >= 3 && counters.attempts >= 6, "{counters:?}");
    }
}

#[test]
fn several_controllers_each_know_every_switch() {
    let (one, two) = (flooding().0, flooding().0);
    let network =
        Emulation::start_with_controllers(&topology("linear,3"), &[one, two], &SwitchOptions::default())
            .unwrap();
    let observer = network.observer();
    let mut met = std::collections::BTreeSet::new();
    while met.len() < 6 && network.counters().connections < 6 {
        if let NetworkEvent::SwitchConnected { datapath_id, controller, .. } =
            observer.next_within(PATIENCE).unwrap()
        {
            met.insert((datapath_id, controller));
        }
    }
    network.wait_connected(PATIENCE).unwrap();
    assert!(network.ping_all(PATIENCE).is_complete());
}

#[test]
fn switches_that_stand_alone_need_no_controller() {
    let options = SwitchOptions { fail_mode: FailMode::Standalone, ..SwitchOptions::default() };
    let network = Emulation::start_with_controllers(&topology("linear,3"), &[], &options).unwrap();
    assert!(network.ping_all(PATIENCE).is_complete());
    let refused = network.wait_connected(Duration::ZERO).unwrap_err();
    assert!(refused.to_string().contains("it has no controller"), "{refused}");
}

#[test]
fn a_switch_whose_cpu_is_far_behind_reads_no_further_and_loses_nothing() {
    // Half as much again as the memory that the switch has for them, and far more than it answers while they come.
    const REQUESTS: usize = 1600;
    const LENGTH: u16 = 60_000;
    let (said, hearing) = std::sync::mpsc::channel();
    let controller = behaving(move |_, mut stream: TcpStream| {
        let (said, other_end) = (said.clone(), stream.try_clone().unwrap());
        std::thread::spawn(move || {
            serve_with(None, &mut stream, |message| match message.body {
                Body::FeaturesReply(_) => {
                    let (mut other_end, version) = (other_end.try_clone().unwrap(), message.version.0);
                    let [high, low] = LENGTH.to_be_bytes();
                    let mut request = vec![version, 2, high, low, 0, 0, 0, 9];
                    request.resize(LENGTH.into(), 0);
                    std::thread::spawn(move || (0..REQUESTS).try_for_each(|_| other_end.write_all(&request)));
                }
                Body::EchoReply(_) => drop(said.send(())),
                _ => {}
            })
        });
    });
    let mut profile = Profile::null();
    profile.cpu.echo.service_us = Quantiles::constant(3000.0);
    let options = SwitchOptions { profiles: Profiles::for_all(profile), ..SwitchOptions::default() };
    let network = Emulation::start(&topology("single,2"), controller, &options).unwrap();
    for number in 0..REQUESTS {
        assert!(hearing.recv_timeout(PATIENCE).is_ok(), "{number} of {REQUESTS} were answered");
    }
    network.stop();
}

#[test]
fn the_end_of_a_connection_is_seen_while_the_switch_does_not_read() {
    // As many as the switch takes. The CPU begins with one more.
    const REQUESTS: usize = 16_384 + 1;
    let controller = behaving(move |_, mut stream: TcpStream| {
        let other_end = stream.try_clone().unwrap();
        std::thread::spawn(move || {
            serve_with(None, &mut stream, |message| {
                if matches!(message.body, Body::FeaturesReply(_)) {
                    let (mut other_end, version) = (other_end.try_clone().unwrap(), message.version.0);
                    let request = [version, 2, 0, 8, 0, 0, 0, 9];
                    std::thread::spawn(move || {
                        other_end.write_all(&request.repeat(REQUESTS)).unwrap();
                        // Most likely, the switch has read them when these and the end come.
                        std::thread::sleep(Duration::from_millis(300));
                        other_end.write_all(&request.repeat(100)).unwrap();
                        other_end.shutdown(std::net::Shutdown::Write).unwrap();
                    });
                }
            })
        });
    });
    let mut profile = Profile::null();
    // The CPU is busy for longer than the test waits.
    profile.cpu.echo.service_us = Quantiles::constant(300e6);
    let options = SwitchOptions { profiles: Profiles::for_all(profile), ..SwitchOptions::default() };
    let network = Emulation::start(&topology("single,2"), controller, &options).unwrap();
    let observer = network.observer();
    let why = std::iter::from_fn(|| observer.next_within(PATIENCE).ok()).find_map(|event| match event {
        NetworkEvent::SwitchDisconnected { why, .. } => Some(why),
        _ => None,
    });
    assert_eq!(why.as_deref(), Some("the controller closed the connection"));
    network.stop();
}
