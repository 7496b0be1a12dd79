//! What a tenant that misbehaves costs another one: it floods, its process hangs, or is killed.
//!
//! ```text
//!   victim: 4 switches ──> slice "blue" ──> a sink     rounds: calm, fault, calm, fault, …  ──> p99 of each pair, what was lost
//!   other:  2 switches with rules ──> slice "red" ──> a sink
//! ```
//!
//! In: how long. Out: latencies of the victim, and how long the other slice was away. The victim's switches send packet-ins at a fixed rate. Each
//! slice is killed once in its life: the first restart has no delay.

use super::traffic::{Controller, PORTS, Round, Slice, connected, slice};
use crate::lab::Lab;
use crate::network;
use crate::node::{Kind, Node, kill};
use emulator::Handle;
use lab::bench::target::OpenTarget;
use lab::processes::tree;
use load::{Load, Mode};
use rustix::process::{Pid, Signal, kill_process};
use serde::Serialize;
use serde_json::json;
use std::net::SocketAddr;
use std::thread::sleep;
use std::time::{Duration, Instant};

const VICTIMS_SWITCHES: u16 = 4;
/// The datapath ids of the flooding switches. Those of the emulated ones begin at 1.
const FLOODING_FROM: u64 = 201;
const VICTIMS_FROM: u64 = 101;
const FLOODING_SWITCHES: u16 = 2;
/// What the flooding tenant's switches send up.
const FLOOD_PER_S: f64 = 50_000.0;
/// What the victim's switches send up.
const VICTIMS_PER_S: f64 = 2_000.0;
/// The limit of the flooding tenant at each switch.
const LIMIT: &str = "packet_ins_per_s = 1000\n";
const PATIENCE: Duration = Duration::from_secs(10);
/// Rules that the other tenant has in the emulated switches, at least.
const RULES_MIN: usize = 4;

/// What the other tenant does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(super) enum Fault {
    Floods,
    /// It has no limit.
    FloodsFreely,
    Hangs,
    IsKilled,
}

pub(super) const FAULTS: [(Fault, &str); 4] = [
    (Fault::Floods, "another tenant floods beyond its limit"),
    (Fault::FloodsFreely, "another tenant floods without a limit"),
    (Fault::Hangs, "another slice hangs"),
    (Fault::IsKilled, "another slice is killed"),
];

/// What one fault has cost.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Cost {
    pub fault: Fault,
    pub calm: Vec<Round>,
    pub with: Vec<Round>,
    /// How long each killed process was away, in milliseconds.
    pub away_ms: Vec<f64>,
    /// Whether the rules of the killed slice were the same before and after.
    pub rules_stayed: bool,
}

/// Two slices on one node.
struct World {
    node: Node,
    victim: Load,
    flood: Load,
    _network: Handle,
    _sinks: [OpenTarget; 2],
}

/// Measures all faults.
///
/// # Errors
/// The node does not start, or a slice does not come back.
pub(super) fn measure(lab: &Lab) -> Result<Vec<Cost>, String> {
    let (rounds, length) = (lab.times(5, 1), lab.time(1.0, 0.3));
    let mut costs = Vec::new();
    for (fault, name) in FAULTS {
        lab.say(&format!("cost: {name}"));
        let mut cost =
            Cost { fault, calm: Vec::new(), with: Vec::new(), away_ms: Vec::new(), rules_stayed: true };
        let mut world = World::start(lab, fault)?;
        for number in 0..rounds {
            if fault == Fault::IsKilled && number > 0 {
                world = World::start(lab, fault)?;
            }
            world.round(length, &mut cost)?;
        }
        costs.push(cost);
    }
    Ok(costs)
}

impl World {
    fn start(lab: &Lab, fault: Fault) -> Result<World, String> {
        let sinks = [Controller::Sink.start(lab, None)?, Controller::Sink.start(lab, None)?];
        let limit = if fault == Fault::FloodsFreely { "" } else { LIMIT };
        let configuration = format!(
            "[node]\nlog = \"error\"\n{}{}{limit}",
            section("blue", 10, sinks[0].address, &[(VICTIMS_FROM, VICTIMS_SWITCHES)]),
            section("red", 20, sinks[1].address, &[(1, 2), (FLOODING_FROM, FLOODING_SWITCHES)])
        );
        let node = Node::start(lab, Kind::Burnet, &configuration)?;
        let address = node.wait(&["slice.blue", "slice.red"])?;
        let network = network::start("linear,2,2", address)?;
        let flood = connected(address, FLOODING_SWITCHES, FLOODING_FROM)?;
        let mut victim = connected(address, VICTIMS_SWITCHES, VICTIMS_FROM)?;
        // Tables and caches fill.
        round(&mut victim, Duration::from_millis(300));
        let world = World { node, victim, flood, _network: network, _sinks: sinks };
        let began = Instant::now();
        while world.rules()?.len() < RULES_MIN {
            if began.elapsed() > PATIENCE {
                return Err(format!("the other tenant has {} rules", world.rules()?.len()));
            }
            sleep(Duration::from_millis(20));
        }
        Ok(world)
    }

