//! Selectors in the JSON of ONOS: a list of criteria.
//!
//! In: a match of the node, or ONOS's list. Out: the other of the two. An unknown criterion is refused, because the rule would match more.

use crate::http::Problem;
use burnet_sdk::flow::{Field, MacAddr, Match, MatchEntry, PortNo};
use serde_json::{Map, Value, json};
use std::net::{Ipv4Addr, Ipv6Addr};

/// How ONOS writes a value.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Number,
    Hexadecimal,
    Port,
    Mac,
    Ip,
    Vlan,
}

type Row = (&'static str, Field, &'static str, Form);

/// The type of a criterion, its field, the member with its value, and how it is written.
const TABLE: [Row; 31] = [
    ("IN_PORT", Field::InPort, "port", Form::Port),
    ("IN_PHY_PORT", Field::InPhyPort, "port", Form::Port),
    ("METADATA", Field::Metadata, "metadata", Form::Number),
    ("ETH_DST", Field::EthDst, "mac", Form::Mac),
    ("ETH_SRC", Field::EthSrc, "mac", Form::Mac),
    ("ETH_TYPE", Field::EthType, "ethType", Form::Hexadecimal),
    ("VLAN_VID", Field::VlanVid, "vlanId", Form::Vlan),
    ("VLAN_PCP", Field::VlanPcp, "priority", Form::Number),
    ("IP_DSCP", Field::IpDscp, "ipDscp", Form::Number),
    ("IP_ECN", Field::IpEcn, "ipEcn", Form::Number),
    ("IP_PROTO", Field::IpProto, "protocol", Form::Number),
    ("IPV4_SRC", Field::Ipv4Src, "ip", Form::Ip),
    ("IPV4_DST", Field::Ipv4Dst, "ip", Form::Ip),
    ("TCP_SRC", Field::TcpSrc, "tcpPort", Form::Number),
    ("TCP_DST", Field::TcpDst, "tcpPort", Form::Number),
    ("UDP_SRC", Field::UdpSrc, "udpPort", Form::Number),
    ("UDP_DST", Field::UdpDst, "udpPort", Form::Number),
    ("SCTP_SRC", Field::SctpSrc, "sctpPort", Form::Number),
    ("SCTP_DST", Field::SctpDst, "sctpPort", Form::Number),
    ("ICMPV4_TYPE", Field::Icmpv4Type, "icmpType", Form::Number),
    ("ICMPV4_CODE", Field::Icmpv4Code, "icmpCode", Form::Number),
    ("ARP_OP", Field::ArpOp, "arpOp", Form::Number),
    ("ARP_SPA", Field::ArpSpa, "ip", Form::Ip),
    ("ARP_TPA", Field::ArpTpa, "ip", Form::Ip),
    ("IPV6_SRC", Field::Ipv6Src, "ip", Form::Ip),
    ("IPV6_DST", Field::Ipv6Dst, "ip", Form::Ip),
    ("IPV6_FLABEL", Field::Ipv6Flabel, "flowLabel", Form::Number),
    ("ICMPV6_TYPE", Field::Icmpv6Type, "icmpv6Type", Form::Number),
    ("ICMPV6_CODE", Field::Icmpv6Code, "icmpv6Code", Form::Number),
    ("MPLS_LABEL", Field::MplsLabel, "label", Form::Number),
    ("TUNNEL_ID", Field::TunnelId, "tunnelId", Form::Number),
];

const VID_PRESENT: u128 = 0x1000;

/// A selector.
pub fn shown(matching: &Match) -> Value {
    let criteria: Vec<Value> = matching.entries().iter().map(one).collect();
    json!({ "criteria": criteria })
}

fn one(entry: &MatchEntry) -> Value {
    let MatchEntry::Field { field, value, mask } = entry else {
        return json!({ "type": "EXTENSION" });
    };
    let Some((kind, _, member, form)) = TABLE.iter().find(|(_, it, ..)| it == field) else {
        // ONOS has no word for it. The name of OpenFlow says at least what it is.
        return json!({ "type": field.name().to_uppercase(), "value": value.to_string() });
    };
    match (form, mask) {
        (Form::Mac, Some(mask)) => {
            json!({ "type": format!("{kind}_MASKED"), "mac": mac(*value), "macMask": mac(*mask) })
        }
        _ => json!({ "type": kind, *member: written(*form, *field, *value, *mask) }),
    }
}

fn written(form: Form, field: Field, value: u128, mask: Option<u128>) -> Value {
    match form {
        Form::Number => u64::try_from(value).unwrap_or(u64::MAX).into(),
        Form::Hexadecimal => format!("{value:#x}").into(),
        Form::Port => u32::try_from(value).unwrap_or(u32::MAX).into(),
        Form::Mac => mac(value).into(),
        Form::Vlan => u64::try_from(value & !VID_PRESENT).unwrap_or_default().into(),
        Form::Ip => format!("{}/{}", ip(field, value), mask.unwrap_or(field.full_mask()).count_ones()).into(),
    }
}

/// An Ethernet address in capitals.
pub fn mac(value: u128) -> String {
    MacAddr::from_u64(u64::try_from(value & 0xffff_ffff_ffff).unwrap_or_default()).to_string().to_uppercase()
}

/// An IP address.
pub fn ip(field: Field, value: u128) -> String {
    match field.bits() {
        32 => Ipv4Addr::from(u32::try_from(value).unwrap_or_default()).to_string(),
        _ => Ipv6Addr::from(value).to_string(),
    }
}

