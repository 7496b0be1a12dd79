//! Matches in the JSON of Ryu's `ofctl_rest`.
//!
//! In: a match of the node, or an object with Ryu's names, old (`dl_dst`) and new (`eth_dst`). Out: the other of the two. An unknown field is
//! refused: Ryu leaves it out, and the rule would match more packets than its author wants.

use crate::http::Problem;
use burnet_sdk::flow::{Field, MacAddr, Match, MatchEntry, PortNo};
use serde_json::{Map, Value};
use std::net::{Ipv4Addr, Ipv6Addr};

/// Old names of fields, in both directions.
const OLD: [(&str, Field); 7] = [
    ("dl_src", Field::EthSrc),
    ("dl_dst", Field::EthDst),
    ("dl_type", Field::EthType),
    ("dl_vlan", Field::VlanVid),
    ("nw_src", Field::Ipv4Src),
    ("nw_dst", Field::Ipv4Dst),
    ("nw_proto", Field::IpProto),
];

/// The bit of a VLAN id that marks a tag (OpenFlow 1.3.5, 7.2.3.7).
const VID_PRESENT: u128 = 0x1000;

const ETH_TYPE_ARP: u128 = 0x0806;

/// The name that Ryu shows for a field.
fn shown_name(field: Field) -> &'static str {
    match field {
        Field::TcpSrc | Field::UdpSrc => "tp_src",
        Field::TcpDst | Field::UdpDst => "tp_dst",
        _ => OLD.iter().find(|(_, it)| *it == field).map_or(field.name(), |(name, _)| name),
    }
}

/// A match as Ryu shows it.
pub fn shown(matching: &Match) -> Value {
    let mut members = Map::new();
    for entry in matching.entries() {
        let (name, value) = match entry {
            MatchEntry::Field { field, value, mask } => {
                (shown_name(*field).to_owned(), of(*field, *value, *mask))
            }
            MatchEntry::Unknown { header, body } => {
                let digits: String = body.iter().map(|byte| format!("{byte:02x}")).collect();
                (format!("oxm:{header:#010x}"), digits.into())
            }
        };
        members.entry(name).or_insert(value);
    }
    Value::Object(members)
}

fn of(field: Field, value: u128, mask: Option<u128>) -> Value {
    match (field, mask) {
        (Field::InPort | Field::InPhyPort, None) => port(PortNo(narrow(value))),
        (Field::VlanVid, Some(mask)) => format!("{value:#06x}/{mask:#06x}").into(),
        (Field::VlanVid, None) if value & VID_PRESENT != 0 => (value & !VID_PRESENT).to_string().into(),
        (Field::VlanVid, None) => format!("{value:#06x}").into(),
        (_, Some(mask)) => format!("{}/{}", text(field, value), text(field, mask)).into(),
        (_, None) => match number(field, value) {
            Some(number) => number.into(),
            None => text(field, value).into(),
        },
    }
}

fn narrow(value: u128) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}

/// A reserved port by its name, another one by its number.
pub fn port(port: PortNo) -> Value {
    port.reserved_name().map_or_else(|| port.0.into(), Value::from)
}

/// The value as a number, if it is no address.
fn number(field: Field, value: u128) -> Option<u64> {
    if is_address(field) { None } else { u64::try_from(value).ok() }
}

fn is_address(field: Field) -> bool {
    use Field::{ArpSha, ArpSpa, ArpTha, ArpTpa, EthDst, EthSrc, Ipv4Dst, Ipv4Src, Ipv6Dst, Ipv6NdSll};
    use Field::{Ipv6NdTarget, Ipv6NdTll, Ipv6Src};
    let ethernet = matches!(field, EthDst | EthSrc | ArpSha | ArpTha | Ipv6NdSll | Ipv6NdTll);
    ethernet || matches!(field, ArpSpa | ArpTpa | Ipv4Src | Ipv4Dst | Ipv6Src | Ipv6Dst | Ipv6NdTarget)
}

/// A value as Ryu writes it into a text: addresses as such, all others in decimal.
pub fn text(field: Field, value: u128) -> String {
    use Field::{ArpSpa, ArpTpa, Ipv4Dst, Ipv4Src, Ipv6Dst, Ipv6NdTarget, Ipv6Src};
    match field {
        ArpSpa | ArpTpa | Ipv4Src | Ipv4Dst => Ipv4Addr::from(narrow(value)).to_string(),
        Ipv6Src | Ipv6Dst | Ipv6NdTarget => Ipv6Addr::from(value).to_string(),
        _ if is_address(field) => {
            MacAddr::from_u64(u64::try_from(value & 0xffff_ffff_ffff).unwrap_or_default()).to_string()
        }
        _ => value.to_string(),
    }
}

/// Reads a match.
///
/// # Errors
/// A problem that names the field.
pub fn read(value: Option<&Value>) -> Result<Match, Problem> {
    let empty = Map::new();
    let members = match value {
        None | Some(Value::Null) => &empty,
        Some(Value::Object(members)) => members,
        Some(_) => return Err(Problem::field("match", "it is no object")),
    };
    let number_of = |names: [&str; 2]| {
        names.iter().find_map(|name| members.get(*name)).and_then(|value| plain_number(&as_text(value)).ok())
    };
    let is_arp = number_of(["dl_type", "eth_type"]) == Some(ETH_TYPE_ARP);
    let ip_proto = number_of(["nw_proto", "ip_proto"]);
    let mut matching = Match::any();
    for (name, value) in members {
        let field = field(name, is_arp, ip_proto)?;
        let (value, mask) = read_value(field, value).map_err(|why| wrong(name, &why))?;
        if matching.get(field).is_some() {
            return Err(wrong(name, "the field is there twice, under two names"));
        }
        match mask {
            None => matching.set(field, value),
            Some(_) if !field.maskable() => return Err(wrong(name, "this field has no mask")),
            Some(mask) if value & !mask != 0 => {
                return Err(wrong(name, "the value has bits outside the mask"));
            }
            Some(mask) => matching.set_masked(field, value, mask),
        }
    }
    Ok(matching)
}

