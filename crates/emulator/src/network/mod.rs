//! Switches and hosts, and the links between them.
//!
//! ```text
//!   message for a switch, ping, change, the time ──> Network ──> messages of switches, replies of hosts
//! ```
//!
//! The quality of a link decides when a frame from one end arrives at the other: at once, later, or never. Events are
//! processed in the order of their times, even if the caller is late. Events of the same time are processed in the
//! order in which they were caused. So the same calls with the same seed have the same result.
//!
//! It never does I/O and never loops for ever: the caller says how many frames it processes before it returns.

mod cable;
mod capture;
mod change;
mod channels;
mod due;
mod flow_list;
mod flows;
mod in_flight;
mod outside;
mod plugs;
mod pruning;
mod queries;

pub use cable::{DirectionCounters, LinkCounters};
pub use capture::Capture;
pub use change::{CannotChange, Change};
pub use flow_list::{FLOWS_MAX, FlowId};
pub use queries::{QueriesId, SERIES_MAX};

use flow::{MacAddr, PortNo};
use openflow::Message;
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::time::Duration;

use crate::digest::Digest;
use crate::host::query::RECORDS_OF_ALL_MAX;
use crate::host::{Host, HostCounters, HostEffects, PingReply};
use crate::link::LinkQuality;
use crate::random::Random;
use crate::topology::{Endpoint, HostPlan, Link, SwitchPlan, Topology};
use cable::{Cable, Fate, Way};
use capture::Taps;
use due::{DueQueue, Node};
use flow_list::FlowList;
use in_flight::{InFlight, Passage};
use plugs::{Plug, Plugs};
use software_switch::{ControllerId, Effects, Parting, Switch, SwitchOptions};

/// How far a network may be behind its caller's time when the budget is used up. Within this it catches up. Above it,
/// the machine is too slow for the network.
const BEHIND_MAX: Duration = Duration::from_millis(20);
/// The seed of a network if none is given.
pub const SEED_DEFAULT: u64 = 1;

/// The connection between a switch, given by its index, and one of its controllers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Channel {
    /// The switch.
    pub switch: usize,
    /// Which of the switch's controllers.
    pub controller: ControllerId,
}

/// What the caller must do after an event in a network. The caller owns it and may reuse it.
#[derive(Debug, Default)]
pub struct NetworkEffects {
    /// Messages of switches for controllers, in order.
    pub messages: Vec<(Channel, Message)>,
    /// Connections that the caller closes after their messages are sent, with the reason.
    pub close: Vec<(Channel, Parting)>,
    /// Replies to the pings of a host, given by its index.
    pub replies: Vec<(usize, PingReply)>,
    /// Frames that leave by an outside port, each with its switch and port.
    pub outside: Vec<(usize, PortNo, Vec<u8>)>,
    /// Frames that passed a tap. The code that set the tap removes them.
    pub captured: Vec<Capture>,
}

/// A network.
#[derive(Debug)]
pub struct Network {
    switches: Vec<Switch>,
    switches_up: Vec<bool>,
    /// The ports of each switch, including those without a link.
    ports_made: Vec<BTreeSet<PortNo>>,
    /// Ports whose other end is not part of this network.
    outside: BTreeSet<(usize, PortNo)>,
    /// The open connections.
    channels: BTreeSet<Channel>,
    options: SwitchOptions,
    hosts: Vec<Host>,
    hosts_up: Vec<bool>,
    cables: Vec<Cable>,
    plugs: Plugs,
    in_flight: InFlight,
    due: DueQueue,
    taps: Taps,
    keeps_tree: bool,
    flow_list: FlowList,
    /// The host that asks, of each series of queries.
    query_hosts: Vec<usize>,
    /// How many records no series has taken yet.
    records_left: usize,
    random: Random,
    /// The latest time that it was given or has reached. It never goes back.
    clock: Duration,
    frames_lost: u64,
    /// The digest of all frames that arrived, if it is kept.
    digest: Option<Digest>,
    of_switch: Effects,
    of_host: HostEffects,
}

impl Network {
    /// A network with this topology. All links are up, and all switches have the same options. The seed in the options decides all that is random.
    pub fn new(topology: &Topology, options: &SwitchOptions, now: Duration) -> Self {
        Self::with_seed(topology, options, options.seed, now)
    }

