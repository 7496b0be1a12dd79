//! The app of the service: it follows the view, asks switches for the counters of their ports, and calls services for requests.
//!
//! ```text
//!   the view ──on_view──> Northbound ──change──> State
//!   switches, flows ──counters──>  │
//!   monitor ──apps, incidents──>   │ ──commands for apps, questions for evidence──> monitor
//!   requests ──call──> services ──answer──> the request that waits
//! ```
//!
//! In: events of the node. Out: changes of the state, and commands. While a service is away, its objects stay as they were, and
//! `/api/v1/node` says that the view is not current.

use crate::api::AT_HAND;
use crate::counters::{ALL_PORTS, OFPMP_PORT_STATS};
use crate::state::State;
use burnet_sdk::stream::Update;
use burnet_sdk::view::{Batch, Snapshot};
use burnet_sdk::{
    App, Commands, DatapathId, Interests, Level, Outcome, PortMod, QueryReply, Receipt, Settings, StatsReply,
    SwitchUp, Ticket, Topic, read_monitor,
};
use burnet_sdk_tokio::tokio;
use burnet_sdk_tokio::tokio::sync::{Semaphore, oneshot};
use northbound_contract::{AppCommand, CommandRefused, EvidenceReport, FromMonitor, ToMonitor};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

/// How often each switch is asked for the counters of its ports.
const COUNTERS_INTERVAL_MS: u64 = 5_000;

/// The most calls of services that wait for an answer. A request beyond it is refused.
const CALLS_MAX: usize = 256;

/// The most commands that wait for the monitor, which answers at once. A request beyond it is refused.
const ORDERS_MAX: usize = 64;

/// The most questions for evidence that wait for the monitor, which answers within a second. A request beyond it is refused.
const EVIDENCE_MAX: usize = 32;

/// The most requests that wait for switches, and the most changes of ports. A request beyond it is refused.
const ASKED_MAX: usize = 64;

/// The most bytes of one switch's answer that are kept. A longer answer is refused.
const SWITCH_ANSWER_BYTES_MAX: usize = 16 << 20;

/// The same for features of tables: as JSON, each of their bytes takes far more memory than those of other answers.
const TABLE_FEATURES_BYTES_MAX: usize = 1 << 20;

/// `OFPMP_TABLE_FEATURES`.
const TABLE_FEATURES: u16 = 12;

/// The most bytes of all answers that are not complete, so that switches cannot fill the memory of the service. The answer that passes it
/// is refused.
const SWITCH_ANSWERS_BYTES_MAX: usize = 32 << 20;

/// The most requests with [`crate::steps::Turn::Few`] at one time: one explanation can hold what 64 switches have said. A request beyond it is
/// refused.
pub const FEW_MAX: usize = 8;

/// The most bytes of the bodies of all requests that are being received or answered. A request beyond it waits until there is room, and is
/// refused if that takes too long. Requests at the socket of the operator have as much again.
pub const BODIES_BYTES_MAX: usize = 32 << 20;

/// The most bytes of long answers that clients have not read yet. A request whose answer does not fit is refused. Short ones do not count: as
/// many as there are connections, all are 128 MiB.
const ANSWERS_BYTES_MAX: usize = 128 << 20;

/// What requests share with the app.
pub struct Shared {
    state: Mutex<State>,
    /// Held by a request that must run alone: see [`crate::steps::Turn::Alone`].
    pub alone: tokio::sync::Mutex<()>,
    /// Has room for [`FEW_MAX`] requests.
    pub few: Semaphore,
    /// The bytes that bodies of requests may take: see [`BODIES_BYTES_MAX`].
    pub bodies: Semaphore,
    /// The same for clients at the socket of the operator, so that others cannot take this room.
    pub operator_bodies: Semaphore,
    /// The bytes that answers may take which clients have not read yet: see [`ANSWERS_BYTES_MAX`].
    pub answers: Arc<Semaphore>,
    /// The same for clients at the socket of the operator, so that others cannot take this room.
    pub operator_answers: Arc<Semaphore>,
    /// What the operator wrote.
    pub settings: northbound_contract::Settings,
}

