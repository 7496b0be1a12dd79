//! Plays a scenario: decides what to do now, and which expectations hold.
//!
//! Pure: the time and the findings go in, tasks come out. It never waits and never reads a clock.

use std::time::Duration;

use super::expectation::{Expectation, Verdict, Wanted};
use super::{Action, Scenario};
use crate::host::flow::FlowReport;
use crate::host::query::QueriesReport;
use crate::network::Change;
use software_switch::SwitchView;

/// The interval between the pings of an expectation. It is short, because it decides how exactly a recovery is timed.
const PROBE_EVERY: Duration = Duration::from_millis(50);

/// After this time such a ping counts as lost. It is longer than two address requests.
const PROBE_TIMEOUT: Duration = Duration::from_secs(3);

/// A task for the caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Task {
    /// Change the network.
    Change(Change),
    /// Send one ping, and return [`Observation::Pinged`] with the same purpose.
    Ping {
        /// What the ping is for.
        purpose: Purpose,
        /// The name of the host that pings.
        from: String,
        /// The name of the host that is pinged.
        to: String,
        /// After this time it counts as lost.
        timeout: Duration,
    },
    /// Let all hosts ping all others, and return [`Observation::PingedAll`].
    PingAll {
        /// The series' index.
        series: usize,
        /// After this time a ping counts as lost.
        timeout: Duration,
    },
    /// Start a flow, by its index.
    StartFlow(usize),
    /// Return the report of a flow: [`Observation::Flow`].
    ReportFlow(usize),
    /// Begin a series of queries, by its index.
    StartQueries(usize),
    /// Return the report of a series of queries: [`Observation::Queries`].
    ReportQueries(usize),
    /// Return the state of all switches: [`Observation::Switches`].
    LookAtSwitches,
}

/// What a ping is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// A series, by its index.
    Series(usize),
    /// An expectation, by its index.
    Expectation(usize),
}

/// A finding of the caller.
#[derive(Clone, Debug, PartialEq)]
pub enum Observation {
    /// The result of a ping.
    Pinged {
        /// What it was for.
        purpose: Purpose,
        /// The round trip. `None`: it is lost.
        round_trip: Option<Duration>,
    },
    /// The result of pings among all hosts.
    PingedAll {
        /// The series' index.
        series: usize,
        /// How many pings were sent.
        sent: usize,
        /// How many were answered.
        answered: usize,
    },
    /// The report of a flow.
    Flow {
        /// Its index.
        flow: usize,
        /// The report. `None`: the flow could not start.
        report: Option<Box<FlowReport>>,
    },
    /// The report of a series of queries.
    Queries {
        /// Its index.
        queries: usize,
        /// The report. `None`: the series could not begin.
        report: Option<Box<QueriesReport>>,
    },
    /// The state of all switches.
    Switches(Vec<SwitchView>),
}

/// The state of an expectation.
#[derive(Clone, Debug)]
enum State {
    /// Not decided yet. Holds the last finding, and the time of the last ping.
    Open {
        found: String,
        probed_at: Option<Duration>,
    },
    Decided {
        held: bool,
        found: String,
    },
}

/// A scenario that is being played.
#[derive(Debug)]
pub struct Play<'a> {
    scenario: &'a Scenario,
    next: usize,
    /// Sent and answered pings of each series.
    series: Vec<(usize, usize)>,
    flows: Vec<Option<FlowReport>>,
    queries: Vec<Option<QueriesReport>>,
    states: Vec<State>,
    /// How many tasks of series and flows have no finding yet.
    awaited: usize,
}

impl<'a> Play<'a> {
    /// Starts at the beginning.
    pub fn new(scenario: &'a Scenario) -> Self {
        let open = || State::Open { found: String::new(), probed_at: None };
        Play {
            scenario,
            next: 0,
            series: vec![(0, 0); scenario.series.len()],
            flows: vec![None; scenario.flows.len()],
            queries: vec![None; scenario.queries.len()],
            states: scenario.expectations.iter().map(|_| open()).collect(),
            awaited: 0,
        }
    }

    /// Appends the tasks for this time, in order.
    pub fn on_time(&mut self, now: Duration, out: &mut Vec<Task>) {
        while let Some(step) = self.scenario.steps.get(self.next).filter(|step| step.at <= now) {
            self.next += 1;
            out.push(self.task(&step.what));
        }
        let mut look = false;
        for index in 0..self.states.len() {
            look |= self.watch(index, now, out);
        }
        if look {
            out.push(Task::LookAtSwitches);
        }
    }

