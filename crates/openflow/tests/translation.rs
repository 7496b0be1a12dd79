//! What 1.3's matches and actions are in 1.0, and what is refused because 1.0 would do something else. In: ovs-ofctl's syntax. Out: the
//! bytes of 1.0 read again, in the same syntax; or the name of the part that cannot be said.

#![allow(clippy::unwrap_used, reason = "a test may")]

use flow::canonical::{write_actions, write_instructions, write_match};
use flow::text::{actions_to_string, match_to_string, parse_actions, parse_match};
use flow::{Field, Instruction, PortNo};
use openflow::message::{FlowModFields, NO_BUFFER, PacketOut};
use openflow::{Body, Message, Unwritable, Version, v10, write};

/// The match of 1.0 that `text` becomes, or what it fails at.
fn matching(text: &str) -> Result<String, &'static str> {
    let mut tlvs = Vec::new();
    write_match(&parse_match(text).unwrap(), &mut tlvs);
    let mut body = Vec::new();
    v10::write_match_from_canonical(&tlvs, &mut body).map_err(|refused| refused.what)?;
    // A flow mod around it, to read it by: an add of no actions.
    body.extend_from_slice(&[0; 24]);
    let bytes = [&[1, 14, 0, 72, 0, 0, 0, 1], &body[..]].concat();
    let Body::FlowMod(flow_mod) = Message::decode(&bytes).unwrap().body else { unreachable!() };
    Ok(match_to_string(&flow_mod.matching))
}

/// The actions of 1.0 that `text` becomes in a rule for `of`, or what they fail at.
fn actions(of: &str, text: &str) -> Result<String, &'static str> {
    let (fields, matching) = (FlowModFields::default(), parse_match(of).unwrap());
    let instructions = vec![Instruction::ApplyActions(parse_actions(text).unwrap())];
    let (mut tlvs, mut canonical, mut from_canonical) = (Vec::new(), Vec::new(), Vec::new());
    write_match(&matching, &mut tlvs);
    write_instructions(&instructions, &mut canonical).unwrap();
    let canonical = write::flow_mod(Version::V1_0, 1, &fields, &tlvs, &canonical, &mut from_canonical);
    let body = Body::FlowMod(fields.with(matching, instructions));
    let mut bytes = Vec::new();
    let typed = Message { version: Version::V1_0, xid: 1, body }.encode(&mut bytes);
    // From types and from canonical bytes, it is the same.
    assert_eq!((&canonical, &from_canonical), (&typed, &bytes), "{of} {text}");
    typed.map_err(|refused| refused.what)?;
    let Body::FlowMod(flow_mod) = Message::decode(&bytes).unwrap().body else { unreachable!() };
    Ok(match &flow_mod.instructions[..] {
        [Instruction::ApplyActions(list)] => actions_to_string(list),
        _ => String::new(),
    })
}

fn check_match(text: &str, expected: Result<&str, &'static str>) {
    assert_eq!(matching(text), expected.map(str::to_owned), "{text}");
}

fn check(of: &str, text: &str, expected: Result<&str, &'static str>) {
    assert_eq!(actions(of, text), expected.map(str::to_owned), "{of} {text}");
}

#[test]
fn fields_that_1_0_does_not_have_are_refused() {
    check_match("ipv6", Ok("ipv6"));
    check_match("tcp6", Err("ip_proto"));
    check_match("metadata=1", Err("metadata"));
    check_match("tun_id=1", Err("tunnel_id"));
    check_match("ip,nw_ecn=1", Err("ip_ecn"));
    check_match("mpls,mpls_label=1", Err("mpls_label"));
    check_match("reg0=1", Err("oxm_field"));
    check_match("arp,arp_sha=02:00:00:00:00:01", Err("arp_sha"));
}

#[test]
fn masks_that_1_0_does_not_have_are_refused() {
    check_match("dl_dst=01:00:00:00:00:00/01:00:00:00:00:00", Err("eth_dst"));
    check_match("ip,nw_src=10.0.0.1/255.0.255.0", Err("ipv4_src"));
    check_match("tcp,tp_dst=0x10/0xfff0", Err("tcp_dst"));
    check_match("vlan_tci=0x1000/0x1000", Err("vlan_vid"));
    check_match("ip,nw_src=10.0.0.0/9", Ok("ip,nw_src=10.0.0.0/9"));
}

#[test]
fn a_field_without_its_prerequisite_is_refused() {
    for (field, name) in [(Field::TcpDst, "tcp_dst"), (Field::ArpOp, "arp_op"), (Field::Ipv4Dst, "ipv4_dst")]
    {
        let mut tlvs = Vec::new();
        write_match(&flow::Match::any().with(field, 1u8), &mut tlvs);
        let mut out = Vec::new();
        let refused: Unwritable = v10::write_match_from_canonical(&tlvs, &mut out).unwrap_err();
        assert_eq!((refused.what, out.len()), (name, 0));
    }
    check_match("arp,arp_spa=10.0.0.1,arp_op=2", Ok("arp,arp_spa=10.0.0.1,arp_op=2"));
}

