//! A running network, in real or virtual time. Its switches connect to a controller over TCP.
//!
//! ```text
//!   Emulation::start(topology, controller) ──> a thread of its own: sockets ⇄ Network
//!        │                                                                   │
//!        └── wait_connected, ping_all, set_link, counters, stop              └──> events, for observers
//! ```
//!
//! One loop in one thread has all switches' connections, and the packet sockets of bound interfaces. It is the only
//! part of an emulated network that does I/O or reads a clock. If a controller disappears, sends malformed messages
//! or sends nothing, the connection is closed and counted. The switch tries again, with longer and longer waits.

mod capture;
mod connection;
mod connections;
mod counters;
mod event;
mod footprint;
mod interfaces;
mod jump;
mod observers;
pub mod packet_socket;
pub(crate) mod ping_all;
mod ping_rounds;
mod quiescence;
mod reactor;
mod readiness;
mod request;

pub use capture::{Captured, Tap};
pub use counters::EmulationCounters;
pub use event::{NetworkEvent, Observer};
pub use footprint::{TooLarge, check_this_machine};
pub use interfaces::Bridge;
pub use jump::Clock;
pub use ping_all::{PingOutcome, PingReport, dropped_percent};

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use flow::{DatapathId, MacAddr};
use mio::Waker;

use crate::host::HostCounters;
use crate::host::flow::{FlowRefused, FlowReport, FlowSpec, IpVersion};
use crate::host::query::{QueriesRefused, QueriesReport, QuerySpec};
use crate::network::{CannotChange, Change, FlowId, LinkCounters, QueriesId};
use crate::topology::{SwitchPlan, Topology};
use crate::validity::{MachineReading, Verdict};
use counters::Counters;
use reactor::Reactor;
use request::Request;
use software_switch::{SwitchCounters, SwitchOptions, SwitchView};

/// How many events may wait for an observer. More are dropped and counted.
const EVENTS_MAX: usize = 16_384;

/// Starts emulated networks.
pub struct Emulation;

/// A handle of a running network. Dropping it stops the network.
#[derive(Debug)]
pub struct Handle {
    commands: Sender<Request>,
    waker: Arc<Waker>,
    counters: Arc<Counters>,
    thread: Mutex<Option<JoinHandle<()>>>,
    switches: usize,
    hosts: usize,
}

