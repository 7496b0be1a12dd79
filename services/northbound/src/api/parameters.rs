//! The forms of parameters, for the description of the interface.
//!
//! In: the path of a resource and the name of a parameter. Out: a schema: what it lets through, the resource accepts.

use serde_json::{Value, json};

/// A datapath id in each of its forms.
const SWITCH: &str =
    "((of:|0x)[0-9a-fA-F]{1,16}|[0-9]{1,18}|[0-9a-fA-F]{16}|([0-9a-fA-F]{2}:){7}[0-9a-fA-F]{2})";

/// The number of a port.
const NUMBER: &str = "[1-9][0-9]{0,8}";

/// An Ethernet address of a single host, and a VLAN.
const HOST: &str = "[0-9a-f][02468ace](:[0-9a-f]{2}){5}([.][1-9][0-9]{0,2})?";

/// The schema of a parameter.
pub fn parameter_schema(path: &str, name: &str) -> Value {
    match name {
        "limit" => json!({ "type": "integer", "minimum": 1, "maximum": super::page::LIMIT_MAX }),
        "after" => after(path),
        // A file, or a version of it.
        "id" if path == "/api/v1/network-files/{id}" => pattern("[a-z0-9-]{1,24}(/[0-9]{1,18})?"),
        "id" if path == "/api/v1/rule-sets/{id}" => set_name(),
        "id" => json!({ "type": "string", "minLength": 1 }),
        "since_s" => json!({ "type": "integer", "minimum": 1, "maximum": super::slice_vnics::SINCE_S_MAX }),
        "k" => json!({ "type": "integer", "minimum": 1, "maximum": paths_contract::WAYS_MAX }),
        "table_id" => json!({ "type": "integer", "minimum": 0, "maximum": 255 }),
        "vlan" => json!({ "type": "integer", "minimum": 1, "maximum": 4094 }),
        "bandwidth_kbps" | "latency_us_max" | "intent" => {
            json!({ "type": "integer", "minimum": 0, "maximum": u64::MAX })
        }
        "live" | "changes_only" => json!({ "type": "boolean" }),
        "address" => json!({ "type": "string", "anyOf": [{ "format": "ipv4" }, { "format": "ipv6" }] }),
        "mac" => pattern("[0-9a-f]{2}(:[0-9a-f]{2}){5}"),
        "at" => pattern(&port()),
        "from" | "to" if path == "/api/v1/explain" => end(),
        "from" | "to" => pattern(SWITCH),
        "packet" => json!({
            "type": "string",
            "maxLength": 4096,
            "description": "Fields in the syntax of ovs-ofctl. It is needed if from and to are not both hosts.",
            "examples": ["ip", "ip_dst=10.0.0.2,tcp_dst=80", "arp,nw_ttl=1"],
        }),
        "switch" if path != "/api/v1/audit" => pattern(SWITCH),
        "found" => words(&["direct", "indirect", "static"]),
        "choice" => words(&["equal", "link_disjoint", "switch_disjoint"]),
        "kinds" => {
            let one = "(switch|port|link|host|path|intent|counters|incident|slice)";
            pattern(&format!("{one}(,{one})*"))
        }
        "state" => state(path),
        _ => json!({ "type": "string" }),
    }
}

fn pattern(pattern: &str) -> Value {
    json!({ "type": "string", "pattern": format!("^{pattern}$") })
}

/// The name of a set: 64 bytes. A letter beyond ASCII has up to four.
fn set_name() -> Value {
    let plain = json!({ "pattern": "^[ -~]{1,64}$" });
    let any = json!({ "pattern": "^[^\\u0000-\\u001f\\u007f-\\u009f]{1,16}$" });
    json!({ "type": "string", "anyOf": [plain, any] })
}

/// A host by its id or its address, or a connect point.
fn end() -> Value {
    let text = |pattern: String| json!({ "pattern": format!("^{pattern}$") });
    let host = text(format!("(?!00:00:00:00:00:00){HOST}"));
    json!({ "type": "string", "anyOf": [host, { "format": "ipv4" }, { "format": "ipv6" }, text(port())] })
}

fn port() -> String {
    format!("{SWITCH}/{NUMBER}")
}

fn words(words: &[&str]) -> Value {
    json!({ "type": "string", "enum": words })
}

/// The last part of the path says which collection it is.
fn collection(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or_default()
}

fn after(path: &str) -> Value {
    match collection(path) {
        "switches" => pattern(SWITCH),
        "ports" => pattern(&port()),
        "links" => pattern(&format!("{}-{}", port(), port())),
        "hosts" => pattern(HOST),
        "paths" => pattern("[0-9]{1,10}[.][0-9]{1,3}"),
        "intents" | "audit" => json!({ "type": "integer", "minimum": 0, "maximum": u64::MAX }),
        "incidents" => pattern("[0-9]{1,15}[.][a-z0-9-]+"),
        "flows" => pattern(&format!("{SWITCH}/[0-9a-f]{{16}}")),
        "groups" | "meters" => pattern(&port()),
        _ => json!({ "type": "string" }),
    }
}

fn state(path: &str) -> Value {
    match collection(path) {
        "switches" | "links" => words(&["up", "down"]),
        "intents" => words(&[
            "requested",
            "compiling",
            "installing",
            "installed",
            "rerouting",
            "waiting",
            "failed",
            "withdrawing",
        ]),
        "flows" | "groups" | "meters" => words(&["pending", "installed", "waiting", "failed", "removing"]),
        _ => json!({ "type": "string" }),
    }
}
