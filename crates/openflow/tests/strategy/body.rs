//! Any body of a message.

use flow::{DatapathId, Field, MacAddr, Match};
use openflow::message::*;
use openflow::{Body, Message, Version};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

use super::language::{actions, any_match, instructions, matching, port, read_priority};
use super::statistics::{reply, request};

pub fn data() -> impl Strategy<Value = Vec<u8>> {
    vec(any::<u8>(), 0..40)
}

/// A text that fits a field of `size` bytes.
pub fn text(size: usize) -> impl Strategy<Value = String> {
    vec(select(vec!['a', 'Z', '0', ' ', '-', '?', 'é', '字']), 0..=size / 4).prop_map(String::from_iter)
}

fn mac() -> impl Strategy<Value = MacAddr> {
    any::<[u8; 6]>().prop_map(MacAddr)
}

/// Any body that the version has.
pub fn body(version: Version) -> BoxedStrategy<Body> {
    let connection = prop_oneof![
        hello(version).prop_map(Body::Hello),
        error(version).prop_map(Body::Error),
        data().prop_map(Body::EchoRequest),
        data().prop_map(Body::EchoReply),
        experimenter(version).prop_map(Body::Experimenter),
        features(version).prop_map(Body::FeaturesReply),
        any::<[u16; 2]>().prop_map(|numbers| Body::GetConfigReply(config(numbers))),
        any::<[u16; 2]>().prop_map(|numbers| Body::SetConfig(config(numbers))),
        select(
            vec![Body::FeaturesRequest, Body::GetConfigRequest, Body::BarrierRequest, Body::BarrierReply,]
        ),
    ];
    let packets: BoxedStrategy<Body> = prop_oneof![
        packet_in(version).prop_map(Body::PacketIn),
        packet_out(version).prop_map(Body::PacketOut),
        flow_mod(version).prop_map(Body::FlowMod),
        flow_removed(version).prop_map(Body::FlowRemoved),
        (any::<u8>(), port_description(version))
            .prop_map(|(reason, port)| Body::PortStatus(PortStatus { reason, port })),
        (port(version), mac(), any::<[u32; 3]>()).prop_map(
            |(port_no, hw_addr, [config, mask, advertise])| {
                Body::PortMod(PortMod { port_no, hw_addr, config, mask, advertise })
            }
        ),
        (any::<u16>(), request(version))
            .prop_map(|(flags, body)| Body::MultipartRequest(MultipartRequest { flags, body })),
        (any::<u16>(), reply(version))
            .prop_map(|(flags, body)| Body::MultipartReply(MultipartReply { flags, body })),
        port(version).prop_map(|port| Body::QueueGetConfigRequest(QueueGetConfigRequest { port })),
        queues(version).prop_map(Body::QueueGetConfigReply),
    ]
    .boxed();
    if version == Version::V1_0 {
        return prop_oneof![connection, packets].boxed();
    }
    let newer: BoxedStrategy<Body> = prop_oneof![
        (0..3u16, 0..4u8, any::<u32>(), buckets()).prop_map(|(command, group_type, group_id, buckets)| {
            Body::GroupMod(GroupMod { command, group_type, group_id, buckets })
        }),
        (any::<u8>(), any::<u32>())
            .prop_map(|(table_id, config)| Body::TableMod(TableMod { table_id, config })),
        (0..4u32, any::<u64>())
            .prop_map(|(role, generation_id)| Body::RoleRequest(Role { role, generation_id })),
        any::<(u32, u64)>().prop_map(|(role, generation_id)| Body::RoleReply(Role { role, generation_id })),
        Just(Body::GetAsyncRequest),
        any::<[[u32; 2]; 3]>().prop_map(|masks| Body::GetAsyncReply(async_config(masks))),
        any::<[[u32; 2]; 3]>().prop_map(|masks| Body::SetAsync(async_config(masks))),
        (0..3u16, any::<u16>(), any::<u32>(), bands()).prop_map(|(command, flags, meter_id, bands)| {
            Body::MeterMod(MeterMod { command, flags, meter_id, bands })
        }),
    ]
    .boxed();
    let bundled = prop_oneof![packets.clone(), newer.clone()].boxed();
    prop_oneof![4 => connection, 4 => packets, 4 => newer, 1 => bundles(bundled)].boxed()
}

