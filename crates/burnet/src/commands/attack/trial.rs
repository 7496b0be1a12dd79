//! A trial: a node of its own, a network that it controls, an attacker, and what was seen meanwhile.
//!
//! ```text
//!   hosts h1 … h4 on three switches ──> node: firewall (h1 to h4 is blocked), learning-switch, and the attacker
//!     ping h1 h2, h2 h3, h3 h4, h4 h2: again and again, and must be answered
//!     ping h1 h4: must not
//! ```
//!
//! The one place of an attack that acts. It never judges: that is `verdict`.

use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use emulator::{Emulation, Handle, SwitchOptions, Versions};

use super::case::{By, Case, Must};
use super::from_a_switch;
use super::verdict::Evidence;
use crate::cli::CommandError;
use crate::commands::own_node::OwnNode;
use crate::node::client;
use crate::node::operator::{Answer, AppView, FlowsView, Question};

/// How long the node, the switches and the first pings may take.
const START_PATIENCE: Duration = Duration::from_secs(20);

/// How long an attack is watched: its app acts at its first tick, within a second, and has longer than that to do harm.
const WATCH: Duration = Duration::from_millis(2500);

/// How long one ping may take. Nothing decides by it but whether an answer comes at all.
const PING_PATIENCE: Duration = Duration::from_secs(5);

/// How long a ping that must not be answered is waited for.
const BLOCKED_PATIENCE: Duration = Duration::from_millis(400);

/// How often the apps are looked at.
const LOOK: Duration = Duration::from_millis(50);

/// Who must always reach whom.
const INNOCENTS: [(&str, &str); 4] = [("h1", "h2"), ("h2", "h3"), ("h3", "h4"), ("h4", "h2")];

/// Whom the firewall keeps apart.
const BLOCKED: (&str, &str) = ("h1", "h4");

const FIREWALL: &str =
    "[app.firewall]\n[app.firewall.settings]\nblock = [\"ip,nw_src=10.0.0.1,nw_dst=10.0.0.4\"]\n";

/// Holds one.
///
/// # Errors
/// It could not be held: no node, no network.
pub fn hold(case: &Case) -> Result<Evidence, CommandError> {
    let listener = TcpListener::bind("127.0.0.1:0").map_err(trouble("no server for the trial"))?;
    listener.set_nonblocking(true).map_err(trouble("no server for the trial"))?;
    let address = listener.local_addr().map_err(trouble("no server for the trial"))?;
    let mut node = OwnNode::start_configured(|folder| configuration(case, folder, address))?;
    let controller = node.wait_until_it_listens_with(&["firewall", "learning-switch"])?;
    let options = SwitchOptions { versions: Versions::Only13, ..SwitchOptions::default() };
    let topology = "tree,2".parse().map_err(|error| CommandError::DidNotWork(format!("{error}")))?;
    let network = Emulation::start(&topology, controller, &options).map_err(trouble("no network"))?;
    network.wait_connected(START_PATIENCE).map_err(|error| CommandError::DidNotWork(error.to_string()))?;
    wait_until(|| firewall_is_everywhere(&node, &network))?;
    let mut seen = watch(case, &node, &network, controller);
    seen.connections_taken = std::iter::from_fn(|| listener.accept().ok()).count();
    look_back(&node, &network, &mut seen);
    network.stop();
    Ok(seen)
}

fn wait_until(ready: impl Fn() -> bool) -> Result<(), CommandError> {
    let began = std::time::Instant::now();
    while !ready() {
        if began.elapsed() > START_PATIENCE {
            return Err(CommandError::DidNotWork(
                "the firewall's rules did not come into the switches".to_owned(),
            ));
        }
        std::thread::sleep(LOOK);
    }
    Ok(())
}

/// Whether each switch of the trial says that it has a rule of the firewall's.
fn firewall_is_everywhere(node: &OwnNode, network: &Handle) -> bool {
    let answer = client::ask(node.socket(), &Question::Flows { datapath: None });
    let Ok(Answer::Flows(switches)) = answer else { return false };
    let has_rule = |switch: &&FlowsView| switch.flows.iter().any(|flow| flow.owner == "firewall");
    switches.iter().filter(has_rule).count() >= network.switches()
}

fn trouble(what: &'static str) -> impl Fn(std::io::Error) -> CommandError {
    move |error| CommandError::DidNotWork(format!("{what}: {error}"))
}

/// The node's configuration: the innocents, and the attacker if it is an app.
fn configuration(case: &Case, folder: &Path, server: SocketAddr) -> String {
    let innocents = format!("{FIREWALL}[app.learning-switch]\n");
    let (own, parent) =
        (std::process::id(), rustix::process::getppid().map_or(1, |pid| pid.as_raw_nonzero().get()));
    match case.by {
        By::Switch(_) => innocents,
        By::Ring => format!("{innocents}[app.misbehaving-ring]\n"),
        By::App(lines) => format!(
            "{innocents}[app.misbehaving]\n{lines}[app.misbehaving.settings]\nattack = \"{}\"\naddress = \"{server}\"\n\
             processes = [{own}, {parent}]\nfiles = [\"/etc/passwd\", \"/etc/shadow\", \"{}\", \"{}\"]\n",
            case.name,
            folder.join("burnet.toml").display(),
            folder.join("node.log").display(),
        ),
    }
}

