//! Slices of tenants: their state, their networks, their flows, and the labels of their links.
//!
//! In: the state, and requests. Out: JSON, or a question for the service `labels`. A tenant gets its own slice; every other name is answered as if
//! there were no such slice.

use super::context::{Answer, Answered, Call, Context, First, Reading};
use super::objects::BASE;
use super::refusal::{Statuses, refusal};
use crate::http::{Problem, Response};
use labels_contract::{Flow, Label, Question, Standing, status};
use northbound_contract::AppReport;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use slice_contract::{app_name, slice_of};

/// The statuses of the service `labels`, and those of HTTP for them.
const OF_LABELS: Statuses =
    Statuses { service: labels_contract::SERVICE, http: &[(status::NOT_FOUND, 404), (status::FULL, 507)] };

/// `/api/v1/slices`: all, or the only one that the sender may see.
pub fn list(context: &Context<'_>) -> Answered {
    let shown = |app: &AppReport| {
        slice_of(&app.id).filter(|it| may_see(context, it)).map(|it| shown(context, it, app))
    };
    let items: Vec<Value> = context.state.apps.iter().filter_map(shown).collect();
    Ok(Answer::Ready(Response::value(&json!({ "items": items, "total": items.len() }))))
}

/// `/api/v1/slices/{id}`
pub fn one(context: &Context<'_>) -> Answered {
    let slice = seen(context)?;
    let app = context.state.apps.get(&app_name(slice)).ok_or_else(|| missing(slice))?;
    Ok(Answer::Ready(Response::value(&shown(context, slice, app))))
}

/// The slice of the path, if the sender may see it and the node has it.
pub fn known<'a>(context: &Context<'a>) -> Result<&'a str, Problem> {
    let slice = seen(context)?;
    context.state.apps.get(&app_name(slice)).map(|_| slice).ok_or_else(|| missing(slice))
}

/// `/api/v1/slices/{id}/labels`. The standings say whether the labels are stale.
pub fn labels(context: &Context<'_>) -> Answered {
    let slice = known(context)?.to_owned();
    let next = move |status: u16, payload: &[u8]| {
        let standings: Vec<Standing> = answer(status, payload)?;
        let standing =
            standings.iter().find(|standing| standing.slice == slice).ok_or_else(|| missing(&slice))?;
        let is_stale = standing.stale;
        let read = move |status: u16, payload: &[u8]| {
            let items: Vec<Label> = answer(status, payload)?;
            Ok(Response::value(&json!({ "total": items.len(), "items": items, "stale": is_stale })))
        };
        Ok(ask(&Question::Labels { slice }, Box::new(read)))
    };
    let (service, payload) = (labels_contract::SERVICE, Question::Slices.to_bytes());
    Ok(Answer::Then(First { service, payload, next: Box::new(next) }))
}

/// `/api/v1/slices/{id}/network`: what its tenant sees. Only the slice's process knows what is up.
pub fn network(context: &Context<'_>) -> Answered {
    let slice = known(context)?;
    let app = context.state.apps.get(&app_name(slice));
    let network = app.and_then(|app| context.state.slices.network(app)).ok_or_else(|| {
        Problem::no_service(&app_name(slice), "its process has not told its network; ask again in a second")
    })?;
    Ok(Answer::Ready(Response::value(&json!(network))))
}

/// A flow, and what holds its sender to its rate.
#[derive(Serialize)]
struct ShapedFlow {
    #[serde(flatten)]
    flow: Flow,
    /// In the words of `burnet slice show`. None: the slice has not said it.
    #[serde(skip_serializing_if = "Option::is_none")]
    shaped: Option<String>,
}

/// `/api/v1/slices/{id}/flows`. How VNICs are shaped, the slice says itself.
pub fn flows(context: &Context<'_>) -> Answered {
    let slice = known(context)?.to_owned();
    let app = context.state.apps.get(&app_name(&slice));
    let summary = app.and_then(|app| context.state.slices.summary(app));
    let shaped = summary.map(|summary| summary.shaped.clone()).unwrap_or_default();
    let read = move |status: u16, payload: &[u8]| {
        let flows: Vec<Flow> = answer(status, payload)?;
        let with_shaped = |flow: Flow| ShapedFlow { shaped: shaped.get(&flow.from).cloned(), flow };
        let items: Vec<ShapedFlow> = flows.into_iter().map(with_shaped).collect();
        Ok(Response::value(&json!({ "total": items.len(), "items": items })))
    };
    Ok(ask(&Question::Flows { slice }, Box::new(read)))
}

/// A question to the service.
pub fn ask(question: &Question, read: Reading) -> Answer {
    Answer::Call(Call { service: labels_contract::SERVICE, payload: question.to_bytes(), read })
}

/// What the service has answered, or the problem for the client.
pub fn answer<T: DeserializeOwned>(status: u16, payload: &[u8]) -> Result<T, Problem> {
    if status != status::DONE {
        return Err(refusal(&OF_LABELS, status, payload));
    }
    let unreadable =
        |why| Problem::no_service(OF_LABELS.service, &format!("its answer cannot be read: {why}"));
    serde_json::from_slice(payload).map_err(unreadable)
}

/// The slice of the path, if the sender may see it.
fn seen<'a>(context: &Context<'a>) -> Result<&'a str, Problem> {
    if may_see(context, context.id) { Ok(context.id) } else { Err(missing(context.id)) }
}

fn may_see(context: &Context<'_>, slice: &str) -> bool {
    context.request.slice.as_deref().is_none_or(|own| own == slice)
}

/// The same for a slice that is not there and for one that the sender may not see.
fn missing(slice: &str) -> Problem {
    Problem::not_found(&format!("there is no slice {slice:?}, or the token is not for it"))
}

fn shown(context: &Context<'_>, slice: &str, app: &AppReport) -> Value {
    let mut value = context.state.slices.object(slice, app);
    let address = format!("{BASE}/slices/{slice}");
    if let Value::Object(members) = &mut value {
        let of = |what: &str| format!("{address}/{what}");
        let links = json!({ "self": address, "network": of("network"), "labels": of("labels"), "flows": of("flows"), "vnics": of("vnics"), "stream": of("stream") });
        members.insert("_links".to_owned(), links);
    }
    value
}
