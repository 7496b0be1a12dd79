//! Messages as JSON and back: damaged objects first, then every type of message.

use flow::{Action, DatapathId, Field, Instruction, MacAddr, Match, PortNo};
use openflow::json::{bytes_of, describe, from_json, hex, to_json};
use openflow::message::*;
use openflow::{Body, Message, Version};
use serde_json::{Value, json};

fn of_1_3(body: Body) -> Message {
    Message { version: Version::V1_3, xid: 7, body }
}

fn flow_mod() -> FlowMod {
    FlowMod {
        cookie: u64::MAX,
        cookie_mask: 0,
        table_id: 0,
        command: FLOW_ADD,
        idle_timeout_s: 10,
        hard_timeout_s: 0,
        priority: 100,
        buffer_id: NO_BUFFER,
        out_port: PortNo::ANY,
        out_group: GROUP_ANY,
        flags: FLOW_MOD_SEND_FLOW_REMOVED,
        matching: Match::any().with(Field::InPort, PortNo(1)),
        instructions: vec![Instruction::ApplyActions(vec![Action::output(PortNo(2))])],
    }
}

fn flow_mod_object() -> Value {
    to_json(&of_1_3(Body::FlowMod(flow_mod())))
}

fn port() -> Port {
    Port {
        port_no: PortNo(1),
        hw_addr: MacAddr([2, 0, 0, 0, 0, 1]),
        name: "eth1".into(),
        config: PORT_CONFIG_DOWN,
        state: 5,
        curr: 0x2820,
        advertised: 0,
        supported: 0x8000_0000,
        peer: 0,
        curr_speed_kbps: 1_000_000,
        max_speed_kbps: 1_000_000,
    }
}

/// `change` breaks a flow mod that was good; the error names `key`.
fn refused(change: impl FnOnce(&mut Value), key: &str) {
    let mut object = flow_mod_object();
    change(&mut object);
    let bad = from_json(&object).expect_err("this is no flow mod any more");
    let named = format!("{bad}");
    assert!(named.contains(key), "'{named}' does not name '{key}'");
}

#[test]
fn a_missing_key_is_named() {
    for key in ["version", "type", "xid", "command", "match", "instructions", "priority"] {
        refused(|object| drop(object.as_object_mut().unwrap().remove(key)), key);
    }
}

#[test]
fn an_unknown_key_is_named() {
    refused(|object| object["priorty"] = 1.into(), "priorty");
    refused(|object| object["match"]["in_prot"] = 1.into(), "in_prot");
    let barrier = json!({"version": "1.3", "type": "barrier_request", "xid": 1, "data": ""});
    assert_eq!(from_json(&barrier).unwrap_err().key, "data");
}

#[test]
fn a_value_that_does_not_fit_is_named() {
    refused(|object| object["priority"] = 65536.into(), "priority");
    refused(|object| object["command"] = "ad".into(), "command");
    refused(|object| object["flags"] = json!(["send_flow_removed"]), "flags[0]");
    refused(|object| object["version"] = "1.9".into(), "version");
    refused(|object| object["type"] = "flowmod".into(), "flowmod");
    refused(
        |object| object["instructions"] = json!([{"type": "apply_actions", "actions": 3}]),
        "instructions",
    );
    let group = to_json(&of_1_3(Body::GroupMod(GroupMod {
        command: 0,
        group_type: GROUP_TYPE_SELECT,
        group_id: 1,
        buckets: vec![Bucket { weight: 1, watch_port: PortNo::ANY, watch_group: GROUP_ANY, actions: vec![] }],
    })));
    let mut broken = group;
    broken["buckets"][0]["weight"] = "heavy".into();
    assert_eq!(from_json(&broken).unwrap_err().key, "buckets[0].weight");
}

#[test]
fn what_is_no_object_is_no_message() {
    for value in [json!(null), json!([]), json!("hello"), json!(1), json!({})] {
        assert!(from_json(&value).is_err(), "{value}");
    }
}

#[test]
fn an_errors_code_must_be_its_types() {
    let error = json!({"version": "1.3", "type": "error", "xid": 1, "error_type": "OFPET_BAD_ACTION", "error_code": "OFPBRC_BAD_LEN", "data": ""});
    assert_eq!(from_json(&error).unwrap_err().key, "error_code");
}

#[test]
fn bytes_that_are_no_message_become_an_error_with_the_words_of_the_protocol() {
    let expected = json!({"error": {
        "type": "OFPET_BAD_REQUEST", "type_number": 1, "code": "OFPBRC_BAD_TYPE", "code_number": 1,
        "offset": 1, "field": "type",
    }});
    let mut described = describe(&[4, 99, 0, 8, 0, 0, 0, 0]);
    let message = described["error"].as_object_mut().and_then(|error| error.remove("message"));
    assert_eq!(described, expected);
    assert!(message.is_some_and(|message| message.is_string()));
}

