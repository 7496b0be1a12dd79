//! Fluid traffic through servers with edge agents, and through the links of a fabric, in steps of 10 µs.
//!
//! ```text
//!   demands ──> classes of the sender's server (HTB) ──> links of the path ──> meter of the receiver's server
//!                    ↑ changes                                                     │ bytes
//!                    └────── Agent <── feedback, after 50 µs ── Agent <────────────┘
//!                              ↑ caps      reports └──────> label service: who began, who ended
//! ```
//!
//! A server divides its NIC as HTB does: among VNICs in proportion to their guarantees, then evenly among the flows of each. A link that gets too much
//! carries the same part of each flow. Classes and datagrams of agents take no capacity.
//!
//! In: VNICs, demands, paths, caps, time. Out: rates, and what the label service was told. The agents are those of the crate `edge`.

use crate::fabric::{Fabric, ServerNo};
use crate::tenant::Plan;
use edge::agent::{Agent, BadSettings, Commands, Event, Peer, Settings};
use edge::protocol::link::{Link, Opened};
use edge::protocol::reports::Inbox;
use edge::protocol::{Entry, Key, Message, NO_CAP, RateOf, What};
use edge::shaper::{Deed, Place, Rates};
use edge::shares::{Claim, divide, level};
use edge::vnic::{Address, AgentId, BadDirectory, Directory, Flow, SliceId, Vnic, VnicId};
use flow::MacAddr;
use hose::{LinkNo, Pair, SliceNo, VnicNo};
use std::collections::BTreeMap;
use std::fmt;

const STEP_NS: u64 = 10_000;
const DELAY_NS: u64 = 50_000;
/// Rates are measured over this time.
const WINDOW_NS: u64 = 1_000_000;
/// How often the service asks for reports that are missing.
const ASK_NS: u64 = 100_000_000;
/// An agent's first report is before its session with the service, and is lost. It comes when the service asks for it.
const WARM_UP_NS: u64 = ASK_NS + 1_000_000;
/// What waits for a class at most, in bits. More of a burst is dropped at the sender.
const QUEUE_BITS: f64 = 8e6;
/// The number of the label service among the agents.
const SERVICE: AgentId = AgentId(u32::MAX);
/// VNICs of a slice have numbers from a multiple of this on.
const VNICS_OF_SLICE: u32 = 1_024;

/// What a flow wants to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Demand {
    /// As much as it can.
    All,
    /// A burst at the beginning of each period.
    Bursts {
        /// The rate during a burst.
        bps: u64,
        /// How long a burst lasts.
        on_ns: u64,
        /// The time from one burst to the next.
        period_ns: u64,
    },
}

/// Why there can be no such network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoFluid {
    /// The VNICs are wrong.
    Directory(BadDirectory),
    /// The NIC of a server is wrong.
    Settings(BadSettings),
}

impl fmt::Display for NoFluid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoFluid::Directory(bad) => write!(f, "{bad}"),
            NoFluid::Settings(bad) => write!(f, "{bad}"),
        }
    }
}

impl std::error::Error for NoFluid {}

#[derive(Debug)]
struct Server {
    agent: Agent,
    nic_bps: u64,
    classes: BTreeMap<Place, Rates>,
}

/// The service's end of the link with an agent.
#[derive(Debug)]
struct Listener {
    link: Link,
    inbox: Inbox,
}

#[derive(Clone, Debug)]
struct Traffic {
    demand: Demand,
    began_ns: u64,
    links: Vec<LinkNo>,
    queued_bits: f64,
    /// What arrived and is no whole byte.
    rest: f64,
    /// What arrived in this window.
    bytes: u64,
    measured_bps: f64,
}

/// A datagram on its way.
#[derive(Debug)]
struct Flying {
    at_ns: u64,
    from: AgentId,
    to: AgentId,
    datagram: Vec<u8>,
}

/// The network.
#[derive(Debug)]
pub struct Fluid {
    now_ns: u64,
    capacities_bps: Vec<u64>,
    directory: Directory,
    servers: BTreeMap<AgentId, Server>,
    service: BTreeMap<AgentId, Listener>,
    traffic: BTreeMap<Flow, Traffic>,
    flying: Vec<Flying>,
    window_ns: u64,
    heard: Vec<Entry>,
    refusals: u64,
}

/// The number of a VNIC among the agents.
fn id(slice: SliceNo, vnic: VnicNo) -> VnicId {
    VnicId(slice.0 * VNICS_OF_SLICE + vnic.0 + 1)
}

fn flow(pair: Pair) -> Flow {
    Flow { sender: id(pair.slice, pair.source), receiver: id(pair.slice, pair.destination) }
}

