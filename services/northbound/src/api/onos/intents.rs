//! Intents in the interface of ONOS.
//!
//! In: the view, and requests with ONOS's JSON. Out: JSON, or questions for the service `paths`. The key of an intent is its name, or its number
//! in hexadecimal digits if it has no name. The name of an ONOS app is kept as a note.

use super::flow_list::Shown;
use super::shapes::{end, host_name, link, read_host};
use super::{criteria, instructions};
use crate::api::context::{Answer, Answered, Call, Context, First, Reading};
use crate::api::refusal::{of_sentence, refusal};
use crate::api::writes::{OF_PATHS, done, object, read_json};
use crate::http::request::encoded;
use crate::http::{Problem, Response};
use burnet_sdk::DatapathId;
use burnet_sdk::flow::Instruction;
use burnet_sdk::view::{
    ConnectPoint, Constraints, Ends, HostId, Intent, IntentId, IntentState, LinkId, Object, Protection,
    Record, Wanted,
};
use paths_contract::{Choice, Question, Ways, status};
use serde_json::{Map, Value, json};
use std::collections::VecDeque;

/// The note with the name of the ONOS app.
const APP: &str = "onos.app";

/// The priority that ONOS gives an intent.
const PRIORITY: u16 = 100;

/// `GET /onos/v1/intents`: with `detail=true` as `GET` of each of them shows it.
pub fn all(context: &Context<'_>) -> Answered {
    list(context, |_| true)
}

/// `GET /onos/v1/intents/application/{id}`
pub fn of_app(context: &Context<'_>) -> Answered {
    list(context, |intent| app(intent) == context.id)
}

fn list(context: &Context<'_>, wanted: impl Fn(&Intent) -> bool) -> Answered {
    let shown = match context.parameter("detail") {
        None | Some("false") => brief,
        Some("true" | "") => whole,
        Some(other) => {
            let why = format!("{other:?} is wrong: write true or false");
            return Err(Problem::parameter("detail", why));
        }
    };
    let intents: Vec<Value> =
        context.state.view.intents().filter(|intent| wanted(intent)).map(shown).collect();
    Ok(Answer::Ready(Response::value(&json!({ "intents": intents }))))
}

/// `GET /onos/v1/intents/relatedflows/{id}`: the rules of an intent, as one path.
pub fn related_flows(context: &Context<'_>) -> Answered {
    let intent = found(context)?;
    let shown = Shown::OfIntent(app(intent).to_owned(), key(intent));
    super::flows::of_intent(context, intent.id.0, shown)
}

/// The most intents that one request withdraws, each with a call of the service `paths`.
const WITHDRAWN_MAX: usize = 1_000;

/// `DELETE /onos/v1/intents/application/{id}`: at most [`WITHDRAWN_MAX`] at once. 202: some are left, so the client asks again.
pub fn withdraw_of_app(context: &Context<'_>) -> Answered {
    let is_there = |it: &&Intent| app(it) == context.id && it.state != IntentState::Withdrawing;
    let mut ids: VecDeque<IntentId> = context.state.view.intents().filter(is_there).map(|it| it.id).collect();
    let status = if ids.len() > WITHDRAWN_MAX { 202 } else { 204 };
    ids.truncate(WITHDRAWN_MAX);
    withdraw_each(ids, status)
}

fn withdraw_each(mut ids: VecDeque<IntentId>, done: u16) -> Answered {
    let Some(id) = ids.pop_front() else { return Ok(Answer::Ready(Response::new(done, "", ""))) };
    let next = move |answer: u16, payload: &[u8]| match answer {
        status::DONE | status::NOT_FOUND => withdraw_each(ids, done),
        answer => Err(refusal(&OF_PATHS, answer, payload)),
    };
    let payload = Question::Withdraw { id }.to_bytes();
    Ok(Answer::Then(First { service: paths_contract::SERVICE, payload, next: Box::new(next) }))
}

/// `GET /onos/v1/intents/{id}`: the app and the key.
pub fn one(context: &Context<'_>) -> Answered {
    Ok(Answer::Ready(Response::value(&whole(found(context)?))))
}

/// `DELETE /onos/v1/intents/{id}`
pub fn withdraw(context: &Context<'_>) -> Answered {
    done(&OF_PATHS, Question::Withdraw { id: found(context)?.id }.to_bytes())
}

fn found<'a>(context: &'a Context<'_>) -> Result<&'a Intent, Problem> {
    let missing = || Problem::not_found(&format!("there is no intent {:?}: write APP/KEY", context.id));
    let (app, key) = context.id.split_once('/').ok_or_else(missing)?;
    let is_it = |intent: &&Intent| self::app(intent) == app && is_key(intent, key);
    context.state.view.intents().find(is_it).ok_or_else(missing)
}

