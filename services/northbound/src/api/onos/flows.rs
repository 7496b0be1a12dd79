//! Flow rules in the interface of ONOS.
//!
//! ```text
//!   GET /onos/v1/flows/of:1 ──> rules, then their counters ──> {"flows": […]}
//!   POST /onos/v1/flows/of:1 ──> a set with one rule, then its number ──> Location
//! ```
//!
//! In: requests with ONOS's JSON. Out: questions for the service `flows`. It removes only rules that were added here.

use super::{criteria, instructions};
use crate::api::context::{Answer, Answered, Call, Context, First, Reading};
use crate::api::ofctl::entries::set_name;
use crate::api::page::{key, missing};
use crate::api::refusal::refusal;
use crate::api::writes::{OF_FLOWS, object, read_json};
use crate::http::{Problem, Response};
use burnet_sdk::DatapathId;
use burnet_sdk::view::rule::EntryState;
use burnet_sdk::view::{Key, Kind, Object, Record, Rule, RuleId};
use flows_contract::{Counters, EntryPage, Filter, PAGE_MAX, Question, WantedRule, WantedSet, status};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// How the names of sets of this interface begin.
const FLOWS: &str = "onos/";

/// The most pages of rules in one answer.
const PAGES_MAX: usize = 10;

/// The most rules that one request adds or removes: each needs two calls of the service `flows`.
const RULES_MAX: usize = 1_000;

/// What is done with the payload of an answer.
type Next = Box<dyn FnOnce(&[u8]) -> Answered + Send>;

/// Asks the service `flows`, and goes on if it does not refuse.
fn ask(question: &Question, next: Next) -> Answered {
    let next = move |answer: u16, payload: &[u8]| match answer {
        0 => next(payload),
        answer => Err(refusal(&OF_FLOWS, answer, payload)),
    };
    Ok(Answer::Then(First {
        service: flows_contract::SERVICE,
        payload: question.to_bytes(),
        next: Box::new(next),
    }))
}

/// `GET /onos/v1/flows`
pub fn all(context: &Context<'_>) -> Answered {
    shown(None, None, context.state.now_ms)
}

/// `GET /onos/v1/flows/{id}`: the rules of a device, or one of them.
pub fn of_device(context: &Context<'_>) -> Answered {
    let (device, flow) = context.id.split_once('/').map_or((context.id, None), |(one, two)| (one, Some(two)));
    let device = known(context, device)?;
    let flow = flow.map(number).transpose()?;
    shown(Some(device), flow, context.state.now_ms)
}

fn known(context: &Context<'_>, device: &str) -> Result<DatapathId, Problem> {
    let key = key(Kind::Switch, device)?;
    match key {
        Key::Switch(id) if context.state.view.switch(id).is_some() => Ok(id),
        _ => Err(missing(key)),
    }
}

fn number(flow: &str) -> Result<u64, Problem> {
    flow.parse().map_err(|_| Problem::not_found(&format!("{flow:?} is no id of a flow rule")))
}

fn shown(device: Option<DatapathId>, flow: Option<u64>, now_ms: u64) -> Answered {
    let then = move |rules: Vec<Rule>| {
        let rules: Vec<Rule> =
            rules.into_iter().filter(|rule| flow.is_none_or(|it| it == rule.id.number)).collect();
        if let (Some(flow), true) = (flow, rules.is_empty()) {
            return Err(Problem::not_found(&format!("the device has no flow rule {flow}")));
        }
        let switches: BTreeSet<DatapathId> = rules.iter().map(|rule| rule.id.switch).collect();
        counted(rules, switches.into_iter().collect(), BTreeMap::new(), now_ms)
    };
    collect(device, None, Vec::new(), PAGES_MAX, Box::new(then))
}

type Then = Box<dyn FnOnce(Vec<Rule>) -> Answered + Send>;

fn collect(
    switch: Option<DatapathId>,
    after: Option<Key>,
    mut found: Vec<Rule>,
    pages: usize,
    then: Then,
) -> Answered {
    let filter = Filter { switch, ..Filter::default() };
    let question = Question::List { kind: Kind::Rule, filter, after, limit: Some(PAGE_MAX) };
    ask(
        &question,
        Box::new(move |payload| {
            let page: EntryPage = read_json(&OF_FLOWS, payload)?;
            found.extend(page.entries.into_iter().filter_map(|record| match record.object {
                Object::Rule(rule) => Some(rule),
                _ => None,
            }));
            match page.next {
                None => then(found),
                Some(_) if pages <= 1 => Err(Problem::too_many(
                    "the network has too many rules for one answer: ask for one device",
                )),
                next => collect(switch, next, found, pages - 1, then),
            }
        }),
    )
}

