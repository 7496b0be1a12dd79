//! Ports: how they are described, and the effect of port mods (1.3.5, 7.2.1, 7.3.4.3, 7.4.3; 1.0, 5.2.1, 5.3.3).

use super::dsl::*;
use crate::has;
use flow::{MacAddr, PortNo};
use openflow::Body;
use openflow::message::*;

const DOWN: u32 = 1;
const NO_STP: u32 = 1 << 1;
const NO_RECV: u32 = 1 << 2;
const NO_FLOOD: u32 = 1 << 4;
const NO_FWD: u32 = 1 << 5;
const NO_PACKET_IN: u32 = 1 << 6;

fn in_both(case: impl Fn(Bench)) {
    for versions in [V10, V13] {
        case(Bench::new(versions));
    }
}

fn stats(bench: &mut Bench, port: u32) -> PortStats {
    match bench.ask(RequestBody::PortStats(PortNo(port))) {
        ReplyBody::PortStats(ports) => ports[0],
        other => panic!("{other:?}"),
    }
}

fn port_mod(bench: &mut Bench, change: impl Fn(&mut PortMod)) -> Option<(u16, u16)> {
    let hw_addr = bench.ports()[1].hw_addr;
    let mut wanted = PortMod { port_no: PortNo(2), hw_addr, config: 0, mask: 0, advertise: 0 };
    change(&mut wanted);
    bench.refusal(Body::PortMod(wanted))
}

#[test]
fn each_has_a_number_a_name_and_an_address_of_its_own() {
    in_both(|mut bench| {
        let ports = bench.ports();
        let names: Vec<&str> = ports.iter().map(|port| port.name.as_str()).collect();
        assert_eq!(names, ["s7-eth1", "s7-eth2", "s7-eth3", "s7-eth4"]);
        let addresses: std::collections::BTreeSet<MacAddr> = ports.iter().map(|port| port.hw_addr).collect();
        assert_eq!(addresses.len(), 4);
        assert!(addresses.iter().all(|address| !address.is_multicast()));
    });
}

#[test]
fn a_port_that_is_not_there_is_refused() {
    for (versions, refusal) in [(V10, (4, 0)), (V13, (7, 0))] {
        let refused = port_mod(&mut Bench::new(versions), |wanted| wanted.port_no = PortNo(9));
        assert_eq!(refused, Some(refusal));
    }
}

#[test]
fn another_ports_address_is_refused() {
    for (versions, refusal) in [(V10, (4, 1)), (V13, (7, 1))] {
        let refused = port_mod(&mut Bench::new(versions), |wanted| wanted.hw_addr = MacAddr([2; 6]));
        assert_eq!(refused, Some(refusal));
    }
}

#[test]
fn bits_that_a_version_does_not_have_are_refused() {
    assert_eq!(port_mod(&mut Bench::new(V13), |wanted| wanted.mask = NO_FLOOD), Some((7, 2)));
    assert_eq!(port_mod(&mut Bench::new(V13), |wanted| wanted.mask = 1 << 9), Some((7, 2)));
    assert_eq!(port_mod(&mut Bench::new(V10), |wanted| wanted.mask = NO_FLOOD), None);
}

#[test]
fn features_that_a_port_does_not_have_are_refused() {
    assert_eq!(port_mod(&mut Bench::new(V13), |wanted| wanted.advertise = 1), Some((7, 3)));
    assert_eq!(port_mod(&mut Bench::new(V13), |wanted| wanted.advertise = 1 << 6), None);
}

#[test]
fn only_bits_in_the_mask_are_set() {
    in_both(|mut bench| {
        assert_eq!(port_mod(&mut bench, |wanted| wanted.config = NO_RECV | NO_FWD), None);
        assert_eq!(bench.ports()[1].config, 0);
        assert_eq!(
            port_mod(&mut bench, |wanted| (wanted.config, wanted.mask) = (NO_RECV | NO_FWD, NO_FWD)),
            None
        );
        assert_eq!(bench.ports()[1].config, NO_FWD);
        assert_eq!(port_mod(&mut bench, |wanted| wanted.mask = NO_FWD), None);
        assert_eq!(bench.ports()[1].config, 0);
    });
}

