//! Plays a scenario once in real time against one controller, for `burnet profile trial`.
//!
//! In: the scenario, the controller, how switches are made. Out: what came of it. It prints nothing but trouble.

use std::net::SocketAddr;
use std::time::Duration;

use emulator::scenario::Scenario;
use emulator::validity::Verdict;
use emulator::{Emulation, EmulationCounters, SwitchCounters, SwitchOptions};

use super::player::{Played, Player};
use super::run::{Run, not_started};
use crate::stage::Stage;
use burnet::cli::CommandError;
use burnet::commands::stop_signal::StopSignal;

/// What came of a scenario that was played once.
pub(crate) struct PlayedOnce {
    pub(crate) played: Played,
    pub(crate) counters: EmulationCounters,
    pub(crate) switches: SwitchCounters,
    pub(crate) verdict: Option<Verdict>,
}

/// Plays it. Returns the signal too, which it looks for meanwhile.
pub(crate) fn play_once(
    scenario: &Scenario,
    controller: SocketAddr,
    options: &SwitchOptions,
    wait: Duration,
    stop: StopSignal,
) -> (Result<PlayedOnce, CommandError>, StopSignal) {
    let started = Emulation::start_captured(&scenario.topology, &[controller], options, &[]);
    let (network, observer, _) = match started.map_err(not_started) {
        Ok(started) => started,
        Err(error) => return (Err(error), stop),
    };
    if scenario.spanning_tree {
        network.keep_spanning_tree();
    }
    let mut run = Run::new(network, observer, Stage::silent(), stop);
    let played = play(&mut run, scenario, wait);
    (played, run.stop)
}

fn play(run: &mut Run, scenario: &Scenario, wait: Duration) -> Result<PlayedOnce, CommandError> {
    run.connect(wait)?;
    let played = Player::new(scenario).play(run)?;
    let (counters, switches) = (run.network.counters(), run.network.switch_counters().unwrap_or_default());
    Ok(PlayedOnce { played, counters, switches, verdict: run.verdict() })
}
