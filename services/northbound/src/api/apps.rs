//! The apps and services of the node, and commands for them.
//!
//! In: the last report of the monitor, which comes twice a second, and requests. Out: JSON, or a command for the monitor, which decides on it.
//! There are few apps, so they come on one page. A limit cuts it.

use super::context::{Answer, Answered, Context};
use super::objects::BASE;
use super::page::LIMIT_MAX;
use crate::http::{Problem, Response};
use northbound_contract::{AppCommand, AppReport, CommandRefused, SENDER_BYTES_MAX, Verb, WHY_BYTES_MAX};
use serde_json::{Value, json};

/// All apps, or those with this role or state.
pub fn list(context: &Context<'_>) -> Answered {
    let is_wanted = |name: &str, value: &str| context.parameter(name).is_none_or(|wanted| wanted == value);
    let wanted = |app: &&AppReport| is_wanted("role", &app.role) && is_wanted("state", &app.state);
    let limit = context.number("limit", (1, LIMIT_MAX))?.unwrap_or(usize::MAX);
    let apps: Vec<&AppReport> = context.state.apps.iter().filter(wanted).collect();
    let total = apps.len();
    let items: Vec<_> = apps.into_iter().take(limit).map(|app| shown(context, app)).collect();
    Ok(Answer::Ready(Response::value(&json!({ "items": items, "total": total }))))
}

/// One app.
pub fn one(context: &Context<'_>) -> Answered {
    let app = context.state.apps.get(context.id).ok_or_else(|| missing(context.id))?;
    Ok(Answer::Ready(Response::value(&shown(context, app))))
}

fn missing(id: &str) -> Problem {
    Problem::not_found(&format!("the node has no app {id:?}"))
}

fn shown(context: &Context<'_>, app: &AppReport) -> Value {
    let mut value = json!({ "kind": "app" });
    if let (Value::Object(members), Ok(Value::Object(report))) = (&mut value, serde_json::to_value(app)) {
        members.extend(report);
        members.remove("sample");
        let samples: Vec<_> = context.state.apps.samples(&app.id).collect();
        members.insert("samples".to_owned(), json!(samples));
        members.insert("_links".to_owned(), json!({ "self": format!("{BASE}/apps/{}", app.id) }));
    }
    value
}

/// `POST /api/v1/apps/{id}/VERB`: the monitor is asked to do it.
pub fn command(context: &Context<'_>, verb: Verb) -> Answered {
    let app = context.state.apps.get(context.id).ok_or_else(|| missing(context.id))?;
    if !context.state.may_change_apps {
        let detail = format!(
            "the node does not accept commands for apps over this interface: write may_change_apps = true into \
             [network.northbound] and restart the node, or run on the node, for example: burnet app restart {}",
            app.id
        );
        return Err(Problem::new(403, "not-granted", "The node does not permit this", detail));
    }
    let why = why(&context.request.body)?;
    let mut sender = context.request.sender.clone();
    sender.truncate(sender.floor_char_boundary(SENDER_BYTES_MAX));
    Ok(Answer::Order(AppCommand { ticket: 0, app: app.id.clone(), verb, why, sender }))
}

/// The operator's reason in the body, if there is a body.
fn why(body: &[u8]) -> Result<Option<String>, Problem> {
    if body.is_empty() {
        return Ok(None);
    }
    let value = serde_json::from_slice(body);
    let value: Value = value.map_err(|why| Problem::bad_request(&format!("the body is no JSON: {why}")))?;
    let Value::Object(members) = value else {
        return Err(Problem::bad_request("the body is no JSON object"));
    };
    if let Some(other) = members.keys().find(|name| *name != "why") {
        return Err(Problem::field(other, "it is unknown: write why, or send no body"));
    }
    match members.get("why") {
        None => Ok(None),
        Some(Value::String(why)) if why.len() <= WHY_BYTES_MAX => Ok(Some(why.clone())),
        Some(_) => Err(Problem::field("why", format!("write a text of at most {WHY_BYTES_MAX} bytes"))),
    }
}

/// What the monitor's answer becomes.
pub fn answered(app: &str, refused: Option<CommandRefused>) -> Result<Response, Problem> {
    match refused {
        None => Ok(Response::new(202, "", "")),
        Some(CommandRefused::NoSuchApp) => Err(missing(app)),
        Some(CommandRefused::NotPossible(why)) => Err(Problem::conflict(why)),
    }
}
