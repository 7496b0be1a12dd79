//! All attacks of tenants against one node, one after the other. Each has a slice of its own, which comes with it and goes with it.
//!
//! ```text
//!   apps and slices of neighbours ─┐                      ┌─ Witness: what is in the tables of the switches, past the node
//!   for each case: slice, words ───┼─> node ⇄ switches ───┼─ hosts of neighbours: what comes there
//!   pings of neighbours ───────────┘                      └─ Outcome: what is not as it was
//! ```
//!
//! In: attacks, and which versions are spoken. Out: what came of each. A case leaves the switches as it found them, or that is its fault.

use std::collections::BTreeSet;
use std::net::{SocketAddr, TcpListener};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use emulator::run::{Captured, Tap};
use emulator::topology::{Endpoint, HostPlan};
use emulator::{Emulation, Handle, SwitchOptions, Topology, Versions};
use openflow::Version;
use serde::Serialize;

use super::AttackArgs;
use super::case::{By, Case, Must};
use super::combination::{self, Combination, SwitchKind};
use super::from_a_tenant::{self, Tried};
use super::looks::{self, wait_for};
use super::switch_tables::{Tables, Witness};
use super::tenant_faults::{Fault, Pulse, is_tried_again};
use super::tenant_neighbour::Neighbour;
use super::tenant_words::{self, Ground, TenantAttack};
use super::trial::server;
use crate::apps;
use crate::own_node::OwnNode;
use burnet::cli::CommandError;
use flow::MacAddr;
use operator::client;
use operator::contract::{Answer, Question};

/// Three switches in a line, with three hosts each: of nobody, of a neighbour, and of the attacker. No app sends packets: it would do so to ports of slices too.
const TOPOLOGY: &str = "linear,3,3";
const SWITCHES: usize = 3;

/// What the attacker sees of it. Its flowspace has no port of the neighbour's hosts.
const LINE: Ground = Ground {
    ports: "\"s1:1\", \"s1:3\", \"s1:4\", \"s2:1\", \"s2:3\", \"s2:4\", \"s2:5\", \"s3:1\", \"s3:3\", \"s3:4\"",
    link: "s1:4-s2:4",
    hosts: ["s1:3", "s2:3"],
    foreign: &[77, 2],
};

/// How long an attack without an end of its own goes on.
const FLOODS: Duration = Duration::from_millis(700);
const WAITS: Duration = Duration::from_millis(100);

/// The pairs of the neighbour's hosts, which must always reach each other.
const PAIRS: [(&str, &str); 2] = [("h2s1", "h2s2"), ("h2s3", "h2s1")];

/// How long a ping may take. It is long, because only whether an answer arrives must decide.
const PING_PATIENCE: Duration = Duration::from_secs(20);

/// How many attacks are tried a second time. On a machine that stands still for seconds, controllers seem to be silent and lose their sessions. Only a fault
/// that this explains is tried again.
const AGAIN_MAX: usize = 3;

/// What a node says if it has no answer of its monitor in time.
const NOT_READ_IN_TIME: &str = "the configuration was not read within";

/// The most frames that are kept as evidence.
const STRANGE_MAX: usize = 8;

/// What came of an attack.
#[derive(Clone, Debug, Serialize)]
struct Outcome {
    /// Its name.
    case: &'static str,
    /// What the switches spoke, and the attacker.
    openflow: [String; 2],
    /// What the attacker was told.
    said: String,
    /// What is not as it must be.
    faults: Vec<String>,
    /// Why it was tried again: what was late or lost at the first time, on a machine that did not run this program for so long.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    first_try: Vec<String>,
    /// The longest time in milliseconds for which this program did not run.
    longest_pause_ms: u64,
    /// How long it took.
    seconds: f64,
}

