//! Where a packet leaves, for given rules.

use super::dsl::*;
use crate::has;
use flow::{Action, Field, Instruction, PortNo};
use openflow::Body;
use openflow::message::*;

#[test]
fn a_frame_that_is_none_goes_nowhere() {
    check(&[rule(1).output("2")], (1, vec![]), "");
    check(&[rule(1).output("2")], (1, vec![0; 13]), "");
    check(&[rule(1).output("2")], (9, ping()), "");
}

#[test]
fn without_a_rule_1_0_asks_and_1_3_drops() {
    assert_eq!(Bench::new(V10).arrive(1, &ping()).0, "controller");
    assert_eq!(Bench::new(V13).arrive(1, &ping()).0, "");
}

#[test]
fn the_higher_priority_wins_however_it_came() {
    let low = rule(5).output("2");
    let high = rule(6).on(Field::EthDst, H2).output("3");
    check(&[low.clone(), high.clone()], (1, ping()), "3");
    check(&[high, low.clone()], (1, ping()), "3");
    check(&[rule(6).on(Field::EthDst, H1).output("3"), low], (1, ping()), "2");
}

#[test]
fn a_rule_without_actions_drops() {
    check(&[rule(1)], (1, ping()), "");
    check(&[rule(1).output("9")], (1, ping()), "");
}

#[test]
fn reserved_ports_mean_what_they_say() {
    check(&[rule(1).output("FLOOD")], (2, ping()), "1 3 4");
    check(&[rule(1).output("ALL")], (4, ping()), "1 2 3");
    check(&[rule(1).output("IN_PORT")], (2, ping()), "2");
    check(&[rule(1).output("CONTROLLER")], (2, ping()), "controller");
    if has(Part::OutsidePorts) {
        check(&[rule(1).output("LOCAL")], (2, ping()), "");
    }
    check(&[rule(1).apply(&[output("3"), output("CONTROLLER"), output("1")])], (2, ping()), "3 1 controller");
}

#[test]
fn normal_goes_to_where_the_address_was_heard_from() {
    if !has(Part::OutsidePorts) {
        return;
    }
    for versions in [V10, V13] {
        let mut bench = Bench::new(versions);
        bench.add(&[rule(1).output("NORMAL")]);
        let mut answer = ping();
        answer[..12].rotate_left(6);
        assert_eq!(bench.arrive(1, &ping()).0, "2 3 4");
        assert_eq!(bench.arrive(3, &answer).0, "1");
        assert_eq!(bench.arrive(1, &ping()).0, "3");
        assert_eq!(bench.arrive(1, &tagged(ping(), 5)).0, "2 3 4", "another VLAN");
        let mut for_bridges = ping();
        for_bridges[..6].copy_from_slice(&[0x01, 0x80, 0xc2, 0, 0, 0]);
        assert_eq!(bench.arrive(1, &for_bridges).0, "");
    }
}

#[test]
fn a_packet_does_not_go_back_unless_a_rule_says_in_port() {
    check(&[rule(1).apply(&[output("1"), output("2")])], (1, ping()), "2");
}

#[test]
fn fields_of_every_layer_are_told_apart() {
    let ip = || rule(9).on(Field::EthType, 0x800u16);
    let to_web = ip().on(Field::IpProto, 6u8).on(Field::TcpDst, 80u16).output("2");
    check(std::slice::from_ref(&to_web), (1, tcp(5000, 80)), "2");
    check(&[to_web.clone(), rule(0)], (1, tcp(80, 5000)), "");
    check(&[to_web, rule(0)], (1, ping()), "");
    check(&[ip().masked(Field::Ipv4Src, 0x0a00_0000u32, 0xff00_0000u32).output("2")], (1, ping()), "2");
    check(
        &[ip().masked(Field::Ipv4Src, 0x0b00_0000u32, 0xff00_0000u32).output("2"), rule(0)],
        (1, ping()),
        "",
    );
    check(&[rule(1).on(Field::InPort, PortNo(1)).output("2"), rule(0)], (3, ping()), "");
}

#[test]
fn a_label_hides_what_is_under_it() {
    if !has(Part::Version13) {
        return;
    }
    let labelled = |label: u128| {
        let mut bench = Bench::new(V13);
        bench.add(&[rule(1).apply(&[Action::PushMpls(0x8847), set(Field::MplsLabel, label), output("2")])]);
        bench.becomes(&ping())
    };
    let rules = [
        rule(3).on(Field::EthType, 0x8847u16).on(Field::MplsLabel, 7u32).apply(&[
            Action::PopMpls(0x800),
            Action::DecNwTtl,
            output("3"),
        ]),
        rule(2).on(Field::EthType, 0x800u16).on(Field::IpProto, 1u8).output("4"),
    ];
    check(&rules, (1, labelled(7)), "3");
    check(&rules, (1, labelled(8)), "");
    check(&rules, (1, ping()), "4");
}