    fn task(&mut self, action: &Action) -> Task {
        match action {
            Action::Change(change) => Task::Change(change.clone()),
            Action::Ping { series, from, to, timeout } => {
                self.awaited += 1;
                self.series[*series].0 += 1;
                let (purpose, timeout) = (Purpose::Series(*series), *timeout);
                Task::Ping { purpose, from: from.clone(), to: to.clone(), timeout }
            }
            Action::PingAll { series, timeout } => {
                self.awaited += 1;
                Task::PingAll { series: *series, timeout: *timeout }
            }
            Action::StartFlow(flow) => Task::StartFlow(*flow),
            Action::EndFlow(flow) => {
                self.awaited += 1;
                Task::ReportFlow(*flow)
            }
            Action::StartQueries(queries) => Task::StartQueries(*queries),
            Action::EndQueries(queries) => {
                self.awaited += 1;
                Task::ReportQueries(*queries)
            }
        }
    }

    /// Checks an expectation. Returns whether it needs the state of switches.
    fn watch(&mut self, index: usize, now: Duration, out: &mut Vec<Task>) -> bool {
        let Expectation { at, within, wanted, .. } = &self.scenario.expectations[index];
        let State::Open { found, probed_at } = &mut self.states[index] else { return false };
        if now < *at || wanted.is_of_the_whole() {
            return false;
        }
        // An expectation that is due at the end is checked once more at the end.
        let is_over = now > *at + *within;
        match wanted {
            Wanted::Ping { reached, .. } if is_over => {
                let found = match reached {
                    true => "not reached".to_owned(),
                    false => "never reached".to_owned(),
                };
                self.states[index] = State::Decided { held: !reached, found };
                false
            }
            Wanted::Ping { from, to, .. } => {
                if probed_at.is_none_or(|before| now >= before + PROBE_EVERY) {
                    *probed_at = Some(now);
                    let (from, to, purpose) = (from.clone(), to.clone(), Purpose::Expectation(index));
                    out.push(Task::Ping { purpose, from, to, timeout: PROBE_TIMEOUT });
                }
                false
            }
            _ if is_over && !found.is_empty() => {
                let found = std::mem::take(found);
                self.states[index] = State::Decided { held: false, found };
                false
            }
            wanted => wanted.is_of_switches(),
        }
    }

    /// Takes a finding.
    pub fn on_observation(&mut self, found: Observation, now: Duration) {
        match found {
            Observation::Pinged { purpose: Purpose::Series(series), round_trip } => {
                self.awaited = self.awaited.saturating_sub(1);
                self.series[series].1 += usize::from(round_trip.is_some());
            }
            Observation::Pinged { purpose: Purpose::Expectation(index), round_trip } => {
                if round_trip.is_some() {
                    self.reached(index, now);
                }
            }
            Observation::PingedAll { series, sent, answered } => {
                self.awaited = self.awaited.saturating_sub(1);
                self.series[series].0 += sent;
                self.series[series].1 += answered;
            }
            Observation::Flow { flow, report } => {
                self.awaited = self.awaited.saturating_sub(1);
                self.flows[flow] = report.map(|report| *report);
            }
            Observation::Queries { queries, report } => {
                self.awaited = self.awaited.saturating_sub(1);
                self.queries[queries] = report.map(|report| *report);
            }
            Observation::Switches(switches) => self.on_switches(&switches, now),
        }
    }

    fn reached(&mut self, index: usize, now: Duration) {
        let Expectation { at, within, wanted, .. } = &self.scenario.expectations[index];
        let (Wanted::Ping { reached, .. }, State::Open { .. }) = (wanted, &self.states[index]) else {
            return;
        };
        // A late reply does not count.
        let after = now.saturating_sub(*at);
        if after <= *within {
            let found = format!("reached after {:.3} s", after.as_secs_f64());
            self.states[index] = State::Decided { held: *reached, found };
        }
    }

