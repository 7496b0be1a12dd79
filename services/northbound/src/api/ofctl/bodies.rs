//! Bodies of statistics replies (OpenFlow 1.3.5, 7.3.5), and of the replies about queues and the role, as Ryu's `ofctl_rest` shows them.
//!
//! In: the parts of a switch's answer. Out: JSON with Ryu's names. It ends at the first damaged entry: the node has refused damaged answers
//! already.

use super::{actions, matches};
use crate::wire::{counted, fixed, text_at, u8_at, u16_at, u32_at, u64_at};
use burnet_sdk::flow::canonical::{buckets_raw, read_actions, read_instructions, read_match};
use burnet_sdk::flow::{MacAddr, PortNo};
use serde_json::{Map, Value, json};

/// The bytes of `ofp_flow_stats` before the match.
const FLOW_HEAD: usize = 48;

/// `OFPMP_FLOW`: flow entries. `priority`: only those.
pub fn flows(body: &[u8], priority: Option<u16>) -> Vec<Value> {
    let entries = counted(body, 0, FLOW_HEAD + 4).filter_map(flow);
    entries.filter(|(of, _)| priority.is_none_or(|wanted| *of == wanted)).map(|(_, value)| value).collect()
}

fn flow(entry: &[u8]) -> Option<(u16, Value)> {
    let match_len = usize::from(u16_at(entry, FLOW_HEAD + 2)?);
    let matching = entry.get(FLOW_HEAD + 4..FLOW_HEAD + match_len)?;
    let instructions = entry.get(FLOW_HEAD + match_len.next_multiple_of(8)..)?;
    let priority = u16_at(entry, 12)?;
    let value = json!({
        "length": u16_at(entry, 0)?,
        "table_id": table(u8_at(entry, 2)?),
        "duration_sec": u32_at(entry, 4)?,
        "duration_nsec": u32_at(entry, 8)?,
        "priority": priority,
        "idle_timeout": u16_at(entry, 14)?,
        "hard_timeout": u16_at(entry, 16)?,
        "flags": u16_at(entry, 18)?,
        "cookie": u64_at(entry, 24)?,
        "packet_count": u64_at(entry, 32)?,
        "byte_count": u64_at(entry, 40)?,
        // What cannot be read is shown as nothing, and the entry with its counters stays.
        "match": read_match(matching).map(|it| matches::shown(&it)).unwrap_or_else(|_| json!({})),
        "actions": read_instructions(instructions).map(|it| actions::shown(&it)).unwrap_or_else(|_| json!([])),
    });
    Some((priority, value))
}

/// The number of a table, or Ryu's word for it.
pub fn table(table_id: u8) -> Value {
    match table_id {
        0xff => "ALL".into(),
        0xfe => "MAX".into(),
        number => number.into(),
    }
}

/// `OFPMP_AGGREGATE`: sums over flow entries.
pub fn aggregate(body: &[u8]) -> Vec<Value> {
    let of = |entry: &[u8]| {
        Some(json!({
            "packet_count": u64_at(entry, 0)?,
            "byte_count": u64_at(entry, 8)?,
            "flow_count": u32_at(entry, 16)?,
        }))
    };
    fixed(body, 24).filter_map(of).collect()
}

/// `OFPMP_TABLE`: counters of tables.
pub fn tables(body: &[u8]) -> Vec<Value> {
    let of = |entry: &[u8]| {
        Some(json!({
            "table_id": table(u8_at(entry, 0)?),
            "active_count": u32_at(entry, 4)?,
            "lookup_count": u64_at(entry, 8)?,
            "matched_count": u64_at(entry, 16)?,
        }))
    };
    fixed(body, 24).filter_map(of).collect()
}

/// The counters of `ofp_port_stats`, in their order behind the port's number and its padding.
const PORT_COUNTERS: [&str; 12] = [
    "rx_packets",
    "tx_packets",
    "rx_bytes",
    "tx_bytes",
    "rx_dropped",
    "tx_dropped",
    "rx_errors",
    "tx_errors",
    "rx_frame_err",
    "rx_over_err",
    "rx_crc_err",
    "collisions",
];

