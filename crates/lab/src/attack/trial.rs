//! A trial: a node, a network that it controls, an attacker, and the evidence.
//!
//! ```text
//!   hosts h1 … h4 on three switches ──> node: firewall (h1 to h4 is blocked), learning-switch, and the attacker
//!     ping h1 h2, h2 h3, h3 h4, h4 h2: again and again, and must be answered
//!     ping h1 h4: must not
//!   first without the attack, then with it
//! ```
//!
//! This is the only file of `attack` that acts on a node. It never judges: `verdict` does.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use flow::DatapathId;
use openflow::Version;

use super::case::{By, Case, Must};
use super::combination::Combination;
pub use super::configuration::Goes;
use super::configuration::{
    SIGNAL, apps_folder, apps_with_rules, configuration, is_at_processes, processes_file, waits_for_signal,
};
use super::looks::{self, PATIENCE};
pub use super::looks::{attackers, beginnings, wait_for};
use super::trial_network::{Ping, TrialNetwork};
use super::verdict::Evidence;
use super::{folders, from_a_package, from_a_switch, from_a_tenant, from_the_operator, tenant_words};
use crate::apps;
use crate::own_node::OwnNode;
use burnet::cli::CommandError;
use operator::client;
use operator::contract::{Answer, Question};

/// How long an attack without an end of its own is watched.
const WATCH: Duration = Duration::from_millis(2500);

/// How long one ping may take. It is long, because only whether an answer arrives must decide.
const PING_PATIENCE: Duration = Duration::from_secs(20);

/// Rounds of pings without the attack, and the least number after its result.
const ROUNDS: usize = 2;

/// The time between two rounds. Blocked pings wait until the end, so there must not be too many.
const BETWEEN_ROUNDS: Duration = Duration::from_millis(50);

/// The pairs of hosts that must always reach each other.
const INNOCENTS: [(&str, &str); 4] = [("h1", "h2"), ("h2", "h3"), ("h3", "h4"), ("h4", "h2")];

/// The pair that has never communicated before the end of the attack. Its packets must still reach the learning
/// switch.
const STRANGERS: (&str, &str) = ("h1", "h3");
/// How often this pair tries.
const STRANGERS_TRIES: usize = 3;
const STRANGERS_PATIENCE: Duration = Duration::from_secs(5);

/// The pair that the firewall blocks.
const BLOCKED: (&str, &str) = ("h1", "h4");

/// Whether the attacker attacks, or everything runs without the attack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holds {
    Attack,
    Control,
}

/// Runs one trial.
///
/// # Errors
///
/// It could not run: no node, or no network.
pub fn hold(case: &Case, combination: Combination, holds: Holds) -> Result<Evidence, CommandError> {
    let (listener, address) = server()?;
    let node = start_node(case, address, Goes::Once)?;
    let controller = node.wait_until_it_listens_with(&["firewall", "learning-switch"])?;
    let network = TrialNetwork::start(combination, controller)?;
    let up = wait_for(|| looks::switches_up(&node) >= network.switches())
        && wait_for(|| looks::rules_are_everywhere(&node, apps_with_rules(case), network.switches()));
    if !up {
        let why = "the switches did not connect, or did not get the rules of the other apps";
        return Err(CommandError::DidNotWork(why.to_owned()));
    }
    let mut seen = Evidence { aims: aim(case, &node)?, ..Evidence::default() };
    let lost_before = network.connections_lost();
    seen.lost_before = (0..ROUNDS).flat_map(|_| ping_round(&network).lost).collect();
    let Some(rules) = looks::lasting_rules(&node, network.switches()) else {
        return Err(CommandError::DidNotWork("the switches did not say which rules they have".to_owned()));
    };
    let is_there = |app: &&str| rules.iter().any(|(.., owner)| owner == app);
    if let Some(app) = apps_with_rules(case).iter().find(|app| !is_there(app)) {
        return Err(CommandError::DidNotWork(format!("{app} lost its rules before the attack began")));
    }
    seen.kernel[0] = looks::kernel(&node);
    let blocked =
        watch((case, combination.tenant), &node, &network, (controller, &listener), holds, &mut seen);
    // The slice of a tenant is to connect.
    if !matches!(case.by, By::Tenant(_)) {
        seen.connections_taken = std::iter::from_fn(|| listener.accept().ok()).count();
    }
    look_back(case, &node, &network, holds, &mut seen);
    // A busy switch answers when it has finished its work.
    wait_for(|| {
        let now = looks::lasting_rules(&node, network.switches());
        seen.rules_changed = now.as_ref().map(|now| changes(&rules, now));
        seen.rules_changed.as_ref().is_some_and(Vec::is_empty)
    });
    // Two hosts have met since the last of these pings was sent, so answers had enough time to arrive.
    seen.got_through = blocked.iter().filter(|ping| ping.is_answered()).count();
    (seen.arrived, seen.kernel[1]) = (network.arrived(), looks::kernel(&node));
    seen.sessions_lost = network.connections_lost().saturating_sub(lost_before);
    network.stop();
    Ok(seen)
}

