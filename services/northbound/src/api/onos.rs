//! The interface of ONOS, for programs that were written for it.
//!
//! In: the state. Out: JSON with the names of ONOS. Members for which a node has nothing have the value that ONOS shows for a plain OpenFlow switch.

pub mod criteria;
mod flow_list;
pub mod flows;
pub mod hosts;
pub mod instructions;
pub mod intents;
mod shapes;
pub mod topology;

use super::annotations::OF_DISCOVERY;
use super::context::{Answer, Answered, Call, Context, Reading};
use super::filters::parsed;
use super::page::{self, connected, key, missing};
use super::refusal::refusal;
use super::writes::object;
use crate::http::{Problem, Response};
use burnet_sdk::flow::PortNo;
use burnet_sdk::view::{ConnectPoint, Key, Kind, Link, Switch};
use burnet_sdk::{DatapathId, PortMod};
use serde_json::{Value, json};
use shapes::{device, link, port};

fn ready(value: &Value) -> Answered {
    Ok(Answer::Ready(Response::value(value)))
}

/// `/onos/v1/devices`
pub fn devices(context: &Context<'_>) -> Answered {
    let devices: Vec<_> = context.state.view.switches().map(device).collect();
    ready(&json!({ "devices": devices }))
}

/// `/onos/v1/devices/{id}`
pub fn one_device(context: &Context<'_>) -> Answered {
    ready(&device(switch(context)?))
}

/// `/onos/v1/devices/{id}/ports`
pub fn device_ports(context: &Context<'_>) -> Answered {
    let switch = switch(context)?;
    let ports: Vec<_> = context.state.view.ports_of(switch.id).map(port).collect();
    let mut value = device(switch);
    if let Some(members) = value.as_object_mut() {
        members.insert("ports".to_owned(), ports.into());
    }
    ready(&value)
}

/// `/onos/v1/devices/ports`
pub fn all_ports(context: &Context<'_>) -> Answered {
    let ports: Vec<_> = context.state.view.ports().map(port).collect();
    ready(&json!({ "ports": ports }))
}

/// `DELETE /onos/v1/devices/{id}`: forgets a device that is not connected.
pub fn remove_device(context: &Context<'_>) -> Answered {
    let switch = switch(context)?;
    let (key, shown) = (Key::Switch(switch.id), device(switch));
    let read: Reading = Box::new(move |answer, payload| match answer {
        0 => Ok(Response::value(&shown)),
        answer => Err(refusal(&OF_DISCOVERY, answer, payload)),
    });
    let payload = discovery_contract::Question::Remove { key }.to_bytes();
    Ok(Answer::Call(Call { service: discovery_contract::SERVICE, payload, read }))
}

/// OFPPC_PORT_DOWN.
const PORT_DOWN: u32 = 1;

/// `POST /onos/v1/devices/{id}`: with `portstate` and a port behind the device, enables or disables the port.
pub fn change_port(context: &Context<'_>) -> Answered {
    let missing = || Problem::not_found("write the device and the port: /onos/v1/devices/of:1/portstate/2");
    let (device, rest) = context.id.split_once('/').ok_or_else(missing)?;
    let number = rest.strip_prefix("portstate/").and_then(|it| it.parse().ok()).ok_or_else(missing)?;
    let at = ConnectPoint { switch: connected(context, device)?.id, port: number };
    let port = context.state.view.port(at).ok_or_else(|| page::missing(Key::Port(at)))?;
    let body = object(context)?;
    let enabled = body.get("enabled").and_then(Value::as_bool);
    let enabled = enabled.ok_or_else(|| Problem::field("enabled", "enabled: write true or false"))?;
    let config = if enabled { 0 } else { PORT_DOWN };
    let change = PortMod { port_no: at.port, hw_addr: port.mac, config, mask: PORT_DOWN };
    Ok(Answer::Port(at.switch, change))
}

/// `/onos/v1/links`
pub fn links(context: &Context<'_>) -> Answered {
    let device: Option<DatapathId> =
        context.parameter("device").map(|id| parsed("device", id)).transpose()?;
    let port: Option<PortNo> = context.parameter("port").map(|it| parsed("port", it)).transpose()?;
    let direction = context.parameter("direction").unwrap_or("ALL").to_uppercase();
    let (out, into) = match direction.as_str() {
        "ALL" => (true, true),
        "EGRESS" => (true, false),
        "INGRESS" => (false, true),
        other => {
            return Err(Problem::parameter(
                "direction",
                format!("{other:?} is wrong: write ALL, INGRESS or EGRESS"),
            ));
        }
    };
    // Without a device, ONOS ignores the port.
    let is_there = |at: ConnectPoint| device == Some(at.switch) && port.is_none_or(|port| port == at.port);
    let wanted =
        |link: &&Link| device.is_none() || out && is_there(link.id.from) || into && is_there(link.id.to);
    let links: Vec<_> = context.state.view.links().filter(wanted).map(link).collect();
    ready(&json!({ "links": links }))
}

fn switch<'a>(context: &'a Context<'_>) -> Result<&'a Switch, Problem> {
    let key = key(Kind::Switch, context.id)?;
    let Key::Switch(id) = key else { return Err(missing(key)) };
    context.state.view.switch(id).ok_or_else(|| missing(key))
}
