//! The app with random networks whose links fail and heal: switches that do what it commands, and packets that go through them.
//!
//! In: a random graph, and random failures. Out: nothing; a packet that is lost, doubled or goes in circles fails. Whether there is a path is
//! decided by the graph alone.

use super::*;
use proptest::prelude::*;
use std::collections::{BTreeSet, HashMap};

const HOST_PORT: u32 = 1;
/// A packet that passes more switches goes in circles: no path has more than one entry of each of its ports.
const STEPS_MAX: usize = 100;

/// Which ports a link joins, and whether it works.
struct Cable {
    ends: [ConnectPoint; 2],
    is_up: bool,
}

/// What a switch matches: the port, the source and the destination.
type Match = (ConnectPoint, u64, u64);

struct Network {
    trial: Trial<Forwarding>,
    switches: u64,
    cables: Vec<Cable>,
    rules: HashMap<Match, u32>,
}

impl Network {
    /// Switches in a line, with further links between some of them; a host at each.
    fn new(switches: u64, further: &[(u64, u64)]) -> Network {
        let mut next_port: HashMap<u64, u32> = HashMap::new();
        let mut end = |switch: u64| {
            let number = next_port.entry(switch).or_insert(HOST_PORT);
            *number += 1;
            point(switch, *number)
        };
        let line = (1..switches).map(|switch| (switch, switch + 1));
        let further =
            further.iter().map(|(a, b)| (a % switches + 1, b % switches + 1)).filter(|(a, b)| a != b);
        let pairs: Vec<_> = line.chain(further).collect();
        let cables: Vec<_> =
            pairs.into_iter().map(|(a, b)| Cable { ends: [end(a), end(b)], is_up: true }).collect();
        let mut trial = Trial::start("{}").unwrap();
        let at_edge = (1..=switches).map(|switch| point(switch, HOST_PORT));
        let ports: Vec<_> = at_edge.chain(cables.iter().flat_map(|cable| cable.ends)).map(port).collect();
        trial.view_put((1..=switches).map(switch).chain(ports));
        trial.view_put(cables.iter().flat_map(|cable| cable.objects()));
        trial.view_put((1..=switches).map(|number| host(number, point(number, HOST_PORT))));
        Network { trial, switches, cables, rules: HashMap::new() }
    }

    fn toggle(&mut self, index: usize) {
        let count = self.cables.len();
        let cable = &mut self.cables[index % count];
        cable.is_up = !cable.is_up;
        let commands = self.trial.view_put(cable.objects());
        self.obey(&commands);
    }

    /// Where a frame arrives that leaves here. `None`: a link that has failed.
    fn across(&self, from: ConnectPoint) -> Option<ConnectPoint> {
        let has = |cable: &&Cable| cable.ends.contains(&from);
        let cable = self.cables.iter().find(has).filter(|cable| cable.is_up)?;
        cable.ends.into_iter().find(|end| *end != from)
    }

    /// Does what the app commands, and gives the ports that it sends the packet to.
    fn obey(&mut self, commands: &[String]) -> Vec<ConnectPoint> {
        let mut sent = Vec::new();
        for command in commands {
            let words: Vec<_> = command.split(' ').collect();
            let switch = u64::from_str_radix(&words[1][3..], 16).unwrap();
            let of_match = || {
                let text =
                    words.iter().find_map(|word| word.strip_prefix("match=[")).unwrap().trim_end_matches(']');
                let value =
                    |entry: &str| u64::from_str_radix(entry.split_once("=0x").unwrap().1, 16).unwrap();
                let [port, src, dst] = text.split(',').map(value).collect::<Vec<_>>().try_into().unwrap();
                (point(switch, u32::try_from(port).unwrap()), src, dst)
            };
            let outputs = || {
                let text = words.last().unwrap().strip_prefix("actions=[").unwrap().trim_end_matches(']');
                text.split(',')
                    .map(|one| one.strip_prefix("output:").unwrap().parse::<u32>().unwrap())
                    .collect::<Vec<_>>()
            };
            match words[0] {
                "add-rule" => drop(self.rules.insert(of_match(), outputs()[0])),
                "delete-strict-rule" => drop(self.rules.remove(&of_match())),
                "packet-out" => sent.extend(outputs().into_iter().map(|port| point(switch, port))),
                other => panic!("{other}"),
            }
        }
        sent
    }

    /// The hosts that receive a frame of a host.
    fn send(&mut self, src: u64, dst: u64) -> Vec<u64> {
        let (mut under_way, mut received) = (vec![point(src, HOST_PORT)], Vec::new());
        for _ in 0..STEPS_MAX {
            let Some(at) = under_way.pop() else { return received };
            let exits = match self.rules.get(&(at, src, dst)) {
                Some(port) => vec![point(at.switch.0, *port)],
                None => {
                    let commands = self.trial.packet_in(at.switch.0, at.port.0, &frame(src, dst));
                    self.obey(&commands)
                }
            };
            for exit in exits {
                match exit.port.0 {
                    HOST_PORT => received.push(exit.switch.0),
                    _ => under_way.extend(self.across(exit)),
                }
            }
        }
        panic!("from {src} to {dst}: the packet goes in circles");
    }

    /// The switches that can be reached from here.
    fn reachable(&self, from: u64) -> BTreeSet<u64> {
        let (mut reached, mut waiting) = (BTreeSet::from([from]), vec![from]);
        while let Some(switch) = waiting.pop() {
            for cable in self.cables.iter().filter(|cable| cable.is_up) {
                let [a, b] = cable.ends.map(|end| end.switch.0);
                let others = [(a, b), (b, a)].into_iter().filter(|(here, _)| *here == switch);
                waiting.extend(others.map(|(_, there)| there).filter(|there| reached.insert(*there)));
            }
        }
        reached
    }

    fn check_all_pairs(&mut self) {
        for src in 1..=self.switches {
            let reachable = self.reachable(src);
            for dst in (1..=self.switches).filter(|dst| *dst != src) {
                let received = self.send(src, dst);
                if reachable.contains(&dst) {
                    assert_eq!(received, [dst], "from {src} to {dst}");
                    assert!(self.rules.contains_key(&(point(src, HOST_PORT), src, dst)), "no rule");
                }
            }
        }
    }

    fn check_broadcast(&mut self, src: u64) {
        let mut received = self.send(src, 0);
        received.sort_unstable();
        let others: Vec<_> = (1..=self.switches).filter(|host| *host != src).collect();
        assert_eq!(received, others, "each host receives a broadcast once");
    }
}

impl Cable {
    fn objects(&self) -> [Object; 2] {
        let [a, b] = self.ends;
        let state = if self.is_up { LinkState::Up } else { LinkState::Down };
        [link(a, b, state), link(b, a, state)]
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn every_packet_arrives_once_whatever_fails(
        switches in 2..9u64,
        further in prop::collection::vec((0..8u64, 0..8u64), 0..8),
        failures in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
    ) {
        let mut network = Network::new(switches, &further);
        network.check_all_pairs();
        network.check_broadcast(1);
        for failure in failures {
            network.toggle(failure.index(network.cables.len()));
            network.check_all_pairs();
            network.check_broadcast(switches);
        }
    }
}