fn pair(flow: Flow) -> Pair {
    let number = |vnic: VnicId| VnicNo((vnic.0.max(1) - 1) % VNICS_OF_SLICE);
    let slice = SliceNo((flow.sender.0.max(1) - 1) / VNICS_OF_SLICE);
    Pair { slice, source: number(flow.sender), destination: number(flow.receiver) }
}

fn agent(server: ServerNo) -> AgentId {
    // Servers of a fabric are few.
    AgentId(server.0 as u32)
}

fn key(one: AgentId, two: AgentId) -> Key {
    let (low, high) = (one.min(two).0, one.max(two).0);
    Key(std::array::from_fn(|index| {
        let bytes = if index % 2 == 0 { low } else { high }.to_be_bytes();
        bytes[index / 2 % 4]
    }))
}

/// All VNICs of these tenants, as the agents know them.
fn vnics(plans: &[Plan]) -> Vec<Vnic> {
    let of_slice = |(slice, plan): (SliceNo, &Plan)| -> Vec<Vnic> {
        let vnic = |(number, vnic): (VnicNo, &crate::tenant::Vnic)| {
            let id = id(slice, number);
            let [_, high, low, last] = id.0.to_be_bytes();
            Vnic {
                id,
                slice: SliceId(slice.0),
                agent: Some(agent(vnic.server)),
                address: Address { vlan: None, mac: MacAddr([2, 0, 0, high, low, last]) },
                guarantee_bps: vnic.rate_bps,
                strict: false,
            }
        };
        (0..).map(VnicNo).zip(&plan.vnics).map(vnic).collect()
    };
    (0..).map(SliceNo).zip(plans).flat_map(of_slice).collect()
}

impl Fluid {
    /// Servers with agents and without traffic, when the service has their first reports.
    ///
    /// # Errors
    /// The VNICs or a NIC cannot be.
    pub fn new(fabric: &Fabric, plans: &[Plan]) -> Result<Fluid, NoFluid> {
        let directory = Directory::new(vnics(plans)).map_err(NoFluid::Directory)?;
        let agents: Vec<AgentId> = (0..fabric.servers()).map(|server| agent(ServerNo(server))).collect();
        let mut servers = BTreeMap::new();
        for (index, me) in agents.iter().enumerate() {
            let nic_bps = fabric.nic_bps(ServerNo(index));
            let mut settings = Settings::for_nic(*me, nic_bps, 1_000 + u64::from(me.0));
            settings.service = Some(SERVICE);
            let others = agents.iter().chain([&SERVICE]).filter(|other| *other != me);
            settings.peers = others.map(|other| Peer { agent: *other, key: key(*me, *other) }).collect();
            let agent = Agent::new(0, settings, directory.clone()).map_err(NoFluid::Settings)?;
            servers.insert(*me, Server { agent, nic_bps, classes: BTreeMap::new() });
        }
        let listener = |agent: &AgentId| {
            let link = Link::new(SERVICE, *agent, key(SERVICE, *agent), 99);
            (*agent, Listener { link, inbox: Inbox::default() })
        };
        let mut fluid = Fluid {
            now_ns: 0,
            capacities_bps: fabric.links().map(|(_, link)| link.capacity_bps).collect(),
            servers,
            service: agents.iter().map(listener).collect(),
            directory,
            traffic: BTreeMap::new(),
            flying: Vec::new(),
            window_ns: 0,
            heard: Vec::new(),
            refusals: 0,
        };
        fluid.run(WARM_UP_NS);
        Ok(fluid)
    }

    /// A flow sends over these links from now on, or over others than before.
    pub fn carry(&mut self, pair: Pair, demand: Demand, links: &[LinkNo]) {
        let began_ns = self.now_ns;
        let new = Traffic {
            demand,
            began_ns,
            links: Vec::new(),
            queued_bits: 0.0,
            rest: 0.0,
            bytes: 0,
            measured_bps: 0.0,
        };
        self.traffic.entry(flow(pair)).or_insert(new).links = links.to_vec();
    }

    /// What arrived in the last millisecond, in bit/s.
    pub fn rate_bps(&self, pair: Pair) -> f64 {
        self.traffic.get(&flow(pair)).map_or(0.0, |traffic| traffic.measured_bps)
    }

    /// The label service caps a flow at its sender's agent, or takes the cap away.
    pub fn cap(&mut self, pair: Pair, rate_bps: Option<u64>) {
        let flow = flow(pair);
        let Some(to) = self.directory.get(flow.sender).and_then(|sender| sender.agent) else { return };
        let caps = vec![RateOf { flow, rate_bps: rate_bps.unwrap_or(NO_CAP) }];
        let sealed = self.service.get_mut(&to).and_then(|it| it.link.seal(&Message::Caps(caps)));
        if let Some(datagram) = sealed {
            self.flying.push(Flying { at_ns: self.now_ns + DELAY_NS, from: SERVICE, to, datagram });
        }
    }

