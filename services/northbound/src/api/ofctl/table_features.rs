//! The features of tables (`OFPMP_TABLE_FEATURES`, OpenFlow 1.3.5, 7.3.5.5) as Ryu's `ofctl_rest` shows them.
//!
//! In: the parts of a switch's answer. Out: JSON with Ryu's names. Like the other bodies, it ends at the first damaged entry.

use crate::wire::{counted, fixed, text_at, u8_at, u16_at, u32_at, u64_at};
use serde_json::{Map, Value, json};

/// The bytes of `ofp_table_features` before its properties.
const HEAD: usize = 64;

/// The properties by their type, `ofp_table_feature_prop_type`. Types 9 and 11 are not used.
const PROPERTIES: [&str; 16] = [
    "INSTRUCTIONS",
    "INSTRUCTIONS_MISS",
    "NEXT_TABLES",
    "NEXT_TABLES_MISS",
    "WRITE_ACTIONS",
    "WRITE_ACTIONS_MISS",
    "APPLY_ACTIONS",
    "APPLY_ACTIONS_MISS",
    "MATCH",
    "UNKNOWN",
    "WILDCARDS",
    "UNKNOWN",
    "WRITE_SETFIELD",
    "WRITE_SETFIELD_MISS",
    "APPLY_SETFIELD",
    "APPLY_SETFIELD_MISS",
];

/// The fields of the class OFPXMC_OPENFLOW_BASIC by their number.
const FIELDS: [&str; 40] = [
    "in_port",
    "in_phy_port",
    "metadata",
    "eth_dst",
    "eth_src",
    "eth_type",
    "vlan_vid",
    "vlan_pcp",
    "ip_dscp",
    "ip_ecn",
    "ip_proto",
    "ipv4_src",
    "ipv4_dst",
    "tcp_src",
    "tcp_dst",
    "udp_src",
    "udp_dst",
    "sctp_src",
    "sctp_dst",
    "icmpv4_type",
    "icmpv4_code",
    "arp_op",
    "arp_spa",
    "arp_tpa",
    "arp_sha",
    "arp_tha",
    "ipv6_src",
    "ipv6_dst",
    "ipv6_flabel",
    "icmpv6_type",
    "icmpv6_code",
    "ipv6_nd_target",
    "ipv6_nd_sll",
    "ipv6_nd_tll",
    "mpls_label",
    "mpls_tc",
    "mpls_bos",
    "pbb_isid",
    "tunnel_id",
    "ipv6_exthdr",
];

/// The class OFPXMC_OPENFLOW_BASIC, and the one whose ids carry an experimenter.
const BASIC: u32 = 0x8000;
const EXPERIMENTER: u32 = 0xffff;

/// `OFPMP_TABLE_FEATURES`: what the tables of a switch can do.
pub fn table_features(body: &[u8]) -> Vec<Value> {
    let of = |entry: &[u8]| {
        Some(json!({
            "table_id": super::bodies::table(u8_at(entry, 2)?),
            "name": text_at(entry, 8, 32)?,
            "metadata_match": u64_at(entry, 40)?,
            "metadata_write": u64_at(entry, 48)?,
            "config": u32_at(entry, 56)?,
            "max_entries": u32_at(entry, 60)?,
            "properties": properties(entry.get(HEAD..)?),
        }))
    };
    counted(body, 0, HEAD).filter_map(of).collect()
}

/// Properties carry their length without the padding to eight bytes.
fn properties(mut bytes: &[u8]) -> Vec<Value> {
    let mut found = Vec::new();
    while let Some(length) = u16_at(bytes, 2).map(usize::from) {
        let Some(property) = bytes.get(..length).filter(|it| it.len() >= 4) else { break };
        found.extend(self::property(property));
        bytes = bytes.get(length.next_multiple_of(8)..).unwrap_or_default();
    }
    found
}

