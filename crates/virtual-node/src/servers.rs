//! The servers: an agent on each, emulated hosts as its VNICs, and its NIC.
//!
//! ```text
//!   bytes that hosts received ──> Agent (crate edge) ──> classes of the server ──> NIC divided as HTB does ──> what each host may send to each other
//!                                   ⇅ datagrams: other agents, the service of labels
//! ```
//!
//! A server divides its NIC among its VNICs in proportion to their guarantees, and then evenly among the flows of each, as far as their classes let
//! them. A flow that the rehearsal has begun is taken for one that sends as much as it may.
//!
//! In: bytes, datagrams, flows that begin, time. Out: datagrams for the service, and ceilings for hosts. The agents decide.

use crate::service::SERVICE;
use edge::agent::{Agent, Commands, Event, Peer, Settings};
use edge::protocol::Key;
use edge::shaper::{Deed, Place, Rates};
use edge::shares::{Claim, divide, level};
use edge::vnic::{Address, AgentId, Directory, Flow, SliceId, Vnic, VnicId};
use flow::MacAddr;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// The most datagrams that agents give each other at one moment. Agents answer each other a few times only.
const DATAGRAMS_MAX: usize = 65_536;

/// A VNIC, and the emulated host that it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerVnic {
    /// Its number among all VNICs.
    pub id: VnicId,
    /// The number of its slice.
    pub slice: u32,
    /// Its address.
    pub mac: MacAddr,
    /// The place of its host in the network.
    pub host: usize,
    /// Its rate.
    pub guarantee_bps: u64,
    /// Whether that is a cap too.
    pub strict: bool,
}

/// A server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    /// What its NIC carries in each direction.
    pub nic_bps: u64,
    /// Its VNICs.
    pub vnics: Vec<ServerVnic>,
}

/// How fast a host may send to another one, by their places. `None`: as fast as its link.
pub(crate) type Ceiling = (usize, usize, Option<u64>);

struct Running {
    agent: Agent,
    nic_bps: u64,
    classes: BTreeMap<Place, Rates>,
    /// What was counted of each flow to its VNICs.
    counted: BTreeMap<Flow, u64>,
}

/// All servers at work.
pub(crate) struct Servers {
    directory: Directory,
    running: BTreeMap<AgentId, Running>,
    hosts: BTreeMap<VnicId, usize>,
    begun: BTreeSet<Flow>,
    mail: VecDeque<(AgentId, Vec<u8>)>,
    to_service: Vec<(AgentId, Vec<u8>)>,
    /// What hosts were told last.
    told: BTreeMap<Flow, u64>,
    ceilings: Vec<Ceiling>,
    refusals: u64,
}

/// The number of the agent of a server.
pub fn agent_of(server: usize) -> AgentId {
    // Servers of a rehearsal are few.
    AgentId(server as u32 + 1)
}

/// The key of two agents. Nobody else is in a rehearsal.
pub fn key(one: AgentId, two: AgentId) -> Key {
    let (low, high) = (one.min(two).0, one.max(two).0);
    Key(std::array::from_fn(|index| {
        let bytes = if index % 2 == 0 { low } else { high }.to_be_bytes();
        bytes[index / 2 % 4]
    }))
}

impl Servers {
    /// Servers whose agents begin now.
    ///
    /// # Errors
    /// A VNIC or a NIC cannot be.
    pub(crate) fn new(plan: &[Server]) -> Result<Servers, String> {
        let vnic = |(server, it): (usize, &ServerVnic)| Vnic {
            id: it.id,
            slice: SliceId(it.slice),
            agent: Some(agent_of(server)),
            address: Address { vlan: u16::try_from(it.slice + 1).ok(), mac: it.mac },
            guarantee_bps: it.guarantee_bps,
            strict: it.strict,
        };
        let all = || {
            plan.iter()
                .enumerate()
                .flat_map(|(number, server)| server.vnics.iter().map(move |it| (number, it)))
        };
        let directory = Directory::new(all().map(vnic)).map_err(|bad| bad.to_string())?;
        let mut running = BTreeMap::new();
        for (number, server) in plan.iter().enumerate() {
            let me = agent_of(number);
            let mut settings = Settings::for_nic(me, server.nic_bps, 1_000 + u64::from(me.0));
            let others = (0..plan.len()).map(agent_of).chain([SERVICE]).filter(|other| *other != me);
            settings.service = Some(SERVICE);
            settings.peers = others.map(|other| Peer { agent: other, key: key(me, other) }).collect();
            let agent = Agent::new(0, settings, directory.clone()).map_err(|bad| bad.to_string())?;
            let (classes, counted) = Default::default();
            running.insert(me, Running { agent, nic_bps: server.nic_bps, classes, counted });
        }
        Ok(Servers {
            directory,
            running,
            hosts: all().map(|(_, it)| (it.id, it.host)).collect(),
            begun: BTreeSet::new(),
            mail: VecDeque::new(),
            to_service: Vec::new(),
            told: BTreeMap::new(),
            ceilings: Vec::new(),
            refusals: 0,
        })
    }

    /// When it wants [`Servers::on_time`] next.
    pub(crate) fn next_ns(&self) -> Option<u64> {
        self.running.values().map(|it| it.agent.next_due_ns()).min()
    }

    /// Time has passed. `received`: for each host, the bytes of frames by the address that sent them.
    pub(crate) fn on_time(&mut self, now_ns: u64, received: &[Vec<(MacAddr, u64)>]) {
        let due: Vec<AgentId> = self
            .running
            .iter()
            .filter(|(_, it)| it.agent.next_due_ns() <= now_ns)
            .map(|(me, _)| *me)
            .collect();
        for me in due {
            let bytes = self.count(me, received);
            self.happens(me, now_ns, Event::Bytes(&bytes));
            self.happens(me, now_ns, Event::Time);
        }
        self.deliver(now_ns);
    }

