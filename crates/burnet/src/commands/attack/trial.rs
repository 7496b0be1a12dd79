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
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use emulator::{Emulation, Handle, SwitchOptions, Versions};

use super::case::{By, Case, LIMITS, Must, QUOTA_LINES, QUOTAS, SMALL};
use super::from_a_package;
use super::from_a_switch;
use super::verdict::{ATTACKER, Evidence};
use crate::cli::CommandError;
use crate::commands::own_node::OwnNode;
use crate::node::client;
use crate::node::operator::{Answer, AppView, FlowsView, Question};

/// How long the node, the switches and the first pings may take.
const START_PATIENCE: Duration = Duration::from_secs(20);

/// How long an attack is watched: its app acts at its first tick, within a second, and has longer than that to do harm.
const WATCH: Duration = Duration::from_millis(2500);

/// How long one ping may take: long, since nothing is to be decided by it but whether an answer comes at all.
const PING_PATIENCE: Duration = START_PATIENCE;

/// How long a ping that must not be answered is waited for.
const BLOCKED_PATIENCE: Duration = Duration::from_millis(400);

/// How often the apps are looked at.
const LOOK: Duration = Duration::from_millis(50);

/// Who must always reach whom.
const INNOCENTS: [(&str, &str); 4] = [("h1", "h2"), ("h2", "h3"), ("h3", "h4"), ("h4", "h2")];

/// Whom the firewall keeps apart.
const BLOCKED: (&str, &str) = ("h1", "h4");

/// The app that writes over its port.
const RING: &str = "misbehaving-ring";

const FIREWALL: &str =
    "[app.firewall]\n[app.firewall.settings]\nblock = [\"ip,nw_src=10.0.0.1,nw_dst=10.0.0.4\"]\n";

/// Holds one.
///
/// # Errors
/// It could not be held: no node, no network.
pub fn hold(case: &Case) -> Result<Evidence, CommandError> {
    let (listener, address) = server()?;
    let mut node = start_node(case, address, Goes::Once)?;
    let controller = node.wait_until_it_listens_with(&["firewall", "learning-switch"])?;
    let options = SwitchOptions { versions: Versions::Only13, ..SwitchOptions::default() };
    let topology = "tree,2".parse().map_err(|error| CommandError::DidNotWork(format!("{error}")))?;
    let network = Emulation::start(&topology, controller, &options).map_err(trouble("no network"))?;
    network.wait_connected(START_PATIENCE).map_err(|error| CommandError::DidNotWork(error.to_string()))?;
    if !wait_for(|| firewall_is_everywhere(&node, &network)) {
        let why = "the firewall's rules did not come into the switches";
        return Err(CommandError::DidNotWork(why.to_owned()));
    }
    let aims = aim(case, &node)?;
    let mut seen = watch(case, &node, &network, controller);
    seen.aims = aims;
    seen.connections_taken = std::iter::from_fn(|| listener.accept().ok()).count();
    look_back(&node, &network, &mut seen);
    network.stop();
    Ok(seen)
}

/// Where an attacker may try to connect to.
pub fn server() -> Result<(TcpListener, SocketAddr), CommandError> {
    let listener = TcpListener::bind("127.0.0.1:0").map_err(trouble("no server for the trial"))?;
    listener.set_nonblocking(true).map_err(trouble("no server for the trial"))?;
    let address = listener.local_addr().map_err(trouble("no server for the trial"))?;
    Ok((listener, address))
}

