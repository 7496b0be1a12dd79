//! The messages between the control thread and the workers.
//!
//! Both directions are bounded queues. The control thread never waits for a worker: if the queue is full, the operation
//! fails. A worker never waits for the control thread: if the queue is full, it tries again in its next turn. No packets
//! are sent here.

use crate::departures::SwitchLeft;
use abi::ZoneId;
use abi::event::SoftLimit;
use audit_contract::Record;
use config::NodeLimits;
use flow::DatapathId;
use kernel::zone_set::MAX_ZONE;
use kernel::{Grant, NodeRates, OfSwitch};
use mio::net::TcpStream;
use monitor_channel::ZoneCounts;
use monitor_channel::protocol::FaultCause;
use ring::PortFds;
use southbound::SouthboundConfig;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SendError, SyncSender, TrySendError, sync_channel};
use zone::trusted::TrustedCode;

/// Messages that may wait for one worker. Most of them are connections: this many may arrive while a worker does one
/// turn.
const WORKER_INBOX: usize = 4096;

/// How many of these may be commands from other workers; the rest is for connections, zones and the operator.
const FORWARDED_MAX: u32 = WORKER_INBOX as u32 / 4 * 3;

/// How many bytes of such commands one zone may have waiting; a single command may be longer.
const FORWARDED_BYTES_PER_ZONE: u32 = 512 << 10;

/// The charge for a message in addition to the command's bytes, so that many short messages are bounded too.
const PER_MESSAGE_BYTES: u32 = 1 << 10;

/// Messages that may wait for the control thread.
const CONTROL_INBOX: usize = 1024;

/// To a worker.
pub enum ToWorker {
    /// A switch has connected.
    Adopt(TcpStream, SocketAddr),
    /// A process zone is ready.
    AttachZone {
        /// Its number.
        zone: ZoneId,
        /// Its app.
        app: String,
        /// The number of its start.
        generation: u64,
        /// This worker's end of its port.
        port: PortFds,
        /// Its grant.
        grant: Box<Grant>,
        /// Its rate limits, for all workers together.
        rates: Arc<NodeRates>,
    },
    /// A trusted app must run.
    LoadTrusted {
        /// Its number.
        zone: ZoneId,
        /// Its name.
        app: String,
        /// Its code.
        code: TrustedCode,
        /// Its settings, a JSON object.
        settings: Vec<u8>,
        /// Its grant.
        grant: Box<Grant>,
        /// Its rate limits, for all workers together.
        rates: Arc<NodeRates>,
    },
    /// A running app gets a new grant. `generation` is 0 for a trusted app.
    Regrant {
        /// Its number.
        zone: ZoneId,
        /// The number of its start.
        generation: u64,
        /// The new grant.
        grant: Box<Grant>,
        /// Its rate limits, for all workers together.
        rates: Arc<NodeRates>,
    },
    /// The configuration has changed.
    Reconfigure {
        /// The new settings of sessions.
        southbound: Box<SouthboundConfig>,
        /// The limits for switches and apps.
        limits: NodeLimits,
    },
    /// These losses of zones are to be withdrawn from switches, and no others.
    Withdraw(Arc<[kernel::Withdrawal]>),
    /// A zone has ended. `generation` is 0 for a trusted app.
    DetachZone {
        /// Its number.
        zone: ZoneId,
        /// The number of its start.
        generation: u64,
    },
    /// A command that a zone sent at another worker, for a switch of this worker.
    Forward {
        /// The zone.
        zone: ZoneId,
        /// The command frame.
        frame: Vec<u8>,
    },
    /// The operator asks for a switch's flow entries.
    AskFlows {
        /// The switch.
        datapath: DatapathId,
        /// The ticket that identifies the answer.
        ticket: u64,
    },
    /// Count the resource use of the zones. The control thread sends it at the monitor's interval. If the queue is
    /// full, it is dropped.
    CountZones,
    /// Tell a zone that it exceeds a soft limit, or no longer does.
    TellSoftLimit {
        /// The zone.
        zone: ZoneId,
        /// The number of its start.
        generation: u64,
        /// The limit.
        limit: SoftLimit,
    },
    /// The operator asks for the counters.
    AskCounts {
        /// The ticket that identifies the answer.
        ticket: u64,
    },
    /// Close the sessions, and end.
    Shutdown,
}

