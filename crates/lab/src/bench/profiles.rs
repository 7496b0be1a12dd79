//! `burnet bench profiles`: how many switches with a profile this machine can emulate.
//!
//! ```text
//!   in real time:     an emulation ⇄ a controller in this process, and the meter of runs
//!   in virtual time:  a simulation with the same controller, and how long it takes
//! ```
//!
//! Each switch has two hosts of its own. One queries the other over new connections, and each query needs two rules. In: how many, how
//! fast, for how long. Out: figures. It does not judge them.

use std::fmt;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use emulator::host::query::quantile;
use emulator::topology::Endpoint;
use emulator::validity::Verdict;
use emulator::{
    Emulation, Handle, Profiles, QueriesReport, QuerySpec, Simulation, SwitchCounters, SwitchOptions,
    Topology, learning_controller, profiles,
};
use serde::Serialize;

use super::args::ProfilesArgs;
use super::flow_controller::FlowController;
use crate::machine::Machine;
use crate::machine_reading::MachineReader;
use crate::printing::print;
use burnet::cli::CommandError;
use burnet::commands::json;

/// The rules of a query: one for each direction.
const RULES_OF_A_QUERY: f64 = 2.0;
/// The time in which hosts learn addresses and the controller prepares switches. It is not part of the run.
const PREPARATION: Duration = Duration::from_secs(2);
/// How long the switches may take to connect.
const PATIENCE: Duration = Duration::from_secs(60);
/// Steps between the quantiles of the report.
const HALF_PERCENTS: u32 = 200;
/// How often it looks whether a second is over.
const LOOK: Duration = Duration::from_millis(20);

/// What was measured.
#[derive(Debug, Serialize)]
struct Report {
    profile: String,
    switches: usize,
    rules_per_s_wanted: f64,
    seconds: f64,
    virtual_time: bool,
    /// All times but `took_s` are divided by this.
    slow_motion: u32,
    /// How long it took.
    took_s: f64,
    /// Of all switches together, from the beginning on.
    flow_mods: u64,
    packet_ins: u64,
    packet_ins_lost: u64,
    rules_refused: u64,
    /// Of all queries.
    completed: usize,
    failed: usize,
    completion_p50_ms: Option<f64>,
    completion_p99_ms: Option<f64>,
    /// Completion times at 201 quantiles: from the shortest to the longest, each half percent. Empty if no query was completed.
    completion_ms: Vec<f64>,
    /// What the meter says. In virtual time, nothing can be late.
    validity: Option<Verdict>,
    machine: Machine,
}

/// What came of a run.
struct Ran {
    took: Duration,
    counters: SwitchCounters,
    reports: Vec<QueriesReport>,
    verdict: Option<Verdict>,
}

/// Measures and prints.
pub(super) fn profiles(args: &ProfilesArgs) -> Result<ExitCode, CommandError> {
    let profile = profiles::read(&args.profile, std::path::Path::new("")).map_err(CommandError::Usage)?;
    let name = profile.name.clone();
    let options = SwitchOptions {
        profiles: Profiles::for_all(profile),
        slow_motion: args.slow_motion,
        ..SwitchOptions::default()
    };
    let topology = islands(args.switches)?;
    let load = Load::of(args);
    let ran = if args.virtual_time {
        load.simulate(&topology, &options)?
    } else {
        load.emulate(&topology, &options)?
    };
    let report = Report::new(args, name, ran);
    print(&if args.json { json(&report)? } else { report.to_string() })?;
    Ok(ExitCode::SUCCESS)
}

/// So many switches, each with two hosts and without a link to another switch.
fn islands(switches: u16) -> Result<Topology, CommandError> {
    let line: Result<Topology, _> = format!("linear,{switches},2").parse();
    let mut topology =
        line.map_err(|error: emulator::topology::NotATopology| CommandError::Usage(error.to_string()))?;
    let is_host = |end: Endpoint| matches!(end, Endpoint::Host { .. });
    topology.links.retain(|link| is_host(link.one) || is_host(link.two));
    Ok(topology)
}

/// The queries of all switches.
struct Load {
    switches: u16,
    every: Duration,
    duration: Duration,
}

impl Load {
    fn of(args: &ProfilesArgs) -> Self {
        Load {
            switches: args.switches,
            every: Duration::from_secs_f64(RULES_OF_A_QUERY / args.rules_per_s) * args.slow_motion,
            duration: Duration::from_secs(u64::from(args.seconds)) * args.slow_motion,
        }
    }

    fn spec(&self, switch: u16) -> QuerySpec {
        let (from, to) = (format!("h1s{switch}"), format!("h2s{switch}"));
        QuerySpec { every: self.every, duration: self.duration, ..QuerySpec::new(from, to) }
    }

    /// The time between the beginnings of two switches, so that they do not all ask at the same moment.
    fn stagger(&self) -> Duration {
        self.every / u32::from(self.switches)
    }

    fn simulate(&self, topology: &Topology, options: &SwitchOptions) -> Result<Ran, CommandError> {
        let began = Instant::now();
        let mut network = Simulation::with_controller(topology, options, 1, learning_controller());
        network.run_for(PREPARATION);
        let mut ids = Vec::new();
        for switch in 1..=self.switches {
            ids.push(network.start_queries(&self.spec(switch)).map_err(|error| cannot(&error))?);
            network.run_for(self.stagger());
        }
        network.run_for(self.duration);
        let counters = network.network().switches().iter().map(|switch| switch.counters()).sum();
        let reports = ids.into_iter().filter_map(|id| network.queries_report(id)).collect();
        Ok(Ran { took: began.elapsed(), counters, reports, verdict: None })
    }

