//! `burnet slice apply` and `burnet slice remove`: other slices for the running node.
//!
//! ```text
//!   slices.toml ──plan──> does it fit? ──> node: is it valid? ──> zones that end or get other packets: delete your rules ──> node: apply
//! ```
//!
//! In: parsed options. Out: what changed, one line each. Before the last check has passed, nothing changes. A slice whose packets and ports stay
//! keeps its rules.

use super::{json, network, reload, slice, slice_zones, slices};
use crate::cli::slice::{SliceApplyArgs, SlicePlanArgs, SliceShowArgs};
use crate::cli::{CommandError, NodeArgs};
use crate::slice_plan::shown;
use crate::slices::settings;
use ::slice::settings::SliceSettings;
use ::slice::state::{Answer, Question};
use config::ConfigFile;
use config::slices::{Slice, switch_name};
use monitor::Verb;
use operator::contract::{Question as NodeQuestion, ReloadView, SlicesChange, SlicesWanted};
use slice_contract::app_name;
use std::path::Path;

/// `burnet slice apply`.
pub fn apply(args: &SliceApplyArgs) -> Result<String, CommandError> {
    let asking = &args.asking;
    let Some(file) = &args.file else {
        return change(asking, SlicesWanted::OfConfiguration, Vec::new(), Vec::new());
    };
    let wanted = ConfigFile::read(file)?.slices;
    let unjudged = if args.force { None } else { plan(file, args, &wanted)? };
    let leaving = leaving(asking, &wanted)?;
    let path = std::path::absolute(file)?;
    let done = change(asking, SlicesWanted::OfFile(path), leaving.clone(), unjudged.into_iter().collect())?;
    // Such a slice may be as it was, and its process has no switches any more.
    let chosen = |name: &&String| wanted.iter().any(|slice| slice.name == **name && slice.needs_links());
    leaving.iter().filter(chosen).for_each(|name| restart(asking, name));
    Ok(done)
}

/// `burnet slice remove`.
pub fn remove(args: &SliceShowArgs) -> Result<String, CommandError> {
    slices::check_known(&args.asking, &args.name)?;
    let wanted = SlicesWanted::Without(args.name.clone());
    change(&args.asking, wanted, vec![args.name.clone()], Vec::new())
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

/// The running slices whose rules must leave the switches: those that are gone, and those that get other packets, ports or switches.
fn leaving(asking: &NodeArgs, wanted: &[Slice]) -> Result<Vec<String>, CommandError> {
    let running: Vec<String> = slices::slices(asking)?.into_iter().map(|(name, _)| name).collect();
    let answers = slice_zones::ask_all(asking, running.iter().map(String::as_str), &Question::Settings)?;
    let mut leaving = Vec::new();
    for (name, answer) in running.into_iter().zip(answers) {
        let Some(slice) = wanted.iter().find(|slice| slice.name == name) else {
            leaving.push(name);
            continue;
        };
        // The node chooses its links, perhaps others than before.
        if slice.needs_links() {
            leaving.push(name);
            continue;
        }
        // A slice that does not answer has no process that could delete its rules.
        let Ok(Answer::Settings(before)) = answer else { continue };
        let after = settings(slice, Vec::new(), false).map_err(CommandError::Usage)?;
        if !has_same_rules(&before, &after) {
            leaving.push(name);
        }
    }
    Ok(leaving)
}

/// Whether the rules of a slice are the same in the switches, whatever else of it changes.
fn has_same_rules(before: &SliceSettings, after: &SliceSettings) -> bool {
    before.isolation == after.isolation
        && before.switches == after.switches
        && before.is_read_only == after.is_read_only
        && (before.groups, before.meters) == (after.groups, after.meters)
}

fn change(
    asking: &NodeArgs,
    wanted: SlicesWanted,
    leaving: Vec<String>,
    mut lines: Vec<String>,
) -> Result<String, CommandError> {
    let reload = |dry_run: bool| {
        let change = SlicesChange { wanted: wanted.clone(), dry_run };
        reload::asked(asking, None, Some(change))
    };
    reload(true)?;
    for name in &leaving {
        lines.extend(withdraw(asking, name));
    }
    let mut view = match reload(false) {
        Ok(view) => view,
        Err(error) => {
            leaving.iter().for_each(|name| restart(asking, name));
            return Err(error);
        }
    };
    view.done.extend(lines);
    shown_view(asking, &view)
}

/// Has a slice delete its rules. Returns what remains.
fn withdraw(asking: &NodeArgs, name: &str) -> Vec<String> {
    match slice_zones::ask(asking, name, &Question::Withdraw) {
        Ok(Answer::Withdrawn(kept)) => {
            let line = |(switch, why): &(flow::DatapathId, String)| {
                format!("slice {name}: its rules stay at {}: {why}", switch_name(*switch))
            };
            kept.iter().map(line).collect()
        }
        Ok(_) => vec![format!("slice {name}: its rules stay: it answered something else")],
        Err(why) => vec![format!("slice {name}: its rules stay: {why}")],
    }
}

/// A slice that has deleted its rules, and is not removed after all, begins again.
fn restart(asking: &NodeArgs, name: &str) {
    let question = NodeQuestion::App { app: app_name(name), verb: Verb::Restart, why: None };
    // The command has failed already, and its own reason is shown.
    let _ = super::ask(asking, &question);
}

fn shown_view(asking: &NodeArgs, view: &ReloadView) -> Result<String, CommandError> {
    if asking.json { json(view) } else { Ok(reload::text(view)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> SliceSettings {
        let slices = ConfigFile::parse(text, Path::new("t")).unwrap().slices;
        settings(&slices[0], Vec::new(), false).unwrap()
    }

    #[test]
    fn only_other_packets_ports_or_switches_take_rules_out() {
        let base = "[slice.blue]\ncontrollers = ['127.0.0.1:1']\nisolation = 'vlan'\ntag = 7\nown_ports = ['s1:1', 's2:1']\n";
        let check = |before: &str, after: &str, same: bool| {
            let changed = base.replace(before, after);
            assert_eq!(has_same_rules(&read(base), &read(&changed)), same, "{changed}");
        };
        check("", "", true);
        check("127.0.0.1:1", "127.0.0.1:2", true);
        check("tag = 7\n", "tag = 7\nlimits = { rules = 9 }\n", true);
        check("tag = 7\n", "tag = 7\nfail = 'standalone'\n", true);
        check("tag = 7", "tag = 8", false);
        check("'s1:1'", "'s1:2'", false);
        check("'s1:1'", "'s1:1 as 9'", false);
        check(", 's2:1'", "", false);
        check("tag = 7\n", "tag = 7\ngroups = [1, 5]\n", false);
    }
}
