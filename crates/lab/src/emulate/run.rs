//! A running network of `burnet emulate`: its events, its progress, and the signal that ends it.
//!
//! In: events of the network. Out: lines of progress, and what long operations return. It judges nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

use emulator::validity::Verdict;
use emulator::{Handle, NetworkEvent, Observer, PingReport};
use flow::DatapathId;

use crate::machine_reading::MachineReader;
use crate::stage::Stage;
use burnet::cli::CommandError;
use burnet::commands::stop_signal::StopSignal;

/// The time between two lines of progress.
const PROGRESS: Duration = Duration::from_secs(1);

/// How long it waits for an event before it checks the clock and signals again.
const LOOK: Duration = Duration::from_millis(20);

fn ended_by_itself() -> CommandError {
    CommandError::DidNotWork("the emulated network has ended by a fault of its own".into())
}

/// The error for a network that did not start. If it is too large for the machine, the operator must make it smaller.
pub(super) fn not_started(error: std::io::Error) -> CommandError {
    match error.kind() {
        std::io::ErrorKind::OutOfMemory => CommandError::Usage(error.to_string()),
        _ => CommandError::DidNotWork(format!("the emulated network cannot be started: {error}")),
    }
}

/// Which switches are connected to which controllers, according to events.
#[derive(Default)]
struct SwitchesSeen {
    connections: BTreeMap<DatapathId, BTreeSet<SocketAddr>>,
}

impl SwitchesSeen {
    fn connected(&mut self, switch: DatapathId, controller: SocketAddr) {
        self.connections.entry(switch).or_default().insert(controller);
    }

    fn disconnected(&mut self, switch: DatapathId, controller: SocketAddr) {
        if let Some(controllers) = self.connections.get_mut(&switch) {
            controllers.remove(&controller);
        }
    }

    /// How many switches have at least one controller.
    fn count(&self) -> usize {
        self.connections.values().filter(|controllers| !controllers.is_empty()).count()
    }
}

/// A running network, and its progress.
pub(super) struct Run {
    pub(super) network: Arc<Handle>,
    observer: Observer,
    pub(super) stage: Stage,
    pub(super) stop: StopSignal,
    switches: SwitchesSeen,
    pings: u64,
    machine: MachineReader,
}

impl Run {
    pub(super) fn new(network: Handle, observer: Observer, stage: Stage, stop: StopSignal) -> Run {
        // Shared with the thread that waits for an answer, so that a signal need not wait for it.
        let network = Arc::new(network);
        let (switches, machine) = (SwitchesSeen::default(), MachineReader::new());
        Run { network, observer, stage, stop, switches, pings: 0, machine }
    }

    /// Waits for all switches. Returns how long they took.
    pub(super) fn connect(&mut self, wait: Duration) -> Result<Duration, CommandError> {
        let network = self.network.clone();
        let switches = self.network.switches();
        self.watch(
            move || network.wait_connected(wait),
            |run| format!("{} of {switches} switches are connected", run.switches.count()),
        )?
        .map_err(|missing| CommandError::DidNotWork(format!("after {} s {missing}", wait.as_secs())))?;
        self.stage.say(&format!("all {switches} switches are connected"));
        self.restart_meter();
        Ok(self.stage.elapsed())
    }

    pub(super) fn ping_all(&mut self, timeout: Duration) -> Result<PingReport, CommandError> {
        let hosts = self.network.hosts();
        let pings = hosts * hosts.saturating_sub(1);
        let network = self.network.clone();
        self.watch(
            move || network.ping_all(timeout),
            |run| format!("{} of {pings} pings are done", run.pings),
        )
    }

    /// Stays up until a signal, and shows events. Returns how long the switches took to connect, if all did.
    pub(super) fn stay_up(&mut self) -> Result<Option<Duration>, CommandError> {
        self.stage.say("it stays up until Ctrl-C");
        let mut connected_after = None;
        while !self.stop.came_within(Duration::ZERO) {
            self.process_events(LOOK)?;
            if connected_after.is_none() && self.switches.count() == self.network.switches() {
                connected_after = Some(self.stage.elapsed());
                self.restart_meter();
            }
        }
        Ok(connected_after)
    }

    /// Connecting is not part of the run that the meter judges.
    fn restart_meter(&mut self) {
        self.network.restart_meter();
        self.machine = MachineReader::new();
    }

    /// What the meter says of the run, with a last reading of the machine.
    pub(super) fn verdict(&mut self) -> Option<Verdict> {
        self.machine.finish().into_iter().for_each(|reading| self.network.note_machine(reading));
        self.network.verdict()
    }

    /// Waits for a long operation, shows events and progress in the meantime, and ends early at a signal.
    fn watch<T: Send + 'static>(
        &mut self,
        long: impl FnOnce() -> T + Send + 'static,
        progress: impl Fn(&Run) -> String,
    ) -> Result<T, CommandError> {
        let working = std::thread::spawn(long);
        let mut said = Instant::now();
        while !working.is_finished() {
            self.process_events(LOOK)?;
            if self.stop.came_within(Duration::ZERO) {
                let far = progress(self);
                return Err(CommandError::DidNotWork(format!(
                    "it was told to stop before it was done: {far}"
                )));
            }
            if said.elapsed() >= PROGRESS {
                said = Instant::now();
                let far = progress(self);
                self.stage.say(&far);
            }
        }
        while let Ok(event) = self.observer.try_next() {
            self.note(&event);
        }
        working.join().map_err(|_| ended_by_itself())
    }

    /// Processes events until now or within a moment. An error means that the network has ended.
    pub(super) fn process_events(&mut self, patience: Duration) -> Result<(), CommandError> {
        self.machine.look().into_iter().for_each(|reading| self.network.note_machine(reading));
        let deadline = Instant::now() + patience;
        while let Some(left) = deadline.checked_duration_since(Instant::now()) {
            match self.observer.next_within(left) {
                Ok(event) => self.note(&event),
                Err(RecvTimeoutError::Timeout) => break,
                Err(RecvTimeoutError::Disconnected) => return Err(ended_by_itself()),
            }
        }
        Ok(())
    }

    fn note(&mut self, event: &NetworkEvent) {
        match event {
            NetworkEvent::SwitchConnected { datapath_id, controller, .. } => {
                self.switches.connected(*datapath_id, *controller);
            }
            NetworkEvent::SwitchDisconnected { datapath_id, controller, .. } => {
                self.switches.disconnected(*datapath_id, *controller);
            }
            NetworkEvent::PingOk { .. } | NetworkEvent::PingLost { .. } => self.pings += 1,
            _ => {}
        }
        self.stage.show(event);
    }
}
