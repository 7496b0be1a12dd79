//! All that requests are answered from, in one place.
//!
//! In: changes of the view, counters of ports, and what the node reports of itself. Out: the same, for answers; and messages for the clients
//! of streams. It asks nobody and reads no clock.

use crate::counters::{Counters, PortCounters};
use crate::feed::{About, Feed, Message, message};
use burnet_sdk::view::{Batch, Kind, Snapshot};
use northbound_contract::AppReport;
use serde_json::json;
use std::collections::BTreeMap;

/// What the service knows.
#[derive(Default)]
pub struct State {
    /// The visible objects.
    pub view: Snapshot,
    /// Whether every service has sent its objects, and its changes arrive.
    pub is_current: bool,
    /// The version of the view at the last change of each kind.
    versions: BTreeMap<Kind, u64>,
    /// The counters of ports.
    pub counters: Counters,
    /// The apps and services of the node, as the monitor reported them last.
    pub apps: Vec<AppReport>,
    /// The clients of streams.
    pub feed: Feed,
    /// The number of this run of the service. Versions of another run mean something else.
    pub run: String,
    /// Requests by method and status.
    pub requests: BTreeMap<(&'static str, u16), u64>,
    /// When the service started, in milliseconds since 1970.
    pub started_ms: u64,
    /// The present time, in milliseconds since 1970. The service sets it before each answer.
    pub now_ms: u64,
}

impl State {
    /// A state without objects.
    pub fn new(run: String, started_ms: u64) -> State {
        State { run, started_ms, now_ms: started_ms, ..State::default() }
    }

    /// The version of the view at the last change of one of these kinds.
    pub fn version_of(&self, kinds: &[Kind]) -> u64 {
        kinds.iter().filter_map(|kind| self.versions.get(kind)).max().copied().unwrap_or_default()
    }

    /// The view has changed. Tells the clients of streams.
    pub fn change(&mut self, batch: &Batch, view: &Snapshot) {
        self.view = view.clone();
        let version = view.version();
        for notice in batch.iter() {
            let kind = notice.kind();
            self.versions.insert(kind, version);
            self.feed.publish(About::Object(kind), || message(version, notice));
        }
    }

    /// A switch has reported its counters.
    pub fn counted(&mut self, ports: &[PortCounters]) {
        if !ports.is_empty() {
            self.feed.publish(About::Counters, || Message::new("counters", json!({ "items": ports })));
        }
    }

    /// A service has published an incident: JSON with `kind` and `time_ms`.
    pub fn on_incident(&mut self, service: &str, payload: &[u8]) {
        let Ok(serde_json::Value::Object(incident)) = serde_json::from_slice(payload) else { return };
        let details = incident.iter().filter(|(name, _)| !matches!(name.as_str(), "kind" | "time_ms"));
        let why: Vec<_> = details.map(|(name, value)| format!("{name} {}", plain(value))).collect();
        let of = |name: &str| incident.get(name).cloned().unwrap_or_default();
        let members =
            json!({ "at_ms": of("time_ms"), "app": service, "what": of("kind"), "why": why.join(", ") });
        self.feed.publish(About::Incident, || Message::new("incident", json!({ "incident": members })));
    }
}

/// A value without the quotes of JSON.
fn plain(value: &serde_json::Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
