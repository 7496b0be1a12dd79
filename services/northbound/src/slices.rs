//! What slices have said of themselves, what the service `labels` knows of them, and their labels while a client follows them.
//!
//! In: summaries and networks of slices, standings and streams of the service `labels`. Out: objects for answers, and messages for streams. Which slices
//! there are, the monitor says: a summary of an app that is no slice, or that names another one, is not shown.

use crate::feed::{About, Interest, Message};
use crate::known_apps::KnownApps;
use burnet_sdk::stream::{Replica, Update};
use labels_contract::{Label, STATE_KEY, Standing, State};
use northbound_contract::AppReport;
use serde::Serialize;
use serde_json::{Value, json};
use slice_contract::{Network, Summary, app_name, slice_of};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The highest number of a zone. A summary from beyond it is dropped.
const ZONE_MAX: u16 = 1_023;

/// The slices.
#[derive(Debug, Default)]
pub struct KnownSlices {
    /// The last summary, by the zone that published it.
    summaries: BTreeMap<u16, Summary>,
    /// Likewise the last network.
    networks: BTreeMap<u16, Network>,
    standings: BTreeMap<String, Standing>,
    /// The labels of the slices that clients follow.
    labels: BTreeMap<String, Replica>,
}

impl KnownSlices {
    /// A slice has published its summary. Returns which. A malformed one changes nothing: it is the slice's mistake.
    pub fn hear(&mut self, zone: u16, payload: &[u8]) -> Option<String> {
        let summary = Summary::from_bytes(payload).ok().filter(|_| zone <= ZONE_MAX)?;
        let slice = summary.slice.clone();
        self.summaries.insert(zone, summary);
        Some(slice)
    }

    /// A slice has published its network. A malformed one changes nothing.
    pub fn hear_network(&mut self, zone: u16, payload: &[u8]) {
        if let Some(network) = Network::from_bytes(payload).ok().filter(|_| zone <= ZONE_MAX) {
            self.networks.insert(zone, network);
        }
    }

    /// The network that the tenant of a slice sees, if its process runs and has said it.
    pub fn network(&self, app: &AppReport) -> Option<&Network> {
        let of_app = |network: &&Network| slice_of(&app.id) == Some(&network.slice);
        self.networks.get(&app.zone).filter(of_app).filter(|_| app.state == "running")
    }

    /// The service `labels` has answered, or not: then nothing is known.
    pub fn take(&mut self, standings: Vec<Standing>) {
        self.standings = standings.into_iter().map(|standing| (standing.slice.clone(), standing)).collect();
    }

    /// What a slice has said, if its process runs.
    pub fn summary(&self, app: &AppReport) -> Option<&Summary> {
        let of_app = |summary: &&Summary| slice_of(&app.id) == Some(&summary.slice);
        self.summaries.get(&app.zone).filter(of_app).filter(|_| app.state == "running")
    }

    /// How far a slice is with its flows.
    pub fn standing(&self, slice: &str) -> Option<&Standing> {
        self.standings.get(slice)
    }

    /// A slice as JSON.
    pub fn object(&self, slice: &str, app: &AppReport) -> Value {
        let mut value = json!({
            "kind": "slice",
            "id": slice,
            "state": app.state,
            "since_ms": app.since_ms,
            "restarts": app.restarts,
        });
        add(&mut value, self.summary(app));
        add(&mut value, self.standing(slice));
        if let Value::Object(members) = &mut value {
            // The flows of the slice have it.
            members.remove("shaped");
            let last_end = app.last_end.as_ref().map(|why| ("last_end".to_owned(), why.as_str().into()));
            members.extend(last_end);
            members.extend(app.note.as_ref().map(|note| ("note".to_owned(), note.as_str().into())));
        }
        value
    }

    /// The message for a slice that has changed.
    pub fn put(&self, slice: &str, app: &AppReport, version: u64) -> Arc<Message> {
        put(version, &format!("slice/{slice}"), &self.object(slice, app))
    }

