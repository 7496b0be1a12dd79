//! `burnet slice run`, `list` and `show`: the slices of tenants.
//!
//! ```text
//!   burnet slice show ──> the node: which apps are slices ──> the zone of the slice: its state ──> table or JSON
//! ```
//!
//! In: parsed options. Out: text or JSON. The commands keep nothing.

use super::slice::slices_in;
use super::{ago, app, ask, json, table::columns, unexpected};
use crate::cli::slice::{SliceListArgs, SliceRunArgs, SliceShowArgs};
use crate::cli::{CommandError, NodeArgs, RunArgs};
use crate::slices::socket_name;
use config::Environment;
use monitor::AppState;
use node::now_unix_ms;
use operator::contract::{Answer, AppView, Question};
use serde::Serialize;
use slice::state::{ControllerState, SliceState, SwitchState};
use slice_contract::slice_of;
use std::io::{ErrorKind, Read};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// How long to wait for the slices, together. They answer without asking anybody.
const PATIENCE: Duration = Duration::from_secs(5);
/// What a slice has after that: its answer may be there already.
const LAST_MOMENT: Duration = Duration::from_millis(10);
/// Slices that are asked at the same time. Each takes a descriptor.
const ASKED_MAX: usize = 256;
/// The longest state that is read, in bytes: of 256 switches with eight controllers each.
const STATE_BYTES_MAX: usize = 4 << 20;

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
    let rows: Vec<[String; 6]> = slices.iter().map(row).collect();
    Ok(columns(["SLICE", "STATE", "RESTARTS", "SWITCHES", "CONTROLLERS", "RULES"], &rows))
}

fn row(listed: &Listed) -> [String; 6] {
    let state = app::state(listed.state, now_unix_ms());
    let (switches, controllers, rules) = match &listed.detail {
        Err(_) => ("-".to_owned(), "-".to_owned(), "-".to_owned()),
        Ok(detail) => {
            let up = detail.switches.iter().filter(|switch| switch.is_up).count();
            let all = || detail.switches.iter().flat_map(|switch| &switch.controllers);
            let connected = all().filter(|it| it.version.is_some()).count();
            let rules: usize = detail.switches.iter().map(|switch| switch.rules).sum();
            (
                format!("{up} of {}", detail.switches.len()),
                format!("{connected} of {}", all().count()),
                rules.to_string(),
            )
        }
    };
    [listed.slice.clone(), state, listed.restarts.to_string(), switches, controllers, rules]
}

/// `burnet slice show`.
pub fn show(args: &SliceShowArgs) -> Result<String, CommandError> {
    let known = slices(&args.asking)?;
    if !known.iter().any(|(slice, _)| *slice == args.name) {
        let names: Vec<&str> = known.iter().map(|(slice, _)| slice.as_str()).collect();
        let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        return Err(CommandError::DidNotWork(format!(
            "the node has no slice {}; its slices: {names}",
            args.name
        )));
    }
    let state = state(&args.asking, &args.name)?;
    if args.asking.json { json(&state) } else { Ok(state.switches.iter().map(text).collect()) }
}

