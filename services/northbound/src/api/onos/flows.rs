//! Flow rules in the interface of ONOS.
//!
//! ```text
//!   GET /onos/v1/flows/of:1 ──> a list of rules, then their counters ──> {"flows": […]}
//!   POST /onos/v1/flows/of:1 ──> a set with one rule, then its number ──> Location
//! ```
//!
//! In: requests with ONOS's JSON. Out: questions for the service `flows`. It removes only rules that were added here.

use super::flow_list::{FLOWS, FlowList, PENDING, Shown, Which, app_of, too_many};
use super::{criteria, instructions};
use crate::api::context::{Answer, Answered, Call, Context, First, Reading};
use crate::api::ofctl::entries::set_name;
use crate::api::page::{key, missing};
use crate::api::refusal::refusal;
use crate::api::writes::{OF_FLOWS, object, read_json};
use crate::http::{Problem, Response};
use burnet_sdk::DatapathId;
use burnet_sdk::view::EntryState;
use burnet_sdk::view::{Key, Kind, Object, Record, RuleId};
use flows_contract::{
    EntryPage, Filter, PAGE_MAX, Question, SET_NAME_BYTES_MAX, WantedRule, WantedSet, status,
};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use std::collections::{BTreeSet, VecDeque};

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

fn list(context: &Context<'_>, filters: impl IntoIterator<Item = Filter>, app: Option<&str>) -> Answered {
    let which = Which::Fitting(filters.into_iter().collect(), app.map(str::to_owned));
    Ok(Answer::Steps(Box::new(FlowList::new(which, Shown::Flows, context.state.now_ms))))
}

/// `GET /onos/v1/flows`
pub fn all(context: &Context<'_>) -> Answered {
    list(context, [Filter::default()], None)
}

/// `GET /onos/v1/flows/{id}`: the rules of a device, or one of them.
pub fn of_device(context: &Context<'_>) -> Answered {
    let Some((device, flow)) = context.id.split_once('/') else {
        let switch = Some(known(context, context.id)?);
        return list(context, [Filter { switch, ..Filter::default() }], None);
    };
    let which = Which::One(RuleId { switch: known(context, device)?, number: number(flow)? });
    Ok(Answer::Steps(Box::new(FlowList::new(which, Shown::Flows, context.state.now_ms))))
}

/// `GET /onos/v1/flows/table/{id}`
pub fn of_table(context: &Context<'_>) -> Answered {
    let wrong = |_| Problem::not_found(&format!("{:?} is no table", context.id));
    let table_id = Some(context.id.parse().map_err(wrong)?);
    list(context, [Filter { table_id, ..Filter::default() }], None)
}

/// `GET /onos/v1/flows/pending`
pub fn pending(context: &Context<'_>) -> Answered {
    list(context, PENDING.map(|state| Filter { state: Some(state), ..Filter::default() }), None)
}

/// `GET /onos/v1/flows/application/{id}`: the rules of an app of the node, or those that were added here for an app of ONOS.
pub fn of_app(context: &Context<'_>) -> Answered {
    let by = |owner: &str| Filter { owner: Some(owner.to_owned()), ..Filter::default() };
    let own = northbound_contract::SERVICE;
    let others = Some(by(context.id)).filter(|_| context.id != own);
    list(context, others.into_iter().chain([by(own)]), Some(context.id))
}

