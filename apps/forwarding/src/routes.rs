//! Shortest paths to each switch, computed when they are needed, and forgotten when the topology changes.
//!
//! In: the network view. Out: the links of a path. Of paths of equal length it always takes the same one, so two switches never send
//! a packet to each other.

use burnet_sdk::DatapathId;
use burnet_sdk::view::{LinkId, LinkState, Snapshot};
use std::collections::{HashMap, VecDeque};

/// How many destinations' trees are kept: more than a network has switches. At the bound, all are computed again.
const TREES_MAX: usize = 4_096;

/// The next link at each switch, to one destination.
type Tree = HashMap<DatapathId, LinkId>;

/// The trees that were needed since the last change.
#[derive(Debug, Default)]
pub(crate) struct Routes {
    trees: HashMap<DatapathId, Tree>,
}

impl Routes {
    /// The topology has changed.
    pub(crate) fn forget(&mut self) {
        self.trees.clear();
    }

    /// The links of the shortest path, none within a switch. `None` if there is no path.
    pub(crate) fn way(&mut self, view: &Snapshot, from: DatapathId, to: DatapathId) -> Option<Vec<LinkId>> {
        if self.trees.len() >= TREES_MAX {
            self.trees.clear();
        }
        let tree = self.trees.entry(to).or_insert_with(|| tree(view, to));
        let (mut way, mut at) = (Vec::new(), from);
        while at != to {
            let link = *tree.get(&at)?;
            way.push(link);
            at = link.to.switch;
        }
        Some(way)
    }
}

/// Searches from the destination backwards, breadth first.
fn tree(view: &Snapshot, to: DatapathId) -> Tree {
    let (mut tree, mut reached) = (Tree::new(), VecDeque::from([to]));
    while let Some(switch) = reached.pop_front() {
        for link in view.links_to_switch(switch).filter(|link| link.state == LinkState::Up) {
            let from = link.id.from.switch;
            if from != to && !tree.contains_key(&from) {
                tree.insert(from, link.id);
                reached.push_back(from);
            }
        }
    }
    tree
}
