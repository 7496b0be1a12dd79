//! The network below the slices: switches, directed links with capacities, servers, and the shortest paths between servers.
//!
//! In: a shape. Out: links by number, paths as lists of links. It never changes. A server has one NIC, which is a link in each direction.

use hose::LinkNo;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, VecDeque};

/// The most paths between two servers. Further ones are left out: 64 are enough to choose from.
const PATHS_MAX: usize = 64;

/// A direction of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// The node where it begins.
    pub from: usize,
    /// The node where it ends.
    pub to: usize,
    /// Its capacity.
    pub capacity_bps: u64,
}

/// The number of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ServerNo(pub usize);

/// A network.
#[derive(Clone, Debug, Default)]
pub struct Fabric {
    /// Names of nodes: switches, and the switch in each server.
    names: Vec<String>,
    links: Vec<Link>,
    /// By node: the links that begin there.
    outgoing: Vec<Vec<LinkNo>>,
    /// By server: its node.
    servers: Vec<usize>,
}

impl Fabric {
    /// Figure 1a: spines s1 and s2, leaves s3 and s4, and a switch in each server: s5 and s6 at s3, s7 and s8 at s4.
    pub fn figure_one(capacity_bps: u64) -> Fabric {
        let mut fabric = Fabric::default();
        let nodes: Vec<usize> = (1..=8).map(|number| fabric.node(format!("s{number}"))).collect();
        for (one, two) in [(3, 1), (3, 2), (4, 1), (4, 2), (5, 3), (6, 3), (7, 4), (8, 4)] {
            fabric.cable(nodes[one - 1], nodes[two - 1], capacity_bps);
        }
        fabric.servers = nodes[4..].to_vec();
        fabric
    }

    /// Leaves with servers, each leaf with a link to each spine.
    pub fn leaf_spine(leaves: usize, spines: usize, servers_each: usize, capacity_bps: u64) -> Fabric {
        let mut fabric = Fabric::default();
        let tops: Vec<usize> = (1..=spines).map(|number| fabric.node(format!("spine{number}"))).collect();
        for leaf in 1..=leaves {
            let node = fabric.node(format!("leaf{leaf}"));
            tops.iter().for_each(|top| fabric.cable(node, *top, capacity_bps));
            for server in 1..=servers_each {
                fabric.server(format!("server{leaf}.{server}"), node, capacity_bps);
            }
        }
        fabric
    }

    /// A fat tree of switches with this number of ports, which is even (Al-Fares and others, SIGCOMM 2008).
    pub fn fat_tree(ports: usize, capacity_bps: u64) -> Fabric {
        let half = ports / 2;
        let mut fabric = Fabric::default();
        let cores: Vec<usize> = (0..half * half).map(|number| fabric.node(format!("core{number}"))).collect();
        for pod in 0..ports {
            let upper: Vec<usize> =
                (0..half).map(|number| fabric.node(format!("aggregation{pod}.{number}"))).collect();
            for (place, node) in upper.iter().enumerate() {
                cores[place * half..][..half]
                    .iter()
                    .for_each(|core| fabric.cable(*node, *core, capacity_bps));
            }
            for edge in 0..half {
                let node = fabric.node(format!("edge{pod}.{edge}"));
                upper.iter().for_each(|above| fabric.cable(node, *above, capacity_bps));
                for server in 0..half {
                    fabric.server(format!("server{pod}.{edge}.{server}"), node, capacity_bps);
                }
            }
        }
        fabric
    }

    /// Any network: switches by name, links from switch to switch in one direction each, and servers with their switch and NIC.
    ///
    /// # Errors
    /// A link or a server names a switch that is not there, or a capacity is 0.
    pub fn described(
        switches: Vec<String>,
        links: &[Link],
        servers: &[(String, usize, u64)],
    ) -> Result<Fabric, String> {
        let mut fabric = Fabric::default();
        for name in switches {
            fabric.node(name);
        }
        let count = fabric.names.len();
        for link in links {
            if link.from >= count || link.to >= count {
                return Err(format!("a link names switch {}, of {count}", link.from.max(link.to)));
            }
            fabric.one_way(*link);
        }
        for (name, at, nic_bps) in servers {
            if *at >= count {
                return Err(format!("server {name} is at switch {at}, of {count}"));
            }
            fabric.server(name.clone(), *at, *nic_bps);
        }
        match fabric.links.iter().position(|link| link.capacity_bps == 0) {
            Some(number) => Err(format!("link {} has no capacity", fabric.name(LinkNo(number as u32)))),
            None => Ok(fabric),
        }
    }