/// Pings, attacks and looks at the same time.
fn watch(case: &Case, node: &OwnNode, network: &Handle, controller: SocketAddr) -> Evidence {
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let pings = scope.spawn(|| ping(network, &over));
        let apps = scope.spawn(|| look(node.socket(), &over));
        let switch = scope.spawn(|| match case.by {
            By::Switch(attack) => from_a_switch::act(attack, controller, WATCH).unwrap_or(false),
            _ => false,
        });
        std::thread::sleep(WATCH);
        wait_for_what_must_come(case, node);
        let cut_off = switch.join().unwrap_or(false);
        over.store(true, Ordering::Relaxed);
        let (pings, lost, got_through) = pings.join().unwrap_or_default();
        let mut seen = apps.join().unwrap_or_default();
        (seen.pings, seen.lost, seen.got_through, seen.cut_off) = (pings, lost, got_through, cut_off);
        seen
    })
}

/// Watches on while what must come of the attack has not come: a machine that is busy is slow, and that decides nothing.
fn wait_for_what_must_come(case: &Case, node: &OwnNode) {
    let began = std::time::Instant::now();
    while began.elapsed() < START_PATIENCE && !has_come(case, node) {
        std::thread::sleep(LOOK);
    }
}

fn has_come(case: &Case, node: &OwnNode) -> bool {
    let Ok(Answer::Apps(apps)) = client::ask(node.socket(), &Question::Apps) else { return false };
    let attacker = apps.iter().find(|app| app.status.app.starts_with("misbehaving"));
    let ended = attacker.is_some_and(|app| app.status.last_end.is_some());
    match case.must {
        Must::End(_) => ended,
        Must::BeRefused => attacker.is_some_and(|app| app.refusals > 0),
        Must::BeDenied => ended || tried(node),
        Must::HurtNobody | Must::BeCutOff => true,
    }
}

/// Whether the attacker has said that it tried something.
fn tried(node: &OwnNode) -> bool {
    let text = std::fs::read(node.log()).unwrap_or_default();
    String::from_utf8_lossy(&text).contains("misbehaving: tried ")
}

/// Rounds of pings until it is over: how many, which of them were lost, and how many got through that should not have.
fn ping(network: &Handle, over: &AtomicBool) -> (usize, Vec<String>, usize) {
    let (mut pings, mut lost, mut got_through) = (0, Vec::new(), 0);
    while !over.load(Ordering::Relaxed) {
        let begun = INNOCENTS.map(|(from, to)| (from, to, network.begin_ping(from, to, PING_PATIENCE)));
        let blocked = network.begin_ping(BLOCKED.0, BLOCKED.1, BLOCKED_PATIENCE);
        for (from, to, report) in begun {
            pings += 1;
            if !report.is_ok_and(|report| report.recv().is_ok_and(|report| report.is_complete())) {
                lost.push(format!("{from} to {to}"));
            }
        }
        got_through +=
            usize::from(blocked.is_ok_and(|report| report.recv().is_ok_and(|report| report.is_complete())));
    }
    (pings, lost, got_through)
}

/// Looks at the apps until it is over: how the attacker ended, and whom it took with it.
fn look(socket: &Path, over: &AtomicBool) -> Evidence {
    let mut seen = Evidence::default();
    while !over.load(Ordering::Relaxed) {
        if let Ok(Answer::Apps(apps)) = client::ask(socket, &Question::Apps) {
            apps.iter().for_each(|app| note(app, &mut seen));
        }
        std::thread::sleep(LOOK);
    }
    seen
}

fn note(app: &AppView, seen: &mut Evidence) {
    let status = &app.status;
    if !status.app.starts_with("misbehaving") {
        if status.restarts > 0 && !seen.innocents_restarted.contains(&status.app) {
            seen.innocents_restarted.push(status.app.clone());
        }
        return;
    }
    seen.restarts = status.restarts;
    seen.refusals = app.refusals;
    if let Some(end) = &status.last_end
        && !seen.endings.contains(&end.reason)
    {
        seen.endings.push(end.reason.clone());
    }
}

/// What is to be seen when the attack is over.
fn look_back(node: &OwnNode, network: &Handle, seen: &mut Evidence) {
    seen.sessions_lost = network.counters().connections_lost;
    if let Ok(Answer::Node(view)) = client::ask(node.socket(), &Question::Node) {
        seen.node_answers = true;
        seen.kernel_restarts = view.kernel_restarts;
    }
    seen.firewall_rules_whole = firewall_is_everywhere(node, network);
    let log = node.log();
    seen.log_bytes = std::fs::metadata(&log).map_or(0, |metadata| metadata.len());
    let text = std::fs::read(&log).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let tries =
        text.lines().filter_map(|line| line.split_once("misbehaving: tried ")).map(|(_, tried)| tried);
    seen.tries = tries.map(str::to_owned).collect();
}
