//! What a client of a stream asks for.
//!
//! In: the parameters of a request. Out: an interest, or a problem. It sends nothing.

use super::context::{Answer, Answered, Context};
use super::objects::AT_HAND;
use super::slices;
use crate::feed::{About, Interest};
use crate::http::Problem;

/// Events until the client leaves.
pub fn stream(context: &Context<'_>) -> Answered {
    let changes_only = changes_only(context)?;
    let about = match context.parameter("kinds") {
        None => AT_HAND.into_iter().map(About::Object).collect(),
        Some(list) => named(list)?,
    };
    Ok(Answer::Stream(Interest { about, changes_only, slice: None }))
}

/// Events of one slice and its labels, until the client leaves.
pub fn of_slice(context: &Context<'_>) -> Answered {
    let slice = slices::known(context)?.to_owned();
    let changes_only = changes_only(context)?;
    Ok(Answer::Stream(Interest { about: vec![About::Slice], changes_only, slice: Some(slice) }))
}

fn changes_only(context: &Context<'_>) -> Result<bool, Problem> {
    match context.parameter("changes_only") {
        None | Some("false") => Ok(false),
        Some("true") => Ok(true),
        Some(other) => {
            Err(Problem::parameter("changes_only", format!("{other:?} is wrong: write true or false")))
        }
    }
}

fn named(list: &str) -> Result<Vec<About>, Problem> {
    let mut about = Vec::new();
    for name in list.split(',') {
        let found = About::named(name).filter(is_published).ok_or_else(|| {
            let known: Vec<_> =
                AT_HAND.iter().map(|kind| kind.word()).chain(["counters", "incident", "slice"]).collect();
            Problem::parameter("kinds", format!("{name:?} is unknown: write some of {}", known.join(", ")))
        })?;
        if !about.contains(&found) {
            about.push(found);
        }
    }
    // The snapshot brings what others need first.
    about.sort();
    Ok(about)
}

fn is_published(about: &About) -> bool {
    if let About::Object(kind) = about { AT_HAND.contains(kind) } else { true }
}
