//! Multipart requests and replies of every type, and variants of those that have much to say.

use super::{bands, buckets, port};
use flow::{Action, Field, Instruction, Match, PortNo};
use openflow::Body;
use openflow::message::*;

pub fn requests() -> Vec<Body> {
    let request = |body| Body::MultipartRequest(MultipartRequest { flags: 0, body });
    let which = FlowStatsRequest::default();
    vec![
        request(RequestBody::Desc),
        request(RequestBody::Flow(which.clone())),
        request(RequestBody::Aggregate(which)),
        request(RequestBody::Table),
        request(RequestBody::PortStats(PortNo::ANY)),
        request(RequestBody::Queue { port: PortNo(1), queue_id: u32::MAX }),
        request(RequestBody::Group(GROUP_ALL)),
        request(RequestBody::GroupDesc),
        request(RequestBody::GroupFeatures),
        request(RequestBody::Meter(METER_ALL)),
        request(RequestBody::MeterConfig(1)),
        request(RequestBody::MeterFeatures),
        request(RequestBody::TableFeatures(vec![])),
        request(RequestBody::PortDesc),
        request(RequestBody::Experimenter(experimenter_stats())),
    ]
}

pub fn replies() -> Vec<Body> {
    let reply = |body| Body::MultipartReply(MultipartReply { flags: MULTIPART_MORE | 4, body });
    vec![
        reply(ReplyBody::Desc(SwitchDesc { mfr_desc: "m \"é\"".into(), ..SwitchDesc::default() })),
        reply(ReplyBody::Flow(vec![FlowStats {
            table_id: 0,
            duration_s: 1,
            duration_ns: 2,
            priority: 3,
            idle_timeout_s: 4,
            hard_timeout_s: 5,
            flags: 0x11,
            cookie: 6,
            packet_count: 7,
            byte_count: 8,
            matching: Match::any().with(Field::EthType, 0x800u16),
            instructions: vec![Instruction::GotoTable(1), Instruction::ClearActions],
        }])),
        reply(ReplyBody::Aggregate(AggregateStats { packet_count: 1, byte_count: 2, flow_count: 3 })),
        reply(ReplyBody::Table(vec![TableStats {
            table_id: 0,
            name: "t".into(),
            wildcards: 1,
            max_entries: 2,
            active_count: 3,
            lookup_count: 4,
            matched_count: 5,
        }])),
        reply(ReplyBody::PortStats(vec![port_stats()])),
        reply(ReplyBody::Queue(vec![QueueStats {
            port_no: PortNo(1),
            queue_id: 2,
            tx_bytes: 3,
            tx_packets: 4,
            tx_errors: 5,
            duration_s: 6,
            duration_ns: 7,
        }])),
    ]
}

pub fn replies_of_groups_and_meters() -> Vec<Body> {
    let reply = |body| Body::MultipartReply(MultipartReply { flags: MULTIPART_MORE | 4, body });
    vec![
        reply(ReplyBody::Group(vec![GroupStats {
            group_id: 1,
            ref_count: 2,
            packet_count: 3,
            byte_count: 4,
            duration_s: 5,
            duration_ns: 6,
            buckets: vec![(7, 8)],
        }])),
        reply(ReplyBody::GroupDesc(vec![GroupDesc {
            group_type: GROUP_TYPE_FAST_FAILOVER,
            group_id: 1,
            buckets: buckets(),
        }])),
        reply(ReplyBody::GroupFeatures(GroupFeatures {
            types: 0x1f,
            capabilities: 3,
            max_groups: [1, 2, 3, 4],
            actions: [1, 0, 0x8000_0000, 3],
        })),
        reply(ReplyBody::Meter(vec![MeterStats {
            meter_id: 1,
            flow_count: 2,
            packet_in_count: 3,
            byte_in_count: 4,
            duration_s: 5,
            duration_ns: 6,
            bands: vec![(7, 8)],
        }])),
        reply(ReplyBody::MeterConfig(vec![MeterConfig { flags: 5, meter_id: 1, bands: bands() }])),
        reply(ReplyBody::MeterFeatures(MeterFeatures {
            max_meter: 1,
            band_types: 6,
            capabilities: 15,
            max_bands: 2,
            max_color: 3,
        })),
        reply(ReplyBody::TableFeatures(tables())),
        reply(ReplyBody::PortDesc(vec![port()])),
        reply(ReplyBody::Experimenter(experimenter_stats())),
    ]
}

fn experimenter_stats() -> ExperimenterStats {
    ExperimenterStats { experimenter: 1, exp_type: Some(2), data: vec![3] }
}

fn tables() -> Vec<TableFeatures> {
    let id = |kind, experimenter| FeatureId { kind, experimenter };
    vec![TableFeatures {
        table_id: 0,
        name: "classifier".into(),
        metadata_match: u64::MAX,
        metadata_write: 0,
        config: 3,
        max_entries: 1_000_000,
        properties: vec![
            TableProperty::Instructions { kind: 0, ids: vec![id(1, None), id(9, None), id(0xffff, Some(1))] },
            TableProperty::NextTables { kind: 3, tables: vec![1, 255] },
            TableProperty::Actions { kind: 6, ids: vec![id(0, None), id(0xffff, Some(0x2320))] },
            TableProperty::Oxm { kind: 8, oxm_ids: vec![0x8000_0004, 0x8000_070c, 0xffff_0104] },
            TableProperty::Experimenter { kind: 0xfffe, experimenter: 1, exp_type: 2, data: vec![3] },
            TableProperty::Unknown { kind: 77, data: vec![4] },
        ],
    }]
}

