//! All that requests are answered from, in one place.
//!
//! In: changes of the view, counters of ports, and what the node reports of itself. Out: the same, for answers; and messages for the clients
//! of streams. It asks nobody and reads no clock.

use crate::bodies::Bodies;
use crate::counters::{Counters, PortCounters};
use crate::feed::{About, Feed, Message, message};
use crate::incidents::{Incident, Incidents};
use crate::known_apps::KnownApps;
use crate::slices::KnownSlices;
use crate::slices::removed;
use burnet_sdk::stream::Update;
use burnet_sdk::view::{Batch, Kind, Snapshot};
use flows_contract::SwitchSummary;
use northbound_contract::{AppReport, IncidentReport, NodeReport};
use serde_json::json;
use slice_contract::{app_name, slice_of};
use std::collections::BTreeMap;

/// What of a slice's app is in the messages about the slice.
type Outline = (String, u64, u64, Option<String>);

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
    /// The apps and services of the node.
    pub apps: KnownApps,
    /// What slices have said of themselves, and how far they are with their flows.
    pub slices: KnownSlices,
    /// Whether the node accepts commands for apps.
    pub may_change_apps: bool,
    /// What the service `flows` knows of each switch.
    pub rules: Vec<SwitchSummary>,
    /// What went wrong.
    pub incidents: Incidents,
    /// Bodies of answers that can be given again.
    pub bodies: Bodies,
    /// The clients of streams.
    pub feed: Feed,
    /// The number of this run of the service. Versions of another run mean something else.
    pub run: String,
    /// Requests by method and status.
    pub requests: BTreeMap<(&'static str, u16), u64>,
    /// Clients that were disconnected because they read nothing.
    pub stalled: u64,
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

    /// The monitor has reported the apps. Tells the clients of streams which slices have changed.
    pub fn on_apps(&mut self, report: NodeReport) {
        let outline = |apps: &KnownApps| -> BTreeMap<String, Outline> {
            let slices = apps.iter().filter_map(|app| Some((slice_of(&app.id)?, app)));
            let outline = |app: &AppReport| (app.state.clone(), app.restarts, app.since_ms, app.note.clone());
            slices.map(|(slice, app)| (slice.to_owned(), outline(app))).collect()
        };
        let before = outline(&self.apps);
        self.apps.take(report);
        let after = outline(&self.apps);
        for slice in after.keys().filter(|slice| before.get(*slice) != after.get(*slice)) {
            self.slice_changed(slice);
        }
        for slice in before.keys().filter(|slice| !after.contains_key(*slice)) {
            let gone = || removed(self.view.version(), &format!("slice/{slice}"));
            self.feed.publish_of_slice(slice, false, gone);
        }
    }

    /// A slice has published its summary.
    pub fn on_summary(&mut self, zone: u16, payload: &[u8]) {
        if let Some(slice) = self.slices.hear(zone, payload) {
            self.slice_changed(&slice);
        }
    }

    fn slice_changed(&mut self, slice: &str) {
        let Some(app) = self.apps.get(&app_name(slice)) else { return };
        let make = || self.slices.put(slice, app, self.view.version());
        self.feed.publish_of_slice(slice, false, make);
    }

    /// The service `labels` has told a change of a slice's labels.
    pub fn on_labels(&mut self, slice: &str, update: &Update<'_>) {
        let version = self.view.version();
        for message in self.slices.labels_changed(slice, update, version) {
            self.feed.publish_of_slice(slice, true, || message);
        }
    }

    /// A service has published an incident.
    pub fn on_incident(&mut self, service: &str, payload: &[u8]) {
        if let Some(incident) = self.incidents.hear(service, payload) {
            publish(&mut self.feed, incident);
        }
    }

    /// The monitor has stored incidents.
    pub fn on_stored(&mut self, is_first: bool, reports: Vec<IncidentReport>) {
        for incident in self.incidents.take(is_first, reports) {
            publish(&mut self.feed, &incident);
        }
    }
}

fn publish(feed: &mut Feed, incident: &Incident) {
    feed.publish(About::Incident, || Message::new("incident", json!({ "incident": incident.to_json() })));
}
