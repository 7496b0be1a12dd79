//! Our text against Open vSwitch's own: what `ovs-ofctl parse-flows` makes of a flow, we must make of it too.
//!
//! Needs the program `ovs-ofctl` (Debian: openvswitch-switch or openvswitch-common) and no switch. Where it is missing the
//! tests say by name that they are left out.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should end")]

use flow::canonical::{match_len, write_instructions, write_match};
use flow::text::{instructions_to_string, match_to_string, parse_instructions, parse_match};
use flow::{Field, Instruction, MacAddr, Match, PortNo};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use std::path::PathBuf;
use std::process::Command;

/// What ovs-ofctl prints for each flow, as (match, actions); `None` if it is not installed.
fn ovs_ofctl(test: &str, version: &str, flows: &[String]) -> Option<Vec<(String, String)>> {
    if Command::new("ovs-ofctl").arg("--version").output().is_err() {
        println!("left out: {test}: the program ovs-ofctl is not installed");
        return None;
    }
    let file: PathBuf = [env!("CARGO_TARGET_TMPDIR"), &format!("{test}.{version}.flows")].iter().collect();
    std::fs::write(&file, flows.join("\n")).unwrap();
    let ran = Command::new("ovs-ofctl").args(["-O", version, "parse-flows"]).arg(&file).output().unwrap();
    let (printed, said) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    let lines: Vec<_> =
        printed.lines().filter_map(|line| line.split_once(" ADD ")).map(|(_, flow)| split(flow)).collect();
    assert_eq!(lines.len(), flows.len(), "ovs-ofctl read every flow: {said}");
    Some(lines)
}

fn split(flow: &str) -> (String, String) {
    let (rule, actions) = flow.split_once("actions=").unwrap();
    (rule.trim().to_owned(), actions.trim().to_owned())
}

/// Each flow is written as people write it; both programs must print it the same.
fn check(test: &str, version: &str, flows: &[&str]) {
    let flows: Vec<String> = flows.iter().map(|flow| flow.to_string()).collect();
    let Some(theirs) = ovs_ofctl(test, version, &flows) else { return };
    for (flow, (their_match, their_actions)) in flows.iter().zip(theirs) {
        let (rule, actions) = split(flow);
        assert_eq!(match_to_string(&parse_match(&rule).unwrap()), their_match, "{flow}");
        assert_eq!(instructions_to_string(&parse_instructions(&actions).unwrap()), their_actions, "{flow}");
    }
}

/// Matches as people write them.
const MATCHES: &[&str] = &[
    "in_port=1,dl_src=00:00:00:00:00:01/ff:ff:ff:00:00:00",
    "in_port=LOCAL",
    "in_port=CONTROLLER",
    "metadata=0x5/0xff",
    "metadata=12",
    "tunnel_id=5/0xf",
    "eth_type=0x1234",
    "ip",
    "ipv6",
    "arp",
    "rarp,arp_op=3",
    "mpls",
    "mplsm",
    "sctp6,sctp_dst=5",
    "ip,nw_proto=47",
    "ip,nw_proto=2",
    "dl_vlan=5",
    "dl_vlan=0xffff",
    "dl_vlan=5,dl_vlan_pcp=3",
    "dl_vlan_pcp=3",
    "vlan_vid=0x1000/0x1000",
    "vlan_vid=0x1005/0x1fff",
    "vlan_vid=0x1005/0x100f",
    "vlan_vid=0",
    "vlan_vid=0/0x1000",
    "vlan_vid=5",
    "vlan_tci=0x1005",
    "vlan_tci=0x1000/0x1000",
    "vlan_tci=0xf005",
    "vlan_tci=0",
    "vlan_tci=0/0x1fff",
    "vlan_vid=0x1005,vlan_pcp=3",
    "ip,nw_tos=32",
    "ip,ip_dscp=32",
    "ipv6,ip_dscp=32,nw_ecn=1",
    "ip,nw_src=10.0.0.0/255.0.0.0",
    "ip,nw_src=10.0.0.0/255.0.255.0",
    "ip,nw_src=10.0.0.1/32,nw_dst=0.0.0.0/0",
    "tcp,tp_src=80,tp_dst=0x50/0xfff0",
    "udp,udp_dst=53",
    "icmp,icmp_type=8,icmp_code=0",
    "icmp6,icmp_type=135,icmp_code=0,nd_target=2001::1,nd_sll=00:11:22:33:44:55",
    "icmp6,icmpv6_type=136,nd_target=2001::/64,nd_tll=00:11:22:33:44:55",
    "ipv6,ipv6_src=2001::/16,ipv6_dst=::1,ipv6_label=0x12345",
    "ipv6,ipv6_src=2001::5/ffff::ff",
    "ipv6,ipv6_label=0x12345/0xff",
    "arp,nw_proto=1,nw_src=10.0.0.1,nw_dst=10.0.0.2",
    "arp,arp_tha=00:11:22:33:44:55,arp_sha=00:11:22:33:44:55,arp_tpa=10.0.0.0/24",
    "mpls,mpls_label=5,mpls_tc=3,mpls_bos=1",
    "dl_dst=01:00:00:00:00:00/01:00:00:00:00:00",
    "eth_dst=ff:ff:ff:ff:ff:ff,eth_src=1:2:3:4:5:6",
    "reg0=5,reg1=0x6/0xff,reg15=3",
    "pkt_mark=5,conj_id=4,ct_zone=3,ct_mark=5/0xf,recirc_id=3,dp_hash=5/0xf,ct_label=5",
    "tun_src=1.2.3.4,tun_dst=5.6.0.0/16",
    "eth_type=0x800,ip_proto=6,tcp_dst=22",
    "in_port=3 ip",
    "ct_state=+trk-new",
    "ct_state=trk|new",
    "ct_state=0x20/0x21",
    "tcp,tcp_flags=0x12/0x12",
    "tcp,tcp_flags=0x202",
    "tcp,tcp_flags=0",
    "tcp6,tcp_flags=-syn",
    "ip,nw_frag=no",
    "ip,nw_frag=yes",
    "ip,nw_frag=first",
    "ipv6,nw_frag=later",
    "udp,nw_frag=not_later",
    "tcp,in_port=1,metadata=5,tun_id=6,reg0=1,dl_src=00:00:00:00:00:01,dl_vlan=4,nw_src=1.1.1.1,nw_tos=32,nw_ecn=1,nw_ttl=3,tp_src=1,pkt_mark=3",
];