    /// What a client gets at first.
    pub fn snapshot(&self, apps: &KnownApps, version: u64, interest: &Interest) -> Vec<Arc<Message>> {
        if !interest.about.contains(&About::Slice) {
            return Vec::new();
        }
        let shown = |app: &AppReport| Some(self.put(slice_of(&app.id)?, app, version));
        let Some(slice) = interest.slice.as_deref() else { return apps.iter().filter_map(shown).collect() };
        let mut messages: Vec<_> = apps.get(&app_name(slice)).into_iter().filter_map(shown).collect();
        if let Some(replica) = self.labels.get(slice) {
            messages.extend(replica.iter().filter_map(|(key, value)| entry(slice, key, value, version)));
            messages.push(self.labels_object(slice, version));
        }
        messages
    }

    /// A change of a slice's labels. Returns the messages about it.
    pub fn labels_changed(&mut self, slice: &str, update: &Update<'_>, version: u64) -> Vec<Arc<Message>> {
        let replica = self.labels.entry(slice.to_owned()).or_default();
        let gone: Vec<Arc<Message>> = match update {
            Update::Begin { .. } => {
                replica.iter().filter_map(|(key, _)| no_entry(slice, key, version)).collect()
            }
            Update::Removed { key, .. } => no_entry(slice, key, version).into_iter().collect(),
            _ => Vec::new(),
        };
        replica.apply(update);
        let now = match *update {
            Update::Entry { key, value } | Update::Put { key, value, .. } if key != STATE_KEY.as_bytes() => {
                entry(slice, key, value, version)
            }
            Update::Removed { .. } => None,
            _ => Some(self.labels_object(slice, version)),
        };
        gone.into_iter().chain(now).collect()
    }

    /// No client follows the labels of this slice any more.
    pub fn forget_labels(&mut self, slice: &str) {
        self.labels.remove(slice);
    }

    /// What holds for all labels of a slice.
    fn labels_object(&self, slice: &str, version: u64) -> Arc<Message> {
        let replica = self.labels.get(slice);
        let state = replica.and_then(|it| it.get(STATE_KEY.as_bytes()));
        let state: State = state.and_then(|it| serde_json::from_slice(it).ok()).unwrap_or_default();
        let is_current = replica.is_some_and(Replica::is_complete);
        let object = json!({ "kind": "labels", "id": slice, "stale": state.stale || !is_current, "current": is_current });
        put(version, &format!("labels/{slice}"), &object)
    }
}

/// A label as a message. The state is none.
fn entry(slice: &str, key: &[u8], value: &[u8], version: u64) -> Option<Arc<Message>> {
    let label: Label = serde_json::from_slice(value).ok().filter(|_| key != STATE_KEY.as_bytes())?;
    let mut object = json!({ "kind": "label", "slice": slice });
    add(&mut object, Some(&label));
    Some(put(version, &format!("label/{slice}/{}", label.link), &object))
}

fn no_entry(slice: &str, key: &[u8], version: u64) -> Option<Arc<Message>> {
    let link = std::str::from_utf8(key).ok().filter(|link| *link != STATE_KEY)?;
    Some(removed(version, &format!("label/{slice}/{link}")))
}

fn put(version: u64, key: &str, object: &Value) -> Arc<Message> {
    Message::new("put", json!({ "version": version, "key": key, "object": object }))
}

/// The message for an object that is gone.
pub fn removed(version: u64, key: &str) -> Arc<Message> {
    Message::new("remove", json!({ "version": version, "key": key }))
}