/// `OFPMP_PORT_STATS`: counters of ports.
pub fn ports(body: &[u8]) -> Vec<Value> {
    let of = |entry: &[u8]| {
        let mut members = Map::new();
        members.insert("port_no".to_owned(), port(u32_at(entry, 0)?));
        for (index, name) in PORT_COUNTERS.iter().enumerate() {
            members.insert((*name).to_owned(), u64_at(entry, 8 + 8 * index)?.into());
        }
        members.insert("duration_sec".to_owned(), u32_at(entry, 104)?.into());
        members.insert("duration_nsec".to_owned(), u32_at(entry, 108)?.into());
        Some(Value::Object(members))
    };
    fixed(body, 112).filter_map(of).collect()
}

fn port(number: u32) -> Value {
    matches::port(PortNo(number))
}

/// `OFPMP_PORT_DESC`: descriptions of ports.
pub fn port_descriptions(body: &[u8]) -> Vec<Value> {
    let of = |entry: &[u8]| {
        let mac: [u8; 6] = entry.get(8..14)?.try_into().ok()?;
        Some(json!({
            "port_no": port(u32_at(entry, 0)?),
            "hw_addr": MacAddr(mac).to_string(),
            "name": text_at(entry, 16, 16)?,
            "config": u32_at(entry, 32)?,
            "state": u32_at(entry, 36)?,
            "curr": u32_at(entry, 40)?,
            "advertised": u32_at(entry, 44)?,
            "supported": u32_at(entry, 48)?,
            "peer": u32_at(entry, 52)?,
            "curr_speed": u32_at(entry, 56)?,
            "max_speed": u32_at(entry, 60)?,
        }))
    };
    fixed(body, 64).filter_map(of).collect()
}

/// `OFPMP_QUEUE`: counters of queues.
pub fn queues(body: &[u8]) -> Vec<Value> {
    let of = |entry: &[u8]| {
        Some(json!({
            // Ryu shows the plain number here.
            "port_no": u32_at(entry, 0)?,
            "queue_id": u32_at(entry, 4)?,
            "tx_bytes": u64_at(entry, 8)?,
            "tx_packets": u64_at(entry, 16)?,
            "tx_errors": u64_at(entry, 24)?,
            "duration_sec": u32_at(entry, 32)?,
            "duration_nsec": u32_at(entry, 36)?,
        }))
    };
    fixed(body, 40).filter_map(of).collect()
}

/// `OFPT_QUEUE_GET_CONFIG_REPLY` (7.3.6): the queues of a port, or of all ports.
pub fn queue_configurations(body: &[u8]) -> Vec<Value> {
    let queue = |entry: &[u8]| {
        Some(json!({
            "queue_id": queue(u32_at(entry, 0)?),
            "port": port(u32_at(entry, 4)?),
            "properties": counted(entry.get(16..)?, 2, 8).filter_map(queue_property).collect::<Vec<_>>(),
        }))
    };
    let of = |body: &[u8]| {
        let queues: Vec<Value> = counted(body.get(8..)?, 8, 16).filter_map(queue).collect();
        Some(json!({ "port": port(u32_at(body, 0)?), "queues": queues }))
    };
    of(body).into_iter().collect()
}

fn queue(queue_id: u32) -> Value {
    if queue_id == u32::MAX { "ALL".into() } else { queue_id.into() }
}

fn queue_property(property: &[u8]) -> Option<Value> {
    Some(match u16_at(property, 0)? {
        1 => json!({ "property": "MIN_RATE", "rate": u16_at(property, 8)? }),
        2 => json!({ "property": "MAX_RATE", "rate": u16_at(property, 8)? }),
        0xffff => {
            json!({ "property": "EXPERIMENTER", "experimenter": u32_at(property, 8)?, "data": property.get(16..)? })
        }
        _ => json!({ "property": "UNKNOWN" }),
    })
}

/// `OFPT_ROLE_REPLY` (7.3.9): the role of the node at the switch.
pub fn role(body: &[u8]) -> Vec<Value> {
    let of = |body: &[u8]| {
        let number = u32_at(body, 0)?;
        let role = usize::try_from(number).ok().and_then(|it| ROLES.get(it));
        let role = role.map_or_else(|| number.into(), |word| Value::from(*word));
        Some(json!({ "role": role, "generation_id": u64_at(body, 8)? }))
    };
    of(body).into_iter().collect()
}

