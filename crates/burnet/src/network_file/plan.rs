//! What a file would change: the steps in their order, what each changes in the switches, and who is affected.
//!
//! ```text
//!   Document, Current ──plan──> Plan: hosts, sets and intents to add or change, then those to withdraw
//! ```
//!
//! In: a file, and what the network has. Out: steps as requests of the REST interface. A file owns the objects whose names begin with its own, and the
//! hosts that its last version configured. It touches no others. It changes nothing itself.

use super::current::{Current, Known, OWNER};
use super::document::{Document, WantedHost, WantedIntent};
use super::effect::{self, Effect};
use super::protected;
use burnet_sdk::view::{ConnectPoint, Ends, Host, HostId, Intent, IntentState};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// What is done with an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// It is new.
    Add,
    /// It is there, and becomes another.
    Change,
    /// It is there, and goes.
    Withdraw,
}

/// One change.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// What is done.
    pub act: Act,
    /// `host`, `intent` or `rules`.
    pub kind: &'static str,
    /// The name or id of the object.
    pub name: String,
    /// The object in a few words.
    pub what: String,
    /// The request: method, address, body.
    pub request: (&'static str, String, Option<Value>),
    /// What it changes in the switches.
    pub effect: Effect,
}

/// What a file would change.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// The name of the file.
    pub name: String,
    /// The changes, in their order.
    pub steps: Vec<Step>,
    /// Objects that stay as they are.
    pub unchanged: usize,
    /// Hosts at the ends of what changes.
    pub hosts: BTreeSet<HostId>,
    /// Other intents whose packets a new rule may take.
    pub intents: BTreeSet<String>,
    /// What the operator should know.
    pub warnings: Vec<String>,
    /// Why the plan is refused.
    pub refused: Vec<String>,
}

/// The ways that a plan needs to know.
pub fn ways(document: &Document, current: &Current) -> BTreeSet<super::current::Ends> {
    let (places, known) = (effect::places(document, current), Known::of(current));
    let changed = document.intents.iter().filter(|wanted| !is_present(wanted, &known));
    let ends = changed.flat_map(|wanted| effect::ways_of(&wanted.wanted, &places));
    ends.map(|(from, to)| (from.switch, to.switch)).collect()
}

/// What a file would change.
pub fn plan(document: &Document, current: &Current) -> Plan {
    let mut plan = Plan { name: document.name.clone(), ..Plan::default() };
    let known = Known::of(current);
    plan.warnings.extend(interrupted(&document.name, current));
    plan.add_hosts(document, &known);
    plan.put_sets(document, &known);
    plan.add_intents(document, &known);
    plan.withdraw_intents(document, &known);
    plan.remove_sets(document, &known);
    plan.remove_hosts(document, &known);
    plan.look_at_others(current);
    plan.guard(document, current);
    plan
}

/// What the operator should know of an apply that was interrupted.
fn interrupted(name: &str, current: &Current) -> Option<String> {
    let open = current.open()?;
    Some(match open.restores {
        Some(target) => format!(
            "version {} was not completed: the rollback to version {target} was interrupted; `burnet rollback {name}` goes on",
            open.version
        ),
        None => format!(
            "version {} was not completed: its apply was interrupted; `burnet apply` of the same file goes on, `burnet rollback {name}` returns to version {}",
            open.version,
            current.latest_done()
        ),
    })
}

/// Whether an intent is there as it is wanted.
fn is_present(wanted: &WantedIntent, known: &Known<'_>) -> bool {
    known.intent(&wanted.name).is_some_and(|it| *it.wanted == wanted.wanted)
}

fn is_same_host(host: &Host, wanted: &WantedHost) -> bool {
    let addresses: BTreeSet<_> = host.addresses.iter().collect();
    host.configured
        && host.at == wanted.at
        && addresses == wanted.addresses.iter().collect()
        && wanted.annotations.iter().all(|(name, value)| host.annotations.get(name) == Some(value))
}

