//! Collections, page by page, and single objects.
//!
//! In: a kind of object, and the parameters of a request. Out: a page with the address of the next one, or one object. A page shows one state
//! of the view; the next page begins behind the last object of this one, whatever has changed meanwhile.

use super::context::{Answered, Context};
use super::filters::{self, Test};
use super::objects::{BASE, address, collection, id_of, page_of, shown};
use crate::feed::behind;
use crate::http::Problem;
use crate::http::request::encoded;
use burnet_sdk::view::{Key, Kind, Record, Switch, SwitchState};
use std::sync::Arc;

/// The most objects on a page.
pub const LIMIT_MAX: usize = 1_000;

/// The objects on a page if the client says nothing.
pub const LIMIT_DEFAULT: usize = 100;

/// A page of the objects of a kind.
pub fn list(context: &Context<'_>, kind: Kind) -> Answered {
    let tests = tests(context, kind)?;
    page(context, kind, &tests, &format!("{BASE}/{}", collection(kind)))
}

/// A page of the objects of a kind that belong to the switch `{id}`.
pub fn of_switch(context: &Context<'_>, kind: Kind) -> Answered {
    let switch = key(Kind::Switch, context.id)?;
    if context.state.view.get(switch).is_none() {
        return Err(missing(switch));
    }
    let mut tests = tests(context, kind)?;
    tests.push(filters::test(kind, "switch", context.id)?);
    page(context, kind, &tests, &format!("{}/{}", address(switch), collection(kind)))
}

/// One object.
pub fn one(context: &Context<'_>, kind: Kind) -> Answered {
    let key = key(kind, context.id)?;
    let record = context.state.view.get(key).ok_or_else(|| missing(key))?;
    context.tagged(tag_of(record), || shown(&record.object))
}

/// The tag of an object.
pub fn tag_of(record: &Record) -> String {
    let stamp = record.stamp;
    format!("\"{}.{}.{}\"", stamp.term, stamp.sequence, stamp.origin)
}

/// The key of this kind with this id.
///
/// # Errors
/// The id is not well formed.
pub fn key(kind: Kind, id: &str) -> Result<Key, Problem> {
    format!("{}/{id}", kind.word()).parse().map_err(|why| Problem::not_found(&format!("{why}")))
}

/// There is no such object.
pub fn missing(key: Key) -> Problem {
    Problem::not_found(&format!("the network has no {} {}", key.kind(), id_of(key)))
}

/// The connected switch with this id.
///
/// # Errors
/// The id is not well formed, or the switch is not connected.
pub fn connected<'a>(context: &'a Context<'_>, id: &str) -> Result<&'a Switch, Problem> {
    let key = key(Kind::Switch, id)?;
    let Key::Switch(id) = key else { return Err(missing(key)) };
    let switch = context.state.view.switch(id).filter(|it| it.state == SwitchState::Up);
    switch.ok_or_else(|| missing(key))
}

fn tests(context: &Context<'_>, kind: Kind) -> Result<Vec<Test>, Problem> {
    let of_kind = |(name, _): &&(String, String)| filters::names(kind).contains(&name.as_str());
    let named = context.request.parameters.iter().filter(of_kind);
    named.map(|(name, value)| filters::test(kind, name, value)).collect()
}

fn page(context: &Context<'_>, kind: Kind, tests: &[Test], path: &str) -> Answered {
    let limit = context.number("limit", (1, LIMIT_MAX))?.unwrap_or(LIMIT_DEFAULT);
    let after = context.parameter("after").map(|id| cursor(kind, id)).transpose()?;
    context.kept(context.tag(&[kind]), || {
        let view = &context.state.view;
        let passes = |record: &&Arc<Record>| tests.iter().all(|test| test(&record.object));
        let total = match tests {
            [] => view.count(kind),
            _ => view.records(kind).filter(passes).count(),
        };
        let mut found = behind(view, kind, after).filter(passes);
        let items: Vec<_> = found.by_ref().take(limit).collect();
        let last = items.last().map(|record| record.object.key());
        let next = last.filter(|_| found.next().is_some()).map(|last| next(context, path, last));
        let objects = items.iter().map(|record| &record.object);
        page_of(objects, next.as_deref(), &format!(",\"total\":{total}"))
    })
}

fn cursor(kind: Kind, id: &str) -> Result<Key, Problem> {
    let wrong = |_| {
        Problem::parameter("after", format!("{id:?} is no place in this collection: use the address in next"))
    };
    key(kind, id).map_err(wrong)
}

/// The address of the page behind this object, with the same filters.
fn next(context: &Context<'_>, path: &str, last: Key) -> String {
    let mut address = format!("{path}?");
    for (name, value) in context.request.parameters.iter().filter(|(name, _)| name != "after") {
        address += &format!("{}={}&", encoded(name), encoded(value));
    }
    address + &format!("after={}", encoded(&id_of(last)))
}
