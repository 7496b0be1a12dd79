//! `burnet emulate`: runs a network of emulated switches and hosts against any controller, and checks the expected
//! results.
//!
//! ```text
//!   arguments ──> Plan ──> Emulation ⇄ controllers, over TCP
//!                              └──> progress on standard error, a summary or JSON on standard output, the exit code
//! ```
//!
//! It never starts a controller. On the machine's own network, it opens only TCP connections to the given controllers
//! and to the label service of `--agents`, and, with `--bind`, the given interfaces.

mod agents;
mod arguments;
mod bound;
mod once;
mod pcaps;
mod played;
mod player;
mod proxied;
mod queries;
mod run;
mod summary;

pub use agents::{AgentArgs, AgentPlan, AgentsAtWork};
pub use arguments::{
    ControllerAddress, EmulateArgs, EmulatedFailMode, EmulatedVersions, NotAController, PcapWish,
    SpanningTree,
};
pub use bound::{BoundArgs, BoundInterface};
pub(crate) use once::{PlayedOnce, play_once};
pub use played::PlayedArgs;
pub(crate) use player::Played;
pub use proxied::{PlayedModel, ProxyArgs, TapWish};

use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::Duration;

use emulator::run::Clock;
use emulator::scenario::{NotAScenario, Rehearsal, Scenario};
use emulator::topology::{CustomTopology, FromFile, NotATopology};
use emulator::{Bridge, Emulation, EmulationCounters, SEED_DEFAULT, SwitchOptions, Topology};

use crate::printing::print;
use crate::stage::Stage;
use burnet::cli::CommandError;
use burnet::commands::json;
use burnet::commands::stop_signal::StopSignal;
use node::descriptors;
use pcaps::Files;
use player::{ExpectationResult, Player};
use run::{Run, not_started};
use summary::Summary;

/// The most pings at once. With more, the report alone would take hundreds of megabytes.
const PINGS_MAX: usize = 1_000_000;

/// Refuses pings among too many hosts.
pub(crate) fn check_pings(who: &str, hosts: usize) -> Result<(), CommandError> {
    let pings = hosts.saturating_mul(hosts.saturating_sub(1));
    if pings > PINGS_MAX {
        return Err(CommandError::Usage(format!(
            "{who} among {hosts} hosts would be {pings} pings, and the limit is {PINGS_MAX}: use fewer hosts"
        )));
    }
    Ok(())
}

/// The most controllers. Every switch connects to each of them.
const CONTROLLERS_MAX: usize = 16;

/// The checked arguments.
struct Plan {
    topology: Topology,
    /// Notes for the reader of the topology's file.
    notes: Vec<String>,
    scenario: Option<Scenario>,
    /// The switch on interfaces of this machine, if it replaces a topology.
    bridge: Option<Bridge>,
    spanning_tree: bool,
    /// The agents of servers, if hosts have any.
    agents: Option<AgentPlan>,
    controllers: Vec<SocketAddr>,
    options: SwitchOptions,
    wait: Duration,
    ping_timeout: Duration,
}

impl Plan {
    fn read(args: &EmulateArgs) -> Result<Plan, CommandError> {
        let scenario = scenario(args)?;
        let bridge = args.bound.bridge()?;
        let FromFile { topology, mut notes } = match (&scenario, &bridge) {
            (Some(scenario), _) => {
                FromFile { topology: scenario.topology.clone(), notes: scenario.notes.clone() }
            }
            (None, Some(bridge)) => bound::topology_of(bridge),
            (None, None) => topology(args)?,
        };
        if args.ping_all {
            check_hosts(args, topology.hosts.len())?;
        }
        if args.controllers.len() > CONTROLLERS_MAX {
            return Err(CommandError::Usage(format!(
                "--controller is given {} times, and the limit is {CONTROLLERS_MAX}",
                args.controllers.len()
            )));
        }
        let of_scenario = scenario.as_ref().and_then(|scenario| scenario.versions);
        let versions = of_scenario.unwrap_or(args.version.into());
        let loops = loops_broken_unasked(args, &topology);
        let is_wanted = loops.is_some() || scenario.as_ref().is_some_and(|scenario| scenario.spanning_tree);
        let spanning_tree = match args.spanning_tree {
            SpanningTree::On => true,
            SpanningTree::Off => false,
            SpanningTree::Auto => is_wanted,
        };
        notes.extend(loops);
        notes.extend(args.played.note());
        let profiles =
            args.played.profiles(scenario.as_ref().map(|scenario| &scenario.profiles), &topology)?;
        let options = SwitchOptions {
            versions,
            fail_mode: args.fail_mode.into(),
            profiles,
            slow_motion: args.played.slow_motion,
            seed: args.played.seed.unwrap_or(SEED_DEFAULT),
            ..SwitchOptions::default()
        };
        let seconds = |seconds| Duration::from_secs(u64::from(seconds));
        Ok(Plan {
            agents: args.agents.plan(&topology)?,
            topology,
            notes,
            scenario,
            bridge,
            spanning_tree,
            controllers: controllers(args),
            options,
            wait: seconds(args.wait_s),
            ping_timeout: seconds(args.ping_timeout_s),
        })
    }
}

