//! Plays a scenario in virtual time: hours take seconds, and the same seed gives exactly the same history.
//!
//! In: a scenario. Out: the results of its expectations, and a digest of all that happened. There is no controller over
//! TCP, because it answers at times that vary. Each switch acts as a learning switch, as it does without a controller.
//! If switches play profiles, a [learning controller](learning_controller) answers at once: without one, no message
//! would meet their model.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use super::Scenario;
use super::expectation::Verdict;
use super::play::{Observation, Play, Purpose, Task};
use crate::host::query::QueriesReport;
use crate::learning::learning_controller;
use crate::network::{FlowId, QueriesId};
use crate::run::ping_all::PingAll;
use crate::simulation::Simulation;
use software_switch::{FailMode, SwitchCounters, SwitchOptions, Versions};

/// How exactly replies are timed.
const SLICE: Duration = Duration::from_millis(1);

/// The most virtual time with events between two calls of `is_stopped`.
const LOOK: Duration = Duration::from_millis(100);

/// How long the controller may take to prepare the switches. The time of the scenario starts then.
const PREPARATION: Duration = Duration::from_secs(2);

/// The result of a scenario.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rehearsal {
    /// The results of its expectations, in the order of its file.
    pub verdicts: Vec<Verdict>,
    /// The reports of its series of queries, each with its name.
    pub queries: Vec<(String, QueriesReport)>,
    /// What could not be done, one sentence each.
    pub trouble: Vec<String>,
    /// The counters of all switches together.
    pub counters: SwitchCounters,
    /// How long it took in virtual time.
    pub took: Duration,
    /// A digest of all that happened. The same scenario gives the same digest.
    pub digest: u64,
    /// How often a storm of frames forced the clock to advance.
    pub storms: u64,
}

impl Scenario {
    /// Plays the scenario in virtual time, until its end or until `is_stopped` returns true. Then the result is
    /// `None`. Switches with profiles are `slow_motion` times slower than these.
    pub fn rehearse(&self, slow_motion: u32, is_stopped: impl FnMut() -> bool) -> Option<Rehearsal> {
        let mut network = self.network(slow_motion);
        if self.spanning_tree {
            network.keep_spanning_tree();
        }
        let flows = vec![None; self.flows.len()];
        let waiting = BTreeMap::new();
        let stage = Stage {
            scenario: self,
            network,
            waiting,
            rounds: Vec::new(),
            flows,
            queries: vec![None; self.queries.len()],
            sequence: 0,
            trouble: Vec::new(),
        };
        stage.play(is_stopped)
    }

    /// The network at the time at which the scenario starts.
    fn network(&self, slow_motion: u32) -> Simulation {
        let (profiles, versions) = (self.profiles.clone(), self.versions.unwrap_or(Versions::Both));
        let options = SwitchOptions {
            fail_mode: FailMode::Standalone,
            versions,
            profiles,
            slow_motion,
            ..SwitchOptions::default()
        };
        if self.profiles.is_empty() {
            return Simulation::new(&self.topology, &options, self.seed);
        }
        let controller = learning_controller();
        let mut network = Simulation::with_controller(&self.topology, &options, self.seed, controller);
        network.run_for(PREPARATION.saturating_mul(slow_motion.max(1)));
        network
    }
}

/// A ping without a reply.
struct Waiting {
    until: Duration,
    purpose: Purpose,
}

struct Stage<'a> {
    scenario: &'a Scenario,
    network: Simulation,
    /// Keyed by the host that pinged, the address and the sequence number.
    waiting: BTreeMap<(usize, IpAddr, u16), Waiting>,
    /// The running rounds of pings among all hosts, each with its series.
    rounds: Vec<(usize, PingAll)>,
    flows: Vec<Option<FlowId>>,
    queries: Vec<Option<QueriesId>>,
    sequence: u16,
    trouble: Vec<String>,
}