    fn node(&mut self, name: String) -> usize {
        self.names.push(name);
        self.outgoing.push(Vec::new());
        self.names.len() - 1
    }

    fn server(&mut self, name: String, at: usize, capacity_bps: u64) {
        let node = self.node(name);
        self.cable(node, at, capacity_bps);
        self.servers.push(node);
    }

    fn cable(&mut self, one: usize, two: usize, capacity_bps: u64) {
        for (from, to) in [(one, two), (two, one)] {
            self.one_way(Link { from, to, capacity_bps });
        }
    }

    fn one_way(&mut self, link: Link) {
        // A fabric has far fewer than 2^32 links.
        let number = LinkNo(self.links.len() as u32);
        self.outgoing[link.from].push(number);
        self.links.push(link);
    }

    /// All links, by number.
    pub fn links(&self) -> impl Iterator<Item = (LinkNo, &Link)> {
        (0..).map(LinkNo).zip(&self.links)
    }

    /// A link.
    pub fn link(&self, number: LinkNo) -> &Link {
        &self.links[number.index()]
    }

    /// How many servers there are.
    pub fn servers(&self) -> usize {
        self.servers.len()
    }

    /// What the NIC of a server carries in each direction.
    pub fn nic_bps(&self, server: ServerNo) -> u64 {
        let nic = self.outgoing[self.servers[server.0]].first();
        nic.map_or(0, |link| self.link(*link).capacity_bps)
    }

    /// The link of a server's NIC into the network, and the one back. A fabric whose servers have NICs of their own has both one behind the other.
    pub fn nic_links(&self, server: ServerNo) -> [LinkNo; 2] {
        let out = self.outgoing[self.servers[server.0]].first().copied().unwrap_or(LinkNo(0));
        let back = Link { from: self.link(out).to, to: self.link(out).from, ..*self.link(out) };
        let found = self.links().find(|(_, link)| (link.from, link.to) == (back.from, back.to));
        [out, found.map_or(out, |(number, _)| number)]
    }

    /// The server of this name.
    pub fn server_named(&self, name: &str) -> Option<ServerNo> {
        self.servers.iter().position(|node| self.names[*node] == name).map(ServerNo)
    }

    /// The name of a link, such as `s3-s1`.
    pub fn name(&self, number: LinkNo) -> String {
        let Link { from, to, .. } = self.link(number);
        format!("{}-{}", self.names[*from], self.names[*to])
    }

    /// The link of this name.
    pub fn named(&self, name: &str) -> Option<LinkNo> {
        self.links().map(|(number, _)| number).find(|number| self.name(*number) == name)
    }

    /// All shortest paths between two servers, in the order of their links' numbers. Servers carry no traffic of others.
    pub fn paths(&self, from: ServerNo, to: ServerNo) -> Vec<Vec<LinkNo>> {
        self.paths_over(from, to, |_| true)
    }

    /// The shortest of the paths that use only these links, as [`Fabric::paths`].
    pub fn paths_over(
        &self,
        from: ServerNo,
        to: ServerNo,
        may_use: impl Fn(LinkNo) -> bool,
    ) -> Vec<Vec<LinkNo>> {
        let (from, to) = (self.servers[from.0], self.servers[to.0]);
        let distances = self.distances(to, &may_use);
        let mut paths = Vec::new();
        let mut open = vec![(from, Vec::new())];
        while let Some((at, path)) = open.pop() {
            if at == to {
                paths.push(path);
                if paths.len() == PATHS_MAX {
                    break;
                }
                continue;
            }
            for link in self.outgoing[at].iter().rev().filter(|link| may_use(**link)) {
                let next = self.link(*link).to;
                if distances.get(&next).is_some_and(|it| it + 1 == distances[&at]) {
                    open.push((next, path.iter().copied().chain([*link]).collect()));
                }
            }
        }
        paths
    }