/// The removed and the new rules, as text.
fn changes(
    before: &std::collections::BTreeSet<looks::Rule>,
    now: &std::collections::BTreeSet<looks::Rule>,
) -> Vec<String> {
    let words = |what: &str, rule: &looks::Rule| {
        let (switch, table, priority, matching, actions, owner) = rule;
        format!(
            "s{switch} {what} {owner}'s rule table={table},priority={priority},{matching} actions={actions}"
        )
    };
    let gone = before.difference(now).map(|rule| words("lost", rule));
    gone.chain(now.difference(before).map(|rule| words("got", rule))).collect()
}

/// A server to which an attacker may try to connect.
pub fn server() -> Result<(TcpListener, SocketAddr), CommandError> {
    let listener = TcpListener::bind("127.0.0.1:0").map_err(trouble("no server for the trial"))?;
    listener.set_nonblocking(true).map_err(trouble("no server for the trial"))?;
    let address = listener.local_addr().map_err(trouble("no server for the trial"))?;
    Ok((listener, address))
}

/// Starts a node with the innocent apps and the attacker.
pub fn start_node(case: &Case, server: SocketAddr, goes: Goes) -> Result<OwnNode, CommandError> {
    let mut prepared = Ok(());
    let node = OwnNode::start_configured(|folder| {
        prepared = match case.by {
            By::Package(attack) => from_a_package::prepare(attack, folder),
            _ => apps::place(&apps_folder(folder)).and_then(|()| folders::prepare(case, folder)),
        };
        configuration(case, folder, server, goes)
    })?;
    prepared.map_err(trouble("no files for the trial"))?;
    Ok(node)
}

fn trouble(what: &'static str) -> impl Fn(std::io::Error) -> CommandError {
    move |error| CommandError::DidNotWork(format!("{what}: {error}"))
}

/// Gives an attacker of processes the numbers of the kernel's and an innocent app's. Returns how its log lines name
/// them.
pub fn aim(case: &Case, node: &OwnNode) -> Result<Vec<String>, CommandError> {
    if !is_at_processes(case) {
        return Ok(Vec::new());
    }
    let mut pids = Vec::new();
    // The kernel knows a running app before the operator's socket knows its process.
    if !wait_for(|| {
        pids = looks::others(node);
        pids.len() >= 2
    }) {
        return Err(CommandError::DidNotWork("the node does not say which processes are its own".to_owned()));
    }
    let text = pids.iter().map(|pid| format!("{pid}\n")).collect::<String>();
    std::fs::write(processes_file(node.folder()), text)
        .map_err(trouble("the attacker cannot be told of processes"))?;
    Ok(pids.iter().map(ToString::to_string).collect())
}

