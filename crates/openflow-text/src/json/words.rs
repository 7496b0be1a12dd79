//! Converts numbers to names and back in the JSON of a message.
//!
//! Goes through the object by [`super::vocabulary`]'s table. Match, actions and instructions belong to `flow` and stay
//! unchanged.

use flow::Field;
use flow::field::CLASS_BASIC;
use serde_json::{Map, Value};

use super::bad::BadJson;
use super::vocabulary::{Names, Vocabulary, vocabulary};
use openflow::version::Version;

/// Keys whose values are written and read by `flow`.
const FLOWS_OWN: [&str; 3] = ["match", "actions", "instructions"];

/// Replaces numbers by names if they have names.
pub(super) fn to_names(version: Version, scope: &str, object: &mut Map<String, Value>) {
    for (key, value) in object.iter_mut() {
        match vocabulary(version, scope, key) {
            Some(words) => name(words, value),
            None => each_inner(scope, key, value, |inner, _, object| {
                to_names(version, inner, object);
                Ok(())
            })
            .unwrap_or(()),
        }
    }
}

/// Replaces names by numbers. Numbers stay.
pub(super) fn to_numbers(
    version: Version,
    scope: &str,
    object: &mut Map<String, Value>,
) -> Result<(), BadJson> {
    for (key, value) in object.iter_mut() {
        match vocabulary(version, scope, key) {
            Some(words) => number(words, value).map_err(|bad| bad.within(key))?,
            None => each_inner(scope, key, value, |inner, place, object| {
                to_numbers(version, inner, object).map_err(|bad| bad.within(place))
            })?,
        }
    }
    Ok(())
}

/// Calls `each` for `value` and every object in it, with its scope and its place.
fn each_inner(
    scope: &str,
    key: &str,
    value: &mut Value,
    mut each: impl FnMut(&str, &str, &mut Map<String, Value>) -> Result<(), BadJson>,
) -> Result<(), BadJson> {
    let of_a_table = scope.starts_with("properties");
    // A bundled message is an object of its own, with names already.
    let is_bundled = (scope, key) == ("bundle_add_message", "message");
    if FLOWS_OWN.contains(&key) && !of_a_table || is_bundled {
        return Ok(());
    }
    let inner = match (scope, key) {
        // Queues and bundles have properties too, and none of their numbers has a name.
        ("queues", "properties") => "queue_properties".to_owned(),
        ("bundle_control" | "bundle_add_message", "properties") => "bundle_properties".to_owned(),
        _ if of_a_table => format!("{scope}.{key}"),
        _ => key.to_owned(),
    };
    match value {
        Value::Object(object) => each(&inner, key, object),
        Value::Array(values) => values.iter_mut().enumerate().try_for_each(|(index, value)| match value {
            Value::Object(object) => each(&inner, &format!("{key}[{index}]"), object),
            _ => Ok(()),
        }),
        _ => Ok(()),
    }
}

fn name(words: Vocabulary, value: &mut Value) {
    match (words, value) {
        (Vocabulary::One(names), value) => {
            let found = value.as_u64().and_then(|number| names.iter().find(|(there, _)| *there == number));
            if let Some((_, name)) = found {
                *value = Value::from(*name);
            }
        }
        (Vocabulary::Bits(names), value) => {
            if let Some(bits) = value.as_u64() {
                *value = names_of_bits(names, bits);
            }
        }
        (Vocabulary::EachBits(names), Value::Array(values)) => {
            values.iter_mut().for_each(|value| name(Vocabulary::Bits(names), value));
        }
        (Vocabulary::EachOxmHeader, Value::Array(values)) => {
            for value in values {
                if let Some(name) = value.as_u64().and_then(name_of_oxm_header) {
                    *value = Value::from(name);
                }
            }
        }
        _ => {}
    }
}

fn names_of_bits(names: Names, bits: u64) -> Value {
    let known = names.iter().filter(|(bit, _)| bits & bit != 0);
    let rest = names.iter().fold(bits, |rest, (bit, _)| rest & !bit);
    let mut list: Vec<Value> = known.map(|(_, name)| Value::from(*name)).collect();
    if rest != 0 {
        list.push(Value::from(rest));
    }
    Value::Array(list)
}

fn name_of_oxm_header(header: u64) -> Option<String> {
    let field = Field::all()
        .find(|field| header == oxm_header(*field, false) || header == oxm_header(*field, true))?;
    let masked = header == oxm_header(field, true);
    Some(format!("{}{}", field.name(), if masked { "/mask" } else { "" }))
}

fn oxm_header(field: Field, masked: bool) -> u64 {
    let length = field.bytes() as u64 * if masked { 2 } else { 1 };
    u64::from(CLASS_BASIC) << 16 | u64::from(field.number()) << 9 | u64::from(masked) << 8 | length
}

fn number(words: Vocabulary, value: &mut Value) -> Result<(), BadJson> {
    match words {
        Vocabulary::One(names) => number_of_one(names, value),
        Vocabulary::Bits(names) => number_of_bits(names, value),
        Vocabulary::EachBits(names) => each_element(value, |value| number_of_bits(names, value)),
        Vocabulary::EachOxmHeader => each_element(value, number_of_oxm_header),
    }
}

fn each_element(
    value: &mut Value,
    mut read: impl FnMut(&mut Value) -> Result<(), BadJson>,
) -> Result<(), BadJson> {
    let Value::Array(values) = value else { return Ok(()) };
    values
        .iter_mut()
        .enumerate()
        .try_for_each(|(index, value)| read(value).map_err(|bad| bad.within(&format!("[{index}]"))))
}

