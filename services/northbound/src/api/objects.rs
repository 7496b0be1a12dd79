//! How objects look to clients: the JSON of the view, with links to related resources.
//!
//! In: objects. Out: JSON. It looks nothing up, so a link can lead to an object that is gone meanwhile.

use burnet_sdk::DatapathId;
use burnet_sdk::view::{Key, Kind, Object};
use serde_json::{Map, Value, json};

/// The kinds whose objects this service has at hand. It asks the service `flows` for the others, of which there are too many.
pub const AT_HAND: [Kind; 6] = [Kind::Switch, Kind::Port, Kind::Link, Kind::Host, Kind::Path, Kind::Intent];

/// The beginning of all addresses.
pub const BASE: &str = "/api/v1";

/// The collection of a kind.
pub fn collection(kind: Kind) -> &'static str {
    match kind {
        Kind::Switch => "switches",
        Kind::Port => "ports",
        Kind::Link => "links",
        Kind::Host => "hosts",
        Kind::Rule => "flows",
        Kind::Group => "groups",
        Kind::Meter => "meters",
        Kind::Path => "paths",
        Kind::Intent => "intents",
    }
}

/// The name of an object within its kind.
pub fn id_of(key: Key) -> String {
    let text = key.to_string();
    // A key is its kind, a slash and the id.
    text.split_once('/').map_or_else(String::new, |(_, id)| id.to_owned())
}

/// The address of an object.
pub fn address(key: Key) -> String {
    format!("{BASE}/{}/{}", collection(key.kind()), id_of(key))
}

/// An object with its links.
pub fn shown(object: &Object) -> Value {
    let mut value = serde_json::to_value(object).unwrap_or_default();
    if let Value::Object(members) = &mut value {
        members.insert("_links".to_owned(), Value::Object(links(object)));
    }
    value
}

fn links(object: &Object) -> Map<String, Value> {
    let mut links = Map::new();
    let mut add = |role: &str, to: String| drop(links.insert(role.to_owned(), to.into()));
    add("self", address(object.key()));
    match object {
        Object::Switch(switch) => {
            for part in ["ports", "links", "hosts", "flows", "groups", "meters"] {
                add(part, part_of(switch.id, part));
            }
        }
        Object::Port(port) => add("switch", address(Key::Switch(port.id.switch))),
        Object::Link(link) => {
            add("from", address(Key::Port(link.id.from)));
            add("to", address(Key::Port(link.id.to)));
            add("reverse", address(Key::Link(link.id.reversed())));
        }
        Object::Host(host) => add("port", address(Key::Port(host.at))),
        Object::Rule(rule) => add("switch", address(Key::Switch(rule.id.switch))),
        Object::Group(group) => add("switch", address(Key::Switch(group.id.switch))),
        Object::Meter(meter) => add("switch", address(Key::Switch(meter.id.switch))),
        Object::Path(path) => add("intent", address(Key::Intent(path.intent))),
        Object::Intent(intent) => add("paths", format!("{BASE}/paths?intent={}", intent.id)),
    }
    links
}

fn part_of(switch: DatapathId, part: &str) -> String {
    format!("{}/{part}", address(Key::Switch(switch)))
}

/// What is at `/api/v1`.
pub fn index() -> Value {
    let of = |kind: &Kind| (collection(*kind).to_owned(), json!(format!("{BASE}/{}", collection(*kind))));
    let mut links: Map<String, Value> = Kind::ALL.iter().map(of).collect();
    for name in [
        "apps",
        "incidents",
        "audit",
        "topology",
        "routes",
        "port-counters",
        "stream",
        "ws",
        "node",
        "openapi.json",
    ] {
        links.insert(name.to_owned(), format!("{BASE}/{name}").into());
    }
    json!({ "_links": links })
}