#[test]
fn a_tag_is_pushed_only_where_there_is_none() {
    let pushed = "push_vlan:0x8100,set_field:4101->vlan_vid,output:2";
    check("vlan_tci=0", pushed, Ok("mod_vlan_vid:5,output:2"));
    check("", pushed, Err("OFPAT_PUSH_VLAN"));
    check("dl_vlan=7", pushed, Err("OFPAT_PUSH_VLAN"));
    check("vlan_tci=0", "push_vlan:0x8100,output:2", Err("OFPAT_PUSH_VLAN"));
    check("vlan_tci=0", "push_vlan:0x88a8,set_field:4101->vlan_vid", Err("OFPAT_PUSH_VLAN"));
    check(
        "vlan_tci=0",
        "push_vlan:0x8100,set_field:4101->vlan_vid,push_vlan:0x8100,set_field:4102->vlan_vid",
        Err("OFPAT_PUSH_VLAN"),
    );
    check("dl_vlan=7", "pop_vlan,output:2", Ok("strip_vlan,output:2"));
}

#[test]
fn a_packet_out_pushes_a_tag_if_its_frame_has_none() {
    let check = |buffer_id: u32, kind: &[u8], expected: Result<&str, &'static str>| {
        let pushed = parse_actions("push_vlan:0x8100,set_field:4101->vlan_vid,output:2").unwrap();
        let data = [&[2; 12], kind].concat();
        let (mut canonical, mut from_canonical, mut bytes) = (Vec::new(), Vec::new(), Vec::new());
        write_actions(&pushed, &mut canonical).unwrap();
        let in_port = PortNo(1);
        let from_bytes =
            write::packet_out(Version::V1_0, 1, buffer_id, in_port, &canonical, &data, &mut from_canonical);
        let body = Body::PacketOut(PacketOut { buffer_id, in_port, actions: pushed, data: data.clone() });
        let typed = Message { version: Version::V1_0, xid: 1, body }.encode(&mut bytes);
        assert_eq!((&from_bytes, &from_canonical), (&typed, &bytes), "{kind:?}");
        let written = typed.map_err(|refused| refused.what).map(|()| {
            let Body::PacketOut(out) = Message::decode(&bytes).unwrap().body else { unreachable!() };
            actions_to_string(&out.actions)
        });
        assert_eq!(written, expected.map(str::to_owned), "{kind:?}");
    };
    check(NO_BUFFER, &[8, 0, 1], Ok("mod_vlan_vid:5,output:2"));
    check(NO_BUFFER, &[0x81, 0, 0, 7, 8, 0], Err("OFPAT_PUSH_VLAN"));
    check(NO_BUFFER, &[0x88, 0xa8, 0, 7, 8, 0], Err("OFPAT_PUSH_VLAN"));
    check(NO_BUFFER, &[8], Err("OFPAT_PUSH_VLAN"));
    check(7, &[8, 0, 1], Err("OFPAT_PUSH_VLAN"));
}

#[test]
fn a_queue_goes_with_each_output() {
    check("", "set_queue:3,output:1,output:2", Ok("enqueue:1:3,enqueue:2:3"));
    check("", "set_queue:3,CONTROLLER:64", Ok("CONTROLLER:64"));
    check("", "set_queue:3,FLOOD", Err("OFPAT_SET_QUEUE"));
}

#[test]
fn set_fields_become_the_actions_of_1_0() {
    check(
        "ip",
        "set_field:10.0.0.1->ip_src,set_field:10.0.0.2->ip_dst",
        Ok("mod_nw_src:10.0.0.1,mod_nw_dst:10.0.0.2"),
    );
    check("", "set_field:02:00:00:00:00:01->eth_src", Ok("mod_dl_src:02:00:00:00:00:01"));
    check("tcp", "set_field:80->tcp_dst", Ok("mod_tp_dst:80"));
    check("udp", "set_field:53->udp_src", Ok("mod_tp_src:53"));
    check("arp", "set_field:1->arp_op", Err("arp_op"));
}

#[test]
fn actions_that_1_0_does_not_have_are_refused() {
    check("", "group:1", Err("OFPAT_GROUP"));
    check("ip", "dec_ttl", Err("OFPAT_DEC_NW_TTL"));
    check("", "output:65536", Err("OFPAT_OUTPUT"));
    let mut canonical = Vec::new();
    write_actions(&[flow::Action::output(PortNo(1)), flow::Action::Group(1)], &mut canonical).unwrap();
    let mut out = vec![7];
    assert!(v10::write_actions_from_canonical(&canonical, false, &mut out).is_err());
    assert_eq!(out, [7], "nothing of the list may stay");
}
