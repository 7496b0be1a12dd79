//! The whole network in one piece, for a map.
//!
//! In: the state. Out: JSON with a list for each kind. Rules, groups and meters are not part of a map.

use super::context::{Answered, Context};
use super::objects::{AT_HAND, collection};
use crate::state::State;

/// All objects of a map, without their links.
pub fn topology(context: &Context<'_>) -> Answered {
    context.kept(context.tag(&AT_HAND), || body(context.state))
}

fn body(state: &State) -> Vec<u8> {
    let view = &state.view;
    let mut out = format!("{{\"version\":{},\"run\":\"{}\"", view.version(), state.run).into_bytes();
    for kind in &AT_HAND {
        out.extend_from_slice(format!(",\"{}\":[", collection(*kind)).as_bytes());
        for (number, record) in view.records(*kind).enumerate() {
            if number > 0 {
                out.push(b',');
            }
            // Only maps whose keys are no texts can fail.
            drop(serde_json::to_writer(&mut out, &record.object));
        }
        out.push(b']');
    }
    out.push(b'}');
    out
}
