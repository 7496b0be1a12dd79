//! A network in virtual time: the clock jumps from one event to the next, so that hours take seconds.
//!
//! ```text
//!   "until then", changes, flows, pings ──> Simulation ──> reports, replies, a digest of all that happened
//!                                             │   ▲
//!                                    messages └─> controller, a function in this process
//! ```
//!
//! A controller answers at the moment at which it gets a message. Nothing depends on the machine. The same calls, the
//! same seed and a deterministic controller give the same digest. It never does I/O and never reads a clock.

use openflow::Message;
use std::time::Duration;

use crate::digest::Digest;
use crate::host::PingReply;
use crate::host::flow::{FlowRefused, FlowReport, FlowSpec};
use crate::host::query::{QueriesRefused, QueriesReport, QuerySpec};
use crate::network::{CannotChange, Capture, Change, Channel, FlowId, Network, NetworkEffects, QueriesId};
use crate::topology::{Endpoint, Topology};
use software_switch::{ControllerId, SwitchOptions};

/// How many frames and time-outs are processed at one moment. A storm on links without delay would never end
/// otherwise. Above this, the clock advances by [`STORM_STEP`], as if a machine had needed that time.
const MOMENT_MAX: usize = 65_536;
/// How many rounds of messages and answers are processed at one moment. Above this, the clock advances too.
const ANSWERS_MAX: usize = 10_000;
const STORM_STEP: Duration = Duration::from_millis(1);

/// A controller. It gets a switch's message and the time, and appends its answers to the last argument.
pub type Conduct = Box<dyn FnMut(Channel, &Message, Duration, &mut Vec<Message>) + Send>;

/// A network in virtual time.
pub struct Simulation {
    network: Network,
    now: Duration,
    effects: NetworkEffects,
    conduct: Option<Conduct>,
    said: Vec<Message>,
    replies: Vec<(usize, PingReply)>,
    digest: Digest,
    storms: u64,
}

impl Simulation {
    /// A network without a controller. Its switches act as their fail mode says.
    pub fn new(topology: &Topology, options: &SwitchOptions, seed: u64) -> Self {
        let mut network = Network::with_seed(topology, options, seed, Duration::ZERO);
        network.keep_digest();
        Simulation {
            network,
            now: Duration::ZERO,
            effects: NetworkEffects::default(),
            conduct: None,
            said: Vec::new(),
            replies: Vec::new(),
            digest: Digest::default(),
            storms: 0,
        }
    }

    /// A network whose switches are connected to this controller from the start.
    pub fn with_controller(
        topology: &Topology,
        options: &SwitchOptions,
        seed: u64,
        conduct: Conduct,
    ) -> Self {
        let mut simulation = Self::new(topology, options, seed);
        simulation.conduct = Some(conduct);
        for switch in 0..topology.switches.len() {
            simulation.connect(switch);
        }
        simulation.converse();
        simulation
    }

    /// Connects a switch to the controller. Does nothing if there is no controller or the switch is off.
    fn connect(&mut self, switch: usize) {
        if self.conduct.is_some() && self.network.is_switch_up(switch) {
            let at = Channel { switch, controller: ControllerId(0) };
            self.network.on_connected(at, &mut self.effects);
        }
    }

    /// The network in its present state.
    pub fn network(&self) -> &Network {
        &self.network
    }

    /// The time of the next event in the network.
    pub(crate) fn next_due(&self) -> Option<Duration> {
        self.network.next_due()
    }

    /// Changes the network now.
    pub(crate) fn act<T>(
        &mut self,
        what: impl FnOnce(&mut Network, Duration, &mut NetworkEffects) -> T,
    ) -> T {
        what(&mut self.network, self.now, &mut self.effects)
    }

    /// The time since the start.
    pub fn now(&self) -> Duration {
        self.now
    }

    /// A digest of all that has happened: which bytes arrived where and when, and all messages on control channels.
    pub fn digest(&self) -> u64 {
        let mut digest = self.digest;
        digest.number(self.network.digest());
        digest.number(u64::try_from(self.now.as_nanos()).unwrap_or(u64::MAX));
        digest.value()
    }

    /// How often `MOMENT_MAX` or `ANSWERS_MAX` forced the clock to advance. More than zero means that frames
    /// circulate.
    pub fn storms(&self) -> u64 {
        self.storms
    }

    /// Processes all events until `end`.
    pub fn run_until(&mut self, end: Duration) {
        self.converse();
        while self.run_moment(end) {}
    }

    /// Processes the events of the next moment. If that is after `end`, only the clock advances, to `end`, and the answer is `false`.
    pub fn run_moment(&mut self, end: Duration) -> bool {
        let Some(due) = self.network.next_due().filter(|due| *due <= end) else {
            self.now = self.now.max(end);
            self.network.carry(0, self.now, &mut self.effects);
            return false;
        };
        self.now = self.now.max(due);
        let goes_on = self.network.carry(MOMENT_MAX, self.now, &mut self.effects);
        let has_no_end = !self.converse();
        if goes_on || has_no_end {
            self.storms += 1;
            self.now += STORM_STEP;
        }
        true
    }

