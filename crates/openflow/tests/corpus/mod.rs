//! Messages of every type, for the tests to translate. Whether a version can say one is for its codec to tell.

#![allow(dead_code, reason = "each test takes what it needs")]

mod statistics;

use flow::{Action, DatapathId, ErrorCode, Field, Instruction, MacAddr, Match, PortNo};
use openflow::message::*;
use openflow::{Body, Message, Version};
use statistics::{replies, replies_of_groups_and_meters, requests};

pub fn flow_mod() -> FlowMod {
    FlowModFields {
        cookie: u64::MAX,
        idle_timeout_s: 10,
        priority: 100,
        flags: FLOW_MOD_SEND_FLOW_REMOVED,
        ..FlowModFields::default()
    }
    .with(
        Match::any().with(Field::InPort, PortNo(1)),
        vec![Instruction::ApplyActions(vec![Action::output(PortNo(2))])],
    )
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

/// At least one of each type.
pub fn bodies() -> Vec<Body> {
    let mut all = of_sessions();
    all.extend(of_rules());
    all.extend(requests());
    all.extend(replies());
    all.extend(replies_of_groups_and_meters());
    all.extend(of_queues_and_roles());
    all.extend(of_bundles());
    all
}

/// A message that adds another to a bundle. Both have the transaction id 7, as the tests' messages.
pub fn bundled(body: Body, properties: Vec<BundleProperty>) -> Body {
    let message = Box::new(Message { version: Version::V1_3, xid: 7, body });
    Body::BundleAdd(BundleAdd { bundle_id: 1, flags: BUNDLE_ATOMIC, message, properties })
}

fn of_bundles() -> Vec<Body> {
    let properties = vec![
        BundleProperty::Experimenter { experimenter: 0x2320, exp_type: 1, data: vec![1, 2, 3] },
        BundleProperty::Unknown { kind: 1, data: vec![] },
    ];
    let control = |control, flags, properties| {
        Body::BundleControl(BundleControl { bundle_id: 0xabcd, control, flags, properties })
    };
    let bundle_failed = |code, data| {
        let ErrorCode { kind, code } = openflow::error::bundle_failed(code);
        Body::Error(ErrorMessage { kind, code, experimenter: Some(ONF_EXPERIMENTER), data })
    };
    vec![
        control(BUNDLE_OPEN_REQUEST, BUNDLE_ATOMIC | BUNDLE_ORDERED, vec![]),
        control(BUNDLE_COMMIT_REPLY, 0, properties.clone()),
        control(99, 0x8001, vec![]),
        bundled(Body::FlowMod(flow_mod()), vec![]),
        bundled(Body::FlowMod(flow_mod()), properties),
        bundle_failed(2, vec![]),
        bundle_failed(16, vec![4]),
    ]
}

fn of_sessions() -> Vec<Body> {
    let config = SwitchConfig { flags: 1, miss_send_len: 128 };
    let experimenter = |exp_type| Experimenter { experimenter: 0x2320, exp_type, data: vec![1, 2] };
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
    ]
}

fn of_rules() -> Vec<Body> {
    vec![
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
        Body::GroupMod(GroupMod { command: 0, group_type: 9, group_id: GROUP_ALL, buckets: buckets() }),
        Body::PortMod(PortMod {
            port_no: PortNo(1),
            hw_addr: MacAddr::BROADCAST,
            config: 1,
            mask: 0x41,
            advertise: 0,
        }),
        Body::TableMod(TableMod { table_id: TABLE_ALL, config: 3 }),
    ]
}

fn of_queues_and_roles() -> Vec<Body> {
    let role = Role { role: ROLE_MASTER, generation_id: u64::MAX };
    let reasons =
        AsyncConfig { packet_in_mask: [3, 0], port_status_mask: [7, 0x80], flow_removed_mask: [15, 0] };
    vec![
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
        Body::MeterMod(MeterMod { command: 1, flags: 1, meter_id: 1, bands: bands() }),
    ]
}

fn buckets() -> Vec<Bucket> {
    vec![Bucket {
        weight: 1,
        watch_port: PortNo(3),
        watch_group: GROUP_ANY,
        actions: vec![Action::to_controller()],
    }]
}

fn bands() -> Vec<MeterBand> {
    vec![
        MeterBand { rate: 1, burst_size: 2, kind: MeterBandKind::Drop },
        MeterBand { rate: 1, burst_size: 2, kind: MeterBandKind::DscpRemark(1) },
        MeterBand {
            rate: 1,
            burst_size: 2,
            kind: MeterBandKind::Experimenter { experimenter: 1, data: vec![9] },
        },
    ]
}