/// `ofp_controller_role`, by number.
const ROLES: [&str; 4] = ["NOCHANGE", "EQUAL", "MASTER", "SLAVE"];

/// `OFPMP_GROUP`: counters of groups.
pub fn groups(body: &[u8]) -> Vec<Value> {
    let of = |entry: &[u8]| {
        let bucket =
            |it: &[u8]| Some(json!({ "packet_count": u64_at(it, 0)?, "byte_count": u64_at(it, 8)? }));
        Some(json!({
            "length": u16_at(entry, 0)?,
            "group_id": group(u32_at(entry, 4)?),
            "ref_count": u32_at(entry, 8)?,
            "packet_count": u64_at(entry, 16)?,
            "byte_count": u64_at(entry, 24)?,
            "duration_sec": u32_at(entry, 32)?,
            "duration_nsec": u32_at(entry, 36)?,
            "bucket_stats": fixed(&entry[40..], 16).filter_map(bucket).collect::<Vec<_>>(),
        }))
    };
    counted(body, 0, 40).filter_map(of).collect()
}

fn group(group_id: u32) -> Value {
    match group_id {
        0xffff_ff00 => "MAX".into(),
        0xffff_fffc => "ALL".into(),
        0xffff_ffff => "ANY".into(),
        number => number.into(),
    }
}

/// The types of groups, by number.
pub const GROUP_TYPES: [&str; 4] = ["ALL", "SELECT", "INDIRECT", "FF"];

/// `OFPMP_GROUP_DESC`: descriptions of groups.
pub fn group_descriptions(body: &[u8]) -> Vec<Value> {
    let of = |entry: &[u8]| {
        let buckets = buckets_raw(entry.get(8..)?).filter_map(Result::ok).map(|bucket| {
            let actions = read_actions(bucket.actions).unwrap_or_default();
            json!({
                "weight": bucket.weight,
                "watch_port": bucket.watch_port.0,
                "watch_group": bucket.watch_group,
                "actions": actions::texts(&actions).collect::<Vec<_>>(),
            })
        });
        let kind = GROUP_TYPES.get(usize::from(u8_at(entry, 2)?));
        Some(
            json!({ "type": kind, "group_id": group(u32_at(entry, 4)?), "buckets": buckets.collect::<Vec<_>>() }),
        )
    };
    counted(body, 0, 8).filter_map(of).collect()
}

const GROUP_CAPABILITIES: [&str; 4] = ["SELECT_WEIGHT", "SELECT_LIVENESS", "CHAINING", "CHAINING_CHECKS"];

/// Actions by the number of their bit (`ofp_action_type`).
const ACTIONS: [(u32, &str); 16] = [
    (0, "OUTPUT"),
    (11, "COPY_TTL_OUT"),
    (12, "COPY_TTL_IN"),
    (15, "SET_MPLS_TTL"),
    (16, "DEC_MPLS_TTL"),
    (17, "PUSH_VLAN"),
    (18, "POP_VLAN"),
    (19, "PUSH_MPLS"),
    (20, "POP_MPLS"),
    (21, "SET_QUEUE"),
    (22, "GROUP"),
    (23, "SET_NW_TTL"),
    (24, "DEC_NW_TTL"),
    (25, "SET_FIELD"),
    (26, "PUSH_PBB"),
    (27, "POP_PBB"),
];

/// `OFPMP_GROUP_FEATURES`: what a switch can do with groups.
pub fn group_features(body: &[u8]) -> Vec<Value> {
    let of = |entry: &[u8]| {
        let mut max_groups = Vec::new();
        let mut actions = Vec::new();
        for (index, kind) in GROUP_TYPES.iter().enumerate() {
            let bits = u32_at(entry, 24 + 4 * index)?;
            let names: Vec<_> =
                ACTIONS.iter().filter(|(bit, _)| bits >> bit & 1 == 1).map(|(_, name)| *name).collect();
            max_groups.push(json!({ *kind: u32_at(entry, 8 + 4 * index)? }));
            actions.push(json!({ *kind: names }));
        }
        Some(json!({
            "types": by_bit(u32_at(entry, 0)?, &GROUP_TYPES),
            "capabilities": by_bit(u32_at(entry, 4)?, &GROUP_CAPABILITIES),
            "max_groups": max_groups,
            "actions": actions,
        }))
    };
    fixed(body, 40).filter_map(of).collect()
}