/// Tries these attacks, and prints what came of each. Attacks that are not by tenants are left out.
///
/// # Errors
/// There is no node or no network, or Open vSwitch was asked for.
pub fn together(wanted: &[&'static Case], args: &AttackArgs) -> Result<ExitCode, CommandError> {
    if args.switch != SwitchKind::Emulated {
        return Err(CommandError::Usage("--together: only emulated switches are attacked so".to_owned()));
    }
    let mut all = Vec::new();
    for combination in Combination::asked(args.switch, args.openflow, args.tenant_openflow) {
        let of_tenant = |(case, _): &(&'static Case, Combination)| match case.by {
            By::Tenant(attack) => Some((*case, attack)),
            _ => None,
        };
        let pairs: Vec<(&'static Case, Combination)> = combination::pairs(wanted, &[combination]);
        let cases: Vec<_> = pairs.iter().filter_map(of_tenant).collect();
        if cases.is_empty() {
            continue;
        }
        let (mut series, mut again) = (Series::start(combination)?, 0);
        for (case, attack) in cases {
            let (mut outcome, mut says_nothing) = series.outcome(case, attack);
            if says_nothing && again < AGAIN_MAX {
                again += 1;
                eprintln!(
                    "{}\n       it is tried again on a new node: time alone explains it; this program did not run for {} ms",
                    line(&outcome),
                    outcome.longest_pause_ms
                );
                series = Series::start(combination)?;
                let first_try = outcome.faults;
                (outcome, says_nothing) = series.outcome(case, attack);
                outcome.first_try = first_try;
            }
            if !outcome.faults.is_empty() {
                // What it has left would be taken for the fault of those behind it.
                series = Series::start(combination)?;
            }
            if says_nothing {
                eprintln!("{}: only late or lost, and not tried again", outcome.case);
            }
            if !args.json {
                println!("{}", line(&outcome));
            }
            all.push(outcome);
        }
    }
    let failed = all.iter().filter(|outcome| !outcome.faults.is_empty()).count();
    match args.json {
        true => print!("{}", burnet::commands::json(&all)?),
        false => println!("{} of {} attacks held", all.len() - failed, all.len()),
    }
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

fn line(outcome: &Outcome) -> String {
    let Outcome { case, openflow: [switches, tenant], said, faults, seconds, .. } = outcome;
    let held = if faults.is_empty() { "held" } else { "FAILED" };
    let mut text = format!("{held:6} {case} ({tenant} on {switches}, {seconds:.1} s)");
    if !said.is_empty() {
        text += ": ";
        text += said;
    }
    faults.iter().for_each(|fault| text += &format!("\n       {fault}"));
    text
}

fn trouble(what: &'static str) -> impl Fn(std::io::Error) -> CommandError {
    move |error| CommandError::DidNotWork(format!("{what}: {error}"))
}

/// The node, the network, and what was there before the first attack.
struct Series {
    combination: Combination,
    node: OwnNode,
    network: Handle,
    witness: Witness,
    guests: Arc<Guests>,
    listener: TcpListener,
    address: SocketAddr,
    /// The configuration without an attacker.
    config: String,
    before: Tables,
    /// Rules that no packet of the neighbours uses.
    still: BTreeSet<String>,
    tried: usize,
    pulse: Pulse,
    _neighbours: [Neighbour; 2],
}

impl Series {
    fn start(combination: Combination) -> Result<Series, CommandError> {
        let version = combination.version;
        let neighbour = |floods| Neighbour::start(version, floods).map_err(trouble("no neighbour"));
        let neighbours = [neighbour(true)?, neighbour(false)?];
        let mut config = String::new();
        let mut placed = Ok(());
        let node = OwnNode::start_configured(|folder| {
            let folder = folder.join("apps");
            placed = apps::place(&folder);
            config = configuration(version, &neighbours, &apps::table(&folder, looks::BYSTANDER));
            config.clone()
        })?;
        placed.map_err(trouble("no files for the node"))?;
        let controller = node.wait_until_it_listens_with(&["firewall"])?;
        let (past, past_address) = server()?;
        let (listener, address) = server()?;
        let (network, captured) = network(version, [controller, past_address])?;
        let guests = Guests::listen(captured)?;
        let witness = Witness::accept(&past, version, SWITCHES).map_err(trouble("no witness"))?;
        let ready = wait_for(|| neighbours.iter().all(|neighbour| neighbour.ready() >= SWITCHES));
        if !ready || !wait_for(|| looks::rules_are_everywhere(&node, &["firewall"], SWITCHES)) {
            let why = "the neighbours did not get their rules";
            return Err(CommandError::DidNotWork(why.to_owned()));
        }
        let mut series = Series {
            combination,
            node,
            network,
            witness,
            guests,
            listener,
            address,
            config,
            before: Tables::default(),
            still: BTreeSet::new(),
            tried: 0,
            pulse: Pulse::begin(),
            _neighbours: neighbours,
        };
        series.look_before()?;
        Ok(series)
    }

    /// Notes what is in the tables, and which rules the pings of the neighbours do not use.
    fn look_before(&mut self) -> Result<(), CommandError> {
        let lost =
            || trouble("without an attack")(std::io::Error::other("neighbours do not reach each other"));
        wait_for(|| self.ping_all().is_empty()).then_some(()).ok_or_else(lost)?;
        let mut first = self.tables().map_err(CommandError::DidNotWork)?;
        // Rules may be on their way.
        wait_for(|| {
            let next = self.tables().unwrap_or_default();
            std::mem::replace(&mut first, next.clone()).lasting == next.lasting
        });
        self.ping_all();
        self.before = self.tables().map_err(CommandError::DidNotWork)?;
        let is_still = |(rule, used): &(&String, &u64)| first.used.get(*rule) == Some(*used);
        self.still = self.before.used.iter().filter(is_still).map(|(rule, _)| rule.clone()).collect();
        Ok(())
    }

    fn tables(&mut self) -> Result<Tables, String> {
        self.witness.tables().map_err(|error| format!("a switch does not say what it has: {error}"))
    }

    /// One attack, and whether it says nothing of the node.
    fn outcome(&mut self, case: &'static Case, attack: TenantAttack) -> (Outcome, bool) {
        self.pulse.take();
        let (began, name) = (Instant::now(), format!("tenant-{}", self.tried));
        self.tried += 1;
        let lost_before = self.network.counters().connections_lost;
        let mut faults = Vec::new();
        while self.listener.accept().is_ok() {}
        let section = tenant_words::section(&name, attack, self.address, &LINE);
        let came = self.reload(&section).and_then(|()| {
            let (lost, tried) = self.attack(case, attack);
            faults.extend(lost);
            tried.map_err(|error| Fault::Late(format!("it could not be tried: {error}")))
        });
        let said = match came {
            Ok(tried) => {
                faults.extend(not_as_it_must(case.must, &tried));
                tried.said
            }
            Err(why) => {
                faults.push(why);
                String::new()
            }
        };
        faults.extend(self.changes(false));
        faults.extend(self.reload("").err());
        if !wait_for(|| self.changes(true).is_empty()) {
            faults.extend(self.changes(true));
        }
        faults.extend(self.guests.take().into_iter().map(Fault::Verdict));
        if self.network.counters().connections_lost > lost_before {
            faults.push(Fault::Lost("a switch lost its session".to_owned()));
        }
        faults.extend(self.restarts(&name));
        let openflow = [self.combination.version, self.combination.tenant].map(|version| version.to_string());
        let pause = self.pulse.take();
        let outcome = Outcome {
            case: case.name,
            openflow,
            said,
            faults: faults.iter().map(ToString::to_string).collect(),
            first_try: Vec::new(),
            longest_pause_ms: u64::try_from(pause.as_millis()).unwrap_or(u64::MAX),
            seconds: began.elapsed().as_secs_f64(),
        };
        (outcome, is_tried_again(&faults, pause))
    }

    /// The attack, and pings of the neighbours meanwhile: those that were lost, and what came of it.
    fn attack(&self, case: &Case, attack: TenantAttack) -> (Vec<Fault>, std::io::Result<Tried>) {
        let floods = matches!(
            tenant_words::words(attack, self.combination.tenant, &LINE),
            tenant_words::Words::Flood(_) | tenant_words::Words::FloodUnread(_) | tenant_words::Words::Hangup
        );
        let time = if floods && !matches!(case.must, Must::BeTurnedAway(_)) { FLOODS } else { WAITS };
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let pings = scope.spawn(|| {
                let mut lost = Vec::new();
                while !over.load(Ordering::Relaxed) {
                    lost.extend(self.ping_all().into_iter().map(Fault::Lost));
                }
                lost
            });
            let tried = from_a_tenant::act(attack, (self.combination.tenant, &LINE), &self.listener, time);
            over.store(true, Ordering::Relaxed);
            (pings.join().unwrap_or_default(), tried)
        })
    }

    /// Each pair pings once. Those that get no answer.
    fn ping_all(&self) -> Vec<String> {
        let begun = PAIRS.map(|(from, to)| (from, to, self.network.begin_ping(from, to, PING_PATIENCE)));
        let is_lost = |(from, to, ping): (&str, &str, Result<std::sync::mpsc::Receiver<_>, _>)| {
            let report: Option<emulator::PingReport> = ping.ok().and_then(|ping| ping.recv().ok());
            let is_answered = report.is_some_and(|report| report.is_complete());
            (!is_answered).then(|| format!("{from} does not reach {to}"))
        };
        begun.into_iter().filter_map(is_lost).collect()
    }

    /// The node reads its configuration again, with the slice of an attacker or without.
    fn reload(&self, section: &str) -> Result<(), Fault> {
        let file = self.node.folder().join("burnet.toml");
        std::fs::write(file, self.config.clone() + section)
            .map_err(|error| Fault::Verdict(error.to_string()))?;
        match client::ask(self.node.socket(), &Question::Reload { app: None, slices: None }) {
            Ok(Answer::Reloaded(view)) if view.left.is_empty() => {
                let stays = view.done.iter().find(|line| line.contains("its rules stay"));
                stays.map_or(Ok(()), |line| Err(Fault::Verdict(line.clone())))
            }
            other => {
                let why = format!("the node does not take its configuration: {other:?}");
                let is_late = why.contains(NOT_READ_IN_TIME);
                Err(if is_late { Fault::Late(why) } else { Fault::Verdict(why) })
            }
        }
    }

    /// What others have lost, and which of their rules were used. `is_gone`: also what the attacker has left behind.
    fn changes(&mut self, is_gone: bool) -> Vec<Fault> {
        let now = match self.tables() {
            Ok(now) => now,
            Err(why) => return vec![Fault::Late(why)],
        };
        let mut changes: Vec<String> =
            self.before.lasting.difference(&now.lasting).map(|what| format!("lost: {what}")).collect();
        let is_used = |rule: &&String| now.used.get(*rule) > self.before.used.get(*rule);
        changes.extend(self.still.iter().filter(is_used).map(|rule| format!("used: {rule}")));
        if is_gone {
            changes.extend(now.lasting.difference(&self.before.lasting).map(|what| format!("left: {what}")));
        }
        changes.into_iter().map(Fault::Verdict).collect()
    }

    /// Processes that ended.
    fn restarts(&self, attacker: &str) -> Vec<Fault> {
        let mut ended = Vec::new();
        match client::ask(self.node.socket(), &Question::Node) {
            Ok(Answer::Node(view)) if view.kernel_restarts == 0 => {}
            other => ended.push(format!("the kernel: {other:?}")),
        }
        if let Ok(Answer::Apps(apps)) = client::ask(self.node.socket(), &Question::Apps) {
            let has_ended = apps.iter().filter(|app| app.status.restarts > 0);
            ended.extend(
                has_ended.map(|app| format!("{} was restarted: {:?}", app.status.app, app.status.last_end)),
            );
        }
        let panicked = looks::says(&self.node, "panicked");
        ended.extend(panicked.then(|| format!("a process panicked while {attacker} was there")));
        ended.into_iter().map(Fault::Verdict).collect()
    }
}

/// What the attacker was told, and must not have been.
///
/// A session that answers has had the time to refuse what it took.
fn not_as_it_must(must: Must, tried: &Tried) -> Option<Fault> {
    match must {
        Must::BeTurnedAway(words) if !tried.said.starts_with(words) => {
            let why = format!("not {words}: {}", tried.said);
            Some(if tried.is_silent { Fault::Late(why) } else { Fault::Verdict(why) })
        }
        Must::BeCutOff if !tried.cut_off => Some(Fault::Lost("its sessions were not closed".to_owned())),
        _ => None,
    }
}

/// The apps and the slices of the neighbours.
fn configuration(version: Version, [floods, quiet]: &[Neighbour; 2], bystander: &str) -> String {
    let bystander = if version == Version::V1_0 { "" } else { bystander };
    format!(
        "[app.firewall]\n[app.firewall.settings]\nblock = [\"ip,nw_src=10.0.0.1,nw_dst=10.0.0.4\"]\n{bystander}\
         [slice.neighbour]\ncontrollers = [\"{}\"]\nisolation = \"vlan\"\ntag = 20\n\
         own_ports = [\"s1:2\", \"s2:2\", \"s3:2\"]\nlinks = [\"s1:4-s2:4\", \"s2:5-s3:4\"]\n\
         [slice.quiet]\ncontrollers = [\"{}\"]\nisolation = \"vlan\"\ntag = 30\nlinks = [\"s1:4-s2:4\", \"s2:5-s3:4\"]\n",
        floods.address, quiet.address
    )
}

/// The network, and taps at the hosts of others.
fn network(
    version: Version,
    controllers: [SocketAddr; 2],
) -> Result<(Handle, Vec<(Guest, Captured)>), CommandError> {
    let wrong = |error: &dyn std::fmt::Display| CommandError::DidNotWork(format!("no network: {error}"));
    let topology: Topology = TOPOLOGY.parse().map_err(|error| wrong(&error))?;
    let versions = if version == Version::V1_0 { Versions::Only10 } else { Versions::Only13 };
    let options = SwitchOptions { versions, ..SwitchOptions::default() };
    let of_others = |(_, host): &(usize, &HostPlan)| !host.name.starts_with("h3");
    let hosts: Vec<(usize, &HostPlan)> = topology.hosts.iter().enumerate().filter(of_others).collect();
    let taps: Vec<Tap> =
        hosts.iter().map(|(index, _)| Tap::Arrivals(Endpoint::Host { index: *index })).collect();
    let mac_of = |(_, host): &(usize, &HostPlan)| Guest {
        name: host.name.clone(),
        is_of_neighbour: host.name.starts_with("h2"),
        others: topology
            .hosts
            .iter()
            .filter(|it| it.name.get(..2) == host.name.get(..2))
            .map(|it| it.mac)
            .collect(),
    };
    let guests: Vec<Guest> = hosts.iter().map(mac_of).collect();
    let started = Emulation::start_captured(&topology, &controllers, &options, &taps);
    let (network, _, captured) = started.map_err(|error| wrong(&error))?;
    Ok((network, guests.into_iter().zip(captured).collect()))
}

/// A host that is not the attacker's.
struct Guest {
    name: String,
    is_of_neighbour: bool,
    /// Who may send to it.
    others: Vec<MacAddr>,
}

impl Guest {
    /// Whether the frame may come to it: ARP and IPv4 of its own kind, and of an attacker's flowspace what that owns.
    fn may_get(&self, frame: &[u8]) -> bool {
        let source: Option<[u8; 6]> = frame.get(6..12).and_then(|source| source.try_into().ok());
        let kind = frame.get(12..14);
        let is_of_flowspace = source == Some([2, 0, 0, 0, 0, 0xef]) && kind == Some(&[0x88, 0xb5]);
        let is_of_own = source.is_some_and(|source| self.others.contains(&MacAddr(source)))
            && matches!(kind, Some([0x08, 0x00 | 0x06]));
        is_of_own || !self.is_of_neighbour && is_of_flowspace
    }
}

/// What came to hosts of others, and must not have.
#[derive(Default)]
struct Guests(Mutex<Vec<String>>);

impl Guests {
    fn listen(taps: Vec<(Guest, Captured)>) -> Result<Arc<Guests>, CommandError> {
        let guests = Arc::new(Guests::default());
        for (guest, tap) in taps {
            let all = guests.clone();
            let listen = move || {
                while let Some(frame) = next(&tap) {
                    if !guest.may_get(&frame) {
                        all.note(&guest.name, &frame);
                    }
                }
            };
            let started = std::thread::Builder::new().name("tap".into()).spawn(listen);
            started.map_err(trouble("no thread for a host"))?;
        }
        Ok(guests)
    }

    fn note(&self, host: &str, frame: &[u8]) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() < STRANGE_MAX {
            let shown: String = frame.iter().take(40).map(|byte| format!("{byte:02x}")).collect();
            all.push(format!("{host} got {shown}"));
        }
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The next frame. None: the network has ended.
fn next(tap: &Captured) -> Option<Vec<u8>> {
    loop {
        match tap.next_within(Duration::from_secs(1)) {
            Ok((_, frame)) => return Some(frame),
            Err(std::sync::mpsc::RecvTimeoutError::Timeout) => {}
            Err(std::sync::mpsc::RecvTimeoutError::Disconnected) => return None,
        }
    }
}
