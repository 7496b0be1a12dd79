//! The hot paths allocate nothing once their buffers have grown: a counting allocator says so.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use abi::command::{FlowMod, PacketOut, What};
use abi::{Command, ZoneId};
use flow::canonical::{ActionWriter, InstructionWriter, MatchWriter};
use flow::{DatapathId, Field, Match, PortNo};
use openflow::message::*;
use openflow::{Body, Message, Version};
use southbound::session::{Session, Step};
use southbound::{SouthboundConfig, Tag, Turn};

const BOTH: [Version; 2] = [Version::V1_0, Version::V1_3];

fn bytes(version: Version, body: Body) -> Vec<u8> {
    let mut bytes = Vec::new();
    Message { version, xid: 1, body }.encode(&mut bytes).unwrap();
    bytes
}

/// A session that is up.
fn up(version: Version, out: &mut Vec<u8>) -> Session {
    let mut session = Session::new(&SouthboundConfig::default(), 0);
    let mut turn = Turn { now_ms: 0, out, frame: &mut Vec::new(), sink: &mut |_| {} };
    let features = FeaturesReply {
        datapath_id: DatapathId(1),
        n_buffers: 0,
        n_tables: 1,
        auxiliary_id: 0,
        capabilities: 0,
        actions: 0,
        ports: Vec::new(),
    };
    let ports = MultipartReply { flags: 0, body: ReplyBody::PortDesc(Vec::new()) };
    session.on_message(&bytes(version, Body::Hello(Hello::default())), &mut turn).unwrap();
    session.on_message(&bytes(version, Body::FeaturesReply(features)), &mut turn).unwrap();
    if version == Version::V1_3 {
        session.on_message(&bytes(version, Body::MultipartReply(ports)), &mut turn).unwrap();
    }
    session.admit(&mut turn);
    session
}

/// How often something is done before it is counted: until the buffers, and the ring of the last commands, have their size.
const WARM_UP: usize = 1100;

/// Does it until nothing grows any more, and then a hundred times without one allocation.
fn check(what: &str, version: Version, mut act: impl FnMut(&mut Session, &mut Turn<'_>)) {
    let (mut out, mut frame, mut effects) = (Vec::new(), Vec::new(), 0);
    let mut session = up(version, &mut out);
    let mut sink = |_: southbound::SessionOutput<'_>| effects += 1;
    let mut once = |out: &mut Vec<u8>| {
        out.clear();
        act(&mut session, &mut Turn { now_ms: 0, out, frame: &mut frame, sink: &mut sink });
    };
    (0..WARM_UP).for_each(|_| once(&mut out));
    let counted = allocation_counter::measure(|| (0..100).for_each(|_| once(&mut out)));
    assert_eq!(counted.count_total, 0, "{what} of OpenFlow {version}");
    assert!(effects == WARM_UP + 100 || out.len() > 8, "{what} of OpenFlow {version} did nothing");
}

#[test]
fn a_packet_in_allocates_nothing() {
    for version in BOTH {
        let packet = bytes(
            version,
            Body::PacketIn(PacketIn {
                buffer_id: NO_BUFFER,
                total_len: 1400,
                reason: 0,
                table_id: 0,
                cookie: u64::MAX,
                matching: Match::any().with(Field::InPort, PortNo(1)),
                data: vec![7; 1400],
            }),
        );
        check("a packet-in", version, |session, turn| {
            assert_eq!(session.on_message(&packet, turn), Ok(Step::On))
        });
    }
}

#[test]
fn a_flow_removed_allocates_nothing() {
    for version in BOTH {
        let removed = bytes(
            version,
            Body::FlowRemoved(FlowRemoved {
                matching: Match::any().with(Field::InPort, PortNo(1)),
                cookie: 1,
                priority: 1,
                reason: 0,
                table_id: 0,
                duration_s: 1,
                duration_ns: 0,
                idle_timeout_s: 1,
                hard_timeout_s: 0,
                packet_count: 1,
                byte_count: 1,
            }),
        );
        check("a flow removed", version, |session, turn| {
            assert_eq!(session.on_message(&removed, turn), Ok(Step::On))
        });
    }
}

#[test]
fn an_echo_allocates_nothing() {
    for version in BOTH {
        let echo = bytes(version, Body::EchoRequest(vec![1; 64]));
        check("an echo request", version, |session, turn| {
            assert_eq!(session.on_message(&echo, turn), Ok(Step::On))
        });
    }
}

#[test]
fn a_rule_and_a_packet_out_allocate_nothing() {
    let (mut matching, mut instructions, mut actions) = (Vec::new(), Vec::new(), Vec::new());
    MatchWriter::new(&mut matching).field(Field::InPort, 1u32).field(Field::EthDst, flow::MacAddr([2; 6]));
    ActionWriter::new(&mut actions).output(PortNo(2), 0);
    InstructionWriter::new(&mut instructions).apply_actions(|actions| {
        actions.output(PortNo(2), 0);
    });
    let add = FlowMod { matching: &matching, instructions: &instructions, ..FlowMod::ADD };
    let packet = PacketOut { buffer_id: None, in_port: PortNo(1), actions: &actions, data: &[7; 1400] };
    let tag = Tag { zone: ZoneId(1), generation: 0, ticket: 1 };
    for version in BOTH {
        check("a flow mod and a packet-out", version, |session, turn| {
            for what in [What::FlowMod(add), What::PacketOut(packet)] {
                let command = Command { datapath: DatapathId(1), ticket: 1, wants_receipt: false, what };
                session.send(&command, 1, tag, 0, turn).unwrap();
            }
        });
    }
}

#[test]
fn a_rule_with_its_receipt_allocates_nothing() {
    let tag = Tag { zone: ZoneId(1), generation: 0, ticket: 1 };
    let command = Command {
        datapath: DatapathId(1),
        ticket: 1,
        wants_receipt: true,
        what: What::FlowMod(FlowMod::ADD),
    };
    for version in BOTH {
        let mut reply = bytes(version, Body::BarrierReply);
        check("a flow mod with its receipt", version, |session, turn| {
            session.send(&command, 1, tag, 0, turn).unwrap();
            let barrier = turn.out.len();
            session.on_turn_end(turn);
            let xid: [u8; 4] = turn.out[barrier + 4..barrier + 8].try_into().unwrap();
            reply[4..8].copy_from_slice(&xid);
            session.on_message(&reply, turn).unwrap();
        });
    }
}