/// A node with the innocents and the attacker.
pub fn start_node(case: &Case, server: SocketAddr, goes: Goes) -> Result<OwnNode, CommandError> {
    let mut prepared = Ok(());
    let node = OwnNode::start_configured(|folder| {
        if let By::Package(attack) = case.by {
            prepared = from_a_package::prepare(attack, folder);
        }
        configuration(case, folder, server, goes)
    })?;
    prepared.map_err(trouble("no packages for the trial"))?;
    Ok(node)
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

/// Whether it is at other processes, which have numbers only once the node runs.
fn is_at_processes(case: &Case) -> bool {
    ["read-memory", "ptrace", "signals"].contains(&case.name)
}

/// Tells an attacker that is at processes the kernel's and an innocent app's, and says how its tries name them.
pub fn aim(case: &Case, node: &OwnNode) -> Result<Vec<String>, CommandError> {
    if !is_at_processes(case) {
        return Ok(Vec::new());
    }
    let mut pids = Vec::new();
    // An app that runs has been seen by its kernel before its process is known to the operator's socket.
    if !wait_for(|| {
        pids = others(node);
        pids.len() >= 2
    }) {
        return Err(CommandError::DidNotWork("the node does not say which processes are its own".to_owned()));
    }
    let text = pids.iter().map(|pid| format!("{pid}\n")).collect::<String>();
    std::fs::write(processes_file(node.folder()), text)
        .map_err(trouble("the attacker cannot be told of processes"))?;
    Ok(pids.iter().map(ToString::to_string).collect())
}

/// The kernel's process and an innocent app's, as far as they are known.
fn others(node: &OwnNode) -> Vec<u32> {
    let mut pids = Vec::new();
    if let Ok(Answer::Node(view)) = client::ask(node.socket(), &Question::Node) {
        pids.push(view.pid);
    }
    if let Ok(Answer::Apps(apps)) = client::ask(node.socket(), &Question::Apps) {
        let firewall = apps.iter().find(|app| app.status.app == "firewall");
        pids.extend(firewall.and_then(|app| app.status.pid));
    }
    pids
}

/// For how long an app attacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Goes {
    /// Once, and it may have all that its manifest asks for.
    Once,
    /// Again at every tick, within the limits that an operator gives an app which is not trusted.
    On,
}

/// The node's configuration: the innocents, and the attacker if it is an app.
fn configuration(case: &Case, folder: &Path, server: SocketAddr, goes: Goes) -> String {
    let innocents = format!("{FIREWALL}[app.learning-switch]\n");
    let goes_on = goes == Goes::On;
    let limits = |app: &str| if goes_on { limits(app) } else { String::new() };
    let (own, parent) =
        (std::process::id(), rustix::process::getppid().map_or(1, |pid| pid.as_raw_nonzero().get()));
    match case.by {
        By::Switch(_) => innocents,
        By::Storm(count) => {
            (1..=count).map(|number| format!("{ATTACKER}-{number}")).fold(innocents, |all, app| {
                format!("{all}[app.{app}]\npath = \"/bin/false\"\n[app.{app}.capabilities]\n{}", limits(&app))
            })
        }
        By::Package(_) => format!(
            "[node]\nstate = \"{}\"\n{innocents}[app.{}]\n",
            from_a_package::state(folder).display(),
            from_a_package::APP
        ),
        By::Ring => format!("{innocents}[app.{RING}]\n{}", limits(RING)),
        By::App(lines) => format!(
            "{}{innocents}[app.{ATTACKER}]\n{}{}[app.{ATTACKER}.settings]\nattack = \"{}\"\naddress = \"{server}\"\nagain = {goes_on}\n\
             {}processes = [{own}, {parent}]\nfiles = [\"/etc/passwd\", \"/etc/shadow\", \"{}\", \"{}\"]\n",
            if lines.contains("\"store.") { state_in(folder) } else { String::new() },
            if goes_on { within_limits(lines) } else { lines.to_owned() },
            if is_at_processes(case) { may_read(&processes_file(folder)) } else { String::new() },
            case.name,
            if is_at_processes(case) { processes_in(&processes_file(folder)) } else { String::new() },
            folder.join("burnet.toml").display(),
            folder.join("node.log").display(),
        ),
    }
}

/// Without a state folder there is no store to attack.
fn state_in(folder: &Path) -> String {
    format!("[node]\nstate = \"{}\"\n", from_a_package::state(folder).display())
}

/// What an operator gives an app that is not trusted.
fn limits(app: &str) -> String {
    (LIMITS.to_owned() + QUOTAS + QUOTA_LINES).replace("APP", app)
}

/// A case's own lines within such limits, none of which is said twice.
fn within_limits(lines: &str) -> String {
    let lines = lines.replace(SMALL, "");
    let quotas = QUOTAS.replace("APP", ATTACKER);
    match lines.contains(&quotas) {
        true => LIMITS.replace("APP", ATTACKER) + &lines.replace(&quotas, &(quotas.clone() + QUOTA_LINES)),
        false => lines + &limits(ATTACKER),
    }
}

