//! The whole network in one piece, for a map.
//!
//! In: the state. Out: JSON with a list for each kind. Rules, groups and meters are not part of a map.

use super::context::{Answered, Context};
use super::objects::{AT_HAND, collection};
use crate::http::Response;

/// All objects of a map, without their links.
pub fn topology(context: &Context<'_>) -> Answered {
    let state = context.state;
    let view = &state.view;
    let mut body = format!("{{\"version\":{},\"run\":\"{}\"", view.version(), state.run);
    for kind in &AT_HAND {
        let objects =
            view.records(*kind).map(|record| serde_json::to_string(&record.object).unwrap_or_default());
        body += &format!(",\"{}\":[{}]", collection(*kind), objects.collect::<Vec<_>>().join(","));
    }
    body.push('}');
    context.ready(Response::json(body).tagged(context.tag(&AT_HAND)))
}
