//! Blocks the links off the spanning tree for floods, as bridges with the spanning-tree protocol do.
//!
//! In: which links are up. Out: ports of switches that are blocked or unblocked. Output to a port by its number is
//! never blocked.

use super::{Network, NetworkEffects};
use crate::topology::{Endpoint, spanning_tree};

impl Network {
    /// From now on, floods use only the links of a spanning tree, which follows the links that are up. No protocol
    /// runs between the switches: the tree is complete at once. Output to `ALL`, or to each port by its number, is
    /// not blocked.
    pub fn keep_spanning_tree(&mut self, effects: &mut NetworkEffects) {
        self.keeps_tree = true;
        self.prune(effects);
    }

    /// Blocks and unblocks ports for the present state of the links.
    pub(super) fn prune(&mut self, effects: &mut NetworkEffects) {
        if !self.keeps_tree {
            return;
        }
        let ids: Vec<_> = self.switches.iter().map(|switch| switch.datapath_id()).collect();
        let links: Vec<_> = self.links().collect();
        for ((link, _), on_tree) in links.iter().zip(spanning_tree(&ids, &links)) {
            for end in [link.one, link.two] {
                if let Endpoint::Switch { index, port } = end {
                    self.at_switch(index, effects, |switch, out| switch.set_blocked(port, !on_tree, out));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use software_switch::SwitchOptions;
    use std::time::Duration;

    fn ring() -> (Network, NetworkEffects) {
        let network = Network::new(&"ring,4".parse().unwrap(), &SwitchOptions::default(), Duration::ZERO);
        (network, NetworkEffects::default())
    }

    /// The links with a blocked end.
    fn blocked(network: &Network) -> Vec<String> {
        let is_blocked = |end| match end {
            Endpoint::Switch { index, port } => network.switches()[index].is_blocked(port),
            Endpoint::Host { .. } => false,
        };
        let links = network.links().enumerate();
        let blocked = links.filter(|(_, (link, _))| is_blocked(link.one) && is_blocked(link.two));
        blocked.map(|(number, _)| network.link_name(number)).collect()
    }

    #[test]
    fn a_ring_is_open_at_one_link_and_closes_where_another_fails() {
        let (mut network, mut effects) = ring();
        assert!(blocked(&network).is_empty());
        network.keep_spanning_tree(&mut effects);
        assert_eq!(blocked(&network), ["s4.2-s3.3"]);
        let failed = network.link_named("s1-s2").unwrap();
        network.set_link(failed, false, &mut effects);
        assert_eq!(blocked(&network), ["s2.2-s1.2"]);
        network.set_link(failed, true, &mut effects);
        assert_eq!(blocked(&network), ["s4.2-s3.3"]);
    }

    #[test]
    fn a_switch_that_is_off_is_gone_round() {
        let (mut network, mut effects) = ring();
        network.keep_spanning_tree(&mut effects);
        network.set_switch(0, false, &mut effects);
        assert!(!blocked(&network).contains(&"s4.2-s3.3".to_owned()));
        network.set_switch(0, true, &mut effects);
        assert_eq!(blocked(&network), ["s4.2-s3.3"]);
    }
}
