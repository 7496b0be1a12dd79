//! A scenario in virtual time: hours take seconds, and the same seed gives the same history to the byte.
//!
//! In: a scenario. Out: what became of its expectations, and a digest of all that happened. There is no controller, since one over
//! TCP would answer when it likes: each switch is a learning switch of its own, as it is without a controller.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

use super::Scenario;
use super::expectation::Verdict;
use super::play::{Doing, Found, Play, Purpose};
use crate::network::FlowId;
use crate::simulation::Simulation;
use crate::switch::{FailMode, SwitchOptions};

/// How exactly replies are timed.
const SLICE: Duration = Duration::from_millis(1);

/// What became of a scenario.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rehearsal {
    /// Of its expectations, in the order of its file.
    pub verdicts: Vec<Verdict>,
    /// What could not be done, a sentence each.
    pub trouble: Vec<String>,
    /// How long it took in its own time.
    pub took: Duration,
    /// Stands for all that happened: the same for the same scenario.
    pub digest: u64,
    /// How often frames went in circles.
    pub storms: u64,
}

impl Scenario {
    /// Plays it in virtual time.
    pub fn rehearse(&self) -> Rehearsal {
        let options = SwitchOptions { fail_mode: FailMode::Standalone, ..SwitchOptions::default() };
        let mut network = Simulation::new(&self.topology, &options, self.seed);
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
            sequence: 0,
            trouble: Vec::new(),
        };
        stage.play()
    }
}

/// A ping that is on its way.
struct Waiting {
    until: Duration,
    what: Pinged,
}

#[derive(Clone, Copy)]
enum Pinged {
    One(Purpose),
    /// Of a round among all hosts, by its index.
    Round(usize),
}

/// Pings among all hosts.
struct Round {
    series: usize,
    sent: usize,
    answered: usize,
    left: usize,
}

struct Stage<'a> {
    scenario: &'a Scenario,
    network: Simulation,
    /// By the host that pinged, the address and the number.
    waiting: BTreeMap<(usize, IpAddr, u16), Waiting>,
    rounds: Vec<Round>,
    flows: Vec<Option<FlowId>>,
    sequence: u16,
    trouble: Vec<String>,
}

