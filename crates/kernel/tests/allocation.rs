//! A decision on a command allocates nothing, with or without bounds.

#![allow(clippy::unwrap_used, reason = "a test may")]

use abi::command::{self, Command, FlowMod, PacketOut, What};
use abi::event::{self, OpenFlowVersion, SwitchUp};
use abi::{Frame, ZoneId};
use flow::canonical::{write_actions, write_instructions, write_match};
use flow::text::{parse_actions, parse_instructions, parse_match};
use flow::{DatapathId, PortNo};
use kernel::{Bounds, Decision, Grant, Kernel, Quota, Quotas};

const SWITCH: DatapathId = DatapathId(1);
const APP: ZoneId = ZoneId(1);

fn flow_mod(matching: &str, instructions: &str) -> Vec<u8> {
    let (mut matched, mut done) = (Vec::new(), Vec::new());
    write_match(&parse_match(matching).unwrap(), &mut matched);
    write_instructions(&parse_instructions(instructions).unwrap(), &mut done).unwrap();
    frame(What::FlowMod(FlowMod { priority: 5, matching: &matched, instructions: &done, ..FlowMod::ADD }))
}

/// A packet to 10.0.0.1, out of port 2.
fn packet_out() -> Vec<u8> {
    let mut data = vec![0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 3, 8, 0];
    data.extend([0x45, 0, 0, 40, 0, 0, 0, 0, 64, 6, 0, 0, 10, 0, 0, 9, 10, 0, 0, 1]);
    data.resize(60, 0);
    let mut actions = Vec::new();
    write_actions(&parse_actions("set_field:10.0.0.2->ip_dst,output:2").unwrap(), &mut actions).unwrap();
    frame(What::PacketOut(PacketOut { buffer_id: None, in_port: PortNo(1), actions: &actions, data: &data }))
}

fn frame(what: What<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    let command = Command { datapath: SWITCH, ticket: 7, wants_receipt: false, what };
    assert!(command::write::command(&mut bytes, &command));
    bytes
}

/// How many allocations a hundred commands make, after the first has passed.
fn allocations(grant: Grant, bytes: &[u8]) -> u64 {
    let mut kernel = Kernel::new(7);
    kernel.attach(APP, "app", grant, 0);
    let mut up = Vec::new();
    event::write::switch_up(
        &mut up,
        1,
        &SwitchUp {
            datapath: SWITCH,
            n_buffers: 0,
            n_tables: 8,
            openflow: OpenFlowVersion::V1_3,
            ports: &[],
        },
    );
    kernel.on_event(&Frame::read(&up).unwrap(), 0, &mut Vec::new()).unwrap();
    kernel.on_no_answer(SWITCH, kernel::Asked::Owners, kernel::Unanswered::Refused, 0);
    let mut effects = Vec::with_capacity(8);
    let mut decide = || {
        let decision = kernel.on_command(APP, &Frame::read(bytes).unwrap(), 0, &mut effects);
        assert!(matches!(decision, Decision::Send(_)), "{decision:?}");
        kernel.on_sent();
    };
    decide();
    allocation_counter::measure(|| (0..100).for_each(|_| decide())).count_total
}

#[test]
fn deciding_allocates_nothing() {
    let rules = ["in_port=1,ip,nw_dst=10.0.0.1", "tcp,nw_dst=10.0.0.0/24,tp_dst=80"];
    let actions = "set_field:10.0.0.2->ip_dst,dec_ttl,output:2,write_metadata:5,goto_table:3";
    let bounds = Bounds {
        flowspace: Some(vec![parse_match("arp").unwrap(), parse_match("ip,nw_dst=10.0.0.0/16").unwrap()]),
        tables: Some((0..4).collect()),
        ports: Some(vec![PortNo(2)]),
        ..Bounds::default()
    };
    let most = Some(Quota { soft: 1_000, hard: 1_000 });
    let quotas = Quotas {
        commands_per_s: most,
        packet_outs_per_s: most,
        packet_out_bytes_per_s: Some(Quota { soft: 1 << 20, hard: 1 << 20 }),
        copies_per_switch_per_s: most,
        packet_ins_caused_per_s: most,
        stats_per_s: most,
        rules_per_datapath: most,
    };
    for grant in [
        Grant::everywhere(&kernel::Capability::GRANT_ALL),
        Grant::everywhere(&kernel::Capability::GRANT_ALL)
            .with_rules(bounds.clone())
            .with_packets_out(bounds)
            .with_quotas(quotas),
    ] {
        for rule in rules {
            assert_eq!(allocations(grant.clone(), &flow_mod(rule, actions)), 0, "{rule}");
        }
        assert_eq!(allocations(grant, &packet_out()), 0);
    }
}
