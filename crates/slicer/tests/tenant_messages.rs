//! What the fuzz target was given and what it found, on stable Rust: `fuzz/corpus/tenant_messages`, each file once.
//!
//! With `BURNET_BLESS=1` the seeds are made again. Other inputs that fuzzing found stay.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should end")]

#[path = "../../../fuzz/checks/tenant.rs"]
mod checks;

use flow::text::{parse_instructions, parse_match};
use flow::{Action, PortNo};
use openflow::message::*;
use openflow::{Body, HEADER_LEN, Message, Version};
use proptest::prelude::*;
use std::fs;
use std::path::{Path, PathBuf};

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/tenant_messages")
}

fn flow_mod(command: u8, priority: u16, matching: &str, actions: &str) -> Body {
    let fields = FlowModFields { command, priority, flags: 1, idle_timeout_s: 3, ..FlowModFields::default() };
    Body::FlowMod(fields.with(parse_match(matching).unwrap(), parse_instructions(actions).unwrap()))
}

fn packet_out(in_port: PortNo, to: PortNo) -> Body {
    let data = vec![0x08; 60];
    Body::PacketOut(PacketOut { buffer_id: NO_BUFFER, in_port, actions: vec![Action::output(to)], data })
}

fn question(body: RequestBody) -> Body {
    Body::MultipartRequest(MultipartRequest { flags: 0, body })
}

/// What both versions can say.
fn of_both() -> Vec<Body> {
    let all = FlowStatsRequest {
        table_id: TABLE_ALL,
        out_port: PortNo::ANY,
        out_group: GROUP_ANY,
        cookie: 0,
        cookie_mask: 0,
        matching: parse_match("").unwrap(),
    };
    vec![
        flow_mod(FLOW_ADD, 5, "tcp,nw_dst=10.0.0.1,tp_dst=80", "output:1,flood,controller:9"),
        flow_mod(FLOW_ADD, 65_535, "in_port=1", "output:3,output:2"),
        flow_mod(FLOW_MODIFY, 5, "", "all"),
        packet_out(PortNo(1), PortNo::FLOOD),
        packet_out(PortNo(3), PortNo::TABLE),
        question(RequestBody::Flow(all)),
        question(RequestBody::PortStats(PortNo::ANY)),
        Body::PortMod(PortMod {
            port_no: PortNo(1),
            hw_addr: flow::MacAddr([2, 0, 0, 0, 0, 2]),
            config: 1,
            mask: 1,
            advertise: 0,
        }),
        Body::BarrierRequest,
        flow_mod(FLOW_DELETE, 0, "", ""),
    ]
}

/// What only 1.3 can say.
fn of_v13() -> Vec<Body> {
    let bucket = |port| Bucket {
        weight: 0,
        watch_port: PortNo::ANY,
        watch_group: GROUP_ANY,
        actions: vec![Action::output(port)],
    };
    let (group_type, buckets) = (GROUP_TYPE_ALL, vec![bucket(PortNo(1)), bucket(PortNo::FLOOD)]);
    let bands = vec![MeterBand { rate: 1, burst_size: 0, kind: MeterBandKind::Drop }];
    vec![
        Body::GroupMod(GroupMod { command: 0, group_type, group_id: 9, buckets }),
        Body::MeterMod(MeterMod { command: 0, flags: 1, meter_id: 3, bands }),
        flow_mod(FLOW_ADD, 7, "in_port=2", "meter:3,group:9"),
        flow_mod(FLOW_ADD, 9, "ip,nw_dst=10.0.0.1", "write_actions(dec_ttl,output:2)"),
        question(RequestBody::Group(GROUP_ALL)),
        question(RequestBody::Meter(METER_ALL)),
        Body::RoleRequest(Role { role: ROLE_MASTER, generation_id: 1 }),
    ]
}

/// The pieces of an input for messages: type and body of each, and some other events between them.
fn pieces(version: Version, bodies: Vec<Body>) -> Vec<u8> {
    let mut input = Vec::new();
    for (number, body) in bodies.into_iter().enumerate() {
        let mut bytes = Vec::new();
        Message { version, xid: 0, body }.encode(&mut bytes).unwrap();
        let piece = [&bytes[1..2], &bytes[HEADER_LEN..]].concat();
        // A longer one is no seed: it would be cut.
        let Ok(length) = u8::try_from(piece.len()) else { continue };
        input.extend([0, length]);
        input.extend(piece);
        match number % 4 {
            0 => input.extend([5 | 8 << 3, 20].into_iter().chain([0x81; 20])),
            1 => input.extend([7, 1, 2]),
            2 => input.extend([7 | 1 << 3, 1, 3]),
            _ => input.extend([6, 1, 1]),
        }
    }
    input
}

/// One input for each choice of versions and isolation.
fn seeds() -> Vec<(String, Vec<u8>)> {
    let seed = |choice: u8| {
        let version = if choice & 1 == 0 { Version::V1_3 } else { Version::V1_0 };
        let only = if version == Version::V1_3 { of_v13() } else { Vec::new() };
        let input = [vec![choice], pieces(version, [only, of_both()].concat())].concat();
        (format!("seed-{choice}"), input)
    };
    // 12 to 15 are those with addresses.
    (0..8).chain(12..16).map(seed).collect()
}

#[test]
fn the_seeds_are_what_is_written_today() {
    for (name, bytes) in seeds() {
        let path = corpus().join(&name);
        if std::env::var_os("BURNET_BLESS").is_some() {
            fs::create_dir_all(corpus()).unwrap();
            fs::write(&path, &bytes).unwrap();
        }
        assert_eq!(fs::read(&path).ok(), Some(bytes), "{name}: BURNET_BLESS=1 makes it");
    }
}

#[test]
fn each_input_of_the_corpus_holds() {
    let entries = fs::read_dir(corpus()).unwrap();
    let count = entries.map(|it| checks::tenant_messages(&fs::read(it.unwrap().path()).unwrap())).count();
    assert!(count >= seeds().len());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// A stand-in for the fuzzer: seeds with some bytes changed.
    #[test]
    fn damaged_seeds_hold_too(
        which in 0..12usize,
        choice in any::<u8>(),
        changes in prop::collection::vec((any::<usize>(), any::<u8>()), 0..12),
    ) {
        let mut bytes = seeds()[which].1.clone();
        bytes[0] = choice & 12 | bytes[0] & 3;
        for (at, byte) in changes {
            let place = 1 + at % (bytes.len() - 1);
            bytes[place] = byte;
        }
        checks::tenant_messages(&bytes);
    }
}
