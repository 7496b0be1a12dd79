//! The networks of the paper: 81, 205 and 206 switches with the paper's numbers of links, drawn from a seed.
//!
//! ```text
//!   switches, cables, seed ──> a ring and chords ──> Topology for the emulator, and shortest paths for the experiment
//! ```
//!
//! In: numbers. Out: a network, and pairs of switches with the wanted paths. The paper has no list of its links, so this
//! network has their number and no other property of them. It starts nothing.

use emulator::topology::{Endpoint, HostPlan, Link, SwitchPlan};
use emulator::{LinkQuality, Random, Topology};
use flow::{DatapathId, MacAddr, PortNo};
use std::collections::{BTreeSet, VecDeque};
use std::net::Ipv4Addr;
use view::ConnectPoint;

/// The port of each switch's host.
pub const HOST_PORT: u32 = 1;

/// A network of switches, each with one host at its port 1.
#[derive(Clone, Debug)]
pub struct Wan {
    /// The cables between switches, as indices of switches.
    pub cables: Vec<(usize, usize)>,
    switches: usize,
}

impl Wan {
    /// A ring of all switches, so that all are connected, and chords between pairs that have no cable yet.
    pub fn new(switches: usize, cables: usize, seed: u64) -> Wan {
        let mut pairs: BTreeSet<(usize, usize)> =
            (0..switches).map(|one| in_order(one, (one + 1) % switches)).collect();
        let mut random = Random::new(seed);
        let most = switches * (switches - 1) / 2;
        // An experiment has some hundred switches.
        let end = switches as u32;
        while pairs.len() < cables.min(most) {
            let (one, two) = (random.below(end) as usize, random.below(end) as usize);
            if one != two {
                pairs.insert(in_order(one, two));
            }
        }
        Wan { cables: pairs.into_iter().collect(), switches }
    }

    /// How many switches it has.
    pub fn switches(&self) -> usize {
        self.switches
    }

    /// Adds a switch with a cable to each of these two.
    pub fn add_between(&mut self, (one, two): (usize, usize)) -> usize {
        self.cables.extend([(one, self.switches), (two, self.switches)]);
        self.switches += 1;
        self.switches - 1
    }

    /// The network for the emulator. Ports count up from 2 in the order of the cables; port 1 has the host.
    pub fn topology(&self) -> Topology {
        let switch = |index: usize| SwitchPlan {
            name: format!("s{}", index + 1),
            label: String::new(),
            datapath_id: datapath(index),
            place: None,
        };
        // Networks of the paper have some hundred switches.
        let number = |index: usize| index as u32 + 1;
        let host = |index: usize| HostPlan {
            name: format!("h{}", index + 1),
            mac: MacAddr::from_u64(number(index).into()),
            address: Ipv4Addr::from(0x0a00_0000 + number(index)),
        };
        let quality = LinkQuality::default();
        let at = |index, port| Endpoint::Switch { index, port: PortNo(port) };
        let hosts = (0..self.switches).map(|index| Link {
            one: Endpoint::Host { index },
            two: at(index, HOST_PORT),
            quality,
        });
        let cables = self.ports().into_iter().map(|((one, port_of_one), (two, port_of_two))| Link {
            one: at(one, port_of_one),
            two: at(two, port_of_two),
            quality,
        });
        Topology {
            switches: (0..self.switches).map(switch).collect(),
            hosts: (0..self.switches).map(host).collect(),
            links: hosts.chain(cables).collect(),
        }
    }

    /// Both ends of each cable: a switch and its port.
    fn ports(&self) -> Vec<((usize, u32), (usize, u32))> {
        let mut used = vec![HOST_PORT; self.switches];
        let mut next = |index: usize| {
            used[index] += 1;
            (index, used[index])
        };
        self.cables.iter().map(|(one, two)| (next(*one), next(*two))).collect()
    }

    /// The ports at the ends of a cable.
    pub fn ends(&self, cable: (usize, usize)) -> Option<(ConnectPoint, ConnectPoint)> {
        let number = self.cables.iter().position(|other| *other == cable)?;
        let (one, two) = *self.ports().get(number)?;
        let at = |(index, port)| ConnectPoint { switch: datapath(index), port: PortNo(port) };
        Some((at(one), at(two)))
    }

