//! A network that runs: in real time or in virtual, its switches connected to a controller over TCP.
//!
//! ```text
//!   Emulation::start(topology, controller) ──> a thread of its own: sockets ⇄ Network
//!        │                                                                   │
//!        └── wait_connected, ping_all, set_link, counters, stop              └──> events, for whoever observes
//! ```
//!
//! All switches' connections are in one loop on one thread, and so are the packet sockets of interfaces that are bound. Of an emulated network this
//! is the only part that does I/O or asks for the time. A controller that vanishes, says nonsense or says nothing is left and tried again, later each time, and that is counted.

mod capture;
mod connection;
mod event;
mod footprint;
mod interfaces;
mod jump;
mod packet_socket;
pub(crate) mod ping_all;
mod quiescence;
mod reactor;

pub use capture::{Captured, Tap};
pub use event::{Event, Observer};
pub use footprint::{TooLarge, check_this_machine};
pub use interfaces::Bridge;
pub use ping_all::{PingOutcome, PingReport, dropped_percent};

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use flow::DatapathId;
use mio::Waker;

use crate::host::HostCounters;
use crate::host::flow::{FlowRefused, FlowReport, FlowSpec, IpVersion};
use crate::network::{CannotChange, Change, FlowId, LinkCounters};
use crate::topology::{SwitchPlan, Topology};
use reactor::Reactor;
use software_switch::{SwitchOptions, SwitchView};

/// How many events may wait for an observer; what would be more is dropped and counted.
const EVENTS_MAX: usize = 16_384;

/// A network that is to run.
pub struct Emulation;

/// A network that runs. Dropping it stops it.
#[derive(Debug)]
pub struct Handle {
    commands: Sender<Command>,
    waker: Arc<Waker>,
    counters: Arc<Counters>,
    thread: Mutex<Option<JoinHandle<()>>>,
    switches: usize,
    hosts: usize,
}

/// How time passes in a network that runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Clock {
    /// As it passes outside.
    #[default]
    Real,
    /// It stands, and jumps to whatever happens next once the controllers have nothing to say, while somebody waits for pings or for a
    /// time to come ([`Handle::pass_to`]). What controllers do by timers of their own is not sped up.
    Virtual,
}

/// What the loop is asked from outside.
#[derive(Debug)]
pub(crate) enum Command {
    /// Answer when every switch is connected.
    WaitConnected(Sender<()>),
    /// Say which switches are not, and why.
    ListMissing(Sender<Vec<(DatapathId, String)>>),
    /// Every host pings every other; a ping waits so long for its reply.
    PingAll { ip: IpVersion, timeout: Duration, answer: Sender<PingReport> },
    /// A host pings another once.
    Ping {
        from: String,
        to: String,
        timeout: Duration,
        answer: Sender<PingReport>,
        begun: Sender<Result<(), CannotChange>>,
    },
    /// Say how each switch is.
    ViewSwitches(Sender<Vec<SwitchView>>),
    /// Say what each host has counted.
    CountHosts(Sender<Vec<(String, HostCounters)>>),
    /// Take a link down or up.
    SetLink { link: usize, up: bool },
    /// Change something that is called by its name.
    Change { change: Change, answer: Sender<Result<(), CannotChange>> },
    /// Answer when so much time has passed in the network.
    PassTo { time: Duration, answer: Sender<()> },
    /// Begin a flow.
    StartFlow { spec: FlowSpec, answer: Sender<Result<FlowId, FlowRefused>> },
    /// End a flow, and say whether there is such a flow.
    StopFlow { id: FlowId, answer: Sender<bool> },
    /// Say what became of a flow so far.
    ReportFlow { id: FlowId, answer: Sender<Option<FlowReport>> },
    /// Say what each link has counted.
    CountLinks(Sender<Vec<(String, LinkCounters)>>),
    /// Block the links off a spanning tree for floods.
    KeepSpanningTree,
    /// Tell what happens.
    Observe { audience: event::Audience, listening: Sender<()> },
    /// End.
    Stop,
}

/// What has been counted since the start. All are totals over all switches.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    connections: AtomicU64,
    connections_lost: AtomicU64,
    connections_refused: AtomicU64,
    attempts: AtomicU64,
    silences: AtomicU64,
    bad_messages: AtomicU64,
    packet_ins_dropped: AtomicU64,
    packet_ins: AtomicU64,
    packet_outs: AtomicU64,
    flow_mods: AtomicU64,
    errors: AtomicU64,
    frames_lost: AtomicU64,
    frames_not_sent: AtomicU64,
}