#[test]
fn wire_must_say_what_the_other_keys_say() {
    let mut object = to_json(&of_1_3(Body::BarrierRequest));
    object["wire"] = "0414000800000008".into();
    assert_eq!(bytes_of(&object).expect_err("another xid").key, "wire");
    object["wire"] = "04140008000000".into();
    assert_eq!(bytes_of(&object).expect_err("a byte is missing").key, "wire");
    object["wire"] = "zz".into();
    assert_eq!(bytes_of(&object).expect_err("no digits").key, "wire");
    object["wire"] = 4.into();
    assert_eq!(bytes_of(&object).expect_err("no text").key, "wire");
}

#[test]
fn bytes_that_we_would_write_otherwise_come_back_exactly() {
    // A role request whose padding is not zero.
    let odd = hex::from_text("0418001800000007000000020badf00d0000000000000001").unwrap();
    let object = describe(&odd);
    assert_eq!(object["role"], "master");
    assert_eq!(object["wire"], hex::to_text(&odd));
    assert_eq!(bytes_of(&object), Ok(odd));
    let even = hex::from_text("041800180000000700000002000000000000000000000001").unwrap();
    let object = describe(&even);
    assert_eq!(object.get("wire"), None);
    assert_eq!(bytes_of(&object), Ok(even));
}

#[test]
fn numbers_are_read_in_place_of_names() {
    let mut object = flow_mod_object();
    object["command"] = 0.into();
    object["flags"] = 1.into();
    object["buffer_id"] = u32::MAX.into();
    object["out_port"] = u32::MAX.into();
    assert_eq!(from_json(&object).unwrap(), of_1_3(Body::FlowMod(flow_mod())));
}

#[test]
fn a_flow_mod_reads_as_the_specification_names_it() {
    let expected = json!({
        "version": "1.3", "type": "flow_mod", "xid": 7,
        "cookie": u64::MAX, "cookie_mask": 0, "table_id": 0, "command": "add",
        "idle_timeout": 10, "hard_timeout": 0, "priority": 100, "buffer_id": "no_buffer",
        "out_port": "ANY", "out_group": "any", "flags": ["send_flow_rem"],
        "match": {"in_port": 1},
        "instructions": [{"type": "apply_actions", "actions": [{"type": "output", "port": 2, "max_len": 0}]}],
    });
    assert_eq!(flow_mod_object(), expected);
}

#[test]
fn the_same_bits_have_other_names_in_1_0() {
    let mut message = of_1_3(Body::FlowMod(FlowMod { flags: FLOW_MOD_RESET_COUNTS, ..flow_mod() }));
    assert_eq!(to_json(&message)["flags"], json!(["reset_counts"]));
    message.version = Version::V1_0;
    assert_eq!(to_json(&message)["flags"], json!(["emerg"]));
}

