//! Instructions in JSON.

use super::object::Object;
use crate::action::Action;
use crate::instruction::Instruction;
use crate::value;
use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};
use serde::ser::{Serialize, SerializeMap, Serializer};
use std::fmt;

/// An object whose `type` is the specification's name in lower case.
///
/// ```
/// use flow::{Action, Instruction, PortNo};
/// let flood = Instruction::ApplyActions(vec![Action::output(PortNo::FLOOD)]);
/// let json = r#"{"type":"apply_actions","actions":[{"type":"output","port":"FLOOD","max_len":0}]}"#;
/// assert_eq!(serde_json::to_string(&flood).unwrap(), json);
/// assert_eq!(serde_json::from_str::<Instruction>(json).unwrap(), flood);
/// ```
impl Serialize for Instruction {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        match self {
            Instruction::GotoTable(table_id) => {
                map.serialize_entry("type", "goto_table")?;
                map.serialize_entry("table_id", table_id)?;
            }
            Instruction::WriteMetadata { metadata, mask } => {
                map.serialize_entry("type", "write_metadata")?;
                map.serialize_entry("metadata", &format!("{metadata:#x}"))?;
                map.serialize_entry("mask", &format!("{mask:#x}"))?;
            }
            Instruction::WriteActions(actions) => {
                map.serialize_entry("type", "write_actions")?;
                map.serialize_entry("actions", actions)?;
            }
            Instruction::ApplyActions(actions) => {
                map.serialize_entry("type", "apply_actions")?;
                map.serialize_entry("actions", actions)?;
            }
            Instruction::ClearActions => map.serialize_entry("type", "clear_actions")?,
            Instruction::Meter(meter_id) => {
                map.serialize_entry("type", "meter")?;
                map.serialize_entry("meter_id", meter_id)?;
            }
            Instruction::Experimenter { experimenter, body } => {
                map.serialize_entry("type", "experimenter")?;
                map.serialize_entry("experimenter", &format!("{experimenter:#010x}"))?;
                map.serialize_entry("body", &value::show_hex(body))?;
            }
        }
        map.end()
    }
}

fn read_instruction(mut object: Object, actions: Option<Vec<Action>>) -> Result<Instruction, String> {
    let has_actions = matches!(object.kind(), "write_actions" | "apply_actions");
    let actions = match (has_actions, actions) {
        (true, None) => return Err(object.fault("the key 'actions' is missing")),
        (false, Some(_)) => return Err(object.fault("the key 'actions' is unknown here")),
        (_, actions) => actions.unwrap_or_default(),
    };
    let instruction = match object.kind() {
        "goto_table" => Instruction::GotoTable(object.number("table_id")?),
        "write_metadata" => Instruction::WriteMetadata {
            metadata: object.number("metadata")?,
            mask: if object.has("mask") { object.number("mask")? } else { u64::MAX },
        },
        "write_actions" => Instruction::WriteActions(actions),
        "apply_actions" => Instruction::ApplyActions(actions),
        "clear_actions" => Instruction::ClearActions,
        "meter" => Instruction::Meter(object.number("meter_id")?),
        "experimenter" => Instruction::Experimenter {
            experimenter: object.number("experimenter")?,
            body: object.bytes("body")?,
        },
        unknown => {
            return Err(format!(
                "type: expected an instruction (apply_actions, goto_table …), found '{unknown}'"
            ));
        }
    };
    object.end(instruction)
}

struct InstructionVisitor;

impl<'de> Visitor<'de> for InstructionVisitor {
    type Value = Instruction;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an instruction: an object with a type")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Instruction, A::Error> {
        let mut actions = None;
        let object = Object::read(map, |key, map| {
            if key != "actions" {
                return Ok(false);
            }
            if actions.is_some() {
                return Err(A::Error::custom("the key 'actions' appears twice"));
            }
            actions = Some(map.next_value()?);
            Ok(true)
        })?;
        read_instruction(object, actions).map_err(A::Error::custom)
    }
}

impl<'de> Deserialize<'de> for Instruction {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(InstructionVisitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check_refused(json: &str, words: &[&str]) {
        let refused = serde_json::from_str::<Instruction>(json).unwrap_err().to_string();
        assert!(words.iter().all(|word| refused.contains(word)), "{refused}");
    }

    #[test]
    fn wrong_input_is_refused_by_its_key() {
        check_refused(r#"{"type":"goto"}"#, &["type", "goto_table", "'goto'"]);
        check_refused(r#"{"type":"goto_table","table_id":256}"#, &["table_id", "8 bits"]);
        check_refused(r#"{"type":"apply_actions"}"#, &["'actions' is missing"]);
        check_refused(r#"{"type":"meter","meter_id":1,"actions":[]}"#, &["'actions' is unknown"]);
        check_refused(r#"{"type":"apply_actions","actions":[{"type":"group"}]}"#, &["group", "'group_id'"]);
        check_refused(r#"{"type":"apply_actions","actions":[],"actions":[]}"#, &["'actions'", "twice"]);
        check_refused(
            r#"{"type":"write_metadata","metadata":"0x10000000000000000"}"#,
            &["metadata", "64 bits"],
        );
    }

    proptest! {
        #[test]
        fn instructions_come_back(instructions in crate::arbitrary::instructions()) {
            let json = serde_json::to_string(&instructions).unwrap();
            prop_assert_eq!(serde_json::from_str::<Vec<Instruction>>(&json).unwrap(), instructions);
        }
    }
}
