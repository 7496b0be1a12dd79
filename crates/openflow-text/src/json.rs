//! Messages as JSON: one object per message.
//!
//! ```text
//!   {"version":"1.3","type":"flow_mod","xid":2,"command":"add","priority":100,"match":{…},"instructions":[…],…}
//! ```
//!
//! Keys are the specification's names of the fields (`match`, `idle_timeout`, `duration_sec`). Numbers with names in
//! the specification are written by name (`"command":"add"`). Sets of bits are lists of names, with one number for
//! unnamed bits (`"flags":["send_flow_rem",32768]`). Bytes are hexadecimal digits. Readers also accept the number in
//! place of the name. Every printed key is required, and no other key is accepted. The error names the key.
//!
//! The object has the meaning of a message. If its bytes have another valid form than ours (nonzero padding, another
//! order), the key `wire` has them too, so the bytes come back exactly.
//!
//! Never parses text: input and output are values of `serde_json`.

mod bad;
mod body;
pub(crate) mod vocabulary;
mod wire;
mod words;

pub use bad::BadJson;
pub use wire::{bytes_of, describe, error_to_json};

use serde_json::{Map, Value};

use openflow::message::Message;
use openflow::names;
use openflow::version::Version;

/// The message as an object.
pub fn to_json(message: &Message) -> Value {
    let word = message.body.type_word();
    let mut keys = Map::from_iter([
        ("version".to_owned(), message.version.to_string().into()),
        ("type".to_owned(), word.into()),
        ("xid".to_owned(), message.xid.into()),
    ]);
    // Everything in a message has a form in JSON. Otherwise the object would have an error.
    let mut body = body::write(&message.body)
        .unwrap_or_else(|bad| Map::from_iter([("unwritable".to_owned(), bad.to_string().into())]));
    for scope in scopes(word, &body) {
        words::to_names(message.version, &scope, &mut body);
    }
    if word == "error" {
        name_error(message.version, &mut body);
    }
    keys.extend(body);
    Value::Object(keys)
}

/// The message of an object. Ignores its `wire`.
pub fn from_json(value: &Value) -> Result<Message, BadJson> {
    let Value::Object(keys) = value else {
        return Err(BadJson::new("", "a message is a JSON object"));
    };
    let mut keys = keys.clone();
    keys.shift_remove("wire");
    let version = version_named(&body::take::<String>(&mut keys, "version")?)?;
    let word: String = body::take(&mut keys, "type")?;
    let xid = body::take(&mut keys, "xid")?;
    if word == "error" {
        number_error(version, &mut keys)?;
    }
    for scope in scopes(&word, &keys) {
        words::to_numbers(version, &scope, &mut keys)?;
    }
    Ok(Message { version, xid, body: body::read(&word, keys)? })
}

/// A multipart message has the common keys and those of its own type.
fn scopes(word: &str, keys: &Map<String, Value>) -> impl Iterator<Item = String> + use<> {
    let multipart = keys.get("multipart").and_then(Value::as_str).map(str::to_owned);
    std::iter::once(word.to_owned()).chain(multipart)
}

fn version_named(name: &str) -> Result<Version, BadJson> {
    (0..=u8::MAX).map(Version).find(|version| version.to_string() == name).ok_or_else(|| {
        BadJson::new(
            "version",
            format!("'{name}' is no version: write 1.0 or 1.3 (of a hello 1.0 to 1.5, or 0x07)"),
        )
    })
}

/// The name of an error code depends on its type, so both are looked up together.
fn name_error(version: Version, keys: &mut Map<String, Value>) {
    let number =
        |key: &str| keys.get(key).and_then(Value::as_u64).and_then(|number| u16::try_from(number).ok());
    let (Some(kind), Some(code)) = (number("error_type"), number("error_code")) else { return };
    let whose = keys.get("experimenter").and_then(Value::as_u64).and_then(|whose| u32::try_from(whose).ok());
    let name = match whose {
        Some(whose) => names::experimenter_error_name(whose, code).map(str::to_owned),
        None => names::error_code_name(version, kind, code),
    };
    if let Some(name) = name {
        keys.insert("error_code".to_owned(), name.into());
    }
    if let Some(name) = names::error_type_name(version, kind) {
        keys.insert("error_type".to_owned(), name.into());
    }
}

fn number_error(version: Version, keys: &mut Map<String, Value>) -> Result<(), BadJson> {
    if let Some(Value::String(name)) = keys.get("error_type") {
        let number = names::error_type_number(version, name).ok_or_else(|| {
            BadJson::new("error_type", format!("'{name}' is no type of error of OpenFlow {version}"))
        })?;
        keys.insert("error_type".to_owned(), number.into());
    }
    if let Some(Value::String(name)) = keys.get("error_code") {
        let of_experimenter = || {
            let (_, code) = names::experimenter_error_number(name)?;
            Some((openflow::error::EXPERIMENTER, code))
        };
        let (kind, code) =
            names::error_code_number(version, name).or_else(of_experimenter).ok_or_else(|| {
                BadJson::new("error_code", format!("'{name}' is no code of an error of OpenFlow {version}"))
            })?;
        if keys.get("error_type").and_then(Value::as_u64).is_some_and(|said| said != u64::from(kind)) {
            return Err(BadJson::new("error_code", format!("'{name}' is no code of this error_type")));
        }
        keys.insert("error_code".to_owned(), code.into());
    }
    Ok(())
}
