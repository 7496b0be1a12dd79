//! Actions in the JSON of Ryu's `ofctl_rest`.
//!
//! In: instructions of the node, or a list with Ryu's names. Out: the other of the two. An unknown action is refused: Ryu leaves it out.

use super::matches::text;
use crate::http::Problem;
use burnet_sdk::flow::{Action, Field, Instruction, PortNo};
use serde_json::{Map, Value, json};

/// The actions and instructions of an entry, as Ryu shows them in one list.
pub fn shown(instructions: &[Instruction]) -> Value {
    let mut list: Vec<Value> = Vec::new();
    for instruction in instructions {
        match instruction {
            Instruction::ApplyActions(actions) => list.extend(texts(actions)),
            Instruction::WriteActions(actions) if actions.is_empty() => {}
            Instruction::WriteActions(actions) => {
                list.push(json!({ "WRITE_ACTIONS": texts(actions).collect::<Vec<_>>() }));
            }
            Instruction::ClearActions => list.push("CLEAR_ACTIONS".into()),
            Instruction::GotoTable(table_id) => list.push(format!("GOTO_TABLE:{table_id}").into()),
            Instruction::WriteMetadata { metadata, mask: 0 } => {
                list.push(format!("WRITE_METADATA:{metadata:#x}").into());
            }
            Instruction::WriteMetadata { metadata, mask } => {
                list.push(format!("WRITE_METADATA:{metadata:#x}/{mask:#x}").into());
            }
            Instruction::Meter(meter_id) => list.push(format!("METER:{meter_id}").into()),
            Instruction::Experimenter { .. } => {}
        }
    }
    list.into()
}

/// Actions, as Ryu shows them.
pub fn texts(actions: &[Action]) -> impl Iterator<Item = Value> {
    actions.iter().map(|action| one(action).into())
}

fn one(action: &Action) -> String {
    match action {
        Action::Output { port, .. } => format!("OUTPUT:{}", named(*port)),
        Action::CopyTtlOut => "COPY_TTL_OUT".to_owned(),
        Action::CopyTtlIn => "COPY_TTL_IN".to_owned(),
        Action::SetMplsTtl(ttl) => format!("SET_MPLS_TTL:{ttl}"),
        Action::DecMplsTtl => "DEC_MPLS_TTL".to_owned(),
        Action::PushVlan(ethertype) => format!("PUSH_VLAN:{ethertype}"),
        Action::PopVlan | Action::StripVlan => "POP_VLAN".to_owned(),
        Action::PushMpls(ethertype) => format!("PUSH_MPLS:{ethertype}"),
        Action::PopMpls(ethertype) => format!("POP_MPLS:{ethertype}"),
        Action::SetQueue(queue_id) => format!("SET_QUEUE:{queue_id}"),
        Action::Group(group_id) => format!("GROUP:{group_id}"),
        Action::SetNwTtl(ttl) => format!("SET_NW_TTL:{ttl}"),
        Action::DecNwTtl => "DEC_NW_TTL".to_owned(),
        Action::SetField { field, value } => {
            format!("SET_FIELD: {{{}:{}}}", field.name(), text(*field, *value))
        }
        Action::PushPbb(ethertype) => format!("PUSH_PBB:{ethertype}"),
        Action::PopPbb => "POP_PBB".to_owned(),
        Action::Experimenter { experimenter, .. } => format!("EXPERIMENTER: {{experimenter:{experimenter}}}"),
        _ => "UNKNOWN".to_owned(),
    }
}

fn named(port: PortNo) -> String {
    port.reserved_name().map_or_else(|| port.0.to_string(), str::to_owned)
}

/// Reads a list of actions and instructions.
///
/// # Errors
/// A problem that names the action.
pub fn read(value: Option<&Value>) -> Result<Vec<Instruction>, Problem> {
    let (mut instructions, mut applied) = (Vec::new(), Vec::new());
    for (index, members) in objects(value, "actions")?.into_iter().enumerate() {
        let at = format!("actions[{index}]");
        let item = Item { members, at: &at };
        match item.kind()? {
            "WRITE_ACTIONS" => {
                instructions.push(Instruction::WriteActions(actions(item.members.get("actions"), &at)?));
            }
            "CLEAR_ACTIONS" => instructions.push(Instruction::ClearActions),
            "GOTO_TABLE" => instructions.push(Instruction::GotoTable(item.number("table_id")?)),
            "METER" => instructions.push(Instruction::Meter(item.number("meter_id")?)),
            "WRITE_METADATA" => {
                let mask = if item.has("metadata_mask") { item.number("metadata_mask")? } else { u64::MAX };
                instructions.push(Instruction::WriteMetadata { metadata: item.number("metadata")?, mask });
            }
            _ => applied.push(item.action()?),
        }
    }
    if !applied.is_empty() {
        instructions.push(Instruction::ApplyActions(applied));
    }
    Ok(instructions)
}

