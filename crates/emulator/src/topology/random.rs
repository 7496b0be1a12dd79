//! A random network: connected, without parallel links, and the same for the same seed on every machine.

use std::collections::BTreeSet;

use super::Topology;
use super::bounds::{NotATopology, Size};
use super::plan::{Node, Plan};
use crate::random::Random;

impl Topology {
    /// `switches` switches with one host each. The number of links gives a switch this degree on average, rounded
    /// down to whole links; hosts do not count. A random tree comes first, so that the network is connected. The
    /// other links are drawn from all pairs.
    ///
    /// # Errors
    ///
    /// There are less than two switches. Or the degree is below 2 (1 for two switches) or above that of all pairs. Or
    /// the network exceeds [`SWITCHES_MAX`](super::SWITCHES_MAX) or [`LINKS_MAX`](super::LINKS_MAX).
    pub fn random(switches: usize, degree: usize, seed: u64) -> Result<Topology, NotATopology> {
        let text = format!("random,{switches},{degree},{seed}");
        if switches < 2 {
            return Err(NotATopology::new(&text, "it has 2 switches or more"));
        }
        let trunks = switches.checked_mul(degree).map(|ends| ends / 2);
        let links = trunks.and_then(|trunks| trunks.checked_add(switches));
        Size { switches: Some(switches), hosts: Some(switches), links }.check(&text)?;
        let least = if switches == 2 { 1 } else { 2 };
        if degree < least || degree >= switches {
            let why = format!("the degree is between {least} and {}", switches - 1);
            return Err(NotATopology::new(&text, why));
        }
        Ok(random(switches, trunks.unwrap_or_default(), seed))
    }
}

fn random(switches: usize, trunks: usize, seed: u64) -> Topology {
    let mut plan = Plan::default();
    for number in 1..=switches {
        let switch = plan.switch();
        let host = plan.host(format!("h{number}"));
        plan.link(host, switch);
    }
    let mut draw = Random::new(seed);
    let mut pairs = BTreeSet::new();
    for new in 1..switches {
        pairs.insert((below(&mut draw, new), new));
    }
    // In the worst case, all pairs of 362 switches, the last pair is found after some hundred thousand draws.
    while pairs.len() < trunks {
        let (one, two) = (below(&mut draw, switches), below(&mut draw, switches));
        if one != two {
            pairs.insert((one.min(two), one.max(two)));
        }
    }
    pairs.iter().for_each(|(one, two)| plan.link(Node::Switch(*one), Node::Switch(*two)));
    plan.finish()
}

/// An index below a bound that [`SWITCHES_MAX`](super::SWITCHES_MAX) keeps small.
fn below(draw: &mut Random, bound: usize) -> usize {
    draw.below(u32::try_from(bound).unwrap_or(u32::MAX)) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_seed_draws_one_network_and_another_seed_another() {
        let draw = |seed| Topology::random(20, 4, seed).unwrap();
        assert_eq!(draw(7), draw(7));
        assert_ne!(draw(7), draw(8));
    }

    #[test]
    fn all_pairs_can_be_asked_for() {
        assert_eq!(Topology::random(30, 29, 1).unwrap().links.len(), 30 + 30 * 29 / 2);
        assert_eq!(Topology::random(2, 1, 1).unwrap().links.len(), 3);
    }

    proptest! {
        #[test]
        fn it_is_connected_without_parallel_links(switches in 3usize..60, degree in 2usize..10, seed: u64) {
            let degree = degree.min(switches - 1);
            let network = Topology::random(switches, degree, seed).unwrap();
            prop_assert_eq!(network.parts(), 1);
            prop_assert_eq!(network.links.len(), switches + switches * degree / 2);
            let ends: BTreeSet<_> = network
                .links
                .iter()
                .map(|link| {
                    let (one, two) = (network.owner(link.one), network.owner(link.two));
                    (one.min(two), one.max(two))
                })
                .collect();
            prop_assert_eq!(ends.len(), network.links.len());
        }
    }
}
