//! The interface of ONOS, for programs that were written for it.
//!
//! In: the state. Out: JSON with the names of ONOS. Members for which a node has nothing have the value that ONOS shows for a plain OpenFlow switch.

pub mod criteria;
pub mod flows;
pub mod instructions;
pub mod intents;
mod shapes;

use super::context::{Answer, Answered, Context};
use super::filters::parsed;
use super::page::{key, missing};
use crate::http::{Problem, Response};
use burnet_sdk::DatapathId;
use burnet_sdk::view::{Key, Kind, Link, LinkState, Snapshot, Switch, SwitchState};
use serde_json::{Value, json};
use shapes::{device, host, link, port};
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
    let not_found =
        || Problem::not_found(&format!("{:?} is no host: write MAC/VLAN or MAC/None", context.id));
    let key = Key::Host(shapes::read_host(context.id).ok_or_else(not_found)?);
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
