//! The keys of each type of message, and the Rust type for them.
//!
//! Handles numbers only. The caller converts names.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::bad::BadJson;
use openflow::hex;
use openflow::message::*;

type Object = Map<String, Value>;

const MISSING: &str = "this key is missing";

/// The keys of a message's body, without version, type and xid.
pub(super) fn write(body: &Body) -> Result<Object, BadJson> {
    match body {
        Body::Hello(hello) => object(hello),
        Body::Error(error) => object(error),
        Body::EchoRequest(data) | Body::EchoReply(data) => one("data", &hex::to_text(data)),
        Body::Experimenter(experimenter) => object(experimenter),
        Body::FeaturesReply(features) => object(features),
        Body::GetConfigReply(config) | Body::SetConfig(config) => object(config),
        Body::PacketIn(packet_in) => object(packet_in),
        Body::FlowRemoved(removed) => object(removed),
        Body::PortStatus(status) => object(status),
        Body::PacketOut(packet_out) => object(packet_out),
        Body::FlowMod(flow_mod) => object(flow_mod),
        Body::GroupMod(group_mod) => object(group_mod),
        Body::PortMod(port_mod) => object(port_mod),
        Body::TableMod(table_mod) => object(table_mod),
        Body::MultipartRequest(request) => {
            Ok(multipart(request.body.word(), request.flags, write_request(&request.body)?))
        }
        Body::MultipartReply(reply) => {
            Ok(multipart(reply.body.word(), reply.flags, write_reply(&reply.body)?))
        }
        Body::QueueGetConfigRequest(request) => object(request),
        Body::QueueGetConfigReply(reply) => object(reply),
        Body::RoleRequest(role) | Body::RoleReply(role) => object(role),
        Body::GetAsyncReply(config) | Body::SetAsync(config) => object(config),
        Body::MeterMod(meter_mod) => object(meter_mod),
        Body::BundleControl(control) => object(control),
        Body::BundleAdd(add) => object(&AddKeys {
            bundle_id: add.bundle_id,
            flags: add.flags,
            message: super::to_json(&add.message),
            properties: add.properties.clone(),
        }),
        Body::FeaturesRequest
        | Body::GetConfigRequest
        | Body::BarrierRequest
        | Body::BarrierReply
        | Body::GetAsyncRequest => Ok(Object::new()),
    }
}

fn write_request(body: &RequestBody) -> Result<Object, BadJson> {
    match body {
        RequestBody::Desc => Ok(Object::new()),
        RequestBody::Flow(which) => object(which),
        RequestBody::Aggregate(which) => object(which),
        RequestBody::Table => Ok(Object::new()),
        RequestBody::PortStats(port) => one("port_no", port),
        RequestBody::Queue { port, queue_id } => object(&QueueKeys { port_no: *port, queue_id: *queue_id }),
        RequestBody::Group(group_id) => one("group_id", group_id),
        RequestBody::GroupDesc => Ok(Object::new()),
        RequestBody::GroupFeatures => Ok(Object::new()),
        RequestBody::Meter(meter_id) => one("meter_id", meter_id),
        RequestBody::MeterConfig(meter_id) => one("meter_id", meter_id),
        RequestBody::MeterFeatures => Ok(Object::new()),
        RequestBody::TableFeatures(tables) => one("tables", tables),
        RequestBody::PortDesc => Ok(Object::new()),
        RequestBody::Experimenter(experimenter) => object(experimenter),
    }
}

fn write_reply(body: &ReplyBody) -> Result<Object, BadJson> {
    match body {
        ReplyBody::Desc(desc) => object(desc),
        ReplyBody::Flow(flows) => one("flows", flows),
        ReplyBody::Aggregate(sums) => object(sums),
        ReplyBody::Table(tables) => one("tables", tables),
        ReplyBody::PortStats(ports) => one("ports", ports),
        ReplyBody::Queue(queues) => one("queues", queues),
        ReplyBody::Group(groups) => one("groups", groups),
        ReplyBody::GroupDesc(groups) => one("groups", groups),
        ReplyBody::GroupFeatures(features) => object(features),
        ReplyBody::Meter(meters) => one("meters", meters),
        ReplyBody::MeterConfig(meters) => one("meters", meters),
        ReplyBody::MeterFeatures(features) => object(features),
        ReplyBody::TableFeatures(tables) => one("tables", tables),
        ReplyBody::PortDesc(ports) => one("ports", ports),
        ReplyBody::Experimenter(experimenter) => object(experimenter),
    }
}

