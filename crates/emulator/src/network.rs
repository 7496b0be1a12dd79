//! Switches and hosts, and the links between them.
//!
//! ```text
//!   message for a switch, ping, a link's state, the time ──> Network ──> messages of switches, replies of hosts
//! ```
//!
//! A frame that leaves a port is at the other end of the link at once; frames on their way wait in one queue, in order.
//! Never does I/O and never loops for ever: a caller says how many frames it carries before it looks at something else.

use openflow::Message;
use std::collections::{HashMap, VecDeque};
use std::net::Ipv4Addr;
use std::time::Duration;

use crate::host::{Host, HostEffects, PingReply};
use crate::switch::{ControllerId, Effects, Switch, SwitchOptions};
use crate::topology::{Endpoint, Link, Topology};

/// How many frames may be on their way; what would be more is lost and counted. Only a broadcast storm comes here.
const IN_FLIGHT_MAX: usize = 65_536;

/// The way between a switch, named by its index, and one of its controllers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Channel {
    /// The switch.
    pub switch: usize,
    /// Which of its controllers.
    pub controller: ControllerId,
}

/// What is to be done after something happened in a network. Collected by the caller, who may use it many times over.
#[derive(Debug, Default)]
pub struct NetworkEffects {
    /// What switches send to controllers; in order.
    pub messages: Vec<(Channel, Message)>,
    /// Connections that are to be closed once their messages are sent.
    pub close: Vec<Channel>,
    /// Replies to the pings of a host, named by its index.
    pub replies: Vec<(usize, PingReply)>,
}

#[derive(Clone, Copy, Debug)]
struct Wire {
    other_end: Endpoint,
    link: usize,
}

/// A network.
#[derive(Debug)]
pub struct Network {
    switches: Vec<Switch>,
    hosts: Vec<Host>,
    links: Vec<(Link, bool)>,
    wires: HashMap<Endpoint, Wire>,
    in_flight: VecDeque<(Endpoint, Vec<u8>)>,
    frames_lost: u64,
    of_switch: Effects,
    of_host: HostEffects,
}

impl Network {
    /// A network of this shape, all of whose links are up. All switches are made alike.
    pub fn new(topology: &Topology, options: &SwitchOptions, now: Duration) -> Self {
        let switch = |plan: &crate::topology::SwitchPlan| {
            Switch::new(plan.datapath_id, plan.name.clone(), options.clone())
        };
        let host = |plan: &crate::topology::HostPlan| Host::new(plan.name.clone(), plan.mac, plan.address);
        let mut network = Network {
            switches: topology.switches.iter().map(switch).collect(),
            hosts: topology.hosts.iter().map(host).collect(),
            links: Vec::new(),
            wires: HashMap::new(),
            in_flight: VecDeque::new(),
            frames_lost: 0,
            of_switch: Effects::default(),
            of_host: HostEffects::default(),
        };
        topology.links.iter().for_each(|link| network.add_link(*link, now));
        network
    }

    fn add_link(&mut self, link: Link, now: Duration) {
        let number = self.links.len();
        self.links.push((link, true));
        for (end, other_end) in [(link.one, link.two), (link.two, link.one)] {
            self.wires.insert(end, Wire { other_end, link: number });
            if let Endpoint::Switch { index, port } = end
                && let Some(switch) = self.switches.get_mut(index)
            {
                // Nobody is connected yet who would have to be told.
                switch.add_port(port, now, &mut Effects::default());
            }
        }
    }

    /// Its switches.
    pub fn switches(&self) -> &[Switch] {
        &self.switches
    }

    /// Its hosts.
    pub fn hosts(&self) -> &[Host] {
        &self.hosts
    }

    /// Its links, and whether each is up.
    pub fn links(&self) -> impl Iterator<Item = (Link, bool)> {
        self.links.iter().copied()
    }

    /// Frames that were lost because too many were on their way, or on a link that is down.
    pub fn frames_lost(&self) -> u64 {
        self.frames_lost
    }

    /// A connection of a switch to a controller is there.
    pub fn on_connected(&mut self, at: Channel, effects: &mut NetworkEffects) {
        self.at_switch(at.switch, effects, |switch, out| switch.on_connected(at.controller, out));
    }

    /// A connection of a switch is gone.
    pub fn on_disconnected(&mut self, at: Channel) {
        if let Some(switch) = self.switches.get_mut(at.switch) {
            switch.on_disconnected(at.controller);
        }
    }

