//! Notes of operators about switches, ports and links, and the removal of what is gone.
//!
//! In: requests. Out: questions for the service `discovery`, which keeps the notes in the store. The map takes the notes `name`, `latitude` and
//! `longitude` of a switch.

use super::context::{Answered, Context};
use super::page::key;
use super::refusal::Statuses;
use super::writes::{change, checked, done, object, precondition};
use crate::http::Problem;
use burnet_sdk::view::{Key, Kind};
use serde_json::{Map, Value};

/// The statuses of the service `discovery`.
pub const OF_DISCOVERY: Statuses = Statuses {
    service: discovery_contract::SERVICE,
    http: &[
        (discovery_contract::status::NOT_FOUND, 404),
        (discovery_contract::status::CONFLICT, 409),
        (discovery_contract::status::FULL, 422),
        (discovery_contract::status::NOT_STORED, 507),
    ],
};

/// `PATCH`: sets notes of an object, or removes those that are `null`. Others stay.
pub fn annotate(context: &Context<'_>, kind: Kind) -> Answered {
    let key = known(context, kind)?;
    precondition(context, key)?;
    let mut body = object(context)?;
    let annotations =
        body.remove("annotations").ok_or_else(|| Problem::field("annotations", "it is missing"))?;
    if let Some(other) = body.keys().next() {
        return Err(Problem::field(other, "it cannot be changed: write annotations"));
    }
    let question = Map::from_iter([
        ("op".to_owned(), "annotate".into()),
        ("key".to_owned(), key.to_string().into()),
        ("annotations".to_owned(), annotations),
    ]);
    let payload = checked(&Value::Object(question), discovery_contract::Question::from_bytes)?;
    change(&OF_DISCOVERY, payload, 200)
}

/// `DELETE`: forgets a switch or a link that is down.
pub fn remove(context: &Context<'_>, kind: Kind) -> Answered {
    let key = known(context, kind)?;
    precondition(context, key)?;
    done(&OF_DISCOVERY, discovery_contract::Question::Remove { key }.to_bytes())
}

fn known(context: &Context<'_>, kind: Kind) -> Result<Key, Problem> {
    key(kind, context.id)
}
