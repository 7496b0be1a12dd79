//! The incidents of the node: those that the monitor has stored, and those that services of the network have published.
//!
//! In: messages of the monitor, and publications. Out: JSON, the newest first. Those of services are kept in memory only. It decides
//! nothing.

use northbound_contract::IncidentReport;
use serde_json::{Map, Value, json};
use std::cmp::Reverse;
use std::collections::{BTreeMap, VecDeque};

/// The incidents of services that are kept. The oldest is dropped.
const OF_SERVICES_MAX: usize = 256;

/// What the monitor is called as a source.
const MONITOR: &str = "monitor";

/// An incident.
#[derive(Clone, Debug, PartialEq)]
pub struct Incident {
    /// Its name among all.
    pub id: String,
    /// When, in milliseconds since 1970.
    pub unix_ms: u64,
    /// Who reported it: `monitor`, or a service.
    pub source: String,
    /// Its kind.
    pub what: String,
    /// The affected app. Empty: none.
    pub app: String,
    /// Its other members.
    more: Map<String, Value>,
    /// What a service published about it.
    details: Map<String, Value>,
}

impl Incident {
    /// Its JSON.
    pub fn to_json(&self) -> Value {
        let Incident { id, unix_ms, source, what, app, more, .. } = self;
        let mut value =
            json!({ "kind": "incident", "id": id, "unix_ms": unix_ms, "source": source, "what": what });
        if let Value::Object(members) = &mut value {
            if !app.is_empty() {
                members.insert("app".to_owned(), app.as_str().into());
            }
            members.extend(more.clone());
        }
        value
    }

    /// The monitor's number for it. `None`: a service has published it.
    pub fn number(&self) -> Option<u64> {
        self.more.get("number").and_then(Value::as_u64)
    }

    /// What a service published about it: its evidence.
    pub fn details(&self) -> &Map<String, Value> {
        &self.details
    }

    /// By what the list is ordered: the newest comes first.
    pub fn place(&self) -> Reverse<(u64, &str)> {
        Reverse((self.unix_ms, &self.id))
    }
}

/// All that are known.
#[derive(Debug, Default)]
pub struct Incidents {
    of_monitor: BTreeMap<u64, Incident>,
    of_services: VecDeque<Incident>,
    /// How many incidents services have reported.
    heard: u64,
    version: u64,
    /// The highest number that the monitor has sent. `None` before its first list.
    newest: Option<u64>,
}

impl Incidents {
    /// Takes incidents of the monitor. Returns those that are new. Those of the first list are not: they happened before. The first
    /// message of a list has its newest incidents, so the messages after it have no new ones.
    pub fn take(&mut self, is_first: bool, reports: Vec<IncidentReport>) -> Vec<Incident> {
        self.version += 1;
        if is_first {
            self.of_monitor.clear();
        }
        let taken: Vec<(u64, Incident)> = reports.into_iter().map(|it| (it.number, of_monitor(it))).collect();
        let known = self.newest;
        let newest = taken.iter().map(|(number, _)| *number).max().max(known);
        self.newest = Some(newest.unwrap_or_default());
        let is_new = |number: &u64| known.is_some_and(|known| *number > known);
        let new = taken.iter().filter(|(number, _)| is_new(number)).map(|(_, it)| it.clone()).collect();
        self.of_monitor.extend(taken);
        new
    }

    /// Takes a publication of a service: a JSON object with the kind, the time and further members. `None`: it is none.
    pub fn hear(&mut self, service: &str, payload: &[u8]) -> Option<&Incident> {
        let Ok(Value::Object(mut members)) = serde_json::from_slice(payload) else { return None };
        let what = ["kind", "refusal"].iter().find_map(|name| members.remove(*name));
        let unix_ms = members.remove("time_ms").and_then(|it| it.as_u64()).unwrap_or_default();
        let why: Vec<_> = members.iter().map(|(name, value)| format!("{name} {}", plain(value))).collect();
        self.version += 1;
        self.heard += 1;
        if self.of_services.len() >= OF_SERVICES_MAX {
            self.of_services.pop_front();
        }
        self.of_services.push_back(Incident {
            id: format!("{service}-{}", self.heard),
            unix_ms,
            source: service.to_owned(),
            what: what.as_ref().map(plain).unwrap_or_default(),
            app: service.to_owned(),
            more: Map::from_iter([("reason".to_owned(), why.join(", ").into())]),
            details: members,
        });
        self.of_services.back()
    }

    /// Counts the changes.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// All, the newest first.
    pub fn newest(&self) -> Vec<&Incident> {
        let mut all: Vec<_> = self.of_monitor.values().chain(&self.of_services).collect();
        all.sort_by(|one, two| one.place().cmp(&two.place()));
        all
    }

