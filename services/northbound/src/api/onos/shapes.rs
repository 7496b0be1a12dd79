//! The objects of the view as ONOS shows them.
//!
//! In: switches, ports, links, hosts. Out: JSON with the names of ONOS. Members for which a node has nothing have the value that ONOS shows for a
//! plain OpenFlow switch.

use burnet_sdk::view::{ConnectPoint, Host, HostId, Link, LinkKind, LinkState, Port, Switch, SwitchState};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// A switch.
pub fn device(switch: &Switch) -> Value {
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

/// A port.
pub fn port(port: &Port) -> Value {
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

/// An end of a link.
pub fn end(at: ConnectPoint) -> Value {
    json!({ "port": port_number(at), "device": at.switch.to_string() })
}

/// A link.
pub fn link(link: &Link) -> Value {
    json!({
        "src": end(link.id.from),
        "dst": end(link.id.to),
        "type": if link.found == LinkKind::Indirect { "INDIRECT" } else { "DIRECT" },
        "state": if link.state == LinkState::Up { "ACTIVE" } else { "INACTIVE" },
    })
}

/// The Ethernet address in capitals, a slash, and the VLAN or `None`.
pub fn host_name(id: HostId) -> String {
    let vlan = id.vlan.map_or_else(|| "None".to_owned(), |vlan| vlan.to_string());
    format!("{}/{vlan}", id.mac.to_string().to_uppercase())
}

/// A host.
pub fn host(host: &Host) -> Value {
    let vlan = host.id.vlan.map_or_else(|| "None".to_owned(), |vlan| vlan.to_string());
    json!({
        "id": host_name(host.id),
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

/// A host as ONOS writes it: the Ethernet address, a slash, and the VLAN, `None` or `-1`.
pub fn read_host(text: &str) -> Option<HostId> {
    match text.split_once('/') {
        Some((mac, "None" | "-1")) => mac.parse().ok(),
        Some((mac, vlan)) => format!("{mac}.{vlan}").parse().ok(),
        None => text.parse().ok(),
    }
}