impl Shared {
    /// The state. It is held for one answer, and never while something is awaited.
    pub fn state(&self) -> MutexGuard<'_, State> {
        // A panic during a change ends the process anyway.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The answer of a service: status and payload.
pub type Reply = (u16, Vec<u8>);

/// Why the monitor does not carry out a command, or `None` if it does.
pub type Ordered = Option<CommandRefused>;

/// The evidence of an incident, or `None` if the node no longer has it.
pub type Evidence = Option<Box<EvidenceReport>>;

/// The parts of a switch's answer, or why there is none.
pub type Parts = Result<Vec<Vec<u8>>, String>;

/// What a switch made of the change of a port.
#[derive(Debug)]
pub enum Changed {
    /// The switch has confirmed it.
    Done,
    /// The node or the switch has refused it, for this reason.
    Refused(String),
    /// The session ended before the switch confirmed it, for this reason.
    Unknown(String),
}

/// A request that waits for a switch.
struct Asked {
    waiting: oneshot::Sender<Parts>,
    parts: Vec<Vec<u8>>,
    bytes: usize,
    bytes_max: usize,
}

/// The app.
pub struct Northbound {
    shared: Arc<Shared>,
    calls: BTreeMap<Ticket, oneshot::Sender<Reply>>,
    /// Requests that wait for switches.
    asked: BTreeMap<Ticket, Asked>,
    /// Changes of ports that wait for switches.
    changes: BTreeMap<Ticket, oneshot::Sender<Changed>>,
    /// Commands that wait for the monitor, by their tickets.
    orders: BTreeMap<u64, oneshot::Sender<Ordered>>,
    /// Questions for evidence that wait for the monitor, by their tickets.
    evidence: BTreeMap<u64, oneshot::Sender<Evidence>>,
    /// The ticket of the last message to the monitor.
    last_order: u64,
    switches: BTreeSet<DatapathId>,
    counters_due_ms: u64,
    /// The question for the rules of all switches that waits for its answer.
    rules_asked: Option<Ticket>,
    /// The question for the flows of all slices that waits for its answer.
    slices_asked: Option<Ticket>,
    /// The streams of labels that it follows, with their slices: those that clients want.
    labels: BTreeMap<Ticket, String>,
    /// How many of the stalled clients the log names already.
    told_stalled: u64,
}

impl App for Northbound {
    fn new(settings: &Settings) -> Result<Self, String> {
        let settings: northbound_contract::Settings = settings.read()?;
        if let Some(flaw) = settings.flaw() {
            return Err(flaw);
        }
        let now_ms = now_ms();
        let run = format!("{now_ms:x}");
        let mut state = State::new(run, now_ms);
        state.may_change_apps = settings.may_change_apps;
        let state = Mutex::new(state);
        Ok(Northbound {
            shared: Arc::new(Shared {
                state,
                alone: tokio::sync::Mutex::new(()),
                few: Semaphore::new(FEW_MAX),
                bodies: Semaphore::new(BODIES_BYTES_MAX),
                operator_bodies: Semaphore::new(BODIES_BYTES_MAX),
                answers: Arc::new(Semaphore::new(ANSWERS_BYTES_MAX)),
                operator_answers: Arc::new(Semaphore::new(ANSWERS_BYTES_MAX)),
                settings,
            }),
            calls: BTreeMap::new(),
            asked: BTreeMap::new(),
            changes: BTreeMap::new(),
            orders: BTreeMap::new(),
            evidence: BTreeMap::new(),
            last_order: 0,
            switches: BTreeSet::new(),
            counters_due_ms: 0,
            rules_asked: None,
            slices_asked: None,
            labels: BTreeMap::new(),
            told_stalled: 0,
        })
    }

    fn interests(&self) -> Interests {
        Interests::none().switches().ticks().topics().view(&AT_HAND)
    }

    fn on_view(&mut self, changes: &Batch, view: &Snapshot, out: &mut Commands) {
        let mut state = self.shared.state();
        state.is_current = out.view_is_current();
        state.change(changes, view);
    }