#[test]
fn matches_print_as_ovs_ofctl_prints_them() {
    let flows: Vec<String> = MATCHES.iter().map(|rule| format!("{rule} actions=drop")).collect();
    let flows: Vec<&str> = flows.iter().map(String::as_str).collect();
    check("matches", "OpenFlow13", &flows);
}

/// Flows as people write them, with what Open vSwitch needs in the match for their actions.
const ACTIONS_OF_1_3: &[&str] = &[
    "actions=output:1,2,LOCAL",
    "actions=controller,controller:128,controller(max_len=100),CONTROLLER:65535",
    "actions=controller(max_len=100,reason=no_match),controller(max_len=100,id=3),controller(id=3)",
    "actions=output(port=1,max_len=100),output:reg0[0..5],output:NXM_NX_REG0[]",
    "actions=normal,flood,all,in_port,local,table",
    "actions=set_field:00:11:22:33:44:55->eth_src,set_field:00:11:22:33:44:55->dl_dst",
    "ip,actions=set_field:32->ip_dscp,set_field:3->nw_ecn,set_field:10.0.0.1->ip_src,mod_nw_ttl:5,dec_ttl",
    "tcp,actions=set_field:80->tcp_dst",
    "dl_vlan=4,actions=set_field:4101->vlan_vid,set_field:3->vlan_pcp,pop_vlan",
    "actions=push_vlan:0x8100,set_field:4101->vlan_vid,push_vlan:0x88a8",
    "arp,actions=set_field:2->arp_op,set_field:10.0.0.1->arp_spa,set_field:00:00:00:00:00:01->arp_sha",
    "mpls,actions=set_field:5->mpls_label,set_field:1->mpls_tc,dec_mpls_ttl,set_mpls_ttl:5",
    "mpls,actions=set_mpls_label:5,set_mpls_tc:3,pop_mpls:0x800",
    "icmp6,icmp_type=135,actions=set_field:2001::1->nd_target,set_field:00:00:00:00:00:01->nd_sll",
    "icmp6,actions=set_field:5->icmpv6_type,set_field:5->icmpv6_code,set_field:5->ipv6_label",
    "icmp,actions=set_field:8->icmp_type,set_field:8->icmp_code",
    "actions=set_field:5->tun_id,set_field:1->reg0,set_field:0x5->metadata,set_field:3->pkt_mark",
    "actions=push_mpls:0x8847,set_field:5->mpls_label",
    "ip,actions=dec_ttl(1,2),dec_ttl(0)",
    "actions=group:5,set_queue:5,pop_queue,exit,ct_clear",
    "actions=resubmit:5,resubmit(5,6),resubmit(,7),resubmit(5,),resubmit(IN_PORT,4)",
    "actions=load:0x5->NXM_NX_REG0[],load:0x5->NXM_NX_REG0[0..15],load:1->reg0[3]",
    "actions=load:0x10000000000->NXM_OF_ETH_SRC[],load:5->OXM_OF_METADATA[],load:3->eth_dst[0..7]",
    "actions=move:NXM_OF_ETH_SRC[]->NXM_OF_ETH_DST[],move:NXM_NX_REG0[0..15]->NXM_OF_VLAN_TCI[]",
    "actions=note:00.01.02,note:",
    "actions=meter:5,output:2,goto_table:4",
    "actions=output:1,clear_actions,write_actions(output:3,set_queue:3),write_metadata:5/0xff,goto_table:4",
    "actions=write_metadata:5,goto_table:255",
    "actions=output:1 output:2",
    "actions=drop",
];

