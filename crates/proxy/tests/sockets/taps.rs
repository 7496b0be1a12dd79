//! Taps at one end of a veth pair, whose other end is the test's.
//!
//! Each test makes a network namespace for its own thread, so that nothing on the machine changes. That needs root: without
//! it, the tests say so and look at nothing.

use crate::between::{Between, FEATURES_REQUEST, HELLO};
use emulator::run::packet_socket::{PacketSocket, SocketOptions};
use emulator::validity::{Cause, Validity};
use flow::{Field, Match, PortNo};
use nix::sched::{CloneFlags, unshare};
use openflow::message::{NO_BUFFER, PacketIn};
use openflow::{Body, Message, Version};
use profile::{Capacity, Hardware, Profile, Quantiles, Software, SoftwareUse, WhenFull};
use proxy::Way;
use proxy::run::Notice;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Command;
use std::time::{Duration, Instant};

fn ip(arguments: &str) {
    let status = Command::new("ip").args(arguments.split_whitespace()).status().unwrap();
    assert!(status.success(), "ip {arguments}");
}

fn make_pair() {
    ip("link add s1-eth1 type veth peer name host");
    for name in ["s1-eth1", "host"] {
        ip(&format!("link set {name} up"));
    }
}

/// Runs a test in a network namespace with a veth pair, `s1-eth1` and `host`.
fn in_a_namespace(name: &str, test: impl FnOnce() + Send + 'static) {
    if !nix::unistd::geteuid().is_root() {
        println!("left out: {name}: only root can make a network namespace");
        return;
    }
    let name = name.to_owned();
    let inside = move || {
        if let Err(why) = unshare(CloneFlags::CLONE_NEWNET) {
            println!("left out: {name}: no network namespace can be made here: {why}");
            return;
        }
        ip("link set lo up");
        make_pair();
        test();
    };
    std::thread::spawn(inside).join().unwrap();
}

fn frame(number: u32) -> Vec<u8> {
    let mut frame = vec![0xff; 6];
    frame.extend_from_slice(&[2, 0, 0, 0, 0, 1, 0x88, 0xb5]);
    frame.extend_from_slice(&number.to_be_bytes());
    frame.resize(1000, 0);
    frame
}

fn packet_in(number: u32) -> Vec<u8> {
    let packet = PacketIn {
        buffer_id: NO_BUFFER,
        total_len: 1000,
        reason: 0,
        table_id: 0,
        cookie: 0,
        matching: Match::any().with(Field::InPort, 1u32),
        data: frame(number),
    };
    let mut bytes = Vec::new();
    Message { version: Version::V1_3, xid: 0, body: Body::PacketIn(packet) }.encode(&mut bytes).unwrap();
    bytes
}

/// A proxy with a tap at `s1-eth1`, in a session.
struct Tapped {
    between: Between,
    switch: TcpStream,
    _controller: TcpStream,
    sent: u32,
}

impl Tapped {
    fn begin() -> Tapped {
        Self::with(Profile::null())
    }

    /// Packet-ins take a millisecond.
    fn with(mut slow: Profile) -> Tapped {
        slow.delay.ingress_us = Quantiles::constant(1000.0);
        let mut between = Between::with_taps(slow, vec![(PortNo(1), "s1-eth1".to_owned())]);
        let (mut switch, mut controller) = between.session();
        controller.write_all(&[HELLO, FEATURES_REQUEST].concat()).unwrap();
        switch.write_all(&HELLO).unwrap();
        between.until(|between| (between.run.counters().sessions == 1).then_some(()));
        Tapped { between, switch, _controller: controller, sent: 0 }
    }

    /// A frame comes to the port, and the switch makes a packet-in of it. Returns whether the tap has seen the frame.
    fn sees(&mut self) -> bool {
        let host = PacketSocket::bind_to("host", SocketOptions::default()).unwrap();
        self.sent += 1;
        host.send(&frame(self.sent)).unwrap();
        let before = self.between.run.counters();
        self.switch.write_all(&packet_in(self.sent)).unwrap();
        self.between.until(|between| (between.run.counters().packet_ins > before.packet_ins).then_some(()));
        self.between.run.counters().packet_ins_unseen == before.packet_ins_unseen
    }

    fn until_told(&mut self, what: impl Fn(&Notice) -> bool) {
        self.between.until(|between| between.notices.iter().any(&what).then_some(()));
        self.between.notices.clear();
    }
}