fn number_of_one(names: Names, value: &mut Value) -> Result<(), BadJson> {
    if let Value::String(word) = &*value {
        *value = Value::from(look_up(names, word)?);
    }
    Ok(())
}

fn number_of_bits(names: Names, value: &mut Value) -> Result<(), BadJson> {
    let Value::Array(list) = &*value else { return Ok(()) };
    let mut bits = 0;
    for (index, word) in list.iter().enumerate() {
        bits |= match word {
            Value::String(word) => look_up(names, word).map_err(|bad| bad.within(&format!("[{index}]")))?,
            _ => word.as_u64().ok_or_else(|| {
                BadJson::new(
                    format!("[{index}]"),
                    "expected the name of a bit, or a number for the bits without one",
                )
            })?,
        };
    }
    *value = Value::from(bits);
    Ok(())
}

fn look_up(names: Names, word: &str) -> Result<u64, BadJson> {
    names.iter().find(|(_, name)| *name == word).map(|(number, _)| *number).ok_or_else(|| {
        let known: Vec<&str> = names.iter().map(|(_, name)| *name).collect();
        BadJson::new("", format!("'{word}' is unknown: write a number or one of {}", known.join(", ")))
    })
}

fn number_of_oxm_header(value: &mut Value) -> Result<(), BadJson> {
    let Value::String(word) = &*value else { return Ok(()) };
    let (name, masked) = match word.strip_suffix("/mask") {
        Some(name) => (name, true),
        None => (word.as_str(), false),
    };
    let field = Field::from_name(name).ok_or_else(|| {
        BadJson::new("", format!("'{word}' is no field of OpenFlow 1.3: write its name or the header"))
    })?;
    *value = Value::from(oxm_header(field, masked));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(scope: &str, numbers: Value, names: Value) {
        let (Value::Object(mut object), Value::Object(named)) = (numbers.clone(), names) else {
            panic!("give objects")
        };
        to_names(Version::V1_3, scope, &mut object);
        assert_eq!(object, named);
        to_numbers(Version::V1_3, scope, &mut object).unwrap();
        assert_eq!(Value::Object(object), numbers);
    }

    fn refused(scope: &str, object: Value, key: &str) -> String {
        let Value::Object(mut object) = object else { panic!("give an object") };
        let bad = to_numbers(Version::V1_3, scope, &mut object).unwrap_err();
        assert_eq!(bad.key, key);
        bad.message
    }

    #[test]
    fn a_word_that_nobody_knows_is_refused_with_those_that_are_known() {
        let message = refused("packet_in", json!({"reason": "bored"}), "reason");
        assert_eq!(message, "'bored' is unknown: write a number or one of no_match, action, invalid_ttl");
        refused("flow_mod", json!({"flags": ["send_flow_rem", "x"]}), "flags[1]");
        refused("flow_mod", json!({"flags": [-1]}), "flags[0]");
        refused("set_async", json!({"packet_in_mask": [["no_match"], ["x"]]}), "packet_in_mask[1][0]");
        refused("port_desc", json!({"ports": [{"state": ["x"]}]}), "ports[0].state[0]");
        let properties = json!({"tables": [{"properties": [{"oxm": {"oxm_ids": ["x"]}}]}]});
        refused("table_features", properties, "tables[0].properties[0].oxm.oxm_ids[0]");
    }

    #[test]
    fn numbers_without_a_name_stay_numbers() {
        check("packet_in", json!({"reason": 9}), json!({"reason": 9}));
        check("flow_mod", json!({"flags": 0x8001}), json!({"flags": ["send_flow_rem", 0x8000]}));
        check("flow_mod", json!({"flags": 0}), json!({"flags": []}));
    }

    #[test]
    fn numbers_with_a_name_get_it() {
        check(
            "flow_mod",
            json!({"command": 2, "table_id": 255}),
            json!({"command": "modify_strict", "table_id": "all"}),
        );
        check(
            "set_async",
            json!({"packet_in_mask": [3, 0]}),
            json!({"packet_in_mask": [["no_match", "action"], []]}),
        );
        check("port_desc", json!({"ports": [{"config": 1}]}), json!({"ports": [{"config": ["port_down"]}]}));
        check(
            "table_features",
            json!({"tables": [{"properties": [{"actions": {"type": 5, "ids": [{"type": 22}]}}]}]}),
            json!({"tables": [{"properties": [{"actions": {"type": "write_actions_miss", "ids": [{"type": "group"}]}}]}]}),
        );
        check(
            "table_features",
            json!({"tables": [{"properties": [{"oxm": {"type": 8, "oxm_ids": [0x8000_0004u32, 0x8000_070cu32, 7]}}]}]}),
            json!({"tables": [{"properties": [{"oxm": {"type": "match", "oxm_ids": ["in_port", "eth_dst/mask", 7]}}]}]}),
        );
    }

    #[test]
    fn what_is_flows_own_is_left_alone() {
        check("flow_mod", json!({"match": {"table_id": 255}}), json!({"match": {"table_id": 255}}));
        check(
            "queue",
            json!({"queues": [{"properties": [{"unknown": {"type": 1}}]}]}),
            json!({"queues": [{"properties": [{"unknown": {"type": 1}}]}]}),
        );
        check(
            "bundle_add_message",
            json!({"message": {"table_id": 255}, "properties": [{"unknown": {"type": 1}}]}),
            json!({"message": {"table_id": 255}, "properties": [{"unknown": {"type": 1}}]}),
        );
    }
}