/// Tells a waiting attacker to begin, by a connection with the datapath id of [`SIGNAL`]. The caller keeps it open
/// until then.
fn signal(controller: SocketAddr) -> std::io::Result<TcpStream> {
    let mut stream = TcpStream::connect(controller)?;
    let hello = from_a_switch::hello();
    stream.write_all(&[hello, from_a_switch::features(Version::V1_0, DatapathId(SIGNAL))].concat())?;
    stream.set_nonblocking(true)?;
    Ok(stream)
}

/// Answers the request for flow entries that precedes the switch-up event: there are none. An incomplete request is
/// answered later or never.
fn answer(stream: &mut TcpStream) -> std::io::Result<()> {
    let mut room = vec![0; 64 << 10];
    let count = stream.read(&mut room)?;
    stream.write_all(&from_a_switch::answers(&room[..count]))
}

/// Pings, attacks and checks at the same time. Returns the pings that must never be answered.
fn watch(
    (case, tenant): (&Case, Version),
    node: &OwnNode,
    network: &TrialNetwork,
    (controller, listener): (SocketAddr, &TcpListener),
    holds: Holds,
    seen: &mut Evidence,
) -> Vec<Ping> {
    let (over, rounds) = (AtomicBool::new(false), AtomicUsize::new(0));
    let (attacks, asks) = (holds == Holds::Attack, matches!(case.must, Must::BeAnswered(_)));
    let (began, up_before) = (Instant::now(), looks::sent_up(node, network.switches()));
    std::thread::scope(|scope| {
        let answers = scope.spawn(|| if asks { looks::answers(node, network.switches(), &over) } else { 0 });
        let pings = scope.spawn(|| ping(network, &over, &rounds));
        let apps = scope.spawn(|| looks::look(node.socket(), &over));
        let act = scope.spawn(|| {
            if attacks { act((case, tenant), node, controller, listener) } else { Acted::default() }
        });
        if attacks && waits_for_signal(case) {
            let mut told = signal(controller);
            wait_for(|| {
                // Most of the time there are no bytes to read.
                let _ = told.as_mut().map(answer);
                looks::has_begun(case, node)
            });
        }
        wait_for(|| !attacks || looks::has_begun(case, node));
        if must_be_watched(case) {
            std::thread::sleep(WATCH);
        }
        wait_for(|| !attacks || looks::has_come(case, node) && folders::has_come(case, node));
        let acted = act.join().unwrap_or_default();
        let come_at = rounds.load(Ordering::Relaxed);
        wait_for(|| rounds.load(Ordering::Relaxed) > come_at + ROUNDS);
        let up_now = looks::sent_up(node, network.switches());
        over.store(true, Ordering::Relaxed);
        let pings = pings.join().unwrap_or_default();
        let before = std::mem::take(seen);
        *seen = apps.join().unwrap_or_default();
        (seen.aims, seen.lost_before, seen.kernel) = (before.aims, before.lost_before, before.kernel);
        (seen.answers, seen.watched) = (answers.join().unwrap_or_default(), began.elapsed());
        seen.sent_up = up_now.zip(up_before).map(|(now, before)| now.saturating_sub(before));
        (seen.pings, seen.lost) = (pings.sent, pings.lost);
        (seen.began, seen.cut_off, seen.said, seen.not_tried) =
            (acted.began, acted.cut_off, acted.said, acted.not_tried);
        pings.blocked
    })
}

/// Whether to watch on after the required result, or because it has no certain time.
fn must_be_watched(case: &Case) -> bool {
    let starts_again = matches!(case.by, By::Storm(_)) || case.name == "restart-storm";
    match case.must {
        Must::HurtNobody | Must::BeLimited | Must::OwnItsRules | Must::SendFewUp { .. } => true,
        Must::End(_) => starts_again,
        _ => false,
    }
}

