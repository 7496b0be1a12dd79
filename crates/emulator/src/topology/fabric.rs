//! Shapes of data centres: fat tree, and leaf and spine.

use flow::{DatapathId, MacAddr};
use std::net::Ipv4Addr;

use super::Topology;
use super::bounds::{NotATopology, Size};
use super::plan::{Node, Plan};

impl Topology {
    /// The k-ary fat tree of Al-Fares, Loukissas and Vahdat (SIGCOMM 2008): k pods, each of k/2 edge and k/2 aggregation
    /// switches, (k/2)² core switches, and k/2 hosts at each edge switch.
    ///
    /// Addresses are the paper's, and the numbers in a name are those of the address. Edge switch `e1x0` is 10.1.0.1,
    /// aggregation switch `a1x2` 10.1.2.1, core switch `c1x2` 10.k.1.2. The last three octets are the datapath id.
    /// Host `h1x0x2` is 10.1.0.2, behind `e1x0`. In a pod, ports 1 to k/2 go down and k/2+1 to k go up. Port p+1 of a
    /// core switch goes to pod p.
    ///
    /// # Errors
    ///
    /// k is odd or 0, or the network exceeds [`SWITCHES_MAX`](super::SWITCHES_MAX) or
    /// [`HOSTS_MAX`](super::HOSTS_MAX).
    pub fn fat_tree(k: usize) -> Result<Topology, NotATopology> {
        let text = format!("fattree,{k}");
        if k == 0 || !k.is_multiple_of(2) {
            return Err(NotATopology::new(
                &text,
                "the number of a switch's ports has to be even, and 2 or more",
            ));
        }
        let half = k / 2;
        let core = half.checked_mul(half);
        let in_pods = k.checked_mul(k);
        let hosts = core.and_then(|core| core.checked_mul(k));
        let switches = core.zip(in_pods).and_then(|(core, in_pods)| core.checked_add(in_pods));
        // There are as many links between hosts and edge as between edge and aggregation, and between aggregation and
        // core.
        let links = hosts.and_then(|hosts| hosts.checked_mul(3));
        Size { switches, hosts, links }.check(&text)?;
        Ok(fat_tree(k, half))
    }

    /// Leaf and spine: every leaf has a link to every spine, and `hosts_each` hosts. Leaf `l1` has datapath id 1; the
    /// ids of the spines (`p1` …) follow those of the leaves. A leaf's first ports go to its hosts, the next ones to
    /// the spines in order.
    ///
    /// # Errors
    ///
    /// A number is zero, or the network exceeds [`SWITCHES_MAX`](super::SWITCHES_MAX),
    /// [`HOSTS_MAX`](super::HOSTS_MAX) or [`LINKS_MAX`](super::LINKS_MAX).
    pub fn leaf_spine(leaves: usize, spines: usize, hosts_each: usize) -> Result<Topology, NotATopology> {
        let text = format!("leafspine,{leaves},{spines},{hosts_each}");
        let hosts = leaves.checked_mul(hosts_each);
        let trunks = leaves.checked_mul(spines);
        let links = hosts.zip(trunks).and_then(|(hosts, trunks)| hosts.checked_add(trunks));
        let switches = if spines == 0 { Some(0) } else { leaves.checked_add(spines) };
        Size { switches, hosts, links }.check(&text)?;
        let mut plan = Plan::default();
        for leaf in 1..=leaves {
            let switch = plan.switch_as(format!("l{leaf}"), DatapathId(leaf as u64));
            for _ in 0..hosts_each {
                let host = format!("h{}", plan.hosts() + 1);
                let host = plan.host(host);
                plan.link(host, switch);
            }
        }
        for spine in 1..=spines {
            let switch = plan.switch_as(format!("p{spine}"), DatapathId((leaves + spine) as u64));
            (0..leaves).for_each(|leaf| plan.link(Node::Switch(leaf), switch));
        }
        Ok(plan.finish())
    }
}

/// The last three octets of an address in the paper, as a datapath id.
fn datapath_id(second: usize, third: usize, fourth: usize) -> DatapathId {
    DatapathId((second << 16 | third << 8 | fourth) as u64)
}