fn is_key(intent: &Intent, key: &str) -> bool {
    self::key(intent) == key || format!("{:#x}", intent.id.0) == key
}

fn app(intent: &Intent) -> &str {
    intent.annotations.get(APP).unwrap_or(&intent.owner)
}

fn key(intent: &Intent) -> String {
    if intent.name.is_empty() { format!("{:#x}", intent.id.0) } else { intent.name.clone() }
}

fn kind(ends: &Ends) -> &'static str {
    match ends {
        Ends::HostToHost { .. } => "HostToHostIntent",
        Ends::PointToPoint { .. } => "PointToPointIntent",
        Ends::MultiToSingle { .. } => "MultiPointToSinglePointIntent",
        Ends::SingleToMulti { .. } => "SinglePointToMultiPointIntent",
        Ends::Explicit { .. } => "PathIntent",
    }
}

fn word(state: IntentState) -> &'static str {
    match state {
        IntentState::Requested => "INSTALL_REQ",
        IntentState::Compiling => "COMPILING",
        IntentState::Installing => "INSTALLING",
        IntentState::Installed => "INSTALLED",
        IntentState::Rerouting => "RECOMPILING",
        // ONOS has no word for an intent that goes on by itself.
        IntentState::Waiting | IntentState::Failed => "FAILED",
        IntentState::Withdrawing => "WITHDRAWING",
    }
}

fn brief(intent: &Intent) -> Value {
    let resources: Vec<String> = match &intent.wanted.ends {
        Ends::HostToHost { one, two } => vec![host_name(*one), host_name(*two)],
        Ends::PointToPoint { from, to } => vec![from.to_string(), to.to_string()],
        Ends::MultiToSingle { from, to } => from.iter().chain([to]).map(ToString::to_string).collect(),
        Ends::SingleToMulti { from, to } => [from].into_iter().chain(to).map(ToString::to_string).collect(),
        Ends::Explicit { links, .. } => links.iter().map(ToString::to_string).collect(),
    };
    json!({
        "type": kind(&intent.wanted.ends),
        "id": format!("{:#x}", intent.id.0),
        "key": key(intent),
        "appId": app(intent),
        "resources": resources,
        "state": word(intent.state),
    })
}

fn whole(intent: &Intent) -> Value {
    let wanted = &intent.wanted;
    let mut value = brief(intent);
    let mut members = Map::new();
    members.insert("priority".to_owned(), wanted.priority.into());
    members.insert("selector".to_owned(), criteria::shown(&wanted.selector));
    let treatment = [Instruction::ApplyActions(wanted.treatment.clone())];
    members.insert("treatment".to_owned(), instructions::shown(&treatment));
    members.insert("constraints".to_owned(), constraints(&wanted.constraints).into());
    let mut add = |name: &str, value: Value| drop(members.insert(name.to_owned(), value));
    let several = |list: &[ConnectPoint]| list.iter().map(|it| end(*it)).collect::<Value>();
    match &wanted.ends {
        Ends::HostToHost { one, two } => {
            add("one", host_name(*one).into());
            add("two", host_name(*two).into());
        }
        Ends::PointToPoint { from, to } | Ends::Explicit { from, to, .. } => {
            add("ingressPoint", end(*from));
            add("egressPoint", end(*to));
        }
        Ends::MultiToSingle { from, to } => {
            add("ingressPoint", several(from));
            add("egressPoint", end(*to));
        }
        Ends::SingleToMulti { from, to } => {
            add("ingressPoint", end(*from));
            add("egressPoint", several(to));
        }
    }
    if let Value::Object(all) = &mut value {
        all.extend(members);
    }
    value
}

fn constraints(of: &Constraints) -> Vec<Value> {
    let mut list = Vec::new();
    if of.bandwidth_kbps > 0 {
        let bits = of.bandwidth_kbps.saturating_mul(1_000);
        list.push(json!({ "type": "BandwidthConstraint", "bandwidth": bits }));
    }
    if let Some(latency) = of.latency_us_max {
        list.push(json!({ "type": "LatencyConstraint", "latencyMillis": latency / 1_000 }));
    }
    if !of.via.is_empty() {
        let via: Vec<String> = of.via.iter().map(ToString::to_string).collect();
        list.push(json!({ "type": "WaypointConstraint", "waypoints": via }));
    }
    list
}