/// The counters at one moment; totals over all switches since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EmulationCounters {
    /// Attempts to connect to a controller.
    pub attempts: u64,
    /// Connections to a controller that came to agree on a version.
    pub connections: u64,
    /// Connections that ended after that, by whomever.
    pub connections_lost: u64,
    /// Attempts that came to nothing: refused, or ended before a version was agreed on.
    pub connections_refused: u64,
    /// Of these two: those that the switch ended because the controller said nothing for too long, or nothing to the point.
    pub silences: u64,
    /// Messages of a controller that could not be read.
    pub bad_messages: u64,
    /// Packet-ins sent.
    pub packet_ins: u64,
    /// Packet-ins that were not sent because the controller did not read what was sent before.
    pub packet_ins_dropped: u64,
    /// Packet-outs that came.
    pub packet_outs: u64,
    /// Flow mods that came.
    pub flow_mods: u64,
    /// Errors that switches sent.
    pub errors: u64,
    /// Frames lost on links that are down, or in a storm.
    pub frames_lost: u64,
    /// Frames that an interface of the machine had no room for, or that were longer than it takes.
    pub frames_not_sent: u64,
}

/// Not every switch came to be connected in time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotConnected {
    /// The switches that are not connected, each with what happened last.
    pub missing: Vec<(DatapathId, String)>,
}

impl fmt::Display for NotConnected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.missing.first() {
            Some((switch, why)) => {
                write!(
                    f,
                    "{} switches are not connected to the controller; {switch}: {why}",
                    self.missing.len()
                )
            }
            None => f.write_str("the emulation has ended"),
        }
    }
}

impl std::error::Error for NotConnected {}

impl Emulation {
    /// Makes the network and starts it on a thread of its own, which connects every switch to the controller.
    ///
    /// # Errors
    /// The network is too large for the memory there is, or the operating system gives no thread or no poll.
    pub fn start(topology: &Topology, controller: SocketAddr, options: &SwitchOptions) -> io::Result<Handle> {
        Emulation::start_with_controllers(topology, &[controller], options)
    }

    /// The same with several controllers, to all of which every switch connects (1.3.5, 6.3.4); none: the switches are on
    /// their own.
    ///
    /// # Errors
    /// The network is too large for the memory there is, or the operating system gives no thread or no poll.
    pub fn start_with_controllers(
        topology: &Topology,
        controllers: &[SocketAddr],
        options: &SwitchOptions,
    ) -> io::Result<Handle> {
        Emulation::begin(topology, controllers, options, Clock::Real, Vec::new(), &[], None)
    }

    /// The same, and an observer that misses nothing of what happens from the first connection on.
    ///
    /// # Errors
    /// The network is too large for the memory there is, or the operating system gives no thread or no poll.
    pub fn start_observed(
        topology: &Topology,
        controllers: &[SocketAddr],
        options: &SwitchOptions,
    ) -> io::Result<(Handle, Observer)> {
        let (handle, observer, _) = Emulation::start_captured(topology, controllers, options, &[])?;
        Ok((handle, observer))
    }

    /// The same, with copies of what passes these taps, from the first connection on.
    ///
    /// # Errors
    /// The network is too large for the memory there is, or the operating system gives no thread or no poll.
    pub fn start_captured(
        topology: &Topology,
        controllers: &[SocketAddr],
        options: &SwitchOptions,
        taps: &[Tap],
    ) -> io::Result<(Handle, Observer, Vec<Captured>)> {
        let (audience, observer) = event::channel(EVENTS_MAX);
        let (sinks, captured) = taps.iter().map(|tap| capture::channel(*tap)).unzip();
        let handle =
            Emulation::begin(topology, controllers, options, Clock::Real, sinks, &[], Some(audience))?;
        Ok((handle, observer, captured))
    }

    /// The same in virtual time, which stands until somebody waits for a time to come or hosts ping.
    ///
    /// # Errors
    /// The network is too large for the memory there is, or the operating system gives no thread or no poll.
    pub fn start_in_virtual_time(
        topology: &Topology,
        controllers: &[SocketAddr],
        options: &SwitchOptions,
    ) -> io::Result<(Handle, Observer)> {
        let (audience, observer) = event::channel(EVENTS_MAX);
        let handle = Emulation::begin(
            topology,
            controllers,
            options,
            Clock::Virtual,
            Vec::new(),
            &[],
            Some(audience),
        )?;
        Ok((handle, observer))
    }