    /// How many links each node is away from one.
    fn distances(&self, to: usize, may_use: impl Fn(LinkNo) -> bool) -> BTreeMap<usize, usize> {
        let mut incoming: Vec<Vec<usize>> = vec![Vec::new(); self.names.len()];
        for (_, link) in self.links().filter(|(number, _)| may_use(*number)) {
            incoming[link.to].push(link.from);
        }
        let mut distances = BTreeMap::from([(to, 0)]);
        let mut queue = VecDeque::from([to]);
        while let Some(at) = queue.pop_front() {
            let distance = distances[&at];
            for before in &incoming[at] {
                if let Entry::Vacant(place) = distances.entry(*before) {
                    place.insert(distance + 1);
                    queue.push_back(*before);
                }
            }
        }
        distances
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_have_the_links_and_paths_that_they_should() {
        let check = |fabric: Fabric, counts: (usize, usize), to: usize, paths: usize, hops: usize| {
            assert_eq!((fabric.servers(), fabric.links().count()), counts);
            let found = fabric.paths(ServerNo(0), ServerNo(to));
            assert_eq!(found.len(), paths);
            for path in found {
                assert_eq!(path.len(), hops);
                assert!(path.windows(2).all(|pair| fabric.link(pair[0]).to == fabric.link(pair[1]).from));
                let ends = [fabric.link(path[0]).from, fabric.link(path[hops - 1]).to];
                assert_eq!(ends, [fabric.servers[0], fabric.servers[to]]);
            }
        };
        check(Fabric::figure_one(10), (4, 16), 2, 2, 4);
        check(Fabric::figure_one(10), (4, 16), 1, 1, 2);
        check(Fabric::leaf_spine(2, 4, 3, 10), (6, 28), 3, 4, 4);
        // 8 pods of 16 servers: 128 NICs, 128 links below the aggregation, 128 above.
        check(Fabric::fat_tree(8, 10), (128, 768), 127, 16, 6);
        check(Fabric::fat_tree(8, 10), (128, 768), 4, 4, 4);
    }

    #[test]
    fn names_are_those_of_the_figure() {
        let fabric = Fabric::figure_one(10);
        let [from, to] = ["s5", "s7"].map(|name| fabric.server_named(name).unwrap());
        let paths = fabric.paths(from, to);
        let names: Vec<Vec<String>> =
            paths.iter().map(|path| path.iter().map(|link| fabric.name(*link)).collect()).collect();
        assert_eq!(names, [["s5-s3", "s3-s1", "s1-s4", "s4-s7"], ["s5-s3", "s3-s2", "s2-s4", "s4-s7"]]);
        assert_eq!(fabric.named("s3-s1").map(|link| fabric.link(link).capacity_bps), Some(10));
        assert_eq!(fabric.named("s1-s2"), None);
    }

    #[test]
    fn a_described_network_has_its_links_in_each_direction_and_paths_over_those_that_may_be_used() {
        let names = || ["s1", "s2", "s3"].map(str::to_owned).to_vec();
        let link = |from, to, capacity_bps| Link { from, to, capacity_bps };
        let links =
            [link(0, 1, 10), link(1, 0, 20), link(0, 2, 10), link(2, 0, 10), link(2, 1, 10), link(1, 2, 10)];
        let servers = [("one".to_owned(), 0, 5), ("two".to_owned(), 1, 5)];
        let fabric = Fabric::described(names(), &links, &servers).expect("a network");
        let ways = |without: Option<LinkNo>| -> Vec<Vec<String>> {
            let paths = fabric.paths_over(ServerNo(0), ServerNo(1), |link| Some(link) != without);
            paths.iter().map(|path| path.iter().map(|link| fabric.name(*link)).collect()).collect()
        };
        assert_eq!(ways(None), [["one-s1", "s1-s2", "s2-two"]]);
        assert_eq!(ways(fabric.named("s2-s1")), ways(None));
        assert_eq!(ways(fabric.named("s1-s2")), [["one-s1", "s1-s3", "s3-s2", "s2-two"]]);
        assert_eq!(fabric.named("s2-s1").map(|link| fabric.link(link).capacity_bps), Some(20));
        let check = |links: &[Link], servers: &[(String, usize, u64)], expected: &str| {
            assert_eq!(Fabric::described(names(), links, servers).map(|_| ()), Err(expected.to_owned()));
        };
        check(&[link(0, 3, 1)], &[], "a link names switch 3, of 3");
        check(&[link(0, 1, 0)], &[], "link s1-s2 has no capacity");
        check(&[], &[("one".to_owned(), 7, 1)], "server one is at switch 7, of 3");
    }
}