#[test]
fn actions_of_1_3_print_as_ovs_ofctl_prints_them() {
    check("actions", "OpenFlow13", ACTIONS_OF_1_3);
}

#[test]
fn actions_of_1_0_print_as_ovs_ofctl_prints_them() {
    check(
        "actions",
        "OpenFlow10",
        &[
            "actions=mod_dl_src:00:11:22:33:44:55,mod_dl_dst:00:11:22:33:44:55",
            "ip,actions=mod_nw_src:10.0.0.1,mod_nw_dst:10.0.0.1,mod_nw_tos:32",
            "tcp,actions=mod_tp_src:80,mod_tp_dst:80",
            "actions=mod_vlan_vid:5,mod_vlan_pcp:5,strip_vlan",
            "actions=enqueue:1:2,enqueue(LOCAL,2),enqueue:1q2,output:2",
            "actions=set_tunnel:5,set_tunnel64:5,set_tunnel:0x100000000",
            "ip,actions=dec_ttl,set_queue:3,controller,resubmit(,7)",
        ],
    );
}

/// A match that a switch takes: any of the fields whose prerequisites its kind of packet has.
fn legal_match() -> impl Strategy<Value = Match> {
    use Field::*;
    let ipv4 = vec![Ipv4Src, Ipv4Dst, IpDscp, IpEcn];
    let ipv6 = vec![Ipv6Src, Ipv6Dst, Ipv6Flabel, IpDscp, IpEcn];
    let with = |base: &[Field], more: &[Field]| [base, more].concat();
    let kinds: Vec<(u16, Option<u8>, Vec<Field>)> = vec![
        (0, None, vec![]),
        (0x0800, None, ipv4.clone()),
        (0x0800, Some(6), with(&ipv4, &[TcpSrc, TcpDst])),
        (0x0800, Some(17), with(&ipv4, &[UdpSrc, UdpDst])),
        (0x0800, Some(1), with(&ipv4, &[Icmpv4Type, Icmpv4Code])),
        (0x0800, Some(89), ipv4),
        (0x86dd, None, ipv6.clone()),
        (0x86dd, Some(132), with(&ipv6, &[SctpSrc, SctpDst])),
        (0x86dd, Some(58), with(&ipv6, &[Icmpv6Code])),
        (0x0806, None, vec![ArpOp, ArpSpa, ArpTpa, ArpSha, ArpTha]),
        (0x8847, None, vec![MplsLabel, MplsTc, MplsBos]),
        (0x88cc, None, vec![]),
    ];
    let values =
        proptest::collection::vec((any::<bool>(), any::<u128>(), proptest::option::of(any::<u128>())), 12);
    (prop::sample::select(kinds), 1u32..0xff00, values).prop_map(
        |((eth_type, ip_proto, fields), port, values)| {
            let mut rule = Match::any().with(InPort, PortNo(port));
            if eth_type != 0 {
                rule.set(EthType, eth_type.into());
            }
            if let Some(ip_proto) = ip_proto {
                rule.set(IpProto, ip_proto.into());
            }
            let always = [Metadata, TunnelId, EthSrc, EthDst, VlanVid];
            for (field, (kept, value, mask)) in always.iter().chain(&fields).zip(values) {
                match mask.filter(|_| field.maskable()) {
                    _ if !kept => {}
                    None if *field == VlanVid => rule.set(VlanVid, value & 0xfff | 0x1000),
                    // Open vSwitch matches no more than 8 bits of ARP's operation.
                    None if *field == ArpOp => rule.set(ArpOp, value & 0xff),
                    // ovs-ofctl has no room for two long IPv6 addresses around a slash, so these masks are prefixes.
                    Some(mask) if field.bits() == 128 => {
                        rule.set_masked(*field, value, u128::MAX << (mask % 128));
                    }
                    Some(mask) => rule.set_masked(*field, value, mask | 1),
                    None => rule.set(*field, value),
                }
            }
            rule
        },
    )
}