    fn on_switches(&mut self, switches: &[SwitchView], now: Duration) {
        for (expectation, state) in self.scenario.expectations.iter().zip(&mut self.states) {
            let State::Open { found, .. } = state else { continue };
            if now < expectation.at {
                continue;
            }
            match expectation.wanted.in_switches(switches) {
                Some((true, found)) => {
                    let after = now.saturating_sub(expectation.at).as_secs_f64();
                    *state = State::Decided { held: true, found: format!("{found}, after {after:.3} s") };
                }
                Some((false, what)) => *found = what,
                None => {}
            }
        }
    }

    /// When [`Play::on_time`] has something to do next, as far as only the time decides.
    pub fn next_at(&self, now: Duration) -> Option<Duration> {
        let step = self.scenario.steps.get(self.next).map(|step| step.at);
        let watched =
            self.scenario.expectations.iter().zip(&self.states).filter_map(|(expectation, state)| {
                let is_open = matches!(state, State::Open { .. }) && !expectation.wanted.is_of_the_whole();
                is_open.then(|| expectation.at.max(now + PROBE_EVERY))
            });
        step.into_iter().chain(watched).min()
    }

    /// Whether there are no more tasks and no findings are missing.
    pub fn is_over(&self) -> bool {
        let is_open = |(expectation, state): (&Expectation, &State)| {
            matches!(state, State::Open { .. }) && !expectation.wanted.is_of_the_whole()
        };
        self.next == self.scenario.steps.len()
            && self.awaited == 0
            && !self.scenario.expectations.iter().zip(&self.states).any(is_open)
    }

    /// The results of the expectations, in the order of the file.
    pub fn verdicts(&self) -> Vec<Verdict> {
        let each = self.scenario.expectations.iter().zip(&self.states);
        each.map(|(expectation, state)| self.verdict(expectation, state)).collect()
    }

    /// The reports of the series of queries that have ended, each with its name, in the order of the file.
    pub fn queries(&self) -> Vec<(String, QueriesReport)> {
        let named = self.scenario.queries.iter().zip(&self.queries);
        named.filter_map(|(queries, report)| Some((queries.name.clone(), report.clone()?))).collect()
    }

