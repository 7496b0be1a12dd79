//! What the demo knows of the network: the objects that the node's stream of changes brought.
//!
//! In: events of `/api/v1/stream`. Out: counts, and which intents use a link. It asks nothing.

use serde_json::Value;
use std::collections::BTreeMap;

/// The objects of the network view, by their keys.
#[derive(Default)]
pub(super) struct Seen {
    objects: BTreeMap<String, Value>,
}

impl Seen {
    /// An event of the stream. Other events than those of objects change nothing.
    pub fn apply(&mut self, event: &Value) {
        let key = event["key"].as_str().unwrap_or_default();
        match event["event"].as_str() {
            Some("begin") => *self = Seen::default(),
            Some("put") => drop(self.objects.insert(key.to_owned(), event["object"].clone())),
            Some("remove") => drop(self.objects.remove(key)),
            _ => {}
        }
    }

    /// The objects of a kind.
    fn of<'a>(&'a self, kind: &'a str) -> impl Iterator<Item = &'a Value> {
        self.objects.values().filter(move |object| object["kind"] == kind)
    }

    /// How many objects of a kind there are.
    pub fn count(&self, kind: &str) -> usize {
        self.of(kind).count()
    }

    /// How many objects of a kind are in this state.
    pub fn in_state(&self, kind: &str, state: &str) -> usize {
        self.of(kind).filter(|object| object["state"] == state).count()
    }

    /// How many intents are not installed, with the reason of the first one.
    pub fn intents_missing(&self) -> String {
        let others: Vec<_> = self.of("intent").filter(|intent| intent["state"] != "installed").collect();
        let first = others.first().map(|intent| {
            let text = |name: &str| intent[name].as_str().unwrap_or("no reason given");
            format!("; {} is {}: {}", text("name"), text("state"), text("reason"))
        });
        let (others, all) = (others.len(), self.count("intent"));
        format!("{others} of {all} intents are not installed{}", first.unwrap_or_default())
    }

    /// The state of a link.
    pub fn is_up(&self, link: &str) -> bool {
        self.objects.get(&format!("link/{link}")).is_some_and(|link| link["state"] == "up")
    }

    /// The names of the intents of which a path uses one of these links, and whether that is a backup path only.
    pub fn intents_over(&self, links: &[String]) -> Vec<(String, bool)> {
        let of = |intent: &Value| {
            let name = intent["name"].as_str()?.to_owned();
            let working = self.uses(intent, links, false);
            (working || self.uses(intent, links, true)).then_some((name, !working))
        };
        self.of("intent").filter_map(of).collect()
    }

    /// Whether a working path, or a backup path, of the intent uses one of these links. The id of a backup path ends in `b`.
    fn uses(&self, intent: &Value, links: &[String], is_backup: bool) -> bool {
        let role = |path: &Value| path["id"].as_str().is_some_and(|id| id.ends_with('b'));
        let paths = self.of("path").filter(|path| path["intent"] == intent["id"] && role(path) == is_backup);
        let mut used = paths.filter_map(|path| path["links"].as_array()).flatten();
        used.any(|link| links.iter().any(|failed| link == failed))
    }

    /// Whether this intent has been installed again since this time, on paths without these links.
    pub fn is_rerouted(&self, name: &str, links: &[String], since_ms: u64) -> bool {
        let intent = self.of("intent").find(|intent| intent["name"] == name);
        intent.is_some_and(|intent| {
            let is_new = intent["since_ms"].as_u64().is_some_and(|began| began >= since_ms);
            let is_over = self.uses(intent, links, false) || self.uses(intent, links, true);
            is_new && intent["state"] == "installed" && !is_over
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn put(object: Value) -> Value {
        let key = format!("{}/{}", object["kind"].as_str().unwrap(), object["id"]).replace('"', "");
        json!({ "event": "put", "key": key, "object": object })
    }

    fn intent(state: &str, since_ms: u64) -> Value {
        put(json!({ "kind": "intent", "id": 7, "name": "web", "state": state, "since_ms": since_ms }))
    }

    fn path(links: &[&str]) -> Value {
        put(json!({ "kind": "path", "id": "7.0", "intent": 7, "links": links }))
    }

    fn seen(events: &[Value]) -> Seen {
        let mut seen = Seen::default();
        events.iter().for_each(|event| seen.apply(event));
        seen
    }

    #[test]
    fn a_snapshot_replaces_what_was_known() {
        let link = |state| put(json!({ "kind": "link", "id": "a-b", "state": state }));
        let mut known = seen(&[json!({ "event": "begin" }), link("up")]);
        assert!(known.is_up("a-b") && !known.is_up("b-a"));
        known.apply(&link("down"));
        assert_eq!((known.count("link"), known.in_state("link", "up")), (1, 0));
        known.apply(&json!({ "event": "remove", "key": "link/a-b" }));
        assert_eq!(known.count("link"), 0);
        known.apply(&link("up"));
        known.apply(&json!({ "event": "begin" }));
        assert!(known.count("link") == 0);
        known.apply(&json!("no event"));
    }

    #[test]
    fn an_intent_is_rerouted_when_it_is_installed_again_without_the_link() {
        let failed = ["a-b".to_owned()];
        let mut known = seen(&[intent("installed", 5), path(&["a-b"])]);
        let over = |known: &Seen, link: &str| known.intents_over(&[link.to_owned()]);
        assert_eq!(over(&known, "a-b"), [("web".to_owned(), false)]);
        let backup = put(json!({ "kind": "path", "id": "7.0b", "intent": 7, "links": ["a-d"] }));
        known.apply(&backup);
        assert_eq!(over(&known, "a-d"), [("web".to_owned(), true)]);
        let check = |known: &Seen, expected| assert_eq!(known.is_rerouted("web", &failed, 9), expected);
        check(&known, false);
        // The new path comes before the new state.
        known.apply(&path(&["a-c", "c-b"]));
        check(&known, false);
        known.apply(&intent("rerouting", 9));
        check(&known, false);
        let missing = "1 of 1 intents are not installed; web is rerouting: no reason given";
        assert_eq!(known.intents_missing(), missing);
        known.apply(&intent("installed", 10));
        check(&known, true);
        assert!(over(&known, "a-b").is_empty() && !known.is_rerouted("mail", &failed, 0));
    }
}
