//! The interface of ONOS, for programs that were written for it.
//!
//! In: the state. Out: JSON with the names of ONOS. Members for which a node has nothing have the value that ONOS shows for a plain OpenFlow switch.

use super::context::{Answer, Answered, Context};
use super::filters::parsed;
use super::page::{key, missing};
use crate::http::{Problem, Response};
use burnet_sdk::DatapathId;
use burnet_sdk::view::{
    ConnectPoint, Host, Key, Kind, Link, LinkKind, LinkState, Port, Snapshot, Switch, SwitchState,
};
use serde_json::{Value, json};
use std::collections::BTreeMap;

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

/// `/onos/v1/links`
pub fn links(context: &Context<'_>) -> Answered {
    let device: Option<DatapathId> =
        context.parameter("device").map(|id| parsed("device", id)).transpose()?;
    let direction = context.parameter("direction").unwrap_or("ALL");
    let (out, into) = match direction {
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
    let wanted = |link: &&Link| {
        device.is_none_or(|it| out && link.id.from.switch == it || into && link.id.to.switch == it)
    };
    let links: Vec<_> = context.state.view.links().filter(wanted).map(link).collect();
    ready(&json!({ "links": links }))
}

/// `/onos/v1/hosts`
pub fn hosts(context: &Context<'_>) -> Answered {
    let hosts: Vec<_> = context.state.view.hosts().map(host).collect();
    ready(&json!({ "hosts": hosts }))
}

/// `/onos/v1/hosts/{id}`: the Ethernet address, a slash, and the VLAN or `None`.
pub fn one_host(context: &Context<'_>) -> Answered {
    let id = match context.id.split_once('/') {
        Some((mac, "None" | "-1")) => mac.to_owned(),
        Some((mac, vlan)) => format!("{mac}.{vlan}"),
        None => context.id.to_owned(),
    };
    let key = key(Kind::Host, &id)?;
    let Key::Host(id) = key else { return Err(missing(key)) };
    ready(&host(context.state.view.host(id).ok_or_else(|| missing(key))?))
}

/// `/onos/v1/topology`
pub fn topology(context: &Context<'_>) -> Answered {
    let view = &context.state.view;
    let up = |link: &&Link| link.state == LinkState::Up;
    ready(&json!({
        "time": view.version(),
        "devices": view.switches().filter(|it| it.state == SwitchState::Up).count(),
        "links": view.links().filter(up).count(),
        "clusters": clusters(view),
    }))
}

/// How many parts the network has that no link joins.
fn clusters(view: &Snapshot) -> usize {
    let up = view.switches().filter(|it| it.state == SwitchState::Up);
    let mut parent: BTreeMap<DatapathId, DatapathId> = up.map(|it| (it.id, it.id)).collect();
    let mut parts = parent.len();
    for link in view.links().filter(|it| it.state == LinkState::Up) {
        let (one, two) = (root(&parent, link.id.from.switch), root(&parent, link.id.to.switch));
        if let Some((one, two)) = one.zip(two).filter(|(one, two)| one != two) {
            parent.insert(one, two);
            parts -= 1;
        }
    }
    parts
}

fn root(parent: &BTreeMap<DatapathId, DatapathId>, of: DatapathId) -> Option<DatapathId> {
    let mut at = of;
    loop {
        let next = *parent.get(&at)?;
        if next == at {
            return Some(at);
        }
        at = next;
    }
}

fn switch<'a>(context: &'a Context<'_>) -> Result<&'a Switch, Problem> {
    let key = key(Kind::Switch, context.id)?;
    let Key::Switch(id) = key else { return Err(missing(key)) };
    context.state.view.switch(id).ok_or_else(|| missing(key))
}

fn device(switch: &Switch) -> Value {
    let of = |name: &str| switch.description.get(name).map_or("", String::as_str);
    let is_up = switch.state == SwitchState::Up;
    json!({
        "id": switch.id.to_string(),
        "type": "SWITCH",
        "available": is_up,
        "role": if is_up { "MASTER" } else { "NONE" },
        "mfr": of("manufacturer"),
        "hw": of("hardware"),
        "sw": of("software"),
        "serial": of("serial_number"),
        "driver": "default",
        "chassisId": format!("{:x}", switch.id.0),
        "lastUpdate": switch.since_ms.to_string(),
        "humanReadableLastUpdate": if is_up { "connected" } else { "disconnected" },
        "annotations": annotations(&switch.annotations, [
            ("protocol", format!("OF_{}", switch.openflow.replace('.', ""))),
            ("datapathDescription", of("datapath").to_owned()),
        ]),
    })
}

fn annotations<const N: usize>(notes: &BTreeMap<String, String>, own: [(&str, String); N]) -> Value {
    let own = own.into_iter().map(|(name, value)| (name.to_owned(), value));
    own.chain(notes.clone())
        .map(|(name, value)| (name, Value::from(value)))
        .collect::<serde_json::Map<_, _>>()
        .into()
}

fn port(port: &Port) -> Value {
    json!({
        "element": port.id.switch.to_string(),
        "port": port_number(port.id),
        "isEnabled": port.live,
        "type": "copper",
        "portSpeed": port.speed_kbps / 1_000,
        "annotations": annotations(&port.annotations, [
            ("adminState", if port.enabled { "enabled" } else { "disabled" }.to_owned()),
            ("portMac", port.mac.to_string()),
            ("portName", port.name.clone()),
        ]),
    })
}

/// ONOS shows reserved ports by their names in small letters.
fn port_number(at: ConnectPoint) -> String {
    at.port.reserved_name().map_or_else(|| at.port.0.to_string(), str::to_lowercase)
}

fn end(at: ConnectPoint) -> Value {
    json!({ "port": port_number(at), "device": at.switch.to_string() })
}

fn link(link: &Link) -> Value {
    json!({
        "src": end(link.id.from),
        "dst": end(link.id.to),
        "type": if link.found == LinkKind::Indirect { "INDIRECT" } else { "DIRECT" },
        "state": if link.state == LinkState::Up { "ACTIVE" } else { "INACTIVE" },
    })
}

fn host(host: &Host) -> Value {
    let vlan = host.id.vlan.map_or_else(|| "None".to_owned(), |vlan| vlan.to_string());
    json!({
        "id": format!("{}/{vlan}", host.id.mac.to_string().to_uppercase()),
        "mac": host.id.mac.to_string().to_uppercase(),
        "vlan": vlan,
        "innerVlan": "None",
        "outerTpid": "0x0000",
        "configured": host.configured,
        "suspended": false,
        "ipAddresses": host.addresses,
        "locations": [{ "elementId": host.at.switch.to_string(), "port": port_number(host.at) }],
    })
}
