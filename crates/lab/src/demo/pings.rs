//! The demo of one app: all hosts of a small network ping each other, again and again.
//!
//! In: the app and the network. Out: lines about messages and pings, and the exit code. It has no REST interface.

use super::{DemoArgs, LOOK, START_PATIENCE};
use crate::emulate::check_pings;
use crate::own_node::{OwnNode, SOMEWHERE};
use crate::stage::Stage;
use burnet::apps;
use burnet::cli::{CommandError, RunArgs};
use burnet::commands::stop_signal::{NotDone, StopSignal};
use config::{AppArgument, AppReference, Config, Environment, LogLevel};
use emulator::{Emulation, Handle, Observer, PingReport, Topology};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

/// How long one ping may take. The first ones wait until the app has learned.
const PING_PATIENCE: Duration = Duration::from_secs(3);

/// The time between rounds of pings while the demo stays up.
const ROUND: Duration = Duration::from_secs(5);

/// The app if none is named.
const APP: &str = "learning-switch";

/// Carries it out. The exit code is 0 if all pairs have pinged.
pub(super) fn pings(
    args: &DemoArgs,
    topology: &Topology,
    stop: &StopSignal,
) -> Result<ExitCode, CommandError> {
    check_pings("the demo's pings", topology.hosts.len())?;
    let mut stage = Stage::on_stdout();
    let apps = if args.apps.is_empty() { vec![learning_switch()] } else { args.apps.clone() };
    // An app that cannot run is refused here at once, and not after a wait for a node that refuses it.
    let asked = RunArgs { apps: apps.clone(), grant_all: args.grant_all, ..RunArgs::default() };
    Config::load(&asked, &Environment::of_this_process()?, &apps::WITHIN)?;
    let node = OwnNode::start_with(SOMEWHERE, args.grant_all, &apps, LogLevel::Warn)?;
    let address = node.wait_until_it_listens()?;
    stage.say(&format!(
        "a node listens on {address}; ask it: burnet switches --socket {}",
        node.socket().display()
    ));
    let network = Emulation::start(topology, address, &args.options()).map_err(|error| {
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
    let complete = ping_all(&mut stage, &network, &observer, stop)?.is_complete();
    if !args.once {
        stage.say("it stays up until Ctrl-C");
        // Pings that a signal cuts short are not a failure: only the first round counts.
        while !stop.came_within(ROUND) && ping_all(&mut stage, &network, &observer, stop).is_ok() {}
    }
    // The node ends first. Switches that disappeared before it would cause warnings.
    drop(node);
    drop(network);
    Ok(if complete { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

fn learning_switch() -> AppArgument {
    AppArgument { which: AppReference::Name(APP.to_owned()), zone: None }
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