/// Asks each switch for the counters of its rules. One that does not answer has none.
fn counted(
    rules: Vec<Rule>,
    mut switches: VecDeque<DatapathId>,
    mut counters: BTreeMap<(DatapathId, u64), Counters>,
    now_ms: u64,
) -> Answered {
    let Some(switch) = switches.pop_front() else {
        let of = |rule: &Rule| counters.get(&(rule.id.switch, rule.id.number)).copied();
        let flows: Vec<Value> = rules.iter().map(|rule| one(rule, of(rule), now_ms)).collect();
        return Ok(Answer::Ready(Response::value(&json!({ "flows": flows }))));
    };
    let next = move |answer: u16, payload: &[u8]| {
        if answer == 0 {
            let found: Vec<Counters> = read_json(&OF_FLOWS, payload)?;
            counters.extend(found.into_iter().map(|it| ((it.id.switch, it.id.number), it)));
        }
        counted(rules, switches, counters, now_ms)
    };
    let payload = Question::Counters { switch, table_id: None }.to_bytes();
    Ok(Answer::Then(First { service: flows_contract::SERVICE, payload, next: Box::new(next) }))
}

fn one(rule: &Rule, counters: Option<Counters>, now_ms: u64) -> Value {
    let timeout = rule.idle_timeout_s.max(rule.hard_timeout_s);
    json!({
        "groupId": 0,
        "state": word(rule.state),
        "life": counters.map_or(0, |it| it.duration_s),
        "liveType": "UNKNOWN",
        "lastSeen": now_ms,
        "packets": counters.map_or(0, |it| it.packets),
        "bytes": counters.map_or(0, |it| it.bytes),
        "id": rule.id.number.to_string(),
        "appId": rule.owner,
        "priority": rule.priority,
        "timeout": timeout,
        "isPermanent": timeout == 0,
        "deviceId": rule.id.switch.to_string(),
        "tableId": rule.table_id,
        "tableName": rule.table_id.to_string(),
        "treatment": instructions::shown(&rule.instructions),
        "selector": criteria::shown(&rule.matching),
    })
}

fn word(state: EntryState) -> &'static str {
    match state {
        EntryState::Installed => "ADDED",
        EntryState::Removing => "PENDING_REMOVE",
        EntryState::Failed => "FAILED",
        _ => "PENDING_ADD",
    }
}

/// `POST /onos/v1/flows/{id}`: one rule.
pub fn add_one(context: &Context<'_>) -> Answered {
    let device = known(context, context.id)?;
    let rule = wanted(context, &object(context)?, Some(device))?;
    let then = |added: Vec<RuleId>| {
        let location = added.first().map(|it| format!("/onos/v1/flows/{}/{}", it.switch, it.number));
        let response = Response::new(201, "", "");
        Ok(Answer::Ready(match location {
            Some(location) => response.with("location", location),
            None => response,
        }))
    };
    add(VecDeque::from([rule]), Vec::new(), Box::new(then))
}

/// `POST /onos/v1/flows`: a list of rules.
pub fn add_all(context: &Context<'_>) -> Answered {
    let body = object(context)?;
    let Some(Value::Array(list)) = body.get("flows") else {
        return Err(Problem::field("flows", "flows: write a list of flow rules"));
    };
    bounded(list)?;
    let no_object = || Problem::field("flows", "flows: it is no list of objects");
    let rule = |item: &Value| wanted(context, item.as_object().ok_or_else(no_object)?, None);
    let rules = list.iter().map(rule).collect::<Result<VecDeque<_>, _>>()?;
    let then = |added: Vec<RuleId>| {
        let shown =
            |it: &RuleId| json!({ "deviceId": it.switch.to_string(), "flowId": it.number.to_string() });
        let flows: Vec<Value> = added.iter().map(shown).collect();
        Ok(Answer::Ready(Response::value(&json!({ "flows": flows }))))
    };
    add(rules, Vec::new(), Box::new(then))
}

fn bounded(list: &[Value]) -> Result<(), Problem> {
    match list.len() <= RULES_MAX {
        true => Ok(()),
        false => Err(Problem::field("flows", format!("flows: a request has at most {RULES_MAX} flow rules"))),
    }
}

fn wanted(
    context: &Context<'_>,
    flow: &Map<String, Value>,
    device: Option<DatapathId>,
) -> Result<WantedRule, Problem> {
    let no_device = || Problem::field("deviceId", "deviceId: it is missing");
    let switch = match (device, flow.get("deviceId")) {
        (Some(device), _) => device,
        (None, id) => known(context, id.and_then(Value::as_str).ok_or_else(no_device)?)?,
    };
    let timeout = small(flow, "timeout", 0)?;
    let is_permanent = flow.get("isPermanent").and_then(Value::as_bool).unwrap_or(timeout == 0);
    if !is_permanent && timeout == 0 {
        return Err(Problem::field("timeout", "timeout: a rule that is not permanent needs seconds"));
    }
    let table_id = u8::try_from(small(flow, "tableId", 0)?)
        .map_err(|_| Problem::field("tableId", "tableId: it is above 255"))?;
    Ok(WantedRule {
        switch,
        table_id,
        stage: 0,
        priority: small(flow, "priority", 5)?,
        // ONOS removes a rule after this time without packets.
        idle_timeout_s: if is_permanent { 0 } else { timeout },
        hard_timeout_s: 0,
        matching: criteria::read(flow.get("selector"))?.sorted(),
        instructions: instructions::read(flow.get("treatment"))?,
    })
}

