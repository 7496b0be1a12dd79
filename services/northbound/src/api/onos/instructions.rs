//! Treatments in the JSON of ONOS: a list of instructions.
//!
//! In: instructions of the node, or ONOS's list. Out: the other of the two. What has no word in the other language is refused.

use super::criteria::{ip, mac, plain, port};
use crate::http::Problem;
use burnet_sdk::flow::{Action, Field, Instruction, PortNo};
use serde_json::{Value, json};

/// A treatment.
pub fn shown(instructions: &[Instruction]) -> Value {
    let (mut immediate, mut deferred, mut clear) = (Vec::new(), Vec::new(), false);
    for instruction in instructions {
        match instruction {
            Instruction::ApplyActions(actions) => immediate.extend(actions.iter().map(one)),
            Instruction::WriteActions(actions) => deferred.extend(actions.iter().map(one)),
            Instruction::ClearActions => clear = true,
            Instruction::GotoTable(table) => immediate.push(json!({ "type": "TABLE", "tableId": table })),
            Instruction::Meter(meter) => {
                immediate.push(json!({ "type": "METER", "meterId": meter.to_string() }))
            }
            Instruction::WriteMetadata { metadata, mask } => {
                immediate.push(json!({ "type": "METADATA", "metadata": metadata, "metadataMask": mask }));
            }
            Instruction::Experimenter { .. } => immediate.push(json!({ "type": "EXTENSION" })),
        }
    }
    if immediate.is_empty() && deferred.is_empty() {
        immediate.push(json!({ "type": "NOACTION" }));
    }
    let treatment = json!({ "instructions": immediate, "deferred": deferred });
    if clear { super::criteria::with(treatment, "clearDeferred", true) } else { treatment }
}

fn layer2(subtype: &str) -> Value {
    json!({ "type": "L2MODIFICATION", "subtype": subtype })
}

fn one(action: &Action) -> Value {
    let hexadecimal = |ethertype: &u16| format!("{ethertype:#x}");
    match action {
        Action::Output { port, .. } => json!({ "type": "OUTPUT", "port": named(*port) }),
        Action::Group(group) => json!({ "type": "GROUP", "groupId": group }),
        Action::SetQueue(queue) => json!({ "type": "QUEUE", "queueId": queue }),
        Action::PushVlan(ethertype) => {
            json!({ "type": "L2MODIFICATION", "subtype": "VLAN_PUSH", "ethernetType": hexadecimal(ethertype) })
        }
        Action::PopVlan | Action::StripVlan => layer2("VLAN_POP"),
        Action::PushMpls(ethertype) => {
            json!({ "type": "L2MODIFICATION", "subtype": "MPLS_PUSH", "ethernetType": hexadecimal(ethertype) })
        }
        Action::PopMpls(ethertype) => {
            json!({ "type": "L2MODIFICATION", "subtype": "MPLS_POP", "ethernetType": hexadecimal(ethertype) })
        }
        Action::DecMplsTtl => layer2("DEC_MPLS_TTL"),
        Action::DecNwTtl => json!({ "type": "L3MODIFICATION", "subtype": "DEC_TTL" }),
        Action::CopyTtlIn => json!({ "type": "L3MODIFICATION", "subtype": "TTL_IN" }),
        Action::CopyTtlOut => json!({ "type": "L3MODIFICATION", "subtype": "TTL_OUT" }),
        Action::SetField { field, value } => set_field(*field, *value),
        _ => json!({ "type": "EXTENSION" }),
    }
}

fn named(port: PortNo) -> String {
    port.reserved_name().map_or_else(|| port.0.to_string(), str::to_owned)
}

/// Type, subtype, field, and the member with the value.
const MODIFICATIONS: [(&str, &str, Field, &str); 15] = [
    ("L2MODIFICATION", "ETH_SRC", Field::EthSrc, "mac"),
    ("L2MODIFICATION", "ETH_DST", Field::EthDst, "mac"),
    ("L2MODIFICATION", "VLAN_ID", Field::VlanVid, "vlanId"),
    ("L2MODIFICATION", "VLAN_PCP", Field::VlanPcp, "vlanPcp"),
    ("L2MODIFICATION", "MPLS_LABEL", Field::MplsLabel, "label"),
    ("L2MODIFICATION", "TUNNEL_ID", Field::TunnelId, "tunnelId"),
    ("L3MODIFICATION", "IPV4_SRC", Field::Ipv4Src, "ip"),
    ("L3MODIFICATION", "IPV4_DST", Field::Ipv4Dst, "ip"),
    ("L3MODIFICATION", "IPV6_SRC", Field::Ipv6Src, "ip"),
    ("L3MODIFICATION", "IPV6_DST", Field::Ipv6Dst, "ip"),
    ("L3MODIFICATION", "IP_DSCP", Field::IpDscp, "dscp"),
    ("L4MODIFICATION", "TCP_SRC", Field::TcpSrc, "tcpPort"),
    ("L4MODIFICATION", "TCP_DST", Field::TcpDst, "tcpPort"),
    ("L4MODIFICATION", "UDP_SRC", Field::UdpSrc, "udpPort"),
    ("L4MODIFICATION", "UDP_DST", Field::UdpDst, "udpPort"),
];

