//! `burnet slice run`, `list` and `show`: the slices of tenants.
//!
//! ```text
//!   burnet slice show ──> the node: which apps are slices ──> the zone of the slice: its state ──> table or JSON
//! ```
//!
//! In: parsed options. Out: text or JSON. The commands keep nothing.

use super::slice::slices_in;
use super::{ago, app, json, slice_zones, table::columns, unexpected};
use crate::cli::slice::{SliceListArgs, SliceRunArgs, SliceShowArgs};
use crate::cli::{CommandError, NodeArgs, RunArgs};
use config::slices::link_name;
use monitor::{AppState, PAUSED, WAITS};
use node::now_unix_ms;
use operator::contract::{self, AppView};
use paths_contract::Lack;
use serde::Serialize;
use slice::state::{Answer, ControllerState, Question, SliceLinkState, SliceState, SwitchState};
use slice::vnics::{ShapedBy, VnicState};
use slice_contract::slice_of;
use std::process::ExitCode;

/// `burnet slice run`: a node with the slices of the file.
pub fn run(args: SliceRunArgs) -> Result<ExitCode, CommandError> {
    let SliceRunArgs { file, node } = args;
    if node.config.is_some() || !node.apps.is_empty() {
        return Err(CommandError::Usage(
            "burnet slice run accepts neither --app nor --config: use burnet run for a node with apps and slices"
                .to_owned(),
        ));
    }
    slices_in(&file)?;
    super::run::run(&RunArgs { config: Some(file), ..node })
}

/// A slice in a list.
#[derive(Serialize)]
struct Listed {
    slice: String,
    state: AppState,
    /// Whether the operator has paused it.
    paused: bool,
    /// Whether it waits for the network.
    waits: bool,
    /// Why it waits, or that it does not fit.
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
    restarts: u64,
    /// What its zone says, or why it does not.
    detail: Result<SliceState, String>,
}

/// `burnet slice list`.
pub fn list(args: &SliceListArgs) -> Result<String, CommandError> {
    let slices = slices(&args.asking)?;
    let details = states(&args.asking, slices.iter().map(|(slice, _)| slice.as_str()))?;
    let slices: Vec<Listed> = slices
        .into_iter()
        .zip(details)
        .map(|((slice, app), detail)| Listed {
            detail,
            state: app.status.state,
            paused: rests(&app, PAUSED),
            waits: rests(&app, WAITS),
            note: app.status.note.clone(),
            restarts: app.status.restarts,
            slice,
        })
        .collect();
    if args.asking.json {
        return json(&slices);
    }
    if slices.is_empty() {
        return Ok("the node has no slice: write a section [slice.NAME] into its configuration\n".to_owned());
    }
    let rows: Vec<[String; 7]> = slices.iter().map(row).collect();
    Ok(columns(["SLICE", "STATE", "RESTARTS", "SWITCHES", "CONTROLLERS", "RULES", "UNSHAPED"], &rows)
        + &noted(&slices))
}

/// What there is to say of slices: a note of the node, and a link that does not fit on its way.
fn noted(slices: &[Listed]) -> String {
    let line = |it: &Listed| Some(format!("slice {}: {}\n", it.slice, it.note.as_ref()?));
    let unfit = |it: &Listed| unfit_line(it.detail.as_ref().ok()?);
    slices.iter().flat_map(|it| [line(it), unfit(it)]).flatten().collect()
}

/// The first link of a slice that does not fit, and how many others there are.
fn unfit_line(state: &SliceState) -> Option<String> {
    let mut unfit = state.links.iter().filter_map(|link| Some((link.link, link.lack?)));
    let (link, lack) = unfit.next()?;
    let more = match unfit.count() {
        0 => String::new(),
        others => format!(" (and {others} more: burnet slice show {})", state.slice),
    };
    Some(format!("slice {}: link {} {}{more}\n", state.slice, link_name(link), unfit_text(&lack)))
}

fn unfit_text(lack: &Lack) -> String {
    format!("does not fit: {}", lack.text(&link_name(lack.hop)))
}

fn row(listed: &Listed) -> [String; 7] {
    let state = match (listed.paused, listed.waits) {
        (true, _) => "paused".to_owned(),
        (false, true) => "waits".to_owned(),
        (false, false) => app::state(listed.state, now_unix_ms()),
    };
    let (switches, controllers, rules, unshaped) = match &listed.detail {
        Err(_) => ("-".to_owned(), "-".to_owned(), "-".to_owned(), "-".to_owned()),
        Ok(detail) => {
            let up = detail.switches.iter().filter(|switch| switch.is_up).count();
            let all = || detail.switches.iter().flat_map(|switch| &switch.controllers);
            let connected = all().filter(|it| it.version.is_some()).count();
            let vnics = detail.switches.iter().flat_map(|switch| &switch.vnics);
            let unshaped = vnics.filter(|vnic| matches!(vnic.shaped_by, ShapedBy::Nobody(_))).count();
            let rules: usize = detail.switches.iter().map(|switch| switch.rules).sum();
            (
                format!("{up} of {}", detail.switches.len()),
                format!("{connected} of {}", all().count()),
                rules.to_string(),
                unshaped.to_string(),
            )
        }
    };
    [listed.slice.clone(), state, listed.restarts.to_string(), switches, controllers, rules, unshaped]
}

