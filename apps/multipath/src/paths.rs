//! All shortest paths between two switches of the network view.
//!
//! In: the view. Out: paths as links. It chooses none, and remembers none.

use burnet_sdk::DatapathId;
use burnet_sdk::view::{LinkId, LinkState, Snapshot};
use std::collections::{HashMap, VecDeque};

/// The most paths between two switches. Further ones are left out: 64 are enough to choose from.
const PATHS_MAX: usize = 64;

/// The paths from one switch to another, in the order of their links. Two of the same switch: one path without links.
pub(crate) fn paths(view: &Snapshot, from: DatapathId, to: DatapathId) -> Vec<Vec<LinkId>> {
    let distances = distances(view, to);
    let (mut paths, mut open) = (Vec::new(), vec![(from, Vec::new())]);
    if !distances.contains_key(&from) {
        return paths;
    }
    while let Some((at, path)) = open.pop() {
        if at == to {
            paths.push(path);
            if paths.len() == PATHS_MAX {
                break;
            }
            continue;
        }
        let nearer =
            |link: &LinkId| distances.get(&link.to.switch).is_some_and(|it| it + 1 == distances[&at]);
        let mut links: Vec<LinkId> = up(view.links_from_switch(at)).filter(nearer).collect();
        links.sort_unstable();
        for link in links.into_iter().rev() {
            open.push((link.to.switch, path.iter().copied().chain([link]).collect()));
        }
    }
    paths
}

fn up<'v>(links: impl Iterator<Item = &'v burnet_sdk::view::Link>) -> impl Iterator<Item = LinkId> {
    links.filter(|link| link.state == LinkState::Up).map(|link| link.id)
}

/// How many links each switch is away from one.
fn distances(view: &Snapshot, to: DatapathId) -> HashMap<DatapathId, usize> {
    let (mut distances, mut reached) = (HashMap::from([(to, 0)]), VecDeque::from([to]));
    while let Some(at) = reached.pop_front() {
        let distance = distances[&at];
        for link in up(view.links_to_switch(at)) {
            distances.entry(link.from.switch).or_insert_with(|| {
                reached.push_back(link.from.switch);
                distance + 1
            });
        }
    }
    distances
}
