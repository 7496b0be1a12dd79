//! The interface of Ryu's `rest_topology`, and what `ofctl_rest` answers without asking a switch.
//!
//! In: the state. Out: JSON with Ryu's names and number formats: datapath ids in decimal (`ofctl_rest`) or in 16 hexadecimal digits
//! (`rest_topology`). Errors are those of this interface.

use super::context::{Answer, Answered, Context};
use super::page::connected;
use crate::http::{Problem, Response};
use burnet_sdk::DatapathId;
use burnet_sdk::view::{Host, Link, LinkState, Port, Snapshot, Switch, SwitchState};
use serde_json::{Map, Value, json};
use std::net::IpAddr;

fn ready(value: &Value) -> Answered {
    Ok(Answer::Ready(Response::value(value)))
}

/// An object whose only member is the datapath id in decimal.
fn by_number(switch: DatapathId, value: Value) -> Answered {
    ready(&Value::Object(Map::from_iter([(switch.0.to_string(), value)])))
}

/// `/stats/switches`
pub fn switches(context: &Context<'_>) -> Answered {
    let up = context.state.view.switches().filter(|it| it.state == SwitchState::Up);
    ready(&up.map(|it| it.id.0).collect())
}

/// `/stats/desc/{id}`
pub fn description(context: &Context<'_>) -> Answered {
    let switch = connected(context, context.id)?;
    let of = |name: &str| switch.description.get(name).map_or("", String::as_str);
    let value = json!({
        "mfr_desc": of("manufacturer"),
        "hw_desc": of("hardware"),
        "sw_desc": of("software"),
        "serial_num": of("serial_number"),
        "dp_desc": of("datapath"),
    });
    by_number(switch.id, value)
}

/// `/v1.0/topology/switches`
pub fn topology_switches(context: &Context<'_>) -> Answered {
    let view = &context.state.view;
    let up = view.switches().filter(|it| it.state == SwitchState::Up);
    ready(&up.map(|switch| switch_value(view, switch)).collect())
}

/// `/v1.0/topology/switches/{id}`
pub fn topology_switch(context: &Context<'_>) -> Answered {
    let wanted = from_digits(context.id)?;
    let view = &context.state.view;
    let up = view.switch(wanted).filter(|it| it.state == SwitchState::Up);
    ready(&up.into_iter().map(|switch| switch_value(view, switch)).collect())
}

/// `/v1.0/topology/links`
pub fn topology_links(context: &Context<'_>) -> Answered {
    links(context, |_| true)
}

/// `/v1.0/topology/links/{id}`: the links whose source is this switch.
pub fn topology_links_of(context: &Context<'_>) -> Answered {
    let wanted = from_digits(context.id)?;
    links(context, |link| link.id.from.switch == wanted)
}

/// `/v1.0/topology/hosts`
pub fn topology_hosts(context: &Context<'_>) -> Answered {
    hosts(context, |_| true)
}

/// `/v1.0/topology/hosts/{id}`: the hosts at this switch.
pub fn topology_hosts_of(context: &Context<'_>) -> Answered {
    let wanted = from_digits(context.id)?;
    hosts(context, |host| host.at.switch == wanted)
}

fn links(context: &Context<'_>, wanted: impl Fn(&Link) -> bool) -> Answered {
    let view = &context.state.view;
    let up = view.links().filter(|it| it.state == LinkState::Up && wanted(it));
    let end = |at| view.port(at).map_or(Value::Null, port_value);
    ready(&up.map(|it| json!({ "src": end(it.id.from), "dst": end(it.id.to) })).collect())
}

fn hosts(context: &Context<'_>, wanted: impl Fn(&Host) -> bool) -> Answered {
    let view = &context.state.view;
    let value = |host: &Host| {
        let (v4, v6): (Vec<&IpAddr>, Vec<&IpAddr>) = host.addresses.iter().partition(|it| it.is_ipv4());
        let port = view.port(host.at).map_or(Value::Null, port_value);
        json!({ "mac": host.id.mac.to_string(), "ipv4": v4, "ipv6": v6, "port": port })
    };
    ready(&view.hosts().filter(|it| wanted(it)).map(value).collect())
}

fn switch_value(view: &Snapshot, switch: &Switch) -> Value {
    let ports: Vec<_> = view.ports_of(switch.id).map(port_value).collect();
    json!({ "dpid": digits(switch.id), "ports": ports })
}

fn port_value(port: &Port) -> Value {
    json!({
        "dpid": digits(port.id.switch),
        "port_no": format!("{:08x}", port.id.port.0),
        "hw_addr": port.mac.to_string(),
        "name": port.name,
    })
}

fn digits(switch: DatapathId) -> String {
    format!("{:016x}", switch.0)
}

/// `rest_topology` has ids in hexadecimal, without a prefix.
fn from_digits(text: &str) -> Result<DatapathId, Problem> {
    let id = u64::from_str_radix(text, 16).ok().filter(|_| text.len() == 16);
    let wrong = || Problem::not_found(&format!("{text:?} is no datapath id: write 16 hexadecimal digits"));
    id.map(DatapathId).ok_or_else(wrong)
}