/// The names of the bits that are set, from the lowest.
fn by_bit<'a>(bits: u32, names: &[&'a str]) -> Vec<&'a str> {
    names.iter().enumerate().filter(|(bit, _)| bits >> bit & 1 == 1).map(|(_, name)| *name).collect()
}

/// `OFPMP_METER`: counters of meters.
pub fn meters(body: &[u8]) -> Vec<Value> {
    let of = |entry: &[u8]| {
        let band = |it: &[u8]| {
            Some(json!({ "packet_band_count": u64_at(it, 0)?, "byte_band_count": u64_at(it, 8)? }))
        };
        Some(json!({
            "meter_id": meter(u32_at(entry, 0)?),
            "len": u16_at(entry, 4)?,
            "flow_count": u32_at(entry, 12)?,
            "packet_in_count": u64_at(entry, 16)?,
            "byte_in_count": u64_at(entry, 24)?,
            "duration_sec": u32_at(entry, 32)?,
            "duration_nsec": u32_at(entry, 36)?,
            "band_stats": fixed(&entry[40..], 16).filter_map(band).collect::<Vec<_>>(),
        }))
    };
    counted(body, 4, 40).filter_map(of).collect()
}

fn meter(meter_id: u32) -> Value {
    match meter_id {
        0xffff_0000 => "MAX".into(),
        0xffff_fffd => "SLOWPATH".into(),
        0xffff_fffe => "CONTROLLER".into(),
        0xffff_ffff => "ALL".into(),
        number => number.into(),
    }
}

/// The flags of meters, by bit.
pub const METER_FLAGS: [&str; 4] = ["KBPS", "PKTPS", "BURST", "STATS"];

/// `OFPMP_METER_CONFIG`: bands of meters.
pub fn meter_configurations(body: &[u8]) -> Vec<Value> {
    let of = |entry: &[u8]| {
        Some(json!({
            "flags": by_bit(u16_at(entry, 2)?.into(), &METER_FLAGS),
            "meter_id": meter(u32_at(entry, 4)?),
            "bands": counted(entry.get(8..)?, 2, 16).filter_map(band).collect::<Vec<_>>(),
        }))
    };
    counted(body, 0, 8).filter_map(of).collect()
}

fn band(band: &[u8]) -> Option<Value> {
    let (rate, burst_size) = (u32_at(band, 4)?, u32_at(band, 8)?);
    Some(match u16_at(band, 0)? {
        1 => json!({ "type": "DROP", "rate": rate, "burst_size": burst_size }),
        2 => {
            json!({ "type": "DSCP_REMARK", "rate": rate, "burst_size": burst_size, "prec_level": u8_at(band, 12)? })
        }
        0xffff => {
            json!({ "type": "EXPERIMENTER", "rate": rate, "burst_size": burst_size, "experimenter": u32_at(band, 12)? })
        }
        _ => json!({ "type": "", "rate": rate, "burst_size": burst_size }),
    })
}