fn bodies() -> Vec<Body> {
    let config = SwitchConfig { flags: 1, miss_send_len: 128 };
    let role = Role { role: ROLE_MASTER, generation_id: u64::MAX };
    let reasons =
        AsyncConfig { packet_in_mask: [3, 0], port_status_mask: [7, 0x80], flow_removed_mask: [15, 0] };
    let experimenter = |exp_type| Experimenter { experimenter: 0x2320, exp_type, data: vec![1, 2] };
    let request = |body| Body::MultipartRequest(MultipartRequest { flags: 0, body });
    let reply = |body| Body::MultipartReply(MultipartReply { flags: MULTIPART_MORE | 4, body });
    let which = FlowStatsRequest {
        table_id: TABLE_ALL,
        out_port: PortNo::ANY,
        out_group: GROUP_ANY,
        cookie: 0,
        cookie_mask: 0,
        matching: Match::any(),
    };
    let experimenter_stats = ExperimenterStats { experimenter: 1, exp_type: Some(2), data: vec![3] };
    let buckets = vec![Bucket {
        weight: 1,
        watch_port: PortNo(3),
        watch_group: GROUP_ANY,
        actions: vec![Action::to_controller()],
    }];
    let bands = vec![
        MeterBand { rate: 1, burst_size: 2, kind: MeterBandKind::Drop },
        MeterBand { rate: 1, burst_size: 2, kind: MeterBandKind::DscpRemark(1) },
        MeterBand {
            rate: 1,
            burst_size: 2,
            kind: MeterBandKind::Experimenter { experimenter: 1, data: vec![9] },
        },
    ];
    let id = |kind, experimenter| FeatureId { kind, experimenter };
    let tables = vec![TableFeatures {
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
    }];
    let port_stats = PortStats {
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
    };
    vec![
        Body::Hello(Hello {
            elements: vec![
                HelloElement::VersionBitmap(vec![0x12, 0]),
                HelloElement::Unknown { kind: 9, body: vec![1] },
            ],
        }),
        Body::Error(ErrorMessage { kind: 1, code: 6, experimenter: None, data: vec![4, 0] }),
        Body::Error(ErrorMessage { kind: 77, code: 6, experimenter: None, data: vec![] }),
        Body::Error(ErrorMessage { kind: 1, code: 77, experimenter: None, data: vec![] }),
        Body::Error(ErrorMessage { kind: 0xffff, code: 6, experimenter: Some(9), data: vec![] }),
        Body::EchoRequest(vec![0xff]),
        Body::EchoReply(vec![]),
        Body::Experimenter(experimenter(Some(4))),
        Body::Experimenter(experimenter(None)),
        Body::FeaturesRequest,
        Body::FeaturesReply(FeaturesReply {
            datapath_id: DatapathId(1),
            n_buffers: 0,
            n_tables: 254,
            auxiliary_id: 0,
            capabilities: 0x8000_004f,
            actions: 0,
            ports: vec![port()],
        }),
        Body::GetConfigRequest,
        Body::GetConfigReply(config),
        Body::SetConfig(SwitchConfig { flags: 7, ..config }),
        Body::PacketIn(PacketIn {
            buffer_id: 1,
            total_len: 3,
            reason: 0,
            table_id: 0,
            cookie: 0,
            matching: Match::any().with(Field::InPort, PortNo(1)),
            data: vec![1, 2, 3],
        }),
        Body::FlowRemoved(FlowRemoved {
            matching: Match::any(),
            cookie: 1,
            priority: 2,
            reason: 9,
            table_id: 3,
            duration_s: 4,
            duration_ns: 5,
            idle_timeout_s: 6,
            hard_timeout_s: 7,
            packet_count: 8,
            byte_count: 9,
        }),
        Body::PortStatus(PortStatus { reason: PORT_MODIFIED, port: port() }),
        Body::PacketOut(PacketOut {
            buffer_id: NO_BUFFER,
            in_port: PortNo::CONTROLLER,
            actions: vec![Action::output(PortNo::FLOOD), Action::StripVlan],
            data: vec![1],
        }),
        Body::FlowMod(flow_mod()),
        Body::GroupMod(GroupMod { command: 0, group_type: 9, group_id: GROUP_ALL, buckets: buckets.clone() }),
        Body::PortMod(PortMod {
            port_no: PortNo(1),
            hw_addr: MacAddr::BROADCAST,
            config: 1,
            mask: 0x41,
            advertise: 0,
        }),
        Body::TableMod(TableMod { table_id: TABLE_ALL, config: 3 }),
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
        request(RequestBody::Experimenter(experimenter_stats.clone())),
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
        reply(ReplyBody::PortStats(vec![port_stats])),
        reply(ReplyBody::Queue(vec![QueueStats {
            port_no: PortNo(1),
            queue_id: 2,
            tx_bytes: 3,
            tx_packets: 4,
            tx_errors: 5,
            duration_s: 6,
            duration_ns: 7,
        }])),
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
            buckets,
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
        reply(ReplyBody::MeterConfig(vec![MeterConfig { flags: 5, meter_id: 1, bands: bands.clone() }])),
        reply(ReplyBody::MeterFeatures(MeterFeatures {
            max_meter: 1,
            band_types: 6,
            capabilities: 15,
            max_bands: 2,
            max_color: 3,
        })),
        reply(ReplyBody::TableFeatures(tables)),
        reply(ReplyBody::PortDesc(vec![port()])),
        reply(ReplyBody::Experimenter(experimenter_stats)),
        Body::BarrierRequest,
        Body::BarrierReply,
        Body::QueueGetConfigRequest(QueueGetConfigRequest { port: PortNo::ANY }),
        Body::QueueGetConfigReply(QueueGetConfigReply {
            port: PortNo(1),
            queues: vec![PacketQueue {
                queue_id: 1,
                port: PortNo(1),
                properties: vec![
                    QueueProperty::MinRate(10),
                    QueueProperty::MaxRate(1000),
                    QueueProperty::Experimenter { experimenter: 1, data: vec![] },
                    QueueProperty::Unknown { kind: 1, data: vec![2] },
                ],
            }],
        }),
        Body::RoleRequest(role),
        Body::RoleReply(Role { role: 9, ..role }),
        Body::GetAsyncRequest,
        Body::GetAsyncReply(reasons),
        Body::SetAsync(reasons),
        Body::MeterMod(MeterMod { command: 1, flags: 1, meter_id: 1, bands }),
    ]
}

#[test]
fn every_type_of_message_comes_back_from_its_json() {
    for version in [Version::V1_0, Version::V1_3] {
        for body in bodies() {
            let message = Message { version, xid: u32::MAX, body };
            let line = to_json(&message).to_string();
            assert!(!line.contains("unwritable"), "{line}");
            let again = from_json(&serde_json::from_str(&line).unwrap()).unwrap();
            assert_eq!(again, message, "{line}");
        }
    }
}