#[test]
fn a_tap_goes_on_when_its_interface_is_back() {
    in_a_namespace("a_tap_goes_on_when_its_interface_is_back", || {
        let mut tapped = Tapped::begin();
        assert!(tapped.sees());
        for (away, back) in
            [("link set s1-eth1 down", Some("link set s1-eth1 up")), ("link del s1-eth1", None)]
        {
            ip(away);
            tapped.until_told(|notice| matches!(notice, Notice::TapLost(PortNo(1), _)));
            match back {
                Some(back) => ip(back),
                None => make_pair(),
            }
            tapped.until_told(|notice| matches!(notice, Notice::TapBack(PortNo(1))));
            assert!(tapped.sees(), "{away}");
        }
    });
}

#[test]
fn frames_that_the_kernel_drops_at_a_tap_make_a_run_invalid() {
    in_a_namespace("frames_that_the_kernel_drops_at_a_tap_make_a_run_invalid", || {
        let mut tapped = Tapped::begin();
        assert!(tapped.sees());
        let lost = |tapped: &mut Tapped| {
            let verdict = tapped.between.run.verdict().unwrap();
            verdict.findings.iter().find(|found| found.cause == Cause::Lost).map(|found| found.validity)
        };
        assert_eq!(lost(&mut tapped), None);
        // More than the receive buffer of a socket has room for, while the proxy does not read.
        let host = PacketSocket::bind_to("host", SocketOptions::default()).unwrap();
        (0..20_000).for_each(|number| drop(host.send(&frame(number))));
        assert_eq!(lost(&mut tapped), Some(Validity::Invalid));
    });
}

/// A target with a meter for its rules in software. The proxy waits until the switch has confirmed it.
fn metered() -> Profile {
    let software =
        Software { when: SoftwareUse::WhenFull, forward_bits_per_s: Some(4e6), ..Software::default() };
    let hardware =
        Hardware { capacities: vec![Capacity::any(1)], when_full: WhenFull::Spill, ..Hardware::default() };
    Profile { software: Some(software), hardware: Some(hardware), ..Profile::null() }
}

/// The transaction id of the barrier that the switch got.
fn barrier_of(tapped: &mut Tapped) -> u32 {
    let mut got = Vec::new();
    let Tapped { between, switch, .. } = tapped;
    between.until(|_| {
        let mut room = [0; 4096];
        got.extend_from_slice(switch.read(&mut room).map_or(&[][..], |count| &room[..count]));
        let mut xid = None;
        let _ = openflow::stream::cut(&got, |bytes| {
            let message = Message::decode(bytes).unwrap();
            xid = (message.body == Body::BarrierRequest).then_some(message.xid).or(xid);
            true
        });
        xid
    })
}

#[test]
fn a_packet_that_comes_while_the_proxy_waits_for_the_switch_has_the_switchs_real_delay() {
    const TAKES: Duration = Duration::from_millis(150);
    in_a_namespace(
        "a_packet_that_comes_while_the_proxy_waits_for_the_switch_has_the_switchs_real_delay",
        || {
            let mut tapped = Tapped::with(metered());
            let xid = barrier_of(&mut tapped);
            let host = PacketSocket::bind_to("host", SocketOptions::default()).unwrap();
            host.send(&frame(1)).unwrap();
            let sent = Instant::now();
            tapped.between.until(|_| (sent.elapsed() > TAKES).then_some(()));
            let mut confirmed = packet_in(1);
            Message { version: Version::V1_3, xid, body: Body::BarrierReply }.encode(&mut confirmed).unwrap();
            tapped.switch.write_all(&confirmed).unwrap();
            tapped.between.until(|between| (between.run.counters().packet_ins == 1).then_some(()));
            let run = &tapped.between.run;
            let own = run.base_delays().quantile(0.5).unwrap().actual;
            // A bucket of the distribution is up to 1.6 % wide.
            assert!(own > TAKES.mul_f64(0.95), "{own:?}");
            let delay = run.delays(Way::Ingress).quantile(0.5).unwrap();
            assert!(delay.meant > TAKES.mul_f64(0.95) && delay.actual >= delay.meant, "{delay:?}");
            assert_eq!(run.counters().packet_ins_unseen, 0);
        },
    );
}