/// Reads a list of actions only.
pub fn actions(value: Option<&Value>, within: &str) -> Result<Vec<Action>, Problem> {
    let of = |(index, members): (usize, &Map<String, Value>)| {
        Item { members, at: &format!("{within}.actions[{index}]") }.action()
    };
    objects(value, "actions")?.into_iter().enumerate().map(of).collect()
}

/// The objects of a list.
pub fn objects<'a>(value: Option<&'a Value>, name: &str) -> Result<Vec<&'a Map<String, Value>>, Problem> {
    let wrong = || Problem::field(name, format!("{name}: it is no list of objects"));
    match value {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::Array(items)) => items.iter().map(|it| it.as_object().ok_or_else(wrong)).collect(),
        Some(_) => Err(wrong()),
    }
}

/// An object in a list, with its place.
pub struct Item<'a> {
    /// Its members.
    pub members: &'a Map<String, Value>,
    /// Where it is, for errors.
    pub at: &'a str,
}

impl Item<'_> {
    fn wrong(&self, name: &str, why: &str) -> Problem {
        let field = format!("{}.{name}", self.at);
        Problem::field(&field, format!("{field}: {why}"))
    }

    fn has(&self, name: &str) -> bool {
        self.members.contains_key(name)
    }

    fn kind(&self) -> Result<&str, Problem> {
        self.members.get("type").and_then(Value::as_str).ok_or_else(|| self.wrong("type", "it is missing"))
    }

    fn plain(&self, name: &str) -> Result<String, Problem> {
        match self.members.get(name) {
            Some(Value::String(text)) => Ok(text.clone()),
            Some(Value::Number(number)) => Ok(number.to_string()),
            Some(_) => Err(self.wrong(name, "write a number or a text")),
            None => Err(self.wrong(name, "it is missing")),
        }
    }

    /// A number: decimal, or hexadecimal as text.
    pub fn number<N: TryFrom<u64>>(&self, name: &str) -> Result<N, Problem> {
        let text = self.plain(name)?;
        let parsed = match text.strip_prefix("0x") {
            Some(digits) => u64::from_str_radix(digits, 16).ok(),
            None => text.parse().ok(),
        };
        let narrow = parsed.and_then(|number| N::try_from(number).ok());
        narrow.ok_or_else(|| self.wrong(name, &format!("{text:?} is no such number")))
    }

    /// A number, or this one if it is not there.
    pub fn number_or<N: TryFrom<u64>>(&self, name: &str, default: N) -> Result<N, Problem> {
        if self.has(name) { self.number(name) } else { Ok(default) }
    }

    /// A port, by number or name.
    pub fn port(&self, name: &str) -> Result<PortNo, Problem> {
        let text = self.plain(name)?;
        let plain = text.strip_prefix("OFPP_").unwrap_or(&text);
        plain.parse().map_err(|why| self.wrong(name, &format!("{why}")))
    }

    fn max_len(&self) -> Result<u16, Problem> {
        match self.members.get("max_len").and_then(Value::as_str) {
            Some("OFPCML_NO_BUFFER" | "NO_BUFFER") => Ok(0xffff),
            // Ryu's default is OFPCML_MAX.
            Some("OFPCML_MAX" | "MAX") => Ok(0xffe5),
            _ => self.number_or("max_len", 0xffe5),
        }
    }

    fn action(&self) -> Result<Action, Problem> {
        Ok(match self.kind()? {
            "OUTPUT" => Action::Output { port: self.port("port")?, max_len: self.max_len()? },
            "COPY_TTL_OUT" => Action::CopyTtlOut,
            "COPY_TTL_IN" => Action::CopyTtlIn,
            "SET_MPLS_TTL" => Action::SetMplsTtl(self.number("mpls_ttl")?),
            "DEC_MPLS_TTL" => Action::DecMplsTtl,
            "PUSH_VLAN" => Action::PushVlan(self.number("ethertype")?),
            "POP_VLAN" => Action::PopVlan,
            "PUSH_MPLS" => Action::PushMpls(self.number("ethertype")?),
            "POP_MPLS" => Action::PopMpls(self.number("ethertype")?),
            "SET_QUEUE" => Action::SetQueue(self.number("queue_id")?),
            "GROUP" => Action::Group(self.number("group_id")?),
            "SET_NW_TTL" => Action::SetNwTtl(self.number("nw_ttl")?),
            "DEC_NW_TTL" => Action::DecNwTtl,
            "PUSH_PBB" => Action::PushPbb(self.number("ethertype")?),
            "POP_PBB" => Action::PopPbb,
            "SET_FIELD" => self.set_field()?,
            other => return Err(self.wrong("type", &format!("there is no action {other:?}"))),
        })
    }

    fn set_field(&self) -> Result<Action, Problem> {
        let name = self.plain("field")?;
        let field = Field::from_name(&name).ok_or_else(|| self.wrong("field", "there is no such field"))?;
        let (value, mask) =
            field.read_value(&self.plain("value")?).map_err(|why| self.wrong("value", &why))?;
        match mask {
            None => Ok(Action::SetField { field, value }),
            Some(_) => Err(self.wrong("value", "OpenFlow 1.3 sets no field with a mask")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_action_is_refused_with_its_place() {
        let check = |value: Value, field: &str| {
            assert_eq!(read(Some(&value)).unwrap_err().field.as_deref(), Some(field), "{value}");
        };
        check(json!(7), "actions");
        check(json!([7]), "actions");
        check(json!([{}]), "actions[0].type");
        check(json!([{"type": "EXPLODE"}]), "actions[0].type");
        check(json!([{"type": "DEC_NW_TTL"}, {"type": "OUTPUT"}]), "actions[1].port");
        check(json!([{"type": "OUTPUT", "port": "NOWHERE"}]), "actions[0].port");
        check(json!([{"type": "GOTO_TABLE", "table_id": 256}]), "actions[0].table_id");
        check(json!([{"type": "SET_FIELD", "field": "colour", "value": 1}]), "actions[0].field");
        check(json!([{"type": "SET_FIELD", "field": "eth_dst", "value": "x"}]), "actions[0].value");
        check(
            json!([{"type": "WRITE_ACTIONS", "actions": [{"type": "GROUP"}]}]),
            "actions[0].actions[0].group_id",
        );
    }

    #[test]
    fn ryus_actions_are_read_and_shown_again() {
        let check = |value: Value, expected: Value| {
            let read = read(Some(&value)).unwrap_or_else(|problem| panic!("{value}: {}", problem.detail));
            assert_eq!(shown(&read), expected, "{value}");
        };
        check(json!([]), json!([]));
        check(json!([{"type": "OUTPUT", "port": 2}]), json!(["OUTPUT:2"]));
        check(json!([{"type": "OUTPUT", "port": "CONTROLLER"}]), json!(["OUTPUT:CONTROLLER"]));
        check(json!([{"type": "OUTPUT", "port": 4_294_967_292_u32}]), json!(["OUTPUT:ALL"]));
        check(
            json!([{"type": "PUSH_VLAN", "ethertype": 33024}, {"type": "SET_FIELD", "field": "vlan_vid", "value": 4102},
                   {"type": "OUTPUT", "port": 2}]),
            json!(["PUSH_VLAN:33024", "SET_FIELD: {vlan_vid:4102}", "OUTPUT:2"]),
        );
        check(
            json!([{"type": "SET_FIELD", "field": "ipv4_dst", "value": "10.0.0.1"}, {"type": "GOTO_TABLE", "table_id": 1}]),
            json!(["GOTO_TABLE:1", "SET_FIELD: {ipv4_dst:10.0.0.1}"]),
        );
        check(
            json!([{"type": "WRITE_METADATA", "metadata": "0x3", "metadata_mask": "0x3"}, {"type": "METER", "meter_id": 3},
                   {"type": "CLEAR_ACTIONS"}, {"type": "WRITE_ACTIONS", "actions": [{"type": "POP_VLAN"}]}]),
            json!(["WRITE_METADATA:0x3/0x3", "METER:3", "CLEAR_ACTIONS", {"WRITE_ACTIONS": ["POP_VLAN"]}]),
        );
    }
}
