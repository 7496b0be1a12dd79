//! Requests that the services of the network answer: changes of hosts and intents, routes, and all about rules, groups and meters.
//!
//! ```text
//!   request ──question──> hosts, paths, flows ──status, payload──> response, or a problem with the field
//! ```
//!
//! In: requests with bodies in JSON. Out: calls with the questions of each contract, checked before they are sent, and what the answers become. It
//! changes nothing itself.

use super::context::{Answer, Answered, Call, Context, Reading};
use super::filters::parsed;
use super::objects::{BASE, address, collection, id_of, page_of, shown};
use super::page::{LIMIT_DEFAULT, LIMIT_MAX, key, tag_of};
use super::refusal::{Statuses, of_sentence, refusal};
use crate::http::request::encoded;
use crate::http::{Problem, Response};
use crate::ways::ManyWays;
use burnet_sdk::DatapathId;
use burnet_sdk::view::{ConnectPoint, HostId, Key, Kind, Record};
use northbound_contract::ROUTE_PAIRS_MAX;
use serde::Deserialize;
use serde_json::{Map, Value, json};

/// The statuses of the service `hosts`, and those of HTTP for them.
pub const OF_HOSTS: Statuses = Statuses {
    service: hosts_contract::SERVICE,
    http: &[
        (hosts_contract::status::NOT_FOUND, 404),
        (hosts_contract::status::CONFLICT, 409),
        (hosts_contract::status::FULL, 507),
        (hosts_contract::status::NOT_STORED, 507),
    ],
};

/// Those of the service `paths`.
pub const OF_PATHS: Statuses = Statuses {
    service: paths_contract::SERVICE,
    http: &[
        (paths_contract::status::NOT_FOUND, 404),
        (paths_contract::status::NO_WAY, 404),
        (paths_contract::status::CONFLICT, 409),
        (paths_contract::status::FULL, 507),
        (paths_contract::status::NOT_STORED, 507),
        (paths_contract::status::NOT_READY, 503),
        (paths_contract::status::MAYBE_STORED, 503),
    ],
};

/// Those of the service `flows`.
pub const OF_FLOWS: Statuses = Statuses {
    service: flows_contract::SERVICE,
    http: &[
        (flows_contract::status::NOT_FOUND, 404),
        (flows_contract::status::STALE, 409),
        (flows_contract::status::CONFLICT, 409),
        (flows_contract::status::FULL, 507),
        (flows_contract::status::NOT_STORED, 507),
        (flows_contract::status::NO_ANSWER_OF_SWITCH, 504),
    ],
};

/// The body, which is an object.
pub fn object(context: &Context<'_>) -> Result<Map<String, Value>, Problem> {
    let value = serde_json::from_slice(&context.request.body);
    let value = value.map_err(|why| Problem::bad_request(&format!("the body is no JSON: {why}")))?;
    match value {
        Value::Object(members) => Ok(members),
        _ => Err(Problem::bad_request("the body is no JSON object")),
    }
}

/// The body, with its whole numbers as integers.
pub fn members(context: &Context<'_>) -> Result<Map<String, Value>, Problem> {
    let mut members = object(context)?;
    members.values_mut().for_each(make_integers);
    Ok(members)
}

/// Numbers without a fraction are integers, also if they are written with a decimal point (JSON Schema 2020-12, 4.2.3).
pub fn make_integers(value: &mut Value) {
    // A floating-point number holds each integer up to this one exactly.
    const EXACT_MAX: f64 = 9_007_199_254_740_992.0;
    match value {
        Value::Object(members) => members.values_mut().for_each(make_integers),
        Value::Array(items) => items.iter_mut().for_each(make_integers),
        Value::Number(number) if number.is_f64() => {
            let is_integer = |it: &f64| it.fract() == 0.0 && (0.0..=EXACT_MAX).contains(it);
            if let Some(integer) = number.as_f64().filter(is_integer) {
                *value = Value::from(integer as u64);
            }
        }
        _ => {}
    }
}