/// Reads the body of a message of the type `word` from its keys.
pub(super) fn read(word: &str, mut keys: Object) -> Result<Body, BadJson> {
    Ok(match word {
        "hello" => Body::Hello(all(keys)?),
        "error" => Body::Error(all(keys)?),
        "echo_request" => Body::EchoRequest(all::<Echo>(keys)?.data),
        "echo_reply" => Body::EchoReply(all::<Echo>(keys)?.data),
        "experimenter" => Body::Experimenter(all(keys)?),
        "features_request" => nothing(keys, Body::FeaturesRequest)?,
        "features_reply" => Body::FeaturesReply(all(keys)?),
        "get_config_request" => nothing(keys, Body::GetConfigRequest)?,
        "get_config_reply" => Body::GetConfigReply(all(keys)?),
        "set_config" => Body::SetConfig(all(keys)?),
        "packet_in" => Body::PacketIn(all(keys)?),
        "flow_removed" => Body::FlowRemoved(all(keys)?),
        "port_status" => Body::PortStatus(all(keys)?),
        "packet_out" => Body::PacketOut(all(keys)?),
        "flow_mod" => Body::FlowMod(all(keys)?),
        "group_mod" => Body::GroupMod(all(keys)?),
        "port_mod" => Body::PortMod(all(keys)?),
        "table_mod" => Body::TableMod(all(keys)?),
        "multipart_request" => {
            let (word, flags) = take_multipart(&mut keys)?;
            Body::MultipartRequest(MultipartRequest { flags, body: read_request(&word, keys)? })
        }
        "multipart_reply" => {
            let (word, flags) = take_multipart(&mut keys)?;
            Body::MultipartReply(MultipartReply { flags, body: read_reply(&word, keys)? })
        }
        "barrier_request" => nothing(keys, Body::BarrierRequest)?,
        "barrier_reply" => nothing(keys, Body::BarrierReply)?,
        "queue_get_config_request" => Body::QueueGetConfigRequest(all(keys)?),
        "queue_get_config_reply" => Body::QueueGetConfigReply(all(keys)?),
        "role_request" => Body::RoleRequest(all(keys)?),
        "role_reply" => Body::RoleReply(all(keys)?),
        "get_async_request" => nothing(keys, Body::GetAsyncRequest)?,
        "get_async_reply" => Body::GetAsyncReply(all(keys)?),
        "set_async" => Body::SetAsync(all(keys)?),
        "meter_mod" => Body::MeterMod(all(keys)?),
        "bundle_control" => Body::BundleControl(all(keys)?),
        "bundle_add_message" => Body::BundleAdd(read_add(keys)?),
        _ => return Err(BadJson::new("type", format!("'{word}' is no type of message"))),
    })
}

fn read_request(word: &str, mut keys: Object) -> Result<RequestBody, BadJson> {
    Ok(match word {
        "desc" => nothing(keys, RequestBody::Desc)?,
        "flow" => RequestBody::Flow(all(keys)?),
        "aggregate" => RequestBody::Aggregate(all(keys)?),
        "table" => nothing(keys, RequestBody::Table)?,
        "port_stats" => RequestBody::PortStats(only(keys, "port_no")?),
        "queue" => {
            let QueueKeys { port_no, queue_id } = all(std::mem::take(&mut keys))?;
            RequestBody::Queue { port: port_no, queue_id }
        }
        "group" => RequestBody::Group(only(keys, "group_id")?),
        "group_desc" => nothing(keys, RequestBody::GroupDesc)?,
        "group_features" => nothing(keys, RequestBody::GroupFeatures)?,
        "meter" => RequestBody::Meter(only(keys, "meter_id")?),
        "meter_config" => RequestBody::MeterConfig(only(keys, "meter_id")?),
        "meter_features" => nothing(keys, RequestBody::MeterFeatures)?,
        "table_features" => RequestBody::TableFeatures(only(keys, "tables")?),
        "port_desc" => nothing(keys, RequestBody::PortDesc)?,
        "experimenter" => RequestBody::Experimenter(all(keys)?),
        _ => return Err(no_multipart(word)),
    })
}