/// More of the types that have much to say.
pub fn variants() -> Vec<Body> {
    let mut all = vec![
        Body::Hello(Hello::default()),
        Body::Hello(Hello { elements: vec![HelloElement::VersionBitmap(vec![0x10])] }),
        Body::EchoRequest((0..40).collect()),
        Body::SetConfig(SwitchConfig { flags: 2, miss_send_len: 0xffff }),
        Body::RoleRequest(Role { role: ROLE_NOCHANGE, generation_id: 5 }),
        Body::RoleReply(Role { role: ROLE_SLAVE, generation_id: 5 }),
        Body::RoleReply(Role { role: ROLE_EQUAL, generation_id: u64::MAX }),
        Body::TableMod(TableMod { table_id: 3, config: 0 }),
        Body::QueueGetConfigRequest(QueueGetConfigRequest { port: PortNo(3) }),
        Body::MultipartReply(MultipartReply { flags: 0, body: ReplyBody::TableFeatures(vec![]) }),
    ];
    all.extend(flow_mods().into_iter().map(Body::FlowMod));
    all.extend(groups());
    all.extend(packets());
    all.extend(errors());
    all.extend(statistics::variants());
    all.extend(ports());
    let in_bundles: Vec<Body> = flow_mods().into_iter().map(Body::FlowMod).chain(groups()).collect();
    all.extend(in_bundles.into_iter().map(|body| bundled(body, vec![])));
    all.extend((0..8).map(|control| {
        let (bundle_id, flags, properties) = (control.into(), BUNDLE_ORDERED, vec![]);
        Body::BundleControl(BundleControl { bundle_id, control, flags, properties })
    }));
    all
}

fn flow_mods() -> Vec<FlowMod> {
    let tcp = Match::any()
        .with(Field::EthType, 0x800u16)
        .with(Field::IpProto, 6u8)
        .with_masked(Field::Ipv4Src, 0x0a00_0000u32, 0xff00_0000u32)
        .with(Field::TcpDst, 80u16);
    let delete = FlowMod { command: FLOW_DELETE, table_id: TABLE_ALL, instructions: vec![], ..flow_mod() };
    vec![
        FlowMod { cookie: 0x1234, priority: 0x8000, matching: tcp.clone(), ..flow_mod() },
        FlowMod { matching: Match::any(), priority: 0, instructions: vec![], cookie: 0, ..flow_mod() },
        FlowMod {
            matching: Match::any(),
            priority: 0x8000,
            flags: 0,
            cookie: 0,
            idle_timeout_s: 0,
            ..flow_mod()
        },
        FlowMod { table_id: 5, hard_timeout_s: 20, buffer_id: 0x105, flags: 0x1b, ..flow_mod() },
        FlowMod { command: FLOW_MODIFY, cookie: 3, cookie_mask: 0xff, ..flow_mod() },
        FlowMod { command: FLOW_MODIFY_STRICT, flags: FLOW_MOD_RESET_COUNTS, cookie: 0, ..flow_mod() },
        FlowMod { out_port: PortNo(5), cookie: 1, cookie_mask: u64::MAX, ..delete.clone() },
        FlowMod {
            command: FLOW_DELETE_STRICT,
            out_port: PortNo::CONTROLLER,
            cookie: 0,
            table_id: 0,
            ..delete
        },
        FlowMod {
            matching: tcp,
            instructions: vec![
                Instruction::Meter(3),
                Instruction::ApplyActions(vec![Action::to_controller(), Action::DecNwTtl]),
                Instruction::WriteActions(vec![Action::Group(7)]),
                Instruction::WriteMetadata { metadata: 1, mask: 0xff },
                Instruction::GotoTable(9),
            ],
            ..flow_mod()
        },
    ]
}

fn groups() -> Vec<Body> {
    let bucket = |weight, watch_port, watch_group| Bucket {
        weight,
        watch_port,
        watch_group,
        actions: vec![Action::output(PortNo(1))],
    };
    let empty = Bucket { weight: 0, watch_port: PortNo::ANY, watch_group: GROUP_ANY, actions: vec![] };
    let with = |command, group_type, group_id, buckets| {
        Body::GroupMod(GroupMod { command, group_type, group_id, buckets })
    };
    vec![
        with(0, GROUP_TYPE_ALL, 1, vec![]),
        with(0, GROUP_TYPE_INDIRECT, 1, vec![empty]),
        with(
            1,
            GROUP_TYPE_SELECT,
            2,
            vec![bucket(1, PortNo::ANY, GROUP_ANY), bucket(5, PortNo::ANY, GROUP_ANY)],
        ),
        with(
            0,
            GROUP_TYPE_FAST_FAILOVER,
            3,
            vec![bucket(0, PortNo(2), GROUP_ANY), bucket(0, PortNo::ANY, 9)],
        ),
        with(2, GROUP_TYPE_ALL, GROUP_ALL, vec![]),
        Body::MeterMod(MeterMod { command: 2, flags: 0, meter_id: METER_ALL, bands: vec![] }),
        Body::MeterMod(MeterMod {
            command: 0,
            flags: 13,
            meter_id: 5,
            bands: vec![
                MeterBand { rate: 1000, burst_size: 100, kind: MeterBandKind::Drop },
                MeterBand { rate: 500, burst_size: 50, kind: MeterBandKind::DscpRemark(1) },
            ],
        }),
    ]
}