    fn emulate(&self, topology: &Topology, options: &SwitchOptions) -> Result<Ran, CommandError> {
        let controller = FlowController::start().map_err(|error| cannot(&error))?;
        let network =
            Emulation::start(topology, controller.address(), options).map_err(|error| cannot(&error))?;
        network.wait_connected(PATIENCE).map_err(|error| cannot(&error))?;
        std::thread::sleep(PREPARATION);
        let began = Instant::now();
        let mut ids = Vec::new();
        for switch in 1..=self.switches {
            ids.push(network.start_queries(self.spec(switch)).map_err(|error| cannot(&error))?);
            std::thread::sleep(self.stagger());
        }
        network.restart_meter();
        watch(&network, self.duration);
        let verdict = network.verdict();
        let counters = network.switch_counters().unwrap_or_default();
        let reports = ids.into_iter().filter_map(|id| network.queries_report(id)).collect();
        Ok(Ran { took: began.elapsed(), counters, reports, verdict })
    }
}

fn cannot(error: &dyn fmt::Display) -> CommandError {
    CommandError::DidNotWork(format!("the run cannot be made: {error}"))
}

/// Tells the meter each second what the machine did.
fn watch(network: &Handle, time: Duration) {
    let (began, mut reader) = (Instant::now(), MachineReader::new());
    while began.elapsed() < time {
        std::thread::sleep(LOOK);
        reader.look().into_iter().for_each(|reading| network.note_machine(reading));
    }
}

impl Report {
    fn new(args: &ProfilesArgs, profile: String, Ran { took, counters, reports, verdict }: Ran) -> Self {
        let mut times: Vec<Duration> =
            reports.iter().flat_map(|report| report.completion_times(Duration::ZERO)).collect();
        times.sort_unstable();
        let scale = 1000.0 / f64::from(args.slow_motion);
        let at = |share| quantile(&times, share).map(|time| time.as_secs_f64() * scale);
        Report {
            profile,
            switches: usize::from(args.switches),
            rules_per_s_wanted: args.rules_per_s,
            seconds: f64::from(args.seconds),
            virtual_time: args.virtual_time,
            slow_motion: args.slow_motion,
            took_s: took.as_secs_f64(),
            flow_mods: counters.flow_mods,
            packet_ins: counters.packet_ins,
            packet_ins_lost: counters.packet_ins_unheard,
            rules_refused: counters.rules_refused,
            completed: times.len(),
            failed: reports.iter().map(|report| report.failed(Duration::ZERO)).sum(),
            completion_p50_ms: at(0.5),
            completion_p99_ms: at(0.99),
            completion_ms: (0..=HALF_PERCENTS)
                .filter_map(|half| at(f64::from(half) / f64::from(HALF_PERCENTS)))
                .collect(),
            validity: verdict,
            machine: Machine::describe(),
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut time = if self.virtual_time { "virtual time" } else { "real time" }.to_owned();
        if self.slow_motion > 1 {
            time += &format!(", {} times slower", self.slow_motion);
        }
        let Report { profile, switches, rules_per_s_wanted, seconds, took_s, .. } = self;
        writeln!(
            f,
            "{switches} switches of {profile}, {rules_per_s_wanted} rules a second wanted by each, {seconds} s of {time}: took {took_s:.1} s"
        )?;
        writeln!(
            f,
            "flow mods   {} ({:.1} a second and switch), packet-ins {}, lost {}, rules refused {}",
            self.flow_mods,
            self.flow_mods as f64 / seconds / *switches as f64,
            self.packet_ins,
            self.packet_ins_lost,
            self.rules_refused
        )?;
        let ms = |at: Option<f64>| at.map_or_else(|| "-".to_owned(), |ms| format!("{ms:.1} ms"));
        let (p50, p99) = (ms(self.completion_p50_ms), ms(self.completion_p99_ms));
        writeln!(
            f,
            "queries     {} completed, {} failed; p50 {p50}, p99 {p99}",
            self.completed, self.failed
        )?;
        if let Some(verdict) = &self.validity {
            writeln!(f, "validity    {}", verdict.to_string().replace('\n', "\n            "))?;
        }
        writeln!(f, "on {}", self.machine)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(virtual_time: bool) -> ProfilesArgs {
        ProfilesArgs {
            profile: "quanta-lb4g".to_owned(),
            switches: 3,
            rules_per_s: 20.0,
            seconds: 3,
            virtual_time,
            slow_motion: 1,
            json: false,
        }
    }

    #[test]
    fn each_query_takes_two_rules_in_real_and_in_virtual_time() {
        for (virtual_time, slow_motion) in [(false, 1), (true, 1), (true, 3)] {
            let args = ProfilesArgs { slow_motion, ..args(virtual_time) };
            let options = SwitchOptions {
                profiles: Profiles::for_all(profile::built_in(&args.profile).unwrap()),
                slow_motion,
                ..SwitchOptions::default()
            };
            let (load, topology) = (Load::of(&args), islands(args.switches).unwrap());
            assert_eq!((topology.switches.len(), topology.links.len()), (3, 6));
            let ran = if virtual_time {
                load.simulate(&topology, &options)
            } else {
                load.emulate(&topology, &options)
            };
            let report = Report::new(&args, "quanta-lb4g".to_owned(), ran.unwrap());
            // 10 queries a second for 3 s at each switch. In real time, a slow machine may not reach all.
            assert!(report.completed > 20 && report.flow_mods >= 2 * report.completed as u64, "{report}");
            assert!(report.completion_p50_ms > Some(40.0), "{report}");
            assert_eq!(
                (report.completion_ms.len(), report.completion_ms.get(100).copied()),
                (201, report.completion_p50_ms)
            );
            if virtual_time {
                assert!(report.completed >= 87 && report.took_s < 60.0, "{report}");
                assert!(report.completion_p50_ms < Some(120.0), "{report}");
            }
        }
    }
}
