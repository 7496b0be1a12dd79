//! `burnet slice pause`, `resume` and `watch`.
//!
//! In: parsed options. Out: text or JSON. Pausing and resuming are commands for the app of the slice.

use super::network::{client, encoded, follow};
use super::{ask, json, slices, unexpected};
use crate::cli::CommandError;
use crate::cli::slice::{SliceShowArgs, SliceWatchArgs};
use monitor::Verb;
use operator::contract::{Answer, Question};
use slice_contract::app_name;

/// `burnet slice pause`: the process of the slice ends. Its rules stay.
pub fn pause(args: &SliceShowArgs) -> Result<String, CommandError> {
    command(args, Verb::Stop, "is being paused: its controllers are disconnected, and its rules stay")
}

/// `burnet slice resume`.
pub fn resume(args: &SliceShowArgs) -> Result<String, CommandError> {
    command(args, Verb::Start, "is being resumed: it connects to its controllers")
}

fn command(args: &SliceShowArgs, verb: Verb, what: &str) -> Result<String, CommandError> {
    slices::check_known(&args.asking, &args.name)?;
    let question = Question::App { app: app_name(&args.name), verb, why: None };
    let Answer::Done = ask(&args.asking, &question)? else { return Err(unexpected()) };
    if args.asking.json {
        return json(&serde_json::json!({ "slice": args.name, "asked": verb }));
    }
    Ok(format!("slice {} {what}; `burnet slice list` shows its state\n", args.name))
}

/// `burnet slice watch`: one line for each change, until Ctrl-C.
pub fn watch(args: &SliceWatchArgs) -> Result<String, CommandError> {
    let target = match &args.name {
        Some(name) => format!("/api/v1/slices/{}/stream", encoded(name).replace('/', "%2F")),
        None => "/api/v1/stream?kinds=slice".to_owned(),
    };
    follow(&client(&args.asking)?, &target, args.asking.json).map_err(CommandError::DidNotWork)
}
