//! A test bench for networks: switches that flood, a manual clock, and the results.

use emulator::network::Capture;
use emulator::topology::Endpoint;
use emulator::{
    Change, Channel, ControllerId, LinkQuality, Network, NetworkEffects, SwitchOptions, Topology,
};
use flow::{Action, Instruction, Match, PortNo};
use openflow::message::*;
use openflow::{Body, Message, Version};
use std::time::Duration;

/// More frames than any test has without a storm.
const BUDGET: usize = 1_000_000;
const ROUNDS: usize = 20;

/// A network, the time, and what happened.
pub struct Bench {
    pub network: Network,
    pub now: Duration,
    pub effects: NetworkEffects,
}

pub fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

/// The rule that makes a switch flood every packet.
pub fn flood(idle_timeout_s: u16) -> FlowMod {
    FlowModFields {
        idle_timeout_s,
        priority: 0,
        flags: FLOW_MOD_SEND_FLOW_REMOVED,
        ..FlowModFields::default()
    }
    .with(Match::any(), vec![Instruction::ApplyActions(vec![Action::output(PortNo::FLOOD)])])
}

/// The connection between a switch and its one controller.
pub fn channel(switch: usize) -> Channel {
    Channel { switch, controller: ControllerId(0) }
}

impl Bench {
    /// A network of this shape. All links have this quality, and the switches flood.
    pub fn new(topology: &str, quality: &str) -> Self {
        let mut topology: Topology = topology.parse().unwrap();
        let quality: LinkQuality = quality.parse().unwrap();
        topology.links.iter_mut().for_each(|link| link.quality = quality);
        Self::of(&topology)
    }

    /// A network of this shape whose switches flood.
    pub fn of(topology: &Topology) -> Self {
        let network = Network::new(topology, &SwitchOptions::default(), Duration::ZERO);
        let mut bench = Bench { network, now: Duration::ZERO, effects: NetworkEffects::default() };
        for switch in 0..topology.switches.len() {
            bench.connect(switch);
            bench.say(switch, Body::FlowMod(flood(0)));
        }
        bench.effects = NetworkEffects::default();
        bench
    }

    /// A controller connects and sends its hello.
    pub fn connect(&mut self, switch: usize) {
        self.network.on_connected(channel(switch), &mut self.effects);
        self.say(switch, Body::Hello(Hello::default()));
    }

    /// A controller sends a message.
    pub fn say(&mut self, switch: usize, body: Body) {
        let message = Message { version: Version::V1_3, xid: 1, body };
        self.network.on_message(channel(switch), &message, self.now, &mut self.effects);
    }

    /// Makes a change that must succeed.
    pub fn change(&mut self, change: Change) {
        self.network.change(&change, self.now, &mut self.effects).unwrap();
    }

    /// Lets so many milliseconds pass.
    pub fn pass(&mut self, milliseconds: u64) {
        self.now += ms(milliseconds);
        let Bench { network, now, effects } = self;
        assert!((0..ROUNDS).any(|_| !network.carry(BUDGET, *now, effects)), "a storm");
    }

    /// One host pings another by name.
    pub fn ping(&mut self, from: &str, to: &str, sequence: u16) {
        let (from, to) = (self.network.host_named(from).unwrap(), self.network.host_named(to).unwrap());
        let address = self.network.hosts()[to].address();
        self.network.ping(from, address, sequence, self.now, &mut self.effects);
    }

    /// The round trips of the replies since the last call, in microseconds.
    pub fn round_trips(&mut self) -> Vec<u128> {
        self.effects.replies.drain(..).map(|(_, reply)| reply.round_trip.as_micros()).collect()
    }

    /// Each port status since the last call: switch, port, and whether the link is up, or `new`.
    pub fn port_statuses(&mut self) -> Vec<String> {
        let told = self.effects.messages.drain(..).filter_map(|(at, message)| match message.body {
            Body::PortStatus(status) => {
                let is_down = status.port.state & PORT_STATE_LINK_DOWN != 0;
                let is_new = status.reason == PORT_ADDED;
                let what = if is_new {
                    "new"
                } else if is_down {
                    "down"
                } else {
                    "up"
                };
                Some(format!("s{}.{} {what}", at.switch + 1, status.port.port_no))
            }
            _ => None,
        });
        told.collect()
    }

    /// The captured frames since the last call.
    pub fn captured(&mut self) -> Vec<Capture> {
        std::mem::take(&mut self.effects.captured)
    }

    /// Taps a host's end of its link.
    pub fn tap(&mut self, host: &str) {
        let index = self.network.host_named(host).unwrap();
        self.network.set_tap(Endpoint::Host { index }, true);
    }
}