    /// A message for a switch has come.
    pub fn on_message(
        &mut self,
        at: Channel,
        message: &Message,
        now: Duration,
        effects: &mut NetworkEffects,
    ) {
        self.at_switch(at.switch, effects, |switch, out| {
            switch.on_message(at.controller, message, now, out);
        });
    }

    /// Bytes for a switch have come that are no message: `beginning` is the first of them.
    pub fn on_bad_input(
        &mut self,
        at: Channel,
        xid: u32,
        error: flow::ErrorCode,
        beginning: &[u8],
        effects: &mut NetworkEffects,
    ) {
        self.at_switch(at.switch, effects, |switch, out| {
            switch.on_bad_input(at.controller, xid, error, beginning, out);
        });
    }

    /// A host pings an address.
    pub fn ping(
        &mut self,
        host: usize,
        to: Ipv4Addr,
        sequence: u16,
        now: Duration,
        effects: &mut NetworkEffects,
    ) {
        self.at_host(host, effects, |host, out| host.ping(to, sequence, now, out));
    }

    /// A host waits for a ping no longer. Says whether it was still without a reply.
    pub fn give_up(&mut self, host: usize, to: Ipv4Addr, sequence: u16) -> bool {
        self.hosts.get_mut(host).is_some_and(|host| host.give_up(to, sequence))
    }

    /// Takes a link down or up again. The switches at its ends tell their controllers.
    pub fn set_link(&mut self, link: usize, up: bool, effects: &mut NetworkEffects) {
        let Some((link, state)) = self.links.get_mut(link) else { return };
        *state = up;
        for end in [link.one, link.two] {
            if let Endpoint::Switch { index, port } = end {
                self.at_switch(index, effects, |switch, out| switch.set_link(port, up, out));
            }
        }
    }

    /// Time has passed.
    pub fn on_tick(&mut self, now: Duration, effects: &mut NetworkEffects) {
        for index in 0..self.switches.len() {
            self.at_switch(index, effects, |switch, out| switch.on_tick(now, out));
        }
        for index in 0..self.hosts.len() {
            self.at_host(index, effects, |host, out| host.on_tick(now, out));
        }
    }

    /// Carries up to `budget` frames over their links. Says whether there are more.
    pub fn carry(&mut self, budget: usize, now: Duration, effects: &mut NetworkEffects) -> bool {
        for _ in 0..budget {
            let Some((to, frame)) = self.in_flight.pop_front() else { return false };
            match to {
                Endpoint::Switch { index, port } => {
                    self.at_switch(index, effects, |switch, out| switch.on_frame(port, frame, now, out));
                }
                Endpoint::Host { index } => {
                    self.at_host(index, effects, |host, out| host.on_frame(&frame, now, out));
                }
            }
        }
        !self.in_flight.is_empty()
    }

    fn at_switch(
        &mut self,
        index: usize,
        effects: &mut NetworkEffects,
        happens: impl FnOnce(&mut Switch, &mut Effects),
    ) {
        let Some(switch) = self.switches.get_mut(index) else { return };
        let mut out = std::mem::take(&mut self.of_switch);
        happens(switch, &mut out);
        let channel = |controller| Channel { switch: index, controller };
        let messages = out.messages.drain(..);
        effects.messages.extend(messages.map(|(controller, message)| (channel(controller), message)));
        effects.close.extend(out.close.drain(..).map(channel));
        for (port, frame) in out.frames.drain(..) {
            self.send(Endpoint::Switch { index, port }, frame);
        }
        self.of_switch = out;
    }

    fn at_host(
        &mut self,
        index: usize,
        effects: &mut NetworkEffects,
        happens: impl FnOnce(&mut Host, &mut HostEffects),
    ) {
        let Some(host) = self.hosts.get_mut(index) else { return };
        let mut out = std::mem::take(&mut self.of_host);
        happens(host, &mut out);
        effects.replies.extend(out.replies.drain(..).map(|reply| (index, reply)));
        for frame in out.frames.drain(..) {
            self.send(Endpoint::Host { index }, frame);
        }
        self.of_host = out;
    }