/// An ARP request, a broadcast.
pub fn arp_request() -> Vec<u8> {
    let mut frame = vec![0xff; 6];
    frame.extend([2, 0, 0, 0, 0, 1, 8, 6, 0, 1, 8, 0, 6, 4, 0, 1, 2, 0, 0, 0, 0, 1, 10, 0, 0, 1]);
    frame.extend([0, 0, 0, 0, 0, 0, 10, 0, 0, 2]);
    frame
}

fn packets() -> Vec<Body> {
    let data = arp_request();
    let whole = PacketIn {
        buffer_id: NO_BUFFER,
        total_len: 42,
        reason: 0,
        table_id: 0,
        cookie: 0,
        matching: Match::any().with(Field::InPort, PortNo(1)),
        data: data.clone(),
    };
    let rich = whole.matching.clone().with(Field::Metadata, 0x1234u64).with(Field::TunnelId, 5u64);
    vec![
        Body::PacketIn(PacketIn { table_id: 3, cookie: 0xabc, reason: 1, matching: rich, ..whole.clone() }),
        Body::PacketIn(PacketIn { buffer_id: 0x100, total_len: 1500, reason: 2, ..whole.clone() }),
        Body::PacketIn(PacketIn { buffer_id: 0x100, total_len: 10, cookie: u64::MAX, ..whole.clone() }),
        Body::PacketIn(PacketIn { total_len: 43, ..whole.clone() }),
        Body::PacketIn(whole),
        Body::PacketOut(PacketOut {
            buffer_id: NO_BUFFER,
            in_port: PortNo(3),
            actions: vec![Action::output(PortNo::ALL)],
            data,
        }),
        Body::PacketOut(PacketOut { buffer_id: 0x105, in_port: PortNo::ANY, actions: vec![], data: vec![] }),
        Body::PacketOut(PacketOut {
            buffer_id: NO_BUFFER,
            in_port: PortNo::LOCAL,
            actions: vec![],
            data: vec![],
        }),
    ]
}

fn errors() -> Vec<Body> {
    let error = |kind, code, data: &[u8]| {
        Body::Error(ErrorMessage { kind, code, experimenter: None, data: data.to_vec() })
    };
    let echo = [4, 2, 0, 12, 0, 0, 0, 9, 1, 2, 3, 4];
    vec![
        error(0, 0, b"Version \"2\" \\ \xff\n"),
        error(0, 1, &[]),
        error(1, 6, &echo),
        error(1, 6, &echo[..11]),
        error(1, 6, &echo[..7]),
        error(1, 6, &[4, 2, 0, 10, 0, 0, 0, 9, 1, 2, 3, 4]),
        error(1, 1, &[4, 99, 0, 8, 0, 0, 0, 9]),
        error(1, 6, &[4, 20, 0, 8, 0, 0, 0, 9]),
    ]
}

fn ports() -> Vec<Body> {
    let local = Port { port_no: PortNo::LOCAL, name: "br\u{7}0".into(), config: 0x7f, state: 0, ..port() };
    let spanning =
        |state| Body::PortStatus(PortStatus { reason: PORT_ADDED, port: Port { state, ..port() } });
    let many =
        vec![local.clone(), Port { port_no: PortNo(2), curr: 0xfff, supported: 0x3f, ..port() }, port()];
    vec![
        spanning(0),
        spanning(0x100),
        spanning(0x201),
        spanning(0x300),
        Body::PortStatus(PortStatus { reason: PORT_DELETED, port: local.clone() }),
        Body::PortStatus(PortStatus { reason: PORT_MODIFIED, port: Port { config: 0, state: 4, ..local } }),
        Body::PortMod(PortMod {
            port_no: PortNo(7),
            hw_addr: MacAddr::BROADCAST,
            config: 0,
            mask: 0,
            advertise: 0x2f,
        }),
        Body::MultipartReply(MultipartReply { flags: 0, body: ReplyBody::PortDesc(many.clone()) }),
        Body::FeaturesReply(FeaturesReply {
            datapath_id: DatapathId(0xabcd),
            n_buffers: 256,
            n_tables: 1,
            auxiliary_id: 0,
            capabilities: 0,
            actions: 0xfff,
            ports: many,
        }),
    ]
}
