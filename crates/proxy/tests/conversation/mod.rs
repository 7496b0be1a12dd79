//! A conversation of a switch and a controller, as bytes: what damaged streams begin from.

use flow::{Action, Field, Instruction, Match, PortNo};
use openflow::message::*;
use openflow::{Body, Message, Version};

/// A conversation as bytes: messages of both sides.
pub fn conversation(version: Version) -> Vec<(bool, Vec<u8>)> {
    let packet_in = PacketIn {
        buffer_id: NO_BUFFER,
        total_len: 60,
        reason: 0,
        table_id: 0,
        cookie: if version == Version::V1_0 { u64::MAX } else { 1 },
        matching: Match::any().with(Field::InPort, 1u32),
        data: vec![7; 60],
    };
    let rule = |command, buffer_id| {
        let fields =
            FlowModFields { command, buffer_id, idle_timeout_s: 1, flags: 1, ..FlowModFields::default() };
        let actions = vec![Action::output(PortNo(2))];
        Body::FlowMod(
            fields.with(Match::any().with(Field::InPort, 1u32), vec![Instruction::ApplyActions(actions)]),
        )
    };
    let request = FlowStatsRequest::default();
    let bodies = vec![
        (true, Body::Hello(Hello::default())),
        (false, Body::Hello(Hello::default())),
        (false, Body::FeaturesRequest),
        (false, Body::SetConfig(SwitchConfig { flags: 0, miss_send_len: 20 })),
        (false, rule(FLOW_ADD, NO_BUFFER)),
        (true, Body::PacketIn(packet_in)),
        (false, rule(FLOW_ADD, 1 << 16)),
        (false, Body::BarrierRequest),
        (false, Body::MultipartRequest(MultipartRequest { flags: 0, body: RequestBody::Flow(request) })),
        (true, Body::MultipartReply(MultipartReply { flags: 0, body: ReplyBody::Flow(Vec::new()) })),
        (true, Body::BarrierReply),
        (false, rule(FLOW_DELETE, NO_BUFFER)),
        (true, Body::EchoRequest(vec![1])),
        (false, Body::EchoReply(vec![1])),
    ];
    let encoded = |(from_switch, body): (bool, Body)| {
        let mut bytes = Vec::new();
        Message { version, xid: 3, body }.encode(&mut bytes).unwrap();
        (from_switch, bytes)
    };
    bodies.into_iter().map(encoded).collect()
}