    /// One of them.
    pub fn get(&self, id: &str) -> Option<&Incident> {
        self.of_monitor.values().chain(&self.of_services).find(|it| it.id == id)
    }
}

fn of_monitor(report: IncidentReport) -> Incident {
    let IncidentReport { number, unix_ms, what, app, reason, then, culprit, finding, delays } = report;
    let mut of = Map::from_iter([("sentence".to_owned(), Value::from(finding))]);
    of.extend(culprit.map(|app| ("culprit".to_owned(), app.into())));
    let curves: Vec<Value> = delays.iter().map(|it| json!(it)).collect();
    let curves = (!curves.is_empty()).then(|| ("delays", curves.into()));
    let more =
        [("number", number.into()), ("reason", reason.into()), ("then", then.into()), ("finding", of.into())];
    let more = more.into_iter().chain(curves);
    Incident {
        id: number.to_string(),
        unix_ms,
        source: MONITOR.to_owned(),
        what,
        app: app.unwrap_or_default(),
        more: more.map(|(name, value)| (name.to_owned(), value)).collect(),
        details: Map::new(),
    }
}

/// A value without the quotes of JSON.
fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use northbound_contract::ReplyDelay;

    fn report(number: u64) -> IncidentReport {
        IncidentReport {
            number,
            unix_ms: 10 * number,
            what: "app_ended".to_owned(),
            app: Some("hub".to_owned()),
            reason: "exit code 3".to_owned(),
            then: "it restarts".to_owned(),
            culprit: Some("hub".to_owned()),
            finding: "it ended by itself".to_owned(),
            delays: Vec::new(),
        }
    }

    fn ids(list: &[impl std::borrow::Borrow<Incident>]) -> Vec<&str> {
        list.iter().map(|it| it.borrow().id.as_str()).collect()
    }

    #[test]
    fn what_happened_after_the_first_list_is_new_once() {
        let mut incidents = Incidents::default();
        assert!(incidents.take(true, vec![report(1), report(2)]).is_empty());
        assert_eq!(ids(&incidents.take(false, vec![report(3)])), ["3"]);
        let new = incidents.take(true, vec![report(2), report(3), report(4)]);
        assert_eq!(ids(&new), ["4"]);
        assert_eq!(ids(&incidents.newest()), ["4", "3", "2"], "the first one was deleted");
        assert!(incidents.take(true, vec![report(4)]).is_empty());
    }

    #[test]
    fn the_later_messages_of_a_list_have_nothing_new() {
        let mut incidents = Incidents::default();
        assert!(incidents.take(true, vec![report(3), report(4)]).is_empty());
        assert!(incidents.take(false, vec![report(1), report(2)]).is_empty());
        assert_eq!(ids(&incidents.take(true, vec![report(4), report(5)])), ["5"]);
        assert!(incidents.take(false, vec![report(2), report(3)]).is_empty());
    }

    #[test]
    fn what_services_publish_has_the_same_members() {
        let mut incidents = Incidents::default();
        for wrong in ["", "7", "[]", "{"] {
            assert_eq!(incidents.hear("hosts", wrong.as_bytes()), None, "{wrong}");
        }
        let heard =
            incidents.hear("hosts", br#"{"kind":"moved","time_ms":7,"mac":"00:00:00:00:00:01"}"#).unwrap();
        assert_eq!(
            heard.to_json(),
            json!({"kind": "incident", "id": "hosts-1", "unix_ms": 7, "source": "hosts", "what": "moved", "app": "hosts",
                   "reason": "mac 00:00:00:00:00:01"})
        );
        let probe =
            incidents.hear("discovery", br#"{"refusal":"forged","at":"1/2","repeated":0,"time_ms":9}"#);
        assert_eq!(probe.unwrap().what, "forged");
        for _ in 0..OF_SERVICES_MAX {
            incidents.hear("hosts", b"{}");
        }
        assert_eq!(incidents.newest().len(), OF_SERVICES_MAX);
    }

    #[test]
    fn the_json_of_the_monitors_has_what_the_command_line_shows() {
        let value = of_monitor(report(7)).to_json();
        assert_eq!(
            value,
            json!({"kind": "incident", "id": "7", "number": 7, "unix_ms": 70, "source": "monitor", "what": "app_ended", "app": "hub",
                   "reason": "exit code 3", "then": "it restarts",
                   "finding": {"culprit": "hub", "sentence": "it ended by itself"}})
        );
        let delays = vec![ReplyDelay { percent: 50, earliest_us: 2, latest_us: 3, observed_us: 9 }];
        let value = of_monitor(IncidentReport { delays, ..report(8) }).to_json();
        let expected = json!([{"percent": 50, "earliest_us": 2, "latest_us": 3, "observed_us": 9}]);
        assert_eq!(value["delays"], expected, "both curves of a switch that left its profile");
    }
}
