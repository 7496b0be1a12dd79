//! The app `mirror` with emulated switches: copies come out at their port, and the packets go where the apps that forward send them.

use super::frames::*;
use super::stage::{App, Stage};
use emulator::Versions;

/// The app that forwards has its rules in the next table.
const REST: &str =
    "[network]\nservices = ['discovery', 'hosts', 'flows']\n[app.forwarding.settings]\ntable = 1";

/// Makes both hosts known.
fn introduce(stage: &Stage, one: (&str, u8), two: (&str, u8)) {
    for ((from, number), (to, _)) in [(one, two), (two, one)] {
        let address = [10, 0, 0, number];
        let packet = arp(1, (mac(number), address), ([0; 6], address));
        stage.reaches(from, &ethernet(EVERYBODY, mac(number), &[], ARP, &packet), to);
    }
}

#[test]
fn copies_of_a_port_come_out_and_its_packets_arrive() {
    let settings = "next_table = 1\n[[app.mirror.settings.mirrors]]\nport = '1/1'\nto = '1/3'";
    let stage = Stage::new(&[App("mirror", settings)], REST, "single,3", Versions::Only13);
    // The port itself, and the rest.
    stage.node.wait("it has its rules", |_| stage.rules("flows").len() >= 2);
    introduce(&stage, ("h1", 1), ("h2", 2));
    stage.node.wait("packets to the host are copied too", |_| stage.rules("flows").len() == 3);
    for (from, to, number) in [(1, 2, 1), (2, 1, 2)] {
        let (frame, to, from) = (datagram(from, to, 80, number), format!("h{to}"), format!("h{from}"));
        stage.reaches(&from, &frame, &to);
        stage.forget("h3");
        stage.send(&from, &frame);
        stage.hear("h3", "the copy", |heard| heard == frame);
        stage.hear(&to, "the packet", |heard| heard == frame);
    }
    // Neither of the hosts hears a copy, and no packet is copied twice.
    stage.forget("h3");
    stage.send("h1", &datagram(1, 2, 80, 3));
    stage.send("h1", &datagram(1, 2, 80, 4));
    let (_, before) = stage.hear("h3", "the next copy", |heard| heard == datagram(1, 2, 80, 4));
    assert_eq!(before, [datagram(1, 2, 80, 3)]);
}

#[test]
fn copies_for_another_switch_arrive_as_the_packet_was_and_with_its_own_tags() {
    let settings = "next_table = 1\n[[app.mirror.settings.mirrors]]\nhost = '00:00:00:00:00:01'\nto = '3/1'\nvlan = 4000";
    let stage = Stage::new(&[App("mirror", settings)], REST, "linear,3,1", Versions::Only13);
    introduce(&stage, ("h1", 1), ("h2", 2));
    for (number, tags) in [(1, &[][..]), (2, &[7]), (3, &[7, 8])] {
        let frame = broadcast(1, tags, number);
        // h3 hears a broadcast anyhow, and the copy in addition.
        stage.node.wait("h3 hears the frame and its copy", |_| {
            stage.forget("h3");
            stage.send("h1", &frame);
            stage.reaches("h1", &broadcast(1, &[], 1_000 + number), "h2");
            stage.all("h3").iter().filter(|heard| **heard == frame).count() == 2
        });
        stage.reaches("h1", &frame, "h2");
    }
}

#[test]
fn a_switch_with_one_table_is_told_and_goes_on_forwarding() {
    let settings = "next_table = 1\n[[app.mirror.settings.mirrors]]\nport = '1/1'\nto = '1/3'";
    let stage = Stage::new(&[App("mirror", settings)], REST, "single,3", Versions::Only10);
    stage.node.wait_for_line("of:0000000000000001 makes no copies: OpenFlow 1.0 has one table");
    introduce(&stage, ("h1", 1), ("h2", 2));
    stage.reaches("h1", &datagram(1, 2, 80, 1), "h2");
}