impl Stage<'_> {
    fn play(mut self) -> Rehearsal {
        let mut play = Play::new(self.scenario);
        let mut doings = Vec::new();
        loop {
            let now = self.network.now();
            play.on_time(now, &mut doings);
            for doing in doings.drain(..) {
                self.act(doing, &mut play);
            }
            if play.is_over() {
                break;
            }
            let next = match self.waiting.is_empty() {
                true => play.next_at(now).unwrap_or(now + SLICE),
                false => now + SLICE,
            };
            self.network.run_until(next.max(now + Duration::from_nanos(1)));
            self.gather(&mut play);
        }
        Rehearsal {
            verdicts: play.verdicts(),
            trouble: self.trouble,
            took: self.network.now(),
            digest: self.network.digest(),
            storms: self.network.storms(),
        }
    }

    fn act(&mut self, doing: Doing, play: &mut Play<'_>) {
        let now = self.network.now();
        match doing {
            Doing::Change(change) => {
                let done = self.network.change(&change);
                self.trouble.extend(done.err().map(|error| error.to_string()));
            }
            Doing::Ping { purpose, from, to, timeout } => {
                self.ping(&from, &to, timeout, Pinged::One(purpose));
            }
            Doing::PingAll { series, timeout } => self.ping_all(series, timeout),
            Doing::StartFlow(flow) => match self.network.start_flow(&self.scenario.flows[flow].spec) {
                Ok(id) => self.flows[flow] = Some(id),
                Err(error) => self.trouble.push(error.to_string()),
            },
            Doing::ReportFlow(flow) => {
                let report = self.flows[flow].and_then(|id| {
                    let report = self.network.flow_report(id);
                    self.network.stop_flow(id);
                    report
                });
                play.on_found(Found::Flow { flow, report: report.map(Box::new) }, now);
            }
            Doing::LookAtSwitches => {
                let views = self.network.network().switches().iter().map(|switch| switch.view());
                play.on_found(Found::Switches(views.collect()), now);
            }
        }
    }

    fn ping(&mut self, from: &str, to: &str, timeout: Duration, what: Pinged) {
        self.sequence = self.sequence.wrapping_add(1);
        let network = self.network.network();
        let found = network.host_named(from).and_then(|from| {
            let to = network.host_named(to)?;
            Ok((from, IpAddr::V4(network.hosts()[to].address())))
        });
        match found.and_then(|place| self.network.ping(from, to, self.sequence).map(|()| place)) {
            Ok((host, address)) => {
                let until = self.network.now() + timeout;
                self.waiting.insert((host, address, self.sequence), Waiting { until, what });
            }
            Err(error) => self.trouble.push(error.to_string()),
        }
    }

    fn ping_all(&mut self, series: usize, timeout: Duration) {
        let names: Vec<String> =
            self.network.network().hosts().iter().map(|host| host.name().to_owned()).collect();
        let round = self.rounds.len();
        let pairs = names.len() * names.len().saturating_sub(1);
        self.rounds.push(Round { series, sent: pairs, answered: 0, left: pairs });
        for from in &names {
            for to in names.iter().filter(|to| *to != from) {
                self.ping(from, to, timeout, Pinged::Round(round));
            }
        }
    }

    /// Tells the play which pings have come back, and which are lost.
    fn gather(&mut self, play: &mut Play<'_>) {
        let now = self.network.now();
        for (host, reply) in self.network.take_replies() {
            if let Some(waiting) = self.waiting.remove(&(host, reply.from, reply.sequence)) {
                self.tell(waiting.what, Some(reply.round_trip), play);
            }
        }
        let lost: Vec<_> =
            self.waiting.iter().filter(|(_, ping)| ping.until <= now).map(|(key, _)| *key).collect();
        for key in lost {
            if let Some(waiting) = self.waiting.remove(&key) {
                self.tell(waiting.what, None, play);
            }
        }
    }

    fn tell(&mut self, what: Pinged, round_trip: Option<Duration>, play: &mut Play<'_>) {
        let now = self.network.now();
        match what {
            Pinged::One(purpose) => play.on_found(Found::Pinged { purpose, round_trip }, now),
            Pinged::Round(index) => {
                let round = &mut self.rounds[index];
                round.left -= 1;
                round.answered += usize::from(round_trip.is_some());
                if round.left == 0 {
                    let Round { series, sent, answered, .. } = *round;
                    play.on_found(Found::PingedAll { series, sent, answered }, now);
                }
            }
        }
    }
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
        let seeded = |seed: u64| scenario(&format!("seed = {seed}\n{A_DAY}")).rehearse();
        let day = seeded(1);
        assert!(day.verdicts.iter().all(|verdict| verdict.held), "{:#?}", day.verdicts);
        assert!(day.took >= Duration::from_secs(1201 * 60) && day.trouble.is_empty(), "{day:?}");
        assert_eq!(day, seeded(1));
        assert_ne!(day.digest, seeded(2).digest);
    }

    #[test]
    fn flows_share_a_link_in_virtual_time_too() {
        let shared = include_str!("../../../../examples/shared-bottleneck/scenario.toml");
        let shared = scenario(&format!("time = \"virtual\"\n{shared}")).rehearse();
        assert!(shared.verdicts.iter().all(|verdict| verdict.held), "{:#?}", shared.verdicts);
    }

    #[test]
    fn a_ring_is_mended_along_its_spanning_tree() {
        let ring = "topology = \"ring,4\"\ntime = \"virtual\"\nspanning_tree = true\nlinks = \"delay=1ms\"\n\
                    [[event]]\nat = \"1s\"\nlink_down = \"s2-s3\"\n\
                    [[expect]]\nat = \"0s\"\nping = { from = \"h1\", to = \"h3\" }\n\
                    [[expect]]\nat = \"1s\"\nping = { from = \"h4\", to = \"h3\" }\n";
        let ring = scenario(ring).rehearse();
        assert!(ring.verdicts.iter().all(|verdict| verdict.held), "{:#?}", ring.verdicts);
        assert_eq!(ring.storms, 0);
    }
}
