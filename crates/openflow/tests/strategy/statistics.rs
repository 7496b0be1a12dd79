//! Any statistics, request and reply.

use openflow::Version;
use openflow::message::*;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

use super::body::{bands, buckets, data, port_description, text};
use super::language::{instructions, matching, port, read_priority};

fn flow_request(version: Version) -> impl Strategy<Value = FlowStatsRequest> {
    (any::<u8>(), port(version), any::<u32>(), any::<[u64; 2]>(), matching(version)).prop_map(
        move |(table_id, out_port, out_group, [cookie, cookie_mask], matching)| {
            let restricted =
                FlowStatsRequest { table_id, out_port, out_group, cookie, cookie_mask, matching };
            if version == Version::V1_3 {
                return restricted;
            }
            FlowStatsRequest { out_group: GROUP_ANY, cookie: 0, cookie_mask: 0, ..restricted }
        },
    )
}

fn experimenter(version: Version) -> impl Strategy<Value = ExperimenterStats> {
    (any::<u32>(), any::<u32>(), data()).prop_map(move |(experimenter, exp_type, data)| ExperimenterStats {
        experimenter,
        exp_type: (version == Version::V1_3).then_some(exp_type),
        data,
    })
}

fn queue_request(version: Version) -> impl Strategy<Value = RequestBody> {
    (port(version), any::<u32>()).prop_map(move |(port, queue_id)| {
        // 1.0's ALL is read as ANY.
        let is_all = version == Version::V1_0 && port == flow::PortNo::ALL;
        RequestBody::Queue { port: if is_all { flow::PortNo::ANY } else { port }, queue_id }
    })
}

pub fn request(version: Version) -> BoxedStrategy<RequestBody> {
    let both = prop_oneof![
        Just(RequestBody::Desc),
        Just(RequestBody::Table),
        flow_request(version).prop_map(RequestBody::Flow),
        flow_request(version).prop_map(RequestBody::Aggregate),
        port(version).prop_map(RequestBody::PortStats),
        queue_request(version),
        experimenter(version).prop_map(RequestBody::Experimenter),
    ];
    if version == Version::V1_0 {
        return both.boxed();
    }
    let more = prop_oneof![
        any::<u32>().prop_map(RequestBody::Group),
        any::<u32>().prop_map(RequestBody::Meter),
        any::<u32>().prop_map(RequestBody::MeterConfig),
        vec(table_features(), 0..3).prop_map(RequestBody::TableFeatures),
        select(vec![
            RequestBody::GroupDesc,
            RequestBody::GroupFeatures,
            RequestBody::MeterFeatures,
            RequestBody::PortDesc,
        ]),
    ];
    prop_oneof![both, more].boxed()
}

pub fn reply(version: Version) -> BoxedStrategy<ReplyBody> {
    let both = prop_oneof![
        description().prop_map(ReplyBody::Desc),
        vec(flow(version), 0..4).prop_map(ReplyBody::Flow),
        (any::<[u64; 2]>(), any::<u32>()).prop_map(|([packet_count, byte_count], flow_count)| {
            ReplyBody::Aggregate(AggregateStats { packet_count, byte_count, flow_count })
        }),
        vec(table(version), 0..4).prop_map(ReplyBody::Table),
        vec(port_counters(version), 0..4).prop_map(ReplyBody::PortStats),
        vec(queue(version), 0..4).prop_map(ReplyBody::Queue),
        experimenter(version).prop_map(ReplyBody::Experimenter),
    ];
    if version == Version::V1_0 {
        return both.boxed();
    }
    let more = prop_oneof![
        vec(group(), 0..3).prop_map(ReplyBody::Group),
        vec(group_desc(), 0..3).prop_map(ReplyBody::GroupDesc),
        (any::<[u32; 2]>(), any::<[u32; 4]>(), any::<[u32; 4]>()).prop_map(
            |([types, capabilities], max_groups, actions)| {
                ReplyBody::GroupFeatures(GroupFeatures { types, capabilities, max_groups, actions })
            }
        ),
        vec(meter(), 0..3).prop_map(ReplyBody::Meter),
        vec(meter_config(), 0..3).prop_map(ReplyBody::MeterConfig),
        (any::<[u32; 3]>(), any::<[u8; 2]>()).prop_map(
            |([max_meter, band_types, capabilities], [max_bands, max_color])| {
                ReplyBody::MeterFeatures(MeterFeatures {
                    max_meter,
                    band_types,
                    capabilities,
                    max_bands,
                    max_color,
                })
            }
        ),
        vec(table_features(), 0..3).prop_map(ReplyBody::TableFeatures),
        vec(port_description(Version::V1_3), 0..3).prop_map(ReplyBody::PortDesc),
    ];
    prop_oneof![both, more].boxed()
}

fn description() -> impl Strategy<Value = SwitchDesc> {
    vec(text(32), 5).prop_map(|mut texts| {
        let mut next = || texts.pop().unwrap_or_default();
        SwitchDesc { mfr_desc: next(), hw_desc: next(), sw_desc: next(), serial_num: next(), dp_desc: next() }
    })
}

fn flow(version: Version) -> impl Strategy<Value = FlowStats> {
    let numbers = (any::<u8>(), any::<[u32; 2]>(), any::<[u16; 4]>(), any::<[u64; 3]>());
    (numbers, matching(version), instructions(version)).prop_map(move |(numbers, matching, instructions)| {
        let (table_id, [duration_s, duration_ns], shorts, [cookie, packet_count, byte_count]) = numbers;
        let [priority, idle_timeout_s, hard_timeout_s, flags] = shorts;
        let priority = read_priority(version, &matching, priority);
        FlowStats {
            table_id,
            duration_s,
            duration_ns,
            priority,
            idle_timeout_s,
            hard_timeout_s,
            flags: if version == Version::V1_0 { 0 } else { flags },
            cookie,
            packet_count,
            byte_count,
            matching,
            instructions,
        }
    })
}