/// From a worker.
pub enum FromWorker {
    /// A process zone violated the protocol.
    ZoneFault {
        /// Its app.
        app: String,
        /// The number of its start.
        generation: u64,
        /// What kind of violation it is.
        cause: FaultCause,
        /// The violation.
        reason: String,
    },
    /// A switch answers otherwise than its profile says.
    SwitchLeftProfile(SwitchLeft),
    /// A trusted app panicked, or did not start.
    TrustedFault {
        /// Its app.
        app: String,
        /// The reason.
        reason: String,
    },
    /// A frame for the node itself: a part of an answer for the operator.
    ToNode(Vec<u8>),
    /// The counters of this worker.
    Counts {
        /// The ticket of the request.
        ticket: u64,
        /// The counters of each session.
        sessions: Vec<southbound::SessionSnapshot>,
        /// The counters of each zone.
        zones: Vec<ZoneCounts>,
        /// The kernel's record of each switch.
        switches: Vec<OfSwitch>,
    },
    /// The counters of each zone at this worker, for usage.
    ZonesCounted {
        /// The worker's number.
        worker: usize,
        /// The counters of each attached zone.
        zones: Vec<ZoneCounts>,
    },
    /// The flow entries are not available.
    NoFlows {
        /// The ticket of the request.
        ticket: u64,
        /// The reason.
        reason: String,
    },
    /// Records of refusals at this worker.
    Audit(Vec<Record>),
    /// A line that an app wrote to the node's log, for its own log.
    Line {
        /// Its app.
        app: String,
        /// The number of its start.
        generation: u64,
        /// The line, safe to write.
        line: String,
    },
    /// Code of a trusted app, from the thread that loads it.
    Loaded {
        /// Its zone.
        zone: u16,
        /// The number of the load.
        number: u64,
        /// The code, or why it could not be loaded.
        loaded: Result<TrustedCode, String>,
    },
    /// These losses were withdrawn.
    Withdrawn(Vec<u64>),
    /// A worker has ended as requested.
    Ended,
}

/// The control thread's sender to one worker, which also shows whether the worker makes progress.
#[derive(Clone)]
pub struct WorkerSender {
    messages: SyncSender<ToWorker>,
    waker: Arc<mio::Waker>,
    turns: Arc<AtomicU64>,
    forwarded: Arc<Forwarded>,
}

/// The commands from other workers that wait in a worker's queue. All workers count them without a lock.
#[derive(Debug)]
struct Forwarded {
    messages: AtomicU32,
    bytes_of_zones: [AtomicU32; MAX_ZONE as usize + 1],
}

impl Forwarded {
    fn new() -> Self {
        Forwarded {
            messages: AtomicU32::new(0),
            bytes_of_zones: [const { AtomicU32::new(0) }; MAX_ZONE as usize + 1],
        }
    }

    /// Reserves space for a command of this zone, if it has any left.
    fn take(&self, zone: ZoneId, frame: &[u8]) -> bool {
        let Some(of_zone) = self.bytes_of_zones.get(usize::from(zone.0)) else { return false };
        let cost = cost_of(frame);
        let (before, messages) =
            (of_zone.fetch_add(cost, Ordering::Relaxed), self.messages.fetch_add(1, Ordering::Relaxed));
        let fits = before == 0 || before.saturating_add(cost) <= FORWARDED_BYTES_PER_ZONE;
        if fits && messages < FORWARDED_MAX {
            return true;
        }
        self.give_back(zone, frame);
        false
    }

