//! How objects look to clients: the JSON of the view, with links to related resources.
//!
//! In: objects. Out: JSON. It looks nothing up, so a link can lead to an object that is gone meanwhile.

use burnet_sdk::view::{Key, Kind, Object};
use serde_json::{Map, Value, json};
use std::io::Write;

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

/// Appends an object with its links, as JSON. It makes no tree of values: a page has up to a thousand objects.
pub fn write_shown(object: &Object, out: &mut Vec<u8>) {
    let start = out.len();
    // Only maps whose keys are no texts can fail.
    if serde_json::to_writer(&mut *out, object).is_err() || out.pop() != Some(b'}') {
        out.truncate(start);
        out.extend_from_slice(b"{}");
        return;
    }
    out.extend_from_slice(b",\"_links\":{");
    write_links(object, out);
    out.extend_from_slice(b"}}");
}

/// An object with its links, as JSON.
pub fn shown(object: &Object) -> Vec<u8> {
    let mut out = Vec::with_capacity(OBJECT_BYTES);
    write_shown(object, &mut out);
    out
}

/// About as long as an object with its links is.
pub const OBJECT_BYTES: usize = 640;

/// The keys of objects have letters, digits and `-./:`, so nothing in a link has to be escaped.
fn write_links(object: &Object, out: &mut Vec<u8>) {
    // Writing to a vector cannot fail.
    let mut add = |role: &str, to: std::fmt::Arguments<'_>| drop(write!(out, "\"{role}\":\"{to}\","));
    let own = address(object.key());
    add("self", format_args!("{own}"));
    match object {
        Object::Switch(_) => {
            for part in ["ports", "links", "hosts", "flows", "groups", "meters"] {
                add(part, format_args!("{own}/{part}"));
            }
        }
        Object::Port(port) => add("switch", format_args!("{}", address(Key::Switch(port.id.switch)))),
        Object::Link(link) => {
            add("from", format_args!("{}", address(Key::Port(link.id.from))));
            add("to", format_args!("{}", address(Key::Port(link.id.to))));
            add("reverse", format_args!("{}", address(Key::Link(link.id.reversed()))));
        }
        Object::Host(host) => add("port", format_args!("{}", address(Key::Port(host.at)))),
        Object::Rule(rule) => add("switch", format_args!("{}", address(Key::Switch(rule.id.switch)))),
        Object::Group(group) => add("switch", format_args!("{}", address(Key::Switch(group.id.switch)))),
        Object::Meter(meter) => add("switch", format_args!("{}", address(Key::Switch(meter.id.switch)))),
        Object::Path(path) => add("intent", format_args!("{}", address(Key::Intent(path.intent)))),
        Object::Intent(intent) => add("paths", format_args!("{BASE}/paths?intent={}", intent.id)),
    }
    // The comma behind the last one.
    out.pop();
}

/// A page of objects as JSON: its items, more members, and the address of the next page. `more` are members with commas before them.
pub fn page_of<'o>(
    objects: impl ExactSizeIterator<Item = &'o Object>,
    next: Option<&str>,
    more: &str,
) -> Vec<u8> {
    let mut out = Vec::with_capacity(objects.len() * OBJECT_BYTES + 128);
    out.extend_from_slice(b"{\"items\":[");
    for (number, object) in objects.enumerate() {
        if number > 0 {
            out.push(b',');
        }
        write_shown(object, &mut out);
    }
    out.push(b']');
    out.extend_from_slice(more.as_bytes());
    if let Some(next) = next {
        out.extend_from_slice(b",\"next\":");
        // A text can always be written.
        drop(serde_json::to_writer(&mut out, next));
    }
    out.push(b'}');
    out
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

#[cfg(test)]
mod tests {
    use super::*;

    /// An object as JSON, with these members besides its kind.
    fn object(kind: &str, members: Value) -> Object {
        let mut value = json!({ "kind": kind });
        if let (Value::Object(all), Value::Object(members)) = (&mut value, members) {
            all.extend(members);
        }
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn an_object_is_shown_as_it_is_with_links_to_what_belongs_to_it() {
        let check = |object: Object, links: Value| {
            let mut expected = serde_json::to_value(&object).unwrap();
            expected["_links"] = links;
            let found: Value = serde_json::from_slice(&shown(&object)).unwrap();
            assert_eq!(found, expected);
        };
        let intent = json!({"id": 7, "owner": "a\"b", "state": "installed", "type": "host_to_host", "one": "00:00:00:00:00:01",
                            "two": "00:00:00:00:00:02", "priority": 20000, "protection": "restored", "since_ms": 1});
        check(
            object("intent", intent),
            json!({"self": "/api/v1/intents/7", "paths": "/api/v1/paths?intent=7"}),
        );
        let host =
            json!({"id": "00:00:00:00:00:01.7", "addresses": ["10.0.0.1"], "at": "2/1", "since_ms": 1});
        let host_links = json!({"self": "/api/v1/hosts/00:00:00:00:00:01.7", "port": "/api/v1/ports/of:0000000000000002/1"});
        check(object("host", host), host_links);
    }

    #[test]
    fn a_page_has_commas_only_between_its_objects() {
        let host =
            object("host", json!({"id": "00:00:00:00:00:01", "addresses": [], "at": "2/1", "since_ms": 1}));
        for count in 0..3 {
            let objects = vec![host.clone(); count];
            let next = (count == 2).then_some("/x?a=\"");
            let page: Value = serde_json::from_slice(&page_of(objects.iter(), next, ",\"total\":9")).unwrap();
            assert_eq!((page["items"].as_array().unwrap().len(), &page["total"]), (count, &json!(9)));
            assert_eq!(page.get("next").and_then(Value::as_str), next);
        }
    }
}
