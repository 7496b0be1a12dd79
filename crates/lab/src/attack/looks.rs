//! What is visible of a trial's node during an attack: by its operator's socket, and in its log.
//!
//! Each check is repeated until it is true or a very long time is over. It judges nothing.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::case::{By, Case, Must};
use super::process::Process;
use super::stop;
use super::verdict::{ATTACKER, Came, Evidence};
use crate::own_node::OwnNode;
use operator::client;
use operator::contract::{Answer, AppView, FlowsView, Question, SwitchView};

/// How long any wait may take. A busy machine is slow, which must not decide a result.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// How often the state is checked.
const LOOK: Duration = Duration::from_millis(50);

/// Repeats a check until it is true or the patience ends. Returns the last result.
pub fn wait_for(mut come: impl FnMut() -> bool) -> bool {
    let began = Instant::now();
    while !come() {
        if began.elapsed() > PATIENCE || stop::came() {
            return false;
        }
        std::thread::sleep(LOOK);
    }
    true
}

/// A rule of the node or of an innocent app: switch, table, priority, match, actions and owner.
pub type Rule = (u64, u8, u16, String, String, String);

/// The rules that must not change: the firewall's and the kernel's. `None` if not all switches reported them.
pub fn lasting_rules(node: &OwnNode, switches: usize) -> Option<BTreeSet<Rule>> {
    let all = flows(node);
    if all.len() < switches || all.iter().any(|switch| switch.trouble.is_some()) {
        return None;
    }
    let of_switch = |switch: FlowsView| {
        let lasting = switch.flows.into_iter().filter(|flow| LASTING.contains(&flow.owner.as_str()));
        lasting.map(move |flow| {
            (switch.datapath.0, flow.table, flow.priority, flow.matching, flow.actions, flow.owner)
        })
    };
    Some(all.into_iter().flat_map(of_switch).collect())
}

/// Owners whose rules have no reason to change during a trial.
const LASTING: [&str; 3] = ["firewall", "kernel", BYSTANDER];

/// The app with a group, a meter, and a rule that is removed with either.
pub const BYSTANDER: &str = "bystander";

/// Whether each switch of the trial reports a rule of each of these apps.
pub fn rules_are_everywhere(node: &OwnNode, apps: &[&str], switches: usize) -> bool {
    let has_rules =
        |switch: &&FlowsView| apps.iter().all(|app| switch.flows.iter().any(|flow| flow.owner == *app));
    flows(node).iter().filter(has_rules).count() >= switches
}

fn flows(node: &OwnNode) -> Vec<FlowsView> {
    match client::ask(node.socket(), &Question::Flows { datapath: None }) {
        Ok(Answer::Flows(switches)) => switches,
        _ => Vec::new(),
    }
}

/// How many switches are up.
pub fn switches_up(node: &OwnNode) -> usize {
    switches(node).len()
}

fn switches(node: &OwnNode) -> Vec<SwitchView> {
    match client::ask(node.socket(), &Question::Switches) {
        Ok(Answer::Switches(switches)) => switches,
        _ => Vec::new(),
    }
}

/// How many packet-ins this many switches have sent. `None` if one is missing or has no counts.
pub fn sent_up(node: &OwnNode, wanted: usize) -> Option<u64> {
    let all = switches(node);
    let is_whole = all.len() >= wanted && all.iter().all(|switch| switch.trouble.is_none());
    is_whole.then(|| all.iter().map(|switch| switch.packet_ins).sum())
}

/// How often this many switches report their rules until `over`. The requests are sent one after the other, like an
/// operator's.
pub fn answers(node: &OwnNode, wanted: usize, over: &AtomicBool) -> u64 {
    let mut answers = 0;
    while !over.load(Ordering::Relaxed) {
        let is_whole = lasting_rules(node, wanted).is_some();
        answers += u64::from(is_whole && !over.load(Ordering::Relaxed));
        std::thread::sleep(LOOK);
    }
    answers
}

/// The kernel process, if the node reports it.
pub fn kernel(node: &OwnNode) -> Option<Process> {
    match client::ask(node.socket(), &Question::Node) {
        Ok(Answer::Node(view)) => Process::of(view.pid),
        _ => None,
    }
}