    /// The same, with a seed for all random decisions.
    pub fn with_seed(topology: &Topology, options: &SwitchOptions, seed: u64, now: Duration) -> Self {
        let options = &SwitchOptions { seed, ..options.clone() };
        let switch = |plan: &SwitchPlan| Switch::new(plan.datapath_id, plan.name.clone(), options.clone());
        let host = |plan: &HostPlan| Host::new(plan.name.clone(), plan.mac, plan.address);
        let (switches, hosts) = (topology.switches.len(), topology.hosts.len());
        let mut network = Network {
            switches: topology.switches.iter().map(switch).collect(),
            switches_up: vec![true; switches],
            ports_made: vec![BTreeSet::new(); switches],
            outside: BTreeSet::new(),
            channels: BTreeSet::new(),
            options: options.clone(),
            hosts: topology.hosts.iter().map(host).collect(),
            hosts_up: vec![true; hosts],
            cables: Vec::with_capacity(topology.links.len()),
            plugs: Plugs::new(switches, hosts),
            in_flight: InFlight::default(),
            due: DueQueue::new(switches, hosts),
            taps: Taps::default(),
            keeps_tree: false,
            flow_list: FlowList::default(),
            query_hosts: Vec::new(),
            records_left: RECORDS_OF_ALL_MAX,
            random: Random::new(seed),
            clock: now,
            frames_lost: 0,
            digest: None,
            of_switch: Effects::default(),
            of_host: HostEffects::default(),
        };
        topology.links.iter().for_each(|link| network.add_link(*link));
        network
    }

    fn add_link(&mut self, link: Link) {
        let number = self.cables.len();
        self.cables.push(Cable::new(link));
        for (end, way) in [(link.one, Way::Forth), (link.two, Way::Back)] {
            self.plugs.set(end, Some(Plug { link: number, way }));
            if let Endpoint::Switch { index, port } = end {
                // No controller is connected yet that would need a message.
                self.make_port(index, port, &mut NetworkEffects::default());
            }
        }
        self.tell_ends_of_rate(number, &mut NetworkEffects::default());
    }

    /// Sets the line rate of the hosts at a link, and the speed of the switches' ports there.
    fn tell_ends_of_rate(&mut self, link: usize, effects: &mut NetworkEffects) {
        let Some(Link { one, two, quality }) = self.cables.get(link).map(|cable| cable.link) else { return };
        for end in [one, two] {
            match end {
                Endpoint::Host { index } => {
                    if let Some(host) = self.hosts.get_mut(index) {
                        host.set_line_rate(quality.rate_bits_per_s);
                    }
                }
                Endpoint::Switch { index, port } => {
                    let speed = speed_kbps(&quality);
                    self.at_switch(index, effects, |switch, out| switch.set_speed(port, speed, out));
                }
            }
        }
    }

