//! The emulated network, the node behind its `Conduct`, and the servers, in one virtual time.
//!
//! ```text
//!   Simulation ──moments──> Conduct: Node ──messages of other moments──> Simulation::say
//!       │ bytes of hosts ──> Servers ⇄ datagrams ⇄ Node                        └─ceilings──> Simulation::change
//! ```
//!
//! In: what it is made of, flows that begin, and how long to run. Out: what arrived where, and the node. It decides nothing: it passes on.

use crate::node::Node;
use crate::plan::NodePlan;
use crate::servers::{Ceiling, Server, Servers};
use edge::vnic::VnicId;
use emulator::network::{Capture, Channel};
use emulator::simulation::Conduct;
use emulator::topology::Endpoint;
use emulator::{Change, ControllerId, FlowSpec, Simulation, SwitchOptions, Topology};
use flow::{DatapathId, MacAddr};
use openflow::Body;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The most rounds in which node, servers and switches answer each other at one moment. More wait for the next millisecond.
const ROUNDS_MAX: usize = 1_000;

/// The most frames that hosts may get in a rehearsal. With more it ends: it would last longer than somebody waits for it.
pub const FRAMES_MAX: u64 = 10_000_000;

/// A network with a node, servers and traffic.
pub struct Stage {
    simulation: Simulation,
    node: Arc<Mutex<Node>>,
    servers: Servers,
    hosts: Vec<String>,
    /// The slice of each address.
    slices: BTreeMap<MacAddr, u32>,
    /// The slice of each host.
    of_host: Vec<Option<u32>>,
    crossed: u64,
    seen_frames: u64,
}

/// What a stage is made of.
pub struct StagePlan {
    /// The network.
    pub topology: Topology,
    /// How its switches are made.
    pub options: SwitchOptions,
    /// The node.
    pub node: NodePlan,
    /// The servers. Each host is a VNIC of one of them, or of none.
    pub servers: Vec<Server>,
}

impl Stage {
    /// A network whose switches connect now.
    ///
    /// # Errors
    /// A slice, a VNIC or a NIC cannot be: a sentence.
    pub fn new(plan: StagePlan) -> Result<Stage, String> {
        let StagePlan { topology, options, node, servers: plan } = plan;
        let (seed, mut servers) = (node.seed, Servers::new(&plan)?);
        let node = Arc::new(Mutex::new(Node::new(node)?));
        let conduct: Conduct = Box::new({
            let node = node.clone();
            move |at, message, now, out| locked(&node).hear(at.switch, message, ms(now), out)
        });
        let mut simulation = Simulation::with_controller(&topology, &options, seed, conduct);
        let mut of_host = vec![None; topology.hosts.len()];
        let mut slices = BTreeMap::new();
        for vnic in plan.iter().flat_map(|server| &server.vnics) {
            if let Some(slice) = of_host.get_mut(vnic.host) {
                *slice = Some(vnic.slice);
            }
            slices.insert(vnic.mac, vnic.slice);
        }
        (0..topology.hosts.len()).for_each(|index| simulation.set_tap(Endpoint::Host { index }, true));
        servers.on_time(0, &[]);
        let hosts = topology.hosts.iter().map(|host| host.name.clone()).collect();
        let mut stage =
            Stage { simulation, node, servers, hosts, slices, of_host, crossed: 0, seen_frames: 0 };
        stage.pass_on();
        Ok(stage)
    }

    /// The time since the start.
    pub fn now(&self) -> Duration {
        self.simulation.now()
    }