#[test]
fn a_change_is_told_and_what_changes_nothing_is_not() {
    in_both(|mut bench| {
        let said = bench.set_port(2, NO_FWD);
        let [Body::PortStatus(status)] = &said[..] else { panic!("{said:?}") };
        assert_eq!((status.reason, status.port.port_no, status.port.config), (2, PortNo(2), NO_FWD));
        assert_eq!(bench.set_port(2, NO_FWD), []);
    });
}

#[test]
fn a_port_taken_down_neither_takes_nor_gives() {
    in_both(|mut bench| {
        bench.add(&[rule(1).output("FLOOD")]);
        bench.set_port(2, DOWN);
        assert_eq!(bench.arrive(1, &ping()).0, "3 4");
        assert_eq!(bench.arrive(2, &ping()).0, "");
        let port = &bench.ports()[1];
        assert!(!port.is_live() && port.state & PORT_STATE_LINK_DOWN == 0, "the link is there all the same");
    });
}

#[test]
fn no_recv_drops_what_comes_and_lets_out() {
    if !has(Part::DropCounts) {
        return;
    }
    in_both(|mut bench| {
        bench.add(&[rule(1).output("FLOOD")]);
        bench.set_port(2, NO_RECV);
        assert_eq!(bench.arrive(2, &ping()).0, "");
        assert_eq!(bench.arrive(1, &ping()).0, "2 3 4");
        assert_eq!((stats(&mut bench, 2).rx_dropped, stats(&mut bench, 2).rx_packets), (1, 0));
    });
}

#[test]
fn no_fwd_lets_nothing_out_and_takes_what_comes() {
    if !has(Part::DropCounts) {
        return;
    }
    in_both(|mut bench| {
        bench.add(&[rule(1).output("FLOOD")]);
        bench.set_port(2, NO_FWD);
        assert_eq!(bench.arrive(1, &ping()).0, "3 4");
        assert_eq!(bench.arrive(2, &ping()).0, "1 3 4");
        assert_eq!((stats(&mut bench, 2).tx_dropped, stats(&mut bench, 2).tx_packets), (1, 0));
    });
}

#[test]
fn no_packet_in_keeps_packets_from_the_controller() {
    in_both(|mut bench| {
        bench.add(&[rule(0).apply(&[output("CONTROLLER"), output("3")])]);
        bench.set_port(2, NO_PACKET_IN);
        assert_eq!(bench.arrive(2, &ping()).0, "3");
        assert_eq!(bench.arrive(1, &ping()).0, "3 controller");
    });
}

#[test]
fn no_packet_in_is_for_packets_without_a_rule_too() {
    let mut bench = Bench::new(V10);
    bench.set_port(2, NO_PACKET_IN);
    assert_eq!((bench.arrive(2, &ping()).0, bench.arrive(1, &ping()).0), ("".into(), "controller".into()));
}

#[test]
fn no_flood_is_for_flood_and_not_for_all() {
    let mut bench = Bench::new(V10);
    bench.set_port(2, NO_FLOOD);
    bench.add(&[rule(1).output("FLOOD")]);
    assert_eq!(bench.arrive(1, &ping()).0, "3 4");
    bench.add(&[rule(1).output("ALL")]);
    assert_eq!(bench.arrive(1, &ping()).0, "2 3 4");
    bench.add(&[rule(1).output("2")]);
    assert_eq!(bench.arrive(1, &ping()).0, "2");
}

#[test]
fn the_spanning_trees_bits_of_1_0_are_kept_and_do_nothing() {
    let mut bench = Bench::new(V10);
    bench.set_port(2, NO_STP);
    assert_eq!(bench.ports()[1].config, NO_STP);
    bench.add(&[rule(1).output("FLOOD")]);
    assert_eq!(bench.arrive(2, &ping()).0, "1 3 4");
}

#[test]
fn a_link_that_goes_and_comes_is_told_each_time() {
    in_both(|mut bench| {
        for (up, state) in [(false, PORT_STATE_LINK_DOWN), (true, 0)] {
            let said = bench.link(3, up);
            let [Body::PortStatus(status)] = &said[..] else { panic!("{said:?}") };
            assert_eq!((status.reason, status.port.state & PORT_STATE_LINK_DOWN), (2, state));
            assert_eq!(bench.link(3, up), []);
        }
    });
}