fn wrong(name: &str, why: &str) -> Problem {
    Problem::field(&format!("match.{name}"), format!("match.{name}: {why}"))
}

fn field(name: &str, is_arp: bool, ip_proto: Option<u128>) -> Result<Field, Problem> {
    let of_transport = |tcp, udp| match ip_proto {
        Some(6) => Ok(tcp),
        Some(17) => Ok(udp),
        _ => Err(wrong(name, "it needs nw_proto 6 or 17")),
    };
    match name {
        "nw_src" if is_arp => Ok(Field::ArpSpa),
        "nw_dst" if is_arp => Ok(Field::ArpTpa),
        "tp_src" => of_transport(Field::TcpSrc, Field::UdpSrc),
        "tp_dst" => of_transport(Field::TcpDst, Field::UdpDst),
        _ => {
            let old = OLD.iter().find(|(old, _)| *old == name).map(|(_, field)| *field);
            old.or_else(|| Field::from_name(name)).ok_or_else(|| wrong(name, "there is no such field"))
        }
    }
}

fn as_text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// A decimal or hexadecimal number.
fn plain_number(text: &str) -> Result<u128, String> {
    let parsed = match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(digits) => u128::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    };
    parsed.ok_or_else(|| format!("{text:?} is no number"))
}

fn read_value(field: Field, value: &Value) -> Result<(u128, Option<u128>), String> {
    let text = as_text(value);
    // A decimal VLAN id is that of a tag. A hexadecimal one is the field with its bit for a tag.
    let is_decimal = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if field == Field::VlanVid && is_decimal {
        let vid = plain_number(&text)?;
        return if vid < VID_PRESENT {
            Ok((vid | VID_PRESENT, None))
        } else {
            Err("a VLAN id is at most 4095".to_owned())
        };
    }
    let (value, mask) = field.read_value(&text)?;
    // Ryu takes bits outside a mask as they are, and so does an address with a prefix.
    Ok((value & mask.unwrap_or(u128::MAX), mask))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_wrong_field_is_refused_by_its_name() {
        let check = |value: Value, field: &str| {
            assert_eq!(read(Some(&value)).unwrap_err().field.as_deref(), Some(field), "{value}");
        };
        check(json!([]), "match");
        check(json!({"colour": 1}), "match.colour");
        check(json!({"dl_type": "x"}), "match.dl_type");
        check(json!({"dl_vlan": 4096}), "match.dl_vlan");
        check(json!({"in_port": "NOWHERE"}), "match.in_port");
        check(json!({"nw_src": "10.0.0"}), "match.nw_src");
        check(json!({"tp_src": 80}), "match.tp_src");
        check(json!({"dl_dst": "00:00:00:00:00:01", "eth_dst": "00:00:00:00:00:01"}), "match.eth_dst");
        check(json!({"in_port": "1/1"}), "match.in_port");
    }

    #[test]
    fn ryus_names_are_read_and_shown_again() {
        let check = |value: Value, expected: Value| {
            let matching = read(Some(&value)).unwrap_or_else(|problem| panic!("{value}: {}", problem.detail));
            assert_eq!(shown(&matching), expected, "{value}");
        };
        check(json!({}), json!({}));
        check(json!({"in_port": 1, "dl_type": 2048}), json!({"in_port": 1, "dl_type": 2048}));
        check(json!({"in_port": "LOCAL"}), json!({"in_port": "LOCAL"}));
        check(json!({"eth_dst": "AA:bb:cc:11:22:33"}), json!({"dl_dst": "aa:bb:cc:11:22:33"}));
        check(
            json!({"dl_dst": "01:00:00:00:00:00/01:00:00:00:00:00"}),
            json!({"dl_dst": "01:00:00:00:00:00/01:00:00:00:00:00"}),
        );
        check(
            json!({"eth_type": 2048, "ipv4_dst": "192.168.10.10/24"}),
            json!({"dl_type": 2048, "nw_dst": "192.168.10.0/255.255.255.0"}),
        );
        check(
            json!({"eth_type": 2054, "nw_src": "10.0.0.1"}),
            json!({"dl_type": 2054, "arp_spa": "10.0.0.1"}),
        );
        check(
            json!({"eth_type": 2048, "ip_proto": 6, "tp_dst": 80}),
            json!({"dl_type": 2048, "nw_proto": 6, "tp_dst": 80}),
        );
        check(json!({"dl_vlan": 100}), json!({"dl_vlan": "100"}));
        check(json!({"dl_vlan": "100"}), json!({"dl_vlan": "100"}));
        check(json!({"dl_vlan": "0x1064"}), json!({"dl_vlan": "100"}));
        check(json!({"vlan_vid": "0x0000"}), json!({"dl_vlan": "0x0000"}));
        check(json!({"vlan_vid": "0x1000/0x1000"}), json!({"dl_vlan": "0x1000/0x1000"}));
        check(json!({"metadata": "0x10/0xf0"}), json!({"metadata": "16/240"}));
        check(
            json!({"eth_type": 34525, "ipv6_src": "2001::1"}),
            json!({"dl_type": 34525, "ipv6_src": "2001::1"}),
        );
    }
}