    /// The node.
    pub fn node(&self) -> MutexGuard<'_, Node> {
        locked(&self.node)
    }

    /// The network.
    pub fn simulation(&mut self) -> &mut Simulation {
        &mut self.simulation
    }

    /// A digest of all frames and messages so far.
    pub fn digest(&self) -> u64 {
        self.simulation.digest()
    }

    /// How many frames of one slice reached a host of another.
    pub fn crossed(&self) -> u64 {
        self.crossed
    }

    /// How many datagrams or statements agents, or the service about agents, refused.
    pub fn refusals(&self) -> u64 {
        self.servers.refusals() + self.node().service.refusals()
    }

    /// A host begins to send to another one as much as it may.
    ///
    /// # Errors
    /// A host does not exist.
    pub fn begin(&mut self, spec: &FlowSpec, (from, to): (VnicId, VnicId)) -> Result<(), String> {
        self.servers.begin(from, to);
        self.pass_on();
        self.simulation.start_flow(spec).map(drop).map_err(|refused| refused.to_string())
    }

    /// A tenant's controller sends a message now.
    ///
    /// # Errors
    /// There is no such slice.
    pub fn say(&mut self, slice: &str, datapath: DatapathId, body: Body) -> Result<(), String> {
        let now_ms = ms(self.now());
        self.node().say(slice, datapath, body, now_ms)?;
        self.pass_on();
        Ok(())
    }

    /// The bytes of frames that a host got from an address.
    pub fn received_bytes(&self, host: usize, from: MacAddr) -> u64 {
        let received = self.simulation.network().hosts().get(host).map(|host| host.received());
        received.into_iter().flatten().find(|(mac, _)| *mac == from).map_or(0, |(_, bytes)| bytes)
    }

    /// Time passes.
    ///
    /// # Errors
    /// Why the rehearsal cannot go on.
    pub fn run_until(&mut self, end: Duration) -> Result<(), String> {
        while self.simulation.now() < end {
            let due = Duration::from_millis(self.node().next_ms());
            let due = self.servers.next_ns().map(Duration::from_nanos).into_iter().fold(due, Duration::min);
            let due = due.max(self.simulation.now()).min(end);
            // The messages and frames before that come first.
            while self.simulation.run_moment(due) {
                self.pass_on();
                self.check()?;
            }
            let now = self.simulation.now();
            if self.servers.next_ns().is_some_and(|due_ns| due_ns <= ns(now)) {
                let received = self.simulation.network().received_by_hosts();
                self.servers.on_time(ns(now), &received);
            }
            self.node().on_time(ms(now));
            self.pass_on();
            self.check()?;
        }
        Ok(())
    }

    fn check(&mut self) -> Result<(), String> {
        if self.seen_frames > FRAMES_MAX {
            let seconds = self.now().as_secs_f64();
            return Err(format!(
                "hosts have got more than {FRAMES_MAX} frames after {seconds:.1} s: rehearse a shorter time, or lower rates"
            ));
        }
        let trouble = self.node().trouble();
        trouble.map_or(Ok(()), |why| Err(format!("the node cannot go on: {why}")))
    }

    /// Passes on what switches, node and servers have for each other, until they have nothing.
    fn pass_on(&mut self) {
        for _ in 0..ROUNDS_MAX {
            let captures = self.simulation.take_captures();
            captures.iter().for_each(|capture| self.look_at(capture));
            let (messages, datagrams) = {
                let mut node = self.node();
                (node.take_outgoing(), node.take_datagrams())
            };
            let reports = self.servers.take_datagrams();
            let ceilings = self.servers.take_ceilings();
            if messages.is_empty() && datagrams.is_empty() && reports.is_empty() && ceilings.is_empty() {
                return;
            }
            let now = self.now();
            for (switch, message) in messages {
                self.simulation.say(Channel { switch, controller: ControllerId(0) }, &message);
            }
            for (to, datagram) in datagrams {
                self.servers.on_datagram(to, datagram, ns(now));
            }
            for (from, datagram) in reports {
                self.node().on_datagram(from, &datagram, ms(now));
            }
            ceilings.into_iter().for_each(|ceiling| self.shape(ceiling));
        }
    }

    fn shape(&mut self, (from, to, bits_per_s): Ceiling) {
        let name = |place: usize| self.hosts.get(place).cloned().unwrap_or_default();
        let change = Change::Shape { from: name(from), to: name(to), bits_per_s };
        // The hosts are those of the plan, which are in the network.
        let _known = self.simulation.change(&change);
    }

    /// A frame that reaches a host.
    fn look_at(&mut self, capture: &Capture) {
        let Endpoint::Host { index } = capture.place else { return };
        if capture.outgoing {
            return;
        }
        self.seen_frames += 1;
        let sender = capture.frame.get(6..12).and_then(|octets| octets.try_into().ok()).map(MacAddr);
        let from = sender.and_then(|mac| self.slices.get(&mac)).copied();
        let here = self.of_host.get(index).copied().flatten();
        self.crossed += u64::from(from.is_some() && from != here);
    }
}

fn locked(node: &Mutex<Node>) -> MutexGuard<'_, Node> {
    // A panic in the node ends the rehearsal anyway.
    node.lock().unwrap_or_else(PoisonError::into_inner)
}

fn ms(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

fn ns(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