/// `GET /onos/v1/intents/relatedflows/{id}`: the rules of an intent.
pub fn of_intent(context: &Context<'_>, id: u64, shown: Shown) -> Answered {
    let (owner, set) = (Some(paths_contract::SERVICE.to_owned()), Some(format!("intent/{id}")));
    let filters = VecDeque::from([Filter { owner, set, ..Filter::default() }]);
    let list = FlowList::new(Which::Fitting(filters, None), shown, context.state.now_ms);
    Ok(Answer::Steps(Box::new(list)))
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
    add(app(context)?, VecDeque::from([rule]), Vec::new(), Box::new(then))
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
    add(app(context)?, rules, Vec::new(), Box::new(then))
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

/// The longest name of an app that the name of a set has room for.
const APP_BYTES_MAX: usize = SET_NAME_BYTES_MAX - FLOWS.len() - "/0123456789abcdef".len();

/// The app that ONOS's client names, or nothing.
fn app(context: &Context<'_>) -> Result<String, Problem> {
    let app = context.parameter("appId").unwrap_or_default();
    let is_plain = |it: char| it.is_ascii_alphanumeric() || "._-".contains(it);
    if app.len() > APP_BYTES_MAX || !app.chars().all(is_plain) {
        let why = format!(
            "{app:?} is no name of an app: write at most {APP_BYTES_MAX} letters, digits, dots, hyphens and underscores"
        );
        return Err(Problem::parameter("appId", why));
    }
    Ok(app.to_owned())
}

/// The name of the set with this rule. That of an app has two parts behind the prefix: the app and a hash. Another has four.
fn set_of(app: &str, rule: &WantedRule) -> String {
    let whole = set_name("", rule);
    match app {
        "" => format!("{FLOWS}{whole}"),
        app => {
            let hash = Sha256::digest(whole.as_bytes());
            let digits: String = hash[..8].iter().map(|byte| format!("{byte:02x}")).collect();
            format!("{FLOWS}{app}/{digits}")
        }
    }
}

type Added = Box<dyn FnOnce(Vec<RuleId>) -> Answered + Send>;

/// Puts each rule as a set, and asks for its number.
fn add(app: String, mut rules: VecDeque<WantedRule>, mut added: Vec<RuleId>, then: Added) -> Answered {
    let Some(rule) = rules.pop_front() else { return then(added) };
    let (switch, name) = (rule.switch, set_of(&app, &rule));
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
        add(app, rules, added, then)
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

/// `DELETE /onos/v1/flows/application/{id}`: the rules that were added here for an app of ONOS, at most [`RULES_MAX`] at once.
pub fn remove_of_app(context: &Context<'_>) -> Answered {
    collect_of_app(context.id.to_owned(), None, BTreeSet::new(), PAGES_MAX)
}

/// The most pages of rules of this service that one request reads.
const PAGES_MAX: usize = 10;

fn collect_of_app(app: String, after: Option<Key>, mut sets: BTreeSet<String>, pages: usize) -> Answered {
    let owner = Some(northbound_contract::SERVICE.to_owned());
    let filter = Filter { owner, ..Filter::default() };
    let question = Question::List { kind: Kind::Rule, filter, after, limit: Some(PAGE_MAX) };
    let next = move |payload: &[u8]| {
        let page: EntryPage = read_json(&OF_FLOWS, payload)?;
        sets.extend(page.entries.into_iter().filter_map(|record| match record.object {
            Object::Rule(rule)
                if rule.set.starts_with(FLOWS)
                    && app_of(&rule) == app
                    && rule.state != EntryState::Removing =>
            {
                Some(rule.set)
            }
            _ => None,
        }));
        match page.next {
            // A request that removed nothing would be sent again without end.
            Some(_) if pages <= 1 && sets.is_empty() => Err(too_many()),
            Some(_) if pages <= 1 || sets.len() >= RULES_MAX => remove_sets(sets, true),
            None => remove_sets(sets, false),
            next => collect_of_app(app, next, sets, pages - 1),
        }
    };
    ask(&question, Box::new(next))
}

/// Removes sets, one after the other. 202: some are left, so the client asks again.
fn remove_sets(mut sets: BTreeSet<String>, is_cut: bool) -> Answered {
    let left = sets.iter().nth(RULES_MAX).cloned().map(|first| sets.split_off(&first));
    let status = if is_cut || left.is_some() { 202 } else { 204 };
    remove_all_sets(sets.into_iter().collect(), status)
}

fn remove_all_sets(mut sets: VecDeque<String>, done: u16) -> Answered {
    let Some(name) = sets.pop_front() else { return Ok(Answer::Ready(Response::new(done, "", ""))) };
    let next = move |answer: u16, payload: &[u8]| match answer {
        status::DONE | status::NOT_FOUND => remove_all_sets(sets, done),
        answer => Err(refusal(&OF_FLOWS, answer, payload)),
    };
    let payload = Question::Remove { name }.to_bytes();
    Ok(Answer::Then(First { service: flows_contract::SERVICE, payload, next: Box::new(next) }))
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