    fn send(&mut self, from: Endpoint, frame: Vec<u8>) {
        let up = self.wires.get(&from).filter(|wire| self.links[wire.link].1);
        match up {
            Some(wire) if self.in_flight.len() < IN_FLIGHT_MAX => {
                self.in_flight.push_back((wire.other_end, frame));
            }
            _ => self.frames_lost += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::LinkQuality;
    use flow::{Action, Instruction, Match, PortNo};
    use openflow::message::*;
    use openflow::{Body, Version};

    const NOW: Duration = Duration::from_secs(1);

    /// A network whose switches flood whatever comes.
    fn flooding(topology: &str) -> Network {
        let topology: Topology = topology.parse().unwrap();
        let mut network = Network::new(&topology, &SwitchOptions::default(), NOW);
        let mut effects = NetworkEffects::default();
        let flood = FlowMod {
            cookie: 0,
            cookie_mask: 0,
            table_id: 0,
            command: FLOW_ADD,
            idle_timeout_s: 0,
            hard_timeout_s: 0,
            priority: 0,
            buffer_id: NO_BUFFER,
            out_port: PortNo::ANY,
            out_group: GROUP_ANY,
            flags: 0,
            matching: Match::any(),
            instructions: vec![Instruction::ApplyActions(vec![Action::output(PortNo::FLOOD)])],
        };
        for switch in 0..topology.switches.len() {
            let at = Channel { switch, controller: ControllerId(0) };
            network.on_connected(at, &mut effects);
            for body in [Body::Hello(Hello::default()), Body::FlowMod(flood.clone())] {
                let message = Message { version: Version::V1_3, xid: 1, body };
                network.on_message(at, &message, NOW, &mut effects);
            }
        }
        network
    }

    fn pings_that_come_back(network: &mut Network) -> usize {
        let mut effects = NetworkEffects::default();
        let addresses: Vec<Ipv4Addr> = network.hosts().iter().map(Host::address).collect();
        for from in 0..addresses.len() {
            for to in (0..addresses.len()).filter(|to| *to != from) {
                network.ping(from, addresses[to], 1, NOW, &mut effects);
                while network.carry(16, NOW, &mut effects) {}
            }
        }
        effects.replies.len()
    }

    #[test]
    fn frames_reach_every_host_of_a_tree_and_a_line() {
        assert_eq!(pings_that_come_back(&mut flooding("tree,2,3")), 9 * 8);
        assert_eq!(pings_that_come_back(&mut flooding("linear,5,2")), 10 * 9);
    }

    #[test]
    fn a_link_that_is_down_cuts_the_line_and_is_told() {
        let mut network = flooding("linear,2");
        let trunk = network.links().position(|(link, _)| {
            matches!((link.one, link.two), (Endpoint::Switch { .. }, Endpoint::Switch { .. }))
        });
        let mut effects = NetworkEffects::default();
        network.set_link(trunk.unwrap(), false, &mut effects);
        let told = |(_, message): &(Channel, Message)| matches!(message.body, Body::PortStatus(_));
        assert_eq!(effects.messages.iter().filter(|message| told(message)).count(), 2);
        assert_eq!(pings_that_come_back(&mut network), 0);
        network.set_link(trunk.unwrap(), true, &mut effects);
        let later = NOW + Duration::from_secs(1);
        network.on_tick(later, &mut effects);
        while network.carry(16, later, &mut effects) {}
        assert_eq!(effects.replies.len(), 2, "the hosts ask again, and the pings that waited go out");
    }

    #[test]
    fn a_host_without_a_link_loses_what_it_sends() {
        let mut network = flooding("single,2");
        network.set_link(0, false, &mut NetworkEffects::default());
        assert_eq!(pings_that_come_back(&mut network), 0);
        assert!(network.frames_lost() > 0);
    }

    #[test]
    fn a_storm_fills_the_queue_and_no_more() {
        let mut network = flooding("single,2");
        // A cable from the switch into itself: every broadcast goes round and grows.
        for (one, two) in [(3, 4), (5, 6)] {
            let port = |port| Endpoint::Switch { index: 0, port: PortNo(port) };
            let quality = LinkQuality::default();
            network.add_link(Link { one: port(one), two: port(two), quality }, NOW);
        }
        let mut effects = NetworkEffects::default();
        network.ping(0, Ipv4Addr::new(10, 0, 0, 9), 1, NOW, &mut effects);
        for _ in 0..100 {
            assert!(network.carry(1000, NOW, &mut effects));
        }
        assert!(network.in_flight.len() <= IN_FLIGHT_MAX);
        assert!(network.frames_lost() > 0);
    }

    #[test]
    fn hosts_learn_of_hosts_at_the_other_end_of_a_line() {
        let mut network = flooding("linear,3");
        assert_eq!(pings_that_come_back(&mut network), 6);
        let macs: Vec<_> = network.hosts().iter().map(Host::mac).collect();
        assert_eq!(network.hosts()[0].neighbour(network.hosts()[2].address()), Some(macs[2]));
    }
}
