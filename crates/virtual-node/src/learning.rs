//! A tenant's controller that is a learning switch: that of `emulator::learning`.
//!
//! In: messages of the switches of a slice. Out: rules and packet-outs. It hears no labels, and breaks no loop.

use crate::tenant::{Controller, Outgoing};
use emulator::network::Channel;
use emulator::simulation::Conduct;
use emulator::{ControllerId, RuleTimeouts, learning_controller_with};
use flow::DatapathId;
use openflow::message::Hello;
use openflow::{Body, Message, Version};
use std::collections::BTreeMap;
use std::time::Duration;

/// The controller.
pub struct Learning {
    conduct: Conduct,
    /// The number of each switch, in the order in which they connected.
    numbers: BTreeMap<DatapathId, usize>,
}

impl Default for Learning {
    /// Its rules have no time-outs.
    fn default() -> Self {
        let timeouts = RuleTimeouts { idle_s: 0, hard_s: 0 };
        Learning { conduct: learning_controller_with(timeouts), numbers: BTreeMap::new() }
    }
}

impl Learning {
    fn hear(&mut self, datapath: DatapathId, message: &Message, out: &mut Vec<Outgoing>) {
        let next = self.numbers.len();
        let switch = *self.numbers.entry(datapath).or_insert(next);
        let mut said = Vec::new();
        (self.conduct)(Channel { switch, controller: ControllerId(0) }, message, Duration::ZERO, &mut said);
        // The hello is the connection's.
        let bodies = said.into_iter().map(|it| it.body).filter(|body| !matches!(body, Body::Hello(_)));
        out.extend(bodies.map(|body| (datapath, body)));
    }
}

impl Controller for Learning {
    fn on_open(&mut self, datapath: DatapathId, version: Version, out: &mut Vec<Outgoing>) {
        self.hear(datapath, &Message { version, xid: 0, body: Body::Hello(Hello::default()) }, out);
    }

    fn on_message(&mut self, datapath: DatapathId, message: &Message, _: u64, out: &mut Vec<Outgoing>) {
        self.hear(datapath, message, out);
    }
}