    fn on_switch_up(&mut self, up: &SwitchUp, out: &mut Commands) {
        self.switches.insert(up.datapath);
        // A new switch is shown with its counters soon.
        out.request_stats(up.datapath, OFPMP_PORT_STATS, &ALL_PORTS);
    }

    fn on_switch_down(&mut self, datapath: DatapathId, _: &mut Commands) {
        self.switches.remove(&datapath);
        self.shared.state().counters.forget(datapath);
    }

    fn on_tick(&mut self, now_ms: u64, out: &mut Commands) {
        if now_ms < self.counters_due_ms {
            return;
        }
        self.counters_due_ms = now_ms + COUNTERS_INTERVAL_MS;
        self.shared.state().is_current = out.view_is_current();
        self.tell_stalled(out);
        self.follow_wanted_labels(out);
        for switch in &self.switches {
            out.request_stats(*switch, OFPMP_PORT_STATS, &ALL_PORTS);
        }
        let question = flows_contract::Question::Switches.to_bytes();
        self.rules_asked = Some(out.query(flows_contract::SERVICE, &question));
        // Without slices, the node does not run the service.
        if self.shared.state().apps.iter().any(|app| slice_contract::slice_of(&app.id).is_some()) {
            let question = labels_contract::Question::Slices.to_bytes();
            self.slices_asked = Some(out.query(labels_contract::SERVICE, &question));
        }
    }

    fn on_stats_reply(&mut self, reply: &StatsReply, _: &mut Commands) {
        if self.asked.contains_key(&Ticket(reply.ticket)) {
            self.hear_switch(Ticket(reply.ticket), reply.more, reply.body);
        } else if reply.multipart == OFPMP_PORT_STATS {
            let mut state = self.shared.state();
            let taken = state.counters.take(reply.datapath, reply.body, now_ms());
            state.counted(&taken);
        }
    }

    fn serves_monitor(&self) -> bool {
        true
    }

    fn on_monitor(&mut self, message: &[u8], _: &mut Commands) -> Result<(), String> {
        match read_monitor(message)? {
            FromMonitor::Apps(report) => self.shared.state().on_apps(report),
            FromMonitor::Incidents { is_first, incidents } => {
                self.shared.state().on_stored(is_first, incidents);
            }
            FromMonitor::Answered { ticket, refused } => {
                if let Some(waiting) = self.orders.remove(&ticket) {
                    // Its client may be gone.
                    let _ = waiting.send(refused);
                }
            }
            FromMonitor::Evidence { ticket, evidence } => {
                if let Some(waiting) = self.evidence.remove(&ticket) {
                    // Its client may be gone.
                    let _ = waiting.send(evidence);
                }
            }
        }
        Ok(())
    }

    fn on_topic(&mut self, topic: &Topic, _: &mut Commands) {
        if topic.topic == slice_contract::STATE_TOPIC {
            self.shared.state().on_summary(topic.publisher.0, topic.payload);
            return;
        }
        if topic.topic == slice_contract::NETWORK_TOPIC {
            self.shared.state().slices.hear_network(topic.publisher.0, topic.payload);
            return;
        }
        let service = match topic.topic {
            discovery_contract::INCIDENT_TOPIC => discovery_contract::SERVICE,
            hosts_contract::INCIDENT_TOPIC => hosts_contract::SERVICE,
            labels_contract::INCIDENT_TOPIC => labels_contract::SERVICE,
            _ => return,
        };
        self.shared.state().on_incident(service, topic.payload);
    }

    fn on_query_reply(&mut self, reply: &QueryReply, _: &mut Commands) {
        if self.rules_asked.take_if(|asked| asked.0 == reply.ticket).is_some() {
            // Without an answer, for example because the service restarts, the numbers are left out.
            let rules = if reply.status == 0 { serde_json::from_slice(reply.payload).ok() } else { None };
            self.shared.state().rules = rules.unwrap_or_default();
            return;
        }
        if self.slices_asked.take_if(|asked| asked.0 == reply.ticket).is_some() {
            let standings = if reply.status == 0 { serde_json::from_slice(reply.payload).ok() } else { None };
            self.shared.state().slices.take(standings.unwrap_or_default());
            return;
        }
        if let Some(waiting) = self.calls.remove(&Ticket(reply.ticket)) {
            // Its client may be gone.
            let _ = waiting.send((reply.status, reply.payload.to_vec()));
        }
    }