    /// Adds a port to a switch, unless it has that port.
    fn make_port(&mut self, index: usize, port: PortNo, effects: &mut NetworkEffects) {
        let now = self.clock;
        if self.ports_made.get_mut(index).is_some_and(|ports| ports.insert(port)) {
            self.at_switch(index, effects, |switch, out| switch.add_port(port, now, out));
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
        self.cables.iter().map(|cable| (cable.link, cable.is_up()))
    }

    /// The counters of a link, or `None` if it does not exist.
    pub fn link_counters(&self, link: usize) -> Option<LinkCounters> {
        self.cables.get(link).map(Cable::counters)
    }

    /// Each host's name and counters.
    pub fn counters_of_hosts(&self) -> Vec<(String, HostCounters)> {
        self.hosts.iter().map(|host| (host.name().to_owned(), host.counters())).collect()
    }

    /// For each host, by its place: the bytes of frames for it, by the address that sent them.
    pub fn received_by_hosts(&self) -> Vec<Vec<(MacAddr, u64)>> {
        self.hosts.iter().map(|host| host.received().collect()).collect()
    }

    /// Each link's name and counters.
    pub fn counters_of_links(&self) -> Vec<(String, LinkCounters)> {
        let counters = self.cables.iter().map(Cable::counters).enumerate();
        counters.map(|(link, counters)| (self.link_name(link), counters)).collect()
    }

    /// How many frames were lost on links for any reason, or because too many were on links.
    pub fn frames_lost(&self) -> u64 {
        self.frames_lost
    }

    /// Lets a host ping an address.
    pub fn ping(
        &mut self,
        host: usize,
        to: impl Into<IpAddr>,
        sequence: u16,
        now: Duration,
        effects: &mut NetworkEffects,
    ) {
        self.pass_to(now);
        self.at_host(host, effects, |host, out| host.ping(to, sequence, now, out));
    }

    /// Sends a frame from a host, as it is. The host itself knows nothing of it.
    ///
    /// # Errors
    ///
    /// The host does not exist.
    pub fn send_frame(
        &mut self,
        host: &str,
        frame: Vec<u8>,
        now: Duration,
        effects: &mut NetworkEffects,
    ) -> Result<(), CannotChange> {
        let index = self.host_named(host)?;
        self.pass_to(now);
        self.send(Endpoint::Host { index }, frame, effects);
        Ok(())
    }

    /// A host no longer waits for a ping. Returns whether it had no reply yet.
    pub fn give_up(&mut self, host: usize, to: impl Into<IpAddr>, sequence: u16) -> bool {
        self.hosts.get_mut(host).is_some_and(|host| host.give_up(to, sequence))
    }

    /// Starts or stops copying every frame that leaves or enters this end of a link.
    pub fn set_tap(&mut self, at: Endpoint, on: bool) {
        self.taps.set(at, on);
    }

    /// Keeps a digest from now on, of every frame that arrives and its time and place.
    pub fn keep_digest(&mut self) {
        self.digest.get_or_insert_default();
    }

    /// The digest; 0 if it is not kept.
    pub fn digest(&self) -> u64 {
        self.digest.map_or(0, |digest| digest.value())
    }

    /// The time of the next event without outside input. `None`: there is none.
    pub fn next_due(&self) -> Option<Duration> {
        if self.in_flight.is_urgent() {
            return Some(self.clock);
        }
        self.next_timed()
    }

    /// The time of the next time-out or arrival over a link with delay.
    pub(crate) fn next_timed(&self) -> Option<Duration> {
        let (due, arrival) = (self.due.next(), self.in_flight.next_later());
        due.into_iter().chain(arrival).min()
    }

    /// Processes all events until `now`, up to a budget of frames and time-outs. Returns whether there are more. A
    /// storm of frames uses up the budget, but does not stop the clock: due time-outs are still processed. If the
    /// network has more events than its caller can process, the clock goes on and old events are late.
    pub fn carry(&mut self, budget: usize, now: Duration, effects: &mut NetworkEffects) -> bool {
        let began = self.clock;
        for _ in 0..budget {
            if let Some(passage) = self.in_flight.pop_at_once() {
                self.arrive(passage, effects);
                continue;
            }
            let Some(next) = self.next_timed().filter(|next| *next <= now) else {
                self.pass_to(now);
                return false;
            };
            self.pass_to(next);
            match self.due.take(self.clock) {
                Some(node) => self.on_due(node, effects),
                None => {
                    if let Some(passage) = self.in_flight.pop_later() {
                        self.arrive(passage, effects);
                    }
                }
            }
        }
        let behind = now.saturating_sub(self.clock);
        if self.clock > began && behind <= BEHIND_MAX {
            return true;
        }
        self.pass_to(now);
        // Each node is due at most once, so this loop ends.
        for _ in 0..self.switches.len() + self.hosts.len() {
            let Some(node) = self.due.take(now) else { break };
            self.on_due(node, effects);
        }
        self.next_due().is_some_and(|due| due <= now)
    }

    /// Advances the clock to this time. It never goes back.
    fn pass_to(&mut self, time: Duration) {
        self.clock = self.clock.max(time);
    }

    fn on_due(&mut self, node: Node, effects: &mut NetworkEffects) {
        let now = self.clock;
        match node {
            Node::Switch(index) => {
                self.at_switch(index, effects, |switch, out| switch.on_tick(now, out));
                self.set_due_of_switch(index);
            }
            Node::Host(index) => self.at_host(index, effects, |host, out| host.on_tick(now, out)),
        }
    }

    fn set_due_of_switch(&mut self, index: usize) {
        if let Some(switch) = self.switches.get(index) {
            self.due.set(Node::Switch(index), switch.next_due());
        }
    }

    /// A frame has arrived at the end of its link.
    fn arrive(&mut self, passage: Passage, effects: &mut NetworkEffects) {
        let Passage { to, link, way, period, frame } = passage;
        let now = self.clock;
        if self.cables[link].period != period {
            self.frames_lost += 1;
            return self.cables[link].lose_what_was_sent(way, frame.len());
        }
        self.taps.note(to, false, now, &frame, &mut effects.captured);
        if let Some(digest) = &mut self.digest {
            digest.number(u64::try_from(now.as_nanos()).unwrap_or(u64::MAX));
            digest.number(link as u64 * 2 + way as u64);
            digest.bytes(&frame);
        }
        match to {
            Endpoint::Switch { index, port } => {
                self.at_switch(index, effects, |switch, out| switch.on_frame(port, frame, now, out));
            }
            Endpoint::Host { index } => {
                self.at_host(index, effects, |host, out| host.on_frame(&frame, now, out));
                self.of_host.recycle(frame);
            }
        }
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
        effects.close.extend(out.close.drain(..).map(|(controller, why)| (channel(controller), why)));
        for (port, frame) in out.frames.drain(..) {
            self.send(Endpoint::Switch { index, port }, frame, effects);
        }
        self.of_switch = out;
        // A switch that plays a profile does what a frame or message causes at a later time.
        if self.switches[index].plays_profile() {
            self.set_due_of_switch(index);
        }
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
        self.due.set(Node::Host(index), host.next_due());
        effects.replies.extend(out.replies.drain(..).map(|reply| (index, reply)));
        let mut frames = std::mem::take(&mut out.frames);
        self.of_host = out;
        for frame in frames.drain(..) {
            self.send(Endpoint::Host { index }, frame, effects);
        }
        self.of_host.frames = frames;
    }

    /// Puts a frame on the link at this end.
    fn send(&mut self, from: Endpoint, frame: Vec<u8>, effects: &mut NetworkEffects) {
        self.taps.note(from, true, self.clock, &frame, &mut effects.captured);
        let Some(Plug { link, way }) = self.plugs.get(from) else {
            if let Endpoint::Switch { index, port } = from
                && self.outside.contains(&(index, port))
            {
                return effects.outside.push((index, port, frame));
            }
            return self.lose(frame);
        };
        let cable = &mut self.cables[link];
        let fate = cable.offer(way, frame.len(), self.clock, &mut self.random);
        let to = match way {
            Way::Forth => cable.link.two,
            Way::Back => cable.link.one,
        };
        let passage = Passage { to, link, way, period: cable.period, frame };
        let pushed = match fate {
            Fate::AtOnce => self.in_flight.push_at_once(passage),
            Fate::At(at) => self.in_flight.push_later(at, passage),
            Fate::Lost => Err(passage),
        };
        if let Err(passage) = pushed {
            self.lose(passage.frame);
        }
    }

    fn lose(&mut self, frame: Vec<u8>) {
        self.frames_lost += 1;
        self.of_host.recycle(frame);
    }
}

/// The speed that a port at a link reports, if the link has a limit.
fn speed_kbps(quality: &LinkQuality) -> Option<u32> {
    let kbps = quality.rate_bits_per_s?.div_ceil(1000);
    Some(u32::try_from(kbps).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::LinkQuality;
    use flow::{Action, Instruction, Match, PortNo};
    use openflow::message::*;
    use openflow::{Body, Version};
    use std::net::Ipv4Addr;

    const NOW: Duration = Duration::from_secs(1);

    /// A network whose switches flood every packet.
    fn flooding(topology: &str) -> Network {
        let topology: Topology = topology.parse().unwrap();
        let mut network = Network::new(&topology, &SwitchOptions::default(), NOW);
        let mut effects = NetworkEffects::default();
        let flood = FlowModFields { priority: 0, ..FlowModFields::default() }
            .with(Match::any(), vec![Instruction::ApplyActions(vec![Action::output(PortNo::FLOOD)])]);
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
        // A cable from the switch to itself: every broadcast circulates and multiplies.
        for (one, two) in [(3, 4), (5, 6)] {
            let port = |port| Endpoint::Switch { index: 0, port: PortNo(port) };
            let quality = LinkQuality::default();
            network.add_link(Link { one: port(one), two: port(two), quality });
        }
        let mut effects = NetworkEffects::default();
        network.ping(0, Ipv4Addr::new(10, 0, 0, 9), 1, NOW, &mut effects);
        for _ in 0..100 {
            assert!(network.carry(1000, NOW, &mut effects));
        }
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
