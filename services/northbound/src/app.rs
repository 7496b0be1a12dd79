//! The app of the service: it follows the view, asks switches for the counters of their ports, and calls services for requests.
//!
//! ```text
//!   the view ──on_view──> Northbound ──change──> State
//!   switches ──counters──>     │
//!   requests ──call──> services ──answer──> the request that waits
//! ```
//!
//! In: events of the node. Out: changes of the state, and commands. While a service is away, its objects stay as they were, and
//! `/api/v1/node` says that the view is not current.

use crate::api::AT_HAND;
use crate::counters::{ALL_PORTS, OFPMP_PORT_STATS};
use crate::state::State;
use burnet_sdk::view::{Batch, Snapshot};
use burnet_sdk::{
    App, Commands, DatapathId, Interests, QueryReply, Receipt, Settings, StatsReply, SwitchUp, Ticket, Topic,
    read_monitor,
};
use burnet_sdk_tokio::tokio::sync::oneshot;
use northbound_contract::NodeReport;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

/// How often each switch is asked for the counters of its ports.
const COUNTERS_INTERVAL_MS: u64 = 5_000;

/// The most calls of services that wait for an answer. A request beyond it is refused.
const CALLS_MAX: usize = 256;

/// What requests share with the app.
pub struct Shared {
    state: Mutex<State>,
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

/// The app.
pub struct Northbound {
    shared: Arc<Shared>,
    calls: BTreeMap<Ticket, oneshot::Sender<Reply>>,
    switches: BTreeSet<DatapathId>,
    counters_due_ms: u64,
}

impl App for Northbound {
    fn new(settings: &Settings) -> Result<Self, String> {
        let settings: northbound_contract::Settings = settings.read()?;
        if let Some(flaw) = settings.flaw() {
            return Err(flaw);
        }
        let now_ms = now_ms();
        let run = format!("{now_ms:x}");
        let state = Mutex::new(State::new(run, now_ms));
        Ok(Northbound {
            shared: Arc::new(Shared { state, settings }),
            calls: BTreeMap::new(),
            switches: BTreeSet::new(),
            counters_due_ms: 0,
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
        for switch in &self.switches {
            out.request_stats(*switch, OFPMP_PORT_STATS, &ALL_PORTS);
        }
    }

    fn on_stats_reply(&mut self, reply: &StatsReply, _: &mut Commands) {
        if reply.multipart == OFPMP_PORT_STATS {
            let mut state = self.shared.state();
            let taken = state.counters.take(reply.datapath, reply.body, now_ms());
            state.counted(&taken);
        }
    }

    fn serves_monitor(&self) -> bool {
        true
    }

    fn on_monitor(&mut self, message: &[u8], _: &mut Commands) -> Result<(), String> {
        let report: NodeReport = read_monitor(message)?;
        self.shared.state().apps = report.apps;
        Ok(())
    }

    fn on_topic(&mut self, topic: &Topic, _: &mut Commands) {
        if topic.topic == hosts_contract::INCIDENT_TOPIC {
            self.shared.state().on_incident(hosts_contract::SERVICE, topic.payload);
        }
    }

    fn on_query_reply(&mut self, reply: &QueryReply, _: &mut Commands) {
        if let Some(waiting) = self.calls.remove(&Ticket(reply.ticket)) {
            // Its client may be gone.
            let _ = waiting.send((reply.status, reply.payload.to_vec()));
        }
    }

    fn on_receipt(&mut self, _: DatapathId, receipt: &Receipt, _: &mut Commands) {
        if let Some(waiting) = self.calls.remove(&Ticket(receipt.ticket)) {
            let _ = waiting.send((burnet_sdk::query_status::NOT_GRANTED, receipt.reason.as_bytes().to_vec()));
        }
    }
}

impl Northbound {
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
}

/// The present time, in milliseconds since 1970.
pub fn now_ms() -> u64 {
    let elapsed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX)
}