impl Stage<'_> {
    fn play(mut self, mut is_stopped: impl FnMut() -> bool) -> Option<Rehearsal> {
        let mut play = Play::new(self.scenario);
        let mut tasks = Vec::new();
        let began = self.network.now();
        loop {
            let now = self.network.now();
            play.on_time(now - began, &mut tasks);
            for task in tasks.drain(..) {
                self.act(task, began, &mut play);
            }
            if play.is_over() {
                break;
            }
            if is_stopped() {
                return None;
            }
            let next = match self.waiting.is_empty() && self.rounds.is_empty() {
                true => play.next_at(now - began).map_or(now + SLICE, |next| began + next),
                false => now + SLICE,
            };
            self.network.run_until(self.not_too_far(next).max(now + Duration::from_nanos(1)));
            self.gather(began, &mut play);
        }
        Some(Rehearsal {
            verdicts: play.verdicts(),
            queries: play.queries(),
            trouble: self.trouble,
            counters: counters_of(&self.network),
            took: self.network.now() - began,
            digest: self.network.digest(),
            storms: self.network.storms(),
        })
    }

    /// This time, or an earlier one if much may happen until then.
    fn not_too_far(&self, next: Duration) -> Duration {
        match self.network.next_due() {
            Some(due) => next.min(due.max(self.network.now()) + LOOK),
            None => next,
        }
    }

    fn act(&mut self, task: Task, began: Duration, play: &mut Play<'_>) {
        let now = self.network.now() - began;
        match task {
            Task::Change(change) => {
                let done = self.network.change(&change);
                self.trouble.extend(done.err().map(|error| error.to_string()));
            }
            Task::Ping { purpose, from, to, timeout } => {
                self.ping(&from, &to, timeout, purpose);
            }
            Task::PingAll { series, timeout } => self.ping_all(series, timeout),
            Task::StartFlow(flow) => match self.network.start_flow(&self.scenario.flows[flow].spec) {
                Ok(id) => self.flows[flow] = Some(id),
                Err(error) => self.trouble.push(error.to_string()),
            },
            Task::ReportFlow(flow) => {
                let report = self.flows[flow].and_then(|id| {
                    let report = self.network.flow_report(id);
                    self.network.stop_flow(id);
                    report
                });
                play.on_observation(Observation::Flow { flow, report: report.map(Box::new) }, now);
            }
            Task::StartQueries(queries) => {
                match self.network.start_queries(&self.scenario.queries[queries].spec) {
                    Ok(id) => self.queries[queries] = Some(id),
                    Err(error) => self.trouble.push(error.to_string()),
                }
            }
            Task::ReportQueries(queries) => {
                let report = self.queries[queries].and_then(|id| self.network.queries_report(id));
                play.on_observation(Observation::Queries { queries, report: report.map(Box::new) }, now);
            }
            Task::LookAtSwitches => {
                let views = self.network.network().switches().iter().map(|switch| switch.view());
                play.on_observation(Observation::Switches(views.collect()), now);
            }
        }
    }

    fn ping(&mut self, from: &str, to: &str, timeout: Duration, purpose: Purpose) {
        self.sequence = self.sequence.wrapping_add(1);
        let network = self.network.network();
        let found = network.host_named(from).and_then(|from| {
            let to = network.host_named(to)?;
            Ok((from, IpAddr::V4(network.hosts()[to].address())))
        });
        match found.and_then(|place| self.network.ping(from, to, self.sequence).map(|()| place)) {
            Ok((host, address)) => {
                let until = self.network.now() + timeout;
                self.waiting.insert((host, address, self.sequence), Waiting { until, purpose });
            }
            Err(error) => self.trouble.push(error.to_string()),
        }
    }

    fn ping_all(&mut self, series: usize, timeout: Duration) {
        let hosts = self.network.network().hosts().len();
        let round = PingAll::new(hosts, timeout, self.sequence.wrapping_add(1));
        self.sequence = round.next_sequence();
        self.rounds.push((series, round));
        self.go_on_pinging();
    }

    /// Gives up late pings of rounds, and sends the next ones.
    fn go_on_pinging(&mut self) {
        let Stage { network, rounds, .. } = self;
        network.act(|network, now, effects| {
            for (_, round) in rounds {
                round.give_up(network, now);
                round.send(network, now, effects);
            }
        });
    }

    /// Tells the play which pings were answered, and which are lost.
    fn gather(&mut self, began: Duration, play: &mut Play<'_>) {
        let (real, now) = (self.network.now(), self.network.now() - began);
        for (host, reply) in self.network.take_replies() {
            match self.waiting.remove(&(host, reply.from, reply.sequence)) {
                Some(Waiting { purpose, .. }) => {
                    play.on_observation(
                        Observation::Pinged { purpose, round_trip: Some(reply.round_trip) },
                        now,
                    );
                }
                // A reply to a ping of a round, which takes it itself, or a reply that is too late.
                None => {
                    let _ = self.rounds.iter_mut().find_map(|(_, round)| round.on_reply(host, &reply));
                }
            }
        }
        self.waiting.retain(|_, Waiting { until, purpose }| {
            let is_lost = *until <= real;
            if is_lost {
                play.on_observation(Observation::Pinged { purpose: *purpose, round_trip: None }, now);
            }
            !is_lost
        });
        self.go_on_pinging();
        self.rounds.retain(|(series, round)| {
            if round.is_done() {
                let (sent, answered) = (round.pings(), round.answered());
                play.on_observation(Observation::PingedAll { series: *series, sent, answered }, now);
            }
            !round.is_done()
        });
    }
}