    /// A round without the fault, and one with it.
    fn round(&mut self, length: Duration, cost: &mut Cost) -> Result<(), String> {
        cost.calm.push(round(&mut self.victim, length));
        let with = match cost.fault {
            Fault::Floods | Fault::FloodsFreely => self.flooded(length),
            Fault::Hangs => self.stopped(length)?,
            Fault::IsKilled => self.killed(length, cost)?,
        };
        cost.with.push(with);
        Ok(())
    }

    /// While the other tenant's switches send as much as they may, and its controller answers all.
    fn flooded(&mut self, length: Duration) -> Round {
        let World { victim, flood, .. } = self;
        std::thread::scope(|scope| {
            // It begins a little earlier and ends later than the victim's round.
            let flooding = length + Duration::from_millis(400);
            scope.spawn(move || drop(flood.round(Mode::AtMost(FLOOD_PER_S), flooding)));
            sleep(Duration::from_millis(300));
            round(victim, length)
        })
    }

    /// While the other slice's process in its sandbox is stopped, and its switches send packet-ins.
    fn stopped(&mut self, length: Duration) -> Result<Round, String> {
        let pid = inside(self.pid("slice.red")?);
        signal(pid, Signal::STOP)?;
        let World { victim, flood, .. } = self;
        let seen = std::thread::scope(|scope| {
            scope.spawn(move || drop(flood.round(Mode::AtMost(FLOOD_PER_S / 10.0), length)));
            round(victim, length)
        });
        signal(pid, Signal::CONT)?;
        Ok(seen)
    }

    /// While the other slice's process is killed, and started again.
    fn killed(&mut self, length: Duration, cost: &mut Cost) -> Result<Round, String> {
        let (before, pid) = (self.rules()?, self.pid("slice.red")?);
        let World { victim, node, .. } = self;
        let (seen, away) = std::thread::scope(|scope| {
            let victims = scope.spawn(move || round(victim, length));
            sleep(length / 4);
            let away = kill(inside(pid).into()).and_then(|()| away(node, pid));
            (victims.join(), away)
        });
        cost.away_ms.push(away?.as_secs_f64() * 1e3);
        cost.rules_stayed &= self.rules()? == before;
        seen.map_err(|_| "the load ended".to_owned())
    }

    fn pid(&self, app: &str) -> Result<u32, String> {
        let view = self.node.app(app).ok_or_else(|| format!("there is no {app}"))?;
        let pid = view["status"]["pid"].as_u64().and_then(|pid| u32::try_from(pid).ok());
        pid.ok_or_else(|| format!("{app} does not run"))
    }

    /// The other tenant's rules in the emulated switches, without counters.
    fn rules(&self) -> Result<Vec<String>, String> {
        let mut all = Vec::new();
        for datapath in ["1", "2"] {
            let flows = self.node.ask(&json!({"flows": {"datapath": datapath}}))?;
            let switches = flows["flows"].as_array().cloned().unwrap_or_default();
            let there = switches.iter().flat_map(|switch| switch["flows"].as_array().into_iter().flatten());
            let own = there.filter(|flow| flow["owner"] == "slice.red");
            all.extend(own.map(|flow| {
                format!("{datapath} {} {} {}", flow["priority"], flow["match"], flow["actions"])
            }));
        }
        all.sort();
        Ok(all)
    }
}

/// The process in the sandbox: the last one below the first process of a slice.
fn inside(first: u32) -> u32 {
    tree(first).last().copied().unwrap_or(first)
}

/// How long until another process of the slice runs, and has subscribed.
fn away(node: &Node, killed: u32) -> Result<Duration, String> {
    let began = Instant::now();
    let mut line = node.line()?;
    loop {
        let app = crate::node::app_in(line.ask(&json!("apps"))?, "slice.red");
        let is_back = app.is_some_and(|app| {
            app["status"]["pid"].as_u64().is_some_and(|pid| pid != u64::from(killed))
                && crate::node::serves(&app)
        });
        if is_back {
            return Ok(began.elapsed());
        }
        if began.elapsed() > PATIENCE {
            return Err("the slice does not come back".to_owned());
        }
        sleep(Duration::from_millis(1));
    }
}

fn round(load: &mut Load, length: Duration) -> Round {
    Round::of(&load.round(Mode::Rate(VICTIMS_PER_S), length))
}

fn signal(pid: u32, which: Signal) -> Result<(), String> {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).ok_or("there is no process")?;
    kill_process(pid, which).map_err(|error| format!("the process takes no signal: {error}"))
}

/// A slice with the ports of switches: the first of each, and how many.
fn section(name: &str, tag: u16, controller: SocketAddr, switches: &[(u64, u16)]) -> String {
    let numbers = switches.iter().flat_map(|(first, count)| (0..u64::from(*count)).map(move |it| first + it));
    let ports: Vec<String> = numbers
        .flat_map(|switch| {
            (1..=if switch < VICTIMS_FROM { 2 } else { PORTS }).map(move |port| format!("'s{switch}:{port}'"))
        })
        .collect();
    slice(&Slice { name, tag, controller, ports: &ports.join(", "), more: "" })
}
