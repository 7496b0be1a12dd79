//! Which switches are ready for traffic, and why the others are not.
//!
//! In: the network, the connections, the time. Out: yes, or the reason why not. It changes nothing.

use flow::DatapathId;
use openflow::Version;
use software_switch::ControllerId;
use std::time::Duration;

use super::connections::Connections;
use crate::network::Network;

/// After this time without a first rule, a 1.3 switch is assumed to need none.
const FIRST_RULE_PATIENCE: Duration = Duration::from_millis(500);

/// The switches of a network with their connections, at one moment.
pub(super) struct Readiness<'a> {
    pub(super) network: &'a Network,
    pub(super) connections: &'a Connections,
    pub(super) now: Duration,
}

impl Readiness<'_> {
    /// Whether all switches are ready.
    pub(super) fn is_complete(&self) -> bool {
        (0..self.network.switches().len()).all(|switch| self.is_ready(switch))
    }

    /// The switches that are not ready, and why.
    pub(super) fn missing(&self) -> Vec<(DatapathId, String)> {
        let switches = self.network.switches().iter().enumerate();
        let unready = switches.filter(|(index, _)| !self.is_ready(*index));
        unready.map(|(index, switch)| (switch.datapath_id(), self.why_not_ready(index))).collect()
    }

    /// A 1.3 switch without rules drops everything, so it gets a moment for its first rule. A switch that is off
    /// counts as ready.
    fn is_ready(&self, switch: usize) -> bool {
        if !self.network.is_switch_up(switch) {
            return true;
        }
        let this = &self.network.switches()[switch];
        self.connections.of_switch(switch).iter().enumerate().any(|(controller, connection)| {
            connection.known_since.is_some_and(|since| {
                this.version(ControllerId(controller)) == Some(Version::V1_0)
                    || this.flow_count() > 0
                    || self.now.saturating_sub(since) >= FIRST_RULE_PATIENCE
            })
        })
    }

    /// Why a switch is not ready, for the controller that is nearest to it.
    fn why_not_ready(&self, switch: usize) -> String {
        let connections = self.connections.of_switch(switch).iter();
        let furthest =
            connections.max_by_key(|connection| (connection.known_since.is_some(), connection.is_open()));
        match furthest.map(|connection| (connection, connection.known_since, connection.is_open())) {
            None => "it has no controller".to_owned(),
            Some((_, Some(_), _)) => "the controller has not given the switch a rule yet".to_owned(),
            Some((_, None, true)) => "the controller has not asked what the switch is".to_owned(),
            Some((connection, None, false)) => connection.last_words.clone(),
        }
    }
}