    /// The port of a switch's host.
    pub fn edge(&self, index: usize) -> ConnectPoint {
        ConnectPoint { switch: datapath(index), port: PortNo(HOST_PORT) }
    }

    /// The shortest paths from each switch to each other, without one cable.
    pub fn paths_without(&self, missing: Option<(usize, usize)>) -> Paths {
        let mut neighbours = vec![Vec::new(); self.switches];
        for (one, two) in self.cables.iter().filter(|cable| Some(**cable) != missing) {
            neighbours[*one].push(*two);
            neighbours[*two].push(*one);
        }
        Paths { from: (0..self.switches).map(|start| search(&neighbours, start)).collect() }
    }
}

fn in_order(one: usize, two: usize) -> (usize, usize) {
    (one.min(two), one.max(two))
}

/// The name of a cable in the emulator.
pub fn cable_name((one, two): (usize, usize)) -> String {
    format!("s{}-s{}", one + 1, two + 1)
}

/// The datapath id of a switch.
pub fn datapath(index: usize) -> DatapathId {
    DatapathId(index as u64 + 1)
}

/// What is at the end of a search: a distance in links, and the number of shortest paths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reach {
    /// The distance. `None`: there is no path.
    pub links: Option<usize>,
    /// How many shortest paths there are.
    pub ways: u64,
}

/// The shortest paths between all pairs.
#[derive(Clone, Debug)]
pub struct Paths {
    from: Vec<Vec<Reach>>,
}

impl Paths {
    /// How far it is.
    pub fn reach(&self, from: usize, to: usize) -> Reach {
        self.from.get(from).and_then(|row| row.get(to)).copied().unwrap_or_default()
    }

    /// How many of the shortest paths lead over this cable, in the given direction.
    pub fn ways_over(&self, (from, to): (usize, usize), (one, two): (usize, usize)) -> u64 {
        let (before, behind) = (self.reach(from, one), self.reach(two, to));
        let length = before.links.zip(behind.links).map(|(before, behind)| before + 1 + behind);
        match length.is_some() && length == self.reach(from, to).links {
            true => before.ways * behind.ways,
            false => 0,
        }
    }
}

fn search(neighbours: &[Vec<usize>], start: usize) -> Vec<Reach> {
    let mut reached = vec![Reach::default(); neighbours.len()];
    reached[start] = Reach { links: Some(0), ways: 1 };
    let mut queue = VecDeque::from([start]);
    while let Some(at) = queue.pop_front() {
        let Reach { links: Some(links), ways } = reached[at] else { continue };
        for next in &neighbours[at] {
            match reached[*next].links {
                None => {
                    reached[*next] = Reach { links: Some(links + 1), ways };
                    queue.push_back(*next);
                }
                Some(known) if known == links + 1 => reached[*next].ways += ways,
                Some(_) => {}
            }
        }
    }
    reached
}

/// A network in which one failed cable moves flows from six switches to seven.
#[derive(Clone, Debug)]
pub struct Detour {
    /// The network: 206 switches and 416 cables.
    pub wan: Wan,
    /// The cable that fails.
    pub cable: (usize, usize),
    /// The cable of the way around it, whose failure brings the flows back.
    pub around: (usize, usize),
    /// Pairs of switches whose only shortest path has six switches and uses the cable, and whose only shortest path without it has
    /// seven.
    pub moved: Vec<(usize, usize)>,
    /// Pairs of which no shortest path uses the cable or the way around it.
    pub others: Vec<(usize, usize)>,
    /// Pairs of those whose shortest paths have six switches.
    pub six: Vec<(usize, usize)>,
}

/// The links of a path of six switches.
const LINKS_OF_SIX: usize = 5;

/// How many cables are looked at closely.
const CANDIDATES: usize = 12;

/// Draws the network: the paper's 205 switches and 414 links, and one more switch with two links as the way around the
/// cable that serves most pairs.
pub fn detour(seed: u64) -> Detour {
    let wan = Wan::new(205, 414, seed);
    let paths = wan.paths_without(None);
    let mut candidates: Vec<(usize, (usize, usize))> =
        wan.cables.iter().map(|cable| (pairs_over(&wan, &paths, *cable).len(), *cable)).collect();
    candidates.sort_unstable_by_key(|(pairs, _)| std::cmp::Reverse(*pairs));
    let found = candidates.into_iter().take(CANDIDATES).map(|(_, cable)| around(&wan, cable));
    // A network has cables.
    let mut best = found.max_by_key(|detour| detour.moved.len()).unwrap_or_else(|| around(&wan, (0, 1)));
    let mut random = Random::new(seed);
    for pairs in [&mut best.moved, &mut best.others, &mut best.six] {
        mix(pairs, &mut random);
    }
    best
}