/// Reads a selector.
///
/// # Errors
/// A problem that names the criterion.
pub fn read(selector: Option<&Value>) -> Result<Match, Problem> {
    let mut matching = Match::any();
    let list = match selector.map(|it| &it["criteria"]) {
        None | Some(Value::Null) => return Ok(matching),
        Some(Value::Array(list)) => list,
        Some(_) => return Err(Problem::field("selector.criteria", "it is no list")),
    };
    for (index, criterion) in list.iter().enumerate() {
        let at = format!("selector.criteria[{index}]");
        let (field, value, mask) =
            read_one(criterion).map_err(|why| Problem::field(&at, format!("{at}: {why}")))?;
        if matching.get(field).is_some() {
            return Err(Problem::field(&at, format!("{at}: the field is there twice")));
        }
        match mask {
            None => matching.set(field, value),
            Some(_) if !field.maskable() => {
                return Err(Problem::field(&at, format!("{at}: this field has no mask")));
            }
            Some(mask) => matching.set_masked(field, value & mask, mask),
        }
    }
    Ok(matching)
}

fn read_one(criterion: &Value) -> Result<(Field, u128, Option<u128>), String> {
    let kind = criterion["type"].as_str().ok_or("type is missing")?;
    let (name, is_masked) = kind.strip_suffix("_MASKED").map_or((kind, false), |name| (name, true));
    let row = TABLE.iter().find(|(it, ..)| *it == name);
    let (_, field, member, form) = *row.ok_or_else(|| format!("there is no criterion {kind:?}"))?;
    let text = plain(&criterion[member]).ok_or_else(|| format!("{member} is missing"))?;
    let text = match (form, is_masked) {
        (Form::Mac, true) => format!("{text}/{}", plain(&criterion["macMask"]).ok_or("macMask is missing")?),
        // Without its mask, the rule would match other packets.
        (_, true) => return Err(format!("there is no criterion {kind:?}")),
        (Form::Vlan, false) => {
            let vid: u128 = text.parse().map_err(|_| format!("{text:?} is no VLAN id"))?;
            (vid | VID_PRESENT).to_string()
        }
        _ => text,
    };
    let (value, mask) = field.read_value(&text)?;
    // A prefix of full length is the address itself.
    Ok((field, value, mask.filter(|mask| *mask != field.full_mask())))
}

/// A number or text as text.
pub fn plain(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

/// A port: its number, or the name of a reserved one in any case.
pub fn port(value: &Value) -> Option<PortNo> {
    let text = plain(value)?.to_uppercase();
    text.parse().ok()
}

/// An object with one member more.
pub fn with(mut value: Value, name: &str, member: impl Into<Value>) -> Value {
    if let Value::Object(members) = &mut value {
        let members: &mut Map<String, Value> = members;
        members.insert(name.to_owned(), member.into());
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_criterion_is_refused_with_its_place() {
        let check = |criteria: Value, part: &str| {
            let problem = read(Some(&json!({ "criteria": criteria }))).unwrap_err();
            assert!(problem.detail.contains(part), "{criteria}: {}", problem.detail);
        };
        check(json!(7), "no list");
        check(json!([{}]), "[0]: type is missing");
        check(json!([{"type": "WEATHER"}]), "there is no criterion \"WEATHER\"");
        check(json!([{"type": "ETH_TYPE"}]), "ethType is missing");
        check(
            json!([{"type": "TCP_DST_MASKED", "tcpPort": 80, "tcpMask": 240}]),
            "there is no criterion \"TCP_DST_MASKED\"",
        );
        check(json!([{"type": "IN_PORT", "port": 1}, {"type": "ETH_SRC", "mac": "x"}]), "[1]: ");
        check(json!([{"type": "VLAN_VID", "vlanId": "x"}]), "no VLAN id");
        check(json!([{"type": "IN_PORT", "port": 1}, {"type": "IN_PORT", "port": 2}]), "[1]: the field is");
        check(json!([{"type": "ETH_TYPE", "ethType": "0x800/0xff00"}]), "has no mask");
    }

    #[test]
    fn criteria_are_read_and_shown_again() {
        let check = |criterion: Value| {
            let list = json!({ "criteria": [criterion] });
            let matching = read(Some(&list)).unwrap_or_else(|problem| panic!("{list}: {}", problem.detail));
            assert_eq!(shown(&matching), list);
        };
        check(json!({"type": "IN_PORT", "port": 3}));
        check(json!({"type": "ETH_TYPE", "ethType": "0x800"}));
        check(json!({"type": "ETH_DST", "mac": "86:2D:E8:3A:B5:02"}));
        check(json!({"type": "ETH_DST_MASKED", "mac": "01:00:00:00:00:00", "macMask": "01:00:00:00:00:00"}));
        check(json!({"type": "IPV4_SRC", "ip": "10.0.0.1/32"}));
        check(json!({"type": "IPV4_DST", "ip": "10.0.0.0/8"}));
        check(json!({"type": "IPV6_DST", "ip": "2001:db8::/32"}));
        check(json!({"type": "VLAN_VID", "vlanId": 100}));
        check(json!({"type": "TCP_DST", "tcpPort": 80}));
        check(json!({"type": "IP_PROTO", "protocol": 6}));
        assert_eq!(read(None).unwrap(), Match::any());
    }
}
