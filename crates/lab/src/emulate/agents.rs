//! Agents of emulated servers: the decisions of `burnet edge`, with emulated hosts as meters and shapers.
//!
//! ```text
//!   slices file, keys, topology ──> AgentPlan ──> one thread: bytes that hosts received ──> Agent (crate edge) ──> Change::Shape at hosts
//!                                                             service labels <──TCP──────────┘ └──> the other agents, in memory
//! ```
//!
//! In: which VNICs are which hosts. Out: how fast hosts send to each other, and reports to the label service. It meters and shapes flows
//! between VNICs alone, and decides nothing: [`Agent`] does. A VNIC is the host with its address.

use clap::Args;
use edge::agent::{Agent, Commands, Event, Peer, Settings};
use edge::protocol::Key;
use edge::shaper::{Change, Deed, Place};
use edge::stream::Cutter;
use edge::vnic::{AgentId, Directory, Flow, SliceId, Vnic, VnicId};
use emulator::{Handle, Topology};
use flow::MacAddr;
use std::collections::{BTreeMap, VecDeque};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use burnet::cli::CommandError;
use burnet::{edge_file, edge_keys};
use config::ConfigFile;

/// The number of the label service among agents.
const SERVICE: AgentId = AgentId(0);

/// How often the thread looks at least, and at most.
const LOOK_MIN: Duration = Duration::from_millis(1);
const LOOK_MAX: Duration = Duration::from_millis(10);

/// How long the thread waits before it dials the service again.
const DIAL_AGAIN: Duration = Duration::from_secs(1);

/// How long it waits for one attempt. Meanwhile, nobody meters.
const DIAL_PATIENCE: Duration = Duration::from_millis(200);

/// The most datagrams that agents give each other in one turn. Agents answer each other a few times only.
const DATAGRAMS_PER_TURN: usize = 65_536;

/// Agents for hosts that are VNICs.
#[derive(Clone, Debug, Default, PartialEq, Args)]
pub struct AgentArgs {
    /// Hosts that are VNICs of this slices file have agents on their servers, as `burnet edge` (docs/reference/edge.md): a VNIC with
    /// `number`, `mac` and `agent` is the host with that address
    #[arg(long, value_name = "SLICES.toml", requires_all = ["agent_keys", "agent_service"], conflicts_with_all = ["scenario", "bind", "proxy"])]
    pub agents: Option<PathBuf>,
    /// The file with the agents' keys, as the service `labels` has it
    #[arg(long, value_name = "FILE", requires = "agents")]
    pub agent_keys: Option<PathBuf>,
    /// Where the service `labels` listens for agents
    #[arg(long, value_name = "ADDR:PORT", requires = "agents")]
    pub agent_service: Option<SocketAddr>,
    /// What the NIC of each server carries
    #[arg(long, value_name = "RATE", default_value = "10G")]
    pub agent_rate: hose::Bandwidth,
}

/// The agents, and the hosts that are their VNICs.
#[derive(Clone, Debug)]
pub struct AgentPlan {
    settings: Vec<Settings>,
    directory: Directory,
    /// The place of each VNIC's host in the topology, and its name.
    hosts: BTreeMap<VnicId, (usize, String)>,
    service: Option<SocketAddr>,
}

impl AgentArgs {
    /// The plan, if agents are wanted.
    ///
    /// # Errors
    /// A file cannot be read, or has no such agents.
    pub fn plan(&self, topology: &Topology) -> Result<Option<AgentPlan>, CommandError> {
        let Some(file) = &self.agents else { return Ok(None) };
        let usage = |why: String| CommandError::Usage(format!("--agents: {why}"));
        let slices = ConfigFile::read(file).map_err(|error| usage(error.to_string()))?.slices;
        let directory = Directory::new(edge_file::vnics(&slices))
            .map_err(|why| usage(format!("{}: {why}", file.display())))?;
        let keys = self.agent_keys.as_deref().map(edge_keys::read).transpose().map_err(usage)?;
        let key = |agent: AgentId| {
            let key = keys.as_ref().and_then(|keys| keys.get(&agent.0)?.parse().ok());
            key.ok_or_else(|| usage(format!("there is no key for {agent}: add a line to --agent-keys")))
        };
        let mut services = BTreeMap::new();
        for agent in agents(&directory) {
            services.insert(agent, key(agent)?);
        }
        let plan = AgentPlan::new(topology, directory, &services, self.agent_rate.bps()).map_err(usage)?;
        Ok(Some(AgentPlan { service: self.agent_service, ..plan }))
    }
}