    fn verdict(&self, expectation: &Expectation, state: &State) -> Verdict {
        let wanted = &expectation.wanted;
        let (held, found) = match (state, wanted) {
            (State::Decided { held, found }, _) => (*held, found.clone()),
            (State::Open { .. }, Wanted::Lost { series, .. }) => {
                let (sent, answered) = self.series[*series];
                wanted.in_series(sent, answered).unwrap_or_default()
            }
            (State::Open { found, .. }, _) => wanted
                .in_flows(&self.flows)
                .or_else(|| wanted.in_queries(&self.queries))
                .unwrap_or((false, found.clone())),
        };
        let when = match wanted.is_of_the_whole() {
            true => String::new(),
            false => format!(
                " within {} s from {} s on",
                expectation.within.as_secs_f64(),
                expectation.at.as_secs_f64()
            ),
        };
        let expected = wanted.words(self.scenario) + &when;
        Verdict { line: expectation.line, expected, held, found }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flow::PortNo;
    use std::path::Path;

    const START: Duration = Duration::ZERO;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    fn scenario(text: &str) -> Scenario {
        let file =
            std::env::temp_dir().join(format!("burnet-play-{}-{}.toml", std::process::id(), text.len()));
        std::fs::write(&file, format!("topology = \"linear,2\"\n{text}")).unwrap();
        let scenario = Scenario::read(Path::new(&file)).unwrap();
        std::fs::remove_file(file).unwrap();
        scenario
    }

    fn tasks(play: &mut Play<'_>, now: Duration) -> Vec<Task> {
        let mut out = Vec::new();
        play.on_time(now, &mut out);
        out
    }

    fn verdict(play: &Play<'_>) -> (bool, String) {
        let verdict = play.verdicts().remove(0);
        (verdict.held, verdict.found)
    }

    #[test]
    fn steps_are_done_when_their_time_comes_and_once() {
        let scenario = scenario("[[event]]\nat = \"1s\"\nlink_down = \"s1-s2\"");
        let mut play = Play::new(&scenario);
        assert!(tasks(&mut play, ms(999)).is_empty());
        assert_eq!(play.next_at(ms(999)), Some(ms(1000)));
        assert!(!play.is_over());
        assert_eq!(tasks(&mut play, ms(1003)).len(), 1);
        assert!(tasks(&mut play, ms(1004)).is_empty() && play.is_over());
    }

    #[test]
    fn what_is_to_be_reached_is_pinged_until_it_is() {
        let scenario =
            scenario("[[expect]]\nat = \"1s\"\nping = { from = \"h1\", to = \"h2\" }\nwithin = \"2s\"");
        let purpose = Purpose::Expectation(0);
        let found = |round_trip| Observation::Pinged { purpose, round_trip };
        let mut play = Play::new(&scenario);
        assert!(tasks(&mut play, START).is_empty());
        assert_eq!(tasks(&mut play, ms(1000)).len(), 1);
        assert!(tasks(&mut play, ms(1010)).is_empty(), "not at each look");
        assert_eq!(tasks(&mut play, ms(1050)).len(), 1);
        play.on_observation(found(None), ms(1060));
        assert!(!play.is_over());
        play.on_observation(found(Some(ms(5))), ms(1120));
        assert!(play.is_over());
        assert_eq!(verdict(&play), (true, "reached after 0.120 s".to_owned()));

        let mut play = Play::new(&scenario);
        tasks(&mut play, ms(1000));
        play.on_observation(found(Some(ms(2000))), ms(3001));
        assert!(!play.is_over(), "that was too late");
        tasks(&mut play, ms(3001));
        assert_eq!(verdict(&play), (false, "not reached".to_owned()));
    }

    #[test]
    fn what_is_not_to_be_reached_may_not_answer_in_all_that_time() {
        let scenario = scenario("[[expect]]\nno_ping = { from = \"h1\", to = \"h2\" }\nwithin = \"1s\"");
        let mut play = Play::new(&scenario);
        tasks(&mut play, START);
        tasks(&mut play, ms(1001));
        assert_eq!(verdict(&play), (true, "never reached".to_owned()));
        let mut play = Play::new(&scenario);
        tasks(&mut play, START);
        let purpose = Purpose::Expectation(0);
        play.on_observation(Observation::Pinged { purpose, round_trip: Some(ms(1)) }, ms(10));
        assert!(!verdict(&play).0 && play.is_over());
    }

    #[test]
    fn lost_pings_are_counted_when_all_are_answered_or_lost() {
        let scenario = scenario(
            "[[event]]\nat = \"0s\"\nping = { name = \"p\", from = \"h1\", to = \"h2\", count = 4, every = \"0s\" }\n\
             [[expect]]\npings = \"p\"\nlost_percent = { max = 25 }",
        );
        let mut play = Play::new(&scenario);
        assert_eq!(tasks(&mut play, START).len(), 4);
        let purpose = Purpose::Series(0);
        for round_trip in [Some(ms(1)), None, Some(ms(1))] {
            play.on_observation(Observation::Pinged { purpose, round_trip }, ms(2));
        }
        assert!(!play.is_over());
        play.on_observation(Observation::Pinged { purpose, round_trip: Some(ms(1)) }, ms(3));
        assert!(play.is_over());
        assert_eq!(verdict(&play), (true, "1 of 4 lost (25.0 %)".to_owned()));
    }

    #[test]
    fn switches_are_looked_at_until_they_are_as_expected_or_the_time_is_over() {
        let scenario =
            scenario("[[expect]]\nat = \"1s\"\nport = \"s1.2\"\nstate = \"down\"\nwithin = \"1s\"");
        let view = |live| {
            let ports = vec![(PortNo(2), live)];
            vec![SwitchView { name: "s1".into(), connected: true, flow_entries: 0, ports }]
        };
        let mut play = Play::new(&scenario);
        assert!(tasks(&mut play, ms(500)).is_empty());
        play.on_observation(Observation::Switches(view(false)), ms(500));
        assert!(!play.is_over(), "it is not time yet");
        assert_eq!(tasks(&mut play, ms(1000)), [Task::LookAtSwitches]);
        play.on_observation(Observation::Switches(view(true)), ms(1000));
        play.on_observation(Observation::Switches(view(false)), ms(1500));
        assert_eq!(verdict(&play), (true, "it is down, after 0.500 s".to_owned()));

        let mut play = Play::new(&scenario);
        tasks(&mut play, ms(1000));
        play.on_observation(Observation::Switches(view(true)), ms(1000));
        assert!(tasks(&mut play, ms(2001)).is_empty());
        assert_eq!(verdict(&play), (false, "it is up".to_owned()));
    }
}