/// Fails if the client changes another state than the one it knows.
pub fn precondition(context: &Context<'_>, key: Key) -> Result<(), Problem> {
    let Some(wanted) = &context.request.if_match else { return Ok(()) };
    let present = context.state.view.get(key).map(|record| tag_of(record));
    if wanted == "*" && present.is_some() || present.as_ref() == Some(wanted) {
        return Ok(());
    }
    let detail = format!("{} was changed meanwhile: read it again", id_of(key));
    Err(Problem::new(412, "changed", "It was changed meanwhile", detail))
}

/// A call whose answer is a record.
pub fn change(statuses: &'static Statuses, payload: Vec<u8>, status: u16) -> Answered {
    let read: Reading = Box::new(move |answer, payload| {
        if answer != 0 {
            return Err(refusal(statuses, answer, payload));
        }
        let record =
            Record::from_bytes(payload).map_err(|why| Problem::no_service(statuses.service, &why))?;
        Ok(response_of(&record, status))
    });
    Ok(Answer::Call(Call { service: statuses.service, payload, read }))
}

fn response_of(record: &Record, status: u16) -> Response {
    let response = Response::json(shown(&record.object)).tagged(tag_of(record));
    let response = Response { status, ..response };
    if status == 201 { response.with("location", address(record.object.key())) } else { response }
}

/// Checks a question by the rules of its contract.
pub fn checked<Q>(value: &Value, read: impl FnOnce(&[u8]) -> Result<Q, String>) -> Result<Vec<u8>, Problem> {
    let payload = value.to_string().into_bytes();
    read(&payload).map_err(|why| of_sentence(&why))?;
    Ok(payload)
}

/// `POST /api/v1/hosts`
pub fn add_host(context: &Context<'_>) -> Answered {
    let mut question = members(context)?;
    question.insert("op".to_owned(), "add".into());
    let payload = checked(&Value::Object(question), hosts_contract::Question::from_bytes)?;
    change(&OF_HOSTS, payload, 201)
}

/// `PATCH /api/v1/hosts/{id}`
pub fn change_host(context: &Context<'_>) -> Answered {
    let (key, id) = host(context)?;
    precondition(context, key)?;
    let mut question = members(context)?;
    question.insert("op".to_owned(), "change".into());
    question.insert("id".to_owned(), id.to_string().into());
    let payload = checked(&Value::Object(question), hosts_contract::Question::from_bytes)?;
    change(&OF_HOSTS, payload, 200)
}

/// `DELETE /api/v1/hosts/{id}`
pub fn remove_host(context: &Context<'_>) -> Answered {
    let (key, id) = host(context)?;
    precondition(context, key)?;
    let payload = hosts_contract::Question::Remove { id }.to_bytes();
    done(&OF_HOSTS, payload)
}

fn host(context: &Context<'_>) -> Result<(Key, HostId), Problem> {
    let key = key(Kind::Host, context.id)?;
    match key {
        Key::Host(id) => Ok((key, id)),
        _ => Err(Problem::not_found("it is no host")),
    }
}

/// A call whose answer has no payload.
pub fn done(statuses: &'static Statuses, payload: Vec<u8>) -> Answered {
    let read: Reading = Box::new(move |answer, payload| match answer {
        0 => Ok(Response::new(204, "", "")),
        answer => Err(refusal(statuses, answer, payload)),
    });
    Ok(Answer::Call(Call { service: statuses.service, payload, read }))
}

/// `POST /api/v1/intents`
pub fn add_intent(context: &Context<'_>) -> Answered {
    let mut intent = members(context)?;
    let mut question = Map::from_iter([("op".to_owned(), "add".into())]);
    for apart in ["name", "annotations"] {
        question.extend(intent.remove(apart).map(|value| (apart.to_owned(), value)));
    }
    question.insert("intent".to_owned(), Value::Object(intent));
    let payload = checked(&Value::Object(question), paths_contract::Question::from_bytes)?;
    change(&OF_PATHS, payload, 201)
}