    /// The controller sends a message now that is no answer to this switch: by its own clock, or because of another switch.
    pub fn say(&mut self, at: Channel, message: &Message) {
        self.note(at, message);
        self.network.on_message(at, message, self.now, &mut self.effects);
        self.converse();
    }

    /// Processes all events in the next `time`.
    pub fn run_for(&mut self, time: Duration) {
        self.run_until(self.now + time);
    }

    /// Changes the network now. A switch that is switched on connects to the controller again.
    ///
    /// # Errors
    ///
    /// The name is unknown, or the port is in use. Then nothing is changed.
    pub fn change(&mut self, change: &Change) -> Result<(), CannotChange> {
        self.network.change(change, self.now, &mut self.effects)?;
        if let Change::Switch { switch, up: true } = change {
            self.connect(self.network.switch_named(switch)?);
        }
        self.converse();
        Ok(())
    }

    /// Lets one host ping another over IPv4. Both are given by name.
    ///
    /// # Errors
    ///
    /// One of the hosts does not exist.
    pub fn ping(&mut self, from: &str, to: &str, sequence: u16) -> Result<(), CannotChange> {
        let (from, to) = (self.network.host_named(from)?, self.network.host_named(to)?);
        let address = self.network.hosts()[to].address();
        self.network.ping(from, address, sequence, self.now, &mut self.effects);
        Ok(())
    }

    /// The ping replies since the last call, each with the index of the host that pinged.
    pub fn take_replies(&mut self) -> Vec<(usize, PingReply)> {
        self.gather();
        std::mem::take(&mut self.replies)
    }

    /// From now on, floods use only the links of a spanning tree: see [`Network::keep_spanning_tree`].
    pub fn keep_spanning_tree(&mut self) {
        self.network.keep_spanning_tree(&mut self.effects);
        self.converse();
    }

    /// Starts a flow now.
    ///
    /// # Errors
    /// As [`Network::start_flow`].
    pub fn start_flow(&mut self, spec: &FlowSpec) -> Result<FlowId, FlowRefused> {
        self.network.start_flow(spec, self.now, &mut self.effects)
    }

    /// Ends a flow now. Returns whether it exists.
    pub fn stop_flow(&mut self, id: FlowId) -> bool {
        self.network.stop_flow(id, self.now, &mut self.effects)
    }

    /// The result of a flow so far, or `None` if it does not exist.
    pub fn flow_report(&self, id: FlowId) -> Option<FlowReport> {
        self.network.flow_report(id)
    }

    /// Begins a series of queries now.
    ///
    /// # Errors
    /// As [`Network::start_queries`].
    pub fn start_queries(&mut self, spec: &QuerySpec) -> Result<QueriesId, QueriesRefused> {
        self.network.start_queries(spec, self.now, &mut self.effects)
    }

    /// The result of a series so far, or `None` if it does not exist.
    pub fn queries_report(&self, id: QueriesId) -> Option<QueriesReport> {
        self.network.queries_report(id)
    }

    /// Starts or stops copying the frames that pass this end of a link.
    pub fn set_tap(&mut self, at: Endpoint, on: bool) {
        self.network.set_tap(at, on);
    }

    /// The copies of frames since the last call. At most 65,536 are kept, so call it often enough.
    pub fn take_captures(&mut self) -> Vec<Capture> {
        std::mem::take(&mut self.effects.captured)
    }

    fn gather(&mut self) {
        self.replies.append(&mut self.effects.replies);
    }

    /// Exchanges messages between switches and controller until neither has any. Returns whether that ended.
    fn converse(&mut self) -> bool {
        self.gather();
        for _ in 0..ANSWERS_MAX {
            for (at, _) in std::mem::take(&mut self.effects.close) {
                self.network.on_disconnected(at);
            }
            if self.effects.messages.is_empty() {
                return true;
            }
            for (at, message) in std::mem::take(&mut self.effects.messages) {
                self.note(at, &message);
                let Some(conduct) = &mut self.conduct else { continue };
                conduct(at, &message, self.now, &mut self.said);
                for answer in std::mem::take(&mut self.said) {
                    self.note(at, &answer);
                    self.network.on_message(at, &answer, self.now, &mut self.effects);
                }
            }
        }
        false
    }

    fn note(&mut self, at: Channel, message: &Message) {
        let mut bytes = Vec::new();
        self.digest.number(at.switch as u64);
        // A message that cannot be encoded is not sent.
        if message.encode(&mut bytes).is_ok() {
            self.digest.bytes(&bytes);
        }
    }
}
