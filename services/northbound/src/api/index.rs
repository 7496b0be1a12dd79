//! About the node: its resources, its counts, and the counters of ports.
//!
//! In: the state. Out: JSON.

use super::context::{Answer, Answered, Context};
use super::filters::parsed;
use super::objects;
use crate::http::Response;
use burnet_sdk::DatapathId;
use burnet_sdk::view::Kind;
use serde_json::{Map, Value, json};

/// What slices depend on.
const NETWORK: [Kind; 4] = [Kind::Switch, Kind::Port, Kind::Link, Kind::Path];

/// The addresses of the collections.
pub fn index(_: &Context<'_>) -> Answered {
    Ok(Answer::Ready(Response::value(&objects::index())))
}

/// The node: its version, how long the service runs, and how many objects it knows.
pub fn node(context: &Context<'_>) -> Answered {
    let state = context.state;
    let count = |kind: &Kind| (objects::collection(*kind).to_owned(), Value::from(state.view.count(*kind)));
    let counts: Map<String, Value> = objects::AT_HAND.iter().map(count).collect();
    Ok(Answer::Ready(Response::value(&json!({
        "version": env!("CARGO_PKG_VERSION"),
        "run": state.run,
        "role": context.role,
        "uptime_ms": state.now_ms.saturating_sub(state.started_ms),
        "counts": counts,
        "is_current": state.is_current,
        "network_version": state.version_of(&NETWORK),
        "stream_clients": state.feed.clients(),
    }))))
}

/// The counters of all ports, or of those of a switch.
pub fn port_counters(context: &Context<'_>) -> Answered {
    let switch: Option<DatapathId> =
        context.parameter("switch").map(|id| parsed("switch", id)).transpose()?;
    let counters = &context.state.counters;
    let items: Vec<_> =
        counters.iter().filter(|it| switch.is_none_or(|switch| it.id.switch == switch)).collect();
    let tag = format!("\"{}-c{}\"", context.state.run, counters.version());
    let body = json!({ "items": items, "total": items.len() });
    context.ready(Response::value(&body).tagged(tag))
}