    /// The service sends a datagram.
    pub(crate) fn on_datagram(&mut self, to: AgentId, datagram: Vec<u8>, now_ns: u64) {
        self.mail.push_back((to, datagram));
        self.deliver(now_ns);
    }

    /// A flow begins to send as much as it may.
    pub(crate) fn begin(&mut self, sender: VnicId, receiver: VnicId) {
        self.begun.insert(Flow { sender, receiver });
        if let Some(me) = self.directory.get(sender).and_then(|it| it.agent) {
            self.divide(me);
        }
    }

    /// Datagrams for the service.
    pub(crate) fn take_datagrams(&mut self) -> Vec<(AgentId, Vec<u8>)> {
        std::mem::take(&mut self.to_service)
    }

    /// What hosts may send from now on.
    pub(crate) fn take_ceilings(&mut self) -> Vec<Ceiling> {
        std::mem::take(&mut self.ceilings)
    }

    /// How many datagrams or statements agents refused.
    pub(crate) fn refusals(&self) -> u64 {
        self.refusals
    }

    /// The bytes of each flow to a VNIC of this server since the last call.
    fn count(&mut self, me: AgentId, received: &[Vec<(MacAddr, u64)>]) -> Vec<(Flow, u64)> {
        let Servers { directory, running, hosts, .. } = self;
        let Some(server) = running.get_mut(&me) else { return Vec::new() };
        let mut new = Vec::new();
        for vnic in directory.of_agent(me) {
            let Some(senders) = hosts.get(&vnic.id).and_then(|host| received.get(*host)) else { continue };
            for (mac, bytes) in senders {
                let address = Address { mac: *mac, ..vnic.address };
                let Some(sender) = directory.at(address) else { continue };
                let flow = Flow { sender: sender.id, receiver: vnic.id };
                let before = server.counted.insert(flow, *bytes).unwrap_or(0);
                if *bytes > before {
                    new.push((flow, bytes - before));
                }
            }
        }
        new
    }

    fn deliver(&mut self, now_ns: u64) {
        for _ in 0..DATAGRAMS_MAX {
            let Some((to, datagram)) = self.mail.pop_front() else { return };
            self.happens(to, now_ns, Event::Datagram(&datagram));
        }
    }

    /// An event of a server, and all that follows from it there. The shaper obeys at once.
    fn happens(&mut self, me: AgentId, now_ns: u64, event: Event<'_>) {
        let Some(server) = self.running.get_mut(&me) else { return };
        let mut out = Commands::default();
        server.agent.on_event(now_ns, event, &mut out);
        let mut has_changed = false;
        while !out.changes.is_empty() {
            has_changed = true;
            for change in std::mem::take(&mut out.changes) {
                match change.deed {
                    Deed::Add(rates) | Deed::Change(rates) => {
                        server.classes.insert(change.place, rates);
                    }
                    Deed::Remove => {
                        server.classes.remove(&change.place);
                    }
                }
            }
            server.agent.on_event(now_ns, Event::Shaped(&[]), &mut out);
        }
        self.refusals += out.refusals.len() as u64;
        for (to, datagram) in out.datagrams {
            match to == SERVICE {
                true => self.to_service.push((me, datagram)),
                false => self.mail.push_back((to, datagram)),
            }
        }
        if has_changed {
            self.divide(me);
        }
    }

    /// Divides the NIC of a server among the flows that have begun.
    fn divide(&mut self, me: AgentId) {
        let Some(server) = self.running.get(&me) else { return };
        let vnics: Vec<&Vnic> = self.directory.of_agent(me).collect();
        let wants: Vec<Vec<(Flow, u64)>> = vnics.iter().map(|vnic| self.wants(server, vnic.id)).collect();
        let claim = |(vnic, flows): (&&Vnic, &Vec<(Flow, u64)>)| {
            let rates = server.classes.get(&Place::Vnic(vnic.id));
            let wanted = flows.iter().fold(0, |sum: u64, (_, bps)| sum.saturating_add(*bps));
            Claim {
                guarantee_bps: rates.map_or(vnic.guarantee_bps, |it| it.rate_bps),
                demand_bps: wanted.min(rates.map_or(u64::MAX, |it| it.ceiling_bps)),
            }
        };
        let claims: Vec<Claim> = vnics.iter().zip(&wants).map(claim).collect();
        let mut shares = Vec::new();
        for (share, flows) in divide(server.nic_bps, &claims).into_iter().zip(wants) {
            let demands: Vec<u64> = flows.iter().map(|(_, bps)| *bps).collect();
            let level = level(share, &demands);
            shares.extend(flows.into_iter().map(|(flow, bps)| (flow, bps.min(level).max(1))));
        }
        for (flow, bps) in shares {
            let (Some(from), Some(to)) = (self.hosts.get(&flow.sender), self.hosts.get(&flow.receiver))
            else {
                continue;
            };
            if self.told.insert(flow, bps) != Some(bps) {
                self.ceilings.push((*from, *to, Some(bps)));
            }
        }
    }

    /// What each flow of a VNIC that has begun wants, as far as its class lets it.
    fn wants(&self, server: &Running, vnic: VnicId) -> Vec<(Flow, u64)> {
        let flows = self.begun.iter().filter(|flow| flow.sender == vnic);
        let ceiling = |flow: &Flow| {
            let class = server.classes.get(&Place::Flow(*flow)).or(server.classes.get(&Place::Others(vnic)));
            class.map_or(server.nic_bps, |class| class.ceiling_bps).min(server.nic_bps)
        };
        flows.map(|flow| (*flow, ceiling(flow))).collect()
    }
}