/// `PUT /api/v1/intents/{id}`
pub fn change_intent(context: &Context<'_>) -> Answered {
    let id = intent(context)?;
    let question = json!({ "op": "change", "id": id, "intent": members(context)? });
    change(&OF_PATHS, checked(&question, paths_contract::Question::from_bytes)?, 200)
}

/// `DELETE /api/v1/intents/{id}`: it is gone when no rule of it is left.
pub fn withdraw_intent(context: &Context<'_>) -> Answered {
    let id = intent(context)?;
    let question = json!({ "op": "withdraw", "id": id });
    change(&OF_PATHS, checked(&question, paths_contract::Question::from_bytes)?, 202)
}

fn intent(context: &Context<'_>) -> Result<u64, Problem> {
    let key = key(Kind::Intent, context.id)?;
    precondition(context, key)?;
    match key {
        Key::Intent(id) => Ok(id.0),
        _ => Err(Problem::not_found("it is no intent")),
    }
}

/// `GET /api/v1/routes`: ways between two ends, without an intent.
pub fn routes(context: &Context<'_>) -> Answered {
    let (from, to) = (end(context, "from")?, end(context, "to")?);
    let count = context.number("k", (1, paths_contract::WAYS_MAX.into()))?.unwrap_or(1);
    let mut constraints = Map::new();
    for name in ["bandwidth_kbps", "latency_us_max"] {
        let number: Option<u64> = context.parameter(name).map(|it| parsed(name, it)).transpose()?;
        constraints.extend(number.map(|it| (name.to_owned(), it.into())));
    }
    let choice = context.parameter("choice").unwrap_or("equal");
    let question = json!({ "op": "ways", "from": from.to_string(), "to": to.to_string(), "count": count, "choice": choice,
                           "constraints": constraints });
    let payload = checked(&question, paths_contract::Question::from_bytes).map_err(|problem| {
        Problem::parameter(problem.field.as_deref().unwrap_or("choice"), problem.detail.clone())
    })?;
    let read: Reading = Box::new(|answer, payload| match answer {
        0 => {
            let ways: paths_contract::Ways = read_json(&OF_PATHS, payload)?;
            Ok(Response::value(&json!({ "items": ways.ways })))
        }
        answer => Err(refusal(&OF_PATHS, answer, payload)),
    });
    Ok(Answer::Call(Call { service: paths_contract::SERVICE, payload, read }))
}

/// The body of `POST /api/v1/routes`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Pairs {
    pairs: Vec<Pair>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Pair {
    from: DatapathId,
    to: DatapathId,
}

/// `POST /api/v1/routes`: one way between the switches of each pair.
pub fn many_routes(context: &Context<'_>) -> Answered {
    let read = serde_json::from_value(Value::Object(object(context)?));
    let Pairs { pairs } = read.map_err(|why| of_sentence(&why.to_string()))?;
    if pairs.len() > ROUTE_PAIRS_MAX {
        let why = format!(
            "{} pairs are more than the limit of {ROUTE_PAIRS_MAX}: send several requests",
            pairs.len()
        );
        return Err(Problem::field("pairs", why));
    }
    let pairs = pairs.into_iter().map(|pair| (pair.from, pair.to)).collect();
    Ok(Answer::Steps(Box::new(ManyWays::new(pairs))))
}

/// The switch of an end: a datapath id, a connect point, or a host.
fn end(context: &Context<'_>, name: &str) -> Result<DatapathId, Problem> {
    let Some(text) = context.parameter(name) else {
        return Err(Problem::parameter(name, "it is missing: write a switch, a connect point or a host"));
    };
    if let Ok(point) = text.parse::<ConnectPoint>() {
        return Ok(point.switch);
    }
    if let Ok(host) = text.parse::<HostId>() {
        let known = context.state.view.host(host).map(|host| host.at.switch);
        return known.ok_or_else(|| Problem::parameter(name, format!("the network has no host {host}")));
    }
    parsed(name, text)
}