/// The error if not every switch is connected in time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotConnected {
    /// The switches that are not connected, each with its last event.
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
    /// Makes the network and starts it in its own thread, which connects every switch to the controller.
    ///
    /// # Errors
    ///
    /// The network is too large for the free memory, or the operating system gives no thread or no poll.
    pub fn start(topology: &Topology, controller: SocketAddr, options: &SwitchOptions) -> io::Result<Handle> {
        Emulation::start_with_controllers(topology, &[controller], options)
    }

    /// The same with several controllers. Every switch connects to all of them (1.3.5, 6.3.4). Without any, the
    /// switches act as their fail mode says.
    ///
    /// # Errors
    ///
    /// The network is too large for the free memory, or the operating system gives no thread or no poll.
    pub fn start_with_controllers(
        topology: &Topology,
        controllers: &[SocketAddr],
        options: &SwitchOptions,
    ) -> io::Result<Handle> {
        Emulation::begin(topology, controllers, options, Clock::Real, Vec::new(), &[], None)
    }

    /// The same with captures at these taps, and an observer that gets all events from the first connection on.
    ///
    /// # Errors
    ///
    /// The network is too large for the free memory, or the operating system gives no thread or no poll.
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

    /// The same in virtual time, which stands still until a caller waits for a time or hosts ping.
    ///
    /// # Errors
    ///
    /// The network is too large for the free memory, or the operating system gives no thread or no poll.
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

    /// Starts switches whose ports are interfaces of this machine, in its network namespace: veths, taps or network
    /// cards to which nothing else answers. The switches replace Open vSwitch in a Mininet network. There are no
    /// emulated links and hosts.
    ///
    /// Frames are as on a wire: a VLAN tag that the card has removed is put back, and a missing checksum is computed.
    /// Segments that were left to the card to cut are longer than an interface takes, and are lost. So hosts must cut
    /// their own segments (`ethtool -K IF tso off gso off`). The observer gets all events from the first connection
    /// on.
    ///
    /// # Errors
    ///
    /// An interface is missing or named twice, or this process may not bind it (it needs CAP_NET_RAW): the message
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
            place: None,
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
            // The loop processes requests before it connects, so that the observer is registered first. The answer is
            // not needed.
            let _ = commands.send(Request::Observe { audience, listening: channel().0 });
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
    /// The number of switches.
    pub fn switches(&self) -> usize {
        self.switches
    }

    /// The number of hosts.
    pub fn hosts(&self) -> usize {
        self.hosts
    }

    /// Waits until a controller knows every switch. A 1.3 switch without rules drops everything, so it must also have
    /// got its first rule, or have had none for half a second.
    ///
    /// # Errors
    ///
    /// The time is over: which switches are missing, and why.
    pub fn wait_connected(&self, timeout: Duration) -> Result<(), NotConnected> {
        match self.ask(Request::WaitConnected).recv_timeout(timeout) {
            Ok(()) => Ok(()),
            Err(_) => {
                Err(NotConnected { missing: self.ask(Request::ListMissing).recv().unwrap_or_default() })
            }
        }
    }

    /// Lets every host ping every other, a few at a time. Each ping waits up to `timeout` for its reply, and then
    /// counts as lost. Returns when all are answered or lost.
    pub fn ping_all(&self, timeout: Duration) -> PingReport {
        self.ping_all_over(IpVersion::V4, timeout)
    }

    /// The same over a version of IP. With IPv6, it pings global addresses.
    pub fn ping_all_over(&self, ip: IpVersion, timeout: Duration) -> PingReport {
        self.ask(|answer| Request::PingAll { ip, timeout, answer }).recv().unwrap_or_default()
    }

    /// The same without waiting for the result. Several rounds can run at a time.
    pub fn begin_ping_all(&self, timeout: Duration) -> Receiver<PingReport> {
        self.ask(|answer| Request::PingAll { ip: IpVersion::V4, timeout, answer })
    }

    /// Lets one host ping another once. Both are given by name. The report has one pair.
    ///
    /// # Errors
    ///
    /// A host does not exist, or the emulation has ended.
    pub fn begin_ping(
        &self,
        from: &str,
        to: &str,
        timeout: Duration,
    ) -> Result<Receiver<PingReport>, CannotChange> {
        let (answer, report) = channel();
        let (from, to) = (from.to_owned(), to.to_owned());
        let begun = self.ask(|begun| Request::Ping { from, to, timeout, answer, begun });
        begun.recv().unwrap_or(Err(CannotChange::Ended)).map(|()| report)
    }

    /// The state of each switch, in the order of the topology. Empty if the emulation has ended.
    pub fn switch_views(&self) -> Vec<SwitchView> {
        self.ask(Request::ViewSwitches).recv().unwrap_or_default()
    }

    /// The counters of all switches together, or `None` if the emulation has ended.
    pub fn switch_counters(&self) -> Option<SwitchCounters> {
        self.ask(Request::CountSwitches).recv().ok()
    }

    /// Takes a link down or up. Its number is its index in the topology's links.
    pub fn set_link(&self, link: usize, up: bool) {
        self.tell(Request::SetLink { link, up });
    }

    /// Makes a change. It is done when this returns; the messages of the switches to their controllers may still be
    /// on their way.
    ///
    /// # Errors
    ///
    /// The name is unknown, the port is in use, or the emulation has ended.
    pub fn change(&self, change: Change) -> Result<(), CannotChange> {
        self.ask(|answer| Request::Change { change, answer }).recv().unwrap_or(Err(CannotChange::Ended))
    }

    /// Waits until this much time has passed in the network since the emulation began. Virtual time passes only here
    /// and while hosts ping. Returns false if the emulation has ended before.
    pub fn pass_to(&self, time: Duration) -> bool {
        self.ask(|answer| Request::PassTo { time, answer }).recv().is_ok()
    }

    /// Sends a frame from a host, as it is. The host itself knows nothing of it.
    ///
    /// # Errors
    ///
    /// The host does not exist, or the emulation has ended.
    pub fn send_frame(&self, host: &str, frame: Vec<u8>) -> Result<(), CannotChange> {
        let host = host.to_owned();
        let sent = self.ask(|answer| Request::SendFrame { host, frame, answer });
        sent.recv().unwrap_or(Err(CannotChange::Ended))
    }

    /// Starts a flow between two hosts.
    ///
    /// # Errors
    ///
    /// A host does not exist, the parameters are invalid, there are too many flows, or the emulation has ended.
    pub fn start_flow(&self, spec: FlowSpec) -> Result<FlowId, FlowRefused> {
        self.ask(|answer| Request::StartFlow { spec, answer }).recv().unwrap_or(Err(FlowRefused::Ended))
    }

    /// Stops a flow. TCP still delivers what was already sent. Returns whether the flow exists.
    pub fn stop_flow(&self, id: FlowId) -> bool {
        self.ask(|answer| Request::StopFlow { id, answer }).recv().unwrap_or(false)
    }

    /// The report of a flow, or `None` if it does not exist. Times are since the emulation began.
    pub fn flow_report(&self, id: FlowId) -> Option<FlowReport> {
        self.ask(|answer| Request::ReportFlow { id, answer }).recv().ok().flatten()
    }

    /// Begins a series of queries from one host to another.
    ///
    /// # Errors
    ///
    /// A host does not exist, the parameters are invalid, there are too many series, or the emulation has ended.
    pub fn start_queries(&self, spec: QuerySpec) -> Result<QueriesId, QueriesRefused> {
        self.ask(|answer| Request::StartQueries { spec, answer }).recv().unwrap_or(Err(QueriesRefused::Ended))
    }

    /// The report of a series of queries, or `None` if it does not exist. Times are since the emulation began.
    pub fn queries_report(&self, id: QueriesId) -> Option<QueriesReport> {
        self.ask(|answer| Request::ReportQueries { id, answer }).recv().ok().flatten()
    }

    /// Each host's name and counters, in the order of the topology. Empty if the emulation has ended.
    pub fn host_counters(&self) -> Vec<(String, HostCounters)> {
        self.ask(Request::CountHosts).recv().unwrap_or_default()
    }

    /// For each host, in the order of the topology: the bytes of frames for its own address, by the address that sent them. Empty if the
    /// emulation has ended.
    pub fn received_by_hosts(&self) -> Vec<Vec<(MacAddr, u64)>> {
        self.ask(Request::CountReceived).recv().unwrap_or_default()
    }

    /// Each link's name and counters, in the order of the topology. Empty if the emulation has ended.
    pub fn link_counters(&self) -> Vec<(String, LinkCounters)> {
        self.ask(Request::CountLinks).recv().unwrap_or_default()
    }

    /// From now on, floods use only the links of a spanning tree: see
    /// [`Network::keep_spanning_tree`](crate::Network::keep_spanning_tree).
    pub fn keep_spanning_tree(&self) {
        self.tell(Request::KeepSpanningTree);
    }

    /// Adds an observer. It gets all events after this returns.
    pub fn observer(&self) -> Observer {
        let (audience, observer) = event::channel(EVENTS_MAX);
        // This fails only if the network has ended, which the observer then notices.
        let _ = self.ask(|listening| Request::Observe { audience, listening }).recv();
        observer
    }

    /// The counters so far.
    pub fn counters(&self) -> EmulationCounters {
        self.counters.now()
    }

    /// Begins the run that the meter judges. What was before, such as connecting, is not part of it.
    pub fn restart_meter(&self) {
        self.tell(Request::RestartMeter);
    }

    /// Tells the meter what the machine did since the last reading. The caller reads it once a second.
    pub fn note_machine(&self, reading: MachineReading) {
        self.tell(Request::NoteMachine(reading));
    }

    /// Whether the machine has kept up with the network until now. A network in virtual time is always valid. `None` if
    /// the emulation has ended.
    pub fn verdict(&self) -> Option<Verdict> {
        self.ask(Request::Judge).recv().ok()
    }

    /// Stops the network: closes all connections and waits for the thread.
    pub fn stop(self) {
        drop(self);
    }

    fn tell(&self, command: Request) {
        // Both fail only if the loop has ended. The closed channel then answers the request.
        let _ = self.commands.send(command);
        let _ = self.waker.wake();
    }

    fn ask<T>(&self, command: impl FnOnce(Sender<T>) -> Request) -> Receiver<T> {
        let (answer, receiver) = channel();
        self.tell(command(answer));
        receiver
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.tell(Request::Stop);
        let thread = self.thread.lock().map(|mut thread| thread.take()).unwrap_or_default();
        if let Some(thread) = thread {
            // A panic of the thread has been printed; there is nothing to add.
            let _ = thread.join();
        }
    }
}