fn processes_file(folder: &Path) -> PathBuf {
    folder.join("processes")
}

/// What may be read must be there when the zone is made: empty, for now.
fn may_read(file: &Path) -> String {
    // If it cannot be made, neither can the zone, and the trial says so.
    let _ = std::fs::write(file, "");
    format!("[app.{ATTACKER}.sandbox]\nfs.read = [\"{}\"]\n", file.display())
}

fn processes_in(file: &Path) -> String {
    format!("processes_file = \"{}\"\n", file.display())
}

/// Pings, attacks and looks at the same time.
fn watch(case: &Case, node: &OwnNode, network: &Handle, controller: SocketAddr) -> Evidence {
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let pings = scope.spawn(|| ping(network, &over));
        let apps = scope.spawn(|| look(node.socket(), &over));
        let switch = scope.spawn(|| match case.by {
            By::Switch(attack) => Some(from_a_switch::act(attack, controller, WATCH)),
            _ => None,
        });
        let package = scope.spawn(|| match case.by {
            By::Package(attack) => Some(from_a_package::act(attack, node.folder(), node.socket())),
            _ => None,
        });
        wait_for(|| has_begun(case, node));
        std::thread::sleep(WATCH);
        wait_for(|| has_come(case, node));
        let acted = switch.join().unwrap_or_default();
        let said = package.join().unwrap_or_default();
        over.store(true, Ordering::Relaxed);
        let (pings, lost, got_through) = pings.join().unwrap_or_default();
        let mut seen = apps.join().unwrap_or_default();
        (seen.pings, seen.lost, seen.got_through) = (pings, lost, got_through);
        match acted {
            Some(Ok(cut_off)) => (seen.began, seen.cut_off) = (true, cut_off),
            Some(Err(error)) => seen.not_tried = Some(error.to_string()),
            None => {}
        }
        match said {
            Some(Ok(said)) => (seen.began, seen.said) = (true, said),
            Some(Err(error)) => seen.not_tried = Some(error.to_string()),
            None => {}
        }
        seen
    })
}

/// Watches on while what must come has not come, and says whether it has: a machine that is busy is slow, and that decides nothing.
pub fn wait_for(mut come: impl FnMut() -> bool) -> bool {
    let began = std::time::Instant::now();
    while !come() {
        if began.elapsed() > START_PATIENCE {
            return false;
        }
        std::thread::sleep(LOOK);
    }
    true
}

/// Whether an app that attacks has begun, or has ended, which some do at once.
fn has_begun(case: &Case, node: &OwnNode) -> bool {
    !matches!(case.by, By::App(_)) || says(node, BEGINS) || has_ended(node)
}

/// Whether all that attack have ended, and there is one.
fn has_ended(node: &OwnNode) -> bool {
    let attackers = attackers(node);
    !attackers.is_empty() && attackers.iter().all(|app| app.status.last_end.is_some())
}

pub fn attackers(node: &OwnNode) -> Vec<AppView> {
    let Ok(Answer::Apps(apps)) = client::ask(node.socket(), &Question::Apps) else { return Vec::new() };
    apps.into_iter().filter(|app| app.status.app.starts_with(ATTACKER)).collect()
}

/// What the attacker says when it begins, in the node's log.
const BEGINS: &str = "misbehaving: begins";

/// How often an attacker has begun, by the node's log.
pub fn beginnings(node: &OwnNode) -> usize {
    log_of(node).matches(BEGINS).count()
}

/// Whether this stands in the node's log.
fn says(node: &OwnNode, wanted: &str) -> bool {
    log_of(node).contains(wanted)
}

