//! Links, switches and hosts fail, recover and move.

use super::bench::{Bench, channel};
use emulator::{Change, Parting};
use flow::PortNo;
use openflow::Body;

fn link(link: &str, up: bool) -> Change {
    Change::Link { link: link.into(), up }
}

fn switch(switch: &str, up: bool) -> Change {
    Change::Switch { switch: switch.into(), up }
}

fn host(host: &str, up: bool) -> Change {
    Change::Host { host: host.into(), up }
}

fn to(host: &str, switch: &str, port: Option<u32>) -> Change {
    Change::Move { host: host.into(), switch: switch.into(), port: port.map(PortNo) }
}

fn check_refused(change: Change, why: &str) {
    let mut bench = Bench::new("linear,5", "ideal");
    let refused = bench.network.change(&change, bench.now, &mut bench.effects).unwrap_err().to_string();
    assert_eq!(refused, why);
    assert!(bench.port_statuses().is_empty(), "and nothing is changed");
}

#[test]
fn what_is_not_there_is_named_with_what_is() {
    check_refused(
        switch("s9", false),
        "there is no switch 's9' in this network; there are s1, s2, s3, s4, 1 more",
    );
    check_refused(host("", true), "there is no host '' in this network; there are h1, h2, h3, h4, 1 more");
    check_refused(
        link("s1-s3", false),
        "there is no link 's1-s3' in this network; there are h1-s1.1, h2-s2.1, s2.2-s1.2, h3-s3.1, 5 more",
    );
    check_refused(
        to("h1", "s2", Some(1)),
        "port 1 of s2 has a link already; name another, or none for the next free one",
    );
    check_refused(to("h1", "s2", Some(0)), "0 is no port's number; 1 to 65280 are");
}

/// Whether a ping from the first host to the last is answered within four seconds, which is longer than the address
/// requests take.
fn reaches(bench: &mut Bench, from: &str, to: &str) -> bool {
    bench.round_trips();
    bench.ping(from, to, 77);
    bench.pass(4000);
    let came = !bench.round_trips().is_empty();
    let (from, to) = (bench.network.host_named(from).unwrap(), bench.network.host_named(to).unwrap());
    let address = bench.network.hosts()[to].address();
    bench.network.give_up(from, address, 77);
    came
}

#[test]
fn a_link_is_named_in_either_order_and_with_ports_or_without() {
    for name in ["s1-s2", "s2-s1", "s2.2-s1.2", "s1.2-s2"] {
        let mut bench = Bench::new("linear,2", "ideal");
        bench.change(link(name, false));
        assert_eq!(bench.port_statuses(), ["s2.2 down", "s1.2 down"], "{name}");
        assert!(!reaches(&mut bench, "h1", "h2"));
        bench.change(link(name, false));
        assert!(bench.port_statuses().is_empty(), "it is down already");
        bench.change(link(name, true));
        assert_eq!(bench.port_statuses(), ["s2.2 up", "s1.2 up"]);
        assert!(reaches(&mut bench, "h1", "h2"));
    }
}

#[test]
fn a_switch_that_fails_takes_its_links_and_forgets_its_rules() {
    let mut bench = Bench::new("linear,3", "ideal");
    bench.change(switch("s2", false));
    assert_eq!(bench.port_statuses(), ["s1.2 down", "s3.2 down"]);
    assert_eq!(bench.effects.close, [(channel(1), Parting::SwitchedOff)]);
    assert!(!reaches(&mut bench, "h1", "h3"));
    assert_eq!(bench.network.switches()[1].flow_count(), 0);
    bench.change(link("s1-s2", false));
    bench.change(switch("s2", true));
    assert_eq!(bench.port_statuses(), ["s3.2 up"], "the other link is cut");
    bench.change(link("s1-s2", true));
    bench.port_statuses();
    assert!(!reaches(&mut bench, "h1", "h3"), "it has no rules");
    bench.connect(1);
    bench.say(1, Body::FlowMod(super::bench::flood(0)));
    assert!(reaches(&mut bench, "h1", "h3"));
}

#[test]
fn a_switch_that_is_off_hears_no_controller() {
    let mut bench = Bench::new("single,2", "ideal");
    bench.change(switch("s1", false));
    bench.network.on_disconnected(channel(0));
    bench.effects.close.clear();
    bench.connect(0);
    assert_eq!(bench.effects.close, [(channel(0), Parting::SwitchedOff)], "who comes is sent away");
    bench.say(0, Body::FlowMod(super::bench::flood(0)));
    assert_eq!(bench.network.switches()[0].flow_count(), 0);
    assert!(bench.effects.messages.is_empty());
}

#[test]
fn a_host_that_fails_takes_its_link_and_forgets_whom_it_knew() {
    let mut bench = Bench::new("single,2", "ideal");
    assert!(reaches(&mut bench, "h1", "h2"));
    bench.change(host("h2", false));
    assert_eq!(bench.port_statuses(), ["s1.2 down"]);
    assert!(!reaches(&mut bench, "h1", "h2"));
    assert!(!bench.network.is_host_up(1));
    bench.change(host("h2", true));
    assert_eq!(bench.port_statuses(), ["s1.2 up"]);
    let first = bench.network.hosts()[0].address();
    assert_eq!(bench.network.hosts()[1].neighbour(first), None);
    assert!(reaches(&mut bench, "h1", "h2"));
}

#[test]
fn a_host_that_moves_announces_itself_where_it_is_now() {
    let mut bench = Bench::new("linear,2", "ideal");
    assert!(reaches(&mut bench, "h1", "h2"));
    bench.tap("h2");
    bench.change(to("h1", "s2", None));
    assert_eq!(bench.port_statuses(), ["s1.1 down", "s2.3 new"]);
    bench.pass(1);
    let announced = bench.captured();
    assert_eq!(announced[0].frame[..6], [0xff; 6]);
    // Sender and target of an ARP request are both its own address.
    assert_eq!(announced[0].frame[28..32], announced[0].frame[38..42]);
    assert!(reaches(&mut bench, "h1", "h2"));
    assert_eq!(bench.network.link_name(0), "h1-s2.3");
    bench.change(to("h1", "s1", Some(1)));
    assert_eq!(bench.port_statuses(), ["s2.3 down", "s1.1 up"], "both ports are known already");
    assert!(reaches(&mut bench, "h2", "h1"));
}

#[test]
fn a_switch_reports_the_speed_of_its_links() {
    let mut bench = Bench::new("linear,2", "ideal");
    let speeds = |bench: &mut Bench, quality: &str| -> Vec<u32> {
        bench.change(Change::Quality { link: "s1-s2".into(), quality: quality.parse().unwrap() });
        let told = bench.effects.messages.drain(..).filter_map(|(_, message)| match message.body {
            Body::PortStatus(status) => Some(status.port.curr_speed_kbps),
            _ => None,
        });
        told.collect()
    };
    assert_eq!(speeds(&mut bench, "rate=10M"), [10_000; 2]);
    assert!(speeds(&mut bench, "rate=10M,delay=1ms").is_empty(), "the speed is the same");
    assert_eq!(speeds(&mut bench, "ideal"), [10_000_000; 2]);
}