    fn on_stream(&mut self, stream: Ticket, update: &Update, _: &mut Commands) {
        let Some(slice) = self.labels.get(&stream) else { return };
        self.shared.state().on_labels(slice, update);
        if matches!(update, Update::Ended { .. }) {
            // If a client still wants it, it is followed again at the next tick.
            self.labels.remove(&stream);
        }
    }

    fn on_receipt(&mut self, _: DatapathId, receipt: &Receipt, _: &mut Commands) {
        self.labels.remove(&Ticket(receipt.ticket));
        if let Some(waiting) = self.changes.remove(&Ticket(receipt.ticket)) {
            let why = receipt.reason.to_owned();
            // Its client may be gone.
            let _ = waiting.send(match receipt.outcome {
                Outcome::Programmed => Changed::Done,
                Outcome::Refused | Outcome::Failed => Changed::Refused(why),
                Outcome::Unknown => Changed::Unknown(why),
            });
        }
        if let Some(asked) = self.asked.remove(&Ticket(receipt.ticket)) {
            let _ = asked.waiting.send(Err(receipt.reason.to_owned()));
        }
        if let Some(waiting) = self.calls.remove(&Ticket(receipt.ticket)) {
            let _ = waiting.send((burnet_sdk::query_status::NOT_GRANTED, receipt.reason.as_bytes().to_vec()));
        }
    }
}

impl Northbound {
    /// Tells the operator of clients that were disconnected because they read nothing: one line for all since the last one.
    fn tell_stalled(&mut self, out: &mut Commands) {
        let stalled = self.shared.state().stalled;
        let new = stalled - std::mem::replace(&mut self.told_stalled, stalled);
        if new > 0 {
            let why = format!(
                "{new} clients of the REST interface were disconnected, because they read nothing for 30 seconds while data waited for them"
            );
            out.log(Level::Warning, &why);
        }
    }

    /// A client wants the labels of a slice. There are no more of them than clients of streams.
    pub fn follow_labels(&mut self, slice: &str, out: &mut Commands) {
        if !self.labels.values().any(|followed| followed == slice) {
            let follow = labels_contract::Follow { slice: slice.to_owned() };
            let ticket = out.follow(labels_contract::SERVICE, &follow.to_bytes());
            self.labels.insert(ticket, slice.to_owned());
        }
    }

    /// Follows the labels that clients want, and no others.
    fn follow_wanted_labels(&mut self, out: &mut Commands) {
        let wanted: BTreeSet<String> =
            self.shared.state().feed.wanted_slices().into_iter().map(str::to_owned).collect();
        wanted.iter().for_each(|slice| self.follow_labels(slice, out));
        let unwanted = |slice: &String| !wanted.contains(slice);
        for (ticket, slice) in self.labels.iter().filter(|(_, slice)| unwanted(slice)) {
            out.cancel(*ticket);
            self.shared.state().slices.forget_labels(slice);
        }
        self.labels.retain(|_, slice| wanted.contains(slice));
    }

    /// What requests share with the app.
    pub fn shared(&self) -> Arc<Shared> {
        Arc::clone(&self.shared)
    }

    /// Calls a service. `None`: too many calls wait.
    pub fn call(
        &mut self,
        service: &str,
        payload: &[u8],
        out: &mut Commands,
    ) -> Option<oneshot::Receiver<Reply>> {
        // Clients that are gone do not count.
        self.calls.retain(|_, waiting| !waiting.is_closed());
        if self.calls.len() >= CALLS_MAX {
            return None;
        }
        let (done, answer) = oneshot::channel();
        self.calls.insert(out.query(service, payload), done);
        Some(answer)
    }