const VID_PRESENT: u128 = 0x1000;

fn set_field(field: Field, value: u128) -> Value {
    let Some((kind, subtype, _, member)) = MODIFICATIONS.iter().find(|(_, _, it, _)| *it == field) else {
        return json!({ "type": "EXTENSION" });
    };
    let written: Value = match *member {
        "mac" => mac(value).into(),
        "ip" => ip(field, value).into(),
        "vlanId" => u64::try_from(value & !VID_PRESENT).unwrap_or_default().into(),
        _ => u64::try_from(value).unwrap_or(u64::MAX).into(),
    };
    json!({ "type": kind, "subtype": subtype, *member: written })
}

/// Reads a treatment.
///
/// # Errors
/// A problem that names the instruction.
pub fn read(treatment: Option<&Value>) -> Result<Vec<Instruction>, Problem> {
    let Some(treatment) = treatment.filter(|it| !it.is_null()) else { return Ok(Vec::new()) };
    let (mut instructions, applied) = list(treatment, "instructions")?;
    let (more, deferred) = list(treatment, "deferred")?;
    instructions.extend(more);
    if treatment["clearDeferred"].as_bool() == Some(true) {
        instructions.push(Instruction::ClearActions);
    }
    if !deferred.is_empty() {
        instructions.push(Instruction::WriteActions(deferred));
    }
    if !applied.is_empty() {
        instructions.push(Instruction::ApplyActions(applied));
    }
    Ok(instructions)
}

/// Reads the actions of a treatment that has no other instructions, as an intent needs them. An output is left out: the intent's end gives it.
///
/// # Errors
/// A problem that names the instruction.
pub fn read_actions(treatment: Option<&Value>) -> Result<Vec<Action>, Problem> {
    let mut actions = Vec::new();
    for instruction in read(treatment)? {
        match instruction {
            Instruction::ApplyActions(list) => actions.extend(list),
            _ => {
                return Err(Problem::field(
                    "treatment",
                    "treatment: an intent has only actions that change a packet",
                ));
            }
        }
    }
    actions.retain(|action| !matches!(action, Action::Output { .. }));
    Ok(actions)
}

fn list(treatment: &Value, name: &str) -> Result<(Vec<Instruction>, Vec<Action>), Problem> {
    let items = match &treatment[name] {
        Value::Null => return Ok((Vec::new(), Vec::new())),
        Value::Array(items) => items,
        _ => return Err(Problem::field(&format!("treatment.{name}"), "it is no list")),
    };
    let (mut instructions, mut actions) = (Vec::new(), Vec::new());
    for (index, item) in items.iter().enumerate() {
        let at = format!("treatment.{name}[{index}]");
        match read_one(item).map_err(|why| Problem::field(&at, format!("{at}: {why}")))? {
            Read::Instruction(instruction) => instructions.push(instruction),
            Read::Action(action) => actions.push(action),
            Read::Nothing => {}
        }
    }
    Ok((instructions, actions))
}

enum Read {
    Instruction(Instruction),
    Action(Action),
    Nothing,
}

fn read_one(item: &Value) -> Result<Read, String> {
    let kind = item["type"].as_str().ok_or("type is missing")?;
    Ok(match kind {
        "NOACTION" => Read::Nothing,
        "OUTPUT" => {
            let port = port(&item["port"]).ok_or("port is no port")?;
            Read::Action(Action::Output {
                port,
                max_len: if port == PortNo::CONTROLLER { 0xffff } else { 0 },
            })
        }
        "GROUP" => Read::Action(Action::Group(number(item, "groupId")?)),
        "QUEUE" => Read::Action(Action::SetQueue(number(item, "queueId")?)),
        "TABLE" => Read::Instruction(Instruction::GotoTable(number(item, "tableId")?)),
        "METER" => Read::Instruction(Instruction::Meter(number(item, "meterId")?)),
        "METADATA" => {
            let mask = if item["metadataMask"].is_null() { u64::MAX } else { number(item, "metadataMask")? };
            Read::Instruction(Instruction::WriteMetadata { metadata: number(item, "metadata")?, mask })
        }
        "L2MODIFICATION" | "L3MODIFICATION" | "L4MODIFICATION" => Read::Action(modification(kind, item)?),
        other => return Err(format!("there is no instruction {other:?}")),
    })
}