/// Refuses `--ping-all` with too few hosts, or too many.
fn check_hosts(args: &EmulateArgs, hosts: usize) -> Result<(), CommandError> {
    check_pings("--ping-all", hosts)?;
    if hosts < 2 {
        let why = format!("--ping-all needs two hosts: {} has {hosts} host", args.topo);
        return Err(CommandError::Usage(why));
    }
    Ok(())
}

/// The scenario, if there is one. A seed of the command line overrides its own.
fn scenario(args: &EmulateArgs) -> Result<Option<Scenario>, CommandError> {
    let refused = |error: NotAScenario| CommandError::Usage(error.to_string());
    let mut scenario = args.scenario.as_deref().map(Scenario::read).transpose().map_err(refused)?;
    if let (Some(scenario), Some(seed)) = (&mut scenario, args.played.seed) {
        scenario.seed = seed;
    }
    Ok(scenario)
}

/// The controllers, or the default one.
fn controllers(args: &EmulateArgs) -> Vec<SocketAddr> {
    let given: Vec<SocketAddr> = args.controllers.iter().map(|controller| controller.0).collect();
    if given.is_empty() { vec![ControllerAddress::default().0] } else { given }
}

/// The note for `--ping-all` in a network with loops without a choice of spanning tree. With a controller that only
/// learns addresses, the first broadcast would circulate for ever.
fn loops_broken_unasked(args: &EmulateArgs, topology: &Topology) -> Option<String> {
    let blocked = topology.links_off_tree();
    (args.ping_all && args.spanning_tree == SpanningTree::Auto && blocked > 0).then(|| {
        format!(
            "{} has loops: floods follow a spanning tree, which blocks {blocked} of {} links (--spanning-tree off: for controllers that \
             break loops themselves)",
            args.topo,
            topology.links.len()
        )
    })
}

/// The network: a shape, a file, or a name in a Mininet file.
fn topology(args: &EmulateArgs) -> Result<FromFile, CommandError> {
    let refused = |error: &dyn std::fmt::Display| CommandError::Usage(error.to_string());
    let without_notes = |topology| FromFile { topology, notes: Vec::new() };
    if let Some(file) = &args.custom {
        let custom = CustomTopology { file: file.clone(), name: args.topo.clone() };
        return custom.read().map(without_notes).map_err(|error| refused(&error));
    }
    if Topology::is_file(&args.topo) {
        return Topology::from_file(&args.topo, args.propagation).map_err(|error| refused(&error));
    }
    args.topo.parse().map(without_notes).map_err(|error: NotATopology| refused(&error))
}