    /// Asks a switch. `None`: too many requests wait for switches.
    pub fn ask_switch(
        &mut self,
        switch: DatapathId,
        (multipart, body): (u16, &[u8]),
        out: &mut Commands,
    ) -> Option<oneshot::Receiver<Parts>> {
        self.asked.retain(|_, asked| !asked.waiting.is_closed());
        if self.asked.len() >= ASKED_MAX {
            return None;
        }
        let (waiting, answer) = oneshot::channel();
        let ticket = out.request_stats(switch, multipart, body);
        let bytes_max =
            if multipart == TABLE_FEATURES { TABLE_FEATURES_BYTES_MAX } else { SWITCH_ANSWER_BYTES_MAX };
        self.asked.insert(ticket, Asked { waiting, parts: Vec::new(), bytes: 0, bytes_max });
        Some(answer)
    }

    /// Changes a port. `None`: too many requests wait for switches.
    pub fn change_port(
        &mut self,
        switch: DatapathId,
        change: PortMod,
        out: &mut Commands,
    ) -> Option<oneshot::Receiver<Changed>> {
        self.changes.retain(|_, waiting| !waiting.is_closed());
        if self.changes.len() >= ASKED_MAX {
            return None;
        }
        let (done, changed) = oneshot::channel();
        self.changes.insert(out.change_port(switch, change), done);
        Some(changed)
    }

    /// A part of the answer of a switch that a request waits for.
    fn hear_switch(&mut self, ticket: Ticket, more: bool, body: &[u8]) {
        // A client that is gone needs no more parts.
        self.asked.retain(|_, asked| !asked.waiting.is_closed());
        let kept: usize = self.asked.values().map(|asked| asked.bytes).sum();
        let Some(asked) = self.asked.get_mut(&ticket) else { return };
        // An empty part takes room, too.
        let added = body.len() + size_of::<Vec<u8>>();
        asked.bytes += added;
        let bytes_max = asked.bytes_max;
        let is_too_long = asked.bytes > bytes_max || kept + added > SWITCH_ANSWERS_BYTES_MAX;
        if !is_too_long {
            asked.parts.push(body.to_vec());
        }
        if more && !is_too_long {
            return;
        }
        let Some(Asked { waiting, parts, .. }) = self.asked.remove(&ticket) else { return };
        let too_long = || {
            format!(
                "its answer has more than {bytes_max} bytes, or all answers together more than \
                 {SWITCH_ANSWERS_BYTES_MAX}: ask for one table"
            )
        };
        // The client may be gone.
        let _ = waiting.send(if is_too_long { Err(too_long()) } else { Ok(parts) });
    }

    /// Sends the monitor a command for an app. `None`: too many commands wait.
    pub fn order(&mut self, command: AppCommand, out: &mut Commands) -> Option<oneshot::Receiver<Ordered>> {
        self.orders.retain(|_, waiting| !waiting.is_closed());
        if self.orders.len() >= ORDERS_MAX {
            return None;
        }
        self.last_order += 1;
        let ticket = self.last_order;
        let (done, answer) = oneshot::channel();
        out.tell_monitor(&ToMonitor::Command(AppCommand { ticket, ..command }));
        self.orders.insert(ticket, done);
        Some(answer)
    }

    /// Asks the monitor for the evidence of an incident. `None`: too many questions wait.
    pub fn read_evidence(&mut self, number: u64, out: &mut Commands) -> Option<oneshot::Receiver<Evidence>> {
        self.evidence.retain(|_, waiting| !waiting.is_closed());
        if self.evidence.len() >= EVIDENCE_MAX {
            return None;
        }
        self.last_order += 1;
        let ticket = self.last_order;
        let (done, answer) = oneshot::channel();
        out.tell_monitor(&ToMonitor::ReadEvidence { ticket, number });
        self.evidence.insert(ticket, done);
        Some(answer)
    }
}

/// The present time, in milliseconds since 1970.
pub fn now_ms() -> u64 {
    let elapsed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX)
}