fn property(bytes: &[u8]) -> Option<Value> {
    let kind = u16_at(bytes, 0)?;
    let content = bytes.get(4..)?;
    let name = match kind {
        0xfffe => "EXPERIMENTER",
        0xffff => "EXPERIMENTER_MISS",
        kind => PROPERTIES.get(usize::from(kind)).copied().unwrap_or("UNKNOWN"),
    };
    let mut members = Map::from_iter([("type".to_owned(), Value::from(name))]);
    let (list, ids): (&str, Vec<Value>) = match kind {
        0 | 1 => ("instruction_ids", typed(content)),
        2 | 3 => ("table_ids", content.iter().map(|id| Value::from(*id)).collect()),
        4..=7 => ("action_ids", typed(content)),
        8 | 10 | 12..=15 => ("oxm_ids", oxm_ids(content)),
        _ => return Some(Value::Object(members)),
    };
    members.insert(list.to_owned(), ids.into());
    Some(Value::Object(members))
}

/// Ids of instructions and actions: a type and a length of four bytes, or more with an experimenter.
fn typed(content: &[u8]) -> Vec<Value> {
    let of = |id: &[u8]| Some(json!({ "type": u16_at(id, 0)?, "len": u16_at(id, 2)? }));
    counted(content, 2, 4).filter_map(of).collect()
}

fn oxm_ids(content: &[u8]) -> Vec<Value> {
    let words: Vec<u32> = fixed(content, 4).filter_map(|word| u32_at(word, 0)).collect();
    let mut words = words.into_iter();
    let mut found = Vec::new();
    while let Some(header) = words.next() {
        found.push(json!({ "type": field(header), "hasmask": header >> 8 & 1, "length": header & 0xff }));
        if header >> 16 == EXPERIMENTER {
            // The number of the experimenter.
            words.next();
        }
    }
    found
}

/// The name of a field, or Ryu's word for one that it does not know.
fn field(header: u32) -> String {
    let number = usize::try_from(header >> 9 & 0x7f).unwrap_or_default();
    let name = if header >> 16 == BASIC { FIELDS.get(number) } else { None };
    name.map_or_else(|| format!("field_{}", header >> 9), |name| (*name).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(properties: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0; HEAD];
        bytes[2] = 7;
        bytes[8..11].copy_from_slice(b"acl");
        bytes[63] = 100;
        bytes.extend(properties);
        let length = u16::try_from(bytes.len()).unwrap();
        bytes[..2].copy_from_slice(&length.to_be_bytes());
        bytes
    }

    #[test]
    fn a_table_has_ryus_members() {
        let properties = [
            // instructions: goto_table
            &[0, 0, 0, 8, 0, 1, 0, 4][..],
            // next tables: 1 and 2, and padding
            &[0, 2, 0, 6, 1, 2, 0, 0],
            // match: eth_dst with a mask, and a field of an experimenter
            &[0, 8, 0, 16, 0x80, 0, 0x07, 12, 0xff, 0xff, 0x54, 6, 0x4f, 0x4e, 0x46, 0],
            // of an experimenter
            &[0xff, 0xfe, 0, 12, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 0],
        ];
        let shown = table_features(&table(&properties.concat()));
        let expected = json!([{"table_id": 7, "name": "acl", "metadata_match": 0, "metadata_write": 0, "config": 0, "max_entries": 100,
            "properties": [
                {"type": "INSTRUCTIONS", "instruction_ids": [{"type": 1, "len": 4}]},
                {"type": "NEXT_TABLES", "table_ids": [1, 2]},
                {"type": "MATCH", "oxm_ids": [{"type": "eth_dst", "hasmask": 1, "length": 12},
                                              {"type": "field_8388522", "hasmask": 0, "length": 6}]},
                {"type": "EXPERIMENTER"}]}]);
        assert_eq!(Value::from(shown), expected);
    }

    #[test]
    fn damaged_tables_are_read_as_far_as_they_go() {
        for length in 0..200 {
            for byte in [0, 1, 4, 8, 0x40, 0xff] {
                table_features(&vec![byte; length]);
                table_features(&table(&vec![byte; length]));
            }
        }
    }
}