/// `POST /onos/v1/intents`
pub fn add(context: &Context<'_>) -> Answered {
    let body = object(context)?;
    let text = |name: &str| body.get(name).and_then(criteria::plain);
    let priority = match body.get("priority") {
        None | Some(Value::Null) => PRIORITY,
        Some(value) => criteria::plain(value)
            .and_then(|text| text.parse().ok())
            .ok_or_else(|| Problem::field("priority", "priority: write a number up to 65535"))?,
    };
    let intent = Wanted {
        ends: ends(&body)?,
        selector: criteria::read(body.get("selector"))?,
        treatment: instructions::read_actions(body.get("treatment"))?,
        constraints: read_constraints(body.get("constraints"))?,
        priority,
        protection: Protection::Restored,
    };
    let app = text("appId").unwrap_or_else(|| northbound_contract::SERVICE.to_owned());
    let annotations = [(APP.to_owned(), app.clone())].into();
    let question = Question::Add { name: text("key").unwrap_or_default(), intent, annotations };
    let payload = question.to_bytes();
    Question::from_bytes(&payload).map_err(|why| of_sentence(&why))?;
    let read: Reading = Box::new(move |answer, payload| {
        if answer != 0 {
            return Err(refusal(&OF_PATHS, answer, payload));
        }
        let damaged = |why: String| Problem::no_service(paths_contract::SERVICE, &why);
        let record = Record::from_bytes(payload).map_err(damaged)?;
        let Object::Intent(intent) = record.object else { return Err(damaged("it is no intent".to_owned())) };
        let location = format!("/onos/v1/intents/{}/{}", encoded(&app), encoded(&key(&intent)));
        Ok(Response::new(201, "", "").with("location", location))
    });
    Ok(Answer::Call(Call { service: paths_contract::SERVICE, payload, read }))
}

fn ends(body: &Map<String, Value>) -> Result<Ends, Problem> {
    let several = |name: &str| match body.get(name) {
        Some(Value::Array(list)) => list.iter().map(|it| read_end(it, name)).collect::<Result<Vec<_>, _>>(),
        _ => Err(Problem::field(name, format!("{name}: write a list of ports"))),
    };
    let single = |name: &str| read_end(body.get(name).unwrap_or(&Value::Null), name);
    let host = |name: &str| {
        let text = body.get(name).and_then(Value::as_str).unwrap_or_default();
        read_host(text).ok_or_else(|| {
            Problem::field(name, format!("{name}: {text:?} is no host: write 00:00:00:00:00:01/None"))
        })
    };
    match body.get("type").and_then(Value::as_str) {
        Some("HostToHostIntent") => Ok(Ends::HostToHost { one: host("one")?, two: host("two")? }),
        Some("PointToPointIntent") => {
            Ok(Ends::PointToPoint { from: single("ingressPoint")?, to: single("egressPoint")? })
        }
        Some("MultiPointToSinglePointIntent") => {
            Ok(Ends::MultiToSingle { from: several("ingressPoint")?, to: single("egressPoint")? })
        }
        Some("SinglePointToMultiPointIntent") => {
            Ok(Ends::SingleToMulti { from: single("ingressPoint")?, to: several("egressPoint")? })
        }
        other => {
            let known = "HostToHostIntent, PointToPointIntent, MultiPointToSinglePointIntent or \
                         SinglePointToMultiPointIntent";
            let other = other.unwrap_or_default();
            Err(Problem::field("type", format!("type: {other:?} is not supported: write {known}")))
        }
    }
}

fn read_end(value: &Value, name: &str) -> Result<ConnectPoint, Problem> {
    let wrong = || {
        Problem::field(
            name,
            format!("{name}: write {{\"device\": \"of:0000000000000001\", \"port\": \"1\"}}"),
        )
    };
    // A text such as of:1/2, too.
    if let Some(text) = value.as_str() {
        return text.parse().map_err(|_| wrong());
    }
    let switch: Option<DatapathId> = value["device"].as_str().and_then(|it| it.parse().ok());
    let port = criteria::port(&value["port"]);
    switch.zip(port).map(|(switch, port)| ConnectPoint { switch, port }).ok_or_else(wrong)
}

