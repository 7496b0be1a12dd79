//! The apps and services of the node.
//!
//! In: the last report of the monitor, which comes twice a second. Out: JSON. There are few, so they come on one page.

use super::context::{Answer, Answered, Context};
use super::objects::BASE;
use crate::http::{Problem, Response};
use northbound_contract::AppReport;
use serde_json::{Value, json};

/// All apps, or those with this role or state.
pub fn list(context: &Context<'_>) -> Answered {
    let is_wanted = |name: &str, value: &str| context.parameter(name).is_none_or(|wanted| wanted == value);
    let wanted = |app: &&AppReport| is_wanted("role", &app.role) && is_wanted("state", &app.state);
    let items: Vec<_> = context.state.apps.iter().filter(wanted).map(shown).collect();
    let total = items.len();
    Ok(Answer::Ready(Response::value(&json!({ "items": items, "total": total }))))
}

/// One app.
pub fn one(context: &Context<'_>) -> Answered {
    let app = context.state.apps.iter().find(|app| app.id == context.id);
    let missing = || Problem::not_found(&format!("the node has no app {:?}", context.id));
    Ok(Answer::Ready(Response::value(&shown(app.ok_or_else(missing)?))))
}

fn shown(app: &AppReport) -> Value {
    let mut value = json!({ "kind": "app" });
    if let (Value::Object(members), Ok(Value::Object(report))) = (&mut value, serde_json::to_value(app)) {
        members.extend(report);
        members.insert("_links".to_owned(), json!({ "self": format!("{BASE}/apps/{}", app.id) }));
    }
    value
}