/// The processes of the kernel and of an innocent app, as far as they are known.
pub fn others(node: &OwnNode) -> Vec<u32> {
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

/// Whether an attacking app has begun or ended. Some end at once.
pub fn has_begun(case: &Case, node: &OwnNode) -> bool {
    !matches!(case.by, By::App(_)) || says(node, BEGINS) || has_ended(node)
}

/// Whether there are attacking apps and all of them have ended.
pub fn has_ended(node: &OwnNode) -> bool {
    let attackers = attackers(node);
    !attackers.is_empty() && attackers.iter().all(|app| app.status.last_end.is_some())
}

pub fn attackers(node: &OwnNode) -> Vec<AppView> {
    let Ok(Answer::Apps(apps)) = client::ask(node.socket(), &Question::Apps) else { return Vec::new() };
    apps.into_iter().filter(|app| app.status.app.starts_with(ATTACKER)).collect()
}

/// The attacker's log line when it begins.
const BEGINS: &str = "misbehaving: begins";

/// How often an attacker has begun, according to the node's log.
pub fn beginnings(node: &OwnNode) -> usize {
    log_of(node).matches(BEGINS).count()
}

/// Whether the node's log contains this text.
pub fn says(node: &OwnNode, wanted: &str) -> bool {
    log_of(node).contains(wanted)
}

pub fn log_of(node: &OwnNode) -> String {
    let bytes = std::fs::read(node.log()).unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The results in these lines.
pub fn came_of_commands(log: &str) -> Came {
    let mut came = Came::default();
    for line in log.lines() {
        if let Some((_, text)) = line.split_once("misbehaving: tried commands: ") {
            let [denied, worked, reached] = numbers(text);
            came.told += 1;
            came.denied += denied;
            came.worked += worked;
            came.reached += reached;
        } else if let Some((_, text)) = line.split_once("misbehaving: prepared by commands: ") {
            came.denied += numbers(text)[0];
        }
    }
    came
}

/// The first three numbers of a text.
fn numbers(text: &str) -> [u64; 3] {
    let mut found = text.split(|c: char| !c.is_ascii_digit()).filter_map(|it| it.parse::<u64>().ok());
    std::array::from_fn(|_| found.next().unwrap_or(0))
}

/// Whether the required result is visible, if it becomes visible at a certain time.
pub fn has_come(case: &Case, node: &OwnNode) -> bool {
    let is_told = || came_of_commands(&log_of(node)).told > 0;
    match case.must {
        Must::End(_) => has_ended(node),
        Must::BeRefused => came_of_commands(&log_of(node)).denied > 0 && is_told(),
        Must::KeepNoMore(_) => {
            let came = came_of_commands(&log_of(node));
            came.denied > 0 && came.worked > 0
        }
        Must::BeLimited => attackers(node).iter().any(|app| app.refusals > 0) || is_told(),
        Must::BeDenied => has_ended(node) || says(node, "misbehaving: tried "),
        Must::BeCutShort => lines_left_out(node),
        Must::OwnItsRules => !owners(node).is_empty(),
        Must::HoldOff
        | Must::KeepWithin
        | Must::MakeFew(_)
        | Must::SendFewUp { .. }
        | Must::BeAnswered(_) => is_told(),
        Must::KeepOut | Must::HurtNobody | Must::BeCutOff | Must::BeTurnedAway(_) => true,
    }
}

/// Whether the node reports omitted lines of the attacker, both of its output and of its log.
pub fn lines_left_out(node: &OwnNode) -> bool {
    let text = log_of(node);
    let left_out =
        text.lines().filter(|line| line.contains("more lines were dropped") && line.contains(ATTACKER));
    left_out.take(2).count() == 2
}

/// The owners of the rules that send to the attacker's port, as switches report them.
pub fn owners(node: &OwnNode) -> Vec<String> {
    let flows = flows(node).into_iter().flat_map(|switch| switch.flows);
    flows.filter(|flow| flow.actions.contains(NOWHERE)).map(|flow| flow.owner).collect()
}

/// The port that only `misbehaving` sends to, as in a rule's text.
const NOWHERE: &str = "output:65261";

/// The innocent apps.
/// No tenant's controller may end the process of its slice either.
const INNOCENT: [&str; 4] = ["firewall", "learning-switch", BYSTANDER, "slice.tenant"];

/// Watches the apps until `over`: how the attacker ended, and which others ended with it.
pub fn look(socket: &Path, over: &AtomicBool) -> Evidence {
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
        if INNOCENT.contains(&status.app.as_str())
            && status.restarts > 0
            && !seen.innocents_restarted.contains(&status.app)
        {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_attacker_says_of_its_commands_is_added_up() {
        let log = "x misbehaving: prepared by commands: 2 denied, 1 worked, 0 refused by switches\n\
                   y misbehaving: tried commands: 3 denied, 0 worked, 4 refused by switches\n\
                   z firewall: tried commands: 9 denied, 9 worked\n\
                   z misbehaving: tried commands: 1 denied, 5 worked\n";
        assert_eq!(came_of_commands(log), Came { told: 2, denied: 6, worked: 5, reached: 4 });
        assert_eq!(came_of_commands(""), Came::default());
    }
}
