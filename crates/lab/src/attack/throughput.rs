//! How much of its throughput an innocent learning switch keeps during an attack, over several rounds.
//!
//! ```text
//!   16 switches that ask as much as goes ──> node: firewall, learning-switch, and the attacker, stopped and started in turn
//!     round without ─ round with ─ round without ─ …: of each round with it, the share of what the rounds around it answered
//! ```
//!
//! All rounds of a case use the same node and connections, so that only the attack differs. It judges nothing,
//! because a busy machine is slow.

use std::fmt;
use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use load::figures::median;
use monitor::{AppState, Verb};
use openflow::Version;
use serde::Serialize;

use super::case::{By, Case};
use super::trial::{self, Goes};
use super::{from_a_package, from_a_switch, from_a_tenant, from_the_operator, tenant_words};
use crate::bench::args::LoadArgs;
use crate::bench::measurement::Measurement;
use crate::own_node::OwnNode;
use burnet::cli::CommandError;
use operator::client;
use operator::contract::{AppView, Question};

/// The length of a round in seconds: more than an app's tick, at which attackers begin again.
const ROUND_S: f64 = 1.1;

/// The number of switches of the load, and of hosts of each.
const SWITCHES: u16 = 16;
const HOSTS: u32 = 100;

/// The wait of a switch that was cut off before it tries again.
const BETWEEN_TRIES: Duration = Duration::from_millis(10);

/// The share of its undisturbed throughput that an innocent app keeps.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Kept {
    /// The median of the pairs.
    pub median: f64,
    /// The smallest.
    pub min: f64,
    /// The largest.
    pub max: f64,
    /// Each round with the attack, divided by the mean of the rounds before and after it.
    pub pairs: Vec<f64>,
    /// Each undisturbed round, divided by the mean of the undisturbed rounds around it: the normal variation.
    pub anyway: Vec<f64>,
    /// The median of undisturbed answers a second.
    pub undisturbed_per_s: f64,
}

impl Kept {
    /// From rounds without and with the attack in turn. `None` if undisturbed rounds had no answers.
    fn of(rates: &[f64]) -> Option<Kept> {
        let undisturbed: Vec<f64> = rates.iter().step_by(2).copied().collect();
        let pairs: Vec<f64> = rates.windows(3).step_by(2).filter_map(by_those_around).collect();
        let anyway = undisturbed.windows(3).filter_map(by_those_around).collect();
        let least = pairs.iter().copied().reduce(f64::min)?;
        let most = pairs.iter().copied().reduce(f64::max)?;
        let (median, undisturbed_per_s) = (median(&pairs)?, median(&undisturbed)?);
        Some(Kept { median, min: least, max: most, pairs, anyway, undisturbed_per_s })
    }
}

/// The second of three, divided by the mean of the others. `None` if those are zero.
fn by_those_around(three: &[f64]) -> Option<f64> {
    let around = (three[0] + three[2]) / 2.0;
    (around > 0.0).then_some(three[1] / around)
}

impl fmt::Display for Kept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = |share: f64| share * 100.0;
        let Kept { median, min, max, undisturbed_per_s, .. } = self;
        write!(
            f,
            "a learning switch keeps {:.0} % ({:.0} to {:.0}) of {undisturbed_per_s:.0}/s",
            percent(*median),
            percent(*min),
            percent(*max)
        )
    }
}

/// Measures one case with this many rounds during the attack.
///
/// # Errors
///
/// It could not be measured: no node, or no load.
pub fn measure(case: &Case, rounds: u16) -> Result<Kept, CommandError> {
    let (server, address) = trial::server()?;
    let node = trial::start_node(case, address, Goes::On)?;
    let controller = node.wait_until_it_listens_with(&["firewall", "learning-switch"])?;
    trial::aim(case, &node)?;
    stop(case, &node)?;
    let load = LoadArgs { switches: SWITCHES, hosts: Some(HOSTS), seconds: ROUND_S, ..LoadArgs::default() };
    let mut measurement = Measurement::begin(&load, controller, |_| {})?;
    measurement.warm_up();
    let mut rates = vec![rate(&mut measurement)];
    for _ in 0..rounds_of(case, rounds) {
        rates.push(beside(case, &node, (controller, &server), || rate(&mut measurement))?);
        if !matches!(case.by, By::Tenant(_)) {
            accept_all(&server);
        }
        rates.push(rate(&mut measurement));
    }
    let unmeasured = || CommandError::DidNotWork("the learning switch answered nothing undisturbed".into());
    Kept::of(&rates).ok_or_else(unmeasured)
}

/// An attack with a package cannot be repeated.
fn rounds_of(case: &Case, rounds: u16) -> u16 {
    if matches!(case.by, By::Package(_)) { 1 } else { rounds }
}

/// The answers a second of one round.
fn rate(measurement: &mut Measurement) -> f64 {
    measurement.round().map_or(0.0, load::RoundReport::responses_per_s)
}