    /// What the label service was told since the last call: flows whose first packets a meter saw (`true`), and flows that are idle (`false`).
    pub fn take_heard(&mut self) -> Vec<(Pair, bool)> {
        let told = |entry: Entry| match entry.what {
            What::Began | What::Rate => Some((pair(entry.flow), true)),
            What::Ended => Some((pair(entry.flow), false)),
            What::Reset | What::Shaped | What::Unshaped => None,
        };
        std::mem::take(&mut self.heard).into_iter().filter_map(told).collect()
    }

    /// How many datagrams or statements were refused.
    pub fn refusals(&self) -> u64 {
        self.refusals
    }

    /// The time.
    pub fn now_ns(&self) -> u64 {
        self.now_ns
    }

    /// Time passes.
    pub fn run(&mut self, for_ns: u64) {
        let until_ns = self.now_ns + for_ns;
        while self.now_ns < until_ns {
            self.now_ns += STEP_NS;
            self.move_bytes();
            self.deliver();
            let is_due = |(agent, server): (&AgentId, &Server)| {
                (server.agent.next_due_ns() <= self.now_ns).then_some(*agent)
            };
            let due: Vec<AgentId> = self.servers.iter().filter_map(is_due).collect();
            due.into_iter().for_each(|agent| self.event(agent, Event::Time));
            if self.now_ns.is_multiple_of(ASK_NS) {
                self.ask_again();
            }
        }
    }

    fn move_bytes(&mut self) {
        let mut rates = self.sent();
        for (flow, bps) in &rates {
            if let Some(traffic) = self.traffic.get_mut(flow) {
                traffic.queued_bits = (traffic.queued_bits - bps * STEP_NS as f64 / 1e9).max(0.0);
            }
        }
        self.through_links(&mut rates);
        for (flow, bps) in rates {
            let Some(traffic) = self.traffic.get_mut(&flow) else { continue };
            traffic.rest += bps / 8.0 * STEP_NS as f64 / 1e9;
            let bytes = traffic.rest as u64;
            traffic.rest -= bytes as f64;
            traffic.bytes += bytes;
            if let Some(to) = self.directory.get(flow.receiver).and_then(|receiver| receiver.agent) {
                self.event(to, Event::Bytes(&[(flow, bytes)]));
            }
        }
        if self.now_ns - self.window_ns >= WINDOW_NS {
            let seconds = (self.now_ns - self.window_ns) as f64 / 1e9;
            self.window_ns = self.now_ns;
            for traffic in self.traffic.values_mut() {
                traffic.measured_bps = std::mem::take(&mut traffic.bytes) as f64 * 8.0 / seconds;
            }
        }
    }

    /// What leaves the servers.
    fn sent(&mut self) -> BTreeMap<Flow, f64> {
        let now_ns = self.now_ns;
        self.traffic.values_mut().for_each(|traffic| traffic.fill(now_ns));
        let mut sent = BTreeMap::new();
        for server in self.servers.values() {
            let vnics = server.classes.keys().filter(|place| matches!(place, Place::Vnic(_)));
            let vnics: Vec<VnicId> = vnics.map(|place| place.vnic()).collect();
            let wants: Vec<Vec<(Flow, u64)>> = vnics.iter().map(|vnic| self.wants(server, *vnic)).collect();
            let claim = |(vnic, flows): (&VnicId, &Vec<(Flow, u64)>)| {
                let rates = server.classes[&Place::Vnic(*vnic)];
                let wanted: u64 = flows.iter().map(|(_, bps)| *bps).sum();
                Claim { guarantee_bps: rates.rate_bps, demand_bps: wanted.min(rates.ceiling_bps) }
            };
            let claims: Vec<Claim> = vnics.iter().zip(&wants).map(claim).collect();
            for (share, flows) in divide(server.nic_bps, &claims).into_iter().zip(wants) {
                let demands: Vec<u64> = flows.iter().map(|(_, bps)| *bps).collect();
                let level = level(share, &demands);
                sent.extend(flows.into_iter().map(|(flow, bps)| (flow, bps.min(level) as f64)));
            }
        }
        sent
    }

    /// What each flow of a VNIC wants, as far as its class lets it.
    fn wants(&self, server: &Server, vnic: VnicId) -> Vec<(Flow, u64)> {
        let flows = self.traffic.iter().filter(|(flow, _)| flow.sender == vnic);
        flows
            .map(|(flow, traffic)| {
                let class =
                    server.classes.get(&Place::Flow(*flow)).or(server.classes.get(&Place::Others(vnic)));
                let ceiling_bps = class.map_or(0, |class| class.ceiling_bps).min(server.nic_bps);
                (*flow, traffic.wanted_bps().min(ceiling_bps))
            })
            .collect()
    }