#[test]
fn any_legal_match_prints_as_ovs_ofctl_prints_it() {
    let mut runner = TestRunner::deterministic();
    let rules: Vec<Match> =
        (0..500).map(|_| legal_match().new_tree(&mut runner).unwrap().current()).collect();
    let flows: Vec<String> =
        rules.iter().map(|rule| format!("{} actions=drop", match_to_string(rule))).collect();
    let Some(theirs) = ovs_ofctl("any_legal_match", "OpenFlow13", &flows) else { return };
    for (rule, (their_match, _)) in rules.iter().zip(theirs) {
        assert_eq!(match_to_string(rule), their_match);
    }
}

/// A flow mod of OpenFlow 1.3 (1.3.5, 7.3.4.1) that adds a rule, with our bytes in it.
fn flow_mod(rule: &Match, instructions: &[Instruction]) -> Vec<u8> {
    let mut body = Vec::new();
    // Cookie, its mask, table, command, time-outs, priority 32768, no buffer, any port and group, flags, padding.
    body.extend([0; 16]);
    body.extend([0, 0, 0, 0, 0, 0, 0x80, 0]);
    body.extend([0xff; 12]);
    body.extend([0; 4]);
    let match_start = body.len();
    let length = u16::try_from(4 + match_len(rule)).unwrap();
    body.extend([0, 1]);
    body.extend(length.to_be_bytes());
    write_match(rule, &mut body);
    body.resize(match_start + usize::from(length).next_multiple_of(8), 0);
    write_instructions(instructions, &mut body).unwrap();
    let length = u16::try_from(8 + body.len()).unwrap().to_be_bytes();
    [&[4, 14, length[0], length[1], 0, 0, 0, 1][..], &body].concat()
}

#[test]
fn our_bytes_say_to_ovs_ofctl_what_our_text_says() {
    let mut runner = TestRunner::deterministic();
    let drop = |rule: Match| (rule, Vec::new());
    let mut flows: Vec<(Match, Vec<Instruction>)> =
        (0..500).map(|_| drop(legal_match().new_tree(&mut runner).unwrap().current())).collect();
    for flow in ACTIONS_OF_1_3 {
        let (rule, actions) = split(flow);
        flows.push((parse_match(&rule).unwrap(), parse_instructions(&actions).unwrap()));
    }
    let messages: Vec<u8> =
        flows.iter().flat_map(|(rule, instructions)| flow_mod(rule, instructions)).collect();
    let file: PathBuf = [env!("CARGO_TARGET_TMPDIR"), "our_bytes.messages"].iter().collect();
    std::fs::write(&file, messages).unwrap();
    let Ok(ran) = Command::new("ovs-ofctl").arg("ofp-parse").arg(&file).output() else {
        println!(
            "left out: our_bytes_say_to_ovs_ofctl_what_our_text_says: the program ovs-ofctl is not installed"
        );
        return;
    };
    let printed = String::from_utf8_lossy(&ran.stdout);
    let theirs: Vec<_> =
        printed.lines().filter_map(|line| line.split_once(" ADD ")).map(|(_, flow)| split(flow)).collect();
    assert_eq!(theirs.len(), flows.len(), "{}", String::from_utf8_lossy(&ran.stderr));
    for ((rule, instructions), theirs) in flows.iter().zip(theirs) {
        assert_eq!((match_to_string(rule), instructions_to_string(instructions)), theirs);
    }
}

#[test]
fn what_ovs_ofctl_refuses_is_refused() {
    for flow in [
        "colour=3,actions=drop",
        "ip,nw_src=1.2.3,actions=drop",
        "actions=outptu:1",
        "actions=output:",
        "actions=drop,output:1",
        "actions=set_field:5",
        "actions=set_field:5->colour",
        "actions=group:all",
        "actions=controller:99999",
        "actions=goto_table:256",
        "actions=goto_table:3,output:2",
        "actions=output:1,meter:3",
        "actions=load:0x5->reg0[3]",
        "actions=note:0x12",
    ] {
        let (rule, actions) = split(flow);
        assert!(parse_match(&rule).is_err() || parse_instructions(&actions).is_err(), "{flow}");
        let Ok(ran) = Command::new("ovs-ofctl").args(["parse-flow", flow]).output() else {
            println!("left out: what_ovs_ofctl_refuses_is_refused: the program ovs-ofctl is not installed");
            continue;
        };
        assert!(!ran.status.success(), "ovs-ofctl reads {flow}");
    }
}

#[test]
fn addresses_keep_their_order_of_bytes() {
    let rule = parse_match("dl_src=00:11:22:33:44:55").unwrap();
    assert_eq!(rule, Match::any().with(Field::EthSrc, MacAddr([0, 0x11, 0x22, 0x33, 0x44, 0x55])));
}