/// `OFPMP_METER_FEATURES`: what a switch can do with meters.
pub fn meter_features(body: &[u8]) -> Vec<Value> {
    let of = |entry: &[u8]| {
        Some(json!({
            "max_meter": u32_at(entry, 0)?,
            // The bits begin with 1, for OFPMBT_DROP.
            "band_types": by_bit(u32_at(entry, 4)? >> 1, &["DROP", "DSCP_REMARK"]),
            "capabilities": by_bit(u32_at(entry, 8)?, &METER_FLAGS),
            "max_bands": u8_at(entry, 12)?,
            "max_color": u8_at(entry, 13)?,
        }))
    };
    fixed(body, 16).filter_map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    type Show = fn(&[u8]) -> Vec<Value>;

    const ALL: [Show; 15] = [
        |it| flows(it, None),
        aggregate,
        tables,
        ports,
        port_descriptions,
        queues,
        groups,
        group_descriptions,
        group_features,
        meters,
        meter_configurations,
        meter_features,
        |it| flows(it, Some(1)),
        queue_configurations,
        role,
    ];

    #[test]
    fn damaged_bodies_are_read_as_far_as_they_go() {
        for show in ALL {
            assert!(show(&[]).is_empty());
            for length in 1..200 {
                for byte in [0, 1, 8, 0x28, 0xff] {
                    show(&vec![byte; length]);
                }
            }
        }
    }

    fn flow_entry(priority: u16) -> Vec<u8> {
        let mut bytes = vec![0; 48];
        bytes[12..14].copy_from_slice(&priority.to_be_bytes());
        bytes[4..8].copy_from_slice(&7_u32.to_be_bytes());
        bytes[32..40].copy_from_slice(&3_u64.to_be_bytes());
        // in_port=1, then padding to 16 bytes.
        bytes.extend([0, 1, 0, 12, 0x80, 0, 0, 4, 0, 0, 0, 1, 0, 0, 0, 0]);
        // apply_actions(output:2)
        bytes.extend([0, 4, 0, 24, 0, 0, 0, 0, 0, 0, 0, 16, 0, 0, 0, 2, 0xff, 0xe5, 0, 0, 0, 0, 0, 0]);
        let length = u16::try_from(bytes.len()).unwrap();
        bytes[..2].copy_from_slice(&length.to_be_bytes());
        bytes
    }

    #[test]
    fn a_flow_entry_has_ryus_members() {
        let body = [flow_entry(9), flow_entry(10)].concat();
        let shown = flows(&body, Some(9));
        let expected = json!([{"length": 88, "table_id": 0, "duration_sec": 7, "duration_nsec": 0, "priority": 9, "idle_timeout": 0,
                               "hard_timeout": 0, "flags": 0, "cookie": 0, "packet_count": 3, "byte_count": 0, "match": {"in_port": 1},
                               "actions": ["OUTPUT:2"]}]);
        assert_eq!(Value::from(shown), expected);
        assert_eq!(flows(&body, None).len(), 2);
    }

    #[test]
    fn a_queue_has_its_counters() {
        let mut body = vec![0; 40];
        (body[3], body[7], body[15], body[23], body[35]) = (1, 2, 3, 4, 5);
        let expected = json!([{"port_no": 1, "queue_id": 2, "tx_bytes": 3, "tx_packets": 4, "tx_errors": 0, "duration_sec": 5,
                               "duration_nsec": 0}]);
        assert_eq!(Value::from(queues(&body)), expected);
    }

    #[test]
    fn features_are_named_by_their_bits() {
        let numbers = |list: &[u32]| list.iter().flat_map(|it| it.to_be_bytes()).collect::<Vec<u8>>();
        let shown = &group_features(&numbers(&[0b1001, 0b100, 1, 2, 3, 4, 1, 0, 0, 1 << 25]))[0];
        assert_eq!(shown["types"], json!(["ALL", "FF"]));
        assert_eq!(shown["capabilities"], json!(["CHAINING"]));
        assert_eq!(shown["max_groups"], json!([{"ALL": 1}, {"SELECT": 2}, {"INDIRECT": 3}, {"FF": 4}]));
        assert_eq!(
            shown["actions"],
            json!([{"ALL": ["OUTPUT"]}, {"SELECT": []}, {"INDIRECT": []}, {"FF": ["SET_FIELD"]}])
        );
        let shown = &meter_features(&numbers(&[9, 0b110, 0b1001, 0x0102_0000]))[0];
        let expected = json!({"max_meter": 9, "band_types": ["DROP", "DSCP_REMARK"], "capabilities": ["KBPS", "STATS"], "max_bands": 1,
                              "max_color": 2});
        assert_eq!(*shown, expected);
    }

    #[test]
    fn a_meter_has_its_bands() {
        let body = [0, 24, 0, 0b101, 0, 0, 0, 7, 0, 1, 0, 16, 0, 0, 0, 100, 0, 0, 0, 10, 0, 0, 0, 0];
        let expected = json!([{"flags": ["KBPS", "BURST"], "meter_id": 7, "bands": [{"type": "DROP", "rate": 100, "burst_size": 10}]}]);
        assert_eq!(Value::from(meter_configurations(&body)), expected);
    }
}