/// Adds the members of what is known, without the name, which is there already.
fn add(value: &mut Value, known: Option<&impl Serialize>) {
    let Some(Ok(Value::Object(mut more))) = known.map(serde_json::to_value) else { return };
    more.remove("slice");
    if let Value::Object(members) = value {
        members.extend(more);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_zone_cannot_speak_for_another_slice() {
        let mut slices = KnownSlices::default();
        let blue = Summary { slice: "blue".to_owned(), rules: 3, ..Summary::default() };
        slices.hear(7, &blue.to_bytes());
        slices.hear(ZONE_MAX + 1, &blue.to_bytes());
        slices.hear(7, b"{");
        slices.hear_network(7, &Network { slice: "blue".to_owned(), ..Network::default() }.to_bytes());
        slices.hear_network(7, b"{");
        let check = |id: &str, zone: u16, state: &str, expected: Option<u64>| {
            let report = serde_json::json!({"id": id, "role": "app", "state": state, "zone": zone, "zone_kind": "process",
                                            "restarts": 0, "since_ms": 1, "limits": []});
            let app: AppReport = serde_json::from_value(report).unwrap();
            assert_eq!(slices.summary(&app).map(|it| it.rules), expected, "{id} {zone} {state}");
            assert_eq!(slices.network(&app).is_some(), expected.is_some(), "{id} {zone} {state}");
        };
        check("slice.blue", 7, "running", Some(3));
        check("slice.blue", 7, "stopped", None);
        check("slice.blue", 8, "running", None);
        check("slice.red", 7, "running", None);
        check("blue", 7, "running", None);
        check("slice.blue", ZONE_MAX + 1, "running", None);
    }

    /// The messages as `event key`, and the members of objects that matter here.
    fn lines(messages: &[Arc<Message>]) -> Vec<String> {
        let line = |message: &Arc<Message>| {
            let json: Value = serde_json::from_str(message.json()).unwrap();
            let object = &json["object"];
            let rest: Vec<String> = ["label_kbps", "stale", "current"]
                .iter()
                .filter_map(|it| Some(format!(" {}", object.get(it)?)))
                .collect();
            format!("{} {}{}", json["event"].as_str().unwrap(), json["key"].as_str().unwrap(), rest.concat())
        };
        messages.iter().map(line).collect()
    }

    #[test]
    fn labels_are_objects_of_the_stream_and_stale_while_the_service_is_away() {
        let mut slices = KnownSlices::default();
        let link = "of:0000000000000003/1-of:0000000000000001/1";
        let value = format!(r#"{{"link": "{link}", "capacity_kbps": 10000, "label_kbps": 2000}}"#);
        let (key, value) = (link.as_bytes(), value.as_bytes());
        let of_state: &[u8] = br#"{"stale": true, "rebuild": false}"#;
        let label = format!("put label/blue/{link} 2000");
        let gone = format!("remove label/blue/{link}");
        let mut check = |update: Update<'_>, expected: &[&str]| {
            assert_eq!(lines(&slices.labels_changed("blue", &update, 1)), expected, "{update:?}");
        };
        check(Update::Begin { number: 0 }, &["put labels/blue true false"]);
        check(Update::Entry { key, value }, &[&label]);
        check(Update::Complete { number: 0 }, &["put labels/blue false true"]);
        check(
            Update::Put { number: 1, key: STATE_KEY.as_bytes(), value: of_state },
            &["put labels/blue true true"],
        );
        check(Update::Removed { number: 2, key }, &[&gone]);
        check(Update::Put { number: 3, key, value }, &[&label]);
        check(Update::Missed { from: 4, to: 5 }, &["put labels/blue true false"]);
        check(Update::Begin { number: 5 }, &[&gone, "put labels/blue true false"]);
        check(Update::Put { number: 6, key, value: b"{" }, &[]);
    }

    #[test]
    fn a_snapshot_has_one_slice_with_its_labels_or_all_without() {
        let mut slices = KnownSlices::default();
        let app = |id: &str, zone: u16| {
            json!({"id": id, "role": "app", "state": "running", "zone": zone, "zone_kind": "process", "restarts": 0, "since_ms": 1,
                   "limits": []})
        };
        let mut apps = KnownApps::default();
        let report = json!({"apps": [app("hub", 1), app("slice.blue", 2), app("slice.red", 3)]});
        apps.take(serde_json::from_value(report).unwrap());
        let value = br#"{"link": "1/1-2/1", "capacity_kbps": 10000, "label_kbps": 7}"#;
        slices.labels_changed("blue", &Update::Entry { key: b"1/1-2/1", value }, 1);
        let check = |about: About, slice: Option<&str>, expected: &[&str]| {
            let interest =
                Interest { about: vec![about], changes_only: false, slice: slice.map(str::to_owned) };
            assert_eq!(lines(&slices.snapshot(&apps, 1, &interest)), expected, "{slice:?}");
        };
        check(About::Counters, None, &[]);
        check(About::Slice, None, &["put slice/blue", "put slice/red"]);
        let label = "put label/blue/of:0000000000000001/1-of:0000000000000002/1 7";
        check(About::Slice, Some("blue"), &["put slice/blue", label, "put labels/blue true false"]);
        check(About::Slice, Some("red"), &["put slice/red"]);
        slices.forget_labels("blue");
        let interest =
            Interest { about: vec![About::Slice], changes_only: false, slice: Some("blue".to_owned()) };
        assert_eq!(lines(&slices.snapshot(&apps, 1, &interest)), ["put slice/blue"]);
    }
}
