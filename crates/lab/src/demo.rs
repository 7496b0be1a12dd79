//! `burnet demo`: starts a node and a small emulated network on this machine, without privileges, and shows their
//! messages.
//!
//! ```text
//!   this process:  emulated switches and hosts ──TCP, 127.0.0.1──> a node of its own (`burnet run`, a child)
//! ```
//!
//! It never touches a network interface, and leaves nothing behind: the node ends with the demo.

use crate::emulate::check_pings;
use crate::own_node::{OwnNode, SOMEWHERE};
use crate::stage::Stage;
use burnet::apps;
use burnet::cli::{CommandError, RunArgs};
use burnet::commands::stop_signal::{NotDone, StopSignal};
use clap::Args;
use config::{AppArgument, Config, Environment, LogLevel, OpenFlowVersion};
use emulator::{Emulation, Handle, Observer, PingReport, SwitchOptions, Topology, Versions};
use node::descriptors;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

/// How long connecting all switches may take.
const START_PATIENCE: Duration = Duration::from_secs(15);

/// How long one ping may take. The first ones wait until the app has learned.
const PING_PATIENCE: Duration = Duration::from_secs(3);

/// How long it waits for an event before it checks signals again.
const LOOK: Duration = Duration::from_millis(20);

/// The time between rounds of pings while the demo stays up.
const ROUND: Duration = Duration::from_secs(5);

const EXAMPLES: &str = "\
Examples:
  burnet demo                              four hosts on three switches; stays up until Ctrl-C
  burnet demo --once                       end when all pairs of hosts have pinged: exit code 0 only if all did
  burnet demo --topo linear,4 --version 1.0
  burnet demo --app hub=trusted";

/// `burnet demo`.
#[derive(Clone, Debug, PartialEq, Args)]
#[command(after_help = EXAMPLES)]
pub struct DemoArgs {
    /// End when all pairs of hosts have pinged each other
    #[arg(long)]
    pub once: bool,
    /// The network, in Mininet's words: single,HOSTS or linear,SWITCHES or tree,DEPTH,FANOUT
    #[arg(long, value_name = "TOPOLOGY", default_value = "tree,2")]
    pub topo: Topology,
    /// The version of OpenFlow that the switches speak
    #[arg(long, value_name = "VERSION", default_value = "1.3")]
    pub version: OpenFlowVersion,
    /// The app that controls the network, as in burnet run (repeat for more)
    #[arg(long = "app", value_name = "NAME[=trusted]", default_value = "learning-switch")]
    pub apps: Vec<AppArgument>,
    /// As in burnet run
    #[arg(long)]
    pub grant_all: bool,
}

/// Carries out `burnet demo`. The exit code is 0 if all pairs have pinged.
pub fn demo(args: &DemoArgs) -> Result<ExitCode, CommandError> {
    let stop = StopSignal::listen()?;
    descriptors::take_what_is_allowed();
    check_pings("the demo's pings", args.topo.hosts.len())?;
    let mut stage = Stage::on_stdout();
    // An app that cannot run is refused here at once, and not after a wait for a node that refuses it.
    let asked = RunArgs { apps: args.apps.clone(), grant_all: args.grant_all, ..RunArgs::default() };
    Config::load(&asked, &Environment::of_this_process()?, &apps::WITHIN)?;
    let node = OwnNode::start_with(SOMEWHERE, args.grant_all, &args.apps, LogLevel::Warn)?;
    let address = node.wait_until_it_listens()?;
    stage.say(&format!(
        "a node listens on {address}; ask it: burnet switches --socket {}",
        node.socket().display()
    ));
    let version = match args.version {
        OpenFlowVersion::V1_0 => Versions::Only10,
        OpenFlowVersion::V1_3 => Versions::Only13,
    };
    let options = SwitchOptions { versions: version, ..SwitchOptions::default() };
    let network = Emulation::start(&args.topo, address, &options).map_err(|error| {
        CommandError::DidNotWork(format!("the emulated network cannot be started: {error}"))
    })?;
    // Shared with the thread that waits for an answer, so that a signal need not wait for it.
    let network = Arc::new(network);
    let observer = network.observer();
    stage.say(&format!("{} switches and {} hosts are emulated", network.switches(), network.hosts()));
    let waiting = network.clone();
    let connected = stop.unless_it_comes(
        move || waiting.wait_connected(START_PATIENCE),
        || stage.show_within(&observer, LOOK),
    );
    connected.map_err(not_done)?.map_err(|error| CommandError::DidNotWork(error.to_string()))?;
    let complete = ping_all(&mut stage, &network, &observer, &stop)?.is_complete();
    if !args.once {
        stage.say("it stays up until Ctrl-C");
        // Pings that a signal cuts short are not a failure: only the first round counts.
        while !stop.came_within(ROUND) && ping_all(&mut stage, &network, &observer, &stop).is_ok() {}
    }
    // The node ends first. Switches that disappeared before it would cause warnings.
    drop(node);
    drop(network);
    Ok(if complete { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

fn not_done(why: NotDone) -> CommandError {
    CommandError::DidNotWork(match why {
        NotDone::ToldToStop => "it was told to stop before all pairs had pinged".to_owned(),
        NotDone::Panicked => "the emulated network has ended by a fault of its own".to_owned(),
    })
}

/// Lets all pairs ping, and shows events in the meantime.
fn ping_all(
    stage: &mut Stage,
    network: &Arc<Handle>,
    observer: &Observer,
    stop: &StopSignal,
) -> Result<PingReport, CommandError> {
    let pinging = network.clone();
    let report = stop
        .unless_it_comes(move || pinging.ping_all(PING_PATIENCE), || stage.show_within(observer, LOOK))
        .map_err(not_done)?;
    stage.show_all(observer);
    let counters = network.counters();
    stage.say(&format!(
        "{report}; {} packet-ins, {} flow mods, {} packet-outs",
        counters.packet_ins, counters.flow_mods, counters.packet_outs
    ));
    Ok(report)
}
