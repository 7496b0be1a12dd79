//! `burnet emulate`: runs a network of emulated switches and hosts against any controller, and checks the expected
//! results.
//!
//! ```text
//!   arguments ──> Asked ──> Emulation ⇄ controllers, over TCP
//!                              └──> progress on standard error, a summary or JSON on standard output, the exit code
//! ```
//!
//! It never starts a controller. On the machine's own network, it opens only TCP connections to the given controllers
//! and, with `--bind`, the given interfaces.

mod arguments;
mod bound;
mod pcaps;
mod player;
mod summary;

pub use arguments::{
    ControllerAddress, EmulateArgs, EmulatedFailMode, EmulatedVersions, NotAController, PcapWish,
    SpanningTree,
};
pub use bound::{BoundArgs, BoundInterface};

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

use emulator::run::Clock;
use emulator::scenario::{NotAScenario, Rehearsal, Scenario};
use emulator::topology::{CustomTopology, FromFile, NotATopology};
use emulator::{Bridge, Emulation, EmulationCounters, Event, Handle, Observer, SwitchOptions, Topology};
use flow::DatapathId;

use crate::stage::Stage;
use burnet::cli::CommandError;
use burnet::commands::json;
use burnet::commands::stop_signal::StopSignal;
use node::descriptors;
use pcaps::Files;
use player::{Judged, Player};
use summary::Summary;

/// The most pings at once. With more, the report alone would take hundreds of megabytes.
const PINGS_MAX: usize = 1_000_000;

/// Refuses pings among too many hosts.
pub(crate) fn check_pings(who: &str, hosts: usize) -> Result<(), CommandError> {
    let pings = hosts.saturating_mul(hosts.saturating_sub(1));
    if pings > PINGS_MAX {
        return Err(CommandError::Usage(format!(
            "{who} among {hosts} hosts would be {pings} pings, and {PINGS_MAX} are the most: take fewer hosts"
        )));
    }
    Ok(())
}

/// The most controllers. Every switch connects to each of them.
const CONTROLLERS_MAX: usize = 16;

/// The time between two lines of progress.
const PROGRESS: Duration = Duration::from_secs(1);

/// How long it waits for an event before it checks the clock and signals again.
const LOOK: Duration = Duration::from_millis(20);

/// The checked arguments.
struct Asked {
    topology: Topology,
    /// Notes for the reader of the topology's file.
    notes: Vec<String>,
    scenario: Option<Scenario>,
    /// The switch on interfaces of this machine, if it replaces a topology.
    bridge: Option<Bridge>,
    spanning_tree: bool,
    controllers: Vec<SocketAddr>,
    options: SwitchOptions,
    wait: Duration,
    ping_timeout: Duration,
}

impl Asked {
    fn read(args: &EmulateArgs) -> Result<Asked, CommandError> {
        let refused = |error: NotAScenario| CommandError::Usage(error.to_string());
        let scenario = args.scenario.as_deref().map(Scenario::read).transpose().map_err(refused)?;
        let bridge = args.bound.bridge()?;
        let FromFile { topology, mut notes } = match (&scenario, &bridge) {
            (Some(scenario), _) => {
                FromFile { topology: scenario.topology.clone(), notes: scenario.notes.clone() }
            }
            (None, Some(bridge)) => bound::topology_of(bridge),
            (None, None) => topology(args)?,
        };
        let hosts = topology.hosts.len();
        if args.ping_all {
            check_pings("--ping-all", hosts)?;
        }
        if args.ping_all && hosts < 2 {
            return Err(CommandError::Usage(format!(
                "--ping-all has nobody to ping: {} has {hosts} host",
                args.topo
            )));
        }
        if args.controllers.len() > CONTROLLERS_MAX {
            return Err(CommandError::Usage(format!(
                "--controller is given {} times, and {CONTROLLERS_MAX} are the most",
                args.controllers.len()
            )));
        }
        let versions =
            scenario.as_ref().and_then(|scenario| scenario.versions).unwrap_or(args.version.into());
        let loops = loops_broken_unasked(args, &topology);
        let spanning_tree = match args.spanning_tree {
            SpanningTree::On => true,
            SpanningTree::Off => false,
            SpanningTree::Auto => {
                loops.is_some() || scenario.as_ref().is_some_and(|scenario| scenario.spanning_tree)
            }
        };
        notes.extend(loops);
        let fail_mode = args.fail_mode.into();
        let options = SwitchOptions { versions, fail_mode, ..SwitchOptions::default() };
        let seconds = |seconds| Duration::from_secs(u64::from(seconds));
        let mut controllers: Vec<SocketAddr> =
            args.controllers.iter().map(|controller| controller.0).collect();
        if controllers.is_empty() {
            controllers.push(ControllerAddress::default().0);
        }
        Ok(Asked {
            topology,
            notes,
            scenario,
            bridge,
            spanning_tree,
            controllers,
            options,
            wait: seconds(args.wait_s),
            ping_timeout: seconds(args.ping_timeout_s),
        })
    }
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
    let asked = Asked::read(args)?;
    let mut stage =
        if args.ping_all || args.json { Stage::on_stderr().only_trouble() } else { Stage::on_stdout() };
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
    // Shared with the thread that waits for an answer, so that a signal need not wait for it.
    let network = Arc::new(network);
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
    let mut run = Run { network, observer, stage, stop, switches: SwitchesSeen::default(), pings: 0 };
    let ended = match &asked.scenario {
        Some(scenario) => run.play(args, &asked, scenario),
        None if args.ping_all => run.ping_all(args, &asked),
        None => run.stay_up(args, &asked),
    };
    drop(run);
    let recorded = recorders.finish();
    conclude(args, &ended?.with_pcaps(recorded))
}