/// Brings pairs into a random order (Fisher and Yates), so that the first ones are not all of the same switch.
fn mix(pairs: &mut [(usize, usize)], random: &mut Random) {
    for last in (1..pairs.len()).rev() {
        // There are some ten thousand pairs.
        pairs.swap(last, random.below(last as u32 + 1) as usize);
    }
}

/// The pairs whose only shortest path has six switches and uses this cable.
fn pairs_over(wan: &Wan, paths: &Paths, (one, two): (usize, usize)) -> Vec<(usize, usize)> {
    let all = (0..wan.switches()).flat_map(|from| (0..wan.switches()).map(move |to| (from, to)));
    let is_over = |pair: &(usize, usize)| {
        let reach = paths.reach(pair.0, pair.1);
        reach == Reach { links: Some(LINKS_OF_SIX), ways: 1 } && paths.ways_over(*pair, (one, two)) == 1
    };
    all.filter(is_over).collect()
}

fn around(wan: &Wan, cable: (usize, usize)) -> Detour {
    let mut wan = wan.clone();
    let by = wan.add_between(cable);
    let (before, after) = (wan.paths_without(None), wan.paths_without(Some(cable)));
    let mut moved = pairs_over(&wan, &before, cable);
    moved.retain(|(from, to)| {
        after.reach(*from, *to) == Reach { links: Some(LINKS_OF_SIX + 1), ways: 1 }
            && after.ways_over((*from, *to), (cable.0, by)) == 1
    });
    let both = |pair, one, two| before.ways_over(pair, (one, two)) + before.ways_over(pair, (two, one));
    let is_aside = |pair: &(usize, usize)| {
        pair.0 != pair.1
            && pair.0 != by
            && pair.1 != by
            && both(*pair, cable.0, cable.1) + both(*pair, cable.0, by) + both(*pair, cable.1, by) == 0
    };
    let all = (0..wan.switches()).flat_map(|from| (0..wan.switches()).map(move |to| (from, to)));
    let others: Vec<(usize, usize)> = all.filter(is_aside).collect();
    let has_six = |pair: &&(usize, usize)| before.reach(pair.0, pair.1).links == Some(LINKS_OF_SIX);
    let six = others.iter().filter(has_six).copied().collect();
    Detour { wan, cable, around: (cable.0, by), moved, others, six }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_network_has_the_papers_numbers() {
        let Detour { wan, moved, others, six, .. } = detour(1);
        assert_eq!((wan.switches(), wan.cables.len()), (206, 416));
        assert!(moved.len() >= 4, "{}", moved.len());
        assert!(others.len() > 1_000 && six.len() > 1_000);
        let topology = wan.topology();
        assert_eq!((topology.switches.len(), topology.links.len(), topology.parts()), (206, 206 + 416, 1));
    }

    #[test]
    fn paths_of_a_square_with_a_tail() {
        let wan = Wan { cables: vec![(0, 1), (1, 2), (2, 3), (0, 3), (3, 4)], switches: 5 };
        let paths = wan.paths_without(None);
        assert_eq!(paths.reach(1, 3), Reach { links: Some(2), ways: 2 });
        assert_eq!(paths.reach(1, 4), Reach { links: Some(3), ways: 2 });
        assert_eq!(paths.ways_over((1, 4), (0, 3)), 1);
        assert_eq!(paths.ways_over((1, 4), (3, 0)), 0);
        assert_eq!(paths.ways_over((1, 4), (3, 4)), 2);
        let paths = wan.paths_without(Some((0, 3)));
        assert_eq!(paths.reach(0, 4), Reach { links: Some(4), ways: 1 });
        let (one, two) = wan.ends((0, 3)).unwrap();
        assert_eq!(
            (one.to_string(), two.to_string()),
            ("of:0000000000000001/3".into(), "of:0000000000000004/3".into())
        );
    }
}