fn read_reply(word: &str, keys: Object) -> Result<ReplyBody, BadJson> {
    Ok(match word {
        "desc" => ReplyBody::Desc(all(keys)?),
        "flow" => ReplyBody::Flow(only(keys, "flows")?),
        "aggregate" => ReplyBody::Aggregate(all(keys)?),
        "table" => ReplyBody::Table(only(keys, "tables")?),
        "port_stats" => ReplyBody::PortStats(only(keys, "ports")?),
        "queue" => ReplyBody::Queue(only(keys, "queues")?),
        "group" => ReplyBody::Group(only(keys, "groups")?),
        "group_desc" => ReplyBody::GroupDesc(only(keys, "groups")?),
        "group_features" => ReplyBody::GroupFeatures(all(keys)?),
        "meter" => ReplyBody::Meter(only(keys, "meters")?),
        "meter_config" => ReplyBody::MeterConfig(only(keys, "meters")?),
        "meter_features" => ReplyBody::MeterFeatures(all(keys)?),
        "table_features" => ReplyBody::TableFeatures(only(keys, "tables")?),
        "port_desc" => ReplyBody::PortDesc(only(keys, "ports")?),
        "experimenter" => ReplyBody::Experimenter(all(keys)?),
        _ => return Err(no_multipart(word)),
    })
}

fn read_add(keys: Object) -> Result<BundleAdd, BadJson> {
    let AddKeys { bundle_id, flags, message, properties } = all(keys)?;
    let word = message.get("type").and_then(Value::as_str).unwrap_or_default();
    // The same for the bundled message would have no end.
    if matches!(word, "bundle_control" | "bundle_add_message") {
        return Err(BadJson::new("type", "a message of a bundle cannot be in a bundle").within("message"));
    }
    let message = super::from_json(&message).map_err(|bad| bad.within("message"))?;
    Ok(BundleAdd { bundle_id, flags, message: Box::new(message), properties })
}

/// The keys of a message that adds another to a bundle, with that one as an object.
#[derive(Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct AddKeys {
    bundle_id: u32,
    flags: u16,
    message: Value,
    properties: Vec<BundleProperty>,
}

fn no_multipart(word: &str) -> BadJson {
    BadJson::new("multipart", format!("'{word}' is no type of multipart message"))
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Echo {
    #[serde(with = "hex")]
    data: Vec<u8>,
}

#[derive(Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct QueueKeys {
    port_no: flow::PortNo,
    queue_id: u32,
}

fn object(content: &impl Serialize) -> Result<Object, BadJson> {
    match serde_json::to_value(content) {
        Ok(Value::Object(object)) => Ok(object),
        Ok(other) => Err(BadJson::new("", format!("{other} is no object"))),
        Err(error) => Err(BadJson::new("", error.to_string())),
    }
}

fn one(key: &str, content: &impl Serialize) -> Result<Object, BadJson> {
    let value = serde_json::to_value(content).map_err(|error| BadJson::new(key, error.to_string()))?;
    Ok(Object::from_iter([(key.to_owned(), value)]))
}

fn multipart(word: &str, flags: u16, body: Object) -> Object {
    let mut whole =
        Object::from_iter([("multipart".to_owned(), word.into()), ("flags".to_owned(), flags.into())]);
    whole.extend(body);
    whole
}

fn take_multipart(keys: &mut Object) -> Result<(String, u16), BadJson> {
    Ok((take(keys, "multipart")?, take(keys, "flags")?))
}

/// Removes one key and reads it.
pub(super) fn take<T: DeserializeOwned>(keys: &mut Object, key: &str) -> Result<T, BadJson> {
    let value = keys.shift_remove(key).ok_or_else(|| BadJson::new(key, MISSING))?;
    serde_path_to_error::deserialize(value).map_err(|error| in_our_words(error).within(key))
}

/// Reads the only key that is allowed.
fn only<T: DeserializeOwned>(mut keys: Object, key: &str) -> Result<T, BadJson> {
    let read = take(&mut keys, key)?;
    nothing(keys, read)
}

/// Returns `done` if no key is left.
fn nothing<T>(keys: Object, done: T) -> Result<T, BadJson> {
    match keys.keys().next() {
        None => Ok(done),
        Some(key) => Err(BadJson::new(key, "this key is unknown in a message of this type")),
    }
}

/// Reads all keys together.
fn all<T: DeserializeOwned>(keys: Object) -> Result<T, BadJson> {
    serde_path_to_error::deserialize(Value::Object(keys)).map_err(in_our_words)
}

fn in_our_words(error: serde_path_to_error::Error<serde_json::Error>) -> BadJson {
    // An empty path is written as a dot.
    let path = error.path().to_string();
    let place = if path == "." { "" } else { &path };
    let message = error.into_inner().to_string();
    // The path leads to the object. Only serde's message names the missing key.
    match message.strip_prefix("missing field `").and_then(|rest| rest.strip_suffix('`')) {
        Some(key) if place.is_empty() => BadJson::new(key, MISSING),
        Some(key) => BadJson::new(key, MISSING).within(place),
        None => BadJson::new(place, message),
    }
}