#[test]
fn a_tag_is_there_or_not() {
    let untagged = rule(2).on(Field::VlanVid, 0u16).output("2");
    let five = rule(2).on(Field::VlanVid, 0x1005u16).output("3");
    check(&[untagged.clone(), five.clone()], (1, ping()), "2");
    check(&[untagged.clone(), five.clone()], (1, tagged(ping(), 5)), "3");
    check(&[untagged, five, rule(0)], (1, tagged(ping(), 6)), "");
}

#[test]
fn the_tables_hand_a_packet_on() {
    if !has(Part::Tables) {
        return;
    }
    let first = rule(1).goto(3);
    let third = rule(1).table(3).output("2");
    check(&[first.clone(), third], (1, ping()), "2");
    // Table 3 has no rule for the packet, so no rule sends it.
    check(&[first], (1, ping()), "");
}

#[test]
fn metadata_reaches_the_later_tables_and_the_controller() {
    if !has(Part::Tables) {
        return;
    }
    let mark = rule(1).then(Instruction::WriteMetadata { metadata: 0xff05, mask: 0xff }).goto(1);
    let seen = rule(1).table(1).masked(Field::Metadata, 5u64, 0xfu64).output("CONTROLLER");
    let mut bench = Bench::new(V13);
    bench.add(&[mark, seen]);
    let (ports, packet_ins) = bench.arrive(1, &ping());
    assert_eq!(ports, "controller");
    assert_eq!(packet_ins[0].matching.get(Field::Metadata).map(|(value, _)| value), Some(5));
    assert_eq!((packet_ins[0].table_id, packet_ins[0].reason), (1, 1));
}

#[test]
fn written_actions_wait_for_the_end_and_can_be_cleared() {
    let first = || rule(1).write(&[output("2")]);
    check(&[first()], (1, ping()), "2");
    if !has(Part::Tables) {
        return;
    }
    check(&[first().goto(1), rule(1).table(1).write(&[output("3")])], (1, ping()), "3");
    check(&[first().goto(1), rule(1).table(1).output("4")], (1, ping()), "4 2");
    check(&[first().goto(1), rule(1).table(1).then(Instruction::ClearActions)], (1, ping()), "");
    check(&[first().goto(1)], (1, ping()), "");
}

#[test]
fn what_is_changed_leaves_changed() {
    if !has(Part::Version13) {
        return;
    }
    let mut bench = Bench::new(V13);
    let change =
        [set(Field::EthDst, 0xabcd), Action::PushVlan(0x8100), set(Field::VlanVid, 0x1009), output("2")];
    bench.add(&[rule(1).apply(&change)]);
    let out = bench.becomes(&ping());
    assert_eq!(&out[..6], [0, 0, 0, 0, 0xab, 0xcd]);
    assert_eq!(&out[12..16], [0x81, 0x00, 0x00, 0x09]);
}

#[test]
fn the_actions_of_1_0_change_packets_too() {
    if !has(Part::OpenProtocol) {
        return;
    }
    let mut bench = Bench::new(V10);
    bench.add(&[rule(1).apply(&[Action::SetVlanVid(9), Action::SetTransportDst(81), output("2")])]);
    assert_eq!(bench.becomes(&tcp(1, 80))[18..].len(), tcp(1, 80)[14..].len());
    assert_eq!(bench.becomes(&tagged(tcp(1, 80), 3))[18 + 20 + 2..][..2], [0, 81]);
}

#[test]
fn a_packet_whose_time_is_over_is_not_forwarded_and_told_on_request() {
    if !has(Part::InvalidTtl) {
        return;
    }
    let dec = rule(1).apply(&[Action::SetNwTtl(1), Action::DecNwTtl, output("2")]);
    let mut bench = Bench::new(V13);
    bench.add(&[dec]);
    assert_eq!(bench.arrive(1, &ping()).0, "");
    let heard = AsyncConfig { packet_in_mask: [0b111, 0], ..AsyncConfig::default() };
    assert!(bench.say(Body::SetAsync(heard)).is_empty());
    let (ports, packet_ins) = bench.arrive(1, &ping());
    assert_eq!((ports.as_str(), packet_ins[0].reason), ("controller", 2));
}