fn number<N: TryFrom<u64>>(item: &Value, member: &str) -> Result<N, String> {
    let text = plain(&item[member]).ok_or_else(|| format!("{member} is missing"))?;
    let parsed = match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    };
    let narrow = parsed.and_then(|number| N::try_from(number).ok());
    narrow.ok_or_else(|| format!("{member}: {text:?} is no such number"))
}

fn ethertype(item: &Value, default: u16) -> Result<u16, String> {
    if item["ethernetType"].is_null() { Ok(default) } else { number(item, "ethernetType") }
}

fn modification(kind: &str, item: &Value) -> Result<Action, String> {
    let subtype = item["subtype"].as_str().ok_or("subtype is missing")?;
    match subtype {
        "VLAN_PUSH" => return Ok(Action::PushVlan(ethertype(item, 0x8100)?)),
        "VLAN_POP" => return Ok(Action::PopVlan),
        "MPLS_PUSH" => return Ok(Action::PushMpls(ethertype(item, 0x8847)?)),
        "MPLS_POP" => return Ok(Action::PopMpls(ethertype(item, 0x0800)?)),
        "DEC_MPLS_TTL" => return Ok(Action::DecMplsTtl),
        "DEC_TTL" => return Ok(Action::DecNwTtl),
        "TTL_IN" => return Ok(Action::CopyTtlIn),
        "TTL_OUT" => return Ok(Action::CopyTtlOut),
        _ => {}
    }
    let row = MODIFICATIONS.iter().find(|(of, it, ..)| *of == kind && *it == subtype);
    let (_, _, field, member) = *row.ok_or_else(|| format!("there is no {kind} {subtype:?}"))?;
    let text = plain(&item[member]).ok_or_else(|| format!("{member} is missing"))?;
    let (value, _) = field.read_value(&text)?;
    let value = if field == Field::VlanVid { value | VID_PRESENT } else { value };
    Ok(Action::SetField { field, value })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_instruction_is_refused_with_its_place() {
        let check = |instructions: Value, part: &str| {
            let problem = read(Some(&json!({ "instructions": instructions }))).unwrap_err();
            assert!(problem.detail.contains(part), "{instructions}: {}", problem.detail);
        };
        check(json!(7), "no list");
        check(json!([{}]), "[0]: type is missing");
        check(json!([{"type": "JUMP"}]), "there is no instruction \"JUMP\"");
        check(json!([{"type": "OUTPUT", "port": "x"}]), "port is no port");
        check(json!([{"type": "GROUP"}]), "groupId is missing");
        check(json!([{"type": "L2MODIFICATION", "subtype": "WEATHER"}]), "WEATHER");
        check(json!([{"type": "L2MODIFICATION", "subtype": "ETH_SRC", "mac": "x"}]), "Ethernet address");
    }

    #[test]
    fn instructions_are_read_and_shown_again() {
        let check = |instruction: Value| {
            let list = json!({ "instructions": [instruction], "deferred": [] });
            let read = read(Some(&list)).unwrap_or_else(|problem| panic!("{list}: {}", problem.detail));
            assert_eq!(shown(&read), list);
        };
        check(json!({"type": "OUTPUT", "port": "2"}));
        check(json!({"type": "OUTPUT", "port": "CONTROLLER"}));
        check(json!({"type": "NOACTION"}));
        check(json!({"type": "TABLE", "tableId": 1}));
        check(json!({"type": "GROUP", "groupId": 1}));
        check(json!({"type": "METER", "meterId": "1"}));
        check(json!({"type": "L2MODIFICATION", "subtype": "ETH_SRC", "mac": "DA:F3:9B:C5:30:DE"}));
        check(json!({"type": "L2MODIFICATION", "subtype": "VLAN_PUSH", "ethernetType": "0x8100"}));
        check(json!({"type": "L2MODIFICATION", "subtype": "VLAN_ID", "vlanId": 100}));
        check(json!({"type": "L3MODIFICATION", "subtype": "IPV4_DST", "ip": "10.0.0.1"}));
        check(json!({"type": "L4MODIFICATION", "subtype": "TCP_DST", "tcpPort": 80}));
    }

    #[test]
    fn an_intent_takes_changes_of_packets_only() {
        let of = |list: Value| read_actions(Some(&json!({ "instructions": list })));
        assert!(of(json!([{"type": "TABLE", "tableId": 1}])).is_err());
        let both =
            json!([{"type": "L2MODIFICATION", "subtype": "VLAN_POP"}, {"type": "OUTPUT", "port": "1"}]);
        assert_eq!(of(both).unwrap(), [Action::PopVlan]);
    }
}
