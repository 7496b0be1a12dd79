//! What the demo of a wide area network does with its network: names, intents, and which link fails next.
//!
//! In: a topology. Out: the same with rates, pairs of hosts for intents, names, ids of links in the network view. Pure.

use emulator::Topology;
use emulator::topology::Endpoint;
use std::collections::BTreeMap;

/// The rate of the links between switches, so that the traffic of the demo can be seen on them.
const LINK_BITS_PER_S: u64 = 10_000_000;

/// A network, and what the demo calls its parts.
pub(super) struct Wan {
    pub topology: Topology,
    /// The name of each switch: a place.
    names: Vec<String>,
}

/// Two hosts that an intent connects, by their indices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pair {
    pub name: String,
    pub one: usize,
    pub two: usize,
    pub is_protected: bool,
}

impl Wan {
    /// Gives the links between switches a rate, and each switch a name.
    pub fn new(mut topology: Topology) -> Wan {
        for link in &mut topology.links {
            if matches!((link.one, link.two), (Endpoint::Switch { .. }, Endpoint::Switch { .. })) {
                link.quality.rate_bits_per_s.get_or_insert(LINK_BITS_PER_S);
            }
        }
        let names = names(&topology);
        Wan { topology, names }
    }

    /// The name of each switch, in the order of the topology.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The links between switches, by their indices.
    pub fn trunks(&self) -> Vec<usize> {
        (0..self.topology.links.len()).filter(|link| self.ends(*link).is_some()).collect()
    }

    /// The switch and the port at both ends of a link between switches.
    fn ends(&self, link: usize) -> Option<[(usize, u32); 2]> {
        let link = self.topology.links.get(link)?;
        match (link.one, link.two) {
            (Endpoint::Switch { index: one, port: out }, Endpoint::Switch { index: two, port: back }) => {
                Some([(one, out.0), (two, back.0)])
            }
            _ => None,
        }
    }

    /// Hosts at opposite halves of the list of switches. Every other pair is protected, if both of its switches have two links.
    pub fn pairs(&self) -> Vec<Pair> {
        let half = self.topology.hosts.len() / 2;
        let mut protects = false;
        let pair = |one: usize| {
            let two = one + half;
            let (from, to) = (self.switch_of(one)?, self.switch_of(two)?);
            let can_be = self.trunks_of(from) > 1 && self.trunks_of(to) > 1;
            protects ^= can_be;
            let name = format!("{} – {}", self.names[from], self.names[to]);
            Some(Pair { name, one, two, is_protected: can_be && protects })
        };
        (0..half).filter_map(pair).collect()
    }

    fn switch_of(&self, host: usize) -> Option<usize> {
        let at_host = Endpoint::Host { index: host };
        self.topology.links.iter().find_map(|link| match (link.one, link.two) {
            (Endpoint::Switch { index, .. }, end) | (end, Endpoint::Switch { index, .. })
                if end == at_host =>
            {
                Some(index)
            }
            _ => None,
        })
    }

    fn trunks_of(&self, switch: usize) -> usize {
        let is_at = |link: &usize| {
            self.ends(*link).is_some_and(|ends| ends.iter().any(|(index, _)| *index == switch))
        };
        (0..self.topology.links.len()).filter(is_at).count()
    }

    /// The name of a link between switches: `Vienna – Frankfurt`.
    pub fn link_name(&self, link: usize) -> String {
        self.ends(link)
            .map(|[(one, _), (two, _)]| format!("{} – {}", self.names[one], self.names[two]))
            .unwrap_or_default()
    }

    /// The ids of both directions of a link in the network view.
    pub fn link_ids(&self, link: usize) -> Vec<String> {
        let Some([one, two]) = self.ends(link) else { return Vec::new() };
        let point =
            |(switch, port): (usize, u32)| format!("{}/{port}", self.topology.switches[switch].datapath_id);
        vec![format!("{}-{}", point(one), point(two)), format!("{}-{}", point(two), point(one))]
    }

    /// Whether all hosts still reach each other without this link.
    fn can_fail(&self, link: usize) -> bool {
        let mut rest = self.topology.clone();
        rest.links.remove(link);
        rest.parts() == 1
    }

    /// The link that fails next: the one with the most intents among those that can fail and did not fail lately.
    pub fn next_failure(&self, intents_over: impl Fn(usize) -> usize, lately: &[usize]) -> Option<usize> {
        let candidates =
            self.trunks().into_iter().filter(|link| !lately.contains(link) && self.can_fail(*link));
        candidates.max_by_key(|link| (intents_over(*link), std::cmp::Reverse(*link)))
    }
}

/// The labels of the switches. If several have the same, the later ones get a number.
fn names(topology: &Topology) -> Vec<String> {
    let mut used: BTreeMap<&str, usize> = BTreeMap::new();
    let mut names = Vec::new();
    for switch in &topology.switches {
        let times = used.entry(&switch.label).or_default();
        *times += 1;
        names.push(match (switch.label.as_str(), *times) {
            ("", _) => switch.name.clone(),
            (label, 1) => label.to_owned(),
            (label, times) => format!("{label} {times}"),
        });
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wan() -> Wan {
        Wan::new(Topology::zoo("BtEurope", true).unwrap())
    }

    #[test]
    fn every_switch_has_a_name_of_its_own() {
        let wan = wan();
        let names: std::collections::BTreeSet<_> = wan.names().iter().collect();
        assert_eq!(names.len(), 22);
        assert_eq!([&wan.names()[14], &wan.names()[15]], ["London", "London 2"]);
        assert_eq!(Wan::new("ring,3".parse().unwrap()).names(), ["s1", "s2", "s3"]);
    }

    #[test]
    fn hosts_are_connected_in_pairs_and_some_are_protected() {
        let pairs = wan().pairs();
        let protected: Vec<_> =
            pairs.iter().filter(|pair| pair.is_protected).map(|pair| pair.name.as_str()).collect();
        assert_eq!(pairs.len(), 11);
        assert_eq!(protected, ["Budapest – Madrid", "Dusseldorf – London 2", "Milan – Amsterdam"]);
        let used: std::collections::BTreeSet<_> =
            pairs.iter().flat_map(|pair| [pair.one, pair.two]).collect();
        assert_eq!(used.len(), 22, "each host is in one pair");
    }

    #[test]
    fn a_link_that_would_cut_the_network_never_fails() {
        let wan = wan();
        let named = |name: &str| wan.trunks().into_iter().find(|link| wan.link_name(*link) == name).unwrap();
        let (only_way, other) = (named("Helsinki – Stockholm"), named("Prague – London"));
        let chosen = |most: usize, lately: &[usize]| {
            wan.next_failure(|link| if link == most { 9 } else { usize::from(link == other) }, lately)
        };
        assert_ne!(chosen(only_way, &[]), Some(only_way));
        assert_eq!(chosen(other, &[]), Some(other));
        assert_ne!(chosen(other, &[other]), Some(other), "it failed lately");
    }

    #[test]
    fn a_link_has_an_id_for_each_direction() {
        let wan = Wan::new("linear,2".parse().unwrap());
        let trunk = wan.trunks()[0];
        let ids = wan.link_ids(trunk);
        assert!(ids.contains(&"of:0000000000000001/2-of:0000000000000002/2".to_owned()), "{ids:?}");
        assert_eq!(ids.len(), 2);
        assert!(
            wan.topology.links.iter().enumerate().all(|(at, link)| {
                (at == trunk) == (link.quality.rate_bits_per_s == Some(LINK_BITS_PER_S))
            })
        );
        assert_eq!(wan.next_failure(|_| 1, &[]), None);
    }
}