/// The counters of all switches together.
fn counters_of(network: &Simulation) -> SwitchCounters {
    network.network().switches().iter().map(|switch| switch.counters()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn scenario(text: &str) -> Scenario {
        let name = format!("burnet-rehearsal-{}-{}.toml", std::process::id(), text.len());
        let file = std::env::temp_dir().join(name);
        std::fs::write(&file, text).unwrap();
        let scenario = Scenario::read(Path::new(&file)).unwrap();
        std::fs::remove_file(file).unwrap();
        scenario
    }

    const A_DAY: &str = "topology = \"linear,3\"\ntime = \"virtual\"\nlinks = \"delay=1ms,loss=2%\"\n\
        [[event]]\nat = \"0s\"\nping_all = { name = \"first\" }\n\
        [[event]]\nat = \"600min\"\nping = { name = \"p\", from = \"h1\", to = \"h3\", count = 100, every = \"1s\" }\n\
        [[event]]\nat = \"1200min\"\nlink_down = \"s1-s2\"\n\
        [[expect]]\nat = \"1201min\"\nno_ping = { from = \"h1\", to = \"h2\" }\n\
        [[expect]]\npings = \"p\"\nlost_percent = { min = 1, max = 40 }\n\
        [[expect]]\nat = \"1201min\"\nport = \"s1-eth2\"\nstate = \"down\"\n";

    #[test]
    fn most_of_a_day_takes_no_time_and_a_seed_repeats_it() {
        let seeded = |seed: u64| scenario(&format!("seed = {seed}\n{A_DAY}")).rehearse(1, || false).unwrap();
        let day = seeded(1);
        assert!(day.verdicts.iter().all(|verdict| verdict.held), "{:#?}", day.verdicts);
        assert!(day.took >= Duration::from_secs(1201 * 60) && day.trouble.is_empty(), "{day:?}");
        assert_eq!(day, seeded(1));
        assert_ne!(day.digest, seeded(2).digest);
    }

    #[test]
    fn a_host_that_is_alone_has_nobody_to_ping_and_the_scenario_ends() {
        let alone = "topology = \"single,1\"\ntime = \"virtual\"\n[[event]]\nat = \"1s\"\nping_all = {}\n";
        let mut slices = 0;
        let alone = scenario(alone).rehearse(1, || {
            slices += 1;
            slices > 1000
        });
        assert!(alone.is_some_and(|alone| alone.took < Duration::from_secs(2)));
    }

    #[test]
    fn who_is_told_to_stop_does_so_within_a_step_and_not_only_between_them() {
        let busy = "topology = \"single,2\"\ntime = \"virtual\"\n[[event]]\nat = \"0s\"\n\
                    flow = { from = \"h1\", to = \"h2\", kind = \"udp\", rate = \"100k\", for = \"60min\" }\n";
        let mut looks = 0;
        let stopped = scenario(busy).rehearse(1, || {
            looks += 1;
            looks > 10
        });
        assert_eq!((stopped, looks), (None, 11));
    }

    #[test]
    fn all_hosts_ping_all_others() {
        let all = "topology = \"linear,6\"\ntime = \"virtual\"\nlinks = \"delay=1ms\"\n[[event]]\nat = \"0s\"\nping_all = {}\n\
                   [[expect]]\npings = \"ping_all\"\nlost_percent = { max = 0 }\n";
        let all = scenario(all).rehearse(1, || false).unwrap();
        assert!(all.verdicts[0].held && all.verdicts[0].found.contains("0 of 30 lost"), "{all:?}");
    }

    #[test]
    fn flows_share_a_link_in_virtual_time_too() {
        let shared = include_str!("../../../../examples/shared-bottleneck/scenario.toml");
        let shared = scenario(&format!("time = \"virtual\"\n{shared}")).rehearse(1, || false).unwrap();
        assert!(shared.verdicts.iter().all(|verdict| verdict.held), "{:#?}", shared.verdicts);
    }

    /// Queries for 3 s at a switch, and how long their median takes, in milliseconds.
    fn median_ms(keys: &str, slow_motion: u32) -> (f64, SwitchCounters) {
        let text = format!(
            "topology = \"single,2\"\ntime = \"virtual\"\n{keys}\n[[event]]\nat = \"0s\"\n\
             queries = {{ name = \"q\", from = \"h1\", to = \"h2\", every = \"1s\", for = \"30s\" }}\n"
        );
        let played = scenario(&text).rehearse(slow_motion, || false).unwrap();
        let times = played.queries[0].1.completion_times(Duration::ZERO);
        let median = crate::host::query::quantile(&times, 0.5).unwrap();
        (median.as_secs_f64() * 1e3, played.counters)
    }

    #[test]
    fn switches_with_profiles_take_their_time() {
        let (without, counters) = median_ms("", 1);
        assert_eq!((without, counters.packet_ins), (0.0, 0), "there is no controller");
        // Two packet-ins and two adds of the idle switch: 2 * 26.3 ms, and 4 ms of residual delays.
        let (quanta, counters) = median_ms("profile = \"quanta-lb4g\"", 1);
        assert!(quanta > 40.0 && quanta < 80.0 && counters.packet_ins >= 60, "{quanta} ms, {counters:?}");
        let (other, _) = median_ms("[[switch]]\nname = \"s1\"\nprofile = \"quanta-lb4g\"", 1);
        assert_eq!(other, quanta);
    }

    #[test]
    fn in_slow_motion_a_switch_takes_so_many_times_as_long() {
        let [(one, _), (five, _)] = [1, 5].map(|factor| median_ms("profile = \"quanta-lb4g\"", factor));
        assert!((five / one - 5.0).abs() < 0.5, "{one} ms, and {five} ms five times slower");
    }

    #[test]
    fn a_ring_is_mended_along_its_spanning_tree() {
        let ring = "topology = \"ring,4\"\ntime = \"virtual\"\nspanning_tree = true\nlinks = \"delay=1ms\"\n\
                    [[event]]\nat = \"1s\"\nlink_down = \"s2-s3\"\n\
                    [[expect]]\nat = \"0s\"\nping = { from = \"h1\", to = \"h3\" }\n\
                    [[expect]]\nat = \"1s\"\nping = { from = \"h4\", to = \"h3\" }\n";
        let ring = scenario(ring).rehearse(1, || false).unwrap();
        assert!(ring.verdicts.iter().all(|verdict| verdict.held), "{:#?}", ring.verdicts);
        assert_eq!(ring.storms, 0);
    }
}
