//! The frames by which controllers find links: LLDP, and BDDP across switches of others.
//!
//! In: frames, states of virtual links. Out: yes or no, and the other end of a link. It sends nothing.

use crate::plan::{End, LinkPlan};
use crate::tag::inner_type;
use std::collections::BTreeMap;

/// EtherTypes of LLDP and BDDP.
pub(crate) const PROBES: [u16; 2] = [0x88cc, 0x8942];

/// Whether a frame, as the tenant sees it, is one by which controllers find links. Tags do not count: an action can take them away.
pub(crate) fn is_probe(frame: &[u8]) -> bool {
    inner_type(frame).is_some_and(|kind| PROBES.contains(&kind))
}

/// The virtual links of a slice that are up.
#[derive(Clone, Debug, Default)]
pub(crate) struct Links {
    peers: BTreeMap<End, End>,
}

impl Links {
    /// A virtual link came up or went down.
    pub(crate) fn set(&mut self, link: &LinkPlan, is_up: bool) {
        for (from, to) in [(link.from, link.to), (link.to, link.from)] {
            if is_up {
                self.peers.insert(from, to);
            } else if self.peers.get(&from) == Some(&to) {
                self.peers.remove(&from);
            }
        }
    }

    /// Where a frame arrives that leaves at this end.
    pub(crate) fn peer(&self, end: End) -> Option<End> {
        self.peers.get(&end).copied()
    }
}
