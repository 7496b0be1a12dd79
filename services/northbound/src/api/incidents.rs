//! What went wrong, and who did what: incidents with their evidence, and the audit log.
//!
//! In: the state, and requests. Out: JSON, or a question for the service `audit` or the monitor. Both lists begin with the newest.

use super::context::{Answer, Answered, Call, Context, Reading};
use super::page::{LIMIT_DEFAULT, LIMIT_MAX};
use super::refusal::{Statuses, refusal};
use crate::http::request::encoded;
use crate::http::{Problem, Response};
use crate::incidents::Incident;
use northbound_contract::EvidenceReport;
use serde_json::{Value, json};
use std::cmp::Reverse;

/// The filters of incidents.
pub const FILTERS: &[&str] = &["app", "what", "source"];

/// The filters of the audit log.
pub const AUDIT_FILTERS: &[&str] = &["what", "who", "app", "switch"];

/// The statuses of the service `audit`.
const OF_AUDIT: Statuses =
    Statuses { service: audit_contract::SERVICE, http: &[(audit_contract::status::NOT_READ, 503)] };

/// `/api/v1/incidents`
pub fn list(context: &Context<'_>) -> Answered {
    let limit = context.number("limit", (1, LIMIT_MAX))?.unwrap_or(LIMIT_DEFAULT);
    let after = context.parameter("after").map(cursor).transpose()?;
    let is_wanted = |name: &str, value: &str| context.parameter(name).is_none_or(|wanted| wanted == value);
    let passes = |it: &Incident| {
        is_wanted("app", &it.app) && is_wanted("what", &it.what) && is_wanted("source", &it.source)
    };
    let mut all = context.state.incidents.newest();
    all.retain(|it| passes(it));
    let is_behind = |it: &&&Incident| after.as_ref().is_none_or(|(ms, id)| it.place() > Reverse((*ms, id)));
    let mut found = all.iter().filter(is_behind);
    let items: Vec<_> = found.by_ref().take(limit).collect();
    let mut body =
        json!({ "items": items.iter().map(|it| it.to_json()).collect::<Vec<_>>(), "total": all.len() });
    if let (Some(last), Some(_), Some(members)) = (items.last(), found.next(), body.as_object_mut()) {
        members.insert("next".to_owned(), next(context, &format!("{}.{}", last.unix_ms, last.id)).into());
    }
    context.ready(Response::value(&body).tagged(tag(context)))
}

/// `/api/v1/incidents/{id}`
pub fn one(context: &Context<'_>) -> Answered {
    let missing = || Problem::not_found(&format!("the node knows no incident {:?}", context.id));
    let incident = context.state.incidents.get(context.id).ok_or_else(missing)?;
    context.ready(Response::value(&incident.to_json()).tagged(tag(context)))
}

/// `/api/v1/incidents/{id}/evidence`
pub fn evidence(context: &Context<'_>) -> Answered {
    let missing = || Problem::not_found(&format!("the node knows no incident {:?}", context.id));
    let incident = context.state.incidents.get(context.id).ok_or_else(missing)?;
    match incident.number() {
        Some(number) => Ok(Answer::Evidence(number)),
        None => {
            Ok(Answer::Ready(Response::value(&json!({ "id": incident.id, "details": incident.details() }))))
        }
    }
}

/// What the monitor's answer becomes.
pub fn evidence_shown(number: u64, evidence: Option<Box<EvidenceReport>>) -> Result<Response, Problem> {
    let Some(evidence) = evidence else {
        let detail =
            format!("the evidence of incident {number} cannot be read: the node may have deleted it");
        return Err(Problem::not_found(&detail));
    };
    let mut value = json!({ "id": number.to_string() });
    if let (Value::Object(members), Ok(Value::Object(report))) = (&mut value, serde_json::to_value(evidence))
    {
        members.extend(report);
    }
    Ok(Response::value(&value))
}

fn tag(context: &Context<'_>) -> String {
    format!("\"{}-i{}\"", context.state.run, context.state.incidents.version())
}

fn cursor(text: &str) -> Result<(u64, &str), Problem> {
    let place = text.split_once('.').and_then(|(ms, id)| Some((ms.parse().ok()?, id)));
    place.ok_or_else(|| {
        Problem::parameter(
            "after",
            format!("{text:?} is no place in this collection: use the address in next"),
        )
    })
}

/// The address of the next page, with the same filters.
fn next(context: &Context<'_>, after: &str) -> String {
    let kept = context.request.parameters.iter().filter(|(name, _)| name != "after");
    let kept: String = kept.map(|(name, value)| format!("{}={}&", encoded(name), encoded(value))).collect();
    format!("{}?{kept}after={}", context.request.path, encoded(after))
}

/// `/api/v1/audit`
pub fn audit(context: &Context<'_>) -> Answered {
    let limit = context.number("limit", (1, LIMIT_MAX))?.unwrap_or(LIMIT_DEFAULT);
    let before: Option<u64> = match context.parameter("after") {
        None => None,
        Some(text) => Some(text.parse().map_err(|_| {
            Problem::parameter("after", format!("{text:?} is no line of the log: use the address in next"))
        })?),
    };
    let of = |name: &str| context.parameter(name).map(str::to_owned);
    let filter =
        audit_contract::Filter { what: of("what"), who: of("who"), app: of("app"), switch: of("switch") };
    let payload = audit_contract::Question::List { filter, before, limit: Some(limit) }.to_bytes();
    let address = next(context, "");
    let read: Reading = Box::new(move |answer, payload| match answer {
        0 => audit_page(payload, &address),
        answer => Err(refusal(&OF_AUDIT, answer, payload)),
    });
    Ok(Answer::Call(Call { service: audit_contract::SERVICE, payload, read }))
}

fn audit_page(payload: &[u8], address: &str) -> Result<Response, Problem> {
    let page: audit_contract::Page = serde_json::from_slice(payload).map_err(|why| {
        Problem::no_service(audit_contract::SERVICE, &format!("its answer is damaged: {why}"))
    })?;
    let mut body = json!({ "items": page.records });
    if let Value::Object(members) = &mut body {
        members.extend(page.next.map(|line| ("next".to_owned(), format!("{address}{line}").into())));
        // A reader must not take a log with holes for the whole log.
        if page.damaged > 0 {
            members.insert("damaged".to_owned(), page.damaged.into());
        }
    }
    Ok(Response::value(&body))
}
