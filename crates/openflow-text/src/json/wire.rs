//! Converts bytes to objects and back without losing a bit.

use flow::BadInput;
use serde_json::{Value, json};

use super::{BadJson, from_json, to_json};
use openflow::hex;
use openflow::message::Message;
use openflow::names;
use openflow::version::Version;

/// The object for the bytes of one message, or `{"error":{…}}` if they are not a message.
pub fn describe(bytes: &[u8]) -> Value {
    match Message::decode(bytes) {
        Ok(message) => describe_message(&message, bytes),
        Err(bad) => error_to_json(&bad),
    }
}

fn describe_message(message: &Message, bytes: &[u8]) -> Value {
    let mut object = to_json(message);
    let mut ours = Vec::with_capacity(bytes.len());
    let same = message.encode(&mut ours).is_ok() && ours == bytes;
    if let (false, Value::Object(keys)) = (same, &mut object) {
        keys.insert("wire".to_owned(), hex::to_text(bytes).into());
    }
    object
}

/// The bytes of an object's message.
///
/// # Errors
/// The object is not a message, its version cannot express it, or `wire` is another message than the other keys.
pub fn bytes_of(object: &Value) -> Result<Vec<u8>, BadJson> {
    let message = from_json(object)?;
    match object.get("wire") {
        Some(wire) => read_wire(wire, &message).map_err(|bad| bad.within("wire")),
        None => {
            let mut bytes = Vec::new();
            message.encode(&mut bytes).map_err(|unwritable| BadJson::new("", unwritable.to_string()))?;
            Ok(bytes)
        }
    }
}

fn read_wire(wire: &Value, message: &Message) -> Result<Vec<u8>, BadJson> {
    let digits =
        wire.as_str().ok_or_else(|| BadJson::new("", "expected the message's bytes in hexadecimal"))?;
    let bytes = hex::from_text(digits).map_err(|bad| BadJson::new("", bad.to_string()))?;
    match Message::decode(&bytes) {
        Ok(said) if said == *message => Ok(bytes),
        Ok(_) => Err(BadJson::new(
            "",
            "these bytes say another message than the other keys: change both, or leave this key out",
        )),
        Err(bad) => Err(BadJson::new("", format!("these bytes are no message: {bad}"))),
    }
}

/// `{"error":{"type":"OFPET_BAD_REQUEST","type_number":1,"code":"OFPBRC_BAD_LEN","code_number":6,"offset":2,"field":"length", "message":"…"}}`:
/// names and numbers of 1.3. A number without a name replaces the name.
pub fn error_to_json(bad: &BadInput) -> Value {
    let (kind, code) = (bad.error.kind, bad.error.code);
    json!({"error": {
        "type": names::error_type_name(Version::V1_3, kind).map_or_else(|| kind.into(), Value::from),
        "type_number": kind,
        "code": names::error_code_name(Version::V1_3, kind, code).map_or_else(|| code.into(), Value::from),
        "code_number": code,
        "offset": bad.offset,
        "field": bad.field,
        "message": bad.to_string(),
    }})
}