/// Messages of bundles, with these messages in them.
fn bundles(bundled: BoxedStrategy<Body>) -> impl Strategy<Value = Body> {
    prop_oneof![
        (any::<u32>(), prop_oneof![0..9u16, any::<u16>()], any::<u16>(), bundle_properties()).prop_map(
            |(bundle_id, control, flags, properties)| {
                Body::BundleControl(BundleControl { bundle_id, control, flags, properties })
            }
        ),
        (any::<u32>(), any::<u16>(), bundled, bundle_properties()).prop_map(
            |(bundle_id, flags, body, properties)| {
                let message = Box::new(Message { version: Version::V1_3, xid: 0, body });
                Body::BundleAdd(BundleAdd { bundle_id, flags, message, properties })
            }
        ),
    ]
}

fn bundle_properties() -> impl Strategy<Value = Vec<BundleProperty>> {
    let property = prop_oneof![
        (any::<[u32; 2]>(), data()).prop_map(|([experimenter, exp_type], data)| {
            BundleProperty::Experimenter { experimenter, exp_type, data }
        }),
        (0..0xffffu16, data()).prop_map(|(kind, data)| BundleProperty::Unknown { kind, data }),
    ];
    vec(property, 0..3)
}

fn hello(version: Version) -> BoxedStrategy<Hello> {
    if version == Version::V1_0 {
        return Just(Hello::default()).boxed();
    }
    let element = prop_oneof![
        vec(any::<u32>(), 0..4).prop_map(HelloElement::VersionBitmap),
        (2..=u16::MAX, data()).prop_map(|(kind, body)| HelloElement::Unknown { kind, body }),
    ];
    vec(element, 0..4).prop_map(|elements| Hello { elements }).boxed()
}

fn error(version: Version) -> impl Strategy<Value = ErrorMessage> {
    (0..14u16, any::<u16>(), option::of(any::<u32>()), data()).prop_map(
        move |(kind, code, experimenter, data)| {
            let experimenter = experimenter.filter(|_| version == Version::V1_3);
            ErrorMessage {
                kind: if experimenter.is_some() { 0xffff } else { kind },
                code,
                experimenter,
                data,
            }
        },
    )
}

fn experimenter(version: Version) -> impl Strategy<Value = Experimenter> {
    (any::<u32>(), any::<u32>(), data()).prop_map(move |(experimenter, exp_type, data)| Experimenter {
        experimenter,
        exp_type: (version == Version::V1_3).then_some(exp_type),
        data,
    })
}

fn features(version: Version) -> impl Strategy<Value = FeaturesReply> {
    let ports = vec(port_description(version), 0..4);
    (any::<u64>(), any::<[u32; 3]>(), any::<[u8; 2]>(), ports).prop_map(
        move |(id, [n_buffers, capabilities, actions], [n_tables, auxiliary_id], ports)| {
            let is_v10 = version == Version::V1_0;
            FeaturesReply {
                datapath_id: DatapathId(id),
                n_buffers,
                n_tables,
                auxiliary_id: if is_v10 { 0 } else { auxiliary_id },
                capabilities,
                actions,
                ports: if is_v10 { ports } else { Vec::new() },
            }
        },
    )
}

fn config([flags, miss_send_len]: [u16; 2]) -> SwitchConfig {
    SwitchConfig { flags, miss_send_len }
}

fn async_config([packet_in_mask, port_status_mask, flow_removed_mask]: [[u32; 2]; 3]) -> AsyncConfig {
    AsyncConfig { packet_in_mask, port_status_mask, flow_removed_mask }
}

pub fn port_description(version: Version) -> impl Strategy<Value = Port> {
    (port(version), mac(), text(16), any::<[u32; 8]>()).prop_map(move |(port_no, hw_addr, name, numbers)| {
        let [config, state, curr, advertised, supported, peer, curr_speed, max_speed] = numbers;
        let has_speeds = version == Version::V1_3;
        Port {
            port_no,
            hw_addr,
            name,
            config,
            state,
            curr,
            advertised,
            supported,
            peer,
            curr_speed_kbps: if has_speeds { curr_speed } else { 0 },
            max_speed_kbps: if has_speeds { max_speed } else { 0 },
        }
    })
}

fn packet_in(version: Version) -> BoxedStrategy<PacketIn> {
    let in_port = port(version).prop_map(|port| Match::any().with(Field::InPort, port));
    if version == Version::V1_0 {
        return (any::<u32>(), any::<u16>(), any::<u8>(), in_port, data())
            .prop_map(|(buffer_id, total_len, reason, matching, data)| PacketIn {
                buffer_id,
                total_len,
                reason,
                table_id: 0,
                cookie: u64::MAX,
                matching,
                data,
            })
            .boxed();
    }
    let matching = prop_oneof![in_port, any_match()];
    (any::<u32>(), any::<u16>(), any::<[u8; 2]>(), any::<u64>(), matching, data())
        .prop_map(|(buffer_id, total_len, [reason, table_id], cookie, matching, data)| PacketIn {
            buffer_id,
            total_len,
            reason,
            table_id,
            cookie,
            matching,
            data,
        })
        .boxed()
}