/// The agents that have VNICs.
fn agents(directory: &Directory) -> Vec<AgentId> {
    let mut agents: Vec<AgentId> = directory.vnics().filter_map(|vnic| vnic.agent).collect();
    agents.sort_unstable();
    agents.dedup();
    agents
}

impl AgentPlan {
    /// `services`: the key that each agent shares with the label service.
    fn new(
        topology: &Topology,
        directory: Directory,
        services: &BTreeMap<AgentId, Key>,
        nic_bps: u64,
    ) -> Result<AgentPlan, String> {
        let host = |vnic: &Vnic| {
            let place = topology.hosts.iter().position(|host| host.mac == vnic.address.mac);
            let place = place.ok_or_else(|| {
                format!("no host has the address {} of VNIC {}", vnic.address.mac, vnic.id.0)
            })?;
            Ok((vnic.id, (place, topology.hosts[place].name.clone())))
        };
        let with_agent = || directory.vnics().filter(|vnic| vnic.agent.is_some());
        let hosts = with_agent().map(host).collect::<Result<_, String>>()?;
        let all = agents(&directory);
        if all.is_empty() {
            return Err("no VNIC has `number`, `mac` and `agent`, so there is no agent to run".to_owned());
        }
        // They are in one process: nobody else has this key.
        let common = Key(std::array::from_fn(|_| random() as u8));
        let settings = |me: &AgentId| {
            let mut settings = Settings::for_nic(*me, nic_bps, random());
            let others = all.iter().filter(|other| *other != me);
            settings.peers = others.map(|agent| Peer { agent: *agent, key: common.clone() }).collect();
            if let Some(key) = services.get(me) {
                settings.service = Some(SERVICE);
                settings.peers.push(Peer { agent: SERVICE, key: key.clone() });
            }
            settings
        };
        Ok(AgentPlan { settings: all.iter().map(settings).collect(), directory, hosts, service: None })
    }

    /// How many agents it has.
    pub(super) fn count(&self) -> usize {
        self.settings.len()
    }

    /// Runs the agents until the answer is dropped.
    ///
    /// # Errors
    /// The settings of an agent are wrong.
    pub fn start(self, network: Arc<Handle>) -> Result<AgentsAtWork, CommandError> {
        let servers = self.servers().map_err(|why| CommandError::Usage(format!("--agents: {why}")))?;
        let is_over = Arc::new(AtomicBool::new(false));
        let turns = Turns { network, plan: self, servers, mail: VecDeque::new(), began: Instant::now() };
        let thread = std::thread::spawn({
            let is_over = is_over.clone();
            move || turns.run(&is_over)
        });
        Ok(AgentsAtWork { is_over, thread: Some(thread) })
    }

    fn servers(&self) -> Result<Vec<Server>, String> {
        let server = |settings: &Settings| {
            let agent = Agent::new(0, settings.clone(), self.directory.clone());
            let agent = agent.map_err(|error| error.to_string())?;
            let service = settings.service.and(self.service);
            Ok(Server { me: settings.me, agent, line: Line::new(service), counted: BTreeMap::new() })
        };
        self.settings.iter().map(server).collect()
    }
}

/// A number that no other process has.
fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}

/// The thread of the agents.
#[derive(Debug)]
pub struct AgentsAtWork {
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for AgentsAtWork {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        // A panic of the thread was shown already.
        self.thread.take().map(JoinHandle::join);
    }
}

/// A server: its agent, its connection with the label service, and what was counted of each flow to its VNICs.
struct Server {
    me: AgentId,
    agent: Agent,
    line: Line,
    counted: BTreeMap<Flow, u64>,
}

/// What the thread does over and over.
struct Turns {
    network: Arc<Handle>,
    plan: AgentPlan,
    servers: Vec<Server>,
    /// Datagrams between agents: to the server at this place.
    mail: VecDeque<(usize, Vec<u8>)>,
    began: Instant,
}

impl Turns {
    fn run(mut self, is_over: &AtomicBool) {
        while !is_over.load(Ordering::Relaxed) {
            self.turn();
            let now_ns = self.now_ns();
            let due_ns = self.servers.iter().map(|server| server.agent.next_due_ns()).min().unwrap_or(now_ns);
            let rest = Duration::from_nanos(due_ns.saturating_sub(now_ns));
            std::thread::sleep(rest.clamp(LOOK_MIN, LOOK_MAX));
        }
    }