fn text(switch: &SwitchState) -> String {
    let mut text = format!("switch {}", switch.datapath);
    if switch.shown_as != switch.datapath {
        text += &format!(", shown as {}", switch.shown_as);
    }
    text += if switch.is_up { "\n" } else { ": not connected\n" };
    text += &format!(
        "  {} rules ({} in the switch), {} flow mods, {} packet-ins ({} dropped), {} packet-outs, {} messages refused\n",
        switch.rules,
        switch.pieces,
        switch.flow_mods,
        switch.packet_ins,
        switch.packet_ins_dropped,
        switch.packet_outs,
        switch.refused
    );
    switch.controllers.iter().for_each(|controller| text += &line(controller));
    text
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
fn slices(asking: &NodeArgs) -> Result<Vec<(String, AppView)>, CommandError> {
    let Answer::Apps(apps) = ask(asking, &Question::Apps)? else { return Err(unexpected()) };
    let slices = apps.into_iter().filter_map(|app| Some((slice_of(&app.status.app)?.to_owned(), app)));
    Ok(slices.collect())
}

/// What the zone of a slice says.
fn state(asking: &NodeArgs, slice: &str) -> Result<SliceState, CommandError> {
    let mut states = states(asking, [slice])?;
    states.pop().unwrap_or_else(|| Err(String::new())).map_err(CommandError::DidNotWork)
}

/// What the zones of these slices say, or why one does not. Many are asked before the first is read, and all have one time limit together.
fn states<'a>(
    asking: &NodeArgs,
    slices: impl IntoIterator<Item = &'a str>,
) -> Result<Vec<Result<SliceState, String>>, CommandError> {
    let operator = Environment::of_this_process()?.socket(asking.socket.as_deref(), None)?;
    let folder = operator.with_extension("listen");
    let slices: Vec<(&str, PathBuf)> =
        slices.into_iter().map(|slice| (slice, folder.join(socket_name(slice)))).collect();
    let until = Instant::now() + PATIENCE;
    let mut states = Vec::new();
    for some in slices.chunks(ASKED_MAX) {
        let asked: Vec<_> = some.iter().map(|(_, socket)| UnixStream::connect(socket)).collect();
        let answers = some.iter().zip(asked);
        states.extend(answers.map(|((slice, socket), stream)| answer(slice, socket, stream, until)));
    }
    Ok(states)
}

fn answer(
    slice: &str,
    socket: &Path,
    stream: std::io::Result<UnixStream>,
    until: Instant,
) -> Result<SliceState, String> {
    let text = stream.and_then(|stream| text_until(stream, until)).map_err(|error| {
        format!(
            "slice {slice} does not answer at {}: {error}; see `burnet slice list` and `burnet app logs slice.{slice}`",
            socket.display()
        )
    })?;
    serde_json::from_slice(&text)
        .map_err(|error| format!("slice {slice} sent an answer that cannot be read: {error}"))
}

/// All that comes until the end, or until the time is over.
fn text_until(mut stream: UnixStream, until: Instant) -> std::io::Result<Vec<u8>> {
    let (mut text, mut buffer) = (Vec::new(), vec![0; 64 << 10]);
    while text.len() < STATE_BYTES_MAX {
        let left = until.saturating_duration_since(Instant::now());
        stream.set_read_timeout(Some(left.max(LAST_MOMENT)))?;
        match stream.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => text.extend_from_slice(&buffer[..count]),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                let why = format!("it took longer than {} s", PATIENCE.as_secs());
                return Err(std::io::Error::new(ErrorKind::TimedOut, why));
            }
            Err(error) => return Err(error),
        }
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use flow::DatapathId;

    #[test]
    fn slices_that_do_not_answer_share_one_time_limit_and_the_others_are_heard() {
        let (_silent, one) = UnixStream::pair().unwrap();
        let (_silent_too, two) = UnixStream::pair().unwrap();
        let (mut theirs, three) = UnixStream::pair().unwrap();
        std::io::Write::write_all(&mut theirs, br#"{"slice": "blue", "switches": []}"#).unwrap();
        drop(theirs);
        let over = Instant::now();
        let check = |stream, expected: &str| {
            let text = match answer("blue", Path::new("s"), Ok(stream), over) {
                Ok(state) => state.slice,
                Err(why) => why,
            };
            assert!(text.contains(expected), "{text}");
        };
        check(one, "slice blue does not answer at s: it took longer than 5 s");
        check(two, "it took longer than 5 s");
        check(three, "blue");
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
        let switch = SwitchState {
            datapath: DatapathId(7),
            shown_as: DatapathId(1),
            is_up: true,
            rules: 2,
            pieces: 6,
            packet_ins: 9,
            packet_ins_dropped: 1,
            packet_outs: 8,
            flow_mods: 3,
            refused: 4,
            controllers: vec![controller(Some("1.3"), None), controller(None, Some("it sent no hello"))],
        };
        let expected = "switch of:0000000000000007, shown as of:0000000000000001\n  \
                        2 rules (6 in the switch), 3 flow mods, 9 packet-ins (1 dropped), 8 packet-outs, 4 messages refused\n  \
                        controller 127.0.0.1:6702: OpenFlow 1.3, master, for 61s\n  \
                        controller 127.0.0.1:6702: not connected: it sent no hello\n";
        assert_eq!(text(&switch), expected);
    }
}
