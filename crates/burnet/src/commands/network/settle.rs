//! Waits until what a plan has changed is in the switches, or says why it is not.
//!
//! In: a plan whose steps were taken, and the node. Out: how many rules were confirmed in which time. Intents are followed by the stream of changes.
//! Rules of sets have no stream, so they are asked for, at most for a minute.

use super::client::{Client, encoded};
use super::paged;
use crate::network_file::current::OWNER;
use crate::network_file::plan::{Act, Plan};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

/// How long the rules of sets may take. After it, the first one that is missing is named.
const RULES_TIMEOUT: Duration = Duration::from_secs(60);

/// How often they are asked for.
const RULES_INTERVAL: Duration = Duration::from_millis(50);

/// Waits. Returns the numbers for the pace of the next plan.
///
/// # Errors
/// What is not in place, and why.
pub fn wait(client: &Client, plan: &Plan, began: Instant) -> Result<Value, String> {
    let mut awaited = Awaited::of(plan);
    if !awaited.is_done() {
        client.events("/api/v1/stream?kinds=intent", |event| awaited.hear(event))??;
    }
    rules(client, plan)?;
    let took_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
    Ok(json!({ "rules": plan.effect().total(), "took_ms": took_ms.max(1) }))
}

/// The intents of a plan that are not settled yet.
#[derive(Debug, Default)]
struct Awaited {
    installed: BTreeSet<String>,
    gone: BTreeSet<String>,
    /// The names of the intents that the stream has shown, by their keys.
    names: BTreeMap<String, String>,
}

impl Awaited {
    fn of(plan: &Plan) -> Awaited {
        let mut awaited = Awaited::default();
        for step in plan.steps.iter().filter(|step| step.kind == "intent") {
            match step.act {
                Act::Withdraw => awaited.gone.insert(step.name.clone()),
                Act::Add | Act::Change => awaited.installed.insert(step.name.clone()),
            };
        }
        awaited
    }

    fn is_done(&self) -> bool {
        self.installed.is_empty() && self.gone.is_empty()
    }

    /// An event of the stream. Returns the end, if it is reached.
    fn hear(&mut self, event: &Value) -> Option<Result<(), String>> {
        let key = event["key"].as_str().unwrap_or_default().to_owned();
        match event["event"].as_str()? {
            "put" => {
                let object = &event["object"];
                if object["owner"] != OWNER {
                    return None;
                }
                let name = object["name"].as_str().unwrap_or_default().to_owned();
                self.names.insert(key, name.clone());
                if let Err(why) = self.settle(&name, object) {
                    return Some(Err(why));
                }
            }
            "remove" => {
                if let Some(name) = self.names.remove(&key) {
                    self.gone.remove(&name);
                }
            }
            // What is not in the snapshot is gone.
            "complete" => {
                let there: BTreeSet<&String> = self.names.values().collect();
                self.gone.retain(|name| there.contains(name));
            }
            _ => {}
        }
        self.is_done().then_some(Ok(()))
    }

    fn settle(&mut self, name: &str, object: &Value) -> Result<(), String> {
        if !self.installed.contains(name) {
            return Ok(());
        }
        let reason = object["reason"].as_str().unwrap_or("the node gives no reason");
        match object["state"].as_str() {
            Some("installed") => {
                self.installed.remove(name);
                Ok(())
            }
            Some("failed") => Err(format!("intent {name} cannot be served: {reason}")),
            Some("waiting") => Err(format!("intent {name} waits: {reason}")),
            _ => Ok(()),
        }
    }
}

/// Waits for the rules of sets.
fn rules(client: &Client, plan: &Plan) -> Result<(), String> {
    let sets: BTreeMap<&str, Act> = plan
        .steps
        .iter()
        .filter(|step| step.kind == "rules")
        .map(|step| (step.name.as_str(), step.act))
        .collect();
    if sets.is_empty() {
        return Ok(());
    }
    let began = Instant::now();
    loop {
        let flows = paged(client, &format!("/api/v1/flows?limit=1000&owner={}", encoded(OWNER)))?;
        let Some(missing) = flows.iter().find_map(|rule| unsettled(rule, &sets)) else { return Ok(()) };
        if missing.is_final || began.elapsed() > RULES_TIMEOUT {
            return Err(missing.why);
        }
        std::thread::sleep(RULES_INTERVAL);
    }
}

struct Missing {
    why: String,
    is_final: bool,
}

/// Why a rule is not settled, if it is not.
fn unsettled(rule: &Value, sets: &BTreeMap<&str, Act>) -> Option<Missing> {
    let set = rule["set"].as_str().unwrap_or_default();
    let act = sets.get(set)?;
    let state = rule["state"].as_str().unwrap_or_default();
    let is_settled = state == "installed" && *act != Act::Withdraw;
    let id = rule["id"].as_str().unwrap_or_default();
    let why = format!("rules {set}: the rule {id} is {state}");
    (!is_settled).then_some(Missing { why, is_final: matches!(state, "failed" | "waiting") })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(number: u64, name: &str, state: &str) -> Value {
        json!({"event": "put", "key": format!("intent/{number}"),
               "object": {"owner": OWNER, "name": name, "state": state, "reason": "to: unknown"}})
    }

    fn awaited() -> Awaited {
        Awaited {
            installed: ["a/new".to_owned()].into(),
            gone: ["a/old".to_owned()].into(),
            names: BTreeMap::new(),
        }
    }

    #[test]
    fn an_intent_that_cannot_be_served_ends_the_wait_with_its_reason() {
        let check = |state: &str, part: &str| {
            let why = awaited().hear(&put(1, "a/new", state)).unwrap().unwrap_err();
            assert!(why.contains("a/new") && why.contains(part) && why.contains("to: unknown"), "{why}");
        };
        check("failed", "cannot be served");
        check("waiting", "waits");
        assert_eq!(awaited().hear(&put(1, "b/new", "failed")), None, "it is another file's");
    }

    #[test]
    fn it_waits_for_those_that_come_and_those_that_go() {
        let mut awaited = awaited();
        assert_eq!(awaited.hear(&put(1, "a/old", "withdrawing")), None);
        assert_eq!(awaited.hear(&put(2, "a/new", "installing")), None);
        assert_eq!(awaited.hear(&json!({"event": "complete"})), None);
        assert_eq!(awaited.hear(&put(2, "a/new", "installed")), None);
        assert_eq!(awaited.hear(&json!({"event": "remove", "key": "intent/1"})), Some(Ok(())));
    }

    #[test]
    fn a_rule_that_failed_is_not_waited_for() {
        let sets = [("a/x", Act::Add)].into();
        let rule = |state: &str| json!({"set": "a/x", "id": "1/2", "state": state});
        assert!(unsettled(&rule("installed"), &sets).is_none());
        assert!(!unsettled(&rule("pending"), &sets).unwrap().is_final);
        assert!(unsettled(&rule("failed"), &sets).unwrap().is_final);
        assert!(unsettled(&json!({"set": "b/x", "state": "failed"}), &sets).is_none());
    }
}
