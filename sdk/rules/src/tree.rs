//! The way from each switch to one, along the fewest links.
//!
//! In: the network view. Out: for each switch, the link that a packet takes next. The same view gives the same tree. It knows no rule.

use burnet_sdk::DatapathId;
use burnet_sdk::view::{LinkId, LinkState, Snapshot};
use std::collections::{BTreeMap, VecDeque};

/// The next link at each switch that can reach the destination.
pub type Tree = BTreeMap<DatapathId, LinkId>;

/// Searches from the destination backwards, breadth first.
pub fn to(view: &Snapshot, destination: DatapathId) -> Tree {
    let (mut tree, mut reached) = (Tree::new(), VecDeque::from([destination]));
    while let Some(switch) = reached.pop_front() {
        for link in view.links_to_switch(switch).filter(|link| link.state == LinkState::Up) {
            let from = link.id.from.switch;
            if from != destination && !tree.contains_key(&from) {
                tree.insert(from, link.id);
                reached.push_back(from);
            }
        }
    }
    tree
}
