//! A fluid network with agents, for tests: servers with one NIC each, and a label service that collects reports.
//!
//! In: VNICs, demands, time. Out: rates. It has a seed for the loss of datagrams.

use edge::agent::{Agent, Commands, Event, Peer, Settings};
use edge::protocol::link::{Link, Opened};
use edge::protocol::reports::Inbox;
use edge::protocol::{Key, Message, RateOf};
use edge::shaper::{Deed, Place, Rates};
use edge::shares::{Claim, divide, level};
use edge::vnic::{Address, AgentId, Directory, Flow, SliceId, Vnic, VnicId};
use flow::MacAddr;
use std::collections::BTreeMap;

/// A gigabit a second.
pub const G: u64 = 1_000_000_000;
/// A millisecond in nanoseconds.
pub const MS: u64 = 1_000_000;
/// The number of the label service.
pub const SERVICE: AgentId = AgentId(100);

const NIC: u64 = 10 * G;
const STEP_NS: u64 = 10_000;
const DELAY_NS: u64 = 50_000;
/// Rates are measured over this time.
const WINDOW_NS: u64 = MS;

/// The links between the switches.
pub enum Wire {
    /// Each flow has links of its own.
    Separate,
    /// These flows share one of 10 Gb/s.
    Shared([Flow; 2]),
}

pub fn flow(sender: u32, receiver: u32) -> Flow {
    Flow { sender: VnicId(sender), receiver: VnicId(receiver) }
}

struct Server {
    agent: Agent,
    classes: BTreeMap<Place, Rates>,
}

/// The ceiling of a VNIC, and what each of its flows may send and wants.
type Wants = (u64, Vec<(Flow, u64)>);

/// The service's end of the link with an agent.
struct Listener {
    link: Link,
    inbox: Inbox,
    entries: Vec<String>,
}

pub struct Network {
    now_ns: u64,
    directory: Directory,
    servers: BTreeMap<AgentId, Server>,
    service: BTreeMap<AgentId, Listener>,
    demands: BTreeMap<Flow, u64>,
    wire: Wire,
    /// Datagrams on their way: when they arrive, from whom, to whom.
    flying: Vec<(u64, AgentId, AgentId, Vec<u8>)>,
    arrived: BTreeMap<Flow, (f64, u64)>,
    measured: BTreeMap<Flow, f64>,
    window_ns: u64,
    refusals: Vec<String>,
    /// Whether a full NIC drops packets of the last flows only. Otherwise it drops the same part of each.
    pub is_unfair: bool,
    /// Whether all datagrams are lost.
    pub is_deaf: bool,
    /// How many datagrams of a thousand are lost.
    pub loss_permille: u64,
    luck: u64,
}

fn key(one: AgentId, two: AgentId) -> Key {
    let (low, high) = (one.min(two), one.max(two));
    Key(std::array::from_fn(|index| (low.0 * 7 + high.0 * 13) as u8 ^ index as u8))
}

fn vnic((id, agent, guarantee_bps): (u32, u32, u64), strict: bool) -> Vnic {
    let address = Address { vlan: None, mac: MacAddr([2, 0, 0, 0, 0, id as u8]) };
    Vnic { id: VnicId(id), slice: SliceId(1), agent: Some(AgentId(agent)), address, guarantee_bps, strict }
}

impl Network {
    /// VNICs: number, server, guarantee.
    pub fn new(vnics: &[(u32, u32, u64)], wire: Wire) -> Self {
        Network::with(vnics, wire, false)
    }

    /// … that are all strict.
    pub fn strict(vnics: &[(u32, u32, u64)]) -> Self {
        Network::with(vnics, Wire::Separate, true)
    }

    fn with(vnics: &[(u32, u32, u64)], wire: Wire, strict: bool) -> Self {
        let directory = Directory::new(vnics.iter().map(|one| vnic(*one, strict))).unwrap();
        let mut agents: Vec<AgentId> = vnics.iter().map(|one| AgentId(one.1)).collect();
        agents.sort_unstable();
        agents.dedup();
        let everybody: Vec<AgentId> = agents.iter().copied().chain([SERVICE]).collect();
        let server = |me: &AgentId| {
            let mut settings = Settings::for_nic(*me, NIC, 1000 + u64::from(me.0));
            settings.service = Some(SERVICE);
            let others = everybody.iter().filter(|other| *other != me);
            settings.peers = others.map(|other| Peer { agent: *other, key: key(*me, *other) }).collect();
            let agent = Agent::new(0, settings, directory.clone()).unwrap();
            (*me, Server { agent, classes: BTreeMap::new() })
        };
        let listener = |agent: &AgentId| {
            let link = Link::new(SERVICE, *agent, key(SERVICE, *agent), 99);
            (*agent, Listener { link, inbox: Inbox::default(), entries: Vec::new() })
        };
        let mut network = Network {
            now_ns: 0,
            servers: agents.iter().map(server).collect(),
            service: agents.iter().map(listener).collect(),
            directory,
            demands: BTreeMap::new(),
            wire,
            flying: Vec::new(),
            arrived: BTreeMap::new(),
            measured: BTreeMap::new(),
            window_ns: 0,
            refusals: Vec::new(),
            is_unfair: false,
            is_deaf: false,
            loss_permille: 0,
            luck: 1,
        };
        network.run(MS);
        network
    }