fn port_stats() -> PortStats {
    PortStats {
        port_no: PortNo::LOCAL,
        rx_packets: 1,
        tx_packets: 2,
        rx_bytes: 3,
        tx_bytes: 4,
        rx_dropped: 5,
        tx_dropped: 6,
        rx_errors: 7,
        tx_errors: 8,
        rx_frame_err: 9,
        rx_over_err: 10,
        rx_crc_err: 11,
        collisions: u64::MAX,
        duration_s: 12,
        duration_ns: 13,
    }
}

/// Variants, in the order in which the fuzz corpus has them.
pub fn variants() -> Vec<Body> {
    let mut all = of_flows();
    all.extend(of_tables());
    all.extend(of_queues_and_groups());
    all
}

fn of_flows() -> Vec<Body> {
    let request = |body| Body::MultipartRequest(MultipartRequest { flags: 0, body });
    let reply = |body| Body::MultipartReply(MultipartReply { flags: 0, body });
    let flow = FlowStats {
        table_id: 2,
        duration_s: 5,
        duration_ns: 250_000_000,
        priority: 0x8000,
        idle_timeout_s: 0,
        hard_timeout_s: 0,
        flags: 0,
        cookie: 0,
        packet_count: u64::MAX,
        byte_count: u64::MAX,
        matching: Match::any(),
        instructions: vec![],
    };
    let arp = Match::any().with(Field::EthType, 0x806u16).with(Field::InPort, PortNo(3));
    vec![
        request(RequestBody::Flow(FlowStatsRequest {
            table_id: 3,
            out_port: PortNo(4),
            out_group: GROUP_ANY,
            cookie: 0,
            cookie_mask: 0,
            matching: arp.clone(),
        })),
        request(RequestBody::Group(5)),
        request(RequestBody::Meter(0xffff_fffe)),
        request(RequestBody::PortStats(PortNo::LOCAL)),
        reply(ReplyBody::Flow(vec![])),
        reply(ReplyBody::Flow(vec![
            flow.clone(),
            FlowStats {
                matching: arp,
                priority: 7,
                duration_ns: 1,
                packet_count: 9,
                byte_count: 8,
                instructions: vec![Instruction::ApplyActions(vec![Action::output(PortNo::FLOOD)])],
                ..flow
            },
        ])),
    ]
}

fn of_tables() -> Vec<Body> {
    let reply = |body| Body::MultipartReply(MultipartReply { flags: 0, body });
    let table = TableStats {
        table_id: 0,
        name: "classifier".into(),
        wildcards: 0x3f_ffff,
        max_entries: 1_000_000,
        active_count: 3,
        lookup_count: 10,
        matched_count: 5,
    };
    let no_name = |table_id| TableStats { table_id, name: String::new(), ..table.clone() };
    let mut tables = vec![table.clone(), no_name(1), no_name(2), no_name(3)];
    tables.push(TableStats { name: "same".into(), ..no_name(4) });
    tables.push(TableStats { active_count: 9, ..no_name(5) });
    tables.push(TableStats { max_entries: 0, ..no_name(6) });
    tables.push(TableStats { wildcards: 0x1234, ..no_name(7) });
    tables.push(TableStats { wildcards: 0, max_entries: 0, ..no_name(8) });
    tables.push(TableStats { wildcards: 0, max_entries: 0, lookup_count: 1, ..no_name(9) });
    vec![
        reply(ReplyBody::Table(tables)),
        reply(ReplyBody::Table(vec![])),
        reply(ReplyBody::PortStats(vec![])),
    ]
}

fn of_queues_and_groups() -> Vec<Body> {
    let reply = |body| Body::MultipartReply(MultipartReply { flags: 0, body });
    let queue = |port: u32, queue_id, duration_s| QueueStats {
        port_no: PortNo(port),
        queue_id,
        tx_bytes: 1,
        tx_packets: u64::MAX,
        tx_errors: 0,
        duration_s,
        duration_ns: 1_000,
    };
    let packet_queue =
        |port: u32, queue_id, properties| PacketQueue { queue_id, port: PortNo(port), properties };
    vec![
        reply(ReplyBody::Queue(vec![queue(1, 2, 3), queue(2, 9, u32::MAX)])),
        reply(ReplyBody::Group(vec![GroupStats {
            group_id: 9,
            ref_count: 0,
            packet_count: u64::MAX,
            byte_count: 0,
            duration_s: u32::MAX,
            duration_ns: 0,
            buckets: vec![(u64::MAX, 1), (2, 3)],
        }])),
        reply(ReplyBody::GroupFeatures(GroupFeatures {
            types: 9,
            actions: [u32::MAX; 4],
            ..GroupFeatures::default()
        })),
        reply(ReplyBody::Meter(vec![])),
        reply(ReplyBody::MeterFeatures(MeterFeatures::default())),
        reply(ReplyBody::MeterFeatures(MeterFeatures {
            band_types: u32::MAX,
            capabilities: 31,
            ..MeterFeatures::default()
        })),
        Body::QueueGetConfigReply(QueueGetConfigReply {
            port: PortNo(3),
            queues: vec![
                packet_queue(3, 9, vec![QueueProperty::MinRate(1001)]),
                packet_queue(3, 2, vec![QueueProperty::MinRate(5), QueueProperty::MaxRate(0xffff)]),
            ],
        }),
        Body::QueueGetConfigReply(QueueGetConfigReply { port: PortNo(3), queues: vec![] }),
        Body::FlowRemoved(FlowRemoved {
            matching: Match::any(),
            cookie: 0,
            priority: 0x8000,
            reason: 0,
            table_id: TABLE_ALL,
            duration_s: 0,
            duration_ns: 120_000_000,
            idle_timeout_s: 0,
            hard_timeout_s: 0,
            packet_count: 0,
            byte_count: 0,
        }),
    ]
}