    /// Starts switches whose ports are interfaces of this machine, in its network namespace: a veth, a tap or a card each,
    /// where nobody else answers. Switches stand here where Open vSwitch stands in Mininet; there are no links and no hosts.
    /// Frames are as on a wire: a tag that the card has taken off is put back, and a checksum that was left to it is
    /// completed. Segments that were left uncut to it are longer than an interface takes and are lost, so hosts must cut
    /// their own (`ethtool -K IF tso off gso off`). The observer misses nothing from the first connection on.
    ///
    /// # Errors
    /// An interface is not there or named twice, or this process may not bind it (it needs CAP_NET_RAW): the sentence
    /// names the interface. Or the operating system gives no thread or no poll.
    pub fn bind(
        bridges: &[Bridge],
        controllers: &[SocketAddr],
        options: &SwitchOptions,
    ) -> io::Result<(Handle, Observer)> {
        let plan = |bridge: &Bridge| SwitchPlan {
            name: bridge.name.clone(),
            label: String::new(),
            datapath_id: bridge.datapath_id,
        };
        let switches = bridges.iter().map(plan).collect();
        let topology = Topology { switches, hosts: Vec::new(), links: Vec::new() };
        let (audience, observer) = event::channel(EVENTS_MAX);
        Ok((
            Emulation::begin(
                &topology,
                controllers,
                options,
                Clock::Real,
                Vec::new(),
                bridges,
                Some(audience),
            )?,
            observer,
        ))
    }

    fn begin(
        topology: &Topology,
        controllers: &[SocketAddr],
        options: &SwitchOptions,
        clock: Clock,
        sinks: Vec<capture::Sink>,
        bridges: &[Bridge],
        audience: Option<event::Audience>,
    ) -> io::Result<Handle> {
        check_this_machine(topology, options)
            .map_err(|too_large| io::Error::new(io::ErrorKind::OutOfMemory, too_large))?;
        let (commands, inbox) = channel();
        let counters = Arc::new(Counters::default());
        let mut reactor = Reactor::new(topology, controllers, options, clock, inbox, counters.clone())?;
        reactor.copy_to(sinks);
        reactor.bind(bridges)?;
        let waker = reactor.waker();
        if let Some(audience) = audience {
            // The loop obeys before it connects, so that whoever observes is there first. Nobody waits for the answer.
            let _ = commands.send(Command::Observe { audience, listening: channel().0 });
        }
        let thread = std::thread::Builder::new().name("emulation".into()).spawn(move || reactor.run())?;
        Ok(Handle {
            commands,
            waker,
            counters,
            thread: Mutex::new(Some(thread)),
            switches: topology.switches.len(),
            hosts: topology.hosts.len(),
        })
    }
}

impl Handle {
    /// How many switches there are.
    pub fn switches(&self) -> usize {
        self.switches
    }

    /// How many hosts there are.
    pub fn hosts(&self) -> usize {
        self.hosts
    }

    /// Waits until every switch has told a controller what it is, and in 1.3, where a switch without rules drops everything,
    /// has got its first rule or been without one for half a second.
    ///
    /// # Errors
    /// The time is over: which switches are missing, and why.
    pub fn wait_connected(&self, timeout: Duration) -> Result<(), NotConnected> {
        match self.ask(Command::WaitConnected).recv_timeout(timeout) {
            Ok(()) => Ok(()),
            Err(_) => {
                Err(NotConnected { missing: self.ask(Command::ListMissing).recv().unwrap_or_default() })
            }
        }
    }

    /// Every host pings every other, a few at a time. Each ping waits so long for its reply, and is lost then. Returns
    /// when the last has come back or is lost.
    pub fn ping_all(&self, timeout: Duration) -> PingReport {
        self.ping_all_over(IpVersion::V4, timeout)
    }

    /// The same over a version of IP; with IPv6, to addresses that are good everywhere.
    pub fn ping_all_over(&self, ip: IpVersion, timeout: Duration) -> PingReport {
        self.ask(|answer| Command::PingAll { ip, timeout, answer }).recv().unwrap_or_default()
    }

    /// The same, but what came of it is waited for elsewhere. Rounds go on beside each other.
    pub fn begin_ping_all(&self, timeout: Duration) -> Receiver<PingReport> {
        self.ask(|answer| Command::PingAll { ip: IpVersion::V4, timeout, answer })
    }

    /// One host pings another once, by their names; the report has one pair.
    ///
    /// # Errors
    /// A host that is not there, or the emulation has ended.
    pub fn begin_ping(
        &self,
        from: &str,
        to: &str,
        timeout: Duration,
    ) -> Result<Receiver<PingReport>, CannotChange> {
        let (answer, report) = channel();
        let (from, to) = (from.to_owned(), to.to_owned());
        let begun = self.ask(|begun| Command::Ping { from, to, timeout, answer, begun });
        begun.recv().unwrap_or(Err(CannotChange::Ended)).map(|()| report)
    }