fn table(version: Version) -> impl Strategy<Value = TableStats> {
    (any::<u8>(), text(32), any::<[u32; 3]>(), any::<[u64; 2]>()).prop_map(
        move |(table_id, name, [wildcards, max_entries, active_count], [lookup_count, matched_count])| {
            let table = TableStats {
                table_id,
                name,
                wildcards,
                max_entries,
                active_count,
                lookup_count,
                matched_count,
            };
            if version == Version::V1_0 {
                return table;
            }
            TableStats { name: String::new(), wildcards: 0, max_entries: 0, ..table }
        },
    )
}

fn port_counters(version: Version) -> impl Strategy<Value = PortStats> {
    (port(version), any::<[u64; 12]>(), any::<[u32; 2]>()).prop_map(move |(port_no, counters, durations)| {
        let [a, b, c, d, e, f, g, h, i, j, k, l] = counters;
        let [duration_s, duration_ns] = if version == Version::V1_0 { [0, 0] } else { durations };
        PortStats {
            port_no,
            rx_packets: a,
            tx_packets: b,
            rx_bytes: c,
            tx_bytes: d,
            rx_dropped: e,
            tx_dropped: f,
            rx_errors: g,
            tx_errors: h,
            rx_frame_err: i,
            rx_over_err: j,
            rx_crc_err: k,
            collisions: l,
            duration_s,
            duration_ns,
        }
    })
}

fn queue(version: Version) -> impl Strategy<Value = QueueStats> {
    (port(version), any::<u32>(), any::<[u64; 3]>(), any::<[u32; 2]>()).prop_map(
        move |(port_no, queue_id, [tx_bytes, tx_packets, tx_errors], durations)| {
            let [duration_s, duration_ns] = if version == Version::V1_0 { [0, 0] } else { durations };
            QueueStats { port_no, queue_id, tx_bytes, tx_packets, tx_errors, duration_s, duration_ns }
        },
    )
}

fn group() -> impl Strategy<Value = GroupStats> {
    (any::<[u32; 4]>(), any::<[u64; 2]>(), vec(any::<(u64, u64)>(), 0..4)).prop_map(
        |([group_id, ref_count, duration_s, duration_ns], [packet_count, byte_count], buckets)| GroupStats {
            group_id,
            ref_count,
            packet_count,
            byte_count,
            duration_s,
            duration_ns,
            buckets,
        },
    )
}

fn group_desc() -> impl Strategy<Value = GroupDesc> {
    (any::<u8>(), any::<u32>(), buckets()).prop_map(|(group_type, group_id, buckets)| GroupDesc {
        group_type,
        group_id,
        buckets,
    })
}

fn meter() -> impl Strategy<Value = MeterStats> {
    (any::<[u32; 4]>(), any::<[u64; 2]>(), vec(any::<(u64, u64)>(), 0..4)).prop_map(
        |([meter_id, flow_count, duration_s, duration_ns], [packet_in_count, byte_in_count], bands)| {
            MeterStats {
                meter_id,
                flow_count,
                packet_in_count,
                byte_in_count,
                duration_s,
                duration_ns,
                bands,
            }
        },
    )
}

fn meter_config() -> impl Strategy<Value = MeterConfig> {
    (any::<u16>(), any::<u32>(), bands()).prop_map(|(flags, meter_id, bands)| MeterConfig {
        flags,
        meter_id,
        bands,
    })
}

pub fn table_features() -> impl Strategy<Value = TableFeatures> {
    (any::<u8>(), text(32), any::<[u64; 2]>(), any::<[u32; 2]>(), vec(property(), 0..6)).prop_map(
        |(table_id, name, [metadata_match, metadata_write], [config, max_entries], properties)| {
            TableFeatures { table_id, name, metadata_match, metadata_write, config, max_entries, properties }
        },
    )
}

fn ids() -> impl Strategy<Value = Vec<FeatureId>> {
    let id = (0..30u16, option::of(any::<u32>())).prop_map(|(kind, experimenter)| FeatureId {
        kind: if experimenter.is_some() { 0xffff } else { kind },
        experimenter,
    });
    vec(id, 0..5)
}

fn property() -> impl Strategy<Value = TableProperty> {
    prop_oneof![
        (0..2u16, ids()).prop_map(|(kind, ids)| TableProperty::Instructions { kind, ids }),
        (2..4u16, vec(any::<u8>(), 0..9))
            .prop_map(|(kind, tables)| TableProperty::NextTables { kind, tables }),
        (4..8u16, ids()).prop_map(|(kind, ids)| TableProperty::Actions { kind, ids }),
        (select(vec![8u16, 10, 12, 13, 14, 15]), vec(any::<u32>(), 0..5))
            .prop_map(|(kind, oxm_ids)| TableProperty::Oxm { kind, oxm_ids }),
        (select(vec![0xfffeu16, 0xffff]), any::<[u32; 2]>(), data()).prop_map(
            |(kind, [experimenter, exp_type], data)| TableProperty::Experimenter {
                kind,
                experimenter,
                exp_type,
                data
            }
        ),
        (16..0xfff0u16, data()).prop_map(|(kind, data)| TableProperty::Unknown { kind, data }),
    ]
}