    /// A flow wants this much from now on.
    pub fn start(&mut self, flow: Flow, demand_bps: u64) {
        self.demands.insert(flow, demand_bps);
    }

    /// A flow wants nothing from now on.
    pub fn stop(&mut self, flow: Flow) {
        self.demands.remove(&flow);
    }

    /// The rate that arrived in the last whole window.
    pub fn rate(&self, flow: Flow) -> f64 {
        self.measured.get(&flow).copied().unwrap_or(0.0)
    }

    /// The service caps a flow at its sender's agent.
    pub fn cap(&mut self, agent: u32, flow: Flow, rate_bps: u64) {
        let link = &mut self.service.get_mut(&AgentId(agent)).unwrap().link;
        let datagram = link.seal(&Message::Caps(vec![RateOf { flow, rate_bps }])).unwrap();
        self.flying.push((self.now_ns + DELAY_NS, SERVICE, AgentId(agent), datagram));
    }

    /// What the service was told by an agent.
    pub fn reported(&self, agent: u32) -> Vec<String> {
        self.service[&AgentId(agent)].entries.clone()
    }

    /// What was refused by anybody.
    pub fn refusals(&self) -> Vec<String> {
        self.refusals.clone()
    }

    /// Time passes.
    pub fn run(&mut self, for_ns: u64) {
        let until = self.now_ns + for_ns;
        while self.now_ns < until {
            self.now_ns += STEP_NS;
            self.move_bytes();
            self.deliver();
            for agent in self.servers.keys().copied().collect::<Vec<_>>() {
                if self.servers[&agent].agent.next_due_ns() <= self.now_ns {
                    self.event(agent, Event::Time);
                }
            }
            if self.now_ns.is_multiple_of(100 * MS) {
                self.ask_again();
            }
        }
    }

    fn move_bytes(&mut self) {
        let rates = self.through_links(self.sent());
        for (flow, bps) in rates {
            let to = self.directory.get(flow.receiver).unwrap().agent.unwrap();
            let arrived = self.arrived.entry(flow).or_default();
            arrived.0 += bps / 8.0 * STEP_NS as f64 / 1e9;
            let bytes = arrived.0 as u64;
            arrived.0 -= bytes as f64;
            arrived.1 += bytes;
            self.event(to, Event::Bytes(&[(flow, bytes)]));
        }
        if self.now_ns - self.window_ns >= WINDOW_NS {
            let seconds = (self.now_ns - self.window_ns) as f64 / 1e9;
            self.window_ns = self.now_ns;
            let rate = |(flow, arrived): (&Flow, &mut (f64, u64))| {
                (*flow, std::mem::take(&mut arrived.1) as f64 * 8.0 / seconds)
            };
            self.measured = self.arrived.iter_mut().map(rate).collect();
        }
    }

    /// What leaves the servers, as HTB divides it: among VNICs, then among the flows of each.
    fn sent(&self) -> Vec<(Flow, f64)> {
        let mut sent = Vec::new();
        for server in self.servers.values() {
            let vnic = |place: &Place| if let Place::Vnic(vnic) = place { Some(*vnic) } else { None };
            let vnics: Vec<VnicId> = server.classes.keys().filter_map(vnic).collect();
            let wants: Vec<Wants> = vnics.iter().map(|vnic| self.wants(server, *vnic)).collect();
            let claim = |(vnic, (ceiling, flows)): (&VnicId, &Wants)| Claim {
                guarantee_bps: server.classes[&Place::Vnic(*vnic)].rate_bps,
                demand_bps: flows.iter().map(|(_, bps)| *bps).sum::<u64>().min(*ceiling),
            };
            let claims: Vec<Claim> = vnics.iter().zip(&wants).map(claim).collect();
            for (share, (_, flows)) in divide(NIC, &claims).into_iter().zip(wants) {
                let demands: Vec<u64> = flows.iter().map(|(_, bps)| *bps).collect();
                let level = level(share, &demands);
                sent.extend(flows.into_iter().map(|(flow, bps)| (flow, bps.min(level) as f64)));
            }
        }
        sent
    }