#[test]
fn a_port_tells_1_3_whether_it_is_live() {
    const LIVE: u32 = 1 << 2;
    let mut bench = Bench::new(V13);
    assert_eq!(bench.ports()[0].state, LIVE);
    bench.link(1, false);
    assert_eq!(bench.ports()[0].state, PORT_STATE_LINK_DOWN);
}

#[test]
fn a_new_port_is_told() {
    in_both(|mut bench| {
        let mut effects = software_switch::Effects::default();
        bench.switch.add_port(PortNo(5), bench.now, &mut effects);
        let [(_, message)] = &effects.messages[..] else { panic!("{effects:?}") };
        assert!(
            matches!(&message.body, Body::PortStatus(status) if (status.reason, status.port.port_no) == (0, PortNo(5)))
        );
    });
}

#[test]
fn a_port_tells_the_speed_of_its_link() {
    if !has(Part::Version13) {
        return;
    }
    let check = |version, kbps: Option<u32>, speed: u32, bits: u32| {
        let mut bench = Bench::new(version);
        let mut effects = software_switch::Effects::default();
        bench.switch.set_speed(PortNo(1), kbps, &mut effects);
        let port = &bench.ports()[0];
        // The lowest seven bits of 1.0 and the lowest eleven of 1.3 are speeds. The others are the medium.
        let speeds = if version == V10 { 0x7f } else { 0x7ff };
        assert_eq!((port.curr_speed_kbps, port.curr & speeds), (speed, bits), "{kbps:?}");
        bench.switch.set_speed(PortNo(1), kbps, &mut effects);
        assert!(effects.messages.len() <= 1, "the same speed is told twice");
    };
    check(V13, None, 10_000_000, 1 << 6);
    check(V13, Some(10_000), 10_000, 1 << 1);
    check(V13, Some(2_500_000), 2_500_000, 1 << 10);
    // 1.0 has no number.
    check(V10, Some(1_000_000), 0, 1 << 5);
    check(V10, Some(2_500_000), 0, 1 << 5);
    check(V10, Some(1), 0, 1 << 1);
}

#[test]
fn statistics_count_both_ways() {
    in_both(|mut bench| {
        bench.add(&[rule(1).output("2")]);
        bench.arrive(1, &ping());
        bench.arrive(1, &tcp(1, 2));
        let (one, two) = (stats(&mut bench, 1), stats(&mut bench, 2));
        let bytes = (ping().len() + tcp(1, 2).len()) as u64;
        assert_eq!((one.rx_packets, one.rx_bytes, one.tx_packets), (2, bytes, 0));
        assert_eq!((two.tx_packets, two.tx_bytes, two.rx_packets), (2, bytes, 0));
    });
}

#[test]
fn what_is_too_short_for_a_frame_is_an_error_of_the_port() {
    in_both(|mut bench| {
        bench.arrive(1, &[0; 13]);
        assert_eq!((stats(&mut bench, 1).rx_errors, stats(&mut bench, 1).rx_packets), (1, 0));
    });
}

#[test]
fn a_ports_age_is_told_by_1_3() {
    if !has(Part::Version13) {
        return;
    }
    let mut bench = Bench::new(V13);
    bench.pass(90);
    assert_eq!(stats(&mut bench, 1).duration_s, 90);
    let mut bench = Bench::new(V10);
    bench.pass(90);
    assert_eq!(stats(&mut bench, 1).duration_s, 0);
}

#[test]
fn statistics_of_all_ports_come_together_and_of_none_are_refused() {
    in_both(|mut bench| {
        let ReplyBody::PortStats(all) = bench.ask(RequestBody::PortStats(PortNo::ANY)) else { panic!() };
        assert_eq!(all.len(), 4);
    });
    assert_eq!(Bench::new(V13).refusal(multipart(RequestBody::PortStats(PortNo(9)))), Some((1, 11)));
    let none = Bench::new(V10).ask(RequestBody::PortStats(PortNo(9)));
    assert_eq!(none, ReplyBody::PortStats(vec![]), "1.0 has no error for it");
}