fn log_of(node: &OwnNode) -> String {
    let bytes = std::fs::read(node.log()).unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// How many of the attacker's commands were denied and how many worked, as it says in the log.
fn came_of_commands(log: &str) -> (u64, u64) {
    let told = log.lines().filter_map(|line| line.split_once("misbehaving: tried commands: "));
    told.fold((0, 0), |(denied, worked), (_, came)| {
        let mut numbers = came.split(|c: char| !c.is_ascii_digit()).filter_map(|it| it.parse::<u64>().ok());
        (denied + numbers.next().unwrap_or(0), worked + numbers.next().unwrap_or(0))
    })
}

fn has_come(case: &Case, node: &OwnNode) -> bool {
    match case.must {
        Must::End(_) => has_ended(node),
        Must::BeRefused => came_of_commands(&log_of(node)).0 > 0,
        Must::KeepNoMore(_) => {
            let (denied, worked) = came_of_commands(&log_of(node));
            denied > 0 && worked > 0
        }
        Must::BeLimited => {
            attackers(node).iter().any(|app| app.refusals > 0) || came_of_commands(&log_of(node)).0 > 0
        }
        Must::BeDenied => has_ended(node) || says(node, "misbehaving: tried "),
        Must::BeCutShort => lines_left_out(node),
        Must::OwnItsRules => !owners(node).is_empty(),
        Must::HurtNobody | Must::BeCutOff | Must::BeTurnedAway(_) => true,
    }
}

/// Whether the node says of the attacker that lines are left out, both of what it prints and of what it logs.
fn lines_left_out(node: &OwnNode) -> bool {
    let text = log_of(node);
    let left_out =
        text.lines().filter(|line| line.contains("more lines are not shown") && line.contains(ATTACKER));
    left_out.take(2).count() == 2
}

/// Whose the rules are that send to where only the attacker sends, by the word of the switches.
fn owners(node: &OwnNode) -> Vec<String> {
    let Ok(Answer::Flows(switches)) = client::ask(node.socket(), &Question::Flows { datapath: None }) else {
        return Vec::new();
    };
    let flows = switches.into_iter().flat_map(|switch| switch.flows);
    flows.filter(|flow| flow.actions.contains(NOWHERE)).map(|flow| flow.owner).collect()
}

/// The port that the attacker sends to, `misbehaving`'s own, as it stands in a rule.
const NOWHERE: &str = "output:65261";

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
    if !status.app.starts_with(ATTACKER) {
        if status.restarts > 0 && !seen.innocents_restarted.contains(&status.app) {
            seen.innocents_restarted.push(status.app.clone());
        }
        return;
    }
    seen.restarts = seen.restarts.max(status.restarts);
    seen.refusals = app.refusals;
    let endings = seen.endings.entry(status.app.clone()).or_default();
    if let Some(end) = &status.last_end
        && !endings.contains(&end.reason)
    {
        endings.push(end.reason.clone());
    }
}

/// What is to be seen when the attack is over.
fn look_back(node: &OwnNode, network: &Handle, seen: &mut Evidence) {
    seen.sessions_lost = network.counters().connections_lost;
    if let Ok(Answer::Node(view)) = client::ask(node.socket(), &Question::Node) {
        seen.node_answers = true;
        seen.kernel_restarts = view.kernel_restarts;
    }
    // A switch that was given much to do answers when it has done it.
    seen.firewall_rules_whole = wait_for(|| firewall_is_everywhere(node, network));
    seen.owners = owners(node);
    seen.lines_left_out = lines_left_out(node);
    seen.log_bytes = std::fs::metadata(node.log()).map_or(0, |metadata| metadata.len());
    let text = log_of(node);
    seen.began |= text.contains(BEGINS);
    (seen.denied, seen.worked) = came_of_commands(&text);
    let tries =
        text.lines().filter_map(|line| line.split_once("misbehaving: tried ")).map(|(_, tried)| tried);
    seen.tries = tries.map(str::to_owned).collect();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::attack::case::CASES;

    #[test]
    fn every_case_has_a_configuration_that_can_be_read() {
        for case in CASES.iter().filter(|case| !matches!(case.by, By::Package(_))) {
            for goes in [Goes::Once, Goes::On] {
                let text = configuration(case, Path::new("/tmp"), ([127, 0, 0, 1], 1).into(), goes);
                let read = text.parse::<toml::Table>();
                assert!(read.is_ok(), "{}: {read:?}", case.name);
            }
        }
    }
}
