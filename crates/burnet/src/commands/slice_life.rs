//! `burnet slice pause`, `resume` and `watch`.
//!
//! In: parsed options. Out: text or JSON. The node keeps which slices are paused.

use super::network::{client, encoded, follow};
use super::{ask, json, reload, slices, unexpected};
use crate::cli::CommandError;
use crate::cli::slice::{SliceShowArgs, SliceWatchArgs};
use monitor::Verb;
use operator::contract::{Answer, Question, SlicesChange, SlicesWanted};
use slice_contract::app_name;

/// `burnet slice pause`: the process of the slice ends, and stays so over restarts of the node. Its rules stay.
pub fn pause(args: &SliceShowArgs) -> Result<String, CommandError> {
    let what = "is being paused: its controllers are disconnected, and its rules stay";
    command(args, SlicesWanted::Paused(args.name.clone()), Verb::Stop, what)
}

/// `burnet slice resume`.
pub fn resume(args: &SliceShowArgs) -> Result<String, CommandError> {
    let what = "is being resumed: it connects to its controllers";
    command(args, SlicesWanted::Resumed(args.name.clone()), Verb::Start, what)
}

fn command(
    args: &SliceShowArgs,
    wanted: SlicesWanted,
    verb: Verb,
    what: &str,
) -> Result<String, CommandError> {
    slices::check_known(&args.asking, &args.name)?;
    let view =
        reload::asked(&args.asking, None, Some(SlicesChange { wanted, dry_run: false, force: false }))?;
    if verb == Verb::Start {
        // It may not be paused, but stopped or quarantined.
        let question = Question::App { app: app_name(&args.name), verb, why: None };
        let Answer::Done = ask(&args.asking, &question)? else { return Err(unexpected()) };
    }
    if args.asking.json {
        return json(&serde_json::json!({ "slice": args.name, "asked": verb }));
    }
    let lines: String = view.done.iter().map(|line| format!("{line}\n")).collect();
    Ok(format!("slice {} {what}; `burnet slice list` shows its state\n{lines}", args.name))
}

/// `burnet slice watch`: one line for each change, until Ctrl-C.
pub fn watch(args: &SliceWatchArgs) -> Result<String, CommandError> {
    let target = match &args.name {
        Some(name) => format!("/api/v1/slices/{}/stream", encoded(name).replace('/', "%2F")),
        None => "/api/v1/stream?kinds=slice".to_owned(),
    };
    follow(&client(&args.asking)?, &target, args.asking.json).map_err(CommandError::DidNotWork)
}