fn packet_out(version: Version) -> impl Strategy<Value = PacketOut> {
    (any::<u32>(), port(version), actions(version), data())
        .prop_map(|(buffer_id, in_port, actions, data)| PacketOut { buffer_id, in_port, actions, data })
}

pub fn flow_mod(version: Version) -> impl Strategy<Value = FlowMod> {
    let numbers = (any::<[u64; 2]>(), any::<u8>(), 0..5u8, any::<[u16; 3]>(), any::<[u32; 2]>(), 0..0x20u16);
    (numbers, port(version), matching(version), instructions(version)).prop_map(
        move |(numbers, out_port, matching, instructions)| {
            let ([cookie, cookie_mask], table_id, command, shorts, [buffer_id, out_group], flags) = numbers;
            let [idle_timeout_s, hard_timeout_s, priority] = shorts;
            let priority = read_priority(version, &matching, priority);
            let fields = FlowModFields {
                cookie,
                cookie_mask,
                table_id,
                command,
                idle_timeout_s,
                hard_timeout_s,
                priority,
                buffer_id,
                out_port,
                out_group,
                flags,
            };
            if version == Version::V1_3 {
                return fields.with(matching, instructions);
            }
            let table_id = if command >= FLOW_DELETE { TABLE_ALL } else { 0 };
            FlowModFields { cookie_mask: 0, table_id, out_group: GROUP_ANY, flags: flags & 7, ..fields }
                .with(matching, instructions)
        },
    )
}

fn flow_removed(version: Version) -> impl Strategy<Value = FlowRemoved> {
    (any::<[u64; 3]>(), any::<[u32; 2]>(), any::<[u16; 3]>(), any::<[u8; 2]>(), matching(version)).prop_map(
        move |([cookie, packet_count, byte_count], [duration_s, duration_ns], shorts, bytes, matching)| {
            let [priority, idle_timeout_s, hard_timeout_s] = shorts;
            let priority = read_priority(version, &matching, priority);
            let is_v10 = version == Version::V1_0;
            FlowRemoved {
                matching,
                cookie,
                priority,
                reason: bytes[0],
                table_id: if is_v10 { 0 } else { bytes[1] },
                duration_s,
                duration_ns,
                idle_timeout_s,
                hard_timeout_s: if is_v10 { 0 } else { hard_timeout_s },
                packet_count,
                byte_count,
            }
        },
    )
}

pub fn buckets() -> impl Strategy<Value = Vec<Bucket>> {
    let bucket = (any::<u16>(), port(Version::V1_3), any::<u32>(), actions(Version::V1_3)).prop_map(
        |(weight, watch_port, watch_group, actions)| Bucket { weight, watch_port, watch_group, actions },
    );
    vec(bucket, 0..4)
}

pub fn bands() -> impl Strategy<Value = Vec<MeterBand>> {
    let kind = prop_oneof![
        Just(MeterBandKind::Drop),
        any::<u8>().prop_map(MeterBandKind::DscpRemark),
        (any::<u32>(), data())
            .prop_map(|(experimenter, data)| MeterBandKind::Experimenter { experimenter, data }),
    ];
    let band =
        (any::<[u32; 2]>(), kind).prop_map(|([rate, burst_size], kind)| MeterBand { rate, burst_size, kind });
    vec(band, 0..4)
}

fn queues(version: Version) -> impl Strategy<Value = QueueGetConfigReply> {
    let property = prop_oneof![
        any::<u16>().prop_map(QueueProperty::MinRate),
        any::<u16>().prop_map(QueueProperty::MaxRate),
        (any::<u32>(), data())
            .prop_map(|(experimenter, data)| QueueProperty::Experimenter { experimenter, data }),
        (3..0xffffu16, data()).prop_map(|(kind, data)| QueueProperty::Unknown { kind, data }),
    ];
    let property = property.prop_filter("a property that the version has", move |property| {
        version == Version::V1_3
            || matches!(property, QueueProperty::MinRate(_) | QueueProperty::Unknown { .. })
    });
    let queue = (any::<u32>(), port(version), vec(property, 0..4));
    (port(version), vec(queue, 0..4)).prop_map(move |(port, queues)| QueueGetConfigReply {
        port,
        queues: queues
            .into_iter()
            .map(|(queue_id, own, properties)| PacketQueue {
                queue_id,
                port: if version == Version::V1_0 { port } else { own },
                properties,
            })
            .collect(),
    })
}