/// `burnet slice show`.
pub fn show(args: &SliceShowArgs) -> Result<String, CommandError> {
    check_known(&args.asking, &args.name)?;
    let (name, all) = (&args.name, slices(&args.asking)?);
    let app = all.iter().find(|(slice, _)| slice == name).map(|(_, app)| app);
    let note = app.and_then(|app| app.status.note.as_ref());
    let is = |why: &str| app.is_some_and(|app| rests(app, why));
    let text = match note {
        _ if is(PAUSED) => format!(
            "slice {name} is paused: its controllers are disconnected, and its rules stay; `burnet slice resume {name}` starts it again\n"
        ),
        Some(note) if is(WAITS) => format!("slice {name} does not run: {note}\n"),
        None if is(WAITS) => format!("slice {name} does not run: {WAITS}\n"),
        note => return shown_running(args, note),
    };
    let rest = if is(PAUSED) { "paused" } else { "waits" };
    if args.asking.json {
        json(&serde_json::json!({ "slice": name, rest: true, "note": note }))
    } else {
        Ok(text)
    }
}

fn shown_running(args: &SliceShowArgs, note: Option<&String>) -> Result<String, CommandError> {
    /// What its zone says, and what the node says of it.
    #[derive(Serialize)]
    struct Noted<'a> {
        #[serde(flatten)]
        state: &'a SliceState,
        #[serde(skip_serializing_if = "Option::is_none")]
        note: Option<&'a String>,
    }
    let state = state(&args.asking, &args.name)?;
    if args.asking.json {
        return json(&Noted { state: &state, note });
    }
    let note = note.map(|note| format!("slice {}: {note}\n", args.name)).unwrap_or_default();
    Ok(note + &shown(&state))
}

/// Whether the slice does not run for this reason, and its process has ended.
fn rests(app: &AppView, why: &str) -> bool {
    let ended_so = app.status.last_end.as_ref().is_some_and(|end| end.reason == why);
    app.status.state == AppState::Stopped && ended_so
}

/// Checks that the node has the slice.
pub(super) fn check_known(asking: &NodeArgs, name: &str) -> Result<(), CommandError> {
    let known = slices(asking)?;
    if known.iter().any(|(slice, _)| *slice == name) {
        return Ok(());
    }
    let names: Vec<&str> = known.iter().map(|(slice, _)| slice.as_str()).collect();
    let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
    Err(CommandError::DidNotWork(format!("the node has no slice {name}; its slices: {names}")))
}

fn shown(state: &SliceState) -> String {
    let switches = state.switches.iter().map(text);
    switches.chain(state.links.iter().map(link_text)).collect()
}

fn link_text(link: &SliceLinkState) -> String {
    let mut text = format!("link {}: {}", link_name(link.link), if link.is_up { "up" } else { "down" });
    if link.hops.len() > 1 {
        let hops: Vec<String> = link.hops.iter().map(|hop| link_name(*hop)).collect();
        text += &format!(", over {}", hops.join(", "));
    }
    if let Some(lack) = &link.lack {
        text += &format!("; {}", unfit_text(lack));
    }
    if let Some(why) = link.why.as_ref().filter(|_| !link.is_up) {
        text += &format!(": {why}");
    }
    text + "\n"
}

fn text(switch: &SwitchState) -> String {
    let mut text = format!("switch {}", switch.datapath);
    if switch.shown_as != switch.datapath {
        text += &format!(", shown as {}", switch.shown_as);
    }
    text += if switch.is_up { "\n" } else { ": not connected\n" };
    text += &format!(
        "  {} rules ({} in the switch), {} flow mods, {} packet-ins ({} dropped above the limit, {} not read), {} packet-outs, {} messages refused\n",
        switch.rules,
        switch.pieces,
        switch.flow_mods,
        switch.packet_ins,
        switch.packet_ins_dropped,
        switch.packet_ins_unread,
        switch.packet_outs,
        switch.refused
    );
    switch.vnics.iter().for_each(|vnic| text += &vnic_line(vnic));
    switch.controllers.iter().for_each(|controller| text += &line(controller));
    text
}

fn vnic_line(vnic: &VnicState) -> String {
    format!("  VNIC {} at port {}: {}\n", vnic.name, vnic.port, vnic.shaped_by)
}

fn line(controller: &ControllerState) -> String {
    let ControllerState { address, version, role, up_ms, trouble } = controller;
    let state = match (version, up_ms, trouble) {
        (Some(version), Some(up_ms), _) => {
            format!("OpenFlow {version}, {}, for {}", role.as_deref().unwrap_or("equal"), ago(*up_ms))
        }
        (_, _, Some(trouble)) => format!("not connected: {trouble}"),
        _ => "not connected".to_owned(),
    };
    format!("  controller {address}: {state}\n")
}

