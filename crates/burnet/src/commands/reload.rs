//! `burnet reload`: the running node reads its configuration again.
//!
//! In: the node's answer. Out: text or JSON. The node decides what changes.

use super::{ask, json, unexpected};
use crate::cli::{CommandError, NodeArgs, ReloadArgs};
use operator::contract::{Answer, Question, ReloadView, SlicesChange, SlicesWanted};
use std::path::Path;

/// The output of `burnet reload`.
pub fn reload(args: &ReloadArgs) -> Result<String, CommandError> {
    let view = asked(&args.asking, None, None)?;
    if args.asking.json { json(&view) } else { Ok(text(&view)) }
}

/// Asks the node to read one app's installation and grants again, or all of its configuration, with other slices if given.
pub fn asked(
    asking: &NodeArgs,
    app: Option<String>,
    slices: Option<SlicesChange>,
) -> Result<ReloadView, CommandError> {
    match ask(asking, &Question::Reload { app, slices })? {
        Answer::Reloaded(view) => Ok(view),
        _ => Err(unexpected()),
    }
}

/// What would leave the switches if the slices of the file were applied. A node that cannot apply slices says nothing.
pub fn foreseen(asking: &NodeArgs, file: &Path) -> Vec<String> {
    let Ok(path) = std::path::absolute(file) else { return Vec::new() };
    let wanted = SlicesWanted::OfFile(path);
    let view = asked(asking, None, Some(SlicesChange { wanted, dry_run: true, force: true }));
    view.map(|view| view.done).unwrap_or_default()
}

/// The changes, one line each.
pub fn text(view: &ReloadView) -> String {
    if view.done.is_empty() && view.left.is_empty() {
        return "the running node already has this configuration; nothing has changed\n".to_owned();
    }
    view.done.iter().chain(&view.left).map(|line| format!("{line}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_changed_is_printed_before_what_stays() {
        let view = ReloadView { done: vec!["a".into()], left: vec!["b".into()] };
        assert_eq!(text(&view), "a\nb\n");
        assert!(text(&ReloadView::default()).contains("nothing has changed"));
    }
}