fn fat_tree(k: usize, half: usize) -> Topology {
    let mut plan = Plan::default();
    let pod_switch = |pod: usize, switch: usize| Node::Switch(pod * k + switch);
    for pod in 0..k {
        for switch in 0..k {
            let level = if switch < half { 'e' } else { 'a' };
            plan.switch_as(format!("{level}{pod}x{switch}"), datapath_id(pod, switch, 1));
        }
    }
    for (pod, edge) in pairs(k, half) {
        for host in 2..half + 2 {
            // HOSTS_MAX keeps k, and thus every octet, below 41.
            let address = Ipv4Addr::from(0x0a00_0000 | (pod << 16 | edge << 8 | host) as u32);
            let mac = MacAddr::from_u64(plan.hosts() as u64 + 1);
            let host = plan.host_at(format!("h{pod}x{edge}x{host}"), mac, address);
            plan.link(pod_switch(pod, edge), host);
        }
    }
    for (pod, edge) in pairs(k, half) {
        (half..k).for_each(|above| plan.link(pod_switch(pod, edge), pod_switch(pod, above)));
    }
    for (row, column) in pairs(half, half) {
        let core =
            plan.switch_as(format!("c{}x{}", row + 1, column + 1), datapath_id(k, row + 1, column + 1));
        (0..k).for_each(|pod| plan.link(pod_switch(pod, half + row), core));
    }
    plan.finish()
}

fn pairs(ones: usize, twos: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..ones).flat_map(move |one| (0..twos).map(move |two| (one, two)))
}

#[cfg(test)]
mod tests {
    use super::super::{Endpoint, SwitchPlan};
    use super::*;
    use std::collections::HashSet;

    fn degree(topology: &Topology, switch: &SwitchPlan) -> usize {
        let index = topology.switch_named(&switch.name);
        let ends = topology.links.iter().flat_map(|link| [link.one, link.two]);
        ends.filter(|end| matches!(end, Endpoint::Switch { index: at, .. } if Some(*at) == index)).count()
    }

    #[test]
    fn a_fat_tree_is_as_the_paper_draws_it() {
        for (k, switches, hosts) in [(2, 5, 2), (4, 20, 16), (6, 45, 54), (8, 80, 128)] {
            let tree = Topology::fat_tree(k).unwrap();
            assert_eq!((tree.switches.len(), tree.hosts.len()), (switches, hosts), "{k}");
            assert_eq!(tree.links.len(), 3 * hosts, "{k}");
            assert!(tree.switches.iter().all(|switch| degree(&tree, switch) == k), "{k}");
            let ids: HashSet<u64> = tree.switches.iter().map(|switch| switch.datapath_id.0).collect();
            assert_eq!(ids.len(), switches, "{k}");
            assert_eq!(tree.parts(), 1);
        }
        assert_eq!(Topology::fat_tree(40).unwrap().hosts.len(), 16_000, "the largest");
    }

    #[test]
    fn names_addresses_and_ports_of_a_fat_tree_say_where_they_are() {
        let tree = Topology::fat_tree(4).unwrap();
        let id = |name: &str| tree.switches[tree.switch_named(name).unwrap()].datapath_id.0;
        assert_eq!((id("e1x0"), id("a1x2"), id("c2x1")), (0x0001_0001, 0x0001_0201, 0x0004_0201));
        let host = &tree.hosts[tree.host_named("h3x1x2").unwrap()];
        assert_eq!(host.address, Ipv4Addr::new(10, 3, 1, 2));
        let port_of = |one: &str, two: &str| {
            let link = tree.links[tree.links_between(one, two)[0]];
            let ends = [link.one, link.two].into_iter();
            ends.filter_map(|end| match end {
                Endpoint::Switch { port, .. } if tree.owner(end) == one => Some(port.0),
                _ => None,
            })
            .sum::<u32>()
        };
        for (one, two, port) in [
            ("e3x1", "h3x1x2", 1),
            ("e3x1", "h3x1x3", 2),
            ("e3x1", "a3x2", 3),
            ("e3x1", "a3x3", 4),
            ("a3x2", "e3x1", 2),
            ("a3x2", "c1x1", 3),
            ("a3x3", "c2x2", 4),
            ("c2x2", "a3x3", 4),
            ("c2x2", "a0x3", 1),
        ] {
            assert_eq!(port_of(one, two), port, "{one} {two}");
        }
    }

    #[test]
    fn every_leaf_is_wired_to_every_spine() {
        let fabric = Topology::leaf_spine(3, 2, 4).unwrap();
        assert_eq!((fabric.switches.len(), fabric.hosts.len(), fabric.links.len()), (5, 12, 18));
        for (leaf, spine) in pairs(3, 2) {
            let (leaf, spine) = (format!("l{}", leaf + 1), format!("p{}", spine + 1));
            assert_eq!(fabric.links_between(&leaf, &spine).len(), 1, "{leaf} {spine}");
        }
        assert_eq!(fabric.switches[4].datapath_id, DatapathId(5));
        assert!(Topology::leaf_spine(1, 0, 1).is_err(), "no spine is no leaf and spine");
    }
}