    fn now_ns(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    fn turn(&mut self) {
        let received = self.network.received_by_hosts();
        for at in 0..self.servers.len() {
            let bytes = self.servers[at].count(&received, &self.plan);
            if !bytes.is_empty() {
                self.happens(at, Event::Bytes(&bytes));
            }
            for datagram in self.servers[at].line.turn() {
                self.happens(at, Event::Datagram(&datagram));
            }
            if self.servers[at].agent.next_due_ns() <= self.now_ns() {
                self.happens(at, Event::Time);
            }
        }
        for _ in 0..DATAGRAMS_PER_TURN {
            let Some((at, datagram)) = self.mail.pop_front() else { break };
            self.happens(at, Event::Datagram(&datagram));
        }
    }

    /// An event of a server, and all that follows from it there.
    fn happens(&mut self, at: usize, event: Event<'_>) {
        let mut out = Commands::default();
        let now_ns = self.now_ns();
        self.servers[at].agent.on_event(now_ns, event, &mut out);
        loop {
            for (to, datagram) in std::mem::take(&mut out.datagrams) {
                self.deliver(at, to, datagram);
            }
            let changes = std::mem::take(&mut out.changes);
            if changes.is_empty() {
                return;
            }
            changes.iter().for_each(|change| self.shape(change));
            self.servers[at].agent.on_event(now_ns, Event::Shaped(&[]), &mut out);
        }
    }

    fn deliver(&mut self, from: usize, to: AgentId, datagram: Vec<u8>) {
        if to == SERVICE {
            self.servers[from].line.send(&datagram);
        } else if let Some(place) = self.servers.iter().position(|server| server.me == to) {
            self.mail.push_back((place, datagram));
        }
    }

    fn shape(&self, change: &Change) {
        let Place::Flow(Flow { sender, receiver }) = change.place else { return };
        let host = |vnic| self.plan.hosts.get(&vnic).map(|(_, name)| name.clone());
        let (Some(from), Some(to)) = (host(sender), host(receiver)) else { return };
        let bits_per_s = match change.deed {
            Deed::Add(rates) | Deed::Change(rates) => Some(rates.ceiling_bps),
            Deed::Remove => None,
        };
        // The hosts are of this network; it can only have ended.
        let _ = self.network.change(emulator::Change::Shape { from, to, bits_per_s });
    }
}

impl Server {
    /// The bytes of each flow to a VNIC of this server since the last call.
    fn count(&mut self, received: &[Vec<(MacAddr, u64)>], plan: &AgentPlan) -> Vec<(Flow, u64)> {
        let mut new = Vec::new();
        for vnic in plan.directory.of_agent(self.me) {
            let place = plan.hosts.get(&vnic.id).map(|(place, _)| *place);
            let Some(senders) = place.and_then(|place| received.get(place)) else { continue };
            for (mac, bytes) in senders {
                let Some(sender) = sender(&plan.directory, vnic.slice, *mac) else { continue };
                let flow = Flow { sender, receiver: vnic.id };
                let before = self.counted.insert(flow, *bytes).unwrap_or(0);
                if *bytes > before {
                    new.push((flow, bytes - before));
                }
            }
        }
        new
    }
}

/// The VNIC of a slice with an address.
fn sender(directory: &Directory, slice: SliceId, mac: MacAddr) -> Option<VnicId> {
    directory.vnics().find(|vnic| vnic.slice == slice && vnic.address.mac == mac).map(|vnic| vnic.id)
}

/// The TCP connection of an agent with the label service. What does not fit into the socket ends it: reports have numbers, and are asked for
/// again.
struct Line {
    service: Option<SocketAddr>,
    stream: Option<TcpStream>,
    cutter: Cutter,
    dial: Instant,
}

impl Line {
    fn new(service: Option<SocketAddr>) -> Line {
        Line { service, stream: None, cutter: Cutter::default(), dial: Instant::now() }
    }

    fn send(&mut self, datagram: &[u8]) {
        let sent = self.stream.as_mut().is_none_or(|stream| stream.write_all(datagram).is_ok());
        if !sent {
            self.stream = None;
        }
    }

