//! The links that a flood may use, so that a frame reaches every switch once.
//!
//! Pure: links and their states go in, a boolean for each link comes out.

use std::collections::VecDeque;

use flow::DatapathId;

use super::{Endpoint, Link, Topology};

/// For each link, whether it is on a spanning tree of the links that are up. The tree is that of the spanning-tree
/// protocol with equal costs. Its root is the switch with the lowest datapath id.
///
/// Every other switch is reached by the fewest links. If several paths are equal, the one through the switch that was
/// found first is used, and the first of parallel links. Links to hosts are always on the tree.
///
/// `ids` has the datapath id of each switch, `links` each link and whether it is up.
pub fn spanning_tree(ids: &[DatapathId], links: &[(Link, bool)]) -> Vec<bool> {
    let mut on_tree = vec![false; links.len()];
    let mut neighbours: Vec<Vec<(usize, usize)>> = vec![Vec::new(); ids.len()];
    for (number, (link, is_up)) in links.iter().enumerate() {
        match (link.one, link.two) {
            (Endpoint::Switch { index: one, .. }, Endpoint::Switch { index: two, .. }) => {
                if *is_up && one.max(two) < ids.len() {
                    neighbours[one].push((two, number));
                    neighbours[two].push((one, number));
                }
            }
            _ => on_tree[number] = true,
        }
    }
    let id = |index: &usize| ids[*index].0;
    neighbours.iter_mut().for_each(|of_one| of_one.sort_by_key(|(other, number)| (id(other), *number)));
    let mut roots: Vec<usize> = (0..ids.len()).collect();
    roots.sort_by_key(id);
    let mut is_reached = vec![false; ids.len()];
    // Each connected component has its own root.
    for root in roots {
        let mut next = VecDeque::from([root]);
        if std::mem::replace(&mut is_reached[root], true) {
            continue;
        }
        while let Some(switch) = next.pop_front() {
            for (other, number) in &neighbours[switch] {
                if !std::mem::replace(&mut is_reached[*other], true) {
                    on_tree[*number] = true;
                    next.push_back(*other);
                }
            }
        }
    }
    on_tree
}

impl Topology {
    /// How many links are off the spanning tree while all links are up: 0 if the network has no loop.
    pub fn links_off_tree(&self) -> usize {
        let ids: Vec<_> = self.switches.iter().map(|switch| switch.datapath_id).collect();
        let links: Vec<_> = self.links.iter().map(|link| (*link, true)).collect();
        spanning_tree(&ids, &links).into_iter().filter(|on_tree| !on_tree).count()
    }
}

/// Trees that are joined step by step (union-find).
pub(super) struct Forest {
    parents: Vec<usize>,
    trees: usize,
}

impl Forest {
    /// A forest of this many single nodes.
    pub(super) fn new(nodes: usize) -> Self {
        Forest { parents: (0..nodes).collect(), trees: nodes }
    }

    /// Joins the trees of two nodes. Returns whether they were different.
    pub(super) fn join(&mut self, one: usize, two: usize) -> bool {
        let (one, two) = (self.root(one), self.root(two));
        self.parents[one] = two;
        self.trees -= usize::from(one != two);
        one != two
    }

    /// The number of trees.
    pub(super) fn trees(&self) -> usize {
        self.trees
    }

    fn root(&mut self, mut node: usize) -> usize {
        while self.parents[node] != node {
            self.parents[node] = self.parents[self.parents[node]];
            node = self.parents[node];
        }
        node
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// With this link down, if one is given.
    fn without(topology: &Topology, failed: Option<usize>) -> Vec<bool> {
        let ids: Vec<_> = topology.switches.iter().map(|switch| switch.datapath_id).collect();
        let links = topology.links.iter().enumerate();
        let links: Vec<_> = links.map(|(number, link)| (*link, Some(number) != failed)).collect();
        spanning_tree(&ids, &links)
    }

    fn all_up(topology: &Topology) -> Vec<bool> {
        without(topology, None)
    }

    /// The topology without the links that are off the tree.
    fn pruned(topology: &Topology, on_tree: &[bool]) -> Topology {
        let mut pruned = topology.clone();
        let mut on_tree = on_tree.iter();
        pruned.links.retain(|_| on_tree.next() == Some(&true));
        pruned
    }

    #[test]
    fn a_tree_is_its_own() {
        for text in ["tree,3", "linear,5,2", "single,3"] {
            assert!(all_up(&text.parse().unwrap()).into_iter().all(|on_tree| on_tree), "{text}");
        }
    }

    #[test]
    fn each_loop_has_a_link_off_the_tree() {
        // A spanning tree of 20 switches has 19 of the 32 links.
        for (text, expected) in [("tree,3", 0), ("single,3", 0), ("ring,4", 1), ("fattree,4", 13)] {
            assert_eq!(text.parse::<Topology>().unwrap().links_off_tree(), expected, "{text}");
        }
    }

    #[test]
    fn a_ring_is_cut_where_it_is_farthest_from_the_root_and_mended_when_a_link_fails() {
        let ring: Topology = "ring,4".parse().unwrap();
        let off = |on_tree: Vec<bool>| {
            let off = on_tree.iter().position(|on_tree| !on_tree).unwrap();
            let link = ring.links[off];
            (ring.owner(link.one).to_owned(), ring.owner(link.two).to_owned())
        };
        assert_eq!(off(all_up(&ring)), ("s4".into(), "s3".into()));
        let failed = ring.links_between("s1", "s2")[0];
        assert_eq!(off(without(&ring, Some(failed))), ("s2".into(), "s1".into()));
    }

    proptest! {
        #[test]
        fn what_is_left_holds_together_and_has_no_loop(switches in 3usize..40, degree in 2usize..6, seed: u64) {
            let network = Topology::random(switches, degree.min(switches - 1), seed).unwrap();
            let on_tree = all_up(&network);
            let pruned = pruned(&network, &on_tree);
            prop_assert_eq!(pruned.parts(), 1);
            // One link for each host, and one trunk less than switches.
            prop_assert_eq!(pruned.links.len(), 2 * switches - 1);
        }
    }
}