/// Carries out `burnet emulate`. The exit code is 0 if the expected results came true, and 1 if not.
pub fn emulate(args: &EmulateArgs) -> Result<ExitCode, CommandError> {
    let stop = StopSignal::listen()?;
    descriptors::take_what_is_allowed();
    let shown = proxied::Shown { json: args.json, validity: args.is_metered(), strict: args.strict };
    if let Some(code) = proxied::play(&args.proxied, &args.played, shown, &controllers(args), &stop)? {
        return Ok(code);
    }
    let asked = Plan::read(args)?;
    let brief = args.json || (args.ping_all && !args.stay);
    let mut stage = if brief { Stage::on_stderr().only_trouble() } else { Stage::on_stdout() };
    if let Some(scenario) = asked.scenario.as_ref().filter(|scenario| scenario.clock == Clock::Virtual) {
        return rehearse(args, &asked, scenario, &stop);
    }
    let files = Files::open(&args.pcaps, &asked.topology)?;
    let started = match &asked.bridge {
        Some(bridge) => Emulation::bind(std::slice::from_ref(bridge), &asked.controllers, &asked.options)
            .map(|(network, observer)| (network, observer, Vec::new())),
        None => Emulation::start_captured(&asked.topology, &asked.controllers, &asked.options, &files.taps),
    };
    let (network, observer, captured) = started.map_err(not_started)?;
    let recorders = files.record(captured);
    if asked.spanning_tree {
        network.keep_spanning_tree();
    }
    let controllers: Vec<String> = asked.controllers.iter().map(SocketAddr::to_string).collect();
    stage.say(&format!(
        "{}: {} switches, {} hosts and {} links are emulated; controller: {}",
        args.name(),
        network.switches(),
        network.hosts(),
        asked.topology.links.len(),
        controllers.join(", "),
    ));
    asked.notes.iter().for_each(|note| stage.say(note));
    if let Some(agents) = &asked.agents {
        stage.say(&format!("{} agents meter and shape its hosts", agents.count()));
    }
    let mut run = Run::new(network, observer, stage, stop);
    let agents = asked.agents.clone().map(|agents| agents.start(run.network.clone())).transpose()?;
    let ended = watch(&mut run, args, &asked);
    drop(agents);
    let verdict = if args.is_metered() { run.verdict() } else { None };
    drop(run);
    let recorded = recorders.finish();
    conclude(args, &ended?.with_pcaps(recorded).with_validity(verdict, args.strict))
}

/// Plays, pings or stays up, as asked, and sums it up.
fn watch(run: &mut Run, args: &EmulateArgs, asked: &Plan) -> Result<Summary, CommandError> {
    let summary = |run: &Run, connected_after: Option<Duration>| {
        let (ran, counters) = (run.stage.elapsed(), run.network.counters());
        let summary = Summary::new(&args.name(), &asked.topology, connected_after, ran, counters);
        summary.with_switches(run.network.switch_counters().unwrap_or_default())
    };
    if let Some(scenario) = &asked.scenario {
        let connected_after = run.connect(asked.wait)?;
        run.stage.say("the scenario begins");
        let Played { judged, queries, .. } = Player::new(scenario).play(run)?;
        return Ok(summary(run, Some(connected_after)).with_queries(&queries).with_expectations(judged));
    }
    if args.ping_all {
        let connected_after = run.connect(asked.wait)?;
        let report = run.ping_all(asked.ping_timeout)?;
        if args.stay {
            run.stage.say(&format!("{} of {} pings came back", report.answered(), report.pairs.len()));
            run.stay_up()?;
        }
        return Ok(summary(run, Some(connected_after)).with_pings(&report));
    }
    let connected_after = run.stay_up()?;
    Ok(summary(run, connected_after))
}

fn conclude(args: &EmulateArgs, summary: &Summary) -> Result<ExitCode, CommandError> {
    print(&if args.json { json(summary)? } else { summary.to_string() })?;
    Ok(if summary.passed { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

/// Plays a scenario in virtual time. It opens no connections and never waits.
fn rehearse(
    args: &EmulateArgs,
    asked: &Plan,
    scenario: &Scenario,
    stop: &StopSignal,
) -> Result<ExitCode, CommandError> {
    if let Some(option) = args.without_effect_in_virtual_time() {
        return Err(CommandError::Usage(format!(
            "a scenario in virtual time has no connections: leave out {option}"
        )));
    }
    emulator::check_this_machine(&asked.topology, &asked.options)
        .map_err(|too_large| CommandError::Usage(too_large.to_string()))?;
    asked.notes.iter().for_each(|note| eprintln!("burnet: {note}"));
    let (spanning_tree, profiles) = (asked.spanning_tree, asked.options.profiles.clone());
    let scenario = Scenario { spanning_tree, profiles, ..scenario.clone() };
    let rehearsal = scenario.rehearse(args.played.slow_motion, || stop.came_within(Duration::ZERO));
    let Some(Rehearsal { verdicts, queries, trouble, counters, took, digest, storms, .. }) = rehearsal else {
        return Err(CommandError::DidNotWork("it was told to stop before the scenario was over".into()));
    };
    if let Some(trouble) = trouble.first() {
        return Err(CommandError::DidNotWork(format!("the scenario could not be played: {trouble}")));
    }
    let summary = Summary::new(&args.name(), &asked.topology, None, took, EmulationCounters::default());
    let summary = summary.with_switches(counters);
    let judged = verdicts.into_iter().map(ExpectationResult::from).collect();
    let summary = summary.with_rehearsal(digest, storms).with_queries(&queries);
    conclude(args, &summary.with_expectations(judged))
}