    /// How each switch is, in the order of the topology. Empty if the emulation has ended.
    pub fn switch_views(&self) -> Vec<SwitchView> {
        self.ask(Command::ViewSwitches).recv().unwrap_or_default()
    }

    /// Takes a link down or up again; its number is its place in the topology's links.
    pub fn set_link(&self, link: usize, up: bool) {
        self.tell(Command::SetLink { link, up });
    }

    /// Takes something down or up, makes a link better or worse, or moves a host. It is done when this returns, and what switches
    /// tell their controllers of it is on its way.
    ///
    /// # Errors
    /// There is nothing of that name, the port is taken, or the emulation has ended.
    pub fn change(&self, change: Change) -> Result<(), CannotChange> {
        self.ask(|answer| Command::Change { change, answer }).recv().unwrap_or(Err(CannotChange::Ended))
    }

    /// Waits until so much time has passed in the network since the emulation began. Virtual time passes only here and while hosts
    /// ping; real time passes anyhow. Says whether it came to that: not if the emulation has ended.
    pub fn pass_to(&self, time: Duration) -> bool {
        self.ask(|answer| Command::PassTo { time, answer }).recv().is_ok()
    }

    /// Begins a flow between two hosts.
    ///
    /// # Errors
    /// A host that is not there, numbers that no flow can have, too many flows, or the emulation has ended.
    pub fn start_flow(&self, spec: FlowSpec) -> Result<FlowId, FlowRefused> {
        self.ask(|answer| Command::StartFlow { spec, answer }).recv().unwrap_or(Err(FlowRefused::Ended))
    }

    /// Ends a flow: what is sent already is delivered if it is TCP. Says whether there is such a flow.
    pub fn stop_flow(&self, id: FlowId) -> bool {
        self.ask(|answer| Command::StopFlow { id, answer }).recv().unwrap_or(false)
    }

    /// What became of a flow so far, if there is such a flow. Times are since the emulation began.
    pub fn flow_report(&self, id: FlowId) -> Option<FlowReport> {
        self.ask(|answer| Command::ReportFlow { id, answer }).recv().ok().flatten()
    }

    /// Each host's name and what it has counted, in the order of the topology. Empty if the emulation has ended.
    pub fn host_counters(&self) -> Vec<(String, HostCounters)> {
        self.ask(Command::CountHosts).recv().unwrap_or_default()
    }

    /// Each link's name and what it has counted, in the order of the topology. Empty if the emulation has ended.
    pub fn link_counters(&self) -> Vec<(String, LinkCounters)> {
        self.ask(Command::CountLinks).recv().unwrap_or_default()
    }

    /// From now on only the links of a spanning tree carry what is flooded; see [`Network::keep_spanning_tree`](crate::Network::keep_spanning_tree).
    pub fn keep_spanning_tree(&self) {
        self.tell(Command::KeepSpanningTree);
    }

    /// What happens from now on, for one more observer: nothing that happens after this returns is missed.
    pub fn observer(&self) -> Observer {
        let (audience, observer) = event::channel(EVENTS_MAX);
        // It fails only if the network has ended, and then the observer hears that.
        let _ = self.ask(|listening| Command::Observe { audience, listening }).recv();
        observer
    }

    /// What has been counted so far.
    pub fn counters(&self) -> EmulationCounters {
        let counters = &self.counters;
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        EmulationCounters {
            connections: read(&counters.connections),
            connections_lost: read(&counters.connections_lost),
            connections_refused: read(&counters.connections_refused),
            attempts: read(&counters.attempts),
            silences: read(&counters.silences),
            bad_messages: read(&counters.bad_messages),
            packet_ins: read(&counters.packet_ins),
            packet_ins_dropped: read(&counters.packet_ins_dropped),
            packet_outs: read(&counters.packet_outs),
            flow_mods: read(&counters.flow_mods),
            errors: read(&counters.errors),
            frames_lost: read(&counters.frames_lost),
            frames_not_sent: read(&counters.frames_not_sent),
        }
    }

    /// Ends it: closes all connections and waits for the thread.
    pub fn stop(self) {
        drop(self);
    }

    fn tell(&self, command: Command) {
        // Both fail only if the loop has ended; what was asked is then answered by the closed channel.
        let _ = self.commands.send(command);
        let _ = self.waker.wake();
    }

    fn ask<T>(&self, command: impl FnOnce(Sender<T>) -> Command) -> Receiver<T> {
        let (answer, receiver) = channel();
        self.tell(command(answer));
        receiver
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.tell(Command::Stop);
        let thread = self.thread.lock().map(|mut thread| thread.take()).unwrap_or_default();
        if let Some(thread) = thread {
            // A panic of the thread has been printed; there is nothing to add.
            let _ = thread.join();
        }
    }
}
