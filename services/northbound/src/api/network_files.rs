//! `/api/v1/network-files/{id}`: the versions of a file that `burnet apply` has applied.
//!
//! In: the name of a file, perhaps with a version, and bodies. Out: what is done with it in the store. It does not read documents: the command line
//! computes what they change.

use super::context::{Answer, Answered, Context};
use super::refusal::of_sentence;
use super::writes::{make_integers, object};
use crate::http::Problem;
use crate::versions::{Act, Keeping, Took};
use serde::Deserialize;
use serde_json::{Map, Value};

/// The longest name of a file. The names of its objects begin with it.
const NAME_BYTES_MAX: usize = 24;

/// The body of a PUT.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Put {
    base: u64,
    document: Map<String, Value>,
    #[serde(default)]
    restores: Option<u64>,
    #[serde(default)]
    open: bool,
}

/// The body of a PATCH.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Note {
    version: u64,
    #[serde(default)]
    done: bool,
    #[serde(default)]
    took: Option<Took>,
}

/// The name and the version in the path.
fn named<'c>(context: &'c Context<'_>) -> Result<(&'c str, Option<u64>), Problem> {
    let (name, version) = match context.id.split_once('/') {
        None => (context.id, None),
        Some((name, version)) => (name, Some(version)),
    };
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    if name.is_empty() || name.len() > NAME_BYTES_MAX || !name.bytes().all(is_plain) {
        return Err(Problem::not_found(&format!(
            "{name:?} is no name of a file: it has 1 to {NAME_BYTES_MAX} lower-case letters, digits and hyphens"
        )));
    }
    let number = |text: &str| {
        text.parse().map_err(|_| Problem::not_found(&format!("{text:?} is no version: write a number")))
    };
    Ok((name, version.map(number).transpose()?))
}

fn steps(name: &str, act: Act) -> Answered {
    Ok(Answer::Steps(Box::new(Keeping::new(name, act))))
}

fn body<T: serde::de::DeserializeOwned>(context: &Context<'_>) -> Result<T, Problem> {
    let mut members = object(context)?;
    // The document of a file is kept as it is.
    members.iter_mut().filter(|(name, _)| *name != "document").for_each(|(_, value)| make_integers(value));
    serde_json::from_value(Value::Object(members)).map_err(|why| of_sentence(&why.to_string()))
}

/// `GET /api/v1/network-files/{id}`: the versions of a file, or the document of one.
pub fn get(context: &Context<'_>) -> Answered {
    let (name, version) = named(context)?;
    steps(name, version.map_or(Act::List, Act::Get))
}

/// `PUT /api/v1/network-files/{id}`: the next version.
pub fn put(context: &Context<'_>) -> Answered {
    let (name, _) = named(context)?;
    let Put { base, document, restores, open } = body(context)?;
    let document = Value::Object(document);
    steps(name, Act::Put { base, document, restores, open, now_ms: context.state.now_ms })
}

/// `PATCH /api/v1/network-files/{id}`: all steps of a version are taken, or how long the switches took.
pub fn note(context: &Context<'_>) -> Answered {
    let (name, _) = named(context)?;
    let Note { version, done, took } = body(context)?;
    if !done && took.is_none() {
        return Err(Problem::field("done", "write done: true, or took"));
    }
    steps(name, Act::Note { version, done, took })
}