#[test]
fn a_packet_out_goes_where_it_says() {
    for versions in [V10, V13] {
        let mut bench = Bench::new(versions);
        bench.add(&[rule(1).on(Field::EthDst, H2).output("4")]);
        let nowhere = if versions == V10 { PortNo::ANY } else { PortNo::CONTROLLER };
        for (in_port, port, expected) in [
            (nowhere, "3", "3"),
            (nowhere, "FLOOD", "1 2 3 4"),
            (PortNo(1), "FLOOD", "2 3 4"),
            (PortNo(1), "ALL", "2 3 4"),
            (PortNo(1), "IN_PORT", "1"),
            (PortNo(1), "TABLE", "4"),
        ] {
            assert_eq!(bench.say(packet_out(in_port, &[output(port)], ping())), []);
            assert_eq!(bench.left_by(), expected, "{versions:?} {in_port} {port}");
        }
        let answers = bench.say(packet_out(PortNo(1), &[output("CONTROLLER")], ping()));
        assert!(matches!(&answers[..], [Body::PacketIn(packet_in)] if packet_in.data == ping()[..]));
    }
}

#[test]
fn a_packet_out_without_a_packet_is_refused() {
    for (versions, expected) in [(V10, (1, 5)), (V13, (1, 12))] {
        let mut bench = Bench::new(versions);
        assert_eq!(bench.refusal(packet_out(PortNo(1), &[output("2")], vec![0; 13])), Some(expected));
        assert_eq!(bench.left_by(), "");
    }
}

#[test]
fn a_packet_in_holds_what_the_switch_does_not_keep() {
    if !has(Part::Buffers) {
        return;
    }
    for versions in [V10, V13] {
        for n_buffers in [0, 8] {
            let mut bench =
                Bench::with(software_switch::SwitchOptions { versions, n_buffers, ..Default::default() });
            bench.add(&[rule(1).output("CONTROLLER")]);
            let (_, packet_ins) = bench.arrive(3, &ping());
            let packet_in = &packet_ins[0];
            assert_eq!(packet_in.total_len, 98);
            assert_eq!(packet_in.matching.get(Field::InPort).map(|(port, _)| port), Some(3));
            assert_eq!(packet_in.buffer_id == NO_BUFFER, n_buffers == 0);
            assert_eq!(packet_in.data.len(), if n_buffers == 0 { 98 } else { 64 });
        }
    }
}

#[test]
fn miss_send_len_says_how_much_of_a_kept_packet_is_sent() {
    let mut bench =
        Bench::with(software_switch::SwitchOptions { versions: V10, n_buffers: 8, ..Default::default() });
    assert_eq!(bench.arrive(1, &ping()).1[0].data.len(), 98);
    bench.say(Body::SetConfig(SwitchConfig { flags: 0, miss_send_len: 20 }));
    assert_eq!(bench.arrive(1, &ping()).1[0].data.len(), 20);
    bench.say(Body::SetConfig(SwitchConfig { flags: 0, miss_send_len: 0xffff }));
    let packet_in = &bench.arrive(1, &ping()).1[0];
    assert_eq!((packet_in.buffer_id, packet_in.data.len()), (NO_BUFFER, 98));
}

#[test]
fn a_kept_packet_leaves_once() {
    for versions in [V10, V13] {
        let mut bench =
            Bench::with(software_switch::SwitchOptions { versions, n_buffers: 8, ..Default::default() });
        bench.add(&[rule(0).output("CONTROLLER")]);
        let buffer_id = bench.arrive(1, &ping()).1[0].buffer_id;
        bench.add(&[rule(5).on(Field::EthDst, H2).output("2").buffer(buffer_id)]);
        assert_eq!(bench.left_by(), "2");
        let again = rule(5).on(Field::EthDst, H2).output("2").buffer(buffer_id).body();
        assert_eq!(bench.refusal(again), Some((1, 7)));
        let buffer_id =
            bench.arrive(1, &tcp(1, 2)).1.first().map_or(NO_BUFFER, |packet_in| packet_in.buffer_id);
        assert_eq!(buffer_id, NO_BUFFER, "the rule takes it now");
        let out = PacketOut { buffer_id: 77, in_port: PortNo(1), actions: vec![output("3")], data: vec![] };
        assert_eq!(bench.refusal(Body::PacketOut(out)), Some((1, 8)));
    }
}

#[test]
fn a_port_that_is_down_carries_nothing() {
    let mut bench = Bench::new(V13);
    bench.add(&[rule(1).output("FLOOD")]);
    assert!(matches!(&bench.link(2, false)[..], [Body::PortStatus(status)] if !status.port.is_live()));
    assert_eq!(bench.link(2, false), [], "nothing changed");
    assert_eq!(bench.arrive(1, &ping()).0, "3 4");
    assert_eq!(bench.arrive(2, &ping()).0, "");
    bench.link(2, true);
    assert_eq!(bench.arrive(2, &ping()).0, "1 3 4");
}