fn conclude(args: &EmulateArgs, summary: &Summary) -> Result<ExitCode, CommandError> {
    print(args, summary)?;
    Ok(if summary.passed { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

/// Plays a scenario in virtual time. It opens no connections and never waits.
fn rehearse(
    args: &EmulateArgs,
    asked: &Asked,
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
    let scenario = Scenario { spanning_tree: asked.spanning_tree, ..scenario.clone() };
    let rehearsal = scenario.rehearse(|| stop.came_within(Duration::ZERO));
    let Some(Rehearsal { verdicts, trouble, took, digest, storms }) = rehearsal else {
        return Err(CommandError::DidNotWork("it was told to stop before the scenario was over".into()));
    };
    if let Some(trouble) = trouble.first() {
        return Err(CommandError::DidNotWork(format!("the scenario could not be played: {trouble}")));
    }
    let counters = EmulationCounters::default();
    let summary = Summary::new(&args.name(), &asked.topology, None, took, counters);
    let judged = verdicts.into_iter().map(Judged::from).collect();
    conclude(args, &summary.with_rehearsal(digest, storms).with_expectations(judged))
}

/// The error for a network that did not start. If it is too large for the machine, the operator must make it smaller.
fn not_started(error: std::io::Error) -> CommandError {
    match error.kind() {
        std::io::ErrorKind::OutOfMemory => CommandError::Usage(error.to_string()),
        _ => CommandError::DidNotWork(format!("the emulated network cannot be started: {error}")),
    }
}

fn ended_by_itself() -> CommandError {
    CommandError::DidNotWork("the emulated network has ended by a fault of its own".into())
}

/// Prints the summary on standard output. If the reader has closed the output, that is not an error.
fn print(args: &EmulateArgs, summary: &Summary) -> Result<(), CommandError> {
    use std::io::Write;
    let text = if args.json { json(summary)? } else { summary.to_string() };
    match std::io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(()),
    }
}

/// Which switches are connected to which controllers, according to events.
#[derive(Default)]
struct SwitchesSeen {
    connections: BTreeMap<DatapathId, BTreeSet<SocketAddr>>,
}

impl SwitchesSeen {
    fn connected(&mut self, switch: DatapathId, controller: SocketAddr) {
        self.connections.entry(switch).or_default().insert(controller);
    }

    fn disconnected(&mut self, switch: DatapathId, controller: SocketAddr) {
        if let Some(controllers) = self.connections.get_mut(&switch) {
            controllers.remove(&controller);
        }
    }

    /// How many switches have at least one controller.
    fn count(&self) -> usize {
        self.connections.values().filter(|controllers| !controllers.is_empty()).count()
    }
}

/// A running network, and its progress.
struct Run {
    network: Arc<Handle>,
    observer: Observer,
    stage: Stage,
    stop: StopSignal,
    switches: SwitchesSeen,
    pings: u64,
}

impl Run {
    /// Waits for all switches, and prints how long they took.
    fn connect(&mut self, asked: &Asked) -> Result<Duration, CommandError> {
        let network = self.network.clone();
        let wait = asked.wait;
        let switches = self.network.switches();
        self.watch(
            move || network.wait_connected(wait),
            |run| format!("{} of {switches} switches are connected", run.switches.count()),
        )?
        .map_err(|missing| CommandError::DidNotWork(format!("after {} s {missing}", wait.as_secs())))?;
        self.stage.say(&format!("all {switches} switches are connected"));
        Ok(self.stage.elapsed())
    }

    fn ping_all(&mut self, args: &EmulateArgs, asked: &Asked) -> Result<Summary, CommandError> {
        let connected_after = self.connect(asked)?;
        let hosts = self.network.hosts();
        let pings = hosts * hosts.saturating_sub(1);
        let (network, timeout) = (self.network.clone(), asked.ping_timeout);
        let report = self.watch(
            move || network.ping_all(timeout),
            |run| format!("{} of {pings} pings are done", run.pings),
        )?;
        Ok(self.summary(args, asked, Some(connected_after)).with_pings(&report))
    }

    fn play(
        &mut self,
        args: &EmulateArgs,
        asked: &Asked,
        scenario: &Scenario,
    ) -> Result<Summary, CommandError> {
        let connected_after = self.connect(asked)?;
        self.stage.say("the scenario begins");
        let judged = Player::new(scenario).play(self)?;
        Ok(self.summary(args, asked, Some(connected_after)).with_expectations(judged))
    }

    /// Stays up until a signal, and shows events.
    fn stay_up(&mut self, args: &EmulateArgs, asked: &Asked) -> Result<Summary, CommandError> {
        self.stage.say("it stays up until Ctrl-C");
        let mut connected_after = None;
        while !self.stop.came_within(Duration::ZERO) {
            self.hear(LOOK)?;
            if self.switches.count() == self.network.switches() {
                connected_after.get_or_insert_with(|| self.stage.elapsed());
            }
        }
        Ok(self.summary(args, asked, connected_after))
    }

    /// Waits for a long operation, shows events and progress in the meantime, and ends early at a signal.
    fn watch<T: Send + 'static>(
        &mut self,
        long: impl FnOnce() -> T + Send + 'static,
        progress: impl Fn(&Run) -> String,
    ) -> Result<T, CommandError> {
        let working = std::thread::spawn(long);
        let mut said = Instant::now();
        while !working.is_finished() {
            self.hear(LOOK)?;
            if self.stop.came_within(Duration::ZERO) {
                let far = progress(self);
                return Err(CommandError::DidNotWork(format!(
                    "it was told to stop before it was done: {far}"
                )));
            }
            if said.elapsed() >= PROGRESS {
                said = Instant::now();
                let far = progress(self);
                self.stage.say(&far);
            }
        }
        while let Ok(event) = self.observer.try_next() {
            self.note(&event);
        }
        working.join().map_err(|_| ended_by_itself())
    }

    /// Processes events until now or within a moment. An error means that the network has ended.
    fn hear(&mut self, patience: Duration) -> Result<(), CommandError> {
        let deadline = Instant::now() + patience;
        while let Some(left) = deadline.checked_duration_since(Instant::now()) {
            match self.observer.next_within(left) {
                Ok(event) => self.note(&event),
                Err(RecvTimeoutError::Timeout) => break,
                Err(RecvTimeoutError::Disconnected) => return Err(ended_by_itself()),
            }
        }
        Ok(())
    }

    fn note(&mut self, event: &Event) {
        match event {
            Event::SwitchConnected { datapath_id, controller, .. } => {
                self.switches.connected(*datapath_id, *controller);
            }
            Event::SwitchDisconnected { datapath_id, controller, .. } => {
                self.switches.disconnected(*datapath_id, *controller);
            }
            Event::PingOk { .. } | Event::PingLost { .. } => self.pings += 1,
            _ => {}
        }
        self.stage.show(event);
    }

    fn summary(&self, args: &EmulateArgs, asked: &Asked, connected_after: Option<Duration>) -> Summary {
        let counters = self.network.counters();
        Summary::new(&args.name(), &asked.topology, connected_after, self.stage.elapsed(), counters)
    }
}