/// The slices of the node, with their apps.
pub(super) fn slices(asking: &NodeArgs) -> Result<Vec<(String, AppView)>, CommandError> {
    let contract::Answer::Apps(apps) = super::ask(asking, &contract::Question::Apps)? else {
        return Err(unexpected());
    };
    let slices = apps.into_iter().filter_map(|app| Some((slice_of(&app.status.app)?.to_owned(), app)));
    Ok(slices.collect())
}

/// What the zone of a slice says.
fn state(asking: &NodeArgs, slice: &str) -> Result<SliceState, CommandError> {
    match slice_zones::ask(asking, slice, &Question::State)? {
        Answer::State(state) => Ok(state),
        _ => Err(unexpected()),
    }
}

/// What the zones of these slices say, or why one does not.
fn states<'a>(
    asking: &NodeArgs,
    slices: impl IntoIterator<Item = &'a str>,
) -> Result<Vec<Result<SliceState, String>>, CommandError> {
    let state = |answer| match answer {
        Answer::State(state) => Ok(state),
        _ => Err(unexpected().to_string()),
    };
    let answers = slice_zones::ask_all(asking, slices, &Question::State)?.into_iter();
    Ok(answers.map(|answer| answer.and_then(state)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use flow::DatapathId;

    #[test]
    fn links_that_do_not_fit_are_shown_with_what_is_lacking() {
        let link = |id: &str, lack| SliceLinkState {
            link: id.parse().unwrap(),
            is_up: true,
            hops: vec!["1/3-3/1".parse().unwrap(), "3/2-2/3".parse().unwrap()],
            why: None,
            lack,
        };
        let hop = "3/2-2/3".parse().unwrap();
        let lack = Some(Lack { hop, worst_kbps: 4_000, left_kbps: 3_000, capacity_kbps: 10_000 });
        let why =
            "does not fit: hop s3:2-s2:3 lacks 1.0M: its VNICs can put 4.0M there, and 3.0M of 10.0M is left";
        let mut state = SliceState {
            slice: "blue".to_owned(),
            switches: Vec::new(),
            labels: Vec::new(),
            links: vec![link("1/4-2/4", None), link("1/3-2/3", lack)],
        };
        let over = "up, over s1:3-s3:1, s3:2-s2:3";
        assert_eq!(shown(&state), format!("link s1:4-s2:4: {over}\nlink s1:3-s2:3: {over}; {why}\n"));
        assert_eq!(unfit_line(&state), Some(format!("slice blue: link s1:3-s2:3 {why}\n")));
        state.links.push(link("1/5-2/5", lack));
        let more = format!("slice blue: link s1:3-s2:3 {why} (and 1 more: burnet slice show blue)\n");
        assert_eq!(unfit_line(&state), Some(more));
        state.links.truncate(1);
        assert_eq!(unfit_line(&state), None);
    }

    #[test]
    fn a_switch_is_shown_with_its_controllers_and_why_one_is_away() {
        let controller = |version: Option<&str>, trouble: Option<&str>| ControllerState {
            address: "127.0.0.1:6702".parse().unwrap(),
            version: version.map(str::to_owned),
            role: version.map(|_| "master".to_owned()),
            up_ms: version.map(|_| 61_000),
            trouble: trouble.map(str::to_owned),
        };
        let vnic = |name: &str, shaped_by| VnicState { name: name.to_owned(), port: 1, shaped_by };
        let switch = SwitchState {
            datapath: DatapathId(7),
            shown_as: DatapathId(1),
            is_up: true,
            rules: 2,
            pieces: 6,
            packet_ins: 9,
            packet_ins_dropped: 1,
            packet_ins_unread: 5,
            packet_outs: 8,
            flow_mods: 3,
            refused: 4,
            vnics: vec![
                vnic("E", ShapedBy::Agent(2)),
                vnic("F", ShapedBy::Meter(64)),
                vnic("G", ShapedBy::Nobody("meter = false".to_owned())),
            ],
            controllers: vec![controller(Some("1.3"), None), controller(None, Some("it sent no hello"))],
        };
        let expected = "switch of:0000000000000007, shown as of:0000000000000001\n  \
                        2 rules (6 in the switch), 3 flow mods, 9 packet-ins (1 dropped above the limit, 5 not read), 8 packet-outs, 4 messages refused\n  \
                        VNIC E at port 1: shaped by agent 2\n  \
                        VNIC F at port 1: shaped by meter 64\n  \
                        VNIC G at port 1: unshaped: meter = false\n  \
                        controller 127.0.0.1:6702: OpenFlow 1.3, master, for 61s\n  \
                        controller 127.0.0.1:6702: not connected: it sent no hello\n";
        assert_eq!(text(&switch), expected);
    }
}