pub fn read_json<T: serde::de::DeserializeOwned>(statuses: &Statuses, payload: &[u8]) -> Result<T, Problem> {
    let wrong = |why| Problem::no_service(statuses.service, &format!("its answer is damaged: {why}"));
    serde_json::from_slice(payload).map_err(wrong)
}

/// A page of rules, groups or meters. The service `flows` is asked for it: a network has a thousand times more of them than of other objects.
pub fn entries(context: &Context<'_>, kind: Kind) -> Answered {
    let path = format!("{BASE}/{}", collection(kind));
    list(context, kind, path, None)
}

/// Those of one switch.
pub fn entries_of(context: &Context<'_>, kind: Kind) -> Answered {
    let switch = key(Kind::Switch, context.id)?;
    list(context, kind, format!("{}/{}", address(switch), collection(kind)), Some(id_of(switch)))
}

fn list(context: &Context<'_>, kind: Kind, path: String, switch: Option<String>) -> Answered {
    let limit = context.number("limit", (1, LIMIT_MAX))?.unwrap_or(LIMIT_DEFAULT);
    let mut filter = Map::new();
    for (name, value) in &context.request.parameters {
        let value = match name.as_str() {
            "limit" | "after" => continue,
            "table_id" => parsed::<u8>(name, value)?.into(),
            _ => value.as_str().into(),
        };
        filter.insert(name.clone(), value);
    }
    filter.extend(switch.map(|it| ("switch".to_owned(), it.into())));
    let after = context.parameter("after").map(|id| format!("{}/{id}", kind.word()));
    let mut question = json!({ "op": "list", "kind": kind, "filter": filter, "limit": limit });
    if let (Some(after), Some(members)) = (after, question.as_object_mut()) {
        members.insert("after".to_owned(), after.into());
    }
    let wrong = |problem: Problem| Problem {
        status: 400,
        name: "bad-parameter",
        title: "A parameter is wrong",
        ..problem
    };
    let payload = checked(&question, flows_contract::Question::from_bytes).map_err(wrong)?;
    let names: Vec<_> =
        context.request.parameters.iter().filter(|(name, _)| name != "after").cloned().collect();
    let read: Reading = Box::new(move |answer, payload| match answer {
        0 => entry_page(payload, &path, &names),
        answer => Err(refusal(&OF_FLOWS, answer, payload)),
    });
    Ok(Answer::Call(Call { service: flows_contract::SERVICE, payload, read }))
}

fn entry_page(payload: &[u8], path: &str, parameters: &[(String, String)]) -> Result<Response, Problem> {
    let page: flows_contract::EntryPage = read_json(&OF_FLOWS, payload)?;
    let next = page.next.map(|next| {
        let kept = parameters.iter().map(|(name, value)| format!("{}={}&", encoded(name), encoded(value)));
        format!("{path}?{}after={}", kept.collect::<String>(), encoded(&id_of(next)))
    });
    let objects = page.entries.iter().map(|record| &record.object);
    Ok(Response::json(page_of(objects, next.as_deref(), "")))
}

/// One rule, group or meter.
pub fn entry(context: &Context<'_>, kind: Kind) -> Answered {
    let key = key(kind, context.id)?;
    change(&OF_FLOWS, flows_contract::Question::Get { key }.to_bytes(), 200)
}

/// `PUT /api/v1/rule-sets/{id}`: rules that are kept until the set is removed.
pub fn put_rules(context: &Context<'_>) -> Answered {
    let mut question = members(context)?;
    question.insert("op".to_owned(), "put".into());
    question.insert("name".to_owned(), context.id.into());
    question.entry("permanent").or_insert(true.into());
    done(&OF_FLOWS, checked(&Value::Object(question), flows_contract::Question::from_bytes)?)
}

/// `DELETE /api/v1/rule-sets/{id}`
pub fn remove_rules(context: &Context<'_>) -> Answered {
    let question = json!({ "op": "remove", "name": context.id });
    done(&OF_FLOWS, checked(&question, flows_contract::Question::from_bytes)?)
}