/// A number, which ONOS's clients also write as text.
fn small(flow: &Map<String, Value>, name: &str, default: u16) -> Result<u16, Problem> {
    match flow.get(name) {
        None | Some(Value::Null) => Ok(default),
        Some(value) => criteria::plain(value)
            .and_then(|text| text.parse().ok())
            .ok_or_else(|| Problem::field(name, format!("{name}: write a number up to 65535"))),
    }
}

type Added = Box<dyn FnOnce(Vec<RuleId>) -> Answered + Send>;

/// Puts each rule as a set, and asks for its number.
fn add(mut rules: VecDeque<WantedRule>, mut added: Vec<RuleId>, then: Added) -> Answered {
    let Some(rule) = rules.pop_front() else { return then(added) };
    let (switch, name) = (rule.switch, set_name(FLOWS, &rule));
    let set = WantedSet {
        name: name.clone(),
        version: None,
        in_order: false,
        permanent: false,
        rules: vec![rule],
        groups: Vec::new(),
        meters: Vec::new(),
    };
    let numbered = move |payload: &[u8]| {
        let page: EntryPage = read_json(&OF_FLOWS, payload)?;
        added.extend(page.entries.iter().filter_map(|record| match &record.object {
            Object::Rule(rule) => Some(rule.id),
            _ => None,
        }));
        add(rules, added, then)
    };
    let find = move |_: &[u8]| {
        let owner = Some(northbound_contract::SERVICE.to_owned());
        let filter = Filter { switch: Some(switch), owner, set: Some(name), ..Filter::default() };
        let question = Question::List { kind: Kind::Rule, filter, after: None, limit: Some(1) };
        ask(&question, Box::new(numbered))
    };
    ask(&Question::Put(set), Box::new(find))
}

/// `DELETE /onos/v1/flows/{id}`: the device and the id of the rule.
pub fn remove_one(context: &Context<'_>) -> Answered {
    let Some((device, flow)) = context.id.split_once('/') else {
        return Err(Problem::not_found(
            "write the device and the id of the flow rule: /onos/v1/flows/of:1/7",
        ));
    };
    remove(VecDeque::from([RuleId { switch: known(context, device)?, number: number(flow)? }]))
}

/// `DELETE /onos/v1/flows`: a list of devices and ids of rules.
pub fn remove_all(context: &Context<'_>) -> Answered {
    let body = object(context)?;
    let Some(Value::Array(list)) = body.get("flows") else {
        return Err(Problem::field("flows", "flows: write a list of objects with deviceId and flowId"));
    };
    bounded(list)?;
    let of = |item: &Value| {
        let member = |name: &str| {
            let missing = || Problem::field("flows", format!("flows: {name} is missing"));
            criteria::plain(&item[name]).ok_or_else(missing)
        };
        Ok(RuleId { switch: known(context, &member("deviceId")?)?, number: number(&member("flowId")?)? })
    };
    remove(list.iter().map(of).collect::<Result<_, Problem>>()?)
}

fn remove(mut ids: VecDeque<RuleId>) -> Answered {
    let Some(id) = ids.pop_front() else { return Ok(Answer::Ready(Response::new(204, "", ""))) };
    let is_last = ids.is_empty();
    let found = move |payload: &[u8]| {
        let damaged = |why: String| Problem::no_service(flows_contract::SERVICE, &why);
        let record = Record::from_bytes(payload).map_err(damaged)?;
        let Object::Rule(rule) = record.object else { return Err(damaged("it is no rule".to_owned())) };
        if rule.owner != northbound_contract::SERVICE || !rule.set.starts_with(FLOWS) {
            let (owner, set) = (rule.owner, rule.set);
            return Err(Problem::conflict(format!(
                "{owner} wants this rule, in its set {set:?}: only {owner} removes it"
            )));
        }
        let question = Question::Remove { name: rule.set };
        if !is_last {
            return ask(&question, Box::new(move |_| remove(ids)));
        }
        let read: Reading = Box::new(|answer, payload| match answer {
            status::DONE | status::NOT_FOUND => Ok(Response::new(204, "", "")),
            answer => Err(refusal(&OF_FLOWS, answer, payload)),
        });
        let payload = question.to_bytes();
        Ok(Answer::Call(Call { service: flows_contract::SERVICE, payload, read }))
    };
    ask(&Question::Get { key: Key::Rule(id) }, Box::new(found))
}