    /// The ceiling of a VNIC, and what each of its flows may send and wants.
    fn wants(&self, server: &Server, vnic: VnicId) -> Wants {
        let flows = self.demands.iter().filter(|(flow, _)| flow.sender == vnic);
        let flows = flows.map(|(flow, demand)| {
            let class = server.classes.get(&Place::Flow(*flow)).or(server.classes.get(&Place::Others(vnic)));
            (*flow, (*demand).min(class.map_or(0, |class| class.ceiling_bps)).min(NIC))
        });
        (server.classes[&Place::Vnic(vnic)].ceiling_bps, flows.collect())
    }

    /// What arrives: a link that gets too much carries the same part of each flow.
    fn through_links(&self, mut rates: Vec<(Flow, f64)>) -> Vec<(Flow, f64)> {
        if let Wire::Shared(shared) = &self.wire {
            narrow(&mut rates, |flow| shared.contains(flow));
        }
        for agent in self.servers.keys() {
            let agent_of = |flow: &Flow| self.directory.get(flow.receiver).unwrap().agent;
            let is_here = |flow: &Flow| agent_of(flow) == Some(*agent);
            if self.is_unfair { first_come(&mut rates, is_here) } else { narrow(&mut rates, is_here) }
        }
        rates
    }

    fn deliver(&mut self) {
        let now = self.now_ns;
        let (arrived, flying) = std::mem::take(&mut self.flying).into_iter().partition(|(at, ..)| *at <= now);
        self.flying = flying;
        let arrived: Vec<(u64, AgentId, AgentId, Vec<u8>)> = arrived;
        for (_, from, to, datagram) in arrived {
            self.luck =
                self.luck.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            if self.is_deaf || (self.luck >> 33) % 1000 < self.loss_permille {
                continue;
            }
            if to == SERVICE {
                self.listen(from, &datagram);
            } else {
                self.event(to, Event::Datagram(&datagram));
            }
        }
    }

    fn event(&mut self, agent: AgentId, event: Event<'_>) {
        let now = self.now_ns;
        let server = self.servers.get_mut(&agent).unwrap();
        let mut commands = Commands::default();
        server.agent.on_event(now, event, &mut commands);
        // The shaper of this model obeys at once.
        while !commands.changes.is_empty() {
            for change in std::mem::take(&mut commands.changes) {
                match change.deed {
                    Deed::Add(rates) | Deed::Change(rates) => server.classes.insert(change.place, rates),
                    Deed::Remove => server.classes.remove(&change.place),
                };
            }
            server.agent.on_event(now, Event::Shaped(&[]), &mut commands);
        }
        self.refusals.extend(commands.refusals.iter().map(ToString::to_string));
        let flying =
            commands.datagrams.into_iter().map(|(to, datagram)| (now + DELAY_NS, agent, to, datagram));
        self.flying.extend(flying);
    }

    fn listen(&mut self, from: AgentId, datagram: &[u8]) {
        let at = self.now_ns + DELAY_NS;
        let listener = self.service.get_mut(&from).unwrap();
        match listener.link.open(datagram) {
            Ok(Opened::Hello { session }) => {
                self.flying.push((at, SERVICE, from, listener.link.welcome(session)));
            }
            Ok(Opened::Message { message, .. }) => match message {
                Message::Report { number, entries } => {
                    let complete = listener.inbox.on_report(number, entries);
                    listener.entries.extend(complete.iter().flatten().map(ToString::to_string));
                }
                Message::Beat { newest } => listener.inbox.on_beat(newest),
                _ => {}
            },
            Err(refusal) => self.refusals.push(refusal.to_string()),
        }
    }

    fn ask_again(&mut self) {
        for (agent, listener) in &mut self.service {
            if let Some((first, last)) = listener.inbox.missing() {
                let datagram = listener.link.seal(&Message::Again { first, last }).unwrap();
                self.flying.push((self.now_ns + DELAY_NS, SERVICE, *agent, datagram));
            }
        }
    }
}

fn narrow(rates: &mut [(Flow, f64)], is_here: impl Fn(&Flow) -> bool) {
    let sum: f64 = rates.iter().filter(|(flow, _)| is_here(flow)).map(|(_, rate)| rate).sum();
    if sum > NIC as f64 {
        let here = rates.iter_mut().filter(|(flow, _)| is_here(flow));
        here.for_each(|(_, rate)| *rate *= NIC as f64 / sum);
    }
}

fn first_come(rates: &mut [(Flow, f64)], is_here: impl Fn(&Flow) -> bool) {
    let mut left = NIC as f64;
    for (_, rate) in rates.iter_mut().filter(|(flow, _)| is_here(flow)) {
        *rate = rate.min(left);
        left -= *rate;
    }
}