fn read_constraints(value: Option<&Value>) -> Result<Constraints, Problem> {
    let list = match value {
        None | Some(Value::Null) => return Ok(Constraints::default()),
        Some(Value::Array(list)) => list,
        Some(_) => return Err(Problem::field("constraints", "constraints: it is no list")),
    };
    let mut constraints = Constraints::default();
    for (index, item) in list.iter().enumerate() {
        let wrong = |why: &str| {
            let at = format!("constraints[{index}]");
            Problem::field(&at, format!("{at}: {why}"))
        };
        let whole = |name: &str| {
            let text = criteria::plain(&item[name]).ok_or_else(|| wrong(&format!("{name} is missing")))?;
            let whole = text.split('.').next().unwrap_or_default();
            whole.parse::<u64>().map_err(|_| wrong(&format!("{name} is no number")))
        };
        match item["type"].as_str().unwrap_or_default() {
            "BandwidthConstraint" => constraints.bandwidth_kbps = whole("bandwidth")?.div_ceil(1_000),
            "LatencyConstraint" => {
                constraints.latency_us_max = Some(whole("latencyMillis")?.saturating_mul(1_000))
            }
            "WaypointConstraint" => {
                let list = item["waypoints"].as_array().ok_or_else(|| wrong("waypoints is no list"))?;
                let switch = |it: &Value| it.as_str().and_then(|it| it.parse().ok());
                let switches: Option<Vec<DatapathId>> = list.iter().map(switch).collect();
                constraints.via = switches.ok_or_else(|| wrong("a waypoint is no device"))?;
            }
            // No link of the network is an optical one, so all are without them.
            "LinkTypeConstraint" if matches!(item["inclusive"], Value::Bool(false)) => {}
            other => return Err(wrong(&format!("{other:?} is not supported"))),
        }
    }
    Ok(constraints)
}

/// `GET /onos/v1/paths/{id}`: the shortest paths between two devices or hosts. With `disjoint` behind them, two paths without a common link.
pub fn paths(context: &Context<'_>) -> Answered {
    let mut parts = context.id.split('/');
    let (from, to) = (element(context, &mut parts)?, element(context, &mut parts)?);
    let is_disjoint = match (parts.next(), parts.next()) {
        (None, _) => false,
        (Some("disjoint"), None) => true,
        _ => return Err(Problem::not_found("write two devices or hosts: /onos/v1/paths/of:1/of:2")),
    };
    let (count, choice) =
        if is_disjoint { (2, Choice::LinkDisjoint) } else { (paths_contract::WAYS_MAX, Choice::Equal) };
    let question =
        Question::Ways { from: from.0, to: to.0, count, choice, constraints: Constraints::default() };
    let view = context.state.view.clone();
    let read: Reading = Box::new(move |answer, payload| {
        // ONOS answers with no path.
        let ways: Ways = match answer {
            0 => read_json(&OF_PATHS, payload)?,
            status::NO_WAY => Ways::default(),
            answer => return Err(refusal(&OF_PATHS, answer, payload)),
        };
        let shown = |id: &LinkId| view.link(*id).map_or(Value::Null, link);
        let path = |links: &[LinkId]| {
            let mut all: Vec<Value> = links.iter().map(shown).collect();
            all.splice(0..0, from.1.map(|host| edge(host, true)));
            all.extend(to.1.map(|host| edge(host, false)));
            json!({ "cost": all.len(), "links": all })
        };
        let mut paths: Vec<Value> = ways.ways.iter().map(|way| path(&way.links)).collect();
        if is_disjoint {
            paths = pair(paths).into_iter().collect();
        }
        Ok(Response::value(&json!({ "paths": paths })))
    });
    Ok(Answer::Call(Call { service: paths_contract::SERVICE, payload: question.to_bytes(), read }))
}

/// The first path, and the second one as its backup.
fn pair(paths: Vec<Value>) -> Option<Value> {
    let mut paths = paths.into_iter();
    let mut pair = Map::from_iter([("primary".to_owned(), paths.next()?)]);
    pair.extend(paths.next().map(|backup| ("backup".to_owned(), backup)));
    Some(pair.into())
}

/// A switch, and the host that is meant, if it is one.
type Element = (DatapathId, Option<(HostId, ConnectPoint)>);

/// The next device, or the next host, which has two parts.
fn element<'a>(context: &Context<'_>, parts: &mut impl Iterator<Item = &'a str>) -> Result<Element, Problem> {
    let first = parts.next().unwrap_or_default();
    if let Ok(switch) = first.parse::<DatapathId>() {
        let known = context.state.view.switch(switch).map(|_| (switch, None));
        return known.ok_or_else(|| Problem::not_found(&format!("the network has no device {switch}")));
    }
    let text = format!("{first}/{}", parts.next().unwrap_or_default());
    let host = read_host(&text).and_then(|id| context.state.view.host(id));
    let host = host.ok_or_else(|| Problem::not_found(&format!("the network has no element {text:?}")))?;
    Ok((host.at.switch, Some((host.id, host.at))))
}

/// The link between a host and its switch.
fn edge((host, at): (HostId, ConnectPoint), is_first: bool) -> Value {
    let host = json!({ "port": "0", "host": host_name(host) });
    let (src, dst) = if is_first { (host, end(at)) } else { (end(at), host) };
    json!({ "src": src, "dst": dst, "type": "EDGE", "state": "ACTIVE" })
}
