//! The app `qos` with emulated switches: a limited host sends no more than its rate, others are not concerned, and forwarding goes on.

use super::frames::*;
use super::stage::{App, Stage};
use emulator::Versions;

const REST: &str =
    "[network]\nservices = ['discovery', 'hosts', 'flows']\n[app.forwarding.settings]\ntable = 2";

fn introduce(stage: &Stage, host: &str, number: u8, hears: &str) {
    let address = [10, 0, 0, number];
    let packet = arp(1, (mac(number), address), ([0; 6], address));
    stage.reaches(host, &ethernet(EVERYBODY, mac(number), &[], ARP, &packet), hears);
}

#[test]
fn a_limited_host_sends_no_more_than_its_rate_and_others_are_not_concerned() {
    let settings = "next_table = 2\n\
        [[app.qos.settings.limits]]\nhost = '00:00:00:00:00:01'\ndirection = 'from'\nrate_kbps = 1\nburst_kbit = 100\n\
        [[app.qos.settings.classes]]\nmatch = 'udp,tp_dst=80'\nqueue = 1";
    let stage = Stage::new(&[App("qos", settings)], REST, "single,3", Versions::Only13);
    for (host, number, hears) in [("h1", 1, "h2"), ("h2", 2, "h1"), ("h3", 3, "h1")] {
        introduce(&stage, host, number, hears);
    }
    stage.node.wait("the host is limited", |_| {
        stage.rules("flows").iter().any(|rule| rule.priority == 30_999 && rule.table == 0)
    });
    // The queue does not exist, and nobody but the operator can make it.
    stage.node.wait_for_line("has no queue 1 at any port");
    // From then on packets need no app, so none is late.
    stage.node.wait("both hosts have rules to h2", |_| {
        stage.send("h1", &datagram(1, 2, 80, 9_000));
        stage.send("h3", &datagram(3, 2, 80, 9_000));
        let rules = stage.rules("forwarding");
        let has = |from: &str| rules.iter().any(|rule| rule.table == 2 && rule.matching.contains(from));
        has("dl_src=00:00:00:00:00:01") && has("dl_src=00:00:00:00:00:03")
    });
    stage.forget("h2");
    // 1,000 packets of some 100 bytes are 800 kbit; the bucket holds 100 kbit.
    for number in 0..1_000 {
        stage.send("h1", &datagram(1, 2, 80, number));
    }
    for number in 0..1_000 {
        stage.send("h3", &datagram(3, 2, 80, 5_000 + number));
    }
    let (_, before) = stage.hear("h2", "the last packet of h3", |frame| frame == datagram(3, 2, 80, 5_999));
    let of = |host: u8| {
        let is_of = |frame: &&Vec<u8>| frame[6..12] == mac(host) && frame[12..14] == [8, 0];
        before.iter().filter(is_of).filter(|frame| !frame.ends_with(&9_000_u64.to_be_bytes())).count()
    };
    assert_eq!(of(3), 999, "all packets of h3 but the last");
    assert!((1..200).contains(&of(1)), "{} packets of h1", of(1));
}

#[test]
fn a_switch_without_meters_is_told_and_goes_on_forwarding() {
    let settings = "next_table = 2\n\
        [[app.qos.settings.limits]]\nport = '1/1'\nrate_kbps = 1\nburst_kbit = 100\n\
        [[app.qos.settings.classes]]\nmatch = 'dl_type=0x88b5'\nqueue = 1\nout = 3\nswitches = ['1']";
    let stage = Stage::new(&[App("qos", settings)], REST, "single,3", Versions::Only10);
    stage.node.wait_for_line("of:0000000000000001 limits no rates: OpenFlow 1.0 has no meters");
    introduce(&stage, "h1", 1, "h2");
    introduce(&stage, "h2", 2, "h1");
    stage.reaches("h1", &datagram(1, 2, 80, 1), "h2");
    // A class with a port of its own is an enqueue there, which needs no other app.
    stage.wait_for_rules("flows", 1);
    stage.is_kept_from("h2", ("h1", &broadcast(1, &[], 2)), ("h1", &datagram(1, 2, 80, 3)));
    stage.reaches("h1", &broadcast(1, &[], 4), "h3");
}