/// Runs a measurement during the attack. Without an attack it measures nothing.
fn beside<T>(
    case: &Case,
    node: &OwnNode,
    (controller, server): (SocketAddr, &TcpListener),
    measured: impl FnOnce() -> T,
) -> Result<T, CommandError> {
    match case.by {
        By::App(_) | By::Ring | By::Storm(_) => {
            start(case, node)?;
            let came = measured();
            stop(case, node)?;
            Ok(came)
        }
        By::Operator(attack) => std::thread::scope(|scope| {
            let time = Duration::from_secs_f64(ROUND_S);
            let act = scope.spawn(move || from_the_operator::act(attack, node.socket(), time));
            let came = measured();
            act.join().map_err(|_| not_tried("it panicked"))?.map_err(not_tried)?;
            Ok(came)
        }),
        By::Package(attack) => std::thread::scope(|scope| {
            // The trial judges the result. Here the attempt is enough.
            let act = scope.spawn(|| from_a_package::act(attack, node.folder(), node.socket()));
            let came = measured();
            act.join().map_err(|_| not_tried("it panicked"))?.map_err(not_tried)?;
            Ok(came)
        }),
        By::Tenant(attack) => std::thread::scope(|scope| {
            let time = Duration::from_secs_f64(ROUND_S);
            let act = scope.spawn(move || {
                from_a_tenant::act(attack, (Version::V1_3, &tenant_words::TREE), server, time)
            });
            let came = measured();
            act.join().map_err(|_| not_tried("it panicked"))?.map_err(not_tried)?;
            Ok(came)
        }),
        By::Switch(attack) => {
            let over = AtomicBool::new(false);
            std::thread::scope(|scope| {
                let act = scope.spawn(|| again_and_again(attack, controller, &over));
                let came = measured();
                over.store(true, Ordering::Relaxed);
                act.join().map_err(|_| not_tried("it panicked"))?.map_err(not_tried)?;
                Ok(came)
            })
        }
    }
}

/// Repeats the attack until `over`. Fails if it could never be tried.
fn again_and_again(
    attack: from_a_switch::SwitchAttack,
    controller: SocketAddr,
    over: &AtomicBool,
) -> std::io::Result<()> {
    let mut tried = from_a_switch::act(attack, controller, Duration::from_secs_f64(ROUND_S));
    while !over.load(Ordering::Relaxed) {
        std::thread::sleep(BETWEEN_TRIES);
        tried = tried.or(from_a_switch::act(attack, controller, Duration::from_secs_f64(ROUND_S)));
    }
    tried.map(drop)
}

fn not_tried(why: impl fmt::Display) -> CommandError {
    CommandError::DidNotWork(format!("the attack was not tried: {why}"))
}

/// How many apps of the node attack.
fn attackers(case: &Case) -> usize {
    match case.by {
        By::App(_) | By::Ring => 1,
        By::Storm(count) => count,
        By::Package(_) | By::Switch(_) | By::Operator(_) | By::Tenant(_) => 0,
    }
}

/// The other apps begin as soon as they start.
fn says_that_it_begins(case: &Case) -> bool {
    matches!(case.by, By::App(_)) && case.name != "restart-storm"
}

/// Starts the attackers, and waits until they have begun.
fn start(case: &Case, node: &OwnNode) -> Result<(), CommandError> {
    let before = trial::beginnings(node);
    trial::attackers(node).into_iter().for_each(|app| tell(node, app, Verb::Start));
    let begun = trial::wait_for(|| match says_that_it_begins(case) {
        true => trial::beginnings(node) > before,
        false => trial::attackers(node).iter().all(|app| !is_stopped(app)),
    });
    if begun { Ok(()) } else { Err(not_tried("the app that attacks did not begin")) }
}

/// Stops the attackers, and waits until the node reports that all of them are stopped.
fn stop(case: &Case, node: &OwnNode) -> Result<(), CommandError> {
    let wanted = attackers(case);
    if wanted == 0 {
        return Ok(());
    }
    let stopped = trial::wait_for(|| {
        let (stopped, others): (Vec<_>, Vec<_>) = trial::attackers(node).into_iter().partition(is_stopped);
        others.into_iter().for_each(|app| tell(node, app, Verb::Stop));
        stopped.len() == wanted
    });
    if stopped { Ok(()) } else { Err(not_tried("the app that attacks cannot be stopped in between")) }
}

fn is_stopped(app: &AppView) -> bool {
    app.status.state == AppState::Stopped
}

/// Sends a command. The caller waits for its effect.
fn tell(node: &OwnNode, app: AppView, verb: Verb) {
    let question = Question::App { app: app.status.app, verb, why: None };
    let _ = client::ask(node.socket(), &question);
}

/// Accepts all waiting connections, so that the attacker's server is not full the next time.
fn accept_all(server: &TcpListener) {
    while server.accept().is_ok() {}
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(rates: &[f64], expected: Option<(f64, f64, f64)>) {
        let kept = Kept::of(rates).map(|kept| (kept.min, kept.median, kept.max));
        assert_eq!(kept, expected, "{rates:?}");
    }

    #[test]
    fn what_answered_nothing_undisturbed_is_no_figure() {
        check(&[], None);
        check(&[0.0, 5.0, 0.0], None);
        check(&[5.0], None);
    }

    #[test]
    fn how_much_rounds_differ_anyway_is_of_those_without_the_attack() {
        let kept = Kept::of(&[100.0, 1.0, 150.0, 1.0, 200.0, 1.0, 50.0]).unwrap();
        assert_eq!(kept.anyway, [1.0, 2.0]);
    }

    #[test]
    fn a_round_is_held_against_those_around_it() {
        check(&[80.0, 90.0, 120.0], Some((0.9, 0.9, 0.9)));
        check(&[100.0, 0.0, 100.0, 100.0, 100.0], Some((0.0, 0.5, 1.0)));
    }
}