/// The result of an attack that is not an app's.
#[derive(Default)]
struct Acted {
    began: bool,
    cut_off: bool,
    said: String,
    not_tried: Option<String>,
}

fn act(
    (case, tenant): (&Case, Version),
    node: &OwnNode,
    controller: SocketAddr,
    listener: &TcpListener,
) -> Acted {
    let acted = match case.by {
        By::Switch(attack) => from_a_switch::act(attack, controller, WATCH).map(|cut_off| Acted {
            began: true,
            cut_off,
            ..Acted::default()
        }),
        By::Package(attack) => from_a_package::act(attack, node.folder(), node.socket()).map(|said| Acted {
            began: true,
            said,
            ..Acted::default()
        }),
        By::Operator(attack) => from_the_operator::act(attack, node.socket(), WATCH)
            .map(|()| Acted { began: true, ..Acted::default() }),
        By::Tenant(attack) => from_a_tenant::act(attack, (tenant, &tenant_words::TREE), listener, WATCH)
            .map(|tried| Acted { began: true, cut_off: tried.cut_off, said: tried.said, not_tried: None }),
        By::App(_) | By::Ring | By::Storm(_) => Ok(Acted::default()),
    };
    acted.unwrap_or_else(|error| Acted { not_tried: Some(error.to_string()), ..Acted::default() })
}

/// The results of pings.
#[derive(Default)]
struct Pings {
    sent: usize,
    lost: Vec<String>,
    blocked: Vec<Ping>,
}

/// Pings in rounds until `over`.
fn ping(network: &TrialNetwork, over: &AtomicBool, rounds: &AtomicUsize) -> Pings {
    let mut all = Pings::default();
    while !over.load(Ordering::Relaxed) {
        let round = ping_round(network);
        all.sent += round.sent;
        all.lost.extend(round.lost);
        all.blocked.extend(round.blocked);
        rounds.fetch_add(1, Ordering::Relaxed);
        std::thread::sleep(BETWEEN_ROUNDS);
    }
    all
}

/// The number of pings, the lost ones, and a blocked one that must not be answered.
fn ping_round(network: &TrialNetwork) -> Pings {
    let blocked = vec![network.begin_ping(BLOCKED.0, BLOCKED.1, PING_PATIENCE)];
    let begun = INNOCENTS.map(|(from, to)| (from, to, network.begin_ping(from, to, PING_PATIENCE)));
    let sent = begun.len();
    let lost = begun
        .into_iter()
        .filter_map(|(from, to, ping)| (!ping.answered()).then(|| format!("{from} to {to}")));
    Pings { sent, lost: lost.collect(), blocked }
}

/// Collects the evidence after the attack.
fn look_back(case: &Case, node: &OwnNode, network: &TrialNetwork, holds: Holds, seen: &mut Evidence) {
    let (from, to) = STRANGERS;
    seen.strangers_met =
        (0..STRANGERS_TRIES).any(|_| network.begin_ping(from, to, STRANGERS_PATIENCE).answered());
    seen.node_answers = wait_for(|| match client::ask(node.socket(), &Question::Node) {
        Ok(Answer::Node(view)) => {
            seen.kernel_restarts = view.kernel_restarts;
            true
        }
        _ => false,
    });
    seen.owners = looks::owners(node);
    seen.lines_left_out = looks::lines_left_out(node);
    seen.log_bytes = std::fs::metadata(node.log()).map_or(0, |metadata| metadata.len());
    seen.came = looks::came_of_commands(&looks::log_of(node));
    seen.began |= looks::beginnings(node) > 0 || holds == Holds::Control;
    let text = looks::log_of(node);
    let tries =
        text.lines().filter_map(|line| line.split_once("misbehaving: tried ")).map(|(_, tried)| tried);
    seen.tries = tries.map(str::to_owned).collect();
    folders::look_back(case, &text, seen);
    debug_assert!(PATIENCE > PING_PATIENCE, "a round of pings ends before anything else is given up");
}