    /// Narrows the rates at each link, first those at the beginnings of paths.
    fn through_links(&self, rates: &mut BTreeMap<Flow, f64>) {
        let mut depths: BTreeMap<LinkNo, usize> = BTreeMap::new();
        for traffic in self.traffic.values() {
            for (depth, link) in traffic.links.iter().enumerate() {
                let known = depths.entry(*link).or_insert(depth);
                *known = depth.max(*known);
            }
        }
        let mut links: Vec<(usize, LinkNo)> = depths.into_iter().map(|(link, depth)| (depth, link)).collect();
        links.sort_unstable();
        for (_, link) in links {
            let capacity = self.capacities_bps[link.index()] as f64;
            let over = |flow: &Flow| self.traffic.get(flow).is_some_and(|it| it.links.contains(&link));
            let sum: f64 = rates.iter().filter(|(flow, _)| over(flow)).map(|(_, rate)| rate).sum();
            if sum > capacity {
                let here = rates.iter_mut().filter(|(flow, _)| over(flow));
                here.for_each(|(_, rate)| *rate *= capacity / sum);
            }
        }
    }

    fn deliver(&mut self) {
        let (now_ns, flying) = (self.now_ns, std::mem::take(&mut self.flying));
        let (arrived, flying): (Vec<Flying>, Vec<Flying>) =
            flying.into_iter().partition(|it| it.at_ns <= now_ns);
        self.flying = flying;
        for Flying { from, to, datagram, .. } in arrived {
            if to == SERVICE {
                self.listen(from, &datagram);
            } else {
                self.event(to, Event::Datagram(&datagram));
            }
        }
    }

    fn event(&mut self, agent: AgentId, event: Event<'_>) {
        let now_ns = self.now_ns;
        let Some(server) = self.servers.get_mut(&agent) else { return };
        let mut commands = Commands::default();
        server.agent.on_event(now_ns, event, &mut commands);
        // The shaper of this model obeys at once.
        while !commands.changes.is_empty() {
            for change in std::mem::take(&mut commands.changes) {
                match change.deed {
                    Deed::Add(rates) | Deed::Change(rates) => server.classes.insert(change.place, rates),
                    Deed::Remove => server.classes.remove(&change.place),
                };
            }
            server.agent.on_event(now_ns, Event::Shaped(&[]), &mut commands);
        }
        self.refusals += commands.refusals.len() as u64;
        let at_ns = now_ns + DELAY_NS;
        let flying = |(to, datagram)| Flying { at_ns, from: agent, to, datagram };
        self.flying.extend(commands.datagrams.into_iter().map(flying));
    }

    fn listen(&mut self, from: AgentId, datagram: &[u8]) {
        let at_ns = self.now_ns + DELAY_NS;
        let Some(listener) = self.service.get_mut(&from) else { return };
        match listener.link.open(datagram) {
            Ok(Opened::Hello { session }) => {
                let datagram = listener.link.welcome(session);
                self.flying.push(Flying { at_ns, from: SERVICE, to: from, datagram });
            }
            Ok(Opened::Message { message, .. }) => match message {
                Message::Report { number, entries } => {
                    self.heard.extend(listener.inbox.on_report(number, entries).into_iter().flatten());
                }
                Message::Beat { newest } => listener.inbox.on_beat(newest),
                _ => {}
            },
            Err(_) => self.refusals += 1,
        }
    }

    fn ask_again(&mut self) {
        let at_ns = self.now_ns + DELAY_NS;
        for (to, listener) in &mut self.service {
            if let Some((first, last)) = listener.inbox.missing()
                && let Some(datagram) = listener.link.seal(&Message::Again { first, last })
            {
                self.flying.push(Flying { at_ns, from: SERVICE, to: *to, datagram });
            }
        }
    }
}

impl Traffic {
    /// What a burst adds to the queue in this step.
    fn fill(&mut self, now_ns: u64) {
        let Demand::Bursts { bps, on_ns, period_ns } = self.demand else { return };
        if (now_ns - self.began_ns) % period_ns.max(1) < on_ns {
            let bits = bps as f64 * STEP_NS as f64 / 1e9;
            self.queued_bits = (self.queued_bits + bits).min(QUEUE_BITS);
        }
    }

    fn wanted_bps(&self) -> u64 {
        match self.demand {
            // More than any NIC.
            Demand::All => u64::MAX >> 8,
            Demand::Bursts { .. } => (self.queued_bits * 1e9 / STEP_NS as f64) as u64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pair_has_a_flow_and_back() {
        for (slice, source, destination) in [(0, 0, 1), (3, 1_023, 0), (15, 7, 8)] {
            let one =
                Pair { slice: SliceNo(slice), source: VnicNo(source), destination: VnicNo(destination) };
            assert_eq!(pair(flow(one)), one);
        }
    }
}