    /// Dials if it is time, and reads.
    fn turn(&mut self) -> Vec<Vec<u8>> {
        let now = Instant::now();
        if let (Some(service), None, true) = (self.service, &self.stream, now >= self.dial) {
            self.dial = now + DIAL_AGAIN;
            self.cutter = Cutter::default();
            self.stream = TcpStream::connect_timeout(&service, DIAL_PATIENCE)
                .and_then(|stream| stream.set_nonblocking(true).map(|()| stream))
                .ok();
        }
        let mut buffer = [0; 16 << 10];
        let Some(stream) = &mut self.stream else { return Vec::new() };
        match stream.read(&mut buffer) {
            Ok(0) => self.stream = None,
            Ok(count) => self.cutter.push(buffer.get(..count).unwrap_or_default()),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
            Err(_) => self.stream = None,
        }
        let mut datagrams = Vec::new();
        loop {
            match self.cutter.next_datagram() {
                Ok(Some(datagram)) => datagrams.push(datagram.to_vec()),
                Ok(None) => return datagrams,
                Err(_) => {
                    self.stream = None;
                    return datagrams;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use edge::vnic::Address;
    use emulator::{Emulation, FailMode, FlowSpec, LinkQuality, SwitchOptions};

    const PATIENCE: Duration = Duration::from_secs(60);

    /// Each host is a VNIC with a guarantee, on the server of an agent.
    fn directory(topology: &Topology, vnics: &[(u64, u32)]) -> Directory {
        let vnic = |(place, (mbps, agent)): (usize, &(u64, u32))| Vnic {
            id: VnicId(place as u32 + 1),
            slice: SliceId(0),
            agent: Some(AgentId(*agent)),
            address: Address { vlan: Some(7), mac: topology.hosts[place].mac },
            guarantee_bps: mbps * 1_000_000,
            strict: false,
        };
        Directory::new(vnics.iter().enumerate().map(vnic)).unwrap()
    }

    #[test]
    fn emulated_hosts_share_a_nic_by_their_guarantees() {
        let mut topology: Topology = "single,4".parse().unwrap();
        let quality: LinkQuality = "rate=10M".parse().unwrap();
        topology.links.iter_mut().for_each(|link| link.quality = quality);
        let options = SwitchOptions { fail_mode: FailMode::Standalone, ..SwitchOptions::default() };
        let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let network = Arc::new(Emulation::start(&topology, nobody, &options).unwrap());
        let flow = |from: &str, to: &str| network.start_flow(FlowSpec::udp(from, to, 9_500_000)).unwrap();
        let flows = [flow("h1", "h3"), flow("h2", "h4")];
        // The third and the fourth are on one server. Each has a cable of 10 Mbit/s, and the server has a NIC of 10.
        let vnics = directory(&topology, &[(10, 1), (10, 2), (8, 3), (2, 3)]);
        let plan = AgentPlan::new(&topology, vnics, &BTreeMap::new(), 10_000_000).unwrap();
        let agents = plan.start(network.clone()).unwrap();
        let delivered = || flows.map(|flow| network.flow_report(flow).unwrap().delivered_bytes);
        let rates = || {
            let (before, began) = (delivered(), Instant::now());
            std::thread::sleep(Duration::from_millis(500));
            let (after, took) = (delivered(), began.elapsed().as_secs_f64());
            [0, 1].map(|at| (after[at] - before[at]) as f64 * 8.0 / 1e6 / took)
        };
        let (begin, mut seen) = (Instant::now(), [0.0; 2]);
        // 9.8 Mbit/s of frames, of which a little is no payload.
        while !((7.0..8.2).contains(&seen[0]) && (1.7..2.1).contains(&seen[1])) {
            assert!(begin.elapsed() < PATIENCE, "they get {seen:?} Mbit/s");
            seen = rates();
        }
        drop(agents);
    }

    #[test]
    fn a_vnic_that_no_host_is_and_a_file_without_agents_are_named() {
        let topology: Topology = "single,3".parse().unwrap();
        let other: Topology = "single,1".parse().unwrap();
        let plan = |topology: &Topology, directory| AgentPlan::new(topology, directory, &BTreeMap::new(), 1);
        let why = plan(&other, directory(&topology, &[(1, 1), (1, 2), (1, 3)])).unwrap_err();
        assert!(why.starts_with("no host has the address ") && why.ends_with("of VNIC 2"), "{why}");
        let why = plan(&topology, Directory::new([]).unwrap()).unwrap_err();
        assert!(why.contains("there is no agent to run"), "{why}");
    }
}
