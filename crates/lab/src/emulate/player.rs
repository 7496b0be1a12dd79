//! `burnet emulate --scenario`: plays a scenario in a network in real time.
//!
//! It decides nothing. [`Play`] says what to do; this code does it and returns the findings.

use std::sync::mpsc::{Receiver, TryRecvError};
use std::time::{Duration, Instant};

use emulator::scenario::{Observation, Play, Purpose, Scenario, Task, Verdict};
use emulator::{FlowId, Handle, PingReport, QueriesId, QueriesReport};
use serde::Serialize;

use super::run::Run;
use burnet::cli::CommandError;

/// How often it checks the clock. Actions are this exact.
const LOOK: Duration = Duration::from_millis(5);

/// The result of an expectation, for JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct ExpectationResult {
    line: u32,
    expected: String,
    pub(crate) held: bool,
    found: String,
}

impl From<Verdict> for ExpectationResult {
    fn from(verdict: Verdict) -> ExpectationResult {
        let Verdict { line, expected, held, found } = verdict;
        ExpectationResult { line, expected, held, found }
    }
}

impl std::fmt::Display for ExpectationResult {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let held = if self.held { "holds" } else { "FAILS" };
        write!(f, "{held}       line {}: {}: {}", self.line, self.expected, self.found)
    }
}

/// Pings without a result yet.
struct PendingPing {
    what: Pinged,
    report: Receiver<PingReport>,
}

enum Pinged {
    One(Purpose),
    All(usize),
}

/// What came of a scenario.
pub(crate) struct Played {
    pub(crate) judged: Vec<ExpectationResult>,
    /// The reports of its series of queries, each with its name.
    pub(crate) queries: Vec<(String, QueriesReport)>,
    /// How long each ping of its series and among all hosts took. `None`: it was not answered.
    pub(crate) round_trips: Vec<Option<Duration>>,
}

/// A scenario that is being played.
pub(crate) struct Player<'a> {
    scenario: &'a Scenario,
    play: Play<'a>,
    pending: Vec<PendingPing>,
    flows: Vec<Option<FlowId>>,
    queries: Vec<Option<QueriesId>>,
    round_trips: Vec<Option<Duration>>,
    /// What could not be done, one sentence each.
    trouble: Vec<String>,
}

impl<'a> Player<'a> {
    pub(crate) fn new(scenario: &'a Scenario) -> Self {
        let flows = vec![None; scenario.flows.len()];
        let queries = vec![None; scenario.queries.len()];
        Player {
            scenario,
            play: Play::new(scenario),
            pending: Vec::new(),
            flows,
            queries,
            round_trips: Vec::new(),
            trouble: Vec::new(),
        }
    }

    /// Plays the scenario from now to its end.
    pub(crate) fn play(mut self, run: &mut Run) -> Result<Played, CommandError> {
        let began = Instant::now();
        let mut tasks = Vec::new();
        while !self.play.is_over() {
            let now = began.elapsed();
            self.play.on_time(now, &mut tasks);
            for task in tasks.drain(..) {
                self.act(task, run, now);
            }
            run.process_events(LOOK)?;
            self.gather(began.elapsed());
            if run.stop.came_within(Duration::ZERO) {
                let seconds = began.elapsed().as_secs_f64();
                let why = format!("it was told to stop {seconds:.1} s into its scenario");
                return Err(CommandError::DidNotWork(why));
            }
        }
        if let Some(trouble) = self.trouble.first() {
            return Err(CommandError::DidNotWork(format!("the scenario could not be played: {trouble}")));
        }
        let judged = self.play.verdicts().into_iter().map(ExpectationResult::from).collect();
        Ok(Played { judged, queries: self.play.queries(), round_trips: self.round_trips })
    }

    fn act(&mut self, task: Task, run: &mut Run, now: Duration) {
        let network = &run.network;
        match task {
            Task::Change(change) => {
                run.stage.say(&format!("{:.3} s: {change}", now.as_secs_f64()));
                self.note(network.change(change).map_err(|error| error.to_string()));
            }
            Task::Ping { purpose, from, to, timeout } => match network.begin_ping(&from, &to, timeout) {
                Ok(report) => self.pending.push(PendingPing { what: Pinged::One(purpose), report }),
                Err(error) => self.note(Err(error.to_string())),
            },
            Task::PingAll { series, timeout } => {
                let report = network.begin_ping_all(timeout);
                self.pending.push(PendingPing { what: Pinged::All(series), report });
            }
            Task::StartFlow(flow) => {
                let named = &self.scenario.flows[flow];
                run.stage.say(&format!("{:.3} s: flow {} begins", now.as_secs_f64(), named.name));
                match network.start_flow(named.spec.clone()) {
                    Ok(id) => self.flows[flow] = Some(id),
                    Err(error) => self.note(Err(error.to_string())),
                }
            }
            Task::ReportFlow(flow) => self.report_flow(flow, network, now),
            Task::StartQueries(queries) => {
                let named = &self.scenario.queries[queries];
                run.stage.say(&format!("{:.3} s: queries {} begin", now.as_secs_f64(), named.name));
                match network.start_queries(named.spec.clone()) {
                    Ok(id) => self.queries[queries] = Some(id),
                    Err(error) => self.note(Err(error.to_string())),
                }
            }
            Task::ReportQueries(queries) => {
                let report = self.queries[queries].and_then(|id| network.queries_report(id));
                self.play.on_observation(Observation::Queries { queries, report: report.map(Box::new) }, now);
            }
            Task::LookAtSwitches => {
                self.play.on_observation(Observation::Switches(network.switch_views()), now)
            }
        }
    }

    fn report_flow(&mut self, flow: usize, network: &Handle, now: Duration) {
        let report = self.flows[flow].and_then(|id| {
            let report = network.flow_report(id);
            network.stop_flow(id);
            report
        });
        self.play.on_observation(Observation::Flow { flow, report: report.map(Box::new) }, now);
    }

    fn note(&mut self, done: Result<(), String>) {
        self.trouble.extend(done.err());
    }

    /// Returns the results of pings to the play.
    fn gather(&mut self, now: Duration) {
        let Player { play, round_trips, .. } = self;
        self.pending.retain(|asked| {
            let report = match asked.report.try_recv() {
                Err(TryRecvError::Empty) => return true,
                // The network has ended, so no reply can arrive.
                Err(TryRecvError::Disconnected) => PingReport::default(),
                Ok(report) => report,
            };
            if asked.what.is_of_a_series() {
                round_trips.extend(report.pairs.iter().map(|pair| pair.round_trip));
            }
            play.on_observation(asked.what.found(&report), now);
            false
        });
    }
}

impl Pinged {
    /// Whether it is no ping by which an expectation is checked.
    fn is_of_a_series(&self) -> bool {
        !matches!(self, Pinged::One(Purpose::Expectation(_)))
    }

    fn found(&self, report: &PingReport) -> Observation {
        match self {
            Pinged::One(purpose) => Observation::Pinged {
                purpose: *purpose,
                round_trip: report.pairs.first().and_then(|pair| pair.round_trip),
            },
            Pinged::All(series) => Observation::PingedAll {
                series: *series,
                sent: report.pairs.len(),
                answered: report.answered(),
            },
        }
    }
}
