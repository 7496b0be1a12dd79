//! A network in virtual time: the clock jumps from one thing that happens to the next, so that hours take seconds.
//!
//! ```text
//!   "until then", changes, flows, pings ──> Simulation ──> reports, replies, a digest of all that happened
//!                                             │   ▲
//!                                    messages └─> controller, a function in this process
//! ```
//!
//! A controller answers at the moment at which it is asked. Nothing depends on the machine: the same calls with the same seed and a
//! controller that does the same give the same digest. Never does I/O and never asks for the time.

use openflow::Message;
use std::time::Duration;

use crate::digest::Digest;
use crate::host::PingReply;
use crate::host::flow::{FlowRefused, FlowReport, FlowSpec};
use crate::network::{CannotChange, Change, Channel, FlowId, Network, NetworkEffects};
use crate::topology::Topology;
use software_switch::{ControllerId, SwitchOptions};

/// How much happens in one moment: frames and time-outs. A storm on links that take no time would never end otherwise; beyond this the
/// clock goes on by [`STORM_STEP`], as if a machine had carried so much meanwhile.
const MOMENT_MAX: usize = 65_536;
/// How often switches and controller answer each other in one moment; beyond this the clock goes on too.
const ANSWERS_MAX: usize = 10_000;
const STORM_STEP: Duration = Duration::from_millis(1);

/// A controller: a message of a switch and the time go in, and what it says to that switch is put into the last argument.
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
    /// A network without a controller: its switches do what they do alone.
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

    /// A network whose switches are connected to this controller from the first moment on.
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

    /// The controller meets a switch (again). Nothing happens without a controller, or if the switch is off.
    fn connect(&mut self, switch: usize) {
        if self.conduct.is_some() && self.network.is_switch_up(switch) {
            let at = Channel { switch, controller: ControllerId(0) };
            self.network.on_connected(at, &mut self.effects);
        }
    }

    /// The network as it is now.
    pub fn network(&self) -> &Network {
        &self.network
    }

    /// When something happens next by itself.
    pub(crate) fn next_due(&self) -> Option<Duration> {
        self.network.next_due()
    }

    /// Does something in the network now.
    pub(crate) fn act<T>(
        &mut self,
        what: impl FnOnce(&mut Network, Duration, &mut NetworkEffects) -> T,
    ) -> T {
        what(&mut self.network, self.now, &mut self.effects)
    }

    /// The time since the beginning.
    pub fn now(&self) -> Duration {
        self.now
    }

    /// Stands for all that has happened: which bytes arrived where and when, and what was said on control channels.
    pub fn digest(&self) -> u64 {
        let mut digest = self.digest;
        digest.number(self.network.digest());
        digest.number(u64::try_from(self.now.as_nanos()).unwrap_or(u64::MAX));
        digest.value()
    }

    /// How often so much happened in one moment that the clock had to go on: more than zero says that frames go in circles.
    pub fn storms(&self) -> u64 {
        self.storms
    }

    /// Lets everything happen until then.
    pub fn run_until(&mut self, end: Duration) {
        self.converse();
        while let Some(due) = self.network.next_due().filter(|due| *due <= end) {
            self.now = self.now.max(due);
            let goes_on = self.network.carry(MOMENT_MAX, self.now, &mut self.effects);
            let has_no_end = !self.converse();
            if goes_on || has_no_end {
                self.storms += 1;
                self.now += STORM_STEP;
            }
        }
        self.now = self.now.max(end);
        self.network.carry(0, self.now, &mut self.effects);
    }

    /// Lets this much time pass.
    pub fn run_for(&mut self, time: Duration) {
        self.run_until(self.now + time);
    }

    /// Does something to the network now. A switch that is switched on meets the controller again.
    ///
    /// # Errors
    /// A name that nothing has, or a port that is taken: then nothing is changed.
    pub fn change(&mut self, change: &Change) -> Result<(), CannotChange> {
        self.network.change(change, self.now, &mut self.effects)?;
        if let Change::Switch { switch, up: true } = change {
            self.connect(self.network.switch_named(switch)?);
        }
        self.converse();
        Ok(())
    }

    /// One host pings another over IPv4, by their names.
    ///
    /// # Errors
    /// A host that is not there.
    pub fn ping(&mut self, from: &str, to: &str, sequence: u16) -> Result<(), CannotChange> {
        let (from, to) = (self.network.host_named(from)?, self.network.host_named(to)?);
        let address = self.network.hosts()[to].address();
        self.network.ping(from, address, sequence, self.now, &mut self.effects);
        Ok(())
    }

    /// The replies that have come since last asked, each with the index of the host that pinged.
    pub fn take_replies(&mut self) -> Vec<(usize, PingReply)> {
        self.gather();
        std::mem::take(&mut self.replies)
    }

    /// From now on only the links of a spanning tree carry what is flooded; see [`Network::keep_spanning_tree`].
    pub fn keep_spanning_tree(&mut self) {
        self.network.keep_spanning_tree(&mut self.effects);
        self.converse();
    }

    /// Begins a flow now.
    ///
    /// # Errors
    /// As [`Network::start_flow`].
    pub fn start_flow(&mut self, spec: &FlowSpec) -> Result<FlowId, FlowRefused> {
        self.network.start_flow(spec, self.now, &mut self.effects)
    }

    /// Ends a flow now. Says whether there is such a flow.
    pub fn stop_flow(&mut self, id: FlowId) -> bool {
        self.network.stop_flow(id, self.now, &mut self.effects)
    }

    /// What became of a flow so far, if there is such a flow.
    pub fn flow_report(&self, id: FlowId) -> Option<FlowReport> {
        self.network.flow_report(id)
    }

    fn gather(&mut self) {
        self.replies.append(&mut self.effects.replies);
    }

    /// Switches and controller talk until neither has anything to say. Says whether they came to an end.
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
        // What cannot be written is not on the wire either.
        if message.encode(&mut bytes).is_ok() {
            self.digest.bytes(&bytes);
        }
    }
}