impl Plan {
    fn step(
        &mut self,
        act: Act,
        kind: &'static str,
        name: &str,
        what: String,
        request: (&'static str, String, Option<Value>),
        effect: Effect,
    ) {
        self.steps.push(Step { act, kind, name: name.to_owned(), what, request, effect });
    }

    fn add_hosts(&mut self, document: &Document, known: &Known<'_>) {
        for wanted in &document.hosts {
            if !known.has_port(wanted.at) {
                self.warnings.push(format!("host {}: the network has no port {} yet", wanted.id, wanted.at));
            }
            let there = known.host(wanted.id);
            let (id, what) = (wanted.id.to_string(), format!("at {}", wanted.at));
            let is_ours = known.owns(wanted.id);
            match there {
                Some(host) if is_same_host(host, wanted) && is_ours => {
                    self.unchanged += 1;
                    continue;
                }
                Some(host) if host.configured && !is_ours && !is_same_host(host, wanted) => {
                    self.refused.push(format!(
                        "host {}: an operator or another file has configured it at {}: leave it out, or remove it there first",
                        wanted.id, host.at
                    ));
                    continue;
                }
                _ => {}
            }
            let mut effect = Effect::default();
            effect.ports.extend(std::iter::once(wanted.at).chain(there.map(|host| host.at)));
            let body =
                json!({ "at": wanted.at, "addresses": wanted.addresses, "annotations": wanted.annotations });
            match there.filter(|host| host.configured) {
                Some(_) => {
                    let target = format!("/api/v1/hosts/{id}");
                    self.step(Act::Change, "host", &id, what, ("PATCH", target, Some(body)), effect);
                }
                None => {
                    let mut body = body;
                    body["id"] = id.clone().into();
                    self.step(
                        Act::Add,
                        "host",
                        &id,
                        what,
                        ("POST", "/api/v1/hosts".to_owned(), Some(body)),
                        effect,
                    );
                }
            }
            self.hosts.insert(wanted.id);
        }
    }

    fn put_sets(&mut self, document: &Document, known: &Known<'_>) {
        for set in &document.rules {
            let Some(effect) = effect::of_set(Some(set), &set.name, known) else {
                self.unchanged += 1;
                continue;
            };
            let act = if known.rules_of(&set.name).is_empty() { Act::Add } else { Act::Change };
            let mut body = serde_json::to_value(set).unwrap_or_default();
            if let Some(members) = body.as_object_mut() {
                members.remove("name");
                members.remove("version");
            }
            let request = ("PUT", format!("/api/v1/rule-sets/{}", set.name), Some(body));
            self.step(act, "rules", &set.name, format!("{} rules", set.rules.len()), request, effect);
        }
    }

    fn add_intents(&mut self, document: &Document, known: &Known<'_>) {
        let places = effect::places(document, known.all);
        for wanted in &document.intents {
            self.warnings.extend(unknown_ends(wanted, &places, known));
            let present = known.intent(&wanted.name);
            if present.is_some_and(|it| it.annotations != wanted.annotations) {
                let why = "its notes stay: those of an intent are given when it is added";
                self.warnings.push(format!("intent {}: {why}", wanted.name));
            }
            if present.is_some() && is_present(wanted, known) {
                self.unchanged += 1;
                continue;
            }
            let mut effect = effect::of_wanted(&wanted.wanted, &places, known.all);
            let mut body = serde_json::to_value(&wanted.wanted).unwrap_or_default();
            let what = ends_text(&wanted.wanted.ends);
            self.hosts.extend(hosts_of(&wanted.wanted.ends, known));
            match present {
                Some(intent) => {
                    effect.add(&effect::of_present(intent, known));
                    self.hosts.extend(hosts_of(&intent.wanted.ends, known));
                    let target = format!("/api/v1/intents/{}", intent.id);
                    self.step(Act::Change, "intent", &wanted.name, what, ("PUT", target, Some(body)), effect);
                }
                None => {
                    body["name"] = wanted.name.clone().into();
                    body["annotations"] = json!(wanted.annotations);
                    let request = ("POST", "/api/v1/intents".to_owned(), Some(body));
                    self.step(Act::Add, "intent", &wanted.name, what, request, effect);
                }
            }
        }
    }

    fn withdraw(&mut self, intent: &Intent, known: &Known<'_>) {
        let effect = effect::of_present(intent, known);
        self.hosts.extend(hosts_of(&intent.wanted.ends, known));
        let request = ("DELETE", format!("/api/v1/intents/{}", intent.id), None);
        let what = ends_text(&intent.wanted.ends);
        self.step(Act::Withdraw, "intent", &intent.name, what, request, effect);
    }

    fn withdraw_intents(&mut self, document: &Document, known: &Known<'_>) {
        let wanted: BTreeSet<_> = document.intents.iter().map(|it| it.name.as_str()).collect();
        for intent in &known.all.intents {
            let is_ours = intent.owner == OWNER && document.owns(&intent.name);
            if is_ours && !wanted.contains(intent.name.as_str()) && intent.state != IntentState::Withdrawing {
                self.withdraw(intent, known);
            }
        }
    }

    fn remove_sets(&mut self, document: &Document, known: &Known<'_>) {
        let wanted: BTreeSet<_> = document.rules.iter().map(|it| it.name.as_str()).collect();
        let there: BTreeSet<_> =
            known.all.rules.iter().filter(|rule| rule.owner == OWNER).map(|rule| rule.set.as_str()).collect();
        for name in there.into_iter().filter(|name| document.owns(name) && !wanted.contains(name)) {
            let effect = effect::of_set(None, name, known).unwrap_or_default();
            let what = format!("{} rules", effect.rules.len());
            self.step(
                Act::Withdraw,
                "rules",
                name,
                what,
                ("DELETE", format!("/api/v1/rule-sets/{name}"), None),
                effect,
            );
        }
    }

    fn remove_hosts(&mut self, document: &Document, known: &Known<'_>) {
        let wanted: BTreeSet<_> = document.hosts.iter().map(|wanted| wanted.id).collect();
        for host in known.earlier_hosts().filter(|it| !wanted.contains(&it.id)) {
            let Some(there) = known.host(host.id).filter(|there| there.configured) else { continue };
            let mut effect = Effect::default();
            effect.ports.insert(there.at);
            let id = host.id.to_string();
            self.hosts.insert(host.id);
            let request = ("DELETE", format!("/api/v1/hosts/{id}"), None);
            self.step(Act::Withdraw, "host", &id, format!("at {}", there.at), request, effect);
        }
    }

    /// Intents of others whose packets a rule of the file may take.
    fn look_at_others(&mut self, current: &Current) {
        let rules: Vec<_> = self.steps.iter().flat_map(|step| &step.effect.rules).collect();
        let own: BTreeSet<&str> =
            self.steps.iter().filter(|it| it.kind == "intent").map(|it| it.name.as_str()).collect();
        let mut switches: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
        for path in &current.paths {
            let on_the_way =
                std::iter::once(path.from.switch).chain(path.links.iter().map(|link| link.to.switch));
            switches.entry(path.intent).or_default().extend(on_the_way);
        }
        for intent in
            current.intents.iter().filter(|it| !own.contains(it.name.as_str()) || it.name.is_empty())
        {
            let Some(passed) = switches.get(&intent.id) else { continue };
            let takes = |rule: &&&super::effect::PlainRule| {
                passed.contains(&rule.switch)
                    && rule.priority >= intent.wanted.priority
                    && flow::relation::overlaps(&rule.matching, &intent.wanted.selector)
            };
            if rules.iter().any(|rule| takes(&rule)) {
                let name = if intent.name.is_empty() { String::new() } else { format!(" {}", intent.name) };
                self.intents.insert(format!("{}{name} of {}", intent.id, intent.owner));
            }
        }
    }

    /// Refuses what touches a protected port of this version of the file, or of those applied before.
    fn guard(&mut self, document: &Document, current: &Current) {
        let earlier = current.applied.iter().flat_map(|it| &it.protected);
        let protected: BTreeSet<ConnectPoint> = document.protected.iter().chain(earlier).copied().collect();
        let protected: Vec<ConnectPoint> = protected.into_iter().collect();
        for step in &self.steps {
            let what = format!("{} {}", step.kind, step.name);
            self.refused.extend(protected::objections(&what, &step.effect, &protected));
            if step.effect.is_open && !protected.is_empty() {
                let why = "a way is not known yet, so the plan cannot tell whether it uses a protected port";
                self.warnings.push(format!("{what}: {why}"));
            }
        }
    }

    /// What all steps change in the switches.
    pub fn effect(&self) -> Effect {
        let mut sum = Effect::default();
        self.steps.iter().for_each(|step| sum.add(&step.effect));
        sum
    }
}

/// Ends that the network does not have: such an intent waits.
fn unknown_ends(wanted: &WantedIntent, places: &effect::Places, known: &Known<'_>) -> Vec<String> {
    let mut warnings = Vec::new();
    let mut host = |id: &HostId| {
        if !places.contains_key(id) {
            warnings
                .push(format!("intent {}: the network has no host {id} yet; it waits for it", wanted.name));
        }
    };
    if let Ends::HostToHost { one, two } = &wanted.wanted.ends {
        host(one);
        host(two);
    }
    for point in points_of(&wanted.wanted.ends) {
        if !known.has_port(point) {
            warnings.push(format!(
                "intent {}: the network has no port {point} yet; it waits for it",
                wanted.name
            ));
        }
    }
    warnings
}

fn points_of(ends: &Ends) -> Vec<ConnectPoint> {
    match ends {
        Ends::HostToHost { .. } => Vec::new(),
        Ends::PointToPoint { from, to } | Ends::Explicit { from, to, .. } => vec![*from, *to],
        Ends::MultiToSingle { from, to } => from.iter().chain([to]).copied().collect(),
        Ends::SingleToMulti { from, to } => to.iter().chain([from]).copied().collect(),
    }
}

/// The hosts at the ends of an intent.
fn hosts_of(ends: &Ends, known: &Known<'_>) -> Vec<HostId> {
    match ends {
        Ends::HostToHost { one, two } => vec![*one, *two],
        _ => points_of(ends).into_iter().flat_map(|point| known.hosts_at(point)).copied().collect(),
    }
}

fn ends_text(ends: &Ends) -> String {
    let list =
        |points: &[ConnectPoint]| points.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    match ends {
        Ends::HostToHost { one, two } => format!("{one} <-> {two}"),
        Ends::PointToPoint { from, to } | Ends::Explicit { from, to, .. } => format!("{from} -> {to}"),
        Ends::MultiToSingle { from, to } => format!("{} -> {to}", list(from)),
        Ends::SingleToMulti { from, to } => format!("{from} -> {}", list(to)),
    }
}

#[cfg(test)]
mod tests;
