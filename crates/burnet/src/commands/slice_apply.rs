//! `burnet slice apply` and `burnet slice remove`: other slices for the running node.
//!
//! ```text
//!   slices.toml ──plan──> does it fit? ──> node: is it valid? ──> zones: delete what you lose ──> node: apply
//! ```
//!
//! In: parsed options. Out: what changed, one line each. The node does the rest: before the last check has passed, nothing changes.

use super::{json, network, reload, slice, slices};
use crate::cli::slice::{SliceApplyArgs, SlicePlanArgs, SliceShowArgs};
use crate::cli::{CommandError, NodeArgs};
use crate::slice_plan::shown;
use config::ConfigFile;
use config::slices::Slice;
use operator::contract::{ReloadView, SlicesChange, SlicesWanted};
use std::path::Path;

/// `burnet slice apply`.
pub fn apply(args: &SliceApplyArgs) -> Result<String, CommandError> {
    let Some(file) = &args.file else {
        return change(args, SlicesWanted::OfConfiguration, Vec::new());
    };
    let wanted = ConfigFile::read(file)?.slices;
    let unjudged = if args.force { None } else { plan(file, args, &wanted)? };
    let path = std::path::absolute(file)?;
    change(args, SlicesWanted::OfFile(path), unjudged.into_iter().collect())
}

/// `burnet slice remove`.
pub fn remove(args: &SliceShowArgs) -> Result<String, CommandError> {
    slices::check_known(&args.asking, &args.name)?;
    let wanted = SlicesWanted::Without(args.name.clone());
    let change = SlicesChange { wanted, dry_run: false, force: false };
    shown_view(&args.asking, &reload::asked(&args.asking, None, Some(change))?)
}

/// Checks that the promised bandwidth is there. Returns a line if nobody can tell.
fn plan(file: &Path, args: &SliceApplyArgs, wanted: &[Slice]) -> Result<Option<String>, CommandError> {
    if wanted.iter().all(|slice| slice.vnics.is_empty()) {
        return Ok(None);
    }
    if args.network.is_none()
        && let Err(why) = network::description(&args.asking)
    {
        return Ok(Some(format!("the bandwidth of the slices was not checked: {why}")));
    }
    let (file, network, asking) = (file.to_owned(), args.network.clone(), args.asking.clone());
    let judged = slice::judged(&SlicePlanArgs { file, network, asking }, false)?;
    if judged.iter().all(|slice| slice.result.is_ok()) {
        return Ok(None);
    }
    Err(CommandError::DidNotWork(format!(
        "nothing has changed, because not all slices fit (--force applies them all the same):\n{}",
        shown::plan_text(&judged).trim_end()
    )))
}

fn change(args: &SliceApplyArgs, wanted: SlicesWanted, lines: Vec<String>) -> Result<String, CommandError> {
    let SliceApplyArgs { asking, dry_run, .. } = args;
    // On a described network, the operator knows better than the node's view.
    let (dry_run, force) = (*dry_run, args.force || args.network.is_some());
    let mut view = reload::asked(asking, None, Some(SlicesChange { wanted, dry_run, force }))?;
    if dry_run && view.done.is_empty() {
        view.done.push("no rule of a slice would leave a switch".to_owned());
    }
    view.done.extend(lines);
    shown_view(asking, &view)
}

fn shown_view(asking: &NodeArgs, view: &ReloadView) -> Result<String, CommandError> {
    if asking.json { json(view) } else { Ok(reload::text(view)) }
}