    fn give_back(&self, zone: ZoneId, frame: &[u8]) {
        if let Some(of_zone) = self.bytes_of_zones.get(usize::from(zone.0)) {
            of_zone.fetch_sub(cost_of(frame), Ordering::Relaxed);
            self.messages.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// A frame's length is at most 32 bits, and far less in practice.
fn cost_of(frame: &[u8]) -> u32 {
    u32::try_from(frame.len()).unwrap_or(u32::MAX / 2).saturating_add(PER_MESSAGE_BYTES)
}

impl WorkerSender {
    /// Creates the queue to a worker whose poll has this waker.
    pub fn new(waker: Arc<mio::Waker>) -> (WorkerSender, WorkerReceiver) {
        let (messages, inbox) = sync_channel(WORKER_INBOX);
        let (turns, forwarded) = (Arc::new(AtomicU64::new(0)), Arc::new(Forwarded::new()));
        let inbox = WorkerReceiver { inbox, turns: turns.clone(), forwarded: forwarded.clone() };
        (WorkerSender { messages, waker, turns, forwarded }, inbox)
    }

    /// Sends a message, or returns it if the worker's queue is full or the worker has ended.
    pub fn send(&self, message: ToWorker) -> Result<(), ToWorker> {
        self.messages.try_send(message).map_err(|error| match error {
            TrySendError::Full(message) | TrySendError::Disconnected(message) => message,
        })?;
        // It fails only if the worker's poll is gone, and then the worker is too.
        let _ = self.waker.wake();
        Ok(())
    }

    /// Sends a zone's command for a switch of this worker. Returns whether it was sent. A zone that has used up its
    /// share of the queue must wait, and takes no space from others.
    pub fn forward(&self, zone: ZoneId, frame: &[u8]) -> bool {
        if !self.forwarded.take(zone, frame) {
            return false;
        }
        let sent = self.send(ToWorker::Forward { zone, frame: frame.to_vec() }).is_ok();
        if !sent {
            self.forwarded.give_back(zone, frame);
        }
        sent
    }

    /// How many turns the worker has done.
    pub fn turns(&self) -> u64 {
        self.turns.load(Ordering::Relaxed)
    }
}

/// The worker's end of its queue.
pub struct WorkerReceiver {
    inbox: Receiver<ToWorker>,
    turns: Arc<AtomicU64>,
    forwarded: Arc<Forwarded>,
}

impl WorkerReceiver {
    /// The next message, if there is one.
    pub fn next(&self) -> Option<ToWorker> {
        let message = self.inbox.try_recv().ok()?;
        if let ToWorker::Forward { zone, frame } = &message {
            self.forwarded.give_back(*zone, frame);
        }
        Some(message)
    }

    /// The worker has started another turn.
    pub fn turn(&self) {
        self.turns.fetch_add(1, Ordering::Relaxed);
    }
}

/// A worker's sender to the control thread.
#[derive(Clone)]
pub struct ControlSender {
    messages: SyncSender<FromWorker>,
    waker: Arc<mio::Waker>,
}

impl ControlSender {
    /// Creates the queue to the control thread, whose poll has this waker.
    pub fn new(waker: Arc<mio::Waker>) -> (ControlSender, Receiver<FromWorker>) {
        let (messages, inbox) = sync_channel(CONTROL_INBOX);
        (ControlSender { messages, waker }, inbox)
    }

    /// Sends a message without waiting; returns it if the queue is full.
    pub fn send(&self, message: FromWorker) -> Result<(), FromWorker> {
        self.messages.try_send(message).map_err(|error| match error {
            TrySendError::Full(message) | TrySendError::Disconnected(message) => message,
        })?;
        let _ = self.waker.wake();
        Ok(())
    }

    /// Wakes the control thread for work other than messages.
    pub fn wake(&self) {
        let _ = self.waker.wake();
    }

    /// Sends the last message of a thread. It may wait.
    pub fn send_last(&self, message: FromWorker) -> Result<(), SendError<FromWorker>> {
        self.messages.send(message)?;
        let _ = self.waker.wake();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line() -> (WorkerSender, WorkerReceiver, mio::Poll) {
        let poll = mio::Poll::new().unwrap();
        let waker = Arc::new(mio::Waker::new(poll.registry(), mio::Token(0)).unwrap());
        let (line, inbox) = WorkerSender::new(waker);
        (line, inbox, poll)
    }

    fn forwarded(line: &WorkerSender, zone: u16, frame: &[u8]) -> usize {
        (0..10_000).take_while(|_| line.forward(ZoneId(zone), frame)).count()
    }

    #[test]
    fn no_zone_takes_anothers_room_in_a_workers_box() {
        let (line, inbox, _poll) = line();
        assert_eq!(forwarded(&line, 1, &[0; 24]), 500);
        assert_eq!(forwarded(&line, 2, &[0; 24]), 500);
        assert_eq!(forwarded(&line, 1024, &[0; 24]), 0, "there is no such zone");
        assert!(matches!(inbox.next(), Some(ToWorker::Forward { zone: ZoneId(1), .. })));
        assert_eq!(forwarded(&line, 1, &[0; 24]), 1);
    }

    #[test]
    fn all_zones_together_leave_room_for_what_the_node_says() {
        let (line, inbox, _poll) = line();
        let all: usize = (1..=MAX_ZONE).map(|zone| forwarded(&line, zone, &[])).sum();
        assert_eq!(all, FORWARDED_MAX as usize);
        assert!(line.send(ToWorker::AskCounts { ticket: 1 }).is_ok());
        while inbox.next().is_some() {}
        assert_eq!(forwarded(&line, 1, &[]), 512);
    }

    #[test]
    fn a_command_that_is_longer_than_a_share_goes_alone() {
        let (line, _post, _poll) = line();
        assert_eq!(forwarded(&line, 1, &vec![0; 1 << 20]), 1);
    }
}
